//! Timetables and step plans, and the cost models that predict their time.
//!
//! ```text
//!  Routing ─► greedy::timetable ─► Timetable ─► predict::predict ─► Prediction
//!                 │      │                          │
//!    free_intervals  kempe_repair           fluid, max_min_share
//!                 └── cost, precedence: facts about a phase ──┘
//! ```
//!
//! [`greedy`] plans: it gives every route of a phase a slot, as if each stream ran at full access
//! bandwidth (paper, section 4.4.2). [`link_aware`] plans with links in mind. [`mod@predict`]
//! prices a plan: it simulates the streams of a phase with fair shares of links and agents, and
//! computes when the last word is received. The difference between plan and prediction is the cost
//! of link sharing, which the paper's prediction left out (section 5.1.4).
//!
//! Machines without tables exchange messages instead: [`steps`] plans and prices them.
//!
//! Phases start on an empty machine and are independent, so they are processed on all threads
//! (`parallel`); the results do not depend on the number of threads.
//!
//! # Example
//!
//! The time of a shift by one on a ring of 8 cells, in one phase:
//!
//! ```
//! use std::sync::Arc;
//! use conset_ir::{CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Machine};
//! use conset_ir::{PhaseRoutes, Routing};
//!
//! let machine = Arc::new(Machine::from_spec("ring:8")?);
//! let pairs = (0..8).map(|cell| (CellId(cell), CellId((cell + 1) % 8)));
//! let connections = pairs.clone().map(|(from, to)| Connection::new(from, to, 100)).collect();
//! let set = Arc::new(ConnectionSet::new("shift", connections)?);
//! let mut phase = PhaseRoutes::new();
//! for (id, (from, to)) in (0..).map(ConnectionId).zip(pairs) {
//!     let link = machine.links_between(from, to).next().expect("neighbours");
//!     // Channel 0 sends, channel 1 receives.
//!     phase.push(id, 100, &[from, to], &[link], &[ChannelId(0), ChannelId(1)])?;
//! }
//! let routing = Routing::new(machine, set, vec![phase])?;
//!
//! let timetable = conset_scheduler::timetable(routing)?;
//! assert_eq!(timetable.phases()[0].makespan, 200);
//! let prediction = conset_scheduler::predict(&timetable);
//! assert_eq!(prediction.phases[0].clocks, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What this crate does not do
//!
//! It never changes a route or moves a route to another phase. It does not check its input: a
//! routing with broken routes still gets a timetable and a price. The checker in `conset-verify`
//! decides whether they are right.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

pub mod c3;
mod contention_free;
mod cost;
pub mod exchange_formulas;
pub mod fixed_starts;
mod fluid;
mod free_intervals;
pub mod greedy;
pub mod idle_intervals;
mod kempe_repair;
pub mod link_aware;
mod list_scheduling;
mod local_index;
mod max_min_share;
mod parallel;
pub mod phase_model;
mod precedence;
pub mod predict;
pub mod steps;

use conset_ir::PhaseId;

pub use greedy::timetable;
pub use predict::{AgentLoad, LinkLoad, PhasePrediction, Prediction, predict};

/// Why there is no timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The durations of a phase's routes add up to 2^63 clocks or more. The machine parameters and
    /// the limits on words allow this, but times are 64-bit numbers.
    #[error("the routes of {phase} take more than 2^63 clocks together")]
    TooLong {
        /// The phase.
        phase: PhaseId,
    },
}

impl ScheduleError {
    /// The phase that has no timetable.
    pub fn phase(self) -> PhaseId {
        match self {
            ScheduleError::TooLong { phase } => phase,
        }
    }
}
