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
//! on the head has room for one of that length, up to [`COPIED_MOST`]. So what repeats is one message for each
//! pair of cells.
//!
//! Lists that follow leave from the memory of the program and arrive where it keeps them.
//!
//! All messages of a round are done when it ends, and if it fails, those in the memory of the program are
//! done or cancelled ([`super::borrowed_request`]).
//!
//! Cells of the same rank send each other one message through the queue of the rank.

use std::borrow::Cow;

use conset_ir::convert::to_u64;
use conset_ir::{CellId, Direction};

use super::aligned_buffer::alignment;
use super::borrowed_request::{BorrowedRequest, COPIED_MOST};
use super::message_queue::Address;
use super::port::MpiPort;
use super::raw_requests::{MessageSpec, PersistentRequests};
use super::run::{MessageClass, WaitState};
use crate::epochs::routing::{
    ItemShape, MARK, NOBODY, Round, RoundResult, SentLists, TakeLists, both, halves, known, pack,
};
use crate::error::{CellError, EpochUse, MpiError, RunError};
use crate::port::{RawWords, Stopped};
use crate::word::{bytes, copy_bytes};

/// Words of a head.
const HEAD: usize = 4;
/// Bytes of the program that a head has room for at first.
const ROOM: usize = 1 << 10;
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
    room.max(length.min(COPIED_MOST).next_power_of_two())
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
        Ok(Self { peers, outgrown: false, heads, sources, received: 0 })
    }

    /// Sends the heads, with the lists that they have room for; returns the others, with the numbers of
    /// their peers.
    fn send_heads<'l>(
        &mut self,
        port: &MpiPort<'_>,
        shape: ItemShape,
        first: u64,
        lists: SentLists<'l>,
    ) -> Result<SentLists<'l>, MpiError> {
        let (mut lists, mut long) = (lists.into_iter().peekable(), Vec::new());
        for number in 0..self.peers.len() {
            let Peer { place, send, to, room_to, sent_at, .. } = self.peers[number];
            let list = lists.next_if(|list| list.0 == place).map(|list| list.1).unwrap_or_default();
            let head = Head::words(shape, first, list.len());
            let Some(at) = send else {
                let mut packet = Vec::with_capacity(HEAD + list.len().div_ceil(WORD));
                packet.extend(head);
                pack(&list, WORD, &mut packet);
                port.rank.messages.send(to, packet)?;
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
                long.push((number, list));
            }
        }
        let (receives, count) = (self.heads.receives(), self.heads.count());
        self.heads.start_sends(receives..count, receives)?;
        Ok(long)
    }

    /// Performs a round.
    fn deliver(
        &mut self,
        port: &MpiPort<'_>,
        round: Round<'_>,
        arrived: &mut dyn TakeLists,
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
            arrived.take(place, list);
        }
        // The lists stay where they are until nothing is under way.
        let long = port.noted(self.send_heads(port, shape, first, lists))?;
        let mut under_way = Vec::new();
        let result = self.pass_lists(port, (shape, &mut first), &long, &mut under_way, arrived);
        if let Ok(Err(wrong)) = &result {
            let error = CellError::Epoch(wrong.clone());
            port.rank.stop(RunError::Cell { cell: port.id, error });
        }
        if !matches!(result, Ok(Ok(()))) {
            let under_way = under_way.iter_mut().map(|(peer, request)| (request, peer.to.rank));
            port.rank.abandon(under_way);
        }
        if let Err(wrong) = result? {
            return Ok(Err(wrong));
        }
        for (_, list) in long {
            if let Cow::Owned(list) = list {
                arrived.reuse(list);
            }
        }
        self.complete_heads(port)?;
        Ok(Ok(known(first)))
    }

    /// Passes the lists after the heads have been sent, the long ones by messages that are `under_way`
    /// until they are done. `first` becomes the place of the first cell that any head names.
    fn pass_lists(
        &mut self,
        port: &MpiPort<'_>,
        (shape, first): (ItemShape, &mut u64),
        long: &[(usize, Cow<'_, [u8]>)],
        under_way: &mut Vec<(Peer, BorrowedRequest)>,
        arrived: &mut dyn TakeLists,
    ) -> Taken<()> {
        let comm = &port.rank.comm;
        for (number, list) in long {
            let peer = self.peers[*number];
            // SAFETY: the caller keeps the lists until what is under way is done.
            let sent = unsafe { BorrowedRequest::send(comm, RawWords::of::<u8>(list), peer.to) };
            under_way.push((peer, port.noted(sent)?));
        }
        self.await_heads(port)?;
        if let Err(wrong) = self.take_remote(port, (shape, first), under_way, arrived)? {
            return Ok(Err(wrong));
        }
        if let Err(wrong) = self.take_of_rank(port, shape, first, arrived)? {
            return Ok(Err(wrong));
        }
        let tries = port.tries();
        for (peer, request) in under_way {
            let done = || Ok(request.test(tries)?.then_some(()));
            port.wait_for(WaitState::Round(peer.cell), done)?;
        }
        Ok(Ok(()))
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

    /// Takes the lists that are in the heads of other ranks, and begins to receive the others.
    fn take_remote(
        &mut self,
        port: &MpiPort<'_>,
        (shape, first): (ItemShape, &mut u64),
        under_way: &mut Vec<(Peer, BorrowedRequest)>,
        arrived: &mut dyn TakeLists,
    ) -> Taken<()> {
        for &source in &self.sources {
            let peer = self.peers[source];
            let Peer { place, cell, from, room_from, received_at, .. } = peer;
            let message = &self.heads.incoming()[received_at * WORD..];
            let head = match Head::read(message, cell, shape, room_from) {
                Ok(head) => head,
                Err(wrong) => return Ok(Err(wrong)),
            };
            let length = head.length;
            *first = (*first).min(head.first);
            if length > room_from {
                let pointer = arrived.room(place, length);
                let list = RawWords { pointer, words: length, size: 1 };
                // SAFETY: there is room for so many bytes, which nobody reads or frees before what is
                // under way is done or cancelled.
                let list = unsafe { BorrowedRequest::receive(&port.rank.comm, list, from) };
                under_way.push((peer, port.noted(list)?));
                self.peers[source].room_from = grown(room_from, length);
                self.outgrown |= grown(room_from, length) > room_from;
            } else if length > 0 {
                arrived.take(place, head.bytes[..length].into());
            }
        }
        Ok(Ok(()))
    }

    /// Takes the lists of cells on the same rank; `first` as for other ranks.
    fn take_of_rank(
        &self,
        port: &MpiPort<'_>,
        shape: ItemShape,
        first: &mut u64,
        arrived: &mut dyn TakeLists,
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
                arrived.take(place, list.into());
            }
        }
        Ok(Ok(()))
    }

    /// Waits until all heads have left.
    fn complete_heads(&mut self, port: &MpiPort<'_>) -> Result<(), Stopped> {
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
    /// A direct round.
    pub(super) fn deliver_directly(
        &mut self,
        round: Round<'_>,
        arrived: &mut dyn TakeLists,
    ) -> RoundResult {
        let mut rounds = match self.rounds.take() {
            Some(rounds) => rounds,
            None => self.noted(DirectRounds::new(self, &round))?,
        };
        let result = rounds.deliver(self, round, arrived);
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
