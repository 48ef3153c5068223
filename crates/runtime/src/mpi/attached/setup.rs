//! The set-up of a halo: each rank gives its own ids or rows, and gets its own lists of positions.
//!
//! 1. The ranks agree that they make the same call with valid input, and on a number for the halo.
//! 2. A rendezvous finds out which ranks have which ids ([`super::rendezvous`], [`super::ranges`]).
//! 3. The ranks agree that nothing was wrong with the ids of all together.
//!
//! The agreements are reductions to all of a few words. What is wrong with one rank's input becomes
//! an error of all ranks that names it ([`HaloError::Setup`]), and all can go on.
//!
//! With n entries and k neighbours of a rank on P ranks, a rank sends O(k + log P) messages, has
//! memory for O(n + k), and nothing for each rank.

use std::ops::Range;

use conset_ir::convert::{index, to_u32, to_u64, to_usize};

use super::error::{FAULT_WORDS, HaloError, RankFault, SetupFault};
use super::field::Positions;
use super::halo::{Halo, Kind, Link, links};
use super::operation::{Combine, broadcast, reduce_all, sparse_exchange};
use super::ranges::{block_bits, owners};
use super::rendezvous::{IdUse, shared_entries};
use super::{Attached, HaloNumber};

/// The most entries of a rank: positions have 31 bits.
const ENTRIES_LIMIT: usize = 1 << 31;

const PLACE: &str = "the set-up of a halo";

/// The collective calls that set halos up.
#[derive(Clone, Copy)]
pub(super) enum Call {
    Shared,
    Indexed,
    Owned,
    Csr,
}

impl Call {
    fn number(self) -> u64 {
        match self {
            Self::Shared => 1,
            Self::Indexed => 2,
            Self::Owned => 3,
            Self::Csr => 4,
        }
    }
}

/// Rows of a distributed matrix in local numbers, and the halo of vectors for them.
#[derive(Debug)]
#[non_exhaustive]
pub struct AttachedRows {
    /// The entries of the local vector: own rows, then ghosts.
    pub halo: Halo,
    /// The local column of each entry, in the order of the given columns. Column `i` of the own rows
    /// has number `i`.
    pub columns: Vec<u32>,
    /// The global rows of the ghosts, by owner and number: they follow the own rows in the local
    /// vector.
    pub ghosts: Vec<u64>,
}

impl Attached {
    /// The halo of entries with global ids, as in gslib: entries with the same id on several ranks
    /// are copies of one value. `ids[i]` is the id of entry `i` of this rank's vectors.
    /// For [`Halo::combine_shared`]. Collective.
    ///
    /// # Errors
    /// An id that a rank lists twice or that more than 1024 ranks have; an error of MPI, or a rank
    /// that does not come.
    pub fn shared_halo(&self, ids: &[u64]) -> Result<Halo, HaloError> {
        self.collective(|| self.halo_of_ids(Call::Shared, ids, IdUse::Copies))
    }

    /// The halo of entries with any global ids, of which this rank owns the first `owned`; the
    /// others are ghosts. For [`Halo::exchange`] and [`Halo::reduce`]. Collective.
    ///
    /// # Errors
    /// An id with two owners or a ghost with none, an id that a rank lists twice, a rank that owns
    /// more than it lists; an error of MPI, or a rank that does not come.
    pub fn indexed_halo(&self, ids: &[u64], owned: usize) -> Result<Halo, HaloError> {
        self.collective(|| self.halo_of_ids(Call::Indexed, ids, IdUse::Owned(owned)))
    }

    fn halo_of_ids(&self, call: Call, ids: &[u64], ids_use: IdUse) -> Result<Halo, HaloError> {
        let fault = check_entries(ids.len()).and_then(|()| match ids_use {
            IdUse::Owned(owned) if owned > ids.len() => {
                Err(SetupFault::OwnedCount { owned: to_u64(owned), ids: to_u64(ids.len()) })
            }
            _ => Ok(()),
        });
        let numbered = self.agree_on_call(call, fault.err())?;
        let (entries, fault) = shared_entries(&self.inner.comm, ids, ids_use)?;
        self.agree(fault)?;
        let kind = if ids_use == IdUse::Copies { Kind::Copies } else { Kind::Owned };
        let of = |owned: bool| links(entries.iter().filter(move |entry| entry.owned == owned));
        let lists = (of(true), of(false));
        Ok(Halo::new(numbered, kind, ids.len(), lists))
    }

    /// The halo of a rank that owns the ids `owned`, a range, and has ghosts of others, as in PETSc.
    /// The vectors have the owned entries first, in the order of their ids, then the ghosts in the
    /// given order. For [`Halo::exchange`] and [`Halo::reduce`]. Collective.
    ///
    /// Ghosts that are sorted by their owner are received in place.
    ///
    /// # Errors
    /// Ranges that overlap, a ghost that no rank owns or that is owned here, an id that is listed
    /// twice; an error of MPI, or a rank that does not come.
    pub fn owned_halo(&self, owned: Range<u64>, ghosts: &[u64]) -> Result<Halo, HaloError> {
        self.collective(|| self.halo_of_range(&owned, ghosts))
    }

    fn halo_of_range(&self, owned: &Range<u64>, ghosts: &[u64]) -> Result<Halo, HaloError> {
        let mut sorted: Vec<(u64, u32)> = Vec::new();
        let fault = check_range(owned, ghosts.len()).and_then(|()| {
            sorted = ghosts.iter().copied().zip(0..).collect();
            // Ghosts are usually a few ascending runs, which a stable sort merges.
            sorted.sort();
            check_ghosts(owned, &sorted)
        });
        let numbered = self.agree_on_call(Call::Owned, fault.err())?;
        let ids: Vec<u64> = sorted.iter().map(|&(id, _)| id).collect();
        let (owners, found) = self.find_owners(owned, &ids)?;
        let missing = ids.iter().zip(&owners).find(|(_, owner)| owner.is_none());
        let fault = missing.map(|(&id, _)| self.here(SetupFault::Unowned { id }));
        self.agree(fault.or(found))?;
        let at = to_usize(owned.end - owned.start);
        let wanted = sorted.iter().zip(owners.into_iter().flatten());
        let mut wanted: Vec<(usize, u32)> = wanted.map(|(&(_, row), owner)| (owner, row)).collect();
        wanted.sort();
        let wanted = wanted.chunk_by(|a, b| a.0 == b.0).map(|of_owner| {
            let rows = of_owner.iter().map(|&(_, row)| row);
            let ids = rows.clone().map(|row| ghosts[index(row)]).collect();
            let positions = rows.map(|row| to_u32(at + index(row))).collect();
            (of_owner[0].0, ids, Positions::new(positions))
        });
        let wanted = wanted.collect();
        self.request(numbered, owned, at + ghosts.len(), wanted)
    }

    /// Local numbers and the halo for the rows of a square matrix in compressed rows: this rank has
    /// the rows `rows`, with global columns. `pointers[i]..pointers[i + 1]` are the entries of its
    /// row `i`. A product with the rows needs [`Halo::exchange`] before, one with the transposed rows
    /// [`Halo::reduce`] after it. Collective.
    ///
    /// # Errors
    /// Ranges that overlap, pointers that are none, a column that is no rank's row; an error of MPI,
    /// or a rank that does not come.
    pub fn csr_halo<P, C>(
        &self,
        rows: Range<u64>,
        pointers: &[P],
        columns: &[C],
    ) -> Result<AttachedRows, HaloError>
    where
        P: Copy + TryInto<u64>,
        C: Copy + TryInto<u64>,
    {
        self.collective(|| self.halo_of_rows(&rows, pointers, columns))
    }

    fn halo_of_rows<P, C>(
        &self,
        rows: &Range<u64>,
        pointers: &[P],
        columns: &[C],
    ) -> Result<AttachedRows, HaloError>
    where
        P: Copy + TryInto<u64>,
        C: Copy + TryInto<u64>,
    {
        let number = |column: C| column.try_into().unwrap_or(u64::MAX);
        let mut ids: Vec<u64> = Vec::new();
        let fault = check_rows(rows, pointers, columns.len()).and_then(|()| {
            let global = columns.iter().map(|&column| number(column));
            ids = global.filter(|id| !rows.contains(id)).collect();
            ids.sort_unstable();
            ids.dedup();
            check_range(rows, ids.len())
        });
        let numbered = self.agree_on_call(Call::Csr, fault.err())?;
        let (owners, found) = self.find_owners(rows, &ids)?;
        let missing = ids.iter().zip(&owners).find(|(_, owner)| owner.is_none());
        let fault = missing.map(|(&column, _)| {
            let entry = columns.iter().position(|&other| number(other) == column).unwrap_or(0);
            let row = row_of(pointers, entry);
            self.here(SetupFault::Column { row: rows.start + row, column })
        });
        self.agree(fault.or(found))?;

        // Ghosts by owner, then by number; where each number is among them.
        let owned = to_usize(rows.end - rows.start);
        let mut order: Vec<(usize, u32)> = owners.into_iter().flatten().zip(0..).collect();
        order.sort_unstable();
        let mut local = vec![0; ids.len()];
        for (place, &(_, row)) in order.iter().enumerate() {
            local[index(row)] = to_u32(owned + place);
        }
        let column = |&column: &C| {
            let id = number(column);
            let ghost = || ids.binary_search(&id).map_or(0, |row| local[row]);
            if rows.contains(&id) { to_u32(id - rows.start) } else { ghost() }
        };
        let columns = columns.iter().map(column).collect();
        let ghosts: Vec<u64> = order.iter().map(|&(_, row)| ids[index(row)]).collect();
        let mut next = owned;
        let wanted = order.chunk_by(|a, b| a.0 == b.0).map(|of_owner| {
            let positions = next..next + of_owner.len();
            next = positions.end;
            let ids = ghosts[positions.start - owned..positions.end - owned].to_vec();
            (of_owner[0].0, ids, Positions::new(positions.map(to_u32).collect()))
        });
        let wanted = wanted.collect();
        let halo = self.request(numbered, rows, owned + ghosts.len(), wanted)?;
        Ok(AttachedRows { halo, columns, ghosts })
    }

    /// The owners of sorted ids ([`owners`]).
    fn find_owners(
        &self,
        own: &Range<u64>,
        ids: &[u64],
    ) -> Result<(Vec<Option<usize>>, Option<RankFault>), HaloError> {
        let comm = &self.inner.comm;
        let total = reduce_all(comm, Combine::Sum, vec![own.end - own.start], PLACE)?[0];
        let bits = block_bits(total, comm.size());
        Ok(owners(comm, || self.inner.next_round(), own, (ids, bits))?)
    }

    /// Asks the owners for ghosts: the owner, the ids, and where they are received.
    fn request(
        &self,
        numbered: HaloNumber,
        own: &Range<u64>,
        entries: usize,
        wanted: Vec<(usize, Vec<u64>, Positions)>,
    ) -> Result<Halo, HaloError> {
        let mut receives = Vec::new();
        let mut messages = Vec::new();
        for (rank, ids, positions) in wanted {
            receives.push(Link { rank, positions });
            messages.push((rank, ids));
        }
        let asked = sparse_exchange(&self.inner.comm, self.inner.next_round(), messages)?;
        let send = |(rank, ids): (usize, Vec<u64>)| {
            // The asking rank has found them in this range; positions are relied upon later.
            assert!(ids.iter().all(|id| own.contains(id)), "ids of another rank are requested");
            let positions = ids.iter().map(|&id| to_u32(id - own.start)).collect();
            Link { rank, positions: Positions::new(positions) }
        };
        let sends = asked.into_iter().map(send).collect();
        Ok(Halo::new(numbered, Kind::Owned, entries, (sends, receives)))
    }

    fn here(&self, fault: SetupFault) -> RankFault {
        RankFault { rank: self.inner.comm.rank(), fault }
    }

    /// All ranks make this call, with valid input as far as each can see; the halo's number.
    fn agree_on_call(
        &self,
        call: Call,
        fault: Option<SetupFault>,
    ) -> Result<HaloNumber, HaloError> {
        let inner = &self.inner;
        let (rank, call) = (to_u64(inner.comm.rank()), call.number());
        let (least, most) = (call << 32 | rank, (!call) << 32 | rank);
        let fault = fault.map(|fault| self.here(fault));
        let mut number = inner.free_number(0);
        let mut words = vec![least, most, finder(fault, rank), number, !number];
        let mut all = reduce_all(&inner.comm, Combine::Min, words, PLACE)?;
        if all[0] >> 32 != !(all[1] >> 32) & u64::from(u32::MAX) {
            let of = |word: u64| to_usize(word & u64::from(u32::MAX));
            return Err(HaloError::Calls { ranks: [of(all[0]), of(all[1])] });
        }
        self.agreed(all[2], fault)?;
        // Ranks that drop halos at different times may know of different free numbers.
        while all[3] != !all[4] {
            number = inner.free_number(!all[4]);
            words = vec![0, 0, 0, number, !number];
            all = reduce_all(&inner.comm, Combine::Min, words, PLACE)?;
        }
        HaloNumber::take(inner, number).map_err(|fault| HaloError::Setup { rank: 0, fault })
    }

    /// No rank has found a fault.
    fn agree(&self, fault: Option<RankFault>) -> Result<(), HaloError> {
        let rank = to_u64(self.inner.comm.rank());
        let all = reduce_all(&self.inner.comm, Combine::Min, vec![finder(fault, rank)], PLACE)?;
        self.agreed(all[0], fault)
    }

    /// All ranks get the fault of the first rank that has found one.
    fn agreed(&self, finder: u64, fault: Option<RankFault>) -> Result<(), HaloError> {
        if finder == u64::MAX {
            return Ok(());
        }
        let own = fault.map_or(vec![0; 1 + FAULT_WORDS], |found| {
            let rank = to_u64(found.rank);
            [&[rank][..], &found.fault.words()].concat()
        });
        let words = broadcast(&self.inner.comm, to_usize(finder), own, PLACE)?;
        let mut fault = [0; FAULT_WORDS];
        fault.copy_from_slice(&words[1..]);
        Err(HaloError::Setup { rank: to_usize(words[0]), fault: SetupFault::from_words(fault) })
    }
}

/// This rank if it has found a fault, else a number above all ranks.
fn finder(fault: Option<RankFault>, rank: u64) -> u64 {
    if fault.is_some() { rank } else { u64::MAX }
}

fn check_entries(entries: usize) -> Result<(), SetupFault> {
    if entries < ENTRIES_LIMIT {
        return Ok(());
    }
    let (entries, limit) = (to_u64(entries), to_u64(ENTRIES_LIMIT - 1));
    Err(SetupFault::Entries { entries, limit })
}

fn check_range(owned: &Range<u64>, ghosts: usize) -> Result<(), SetupFault> {
    let &Range { start, end } = owned;
    let count = end.checked_sub(start).ok_or(SetupFault::Range { start, end })?;
    check_entries(usize::try_from(count).unwrap_or(usize::MAX).saturating_add(ghosts))
}

/// Ghosts, sorted with their positions among them.
fn check_ghosts(owned: &Range<u64>, sorted: &[(u64, u32)]) -> Result<(), SetupFault> {
    if let Some(&(id, _)) = sorted.iter().find(|(id, _)| owned.contains(id)) {
        return Err(SetupFault::OwnGhost { id });
    }
    let at = to_u32(owned.end - owned.start);
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(SetupFault::Repeated {
            id: pair[0].0,
            first: at + pair[0].1,
            second: at + pair[1].1,
        }),
        None => Ok(()),
    }
}

/// Pointers go from 0 to the number of entries and never fall, one more than there are rows.
fn check_rows<P: Copy + TryInto<u64>>(
    rows: &Range<u64>,
    pointers: &[P],
    entries: usize,
) -> Result<(), SetupFault> {
    check_range(rows, 0)?;
    let expected = rows.end - rows.start + 1;
    if to_u64(pointers.len()) != expected {
        return Err(SetupFault::RowPointers { found: to_u64(pointers.len()), expected });
    }
    let (mut least, entries) = (0, to_u64(entries));
    for (row, &pointer) in (0u64..).zip(pointers) {
        let found = pointer.try_into().unwrap_or(u64::MAX);
        let ends = row == 0 && found > 0 || row + 1 == expected && found != entries;
        if found < least || found > entries || ends {
            let most = if row == 0 { 0 } else { entries };
            let least = if row > 0 && row + 1 == expected { entries } else { least };
            return Err(SetupFault::RowPointer { row, found, least, most });
        }
        least = found;
    }
    Ok(())
}

/// The row that has an entry, of valid pointers.
fn row_of<P: Copy + TryInto<u64>>(pointers: &[P], entry: usize) -> u64 {
    let entry = to_u64(entry);
    let after = pointers.partition_point(|&at| at.try_into().is_ok_and(|at| at <= entry));
    to_u64(after).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{SetupFault, check_range, check_rows, row_of};

    #[test]
    fn wrong_pointers_are_named() {
        let fault = |pointers: &[i32], entries| check_rows(&(5..7), pointers, entries).unwrap_err();
        assert_eq!(check_rows(&(5..7), &[0, 1, 3], 3), Ok(()));
        assert_eq!(fault(&[0, 3], 3), SetupFault::RowPointers { found: 2, expected: 3 });
        let pointer = |row, found, least, most| SetupFault::RowPointer { row, found, least, most };
        assert_eq!(fault(&[1, 1, 3], 3), pointer(0, 1, 0, 0));
        assert_eq!(fault(&[0, -1, 3], 3), pointer(1, u64::MAX, 0, 3));
        assert_eq!(fault(&[0, 2, 1], 3), pointer(2, 1, 3, 3));
        assert_eq!(fault(&[0, 2, 2], 3), pointer(2, 2, 3, 3));
        assert_eq!(check_rows(&(5..5), &[0], 0), Ok(()));
        assert_eq!(row_of(&[0, 0, 2, 3], 1), 1);
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "such ranges come from callers")]
    fn wrong_ranges_are_named() {
        assert_eq!(check_range(&(3..2), 0), Err(SetupFault::Range { start: 3, end: 2 }));
        assert!(matches!(check_range(&(0..u64::MAX), 1), Err(SetupFault::Entries { .. })));
    }
}
