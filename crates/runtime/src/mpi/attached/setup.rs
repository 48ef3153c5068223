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
use super::ranges::{OwnedRun, Owners, block_bits, owners};
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
        let mut sorted = SortedGhosts::Given(ghosts);
        let fault = check_range(owned, ghosts.len()).and_then(|()| {
            sorted = SortedGhosts::new(ghosts);
            sorted.check(owned)
        });
        let numbered = self.agree_on_call(Call::Owned, fault.err())?;
        let Owners { mut runs, unowned, fault } = self.find_owners(owned, sorted.ids())?;
        let unowned = unowned.map(|id| self.here(SetupFault::Unowned { id }));
        self.agree(unowned.or(fault))?;
        let at = to_usize(owned.end - owned.start);
        runs.sort_unstable_by_key(|run| run.owner);
        let requests = runs.into_iter().map(|run| {
            let (offsets, positions) = sorted.request(&run, at);
            Request { owner: run.owner, offsets, positions }
        });
        self.request(numbered, owned, at + ghosts.len(), requests.collect())
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
        let Owners { mut runs, unowned, fault } = self.find_owners(rows, &ids)?;
        let unowned = unowned.map(|column| {
            let entry = columns.iter().position(|&other| number(other) == column).unwrap_or(0);
            let row = row_of(pointers, entry);
            self.here(SetupFault::Column { row: rows.start + row, column })
        });
        self.agree(unowned.or(fault))?;

        // Ghosts by owner, then by number; where each number is among them.
        let owned = to_usize(rows.end - rows.start);
        runs.sort_unstable_by_key(|run| run.owner);
        let mut local = vec![0; ids.len()];
        let mut ghosts = Vec::with_capacity(ids.len());
        let mut requests = Vec::with_capacity(runs.len());
        for OwnedRun { owner, first, places } in runs {
            let run = &ids[places.clone()];
            let start = to_u32(owned + ghosts.len());
            let positions = Positions::Run { start, len: to_u32(run.len()) };
            local[places].iter_mut().zip(start..).for_each(|(local, position)| *local = position);
            ghosts.extend_from_slice(run);
            let offsets = run.iter().map(|&id| to_u32(id - first)).collect();
            requests.push(Request { owner, offsets, positions });
        }
        let column = |&column: &C| {
            let id = number(column);
            let ghost = || ids.binary_search(&id).map_or(0, |place| local[place]);
            if rows.contains(&id) { to_u32(id - rows.start) } else { ghost() }
        };
        let columns = columns.iter().map(column).collect();
        let halo = self.request(numbered, rows, owned + ghosts.len(), requests)?;
        Ok(AttachedRows { halo, columns, ghosts })
    }

    /// The owners of sorted ids ([`owners`]).
    fn find_owners(&self, own: &Range<u64>, ids: &[u64]) -> Result<Owners, HaloError> {
        let comm = &self.inner.comm;
        let total = reduce_all(comm, Combine::Sum, vec![own.end - own.start], PLACE)?[0];
        let bits = block_bits(total, comm.size());
        Ok(owners(comm, || self.inner.next_round(), own, (ids, bits))?)
    }

    /// Asks the owners for ghosts.
    fn request(
        &self,
        numbered: HaloNumber,
        own: &Range<u64>,
        entries: usize,
        requests: Vec<Request>,
    ) -> Result<Halo, HaloError> {
        let mut receives = Vec::new();
        let mut messages = Vec::new();
        for Request { owner: rank, offsets, positions } in requests {
            receives.push(Link { rank, positions });
            messages.push((rank, offsets));
        }
        let asked = sparse_exchange(&self.inner.comm, self.inner.next_round(), messages)?;
        let owned = own.end - own.start;
        let send = |(rank, offsets): (usize, Vec<u32>)| {
            // The asking rank has found them in this range; positions are relied upon later.
            let greatest = offsets.iter().max().copied().map_or(0, u64::from);
            assert!(greatest < owned, "ids of another rank are requested");
            Link { rank, positions: Positions::new(offsets) }
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

/// What an owner is asked for: ids as their distance from the first one of its range, and where they
/// are received.
struct Request {
    owner: usize,
    offsets: Vec<u32>,
    positions: Positions,
}

/// The ghosts of a rank in the order of their ids.
enum SortedGhosts<'a> {
    /// They were given so, as usual. With many ghosts the set-up takes as long as its passes over
    /// memory, so nothing is made of them.
    Given(&'a [u64]),
    /// The ids, and their places among those that were given.
    Sorted { given: &'a [u64], ids: Vec<u64>, places: Vec<u32> },
}

impl<'a> SortedGhosts<'a> {
    /// There are fewer than 2^32 of them.
    fn new(given: &'a [u64]) -> Self {
        if given.is_sorted() {
            return Self::Given(given);
        }
        let mut pairs: Vec<(u64, u32)> = given.iter().copied().zip(0..).collect();
        // They are usually a few ascending runs, which a stable sort merges.
        pairs.sort();
        let (ids, places) = pairs.into_iter().unzip();
        Self::Sorted { given, ids, places }
    }

    fn ids(&self) -> &[u64] {
        match self {
            Self::Given(ids) => ids,
            Self::Sorted { ids, .. } => ids,
        }
    }

    /// The place among the given ghosts of one in this order.
    fn place(&self, row: usize) -> u32 {
        match self {
            Self::Given(_) => to_u32(row),
            Self::Sorted { places, .. } => places[row],
        }
    }

    /// None is owned here, and none is there twice.
    fn check(&self, owned: &Range<u64>) -> Result<(), SetupFault> {
        let ids = self.ids();
        if let Some(&id) = ids.get(ids.partition_point(|&id| id < owned.start))
            && owned.contains(&id)
        {
            return Err(SetupFault::OwnGhost { id });
        }
        let at = to_u32(owned.end - owned.start);
        match ids.windows(2).position(|pair| pair[0] == pair[1]) {
            Some(row) => {
                let [first, second] = [row, row + 1].map(|row| at + self.place(row));
                Err(SetupFault::Repeated { id: ids[row], first, second })
            }
            None => Ok(()),
        }
    }

    /// The ids of one owner as it is asked for them, in the given order, and where they are received,
    /// if ghosts follow the entry `at`.
    fn request(&self, run: &OwnedRun, at: usize) -> (Vec<u32>, Positions) {
        let OwnedRun { first, places: rows, .. } = run;
        match self {
            Self::Given(ids) => {
                let offsets = ids[rows.clone()].iter().map(|id| to_u32(id - first)).collect();
                let (start, len) = (to_u32(at + rows.start), to_u32(rows.len()));
                (offsets, Positions::Run { start, len })
            }
            Self::Sorted { given, places, .. } => {
                let mut places = places[rows.clone()].to_vec();
                places.sort();
                let offsets = places.iter().map(|&place| to_u32(given[index(place)] - first));
                let offsets = offsets.collect();
                places.iter_mut().for_each(|place| *place += to_u32(at));
                (offsets, Positions::new(places))
            }
        }
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
    use super::{OwnedRun, Positions, SetupFault, SortedGhosts, check_range, check_rows, row_of};

    #[test]
    fn ghosts_are_requested_in_the_given_order() {
        let run = |first, places| OwnedRun { owner: 1, first, places };
        let sorted = SortedGhosts::new(&[10, 12, 20, 21]);
        assert!(matches!(sorted, SortedGhosts::Given(_)));
        let positions = Positions::Run { start: 102, len: 2 };
        assert_eq!(sorted.request(&run(20, 2..4), 100), (vec![0, 1], positions));
        let given = [21, 12, 20, 10];
        let sorted = SortedGhosts::new(&given);
        assert_eq!(sorted.ids(), [10, 12, 20, 21]);
        let any = |positions: &[u32]| Positions::Any(positions.to_vec());
        assert_eq!(sorted.request(&run(8, 0..2), 100), (vec![4, 2], any(&[101, 103])));
        assert_eq!(sorted.request(&run(20, 2..4), 100), (vec![1, 0], any(&[100, 102])));
        assert_eq!(sorted.check(&(13..20)), Ok(()));
        assert_eq!(sorted.check(&(13..21)), Err(SetupFault::OwnGhost { id: 20 }));
        let repeated = SetupFault::Repeated { id: 7, first: 3, second: 5 };
        assert_eq!(SortedGhosts::new(&[9, 7, 8, 7]).check(&(0..2)), Err(repeated));
    }

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
