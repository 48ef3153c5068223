//! What all ranks do together now and then: rank 0 hears everybody, judges, and tells everybody.
//!
//! This is for building a world, switching phases and ending a run, not for exchanges. It goes
//! through rank 0 so that a rank that does not come can be named, which no collective of MPI
//! does; it takes one message each way for every rank.

use super::comm::Comm;
use super::error::MpiError;
use super::requests::{Single, probe};

const UP: i32 = 0;
const DOWN: i32 = 1;
/// The first tag that others may use.
pub(super) const TAGS: u64 = 2;

/// Hands in words, and gets what rank 0 makes of the words of all ranks, in rank order. `place`
/// says for error texts what this is about.
pub(super) fn meet(
    comm: &Comm,
    words: Vec<u64>,
    place: &dyn Fn() -> String,
    judge: impl FnOnce(Vec<Vec<u64>>) -> Vec<u64>,
) -> Result<Vec<u64>, MpiError> {
    if comm.rank() == 0 {
        let verdict = judge(hear_all(comm, words, place)?);
        let mut sends = Vec::new();
        for rank in 1..comm.size() {
            sends.push(Single::send(comm, verdict.clone(), rank, DOWN)?);
        }
        while let Some(mut send) = sends.pop() {
            let rank = sends.len() + 1;
            wait(comm, 1, rank, place, || send.test())?;
        }
        Ok(verdict)
    } else {
        let mut send = Single::send(comm, words, 0, UP)?;
        wait(comm, 2, 0, place, || send.test())?;
        // Rank 0 is given twice the time, so that it can say first who is missing.
        let mut length = None;
        wait(comm, 2, 0, place, || {
            length = probe(comm, Some(0), Some(DOWN))?;
            Ok(length.is_some())
        })?;
        let length = length.map_or(0, |(_, _, words)| words);
        let mut receive = Single::receive(comm, length, 0, DOWN)?;
        wait(comm, 2, 0, place, || receive.test())?;
        Ok(receive.words().to_vec())
    }
}

/// On rank 0: the words of all ranks.
fn hear_all(
    comm: &Comm,
    own: Vec<u64>,
    place: &dyn Fn() -> String,
) -> Result<Vec<Vec<u64>>, MpiError> {
    let mut heard: Vec<Option<Vec<u64>>> = vec![None; comm.size()];
    let mut coming: Vec<Option<Single>> = Vec::new();
    coming.resize_with(comm.size(), || None);
    heard[0] = Some(own);
    let mut missing: Vec<usize> = (1..comm.size()).collect();
    let mut patience = comm.patience();
    while !missing.is_empty() {
        let before = missing.len();
        for &rank in &missing {
            if let Some(receive) = &mut coming[rank] {
                if receive.test()? {
                    heard[rank] = Some(receive.words().to_vec());
                }
            } else if let Some((_, _, words)) = probe(comm, Some(rank), Some(UP))? {
                coming[rank] = Some(Single::receive(comm, words, rank, UP)?);
            }
        }
        missing.retain(|&rank| heard[rank].is_none());
        if missing.len() < before {
            patience.renew();
        } else if let Err(milliseconds) = patience.wait() {
            let place = place();
            return Err(MpiError::Missing { rank: 0, milliseconds, place, awaited: missing });
        }
    }
    Ok(heard.into_iter().flatten().collect())
}

/// Tries until something is done, `patience` time-outs at most.
fn wait(
    comm: &Comm,
    patience: u32,
    rank: usize,
    place: &dyn Fn() -> String,
    mut done: impl FnMut() -> Result<bool, MpiError>,
) -> Result<(), MpiError> {
    let mut patience = comm.patience_of(patience);
    while !done()? {
        if let Err(milliseconds) = patience.wait() {
            return Err(MpiError::Missing {
                rank: comm.rank(),
                milliseconds,
                place: place(),
                awaited: vec![rank],
            });
        }
    }
    Ok(())
}
