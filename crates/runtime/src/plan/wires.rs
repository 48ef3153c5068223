//! Packing and unpacking: between vectors and the words of each connection.
//!
//! The words of an item lie one behind the other on the wire, those of several vectors one vector
//! after the other. Buffers hold 64 bits a word whatever the type, so that one plan serves all.
//!
//! The words of one vector go the way of [`CellLists::pack`].

use conset_ir::{CellId, ConnectionId};

use super::{CellPlan, Plan};
use crate::layout::Layout;
use crate::lists::{CellLists, Number, Op};
use crate::port::Buffers;
use crate::word::Word;

/// What goes where: one cell's part of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    pub(super) layout: &'a Layout,
    pub(super) cell: CellId,
    pub(super) block: usize,
    /// The same for a single vector.
    one: &'a CellLists,
    pub(super) outgoing: &'a [ConnectionId],
    pub(super) incoming: &'a [ConnectionId],
}

impl Plan {
    pub(super) fn lists(&self, cell: CellId) -> Lists<'_> {
        let CellPlan { outgoing, incoming, .. } = &self.cells[cell.index()];
        Lists {
            layout: &self.layout,
            cell,
            block: self.block,
            one: self.cell_lists(cell),
            outgoing,
            incoming,
        }
    }
}

impl Lists<'_> {
    /// Words that a vector of this length has for each item.
    fn width(&self, words: usize) -> usize {
        words.checked_div(self.layout.items_of(self.cell)).unwrap_or(0)
    }

    /// Puts a connection's words on the wire: of the one in this row of those that start here.
    pub(super) fn pack<W: Word, V: AsRef<[W]>>(&self, vectors: &[V], row: usize, wire: &mut [u64]) {
        if let [vector] = vectors {
            return self.one.pack((row, 0), vector.as_ref(), wire);
        }
        let positions = self.layout.send_of(self.outgoing[row]);
        let mut offset = 0;
        for vector in vectors.iter().map(AsRef::as_ref) {
            let width = self.width(vector.len());
            for (words, &position) in wire.chunks_exact_mut(self.block).zip(positions) {
                let item = &vector[position as usize * width..][..width];
                for (word, value) in words[offset..offset + width].iter_mut().zip(item) {
                    *word = value.to_bits();
                }
            }
            offset += width;
        }
    }

    /// Combines a connection's words with what is there: of the one in this row of those that end
    /// here.
    pub(super) fn unpack<W: Number, V: AsMut<[W]>>(
        &self,
        op: Op,
        vectors: &mut [V],
        row: usize,
        wire: &[u64],
    ) {
        if let [vector] = vectors {
            return self.one.unpack((row, 0), op, wire, vector.as_mut());
        }
        let positions = self.layout.receive_of(self.incoming[row]);
        let mut offset = 0;
        for vector in vectors.iter_mut().map(AsMut::as_mut) {
            let width = self.width(vector.len());
            for (words, &position) in wire.chunks_exact(self.block).zip(positions) {
                let item = &mut vector[position as usize * width..][..width];
                for (value, &word) in item.iter_mut().zip(&words[offset..offset + width]) {
                    *value = op.apply(*value, W::from_bits(word));
                }
            }
            offset += width;
        }
    }
}

impl Buffers {
    /// Puts what goes out into the buffers.
    pub(super) fn pack<W: Word, V: AsRef<[W]>>(&mut self, lists: &Lists<'_>, vectors: &[V]) {
        for (row, wire) in self.outgoing.iter_mut().enumerate() {
            lists.pack(vectors, row, wire);
        }
    }

    /// Copies what came in to the vectors, or combines it with what is there.
    pub(super) fn unpack<W: Number, V: AsMut<[W]>>(
        &self,
        lists: &Lists<'_>,
        op: Op,
        vectors: &mut [V],
    ) {
        for (row, wire) in self.incoming.iter().enumerate() {
            lists.unpack(op, vectors, row, wire);
        }
    }
}
