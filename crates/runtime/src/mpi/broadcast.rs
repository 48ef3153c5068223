//! Sending an image from rank 0 to all ranks, so that it is compiled once for the job.
//!
//! The bytes go over a binomial tree: the parent of rank `r` is `r` without its lowest bit. Each rank
//! compares their digest before it reads them.

use std::fmt::Display;
use std::sync::Arc;

use conset_ir::convert::{to_u64, to_usize};
use conset_ir::{Document, Image, binary, binomial};

use super::backoff::Waited;
use super::comm::Comm;
use super::consensus::digest_of;
use super::failure::{text_of, words_of};
use super::gather_at_root::BROADCAST_TAG;
use super::raw_requests::{SingleRequest, probe};
use crate::error::MpiError;

// What a message contains: the digest and the bytes of an image, or a text.
const IMAGE: u64 = 0;
const FAILURE: u64 = 1;

impl Comm {
    /// The image that `make` returns on rank 0, on all ranks; `make` is called on no other rank.
    /// Collective. Programs that compile when they start need not do so on every rank:
    ///
    /// ```text
    /// let image = comm.broadcast_image(|| compile(sets))?;
    /// ```
    ///
    /// # Errors
    /// The error of `make` on rank 0, and [`MpiError::Elsewhere`] with its text on the others; an
    /// image that does not arrive as it was sent, or that this version cannot read; a run under way.
    pub fn broadcast_image<E: From<MpiError> + Display>(
        &self,
        make: impl FnOnce() -> Result<Arc<Image>, E>,
    ) -> Result<Arc<Image>, E> {
        let _busy = self.occupy()?;
        if self.rank() > 0 {
            let words = self.receive_from_parent()?;
            let send = self.send_to_children(&words);
            let image = self.read_image(&words)?;
            send?;
            return Ok(image);
        }
        let made = make();
        let words = match &made {
            Ok(image) => words_of_bytes(&binary::write(&Document::Image((**image).clone()))),
            Err(error) => [&[FAILURE][..], &words_of(&error.to_string())].concat(),
        };
        self.send_to_children(&words)?;
        made
    }

    fn read_image(&self, words: &[u64]) -> Result<Arc<Image>, MpiError> {
        let failed = |error| MpiError::Elsewhere { rank: 0, error };
        let [IMAGE, sent, length, words @ ..] = words else {
            return Err(failed(words.get(1..).map_or_else(String::new, text_of)));
        };
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(to_usize(*length));
        let digest = digest_of(&bytes);
        if digest != *sent {
            return Err(MpiError::OddImage { odd: vec![self.rank()], digest, others: *sent });
        }
        match binary::parse("the image of rank 0", &bytes) {
            Ok(Document::Image(image)) => Ok(Arc::new(image)),
            Ok(other) => Err(failed(format!("it sent a {}", other.kind()))),
            Err(error) => Err(MpiError::Image { error: error.to_string() }),
        }
    }

    fn receive_from_parent(&self) -> Result<Vec<u64>, MpiError> {
        let parent = binomial::parent(self.rank()).expect("rank 0 has the image");
        let mut backoff = self.backoff_of(2);
        let words = loop {
            if let Some(words) = probe(self, parent, BROADCAST_TAG)? {
                break words;
            }
            self.judge(backoff.wait(), parent);
        };
        let mut receive = SingleRequest::receive(self, words, parent, BROADCAST_TAG)?;
        while !receive.test()? {
            self.judge(backoff.wait(), parent);
        }
        Ok(receive.words().to_vec())
    }

    fn send_to_children(&self, words: &[u64]) -> Result<(), MpiError> {
        let mut sends = Vec::new();
        // The farthest first, which has the largest branch.
        for child in binomial::children(self.rank(), self.size()).rev() {
            let send = SingleRequest::send(self, words.to_vec(), child, BROADCAST_TAG)?;
            sends.push((child, send));
        }
        for (child, send) in &mut sends {
            let mut backoff = self.backoff();
            while !send.test()? {
                self.judge(backoff.wait(), *child);
            }
        }
        Ok(())
    }

    /// Reports a long wait, or ends the job after a time-out.
    fn judge(&self, waited: Waited, awaited: usize) {
        let missing = |milliseconds| MpiError::Missing {
            rank: self.rank(),
            milliseconds,
            place: "the broadcast of an image".to_owned(),
            awaited: vec![awaited],
        };
        match waited {
            Waited::Briefly | Waited::Long => {}
            Waited::Report(time) => self.report_wait(&missing(time)),
            Waited::TimedOut(time) => self.abort_after_time_out(&missing(time)),
        }
    }
}

/// An image's bytes as words, after their digest and number.
fn words_of_bytes(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![IMAGE, digest_of(bytes), to_u64(bytes.len())];
    words.extend(bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    }));
    words
}
