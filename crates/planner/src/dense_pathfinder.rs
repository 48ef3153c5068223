//! Negotiated congestion over the phases of large sets, with all phases searched at once.
//!
//! Large sets of long routes need hundreds of phases, and their time depends on how full the
//! channels are and how evenly the links are loaded. Each connection gets a phase and a shortest
//! route (`routes` finds the cheapest of all phases at once). Connections that overuse channels,
//! links or agents are moved while the cost of overused resources rises (`negotiation`).
//! Connections are sorted by length, latency included, and each phase expects those of nearly equal
//! length (`shape`). How many phases there are depends on the cells that most routes cross (`crowding`).
//!
//! Where conflicts remain in the end, connections leave their phases (`eviction`) and are planned
//! again in phases of their own.
//!
//! Streams of a phase share links: a phase takes about as long as its busiest link or agent.
//! Sets with an order or with required bandwidths or latencies are not supported.

mod block;
mod crowding;
mod eviction;
mod negotiation;
mod routes;
mod shape;

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use rayon::prelude::*;

use crate::plan::{Found, Plan, Stream};
use crate::problem::Problem;
use crate::work::Limits;
use block::{Block, Member, block_bytes, blocks};
use eviction::Late;
use negotiation::Context;
use shape::{PhaseShape, Sums, counts, lengths, shapes};

/// The weights of the negotiation.
#[derive(Clone, Debug)]
pub struct DenseConfig {
    /// The present price of an overuse in the first pass, and at most.
    pub present: [u32; 2],
    /// The growth of the present price per pass, in 64ths.
    pub present_growth: u32,
    /// The history cost that each overuse of a resource adds per pass.
    pub history: u32,
    /// In a pass, one in `shaken` connections without a conflict is moved as well.
    pub shaken: u32,
    /// The maximum number of passes.
    pub passes: u32,
    /// The maximum number of passes behind them in which channels are negotiated alone.
    pub channel_passes: u32,
    /// The price of a channel in that of a load in these passes, at most.
    pub channel_weight: u32,
    /// The share of the channels and of the links that is used, in 64ths, from which the number of
    /// phases is chosen.
    pub filled: [u32; 2],
    /// The share of the channels of the busiest cells that is used, in 64ths, if loads are uneven.
    pub uneven_filled: u32,
    /// The share by which a phase may be longer than expected, in 64ths.
    pub slack: u32,
    /// The maximum number of streams that a link carries in a phase, one after the other.
    pub most_streams: u32,
    /// Sets are declined whose agents would send or receive more streams in a phase on average, in
    /// 16ths.
    pub agent_streams: u32,
    /// Connections that make their phases long leave them for another phase if that gains so many times
    /// what the phase costs.
    pub least_gain: u64,
}

impl Default for DenseConfig {
    fn default() -> Self {
        Self {
            present: [8, 200],
            present_growth: 4,
            history: 10,
            shaken: 20,
            passes: 50,
            channel_passes: 40,
            channel_weight: 8,
            filled: [60, 60],
            uneven_filled: 58,
            slack: 6,
            most_streams: 16,
            agent_streams: 15,
            least_gain: 2,
        }
    }
}

/// The default work budget for a problem, in cells expanded by searches, each in the phases of a
/// block.
pub fn budget(problem: &Problem<'_>) -> u64 {
    to_u64(problem.set.len()) * PER_CONNECTION
}

const PER_CONNECTION: u64 = 1 << 14;

/// The maximum number of hops of a connection.
const FARTHEST: u16 = 1 << 10;

/// The maximum number of connections in a phase, on average.
const MEMBERS_OF_PHASE: usize = 1 << 13;

/// The maximum size of the tables of all phases.
const BYTES: usize = 1 << 30;

/// The phases of more than so many connections, which take long, are not negotiated if they are expected to
/// gain less than this fraction of the clocks of the best plan: one in 10.
const MANY: usize = 1 << 15;
const LEAST_GAIN: u64 = 10;

/// Plans a set.
///
/// Returns `None` if it is empty or has an order or requirements, if routes are very long or the
/// set is very large, if the phases are expected to gain little over the best plan so far, or if
/// agents would have several streams in most phases: these wait for each other, so phases would be
/// far longer than their links are busy.
pub fn plan(
    problem: &Problem<'_>,
    config: &DenseConfig,
    limits: Limits,
    seed: u64,
) -> Option<Found> {
    let set = problem.set;
    if !problem.is_plain() || (0..set.len()).any(|x| problem.hops(x) > FARTHEST) {
        return None;
    }
    let mut members: Vec<u32> = (0..to_u32(set.len())).collect();
    let incoming = problem.incoming();
    let mut all = Sums::new(problem, &members);
    all.loads = crowding::loads(problem, &incoming);
    let (_, on_link) = counts(problem, config, &all, &all);
    let context = Context { problem, config, incoming, clocks: lengths(problem, on_link), seed };
    let (mut phases, mut work) = (Vec::new(), 0);
    while !members.is_empty() {
        members.sort_by_key(|&x| (Reverse(context.clocks[index(x)]), x));
        let counts = counts(problem, config, &all, &Sums::new(problem, &members));
        let shapes = shapes(problem, config, (&context.clocks, &members), counts);
        if phases.is_empty() && !is_suitable(problem, config, &shapes, limits.clocks) {
            return None;
        }
        let mut blocks = blocks(problem, &shapes);
        distribute(problem, &members, shapes.len(), &mut blocks);
        work += context.negotiate(&mut blocks, limits.work.saturating_sub(work));
        if problem.interrupt.is_requested() {
            return None;
        }
        members = blocks.par_iter_mut().flat_map_iter(|b| context.evict_crowded(b)).collect();
        let mean = shapes.iter().map(|shape| shape.limit).sum::<u64>() / to_u64(shapes.len());
        let cost = channel_cost(problem, config, mean);
        let late: Vec<Late> = blocks.par_iter().map(|block| context.late(block, cost)).collect();
        // Members that leave need at least one phase more.
        let gain: u64 = late.iter().map(|late| late.gain).sum();
        if !members.is_empty() || gain > (problem.switch + mean) * config.least_gain {
            let late = blocks.par_iter_mut().zip(late);
            members.par_extend(late.flat_map_iter(|(block, late)| block.remove(&late.members)));
        }
        for block in &blocks {
            phases.extend((0..block.lanes()).map(|lane| streams(problem, block, lane)));
        }
    }
    phases.retain(|phase: &Vec<Stream>| !phase.is_empty());
    let mut plan = Plan { phases, clocks: 0 };
    plan.compact(problem);
    Some(Found { plan, work })
}

/// Whether agents have time for their streams one in a phase on average, the tables of so many
/// phases fit into memory, and the phases are expected to gain enough over `best` clocks.
fn is_suitable(
    problem: &Problem<'_>,
    config: &DenseConfig,
    shapes: &[PhaseShape],
    best: u64,
) -> bool {
    let (phases, members) = (shapes.len(), problem.set.len());
    let sends = to_u64(phases * problem.machine.agent_count()) * u64::from(config.agent_streams);
    let least_gain = if members > MANY { best / LEAST_GAIN } else { 0 };
    to_u64(members) * 16 <= sends
        && members / phases < MEMBERS_OF_PHASE
        && block_bytes(problem, phases) <= BYTES
        && expected_clocks(problem, config, shapes) <= best - least_gain
}

/// The clocks of phases that are as long as expected.
fn expected_clocks(problem: &Problem<'_>, config: &DenseConfig, shapes: &[PhaseShape]) -> u64 {
    let without_slack = |limit: u64| limit * 64 / (64 + u64::from(config.slack));
    shapes.iter().map(|shape| problem.switch + without_slack(shape.limit)).sum()
}

/// What a channel costs in a full phase, in 2^16ths of a clock.
fn channel_cost(problem: &Problem<'_>, config: &DenseConfig, limit: u64) -> u64 {
    let channels = u64::from(problem.channels) * to_u64(problem.cell_count());
    let used = channels * u64::from(config.filled[0]) / 64;
    ((problem.switch + limit) << 16) / used.max(1)
}

/// Gives each block its share of the members, which are sorted by clocks.
fn distribute(problem: &Problem<'_>, members: &[u32], phases: usize, blocks: &mut [Block]) {
    let each = |x: &u32| u64::from(problem.hops(index(*x))) + 1;
    let channels: u64 = members.iter().map(each).sum();
    let (mut sum, mut block, mut end) = (0, 0, blocks[0].lanes());
    for x in members {
        let phase = to_usize(sum * to_u64(phases) / channels);
        while phase >= end {
            block += 1;
            end += blocks[block].lanes();
        }
        blocks[block].members.push(Member { connection: *x, ..Member::default() });
        sum += each(x);
    }
}

/// The streams of a phase, those first that take the longest by themselves.
fn streams(problem: &Problem<'_>, block: &Block, lane: usize) -> Vec<Stream> {
    let connections = problem.set.connections();
    let stream = |member: &Member| {
        let connection = member.connection;
        let words = connections[index(connection)].words;
        Stream { connection, words, start: 0, cells: member.cells(problem).collect() }
    };
    let members = block.members.iter().filter(|member| member.lane == lane);
    let mut streams: Vec<Stream> = members.map(stream).collect();
    let alone = |stream: &Stream| {
        let clocks = problem.clocks(index(stream.connection));
        clocks.until_received(stream.words, stream.cells.len() - 1)
    };
    streams.sort_by_cached_key(|stream| (Reverse(alone(stream)), stream.connection));
    streams
}
