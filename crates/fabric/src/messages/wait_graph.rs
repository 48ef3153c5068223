//! The wait-for graph of messages: explains a deadlock by a cycle or chain of waits.
//!
//! Every blocked message waits for one other: its header for the message that holds the next
//! channel or, at its target, for the message that the receiver takes first; before its launch for
//! the message that its cell sends. A walk along these edges either reaches a message twice, which
//! is the cycle of a deadlock, or ends at a message that has arrived at a cell that does not receive
//! it.

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionId, LinkId, Protocol};

use super::agents::ReceiverState;
use super::engine::{Message, MessageEngine};
use crate::fault::{FaultKind, WaitCause, WaitEdge};
use crate::network::NONE;

impl MessageEngine {
    /// Explains why messages are unfinished after [`MessageEngine::run`] has returned
    /// [`crate::Stop::Idle`]: a cycle of waits if there is one, else the chain from the first blocked
    /// message. `None` if all messages have been received.
    pub fn explain(&self) -> Option<FaultKind> {
        // The walk that visited each message.
        let mut visited = vec![NONE; self.worms.len()];
        let mut first_chain = None;
        let all = (0..to_u32(self.worms.len())).filter(|&n| self.worms[index(n)].live);
        for start in all {
            let mut path: Vec<(u32, WaitEdge)> = Vec::new();
            let mut at = Some(start);
            while let Some(number) = at {
                if visited[index(number)] == start {
                    let from = path.iter().position(|step| step.0 == number)?;
                    return Some(self.deadlock(&path[from..], true));
                }
                if visited[index(number)] != NONE {
                    break;
                }
                visited[index(number)] = start;
                let Some((wait, next)) = self.wait_of(number) else { break };
                path.push((number, wait));
                at = next;
            }
            first_chain.get_or_insert(path);
        }
        Some(self.deadlock(&first_chain?, false))
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
        let next = self.agents[target.index()].pending.front().copied();
        Some((WaitEdge { cell: target, cause }, next))
    }

    fn label(&self, number: u32) -> ConnectionId {
        self.worms[index(number)].message.label
    }

    /// What a message waits for, and the message that it waits for.
    fn wait_of(&self, number: u32) -> Option<(WaitEdge, Option<u32>)> {
        let worm = &self.worms[index(number)];
        let message = worm.message.label;
        let source = &self.agents[worm.message.source.index()];
        if self.protocol == Protocol::Rendezvous && source.pending.contains(&number) {
            return self.wait_for_rendezvous(number);
        }
        if worm.head == NONE && source.sent != number {
            let cell = worm.message.source;
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
