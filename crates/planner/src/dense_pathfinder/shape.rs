//! The shape of a plan before its connections have phases: how many phases, and how long each is.
//!
//! Connections are sorted by length (the clocks of their streams, and a share of their latency), so
//! that those of a phase are of nearly equal length. A phase lasts a whole number of such streams,
//! one after the other on each link. Few of them leave channels idle, many leave links idle.

use conset_ir::convert::{index, to_u64};

use super::DenseConfig;
use crate::problem::Problem;

/// If the busiest cell has more than the average load by less than this fraction of it, one in so many, it
/// only looks so because loads are whole numbers.
const EVEN: u64 = 32;

/// What a phase is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseShape {
    /// The length of the longest connection that is expected.
    pub(super) longest: u64,
    /// The clocks for which a link or agent may be busy.
    pub(super) limit: u64,
}

/// Sums over connections.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// Channels of shortest routes.
    channels: u64,
    /// Clocks of streams times their hops.
    link_clocks: u128,
    /// Clocks of streams.
    clocks: u128,
    connections: u64,
    /// The load of the busiest cell and the average load ([`super::crowding`]); none if unknown.
    pub(super) loads: (u64, u64),
}

impl Sums {
    pub(super) fn new(problem: &Problem<'_>, members: &[u32]) -> Self {
        let mut sums = Self { connections: to_u64(members.len()), ..Self::default() };
        for x in members.iter().map(|&x| index(x)) {
            let hops = u64::from(problem.hops(x));
            let clocks = u128::from(stream_clocks(problem, x));
            sums.channels += hops + 1;
            sums.link_clocks += clocks * u128::from(hops);
            sums.clocks += clocks;
        }
        sums
    }

    /// Whether the busiest cell has considerably more than the average load.
    fn are_uneven(&self) -> bool {
        let (busiest, average) = self.loads;
        busiest > average + average / EVEN
    }
}

/// The clocks of the stream of a connection on a link that it does not share.
fn stream_clocks(problem: &Problem<'_>, x: usize) -> u64 {
    problem.clocks(x).of(problem.set.connections()[x].words)
}

/// The length of each connection: the clocks of its stream and a share of its latency. A phase in
/// which `streams` streams follow each other on every link takes as long as their lengths.
pub(super) fn lengths(problem: &Problem<'_>, streams: u64) -> Vec<u64> {
    let length = |x: usize| {
        let latency = problem.clocks(x).pipeline_latency(problem.hops(x).into());
        stream_clocks(problem, x) + latency / streams.max(1)
    };
    (0..problem.set.len()).map(length).collect()
}

/// The number of phases for connections with the sums `sums`, and the number of streams that follow
/// each other on a link in each. `all` are the sums of the whole set.
pub(super) fn counts(
    problem: &Problem<'_>,
    config: &DenseConfig,
    all: &Sums,
    sums: &Sums,
) -> (u64, u64) {
    let mean = (sums.clocks / u128::from(sums.connections.max(1))).max(1);
    let [channels, links] = config.filled;
    let channels = if all.are_uneven() { config.uneven_filled } else { channels };
    let by_channels = phases(problem, all, sums) * 64 / u128::from(channels);
    let busy = busy(problem, all, sums);
    // The phases, in 2^20ths, in which links carry so many streams of average length.
    let count = |streams: u32| {
        let by_links = (busy << 20) * 64 / (mean * u128::from(streams * links));
        by_channels.max(by_links).max(1 << 20)
    };
    let time =
        |&streams: &u32| count(streams) * (u128::from(problem.switch) + mean * u128::from(streams));
    let streams = (1..=config.most_streams).min_by_key(time).unwrap_or(1);
    let count = u64::try_from(count(streams).div_ceil(1 << 20)).unwrap_or(u64::MAX);
    (count.clamp(1, sums.connections.max(1)), streams.into())
}

/// The phases in 2^20ths that some connections take by the bound of the whole set.
fn phases(problem: &Problem<'_>, all: &Sums, sums: &Sums) -> u128 {
    let machine = u128::from(problem.channels) * u128::from(to_u64(problem.cell_count()));
    let by_total = (u128::from(all.channels) << 20) / machine.max(1);
    let (busiest, average) = all.loads;
    let by_cell = match all.are_uneven() {
        true => by_total * u128::from(busiest) / u128::from(average.max(1)),
        false => by_total,
    };
    let bound = u128::from(problem.bounds.phases) << 20;
    // Unless it is only rounded up, a bound above the total of the channels is that of a part of
    // the machine.
    let whole = if bound > by_total + (1 << 20) { bound.max(by_cell) } else { by_cell };
    whole * u128::from(sums.channels) / u128::from(all.channels.max(1))
}

/// The clocks beside switches that some connections take by the bound of the whole set.
fn busy(problem: &Problem<'_>, all: &Sums, sums: &Sums) -> u128 {
    let switches = u64::from(problem.bounds.phases) * problem.switch;
    let busy = u128::from(problem.bounds.clocks.saturating_sub(switches));
    match all.link_clocks {
        0 => busy * sums.clocks / all.clocks.max(1),
        links => busy * sums.link_clocks / links,
    }
}

/// So many phases with equal shares of the channels of the members, which are sorted by length, and
/// so many streams on each link.
pub(super) fn shapes(
    problem: &Problem<'_>,
    config: &DenseConfig,
    (lengths, members): (&[u64], &[u32]),
    (count, streams): (u64, u64),
) -> Vec<PhaseShape> {
    let channels: u64 = members.iter().map(|&x| u64::from(problem.hops(index(x))) + 1).sum();
    let mut shapes: Vec<PhaseShape> = Vec::new();
    let (mut sum, mut first, mut own, mut longest) = (0, 0, 0, 0);
    for (row, &x) in members.iter().enumerate() {
        longest = longest.max(lengths[index(x)]);
        own += lengths[index(x)];
        sum += u64::from(problem.hops(index(x))) + 1;
        let wanted = u128::from(sum) * u128::from(count) / u128::from(channels.max(1));
        if wanted > to_u64(shapes.len()).into() {
            let mean = own / to_u64(row + 1 - first);
            let limit = longest.max(mean * streams);
            let limit = (limit + limit * u64::from(config.slack) / 64).max(1);
            shapes.push(PhaseShape { longest: longest.max(1), limit });
            (first, own, longest) = (row + 1, 0, 0);
        }
    }
    shapes
}
