//! Tables 4 to 6 and Figure 5: the halo exchange of partitioned finite element meshes.
//!
//! The meshes are *c10k* exactly (the crack graph of Walshaw's archive has its nodes and
//! triangles), three generated meshes with the paper's numbers of nodes and elements, and, without a
//! counterpart in the paper, the Spark98 mesh sf10 in its own decomposition. Our meshes are
//! partitioned by METIS, the paper's by a geometric separator code, so words, degrees and phases
//! differ; the numbers are not corrected for that.
//!
//! * *ConSet, predicted* (section 5.2): phases x 520 + 10 clocks for each word that the busiest
//!   cell of a phase sends and receives, phase by phase, with our own phases.
//! * *ConSet, measured*: on the fabric, preset `iwarp-fem`.
//! * *words per cell*: the paper counts one direction, so its numbers are compared with the words that
//!   a cell sends. (Its own prediction for m11k contains (4786 - 2 x 520) / 10 = 374 words of the
//!   slowest cells of 2 phases; if 133 were the words in both directions there could be no more than
//!   266.)
//! * *computation* is an **estimate**, not a measurement: 2 flops for each nonzero of a cell's matrix
//!   (one row per node of the cell, one column per node that shares an element), for the busiest
//!   cell at the rate that the paper measured for that mesh. Other computation is not included.

use std::sync::Arc;

use conset_fabric::messages::{self, MessageOrder};
use conset_ir::convert::{index, to_f64, to_u64, truncate};
use conset_ir::{ConnectionSet, Machine, Routing};
use conset_mesh::read::{self, Format};
use conset_mesh::{Mesh, Source, generate, triangles};
use conset_partition_route::placement::Method;
use serde::Serialize;

use super::paper::{self, PREDICTED_SWITCH};
use super::{Bandwidths, Compared, SEED, by_messages, compiled, error_percent, measured};
use crate::input::{LoadOptions, PlacedHalo, from_source};
use crate::{CompileError, Observer};

/// A mesh of Tables 4 to 6 and its origin.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MeshOrigin {
    /// The row's name.
    pub name: &'static str,
    /// The file, below the folder of real meshes; `None` if the mesh is generated.
    pub file: Option<&'static str>,
    /// A description in one line.
    pub what: &'static str,
}

/// The rows of Tables 4 to 6: the four meshes of the paper, and one more.
pub const ORIGINS: [MeshOrigin; 5] = [
    MeshOrigin { name: "m11k", file: None, what: "generated: random nodes in a plate" },
    MeshOrigin {
        name: "c10k",
        file: Some("walshaw/crack.graph"),
        what: "the paper's own mesh: the triangles of Walshaw's crack graph",
    },
    MeshOrigin { name: "c100k", file: None, what: "generated: a cracked plate" },
    MeshOrigin { name: "q20k", file: None, what: "generated: bricks, a valley" },
    MeshOrigin {
        name: "sf10",
        file: Some("spark98/sf10.64.pack"),
        what: "Spark98's San Fernando mesh in its own 64 parts",
    },
];

/// The least and the greatest value over all cells, beside the paper's.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Range {
    /// Our least and greatest value.
    pub ours: [u64; 2],
    /// The paper's least and greatest value.
    pub paper: Option<[u64; 2]>,
}

/// The structure of a partitioned mesh: a column of Table 4.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Structure {
    /// Elements.
    pub elements: Compared,
    /// Nodes.
    pub nodes: Compared,
    /// Elements per cell.
    pub elements_per_cell: Range,
    /// Words that a cell sends.
    pub words_per_cell: Range,
    /// Words that a cell sends and receives; not in the paper.
    pub words_both_ways_per_cell: [u64; 2],
    /// Greatest number of connections that leave a cell.
    pub degree: Compared,
    /// Logical channels per cell.
    pub channels: u32,
    /// Phases.
    pub phases: Compared,
}

/// The local product of matrix and vector: a column of Table 5. An estimate.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Computation {
    /// Flops of all cells, 2 for each nonzero.
    pub flops: u64,
    /// Flops of the busiest cell.
    pub busiest_cell_flops: u64,
    /// Flops that follow from the paper's MFLOPS and clocks.
    pub paper_flops: Option<u64>,
    /// Clocks of the busiest cell at the rate that the paper measured for the mesh.
    pub estimated_clocks: Option<Compared>,
}

/// A bin of Figure 5: connections of `from..=to` words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistogramBin {
    /// Least words.
    pub from: u64,
    /// Most words.
    pub to: u64,
    /// Connections.
    pub connections: u64,
}

/// A mesh's column in Tables 4 to 6 and its part of Figures 5 and 6.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MeshRow {
    /// The mesh.
    pub mesh: &'static str,
    /// Its description.
    pub what: &'static str,
    /// Table 4.
    pub structure: Structure,
    /// Table 5, left half.
    pub computation: Computation,
    /// Table 6: ConSet by the paper's cost model.
    pub conset_predicted: Compared,
    /// ConSet by our cost model; not in the paper.
    pub conset_modelled: u64,
    /// Table 6: ConSet on the fabric.
    pub conset_measured: Compared,
    /// Table 6: message passing by the paper's cost model.
    pub message_predicted: Compared,
    /// Table 6: message passing on the fabric.
    pub message_measured: Compared,
    /// Figure 6 and Table 5, by the paper's formula: cells x most words that a cell sends x 4
    /// bytes / time.
    pub bandwidth: Bandwidths,
    /// The same from the paper's clocks and words.
    pub paper_bandwidth: Option<Bandwidths>,
    /// Figure 5.
    pub histogram: Vec<HistogramBin>,
    /// Whether every word arrived once, in order, at the right cell, in all runs of the row.
    pub payload_ok: bool,
}

/// Computes a row. `file` is the name and bytes of [`MeshOrigin::file`], where it has one.
///
/// # Errors
/// A missing or invalid file.
pub fn row(
    origin: &MeshOrigin,
    file: Option<(&str, &[u8])>,
    observer: &mut Observer<'_>,
) -> Result<MeshRow, CompileError> {
    let machine = Arc::new(Machine::from_spec("iwarp-fem").map_err(conset_ir::InputError::from)?);
    let source = source(origin, file)?;
    let mesh = match &source {
        Source::Mesh(mesh) => mesh.clone(),
        Source::Decomposition(decomposition) => decomposition.mesh().clone(),
        _ => return Err(bug("a mesh was expected")),
    };
    // The mapping is an input of the paper's compiler. Ours can place parts for fewer phases, so the
    // paper's algorithm is measured with a placement that does not consider phases.
    let placement = Method::Bisect;
    // The partition is not searched for either, so that the tables compare with earlier ones.
    let options = LoadOptions::default().seed(SEED).placement(placement).max_partitions(1);
    let loaded = from_source(origin.name, source.into(), &machine, &options, observer)?;
    let placed = loaded.halo.ok_or_else(|| bug("a mesh has a halo"))?;
    let set = &loaded.program.sets()[0];
    let program = compiled(&machine, &loaded.program, observer)?;
    let conset = measured(&program, observer)?;
    let (messages, messages_ok) = by_messages(&machine, set, MessageOrder::Given)?;

    let paper = paper::MESHES.iter().find(|mesh| mesh.name == origin.name);
    let structure = structure(&mesh, &placed, set, &machine, conset.phases, paper);
    let predicted = predicted(program.schedule().sets()[0].timetable.routing());
    let message_predicted = messages::predict(&machine, set);
    let speed = |words: u64, clocks| {
        let all = words * to_u64(machine.endpoints().count());
        crate::report::megabytes_per_second(all, clocks, machine.parameters())
    };
    let most = structure.words_per_cell.ours[1];
    Ok(MeshRow {
        mesh: origin.name,
        what: origin.what,
        computation: computation(&mesh, &placed, &machine, paper),
        conset_predicted: Compared::new(predicted, paper.map(|p| p.conset_predicted)),
        conset_modelled: conset.modelled,
        conset_measured: Compared::new(conset.clocks, paper.map(|p| p.conset_measured)),
        message_predicted: Compared::new(message_predicted, paper.map(|p| p.message_predicted)),
        message_measured: Compared::new(messages, paper.map(|p| p.message_measured)),
        bandwidth: Bandwidths {
            conset_predicted: speed(most, predicted),
            conset_measured: speed(most, conset.clocks),
            message_predicted: speed(most, message_predicted),
            message_measured: speed(most, messages),
        },
        paper_bandwidth: paper.map(|p| Bandwidths {
            conset_predicted: speed(p.words_per_cell[1], p.conset_predicted),
            conset_measured: speed(p.words_per_cell[1], p.conset_measured),
            message_predicted: speed(p.words_per_cell[1], p.message_predicted),
            message_measured: speed(p.words_per_cell[1], p.message_measured),
        }),
        histogram: histogram(set),
        payload_ok: conset.payload_ok && messages_ok,
        structure,
    })
}

fn source(origin: &MeshOrigin, file: Option<(&str, &[u8])>) -> Result<Source, CompileError> {
    let Some((name, bytes)) = file else {
        return match origin.file {
            None => Ok(Source::Mesh(generate::by_name(origin.name, SEED)?)),
            Some(_) => Err(bug("the row's file was not given")),
        };
    };
    let format = Format::from_file_name(name).ok_or_else(|| bug("the file has no known format"))?;
    match read::read(format, name, bytes)? {
        Source::Graph(graph) => {
            Ok(Source::Mesh(triangles::from_graph(&graph).map_err(|e| e.in_file(name))?))
        }
        other => Ok(other),
    }
}

fn structure(
    mesh: &Mesh,
    placed: &PlacedHalo,
    set: &ConnectionSet,
    machine: &Machine,
    phases: u64,
    paper: Option<&paper::PaperMesh>,
) -> Structure {
    let summary = &placed.halo.summary;
    let mut both_ways = vec![0u64; machine.cell_count()];
    for connection in set.connections() {
        both_ways[connection.source.index()] += u64::from(connection.words);
        both_ways[connection.target.index()] += u64::from(connection.words);
    }
    let of_parts = placed.place.iter().map(|cell| both_ways[cell.index()]);
    let words = [of_parts.clone().min().unwrap_or(0), of_parts.max().unwrap_or(0)];
    Structure {
        elements: Compared::new(to_u64(mesh.element_count()), paper.map(|p| p.elements)),
        nodes: Compared::new(to_u64(mesh.node_count()), paper.map(|p| p.nodes)),
        elements_per_cell: Range {
            ours: [summary.items.min, summary.items.max],
            paper: paper.map(|p| p.elements_per_cell),
        },
        words_per_cell: Range {
            ours: [summary.words_sent.min, summary.words_sent.max],
            paper: paper.map(|p| p.words_per_cell),
        },
        words_both_ways_per_cell: words,
        degree: Compared::new(to_u64(summary.degree), paper.map(|p| p.degree)),
        channels: machine.parameters().channels_per_cell,
        phases: Compared::new(phases, paper.map(|p| p.phases)),
    }
}

/// The paper's cost model with our phases; see the module text.
fn predicted(routing: &Routing) -> u64 {
    let machine = routing.machine();
    let access = u64::from(machine.parameters().access_clocks_per_word);
    let mut words = vec![0u64; machine.cell_count()];
    let phases = routing.phases().iter().map(|phase| {
        words.fill(0);
        for route in phase.iter() {
            let connection = routing.set().get(route.connection);
            words[connection.source.index()] += u64::from(route.words);
            words[connection.target.index()] += u64::from(route.words);
        }
        PREDICTED_SWITCH + access * words.iter().copied().max().unwrap_or(0)
    });
    phases.sum()
}

fn computation(
    mesh: &Mesh,
    placed: &PlacedHalo,
    machine: &Machine,
    paper: Option<&paper::PaperMesh>,
) -> Computation {
    let parts = &placed.halo.parts;
    let flops = (0..parts.len()).map(|part| {
        let nodes = to_u64(parts.nodes_of(part).len());
        2 * (nodes + 2 * pairs_of_nodes(mesh, parts.items_of(part)))
    });
    let busiest = flops.clone().max().unwrap_or(0);
    let hertz = f64::from(machine.parameters().clock_hz);
    let cells = to_f64(machine.endpoints().count());
    let estimate = |p: &paper::PaperMesh| {
        let flops_per_clock = p.compute_mflops * 1e6 / hertz / cells;
        let clocks = truncate((to_f64(busiest) / flops_per_clock).round());
        Compared::new(clocks, Some(p.compute_clocks))
    };
    let of_paper = |p: &paper::PaperMesh| p.compute_mflops * 1e6 * to_f64(p.compute_clocks) / hertz;
    Computation {
        flops: flops.sum(),
        busiest_cell_flops: busiest,
        paper_flops: paper.map(|p| truncate(of_paper(p).round())),
        estimated_clocks: paper.map(estimate),
    }
}

/// Pairs of different nodes that share one of the elements.
fn pairs_of_nodes(mesh: &Mesh, elements: &[u32]) -> u64 {
    let mut pairs = Vec::new();
    for &element in elements {
        let nodes = mesh.element(index(element));
        for (at, &a) in nodes.iter().enumerate() {
            pairs.extend(nodes[at + 1..].iter().map(|&b| (a.min(b), a.max(b))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    to_u64(pairs.len())
}

/// Connections by words, in bins that double: 1, 2 to 3, 4 to 7, ... up to the longest.
fn histogram(set: &ConnectionSet) -> Vec<HistogramBin> {
    let mut bars: Vec<HistogramBin> = Vec::new();
    for connection in set.connections() {
        let at = index(connection.words.ilog2());
        while bars.len() <= at {
            let from = 1u64 << bars.len();
            bars.push(HistogramBin { from, to: 2 * from - 1, connections: 0 });
        }
        bars[at].connections += 1;
    }
    bars
}

/// The difference of our most words per cell to the paper's, in percent of the paper's.
pub fn words_error_percent(structure: &Structure) -> Option<f64> {
    let paper = structure.words_per_cell.paper?;
    Some(error_percent(to_f64(structure.words_per_cell.ours[1]), to_f64(paper[1])))
}

fn bug(message: &str) -> CompileError {
    CompileError::Bug { stage: "reproduce", message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use conset_ir::{CellId, Connection};

    use super::*;

    #[test]
    fn bars_double_and_count_every_connection() {
        let words = [1, 2, 3, 4, 133];
        let connections = words.iter().map(|&w| Connection::new(CellId(0), CellId(1), w)).collect();
        let bars = histogram(&ConnectionSet::new("s", connections).unwrap());
        assert_eq!(
            bars.iter().map(|b| b.connections).collect::<Vec<_>>(),
            [1, 2, 1, 0, 0, 0, 0, 1]
        );
        assert_eq!((bars[7].from, bars[7].to), (128, 255));
    }

    #[test]
    fn two_triangles_have_five_edges() {
        let mesh = generate::by_name("plate:1x1", 1).unwrap();
        assert_eq!(pairs_of_nodes(&mesh, &[0, 1]), 5);
        assert_eq!(pairs_of_nodes(&mesh, &[1]), 3);
    }
}
