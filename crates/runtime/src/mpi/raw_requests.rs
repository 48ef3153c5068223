//! Arrays of MPI requests, and the buffers that MPI reads and writes while they are active.
//!
//! [`PersistentRequests`] are set up once, over one buffer for each direction, and started any
//! number of times. [`SingleRequest`] carries one message. Both own their buffers and keep
//! everybody from accessing them while MPI uses them. If they are dropped before MPI is done,
//! buffers and requests are leaked, so that there is no use after free.

use std::ffi::c_int;
use std::ops::Range;

use conset_ir::convert::{to_u64, to_usize};

use super::aligned_buffer::AlignedBuffer;
use super::comm::{Comm, call, lock};
use super::ffi::{self, RawMessage, RawRequests, to_c_int};
use crate::error::MpiError;
use crate::word::{bytes, bytes_mut};

/// The most words of a message.
#[allow(clippy::as_conversions, reason = "`From` cannot be called in constants")]
pub(super) const WORDS_MAX: u64 = c_int::MAX as u64;

/// One message of a persistent request: its place in the buffer, in words, the other rank, and the
/// tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageSpec {
    pub(super) words: Range<usize>,
    pub(super) rank: usize,
    pub(super) tag: i32,
}

/// An array of requests, none of them active.
pub(super) fn array(count: usize) -> Result<*mut RawRequests, MpiError> {
    let limit = to_u64(c_int::MAX);
    if to_u64(count) > limit {
        return Err(MpiError::Limit { what: "requests of a cell", found: to_u64(count), limit });
    }
    // SAFETY: allocates, and nothing else.
    let raw = unsafe { ffi::conset_requests_new(to_c_int(count)) };
    if raw.is_null() {
        let text = "no memory".to_owned();
        return Err(MpiError::Call { what: "make requests", code: -1, text });
    }
    Ok(raw)
}

/// Requests that are started again and again: receives first, sends after them.
pub(super) struct PersistentRequests {
    raw: *mut RawRequests,
    comm: Comm,
    /// Bytes of a word.
    size: usize,
    /// The sends, for those that are no persistent requests.
    messages: Vec<RawMessage>,
    receives: usize,
    count: usize,
    /// Receives before this one were started, and not all have been seen done.
    receiving: usize,
    /// Sends were started, and not all have been seen done.
    sending: bool,
    send: AlignedBuffer,
    receive: AlignedBuffer,
}

impl PersistentRequests {
    /// Sets up requests for words of `size` bytes: receives in their order, then sends; each with the
    /// words of its buffer, which can have more than the messages need.
    pub(super) fn new(
        comm: &Comm,
        size: usize,
        (receives, receive_room): (&[MessageSpec], usize),
        (sends, send_room): (&[MessageSpec], usize),
        is_immediate: &dyn Fn(usize) -> bool,
    ) -> Result<Self, MpiError> {
        let count = receives.len() + sends.len();
        let messages = sends.iter().map(|message| raw_message(message, size));
        let messages = messages.collect::<Result<_, MpiError>>()?;
        let requests = Self {
            raw: array(count)?,
            comm: comm.clone(),
            size,
            messages,
            receives: receives.len(),
            count,
            receiving: 0,
            sending: false,
            send: AlignedBuffer::new(send_room * size),
            receive: AlignedBuffer::new(receive_room * size),
        };
        for (at, message) in receives.iter().enumerate() {
            let (count, peer) = shape(message)?;
            let (at, bytes) = (to_c_int(at), to_c_int(size));
            let words = requests.receive.at(&requests.bytes_of(&message.words));
            call("set up a receive", || {
                // SAFETY: `at` is below the array's length; there are `count` words of so many bytes,
                // in a buffer that is neither moved nor dropped before the requests are freed.
                unsafe {
                    let (comm, raw) = (comm.raw(), requests.raw);
                    ffi::conset_receive_init(comm, raw, at, words, count, bytes, peer, message.tag)
                }
            })?;
        }
        for (at, message) in sends.iter().enumerate() {
            let words = requests.send.at(&requests.bytes_of(&message.words));
            if is_immediate(at) {
                continue;
            }
            let (count, peer) = shape(message)?;
            let (at, bytes) = (to_c_int(requests.receives + at), to_c_int(size));
            call("set up a send", || {
                // SAFETY: as above.
                unsafe {
                    let (comm, raw) = (comm.raw(), requests.raw);
                    ffi::conset_send_init(comm, raw, at, words, count, bytes, peer, message.tag)
                }
            })?;
        }
        Ok(requests)
    }

    /// The bytes of words, by their places.
    fn bytes_of(&self, words: &Range<usize>) -> Range<usize> {
        words.start * self.size..words.end * self.size
    }

    /// Number of receives; the sends follow them.
    pub(super) fn receives(&self) -> usize {
        self.receives
    }

    /// Number of requests.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Sets the words of a send that is no persistent request, from where its message begins.
    pub(super) fn resize_send(&mut self, send: usize, words: usize) {
        let message = &mut self.messages[send];
        let room = (self.send.len() - message.at) / self.size;
        assert!(words <= room, "the message lies in the buffer");
        message.count = to_c_int(words);
    }

    /// The buffer to fill before the sends are started.
    pub(super) fn outgoing(&mut self) -> &mut [u8] {
        assert!(!self.sending, "MPI still reads the buffer");
        bytes_mut(self.send.words_mut())
    }

    /// The same, for readers: MPI may read it at the same time.
    pub(super) fn sent(&self) -> &[u8] {
        bytes(self.send.words())
    }

    /// Copies words that have arrived to where they leave. Their receive has been seen done, and the
    /// send has not been started; others may be under way.
    pub(super) fn pass_on(&mut self, from: &Range<usize>, to: usize) {
        let source = self.receive.at(&self.bytes_of(from)).cast_const();
        let target = self.send.at(&self.bytes_of(&(to..to + from.len())));
        // SAFETY: `at` has checked that the words lie within the buffers, which are two. MPI uses
        // neither those, as said above; nothing refers to them but pointers.
        unsafe { std::ptr::copy_nonoverlapping(source, target, from.len() * self.size) };
    }

    /// The same with words that another cell of the rank has sent.
    pub(super) fn pass_on_from(&mut self, other: &Self, from: &Range<usize>, to: usize) {
        let source = other.send.at(&self.bytes_of(from)).cast_const();
        let target = self.send.at(&self.bytes_of(&(to..to + from.len())));
        // SAFETY: as above; MPI at most reads what was sent, and these are the buffers of two cells.
        unsafe { std::ptr::copy_nonoverlapping(source, target, from.len() * self.size) };
    }

    /// What has arrived.
    pub(super) fn incoming(&self) -> &[u8] {
        assert!(!self.is_receiving(), "MPI still writes into the buffer");
        bytes(self.receive.words())
    }

    /// Starts some.
    pub(super) fn start(&mut self, which: Range<usize>) -> Result<(), MpiError> {
        assert!(which.end <= self.count);
        if which.is_empty() {
            return Ok(());
        }
        if which.start < self.receives {
            self.receiving = self.receiving.max(which.end.min(self.receives));
        }
        self.sending |= which.end > self.receives;
        call("start an exchange", || {
            // SAFETY: the range lies in the array, and the requests' buffers live as long as it.
            unsafe {
                ffi::conset_requests_start(self.raw, to_c_int(which.start), to_c_int(which.len()))
            }
        })
    }

    /// Starts sends, of which those from `immediate` on are no persistent requests.
    pub(super) fn start_sends(
        &mut self,
        which: Range<usize>,
        immediate: usize,
    ) -> Result<(), MpiError> {
        self.start(which.start..immediate)?;
        if immediate >= which.end {
            return Ok(());
        }
        let messages = &self.messages[immediate - self.receives..which.end - self.receives];
        let (first, count, size) =
            (to_c_int(immediate), to_c_int(messages.len()), to_c_int(self.size));
        let buffer = self.send.at(&(0..0)).cast_const();
        let others = std::mem::replace(&mut self.sending, true);
        let mut done = 0;
        call("start an exchange", || {
            // SAFETY: the requests are in the array, and done or were never started; the messages lie
            // in the buffer, as `new` has checked, which is neither moved nor dropped before they are
            // done.
            unsafe {
                let (comm, messages, done) = (self.comm.raw(), messages.as_ptr(), &raw mut done);
                ffi::conset_sends_now(comm, self.raw, first, buffer, messages, count, size, done)
            }
        })?;
        self.sending = others || done == 0;
        Ok(())
    }

    /// Tries a few times to complete some, from `at` on, which moves over those that are done, up to
    /// `end`; whether they all are. One after the other, and not again those that were seen
    /// done: while nothing comes that costs as little as it can.
    pub(super) fn test(
        &mut self,
        at: &mut usize,
        end: usize,
        tries: u32,
    ) -> Result<bool, MpiError> {
        assert!(end <= self.count);
        if *at >= end {
            return Ok(true);
        }
        let mut place = to_c_int(*at);
        let result = call("complete an exchange", || {
            // SAFETY: the range lies in the array.
            unsafe {
                ffi::conset_requests_test(self.raw, &raw mut place, to_c_int(end), to_c_int(tries))
            }
        });
        *at = to_usize(place);
        result?;
        Ok(*at == end)
    }

    /// All receives were seen done.
    pub(super) fn received_all(&mut self) {
        self.receiving = 0;
    }

    /// All sends were seen done.
    pub(super) fn all_sent(&mut self) {
        self.sending = false;
    }

    /// Before which receive all were started; 0 if all have been seen done.
    pub(super) fn receiving(&self) -> usize {
        self.receiving
    }

    /// Whether receives are under way.
    fn is_receiving(&self) -> bool {
        self.receiving > 0
    }

    /// Whether sends are under way.
    pub(super) fn is_sending(&self) -> bool {
        self.sending
    }

    /// Cancels the receives from this one on that were started; nothing was sent for them.
    pub(super) fn cancel(&mut self, first: usize) -> Result<(), MpiError> {
        if self.is_receiving() {
            let count = self.receiving.saturating_sub(first);
            call("cancel a receive", || {
                // SAFETY: the receives lie in the array.
                unsafe { ffi::conset_requests_cancel(self.raw, to_c_int(first), to_c_int(count)) }
            })?;
            self.receiving = 0;
        }
        Ok(())
    }

    /// Those of some that are not done.
    pub(super) fn unfinished(&self, which: Range<usize>) -> Vec<usize> {
        assert!(which.end <= self.count);
        let _lock = lock();
        let done = |at: &usize| {
            let mut done = 0;
            // SAFETY: the request lies in the array.
            let code = unsafe { ffi::conset_request_done(self.raw, to_c_int(*at), &raw mut done) };
            code == 0 && done != 0
        };
        which.filter(|at| !done(at)).collect()
    }
}

impl Drop for PersistentRequests {
    fn drop(&mut self) {
        if !self.is_receiving() && !self.sending {
            let _lock = lock();
            // SAFETY: none is under way, and the array is not used afterwards.
            unsafe { ffi::conset_requests_free(self.raw) };
            self.send.free();
            self.receive.free();
        }
    }
}

fn raw_message(message: &MessageSpec, size: usize) -> Result<RawMessage, MpiError> {
    let (count, peer) = shape(message)?;
    Ok(RawMessage { at: message.words.start * size, count, peer, tag: message.tag })
}

fn shape(message: &MessageSpec) -> Result<(c_int, c_int), MpiError> {
    let found = to_u64(message.words.len());
    if found > WORDS_MAX {
        return Err(MpiError::Limit { what: "words of a message", found, limit: WORDS_MAX });
    }
    Ok((to_c_int(found), to_c_int(message.rank)))
}

/// A request for one message.
pub(super) struct SingleRequest {
    raw: *mut RawRequests,
    words: AlignedBuffer,
    done: bool,
}

impl SingleRequest {
    /// Begins to send words to a rank.
    pub(super) fn send(
        comm: &Comm,
        words: Vec<u64>,
        rank: usize,
        tag: i32,
    ) -> Result<Self, MpiError> {
        let (count, peer) = shape(&MessageSpec { words: 0..words.len(), rank, tag })?;
        let single = Self { raw: array(1)?, words: AlignedBuffer::from_words(words), done: false };
        call("send a message", || {
            // SAFETY: the words are kept, unchanged, until the request is done.
            unsafe {
                let words = single.words.at(&(0..0)).cast();
                ffi::conset_send_words(comm.raw(), single.raw, words, count, peer, tag)
            }
        })?;
        Ok(single)
    }

    /// Begins to receive so many words from a rank.
    pub(super) fn receive(
        comm: &Comm,
        words: usize,
        rank: usize,
        tag: i32,
    ) -> Result<Self, MpiError> {
        let (count, peer) = shape(&MessageSpec { words: 0..words, rank, tag })?;
        let single = Self {
            raw: array(1)?,
            words: AlignedBuffer::new(words * size_of::<u64>()),
            done: false,
        };
        call("receive a message", || {
            // SAFETY: the words are kept, untouched, until the request is done.
            unsafe {
                let words = single.words.at(&(0..0)).cast();
                ffi::conset_receive_words(comm.raw(), single.raw, words, count, peer, tag)
            }
        })?;
        Ok(single)
    }

    /// Whether it is done.
    pub(super) fn test(&mut self) -> Result<bool, MpiError> {
        if !self.done {
            let mut at = 0;
            call("complete a message", || {
                // SAFETY: the array has one request.
                unsafe { ffi::conset_requests_test(self.raw, &raw mut at, 1, 1) }
            })?;
            self.done = at == 1;
        }
        Ok(self.done)
    }

    /// The words that have arrived.
    pub(super) fn words(&self) -> &[u64] {
        assert!(self.done, "MPI still writes the words");
        self.words.words()
    }
}

impl Drop for SingleRequest {
    fn drop(&mut self) {
        if self.done {
            let _lock = lock();
            // SAFETY: it is done, and the array is not used afterwards.
            unsafe { ffi::conset_requests_free(self.raw) };
            self.words.free();
        }
    }
}

/// The words of the next message of a rank with a tag, if one has come.
pub(super) fn probe(comm: &Comm, rank: usize, tag: i32) -> Result<Option<usize>, MpiError> {
    Ok(look_for(comm, to_c_int(rank), tag)?.map(|(_, words)| words))
}

/// The rank and the words of the next message with a tag, if one has come from any rank.
pub(super) fn probe_any(comm: &Comm, tag: i32) -> Result<Option<(usize, usize)>, MpiError> {
    look_for(comm, -1, tag)
}

fn look_for(comm: &Comm, peer: c_int, tag: i32) -> Result<Option<(usize, usize)>, MpiError> {
    let (mut peer, mut words) = (peer, 0);
    call("look for a message", || {
        // SAFETY: the shim writes two integers.
        unsafe { ffi::conset_probe(comm.raw(), &raw mut peer, tag, &raw mut words) }
    })?;
    Ok(usize::try_from(words).ok().map(|words| (to_usize(peer), words)))
}
