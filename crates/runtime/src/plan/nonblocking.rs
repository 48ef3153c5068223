//! Nonblocking exchanges: started by one call and completed by another.
//!
//! [`Cell::start`] packs the outgoing values, after which the program may change the vector.
//! [`Cell::wait`] unpacks the incoming values; for an exchange started by [`Cell::start_shared`] it
//! combines the copies in the order of the cells. Several exchanges may be in progress, of one
//! plan or of several.
//!
//! One rule prevents deadlocks: *exchanges are performed in the order in which they were started*.
//! Every call of a cell that waits for other cells first waits for the exchanges that the cell has
//! started before: the completion of an exchange, another exchange, a switch, an element, a
//! message, a collective. All cells start exchanges and make collective calls in the same order;
//! they may complete them in any order. Starting an exchange leaves the last phase of its set
//! active.
//!
//! A token ([`Pending`]) is plain data, so that it can cross a C interface: the buffers stay with
//! the cell's port ([`crate::port`]). Using a token twice, on another cell, or with another plan or
//! type is an error; a program that returns without completing an exchange is one, too.

use super::Plan;
use crate::cell::Cell;
use crate::error::{CellError, PlanUse};
use crate::lists::{Number, Op};
use crate::port::{ArrivedRows, RawWords, WirePosition};
use crate::requests::{MAX_REQUESTS, Pending, Request};

impl Cell<'_> {
    /// Starts an exchange of a vector: packs the outgoing values. `x` may be changed immediately.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`]; too many exchanges that were not completed.
    #[track_caller]
    pub fn start<W: Number>(&mut self, plan: &Plan, op: Op, x: &[W]) -> Result<Pending, CellError> {
        self.start_many(plan, op, &[x])
    }

    /// Starts [`Cell::combine_shared`] (with [`Op::Add`], [`Cell::sum_shared`]); complete it with
    /// [`Cell::wait`]. It combines the values that the other cells had at the start with those that
    /// this cell has at completion. All copies are therefore equal if no shared entry changes in
    /// between; other entries may change.
    ///
    /// # Errors
    /// As [`Cell::start`], and a layout that does not bring every copy to every other.
    #[track_caller]
    pub fn start_shared<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &[W],
    ) -> Result<Pending, CellError> {
        self.check_shared(plan)?;
        self.start_request(plan, (op, true), &[x])
    }

    /// Starts an exchange of several vectors, as [`Cell::exchange_many`].
    ///
    /// # Errors
    /// As [`Cell::start`].
    #[track_caller]
    pub fn start_many<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        self.start_request(plan, (op, false), vectors)
    }

    #[track_caller]
    fn start_request<W: Number>(
        &mut self,
        plan: &Plan,
        (op, in_order): (Op, bool),
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        self.check_running()?;
        self.check_plan(plan, vectors)?;
        self.perform_deferred()?;
        if self.requests.active.len() >= MAX_REQUESTS {
            let (count, set) = (MAX_REQUESTS, self.set_name(self.requests.active[0].set));
            return self.fail(CellError::Plan(PlanUse::InFlight { count, set }));
        }
        let id = self.id();
        let (number, lists) = (self.requests.started, plan.lists(id));
        let mut pack = |at: WirePosition, wire: &mut [u8]| lists.pack(vectors, at, wire);
        let buffers = plan.take_buffers(id, size_of::<W>());
        self.start_exchange(number, plan.set, buffers, &mut pack)?;
        self.requests.started += 1;
        self.requests.active.push(Request {
            number,
            plan: plan.serial,
            set: plan.set,
            op,
            in_order,
            number_type: std::any::type_name::<W>(),
            vectors: vectors.len(),
        });
        Ok(Pending { cell: id, run: self.requests.run, number })
    }

    /// Whether an exchange or a reduction can be completed without waiting. Makes whatever progress is possible
    /// without waiting, and otherwise lets other cells run.
    ///
    /// # Errors
    /// A token that is not of this cell or was completed already; and as [`Cell::exchange`].
    pub fn test(&mut self, pending: &Pending) -> Result<bool, CellError> {
        self.perform_deferred()?;
        if let Some(done) = self.test_reduction(pending)? {
            return Ok(done);
        }
        self.request(pending, None)?;
        self.ask(|port| port.test(pending.number))
    }

    /// Completes an exchange: waits for the incoming values and copies them to `x`, or combines them
    /// with the current values of `x`.
    ///
    /// # Errors
    /// A token that is not of this cell, plan and type, or was completed already; as
    /// [`Cell::exchange_nodes`].
    pub fn wait<W: Number>(
        &mut self,
        plan: &Plan,
        pending: Pending,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.wait_many(plan, pending, &mut [x])
    }

    /// Completes an exchange of several vectors.
    ///
    /// # Errors
    /// As [`Cell::wait`].
    pub fn wait_many<W: Number>(
        &mut self,
        plan: &Plan,
        pending: Pending,
        vectors: &mut [&mut [W]],
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.check_plan(plan, vectors)?;
        self.perform_deferred()?;
        let row = self.request(&pending, Some(plan))?;
        let request = &self.requests.active[row];
        let found = std::any::type_name::<W>();
        if request.number_type != found {
            let (set, begun) = (plan.name(), request.number_type);
            return self.fail(CellError::Plan(PlanUse::Type { set, begun, found }));
        }
        if request.vectors != vectors.len() {
            let (set, begun, found) = (plan.name(), request.vectors, vectors.len());
            return self.fail(CellError::Plan(PlanUse::Vectors { set, begun, found }));
        }
        let (id, number, op) = (self.id(), pending.number, request.op);
        let buffers = match vectors {
            [x] if request.in_order => {
                self.ask(|port| port.wait(number))?;
                let mut buffers = self.port.take(number);
                let rows: Vec<RawWords> = buffers.incoming.raw().collect();
                // SAFETY: the buffers are this cell's own, and not touched meanwhile.
                plan.combine_copies(id, &unsafe { ArrivedRows::new(&rows) }, op, x);
                buffers
            }
            _ => {
                let lists = plan.lists(id);
                let mut unpack = |at: WirePosition, wire: &[u8]| {
                    lists.unpack(op, vectors, at, wire);
                };
                self.ask(|port| port.read(number, &mut unpack))?
            }
        };
        self.requests.active.remove(row);
        plan.give_back(id, buffers);
        Ok(())
    }

    /// The row of the request that a token names.
    fn request(&mut self, pending: &Pending, plan: Option<&Plan>) -> Result<usize, CellError> {
        self.check_running()?;
        match self.find_request(pending, plan) {
            Ok(row) => Ok(row),
            Err(problem) => self.fail(CellError::Plan(problem)),
        }
    }

    fn find_request(&self, pending: &Pending, plan: Option<&Plan>) -> Result<usize, PlanUse> {
        if (pending.cell, pending.run) != (self.id(), self.requests.run) {
            return Err(PlanUse::OtherCell { begun: pending.cell });
        }
        let active = &self.requests.active;
        let row = active.binary_search_by_key(&pending.number, |request| request.number);
        let row = row.map_err(|_| PlanUse::Ended {
            set: plan.map_or_else(|| "a plan".to_owned(), Plan::name),
        })?;
        match plan {
            Some(plan) if plan.serial != active[row].plan => {
                Err(PlanUse::OtherPlan { set: plan.name(), begun: self.set_name(active[row].set) })
            }
            _ => Ok(row),
        }
    }

    fn set_name(&self, set: usize) -> String {
        self.image().sets()[set].set.name().to_owned()
    }
}
