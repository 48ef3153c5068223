//! The views of a schedule of steps that phases have too: loads of links, maps, cells and charts.
//!
//! Messages have routes of their own on the machine ([`MessageRoutes`]). Times are those of the cost
//! model.

use conset::fabric::messages::MessageRoutes;
use conset::profile;
use conset::steps::CompiledSteps;
use conset_ir::{CellId, LinkId, Machine, SetSteps, StepMessage, StepSchedule};

use super::columns::{CLOCKS, add_links, clocks};
use super::map::LinkLoads;
use crate::rows::{Field, TableRows};

/// The part of a schedule of steps to show.
#[derive(Clone, Copy)]
pub(crate) struct StepSelection<'a> {
    pub(super) set: Option<&'a str>,
    /// Only messages that this cell sends or receives.
    pub(super) cell: Option<CellId>,
    /// Only messages with at least this number of words.
    pub(super) min_words: u32,
}

impl StepSelection<'_> {
    pub(crate) fn sets<'b>(
        &self,
        schedule: &'b StepSchedule,
    ) -> impl Iterator<Item = &'b SetSteps> {
        let sets = schedule.sets().iter();
        sets.filter(|set| self.set.is_none_or(|name| name == set.steps.set().name()))
    }

    /// Whether a message is selected.
    pub(crate) fn has(&self, message: &StepMessage<'_>) -> bool {
        let ends = [message.source, message.target];
        message.words() >= u64::from(self.min_words)
            && self.cell.is_none_or(|cell| ends.contains(&cell))
    }
}

/// The links of a message.
pub(super) fn route(routes: &mut MessageRoutes<'_>, message: &StepMessage<'_>) -> Vec<LinkId> {
    let mut links = Vec::new();
    routes.links(message.source, message.target, &mut links);
    links
}

/// What crosses each link in the selected messages of a set.
pub(super) fn loads(machine: &Machine, set: &SetSteps, only: &StepSelection<'_>) -> LinkLoads {
    let mut routes = MessageRoutes::new(machine);
    let mut loads = LinkLoads::new(machine);
    for message in set.steps.messages().iter().filter(|message| only.has(message)) {
        loads.add(&route(&mut routes, &message), message.words());
    }
    loads
}

/// The load of each link.
pub(super) fn links(schedule: &StepSchedule, only: &StepSelection<'_>) -> TableRows {
    let machine = schedule.machine();
    let mut rows =
        TableRows::new(&["set", "link", "source", "target", "messages", "words", "clocks"], 4);
    // The filter by cell is for links here, as it is with phases.
    let all = StepSelection { cell: None, ..*only };
    for set in only.sets(schedule) {
        let loads = loads(machine, set, &all);
        add_links(&mut rows, &[set.steps.set().name().into()], machine, &loads, only.cell);
    }
    rows
}

/// Per cell: its messages, and what its agent does by the cost model.
pub(super) fn cells(compiled: &CompiledSteps, only: &StepSelection<'_>) -> TableRows {
    let own = ["set", "cell", "sends", "receives", "words_out", "words_in"];
    let mut rows = TableRows::new(&[&own[..], &CLOCKS].concat(), 2);
    for set in only.sets(compiled.schedule()) {
        let cells = compiled.schedule().machine().cell_count();
        // Messages and words that a cell sends, and those that it receives.
        let mut traffic = vec![[(0u64, 0u64); 2]; cells];
        for message in set.steps.messages().iter() {
            for (cell, side) in [(message.source, 0), (message.target, 1)] {
                let (messages, words) = &mut traffic[cell.index()][side];
                *messages += 1;
                *words += message.words();
            }
        }
        // Without routes there are no times.
        let Some(profile) = profile::of_steps_model(&set.steps) else { continue };
        for ports in profile.ports.chunk_by(|a, b| a.cell == b.cell) {
            let cell = ports[0].cell;
            if only.cell.is_some_and(|only| only != cell) {
                continue;
            }
            let [out, incoming] = traffic[cell.index()];
            let mut row: Vec<Field> = vec![
                set.steps.set().name().into(),
                cell.into(),
                out.0.into(),
                incoming.0.into(),
                out.1.into(),
                incoming.1.into(),
            ];
            row.extend(clocks(ports.iter().map(|port| &port.clocks)));
            rows.rows.push(row);
        }
    }
    rows
}
