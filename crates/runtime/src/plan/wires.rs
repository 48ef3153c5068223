//! Packing and unpacking: between vectors and the words of each connection.
//!
//! The words of an item lie one behind the other on the wire, those of several vectors one vector
//! after the other. Buffers hold 64 bits a word whatever the type, so that one plan serves all.

use conset_ir::{CellId, ConnectionId};

use super::Plan;
use crate::layout::Layout;
use crate::lists::{Number, Op};
use crate::port::Buffers;
use crate::word::Word;

/// What goes where: one cell's part of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    pub(super) layout: &'a Layout,
    pub(super) cell: CellId,
    pub(super) outgoing: &'a [ConnectionId],
    pub(super) incoming: &'a [ConnectionId],
}

impl Plan {
    pub(super) fn lists(&self, cell: CellId) -> Lists<'_> {
        let plan = &self.cells[cell.index()];
        Lists { layout: &self.layout, cell, outgoing: &plan.outgoing, incoming: &plan.incoming }
    }
}

impl Lists<'_> {
    /// Words that a vector of this length has for each item.
    pub(super) fn width(&self, words: usize) -> usize {
        words.checked_div(self.layout.items_of(self.cell)).unwrap_or(0)
    }
}

impl Buffers {
    /// Puts what goes out into the buffers.
    pub(super) fn pack<W: Word, V: AsRef<[W]>>(&mut self, lists: &Lists<'_>, vectors: &[V]) {
        let block: usize = vectors.iter().map(|v| lists.width(v.as_ref().len())).sum();
        let mut offset = 0;
        for vector in vectors.iter().map(AsRef::as_ref) {
            let width = lists.width(vector.len());
            for (&x, wire) in lists.outgoing.iter().zip(&mut self.outgoing) {
                let positions = lists.layout.send_of(x);
                for (&position, words) in positions.iter().zip(wire.chunks_exact_mut(block)) {
                    let from = position as usize * width;
                    let item = &vector[from..from + width];
                    for (word, value) in words[offset..offset + width].iter_mut().zip(item) {
                        *word = value.to_bits();
                    }
                }
            }
            offset += width;
        }
    }

    /// Copies what came in to the vectors, or combines it with what is there.
    pub(super) fn unpack<W: Number, V: AsMut<[W]> + AsRef<[W]>>(
        &self,
        lists: &Lists<'_>,
        op: Op,
        vectors: &mut [V],
    ) {
        // A loop for each operation, so that none is chosen within.
        match op {
            Op::Copy => self.unpack_by(lists, vectors, |_, arrived| arrived),
            Op::Add => self.unpack_by(lists, vectors, |there, a| Op::Add.apply(there, a)),
            Op::Min => self.unpack_by(lists, vectors, |there, a| Op::Min.apply(there, a)),
            Op::Max => self.unpack_by(lists, vectors, |there, a| Op::Max.apply(there, a)),
        }
    }

    fn unpack_by<W: Number, V: AsMut<[W]> + AsRef<[W]>>(
        &self,
        lists: &Lists<'_>,
        vectors: &mut [V],
        combine: impl Fn(W, W) -> W,
    ) {
        let block: usize = vectors.iter().map(|v| lists.width(v.as_ref().len())).sum();
        let mut offset = 0;
        for vector in vectors.iter_mut().map(AsMut::as_mut) {
            let width = lists.width(vector.len());
            for (&x, wire) in lists.incoming.iter().zip(&self.incoming) {
                let positions = lists.layout.receive_of(x);
                for (&position, words) in positions.iter().zip(wire.chunks_exact(block)) {
                    let from = position as usize * width;
                    let item = &mut vector[from..from + width];
                    for (value, &word) in item.iter_mut().zip(&words[offset..offset + width]) {
                        *value = combine(*value, W::from_bits(word));
                    }
                }
            }
            offset += width;
        }
    }
}
