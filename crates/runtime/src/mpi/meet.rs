//! What all ranks do together now and then: rank 0 hears everybody, judges, and tells everybody.
//!
//! This is for building a world, switching phases and ending a run, not for exchanges. It goes
//! through rank 0 so that a rank that does not come can be named, which no collective of MPI
//! does; it takes one message each way for every rank.

use super::comm::Comm;
use super::error::MpiError;
use super::requests::{Single, probe};
use super::wait::Patience;
use crate::error::RunError;

const UP: i32 = 0;
const DOWN: i32 = 1;
/// For what is told without a meeting ([`super::steps`]).
pub(super) const TELL: i32 = 2;
/// The first tag that others may use.
pub(super) const TAGS: u64 = 3;

/// Who meets, and how they wait.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    /// Ranks that are heard: the first so many.
    pub(super) heard: usize,
    /// Ranks that are told; those beyond `heard` only listen ([`listen`]).
    pub(super) told: usize,
    /// Whether to wait for ever, where ranks may rightly come late.
    pub(super) for_ever: bool,
    /// Looks, now and then while it takes long, whether somebody cannot come.
    pub(super) meanwhile: &'a dyn Fn() -> Result<(), RunError>,
}

/// Hands in words, and gets what rank 0 makes of the words of all ranks that are heard, in rank
/// order. `place` says for error texts what this is about. Whether those that only listen are
/// told depends on the judgement.
pub(super) fn meet(
    comm: &Comm,
    members: Members<'_>,
    words: Vec<u64>,
    place: &dyn Fn() -> String,
    judge: impl FnOnce(Vec<Vec<u64>>) -> (Vec<u64>, bool),
) -> Result<Vec<u64>, RunError> {
    if comm.rank() > 0 {
        let mut send = Single::send(comm, words, 0, UP)?;
        let mut patience = Wait::new(comm, members, 0, place);
        while !send.test()? {
            patience.wait()?;
        }
        return listen(comm, members, place);
    }
    let (verdict, tell_all) = judge(hear_all(comm, members, words, place)?);
    let told = if tell_all { members.told } else { members.heard };
    let mut sends = Vec::new();
    for rank in 1..told {
        sends.push((rank, Single::send(comm, verdict.clone(), rank, DOWN)?));
    }
    for (rank, send) in &mut sends {
        let mut patience = Wait::new(comm, members, *rank, place);
        while !send.test()? {
            patience.wait()?;
        }
    }
    Ok(verdict)
}

/// Gets the next judgement of rank 0.
pub(super) fn listen(
    comm: &Comm,
    members: Members<'_>,
    place: &dyn Fn() -> String,
) -> Result<Vec<u64>, RunError> {
    let mut patience = Wait::new(comm, members, 0, place);
    let words = loop {
        if let Some(words) = probe(comm, 0, DOWN)? {
            break words;
        }
        patience.wait()?;
    };
    let mut receive = Single::receive(comm, words, 0, DOWN)?;
    while !receive.test()? {
        patience.wait()?;
    }
    Ok(receive.words().to_vec())
}

/// On rank 0: the words of all ranks.
fn hear_all(
    comm: &Comm,
    members: Members<'_>,
    own: Vec<u64>,
    place: &dyn Fn() -> String,
) -> Result<Vec<Vec<u64>>, RunError> {
    let mut heard: Vec<Vec<u64>> = vec![Vec::new(); members.heard];
    let mut coming: Vec<Option<Single>> = Vec::new();
    coming.resize_with(members.heard, || None);
    let mut missing: Vec<usize> = (1..members.heard).collect();
    let mut patience = comm.patience();
    while !missing.is_empty() {
        let mut late = Vec::new();
        for &rank in &missing {
            if let Some(receive) = &mut coming[rank] {
                if receive.test()? {
                    heard[rank] = receive.words().to_vec();
                    continue;
                }
            } else if let Some(words) = probe(comm, rank, UP)? {
                coming[rank] = Some(Single::receive(comm, words, rank, UP)?);
            }
            late.push(rank);
        }
        if late.len() < missing.len() {
            patience.renew();
        } else {
            match patience.wait() {
                Ok(false) => {}
                Err(milliseconds) if !members.for_ever => {
                    let place = place();
                    let missing = MpiError::Missing { rank: 0, milliseconds, place, awaited: late };
                    return Err(missing.into());
                }
                Ok(true) | Err(_) => (members.meanwhile)()?,
            }
        }
        missing = late;
    }
    if let Some(first) = heard.first_mut() {
        *first = own;
    }
    Ok(heard)
}

/// A wait for one rank.
struct Wait<'a> {
    patience: Patience,
    members: Members<'a>,
    rank: usize,
    awaited: usize,
    place: &'a dyn Fn() -> String,
}

impl<'a> Wait<'a> {
    /// Twice the time-out of rank 0, so that it can say first who is missing.
    fn new(
        comm: &Comm,
        members: Members<'a>,
        awaited: usize,
        place: &'a dyn Fn() -> String,
    ) -> Self {
        Self { patience: comm.patience_of(2), members, rank: comm.rank(), awaited, place }
    }

    fn wait(&mut self) -> Result<(), RunError> {
        match self.patience.wait() {
            Ok(false) => Ok(()),
            Err(milliseconds) if !self.members.for_ever => Err(MpiError::Missing {
                rank: self.rank,
                milliseconds,
                place: (self.place)(),
                awaited: vec![self.awaited],
            }
            .into()),
            Ok(true) | Err(_) => (self.members.meanwhile)(),
        }
    }
}
