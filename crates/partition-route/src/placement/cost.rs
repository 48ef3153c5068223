//! The cost of a placement: an estimate of the clocks of the compiled set.
//!
//! A phase lasts as long as its busiest agent or link, and the channels determine the number of
//! phases. The load of agents does not depend on the placement, so a placement decides three
//! things:
//!
//! * phases: the channels taken (hops + 1 for each connection) over all channels, and where routes
//!   crowd, the occupancy there. Routes can avoid a full cell but not a full quarter of the
//!   machine, so the crowding term is a mean that leans to the greatest value (the 8th root of the
//!   mean 8th power). The estimate is at least the average, and at least what the endpoints alone
//!   need. In a fat-tree no route can avoid a group of switches, so there a search can have a
//!   number of phases as its goal and pays for each missing channel of a group;
//! * the busiest link, by the same mean, if it exceeds the busiest agent;
//! * a fraction of the terms that do not bind: fewer channels and shorter routes leave the router
//!   and the timetable more freedom.
//!
//! Loads are expected loads of routes (module `expected_load`). The estimate compares placements of
//! one set; it is neither a bound nor a prediction.

use conset_ir::Machine;
use conset_ir::convert::{index, to_f64, to_u32, truncate};

use super::expected_load::{ExpectedLoad, WHOLE};
use super::traffic::{Traffic, TrafficFlow};
use crate::wide::wide_to_f64;

/// The weights of terms that do not bind: of channels (as a share of the context switches) and of
/// links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack {
    channels: f64,
    links: f64,
}

impl Slack {
    /// For a search that minimises phases.
    pub(super) const CHANNELS: Self = Self { channels: 0.25, links: 0.25 };
    /// For a search that minimises distances: links are shared less and words are delayed less.
    pub(super) const LINKS: Self = Self { channels: 0.125, links: 1.0 };
    /// For the final comparison, when the phases are known.
    const JUDGED: Self = Self { channels: 0.0625, links: 1.0 };
}

/// The cost of a placement; see [`super::cost()`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// The estimate by which placements are compared.
    pub clocks: f64,
    /// The number of phases: counted by a trial routing, or for large sets an estimate.
    pub phases: f64,
    /// Channels that all connections take on shortest routes.
    pub channels: u64,
    /// Words times hops over shortest routes.
    pub word_hops: u128,
    /// Connections through the fullest cell, rounded up; in a fat-tree, through the fullest group
    /// of switches, per switch.
    pub fullest_cell: u64,
    /// Clocks of the busiest link.
    pub busiest_link: u64,
}

/// The numbers that depend on the machine and the set, but not on the placement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    switch: f64,
    /// Lower bounds on phases and agent clocks.
    phases: f64,
    agent: f64,
    /// Half a channel, as a share of all channels of the machine.
    channel_share: f64,
    /// Half a channel, as a share of the channels of a cell.
    channel: f64,
    /// Clocks for half a word on one link, and divided among all links.
    link: f64,
    link_share: f64,
    /// The number of places that a mean is over.
    places: f64,
}

impl Constants {
    fn new(machine: &Machine, traffic: &Traffic) -> Self {
        let parameters = machine.parameters();
        let halves = f64::from(WHOLE);
        let channels = halves * f64::from(parameters.channels_per_cell.max(1));
        let live = machine.cells().filter(|&cell| machine.is_alive(cell)).count().max(1);
        let links: usize = machine.cells().map(|cell| machine.outgoing(cell).len()).sum();
        let link = f64::from(parameters.link_clocks_per_word) / halves;
        Self {
            switch: to_f64(parameters.switch_clocks().max(1)),
            phases: to_f64(traffic.phases),
            agent: to_f64(traffic.agent_clocks),
            channel_share: 1.0 / (channels * to_f64(live)),
            channel: 1.0 / channels,
            link,
            link_share: link / to_f64(links.max(1)),
            places: to_f64(traffic.parts().max(1)),
        }
    }

    /// The clocks that one more hop costs a flow if nothing binds: for the channel of a connection,
    /// and for a word.
    pub(super) fn per_hop(&self, slack: Slack) -> (f64, f64) {
        let channels = slack.channels * self.switch * self.channel_share;
        let halves = f64::from(WHOLE);
        (channels * halves, slack.links * self.link_share * halves)
    }
}

/// Sums over all resources, updated with every booking.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// 8th powers of occupancies and of link loads.
    cells: f64,
    links: f64,
    /// Halves of channels and of word-hops.
    channels: u64,
    word_hops: u128,
    /// Halves of channels missing for the goal.
    missing_channels: u64,
}

/// The loads of a placement.
pub(super) struct PlacementLoads<'a> {
    expected_load: &'a ExpectedLoad<'a>,
    pub(super) constants: Constants,
    cells: Vec<u32>,
    links: Vec<u64>,
    pub(super) sums: Sums,
    pub(super) slack: Slack,
    /// A number of phases as the goal, and the halves of channels of each resource in that many
    /// phases.
    goal: Option<(f64, Vec<u32>)>,
    /// Resources updated so far: the measure of work.
    pub(super) work: u64,
}

impl<'a> PlacementLoads<'a> {
    /// No loads yet.
    pub(super) fn new(
        machine: &Machine,
        expected_load: &'a ExpectedLoad<'a>,
        traffic: &Traffic,
    ) -> Self {
        Self {
            expected_load,
            constants: Constants::new(machine, traffic),
            cells: vec![0; expected_load.cells.len()],
            links: vec![0; expected_load.links.len()],
            sums: Sums::default(),
            slack: Slack::CHANNELS,
            goal: None,
            work: 0,
        }
    }

    /// Sets a number of phases as the goal, or removes the goal. Takes effect with the next
    /// [`PlacementLoads::load`].
    pub(super) fn set_phase_goal(&mut self, machine: &Machine, phases: Option<u32>) {
        let channels = u64::from(machine.parameters().channels_per_cell);
        self.goal = phases.map(|phases| {
            let halves = u64::from(WHOLE) * channels * u64::from(phases);
            let of = |&alike: &u32| halves.saturating_mul(u64::from(alike));
            let all =
                self.expected_load.cells.iter().map(|n| u32::try_from(of(n)).unwrap_or(u32::MAX));
            (f64::from(phases), all.collect())
        });
    }

    /// Replaces all loads by those of a placement.
    pub(super) fn load(&mut self, traffic: &Traffic, place: &[u32]) {
        self.cells.fill(0);
        self.links.fill(0);
        self.sums = Sums::default();
        for (part, &own) in traffic.own.iter().enumerate() {
            if own > 0 {
                // The resource of a fat-tree's leaf, or of a cell of another shape, is its cell.
                self.book_own(place[part], own, true);
            }
        }
        for flow in &traffic.flows {
            self.book(flow, place, true);
        }
        self.recompute_sums();
    }

    /// Recomputes the sums from the loads, without the rounding errors of many updates.
    pub(super) fn recompute_sums(&mut self) {
        let unit = self.constants.channel;
        let cells = self.cells.iter().zip(&self.expected_load.cells);
        let cells = cells.filter(|(taken, _)| **taken > 0);
        self.sums.cells =
            cells.map(|(&t, &n)| eighth_power(f64::from(t) * unit / f64::from(n))).sum();
        let unit = self.constants.link;
        let links = self.links.iter().zip(&self.expected_load.links).filter(|(load, _)| **load > 0);
        self.sums.links = links.map(|(&l, &n)| eighth_power(to_f64(l) * unit / f64::from(n))).sum();
    }

    /// Adds or removes the connections of a part to itself on its cell.
    pub(super) fn book_own(&mut self, cell: u32, count: u32, add: bool) {
        let by = WHOLE * count;
        let cells = self.expected_load.cells[index(cell)];
        let unit = self.constants.channel / f64::from(cells);
        let change = change_load_u32(&mut self.cells[index(cell)], by, add, unit);
        self.sums.cells += change;
        let taken = self.cells[index(cell)];
        let before = if add { taken - by } else { taken + by };
        let limit = self.goal.as_ref().map_or(u32::MAX, |(_, limits)| limits[index(cell)]);
        self.sums.missing_channels += u64::from(taken.saturating_sub(limit));
        self.sums.missing_channels -= u64::from(before.saturating_sub(limit));
        let all = u64::from(by);
        self.sums.channels = if add { self.sums.channels + all } else { self.sums.channels - all };
    }

    /// Adds or removes a flow between the cells of its parts.
    pub(super) fn book(&mut self, flow: &TrafficFlow, place: &[u32], add: bool) {
        let (from, to) = (place[index(flow.source)], place[index(flow.target)]);
        let Self { expected_load, constants, cells, links, sums, goal, work, .. } = self;
        let limits = goal.as_ref().map(|(_, limits)| limits);
        let mut missing_channels = (0u64, 0u64);
        let mut channels = 0u64;
        let mut passes = 0u64;
        let mut cell_change = 0.0;
        let mut link_change = 0.0;
        expected_load.visit_resources(
            from,
            to,
            |cell, halves| {
                let by = halves.saturating_mul(flow.count);
                let alike = expected_load.cells[index(cell)];
                channels += u64::from(by);
                let unit = constants.channel / f64::from(alike);
                let taken = &mut cells[index(cell)];
                let limit = limits.map_or(u32::MAX, |limits| limits[index(cell)]);
                missing_channels.0 += u64::from(taken.saturating_sub(limit));
                cell_change += change_load_u32(taken, by, add, unit);
                missing_channels.1 += u64::from(taken.saturating_sub(limit));
            },
            |link, halves| {
                let by = u64::from(halves).saturating_mul(flow.words);
                passes += u64::from(halves);
                let unit = constants.link / f64::from(expected_load.links[index(link)]);
                link_change += change_load_u64(&mut links[index(link)], by, add, unit);
            },
        );
        *work += passes + u64::from(WHOLE);
        sums.missing_channels = sums.missing_channels + missing_channels.1 - missing_channels.0;
        sums.cells += cell_change;
        sums.links += link_change;
        let word_hops = u128::from(passes) * u128::from(flow.words);
        if add {
            sums.channels += channels;
            sums.word_hops += word_hops;
        } else {
            sums.channels -= channels;
            sums.word_hops -= word_hops;
        }
    }

    /// The estimate that searches minimise.
    #[inline]
    pub(super) fn clocks(&self) -> f64 {
        let crowded_phases = match &self.goal {
            None => self.crowded_phases(),
            Some((phases, _)) => {
                phases + to_f64(self.sums.missing_channels) * self.constants.channel
            }
        };
        self.with_phases(crowded_phases, self.slack)
    }

    fn with_phases(&self, phases: f64, slack: Slack) -> f64 {
        let c = &self.constants;
        let channels = to_f64(self.sums.channels) * c.channel_share;
        let links = wide_to_f64(self.sums.word_hops) * c.link_share;
        let busiest = eighth_root(self.sums.links / c.places);
        c.switch * c.phases.max(channels).max(phases)
            + c.agent.max(links).max(busiest)
            + slack.channels * c.switch * channels
            + slack.links * links
    }

    /// The phases that channels need where routes crowd.
    fn crowded_phases(&self) -> f64 {
        eighth_root(self.sums.cells / self.constants.places)
    }

    /// A lower bound on the phases of any routing.
    pub(super) fn least_phases(&self) -> f64 {
        let channels = to_f64(self.sums.channels) * self.constants.channel_share;
        channels.ceil().max(self.constants.phases)
    }

    /// A lower bound on the cost, whatever the number of phases.
    pub(super) fn least(&self) -> f64 {
        self.with_phases(self.least_phases(), Slack::JUDGED)
    }

    /// The phases that the fullest resource needs if no route can avoid it.
    pub(super) fn fullest_phases(&self) -> u32 {
        let channels = |(&taken, &alike): (&u32, &u32)| {
            f64::from(taken) * self.constants.channel / f64::from(alike)
        };
        let fullest =
            self.cells.iter().zip(&self.expected_load.cells).map(channels).fold(0.0, f64::max);
        // A value just above a whole number is a rounding error.
        to_u32(truncate((fullest - 1e-9).ceil().clamp(0.0, f64::from(u32::MAX))))
    }

    /// The cost of the current loads, with the phases of a trial routing if they are known.
    pub(super) fn cost(&self, routed: Option<u32>) -> Cost {
        let halves = u64::from(WHOLE);
        let phases = match routed {
            Some(phases) => self.least_phases().max(f64::from(phases)),
            None => self.crowded_phases().max(self.least_phases()),
        };
        let cells = self.cells.iter().zip(&self.expected_load.cells);
        let links = self.links.iter().zip(&self.expected_load.links);
        let clocks = |(&load, &alike): (&u64, &u32)| {
            whole(to_f64(load) * self.constants.link / f64::from(alike.max(1)))
        };
        Cost {
            clocks: self.with_phases(phases, Slack::JUDGED),
            phases,
            channels: self.sums.channels / halves,
            word_hops: self.sums.word_hops / u128::from(halves),
            fullest_cell: cells
                .map(|(&taken, &alike)| u64::from(taken).div_ceil(halves * u64::from(alike)))
                .max()
                .unwrap_or(0),
            busiest_link: links.map(clocks).max().unwrap_or(0),
        }
    }
}

/// Changes a load; returns the change of its 8th power, in the given unit.
#[inline]
fn change_load_u32(load: &mut u32, by: u32, add: bool, unit: f64) -> f64 {
    let before = *load;
    *load = if add { before + by } else { before - by };
    eighth_power(f64::from(*load) * unit) - eighth_power(f64::from(before) * unit)
}

#[inline]
fn change_load_u64(load: &mut u64, by: u64, add: bool, unit: f64) -> f64 {
    let before = *load;
    *load = if add { before + by } else { before - by };
    eighth_power(to_f64(*load) * unit) - eighth_power(to_f64(before) * unit)
}

/// Whole clocks; what exceeds 64 bits is `u64::MAX`.
fn whole(clocks: f64) -> u64 {
    const TOO_MANY: f64 = 18_446_744_073_709_551_616.0;
    if clocks < TOO_MANY { truncate(clocks.max(0.0)) } else { u64::MAX }
}

#[inline]
fn eighth_power(x: f64) -> f64 {
    let square = x * x;
    let fourth = square * square;
    fourth * fourth
}

/// The 8th root. Square roots are correctly rounded on every machine, powers are not.
#[inline]
fn eighth_root(x: f64) -> f64 {
    x.max(0.0).sqrt().sqrt().sqrt()
}
