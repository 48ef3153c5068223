//! Message passing on the emulated machine (paper, sections 3 and 4.3; machine model, rule 7).
//!
//! Wormhole-routed messages over short-lived pathways use the same links and queues as connections;
//! the cost of the software is charged to the sending and the receiving cell. Each rule is
//! documented where it is implemented:
//!
//! | module | rules |
//! |---|---|
//! | `routes`, `updown` | routes and pools; why nothing deadlocks |
//! | [`engine`] | time; the interface to the driver |
//! | `pathways` | headers, channels, tails |
//! | `agents`, `endpoints` | the cost of sending and receiving; half duplex |
//! | [`active`] | packets of active messages, which no cell asks for |
//! | `rendezvous` | messages that leave when their receiver asks for them |
//! | [`order`] | the order in which a cell sends |
//! | [`run`] | execution of a whole set, with a check of every word |
//! | [`mod@steps`] | execution of a step plan |
//! | [`mod@predict`] | the paper's cost model |
//! | `wait_graph` | the explanation of deadlocks |
//! | `faults` | faults of the hardware |
//! | `cell_words` | the words that cells have, right or wrong |
//! | [`interruption`] | exchanges with faults that can go on |
//! | [`mod@fault_run`] | runs with such faults, with check words or without, and what becomes of them |
//!
//! With nothing else in the network, a message of `m` words and `e` extra words over `d` links
//! takes, with full duplex and if access is not faster than the link,
//!
//! ```text
//! c_send + access + d * link + c_receive + (m + e) * access
//! ```
//!
//! for any queue depth.
//!
//! Messages have channels of their own: one per pool on each link, and one launch channel per cell.
//! These do not count towards `channels_per_cell`, which is for connections; the paper's system
//! also kept separate channels for messages.
//!
//! No parameter is fitted to the paper's measurements. Not modelled: adaptive routing, multicast,
//! priorities, and buffers at the receiver.

pub mod active;
mod agents;
mod cell_words;
mod endpoints;
pub mod engine;
mod fast_forward;
pub mod fault_run;
mod faults;
pub mod interruption;
pub mod order;
mod pathways;
pub mod predict;
mod rendezvous;
mod routes;
pub mod run;
pub mod steps;
mod updown;
mod wait_graph;

#[cfg(test)]
mod tests;

pub use active::{ActiveMessages, PacketEvent, Put};
pub use engine::{Message, MessageEngine, MessageEvent};
pub use fault_run::{run_set_with_faults, run_steps_with_faults};
pub use interruption::MessageFabric;
pub use order::SendLists;
pub use predict::predict;
pub use routes::MessageRoutes;
pub use run::{MessageOptions, MessageOrder, MessagesReport, run_checked, run_lists};
pub use steps::run_steps;
