//! Check that every word of a set was received exactly once.
//!
//! A finished receive operation has taken a run of a connection's words. The runs of a connection
//! must be adjacent from its first word to its last: a gap is missing words, an overlap is words
//! received more than once.

use conset_ir::{ConnectionId, ConnectionSet, Direction, SetImage};

use crate::fault::FaultKind;

/// Runs of words received: (connection, first word, words).
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    runs: Vec<(ConnectionId, u32, u32)>,
}

/// The words that the runs leave out or cover more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoverageGaps {
    pub(crate) missing: u64,
    pub(crate) extra: u64,
    /// The first connection concerned, with its own missing and extra words.
    pub(crate) first: Option<(ConnectionId, u64, u64)>,
    pub(crate) connections: usize,
}

/// The words that the receive operations of a set's image leave out or receive more than once, as
/// the fault that its execution would end with; `None` if every word is received exactly once.
pub fn coverage_fault(image: &SetImage) -> Option<FaultKind> {
    let mut coverage = Coverage::default();
    let cells = image.phases.iter().flat_map(|phase| phase.cells());
    for operation in cells.flat_map(|(_, context)| context.operations) {
        if operation.direction == Direction::Receive {
            coverage.add(operation.connection, operation.first_word, operation.words);
        }
    }
    coverage.gaps(&image.set).fault()
}

impl CoverageGaps {
    pub(crate) fn fault(&self) -> Option<FaultKind> {
        let (connection, missing, extra) = self.first?;
        let connections = self.connections;
        Some(FaultKind::Coverage { connection, missing, extra, connections })
    }
}

impl Coverage {
    /// Records a finished receive operation.
    pub(crate) fn add(&mut self, connection: ConnectionId, first_word: u32, words: u32) {
        self.runs.push((connection, first_word, words));
    }

    /// Compares the runs with the words of the set. O(runs log runs + connections).
    pub(crate) fn gaps(mut self, set: &ConnectionSet) -> CoverageGaps {
        self.runs.sort_unstable();
        let mut gaps = CoverageGaps::default();
        let mut runs = self.runs.iter().peekable();
        for (id, connection) in set.iter() {
            let (mut end, mut missing, mut extra) = (0u64, 0u64, 0u64);
            while let Some(&(_, first, words)) = runs.next_if(|run| run.0 == id) {
                let (from, to) = (u64::from(first), u64::from(first) + u64::from(words));
                missing += from.saturating_sub(end);
                extra += end.min(to).saturating_sub(from);
                end = end.max(to);
            }
            missing += u64::from(connection.words).saturating_sub(end);
            if missing + extra > 0 {
                gaps.first.get_or_insert((id, missing, extra));
                gaps.connections += 1;
                gaps.missing += missing;
                gaps.extra += extra;
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};

    #[test]
    fn gaps_and_overlaps_are_counted() {
        let connections = vec![Connection::new(CellId(0), CellId(1), 10); 3];
        let set = ConnectionSet::new("s", connections).unwrap();
        let mut coverage = Coverage::default();
        coverage.add(ConnectionId(2), 4, 6);
        coverage.add(ConnectionId(1), 2, 5);
        coverage.add(ConnectionId(2), 0, 4);
        coverage.add(ConnectionId(1), 3, 5);
        let gaps = coverage.gaps(&set);
        assert_eq!((gaps.missing, gaps.extra, gaps.connections), (10 + 4, 4, 2));
        assert_eq!(gaps.first, Some((ConnectionId(0), 10, 0)));
    }
}
