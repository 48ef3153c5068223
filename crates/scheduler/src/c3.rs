//! The C3 cost model of supersteps, for any messages.
//!
//! It is that of S. Hambrusch and A. Khokhar, C3: an architecture-independent model for coarse-grained
//! parallel machines.
//!
//! A superstep is local computation followed by messages, and ends when all are received. It is
//! charged in *units*, the time of a packet of `l` bytes; a message has `ceil(L / l)` packets.
//! Parameters of the machine are the number of processors `p`, the set-up of a message `s` in units,
//! the latency `h` (the mean distance of two processors) and the bisection width `b`.
//!
//! * **Sending and receiving** ([`C3Protocol`], Figure 1): with n messages out, the packets of all and of
//!   the longest of them, and likewise those in, processor `i` is charged
//!
//!   | protocol | sending | receiving |
//!   |---|---|---|
//!   | `sf-nbs` | s n + h longest + packets | packets in |
//!   | `wh-nbs` | s n + h + packets | packets in |
//!   | `sf-bs` | 2 (s + h) n + h packets | (s + h) n in + h packets in |
//!   | `wh-bs` | 2 (s + h) n + h + packets | (s + h) n in + h + packets in |
//!
//!   A processor that sends nothing is charged nothing for sending, nor for receiving if it receives
//!   nothing. The superstep is charged the greatest sum of both.
//! * **Links**: with `cong` communicating pairs of on average `L_a` packets, `L_a ceil(cong / b)`.
//! * **Processors**: `L_a ceil(cong / p) h`.
//! * **Computation**: `ceil(bytes / l)` of the processor that touches the most bytes.
//!
//! Supersteps in independent parts of the machine are charged with the parameters of the part, and
//! the costliest part counts ([`in_parts`], [`parts`]). [`levels`] has the paper's k-level algorithms,
//! [`plan`] charges any step plan.
//!
//! Units are no clocks: the paper gives weights for neither. The model charges all permutations
//! alike, and a flood like the same messages in permutations.

pub mod levels;
pub mod parts;
pub mod plan;

#[cfg(test)]
mod tests;

use conset_ir::convert::to_f64;
use conset_ir::{CellId, Machine, Protocol};

/// How packets travel, and what a sender waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum C3Protocol {
    /// Store-and-forward, nonblocking sends.
    StoreForwardNonblocking,
    /// Wormhole, nonblocking sends.
    #[default]
    WormholeNonblocking,
    /// Store-and-forward, blocking sends: a send ends when its message is received.
    StoreForwardBlocking,
    /// Wormhole, blocking sends.
    WormholeBlocking,
}

impl C3Protocol {
    /// All protocols in the order of Figure 1, with their spellings.
    pub const ALL: [(&'static str, C3Protocol); 4] = [
        ("sf-nbs", C3Protocol::StoreForwardNonblocking),
        ("wh-nbs", C3Protocol::WormholeNonblocking),
        ("sf-bs", C3Protocol::StoreForwardBlocking),
        ("wh-bs", C3Protocol::WormholeBlocking),
    ];

    /// The name of the protocol in the paper.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.into_iter().find(|row| row.1 == self);
        row.map_or("", |row| row.0)
    }

    /// The protocol with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The protocol that is nearest to that of a machine: its messages are wormholes, and a
    /// rendezvous blocks the sender until its message is received.
    pub fn of_machine(machine: &Machine) -> Self {
        match machine.parameters().protocol {
            Protocol::Standing => C3Protocol::WormholeNonblocking,
            Protocol::Rendezvous => C3Protocol::WormholeBlocking,
        }
    }

    /// The units of sending `messages` of together `packets`, the longest of `longest`; 0 if there is
    /// none.
    fn sending(self, machine: &C3Machine, messages: f64, packets: f64, longest: f64) -> f64 {
        let (s, h) = (machine.setup, machine.latency);
        match self {
            _ if messages == 0.0 => 0.0,
            C3Protocol::StoreForwardNonblocking => s * messages + h * longest + packets,
            C3Protocol::WormholeNonblocking => s * messages + h + packets,
            C3Protocol::StoreForwardBlocking => 2.0 * (s + h) * messages + h * packets,
            C3Protocol::WormholeBlocking => 2.0 * (s + h) * messages + h + packets,
        }
    }

    /// The units of receiving `messages` of together `packets`; 0 if there is none.
    fn receiving(self, machine: &C3Machine, messages: f64, packets: f64) -> f64 {
        let (s, h) = (machine.setup, machine.latency);
        match self {
            _ if messages == 0.0 => 0.0,
            C3Protocol::StoreForwardNonblocking | C3Protocol::WormholeNonblocking => packets,
            C3Protocol::StoreForwardBlocking => (s + h) * messages + h * packets,
            C3Protocol::WormholeBlocking => (s + h) * messages + h + packets,
        }
    }
}

/// The parameters of a machine or of an independent part of one. A record with public fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct C3Machine {
    /// Processors, at least 1.
    pub processors: u32,
    /// Bytes of a packet, at least 1.
    pub packet_bytes: u32,
    /// Set-up of a message, in units.
    pub setup: f64,
    /// Mean distance of two processors, in hops.
    pub latency: f64,
    /// Links between the halves of the machine in one direction, more than 0.
    pub bisection: f64,
}

impl C3Machine {
    /// The paper's Intel Touchstone Delta: 256 processors, h = 10, b = 16, packets of 512 bytes, a
    /// set-up of 8 units (section 4.1).
    ///
    /// The 8 units are the paper's. Its 1400 cycles of 40 MHz are 35 us, and a packet takes 41 us at
    /// 12.5 MB/s, so 0.85 would follow from its other numbers.
    pub const DELTA: Self =
        Self { processors: 256, packet_bytes: 512, setup: 8.0, latency: 10.0, bisection: 16.0 };

    /// A square mesh of as many processors, with b = sqrt p and h = 2/3 sqrt p (section 3).
    #[must_use]
    pub fn mesh(self, processors: u32) -> Self {
        let side = f64::from(processors).sqrt();
        Self { processors, latency: 2.0 / 3.0 * side, bisection: side, ..self }
    }

    /// A hypercube of as many processors, with b = p/2 and h = log p / 2 (section 3).
    #[must_use]
    pub fn hypercube(self, processors: u32) -> Self {
        let p = f64::from(processors);
        Self { processors, latency: p.log2() / 2.0, bisection: (p / 2.0).max(1.0), ..self }
    }

    /// A tree of as many processors, with b = 1 and h = log p (section 3).
    #[must_use]
    pub fn tree(self, processors: u32) -> Self {
        Self { processors, latency: f64::from(processors).log2(), bisection: 1.0, ..self }
    }

    /// A line of as many processors: b = 1, and h is the whole part of the mean distance
    /// `(n^2 - 1) / 3n`, as the paper's h = 10 is that of its mesh (10.6).
    #[must_use]
    pub fn line(self, processors: u32) -> Self {
        let n = f64::from(processors);
        let latency = ((n * n - 1.0) / (3.0 * n)).floor();
        Self { processors, latency, bisection: 1.0, ..self }
    }

    /// A machine's network: its processors, their exact mean distance ([`mean_distance`]) and its
    /// bisection ([`bisection`]).
    ///
    /// `None` for a graph, whose bisection is unknown, and for a machine without endpoints.
    /// O(endpoints (cells + links)).
    pub fn of_network(machine: &Machine, packet_bytes: u32, setup: f64) -> Option<Self> {
        let processors = u32::try_from(machine.endpoints().count()).ok().filter(|&p| p > 0)?;
        let (latency, bisection) = (mean_distance(machine)?, bisection(machine)?);
        Some(Self { processors, packet_bytes, setup, latency, bisection })
    }

    /// The set-up of a message of a machine in units: the software of a message that occupies its
    /// sender, in clocks that the words of a packet take to move.
    ///
    /// The paper states set-ups without saying how they follow from a machine. By this rule that of
    /// the Delta would be 0.84, and not the paper's 8 ([`C3Machine::DELTA`]).
    pub fn setup_of(machine: &Machine, packet_bytes: u32) -> f64 {
        let p = machine.parameters();
        let software = match p.protocol {
            Protocol::Standing => f64::from(p.c_send),
            Protocol::Rendezvous => f64::from(p.c_send) + f64::from(p.c_receive),
        };
        let words = f64::from(packet_bytes.div_ceil(p.word_bytes.max(1)).max(1));
        software
            / (words * f64::from(p.link_clocks_per_word.max(p.access_clocks_per_word)).max(1.0))
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.packet_bytes.max(1)))
    }
}

/// The mean distance of two endpoints in hops, over all ordered pairs, a cell with itself included.
/// Pairs without a path are left out; `None` if there are no endpoints.
pub fn mean_distance(machine: &Machine) -> Option<f64> {
    let (mut hops, mut pairs) = (0u64, 0u64);
    for source in machine.endpoints() {
        let from = machine.hops_from(source);
        for hop in machine.endpoints().map(|target| from[target.index()]) {
            if hop != u32::MAX {
                hops += u64::from(hop);
                pairs += 1;
            }
        }
    }
    (pairs > 0).then(|| to_f64(hops) / to_f64(pairs))
}

/// The links in one direction between the halves of a network: of a grid those that the middle of
/// its longest dimension cuts, of a fat-tree or cluster those of half of the groups below its top. Dead links
/// are counted. At least 1; `None` for graphs.
pub fn bisection(machine: &Machine) -> Option<f64> {
    if let Some(dims) = machine.topology().dims() {
        let side: f64 = dims.iter().map(|&d| f64::from(d)).product();
        let longest = dims.iter().copied().max().unwrap_or(1);
        // A ring of any size is cut twice; a ring of 2 has two parallel links.
        let wraps = if machine.topology().wraps() { 2.0 } else { 1.0 };
        return Some((side / f64::from(longest) * wraps).max(1.0));
    }
    let levels = machine.topology().tree_levels();
    if levels.is_empty() {
        return None;
    }
    let below = levels.iter().rev().find(|level| level.groups > 1);
    Some(below.map_or(1.0, |level| to_f64((level.groups / 2).max(1)) * to_f64(level.links_up())))
}

/// A message of a superstep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct C3Message {
    /// The processor that sends it.
    pub source: CellId,
    /// The processor that receives it.
    pub target: CellId,
    /// Its length.
    pub bytes: u64,
}

/// The units charged to a superstep's communication.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct C3Units {
    /// The greatest sum of sending and receiving of a processor.
    pub processor: f64,
    /// Congestion of links.
    pub link_congestion: f64,
    /// Congestion at processors.
    pub processor_congestion: f64,
}

impl C3Units {
    /// All units.
    pub fn total(&self) -> f64 {
        self.processor + self.link_congestion + self.processor_congestion
    }
}

impl std::ops::AddAssign for C3Units {
    fn add_assign(&mut self, other: Self) {
        self.processor += other.processor;
        self.link_congestion += other.link_congestion;
        self.processor_congestion += other.processor_congestion;
    }
}

/// The units of a superstep. Messages of the same two processors are one message; messages of a
/// processor to itself, and empty ones, are free. O(messages log messages).
///
/// ```
/// use conset_ir::CellId;
/// use conset_scheduler::c3::{self, C3Machine, C3Message, C3Protocol};
///
/// let to = |target| C3Message { source: CellId(0), target: CellId(target), bytes: 512 };
/// let one_to_all: Vec<C3Message> = (1..256).map(to).collect();
/// let units = c3::superstep(&C3Machine::DELTA, C3Protocol::default(), &one_to_all);
/// // (p - 1) (s + 1) + h, ceil(255 / 16), and h.
/// assert_eq!(units.total(), 255.0 * 9.0 + 10.0 + 16.0 + 10.0);
/// ```
pub fn superstep(machine: &C3Machine, protocol: C3Protocol, messages: &[C3Message]) -> C3Units {
    let mut pairs: Vec<C3Message> =
        messages.iter().copied().filter(|m| m.source != m.target && m.bytes > 0).collect();
    pairs.sort_unstable();
    pairs.dedup_by(|next, last| {
        let same = (next.source, next.target) == (last.source, last.target);
        if same {
            last.bytes = last.bytes.saturating_add(next.bytes);
        }
        same
    });
    let ends = pairs.iter().flat_map(|m| [m.source, m.target]);
    let mut loads = vec![ProcessorLoad::default(); ends.max().map_or(0, |cell| cell.index() + 1)];
    let mut all = 0.0;
    for pair in &pairs {
        let packets = to_f64(machine.packets(pair.bytes));
        let source = &mut loads[pair.source.index()];
        source.sent += 1.0;
        source.packets_sent += packets;
        source.longest = source.longest.max(packets);
        let target = &mut loads[pair.target.index()];
        target.received += 1.0;
        target.packets_received += packets;
        all += packets;
    }
    let of = |load: &ProcessorLoad| {
        protocol.sending(machine, load.sent, load.packets_sent, load.longest)
            + protocol.receiving(machine, load.received, load.packets_received)
    };
    let cong = to_f64(pairs.len());
    let mean = if pairs.is_empty() { 0.0 } else { all / cong };
    C3Units {
        processor: loads.iter().map(of).fold(0.0, f64::max),
        link_congestion: mean * (cong / machine.bisection).ceil(),
        processor_congestion: mean
            * (cong / f64::from(machine.processors)).ceil()
            * machine.latency,
    }
}

/// What a processor sends and receives: messages, and their packets.
#[derive(Clone, Copy, Default)]
struct ProcessorLoad {
    sent: f64,
    packets_sent: f64,
    longest: f64,
    received: f64,
    packets_received: f64,
}

/// The units of a superstep that independent parts of a machine execute side by side: those of the
/// costliest part, the first one of equals.
pub fn in_parts<'a>(
    protocol: C3Protocol,
    parts: impl IntoIterator<Item = (&'a C3Machine, &'a [C3Message])>,
) -> C3Units {
    let units = parts.into_iter().map(|(machine, messages)| superstep(machine, protocol, messages));
    units.fold(
        C3Units::default(),
        |most, next| {
            if next.total() > most.total() { next } else { most }
        },
    )
}

/// The units of computation of a superstep in which a processor touches at most so many bytes.
pub fn computation(machine: &C3Machine, bytes: u64) -> u64 {
    machine.packets(bytes)
}
