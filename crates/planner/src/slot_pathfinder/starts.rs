//! Exact start times: packs the streams of one phase as densely as agents and links allow.
//!
//! The resources that a stream uses, and when after its start, are known ([`Problem::holds`]), so a
//! phase is a scheduling problem without preemption. Streams are taken in an order, and each gets
//! the earliest start at which all its resources are free, also in gaps between earlier streams.
//! Then they are packed towards the end of the phase, the last to end first, and towards its
//! beginning again (forward-backward improvement: Li and Willis, European Journal of Operational
//! Research 56, 1992), for as long as the phase becomes shorter.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::order::Order;
use crate::plan::{Plan, Stream};
use crate::problem::{Hold, Problem};
use conset_ir::convert::{index, to_u32};

/// The number of rounds without improvement after which the search ends.
const PATIENCE: u32 = 2;

/// Improves the starts of the streams of each phase and computes the duration of the plan. Adds the
/// work done to `work`.
pub(super) fn pack(plan: &mut Plan, problem: &Problem<'_>, order: &Order, work: &mut u64) {
    plan.clocks = 0;
    for streams in &mut plan.phases {
        let mut packing = StartPacking::new(streams, problem, order);
        let (starts, length) = packing.improved(streams.iter().map(|s| s.start).collect());
        *work += packing.work;
        streams.iter_mut().zip(starts).for_each(|(stream, start)| stream.start = start);
        plan.clocks += problem.switch + length;
    }
}

struct StartPacking {
    /// Holds of each stream are `first[s]..first[s + 1]`.
    first: Vec<usize>,
    holds: Vec<Hold>,
    /// Clocks of each stream from its start until its last word is received.
    spans: Vec<u64>,
    /// The predecessors and successors of each stream; empty without an order.
    ordered: Vec<[Vec<u32>; 2]>,
    capacity: Vec<usize>,
    /// When each resource is busy, in ascending order.
    busy: Vec<Vec<(u64, u64)>>,
    work: u64,
}

impl StartPacking {
    fn new(streams: &[Stream], problem: &Problem<'_>, order: &Order) -> Self {
        let mut this = Self {
            first: vec![0],
            holds: Vec::new(),
            spans: Vec::new(),
            ordered: ordered(streams, order),
            capacity: Vec::new(),
            busy: Vec::new(),
            work: 0,
        };
        let may_overlap = problem.may_overlap(streams);
        let mut row_of = vec![u32::MAX; problem.resource_count()];
        for stream in streams {
            problem.holds(stream, may_overlap, |mut hold, capacity| {
                let row = &mut row_of[index(hold.resource)];
                if *row == u32::MAX {
                    *row = to_u32(this.capacity.len());
                    this.capacity.push(capacity);
                    this.busy.push(Vec::new());
                }
                hold.resource = *row;
                this.holds.push(hold);
            });
            this.first.push(this.holds.len());
            this.spans.push(problem.until_received(stream));
        }
        this
    }

    /// The best starts found, at least as good as the given ones, and the length of the phase.
    fn improved(&mut self, mut starts: Vec<u64>) -> (Vec<u64>, u64) {
        let mut order: Vec<usize> = (0..starts.len()).collect();
        let ends = starts.iter().zip(&self.spans).map(|(start, span)| start + span);
        let mut least = ends.max().unwrap_or(0);
        if !self.ordered.is_empty() {
            // These starts do not keep the order, which the streams are listed in.
            least = self.pack(&order, false, &mut starts);
        }
        let mut best = starts.clone();
        let mut stalled = 0;
        while stalled < PATIENCE {
            order.sort_by_key(|&s| Reverse(starts[s] + self.spans[s]));
            let length = self.pack(&order, true, &mut starts);
            starts.iter_mut().zip(&self.spans).for_each(|(s, span)| *s = length - *s - span);
            order.sort_by_key(|&s| starts[s]);
            let length = self.pack(&order, false, &mut starts);
            stalled += 1;
            if length < least {
                (least, stalled) = (length, 0);
                best.clone_from(&starts);
            }
        }
        (best, least)
    }

    /// The earliest starts of streams in an order, or seen from the end of the phase; its length.
    fn pack(&mut self, order: &[usize], mirrored: bool, starts: &mut [u64]) -> u64 {
        self.busy.iter_mut().for_each(Vec::clear);
        let mut length = 0;
        for &stream in order {
            let span = self.spans[stream];
            let holds = self.first[stream]..self.first[stream + 1];
            let offset = |hold: &Hold| match mirrored {
                true => span - hold.after - hold.clocks,
                false => hold.after,
            };
            let before =
                self.ordered.get(stream).map(|neighbours| &neighbours[usize::from(mirrored)]);
            let ends = before.into_iter().flatten().map(|&other| index(other));
            let mut start = ends.map(|other| starts[other] + self.spans[other]).max().unwrap_or(0);
            while let Some(later) = self.holds[holds.clone()].iter().find_map(|hold| {
                let free = self.free_after(hold, start + offset(hold))?;
                Some(free - offset(hold))
            }) {
                start = later;
                self.work += 1;
            }
            self.work += 1;
            for hold in &self.holds[holds] {
                let from = start + offset(hold);
                let busy = &mut self.busy[index(hold.resource)];
                let at = busy.partition_point(|other| other.0 < from);
                busy.insert(at, (from, from + hold.clocks));
            }
            starts[stream] = start;
            length = length.max(start + span);
        }
        length
    }

    /// The first clock at which something ends that keeps a resource too busy from `from` on;
    /// `None` where nothing does.
    fn free_after(&self, hold: &Hold, from: u64) -> Option<u64> {
        let (row, to) = (index(hold.resource), from + hold.clocks);
        let (busy, capacity) = (&self.busy[row], self.capacity[row]);
        if capacity == 1 {
            let next = busy.partition_point(|other| other.1 <= from);
            return busy.get(next).filter(|other| other.0 < to).map(|other| other.1);
        }
        let meets = |other: &&(u64, u64)| other.0 < to && other.1 > from;
        let at = |clock: u64| busy.iter().filter(|o| o.0 <= clock && clock < o.1).count();
        let clocks = busy.iter().filter(meets).map(|other| other.0.max(from));
        let most = clocks.map(at).max().unwrap_or(0);
        let ends = || busy.iter().filter(meets).map(|other| other.1);
        (most >= capacity).then(|| ends().min()).flatten()
    }
}

/// Of each stream those that come before it in the order, and those that come after it.
fn ordered(streams: &[Stream], order: &Order) -> Vec<[Vec<u32>; 2]> {
    if order.is_empty() {
        return Vec::new();
    }
    let mut of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (row, stream) in streams.iter().enumerate() {
        of.entry(stream.connection).or_default().push(to_u32(row));
    }
    let streams_of = |x: u32| of.get(&x).map_or(&[][..], Vec::as_slice);
    let neighbours = |stream: &Stream| {
        let x = stream.connection;
        let pairs = || order.of(x).iter().map(|&pair| order.pairs[index(pair)]);
        let before = pairs().filter(|pair| pair[1] == x).flat_map(|pair| streams_of(pair[0]));
        let after = pairs().filter(|pair| pair[0] == x).flat_map(|pair| streams_of(pair[1]));
        [before.copied().collect(), after.copied().collect()]
    };
    streams.iter().map(neighbours).collect()
}
