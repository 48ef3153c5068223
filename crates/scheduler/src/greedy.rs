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
//! MIN_TIME of a processor is the time its unscheduled connections still need. A processor whose
//! two directions are independent counts as two, one for each side (see `cost`).
//!
//! # Ties
//!
//! The paper leaves ties open, and regular patterns are all ties. They are broken the same way
//! whatever the order of the connections in the set: of processors, the lowest cell first; of
//! equally long connections, the one that can start earliest, then the one whose partner has the
//! greatest MIN_TIME, then the one with the smallest displacement (target less source, round the
//! machine), which makes the rounds of a regular pattern permutations. Only the first
//! [`LOOK`] equals are compared.
//!
//! # Order
//!
//! Where connections of one phase are ordered, what comes before is scheduled before, and what
//! comes after starts no earlier than the last word of that is received: its agents are done at the
//! end of its slot as far as others are concerned, but a word has to get from one to the other. Every agent then works through its slots by
//! (start, connection): the slots of the whole machine are one sequence that each agent
//! sees a part of, so the first unfinished of it is at the head of both its agents and the phase
//! cannot deadlock. Order across phases is the router's.
//!
//! # Better than greedy
//!
//! No side can be done before its MIN_TIME at the start, so the greatest of these bounds the
//! makespan. Where greedy misses it and nothing is ordered, a bounded improvement follows, and
//! the better of both is kept, so a makespan is never longer than greedy's:
//!
//! * all durations equal: the phase is a matter of edge colouring, and `rounds` repairs
//!   the colours. With full duplex this always reaches the bound.
//! * otherwise: a few greedy passes with MIN_TIME handicapped for the sides that finished late
//!   ([`PASSES`]).
//!
//! # What this module does not do
//!
//! It plans one stream at a time per side, whatever `streams` is, and it does not see links:
//! what sharing them costs is said by [`mod@crate::predict`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::{Lists, PhaseId, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};

use crate::ScheduleError;
use crate::cost::{Compact, Costs};
use crate::gaps::Gaps;
use crate::order::PhaseOrder;
use crate::parallel;
use crate::rounds;

/// How many equally long connections of a processor are compared.
pub const LOOK: usize = 32;

/// How many more greedy passes are tried where the first misses the bound.
pub const PASSES: u32 = 8;

/// Gives every route of every phase a slot.
///
/// Each phase takes O(routes x (log routes + gaps)), with few gaps unless durations differ much
/// and a cell has hundreds of routes.
///
/// # Errors
/// A phase whose durations add up to 2^63 clocks or more.
pub fn timetable(routing: Routing) -> Result<Timetable, ScheduleError> {
    let costs = Costs::new(routing.machine().parameters());
    let scratch = || Scratch {
        sides: Compact::new(costs.side_count(routing.machine())),
        connections: Compact::new(routing.set().len()),
        gaps: Vec::new(),
    };
    let phases = parallel::phases(&routing, scratch, |scratch, phase, routes| {
        schedule_phase(&routing, phase, routes, &costs, scratch)
    });
    let phases = phases.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Timetable::new(routing, phases).expect("one slot was made for each route"))
}

/// Memory that is reused from phase to phase.
struct Scratch {
    sides: Compact,
    connections: Compact,
    gaps: Vec<Gaps>,
}

/// What the scheduler needs to know of a route. Sides are numbered within the phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) sides: [u32; 2],
    pub(crate) duration: u64,
    /// Clocks from its end until its last word is received, which others may wait for.
    pub(crate) flight: u64,
}

fn schedule_phase(
    routing: &Routing,
    phase: PhaseId,
    routes: &PhaseRoutes,
    costs: &Costs,
    scratch: &mut Scratch,
) -> Result<PhaseTimes, ScheduleError> {
    let set = routing.set();
    let mut jobs = Vec::with_capacity(routes.len());
    let mut total = 0u128;
    for route in routes.iter() {
        let connection = set.get(route.connection);
        let duration = costs.duration(&route, connection);
        total += u128::from(duration);
        let flight = costs.flight(route.hops(), connection);
        jobs.push(Job { sides: costs.sides(connection), duration, flight });
    }
    if total >= 1 << 63 {
        return Err(ScheduleError::TooLong { phase });
    }
    // Sides are numbered in the order of cells, so that ties go to the lowest cell.
    let mut sides: Vec<u32> = jobs.iter().flat_map(|job| job.sides).collect();
    sides.sort_unstable();
    for side in sides {
        scratch.sides.meet(side);
    }
    for job in &mut jobs {
        job.sides = job.sides.map(|side| scratch.sides.meet(side));
    }
    let side_count = scratch.sides.used().len();
    scratch.sides.clear();
    while scratch.gaps.len() < side_count {
        scratch.gaps.push(Gaps::new());
    }

    let order = PhaseOrder::of(set, routes, &mut scratch.connections);
    let mut of_side = Lists::new(side_count, side_pairs(&jobs));
    let cells = routing.machine().cell_count() as u32;
    for side in 0..of_side.rows() {
        of_side.of_mut(side).sort_unstable_by_key(|&row| {
            let connection = routes.get(row as usize).connection;
            let c = set.get(connection);
            let displacement = (c.target.0 + cells - c.source.0) % cells;
            (Reverse(jobs[row as usize].duration), displacement, c.source, connection, row)
        });
    }
    let loads: Vec<u64> = (0..of_side.rows())
        .map(|side| of_side.of(side).iter().map(|&row| jobs[row as usize].duration).sum())
        .collect();

    let gaps = &mut scratch.gaps[..side_count];
    let pass = |gaps: &mut [Gaps], handicaps: &[u64]| {
        Greedy::new(&jobs, &of_side, order.as_ref(), &loads, handicaps, gaps).run()
    };
    let mut times = pass(gaps, &[]);
    if order.is_none() {
        let bound = loads.iter().copied().max().unwrap_or(0);
        improve(&jobs, &of_side, bound, &mut times, |handicaps| pass(gaps, handicaps));
    }
    Ok(times)
}

/// Each side with each of its jobs; a job that has one side only is named once.
fn side_pairs(jobs: &[Job]) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
    jobs.iter().enumerate().flat_map(|(row, job)| {
        let [a, b] = job.sides;
        let second = (a != b).then_some((b, row as u32));
        std::iter::once((a, row as u32)).chain(second)
    })
}

/// Looks for a timetable shorter than greedy's `times`; never leaves a longer one.
fn improve(
    jobs: &[Job],
    of_side: &Lists,
    bound: u64,
    times: &mut PhaseTimes,
    mut pass: impl FnMut(&[u64]) -> PhaseTimes,
) {
    if times.makespan <= bound {
        return;
    }
    if jobs.iter().all(|job| job.duration == jobs[0].duration) {
        rounds::repair(jobs, of_side, jobs[0].duration, times);
        return;
    }
    let mut handicaps = vec![0u64; of_side.rows() as usize];
    let mut latest = times.clone();
    for _ in 0..PASSES {
        // Who finished after the bound had to wait for others: let it choose earlier next time.
        for (job, slot) in jobs.iter().zip(&latest.slots) {
            if slot.end() > bound {
                for side in job.sides {
                    handicaps[side as usize] += slot.end() - bound;
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
struct Greedy<'a> {
    jobs: &'a [Job],
    of_side: &'a Lists,
    order: Option<&'a PhaseOrder>,
    gaps: &'a mut [Gaps],
    /// MIN_TIME of each side, and what is added to it where sides are compared.
    remaining: Vec<u64>,
    handicaps: &'a [u64],
    /// Rows of a side's list before this one are scheduled.
    next: Vec<u32>,
    slots: Vec<Option<Slot>>,
    groups: Vec<Group>,
}

/// How far the connections of a group are.
#[derive(Clone, Default)]
struct Group {
    unscheduled: u32,
    end: u64,
    /// Places in the group's lists before which all is scheduled.
    before: u32,
    route: u32,
}

impl<'a> Greedy<'a> {
    fn new(
        jobs: &'a [Job],
        of_side: &'a Lists,
        order: Option<&'a PhaseOrder>,
        loads: &[u64],
        handicaps: &'a [u64],
        gaps: &'a mut [Gaps],
    ) -> Self {
        for side in gaps.iter_mut() {
            side.clear();
        }
        let groups = order.map_or_else(Vec::new, |order| {
            (0..order.routes.rows())
                .map(|g| Group { unscheduled: order.routes.of(g).len() as u32, ..Group::default() })
                .collect()
        });
        Self {
            jobs,
            of_side,
            order,
            gaps,
            remaining: loads.to_vec(),
            handicaps,
            next: vec![0; loads.len()],
            slots: vec![None; jobs.len()],
            groups,
        }
    }

    fn run(mut self) -> PhaseTimes {
        let mut heap: BinaryHeap<(u64, Reverse<u32>)> =
            (0..self.of_side.rows()).map(|side| (self.min_time(side), Reverse(side))).collect();
        while let Some((claimed, Reverse(side))) = heap.pop() {
            let Some(row) = self.choose(side) else { continue };
            // MIN_TIMEs only fall, so a side that is still first with its true one is the one.
            if self.min_time(side) < claimed {
                heap.push((self.min_time(side), Reverse(side)));
                continue;
            }
            self.schedule_in_order(row);
            heap.push((self.min_time(side), Reverse(side)));
        }
        let slots: Vec<Slot> =
            self.slots.into_iter().map(|slot| slot.expect("the heap held every side")).collect();
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        PhaseTimes { slots, makespan }
    }

    fn min_time(&self, side: u32) -> u64 {
        let handicap = self.handicaps.get(side as usize).copied().unwrap_or(0);
        self.remaining[side as usize].saturating_add(handicap)
    }

    /// The side's connection to schedule next: the longest, ties broken as the module says.
    fn choose(&mut self, side: u32) -> Option<u32> {
        let list = self.of_side.of(side);
        let next = &mut self.next[side as usize];
        while list.get(*next as usize).is_some_and(|&row| self.slots[row as usize].is_some()) {
            *next += 1;
        }
        let list = &list[*next as usize..];
        let longest = self.jobs[*list.first()? as usize].duration;
        let mut best = None;
        for &row in list.iter().filter(|&&row| self.slots[row as usize].is_none()).take(LOOK) {
            let job = self.jobs[row as usize];
            if job.duration != longest {
                break;
            }
            let partner = if job.sides[0] == side { job.sides[1] } else { job.sides[0] };
            let key = (self.earliest(row), Reverse(self.min_time(partner)));
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, row));
            }
        }
        best.map(|(_, row)| row)
    }

    /// The earliest start of a route; the end of time if it waits for something unscheduled.
    fn earliest(&self, row: u32) -> u64 {
        let from = match self.order {
            None => 0,
            Some(order) => {
                let group = order.group[row as usize];
                let before = order.before.of(group);
                if (self.groups[group as usize].before as usize) < before.len()
                    && before.iter().any(|&g| self.groups[g as usize].unscheduled > 0)
                {
                    return u64::MAX;
                }
                self.ready(order, group)
            }
        };
        let job = self.jobs[row as usize];
        let [a, b] = job.sides.map(|side| side as usize);
        self.gaps[a].first_common(&self.gaps[b], from, job.duration)
    }

    fn ready(&self, order: &PhaseOrder, group: u32) -> u64 {
        order.before.of(group).iter().map(|&g| self.groups[g as usize].end).max().unwrap_or(0)
    }

    /// Schedules a route, and before it whatever must be finished before it.
    fn schedule_in_order(&mut self, row: u32) {
        let Some(order) = self.order else {
            self.schedule(row);
            return;
        };
        let mut stack = vec![row];
        while let Some(&row) = stack.last() {
            match self.unscheduled_before(order, order.group[row as usize]) {
                Some(earlier) => stack.push(earlier),
                None => {
                    stack.pop();
                    self.schedule(row);
                }
            }
        }
    }

    /// A route that must be scheduled before those of `group`, if there is one left.
    fn unscheduled_before(&mut self, order: &PhaseOrder, group: u32) -> Option<u32> {
        let list = order.before.of(group);
        while let Some(&earlier) = list.get(self.groups[group as usize].before as usize) {
            if self.groups[earlier as usize].unscheduled > 0 {
                let routes = order.routes.of(earlier);
                let at = &mut self.groups[earlier as usize].route;
                while self.slots[routes[*at as usize] as usize].is_some() {
                    *at += 1;
                }
                return Some(routes[*at as usize]);
            }
            self.groups[group as usize].before += 1;
        }
        None
    }

    fn schedule(&mut self, row: u32) {
        let job = self.jobs[row as usize];
        let start = self.earliest(row);
        let slot = Slot { start, duration: job.duration };
        self.slots[row as usize] = Some(slot);
        let [a, b] = job.sides.map(|side| side as usize);
        for side in [Some(a), (a != b).then_some(b)].into_iter().flatten() {
            self.gaps[side].book(start, slot.end());
            self.remaining[side] -= job.duration;
        }
        if let Some(order) = self.order {
            let group = &mut self.groups[order.group[row as usize] as usize];
            group.unscheduled -= 1;
            group.end = group.end.max(slot.end().saturating_add(job.flight));
        }
    }
}
