//! The machine's other model: message passing (paper, sections 3 and 4.3; machine model, rule 7).
//!
//! Wormhole messages over short-lived pathways, on the same links and queues as connections, with
//! the software's cost where it is spent. The rules stand where they are implemented:
//!
//! | module | rules |
//! |---|---|
//! | `routes`, `updown` | which way, which pool, why nothing deadlocks |
//! | [`engine`] | time; what drives the machine and what it tells |
//! | `pathways` | headers, channels, tails |
//! | `agents`, `service` | what sending and receiving cost and when; half duplex |
//! | [`order`] | in which order a cell sends |
//! | [`run`] | a whole set, checked word by word |
//! | [`mod@predict`] | the paper's cost model |
//! | `waits` | deadlocks: who holds what and waits for whom |
//!
//! With nothing else in the network, a message of `m` words and `e` extra words over `d` links
//! takes, where access is not faster than the link and with full duplex,
//!
//! ```text
//! c_send + access + d * link + c_receive + (m + e) * access
//! ```
//!
//! whatever the depth of the queues.
//!
//! A message takes channels of its own: one per pool on each link, and one to launch from at its
//! source. They are not counted against `channels_per_cell`, which is for connections; the paper's
//! system kept other channels for messages too.
//!
//! Nothing of this is fitted to the paper's measurements. What it does not do: adaptive routes,
//! messages to many, priorities, and buffers at the receiver.

mod agents;
pub mod engine;
pub mod order;
mod pathways;
mod period;
pub mod predict;
mod routes;
pub mod run;
mod service;
mod updown;
mod waits;

#[cfg(test)]
mod tests;

pub use engine::{Message, MessageEngine, MessageEvent};
pub use order::SendLists;
pub use predict::predict;
pub use run::{MessageOptions, MessageOrder, MessagesReport, run_checked, run_lists};
