//! The words of connections on the emulated machine: sent, received, and buffered.
//!
//! The engine looks up a word when it is delivered, which can be after the call of the sender has
//! returned. Sent words are therefore kept here, and not in variables of the sender, until the next
//! switch to another set; every switch finds the network empty.
//!
//! Several nonblocking exchanges can wait for the machine, even of the same set. Each has one
//! *packed exchange* per cell: the buffers that the cell handed over. The driver sends them when
//! the machine reaches the exchange, and fills them as the words of the cell arrive.

use std::collections::BTreeMap;
use std::ops::Range;

use conset_fabric::Payload;
use conset_ir::convert;
use conset_ir::{CellId, ConnectionId, ConnectionSet, Piece};

use crate::port::WireBuffers;
use crate::word::{bits_of, put_bits};

/// Words of the active set. A row is as long as the words put there so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordStore {
    outgoing: Vec<Vec<u64>>,
    incoming: Vec<Vec<u64>>,
}

impl WordStore {
    /// Room for another set.
    pub(crate) fn start_set(&mut self, set: &ConnectionSet) {
        for rows in [&mut self.outgoing, &mut self.incoming] {
            rows.clear();
            rows.resize(set.len(), Vec::new());
        }
    }

    pub(crate) fn put(&mut self, connection: ConnectionId, index: u32, bits: u64) {
        *place(&mut self.outgoing[connection.index()], index) = bits;
    }

    /// Puts all words of a connection.
    pub(crate) fn fill(&mut self, connection: ConnectionId, words: impl Iterator<Item = u64>) {
        let row = &mut self.outgoing[connection.index()];
        row.clear();
        row.extend(words);
    }

    pub(crate) fn get(&self, connection: ConnectionId, index: u32) -> u64 {
        self.incoming[connection.index()].get(convert::index(index)).copied().unwrap_or(0)
    }

    /// The first `count` words of a connection; those that were not received are 0.
    pub(crate) fn received(
        &self,
        connection: ConnectionId,
        count: usize,
    ) -> impl Iterator<Item = u64> {
        let row = &self.incoming[connection.index()];
        row.iter().copied().chain(std::iter::repeat(0)).take(count)
    }

    /// Puts the outgoing words of a pack.
    pub(crate) fn put_packed(&mut self, outgoing: &[ConnectionId], exchange: &WireBuffers) {
        for (&connection, words) in outgoing.iter().zip(exchange.outgoing.iter()) {
            self.fill(connection, words.chunks(exchange.outgoing.size().max(1)).map(bits_of));
        }
    }

    /// Copies what was received to the incoming words of a pack.
    pub(crate) fn get_packed(&self, incoming: &[ConnectionId], exchange: &mut WireBuffers) {
        let size = exchange.incoming.size().max(1);
        exchange.incoming.for_each_mut(|row, wire| {
            let words = wire.chunks_mut(size);
            let received = self.received(incoming[row], words.len());
            words.zip(received).for_each(|(word, bits)| put_bits(word, bits));
        });
    }
}

/// A nonblocking exchange of a cell whose buffers it has not taken back.
#[derive(Clone, Debug)]
struct PackedExchange {
    number: u64,
    buffers: WireBuffers,
    /// The exchange has no phases: it is over when those before it are.
    empty: bool,
    arrived: bool,
}

/// The nonblocking exchanges of all cells, by cell, in the order in which they were started.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedExchanges(Vec<Vec<PackedExchange>>);

impl PackedExchanges {
    pub(crate) fn new(cells: usize) -> Self {
        Self(vec![Vec::new(); cells])
    }

    /// A cell starts exchange `number`; `empty`: it has no phases.
    pub(crate) fn put(&mut self, cell: CellId, number: u64, empty: bool, buffers: WireBuffers) {
        let packed = &mut self.0[cell.index()];
        let arrived = empty && packed.iter().all(|exchange| exchange.arrived);
        packed.push(PackedExchange { number, buffers, empty, arrived });
    }

    /// The buffers of a cell for exchange `number`.
    pub(crate) fn get(&mut self, cell: CellId, number: u64) -> &mut WireBuffers {
        let place = self.place(cell, number);
        &mut self.0[cell.index()][place].buffers
    }

    /// A cell's part of exchange `number` has arrived, and with it those after it that have no
    /// phases.
    pub(crate) fn arrive(&mut self, cell: CellId, number: u64) {
        let place = self.place(cell, number);
        let (now, after) = self.0[cell.index()][place..].split_at_mut(1);
        now[0].arrived = true;
        after
            .iter_mut()
            .take_while(|exchange| exchange.empty)
            .for_each(|exchange| exchange.arrived = true);
    }

    pub(crate) fn has_arrived(&self, cell: CellId, number: u64) -> bool {
        self.0[cell.index()][self.place(cell, number)].arrived
    }

    /// Takes buffers back.
    pub(crate) fn take(&mut self, cell: CellId, number: u64) -> WireBuffers {
        let place = self.place(cell, number);
        self.0[cell.index()].remove(place).buffers
    }

    fn place(&self, cell: CellId, number: u64) -> usize {
        let place = self.0[cell.index()].binary_search_by_key(&number, |exchange| exchange.number);
        place.expect("the exchange was begun and not taken back")
    }
}

/// The words that cells have in exchanges by steps: by round, cell and connection. A cell has
/// those of its own connections, and those that it has received and not passed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepStore {
    held: BTreeMap<(u64, CellId, ConnectionId), Vec<u64>>,
    /// By cell, the exchanges that it has started.
    rounds: Vec<u64>,
}

impl StepStore {
    pub(crate) fn new(cells: usize) -> Self {
        Self { held: BTreeMap::new(), rounds: vec![0; cells] }
    }

    /// A cell starts its next exchange; the number of it, from 1.
    pub(crate) fn start(&mut self, cell: CellId) -> u64 {
        self.rounds[cell.index()] += 1;
        self.rounds[cell.index()]
    }

    /// The exchange that a cell has started last.
    pub(crate) fn round_of(&self, cell: CellId) -> u64 {
        self.rounds[cell.index()]
    }

    /// Puts all words of a connection where a cell has them.
    pub(crate) fn put(
        &mut self,
        (round, cell): (u64, CellId),
        connection: ConnectionId,
        words: impl Iterator<Item = u64>,
    ) {
        self.held.insert((round, cell, connection), words.collect());
    }

    /// Takes the words of a connection from a cell.
    pub(crate) fn take(
        &mut self,
        (round, cell): (u64, CellId),
        connection: ConnectionId,
    ) -> Vec<u64> {
        self.held.remove(&(round, cell, connection)).unwrap_or_default()
    }

    /// Adds the words of pieces that a cell sends, which it then has no more.
    pub(crate) fn send(
        &mut self,
        round: u64,
        cell: CellId,
        set: &ConnectionSet,
        pieces: &[Piece],
        words: &mut Vec<u64>,
    ) {
        for piece in pieces {
            if piece.is_whole(set) {
                words.append(&mut self.take((round, cell), piece.connection));
            } else if let Some(held) = self.held.get(&(round, cell, piece.connection)) {
                words.extend_from_slice(&held[range(piece)]);
            }
        }
    }

    /// Puts the words of pieces where the cell that has received them has them.
    pub(crate) fn receive(
        &mut self,
        round: u64,
        cell: CellId,
        set: &ConnectionSet,
        pieces: &[Piece],
        mut words: &[u64],
    ) {
        for piece in pieces {
            let Some((own, rest)) = words.split_at_checked(convert::index(piece.words)) else {
                return;
            };
            let all = convert::index(set.get(piece.connection).words);
            let held = self.held.entry((round, cell, piece.connection));
            held.or_insert_with(|| vec![0; all])[range(piece)].copy_from_slice(own);
            words = rest;
        }
    }
}

fn range(piece: &Piece) -> Range<usize> {
    let first = convert::index(piece.first_word);
    first..first + convert::index(piece.words)
}

impl Payload for WordStore {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.outgoing[from.0.index()].get(convert::index(from.1)).copied().unwrap_or(0);
        *place(&mut self.incoming[to.0.index()], to.1) = word;
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        *place(&mut self.incoming[to.0.index()], to.1) ^= u64::from(bits);
    }
}

#[inline]
fn place(row: &mut Vec<u64>, index: u32) -> &mut u64 {
    if row.len() <= convert::index(index) {
        row.resize(convert::index(index) + 1, 0);
    }
    &mut row[convert::index(index)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_without_phases_arrive_with_those_before_them() {
        let cell = CellId(0);
        let mut packed = PackedExchanges::new(1);
        for (number, empty) in [(3, true), (4, false), (5, true), (6, false), (7, true)] {
            packed.put(cell, number, empty, WireBuffers::default());
        }
        let arrived = |packed: &PackedExchanges| {
            [3, 4, 5, 6, 7].map(|number| packed.has_arrived(cell, number))
        };
        assert_eq!(arrived(&packed), [true, false, false, false, false]);
        packed.arrive(cell, 4);
        assert_eq!(arrived(&packed), [true, true, true, false, false]);
        packed.take(cell, 4);
        packed.arrive(cell, 6);
        assert!(packed.has_arrived(cell, 7));
    }
}
