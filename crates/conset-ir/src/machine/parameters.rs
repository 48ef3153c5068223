//! The parameters of the machine model: their names, ranges and values.

use serde::{Deserialize, Serialize};

use super::presets::suggestion;
use crate::error::{At, InputError, ShapeError};
use crate::limits;

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
/// field; [`Machine::new`](super::Machine::new) checks the ranges.
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
impl Parameters {
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

    pub(super) fn check(&self) -> Result<(), ShapeError> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
