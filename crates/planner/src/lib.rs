//! Planners: they choose phases, routes and starts together, for machines that keep planned starts.
//!
//! A planner takes a [`Problem`] (machine, connection set, bounds and everything derived from
//! them, worked out once) and returns a [`Plan`]: phases of streams, each with its words, its
//! route and its start. It depends on its seed and its budget of work alone, never on a clock or
//! on the number of threads.
//!
//! * [`slots`]: negotiated congestion (PathFinder) over links, agents and channels in slots of
//!   time.
//! * [`phases`]: negotiated congestion over the channels of cells in phases.
//! * [`windows`]: phases packed one after the other, for large sets.
//! * [`torus`]: translation-invariant sets on tori, planned for one cell and shifted for the
//!   others.
//!
//! The starts of a plan are exact where the machine keeps them (`timed_starts`): no two streams
//! are on a link at the same time. Whether a plan is right is for the checker to say, and how
//! long it takes is for the cost model and the fabric.

#![forbid(unsafe_code)]

mod balance;
#[cfg(test)]
mod cases;
mod compact;
mod greatest;
mod join;
mod negotiate;
mod orbits;
mod pack;
mod paths;
pub mod phases;
mod plan;
mod portfolio;
mod problem;
mod refine;
mod ring;
mod rounds;
pub mod slots;
mod template;
pub mod torus;
mod way;
mod window;
pub mod windows;

pub use join::{Tried, join, joinable};
pub use plan::{Found, Plan, Stream};
pub use portfolio::{Options, Planner, Routed, Task, Work, plans};
pub use problem::Problem;
pub use refine::{Runner, Streamed, refine};
