//! Collects the elements of the highest dimension in a file.
//!
//! Formats with elements of several dimensions use the lower ones for boundaries, which do not affect
//! an exchange. The highest dimension is known only at the end of the file, so an element of a higher
//! dimension discards those collected before.

use conset_ir::convert::to_u32;

/// The elements of the highest dimension so far, in compressed row form.
pub(super) struct TopElements {
    pub(super) dimension: u8,
    pub(super) first: Vec<u32>,
    pub(super) nodes: Vec<u32>,
}

impl TopElements {
    pub(super) fn new() -> Self {
        Self { dimension: 0, first: vec![0], nodes: Vec::new() }
    }

    /// Whether to keep an element of `dimension`. If so, the caller appends its nodes to `nodes` and
    /// calls [`TopElements::end_element`].
    pub(super) fn accepts(&mut self, dimension: u8) -> bool {
        if dimension > self.dimension {
            *self = Self { dimension, ..Self::new() };
        }
        dimension == self.dimension
    }

    /// Ends the element whose nodes were appended.
    pub(super) fn end_element(&mut self) {
        self.first.push(to_u32(self.nodes.len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.len() == 1
    }
}
