//! Lower bounds, placement, phase partitioning, routing and channel numbering.
//!
//! This is the stage between a connection set and a timetable:
//!
//! * [`bounds`]: lower bounds on the number of phases and clocks;
//! * [`placement`]: the cell of each part of the program;
//! * [`apr`]: the phase and the route of each connection (the paper's automatic partitioner and
//!   router, section 4.4.1);
//! * [`channels`]: the channel of each route on each of its cells, and one of several parallel
//!   links.
//!
//! All of them use the machine in the form of [`network`]: live cells, edges, distances.
//! [`explain`] makes the errors for sets that cannot be routed, with a witness and the cheapest
//! fixes.
//!
//! The results are deterministic: equal machines, sets, options and seeds give equal results. The
//! crate opens no files, prints nothing and reads no clock. It does not decide when a connection
//! starts (the scheduler does) and does not verify its results (the checker does).
//!
//! # Example
//!
//! All-to-all communication of the paper's 64 cells needs at least 27 phases, and the router finds
//! a routing with 27:
//!
//! ```
//! use std::sync::Arc;
//! use conset_ir::{CellId, Connection, ConnectionSet, Machine};
//! use conset_partition_route::apr::{self, RouterOptions};
//! use conset_partition_route::bounds::bounds;
//!
//! let machine = Arc::new(Machine::from_spec("iwarp")?);
//! let pairs = (0..64).flat_map(|a| (0..64).map(move |b| (a, b))).filter(|(a, b)| a != b);
//! let connections = pairs.map(|(a, b)| Connection::new(CellId(a), CellId(b), 32)).collect();
//! let set = Arc::new(ConnectionSet::new("all-to-all", connections)?);
//!
//! assert_eq!(bounds(&machine, &set)?.summary().phases, 27);
//! let routing = apr::route(&machine, &set, &RouterOptions::default(), &mut |_| ())?;
//! assert_eq!(routing.phases().len(), 27);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

pub mod apr;
pub mod bounds;
pub mod channels;
pub mod explain;
pub mod marks;
pub mod network;
pub mod placement;
mod wide;

use std::sync::Arc;

use conset_ir::{ConnectionSet, Machine, Routing, ShapeError};

/// Makes a routing of streams with known paths: assigns channels and picks among parallel links.
/// `streams(phase)` gives connection, words and cells of each stream of a phase, in the order of
/// the routing.
///
/// # Errors
/// Streams of connections that the set does not have, or paths that the machine does not have; see
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
