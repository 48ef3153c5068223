//! Execution of an image with synthetic data, with a check of every word received.
//!
//! The value of a word is a hash of the seed, its connection and its index ([`synthetic_word`]).
//! The value that a receive operation gets is compared with the value of the word that it expects
//! next, so a word that is swapped, displaced or sent for another connection is detected. That each
//! word is received once, and at the connection's target, follows from the operations: each
//! receives its words in order, it is at the target, and the operations together cover every
//! connection exactly once, which is checked by counting.
//!
//! Each phase begins on an idle machine, so the phases of a large set without an order are executed side by
//! side, each thread with a machine of its own. Clocks and counts are the same as one after the other. If a
//! phase ends in a fault, the set is executed again in order, so that the first fault is reported with its clock.

use std::sync::Arc;

use conset_ir::{ConnectionId, Image};
use rayon::prelude::*;

use crate::coverage::Coverage;
use crate::exchange::{ErrorCounts, Fabric, FabricOptions};
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

    fn transfer_run(&mut self, _first: (ConnectionId, u32), _words: u32) {}
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
    let image = image.into();
    let options = FabricOptions { count_errors: true, ..options };
    if let Some(checked) = run_side_by_side(&image, set, seed, options) {
        return Ok(checked);
    }
    let mut fabric = Fabric::load(image, options);
    let mut data = SyntheticPayload { seed, wrong: 0 };
    let report = fabric.exchange(set, &mut data)?;
    let errors = fabric.errors();
    let trace = options.trace.then(|| fabric.into_trace());
    Ok(Checked { trace, ..Checked::new(report, errors, data.wrong) })
}

impl Checked {
    fn new(report: ExchangeReport, errors: ErrorCounts, wrong: u64) -> Self {
        let ErrorCounts { missing, extra, .. } = errors;
        let payload_ok = (wrong, missing, extra) == (0, 0, 0);
        Self { payload_ok, wrong, missing, extra, report, trace: None }
    }
}

/// Sets with fewer words are executed in order: threads would not make them faster.
const LEAST_WORDS: u64 = 1 << 16;

/// Parts for each thread, so that threads end at about the same time.
const PARTS_PER_THREAD: usize = 8;

/// Executes the phases of a set side by side; `None` if they are few or depend on each other, or in case of
/// a fault.
fn run_side_by_side(
    image: &Arc<Image>,
    set: usize,
    seed: u64,
    options: FabricOptions,
) -> Option<Checked> {
    let of = image.sets().get(set)?;
    let (phases, threads) = (of.phases.len(), rayon::current_num_threads());
    let is_divisible = of.set.order().is_empty() && !options.trace;
    if !is_divisible || phases.min(threads) < 2 || of.set.words() < LEAST_WORDS {
        return None;
    }
    let share = phases.div_ceil(threads * PARTS_PER_THREAD);
    let part = |first: usize| {
        let mut fabric = Fabric::load(image.clone(), options);
        let mut data = SyntheticPayload { seed, wrong: 0 };
        let phases = first..phases.min(first + share);
        let done = fabric.exchange_some_phases(set, phases, &mut data);
        done.ok().map(|(reports, coverage)| (reports, coverage, fabric.errors(), data.wrong))
    };
    let firsts: Vec<usize> = (0..phases).step_by(share).collect();
    let parts: Option<Vec<_>> = firsts.into_par_iter().map(part).collect();
    let (mut reports, mut coverage) = (Vec::with_capacity(phases), Coverage::default());
    let (mut errors, mut wrong) = (ErrorCounts::default(), 0);
    for (report, covered, of, wrong_here) in parts? {
        reports.extend(report);
        coverage.append(covered);
        errors.extra += of.extra;
        wrong += wrong_here;
    }
    errors.add_gaps(&coverage.gaps(&of.set));
    Some(Checked::new(ExchangeReport::new(of.set.name(), reports), errors, wrong))
}
