//! Errors of the compiler, by whose fault they are.

use conset_ir::{Infeasible, InputError};
use conset_verify::Rejection;

/// Why a program was not compiled. The variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The input is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The set does not fit on the machine.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// The checker refused a schedule or an image that was passed in.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// A stage returned an invalid result. This is a bug in conset.
    #[error("internal error in {stage}: {message}\nplease report this with the input")]
    Bug {
        /// The stage.
        stage: &'static str,
        /// What was invalid.
        message: String,
    },
}

impl CompileError {
    pub(crate) fn bug(stage: &'static str, message: &dyn ToString) -> Self {
        CompileError::Bug { stage, message: message.to_string() }
    }

    /// The error for a schedule that conset made itself: a refusal is then a bug.
    pub(crate) fn rejection_is_bug(self, stage: &'static str) -> Self {
        match self {
            CompileError::Rejected(rejection) => CompileError::bug(stage, &rejection),
            other => other,
        }
    }
}

impl From<Rejection> for CompileError {
    fn from(rejection: Rejection) -> Self {
        CompileError::Rejected(Box::new(rejection))
    }
}
