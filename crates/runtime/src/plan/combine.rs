//! Combining all copies of a value in the order of the cells that hold them.
//!
//! Every cell that holds an id performs the same operations on the same values in the same order,
//! `((v0 + v1) + v2) + v3`, with its own value at its own position. Floating point sums therefore
//! have the same bits on all cells, which they would not if each cell began with its own value.

use conset_ir::CellId;
use conset_ir::convert;

use super::Plan;
use super::packing::ExchangeLists;
use crate::cell::Cell;
use crate::error::{CellError, PlanUse};
use crate::lists::{Number, Op};
use crate::port::{ArrivedRows, By};

/// The copies of a cell's shared items: where they arrive, in the order of their cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// Position, and how many of its copies come before the cell's own.
    items: Vec<(u32, u32)>,
    /// Where the copies of each item are; one longer than `items`.
    first: Vec<usize>,
    /// Which incoming connection, and which of its items.
    slots: Vec<(u32, u32)>,
}

impl Copies {
    /// Sorted by position, then source, then place on the connection. O(n log n).
    fn new(lists: &ExchangeLists<'_>) -> Self {
        let mut arrivals: Vec<(u32, CellId, u32, u32)> = Vec::new();
        for (row, &x) in lists.incoming.iter().enumerate() {
            let source = lists.layout.ends_of(x).0;
            let positions = (0u32..).zip(lists.layout.receive_of(x));
            arrivals
                .extend(positions.map(|(index, &at)| (at, source, convert::to_u32(row), index)));
        }
        arrivals.sort_unstable();
        let mut this = Self { first: vec![0], ..Self::default() };
        for item in arrivals.chunk_by(|a, b| a.0 == b.0) {
            let before = item.iter().filter(|arrival| arrival.1 < lists.cell).count();
            this.items.push((item[0].0, convert::to_u32(before)));
            this.slots.extend(item.iter().map(|arrival| (arrival.2, arrival.3)));
            this.first.push(this.slots.len());
        }
        this
    }

    /// Combines what came in, and what is there, in the order of the cells.
    fn combine<W: Number>(
        &self,
        rows: &ArrivedRows<'_>,
        width: usize,
        vector: &mut [W],
        combine: impl Fn(W, W) -> W,
    ) {
        for (row, &(position, before)) in self.items.iter().enumerate() {
            let slots = &self.slots[self.first[row]..self.first[row + 1]];
            let (lower, higher) = slots.split_at(convert::index(before));
            let from = convert::index(position) * width;
            for (offset, value) in vector[from..from + width].iter_mut().enumerate() {
                let arrived = |&(row, index): &(u32, u32)| {
                    let first = (convert::index(index) * width + offset) * size_of::<W>();
                    W::read_from(&rows.row(convert::index(row))[first..first + size_of::<W>()])
                };
                let own = match lower.split_first() {
                    None => *value,
                    Some((first, rest)) => {
                        let below = rest.iter().fold(arrived(first), |v, s| combine(v, arrived(s)));
                        combine(below, *value)
                    }
                };
                *value = higher.iter().fold(own, |v, slot| combine(v, arrived(slot)));
            }
        }
    }
}

impl Plan {
    fn copies(&self, cell: CellId) -> &Copies {
        self.cells[cell.index()].copies.get_or_init(|| Copies::new(&self.lists(cell)))
    }

    /// Combines what a cell's vector has with the copies that came in, in the order of the cells.
    pub(super) fn combine_copies<W: Number>(
        &self,
        cell: CellId,
        rows: &ArrivedRows<'_>,
        op: Op,
        x: &mut [W],
    ) {
        let (copies, width) = (self.copies(cell), self.block());
        // A loop for each operation, so that none is chosen within.
        match op {
            Op::Copy => copies.combine(rows, width, x, |lowest, _| lowest),
            Op::Add => copies.combine(rows, width, x, |a, b| Op::Add.apply(a, b)),
            Op::Min => copies.combine(rows, width, x, |a, b| Op::Min.apply(a, b)),
            Op::Max => copies.combine(rows, width, x, |a, b| Op::Max.apply(a, b)),
        }
    }
}

impl Cell<'_> {
    /// Sums all copies of each shared entry, together with all other cells: every cell that holds
    /// an id ends with the sum of all cells' values, and all sums have the same bits. The ids of
    /// the layout are shared ([`crate::Layout::from_shared_ids`]).
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`], and a layout that does not bring every copy to every other.
    #[track_caller]
    pub fn sum_shared<W: Number>(&mut self, plan: &Plan, x: &mut [W]) -> Result<(), CellError> {
        self.combine_shared(plan, Op::Add, x)
    }

    /// [`Cell::sum_shared`] with any operation. [`Op::Copy`] gives every copy the value of the
    /// cell with the lowest id.
    ///
    /// # Errors
    /// As [`Cell::sum_shared`].
    #[track_caller]
    pub fn combine_shared<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.combine_shared_by(By::Phases, plan, op, x)
    }

    /// [`Cell::combine_shared`] by the compiled phases or by messages ([`Cell::exchange_by`]); the
    /// results have the same bits.
    ///
    /// # Errors
    /// As [`Cell::sum_shared`].
    #[track_caller]
    pub fn combine_shared_by<W: Number>(
        &mut self,
        by: By,
        plan: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.check_shared(plan)?;
        self.combine_in_order(plan, by, op, x)
    }

    /// Combines ghosts with the values of their owners, in the order of cell ids with the owner in
    /// its place among them, and returns the results to the ghosts. `backward` and `forward` are
    /// the plans of the two layouts of [`crate::Layout::from_owned`]. This takes two exchanges; the
    /// results have the same bits as those of [`Cell::combine_shared`] with the same ids.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`].
    #[track_caller]
    pub fn combine_owned<W: Number>(
        &mut self,
        backward: &Plan,
        forward: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.combine_owned_by(By::Phases, backward, forward, op, x)
    }

    /// [`Cell::combine_owned`] by the compiled phases or by messages; the results have the same
    /// bits.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`].
    #[track_caller]
    pub fn combine_owned_by<W: Number>(
        &mut self,
        by: By,
        backward: &Plan,
        forward: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.combine_in_order(backward, by, op, x)?;
        self.exchange_nodes_by(by, forward, Op::Copy, x)
    }

    /// Copies can be combined only if each is sent to every other.
    pub(super) fn check_shared(&mut self, plan: &Plan) -> Result<(), CellError> {
        if plan.layout().is_shared() {
            return Ok(());
        }
        let set = plan.name();
        self.fail(CellError::Plan(PlanUse::NotShared { set }))
    }

    #[track_caller]
    fn combine_in_order<W: Number>(
        &mut self,
        plan: &Plan,
        by: By,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        let id = self.id();
        self.exchange_buffers(plan, by, &mut [x], |rows, _, vectors| {
            plan.combine_copies(id, rows, op, &mut *vectors[0]);
        })
    }
}
