//! A slow and simple simulator of the emulated machine, written from `docs/machine.md` alone.
//!
//! It exists to be compared with `conset-fabric`, with which it shares no code and no author: a
//! difference in any clock is an error in the specification, in the fabric or here. So it has the
//! structure of the specification and no optimisation. Every word is moved; comments give the
//! numbers of the rules. It depends on `conset-ir` for descriptions only (images, sets, plans,
//! parameters, the sizes of a topology) and numbers the links of a machine itself.
//!
//! | module | rules |
//! |---|---|
//! | [`wiring`] | T: cells and links |
//! | `network` | N: channels and links |
//! | [`phases`] | A, C, X: agents, the order of events in a clock, a set in phases |
//! | [`routes`] | R: routes of messages |
//! | `message_engine` | M1 to M16: messages in the network, and cells under both protocols |
//! | [`messages`] | M17 to M19: a set by messages |
//! | [`steps`] | S: step plans |
//! | [`active`] | P: rounds of active messages |
//!
//! The input must be valid, which the checker decides. Invalid input may panic or end in
//! [`Failure::Stuck`]. Time and memory are proportional to the words moved.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]

pub mod active;
mod message_engine;
pub mod messages;
mod network;
pub mod phases;
pub mod routes;
pub mod steps;
pub mod wiring;

use std::fmt;

/// Why a simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// No route leads from the first cell to the second one.
    NoRoute(usize, usize),
    /// Nothing can happen any more at this clock, but not everything was sent and received.
    Stuck(u64),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute(source, target) => write!(f, "no route from c{source} to c{target}"),
            Self::Stuck(clock) => write!(f, "nothing can happen after clock {clock}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Removes the things that end at clock `now` from a list of things under way, in the order in
/// which they started.
fn ended<T>(under_way: &mut Vec<(u64, T)>, now: u64) -> Vec<T> {
    let (ended, rest) = under_way.drain(..).partition(|(end, _)| *end == now);
    *under_way = rest;
    let ended: Vec<(u64, T)> = ended;
    ended.into_iter().map(|(_, thing)| thing).collect()
}

/// The earliest end of the things under way.
fn earliest<T>(under_way: &[(u64, T)]) -> Option<u64> {
    under_way.iter().map(|(end, _)| *end).min()
}
