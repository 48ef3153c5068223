//! The cost model: the time that a timetable takes, with link sharing.
//!
//! ```text
//! clocks = sum over phases of (t_sync + t_phase + clocks until the phase's last word is received)
//! ```
//!
//! The paper's model is the switch and the makespan; where streams share links its prediction was
//! up to 4.8 times too short (section 5.1.4). Here each phase is simulated as fluid streams
//! (`fluid`) with max-min fair shares of links and agents (`max_min_share`), in the order of the
//! timetable but not at its planned times. The clocks of a phase are rounded up. They are never
//! below what its busiest agent needs alone (its words and stream set-ups, one after the other),
//! nor below what its busiest link needs: rounding errors could fall below these, and the checker
//! compares predictions with both.
//!
//! # Pipeline latency
//!
//! The last word of a stream is received some clocks after it is sent (its *pipeline latency*): it
//! crosses links, and the agent of the target takes it. Streams that follow each other at an agent
//! hide the latency of all but the last one. Precedence constraints do not: a connection waits
//! until the last word of its predecessor is received, so latencies add up along chains. (A chain
//! of 2000 connections of 4 words between arbitrary cells took 1.7 times the time predicted without
//! latencies.) So the prediction includes latencies if the set has an order, and not otherwise.
//!
//! # Timed starts
//!
//! On a machine with timed starts no stream is opened before the start of its slot, at either end,
//! and latencies always count: if streams do not contend, latencies are all that a phase takes
//! beyond its plan. Phases without contention are not simulated: they have a closed form, which is
//! exact (`contention_free`).
//!
//! # What the model leaves out
//!
//! Latencies of sets without an order (a few clocks per hop and phase), queue depth, and the
//! unevenness of word-by-word turns. The fabric models all of these and is the reference. Queue
//! depth matters if streams are ordered at random: an agent that has sent a stream into queues
//! whose target is not ready continues sooner than predicted, by up to a few percent of the total.

use conset_ir::convert::{index, to_f64, to_u32, truncate};
use conset_ir::{
    CellId, ConnectionId, Direction, Duplex, LinkId, Lists, Machine, PhaseRoutes, PhaseTimes,
    RouteRef, Timetable,
};

use crate::contention_free::ContentionFree;
use crate::cost::{PortId, StreamCosts};
use crate::fluid;
use crate::local_index::LocalIndex;
use crate::max_min_share::MaxMinShare;
use crate::parallel;
use crate::precedence::PhasePrecedence;

/// The predicted time of a compiled set.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Prediction {
    /// Clocks of all phases, switches included.
    pub clocks: u64,
    /// The phases in the order of execution.
    pub phases: Vec<PhasePrediction>,
}

impl Prediction {
    /// The prediction of a set whose phases are predicted already; `clocks` is their sum.
    pub fn new(phases: Vec<PhasePrediction>) -> Self {
        let clocks = phases
            .iter()
            .fold(0u64, |sum, phase| sum.saturating_add(phase.switch).saturating_add(phase.clocks));
        Self { clocks, phases }
    }
}

/// The predicted time of a phase, and its busiest link and agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhasePrediction {
    /// Clocks of the context switch: `t_sync + t_phase`.
    pub switch: u64,
    /// Clocks from the end of the switch until the last word is received.
    pub clocks: u64,
    /// The makespan of the timetable: the clocks without link sharing.
    pub planned: u64,
    /// The link with the most words, of equal ones the lowest; `None` if no word crosses a link.
    pub busiest_link: Option<LinkLoad>,
    /// The agent that is busy longest, of equal ones the lowest; `None` in an empty phase.
    pub busiest_agent: Option<AgentLoad>,
    /// The most streams that flow over one link at the same time.
    pub max_sharing: u32,
}

/// The load of a link in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// The load of an agent in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLoad {
    /// The cell.
    pub cell: CellId,
    /// The busier direction with full duplex; `None` with half duplex, where the directions add up.
    pub direction: Option<Direction>,
    /// Streams that it opens.
    pub streams: u32,
    /// Words that it sends or receives.
    pub words: u64,
    /// Clocks in which it opens a stream or moves a word.
    pub clocks: u64,
}

/// Predicts the time of each phase of a timetable.
///
/// Memory is O(routes x hops) per phase. Each start and end of a stream costs time in proportion to
/// the rates that it changes.
///
/// ```
/// use std::sync::Arc;
/// use conset_ir::{CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Machine};
/// use conset_ir::{PhaseRoutes, Routing};
/// use conset_scheduler::{predict, timetable};
///
/// // 133 words from cell 3 to its neighbour, cell 4, at 2 clocks a word.
/// let machine = Arc::new(Machine::from_spec("iwarp")?);
/// let connection = Connection::new(CellId(3), CellId(4), 133);
/// let set = Arc::new(ConnectionSet::new("one", vec![connection])?);
/// let cells = [CellId(3), CellId(4)];
/// let link = machine.links_between(cells[0], cells[1]).next().expect("neighbours");
/// let mut phase = PhaseRoutes::new();
/// phase.push(ConnectionId(0), 133, &cells, &[link], &[ChannelId(0); 2])?;
/// let routing = Routing::new(machine, set, vec![phase])?;
///
/// let prediction = predict(&timetable(routing)?);
/// assert_eq!(prediction.phases[0].clocks, 266);
/// assert_eq!(prediction.clocks, 528 + 266); // with the context switch
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn predict(timetable: &Timetable) -> Prediction {
    let phases: Vec<PhasePrediction> = parallel::phases(
        timetable.routing(),
        || CostModel::new(timetable),
        |model, phase, routes| model.phase(routes, &timetable.phases()[phase.index()]),
    );
    Prediction::new(phases)
}

/// When the ends of a stream are open, in clocks from the end of the context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamTimes {
    /// When the sender begins to open it.
    pub send_open: u64,
    /// When the receiver begins to open it.
    pub receive_open: u64,
    /// When its last word is sent.
    pub sent: u64,
    /// When its last word is received.
    pub received: u64,
}

/// The times of every stream, by phase and in the order of the phase's routes, as [`predict()`] finds
/// them. They are rounded to whole clocks, openings down and ends up.
#[must_use]
pub fn stream_times(timetable: &Timetable) -> Vec<Vec<StreamTimes>> {
    parallel::phases(
        timetable.routing(),
        || CostModel::new(timetable),
        |model, phase, routes| {
            let (outcome, _) = model.simulate(routes, &timetable.phases()[phase.index()]);
            model.links.clear();
            model.ports.clear();
            let ends = outcome.sent.iter().zip(&outcome.finish_times);
            let times = outcome.opened.iter().zip(ends).map(|(opened, (&sent, &received))| {
                let [send_open, receive_open] = opened.map(rounded_down);
                let [sent, received] = [sent, received].map(rounded_up);
                StreamTimes { send_open, receive_open, sent, received }
            });
            times.collect()
        },
    )
}

/// The machine, and memory that is reused from phase to phase.
struct CostModel<'a> {
    timetable: &'a Timetable,
    machine: &'a Machine,
    costs: StreamCosts,
    links: LocalIndex<LinkId>,
    /// Two per cell, its send port and its receive port; with half duplex only one.
    ports: LocalIndex<PortId>,
    connections: LocalIndex<ConnectionId>,
}

impl<'a> CostModel<'a> {
    fn new(timetable: &'a Timetable) -> Self {
        let routing = timetable.routing();
        let machine = routing.machine();
        let costs = StreamCosts::new(machine);
        Self {
            timetable,
            machine,
            costs,
            links: LocalIndex::new(machine.link_count()),
            ports: LocalIndex::new(costs.port_count(machine)),
            connections: LocalIndex::new(routing.set().len()),
        }
    }

    /// The pipeline latencies of the routes, if they count: in a set with an order successors wait
    /// for them, and on a machine with timed starts they are what the plan leaves out.
    fn latencies(&self, routes: &PhaseRoutes) -> Vec<f64> {
        let set = self.timetable.routing().set();
        if set.order().is_empty() && !self.machine.parameters().has_timed_starts() {
            return Vec::new();
        }
        let latency = |route: RouteRef<'_>| {
            to_f64(self.costs.pipeline_latency(route.hops(), set.get(route.connection)))
        };
        routes.iter().map(latency).collect()
    }

    /// Simulates a phase. The caller clears the numbers of links and ports.
    fn simulate(
        &mut self,
        routes: &PhaseRoutes,
        times: &PhaseTimes,
    ) -> (fluid::FluidOutcome, ResourceLoads) {
        let parameters = self.machine.parameters();
        let set = self.timetable.routing().set();
        let mut rows: Vec<u32> = (0..to_u32(routes.len())).collect();
        rows.sort_unstable_by_key(|&row| {
            (times.slots[index(row)].start, routes.get(index(row)).connection, row)
        });

        let mut loads = ResourceLoads::default();
        let mut ports = Vec::with_capacity(routes.len());
        let mut crossings = Vec::new();
        for (row, route) in routes.iter().enumerate() {
            for &link in route.links().iter().filter(|&&link| link != LinkId::NONE) {
                let link = self.links.index_of(link);
                loads.link(link, route.words);
                crossings.push((to_u32(row), link));
            }
            let both = self.costs.ports(set.get(route.connection));
            let both = both.map(|port| self.ports.index_of(port));
            let overhead = self.costs.overhead(set.get(route.connection));
            for port in both {
                loads.agent(port, route.words, overhead);
            }
            ports.push(both);
        }
        // Resources of the phase: its links, then its ports.
        let links = to_u32(self.links.ids().len());
        let port_count = self.ports.ids().len();
        let clocks = self.links.ids().iter().map(|&link| self.machine.link_clocks(link));
        let mut capacities: Vec<f64> = clocks.map(|clocks| 1.0 / f64::from(clocks)).collect();
        let access = 1.0 / f64::from(parameters.access_clocks_per_word);
        capacities.resize(capacities.len() + port_count, access);
        let ends = ports
            .iter()
            .enumerate()
            .flat_map(|(row, both)| both.map(|port| (to_u32(row), port + links)));
        let paths = Lists::new(routes.len(), crossings.iter().copied().chain(ends));
        let listed = rows.iter().flat_map(|&row| {
            let [from, to] = ports[index(row)];
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
                true => times.slots.iter().map(|slot| to_f64(slot.start)).collect(),
                false => Vec::new(),
            },
            streams: parameters.streams,
            setup: f64::from(parameters.stream_setup),
            overheads: match self.costs.has_overhead() {
                true => routes
                    .iter()
                    .map(|route| to_f64(self.costs.overhead(set.get(route.connection))))
                    .collect(),
                false => Vec::new(),
            },
            links,
        };
        let exact = self.contention_free(&phase, routes, times, &crossings);
        let simulated = || fluid::run(&phase, &mut MaxMinShare::new(capacities, paths));
        (exact.unwrap_or_else(simulated), loads)
    }

    /// The exact times of a phase whose streams do not meet, if agents wait for their starts.
    fn contention_free(
        &self,
        phase: &fluid::FluidPhase<'_>,
        routes: &PhaseRoutes,
        times: &PhaseTimes,
        crossings: &[(u32, u32)],
    ) -> Option<fluid::FluidOutcome> {
        let parameters = self.machine.parameters();
        let [fastest, slowest] = self.machine.link_clocks_range();
        if !parameters.has_timed_starts() || fastest < slowest {
            return None;
        }
        let set = self.timetable.routing().set();
        let setup = |route: RouteRef<'_>| {
            u64::from(parameters.stream_setup) + self.costs.overhead(set.get(route.connection))
        };
        let starts: Vec<u64> = times.slots.iter().map(|slot| slot.start).collect();
        let setups: Vec<u64> = routes.iter().map(setup).collect();
        ContentionFree {
            phase,
            starts: &starts,
            setups: &setups,
            crossings,
            access: parameters.access_clocks_per_word.into(),
            link: slowest.into(),
            depth: parameters.channel_depth.into(),
            half: parameters.duplex == Duplex::Half,
        }
        .outcome()
    }

    fn phase(&mut self, routes: &PhaseRoutes, times: &PhaseTimes) -> PhasePrediction {
        let (outcome, loads) = self.simulate(routes, times);
        let busiest_link = self.busiest_link(&loads);
        let busiest_agent = self.busiest_agent(&loads);
        self.links.clear();
        self.ports.clear();
        PhasePrediction {
            switch: self.machine.parameters().switch_clocks(),
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
        let clocks = |link: LinkId, load: &ResourceLoad| {
            load.words.saturating_mul(self.machine.link_clocks(link).into())
        };
        let found = self
            .links
            .ids()
            .iter()
            .zip(&loads.links)
            .min_by_key(|&(&link, load)| (std::cmp::Reverse(clocks(link, load)), link));
        found.map(|(&link, load)| LinkLoad {
            link,
            routes: load.streams,
            words: load.words,
            clocks: clocks(link, load),
        })
    }

    fn busiest_agent(&self, loads: &ResourceLoads) -> Option<AgentLoad> {
        let parameters = self.machine.parameters();
        let clocks = |load: &ResourceLoad| {
            let words = load.words.saturating_mul(u64::from(parameters.access_clocks_per_word));
            let setups = u64::from(load.streams) * u64::from(parameters.stream_setup);
            words.saturating_add(setups.saturating_add(load.overhead))
        };
        let found = self
            .ports
            .ids()
            .iter()
            .zip(&loads.agents)
            .min_by_key(|&(&port, load)| (std::cmp::Reverse(clocks(load)), port));
        found.map(|(&port, load)| {
            let PortId(port) = port;
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
    /// Clocks to open streams beyond `stream_setup` each.
    overhead: u64,
}

/// The loads of a phase, by numbers within the phase.
#[derive(Default)]
struct ResourceLoads {
    links: Vec<ResourceLoad>,
    agents: Vec<ResourceLoad>,
}

impl ResourceLoads {
    fn link(&mut self, link: u32, words: u32) {
        add(&mut self.links, link, words, 0);
    }

    fn agent(&mut self, agent: u32, words: u32, overhead: u64) {
        add(&mut self.agents, agent, words, overhead);
    }
}

fn add(loads: &mut Vec<ResourceLoad>, row: u32, words: u32, overhead: u64) {
    let row = index(row);
    if row == loads.len() {
        loads.push(ResourceLoad::default());
    }
    loads[row].streams += 1;
    loads[row].words += u64::from(words);
    loads[row].overhead += overhead;
}

/// Whole clocks, rounded up. A fraction that rounding errors explain is ignored; what exceeds 64
/// bits is `u64::MAX`.
fn rounded_up(clocks: f64) -> u64 {
    whole_clocks((clocks - 1e-6 - clocks * 1e-12).ceil())
}

/// Whole clocks, rounded down, as [`rounded_up`].
fn rounded_down(clocks: f64) -> u64 {
    whole_clocks((clocks + 1e-6 + clocks * 1e-12).floor())
}

fn whole_clocks(whole: f64) -> u64 {
    const TOO_MANY: f64 = 18_446_744_073_709_551_616.0;
    if whole < TOO_MANY { truncate(whole.max(0.0)) } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_that_rounding_errors_explain_are_ignored() {
        assert_eq!([2.0, 2.3, 2.9, 3.0 - 1e-9, 3.0 + 1e-9].map(rounded_down), [2, 2, 2, 3, 3]);
        assert_eq!([2.0, 2.3, 2.9, 3.0 - 1e-9, 3.0 + 1e-9].map(rounded_up), [2, 3, 3, 3, 3]);
        // One in 10^12.
        assert_eq!([rounded_down(1e12 - 0.5), rounded_up(1e12 + 0.5)], [1_000_000_000_000; 2]);
        assert_eq!(rounded_down(1e12 - 1.5), 999_999_999_999);
        assert_eq!([rounded_up(-1.0), rounded_up(1e30)], [0, u64::MAX]);
        assert_eq!(whole_clocks(64f64.exp2()), u64::MAX);
    }
}
