//! Reductions, broadcasts and barriers over trees that are compiled like any other set.
//!
//! [`tree_sets`] makes the connection sets. Compile those that the program uses: `allreduce` alone
//! serves all calls except [`Cell::reduce`]. A call without its set is an error that names it.
//! [`Collectives`] checks once, outside of the program, that the sets of the image are such trees.
//!
//! | transport | how a cell walks a tree |
//! |---|---|
//! | emulated machine | word by word, in the compiled phases and order, which is what the schedule is priced for. Arrays longer than the trees go in pieces; all words of a tree are always sent, so compile trees as wide as the arrays that are reduced most often. If the image has step plans, by one message over each edge |
//! | MPI | by one message over each edge, with the whole array; long arrays in pieces that are passed on while others arrive. Cells of the same rank combine in memory |
//! | threads | in memory: the last cell of a branch to come combines it |
//!
//! No cell meets all others, except where the compiled phases of the emulated machine demand it. The
//! messages have their own numbers, so a program's own messages are never taken for them.
//!
//! Values are combined in the order of the tree, not of arrival: the own value first, then those of
//! the children in the order of their ids. A sum therefore has the same bits in every run and on
//! every transport, and for each entry of an array the same as if it were reduced alone. With other
//! trees (another number of cells, a dead cell) the bits may differ. (Recursive doubling and rings,
//! which are faster for long arrays, add in another order, so they are not used.)
//!
//! Reduce several values in one call: it takes as long as one, as long as the array is short. An
//! array serves for values of one type: `let mut sums = [rr, pq, zz];
//! cell.allreduce(&trees, Op::Add, &mut sums)?`.
//!
//! All cells call the same collectives in the same order, with the same operation, arrays of the
//! same length and type, and the same source of a broadcast. Otherwise the run fails with an error
//! that names two cells and what they call ([`crate::RunError::Mismatch`]). With one live cell there
//! is nothing to do and no set is needed. [`Cell::start_allreduce`] starts a reduction that goes on while the
//! program computes.

mod fold;
mod live;
mod nonblocking;
mod tree;
mod walk;

use std::sync::Arc;

use conset_ir::{CellId, Image};

use crate::call::CallArray;
use crate::cell::Cell;
use crate::error::{CellError, PlanError, PlanUse};
use crate::lists::{Number, Op};
#[cfg(feature = "mpi")]
pub(crate) use fold::ArrayOp;
pub(crate) use fold::{bits_of, bytes_of_mut, write_bits};
use fold::{combine_maxima, combine_words, order};
pub use live::ReducePlan;
pub(crate) use nonblocking::{StartedArray, StartedReductions};
use tree::TreeSets;
pub(crate) use tree::{ReductionTree, WalkDirection};
pub use tree::{tree_sets, tree_sets_named};
use walk::Fold;

/// The names of the sets: to the root, from it, both.
const NAMES: [&str; 3] = ["reduce", "broadcast", "allreduce"];

/// The trees of an image, checked. All cells share one value.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_runtime::ir::{Document, text};
/// use conset_runtime::{Collectives, Op, World};
///
/// // The image of the set `allreduce` of `tree_sets(&machine, 1)` on two cells, here in text form;
/// // the facade crate compiles it.
/// # let file = "conset image 1
/// # machine ring:2
/// # set allreduce
/// #   x0 c1 -> c0 words 1
/// #   x1 c0 -> c1 words 1
/// #   order x0 before x1
/// #   phase p0
/// #     cell c0
/// #       ch0 from c1 to x0
/// #       ch1 from x1 to c1/ch1
/// #       receive x0 ch0 words 1 start 0
/// #       send x1 ch1 words 1 start 1
/// #     cell c1
/// #       ch0 from x0 to c0/ch0
/// #       ch1 from c0 to x1
/// #       send x0 ch0 words 1 start 0
/// #       receive x1 ch1 words 1 start 1
/// # ";
/// let Document::Image(image) = text::parse("trees.cset", file)? else { unreachable!() };
/// let image = Arc::new(image);
/// let trees = Collectives::new(&image)?;
/// let (maxima, _report) = World::new(image).try_run(|cell| {
///     let mut greatest = [10 * cell.id().0];
///     cell.allreduce(&trees, Op::Max, &mut greatest)?;
///     Ok(greatest[0])
/// })?;
/// assert_eq!(maxima, [10, 10]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Collectives {
    image: Arc<Image>,
    tree: Arc<ReductionTree>,
}

impl Collectives {
    /// The trees `reduce`, `broadcast` and `allreduce` of an image ([`tree_sets`]), those that
    /// it has.
    ///
    /// # Errors
    /// An image without any of them, or in which they are no trees to compute with.
    pub fn new(image: &Arc<Image>) -> Result<Self, PlanError> {
        Self::prefixed(image, "")
    }

    /// The trees of [`tree_sets_named`] with this prefix.
    ///
    /// # Errors
    /// As [`Collectives::new`].
    pub fn prefixed(image: &Arc<Image>, prefix: &str) -> Result<Self, PlanError> {
        let names = NAMES.map(|name| format!("{prefix}{name}"));
        Self::named(image, names.each_ref().map(String::as_str))
    }

    /// Trees of other names: to the root, from it, and both ways, those that the image has. In a
    /// set both ways the first half of the connections leads to the root.
    ///
    /// # Errors
    /// As [`Collectives::new`].
    pub fn named(image: &Arc<Image>, names: [&str; 3]) -> Result<Self, PlanError> {
        Ok(Self { image: image.clone(), tree: Arc::new(ReductionTree::new(image, names)?) })
    }

    fn share(&self) -> Self {
        Self { image: self.image.clone(), tree: self.tree.clone() }
    }

    /// The cell at the root: the first live one in the trees of [`tree_sets`].
    pub fn root(&self) -> CellId {
        self.tree.root
    }

    /// Words that the trees carry at a time on the emulated machine. Elsewhere arrays of any length
    /// travel whole.
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
    #[track_caller]
    pub fn allreduce<W: Number>(
        &mut self,
        trees: &Collectives,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        self.array = Some(array_of::<W>(name_of(op), None, x.len()));
        let fold: Fold<'_, W> = &|_, _, own, child| combine_words(op, own, child);
        let result = self.walk_pieces(trees, "allreduce", None, x, fold);
        self.array = None;
        result
    }

    /// The greatest of all cells' values, and where it is: of equal ones the smallest `at`. Every
    /// cell ends with both. (For a pivot: `at` is a row.) A NaN is greater than any number, so
    /// that it is not lost. Of zeros of both signs it is some cell's, the same on every transport.
    ///
    /// One walk, except on the emulated machine if its trees carry one word: two.
    ///
    /// # Errors
    /// As [`Cell::allreduce`].
    #[track_caller]
    pub fn allreduce_max_at<W: Number>(
        &mut self,
        trees: &Collectives,
        value: W,
        at: u64,
    ) -> Result<(W, u64), CellError> {
        self.check_trees(trees)?;
        self.array = Some(array_of::<W>("maximum and place", None, 1));
        let result = self.max_at(trees, value, at);
        self.array = None;
        result
    }

    #[track_caller]
    fn max_at<W: Number>(
        &mut self,
        trees: &Collectives,
        value: W,
        at: u64,
    ) -> Result<(W, u64), CellError> {
        const CALL: &str = "allreduce_max_at";
        if trees.tree.words >= 2 && trees.tree.whole || self.walks_edges(trees) {
            let mut pair = [value.to_bits(), at];
            let fold: Fold<'_, u64> = &|_, _, own, child| combine_maxima::<W>(own, child);
            self.walk_both(trees, CALL, &mut pair, fold)?;
            return Ok((W::from_bits(pair[0]), pair[1]));
        }
        let mut most = [value];
        let greatest: Fold<'_, W> = &|_, _, own, child| {
            for (own, &child) in own.iter_mut().zip(child) {
                if order(child, *own).is_gt() {
                    *own = child;
                }
            }
        };
        self.walk_both(trees, CALL, &mut most, greatest)?;
        let mut first = [if order(value, most[0]).is_eq() { at } else { u64::MAX }];
        let least: Fold<'_, u64> = &|_, _, own, child| combine_words(Op::Min, own, child);
        self.walk_both(trees, CALL, &mut first, least)?;
        Ok((most[0], first[0]))
    }

    /// Combines the arrays of all cells, entry by entry; the root ends with the result, other
    /// cells with that of their branch of the tree.
    ///
    /// # Errors
    /// As [`Cell::allreduce`].
    #[track_caller]
    pub fn reduce<W: Number>(
        &mut self,
        trees: &Collectives,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        let Some(TreeSets { up, .. }) = trees.tree.sets else { return Ok(()) };
        let Some(up) = up else {
            return self.no_tree("reduce", format!("`{}`", trees.tree.names[0]));
        };
        self.array = Some(array_of::<W>(name_of(op), None, x.len()));
        let fold: Fold<'_, W> = &|_, _, own, child| combine_words(op, own, child);
        let only = Some((up, WalkDirection::Up));
        let result = self.walk_pieces(trees, "reduce", only, x, fold);
        self.array = None;
        result
    }

    /// Gives all cells the array of one; sooner from the root than from others.
    ///
    /// # Errors
    /// A cell that is not in the tree; as [`Cell::allreduce`].
    #[track_caller]
    pub fn broadcast<W: Number>(
        &mut self,
        trees: &Collectives,
        from: CellId,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        let tree = &trees.tree;
        if !tree.is_node(from) {
            let set = tree.names[0].clone();
            return self.fail(CellError::Plan(PlanUse::NotInTree { cell: from, set }));
        }
        let only = match tree.sets {
            Some(TreeSets { down: Some(down), .. }) if from == tree.root => {
                Some((down, WalkDirection::Down))
            }
            _ => None,
        };
        self.array = Some(array_of::<W>("broadcast", Some(from), x.len()));
        // What goes to the root is the array of the branch in which the cell is.
        let chosen: Fold<'_, W> = &|node, child, own, its| {
            if tree.is_above(tree.children[node.index()][child], from) {
                own.copy_from_slice(its);
            }
        };
        let result = self.walk_pieces(trees, "broadcast", only, x, chosen);
        self.array = None;
        result
    }

    /// Returns when all cells have called it.
    ///
    /// # Errors
    /// As [`Cell::allreduce`].
    #[track_caller]
    pub fn barrier(&mut self, trees: &Collectives) -> Result<(), CellError> {
        self.allreduce(trees, Op::Max, &mut [0u32])
    }

    pub(crate) fn no_tree<T>(
        &mut self,
        call: &'static str,
        needed: String,
    ) -> Result<T, CellError> {
        self.fail(CellError::Plan(PlanUse::NoTree { call, needed }))
    }

    fn check_trees(&mut self, trees: &Collectives) -> Result<(), CellError> {
        self.check_running()?;
        if !std::ptr::eq(self.image(), &raw const *trees.image) {
            let set = trees.tree.names[0].clone();
            return self.fail(CellError::Plan(PlanUse::Image { set }));
        }
        Ok(())
    }
}

fn name_of(op: Op) -> &'static str {
    match op {
        Op::Copy => "copy",
        Op::Add => "sum",
        Op::Min => "minimum",
        Op::Max => "maximum",
    }
}

fn array_of<W>(what: &'static str, from: Option<CellId>, words: usize) -> CallArray {
    CallArray { what, from, words, number_type: std::any::type_name::<W>() }
}
