//! What an exchange took, phase by phase.

use conset_ir::{CellId, LinkId, PhaseId};

/// What one phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// The phase.
    pub phase: PhaseId,
    /// Clocks of the context switch.
    pub switch: u64,
    /// Clocks from the end of the switch until the last word arrived.
    pub clocks: u64,
    /// Words delivered.
    pub words: u64,
    /// Words carried, counted once on every link.
    pub word_hops: u64,
    /// The link that carried most words, and how many; the first where several did.
    pub busiest_link: Option<(LinkId, u64)>,
    /// The agent that moved most words, both directions together, and how many.
    pub busiest_agent: Option<(CellId, u64)>,
}

/// What the exchange of one set took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeReport {
    /// The set's name.
    pub set: String,
    /// Clocks of all phases with their switches.
    pub clocks: u64,
    /// The phases in the order of execution.
    pub phases: Vec<PhaseReport>,
    /// Words delivered.
    pub words: u64,
    /// Words carried, counted once on every link.
    pub word_hops: u64,
}

impl ExchangeReport {
    /// Puts the phases of a set together.
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
