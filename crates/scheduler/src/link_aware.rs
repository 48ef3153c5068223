//! Timetables that avoid contention on links.
//!
//! The paper's greedy timetable ([`mod@crate::greedy`]) plans as if links had unlimited capacity.
//! The timetables of this module keep streams off links that others use:
//!
//! * [`in_rounds`]: if the router provides *rounds* (routes that share no agent and no link), the
//!   rounds of a phase run one after the other, each as long as its longest route.
//! * [`list_schedules`]: otherwise a route waits until its agents and links are free
//!   (`list_scheduling`). Several passes give several timetables, with the greedy one among them;
//!   after pricing, [`combine`] takes the cheapest timetable of each phase.
//!
//! # What this module does not do
//!
//! It never changes a route. Phases with precedence constraints get the greedy timetable.

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionId, LinkId, PhaseId, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};

use crate::cost::{PortId, StreamCosts};
use crate::list_scheduling::{self, ListProblem, RouteTask};
use crate::local_index::{LocalIndex, RowId};
use crate::parallel;
use crate::precedence::PhasePrecedence;
use crate::predict::{Prediction, predict};
use crate::{ScheduleError, greedy};

/// A timetable in which the rounds of each phase run one after the other. `rounds` has, for each
/// phase, the round of each route in the order of the routes.
///
/// # Errors
/// The durations of a phase add up to 2^63 clocks or more.
///
/// # Panics
/// If `rounds` does not have one list for each phase and one number for each route.
pub fn in_rounds(routing: Routing, rounds: &[Vec<u32>]) -> Result<Timetable, ScheduleError> {
    let costs = StreamCosts::new(routing.machine());
    let mut free = vec![0u64; costs.port_count(routing.machine())];
    let mut phases = Vec::with_capacity(routing.phases().len());
    assert_eq!(rounds.len(), routing.phases().len(), "rounds for each phase");
    for ((phase, routes), rounds) in routing.iter().zip(rounds) {
        phases.push(phase_in_rounds(&routing, phase, routes, rounds, &costs, &mut free)?);
    }
    Ok(Timetable::new(routing, phases).expect("one slot was made for each route"))
}

fn phase_in_rounds(
    routing: &Routing,
    phase: PhaseId,
    routes: &PhaseRoutes,
    rounds: &[u32],
    costs: &StreamCosts,
    free: &mut [u64],
) -> Result<PhaseTimes, ScheduleError> {
    assert_eq!(rounds.len(), routes.len(), "a round for each route");
    let mut rows: Vec<u32> = (0..to_u32(routes.len())).collect();
    rows.sort_by_key(|&row| rounds[index(row)]);
    free.fill(0);
    let mut slots = vec![Slot::default(); routes.len()];
    let (mut base, mut end, mut total) = (0u64, 0u64, 0u128);
    let mut round = None;
    for row in rows {
        if round != Some(rounds[index(row)]) {
            round = Some(rounds[index(row)]);
            base = end;
        }
        let route = routes.get(index(row));
        let connection = routing.set().get(route.connection);
        let duration = costs.duration(&route, connection);
        total += u128::from(duration);
        if total >= 1 << 63 {
            return Err(ScheduleError::TooLong { phase });
        }
        let [a, b] = costs.ports(connection).map(RowId::row);
        let slot = Slot { start: base.max(free[a]).max(free[b]), duration };
        (free[a], free[b]) = (slot.end(), slot.end());
        end = end.max(slot.end());
        slots[index(row)] = slot;
    }
    Ok(PhaseTimes { slots, makespan: end })
}

/// Routes of a phase above which at most two passes are made.
const MANY_ROUTES: usize = 1 << 8;

/// Total links of all routes of a phase above which no pass is made, to limit memory.
const LINKS_MEMORY_LIMIT: usize = 1 << 25;

/// Timetables by list scheduling. `passes` priority orders are tried in each phase; the shortest
/// results make up the second timetable and those after it. The first timetable is the greedy one.
/// Price them all to find the best one for each phase ([`combine`]).
///
/// # Errors
/// The durations of a phase add up to 2^63 clocks or more.
pub fn list_schedules(
    routing: Routing,
    passes: u32,
    seed: u64,
) -> Result<Vec<Timetable>, ScheduleError> {
    let greedy = greedy::timetable(routing)?;
    let routing = greedy.routing().clone();
    let mut tables = vec![greedy.phases().to_vec()];
    let plans = parallel::phases(
        &routing,
        || ListScheduler::new(&routing),
        |scheduler, phase, routes| {
            scheduler.phase(&routing, routes, passes, seed ^ u64::from(phase.0) << 32)
        },
    );
    for (phase, plans) in plans.into_iter().enumerate() {
        for (row, times) in plans.into_iter().enumerate() {
            if tables.len() <= row + 1 {
                tables.push(greedy.phases().to_vec());
            }
            tables[row + 1][phase] = times;
        }
    }
    let timetable = |phases| Timetable::new(routing.clone(), phases).expect("one slot each");
    Ok(tables.into_iter().map(timetable).collect())
}

/// Combines the cheapest phases of several timetables of one routing; of equal ones the first.
/// `prices` has the clocks of each phase for each timetable.
///
/// # Panics
/// If `tables` is empty, or a price is missing.
#[must_use]
pub fn combine(tables: &[Timetable], prices: &[Vec<u64>]) -> Timetable {
    let routing = tables[0].routing();
    let phases = (0..routing.phases().len()).map(|phase| {
        let best = (0..tables.len()).min_by_key(|&row| prices[row][phase]);
        tables[best.expect("a timetable")].phases()[phase].clone()
    });
    Timetable::new(routing.clone(), phases.collect()).expect("phases of the same routing")
}

/// The cheapest phases of several timetables of one routing by the cost model, and their
/// prediction; of equal ones the first.
///
/// # Panics
/// If `tables` is empty.
#[must_use]
pub fn cheapest(tables: &[Timetable]) -> (Timetable, Prediction) {
    let priced: Vec<Prediction> = tables.iter().map(predict).collect();
    let prices: Vec<Vec<u64>> = priced
        .iter()
        .map(|table| table.phases.iter().map(|phase| phase.clocks).collect())
        .collect();
    let phases = (0..tables[0].phases().len()).map(|phase| {
        let best = (0..tables.len()).min_by_key(|&row| prices[row][phase]);
        priced[best.expect("a timetable")].phases[phase]
    });
    let prediction = Prediction::new(phases.collect());
    (combine(tables, &prices), prediction)
}

struct ListScheduler {
    costs: StreamCosts,
    /// Streams at full rate that a link carries.
    streams_per_link: u32,
    ports: LocalIndex<PortId>,
    links: LocalIndex<LinkId>,
    connections: LocalIndex<ConnectionId>,
}

impl ListScheduler {
    fn new(routing: &Routing) -> Self {
        let machine = routing.machine();
        let parameters = machine.parameters();
        let costs = StreamCosts::new(machine);
        let streams_per_link = parameters.streams_per_link();
        Self {
            costs,
            streams_per_link,
            ports: LocalIndex::new(costs.port_count(machine)),
            links: LocalIndex::new(machine.link_count()),
            connections: LocalIndex::new(routing.set().len()),
        }
    }

    /// The shortest timetables of a phase that the passes find, the shortest first.
    fn phase(
        &mut self,
        routing: &Routing,
        routes: &PhaseRoutes,
        passes: u32,
        seed: u64,
    ) -> Vec<PhaseTimes> {
        let set = routing.set();
        if PhasePrecedence::of(set, routes, &mut self.connections).is_some() {
            return Vec::new();
        }
        let mut links = Vec::new();
        let mut tasks = Vec::with_capacity(routes.len());
        for route in routes.iter() {
            let connection = set.get(route.connection);
            let ports = self.costs.ports(connection).map(|port| self.ports.index_of(port));
            let known = route.links().iter().filter(|&&link| link != conset_ir::LinkId::NONE);
            links.extend(known.map(|&link| self.links.index_of(link)));
            let duration = self.costs.duration(&route, connection);
            tasks.push(RouteTask { ports, duration, links_end: to_u32(links.len()) });
        }
        let phase = ListProblem {
            tasks,
            links,
            port_count: self.ports.ids().len(),
            link_count: self.links.ids().len(),
            streams_per_link: self.streams_per_link,
        };
        self.ports.clear();
        self.links.clear();
        let most = match (phase.links.len(), phase.tasks.len()) {
            (links, _) if links > LINKS_MEMORY_LIMIT => 0,
            (_, tasks) if tasks > MANY_ROUTES => 2,
            _ => passes,
        };
        let passes = passes.min(most);
        list_scheduling::shortest(&phase, passes, seed)
    }
}
