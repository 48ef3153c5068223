//! Who owns which id, if every rank owns a range: a directory that is distributed over the ranks.
//!
//! The ids are divided into blocks about as long as an average range. A rank that a hash of the
//! block selects knows the ranges that meet the block. Each rank registers its range for the blocks
//! that it covers, and asks for the blocks in which its ghosts are: about two messages for itself
//! and for each neighbour. Together there are fewer than three registrations for each rank, so no
//! rank holds much more than its share, except that one whose block has very many short ranges holds
//! at most as many of them as an average rank has ids.

use std::collections::BTreeMap;
use std::ops::Range;

use conset_ir::convert::{to_u64, to_usize};

use super::error::{RankFault, SetupFault};
use super::operation::sparse_exchange;
use super::rendezvous::home;
use crate::error::MpiError;
use crate::mpi::comm::Comm;

/// A range and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OwnedRange {
    start: u64,
    end: u64,
    owner: u64,
}

/// The logarithm of the length of blocks, given the ids that all ranks own together.
pub(super) fn block_bits(ids: u64, ranks: usize) -> u32 {
    (ids / to_u64(ranks)).max(1).next_power_of_two().trailing_zeros()
}

/// Sorted ids that one rank owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedRun {
    pub(super) owner: usize,
    /// The first id of the owner's range.
    pub(super) first: u64,
    /// Places among the ids.
    pub(super) places: Range<usize>,
}

/// Who owns some sorted ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// By their ids.
    pub(super) runs: Vec<OwnedRun>,
    /// The first id that no rank owns.
    pub(super) unowned: Option<u64>,
    /// A fault that this rank has found among the ranges that it was told.
    pub(super) fault: Option<RankFault>,
}

/// The owners of ids, which are sorted. Collective; `next_round` counts the calls of
/// [`sparse_exchange`].
pub(super) fn owners(
    comm: &Comm,
    mut next_round: impl FnMut() -> u64,
    own: &Range<u64>,
    (ids, bits): (&[u64], u32),
) -> Result<Owners, MpiError> {
    let ranks = comm.size();
    let mut messages = Messages::default();
    if !own.is_empty() {
        for block in own.start >> bits..=(own.end - 1) >> bits {
            messages.to(home(block, ranks)).registered.push([own.start, own.end]);
        }
    }
    for ghosts in ids.chunk_by(|a, b| a >> bits == b >> bits) {
        let to = messages.to(home(ghosts[0] >> bits, ranks));
        to.asked.push([ghosts[0], ghosts[ghosts.len() - 1]]);
    }
    let received = sparse_exchange(comm, next_round(), messages.encode())?;

    // The part of the directory that this rank has, and what it is asked.
    let (mut ranges, mut questions) = (Vec::new(), Vec::new());
    for (peer, words) in &received {
        let Some((count, pairs)) = words.split_first() else { continue };
        let pairs = pairs.as_chunks::<2>().0;
        let (registered, asked) = pairs.split_at(to_usize(*count).min(pairs.len()));
        let owner = to_u64(*peer);
        ranges.extend(registered.iter().map(|&[start, end]| OwnedRange { start, end, owner }));
        if !asked.is_empty() {
            questions.push((*peer, asked));
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    let fault = overlap(&ranges);
    let answer = |&(peer, asked): &(usize, &[[u64; 2]])| {
        let found = asked.iter().flat_map(|&[low, high]| meeting(&ranges, low, high));
        let mut found: Vec<_> = found.copied().collect();
        found.sort_unstable();
        found.dedup();
        (peer, found.iter().flat_map(|range| [range.start, range.end, range.owner]).collect())
    };
    let answers = sparse_exchange(comm, next_round(), questions.iter().map(answer).collect())?;

    let known = answers.iter().flat_map(|(_, words)| words.as_chunks::<3>().0);
    let mut known: Vec<_> =
        known.map(|&[start, end, owner]| OwnedRange { start, end, owner }).collect();
    known.sort_unstable();
    known.dedup();
    Ok(Owners { fault, ..own_ids(&known, ids) })
}

/// Deals sorted ids to sorted ranges. Ranges overlap if they are invalid; then the last one that
/// begins in time counts.
fn own_ids(ranges: &[OwnedRange], ids: &[u64]) -> Owners {
    let mut owners = Owners::default();
    let mut at = 0;
    let ends = ranges.iter().skip(1).map(|next| next.start).chain([u64::MAX]);
    for (range, next) in ranges.iter().zip(ends) {
        let place = |id: u64| at + ids[at..].partition_point(|&other| other < id);
        let places = place(range.start)..place(range.end.min(next));
        if places.is_empty() {
            continue;
        }
        owners.unowned = owners.unowned.or(ids[at..places.start].first().copied());
        at = places.end;
        owners.runs.push(OwnedRun { owner: to_usize(range.owner), first: range.start, places });
    }
    owners.unowned = owners.unowned.or(ids[at..].first().copied());
    owners
}

/// The ranges that have an id of `low..=high`, of ranges that do not overlap.
fn meeting(ranges: &[OwnedRange], low: u64, high: u64) -> &[OwnedRange] {
    let first = ranges.partition_point(|range| range.end <= low);
    let end = ranges.partition_point(|range| range.start <= high);
    &ranges[first.min(end)..end]
}

/// Two ranges with an id in common.
fn overlap(ranges: &[OwnedRange]) -> Option<RankFault> {
    let pair = ranges.windows(2).find(|pair| pair[1].start < pair[0].end)?;
    let owners = [pair[0].owner, pair[1].owner];
    let (rank, other) = (owners[0].min(owners[1]), owners[0].max(owners[1]));
    let fault = SetupFault::OwnedTwice { id: pair[1].start, other };
    Some(RankFault { rank: to_usize(rank), fault })
}

/// What one rank is told and asked: ranges, and the least and greatest id of each question.
#[derive(Default)]
struct Message {
    registered: Vec<[u64; 2]>,
    asked: Vec<[u64; 2]>,
}

/// Messages by rank.
#[derive(Default)]
struct Messages(BTreeMap<usize, Message>);

impl Messages {
    fn to(&mut self, rank: usize) -> &mut Message {
        self.0.entry(rank).or_default()
    }

    /// The number of registrations, these, then the questions.
    fn encode(self) -> Vec<(usize, Vec<u64>)> {
        let words = |(rank, mut message): (usize, Message)| {
            // Blocks of one rank that have the same home need one registration.
            message.registered.dedup();
            let mut words = vec![to_u64(message.registered.len())];
            words.extend(message.registered.into_iter().chain(message.asked).flatten());
            (rank, words)
        };
        self.0.into_iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnedRange, SetupFault, block_bits, meeting, overlap, own_ids};

    fn ranges(bounds: &[(u64, u64)]) -> Vec<OwnedRange> {
        let range = |(owner, &(start, end))| OwnedRange { start, end, owner };
        (0u64..).zip(bounds).map(range).collect()
    }

    #[test]
    fn questions_find_the_ranges_that_have_ids() {
        let all = ranges(&[(0, 10), (10, 20), (30, 40)]);
        let found =
            |low, high| meeting(&all, low, high).iter().map(|r| r.owner).collect::<Vec<_>>();
        assert_eq!(found(9, 10), [0, 1]);
        assert_eq!(found(20, 29), [0; 0]);
        assert_eq!(found(0, u64::MAX), [0, 1, 2]);
        assert_eq!(found(40, 50), [0; 0]);
    }

    #[test]
    fn sorted_ids_are_dealt_to_ranges() {
        let all = ranges(&[(0, 10), (10, 20), (30, 40)]);
        let dealt = |all: &[OwnedRange], ids: &[u64]| {
            let found = own_ids(all, ids);
            let runs = found.runs.into_iter().map(|run| (run.owner, run.first, run.places));
            (runs.collect::<Vec<_>>(), found.unowned)
        };
        assert_eq!(
            dealt(&all, &[3, 9, 10, 39]),
            (vec![(0, 0, 0..2), (1, 10, 2..3), (2, 30, 3..4)], None)
        );
        assert_eq!(dealt(&all, &[9, 20, 29, 30]), (vec![(0, 0, 0..1), (2, 30, 3..4)], Some(20)));
        assert_eq!(dealt(&all, &[12, 40]), (vec![(1, 10, 0..1)], Some(40)));
        assert_eq!(dealt(&all[1..], &[9]), (vec![], Some(9)));
        assert_eq!(dealt(&[], &[9, u64::MAX]), (vec![], Some(9)));
        // An invalid directory: of two ranges that have an id, the later one.
        let twice = ranges(&[(0, 10), (5, 7)]);
        assert_eq!(dealt(&twice, &[4, 5, 8]), (vec![(0, 0, 0..1), (1, 5, 1..2)], Some(8)));
    }

    #[test]
    fn overlapping_ranges_are_named() {
        assert_eq!(overlap(&ranges(&[(0, 10), (10, 20)])), None);
        let fault = overlap(&ranges(&[(0, 10), (9, 20)])).unwrap();
        assert_eq!((fault.rank, fault.fault), (0, SetupFault::OwnedTwice { id: 9, other: 1 }));
    }

    #[test]
    fn blocks_are_about_as_long_as_ranges() {
        assert_eq!(block_bits(0, 8), 0);
        assert_eq!(block_bits(8000, 8), 10);
        assert_eq!(block_bits(8 << 30, 8), 30);
    }
}
