//! The scheduler: resumes cells, hands what they ask for to the engine, and lets the machine run
//! until a cell can go on.
//!
//! Cells that can go on are resumed in the order of their ids, all in the same clock, before the
//! machine runs on. A context switch happens when every cell has asked for it; the machine first
//! runs until nothing is under way. When nothing is under way otherwise and cells still wait, the
//! run is stuck, and the reason is worked out.
//!
//! The machine has two engines, for connections and for messages ([`messages`]), of which one is
//! at work at a time; a switch hands the clock over.
//!
//! Exchanges that are begun go on beside the programs ([`flights`]); what programs compute
//! meanwhile, and what the machine takes from that, is in [`work`].

mod flights;
mod messages;
mod stuck;
mod work;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use conset_fabric::trace::StreamSpan;
use conset_fabric::{Engine, Fault, FaultKind, OperationId, OrderKeeper, Stop, Trace};
use conset_ir::{CellId, Direction, Operation, PhaseId};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::call::{Call, CallLog};
use crate::cell::{AbortedProgram, Cell};
use crate::error::RunError;
use crate::fabric::{Answer, FabricPort, Request, State};
use crate::mail::Mail;
use crate::port::Context;
use crate::stack::{AlternateStack, CellStack, Stacks};
use crate::store::{Packs, Store};
use crate::world::{RunReport, World};
use flights::Flights;
use messages::Messages;
use work::Work;

/// How a program ended.
pub(crate) enum Outcome<R> {
    Returned(R),
    Panicked(String),
    Aborted,
}

type Coroutines<R> = Vec<Coroutine<Answer, Request, Outcome<R>, CellStack>>;

/// What a cell is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// It is to be resumed.
    Ready,
    Switch(Context),
    Element(OperationId),
    /// Its operation list, of which so many are unfinished.
    List(u32),
    Computing,
    /// It looks whether an exchange that it has begun has arrived.
    Testing,
    /// An exchange that it has begun is to arrive.
    Arrival(u64),
    /// Its letter is to leave.
    Letter(u32),
    /// A letter of a cell is to come.
    Receive(CellId),
    /// It exchanges a set by messages.
    Letters(usize),
    Ended,
}

/// One run of a world.
pub(crate) struct Run<'w> {
    world: &'w World,
    engine: Engine,
    messages: Messages,
    cells: Vec<CellId>,
    /// By place in `cells`.
    at: Vec<At>,
    /// The place in `cells` of each cell with an agent.
    place: Vec<u32>,
    /// Places of cells to be resumed.
    ready: Vec<u32>,
    /// Cells that wait at a context switch, and cells that have ended.
    waiting: usize,
    ended: usize,
    flights: Flights,
    work: Work,
    order: Option<OrderKeeper>,
    active: Option<(usize, PhaseId)>,
    report: RunReport,
}

impl<'w> Run<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        let machine = world.loaded.image.machine();
        let cells: Vec<CellId> = machine.endpoints().collect();
        let mut place = vec![0; machine.agent_count()];
        for (row, cell) in cells.iter().enumerate() {
            place[cell.index()] = row as u32;
        }
        let trace = world.trace.then(|| Trace {
            clock_hz: machine.parameters().clock_hz,
            sets: world.loaded.image.sets().iter().map(|s| s.set.name().to_owned()).collect(),
            ..Trace::default()
        });
        Self {
            world,
            engine: Engine::new(machine.clone()),
            messages: Messages::new(machine, cells.len()),
            at: vec![At::Ready; cells.len()],
            ready: (0..cells.len() as u32).collect(),
            flights: Flights::new(cells.len()),
            work: Work::new(cells.len()),
            cells,
            place,
            waiting: 0,
            ended: 0,
            order: None,
            active: None,
            report: RunReport { trace, ..RunReport::default() },
        }
    }

    pub(crate) fn run<R>(
        mut self,
        program: &dyn Fn(&mut Cell<'_>) -> R,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        let agents = self.place.len();
        let (packs, mail) = (Packs::new(agents), Mail::new(agents));
        let calls = CallLog::new(agents);
        let shared = RefCell::new(State { packs, mail, calls, ..State::default() });
        let loaded = &self.world.loaded;
        // It goes after the coroutines.
        let _alternate = AlternateStack::install();
        let mut coroutines: Coroutines<R> = Vec::with_capacity(self.cells.len());
        let stacks = Stacks::reserve(&self.cells, self.cells.len(), self.world.stack_size)?;
        for (row, &id) in self.cells.iter().enumerate() {
            let (stack, bounds) = stacks.get(id, row)?;
            let (state, cells) = (&shared, self.cells.len());
            let body = move |yielder: &Yielder<Answer, Request>, _: Answer| {
                let mut port =
                    FabricPort { id, loaded, state, yielder, call: Call::default(), cells };
                run_program(program, &mut Cell::new((id, bounds), loaded, &mut port))
            };
            // SAFETY: the closure borrows `program`, `loaded` and `shared`. All were made before
            // `coroutines`, so they live until after it is dropped; a coroutine is never
            // forgotten or moved out of this function, and dropping one runs or unwinds it to
            // its end. So nothing borrowed ends before the coroutine does.
            coroutines.push(unsafe { Coroutine::with_stack_unchecked(stack, body) });
        }
        let mut results: Vec<Option<R>> = Vec::with_capacity(self.cells.len());
        results.resize_with(self.cells.len(), || None);
        let outcome = self.drive(&shared, &mut coroutines, &mut results);
        if outcome.is_err() {
            shared.borrow_mut().aborted = true;
            for coroutine in &mut coroutines {
                if coroutine.started() && !coroutine.done() {
                    // It is told, and returns or is unwound; its outcome does not matter.
                    discard(coroutine.resume(Answer::Aborted));
                }
            }
        }
        outcome?;
        let results = results.into_iter().map(|r| r.expect("all programs have ended")).collect();
        Ok((results, self.report))
    }

    /// Runs until all programs have ended.
    fn drive<R>(
        &mut self,
        shared: &RefCell<State>,
        coroutines: &mut Coroutines<R>,
        results: &mut [Option<R>],
    ) -> Result<(), RunError> {
        loop {
            self.resume_ready(shared, coroutines, results)?;
            if self.fly(shared)? {
                continue;
            }
            if self.waiting > 0 && self.waiting == self.cells.len() && self.flights.are_down() {
                self.switch(shared)?;
                continue;
            }
            if !self.advance(shared)? {
                if self.ended < self.cells.len() {
                    return Err(self.stuck(&shared.borrow().mail));
                }
                self.check_drained(&shared.borrow().mail)?;
                self.check_begun()?;
                self.report.clocks = self.now();
                let messages = &self.messages.engine;
                self.report.words = self.engine.delivered() + messages.delivered();
                self.report.word_hops = self.engine.word_hops() + messages.word_hops();
                return Ok(());
            }
        }
    }

    /// Resumes all cells that can go on, until none can in this clock.
    fn resume_ready<R>(
        &mut self,
        shared: &RefCell<State>,
        coroutines: &mut Coroutines<R>,
        results: &mut [Option<R>],
    ) -> Result<(), RunError> {
        shared.borrow_mut().clock = self.now();
        while !self.ready.is_empty() {
            let mut ready = std::mem::take(&mut self.ready);
            ready.sort_unstable();
            for row in ready {
                let outcome = match coroutines[row as usize].resume(Answer::Done) {
                    CoroutineResult::Yield(request) => {
                        self.accept(row as usize, request, &mut shared.borrow_mut())?;
                        continue;
                    }
                    CoroutineResult::Return(outcome) => outcome,
                };
                self.at[row as usize] = At::Ended;
                self.ended += 1;
                if let Some(error) = shared.borrow_mut().error.take() {
                    return Err(error);
                }
                match outcome {
                    Outcome::Returned(result) => results[row as usize] = Some(result),
                    Outcome::Panicked(message) => {
                        let cell = self.cells[row as usize];
                        return Err(RunError::Panic { cell, message });
                    }
                    Outcome::Aborted => unreachable!("nothing was aborted yet"),
                }
            }
        }
        Ok(())
    }

    /// Takes a cell's request.
    fn accept(&mut self, row: usize, request: Request, state: &mut State) -> Result<(), RunError> {
        let (cell, mail) = (self.cells[row], &mut state.mail);
        if !matches!(request, Request::Compute(_) | Request::Test) {
            self.work.goes_on();
        }
        self.at[row] = match request {
            Request::Switch(context) => {
                self.agree(cell, context)?;
                self.waiting += 1;
                At::Switch(context)
            }
            Request::Letter(letter) => {
                self.send_letter(mail, letter)?;
                At::Letter(letter)
            }
            Request::Receive(source) => self.receive_letter(mail, row, source),
            Request::Letters(set) => self.begin_letters(mail, row, set)?,
            Request::Element(operation, first) => {
                At::Element(self.submit(cell, &operation, first)?)
            }
            Request::List => {
                let (set, phase) = self.active.expect("a list belongs to an active phase");
                let world = self.world;
                let phase = &world.loaded.image.sets()[set].phases[phase.index()];
                let operations = phase.cell(cell).operations;
                for operation in operations {
                    self.submit(cell, operation, true)?;
                }
                At::List(operations.len() as u32)
            }
            Request::Begin(set) => {
                self.begin(row, set)?;
                At::Ready
            }
            Request::Arrival(number) => At::Arrival(number),
            Request::Compute(clocks) => {
                self.compute(row, clocks);
                At::Computing
            }
            Request::Test => {
                self.compute(row, work::TEST_CLOCKS);
                At::Testing
            }
        };
        if matches!(self.at[row], At::List(0) | At::Ready) {
            self.make_ready(row);
        }
        if self.at[row] == At::Testing && self.work.tests_in_vain(row) && self.is_still() {
            return Err(self.stuck(&state.mail));
        }
        Ok(())
    }

    fn submit(
        &mut self,
        cell: CellId,
        operation: &Operation,
        costs_setup: bool,
    ) -> Result<OperationId, RunError> {
        let order = self.order.as_mut().expect("operations belong to an active phase");
        order
            .submit(&mut self.engine, cell, operation, costs_setup)
            .map_err(|kind| self.fault(kind))
    }

    /// Checks a cell's wish to switch against those of the cells that wait already.
    fn agree(&self, cell: CellId, context: Context) -> Result<(), RunError> {
        let at_switch = self.at.iter().position(|at| matches!(at, At::Switch(..)));
        let (Some(row), Some(other)) = (at_switch, self.wanted()) else { return Ok(()) };
        let first = self.cells[row];
        if other == context {
            return Ok(());
        }
        let (phase, other) = (self.name(other), self.name(context));
        Err(RunError::Disagree { first, phase, second: cell, other })
    }

    /// What the first waiting cell wants to switch to.
    fn wanted(&self) -> Option<Context> {
        self.at.iter().find_map(|at| match at {
            At::Switch(context) => Some(*context),
            _ => None,
        })
    }

    fn now(&self) -> u64 {
        if self.messages.active { self.messages.engine.now() } else { self.engine.now() }
    }

    /// Lets the machine run until something happens to a program; `false` if nothing is under
    /// way.
    fn advance(&mut self, shared: &RefCell<State>) -> Result<bool, RunError> {
        let state = &mut *shared.borrow_mut();
        if self.messages.active {
            let stop = self.messages.engine.run(&mut state.mail);
            self.heed_messages(stop, &mut state.mail)
        } else {
            let stop = self.engine.run(&mut state.store);
            self.heed(stop, state)
        }
    }

    /// Nothing is under way: nothing may be left of words and messages.
    fn check_drained(&mut self, mail: &Mail) -> Result<(), RunError> {
        if let Some(kind) = self.engine.undrained() {
            return Err(self.fault(kind));
        }
        self.messages.left_over(mail).map_or(Ok(()), Err)?;
        self.check_exchanges()
    }

    fn make_ready(&mut self, row: usize) {
        self.at[row] = At::Ready;
        self.ready.push(row as u32);
    }

    /// All cells wait: lets the network drain and switches.
    fn switch(&mut self, shared: &RefCell<State>) -> Result<(), RunError> {
        while self.advance(shared)? {}
        self.check_drained(&shared.borrow().mail)?;
        let start = self.now();
        match self.wanted().expect("all cells wait for it") {
            Context::Messages => {
                let p = self.world.loaded.image.machine().parameters();
                let cost = u64::from(p.t_sync) + u64::from(p.t_phase);
                self.messages.enter(start.saturating_add(cost));
                self.active = None;
            }
            Context::Phase(set, phase) => {
                self.messages.active = false;
                pass_until(&mut self.engine, start, shared);
                self.load(set, phase, start, &mut shared.borrow_mut().store)?;
            }
        }
        self.report.switches += 1;
        self.report.switch_clocks += self.now() - start;
        self.waiting = 0;
        for row in 0..self.cells.len() {
            self.make_ready(row);
        }
        Ok(())
    }

    /// Switches the drained machine to a phase.
    fn load(
        &mut self,
        set: usize,
        phase: PhaseId,
        start: u64,
        store: &mut Store,
    ) -> Result<(), RunError> {
        let image = &self.world.loaded.image.sets()[set];
        let switched = self.engine.switch(&image.phases[phase.index()]);
        switched.map_err(|kind| self.fault(kind))?;
        self.enter(set, phase, start, store);
        Ok(())
    }

    /// The machine has been switched to a phase.
    fn enter(&mut self, set: usize, phase: PhaseId, start: u64, store: &mut Store) {
        let image = &self.world.loaded.image.sets()[set];
        let new_set = self.active.is_none_or(|active| active.0 != set);
        if new_set {
            store.start_set(&image.set);
        }
        if new_set || phase == PhaseId(0) {
            self.order = Some(OrderKeeper::new(image.set.clone()));
        }
        if let Some(order) = &mut self.order {
            order.switched();
        }
        self.active = Some((set, phase));
        if let Some(trace) = &mut self.report.trace {
            let p = self.world.loaded.image.machine().parameters();
            trace.switch(set as u32, phase, start, p.t_sync, p.t_phase);
        }
    }

    /// Takes note of why the engine stopped; `false` if nothing is under way.
    fn heed(&mut self, stop: Stop, state: &mut State) -> Result<bool, RunError> {
        match stop {
            Stop::Idle => return Ok(false),
            Stop::Fault => {
                let kind = self.engine.take_fault().expect("the engine stopped for it");
                return Err(self.fault(kind));
            }
            Stop::Timer => {
                let mut rows = Vec::new();
                self.engine.take_timers(&mut rows);
                self.heed_timers(rows);
            }
            Stop::Finished => {
                self.work.goes_on();
                let mut finished = Vec::new();
                self.engine.take_finished(&mut finished);
                for id in finished {
                    self.finish(id, state);
                }
            }
        }
        Ok(true)
    }

    fn finish(&mut self, id: OperationId, state: &mut State) {
        let done = self.engine.operation(id);
        if done.direction == Direction::Receive
            && let Some(order) = &mut self.order
        {
            order.received(&mut self.engine, done.connection, done.words);
        }
        if let (Some(trace), Some((set, phase))) = (&mut self.report.trace, self.active) {
            let close = self.engine.now();
            trace.streams.push(StreamSpan::new(set as u32, phase, &done, close));
        }
        let row = self.place[done.cell.index()] as usize;
        if self.flights.have_phase() {
            return self.flown(row, done.direction, state);
        }
        match &mut self.at[row] {
            At::Element(waited) if *waited == id => self.make_ready(row),
            At::List(1) => self.make_ready(row),
            At::List(left) => *left -= 1,
            _ => {}
        }
    }

    fn fault(&self, kind: FaultKind) -> RunError {
        let (set, phase) = match self.active {
            Some((set, phase)) => (self.world.loaded.image.sets()[set].set.name(), Some(phase)),
            None => ("<no phase>", None),
        };
        RunError::Fault(Fault { set: set.to_owned(), phase, clock: self.now(), kind })
    }

    fn name(&self, context: Context) -> String {
        match context {
            Context::Messages => "messages".to_owned(),
            Context::Phase(set, phase) => self.world.loaded.phase_name(set, phase),
        }
    }
}

/// Lets time pass on a machine with nothing under way.
fn pass_until(engine: &mut Engine, clock: u64, shared: &RefCell<State>) {
    if clock > engine.now() {
        engine.set_timer(clock - engine.now(), 0);
        engine.run(&mut shared.borrow_mut().store);
        engine.take_timers(&mut Vec::new());
    }
}

/// A program from its start to its end, whatever the end.
pub(crate) fn run_program<R>(
    program: &dyn Fn(&mut Cell<'_>) -> R,
    cell: &mut Cell<'_>,
) -> Outcome<R> {
    match catch_unwind(AssertUnwindSafe(|| program(cell))) {
        Ok(result) => Outcome::Returned(result),
        Err(payload) if payload.is::<AbortedProgram>() => Outcome::Aborted,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            discard(payload);
            Outcome::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
        }
    }
}

/// Drops a value of the program's, whose drop may panic: on the stack of a cell or of a worker
/// nobody but the runtime would catch that, and while others read the memory of cells nothing may
/// unwind. What such a panic carries is left alone, as its drop may panic in turn.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}
