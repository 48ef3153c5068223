//! The result of a call: a status for the kind of error, and a text with the details.
//!
//! The status tells a program how to react: another pointer, another file, another machine. The
//! text is that of the Rust interfaces, with the advice of this interface (`remedy`), after the
//! name of the function that failed.

use std::ffi::c_int;

use conset::CompileError;
use conset::ir::{InputError, ShapeError};
use conset::verify::Rejection;
use conset_runtime::{CellError, LayoutError, MpiError, PlanError, RunError};

use crate::remedy;

/// Kinds of faults; `conset_status` in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// None.
    Ok = 0,
    /// A pointer is null.
    NullPointer,
    /// A size, number or text is wrong.
    BadArgument,
    /// A handle is of another kind, or a cell is not this callback's.
    BadHandle,
    /// A file cannot be read or written.
    File,
    /// What a file or a specification says is wrong.
    Input,
    /// The checker refuses it.
    Rejected,
    /// The machine cannot do it.
    Infeasible,
    /// No layout can be made of it.
    Layout,
    /// Layout and image do not fit together.
    Plan,
    /// A cell asked for what it cannot have.
    Cell,
    /// A callback returned another number than 0.
    Program,
    /// The calls of two cells do not fit together.
    Mismatch,
    /// A cell took too long.
    TimeOut,
    /// The emulated machine found a fault.
    Fault,
    /// There is no memory for a cell's stack.
    Memory,
    /// Something between the ranks of a job.
    Mpi,
    /// This library was built without it.
    Unsupported,
    /// The run has ended because of another cell, or of an earlier call.
    Aborted,
    /// A bug of conset.
    Bug,
}

impl Status {
    /// All of them, in the order of their numbers.
    pub const ALL: [Status; 20] = [
        Status::Ok,
        Status::NullPointer,
        Status::BadArgument,
        Status::BadHandle,
        Status::File,
        Status::Input,
        Status::Rejected,
        Status::Infeasible,
        Status::Layout,
        Status::Plan,
        Status::Cell,
        Status::Program,
        Status::Mismatch,
        Status::TimeOut,
        Status::Fault,
        Status::Memory,
        Status::Mpi,
        Status::Unsupported,
        Status::Aborted,
        Status::Bug,
    ];

    /// The number of the status in the header.
    #[allow(clippy::as_conversions, reason = "the number of a variant; no other conversion exists")]
    pub const fn code(self) -> c_int {
        self as c_int
    }

    /// What the kind is.
    pub const fn text(self) -> &'static std::ffi::CStr {
        match self {
            Status::Ok => c"no error",
            Status::NullPointer => c"null pointer",
            Status::BadArgument => c"invalid argument",
            Status::BadHandle => c"invalid handle",
            Status::File => c"cannot read or write a file",
            Status::Input => c"invalid input",
            Status::Rejected => c"rejected by the checker",
            Status::Infeasible => c"not feasible on this machine",
            Status::Layout => c"the layout cannot be built",
            Status::Plan => c"layout and image do not match",
            Status::Cell => c"invalid call of a cell",
            Status::Program => c"a callback returned an error",
            Status::Mismatch => c"the calls of cells do not match",
            Status::TimeOut => c"a cell timed out",
            Status::Fault => c"fault on the emulated machine",
            Status::Memory => c"out of memory for a stack",
            Status::Mpi => c"error between the ranks of an MPI job",
            Status::Unsupported => c"not included in this build",
            Status::Aborted => c"the run was aborted",
            Status::Bug => c"bug in conset",
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallFault {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl CallFault {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(Status::BadArgument, message)
    }

    fn of(status: Status, error: &dyn std::error::Error) -> Self {
        Self::new(status, error.to_string())
    }
}

impl std::fmt::Display for CallFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<InputError> for CallFault {
    fn from(error: InputError) -> Self {
        // Options have the names of their fields; `<memory>` is an image that is not a file.
        let spelling = |name: &str| (name != "memory").then(|| format!("`{name}`"));
        Self::of(Status::Input, &error.with_options(spelling))
    }
}

impl From<ShapeError> for CallFault {
    fn from(error: ShapeError) -> Self {
        Self::of(Status::BadArgument, &error)
    }
}

impl From<Rejection> for CallFault {
    fn from(rejection: Rejection) -> Self {
        Self::new(Status::Rejected, rejection.to_string())
    }
}

impl From<CompileError> for CallFault {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Input(error) => error.into(),
            CompileError::Infeasible(error) => {
                Self::new(Status::Infeasible, remedy::of_infeasible(&error))
            }
            CompileError::Rejected(_) => Self::of(Status::Rejected, &error),
            _ => Self::of(Status::Bug, &error),
        }
    }
}

impl From<LayoutError> for CallFault {
    fn from(error: LayoutError) -> Self {
        Self::of(Status::Layout, &error)
    }
}

impl From<PlanError> for CallFault {
    fn from(error: PlanError) -> Self {
        Self::new(Status::Plan, remedy::of_plan(&error))
    }
}

impl From<CellError> for CallFault {
    fn from(error: CellError) -> Self {
        Self::new(status_of_cell(&error), remedy::of_cell(&error))
    }
}

fn status_of_cell(error: &CellError) -> Status {
    match error {
        CellError::Aborted => Status::Aborted,
        CellError::Program { .. } => Status::Program,
        CellError::Image { .. } => Status::Rejected,
        _ => Status::Cell,
    }
}

impl From<RunError> for CallFault {
    fn from(error: RunError) -> Self {
        let status = match &error {
            RunError::Cell { error, .. } => status_of_cell(error),
            // Callbacks do not panic.
            RunError::Panic { .. } => Status::Bug,
            RunError::Disagree { .. }
            | RunError::Mismatch { .. }
            | RunError::Ended { .. }
            | RunError::Unreceived { .. }
            | RunError::UnreceivedMessage { .. }
            | RunError::Deadlock { .. } => Status::Mismatch,
            RunError::TimeOut { .. } => Status::TimeOut,
            RunError::Fault(_) => Status::Fault,
            RunError::TimeOutSetting { .. } => Status::BadArgument,
            RunError::Mpi(error) => status_of_mpi(error),
            RunError::Stack { .. } | RunError::Thread { .. } => Status::Memory,
            _ => Status::Bug,
        };
        Self::new(status, remedy::of_run(&error))
    }
}

fn status_of_mpi(error: &MpiError) -> Status {
    match error {
        MpiError::Elsewhere { .. } => Status::Aborted,
        MpiError::TimeOutSetting { .. } => Status::BadArgument,
        _ => Status::Mpi,
    }
}

impl From<MpiError> for CallFault {
    fn from(error: MpiError) -> Self {
        Self::of(status_of_mpi(&error), &error)
    }
}
