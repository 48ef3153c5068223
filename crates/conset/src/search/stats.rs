//! What a search reports: why it ended, and every plan that it tried.

use serde::Serialize;

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StopReason {
    /// No considerable gain was expected, or all standard attempts were made.
    #[serde(rename = "enough")]
    Converged,
    /// The result is at the bound, so it is optimal.
    Bound,
    /// The requested number of plans was made.
    #[serde(rename = "attempts")]
    MaxPlans,
    /// A limit of work was reached; [`crate::CompileOptions::unlimited`] lifts it.
    #[serde(rename = "work")]
    WorkLimit,
    /// The caller stopped the search, so the result depends on the speed of the computer.
    #[serde(rename = "time")]
    TimeLimit,
    /// The caller interrupted the search ([`crate::Interrupt`]), so the result depends on that moment.
    Interrupted,
}

/// A plan that was tried: its planner and its price.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// The name of the planner.
    pub planner: &'static str,
    /// Phases.
    pub phases: u32,
    /// Clocks, context switches included.
    pub clocks: u64,
    /// Whether it was the best plan so far. The last of these is the result.
    pub best: bool,
    /// Seconds for planning and pricing, if a clock was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Statistics of the search for a set's plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchStats {
    /// Plans that were made and priced.
    #[serde(rename = "made")]
    pub plans: u32,
    /// Plans that were dropped because the checker refused them or a stage could not price them.
    /// Each is a bug in conset.
    pub candidates_refused: u32,
    /// Why the search ended.
    #[serde(rename = "ended")]
    pub stop_reason: StopReason,
    /// Cells that the planners examined: a measure of work that is the same on every computer.
    pub work: u64,
    /// Every plan that was made and not refused, in order.
    pub trials: Vec<Trial>,
}

impl SearchStats {
    /// The trial that gave the result; `None` if that is the plan of the paper's algorithm.
    pub fn winner(&self) -> Option<&Trial> {
        self.trials.iter().rfind(|trial| trial.best)
    }

    /// The best plan of the planners that did not win.
    pub fn runner_up(&self) -> Option<&Trial> {
        let winner = self.winner()?;
        let others = self.trials.iter().filter(|trial| trial.planner != winner.planner);
        others.min_by_key(|trial| (trial.clocks, trial.phases))
    }
}
