//! Profiles: where every clock of an exchange went, at each agent, and which streams decide its end.
//!
//! # The clocks of a port
//!
//! A *port* is one direction of an agent, or both directions with half duplex (machine model, rule 4).
//! It does one thing at a time: it opens a stream or moves a word. So the clocks of a phase divide
//! at every port into these parts, whose sum is the length of the phase with its switch, *exactly*:
//!
//! | part | meaning |
//! |---|---|
//! | switch | context switches: `t_sync + t_phase` before each phase |
//! | set-up | opening streams: `stream_setup` each |
//! | software | of messages: `c_send`, `c_receive`, and copying words into a buffer (half duplex) |
//! | copying | of step plans under rendezvous: copying the words that the cell passes on |
//! | sending, receiving | moving words: `access_clocks_per_word` each; of messages also the extra words |
//! | partner | streams are open, but the other end of each is not open yet, or still being set up. Of messages: the message is at its target, which does something else or runs its software; or, at a receiver, no message is there |
//! | link | streams are open at both ends, and no word can move: words are on their way, links are shared, queues are full, or the other agent serves another stream |
//! | start | no stream is open, and one will be: its planned start, or a connection that the set orders before it, has not come |
//! | end | all streams of the port in this phase are complete, and others are not |
//!
//! A trace says when each stream was open at each end, and how many words it has. Set-up, sending and
//! receiving follow from these counts, and `start` and `end` from the union of the open intervals.
//! The rest of that union, in which the port was stalled, is divided into `partner` and `link`. In the
//! clocks in which no other end is open, a receiving port cannot move a word, so its part is exact. A
//! sending port can, as long as queues have space; then `partner` has at most all stalled clocks, and
//! may have clocks in which the port stalled later, as many as the queues of the route hold words.
//!
//! The same accounting is done with the cost model's times of streams ([`of_model`]) instead of a
//! trace; these are rounded to whole clocks, and the sums are the predicted clocks.
//!
//! With half duplex the parts of a port are those of both directions together, and a cell has one
//! port. Messages have two ports per cell, as their words are moved in the background; under
//! rendezvous with half duplex one.
//!
//! # Also here
//!
//! [`critical_path`] has the chain of streams and switches that decides the end, and the slack of all
//! others. [`what_if`] compiles the same sets for changed machines.

pub mod critical_path;
mod ports;
mod transfers;
pub mod what_if;

use conset_fabric::Checked;
use conset_fabric::messages::MessagesReport;
use conset_ir::{CellId, ConnectionSet, Direction, Machine, PhaseId, SetSchedule, Steps};
use conset_scheduler::Prediction;
use serde::Serialize;

pub use critical_path::{CriticalPath, PathCause, PathClocks, PathSegment, Slack, StreamSlack};
use transfers::{PhaseTransfers, PortLayout, Transport};

/// Clocks of a port, or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PortClocks {
    /// Context switches.
    pub switch: u64,
    /// Opening streams.
    pub setup: u64,
    /// The software of messages.
    pub software: u64,
    /// Copying words that are passed on.
    pub copying: u64,
    /// Moving words into the network.
    pub sending: u64,
    /// Taking words out of the network.
    pub receiving: u64,
    /// Waiting for the other end.
    pub partner: u64,
    /// Waiting for words or space in the network.
    pub link: u64,
    /// Waiting before a stream is opened.
    pub start: u64,
    /// Waiting for the end of the phase.
    pub end: u64,
}

impl PortClocks {
    /// The names of the parts, in the order of [`PortClocks::parts`].
    pub const NAMES: [&str; 10] = [
        "switch",
        "setup",
        "software",
        "copying",
        "sending",
        "receiving",
        "partner",
        "link",
        "start",
        "end",
    ];

    /// The parts, in the order of their names.
    pub fn parts(&self) -> [u64; 10] {
        let Self { switch, setup, software, copying, sending, .. } = *self;
        let Self { receiving, partner, link, start, end, .. } = *self;
        [switch, setup, software, copying, sending, receiving, partner, link, start, end]
    }

    /// All clocks.
    pub fn total(&self) -> u64 {
        self.parts().into_iter().fold(0, u64::saturating_add)
    }

    /// The clocks in which the port does nothing.
    pub fn idle(&self) -> u64 {
        [self.partner, self.link, self.start, self.end].into_iter().fold(0, u64::saturating_add)
    }

    fn add(&mut self, other: &Self) {
        let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        add(&mut self.switch, other.switch);
        add(&mut self.setup, other.setup);
        add(&mut self.software, other.software);
        add(&mut self.copying, other.copying);
        add(&mut self.sending, other.sending);
        add(&mut self.receiving, other.receiving);
        add(&mut self.partner, other.partner);
        add(&mut self.link, other.link);
        add(&mut self.start, other.start);
        add(&mut self.end, other.end);
    }

    fn sum<'a>(clocks: impl IntoIterator<Item = &'a Self>) -> Self {
        clocks.into_iter().fold(Self::default(), |mut sum, clocks| {
            sum.add(clocks);
            sum
        })
    }
}

/// Which directions of an agent a port has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PortSide {
    /// Sending.
    Send,
    /// Receiving.
    Receive,
    /// Both, with half duplex.
    Both,
}

impl PortSide {
    /// The spelling of the side.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Both => "both",
        }
    }
}

/// The clocks of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PortProfile {
    /// The cell.
    pub cell: CellId,
    /// Its direction.
    pub side: PortSide,
    /// Where its clocks went.
    pub clocks: PortClocks,
}

/// The profile of a phase. A set that is exchanged by messages has one, without a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseProfile {
    /// The phase.
    pub phase: PhaseId,
    /// Clocks of its context switch.
    pub switch: u64,
    /// Clocks from the end of the switch until the last word was received.
    pub clocks: u64,
    /// Streams or messages.
    pub streams: usize,
    /// Words that they carry.
    pub words: u64,
    /// The sums over all ports of a side, one for each side that the machine has.
    pub sides: Vec<SideClocks>,
    /// The ports of all cells with an agent, in the order of cells.
    pub ports: Vec<PortProfile>,
}

/// Sums over the ports of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SideClocks {
    /// The side.
    pub side: PortSide,
    /// The number of ports, so of cells.
    pub ports: usize,
    /// The sums of their clocks.
    pub clocks: PortClocks,
}

/// What the clocks of a profile are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClocksOf {
    /// Measured on the emulated fabric.
    Fabric,
    /// Predicted by the cost model.
    Model,
}

/// How a set is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangedBy {
    /// Phases, by context switches.
    Phases,
    /// A step plan.
    Steps,
    /// A message for each connection.
    Messages,
}

/// Where every clock of the exchange of a set went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SetProfile {
    /// The set's name.
    pub set: String,
    /// How it is exchanged.
    pub by: ExchangedBy,
    /// Whether the clocks are measured or predicted.
    pub clocks_of: ClocksOf,
    /// Clocks of the exchange; those of each port add up to this number.
    pub clocks: u64,
    /// The sums over all phases and all ports of a side.
    pub sides: Vec<SideClocks>,
    /// The sums over all phases, of each port.
    pub ports: Vec<PortProfile>,
    /// The phases in the order of execution.
    pub phases: Vec<PhaseProfile>,
    /// The chain that decides the end, and the slack of all streams.
    pub critical_path: CriticalPath,
}

/// The profile of a set that was executed on the fabric with a trace.
///
/// # Panics
/// If the run has no trace.
pub fn of_run(schedule: &SetSchedule, checked: &Checked) -> SetProfile {
    let trace = checked.trace.as_ref().expect("the run was traced");
    let timetable = &schedule.timetable;
    let machine = timetable.routing().machine();
    let phases = transfers::of_streams(machine, trace, &checked.report.phases);
    let phases = transfers::with_links(timetable, phases);
    profile(machine, timetable.routing().set(), &phases, ExchangedBy::Phases, ClocksOf::Fabric)
}

/// The profile of a set by the cost model, which adds up to the clocks that it predicts.
pub fn of_model(schedule: &SetSchedule, prediction: &Prediction) -> SetProfile {
    let timetable = &schedule.timetable;
    let machine = timetable.routing().machine();
    let phases = transfers::of_model(timetable, prediction);
    let phases = transfers::with_links(timetable, phases);
    profile(machine, timetable.routing().set(), &phases, ExchangedBy::Phases, ClocksOf::Model)
}

/// The profile of a set that was exchanged by one message for each connection, with a trace.
///
/// # Panics
/// If the run has no trace.
pub fn of_messages(machine: &Machine, set: &ConnectionSet, report: &MessagesReport) -> SetProfile {
    let trace = report.trace.as_ref().expect("the run was traced");
    let phases = transfers::of_messages(machine, trace, report.clocks, None);
    profile(machine, set, &[phases], ExchangedBy::Messages, ClocksOf::Fabric)
}

/// The profile of a step plan that was executed with a trace.
///
/// # Panics
/// If the run has no trace.
pub fn of_steps(steps: &Steps, report: &MessagesReport) -> SetProfile {
    let trace = report.trace.as_ref().expect("the run was traced");
    let phases = transfers::of_messages(steps.machine(), trace, report.clocks, Some(steps));
    profile(steps.machine(), steps.set(), &[phases], ExchangedBy::Steps, ClocksOf::Fabric)
}

/// The profile of a step plan by the cost model, which adds up to the clocks that it predicts; `None`
/// if messages have no route on the machine.
pub fn of_steps_model(steps: &Steps) -> Option<SetProfile> {
    let trace = transfers::predicted_trace(steps)?;
    let clocks = trace.streams.iter().map(|span| span.close).max().unwrap_or(0);
    let phases = transfers::of_messages(steps.machine(), &trace, clocks, Some(steps));
    let by = ExchangedBy::Steps;
    Some(profile(steps.machine(), steps.set(), &[phases], by, ClocksOf::Model))
}

fn profile(
    machine: &Machine,
    set: &ConnectionSet,
    phases: &[PhaseTransfers],
    by: ExchangedBy,
    clocks_of: ClocksOf,
) -> SetProfile {
    let transport = match by {
        ExchangedBy::Phases => Transport::Streams,
        _ => Transport::of_messages(machine.parameters()),
    };
    let layout = PortLayout::new(machine, transport);
    let critical_path = critical_path::of(set, phases, &layout, by);
    let profiles: Vec<PhaseProfile> = phases
        .iter()
        .map(|phase| {
            let ports = ports::of_phase(phase, transport, &layout, clocks_of);
            PhaseProfile {
                phase: phase.phase,
                switch: phase.switch,
                clocks: phase.clocks,
                streams: phase.transfers.len(),
                words: phase.transfers.iter().map(|t| u64::from(t.words)).sum(),
                sides: sides(&ports),
                ports,
            }
        })
        .collect();
    let mut ports: Vec<PortProfile> = layout
        .ports()
        .map(|(cell, side)| PortProfile { cell, side, clocks: PortClocks::default() })
        .collect();
    for phase in &profiles {
        for (sum, port) in ports.iter_mut().zip(&phase.ports) {
            sum.clocks.add(&port.clocks);
        }
    }
    let clocks = profiles
        .iter()
        .fold(0u64, |sum, phase| sum.saturating_add(phase.switch).saturating_add(phase.clocks));
    SetProfile {
        set: set.name().to_owned(),
        by,
        clocks_of,
        clocks,
        sides: sides(&ports),
        ports,
        phases: profiles,
        critical_path,
    }
}

/// The sums over the ports of each side.
fn sides(ports: &[PortProfile]) -> Vec<SideClocks> {
    let of = |side| {
        let clocks = || ports.iter().filter(move |port| port.side == side).map(|port| &port.clocks);
        SideClocks { side, ports: clocks().count(), clocks: PortClocks::sum(clocks()) }
    };
    let sides = [PortSide::Send, PortSide::Receive, PortSide::Both].map(of);
    sides.into_iter().filter(|side| side.ports > 0).collect()
}

/// The side of an end in its port.
fn side_of(direction: Direction, both: bool) -> PortSide {
    match direction {
        _ if both => PortSide::Both,
        Direction::Send => PortSide::Send,
        Direction::Receive => PortSide::Receive,
    }
}
