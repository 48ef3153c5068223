//! The shape of a plan before its connections have phases: how many phases, and how long each is.
//!
//! Connections are sorted by length, so that those of a phase are of nearly equal length. A phase
//! lasts a whole number of such streams, one after the other on each link. Few of them leave
//! channels idle, many leave links idle.

use conset_ir::convert::{index, to_u32, to_u64};

use super::DenseConfig;
use crate::problem::Problem;

/// What a phase is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseShape {
    /// The clocks of the longest stream that is expected.
    pub(super) longest: u64,
    /// The clocks for which a link or agent may be busy.
    pub(super) limit: u64,
}

/// Sums over connections.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// Channels of shortest routes.
    pub(super) channels: u64,
    /// Clocks of streams times their hops.
    pub(super) link_clocks: u128,
    /// Clocks of streams.
    pub(super) clocks: u128,
    connections: u64,
}

impl Sums {
    pub(super) fn new(problem: &Problem<'_>, clocks: &[u64], members: &[u32]) -> Self {
        let mut sums = Self { connections: to_u64(members.len()), ..Self::default() };
        for &x in members {
            let hops = u64::from(problem.hops(index(x)));
            sums.channels += hops + 1;
            sums.link_clocks += u128::from(clocks[index(x)]) * u128::from(hops);
            sums.clocks += u128::from(clocks[index(x)]);
        }
        sums
    }
}

/// The phases for some connections, `all` being the sums of the whole set. `members` are sorted by
/// clocks, the longest first.
pub(super) fn shapes(
    problem: &Problem<'_>,
    config: &DenseConfig,
    (all, clocks): (&Sums, &[u64]),
    members: &[u32],
) -> Vec<PhaseShape> {
    let sums = Sums::new(problem, clocks, members);
    let bounds = &problem.bounds;
    // What the bounds of the whole set say of these: phases in 2^20ths, clocks beside switches.
    let total = u128::from(problem.channels) * u128::from(to_u64(problem.cell_count()));
    let by_total = (u128::from(all.channels) << 20) / total.max(1);
    let other = bounds.phases.saturating_sub(to_u32(u64::try_from(by_total >> 20).unwrap_or(0)));
    // A bound above the total of the channels is that of a part of the machine.
    let whole = if other > 1 { u128::from(bounds.phases) << 20 } else { by_total };
    let phases = whole * u128::from(sums.channels) / u128::from(all.channels.max(1));
    let switches = u64::from(bounds.phases) * problem.switch;
    let busy = u128::from(bounds.clocks.saturating_sub(switches));
    let busy = match all.link_clocks {
        0 => busy * sums.clocks / all.clocks.max(1),
        links => busy * sums.link_clocks / links,
    };
    let mean = (sums.clocks / u128::from(sums.connections.max(1))).max(1);
    let by_channels = phases * 64 / u128::from(config.filled[0]);
    let best = (1..=config.most_streams).min_by_key(|&streams| {
        let length = mean * u128::from(streams);
        let by_links = (busy << 20) * 64 / (length * u128::from(config.filled[1]));
        let count = by_channels.max(by_links).max(1 << 20);
        (count * (u128::from(problem.switch) + length), streams)
    });
    let streams = u64::from(best.unwrap_or(1));
    let length = mean * u128::from(streams);
    let by_links = (busy << 20) * 64 / (length * u128::from(config.filled[1]));
    let count = u64::try_from(by_channels.max(by_links).div_ceil(1 << 20)).unwrap_or(u64::MAX);
    let count = count.clamp(1, sums.connections.max(1));
    shapes_of(problem, config, (clocks, members), (sums.channels, count, streams))
}

/// Equal shares of the channels of the members, sorted by clocks.
fn shapes_of(
    problem: &Problem<'_>,
    config: &DenseConfig,
    (clocks, members): (&[u64], &[u32]),
    (channels, count, streams): (u64, u64, u64),
) -> Vec<PhaseShape> {
    let mut shapes: Vec<PhaseShape> = Vec::new();
    let (mut sum, mut first, mut own, mut longest) = (0, 0, 0, 0);
    for (row, &x) in members.iter().enumerate() {
        longest = longest.max(clocks[index(x)]);
        own += clocks[index(x)];
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
