//! The exchange of one cell as it is laid out: which of its requests make a stage, and which words are
//! where in its buffers.
//!
//! The requests of a cell are in one array: receives first, in the order of their stages, then sends, in
//! the order of stages and classes. So what a stage waits for is a range of it. Nothing here changes
//! while words are exchanged; how far a cell is, its exchange knows ([`super::persistent_requests`]).

use std::ops::Range;

use conset_ir::{CellId, ConnectionId};

use super::body_messages::Body;
use super::message_layout::{ExchangePlan, LocalSource, Messages, Peer, SendClass, WordRun};
use super::passed_words::{PassedRun, pass_on};

/// A stage of one cell.
pub(super) struct CellStage {
    /// Its sends among the requests: first those up to `urgent`, which must be done before the next
    /// stage or the end; then, from `immediate` on, those that are no persistent requests.
    pub(super) sends: Range<usize>,
    pub(super) urgent: usize,
    pub(super) immediate: usize,
    /// Where its receives end, counted from the first stage on.
    pub(super) receives: usize,
    pub(super) sources: Vec<LocalSource>,
}

/// The exchange of one cell.
pub(super) struct CellExchange {
    pub(super) stages: Vec<CellStage>,
    /// What each request is for: receives first, then sends.
    pub(super) ends: Vec<Peer>,
    /// Rows of the targets on this rank.
    pub(super) targets: Vec<usize>,
    /// In buffer order, and by connection and first word.
    pub(super) departures: Vec<WordRun>,
    pub(super) arrivals: Vec<WordRun>,
    /// Connections that end at the cell.
    pub(super) incoming: usize,
    /// Every arrival is a whole connection.
    pub(super) whole: bool,
    /// By stage, the words to be copied before its sends; no stages if the cell passes on nothing.
    pub(super) passed: Vec<Vec<PassedRun>>,
    /// Where the heads of messages are: to be sent, and that arrive, with their sources.
    pub(super) heads: Vec<usize>,
    pub(super) arriving_heads: Vec<(usize, CellId)>,
    /// The bodies, which are the first sends and the last receives.
    pub(super) leaving_bodies: Vec<Body>,
    pub(super) arriving_bodies: Vec<Body>,
}

impl CellExchange {
    /// The exchange of a cell, given what leaves it and what arrives at it
    /// ([`super::message_layout::layout_sends`] and its sibling), how many connections end at it, and how
    /// many words a connection has.
    pub(super) fn new(
        plan: &ExchangePlan<'_>,
        (sends, departures, targets): (Messages, Vec<WordRun>, Vec<usize>),
        (receives, arrivals, sources): (Messages, Vec<WordRun>, Vec<Vec<LocalSource>>),
        incoming: usize,
        words: impl Fn(ConnectionId) -> usize,
    ) -> Self {
        let (departures, arrivals, passed) = match plan.passes_on() {
            true => pass_on(plan.stages(), departures, arrivals),
            false => (departures, arrivals, Vec::new()),
        };
        Self {
            stages: stages(plan.is_strict(), &receives, &sends, sources),
            ends: receives.ends.iter().chain(&sends.ends).copied().collect(),
            targets,
            whole: arrivals.iter().all(|run| run.words == (0..words(run.connection))),
            incoming,
            departures,
            arrivals,
            passed,
            heads: sends.heads.iter().map(|head| head.0).collect(),
            arriving_heads: receives.heads,
            leaving_bodies: sends.bodies,
            arriving_bodies: receives.bodies,
        }
    }

    pub(super) fn has_bodies(&self) -> bool {
        !self.leaving_bodies.is_empty() || !self.arriving_bodies.is_empty()
    }
}

/// The stages of a cell.
fn stages(
    strict: bool,
    receives: &Messages,
    sends: &Messages,
    sources: Vec<Vec<LocalSource>>,
) -> Vec<CellStage> {
    let first = receives.messages.len();
    let stage = |(stage, sources): (usize, Vec<LocalSource>)| {
        let own = sends.of_stage(stage);
        let urgent = if strict { own.end } else { sends.end_of(stage, SendClass::Long) };
        CellStage {
            sends: first + own.start..first + own.end,
            urgent: first + urgent,
            immediate: first + sends.end_of(stage, SendClass::Short),
            receives: receives.of_stage(stage).end,
            sources,
        }
    };
    sources.into_iter().enumerate().map(stage).collect()
}
