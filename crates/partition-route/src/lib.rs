//! Lower bounds, placement, phase partitioning, routing and channel numbering.
//!
//! The stage between a connection set and a timetable. It answers four questions, in this order:
//!
//! * [`bounds`]: how few phases and clocks can there be, whatever anyone does?
//! * [`placement`]: which cell does each part of the program live on?
//! * [`apr`]: in which phase and over which cells does each connection run (the paper's
//!   automatic partitioner and router, section 4.4.1)?
//! * `channels`: which channel does each route take on each of its cells, and which of several
//!   parallel links?
//!
//! All of them see the machine as [`network`] has it: live cells, edges, distances. `explain` turns
//! a failure of any of them into a witness and its cheapest fixes.
//!
//! All of it is deterministic: the same machine, set, options and seed give the same result. It
//! opens no files, prints nothing and reads no clock. It does not say when a connection starts
//! (the scheduler does) and does not prove its own results (the checker does).

#![forbid(unsafe_code)]

pub mod apr;
pub mod bounds;
pub mod channels;
pub mod explain;
pub mod network;
pub mod placement;

use std::sync::Arc;

use conset_ir::{ConnectionSet, Machine, Routing, ShapeError};

/// Makes a routing of streams whose paths are known: numbers the channels and picks among
/// parallel links. `streams(phase)` gives connection, words and cells of each stream of a phase,
/// in the order of the routing.
///
/// # Errors
/// Streams that are none of the set's, or paths that are none of the machine's; see
/// [`Routing::new`].
pub fn routing_of_paths<'a, P>(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    phases: u32,
    streams: impl Fn(u32) -> P,
) -> Result<Routing, ShapeError>
where
    P: Iterator<Item = (u32, u32, &'a [u32])>,
{
    channels::number_parts(machine, set, &network::Network::new(machine), phases, streams)
}
