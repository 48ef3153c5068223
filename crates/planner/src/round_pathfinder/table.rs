//! The rounds in which each link and each port is busy, as bit sets.
//!
//! There is a row of bits for each edge and each port. A pass fills the table connection by
//! connection. The search handles 64 rounds, one word, at a time.

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32};
use conset_ir::{Connection, ConnectionSet, Machine, StreamClocks};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::precedence::PrecedenceGraph;
use super::routes::{Hop, Routes};
use crate::problem::{capacities, ports};
use conset_partition_route::network::Network;

/// The maximum number of words of the bit sets.
const TABLE_MEMORY_LIMIT: usize = 1 << 24;
/// Word counts that differ by at most this share (a divisor) are treated as equal.
const EVEN: u32 = 64;

/// The rounds under construction, and the state that one pass leaves to the next.
pub(super) struct RoundTable<'a> {
    network: &'a Network,
    pub(super) words: Vec<u32>,
    ports: Vec<[u32; 2]>,
    link_capacity: Vec<u16>,
    /// Clocks of each connection as a stream.
    clocks: Vec<u64>,
    /// Words of bits in a row of `busy`.
    width: usize,
    /// By edge, then by port: the rounds in which it is busy.
    busy: Vec<u64>,
    /// By edge and round: connections over it; only where an edge has room for several.
    used: Vec<u16>,
    /// Connections over each edge in this pass.
    carried: Vec<u32>,
    /// A random addition to `carried`, so that passes differ.
    pub(super) jitter: Vec<u8>,
    pub(super) round_of: Vec<u32>,
    /// Edges of each connection's route, [`Routes::start`].
    pub(super) taken: Vec<u32>,
    /// The routes of the previous pass, and the connections that keep them if possible.
    pub(super) previous_route: Vec<u32>,
    pub(super) frozen: Vec<bool>,
    /// Clocks of the longest connection of each round, and the connections in it.
    longest: Vec<u64>,
    count: Vec<u32>,
    // Scratch.
    reach: Vec<u64>,
}

impl<'a> RoundTable<'a> {
    pub(super) fn new(
        machine: &Machine,
        set: &ConnectionSet,
        network: &'a Network,
    ) -> Option<Self> {
        let parameters = machine.parameters();
        let ports = ports(machine, set);
        let mut load = vec![0u32; 2 * network.cell_count()];
        for port in ports.iter().flatten() {
            load[index(*port)] += 1;
        }
        let clocks = |c: &Connection| StreamClocks::new(parameters, c).of(c.words);
        let mut this = Self {
            network,
            words: set.connections().iter().map(|c| c.words).collect(),
            ports,
            link_capacity: capacities(machine, network),
            clocks: set.connections().iter().map(clocks).collect(),
            width: 0,
            busy: Vec::new(),
            used: Vec::new(),
            carried: vec![0; network.outgoing().edge_count()],
            jitter: vec![0; network.outgoing().edge_count()],
            round_of: vec![0; set.len()],
            taken: Vec::new(),
            previous_route: Vec::new(),
            frozen: Vec::new(),
            longest: Vec::new(),
            count: Vec::new(),
            reach: Vec::new(),
        };
        let rounds = index(load.into_iter().max().unwrap_or(0));
        this.widen(2 * rounds + 2).then_some(this)
    }

    /// Makes room for so many rounds at least, all of them empty; whether there is.
    fn widen(&mut self, rounds: usize) -> bool {
        self.width = rounds.div_ceil(64);
        let rows = self.link_capacity.len() + 2 * self.network.cell_count();
        let several = self.link_capacity.iter().any(|&link_capacity| link_capacity > 1);
        if (rows * self.width).saturating_mul(if several { 16 } else { 1 }) > TABLE_MEMORY_LIMIT {
            return false;
        }
        self.busy = vec![0; rows * self.width];
        self.used = vec![0; if several { self.link_capacity.len() * self.width * 64 } else { 0 }];
        self.longest = vec![0; self.width * 64];
        self.count = vec![0; self.width * 64];
        true
    }

    /// Rips everything up and routes it anew; the steps that took. `None` where there are too many
    /// rounds.
    pub(super) fn pass(
        &mut self,
        routes: &Routes,
        precedence: &PrecedenceGraph,
        sequence: &[u32],
    ) -> Option<usize> {
        self.taken.resize(index(*routes.kept.last().expect("an end")), 0);
        'again: loop {
            self.busy.fill(0);
            self.used.fill(0);
            self.longest.fill(0);
            self.count.fill(0);
            self.carried.fill(0);
            let (mut rounds, mut steps) = (0, 0);
            for &x in sequence {
                let x = index(x);
                let after = precedence.of(x).iter().map(|&b| self.round_of[index(b)] + 1).max();
                let Some(round) = self.choose(routes, x, after.unwrap_or(0), rounds) else {
                    if !self.widen(2 * 64 * self.width) {
                        return None;
                    }
                    continue 'again;
                };
                rounds = rounds.max(index(round) + 1);
                steps += (routes.of(x).len() + 3) * (rounds / 64 + 1);
                self.put(routes, x, round);
            }
            return Some(steps);
        }
    }

    /// The cheapest round of those in which a route is free; `None` if there is none.
    fn choose(&mut self, routes: &Routes, x: usize, after: u32, rounds: usize) -> Option<u32> {
        // One word more than in use has an empty round.
        let width = (rounds.max(index(after)) / 64 + 1).min(self.width);
        let cells = usize::from(routes.cells[x]);
        let edges = self.link_capacity.len();
        self.reach.clear();
        self.reach.resize(cells * width, 0);
        let [a, b] = self.ports[x].map(|port| (edges + index(port)) * self.width);
        for word in 0..width {
            let begun = match index(after).checked_sub(64 * word) {
                Some(skip) if skip >= 64 => 0,
                Some(skip) => u64::MAX << skip,
                None => u64::MAX,
            };
            self.reach[word] = !(self.busy[a + word] | self.busy[b + word]) & begun;
        }
        for hop in routes.of(x) {
            let (from, to) = (usize::from(hop.from) * width, usize::from(hop.to) * width);
            let busy = &self.busy[index(hop.edge) * self.width..][..width];
            let (source, target) = self.reach.split_at_mut(to);
            for word in 0..width {
                target[word] |= source[from + word] & !busy[word];
            }
        }
        let clocks = self.clocks[x];
        let mut best: Option<(u64, u32)> = None;
        for word in 0..width {
            let mut bits = self.reach[(cells - 1) * width + word];
            let first = 64 * to_u32(word);
            while bits != 0 {
                let round = first + bits.trailing_zeros();
                bits &= bits - 1;
                let longer = clocks.saturating_sub(self.longest[index(round)]);
                if best.is_none_or(|best| longer < best.0) {
                    best = Some((longer, round));
                }
                if longer == 0 || index(round) >= rounds {
                    return best.map(|best| best.1);
                }
            }
        }
        best.map(|best| best.1)
    }

    /// Puts a connection into a round in which it was found to have a route: from the target back
    /// over the edges that have carried least.
    fn put(&mut self, routes: &Routes, x: usize, round: u32) {
        let cells = usize::from(routes.cells[x]);
        let width = self.reach.len() / cells;
        let (word, bit) = (index(round) / 64, 1u64 << (round % 64));
        let frozen = self.frozen.get(x).is_some_and(|&frozen| frozen);
        let old: &[u32] =
            if frozen { &self.previous_route[routes.start(x)..routes.start(x + 1)] } else { &[] };
        let mut at = routes.cells[x] - 1;
        let mut place = routes.start(x) + index(routes.hops[x]);
        let mut best: Option<Hop> = None;
        // The hops to one distance stand together: their cells come after those they are from.
        let mut nearer = u16::MAX;
        for hop in routes.of(x).iter().rev() {
            if hop.to <= nearer {
                if let Some(hop) = best.take() {
                    at = hop.from;
                    place -= 1;
                    self.taken[place] = hop.edge;
                }
                nearer = hop.from;
            }
            let free = self.busy[index(hop.edge) * self.width + word] & bit == 0
                && self.reach[usize::from(hop.from) * width + word] & bit != 0;
            let less = |best: &Hop| self.price(old, hop.edge) < self.price(old, best.edge);
            if hop.to == at && free && best.as_ref().is_none_or(less) {
                best = Some(*hop);
            }
        }
        if let Some(hop) = best {
            place -= 1;
            self.taken[place] = hop.edge;
        }
        debug_assert_eq!(place, routes.start(x), "a route was found");
        for row in place..routes.start(x) + index(routes.hops[x]) {
            let edge = index(self.taken[row]);
            self.carried[edge] += 1;
            let full = self.link_capacity[edge] <= 1 || {
                let used = &mut self.used[edge * self.width * 64 + index(round)];
                *used += 1;
                *used >= self.link_capacity[edge]
            };
            if full {
                self.busy[edge * self.width + word] |= bit;
            }
        }
        for port in self.ports[x] {
            self.busy[(self.link_capacity.len() + index(port)) * self.width + word] |= bit;
        }
        self.round_of[x] = round;
        self.longest[index(round)] = self.longest[index(round)].max(self.clocks[x]);
        self.count[index(round)] += 1;
    }

    /// What counts among routes that are free.
    fn price(&self, old: &[u32], edge: u32) -> u32 {
        if old.contains(&edge) {
            return 0;
        }
        1 + self.carried[index(edge)] + u32::from(self.jitter[index(edge)])
    }

    /// What the rounds last, and of equal ones what comes late in them.
    pub(super) fn value(&self) -> (u64, u64) {
        // A round that nobody is in lasts no time.
        (self.longest.iter().sum(), self.round_of.iter().map(|&round| u64::from(round)).sum())
    }

    /// Counts the rounds afresh.
    pub(super) fn measure(&mut self) {
        self.longest.fill(0);
        self.count.fill(0);
        for (x, &round) in self.round_of.iter().enumerate() {
            let longest = &mut self.longest[index(round)];
            *longest = self.clocks[x].max(*longest);
            self.count[index(round)] += 1;
        }
    }

    /// Who comes when in the next pass.
    pub(super) fn next_sequence(
        &self,
        pass: u32,
        precedence: &PrecedenceGraph,
        history_cost: &mut [u32],
        rng: &mut ChaCha8Rng,
    ) -> Vec<u32> {
        let used: Vec<usize> = (0..self.count.len()).filter(|&r| self.count[r] > 0).collect();
        let rounds = used.len();
        for (late, &round) in history_cost.iter_mut().zip(&self.round_of) {
            // The last of the rounds are the ones to be got rid of.
            let last = index(round) >= rounds - rounds.div_ceil(16);
            *late = *late - *late / 8 + if last { 8 } else { 0 };
        }
        let mut order = used;
        match pass % 4 {
            0 => order.reverse(),
            1 => order.sort_by_key(|&r| (Reverse(self.longest[r]), Reverse(self.count[r]))),
            2 => order.sort_by_key(|&r| (Reverse(self.longest[r]), self.count[r])),
            _ => order.shuffle(rng),
        }
        let mut rank = vec![0u32; self.count.len()];
        for (row, &round) in order.iter().enumerate() {
            rank[round] = to_u32(row);
        }
        let (least, most) = (self.words.iter().min(), self.words.iter().max());
        let even = least.zip(most).is_some_and(|(least, most)| most - least <= most / EVEN);
        let key = |x: usize| {
            let late = history_cost[x];
            let rank = rank[index(self.round_of[x])];
            if precedence.any {
                let round = u64::from(self.round_of[x]);
                let first = rng.random_range(0..1 << 16);
                return (round, if self.frozen[x] { 1 << 16 } else { first });
            }
            if even {
                let bonus = if pass % 8 == 7 { late * to_u32(rounds) / 64 } else { 0 };
                return (u64::from(rank.saturating_sub(bonus)), u32::MAX - late);
            }
            // About as long first, with some noise, those that were late a little earlier.
            let words = u64::from(self.words[x]);
            let noise = rng.random_range(0..=words / 8 + 1);
            let words = words + noise + words / 64 * u64::from(late.min(32));
            (u64::MAX - words, rank)
        };
        precedence.sorted(&(0..self.words.len()).map(key).collect::<Vec<_>>())
    }
}
