//! The compiled artefact that a runtime loads: communication contexts and operation lists.
//!
//! For each phase every cell has
//!
//! * a *context*: its forwarding table. An entry says for one logical channel where its words
//!   come from (a gate, through which the cell's own agent injects, or a link) and where they go
//!   (a gate, through which the agent takes them out, or the next channel across a link);
//! * an *operation list*: what its agent sends and receives, through which channel, in order.
//!
//! Nothing here says which way a connection goes: following the tables does, and the checker
//! follows them (`lift`). A wrong table can therefore be represented; it shows when it is lifted
//! or run.
//!
//! Cells that take part lie one behind the other in flat arrays per phase; the others are not there.

use std::sync::Arc;

use crate::error::ShapeError;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId};
use crate::limits;
use crate::machine::Machine;
use crate::set::{ConnectionSet, Program};

/// Where the words of a channel come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feed {
    /// The cell's agent injects this connection.
    Gate(ConnectionId),
    /// The link over which the previous cell's channel forwards to this one.
    Link(LinkId),
}

/// Where the words of a channel go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sink {
    /// The cell's agent takes them out as this connection.
    Gate(ConnectionId),
    /// Over a link into a channel of the neighbour.
    Forward {
        /// The link.
        link: LinkId,
        /// The channel on the link's target cell.
        channel: ChannelId,
    },
}

/// One row of a cell's forwarding table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelEntry {
    /// The channel.
    pub channel: ChannelId,
    /// Where its words come from.
    pub feed: Feed,
    /// Where its words go.
    pub sink: Sink,
}

/// Which way an operation moves words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the agent into the network.
    Send,
    /// From the network to the agent.
    Receive,
}

/// One entry of a cell's operation list: a stream of words through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Send or receive.
    pub direction: Direction,
    /// The connection.
    pub connection: ConnectionId,
    /// The channel behind the gate.
    pub channel: ChannelId,
    /// Words to move.
    pub words: u32,
    /// The first word's place in the connection's data; not 0 where a connection is split.
    pub first_word: u32,
    /// Planned start, in clocks from the phase's start. With timed starts the agent opens the
    /// stream no earlier ([`crate::Parameters::timed_starts`]); else the order of the list is
    /// kept and the clock is for people and for the checker.
    pub start: u64,
}

/// A cell's share of a phase, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellContext<'a> {
    /// The forwarding table, in channel order as codegen writes it.
    pub entries: &'a [ChannelEntry],
    /// The operation list, in the order of execution.
    pub operations: &'a [Operation],
}

/// One phase of an image: a context and an operation list for every cell. Cells without either
/// take no part and no memory: on a large machine few cells may have anything to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseImage {
    /// Cells of the machine.
    cells: usize,
    /// The cells that take part, ascending.
    listed: Vec<Listed>,
    entries: Vec<ChannelEntry>,
    operations: Vec<Operation>,
}

/// A cell that takes part in a phase, and where its tables end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    cell: CellId,
    entries: u32,
    operations: u32,
}

impl PhaseImage {
    /// Lays the cells' tables out; one pair per cell of the machine, in id order.
    pub fn from_cells<'a>(cells: impl IntoIterator<Item = CellContext<'a>>) -> Self {
        let mut count = 0;
        let numbered = cells.into_iter().inspect(|_| count += 1).enumerate();
        let listed = numbered.map(|(row, context)| (CellId::from_index(row), context));
        let mut this = Self::from_listed(0, listed);
        this.cells = count;
        this
    }

    /// Lays out the tables of some of `cells` cells, in id order; the others have none.
    ///
    /// # Panics
    /// If the ids do not ascend.
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
            let end = |n: usize| u32::try_from(n).expect("routes were limited on entry");
            let (entries, operations) = (end(this.entries.len()), end(this.operations.len()));
            this.listed.push(Listed { cell, entries, operations });
        }
        this
    }

    /// Number of cells of the machine.
    pub fn cell_count(&self) -> usize {
        self.cells
    }

    /// A cell's tables; empty for a cell that takes no part.
    pub fn cell(&self, cell: CellId) -> CellContext<'_> {
        match self.row_of(cell) {
            Some(row) => self.row(row).1,
            None => CellContext { entries: &[], operations: &[] },
        }
    }

    /// The tables of the cells that take part, in id order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = (CellId, CellContext<'_>)> {
        (0..self.listed.len()).map(|row| self.row(row))
    }

    /// The place of a cell among those that take part, as [`PhaseImage::cells`] lists them.
    pub fn row_of(&self, cell: CellId) -> Option<usize> {
        // Where all take part it is where it is looked for first, and never behind that.
        let most = self.listed.len().min(cell.index() + 1);
        let rows = &self.listed[..most];
        match rows.last() {
            Some(last) if last.cell == cell => Some(most - 1),
            _ => rows.binary_search_by_key(&cell, |row| row.cell).ok(),
        }
    }

    fn row(&self, row: usize) -> (CellId, CellContext<'_>) {
        let (entry, operation) = match row {
            0 => (0, 0),
            _ => (self.listed[row - 1].entries, self.listed[row - 1].operations),
        };
        let Listed { cell, entries, operations } = self.listed[row];
        let context = CellContext {
            entries: &self.entries[entry as usize..entries as usize],
            operations: &self.operations[operation as usize..operations as usize],
        };
        (cell, context)
    }
}

/// The image of one set. A phase is named `set/p0`, `set/p1`, ... in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetImage {
    /// The set, with its order and its lists of nodes: a runtime packs and unpacks by them.
    pub set: Arc<ConnectionSet>,
    /// The phases in the order of execution.
    pub phases: Vec<PhaseImage>,
}

/// The image of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    machine: Arc<Machine>,
    sets: Vec<SetImage>,
}

impl Image {
    /// Puts set images together.
    ///
    /// # Errors
    /// A phase that has not one table per cell, or a table that names a connection, channel or
    /// link that is not there; two sets of one name.
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
        Ok(Self { machine, sets })
    }

    /// The machine it is for.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The sets in the order of execution.
    pub fn sets(&self) -> &[SetImage] {
        &self.sets
    }
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
