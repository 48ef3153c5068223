//! Direct passes over MPI: a cell sends words to one cell and receives words of one, without a copy in
//! between where there are many.
//!
//! # Protocol
//!
//! 1. The sender sends an *announcement*: the number and size of its words. If the words are few, or
//!    for a cell of the same rank, it contains them, and MPI or the queue of the rank keeps them.
//! 2. The receiver reads the announcement when its program asks for it. If the words are missing it
//!    starts to receive them where the program wants them. It *replies*, unless the words were there
//!    and the sender does not wait for that.
//! 3. The sender waits for the reply, if the pass is synchronous or the words were too many, and sends
//!    these from where they are.
//!
//! Announcements and replies are copies that MPI may keep for as long as it wants. Words that MPI sends
//! from or receives into the memory of a program are under way only after both ends have called, and
//! both complete them before they return, even if the run has failed meanwhile
//! ([`super::borrowed_request`]).

use conset_ir::convert::{index, to_u64};
use conset_ir::{CellId, Direction};

use super::borrowed_request::BorrowedRequest;
use super::message_queue::{Address, IncomingMessage};
use super::port::MpiPort;
use super::run::{MessageClass, WaitState};
use crate::error::{MpiError, RunError};
use crate::port::{DirectPass, RawWords, Stopped};
use crate::word::{bytes_mut, lower_half};

/// As many bytes go with their announcement, on any rank. A reply costs two latencies more, a copy at
/// each end less than that.
const ANNOUNCED_BYTES: usize = 4096;

/// What a sender has come to.
enum SendState {
    /// The words may be overwritten.
    Done,
    /// The receiver is to reply.
    Announced,
    Reply(IncomingMessage),
    /// Words under way, and their memory if they are converted.
    Moving(BorrowedRequest, #[allow(dead_code, reason = "it is read by MPI")] Vec<u64>),
}

/// What a receiver has come to.
enum ReceiveState {
    Done,
    /// The announcement is to come.
    Waiting,
    Announcement(IncomingMessage),
    Moving(BorrowedRequest),
}

/// One pass of a cell.
struct Transfer<'p, 'r> {
    port: &'p MpiPort<'r>,
    pass: DirectPass,
    target: Option<End>,
    source: Option<End>,
    sends: SendState,
    receives: ReceiveState,
    /// Words that the source has announced.
    found: usize,
}

/// Words that are read from, or written to.
#[derive(Clone, Copy)]
struct End {
    row: RawWords,
    /// Of announcements and words.
    data: Address,
    replies: Address,
}

impl End {
    fn bytes(&self) -> usize {
        self.row.words * self.row.size
    }
}

impl<'p, 'r> Transfer<'p, 'r> {
    fn new(port: &'p MpiPort<'r>, pass: &DirectPass) -> Self {
        let (rank, own) = (port.rank, port.id);
        let target = pass.outgoing.map(|(cell, row)| End {
            row,
            data: rank.message_of(MessageClass::Direct, (own, cell), Direction::Send),
            replies: rank.message_of(MessageClass::Reply, (cell, own), Direction::Receive),
        });
        let source = pass.incoming.map(|(cell, row)| End {
            row,
            data: rank.message_of(MessageClass::Direct, (cell, own), Direction::Receive),
            replies: rank.message_of(MessageClass::Reply, (own, cell), Direction::Send),
        });
        let receives = if source.is_some() { ReceiveState::Waiting } else { ReceiveState::Done };
        Self { port, pass: *pass, target, source, sends: SendState::Done, receives, found: 0 }
    }

    fn is_local(&self, end: &End) -> bool {
        end.data.rank == self.port.rank.comm.rank()
    }

    /// Announces what is sent.
    fn start(&mut self) -> Result<(), MpiError> {
        let Some(to) = self.target else { return Ok(()) };
        let whole = to.bytes() <= ANNOUNCED_BYTES || self.is_local(&to);
        let mut words = vec![to_u64(to.row.words) << 5 | to_u64(to.row.size) << 1];
        if whole {
            words[0] |= 1;
            words.resize(1 + to.bytes().div_ceil(size_of::<u64>()), 0);
            // SAFETY: the caller of the pass says that the row can be read.
            let row = unsafe { to.row.bytes(&(0..to.row.words)) };
            bytes_mut(&mut words[1..])[..row.len()].copy_from_slice(row);
        }
        self.port.rank.messages.send(to.data, words)?;
        let waits = self.pass.synchronous || !whole;
        self.sends = if waits { SendState::Announced } else { SendState::Done };
        Ok(())
    }

    /// Goes on as far as it can; whether it has done something.
    fn advance(&mut self, tries: u32) -> Result<bool, RunError> {
        let received = self.advance_receive(tries)?;
        Ok(self.advance_send(tries)? || received)
    }

    fn advance_send(&mut self, tries: u32) -> Result<bool, RunError> {
        let Some(to) = self.target else { return Ok(false) };
        let rank = self.port.rank;
        match &mut self.sends {
            SendState::Done => return Ok(false),
            SendState::Announced => {
                let Some(words) = rank.messages.look(to.replies)? else { return Ok(false) };
                self.sends = SendState::Reply(rank.messages.take(to.replies, words)?);
            }
            SendState::Reply(reply) => {
                let Some(words) = reply.open()? else { return Ok(false) };
                let size = index(lower_half(words[0]));
                self.sends = match size {
                    0 => SendState::Done,
                    _ => {
                        let words =
                            if size == to.row.size { Vec::new() } else { resized(&to.row, size) };
                        let pointer = match words.len() {
                            0 => to.row.pointer,
                            _ => words.as_ptr().cast::<u8>().cast_mut(),
                        };
                        let row = RawWords { pointer, words: to.row.words, size };
                        // SAFETY: the caller of the pass says that the row can be read; the pass
                        // completes the request before it returns. Converted words are kept.
                        let sent = unsafe { BorrowedRequest::send(&rank.comm, row, to.data)? };
                        SendState::Moving(sent, words)
                    }
                };
            }
            SendState::Moving(request, _) => {
                if !request.test(tries)? {
                    return Ok(false);
                }
                self.sends = SendState::Done;
            }
        }
        Ok(true)
    }

    fn advance_receive(&mut self, tries: u32) -> Result<bool, RunError> {
        let Some(from) = self.source else { return Ok(false) };
        let rank = self.port.rank;
        match &mut self.receives {
            ReceiveState::Done => return Ok(false),
            ReceiveState::Waiting => {
                let Some(words) = rank.messages.look(from.data)? else { return Ok(false) };
                self.receives = ReceiveState::Announcement(rank.messages.take(from.data, words)?);
            }
            ReceiveState::Announcement(message) => {
                let Some(words) = message.open()? else { return Ok(false) };
                let (head, size) = (words[0], index(lower_half(words[0] >> 1 & 15)));
                let (count, whole) = (head >> 5, head & 1 == 1);
                self.found = usize::try_from(count).unwrap_or(usize::MAX);
                if self.found != from.row.words {
                    self.receives = ReceiveState::Done;
                    return Ok(true);
                }
                if whole {
                    let row = RawWords {
                        pointer: words[1..].as_ptr().cast::<u8>().cast_mut(),
                        words: self.found,
                        size,
                    };
                    // SAFETY: the announcement has the words; the caller of the pass says that the
                    // row can be written.
                    unsafe { from.row.copy_if_fits(&row) };
                    if self.pass.synchronous {
                        rank.messages.send(from.replies, vec![0])?;
                    }
                    self.receives = ReceiveState::Done;
                } else {
                    // SAFETY: the caller of the pass says that the row can be written; the pass
                    // completes or cancels the request before it returns.
                    let request =
                        unsafe { BorrowedRequest::receive(&rank.comm, from.row, from.data)? };
                    self.receives = ReceiveState::Moving(request);
                    rank.messages.send(from.replies, vec![to_u64(from.row.size)])?;
                }
            }
            ReceiveState::Moving(request) => {
                if !request.test(tries)? {
                    return Ok(false);
                }
                self.receives = ReceiveState::Done;
            }
        }
        Ok(true)
    }

    fn is_over(&self) -> bool {
        matches!((&self.sends, &self.receives), (SendState::Done, ReceiveState::Done))
    }

    /// What the cell waits for.
    fn waits(&self) -> WaitState {
        match (&self.receives, &self.pass) {
            (ReceiveState::Done, DirectPass { outgoing: Some((target, _)), .. }) => {
                WaitState::Receiver(*target)
            }
            (_, DirectPass { incoming: Some((source, _)), .. }) => WaitState::MessageSpec(*source),
            _ => WaitState::Nothing,
        }
    }

    /// The run has failed: no words of the program may be under way any more.
    fn abandon(&mut self) {
        let [source, target] =
            [self.source, self.target].map(|end| end.map_or(0, |end| end.data.rank));
        let mut under_way = Vec::new();
        if let ReceiveState::Moving(request) = &mut self.receives {
            under_way.push((request, source));
        }
        if let SendState::Moving(request, _) = &mut self.sends {
            under_way.push((request, target));
        }
        self.port.rank.abandon(under_way);
    }
}

/// Words in as many bytes as another cell has for them.
fn resized(row: &RawWords, size: usize) -> Vec<u64> {
    let mut words = vec![0u64; (row.words * size).div_ceil(size_of::<u64>())];
    let into = RawWords { pointer: words.as_mut_ptr().cast(), words: row.words, size };
    // SAFETY: the row can be read, as the caller of the pass says, and there is room for the words.
    unsafe { into.copy_if_fits(row) };
    words
}

impl MpiPort<'_> {
    /// [`crate::port::CellPort::pass_directly`].
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn pass_over_ranks(&self, pass: &DirectPass) -> Result<usize, Stopped> {
        let mut transfer = Transfer::new(self, pass);
        self.noted(transfer.start())?;
        loop {
            if self.rank.has_stopped() {
                break;
            }
            match transfer.advance(self.tries()) {
                Ok(_) if transfer.is_over() => {
                    self.set(WaitState::Nothing);
                    return Ok(transfer.found);
                }
                Ok(true) => self.rank.made_progress(),
                Ok(false) => {
                    self.set(transfer.waits());
                    self.yielder.suspend(());
                }
                Err(error) => self.rank.stop(error),
            }
        }
        transfer.abandon();
        Err(Stopped)
    }

    /// [`crate::port::CellPort::next_message`].
    pub(super) fn look_for_message(
        &self,
        source: Option<CellId>,
        wait: bool,
    ) -> Result<Option<(CellId, usize)>, Stopped> {
        let look = || self.message_here(source);
        if wait {
            let what = source.map_or(WaitState::AnyMessage, WaitState::MessageSpec);
            return self.wait_for(what, look).map(Some);
        }
        let found = self.noted(look())?;
        if found.is_some() {
            return Ok(found);
        }
        // One turn for the others, in which the rank looks at the clock.
        self.set(source.map_or(WaitState::AnyMessage, WaitState::MessageSpec));
        self.rank.tested.set(true);
        self.yielder.suspend(());
        self.set(WaitState::Nothing);
        if self.rank.has_stopped() {
            return Err(Stopped);
        }
        self.noted(look())
    }

    fn message_here(&self, source: Option<CellId>) -> Result<Option<(CellId, usize)>, RunError> {
        let rank = self.rank;
        let look = |cell: CellId| {
            let from = rank.message_of(MessageClass::Plain, (cell, self.id), Direction::Receive);
            Ok::<_, MpiError>(rank.messages.look(from)?.map(|words| (cell, words)))
        };
        if let Some(source) = source {
            return Ok(look(source)?);
        }
        for &cell in rank.rank_map.cells() {
            if let Some(found) = look(cell)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
