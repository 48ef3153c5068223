//! Walks over a tree: by the edges, if the transport has that, and otherwise in the compiled phases.

use conset_ir::{CellId, Direction, PhaseId};

use super::Collectives;
use super::fold::{bytes_of_mut, words_of, words_of_mut};
use super::tree::{TreeSets, WalkDirection, span};
use crate::cell::Cell;
use crate::error::CellError;
use crate::lists::Number;
use crate::port::TreeWalk;

/// Combines words of a cell with those of its child in a place, or the same stretch of both.
pub(super) type Fold<'a, W> = &'a dyn Fn(CellId, usize, &mut [W], &[W]);

impl Cell<'_> {
    /// Whether the transport walks these trees by their edges.
    pub(super) fn walks_edges(&self, trees: &Collectives) -> bool {
        let Some(TreeSets { up, down, both }) = trees.tree.sets else { return true };
        both.or(up).or(down).is_none_or(|set| self.port.walks_edges(set))
    }

    /// Walks over one set, or to the root and back, with as much of an array at a time as the
    /// transport carries.
    #[track_caller]
    pub(super) fn walk_pieces<W: Number>(
        &mut self,
        trees: &Collectives,
        call: &'static str,
        only: Option<(usize, WalkDirection)>,
        x: &mut [W],
        fold: Fold<'_, W>,
    ) -> Result<(), CellError> {
        let most = if self.walks_edges(trees) { x.len().max(1) } else { trees.words() };
        for piece in x.chunks_mut(most) {
            match only {
                Some((set, way)) => self.walk(trees, set, way, piece, fold)?,
                None => self.walk_both(trees, call, piece, fold)?,
            }
        }
        Ok(())
    }

    /// To the root and back, by one set or by two.
    #[track_caller]
    pub(super) fn walk_both<W: Number>(
        &mut self,
        trees: &Collectives,
        call: &'static str,
        x: &mut [W],
        fold: Fold<'_, W>,
    ) -> Result<(), CellError> {
        match trees.tree.sets {
            None => Ok(()),
            Some(TreeSets { both: Some(both), .. }) => {
                self.walk(trees, both, WalkDirection::Both, x, fold)
            }
            Some(TreeSets { up: Some(up), down: Some(down), .. }) => {
                self.walk(trees, up, WalkDirection::Up, x, fold)?;
                self.walk(trees, down, WalkDirection::Down, x, fold)
            }
            Some(TreeSets { up, .. }) => {
                let [to, from, both] = &trees.tree.names;
                let other = if up.is_some() { from } else { to };
                self.no_tree(call, format!("`{both}` (or beside what there is `{other}`)"))
            }
        }
    }

    /// Walks over a set. Up goes what was folded of the own words and those of the children, down
    /// goes what came from above. `x` ends as what was folded (on the way up, and at the root) or
    /// came.
    #[track_caller]
    fn walk<W: Number>(
        &mut self,
        trees: &Collectives,
        set: usize,
        way: WalkDirection,
        x: &mut [W],
        fold: Fold<'_, W>,
    ) -> Result<(), CellError> {
        if !self.port.walks_edges(set) {
            return self.walk_phases(trees, set, way, x, fold);
        }
        let walk = TreeWalk { tree: &trees.tree, set, way, word_bytes: size_of::<W>() };
        let combine = |node: CellId, child: usize, own: &mut [u8], its: &[u8]| {
            fold(node, child, words_of_mut(own), words_of(its));
        };
        self.wait_all()?;
        self.at_call(0);
        self.ask(|port| port.walk(&walk, bytes_of_mut(x), &combine))?;
        self.activate_last(set);
        Ok(())
    }

    /// Does this cell's operations of a set, in all its phases.
    #[track_caller]
    fn walk_phases<W: Number>(
        &mut self,
        trees: &Collectives,
        set: usize,
        way: WalkDirection,
        x: &mut [W],
        fold: Fold<'_, W>,
    ) -> Result<(), CellError> {
        let (id, width, tree) = (self.id(), trees.words(), &trees.tree);
        let children = &tree.children[id.index()];
        let zero = W::from_bits(0);
        // The words that the trees carry beyond the array are 0.
        let mut own: Vec<W> = x.to_vec();
        own.resize(width, zero);
        let mut arrived = vec![vec![zero; width]; children.len()];
        let folded = |own: &[W], arrived: &[Vec<W>], words: std::ops::Range<usize>| {
            let mut folded = own[words.clone()].to_vec();
            for (row, child) in arrived.iter().enumerate() {
                fold(id, row, &mut folded, &child[words.clone()]);
            }
            folded
        };
        let combines = way == WalkDirection::Up || way == WalkDirection::Both && id == tree.root;
        let image = &self.image().sets()[set];
        for (row, phase) in image.phases.iter().enumerate() {
            self.instantiate_phase((set, PhaseId::from_index(row)))?;
            for operation in phase.cell(id).operations {
                let connection = operation.connection;
                let ends = image.set.get(connection);
                let up = tree.leads_up(ends);
                if operation.direction == Direction::Send {
                    let words = match up || combines {
                        true => folded(&own, &arrived, span(operation)),
                        false => own[span(operation)].to_vec(),
                    };
                    words.into_iter().try_for_each(|word| self.send_element(connection, word))?;
                    continue;
                }
                let words = match children.binary_search(&ends.source) {
                    Ok(child) if up => &mut arrived[child],
                    _ => &mut own,
                };
                for word in &mut words[span(operation)] {
                    *word = self.receive_element(connection)?;
                }
            }
        }
        if combines {
            own = folded(&own, &arrived, 0..width);
        }
        x.copy_from_slice(&own[..x.len()]);
        Ok(())
    }
}
