//! Layouts of compiled sets that contain lists of nodes.
//!
//! An image of a mesh that `conset compile` has partitioned contains the nodes behind the words of
//! each connection. A program that knows the nodes of the vector of each cell can exchange by them.

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionId, Image};

use super::shared::shared_entries;
use super::{IdPlace, Layout, LayoutError, places};
use crate::phase::SetRef;

impl Layout {
    /// The layout of a compiled set: its lists of nodes, found among each cell's ids. Each node
    /// must stand in its list `block` times in a row. The connections keep the set's order.
    ///
    /// O(n log n) in ids and nodes.
    ///
    /// # Errors
    /// No such set, a set without lists, an end of a connection that has not the node, an id that
    /// a cell lists twice.
    pub fn from_image<I: AsRef<[u64]>>(
        image: &Image,
        set: impl SetRef,
        block: usize,
        ids: &[I],
    ) -> Result<Self, LayoutError> {
        let Some(row) = set.find(image) else {
            return Err(LayoutError::NoSet { name: format!("{set:?}") });
        };
        let set = &image.sets()[row].set;
        let name = || set.name().to_owned();
        let (all, items) = places(ids)?;
        let mut this = Self {
            items,
            ends: Vec::with_capacity(set.len()),
            first: vec![0],
            send: Vec::new(),
            receive: Vec::new(),
            ids: Vec::new(),
            shared: false,
        };
        let finder = Finder::new(&all, ids.len());
        for (connection, c) in set.iter() {
            let Some(nodes) = set.nodes() else {
                return Err(LayoutError::NoNodes { set: name() });
            };
            let nodes = nodes.of(connection);
            if !in_blocks(nodes, block) {
                return Err(LayoutError::NoBlocks { set: name(), connection, block });
            }
            let position = |cell: CellId, node: u32| {
                let found = finder.find(cell, u64::from(node));
                found.map_err(|problem| problem.at(cell, node, connection, name()))
            };
            let mut list = Vec::with_capacity(nodes.len() / block);
            for &node in nodes.iter().step_by(block) {
                let (send, receive) = (position(c.source, node)?, position(c.target, node)?);
                list.push((send, receive, u64::from(node)));
            }
            this.add((c.source, c.target), list.into_iter());
        }
        this.shared = is_shared(&this, &all);
        Ok(this)
    }
}

fn in_blocks(nodes: &[u32], block: usize) -> bool {
    let same = |nodes: &[u32]| nodes.iter().all(|&node| node == nodes[0]);
    block > 0 && nodes.len().is_multiple_of(block) && nodes.chunks(block).all(same)
}

/// Whether the layout connects all places of each id with one another, once.
fn is_shared(layout: &Layout, all: &[IdPlace]) -> bool {
    let Ok(mut expected) = shared_entries(all) else { return false };
    let mut found = layout.entries();
    if found.len() != expected.len() {
        return false;
    }
    found.sort_unstable();
    expected.sort_unstable();
    found == expected
}

/// Finds ids in a cell.
struct Finder {
    /// Where each cell's places are; they are sorted by id.
    first: Vec<usize>,
    places: Vec<(u64, u32)>,
}

/// Why an id was not found.
enum NotFound {
    Cell(usize),
    Id,
}

impl NotFound {
    fn at(self, cell: CellId, node: u32, connection: ConnectionId, set: String) -> LayoutError {
        match self {
            NotFound::Cell(cells) => LayoutError::NoIds { cell, connection, set, cells },
            NotFound::Id => LayoutError::Missing { cell, id: u64::from(node), connection, set },
        }
    }
}

impl Finder {
    fn new(all: &[IdPlace], cells: usize) -> Self {
        let mut first = vec![0usize; cells + 1];
        for place in all {
            first[index(place.cell) + 1] += 1;
        }
        for cell in 0..cells {
            first[cell + 1] += first[cell];
        }
        let mut next = first.clone();
        let mut places = vec![(0, 0); all.len()];
        for place in all {
            let at = &mut next[index(place.cell)];
            places[*at] = (place.id, place.position);
            *at += 1;
        }
        Self { first, places }
    }

    fn find(&self, cell: CellId, id: u64) -> Result<u32, NotFound> {
        let cells = self.first.len() - 1;
        if cell.index() >= cells {
            return Err(NotFound::Cell(cells));
        }
        let row = &self.places[self.first[cell.index()]..self.first[cell.index() + 1]];
        let at = row.binary_search_by_key(&id, |place| place.0).map_err(|_| NotFound::Id)?;
        Ok(row[at].1)
    }
}
