//! Gathering words of all ranks at rank 0, which decides and distributes its decision.
//!
//! This serves building a world, switching phases and ending a run, not exchanges. It goes through
//! rank 0 so that a missing rank can be named, which no MPI collective does; it takes one message
//! each way for every rank.

use super::backoff::Backoff;
use super::comm::Comm;
use super::raw_requests::{SingleRequest, probe};
use crate::error::{MpiError, RunError};

const GATHER_TAG: i32 = 0;
const DECISION_TAG: i32 = 1;
/// The tag of notices, which are sent without gathering ([`super::mismatch`]).
pub(super) const NOTICE_TAG: i32 = 2;
/// The first tag that others may use.
pub(super) const TAGS: u64 = 3;

/// The participants, and how they wait.
#[derive(Clone, Copy)]
pub(super) struct Participants<'a> {
    /// Ranks that are heard: the first so many.
    pub(super) senders: usize,
    /// Ranks that receive the decision; those beyond `senders` only receive ([`receive_decision`]).
    pub(super) receivers: usize,
    /// Whether to wait without limit, if ranks may legitimately be late.
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
        let mut backoff = RankWait::new(comm, participants, 0, place);
        while !send.test()? {
            backoff.wait()?;
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
        let mut backoff = RankWait::new(comm, participants, *rank, place);
        while !send.test()? {
            backoff.wait()?;
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
    let mut backoff = RankWait::new(comm, participants, 0, place);
    let words = loop {
        if let Some(words) = probe(comm, 0, DECISION_TAG)? {
            break words;
        }
        backoff.wait()?;
    };
    let mut receive = SingleRequest::receive(comm, words, 0, DECISION_TAG)?;
    while !receive.test()? {
        backoff.wait()?;
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
    let mut senders: Vec<Vec<u64>> = vec![Vec::new(); participants.senders];
    let mut coming: Vec<Option<SingleRequest>> = Vec::new();
    coming.resize_with(participants.senders, || None);
    let mut missing: Vec<usize> = (1..participants.senders).collect();
    let mut backoff = comm.backoff();
    while !missing.is_empty() {
        let mut late = Vec::new();
        for &rank in &missing {
            if let Some(receive) = &mut coming[rank] {
                if receive.test()? {
                    senders[rank] = receive.words().to_vec();
                    continue;
                }
            } else if let Some(words) = probe(comm, rank, GATHER_TAG)? {
                coming[rank] = Some(SingleRequest::receive(comm, words, rank, GATHER_TAG)?);
            }
            late.push(rank);
        }
        if late.len() < missing.len() {
            backoff.renew();
        } else {
            match backoff.wait() {
                Ok(false) => {}
                Err(milliseconds) if !participants.unlimited => {
                    let place = place();
                    let missing = MpiError::Missing { rank: 0, milliseconds, place, awaited: late };
                    return Err(missing.into());
                }
                Ok(true) | Err(_) => (participants.meanwhile)()?,
            }
        }
        missing = late;
    }
    if let Some(first) = senders.first_mut() {
        *first = own;
    }
    Ok(senders)
}

/// A wait for one rank.
struct RankWait<'a> {
    backoff: Backoff,
    participants: Participants<'a>,
    rank: usize,
    awaited: usize,
    place: &'a dyn Fn() -> String,
}

impl<'a> RankWait<'a> {
    /// Twice the time-out of rank 0, so that it can name the missing rank first.
    fn new(
        comm: &Comm,
        participants: Participants<'a>,
        awaited: usize,
        place: &'a dyn Fn() -> String,
    ) -> Self {
        Self { backoff: comm.backoff_of(2), participants, rank: comm.rank(), awaited, place }
    }

    fn wait(&mut self) -> Result<(), RunError> {
        match self.backoff.wait() {
            Ok(false) => Ok(()),
            Err(milliseconds) if !self.participants.unlimited => Err(MpiError::Missing {
                rank: self.rank,
                milliseconds,
                place: (self.place)(),
                awaited: vec![self.awaited],
            }
            .into()),
            Ok(true) | Err(_) => (self.participants.meanwhile)(),
        }
    }
}
