//! Planners: they choose phases, routes and starts together, for machines that keep planned starts.
//!
//! A planner takes a [`Problem`] (machine, connection set, bounds and everything derived from
//! them, worked out once) and returns a [`Plan`]: phases of streams, each with its words, its
//! route and its start. It depends on its seed and its budget of work alone, never on a clock or
//! on the number of threads.
//!
//! * [`slot_pathfinder`]: negotiated congestion (PathFinder) over links, agents and channels in slots of
//!   time.
//! * [`phase_pathfinder`]: negotiated congestion over the channels of cells in phases.
//! * [`windowed_pathfinder`]: phases packed one after the other, for large sets.
//! * [`translation_slots`]: translation-invariant sets on tori, planned for one cell and shifted for the
//!   others.
//!
//! The starts of a plan are exact where the machine keeps them (`timed_starts`): no two streams
//! are on a link at the same time. Whether a plan is right is for the checker to say, and how
//! long it takes is for the cost model and the fabric.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]

#[cfg(test)]
mod cases;
mod edge_coloring;
mod first_fit;
mod load_annealing;
mod local_search;
mod max_tree;
mod merge_phases;
mod path_search;
mod paths;
mod phase_packing;
pub mod phase_pathfinder;
mod plan;
mod portfolio;
mod preemptive_list;
mod problem;
mod ring_aapc;
mod round_pathfinder;
// The module and its `negotiation` still convert with `as`; the other modules below it do not.
#[allow(clippy::as_conversions)]
pub mod slot_pathfinder;
mod torus_aapc;
pub mod translation_slots;
mod translation_symmetry;
pub mod windowed_pathfinder;
mod work;

pub use local_search::{Runner, Streamed, local_search};
pub use merge_phases::{TriedPairs, merge_phases, mergeable};
pub use plan::{Found, Plan, Stream};
pub use portfolio::{Planner, PlannerOptions, Routed, Task, plans};
pub use problem::Problem;
pub use work::Work;
