//! Phases or steps: the cheaper of the two for a program (`--by best`).
//!
//! A machine with tables can exchange a program by phases and by messages in steps. Both compilers
//! predict the clocks of the same machine, so their results can be compared; which of them is
//! executed is decided for the program as a whole, because an image holds either phases or steps.

use std::sync::Arc;

use conset_ir::Image;
use serde::Serialize;

use crate::compiled::Compiled;
use crate::steps::CompiledSteps;

/// A program that is compiled to phases or to steps, and verified.
#[derive(Clone, Debug)]
pub enum CompiledProgram {
    /// Phases, whose routes are in the tables of the machine.
    Phases(Box<Compiled>),
    /// Messages in steps.
    Steps(Box<CompiledSteps>),
}

impl CompiledProgram {
    /// The image, as runtimes load it.
    pub fn image(&self) -> &Arc<Image> {
        match self {
            CompiledProgram::Phases(compiled) => compiled.image(),
            CompiledProgram::Steps(compiled) => compiled.image(),
        }
    }
}

/// The way of exchanging that was not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Alternative {
    /// `phases` or `steps`.
    pub by: &'static str,
    /// Its predicted clocks, of all sets together.
    pub predicted_clocks: u64,
}

/// The cheaper of the two results, and what it was compared with. If both take the same number of
/// clocks, it is the phases.
pub fn cheaper(phases: Compiled, steps: CompiledSteps) -> (CompiledProgram, Alternative) {
    let [by_phases, by_steps] = [phases.predicted_clocks(), steps.predicted_clocks()];
    match by_steps < by_phases {
        true => {
            let other = Alternative { by: "phases", predicted_clocks: by_phases };
            (CompiledProgram::Steps(Box::new(steps)), other)
        }
        false => {
            let other = Alternative { by: "steps", predicted_clocks: by_steps };
            (CompiledProgram::Phases(Box::new(phases)), other)
        }
    }
}
