//! Generation of images: contexts and operation lists from verified timetables, or step plans.
//!
//! A route becomes one table entry on each of its cells. It is fed by a gate on the first cell and
//! by the previous link on the others. It ends in a gate on the last cell and is forwarded over the
//! next link on the others. A connection of a cell to itself is one entry with two gates. Entries
//! are in channel order.
//!
//! A route also becomes one operation at each end. An operation list has both directions, sorted by
//! (start, connection, part, sends before receives). Start and connection are the same at both ends
//! of a route, so all lists of a phase are subsequences of one sequence, and no two agents can wait
//! for each other. In a cell that sends to itself, the send directly precedes the receive.
//!
//! The image of a step plan is the plan: its operation lists follow from it
//! ([`conset_ir::Steps::lists`]).
//!
//! The words of a connection with several parts are assigned in the order of the phases, and within
//! a phase in the order of its routes.

use std::sync::Arc;

use conset_ir::convert::to_u32;
use conset_ir::{
    CellContext, CellId, ChannelEntry, Direction, Feed, Image, Lists, Machine, Operation, PhaseId,
    PhaseImage, PhaseRoutes, PhaseTimes, RouteRef, SetImage, ShapeError, Sink, StepSchedule,
    Timetable,
};
use conset_verify::Verified;

/// The reason why timetables cannot be combined into an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// A timetable is for another machine than the image.
    #[error("set `{set}` was compiled for machine `{machine}`, not for the image's")]
    OtherMachine {
        /// The set's name.
        set: String,
        /// Its machine's name.
        machine: String,
    },
    /// Two sets have the same name, or there are too many sets.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The image of a program: the sets in the order given, on one machine.
///
/// O(n log n) in the total length n of the routes of each phase.
///
/// # Errors
/// A set that was compiled for another machine, two sets of the same name, or too many sets.
pub fn image(machine: &Arc<Machine>, sets: &[Verified<Timetable>]) -> Result<Image, ImageError> {
    let mut images = Vec::with_capacity(sets.len());
    for timetable in sets {
        let routing = timetable.routing();
        if **routing.machine() != **machine {
            return Err(ImageError::OtherMachine {
                set: routing.set().name().to_owned(),
                machine: routing.machine().name().to_owned(),
            });
        }
        images.push(set_image(timetable));
    }
    Ok(Image::new(machine.clone(), images)?)
}

/// The image of a program that is compiled to steps.
///
/// # Errors
/// None that a verified schedule causes; a schedule of another kind of shape than an image has.
pub fn step_image(schedule: &Verified<StepSchedule>) -> Result<Image, ImageError> {
    let sets = schedule.sets().iter().map(|set| SetImage::of_steps(set.steps.clone()));
    Ok(Image::new(schedule.machine().clone(), sets.collect())?)
}

fn set_image(timetable: &Verified<Timetable>) -> SetImage {
    let routing = timetable.routing();
    let mut builder = PhaseBuilder::new(routing.machine().cell_count(), routing.set().len());
    let phases = routing.phases().iter().zip(timetable.phases());
    let phases = phases.map(|(routes, times)| builder.phase(routes, times)).collect();
    SetImage::of_phases(routing.set().clone(), phases)
}

/// The forwarding tables of one phase as in the image, without operation lists, for comparing
/// tables without generating an image. O(cells + n log n) in the total length n of the routes.
///
/// # Panics
/// If the timetable does not have the phase.
pub fn entries(timetable: &Verified<Timetable>, phase: PhaseId) -> PhaseEntries {
    let routing = timetable.routing();
    let mut entries = Vec::new();
    for route in routing.phases()[phase.index()].iter() {
        add_entries(&route, &mut entries);
    }
    let mut by_cell = Lists::default();
    group(&mut by_cell, routing.machine().cell_count(), &entries, |entry| entry.channel);
    PhaseEntries(by_cell)
}

/// The forwarding tables of one phase.
#[derive(Clone, Debug)]
pub struct PhaseEntries(Lists<ChannelEntry>);

impl PhaseEntries {
    /// The table of a cell, in channel order.
    ///
    /// # Panics
    /// If it is not a cell of the machine.
    pub fn cell(&self, cell: CellId) -> &[ChannelEntry] {
        self.0.of(cell.0)
    }
}

/// Builds the tables of phases. It reuses its memory for all phases.
struct PhaseBuilder {
    cells: usize,
    /// Words of each connection in earlier parts.
    assigned: Vec<u32>,
    entries: Vec<(CellId, ChannelEntry)>,
    /// With the row of the route.
    operations: Vec<(CellId, (u32, Operation))>,
    entries_of: Lists<ChannelEntry>,
    operations_of: Lists<(u32, Operation)>,
    /// The operations without their rows.
    listed: Vec<Operation>,
}

impl PhaseBuilder {
    fn new(cells: usize, connections: usize) -> Self {
        Self {
            cells,
            assigned: vec![0; connections],
            entries: Vec::new(),
            operations: Vec::new(),
            entries_of: Lists::default(),
            operations_of: Lists::default(),
            listed: Vec::new(),
        }
    }

    fn phase(&mut self, routes: &PhaseRoutes, times: &PhaseTimes) -> PhaseImage {
        self.entries.clear();
        self.operations.clear();
        for (row, (route, slot)) in routes.iter().zip(&times.slots).enumerate() {
            add_entries(&route, &mut self.entries);
            self.add_operations(&route, to_u32(row), slot.start);
        }
        group(&mut self.entries_of, self.cells, &self.entries, |entry| entry.channel);
        group(&mut self.operations_of, self.cells, &self.operations, |(row, o)| {
            (o.start, o.connection, *row, o.direction)
        });
        self.listed.clear();
        self.listed.extend(self.operations_of.items().iter().map(|o| o.1));
        let cells = 0..self.entries_of.rows();
        // Every cell of a route has an entry.
        let listed = cells.filter(|&cell| !self.entries_of.of(cell).is_empty()).map(|cell| {
            let context = CellContext {
                entries: self.entries_of.of(cell),
                operations: &self.listed[self.operations_of.range(cell)],
            };
            (CellId(cell), context)
        });
        PhaseImage::from_listed(self.cells, listed)
    }

    fn add_operations(&mut self, route: &RouteRef<'_>, row: u32, start: u64) {
        let assigned = &mut self.assigned[route.connection.index()];
        let first_word = *assigned;
        *assigned += route.words;
        let last = route.hops();
        for (direction, end) in [(Direction::Send, 0), (Direction::Receive, last)] {
            let operation = Operation {
                direction,
                connection: route.connection,
                channel: route.channels[end],
                words: route.words,
                first_word,
                start,
            };
            self.operations.push((route.cells[end], (row, operation)));
        }
    }
}

fn add_entries(route: &RouteRef<'_>, entries: &mut Vec<(CellId, ChannelEntry)>) {
    let links = route.links();
    for (at, (&cell, &channel)) in route.cells.iter().zip(route.channels).enumerate() {
        let feed = match at {
            0 => Feed::Gate(route.connection),
            _ => Feed::Link(links[at - 1]),
        };
        let sink = match links.get(at) {
            None => Sink::Gate(route.connection),
            Some(&link) => Sink::Forward { link, channel: route.channels[at + 1] },
        };
        entries.push((cell, ChannelEntry { channel, feed, sink }));
    }
}

/// Groups items by cell, and sorts those of each cell by a key that has no duplicates.
fn group<T: Copy, K: Ord>(
    lists: &mut Lists<T>,
    cells: usize,
    items: &[(CellId, T)],
    key: impl Fn(&T) -> K,
) {
    lists.rebuild(cells, items.iter().map(|&(cell, item)| (cell.0, item)));
    for cell in 0..lists.rows() {
        lists.of_mut(cell).sort_unstable_by_key(&key);
    }
}
