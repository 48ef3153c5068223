//! A round of an epoch: the items of all cells go to their targets.
//!
//! Live cells are numbered by their *places*, 0 to P - 1. An item goes from place s to place t by
//! the binary digits of (t - s) mod P, the lowest first: in hop k each cell passes to the cell
//! 2^k places on whatever it has, of its own or of others, whose distance left has digit k. So each
//! cell sends ceil(log2 P) packets in a round, however many targets it has, and any P will do. Items
//! of one cell for another take the same way and stay together, in a *parcel*, in the order
//! of sending.
//!
//! Each packet says which cell is the first, of all that its sender has heard of, to have sent an
//! item in this round. After hop k a cell has heard of the 2^(k + 1) - 1 places before its own, after
//! the last hop of all.
//!
//! A packet begins with [`MARK`], the words and bytes of the items, and that first sender; its
//! parcels follow: source and target, number of items, their words.

use std::collections::BTreeMap;

use conset_ir::CellId;
use conset_ir::convert::{index, to_u32, to_u64};

use crate::cell::Cell;
use crate::error::{CellError, EpochUse};
use crate::word::lower_half;

/// The first word of a packet, by which it is told from a message of the program: a signalling NaN
/// that no calculation gives.
const MARK: u64 = 0x7ff4_65e0_706f_6368;
/// Whether words are a packet.
pub(crate) fn is_packet(words: &[u64]) -> bool {
    words.len() >= HEAD && words[0] == MARK
}

/// Words of a packet before its parcels.
const HEAD: usize = 3;
/// In place of the first sender: nobody has sent.
const NOBODY: u64 = u64::MAX;

/// The size of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemShape {
    pub(super) words: usize,
    /// Bytes of a word.
    pub(super) bytes: usize,
}

/// The items that a cell sends in a round, by the place of their target.
#[derive(Debug, Default)]
pub(super) struct Parcels(BTreeMap<usize, (usize, Vec<u64>)>);

impl Parcels {
    /// Adds items; `put` appends their words.
    pub(super) fn add(&mut self, target: usize, added: usize, put: impl FnOnce(&mut Vec<u64>)) {
        let (items, words) = self.0.entry(target).or_default();
        *items += added;
        put(words);
    }

    /// The place of each target, and the number of words for it.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|(&target, (_, words))| (target, to_u64(words.len())))
    }

    /// Number of items.
    pub(super) fn items(&self) -> u64 {
        self.0.values().map(|&(items, _)| to_u64(items)).sum()
    }
}

/// Items of one place for another.
#[derive(Debug)]
struct Parcel {
    source: usize,
    target: usize,
    items: usize,
    words: Vec<u64>,
}

/// The sender of some items, their number, and their words.
pub(super) type Arrived = (CellId, usize, Vec<u64>);

/// How items find their targets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router<'a> {
    /// The live cells, by place.
    pub(super) live: &'a [CellId],
    pub(super) shape: ItemShape,
}

impl Router<'_> {
    /// Delivers the items of all cells. Gives those for this cell, in the order of their senders, and
    /// the first cell that has sent any.
    pub(super) fn deliver(
        &self,
        cell: &mut Cell<'_>,
        parcels: Parcels,
    ) -> Result<(Vec<Arrived>, Option<CellId>), CellError> {
        let count = self.live.len();
        let own = self.live.binary_search(&cell.id()).expect("a cell that runs is live");
        let mut first = if parcels.0.is_empty() { NOBODY } else { to_u64(own) };
        let parcel = |(target, (items, words))| Parcel { source: own, target, items, words };
        let mut held: Vec<Parcel> = parcels.0.into_iter().map(parcel).collect();
        let mut distance = 1;
        while distance < count {
            let left = |parcel: &Parcel| (parcel.target + count - own) % count;
            let (go, stay) = held.into_iter().partition(|parcel| left(parcel) & distance != 0);
            held = stay;
            let [target, source] =
                [own + distance, own + count - distance].map(|place| self.live[place % count]);
            let packet = self.packet(first, go);
            // Along a ring of neighbours at this distance some cells have an even quotient, some an
            // odd one, so that packets which leave only when they are received do leave.
            let receive_first = own / distance % 2 == 1;
            let found =
                cell.ask(|port| port.pass_packet(target, &packet, source, receive_first))?;
            match self.open(&found, source, &mut held) {
                Ok(heard) => first = first.min(heard),
                Err(wrong) => return cell.fail(wrong.into()),
            }
            distance *= 2;
        }
        held.sort_unstable_by_key(|parcel| parcel.source);
        let arrived = held.into_iter().map(|p| (self.live[p.source], p.items, p.words)).collect();
        let sender = usize::try_from(first).ok().and_then(|place| self.live.get(place));
        Ok((arrived, sender.copied()))
    }

    fn packet(&self, first: u64, parcels: Vec<Parcel>) -> Vec<u64> {
        let length = parcels.iter().map(|parcel| 2 + parcel.words.len()).sum::<usize>();
        let mut packet = Vec::with_capacity(HEAD + length);
        packet.extend([MARK, both(self.shape.words, self.shape.bytes), first]);
        for Parcel { source, target, items, words } in parcels {
            packet.extend([both(source, target), to_u64(items)]);
            packet.extend(words);
        }
        packet
    }

    /// Takes the parcels out of a packet; the first sender that it knows.
    fn open(&self, packet: &[u64], from: CellId, held: &mut Vec<Parcel>) -> Result<u64, EpochUse> {
        let foreign = || EpochUse::Message { source_cell: from, words: packet.len() };
        let &[MARK, shape, first, ref parcels @ ..] = packet else { return Err(foreign()) };
        let (words, bytes) = halves(shape);
        if (words, bytes) != (self.shape.words, self.shape.bytes) {
            return Err(EpochUse::Items {
                other: from,
                found_words: words,
                found_bytes: bytes,
                words: self.shape.words,
                bytes: self.shape.bytes,
            });
        }
        let mut rest = parcels;
        while let &[ends, items, ref others @ ..] = rest {
            let (source, target) = halves(ends);
            let items = usize::try_from(items).map_err(|_| foreign())?;
            let length = items.checked_mul(words).ok_or_else(foreign)?;
            let (words, others) = others.split_at_checked(length).ok_or_else(foreign)?;
            if source.max(target) >= self.live.len() {
                return Err(foreign());
            }
            held.push(Parcel { source, target, items, words: words.to_vec() });
            rest = others;
        }
        if rest.is_empty() { Ok(first) } else { Err(foreign()) }
    }
}

/// Two numbers of 32 bits in one word.
fn both(high: usize, low: usize) -> u64 {
    u64::from(to_u32(high)) << 32 | u64::from(to_u32(low))
}

fn halves(word: u64) -> (usize, usize) {
    (index(lower_half(word >> 32)), index(lower_half(word)))
}
