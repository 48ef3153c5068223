//! Planners: they choose phases, routes and starts together, for machines that keep planned starts.
//!
//! A planner takes a [`Problem`] (machine, connection set, bounds and everything derived from
//! them, worked out once) and returns a [`Plan`]: phases of streams, each with its words, its
//! route and its start. It depends on its seed and its budget of work alone, never on a clock or
//! on the number of threads.
//!
//! * [`slots`]: negotiated congestion (PathFinder) over links, agents and channels in slots of
//!   time.
//! * [`windows`]: phases packed one after the other, for large sets.
//!
//! The starts of a plan are exact where the machine keeps them (`timed_starts`): no two streams
//! are on a link at the same time. Whether a plan is right is for the checker to say, and how
//! long it takes is for the cost model and the fabric.

mod plan;
mod problem;
pub mod slots;
pub mod windows;

pub use plan::{Plan, Stream};
pub use problem::Problem;
