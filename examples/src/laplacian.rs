//! The Laplacian of a graph plus the identity, by rows: conjugate gradients with owners and ghosts.
//!
//! The matrix has on the diagonal the number of edges of each vertex plus 1, and -1 for each edge.
//! Rows have owners; before a product each cell needs the entries of other owners that its rows
//! refer to. [`Layout::from_csr`] numbers the rows and ghosts of each cell and determines the
//! connections; [`Cell::exchange_nodes_by`] with [`Op::Copy`] updates the ghosts, by phases or by
//! messages. Every entry has one owner, so inner products are over owned rows.
//!
//! The right-hand side is the product with a known vector.

use conset::assemble;
use conset::ir::CellId;
use conset::mesh::{Graph, Source};
use conset::partition_route::placement::Method;
use conset_runtime::{By, Cell, CellError, Collectives, Layout, LocalCsr, Op, Plan, tree_sets};

use crate::cg::{Solution, Stop};
use crate::mesh::{divide, load};
use crate::report::{Agreement, History, MeshArgs, Solved};
use crate::sparse::{Csr, add_scaled, dot, max_difference};
use crate::team::{Meter, Team, by_cell};
use crate::{Failure, failure, noise};

/// The rows of one cell.
#[derive(Clone, Debug, Default)]
struct Rows {
    matrix: Csr,
    right: Vec<f64>,
    /// The global number of each own row, then of each ghost.
    ids: Vec<u64>,
}

/// Solves on a graph, on cells and alone.
///
/// # Errors
/// A file that is no graph, parts that do not fit the machine, a run that failed.
pub fn solve(args: &MeshArgs, stop: Stop, by: By) -> Result<Solved, Failure> {
    if args.vtu.is_some() {
        return Err(failure("--vtu: a graph has no coordinates"));
    }
    let source = load(&args.mesh, args.team.seed)?;
    let Source::Graph(graph) = &source else {
        return Err(failure(format!("{}: not a graph; `poisson` solves on meshes", args.mesh)));
    };
    let matrix = shifted_laplacian(graph);
    let exact: Vec<f64> = (0..matrix.rows() as u64).map(|row| noise(args.team.seed, row)).collect();
    let mut right = vec![0.0; exact.len()];
    matrix.times(&exact, &mut right);

    let machine = args.team.machine()?;
    let partition = divide(&source, args.parts, machine.endpoints().count(), args.team.seed)?;
    let parts = partition.part_count();
    let first: Vec<u32> = matrix.first.iter().map(|&at| at as u32).collect();
    let csr = Layout::from_csr(&first, &matrix.columns, partition.part_of(), parts)?;
    let ghosts = (parts, vec![csr.forward.set("ghosts", 1)?]);
    let [_, _, trees] = tree_sets(&machine, 1)?;
    let conset::Assembled { place, compiled, .. } =
        assemble(args.team.compiler(&machine), ghosts, [trees], Method::default())?;
    let layout = csr.forward.placed(&place, machine.cell_count())?;
    let team = Team::of(&args.team, &compiled)?;
    let plan = Plan::new(team.image(), "ghosts", layout, 1)?;
    let trees = Collectives::new(team.image())?;

    let rows = |local: &LocalCsr| Rows {
        matrix: Csr {
            first: local.ptr().to_vec(),
            columns: local.idx().to_vec(),
            values: local.values(&matrix.first, &matrix.values),
        },
        right: local.ids()[..local.owned()].iter().map(|&row| right[row as usize]).collect(),
        ids: local.ids().to_vec(),
    };
    let rows = by_cell(machine.cell_count(), &place, csr.parts.iter().map(rows).collect())?;
    let (solutions, mut account) = team.run(|cell, meter| {
        on_cell(cell, meter, (&plan, &trees), &rows[cell.id().index()], (stop, by))
    })?;

    let zeros = |cell: CellId| vec![0.0; rows[cell.index()].ids.len()];
    account.alone = Some(team.time(zeros, |cell, p| update_ghosts(cell, &plan, by, p))?);

    let alone = alone(&matrix, &right, stop);
    // Over MPI a process has some of the rows, and checks those.
    let mut x = alone.x.clone();
    for (cell, part) in team.own_cells().into_iter().zip(&solutions) {
        for (&row, &value) in rows[cell.index()].ids.iter().zip(&part.x) {
            x[row as usize] = value;
        }
    }
    Ok(Solved {
        title: format!(
            "Laplacian + 1: {} vertices, {} entries, {parts} parts",
            matrix.rows(),
            matrix.nonzeros()
        ),
        history: History::of(&solutions, &alone),
        error: max_difference(&x, &exact),
        agreement: Agreement::of(&x, &alone.x, 100.0 * stop.tolerance.max(1e-14)),
        x,
        account,
    })
}

/// Conjugate gradients on one cell's rows. Only `p` has ghosts.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    (plan, trees): (&Plan, &Collectives),
    Rows { matrix, right, ids }: &Rows,
    (stop, by): (Stop, By),
) -> Result<Solution, CellError> {
    let own = matrix.rows();
    let mut x = vec![0.0; own];
    let mut r = right.clone();
    let mut p = vec![0.0; ids.len()];
    p[..own].copy_from_slice(&r);
    let mut q = vec![0.0; own];
    let mut sum = [dot(&r, &r)];
    cell.allreduce(trees, Op::Add, &mut sum)?;
    let [first] = sum;
    let mut rr = first;
    let mut residuals = Vec::new();
    while residuals.len() < stop.iterations && rr > stop.tolerance.powi(2) * first {
        meter.exchange(cell, |cell| update_ghosts(cell, plan, by, &mut p))?;
        matrix.times(&p, &mut q);
        meter.compute(cell, 2 * matrix.nonzeros() + 10 * own)?;
        let mut pq = [dot(&p[..own], &q)];
        meter.collective(cell, |cell| cell.allreduce(trees, Op::Add, &mut pq))?;
        let alpha = rr / pq[0];
        add_scaled(&mut x, alpha, &p[..own]);
        add_scaled(&mut r, -alpha, &q);
        let mut sum = [dot(&r, &r)];
        meter.collective(cell, |cell| cell.allreduce(trees, Op::Add, &mut sum))?;
        let beta = sum[0] / rr;
        rr = sum[0];
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
        residuals.push((rr / first).sqrt());
    }
    Ok(Solution { x, residuals })
}

/// Owners send, ghosts receive.
fn update_ghosts(cell: &mut Cell<'_>, plan: &Plan, by: By, p: &mut [f64]) -> Result<(), CellError> {
    cell.exchange_nodes_by(by, plan, Op::Copy, p)
}

/// Conjugate gradients on one processor.
fn alone(matrix: &Csr, right: &[f64], stop: Stop) -> Solution {
    let mut x = vec![0.0; right.len()];
    let (mut r, mut p, mut q) = (right.to_vec(), right.to_vec(), x.clone());
    let first = dot(&r, &r);
    let mut rr = first;
    let mut residuals = Vec::new();
    while residuals.len() < stop.iterations && rr > stop.tolerance.powi(2) * first {
        matrix.times(&p, &mut q);
        let alpha = rr / dot(&p, &q);
        add_scaled(&mut x, alpha, &p);
        add_scaled(&mut r, -alpha, &q);
        let beta = dot(&r, &r) / rr;
        rr = dot(&r, &r);
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
        residuals.push((rr / first).sqrt());
    }
    Solution { x, residuals }
}

/// The Laplacian of a graph plus the identity, columns ascending.
fn shifted_laplacian(graph: &Graph) -> Csr {
    let mut matrix = Csr::default();
    for vertex in 0..graph.vertex_count() {
        let neighbours = graph.neighbours_of(vertex);
        let mut row: Vec<(u32, f64)> = neighbours.iter().map(|&other| (other, -1.0)).collect();
        row.push((vertex as u32, neighbours.len() as f64 + 1.0));
        row.sort_unstable_by_key(|entry| entry.0);
        matrix.columns.extend(row.iter().map(|entry| entry.0));
        matrix.values.extend(row.iter().map(|entry| entry.1));
        matrix.first.push(matrix.columns.len());
    }
    matrix
}
