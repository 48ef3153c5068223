//! The order rule: of a pair `(before, after)`, the first connection ends before the second starts.
//!
//! Phases run one after the other, so a routing satisfies a pair if the last phase of `before` is
//! not later than the first phase of `after`. If it is the same phase, the timetable must satisfy
//! the pair: every slot of `before` in that phase ends no later than any slot of `after` starts.
//! The coverage rule refuses connections without a phase.

use conset_ir::{ConnectionId, ConnectionSet, PhaseId, Slot};

use crate::rejection::{Findings, Location, Rule};

/// The first and last phase of each connection.
pub(crate) struct PhaseSpans {
    spans: Vec<PhaseSpan>,
}

#[derive(Clone, Copy)]
struct PhaseSpan {
    first: PhaseId,
    last: PhaseId,
    /// Earliest start in the first phase.
    start: u64,
    /// Latest end in the last phase.
    end: u64,
}

impl PhaseSpan {
    const NONE: Self = Self { first: PhaseId(u32::MAX), last: PhaseId(0), start: 0, end: 0 };

    fn is_none(self) -> bool {
        self.first.0 == u32::MAX
    }
}

impl PhaseSpans {
    pub(crate) fn new(connections: usize) -> Self {
        Self { spans: vec![PhaseSpan::NONE; connections] }
    }

    /// Records that a phase carries a connection, or a part of it. Phases must be in order.
    pub(crate) fn add(&mut self, connection: ConnectionId, phase: PhaseId) {
        self.add_slot(connection, phase, Slot::default());
    }

    /// The same, with the slot of the part.
    pub(crate) fn add_slot(&mut self, connection: ConnectionId, phase: PhaseId, slot: Slot) {
        let span = &mut self.spans[connection.index()];
        if span.is_none() {
            *span = PhaseSpan { first: phase, last: phase, start: slot.start, end: slot.end() };
            return;
        }
        if span.first == phase {
            span.start = span.start.min(slot.start);
        }
        span.end = if span.last == phase { span.end.max(slot.end()) } else { slot.end() };
        span.last = phase;
    }

    /// Checks the phases of every pair.
    pub(crate) fn check(&self, set: &ConnectionSet, findings: &mut Findings) {
        for (before, after, first, second) in self.pairs(set) {
            if first.last > second.first {
                findings.add(Rule::Order, Location::phase(second.first).connection(after), || {
                    format!("starts here; {before} must precede it and runs in {}", first.last)
                });
            }
        }
    }

    /// Checks the slots of every pair that shares a phase.
    pub(crate) fn check_slots(&self, set: &ConnectionSet, findings: &mut Findings) {
        for (before, after, first, second) in self.pairs(set) {
            if first.last == second.first && first.end > second.start {
                findings.add(Rule::Order, Location::phase(second.first).connection(after), || {
                    format!(
                        "starts at clock {}; {before} must precede it and ends at {}",
                        second.start, first.end
                    )
                });
            }
        }
    }

    fn pairs<'a>(
        &'a self,
        set: &'a ConnectionSet,
    ) -> impl Iterator<Item = (ConnectionId, ConnectionId, PhaseSpan, PhaseSpan)> + 'a {
        set.order()
            .iter()
            .map(|&(b, a)| (b, a, self.spans[b.index()], self.spans[a.index()]))
            .filter(|(_, _, first, second)| !first.is_none() && !second.is_none())
    }
}
