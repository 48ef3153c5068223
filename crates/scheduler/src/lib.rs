//! Timetables and their price.
//!
//! ```text
//!  Routing ─► greedy::timetable ─► Timetable ─► predict::predict ─► Prediction
//!                 │      │                          │
//!            gaps   rounds                      fluid, fair
//!                 └── cost, order: what both know of a phase ──┘
//! ```
//!
//! [`greedy`] plans: it gives every route of a phase a slot, as if each stream ran at full access
//! bandwidth (paper, section 4.4.2). [`mod@predict`] prices the plan: it lets the streams of a phase
//! share links and agents fairly and says when the last word has arrived. The two differ by what
//! link sharing costs, which is what the paper's own prediction left out (section 5.1.4).
//!
//! Phases begin on an empty machine and know nothing of each other, so they are worked at on all
//! threads (`parallel`); the results are the same on any number of them.
//!
//! # What this crate does not do
//!
//! It never changes a route or moves a route to another phase, and it trusts no input to be
//! *right*: a routing whose routes are broken still gets a timetable and a price. Whether they
//! are right is for the checker in `conset-verify`.

#![forbid(unsafe_code)]

mod cost;
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

use conset_ir::PhaseId;

pub use greedy::timetable;
pub use predict::{AgentLoad, LinkLoad, PhasePrediction, Prediction, predict};

/// Why there is no timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The durations of a phase's routes add up to 2^63 clocks or more, which the machine's
    /// parameters and the limits on words allow but no clock can count.
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
