//! Times and counts of an exchange, phase by phase.

use conset_ir::{CellId, LinkId, PhaseId};

/// Times and counts of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhaseReport {
    /// The phase.
    pub phase: PhaseId,
    /// Clocks of the context switch.
    pub switch: u64,
    /// Clocks from the end of the switch until the last word arrived.
    pub clocks: u64,
    /// Words delivered.
    pub words: u64,
    /// Word-hops: words carried, counted once on every link.
    pub word_hops: u64,
    /// The link that carried the most words, and their number; the first one of equals.
    pub busiest_link: Option<(LinkId, u64)>,
    /// The cell whose agent moved the most words, and their number in both directions together.
    pub busiest_agent: Option<(CellId, u64)>,
}

/// Times and counts of the exchange of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExchangeReport {
    /// The set's name.
    pub set: String,
    /// Clocks of all phases with their switches.
    pub clocks: u64,
    /// The phases in the order of execution.
    pub phases: Vec<PhaseReport>,
    /// Words delivered.
    pub words: u64,
    /// Word-hops: words carried, counted once on every link.
    pub word_hops: u64,
}

impl ExchangeReport {
    /// Sums up the phases of a set.
    pub fn new(set: &str, phases: Vec<PhaseReport>) -> Self {
        Self {
            set: set.to_owned(),
            clocks: phases
                .iter()
                .fold(0, |sum, p| sum.saturating_add(p.switch).saturating_add(p.clocks)),
            words: phases.iter().map(|p| p.words).sum(),
            word_hops: phases.iter().map(|p| p.word_hops).sum(),
            phases,
        }
    }
}
