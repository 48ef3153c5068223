//! Packs one phase with connections of the pool.
//!
//! A phase has at most 64 slots. In a slot a lane and a port carry one stream, so their free slots
//! are the bits of a word, and one search finds the routes of all slots. A packing is always valid:
//! no lane and no port is used twice in a slot, and the routes through a cell do not exceed its
//! channels. Routes are shortest. The objective is the *worth* of the placed connections
//! ([`WindowPacking::worth_of`]).

use conset_ir::convert::{index, to_u32, to_u64};
use conset_partition_route::marks::Marks;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::WindowedConfig;
use super::network::LaneNetwork;
use super::pool::Pool;
use crate::problem::Problem;

const NONE: u32 = u32::MAX;

/// A connection that has a place.
#[derive(Clone, Default)]
pub(super) struct Placed {
    pub(super) connection: u32,
    pub(super) slot: u32,
    /// The lanes of its route.
    pub(super) lanes: Vec<u32>,
    is_booked: bool,
}

/// Sums over connections.
#[derive(Clone, Copy, Default)]
pub(super) struct Pooled {
    pub(super) connections: u64,
    pub(super) words: u64,
    /// Cells of their routes, and words times these.
    pub(super) channels: u64,
    pub(super) word_cells: u64,
}

pub(super) struct WindowPacking<'a> {
    problem: &'a Problem<'a>,
    config: &'a WindowedConfig,
    network: &'a LaneNetwork,
    pool: Pool<'a>,
    hops_of: &'a [u16],
    /// What a channel is worth beside the words through it, in words.
    channel_words: u64,
    pub(super) pooled: Pooled,
    /// Connections of the pool by hops, and how many more of them the phase may take.
    by_hops: Vec<u32>,
    quota: Vec<i32>,
    /// Slots of the phase.
    slots: u32,
    streams: Vec<Placed>,
    /// Rows of `streams` without a stream.
    vacant: Vec<u32>,
    /// Slots in which lanes and ports are used, as bits.
    lanes: Vec<u64>,
    ports: Vec<u64>,
    /// By lane, then slot: the stream there, or `NONE`.
    users: Vec<u32>,
    /// Routes through each cell.
    channels: Vec<u16>,
    worth: u64,
    half: bool,
    rng: ChaCha8Rng,
    search: LaneSearch,
    pub(super) work: u64,
    pub(super) tries: u32,
}

/// Memory of a search over free lanes.
struct LaneSearch {
    hops: Vec<u16>,
    /// Slots in which there is a way to a cell.
    slots: Vec<u64>,
    reached: Marks,
    queue: Vec<u32>,
}

impl LaneSearch {
    fn restart(&mut self) {
        self.reached.clear();
        self.queue.clear();
    }

    /// Adds slots to those of a cell; the first time it enters the queue.
    #[inline]
    fn reach(&mut self, cell: u32, hops: u16, slots: u64) {
        let at = index(cell);
        if self.reached.insert(cell) {
            self.hops[at] = hops;
            self.slots[at] = slots;
            self.queue.push(cell);
        } else {
            self.slots[at] |= slots;
        }
    }

    /// The slots of a cell.
    #[inline]
    fn slots(&self, cell: u32) -> u64 {
        if self.reached.contains(cell) { self.slots[index(cell)] } else { 0 }
    }
}

impl<'a> WindowPacking<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        config: &'a WindowedConfig,
        network: &'a LaneNetwork,
        hops_of: &'a [u16],
        seed: u64,
    ) -> Self {
        let cells = network.cells;
        let longest = hops_of.iter().max().map_or(0, |&hops| usize::from(hops));
        let words: u64 = problem.set.connections().iter().map(|c| u64::from(c.words)).sum();
        let switches = u64::from(problem.bounds.phases) * problem.switch;
        let time = problem.bounds.clocks.saturating_sub(switches).max(1);
        let mean = words / to_u64(hops_of.len().max(1));
        let channel_words = u128::from(mean) * u128::from(switches) / u128::from(time);
        Self {
            problem,
            config,
            network,
            pool: Pool::new(problem.set.connections(), cells),
            hops_of,
            channel_words: u64::try_from(channel_words).unwrap_or(u64::MAX).min(1 << 24) + 1,
            pooled: Pooled::default(),
            by_hops: vec![0; longest + 1],
            quota: vec![0; longest + 1],
            slots: 0,
            streams: Vec::new(),
            vacant: Vec::new(),
            lanes: vec![0; network.lane_count()],
            ports: vec![0; problem.port_count],
            users: Vec::new(),
            channels: vec![0; cells],
            worth: 0,
            half: problem.port_count == cells,
            rng: ChaCha8Rng::seed_from_u64(seed),
            search: LaneSearch {
                hops: vec![0; cells],
                slots: vec![0; cells],
                reached: Marks::new(cells),
                queue: Vec::new(),
            },
            work: 0,
            tries: 0,
        }
    }

    fn words(&self, x: u32) -> u32 {
        self.problem.set.connections()[index(x)].words.max(1)
    }

    /// Words, and what channels are worth, times the cells of a connection's route.
    fn worth_of(&self, x: u32) -> u64 {
        self.rate(x) * self.route_cells(x)
    }

    fn rate(&self, x: u32) -> u64 {
        u64::from(self.words(x)) + self.channel_words
    }

    fn route_cells(&self, x: u32) -> u64 {
        u64::from(self.hops_of[index(x)]) + 1
    }

    pub(super) fn is_pooled(&self, x: u32) -> bool {
        self.pool.contains(x)
    }

    /// Puts a connection into the pool.
    pub(super) fn offer(&mut self, x: u32) {
        self.pool.add(x);
        self.by_hops[usize::from(self.hops_of[index(x)])] += 1;
        let one = self.sums(&[x]);
        self.pooled.connections += 1;
        self.pooled.words += one.words;
        self.pooled.channels += one.channels;
        self.pooled.word_cells += one.word_cells;
    }

    /// Sums over some connections.
    pub(super) fn sums(&self, connections: &[u32]) -> Pooled {
        let mut sums = Pooled { connections: to_u64(connections.len()), ..Pooled::default() };
        for &x in connections {
            let (words, cells) = (u64::from(self.words(x)), self.route_cells(x));
            sums.words += words;
            sums.channels += cells;
            sums.word_cells += words * cells;
        }
        sums
    }

    fn withdraw(&mut self, x: u32) {
        self.pool.take(x);
        self.by_hops[usize::from(self.hops_of[index(x)])] -= 1;
        let one = self.sums(&[x]);
        self.pooled.connections -= 1;
        self.pooled.words -= one.words;
        self.pooled.channels -= one.channels;
        self.pooled.word_cells -= one.word_cells;
    }

    /// Begins an empty phase of so many slots.
    pub(super) fn start(&mut self, slots: u32) {
        self.slots = slots;
        // Slots beyond the last are never free.
        let busy = u64::MAX.checked_shl(slots).unwrap_or(0);
        self.lanes.fill(busy);
        self.ports.fill(busy);
        self.channels.fill(0);
        self.users.clear();
        self.users.resize(self.network.lane_count() * index(slots), NONE);
        self.streams.clear();
        self.vacant.clear();
        self.worth = 0;
    }

    /// The streams of the phase.
    pub(super) fn finish(&mut self) -> Vec<Placed> {
        let streams = std::mem::take(&mut self.streams);
        streams.into_iter().filter(|stream| stream.is_booked).collect()
    }

    fn has_channel(&self, cell: u32) -> bool {
        u32::from(self.channels[index(cell)]) < self.problem.channels
    }

    fn port(&self, cell: u32, side: u32) -> usize {
        index(if self.half { cell } else { 2 * cell + side })
    }

    /// The mean of the hops of the pool.
    fn mean_hops(&self) -> u64 {
        (self.pooled.channels / self.pooled.connections.max(1)).saturating_sub(1)
    }

    /// Shares out the short connections of the pool evenly over the phases that it is good for,
    /// as they are what fills the last holes of each.
    pub(super) fn share(&mut self, phases: u64) {
        let mean = self.mean_hops();
        for (hops, (quota, &count)) in (0u64..).zip(self.quota.iter_mut().zip(&self.by_hops)) {
            let share = (u64::from(count) * u64::from(self.config.short_share))
                .div_ceil(64 * phases.max(1));
            *quota = if hops < mean {
                i32::try_from(share).unwrap_or(i32::MAX / 2)
            } else {
                i32::MAX / 2
            };
        }
    }

    /// Cells to which free lanes lead from a cell over shortest ways, with the slots in which they
    /// do; those alone that are on a way of connection `toward`, if one is given.
    fn reach(&mut self, source: u32, toward: Option<u32>) {
        let shortest = self.network.hops(source);
        let ahead = toward.map(|x| (self.problem.distances(index(x)), self.hops_of[index(x)]));
        let free = !self.ports[self.port(source, 0)];
        let longest = u16::try_from(self.quota.len() - 1).unwrap_or(u16::MAX);
        let search = &mut self.search;
        search.restart();
        if shortest.is_empty() {
            return;
        }
        if free != 0 && u32::from(self.channels[index(source)]) < self.problem.channels {
            search.reach(source, 0, free);
        }
        let mut next = 0;
        while let Some(&cell) = search.queue.get(next) {
            next += 1;
            let hops = search.hops[index(cell)] + 1;
            let slots = search.slots[index(cell)];
            for lane in self.network.lanes(cell) {
                let slots = slots & !self.lanes[lane];
                let head = self.network.head(lane);
                if slots != 0
                    && hops <= longest
                    && shortest[index(head)] == hops
                    && ahead.is_none_or(|(ahead, all)| ahead[index(head)] + hops == all)
                    && u32::from(self.channels[index(head)]) < self.problem.channels
                {
                    search.reach(head, hops, slots);
                }
            }
        }
        self.work += to_u64(next) + 3;
    }

    /// Slots in which the search has found a way to a cell that can receive.
    #[inline]
    fn arriving(&self, target: u32) -> u64 {
        self.search.slots(target) & !self.ports[self.port(target, 1)]
    }

    /// Places a connection of the pool if it has a free route.
    pub(super) fn place_one(&mut self, x: u32) -> bool {
        let connection = &self.problem.set.connections()[index(x)];
        self.reach(connection.source.0, Some(x));
        let is_free = self.arriving(connection.target.0) != 0;
        if is_free {
            self.place(x);
        }
        is_free
    }

    /// Places a connection of the pool that leaves a cell and has a free route of at least so many
    /// hops: the worthiest, give or take a little.
    fn place_from(&mut self, source: u32, least: u16) -> Option<u32> {
        self.reach(source, None);
        let noise = self.rng.random::<u32>();
        let mut best = None;
        for &target in &self.search.queue {
            let hops = self.search.hops[index(target)];
            if hops < least || self.quota[usize::from(hops)] <= 0 || self.arriving(target) == 0 {
                continue;
            }
            let Some(x) = self.pool.find(source, target) else { continue };
            let tie = (target ^ noise).wrapping_mul(0x85eb_ca6b) >> self.config.noise;
            let key = self.rate(x) * ((u64::from(hops) << 16) + u64::from(tie));
            best = best.max(Some((key, x)));
        }
        best.map(|(_, x)| self.place(x))
    }

    /// Places a connection for which the search has found routes, in any of their slots.
    fn place(&mut self, x: u32) -> u32 {
        let connection = &self.problem.set.connections()[index(x)];
        let slots = self.arriving(connection.target.0);
        let after = slots & (u64::MAX << self.rng.random_range(0..self.slots));
        let slot = if after == 0 { slots } else { after }.trailing_zeros();
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.streams.push(Placed::default());
            to_u32(self.streams.len()) - 1
        });
        let stream = &mut self.streams[index(id)];
        (stream.connection, stream.slot) = (x, slot);
        stream.lanes.clear();
        let mut cell = connection.target.0;
        while cell != connection.source.0 {
            let hops = self.search.hops[index(cell)];
            let leads_here = |&&(tail, lane): &&(u32, u32)| {
                self.search.slots(tail) >> slot & 1 != 0
                    && self.search.hops[index(tail)] + 1 == hops
                    && self.lanes[index(lane)] >> slot & 1 == 0
            };
            let way = self.network.back(cell).iter().find(leads_here);
            let &(tail, lane) = way.expect("the search came along some lane");
            stream.lanes.push(lane);
            cell = tail;
        }
        stream.lanes.reverse();
        self.withdraw(x);
        self.book(id);
        id
    }

    /// Marks what a stream uses as its own, or as free.
    fn mark(&mut self, id: u32, booked: bool) {
        let stream = &mut self.streams[index(id)];
        stream.is_booked = booked;
        let x = index(stream.connection);
        let bit = 1u64 << stream.slot;
        let change = |channels: &mut u16| match booked {
            true => *channels += 1,
            false => *channels -= 1,
        };
        change(&mut self.channels[self.problem.set.connections()[x].source.index()]);
        let user = if booked { id } else { NONE };
        for &lane in &stream.lanes {
            let lane = index(lane);
            self.lanes[lane] ^= bit;
            self.users[lane * index(self.slots) + index(stream.slot)] = user;
            change(&mut self.channels[index(self.network.head(lane))]);
        }
        let [source, target] = self.problem.ports[x];
        self.ports[index(source)] ^= bit;
        if target != source {
            self.ports[index(target)] ^= bit;
        }
        self.work += to_u64(stream.lanes.len()) / 4;
    }

    fn book(&mut self, id: u32) {
        self.mark(id, true);
        let x = self.streams[index(id)].connection;
        self.quota[usize::from(self.hops_of[index(x)])] -= 1;
        self.worth += self.worth_of(x);
    }

    fn unbook(&mut self, id: u32) {
        self.mark(id, false);
        let x = self.streams[index(id)].connection;
        self.quota[usize::from(self.hops_of[index(x)])] += 1;
        self.worth -= self.worth_of(x);
    }

    /// Gives a stream that is not booked back to the pool.
    fn discard(&mut self, id: u32) {
        self.offer(self.streams[index(id)].connection);
        self.vacant.push(id);
    }

    /// Fills the phase, long routes first; what that is worth.
    pub(super) fn fill(&mut self) -> u64 {
        let mut cells: Vec<u32> = (0..to_u32(self.network.cells)).collect();
        cells.shuffle(&mut self.rng);
        for least in [u16::try_from(self.mean_hops() * 3 / 4).unwrap_or(u16::MAX), 0] {
            // As often as any cell may be a source again.
            for _ in 0..self.slots {
                let before = self.worth;
                for &cell in &cells {
                    self.place_from(cell, least);
                }
                if self.worth == before {
                    break;
                }
            }
        }
        self.worth
    }

    /// Changes the phase for the better, for so much work: takes a few streams away beside a hole,
    /// fills what is free with others, and takes that back if it is worth less. In the beginning
    /// it may be worth a little less: some times `unit`.
    pub(super) fn better(&mut self, effort: u64, unit: u64) {
        let cells = to_u32(self.network.cells);
        let end = self.work + effort;
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let (mut seeds, mut sources) = (Vec::new(), Vec::new());
        while self.work < end && self.worth > 0 && !self.problem.interrupt.is_requested() {
            self.work += 20;
            self.tries += 1;
            removed.clear();
            added.clear();
            seeds.clear();
            let before = self.worth;
            let drawn = self.rng.random_range(0..cells);
            let near = (drawn..cells).chain(0..drawn).take(index(self.config.holes));
            let hole = near.into_iter().find(|&cell| self.has_channel(cell)).unwrap_or(drawn);
            for _ in 0..self.rng.random_range(1..=self.config.removed) {
                let Some(id) = self.beside(hole) else { continue };
                self.unbook(id);
                removed.push(id);
                let stream = &self.streams[index(id)];
                let connection = &self.problem.set.connections()[index(stream.connection)];
                seeds.push(connection.source.0);
                seeds.extend(stream.lanes.iter().map(|&lane| self.network.head(index(lane))));
            }
            if removed.is_empty() {
                continue;
            }
            self.leading_to(&seeds, &mut sources);
            sources.shuffle(&mut self.rng);
            for &source in &sources {
                while let Some(id) = self.place_from(source, 0) {
                    added.push(id);
                }
            }
            let left = u128::from(end.saturating_sub(self.work)) * 64 / u128::from(effort.max(1));
            let less = unit * u64::from(self.config.less) * to_u64(left) / 64
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

    /// A stream on some lane from or to a cell.
    fn beside(&mut self, cell: u32) -> Option<u32> {
        let (lanes, back) = (self.network.lanes(cell), self.network.back(cell));
        let drawn = self.rng.random_range(0..(lanes.len() + back.len()).max(1));
        let lane = match drawn.checked_sub(lanes.len()) {
            None => lanes.start + drawn,
            Some(row) => index(back.get(row)?.1),
        };
        let slot = self.rng.random_range(0..self.slots);
        let id = self.users[lane * index(self.slots) + index(slot)];
        (id != NONE).then_some(id)
    }

    /// Cells from which free lanes lead to some of the given ones, these included.
    fn leading_to(&mut self, seeds: &[u32], sources: &mut Vec<u32>) {
        let search = &mut self.search;
        search.restart();
        seeds.iter().for_each(|&cell| search.reach(cell, 0, u64::MAX));
        let most = search.queue.len() + index(self.config.sources);
        let mut next = 0;
        while next < search.queue.len() && search.queue.len() < most {
            let cell = search.queue[next];
            next += 1;
            if u32::from(self.channels[index(cell)]) >= self.problem.channels {
                continue;
            }
            let slots = search.slots[index(cell)];
            for &(tail, lane) in self.network.back(cell) {
                let slots = slots & !self.lanes[index(lane)];
                if slots != 0 && u32::from(self.channels[index(tail)]) < self.problem.channels {
                    search.reach(tail, 0, slots);
                }
            }
        }
        self.work += to_u64(next);
        std::mem::swap(&mut search.queue, sources);
    }
}
