//! The cheapest route of a connection, of any length and for all start slots at once.
//!
//! The search is A* over cells, forwards from the source. The costs of a cell are a row with one
//! number for each slot in which a unit may start, and the cost of the remaining hops over free
//! links is the estimate of the rest. A row is expanded when none is waiting whose least estimate is
//! lower, and only over the starts that became cheaper since it was last expanded; so a row may be
//! expanded several times. What cannot lead to a route cheaper than a known one is not followed,
//! which makes searches short where links are free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_partition_route::marks::Marks;

use crate::problem::{Incoming, Problem, UNREACHABLE};

use super::route::{View, least_start};
use super::rows::{HOP, NEVER};

/// The work of relaxing an edge, in the unit of [`super::budget`], in addition to that of its slots.
const EDGE_WORK: u64 = 12;

/// The slots of an edge that are relaxed with a unit of work.
const SLOTS_PER_WORK: u64 = 3;

/// A cell that the search reached.
#[derive(Clone)]
struct Row {
    cell: u32,
    /// The cost of the remaining hops over free links.
    ahead: i32,
    /// The starts whose costs were lowered since the row was expanded; others may be among them.
    waiting: Option<Range<usize>>,
    /// The least cost of a route by way of this cell, as far as is known, at one of these starts.
    estimate: i32,
}

/// The search's memory, kept from search to search.
#[derive(Clone)]
pub(super) struct DetourSearch {
    incoming: Incoming,
    reached: Marks,
    /// The row of each cell that was reached.
    row: Vec<u32>,
    rows: Vec<Row>,
    /// By row, then start.
    costs: Vec<i32>,
    /// The costs that an edge lowered, by start; `NEVER` at the other starts.
    lowered: Vec<i32>,
    /// Estimates and rows; those whose row has another estimate by now are outdated. Of equal
    /// estimates the row that was reached last is the first: it is nearest to the target.
    waiting: BinaryHeap<(Reverse<i32>, u32)>,
}

impl DetourSearch {
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        Self {
            incoming: problem.incoming(),
            reached: Marks::new(problem.cell_count()),
            row: vec![0; problem.cell_count()],
            rows: Vec::new(),
            costs: Vec::new(),
            lowered: Vec::new(),
            waiting: BinaryHeap::new(),
        }
    }

    /// The cheapest start and route of connection `x` for so many slots, if it is cheaper than
    /// `limit`: cost and start. `starts` are the costs of ports by start. Of equal starts `salt`
    /// chooses. The work is added to `work`.
    pub(super) fn find(
        &mut self,
        view: &View<'_>,
        (x, slots): (usize, usize),
        (starts, salt): (&[i32], u32),
        mut limit: i32,
        work: &mut u64,
    ) -> Option<(i32, usize)> {
        let connection = &view.problem.set.connections()[x];
        let [source, target] = [connection.source.0, connection.target.0];
        let distances = view.problem.distances(x);
        let width = starts.len();
        self.clear(width);
        let hop = HOP * i32::try_from(slots).unwrap_or(i32::MAX);
        let ahead = |cell: u32| i32::from(distances[index(cell)]).saturating_mul(hop);
        self.reach(source, ahead(source), width);
        for ((cost, start), channel) in self.costs.iter_mut().zip(starts).zip(view.channels(source))
        {
            *cost = start.wrapping_add(*channel);
        }
        self.lowered.copy_from_slice(&self.costs);
        if source != target {
            let least = self.costs.iter().copied().min().unwrap_or(NEVER);
            self.wait(0, (0..width, least), limit);
        }
        while let Some((row, from_starts)) = self.next(limit) {
            let Row { cell, estimate, ahead: left, .. } = self.rows[row];
            let most = limit - (estimate - left) - hop;
            self.rows[row].estimate = NEVER;
            for edge in view.problem.edges(cell) {
                let next = view.problem.head(edge);
                // No route over this edge is cheaper than the limit if so many hops are ahead.
                if next == source || distances[index(next)] == UNREACHABLE || ahead(next) >= most {
                    continue;
                }
                let next_row = match self.reached.contains(next) {
                    true => index(self.row[index(next)]),
                    false => self.reach(next, ahead(next), width),
                };
                *work += EDGE_WORK + to_u64(from_starts.len()) / SLOTS_PER_WORK;
                let least = self.relax(view, (row, next_row), (edge, slots), &from_starts);
                match next == target {
                    true => limit = limit.min(least),
                    false => self.wait(next_row, (from_starts.clone(), least), limit),
                }
            }
        }
        if !self.reached.contains(target) {
            return None;
        }
        let row = index(self.row[index(target)]);
        least_start(&self.costs[row * width..][..width], salt)
    }

    /// Forgets the last search.
    fn clear(&mut self, width: usize) {
        self.reached.clear();
        self.rows.clear();
        self.costs.clear();
        self.lowered.resize(width, NEVER);
        self.waiting.clear();
    }

    /// A row for a cell, with no known costs.
    fn reach(&mut self, cell: u32, ahead: i32, width: usize) -> usize {
        let row = self.rows.len();
        self.reached.insert(cell);
        self.row[index(cell)] = to_u32(row);
        self.rows.push(Row { cell, ahead, waiting: None, estimate: NEVER });
        self.costs.resize(self.costs.len() + width, NEVER);
        row
    }

    /// The waiting row with the least estimate below `limit`, and the starts to expand.
    fn next(&mut self, limit: i32) -> Option<(usize, Range<usize>)> {
        while let Some((Reverse(estimate), row)) = self.waiting.pop() {
            let of = &mut self.rows[index(row)];
            if estimate >= limit {
                break;
            }
            if estimate == of.estimate {
                return of.waiting.take().map(|starts| (index(row), starts));
            }
        }
        None
    }

    /// Lowers the costs of the second row at some starts to those over an edge from the first, and
    /// stores those that became less in `lowered`. Returns the least of them.
    fn relax(
        &mut self,
        view: &View<'_>,
        (row, next): (usize, usize),
        (edge, slots): (usize, usize),
        starts: &Range<usize>,
    ) -> i32 {
        let width = self.lowered.len();
        let of = |row: usize| row * width + starts.start..row * width + starts.end;
        let [from, to] = self.costs.get_disjoint_mut([of(row), of(next)]).expect("different rows");
        let (begin, end) = view.links.stretches(edge, slots);
        let links = begin[starts.clone()].iter().zip(&end[starts.clone()]);
        let channels = &view.channels(self.rows[next].cell)[starts.clone()];
        let lowered = self.lowered[starts.clone()].iter_mut();
        let mut least = NEVER;
        for (((from, to), ((begin, end), channel)), lowered) in
            from.iter().zip(to).zip(links.zip(channels)).zip(lowered)
        {
            // No sum is near to overflow, and checks would keep the loop from being vectors'.
            let cost = from.wrapping_add(end.wrapping_sub(*begin)).wrapping_add(*channel);
            *lowered = if cost < *to { cost } else { NEVER };
            *to = if cost < *to { cost } else { *to };
            least = if *lowered < least { *lowered } else { least };
        }
        least
    }

    /// Queues a row where the costs `lowered` at some of the starts, of which `least` is the least, may
    /// lead to a route cheaper than `limit`.
    fn wait(&mut self, row: usize, (starts, least): (Range<usize>, i32), limit: i32) {
        let Row { ahead, waiting, estimate, .. } = &mut self.rows[row];
        let most = limit.saturating_sub(*ahead);
        if least >= most {
            return;
        }
        let lowered = &self.lowered[starts.clone()];
        let is_cheap = |cost: &i32| *cost < most;
        let Some(first) = lowered.iter().position(is_cheap) else { return };
        let last = lowered.iter().rposition(is_cheap).unwrap_or(first);
        let now = starts.start + first..starts.start + last + 1;
        *waiting = Some(match waiting {
            Some(before) => before.start.min(now.start)..before.end.max(now.end),
            None => now,
        });
        let least = least.saturating_add(*ahead);
        if least < *estimate {
            *estimate = least;
            self.waiting.push((Reverse(least), to_u32(row)));
        }
    }

    /// The cells of a cheapest route of connection `x` from a start, to `cells`. Of equal ones `salt`
    /// chooses.
    pub(super) fn trace(
        &self,
        view: &View<'_>,
        (x, start, slots): (usize, usize, usize),
        mut salt: u32,
        cells: &mut Vec<u32>,
    ) {
        let connection = &view.problem.set.connections()[x];
        let width = self.lowered.len();
        let mut cell = connection.target.0;
        cells.clear();
        cells.push(cell);
        while cell != connection.source.0 {
            salt = salt.wrapping_mul(0x9e37_79b9).rotate_left(15);
            let tails = self.incoming.of(cell).iter();
            let tails = tails.filter(|(tail, _)| self.reached.contains(*tail));
            let cost = |&&(tail, edge): &&(u32, u32)| {
                let until = self.costs[index(self.row[index(tail)]) * width + start];
                let stretch = view.links.cost(index(edge), (start, slots));
                (until + stretch, (tail ^ salt).wrapping_mul(0x85eb_ca6b))
            };
            let &(tail, _) = tails.min_by_key(cost).expect("the cell was reached by an edge");
            cell = tail;
            cells.push(cell);
        }
        cells.reverse();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{ConnectionSet, Machine};
    use conset_partition_route::bounds::bounds;
    use proptest::prelude::*;

    use super::super::rows::{HOP_BASE, Prices, Rows};
    use super::*;
    use crate::cases::{SPECS, machine, set};

    const PRICES: Prices = Prices { present: 8192, history: 5, history_most: 99, dearest: 1 << 14 };

    fn problem<'a>(machine: &'a Arc<Machine>, set: &'a Arc<ConnectionSet>) -> Problem<'a> {
        Problem::new(machine, set, bounds(machine, set).unwrap().summary()).unwrap()
    }

    /// The links of a problem with the given users: edge, first slot and number of slots.
    fn links(problem: &Problem<'_>, slots: usize, users: &[(usize, usize, usize)]) -> Rows {
        let capacity = problem.capacity.iter().map(|&capacity| capacity.into()).collect();
        let mut links = Rows::new(capacity, HOP_BASE, HOP).reshaped(&vec![None; slots], &PRICES);
        for &(edge, from, count) in users.iter().filter(|_| problem.edge_count() > 0) {
            let from = from % slots;
            let span = (from, 1 + count % (slots - from));
            links.change(edge % problem.edge_count(), span, true, &PRICES);
        }
        links
    }

    /// The costs of the cheapest routes by start, worked out by relaxing all edges until nothing
    /// becomes cheaper.
    fn cheapest(view: &View<'_>, (x, slots): (usize, usize), starts: &[i32]) -> Vec<i32> {
        let problem = view.problem;
        let connection = &problem.set.connections()[x];
        let cost = |start: usize| {
            let mut costs = vec![i64::from(NEVER); problem.cell_count()];
            let source = connection.source.0;
            let channel = |cell: u32| i64::from(view.channels(cell)[start]);
            costs[index(source)] = i64::from(starts[start]) + channel(source);
            for _ in 0..problem.cell_count() {
                for tail in (0..to_u32(problem.cell_count())).filter(|&t| t != connection.target.0)
                {
                    for edge in problem.edges(tail) {
                        let head = problem.head(edge);
                        let link = i64::from(view.links.cost(edge, (start, slots)));
                        let now = costs[index(tail)] + link + channel(head);
                        costs[index(head)] = costs[index(head)].min(now);
                    }
                }
            }
            i32::try_from(costs[connection.target.index()]).unwrap()
        };
        (0..starts.len()).map(cost).collect()
    }

    proptest! {
        #[test]
        fn a_route_of_any_length_is_the_cheapest(
            (row, ends) in (0..SPECS.len(), (any::<u32>(), any::<u32>(), 1..9u32)),
            users in prop::collection::vec((any::<usize>(), any::<usize>(), any::<usize>()), 0..60),
            ports in prop::collection::vec(0..300i32, 8),
            channels in prop::collection::vec(prop_oneof![Just(0), 0..500i32], 16 * 8),
            (slots, limit, salt) in (1..4usize, 1..4000i32, any::<u32>()),
        ) {
            let machine = Arc::new(machine(row, |_| ()));
            let set = Arc::new(set(&machine, &[ends]));
            let problem = problem(&machine, &set);
            let links = links(&problem, 8, &users);
            let view = View { problem: &problem, links: &links, channels: &channels };
            let starts = &ports[..=8 - slots];
            let costs = cheapest(&view, (0, slots), starts);
            let least = *costs.iter().min().unwrap();
            let mut search = DetourSearch::new(&problem);
            let mut work = 0;
            // The second search finds what the first one does.
            for limit in [NEVER, limit] {
                let found = search.find(&view, (0, slots), (starts, salt), limit, &mut work);
                let found = found.filter(|found| found.0 < limit);
                prop_assert_eq!(found.map(|found| found.0), Some(least).filter(|&least| least < limit));
                let Some((_, start)) = found else { continue };
                prop_assert_eq!(costs[start], least);
                let mut cells = Vec::new();
                search.trace(&view, (0, start, slots), salt, &mut cells);
                let connection = &set.connections()[0];
                prop_assert_eq!(cells.first(), Some(&connection.source.0));
                prop_assert_eq!(cells.last(), Some(&connection.target.0));
                let count = cells.len();
                let hops = cells.windows(2).map(|hop| problem.edge(hop[0], hop[1]));
                let links = hops.map(|edge| links.cost(edge, (start, slots))).sum::<i32>();
                let channels = cells.iter().map(|&cell| view.channels(cell)[start]).sum::<i32>();
                prop_assert_eq!(starts[start] + links + channels, least);
                cells.sort_unstable();
                cells.dedup();
                prop_assert_eq!(cells.len(), count, "a cell is passed twice");
            }
        }
    }

    #[test]
    fn the_way_round_a_ring_is_found() {
        let machine = Arc::new(Machine::from_spec("ring:40").unwrap());
        let set = Arc::new(set(&machine, &[(0, 1, 9)]));
        let problem = problem(&machine, &set);
        // 39 free links are cheaper than one with 40 users.
        let users: Vec<_> = (0..40).map(|_| (problem.edge(0, 1), 0, 0)).collect();
        let links = links(&problem, 1, &users);
        let view = View { problem: &problem, links: &links, channels: &[0; 40] };
        let mut search = DetourSearch::new(&problem);
        let mut find = |limit| search.find(&view, (0, 1), (&[0], 0), limit, &mut 0);
        assert_eq!(find(NEVER), Some((39 * HOP, 0)));
        assert_eq!(find(39 * HOP).filter(|found| found.0 < 39 * HOP), None);
    }
}
