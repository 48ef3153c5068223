//! Breadth-first search: the distance of each vertex of a graph from a root, and a parent.
//!
//! The vertices are dealt to the cells. A cell that reaches a vertex sends it to its neighbours'
//! owners, whichever these are: an epoch whose rounds are the levels of the search. No cell knows
//! before who will send to it, and none counts levels to know when the search is over.
//!
//! Of the neighbours by which a vertex is reached in the same round the least is its parent, so that
//! the tree does not depend on how the vertices are dealt. It is compared with that of a sequential
//! search.

use conset::ir::CellId;
use conset::mesh::Source;
use conset_runtime::{Cell, CellError};

use crate::mesh::{divide, load};
use crate::report::{Agreement, MeshArgs, Report};
use crate::team::{Account, Meter, Team};
use crate::{Failure, failure, noise};

/// A vertex that was not reached has this distance and this parent.
pub const NONE: u32 = u32::MAX;

/// Distance and parent of a vertex; the root is its own parent.
pub type Reached = (u32, u32);

/// A graph, by its vertices' neighbours.
#[derive(Clone, Debug, Default)]
pub struct Neighbours(Vec<Vec<u32>>);

impl Neighbours {
    /// A graph whose vertices choose so many neighbours each at random.
    pub fn random(vertices: u32, degree: u32, seed: u64) -> Self {
        let mut all = vec![Vec::new(); vertices as usize];
        for edge in 0..u64::from(vertices) * u64::from(degree) {
            let from = (edge / u64::from(degree)) as u32;
            let to = ((noise(seed, edge) + 1.0) / 2.0 * f64::from(vertices)) as u32;
            all[from as usize].push(to.min(vertices - 1));
            all[to.min(vertices - 1) as usize].push(from);
        }
        Self(all)
    }

    /// What a sequential search finds.
    fn search(&self, root: u32) -> Vec<Reached> {
        let mut found = vec![(NONE, NONE); self.0.len()];
        found[root as usize] = (0, root);
        let (mut level, mut distance) = (vec![root], 0);
        while !level.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for vertex in std::mem::take(&mut level) {
                for &other in &self.0[vertex as usize] {
                    let (before, parent) = &mut found[other as usize];
                    if *before == NONE {
                        (*before, *parent) = (distance, vertex);
                        next.push(other);
                    } else if *before == distance {
                        *parent = vertex.min(*parent);
                    }
                }
            }
            level = next;
        }
        found
    }
}

/// A search that was made.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Distance and parent of each vertex; over MPI of those of this process, and else of the
    /// sequential search.
    pub found: Vec<Reached>,
    edges: usize,
    rounds: u64,
    agreement: Agreement,
    account: Account,
}

/// Searches a graph from a root, on cells and alone. The input is a file that holds a graph, or
/// `random:VERTICES:DEGREE`.
///
/// # Errors
/// A file that is no graph, no such root, a run that failed.
pub fn search(args: &MeshArgs, root: u32) -> Result<Searched, Failure> {
    let machine = args.team.machine()?;
    let cells: Vec<CellId> = machine.endpoints().collect();
    let (graph, owner) = deal(args, cells.len())?;
    if root as usize >= graph.0.len() {
        return Err(failure(format!("vertex {root} of a graph of {}", graph.0.len())));
    }
    let owner: Vec<CellId> = owner.into_iter().map(|part| cells[part as usize]).collect();
    let team = Team::gather(&args.team, &machine, Vec::new())?;
    let (results, account) =
        team.run(|cell, meter| on_cell(cell, meter, (&graph, &owner), root))?;
    let alone = graph.search(root);
    let mut found = alone.clone();
    for (cell, (reached, _)) in team.own_cells().into_iter().zip(&results) {
        let own = owner.iter().zip(&mut found).filter(|(owner, _)| **owner == cell);
        own.zip(reached).for_each(|((_, found), &reached)| *found = reached);
    }
    let numbers = |found: &[Reached]| -> Vec<f64> {
        found.iter().flat_map(|&(distance, parent)| [distance.into(), parent.into()]).collect()
    };
    Ok(Searched {
        agreement: Agreement::of(&numbers(&found), &numbers(&alone), 0.0),
        edges: graph.0.iter().map(Vec::len).sum::<usize>() / 2,
        rounds: results.first().map_or(0, |result| result.1),
        found,
        account,
    })
}

/// The graph, and the part of each vertex.
fn deal(args: &MeshArgs, cells: usize) -> Result<(Neighbours, Vec<u32>), Failure> {
    if let Some(spec) = args.mesh.strip_prefix("random:") {
        let wrong = || failure(format!("random:{spec}, expected random:VERTICES:DEGREE"));
        let (vertices, degree) = spec.split_once(':').ok_or_else(wrong)?;
        let vertices: u32 = vertices.parse().ok().filter(|&n| n > 0).ok_or_else(wrong)?;
        let degree = degree.parse().ok().filter(|&n: &u32| n <= 1000).ok_or_else(wrong)?;
        let parts = args.parts.unwrap_or(cells).clamp(1, cells) as u64;
        let part = |vertex: u32| (u64::from(vertex) * parts / u64::from(vertices)) as u32;
        let graph = Neighbours::random(vertices, degree, args.team.seed);
        return Ok((graph, (0..vertices).map(part).collect()));
    }
    let source = load(&args.mesh, args.team.seed)?;
    let Source::Graph(graph) = &source else {
        return Err(failure(format!("{}: not a graph", args.mesh)));
    };
    let partition = divide(&source, args.parts, cells, args.team.seed)?;
    if partition.part_count() > cells {
        let parts = partition.part_count();
        return Err(failure(format!("{parts} parts for {cells} cells")));
    }
    let rows = (0..graph.vertex_count()).map(|vertex| graph.neighbours_of(vertex).to_vec());
    Ok((Neighbours(rows.collect()), partition.part_of().to_vec()))
}

/// Distance and parent of the vertices of a cell, ascending, and the rounds of the epoch.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    (graph, owner): (&Neighbours, &[CellId]),
    root: u32,
) -> Result<(Vec<Reached>, u64), CellError> {
    let own = cell.id();
    let mut found = vec![(NONE, NONE); owner.len()];
    let settled = meter.exchange(cell, |cell| {
        // Vertex, the neighbour by which it is reached, distance.
        let mut epoch = cell.open::<[u32; 3]>();
        if owner[root as usize] == own {
            epoch.send(own, [root, root, 0])?;
        }
        epoch.settle(|_, [vertex, from, distance], out| {
            let (before, parent) = &mut found[vertex as usize];
            if *before == distance {
                *parent = from.min(*parent);
            }
            if *before != NONE {
                return;
            }
            (*before, *parent) = (distance, from);
            for &other in &graph.0[vertex as usize] {
                out.send(owner[other as usize], [other, vertex, distance + 1]);
            }
        })
    })?;
    let own = found.into_iter().zip(owner).filter(|(_, owner)| **owner == own);
    Ok((own.map(|(reached, _)| reached).collect(), settled.rounds))
}

impl Report for Searched {
    fn agreement(&self) -> Agreement {
        self.agreement
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Searched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reached = self.found.iter().filter(|found| found.0 != NONE);
        let farthest = reached.clone().map(|found| found.0).max().unwrap_or(0);
        writeln!(
            f,
            "search of {} vertices and {} edges: {} reached, the farthest at {farthest}, {} rounds",
            self.found.len(),
            self.edges,
            reached.count(),
            self.rounds,
        )?;
        writeln!(f, "{}", self.account)?;
        write!(f, "{}", self.agreement)
    }
}
