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
    CellContext, CellId, ChannelEntry, Direction, Feed, Image, Machine, Operation, PhaseId,
    PhaseImage, PhaseRoutes, PhaseTimes, RouteRef, SetImage, ShapeError, Sink, Timetable,
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
    let mut tables = Tables::new(routing.machine().cell_count(), routing.set().len());
    let phases = routing.phases().iter().zip(timetable.phases());
    let phases = phases.map(|(routes, times)| tables.phase(routes, times)).collect();
    SetImage { set: routing.set().clone(), phases }
}

/// The forwarding tables of one phase, without its operation lists: those that its context in the
/// image has, for comparing them without making an image. O(cells + n log n) in the cells on routes.
///
/// # Panics
/// A phase that the timetable has not.
pub fn entries(timetable: &Verified<Timetable>, phase: PhaseId) -> PhaseEntries {
    let routing = timetable.routing();
    let mut entries = Vec::new();
    for route in routing.phases()[phase.index()].iter() {
        add_entries(&route, &mut entries);
    }
    let mut by_cell = ByCell::new(routing.machine().cell_count());
    by_cell.sort(&entries, |entry| entry.channel);
    PhaseEntries(by_cell)
}

/// The forwarding tables of one phase.
pub struct PhaseEntries(ByCell<ChannelEntry>);

impl PhaseEntries {
    /// The table of a cell, in channel order.
    pub fn cell(&self, cell: CellId) -> &[ChannelEntry] {
        self.0.of(cell.index())
    }
}

/// The tables of a phase under construction; the memory is kept from phase to phase.
struct Tables {
    /// Words of each connection that earlier parts carry.
    dealt: Vec<u32>,
    entries: Vec<(CellId, ChannelEntry)>,
    /// With the row of the route.
    operations: Vec<(CellId, (u32, Operation))>,
    entries_of: ByCell<ChannelEntry>,
    operations_of: ByCell<(u32, Operation)>,
    /// The operations without their rows.
    listed: Vec<Operation>,
}

impl Tables {
    fn new(cells: usize, connections: usize) -> Self {
        Self {
            dealt: vec![0; connections],
            entries: Vec::new(),
            operations: Vec::new(),
            entries_of: ByCell::new(cells),
            operations_of: ByCell::new(cells),
            listed: Vec::new(),
        }
    }

    fn phase(&mut self, routes: &PhaseRoutes, times: &PhaseTimes) -> PhaseImage {
        self.entries.clear();
        self.operations.clear();
        for (row, (route, slot)) in routes.iter().zip(&times.slots).enumerate() {
            add_entries(&route, &mut self.entries);
            self.add_operations(&route, row as u32, slot.start);
        }
        self.entries_of.sort(&self.entries, |entry| entry.channel);
        self.operations_of
            .sort(&self.operations, |(row, o)| (o.start, o.connection, *row, o.direction));
        self.listed.clear();
        self.listed.extend(self.operations_of.items.iter().map(|o| o.1));
        let cells = self.entries_of.cells();
        // Every cell of a route has an entry.
        let listed = (0..cells).filter(|&cell| !self.entries_of.of(cell).is_empty()).map(|cell| {
            let context = CellContext {
                entries: self.entries_of.of(cell),
                operations: &self.listed[self.operations_of.range(cell)],
            };
            (CellId::from_index(cell), context)
        });
        PhaseImage::from_listed(cells, listed)
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

/// Items in rows by cell, each row sorted: counted, placed, and then only short rows to sort.
struct ByCell<T> {
    /// Row `c` is `items[first[c]..first[c + 1]]`.
    first: Vec<u32>,
    next: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> ByCell<T> {
    fn new(cells: usize) -> Self {
        Self { first: vec![0; cells + 1], next: Vec::new(), items: Vec::new() }
    }

    fn sort<K: Ord>(&mut self, items: &[(CellId, T)], key: impl Fn(&T) -> K) {
        self.items.clear();
        self.first.fill(0);
        let Some(&(_, any)) = items.first() else { return };
        for (cell, _) in items {
            self.first[cell.index() + 1] += 1;
        }
        for cell in 1..self.first.len() {
            self.first[cell] += self.first[cell - 1];
        }
        self.next.clone_from(&self.first);
        self.items.resize(items.len(), any);
        for &(cell, item) in items {
            let next = &mut self.next[cell.index()];
            self.items[*next as usize] = item;
            *next += 1;
        }
        for cell in 0..self.cells() {
            let range = self.range(cell);
            self.items[range].sort_unstable_by_key(&key);
        }
    }

    fn cells(&self) -> usize {
        self.first.len() - 1
    }

    fn range(&self, cell: usize) -> std::ops::Range<usize> {
        self.first[cell] as usize..self.first[cell + 1] as usize
    }

    fn of(&self, cell: usize) -> &[T] {
        &self.items[self.range(cell)]
    }
}
