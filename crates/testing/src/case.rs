//! What is generated: small and valid, with the values at the edges of what is allowed among it.
//!
//! Half duplex or full; any topology, with dead cells and links; connections of a cell to itself;
//! words that are equal, uneven, or up to the limit of 2^30; several sets; orders; least and
//! greatest values of the machine's parameters; both algorithms and both objectives.
//!
//! A set lasts less than 2^60 clocks: slow words are not put together with very many of them.

use std::fmt;
use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Document, Duplex, Machine, Parameters,
    Program, Topology, limits, text,
};
use conset::{Algorithm, CompileOptions, Objective};

/// A machine, a program for it, and how it is compiled.
pub struct Case {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Sets `s0`, `s1`, ... for it.
    pub program: Program,
    /// How they are compiled.
    pub options: CompileOptions,
}

/// What cases are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of them.
    Any,
    /// Half-duplex machines and sets of uneven words with connections of cells to themselves,
    /// compiled by the default algorithm.
    HalfDuplexToItself,
}

/// Bytes from which a case of a seed is made; what comes after them is all zeros.
const BYTES: usize = 1 << 12;

impl Case {
    /// The case of a seed: always the same.
    ///
    /// # Panics
    /// Never: the bytes are enough for any case.
    pub fn of_seed(seed: u64, kind: Kind) -> Self {
        let mut state = seed;
        let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| next(&mut state).to_le_bytes()).collect();
        Self::from_bytes(&mut Unstructured::new(&bytes), kind).expect("bytes do not run out")
    }

    /// A case made of some bytes.
    ///
    /// # Errors
    /// Too few bytes.
    pub fn from_bytes(u: &mut Unstructured<'_>, kind: Kind) -> Result<Self> {
        let machine = Arc::new(machine(u, kind)?);
        let sets = match kind {
            Kind::Any => *u.choose(&[1, 1, 1, 2, 3])?,
            Kind::HalfDuplexToItself => 1,
        };
        let sets = (0..sets).map(|row| set(u, &machine, row, kind).map(Arc::new));
        let program = Program::new(sets.collect::<Result<_>>()?).expect("names differ");
        let options = CompileOptions::new()
            .algorithm(match kind {
                Kind::Any if u.ratio(1, 8)? => Algorithm::Paper,
                _ => Algorithm::Auto,
            })
            .objective(*u.choose(&[Objective::Time, Objective::Time, Objective::Phases])?)
            .seed(u.int_in_range(0..=3)?)
            .max_phases(if u.ratio(1, 16)? { Some(u.int_in_range(1..=6)?) } else { None })
            .max_plans(if u.ratio(1, 16)? { Some(u.int_in_range(1..=12)?) } else { None });
        Ok(Self { machine, program, options })
    }
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Self::from_bytes(u, Kind::Any)
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

/// The next of a sequence of random numbers (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn dims(u: &mut Unstructured<'_>) -> Result<Vec<u32>> {
    (0..u.int_in_range(1..=3)?).map(|_| u.int_in_range(1..=4)).collect()
}

fn topology(u: &mut Unstructured<'_>) -> Result<Topology> {
    Ok(match u.int_in_range(0..=5)? {
        0 => Topology::Torus { dims: dims(u)? },
        1 => Topology::Mesh { dims: dims(u)? },
        2 => Topology::Ring { cells: u.int_in_range(1..=9)? },
        3 => Topology::Hypercube { dimension: u.int_in_range(0..=4)? },
        4 => Topology::FatTree { leaves: u.int_in_range(1..=16)? },
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

/// Mostly a usual value from `least` on, sometimes the least or the greatest that is allowed.
fn number(u: &mut Unstructured<'_>, least: u32, usual: u32, most: u32) -> Result<u32> {
    Ok(match u.int_in_range(0..=31)? {
        0 => most,
        1..=4 => least,
        _ => u.int_in_range(least..=usual)?,
    })
}

fn parameters(u: &mut Unstructured<'_>, kind: Kind) -> Result<Parameters> {
    let iwarp = Parameters::iwarp();
    let half = kind == Kind::HalfDuplexToItself || u.arbitrary()?;
    Ok(Parameters {
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
    })
}

fn machine(u: &mut Unstructured<'_>, kind: Kind) -> Result<Machine> {
    let (topology, parameters) = (topology(u)?, parameters(u, kind)?);
    let build = |cells, links| {
        Machine::new("random", topology.clone(), parameters.clone(), cells, links)
            .expect("the machine is small and valid")
    };
    let whole = build(vec![], vec![]);
    let mut dead = (Vec::new(), Vec::new());
    let agents = whole.agent_count() as u32;
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

/// How long the connections of a set are.
#[derive(Clone, Copy)]
enum Words {
    Equal(u32),
    UpTo(u32),
    /// Mostly short, some long.
    Mixed,
}

/// Clocks for a word at most, for sets of very many words.
const QUICK: u32 = 1 << 20;

fn words(u: &mut Unstructured<'_>, machine: &Machine, kind: Kind) -> Result<Words> {
    let parameters = machine.parameters();
    let quick = parameters.access_clocks_per_word.max(parameters.link_clocks_per_word) < QUICK;
    Ok(match u.int_in_range(0..=15)? {
        0..=2 if kind == Kind::Any => Words::Equal(u.int_in_range(1..=300)?),
        0..=4 => Words::UpTo(4000),
        5..=6 => Words::UpTo(1 << 16),
        7 if quick => Words::UpTo(limits::WORDS),
        8..=10 => Words::UpTo(24),
        _ => Words::Mixed,
    })
}

fn set(u: &mut Unstructured<'_>, machine: &Machine, row: u32, kind: Kind) -> Result<ConnectionSet> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let lengths = words(u, machine, kind)?;
    // Searches take time in proportion to the connections, and few of them meet as well as many.
    let count = match kind {
        _ if u.ratio(1, 8)? => u.int_in_range(2..=40)?,
        Kind::Any => u.int_in_range(0..=12)?,
        Kind::HalfDuplexToItself => u.int_in_range(2..=8)?,
    };
    let mut connections = Vec::new();
    for place in 0..count {
        let source = *u.choose(&cells)?;
        let to_itself = (kind != Kind::Any && place == 0) || u.ratio(1, 6)?;
        let target = if to_itself { source } else { *u.choose(&cells)? };
        let words = match lengths {
            Words::Equal(words) => words,
            Words::UpTo(most) => u.int_in_range(1..=most)?,
            Words::Mixed if u.ratio(1, 6)? => u.int_in_range(1..=2000)?,
            Words::Mixed => u.int_in_range(1..=24)?,
        };
        connections.push(Connection::new(source, target, words));
    }
    let mut order = Vec::new();
    if connections.len() > 1 && kind == Kind::Any && u.ratio(1, 3)? {
        let last = connections.len() as u32 - 1;
        for _ in 0..u.int_in_range(1..=5)? {
            let before = u.int_in_range(0..=last - 1)?;
            // The smaller id before the larger, so there is no circle.
            order.push((ConnectionId(before), ConnectionId(u.int_in_range(before + 1..=last)?)));
        }
    }
    let set = ConnectionSet::new(format!("s{row}"), connections).expect("small and valid");
    Ok(set.with_order(order).expect("the order has no circle"))
}
