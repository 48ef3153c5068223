//! Direct rounds of epochs: every cell sends a message to every other one, which says by itself what
//! it carries.
//!
//! A *head* goes to every other cell, also where there is nothing for it: the shape of the items,
//! whether its sender has sent any to whomever, and the number of bytes. If there is room for these they
//! are in it; otherwise they follow in a message of their own, from the list of the sender into that of
//! the receiver. As every cell knows that it gets a head of each other one, the receives of heads are
//! persistent requests that are started before anything is sent, and nothing is looked for.
//!
//! The room grows with the lists: both ends know the longest list of the rounds before, and from then
//! on the head has room for one of that length, up to [`MOST`]. So what repeats is one message for each
//! pair of cells.
//!
//! All messages of a round are done when it ends. What it uses is kept for the next one.
//!
//! Cells of the same rank send each other one message through the queue of the rank.

use conset_ir::convert::to_u64;
use conset_ir::{CellId, Direction};

use super::aligned_buffer::alignment;
use super::message_queue::Address;
use super::owned_bytes::OwnedBytes;
use super::port::MpiPort;
use super::raw_requests::{MessageSpec, PersistentRequests};
use super::run::{MessageClass, WaitState};
use crate::epochs::routing::{
    ItemShape, MARK, NOBODY, Round, RoundResult, SentLists, TakeList, both, halves, known, pack,
};
use crate::error::{EpochUse, MpiError};
use crate::port::Stopped;
use crate::word::{bytes, copy_bytes};

/// Words of a head.
const HEAD: usize = 4;
/// Bytes of the program that a head has room for at first, and at most. A message more costs about as
/// much as copying [`MOST`] bytes at both ends.
const ROOM: usize = 1 << 10;
const MOST: usize = 1 << 14;
const WORD: usize = size_of::<u64>();

/// What comes of taking lists, or what a sender did wrong, unless the run has ended.
type Taken<T> = Result<Result<T, EpochUse>, Stopped>;

/// What a cell keeps for its direct rounds.
pub(super) struct DirectRounds {
    /// The other cells, in the order in which this one sends to them: each begins with the one after
    /// it, so that not all send to the same one.
    peers: Vec<Peer>,
    /// A list was longer than the room in its head.
    outgrown: bool,
    /// The receives of heads of cells on other ranks, from the cell before this one backwards, and
    /// the sends of heads to them.
    heads: PersistentRequests,
    /// The peers of the receives.
    sources: Vec<usize>,
    /// Heads of this round that have come.
    received: usize,
    /// Memory of lists that were sent by themselves, for those that arrive so.
    spare: Vec<Vec<u8>>,
}

/// Another cell.
#[derive(Clone, Copy)]
struct Peer {
    place: usize,
    cell: CellId,
    to: Address,
    from: Address,
    /// The number of the send of a head; none if the cell is on the same rank.
    send: Option<usize>,
    /// What heads to the cell and from it have room for, in bytes of the program.
    room_to: usize,
    room_from: usize,
    /// Where they are in their buffers, in words.
    sent_at: usize,
    received_at: usize,
}

/// The room for lists of such a length in later rounds.
fn grown(room: usize, length: usize) -> usize {
    room.max(length.min(MOST).next_power_of_two())
}

/// What a head says, and the bytes of the program that are in it.
struct Head<'a> {
    first: u64,
    length: usize,
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// The words of a head.
    fn words(shape: ItemShape, first: u64, length: usize) -> [u64; HEAD] {
        [MARK, both(shape.words, shape.word_type), first, to_u64(length)]
    }

    /// Reads what a cell has sent; more bytes than such a room may be missing.
    fn read(
        message: &'a [u8],
        source: CellId,
        shape: ItemShape,
        room: usize,
    ) -> Result<Self, EpochUse> {
        let foreign = || EpochUse::Message { source_cell: source, words: message.len() / WORD };
        let (words, bytes) = message.as_chunks().0.split_at_checked(HEAD).ok_or_else(foreign)?;
        let bytes = bytes.as_flattened();
        let mut head = [0; HEAD];
        head.iter_mut().zip(words).for_each(|(word, &from)| *word = u64::from_ne_bytes(from));
        let [MARK, found, first, length] = head else { return Err(foreign()) };
        let (words, word_type) = halves(found);
        shape.check(source, ItemShape { words, word_type })?;
        let length = usize::try_from(length).map_err(|_| foreign())?;
        let missing = length > bytes.len() && length <= room;
        if missing || !length.is_multiple_of(shape.item_bytes()) {
            return Err(foreign());
        }
        Ok(Self { first, length, bytes })
    }
}

impl DirectRounds {
    fn new(port: &MpiPort<'_>, round: &Round<'_>) -> Result<Self, MpiError> {
        let Round { live, own, .. } = *round;
        let rank = port.rank;
        let mut sends = 0..;
        let places = (1..live.len()).map(|distance| (own + distance) % live.len());
        let peers = places.map(|place| {
            let cell = live[place];
            let address = |pair, way: Direction| rank.message_of(MessageClass::Round, pair, way);
            let to = address((port.id, cell), Direction::Send);
            let from = address((cell, port.id), Direction::Receive);
            let remote = to.rank != rank.comm.rank();
            let send = if remote { sends.next() } else { None };
            let (room_to, room_from, sent_at, received_at) = (ROOM, ROOM, 0, 0);
            Peer { place, cell, to, from, send, room_to, room_from, sent_at, received_at }
        });
        let mut peers: Vec<Peer> = peers.collect();
        let remote = |peer: &usize| peers[*peer].send.is_some();
        let sources: Vec<usize> = (0..peers.len()).rev().filter(remote).collect();
        let heads = heads(port, &mut peers, &sources)?;
        Ok(Self { peers, outgrown: false, heads, sources, received: 0, spare: Vec::new() })
    }

    /// Sends what there is for other cells; what it does not copy is under way.
    fn send(
        &mut self,
        port: &MpiPort<'_>,
        shape: ItemShape,
        first: u64,
        lists: SentLists<'_>,
    ) -> Result<Vec<(CellId, OwnedBytes)>, MpiError> {
        let (comm, messages) = (&port.rank.comm, &port.rank.messages);
        let (mut lists, mut long) = (lists.into_iter().peekable(), Vec::new());
        for number in 0..self.peers.len() {
            let Peer { place, send, to, room_to, sent_at, .. } = self.peers[number];
            let list = lists.next_if(|list| list.0 == place).map(|list| list.1).unwrap_or_default();
            let head = Head::words(shape, first, list.len());
            let Some(at) = send else {
                let mut packet = Vec::with_capacity(HEAD + list.len().div_ceil(WORD));
                packet.extend(head);
                pack(&list, WORD, &mut packet);
                messages.send(to, packet)?;
                continue;
            };
            let fits = list.len() <= room_to;
            let message = &mut self.heads.outgoing()[sent_at * WORD..];
            let (words, room) = message.split_at_mut(HEAD * WORD);
            words.copy_from_slice(bytes(&head));
            if fits {
                copy_bytes(&mut room[..list.len()], &list);
            }
            let carried = if fits { list.len().div_ceil(WORD) } else { 0 };
            self.heads.resize_send(at, HEAD + carried);
            if !fits {
                self.peers[number].room_to = grown(room_to, list.len());
                self.outgrown |= self.peers[number].room_to > room_to;
                long.push((number, list.into_owned()));
            }
        }
        let (receives, count) = (self.heads.receives(), self.heads.count());
        self.heads.start_sends(receives..count, receives)?;
        let sent = long.into_iter().map(|(number, list)| {
            let peer = &self.peers[number];
            Ok((peer.cell, OwnedBytes::send(comm, list, peer.to)?))
        });
        sent.collect()
    }

    /// Performs a round.
    fn deliver(
        &mut self,
        port: &MpiPort<'_>,
        round: Round<'_>,
        take: &mut TakeList<'_>,
    ) -> RoundResult {
        let Round { own, shape, mut lists, .. } = round;
        if std::mem::take(&mut self.outgrown) {
            self.heads = port.noted(heads(port, &mut self.peers, &self.sources))?;
        }
        self.received = 0;
        port.noted(self.heads.start(0..self.heads.receives()))?;
        let mut first = if lists.is_empty() { NOBODY } else { to_u64(own) };
        let before = lists.partition_point(|list| list.0 < own);
        lists.rotate_left(before);
        if lists.first().is_some_and(|list| list.0 == own) {
            let (place, list) = lists.remove(0);
            take(place, list);
        }
        let sends = port.noted(self.send(port, shape, first, lists))?;
        self.await_heads(port)?;
        let long = match self.take_short(port, shape, &mut first, take)? {
            Ok(long) => long,
            Err(wrong) => return Ok(Err(wrong)),
        };
        if let Err(wrong) = self.take_of_rank(port, shape, &mut first, take)? {
            return Ok(Err(wrong));
        }
        for (place, cell, message) in long {
            take(place, port.completed(cell, message)?.into());
        }
        self.complete_sends(port, sends)?;
        Ok(Ok(known(first)))
    }

    /// Waits for the heads of cells on other ranks.
    fn await_heads(&mut self, port: &MpiPort<'_>) -> Result<(), Stopped> {
        let (receives, tries) = (self.heads.receives(), port.tries());
        while self.received < receives {
            let before = self.received;
            let source = self.peers[self.sources[before]].cell;
            port.wait_for(WaitState::Round(source), || {
                self.heads.test(&mut self.received, receives, tries)?;
                Ok((self.received > before).then_some(()))
            })?;
        }
        self.heads.received_all();
        Ok(())
    }

    /// Takes the lists that are in the heads of other ranks, and begins to receive the others, which it returns with
    /// their places and senders. `first` becomes the place of the first cell that any head names.
    fn take_short(
        &mut self,
        port: &MpiPort<'_>,
        shape: ItemShape,
        first: &mut u64,
        take: &mut TakeList<'_>,
    ) -> Taken<Vec<(usize, CellId, OwnedBytes)>> {
        let mut long = Vec::new();
        for &source in &self.sources {
            let Peer { place, cell, from, room_from, received_at, .. } = self.peers[source];
            let message = &self.heads.incoming()[received_at * WORD..];
            let head = match Head::read(message, cell, shape, room_from) {
                Ok(head) => head,
                Err(wrong) => return Ok(Err(wrong)),
            };
            *first = (*first).min(head.first);
            let length = head.length;
            if length == 0 {
                continue;
            }
            if length <= room_from {
                take(place, head.bytes[..length].into());
            } else {
                let list = self.spare.pop().unwrap_or_default();
                let receive = OwnedBytes::receive(&port.rank.comm, list, length, from);
                long.push((place, cell, port.noted(receive)?));
                self.peers[source].room_from = grown(room_from, length);
                self.outgrown |= grown(room_from, length) > room_from;
            }
        }
        Ok(Ok(long))
    }

    /// Takes the lists of cells on the same rank; `first` as for other ranks.
    fn take_of_rank(
        &self,
        port: &MpiPort<'_>,
        shape: ItemShape,
        first: &mut u64,
        take: &mut TakeList<'_>,
    ) -> Taken<()> {
        for peer in self.peers.iter().filter(|peer| peer.send.is_none()) {
            let Peer { place, cell, from, .. } = *peer;
            let words = port.next_envelope(from, WaitState::Round(cell))?;
            let read = |words: &[u64]| {
                let head = Head::read(bytes(words), cell, shape, usize::MAX)?;
                // All bytes are there, as the queue has whole messages.
                Ok((head.first, head.bytes[..head.length].to_vec()))
            };
            let (heard, list) = match port.open(from, words, WaitState::Round(cell), read)? {
                Ok(read) => read,
                Err(wrong) => return Ok(Err(wrong)),
            };
            *first = (*first).min(heard);
            if !list.is_empty() {
                take(place, list.into());
            }
        }
        Ok(Ok(()))
    }

    /// Waits until everything that was sent has left. The memory of long lists is kept.
    fn complete_sends(
        &mut self,
        port: &MpiPort<'_>,
        long: Vec<(CellId, OwnedBytes)>,
    ) -> Result<(), Stopped> {
        for (cell, message) in long {
            let list = port.completed(cell, message)?;
            if self.spare.len() < self.peers.len() {
                self.spare.push(list);
            }
        }
        let (receives, tries) = (self.heads.receives(), port.tries());
        let (mut at, count) = (receives, self.heads.count());
        while at < count {
            let target = self.peers.iter().find(|peer| peer.send == Some(at - receives));
            let target = target.map_or(port.id, |peer| peer.cell);
            let done = || Ok(self.heads.test(&mut at, count, tries)?.then_some(()));
            port.wait_for(WaitState::Round(target), done)?;
        }
        self.heads.all_sent();
        Ok(())
    }
}

/// The requests of heads, with the rooms that they have now, and where these are.
fn heads(
    port: &MpiPort<'_>,
    peers: &mut [Peer],
    sources: &[usize],
) -> Result<PersistentRequests, MpiError> {
    // The words of a head after those that end there.
    let words = |end: usize, room: usize| {
        let start = end.next_multiple_of(alignment(HEAD * WORD + room) / WORD);
        start..start + HEAD + room / WORD
    };
    let (mut sends, mut receives, mut sent, mut received) = (Vec::new(), Vec::new(), 0, 0);
    for peer in peers.iter_mut().filter(|peer| peer.send.is_some()) {
        let words = words(sent, peer.room_to);
        (peer.sent_at, sent) = (words.start, words.end);
        sends.push(MessageSpec { words, rank: peer.to.rank, tag: peer.to.tag });
    }
    for &source in sources {
        let peer = &mut peers[source];
        let words = words(received, peer.room_from);
        (peer.received_at, received) = (words.start, words.end);
        receives.push(MessageSpec { words, rank: peer.from.rank, tag: peer.from.tag });
    }
    let comm = &port.rank.comm;
    PersistentRequests::new(comm, WORD, (&receives, received), (&sends, sent), &|_| true)
}

impl MpiPort<'_> {
    /// Waits for a message from or to a cell, and returns its bytes.
    fn completed(&self, cell: CellId, mut message: OwnedBytes) -> Result<Vec<u8>, Stopped> {
        let tries = self.tries();
        let done = || Ok(message.test(tries)?.then_some(()));
        self.wait_for(WaitState::Round(cell), done)?;
        Ok(message.into_bytes())
    }

    /// A direct round.
    pub(super) fn deliver_directly(
        &mut self,
        round: Round<'_>,
        take: &mut TakeList<'_>,
    ) -> RoundResult {
        let mut rounds = match self.rounds.take() {
            Some(rounds) => rounds,
            None => self.noted(DirectRounds::new(self, &round))?,
        };
        let result = rounds.deliver(self, round, take);
        if matches!(result, Ok(Ok(_))) {
            self.rounds = Some(rounds);
        } else {
            // The run ends. Sends that are not done stay with MPI.
            let cancelled = rounds.heads.cancel(rounds.received);
            self.noted(cancelled)?;
        }
        result
    }
}
