//! Windows: large sets, packed a phase at a time.
//!
//! With very many connections to choose from, a phase can be filled almost to the last channel:
//! whatever is free, some connection fits into it. So phases are made one after the other. Each is
//! a few slots of time in which a link and a port carry one stream. It is filled from the *pool*
//! of connections that have no place yet, long ones first, over shortest routes; then it is changed
//! piece by piece for as long as its share of the budget lasts, as in large neighbourhood search
//! (Shaw, CP 1998): a few streams beside a hole are taken out, what is free is filled anew, and the
//! worse of the two is dropped. Short connections are shared out over the phases, as they fill
//! holes.
//!
//! The slots of a phase are as long as its longest stream, so the pool is a *window*: connections
//! enter it in the order of their words, as many as are almost as long, or as some phases take.
//!
//! Sets with an order or with requirements of bandwidth or latency are not planned here.

mod network;
mod packing;
mod pool;

use std::cmp::Reverse;

use conset_ir::Connection;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::plan::{Plan, Stream};
use crate::problem::Problem;
use crate::slots::Found;
use network::Network;
use packing::Packing;

/// The weights of the packing.
#[derive(Clone, Debug)]
pub struct Config {
    /// Phases that the pool lasts for at least, as far as there are connections.
    pub window: u32,
    /// Connections that are shorter than the longest of the pool by less than one in so many parts
    /// of a slot and its share of the switch are in the pool, too.
    pub uneven: u32,
    /// Connections shorter than the mean that a phase may take, in 64ths of its share.
    pub short_share: u32,
    /// Bits by which a random number of 32 bits is cut before 16 of them are a hop.
    pub noise: u32,
    /// Cells that are looked at for a hole.
    pub holes: u32,
    /// Streams that are taken out at a time.
    pub removed: u32,
    /// Cells beside the freed ones from which routes into them are looked for.
    pub sources: u32,
    /// How much worth a change may lose in the beginning, in 64ths of a channel of the longest.
    pub less: u32,
    /// Shares of the links and of the channels that packing uses, in 64ths: for the number of slots.
    pub filled: [u32; 2],
    /// Slots of a phase at most.
    pub slots: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 6,
            uneven: 10,
            short_share: 68,
            noise: 14,
            holes: 64,
            removed: 1,
            sources: 64,
            less: 64,
            filled: [59, 62],
            slots: 64,
        }
    }
}

/// The usual budget of a set, in cells that searches look at.
pub fn budget(problem: &Problem<'_>) -> u64 {
    let len = problem.set.len() as u64;
    let doublings = u64::from((len >> 13).max(1).ilog2());
    len * (1 << 14) * 3 / (3 + 2 * doublings)
}

/// Hops of the farthest connection of a set that is planned.
const FARTHEST: u16 = 1 << 12;

/// Plans a set; `None` where the set is empty or has an order or requirements, or where routes are
/// very long.
pub fn plan(problem: &Problem<'_>, config: &Config, budget: u64, seed: u64) -> Option<Found> {
    let set = problem.set;
    let asks = |c: &Connection| c.min_bandwidth.is_some() || c.max_latency.is_some();
    if set.is_empty() || !set.order().is_empty() || set.connections().iter().any(asks) {
        return None;
    }
    let hops: Vec<u16> = (0..set.len()).map(|x| problem.hops(x)).collect();
    if hops.iter().any(|&hops| hops > FARTHEST) {
        return None;
    }
    let network = Network::new(problem);
    let packing = Packing::new(problem, config, &network, &hops, seed);
    let mut windows = Windows { problem, config, packing, waiting: Vec::new(), next: 0, oldest: 0 };
    windows.fill(budget, seed)?;
    let Windows { packing, .. } = windows;
    let mut plan = plan_of(problem, &network, &packing);
    plan.compact(problem);
    Some(Found { plan, work: packing.work, passes: packing.tries })
}

struct Windows<'a> {
    problem: &'a Problem<'a>,
    config: &'a Config,
    packing: Packing<'a>,
    /// All connections, the longest first.
    waiting: Vec<u32>,
    /// How many of them have entered the pool.
    next: usize,
    /// Of these the first that is still in the pool, or one before it.
    oldest: usize,
}

impl Windows<'_> {
    /// Makes phases until every connection has a place.
    fn fill(&mut self, budget: u64, seed: u64) -> Option<()> {
        let words = |x: u32| self.problem.set.connections()[x as usize].words;
        let mut waiting: Vec<u32> = (0..self.problem.set.len() as u32).collect();
        waiting.shuffle(&mut ChaCha8Rng::seed_from_u64(!seed));
        waiting.sort_by_key(|&x| Reverse(words(x)));
        let all: u64 = waiting.iter().map(|&x| self.packing.worth_of(x)).sum();
        self.waiting = waiting;
        // What a phase takes in words times channels, by the bound of phases.
        let phases = u64::from(self.problem.bounds.phases.max(1));
        let connections = self.problem.set.len() as u64;
        while self.next < self.waiting.len() || self.packing.pool.len() > 0 {
            self.admit(connections.div_ceil(phases) * u64::from(self.config.window));
            let longest = self.longest();
            let pooled = self.packing.pool.len() as u64;
            self.packing.share(pooled * phases / connections);
            let phase = self.packing.add_phase(self.slots(longest * self.problem.word_clocks) as u32);
            let before = self.packing.pooled_worth;
            self.packing.fill(phase);
            let taken = before - self.packing.pooled_worth;
            if taken == 0 {
                return None;
            }
            let effort = (u128::from(budget) * u128::from(taken) / u128::from(all.max(1))) as u64;
            self.packing.better(phase, effort, longest.max(1));
        }
        Some(())
    }

    /// Lets connections into the pool: at least so many in all, and those almost as long as the
    /// longest there.
    fn admit(&mut self, least: u64) {
        let problem = self.problem;
        let clocks = |x: u32| {
            u64::from(problem.set.connections()[x as usize].words) * problem.word_clocks
        };
        let pool = &self.packing.pool;
        while self.oldest < self.next && !pool.contains(self.waiting[self.oldest]) {
            self.oldest += 1;
        }
        let longest = self.waiting.get(self.oldest).map_or(0, |&x| clocks(x));
        let slack = (longest + problem.switch / self.slots(longest)) / u64::from(self.config.uneven);
        while let Some(&x) = self.waiting.get(self.next)
            && (self.packing.pool.len() as u64 <= least || clocks(x) + slack >= longest)
        {
            self.packing.offer(x);
            self.next += 1;
        }
    }

    /// Words of the longest connection of the pool.
    fn longest(&self) -> u64 {
        let x = self.waiting[self.oldest];
        u64::from(self.problem.set.connections()[x as usize].words)
    }

    /// Slots of a phase whose longest stream takes so many clocks: as many as make its time, the
    /// switch included, shortest for what it carries. Few slots leave channels idle, many links.
    fn slots(&self, longest: u64) -> u64 {
        let problem = self.problem;
        let bounds = &problem.bounds;
        let phases = u64::from(bounds.phases.max(1));
        // By the bounds, what a phase is good for in clocks, and the mean of a connection.
        let phase = (bounds.clocks / phases).saturating_sub(problem.switch).max(1);
        let words = problem.set.connections().iter().map(|c| u64::from(c.words)).sum::<u64>();
        let mean = (words * problem.word_clocks / problem.set.len() as u64 + problem.setup).max(1);
        let [links, channels] = self.config.filled.map(u128::from);
        let slot = u128::from(longest + problem.setup);
        let cost = |slots: &u64| {
            let carried = (links * u128::from(*slots) * u128::from(mean)).min(channels * u128::from(phase));
            (u128::from(problem.switch) + u128::from(*slots) * slot) * (1 << 20) / carried.max(1)
        };
        (1..=u64::from(self.config.slots)).min_by_key(cost).unwrap_or(1)
    }
}

/// The plan of a packing, the streams of each phase in the order of their slots.
fn plan_of(problem: &Problem<'_>, network: &Network, packing: &Packing<'_>) -> Plan {
    let connections = problem.set.connections();
    let stream = |placed: &packing::Stream| {
        let connection = &connections[placed.connection as usize];
        let heads = placed.lanes.iter().map(|&lane| network.head(lane as usize));
        Stream {
            connection: placed.connection,
            words: connection.words,
            start: 0,
            cells: std::iter::once(connection.source.0).chain(heads).collect(),
        }
    };
    let phases = packing.placed().into_iter().map(|mut placed| {
        let words = |x: u32| Reverse(connections[x as usize].words);
        placed.sort_by_key(|s| (s.slot, words(s.connection), s.connection));
        placed.into_iter().map(stream).collect()
    });
    Plan { phases: phases.collect(), clocks: 0 }
}
