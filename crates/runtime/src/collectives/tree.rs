//! Trees as connection sets, and a compiled tree as each cell sees it.
//!
//! The live cells, in id order, are the nodes of a binomial tree: the parent of number `i` is `i`
//! without its lowest bit. The root is therefore the first live cell, the depth is the logarithm,
//! and on a torus numbered along its first dimension, children are 1, 2, 4, ... cells away along
//! one dimension after the other.
//!
//! Towards the root a cell sends after it has received from all its children; from the root, after
//! it has received from its parent. The sets state this as order constraints, so that no division
//! into phases can reverse it. Connections are numbered so that each comes after those that it
//! waits for.

use conset_ir::convert::index;
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Direction, Image, Machine, Operation,
    SetImage, ShapeError, binomial,
};

use crate::error::PlanError;
use crate::plan::find_set;

/// The trees over all live cells of a machine, to be compiled with the program, `words` words on
/// each connection: `reduce` towards the first live cell, `broadcast` from it, and `allreduce`,
/// which is both in one set and saves a context switch. Longer arrays go in pieces of as many
/// words, shorter ones as if they were that long.
///
/// # Errors
/// No words, or more than the limit.
pub fn tree_sets(machine: &Machine, words: u32) -> Result<[ConnectionSet; 3], ShapeError> {
    tree_sets_named(machine, words, "")
}

/// [`tree_sets`] with a prefix before the names, for [`super::Collectives::prefixed`]: a program
/// may have trees of several widths. Only the sets that the program walks need be compiled.
///
/// # Errors
/// No words, or more than the limit; a prefix that no name can have.
pub fn tree_sets_named(
    machine: &Machine,
    words: u32,
    prefix: &str,
) -> Result<[ConnectionSet; 3], ShapeError> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    // Parents have lower numbers, so descending order has children before their parents.
    let up: Vec<(usize, usize)> =
        (1..cells.len()).rev().filter_map(|i| Some((i, binomial::parent(i)?))).collect();
    let down: Vec<(usize, usize)> =
        up.iter().rev().map(|&(child, parent)| (parent, child)).collect();
    let set = |name: &str, pairs: &[(usize, usize)], order| {
        let connection =
            |&(from, to): &(usize, usize)| Connection::new(cells[from], cells[to], words);
        let connections = pairs.iter().map(connection).collect();
        ConnectionSet::new(format!("{prefix}{name}"), connections)?.with_order(order)
    };
    let nodes = cells.len();
    let both = [up.as_slice(), &down].concat();
    let mut order = chain(nodes, &up, 0);
    order.extend(chain(nodes, &down, up.len()));
    let into_root = (0..up.len()).filter(|&row| up[row].1 == 0);
    for before in into_root.map(ConnectionId::from_index) {
        let from_root = (0..down.len()).filter(|&row| down[row].0 == 0);
        order.extend(from_root.map(|row| (before, ConnectionId::from_index(up.len() + row))));
    }
    Ok([
        set("reduce", &up, chain(nodes, &up, 0))?,
        set("broadcast", &down, chain(nodes, &down, 0))?,
        set("allreduce", &both, order)?,
    ])
}

/// What arrives at a node before what leaves it, in a set in which the pairs begin at row `first`.
fn chain(
    nodes: usize,
    pairs: &[(usize, usize)],
    first: usize,
) -> Vec<(ConnectionId, ConnectionId)> {
    let mut into = vec![Vec::new(); nodes];
    for (row, &(_, to)) in pairs.iter().enumerate() {
        into[to].push(ConnectionId::from_index(first + row));
    }
    let mut order = Vec::new();
    for (row, &(from, _)) in pairs.iter().enumerate() {
        let after = ConnectionId::from_index(first + row);
        order.extend(into[from].iter().map(|&before| (before, after)));
    }
    order
}

/// Which way a set leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WalkDirection {
    /// To the root.
    Up,
    /// From the root.
    Down,
    /// To the root and from it.
    #[default]
    Both,
}

/// Rows of a tree's sets in the image, where it has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeSets {
    pub(super) up: Option<usize>,
    pub(super) down: Option<usize>,
    pub(super) both: Option<usize>,
}

/// Compiled trees, as the cells walk them.
#[derive(Debug)]
pub(crate) struct ReductionTree {
    /// `None` where there is one cell and nothing to do; else one set at least.
    pub(super) sets: Option<TreeSets>,
    /// Up, down, both.
    pub(super) names: [String; 3],
    /// Words on each connection; at least 1.
    pub(super) words: usize,
    /// Every operation moves all words of its connection, so whoever has the last word of a
    /// connection has the others.
    pub(super) whole: bool,
    pub(crate) root: CellId,
    /// Of each cell of the machine; the root's, and a dead cell's, is itself.
    pub(crate) parent: Vec<CellId>,
    /// Of each cell, ascending.
    pub(crate) children: Vec<Vec<CellId>>,
}

impl ReductionTree {
    pub(super) fn new(image: &Image, names: [&str; 3]) -> Result<Self, PlanError> {
        let machine = image.machine();
        let cells: Vec<CellId> = machine.endpoints().collect();
        let mut tree = Self {
            sets: None,
            names: names.map(str::to_owned),
            words: 1,
            whole: true,
            root: cells.first().copied().unwrap_or_default(),
            parent: machine.cells().collect(),
            children: vec![Vec::new(); machine.cell_count()],
        };
        if cells.len() <= 1 {
            return Ok(tree);
        }
        let rows = names.map(|name| find_set(image, name));
        let ways = [WalkDirection::Up, WalkDirection::Down, WalkDirection::Both];
        let there = rows.iter().zip(ways).find_map(|(row, way)| Some((*row.as_ref().ok()?, way)));
        let [up, down, both] = rows.clone().map(Result::ok);
        let Some((first, way)) = there else {
            let [missing, ..] = rows;
            return missing.map(|_| tree);
        };
        let set = &image.sets()[first];
        tree.read(&set.set, way, &cells).map_err(|problem| wrong(set, problem))?;
        for (row, way) in [up, down, both].into_iter().zip(ways) {
            let Some(set) = row.map(|row| &image.sets()[row]) else { continue };
            tree.check_set(&set.set, way).map_err(|problem| wrong(set, problem))?;
            tree.check_order(set, way).map_err(|problem| wrong(set, problem))?;
            if let Some(kind) = conset_fabric::coverage_fault(set) {
                return Err(PlanError::Image { set: set.set.name().to_owned(), kind });
            }
            let cells = cells.iter().flat_map(|&cell| set.phases.iter().map(move |p| p.cell(cell)));
            let mut operations = cells.flat_map(|cell| cell.operations);
            tree.whole &= operations.all(|operation| index(operation.words) == tree.words);
        }
        tree.sets = Some(TreeSets { up, down, both });
        Ok(tree)
    }

    pub(super) fn is_node(&self, cell: CellId) -> bool {
        cell == self.root || self.is_child(cell)
    }

    /// The parent of a cell; nothing for the root and for cells that are not in the tree.
    pub(crate) fn parent_of(&self, cell: CellId) -> Option<CellId> {
        self.is_child(cell).then(|| self.parent[cell.index()])
    }

    /// The children of a cell, ascending.
    pub(crate) fn children(&self, cell: CellId) -> &[CellId] {
        &self.children[cell.index()]
    }

    /// Whether a cell is in the branch of another, or is that cell.
    pub(super) fn is_above(&self, branch: CellId, cell: CellId) -> bool {
        let mut at = cell;
        while at != branch {
            match self.parent_of(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        true
    }

    fn is_child(&self, cell: CellId) -> bool {
        self.parent.get(cell.index()).is_some_and(|&parent| parent != cell)
    }

    /// Whether a connection leads from a child to its parent.
    pub(crate) fn leads_up(&self, connection: &Connection) -> bool {
        self.is_child(connection.source)
            && self.parent[connection.source.index()] == connection.target
    }

    /// Takes parents and children from a set. Of one that leads both ways the first half leads to
    /// the root.
    fn read(
        &mut self,
        set: &ConnectionSet,
        way: WalkDirection,
        cells: &[CellId],
    ) -> Result<(), String> {
        let edges = cells.len() - 1;
        if set.len() != if way == WalkDirection::Both { 2 * edges } else { edges } {
            return Err(format!("{} connections for {} live cells", set.len(), cells.len()));
        }
        self.words = index(set.get(ConnectionId(0)).words);
        for connection in &set.connections()[..edges] {
            let (child, parent) = match way {
                WalkDirection::Up | WalkDirection::Both => (connection.source, connection.target),
                WalkDirection::Down => (connection.target, connection.source),
            };
            if self.is_child(child) || child == parent {
                let verb = if way == WalkDirection::Down { "receives" } else { "sends" };
                return Err(format!("{child} {verb} more than once, or to itself"));
            }
            self.parent[child.index()] = parent;
            self.children[parent.index()].push(child);
        }
        for children in &mut self.children {
            children.sort_unstable();
        }
        // One connection fewer than cells, no cell sends twice: one cell sends nothing. All are
        // connected if as many are reached from it.
        let root = cells.iter().find(|&&cell| !self.is_child(cell));
        self.root = *root.ok_or("no cell is the root")?;
        let (mut reached, mut open) = (0, vec![self.root]);
        while let Some(cell) = open.pop() {
            reached += 1;
            open.extend_from_slice(&self.children[cell.index()]);
        }
        if reached != cells.len() {
            return Err(format!("{reached} of {} cells reach {}", cells.len(), self.root));
        }
        Ok(())
    }

    /// The set is this tree, each connection once each way that it leads.
    fn check_set(&self, set: &ConnectionSet, way: WalkDirection) -> Result<(), String> {
        let edges: usize = self.children.iter().map(Vec::len).sum();
        let expected = if way == WalkDirection::Both { 2 * edges } else { edges };
        if set.len() != expected {
            return Err(format!("{} connections, expected {expected}", set.len()));
        }
        let mut seen = [vec![false; self.parent.len()], vec![false; self.parent.len()]];
        for (id, connection) in set.iter() {
            let (from, to) = (connection.source, connection.target);
            let up = self.leads_up(connection);
            let down = self.is_child(to) && self.parent[to.index()] == from;
            let allowed = (up && way != WalkDirection::Down) || (down && way != WalkDirection::Up);
            if !allowed {
                return Err(format!("{id} goes from {from} to {to}, which is not its way"));
            }
            if index(connection.words) != self.words {
                return Err(format!(
                    "{id} has {} words, expected {}",
                    connection.words, self.words
                ));
            }
            let child = if up { from } else { to };
            if std::mem::replace(&mut seen[usize::from(up)][child.index()], true) {
                return Err(format!("{id} goes from {from} to {to} once more"));
            }
        }
        Ok(())
    }

    /// No cell sends a word before all that it is made of have been received: from all children
    /// towards the root, and at the root; from the parent elsewhere.
    fn check_order(&self, image: &SetImage, way: WalkDirection) -> Result<(), String> {
        for cell in (0..self.parent.len()).map(CellId::from_index) {
            let children = self.children[cell.index()].len();
            let mut heard = [vec![0usize; self.words], vec![0usize; self.words]];
            for operation in image.phases.iter().flat_map(|phase| phase.cell(cell).operations) {
                let up = self.leads_up(image.set.get(operation.connection));
                if operation.direction == Direction::Receive {
                    let words = &mut heard[usize::from(up)][span(operation)];
                    words.iter_mut().for_each(|count| *count += 1);
                    continue;
                }
                let (from_children, needed) = match (up, cell == self.root) {
                    (true, _) => (true, children),
                    (false, true) => (true, if way == WalkDirection::Both { children } else { 0 }),
                    (false, false) => (false, 1),
                };
                let words = &heard[usize::from(from_children)][span(operation)];
                if words.iter().any(|&count| count < needed) {
                    let x = operation.connection;
                    return Err(format!("{cell} sends {x} before it has what to send"));
                }
            }
        }
        Ok(())
    }
}

/// The words of a connection that an operation moves.
pub(super) fn span(operation: &Operation) -> std::ops::Range<usize> {
    let from = index(operation.first_word);
    from..from + index(operation.words)
}

fn wrong(image: &SetImage, problem: String) -> PlanError {
    PlanError::Tree { set: image.set.name().to_owned(), problem }
}
