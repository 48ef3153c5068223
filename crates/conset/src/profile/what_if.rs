//! What would help: the same sets on machines with one parameter changed.
//!
//! Nothing is estimated. For each change the sets are compiled again, and the plan at hand is also
//! priced on the changed machine, because the search ends when it expects no considerable gain and
//! could miss it; the cheaper of the two counts. Clocks are those that the cost model predicts or, if
//! a run is asked for, those that the fabric measures. The same is done for the machine as it is, so
//! that a plan is not compared with one of a shorter search.

use std::sync::Arc;

use conset_fabric::messages::{MessageOptions, run_steps};
use conset_fabric::run_checked;
use conset_ir::{Image, Machine, Origin, Parameters, Routing, Steps, Timetable};
use serde::Serialize;

use crate::run::ExecutionError;
use crate::steps::{CompiledSteps, StepCompiler, StepExecutionError};
use crate::{
    Algorithm, CompileError, CompileOptions, Compiled, Compiler, Observer, bound_ratio, run,
};

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
    /// Whether these are of a new plan, and not of the plan at hand.
    pub recompiled: bool,
}

/// The clocks of a plan on a changed machine, and its phases.
type Priced = (u64, usize);

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

/// The clocks of a program of phases for each change. With `measured`, they are those of the fabric.
///
/// # Errors
/// The program cannot be compiled for the machine as it is, or a run failed.
pub fn of_phases(
    compiled: &Compiled,
    options: &CompileOptions,
    measured: bool,
    observer: &mut Observer<'_>,
) -> Result<Vec<WhatIf>, WhatIfError> {
    let program = compiled.schedule().program();
    of(compiled.schedule().machine(), &Change::OF_PHASES, |machine| {
        let kept = phases_on(compiled, machine, options.seed, measured);
        let compiler = Compiler::new(machine).options(options.clone());
        let again = match compiler.observer(&mut *observer).compile(&program) {
            Ok(again) => again,
            Err(error) => return (kept, Err(error.into())),
        };
        let sets = again.schedule().sets();
        let phases = sets.iter().map(|set| set.timetable.phases().len()).sum();
        let clocks = if measured {
            run::run(&again, options.seed, false, observer)
                .map(|runs| runs.iter().map(|run| run.summary.measured_clocks).sum())
                .map_err(WhatIfError::from)
        } else {
            Ok(sets.iter().map(|set| set.predicted_clocks).sum())
        };
        (kept, clocks.map(|clocks| (clocks, phases)))
    })
}

/// The clocks of a program of steps for each change, by all planners. With `measured`, they are those
/// of the fabric.
///
/// # Errors
/// As [`of_phases`].
pub fn of_steps(
    compiled: &CompiledSteps,
    measured: bool,
    observer: &mut Observer<'_>,
) -> Result<Vec<WhatIf>, WhatIfError> {
    let program = compiled.schedule().program();
    of(compiled.schedule().machine(), &Change::OF_STEPS, |machine| {
        let kept = steps_on(compiled, machine, measured);
        let again = match StepCompiler::new(machine).compile(&program, observer) {
            Ok(again) => again,
            Err(error) => return (kept, Err(error.into())),
        };
        let clocks = if measured {
            again
                .run(1, false)
                .map(|runs| runs.iter().map(|run| run.summary.measured_clocks).sum())
                .map_err(WhatIfError::from)
        } else {
            Ok(again.predicted_clocks())
        };
        (kept, clocks.map(|clocks| (clocks, 0)))
    })
}

/// The clocks of the plan at hand on another machine, if it is possible there.
fn phases_on(
    compiled: &Compiled,
    machine: &Arc<Machine>,
    seed: u64,
    measured: bool,
) -> Option<Priced> {
    let sets = compiled.schedule().sets();
    let phases = sets.iter().map(|set| set.timetable.phases().len()).sum();
    if measured {
        let image = Image::new(machine.clone(), compiled.image().sets().to_vec()).ok()?;
        let image = Arc::new(image);
        let runs = (0..sets.len()).map(|row| {
            let run = run_checked(image.clone(), row, seed, false).ok()?;
            run.payload_ok.then_some(run.report.clocks)
        });
        return Some((runs.sum::<Option<u64>>()?, phases));
    }
    let clocks = sets.iter().map(|set| {
        let routing = set.timetable.routing();
        let (set_of, routes) = (routing.set().clone(), routing.phases().to_vec());
        let routing = Routing::new(machine.clone(), set_of, routes).ok()?;
        let timetable = Timetable::new(routing, set.timetable.phases().to_vec()).ok()?;
        Some(conset_scheduler::predict(&timetable).clocks)
    });
    Some((clocks.sum::<Option<u64>>()?, phases))
}

/// The clocks of the step plan at hand on another machine, if it is possible there.
fn steps_on(compiled: &CompiledSteps, machine: &Arc<Machine>, measured: bool) -> Option<Priced> {
    let clocks = compiled.schedule().sets().iter().map(|set| {
        let (set_of, messages) = (set.steps.set().clone(), set.steps.messages().clone());
        let steps = Steps::new(machine.clone(), set_of, messages).ok()?;
        if measured {
            let report = run_steps(&steps, &MessageOptions::default()).ok()?;
            return report.payload_ok.then_some(report.clocks);
        }
        super::of_steps_model(&steps).map(|profile| profile.clocks)
    });
    Some((clocks.sum::<Option<u64>>()?, 0))
}

/// One row for each change. `clocks_on` prices the plan at hand and a new one.
fn of(
    machine: &Arc<Machine>,
    changes: &[Change],
    mut clocks_on: impl FnMut(&Arc<Machine>) -> (Option<Priced>, Result<Priced, WhatIfError>),
) -> Result<Vec<WhatIf>, WhatIfError> {
    let mut rows: Vec<WhatIf> = Vec::with_capacity(changes.len());
    for &change in changes {
        let (parameters, divisor) = change.apply(machine.parameters());
        let mut priced = None;
        if let Ok(changed) = machine.with_parameters(parameters) {
            let (kept, again) = clocks_on(&Arc::new(changed));
            let again = match again {
                Ok(again) => Some(again),
                // A machine that the program does not fit is an answer too.
                Err(WhatIfError::Compile(_)) if change != Change::None => None,
                Err(error) => return Err(error),
            };
            let kept = kept.map(|kept| (kept, false));
            let all = kept.into_iter().chain(again.map(|again| (again, true)));
            // Of equal ones the plan at hand.
            priced = all.min_by_key(|((clocks, _), recompiled)| (*clocks, *recompiled));
        }
        let clocks = priced.map(|((clocks, _), _)| clocks.div_ceil(divisor));
        let unchanged = rows.first().and_then(|row| row.clocks).or(clocks);
        rows.push(WhatIf {
            change,
            clocks,
            clocks_over_unchanged: clocks.zip(unchanged).map(|(a, b)| bound_ratio(a, b)),
            phases: priced.map_or(0, |((_, phases), _)| phases),
            recompiled: priced.is_some_and(|(_, recompiled)| recompiled),
        });
    }
    Ok(rows)
}
