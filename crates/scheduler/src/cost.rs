//! What a stream costs an agent: durations and the sides of a cell (machine model, rule 4).
//!
//! A *side* is what one stream at a time can be booked on. With full duplex a cell has two, its
//! send side and its receive side; with half duplex it has one. A route books the send side of
//! its source and the receive side of its target for its whole duration, which is that of its
//! stream ([`StreamClocks`]). A connection of a cell to itself books both sides of its cell with
//! full duplex, and its one side, for twice as long, with half.
//!
//! Switches have no agent and are never an end.

use conset_ir::{CellId, Connection, Duplex, Machine, Parameters, RouteRef, StreamClocks};

/// The numbers of the machine that durations depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Of streams from one cell to another, and from a cell to itself.
    streams: [StreamClocks; 2],
    duplex: Duplex,
}

impl Costs {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            streams: [false, true].map(|itself| StreamClocks::between(parameters, itself)),
            duplex: parameters.duplex,
        }
    }

    /// What streams of a connection take.
    pub(crate) fn stream(&self, connection: &Connection) -> &StreamClocks {
        &self.streams[usize::from(connection.source == connection.target)]
    }

    /// The predicted duration `d_c` of a route of a connection, in clocks.
    pub(crate) fn duration(&self, route: &RouteRef<'_>, connection: &Connection) -> u64 {
        self.stream(connection).of(route.words)
    }

    /// Clocks by which the last word of a stream over so many links is received later.
    pub(crate) fn flight(&self, hops: usize, connection: &Connection) -> u64 {
        self.stream(connection).pipeline_latency(hops)
    }

    /// The sides that a connection books: of its source, of its target. Equal for a connection
    /// to itself with half duplex. Below [`Costs::side_count`].
    pub(crate) fn sides(&self, connection: &Connection) -> [u32; 2] {
        self.sides_of(connection.source, connection.target)
    }

    /// The same for a connection with these ends.
    pub(crate) fn sides_of(&self, source: CellId, target: CellId) -> [u32; 2] {
        self.duplex.ports(source, target)
    }

    /// Number of sides of a machine.
    pub(crate) fn side_count(&self, machine: &Machine) -> usize {
        self.duplex.port_count(machine.cell_count())
    }
}

/// A map from the rows of a large table to the few that a phase uses, numbered from 0 in the
/// order in which they are met. Clearing costs what was used, not the size of the table, so a
/// phase of ten routes costs the same on any machine.
#[derive(Debug)]
pub(crate) struct Compact {
    local: Vec<u32>,
    used: Vec<u32>,
}

impl Compact {
    const UNUSED: u32 = u32::MAX;

    pub(crate) fn new(rows: usize) -> Self {
        Self { local: vec![Self::UNUSED; rows], used: Vec::new() }
    }

    /// The number of a row within the phase; a new one if it was not met before.
    pub(crate) fn meet(&mut self, row: u32) -> u32 {
        let local = &mut self.local[row as usize];
        if *local == Self::UNUSED {
            *local = self.used.len() as u32;
            self.used.push(row);
        }
        *local
    }

    /// The number of a row within the phase, if it was met.
    pub(crate) fn find(&self, row: u32) -> Option<u32> {
        let local = self.local[row as usize];
        (local != Self::UNUSED).then_some(local)
    }

    /// The rows met, by their numbers within the phase.
    pub(crate) fn used(&self) -> &[u32] {
        &self.used
    }

    pub(crate) fn clear(&mut self) {
        for row in self.used.drain(..) {
            self.local[row as usize] = Self::UNUSED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_to_itself_books_one_side_of_a_half_duplex_cell() {
        let itself = Connection::new(CellId(3), CellId(3), 1);
        assert_eq!(Costs::new(&Parameters::iwarp_fem()).sides(&itself), [3, 3]);
        assert_eq!(Costs::new(&Parameters::iwarp()).sides(&itself), [6, 7]);
    }

    #[test]
    fn compact_numbers_are_dense_and_forgotten() {
        let mut compact = Compact::new(10);
        assert_eq!((compact.meet(7), compact.meet(2), compact.meet(7)), (0, 1, 0));
        assert_eq!(compact.used(), [7, 2]);
        compact.clear();
        assert_eq!((compact.find(7), compact.meet(2)), (None, 0));
    }
}
