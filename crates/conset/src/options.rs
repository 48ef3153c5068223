//! Options of a compilation.

use conset_partition_route::apr;

/// The algorithm that plans routes and timetables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// The algorithm of the ConSet paper: APR (section 4.4.1) and the MIN_TIME greedy timetable
    /// (section 4.4.2).
    Paper,
    /// Tries several planners and keeps the cheapest plan.
    #[default]
    Auto,
}

impl Algorithm {
    /// The spelling in files. `Auto` is written as `best`, its former name, because file formats
    /// do not change for a name.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Paper => "paper",
            Algorithm::Auto => "best",
        }
    }
}

/// What [`Algorithm::Auto`] minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Objective {
    /// Clocks.
    #[default]
    Time,
    /// Phases, then clocks.
    Phases,
}

impl Objective {
    /// The spelling in options.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Time => "time",
            Objective::Phases => "phases",
        }
    }
}

/// The options that determine the result of a compilation.
///
/// ```
/// use conset::{Algorithm, CompileOptions};
///
/// let options = CompileOptions::new().seed(7).max_plans(3);
/// assert_eq!((options.seed, options.max_plans), (7, Some(3)));
/// assert_eq!(options.algorithm, Algorithm::Auto);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The algorithm that plans routes and timetables.
    pub algorithm: Algorithm,
    /// What [`Algorithm::Auto`] minimises; the paper's algorithm minimises phases.
    pub objective: Objective,
    /// Seed of all random choices. The same seed gives the same bytes.
    pub seed: u64,
    /// Iterations of rip-up and reroute (k in the paper); `None` for the algorithm's default.
    pub rip_up_iterations: Option<u32>,
    /// Greatest number of phases of a set; `None` for no limit.
    pub max_phases: Option<u32>,
    /// Number of plans that [`Algorithm::Auto`] tries for each set, at least one; the search also
    /// ends at the bound. `None` lets it end when no considerable gain is expected.
    pub max_plans: Option<u32>,
    /// Whether to lift the limits that keep work and memory proportional to the set and the
    /// machine. These limits are counts, so they are the same on every computer.
    pub unlimited: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        let apr::RouterOptions { seed, max_phases, .. } = apr::RouterOptions::default();
        Self {
            algorithm: Algorithm::default(),
            objective: Objective::default(),
            seed,
            rip_up_iterations: None,
            max_phases,
            max_plans: None,
            unlimited: false,
        }
    }
}

impl CompileOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets what [`Algorithm::Auto`] minimises.
    #[must_use]
    pub fn objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// Sets the seed of all random choices.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the iterations of rip-up and reroute; `None` for the algorithm's default.
    #[must_use]
    pub fn rip_up_iterations(self, iterations: impl Into<Option<u32>>) -> Self {
        Self { rip_up_iterations: iterations.into(), ..self }
    }

    /// Sets the greatest number of phases of a set; `None` for no limit.
    #[must_use]
    pub fn max_phases(self, phases: impl Into<Option<u32>>) -> Self {
        Self { max_phases: phases.into(), ..self }
    }

    /// Sets the number of plans to try for each set; `None` until no considerable gain is expected.
    #[must_use]
    pub fn max_plans(self, plans: impl Into<Option<u32>>) -> Self {
        Self { max_plans: plans.into(), ..self }
    }

    /// Lifts the limits of work and memory.
    #[must_use]
    pub fn unlimited(self, unlimited: bool) -> Self {
        Self { unlimited, ..self }
    }
}
