//! Reductions of short arrays over the binomial tree of all live cells, with requests and buffers that
//! are kept from one to the next.
//!
//! Longer arrays go from cell to cell as direct passes ([`super::direct`]), which save a copy at each
//! end.

use std::rc::Rc;

use conset_ir::{CellId, Direction};

use super::message_queue::Address;
use super::port::MpiPort;
use super::run::{MessageClass, WaitState};
use super::tree::{Edge, Neighbour, TreeNode, WalkFault, binomial_neighbours};
use crate::collectives::WalkDirection;
use crate::error::{MpiError, RunError};
use crate::port::{OtherArray, ShortReduction, Stopped};

/// The most bytes of a short array.
const SHORT: usize = 1 << 15;

/// A cell in the tree: the binomial tree over the places of live cells, whose subtrees are stretches of
/// places.
pub(super) struct LiveTree {
    node: TreeNode,
    parent: Option<CellId>,
    children: Vec<CellId>,
}

impl LiveTree {
    fn new(port: &MpiPort<'_>, live: &[CellId], own: usize) -> Result<Self, MpiError> {
        let rank = port.rank;
        let edge = |child: CellId, parent: CellId, way| {
            let Address { rank: other, tag } =
                rank.message_of(MessageClass::Tree, (child, parent), way);
            if other != rank.comm.rank() {
                return Edge::Remote { rank: other, up: tag, down: 0 };
            }
            let mut edges = rank.live_edges.borrow_mut();
            Edge::Local(Rc::clone(edges.entry(child).or_default()))
        };
        let (parent, children) = binomial_neighbours(own, live.len());
        let parent = parent.map(|place| live[place]);
        let children: Vec<CellId> = children.into_iter().map(|place| live[place]).collect();
        let ends = children.iter().map(|&child| edge(child, port.id, Direction::Receive)).collect();
        let up = parent.map(|parent| edge(port.id, parent, Direction::Send));
        Ok(Self { node: TreeNode::new(&rank.comm, up, ends)?, parent, children })
    }

    /// The cell at an edge.
    fn neighbour(&self, own: CellId, neighbour: Neighbour) -> CellId {
        let cell = match neighbour {
            Neighbour::Parent => self.parent,
            Neighbour::Child(place) => self.children.get(place).copied(),
        };
        cell.unwrap_or(own)
    }

    /// Combines the array with those of the children and sends it to the parent.
    fn reduce(
        &mut self,
        port: &MpiPort<'_>,
        ShortReduction { word_bytes, array, combine, .. }: ShortReduction<'_>,
    ) -> Result<Result<(), OtherArray>, Stopped> {
        let call = conset_ir::convert::to_u64(word_bytes);
        port.noted(self.node.start(WalkDirection::Up, call, array.len()))?;
        let mut combine = |_: usize, own: &mut [u8], its: &[u8]| combine(own, its);
        loop {
            let awaited = self.node.awaited();
            let cell = self.neighbour(port.id, awaited);
            let what = match awaited {
                Neighbour::Parent => WaitState::Receiver(cell),
                Neighbour::Child(_) => WaitState::MessageSpec(cell),
            };
            let tries = port.tries();
            let step = port.wait_for(what, || {
                let polled = self.node.poll(tries, array, &mut combine);
                let moved = self.node.awaited() != awaited;
                match polled {
                    Ok(done) => Ok((done || moved).then_some(Ok(done))),
                    Err(WalkFault::Mpi(error) | WalkFault::TooLong { error, .. }) => {
                        Err(RunError::from(error))
                    }
                    Err(WalkFault::Header { from, call, bytes }) => {
                        Ok(Some(Err((from, call, bytes))))
                    }
                }
            })?;
            match step {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err((from, word_bytes, bytes)) => {
                    let source = self.neighbour(port.id, from);
                    return Ok(Err(OtherArray { source, word_bytes, bytes }));
                }
            }
        }
    }
}

impl MpiPort<'_> {
    /// [`crate::port::CellPort::reduce_short`].
    pub(super) fn reduce_over_tree(
        &mut self,
        reduction: ShortReduction<'_>,
    ) -> Result<Option<Result<(), OtherArray>>, Stopped> {
        if reduction.array.len() > SHORT {
            return Ok(None);
        }
        let mut tree = match self.tree.take() {
            Some(tree) => tree,
            None => self.noted(LiveTree::new(self, reduction.live, reduction.own))?,
        };
        let result = tree.reduce(self, reduction);
        if matches!(result, Ok(Ok(()))) {
            self.tree = Some(tree);
        } else {
            // The run ends.
            self.noted(tree.node.close())?;
        }
        result.map(Some)
    }
}
