//! Contexts and operation lists, from verified timetables.
//!
//! A route becomes one table entry on each of its cells: fed by a gate on the first cell and by
//! the link it came over on the others; sinking into a gate on the last cell and forwarded over
//! the next link into the next channel on the others. A connection of a cell to itself is one
//! entry with a gate at each side. Entries are written in channel order.
//!
//! It becomes one operation at each end. An operation list holds both directions, sorted by
//! (start, connection, part, sends before receives). Start and connection are the same at both
//! ends of a route, so all lists of a phase are pieces of one sequence and no two agents can wait
//! for each other. A cell that sends to itself has the send right before the receive.
//!
//! Where a connection comes in parts, its words are dealt out in the order of the phases, and
//! within a phase in the order of its routes.

use std::sync::Arc;

use conset_ir::{
    CellContext, CellId, ChannelEntry, Direction, Feed, Image, Machine, Operation, PhaseImage,
    PhaseRoutes, PhaseTimes, RouteRef, SetImage, ShapeError, Sink, Timetable,
};
use conset_verify::Verified;

/// Why timetables make no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// A timetable was made for another machine than the image.
    #[error("set `{set}` was compiled for machine `{machine}`, not for the image's")]
    OtherMachine {
        /// The set's name.
        set: String,
        /// Its machine's name.
        machine: String,
    },
    /// The sets do not fit together: two have the same name, or there are too many.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The image of a program: the sets in the order given, on one machine.
///
/// Takes O(n log n) in the cells on routes of each phase.
///
/// # Errors
/// A set that was compiled for another machine, two sets of one name, too many sets.
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

fn set_image(timetable: &Verified<Timetable>) -> SetImage {
    let routing = timetable.routing();
    let mut tables = Tables {
        cells: routing.machine().cell_count(),
        dealt: vec![0; routing.set().len()],
        entries: Vec::new(),
        operations: Vec::new(),
    };
    let phases = routing.phases().iter().zip(timetable.phases());
    let phases = phases.map(|(routes, times)| tables.phase(routes, times)).collect();
    SetImage { set: routing.set().clone(), phases }
}

/// The tables of a phase under construction; the memory is kept from phase to phase.
struct Tables {
    cells: usize,
    /// Words of each connection that earlier parts carry.
    dealt: Vec<u32>,
    entries: Vec<(CellId, ChannelEntry)>,
    /// With the row of the route.
    operations: Vec<(CellId, u32, Operation)>,
}

impl Tables {
    fn phase(&mut self, routes: &PhaseRoutes, times: &PhaseTimes) -> PhaseImage {
        self.entries.clear();
        self.operations.clear();
        for (row, (route, slot)) in routes.iter().zip(&times.slots).enumerate() {
            self.add_entries(&route);
            self.add_operations(&route, row as u32, slot.start);
        }
        self.entries.sort_unstable_by_key(|(cell, entry)| (*cell, entry.channel));
        self.operations.sort_unstable_by_key(|(cell, row, o)| {
            (*cell, o.start, o.connection, *row, o.direction)
        });

        let entries: Vec<ChannelEntry> = self.entries.iter().map(|e| e.1).collect();
        let operations: Vec<Operation> = self.operations.iter().map(|o| o.2).collect();
        // Every cell of a route has an entry.
        let mut operation = 0;
        let mut entry = 0;
        let cells = self.entries.chunk_by(|a, b| a.0 == b.0).map(|chunk| {
            let cell = chunk[0].0;
            let (first_entry, first_operation) = (entry, operation);
            entry += chunk.len();
            let here = self.operations[operation..].iter().take_while(|o| o.0 == cell);
            operation += here.count();
            let context = CellContext {
                entries: &entries[first_entry..entry],
                operations: &operations[first_operation..operation],
            };
            (cell, context)
        });
        PhaseImage::from_listed(self.cells, cells)
    }

    fn add_entries(&mut self, route: &RouteRef<'_>) {
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
            self.entries.push((cell, ChannelEntry { channel, feed, sink }));
        }
    }

    fn add_operations(&mut self, route: &RouteRef<'_>, row: u32, start: u64) {
        let dealt = &mut self.dealt[route.connection.index()];
        let first_word = *dealt;
        *dealt += route.words;
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
            self.operations.push((route.cells[end], row, operation));
        }
    }
}
