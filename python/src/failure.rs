//! Errors of the library as exceptions of the package.
//!
//! The texts are those of the command, without the excerpt of the file that the command prints.

use conset::CompileError;
use conset::run::ExecutionError;
use conset::verify::Rejection;
use conset_ir::{Fix, Infeasible, InputError};
use pyo3::PyErr;

/// The exceptions, which the package defines.
mod exceptions {
    use pyo3::import_exception;

    import_exception!(conset._errors, CompileError);
    import_exception!(conset._errors, InputError);
    import_exception!(conset._errors, InternalError);
    import_exception!(conset._errors, VerifyError);
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input or an argument is wrong.
    Input(Box<InputError>),
    /// The set does not fit on the machine.
    Infeasible(Box<Infeasible>),
    /// The checker refused a schedule.
    Rejected(String),
    /// A bug in conset.
    Bug(String),
}

impl Failure {
    /// The failure of a stage with a bug.
    pub(crate) fn bug(stage: &'static str, message: &(impl ToString + ?Sized)) -> Self {
        CompileError::Bug { stage, message: message.to_string() }.into()
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure::Input(Box::new(error))
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Input(error) => error.into(),
            CompileError::Infeasible(error) => Failure::Infeasible(Box::new(error)),
            CompileError::Rejected(rejection) => (*rejection).into(),
            bug => Failure::Bug(bug.to_string()),
        }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Failure::Rejected(rejection.to_string())
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        // The image was verified, so no run of it can fail.
        Failure::Bug(error.to_string())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Input(error) => {
                exceptions::InputError::new_err(error.with_options(option).to_string())
            }
            Failure::Infeasible(error) => exceptions::CompileError::new_err(text_of(*error)),
            Failure::Rejected(text) => exceptions::VerifyError::new_err(text),
            Failure::Bug(text) => exceptions::InternalError::new_err(text),
        }
    }
}

/// The spelling of an option that an error names.
fn option(name: &str) -> Option<String> {
    OPTIONS.contains(&name).then(|| format!("--{name}"))
}

/// The options of the command that are arguments here.
const OPTIONS: [&str; 23] = [
    "algorithm",
    "dead",
    "elements",
    "format",
    "fuse",
    "halo",
    "ignore-periodic",
    "imbalance",
    "layers",
    "machine",
    "max-partitions",
    "max-phases",
    "max-plans",
    "objective",
    "param",
    "partition",
    "parts",
    "placement",
    "repartition",
    "seed",
    "time-limit",
    "words",
    "words-per-node",
];

/// The text with the options of the command in its fixes; the arguments of the package have the
/// same names.
fn text_of(mut error: Infeasible) -> String {
    for fix in &mut error.fixes {
        let option = match fix {
            Fix::Phases(n) => format!("--max-phases {n}"),
            Fix::ChannelsPerCell(n) => format!("--param channels_per_cell={n}"),
            Fix::Parts(n) => format!("--parts {n}"),
            Fix::Cells(_) => "--machine".to_owned(),
            _ => continue,
        };
        *fix = Fix::Other(format!("{fix} ({option})"));
    }
    error.to_string()
}
