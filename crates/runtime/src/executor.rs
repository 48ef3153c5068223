//! Cells as coroutines: how the program of a cell is started, resumed and ended.
//!
//! Every transport runs each cell on a stack of its own and resumes it when what it waits for is
//! there. What the transports share is here: the settings of a run, the answer that a suspended
//! cell gets, how a program can end, and how its panics are caught. Scheduling the cells is up to
//! the transport: the fabric driver resumes them clock by clock, a worker thread and an MPI rank
//! round robin.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conset_fabric::FaultPlan;
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

/// The coroutine of a cell: resumed with an `I`, suspended with a `Y`.
pub(crate) type CellCoroutine<I, Y, R> = Coroutine<I, Y, ProgramOutcome<R>, CellStack>;

/// What a suspended cell is resumed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// What it waited for is there.
    Continue,
    /// The run has ended; the program returns or is unwound.
    Abort,
}

/// How a program ended.
pub(crate) enum ProgramOutcome<R> {
    Returned(R),
    Panicked(String),
    Aborted,
}

/// Runs a program and reports how it ended; catches panics.
pub(crate) fn run_program<R>(
    program: &dyn Fn(&mut Cell<'_>) -> R,
    cell: &mut Cell<'_>,
) -> ProgramOutcome<R> {
    match catch_unwind(AssertUnwindSafe(|| program(cell))) {
        Ok(result) => ProgramOutcome::Returned(result),
        Err(payload) if payload.is::<AbortedProgram>() => ProgramOutcome::Aborted,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            discard(payload);
            ProgramOutcome::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
        }
    }
}

/// Drops a value of the program and stops any panic of the drop: nothing may unwind a worker while
/// other cells read the memory of its cells. The payload of such a panic is leaked, because
/// dropping it may panic in turn.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}
