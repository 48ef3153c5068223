//! Wrong uses of epochs.

use conset_ir::{CellId, ConnectionId};

/// How an epoch was used in a way it is not for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpochUse {
    /// The target of an item does not exist, or is dead.
    #[error(
        "an item of an epoch is for {target}: expected a live cell, of which there are {live}, the \
         last one {last}"
    )]
    Target {
        /// What was asked for.
        target: CellId,
        /// Number of live cells.
        live: usize,
        /// The last live cell.
        last: CellId,
    },
    /// Cells have opened the epoch with items of different types.
    #[error(
        "{other} has opened the epoch with items of {found_words} x {found_type}, this cell with \
         items of {words} x {word_type}: all cells have to open it with the same items"
    )]
    Items {
        /// The cell that opened it otherwise.
        other: CellId,
        /// Words of its items.
        found_words: usize,
        /// The type of their words.
        found_type: &'static str,
        /// Words of the items of this cell.
        words: usize,
        /// The type of their words.
        word_type: &'static str,
    },
    /// A message of the program came where a packet of the epoch was expected.
    #[error(
        "a message of {words} words from {source_cell} has not been received: receive all messages \
         before the epoch is settled"
    )]
    Message {
        /// The cell that sent it.
        source_cell: CellId,
        /// Its words.
        words: usize,
    },
    /// Cells still send after the greatest number of rounds.
    #[error(
        "the epoch has not settled after {rounds} rounds: {sender} still sends; if it may take \
         longer, raise the limit (Epoch::limit_rounds)"
    )]
    Rounds {
        /// The limit.
        rounds: u64,
        /// The first cell that still sends.
        sender: CellId,
    },
    /// An epoch has ended with items that were not delivered.
    #[error("an epoch has ended with {items} items that were not delivered: settle it")]
    Unsettled {
        /// Items that the cell sent.
        items: u64,
    },
    /// A connection is to carry more words than its set allows.
    #[error(
        "{connection} carries at most {most} words, and is to carry {found}: give it as many in the \
         set as it will ever need"
    )]
    TooManyWords {
        /// The connection.
        connection: ConnectionId,
        /// Words of the set.
        most: usize,
        /// Words of the buffer.
        found: usize,
    },
    /// Cells make a sized exchange or a reduction with words of different sizes.
    #[error("{other} has words of {found} bytes, this cell of {bytes} bytes")]
    WordBytes {
        /// The other cell.
        other: CellId,
        /// Bytes of its words.
        found: u64,
        /// Bytes of the words of this cell.
        bytes: usize,
    },
}
