//! Layouts: which entries of the vector of each cell are exchanged, and where they arrive.
//!
//! The vector of a solver is divided into local vectors, one per cell, of *items* (nodes, rows,
//! degrees of freedom). A layout states for one exchange, connection by connection, which items of
//! the source are sent and which items of the target receive them: `send_of(x)[i]` at the source
//! goes to `receive_of(x)[i]` at the target. It does not depend on routes, phases or transports.
//!
//! ```text
//!  ids, ghosts or a matrix ──► Layout ──set()──► ConnectionSet ──compile──► Image
//!                                └────────────── Plan::new ─────────────────┘
//! ```
//!
//! Rules:
//!
//! * Cells are those of the machine, in id order; a dead cell has no items. [`Layout::placed`]
//!   renames.
//! * Connections are ordered by (source, target), the items of each by global id, ascending, except
//!   in layouts read from an image ([`Layout::from_image`]), which keep its order.
//! * A global id is any `u64`. No cell lists an id twice.
//! * All data are flat arrays; building sorts once and takes memory linear in ids and entries.
//!
//! A layout does not partition anything, and does not place parts on cells.

mod csr;
mod error;
mod from_image;
mod owned;
mod shared;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, NodeLists, ShapeError, limits};

pub use csr::{CsrLayout, LocalCsr};
pub use error::LayoutError;
pub use owned::{Owned, OwnedLayout};

/// For one exchange: the items that each connection sends from the vector of its source, and the
/// items of its target's vector that receive them.
///
/// ```
/// use conset_runtime::Layout;
/// use conset_runtime::ir::{CellId, ConnectionId};
///
/// // The global ids of the entries of each cell's vector. Both cells have node 11.
/// let layout = Layout::from_shared_ids(&[[10, 11], [11, 12]])?;
/// assert_eq!(layout.len(), 2);
/// let x = ConnectionId(0);
/// assert_eq!(layout.ends_of(x), (CellId(0), CellId(1)));
/// assert_eq!((layout.send_of(x), layout.receive_of(x)), (&[1][..], &[0][..]));
/// // The connection set to be compiled, with 3 words for each entry.
/// let set = layout.set("halo", 3)?;
/// assert_eq!(set.get(x).words, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Items of each cell's vector.
    items: Vec<u32>,
    ends: Vec<(CellId, CellId)>,
    /// Where each connection's entries are; one longer than `ends`.
    first: Vec<usize>,
    send: Vec<u32>,
    receive: Vec<u32>,
    ids: Vec<u64>,
    shared: bool,
}

/// One item on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LayoutEntry {
    source: u32,
    target: u32,
    id: u64,
    send: u32,
    receive: u32,
}

impl Layout {
    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.items.len()
    }

    /// Items of a cell's vector; none for a cell that is not there.
    pub fn items_of(&self, cell: CellId) -> usize {
        self.items.get(cell.index()).map_or(0, |&items| index(items))
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no cell sends anything.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Source and target of a connection.
    pub fn ends_of(&self, connection: ConnectionId) -> (CellId, CellId) {
        self.ends[connection.index()]
    }

    /// The positions in the source's vector that a connection carries.
    #[inline]
    pub fn send_of(&self, connection: ConnectionId) -> &[u32] {
        &self.send[self.row(connection)]
    }

    /// The positions in the target's vector that a connection's items meet.
    #[inline]
    pub fn receive_of(&self, connection: ConnectionId) -> &[u32] {
        &self.receive[self.row(connection)]
    }

    /// The global ids of a connection's items.
    pub fn ids_of(&self, connection: ConnectionId) -> &[u64] {
        &self.ids[self.row(connection)]
    }

    /// Whether every cell that holds an id receives it from every other that does: what
    /// [`crate::Cell::sum_shared`] needs.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The reversed layout: each connection swaps its source and target. The forward layout of owners
    /// and ghosts becomes the backward one.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let back = self.entries().into_iter().map(|e| LayoutEntry {
            source: e.target,
            target: e.source,
            send: e.receive,
            receive: e.send,
            id: e.id,
        });
        Self::from_entries(self.items.clone(), back.collect(), self.shared)
    }

    /// The same layout with its parts on other cells: part `p` takes the place of cell
    /// `place[p]` of `cells`. The connections keep their order, as those of
    /// [`ConnectionSet::placed`] do.
    ///
    /// # Errors
    /// Not one place per part, a place beyond the cells, two parts in one place.
    pub fn placed(&self, place: &[CellId], cells: usize) -> Result<Self, LayoutError> {
        if place.len() != self.cell_count() {
            return Err(LayoutError::Places { parts: self.cell_count(), places: place.len() });
        }
        check_cells(cells)?;
        let mut part_on = vec![usize::MAX; cells];
        let mut this = self.clone();
        this.items = vec![0; cells];
        for (part, &cell) in place.iter().enumerate() {
            let Some(taken) = part_on.get_mut(cell.index()) else {
                return Err(LayoutError::NoCell { part, cell, cells });
            };
            if *taken != usize::MAX {
                return Err(LayoutError::TwoParts { cell, first: *taken, second: part });
            }
            *taken = part;
            this.items[cell.index()] = self.items[part];
        }
        for (source, target) in &mut this.ends {
            (*source, *target) = (place[source.index()], place[target.index()]);
        }
        Ok(this)
    }

    /// The connection set to be compiled, `block` words for each item. Node lists are attached
    /// where the ids fit them, so that a plan can tell a stale image.
    ///
    /// # Errors
    /// A name that is none, a block of 0, more connections or words than the limits.
    pub fn set(&self, name: &str, block: usize) -> Result<ConnectionSet, ShapeError> {
        if block == 0 {
            return Err(ShapeError::new("block", "0 words for each item, expected at least 1"));
        }
        let mut connections = Vec::with_capacity(self.len());
        for (row, &(source, target)) in self.ends.iter().enumerate() {
            let items = self.first[row + 1] - self.first[row];
            let words = items.checked_mul(block).and_then(|words| u32::try_from(words).ok());
            let words = words.filter(|&words| words <= limits::WORDS).ok_or_else(|| {
                let message = format!(
                    "{items} items of {block} words from {source} to {target}, at most {} words",
                    limits::WORDS
                );
                ShapeError::new(format!("connections[{row}].words"), message)
            })?;
            connections.push(Connection::new(source, target, words));
        }
        let set = ConnectionSet::new(name, connections)?;
        match self.node_lists(block) {
            Some(nodes) => set.with_nodes(nodes),
            None => Ok(set),
        }
    }

    /// The ids as node lists: each as often as it has words; `None` where they do not fit.
    fn node_lists(&self, block: usize) -> Option<NodeLists> {
        if self.ids.len().checked_mul(block)? > limits::NODES {
            return None;
        }
        let mut nodes = Vec::with_capacity(self.ids.len() * block);
        for &id in &self.ids {
            nodes.extend(std::iter::repeat_n(u32::try_from(id).ok()?, block));
        }
        let rows = self.first.windows(2);
        Some(NodeLists::from_lists(rows.map(|row| &nodes[row[0] * block..row[1] * block])))
    }

    /// Whether all ids fit a node list.
    pub(crate) fn has_small_ids(&self) -> bool {
        self.ids.iter().all(|&id| u32::try_from(id).is_ok())
    }

    fn row(&self, connection: ConnectionId) -> std::ops::Range<usize> {
        self.first[connection.index()]..self.first[connection.index() + 1]
    }

    fn entries(&self) -> Vec<LayoutEntry> {
        let mut entries = Vec::with_capacity(self.ids.len());
        for (row, &(source, target)) in self.ends.iter().enumerate() {
            entries.extend((self.first[row]..self.first[row + 1]).map(|at| LayoutEntry {
                source: source.0,
                target: target.0,
                id: self.ids[at],
                send: self.send[at],
                receive: self.receive[at],
            }));
        }
        entries
    }

    /// Sorts entries into connections.
    fn from_entries(items: Vec<u32>, mut entries: Vec<LayoutEntry>, shared: bool) -> Self {
        entries.sort_unstable();
        let mut this = Self {
            items,
            ends: Vec::new(),
            first: vec![0],
            send: Vec::with_capacity(entries.len()),
            receive: Vec::with_capacity(entries.len()),
            ids: Vec::with_capacity(entries.len()),
            shared,
        };
        for list in entries.chunk_by(|a, b| (a.source, a.target) == (b.source, b.target)) {
            let ends = (CellId(list[0].source), CellId(list[0].target));
            this.add(ends, list.iter().map(|e| (e.send, e.receive, e.id)));
        }
        this
    }

    /// Adds a connection of (send, receive, id).
    fn add(&mut self, ends: (CellId, CellId), list: impl Iterator<Item = (u32, u32, u64)>) {
        self.ends.push(ends);
        for (send, receive, id) in list {
            self.send.push(send);
            self.receive.push(receive);
            self.ids.push(id);
        }
        self.first.push(self.ids.len());
    }
}

/// Cells that can be counted.
fn check_cells(cells: usize) -> Result<(), LayoutError> {
    if cells > limits::CELLS {
        return Err(LayoutError::Cells { cells, limit: limits::CELLS });
    }
    Ok(())
}

/// Where one id stands in one cell's vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IdPlace {
    id: u64,
    cell: u32,
    position: u32,
}

/// All ids of all cells, sorted by id, then cell; and how many each cell has.
///
/// # Errors
/// Too many cells or ids, an id that a cell lists twice.
fn places<I: AsRef<[u64]>>(ids: &[I]) -> Result<(Vec<IdPlace>, Vec<u32>), LayoutError> {
    check_cells(ids.len())?;
    let mut all = Vec::with_capacity(ids.iter().map(|ids| ids.as_ref().len()).sum());
    let mut items = Vec::with_capacity(ids.len());
    for (cell, ids) in ids.iter().enumerate() {
        let (cell, ids) = (to_u32(cell), ids.as_ref());
        if ids.len() > limits::NODES {
            return Err(LayoutError::Ids { cell: CellId(cell), ids: ids.len() });
        }
        items.push(to_u32(ids.len()));
        all.extend((0u32..).zip(ids).map(|(position, &id)| IdPlace { id, cell, position }));
    }
    all.sort_unstable();
    let twice =
        all.windows(2).find(|pair| (pair[0].id, pair[0].cell) == (pair[1].id, pair[1].cell));
    match twice {
        Some(pair) => Err(LayoutError::Repeated {
            cell: CellId(pair[0].cell),
            id: pair[0].id,
            first: pair[0].position,
            second: pair[1].position,
        }),
        None => Ok((all, items)),
    }
}
