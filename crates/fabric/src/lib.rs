//! The emulated iWarp: links, channels, agents, barrier and context switch.
//!
//! The fabric executes an [`Image`](conset_ir::Image) word by word with the caller's own data. It
//! follows the tables and operation lists and nothing else: where a connection goes, how long it
//! takes and whether it arrives is what comes out. It implements rules 3 to 7 of the machine
//! model; each rule is stated where it is implemented:
//!
//! | module | rules |
//! |---|---|
//! | `network` | links and channels: queues, turns, room |
//! | `agents` | agents: ports, streams, the order of an operation list, duplex |
//! | `tables` | writing a context |
//! | [`engine`] | time; what drives the machine and what it tells |
//! | [`exchange`] | the phases of a set: context switch, operation lists |
//! | [`order`] | the set's order between cells |
//! | `waits` | deadlocks: who waits for whom |
//!
//! Times are exact in clocks. With nothing else in the network, `m` words over `d` links take
//!
//! ```text
//! setup + access + d * link + access + (m - 1) * max(access, link)      d > 0
//! setup + 2 * access + (m - 1) * access                                 d = 0, full duplex
//! 2 * setup + 2 * m * access                                            d = 0, half duplex
//! ```
//!
//! whatever the depth of the queues, where the receiver opens its stream as the sender does.
//!
//! [`messages`] is the machine's other model, message passing, on the same links and channels.
//!
//! What it does not do: the reserved channels (no operation uses them), faults of the hardware,
//! and judging an image as such. A wrong image may run well by luck; the checker is where it is
//! refused.

#![forbid(unsafe_code)]

mod agenda;
mod agents;
mod base;
pub mod check;
mod coverage;
pub mod engine;
pub mod exchange;
pub mod fault;
mod lane;
pub mod messages;
mod network;
pub mod order;
pub mod payload;
mod period;
pub mod report;
mod tables;
pub mod trace;
mod turns;
pub mod waits;

#[cfg(test)]
mod tests;

pub use check::{Checked, run_checked, run_with, synthetic_word};
pub use coverage::coverage_fault;
pub use engine::{Engine, OperationId, OperationState, Payload, Stop, Submission};
pub use exchange::{Errors, Fabric, Jitter, Options};
pub use fault::{Fault, FaultKind, GateProblem, MessageProblem, TableProblem, Wait, Waiting};
pub use order::OrderKeeper;
pub use payload::Buffers;
pub use report::{ExchangeReport, PhaseReport};
pub use trace::{Trace, to_perfetto};
pub use waits::{Doing, Programs};
