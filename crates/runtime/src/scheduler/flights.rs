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

use super::{At, Run, pass_until};
use crate::error::RunError;
use crate::fabric::State;

/// The key of the timer at the end of a switch; no cell has it.
const SWITCHED: u32 = u32::MAX;

/// Exchanges that were begun.
#[derive(Clone, Debug)]
pub(super) struct Flights {
    /// Those that are not over, in order.
    queue: VecDeque<Flight>,
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
struct Flight {
    set: usize,
    /// The first cell that began it, and how many have.
    first: CellId,
    cells: usize,
}

/// How far the first of the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not started.
    Ground,
    /// The machine switches to a phase, from one clock to another.
    Switch { phase: PhaseId, start: u64, end: u64 },
    /// Words move.
    Phase(PhaseId),
}

impl Flights {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            over: 0,
            begun: vec![0; cells],
            stage: Stage::Ground,
            unfinished: 0,
            to_receive: vec![0; cells],
        }
    }

    /// Whether the machine is free of them.
    pub(super) fn are_down(&self) -> bool {
        self.stage == Stage::Ground
    }

    pub(super) fn are_switching(&self) -> bool {
        matches!(self.stage, Stage::Switch { .. })
    }

    /// Whether what the engine does belongs to them.
    pub(super) fn have_phase(&self) -> bool {
        matches!(self.stage, Stage::Phase(_))
    }
}

impl Run<'_> {
    /// A cell begins its next exchange: the same as the other cells.
    pub(super) fn begin(&mut self, row: usize, set: usize) -> Result<(), RunError> {
        let (cell, number) = (self.cells[row], self.flights.begun[row]);
        self.flights.begun[row] += 1;
        // What all have begun is all that is over.
        let place = (number - self.flights.over) as usize;
        match self.flights.queue.get_mut(place) {
            None => self.flights.queue.push_back(Flight { set, first: cell, cells: 1 }),
            Some(flight) if flight.set == set => flight.cells += 1,
            Some(&mut Flight { set: other, first, .. }) => {
                let (phase, other) = (self.flight_name(other), self.flight_name(set));
                return Err(RunError::Disagree { first, phase, second: cell, other });
            }
        }
        Ok(())
    }

    /// Does what is to be done for exchanges in this clock; whether there was anything.
    pub(super) fn fly(&mut self, shared: &RefCell<State>) -> Result<bool, RunError> {
        let Some(&flight) = self.flights.queue.front() else { return Ok(false) };
        let phases = self.world.loaded.image.sets()[flight.set].phases.len();
        let next = match self.flights.stage {
            Stage::Ground if flight.cells < self.cells.len() => return Ok(false),
            Stage::Ground => 0,
            Stage::Switch { phase, start, end } if end <= self.now() => {
                self.load_flight(flight.set, phase, start, &mut shared.borrow_mut())?;
                return Ok(true);
            }
            Stage::Phase(phase) if self.flights.unfinished == 0 => phase.index() + 1,
            _ => return Ok(false),
        };
        self.work.goes_on();
        if next < phases {
            self.rest(shared)?;
            self.switch_flight(PhaseId::from_index(next), shared);
        } else {
            self.flights.stage = Stage::Ground;
            self.flights.queue.pop_front();
            self.flights.over += 1;
        }
        Ok(true)
    }

    /// Nothing may be under way. What is will never be received; it comes to rest and is told.
    fn rest(&mut self, shared: &RefCell<State>) -> Result<(), RunError> {
        let moving = match self.messages.active {
            true => self.messages.engine.unfinished() > 0 || self.messages.engine.is_moving(),
            false => self.engine.unfinished() > 0 || self.engine.is_moving(),
        };
        if moving {
            while self.advance(shared)? {}
        }
        self.check_drained(&shared.borrow().mail)
    }

    /// The machine begins to switch, and all cells with it.
    fn switch_flight(&mut self, phase: PhaseId, shared: &RefCell<State>) {
        let start = self.now();
        if self.messages.active {
            pass_until(&mut self.engine, start, shared);
            self.messages.active = false;
            self.hand_timers_over();
        }
        let clocks = self.world.loaded.image.machine().parameters().switch_clocks();
        self.report.switches += 1;
        self.report.switch_clocks += clocks;
        let end = start.saturating_add(clocks);
        self.flights.stage = Stage::Switch { phase, start, end };
        self.set_timer(clocks, SWITCHED);
        for row in 0..self.cells.len() {
            self.occupy(row, clocks);
        }
    }

    /// The machine has switched: all operation lists are handed over.
    fn load_flight(
        &mut self,
        set: usize,
        phase: PhaseId,
        start: u64,
        state: &mut State,
    ) -> Result<(), RunError> {
        let world = self.world;
        let image = &world.loaded.image.sets()[set];
        let context = &image.phases[phase.index()];
        self.engine.load(context).map_err(|kind| self.fault(kind))?;
        self.enter(set, phase, start, &mut state.store);
        self.flights.stage = Stage::Phase(phase);
        let number = self.flights.over;
        for row in 0..self.cells.len() {
            let cell = self.cells[row];
            if phase == PhaseId(0) {
                let pack = state.packs.get(cell, number);
                state.store.put_pack(world.loaded.sets[set].out.of(cell), pack);
            }
            let operations = context.cell(cell).operations;
            for operation in operations {
                self.submit(cell, operation, true)?;
            }
            let receives = count(operations, Direction::Receive);
            self.flights.unfinished += operations.len();
            self.flights.to_receive[row] = receives;
            self.occupy(row, self.setup_clocks(operations.len() as u32 - receives, receives));
            if receives == 0 {
                self.part_flown(row, state);
            }
        }
        Ok(())
    }

    /// What setting up so many streams takes of a computation agent.
    fn setup_clocks(&self, sends: u32, receives: u32) -> u64 {
        let parameters = self.world.loaded.image.machine().parameters();
        let streams = match parameters.duplex {
            Duplex::Full => sends.max(receives),
            Duplex::Half => sends.saturating_add(receives),
        };
        u64::from(streams) * u64::from(parameters.stream_setup)
    }

    /// An operation of a cell is finished.
    pub(super) fn flown(&mut self, row: usize, direction: Direction, state: &mut State) {
        self.flights.unfinished -= 1;
        if direction == Direction::Receive {
            self.flights.to_receive[row] -= 1;
            if self.flights.to_receive[row] == 0 {
                self.part_flown(row, state);
            }
        }
    }

    /// A cell has received all of the phase; with the last one its part has arrived.
    fn part_flown(&mut self, row: usize, state: &mut State) {
        let (Stage::Phase(phase), Some(flight)) = (self.flights.stage, self.flights.queue.front())
        else {
            return;
        };
        let (cell, number, loaded) = (self.cells[row], self.flights.over, &self.world.loaded);
        if phase.index() + 1 < loaded.image.sets()[flight.set].phases.len() {
            return;
        }
        let inn = loaded.sets[flight.set].inn.of(cell);
        state.store.get_pack(inn, state.packs.get(cell, number));
        state.packs.arrive(cell, number);
        if let At::Arrival(awaited) = self.at[row]
            && state.packs.has_arrived(cell, awaited)
        {
            self.make_ready(row);
        }
    }

    /// The exchange that waits for cells to begin it: the set, the first cell that began it, and
    /// its number. One without phases waits for nobody.
    pub(super) fn unstarted(&self) -> Option<(usize, CellId, u64)> {
        let image = &self.world.loaded.image;
        let mut queue = self.flights.queue.iter().zip(self.flights.over..);
        let waits = |flight: &Flight| !image.sets()[flight.set].phases.is_empty();
        let (flight, number) = queue.find(|row| waits(row.0))?;
        self.flights.are_down().then_some((flight.set, flight.first, number))
    }

    /// Whether a cell has begun so many exchanges and one more.
    pub(super) fn has_begun(&self, row: usize, number: u64) -> bool {
        self.flights.begun[row] > number
    }

    /// Whether all cells have begun the same exchanges.
    pub(super) fn check_begun(&self) -> Result<(), RunError> {
        let Some(flight) = self.flights.queue.front() else { return Ok(()) };
        let missing = (0..self.cells.len()).find(|&row| !self.has_begun(row, self.flights.over));
        let ended = self.cells[missing.expect("it would be over")];
        Err(RunError::Ended { ended, waiting: flight.first, phase: self.flight_name(flight.set) })
    }

    pub(super) fn flight_name(&self, set: usize) -> String {
        format!("the exchange of {}", self.world.loaded.set(set).name())
    }
}

fn count(operations: &[Operation], direction: Direction) -> u32 {
    operations.iter().filter(|operation| operation.direction == direction).count() as u32
}
