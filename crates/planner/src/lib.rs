//! Planners that choose phases, routes and start times together, for machines with timed starts.
//!
//! A planner takes a [`Problem`], the data derived once from a machine, a connection set and its
//! bounds, and returns a [`Plan`]: phases of streams, each with its words, route and start. The
//! result depends only on the seed and the work budget, never on a clock or the number of threads.
//! [`plans`] runs any planner of the portfolio, also those for machines without timed starts.
//!
//! * [`slot_pathfinder`]: negotiated congestion (PathFinder) over links, agents and channels in
//!   time slots.
//! * [`phase_pathfinder`]: negotiated congestion over channels, agents and links in phases.
//! * [`dense_pathfinder`]: negotiated congestion over all phases of large sets, whose streams share
//!   links.
//! * [`windowed_pathfinder`]: packs one phase after the other, for large sets.
//! * [`translation_slots`]: for translation-invariant sets on tori; plans one cell and shifts the
//!   plan for the others.
//! * [`ejection_search`]: makes the phases of a plan shorter.
//!
//! On a machine with timed starts the starts of a plan are exact: no two streams are on a link at
//! the same time. The checker (`conset-verify`) decides whether a plan is valid; the cost model and
//! the fabric decide how long it takes.
//!
//! ```
//! use std::sync::Arc;
//!
//! use conset_ir::{CellId, Connection, ConnectionSet, Machine};
//! use conset_planner::{Planner, PlannerOptions, Task, Work, plans};
//!
//! let machine = Arc::new(Machine::from_spec("torus:4x4")?);
//! let shift = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 64));
//! let set = Arc::new(ConnectionSet::new("shift", shift.collect())?);
//! let bounds = conset_partition_route::bounds::bounds(&machine, &set)?.summary();
//! let task = Task::new(&machine, &set, bounds);
//! let options = PlannerOptions::default();
//! let found = plans(&task, Planner::RoundPathfinder, &options, &mut Work::unlimited())?;
//! assert_eq!(found[0].routing.phases().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]

mod batches;
#[cfg(test)]
#[path = "../tests/common/cases.rs"]
mod cases;
pub mod dense_pathfinder;
mod edge_coloring;
pub mod ejection_search;
mod first_fit;
mod grid_aapc;
mod interrupt;
mod line_rounds;
mod load_annealing;
mod local_search;
mod matching;
mod max_tree;
mod merge_phases;
mod one_phase;
mod path_search;
mod paths;
mod phase_packing;
pub mod phase_pathfinder;
mod plan;
mod portfolio;
mod preemptive_list;
mod problem;
mod ring_aapc;
mod ring_rounds;
mod round_pathfinder;
mod shortest_routes;
pub mod slot_pathfinder;
pub mod translation_slots;
mod translation_symmetry;
pub mod windowed_pathfinder;
mod work;

pub use batches::batches;
pub use interrupt::Interrupt;
pub use local_search::{Runner, Streamed, local_search};
pub use merge_phases::{TriedPairs, merge_phases, mergeable};
pub use plan::{Found, Plan, Stream};
pub use portfolio::{MAX_ANNEALED_CONNECTIONS, Planner, PlannerOptions, Routed, Task, plans};
pub use problem::Problem;
pub use work::{Limits, Work};
