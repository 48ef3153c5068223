//! Negotiated congestion over phases: channels, agents and links are its resources.
//!
//! The channels of a cell in a phase are counted; a port or a link in a phase is busy for a number
//! of clocks. One overuse is one channel too many, or as many clocks too many as an average stream
//! takes.

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32, to_u64};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::PhaseConfig;
use super::route::{HOP, PhaseRouteSearch};
use crate::problem::Problem;

/// The outcome of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoutingOutcome {
    /// No resource is overused.
    Settled,
    /// There was no progress.
    Stalled,
    /// The budget is used up.
    Exhausted,
    /// The first pass took so much of the budget that it will not suffice.
    TooLarge,
}

/// The budget must suffice for so many first passes. Later ones move fewer connections: sets of 3000 to
/// 14,000 connections settle within 8 to 28 times the work of the first pass, and half of what is left is
/// given to a number of phases.
const FIRST_PASSES: u64 = 12;

/// The maximum cost of a resource: routes of 4096 cells and links stay far below 2^32.
const DEAREST: u64 = 1 << 17;

/// The users of a resource, or the clocks for which it is busy, and its history cost.
#[derive(Clone, Copy, Default)]
struct Occupancy {
    amount: u64,
    history: u32,
}

/// Resources of one kind in all phases.
#[derive(Clone)]
struct OccupancyTable {
    /// Resources of a phase.
    width: usize,
    uses: Vec<Occupancy>,
    /// The amount of one overuse.
    unit: u64,
    /// The sum of the amounts above the limits.
    over: u64,
}

impl OccupancyTable {
    fn new(width: usize, phases: usize, unit: u64) -> Self {
        Self { width, uses: vec![Occupancy::default(); width * phases], unit, over: 0 }
    }

    fn row(&self, phase: u32) -> &[Occupancy] {
        &self.uses[index(phase) * self.width..][..self.width]
    }

    fn change(&mut self, phase: u32, at: usize, by: u64, add: bool, limit: u64) {
        let of = &mut self.uses[index(phase) * self.width + at];
        self.over -= of.amount.saturating_sub(limit);
        of.amount = if add { of.amount + by } else { of.amount - by };
        self.over += of.amount.saturating_sub(limit);
    }

    /// Raises the history cost of overused resources. `limit` takes a phase and a place.
    fn learn(&mut self, history: u32, most: u32, limit: impl Fn(usize, usize) -> u64) {
        let (width, unit) = (self.width.max(1), self.unit);
        for (row, of) in self.uses.iter_mut().enumerate() {
            let over = of.amount.saturating_sub(limit(row / width, row % width));
            if over > 0 {
                let units = to_u32(over.div_ceil(unit).min(4));
                of.history = (of.history + history * units).min(most);
            }
        }
    }

    fn count(&mut self, limit: impl Fn(usize, usize) -> u64) {
        let width = self.width.max(1);
        let over = |(row, of): (usize, &Occupancy)| {
            of.amount.saturating_sub(limit(row / width, row % width))
        };
        self.over = self.uses.iter().enumerate().map(over).sum();
    }
}

/// The cost of using `by` more of a resource.
#[inline]
fn penalty(of: Occupancy, by: u64, limit: u64, unit: u64, present: u64) -> u32 {
    let over = (of.amount + by).saturating_sub(limit);
    if over == 0 {
        return of.history;
    }
    let units = (64 * over.min(1 << 32) / unit).min(1 << 12);
    let base = u64::from(HOP + of.history);
    of.history + to_u32(((base * units * present) >> 12).min(DEAREST))
}

#[derive(Clone)]
pub(super) struct PhaseNegotiation<'a> {
    problem: &'a Problem<'a>,
    config: &'a PhaseConfig,
    /// Clocks that a connection keeps its agents busy, and a link of its route.
    clocks: &'a [[u64; 2]],
    phase_of: Vec<u32>,
    /// The cells of each route; empty while the connection has no place.
    paths: Vec<Vec<u32>>,
    channels: OccupancyTable,
    ports: OccupancyTable,
    links: OccupancyTable,
    /// Channels of a cell in a phase.
    channel_capacity: u64,
    /// Clocks that agents and links may be busy in each phase.
    limits: Vec<u64>,
    /// Clocks that agents may be busy in any phase.
    port_limit: u64,
    present: u64,
    /// Whether agents and links have limits: the row of [`PhaseConfig::even`] and [`PhaseConfig::patience`].
    is_limited: bool,
    rng: ChaCha8Rng,
    pub(super) work: u64,
    search: PhaseRouteSearch,
    /// Scratch: phases by what their ports cost.
    order: Vec<(u32, u32, u32)>,
}

impl<'a> PhaseNegotiation<'a> {
    /// All connections without a place.
    pub(super) fn new(
        problem: &'a Problem<'a>,
        config: &'a PhaseConfig,
        clocks: &'a [[u64; 2]],
        phases: usize,
        channel_capacity: u64,
        seed: u64,
    ) -> Self {
        let total: u64 = clocks.iter().map(|clocks| clocks[0]).sum();
        let mean = (total / to_u64(clocks.len().max(1))).max(1);
        Self {
            problem,
            config,
            clocks,
            phase_of: vec![0; clocks.len()],
            paths: vec![Vec::new(); clocks.len()],
            channels: OccupancyTable::new(problem.cell_count(), phases, 1),
            ports: OccupancyTable::new(problem.port_count, phases, mean),
            links: OccupancyTable::new(problem.edge_count(), phases, mean),
            channel_capacity,
            limits: vec![u64::MAX >> 16; phases],
            port_limit: u64::MAX,
            is_limited: false,
            present: u64::from(config.present_first),
            rng: ChaCha8Rng::seed_from_u64(seed),
            work: 0,
            search: PhaseRouteSearch::new(problem.cell_count()),
            order: Vec::new(),
        }
    }

    /// Phase and route of each connection.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.phase_of.iter().copied().zip(self.paths.iter().map(Vec::as_slice))
    }

    /// For each phase how long its busiest agent or link is busy.
    pub(super) fn loads(&self) -> Vec<u64> {
        (0..to_u32(self.limits.len()))
            .map(|phase| {
                let ports = self.ports.row(phase).iter().map(|of| of.amount);
                let links = self.links.row(phase).iter().zip(&self.problem.capacity);
                let links = links.map(|(of, &capacity)| of.amount / u64::from(capacity));
                ports.chain(links).max().unwrap_or(0)
            })
            .collect()
    }

    /// Sets how long agents and links may be busy in each phase.
    pub(super) fn limit(&mut self, limits: Vec<u64>) {
        self.limits = limits;
        self.is_limited = true;
        let (limits, capacity) = (&self.limits, &self.problem.capacity);
        let port_limit = self.port_limit;
        self.ports.count(|phase, _| limits[phase].min(port_limit));
        self.links.count(|phase, edge| limits[phase] * u64::from(capacity[edge]));
        let kept = self.config.history_kept;
        for table in [&mut self.channels, &mut self.ports, &mut self.links] {
            table.uses.iter_mut().for_each(|of| of.history = of.history * kept / 64);
        }
        self.present = u64::from(self.config.present_first);
    }

    /// Allows each agent one stream in a phase, in each direction, or several that are together no longer than
    /// the longest of all.
    pub(super) fn limit_agents(&mut self) {
        self.port_limit = self.clocks.iter().map(|clocks| clocks[0]).max().unwrap_or(0);
        self.is_limited = true;
    }

    /// The number of phases.
    pub(super) fn phases(&self) -> usize {
        self.limits.len()
    }

    /// Clocks that agents may be busy in a phase.
    fn port_limit(&self, phase: u32) -> u64 {
        self.limits[index(phase)].min(self.port_limit)
    }

    /// Reseeds the random numbers.
    pub(super) fn reseed(&mut self) {
        self.rng = ChaCha8Rng::seed_from_u64(self.rng.random());
    }

    /// Begins with the prices of channels that a negotiation of all phases as one has ended with.
    pub(super) fn adopt_prices(&mut self, whole: &Self) {
        for row in self.channels.uses.chunks_mut(self.channels.width) {
            for (of, price) in row.iter_mut().zip(&whole.channels.uses) {
                of.history = price.history;
            }
        }
    }

    fn overuse(&self) -> u64 {
        let of = |table: &OccupancyTable| table.over.div_ceil(table.unit);
        of(&self.channels) + of(&self.ports) + of(&self.links)
    }

    /// Passes over connections in conflict until nothing is overused, so many passes were made, or
    /// there was no progress for some passes so many times (`cycles`). After each time conflicts cost
    /// little again, so that connections may pass through them to where they settle.
    pub(super) fn settle(&mut self, (cycles, passes): (u32, u32), budget: u64) -> RoutingOutcome {
        let (mut least, mut best) = (u64::MAX, u64::MAX);
        let (mut stalled, mut idle) = (0, 0);
        let before = self.work;
        let is_long = |work: u64| (work - before).saturating_mul(FIRST_PASSES) > budget;
        // As long as nothing is moved, nothing that is overused becomes free.
        let is_fresh = self.paths.iter().all(|path| path.is_empty());
        for pass in 0..passes {
            let open = self.open();
            for x in open {
                self.place(index(x));
                if self.work >= budget || self.problem.interrupt.is_requested() {
                    return RoutingOutcome::Exhausted;
                }
                if pass == 0 && is_fresh && is_long(self.work) && self.overuse() > 0 {
                    return RoutingOutcome::TooLarge;
                }
            }
            let now = self.overuse();
            if now == 0 {
                return RoutingOutcome::Settled;
            }
            if pass == 0 && is_long(self.work) {
                return RoutingOutcome::TooLarge;
            }
            self.learn();
            stalled = if now < least { 0 } else { stalled + 1 };
            least = least.min(now);
            if stalled > self.config.patience[usize::from(self.is_limited)] {
                idle = if least < best { 1 } else { idle + 1 };
                if idle > cycles {
                    return RoutingOutcome::Stalled;
                }
                best = best.min(least);
                (least, stalled) = (u64::MAX, 0);
                self.present = u64::from(self.config.present_first);
            }
        }
        RoutingOutcome::Stalled
    }

    /// Connections without a place or in conflict, and a few others, in random order; at first
    /// the far ones first, which are the hardest to place.
    fn open(&mut self) -> Vec<u32> {
        let all = 0..to_u32(self.paths.len());
        let shaken = self.config.shaken;
        let mut open = Vec::new();
        for x in all {
            if self.is_in_conflict(index(x)) || self.rng.random_range(0..shaken) == 0 {
                open.push(x);
            }
        }
        open.shuffle(&mut self.rng);
        open.sort_by_key(|&x| match self.paths[index(x)].is_empty() {
            true => Reverse(u32::from(self.problem.hops(index(x))) + 1),
            false => Reverse(0),
        });
        open
    }

    fn is_in_conflict(&self, x: usize) -> bool {
        let (phase, path) = (self.phase_of[x], &self.paths[x]);
        let limit = self.limits[index(phase)];
        let row = self.channels.row(phase);
        let channels = self.channel_capacity;
        if path.is_empty() || path.iter().any(|&cell| row[index(cell)].amount > channels) {
            return true;
        }
        let row = self.ports.row(phase);
        let most = self.port_limit(phase);
        if self.problem.ports[x].iter().any(|&port| row[index(port)].amount > most) {
            return true;
        }
        let row = self.links.row(phase);
        path.windows(2).any(|pair| {
            let edge = self.problem.edge(pair[0], pair[1]);
            row[edge].amount > limit * u64::from(self.problem.capacity[edge])
        })
    }

    /// Raises the history costs of overused resources.
    fn learn(&mut self) {
        let (history, most) = (self.config.history, self.config.history_most);
        let (limits, capacity) = (&self.limits, &self.problem.capacity);
        let channels = self.channel_capacity;
        self.channels.learn(history, most, |_, _| channels);
        let port_limit = self.port_limit;
        self.ports.learn(history, most, |phase, _| limits[phase].min(port_limit));
        let limit = |phase: usize, edge: usize| limits[phase] * u64::from(capacity[edge]);
        self.links.learn(history, most, limit);
        let most = u64::from(self.config.present_most);
        let growth = u64::from(self.config.present_growth);
        self.present = (self.present + (self.present * growth).div_ceil(64)).min(most);
        let resources = self.channels.uses.len() + self.ports.uses.len() + self.links.uses.len();
        self.work += to_u64(resources) / 32 + to_u64(self.paths.len()) / 4;
    }

    /// Books the resources of a connection, or releases them.
    fn book(&mut self, x: usize, path: &[u32], add: bool) {
        let phase = self.phase_of[x];
        let limit = self.limits[index(phase)];
        let [busy, on_link] = self.clocks[x];
        for &cell in path {
            self.channels.change(phase, index(cell), 1, add, self.channel_capacity);
        }
        let [source, target] = self.problem.ports[x];
        let most = self.port_limit(phase);
        self.ports.change(phase, index(source), busy, add, most);
        if target != source {
            self.ports.change(phase, index(target), busy, add, most);
        }
        for pair in path.windows(2) {
            let edge = self.problem.edge(pair[0], pair[1]);
            let limit = limit * u64::from(self.problem.capacity[edge]);
            self.links.change(phase, edge, on_link, add, limit);
        }
    }

    /// Gives a connection the cheapest phase and route: in the phases in which its present route
    /// would cost least, others are searched for.
    fn place(&mut self, x: usize) {
        let mut path = std::mem::take(&mut self.paths[x]);
        if !path.is_empty() {
            self.book(x, &path, false);
        }
        let salt: u32 = self.rng.random();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for phase in 0..to_u32(self.limits.len()) {
            let cost = self.port_cost(x, phase) + self.path_cost(x, phase, &path, salt);
            let tie = (phase ^ salt).wrapping_mul(0x9e37_79b9) >> 16;
            order.push((cost, tie, phase));
        }
        self.work += to_u64(order.len() * (path.len() + 1) / 16);
        let tries = index(self.config.tries).min(order.len());
        if order.len() > tries {
            order.select_nth_unstable(tries);
        }
        order[..tries].sort_unstable();
        let (mut least, _, mut best) = order[0];
        if path.is_empty() {
            least = u32::MAX;
        }
        for &(_, _, phase) in &order[..tries] {
            let ports = self.port_cost(x, phase);
            let limit = if least == u32::MAX { least } else { least.saturating_sub(ports) };
            if let Some(route) = self.route(x, phase, limit, salt) {
                (least, best) = (ports + route, phase);
                self.search.trace(self.problem, x, &mut path);
            }
        }
        self.order = order;
        self.phase_of[x] = best;
        self.book(x, &path, true);
        self.paths[x] = path;
    }

    /// What links and channels of a route cost in a phase.
    fn path_cost(&self, x: usize, phase: u32, path: &[u32], salt: u32) -> u32 {
        let costs = self.costs(x, phase, salt);
        let cells = path.iter().map(|&cell| costs.cell(cell));
        let edges = path.windows(2).map(|pair| costs.edge(self.problem.edge(pair[0], pair[1])));
        cells.chain(edges).sum()
    }

    /// What the ports of a connection cost in a phase.
    fn port_cost(&self, x: usize, phase: u32) -> u32 {
        let row = self.ports.row(phase);
        let (limit, unit) = (self.port_limit(phase), self.ports.unit);
        let of = |port: u32| {
            let of = row[index(port)];
            let even = u64::from(self.config.even[usize::from(self.is_limited)])
                * of.amount.min(1 << 32)
                / unit;
            let penalty = penalty(of, self.clocks[x][0], limit, unit, self.present);
            penalty + to_u32(even.min(1 << 12))
        };
        let [source, target] = self.problem.ports[x];
        of(source) + if target == source { 0 } else { of(target) }
    }

    /// The cost of the cheapest route in a phase if it is less than `most`.
    fn route(&mut self, x: usize, phase: u32, most: u32, salt: u32) -> Option<u32> {
        let mut search = std::mem::take(&mut self.search);
        let costs = self.costs(x, phase, salt);
        let limits = (most, self.config.detour);
        let (edge, cell) = (|edge| costs.edge(edge), |cell| costs.cell(cell));
        let found = search.find(self.problem, x, limits, edge, cell);
        self.work += std::mem::take(&mut search.work);
        self.search = search;
        found
    }

    fn costs(&self, x: usize, phase: u32, salt: u32) -> Costs<'_> {
        Costs {
            capacity: &self.problem.capacity,
            links: self.links.row(phase),
            cells: self.channels.row(phase),
            clocks: self.clocks[x][1],
            limit: self.limits[index(phase)],
            unit: self.links.unit,
            channel_capacity: self.channel_capacity,
            present: self.present,
            salt,
        }
    }
}

/// The costs of links and cells for a connection in a phase.
struct Costs<'a> {
    capacity: &'a [u16],
    links: &'a [Occupancy],
    cells: &'a [Occupancy],
    clocks: u64,
    limit: u64,
    unit: u64,
    channel_capacity: u64,
    present: u64,
    /// Breaks ties between links, differently for each search.
    salt: u32,
}

impl Costs<'_> {
    #[inline]
    fn edge(&self, edge: usize) -> u32 {
        // The mask makes the conversion free: this is called for every edge of a search.
        let low = to_u32(edge & index(u32::MAX));
        let jitter = (low ^ self.salt).wrapping_mul(0x85eb_ca6b) >> 30;
        let limit = self.limit * u64::from(self.capacity[edge]);
        HOP + jitter + penalty(self.links[edge], self.clocks, limit, self.unit, self.present)
    }

    #[inline]
    fn cell(&self, cell: u32) -> u32 {
        penalty(self.cells[index(cell)], 1, self.channel_capacity, 1, self.present)
    }
}
