//! Images: the communication contexts and operation lists that a runtime loads.
//!
//! In each phase every cell has
//!
//! * a *context*: its forwarding table. An entry states for one logical channel where its words
//!   come from (a gate, through which the cell's own agent injects them, or a link) and where they
//!   go (a gate, through which the agent takes them out, or a channel of the next cell);
//! * an *operation list*: what its agent sends and receives, through which channels, in order.
//!
//! An image has no routes; they result from following the tables, as the checker does (`lift`). So
//! incorrect tables can be represented, and the checker refuses them.
//!
//! The tables of a phase are in flat arrays, ordered by cell. Cells without tables take no space.
//!
//! The sets of a machine without tables have a step plan instead of phases. Its operation lists
//! follow from the plan ([`Steps::lists`]): an operation has a peer and pieces instead of a channel.
//! The plan is stored and not the lists, because both ends of a message then agree by construction.

use std::sync::Arc;

use crate::convert::{index, to_u32};
use crate::error::ShapeError;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId};
use crate::limits;
use crate::machine::Machine;
use crate::set::{ConnectionSet, Program};
use crate::steps::Steps;

/// The source of the words of a channel. Exhaustive, since the model has no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feed {
    /// The cell's agent injects this connection.
    Gate(ConnectionId),
    /// The link over which the previous cell forwards into this channel.
    Link(LinkId),
}

/// The destination of the words of a channel. Exhaustive, since the model has no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sink {
    /// The cell's agent takes this connection out.
    Gate(ConnectionId),
    /// A channel of the neighbour across a link.
    Forward {
        /// The link.
        link: LinkId,
        /// The channel on the link's target cell.
        channel: ChannelId,
    },
}

/// A row of a forwarding table.
///
/// The fields are public and the row has no invariant: it is what a file or an emitted crate
/// stores, [`Image::new`] checks its ids, and the checker decides whether it is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelEntry {
    /// The channel.
    pub channel: ChannelId,
    /// The source of its words.
    pub feed: Feed,
    /// The destination of its words.
    pub sink: Sink,
}

/// The direction of an operation. Exhaustive, since the model has no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the agent into the network.
    Send,
    /// From the network to the agent.
    Receive,
}

/// A row of an operation list: a stream of words through a gate.
///
/// The fields are public for the same reason as those of [`ChannelEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Send or receive.
    pub direction: Direction,
    /// The connection.
    pub connection: ConnectionId,
    /// The channel behind the gate.
    pub channel: ChannelId,
    /// Number of words to move.
    pub words: u32,
    /// The index of the first word in the connection's data; not 0 for the later parts of a split
    /// connection.
    pub first_word: u32,
    /// Planned start, in clocks from the start of the phase. With timed starts the agent does not
    /// open the stream earlier ([`crate::Parameters::timed_starts`]). Otherwise agents keep the
    /// order of the list only, and the start is for people and for the checker.
    pub start: u64,
}

/// The context and operation list of a cell in a phase, borrowed.
///
/// A view with public fields; it has no invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellContext<'a> {
    /// The forwarding table, in channel order if `conset-codegen` generated it.
    pub entries: &'a [ChannelEntry],
    /// The operation list, in the order of execution.
    pub operations: &'a [Operation],
}

/// The contexts and operation lists of all cells in one phase. A cell without either takes no
/// memory: on a large machine, few cells may participate in a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseImage {
    /// Number of cells of the machine.
    cells: usize,
    /// The cells with tables, ascending.
    listed: Vec<TableEnds>,
    entries: Vec<ChannelEntry>,
    operations: Vec<Operation>,
}

/// A cell with tables, and where they end in the flat arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableEnds {
    cell: CellId,
    entries: u32,
    operations: u32,
}

impl PhaseImage {
    /// Copies the tables of all cells of a machine, in id order.
    pub fn from_cells<'a>(cells: impl IntoIterator<Item = CellContext<'a>>) -> Self {
        let mut count = 0;
        let numbered = cells.into_iter().inspect(|_| count += 1).enumerate();
        let listed = numbered.map(|(row, context)| (CellId::from_index(row), context));
        let mut this = Self::from_listed(0, listed);
        this.cells = count;
        this
    }

    /// Copies the tables of some of `cells` cells, in id order; the other cells have none.
    ///
    /// # Panics
    /// If the ids do not ascend, or a phase has 2^32 entries or more, which
    /// [`crate::limits::HOPS`] rules out.
    pub fn from_listed<'a>(
        cells: usize,
        listed: impl IntoIterator<Item = (CellId, CellContext<'a>)>,
    ) -> Self {
        let mut this =
            Self { cells, listed: Vec::new(), entries: Vec::new(), operations: Vec::new() };
        for (cell, context) in listed {
            if context.entries.is_empty() && context.operations.is_empty() {
                continue;
            }
            assert!(this.listed.last().is_none_or(|last| last.cell < cell), "cells ascend");
            this.entries.extend_from_slice(context.entries);
            this.operations.extend_from_slice(context.operations);
            let entries = to_u32(this.entries.len());
            let operations = to_u32(this.operations.len());
            this.listed.push(TableEnds { cell, entries, operations });
        }
        this
    }

    /// Number of cells of the machine.
    pub fn cell_count(&self) -> usize {
        self.cells
    }

    /// The tables of a cell; empty if it does not participate in the phase.
    pub fn cell(&self, cell: CellId) -> CellContext<'_> {
        match self.row_of(cell) {
            Some(row) => self.row(row).1,
            None => CellContext { entries: &[], operations: &[] },
        }
    }

    /// The tables of the participating cells, in id order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = (CellId, CellContext<'_>)> {
        (0..self.listed.len()).map(|row| self.row(row))
    }

    /// The position of a cell in [`PhaseImage::cells`]; `None` if it does not participate.
    pub fn row_of(&self, cell: CellId) -> Option<usize> {
        // The position is at most the id, and equal to it if all cells participate.
        let end = self.listed.len().min(cell.index() + 1);
        let rows = &self.listed[..end];
        match rows.last() {
            Some(last) if last.cell == cell => Some(end - 1),
            _ => rows.binary_search_by_key(&cell, |row| row.cell).ok(),
        }
    }

    fn row(&self, row: usize) -> (CellId, CellContext<'_>) {
        let (entry, operation) = match row {
            0 => (0, 0),
            _ => (self.listed[row - 1].entries, self.listed[row - 1].operations),
        };
        let TableEnds { cell, entries, operations } = self.listed[row];
        let context = CellContext {
            entries: &self.entries[index(entry)..index(entries)],
            operations: &self.operations[index(operation)..index(operations)],
        };
        (cell, context)
    }
}

/// The image of one set: its phases, or its step plan. In messages its phases are `set/p0`,
/// `set/p1`, ...
///
/// The fields are public because emitted crates build the value from them; [`Image::new`] checks
/// that they fit together, and the sets of an [`Image`] cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetImage {
    /// The set, with its order and its lists of nodes: a runtime packs and unpacks by them.
    pub set: Arc<ConnectionSet>,
    /// The phases in the order of execution.
    pub phases: Vec<PhaseImage>,
    /// The step plan of a set that is exchanged by messages; it then has no phases.
    pub steps: Option<Steps>,
}

impl SetImage {
    /// A set with phases.
    pub fn of_phases(set: Arc<ConnectionSet>, phases: Vec<PhaseImage>) -> Self {
        Self { set, phases, steps: None }
    }

    /// A set with a step plan.
    pub fn of_steps(steps: Steps) -> Self {
        Self { set: steps.set().clone(), phases: Vec::new(), steps: Some(steps) }
    }
}

/// The image of a program: the images of its sets, for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    machine: Arc<Machine>,
    sets: Vec<SetImage>,
}

impl Image {
    /// Combines the images of sets.
    ///
    /// # Errors
    /// A phase with tables for another number of cells than the machine has, a table with a
    /// connection, channel or link that does not exist, two sets of the same name, a step plan of
    /// another set or machine, or some sets with phases and others with steps.
    pub fn new(machine: Arc<Machine>, sets: Vec<SetImage>) -> Result<Self, ShapeError> {
        Program::new(sets.iter().map(|s| s.set.clone()).collect())?;
        for (s, set) in sets.iter().enumerate() {
            set.set
                .check_machine(&machine)
                .map_err(|e| ShapeError::new(format!("sets[{s}].{}", e.place), e.message))?;
            if set.phases.len() > limits::PHASES {
                return Err(ShapeError::new(
                    format!("sets[{s}].phases"),
                    format!("{} phases, at most {}", set.phases.len(), limits::PHASES),
                ));
            }
            for (p, phase) in set.phases.iter().enumerate() {
                check_phase(&machine, &set.set, phase).map_err(|e| {
                    ShapeError::new(format!("sets[{s}].phases[{p}].{}", e.place), e.message)
                })?;
            }
        }
        check_steps(&machine, &sets)?;
        Ok(Self { machine, sets })
    }

    /// Whether its sets have step plans, and not phases.
    pub fn is_steps(&self) -> bool {
        self.sets.iter().any(|set| set.steps.is_some())
    }

    /// The machine of the image.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The sets in the order of execution.
    pub fn sets(&self) -> &[SetImage] {
        &self.sets
    }
}

/// A program is either in phases or in steps: a machine has tables or it has none.
fn check_steps(machine: &Arc<Machine>, sets: &[SetImage]) -> Result<(), ShapeError> {
    let Some(first) = sets.iter().position(|set| set.steps.is_some()) else { return Ok(()) };
    for (s, set) in sets.iter().enumerate() {
        let fail = |what: &str| Err(ShapeError::new(format!("sets[{s}].steps"), what));
        let Some(steps) = &set.steps else {
            return fail(&format!(
                "missing, although sets[{first}] has steps; a program has one kind"
            ));
        };
        if !set.phases.is_empty() {
            return fail("a set has phases or steps, not both");
        }
        if !Arc::ptr_eq(steps.set(), &set.set) && *steps.set() != set.set {
            return fail("the plan is of another set");
        }
        if !Arc::ptr_eq(steps.machine(), machine) && steps.machine() != machine {
            return fail("the plan is for another machine than the image's");
        }
    }
    Ok(())
}

fn check_phase(
    machine: &Machine,
    set: &ConnectionSet,
    phase: &PhaseImage,
) -> Result<(), ShapeError> {
    if phase.cell_count() != machine.cell_count() {
        return Err(ShapeError::new(
            "cells",
            format!("tables for {} cells of {}", phase.cell_count(), machine.cell_count()),
        ));
    }
    let channels = machine.parameters().channels_per_cell;
    for (cell, context) in phase.cells() {
        if cell.index() >= machine.cell_count() {
            let message = format!("{cell} is not one of the machine's {}", machine.cell_count());
            return Err(ShapeError::new("cells", message));
        }
        for (row, entry) in context.entries.iter().enumerate() {
            let fail = |what: String| {
                Err(ShapeError::new(format!("cells[{}].entries[{row}]", cell.0), what))
            };
            let connections = [
                if let Feed::Gate(x) = entry.feed { Some(x) } else { None },
                if let Sink::Gate(x) = entry.sink { Some(x) } else { None },
            ];
            if let Some(x) = connections.into_iter().flatten().find(|x| x.index() >= set.len()) {
                return fail(format!("{x} is not one of the set's {} connections", set.len()));
            }
            let (link, next) = match entry.sink {
                Sink::Forward { link, channel } => (Some(link), channel),
                Sink::Gate(_) => (None, entry.channel),
            };
            let feed_link = if let Feed::Link(l) = entry.feed { Some(l) } else { None };
            if let Some(l) =
                [link, feed_link].into_iter().flatten().find(|l| l.index() >= machine.link_count())
            {
                return fail(format!("{l} is not one of the machine's {}", machine.link_count()));
            }
            if let Some(ch) = [entry.channel, next].into_iter().find(|ch| ch.0 >= channels) {
                return fail(format!("{ch} is not one of the cell's {channels} channels"));
            }
        }
        for (row, operation) in context.operations.iter().enumerate() {
            let fail = |what: String| {
                Err(ShapeError::new(format!("cells[{}].operations[{row}]", cell.0), what))
            };
            if operation.connection.index() >= set.len() {
                return fail(format!(
                    "{} is not one of the set's {} connections",
                    operation.connection,
                    set.len()
                ));
            }
            if operation.channel.0 >= channels {
                return fail(format!(
                    "{} is not one of the cell's {channels} channels",
                    operation.channel
                ));
            }
            let words = set.get(operation.connection).words;
            if operation.words == 0
                || u64::from(operation.first_word) + u64::from(operation.words) > u64::from(words)
            {
                return fail(format!(
                    "words {} from {} of {}, which has {words}",
                    operation.words, operation.first_word, operation.connection
                ));
            }
        }
    }
    Ok(())
}
