//! Rounds of epochs by active messages, on machines that have them.
//!
//! The packets are in [`conset_fabric::messages::active`]. A cell leaves what it has for others on the [`RoundBoard`] and waits. When all cells have, and nothing
//! else is under way, the machine carries the round out, and all cells go on when it has ended. So a
//! round costs what its packets, their handlers and polls, and its end cost; cells wait for the last
//! one to come, as they do in every round.

use std::cell::RefCell;

use conset_fabric::messages::{ActiveMessages, Put};
use conset_fabric::{FaultKind, Payload};
use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId};

use super::{CellState, FabricDriver};
use crate::epochs::routing::{ByteLists, ItemShape, Packing, Round, pack, unpack};
use crate::error::{EpochUse, RunError};
use crate::fabric_port::FabricState;

/// The lists of a cell, and the place of the first cell that sends to whomever; or what it did wrong.
type BoardResult = Result<(ByteLists, Option<usize>), EpochUse>;

/// What the cells of a run have for each other in a round, and what the last one brought.
#[derive(Debug, Default)]
pub(crate) struct RoundBoard {
    /// Each cell and the items that it sends, by place.
    shapes: Vec<Option<(CellId, ItemShape)>>,
    /// What cells have for themselves, and from the others; by place.
    arrived: Vec<ByteLists>,
    /// The first cell that sends.
    first: Option<usize>,
    puts: Vec<Put>,
    /// Per put: the places of source and target, and the bytes.
    ends: Vec<(usize, usize, usize)>,
    words: PutWords,
    /// What each cell gets, by place.
    outcomes: Vec<Option<BoardResult>>,
}

/// The words of puts, as sent and as received.
#[derive(Debug, Default)]
struct PutWords {
    sent: Vec<Vec<u64>>,
    received: Vec<Vec<u64>>,
}

impl Payload for PutWords {
    /// With faults there may be more words than the put has; the round fails then.
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.sent[from.0.index()].get(index(from.1)).copied().unwrap_or(0);
        if let Some(place) = self.received[to.0.index()].get_mut(index(to.1)) {
            *place = word;
        }
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        if let Some(place) = self.received[to.0.index()].get_mut(index(to.1)) {
            *place ^= u64::from(bits);
        }
    }
}

impl RoundBoard {
    /// A cell takes part in a round.
    pub(crate) fn post(&mut self, round: Round<'_>) {
        let Round { live, own, shape, lists, .. } = round;
        self.shapes.resize(live.len(), None);
        self.arrived.resize(live.len(), Vec::new());
        self.outcomes.resize_with(live.len(), || None);
        self.shapes[own] = Some((live[own], shape));
        if !lists.is_empty() {
            self.first = Some(self.first.map_or(own, |first| first.min(own)));
        }
        for (target, bytes) in lists {
            if target == own {
                self.arrived[own].push((own, bytes.into_owned()));
                continue;
            }
            let mut words = Vec::new();
            pack(&bytes, Packing::WordByWord.step(shape), &mut words);
            self.puts.push(Put {
                source: live[own],
                target: live[target],
                words: to_u32(words.len()),
                item_words: to_u32(shape.words.max(1)),
            });
            self.ends.push((own, target, bytes.len()));
            self.words.received.push(vec![0; words.len()]);
            self.words.sent.push(words);
        }
    }

    /// What the last round brought a cell.
    pub(crate) fn take(&mut self, own: usize) -> BoardResult {
        self.outcomes[own].take().expect("a cell is resumed when its round has ended")
    }

    /// Carries out the round; its clocks.
    fn deliver(&mut self, active: &mut ActiveMessages) -> Result<u64, FaultKind> {
        let shapes: Vec<_> = std::mem::take(&mut self.shapes).into_iter().flatten().collect();
        let (puts, ends) = (std::mem::take(&mut self.puts), std::mem::take(&mut self.ends));
        let mut words = std::mem::take(&mut self.words);
        let mut arrived = std::mem::take(&mut self.arrived);
        let first = self.first.take();
        let wrong =
            |own: ItemShape| shapes.iter().find_map(|shape| own.check(shape.0, shape.1).err());
        if shapes.iter().any(|shape| shape.1 != shapes[0].1) {
            // Every cell finds one that differs, so nothing is delivered.
            for (outcome, own) in self.outcomes.iter_mut().zip(&shapes) {
                *outcome = wrong(own.1).map(Err);
            }
            return Ok(0);
        }
        let clocks = active.run(&puts, &mut words, &mut |_| ())?;
        for ((source, target, bytes), words) in ends.into_iter().zip(&words.received) {
            let step = Packing::WordByWord.step(shapes[source].1);
            arrived[target].push((source, unpack(words, step, bytes)));
        }
        for (outcome, lists) in self.outcomes.iter_mut().zip(arrived) {
            *outcome = Some(Ok((lists, first)));
        }
        Ok(clocks)
    }
}

impl FabricDriver<'_> {
    /// All cells wait in a round: lets other messages arrive, and carries it out.
    pub(super) fn perform_round(&mut self, shared: &RefCell<FabricState>) -> Result<(), RunError> {
        while self.advance(shared)? {}
        let machine = self.setup.loaded.image.machine();
        let (start, faults) = (self.now(), self.take_faults());
        let active = self.packets.get_or_insert_with(|| {
            let active = ActiveMessages::new(machine);
            Box::new(active.expect("cells wait in rounds on machines with active messages"))
        });
        active.pass_until(start);
        faults.into_iter().for_each(|faults| active.give_faults(faults));
        let delivered = shared.borrow_mut().board.deliver(active);
        let (taken_in, faults) = (active.now(), active.take_faults());
        let clocks = delivered.map_err(|kind| self.round_fault(kind, taken_in))?;
        // The end of the round is the control network's.
        self.pass_until(taken_in);
        faults.into_iter().for_each(|faults| self.give_faults(faults));
        let clocks = clocks - (self.now() - start);
        self.in_round = 0;
        for row in 0..self.cells.len() {
            self.states[row] = CellState::Computing;
            self.compute(row, clocks);
        }
        Ok(())
    }

    /// The first cell that others wait for in a round.
    pub(super) fn absent_in_round(&self) -> Option<CellId> {
        let row = self.states.iter().position(|&state| state != CellState::Round)?;
        Some(self.cells[row])
    }
}
