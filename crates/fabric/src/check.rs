//! Running an image with data that gives every word away, and checking every word.
//!
//! The value of a word is a mix of the seed, its connection and its place in it. What a receive
//! operation gets is compared with the value that its own next word must have, so a word that is
//! swapped, displaced or sent for another connection is seen by its value. That each word was
//! received once, and at the connection's target, follows from the operations: each receives its
//! words in order, they stand at the target, and together they cover every connection exactly
//! once, which is counted.

use std::sync::Arc;

use conset_ir::{ConnectionId, Image};

use crate::engine::Payload;
use crate::exchange::{Fabric, Options};
use crate::fault::Fault;
use crate::report::ExchangeReport;
use crate::trace::Trace;

/// The outcome of a checked run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Every word arrived once, in order, at the right cell.
    pub payload_ok: bool,
    /// Words whose value was not the expected one.
    pub wrong: u64,
    /// Words of the set that no operation received.
    pub missing: u64,
    /// Words received more than once, or left in the channels at a drain.
    pub extra: u64,
    /// What it took.
    pub report: ExchangeReport,
    /// Streams and switches, if asked for.
    pub trace: Option<Trace>,
}

/// The data of a checked run: no memory, every word from its place.
struct Synthetic {
    seed: u64,
    wrong: u64,
}

impl Payload for Synthetic {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        // A word is a function of its place, and at the same place stands the same word.
        if from != to {
            let received = synthetic_word(self.seed, from.0, from.1);
            self.wrong += u64::from(received != synthetic_word(self.seed, to.0, to.1));
        }
    }

    fn transfer_run(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32), words: u32) {
        if from != to {
            (0..words).for_each(|i| self.transfer((from.0, from.1 + i), (to.0, to.1 + i)));
        }
    }
}

/// The word at place `index` of a connection in a checked run. Different places have different
/// words: it is a one-to-one mix of seed-dependent 64 bits.
#[inline]
pub fn synthetic_word(seed: u64, connection: ConnectionId, index: u32) -> u64 {
    let mut bits = (u64::from(connection.0) << 32 | u64::from(index)) ^ seed;
    bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits ^ (bits >> 32)
}

/// Executes one set of an image with words that are all different and checks each.
///
/// # Errors
/// A fault after which the run cannot go on: a table or an operation that the machine cannot
/// hold, a word gone astray, a deadlock (which is also how missing words show when a receive
/// waits for them). Wrong and left-over words are counted instead.
pub fn run_checked(
    image: impl Into<Arc<Image>>,
    set: usize,
    seed: u64,
    trace: bool,
) -> Result<Checked, Fault> {
    run_with(image, set, seed, Options { trace, ..Options::default() })
}

/// The same with other options; errors are counted whatever they say.
///
/// # Errors
/// As [`run_checked`].
pub fn run_with(
    image: impl Into<Arc<Image>>,
    set: usize,
    seed: u64,
    options: Options,
) -> Result<Checked, Fault> {
    let mut fabric = Fabric::load(image, Options { count_errors: true, ..options });
    let mut data = Synthetic { seed, wrong: 0 };
    let report = fabric.exchange(set, &mut data)?;
    let errors = fabric.errors();
    let wrong = data.wrong.max(errors.wrong);
    Ok(Checked {
        payload_ok: wrong == 0 && errors.missing == 0 && errors.extra == 0,
        wrong,
        missing: errors.missing,
        extra: errors.extra,
        report,
        trace: options.trace.then(|| fabric.into_trace()),
    })
}
