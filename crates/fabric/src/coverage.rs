//! Check that every word of a set was received exactly once.
//!
//! A finished receive operation has taken a run of a connection's words. The runs of a connection
//! must be adjacent from its first word to its last: a gap is missing words, an overlap is words
//! received more than once.

use std::collections::BTreeMap;

use conset_ir::{CellId, ConnectionId, ConnectionSet, Direction, Piece, SetImage, Steps};

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
///
/// The pieces of a step plan are followed in the order of the plan. Words that a message sends from
/// a cell that does not have them, and words that do not end at their target, are missing.
pub fn coverage_fault(image: &SetImage) -> Option<FaultKind> {
    if let Some(steps) = &image.steps {
        return step_gaps(steps).fault();
    }
    let mut coverage = Coverage::default();
    let cells = image.phases.iter().flat_map(|phase| phase.cells());
    for operation in cells.flat_map(|(_, context)| context.operations) {
        if operation.direction == Direction::Receive {
            coverage.add(operation.connection, operation.first_word, operation.words);
        }
    }
    coverage.gaps(&image.set).fault()
}

/// The words of a step plan that are not delivered.
fn step_gaps(steps: &Steps) -> CoverageGaps {
    let mut held = HeldWords::new(steps.set());
    let mut missing = vec![0u64; steps.set().len()];
    for message in steps.messages().iter() {
        for &piece in message.pieces {
            missing[piece.connection.index()] += held.moves(piece, message.source, message.target);
        }
    }
    let mut gaps = CoverageGaps::default();
    for (id, connection) in steps.set().iter() {
        let missing = missing[id.index()] + held.elsewhere(id, connection.target);
        if missing > 0 {
            gaps.first.get_or_insert((id, missing, 0));
            gaps.connections += 1;
        }
    }
    gaps
}

/// The cells that have the words of each connection.
struct HeldWords<'a> {
    set: &'a ConnectionSet,
    /// By connection, the cell that has all its words, unless they are divided.
    whole: Vec<Option<CellId>>,
    /// Of divided connections: by connection and first word, the end of a stretch and its cell.
    parts: BTreeMap<(ConnectionId, u32), (u32, CellId)>,
}

impl<'a> HeldWords<'a> {
    fn new(set: &'a ConnectionSet) -> Self {
        let whole = set.connections().iter().map(|c| Some(c.source)).collect();
        Self { set, whole, parts: BTreeMap::new() }
    }

    /// Moves a piece; returns how many of its words were not at `from`.
    fn moves(&mut self, piece: Piece, from: CellId, to: CellId) -> u64 {
        let Piece { connection, first_word, words } = piece;
        let all = self.set.get(connection).words;
        let Some(end) = first_word.checked_add(words).filter(|&end| end <= all && from != to)
        else {
            return u64::from(words.max(1));
        };
        if let Some(holder) = self.whole[connection.index()] {
            if piece.is_whole(self.set) {
                self.whole[connection.index()] = Some(to);
                return if holder == from { 0 } else { u64::from(words) };
            }
            self.whole[connection.index()] = None;
            self.parts.insert((connection, 0), (all, holder));
        }
        self.split(connection, first_word);
        self.split(connection, end);
        let mut missing = 0;
        for (&(_, start), stretch) in
            self.parts.range_mut((connection, first_word)..(connection, end))
        {
            if stretch.1 != from {
                missing += u64::from(stretch.0 - start);
            }
            stretch.1 = to;
        }
        missing
    }

    /// Divides the stretch that has words on both sides of a position.
    fn split(&mut self, connection: ConnectionId, at: u32) {
        let before = self.parts.range_mut((connection, 0)..(connection, at)).next_back();
        if let Some((_, stretch)) = before
            && stretch.0 > at
        {
            let rest = *stretch;
            stretch.0 = at;
            self.parts.insert((connection, at), rest);
        }
    }

    /// Words of a connection that are not at a cell.
    fn elsewhere(&self, connection: ConnectionId, target: CellId) -> u64 {
        if let Some(holder) = self.whole[connection.index()] {
            let words = u64::from(self.set.get(connection).words);
            return if holder == target { 0 } else { words };
        }
        let parts = self.parts.range((connection, 0)..=(connection, u32::MAX));
        let away = parts.filter(|(_, stretch)| stretch.1 != target);
        away.map(|((_, start), (end, _))| u64::from(end - start)).sum()
    }
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

    /// Adds the runs of another part of the set.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.runs.append(&mut other.runs);
    }

    /// Number of runs so far.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether a connection has runs that were added after the first `len` ones.
    pub(crate) fn has_after(&self, len: usize, connection: ConnectionId) -> bool {
        self.runs[len..].iter().any(|run| run.0 == connection)
    }

    /// Removes runs that were added after the first `len` ones.
    pub(crate) fn retain_after(&mut self, len: usize, keep: impl Fn(ConnectionId) -> bool) {
        let later = self.runs.split_off(len);
        self.runs.extend(later.into_iter().filter(|run| keep(run.0)));
    }

    /// The runs: connection, first word, words.
    pub(crate) fn into_runs(self) -> Vec<(ConnectionId, u32, u32)> {
        self.runs
    }

    /// Compares the runs with the words of the set. O(runs log runs + connections).
    pub(crate) fn gaps(&mut self, set: &ConnectionSet) -> CoverageGaps {
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
    use conset_ir::{Connection, Machine, StepMessages};
    use std::sync::Arc;

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

    #[test]
    fn pieces_of_a_plan_are_followed() {
        let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
        let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 10)]).unwrap();
        let set = Arc::new(set);
        let fault = |sent: &[(u32, u32, u32, u32)]| {
            let mut messages = StepMessages::new();
            for &(source, target, first_word, words) in sent {
                let piece = Piece { connection: ConnectionId(0), first_word, words };
                messages.push(CellId(source), CellId(target), &[piece]).unwrap();
            }
            messages.end_step().unwrap();
            let steps = Steps::new(machine.clone(), set.clone(), messages).unwrap();
            match coverage_fault(&SetImage::of_steps(steps)) {
                None => 0,
                Some(FaultKind::Coverage { missing, .. }) => missing,
                Some(other) => panic!("{other:?}"),
            }
        };
        assert_eq!(fault(&[(0, 2, 0, 10)]), 0);
        assert_eq!(fault(&[(0, 1, 0, 4), (0, 1, 4, 6), (1, 2, 0, 10)]), 0);
        // Never sent; left on the way; sent by a cell that has it not; beyond the end; to itself.
        assert_eq!(fault(&[]), 10);
        assert_eq!(fault(&[(0, 1, 0, 10), (1, 2, 0, 7)]), 3);
        assert_eq!(fault(&[(1, 2, 0, 10)]), 10);
        assert_eq!(fault(&[(0, 2, 0, 10), (2, 1, 5, 6)]), 6);
        assert_eq!(fault(&[(0, 2, 0, 10), (2, 2, 0, 10)]), 10);
        assert_eq!(fault(&[(0, 2, u32::MAX, 10)]), 20);
    }
}
