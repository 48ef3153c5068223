//! What epochs and exchanges with unknown partners turned out to carry, as a connection set.
//!
//! A pattern that repeats need not stay unknown: recorded once, it is compiled like any other set,
//! and its phases carry the same words without anybody having to find out for whom they are.

use std::collections::BTreeMap;

use conset_ir::{CellId, Connection, ConnectionSet, ShapeError};

use crate::cell::Cell;

/// The words that a cell has sent to each other cell while it recorded.
#[derive(Debug, Default)]
pub(crate) struct Record(BTreeMap<CellId, u64>);

impl Record {
    pub(super) fn add(&mut self, target: CellId, words: u64) {
        if words > 0 {
            *self.0.entry(target).or_default() += words;
        }
    }
}

impl Cell<'_> {
    /// Begins to record what this cell sends in epochs and by [`Cell::exchange_any`]; what was
    /// recorded before and not taken is dropped.
    pub fn start_record(&mut self) {
        self.record = Some(Record::default());
    }

    /// Ends the recording: the cells to which this cell has sent words, in increasing order, and how
    /// many to each; nothing if it did not record. [`recorded_set`] makes a set of what all cells
    /// return.
    pub fn take_record(&mut self) -> Vec<(CellId, u64)> {
        self.record.take().unwrap_or_default().0.into_iter().collect()
    }
}

/// The connection set of what cells recorded: row `c` of `records` is what cell `c` has taken
/// ([`Cell::take_record`]). It has a connection for each pair of cells, by source and target.
///
/// # Errors
/// A name that sets cannot have, or more words or connections than a set can have.
pub fn recorded_set(
    name: &str,
    records: &[Vec<(CellId, u64)>],
) -> Result<ConnectionSet, ShapeError> {
    let connection = |source, &(target, words): &(CellId, u64)| {
        // More than a connection can have are refused as more than that.
        Connection::new(source, target, u32::try_from(words).unwrap_or(u32::MAX))
    };
    let rows = records.iter().enumerate();
    let connections = rows.flat_map(|(cell, row)| {
        let source = CellId::from_index(cell);
        row.iter().map(move |sent| connection(source, sent))
    });
    ConnectionSet::new(name, connections.collect())
}
