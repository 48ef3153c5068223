//! Step plans in the fabric driver: executes the operation lists of the cells that exchange a set
//! by steps.
//!
//! The rules are those of [`conset_fabric::messages::run_steps`]: without barriers, each cell follows
//! its own list, and a message waits for what it passes on and for the order of the set
//! ([`StepWaits`]). So an exchange that all cells start at the same clock takes as many clocks as that
//! run. Cells pass on the words that they have received; nothing is taken from anywhere else.
//!
//! A cell that has finished may start its next exchange while others are still at this one. Each
//! exchange is a *round* of its own. Messages that arrive early are kept until the cell comes to them;
//! under `standing` one more message is requested in their place, as in [`super::messages`].

use std::collections::BTreeMap;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, Protocol, StepWaits, Steps};

use super::{CellState, FabricDriver};
use crate::error::{Awaiting, RunError};
use crate::fabric_port::FabricState;
use crate::message_queue::Subject;
use crate::port::By;

/// The exchanges by steps that are not over.
#[derive(Default)]
pub(super) struct StepDriver<'w> {
    rounds: BTreeMap<u64, StepRound<'w>>,
    /// By place of the cell.
    cells: Vec<CellSteps>,
    /// Messages that their targets are copying; timers have their places.
    copies: Vec<Option<(u64, u32)>>,
    ready: Vec<u32>,
}

/// An exchange of all cells.
struct StepRound<'w> {
    set: usize,
    waits: StepWaits<'w>,
    /// Cells that have finished it.
    finished: usize,
}

/// How far a cell is in its list.
#[derive(Clone, Debug, Default)]
struct CellSteps {
    round: u64,
    /// Operations begun, and whether the last one is not done.
    begun: usize,
    busy: bool,
    /// Messages not received.
    awaited: usize,
}

impl StepDriver<'_> {
    pub(super) fn new(cells: usize) -> Self {
        Self { cells: vec![CellSteps::default(); cells], ..Self::default() }
    }

    /// The set of a round that is not over.
    pub(super) fn set_of(&self, round: u64) -> usize {
        self.rounds.get(&round).map_or(0, |round| round.set)
    }
}

impl<'w> FabricDriver<'w> {
    fn steps_of(&self, set: usize) -> &'w Steps {
        let steps = self.setup.loaded.image.sets()[set].steps.as_ref();
        steps.expect("only sets with steps are exchanged by steps")
    }

    fn list_of(&self, set: usize, cell: CellId) -> &'w [u32] {
        let steps = self.setup.loaded.sets[set].steps.as_ref();
        steps.expect("only sets with steps are exchanged by steps").lists.of(cell.0)
    }

    fn protocol(&self) -> Protocol {
        self.setup.loaded.image.machine().parameters().protocol
    }

    /// A cell starts to exchange a set.
    pub(super) fn start_step_exchange(
        &mut self,
        state: &mut FabricState,
        row: usize,
        set: usize,
    ) -> Result<(), RunError> {
        self.take_part(row, set, By::Phases)?;
        let (cell, steps) = (self.cells[row], self.steps_of(set));
        let round = state.steps.round_of(cell);
        let new = || StepRound { set, waits: StepWaits::new(steps), finished: 0 };
        self.steps.rounds.entry(round).or_insert_with(new);
        let receives = |&&message: &&u32| steps.messages().get(index(message)).target == cell;
        let list = self.list_of(set, cell);
        let awaited = list.iter().filter(receives).count();
        self.steps.cells[row] = CellSteps { round, begun: 0, busy: false, awaited };
        self.states[row] = CellState::StepExchange(set);
        if self.protocol() == Protocol::Standing {
            self.ask_for_messages(state, row, set, awaited)?;
        }
        self.begin_next(state, row)?;
        self.end_step_exchange(row);
        Ok(())
    }

    /// Under `standing`: a cell asks for all its messages that have not come, and one more.
    fn ask_for_messages(
        &mut self,
        state: &mut FabricState,
        row: usize,
        set: usize,
        awaited: usize,
    ) -> Result<(), RunError> {
        let (cell, steps) = (self.cells[row], self.steps_of(set));
        let round = self.steps.cells[row].round;
        let mut early = Vec::new();
        for &message in self.list_of(set, cell) {
            let source = steps.messages().get(index(message)).source;
            if state.queue.has(cell, Subject::Step(round, message), source) {
                early.push(message);
            }
        }
        let spare = self.messages.take_spare(row);
        let asked = to_u64(awaited - early.len()) + u64::from(!spare);
        self.messages.engine.receive(cell, asked);
        early.into_iter().try_for_each(|message| self.step_arrived(state, set, round, message))
    }

    /// A cell whose own message leaves takes messages of the next exchange meanwhile, one at a time:
    /// they would hold channels that its message needs. The same holds for packets of epochs and for
    /// direct passes, in which many cells send at the same time.
    pub(super) fn keep_spare(&mut self, row: usize, own: Subject) {
        let standing = self.protocol() == Protocol::Standing;
        let crossing =
            matches!(own, Subject::Packet | Subject::Direct) || self.setup.loaded.image.is_steps();
        if standing && crossing && !self.messages.take_spare(row) {
            self.messages.engine.receive(self.cells[row], 1);
        }
    }

    /// Begins the next operation of a cell, if the last one is done and it waits for nothing.
    fn begin_next(&mut self, state: &mut FabricState, row: usize) -> Result<(), RunError> {
        let CellState::StepExchange(set) = self.states[row] else { return Ok(()) };
        let (cell, steps, list) =
            (self.cells[row], self.steps_of(set), self.list_of(set, self.cells[row]));
        let CellSteps { round, mut begun, busy, .. } = self.steps.cells[row];
        let (mut begins, mut early) = (false, None);
        while let Some(&number) = list.get(begun).filter(|_| !busy && !begins) {
            let message = steps.messages().get(index(number));
            if message.source != cell {
                begins = self.protocol() == Protocol::Rendezvous;
                if begins && state.queue.has(cell, Subject::Step(round, number), message.source) {
                    early = Some(number);
                } else if begins {
                    self.messages.engine.receive_from(cell, message.source);
                }
            } else if self.steps.rounds[&round].waits.is_ready(number) {
                begins = true;
                let mut words = Vec::new();
                state.steps.send(round, cell, steps.set(), message.pieces, &mut words);
                let ends = (cell, message.target);
                let envelope =
                    state.queue.post(ends, Subject::Step(round, number), words.into_iter());
                self.send_envelope(&state.queue, envelope)?;
            } else {
                break;
            }
            begun += 1;
        }
        let own = &mut self.steps.cells[row];
        own.begun = begun;
        own.busy |= begins;
        early.map_or(Ok(()), |number| self.step_arrived(state, set, round, number))
    }

    /// A message of a cell has left.
    pub(super) fn step_departed(
        &mut self,
        state: &mut FabricState,
        row: usize,
    ) -> Result<(), RunError> {
        self.steps.cells[row].busy = false;
        self.begin_next(state, row)?;
        self.end_step_exchange(row);
        Ok(())
    }

    /// The set, if a cell takes part in a round now; otherwise it has not started it yet.
    fn is_at_round(&self, row: usize, round: u64) -> Option<usize> {
        match self.states[row] {
            CellState::StepExchange(set) if self.steps.cells[row].round == round => Some(set),
            _ => None,
        }
    }

    /// The set, if a cell waits for a message of a round now. Under `rendezvous` it waits for one
    /// message at a time; others come early only if the program has asked for a message of any cell
    /// ([`crate::Cell::msg_receive`]).
    pub(super) fn awaits_step(&self, row: usize, round: u64, message: u32) -> Option<usize> {
        let set = self.is_at_round(row, round)?;
        let own = &self.steps.cells[row];
        let current = self.list_of(set, self.cells[row]).get(own.begun.wrapping_sub(1));
        let waits = own.busy && current == Some(&message);
        (self.protocol() == Protocol::Standing || waits).then_some(set)
    }

    /// Asks again for a message in the place of one that a cell in an exchange by steps did not wait
    /// for.
    pub(super) fn ask_step_again(&mut self, row: usize, set: usize, source: CellId) {
        let cell = self.cells[row];
        if self.protocol() == Protocol::Standing {
            return self.messages.engine.receive(cell, 1);
        }
        let own = &self.steps.cells[row];
        let current = self.list_of(set, cell).get(own.begun.wrapping_sub(1)).filter(|_| own.busy);
        let message = current.map(|&row| self.steps_of(set).messages().get(index(row)));
        if message.is_some_and(|message| (message.source, message.target) == (source, cell)) {
            self.messages.engine.receive_from(cell, source);
        }
    }

    /// A message has arrived at a cell of its round, which copies what it passes on.
    pub(super) fn step_arrived(
        &mut self,
        state: &mut FabricState,
        set: usize,
        round: u64,
        message: u32,
    ) -> Result<(), RunError> {
        match self.steps_of(set).copy_clocks(index(message)) {
            0 => self.step_received(state, round, message),
            clocks => {
                let copies = &mut self.steps.copies;
                let free = copies.iter().position(Option::is_none).unwrap_or(copies.len());
                if free == copies.len() {
                    copies.push(None);
                }
                copies[free] = Some((round, message));
                let key = self.cells.len() + free;
                self.messages.engine.set_timer(clocks, to_u32(key));
                Ok(())
            }
        }
    }

    /// Copies are done; the other keys are those of programs.
    pub(super) fn handle_copy_timers(
        &mut self,
        state: &mut FabricState,
        keys: &mut Vec<u32>,
    ) -> Result<(), RunError> {
        let cells = self.cells.len();
        let mut done = Vec::new();
        keys.retain(|&key| {
            let copy = index(key).checked_sub(cells).and_then(|at| self.steps.copies.get_mut(at));
            let taken = copy.and_then(Option::take);
            done.extend(taken);
            taken.is_none()
        });
        done.into_iter().try_for_each(|(round, message)| self.step_received(state, round, message))
    }

    /// A message was received, and copied if it is passed on.
    fn step_received(
        &mut self,
        state: &mut FabricState,
        round: u64,
        number: u32,
    ) -> Result<(), RunError> {
        let set = self.steps.set_of(round);
        let message = self.steps_of(set).messages().get(index(number));
        let (source, target) = (message.source, message.target);
        let FabricState { steps, queue, .. } = state;
        let connections = self.setup.loaded.set(set);
        queue.read(target, Subject::Step(round, number), source, |words| {
            steps.receive(round, target, connections, message.pieces, words);
        });
        let mut ready = std::mem::take(&mut self.steps.ready);
        if let Some(current) = self.steps.rounds.get_mut(&round) {
            current.waits.received(number, &mut ready);
        }
        let row = index(self.place[target.index()]);
        self.steps.cells[row].awaited -= 1;
        if self.protocol() == Protocol::Rendezvous {
            self.steps.cells[row].busy = false;
            self.begin_next(state, row)?;
        }
        for &number in &ready {
            let source = self.steps_of(set).messages().get(index(number)).source;
            let row = index(self.place[source.index()]);
            if self.is_at_round(row, round).is_some() {
                self.begin_next(state, row)?;
                self.end_step_exchange(row);
            }
        }
        ready.clear();
        self.steps.ready = ready;
        self.end_step_exchange(row);
        Ok(())
    }

    /// Resumes a cell that has done all of its list.
    fn end_step_exchange(&mut self, row: usize) {
        let CellState::StepExchange(set) = self.states[row] else { return };
        let CellSteps { round, begun, busy, awaited } = self.steps.cells[row];
        if busy || awaited > 0 || begun < self.list_of(set, self.cells[row]).len() {
            return;
        }
        if let Some(current) = self.steps.rounds.get_mut(&round) {
            current.finished += 1;
            if current.finished == self.cells.len() {
                self.steps.rounds.remove(&round);
            }
        }
        self.make_ready(row);
    }

    /// What a cell waits for in an exchange by steps, and the cell that could change it.
    pub(super) fn awaited_in_steps(&self, row: usize, set: usize) -> (Awaiting, Option<CellId>) {
        let (cell, steps) = (self.cells[row], self.steps_of(set));
        let own = &self.steps.cells[row];
        let list = self.list_of(set, cell);
        if own.busy
            && let Some(&number) = list[..own.begun].last()
        {
            let message = steps.messages().get(index(number));
            if message.source == cell {
                return (Awaiting::Departure { target: message.target }, Some(message.target));
            }
        }
        let next = &list[own.begun.saturating_sub(usize::from(own.busy))..];
        let receives = |&&number: &&u32| steps.messages().get(index(number)).target == cell;
        let Some(&number) = next.iter().find(receives).or(list.iter().find(receives)) else {
            return (Awaiting::Running, None);
        };
        let message = steps.messages().get(index(number));
        let (set, connection) = (steps.set().name().to_owned(), message.pieces[0].connection);
        (Awaiting::Exchange { set, connection }, Some(message.source))
    }
}
