//! Compiling with sets that may be merged: both variants are compiled, and the faster one is kept.

use conset_ir::{Program, Schedule, SetSchedule};

use super::{CompileContext, compile_program};
use crate::compiled::Compiled;
use crate::fuse::{self, Fusion};
use crate::{CompileError, Observer, Progress};

/// Compiles a program in which each group of sets, given by name, may be merged into one set.
///
/// # Errors
/// A group of fewer than two sets, an unknown name or one in two groups, a merged set beyond the
/// limits; and the errors of the compilation.
pub(super) fn compile(
    context: CompileContext<'_>,
    program: &Program,
    groups: &[Vec<String>],
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let groups = fuse::members(program, groups)?;
    let merged =
        groups.iter().map(|rows| fuse::merge(program, rows)).collect::<Result<Vec<_>, _>>()?;
    let mut separate = compile_program(context, program, observer)?;
    let mut sets: Vec<Option<SetSchedule>> =
        separate.schedule().sets().iter().cloned().map(Some).collect();
    let mut fusions = Vec::new();
    let mut refused = separate.candidates_refused();
    for (rows, set) in groups.iter().zip(merged) {
        observer(Progress::Stage("merging sets"));
        let name = set.name().to_owned();
        let context = CompileContext { previous: None, ..context };
        let whole = compile_program(context, &set.into(), observer)?;
        refused += whole.candidates_refused();
        let whole = &whole.schedule().sets()[0];
        let own = || rows.iter().map(|&row| &separate.schedule().sets()[row]);
        let fusion = Fusion {
            sets: own().map(|set| set.timetable.routing().set().name().to_owned()).collect(),
            fused: whole.predicted_clocks < own().map(|set| set.predicted_clocks).sum(),
            phases_apart: own().map(|set| set.timetable.phases().len()).sum(),
            phases_fused: whole.timetable.phases().len(),
            clocks_apart: own().map(|set| set.predicted_clocks).sum(),
            clocks_fused: whole.predicted_clocks,
        };
        if fusion.fused {
            let has_name = |set: &SetSchedule| set.timetable.routing().set().name() == name;
            if sets.iter().flatten().any(has_name) {
                return Err(fuse::error(format!(
                    "the name of the merged set, `{name}`, is already used"
                ))
                .into());
            }
            for &row in rows {
                sets[row] = None;
            }
            sets[rows[0]] = Some(whole.clone());
        }
        fusions.push(fusion);
    }
    if fusions.iter().all(|fusion| !fusion.fused) {
        (separate.fusions, separate.candidates_refused) = (fusions, refused);
        return Ok(separate);
    }
    let origin = separate.schedule().origin().cloned();
    let sets: Vec<SetSchedule> = sets.into_iter().flatten().collect();
    let schedule = Schedule::new(context.machine.clone(), sets, origin)
        .map_err(|e| CompileError::bug("merging sets", &e))?
        .with_digest();
    let mut compiled =
        Compiled::import(schedule, observer).map_err(|e| e.rejection_is_bug("merging sets"))?;
    (compiled.fusions, compiled.candidates_refused) = (fusions, refused);
    Ok(compiled)
}
