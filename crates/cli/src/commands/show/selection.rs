//! The part of a schedule that `conset show` shows: sets, phases, cells, and routes with enough words.

use conset_ir::{At, CellId, InputError, Machine, PhaseId, RouteRef, Schedule, SetSchedule, Slot};

/// The part of a schedule to show.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    pub(super) phase: Option<PhaseId>,
    pub(super) set: Option<&'a str>,
    /// Only what begins or ends at this cell.
    pub(super) cell: Option<CellId>,
    /// Only routes with at least this number of words.
    pub(super) min_words: u32,
}

impl Selection<'_> {
    pub(super) fn check(&self, schedule: &Schedule) -> Result<(), InputError> {
        let sets = schedule.sets();
        let names: Vec<&str> = sets.iter().map(|s| s.timetable.routing().set().name()).collect();
        check_set(self.set, &names)?;
        if let Some(cell) = self.cell {
            check_cell(schedule.machine(), cell)?;
        }
        let most = self.sets(schedule).map(|(_, s)| s.timetable.phases().len()).max().unwrap_or(0);
        if let Some(phase) = self.phase.filter(|phase| phase.index() >= most) {
            return Err(InputError::new(
                "--phase",
                At::Path(phase.to_string()),
                match most {
                    0 => "there are no phases".to_owned(),
                    most => format!("the phases are p0 to p{}", most - 1),
                },
            ));
        }
        Ok(())
    }

    pub(super) fn sets<'b>(
        &self,
        schedule: &'b Schedule,
    ) -> impl Iterator<Item = (usize, &'b SetSchedule)> {
        schedule
            .sets()
            .iter()
            .enumerate()
            .filter(|(_, s)| self.set.is_none_or(|name| s.timetable.routing().set().name() == name))
    }

    /// Whether a route is selected by its ends and words.
    pub(super) fn has(&self, route: &RouteRef<'_>) -> bool {
        let ends = [route.cells[0], route.cells[route.cells.len() - 1]];
        route.words >= self.min_words && self.cell.is_none_or(|cell| ends.contains(&cell))
    }

    /// Whether a phase is selected.
    pub(super) fn has_phase(&self, phase: PhaseId) -> bool {
        self.phase.is_none_or(|wanted| wanted == phase)
    }

    /// Visits every selected route with its set, phase and slot.
    pub(super) fn for_each_route<'b>(
        &self,
        schedule: &'b Schedule,
        mut visit: impl FnMut(&'b SetSchedule, PhaseId, RouteRef<'b>, Slot),
    ) {
        for (_, set) in self.sets(schedule) {
            for ((id, routes), times) in set.timetable.routing().iter().zip(set.timetable.phases())
            {
                if self.has_phase(id) {
                    for (route, &slot) in routes.iter().zip(&times.slots) {
                        if self.has(&route) {
                            visit(set, id, route, slot);
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn check_cell(machine: &Machine, cell: CellId) -> Result<(), InputError> {
    if cell.index() < machine.cell_count() {
        return Ok(());
    }
    Err(InputError::new(
        "show cell",
        At::Path(cell.to_string()),
        format!("the machine has cells c0 to c{}", machine.cell_count() - 1),
    ))
}

/// Refuses the name of a set that does not exist.
pub(super) fn check_set(wanted: Option<&str>, names: &[&str]) -> Result<(), InputError> {
    match wanted.filter(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => Err(InputError::new("--set", At::Path(name.into()), "no set of that name")
            .help(format!("sets: {}", names.join(", ")))),
    }
}
