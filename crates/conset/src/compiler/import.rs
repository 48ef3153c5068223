//! Importing schedules and images: they are checked, analysed, and completed.

use std::sync::Arc;

use conset_ir::{At, Binding, Bounds, Image, InputError, Schedule, SetSchedule, Timetable};
use conset_partition_route::bounds;
use conset_scheduler::{fixed_starts, predict};
use conset_verify::{Lifted, Rule};

use super::{Analysis, Provenance, generate, verify};
use crate::compiled::{Compiled, CompiledSet};
use crate::{CompileError, Observer, Progress, parallel};

impl Compiled {
    /// Imports a schedule from elsewhere, such as a file: checks it and generates its image.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
    /// use conset::{Compiled, Compiler};
    ///
    /// let machine = Arc::new(Machine::from_spec("ring:4")?);
    /// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 5)])?;
    /// let compiled = Compiler::new(&machine).compile(&set.into())?;
    /// let imported = Compiled::import(compiled.schedule().clone(), &mut |_| ())?;
    /// assert_eq!(imported.image(), compiled.image());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CompileError::Rejected`] if the checker refuses it.
    pub fn import(
        schedule: Schedule,
        observer: &mut Observer<'_>,
    ) -> Result<Compiled, CompileError> {
        // Check first: bounds and predictions require a valid schedule.
        let schedule = with_witnesses(schedule);
        let verified = verify(&schedule, observer)?;
        let analyses = schedule
            .sets()
            .iter()
            .map(|set| {
                let routing = set.timetable.routing();
                let bounds = bounds::bounds(routing.machine(), routing.set())?;
                let prediction = predict::predict(&set.timetable);
                Ok(Analysis { bounds, prediction, provenance: Provenance::default() })
            })
            .collect::<Result<Vec<_>, CompileError>>()?;
        generate(schedule, &verified, analyses, observer)
    }

    /// Imports an image from elsewhere: checks it, follows its tables back to routes and starts,
    /// and prices these. The image itself is kept unchanged.
    ///
    /// # Errors
    /// [`CompileError::Rejected`] if the checker refuses the image, or the schedule that it was
    /// lifted to; an image of step plans ([`crate::steps::schedule_of_image`]).
    pub fn import_image(
        image: Image,
        observer: &mut Observer<'_>,
    ) -> Result<Compiled, CompileError> {
        observer(Progress::Stage("checking"));
        if image.is_steps() {
            let message = "an image of step plans; expected one of phases";
            let error = InputError::new("<image>", At::Whole, message);
            return Err(error.help("import it by steps::schedule_of_image").into());
        }
        let image = conset_verify::image(image)?.into_inner();
        let mut schedules = Vec::new();
        let mut sets = Vec::new();
        for lifted in conset_verify::lift(&image)? {
            let timetable = timetable_of(&lifted);
            let bounds = bounds::bounds(image.machine(), timetable.routing().set())?;
            let prediction = predict::predict(&timetable);
            let schedule = SetSchedule {
                timetable,
                bounds: crate::bounds::claimed(&bounds, &prediction),
                proof: bounds.proof(),
                predicted_clocks: prediction.clocks,
            };
            let verified = conset_verify::set_schedule(schedule)?;
            let checked = *verified.report();
            sets.push(CompiledSet { bounds, prediction, checked, search: None, reuse: None });
            schedules.push(verified.into_inner());
        }
        let schedule = Schedule::new(image.machine().clone(), schedules, None)
            .map_err(|e| CompileError::bug("lifting", &e))?
            .with_digest();
        let image = Arc::new(image);
        Ok(Compiled { schedule, image, sets, fusions: Vec::new(), candidates_refused: 0 })
    }
}

/// Adds witnesses to bounds that have none and that the checker refuses without one. Files of
/// version 1 contain no witnesses, but their bounds may be correct. A witness is only added if one
/// is found; the checker verifies it like any other.
#[must_use]
pub fn with_witnesses(schedule: Schedule) -> Schedule {
    let sets: Vec<SetSchedule> = parallel::map(schedule.sets(), with_witness);
    if sets == schedule.sets() {
        return schedule;
    }
    let (origin, digest) = (schedule.origin().cloned(), schedule.digest());
    let part_map = schedule.part_map().cloned();
    let proved = Schedule::new(schedule.machine().clone(), sets, origin);
    match proved.and_then(|proved| proved.with_part_map(part_map)) {
        Ok(schedule) => schedule.with_stated_digest(digest),
        Err(_) => schedule,
    }
}

fn with_witness(set: &SetSchedule) -> SetSchedule {
    let mut set = set.clone();
    let missing = set.proof.phases.is_none() || set.proof.clocks.is_none();
    let refused = |set| match conset_verify::check_set_schedule(set) {
        Ok(_) => false,
        Err(rejection) => rejection.rules() == [Rule::Claim],
    };
    if !missing || !refused(&set) {
        return set;
    }
    let routing = set.timetable.routing();
    // Without bounds there is no witness; the checker then reports the error.
    let Ok(report) = bounds::bounds(routing.machine(), routing.set()) else { return set };
    let find = |found: &[bounds::Bound], claimed: u64, by: Binding| {
        let fits =
            |b: &&bounds::Bound| b.value >= claimed && (by == Binding::Nothing || b.binding == by);
        found.iter().find(fits).and_then(|bound| bound.witness.clone())
    };
    let Bounds { phases, phases_by, clocks, clocks_by } = set.bounds;
    let of_phases = || find(&report.phases, phases.into(), phases_by);
    let of_clocks = || find(&report.clocks, clocks, clocks_by);
    set.proof.phases = set.proof.phases.take().or_else(of_phases);
    set.proof.clocks = set.proof.clocks.take().or_else(of_clocks);
    set
}

/// The timetable of an image's set. An image does not contain durations: these are the scheduler's
/// if they fit between the starts, otherwise the shortest possible.
fn timetable_of(lifted: &Lifted) -> Timetable {
    let scheduled = fixed_starts::with_starts(lifted.routing.clone(), &lifted.starts);
    let scheduled = scheduled.ok().filter(|table| conset_verify::check_timetable(table).is_ok());
    scheduled.unwrap_or_else(|| lifted.timetable())
}
