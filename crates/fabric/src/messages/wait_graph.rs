//! The wait-for graph of messages: explains a deadlock by a cycle or chain of waits.
//!
//! Every blocked message waits for one other: its header for the message that holds the next
//! channel or, at its target, for the message that the receiver takes first; before its launch for
//! the message that its cell sends. A walk along these edges either reaches a message twice, which
//! is the cycle of a deadlock, or ends at a message that has arrived at a cell that does not receive
//! it. With faults of the hardware it may end at a link or cell that has stopped.

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionId, LinkId, Protocol};

use super::agents::{MessageAgent, ReceiverState, SenderState};
use super::engine::{Message, MessageEngine};
use crate::fault::{FaultKind, WaitCause, WaitEdge};
use crate::network::NONE;

impl MessageEngine {
    /// Explains why messages are unfinished after [`MessageEngine::run`] has returned
    /// [`crate::Stop::Idle`]: a chain that ends at a part that has stopped by a fault, if there is one, else a cycle of
    /// waits, else the chain from the first blocked message. `None` if all messages have been received.
    pub fn explain(&self) -> Option<FaultKind> {
        // The walk that visited each message.
        let mut visited = vec![NONE; self.worms.len()];
        let (mut chain, mut cycle, mut to_stopped) = (None, None, None);
        let all = (0..to_u32(self.worms.len())).filter(|&n| self.worms[index(n)].live);
        for start in all {
            let mut path: Vec<(u32, WaitEdge)> = Vec::new();
            let mut at = Some(start);
            while let Some(number) = at {
                if visited[index(number)] == start && cycle.is_none() {
                    let from = path.iter().position(|step| step.0 == number)?;
                    cycle = Some(self.deadlock(&path[from..], true));
                }
                if visited[index(number)] != NONE {
                    break;
                }
                visited[index(number)] = start;
                let Some((wait, next)) = self.wait_of(number) else { break };
                path.push((number, wait));
                at = next;
            }
            if path.last().is_some_and(|step| step.1.cause.is_stopped_part()) {
                to_stopped.get_or_insert_with(|| self.deadlock(&path, false));
            }
            chain.get_or_insert_with(|| self.deadlock(&path, false));
        }
        // A part that has stopped is the cause of all other waits.
        to_stopped.or(cycle).or(chain)
    }

    fn deadlock(&self, path: &[(u32, WaitEdge)], closed: bool) -> FaultKind {
        let waits = path.iter().map(|step| step.1).collect();
        FaultKind::Deadlock { waits, closed, unfinished: self.unfinished() }
    }

    /// What a message waits for that its source has not started to send under rendezvous: the
    /// message before it, or that its target is free. The target waits to start its own message.
    fn wait_for_rendezvous(&self, number: u32) -> Option<(WaitEdge, Option<u32>)> {
        let Message { source, target, label: message, .. } = self.worms[index(number)].message;
        let first = *self.agents[source.index()].pending.front()?;
        if first != number {
            let before = self.label(first);
            let cause = WaitCause::Launch { message, before };
            return Some((WaitEdge { cell: source, cause }, Some(first)));
        }
        let cause = WaitCause::Rendezvous { message };
        let (from, to) = (&self.agents[source.index()], &self.agents[target.index()]);
        let receives = |agent: &MessageAgent| {
            (agent.receiving != ReceiverState::Idle).then_some(agent.received)
        };
        let sends =
            |agent: &MessageAgent| (agent.sending != SenderState::Idle).then_some(agent.sent);
        // Both are idle, unless what they do is held up by a fault.
        let other_side = self.half_duplex.then(|| receives(from).or_else(|| sends(to))).flatten();
        let next = receives(to).or_else(|| sends(from)).or(other_side);
        let next = next.or_else(|| to.pending.front().copied());
        Some((WaitEdge { cell: target, cause }, next))
    }

    pub(super) fn label(&self, number: u32) -> ConnectionId {
        self.worms[index(number)].message.label
    }

    /// What a message waits for, and the message that it waits for.
    fn wait_of(&self, number: u32) -> Option<(WaitEdge, Option<u32>)> {
        if let Some(stopped) = self.base.injection.as_ref().and_then(|_| self.stopped_part(number))
        {
            return Some((stopped, None));
        }
        let worm = &self.worms[index(number)];
        let message = worm.message.label;
        let source = &self.agents[worm.message.source.index()];
        // Not by its number alone, which may be that of an earlier message of the source.
        if source.pending.contains(&number) {
            if self.protocol == Protocol::Rendezvous {
                return self.wait_for_rendezvous(number);
            }
            let cell = worm.message.source;
            // Only with faults: the processor receives until words come that are held up.
            if source.sending == SenderState::Idle {
                if source.receiving == ReceiverState::Idle {
                    return None;
                }
                let cause = WaitCause::Reception { message, before: self.label(source.received) };
                return Some((WaitEdge { cell, cause }, Some(source.received)));
            }
            let before = self.label(source.sent);
            return Some((
                WaitEdge { cell, cause: WaitCause::Launch { message, before } },
                Some(source.sent),
            ));
        }
        if worm.head == NONE {
            // It is being sent or received, so it is not blocked itself.
            return None;
        }
        let cell = conset_ir::CellId(self.cell_of(worm.head));
        if let Some(&row) = worm.route.get(worm.hops) {
            let holder = self.channels[index(row)].owner;
            if holder == NONE {
                return None;
            }
            let link = LinkId(row / self.router.pools);
            let pool = row % self.router.pools;
            let cause = WaitCause::Header { message, link, pool, holder: self.label(holder) };
            return Some((WaitEdge { cell, cause }, Some(holder)));
        }
        let agent = &self.agents[cell.index()];
        let first = self.base.network.head(agent.arrivals.head)?.stream();
        let before = match agent.receiving {
            ReceiverState::Idle if first == number => {
                return Some((WaitEdge { cell, cause: WaitCause::Unwanted { message } }, None));
            }
            ReceiverState::Idle => first,
            _ => agent.received,
        };
        let cause = WaitCause::Reception { message, before: self.label(before) };
        Some((WaitEdge { cell, cause }, Some(before)))
    }
}
