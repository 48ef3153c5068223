//! Reductions, broadcasts and barriers over trees that were compiled like any other set.
//!
//! [`tree_sets`] makes two connection sets; whoever compiles the program compiles them with it.
//! [`Collectives`] checks that what the image has are such trees, once, outside of the program. A
//! cell then walks them element by element, in whatever phases and order the compiler gave them:
//! what it receives from its children it combines with its own values and sends on.
//!
//! Combining goes by the tree and not by arrival: the own value first, then the children's in the
//! order of their ids. So a sum has the same bits in every run and on every transport. With other
//! trees (another number of cells, a dead cell) it may have others.
//!
//! Arrays longer than the trees carry go in pieces. All words of a tree always travel, so compile
//! trees as wide as the arrays that are reduced most often; a dot product needs 1 word.
//!
//! All cells call the same collectives in the same order. With one live cell there is nothing to
//! do and no set is needed. What it does not do: non-blocking collectives, and arrays that differ
//! in length between cells.

mod tree;

use std::sync::{Arc, Mutex, PoisonError};

use conset_ir::{CellId, Direction, Image, PhaseId};

use crate::cell::Cell;
use crate::error::CellError;
use crate::lists::{Number, Op};
use crate::plan::{PlanError, PlanUse};
use crate::word::Word;
use tree::Tree;
pub use tree::tree_sets;

/// The trees of an image, ready to be walked. It belongs to all cells.
#[derive(Debug)]
pub struct Collectives {
    image: Arc<Image>,
    tree: Tree,
    /// What each cell has received from its children, one after the other.
    scratch: Vec<Mutex<Vec<u64>>>,
}

impl Collectives {
    /// The trees `reduce` and `broadcast` of an image ([`tree_sets`]).
    ///
    /// # Errors
    /// An image without them, or in which they are no trees to compute with.
    pub fn new(image: &Arc<Image>) -> Result<Self, PlanError> {
        Self::named(image, "reduce", "broadcast")
    }

    /// Trees of other names.
    ///
    /// # Errors
    /// As [`Collectives::new`].
    pub fn named(image: &Arc<Image>, reduce: &str, broadcast: &str) -> Result<Self, PlanError> {
        let tree = Tree::new(image, reduce, broadcast)?;
        let scratch = tree.children.iter().map(|_| Mutex::default()).collect();
        Ok(Self { image: image.clone(), tree, scratch })
    }

    /// The cell at the root: the first live one in the trees of [`tree_sets`].
    pub fn root(&self) -> CellId {
        self.tree.root
    }

    /// Words that the trees carry at a time.
    pub fn words(&self) -> usize {
        self.tree.words
    }
}

impl Cell<'_> {
    /// Combines the arrays of all cells, entry by entry; every cell ends with the result. (To
    /// copy the array of one cell there is [`Cell::broadcast`]; [`Op::Copy`] copies some cell's.)
    ///
    /// # Errors
    /// Collectives of another image; as [`Cell::instantiate_phase`] and [`Cell::send_element`].
    pub fn allreduce<W: Number>(
        &mut self,
        trees: &Collectives,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        for piece in x.chunks_mut(trees.words()) {
            self.walk_up(trees, piece, |own, child, _| op.apply(own, child))?;
            self.walk_down(trees, piece)?;
        }
        Ok(())
    }

    /// Combines the arrays of all cells, entry by entry; the root ends with the result, other
    /// cells with that of their branch of the tree.
    ///
    /// # Errors
    /// As [`Cell::allreduce`].
    pub fn reduce<W: Number>(
        &mut self,
        trees: &Collectives,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        for piece in x.chunks_mut(trees.words()) {
            self.walk_up(trees, piece, |own, child, _| op.apply(own, child))?;
        }
        Ok(())
    }

    /// Gives all cells the array of one. From the root it takes one tree, from others two.
    ///
    /// # Errors
    /// A cell that is not in the tree; as [`Cell::allreduce`].
    pub fn broadcast<W: Number>(
        &mut self,
        trees: &Collectives,
        from: CellId,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        let tree = &trees.tree;
        if !tree.is_node(from) {
            let set = tree.name.clone();
            return self.fail(CellError::Plan(PlanUse::NotInTree { cell: from, set }));
        }
        let chosen = self.branch_of(tree, from);
        for piece in x.chunks_mut(trees.words()) {
            if from != tree.root {
                self.walk_up(
                    trees,
                    piece,
                    |own, child, row| {
                        if Some(row) == chosen { child } else { own }
                    },
                )?;
            }
            self.walk_down(trees, piece)?;
        }
        Ok(())
    }

    /// Returns when all cells have called it.
    ///
    /// # Errors
    /// As [`Cell::allreduce`].
    pub fn barrier(&mut self, trees: &Collectives) -> Result<(), CellError> {
        self.allreduce(trees, Op::Max, &mut [0u32])
    }

    fn check_trees(&mut self, trees: &Collectives) -> Result<(), CellError> {
        self.check_running()?;
        if !std::ptr::eq(self.image(), &raw const *trees.image) {
            let set = trees.tree.name.clone();
            return self.fail(CellError::Plan(PlanUse::Image { set }));
        }
        Ok(())
    }

    /// Which of this cell's children has `cell` in its branch.
    fn branch_of(&self, tree: &Tree, cell: CellId) -> Option<usize> {
        let [reduce, _] = tree.sets?;
        let set = &self.image().sets()[reduce].set;
        let mut at = cell;
        while at != tree.root && tree.parent[at.index()] != self.id() {
            at = tree.parent[at.index()];
        }
        tree.children[self.id().index()].iter().position(|&x| set.get(x).source == at)
    }

    /// Towards the root: `x` becomes what `combine(own, child's, which child)` makes of it.
    fn walk_up<W: Number>(
        &mut self,
        trees: &Collectives,
        x: &mut [W],
        combine: impl Fn(W, W, usize) -> W,
    ) -> Result<(), CellError> {
        let Some([reduce, _]) = trees.tree.sets else { return Ok(()) };
        let (id, width) = (self.id(), trees.words());
        let children = &trees.tree.children[id.index()];
        let slot = &trees.scratch[id.index()];
        let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arrived = std::mem::take(&mut *lock());
        arrived.clear();
        arrived.resize(children.len() * width, 0);
        let combined = |arrived: &[u64], x: &[W], word: usize| {
            let own = x.get(word).copied().unwrap_or(W::from_bits(0));
            let rows = arrived.chunks(width).enumerate();
            rows.fold(own, |own, (row, words)| combine(own, W::from_bits(words[word]), row))
        };
        let image = self.image();
        for (row, phase) in image.sets()[reduce].phases.iter().enumerate() {
            self.instantiate_phase((reduce, PhaseId::from_index(row)))?;
            for operation in phase.cell(id).operations {
                let x_id = operation.connection;
                for word in tree::span(operation) {
                    if operation.direction == Direction::Send {
                        self.send_element(x_id, combined(&arrived, x, word))?;
                    } else if let Some(child) = children.iter().position(|&child| child == x_id) {
                        arrived[child * width + word] = self.receive_element::<u64>(x_id)?;
                    }
                }
            }
        }
        for word in 0..x.len() {
            x[word] = combined(&arrived, x, word);
        }
        *lock() = arrived;
        Ok(())
    }

    /// From the root on.
    fn walk_down<W: Word>(&mut self, trees: &Collectives, x: &mut [W]) -> Result<(), CellError> {
        let Some([_, broadcast]) = trees.tree.sets else { return Ok(()) };
        let (id, image) = (self.id(), self.image());
        for (row, phase) in image.sets()[broadcast].phases.iter().enumerate() {
            self.instantiate_phase((broadcast, PhaseId::from_index(row)))?;
            for operation in phase.cell(id).operations {
                for word in tree::span(operation) {
                    if operation.direction == Direction::Send {
                        let value = x.get(word).map_or(0, |value| value.to_bits());
                        self.send_element(operation.connection, value)?;
                    } else {
                        let value = self.receive_element(operation.connection)?;
                        if let Some(own) = x.get_mut(word) {
                            *own = value;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
