//! Trees as connection sets, and what a compiled tree looks like from each cell.
//!
//! The live cells, in id order, are the nodes of a binomial tree: the parent of number `i` is `i`
//! without its lowest bit. So the root is the first live cell, the depth is the logarithm, and on
//! a torus numbered along its first dimension children are 1, 2, 4, ... cells away along one
//! dimension after the other.
//!
//! Towards the root a cell sends when it has received from all its children, from the root on when
//! it has received from its parent: the sets carry this as order constraints, so that no phase
//! division can turn it round. Connections are numbered so that each comes after those it waits
//! for.

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Direction, Image, Machine, Operation,
    SetImage, ShapeError,
};

use crate::plan::{PlanError, find_set};

/// The two trees over all live cells of a machine, to be compiled with the program: `reduce`
/// towards the first live cell and `broadcast` from it, `words` words on each connection. Longer
/// arrays go in pieces of as many words, shorter ones as if they were that long.
///
/// # Errors
/// No words, or more than the limit.
pub fn tree_sets(machine: &Machine, words: u32) -> Result<[ConnectionSet; 2], ShapeError> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    // Parents have lower numbers, so descending order has children before their parents.
    let up: Vec<(usize, usize)> = (1..cells.len()).rev().map(|i| (i, i & (i - 1))).collect();
    let down: Vec<(usize, usize)> =
        up.iter().rev().map(|&(child, parent)| (parent, child)).collect();
    let set = |name: &str, pairs: &[(usize, usize)]| {
        let connection =
            |&(from, to): &(usize, usize)| Connection::new(cells[from], cells[to], words);
        let set = ConnectionSet::new(name, pairs.iter().map(connection).collect())?;
        set.with_order(chain(cells.len(), pairs))
    };
    Ok([set("reduce", &up)?, set("broadcast", &down)?])
}

/// What arrives at a node before what leaves it.
fn chain(nodes: usize, pairs: &[(usize, usize)]) -> Vec<(ConnectionId, ConnectionId)> {
    let mut into = vec![Vec::new(); nodes];
    for (row, &(_, to)) in pairs.iter().enumerate() {
        into[to].push(ConnectionId::from_index(row));
    }
    let mut order = Vec::new();
    for (row, &(from, _)) in pairs.iter().enumerate() {
        order.extend(into[from].iter().map(|&before| (before, ConnectionId::from_index(row))));
    }
    order
}

/// A pair of compiled trees, as the cells walk them.
#[derive(Debug)]
pub(super) struct Tree {
    /// Rows of the two sets in the image; `None` where there is one cell and nothing to do.
    pub(super) sets: Option<[usize; 2]>,
    pub(super) name: String,
    /// Words on each connection; at least 1.
    pub(super) words: usize,
    pub(super) root: CellId,
    /// Of each cell of the machine; the root's, and a dead cell's, is itself.
    pub(super) parent: Vec<CellId>,
    /// The connections from each cell's children, in the order of the children's ids.
    pub(super) children: Vec<Vec<ConnectionId>>,
}

impl Tree {
    pub(super) fn new(image: &Image, reduce: &str, broadcast: &str) -> Result<Self, PlanError> {
        let machine = image.machine();
        let cells: Vec<CellId> = machine.endpoints().collect();
        let alone = |cells: &[CellId]| Self {
            sets: None,
            name: reduce.to_owned(),
            words: 1,
            root: cells.first().copied().unwrap_or_default(),
            parent: machine.cells().collect(),
            children: vec![Vec::new(); machine.cell_count()],
        };
        if cells.len() <= 1 {
            return Ok(alone(&cells));
        }
        let sets = [find_set(image, reduce)?, find_set(image, broadcast)?];
        let mut tree = alone(&cells);
        tree.sets = Some(sets);
        let up = &image.sets()[sets[0]];
        tree.read(up, &cells).map_err(|problem| wrong(up, problem))?;
        tree.check_order(up, true).map_err(|problem| wrong(up, problem))?;
        let down = &image.sets()[sets[1]];
        tree.check_mirror(&up.set, &down.set).map_err(|problem| wrong(down, problem))?;
        tree.check_order(down, false).map_err(|problem| wrong(down, problem))?;
        for set in [up, down] {
            if let Some(kind) = conset_fabric::coverage_fault(set) {
                return Err(PlanError::Image { set: set.set.name().to_owned(), kind });
            }
        }
        Ok(tree)
    }

    pub(super) fn is_node(&self, cell: CellId) -> bool {
        let parent = self.parent.get(cell.index());
        cell == self.root || parent.is_some_and(|&parent| parent != cell)
    }

    /// Takes parents and children from the set that leads to the root.
    fn read(&mut self, image: &SetImage, cells: &[CellId]) -> Result<(), String> {
        let set = &image.set;
        if set.len() != cells.len() - 1 {
            return Err(format!("{} connections for {} live cells", set.len(), cells.len()));
        }
        self.words = set.get(ConnectionId(0)).words as usize;
        for (id, connection) in set.iter() {
            let (child, parent) = (connection.source, connection.target);
            if connection.words as usize != self.words {
                return Err(format!("{id} has {} words, x0 {}", connection.words, self.words));
            }
            if self.parent[child.index()] != child || child == parent {
                return Err(format!("{child} sends more than once, or to itself"));
            }
            self.parent[child.index()] = parent;
            self.children[parent.index()].push(id);
        }
        for children in &mut self.children {
            children.sort_unstable_by_key(|&id| set.get(id).source);
        }
        // One connection fewer than cells, no cell sends twice: one cell sends nothing. All are
        // connected if as many are reached from it.
        let root = cells.iter().find(|cell| self.parent[cell.index()] == **cell);
        self.root = *root.ok_or("no cell is the root")?;
        let (mut reached, mut open) = (0, vec![self.root]);
        while let Some(cell) = open.pop() {
            reached += 1;
            open.extend(self.children[cell.index()].iter().map(|&id| set.get(id).source));
        }
        if reached != cells.len() {
            return Err(format!("{reached} of {} cells reach {}", cells.len(), self.root));
        }
        Ok(())
    }

    /// The set from the root on is the one towards it, turned round.
    fn check_mirror(&self, up: &ConnectionSet, down: &ConnectionSet) -> Result<(), String> {
        if down.len() != up.len() {
            return Err(format!("{} connections, `{}` has {}", down.len(), up.name(), up.len()));
        }
        let mut seen = vec![false; self.parent.len()];
        for (id, connection) in down.iter() {
            let child = connection.target.index();
            if self.parent[child] != connection.source || child == connection.source.index() {
                let (from, to) = (connection.source, connection.target);
                return Err(format!("{id} goes from {from} to {to}, not to a child"));
            }
            if connection.words as usize != self.words {
                return Err(format!(
                    "{id} has {} words, expected {}",
                    connection.words, self.words
                ));
            }
            if std::mem::replace(&mut seen[child], true) {
                return Err(format!("{} receives twice", connection.target));
            }
        }
        Ok(())
    }

    /// No cell sends a word before all that it is made of have been received: from all children
    /// towards the root (`up`), from the parent otherwise.
    fn check_order(&self, image: &SetImage, up: bool) -> Result<(), String> {
        for cell in (0..self.parent.len()).map(CellId::from_index) {
            let own = self.children[cell.index()].len();
            let sources = if up { own } else { usize::from(cell != self.root) };
            let mut received = vec![0usize; self.words];
            for operation in image.phases.iter().flat_map(|phase| phase.cell(cell).operations) {
                let span = &mut received[span(operation)];
                match operation.direction {
                    Direction::Receive => span.iter_mut().for_each(|count| *count += 1),
                    Direction::Send if span.iter().any(|&count| count < sources) => {
                        let x = operation.connection;
                        return Err(format!("{cell} sends {x} before it has what to send"));
                    }
                    Direction::Send => {}
                }
            }
        }
        Ok(())
    }
}

/// The words of a connection that an operation moves.
pub(super) fn span(operation: &Operation) -> std::ops::Range<usize> {
    let from = operation.first_word as usize;
    from..from + operation.words as usize
}

fn wrong(image: &SetImage, problem: String) -> PlanError {
    PlanError::Tree { set: image.set.name().to_owned(), problem }
}
