//! The driver of the emulated machine: resumes cells, submits their requests to the engine, and
//! runs the machine until a cell can continue.
//!
//! Cells that can continue are resumed in the order of their ids, all in the same clock, before the
//! machine runs on. A context switch happens when every cell has requested it; the machine first
//! runs until nothing is in progress. If nothing is in progress otherwise and cells still wait, the
//! run is deadlocked, and the driver determines the reason.
//!
//! The machine has two engines, for connections and for messages ([`messages`]). One of them is
//! active at a time; a switch passes the clock to the other.
//!
//! Nonblocking exchanges proceed while programs run ([`nonblocking`]). What programs compute in the
//! meantime, and the clocks that the machine takes from them, is in [`computation`].

mod computation;
mod deadlock;
mod direct;
mod faults;
mod messages;
mod nonblocking;
mod rounds;
mod steps;
mod watchdog;

use std::cell::RefCell;

use conset_fabric::messages::ActiveMessages;
use conset_fabric::trace::StreamSpan;
use conset_fabric::{
    Engine, Fault, FaultKind, HardwareFaults, OperationId, OrderKeeper, Stop, Trace,
};
use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Direction, Operation, PhaseId, PhaseImage};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::call::{Call, CallLog};
use crate::cell::Cell;
use crate::error::RunError;
use crate::executor::{CellCoroutine, Program, ProgramOutcome, Resume, RunSetup, run_program};
use crate::fabric_port::{DeferredExchanges, FabricPort, FabricRequest, FabricState};
use crate::message_queue::{MessageQueue, Subject};
use crate::patience::Patience;
use crate::port::Context;
use crate::report::RunReport;
use crate::stack::{AlternateStack, Stacks};
use crate::store::{PackedExchanges, StepStore, WordStore};
use computation::ProgramClocks;
use direct::PendingPass;
use messages::MessageDriver;
use nonblocking::ExchangeQueue;
pub(crate) use rounds::RoundBoard;
use steps::StepDriver;
use watchdog::Activity;

/// What a cell is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellState {
    /// It is to be resumed.
    Ready,
    Switch(Context),
    Element(OperationId),
    /// Its operation list, of which so many are unfinished.
    List(u32),
    Computing,
    /// It tests a nonblocking exchange.
    Testing,
    /// It waits for a nonblocking exchange.
    Arrival(u64),
    /// Its message is to leave.
    Departure(u32),
    /// A message of a cell is to come.
    Receive(CellId, Subject),
    /// A message of any cell is to come.
    ReceiveAny,
    /// It sends and receives directly.
    Direct(PendingPass),
    /// It exchanges a set by messages.
    MessageExchange(usize),
    /// It exchanges a set by its step plan.
    StepExchange(usize),
    /// It is in a round of an epoch by active messages.
    Round,
    Ended,
}

/// Runs a program on every live cell with an agent.
pub(crate) fn run(setup: RunSetup<'_>, program: &Program<'_>) -> Result<RunReport, RunError> {
    let activity = Activity::new(Patience::of_environment()?);
    std::thread::scope(|scope| {
        // If the system gives no thread, the run is not watched.
        let monitor = || watchdog::monitor(&activity);
        let watchdog = std::thread::Builder::new().spawn_scoped(scope, monitor);
        let outcome = FabricDriver::new(setup, &activity).and_then(|driver| driver.run(program));
        activity.end();
        watchdog.iter().for_each(|thread| thread.thread().unpark());
        outcome
    })
}

/// One run of a world.
struct FabricDriver<'w> {
    setup: RunSetup<'w>,
    engine: Engine,
    messages: MessageDriver,
    steps: StepDriver<'w>,
    cells: Vec<CellId>,
    /// By place in `cells`.
    states: Vec<CellState>,
    /// The place in `cells` of each cell with an agent.
    place: Vec<u32>,
    /// Places of cells to be resumed.
    ready: Vec<u32>,
    /// Cells that wait at a context switch, cells in a round, and cells that have ended.
    waiting: usize,
    in_round: usize,
    ended: usize,
    /// The machine's active messages, from the first round on.
    packets: Option<Box<ActiveMessages>>,
    requests: ExchangeQueue,
    computation: ProgramClocks,
    order: Option<OrderKeeper>,
    active: Option<(usize, PhaseId)>,
    /// With a plan of faults: the tables that the cells have.
    tables: Option<PhaseImage>,
    report: RunReport,
    activity: &'w Activity,
}

impl<'w> FabricDriver<'w> {
    fn new(setup: RunSetup<'w>, activity: &'w Activity) -> Result<Self, RunError> {
        let machine = setup.loaded.image.machine();
        let cells: Vec<CellId> = machine.endpoints().collect();
        let mut place = vec![0; machine.agent_count()];
        for (row, cell) in cells.iter().enumerate() {
            place[cell.index()] = to_u32(row);
        }
        let trace = setup.trace.then(|| Trace {
            clock_hz: machine.parameters().clock_hz,
            sets: setup.loaded.image.sets().iter().map(|s| s.set.name().to_owned()).collect(),
            ..Trace::default()
        });
        let none = || PhaseImage::from_listed(machine.cell_count(), []);
        let mut messages = MessageDriver::new(machine, cells.len());
        if let Some(plan) = setup.faults {
            messages.engine.give_faults(HardwareFaults::new(plan, machine)?);
        }
        Ok(Self {
            setup,
            engine: Engine::new(machine.clone()),
            tables: setup.faults.map(|_| none()),
            messages,
            steps: StepDriver::new(cells.len()),
            states: vec![CellState::Ready; cells.len()],
            ready: (0..to_u32(cells.len())).collect(),
            requests: ExchangeQueue::new(cells.len()),
            computation: ProgramClocks::new(cells.len()),
            cells,
            place,
            waiting: 0,
            in_round: 0,
            ended: 0,
            packets: None,
            order: None,
            active: None,
            report: RunReport { trace, ..RunReport::default() },
            activity,
        })
    }

    fn run(mut self, program: &Program<'_>) -> Result<RunReport, RunError> {
        let agents = self.place.len();
        let (packed, queue) = (PackedExchanges::new(agents), MessageQueue::new(agents));
        let (calls, steps) = (CallLog::new(agents), StepStore::new(agents));
        let state = FabricState { packed, queue, calls, steps, ..FabricState::default() };
        let shared = RefCell::new(state);
        let loaded = &self.setup.loaded;
        // It goes after the coroutines.
        let _alternate = AlternateStack::install();
        let mut coroutines: Vec<CellCoroutine<Resume, FabricRequest>> =
            Vec::with_capacity(self.cells.len());
        let stacks = Stacks::reserve(&self.cells, self.cells.len(), self.setup.stack_size)?;
        for (row, &id) in self.cells.iter().enumerate() {
            let (stack, bounds) = stacks.get(id, row)?;
            let (state, cells) = (&shared, self.cells.len());
            let body = move |yielder: &Yielder<Resume, FabricRequest>, _: Resume| {
                let (call, deferred) = (Call::default(), DeferredExchanges::default());
                let mut port = FabricPort { id, loaded, state, yielder, call, cells, deferred };
                run_program(program, &mut Cell::new((id, bounds), loaded, &mut port))
            };
            // SAFETY: the closure borrows `program`, `loaded` and `shared`. All were made before
            // `coroutines`, so they live until after it is dropped; a coroutine is never
            // forgotten or moved out of this function, and dropping one runs or unwinds it to
            // its end. So nothing borrowed ends before the coroutine does.
            coroutines.push(unsafe { Coroutine::with_stack_unchecked(stack, body) });
        }
        let outcome = self.drive(&shared, &mut coroutines);
        if outcome.is_err() {
            shared.borrow_mut().aborted = true;
            for (coroutine, &cell) in coroutines.iter_mut().zip(&self.cells) {
                if coroutine.started() && !coroutine.done() {
                    self.activity.enter(cell, self.computation.happened());
                    // The program returns or is unwound; its outcome does not matter.
                    drop(coroutine.resume(Resume::Abort));
                }
            }
        }
        outcome.map(|()| self.report)
    }

    /// Runs until all programs have ended.
    fn drive(
        &mut self,
        shared: &RefCell<FabricState>,
        coroutines: &mut [CellCoroutine<Resume, FabricRequest>],
    ) -> Result<(), RunError> {
        loop {
            self.resume_ready(shared, coroutines)?;
            if self.advance_requests(shared)? {
                continue;
            }
            if self.waiting > 0 && self.waiting == self.cells.len() && self.requests.is_idle() {
                self.switch(shared)?;
                continue;
            }
            if self.in_round > 0 && self.in_round == self.cells.len() && self.requests.is_idle() {
                self.perform_round(shared)?;
                continue;
            }
            if !self.advance(shared)? {
                if self.ended < self.cells.len() {
                    return Err(self.deadlock_error(&shared.borrow().queue));
                }
                self.check_drained(&shared.borrow().queue)?;
                self.check_all_started()?;
                self.report.clocks = self.now();
                let messages = &self.messages.engine;
                self.report.words = self.engine.delivered() + messages.delivered();
                self.report.word_hops = self.engine.word_hops() + messages.word_hops();
                if let Some(packets) = &self.packets {
                    self.report.words += packets.delivered();
                    self.report.word_hops += packets.word_hops();
                }
                return Ok(());
            }
        }
    }

    /// Resumes all cells that can go on, until none can in this clock.
    fn resume_ready(
        &mut self,
        shared: &RefCell<FabricState>,
        coroutines: &mut [CellCoroutine<Resume, FabricRequest>],
    ) -> Result<(), RunError> {
        shared.borrow_mut().clock = self.now();
        while !self.ready.is_empty() {
            let mut ready = std::mem::take(&mut self.ready);
            ready.sort_unstable();
            for row in ready {
                let cell = self.cells[index(row)];
                self.activity.enter(cell, self.computation.happened());
                let resumed = coroutines[index(row)].resume(Resume::Continue);
                self.activity.leave()?;
                let outcome = match resumed {
                    CoroutineResult::Yield(request) => {
                        self.accept(index(row), request, &mut shared.borrow_mut())?;
                        continue;
                    }
                    CoroutineResult::Return(outcome) => outcome,
                };
                self.states[index(row)] = CellState::Ended;
                self.ended += 1;
                if let Some(error) = shared.borrow_mut().error.take() {
                    return Err(error);
                }
                match outcome {
                    ProgramOutcome::Returned => {}
                    ProgramOutcome::Panicked(message) => {
                        return Err(RunError::Panic { cell, message });
                    }
                    ProgramOutcome::Aborted => unreachable!("nothing was aborted yet"),
                }
            }
        }
        Ok(())
    }

    /// Takes a cell's request.
    fn accept(
        &mut self,
        row: usize,
        request: FabricRequest,
        state: &mut FabricState,
    ) -> Result<(), RunError> {
        if let FabricRequest::ExchangeSteps(set) = request {
            self.computation.made_progress();
            return self.start_step_exchange(state, row, set);
        }
        let (cell, queue) = (self.cells[row], &mut state.queue);
        let tests = matches!(request, FabricRequest::Test | FabricRequest::TestMessage);
        if !tests && !matches!(request, FabricRequest::Compute(_)) {
            self.computation.made_progress();
        }
        self.states[row] = match request {
            FabricRequest::Switch(context) => {
                self.check_agreement(cell, context)?;
                self.waiting += 1;
                CellState::Switch(context)
            }
            FabricRequest::Send(envelope) => {
                self.send_envelope(queue, envelope)?;
                self.keep_spare(row, queue.envelope(envelope).subject);
                CellState::Departure(envelope)
            }
            FabricRequest::Receive(source, subject) => {
                self.receive_envelope(queue, row, source, subject)
            }
            FabricRequest::ReceiveAny => self.receive_any(row),
            FabricRequest::TestMessage => self.test_messages(row),
            FabricRequest::Direct(sends, receives) => {
                self.start_pass(queue, row, (sends, receives))?
            }
            FabricRequest::ExchangeMessages(set) => self.start_message_exchange(queue, row, set)?,
            FabricRequest::ExchangeSteps(_) => unreachable!("handled above"),
            FabricRequest::Round => {
                self.in_round += 1;
                CellState::Round
            }
            FabricRequest::Element(operation, first) => {
                CellState::Element(self.submit(cell, &operation, first)?)
            }
            FabricRequest::List => {
                let (set, phase) = self.active.expect("a list belongs to an active phase");
                let setup = self.setup;
                let phase = &setup.loaded.image.sets()[set].phases[phase.index()];
                let operations = phase.cell(cell).operations;
                for operation in operations {
                    self.submit(cell, operation, true)?;
                }
                CellState::List(to_u32(operations.len()))
            }
            FabricRequest::Start(set) => {
                self.start(row, set)?;
                CellState::Ready
            }
            FabricRequest::Arrival(number) => CellState::Arrival(number),
            FabricRequest::Compute(clocks) => {
                self.compute(row, clocks);
                CellState::Computing
            }
            FabricRequest::Test => {
                self.compute(row, computation::TEST_CLOCKS);
                CellState::Testing
            }
        };
        if matches!(self.states[row], CellState::List(0) | CellState::Ready) {
            self.make_ready(row);
        }
        if self.states[row] == CellState::Testing
            && self.computation.count_unsuccessful_test(row)
            && self.is_quiescent()
        {
            return Err(self.deadlock_error(&state.queue));
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

    /// Compares the switch that a cell requests with that of the waiting cells.
    fn check_agreement(&self, cell: CellId, context: Context) -> Result<(), RunError> {
        let at_switch =
            self.states.iter().position(|states| matches!(states, CellState::Switch(..)));
        let (Some(row), Some(other)) = (at_switch, self.requested_context()) else { return Ok(()) };
        let first = self.cells[row];
        if other == context {
            return Ok(());
        }
        let (phase, other) = (self.name(other), self.name(context));
        Err(RunError::Disagree { first, phase, second: cell, other })
    }

    /// What the first waiting cell wants to switch to.
    fn requested_context(&self) -> Option<Context> {
        self.states.iter().find_map(|states| match states {
            CellState::Switch(context) => Some(*context),
            _ => None,
        })
    }

    fn now(&self) -> u64 {
        if self.messages.active { self.messages.engine.now() } else { self.engine.now() }
    }

    /// Lets time pass up to a clock, with nothing under way and no timer that expires before.
    fn pass_until(&mut self, clock: u64) {
        match self.messages.active {
            true => self.messages.engine.pass_until(clock),
            false => self.engine.pass_until(clock),
        }
    }

    /// The engine of messages, or that of connections, is at work from this clock on. Nothing is under way.
    fn activate(&mut self, messages: bool, clock: u64) {
        let faults = self.take_faults();
        self.messages.active = messages;
        self.pass_until(clock);
        faults.into_iter().for_each(|faults| self.give_faults(faults));
    }

    /// Lets the machine run until something happens to a program; `false` if nothing is under
    /// way.
    fn advance(&mut self, shared: &RefCell<FabricState>) -> Result<bool, RunError> {
        let state = &mut *shared.borrow_mut();
        if self.messages.active {
            let stop = self.messages.engine.run(&mut state.queue);
            self.handle_message_stop(stop, state)
        } else {
            let stop = self.engine.run(&mut state.store);
            self.handle_stop(stop, state)
        }
    }

    /// Nothing is under way: nothing may be left of words and messages.
    fn check_drained(&mut self, queue: &MessageQueue) -> Result<(), RunError> {
        if let Some(kind) = self.engine.undrained() {
            return Err(self.fault(kind));
        }
        self.message_fault(queue).map_or(Ok(()), Err)?;
        self.messages.left_over(queue).map_or(Ok(()), Err)?;
        self.check_exchanges()
    }

    fn make_ready(&mut self, row: usize) {
        self.states[row] = CellState::Ready;
        self.ready.push(to_u32(row));
    }

    /// All cells wait: lets the network drain and switches.
    fn switch(&mut self, shared: &RefCell<FabricState>) -> Result<(), RunError> {
        while self.advance(shared)? {}
        self.check_drained(&shared.borrow().queue)?;
        let start = self.now();
        let faults = self.switch_faults()?;
        let met = start.saturating_add(faults.late);
        match self.requested_context().expect("all cells wait for it") {
            Context::Messages => {
                let p = self.setup.loaded.image.machine().parameters();
                let cost = u64::from(p.t_sync) + u64::from(p.t_phase);
                self.activate(true, met.saturating_add(cost));
                self.active = None;
            }
            Context::Phase(set, phase) => {
                self.activate(false, met);
                self.write_tables(set, phase, &faults, Engine::switch)?;
                self.enter(set, phase, start, &mut shared.borrow_mut().store);
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

    /// The machine has been switched to a phase.
    fn enter(&mut self, set: usize, phase: PhaseId, start: u64, store: &mut WordStore) {
        let image = &self.setup.loaded.image.sets()[set];
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
            let p = self.setup.loaded.image.machine().parameters();
            trace.switch(to_u32(set), phase, start, p.t_sync, p.t_phase);
        }
    }

    /// Takes note of why the engine stopped; `false` if nothing is under way.
    fn handle_stop(&mut self, stop: Stop, state: &mut FabricState) -> Result<bool, RunError> {
        match stop {
            Stop::Idle => return Ok(false),
            Stop::Fault => {
                let kind = self.engine.take_fault().expect("the engine stopped for it");
                return Err(self.fault(kind));
            }
            Stop::Timer => {
                let mut rows = Vec::new();
                self.engine.take_timers(&mut rows);
                self.handle_timers(rows);
            }
            Stop::Finished => {
                self.computation.made_progress();
                let mut finished = Vec::new();
                self.engine.take_finished(&mut finished);
                for id in finished {
                    self.finish(id, state);
                }
            }
        }
        Ok(true)
    }

    fn finish(&mut self, id: OperationId, state: &mut FabricState) {
        let done = self.engine.operation(id);
        if done.direction == Direction::Receive
            && let Some(order) = &mut self.order
        {
            order.received(&mut self.engine, done.connection, done.words);
        }
        if let (Some(trace), Some((set, phase))) = (&mut self.report.trace, self.active) {
            let close = self.engine.now();
            trace.streams.push(StreamSpan::new(to_u32(set), phase, &done, close));
        }
        let row = index(self.place[done.cell.index()]);
        if self.requests.in_phase() {
            return self.operation_finished(row, done.direction, state);
        }
        match &mut self.states[row] {
            CellState::Element(waited) if *waited == id => self.make_ready(row),
            CellState::List(1) => self.make_ready(row),
            CellState::List(left) => *left -= 1,
            _ => {}
        }
    }

    fn fault(&self, kind: FaultKind) -> RunError {
        let (set, phase) = match self.active {
            Some((set, phase)) => (self.setup.loaded.image.sets()[set].set.name(), Some(phase)),
            None => ("<no phase>", None),
        };
        RunError::Fault(Fault { set: set.to_owned(), phase, clock: self.now(), kind })
    }

    fn name(&self, context: Context) -> String {
        match context {
            Context::Messages => "messages".to_owned(),
            Context::Phase(set, phase) => self.setup.loaded.phase_name(set, phase),
        }
    }
}
