//! Who holds which ids: entries with equal ids meet at a rank that a hash of the id selects.
//!
//! Every rank sends its ids there and learns which other ranks have them. No rank needs to know
//! where ids are, and none holds more than its share of them. The messages are routed over the
//! ranks ([`route_records`]), so a rank sends log2 P each way however the ids are distributed.

use conset_ir::convert::{index, to_u32, to_u64, to_usize};

use super::error::{RankFault, SetupFault};
use super::operation::route_records;
use crate::error::MpiError;
use crate::mpi::comm::Comm;

/// Ranks on which an id may be. Each of them exchanges its copy with all others.
const RANKS_LIMIT: usize = 1024;

/// An entry that is also on another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedEntry {
    /// The other rank.
    pub(super) peer: u32,
    pub(super) id: u64,
    /// The position in this rank's vector.
    pub(super) position: u32,
    /// Of ids with owners: the entry is owned here.
    pub(super) owned: bool,
}

/// How equal ids belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdUse {
    /// All are copies of one value: each rank meets each other.
    Copies,
    /// One is the owner, the others are ghosts: the owner meets each ghost.
    Owned(usize),
}

/// A hash whose upper bits depend on all bits of the number (the finaliser of `MurmurHash3`).
pub(super) fn hash(number: u64) -> u64 {
    let mut bits = number;
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// The rank that a hash selects.
pub(super) fn home(number: u64, ranks: usize) -> usize {
    to_usize((u128::from(hash(number)) * u128::from(to_u64(ranks))) >> 64)
}

/// Source, position, and whether it is owned, in one word.
const OWNED: u64 = 1 << 63;

fn pack(rank: u32, position: u32, owned: bool) -> u64 {
    u64::from(rank) << 32 | u64::from(position) | if owned { OWNED } else { 0 }
}

fn unpack(word: u64) -> (u32, u32, bool) {
    (to_u32((word & !OWNED) >> 32), to_u32(word & u64::from(u32::MAX)), word & OWNED != 0)
}

/// The entries of this rank that others have, by peer and id; and a fault that this rank has found
/// among the ids that it was sent. Collective.
pub(super) fn shared_entries(
    comm: &Comm,
    ids: &[u64],
    ids_use: IdUse,
) -> Result<(Vec<SharedEntry>, Option<RankFault>), MpiError> {
    let (rank, ranks) = (to_u32(comm.rank()), comm.size());
    let owned = match ids_use {
        IdUse::Copies => 0,
        IdUse::Owned(owned) => owned,
    };
    let places = ids.iter().enumerate();
    let sent = places.map(|(position, &id)| [id, pack(rank, to_u32(position), position < owned)]);
    let mut met = route_records(comm, sent.collect(), |record| home(record[0], ranks))?;
    // By id, then owners last, and by rank and position.
    met.sort_unstable();
    let (mut answers, mut fault) = (Vec::new(), None);
    for holders in met.chunk_by(|a, b| a[0] == b[0]) {
        if let Err(found) = meet(holders, ids_use, &mut answers) {
            fault = fault.or(Some(found));
        }
    }
    drop(met);
    let mine = route_records(comm, answers, |record| to_usize(record[0] >> 32))?;
    let entry = |record: &[u64; 2]| {
        let (peer, position, owned) = unpack(record[1]);
        SharedEntry { peer, id: ids[index(position)], position, owned }
    };
    let mut entries: Vec<SharedEntry> = mine.iter().map(entry).collect();
    entries.sort_unstable();
    Ok((entries, fault))
}

/// What the holders of an id are told: the destination in the upper half of the first word; then the
/// peer, the destination's position and whether it owns the entry.
fn meet(
    holders: &[[u64; 2]],
    ids_use: IdUse,
    answers: &mut Vec<[u64; 2]>,
) -> Result<(), RankFault> {
    let id = holders[0][0];
    let places = || holders.iter().map(|record| unpack(record[1]));
    let mut tell = |to: (u32, u32, bool), peer: (u32, u32, bool)| {
        answers.push([u64::from(to.0) << 32, pack(peer.0, to.1, to.2)]);
    };
    let at = |rank: u32, fault| RankFault { rank: index(rank), fault };
    let mut sorted: Vec<_> = places().collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (first, second) = (pair[0].1, pair[1].1);
        return Err(at(pair[0].0, SetupFault::Repeated { id, first, second }));
    }
    match ids_use {
        IdUse::Copies => {
            if sorted.len() > RANKS_LIMIT {
                let (ranks, limit) = (to_u64(sorted.len()), to_u64(RANKS_LIMIT));
                return Err(at(sorted[0].0, SetupFault::Ranks { id, ranks, limit }));
            }
            for &to in &sorted {
                sorted.iter().filter(|peer| peer.0 != to.0).for_each(|&peer| tell(to, peer));
            }
        }
        IdUse::Owned(_) => {
            let mut owners = sorted.iter().copied().filter(|place| place.2);
            let Some(owner) = owners.next() else {
                return Err(at(sorted[0].0, SetupFault::Unowned { id }));
            };
            if let Some(other) = owners.next() {
                let other = u64::from(other.0);
                return Err(at(owner.0, SetupFault::OwnedTwice { id, other }));
            }
            for &ghost in sorted.iter().filter(|place| !place.2) {
                tell(owner, ghost);
                tell(ghost, owner);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{IdUse, SetupFault, home, meet, pack, unpack};

    #[test]
    fn homes_are_balanced_for_any_stride() {
        for (stride, ranks) in [(1, 7), (64, 64), (1 << 20, 100), (3 << 40, 1000)] {
            let mut loads = vec![0u32; ranks];
            (0..1000 * ranks as u64).for_each(|i| loads[home(i * stride, ranks)] += 1);
            assert!(loads.iter().all(|load| (800..1200).contains(load)), "{stride} {ranks}");
        }
    }

    #[test]
    fn records_keep_what_they_hold() {
        for place in [(0, 0, false), ((1 << 31) - 1, u32::MAX, true), (5, 7, false)] {
            assert_eq!(unpack(pack(place.0, place.1, place.2)), place);
        }
    }

    #[test]
    fn holders_meet_or_are_named() {
        let of = |places: &[(u32, u32, bool)]| -> Vec<[u64; 2]> {
            places.iter().map(|&(rank, at, owned)| [9, pack(rank, at, owned)]).collect()
        };
        let meets = |places: &[(u32, u32, bool)], ids_use| {
            let mut answers = Vec::new();
            meet(&of(places), ids_use, &mut answers).map(|()| answers.len())
        };
        let fault = |found: Result<usize, super::RankFault>| found.unwrap_err().fault;
        let copies = [(0, 3, false), (2, 1, false), (7, 0, false)];
        assert_eq!(meets(&copies, IdUse::Copies), Ok(6));
        assert_eq!(fault(meets(&copies, IdUse::Owned(0))), SetupFault::Unowned { id: 9 });
        let owned = [(0, 3, false), (2, 1, true), (7, 0, false)];
        assert_eq!(meets(&owned, IdUse::Owned(0)), Ok(4));
        let twice = [(0, 3, true), (2, 1, true)];
        assert_eq!(
            fault(meets(&twice, IdUse::Owned(0))),
            SetupFault::OwnedTwice { id: 9, other: 2 }
        );
        let repeated = [(4, 3, false), (4, 5, true)];
        let expected = SetupFault::Repeated { id: 9, first: 3, second: 5 };
        assert_eq!(fault(meets(&repeated, IdUse::Copies)), expected);
        let many: Vec<_> = (0..2000).map(|rank| (rank, 0, false)).collect();
        assert!(matches!(fault(meets(&many, IdUse::Copies)), SetupFault::Ranks { id: 9, .. }));
    }
}
