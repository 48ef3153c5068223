//! The blocks of a set that is compiled to messages in steps.
//!
//! A stream is a message here, and a phase is a step. Clocks count from the start of the set, as steps
//! are no barriers. A message is drawn at both its ends: while its source sends it, and while its target
//! receives it, by the cost model, as `conset show gantt` draws it.

use std::ops::Range;

use conset::fabric::messages::MessageRoutes;
use conset::profile::{self, SetProfile};
use conset::report::UncheckedSet;
use conset::scheduler::steps::{MessageTimes, message_clocks, predict_times};
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

/// When a message is sent and received, in clocks from the start of the set.
struct Times {
    send_open: u64,
    sent: u64,
    receive_open: u64,
    received: u64,
}

/// A set of steps, with what the cost model says of each message.
pub(crate) struct StepSet<'a> {
    set: &'a SetSteps,
    /// `None` if the checker refused it.
    summary: Option<StepSummary>,
    /// The links of each message.
    routes: Vec<Vec<LinkId>>,
    times: Vec<Times>,
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
        // Of a plan that is not correct, messages may wait for each other.
        let (times, profile) = match summary {
            Some(_) => {
                let times = predict_times(&set.steps, protocol, &mut route).into_iter();
                let times = times.map(|times| {
                    let MessageTimes { send_open, sent, receive_open, received, .. } = times;
                    Times { send_open, sent, receive_open, received }
                });
                (times.collect(), profile::of_steps_model(&set.steps))
            }
            None => (times_one_by_one(set), None),
        };
        let messages = set.steps.messages();
        let links = messages.iter().map(|message| {
            let mut links = Vec::new();
            route(message.source, message.target, &mut links);
            links
        });
        let links = links.collect();
        Self { set, summary, routes: links, times, profile }
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

/// The times of messages if each step began after the one before it.
fn times_one_by_one(set: &SetSteps) -> Vec<Times> {
    let (machine, messages) = (set.steps.machine(), set.steps.messages());
    let protocol = machine.parameters().protocol;
    let mut times: Vec<Times> = Vec::with_capacity(messages.len());
    let mut begin = 0u64;
    for rows in rows(set) {
        let mut next = begin;
        for row in rows {
            let clocks = message_clocks(machine, protocol, messages.get(row).words());
            let end = begin.saturating_add(clocks);
            times.push(Times { send_open: begin, sent: end, receive_open: begin, received: end });
            next = next.max(end);
        }
        begin = next;
    }
    times
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
        let received = |rows: Range<usize>| self.times[rows].iter().map(|times| times.received);
        let end = |rows: Range<usize>| received(rows).max().unwrap_or(0);
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
        let times = || self.times.iter();
        // Under some protocols a cell may receive before the source has sent the last word, but never
        // before the source begins.
        let after = |clock: u64, times: &Times| clock.saturating_sub(times.send_open);
        let mut block = Block::default();
        block
            .delta("stream_source", self.messages().map(|m| m.source.0.into()))
            .delta("stream_target", self.messages().map(|m| m.target.0.into()))
            .plain("stream_words", self.messages().map(|m| m.words()))
            .plain("stream_start", times().map(|times| times.send_open))
            .plain("stream_duration", times().map(move |times| after(times.received, times)))
            .plain("stream_sent", times().map(move |times| after(times.sent, times)))
            .plain("stream_received_from", times().map(move |t| after(t.receive_open, t)));
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
