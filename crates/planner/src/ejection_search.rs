//! Guided ejection search: makes the phases of an existing plan shorter, on machines with timed
//! starts.
//!
//! The planners with slots round streams to slots, and the planners by rounds let short streams wait for
//! long ones, so plans for connections of unequal length have gaps. This search knows the exact
//! clocks at which each stream holds its links and ports (`Problem::holds`).
//!
//! An *attempt* shortens one phase by a small part: all streams that end later are taken out, and
//! put back one by one, the longest first. A stream gets a place in any phase in which it meets
//! nobody, or else the place where it meets the least weight; the streams that it meets there are
//! taken out in their turn. The weight of a stream is its duration times the number of times that it
//! was taken out, so that streams that are hard to place stay where they are. The attempt succeeds
//! when no stream is left; after too many steps, or with too many streams left, it is undone. (Nagata
//! and Bräysy, Operations Research Letters 37, 2009, do so with the routes of vehicles.)
//!
//! Places are shortest routes, and starts at which the stream touches another one on a port, or
//! begins or ends with the phase.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Infeasible, RouteRef, Slot, Timetable};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::plan::{Found, Plan, Stream};
use crate::portfolio::{Routed, Task, routed};
use crate::problem::{Hold, Problem};
use crate::shortest_routes::ShortestRoutes;
use crate::work::Work;

/// The budget for each connection, and the maximum.
const WORK_PER_CONNECTION: u64 = 1 << 15;
const WORK_LIMIT: u64 = 3 << 24;

/// The maximum number of resources of all phases, and of cells of all routes.
const RESOURCES: usize = 1 << 21;

/// The part of a phase's length by which the first attempt shortens it, and the greatest and the
/// least part: one in so many.
const FIRST_PART: u64 = 64;
const GREATEST_PART: u64 = 16;
const LEAST_PART: u64 = 1024;

/// An attempt may place one in this number of the streams, and a few.
const STEPS: usize = 8;
const FEW_STEPS: usize = 16;

/// When no phase can be shortened, attempts get this many times the steps and begin with this part, so
/// many times.
const MORE_STEPS: usize = 4;
const LATER_PART: u64 = 256;
const STEP_RAISES: u32 = 8;

/// An attempt ends when it has this many times as many streams left as at the beginning, and a few.
const GROWTH: usize = 2;
const FEW_LEFT: usize = 8;

/// Looking at this many streams takes as long as looking up a resource.
const STREAMS_PER_WORK: u64 = 16;

/// A plan whose streams share links is not improved if it takes longer by one in this number of its
/// clocks when they do not.
const HOPELESS: u64 = 16;

/// Phases, and starts in each, that are considered for a stream; and how many of the starts are
/// random.
const PHASES: usize = 16;
const STARTS: usize = 12;
const RANDOM_STARTS: usize = 4;

/// Starts for which routes are looked for: those at which the least weight is met on the ports.
const ROUTED_STARTS: usize = 64;

const NONE: u32 = u32::MAX;

/// Improves the plan of a timetable that takes so many clocks, with the default budget doubled
/// `doubled` times. Returns `None` as [`improve`]; subtracts the work that led to a plan from `work`.
///
/// # Errors
/// None for the routing of a set on its machine.
pub fn improve_timetable(
    task: &Task<'_>,
    (timetable, clocks): (&Timetable, u64),
    (seed, doubled): (u64, u32),
    work: &mut Work,
) -> Result<Option<Routed>, Infeasible> {
    let Some(problem) = task.problem() else { return Ok(None) };
    let plan = Plan { clocks, ..plan_of(timetable) };
    let found = improve(problem, &plan, budget(problem) << doubled, seed);
    if let Some(found) = &found {
        work.take(found.work);
    }
    found.map(|found| routed(task, &found.plan, true)).transpose()
}

/// The default work budget for a problem: proportional to the connections, and about two seconds
/// at most. The unit of work is looking up whether a resource is free.
pub fn budget(problem: &Problem<'_>) -> u64 {
    (to_u64(problem.set.len()) * WORK_PER_CONNECTION).min(WORK_LIMIT)
}

/// Makes the phases of a plan shorter, until no phase can be shortened or the budget is used up.
///
/// The plan may come from any planner. If its streams meet, they first get starts at which they do
/// not. Returns `None` if no plan is found that takes fewer clocks than `plan.clocks`, if the plan is
/// very large, and for sets with an order or requirements.
pub fn improve(problem: &Problem<'_>, plan: &Plan, budget: u64, seed: u64) -> Option<Found> {
    let cells = plan.phases.iter().flatten().map(|stream| stream.cells.len()).sum::<usize>();
    let resources = problem.resource_count().saturating_mul(plan.phases.len());
    if !problem.is_plain() || resources.max(cells) > RESOURCES {
        return None;
    }
    let mut search = EjectionSearch::new(problem, plan, seed);
    if search.is_in_conflict() {
        let mut apart = plan.clone();
        apart.compact(problem);
        search = EjectionSearch::new(problem, &apart, seed);
    }
    if search.clocks() > plan.clocks.saturating_add(plan.clocks / HOPELESS) {
        return None;
    }
    search.run(budget);
    let work = search.work;
    let better = search.plan();
    (better.clocks < plan.clocks).then_some(Found { plan: better, work })
}

/// The plan of a timetable, with the streams of a phase in the order of their starts.
fn plan_of(timetable: &Timetable) -> Plan {
    let phases = timetable.routing().iter().zip(timetable.phases());
    let phases = phases.map(|((_, routes), times)| {
        let stream = |(route, slot): (RouteRef<'_>, &Slot)| Stream {
            connection: route.connection.0,
            words: route.words,
            start: slot.start,
            cells: route.cells.iter().map(|cell| cell.0).collect(),
        };
        let mut streams: Vec<Stream> = routes.iter().zip(&times.slots).map(stream).collect();
        streams.sort_by_key(|stream| (stream.start, Reverse(stream.words), stream.connection));
        streams
    });
    Plan { phases: phases.collect(), clocks: 0 }
}

/// When a stream holds a resource.
#[derive(Clone, Copy)]
struct Busy {
    from: u64,
    to: u64,
    stream: u32,
}

impl Busy {
    fn meets(&self, from: u64, to: u64) -> bool {
        self.from < to && self.to > from
    }
}

/// The greatest number of holds at a clock, of some that all meet the interval from `from` on.
fn depth(holds: &[Busy], from: u64) -> usize {
    let at = |clock: u64| holds.iter().filter(|other| other.meets(clock, clock + 1)).count();
    holds.iter().map(|hold| at(hold.from.max(from))).max().unwrap_or(0)
}

/// A phase and the use of its resources.
struct ExactPhase {
    /// The clock at which its last stream ends.
    length: u64,
    /// Whether its targets may open streams late ([`Problem::may_overlap`]); then all streams that were
    /// ever in it are longer than the greatest latency of any.
    may_overlap: bool,
    greatest_latency: u64,
    shortest: u64,
    /// By resource, in the order in which the holds begin.
    busy: Vec<Vec<Busy>>,
    /// By cell: the streams through it, each of which takes a channel.
    through: Vec<Vec<u32>>,
    /// By cell: the weight of the lightest of these, without which the cell has a free channel; 0 if
    /// it has one.
    lightest: Vec<u64>,
    /// The part of its length by which it is shortened next: one in so many.
    part: u64,
}

struct EjectionSearch<'a> {
    problem: &'a Problem<'a>,
    streams: Vec<Stream>,
    /// The phase of each stream; [`NONE`] while it is taken out.
    phase_of: Vec<u32>,
    /// Clocks of each stream from its start until its last word is received.
    spans: Vec<u64>,
    /// The number of times that each stream was taken out.
    taken_out: Vec<u64>,
    phases: Vec<ExactPhase>,
    routes: ShortestRoutes,
    /// The arcs of these routes, in the order of their tails.
    arcs: Vec<RouteArc>,
    /// By row of these routes: the least weight met on the way there, and the row before.
    weights: Vec<u64>,
    before: Vec<u32>,
    /// The places that streams had before they were taken out in this attempt: phase and stream.
    former: Vec<(u32, u32, Stream)>,
    rng: ChaCha8Rng,
    work: u64,
}

/// A link on shortest routes: the rows of its cells, the cell that it leads to, its edge, and its hop.
#[derive(Clone, Copy)]
struct RouteArc {
    tail: u32,
    head: u32,
    cell: u32,
    edge: u32,
    hop: u32,
}

/// A place for a stream.
struct ExactPlace {
    weight: u64,
    phase: usize,
    start: u64,
    cells: Vec<u32>,
}

impl<'a> EjectionSearch<'a> {
    fn new(problem: &'a Problem<'a>, plan: &Plan, seed: u64) -> Self {
        let mut this = Self {
            problem,
            streams: plan.phases.concat(),
            phase_of: Vec::new(),
            spans: Vec::new(),
            taken_out: Vec::new(),
            phases: Vec::new(),
            routes: ShortestRoutes::new(problem.cell_count()),
            arcs: Vec::new(),
            weights: Vec::new(),
            before: Vec::new(),
            former: Vec::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            work: 0,
        };
        this.spans = this.streams.iter().map(|stream| problem.until_received(stream)).collect();
        this.taken_out = vec![1; this.streams.len()];
        for (phase, streams) in (0..).zip(&plan.phases) {
            this.phases.push(ExactPhase {
                length: 0,
                may_overlap: problem.may_overlap(streams),
                greatest_latency: 0,
                shortest: u64::MAX,
                busy: vec![Vec::new(); problem.resource_count()],
                through: vec![Vec::new(); problem.cell_count()],
                lightest: vec![0; problem.cell_count()],
                part: FIRST_PART,
            });
            for _ in streams {
                let stream = to_u32(this.phase_of.len());
                this.phase_of.push(phase);
                this.book(stream);
            }
            this.phases[index(phase)].length = this.end(index(phase));
        }
        this
    }

    /// The clocks of all phases that are not empty, with their switches.
    fn clocks(&self) -> u64 {
        let used = self.phases.iter().filter(|phase| phase.length > 0);
        used.map(|phase| self.problem.switch + phase.length).sum()
    }

    /// The clock at which the last stream of a phase ends.
    fn end(&self, phase: usize) -> u64 {
        let of_phase = (0..self.phase_of.len()).filter(|&s| index(self.phase_of[s]) == phase);
        of_phase.map(|s| self.streams[s].start + self.spans[s]).max().unwrap_or(0)
    }

    fn is_in_conflict(&self) -> bool {
        (0..to_u32(self.streams.len())).any(|stream| !self.met(stream).is_empty())
    }

    /// Adds a stream to its phase.
    fn book(&mut self, row: u32) {
        let stream = &self.streams[index(row)];
        let phase = &mut self.phases[index(self.phase_of[index(row)])];
        let clocks = self.problem.clocks(index(stream.connection));
        phase.greatest_latency =
            phase.greatest_latency.max(clocks.pipeline_latency(stream.cells.len() - 1));
        phase.shortest = phase.shortest.min(clocks.of(stream.words));
        for &cell in &stream.cells {
            phase.through[index(cell)].push(row);
        }
        self.problem.holds(stream, phase.may_overlap, |hold, _| {
            let from = stream.start + hold.after;
            let busy = &mut phase.busy[index(hold.resource)];
            let at = busy.partition_point(|other| other.from < from);
            busy.insert(at, Busy { from, to: from + hold.clocks, stream: row });
        });
        self.weigh_channels(row);
    }

    /// Removes a stream from its phase.
    fn release(&mut self, row: u32) {
        let stream = &self.streams[index(row)];
        let phase = &mut self.phases[index(self.phase_of[index(row)])];
        for &cell in &stream.cells {
            phase.through[index(cell)].retain(|&other| other != row);
        }
        self.problem.holds(stream, phase.may_overlap, |hold, _| {
            phase.busy[index(hold.resource)].retain(|other| other.stream != row);
        });
        self.weigh_channels(row);
        self.phase_of[index(row)] = NONE;
    }

    /// Removes a stream from its phase, and remembers its place.
    fn take_out(&mut self, row: u32) {
        self.former.push((row, self.phase_of[index(row)], self.streams[index(row)].clone()));
        self.taken_out[index(row)] += 1;
        self.release(row);
    }

    /// The other streams that hold what this one needs at its place: links and ports, and of the streams
    /// through a cell without a free channel the one of least weight.
    fn met(&self, row: u32) -> Vec<u32> {
        let stream = &self.streams[index(row)];
        let phase = &self.phases[index(self.phase_of[index(row)])];
        let mut met = Vec::new();
        self.problem.holds(stream, phase.may_overlap, |hold, capacity| {
            let from = stream.start + hold.after;
            let is_met =
                |other: &&Busy| other.stream != row && other.meets(from, from + hold.clocks);
            let busy = phase.busy[index(hold.resource)].iter().filter(is_met).copied();
            let busy: Vec<Busy> = busy.collect();
            if depth(&busy, from) >= capacity {
                met.extend(busy.iter().map(|other| other.stream));
            }
        });
        for &cell in &stream.cells {
            let others = || phase.through[index(cell)].iter().filter(|&&other| other != row);
            let is_full = others().count() >= index(self.problem.channels);
            if is_full && !others().any(|other| met.contains(other)) {
                met.extend(others().min_by_key(|&&other| (self.weight_of(other), other)));
            }
        }
        met.sort_unstable();
        met.dedup();
        met
    }

    /// The weight of a stream.
    fn weight_of(&self, row: u32) -> u64 {
        self.spans[index(row)].saturating_mul(self.taken_out[index(row)])
    }

    /// Updates the weights of the channels along the route of a stream.
    fn weigh_channels(&mut self, row: u32) {
        let phase = index(self.phase_of[index(row)]);
        for &cell in &self.streams[index(row)].cells {
            let through = &self.phases[phase].through[index(cell)];
            let lightest = match through.len() < index(self.problem.channels) {
                true => 0,
                false => through.iter().map(|&other| self.weight_of(other)).min().unwrap_or(0),
            };
            self.phases[phase].lightest[index(cell)] = lightest;
        }
    }

    /// The weight of the streams that keep a resource too busy.
    #[inline]
    fn weight(&mut self, phase: usize, start: u64, hold: Hold, capacity: usize) -> u64 {
        self.work += 1;
        let busy = &self.phases[phase].busy[index(hold.resource)];
        let from = start + hold.after;
        let to = from + hold.clocks;
        // With a capacity of one, the holds end in the order in which they begin.
        let first = if capacity == 1 { busy.partition_point(|other| other.to <= from) } else { 0 };
        match busy.get(first) {
            Some(other) if other.from < to => self.weight_met(&busy[first..], (from, to), capacity),
            _ => 0,
        }
    }

    /// The weight of those of some holds that meet an interval; 0 if these leave room for one more.
    fn weight_met(&self, busy: &[Busy], (from, to): (u64, u64), capacity: usize) -> u64 {
        let met = busy.iter().take_while(|other| other.from < to);
        let met = met.filter(|other| other.to > from);
        if capacity > 1 && depth(&met.clone().copied().collect::<Vec<_>>(), from) < capacity {
            return 0;
        }
        let weight = |other: &Busy| {
            (other.to - other.from).saturating_mul(self.taken_out[index(other.stream)])
        };
        met.map(weight).fold(0, u64::saturating_add)
    }

    /// A place where a stream meets the least weight, of those that are considered.
    fn find(&mut self, row: u32) -> Option<ExactPlace> {
        let problem = self.problem;
        let Stream { connection, words, .. } = self.streams[index(row)];
        let x = index(connection);
        let hops = usize::from(problem.hops(x));
        let clocks = problem.clocks(x);
        let (duration, latency) = (clocks.of(words), clocks.pipeline_latency(hops));
        let span = clocks.until_received(words, hops);
        self.gather(x);
        let mut phases: Vec<usize> = (0..self.phases.len()).collect();
        phases.shuffle(&mut self.rng);
        phases.truncate(PHASES);
        let mut starts: Vec<(u64, usize, u64)> = Vec::new();
        for phase in phases {
            let of = &self.phases[phase];
            let breaks_order =
                of.may_overlap && (duration <= of.greatest_latency || latency >= of.shortest);
            let Some(last) = of.length.checked_sub(span).filter(|_| !breaks_order) else {
                continue;
            };
            let mut ports: Vec<Hold> = Vec::new();
            problem.port_holds((x, words, hops), of.may_overlap, |hold| ports.push(hold));
            for start in self.starts(phase, &ports, last) {
                let weights = ports.iter().map(|&hold| self.weight(phase, start, hold, 1));
                starts.push((weights.fold(0, u64::saturating_add), phase, start));
            }
        }
        // Stable, so that equal ones stay in the random order of the phases.
        starts.sort_by_key(|&(weight, ..)| weight);
        starts.truncate(ROUTED_STARTS);
        let mut best: Option<ExactPlace> = None;
        for (weight, phase, start) in starts {
            let most = best.as_ref().map_or(u64::MAX, |best| best.weight);
            if weight >= most {
                break;
            }
            if let Some(weight) = self.route((phase, start, duration), weight, most) {
                best = Some(ExactPlace { weight, phase, start, cells: self.trace() });
            }
        }
        best
    }

    /// Collects the shortest routes of connection `x`.
    fn gather(&mut self, x: usize) {
        let problem = self.problem;
        self.routes.gather(problem, x);
        self.arcs.clear();
        let hops = problem.hops(x);
        for (tail, &cell) in (0..).zip(self.routes.cells()) {
            let hop = u32::from(hops - problem.distances(x)[index(cell)]);
            for &(head, edge) in self.routes.arcs(index(tail)) {
                let cell = self.routes.cells()[index(head)];
                self.arcs.push(RouteArc { tail, head, cell, edge, hop });
            }
        }
    }

    /// Starts to consider in a phase: those that touch another stream on a port, the first, the
    /// last, and some at random.
    fn starts(&mut self, phase: usize, ports: &[Hold], last: u64) -> Vec<u64> {
        let mut starts = vec![0, last];
        for hold in ports {
            for busy in &self.phases[phase].busy[index(hold.resource)] {
                starts.push(busy.to.saturating_sub(hold.after));
                starts.push(busy.from.saturating_sub(hold.after + hold.clocks));
            }
        }
        starts.extend((0..RANDOM_STARTS).map(|_| self.rng.random_range(0..=last)));
        starts.retain(|&start| start <= last);
        starts.sort_unstable();
        starts.dedup();
        if starts.len() > STARTS {
            starts.shuffle(&mut self.rng);
            starts.truncate(STARTS);
        }
        starts
    }

    /// Looks for the shortest route that meets the least weight, in addition to `ends` at the ports.
    /// Returns the weight, if it is below `most`.
    fn route(
        &mut self,
        (phase, start, duration): (usize, u64, u64),
        ends: u64,
        most: u64,
    ) -> Option<u64> {
        let problem = self.problem;
        let rows = self.routes.cells().len();
        self.weights.clear();
        self.weights.resize(rows, u64::MAX);
        self.before.clear();
        self.before.resize(rows, NONE);
        let source = self.routes.cells()[0];
        self.weights[0] = ends.saturating_add(self.phases[phase].lightest[index(source)]);
        for at in 0..self.arcs.len() {
            let RouteArc { tail, head, cell, edge, hop } = self.arcs[at];
            let (so_far, now) = (self.weights[index(tail)], self.weights[index(head)]);
            if so_far >= most.min(now) {
                continue;
            }
            let capacity = usize::from(problem.capacity[index(edge)]);
            let hold = problem.link_hold(edge, index(hop), duration);
            let link = self.weight(phase, start, hold, capacity);
            let channel = self.phases[phase].lightest[index(cell)];
            let weight = so_far.saturating_add(link).saturating_add(channel);
            if weight < now {
                self.weights[index(head)] = weight;
                self.before[index(head)] = tail;
            }
        }
        self.weights.last().copied().filter(|&weight| weight < most)
    }

    /// The cells of the route that was found.
    fn trace(&self) -> Vec<u32> {
        let mut cells = Vec::new();
        let mut row = to_u32(self.before.len()) - 1;
        while row != NONE {
            cells.push(self.routes.cells()[index(row)]);
            row = self.before[index(row)];
        }
        cells.reverse();
        cells
    }

    /// Makes a phase shorter by one in `part`. Returns whether that succeeded; if not, nothing has changed.
    fn attempt(&mut self, phase: usize, steps: usize, work: u64) -> bool {
        let before = self.phases[phase].length;
        let length = before - (before / self.phases[phase].part).max(1);
        self.phases[phase].length = length;
        self.former.clear();
        self.work += to_u64(self.streams.len()) / STREAMS_PER_WORK;
        let mut left: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
        for row in 0..self.streams.len() {
            let is_late = self.streams[row].start + self.spans[row] > length;
            if index(self.phase_of[row]) == phase && is_late {
                left.push((self.spans[row], Reverse(to_u32(row))));
                self.take_out(to_u32(row));
            }
        }
        let most = GROWTH * left.len() + FEW_LEFT;
        let mut step = 0;
        while let Some((_, Reverse(row))) = left.pop() {
            step += 1;
            let is_over = step > steps || left.len() > most || self.work > work;
            let is_over = is_over || self.problem.interrupt.is_requested();
            let Some(place) = (!is_over).then(|| self.find(row)).flatten() else {
                self.undo();
                self.phases[phase].length = before;
                return false;
            };
            let stream = &mut self.streams[index(row)];
            (stream.start, stream.cells) = (place.start, place.cells);
            self.spans[index(row)] = self.problem.until_received(stream);
            self.phase_of[index(row)] = to_u32(place.phase);
            for other in self.met(row) {
                left.push((self.spans[index(other)], Reverse(other)));
                self.take_out(other);
            }
            self.book(row);
        }
        self.phases[phase].length = self.end(phase);
        true
    }

    /// Moves all streams that were taken out back to where they were before the attempt.
    fn undo(&mut self) {
        let former = std::mem::take(&mut self.former);
        for &(row, ..) in &former {
            if self.phase_of[index(row)] != NONE {
                self.release(row);
            }
        }
        for (row, phase, stream) in former {
            // Only the first place of a stream is from before the attempt.
            if self.phase_of[index(row)] == NONE {
                self.spans[index(row)] = self.problem.until_received(&stream);
                self.streams[index(row)] = stream;
                self.phase_of[index(row)] = phase;
                self.book(row);
            }
        }
    }

    /// Shortens one phase after the other until none can be, or until the work is used up.
    fn run(&mut self, work: u64) {
        let mut steps = self.streams.len() / STEPS + FEW_STEPS;
        for _ in 0..=STEP_RAISES {
            loop {
                let mut is_any_open = false;
                for phase in 0..self.phases.len() {
                    if self.work > work || self.problem.interrupt.is_requested() {
                        return;
                    }
                    if self.phases[phase].part > LEAST_PART || self.phases[phase].length == 0 {
                        continue;
                    }
                    is_any_open = true;
                    let is_shorter = self.attempt(phase, steps, work);
                    let part = &mut self.phases[phase].part;
                    *part = match is_shorter {
                        true => (*part * 3 / 4).max(GREATEST_PART),
                        false => *part * 2,
                    };
                }
                if !is_any_open {
                    break;
                }
            }
            steps *= MORE_STEPS;
            self.phases.iter_mut().for_each(|phase| phase.part = LATER_PART);
        }
    }

    /// The plan, without empty phases.
    fn plan(self) -> Plan {
        let clocks = self.clocks();
        let mut phases = vec![Vec::new(); self.phases.len()];
        for (stream, phase) in self.streams.into_iter().zip(self.phase_of) {
            phases[index(phase)].push(stream);
        }
        phases.retain(|streams| !streams.is_empty());
        Plan { phases, clocks }
    }
}
