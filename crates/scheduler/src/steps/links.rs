//! Links that messages hold exclusively, and the messages that wait for them.
//!
//! A message takes all links of its route at once. If one is in use, the message waits for it, and
//! tries again when it is given back. Messages that wait for the same link try in the order in which
//! they came.

use std::collections::VecDeque;

use conset_ir::{CellId, LinkId};

use super::MessageRoute;

/// The state of all links of a machine.
pub(super) struct LinkQueues {
    in_use: Vec<bool>,
    /// Per link, the messages that wait for it; links that nobody waits for have no row.
    waiting: Vec<VecDeque<u32>>,
    /// The links that a message holds; links of messages that have ended are reused.
    held: std::collections::BTreeMap<u32, Vec<LinkId>>,
    spare: Vec<Vec<LinkId>>,
}

impl LinkQueues {
    pub(super) fn new(links: usize) -> Self {
        Self {
            in_use: vec![false; links],
            waiting: vec![VecDeque::new(); links],
            held: std::collections::BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// Takes all links of a message; returns their number, or `None` if it has to wait.
    pub(super) fn take(
        &mut self,
        message: u32,
        source: CellId,
        target: CellId,
        route: &mut MessageRoute<'_>,
    ) -> Option<usize> {
        let mut links = self.spare.pop().unwrap_or_default();
        links.clear();
        route(source, target, &mut links);
        if let Some(busy) = links.iter().find(|link| self.in_use[link.index()]) {
            self.waiting[busy.index()].push_back(message);
            self.spare.push(links);
            return None;
        }
        links.iter().for_each(|link| self.in_use[link.index()] = true);
        let hops = links.len();
        self.held.insert(message, links);
        Some(hops)
    }

    /// Gives back the links of a message, and adds those messages to `retry` that waited for one.
    pub(super) fn release(&mut self, message: u32, retry: &mut Vec<u32>) {
        let Some(links) = self.held.remove(&message) else { return };
        for link in &links {
            self.in_use[link.index()] = false;
            retry.extend(self.waiting[link.index()].drain(..));
        }
        self.spare.push(links);
    }
}
