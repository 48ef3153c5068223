//! What cells do together, compared: the same switches and exchanges, in the same order.
//!
//! Nothing is compared while all goes well. Every cell counts what it does together with others,
//! keeps the last of it, and a digest of all. The digests are compared when ranks meet; if they
//! differ, the ranks look together for the first step that does.
//!
//! A rank that waits for long in an exchange tells the ranks of the cells that it waits for at
//! what it is, once, and looks for what others tell. The awaited cell's rank sees it when it waits
//! itself: there its cell has done something else in the same place, or has ended; then the run ends
//! with an error that names both. Or it is not there yet, and comes. What is told and not looked for goes
//! away with the run.
//!
//! Where a cell is in another call than a source of words that have arrived, their heads say so before
//! a word is read ([`super::wires`]); here the same call at another place of the program is found.
//!
//! What it does not do: words and messages, which are not done together.

use std::cell::RefCell;

use conset_ir::{CellId, PhaseId};

use super::meet::{self, Members};
use super::requests::{Single, probe};
use super::run::{Rank, Waits};
use crate::call::{Call, mismatch, told_by_mark};
use crate::error::RunError;
use crate::port::{By, Context};

/// What all cells do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    Switch(Context),
    Exchange(usize, By),
}

impl Together {
    fn words(self) -> [u64; 3] {
        match self {
            Together::Switch(Context::Messages) => [0, 0, 0],
            Together::Switch(Context::Phase(set, phase)) => [1, set as u64, u64::from(phase.0)],
            Together::Exchange(set, By::Phases) => [2, set as u64, 0],
            Together::Exchange(set, By::Messages) => [3, set as u64, 0],
        }
    }

    fn read([kind, set, phase]: [u64; 3]) -> Self {
        match kind {
            0 => Together::Switch(Context::Messages),
            1 => Together::Switch(Context::Phase(set as usize, PhaseId(phase as u32))),
            2 => Together::Exchange(set as usize, By::Phases),
            _ => Together::Exchange(set as usize, By::Messages),
        }
    }
}

/// What a cell has done at a step, and the mark of the call ([`crate::call`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Did {
    what: Together,
    mark: u64,
}

/// Words of what was done.
const DID: usize = 4;

impl Did {
    fn words(self) -> [u64; DID] {
        let [kind, set, phase] = self.what.words();
        [kind, set, phase, self.mark]
    }

    fn read([kind, set, phase, mark]: [u64; DID]) -> Self {
        Self { what: Together::read([kind, set, phase]), mark }
    }
}

/// Steps of a cell that are kept.
const KEPT: usize = 64;

/// What one cell has done together with others.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    /// Steps begun.
    pub(super) count: u64,
    /// A digest of all of them.
    pub(super) digest: u64,
    /// The last of them: the n-th at n modulo their number.
    last: [Did; KEPT],
    /// The last step of which others were told that they are awaited in it.
    told: u64,
}

impl Steps {
    pub(super) fn new() -> Self {
        let nothing = Did { what: Together::Switch(Context::Messages), mark: 0 };
        Self { count: 0, digest: 0, last: [nothing; KEPT], told: 0 }
    }

    /// Another step; its number.
    #[inline]
    pub(super) fn push(&mut self, what: Together, call: Call) -> u64 {
        self.count += 1;
        let mark = call.mark();
        self.last[self.count as usize % KEPT] = Did { what, mark };
        let [kind, set, phase] = what.words();
        let word = kind ^ set << 2 ^ phase << 34 ^ mark << 20;
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.count
    }

    /// The step of a number, if the cell has come to it and it is still known.
    fn get(&self, step: u64) -> Option<Did> {
        let known = step <= self.count && self.count - step < KEPT as u64;
        known.then(|| self.last[step as usize % KEPT])
    }
}

/// A cell waits for another in a step.
#[derive(Clone, Copy, Debug)]
struct Told {
    waiting: CellId,
    awaited: CellId,
    step: u64,
    what: Did,
}

/// What was told and heard in a run.
#[derive(Default)]
pub(super) struct Talk {
    /// Under way.
    sends: RefCell<Vec<Single>>,
    /// Heard, of steps that the awaited cell has not come to.
    heard: RefCell<Vec<Told>>,
}

impl Rank<'_> {
    /// Nothing has gone on for long: compares what the cells that wait are at with what those they
    /// wait for are.
    pub(super) fn compare_steps(&self) -> Result<(), RunError> {
        self.compare_own_cells()?;
        if self.comm.size() == 1 {
            return Ok(());
        }
        let mut sends = std::mem::take(&mut *self.talk.sends.borrow_mut());
        let rows = self.waits.borrow().len();
        for told in (0..rows).flat_map(|row| self.awaited_steps(row)) {
            let Some((rank, _)) = self.placement.find(told.awaited) else { continue };
            if rank != self.comm.rank() {
                let cells = [u64::from(told.waiting.0), u64::from(told.awaited.0), told.step];
                let words = [&[self.comm.runs()][..], &cells, &told.what.words()].concat();
                sends.push(Single::send(&self.comm, words, rank, meet::TELL)?);
            }
        }
        *self.talk.sends.borrow_mut() = sends;
        self.listen_to_others()?;
        let heard = std::mem::take(&mut *self.talk.heard.borrow_mut());
        for told in heard {
            if self.is_to_come(&told)? {
                self.talk.heard.borrow_mut().push(told);
            }
        }
        Ok(())
    }

    /// The first step that two cells, with as many steps, are known to have done differently. All
    /// ranks with cells meet for it.
    pub(super) fn first_difference(
        &self,
        cells: [CellId; 2],
        count: u64,
    ) -> Result<Option<RunError>, RunError> {
        let own = self.placement.of_rank(self.comm.rank());
        let mut words = Vec::new();
        for (&cell, steps) in own.iter().zip(&*self.steps.borrow()) {
            if cells.contains(&cell) {
                let first = steps.count.saturating_sub(KEPT as u64 - 1).max(1);
                let last = (first..=steps.count).filter_map(|step| steps.get(step));
                words.push(u64::from(cell.0));
                words.extend(last.flat_map(Did::words));
            }
        }
        let heard = self.placement.active();
        let members = Members { heard, told: heard, for_ever: false, meanwhile: &|| Ok(()) };
        let place = || "the comparison of what was exchanged".to_owned();
        let judge = |all: Vec<Vec<u64>>| {
            // As many words for each of the two, which are on one rank or on two.
            let words: Vec<u64> = all.into_iter().flatten().collect();
            let (one, two) = words.split_at(words.len() / 2);
            let steps = one[1..].chunks_exact(DID).zip(two[1..].chunks_exact(DID));
            // From the last on they are as many as their numbers.
            let first = count + 1 - steps.len() as u64;
            let different = (first..).zip(steps).find(|(_, (a, b))| a != b);
            let name = |(step, (a, b)): (u64, (&[u64], &[u64]))| {
                [&[step][..], &one[..1], a, &two[..1], b].concat()
            };
            (different.map(name).unwrap_or_default(), false)
        };
        let verdict = meet::meet(&self.comm, members, words, &place, judge)?;
        let read = |words: &[u64]| {
            (CellId(words[0] as u32), Did::read([words[1], words[2], words[3], words[4]]))
        };
        Ok((verdict.len() == 3 + 2 * DID).then(|| {
            let (one, two) = verdict[1..].split_at(1 + DID);
            self.disagreement(verdict[0], read(one), read(two))
        }))
    }

    /// Takes in what other ranks have told.
    pub(super) fn listen_to_others(&self) -> Result<(), RunError> {
        for rank in (0..self.comm.size()).filter(|&rank| rank != self.comm.rank()) {
            while let Some(words) = probe(&self.comm, rank, meet::TELL)? {
                let mut receive = Single::receive(&self.comm, words, rank, meet::TELL)?;
                while !receive.test()? {}
                // Of runs before this one nothing matters any more.
                if let [run, waiting, awaited, step, what @ ..] = receive.words()
                    && *run == self.comm.runs()
                    && let Ok(what) = <[u64; DID]>::try_from(what)
                {
                    let [waiting, awaited] = [waiting, awaited].map(|&cell| CellId(cell as u32));
                    let told = Told { waiting, awaited, step: *step, what: Did::read(what) };
                    self.talk.heard.borrow_mut().push(told);
                }
            }
        }
        Ok(())
    }

    /// For whom a cell waits in which of its steps, unless that was told before.
    fn awaited_steps(&self, row: usize) -> Vec<Told> {
        let waits = self.waits.borrow()[row];
        let steps = &mut self.steps.borrow_mut()[row];
        let (set, by, step) = match waits {
            Waits::Exchange(set, by) => (set, by, steps.count),
            Waits::Flights => match self.flights.oldest(row) {
                Some(oldest) if oldest.out => (oldest.set, By::Phases, oldest.step),
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let Some(what) = steps.get(step).filter(|_| step > steps.told) else { return Vec::new() };
        steps.told = step;
        let waiting = self.placement.of_rank(self.comm.rank())[row];
        let (_, awaited) = self.awaited_in(row, set, by);
        awaited.into_iter().map(|awaited| Told { waiting, awaited, step, what }).collect()
    }

    /// Whether the awaited cell may still come to what was told.
    fn is_to_come(&self, told: &Told) -> Result<bool, RunError> {
        let own = self.placement.of_rank(self.comm.rank());
        let Ok(row) = own.binary_search(&told.awaited) else { return Ok(false) };
        let steps = self.steps.borrow();
        match steps[row].get(told.step) {
            Some(what) if what != told.what => {
                Err(self.disagreement(told.step, (told.waiting, told.what), (told.awaited, what)))
            }
            None if steps[row].count < told.step => {
                if self.waits.borrow()[row] != Waits::Ended {
                    return Ok(true);
                }
                let (ended, waiting) = (told.awaited, told.waiting);
                Err(RunError::Ended { ended, waiting, phase: self.together(told.what.what) })
            }
            _ => Ok(false),
        }
    }

    /// The cells of this rank must do the same in their last common step.
    fn compare_own_cells(&self) -> Result<(), RunError> {
        let (steps, waits) = (self.steps.borrow(), self.waits.borrow());
        let own = self.placement.of_rank(self.comm.rank());
        let Some(least) = (0..own.len()).min_by_key(|&row| steps[row].count) else { return Ok(()) };
        let step = steps[least].count;
        let Some(what) = steps[least].get(step).filter(|_| step > 0) else { return Ok(()) };
        for row in 0..own.len() {
            match steps[row].get(step) {
                Some(other) if other != what => {
                    return Err(self.disagreement(step, (own[least], what), (own[row], other)));
                }
                _ => {}
            }
        }
        if waits[least] != Waits::Ended {
            return Ok(());
        }
        let ended = own[least];
        let in_vain = |&row: &usize| steps[row].count > step && self.waits_for(row, ended);
        let Some(row) = (0..own.len()).find(in_vain) else { return Ok(()) };
        let Some(next) = steps[row].get(step + 1) else { return Ok(()) };
        Err(RunError::Ended { ended, waiting: own[row], phase: self.together(next.what) })
    }

    /// Whether a cell waits for another in an exchange.
    fn waits_for(&self, row: usize, cell: CellId) -> bool {
        let waits = self.waits.borrow()[row];
        matches!(waits, Waits::Exchange(..) | Waits::Readers(..) | Waits::Flights)
            && self.awaited_by(row, waits).1.contains(&cell)
    }

    fn disagreement(&self, step: u64, one: (CellId, Did), two: (CellId, Did)) -> RunError {
        let (first, second) = if one.0 < two.0 { (one, two) } else { (two, one) };
        if one.1.what == two.1.what {
            let told = |(cell, did): (CellId, Did)| {
                let name = match did.what {
                    Together::Switch(_) => format!("the switch to {}", self.together(did.what)),
                    Together::Exchange(..) => self.together(did.what),
                };
                told_by_mark(cell, step, name, did.mark)
            };
            return mismatch(told(first), told(second));
        }
        RunError::Disagree {
            first: first.0,
            phase: self.together(first.1.what),
            second: second.0,
            other: self.together(second.1.what),
        }
    }

    fn together(&self, what: Together) -> String {
        match what {
            Together::Switch(context) => self.context(context),
            Together::Exchange(set, by) => format!("the exchange of {}", self.set_name(set, by)),
        }
    }
}
