//! Gathering words of all ranks at rank 0, which decides and distributes its decision.
//!
//! It serves the comparison of images when a run starts, every switch of phases or to messages
//! (those within a call that walks a set element by element included), and the end of a run.
//! Exchanges of whole sets do without. It goes through rank 0 so that a rank that does not come can
//! be named, which no MPI collective does. The price is one message each way for every rank, and
//! work on rank 0 in proportion to the number of ranks.

use super::backoff::{Backoff, Waited};
use super::comm::Comm;
use super::raw_requests::{SingleRequest, probe, probe_any};
use crate::error::{MpiError, RunError};

const GATHER_TAG: i32 = 0;
const DECISION_TAG: i32 = 1;
/// The tag of notices, which are sent without gathering ([`super::mismatch`]).
pub(super) const NOTICE_TAG: i32 = 2;
/// The tag of announced failures ([`super::failure`]).
pub(super) const FAILURE_TAG: i32 = 3;
/// The tag of images ([`super::broadcast`]).
pub(super) const BROADCAST_TAG: i32 = 4;
/// The first tag that others may use.
pub(super) const TAGS: u64 = 5;

/// The participants, and how they wait.
#[derive(Clone, Copy)]
pub(super) struct Participants<'a> {
    /// Ranks that are heard: the first so many.
    pub(super) senders: usize,
    /// Ranks that receive the decision; those beyond `senders` only receive ([`receive_decision`]).
    pub(super) receivers: usize,
    /// Whether to wait without reports and time-out, if ranks may legitimately be late.
    pub(super) unlimited: bool,
    /// Called now and then during a long wait, to detect ranks that cannot come.
    pub(super) meanwhile: &'a dyn Fn() -> Result<(), RunError>,
}

/// Hands in words, and gets what rank 0 makes of the words of all ranks that are heard, in rank
/// order. `place` says for error texts what this is about. Whether those that only listen are
/// informed depends on the decision.
pub(super) fn gather_at_root(
    comm: &Comm,
    participants: Participants<'_>,
    words: Vec<u64>,
    place: &dyn Fn() -> String,
    decide: impl FnOnce(Vec<Vec<u64>>) -> (Vec<u64>, bool),
) -> Result<Vec<u64>, RunError> {
    if comm.rank() > 0 {
        let mut send = SingleRequest::send(comm, words, 0, GATHER_TAG)?;
        let mut wait = RankWait::after_root(comm, participants, place);
        while !send.test()? {
            wait.wait(|| vec![0])?;
        }
        return receive_decision(comm, participants, place);
    }
    let (decision, tell_all) = decide(gather(comm, participants, words, place)?);
    let receivers = if tell_all { participants.receivers } else { participants.senders };
    let mut sends = Vec::new();
    for rank in 1..receivers {
        sends.push((rank, SingleRequest::send(comm, decision.clone(), rank, DECISION_TAG)?));
    }
    for (rank, send) in &mut sends {
        let mut wait = RankWait::after_root(comm, participants, place);
        while !send.test()? {
            wait.wait(|| vec![*rank])?;
        }
    }
    Ok(decision)
}

/// Gets the next judgement of rank 0.
pub(super) fn receive_decision(
    comm: &Comm,
    participants: Participants<'_>,
    place: &dyn Fn() -> String,
) -> Result<Vec<u64>, RunError> {
    let mut wait = RankWait::after_root(comm, participants, place);
    let words = loop {
        if let Some(words) = probe(comm, 0, DECISION_TAG)? {
            break words;
        }
        wait.wait(|| vec![0])?;
    };
    let mut receive = SingleRequest::receive(comm, words, 0, DECISION_TAG)?;
    while !receive.test()? {
        wait.wait(|| vec![0])?;
    }
    Ok(receive.words().to_vec())
}

/// On rank 0: the words of all ranks.
fn gather(
    comm: &Comm,
    participants: Participants<'_>,
    own: Vec<u64>,
    place: &dyn Fn() -> String,
) -> Result<Vec<Vec<u64>>, RunError> {
    let mut heard: Vec<Option<Vec<u64>>> = vec![None; participants.senders];
    if let Some(first) = heard.first_mut() {
        *first = Some(own);
    }
    let mut left = participants.senders.saturating_sub(1);
    let mut wait = RankWait::new(comm, participants, comm.backoff(), place);
    while left > 0 {
        // No rank sends another time before it has the decision.
        let Some((rank, words)) = probe_any(comm, GATHER_TAG)? else {
            wait.wait(|| (0..heard.len()).filter(|&rank| heard[rank].is_none()).collect())?;
            continue;
        };
        let mut receive = SingleRequest::receive(comm, words, rank, GATHER_TAG)?;
        wait.backoff.renew();
        while !receive.test()? {
            wait.wait(|| vec![rank])?;
        }
        if let Some(heard) = heard.get_mut(rank) {
            left -= usize::from(heard.replace(receive.words().to_vec()).is_none());
        }
    }
    Ok(heard.into_iter().map(Option::unwrap_or_default).collect())
}

/// A wait for other ranks.
struct RankWait<'a> {
    comm: &'a Comm,
    backoff: Backoff,
    participants: Participants<'a>,
    place: &'a dyn Fn() -> String,
}

impl<'a> RankWait<'a> {
    fn new(
        comm: &'a Comm,
        participants: Participants<'a>,
        backoff: Backoff,
        place: &'a dyn Fn() -> String,
    ) -> Self {
        Self { comm, backoff, participants, place }
    }

    /// Twice as patient as rank 0, so that rank 0 can name the missing rank first.
    fn after_root(
        comm: &'a Comm,
        participants: Participants<'a>,
        place: &'a dyn Fn() -> String,
    ) -> Self {
        Self::new(comm, participants, comm.backoff_of(2), place)
    }

    /// Waits a moment for the ranks that `awaited` gives.
    fn wait(&mut self, awaited: impl Fn() -> Vec<usize>) -> Result<(), RunError> {
        let missing = |milliseconds| MpiError::Missing {
            rank: self.comm.rank(),
            milliseconds,
            place: (self.place)(),
            awaited: awaited(),
        };
        match self.backoff.wait() {
            Waited::Briefly => return Ok(()),
            Waited::TimedOut(time) if !self.participants.unlimited => {
                return Err(missing(time).into());
            }
            Waited::Report(time) if !self.participants.unlimited => {
                self.comm.report_wait(&missing(time));
            }
            _ => {}
        }
        (self.participants.meanwhile)()
    }
}
