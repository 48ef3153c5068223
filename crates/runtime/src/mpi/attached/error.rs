//! Errors of attached programs. They are values; none ends the job.

use crate::error::MpiError;

/// Why a call of an attached program failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HaloError {
    /// A call into MPI failed, or another rank did not come.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// The ids or rows of a rank are wrong. All ranks get this error, and can go on.
    #[error("rank {rank}: {fault}")]
    Setup {
        /// The rank with the wrong input.
        rank: usize,
        /// What is wrong.
        fault: SetupFault,
    },
    /// A vector does not have as many numbers as the halo has entries, times the block.
    #[error(
        "a vector of {found} numbers, expected {} ({entries} entries, {block} for each)",
        entries.saturating_mul(*block)
    )]
    Length {
        /// Numbers of the vector.
        found: usize,
        /// Entries of the halo's vectors.
        entries: usize,
        /// Numbers for each entry.
        block: usize,
    },
    /// No vectors, or numbers for each entry.
    #[error("nothing to exchange: {what}, expected at least one")]
    Nothing {
        /// Of what there is none.
        what: &'static str,
    },
    /// The halo does not have what the operation needs.
    #[error("{operation} needs a halo of {needs}")]
    Kind {
        /// What was called.
        operation: &'static str,
        /// The halos that have it.
        needs: &'static str,
    },
    /// Another rank sent a message of another size: it made another call on this halo. Words of
    /// this call must not be used, and the halo can no longer exchange.
    #[error(
        "rank {rank} sent {} for an exchange of halo {halo}, expected {expected}: all ranks must \
         make the same calls, with the same types and blocks",
        bytes(.found)
    )]
    Mismatch {
        /// Number of the halo, counted from 0 on the communicator.
        halo: u64,
        /// The rank that sent the message.
        rank: usize,
        /// Its bytes; none if they are more than expected.
        found: Option<u64>,
        /// Bytes that were expected.
        expected: u64,
    },
    /// Ranks called different functions together.
    #[error("ranks {} and {} made different collective calls", .ranks[0], .ranks[1])]
    Calls {
        /// Two ranks whose calls differ.
        ranks: [usize; 2],
    },
    /// An earlier call failed while messages were under way, so later ones could be taken for them.
    #[error("an earlier exchange of halo {halo} failed; drop the halo and make it again")]
    Failed {
        /// Number of the halo.
        halo: u64,
    },
    /// There is no such rank.
    #[error("rank {root} of {ranks}: ranks are counted from 0")]
    Root {
        /// The rank that was given.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// An earlier set-up or collective call failed in the middle, so that later ones could be taken
    /// for it.
    #[error("an earlier collective call failed; attach to a new duplicate of the communicator")]
    Lost,
    /// A reduction was completed on another communicator, with an array of another type or length than
    /// it was started with, or twice.
    #[error(
        "a reduction is completed twice, or with another communicator, type or length than it was \
         started with"
    )]
    Reduction,
    /// Very many reductions were started and not completed.
    #[error(
        "{reductions} reductions were started and not completed: call `wait_allreduce` for each"
    )]
    Forgotten {
        /// Reductions there are.
        reductions: usize,
    },
    /// An exchange was completed with another halo, type or block than it was started with.
    #[error("an exchange is completed with another halo, type or block than it was started with")]
    Pending,
}

fn bytes(found: &Option<u64>) -> String {
    found.map_or("more bytes".to_owned(), |bytes| format!("{bytes} bytes"))
}

/// What is wrong with the input of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupFault {
    /// An id is listed twice.
    #[error("id {id} is listed twice, at positions {first} and {second}")]
    Repeated {
        /// The id.
        id: u64,
        /// Its first position.
        first: u32,
        /// Another.
        second: u32,
    },
    /// A ghost that no rank owns.
    #[error("id {id} is a ghost, and no rank owns it")]
    Unowned {
        /// The id.
        id: u64,
    },
    /// An id with two owners.
    #[error("id {id} is owned here and by rank {other}; expected one owner, ghosts elsewhere")]
    OwnedTwice {
        /// The id.
        id: u64,
        /// The other owner.
        other: u64,
    },
    /// A ghost that the rank owns itself.
    #[error("id {id} is listed as a ghost, and is owned here")]
    OwnGhost {
        /// The id.
        id: u64,
    },
    /// A range that ends before it begins.
    #[error("the owned range ends at {end}, before its start {start}")]
    Range {
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
    },
    /// More owned ids than are listed.
    #[error("the first {owned} ids are owned, but {ids} are listed")]
    OwnedCount {
        /// What is said to be owned.
        owned: u64,
        /// Ids there are.
        ids: u64,
    },
    /// More entries than positions can count.
    #[error("{entries} entries, at most {limit}")]
    Entries {
        /// Entries there are.
        entries: u64,
        /// Entries there may be.
        limit: u64,
    },
    /// Ids that very many ranks share.
    #[error(
        "id {id} is on {ranks} ranks, at most {limit}: reduce what many ranks share by `allreduce`"
    )]
    Ranks {
        /// The id.
        id: u64,
        /// Ranks that have it.
        ranks: u64,
        /// Ranks that may have it.
        limit: u64,
    },
    /// Row pointers that are none.
    #[error("row pointer {row} is {found}, expected {least} to {most}")]
    RowPointer {
        /// Its number.
        row: u64,
        /// Its value; the greatest number if it is negative.
        found: u64,
        /// The least it may be.
        least: u64,
        /// The greatest it may be.
        most: u64,
    },
    /// A number of row pointers that does not match the rows.
    #[error("{found} row pointers, expected {expected}: one more than there are rows")]
    RowPointers {
        /// Pointers there are.
        found: u64,
        /// Pointers that were expected.
        expected: u64,
    },
    /// A column that is no row of any rank.
    #[error("row {row} has column {column}, and no rank owns a row of this number")]
    Column {
        /// The global row.
        row: u64,
        /// The column; the greatest number if it is negative.
        column: u64,
    },
    /// More halos at a time than there are tags.
    #[error("{halos} halos at a time, at most {limit}")]
    Halos {
        /// Halos there are.
        halos: u64,
        /// Halos there may be.
        limit: u64,
    },
}

/// Words of a fault: its kind and three numbers.
pub(super) const FAULT_WORDS: usize = 5;

impl SetupFault {
    /// The fault as words, to be sent to other ranks.
    pub(super) fn words(self) -> [u64; FAULT_WORDS] {
        match self {
            Self::Repeated { id, first, second } => [0, id, first.into(), second.into(), 0],
            Self::Unowned { id } => [1, id, 0, 0, 0],
            Self::OwnedTwice { id, other } => [2, id, other, 0, 0],
            Self::OwnGhost { id } => [3, id, 0, 0, 0],
            Self::Range { start, end } => [4, start, end, 0, 0],
            Self::OwnedCount { owned, ids } => [5, owned, ids, 0, 0],
            Self::Entries { entries, limit } => [6, entries, limit, 0, 0],
            Self::Ranks { id, ranks, limit } => [7, id, ranks, limit, 0],
            Self::RowPointer { row, found, least, most } => [8, row, found, least, most],
            Self::RowPointers { found, expected } => [9, found, expected, 0, 0],
            Self::Column { row, column } => [10, row, column, 0, 0],
            Self::Halos { halos, limit } => [11, halos, limit, 0, 0],
        }
    }

    /// The fault of words that another rank made of it.
    pub(super) fn from_words(words: [u64; FAULT_WORDS]) -> Self {
        let [kind, a, b, c, d] = words;
        let position = |word: u64| u32::try_from(word).unwrap_or(u32::MAX);
        match kind {
            0 => Self::Repeated { id: a, first: position(b), second: position(c) },
            1 => Self::Unowned { id: a },
            2 => Self::OwnedTwice { id: a, other: b },
            3 => Self::OwnGhost { id: a },
            4 => Self::Range { start: a, end: b },
            5 => Self::OwnedCount { owned: a, ids: b },
            6 => Self::Entries { entries: a, limit: b },
            7 => Self::Ranks { id: a, ranks: b, limit: c },
            8 => Self::RowPointer { row: a, found: b, least: c, most: d },
            9 => Self::RowPointers { found: a, expected: b },
            10 => Self::Column { row: a, column: b },
            _ => Self::Halos { halos: a, limit: b },
        }
    }
}

/// A fault, and the rank that has it: not always the one that finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankFault {
    pub(super) rank: usize,
    pub(super) fault: SetupFault,
}

#[cfg(test)]
mod tests {
    use super::SetupFault;

    #[test]
    fn faults_survive_being_sent() {
        let faults = [
            SetupFault::Repeated { id: u64::MAX, first: 1, second: u32::MAX },
            SetupFault::Unowned { id: 1 },
            SetupFault::OwnedTwice { id: 2, other: 3 },
            SetupFault::OwnGhost { id: 4 },
            SetupFault::Range { start: 6, end: 5 },
            SetupFault::OwnedCount { owned: 7, ids: 6 },
            SetupFault::Entries { entries: 9, limit: 8 },
            SetupFault::Ranks { id: 1, ranks: 3, limit: 2 },
            SetupFault::RowPointer { row: 1, found: 2, least: 3, most: 4 },
            SetupFault::RowPointers { found: 5, expected: 6 },
            SetupFault::Column { row: 7, column: 8 },
            SetupFault::Halos { halos: 2, limit: 1 },
        ];
        for fault in faults {
            assert_eq!(SetupFault::from_words(fault.words()), fault);
        }
    }
}
