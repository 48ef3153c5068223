//! The loaded order: list scheduling, in which the busiest cells come first.
//!
//! The load of a cell is the clocks of all messages that it still sends or receives. Whenever cells
//! become free, the most loaded of them first, each starts a message with the most loaded of the free
//! cells that it has one with. Both are busy until the message ends. So the cells that determine the
//! time of the exchange wait the least. A message whose links are in use comes after those that can
//! leave at once; at most [`LINK_TRIALS`] messages of a cell are looked at for this.
//!
//! Where cells send and receive at the same time, each has two *ports*, of which one sends and one
//! receives, each with its own load; otherwise its only port does both.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, LinkId, Lists};

use super::levels::Level;
use super::{MessageCosts, MessageRoute};

/// Messages of a cell of which the links are looked at.
const LINK_TRIALS: usize = 16;

/// The messages as pairs of step and number. The steps are such that no port has two messages in one.
pub(super) fn arrange(
    level: &Level,
    cells: &[CellId],
    costs: &MessageCosts,
    route: &mut MessageRoute<'_>,
) -> Vec<(u32, u32)> {
    let mut plan = LoadedPlan::new(level, cells, *costs);
    plan.run(route);
    let mut arranged = plan.started;
    arranged.sort_by_key(|&(step, _)| step);
    arranged
}

struct LoadedPlan<'a> {
    level: &'a Level,
    cells: &'a [CellId],
    costs: MessageCosts,
    /// Per port, its messages that have not started, by the port at the other end.
    waiting: Vec<Vec<(u32, u32)>>,
    /// Per message, whether it has started.
    sent: Vec<bool>,
    /// Per port, the clocks that it still has to do.
    load: Vec<u64>,
    /// Ports that are free and have something to do, the most loaded first.
    free: BTreeSet<(Reverse<u64>, u32)>,
    /// When busy ports become free.
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    /// Per link, when it is free.
    links: Vec<u64>,
    /// Per port, the number of steps with its messages.
    steps: Vec<u32>,
    /// Steps and messages in the order of their starts.
    started: Vec<(u32, u32)>,
}

impl<'a> LoadedPlan<'a> {
    fn new(level: &'a Level, cells: &'a [CellId], costs: MessageCosts) -> Self {
        let shared = costs.one_at_a_time();
        let ports = index(level.cells) * if shared { 1 } else { 2 };
        let mut plan = Self {
            level,
            cells,
            costs,
            waiting: Vec::new(),
            sent: vec![false; level.messages.len()],
            load: vec![0; ports],
            free: BTreeSet::new(),
            ends: BinaryHeap::new(),
            links: Vec::new(),
            steps: vec![0; ports],
            started: Vec::with_capacity(level.messages.len()),
        };
        let pairs = (0..to_u32(level.messages.len())).flat_map(|row| {
            let [out, into] = ports_of(level, shared, row);
            [(out, (into, row)), (into, (out, row))]
        });
        let lists = Lists::new(ports, pairs);
        for port in 0..to_u32(ports) {
            let mut waiting = lists.of(port).to_vec();
            waiting.sort_unstable();
            let clocks = waiting.iter().map(|&(_, row)| plan.clocks(row));
            plan.load[index(port)] = clocks.sum();
            plan.waiting.push(waiting);
        }
        for port in (0..to_u32(ports)).filter(|&port| plan.load[index(port)] > 0) {
            plan.free.insert((Reverse(plan.load[index(port)]), port));
        }
        plan
    }

    fn software(&self, row: u32) -> u64 {
        let [source, target] = self.ends(row);
        self.costs.software_of(source, target)
    }

    fn ends(&self, row: u32) -> [CellId; 2] {
        let message = self.level.messages[index(row)];
        [message.source, message.target].map(|number| self.cells[index(number)])
    }

    fn words(&self, row: u32) -> u64 {
        let [source, target] = self.ends(row);
        self.costs.words_of(source, target, self.level.messages[index(row)].words)
    }

    /// Clocks of a message, without waiting for links.
    fn clocks(&self, row: u32) -> u64 {
        self.software(row) + self.words(row)
    }

    fn run(&mut self, route: &mut MessageRoute<'_>) {
        let mut now = 0;
        let mut fresh: Vec<(Reverse<u64>, u32)> = self.free.iter().copied().collect();
        loop {
            for &entry in &fresh {
                if self.free.contains(&entry)
                    && let Some(row) = self.choose(entry.1, now, route)
                {
                    self.start(row, now, route);
                }
            }
            let Some(&Reverse((next, _))) = self.ends.peek() else { break };
            now = next;
            fresh.clear();
            while let Some(&Reverse((end, port))) = self.ends.peek()
                && end == now
            {
                self.ends.pop();
                if self.load[index(port)] > 0 {
                    fresh.push((Reverse(self.load[index(port)]), port));
                }
            }
            fresh.sort_unstable();
            self.free.extend(fresh.iter().copied());
        }
        debug_assert_eq!(self.started.len(), self.level.messages.len());
    }

    /// The message that a free port starts: with the most loaded free port, among those whose links
    /// are free if there are any.
    fn choose(&mut self, port: u32, now: u64, route: &mut MessageRoute<'_>) -> Option<u32> {
        let sent = &self.sent;
        self.waiting[index(port)].retain(|&(_, row)| !sent[index(row)]);
        let waiting = &self.waiting[index(port)];
        let candidates: Vec<u32> = if waiting.len() < self.free.len() {
            let is_free =
                |other: u32| self.free.contains(&(Reverse(self.load[index(other)]), other));
            let mut rows: Vec<(Reverse<u64>, u32, u32)> = waiting
                .iter()
                .filter(|&&(other, _)| is_free(other))
                .map(|&(other, row)| (Reverse(self.load[index(other)]), other, row))
                .collect();
            rows.sort_unstable();
            rows.into_iter().map(|(_, _, row)| row).take(LINK_TRIALS).collect()
        } else {
            let of = |&(_, other): &(Reverse<u64>, u32)| {
                let at = waiting.partition_point(|entry| entry.0 < other);
                waiting.get(at).filter(|entry| entry.0 == other).map(|entry| entry.1)
            };
            self.free.iter().filter_map(of).take(LINK_TRIALS).collect()
        };
        let mut links = Vec::new();
        let at_once = candidates.iter().copied().find(|&row| {
            self.way(row, route, &mut links);
            self.free_from(&links) <= now + self.software(row)
        });
        at_once.or_else(|| candidates.first().copied())
    }

    fn way(&self, row: u32, route: &mut MessageRoute<'_>, links: &mut Vec<LinkId>) {
        let message = self.level.messages[index(row)];
        links.clear();
        route(self.cells[index(message.source)], self.cells[index(message.target)], links);
    }

    fn free_from(&self, links: &[LinkId]) -> u64 {
        links.iter().filter_map(|link| self.links.get(link.index())).copied().max().unwrap_or(0)
    }

    fn start(&mut self, row: u32, now: u64, route: &mut MessageRoute<'_>) {
        let mut links = Vec::new();
        self.way(row, route, &mut links);
        let taken = self.free_from(&links).max(now + self.software(row));
        let end =
            taken + self.costs.link * conset_ir::convert::to_u64(links.len()) + self.words(row);
        for link in links {
            if self.links.len() <= link.index() {
                self.links.resize(link.index() + 1, 0);
            }
            self.links[link.index()] = end;
        }
        let clocks = self.clocks(row);
        let ports = ports_of(self.level, self.costs.one_at_a_time(), row);
        let step = ports.into_iter().map(|port| self.steps[index(port)]).max().unwrap_or(0);
        for port in ports {
            let load = &mut self.load[index(port)];
            self.free.remove(&(Reverse(*load), port));
            *load -= clocks;
            self.steps[index(port)] = step + 1;
            self.ends.push(Reverse((end, port)));
        }
        self.sent[index(row)] = true;
        self.started.push((step, row));
    }
}

/// The ports that send and receive a message.
fn ports_of(level: &Level, shared: bool, row: u32) -> [u32; 2] {
    let message = level.messages[index(row)];
    [message.source, message.target + if shared { 0 } else { level.cells }]
}
