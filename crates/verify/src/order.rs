//! Order: in a pair `(before, after)` the first connection is finished before the second starts.
//!
//! Phases run one after the other, so a routing keeps a pair if the last phase of `before` is not
//! later than the first phase of `after`. If it is the same phase, the timetable must keep it
//! there: every slot of `before` in that phase ends no later than any slot of `after` starts.
//! Connections that no phase carries are the coverage rule's business.

use conset_ir::{ConnectionId, ConnectionSet, PhaseId, Slot};

use crate::rejection::{Findings, Place, Rule};

/// First and last phase of each connection.
pub(crate) struct PhaseSpans {
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    first: PhaseId,
    last: PhaseId,
    /// Earliest start in the first phase.
    start: u64,
    /// Latest end in the last phase.
    end: u64,
}

impl Span {
    const NONE: Span = Span { first: PhaseId(u32::MAX), last: PhaseId(0), start: 0, end: 0 };

    fn is_none(self) -> bool {
        self.first.0 == u32::MAX
    }
}

impl PhaseSpans {
    pub(crate) fn new(connections: usize) -> Self {
        Self { spans: vec![Span::NONE; connections] }
    }

    /// Notes that a phase carries (a part of) a connection. Phases come in order.
    pub(crate) fn add(&mut self, connection: ConnectionId, phase: PhaseId) {
        self.add_slot(connection, phase, Slot::default());
    }

    /// The same, with the slot of the part.
    pub(crate) fn add_slot(&mut self, connection: ConnectionId, phase: PhaseId, slot: Slot) {
        let span = &mut self.spans[connection.index()];
        if span.is_none() {
            *span = Span { first: phase, last: phase, start: slot.start, end: slot.end() };
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
                findings.add(Rule::Order, Place::phase(second.first).connection(after), || {
                    format!("starts here; {before} comes before it and runs in {}", first.last)
                });
            }
        }
    }

    /// Checks the slots of every pair that meets in one phase.
    pub(crate) fn check_slots(&self, set: &ConnectionSet, findings: &mut Findings) {
        for (before, after, first, second) in self.pairs(set) {
            if first.last == second.first && first.end > second.start {
                findings.add(Rule::Order, Place::phase(second.first).connection(after), || {
                    format!(
                        "starts at clock {}; {before} comes before it and ends at {}",
                        second.start, first.end
                    )
                });
            }
        }
    }

    fn pairs<'a>(
        &'a self,
        set: &'a ConnectionSet,
    ) -> impl Iterator<Item = (ConnectionId, ConnectionId, Span, Span)> + 'a {
        set.order()
            .iter()
            .map(|&(b, a)| (b, a, self.spans[b.index()], self.spans[a.index()]))
            .filter(|(_, _, first, second)| !first.is_none() && !second.is_none())
    }
}
