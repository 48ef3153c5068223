//! Phases that are packed with connections of a pool.
//!
//! A packing is always right: a lane or a port carries one stream in a slot, and routes through a
//! cell in a phase are never more than its channels. Routes are shortest ones. What counts is the
//! *worth* of what is placed: words times channels.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Config;
use super::network::Network;
use super::pool::Pool;
use crate::problem::Problem;

pub(super) const NONE: u32 = u32::MAX;

/// A connection that has a place.
#[derive(Clone, Default)]
pub(super) struct Stream {
    pub(super) connection: u32,
    /// Its slot, counted over all phases.
    pub(super) slot: u32,
    /// The lanes of its route.
    pub(super) lanes: Vec<u32>,
    is_placed: bool,
}

pub(super) struct Packing<'a> {
    problem: &'a Problem<'a>,
    config: &'a Config,
    network: &'a Network,
    pub(super) pool: Pool<'a>,
    hops_of: &'a [u16],
    /// Connections of the pool by hops, and how many more of them the phase at work may take.
    pooled: Vec<u32>,
    quota: Vec<i32>,
    pub(super) streams: Vec<Stream>,
    /// Rows of `streams` without a stream.
    vacant: Vec<u32>,
    /// By slot, then lane or port: the stream there, or `NONE`.
    lanes: Vec<u32>,
    ports: Vec<u32>,
    /// By phase, then cell.
    channels: Vec<u16>,
    phase_of: Vec<u32>,
    slots_of: Vec<std::ops::Range<u32>>,
    /// Worth of all streams, and of the pool.
    worth: u64,
    pub(super) pooled_worth: u64,
    half: bool,
    rng: ChaCha8Rng,
    search: Search,
    pub(super) work: u64,
    pub(super) tries: u32,
}

/// Memory of a search over free lanes.
struct Search {
    hops: Vec<u16>,
    parent: Vec<(u32, u32)>,
    stamp: Vec<u32>,
    now: u32,
    queue: Vec<u32>,
}

impl Search {
    fn start(&mut self, cells: impl IntoIterator<Item = u32>) {
        self.now = self.now.checked_add(1).unwrap_or_else(|| {
            self.stamp.fill(0);
            1
        });
        self.queue.clear();
        for cell in cells {
            if self.stamp[cell as usize] != self.now {
                self.stamp[cell as usize] = self.now;
                self.hops[cell as usize] = 0;
                self.queue.push(cell);
            }
        }
    }
}

impl<'a> Packing<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        config: &'a Config,
        network: &'a Network,
        hops_of: &'a [u16],
        seed: u64,
    ) -> Self {
        let cells = network.cells;
        let longest = hops_of.iter().max().map_or(0, |&hops| usize::from(hops));
        Self {
            problem,
            config,
            network,
            pool: Pool::new(problem.set.connections(), cells),
            hops_of,
            pooled: vec![0; longest + 1],
            quota: vec![i32::MAX / 2; longest + 1],
            streams: Vec::new(),
            vacant: Vec::new(),
            lanes: Vec::new(),
            ports: Vec::new(),
            channels: Vec::new(),
            phase_of: Vec::new(),
            slots_of: Vec::new(),
            worth: 0,
            pooled_worth: 0,
            half: problem.port_count == cells,
            rng: ChaCha8Rng::seed_from_u64(seed),
            search: Search {
                hops: vec![0; cells],
                parent: vec![(0, 0); cells],
                stamp: vec![0; cells],
                now: 0,
                queue: Vec::new(),
            },
            work: 0,
            tries: 0,
        }
    }

    /// Words times channels of a connection.
    pub(super) fn worth_of(&self, x: u32) -> u64 {
        let words = self.problem.set.connections()[x as usize].words;
        u64::from(words.max(1)) * (u64::from(self.hops_of[x as usize]) + 1)
    }

    /// Puts a connection into the pool.
    pub(super) fn offer(&mut self, x: u32) {
        self.pool.add(x);
        self.pooled[usize::from(self.hops_of[x as usize])] += 1;
        self.pooled_worth += self.worth_of(x);
    }

    fn withdraw(&mut self, x: u32) {
        self.pool.take(x);
        self.pooled[usize::from(self.hops_of[x as usize])] -= 1;
        self.pooled_worth -= self.worth_of(x);
    }

    /// Adds a phase of so many slots; its number.
    pub(super) fn add_phase(&mut self, slots: u32) -> u32 {
        let phase = self.slots_of.len() as u32;
        let first = self.phase_of.len() as u32;
        self.slots_of.push(first..first + slots);
        self.phase_of.resize(self.phase_of.len() + slots as usize, phase);
        let count = self.phase_of.len();
        self.lanes.resize(count * self.network.lane_count(), NONE);
        self.ports.resize(count * self.problem.port_count, NONE);
        self.channels.resize(self.slots_of.len() * self.network.cells, 0);
        phase
    }

    fn has_channel(&self, phase: u32, cell: u32) -> bool {
        let used = self.channels[phase as usize * self.network.cells + cell as usize];
        u32::from(used) < self.problem.channels
    }

    fn port(&self, slot: u32, cell: u32, side: u32) -> usize {
        let port = if self.half { cell } else { 2 * cell + side };
        slot as usize * self.problem.port_count + port as usize
    }

    /// Shares out the short connections of the pool evenly over the phases that it is good for,
    /// as they are what fills the last holes of each.
    pub(super) fn share(&mut self, phases: u64) {
        let connections: u64 = self.pooled.iter().map(|&count| u64::from(count)).sum();
        let sum = (0u64..).zip(&self.pooled).map(|(hops, &count)| hops * u64::from(count));
        let mean = sum.sum::<u64>() / connections.max(1);
        for (hops, (quota, &count)) in (0u64..).zip(self.quota.iter_mut().zip(&self.pooled)) {
            let share = (u64::from(count) * u64::from(self.config.short_share))
                .div_ceil(64 * phases.max(1));
            *quota = if hops < mean { share as i32 } else { i32::MAX / 2 };
        }
    }

    /// Cells that free lanes of a slot lead to from a cell over shortest ways, into the search's
    /// queue.
    fn reach(&mut self, source: u32, slot: u32) {
        let phase = self.phase_of[slot as usize];
        let row = slot as usize * self.network.lane_count();
        let shortest = self.network.hops(source);
        let channels = &self.channels[phase as usize * self.network.cells..];
        let search = &mut self.search;
        search.start([source]);
        let mut next = 0;
        while let Some(&cell) = search.queue.get(next) {
            next += 1;
            let hops = search.hops[cell as usize] + 1;
            for lane in self.network.lanes(cell) {
                let head = self.network.head(lane);
                let at = head as usize;
                if self.lanes[row + lane] == NONE
                    && search.stamp[at] != search.now
                    && shortest[at] == hops
                    && u32::from(channels[at]) < self.problem.channels
                {
                    search.stamp[at] = search.now;
                    search.hops[at] = hops;
                    search.parent[at] = (cell, lane as u32);
                    search.queue.push(head);
                }
            }
        }
        self.work += next as u64 + 3;
    }

    /// Places the worthiest connection of the pool that leaves a cell and has a free route of at
    /// least so many hops in a slot, give or take a little.
    fn place_from(&mut self, source: u32, slot: u32, least: u16) -> Option<u32> {
        let phase = self.phase_of[slot as usize];
        if self.ports[self.port(slot, source, 0)] != NONE || !self.has_channel(phase, source) {
            return None;
        }
        self.reach(source, slot);
        let noise = self.rng.random::<u32>();
        let mut best = (0, NONE);
        for &target in &self.search.queue {
            let hops = self.search.hops[target as usize];
            if hops < least
                || self.quota[usize::from(hops)] <= 0
                || self.ports[self.port(slot, target, 1)] != NONE
            {
                continue;
            }
            let Some(x) = self.pool.find(source, target) else { continue };
            let tie = (target ^ noise).wrapping_mul(0x85eb_ca6b) >> self.config.noise;
            let words = self.problem.set.connections()[x as usize].words.max(1);
            let key = u64::from(words) * ((u64::from(hops) << 16) + u64::from(tie) + 1);
            best = best.max((key, x));
        }
        let x = best.1;
        if x == NONE {
            return None;
        }
        let mut lanes = self.vacant.pop();
        let id = *lanes.get_or_insert_with(|| {
            self.streams.push(Stream::default());
            self.streams.len() as u32 - 1
        });
        let stream = &mut self.streams[id as usize];
        (stream.connection, stream.slot) = (x, slot);
        stream.lanes.clear();
        let mut cell = self.problem.set.connections()[x as usize].target.0;
        while cell != source {
            let (tail, lane) = self.search.parent[cell as usize];
            stream.lanes.push(lane);
            cell = tail;
        }
        stream.lanes.reverse();
        self.withdraw(x);
        self.book(id);
        Some(id)
    }

    /// Books what a stream uses, or gives it back.
    fn mark(&mut self, id: u32, as_id: u32) {
        let stream = &mut self.streams[id as usize];
        stream.is_placed = as_id != NONE;
        let (slot, x) = (stream.slot as usize, stream.connection as usize);
        let connection = &self.problem.set.connections()[x];
        let phase = self.phase_of[slot] as usize * self.network.cells;
        let row = slot * self.network.lane_count();
        let change = |channels: &mut u16| match as_id {
            NONE => *channels -= 1,
            _ => *channels += 1,
        };
        change(&mut self.channels[phase + connection.source.index()]);
        for &lane in &stream.lanes {
            self.lanes[row + lane as usize] = as_id;
            let head = self.network.head(lane as usize);
            change(&mut self.channels[phase + head as usize]);
        }
        for port in self.problem.ports[x] {
            self.ports[slot * self.problem.port_count + port as usize] = as_id;
        }
        self.work += stream.lanes.len() as u64 / 4;
    }

    fn book(&mut self, id: u32) {
        self.mark(id, id);
        let x = self.streams[id as usize].connection;
        self.quota[usize::from(self.hops_of[x as usize])] -= 1;
        self.worth += self.worth_of(x);
    }

    fn unbook(&mut self, id: u32) {
        self.mark(id, NONE);
        let x = self.streams[id as usize].connection;
        self.quota[usize::from(self.hops_of[x as usize])] += 1;
        self.worth -= self.worth_of(x);
    }

    /// Gives a stream that is not booked back to the pool.
    fn discard(&mut self, id: u32) {
        self.offer(self.streams[id as usize].connection);
        self.vacant.push(id);
    }

    /// Fills a phase, long connections first.
    pub(super) fn fill(&mut self, phase: u32) {
        let slots = self.slots_of[phase as usize].clone();
        let all = |slot| (0..self.network.cells as u32).map(move |cell| (cell, slot));
        let mut places: Vec<(u32, u32)> = slots.flat_map(all).collect();
        places.shuffle(&mut self.rng);
        let connections: u64 = self.pooled.iter().map(|&count| u64::from(count)).sum();
        let sum = (0u64..).zip(&self.pooled).map(|(hops, &count)| hops * u64::from(count));
        let mean = sum.sum::<u64>() / connections.max(1);
        for least in [mean as u16 * 3 / 4, 0, 0] {
            for &(cell, slot) in &places {
                self.place_from(cell, slot, least);
            }
        }
    }

    /// Changes a phase for the better, for so much work: takes a few streams away beside a hole,
    /// fills what is free with others, and takes that back if it is worth less. In the beginning
    /// it may be worth a little less.
    pub(super) fn better(&mut self, phase: u32, effort: u64, unit: u64) {
        let cells = self.network.cells as u32;
        let end = self.work + effort;
        let slots = self.slots_of[phase as usize].clone();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let (mut seeds, mut sources) = (Vec::new(), Vec::new());
        while self.work < end && self.worth > 0 {
            self.work += 20;
            self.tries += 1;
            removed.clear();
            added.clear();
            seeds.clear();
            let before = self.worth;
            let drawn = self.rng.random_range(0..cells);
            let near = (drawn..cells).chain(0..drawn).take(self.config.holes as usize);
            let hole = near.into_iter().find(|&cell| self.has_channel(phase, cell));
            let hole = hole.unwrap_or(drawn);
            for _ in 0..self.rng.random_range(1..=self.config.removed) {
                let slot = self.rng.random_range(slots.clone());
                let Some(id) = self.beside(hole, slot) else { continue };
                self.unbook(id);
                removed.push(id);
                let stream = &self.streams[id as usize];
                let connection = &self.problem.set.connections()[stream.connection as usize];
                seeds.push(connection.source.0);
                seeds.extend(stream.lanes.iter().map(|&lane| self.network.head(lane as usize)));
            }
            if removed.is_empty() {
                continue;
            }
            let first = self.rng.random_range(slots.clone());
            for slot in (first..slots.end).chain(slots.start..first) {
                self.leading_to(&seeds, slot, &mut sources);
                sources.shuffle(&mut self.rng);
                for &source in &sources {
                    added.extend(self.place_from(source, slot, 0));
                }
            }
            let left = u128::from(end.saturating_sub(self.work)) * 64 / u128::from(effort.max(1));
            let less = unit * u64::from(self.config.less) * left as u64 / 64
                * u64::from(self.rng.random::<u32>().trailing_zeros())
                / 64;
            if self.worth + less >= before {
                removed.iter().for_each(|&id| self.discard(id));
            } else {
                for &id in &added {
                    self.unbook(id);
                    self.discard(id);
                }
                removed.iter().for_each(|&id| self.book(id));
            }
        }
    }

    /// The stream on some lane from or to a cell in a slot.
    fn beside(&mut self, cell: u32, slot: u32) -> Option<u32> {
        let (lanes, back) = (self.network.lanes(cell), self.network.back(cell));
        let drawn = self.rng.random_range(0..(lanes.len() + back.len()).max(1));
        let lane = match drawn.checked_sub(lanes.len()) {
            None => lanes.start + drawn,
            Some(row) => back.get(row)?.1 as usize,
        };
        let id = self.lanes[slot as usize * self.network.lane_count() + lane];
        (id != NONE).then_some(id)
    }

    /// Cells from which free lanes of a slot lead to some of the given ones.
    fn leading_to(&mut self, seeds: &[u32], slot: u32, sources: &mut Vec<u32>) {
        let row = slot as usize * self.network.lane_count();
        let phase = self.phase_of[slot as usize];
        let channels = &self.channels[phase as usize * self.network.cells..];
        let full = |cell: u32| u32::from(channels[cell as usize]) >= self.problem.channels;
        let search = &mut self.search;
        search.start(seeds.iter().copied());
        let most = search.queue.len() + self.config.sources as usize;
        let mut next = 0;
        while next < search.queue.len() && search.queue.len() < most {
            let cell = search.queue[next];
            next += 1;
            if full(cell) {
                continue;
            }
            for &(tail, lane) in self.network.back(cell) {
                if self.lanes[row + lane as usize] == NONE
                    && search.stamp[tail as usize] != search.now
                    && !full(tail)
                {
                    search.stamp[tail as usize] = search.now;
                    search.queue.push(tail);
                }
            }
        }
        self.work += next as u64;
        std::mem::swap(&mut search.queue, sources);
    }

    /// The streams of each phase with their slots.
    pub(super) fn placed(&self) -> Vec<Vec<&Stream>> {
        let mut phases = vec![Vec::new(); self.slots_of.len()];
        for stream in self.streams.iter().filter(|stream| stream.is_placed) {
            phases[self.phase_of[stream.slot as usize] as usize].push(stream);
        }
        phases
    }
}
