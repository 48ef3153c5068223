//! Walks over trees on threads, in memory that the cells share.
//!
//! A cell *leaves* its array at its node and goes on; the last to come of a cell and its children's
//! branches combines the node with its children, in their order, and then counts as having come to
//! the parent. So a branch is combined as soon as all of it is there, by whichever cell comes last,
//! and no cell is resumed only to hand something on. The result of the root is put into a place
//! where all cells read it. A cell waits once, for the result.
//!
//! # Order of accesses
//!
//! Everything is behind locks; the counters only say when it is complete.
//!
//! * A cell leaves an array only after its parent has combined the one before (`complete` of the
//!   parent). With a result for all cells that is certain, as the cell has read that.
//! * `missing` of a node is set back before the node is complete, and nobody comes to it for the
//!   next walk before that.
//! * A result stays where it is for [`RESULTS`] steps. On the way to the root and back it is
//!   replaced when all cells have left an array for a later walk, so they have read it (a cell that has
//!   only started the walk reads it before it leaves the next array). A root that
//!   only broadcasts first waits until all cells have arrived at a step after that of the result.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use conset_ir::CellId;
use conset_ir::convert::{to_u64, to_usize};

use super::port::ThreadPort;
use super::worker::WaitReason;
use crate::call::Collective;
use crate::collectives::{ReductionTree, WalkDirection, bytes_of_mut};
use crate::port::{CombineFn, Stopped, TreeWalk};
use crate::sync::{Counter, never_reaches};
use crate::word::{bytes, bytes_mut, copy_bytes};

/// Results that are kept.
const RESULTS: usize = 4;

/// The nodes of a tree, and its last results.
#[derive(Debug)]
pub(crate) struct TreeState {
    /// By cell of the machine.
    nodes: Box<[TreeNode]>,
    /// By step, modulo their number.
    results: [WalkResult; RESULTS],
    /// The step of the last result.
    ready: Counter,
}

/// One cell of a tree.
#[derive(Debug)]
#[repr(align(64))]
struct TreeNode {
    /// The cell's array, then that of its branch; in 64-bit words, for the alignment.
    words: Mutex<Vec<u64>>,
    /// Of the cell and its children's branches, those that have not come.
    missing: AtomicUsize,
    /// The step of the last array that the cell has left.
    left: Counter,
    /// The step of the last walk in which the branch was combined.
    complete: Counter,
}

/// What came to the root at a step, or from it.
#[derive(Debug, Default)]
struct WalkResult {
    step: Counter,
    words: RwLock<Vec<u64>>,
}

impl TreeState {
    pub(super) fn new(tree: &ReductionTree) -> Self {
        let node = |children: &Vec<CellId>| TreeNode {
            words: Mutex::default(),
            missing: AtomicUsize::new(children.len() + 1),
            left: Counter::default(),
            complete: Counter::default(),
        };
        Self {
            nodes: tree.children.iter().map(node).collect(),
            results: Default::default(),
            ready: Counter::default(),
        }
    }

    fn result(&self, step: u64) -> &WalkResult {
        &self.results[to_usize(step % to_u64(RESULTS))]
    }

    /// A cell's array, or all of a branch, has come to a node: combines the branches that are
    /// complete by that. Whether the whole tree is.
    fn arrive(
        &self,
        walk: &TreeWalk<'_>,
        step: u64,
        from: CellId,
        combine: &CombineFn<'_>,
    ) -> bool {
        let mut at = from;
        loop {
            let node = &self.nodes[at.index()];
            // The last to come sees what all others have left.
            if node.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
                return false;
            }
            let children = walk.tree.children(at);
            node.missing.store(children.len() + 1, Ordering::Relaxed);
            let mut own = node.lock();
            for (place, child) in children.iter().enumerate() {
                let mut its = self.nodes[child.index()].lock();
                combine(at, place, bytes_of_mut(&mut own), bytes_of_mut(&mut its));
            }
            drop(own);
            node.complete.publish(step);
            match walk.tree.parent_of(at) {
                Some(parent) => at = parent,
                None => return true,
            }
        }
    }

    /// The step of the last result.
    pub(super) fn ready(&self) -> &Counter {
        &self.ready
    }

    /// Whether a cell has ended that has left no array for a step.
    pub(super) fn lacks_ended_cell(&self, step: u64, ended: &[Counter]) -> bool {
        let mut nodes = self.nodes.iter().zip(ended);
        nodes.any(|(node, ended)| never_reaches(&node.left, step, ended))
    }

    /// Makes the result of a step, in the memory of an old one.
    fn publish(&self, step: u64, write: impl FnOnce(&mut Vec<u64>)) {
        let result = self.result(step);
        write(&mut result.words.write().unwrap_or_else(PoisonError::into_inner));
        result.step.publish(step);
        self.ready.publish(step);
    }

    pub(super) fn read(&self, step: u64, array: &mut [u8]) {
        let words = self.result(step).words.read().unwrap_or_else(PoisonError::into_inner);
        copy_words(array, &words);
    }
}

impl TreeNode {
    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'b> ThreadPort<'_, 'b> {
    /// [`crate::port::CellPort::walk`].
    pub(super) fn walk_tree(
        &mut self,
        walk: &TreeWalk<'_>,
        array: &mut [u8],
        combine: &CombineFn<'_>,
    ) -> Result<(), Stopped> {
        self.step(Collective::Walk(walk.set))?;
        self.order_done(walk.set);
        let (state, step) = (self.state, self.step);
        let tree = state.sets[walk.set].tree(walk);
        match walk.way {
            WalkDirection::Down if self.id == walk.tree.root => {
                let old = tree.result(step).step.value();
                for arrived in state.arrived.iter().filter(|_| old > 0) {
                    self.wait_for(&arrived.0, old + 1, WaitReason::Arrival(old + 1))?;
                }
                tree.publish(step, |words| fill(words, array));
                return Ok(());
            }
            WalkDirection::Down => {}
            WalkDirection::Up | WalkDirection::Both => self.leave(tree, walk, array, combine)?,
        }
        let awaited = match walk.way {
            WalkDirection::Up => &tree.nodes[self.id.index()].complete,
            _ => &tree.ready,
        };
        self.wait_for(awaited, step, WaitReason::Arrival(step))?;
        match walk.way {
            WalkDirection::Up => copy_words(array, &tree.nodes[self.id.index()].lock()),
            _ => tree.read(step, array),
        }
        self.worker.moved(array.len() / walk.word_bytes);
        Ok(())
    }

    /// Leaves the array of this cell, and combines what is complete by that.
    pub(super) fn leave(
        &mut self,
        tree: &'b TreeState,
        walk: &TreeWalk<'_>,
        array: &[u8],
        combine: &CombineFn<'_>,
    ) -> Result<(), Stopped> {
        let (step, node) = (self.step, &tree.nodes[self.id.index()]);
        if let Some(parent) = walk.tree.parent_of(self.id) {
            let last = node.left.value();
            let complete = &tree.nodes[parent.index()].complete;
            self.wait_for(complete, last, WaitReason::Arrival(last))?;
        }
        fill(&mut node.lock(), array);
        node.left.publish(step);
        if tree.arrive(walk, step, self.id, combine) && walk.way == WalkDirection::Both {
            let root = &tree.nodes[walk.tree.root.index()];
            tree.publish(step, |words| std::mem::swap(words, &mut root.lock()));
        }
        Ok(())
    }
}

/// Makes words of an array.
fn fill(words: &mut Vec<u64>, array: &[u8]) {
    words.resize(array.len().div_ceil(8), 0);
    copy_bytes(&mut bytes_mut(words)[..array.len()], array);
}

/// Copies the first bytes of words, as many as the array has.
fn copy_words(array: &mut [u8], words: &[u64]) {
    let words = bytes(words);
    let count = array.len().min(words.len());
    copy_bytes(&mut array[..count], &words[..count]);
}
