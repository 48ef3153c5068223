//! The former names of public methods, kept for one release.
//!
//! Each calls the method that replaced it.

use crate::cell::Cell;
use crate::error::CellError;
use crate::layout::Layout;
use crate::lists::{Number, Op};
use crate::phase::SetRef;
use crate::plan::Plan;
use crate::port::By;
use crate::requests::Pending;
use crate::word::Word;

#[doc(hidden)]
#[allow(missing_docs, clippy::missing_errors_doc, reason = "documented under their new names")]
impl Cell<'_> {
    pub fn cells(&self) -> usize {
        self.cell_count()
    }

    pub fn give_up(&mut self, why: impl Into<String>) -> CellError {
        self.abort(why)
    }

    #[track_caller]
    pub fn msg_exchange<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        set: impl SetRef,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        self.exchange_by(By::Messages, set, outgoing, incoming)
    }

    #[track_caller]
    pub fn msg_exchange_nodes<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.exchange_nodes_by(By::Messages, plan, op, x)
    }

    #[track_caller]
    pub fn msg_sum_shared<W: Number>(&mut self, plan: &Plan, x: &mut [W]) -> Result<(), CellError> {
        self.combine_shared_by(By::Messages, plan, Op::Add, x)
    }

    #[track_caller]
    pub fn msg_combine_shared<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.combine_shared_by(By::Messages, plan, op, x)
    }

    #[track_caller]
    pub fn msg_combine_owned<W: Number>(
        &mut self,
        backward: &Plan,
        forward: &Plan,
        op: Op,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.combine_owned_by(By::Messages, backward, forward, op, x)
    }

    #[track_caller]
    pub fn begin<W: Number>(&mut self, plan: &Plan, op: Op, x: &[W]) -> Result<Pending, CellError> {
        self.start(plan, op, x)
    }

    #[track_caller]
    pub fn begin_shared<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &[W],
    ) -> Result<Pending, CellError> {
        self.start_shared(plan, op, x)
    }

    #[track_caller]
    pub fn begin_many<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        self.start_many(plan, op, vectors)
    }

    pub fn end<W: Number>(
        &mut self,
        plan: &Plan,
        pending: Pending,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.wait(plan, pending, x)
    }

    pub fn end_many<W: Number>(
        &mut self,
        plan: &Plan,
        pending: Pending,
        vectors: &mut [&mut [W]],
    ) -> Result<(), CellError> {
        self.wait_many(plan, pending, vectors)
    }
}

#[doc(hidden)]
impl Layout {
    pub fn cells(&self) -> usize {
        self.cell_count()
    }
}
