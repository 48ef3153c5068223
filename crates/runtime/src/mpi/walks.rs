//! The compiled trees of a run: the nodes of the cells of a rank, and their walks.

use std::cell::RefCell;
use std::rc::Rc;

use conset_ir::{CellId, Direction};

use super::message_layout::TagAllocator;
use super::persistent_requests::Numbered;
use super::run::{Rank, TagUse};
use super::tree::{Edge, LocalEdge, Neighbour, TreeNode, WalkFault};
use crate::call::{call_word, describe_mark, read_call_word};
use crate::collectives::WalkDirection;
use crate::error::MpiError;
use crate::port::{CombineFn, TreeWalk};

/// The nodes of one rank in a tree.
pub(super) struct RankTree {
    /// Of the set, for error texts.
    name: String,
    nodes: Vec<CellNode>,
}

/// The node of a cell.
struct CellNode {
    cell: CellId,
    parent: Option<CellId>,
    children: Vec<CellId>,
    node: RefCell<TreeNode>,
}

impl RankTree {
    /// The nodes of this rank's cells. Every edge to another rank has the tags of its connections,
    /// which are handed out alike at both ends.
    pub(super) fn new(
        rank: &Rank<'_>,
        walk: &TreeWalk<'_>,
        tags: &mut TagAllocator,
    ) -> Result<Self, MpiError> {
        let own = rank.rank_map.cells_of(rank.comm.rank());
        let place = |cell| rank.rank_map.find(cell).expect("nodes of trees are live");
        let tree = walk.tree;
        // By row and neighbour: the ends of edges that are known so far.
        let mut edges: Vec<Vec<(CellId, Edge)>> = vec![Vec::new(); own.len()];
        for connection in rank.loaded.set(walk.set).connections() {
            let (source, target) = (connection.source, connection.target);
            let (from, to) = (place(source), place(target));
            let here = rank.comm.rank();
            let up = tree.leads_up(connection);
            let mut set = |row: usize, other: CellId, edge: Edge| {
                let found = edges[row].iter_mut().find(|known| known.0 == other);
                match (found, edge) {
                    (
                        Some((_, Edge::Remote { up, down, .. })),
                        Edge::Remote { up: u, down: d, .. },
                    ) => {
                        (*up, *down) = ((*up).max(u), (*down).max(d));
                    }
                    (Some(_), _) => {}
                    (None, edge) => edges[row].push((other, edge)),
                }
            };
            if from.0 == here && to.0 == here {
                let edge = Edge::Local(Rc::new(LocalEdge::default()));
                set(from.1, target, edge.clone());
                set(to.1, source, edge);
                continue;
            }
            let (direction, row, other, rank) = match (from.0 == here, to.0 == here) {
                (true, _) => (Direction::Send, from.1, target, to.0),
                (_, true) => (Direction::Receive, to.1, source, from.0),
                _ => continue,
            };
            let tag = tags.next(direction, rank)?;
            let (up, down) = if up { (tag, 0) } else { (0, tag) };
            set(row, other, Edge::Remote { rank, up, down });
        }
        let nodes = own.iter().zip(edges).map(|(&cell, edges)| {
            let edge = |other: CellId| {
                let found = edges.iter().find(|known| known.0 == other);
                found.expect("a set of a tree has its edges").1.clone()
            };
            let (parent, children) = (tree.parent_of(cell), tree.children(cell).to_vec());
            let ends = children.iter().map(|&child| edge(child)).collect();
            let node = RefCell::new(TreeNode::new(&rank.comm, parent.map(edge), ends)?);
            Ok(CellNode { cell, parent, children, node })
        });
        let name = format!("the collective over {}", rank.loaded.set(walk.set).name());
        Ok(Self { name, nodes: nodes.collect::<Result<_, MpiError>>()? })
    }

    /// Starts the walk of a cell.
    pub(super) fn start(
        &self,
        row: usize,
        way: WalkDirection,
        (number, call): Numbered,
        length: usize,
    ) -> Result<(), MpiError> {
        self.nodes[row].node.borrow_mut().start(way, call_word(number, call), length)
    }

    /// Goes on with the walk of a cell; whether it is done, so that the array is the result.
    pub(super) fn poll(
        &self,
        (row, tries): (usize, u32),
        call: Numbered,
        array: &mut [u8],
        combine: &CombineFn<'_>,
    ) -> Result<bool, MpiError> {
        let CellNode { cell, node, .. } = &self.nodes[row];
        let mut combine = |child: usize, own: &mut [u8], its: &[u8]| {
            combine(*cell, child, own, its);
        };
        match node.borrow_mut().poll(tries, array, &mut combine) {
            Ok(done) => Ok(done),
            Err(WalkFault::Mpi(error) | WalkFault::TooLong { error, .. }) => Err(error),
            Err(WalkFault::Header { from, call: other, bytes }) => {
                Err(self.other_call(row, call, (from, other, bytes)))
            }
        }
    }

    /// The cell for which a cell waits in its walk.
    pub(super) fn awaited(&self, row: usize) -> Option<CellId> {
        let CellNode { parent, children, node, .. } = &self.nodes[row];
        match node.try_borrow().ok()?.awaited() {
            Neighbour::Parent => *parent,
            Neighbour::Child(place) => children.get(place).copied(),
        }
    }

    /// The run has ended: cancels what walks that were abandoned would still receive.
    pub(super) fn close(&self) -> Result<(), MpiError> {
        self.nodes.iter().try_for_each(|node| node.node.borrow_mut().close())
    }

    #[cold]
    fn other_call(
        &self,
        row: usize,
        (number, call): Numbered,
        (from, word, bytes): (Neighbour, u64, u64),
    ) -> MpiError {
        let CellNode { cell, parent, children, .. } = &self.nodes[row];
        let source = match from {
            Neighbour::Parent => parent.unwrap_or(*cell),
            Neighbour::Child(place) => children[place],
        };
        let (other_number, mark) = read_call_word(number, word);
        let own = call.describe(*cell, number, self.name.clone());
        let what = format!("{} ({bytes} bytes)", self.name);
        let other = describe_mark(source, other_number, what, mark);
        MpiError::Mismatch {
            calls: Box::new(if source < *cell { [other, own] } else { [own, other] }),
        }
    }
}

/// Trees of a run, by set and whether they lead from the root only: the edges of a chain may be both,
/// in different trees.
pub(super) type TreeKey = (usize, bool);

impl Rank<'_> {
    /// The tree of a walk; made when first asked for.
    pub(super) fn tree(&self, walk: &TreeWalk<'_>) -> Result<Rc<RankTree>, MpiError> {
        let key = (walk.set, walk.way == WalkDirection::Down);
        if let Some(tree) = self.trees.borrow().get(&key) {
            return Ok(tree.clone());
        }
        let mut tags = self.tags(walk.set, TagUse::Tree(key.1));
        let tree = Rc::new(RankTree::new(self, walk, &mut tags)?);
        self.trees.borrow_mut().insert(key, tree.clone());
        Ok(tree)
    }
}
