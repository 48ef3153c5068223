//! The cost model: what a timetable takes, with link sharing (design, section 2).
//!
//! ```text
//! clocks = sum over phases of (t_sync + t_phase + clocks until the phase's last word arrived)
//! ```
//!
//! The paper's own model is the switch and the makespan, and was up to 4.8 times short where
//! streams share links (section 5.1.4). Here each phase is run as flowing streams
//! (`fluid`) that get max-min share shares of links and agents (`share`), in the
//! order of the timetable but not by its clock. A phase's clocks are rounded up, and never below
//! what its busiest agent needs by itself (its words and its stream set-ups, one after the other)
//! nor below what its busiest link needs, as rounding errors might have it: the checker holds
//! predictions against both.
//!
//! # Words on their way
//!
//! The last word of a stream is received some clocks after it is sent (its *latency*): it crosses
//! links, and the agent of the target takes it. Streams that follow each other in an agent hide
//! that, all but the last of the phase. In a set with an order they do not: a connection that comes after another
//! waits until the last word of that was received, so latencies add up along chains (a chain of
//! 2000 connections of 4 words between any cells took 1.7 times what was predicted without them). Such a set is
//! predicted with the latencies of its streams, any other without.
//!
//! # Timed starts
//!
//! On a machine with timed starts no stream is opened before its slot's start, at either end, and
//! all latencies count: where streams keep out of each other's way, they are what a phase takes
//! beyond its plan.
//!
//! # What it leaves out
//!
//! Flights where nothing is ordered (a few clocks per hop and phase), the depth of queues, and the
//! unevenness of word-by-word turns. The fabric has all of these and is the reference. The depth of
//! queues tells where streams are ordered at random: an agent that has sent a stream into queues,
//! whose target is not there yet, goes on sooner than is predicted, by up to some percent of the whole.

use conset_ir::{
    CellId, Direction, Duplex, LinkId, Lists, Machine, PhaseRoutes, PhaseTimes, RouteRef, Timetable,
};

use crate::cost::StreamCosts;
use crate::fluid;
use crate::local_index::LocalIndex;
use crate::max_min_share::MaxMinShare;
use crate::parallel;
use crate::precedence::PhasePrecedence;

/// What a compiled set is predicted to take.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Prediction {
    /// Clocks of all phases, switches included.
    pub clocks: u64,
    /// The phases in the order of execution.
    pub phases: Vec<PhasePrediction>,
}

impl Prediction {
    /// The prediction of a set whose phases are predicted already: `clocks` is their sum.
    pub fn new(phases: Vec<PhasePrediction>) -> Self {
        let clocks = phases
            .iter()
            .fold(0u64, |sum, phase| sum.saturating_add(phase.switch).saturating_add(phase.clocks));
        Self { clocks, phases }
    }
}

/// What a phase is predicted to take, and what is busiest in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasePrediction {
    /// Clocks of the switch to its context: `t_sync + t_phase`.
    pub switch: u64,
    /// Clocks from the end of the switch until the last word arrived.
    pub clocks: u64,
    /// The timetable's makespan: the clocks it would take if no link were shared.
    pub planned: u64,
    /// The link with the most words, the lowest of equals; `None` if no word crosses a link.
    pub busiest_link: Option<LinkLoad>,
    /// The agent that is busy longest, the lowest of equals; `None` in an empty phase.
    pub busiest_agent: Option<AgentLoad>,
    /// The most streams that flow over one link at the same time.
    pub max_sharing: u32,
}

/// What a link carries in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLoad {
    /// The link.
    pub link: LinkId,
    /// Routes over it.
    pub routes: u32,
    /// Words over it.
    pub words: u64,
    /// Clocks in which it moves a word.
    pub clocks: u64,
}

/// What an agent sends or receives in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLoad {
    /// The cell.
    pub cell: CellId,
    /// The busy direction with full duplex; `None` with half duplex, where both add up.
    pub direction: Option<Direction>,
    /// Streams it opens.
    pub streams: u32,
    /// Words it moves.
    pub words: u64,
    /// Clocks in which it opens a stream or moves a word.
    pub clocks: u64,
}

/// Predicts what each phase of a timetable takes.
///
/// Time and memory follow what happens: O(routes x hops) memory per phase, and at each start and
/// end of a stream the work of the rates it really changes.
pub fn predict(timetable: &Timetable) -> Prediction {
    let phases: Vec<PhasePrediction> = parallel::phases(
        timetable.routing(),
        || CostModel::new(timetable),
        |model, phase, routes| model.phase(routes, &timetable.phases()[phase.index()]),
    );
    Prediction::new(phases)
}

/// The machine as the model sees it, and memory that is reused from phase to phase.
struct CostModel<'a> {
    timetable: &'a Timetable,
    machine: &'a Machine,
    costs: StreamCosts,
    links: LocalIndex,
    /// Two per cell, its send port and its receive port; with half duplex only the first.
    ports: LocalIndex,
    connections: LocalIndex,
}

impl<'a> CostModel<'a> {
    fn new(timetable: &'a Timetable) -> Self {
        let routing = timetable.routing();
        let machine = routing.machine();
        let costs = StreamCosts::new(machine.parameters());
        Self {
            timetable,
            machine,
            costs,
            links: LocalIndex::new(machine.link_count()),
            ports: LocalIndex::new(costs.port_count(machine)),
            connections: LocalIndex::new(routing.set().len()),
        }
    }

    /// What last words take on their way: in a set with an order somebody may wait for them, and
    /// on a machine with timed starts little else is between the plan and the end.
    fn latencies(&self, routes: &PhaseRoutes) -> Vec<f64> {
        let set = self.timetable.routing().set();
        if set.order().is_empty() && !self.machine.parameters().has_timed_starts() {
            return Vec::new();
        }
        let latency = |route: RouteRef<'_>| {
            self.costs.pipeline_latency(route.hops(), set.get(route.connection)) as f64
        };
        routes.iter().map(latency).collect()
    }

    fn phase(&mut self, routes: &PhaseRoutes, times: &PhaseTimes) -> PhasePrediction {
        let parameters = self.machine.parameters();
        let set = self.timetable.routing().set();
        let mut rows: Vec<u32> = (0..routes.len() as u32).collect();
        rows.sort_unstable_by_key(|&row| {
            (times.slots[row as usize].start, routes.get(row as usize).connection, row)
        });

        let mut loads = ResourceLoads::default();
        let mut ports = Vec::with_capacity(routes.len());
        let mut crossings = Vec::new();
        for (row, route) in routes.iter().enumerate() {
            for &link in route.links().iter().filter(|&&link| link != LinkId::NONE) {
                let link = self.links.index_of(link.0);
                loads.link(link, route.words);
                crossings.push((row as u32, link));
            }
            let both = self.costs.ports(set.get(route.connection));
            let both = both.map(|port| self.ports.index_of(port));
            for port in both {
                loads.agent(port, route.words);
            }
            ports.push(both);
        }
        // Resources of the phase: its links, then its ports.
        let links = self.links.rows().len() as u32;
        let port_count = self.ports.rows().len();
        let mut capacities = vec![1.0 / f64::from(parameters.link_clocks_per_word); links as usize];
        let access = 1.0 / f64::from(parameters.access_clocks_per_word);
        capacities.resize(capacities.len() + port_count, access);
        let ends = ports
            .iter()
            .enumerate()
            .flat_map(|(row, both)| both.map(|port| (row as u32, port + links)));
        let paths = Lists::new(routes.len(), crossings.iter().copied().chain(ends));
        let listed = rows.iter().flat_map(|&row| {
            let [from, to] = ports[row as usize];
            std::iter::once((from, row)).chain((from != to).then_some((to, row)))
        });
        let lists = Lists::new(port_count, listed);
        let precedence = PhasePrecedence::of(set, routes, &mut self.connections);

        let phase = fluid::FluidPhase {
            words: routes.iter().map(|route| route.words).collect(),
            lists,
            ports,
            precedence: precedence.as_ref(),
            latencies: self.latencies(routes),
            starts: match parameters.has_timed_starts() {
                true => times.slots.iter().map(|slot| slot.start as f64).collect(),
                false => Vec::new(),
            },
            streams: parameters.streams,
            setup: f64::from(parameters.stream_setup),
            links,
        };
        let outcome = fluid::run(&phase, &mut MaxMinShare::new(capacities, paths));

        let busiest_link = self.busiest_link(&loads);
        let busiest_agent = self.busiest_agent(&loads);
        self.links.clear();
        self.ports.clear();
        PhasePrediction {
            switch: parameters.switch_clocks(),
            clocks: rounded_up(outcome.clocks)
                .max(busiest_agent.map_or(0, |agent| agent.clocks))
                .max(busiest_link.map_or(0, |link| link.clocks)),
            planned: times.makespan,
            busiest_link,
            busiest_agent,
            max_sharing: outcome.max_sharing,
        }
    }

    fn busiest_link(&self, loads: &ResourceLoads) -> Option<LinkLoad> {
        let clocks_per_word = u64::from(self.machine.parameters().link_clocks_per_word);
        let found = self
            .links
            .rows()
            .iter()
            .zip(&loads.links)
            .min_by_key(|&(&link, load)| (std::cmp::Reverse(load.words), link));
        found.map(|(&link, load)| LinkLoad {
            link: LinkId(link),
            routes: load.streams,
            words: load.words,
            clocks: load.words.saturating_mul(clocks_per_word),
        })
    }

    fn busiest_agent(&self, loads: &ResourceLoads) -> Option<AgentLoad> {
        let parameters = self.machine.parameters();
        let clocks = |load: &ResourceLoad| {
            let words = load.words.saturating_mul(u64::from(parameters.access_clocks_per_word));
            words.saturating_add(u64::from(load.streams) * u64::from(parameters.stream_setup))
        };
        let found = self
            .ports
            .rows()
            .iter()
            .zip(&loads.agents)
            .min_by_key(|&(&port, load)| (std::cmp::Reverse(clocks(load)), port));
        found.map(|(&port, load)| {
            let (cell, direction) = match (parameters.duplex, port % 2) {
                (Duplex::Half, _) => (port, None),
                (Duplex::Full, 0) => (port / 2, Some(Direction::Send)),
                (Duplex::Full, _) => (port / 2, Some(Direction::Receive)),
            };
            AgentLoad {
                cell: CellId(cell),
                direction,
                streams: load.streams,
                words: load.words,
                clocks: clocks(load),
            }
        })
    }
}

/// Streams and words of a link or an agent.
#[derive(Clone, Copy, Default)]
struct ResourceLoad {
    streams: u32,
    words: u64,
}

/// The loads of a phase, by number within the phase.
#[derive(Default)]
struct ResourceLoads {
    links: Vec<ResourceLoad>,
    agents: Vec<ResourceLoad>,
}

impl ResourceLoads {
    fn link(&mut self, link: u32, words: u32) {
        add(&mut self.links, link, words);
    }

    fn agent(&mut self, agent: u32, words: u32) {
        add(&mut self.agents, agent, words);
    }
}

fn add(loads: &mut Vec<ResourceLoad>, row: u32, words: u32) {
    let row = row as usize;
    if row == loads.len() {
        loads.push(ResourceLoad::default());
    }
    loads[row].streams += 1;
    loads[row].words += u64::from(words);
}

/// Whole clocks, rounded up; what is above a whole number by rounding errors only counts as it.
fn rounded_up(clocks: f64) -> u64 {
    // The cast saturates, which is meant.
    (clocks - 1e-6 - clocks * 1e-12).ceil().max(0.0) as u64
}
