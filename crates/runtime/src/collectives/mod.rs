//! Reductions, broadcasts and barriers over trees that were compiled like any other set.
//!
//! [`tree_sets`] makes the connection sets; whoever compiles the program compiles them with it.
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
pub use tree::tree_sets;
use tree::{Tree, Way};

/// The trees of an image, ready to be walked. It belongs to all cells.
#[derive(Debug)]
pub struct Collectives {
    image: Arc<Image>,
    tree: Tree,
    /// What each cell has received from its children, one after the other.
    scratch: Vec<Mutex<Vec<u64>>>,
}

impl Collectives {
    /// The trees `reduce`, `broadcast` and, if it is there, `allreduce` of an image
    /// ([`tree_sets`]).
    ///
    /// # Errors
    /// An image without them, or in which they are no trees to compute with.
    pub fn new(image: &Arc<Image>) -> Result<Self, PlanError> {
        Self::named(image, ["reduce", "broadcast", "allreduce"])
    }

    /// Trees of other names: to the root, from it, and both if there is such a set.
    ///
    /// # Errors
    /// As [`Collectives::new`].
    pub fn named(image: &Arc<Image>, names: [&str; 3]) -> Result<Self, PlanError> {
        let tree = Tree::new(image, names)?;
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
            self.walk_both(trees, piece, |own, child, _| op.apply(own, child))?;
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
        let Some((up, ..)) = trees.tree.sets else { return Ok(()) };
        for piece in x.chunks_mut(trees.words()) {
            self.walk(trees, up, Way::Up, piece, |own, child, _| op.apply(own, child))?;
        }
        Ok(())
    }

    /// Gives all cells the array of one; sooner from the root than from others.
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
            if from == tree.root {
                let Some((_, down, _)) = tree.sets else { break };
                self.walk(trees, down, Way::Down, piece, |own, _, _| own)?;
            } else {
                let choose = |own, child, row| if Some(row) == chosen { child } else { own };
                self.walk_both(trees, piece, choose)?;
            }
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
        let mut at = cell;
        while at != tree.root && tree.parent[at.index()] != self.id() {
            at = tree.parent[at.index()];
        }
        tree.children[self.id().index()].iter().position(|&child| child == at)
    }

    /// To the root and back, by one set or by two.
    fn walk_both<W: Number>(
        &mut self,
        trees: &Collectives,
        x: &mut [W],
        combine: impl Fn(W, W, usize) -> W,
    ) -> Result<(), CellError> {
        match trees.tree.sets {
            None => Ok(()),
            Some((_, _, Some(both))) => self.walk(trees, both, Way::Both, x, combine),
            Some((up, down, None)) => {
                self.walk(trees, up, Way::Up, x, combine)?;
                self.walk(trees, down, Way::Down, x, |own, _, _| own)
            }
        }
    }

    /// Does this cell's operations of a set, in all its phases. Up goes what
    /// `combine(own, child's, which child)` makes of `x`, down goes what came from above. `x` ends
    /// as what was made (on the way up, and at the root) or came.
    fn walk<W: Number>(
        &mut self,
        trees: &Collectives,
        set: usize,
        way: Way,
        x: &mut [W],
        combine: impl Fn(W, W, usize) -> W,
    ) -> Result<(), CellError> {
        let (id, width, tree) = (self.id(), trees.words(), &trees.tree);
        let children = &tree.children[id.index()];
        let slot = &trees.scratch[id.index()];
        let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arrived = std::mem::take(&mut *lock());
        arrived.clear();
        arrived.resize(children.len() * width, 0);
        let combined = |arrived: &[u64], x: &[W], word: usize| {
            let rows = arrived.chunks(width).enumerate();
            rows.fold(value(x, word), |own, (row, words)| {
                combine(own, W::from_bits(words[word]), row)
            })
        };
        let combines = way == Way::Up || way == Way::Both && id == tree.root;
        let image = &self.image().sets()[set];
        for (row, phase) in image.phases.iter().enumerate() {
            self.instantiate_phase((set, PhaseId::from_index(row)))?;
            for operation in phase.cell(id).operations {
                let connection = operation.connection;
                let ends = image.set.get(connection);
                let up = tree.leads_up(ends);
                for word in tree::span(operation) {
                    if operation.direction == Direction::Send {
                        let made = up || combines;
                        let word = if made { combined(&arrived, x, word) } else { value(x, word) };
                        self.send_element(connection, word)?;
                        continue;
                    }
                    let bits = self.receive_element::<u64>(connection)?;
                    if !up {
                        if let Some(own) = x.get_mut(word) {
                            *own = W::from_bits(bits);
                        }
                    } else if let Ok(child) = children.binary_search(&ends.source) {
                        arrived[child * width + word] = bits;
                    }
                }
            }
        }
        if combines {
            for word in 0..x.len() {
                x[word] = combined(&arrived, x, word);
            }
        }
        *lock() = arrived;
        Ok(())
    }
}

/// A word of an array; 0 beyond its end.
fn value<W: Word>(x: &[W], word: usize) -> W {
    x.get(word).copied().unwrap_or(W::from_bits(0))
}
