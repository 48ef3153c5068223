//! Rounds, phases and routes chosen together, by negotiation.
//!
//! Connections of a round share no agent, and no link beyond what it carries at full rate; a
//! round lasts as long as its longest connection. In a pass every connection is ripped up and
//! takes, one after the other, the cheapest round in which *any* of its shortest routes is free:
//! the first that is long enough already, else the one that it makes longer by least. What is free
//! is known for 64 rounds at a time, as bits of a word, so the search for a route over a cell's
//! links is one for all rounds. Among routes it takes links that have carried least so far.
//!
//! Who comes first decides (PathFinder's lesson), so passes negotiate:
//!
//! * the first pass goes by length, long connections and far ones first;
//! * later ones take the rounds of the pass before as they were, in a new order: the last first,
//!   the fullest first, or any; with equal words that hardly ever costs a round and often saves
//!   one. Connections that came late before come earlier: their *lateness* is remembered;
//! * in some passes most connections keep their route where it is free;
//! * with ordering constraints a connection's round comes after those of all that are before it;
//!   first those come first that have most to come after them, then those that came early in the
//!   best pass so far.
//!
//! The best pass is kept. It ends when the bound is reached, when no pass was better for some
//! time, or when the work was as much as allowed. Works with every topology, with parallel links,
//! dead cells and links, half duplex agents and order. Bandwidths and latencies that are asked for
//! are about what shares links in a phase and not in a round: shortest routes are as good as any
//! for them, and the packing of rounds minds the rest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::{CellId, ConnectionSet, Duplex, Machine};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::paths::Paths;
use crate::network::{Distances, Network, UNREACHABLE};

/// Rounds that a negotiation ended with.
pub(super) struct Found {
    pub(super) rounds: u32,
    pub(super) round_of: Vec<u32>,
    pub(super) paths: Paths,
}

/// What the best pass came to: [`Table::value`], rounds, edges of routes.
struct Kept {
    value: (u64, u64),
    round_of: Vec<u32>,
    taken: Vec<u32>,
}

/// Hops on shortest routes that are held for all connections together.
const HOPS: usize = 1 << 24;
/// Cells at one distance that a search looks at.
const WIDTH: usize = 16;
/// Words of bits that are held.
const HELD: usize = 1 << 24;
/// Passes without success after which a negotiation ends.
const PATIENCE: u32 = 400;
/// Of so many connections all but one take their old route where it is free.
const KEPT: u32 = 8;
const KEPT_ORDERED: u32 = 64;
/// Passes in which all take any route, then as many in which most keep theirs, and so on.
const TURN: u32 = 32;
/// Words that differ by no more than this share of them count as equal.
const EVEN: u32 = 64;
/// Passes at most.
const PASSES: u32 = 1 << 12;

/// A hop that a shortest route may take, between cells numbered from the source on.
#[derive(Clone, Copy)]
pub(super) struct Hop {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) edge: u32,
}

/// The sides of its agents that each connection keeps busy; with half duplex an agent has one.
pub(super) fn sides(machine: &Machine, set: &ConnectionSet) -> Vec<[u32; 2]> {
    let full = machine.parameters().duplex == Duplex::Full;
    let of = |c: &conset_ir::Connection| match full {
        true => [2 * c.source.0, 2 * c.target.0 + 1],
        false => [2 * c.source.0, 2 * c.target.0],
    };
    set.connections().iter().map(of).collect()
}

/// Streams that the links of each edge carry at full rate, all together.
pub(super) fn room(machine: &Machine, network: &Network) -> Vec<u16> {
    let parameters = machine.parameters();
    let share = (parameters.access_clocks_per_word / parameters.link_clocks_per_word.max(1)).max(1);
    let mut room = vec![0; network.next.edge_count()];
    for cell in machine.cells() {
        for edge in network.next.edges(cell.0) {
            let links = machine.links_between(cell, CellId(network.next.far_end(edge))).count();
            room[edge] = (links as u64 * u64::from(share)).min(1 << 12) as u16;
        }
    }
    room
}

/// Negotiates until the rounds last no more than `bound`, or for about so many steps; `None`
/// where the set is empty or too large, or a connection has no way.
pub(super) fn negotiate(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    bound: u64,
    steps: usize,
    seed: u64,
) -> Option<Found> {
    if set.is_empty() {
        return None;
    }
    let routes = Routes::new(network, set)?;
    let before = Before::new(set);
    let mut table = Table::new(machine, set, network)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut lateness = vec![0u32; set.len()];
    let mut sequence = first_sequence(&table, &routes, &before);
    let mut best: Option<Kept> = None;
    let (mut idle, mut spent) = (0, 0usize);
    for pass in 0..PASSES {
        spent = spent.saturating_add(table.pass(&routes, &before, &sequence)?);
        let value = table.value();
        let better = best.as_ref().is_none_or(|best| value < best.value);
        // Ordered sets go on from the best only, so that they wander among equals.
        if better || (before.any && best.as_ref().is_some_and(|best| value == best.value)) {
            let (round_of, taken) = (table.round_of.clone(), table.taken.clone());
            best = Some(Kept { value, round_of, taken });
        }
        idle = if better { 0 } else { idle };
        idle += 1;
        let reached = best.as_ref().is_some_and(|best| best.value.0 <= bound);
        if reached || idle > PATIENCE || spent > steps {
            break;
        }
        if idle % 16 == 0 || before.any {
            // Back to the best, and on from there another way.
            let best = best.as_ref().expect("a pass was made");
            table.round_of.clone_from(&best.round_of);
            table.guide.clone_from(&best.taken);
            table.measure();
        } else {
            table.guide.clone_from(&table.taken);
        }
        table.kept.clear();
        let most = match pass / TURN % 2 {
            _ if before.any => KEPT_ORDERED,
            0 => 1,
            _ => KEPT,
        };
        table.kept.extend((0..set.len()).map(|_| rng.random_range(0..most) > 0));
        let spread = [1, 1, 2, 4][pass as usize % 4];
        table.taste.iter_mut().for_each(|taste| *taste = rng.random_range(0..spread));
        sequence = table.next_sequence(pass, &before, &mut lateness, &mut rng);
    }
    let Kept { round_of, taken, .. } = best?;
    let mut paths = Paths::with_capacity(set.len());
    for (x, c) in set.connections().iter().enumerate() {
        let edges = &taken[routes.start(x)..routes.start(x + 1)];
        let far = edges.iter().map(|&edge| network.next.far_end(edge as usize));
        paths.push(std::iter::once(c.source.0).chain(far));
    }
    let rounds = round_of.iter().max().map_or(0, |&last| last + 1);
    Some(Found { rounds, round_of, paths })
}

/// The shortest routes of each connection, as hops in the order of their distance.
pub(super) struct Routes {
    first: Vec<u32>,
    list: Vec<Hop>,
    /// Cells on shortest routes; the last is the target.
    cells: Vec<u16>,
    hops: Vec<u32>,
    /// Where the edges of each connection's route are kept.
    kept: Vec<u32>,
}

impl Routes {
    pub(super) fn new(network: &Network, set: &ConnectionSet) -> Option<Self> {
        let targets = set.connections().iter().map(|c| c.target.0);
        let mut distances = Distances::new(network, targets);
        let mut this = Self {
            first: vec![0],
            list: Vec::new(),
            cells: Vec::with_capacity(set.len()),
            hops: Vec::with_capacity(set.len()),
            kept: vec![0],
        };
        let (mut layer, mut next): (Vec<u32>, Vec<u32>) = Default::default();
        for c in set.connections() {
            let hops = distances.aim(network, c.source.0, c.target.0);
            if hops == UNREACHABLE {
                return None;
            }
            layer.clear();
            layer.push(c.source.0);
            let mut base = 0usize;
            for left in (0..hops).rev() {
                next.clear();
                let end = base + layer.len();
                for (row, &cell) in layer.iter().enumerate() {
                    for edge in network.next.edges(cell) {
                        let to = network.next.far_end(edge);
                        if distances.to_target(to) != left {
                            continue;
                        }
                        let place = match next.iter().position(|&cell| cell == to) {
                            Some(place) => place,
                            None if next.len() == WIDTH => continue,
                            None => {
                                next.push(to);
                                next.len() - 1
                            }
                        };
                        let from = u16::try_from(base + row).ok()?;
                        let to = u16::try_from(end + place).ok()?;
                        this.list.push(Hop { from, to, edge: edge as u32 });
                    }
                }
                base = end;
                std::mem::swap(&mut layer, &mut next);
            }
            if this.list.len() > HOPS {
                return None;
            }
            this.first.push(this.list.len() as u32);
            this.cells.push(u16::try_from(base + 1).ok()?);
            this.hops.push(hops);
            this.kept.push(this.kept[this.kept.len() - 1] + hops);
        }
        Some(this)
    }

    pub(super) fn of(&self, x: usize) -> &[Hop] {
        &self.list[self.first[x] as usize..self.first[x + 1] as usize]
    }

    /// Cells on a connection's routes, as hops number them.
    pub(super) fn cells(&self, x: usize) -> usize {
        usize::from(self.cells[x])
    }

    /// Hops of a connection's routes.
    pub(super) fn hops(&self, x: usize) -> u32 {
        self.hops[x]
    }

    fn start(&self, x: usize) -> usize {
        self.kept[x] as usize
    }
}

/// What must be finished before each connection, and how much comes after it.
struct Before {
    first: Vec<u32>,
    ids: Vec<u32>,
    /// Words of the longest chain from each connection on, itself included.
    tail: Vec<u64>,
    any: bool,
}

impl Before {
    fn new(set: &ConnectionSet) -> Self {
        let count = set.len();
        let mut first = vec![0u32; count + 1];
        for &(_, after) in set.order() {
            first[after.index() + 1] += 1;
        }
        for row in 0..count {
            first[row + 1] += first[row];
        }
        let mut next = first.clone();
        let mut ids = vec![0; set.order().len()];
        let mut waiting = vec![0u32; count];
        for &(before, after) in set.order() {
            ids[next[after.index()] as usize] = before.0;
            next[after.index()] += 1;
            waiting[before.index()] += 1;
        }
        let words = |x: usize| u64::from(set.connections()[x].words);
        let mut this = Self { first, ids, tail: (0..count).map(words).collect(), any: false };
        this.any = !set.order().is_empty();
        // From the ends of the chains to their beginnings.
        let mut ready: Vec<u32> = (0..count as u32).filter(|&x| waiting[x as usize] == 0).collect();
        while let Some(x) = ready.pop() {
            for row in this.first[x as usize]..this.first[x as usize + 1] {
                let before = this.ids[row as usize] as usize;
                let tail = words(before) + this.tail[x as usize];
                this.tail[before] = this.tail[before].max(tail);
                waiting[before] -= 1;
                if waiting[before] == 0 {
                    ready.push(before as u32);
                }
            }
        }
        this
    }

    fn of(&self, x: usize) -> &[u32] {
        &self.ids[self.first[x] as usize..self.first[x + 1] as usize]
    }

    /// Connections such that each comes after all that are before it, of those that could come
    /// next the one with the least key first.
    fn sorted(&self, key: &[(u64, u32)]) -> Vec<u32> {
        let count = key.len();
        if !self.any {
            let mut sequence: Vec<u32> = (0..count as u32).collect();
            sequence.sort_unstable_by_key(|&x| (key[x as usize], x));
            return sequence;
        }
        let mut waits = vec![0u32; count];
        let mut after: Vec<(u32, u32)> = Vec::with_capacity(self.ids.len());
        for (x, waits) in waits.iter_mut().enumerate() {
            *waits = self.of(x).len() as u32;
            after.extend(self.of(x).iter().map(|&before| (before, x as u32)));
        }
        after.sort_unstable();
        let mut heap: BinaryHeap<Reverse<((u64, u32), u32)>> =
            (0..count).filter(|&x| waits[x] == 0).map(|x| Reverse((key[x], x as u32))).collect();
        let mut sequence = Vec::with_capacity(count);
        while let Some(Reverse((_, x))) = heap.pop() {
            sequence.push(x);
            let from = after.partition_point(|pair| pair.0 < x);
            for &(_, next) in after[from..].iter().take_while(|pair| pair.0 == x) {
                waits[next as usize] -= 1;
                if waits[next as usize] == 0 {
                    heap.push(Reverse((key[next as usize], next)));
                }
            }
        }
        sequence
    }
}

/// Long connections first, then far ones; with an order those with most to come.
fn first_sequence(table: &Table<'_>, routes: &Routes, before: &Before) -> Vec<u32> {
    let key = |x: usize| {
        let words = if before.any { before.tail[x] } else { u64::from(table.words[x]) };
        (u64::MAX - words, u32::MAX - routes.hops[x])
    };
    before.sorted(&(0..table.words.len()).map(key).collect::<Vec<_>>())
}

/// Who is where.
struct Table<'a> {
    network: &'a Network,
    words: Vec<u32>,
    sides: Vec<[u32; 2]>,
    room: Vec<u16>,
    word_clocks: u64,
    setup: u64,
    /// Words of bits in a row of `busy`.
    width: usize,
    /// By edge, then by side: the rounds in which it is busy.
    busy: Vec<u64>,
    /// By edge and round: connections over it; only where an edge has room for several.
    used: Vec<u16>,
    /// Connections over each edge in this pass.
    carried: Vec<u32>,
    /// What is added to that in this pass, so that passes differ.
    taste: Vec<u8>,
    round_of: Vec<u32>,
    /// Edges of each connection's route, [`Routes::start`].
    taken: Vec<u32>,
    /// The same of the pass before, and who takes its old route where it can.
    guide: Vec<u32>,
    kept: Vec<bool>,
    /// The longest connection of each round, and the connections in it.
    longest: Vec<u32>,
    count: Vec<u32>,
    // Scratch.
    reach: Vec<u64>,
}

impl<'a> Table<'a> {
    fn new(machine: &Machine, set: &ConnectionSet, network: &'a Network) -> Option<Self> {
        let parameters = machine.parameters();
        let sides = sides(machine, set);
        let mut load = vec![0u32; 2 * network.cells];
        for side in sides.iter().flatten() {
            load[*side as usize] += 1;
        }
        let word = parameters.access_clocks_per_word.max(parameters.link_clocks_per_word);
        let mut this = Self {
            network,
            words: set.connections().iter().map(|c| c.words).collect(),
            sides,
            room: room(machine, network),
            word_clocks: u64::from(word),
            setup: u64::from(parameters.stream_setup),
            width: 0,
            busy: Vec::new(),
            used: Vec::new(),
            carried: vec![0; network.next.edge_count()],
            taste: vec![0; network.next.edge_count()],
            round_of: vec![0; set.len()],
            taken: Vec::new(),
            guide: Vec::new(),
            kept: Vec::new(),
            longest: Vec::new(),
            count: Vec::new(),
            reach: Vec::new(),
        };
        let rounds = load.into_iter().max().unwrap_or(0) as usize;
        this.widen(2 * rounds + 2).then_some(this)
    }

    /// Makes room for so many rounds at least, all of them empty; whether there is.
    fn widen(&mut self, rounds: usize) -> bool {
        self.width = rounds.div_ceil(64);
        let rows = self.room.len() + 2 * self.network.cells;
        let several = self.room.iter().any(|&room| room > 1);
        if (rows * self.width).saturating_mul(if several { 16 } else { 1 }) > HELD {
            return false;
        }
        self.busy = vec![0; rows * self.width];
        self.used = vec![0; if several { self.room.len() * self.width * 64 } else { 0 }];
        self.longest = vec![0; self.width * 64];
        self.count = vec![0; self.width * 64];
        true
    }

    /// Rips everything up and routes it anew; the steps that took. `None` where there are too many
    /// rounds.
    fn pass(&mut self, routes: &Routes, before: &Before, sequence: &[u32]) -> Option<usize> {
        self.taken.resize(*routes.kept.last().expect("an end") as usize, 0);
        'again: loop {
            self.busy.fill(0);
            self.used.fill(0);
            self.longest.fill(0);
            self.count.fill(0);
            self.carried.fill(0);
            let (mut rounds, mut steps) = (0, 0);
            for &x in sequence {
                let x = x as usize;
                let after = before.of(x).iter().map(|&b| self.round_of[b as usize] + 1).max();
                let Some(round) = self.choose(routes, x, after.unwrap_or(0), rounds) else {
                    if !self.widen(2 * 64 * self.width) {
                        return None;
                    }
                    continue 'again;
                };
                rounds = rounds.max(round as usize + 1);
                steps += (routes.of(x).len() + 3) * (rounds / 64 + 1);
                self.put(routes, x, round);
            }
            return Some(steps);
        }
    }

    /// The cheapest round of those in which a route is free; `None` if there is none.
    fn choose(&mut self, routes: &Routes, x: usize, after: u32, rounds: usize) -> Option<u32> {
        // One word more than in use has an empty round.
        let width = (rounds.max(after as usize) / 64 + 1).min(self.width);
        let cells = usize::from(routes.cells[x]);
        let edges = self.room.len();
        self.reach.clear();
        self.reach.resize(cells * width, 0);
        let [a, b] = self.sides[x].map(|side| (edges + side as usize) * self.width);
        for word in 0..width {
            let begun = match (after as usize).checked_sub(64 * word) {
                Some(skip) if skip >= 64 => 0,
                Some(skip) => u64::MAX << skip,
                None => u64::MAX,
            };
            self.reach[word] = !(self.busy[a + word] | self.busy[b + word]) & begun;
        }
        for hop in routes.of(x) {
            let (from, to) = (usize::from(hop.from) * width, usize::from(hop.to) * width);
            let busy = &self.busy[hop.edge as usize * self.width..][..width];
            let (source, target) = self.reach.split_at_mut(to);
            for word in 0..width {
                target[word] |= source[from + word] & !busy[word];
            }
        }
        let words = self.words[x];
        let mut best: Option<(u32, u32)> = None;
        for word in 0..width {
            let mut bits = self.reach[(cells - 1) * width + word];
            while bits != 0 {
                let round = 64 * word as u32 + bits.trailing_zeros();
                bits &= bits - 1;
                let longer = words.saturating_sub(self.longest[round as usize]);
                if best.is_none_or(|best| longer < best.0) {
                    best = Some((longer, round));
                }
                if longer == 0 || round as usize >= rounds {
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
        let (word, bit) = (round as usize / 64, 1u64 << (round % 64));
        let kept = self.kept.get(x).is_some_and(|&kept| kept);
        let old: &[u32] =
            if kept { &self.guide[routes.start(x)..routes.start(x + 1)] } else { &[] };
        let mut at = cells as u16 - 1;
        let mut place = routes.start(x) + routes.hops[x] as usize;
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
            let free = self.busy[hop.edge as usize * self.width + word] & bit == 0
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
        for row in place..routes.start(x) + routes.hops[x] as usize {
            let edge = self.taken[row] as usize;
            self.carried[edge] += 1;
            let full = self.room[edge] <= 1 || {
                let used = &mut self.used[edge * self.width * 64 + round as usize];
                *used += 1;
                *used >= self.room[edge]
            };
            if full {
                self.busy[edge * self.width + word] |= bit;
            }
        }
        for side in self.sides[x] {
            self.busy[(self.room.len() + side as usize) * self.width + word] |= bit;
        }
        self.round_of[x] = round;
        self.longest[round as usize] = self.longest[round as usize].max(self.words[x]);
        self.count[round as usize] += 1;
    }

    /// What counts among routes that are free.
    fn price(&self, old: &[u32], edge: u32) -> u32 {
        if old.contains(&edge) {
            return 0;
        }
        1 + self.carried[edge as usize] + u32::from(self.taste[edge as usize])
    }

    /// What the rounds last, and of equal ones what comes late in them.
    fn value(&self) -> (u64, u64) {
        let rounds = self.longest.iter().zip(&self.count).filter(|(_, count)| **count > 0);
        let clocks = rounds.map(|(&words, _)| u64::from(words) * self.word_clocks + self.setup);
        (clocks.sum(), self.round_of.iter().map(|&round| u64::from(round)).sum())
    }

    /// Counts the rounds afresh.
    fn measure(&mut self) {
        self.longest.fill(0);
        self.count.fill(0);
        for (x, &round) in self.round_of.iter().enumerate() {
            let longest = &mut self.longest[round as usize];
            *longest = self.words[x].max(*longest);
            self.count[round as usize] += 1;
        }
    }

    /// Who comes when in the next pass.
    fn next_sequence(
        &self,
        pass: u32,
        before: &Before,
        lateness: &mut [u32],
        rng: &mut ChaCha8Rng,
    ) -> Vec<u32> {
        let used: Vec<usize> = (0..self.count.len()).filter(|&r| self.count[r] > 0).collect();
        let rounds = used.len();
        for (late, &round) in lateness.iter_mut().zip(&self.round_of) {
            // The last of the rounds are the ones to be got rid of.
            let last = round as usize >= rounds - rounds.div_ceil(16);
            *late = *late - *late / 8 + if last { 8 } else { 0 };
        }
        let mut order = used;
        let longest = |round: usize| u64::from(self.longest[round]);
        match pass % 4 {
            0 => order.reverse(),
            1 => order.sort_by_key(|&r| (Reverse(longest(r)), Reverse(self.count[r]))),
            2 => order.sort_by_key(|&r| (Reverse(longest(r)), self.count[r])),
            _ => order.shuffle(rng),
        }
        let mut rank = vec![0u32; self.count.len()];
        for (row, &round) in order.iter().enumerate() {
            rank[round] = row as u32;
        }
        let (least, most) = (self.words.iter().min(), self.words.iter().max());
        let even = least.zip(most).is_some_and(|(least, most)| most - least <= most / EVEN);
        let key = |x: usize| {
            let late = lateness[x];
            let rank = rank[self.round_of[x] as usize];
            if before.any {
                let round = u64::from(self.round_of[x]);
                let first = rng.random_range(0..1 << 16);
                return (round, if self.kept[x] { 1 << 16 } else { first });
            }
            if even {
                let bonus = if pass % 8 == 7 { late * rounds as u32 / 64 } else { 0 };
                return (u64::from(rank.saturating_sub(bonus)), u32::MAX - late);
            }
            // About as long first, with some noise, those that were late a little earlier.
            let words = u64::from(self.words[x]);
            let noise = rng.random_range(0..=words / 8 + 1);
            let words = words + noise + words / 64 * u64::from(late.min(32));
            (u64::MAX - words, rank)
        };
        before.sorted(&(0..self.words.len()).map(key).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{Connection, ConnectionId, LinkId};
    use proptest::prelude::*;

    /// Every rule of a round, link by link.
    fn check(machine: &Machine, set: &ConnectionSet, network: &Network, found: &Found) {
        let (sides, room) = (sides(machine, set), room(machine, network));
        let mut busy = std::collections::BTreeSet::new();
        let mut used = std::collections::BTreeMap::new();
        for (x, c) in set.iter() {
            let (round, path) = (found.round_of[x.index()], found.paths.of(x.index()));
            assert!(round < found.rounds);
            assert_eq!((path[0], path[path.len() - 1]), (c.source.0, c.target.0));
            let [a, b] = sides[x.index()];
            assert!(busy.insert((round, a)) && (a == b || busy.insert((round, b))));
            for pair in path.windows(2) {
                assert!(network.next.of(pair[0]).contains(&pair[1]), "over live links");
                *used.entry((round, network.next.edge(pair[0], pair[1]))).or_insert(0) += 1;
            }
        }
        assert!(used.iter().all(|(&(_, edge), &used)| used <= room[edge]));
        for &(before, after) in set.order() {
            assert!(found.round_of[before.index()] < found.round_of[after.index()]);
        }
    }

    fn all_to_all(spec: &str) -> (Machine, ConnectionSet) {
        let machine = Machine::from_spec(spec).unwrap();
        let cells: Vec<CellId> = machine.endpoints().collect();
        let pairs = cells.iter().flat_map(|&a| cells.iter().map(move |&b| (a, b)));
        let pairs = pairs.filter(|(a, b)| a != b).map(|(a, b)| Connection::new(a, b, 9));
        (machine, ConnectionSet::new("all", pairs.collect()).unwrap())
    }

    #[test]
    fn narrow_machines_come_near_their_bounds() {
        // The middle links of a 4x4 mesh carry 16 connections each, the top of a fat-tree of 16
        // leaves 48.
        for (spec, bound, most) in [("mesh:4x4", 16, 19), ("fat-tree:16", 24, 24)] {
            let (machine, set) = all_to_all(spec);
            let network = Network::new(&machine);
            let found = negotiate(&machine, &set, &network, 18 * bound, 1 << 24, 0).unwrap();
            check(&machine, &set, &network, &found);
            assert!((bound as u32..=most).contains(&found.rounds), "{spec} {}", found.rounds);
        }
    }

    #[test]
    fn odd_sets_are_no_trouble() {
        let (machine, _) = all_to_all("mesh:2x2");
        let network = Network::new(&machine);
        let none = ConnectionSet::new("none", vec![]).unwrap();
        assert!(negotiate(&machine, &none, &network, 0, 1000, 0).is_none());
        let same = ConnectionSet::new("same", vec![Connection::new(CellId(0), CellId(3), 1); 200]);
        let found = negotiate(&machine, &same.unwrap(), &network, 0, 1000, 0).unwrap();
        assert_eq!(found.rounds, 200);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rounds_keep_every_rule(
            topology in 0usize..8,
            pairs in prop::collection::vec((0u32..64, 0u32..64, 1u32..50), 1..60),
            order in prop::collection::vec((0usize..60, 0usize..60), 0..30),
            dead in 0u32..40,
            half in any::<bool>(),
            access in 1u32..5,
            seed in any::<u64>(),
        ) {
            let spec = ["torus:2x3", "mesh:3x3", "ring:2", "torus:2x2x2", "fat-tree:9",
                "hypercube:3", "ring:1", "torus:4x4"][topology];
            let machine = Machine::from_spec(spec).unwrap();
            let mut parameters = machine.parameters().clone();
            parameters.access_clocks_per_word = access;
            parameters.duplex = if half { Duplex::Half } else { Duplex::Full };
            let dead = Some(LinkId(dead)).filter(|link| link.index() < machine.link_count());
            let dead = dead.map(|link| (machine.link(link).source, machine.link(link).target));
            let dead = dead.into_iter().collect();
            let machine = Machine::new(
                machine.name(), machine.topology().clone(), parameters, vec![], dead,
            ).unwrap();
            let cells: Vec<CellId> = machine.endpoints().collect();
            let any = |at: u32| cells[at as usize % cells.len()];
            let rows = pairs.iter().map(|&(s, t, w)| Connection::new(any(s), any(t), w));
            let set = ConnectionSet::new("s", rows.collect()).unwrap();
            let id = |x: usize| ConnectionId((x % pairs.len()) as u32);
            let order = order.iter().map(|&(a, b)| (id(a), id(b))).filter(|(a, b)| a < b);
            let set = set.with_order(order.collect()).unwrap();
            let network = Network::new(&machine);
            let found = negotiate(&machine, &set, &network, 0, 1 << 16, seed);
            // Without the dead link there may be no way.
            if let Some(found) = found {
                check(&machine, &set, &network, &found);
                let again = negotiate(&machine, &set, &network, 0, 1 << 16, seed).unwrap();
                prop_assert_eq!(&found.round_of, &again.round_of);
            }
        }
    }
}
