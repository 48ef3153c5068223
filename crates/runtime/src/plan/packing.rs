//! Packing and unpacking between vectors and the words of each connection.
//!
//! The words of an item are contiguous in the buffer of a connection, those of several vectors one
//! vector after the other. Buffers hold as many bytes per word as its type has; one plan serves all.
//!
//! The words of a single vector take the shorter path of [`CellLists::pack`].

use std::ops::Range;

use conset_ir::{CellId, ConnectionId};

use super::{CellPlan, Plan};
use crate::layout::Layout;
use crate::lists::{CellLists, Number, Op, each_item};
use crate::port::WirePosition;
use crate::word::Word;

/// What goes where: one cell's part of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeLists<'a> {
    pub(super) layout: &'a Layout,
    pub(super) cell: CellId,
    pub(super) block: usize,
    /// The same for a single vector.
    one: &'a CellLists,
    pub(super) outgoing: &'a [ConnectionId],
    pub(super) incoming: &'a [ConnectionId],
}

impl Plan {
    pub(super) fn lists(&self, cell: CellId) -> ExchangeLists<'_> {
        let CellPlan { outgoing, incoming, .. } = &self.cells[cell.index()];
        ExchangeLists {
            layout: &self.layout,
            cell,
            block: self.block,
            one: self.cell_lists(cell),
            outgoing,
            incoming,
        }
    }
}

impl ExchangeLists<'_> {
    /// Words that a vector of this length has for each item.
    fn width(&self, words: usize) -> usize {
        words.checked_div(self.layout.items_of(self.cell)).unwrap_or(0)
    }

    /// Puts a stretch of a connection's words on the wire ([`CellLists::pack`]).
    pub(super) fn pack<W: Word, V: AsRef<[W]>>(
        &self,
        vectors: &[V],
        (row, first): WirePosition,
        wire: &mut [u8],
    ) {
        if let [vector] = vectors {
            return self.one.pack((row, first), vector.as_ref(), wire);
        }
        let positions = self.layout.send_of(self.outgoing[row]);
        let size = size_of::<W>();
        let words = first..first + wire.len() / size;
        let mut lanes = 0..0;
        for vector in vectors.iter().map(AsRef::as_ref) {
            let width = self.width(vector.len());
            lanes = lanes.end..lanes.end + width;
            each_item(positions, self.block, words.clone(), |words, position, offset| {
                let (words, at) = intersection(&lanes, words, offset);
                let item = &vector[position * width + at..][..words.len()];
                let wire = wire[words.start * size..words.end * size].chunks_exact_mut(size);
                for (word, value) in wire.zip(item) {
                    value.write_to(word);
                }
            });
        }
    }

    /// Combines a stretch of a connection's words with what is there ([`CellLists::unpack`]).
    pub(super) fn unpack<W: Number, V: AsMut<[W]>>(
        &self,
        op: Op,
        vectors: &mut [V],
        (row, first): WirePosition,
        wire: &[u8],
    ) {
        if let [vector] = vectors {
            return self.one.unpack((row, first), op, wire, vector.as_mut());
        }
        let positions = self.layout.receive_of(self.incoming[row]);
        let size = size_of::<W>();
        let words = first..first + wire.len() / size;
        let mut lanes = 0..0;
        for vector in vectors.iter_mut().map(AsMut::as_mut) {
            let width = self.width(vector.len());
            lanes = lanes.end..lanes.end + width;
            each_item(positions, self.block, words.clone(), |words, position, offset| {
                let (words, at) = intersection(&lanes, words, offset);
                let item = &mut vector[position * width + at..][..words.len()];
                let wire = wire[words.start * size..words.end * size].chunks_exact(size);
                for (value, word) in item.iter_mut().zip(wire) {
                    *value = op.apply(*value, W::read_from(word));
                }
            });
        }
    }
}

/// Of an item's words, of which the first is at `offset` in its block: those that are a vector's,
/// which has these `lanes` of the block; and where they begin among them.
fn intersection(lanes: &Range<usize>, words: Range<usize>, offset: usize) -> (Range<usize>, usize) {
    let begin = lanes.start.max(offset);
    let end = lanes.end.min(offset + words.len());
    if begin >= end {
        return (words.start..words.start, 0);
    }
    (words.start + begin - offset..words.start + end - offset, begin - lanes.start)
}
