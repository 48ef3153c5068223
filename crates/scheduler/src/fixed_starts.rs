//! Timetables with given starts.
//!
//! * [`with_starts`]: all starts are given, as by an image, which says when each stream opens but
//!   not for how long it is booked. The scheduler computes the durations.
//! * [`backfill`]: some starts are given, as in an incremental compile. The other routes are put
//!   into the time that their agents have left. ([`crate::idle_intervals`] decides beforehand in
//!   which phases there is time.)
//! * [`with_early_starts`]: variants of timetables with starts so early that they delay no stream.
//!
//! Given starts are never moved. Whether the slots are legal is for the checker to decide.

use std::cmp::Reverse;

use conset_ir::convert::index;
use conset_ir::{
    ConnectionId, ConnectionSet, PhaseRoutes, PhaseTimes, Routing, ShapeError, Slot, Timetable,
};

use crate::cost::{PortId, PortTask, StreamCosts};
use crate::free_intervals::FreeIntervals;
use crate::local_index::LocalIndex;
use crate::precedence::PhasePrecedence;

/// The timetable of a routing with given starts: one list per phase and one start per route, in
/// clocks from the start of the phase.
///
/// # Errors
/// `starts` does not have one start for each route.
pub fn with_starts(routing: Routing, starts: &[Vec<u64>]) -> Result<Timetable, ShapeError> {
    let costs = StreamCosts::new(routing.machine());
    let set = routing.set().clone();
    let times = routing
        .phases()
        .iter()
        .zip(starts)
        .map(|(routes, starts)| {
            let slots: Vec<Slot> = routes
                .iter()
                .zip(starts)
                .map(|(route, &start)| Slot {
                    start,
                    duration: costs.duration(&route, set.get(route.connection)),
                })
                .collect();
            let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
            PhaseTimes { slots, makespan }
        })
        .collect();
    Timetable::new(routing, times)
}

/// Adds variants with early starts. On a machine with timed starts, each timetable is followed by
/// one with the same order and starts so early that every stream opens as soon as its agents are
/// free. On other machines only the order counts and nothing is added. Price all of them to find
/// the phases in which the planned starts are better.
#[must_use]
pub fn with_early_starts(mut tables: Vec<Timetable>) -> Vec<Timetable> {
    let timed = |table: &&Timetable| table.routing().machine().parameters().has_timed_starts();
    let early: Vec<Timetable> = tables.iter().filter(timed).map(early_starts).collect();
    tables.extend(early);
    tables
}

/// The timetable with starts that delay no stream. At each port a stream starts together with the
/// one before it, or a clock later if the order of ids would otherwise reverse them: slots overlap,
/// and agents work through them. A successor starts at the end of its predecessors' slots, which is
/// before their last words are received.
fn early_starts(table: &Timetable) -> Timetable {
    let routing = table.routing();
    let costs = StreamCosts::new(routing.machine());
    let set = routing.set();
    let mut ports = LocalIndex::new(costs.port_count(routing.machine()));
    let mut connections = LocalIndex::new(set.len());
    let times = routing.phases().iter().zip(table.phases()).map(|(routes, times)| {
        let precedence = PhasePrecedence::of(set, routes, &mut connections);
        let mut rows: Vec<usize> = (0..routes.len()).collect();
        let name = |row: usize| (routes.get(row).connection, row);
        rows.sort_by_key(|&row| (times.slots[row].start, name(row)));
        let mut slots = vec![Slot::default(); routes.len()];
        let mut last: Vec<Option<usize>> = Vec::new();
        for row in rows {
            let route = routes.get(row);
            let connection = set.get(route.connection);
            let both = costs.ports(connection).map(|port| index(ports.index_of(port)));
            last.resize(ports.ids().len(), None);
            let behind = |before: usize| {
                slots[before].start.saturating_add(u64::from(name(before) > name(row)))
            };
            let start = both.into_iter().filter_map(|port| last[port]).map(behind).max();
            let before = precedence.iter().flat_map(|precedence| {
                let groups = precedence.predecessors.of(precedence.group[row]).iter();
                groups.flat_map(|&group| precedence.routes.of(group))
            });
            let over = before.map(|&row| slots[index(row)].end()).max();
            let start = start.max(over).unwrap_or(0);
            slots[row] = Slot { start, duration: costs.duration(&route, connection) };
            both.into_iter().for_each(|port| last[port] = Some(row));
        }
        ports.clear();
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        PhaseTimes { slots, makespan }
    });
    let times = times.collect();
    Timetable::new(routing.clone(), times).expect("one slot was made for each route")
}

/// What is known of the start of a route, in clocks from the start of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// It is this clock.
    Fixed(u64),
    /// It should be this clock if both agents are free then.
    Preferred(u64),
    /// Nothing.
    Any,
}

/// Times for each phase of a routing in which some starts are known: one list per phase and one
/// entry per route. The other routes, the longest first, get the first start at which both their
/// agents are free and their predecessors have ended. `None` for a phase where this is impossible:
/// an agent would be booked twice, or the order would be violated.
///
/// # Panics
/// If there is not one list for each phase and one entry for each route, or the durations and
/// starts of a phase add up to 2^64 clocks or more.
#[must_use]
pub fn backfill(routing: &Routing, starts: &[Vec<StartRule>]) -> Vec<Option<PhaseTimes>> {
    assert_eq!(starts.len(), routing.phases().len(), "starts for each phase");
    let mut backfiller = Backfiller {
        set: routing.set(),
        costs: StreamCosts::new(routing.machine()),
        ports: LocalIndex::new(StreamCosts::new(routing.machine()).port_count(routing.machine())),
        connections: LocalIndex::new(routing.set().len()),
    };
    routing
        .phases()
        .iter()
        .zip(starts)
        .map(|(routes, starts)| backfiller.phase(routes, starts))
        .collect()
}

struct Backfiller<'a> {
    set: &'a ConnectionSet,
    costs: StreamCosts,
    ports: LocalIndex<PortId>,
    connections: LocalIndex<ConnectionId>,
}

impl Backfiller<'_> {
    fn phase(&mut self, routes: &PhaseRoutes, starts: &[StartRule]) -> Option<PhaseTimes> {
        assert_eq!(starts.len(), routes.len(), "an entry for each route");
        let mut tasks = Vec::with_capacity(routes.len());
        for route in routes.iter() {
            let connection = self.set.get(route.connection);
            let ports = self.costs.ports(connection).map(|port| self.ports.index_of(port));
            let duration = self.costs.duration(&route, connection);
            let pipeline_latency = self.costs.pipeline_latency(route.hops(), connection);
            tasks.push(PortTask { ports, duration, pipeline_latency });
        }
        let mut free = vec![FreeIntervals::new(); self.ports.ids().len()];
        self.ports.clear();
        let precedence = PhasePrecedence::of(self.set, routes, &mut self.connections);
        let ranks = precedence.as_ref().map(ranks);
        let rank = |row: usize| match (&precedence, &ranks) {
            (Some(precedence), Some(ranks)) => ranks[index(precedence.group[row])],
            _ => 0,
        };
        // Routes with a start come first, in the order of time, so that free intervals stay few.
        let mut rows: Vec<usize> = (0..tasks.len()).collect();
        rows.sort_by_key(|&row| match starts[row] {
            StartRule::Fixed(start) => (0, 0, start, Reverse(0)),
            _ => (1, rank(row), 0, Reverse(tasks[row].duration)),
        });
        let mut slots = vec![Slot::default(); tasks.len()];
        let mut scheduled = vec![false; tasks.len()];
        for row in rows {
            let PortTask { ports, duration, .. } = tasks[row];
            let [a, b] = ports.map(index);
            let after = precedence.as_ref().map_or(0, |precedence| {
                let before = precedence.predecessors.of(precedence.group[row]).iter();
                let before = before.flat_map(|&group| precedence.routes.of(group));
                let before = before.filter(|&&row| scheduled[index(row)]);
                let received =
                    |row: usize| slots[row].end().saturating_add(tasks[row].pipeline_latency);
                before.map(|&row| received(index(row))).max().unwrap_or(0)
            });
            let first = |from| free[a].first_common(&free[b], from, duration);
            let first = match starts[row] {
                StartRule::Fixed(start) if first(start) != start => return None,
                StartRule::Fixed(start) => start,
                StartRule::Preferred(start) if start >= after && first(start) == start => start,
                _ => first(after),
            };
            slots[row] = Slot { start: first, duration };
            scheduled[row] = true;
            free[a].book(first, slots[row].end());
            if a != b {
                free[b].book(first, slots[row].end());
            }
        }
        if precedence.is_some_and(|precedence| !keeps(&precedence, &slots)) {
            return None;
        }
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        Some(PhaseTimes { slots, makespan })
    }
}

/// For each group, its position in the longest chain of predecessors.
fn ranks(precedence: &PhasePrecedence) -> Vec<u32> {
    let groups = precedence.predecessors.rows();
    let mut ranks = vec![0; index(groups)];
    let mut waits: Vec<usize> =
        (0..groups).map(|group| precedence.predecessors.of(group).len()).collect();
    let mut ready: Vec<u32> = (0..groups).filter(|&group| waits[index(group)] == 0).collect();
    while let Some(group) = ready.pop() {
        for &after in precedence.successors.of(group) {
            ranks[index(after)] = ranks[index(after)].max(ranks[index(group)] + 1);
            waits[index(after)] -= 1;
            if waits[index(after)] == 0 {
                ready.push(after);
            }
        }
    }
    ranks
}

/// Whether slots respect the precedence constraints.
fn keeps(precedence: &PhasePrecedence, slots: &[Slot]) -> bool {
    let of = |group: u32| precedence.routes.of(group).iter().map(|&row| slots[index(row)]);
    (0..precedence.predecessors.rows()).all(|group| {
        let start = of(group).map(|slot| slot.start).min();
        let before = precedence.predecessors.of(group).iter().flat_map(|&before| of(before));
        start.is_none_or(|start| before.map(|slot| slot.end()).all(|end| end <= start))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{CellId, ChannelId, Connection, Machine};

    use super::*;

    /// All connections in one phase, each over the link between its neighbouring cells.
    fn over_single_links(machine: Arc<Machine>, set: Arc<ConnectionSet>) -> Routing {
        let mut phase = PhaseRoutes::new();
        for (id, connection) in set.iter() {
            let cells = [connection.source, connection.target];
            let link = machine.links_between(cells[0], cells[1]).next().unwrap();
            phase.push(id, connection.words, &cells, &[link], &[ChannelId(0); 2]).unwrap();
        }
        Routing::new(machine, set, vec![phase]).unwrap()
    }

    #[test]
    fn starts_are_kept_and_durations_added() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let connection = Connection::new(CellId(0), CellId(1), 133);
        let set = Arc::new(ConnectionSet::new("s", vec![connection]).unwrap());
        let routing = over_single_links(machine, set);
        let timetable = with_starts(routing.clone(), &[vec![10]]).unwrap();
        assert_eq!(timetable.phases()[0].slots, [Slot { start: 10, duration: 266 }]);
        assert_eq!(timetable.phases()[0].makespan, 276);
        assert!(with_starts(routing.clone(), &[vec![]]).is_err());
        assert_eq!(
            backfill(&routing, &[vec![StartRule::Fixed(10)]])[0].as_ref(),
            Some(&timetable.phases()[0])
        );
        let slot = backfill(&routing, &[vec![StartRule::Any]])[0].as_ref().unwrap().slots[0];
        assert_eq!(slot, Slot { start: 0, duration: 266 });
        assert!(with_starts(routing, &[]).is_err());
    }

    #[test]
    fn backfilled_routes_keep_the_order() {
        let machine = Arc::new(Machine::from_spec("ring:6").unwrap());
        let connect = |s, t| Connection::new(CellId(s), CellId(t), 10);
        let ends = [(0, 1), (2, 3), (4, 5), (0, 1)];
        let rows = ends.map(|(s, t)| connect(s, t)).to_vec();
        let x = ConnectionId;
        let set = ConnectionSet::new("s", rows).unwrap();
        let set = set.with_order(vec![(x(0), x(1)), (x(1), x(2))]).unwrap();
        let routing = over_single_links(machine, Arc::new(set));
        let starts = |of: [Option<u64>; 4]| {
            let of = of.map(|start| start.map_or(StartRule::Any, StartRule::Fixed));
            let times = backfill(&routing, &[of.to_vec()]).pop().flatten()?;
            Some(times.slots.iter().map(|slot| slot.start).collect::<Vec<_>>())
        };
        // The last word takes 4 clocks over a link and through an agent.
        assert_eq!(starts([Some(0), None, Some(48), Some(20)]), Some(vec![0, 24, 48, 20]));
        assert_eq!(starts([Some(30), None, None, None]), Some(vec![30, 54, 78, 0]));
        // No room between two fixed routes; an order that is violated; an agent booked twice.
        assert_eq!(starts([Some(0), None, Some(30), None]), None);
        assert_eq!(starts([Some(10), Some(0), None, None]), None);
        assert_eq!(starts([Some(0), None, None, Some(10)]), None);
    }

    /// The starts that backfilling gives to streams of these ends and words.
    fn backfilled(
        ends: &[(u32, u32, u32)],
        order: Vec<(ConnectionId, ConnectionId)>,
        rules: &[StartRule],
    ) -> Option<Vec<u64>> {
        let machine = Arc::new(Machine::from_spec("ring:6").unwrap());
        let rows = ends.iter().map(|&(s, t, words)| Connection::new(CellId(s), CellId(t), words));
        let set = ConnectionSet::new("s", rows.collect()).unwrap().with_order(order).unwrap();
        let routing = over_single_links(machine, Arc::new(set));
        let times = backfill(&routing, &[rules.to_vec()]).pop().flatten()?;
        Some(times.slots.iter().map(|slot| slot.start).collect())
    }

    #[test]
    fn streams_without_a_start_take_the_time_that_is_left() {
        use StartRule::{Any, Fixed, Preferred};
        let x = ConnectionId;
        // A fixed start goes before a longer stream of the same sender, or receiver.
        assert_eq!(
            backfilled(&[(0, 1, 99), (0, 1, 10)], vec![], &[Any, Fixed(0)]),
            Some(vec![20, 0])
        );
        assert_eq!(
            backfilled(&[(0, 1, 99), (2, 1, 10)], vec![], &[Any, Fixed(0)]),
            Some(vec![20, 0])
        );
        // A successor that is longer goes later all the same, 4 clocks after the last word is sent.
        let pair = [(0, 1, 10), (2, 3, 99)];
        assert_eq!(backfilled(&pair, vec![(x(0), x(1))], &[Any, Any]), Some(vec![0, 24]));
        // A start is preferred if the agents have time, and predecessors have ended.
        let same = [(0, 1, 10), (0, 1, 10)];
        assert_eq!(backfilled(&same, vec![], &[Fixed(0), Preferred(50)]), Some(vec![0, 50]));
        assert_eq!(backfilled(&same, vec![], &[Fixed(0), Preferred(10)]), Some(vec![0, 20]));
        for (preferred, start) in [(23, 24), (24, 24), (25, 25)] {
            let rules = [Fixed(0), Preferred(preferred)];
            assert_eq!(backfilled(&pair, vec![(x(0), x(1))], &rules), Some(vec![0, start]));
        }
    }

    #[test]
    fn early_starts_keep_the_order_of_an_agent() {
        let connect = |s, t| Connection::new(CellId(s), CellId(t), 10);
        let rows = vec![connect(0, 1), connect(0, 5)];
        let set = Arc::new(ConnectionSet::new("s", rows).unwrap());
        let starts = |timed_starts, given: [u64; 2]| {
            let machine = Machine::from_spec("ring:6").unwrap();
            let mut parameters = machine.parameters().clone();
            parameters.timed_starts = timed_starts;
            let machine = Arc::new(machine.with_parameters(parameters).unwrap());
            let routing = over_single_links(machine, set.clone());
            let tables = with_early_starts(vec![with_starts(routing, &[given.to_vec()]).unwrap()]);
            let of = |table: &Timetable| [0, 1].map(|row| table.phases()[0].slots[row].start);
            tables.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(starts(0, [0, 20]), [[0, 20]]);
        // At equal starts the first connection is the first.
        assert_eq!(starts(1, [0, 20]), [[0, 20], [0, 0]]);
        assert_eq!(starts(1, [20, 0]), [[20, 0], [1, 0]]);
    }
}
