//! Table 5 of the CM-5 paper: the communication patterns of solvers, with stand-ins.
//!
//! The paper timed five patterns on 32 processors, of a conjugate gradient solver and of an Euler solver
//! on unstructured meshes, and gives two numbers of each: the density (the part of all pairs that
//! communicate) and the mean bytes of a message. The patterns themselves are not available. In their
//! place are vertex halos of generated meshes, partitioned in 32, that have about the paper's number of
//! vertices, and its density within 3 points. Parts of a mesh have 14 neighbours at most at these
//! sizes, which is a density of 44 %, only if they also need vertices that are several edges away, so
//! the number of layers is chosen for the density. The words of all messages are scaled to the paper's
//! mean; they stay as unequal as the mesh makes them.
//!
//! So only ranks can be compared. Times are shown without a tolerance: they say how much more the real
//! patterns took.

use std::sync::Arc;

use conset_ir::convert::{to_f64, to_u32, truncate};
use conset_ir::{Connection, ConnectionSet, Machine};
use conset_mesh::halo::HaloKind;
use conset_mesh::{Source, generate};
use conset_scheduler::steps::{Levels, StepOrder, least_clocks_direct};

use super::{IRREGULAR, machine, measured, milliseconds, planner_bug};
use crate::input::{LoadOptions, from_source};
use crate::reproduce::SEED;
use crate::reproduce::beside::{Beside, Exhibit, PaperTable};
use crate::{CompileError, parallel};

/// A pattern of the paper: name, density in percent, mean bytes, milliseconds by algorithm; and the
/// stand-in: mesh and layers of vertices.
struct SolverPattern {
    name: &'static str,
    density: f64,
    bytes: f64,
    paper: [f64; 4],
    mesh: &'static str,
    layers: u32,
}

const fn pattern(
    name: &'static str,
    (density, bytes): (f64, f64),
    paper: [f64; 4],
    (mesh, layers): (&'static str, u32),
) -> SolverPattern {
    SolverPattern { name, density, bytes, paper, mesh, layers }
}

const PATTERNS: [SolverPattern; 5] = [
    pattern("CG 16K", (9.0, 643.0), [8.046, 6.623, 7.188, 5.799], ("plate:32x512", 1)),
    pattern("Euler 545", (37.0, 85.0), [25.87, 7.374, 7.386, 5.656], ("tets:6x6x10", 2)),
    pattern("Euler 2K", (44.0, 226.0), [48.88, 15.04, 15.07, 12.30], ("tets:11x11x14", 3)),
    pattern("Euler 3K", (29.0, 612.0), [50.78, 19.98, 17.57, 14.34], ("tets:12x15x15", 1)),
    pattern("Euler 9K", (44.0, 505.0), [77.13, 21.91, 20.19, 17.01], ("tets:16x20x26", 5)),
];

/// The stand-ins beside the paper's patterns, and their times by the paper's algorithms and by ours.
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn table_5() -> Result<[PaperTable; 2], CompileError> {
    let machine = machine(32)?;
    let columns = ["pattern", "vertices", "density, %", "mean bytes"];
    let title = "stand-ins for the patterns of solvers on 32 processors";
    let mut stand_ins = PaperTable::new((Exhibit::Table, 5), title, &columns);
    let columns =
        ["pattern", "linear", "pairwise", "balanced", "greedy", "loaded", "loaded over bound"];
    let title = "solvers on 32 processors with stand-ins for their patterns, ms (ranks only)";
    let mut times = PaperTable::new((Exhibit::Table, 5), title, &columns);
    let (mut fastest, mut slowest, mut same) = (0, 0, 0);
    for row in &PATTERNS {
        let (set, vertices) = stand_in(&machine, row)?;
        let set = Arc::new(set);
        let pairs = to_f64(machine.agent_count() * (machine.agent_count() - 1));
        let density = 100.0 * to_f64(set.len()) / pairs;
        let word_bytes = f64::from(machine.parameters().word_bytes);
        let bytes = word_bytes * to_f64(set.words()) / to_f64(set.len().max(1));
        stand_ins.push(
            format!("{}: {}, layers: {}", row.name, row.mesh, row.layers),
            vec![
                Beside::new(to_f64(vertices), None),
                Beside::new(density, Some(row.density)),
                Beside::new(bytes, Some(row.bytes)),
            ],
        );
        let orders: Vec<StepOrder> = IRREGULAR.into_iter().chain([StepOrder::Loaded]).collect();
        let time = |order: &StepOrder| -> Result<f64, CompileError> {
            let clocks = measured(&machine, &set, &Levels::direct(&machine, *order))?;
            Ok(milliseconds(machine.parameters(), clocks))
        };
        let ours = parallel::try_map(&orders, time)?;
        let bound = least_clocks_direct(&machine, &set, machine.parameters().protocol);
        let over_bound = ours[IRREGULAR.len()] / milliseconds(machine.parameters(), bound.max(1));
        let papers = row.paper.iter().map(|&time| Some(time)).chain([None]);
        let mut cells: Vec<Beside> =
            ours.iter().zip(papers).map(|(&ours, paper)| Beside::new(ours, paper)).collect();
        cells.push(Beside::new(over_bound, None));
        times.push(row.name, cells);
        let [ours, paper] = [&ours[..IRREGULAR.len()], &row.paper].map(ranks);
        fastest += usize::from(ours[0] == paper[0]);
        slowest += usize::from(ours[3] == paper[3]);
        same += usize::from(ours == paper);
        times.notes.push(format!(
            "{}: fastest to slowest {}; the paper's {}.",
            row.name,
            names(&ours),
            if ours == paper { "the same".to_owned() } else { names(&paper) }
        ));
    }
    times.notes.push(format!(
        "The fastest is the paper's in {fastest} of {0}, the slowest in {slowest}, all ranks in {same}.",
        PATTERNS.len()
    ));
    stand_ins.notes.push(
        "The paper's patterns are not available: these are halos of generated meshes, and the layers \
         are chosen for the density."
            .to_owned(),
    );
    Ok([stand_ins, times])
}

/// The algorithms from the fastest to the slowest.
fn ranks(times: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
    order
}

fn names(order: &[usize]) -> String {
    let names: Vec<&str> = order.iter().map(|&at| IRREGULAR[at].name()).collect();
    names.join(", ")
}

/// The halo of a mesh with the paper's mean words, and the number of vertices.
fn stand_in(
    machine: &Arc<Machine>,
    row: &SolverPattern,
) -> Result<(ConnectionSet, usize), CompileError> {
    let mesh = generate::by_name(row.mesh, SEED)?;
    let vertices = mesh.node_count();
    // One partition, as of a solver that takes what its partitioner gives.
    let options = LoadOptions::default().seed(SEED).max_partitions(1);
    let options = options.halo(HaloKind::Rows).layers(row.layers);
    let source = Source::Mesh(mesh);
    let loaded = from_source(row.mesh, source.into(), machine, &options, &mut |_| ())?;
    let halo = loaded.program.sets().first().ok_or_else(|| planner_bug(&"a mesh has a halo"))?;
    let mean = to_f64(halo.words()) / to_f64(halo.len().max(1));
    let scale = row.bytes / f64::from(machine.parameters().word_bytes) / mean;
    let scaled = halo.connections().iter().map(|connection| {
        let words = truncate((f64::from(connection.words) * scale).round().max(1.0));
        Connection::new(connection.source, connection.target, to_u32(words))
    });
    let set = ConnectionSet::new("solver", scaled.collect()).map_err(|e| planner_bug(&e))?;
    Ok((set, vertices))
}
