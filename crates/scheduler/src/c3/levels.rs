//! The k-level algorithms of the C3 paper: one-to-all, all-to-one and all-to-all as supersteps in
//! ever smaller parts of a square mesh (section 4).
//!
//! An algorithm is a list of [`LevelStep`]s. Each is one of the four regular patterns (Figure 2)
//! among some processors of a part, with messages that are a multiple of the *actual* length `L`,
//! because messages are combined. It can be priced
//!
//! * exactly, by [`super::superstep`] of its messages ([`LevelStep::units`]);
//! * as the paper prints it ([`LevelStep::linear`]): set-ups and units per byte without the ceilings of
//!   packets, "p when the correct quantity is p - 1", and without terms of `h` alone.
//!
//! The two differ for messages shorter than a packet, which is charged as a whole: exactly, combining
//! is worth much more there.
//!
//! Parts of the mesh have these parameters: the whole one those given; a line of n processors as
//! [`C3Machine::line`]; a square as [`C3Machine::mesh`]; halves of halves, which the paper charges with
//! `b = 1` or more so that it does not matter for one message, `h = ceil(2/3 sqrt p)`. The last is a
//! choice: of many readings it is the literal one, and comes within 2 % of the paper's two rows of
//! Figure 3 that depend on it.

use conset_ir::CellId;
use conset_ir::convert::to_f64;

use super::{C3Machine, C3Message, C3Protocol, C3Units, superstep};

/// A regular pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegularPattern {
    /// One message.
    One,
    /// Each processor sends to another one: a permutation.
    OneToOne,
    /// One processor sends to all others.
    OneToAll,
    /// All other processors send to one.
    AllToOne,
    /// Each processor sends to all others.
    AllToAll,
}

/// A superstep of an algorithm, in one of the parts that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelStep {
    /// The part that executes it.
    pub machine: C3Machine,
    /// The pattern.
    pub pattern: RegularPattern,
    /// The processors that take part.
    pub members: u32,
    /// The length of the messages in actual messages.
    pub combined: u32,
}

/// A k-level algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelAlgorithm {
    /// The name in the paper.
    pub name: &'static str,
    /// The supersteps.
    pub steps: Vec<LevelStep>,
    /// Actual messages that a processor touches in all supersteps: those that it splits or combines,
    /// or in a single superstep the message itself.
    pub touched: u32,
}

/// Set-ups, and units per byte of an actual message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinearUnits {
    /// Set-ups.
    pub setups: f64,
    /// Units per byte.
    pub per_byte: f64,
}

impl LevelStep {
    /// The messages, between the processors 0, 1, and so on, for actual messages of `bytes`.
    pub fn messages(&self, bytes: u64) -> Vec<C3Message> {
        let bytes = bytes.saturating_mul(u64::from(self.combined));
        let members = self.members;
        let message =
            |source, target| C3Message { source: CellId(source), target: CellId(target), bytes };
        match self.pattern {
            RegularPattern::One => vec![message(0, 1)],
            RegularPattern::OneToOne => {
                (0..members).map(|cell| message(cell, (cell + 1) % members)).collect()
            }
            RegularPattern::OneToAll => (1..members).map(|cell| message(0, cell)).collect(),
            RegularPattern::AllToOne => (1..members).map(|cell| message(cell, 0)).collect(),
            RegularPattern::AllToAll => {
                let pairs = (0..members).flat_map(|a| (0..members).map(move |b| (a, b)));
                pairs.filter(|(a, b)| a != b).map(|(a, b)| message(a, b)).collect()
            }
        }
    }

    /// The units for actual messages of `bytes`.
    pub fn units(&self, protocol: C3Protocol, bytes: u64) -> C3Units {
        superstep(&self.machine, protocol, &self.messages(bytes))
    }

    /// Set-ups and units per byte as the paper prints them, for wormholes and nonblocking sends.
    pub fn linear(&self) -> LinearUnits {
        let (n, p) = (f64::from(self.members), f64::from(self.machine.processors));
        // Messages out of and into the busiest processor, and communicating pairs.
        let (out, into, pairs) = match self.pattern {
            RegularPattern::One => (1.0, 0.0, 1.0),
            RegularPattern::OneToOne => (1.0, 1.0, n),
            RegularPattern::OneToAll => (n, 0.0, n),
            RegularPattern::AllToOne => (0.0, n, n),
            RegularPattern::AllToAll => (n, n, n * (n - 1.0)),
        };
        // A single message is received by another processor, which does less.
        let packets = match self.pattern {
            RegularPattern::One => 1.0,
            _ => out + into,
        };
        let congestion =
            (pairs / self.machine.bisection).ceil() + (pairs / p).ceil() * self.machine.latency;
        let packets_per_byte = f64::from(self.combined) / f64::from(self.machine.packet_bytes);
        LinearUnits { setups: out, per_byte: (packets + congestion) * packets_per_byte }
    }
}

impl LevelAlgorithm {
    /// The units of communication of all supersteps, for actual messages of `bytes`.
    pub fn units(&self, protocol: C3Protocol, bytes: u64) -> f64 {
        self.steps.iter().map(|step| step.units(protocol, bytes).total()).sum()
    }

    /// The sum of [`LevelStep::linear`].
    pub fn linear(&self) -> LinearUnits {
        self.steps.iter().map(LevelStep::linear).fold(LinearUnits::default(), |sum, step| {
            LinearUnits { setups: sum.setups + step.setups, per_byte: sum.per_byte + step.per_byte }
        })
    }

    /// Units of computation per byte of an actual message.
    pub fn computation_per_byte(&self, machine: &C3Machine) -> f64 {
        f64::from(self.touched) / f64::from(machine.packet_bytes)
    }
}

/// The part that a machine of which `2^depth` are cut leaves, by alternating cuts.
fn half(machine: &C3Machine, depth: u32) -> C3Machine {
    let processors = (machine.processors >> depth).max(1);
    let latency = (2.0 / 3.0 * f64::from(processors).sqrt()).ceil();
    // The shorter side: an odd number of cuts has just halved one of two equal sides.
    let side = f64::from(machine.processors).sqrt();
    let bisection = (side / to_f64(1u64 << depth.div_ceil(2).min(31))).max(1.0);
    C3Machine { processors, latency, bisection, ..*machine }
}

/// The four one-to-all algorithms of Figure 3 and the binomial broadcast, on a square mesh whose side
/// is a power of 4 or 2 (sizes are rounded down otherwise), in the order of the figure.
///
/// In `1-lev-our-br` the whole data is broadcast along a binomial heap and each processor takes its
/// own; in `2-lev-rec` the source sends to the heads of the rows, and these to their rows; in
/// `3-lev-sq` it sends to the heads of squares of sqrt p processors, and each of them does
/// `2-lev-rec`; in `logp-lev-sq` it sends half of all messages to the other half, and so on.
pub fn one_to_all(machine: &C3Machine) -> Vec<LevelAlgorithm> {
    routing(machine, RegularPattern::OneToAll)
}

/// The inverses of [`one_to_all`] without the broadcast: messages travel from all processors to one.
pub fn all_to_one(machine: &C3Machine) -> Vec<LevelAlgorithm> {
    let mut all = routing(machine, RegularPattern::AllToOne);
    all.retain(|algorithm| algorithm.name != "1-lev-our-br");
    all.iter_mut().for_each(|algorithm| algorithm.steps.reverse());
    all
}

fn routing(machine: &C3Machine, pattern: RegularPattern) -> Vec<LevelAlgorithm> {
    let p = machine.processors.max(1);
    let (side, corner) = (p.isqrt(), p.isqrt().isqrt());
    let step =
        |machine: C3Machine, members, combined| LevelStep { machine, pattern, members, combined };
    let single = |depth: u32, combined| LevelStep {
        machine: half(machine, depth),
        pattern: RegularPattern::One,
        members: 2,
        combined,
    };
    let row = machine.line(side);
    let corner_row = machine.line(corner);
    let levels = p.ilog2();
    vec![
        LevelAlgorithm { name: "1-lev-dir", steps: vec![step(*machine, p, 1)], touched: 1 },
        LevelAlgorithm {
            name: "1-lev-our-br",
            steps: (0..levels).map(|depth| single(depth, p)).collect(),
            touched: p,
        },
        LevelAlgorithm {
            name: "2-lev-rec",
            steps: vec![step(row, side, side), step(row, side, 1)],
            touched: side,
        },
        LevelAlgorithm {
            name: "3-lev-sq",
            steps: vec![
                step(*machine, side, side),
                step(corner_row, corner, corner),
                step(corner_row, corner, 1),
            ],
            touched: side + corner,
        },
        LevelAlgorithm {
            name: "logp-lev-sq",
            steps: (0..levels).map(|depth| single(depth, p >> (depth + 1))).collect(),
            touched: p - 1,
        },
    ]
}

/// The all-to-all algorithms on a square mesh: direct, which stands for all orders of permutations;
/// in rows and then columns; in squares, between them, and in squares; and the butterfly.
pub fn all_to_all(machine: &C3Machine) -> Vec<LevelAlgorithm> {
    let p = machine.processors.max(1);
    let side = p.isqrt();
    let step = |machine: C3Machine, pattern, members, combined| LevelStep {
        machine,
        pattern,
        members,
        combined,
    };
    let (all, one) = (RegularPattern::AllToAll, RegularPattern::OneToOne);
    let (row, square) = (machine.line(side), machine.mesh(side));
    let levels = p.ilog2();
    vec![
        LevelAlgorithm { name: "1-lev-dir", steps: vec![step(*machine, all, p, 1)], touched: p },
        LevelAlgorithm {
            name: "2-lev-r,c",
            steps: vec![step(row, all, side, side); 2],
            touched: 2 * p,
        },
        LevelAlgorithm {
            name: "2-lev-sq",
            steps: vec![
                step(square, all, side, side),
                step(*machine, one, p, p),
                step(square, all, side, side),
            ],
            touched: 3 * p,
        },
        LevelAlgorithm {
            name: "logp-lev-bfly",
            steps: (0..levels)
                .map(|depth| step(half(machine, depth), one, p >> depth, p / 2))
                .collect(),
            touched: levels * p,
        },
    ]
}
