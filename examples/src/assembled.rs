//! A mesh distributed to the cells of a machine, with an exchange of its shared nodes.
//!
//! The runtime finds from the global node ids of the parts which nodes are shared
//! ([`Layout::from_shared_ids`]). [`conset::assemble()`] places the parts on the machine and
//! compiles the set of the layout and the trees for sums; the plan combines layout and image. Every
//! cell then runs its program with the plan, the trees and its part.

use std::path::Path;

use conset::assemble;
use conset::ir::CellId;
use conset::mesh::Source;
use conset::partition_route::placement::Method;
use conset_runtime::{By, Cell, CellError, Collectives, Layout, Op, Plan, tree_sets};

use crate::mesh::{Part, Simplices, divide};
use crate::team::{Account, Meter, Team, TeamArgs, by_cell};
use crate::{Failure, failure, vtu};

/// A mesh in parts, ready to be exchanged.
#[derive(Debug)]
pub struct Assembled {
    /// The part of each cell, by cell id; empty where a cell has none.
    pub parts: Vec<Part>,
    /// Sums of shared nodes.
    pub plan: Plan,
    /// Sums over all cells.
    pub trees: Collectives,
    /// How shared nodes are exchanged.
    pub by: By,
    team: Team,
    block: usize,
}

impl Assembled {
    /// Deals a mesh to cells ([`divide`]) and compiles the exchange of its shared nodes, `block`
    /// values for each.
    ///
    /// # Errors
    /// A machine that is none, parts that do not fit it, a mesh that cannot be dealt.
    pub fn new(
        args: &TeamArgs,
        (mesh, source): (&Simplices, &Source),
        parts: Option<usize>,
        (block, by): (usize, By),
    ) -> Result<Self, Failure> {
        let machine = args.machine()?;
        let partition = divide(source, parts, machine.endpoints().count(), args.seed)?;
        let parts = mesh.distribute(source, &partition)?;

        let ids: Vec<&[u64]> = parts.iter().map(|part| part.ids.as_slice()).collect();
        let layout = Layout::from_shared_ids(&ids)?;
        let halo = (parts.len(), vec![layout.set("halo", block)?]);
        // Sums over all cells go both ways, by one set.
        let [_, _, trees] = tree_sets(&machine, 2)?;
        let conset::Assembled { place, compiled, .. } =
            assemble(args.compiler(&machine), halo, [trees], Method::default())?;
        let layout = layout.placed(&place, machine.cell_count())?;
        let team = Team::of(args, &compiled)?;
        Ok(Self {
            parts: by_cell(machine.cell_count(), &place, parts)?,
            plan: Plan::new(team.image(), "halo", layout, block)?,
            trees: Collectives::new(team.image())?,
            by,
            team,
            block,
        })
    }

    /// Runs a program on every cell; the results are those of [`Team::own_cells`]. Then times the
    /// exchange by itself.
    ///
    /// # Errors
    /// What went wrong in the run.
    pub fn run<R: Send>(
        &self,
        program: impl Fn(&mut Cell<'_>, &mut Meter) -> Result<R, CellError> + Sync,
    ) -> Result<(Vec<R>, Account), Failure> {
        let (results, mut account) = self.team.run(program)?;
        let zeros = |cell: CellId| vec![0.0; self.parts[cell.index()].ids.len() * self.block];
        let timed = self.team.time(zeros, |cell, x| self.sum_shared(cell, x))?;
        account.alone = Some(timed);
        Ok((results, account))
    }

    /// Sums of shared nodes, by phases or by messages.
    ///
    /// # Errors
    /// As [`Cell::sum_shared`].
    pub fn sum_shared(&self, cell: &mut Cell<'_>, x: &mut [f64]) -> Result<(), CellError> {
        cell.combine_shared_by(self.by, &self.plan, Op::Add, x)
    }

    /// Which values of a cell's vector are its own: each of the mesh's values is one cell's.
    pub fn owned(&self, cell: CellId) -> Vec<bool> {
        let owned = self.plan.owned(cell).into_iter();
        owned.flat_map(|own| std::iter::repeat_n(own, self.block)).collect()
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.parts.iter().filter(|part| !part.ids.is_empty()).count()
    }

    /// Writes the vectors of this process's cells, in the order of [`Assembled::run`], as a VTU file
    /// ([`mod@vtu`]), if one is asked for.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write<'a>(
        &'a self,
        path: Option<&Path>,
        local: impl Iterator<Item = &'a [f64]>,
    ) -> Result<(), Failure> {
        let own = self.team.own_cells();
        let (Some(path), Some(&first)) = (path, own.first()) else { return Ok(()) };
        let of_own = own.iter().filter(|cell| !self.parts[cell.index()].ids.is_empty());
        let is_all = of_own.count() == self.part_count();
        let path = if is_all { path.to_owned() } else { vtu::of_process(path, first) };
        let pieces = own.iter().zip(local).map(|(&cell, x)| (cell, &self.parts[cell.index()], x));
        let text = vtu::text(pieces.filter(|(_, part, _)| !part.ids.is_empty()), self.block)?;
        std::fs::write(&path, text).map_err(|e| failure(format!("{}: {e}", path.display())))
    }

    /// Puts the vectors of this process's cells, in the order of [`Assembled::run`], into `whole`,
    /// that of the whole mesh. Nodes that none of them has keep what is there.
    ///
    /// # Errors
    /// Copies of a node that are not the same, bit for bit.
    pub fn gather<'a>(
        &self,
        local: impl Iterator<Item = &'a [f64]>,
        mut whole: Vec<f64>,
    ) -> Result<Vec<f64>, Failure> {
        let mut seen = vec![None; whole.len() / self.block];
        for (cell, values) in self.team.own_cells().into_iter().zip(local) {
            for (&id, own) in self.parts[cell.index()].ids.iter().zip(values.chunks(self.block)) {
                let place = &mut whole[id as usize * self.block..][..self.block];
                if let Some(other) = seen[id as usize]
                    && !same_bits(place, own)
                {
                    return Err(differ(id, other, cell));
                }
                seen[id as usize] = Some(cell);
                place.copy_from_slice(own);
            }
        }
        Ok(whole)
    }
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

fn differ(node: u64, first: CellId, second: CellId) -> Failure {
    failure(format!("the copies of node {node} on {first} and {second} differ: a bug"))
}
