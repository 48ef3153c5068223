//! The blocks of a set that is compiled to messages in steps.
//!
//! A stream is a message here, and a phase is a step. Clocks count from the start of the set, as steps
//! are no barriers: a message is drawn from the clock before its predicted end at which it starts if nothing
//! delays it.

use std::ops::Range;

use conset::fabric::messages::MessageRoutes;
use conset::profile::{self, SetProfile};
use conset::report::UncheckedSet;
use conset::scheduler::steps::{message_clocks, predict_ends};
use conset::steps::StepSummary;
use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{
    Binding, CellId, ConnectionId, ConnectionSet, LinkId, SetSteps, StepId, StepMessage,
};

use crate::assemble::SetBlocks;
use crate::columns::Block;
use crate::head::{BoundHead, SetHead, SummaryHead};
use crate::machine::LinkChoices;
use crate::profile::StreamRows;

/// A set of steps, with what the cost model says of each message.
pub(crate) struct StepSet<'a> {
    set: &'a SetSteps,
    /// `None` if the checker refused it.
    summary: Option<StepSummary>,
    /// The links of each message.
    routes: Vec<Vec<LinkId>>,
    /// The clock at which it has been received.
    ends: Vec<u64>,
    /// The least clocks that it takes.
    clocks: Vec<u64>,
    /// `None` if a message has no route.
    profile: Option<SetProfile>,
}

impl<'a> StepSet<'a> {
    /// `summary` is that of a plan that the checker accepts.
    pub(crate) fn new(set: &'a SetSteps, summary: Option<StepSummary>) -> Self {
        let machine = set.steps.machine();
        let protocol = machine.parameters().protocol;
        let mut routes = MessageRoutes::new(machine);
        // Where the machine has no route for a message, the message has no links here.
        let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
            routes.links(source, target, links);
        };
        let messages = set.steps.messages();
        let clocks = messages.iter().map(|m| message_clocks(machine, protocol, m.words()));
        let clocks: Vec<u64> = clocks.collect();
        // Of a plan that is not correct, messages may wait for each other.
        let (ends, profile) = match summary {
            Some(_) => (
                predict_ends(&set.steps, protocol, &mut route),
                profile::of_steps_model(&set.steps),
            ),
            None => (ends_one_by_one(set, &clocks), None),
        };
        let links = messages.iter().map(|message| {
            let mut links = Vec::new();
            route(message.source, message.target, &mut links);
            links
        });
        let links = links.collect();
        Self { set, summary, routes: links, ends, clocks, profile }
    }

    fn messages(&self) -> impl Iterator<Item = StepMessage<'_>> + Clone {
        self.set.steps.messages().iter()
    }

    /// The rows of the messages of each step.
    fn rows(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        rows(self.set)
    }

    fn words(&self, rows: Range<usize>) -> u64 {
        rows.map(|row| self.set.steps.messages().get(row).words()).sum()
    }
}

/// The rows of the messages of each step.
fn rows(set: &SetSteps) -> impl Iterator<Item = Range<usize>> + Clone {
    let messages = set.steps.messages();
    (0..messages.steps()).map(|step| messages.of_step(StepId::from_index(step)))
}

/// The ends of messages if each step began after the one before it.
fn ends_one_by_one(set: &SetSteps, clocks: &[u64]) -> Vec<u64> {
    let mut ends = Vec::with_capacity(clocks.len());
    let mut begin = 0u64;
    for rows in rows(set) {
        let of_step = &clocks[rows];
        ends.extend(of_step.iter().map(|&clocks| begin.saturating_add(clocks)));
        begin = begin.saturating_add(of_step.iter().copied().max().unwrap_or(0));
    }
    ends
}

impl SetBlocks for StepSet<'_> {
    fn head(&self) -> SetHead {
        let Some(summary) = &self.summary else {
            return SetHead {
                summary: SummaryHead::Unchecked(UncheckedSet::of_steps(self.set)),
                bounds: Vec::new(),
                profile: None,
                whole: false,
                groups: None,
            };
        };
        let bounds = &self.set.bounds;
        let mut listed = vec![BoundHead {
            of: "clocks",
            by: bounds.clocks_by,
            value: bounds.clocks,
            witness: String::new(),
        }];
        if bounds.clocks_by != Binding::Nothing {
            listed.push(BoundHead {
                of: "clocks of direct plans",
                by: bounds.clocks_by,
                value: bounds.direct_clocks,
                witness: "of plans in which every connection is one message".to_owned(),
            });
        }
        SetHead {
            summary: SummaryHead::Steps(Box::new(summary.clone())),
            bounds: listed,
            profile: self.profile.as_ref().map(crate::profile::head),
            whole: false,
            groups: None,
        }
    }

    fn connections(&self) -> &ConnectionSet {
        self.set.steps.set()
    }

    fn phases(&self) -> Block {
        let mut links = vec![(0u64, 0u64); self.set.steps.machine().link_count()];
        for (route, message) in self.routes.iter().zip(self.messages()) {
            for link in route {
                links[link.index()].0 += 1;
                links[link.index()].1 += message.words();
            }
        }
        let hops =
            |rows: Range<usize>| self.routes[rows].iter().map(|route| to_u64(route.len())).sum();
        let end = |rows: Range<usize>| self.ends[rows].iter().copied().max().unwrap_or(0);
        let mut block = Block::default();
        block
            .plain("phase_streams", self.rows().map(|rows| to_u64(rows.len())))
            .plain("phase_words", self.rows().map(|rows| self.words(rows)))
            .plain("phase_hops", self.rows().map(hops))
            .plain("phase_makespan", self.rows().map(end))
            .plain("link_routes", links.iter().map(|link| link.0))
            .plain("link_words", links.iter().map(|link| link.1));
        block
    }

    fn streams(&self) -> Block {
        let spans = || self.ends.iter().zip(&self.clocks);
        let start = |(&end, &clocks): (&u64, &u64)| end.saturating_sub(clocks);
        let mut block = Block::default();
        block
            .delta("stream_source", self.messages().map(|m| m.source.0.into()))
            .delta("stream_target", self.messages().map(|m| m.target.0.into()))
            .plain("stream_words", self.messages().map(|m| m.words()))
            .plain("stream_start", spans().map(start))
            .plain("stream_duration", spans().map(|(&end, &clocks)| clocks.min(end)));
        block
    }

    fn routes(&self) -> Block {
        let choices = LinkChoices::new(self.set.steps.machine());
        let links = self.routes.iter().flatten();
        let mut block = Block::default();
        block
            .plain("stream_hops", self.routes.iter().map(|route| to_u64(route.len())))
            .plain("link_choice", links.map(|&link| choices.of(link)));
        block
    }

    fn loads(&self) -> Option<Block> {
        None
    }

    fn details(&self) -> Block {
        let pieces = || self.messages().flat_map(|message| message.pieces);
        let mut block = Block::default();
        block
            .plain("piece_count", self.messages().map(|message| to_u64(message.pieces.len())))
            .delta("piece_connection", pieces().map(|piece| piece.connection.0.into()))
            .plain("piece_words", pieces().map(|piece| piece.words.into()));
        block
    }

    fn stream_count(&self) -> usize {
        self.set.steps.messages().len()
    }

    fn profile(&self) -> Option<&SetProfile> {
        self.profile.as_ref()
    }

    fn stream_rows(&self) -> StreamRows {
        // Profiles number the messages of a plan.
        let rows = 0..to_u32(self.stream_count());
        rows.map(|row| ((ConnectionId(row), 0), row.into())).collect()
    }
}
