//! Execution of an image on a machine with faults, and what becomes of it.

use std::fmt;
use std::sync::Arc;

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{ConnectionId, ConnectionSet, Image};

use crate::detection::Detection;
use crate::exchange::{Fabric, FabricOptions};
use crate::fault::{Fault, FaultKind};
use crate::injection::{FaultExtent, FaultPlan, FaultPlanError};
use crate::payload::{SetBuffers, synthetic_word};
use crate::report::ExchangeReport;

/// What becomes of a program on a machine with faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Every word arrived once, in order, at the right cell.
    Delivered,
    /// The program cannot be compiled for the machine without its dead parts.
    Refused,
    /// A cell noticed that words are wrong, and names them.
    Detected,
    /// Nothing moves any more, and the place is named.
    TimedOut,
    /// The program ended with wrong words that nobody noticed.
    Silent,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 5] =
        [Self::Delivered, Self::Refused, Self::Detected, Self::TimedOut, Self::Silent];

    /// The outcome of a run that the fabric ended with a fault.
    pub fn of_fault(kind: &FaultKind) -> Self {
        match kind {
            FaultKind::Deadlock { .. } | FaultKind::Absent { .. } => Self::TimedOut,
            _ => Self::Detected,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::Detected => "detected",
            Self::TimedOut => "timed out",
            Self::Silent => "silent",
        })
    }
}

/// A run on a machine with faults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultRun {
    /// What became of it; never [`Outcome::Refused`].
    pub outcome: Outcome,
    /// The fault that ended it.
    pub fault: Option<Fault>,
    /// The sets that were exchanged to the end; none if they were exchanged by messages.
    pub reports: Vec<ExchangeReport>,
    /// The clock at which each fault of the plan acted first.
    pub acted: Vec<Option<u64>>,
    /// The clock at the end of the run.
    pub clock: u64,
    /// Words with wrong values in the sets that were exchanged to the end.
    pub wrong: u64,
    /// How far the run went: what [`FaultPlan::draw`] needs, of a run without faults.
    pub extent: FaultExtent,
}

impl FaultRun {
    /// Clocks from the first action of a fault to the end of a run that did not deliver.
    pub fn clocks_to_detection(&self) -> Option<u64> {
        let first = self.acted.iter().flatten().min()?;
        self.fault.as_ref().map(|fault| fault.clock.saturating_sub(*first))
    }
}

/// Executes all sets of an image in order, on a machine with faults and with words that depend on `seed`. The first
/// fault that is noticed ends the run. [`Detection::Simulator`] also counts inverted bits, at the end.
///
/// # Errors
/// A plan that names a part which the machine does not have.
pub fn run_with_faults(
    image: impl Into<Arc<Image>>,
    seed: u64,
    plan: &FaultPlan,
    detection: Detection,
) -> Result<FaultRun, FaultPlanError> {
    let image = image.into();
    let options = FabricOptions::default().detection(detection);
    let mut fabric = Fabric::load(image.clone(), options).with_faults(plan)?;
    let (mut reports, mut wrong, mut failed) = (Vec::new(), 0, None);
    for (number, set) in image.sets().iter().enumerate() {
        let mut data = synthetic_data(&set.set, seed);
        let report = match detection {
            Detection::Checked => fabric.exchange_checked(number, &mut data),
            _ => fabric.exchange(number, &mut data),
        };
        match report {
            Ok(report) => reports.push(report),
            Err(fault) => {
                failed = Some(fault);
                break;
            }
        }
        wrong += wrong_words(&set.set, seed, &data);
    }
    let outcome = match &failed {
        // A later set may fail when an earlier one was already wrong.
        _ if wrong > 0 => Outcome::Silent,
        Some(fault) => Outcome::of_fault(&fault.kind),
        None => Outcome::Delivered,
    };
    let (acted, clock) = (fabric.faults_acted().to_vec(), fabric.now());
    let phases = || reports.iter().flat_map(|report| &report.phases);
    let words = phases().filter_map(|phase| phase.busiest_link).map(|link| link.1).max();
    let switches = to_u64(phases().count());
    let extent = FaultExtent { clocks: clock, words: words.unwrap_or(1), switches };
    Ok(FaultRun { outcome, fault: failed, reports, acted, clock, wrong, extent })
}

/// Outgoing words that are all different.
fn synthetic_data(set: &ConnectionSet, seed: u64) -> SetBuffers {
    let mut data = SetBuffers::new(set);
    for (id, _) in set.iter() {
        for (word, place) in (0..).zip(data.outgoing(id)) {
            *place = synthetic_word(seed, id, word);
        }
    }
    data
}

fn wrong_words(set: &ConnectionSet, seed: u64, data: &SetBuffers) -> u64 {
    let wrong_of = |id: ConnectionId| {
        let words = data.incoming(id).iter().enumerate();
        words.filter(|(word, value)| **value != synthetic_word(seed, id, to_u32(*word))).count()
    };
    set.iter().map(|(id, _)| to_u64(wrong_of(id))).sum()
}
