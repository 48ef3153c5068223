//! Reductions, broadcasts and barriers of an attached program, along a fixed binomial tree.
//!
//! The parent of rank `r` is `r` without its lowest bit. Values are combined in the order of the
//! tree: the own value first, then those of the children in the order of their ranks. A result has
//! the same bits in every run, and those of the callback form ([`crate::Collectives`]) with one cell
//! a rank. Several scalars in one array are reduced by the same messages.

use conset_ir::convert::to_u64;

use super::Attached;
use super::error::HaloError;
use super::operation::{TREE_TAG, look, take, wait_for};
use crate::error::MpiError;
use crate::lists::{Number, Op};
use crate::mpi::comm::Comm;
use crate::mpi::raw_requests::SingleRequest;

/// A rank's place in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    parent: Option<usize>,
    children: Vec<usize>,
}

impl Tree {
    pub(super) fn new(rank: usize, ranks: usize) -> Self {
        let steps = (0..usize::BITS).map(|bit| 1usize << bit);
        // A child differs from this rank in a bit below the rank's lowest one.
        let below = steps.take_while(|step| *step < ranks && rank & (step | (step - 1)) == 0);
        let children = below.map(|step| rank + step).filter(|child| *child < ranks).collect();
        Self { parent: rank.checked_sub(1).map(|less| rank & less), children }
    }
}

/// What the messages of a call begin with.
#[derive(Clone, Copy)]
enum Mark {
    Allreduce,
    Broadcast,
}

impl Attached {
    /// Combines the arrays of all ranks, entry by entry; every rank gets the result. Collective.
    ///
    /// # Errors
    /// Arrays of different lengths, or ranks that make different calls: on the ranks that notice it.
    /// An error of MPI, or a rank that does not come.
    pub fn allreduce<W: Number>(&self, op: Op, array: &mut [W]) -> Result<(), HaloError> {
        self.collective(|| self.reduce_by_tree(op, array))
    }

    fn reduce_by_tree<W: Number>(&self, op: Op, array: &mut [W]) -> Result<(), HaloError> {
        let tree = self.inner.state().tree.clone();
        for &child in &tree.children {
            let arrived = self.receive(child, Mark::Allreduce, array.len())?;
            for (value, bits) in array.iter_mut().zip(arrived) {
                *value = op.apply(*value, W::from_bits(bits));
            }
        }
        if let Some(parent) = tree.parent {
            self.send(&[parent], Mark::Allreduce, array)?;
            let result = self.receive(parent, Mark::Allreduce, array.len())?;
            array.iter_mut().zip(result).for_each(|(value, bits)| *value = W::from_bits(bits));
        }
        self.send(&tree.children, Mark::Allreduce, array)
    }

    /// The array of one rank, for all. Collective.
    ///
    /// # Errors
    /// As [`Attached::allreduce`].
    pub fn broadcast<W: Number>(&self, root: usize, array: &mut [W]) -> Result<(), HaloError> {
        self.collective(|| self.broadcast_by_tree(root, array))
    }

    fn broadcast_by_tree<W: Number>(&self, root: usize, array: &mut [W]) -> Result<(), HaloError> {
        if root >= self.size() {
            return Err(HaloError::Root { root, ranks: self.size() });
        }
        let tree = self.inner.state().tree.clone();
        // By way of the root of the tree.
        let from = match (tree.parent, self.rank()) {
            (None, _) if root > 0 => Some(root),
            (parent, _) => parent,
        };
        if self.rank() == root && root > 0 {
            self.send(&[0], Mark::Broadcast, array)?;
        }
        if let Some(from) = from {
            let result = self.receive(from, Mark::Broadcast, array.len())?;
            array.iter_mut().zip(result).for_each(|(value, bits)| *value = W::from_bits(bits));
        }
        self.send(&tree.children, Mark::Broadcast, array)
    }

    /// Returns when all ranks have called it. Collective.
    ///
    /// # Errors
    /// As [`Attached::allreduce`].
    pub fn barrier(&self) -> Result<(), HaloError> {
        self.allreduce::<u64>(Op::Max, &mut [])
    }

    fn send<W: Number>(&self, to: &[usize], mark: Mark, array: &[W]) -> Result<(), HaloError> {
        let comm = &self.inner.comm;
        let words = || -> Vec<u64> {
            let head = [head(mark, array.len())];
            head.into_iter().chain(array.iter().map(|value| value.to_bits())).collect()
        };
        let sends = to.iter().map(|&peer| SingleRequest::send(comm, words(), peer, TREE_TAG));
        let mut sends = sends.collect::<Result<Vec<_>, MpiError>>()?;
        for (send, &peer) in sends.iter_mut().zip(to) {
            wait_for(comm, &place, &|| vec![peer], || send.test())?;
        }
        Ok(())
    }

    fn receive(&self, from: usize, mark: Mark, count: usize) -> Result<Vec<u64>, HaloError> {
        let comm: &Comm = &self.inner.comm;
        let mut found = None;
        wait_for(comm, &place, &|| vec![from], || {
            found = look(comm, Some(from), TREE_TAG)?;
            Ok(found.is_some())
        })?;
        let mut words = match found {
            Some(found) => take(comm, found, TREE_TAG)?,
            None => Vec::new(),
        };
        if words.first() != Some(&head(mark, count)) {
            self.inner.state().lost = true;
            return Err(HaloError::Calls { ranks: [from, self.rank()] });
        }
        words.remove(0);
        Ok(words)
    }
}

fn head(mark: Mark, count: usize) -> u64 {
    let mark = match mark {
        Mark::Allreduce => 1,
        Mark::Broadcast => 2,
    };
    mark << 56 | to_u64(count)
}

fn place() -> String {
    "a collective call".to_owned()
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn parents_and_children_agree() {
        for ranks in 1..70 {
            let trees: Vec<Tree> = (0..ranks).map(|rank| Tree::new(rank, ranks)).collect();
            assert_eq!(trees[0].parent, None);
            for (rank, tree) in trees.iter().enumerate() {
                assert!(tree.children.is_sorted());
                assert!(tree.children.iter().all(|&child| trees[child].parent == Some(rank)));
                let parent = tree.parent.map(|parent| &trees[parent]);
                assert!(parent.is_none_or(|parent| parent.children.contains(&rank)));
            }
            let children: usize = trees.iter().map(|tree| tree.children.len()).sum();
            assert_eq!(children, ranks - 1);
        }
    }
}
