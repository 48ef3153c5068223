//! Start times for the streams of one phase by list scheduling and justification.
//!
//! Each stream claims both its agents and the links of its route, each for an interval relative to
//! its start. Streams are scheduled one after the other at the first time at which all claims are
//! free: of those that can start first, the one whose agents and links have the most work left. The
//! result is improved by *justification* (Valls, Ballestín and Quintanilla, EJOR 2005): streams are
//! moved as late as possible, in descending order of their ends, then as early as possible, in the
//! order of their starts. This is repeated with noise on the remaining work, and the shortest
//! timetable is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::{index, to_u32, to_u64};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::plan::Stream;
use crate::problem::Problem;

/// The interval for which a stream needs one of several equivalent lines.
#[derive(Clone, Copy)]
struct Claim {
    /// Lines `first..first + lines`.
    first: u32,
    lines: u32,
    /// The beginning of the interval, in clocks from the start of the stream.
    offset: u64,
    /// The beginning of a second interval, whose order must be that of the first: the agent of a
    /// target opens streams in the order in which it receives them. Otherwise equal to `offset`.
    second: u64,
    length: u64,
}

/// A booked claim.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    second: u64,
    length: u64,
}

/// When each line is busy: spans that do not overlap, in order.
struct Lines(Vec<Vec<Span>>);

impl Lines {
    /// The first start at or after `start` at which a line is free for a claim.
    fn free(&self, line: u32, claim: &Claim, mut start: u64) -> u64 {
        let spans = &self.0[index(line)];
        let is_behind = |start: u64, span: &Span| {
            start + claim.offset >= span.first + span.length
                && start + claim.second >= span.second + span.length
        };
        let next = spans.partition_point(|span| is_behind(start, span));
        for span in &spans[next..] {
            let ends = (start + claim.offset, start + claim.second);
            if ends.0 + claim.length <= span.first && ends.1 + claim.length <= span.second {
                break;
            }
            start = start.max((span.first + span.length).saturating_sub(claim.offset));
            start = start.max((span.second + span.length).saturating_sub(claim.second));
        }
        start
    }

    fn any_free(&self, claim: &Claim, start: u64) -> (u64, u32) {
        let lines = claim.first..claim.first + claim.lines;
        let free = lines.map(|line| (self.free(line, claim, start), line));
        free.min().expect("there are links")
    }

    /// The earliest start at or after `start` at which all claims are free.
    fn earliest(&self, claims: &[Claim], mut start: u64) -> u64 {
        loop {
            let before = start;
            for claim in claims {
                start = self.any_free(claim, start).0;
            }
            if start == before {
                return start;
            }
        }
    }

    fn book(&mut self, claims: &[Claim], start: u64) {
        for claim in claims {
            let line = self.any_free(claim, start).1;
            let spans = &mut self.0[index(line)];
            let (first, second) = (start + claim.offset, start + claim.second);
            let place = spans.partition_point(|span| span.first < first);
            spans.insert(place, Span { first, second, length: claim.length });
        }
    }
}

/// The streams of a phase to be scheduled.
pub(super) struct PhaseTimetable {
    /// Claims of stream `s` are `first[s]..first[s + 1]`.
    first: Vec<u32>,
    claims: Vec<Claim>,
    /// Clocks from the start of each stream until its last word is received.
    lasts: Vec<u64>,
    lines: Lines,
    pub(super) work: u64,
}

impl PhaseTimetable {
    pub(super) fn new(problem: &Problem<'_>, streams: &[Stream]) -> Self {
        let mut this = Self {
            first: vec![0],
            claims: Vec::new(),
            lasts: Vec::new(),
            lines: Lines(Vec::new()),
            work: 0,
        };
        // Lines: of ports, of what targets receive, of edges.
        let receive = to_u32(problem.port_count);
        let mut edge_lines = vec![receive + to_u32(problem.cell_count())];
        for &capacity in &problem.capacity {
            edge_lines.push(edge_lines[edge_lines.len() - 1] + u32::from(capacity));
        }
        this.lines.0 = vec![Vec::new(); index(edge_lines[edge_lines.len() - 1])];
        for stream in streams {
            let x = index(stream.connection);
            let clocks = problem.clocks(x);
            let (busy, hops) = (clocks.of(stream.words), stream.cells.len() - 1);
            let flight = clocks.pipeline_latency(hops);
            let [source, target] = problem.ports[x];
            let one = |first, second| Claim { first, lines: 1, offset: 0, second, length: busy };
            this.claims.push(one(source, 0));
            if target != source {
                this.claims.push(one(target, 0));
            }
            this.claims.push(one(receive + stream.cells[hops], flight));
            for (hop, pair) in stream.cells.windows(2).enumerate() {
                let edge = problem.edge(pair[0], pair[1]);
                let offset = problem.setup + to_u64(hop) * problem.link_clocks;
                this.claims.push(Claim {
                    first: edge_lines[edge],
                    lines: u32::from(problem.capacity[edge]),
                    offset,
                    second: offset,
                    length: busy - problem.setup.min(busy),
                });
            }
            this.lasts.push(busy + flight);
            this.first.push(to_u32(this.claims.len()));
        }
        this
    }

    /// The makespan of some starts.
    fn makespan(&self, starts: &[u64]) -> u64 {
        starts.iter().zip(&self.lasts).map(|(start, last)| start + last).max().unwrap_or(0)
    }

    /// Streams as early as they can, in this order.
    fn schedule(&mut self, order: &[u32]) -> Vec<u64> {
        self.work += to_u64(self.claims.len()) / 4;
        self.lines.0.iter_mut().for_each(Vec::clear);
        let mut starts = vec![0; self.lasts.len()];
        for &s in order {
            let claims = index(self.first[index(s)])..index(self.first[index(s) + 1]);
            let start = self.lines.earliest(&self.claims[claims.clone()], 0);
            self.lines.book(&self.claims[claims], start);
            starts[index(s)] = start;
        }
        starts
    }

    /// Streams one after the other, of those that can start first always one whose agents have
    /// the most left to do; `noise` for each stream is added to that.
    fn dispatch(&mut self, noise: &[u64]) -> Vec<u64> {
        self.lines.0.iter_mut().for_each(Vec::clear);
        let mut left = self.loads();
        let claims = |s: u32| index(self.first[index(s)])..index(self.first[index(s) + 1]);
        let urgency = |s: u32, left: &[u64]| {
            let single = self.claims[claims(s)].iter().filter(|claim| claim.lines == 1);
            let behind = |claim: &Claim| {
                left[index(claim.first)] + self.lasts[index(s)] - claim.offset - claim.length
            };
            noise[index(s)] + single.map(behind).max().unwrap_or(0)
        };
        let mut starts = vec![0; self.lasts.len()];
        let mut heap: BinaryHeap<(Reverse<u64>, u64, u32)> =
            (0..to_u32(starts.len())).map(|s| (Reverse(0), urgency(s, &left), s)).collect();
        while let Some((Reverse(start), urgent, s)) = heap.pop() {
            self.work += 1 + to_u64(claims(s).len()) / 4;
            // Since its last turn only more has been booked.
            let now = (self.lines.earliest(&self.claims[claims(s)], start), urgency(s, &left));
            if now != (start, urgent) {
                heap.push((Reverse(now.0), now.1, s));
                continue;
            }
            self.lines.book(&self.claims[claims(s)], start);
            for claim in &self.claims[claims(s)] {
                left[index(claim.first)] -= claim.length;
            }
            starts[index(s)] = start;
        }
        starts
    }

    /// How long each line is busy, with all lines of an edge counted for the first.
    fn loads(&self) -> Vec<u64> {
        let mut loads = vec![0; self.lines.0.len()];
        self.claims.iter().for_each(|claim| loads[index(claim.first)] += claim.length);
        loads
    }

    /// Turns time round: what was claimed first is claimed last.
    fn mirror(&mut self) {
        for (s, &last) in self.lasts.iter().enumerate() {
            for claim in &mut self.claims[index(self.first[s])..index(self.first[s + 1])] {
                claim.offset = last - claim.offset - claim.length;
                claim.second = last - claim.second - claim.length;
            }
        }
    }

    /// Moves all streams as late as they can, then as early as they can.
    fn justify(&mut self, starts: &[u64]) -> Vec<u64> {
        let mut order: Vec<u32> = (0..to_u32(starts.len())).collect();
        let end = |s: u32, starts: &[u64]| starts[index(s)] + self.lasts[index(s)];
        order.sort_by_key(|&s| Reverse(end(s, starts)));
        self.mirror();
        let late = self.schedule(&order);
        self.mirror();
        // Mirrored starts count from the end, so the greatest of these ends come first.
        order.sort_by_key(|&s| Reverse(late[index(s)] + self.lasts[index(s)]));
        self.schedule(&order)
    }

    /// Starts, and the makespan, after so many disturbances; none is made where it cannot gain.
    pub(super) fn solve(&mut self, rounds: u32, rng: &mut ChaCha8Rng) -> (Vec<u64>, u64) {
        let least = self.least();
        let mean = self.lasts.iter().sum::<u64>() / to_u64(self.lasts.len().max(1));
        let mut best: Option<(u64, Vec<u64>)> = None;
        for round in 0..=rounds {
            if best.as_ref().is_some_and(|best| best.0 <= least) {
                break;
            }
            // The first without noise.
            let most = u64::from(round) * mean * 2 / u64::from(rounds.max(1));
            let noise: Vec<u64> = self.lasts.iter().map(|_| rng.random_range(0..=most)).collect();
            let mut starts = self.dispatch(&noise);
            let mut makespan = self.makespan(&starts);
            loop {
                let next = self.justify(&starts);
                let then = self.makespan(&next);
                if then >= makespan {
                    break;
                }
                (starts, makespan) = (next, then);
            }
            if best.as_ref().is_none_or(|best| makespan < best.0) {
                best = Some((makespan, starts));
            }
        }
        let (makespan, starts) = best.unwrap_or_default();
        (starts, makespan)
    }

    /// A makespan that no schedule is below: of a line's claims all but their offsets.
    fn least(&self) -> u64 {
        let mut lines = vec![(0u64, u64::MAX); self.lines.0.len()];
        for (s, &last) in self.lasts.iter().enumerate() {
            for claim in &self.claims[index(self.first[s])..index(self.first[s + 1])] {
                if claim.lines == 1 {
                    let line = &mut lines[index(claim.first)];
                    line.0 += claim.length;
                    line.1 = line.1.min(last - claim.length);
                }
            }
        }
        let of = |&(busy, rest): &(u64, u64)| if busy == 0 { 0 } else { busy + rest };
        lines.iter().map(of).max().unwrap_or(0)
    }
}
