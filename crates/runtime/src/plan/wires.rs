//! Packing and unpacking: between vectors and the words of each connection.
//!
//! The words of an item lie one behind the other on the wire, those of several vectors one vector
//! after the other. Buffers hold 64 bits a word whatever the type, so that one plan serves all.
//!
//! Most plans have one word for each item; their loops are apart, with nothing to choose in them.

use conset_ir::{CellId, ConnectionId};

use super::{CellPlan, Plan};
use crate::layout::Layout;
use crate::lists::{Number, Op, greater, smaller};
use crate::port::Buffers;
use crate::word::Word;

/// What goes where: one cell's part of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    pub(super) layout: &'a Layout,
    pub(super) cell: CellId,
    pub(super) block: usize,
    pub(super) outgoing: &'a [ConnectionId],
    pub(super) incoming: &'a [ConnectionId],
}

impl Plan {
    pub(super) fn lists(&self, cell: CellId) -> Lists<'_> {
        let CellPlan { outgoing, incoming, .. } = &self.cells[cell.index()];
        Lists { layout: &self.layout, cell, block: self.block, outgoing, incoming }
    }
}

impl Lists<'_> {
    /// Words that a vector of this length has for each item.
    fn width(&self, words: usize) -> usize {
        words.checked_div(self.layout.items_of(self.cell)).unwrap_or(0)
    }

    /// Puts a connection's words on the wire: of the one in this row of those that start here.
    fn pack<W: Word, V: AsRef<[W]>>(&self, vectors: &[V], row: usize, wire: &mut [u64]) {
        let positions = self.layout.send_of(self.outgoing[row]);
        let mut offset = 0;
        for vector in vectors.iter().map(AsRef::as_ref) {
            let width = self.width(vector.len());
            if (width, self.block) == (1, 1) {
                for (word, &position) in wire.iter_mut().zip(positions) {
                    *word = vector[position as usize].to_bits();
                }
            } else {
                for (words, &position) in wire.chunks_exact_mut(self.block).zip(positions) {
                    let item = &vector[position as usize * width..][..width];
                    for (word, value) in words[offset..offset + width].iter_mut().zip(item) {
                        *word = value.to_bits();
                    }
                }
            }
            offset += width;
        }
    }

    /// Combines a connection's words with what is there: of the one in this row of those that end
    /// here.
    fn unpack<W: Number, V: AsMut<[W]>>(
        &self,
        op: Op,
        vectors: &mut [V],
        row: usize,
        wire: &[u64],
    ) {
        // A loop for each operation, so that none is chosen within.
        match op {
            Op::Copy => self.unpack_by(vectors, row, wire, |_, arrived| arrived),
            Op::Add => self.unpack_by(vectors, row, wire, W::plus),
            Op::Min => self.unpack_by(vectors, row, wire, smaller),
            Op::Max => self.unpack_by(vectors, row, wire, greater),
        }
    }

    fn unpack_by<W: Number, V: AsMut<[W]>>(
        &self,
        vectors: &mut [V],
        row: usize,
        wire: &[u64],
        combine: impl Fn(W, W) -> W,
    ) {
        let positions = self.layout.receive_of(self.incoming[row]);
        let mut offset = 0;
        for vector in vectors.iter_mut().map(AsMut::as_mut) {
            let width = self.width(vector.len());
            if (width, self.block) == (1, 1) {
                for (&word, &position) in wire.iter().zip(positions) {
                    let value = &mut vector[position as usize];
                    *value = combine(*value, W::from_bits(word));
                }
            } else {
                for (words, &position) in wire.chunks_exact(self.block).zip(positions) {
                    let item = &mut vector[position as usize * width..][..width];
                    for (value, &word) in item.iter_mut().zip(&words[offset..offset + width]) {
                        *value = combine(*value, W::from_bits(word));
                    }
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
