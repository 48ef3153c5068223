//! What would help: the same sets, compiled again for machines with one parameter changed.
//!
//! Nothing is estimated: each change is compiled, and its clocks are those that the cost model
//! predicts or, if a run is asked for, those that the fabric measures. The sets are also compiled for
//! the machine as it is, with the same options, because a stored schedule may come from a longer
//! search; ratios are to that result. The search ends when it expects no considerable gain, so a better
//! machine may get a plan that takes a few clocks more.

use std::sync::Arc;

use conset_ir::{Machine, Origin, Parameters, Program};
use serde::Serialize;

use crate::run::ExecutionError;
use crate::steps::{StepCompiler, StepExecutionError};
use crate::{Algorithm, CompileError, CompileOptions, Compiler, Observer, bound_ratio, run};

/// A change of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Change {
    /// The machine as it is.
    None,
    /// One more channel on each cell.
    OneMoreChannel,
    /// One more stream at each port.
    OneMoreStream,
    /// Links that take half the clocks for a word.
    LinkTwiceAsFast,
    /// Half of `t_sync` and `t_phase`, rounded down.
    HalfTheSwitch,
    /// Half of `c_send` and `c_receive`, rounded down.
    HalfTheSoftware,
}

impl Change {
    /// The changes that matter to phases.
    pub const OF_PHASES: [Self; 5] = [
        Self::None,
        Self::OneMoreChannel,
        Self::OneMoreStream,
        Self::LinkTwiceAsFast,
        Self::HalfTheSwitch,
    ];
    /// The changes that matter to messages.
    pub const OF_STEPS: [Self; 3] = [Self::None, Self::LinkTwiceAsFast, Self::HalfTheSoftware];

    /// The change in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "as it is",
            Self::OneMoreChannel => "one more channel per cell",
            Self::OneMoreStream => "one more stream per port",
            Self::LinkTwiceAsFast => "links twice as fast",
            Self::HalfTheSwitch => "half the switch",
            Self::HalfTheSoftware => "half the software",
        }
    }

    /// The changed parameters, and by what their clocks must be divided. A link of an odd number of
    /// clocks per word becomes twice as fast if everything else takes twice as long and a clock is
    /// half as long.
    fn apply(self, parameters: &Parameters) -> (Parameters, u64) {
        let mut p = parameters.clone();
        let mut divisor = 1;
        match self {
            Self::None => {}
            Self::OneMoreChannel => p.channels_per_cell = p.channels_per_cell.saturating_add(1),
            Self::OneMoreStream => p.streams = p.streams.saturating_add(1),
            Self::LinkTwiceAsFast if p.link_clocks_per_word.is_multiple_of(2) => {
                p.link_clocks_per_word /= 2;
            }
            Self::LinkTwiceAsFast => {
                divisor = 2;
                let clocks = [
                    &mut p.access_clocks_per_word,
                    &mut p.stream_setup,
                    &mut p.t_sync,
                    &mut p.t_phase,
                    &mut p.c_send,
                    &mut p.c_receive,
                    &mut p.copy_clocks_per_word,
                    &mut p.clock_hz,
                ];
                clocks.into_iter().for_each(|value| *value = value.saturating_mul(2));
            }
            Self::HalfTheSwitch => {
                p.t_sync /= 2;
                p.t_phase /= 2;
            }
            Self::HalfTheSoftware => {
                p.c_send /= 2;
                p.c_receive /= 2;
            }
        }
        (p, divisor)
    }
}

/// The clocks of a program on a changed machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WhatIf {
    /// The change.
    pub change: Change,
    /// Clocks of all sets; `None` if the change exceeds a limit of the machine model, or the program
    /// cannot be compiled for it.
    pub clocks: Option<u64>,
    /// These clocks divided by those of the machine as it is.
    pub clocks_over_unchanged: Option<f64>,
    /// Phases of all sets; of messages 0.
    pub phases: usize,
}

/// Why a changed machine could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// The program cannot be compiled for the machine as it is.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The fabric stopped, or a bound is false.
    #[error(transparent)]
    Run(#[from] ExecutionError),
    /// The fabric stopped with messages, or a bound is false.
    #[error(transparent)]
    RunSteps(#[from] StepExecutionError),
}

/// The options that a schedule states it was compiled with: its algorithm and its seed.
pub fn options_of(origin: Option<&Origin>) -> CompileOptions {
    let Some(origin) = origin else { return CompileOptions::new() };
    let paper = origin.algorithm.starts_with(Algorithm::Paper.name());
    let algorithm = if paper { Algorithm::Paper } else { Algorithm::Auto };
    CompileOptions::new().algorithm(algorithm).seed(origin.seed)
}

/// Compiles a program to phases for each change. With `measured`, the clocks are those of the fabric.
///
/// # Errors
/// The program cannot be compiled for the machine as it is, or a run failed.
pub fn of_phases(
    machine: &Arc<Machine>,
    program: &Program,
    options: &CompileOptions,
    measured: bool,
    observer: &mut Observer<'_>,
) -> Result<Vec<WhatIf>, WhatIfError> {
    of(machine, &Change::OF_PHASES, |machine| {
        let compiler = Compiler::new(machine).options(options.clone());
        let compiled = compiler.observer(&mut *observer).compile(program)?;
        let sets = compiled.schedule().sets();
        let phases = sets.iter().map(|set| set.timetable.phases().len()).sum();
        if !measured {
            return Ok((sets.iter().map(|set| set.predicted_clocks).sum(), phases));
        }
        let runs = run::run(&compiled, options.seed, false, observer)?;
        Ok((runs.iter().map(|run| run.summary.clocks).sum(), phases))
    })
}

/// Compiles a program to steps for each change, by all planners. With `measured`, the clocks are those
/// of the fabric.
///
/// # Errors
/// As [`of_phases`].
pub fn of_steps(
    machine: &Arc<Machine>,
    program: &Program,
    measured: bool,
    observer: &mut Observer<'_>,
) -> Result<Vec<WhatIf>, WhatIfError> {
    of(machine, &Change::OF_STEPS, |machine| {
        let compiled = StepCompiler::new(machine).compile(program, observer)?;
        if !measured {
            return Ok((compiled.predicted_clocks(), 0));
        }
        let runs = compiled.run(1, false)?;
        Ok((runs.iter().map(|run| run.summary.clocks).sum(), 0))
    })
}

fn of(
    machine: &Arc<Machine>,
    changes: &[Change],
    mut clocks_on: impl FnMut(&Arc<Machine>) -> Result<(u64, usize), WhatIfError>,
) -> Result<Vec<WhatIf>, WhatIfError> {
    let mut rows: Vec<WhatIf> = Vec::with_capacity(changes.len());
    for &change in changes {
        let (parameters, divisor) = change.apply(machine.parameters());
        let made = match machine.with_parameters(parameters) {
            Err(_) => None,
            Ok(changed) => match clocks_on(&Arc::new(changed)) {
                Ok((clocks, phases)) => Some((clocks.div_ceil(divisor), phases)),
                Err(error) if change == Change::None => return Err(error),
                // A machine that the program does not fit is an answer too.
                Err(WhatIfError::Compile(_)) => None,
                Err(error) => return Err(error),
            },
        };
        let unchanged = rows.first().and_then(|row| row.clocks);
        let clocks = made.map(|made| made.0);
        rows.push(WhatIf {
            change,
            clocks,
            clocks_over_unchanged: clocks
                .map(|clocks| bound_ratio(clocks, unchanged.unwrap_or(clocks))),
            phases: made.map_or(0, |made| made.1),
        });
    }
    Ok(rows)
}
