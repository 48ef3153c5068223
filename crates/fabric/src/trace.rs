//! Traces: when streams were open and when contexts were switched.
//!
//! [`to_perfetto`] writes a trace in the trace event format that Perfetto and Chrome read: an array
//! of complete events with a start and a duration in microseconds. A set is a process, an agent's
//! port is a thread (several if it has several streams open at once), and one more thread has the
//! context switches.

use std::fmt::Write;

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
    /// Words of the stream.
    pub words: u32,
    /// Its slot among the port's open streams, from 0.
    pub slot: u32,
    /// When it was opened, in clocks.
    pub open: u64,
    /// When its last word was sent or received, in clocks.
    pub close: u64,
}

impl StreamSpan {
    /// The stream of the finished operation `done`, whose last word moved at clock `close` in phase
    /// `phase` of set number `set`.
    pub fn new(set: u32, phase: PhaseId, done: &OperationState, close: u64) -> Self {
        let OperationState { cell, direction, connection, words, opened: open, slot, .. } = *done;
        Self { set, phase, cell, direction, connection, words, slot, open, close }
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
}

/// The trace as a JSON array of events with `ph`, `ts`, `dur`, `pid`, `tid` and `name`. `pid` is
/// the set's position in the image; `ts` and `dur` are microseconds at the machine's clock frequency.
pub fn to_perfetto(trace: &Trace) -> String {
    // Thread 0 has the switches; then each cell has `slots` threads for its sends and as many for
    // its receives.
    let slots = trace.streams.iter().map(|s| u64::from(s.slot) + 1).max().unwrap_or(1);
    let thread = |cell: CellId, direction: Direction, slot: u32| {
        let side = u64::from(direction == Direction::Receive);
        1 + (2 * u64::from(cell.0) + side) * slots + u64::from(slot)
    };
    let mut out = Writer { text: String::from("["), clock_hz: u128::from(trace.clock_hz.max(1)) };
    for (pid, set) in (0..).zip(&trace.sets) {
        out.name("process_name", pid, 0, set);
        out.name("thread_name", pid, 0, "context switches");
    }
    let mut threads: Vec<(u64, u64, String)> = trace
        .streams
        .iter()
        .map(|s| {
            let name = format!("{} {}", s.cell, side_name(s.direction));
            (u64::from(s.set), thread(s.cell, s.direction, s.slot), name)
        })
        .collect();
    threads.sort_unstable();
    threads.dedup();
    for (pid, tid, name) in &threads {
        out.name("thread_name", *pid, *tid, name);
    }
    for s in &trace.switches {
        let name = format!("{} to {}", SWITCH_STEPS[s.step], s.phase);
        out.event(&name, u64::from(s.set), 0, s.start, s.clocks, "");
    }
    for s in &trace.streams {
        let name = format!("{} {}", side_name(s.direction), s.connection);
        let args = format!(",\"args\":{{\"words\":{},\"phase\":\"{}\"}}", s.words, s.phase);
        let tid = thread(s.cell, s.direction, s.slot);
        out.event(&name, u64::from(s.set), tid, s.open, s.close - s.open, &args);
    }
    out.text.push_str("\n]\n");
    out.text
}

fn side_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    }
}

struct Writer {
    text: String,
    clock_hz: u128,
}

impl Writer {
    fn separate(&mut self) {
        let first = self.text.len() == 1;
        self.text.push_str(if first { "\n" } else { ",\n" });
    }

    /// A metadata event that names a process or thread. Names are set names, ids and fixed words;
    /// none of them needs escaping in JSON.
    fn name(&mut self, what: &str, pid: u64, tid: u64, name: &str) {
        self.separate();
        write!(
            self.text,
            "{{\"ph\":\"M\",\"ts\":0,\"dur\":0,\"pid\":{pid},\"tid\":{tid},\
             \"name\":\"{what}\",\"args\":{{\"name\":\"{name}\"}}}}"
        )
        .expect("strings take all writes");
    }

    fn event(&mut self, name: &str, pid: u64, tid: u64, start: u64, clocks: u64, args: &str) {
        self.separate();
        self.text.push_str("{\"ph\":\"X\",\"ts\":");
        self.microseconds(start);
        self.text.push_str(",\"dur\":");
        self.microseconds(clocks);
        write!(self.text, ",\"pid\":{pid},\"tid\":{tid},\"name\":\"{name}\"{args}}}")
            .expect("strings take all writes");
    }

    /// Clocks as microseconds with six decimals, in integer arithmetic.
    fn microseconds(&mut self, clocks: u64) {
        let picoseconds = u128::from(clocks) * 1_000_000_000_000 / self.clock_hz;
        let (whole, rest) = (picoseconds / 1_000_000, picoseconds % 1_000_000);
        write!(self.text, "{whole}.{rest:06}").expect("strings take all writes");
    }
}
