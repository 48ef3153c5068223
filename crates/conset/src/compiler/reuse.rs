//! Compiling with an earlier schedule: its sets are checked, matched by name, and reused.
//!
//! The schedule comes from outside, so the checker verifies it first, on the machine that it was
//! made for. That machine may have had other dead cells and links; all else must be the same.
//! [`crate::incremental`] decides what a set reuses; a set that cannot reuse anything is planned as
//! if there were no earlier schedule.

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

use conset_ir::{At, ConnectionSet, InputError, Machine, Program, Schedule, Timetable};
use conset_partition_route::bounds::BoundsReport;
use conset_verify::Verified;

use super::{CompileContext, PlannedSet, Provenance, plan as plan_sets};
use crate::compiled::Compiled;
use crate::incremental::{self, RecompileReason, ReuseOutcome};
use crate::search::PlanChecks;
use crate::{CompileError, Observer, Progress, parallel, schedule_diff, table_diff};

/// An earlier schedule that the checker has accepted.
pub(super) struct PreviousSchedule<'a> {
    schedule: &'a Schedule,
    /// The row of each set, by name.
    rows: BTreeMap<&'a str, usize>,
    timetables: Vec<Verified<Timetable>>,
}

impl<'a> PreviousSchedule<'a> {
    /// Checks a schedule.
    ///
    /// # Errors
    /// A schedule without sets, one for another machine, one that the checker refuses.
    pub(super) fn check(
        machine: &Machine,
        schedule: &'a Schedule,
        observer: &mut Observer<'_>,
    ) -> Result<Self, CompileError> {
        let error = |message: String| InputError::new("<reuse>", At::Whole, message);
        if schedule.sets().is_empty() {
            return Err(error(
                "the earlier schedule has no sets; there is nothing to reuse".into(),
            )
            .help("leave out <reuse>")
            .into());
        }
        let changes = schedule_diff::machine_changes(schedule.machine(), machine);
        let may_change = ["name", "dead_cells", "dead_links"];
        let changed = changes.iter().find(|change| !may_change.contains(&change.what.as_str()));
        if let Some(change) = changed {
            let (what, a, b) = (&change.what, &change.a, &change.b);
            return Err(error(format!(
                "the earlier schedule is for another machine: its {what} is {a}, here it is {b}"
            ))
            .help("compile for the same machine (<machine>, <param>), or leave out <reuse>")
            .into());
        }
        observer(Progress::Stage("verifying the earlier schedule"));
        let timetables = parallel::try_map(schedule.sets(), |set| {
            conset_verify::timetable(set.timetable.clone())
        })?;
        let names = schedule.sets().iter().map(|s| s.timetable.routing().set().name());
        Ok(Self { schedule, rows: names.zip(0..).collect(), timetables })
    }

    /// Compares the forwarding tables of each set that reuses this schedule with the earlier ones.
    pub(super) fn compare_tables(&self, compiled: &mut Compiled) {
        for (row, set) in compiled.sets.iter_mut().enumerate() {
            let Some(ReuseOutcome::Reused(report)) = &mut set.reuse else { continue };
            let new = &compiled.schedule.sets()[row].timetable;
            let old = &self.timetables[self.rows[new.routing().set().name()]];
            let image = &compiled.image.sets()[row];
            report.entries = Some(table_diff::compare_with_image(old, new, image));
        }
    }
}

/// Plans sets that reuse what they can of an earlier schedule.
pub(super) fn plan(
    context: CompileContext<'_>,
    program: &Program,
    bounds: &[BoundsReport],
    previous: &PreviousSchedule<'_>,
    observer: &mut Observer<'_>,
) -> Result<Vec<PlannedSet>, CompileError> {
    observer(Progress::Stage("reusing connections"));
    let reuse = |&(set, bounds): &(&Arc<ConnectionSet>, &BoundsReport)| {
        let Some(&row) = previous.rows.get(set.name()) else {
            return Ok(Err(RecompileReason::NoSuchSet));
        };
        let old = &previous.schedule.sets()[row];
        incremental::plan(context.machine, set, old, &bounds.summary(), context.options)
    };
    let sets: Vec<_> = program.sets().iter().zip(bounds).collect();
    let reused: Vec<Result<_, CompileError>> = parallel::map(&sets, reuse);
    let mut planned = Vec::with_capacity(reused.len());
    for ((reused, set), bounds) in reused.into_iter().zip(program.sets()).zip(bounds) {
        planned.push(match reused? {
            Ok((timetable, prediction, report)) => {
                let reuse = Some(ReuseOutcome::Reused(Box::new(report)));
                (timetable, prediction, Provenance { search: None, reuse })
            }
            Err(reason) => {
                let context = CompileContext { checks: PlanChecks::Deferred, ..context };
                let mut new = plan_sets(context, from_ref(set), from_ref(bounds), observer)?;
                let (timetable, prediction, provenance) = new.remove(0);
                let reuse = Some(ReuseOutcome::Recompiled(reason));
                (timetable, prediction, Provenance { reuse, ..provenance })
            }
        });
    }
    Ok(planned)
}
