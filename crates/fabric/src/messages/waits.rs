//! Who waits for whom, when no message moves any more.
//!
//! A message that is stuck waits for one other: its header for the message that holds the channel
//! it needs, or, at its target, for the message that the receiver has before it; before its launch
//! for the one that its cell is sending. Following the waits leads round in a circle, which is a
//! deadlock, or to a message that has arrived where nobody asks for it.

use conset_ir::{ConnectionId, LinkId};

use super::agents::Receiving;
use super::engine::MessageEngine;
use crate::fault::{FaultKind, Wait, Waiting};
use crate::network::NONE;

impl MessageEngine {
    /// Why messages are unfinished although nothing is under way: a circle of waits if there is
    /// one, else the chain from the first stuck message on. `None` if all are finished. To be
    /// asked when [`MessageEngine::run`] said [`crate::Stop::Idle`].
    pub fn explain(&self) -> Option<FaultKind> {
        // The walk that came by each message.
        let mut seen = vec![NONE; self.worms.len()];
        let mut first_chain = None;
        let all = (0..self.worms.len() as u32).filter(|&n| self.worms[n as usize].live);
        for start in all {
            let mut path: Vec<(u32, Wait)> = Vec::new();
            let mut at = Some(start);
            while let Some(number) = at {
                if seen[number as usize] == start {
                    let from = path.iter().position(|step| step.0 == number)?;
                    return Some(self.deadlock(&path[from..], true));
                }
                if seen[number as usize] != NONE {
                    break;
                }
                seen[number as usize] = start;
                let Some((wait, next)) = self.wait_of(number) else { break };
                path.push((number, wait));
                at = next;
            }
            first_chain.get_or_insert(path);
        }
        Some(self.deadlock(&first_chain?, false))
    }

    fn deadlock(&self, path: &[(u32, Wait)], closed: bool) -> FaultKind {
        let waits = path.iter().map(|step| step.1).collect();
        FaultKind::Deadlock { waits, closed, unfinished: self.unfinished() }
    }

    fn label(&self, number: u32) -> ConnectionId {
        self.worms[number as usize].message.label
    }

    /// What a message waits for, and the message behind that.
    fn wait_of(&self, number: u32) -> Option<(Wait, Option<u32>)> {
        let worm = &self.worms[number as usize];
        let message = worm.message.label;
        let source = &self.agents[worm.message.source.index()];
        if worm.head == NONE && source.sent != number {
            let cell = worm.message.source;
            let before = self.label(source.sent);
            return Some((
                Wait { cell, waiting: Waiting::Launch { message, before } },
                Some(source.sent),
            ));
        }
        if worm.head == NONE {
            // It is being sent or received, so it is not stuck itself.
            return None;
        }
        let cell = conset_ir::CellId(self.cell_of(worm.head));
        if let Some(&row) = worm.route.get(worm.hops) {
            let holder = self.slots[row as usize].owner;
            let link = LinkId(row / self.router.pools);
            let pool = row % self.router.pools;
            let waiting = Waiting::Header { message, link, pool, holder: self.label(holder) };
            return Some((Wait { cell, waiting }, Some(holder)));
        }
        let agent = &self.agents[cell.index()];
        let first = self.base.network.head(agent.arrivals.head)?.stream();
        let before = match agent.receiving {
            Receiving::Nothing if first == number => {
                return Some((Wait { cell, waiting: Waiting::Unwanted { message } }, None));
            }
            Receiving::Nothing => first,
            _ => agent.received,
        };
        let waiting = Waiting::Reception { message, before: self.label(before) };
        Some((Wait { cell, waiting }, Some(before)))
    }
}
