//! Nonblocking reductions on threads.
//!
//! At the start a cell leaves its array in the tree (module `tree`), and the last cell of a branch to
//! come combines it, whatever the others do meanwhile. What is left for the end is to read the result.
//!
//! A cell leaves nothing for the next walk over a tree before it has read the result of the last one,
//! so that results stay where they are until all cells have read them. A start therefore waits if a
//! reduction over the same tree is under way that some cell has not started. A cell that waits so has
//! read all its nonblocking exchanges first, and has left its arrays for all walks before, so no two
//! cells wait for each other: of the cells that wait, one at the least step waits for cells that are
//! before this step and do not wait.

use super::port::ThreadPort;
use super::tree::TreeState;
use super::worker::{WaitCondition, WaitReason};
use crate::call::Collective;
use crate::collectives::StartedArray;
use crate::executor::Resume;
use crate::port::{Stopped, TreeWalk};

/// Tests in vain between two looks for cells that have ended without the call.
const TESTS: u32 = 256;

/// A walk that was started, and whose result was not taken.
pub(super) struct StartedWalk<'b> {
    number: u64,
    step: u64,
    tree: &'b TreeState,
    array: StartedArray,
    /// The array is the result.
    done: bool,
    /// Tests in vain.
    tests: u32,
}

impl<'b> ThreadPort<'_, 'b> {
    /// [`crate::port::CellPort::start_walk`].
    pub(super) fn start_tree_walk(
        &mut self,
        number: u64,
        walk: &TreeWalk<'_>,
        mut array: StartedArray,
    ) -> Result<(), Stopped> {
        self.check()?;
        let state = self.state;
        let tree = state.sets[walk.set].tree(walk);
        let same = |started: &&StartedWalk<'b>| std::ptr::eq(started.tree, tree) && !started.done;
        if let Some(last) = self.walks.iter().rfind(same).map(|started| started.number) {
            self.read_in()?;
            self.wait_tree_walks(last)?;
        }
        if self.instantiated.is_some() {
            self.step(Collective::Walk(walk.set))?;
        } else {
            self.arrive_at(Collective::Walk(walk.set))?;
        }
        self.order_done(walk.set);
        let (bytes, op) = array.parts();
        self.leave(tree, walk, bytes, &|_, _, own: &mut [u8], its: &[u8]| op.combine(own, its))?;
        let step = self.step;
        self.walks.push_back(StartedWalk { number, step, tree, array, done: false, tests: 0 });
        Ok(())
    }

    /// [`crate::port::CellPort::test_walk`].
    pub(super) fn test_tree_walk(&mut self, number: u64) -> Result<bool, Stopped> {
        let state = self.state;
        if state.shutdown.has_started() {
            return Err(Stopped);
        }
        state.activity[self.worker.number].0.test();
        self.read_results();
        let row = self.row_of(number);
        let StartedWalk { step, tree, done, tests, .. } = &mut self.walks[row];
        if *done {
            return Ok(true);
        }
        *tests += 1;
        // The result never comes if a cell has ended without its part. A cell that waits for it, and
        // does not test, shows that to the detection of deadlocks.
        let asks = !(tests.is_multiple_of(TESTS) && tree.lacks_ended_cell(*step, &state.ended));
        let reason = WaitReason::Arrival(*step);
        let condition = WaitCondition { counter: tree.ready(), value: *step, reason, asks };
        match self.yielder.suspend(condition) {
            Resume::Continue => self.read_results(),
            Resume::Abort => return Err(Stopped),
        }
        Ok(self.walks[row].done)
    }

    /// [`crate::port::CellPort::wait_walk`]: reads the results of all walks up to this one.
    pub(super) fn wait_tree_walks(&mut self, last: u64) -> Result<(), Stopped> {
        for row in 0..self.walks.len() {
            let StartedWalk { number, step, tree, done, .. } = self.walks[row];
            if number > last {
                break;
            }
            if !done {
                self.wait_for(tree.ready(), step, WaitReason::Arrival(step))?;
            }
        }
        self.read_results();
        Ok(())
    }

    /// [`crate::port::CellPort::take_walk`].
    pub(super) fn take_tree_walk(&mut self, number: u64) -> StartedArray {
        let row = self.row_of(number);
        self.walks.remove(row).expect("it was found").array
    }

    fn row_of(&self, number: u64) -> usize {
        let row = self.walks.binary_search_by_key(&number, |walk| walk.number);
        row.expect("the walk was started and not taken")
    }

    /// Reads all results that are there.
    fn read_results(&mut self) {
        for walk in self.walks.iter_mut().filter(|walk| !walk.done) {
            if walk.tree.ready().has_reached(walk.step) {
                walk.tree.read(walk.step, walk.array.bytes_mut());
                walk.done = true;
            }
        }
    }
}
