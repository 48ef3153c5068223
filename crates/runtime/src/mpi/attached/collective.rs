//! Reductions, broadcasts and barriers of an attached program, along a fixed binomial tree.
//!
//! The parent of rank `r` is `r` without its lowest bit. Values are combined in the order of the
//! tree: the own value first, then those of the children in the order of their ranks. A result has
//! the same bits in every run, those of the callback form ([`crate::Collectives`]) with one cell a
//! rank, and the same whether the call blocks or is started and completed. Several scalars in one
//! array are reduced by the same messages.
//!
//! Collectives are performed in the order in which they were started. Up to [`NODES`] are under way
//! at a time, each with tags of its own; the next ones wait for the first. Whatever waits on the rank
//! advances them ([`Reductions::advance`]): the completion of another reduction, an exchange of a
//! halo. Without that, a rank that waits in an exchange would keep others from a result that they
//! wait for before they exchange. Blocking collectives and set-ups first complete what was started.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use conset_ir::convert::{to_u64, to_usize};

use super::Attached;
use super::error::HaloError;
use super::operation::{TREE_TAGS, wait_for};
use crate::collectives::{ArrayOp, StartedArray, WalkDirection, bytes_of_mut};
use crate::error::MpiError;
use crate::lists::{Number, Op};
use crate::mpi::comm::Comm;
use crate::mpi::tree::{Combine, Neighbour, RemoteNode, WalkFault, binomial_neighbours};
use crate::requests::next_serial;

/// Collectives that can be under way at a time.
const NODES: usize = TREE_TAGS.len();
/// Tries to complete a message between two looks at the clock.
const TRIES: u32 = 8;
/// Tries for each reduction while something else is waited for.
pub(super) const TRIES_BESIDE: u32 = 1;
/// The most reductions that can be started and not completed; a program with more has forgotten to
/// complete them.
const PENDING_LIMIT: usize = 1 << 12;

/// A reduction that was started. It must be completed ([`Attached::wait_allreduce`]).
#[must_use = "a reduction that is started must be completed"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PendingReduction {
    attached: u64,
    number: u64,
}

impl PendingReduction {
    /// Its number among the collectives of the communicator, for [`Attached::pending_reduction`].
    pub fn number(self) -> u64 {
        self.number
    }
}

/// How far a reduction is that was started.
#[derive(Debug)]
enum Stage {
    /// Its node is that of an earlier one, which is not done.
    Queued,
    Walking,
    Done,
    Failed(HaloError),
}

/// A reduction that was started and not completed.
struct Reduction {
    number: u64,
    call: u64,
    array: StartedArray,
    stage: Stage,
}

/// The collectives of an attached communicator.
pub(super) struct Reductions {
    serial: u64,
    rank: usize,
    parent: Option<usize>,
    children: Vec<usize>,
    nodes: Vec<RemoteNode>,
    /// Collectives that were started.
    started: u64,
    /// Those that were not completed, in this order.
    queue: VecDeque<Reduction>,
}

impl Reductions {
    pub(super) fn new(comm: &Comm) -> Result<Self, MpiError> {
        let (parent, children) = binomial_neighbours(comm.rank(), comm.size());
        let node = |&tags: &[i32; 2]| RemoteNode::new(comm, parent, &children, tags);
        let nodes = TREE_TAGS.iter().map(node).collect::<Result<_, MpiError>>()?;
        let (serial, rank) = (next_serial(), comm.rank());
        Ok(Self { serial, rank, parent, children, nodes, started: 0, queue: VecDeque::new() })
    }

    /// Whether all that were started are done.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.iter().all(|reduction| matches!(reduction.stage, Stage::Done))
    }

    /// The node of the next collective.
    fn next_node(&mut self) -> usize {
        let node = to_usize(self.started % to_u64(NODES));
        self.started += 1;
        node
    }

    /// Goes on with all reductions as far as possible without waiting; how many are not done, and
    /// whether one has failed. Its error is kept for who completes it; all later ones fail with it.
    pub(super) fn advance(&mut self, tries: u32) -> (usize, bool) {
        let mut busy = [false; NODES];
        let mut left = 0;
        let mut lost = false;
        for reduction in &mut self.queue {
            if lost && !matches!(reduction.stage, Stage::Done | Stage::Failed(_)) {
                reduction.stage = Stage::Failed(HaloError::Lost);
            }
            let node = to_usize(reduction.number % to_u64(NODES));
            let polled = match reduction.stage {
                Stage::Done | Stage::Failed(_) => continue,
                // Neither this one nor a later one overtakes.
                Stage::Queued if busy[node] => {
                    left += 1;
                    busy = [true; NODES];
                    continue;
                }
                Stage::Queued => {
                    let (call, length) = (reduction.call, reduction.array.bytes().len());
                    let begun = self.nodes[node].get().start(WalkDirection::Both, call, length);
                    reduction.stage = Stage::Walking;
                    begun
                        .map_err(WalkFault::from)
                        .and_then(|()| reduction.poll(&mut self.nodes[node], tries))
                }
                Stage::Walking => reduction.poll(&mut self.nodes[node], tries),
            };
            match polled {
                Ok(true) => reduction.stage = Stage::Done,
                Ok(false) => {
                    busy[node] = true;
                    left += 1;
                }
                Err(fault) => {
                    let error = error_of(fault, self.rank, (self.parent, &self.children));
                    reduction.stage = Stage::Failed(error);
                    lost = true;
                }
            }
        }
        (left, lost)
    }

    /// The ranks for which the first reduction waits that is not done.
    fn awaited(&self) -> Vec<usize> {
        let walking = self.queue.iter().find(|one| matches!(one.stage, Stage::Walking));
        let node = walking.map(|one| to_usize(one.number % to_u64(NODES)));
        node.map_or_else(Vec::new, |node| self.awaited_by(node))
    }

    fn awaited_by(&self, node: usize) -> Vec<usize> {
        rank_of(self.nodes[node].awaited(), self.parent, &self.children).into_iter().collect()
    }

    fn find(&self, pending: PendingReduction) -> Result<usize, HaloError> {
        let row = self.queue.binary_search_by_key(&pending.number, |one| one.number);
        let own = pending.attached == self.serial;
        row.ok().filter(|_| own).ok_or(HaloError::Reduction)
    }
}

impl Reduction {
    fn poll(&mut self, node: &mut RemoteNode, tries: u32) -> Result<bool, WalkFault> {
        let (bytes, op) = self.array.parts();
        let mut combine = |_: usize, own: &mut [u8], its: &[u8]| op.combine(own, its);
        node.get().poll(tries, bytes, &mut combine)
    }
}

/// Whether a rank is in the branch of another.
fn is_in_branch(branch: usize, rank: usize) -> bool {
    // The ranks of a branch have its bits, and any below the lowest.
    rank >= branch && (rank ^ branch) < (branch & branch.wrapping_neg())
}

fn rank_of(neighbour: Neighbour, parent: Option<usize>, children: &[usize]) -> Option<usize> {
    match neighbour {
        Neighbour::Parent => parent,
        Neighbour::Child(place) => children.get(place).copied(),
    }
}

fn error_of(
    fault: WalkFault,
    rank: usize,
    (parent, children): (Option<usize>, &[usize]),
) -> HaloError {
    match fault {
        WalkFault::Mpi(error) => error.into(),
        WalkFault::Header { from, .. } | WalkFault::TooLong { from, .. } => {
            HaloError::Calls { ranks: [rank_of(from, parent, children).unwrap_or(rank), rank] }
        }
    }
}

/// What the messages of a call begin with: a kind, a number of it, and the type of the words.
fn call_of<W: Number>(kind: u64, number: u64) -> u64 {
    kind << 60 | to_u64(W::TYPE) << 48 | number
}

const ALLREDUCE: u64 = 1;
const BROADCAST: u64 = 2;

fn call_of_op<W: Number>(op: Op) -> u64 {
    let op = match op {
        Op::Copy => 0,
        Op::Add => 1,
        Op::Min => 2,
        Op::Max => 3,
    };
    call_of::<W>(ALLREDUCE, op)
}

impl Attached {
    /// Combines the arrays of all ranks, entry by entry; every rank gets the result. Collective.
    ///
    /// # Errors
    /// Arrays of different types or lengths, or ranks that make different calls: on the ranks that
    /// notice it. An error of MPI, or a rank that does not come.
    pub fn allreduce<W: Number>(&self, op: Op, array: &mut [W]) -> Result<(), HaloError> {
        let combine = ArrayOp::new::<W>(op);
        self.walk(WalkDirection::Both, call_of_op::<W>(op), array, &mut |_, own, its| {
            combine.combine(own, its);
        })
    }

    /// Starts [`Attached::allreduce`] of the values that the array has now: to reduce while the
    /// program does something else. Complete it with [`Attached::wait_allreduce`]. Several can be
    /// started; all ranks start and make collective calls in the same order. Messages are passed on
    /// in calls only, so a rank that computes for long holds others up, unless it tests meanwhile.
    ///
    /// Reduce several dot products in one array: they take as long as one.
    ///
    /// # Errors
    /// As [`Attached::allreduce`], of earlier calls; too many that were not completed.
    pub fn start_allreduce<W: Number>(
        &self,
        op: Op,
        array: &[W],
    ) -> Result<PendingReduction, HaloError> {
        self.check_usable()?;
        let mut state = self.inner.state();
        let reductions = &mut state.reductions;
        if reductions.queue.len() >= PENDING_LIMIT {
            return Err(HaloError::Forgotten { reductions: PENDING_LIMIT });
        }
        let number = reductions.started;
        reductions.started += 1;
        reductions.queue.push_back(Reduction {
            number,
            call: call_of_op::<W>(op),
            array: StartedArray::new(op, array),
            stage: Stage::Queued,
        });
        let pending = PendingReduction { attached: reductions.serial, number };
        drop(state);
        self.inner.walking.store(1, Ordering::Relaxed);
        self.inner.advance_reductions(TRIES_BESIDE);
        Ok(pending)
    }

    /// Whether a reduction can be completed without waiting. It proceeds meanwhile.
    ///
    /// # Errors
    /// A reduction of another communicator, or that was completed.
    pub fn test_allreduce(&self, pending: &PendingReduction) -> Result<bool, HaloError> {
        self.inner.advance_reductions(TRIES_BESIDE);
        let state = self.inner.state();
        let row = state.reductions.find(*pending)?;
        Ok(matches!(state.reductions.queue[row].stage, Stage::Done | Stage::Failed(_)))
    }

    /// Completes a reduction: the array becomes its result, whatever it was.
    ///
    /// # Errors
    /// As [`Attached::allreduce`]; a reduction of another communicator or that was completed, or an
    /// array of another type or length than at the start.
    pub fn wait_allreduce<W: Number>(
        &self,
        pending: PendingReduction,
        array: &mut [W],
    ) -> Result<(), HaloError> {
        let row = self.inner.state().reductions.find(pending)?;
        if !self.inner.state().reductions.queue[row].array.is_like(array) {
            return Err(HaloError::Reduction);
        }
        self.wait_for_reductions(|reductions| {
            matches!(reductions.queue[row].stage, Stage::Done | Stage::Failed(_))
        })?;
        let done = self.inner.state().reductions.queue.remove(row);
        let Some(Reduction { array: result, stage, .. }) = done else { return Ok(()) };
        if let Stage::Failed(error) = stage {
            return Err(error);
        }
        result.copy_to(array);
        Ok(())
    }

    /// The reduction with a number, for interfaces to other languages. A number that belongs to
    /// none is an error when it is used.
    pub fn pending_reduction(&self, number: u64) -> PendingReduction {
        PendingReduction { attached: self.inner.state().reductions.serial, number }
    }

    /// The array of one rank, for all. Collective.
    ///
    /// # Errors
    /// As [`Attached::allreduce`].
    pub fn broadcast<W: Number>(&self, root: usize, array: &mut [W]) -> Result<(), HaloError> {
        if root >= self.size() {
            return Err(HaloError::Root { root, ranks: self.size() });
        }
        let way = if root == 0 { WalkDirection::Down } else { WalkDirection::Both };
        let children = self.inner.state().reductions.children.clone();
        // To the root of the tree goes what comes from the branch with the source.
        let mut choose = |child: usize, own: &mut [u8], its: &[u8]| {
            if is_in_branch(children[child], root) {
                own.copy_from_slice(its);
            }
        };
        self.walk(way, call_of::<W>(BROADCAST, to_u64(root)), array, &mut choose)
    }

    /// Returns when all ranks have called it. Collective.
    ///
    /// # Errors
    /// As [`Attached::allreduce`].
    pub fn barrier(&self) -> Result<(), HaloError> {
        self.allreduce::<u64>(Op::Max, &mut [])
    }

    /// A blocking collective, in place of an array.
    fn walk<W: Number>(
        &self,
        way: WalkDirection,
        call: u64,
        array: &mut [W],
        combine: &mut Combine<'_>,
    ) -> Result<(), HaloError> {
        self.collective(|| {
            let (inner, array) = (&self.inner, bytes_of_mut(array));
            let node = {
                let mut state = inner.state();
                let reductions = &mut state.reductions;
                let node = reductions.next_node();
                reductions.nodes[node].get().start(way, call, array.len())?;
                node
            };
            let mut fault = None;
            let awaited = || inner.state().reductions.awaited_by(node);
            wait_for(&inner.comm, &place, &awaited, || {
                let polled = inner.state().reductions.nodes[node].get().poll(TRIES, array, combine);
                polled.or_else(|found| {
                    fault = Some(found);
                    Ok(true)
                })
            })?;
            let Some(fault) = fault else { return Ok(()) };
            let mut state = inner.state();
            let Reductions { rank, parent, children, .. } = &state.reductions;
            let error = error_of(fault, *rank, (*parent, children));
            state.lost = true;
            Err(error)
        })
    }

    /// Completes all reductions that were started; their results are kept.
    pub(super) fn settle_reductions(&self) -> Result<(), HaloError> {
        if self.inner.walking.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.wait_for_reductions(|reductions| {
            let open = |one: &Reduction| matches!(one.stage, Stage::Queued | Stage::Walking);
            !reductions.queue.iter().any(open)
        })
    }

    fn wait_for_reductions(&self, done: impl Fn(&Reductions) -> bool) -> Result<(), HaloError> {
        let inner = &self.inner;
        let awaited = || inner.state().reductions.awaited();
        let waited = wait_for(&inner.comm, &place, &awaited, || {
            inner.advance_reductions(TRIES);
            Ok(done(&inner.state().reductions))
        });
        if waited.is_err() {
            inner.state().lost = true;
        }
        Ok(waited?)
    }
}

fn place() -> String {
    "a collective call".to_owned()
}

#[cfg(test)]
mod tests {
    use super::{binomial_neighbours, is_in_branch};

    #[test]
    fn a_branch_has_the_ranks_that_reach_it() {
        for rank in 1..100usize {
            let mut above = vec![rank];
            while let Some(parent) = binomial_neighbours(*above.last().unwrap(), 100).0 {
                above.push(parent);
            }
            for branch in 1..100 {
                assert_eq!(is_in_branch(branch, rank), above.contains(&branch), "{branch} {rank}");
            }
        }
    }
}
