//! Nonblocking exchanges on the emulated machine.
//!
//! The machine performs them in the order in which they were started. The next one begins when
//! every cell has started it and the previous one is complete: the machine switches to its first
//! phase and executes the operation lists of all cells, then those of the next phase. The exchange
//! is complete for a cell when the machine has reached the last phase and the cell has received all
//! its words; words that it sends may still be leaving.
//!
//! Blocking and nonblocking calls do not mix. A cell that waits for others in any other way first
//! completes its nonblocking exchanges (`Cell`). When all cells have started an exchange, none is
//! therefore in a switch, an element operation or a message. Words that were sent and not received
//! are detected then, as at a blocking switch.
//!
//! The cost for programs follows the paper (4.2). The computation agent performs a context switch:
//! its program is stopped, the cells synchronise, the agent writes the registers of the
//! communication agent, and the program resumes. A switch therefore takes `t_sync + t_phase` from
//! the computation of each cell, and the machine takes as long. The computation agent also sets up
//! the streams of an operation list: `stream_setup` for each, both directions in parallel with full
//! duplex, charged together at the beginning of the phase. The words are spooled ("an asynchronous,
//! background transfer of data from memory directly to the communications network", section 5) and
//! cost the program nothing. A cell never loses more clocks to an exchange than the exchange takes,
//! and an exchange hides at most its words and the wait for other cells. (A machine that moves
//! words by instructions of the program, as the 10 clocks per word of the FEM loops are, hides
//! less; its spools have other parameters.)
//!
//! Not modelled: two exchanges at a time, and late interrupts.

use std::cell::RefCell;
use std::collections::VecDeque;

use conset_fabric::{Engine, SwitchFaults};
use conset_ir::convert::{to_u32, to_usize};
use conset_ir::{CellId, Direction, Duplex, Operation, PhaseId};

use super::{CellState, FabricDriver};
use crate::error::RunError;
use crate::fabric_port::FabricState;

/// The key of the timer at the end of a switch; no cell has it.
const SWITCHED: u32 = u32::MAX;

/// Nonblocking exchanges.
#[derive(Clone, Debug)]
pub(super) struct ExchangeQueue {
    /// Those that are not over, in order.
    queue: VecDeque<QueuedExchange>,
    /// How many are over.
    over: u64,
    /// By place of the cell: how many it has started.
    begun: Vec<u64>,
    stage: Stage,
    /// The faults of the switch in progress.
    faults: SwitchFaults,
    /// Operations of the phase that are not finished; and by place of the cell, receives.
    unfinished: usize,
    to_receive: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedExchange {
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

impl ExchangeQueue {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            over: 0,
            begun: vec![0; cells],
            stage: Stage::Idle,
            faults: SwitchFaults::default(),
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
    /// A cell starts its next exchange: the same as the other cells.
    pub(super) fn start(&mut self, row: usize, set: usize) -> Result<(), RunError> {
        let (cell, number) = (self.cells[row], self.requests.begun[row]);
        self.requests.begun[row] += 1;
        // Exchanges that all cells have started may be complete.
        let place = to_usize(number - self.requests.over);
        match self.requests.queue.get_mut(place) {
            None => self.requests.queue.push_back(QueuedExchange { set, first: cell, cells: 1 }),
            Some(request) if request.set == set => request.cells += 1,
            Some(&mut QueuedExchange { set: other, first, .. }) => {
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
            self.start_switch(PhaseId::from_index(next))?;
        } else {
            self.requests.stage = Stage::Idle;
            self.requests.queue.pop_front();
            self.requests.over += 1;
        }
        Ok(true)
    }

    /// Drains the machine; words and messages still in progress will never be received, an error.
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

    /// The machine starts to switch, and all cells with it.
    fn start_switch(&mut self, phase: PhaseId) -> Result<(), RunError> {
        let start = self.now();
        if self.messages.active {
            self.activate(false, start);
            self.hand_timers_over();
        }
        let clocks = self.setup.loaded.image.machine().parameters().switch_clocks();
        self.requests.faults = self.switch_faults()?;
        let clocks = clocks.saturating_add(self.requests.faults.late);
        self.report.switches += 1;
        self.report.switch_clocks += clocks;
        let end = start.saturating_add(clocks);
        self.requests.stage = Stage::Switch { phase, start, end };
        self.set_timer(clocks, SWITCHED);
        for row in 0..self.cells.len() {
            self.occupy(row, clocks);
        }
        Ok(())
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
        let faults = std::mem::take(&mut self.requests.faults);
        self.write_tables(set, phase, &faults, Engine::load)?;
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
            self.occupy(row, self.setup_clocks(set, operations));
            if receives == 0 {
                self.cell_phase_finished(row, state);
            }
        }
        Ok(())
    }

    /// What setting up the streams of a cell's operations takes of its computation agent.
    fn setup_clocks(&self, set: usize, operations: &[Operation]) -> u64 {
        let image = &self.setup.loaded.image;
        let (machine, set) = (image.machine(), &image.sets()[set].set);
        let clocks = |direction: Direction| {
            let streams = operations.iter().filter(|operation| operation.direction == direction);
            let clocks = streams.map(|operation| {
                let ends = set.get(operation.connection);
                u64::from(machine.parameters().stream_setup)
                    + u64::from(machine.network_overhead(ends.source, ends.target))
            });
            clocks.sum::<u64>()
        };
        let (sends, receives) = (clocks(Direction::Send), clocks(Direction::Receive));
        match machine.parameters().duplex {
            Duplex::Full => sends.max(receives),
            Duplex::Half => sends.saturating_add(receives),
        }
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

    /// The exchange that waits for cells to start it: the set, the first cell that started it, and
    /// its number. One without phases waits for no cell.
    pub(super) fn unstarted(&self) -> Option<(usize, CellId, u64)> {
        let image = &self.setup.loaded.image;
        let mut queue = self.requests.queue.iter().zip(self.requests.over..);
        let waits = |request: &QueuedExchange| !image.sets()[request.set].phases.is_empty();
        let (request, number) = queue.find(|row| waits(row.0))?;
        self.requests.is_idle().then_some((request.set, request.first, number))
    }

    /// Whether a cell has started exchange `number`.
    pub(super) fn has_started(&self, row: usize, number: u64) -> bool {
        self.requests.begun[row] > number
    }

    /// Whether all cells have started the same exchanges.
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
    to_u32(operations.iter().filter(|operation| operation.direction == direction).count())
}
