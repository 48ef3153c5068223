//! Cells as coroutines: how the program of a cell is started, resumed and ended.
//!
//! Every transport runs each cell on a stack of its own and resumes it when what it waits for is
//! there. What the transports share is here: the settings of a run, the answer that a suspended
//! cell gets, how a program can end, and how its panics are caught. Scheduling the cells is up to
//! the transport: the fabric driver resumes them clock by clock, a worker thread and an MPI rank
//! round robin.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use conset_fabric::FaultPlan;
use conset_ir::CellId;
use corosensei::Coroutine;

use crate::cell::{AbortedProgram, Cell};
use crate::loaded_image::LoadedImage;
use crate::stack::CellStack;

/// The settings of a run that every transport needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSetup<'w> {
    pub(crate) loaded: &'w LoadedImage,
    /// Bytes of each cell's stack.
    pub(crate) stack_size: usize,
    /// Whether the emulated machine records a trace.
    pub(crate) trace: bool,
    /// The faults of the emulated machine.
    pub(crate) faults: Option<&'w FaultPlan>,
}

/// What each cell runs. Its result it puts into [`Results`] itself, so that the transports are compiled once, and not for
/// each type of result.
pub(crate) type Program<'p> = dyn Fn(&mut Cell<'_>) + Sync + 'p;

/// The coroutine of a cell: resumed with an `I`, suspended with a `Y`.
pub(crate) type CellCoroutine<I, Y> = Coroutine<I, Y, ProgramOutcome, CellStack>;

/// What a suspended cell is resumed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// What it waited for is there.
    Continue,
    /// The run has ended; the program returns or is unwound.
    Abort,
}

/// How a program ended.
pub(crate) enum ProgramOutcome {
    Returned,
    Panicked(String),
    Aborted,
}

/// Runs a program and reports how it ended; catches panics.
pub(crate) fn run_program(program: &Program<'_>, cell: &mut Cell<'_>) -> ProgramOutcome {
    match catch_unwind(AssertUnwindSafe(|| program(cell))) {
        Ok(()) => ProgramOutcome::Returned,
        Err(payload) if payload.is::<AbortedProgram>() => ProgramOutcome::Aborted,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            discard(payload);
            ProgramOutcome::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
        }
    }
}

/// The results of the programs of some cells.
pub(crate) struct Results<R> {
    /// In order.
    cells: Vec<CellId>,
    /// The result of each of them that has returned.
    values: Mutex<Vec<Option<R>>>,
}

impl<R> Results<R> {
    pub(crate) fn new(cells: Vec<CellId>) -> Self {
        let values = Mutex::new(cells.iter().map(|_| None).collect());
        Self { cells, values }
    }

    /// Keeps the result of a cell.
    pub(crate) fn keep(&self, cell: CellId, result: R) {
        let row = self.cells.binary_search(&cell).expect("it is one of the cells");
        self.values.lock().expect("nothing panics while it is held")[row] = Some(result);
    }

    /// The results in the order of cells, if the run succeeded.
    pub(crate) fn of_run<T, E>(self, outcome: Result<T, E>) -> Result<(Vec<R>, T), E> {
        let values = self.values.into_inner().expect("nothing panics while it is held");
        match outcome {
            Ok(report) => {
                let values =
                    values.into_iter().map(|value| value.expect("all programs have ended"));
                Ok((values.collect(), report))
            }
            // They do not matter, and neither does a panic of one that is dropped.
            Err(error) => {
                values.into_iter().for_each(discard);
                Err(error)
            }
        }
    }
}

/// Drops a value of the program and stops any panic of the drop. The payload of such a panic is leaked, because
/// dropping it may panic in turn.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}
