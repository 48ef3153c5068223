//! Detection of cells whose collective calls over MPI do not match.
//!
//! Nothing is compared while the run makes progress. Every cell counts its collective calls, keeps
//! the last of them, and a digest of all. The digests are compared when ranks agree on a switch; if
//! they differ, the ranks together find the first step that differs.
//!
//! A rank that waits long in an exchange sends a notice of its step to the ranks of the cells that
//! it waits for, once, and looks for notices of others. The rank of the awaited cell sees the
//! notice when it waits itself. If its cell has made another call at that step, or has ended, the
//! run ends with an error that names both; otherwise the cell has not reached the step yet. Notices
//! that are never read are dropped with the run.
//!
//! If a cell is in another call than the source of words that have arrived, the heads of the
//! messages show it before the call returns ([`super::persistent_requests`]); the same call at
//! another source location is detected here.
//!
//! Single words and messages are not collective, so they are not compared.

use std::cell::RefCell;

use conset_ir::convert::{to_u32, to_u64, to_usize};
use conset_ir::{CellId, PhaseId};

use super::gather_at_root::{self, Participants};
use super::raw_requests::{SingleRequest, probe_any};
use super::run::{Rank, WaitState};
use crate::call::{Call, describe_mark, mismatch};
use crate::error::RunError;
use crate::port::{By, Context};

/// What all cells do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectiveStep {
    Switch(Context),
    Exchange(usize, By),
    /// A walk over a set as a tree.
    Walk(usize),
    /// An exchange of a set in sizes that only the sources know.
    SizedExchange(usize),
    /// A round of an epoch.
    Round,
}

impl CollectiveStep {
    fn words(self) -> [u64; 3] {
        match self {
            CollectiveStep::Switch(Context::Messages) => [0, 0, 0],
            CollectiveStep::Switch(Context::Phase(set, phase)) => {
                [1, to_u64(set), u64::from(phase.0)]
            }
            CollectiveStep::Exchange(set, By::Phases) => [2, to_u64(set), 0],
            CollectiveStep::Exchange(set, By::Messages) => [3, to_u64(set), 0],
            CollectiveStep::Walk(set) => [4, to_u64(set), 0],
            CollectiveStep::SizedExchange(set) => [5, to_u64(set), 0],
            CollectiveStep::Round => [6, 0, 0],
        }
    }

    fn read([kind, set, phase]: [u64; 3]) -> Self {
        match kind {
            0 => CollectiveStep::Switch(Context::Messages),
            1 => CollectiveStep::Switch(Context::Phase(to_usize(set), PhaseId(to_u32(phase)))),
            2 => CollectiveStep::Exchange(to_usize(set), By::Phases),
            3 => CollectiveStep::Exchange(to_usize(set), By::Messages),
            4 => CollectiveStep::Walk(to_usize(set)),
            5 => CollectiveStep::SizedExchange(to_usize(set)),
            _ => CollectiveStep::Round,
        }
    }
}

/// What a cell has done at a step, and the mark of the call ([`crate::call`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoggedStep {
    what: CollectiveStep,
    mark: u64,
}

/// Words of what was done.
const LOGGED_STEP_WORDS: usize = 4;

impl LoggedStep {
    fn words(self) -> [u64; LOGGED_STEP_WORDS] {
        let [kind, set, phase] = self.what.words();
        [kind, set, phase, self.mark]
    }

    fn read([kind, set, phase, mark]: [u64; LOGGED_STEP_WORDS]) -> Self {
        Self { what: CollectiveStep::read([kind, set, phase]), mark }
    }
}

/// Steps of a cell that are kept.
const LOG_LENGTH: usize = 64;

/// What one cell has done together with others.
#[derive(Clone, Debug)]
pub(super) struct StepLog {
    /// Steps started.
    pub(super) count: u64,
    /// A digest of all of them.
    pub(super) digest: u64,
    /// The last of them: the n-th at n modulo their number.
    last: [LoggedStep; LOG_LENGTH],
    /// The last step for which notices were sent.
    receivers: u64,
}

/// The place of a step in the log.
fn place(step: u64) -> usize {
    to_usize(step % to_u64(LOG_LENGTH))
}

impl StepLog {
    pub(super) fn new() -> Self {
        let nothing = LoggedStep { what: CollectiveStep::Switch(Context::Messages), mark: 0 };
        Self { count: 0, digest: 0, last: [nothing; LOG_LENGTH], receivers: 0 }
    }

    /// Another step; its number.
    #[inline]
    pub(super) fn push(&mut self, what: CollectiveStep, call: Call) -> u64 {
        self.count += 1;
        let mark = call.mark();
        self.last[place(self.count)] = LoggedStep { what, mark };
        let [kind, set, phase] = what.words();
        let word = kind ^ set << 2 ^ phase << 34 ^ mark << 20;
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.count
    }

    /// The step of a number, if the cell has come to it and it is still known.
    fn get(&self, step: u64) -> Option<LoggedStep> {
        let known = step <= self.count && self.count - step < to_u64(LOG_LENGTH);
        known.then(|| self.last[place(step)])
    }
}

/// A cell waits for another in a step.
#[derive(Clone, Copy, Debug)]
struct Notice {
    waiting: CellId,
    awaited: CellId,
    step: u64,
    what: LoggedStep,
}

/// The notices of a run.
#[derive(Default)]
pub(super) struct MismatchDetector {
    /// Under way.
    sends: RefCell<Vec<SingleRequest>>,
    /// Heard, of steps that the awaited cell has not come to.
    senders: RefCell<Vec<Notice>>,
}

impl Rank<'_> {
    /// Nothing has gone on for long: compares what the cells that wait are at with what those they
    /// wait for are.
    pub(super) fn compare_steps(&self) -> Result<(), RunError> {
        self.compare_own_cells()?;
        if self.comm.size() == 1 {
            return Ok(());
        }
        self.check_failures()?;
        let mut sends = std::mem::take(&mut *self.mismatch_detector.sends.borrow_mut());
        let rows = self.waits.borrow().len();
        for receivers in (0..rows).flat_map(|row| self.awaited_steps(row)) {
            let Some((rank, _)) = self.rank_map.find(receivers.awaited) else { continue };
            if rank != self.comm.rank() {
                let cells = [
                    u64::from(receivers.waiting.0),
                    u64::from(receivers.awaited.0),
                    receivers.step,
                ];
                let words = [&[self.comm.runs()][..], &cells, &receivers.what.words()].concat();
                sends.push(SingleRequest::send(
                    &self.comm,
                    words,
                    rank,
                    gather_at_root::NOTICE_TAG,
                )?);
            }
        }
        *self.mismatch_detector.sends.borrow_mut() = sends;
        self.receive_notices()?;
        let senders = std::mem::take(&mut *self.mismatch_detector.senders.borrow_mut());
        for receivers in senders {
            if self.is_to_come(&receivers)? {
                self.mismatch_detector.senders.borrow_mut().push(receivers);
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
        let own = self.rank_map.cells_of(self.comm.rank());
        let mut words = Vec::new();
        for (&cell, steps) in own.iter().zip(&*self.steps.borrow()) {
            if cells.contains(&cell) {
                let first = steps.count.saturating_sub(to_u64(LOG_LENGTH) - 1).max(1);
                let last = (first..=steps.count).filter_map(|step| steps.get(step));
                words.push(u64::from(cell.0));
                words.extend(last.flat_map(LoggedStep::words));
            }
        }
        let senders = self.rank_map.active();
        let meanwhile = || self.check_failures();
        let participants =
            Participants { senders, receivers: senders, unlimited: false, meanwhile: &meanwhile };
        let place = || "the comparison of what was exchanged".to_owned();
        let decide = |all: Vec<Vec<u64>>| {
            // As many words for each of the two, which are on one rank or on two.
            let words: Vec<u64> = all.into_iter().flatten().collect();
            let (one, two) = words.split_at(words.len() / 2);
            let steps = one[1..]
                .chunks_exact(LOGGED_STEP_WORDS)
                .zip(two[1..].chunks_exact(LOGGED_STEP_WORDS));
            // From the last on they are as many as their numbers.
            let first = count + 1 - to_u64(steps.len());
            let different = (first..).zip(steps).find(|(_, (a, b))| a != b);
            let name = |(step, (a, b)): (u64, (&[u64], &[u64]))| {
                [&[step][..], &one[..1], a, &two[..1], b].concat()
            };
            (different.map(name).unwrap_or_default(), false)
        };
        let decision =
            gather_at_root::gather_at_root(&self.comm, participants, words, &place, decide)?;
        let read = |words: &[u64]| {
            (CellId(to_u32(words[0])), LoggedStep::read([words[1], words[2], words[3], words[4]]))
        };
        Ok((decision.len() == 3 + 2 * LOGGED_STEP_WORDS).then(|| {
            let (one, two) = decision[1..].split_at(1 + LOGGED_STEP_WORDS);
            self.disagreement(decision[0], read(one), read(two))
        }))
    }

    /// Receives the notices of other ranks.
    pub(super) fn receive_notices(&self) -> Result<(), RunError> {
        while let Some((rank, words)) = probe_any(&self.comm, gather_at_root::NOTICE_TAG)? {
            let mut receive =
                SingleRequest::receive(&self.comm, words, rank, gather_at_root::NOTICE_TAG)?;
            while !receive.test()? {}
            // Of runs before this one nothing matters any more.
            if let [run, waiting, awaited, step, what @ ..] = receive.words()
                && *run == self.comm.runs()
                && let Ok(what) = <[u64; LOGGED_STEP_WORDS]>::try_from(what)
            {
                let [waiting, awaited] = [waiting, awaited].map(|&cell| CellId(to_u32(cell)));
                let receivers =
                    Notice { waiting, awaited, step: *step, what: LoggedStep::read(what) };
                self.mismatch_detector.senders.borrow_mut().push(receivers);
            }
        }
        Ok(())
    }

    /// The notices to send for a waiting cell, unless they were sent before.
    fn awaited_steps(&self, row: usize) -> Vec<Notice> {
        let waits = self.waits.borrow()[row];
        let steps = &mut self.steps.borrow_mut()[row];
        let step = match waits {
            WaitState::Exchange(_) | WaitState::Walk(_) | WaitState::Round(_) => steps.count,
            WaitState::Requests => match self.requests.oldest(row) {
                Some(oldest) if oldest.started => oldest.step,
                _ => return Vec::new(),
            },
            WaitState::Walks => match self.walks.oldest(row) {
                Some((step, _)) => step,
                None => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let Some(what) = steps.get(step).filter(|_| step > steps.receivers) else {
            return Vec::new();
        };
        steps.receivers = step;
        let waiting = self.rank_map.cells_of(self.comm.rank())[row];
        let (_, awaited) = self.awaited_by(row, waits);
        awaited.into_iter().map(|awaited| Notice { waiting, awaited, step, what }).collect()
    }

    /// Whether the awaited cell may still reach the step of a notice.
    fn is_to_come(&self, receivers: &Notice) -> Result<bool, RunError> {
        let own = self.rank_map.cells_of(self.comm.rank());
        let Ok(row) = own.binary_search(&receivers.awaited) else { return Ok(false) };
        let steps = self.steps.borrow();
        match steps[row].get(receivers.step) {
            Some(what) if what != receivers.what => Err(self.disagreement(
                receivers.step,
                (receivers.waiting, receivers.what),
                (receivers.awaited, what),
            )),
            None if steps[row].count < receivers.step => {
                if self.waits.borrow()[row] != WaitState::Ended {
                    return Ok(true);
                }
                let (ended, waiting) = (receivers.awaited, receivers.waiting);
                Err(RunError::Ended { ended, waiting, phase: self.together(receivers.what.what) })
            }
            _ => Ok(false),
        }
    }

    /// The cells of this rank must do the same in their last common step.
    fn compare_own_cells(&self) -> Result<(), RunError> {
        let (steps, waits) = (self.steps.borrow(), self.waits.borrow());
        let own = self.rank_map.cells_of(self.comm.rank());
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
        if waits[least] != WaitState::Ended {
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
        let together = matches!(
            waits,
            WaitState::Exchange(..)
                | WaitState::Readers(..)
                | WaitState::Requests
                | WaitState::Walk(_)
                | WaitState::Walks
                | WaitState::Round(_)
        );
        together && self.awaited_by(row, waits).1.contains(&cell)
    }

    fn disagreement(
        &self,
        step: u64,
        one: (CellId, LoggedStep),
        two: (CellId, LoggedStep),
    ) -> RunError {
        let (first, second) = if one.0 < two.0 { (one, two) } else { (two, one) };
        if one.1.what == two.1.what {
            let receivers = |(cell, did): (CellId, LoggedStep)| {
                let name = match did.what {
                    CollectiveStep::Switch(_) => {
                        format!("the switch to {}", self.together(did.what))
                    }
                    _ => self.together(did.what),
                };
                describe_mark(cell, step, name, did.mark)
            };
            return mismatch(receivers(first), receivers(second));
        }
        RunError::Disagree {
            first: first.0,
            phase: self.together(first.1.what),
            second: second.0,
            other: self.together(second.1.what),
        }
    }

    fn together(&self, what: CollectiveStep) -> String {
        match what {
            CollectiveStep::Switch(context) => self.context(context),
            CollectiveStep::Exchange(set, by) => {
                format!("the exchange of {}", self.set_name(set, by))
            }
            CollectiveStep::Walk(set) => {
                format!("the collective over {}", self.loaded.set(set).name())
            }
            CollectiveStep::SizedExchange(set) => {
                format!("the sized exchange of {}", self.loaded.set(set).name())
            }
            CollectiveStep::Round => "a round of an epoch".to_owned(),
        }
    }
}
