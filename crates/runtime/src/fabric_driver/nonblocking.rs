//! Exchanges that are begun and go on beside the programs.
//!
//! The machine does them by itself, in the order in which they were begun. The next one starts when
//! every cell has begun it and the one before is over: the machine switches to its first phase, all
//! cells' operation lists of that phase are executed, then those of the next. A cell's part has
//! *arrived* when the last phase is there and the cell has received all of it; what it sends may
//! still be leaving.
//!
//! Foreground and background do not mix. A cell that waits for others in any other way first waits
//! for what it has begun (`Cell`), so when all cells have begun an exchange none is in the middle of
//! a switch, an element or a message. What they sent and nobody received is found then, as at a
//! switch of the foreground.
//!
//! What it costs the programs. By the paper (4.2) the computation agent does a context switch: its
//! program is stopped, the cells synchronise, the agent writes the communication agent's registers,
//! the program is resumed. So a switch takes `t_sync + t_phase` from whatever each cell computes,
//! and the machine takes as long. The streams of an operation list are set up by the computation
//! agent, too: `stream_setup` for each, with full duplex those of the two directions side by side,
//! as its ports do it; they are charged together at the beginning of the phase. The words
//! themselves are spooled ("an asynchronous, background transfer of data from memory directly to the
//! communications network", section 5) and cost the program nothing. So a cell never loses more
//! clocks to an exchange than the exchange takes, and an exchange hides at most its words and the
//! wait for other cells. (A machine that moves words by instructions of the program, which is what
//! the 10 clocks a word of the FEM loops are, hides less; its spools have other parameters.)
//!
//! What it does not do: two exchanges at once, and interrupts that come late.

use std::cell::RefCell;
use std::collections::VecDeque;

use conset_ir::{CellId, Direction, Duplex, Operation, PhaseId};

use super::{CellState, FabricDriver, pass_until};
use crate::error::RunError;
use crate::fabric_port::FabricState;

/// The key of the timer at the end of a switch; no cell has it.
const SWITCHED: u32 = u32::MAX;

/// Exchanges that were begun.
#[derive(Clone, Debug)]
pub(super) struct RequestQueue {
    /// Those that are not over, in order.
    queue: VecDeque<Request>,
    /// How many are over.
    over: u64,
    /// By place of the cell: how many it has begun.
    begun: Vec<u64>,
    stage: Stage,
    /// Operations of the phase that are not finished; and by place of the cell, receives.
    unfinished: usize,
    to_receive: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    set: usize,
    /// The first cell that began it, and how many have.
    first: CellId,
    cells: usize,
}

/// How far the first of the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not started.
    Idle,
    /// The machine switches to a phase, from one clock to another.
    Switch { phase: PhaseId, start: u64, end: u64 },
    /// Words move.
    Phase(PhaseId),
}

impl RequestQueue {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            over: 0,
            begun: vec![0; cells],
            stage: Stage::Idle,
            unfinished: 0,
            to_receive: vec![0; cells],
        }
    }

    /// Whether the machine is free of them.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    pub(super) fn is_switching(&self) -> bool {
        matches!(self.stage, Stage::Switch { .. })
    }

    /// Whether what the engine does belongs to them.
    pub(super) fn in_phase(&self) -> bool {
        matches!(self.stage, Stage::Phase(_))
    }
}

impl FabricDriver<'_> {
    /// A cell begins its next exchange: the same as the other cells.
    pub(super) fn begin(&mut self, row: usize, set: usize) -> Result<(), RunError> {
        let (cell, number) = (self.cells[row], self.requests.begun[row]);
        self.requests.begun[row] += 1;
        // What all have begun is all that is over.
        let place = (number - self.requests.over) as usize;
        match self.requests.queue.get_mut(place) {
            None => self.requests.queue.push_back(Request { set, first: cell, cells: 1 }),
            Some(request) if request.set == set => request.cells += 1,
            Some(&mut Request { set: other, first, .. }) => {
                let (phase, other) = (self.nonblocking_name(other), self.nonblocking_name(set));
                return Err(RunError::Disagree { first, phase, second: cell, other });
            }
        }
        Ok(())
    }

    /// Does what is to be done for exchanges in this clock; whether there was anything.
    pub(super) fn advance_requests(
        &mut self,
        shared: &RefCell<FabricState>,
    ) -> Result<bool, RunError> {
        let Some(&request) = self.requests.queue.front() else { return Ok(false) };
        let phases = self.setup.loaded.image.sets()[request.set].phases.len();
        let next = match self.requests.stage {
            Stage::Idle if request.cells < self.cells.len() => return Ok(false),
            Stage::Idle => 0,
            Stage::Switch { phase, start, end } if end <= self.now() => {
                self.load_request_phase(request.set, phase, start, &mut shared.borrow_mut())?;
                return Ok(true);
            }
            Stage::Phase(phase) if self.requests.unfinished == 0 => phase.index() + 1,
            _ => return Ok(false),
        };
        self.computation.made_progress();
        if next < phases {
            self.drain(shared)?;
            self.start_switch(PhaseId::from_index(next), shared);
        } else {
            self.requests.stage = Stage::Idle;
            self.requests.queue.pop_front();
            self.requests.over += 1;
        }
        Ok(true)
    }

    /// Nothing may be under way. What is will never be received; it comes to rest and is told.
    fn drain(&mut self, shared: &RefCell<FabricState>) -> Result<(), RunError> {
        let moving = match self.messages.active {
            true => self.messages.engine.unfinished() > 0 || self.messages.engine.is_moving(),
            false => self.engine.unfinished() > 0 || self.engine.is_moving(),
        };
        if moving {
            while self.advance(shared)? {}
        }
        self.check_drained(&shared.borrow().queue)
    }

    /// The machine begins to switch, and all cells with it.
    fn start_switch(&mut self, phase: PhaseId, shared: &RefCell<FabricState>) {
        let start = self.now();
        if self.messages.active {
            pass_until(&mut self.engine, start, shared);
            self.messages.active = false;
            self.hand_timers_over();
        }
        let clocks = self.setup.loaded.image.machine().parameters().switch_clocks();
        self.report.switches += 1;
        self.report.switch_clocks += clocks;
        let end = start.saturating_add(clocks);
        self.requests.stage = Stage::Switch { phase, start, end };
        self.set_timer(clocks, SWITCHED);
        for row in 0..self.cells.len() {
            self.occupy(row, clocks);
        }
    }

    /// The machine has switched: all operation lists are handed over.
    fn load_request_phase(
        &mut self,
        set: usize,
        phase: PhaseId,
        start: u64,
        state: &mut FabricState,
    ) -> Result<(), RunError> {
        let setup = self.setup;
        let image = &setup.loaded.image.sets()[set];
        let context = &image.phases[phase.index()];
        self.engine.load(context).map_err(|kind| self.fault(kind))?;
        self.enter(set, phase, start, &mut state.store);
        self.requests.stage = Stage::Phase(phase);
        let number = self.requests.over;
        for row in 0..self.cells.len() {
            let cell = self.cells[row];
            if phase == PhaseId(0) {
                let pack = state.packed.get(cell, number);
                state.store.put_packed(setup.loaded.sets[set].outgoing.of(cell), pack);
            }
            let operations = context.cell(cell).operations;
            for operation in operations {
                self.submit(cell, operation, true)?;
            }
            let receives = count(operations, Direction::Receive);
            self.requests.unfinished += operations.len();
            self.requests.to_receive[row] = receives;
            self.occupy(row, self.setup_clocks(operations.len() as u32 - receives, receives));
            if receives == 0 {
                self.cell_phase_finished(row, state);
            }
        }
        Ok(())
    }

    /// What setting up so many streams takes of a computation agent.
    fn setup_clocks(&self, sends: u32, receives: u32) -> u64 {
        let parameters = self.setup.loaded.image.machine().parameters();
        let streams = match parameters.duplex {
            Duplex::Full => sends.max(receives),
            Duplex::Half => sends.saturating_add(receives),
        };
        u64::from(streams) * u64::from(parameters.stream_setup)
    }

    /// An operation of a cell is finished.
    pub(super) fn operation_finished(
        &mut self,
        row: usize,
        direction: Direction,
        state: &mut FabricState,
    ) {
        self.requests.unfinished -= 1;
        if direction == Direction::Receive {
            self.requests.to_receive[row] -= 1;
            if self.requests.to_receive[row] == 0 {
                self.cell_phase_finished(row, state);
            }
        }
    }

    /// A cell has received all of the phase; with the last one its part has arrived.
    fn cell_phase_finished(&mut self, row: usize, state: &mut FabricState) {
        let (Stage::Phase(phase), Some(request)) =
            (self.requests.stage, self.requests.queue.front())
        else {
            return;
        };
        let (cell, number, loaded) = (self.cells[row], self.requests.over, self.setup.loaded);
        if phase.index() + 1 < loaded.image.sets()[request.set].phases.len() {
            return;
        }
        let inn = loaded.sets[request.set].incoming.of(cell);
        state.store.get_packed(inn, state.packed.get(cell, number));
        state.packed.arrive(cell, number);
        if let CellState::Arrival(awaited) = self.states[row]
            && state.packed.has_arrived(cell, awaited)
        {
            self.make_ready(row);
        }
    }

    /// The exchange that waits for cells to begin it: the set, the first cell that began it, and
    /// its number. One without phases waits for nobody.
    pub(super) fn unstarted(&self) -> Option<(usize, CellId, u64)> {
        let image = &self.setup.loaded.image;
        let mut queue = self.requests.queue.iter().zip(self.requests.over..);
        let waits = |request: &Request| !image.sets()[request.set].phases.is_empty();
        let (request, number) = queue.find(|row| waits(row.0))?;
        self.requests.is_idle().then_some((request.set, request.first, number))
    }

    /// Whether a cell has begun so many exchanges and one more.
    pub(super) fn has_started(&self, row: usize, number: u64) -> bool {
        self.requests.begun[row] > number
    }

    /// Whether all cells have begun the same exchanges.
    pub(super) fn check_all_started(&self) -> Result<(), RunError> {
        let Some(request) = self.requests.queue.front() else { return Ok(()) };
        let missing = (0..self.cells.len()).find(|&row| !self.has_started(row, self.requests.over));
        let ended = self.cells[missing.expect("it would be over")];
        Err(RunError::Ended {
            ended,
            waiting: request.first,
            phase: self.nonblocking_name(request.set),
        })
    }

    pub(super) fn nonblocking_name(&self, set: usize) -> String {
        format!("the exchange of {}", self.setup.loaded.set(set).name())
    }
}

fn count(operations: &[Operation], direction: Direction) -> u32 {
    operations.iter().filter(|operation| operation.direction == direction).count() as u32
}
