//! A round of an epoch by messages: the items of all cells go to their targets.
//!
//! Live cells are numbered by their *places*, 0 to P - 1. There are two ways, with the same results.
//!
//! *Routed*: an item goes from place s to place t by the binary digits of (t - s) mod P, the lowest
//! first: in hop k each cell passes to the cell 2^k places on whatever it has, of its own or of
//! others, whose distance left has digit k. So each cell sends ceil(log2 P) packets in a round,
//! however many targets it has, and any P will do. Items of one cell for another take the same way
//! and stay together, in a *parcel*, in the order of sending.
//!
//! *Direct*: a packet to each other cell, also where there is nothing for it. That is one hop, and
//! no word is passed on; but P - 1 packets of each cell.
//!
//! Each packet says which cell is the first, of all that its sender has heard of, to have sent an
//! item in this round. After hop k of a routed round a cell has heard of the 2^(k + 1) - 1 places
//! before its own, after the last hop of all. So no reduction is needed to know when an epoch has
//! settled, and none to know how many messages will come.
//!
//! A packet begins with [`MARK`], the shape of the items, and that first sender; its parcels follow:
//! source and target, number of bytes, and the bytes: eight in a word, or on the emulated machine,
//! which carries a word of the program in each of its own, as many as a word has.

use std::borrow::Cow;

use conset_ir::CellId;
use conset_ir::convert::{index, to_u32, to_u64, to_usize};

use crate::error::EpochUse;
use crate::port::Stopped;
use crate::word::{TYPES, bits_of, bytes as word_bytes, lower_half, put_bits};

/// The first word of a packet, by which it is told from a message of the program: a signalling NaN
/// that no calculation gives.
pub(crate) const MARK: u64 = 0x7ff4_65e0_706f_6368;
/// Words of a packet before its parcels.
const HEAD: usize = 3;
/// In place of the first sender: nobody has sent.
pub(crate) const NOBODY: u64 = u64::MAX;

/// The place of the first cell that sends, if any does.
pub(crate) fn known(first: u64) -> Option<usize> {
    (first != NOBODY).then(|| to_usize(first))
}

/// What the items of an epoch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemShape {
    pub(crate) words: usize,
    /// The type of a word, by its place in [`TYPES`].
    pub(crate) word_type: usize,
}

impl ItemShape {
    /// Bytes of a word.
    fn word_bytes(self) -> usize {
        TYPES[self.word_type].1
    }

    /// Bytes that stand for an item. One of no words is a byte, so that it is counted.
    pub(crate) fn item_bytes(self) -> usize {
        (self.words * self.word_bytes()).max(1)
    }

    /// The error that another cell has opened the epoch with other items, if it has.
    pub(crate) fn check(self, other: CellId, found: Self) -> Result<(), EpochUse> {
        if found == self {
            return Ok(());
        }
        let name = |shape: Self| TYPES.get(shape.word_type).map_or("an unknown type", |one| one.0);
        Err(EpochUse::Items {
            other,
            found_words: found.words,
            found_type: name(found),
            words: self.words,
            word_type: name(self),
        })
    }
}

/// How the items of a round find their targets over MPI ([`crate::Cell::set_routing`]). What arrives,
/// and in which order, does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Routing {
    /// Direct up to a number of cells, routed above.
    #[default]
    Auto,
    /// Each cell sends a message to every other cell.
    Direct,
    /// Each cell sends as many messages as the number of cells has binary digits; words are passed
    /// on by other cells.
    Routed,
}

/// Bytes from other cells, by the place of the cell.
pub(crate) type ByteLists = Vec<(usize, Vec<u8>)>;

/// Bytes for other cells, by the place of the cell; some of them the program's.
pub(crate) type SentLists<'a> = Vec<(usize, Cow<'a, [u8]>)>;

/// What one cell sends in a round.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    /// The live cells, by place.
    pub(crate) live: &'a [CellId],
    /// The place of the cell.
    pub(crate) own: usize,
    pub(crate) shape: ItemShape,
    /// The bytes for each target that gets any, by place.
    pub(crate) lists: SentLists<'a>,
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "used over MPI only"))]
    pub(crate) routing: Routing,
}

/// Takes what a round brings to a cell: the bytes of each source that has sent any, by place, in any
/// order.
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "some is used over MPI only"))]
pub(crate) trait TakeLists {
    /// Takes bytes: owned, or those that a transport keeps in a buffer of its own.
    fn take(&mut self, source: usize, bytes: Cow<'_, [u8]>);

    /// Memory for so many bytes, into which the transport receives them. When the round ends without an
    /// error it has written them all; after it has failed it does not use the memory either.
    fn room(&mut self, source: usize, bytes: usize) -> *mut u8;

    /// Takes the memory of a list that was sent.
    fn reuse(&mut self, sent: Vec<u8>);
}

/// The place of the first cell that has sent any bytes to whomever in a round, or what the cell did
/// wrong, unless the run has ended.
pub(crate) type RoundResult = Result<Result<Option<usize>, EpochUse>, Stopped>;

/// Bytes for one place from another.
#[derive(Debug)]
pub(crate) struct Parcel {
    source: usize,
    target: usize,
    bytes: Vec<u8>,
}

/// How the bytes of a parcel are put into words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Eight in a word.
    #[cfg(feature = "mpi")]
    Dense,
    /// A word of the program in each.
    WordByWord,
}

impl Packing {
    /// Bytes of the program in a word of 64 bits.
    pub(crate) fn step(self, shape: ItemShape) -> usize {
        match self {
            #[cfg(feature = "mpi")]
            Packing::Dense => size_of::<u64>(),
            // An item of no words is a byte.
            Packing::WordByWord if shape.words == 0 => 1,
            Packing::WordByWord => shape.word_bytes(),
        }
    }
}

/// Appends bytes, so many in a word.
pub(crate) fn pack(bytes: &[u8], step: usize, words: &mut Vec<u64>) {
    if step == size_of::<u64>() {
        let (whole, rest) = bytes.as_chunks();
        words.extend(whole.iter().map(|&word| u64::from_ne_bytes(word)));
        if !rest.is_empty() {
            let mut last = [0; size_of::<u64>()];
            last[..rest.len()].copy_from_slice(rest);
            words.push(u64::from_ne_bytes(last));
        }
    } else {
        words.extend(bytes.chunks_exact(step).map(bits_of));
    }
}

/// So many bytes out of words that were packed with so many in each.
pub(crate) fn unpack(words: &[u64], step: usize, length: usize) -> Vec<u8> {
    if step == size_of::<u64>() {
        return word_bytes(words)[..length].to_vec();
    }
    let mut bytes = vec![0; length];
    for (chunk, &bits) in bytes.chunks_exact_mut(step).zip(words) {
        put_bits(chunk, bits);
    }
    bytes
}

/// What carries packets from cell to cell.
pub(crate) trait PacketPort {
    /// Sends a packet to one live cell and hands the next one of another, of any length, to `open`.
    /// All cells do so at the same time, and none is its own neighbour. `receive_first`: where a
    /// packet leaves only while it is received, this cell receives before it sends.
    fn pass_packet<T>(
        &mut self,
        to: (CellId, Vec<u64>),
        source: CellId,
        receive_first: bool,
        open: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped>;
}

/// The first sender that a packet knows, and its parcels; or what is wrong with it.
pub(crate) type Opened = Result<(u64, Vec<Parcel>), EpochUse>;

impl Round<'_> {
    /// The routed way.
    pub(crate) fn route(
        self,
        port: &mut impl PacketPort,
        packing: Packing,
        arrived: &mut dyn TakeLists,
    ) -> RoundResult {
        let Round { live, own, shape, lists, .. } = self;
        let (count, packer) = (live.len(), Packer::new(shape, packing, live.len()));
        let (mut first, mut held) = parcels(own, lists);
        let mut distance = 1;
        while distance < count {
            let left = |parcel: &Parcel| (parcel.target + count - own) % count;
            let (go, stay): (Vec<_>, _) =
                held.into_iter().partition(|parcel| left(parcel) & distance != 0);
            held = stay;
            let [target, source] =
                [own + distance, own + count - distance].map(|place| live[place % count]);
            let packet = packer.packet(first, &go);
            // Along a ring of neighbours at this distance some cells have an even quotient, some an
            // odd one, so that packets which leave only when they are received do leave.
            let receive_first = own / distance % 2 == 1;
            let open = |packet: &[u64]| packer.open(packet, source);
            match port.pass_packet((target, packet), source, receive_first, open)? {
                Ok((heard, parcels)) => {
                    first = first.min(heard);
                    held.extend(parcels);
                }
                Err(wrong) => return Ok(Err(wrong)),
            }
            distance *= 2;
        }
        held.into_iter().for_each(|parcel| arrived.take(parcel.source, parcel.bytes.into()));
        Ok(Ok(known(first)))
    }
}

/// The first cell that a cell has heard of when it begins, and what it sends.
fn parcels(own: usize, lists: SentLists<'_>) -> (u64, Vec<Parcel>) {
    let first = if lists.is_empty() { NOBODY } else { to_u64(own) };
    let parcel = |(target, bytes): (_, Cow<'_, [u8]>)| Parcel {
        source: own,
        target,
        bytes: bytes.into_owned(),
    };
    (first, lists.into_iter().map(parcel).collect())
}

/// Makes packets, and opens them.
#[derive(Clone, Copy, Debug)]
struct Packer {
    shape: ItemShape,
    /// Bytes of the program in a word of 64 bits.
    step: usize,
    /// Number of places.
    places: usize,
}

impl Packer {
    fn new(shape: ItemShape, packing: Packing, places: usize) -> Self {
        Self { shape, step: packing.step(shape), places }
    }

    fn packet(&self, first: u64, parcels: &[Parcel]) -> Vec<u64> {
        let length = |parcel: &Parcel| 2 + parcel.bytes.len().div_ceil(self.step);
        let mut packet = Vec::with_capacity(HEAD + parcels.iter().map(length).sum::<usize>());
        packet.extend([MARK, both(self.shape.words, self.shape.word_type), first]);
        for Parcel { source, target, bytes } in parcels {
            packet.extend([both(*source, *target), to_u64(bytes.len())]);
            pack(bytes, self.step, &mut packet);
        }
        packet
    }

    /// Takes the parcels out of a packet.
    fn open(&self, packet: &[u64], from: CellId) -> Opened {
        let foreign = || EpochUse::Message { source_cell: from, words: packet.len() };
        let &[MARK, shape, first, ref parcels @ ..] = packet else { return Err(foreign()) };
        let (words, word_type) = halves(shape);
        self.shape.check(from, ItemShape { words, word_type })?;
        if first != NOBODY && first >= to_u64(self.places) {
            return Err(foreign());
        }
        let (mut rest, mut found) = (parcels, Vec::new());
        while let &[ends, length, ref others @ ..] = rest {
            let (source, target) = halves(ends);
            let bytes = usize::try_from(length).map_err(|_| foreign())?;
            let taken = bytes.div_ceil(self.step);
            let (words, others) = others.split_at_checked(taken).ok_or_else(foreign)?;
            let whole = bytes.is_multiple_of(self.shape.item_bytes());
            if source.max(target) >= self.places || !whole {
                return Err(foreign());
            }
            found.push(Parcel { source, target, bytes: unpack(words, self.step, bytes) });
            rest = others;
        }
        if rest.is_empty() { Ok((first, found)) } else { Err(foreign()) }
    }
}

/// Two numbers of 32 bits in one word.
pub(crate) fn both(high: usize, low: usize) -> u64 {
    u64::from(to_u32(high)) << 32 | u64::from(to_u32(low))
}

pub(crate) fn halves(word: u64) -> (usize, usize) {
    (index(lower_half(word >> 32)), index(lower_half(word)))
}
