//! What is left of a set: the connections of which words have not been delivered, as a set of their own.
//!
//! The words of a connection that are left may be in several runs, because a connection may be divided into parts that
//! are delivered in different phases. In the set of what is left they are consecutive, and [`RestSet::original`] maps
//! them back.

use std::collections::BTreeSet;

use conset_fabric::WordRun;
use conset_ir::{Connection, ConnectionId, ConnectionSet, Machine, ShapeError};

/// The first word of a run, and the number of its words.
type Run = (u32, u32);

/// A connection of which words are left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RestConnection {
    /// Its id in the original set.
    original: ConnectionId,
    /// Its words that are left, in order.
    runs: Vec<Run>,
}

impl RestConnection {
    fn words(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.1)).sum()
    }
}

/// What is left of a set. Its connections are numbered by their places here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestSet {
    /// The number of the set in the program.
    pub(super) number: usize,
    /// In the order of the original set.
    connections: Vec<RestConnection>,
    /// The connections that cannot be delivered, by their ids in the original set.
    lost: BTreeSet<ConnectionId>,
}

impl RestSet {
    /// All of a set.
    pub(super) fn all(number: usize, set: &ConnectionSet) -> Self {
        let whole = |(id, connection): (ConnectionId, &Connection)| RestConnection {
            original: id,
            runs: vec![(0, connection.words)],
        };
        Self { number, connections: set.iter().map(whole).collect(), lost: BTreeSet::new() }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// The connections that are left, by their ids in the original set.
    pub(super) fn originals(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.connections.iter().map(|row| row.original)
    }

    /// The words of a connection that are left, by its id in the original set.
    pub(super) fn words_left(&self, original: ConnectionId) -> u64 {
        let row = self.connections.binary_search_by_key(&original, |row| row.original);
        row.map_or(0, |row| self.connections[row].words())
    }

    /// The id in the original set of a connection here.
    pub(super) fn original_id(&self, connection: ConnectionId) -> ConnectionId {
        self.connections[connection.index()].original
    }

    /// The connection with its id in the original set, and the words there of a run here.
    pub(super) fn original(&self, run: WordRun) -> (ConnectionId, Vec<Run>) {
        let row = &self.connections[run.connection.index()];
        (row.original, stretch(&row.runs, run.first_word, run.words))
    }

    /// What is left when these runs, sorted and without repetitions, have been delivered.
    pub(super) fn without(&self, delivered: &[WordRun]) -> Self {
        let mut delivered = delivered.iter().peekable();
        let mut connections = Vec::new();
        for (number, row) in self.connections.iter().enumerate() {
            let id = ConnectionId::from_index(number);
            let words: u32 = row.runs.iter().map(|run| run.1).sum();
            let (mut runs, mut next) = (Vec::new(), 0);
            while let Some(run) = delivered.next_if(|run| run.connection == id) {
                runs.extend(stretch(&row.runs, next, run.first_word - next));
                next = run.first_word + run.words;
            }
            runs.extend(stretch(&row.runs, next, words - next));
            if !runs.is_empty() {
                connections.push(RestConnection { original: row.original, runs });
            }
        }
        Self { number: self.number, connections, lost: self.lost.clone() }
    }

    /// Removes the connections that begin or end at a dead cell of a machine. Returns their ids in the original set and
    /// the words that were left.
    pub(super) fn remove_lost(
        &mut self,
        machine: &Machine,
        original: &ConnectionSet,
    ) -> Vec<(ConnectionId, u64)> {
        let mut lost = Vec::new();
        self.connections.retain(|row| {
            let Connection { source, target, .. } = *original.get(row.original);
            let is_alive = machine.is_alive(source) && machine.is_alive(target);
            if !is_alive {
                lost.push((row.original, row.words()));
            }
            is_alive
        });
        self.lost.extend(lost.iter().map(|row| row.0));
        lost
    }

    /// What is left as a set of the same name. The order also holds between connections that were ordered before and
    /// after a lost one.
    ///
    /// # Errors
    /// More pairs of the order than a set may have.
    pub(super) fn set(&self, original: &ConnectionSet) -> Result<ConnectionSet, ShapeError> {
        let connection = |row: &RestConnection| {
            let words = row.runs.iter().map(|run| run.1).sum();
            Connection { words, ..original.get(row.original).clone() }
        };
        let connections = self.connections.iter().map(connection).collect();
        ConnectionSet::new(original.name(), connections)?.with_order(self.order(original))
    }

    fn order(&self, original: &ConnectionSet) -> Vec<(ConnectionId, ConnectionId)> {
        if original.order().is_empty() {
            return Vec::new();
        }
        let mut here = vec![None; original.len()];
        for (number, row) in self.connections.iter().enumerate() {
            here[row.original.index()] = Some(ConnectionId::from_index(number));
        }
        let mut before: Vec<Vec<ConnectionId>> = vec![Vec::new(); original.len()];
        for (first, second) in original.order() {
            before[second.index()].push(*first);
        }
        let mut order = Vec::new();
        for (number, row) in self.connections.iter().enumerate() {
            let mut open = before[row.original.index()].clone();
            let mut seen = BTreeSet::new();
            while let Some(id) = open.pop() {
                if !seen.insert(id) {
                    continue;
                }
                match here[id.index()] {
                    Some(first) => order.push((first, ConnectionId::from_index(number))),
                    None if self.lost.contains(&id) => open.extend(&before[id.index()]),
                    // It was delivered, and all before it too.
                    None => {}
                }
            }
        }
        order
    }
}

/// The runs that `words` words from place `from` of a list of runs make up.
fn stretch(runs: &[Run], mut from: u32, mut words: u32) -> Vec<Run> {
    let mut found = Vec::new();
    for &(first, count) in runs {
        let skipped = from.min(count);
        let taken = words.min(count - skipped);
        if taken > 0 {
            found.push((first + skipped, taken));
        }
        from -= skipped;
        words -= taken;
    }
    found
}

#[cfg(test)]
mod tests {
    use conset_ir::CellId;

    use super::*;

    fn x(id: u32) -> ConnectionId {
        ConnectionId(id)
    }

    fn run(id: u32, first_word: u32, words: u32) -> WordRun {
        WordRun { connection: x(id), first_word, words }
    }

    fn set() -> ConnectionSet {
        let row = |source, target| Connection::new(CellId(source), CellId(target), 10);
        let rows = vec![row(0, 1), row(1, 2), row(2, 3), row(3, 0)];
        let order = vec![(x(0), x(1)), (x(1), x(2)), (x(2), x(3))];
        ConnectionSet::new("s", rows).unwrap().with_order(order).unwrap()
    }

    #[test]
    fn what_is_left_is_renumbered_and_mapped_back() {
        let rest = RestSet::all(0, &set());
        let rest = rest.without(&[run(0, 0, 10), run(1, 3, 2), run(1, 8, 2)]);
        assert_eq!(rest.originals().collect::<Vec<_>>(), [x(1), x(2), x(3)]);
        assert_eq!((rest.words_left(x(0)), rest.words_left(x(1))), (0, 6));
        assert_eq!(rest.original(run(0, 0, 6)), (x(1), vec![(0, 3), (5, 3)]));
        assert_eq!(rest.original(run(0, 2, 2)), (x(1), vec![(2, 1), (5, 1)]));
        assert_eq!(rest.original(run(0, 3, 1)), (x(1), vec![(5, 1)]));
        let rest = rest.without(&[run(0, 1, 4), run(2, 0, 10)]);
        assert_eq!(rest.original(run(0, 0, 2)), (x(1), vec![(0, 1), (7, 1)]));
        assert_eq!(rest.set(&set()).unwrap().connections()[0].words, 2);
        assert!(rest.without(&[run(0, 0, 2), run(1, 0, 10)]).is_empty());
    }

    #[test]
    fn the_order_holds_across_a_lost_connection() {
        let machine = Machine::from_spec("ring:4").unwrap();
        let mut rest = RestSet::all(0, &set());
        let hurt = machine.with_dead(&[CellId(2)], &[]).unwrap();
        assert_eq!(rest.remove_lost(&hurt, &set()), [(x(1), 10), (x(2), 10)]);
        assert_eq!(rest.set(&set()).unwrap().order(), [(x(0), x(1))]);
        assert_eq!(rest.originals().collect::<Vec<_>>(), [x(0), x(3)]);
        // What was delivered puts nothing off.
        let rest = rest.without(&[run(0, 0, 10)]);
        assert!(rest.set(&set()).unwrap().order().is_empty());
    }
}
