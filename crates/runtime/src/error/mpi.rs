//! Errors of MPI and between the ranks of a job.

use conset_ir::{CellId, ConnectionId};

use super::CellCall;

/// Why something over MPI failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// A call into the MPI library failed.
    #[error("MPI failed to {what}: {text} (code {code})")]
    Call {
        /// What the call was to do.
        what: &'static str,
        /// The library's error code.
        code: i32,
        /// The library's text for it.
        text: String,
    },
    /// MPI was finalised already, or was initialised for calls of another thread only.
    #[error(
        "this thread cannot call MPI: MPI was finalised, or was initialised for its main thread \
         alone (initialise with MPI_THREAD_SERIALIZED, or run on the main thread)"
    )]
    Thread,
    /// Ranks did not take part in what all must do together.
    #[error("rank {rank} has waited {milliseconds} ms in {place} for {}", ranks(.awaited))]
    Missing {
        /// The rank that waited.
        rank: usize,
        /// How long.
        milliseconds: u64,
        /// In what.
        place: String,
        /// The ranks it waited for; empty if it cannot know them.
        awaited: Vec<usize>,
    },
    /// Another rank has failed.
    #[error("rank {rank} failed: {error}")]
    Elsewhere {
        /// The rank.
        rank: usize,
        /// Its error.
        error: String,
    },
    /// The environment variable `CONSET_TIMEOUT` is not a time.
    #[error("CONSET_TIMEOUT is `{value}`: expected a number of seconds, or 0 for no time-out")]
    TimeOutSetting {
        /// What it is.
        value: String,
    },
    /// A run is under way on the communicator.
    #[error("a run is under way on this communicator: one at a time")]
    Busy,
    /// Words were sent that nobody received before a switch or the end of the run, and they were
    /// not found either.
    #[error("{sent} words were sent but {received} received before a switch or the end of the run")]
    LeftOver {
        /// Words of elements that were sent.
        sent: u64,
        /// Those received.
        received: u64,
    },
    /// Words came of another call than the one that the cell makes, and were not read. A run ends
    /// with [`crate::RunError::Mismatch`].
    #[error("{}; {}", .calls[0], .calls[1])]
    Mismatch {
        /// The calls.
        calls: Box<[CellCall; 2]>,
    },
    /// Two cells did not make the same collective calls.
    #[error(
        "{}; all cells must make the same ones in the same order",
        unlike(.cells, .steps, .place)
    )]
    Steps {
        /// The cells.
        cells: [CellId; 2],
        /// The number that each has started; if equal, they were not the same.
        steps: [u64; 2],
        /// Before what.
        place: String,
    },
    /// The image lets a cell send other words in a phase than the target receives.
    #[error(
        "the image is wrong: in {phase} {sent} words of {connection} are sent, {received} received"
    )]
    Unequal {
        /// The phase.
        phase: String,
        /// The connection.
        connection: ConnectionId,
        /// Words sent.
        sent: u64,
        /// Words received.
        received: u64,
    },
    /// The ranks were given different images.
    #[error(
        "{} not the image of the others (digest {digest:016x}, others {others:016x}); \
         load the same file, compiled with the same options, on all ranks",
        have(.odd)
    )]
    OddImage {
        /// The ranks whose image is not that of most ranks.
        odd: Vec<usize>,
        /// The digest of the first of them.
        digest: u64,
        /// The digest of most ranks; of the lowest rank where as many have another.
        others: u64,
    },
    /// The image that rank 0 sent cannot be read, which has another version of this library.
    #[error("{error}; build all ranks with the same version of conset")]
    Image {
        /// Why.
        error: String,
    },
    /// A message is longer, or there are more messages between two ranks, than MPI can tell apart.
    #[error("{what}: {found}, of which MPI carries {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// The most there may be.
        limit: u64,
    },
}

/// `rank 3`, `ranks 3, 5`, `other ranks`.
fn ranks(ranks: &[usize]) -> String {
    match ranks {
        [] => "other ranks".to_owned(),
        [one] => format!("rank {one}"),
        many => {
            let names: Vec<String> = many.iter().map(usize::to_string).collect();
            format!("ranks {}", names.join(", "))
        }
    }
}

fn unlike([one, two]: &[CellId; 2], [first, second]: &[u64; 2], place: &str) -> String {
    if first == second {
        return format!(
            "the {first} switches and exchanges of {one} and {two} before {place} differ"
        );
    }
    format!("{one} has started {first} switches and exchanges before {place}, and {two} {second}")
}

fn have(odd: &[usize]) -> String {
    format!("{} {}", ranks(odd), if odd.len() == 1 { "has" } else { "have" })
}
