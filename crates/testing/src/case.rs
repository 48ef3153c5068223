//! Generator of random cases: small, valid, and including the limits of valid values.
//!
//! Half or full duplex; any topology, with dead cells and links; connections of a cell to itself;
//! equal and unequal numbers of words, up to the limit of 2^30; several sets; orders; required bandwidths
//! and latencies; lists of nodes; minimum and maximum values of the machine's parameters; both algorithms and
//! both objectives.
//!
//! An exchange takes less than 2^60 clocks: slow machines do not get very large numbers of words.

use std::fmt;
use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use conset::ir::convert::to_u32;
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Document, Duplex, Machine, NodeLists,
    Parameters, Program, Protocol, Topology, limits, text,
};
use conset::{Algorithm, CompileOptions, Objective};

use crate::structured;

/// A machine, a program for it, and compiler options.
#[derive(Clone)]
pub struct Case {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The program, with sets `s0`, `s1`, ...
    pub program: Program,
    /// The compiler options.
    pub options: CompileOptions,
}

/// The kind of cases to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKind {
    /// All cases.
    Any,
    /// Half-duplex machines and sets with unequal numbers of words and connections of cells to
    /// themselves, compiled by the default algorithm.
    HalfDuplexToItself,
    /// All cases, and beyond them larger machines, fat-trees with any parents, graphs with switches,
    /// every parameter of messages, patterns, and halos of partitioned meshes. All but one in 32 are tiny
    /// ([`CaseKind::Tiny`]): most errors need few connections, and the others, which take forty times as long,
    /// still take half of the time.
    Soak,
    /// At most 9 cells, a set with at most 6 connections of few words, and few plans, with every parameter of
    /// [`CaseKind::Soak`].
    Tiny,
}

impl CaseKind {
    /// Whether every parameter of messages is drawn.
    fn has_messages(self) -> bool {
        matches!(self, CaseKind::Soak | CaseKind::Tiny)
    }
}

/// One search in `WHOLE_SEARCHES` is not limited; of large programs, one in the square of their connections
/// divided by 16, because a whole search of a large program takes as long as thousands of others.
const WHOLE_SEARCHES: usize = 256;

/// Connections times plans of a search that is limited, about; one plan at least, and eight at most.
const PLANNED_CONNECTIONS: usize = 400;

/// Number of random bytes for the case of a seed.
const SEED_BYTES: usize = 1 << 14;

impl Case {
    /// The case of a seed. The same seed gives the same case.
    ///
    /// # Panics
    /// Never: the bytes suffice for any case.
    pub fn of_seed(seed: u64, kind: CaseKind) -> Self {
        let mut state = seed;
        let bytes: Vec<u8> =
            (0..SEED_BYTES / 8).flat_map(|_| next(&mut state).to_le_bytes()).collect();
        Self::from_bytes(&mut Unstructured::new(&bytes), kind).expect("bytes do not run out")
    }

    /// Generates a case from bytes.
    ///
    /// # Errors
    /// There are too few bytes.
    pub fn from_bytes(u: &mut Unstructured<'_>, kind: CaseKind) -> Result<Self> {
        let kind = match kind {
            CaseKind::Soak if u.ratio(31, 32)? => CaseKind::Tiny,
            kind => kind,
        };
        let machine = Arc::new(machine(u, kind)?);
        let sets = match kind {
            CaseKind::Any | CaseKind::Soak => *u.choose(&[1, 1, 1, 2, 3])?,
            CaseKind::Tiny => *u.choose(&[1, 1, 1, 2])?,
            CaseKind::HalfDuplexToItself => 1,
        };
        let sets = (0..sets).map(|row| {
            let given = match kind {
                CaseKind::Soak if u.ratio(1, 4)? => structured::set(u, &machine, row)?,
                _ => None,
            };
            given.map_or_else(|| set(u, &machine, row, kind), Ok).map(Arc::new)
        });
        let program = Program::new(sets.collect::<Result<_>>()?).expect("names differ");
        let options = CompileOptions::new()
            .algorithm(match kind {
                CaseKind::HalfDuplexToItself => Algorithm::Auto,
                _ if u.ratio(1, 8)? => Algorithm::Paper,
                _ => Algorithm::Auto,
            })
            .objective(*u.choose(&[Objective::Time, Objective::Time, Objective::Phases])?)
            .seed(u.int_in_range(0..=3)?)
            .max_phases(if u.ratio(1, 16)? { Some(u.int_in_range(1..=6)?) } else { None })
            .max_plans(if u.ratio(1, 16)? { Some(u.int_in_range(1..=12)?) } else { None });
        // Several plans suffice for most.
        let connections: usize = program.sets().iter().map(|set| set.len()).sum();
        let whole_searches = WHOLE_SEARCHES.max(connections * connections / 16);
        let whole_searches = to_u32(whole_searches);
        let options = match kind {
            CaseKind::Soak if !u.ratio(1, whole_searches)? => {
                // Large sets get few, as each takes long.
                let most = PLANNED_CONNECTIONS / connections.max(1);
                options.max_plans(u.int_in_range(1..=to_u32(most.clamp(1, 8)))?)
            }
            CaseKind::Tiny => options.max_plans(u.int_in_range(1..=3)?),
            _ => options,
        };
        Ok(Self { machine, program, options })
    }
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Self::from_bytes(u, CaseKind::Any)
    }
}

/// The options, and the program with its machine as a `.cset` file.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (machine, program) = (Some(self.machine.clone()), self.program.clone());
        writeln!(f, "{:?}", self.options)?;
        f.write_str(&text::write(&Document::Program { machine, program }))
    }
}

/// The next random number of a SplitMix64 generator.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn dims(u: &mut Unstructured<'_>, kind: CaseKind) -> Result<Vec<u32>> {
    let (dimensions, side) = if kind == CaseKind::Tiny { (2, 3) } else { (3, 4) };
    (0..u.int_in_range(1..=dimensions)?).map(|_| u.int_in_range(1..=side)).collect()
}

fn topology(u: &mut Unstructured<'_>, kind: CaseKind) -> Result<Topology> {
    if kind == CaseKind::Soak && u.ratio(1, 3)? {
        return structured::topology(u);
    }
    let tiny = kind == CaseKind::Tiny;
    Ok(match u.int_in_range(0..=6)? {
        0 => Topology::Torus { dims: dims(u, kind)? },
        1 => Topology::Mesh { dims: dims(u, kind)? },
        2 => Topology::Ring { cells: u.int_in_range(1..=9)? },
        3 => Topology::Hypercube { dimension: u.int_in_range(0..=if tiny { 3 } else { 4 })? },
        4 => Topology::fat_tree(u.int_in_range(1..=if tiny { 8 } else { 16 })?),
        5 => Topology::Cluster {
            nodes: u.int_in_range(1..=if tiny { 2 } else { 4 })?,
            cells_per_node: u.int_in_range(1..=4)?,
        },
        _ => {
            let cells = u.int_in_range(1..=8u32)?;
            let ends = 0..=cells - 1;
            let link = |u: &mut Unstructured<'_>| -> Result<(u32, u32)> {
                Ok((u.int_in_range(ends.clone())?, u.int_in_range(ends.clone())?))
            };
            let links =
                (0..u.int_in_range(0..=24)?).map(|_| link(u)).collect::<Result<Vec<_>>>()?;
            let links = links.into_iter().filter(|(from, to)| from != to).collect();
            Topology::Graph { cells, switches: 0, links }
        }
    })
}

/// Usually a value from `least` to `usual`, sometimes `least` or `most`.
fn number(u: &mut Unstructured<'_>, least: u32, usual: u32, most: u32) -> Result<u32> {
    Ok(match u.int_in_range(0..=31)? {
        0 => most,
        1..=4 => least,
        _ => u.int_in_range(least..=usual)?,
    })
}

fn parameters(u: &mut Unstructured<'_>, kind: CaseKind) -> Result<Parameters> {
    let iwarp = Parameters::iwarp();
    let half = kind == CaseKind::HalfDuplexToItself || u.arbitrary()?;
    let connections = Parameters {
        duplex: if half { Duplex::Half } else { Duplex::Full },
        channels_per_cell: number(u, 1, 13, limits::CHANNELS_PER_CELL)?,
        channel_depth: number(u, 1, 8, limits::CHANNEL_DEPTH)?,
        link_clocks_per_word: number(u, 1, 8, limits::CLOCKS)?,
        access_clocks_per_word: number(u, 1, 11, limits::CLOCKS)?,
        streams: number(u, 1, 3, limits::STREAMS)?,
        stream_setup: number(u, 0, 400, limits::CLOCKS)?,
        t_sync: number(u, 0, iwarp.t_sync, limits::CLOCKS)?,
        t_phase: number(u, 0, iwarp.t_phase, limits::CLOCKS)?,
        timed_starts: u32::from(u.ratio(1, 3)?),
        ..iwarp
    };
    if !kind.has_messages() {
        return Ok(connections);
    }
    Ok(Parameters {
        c_send: number(u, 0, 800, limits::CLOCKS)?,
        c_receive: number(u, 0, 800, limits::CLOCKS)?,
        message_extra_words: number(u, 0, 6, 1 << 12)?,
        protocol: *u.choose(&[Protocol::Standing, Protocol::Rendezvous])?,
        copy_clocks_per_word: number(u, 0, 12, limits::CLOCKS)?,
        ..connections
    })
}

fn machine(u: &mut Unstructured<'_>, kind: CaseKind) -> Result<Machine> {
    let (topology, parameters) = (topology(u, kind)?, parameters(u, kind)?);
    let build = |cells, links| {
        Machine::new("random", topology.clone(), parameters.clone(), cells, links)
            .expect("the machine is small and valid")
    };
    let whole = build(vec![], vec![]);
    let mut dead = (Vec::new(), Vec::new());
    let agents = to_u32(whole.agent_count());
    if agents > 1 && u.ratio(1, 6)? {
        dead.0.push(CellId(u.int_in_range(0..=agents - 1)?));
    }
    let links: Vec<_> = whole
        .cells()
        .flat_map(|cell| whole.outgoing(cell))
        .map(|&link| whole.link(link))
        .map(|link| (link.source, link.target))
        .collect();
    if !links.is_empty() && u.ratio(1, 6)? {
        for _ in 0..u.int_in_range(1..=2)? {
            dead.1.push(*u.choose(&links)?);
        }
    }
    Ok(build(dead.0, dead.1))
}

/// The distribution of the numbers of words of a set's connections.
#[derive(Clone, Copy)]
enum WordCounts {
    Equal(u32),
    UpTo(u32),
    /// Mostly small, some large.
    Mixed,
}

/// Machines below this number of clocks per word may get very large numbers of words.
const FAST_CLOCKS: u32 = 1 << 20;

fn words(u: &mut Unstructured<'_>, machine: &Machine, kind: CaseKind) -> Result<WordCounts> {
    let parameters = machine.parameters();
    if kind == CaseKind::Tiny {
        return Ok(match u.int_in_range(0..=3)? {
            0 => WordCounts::Equal(u.int_in_range(1..=40)?),
            1 => WordCounts::UpTo(200),
            _ => WordCounts::UpTo(24),
        });
    }
    let fast = parameters.access_clocks_per_word.max(parameters.link_clocks_per_word) < FAST_CLOCKS;
    Ok(match u.int_in_range(0..=15)? {
        0..=2 if kind != CaseKind::HalfDuplexToItself => {
            WordCounts::Equal(u.int_in_range(1..=300)?)
        }
        0..=4 => WordCounts::UpTo(4000),
        5..=6 => WordCounts::UpTo(1 << 16),
        7 if fast => WordCounts::UpTo(limits::WORDS),
        8..=10 => WordCounts::UpTo(24),
        _ => WordCounts::Mixed,
    })
}

fn set(
    u: &mut Unstructured<'_>,
    machine: &Machine,
    row: u32,
    kind: CaseKind,
) -> Result<ConnectionSet> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let counts = words(u, machine, kind)?;
    // The time of a search is proportional to the connections, and few are enough for conflicts.
    let count = match kind {
        CaseKind::Tiny => u.int_in_range(0..=6)?,
        _ if u.ratio(1, 8)? => u.int_in_range(2..=40)?,
        CaseKind::Soak if u.ratio(1, 8)? => u.int_in_range(20..=120)?,
        CaseKind::Any | CaseKind::Soak => u.int_in_range(0..=12)?,
        CaseKind::HalfDuplexToItself => u.int_in_range(2..=8)?,
    };
    let mut connections = Vec::new();
    for number in 0..count {
        let source = *u.choose(&cells)?;
        let always = kind == CaseKind::HalfDuplexToItself && number == 0;
        let to_itself = always || u.ratio(1, 6)?;
        let target = if to_itself { source } else { *u.choose(&cells)? };
        let words = match counts {
            WordCounts::Equal(words) => words,
            WordCounts::UpTo(most) => u.int_in_range(1..=most)?,
            WordCounts::Mixed if u.ratio(1, 6)? => u.int_in_range(1..=2000)?,
            WordCounts::Mixed => u.int_in_range(1..=24)?,
        };
        connections.push(Connection::new(source, target, words));
    }
    let mut order = Vec::new();
    if connections.len() > 1 && kind != CaseKind::HalfDuplexToItself && u.ratio(1, 3)? {
        let last = to_u32(connections.len()) - 1;
        for _ in 0..u.int_in_range(1..=5)? {
            let before = u.int_in_range(0..=last - 1)?;
            // The smaller id is before the larger one, so there is no cycle.
            order.push((ConnectionId(before), ConnectionId(u.int_in_range(before + 1..=last)?)));
        }
    }
    let plain = kind == CaseKind::HalfDuplexToItself;
    if !plain && u.ratio(1, 8)? {
        require(u, machine, &mut connections)?;
    }
    let nodes = if !plain && u.ratio(1, 3)? { node_lists(u, &connections)? } else { None };
    let set = ConnectionSet::new(format!("s{row}"), connections).expect("small and valid");
    let set = set.with_order(order).expect("the order has no cycle");
    Ok(match nodes {
        Some(nodes) => set.with_nodes(nodes).expect("one node for each word"),
        None => set,
    })
}

/// Makes some connections require a bandwidth or a latency, which may be more than the machine has.
fn require(
    u: &mut Unstructured<'_>,
    machine: &Machine,
    connections: &mut [Connection],
) -> Result<()> {
    let parameters = machine.parameters();
    let [access, link] = [parameters.access_clocks_per_word, parameters.link_clocks_per_word];
    let most = (1000 / access.max(link)).max(1);
    for connection in connections {
        if u.ratio(1, 3)? {
            // What a route has for itself, or a part of it that leaves room for others.
            connection.min_bandwidth = Some((most / u.int_in_range(1..=8)?).max(1));
        }
        if u.ratio(1, 3)? {
            let (links, sharing) = (u.int_in_range(0..=8u32)?, u.int_in_range(1..=4u32)?);
            let latency = 2 * u64::from(access) + u64::from(links * sharing) * u64::from(link);
            connection.max_latency = Some(u32::try_from(latency).unwrap_or(u32::MAX).max(1));
        }
    }
    Ok(())
}

/// Sets with more words get no lists of nodes.
const MAX_NODES: u32 = 1 << 10;

/// Nodes for the words of connections: those of a halo, where each cell sends some of its own, or those
/// that cells share. Connections of a cell may send the same nodes.
fn node_lists(u: &mut Unstructured<'_>, connections: &[Connection]) -> Result<Option<NodeLists>> {
    if connections.iter().map(|connection| u64::from(connection.words)).sum::<u64>()
        > MAX_NODES.into()
    {
        return Ok(None);
    }
    let are_shared: bool = u.arbitrary()?;
    let list = |connection: &Connection| -> Result<Vec<u32>> {
        let own = if are_shared { 0 } else { connection.source.0 * 2 * MAX_NODES };
        let first = own + u.int_in_range(0..=8)?;
        Ok((first..first + connection.words).collect())
    };
    let lists = connections.iter().map(list).collect::<Result<Vec<_>>>()?;
    Ok(Some(NodeLists::from_lists(lists.iter().map(Vec::as_slice))))
}
