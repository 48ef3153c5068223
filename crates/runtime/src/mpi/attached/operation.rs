//! The operations of a distributed set-up: waiting, reductions to all, broadcasts, and messages
//! between ranks of which the receiver does not know.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use conset_ir::convert::to_usize;

use super::ffi::{self, RawOperation};
use crate::error::MpiError;
use crate::mpi::backoff::Waited;
use crate::mpi::comm::{Comm, call, lock};
use crate::mpi::ffi::to_c_int;
use crate::mpi::raw_requests::{SingleRequest, WORDS_MAX};

/// Tags of an attached communicator. Sparse exchanges take turns with two of them, because a rank
/// can begin the next one while others complete the last.
const SPARSE_TAGS: [c_int; 2] = [0, 1];
const ROUTE_TAG: c_int = 2;
/// The tags of collectives, to the root and from it, for as many as can be under way at a time.
pub(super) const TREE_TAGS: [[c_int; 2]; 4] = [[3, 4], [5, 6], [7, 8], [9, 10]];
/// The first tag of halos.
pub(super) const HALO_TAGS: c_int = 11;

/// Messages that set-ups of this process have sent.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Messages that the set-ups of this process have sent so far to find out who has what, on all
/// communicators; without those of MPI's own barriers and reductions, about log2 P each.
#[doc(hidden)]
pub fn set_up_messages() -> u64 {
    MESSAGES.load(Ordering::Relaxed)
}

/// Waits until `poll` says that it is done. A long wait is reported with the ranks that are awaited,
/// and so is a time-out, which is an error; `place` says in what.
pub(super) fn wait_for(
    comm: &Comm,
    place: &dyn Fn() -> String,
    awaited: &dyn Fn() -> Vec<usize>,
    mut poll: impl FnMut() -> Result<bool, MpiError>,
) -> Result<(), MpiError> {
    let mut backoff = comm.backoff();
    let missing = |milliseconds| {
        let (rank, place, awaited) = (comm.rank(), place(), awaited());
        MpiError::Missing { rank, milliseconds, place, awaited }
    };
    while !poll()? {
        match backoff.wait() {
            Waited::Briefly | Waited::Long => {}
            Waited::Report(milliseconds) => comm.report_wait(&missing(milliseconds)),
            Waited::TimedOut(milliseconds) => return Err(missing(milliseconds)),
        }
    }
    Ok(())
}

/// Words of messages: of 4 or 8 bytes.
pub(super) trait Word: Copy + Default {}

impl Word for u32 {}
impl Word for u64 {}

/// Bytes of a word.
fn size_of_word<W: Word>() -> c_int {
    to_c_int(size_of::<W>())
}

/// A request and the words that MPI uses until it is done. If it is dropped before, both stay.
struct Operation<W> {
    raw: *mut RawOperation,
    words: Vec<W>,
    done: bool,
}

impl<W> Operation<W> {
    /// Starts an operation; `start` gets the request, and the words with their count.
    fn new(
        what: &'static str,
        words: Vec<W>,
        start: impl FnOnce(*mut RawOperation, *mut W, c_int) -> c_int,
    ) -> Result<Self, MpiError> {
        let count = words_of_message(words.len())?;
        // SAFETY: allocates, and nothing else.
        let raw = unsafe { ffi::conset_operation_new() };
        if raw.is_null() {
            let text = "no memory".to_owned();
            return Err(MpiError::Call { what, code: -1, text });
        }
        let mut this = Self { raw, words, done: false };
        let place = this.words.as_mut_ptr();
        call(what, || start(raw, place, count))?;
        Ok(this)
    }

    fn test(&mut self) -> Result<bool, MpiError> {
        if !self.done {
            let mut done = 0;
            call("complete an operation", || {
                // SAFETY: the request lives until this value is dropped.
                unsafe { ffi::conset_operation_test(self.raw, &raw mut done) }
            })?;
            self.done = done != 0;
        }
        Ok(self.done)
    }

    /// The words, after the operation is done.
    fn into_words(mut self) -> Vec<W> {
        assert!(self.done, "MPI still uses the words");
        std::mem::take(&mut self.words)
    }
}

impl<W> Drop for Operation<W> {
    fn drop(&mut self) {
        if self.done {
            let _lock = lock();
            // SAFETY: it is done, and not used afterwards.
            unsafe { ffi::conset_operation_free(self.raw) };
        } else {
            // MPI may still read or write them.
            std::mem::forget(std::mem::take(&mut self.words));
        }
    }
}

fn words_of_message(words: usize) -> Result<c_int, MpiError> {
    let found = conset_ir::convert::to_u64(words);
    if found > WORDS_MAX {
        return Err(MpiError::Limit { what: "words of a message", found, limit: WORDS_MAX });
    }
    Ok(to_c_int(words))
}

/// How words of all ranks are combined.
#[derive(Clone, Copy)]
pub(super) enum Combine {
    Min,
    Sum,
}

/// Combines words of all ranks, one by one; every rank gets the results.
pub(super) fn reduce_all(
    comm: &Comm,
    how: Combine,
    words: Vec<u64>,
    place: &'static str,
) -> Result<Vec<u64>, MpiError> {
    let sum = matches!(how, Combine::Sum).into();
    let mut operation = Operation::new("reduce", words, |raw, words, count| {
        // SAFETY: the words are kept, and not used, until the request is done.
        unsafe { ffi::conset_reduce_all(comm.raw(), raw, sum, words, count) }
    })?;
    wait_for(comm, &|| place.to_owned(), &Vec::new, || operation.test())?;
    Ok(operation.into_words())
}

/// Words of one rank, for all.
pub(super) fn broadcast(
    comm: &Comm,
    root: usize,
    words: Vec<u64>,
    place: &'static str,
) -> Result<Vec<u64>, MpiError> {
    let mut operation = Operation::new("broadcast", words, |raw, words, count| {
        // SAFETY: as above.
        unsafe { ffi::conset_broadcast_words(comm.raw(), raw, words, count, to_c_int(root)) }
    })?;
    wait_for(comm, &|| place.to_owned(), &|| vec![root], || operation.test())?;
    Ok(operation.into_words())
}

/// The sender and the number of words of the next message with a tag, from any rank or from one.
fn look<W: Word>(
    comm: &Comm,
    from: Option<usize>,
    tag: c_int,
) -> Result<Option<(usize, usize)>, MpiError> {
    let (mut peer, mut words) = (0, 0);
    let (from, size) = (from.map_or(-1, to_c_int), size_of_word::<W>());
    call("look for a message", || {
        // SAFETY: the shim writes two integers.
        unsafe { ffi::conset_look(comm.raw(), from, tag, size, &raw mut peer, &raw mut words) }
    })?;
    // A count that is no number of words is of a message that nothing here has sent.
    Ok((peer >= 0).then(|| (to_usize(peer), usize::try_from(words).unwrap_or(0))))
}

/// Receives a message that [`look`] has found.
fn take<W: Word>(
    comm: &Comm,
    (peer, words): (usize, usize),
    tag: c_int,
) -> Result<Vec<W>, MpiError> {
    let mut message = vec![W::default(); words];
    let (place, count) = (message.as_mut_ptr().cast(), words_of_message(words)?);
    call("receive a message", || {
        // SAFETY: the words have room for the message, which is there.
        unsafe {
            ffi::conset_take(comm.raw(), place, count, size_of_word::<W>(), to_c_int(peer), tag)
        }
    })?;
    Ok(message)
}

/// Messages to ranks that do not know of them, and those that come in return, by sender: a dynamic
/// sparse exchange (T. Hoefler, C. Siebert, A. Lumsdaine: Scalable communication protocols for
/// dynamic sparse data exchange, PPoPP 2010). A rank sends synchronously, so it knows when all its
/// messages have been received; it then enters a barrier that does not block, and receives until all
/// ranks are there. Collective; `round` counts the calls on the communicator.
///
/// A rank sends as many messages as it has, and what the barrier takes, about log2 P.
pub(super) fn sparse_exchange<W: Word>(
    comm: &Comm,
    round: u64,
    messages: Vec<(usize, Vec<W>)>,
) -> Result<Vec<(usize, Vec<W>)>, MpiError> {
    let tag = SPARSE_TAGS[usize::from(round % 2 == 1)];
    let mut received = Vec::new();
    let mut sends = Vec::new();
    for (peer, words) in messages {
        if peer == comm.rank() {
            received.push((peer, words));
            continue;
        }
        let send = Operation::new("send a message", words, |raw, words, count| {
            // SAFETY: the words are kept, unchanged, until the request is done.
            unsafe {
                let (words, size, peer) = (words.cast(), size_of_word::<W>(), to_c_int(peer));
                ffi::conset_synchronous_send(comm.raw(), raw, words, count, size, peer, tag)
            }
        })?;
        MESSAGES.fetch_add(1, Ordering::Relaxed);
        sends.push((peer, send));
    }
    let mut barrier: Option<Operation<W>> = None;
    // Those before this one are done.
    let mut sent = 0;
    let awaiting = std::cell::RefCell::new(Vec::new());
    let place = || "the set-up of a halo".to_owned();
    wait_for(comm, &place, &|| awaiting.borrow().clone(), || {
        while let Some(found) = look::<W>(comm, None, tag)? {
            received.push((found.0, take(comm, found, tag)?));
        }
        if let Some(barrier) = &mut barrier {
            return barrier.test();
        }
        while sent < sends.len() && sends[sent].1.test()? {
            sent += 1;
        }
        *awaiting.borrow_mut() = sends.get(sent).map(|(peer, _)| *peer).into_iter().collect();
        if sent == sends.len() {
            barrier = Some(Operation::new("enter a barrier", Vec::new(), |raw, _, _| {
                // SAFETY: the request is kept until it is done.
                unsafe { ffi::conset_enter_barrier(comm.raw(), raw) }
            })?);
        }
        Ok(false)
    })?;
    received.sort_by_key(|(peer, _)| *peer);
    Ok(received)
}

/// Delivers records to any ranks by way of others: the ranks are halved again and again, and each
/// sends what belongs to the other half to one rank there (crystal router: G. Fox et al., Solving
/// Problems on Concurrent Processors, 1988). Where every rank has something for nearly every other,
/// as if destinations are hashes, a rank sends log2 P messages, instead of P. Collective.
///
/// A rank holds at most about as many records as destinations are balanced.
pub(super) fn route_records<const N: usize>(
    comm: &Comm,
    mut records: Vec<[u64; N]>,
    destination: impl Fn(&[u64; N]) -> usize,
) -> Result<Vec<[u64; N]>, MpiError> {
    let own = comm.rank();
    let (mut first, mut end) = (0, comm.size());
    while end - first > 1 {
        let half = first + (end - first).div_ceil(2);
        let (lower, upper) = (half - first, end - half);
        let is_lower = own < half;
        let away: Vec<[u64; N]> =
            records.extract_if(.., |record| (destination(record) < half) != is_lower).collect();
        // The last rank of the lower half has no counterpart if the halves differ; the last one of
        // the upper half receives from it, too.
        let (to, from) = if is_lower {
            let number = own - first;
            let to = half + number.min(upper - 1);
            (to, if number < upper { vec![to] } else { Vec::new() })
        } else {
            let number = own - half;
            let odd = (lower > upper && number == upper - 1).then_some(first + upper);
            (first + number, [Some(first + number), odd].into_iter().flatten().collect())
        };
        let mut send = SingleRequest::send(comm, away.into_flattened(), to, ROUTE_TAG)?;
        MESSAGES.fetch_add(1, Ordering::Relaxed);
        for peer in from {
            let mut found = None;
            let place = || "the set-up of a halo".to_owned();
            wait_for(comm, &place, &|| vec![peer], || {
                // Both ends proceed at the same time.
                send.test()?;
                found = look::<u64>(comm, Some(peer), ROUTE_TAG)?;
                Ok(found.is_some())
            })?;
            if let Some(found) = found {
                let words: Vec<u64> = take(comm, found, ROUTE_TAG)?;
                records.extend_from_slice(words.as_chunks().0);
            }
        }
        wait_for(comm, &|| "the set-up of a halo".to_owned(), &|| vec![to], || send.test())?;
        (first, end) = if is_lower { (first, half) } else { (half, end) };
    }
    Ok(records)
}
