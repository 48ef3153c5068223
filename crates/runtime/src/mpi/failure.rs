//! Failures that one rank finds alone: it announces them, so that the run ends on all ranks with an
//! error as a value, and the job goes on.
//!
//! The rank sends the text of its error to all others, which look for such messages now and then
//! while they wait, and end the run with [`MpiError::Elsewhere`]. Then all ranks together replace
//! the duplicate of the communicator ([`super::Comm::renew`]), so that nothing that is still on its
//! way is received by a later run.
//!
//! What was under way to a rank is received by it and discarded, so that memory that the program has lent
//! for a message can be given back ([`Rank::abandon`]).
//!
//! Two kinds of failures end the job instead: a time-out, after which some rank may not be there at
//! all, and an error of MPI itself.

use std::time::Instant;

use conset_ir::convert::{to_u64, to_usize};

use super::borrowed_request::BorrowedRequest;
use super::gather_at_root::FAILURE_TAG;
use super::raw_requests::{SingleRequest, probe_any};
use super::run::Rank;
use crate::error::{MpiError, RunError};

impl Rank<'_> {
    /// This rank leaves the run with an error. Unless all ranks know, tells them, or ends the job.
    pub(super) fn announce(&self, error: &RunError) {
        if self.known_to_all.replace(true) || self.comm.size() == 1 {
            return;
        }
        match error {
            RunError::Mpi(MpiError::Missing { .. }) => self.comm.abort_after_time_out(error),
            RunError::Mpi(MpiError::Call { .. }) => self.comm.abort_because(error),
            _ => {}
        }
        let words = words_of(&error.to_string());
        for rank in (0..self.comm.size()).filter(|&rank| rank != self.comm.rank()) {
            // Nobody waits for it to leave: dropped, it keeps its words.
            let sent = SingleRequest::send(&self.comm, words.clone(), rank, FAILURE_TAG);
            if let Err(problem) = sent.and_then(|mut send| send.test()) {
                self.comm.abort_because(&problem);
            }
        }
    }

    /// The run has stopped: completes or cancels what is under way in the memory of a program, each with
    /// the other rank. Tells all ranks first, so that none goes on waiting instead of completing it.
    pub(super) fn abandon<'r>(
        &self,
        under_way: impl IntoIterator<Item = (&'r mut BorrowedRequest, usize)>,
    ) {
        if let Some(error) = self.stopped_by() {
            self.announce(&error);
        }
        // All cells of the rank wait together for what may still come.
        let told = self.told.get().unwrap_or_else(Instant::now);
        self.told.set(Some(told));
        under_way.into_iter().for_each(|(request, other)| request.finish(other, told));
    }

    /// The failure that another rank has announced, if one has.
    pub(super) fn check_failures(&self) -> Result<(), RunError> {
        let Some((rank, words)) = probe_any(&self.comm, FAILURE_TAG)? else { return Ok(()) };
        let mut receive = SingleRequest::receive(&self.comm, words, rank, FAILURE_TAG)?;
        while !receive.test()? {}
        self.known_to_all.set(true);
        Err(MpiError::Elsewhere { rank, error: text_of(receive.words()) }.into())
    }
}

/// A text as words: its length in bytes, and the bytes. Cut where MPI could not be expected to
/// take it at once.
pub(super) fn words_of(text: &str) -> Vec<u64> {
    const LONGEST: usize = 2000;
    let text = &text.as_bytes()[..text.len().min(LONGEST)];
    let mut words = vec![to_u64(text.len())];
    words.extend(text.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    }));
    words
}

pub(super) fn text_of(words: &[u64]) -> String {
    let [length, text @ ..] = words else { return String::new() };
    let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes[..to_usize(*length).min(bytes.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_words() {
        for text in ["", "c3", "12345678", "nine bytes", &"\u{e9}".repeat(1500)] {
            let found = text_of(&words_of(text));
            let whole = found.trim_end_matches(char::REPLACEMENT_CHARACTER);
            assert!(text.starts_with(whole) && whole.len() >= text.len().min(1999), "{found}");
        }
    }
}
