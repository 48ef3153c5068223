//! Compiling from an older compile: which of its sets are kept, and what is said of it.
//!
//! The older compile comes from outside, so the checker sees it first, on the machine that it was
//! made for. That machine may have had other dead cells and links; all else is the same. Sets are matched by name;
//! what a set keeps is decided in [`crate::from`], and what it cannot keep is planned as if there
//! were no older compile. The rest of the pipeline is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_ir::{ConnectionSet, InputError, Machine, Program, Schedule, Timetable};
use conset_partition_route::bounds;
use conset_verify::Verified;
use rayon::prelude::*;

use super::{Care, CompileError, Compiled, How, More, Options, Planned, fresh};
use crate::from::{self, Fresh, FromOld};
use crate::{Observer, Progress};

/// An older compile that the checker has seen.
pub(super) struct Old<'a> {
    schedule: &'a Schedule,
    /// The sets by name.
    rows: BTreeMap<&'a str, usize>,
    checked: Vec<Verified<Timetable>>,
}

impl<'a> Old<'a> {
    pub(super) fn new(
        machine: &Machine,
        schedule: &'a Schedule,
        observer: &mut Observer<'_>,
    ) -> Result<Self, CompileError> {
        let wrong = |message: String| InputError::new("--reuse", conset_ir::At::Whole, message);
        if schedule.sets().is_empty() {
            return Err(wrong(
                "the earlier schedule has no sets; there is nothing to reuse".into(),
            )
            .help("leave out --reuse")
            .into());
        }
        let changes = crate::diff::machine_changes(schedule.machine(), machine);
        let may_change = ["name", "dead_cells", "dead_links"];
        let is_other = |change: &&crate::diff::Change| !may_change.contains(&change.what.as_str());
        if let Some(change) = changes.iter().find(is_other) {
            let (what, a, b) = (&change.what, &change.a, &change.b);
            return Err(wrong(format!(
                "the earlier schedule is for another machine: its {what} is {a}, here it is {b}"
            ))
            .help("compile for the same machine (--machine, --param), or leave out --reuse")
            .into());
        }
        observer(Progress::Stage("checking the older compile"));
        let checked: Vec<_> = schedule
            .sets()
            .par_iter()
            .map(|s| conset_verify::timetable(s.timetable.clone()))
            .collect();
        let checked = checked
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|rejection| CompileError::Rejected(Box::new(rejection)))?;
        let names = schedule.sets().iter().map(|s| s.timetable.routing().set().name());
        Ok(Self { schedule, rows: names.zip(0..).collect(), checked })
    }

    /// Says of each set that was made from this how its tables changed.
    pub(super) fn compare(&self, compiled: &mut Compiled) {
        for (row, known) in compiled.sets.iter_mut().enumerate() {
            let Some(FromOld::Kept(kept)) = &mut known.from else { continue };
            let new = &compiled.schedule.sets()[row].timetable;
            let old = &self.checked[self.rows[new.routing().set().name()]];
            kept.entries = Some(crate::diff::entries(old, new, &compiled.image.sets()[row]));
        }
    }
}

/// Plans that keep what they can of an older compile; the rest is planned afresh.
pub(super) fn keep(
    machine: &Arc<Machine>,
    program: &Program,
    bounds: &[bounds::BoundsReport],
    old: &Old<'_>,
    options: &Options,
    more: &More<'_>,
    observer: &mut Observer<'_>,
) -> Result<Vec<Planned>, CompileError> {
    observer(Progress::Stage("keeping what fits"));
    let keep = |(set, bounds): (&Arc<ConnectionSet>, &bounds::BoundsReport)| {
        let Some(&row) = old.rows.get(set.name()) else { return Ok(Err(Fresh::NoSuchSet)) };
        from::from(machine, set, &old.schedule.sets()[row], &bounds.summary(), options)
    };
    let kept: Vec<Result<_, CompileError>> =
        program.sets().par_iter().zip(bounds).map(keep).collect();
    let mut planned = Vec::with_capacity(kept.len());
    for ((kept, set), bounds) in kept.into_iter().zip(program.sets()).zip(bounds) {
        planned.push(match kept? {
            Ok((timetable, prediction, kept)) => {
                let from = Some(FromOld::Kept(Box::new(kept)));
                (timetable, prediction, How { attempts: None, from })
            }
            Err(why) => {
                let (set, bounds) = (std::slice::from_ref(set), std::slice::from_ref(bounds));
                let mut made = fresh(machine, set, bounds, options, more, Care::Usual, observer)?;
                let (timetable, prediction, how) = made.remove(0);
                (timetable, prediction, How { from: Some(FromOld::Fresh(why)), ..how })
            }
        });
    }
    Ok(planned)
}
