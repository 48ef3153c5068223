//! A machine with an image, on which programs are run.

use std::sync::Arc;

use conset_fabric::{FaultKind, Trace, coverage_fault};
use conset_ir::Image;

use crate::cell::{Cell, Ends};
use crate::error::{CellError, RunError};
use crate::scheduler::Run;

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Clocks until the last program ended and the last word arrived.
    pub clocks: u64,
    /// Context switches.
    pub switches: u64,
    /// Clocks of all context switches together.
    pub switch_clocks: u64,
    /// Words delivered.
    pub words: u64,
    /// Words carried, counted once on every link.
    pub word_hops: u64,
    /// Streams and switches, if asked for ([`World::trace`]). A stream here is what a program
    /// asked for at a time: a word, or an operation of a list.
    pub trace: Option<Trace>,
}

/// A machine with an image, on which programs are run.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) image: Arc<Image>,
    pub(crate) ends: Vec<(Ends, Ends)>,
    pub(crate) broken: Vec<Option<FaultKind>>,
    pub(crate) stack_size: usize,
    pub(crate) trace: bool,
}

impl World {
    /// Bytes of a cell's stack unless [`World::stack_size`] says otherwise. Memory is only taken
    /// as a program uses it.
    pub const STACK_SIZE: usize = 256 * 1024;

    /// A machine with an image loaded.
    pub fn new(image: impl Into<Arc<Image>>) -> Self {
        let image = image.into();
        let cells = image.machine().cell_count();
        let ends = image.sets().iter().map(|s| {
            (Ends::new(cells, &s.set, |c| c.source), Ends::new(cells, &s.set, |c| c.target))
        });
        let ends = ends.collect();
        let broken = image.sets().iter().map(coverage_fault).collect();
        Self { image, ends, broken, stack_size: Self::STACK_SIZE, trace: false }
    }

    /// Gives each cell a stack of this many bytes. A program that needs more ends the process.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// Keeps a trace of streams and switches in the report.
    #[must_use]
    pub fn trace(mut self, trace: bool) -> Self {
        self.trace = trace;
        self
    }

    /// The image.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Runs the same program on every live cell with an agent, from clock 0 until all have
    /// ended. The results are in the order of cell ids.
    ///
    /// # Errors
    /// The first thing that went wrong: a cell's call that failed, a panic, cells that disagree,
    /// a fault of the fabric, words that nobody received. Programs still running then get
    /// [`crate::CellError::Aborted`] from their next call, and are unwound at the one after.
    pub fn run<R>(
        &self,
        program: impl Fn(&mut Cell<'_>) -> R,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        Run::new(self).run(&|cell: &mut Cell<'_>| {
            let result = program(cell);
            // An error is kept by the run.
            let _ = cell.check_ended();
            result
        })
    }

    /// [`World::run`] for programs that hand on the errors of their cell's calls with `?`.
    ///
    /// # Errors
    /// As [`World::run`], and the first error in the order of cell ids that a program returned.
    pub fn try_run<R>(
        &self,
        program: impl Fn(&mut Cell<'_>) -> Result<R, CellError>,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        let (results, report) = self.run(program)?;
        let cells = self.image.machine().endpoints();
        let results = cells
            .zip(results)
            .map(|(cell, result)| result.map_err(|error| RunError::Cell { cell, error }));
        Ok((results.collect::<Result<_, _>>()?, report))
    }
}
