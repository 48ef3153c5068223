//! Reductions, broadcasts and barriers over trees that are compiled like any other set.
//!
//! [`tree_sets`] makes the connection sets. Compile those that the program uses: `allreduce` alone
//! serves all calls except [`Cell::reduce`]. A call without its set is an error that names it.
//! [`Collectives`] checks once, outside of the program, that the sets of the image are such trees.
//! A cell then traverses them element by element, in the compiled phases and order: it combines the
//! values received from its children with its own and sends the result on. If the image has step
//! plans, a message goes over each edge of the tree, as what a cell sends is known only when it has
//! received.
//!
//! Values are combined in the order of the tree, not of arrival: the own value first, then those of
//! the children in the order of their ids. A sum therefore has the same bits in every run and on
//! every transport. With other trees (another number of cells, a dead cell) the bits may differ.
//!
//! Arrays longer than the trees are sent in pieces. All words of a tree are always sent, so compile
//! trees as wide as the arrays that are reduced most often; a dot product needs 1 word.
//!
//! All cells call the same collectives in the same order. With one live cell there is nothing to do
//! and no set is needed. Nonblocking collectives, and arrays whose length differs between cells,
//! are not supported.

mod tree;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use conset_ir::{CellId, Direction, Image, PhaseId};

use crate::cell::Cell;
use crate::error::{CellError, PlanError, PlanUse};
use crate::lists::{Number, Op};
use crate::word::Word;
use tree::{ReductionTree, TreeSets, WalkDirection};
pub use tree::{tree_sets, tree_sets_named};

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
    tree: ReductionTree,
    /// What each cell has received from its children, one after the other.
    scratch: Vec<Mutex<Vec<u64>>>,
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
        let tree = ReductionTree::new(image, names)?;
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
    #[track_caller]
    pub fn allreduce<W: Number>(
        &mut self,
        trees: &Collectives,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_trees(trees)?;
        for piece in x.chunks_mut(trees.words()) {
            self.walk_both(trees, "allreduce", piece, each(|own, child, _| op.apply(own, child)))?;
        }
        Ok(())
    }

    /// The greatest of all cells' values, and where it is: of equal ones the smallest `at`. Every
    /// cell ends with both. (For a pivot: `at` is a row.) A NaN is greater than any number, so
    /// that it is not lost. Of zeros of both signs it is some cell's, the same on every transport.
    ///
    /// One walk where the trees carry two words or more, else two.
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
        const CALL: &str = "allreduce_max_at";
        self.check_trees(trees)?;
        if trees.words() >= 2 && trees.tree.whole {
            let mut pair = [value.to_bits(), at];
            self.walk_both(trees, CALL, &mut pair, maximum::<W>)?;
            return Ok((W::from_bits(pair[0]), pair[1]));
        }
        let mut most = [value];
        let greater = |own, child, _| if order(child, own).is_gt() { child } else { own };
        self.walk_both(trees, CALL, &mut most, each(greater))?;
        let mut first = [if order(value, most[0]).is_eq() { at } else { u64::MAX }];
        self.walk_both(trees, CALL, &mut first, each(|own: u64, child, _| own.min(child)))?;
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
        for piece in x.chunks_mut(trees.words()) {
            self.walk(
                trees,
                up,
                WalkDirection::Up,
                piece,
                each(|own, child, _| op.apply(own, child)),
            )?;
        }
        Ok(())
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
        let chosen = self.branch_of(tree, from);
        let choose = |own, child, row| if Some(row) == chosen { child } else { own };
        for piece in x.chunks_mut(trees.words()) {
            match tree.sets {
                Some(TreeSets { down: Some(down), .. }) if from == tree.root => {
                    self.walk(trees, down, WalkDirection::Down, piece, each(|own, _, _| own))?;
                }
                _ => self.walk_both(trees, "broadcast", piece, each(choose))?,
            }
        }
        Ok(())
    }

    /// Returns when all cells have called it.
    ///
    /// # Errors
    /// As [`Cell::allreduce`].
    #[track_caller]
    pub fn barrier(&mut self, trees: &Collectives) -> Result<(), CellError> {
        self.allreduce(trees, Op::Max, &mut [0u32])
    }

    fn no_tree<T>(&mut self, call: &'static str, needed: String) -> Result<T, CellError> {
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

    /// Which of this cell's children has `cell` in its branch.
    fn branch_of(&self, tree: &ReductionTree, cell: CellId) -> Option<usize> {
        let mut at = cell;
        while at != tree.root && tree.parent[at.index()] != self.id() {
            at = tree.parent[at.index()];
        }
        tree.children[self.id().index()].iter().position(|&child| child == at)
    }

    /// To the root and back, by one set or by two.
    #[track_caller]
    fn walk_both<W: Number>(
        &mut self,
        trees: &Collectives,
        call: &'static str,
        x: &mut [W],
        make: impl Fn(&Arrived<'_>, &[W], usize) -> W,
    ) -> Result<(), CellError> {
        match trees.tree.sets {
            None => Ok(()),
            Some(TreeSets { both: Some(both), .. }) => {
                self.walk(trees, both, WalkDirection::Both, x, make)
            }
            Some(TreeSets { up: Some(up), down: Some(down), .. }) => {
                self.walk(trees, up, WalkDirection::Up, x, make)?;
                self.walk(trees, down, WalkDirection::Down, x, each(|own, _, _| own))
            }
            Some(TreeSets { up, .. }) => {
                let [to, from, both] = &trees.tree.names;
                let other = if up.is_some() { from } else { to };
                self.no_tree(call, format!("`{both}` (or beside what there is `{other}`)"))
            }
        }
    }

    /// Does this cell's operations of a set, in all its phases. Up goes what `make(what came from
    /// the children, x, which word)` makes, down goes what came from above. `x` ends as what was
    /// made (on the way up, and at the root) or came.
    #[track_caller]
    fn walk<W: Number>(
        &mut self,
        trees: &Collectives,
        set: usize,
        way: WalkDirection,
        x: &mut [W],
        make: impl Fn(&Arrived<'_>, &[W], usize) -> W,
    ) -> Result<(), CellError> {
        let (id, width, tree) = (self.id(), trees.words(), &trees.tree);
        let children = &tree.children[id.index()];
        let slot = &trees.scratch[id.index()];
        let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arrived = std::mem::take(&mut *lock());
        arrived.clear();
        arrived.resize(children.len() * width, 0);
        let made =
            |arrived: &[u64], x: &[W], word| make(&Arrived { words: arrived, width }, x, word);
        let combines = way == WalkDirection::Up || way == WalkDirection::Both && id == tree.root;
        let image = &self.image().sets()[set];
        if image.steps.is_some() {
            self.walk_by_messages(trees, way, x, (&mut arrived, combines), &make)?;
        }
        for (row, phase) in image.phases.iter().enumerate() {
            self.instantiate_phase((set, PhaseId::from_index(row)))?;
            for operation in phase.cell(id).operations {
                let connection = operation.connection;
                let ends = image.set.get(connection);
                let up = tree.leads_up(ends);
                for word in tree::span(operation) {
                    if operation.direction == Direction::Send {
                        let makes = up || combines;
                        let word = if makes { made(&arrived, x, word) } else { value(x, word) };
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
            // The last first: what a word is made of may include the words before it.
            for word in (0..x.len()).rev() {
                x[word] = made(&arrived, x, word);
            }
        }
        *lock() = arrived;
        Ok(())
    }
}

impl Cell<'_> {
    /// A traversal on machines without tables: a message over each edge, with all words of the tree.
    fn walk_by_messages<W: Number>(
        &mut self,
        trees: &Collectives,
        way: WalkDirection,
        x: &mut [W],
        (arrived, combines): (&mut [u64], bool),
        make: &impl Fn(&Arrived<'_>, &[W], usize) -> W,
    ) -> Result<(), CellError> {
        let (id, width, tree) = (self.id(), trees.words(), &trees.tree);
        let children = &tree.children[id.index()];
        let parent = Some(tree.parent[id.index()]).filter(|_| id != tree.root && tree.is_node(id));
        let made = |arrived: &[u64], x: &[W]| -> Vec<W> {
            (0..width).map(|word| make(&Arrived { words: arrived, width }, x, word)).collect()
        };
        if way != WalkDirection::Down {
            for (&child, words) in children.iter().zip(arrived.chunks_mut(width)) {
                self.msg_receive(child, words)?;
            }
            if let Some(parent) = parent {
                self.msg_send(parent, &made(arrived, x))?;
            }
        }
        if way == WalkDirection::Up {
            return Ok(());
        }
        let mut down = match combines {
            true => made(arrived, x),
            false => (0..width).map(|word| value(x, word)).collect(),
        };
        if let Some(parent) = parent {
            self.msg_receive(parent, &mut down)?;
            x.iter_mut().zip(&down).for_each(|(own, word)| *own = *word);
        }
        children.iter().try_for_each(|&child| self.msg_send(child, &down))
    }
}

/// A word of an array; 0 beyond its end.
fn value<W: Word>(x: &[W], word: usize) -> W {
    x.get(word).copied().unwrap_or(W::from_bits(0))
}

/// What a cell has received from its children: a row of words for each, ascending.
struct Arrived<'a> {
    words: &'a [u64],
    width: usize,
}

/// Makes each word of the own one and the children's: `combine(own, child's, which child)`.
fn each<W: Number>(combine: impl Fn(W, W, usize) -> W) -> impl Fn(&Arrived<'_>, &[W], usize) -> W {
    move |arrived, x, word| {
        let rows = arrived.words.chunks(arrived.width).enumerate();
        rows.fold(value(x, word), |own, (row, words)| combine(own, W::from_bits(words[word]), row))
    }
}

/// Makes the words of a pair of the greatest value and the smallest place. The value is made
/// without looking at places, so that it may travel before they have come.
fn maximum<W: Number>(arrived: &Arrived<'_>, pair: &[u64], word: usize) -> u64 {
    let read = |words: &[u64]| (W::from_bits(words[0]), words[1]);
    let children = arrived.words.chunks(arrived.width).map(read);
    let (value, at) = children.fold(read(pair), |own, child| match order(child.0, own.0) {
        Ordering::Greater => child,
        Ordering::Equal => (own.0, own.1.min(child.1)),
        Ordering::Less => own,
    });
    match word {
        0 => value.to_bits(),
        1 => at,
        _ => 0,
    }
}

/// Numbers in order, and beyond them what is none.
fn order<W: Number>(a: W, b: W) -> Ordering {
    let is_nan = |x: W| x.partial_cmp(&x).is_none();
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}
