//! What a placement costs: an estimate of the clocks of the set once it is compiled.
//!
//! A phase lasts as long as its busiest agent or link, and there are as many phases as channels
//! ask for. Agents do not care where they live, so a placement decides three things:
//!
//! * phases: the channels taken (hops + 1 for each connection) over all channels, and where
//!   routes crowded_phases, their occupancy there. Routes can go round a hot cell but not round a hot
//!   quarter, so what counts is a mean that leans to the greatest (the 8th eighth_root of the mean 8th
//!   power), at least the average, and at least what the ends alone ask for. In a fat-tree nothing
//!   can go round a group of switches, so there a search can be given a number of phases to
//!   reach, and pays for each channel that a group lacks;
//! * the busiest link, by the same mean, where that is above the busiest agent;
//! * what does not bind still costs a part of its clocks: fewer channels and shorter ways leave
//!   the router and the timetable more freedom.
//!
//! PlacementLoads come from expected_load of routes (module `expected_load`). The estimate is for comparing placements
//! of one set; it is no bound and no prediction.

use conset_ir::Machine;

use super::expected_load::{ExpectedLoad, WHOLE};
use super::traffic::{Traffic, TrafficFlow};

/// What clocks that do not bind count: those of channels (a share of the switches) and of links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack {
    channels: f64,
    links: f64,
}

impl Slack {
    /// For a search that is after fewer phases.
    pub(super) const CHANNELS: Self = Self { channels: 0.25, links: 0.25 };
    /// For a search that is after short ways: links are shared less and words delayed less.
    pub(super) const LINKS: Self = Self { channels: 0.125, links: 1.0 };
    /// For the last word, when the phases are known.
    const JUDGED: Self = Self { channels: 0.0625, links: 1.0 };
}

/// What a placement costs; see [`super::cost`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The estimate that placements are compared by.
    pub clocks: f64,
    /// The phases in it: those of a first routing, or for large sets an estimate.
    pub phases: f64,
    /// Channels that all connections take, if each has a shortest route.
    pub channels: u64,
    /// Words times hops over shortest routes.
    pub word_hops: u128,
    /// Channels taken on the fullest cell, in halves of connections rounded up; in a fat-tree, on
    /// the fullest group of switches, for each switch.
    pub fullest_cell: u64,
    /// Clocks of the busiest link.
    pub busiest_link: u64,
}

/// The numbers of a machine and a set that no placement changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    switch: f64,
    /// Phases and agent clocks without which it cannot be.
    phases: f64,
    agent: f64,
    /// Half a channel, as a share of all the machine's.
    channel_share: f64,
    /// Half a channel, as a share of a cell's.
    channel: f64,
    /// Clocks for half a word on one link, and divided among all links.
    link: f64,
    link_share: f64,
    /// Places that a mean is over.
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
            switch: (parameters.switch_clocks().max(1)) as f64,
            phases: traffic.phases as f64,
            agent: traffic.agent_clocks as f64,
            channel_share: 1.0 / (channels * live as f64),
            channel: 1.0 / channels,
            link,
            link_share: link / links.max(1) as f64,
            places: traffic.parts().max(1) as f64,
        }
    }

    /// The clocks that a hop more costs a flow where nothing binds: for the connection's channel
    /// and for its words.
    pub(super) fn per_hop(&self, slack: Slack) -> (f64, f64) {
        let channels = slack.channels * self.switch * self.channel_share;
        let halves = f64::from(WHOLE);
        (channels * halves, slack.links * self.link_share * halves)
    }
}

/// Sums over all resources, kept up to date with every booking.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// 8th powers of occupancies and of link loads.
    cells: f64,
    links: f64,
    /// Halves of channels and of word-hops.
    channels: u64,
    word_hops: u128,
    /// Halves of channels that the phases to reach do not have.
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
    /// A number of phases to reach, and the halves of channels that it gives each resource.
    goal: Option<(f64, Vec<u32>)>,
    /// Resources work so far: what the search has cost.
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

    /// Makes a number of phases the goal, or nothing in particular. Takes effect with the next
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

    /// The loads of a whole placement, in place of what was booked.
    pub(super) fn load(&mut self, traffic: &Traffic, place: &[u32]) {
        self.cells.fill(0);
        self.links.fill(0);
        self.sums = Sums::default();
        for (part, &own) in traffic.own.iter().enumerate() {
            if own > 0 {
                // Leaves of a fat-tree and cells elsewhere are their own resources.
                self.book_own(place[part], own, true);
            }
        }
        for flow in &traffic.flows {
            self.book(flow, place, true);
        }
        self.recompute_sums();
    }

    /// Counts the sums again from the loads, without the rounding of many bookings.
    pub(super) fn recompute_sums(&mut self) {
        let unit = self.constants.channel;
        let cells = self.cells.iter().zip(&self.expected_load.cells);
        let cells = cells.filter(|(taken, _)| **taken > 0);
        self.sums.cells =
            cells.map(|(&t, &n)| eighth_power(f64::from(t) * unit / f64::from(n))).sum();
        let unit = self.constants.link;
        let links = self.links.iter().zip(&self.expected_load.links).filter(|(load, _)| **load > 0);
        self.sums.links = links.map(|(&l, &n)| eighth_power(l as f64 * unit / f64::from(n))).sum();
    }

    /// Books the connections of a part to itself on its cell, or takes them off.
    pub(super) fn book_own(&mut self, cell: u32, count: u32, add: bool) {
        let by = WHOLE * count;
        let cells = self.expected_load.cells[cell as usize];
        let unit = self.constants.channel / f64::from(cells);
        let change = change_load_u32(&mut self.cells[cell as usize], by, add, unit);
        self.sums.cells += change;
        let taken = self.cells[cell as usize];
        let before = if add { taken - by } else { taken + by };
        let limit = self.goal.as_ref().map_or(u32::MAX, |(_, limits)| limits[cell as usize]);
        self.sums.missing_channels += u64::from(taken.saturating_sub(limit));
        self.sums.missing_channels -= u64::from(before.saturating_sub(limit));
        let all = u64::from(by);
        self.sums.channels = if add { self.sums.channels + all } else { self.sums.channels - all };
    }

    /// Books a flow between the cells of its parts, or takes it off.
    pub(super) fn book(&mut self, flow: &TrafficFlow, place: &[u32], add: bool) {
        let (from, to) = (place[flow.source as usize], place[flow.target as usize]);
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
                let alike = expected_load.cells[cell as usize];
                channels += u64::from(by);
                let unit = constants.channel / f64::from(alike);
                let taken = &mut cells[cell as usize];
                let limit = limits.map_or(u32::MAX, |limits| limits[cell as usize]);
                missing_channels.0 += u64::from(taken.saturating_sub(limit));
                cell_change += change_load_u32(taken, by, add, unit);
                missing_channels.1 += u64::from(taken.saturating_sub(limit));
            },
            |link, halves| {
                let by = u64::from(halves).saturating_mul(flow.words);
                passes += u64::from(halves);
                let unit = constants.link / f64::from(expected_load.links[link as usize]);
                link_change += change_load_u64(&mut links[link as usize], by, add, unit);
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

    /// The estimate that searches go by.
    #[inline]
    pub(super) fn clocks(&self) -> f64 {
        let crowded_phases = match &self.goal {
            None => self.crowded_phases(),
            Some((phases, _)) => {
                phases + self.sums.missing_channels as f64 * self.constants.channel
            }
        };
        self.with_phases(crowded_phases, self.slack)
    }

    fn with_phases(&self, phases: f64, slack: Slack) -> f64 {
        let c = &self.constants;
        let channels = self.sums.channels as f64 * c.channel_share;
        let links = self.sums.word_hops as f64 * c.link_share;
        let busiest = eighth_root(self.sums.links / c.places);
        c.switch * c.phases.max(channels).max(phases)
            + c.agent.max(links).max(busiest)
            + slack.channels * c.switch * channels
            + slack.links * links
    }

    /// Phases that channels ask for where routes crowded_phases.
    fn crowded_phases(&self) -> f64 {
        eighth_root(self.sums.cells / self.constants.places)
    }

    /// No routing has fewer phases.
    pub(super) fn least_phases(&self) -> f64 {
        let channels = self.sums.channels as f64 * self.constants.channel_share;
        channels.ceil().max(self.constants.phases)
    }

    /// What the placement costs at least, however many phases it has.
    pub(super) fn least(&self) -> f64 {
        self.with_phases(self.least_phases(), Slack::JUDGED)
    }

    /// The phases that the fullest resource needs, if no route can go round it.
    pub(super) fn fullest_phases(&self) -> u32 {
        let channels = |(&taken, &alike): (&u32, &u32)| {
            f64::from(taken) * self.constants.channel / f64::from(alike)
        };
        let fullest =
            self.cells.iter().zip(&self.expected_load.cells).map(channels).fold(0.0, f64::max);
        // A hair less than a whole number is rounding.
        (fullest - 1e-9).ceil().max(0.0) as u32
    }

    /// All numbers of the loads booked, with the phases of a routing if that is known.
    pub(super) fn cost(&self, routed: Option<u32>) -> Cost {
        let halves = u64::from(WHOLE);
        let phases = match routed {
            Some(phases) => self.least_phases().max(f64::from(phases)),
            None => self.crowded_phases().max(self.least_phases()),
        };
        let cells = self.cells.iter().zip(&self.expected_load.cells);
        let links = self.links.iter().zip(&self.expected_load.links);
        let clocks = |(&load, &alike): (&u64, &u32)| {
            (load as f64 * self.constants.link / f64::from(alike.max(1))) as u64
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

/// Changes a load; returns by how much its 8th power changes, in so many units.
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
    eighth_power(*load as f64 * unit) - eighth_power(before as f64 * unit)
}

#[inline]
fn eighth_power(x: f64) -> f64 {
    let square = x * x;
    let fourth = square * square;
    fourth * fourth
}

/// The 8th eighth_root. Square roots are exact to the last bit on every machine, powers are not.
#[inline]
fn eighth_root(x: f64) -> f64 {
    x.max(0.0).sqrt().sqrt().sqrt()
}
