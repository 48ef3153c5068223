//! Traces: when streams were open, when contexts were switched, and which streams belong together.
//!
//! A trace has one span for each end of a stream or message. [`Trace::transfers`] pairs the two ends.
//! [`perfetto`] writes traces for trace viewers, and [`routes`] finds the links of a transfer.

pub mod perfetto;
pub mod routes;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, PhaseId};

use crate::engine::OperationState;

/// The seven steps of a context switch (paper, section 4.2).
pub const SWITCH_STEPS: [&str; 7] = [
    "disable global events",
    "synchronise",
    "freeze",
    "write forwarding tables",
    "wake",
    "enable global events",
    "resume",
];

/// A stream, from its opening to its last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSpan {
    /// The set's position in the image.
    pub set: u32,
    /// The phase.
    pub phase: PhaseId,
    /// The cell.
    pub cell: CellId,
    /// Send or receive.
    pub direction: Direction,
    /// The connection.
    pub connection: ConnectionId,
    /// The index in the connection of its first word; with connection, phase and set it identifies
    /// the stream, so both ends have the same. 0 for messages.
    pub first_word: u32,
    /// Words of the stream.
    pub words: u32,
    /// Its slot among the port's open streams, from 0.
    pub slot: u32,
    /// When it was opened, in clocks.
    pub open: u64,
    /// When its last word was sent or received, in clocks.
    pub close: u64,
    /// Of the receiving of a message: when its header arrived at the cell, in clocks.
    pub arrived: Option<u64>,
}

impl StreamSpan {
    /// The stream of the finished operation `done`, whose last word moved at clock `close` in phase
    /// `phase` of set number `set`.
    pub fn new(set: u32, phase: PhaseId, done: &OperationState, close: u64) -> Self {
        let OperationState { cell, direction, connection, words, first_word, .. } = *done;
        let (open, slot, arrived) = (done.opened, done.slot, None);
        Self {
            set,
            phase,
            cell,
            direction,
            connection,
            first_word,
            words,
            slot,
            open,
            close,
            arrived,
        }
    }
}

/// A step of a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchStep {
    /// The set's position in the image.
    pub set: u32,
    /// The phase switched to.
    pub phase: PhaseId,
    /// Index in [`SWITCH_STEPS`].
    pub step: usize,
    /// When it started, in clocks.
    pub start: u64,
    /// Its duration in clocks.
    pub clocks: u64,
}

/// The recorded events, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Clock frequency in Hz.
    pub clock_hz: u32,
    /// The names of the image's sets.
    pub sets: Vec<String>,
    /// Streams.
    pub streams: Vec<StreamSpan>,
    /// Steps of context switches.
    pub switches: Vec<SwitchStep>,
}

impl Trace {
    /// Records a context switch that started at clock `start`. Synchronising takes `t_sync` clocks
    /// and writing the tables `t_phase`; these include the other steps.
    pub fn switch(&mut self, set: u32, phase: PhaseId, start: u64, t_sync: u32, t_phase: u32) {
        let mut at = start;
        for step in 0..SWITCH_STEPS.len() {
            let clocks = u64::from(match step {
                1 => t_sync,
                3 => t_phase,
                _ => 0,
            });
            self.switches.push(SwitchStep { set, phase, step, start: at, clocks });
            at += clocks;
        }
    }

    /// Both ends of every stream and message, in the order of set, phase, connection and first word.
    /// If a set was exchanged several times, the k-th send belongs to the k-th receive. An end
    /// without the other one, in a trace of a run that was stopped, is left out. O(n log n).
    pub fn transfers(&self) -> Vec<Transfer> {
        let key = |row: u32| {
            let s = &self.streams[index(row)];
            (s.set, s.phase, s.connection, s.first_word)
        };
        let rows = |direction| {
            let rows = 0..to_u32(self.streams.len());
            let mut rows: Vec<u32> =
                rows.filter(|&row| self.streams[index(row)].direction == direction).collect();
            // The sort is stable, and spans are in the order in which they ended.
            rows.sort_by_key(|&row| key(row));
            rows
        };
        let (sends, receives) = (rows(Direction::Send), rows(Direction::Receive));
        let mut transfers = Vec::with_capacity(sends.len());
        let (mut s, mut r) = (0, 0);
        while let (Some(&send), Some(&receive)) = (sends.get(s), receives.get(r)) {
            let order = key(send).cmp(&key(receive));
            if order.is_eq() {
                let (send, receive) = (self.streams[index(send)], self.streams[index(receive)]);
                transfers.push(Transfer { send, receive });
            }
            s += usize::from(order.is_le());
            r += usize::from(order.is_ge());
        }
        transfers
    }
}

/// Both ends of a stream or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// At the source.
    pub send: StreamSpan,
    /// At the target.
    pub receive: StreamSpan,
}
