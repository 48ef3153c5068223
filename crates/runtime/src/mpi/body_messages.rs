//! Messages of long rows: words that an exchange sends from the memory of a program and receives there.
//!
//! Words that are packed behind the head of their message are copied at both ends. If everything that
//! a cell sends to another in a set is one connection of many words, these are a message of their own
//! instead, the *body*; the head is another one. Both ends know that from the image
//! ([`super::message_layout`]), whatever calls they make. Only some calls have the words in rows: these
//! begin bodies here, with requests that serve once. All other calls pass bodies by buffers and
//! persistent requests ([`super::persistent_requests`]), which is the same message for the other end.
//!
//! Bodies are under way only during the call that has the rows. If the run fails meanwhile, those that
//! are not done are completed or cancelled before the call returns ([`Bodies::abandon`]). Rows that
//! arrive are written before the heads are checked: a call that fails may have changed them.

use conset_ir::Direction;

use super::borrowed_request::BorrowedRequest;
use super::comm::Comm;
use super::message_layout::Peer;
use super::message_queue::Address;
use super::run::Rank;
use crate::error::MpiError;
use crate::port::RawWords;

/// A body as the layout has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// The place of its connection among those of the cell that leave it, or that arrive at it.
    pub(super) slot: usize,
    /// Where it goes or comes from.
    pub(super) address: Address,
    pub(super) end: Peer,
}

/// The bodies of a cell that are under way in the memory of its program. The memory is not used
/// otherwise until they are done; whoever drops them before that ends the job.
#[derive(Default)]
pub(super) struct Bodies {
    requests: Vec<(Body, BorrowedRequest)>,
    /// Of these the first are known to be done.
    done: usize,
}

impl Bodies {
    /// Begins bodies, with the rows of all connections of the cell that leave it, or that arrive at it.
    ///
    /// # Safety
    /// The rows can be read if they leave, or else be written, and are not used otherwise until the
    /// bodies are done or abandoned.
    pub(super) unsafe fn begin(
        &mut self,
        comm: &Comm,
        bodies: &[Body],
        rows: &[RawWords],
    ) -> Result<(), MpiError> {
        for &body in bodies {
            let row = rows[body.slot];
            // SAFETY: the promise of the caller.
            let request = unsafe {
                match body.end.direction {
                    Direction::Send => BorrowedRequest::send(comm, row, body.address)?,
                    Direction::Receive => BorrowedRequest::receive(comm, row, body.address)?,
                }
            };
            self.requests.push((body, request));
        }
        Ok(())
    }

    /// Tries a few times to complete them; whether all are done.
    pub(super) fn test(&mut self, tries: u32) -> Result<bool, MpiError> {
        while let Some((_, request)) = self.requests.get_mut(self.done) {
            if !request.test(tries)? {
                return Ok(false);
            }
            self.done += 1;
        }
        self.clear();
        Ok(true)
    }

    /// The other ends of those that are not known to be done.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Peer> {
        self.requests.iter().filter(|(_, request)| !request.is_done()).map(|(body, _)| body.end)
    }

    /// The run has failed: completes or cancels those that are not done.
    pub(super) fn abandon(&mut self, rank: &Rank<'_>) {
        if !self.requests.is_empty() {
            let requests = self.requests.iter_mut();
            rank.abandon(requests.map(|(body, request)| (request, body.address.rank)));
            self.clear();
        }
    }

    /// Forgets them, which are done.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.done = 0;
    }
}
