//! The emulated iWarp machine: links, channels, agents, barrier and context switch.
//!
//! The fabric executes an [`Image`](conset_ir::Image) word by word with the caller's own data. It
//! reads only the forwarding tables and the operation lists; the routes of the words, the times and
//! the delivered data are results. It implements rules 3 to 7 of the machine model:
//!
//! | module | rules |
//! |---|---|
//! | `network` | links and channels: queues, arbitration, space |
//! | `agents` | agents: ports, streams, the order of an operation list, duplex |
//! | `tables` | loading a context |
//! | [`engine`] | time; the interface to the driver |
//! | [`exchange`] | the phases of a set: context switch, operation lists |
//! | [`order`] | the set's order between cells |
//! | [`injection`] | faults of the hardware on purpose |
//! | [`detection`] | counts and check words, by which cells notice such faults |
//! | [`wait_graph`] | the explanation of deadlocks |
//!
//! Times are exact in clocks. With nothing else in the network, `m` words over `d` links take
//!
//! ```text
//! setup + access + d * link + access + (m - 1) * max(access, link)      d > 0
//! setup + 2 * access + (m - 1) * access                                 d = 0, full duplex
//! 2 * setup + 2 * m * access                                            d = 0, half duplex
//! ```
//!
//! for any queue depth, if the receiver opens its stream in the same clock as the sender.
//!
//! [`messages`] is the machine's other model, message passing, on the same links and channels.
//!
//! Not modelled: the reserved channels (no operation uses them). The fabric does not judge an image: a wrong image may run without a fault by chance. Only the checker
//! rejects wrong images.
//!
//! # Example
//!
//! A word from cell 0 to its neighbour on a ring, first by an image written by hand and then as a
//! message:
//!
//! ```
//! use std::sync::Arc;
//! use conset_fabric::messages::{self, MessageOptions};
//! use conset_ir::{
//!     CellContext, CellId, ChannelEntry, ChannelId, Connection, ConnectionId, ConnectionSet,
//!     Direction, Feed, Image, Machine, Operation, PhaseImage, SetImage, Sink,
//! };
//!
//! let machine = Arc::new(Machine::from_spec("ring:4")?);
//! let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(1), 1)])?;
//! let (x0, channel) = (ConnectionId(0), ChannelId(0));
//! let link = machine.links_between(CellId(0), CellId(1)).next().expect("neighbours");
//! let forward = Sink::Forward { link, channel };
//! let rows = [
//!     ChannelEntry { channel, feed: Feed::Gate(x0), sink: forward },
//!     ChannelEntry { channel, feed: Feed::Link(link), sink: Sink::Gate(x0) },
//! ];
//! let send = Operation {
//!     direction: Direction::Send, connection: x0, channel, first_word: 0, words: 1, start: 0,
//! };
//! let receive = Operation { direction: Direction::Receive, ..send };
//! let phase = PhaseImage::from_cells([
//!     CellContext { entries: &rows[..1], operations: &[send] },
//!     CellContext { entries: &rows[1..], operations: &[receive] },
//!     CellContext { entries: &[], operations: &[] },
//!     CellContext { entries: &[], operations: &[] },
//! ]);
//! let sets = vec![SetImage::of_phases(Arc::new(set.clone()), vec![phase])];
//! let checked = conset_fabric::run_checked(Image::new(machine.clone(), sets)?, 0, 1, false)?;
//! assert!(checked.payload_ok);
//!
//! let report = messages::run_checked(&machine, &set, &MessageOptions::default())?;
//! assert!(report.payload_ok);
//! // Each message has `message_extra_words` more than its connection.
//! assert!(report.word_hops > checked.report.word_hops);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

mod agents;
mod base;
pub mod check;
mod coverage;
mod delay_queue;
pub mod detection;
pub mod engine;
pub mod exchange;
mod fast_forward;
pub mod fault;
pub mod fault_run;
pub mod injection;
pub mod messages;
mod network;
pub mod order;
pub mod payload;
mod ready_list;
pub mod report;
mod round_robin;
mod tables;
pub mod trace;
pub mod wait_graph;

#[cfg(test)]
mod tests;

pub use check::{Checked, run_checked, run_with};
pub use coverage::coverage_fault;
pub use detection::{CHECK_WORDS, Damage, Detection};
pub use engine::{Engine, OperationId, OperationState, Stop, Submission};
pub use exchange::{ErrorCounts, Fabric, FabricOptions, Interruption, Jitter, WordRun};
pub use fault::{Fault, FaultKind, GateProblem, MessageProblem, TableProblem, WaitCause, WaitEdge};
pub use fault_run::{FaultRun, Outcome, run_with_faults};
pub use injection::{
    FaultExtent, FaultPlan, FaultPlanError, FaultyPart, HardwareFaults, PlannedFault, SwitchEffect,
    SwitchFaults, WordEffect,
};
pub use order::OrderKeeper;
pub use payload::{Payload, SetBuffers, synthetic_word};
pub use report::{ExchangeReport, PhaseReport};
pub use trace::perfetto::{TraceSource, write_perfetto};
pub use trace::{Trace, Transfer};
pub use wait_graph::{ProgramState, Programs};
