//! Exchanges in two halves: begun, and ended later.
//!
//! [`Cell::begin`] packs what goes out, and the vector may change at once. [`Cell::end`] unpacks
//! what came in; of what was begun with [`Cell::begin_shared`] it combines
//! the copies in the order of the cells. Several may be under way, of one plan or of several.
//!
//! The rule that keeps cells from waiting for one another for ever: *the machine does exchanges
//! in the order in which they were begun*. Whatever call of a cell waits for other cells first
//! waits for the exchanges that the cell has begun before: the end of an exchange, another
//! exchange, a switch, an element, a message, a collective. All cells begin and call in the same
//! order, and may end in any. An exchange that was begun leaves the last phase of its set active.
//!
//! A token ([`Pending`]) is plain data, so that it can cross a C interface: the buffers stay with
//! the cell's port ([`crate::port`]). A token used twice, on another cell, with another plan or type is an error; one that
//! is never ended is an error when the program returns.

use conset_ir::CellId;

use super::{Plan, PlanUse, next_serial};
use crate::cell::Cell;
use crate::error::CellError;
use crate::lists::{Number, Op};
use crate::port::Stretch;

/// An exchange that has been begun; to be ended by [`Cell::end`].
#[must_use = "an exchange that is begun must be ended"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    cell: CellId,
    /// The run of the cell in which it was begun.
    run: u64,
    /// Which of the exchanges that were begun then.
    number: u64,
}

impl Pending {
    /// The token as numbers, for languages that keep it so.
    pub fn to_numbers(self) -> [u64; 3] {
        [u64::from(self.cell.0), self.run, self.number]
    }

    /// The token of such numbers. Others than those of a token are found out when it is used.
    pub fn from_numbers([cell, run, number]: [u64; 3]) -> Self {
        Self { cell: CellId(u32::try_from(cell).unwrap_or(u32::MAX)), run, number }
    }
}

/// The exchanges that a cell has begun and not ended, in the order in which they were begun.
#[derive(Debug)]
pub(crate) struct Flights {
    run: u64,
    begun: u64,
    under_way: Vec<Flight>,
}

/// Most exchanges of a cell under way: who has more has forgotten to end them.
const MOST: usize = 1 << 12;

#[derive(Debug)]
struct Flight {
    number: u64,
    /// The plan's serial number, and its set.
    plan: u64,
    set: usize,
    op: Op,
    /// Copies are combined in the order of the cells, and not added to what is there.
    in_order: bool,
    number_type: &'static str,
    vectors: usize,
}

impl Flights {
    pub(crate) fn new() -> Self {
        Self { run: next_serial(), begun: 0, under_way: Vec::new() }
    }
}

impl Cell<'_> {
    /// Begins an exchange of a vector: packs what goes out. `x` may be changed at once.
    ///
    /// # Errors
    /// As [`Cell::exchange_nodes`]; very many exchanges that were not ended.
    #[track_caller]
    pub fn begin<W: Number>(&mut self, plan: &Plan, op: Op, x: &[W]) -> Result<Pending, CellError> {
        self.begin_many(plan, op, &[x])
    }

    /// Begins [`Cell::combine_shared`] (with [`Op::Add`], [`Cell::sum_shared`]); [`Cell::end`]
    /// ends it. It combines what the others had at the begin with what this cell's vector has at
    /// the end. So all copies end with equal bits if no shared entry changes in between; the
    /// others may.
    ///
    /// # Errors
    /// As [`Cell::begin`], and a layout that does not bring every copy to every other.
    #[track_caller]
    pub fn begin_shared<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        x: &[W],
    ) -> Result<Pending, CellError> {
        self.check_shared(plan)?;
        self.begin_flight(plan, (op, true), &[x])
    }

    /// Begins an exchange of several vectors, as [`Cell::exchange_many`].
    ///
    /// # Errors
    /// As [`Cell::begin`].
    #[track_caller]
    pub fn begin_many<W: Number>(
        &mut self,
        plan: &Plan,
        op: Op,
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        self.begin_flight(plan, (op, false), vectors)
    }

    #[track_caller]
    fn begin_flight<W: Number>(
        &mut self,
        plan: &Plan,
        (op, in_order): (Op, bool),
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        self.check_running()?;
        self.check_plan(plan, vectors)?;
        if self.flights.under_way.len() >= MOST {
            let (count, set) = (MOST, self.set_name(self.flights.under_way[0].set));
            return self.fail(CellError::Plan(PlanUse::InFlight { count, set }));
        }
        let id = self.id();
        let (number, lists) = (self.flights.begun, plan.lists(id));
        let mut pack = |stretch: Stretch, wire: &mut [u64]| lists.pack(vectors, stretch, wire);
        self.begin_exchange(number, plan.set, plan.take_buffers(id), &mut pack)?;
        self.flights.begun += 1;
        self.flights.under_way.push(Flight {
            number,
            plan: plan.serial,
            set: plan.set,
            op,
            in_order,
            number_type: std::any::type_name::<W>(),
            vectors: vectors.len(),
        });
        Ok(Pending { cell: id, run: self.flights.run, number })
    }

    /// Whether an exchange can be ended without waiting. Does what can be done for it without
    /// waiting, and lets other cells go on where that is not enough.
    ///
    /// # Errors
    /// A token that is not this cell's or was ended; and as [`Cell::exchange`].
    pub fn test(&mut self, pending: &Pending) -> Result<bool, CellError> {
        self.flight(pending, None)?;
        self.ask(|port| port.test(pending.number))
    }

    /// Ends an exchange: waits for what comes in, and copies it to `x` or combines it with what
    /// is there now.
    ///
    /// # Errors
    /// A token that is not this cell's, is not of this plan and type, or was ended already; as
    /// [`Cell::exchange_nodes`].
    pub fn end<W: Number>(
        &mut self,
        plan: &Plan,
        pending: Pending,
        x: &mut [W],
    ) -> Result<(), CellError> {
        self.end_many(plan, pending, &mut [x])
    }

    /// Ends an exchange of several vectors.
    ///
    /// # Errors
    /// As [`Cell::end`].
    pub fn end_many<W: Number>(
        &mut self,
        plan: &Plan,
        pending: Pending,
        vectors: &mut [&mut [W]],
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.check_plan(plan, vectors)?;
        let row = self.flight(&pending, Some(plan))?;
        let flight = &self.flights.under_way[row];
        let found = std::any::type_name::<W>();
        if flight.number_type != found {
            let (set, begun) = (plan.name(), flight.number_type);
            return self.fail(CellError::Plan(PlanUse::Type { set, begun, found }));
        }
        if flight.vectors != vectors.len() {
            let (set, begun, found) = (plan.name(), flight.vectors, vectors.len());
            return self.fail(CellError::Plan(PlanUse::Vectors { set, begun, found }));
        }
        let (id, number, op) = (self.id(), pending.number, flight.op);
        let buffers = match vectors {
            [x] if flight.in_order => {
                self.ask(|port| port.arrive(number))?;
                let buffers = self.port.take(number);
                plan.combine_copies(id, &buffers, op, x);
                buffers
            }
            _ => {
                let lists = plan.lists(id);
                let mut unpack = |stretch: Stretch, wire: &[u64]| {
                    lists.unpack(op, vectors, stretch, wire);
                };
                self.ask(|port| port.read(number, &mut unpack))?
            }
        };
        self.flights.under_way.remove(row);
        plan.give_back(id, buffers);
        Ok(())
    }

    /// Does the exchanges that were begun and not done yet.
    pub(crate) fn arrive_all(&mut self) -> Result<(), CellError> {
        match self.flights.under_way.last().map(|flight| flight.number) {
            None => Ok(()),
            Some(last) => self.ask(|port| port.arrive(last)),
        }
    }

    /// Nothing may be left when a program returns.
    pub(crate) fn check_ended(&mut self) -> Result<(), CellError> {
        let count = self.flights.under_way.len();
        if count == 0 || !self.is_running() {
            return Ok(());
        }
        let set = self.set_name(self.flights.under_way[0].set);
        self.fail(CellError::Plan(PlanUse::Leaked { count, set }))
    }

    /// The row of a token's exchange.
    fn flight(&mut self, pending: &Pending, plan: Option<&Plan>) -> Result<usize, CellError> {
        self.check_running()?;
        match self.find_flight(pending, plan) {
            Ok(row) => Ok(row),
            Err(problem) => self.fail(CellError::Plan(problem)),
        }
    }

    fn find_flight(&self, pending: &Pending, plan: Option<&Plan>) -> Result<usize, PlanUse> {
        if (pending.cell, pending.run) != (self.id(), self.flights.run) {
            return Err(PlanUse::OtherCell { begun: pending.cell });
        }
        let under_way = &self.flights.under_way;
        let row = under_way.binary_search_by_key(&pending.number, |flight| flight.number);
        let row = row.map_err(|_| PlanUse::Ended {
            set: plan.map_or_else(|| "a plan".to_owned(), Plan::name),
        })?;
        match plan {
            Some(plan) if plan.serial != under_way[row].plan => Err(PlanUse::OtherPlan {
                set: plan.name(),
                begun: self.set_name(under_way[row].set),
            }),
            _ => Ok(row),
        }
    }

    fn set_name(&self, set: usize) -> String {
        self.image().sets()[set].set.name().to_owned()
    }
}
