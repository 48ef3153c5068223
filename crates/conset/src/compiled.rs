//! A compiled program: the result of the compiler, verified by the independent checker.

use std::sync::Arc;

use conset_ir::{Image, PartMap, Schedule, ShapeError};
use conset_partition_route::bounds::BoundsReport;
use conset_scheduler::Prediction;
use conset_verify::Report;

use crate::fuse::Fusion;
use crate::incremental::ReuseOutcome;
use crate::search::SearchStats;

/// A compiled and verified program.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub(crate) schedule: Schedule,
    pub(crate) image: Arc<Image>,
    pub(crate) sets: Vec<CompiledSet>,
    pub(crate) fusions: Vec<Fusion>,
    pub(crate) candidates_refused: u32,
}

/// What the compiler found out about one set, beside its schedule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompiledSet {
    /// Lower bounds, each with its witness.
    pub bounds: BoundsReport,
    /// The prediction of the cost model, phase by phase.
    pub prediction: Prediction,
    /// What the checker counted.
    pub checked: Report,
    /// Statistics of the search, if there was one.
    pub search: Option<SearchStats>,
    /// What was reused of an earlier schedule, if there was one.
    pub reuse: Option<ReuseOutcome>,
}

impl Compiled {
    /// The schedule, as it is written to files.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The same compilation, whose schedule has the parts and node numbers of its input
    /// ([`LoadedProgram::part_map`](crate::input::LoadedProgram::part_map)).
    ///
    /// # Errors
    /// Parts on cells that the machine does not have.
    pub fn with_part_map(mut self, part_map: Option<PartMap>) -> Result<Self, ShapeError> {
        self.schedule = self.schedule.with_part_map(part_map)?;
        Ok(self)
    }

    /// The image, as runtimes load it.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The predicted clocks of all sets together, context switches included.
    pub fn predicted_clocks(&self) -> u64 {
        self.schedule.sets().iter().map(|set| set.predicted_clocks).sum()
    }

    /// What became of each group of sets that could be merged ([`crate::Compiler::fuse`]).
    pub fn fusions(&self) -> &[Fusion] {
        &self.fusions
    }

    /// The number of candidate plans that were dropped because the checker refused them or a stage
    /// could not price them. Each is a bug in conset; the result is correct, but may be slower
    /// than it could be.
    pub fn candidates_refused(&self) -> u32 {
        self.candidates_refused
    }

    /// The analysis of each set, in the order of the schedule.
    pub fn sets(&self) -> &[CompiledSet] {
        &self.sets
    }
}
