//! Passes of the negotiation: connections in conflict get the cheapest phase and route.
//!
//! A pass divides the blocks into ranges of two, which differ from pass to pass, so that
//! connections can move to any block. Ranges are independent and run in parallel.

use conset_ir::convert::{index, to_u64};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::DenseConfig;
use super::block::{Block, LANES, Member, Prices, used_ports};
use super::routes::RouteSearch;
use crate::problem::{Incoming, Problem};

/// The price of an agent's overuse in that of a link: a phase with two streams at an agent may take
/// twice as long.
const PORT_WEIGHT: i16 = 3;

/// The maximum present price, so that products with it have 16 bits.
const PRESENT_LIMIT: i16 = 256;

/// What all passes and ranges use.
pub(super) struct Context<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) config: &'a DenseConfig,
    pub(super) incoming: Incoming,
    /// The length of each connection ([`super::shape::lengths`]).
    pub(super) clocks: Vec<u64>,
    pub(super) seed: u64,
}

impl Context<'_> {
    /// Negotiates until no resource is overused, or for so much work. Returns the work done.
    ///
    /// A cell with too many routes forces some of them into another phase, while a link that is busy for
    /// too long only makes its phase longer. So at last, channels are negotiated alone.
    pub(super) fn negotiate(&self, blocks: &mut [Block], budget: u64) -> u64 {
        let mut work = 0;
        let DenseConfig { passes, channel_passes, .. } = *self.config;
        for pass in 0..passes + channel_passes {
            let only_channels = pass >= passes;
            if only_channels && !blocks.iter().any(Block::is_any_crowded) {
                break;
            }
            work += self.pass(blocks, pass, only_channels);
            let next = self.prices(pass + 1);
            let over: Vec<bool> = blocks.par_iter_mut().map(|b| b.learn(next)).collect();
            let is_over = work >= budget || self.problem.interrupt.is_requested();
            if !over.contains(&true) || is_over {
                break;
            }
        }
        work
    }

    /// A pass over all blocks; with `only_channels`, over the members that lack channels. Returns the
    /// work done.
    fn pass(&self, blocks: &mut [Block], pass: u32, only_channels: bool) -> u64 {
        let prices = self.prices(pass);
        let start = index(if blocks.len() > 2 { pass % 2 } else { 0 });
        let (first, rest) = blocks.split_at_mut(start);
        let ranges: Vec<&mut [Block]> = std::iter::once(first).chain(rest.chunks_mut(2)).collect();
        let run = |(row, range): (usize, &mut [Block])| {
            let stream = (u64::from(pass) << 32) + to_u64(row);
            RangePass::new(self, prices, only_channels, stream).run(range)
        };
        ranges.into_par_iter().enumerate().map(run).sum()
    }

    /// The prices of a pass.
    fn prices(&self, pass: u32) -> Prices {
        let [first, most] = self.config.present.map(u64::from);
        let growth = u64::from(self.config.present_growth);
        let grown = (0..pass).fold(first << 16, |price, _| price + price * growth / 64);
        let small = |price: u64| i16::try_from(price).unwrap_or(i16::MAX);
        let load = small((grown >> 16).min(most)).min(PRESENT_LIMIT);
        let only_channels = (pass + 1).saturating_sub(self.config.passes);
        let weight = small((1 + only_channels).min(self.config.channel_weight).into());
        Prices {
            channel: load.saturating_mul(weight),
            load,
            history: small(self.config.history.into()),
        }
    }
}

/// A pass over the members of some blocks.
struct RangePass<'a> {
    context: &'a Context<'a>,
    prices: Prices,
    /// Only the members that lack channels move.
    only_channels: bool,
    rng: ChaCha8Rng,
    search: RouteSearch,
    /// Scratch: a route.
    route: Vec<u32>,
}

impl<'a> RangePass<'a> {
    fn new(context: &'a Context<'a>, prices: Prices, only_channels: bool, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(context.seed);
        rng.set_stream(stream);
        let search = RouteSearch::new(context.problem.cell_count());
        Self { context, prices, only_channels, rng, search, route: Vec::new() }
    }

    /// Places the members without a place or in conflict, and a few others, in random order.
    fn run(mut self, blocks: &mut [Block]) -> u64 {
        let mut members: Vec<(usize, Member)> = Vec::new();
        for (row, block) in blocks.iter_mut().enumerate() {
            members.extend(std::mem::take(&mut block.members).into_iter().map(|m| (row, m)));
        }
        let mut open = Vec::new();
        for (at, (row, member)) in members.iter().enumerate() {
            let is_shaken =
                !self.only_channels && self.rng.random_range(0..self.context.config.shaken) == 0;
            if is_shaken || !self.may_stay(&blocks[*row], member) {
                open.push((at, is_shaken));
            }
        }
        open.shuffle(&mut self.rng);
        for (at, is_shaken) in open {
            // What is left has no place then, so the blocks are of no use.
            if self.context.problem.interrupt.is_requested() {
                break;
            }
            let (row, member) = &mut members[at];
            // A member that left before may have resolved the conflict.
            if is_shaken || !self.may_stay(&blocks[*row], member) {
                *row = self.place(blocks, *row, member);
            }
        }
        for (row, member) in members {
            blocks[row].members.push(member);
        }
        self.search.work
    }

    /// Whether a member has a place without a conflict.
    fn may_stay(&self, block: &Block, member: &Member) -> bool {
        let problem = self.context.problem;
        let in_conflict = match self.only_channels {
            true => block.lacks_channels(problem, member),
            false => block.is_in_conflict(problem, member),
        };
        member.is_placed && !in_conflict
    }

    /// Gives a member the cheapest phase and route, and returns the row of its block.
    fn place(&mut self, blocks: &mut [Block], row: usize, member: &mut Member) -> usize {
        let Context { problem, incoming, clocks, .. } = self.context;
        let x = index(member.connection);
        let present = self.prices.load;
        if member.is_placed {
            blocks[row].book(problem, member, clocks[x], self.prices, false);
        }
        self.search.aim(problem, incoming, x);
        let mut best: Option<(i16, usize, usize)> = None;
        for (row, block) in blocks.iter().enumerate() {
            let loads = block.loads(clocks[x]);
            let mut prices = self.search.prices(block, &loads, present);
            let port_loads = block.port_loads(&loads);
            let mut port_prices = [0; LANES];
            for port in used_ports(problem, x) {
                block.add_load_prices(port, &port_loads, present, &mut port_prices);
            }
            for (price, port) in prices.iter_mut().zip(port_prices) {
                *price = price.saturating_add(port.saturating_mul(PORT_WEIGHT));
            }
            block.add_length_prices(&loads, &mut prices);
            // Starts at a random lane, so that ties are broken at random.
            let first = self.rng.random_range(0..block.lanes());
            let lanes = (first..block.lanes()).chain(0..first);
            let lane = lanes.min_by_key(|&lane| prices[lane]).unwrap_or(0);
            if best.is_none_or(|best| prices[lane] < best.0) {
                best = Some((prices[lane], row, lane));
                let route = &mut self.route;
                self.search.trace((block, lane), &loads, present, &mut self.rng, route);
            }
        }
        let (_, row, lane) = best.expect("there are blocks");
        (member.lane, member.is_placed) = (lane, true);
        member.edges.clone_from(&self.route);
        blocks[row].book(problem, member, clocks[x], self.prices, true);
        row
    }
}
