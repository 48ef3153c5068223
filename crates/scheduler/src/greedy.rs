//! The greedy scheduler AS (paper, section 4.4.2).
//!
//! ```text
//! compute the duration of every connection
//! until all connections are scheduled:
//!     of the processor with the greatest MIN_TIME take the connection with the largest duration
//!     put it in the first sufficiently large unfilled time region of both processors
//!     update MIN_TIME
//! ```
//!
//! The MIN_TIME of a processor is the time that its unscheduled connections still need. A processor
//! whose two directions are independent counts as two, one for each port (see `cost`).
//!
//! # Ties
//!
//! The paper does not say how to break ties, and in regular patterns every choice is a tie. The
//! rules here do not depend on the order of the connections in the set. Of equal processors, the
//! lowest cell comes first. Of equally long connections, the one that can start earliest; then the
//! one whose partner has the greatest MIN_TIME; then the one with the smallest displacement (target
//! less source, modulo the number of cells), which makes the rounds of a regular pattern
//! permutations. Only the first [`TIE_CANDIDATES`] equal connections are compared.
//!
//! # Precedence
//!
//! If connections of one phase are ordered, predecessors are scheduled first, and a successor
//! starts no earlier than the last word of its predecessor is received. (For other connections the
//! agents of the predecessor are free at the end of its slot.) Every agent works through its slots
//! by (start, connection). So all slots of the machine form one sequence of which each agent sees a
//! part; the first unfinished slot of the sequence is at the head of both its agents, and the phase
//! cannot deadlock. The router keeps the order across phases.
//!
//! # Improvement
//!
//! No port can be done before its initial MIN_TIME, so the greatest of these bounds the makespan.
//! If greedy misses the bound and nothing is ordered, a bounded improvement follows. The better
//! result is kept, so a makespan is never longer than greedy's:
//!
//! * If all durations are equal, scheduling is an edge colouring, and `kempe_repair` repairs the
//!   colours. With full duplex this always reaches the bound.
//! * Otherwise up to [`PASSES`] more greedy passes are made, in which ports that finished late have
//!   a higher MIN_TIME.
//!
//! # What this module does not do
//!
//! It plans one stream at a time per port, whatever `streams` is, and it ignores links;
//! [`mod@crate::predict`] computes the cost of sharing them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionId, Lists, PhaseId, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};

use crate::ScheduleError;
use crate::cost::{PortId, PortTask, StreamCosts};
use crate::free_intervals::FreeIntervals;
use crate::kempe_repair;
use crate::local_index::LocalIndex;
use crate::parallel;
use crate::precedence::PhasePrecedence;

/// The number of equally long connections of a processor that are compared.
pub const TIE_CANDIDATES: usize = 32;

/// Further greedy passes if the first one misses the bound.
pub const PASSES: u32 = 8;

/// The greedy timetable of a routing.
///
/// Each phase takes O(routes x (log routes + free intervals)). There are few free intervals unless
/// durations differ a lot and a cell has hundreds of routes.
///
/// # Errors
/// The durations of a phase add up to 2^63 clocks or more.
pub fn timetable(routing: Routing) -> Result<Timetable, ScheduleError> {
    let costs = StreamCosts::new(routing.machine());
    let scratch = || PhaseScratch {
        ports: LocalIndex::new(costs.port_count(routing.machine())),
        connections: LocalIndex::new(routing.set().len()),
        free: Vec::new(),
    };
    let phases = parallel::phases(&routing, scratch, |scratch, phase, routes| {
        schedule_phase(&routing, phase, routes, &costs, scratch)
    });
    let phases = phases.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Timetable::new(routing, phases).expect("one slot was made for each route"))
}

/// Memory that is reused from phase to phase.
struct PhaseScratch {
    ports: LocalIndex<PortId>,
    connections: LocalIndex<ConnectionId>,
    free: Vec<FreeIntervals>,
}

fn schedule_phase(
    routing: &Routing,
    phase: PhaseId,
    routes: &PhaseRoutes,
    costs: &StreamCosts,
    scratch: &mut PhaseScratch,
) -> Result<PhaseTimes, ScheduleError> {
    let set = routing.set();
    let ports_of: Vec<[PortId; 2]> =
        routes.iter().map(|route| costs.ports(set.get(route.connection))).collect();
    // Ports are numbered in the order of cells, so that ties go to the lowest cell.
    let mut ports: Vec<PortId> = ports_of.iter().flatten().copied().collect();
    ports.sort_unstable();
    for port in ports {
        scratch.ports.index_of(port);
    }
    let port_count = scratch.ports.ids().len();
    let mut tasks = Vec::with_capacity(routes.len());
    let mut total = 0u128;
    for (route, ports) in routes.iter().zip(ports_of) {
        let connection = set.get(route.connection);
        let ports = ports.map(|port| scratch.ports.index_of(port));
        let duration = costs.duration(&route, connection);
        total += u128::from(duration);
        let pipeline_latency = costs.pipeline_latency(route.hops(), connection);
        tasks.push(PortTask { ports, duration, pipeline_latency });
    }
    scratch.ports.clear();
    if total >= 1 << 63 {
        return Err(ScheduleError::TooLong { phase });
    }
    while scratch.free.len() < port_count {
        scratch.free.push(FreeIntervals::new());
    }

    let precedence = PhasePrecedence::of(set, routes, &mut scratch.connections);
    let mut of_port = Lists::new(port_count, port_pairs(&tasks));
    let cells = to_u32(routing.machine().cell_count());
    for port in 0..of_port.rows() {
        of_port.of_mut(port).sort_unstable_by_key(|&row| {
            let connection = routes.get(index(row)).connection;
            let c = set.get(connection);
            let displacement = (c.target.0 + cells - c.source.0) % cells;
            (Reverse(tasks[index(row)].duration), displacement, c.source, connection, row)
        });
    }
    let loads: Vec<u64> = (0..of_port.rows())
        .map(|port| of_port.of(port).iter().map(|&row| tasks[index(row)].duration).sum())
        .collect();

    let free = &mut scratch.free[..port_count];
    let pass = |free: &mut [FreeIntervals], handicaps: &[u64]| {
        GreedyPass::new(&tasks, &of_port, precedence.as_ref(), &loads, handicaps, free).run()
    };
    let mut times = pass(free, &[]);
    if precedence.is_none() {
        let bound = loads.iter().copied().max().unwrap_or(0);
        improve(&tasks, &of_port, bound, &mut times, |handicaps| pass(free, handicaps));
    }
    Ok(times)
}

/// Each port with each of its tasks. A task with a single port is listed once.
fn port_pairs(tasks: &[PortTask]) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
    tasks.iter().enumerate().flat_map(|(row, task)| {
        let [a, b] = task.ports;
        let second = (a != b).then_some((b, to_u32(row)));
        std::iter::once((a, to_u32(row))).chain(second)
    })
}

/// Looks for a timetable that is shorter than greedy's `times`; never leaves a longer one.
fn improve(
    tasks: &[PortTask],
    of_port: &Lists,
    bound: u64,
    times: &mut PhaseTimes,
    mut pass: impl FnMut(&[u64]) -> PhaseTimes,
) {
    if times.makespan <= bound {
        return;
    }
    if tasks.iter().all(|task| task.duration == tasks[0].duration) {
        kempe_repair::repair(tasks, of_port, tasks[0].duration, times);
        return;
    }
    let mut handicaps = vec![0u64; index(of_port.rows())];
    let mut latest = times.clone();
    for _ in 0..PASSES {
        // A port that finished after the bound had to wait: it chooses earlier in the next pass.
        for (task, slot) in tasks.iter().zip(&latest.slots) {
            if slot.end() > bound {
                for port in task.ports {
                    handicaps[index(port)] += slot.end() - bound;
                }
            }
        }
        latest = pass(&handicaps);
        if latest.makespan < times.makespan {
            times.clone_from(&latest);
        }
        if times.makespan <= bound {
            return;
        }
    }
}

/// One pass of the greedy algorithm over one phase.
struct GreedyPass<'a> {
    tasks: &'a [PortTask],
    of_port: &'a Lists,
    precedence: Option<&'a PhasePrecedence>,
    free: &'a mut [FreeIntervals],
    /// The MIN_TIME of each port, and what is added to it when ports are compared.
    remaining: Vec<u64>,
    handicaps: &'a [u64],
    /// Rows of a port's list before this position are scheduled.
    next: Vec<u32>,
    slots: Vec<Option<Slot>>,
    groups: Vec<GroupProgress>,
}

/// The progress of a group.
#[derive(Clone, Default)]
struct GroupProgress {
    unscheduled: u32,
    end: u64,
    /// Everything before these positions in the group's lists is scheduled.
    next_predecessor: u32,
    next_route: u32,
}

impl<'a> GreedyPass<'a> {
    fn new(
        tasks: &'a [PortTask],
        of_port: &'a Lists,
        precedence: Option<&'a PhasePrecedence>,
        loads: &[u64],
        handicaps: &'a [u64],
        free: &'a mut [FreeIntervals],
    ) -> Self {
        for port in free.iter_mut() {
            port.clear();
        }
        let groups = precedence.map_or_else(Vec::new, |precedence| {
            (0..precedence.routes.rows())
                .map(|g| GroupProgress {
                    unscheduled: to_u32(precedence.routes.of(g).len()),
                    ..GroupProgress::default()
                })
                .collect()
        });
        Self {
            tasks,
            of_port,
            precedence,
            free,
            remaining: loads.to_vec(),
            handicaps,
            next: vec![0; loads.len()],
            slots: vec![None; tasks.len()],
            groups,
        }
    }

    fn run(mut self) -> PhaseTimes {
        let mut heap: BinaryHeap<(u64, Reverse<u32>)> =
            (0..self.of_port.rows()).map(|port| (self.min_time(port), Reverse(port))).collect();
        while let Some((claimed, Reverse(port))) = heap.pop() {
            let Some(row) = self.choose(port) else { continue };
            // MIN_TIMEs only decrease, so a port whose entry is current has the greatest.
            if self.min_time(port) < claimed {
                heap.push((self.min_time(port), Reverse(port)));
                continue;
            }
            self.schedule_in_order(row);
            heap.push((self.min_time(port), Reverse(port)));
        }
        let slots: Vec<Slot> =
            self.slots.into_iter().map(|slot| slot.expect("the heap held every port")).collect();
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        PhaseTimes { slots, makespan }
    }

    fn min_time(&self, port: u32) -> u64 {
        let handicap = self.handicaps.get(index(port)).copied().unwrap_or(0);
        self.remaining[index(port)].saturating_add(handicap)
    }

    /// The next connection of a port: the longest, ties broken as the module says.
    fn choose(&mut self, port: u32) -> Option<u32> {
        let list = self.of_port.of(port);
        let next = &mut self.next[index(port)];
        while list.get(index(*next)).is_some_and(|&row| self.slots[index(row)].is_some()) {
            *next += 1;
        }
        let list = &list[index(*next)..];
        let longest = self.tasks[index(*list.first()?)].duration;
        let mut best = None;
        for &row in
            list.iter().filter(|&&row| self.slots[index(row)].is_none()).take(TIE_CANDIDATES)
        {
            let task = self.tasks[index(row)];
            if task.duration != longest {
                break;
            }
            let partner = if task.ports[0] == port { task.ports[1] } else { task.ports[0] };
            let key = (self.earliest(row), Reverse(self.min_time(partner)));
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, row));
            }
        }
        best.map(|(_, row)| row)
    }

    /// The earliest start of a route; `u64::MAX` if a predecessor is not scheduled yet.
    fn earliest(&self, row: u32) -> u64 {
        let from = match self.precedence {
            None => 0,
            Some(precedence) => {
                let group = precedence.group[index(row)];
                let before = precedence.predecessors.of(group);
                if index(self.groups[index(group)].next_predecessor) < before.len()
                    && before.iter().any(|&g| self.groups[index(g)].unscheduled > 0)
                {
                    return u64::MAX;
                }
                self.ready(precedence, group)
            }
        };
        let task = self.tasks[index(row)];
        let [a, b] = task.ports.map(index);
        self.free[a].first_common(&self.free[b], from, task.duration)
    }

    fn ready(&self, precedence: &PhasePrecedence, group: u32) -> u64 {
        precedence
            .predecessors
            .of(group)
            .iter()
            .map(|&g| self.groups[index(g)].end)
            .max()
            .unwrap_or(0)
    }

    /// Schedules a route, and its unscheduled predecessors before it.
    fn schedule_in_order(&mut self, row: u32) {
        let Some(precedence) = self.precedence else {
            self.schedule(row);
            return;
        };
        let mut stack = vec![row];
        while let Some(&row) = stack.last() {
            match self.unscheduled_before(precedence, precedence.group[index(row)]) {
                Some(earlier) => stack.push(earlier),
                None => {
                    stack.pop();
                    self.schedule(row);
                }
            }
        }
    }

    /// A route that must be scheduled before those of `group`, if there is one.
    fn unscheduled_before(&mut self, precedence: &PhasePrecedence, group: u32) -> Option<u32> {
        let list = precedence.predecessors.of(group);
        while let Some(&earlier) = list.get(index(self.groups[index(group)].next_predecessor)) {
            if self.groups[index(earlier)].unscheduled > 0 {
                let routes = precedence.routes.of(earlier);
                let at = &mut self.groups[index(earlier)].next_route;
                while self.slots[index(routes[index(*at)])].is_some() {
                    *at += 1;
                }
                return Some(routes[index(*at)]);
            }
            self.groups[index(group)].next_predecessor += 1;
        }
        None
    }

    fn schedule(&mut self, row: u32) {
        let task = self.tasks[index(row)];
        let start = self.earliest(row);
        let slot = Slot { start, duration: task.duration };
        self.slots[index(row)] = Some(slot);
        let [a, b] = task.ports.map(index);
        for port in [Some(a), (a != b).then_some(b)].into_iter().flatten() {
            self.free[port].book(start, slot.end());
            self.remaining[port] -= task.duration;
        }
        if let Some(precedence) = self.precedence {
            let group = &mut self.groups[index(precedence.group[index(row)])];
            group.unscheduled -= 1;
            group.end = group.end.max(slot.end().saturating_add(task.pipeline_latency));
        }
    }
}
