//! Tables 4 to 6 and Figure 5: the halo exchange of partitioned finite element meshes.
//!
//! The meshes are *c10k* exactly (the crack graph of Walshaw's archive has its nodes and
//! triangles), three generated ones with the paper's numbers of nodes and elements, and, as a row
//! without a counterpart, the Spark98 mesh sf10 as the paper's colleagues decomposed it. Ours are
//! divided by METIS, the paper's by a geometric separator code, so words, degrees and phases are
//! another partitioner's; nothing here corrects for that.
//!
//! * *ConSet, predicted* (section 5.2): phases x 520 + 10 clocks for each word that the busiest
//!   cell of a phase sends and receives, phase by phase, with our own phases.
//! * *ConSet, measured*: on the fabric, preset `iwarp-fem`.
//! * *words per cell*: the paper's pair counts one direction, so it stands beside the words that a
//!   cell of ours sends. (Its own prediction for m11k contains (4786 - 2 x 520) / 10 = 374 words
//!   of the slowest cells of 2 phases; if 133 were the most words both ways there could be no
//!   more than 266.)
//! * *computation* is an **estimate**, not a measurement: 2 flops for each nonzero of a cell's
//!   own matrix (one row per node that it holds, one column per node that shares an element),
//!   the busiest cell's number at the rate that the paper measured for that mesh. What the paper
//!   did beside the product is not in it.

use std::sync::Arc;

use conset_fabric::messages::{self, MessageOrder};
use conset_ir::{ConnectionSet, Machine, Routing};
use conset_mesh::read::{self, Format};
use conset_mesh::{Mesh, Source, generate, triangles};
use serde::Serialize;

use super::paper::{self, PREDICTED_SWITCH};
use super::{Bandwidths, Compared, SEED, by_messages, compiled, error_percent, measured};
use crate::input::{LoadOptions, PlacedHalo, from_source};
use crate::{CompileError, Observer};
use conset_partition_route::placement::Method;

/// A mesh of Tables 4 to 6 and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The row's name.
    pub name: &'static str,
    /// The file, below the folder of real meshes; `None` if the mesh is generated.
    pub file: Option<&'static str>,
    /// What it is, in one line.
    pub what: &'static str,
}

/// The rows of Tables 4 to 6: the paper's four, and one more.
pub const ORIGINS: [Origin; 5] = [
    Origin { name: "m11k", file: None, what: "generated: random nodes in a plate" },
    Origin {
        name: "c10k",
        file: Some("walshaw/crack.graph"),
        what: "the paper's own mesh: the triangles of Walshaw's crack graph",
    },
    Origin { name: "c100k", file: None, what: "generated: a cracked plate" },
    Origin { name: "q20k", file: None, what: "generated: bricks, a valley" },
    Origin {
        name: "sf10",
        file: Some("spark98/sf10.64.pack"),
        what: "Spark98's San Fernando mesh in its own 64 parts",
    },
];

/// A pair, least and most over cells, beside the paper's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Range {
    /// Least and most of ours.
    pub ours: [u64; 2],
    /// Least and most of the paper's.
    pub paper: Option<[u64; 2]>,
}

/// The structure of a partitioned mesh: a column of Table 4.
#[derive(Clone, Debug, Serialize)]
pub struct Structure {
    /// Elements.
    pub elements: Compared,
    /// Nodes.
    pub nodes: Compared,
    /// Elements per cell.
    pub elements_per_cell: Range,
    /// Words that a cell sends.
    pub words_per_cell: Range,
    /// Words that a cell sends and receives; the paper does not say.
    pub words_both_ways_per_cell: [u64; 2],
    /// The most connections that leave a cell.
    pub degree: Compared,
    /// Logical channels per cell.
    pub channels: u32,
    /// Phases.
    pub phases: Compared,
}

/// The local product of matrix and vector: a column of Table 5. An estimate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Computation {
    /// Flops of all cells, 2 for each nonzero.
    pub flops: u64,
    /// Flops of the busiest cell.
    pub busiest_cell_flops: u64,
    /// Flops that the paper's MFLOPS and clocks amount to.
    pub paper_flops: Option<u64>,
    /// Clocks of the busiest cell at the rate that the paper measured for the mesh.
    pub estimated_clocks: Option<Compared>,
}

/// A bar of Figure 5: connections that carry `from..=to` words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Least words.
    pub from: u64,
    /// Most words.
    pub to: u64,
    /// Connections.
    pub connections: u64,
}

/// A mesh's column in Tables 4 to 6 and its part of Figures 5 and 6.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The mesh.
    pub mesh: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Table 4.
    pub structure: Structure,
    /// Table 5, left half.
    pub computation: Computation,
    /// Table 6: ConSet by the paper's cost model.
    pub conset_predicted: Compared,
    /// ConSet by our cost model; the paper has none.
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
    /// The paper's clocks and words by the same formula.
    pub paper_bandwidth: Option<Bandwidths>,
    /// Figure 5.
    pub histogram: Vec<Bar>,
    /// Whether every word arrived once, in order, at the right cell, in all runs of the row.
    pub payload_ok: bool,
}

/// Computes a row. `file` is the name and bytes of [`Origin::file`], where it has one.
///
/// # Errors
/// A file that cannot be read as what it should be, or that is missing.
pub fn row(
    origin: &Origin,
    file: Option<(&str, &[u8])>,
    observer: &mut Observer<'_>,
) -> Result<Row, CompileError> {
    let machine = Arc::new(Machine::from_spec("iwarp-fem").map_err(conset_ir::InputError::from)?);
    let source = source(origin, file)?;
    let mesh = match &source {
        Source::Mesh(mesh) => mesh.clone(),
        Source::Decomposition(decomposition) => decomposition.mesh().clone(),
        _ => return Err(bug("a mesh was expected")),
    };
    // The paper's compiler takes the mapping as given. Placing for fewer phases is part of ours, so
    // the paper's side is measured on a mapping that knows nothing of phases.
    let placement = Method::Bisect;
    let options = LoadOptions { seed: SEED, placement, ..LoadOptions::default() };
    let loaded = from_source(origin.name, source, &machine, &options, observer)?;
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
        let all = words * machine.endpoints().count() as u64;
        crate::run::megabytes_per_second(all, clocks, machine.parameters())
    };
    let most = structure.words_per_cell.ours[1];
    Ok(Row {
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

fn source(origin: &Origin, file: Option<(&str, &[u8])>) -> Result<Source, CompileError> {
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
    paper: Option<&paper::Mesh>,
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
        elements: Compared::new(mesh.element_count() as u64, paper.map(|p| p.elements)),
        nodes: Compared::new(mesh.node_count() as u64, paper.map(|p| p.nodes)),
        elements_per_cell: Range {
            ours: [summary.items.min, summary.items.max],
            paper: paper.map(|p| p.elements_per_cell),
        },
        words_per_cell: Range {
            ours: [summary.words_sent.min, summary.words_sent.max],
            paper: paper.map(|p| p.words_per_cell),
        },
        words_both_ways_per_cell: words,
        degree: Compared::new(summary.degree as u64, paper.map(|p| p.degree)),
        channels: machine.parameters().channels_per_cell,
        phases: Compared::new(phases, paper.map(|p| p.phases)),
    }
}

/// The paper's cost model with our phases: see the module.
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
    paper: Option<&paper::Mesh>,
) -> Computation {
    let parts = &placed.halo.parts;
    let flops = (0..parts.len()).map(|part| {
        let nodes = parts.nodes_of(part).len() as u64;
        2 * (nodes + 2 * pairs_of_nodes(mesh, parts.items_of(part)))
    });
    let busiest = flops.clone().max().unwrap_or(0);
    let hertz = f64::from(machine.parameters().clock_hz);
    let cells = machine.endpoints().count() as f64;
    let estimate = |p: &paper::Mesh| {
        let flops_per_clock = p.compute_mflops * 1e6 / hertz / cells;
        let clocks = (busiest as f64 / flops_per_clock).round() as u64;
        Compared::new(clocks, Some(p.compute_clocks))
    };
    let of_paper = |p: &paper::Mesh| p.compute_mflops * 1e6 * p.compute_clocks as f64 / hertz;
    Computation {
        flops: flops.sum(),
        busiest_cell_flops: busiest,
        paper_flops: paper.map(|p| of_paper(p).round() as u64),
        estimated_clocks: paper.map(estimate),
    }
}

/// Pairs of different nodes that share one of the elements.
fn pairs_of_nodes(mesh: &Mesh, elements: &[u32]) -> u64 {
    let mut pairs = Vec::new();
    for &element in elements {
        let nodes = mesh.element(element as usize);
        for (at, &a) in nodes.iter().enumerate() {
            pairs.extend(nodes[at + 1..].iter().map(|&b| (a.min(b), a.max(b))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len() as u64
}

/// Connections by words, in bars that double: 1, 2 to 3, 4 to 7, ... up to the longest.
fn histogram(set: &ConnectionSet) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for connection in set.connections() {
        let at = connection.words.ilog2() as usize;
        while bars.len() <= at {
            let from = 1u64 << bars.len();
            bars.push(Bar { from, to: 2 * from - 1, connections: 0 });
        }
        bars[at].connections += 1;
    }
    bars
}

/// How far our most words per cell are from the paper's, in percent.
pub fn words_error_percent(structure: &Structure) -> Option<f64> {
    let paper = structure.words_per_cell.paper?;
    Some(error_percent(structure.words_per_cell.ours[1] as f64, paper[1] as f64))
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
