//! Execution of an image with synthetic data, with a check of every word received.
//!
//! The value of a word is a hash of the seed, its connection and its index ([`synthetic_word`]).
//! The value that a receive operation gets is compared with the value of the word that it expects
//! next, so a word that is swapped, displaced or sent for another connection is detected. That each
//! word is received once, and at the connection's target, follows from the operations: each
//! receives its words in order, it is at the target, and the operations together cover every
//! connection exactly once, which is checked by counting.

use std::sync::Arc;

use conset_ir::{ConnectionId, Image};

use crate::exchange::{Fabric, FabricOptions};
use crate::fault::Fault;
use crate::payload::{Payload, synthetic_word};
use crate::report::ExchangeReport;
use crate::trace::Trace;

/// The result of a checked run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Every word arrived once, in order, at the right cell.
    pub payload_ok: bool,
    /// Words whose value was not the expected one.
    pub wrong: u64,
    /// Words of the set that no operation received.
    pub missing: u64,
    /// Words received more than once, or left in the channels at the end of a phase.
    pub extra: u64,
    /// Times and counts.
    pub report: ExchangeReport,
    /// Streams and context switches, if requested.
    pub trace: Option<Trace>,
}

/// The data of a checked run. It needs no memory, because a word is a function of its index.
struct SyntheticPayload {
    seed: u64,
    wrong: u64,
}

impl Payload for SyntheticPayload {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        // The same connection and index have the same value, so there is nothing to compare.
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

/// Executes set number `set` of an image with words that are all different and checks each.
///
/// # Errors
/// A fault after which the run cannot continue: a table row or an operation that the machine
/// cannot hold, a misrouted word, or a deadlock (which also occurs where a receive waits for
/// missing words). Wrong and left-over words are counted instead.
pub fn run_checked(
    image: impl Into<Arc<Image>>,
    set: usize,
    seed: u64,
    trace: bool,
) -> Result<Checked, Fault> {
    run_with(image, set, seed, FabricOptions { trace, ..FabricOptions::default() })
}

/// [`run_checked`] with other options; `count_errors` is always on.
///
/// # Errors
/// As [`run_checked`].
pub fn run_with(
    image: impl Into<Arc<Image>>,
    set: usize,
    seed: u64,
    options: FabricOptions,
) -> Result<Checked, Fault> {
    let mut fabric = Fabric::load(image, FabricOptions { count_errors: true, ..options });
    let mut data = SyntheticPayload { seed, wrong: 0 };
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
