//! Nonblocking reductions over MPI: walks over trees that were started and go on by themselves.
//!
//! A walk has its array. It starts when the one before of the same cell over the same tree is done,
//! as a node of a tree walks once at a time; walks over other trees go on beside it. All walks of a
//! rank's cells are advanced whenever a cell starts or tests something, and while the cells of the
//! rank wait ([`WalkQueue::progress`]).
//!
//! There is no circular wait: the n-th walk over a tree waits only for the n-th and earlier ones of
//! other cells over the same tree, and every cell starts the same ones in the same order.

use std::cell::{Cell as Slot, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::persistent_requests::Numbered;
use super::walks::{RankTree, TreeKey};
use crate::collectives::{StartedArray, WalkDirection};
use crate::error::MpiError;

/// A walk to the root and back.
pub(super) struct WalkRequest {
    /// As the cell counts them.
    pub(super) number: u64,
    /// Its number among all that the cell does together with others ([`super::mismatch`]).
    pub(super) call: Numbered,
    pub(super) key: TreeKey,
    pub(super) tree: Rc<RankTree>,
    pub(super) array: StartedArray,
}

/// A walk that is not done.
struct ActiveWalk {
    request: WalkRequest,
    started: bool,
}

/// The walks of one cell, oldest first.
#[derive(Default)]
struct CellWalks {
    active: VecDeque<ActiveWalk>,
    done: Vec<(u64, StartedArray)>,
}

/// The walks of a rank's cells.
pub(super) struct WalkQueue {
    rows: RefCell<Vec<CellWalks>>,
    /// Walks of all rows that are not done.
    active: Slot<usize>,
}

impl WalkQueue {
    pub(super) fn new(cells: usize) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(cells, CellWalks::default);
        Self { rows: RefCell::new(rows), active: Slot::new(0) }
    }

    /// Another walk of a cell, with a higher number than its last.
    pub(super) fn push(&self, row: usize, request: WalkRequest) {
        self.rows.borrow_mut()[row].active.push_back(ActiveWalk { request, started: false });
        self.active.set(self.active.get() + 1);
    }

    /// Goes on with all walks as far as possible without waiting, with some tries for each; whether
    /// one started or ended.
    #[inline]
    pub(super) fn progress(&self, tries: u32) -> Result<bool, MpiError> {
        if self.active.get() == 0 {
            return Ok(false);
        }
        let (mut any, mut left) = (false, 0);
        for (row, walks) in self.rows.borrow_mut().iter_mut().enumerate() {
            any |= walks.progress(row, tries)?;
            left += walks.active.len();
        }
        self.active.set(left);
        Ok(any)
    }

    /// Whether a cell's walk, and all that it started before, are done.
    pub(super) fn are_done(&self, row: usize, number: u64) -> bool {
        let rows = self.rows.borrow();
        rows[row].active.front().is_none_or(|first| first.request.number > number)
    }

    /// The array of a walk that is done.
    pub(super) fn take(&self, row: usize, number: u64) -> StartedArray {
        let done = &mut self.rows.borrow_mut()[row].done;
        let at = done.iter().position(|walk| walk.0 == number);
        done.swap_remove(at.expect("the walk is done")).1
    }

    /// A cell's oldest walk that is not done: its step, and the tree.
    pub(super) fn oldest(&self, row: usize) -> Option<(u64, TreeKey)> {
        let rows = self.rows.borrow();
        rows[row].active.front().map(|walk| (walk.request.call.0, walk.request.key))
    }
}

impl CellWalks {
    fn progress(&mut self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let (mut at, mut any) = (0, false);
        while at < self.active.len() {
            let key = self.active[at].request.key;
            let is_first = self.active.iter().take(at).all(|walk| walk.request.key != key);
            let walk = &mut self.active[at];
            if !is_first {
                at += 1;
                continue;
            }
            let WalkRequest { call, tree, array, .. } = &mut walk.request;
            if !walk.started {
                tree.start(row, WalkDirection::Both, *call, array.bytes().len())?;
                walk.started = true;
                any = true;
            }
            let (bytes, op) = array.parts();
            let combine = |_, _, own: &mut [u8], its: &[u8]| op.combine(own, its);
            if !tree.poll((row, tries), *call, bytes, &combine)? {
                at += 1;
                continue;
            }
            any = true;
            if let Some(ActiveWalk { request, .. }) = self.active.remove(at) {
                self.done.push((request.number, request.array));
            }
        }
        Ok(any)
    }
}
