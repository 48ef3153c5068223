//! Large sets, packed one phase at a time from a window of connections.
//!
//! With many connections to choose from, a phase can be filled almost to its last channel: some
//! connection fits whatever is free. So phases are made one after the other. Each consists of a few
//! time slots, in which a link and a port carry one stream. A phase is filled from the *pool* of
//! unplaced connections, long ones first, over shortest routes. Large neighbourhood search (Shaw,
//! CP 1998) then improves it for its share of the budget: a few streams next to an idle entry are
//! removed, the free entries are filled again, and the worse of the two phases is discarded. Short
//! connections are distributed over the phases, because they fill small gaps.
//!
//! The slots of a phase are as long as its longest stream, so the pool is a *window*: connections
//! enter it in descending order of words, as many as some phases take, or as are almost as long as
//! the longest. Each phase starts with the longest of them, so that none is left behind.
//!
//! Near the end the pool is small, and phases would be filled less and less. The last ones are
//! therefore planned together, as in [`crate::slot_pathfinder`].
//!
//! Sets with an order or with required bandwidths or latencies are not supported.

mod network;
mod packing;
mod pool;

use std::cmp::Reverse;
use std::sync::Arc;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Bounds, ConnectionSet};

use crate::plan::{Found, Plan, Stream};
use crate::problem::Problem;
use crate::slot_pathfinder;
use network::LaneNetwork;
use packing::{Placed, Pooled, WindowPacking};

/// The weights of the packing.
#[derive(Clone, Debug)]
pub struct WindowedConfig {
    /// The minimum size of the pool in phases, and an addition to it that is divided by the phases
    /// of the whole set: with few phases a pool is soon too small to choose from.
    pub window: [u32; 2],
    /// The pool also contains connections that are shorter than its longest by less than this share
    /// of a slot and of the context switch, in 64ths.
    pub uneven: u32,
    /// The share of a phase that is filled with the longest connections first, in 64ths.
    pub first: u32,
    /// The number of connections shorter than the mean in a phase, in 64ths of its share of them.
    pub short_share: u32,
    /// The right shift of a random 32-bit number that breaks ties between connections; after the
    /// shift, 16 are worth one hop.
    pub noise: u32,
    /// The number of cells examined for an idle entry.
    pub holes: u32,
    /// The number of streams removed at a time.
    pub removed: u32,
    /// The number of cells besides the freed ones from which routes into them are searched.
    pub sources: u32,
    /// The worth that a change may lose at first, in 64ths of a channel of the longest connection.
    pub less: u32,
    /// The expected utilisation of links and of channels, in 64ths, from which the number of slots
    /// of a phase is chosen.
    pub filled: [u32; 2],
    /// The size of a pool, in 64ths of a phase, at which the utilisation is half of that.
    pub half_filled: u32,
    /// The number of phases that are negotiated together at the end: the bound of the set divided
    /// by the first number, at least the second and at most the third.
    pub last: [u32; 3],
    /// The initial channel utilisation of that negotiation, in 64ths.
    pub last_filled: u32,
}

impl Default for WindowedConfig {
    fn default() -> Self {
        Self {
            window: [20, 32],
            uneven: 6,
            first: 56,
            short_share: 68,
            noise: 14,
            holes: 64,
            removed: 1,
            sources: 64,
            less: 64,
            filled: [59, 62],
            half_filled: 24,
            last: [8, 4, 20],
            last_filled: 52,
        }
    }
}

/// The default work budget for a problem, in cells expanded by searches.
pub fn budget(problem: &Problem<'_>) -> u64 {
    to_u64(problem.set.len()) * PER_CONNECTION
}

const PER_CONNECTION: u64 = 1 << 12;

/// The budget of the negotiation at the end, for each of its connections.
const PER_LAST: u64 = 1 << 16;

/// The maximum number of hops of a connection.
const FARTHEST: u16 = 1 << 12;

/// Plans a set. Returns `None` if it is empty or has an order or requirements, or if routes are
/// very long.
pub fn plan(
    problem: &Problem<'_>,
    config: &WindowedConfig,
    budget: u64,
    seed: u64,
) -> Option<Found> {
    let set = problem.set;
    if !problem.is_plain() {
        return None;
    }
    let hops: Vec<u16> = (0..set.len()).map(|x| problem.hops(x)).collect();
    if hops.iter().any(|&hops| hops > FARTHEST) {
        return None;
    }
    let network = LaneNetwork::new(problem);
    let mut packing = WindowPacking::new(problem, config, &network, &hops, seed);
    let Filled { phases, last } = fill(problem, config, &mut packing, budget, seed)?;
    let mut plan = plan_of(problem, &network, phases);
    plan.compact(problem);
    if let Some((first, last)) = last {
        let phases = plan.phases[..first].iter().cloned().chain(last).collect();
        let mut other = Plan { phases, clocks: 0 };
        other.compact(problem);
        plan = if other.clocks < plan.clocks { other } else { plan };
    }
    Some(Found { plan, work: packing.work })
}

/// Phases in which every connection has a place.
struct Filled {
    phases: Vec<Vec<Placed>>,
    /// Phases that may stand for those from so many on.
    last: Option<(usize, Vec<Vec<Stream>>)>,
}

/// Makes phases until every connection has a place, the last ones in two ways.
fn fill(
    problem: &Problem<'_>,
    config: &WindowedConfig,
    packing: &mut WindowPacking<'_>,
    budget: u64,
    seed: u64,
) -> Option<Filled> {
    let words = |x: u32| problem.set.connections()[index(x)].words;
    let mut by_words: Vec<u32> = (0..to_u32(problem.set.len())).collect();
    by_words.sort_by_key(|&x| Reverse(words(x)));
    let all = packing.sums(&by_words);
    let fewest = u64::from(problem.bounds.phases.max(1));
    let each = all.connections.div_ceil(fewest);
    let [window, few] = config.window.map(u64::from);
    let least = each * (window + few / fewest);
    let [part, fewest_last, most_last] = config.last;
    let mut may_last = Some((problem.bounds.phases / part).clamp(fewest_last, most_last));
    let (mut last, mut together_work) = (None, 0);
    let mut phases = Vec::new();
    // Those before `oldest` have a place, those from `next` on are not in the pool yet.
    let (mut oldest, mut next) = (0, 0);
    while let Some(&x) = by_words.get(oldest) {
        if oldest < next && !packing.is_pooled(x) {
            oldest += 1;
            continue;
        }
        if problem.interrupt.is_requested() {
            return None;
        }
        let longest = words(x);
        let slack = u64::from(longest) + problem.switch / problem.word_clocks / 4;
        let slack = slack * u64::from(config.uneven) / 64;
        while let Some(&x) = by_words.get(next)
            && (packing.pooled.connections < least
                || u64::from(words(x)) + slack >= u64::from(longest))
        {
            packing.offer(x);
            next += 1;
        }
        let needs = Needs::new(problem, &all, &packing.pooled);
        packing.share(to_u64(needs.phases.div_ceil(64)));
        let slots = slots(problem, config, &needs, longest);
        if next == by_words.len()
            && let Some(_) = may_last.take_if(|last| needs.phases <= 64 * u128::from(*last))
        {
            let left: Vec<u32> =
                by_words.iter().copied().filter(|&x| packing.is_pooled(x)).collect();
            let count = to_u32(needs.phases.div_ceil(u128::from(config.last_filled)));
            let bounds = needs.bounds(problem);
            let budget = budget.min(to_u64(left.len()) * PER_LAST);
            if let Some(found) = together((problem, bounds), &left, (count, slots), budget, seed) {
                together_work = found.work;
                last = Some((phases.len(), found.plan.phases));
            }
        }
        packing.start(slots);
        let before = packing.pooled.connections;
        let mut first = each * u64::from(config.first) / 64;
        for &x in &by_words[oldest..next] {
            if first > 0 && packing.is_pooled(x) && packing.place_one(x) {
                first -= 1;
            }
        }
        packing.fill();
        let placed = before - packing.pooled.connections;
        if placed == 0 {
            return None;
        }
        let left = before + to_u64(by_words.len() - next);
        let budget = u128::from(budget.saturating_sub(packing.work));
        let effort = budget * u128::from(placed) / u128::from(left);
        packing.better(to_u64(effort), u64::from(longest.max(1)));
        phases.push(packing.finish());
    }
    packing.work += together_work;
    Some(Filled { phases, last })
}

/// Negotiates the places of some connections.
fn together(
    (problem, bounds): (&Problem<'_>, Bounds),
    members: &[u32],
    shape: (u32, u32),
    budget: u64,
    seed: u64,
) -> Option<Found> {
    let connections = members.iter().map(|&x| problem.set.connections()[index(x)].clone());
    let set = Arc::new(ConnectionSet::new("last", connections.collect()).ok()?);
    let part = Problem::new(problem.machine, &set, bounds)?;
    let part = part.interrupted_by(problem.interrupt.clone());
    let mut found = slot_pathfinder::plan_full_phases(&part, shape, budget, seed)?;
    for stream in found.plan.phases.iter_mut().flatten() {
        stream.connection = members[index(stream.connection)];
    }
    Some(found)
}

/// What the connections of a pool need at least, by the bounds of the whole set.
struct Needs {
    /// Phases, in 64ths.
    phases: u128,
    /// Clocks beside the switches.
    clocks: u128,
    /// Words of a connection on average.
    words: u64,
}

impl Needs {
    fn new(problem: &Problem<'_>, all: &Pooled, pooled: &Pooled) -> Self {
        let bounds = &problem.bounds;
        let switches = u64::from(bounds.phases) * problem.switch;
        let clocks = u128::from(bounds.clocks.saturating_sub(switches).max(1));
        Self {
            phases: (u128::from(bounds.phases.max(1)) * 64 * u128::from(pooled.channels))
                .div_ceil(u128::from(all.channels)),
            clocks: (clocks * u128::from(pooled.word_cells)).div_ceil(u128::from(all.word_cells)),
            words: pooled.words / pooled.connections.max(1),
        }
    }

    /// The same as bounds.
    fn bounds(&self, problem: &Problem<'_>) -> Bounds {
        let phases = to_u32(self.phases.div_ceil(64));
        let clocks = to_u64(self.clocks) + u64::from(phases) * problem.switch;
        Bounds { phases, clocks, ..problem.bounds }
    }
}

/// Slots of a phase whose longest stream has so many words: as many as make its clocks, the switch
/// included, fewest for what it carries. Few slots leave channels idle, many links.
fn slots(problem: &Problem<'_>, config: &WindowedConfig, needs: &Needs, longest: u32) -> u32 {
    let longest = u128::from(longest.max(1));
    let clocks = longest * u128::from(problem.word_clocks) + u128::from(problem.setup);
    let [links, channels] = config.filled.map(u128::from);
    let links = links * needs.phases / (needs.phases + u128::from(config.half_filled));
    // Shares of what the pool needs, in 2^32ths. Slots are as long as the longest stream.
    let by_links = (links << 26) * clocks * u128::from(needs.words.max(1));
    let by_links = by_links / (needs.clocks * longest).max(1);
    let by_channels = (channels << 32) / needs.phases.max(1);
    let cost = |&count: &u32| {
        let time = u128::from(problem.switch) + u128::from(count) * clocks;
        let share = (by_links * u128::from(count)).min(by_channels).clamp(1, 1 << 32);
        (time << 32) / share
    };
    (1..=64).min_by_key(cost).unwrap_or(1)
}

/// The plan of packed phases, the streams of each in the order of their slots.
fn plan_of(problem: &Problem<'_>, network: &LaneNetwork, phases: Vec<Vec<Placed>>) -> Plan {
    let connections = problem.set.connections();
    let stream = |placed: Placed| {
        let connection = &connections[index(placed.connection)];
        let heads = placed.lanes.iter().map(|&lane| network.head(index(lane)));
        Stream {
            connection: placed.connection,
            words: connection.words,
            start: 0,
            cells: std::iter::once(connection.source.0).chain(heads).collect(),
        }
    };
    let phases = phases.into_iter().map(|mut placed| {
        let words = |x: u32| Reverse(connections[index(x)].words);
        placed.sort_by_key(|s| (s.slot, words(s.connection), s.connection));
        placed.into_iter().map(stream).collect()
    });
    Plan { phases: phases.collect(), clocks: 0 }
}
