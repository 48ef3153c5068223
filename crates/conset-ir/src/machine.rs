//! A machine: its links and cells in flat arrays, and the parameters of the machine model.
//!
//! [`Machine::new`] builds the topology as a petgraph, checks it, and stores it as arrays of links,
//! outgoing links and incoming links, in id order. Dead cells and links keep their ids, but appear
//! in no list of outgoing or incoming links.

use std::collections::VecDeque;

use petgraph::visit::EdgeRef;
use serde::{Deserialize, Serialize};

use crate::convert::{index, to_u32};
use crate::error::{At, InputError, ShapeError, SpecError};
use crate::ids::{CellId, LinkId};
use crate::limits;
use crate::lists::Lists;
use crate::position::did_you_mean;
use crate::topology::Topology;

/// Whether an agent can send and receive at the same time (machine model, rule 4). Exhaustive,
/// since there is no third possibility.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// The two directions are independent (streaming).
    Full,
    /// The two directions share the agent (the FEM loops, which send and receive in turn).
    Half,
}

/// What a message needs of its receiver before it leaves its source (machine model, rule 7).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Nothing: the message stands in the network until it is received (iWarp, the Delta).
    #[default]
    Standing,
    /// The receiver asks for it. Both cells run their software, one after the other, and are busy
    /// until the tail has arrived (synchronous messages of the CM-5 and of the T3D).
    Rendezvous,
}

impl Protocol {
    /// All protocols with their spellings in machine files.
    pub const ALL: [(&'static str, Protocol); 2] =
        [("standing", Protocol::Standing), ("rendezvous", Protocol::Rendezvous)];

    /// The protocol of a spelling.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The spelling in machine files.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Standing => "standing",
            Protocol::Rendezvous => "rendezvous",
        }
    }
}

/// The parameters of the machine model. Times are in clocks.
///
/// The fields are named as in the rules of the model and as the keys of machine files. They are
/// public, and the struct is not `#[non_exhaustive]`, because emitted crates build it field by
/// field; [`Machine::new`] checks the ranges.
///
/// ```
/// use conset_ir::{Machine, Parameters};
///
/// let parameters = Parameters { channels_per_cell: 20, ..Parameters::iwarp() };
/// assert_eq!(parameters.switch_clocks(), 352 + 176);
/// let machine = Machine::from_spec("torus:8x8")?.with_parameters(parameters)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Logical channels per cell that connections can use (paper, section 5: 12).
    pub channels_per_cell: u32,
    /// Logical channels per cell that are reserved for synchronisation and the run-time system
    /// (paper: 20 in all, so 8). No route may use them; their numbers follow those of the others.
    pub channels_reserved: u32,
    /// Words that the queue of a channel holds.
    pub channel_depth: u32,
    /// Clocks for a word to cross a link (paper: 40 MB/s at 20 MHz and 4 bytes, so 2).
    pub link_clocks_per_word: u32,
    /// Clocks for an agent to inject a word or to take one out (paper, section 4.2.1: 2; the FEM
    /// loops, section 5.2: 10).
    pub access_clocks_per_word: u32,
    /// Whether the two directions of an agent are independent.
    pub duplex: Duplex,
    /// Streams that an agent can hold open in each direction.
    pub streams: u32,
    /// Clocks for an agent to open a stream.
    pub stream_setup: u32,
    /// Clocks to synchronise all cells before a context switch (paper, section 4.2.1: 352).
    pub t_sync: u32,
    /// Clocks to load a context (paper, section 4.2.1: 176).
    pub t_phase: u32,
    /// Message passing: software overhead of each message at the sender (section 4.3.1: 400).
    pub c_send: u32,
    /// Message passing: software overhead of each message at the receiver (400).
    pub c_receive: u32,
    /// Message passing: header and trailer words of each message (4).
    pub message_extra_words: u32,
    /// Clock frequency in hertz.
    pub clock_hz: u32,
    /// Bytes of a word.
    pub word_bytes: u32,
    /// 1 if agents observe planned starts, 0 if they open a stream as soon as they are free.
    ///
    /// All cells leave the context switch together, so a clock that counts from its end is common
    /// to all. With timed starts an agent does not begin to open a stream (its set-up, at either
    /// end of the route) before the planned `start` of the slot, in clocks from the end of the
    /// context switch; otherwise it follows the order of its operation list. A late stream (its
    /// agent is still busy, or words are late) only delays the following operations of that agent.
    pub timed_starts: u32,
    /// Message passing: what a message needs of its receiver before it leaves.
    pub protocol: Protocol,
    /// Clocks to copy a word in the memory of a cell: of the pieces of messages that the cell passes
    /// on in a later step.
    pub copy_clocks_per_word: u32,
    /// Clocks to apply a reduction's operator to a word.
    pub combine_clocks_per_word: u32,
    /// Control network: clocks of a barrier of all cells; 0 if the machine has none.
    pub control_barrier: u32,
    /// Control network: clocks to reduce a word of every cell; 0 if the machine cannot.
    pub control_reduce: u32,
    /// Control network: clocks to start a broadcast to all cells; 0 if the machine cannot.
    pub control_broadcast: u32,
    /// Control network: clocks for each word of a broadcast.
    pub control_clocks_per_word: u32,
    /// Clusters: clocks that a message between two nodes costs at each end beyond `c_send` or
    /// `c_receive`, and a stream beyond `stream_setup`.
    pub network_overhead: u32,
    /// Clusters: clocks for a word to cross a link between a node and the network; 0 if as many as
    /// for any other link.
    pub network_clocks_per_word: u32,
    /// Active messages: the most words of a packet; 0 if the machine has none. What cells send each
    /// other in epochs then travels in packets that no cell asks for.
    pub active_words: u32,
    /// Active messages: clocks of software to send a packet, its words included.
    pub c_active_send: u32,
    /// Active messages: clocks of software to take a packet in, its words and its handler included.
    pub c_active_receive: u32,
    /// Active messages: clocks of a poll that finds no packet.
    pub c_poll: u32,
}

/// The rows of [`Parameters::numbers`] that are older than the protocols of messages.
pub(crate) const FIRST_NUMBERS: usize = 15;
/// The rows of [`Parameters::numbers`] that are older than active messages.
const BEFORE_ACTIVE: usize = 23;

/// Help for an unknown word: the closest known word, and the list of all known words.
fn suggestion(word: &str, known: &[&str], what: &str) -> String {
    let all = format!("{what}: {}", known.join(", "));
    let plain = word.to_ascii_lowercase().replace('-', "_");
    let close = |word: &str| did_you_mean(word, known.iter().copied());
    match close(word).or_else(|| close(&plain)) {
        Some(meant) => format!("did you mean `{meant}`? {all}"),
        None => all,
    }
}

impl Parameters {
    /// The paper's iWarp in streaming mode.
    pub const fn iwarp() -> Self {
        Self {
            channels_per_cell: 12,
            channels_reserved: 8,
            channel_depth: 8,
            link_clocks_per_word: 2,
            access_clocks_per_word: 2,
            duplex: Duplex::Full,
            streams: 1,
            stream_setup: 0,
            t_sync: 352,
            t_phase: 176,
            c_send: 400,
            c_receive: 400,
            message_extra_words: 4,
            clock_hz: 20_000_000,
            word_bytes: 4,
            timed_starts: 0,
            protocol: Protocol::Standing,
            copy_clocks_per_word: 0,
            combine_clocks_per_word: 0,
            control_barrier: 0,
            control_reduce: 0,
            control_broadcast: 0,
            control_clocks_per_word: 0,
            network_overhead: 0,
            network_clocks_per_word: 0,
            active_words: 0,
            c_active_send: 0,
            c_active_receive: 0,
            c_poll: 0,
        }
    }

    /// The paper's iWarp with agents that observe planned starts. This needs a register that counts
    /// from the context switch, and a comparison. The paper's agents have neither and start a
    /// stream when they are free, so this is a separate preset and `iwarp` remains the paper's
    /// machine.
    pub const fn iwarp_timed() -> Self {
        Self { timed_starts: 1, ..Self::iwarp() }
    }

    /// The paper's iWarp as Tables 1 to 3 measured it: streaming mode (section 5) with the cost of
    /// starting the loop of a stream.
    ///
    /// The paper does not state this cost. It is calibrated on one measurement of Table 1: a cell
    /// of the torus pattern starts 4 sends, and the shortest exchange took 1168 clocks where the
    /// paper's formula yields 776; (1168 - 776) / 4 = 98. All other values are those of
    /// [`Parameters::iwarp`]. (That preset has no set-up cost. Files refer to presets by name, so
    /// the values of a preset cannot change.)
    pub const fn iwarp_stream() -> Self {
        Self { stream_setup: 98, ..Self::iwarp() }
    }

    /// The paper's iWarp in spooling mode (section 5): words move in the background at link
    /// speed, once a spooling unit is set up. The 400 clocks of set-up are the overhead of a message
    /// (section 4.3.1), which includes route lookup and queues, so they are an upper limit.
    pub const fn iwarp_spool() -> Self {
        Self { stream_setup: 400, ..Self::iwarp() }
    }

    /// The paper's iWarp in the FEM loops (systolic mode, section 5): 10 clocks per word, and half
    /// duplex. An instruction of the computing loop sends or receives a word, which the 10 clocks
    /// include, so no stream is set up.
    pub const fn iwarp_fem() -> Self {
        Self { access_clocks_per_word: 10, duplex: Duplex::Half, ..Self::iwarp() }
    }

    /// A CM-5 as measured by R. Ponnusamy and others (Experimental Performance Evaluation of the
    /// CM-5), in ticks of 10 ns, since the paper has no clock.
    ///
    /// | parameters | source |
    /// |---|---|
    /// | rendezvous, half duplex | CMMD's synchronous messages: an exchange of a pair is two messages in turn |
    /// | access 45 | 0.112 us a byte (section 3.2), 44.8 ticks a word of 4 bytes |
    /// | send 3602, receive 3603 | 73 us a message (section 3.2), less the first word's way over two links |
    /// | link 25 | 20 MB/s with packet headers of 4 bytes in 20, so 16 MB/s (section 2); a message takes one path, so this is a link's rate and not half of it |
    /// | reduction 4200, broadcast 14300 + 595 a word | Table 7: 42 us for a double; 143 us + 1.4886 us a byte |
    /// | barrier 600 | assumed: that of Table 7's reduction of an int, 6 us |
    pub const fn cm5() -> Self {
        Self {
            link_clocks_per_word: 25,
            access_clocks_per_word: 45,
            duplex: Duplex::Half,
            c_send: 3602,
            c_receive: 3603,
            message_extra_words: 0,
            clock_hz: 100_000_000,
            protocol: Protocol::Rendezvous,
            control_barrier: 600,
            control_reduce: 4200,
            control_broadcast: 14_300,
            control_clocks_per_word: 595,
            ..Self::iwarp()
        }
    }

    /// The same CM-5 with its active messages. ([`Parameters::cm5`] has none. Files refer to presets
    /// by name, so the values of a preset cannot change.)
    ///
    /// | parameters | source |
    /// |---|---|
    /// | packets of 4 words | section 2: 16 bytes of data in a packet |
    /// | send 200, receive 200 | no paper has them; 2 us at each end is one of three values that were tried with Figure 31 of Bae and Ranka in sight (docs/fidelity.md) |
    /// | poll 30 | assumed |
    /// | reduction 600 | the runtime reduces counts of one word: Table 7, 6 us for an int |
    pub const fn cm5_active() -> Self {
        Self {
            control_reduce: 600,
            active_words: 4,
            c_active_send: 200,
            c_active_receive: 200,
            c_poll: 30,
            ..Self::cm5()
        }
    }

    /// An Intel Touchstone Delta as described by S. Hambrusch and A. Khokhar (C3: an
    /// architecture-independent model for coarse-grained parallel machines).
    ///
    /// | parameters | source |
    /// |---|---|
    /// | 40 MHz, send 1400 | section 4.1: a set-up of 1400 processor cycles |
    /// | link 13, access 13 | section 4.1: 12.5 MB/s, 12.8 clocks a word of 4 bytes |
    /// | receive 0 | the paper has no number |
    pub const fn delta() -> Self {
        Self {
            link_clocks_per_word: 13,
            access_clocks_per_word: 13,
            c_send: 1400,
            c_receive: 0,
            message_extra_words: 0,
            clock_hz: 40_000_000,
            ..Self::iwarp()
        }
    }

    /// A Cray T3D with the message passing library ACL, whose paper is meant below.
    ///
    /// | parameters | source |
    /// |---|---|
    /// | send 357, receive 357, 3 extra words | 5 us and 24 bytes of protocol for each message |
    /// | access 12 | more than 100 MB/s, 8 bytes a word |
    /// | copy 7 | memory copies at 170 MB/s |
    /// | combine 20 | calibrated on the reduction of Table 2 |
    /// | 150 MHz, link 4 | not from the paper; none of its results depends on them |
    /// | rendezvous | the library's synchronous messages |
    pub const fn t3d() -> Self {
        Self {
            link_clocks_per_word: 4,
            access_clocks_per_word: 12,
            c_send: 357,
            c_receive: 357,
            message_extra_words: 3,
            clock_hz: 150_000_000,
            word_bytes: 8,
            protocol: Protocol::Rendezvous,
            copy_clocks_per_word: 7,
            combine_clocks_per_word: 20,
            ..Self::iwarp()
        }
    }

    /// A cluster of computers that pass messages, in clocks of a nanosecond and words of 8 bytes:
    /// values of the order of those measured on current machines.
    ///
    /// | parameters | reason |
    /// |---|---|
    /// | channels 2^24 | buffers and requests are in memory: no set needs several phases for them |
    /// | streams 1 | the software of a cell does one thing at a time |
    /// | stream set-up, send and receive 400 | 0.4 us of software for a message at each end in a node |
    /// | network overhead 800 | 0.8 us more at each end for one between nodes |
    /// | link 1, access 1 | 8 GB/s, of a core and of the network link of a node |
    /// | copy 1, combine 1 | 8 GB/s in memory |
    /// | depth 4096 | messages up to 32 KiB wait at their receiver and not in the network |
    /// | sync 2000, phase 0 | 2 us for a barrier between phases; there are no tables to load |
    pub const fn cluster() -> Self {
        Self {
            channels_per_cell: limits::CHANNELS_PER_CELL,
            channels_reserved: 0,
            channel_depth: 4096,
            link_clocks_per_word: 1,
            access_clocks_per_word: 1,
            stream_setup: 400,
            t_sync: 2000,
            t_phase: 0,
            message_extra_words: 0,
            clock_hz: 1_000_000_000,
            word_bytes: 8,
            copy_clocks_per_word: 1,
            combine_clocks_per_word: 1,
            network_overhead: 800,
            ..Self::iwarp()
        }
    }

    /// Clocks of a context switch: `t_sync + t_phase`.
    pub fn switch_clocks(&self) -> u64 {
        u64::from(self.t_sync) + u64::from(self.t_phase)
    }

    /// Whether agents observe planned starts ([`Parameters::timed_starts`]).
    pub fn has_timed_starts(&self) -> bool {
        self.timed_starts != 0
    }

    /// The numeric parameters: name, value, least and greatest allowed value.
    ///
    /// All formats, settings and error messages are derived from this list.
    pub fn numbers(&self) -> [(&'static str, u32, u32, u32); 27] {
        let c = limits::CLOCKS;
        let channels = limits::CHANNELS_PER_CELL;
        [
            ("channels_per_cell", self.channels_per_cell, 1, channels),
            ("channels_reserved", self.channels_reserved, 0, channels),
            ("channel_depth", self.channel_depth, 1, limits::CHANNEL_DEPTH),
            ("link_clocks_per_word", self.link_clocks_per_word, 1, c),
            ("access_clocks_per_word", self.access_clocks_per_word, 1, c),
            ("streams", self.streams, 1, limits::STREAMS),
            ("stream_setup", self.stream_setup, 0, c),
            ("t_sync", self.t_sync, 0, c),
            ("t_phase", self.t_phase, 0, c),
            ("c_send", self.c_send, 0, c),
            ("c_receive", self.c_receive, 0, c),
            ("message_extra_words", self.message_extra_words, 0, limits::WORDS),
            ("clock_hz", self.clock_hz, 1, u32::MAX),
            ("word_bytes", self.word_bytes, 1, 4096),
            ("timed_starts", self.timed_starts, 0, 1),
            ("copy_clocks_per_word", self.copy_clocks_per_word, 0, c),
            ("combine_clocks_per_word", self.combine_clocks_per_word, 0, c),
            ("control_barrier", self.control_barrier, 0, c),
            ("control_reduce", self.control_reduce, 0, c),
            ("control_broadcast", self.control_broadcast, 0, c),
            ("control_clocks_per_word", self.control_clocks_per_word, 0, c),
            ("network_overhead", self.network_overhead, 0, c),
            ("network_clocks_per_word", self.network_clocks_per_word, 0, c),
            ("active_words", self.active_words, 0, limits::ACTIVE_WORDS),
            ("c_active_send", self.c_active_send, 0, c),
            ("c_active_receive", self.c_active_receive, 0, c),
            ("c_poll", self.c_poll, 0, c),
        ]
    }

    /// The values of the rows of [`Parameters::numbers`] after the first ones, as binary files and
    /// digests of machines with parameters of messages have them: those of active messages only if
    /// one is not the default, so that the bytes and digests of other machines do not change.
    pub(crate) fn later_numbers(&self) -> Vec<u32> {
        let end = if self.has_active_parameters() { usize::MAX } else { BEFORE_ACTIVE };
        self.numbers().iter().take(end).skip(FIRST_NUMBERS).map(|row| row.1).collect()
    }

    /// Whether a parameter that version 5 of the formats does not have differs from its default.
    pub(crate) fn has_active_parameters(&self) -> bool {
        self.numbers().iter().skip(BEFORE_ACTIVE).any(|row| row.1 != 0)
    }

    /// The rows of [`Parameters::numbers`] that files and reports state: those that every machine
    /// had before the protocols of messages were added, and of the later ones those that are not
    /// the default of [`Parameters::iwarp`].
    pub fn stated_numbers(&self) -> impl Iterator<Item = (&'static str, u32, u32, u32)> {
        let defaults = Self::iwarp().numbers();
        let rows = self.numbers().into_iter().zip(defaults).enumerate();
        let stated = rows.filter(|(row, (own, default))| *row < FIRST_NUMBERS || own != default);
        stated.map(|(_, (own, _))| own)
    }

    /// The names that [`Parameters::set`] knows.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.numbers().into_iter().map(|row| row.0).chain(["duplex", "protocol"])
    }

    /// Whether a parameter that version 3 of the formats does not have differs from its default.
    pub(crate) fn has_message_parameters(&self) -> bool {
        self.protocol != Protocol::Standing || self.stated_numbers().count() > FIRST_NUMBERS
    }

    /// Sets a parameter by its name in [`Parameters::numbers`], `duplex` to `full` or `half`, or
    /// `protocol` to `standing` or `rendezvous`.
    ///
    /// # Errors
    /// An unknown name (the help lists the known names), or a value that is not a number or out of
    /// range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InputError> {
        let bad = |message: String| InputError::new("<parameter>", At::Path(name.into()), message);
        if name == "duplex" {
            self.duplex = match value {
                "full" => Duplex::Full,
                "half" => Duplex::Half,
                _ => return Err(bad(format!("`{value}` is not a duplex; expected full or half"))),
            };
            return Ok(());
        }
        if name == "protocol" {
            let known = "standing or rendezvous";
            self.protocol = Protocol::parse(value)
                .ok_or_else(|| bad(format!("`{value}` is not a protocol; expected {known}")))?;
            return Ok(());
        }
        let numbers = self.numbers();
        let Some(&(_, _, least, most)) = numbers.iter().find(|row| row.0 == name) else {
            let known: Vec<&str> = self.names().collect();
            return Err(bad(format!("`{name}` is not a machine parameter")).help(suggestion(
                name,
                &known,
                "known parameters",
            )));
        };
        let number = value.parse::<u32>().ok().filter(|n| (least..=most).contains(n));
        let Some(number) = number else {
            return Err(bad(format!("`{value}` is not a whole number from {least} to {most}")));
        };
        *self.number_mut(name).expect("every listed parameter has a field") = number;
        Ok(())
    }

    fn number_mut(&mut self, name: &str) -> Option<&mut u32> {
        Some(match name {
            "channels_per_cell" => &mut self.channels_per_cell,
            "channels_reserved" => &mut self.channels_reserved,
            "channel_depth" => &mut self.channel_depth,
            "link_clocks_per_word" => &mut self.link_clocks_per_word,
            "access_clocks_per_word" => &mut self.access_clocks_per_word,
            "streams" => &mut self.streams,
            "stream_setup" => &mut self.stream_setup,
            "t_sync" => &mut self.t_sync,
            "t_phase" => &mut self.t_phase,
            "c_send" => &mut self.c_send,
            "c_receive" => &mut self.c_receive,
            "message_extra_words" => &mut self.message_extra_words,
            "clock_hz" => &mut self.clock_hz,
            "word_bytes" => &mut self.word_bytes,
            "timed_starts" => &mut self.timed_starts,
            "copy_clocks_per_word" => &mut self.copy_clocks_per_word,
            "combine_clocks_per_word" => &mut self.combine_clocks_per_word,
            "control_barrier" => &mut self.control_barrier,
            "control_reduce" => &mut self.control_reduce,
            "control_broadcast" => &mut self.control_broadcast,
            "control_clocks_per_word" => &mut self.control_clocks_per_word,
            "network_overhead" => &mut self.network_overhead,
            "network_clocks_per_word" => &mut self.network_clocks_per_word,
            "active_words" => &mut self.active_words,
            "c_active_send" => &mut self.c_active_send,
            "c_active_receive" => &mut self.c_active_receive,
            "c_poll" => &mut self.c_poll,
            _ => return None,
        })
    }

    fn check(&self) -> Result<(), ShapeError> {
        for (name, value, least, most) in self.numbers() {
            if !(least..=most).contains(&value) {
                return Err(ShapeError::new(
                    name,
                    format!("{value} is out of range, expected {least} to {most}"),
                ));
            }
        }
        Ok(())
    }
}

/// A directed link. A record with public fields; any pair of cells can be represented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The cell that sends over it.
    pub source: CellId,
    /// The cell that receives over it.
    pub target: CellId,
}

/// A machine: its network, its parameters, and the cells and links that are dead.
///
/// ```
/// use conset_ir::{CellId, Machine};
///
/// let machine = Machine::from_spec("torus:4x4")?;
/// assert_eq!((machine.cell_count(), machine.link_count()), (16, 64));
/// for &link in machine.outgoing(CellId(0)) {
///     println!("{link} leads to {}", machine.link(link).target);
/// }
/// # Ok::<(), conset_ir::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    name: String,
    topology: Topology,
    parameters: Parameters,
    agents: u32,
    links: Vec<Link>,
    /// Live links by source.
    outgoing: Lists<LinkId>,
    /// Live links by target.
    incoming: Lists<LinkId>,
    dead_cells: Vec<CellId>,
    dead_links: Vec<(CellId, CellId)>,
    alive: Vec<bool>,
}

impl Machine {
    /// Builds a machine. `dead_links` are pairs of cells; a pair marks every parallel link from the
    /// first cell to the second as dead. The lists of dead cells and links may have any order.
    ///
    /// # Errors
    /// A name that is empty or too long, a topology or parameter out of range, a dead cell or link
    /// that does not exist.
    pub fn new(
        name: impl Into<String>,
        topology: Topology,
        parameters: Parameters,
        mut dead_cells: Vec<CellId>,
        mut dead_links: Vec<(CellId, CellId)>,
    ) -> Result<Self, ShapeError> {
        let name = name.into();
        if name.is_empty() || name.len() > limits::NAME || name.chars().any(char::is_control) {
            return Err(ShapeError::new(
                "machine.name",
                format!("a name has 1 to {} bytes and no control characters", limits::NAME),
            ));
        }
        parameters.check()?;
        let graph = topology.graph()?;
        let cells = graph.node_count();
        if graph.edge_count() > limits::LINKS {
            return Err(ShapeError::new("topology", format!("more than {} links", limits::LINKS)));
        }
        let links: Vec<Link> = graph
            .edge_references()
            .map(|edge| Link {
                source: CellId::from_index(edge.source().index()),
                target: CellId::from_index(edge.target().index()),
            })
            .collect();

        dead_cells.sort_unstable();
        dead_cells.dedup();
        dead_links.sort_unstable();
        dead_links.dedup();
        let mut alive = vec![true; cells];
        for cell in &dead_cells {
            match alive.get_mut(cell.index()) {
                Some(flag) => *flag = false,
                None => {
                    return Err(ShapeError::new(
                        "dead_cells",
                        format!("{cell} is not one of the machine's {cells} cells"),
                    ));
                }
            }
        }
        let is_dead = |link: &Link| {
            !alive[link.source.index()]
                || !alive[link.target.index()]
                || dead_links.binary_search(&(link.source, link.target)).is_ok()
        };
        if !dead_links.is_empty() {
            let mut known: Vec<(CellId, CellId)> =
                links.iter().map(|link| (link.source, link.target)).collect();
            known.sort_unstable();
            if let Some((from, to)) = dead_links.iter().find(|d| known.binary_search(d).is_err()) {
                return Err(ShapeError::new("dead_links", format!("no link joins {from} to {to}")));
            }
        }
        let live = links
            .iter()
            .enumerate()
            .filter(|(_, link)| !is_dead(link))
            .map(|(row, link)| (LinkId::from_index(row), *link));
        let outgoing = Lists::new(cells, live.clone().map(|(id, link)| (link.source.0, id)));
        let incoming = Lists::new(cells, live.map(|(id, link)| (link.target.0, id)));
        let agents = to_u32(topology.agents()?);
        Ok(Self {
            name,
            topology,
            parameters,
            agents,
            links,
            outgoing,
            incoming,
            dead_cells,
            dead_links,
            alive,
        })
    }

    /// The presets that [`Machine::from_spec`] knows, each with a one-line description.
    pub const PRESETS: [(&'static str, &'static str); 15] = [
        ("iwarp", "the paper's machine: 8x8 torus, streaming at 2 clocks a word (iwarp:16x16)"),
        ("iwarp-fem", "the same in the FEM loops: 10 clocks a word, half duplex"),
        ("iwarp-stream", "the same with 98 clocks to start a stream, as Tables 1 to 3 measured"),
        ("iwarp-spool", "the same with 400 clocks to start a spool, an upper limit"),
        ("iwarp-timed", "the same with agents that observe planned starts"),
        ("torus", "any torus with iWarp's parameters (torus:4x4x4)"),
        ("mesh", "any grid without wrap-around links (mesh:8x8)"),
        ("ring", "a torus of one dimension (ring:16)"),
        ("hypercube", "2^d cells (hypercube:6)"),
        ("fat-tree", "CM-5 style 4-ary fat-tree over n cells (fat-tree:64, fat-tree:32/2.2.2.4)"),
        ("cm5", "a CM-5: fat-tree with parents 2.2.2.4, synchronous messages (cm5:256)"),
        ("cm5-active", "the same with active messages, by which its cells send in epochs"),
        ("delta", "an Intel Delta: mesh, messages wait in the network (delta:16x16)"),
        (
            "cluster",
            "computers that pass messages: any cell to any other (cluster:64, cluster:16x4)",
        ),
        ("t3d", "a Cray T3D: torus of three dimensions, synchronous messages (t3d:4x4x2)"),
    ];

    /// The machine of a specification: a preset, optionally followed by a colon and sizes
    /// (`torus:4x4x4`); after the leaves of a fat-tree, optionally the parents of each level
    /// (`fat-tree:32/2.2.2.4`). A cluster is given by its nodes, or nodes and cells of each
    /// (`cluster:16x4`).
    ///
    /// # Errors
    /// An unknown preset (the error lists the known ones) or sizes that do not fit it.
    pub fn from_spec(spec: &str) -> Result<Self, SpecError> {
        let (preset, sizes) = match spec.split_once(':') {
            Some((preset, sizes)) => (preset, Some(sizes)),
            None => (spec, None),
        };
        let number = |text: &str| -> Result<u32, SpecError> {
            text.parse::<u32>().map_err(|_| {
                let example = match preset {
                    "ring" | "fat-tree" => "16",
                    "cm5" | "cm5-active" => "32",
                    "cluster" => "16x4",
                    "hypercube" => "6",
                    _ => "8x8",
                };
                SpecError::Size {
                    spec: spec.to_owned(),
                    size: text.to_owned(),
                    example: format!("{preset}:{example}"),
                }
            })
        };
        let dims = |default: &[u32]| -> Result<Vec<u32>, SpecError> {
            match sizes {
                None => Ok(default.to_vec()),
                Some(sizes) => sizes.split('x').map(number).collect(),
            }
        };
        let one = |default: u32| sizes.map_or(Ok(default), number);
        let topology = match preset {
            "iwarp" | "iwarp-fem" | "iwarp-stream" | "iwarp-spool" | "iwarp-timed" | "torus" => {
                Topology::Torus { dims: dims(&[8, 8])? }
            }
            "mesh" => Topology::Mesh { dims: dims(&[8, 8])? },
            "delta" => Topology::Mesh { dims: dims(&[16, 16])? },
            "t3d" => Topology::Torus { dims: dims(&[4, 4, 2])? },
            "cm5" | "cm5-active" => {
                Topology::FatTree { leaves: one(32)?, parents: vec![2, 2, 2, 4] }
            }
            "ring" => Topology::Ring { cells: one(16)? },
            "hypercube" => Topology::Hypercube { dimension: one(6)? },
            "cluster" => match dims(&[64])?[..] {
                [nodes] => Topology::Cluster { nodes, cells_per_node: 1 },
                [nodes, cells_per_node] => Topology::Cluster { nodes, cells_per_node },
                // More sizes are no number.
                _ => Topology::Cluster { nodes: one(64)?, cells_per_node: 1 },
            },
            "fat-tree" => {
                let (leaves, parents) = match sizes.and_then(|sizes| sizes.split_once('/')) {
                    Some((leaves, parents)) => (Some(leaves), Some(parents)),
                    None => (sizes, None),
                };
                let parents = match parents {
                    Some(parents) => parents.split('.').map(number).collect::<Result<_, _>>()?,
                    None => Topology::DEFAULT_PARENTS.to_vec(),
                };
                Topology::FatTree { leaves: leaves.map_or(Ok(64), number)?, parents }
            }
            _ => {
                let known: Vec<&str> = Self::PRESETS.iter().map(|p| p.0).collect();
                return Err(SpecError::UnknownPreset {
                    spec: spec.to_owned(),
                    preset: preset.to_owned(),
                    help: suggestion(preset, &known, "presets"),
                });
            }
        };
        let parameters = match preset {
            "iwarp-fem" => Parameters::iwarp_fem(),
            "iwarp-stream" => Parameters::iwarp_stream(),
            "iwarp-spool" => Parameters::iwarp_spool(),
            "iwarp-timed" => Parameters::iwarp_timed(),
            "cm5" => Parameters::cm5(),
            "cm5-active" => Parameters::cm5_active(),
            "delta" => Parameters::delta(),
            "t3d" => Parameters::t3d(),
            "cluster" => Parameters::cluster(),
            _ => Parameters::iwarp(),
        };
        Self::new(preset, topology, parameters, Vec::new(), Vec::new())
            .map_err(|error| SpecError::Shape { spec: spec.to_owned(), error })
    }

    /// The same machine with other parameters.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn with_parameters(&self, parameters: Parameters) -> Result<Self, ShapeError> {
        parameters.check()?;
        Ok(Self { parameters, ..self.clone() })
    }

    /// The same machine with additional dead cells and dead links, as in [`Machine::new`].
    ///
    /// # Errors
    /// A cell or link that does not exist.
    pub fn with_dead(
        &self,
        cells: &[CellId],
        links: &[(CellId, CellId)],
    ) -> Result<Self, ShapeError> {
        Self::new(
            self.name.clone(),
            self.topology.clone(),
            self.parameters.clone(),
            [&self.dead_cells, cells].concat(),
            [&self.dead_links, links].concat(),
        )
    }

    /// The name of the machine: the preset, or the name in its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The topology of the network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The parameters of the machine model.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of cells, switches and dead cells included.
    pub fn cell_count(&self) -> usize {
        self.alive.len()
    }

    /// All cells, switches and dead cells included.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = CellId> + use<> {
        (0..to_u32(self.cell_count())).map(CellId)
    }

    /// Number of cells with an agent, dead ones included. Their ids precede those of switches.
    pub fn agent_count(&self) -> usize {
        index(self.agents)
    }

    /// Whether the cell has an agent and is not dead, so that it can be an end of a connection.
    pub fn is_endpoint(&self, cell: CellId) -> bool {
        cell.0 < self.agents && self.alive[cell.index()]
    }

    /// The cells that can be ends of connections, in id order.
    pub fn endpoints(&self) -> impl Iterator<Item = CellId> + '_ {
        (0..self.agents).map(CellId).filter(|&cell| self.is_endpoint(cell))
    }

    /// Whether the cell is not dead.
    pub fn is_alive(&self, cell: CellId) -> bool {
        self.alive[cell.index()]
    }

    /// Number of links, dead ones included.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The ends of a link.
    #[inline]
    pub fn link(&self, link: LinkId) -> Link {
        self.links[link.index()]
    }

    /// Whether two cells with agents belong to different nodes of a cluster, so that what one sends
    /// to the other goes through the network.
    pub fn is_between_nodes(&self, a: CellId, b: CellId) -> bool {
        matches!(self.topology, Topology::Cluster { .. })
            && self.topology.node_of(a) != self.topology.node_of(b)
    }

    /// Clocks of software at each end for a message or stream between two cells beyond those of
    /// others: `network_overhead` between two nodes, else 0.
    #[inline]
    pub fn network_overhead(&self, a: CellId, b: CellId) -> u32 {
        match self.parameters.network_overhead {
            0 => 0,
            clocks if self.is_between_nodes(a, b) => clocks,
            _ => 0,
        }
    }

    /// Whether a link is between a node and the network of a cluster.
    fn is_network_link(&self, link: LinkId) -> bool {
        // The network is the last switch.
        let network = to_u32(self.cell_count() - 1);
        let Link { source, target } = self.link(link);
        matches!(self.topology, Topology::Cluster { nodes: 2.., .. })
            && (source.0 == network || target.0 == network)
    }

    /// Clocks for a word to cross a link: `link_clocks_per_word`, or `network_clocks_per_word` if
    /// that is not 0 and the link is between a node and the network of a cluster.
    #[inline]
    pub fn link_clocks(&self, link: LinkId) -> u32 {
        match self.parameters.network_clocks_per_word {
            0 => self.parameters.link_clocks_per_word,
            clocks if self.is_network_link(link) => clocks,
            _ => self.parameters.link_clocks_per_word,
        }
    }

    /// Clocks for a word to cross the slowest link between two cells: of the network if they belong
    /// to different nodes.
    #[inline]
    pub fn link_clocks_between(&self, a: CellId, b: CellId) -> u32 {
        let link = self.parameters.link_clocks_per_word;
        match self.parameters.network_clocks_per_word {
            0 => link,
            _ if !self.is_between_nodes(a, b) => link,
            // With one cell a node there are no other links.
            clocks if self.topology.has_one_cell_per_node() => clocks,
            clocks => clocks.max(link),
        }
    }

    /// The least and the greatest number of clocks for a word to cross a link. A machine need not
    /// have a link of either.
    pub fn link_clocks_range(&self) -> [u32; 2] {
        let link = self.parameters.link_clocks_per_word;
        match (&self.topology, self.parameters.network_clocks_per_word) {
            (_, 0) => [link; 2],
            (Topology::Cluster { .. }, clocks) => [clocks.min(link), clocks.max(link)],
            _ => [link; 2],
        }
    }

    /// Live links out of a cell, in id order.
    #[inline]
    pub fn outgoing(&self, cell: CellId) -> &[LinkId] {
        self.outgoing.of(cell.0)
    }

    /// Live links into a cell, in id order.
    #[inline]
    pub fn incoming(&self, cell: CellId) -> &[LinkId] {
        self.incoming.of(cell.0)
    }

    /// Live links from one cell to another, in id order: none, one, or several in parallel.
    pub fn links_between(&self, from: CellId, to: CellId) -> impl Iterator<Item = LinkId> + '_ {
        self.outgoing(from).iter().copied().filter(move |&l| self.link(l).target == to)
    }

    /// Dead cells, sorted.
    pub fn dead_cells(&self) -> &[CellId] {
        &self.dead_cells
    }

    /// Dead links as pairs of cells, sorted; a pair denotes all links from the first cell to the
    /// second.
    pub fn dead_links(&self) -> &[(CellId, CellId)] {
        &self.dead_links
    }

    /// Whether a route over these cells passes no dead cell and no dead link.
    pub fn carries(&self, cells: &[CellId]) -> bool {
        let dead = |hop: &[CellId]| self.dead_links.binary_search(&(hop[0], hop[1])).is_ok();
        cells.iter().all(|&cell| self.is_alive(cell)) && !cells.windows(2).any(dead)
    }

    /// The distance in hops from `source` to every cell over live links, by breadth-first search;
    /// `u32::MAX` for a cell that cannot be reached. O(cells + links).
    pub fn hops_from(&self, source: CellId) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.cell_count()];
        if !self.is_alive(source) {
            return hops;
        }
        hops[source.index()] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(cell) = queue.pop_front() {
            for &link in self.outgoing(cell) {
                let next = self.link(link).target;
                if hops[next.index()] == u32::MAX {
                    hops[next.index()] = hops[cell.index()] + 1;
                    queue.push_back(next);
                }
            }
        }
        hops
    }
}

/// Two machines are equal if their descriptions are; the arrays are derived from these.
impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.topology == other.topology
            && self.parameters == other.parameters
            && self.dead_cells == other.dead_cells
            && self.dead_links == other.dead_links
    }
}

impl Eq for Machine {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iwarp_is_the_papers_machine() {
        let machine = Machine::from_spec("iwarp").unwrap();
        assert_eq!(machine.cell_count(), 64);
        assert_eq!(machine.link_count(), 256);
        assert_eq!(machine.parameters().switch_clocks(), 528);
        assert_eq!(machine.hops_from(CellId(0)).iter().sum::<u32>(), 256);
    }

    #[test]
    fn dead_cells_keep_their_ids_and_lose_their_links() {
        let machine = Machine::new(
            "holed",
            Topology::Mesh { dims: vec![3, 1] },
            Parameters::iwarp(),
            vec![CellId(1)],
            vec![],
        )
        .unwrap();
        assert_eq!(machine.cell_count(), 3);
        assert_eq!(machine.hops_from(CellId(0)), [0, u32::MAX, u32::MAX]);
        assert_eq!(machine.endpoints().collect::<Vec<_>>(), [CellId(0), CellId(2)]);
        assert!(machine.outgoing(CellId(0)).is_empty());
    }

    #[test]
    fn every_parameter_can_be_set_and_misspelt_ones_are_refused() {
        let mut parameters = Parameters::iwarp();
        for (name, _, least, _) in Parameters::iwarp().numbers() {
            parameters.set(name, &least.to_string()).unwrap();
            assert!(parameters.set(name, "-1").is_err());
            assert!(parameters.numbers().iter().any(|row| row.0 == name && row.1 == least));
        }
        parameters.set("duplex", "half").unwrap();
        for (name, protocol) in Protocol::ALL {
            parameters.set("protocol", name).unwrap();
            assert_eq!((parameters.protocol, protocol.name()), (protocol, name));
        }
        assert!(parameters.set("protocol", "both").is_err());
        let error = parameters.set("chanels_per_cell", "3").unwrap_err();
        assert!(error.help.unwrap().contains("channels_per_cell"));
        for wrong in ["chanels_per_cell", "channels-per-cell", "CHANNELS_PER_CELL"] {
            let help = parameters.set(wrong, "3").unwrap_err().help.unwrap();
            assert!(help.starts_with("did you mean `channels_per_cell`?"), "{wrong}: {help}");
        }
    }

    #[test]
    fn wrong_specifications_say_what_is_known() {
        assert!(Machine::from_spec("torus:0x8").is_err());
        assert!(Machine::from_spec("torus:8x").is_err());
        assert!(Machine::from_spec("torus:70000x70000").is_err());
        let error = InputError::from(Machine::from_spec("cray").unwrap_err());
        assert!(error.help.unwrap().starts_with("presets: iwarp"));
        for (wrong, help) in [
            ("tours:3x3", "did you mean `torus`?"),
            ("IWARP", "did you mean `iwarp`?"),
            ("torus:3X3", "write torus:8x8"),
            ("ring:8x8", "write ring:16"),
            ("hypercube:8x8", "write hypercube:6"),
        ] {
            let error = Machine::from_spec(wrong).unwrap_err();
            let with_file = error.clone().with_alternative("give a file").help.unwrap();
            assert_eq!(
                with_file.ends_with("; or give a file"),
                matches!(error, SpecError::UnknownPreset { .. })
            );
            let error = InputError::from(error);
            assert!(error.help.as_ref().unwrap().starts_with(help), "{error}");
        }
    }
}
