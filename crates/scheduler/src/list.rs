//! List scheduling: whatever can start does, the most urgent first.
//!
//! A route can start when both its sides (see [`crate::cost`]) and all its links are free; a link
//! carries as many streams at a time as it can at their full rate. Time goes from end to end of
//! streams. The urgency of a route is what its more loaded side still has to do, plus a handicap
//! of that side, plus, in all passes but the first, a random part that shrinks from pass to pass.
//! Sides that were late in the best pass so far get a handicap in the next.
//!
//! What waits is not looked at again and again: a waiting route *watches* one of its sides or
//! links that is taken, the one that is taken longest, and stands in that one's queue, the most
//! urgent first. When a stream ends, only the queues of what it frees are looked at, together in
//! the order of urgency, each until it is taken again. A route that watches something else could
//! not have started, so the outcome is that of looking at all of them. Urgencies only fall, so
//! those in the queues are put right when they come to the head.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::{PhaseTimes, Slot};

/// A route: its sides and the end of its links in [`Phase::links`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) sides: [u32; 2],
    pub(crate) duration: u64,
    pub(crate) links_end: u32,
}

/// A phase, with sides and links numbered within it.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) jobs: Vec<Job>,
    pub(crate) links: Vec<u32>,
    pub(crate) sides: usize,
    pub(crate) link_count: usize,
    pub(crate) share: u32,
}

impl Phase {
    fn links_of(&self, row: usize) -> &[u32] {
        let start = if row == 0 { 0 } else { self.jobs[row - 1].links_end as usize };
        &self.links[start..self.jobs[row].links_end as usize]
    }

    fn loads(&self) -> Vec<u64> {
        let mut loads = vec![0u64; self.sides];
        for job in &self.jobs {
            loads[job.sides[0] as usize] += job.duration;
            if job.sides[1] != job.sides[0] {
                loads[job.sides[1] as usize] += job.duration;
            }
        }
        loads
    }
}

/// Timetables kept for pricing.
const KEPT: usize = 6;

/// The shortest different timetables of some passes, the shortest first.
pub(crate) fn shortest(phase: &Phase, passes: u32, seed: u64) -> Vec<PhaseTimes> {
    let loads = phase.loads();
    let bound = loads.iter().copied().max().unwrap_or(0);
    let mut random = seed;
    let mut handicaps = vec![0u64; phase.sides];
    let mut best: Vec<PhaseTimes> = Vec::new();
    let mut scratch = Scratch::default();
    for pass in 0..passes {
        let spread = if pass == 0 { 0 } else { bound / (2 + u64::from(pass % 8)) };
        let times = run(phase, &loads, &handicaps, spread, &mut random, &mut scratch);
        for (job, slot) in phase.jobs.iter().zip(&times.slots) {
            if slot.end() > bound {
                for side in job.sides {
                    handicaps[side as usize] += (slot.end() - bound).div_ceil(2);
                }
            }
        }
        if pass % 16 == 15 {
            handicaps.fill(0);
        }
        let place = best.partition_point(|kept| kept.makespan <= times.makespan);
        if place < KEPT {
            best.insert(place, times);
            best.truncate(KEPT);
        }
        if best.iter().all(|kept| kept.makespan <= bound) && best.len() == KEPT {
            break;
        }
    }
    best
}

/// An urgency (as it was when the route was put there) and a route, the lowest first of equals.
type Waiting = (u64, Reverse<u32>);

#[derive(Default)]
struct Scratch {
    /// What each side still has to do, with its handicap.
    remaining: Vec<u64>,
    noise: Vec<u64>,
    /// Streams on each side, then on each link.
    taken: Vec<u32>,
    /// When each of these will be free again, at the earliest what was booked last.
    until: Vec<u64>,
    /// The routes that watch each of these.
    queues: Vec<BinaryHeap<Waiting>>,
    /// The heads of the queues of what has become free.
    heads: BinaryHeap<(u64, Reverse<u32>, u32)>,
    ends: BinaryHeap<Reverse<(u64, u32)>>,
}

fn run(
    phase: &Phase,
    loads: &[u64],
    handicaps: &[u64],
    spread: u64,
    random: &mut u64,
    scratch: &mut Scratch,
) -> PhaseTimes {
    let count = phase.jobs.len();
    scratch.remaining.clear();
    let all = loads.iter().zip(handicaps).map(|(load, h)| load.saturating_add(*h));
    scratch.remaining.extend(all);
    scratch.noise.clear();
    let mut noise = || if spread == 0 { 0 } else { next(random) % spread };
    scratch.noise.extend((0..count).map(|_| noise()));
    let resources = phase.sides + phase.link_count;
    scratch.taken.clear();
    scratch.taken.resize(resources, 0);
    scratch.until.clear();
    scratch.until.resize(resources, 0);
    scratch.queues.iter_mut().for_each(BinaryHeap::clear);
    if scratch.queues.len() < resources {
        scratch.queues.resize(resources, BinaryHeap::new());
    }
    scratch.heads.clear();
    scratch.ends.clear();
    let mut slots = vec![Slot::default(); count];
    Run { phase, scratch, slots: &mut slots, now: 0 }.run();
    let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
    PhaseTimes { slots, makespan }
}

/// One pass. Resources are sides, then links.
struct Run<'a> {
    phase: &'a Phase,
    scratch: &'a mut Scratch,
    slots: &'a mut [Slot],
    now: u64,
}

impl Run<'_> {
    fn run(mut self) {
        let mut first: Vec<Waiting> =
            (0..self.slots.len()).map(|row| (self.urgency(row), Reverse(row as u32))).collect();
        first.sort_unstable_by(|a, b| b.cmp(a));
        for (urgency, Reverse(row)) in first {
            self.start_or_watch(urgency, row);
        }
        // Everything that ends next, ends now.
        while let Some(&Reverse((end, _))) = self.scratch.ends.peek() {
            self.now = end;
            while let Some(&Reverse((end, row))) = self.scratch.ends.peek() {
                if end > self.now {
                    break;
                }
                self.scratch.ends.pop();
                self.end(row as usize);
            }
            self.start_what_can();
        }
    }

    fn urgency(&self, row: usize) -> u64 {
        let [a, b] = self.phase.jobs[row].sides.map(|side| self.scratch.remaining[side as usize]);
        a.max(b).saturating_add(self.scratch.noise[row]).saturating_add(a.min(b) / 8)
    }

    fn resources(&self, row: usize) -> impl Iterator<Item = usize> + use<'_> {
        let links = self.phase.links_of(row).iter();
        let links = links.map(|&link| self.phase.sides + link as usize);
        self.phase.jobs[row].sides.into_iter().map(|side| side as usize).chain(links)
    }

    fn is_free(&self, resource: usize) -> bool {
        let most = if resource < self.phase.sides { 1 } else { self.phase.share };
        self.scratch.taken[resource] < most
    }

    /// Starts a route, or puts it into the queue of what is taken longest of what it needs.
    fn start_or_watch(&mut self, urgency: u64, row: u32) {
        let taken = self.resources(row as usize).filter(|&resource| !self.is_free(resource));
        if let Some(watched) = taken.max_by_key(|&resource| self.scratch.until[resource]) {
            self.scratch.queues[watched].push((urgency, Reverse(row)));
            return;
        }
        let duration = self.phase.jobs[row as usize].duration;
        let slot = Slot { start: self.now, duration };
        self.slots[row as usize] = slot;
        for part in 0..self.parts(row as usize) {
            let resource = self.part(row as usize, part);
            self.scratch.taken[resource] += 1;
            self.scratch.until[resource] = slot.end();
        }
        self.scratch.ends.push(Reverse((slot.end(), row)));
    }

    fn end(&mut self, row: usize) {
        let job = self.phase.jobs[row];
        for (place, side) in job.sides.into_iter().enumerate() {
            if place == 0 || job.sides[0] != job.sides[1] {
                self.scratch.remaining[side as usize] -= job.duration;
            }
        }
        for part in 0..self.parts(row) {
            let resource = self.part(row, part);
            self.scratch.taken[resource] -= 1;
            self.show_head(resource);
        }
    }

    /// Sides and links of a route, one by one: those of a route that books one side twice are
    /// taken twice and given back twice.
    fn parts(&self, row: usize) -> usize {
        2 + self.phase.links_of(row).len()
    }

    fn part(&self, row: usize, part: usize) -> usize {
        match part {
            0 | 1 => self.phase.jobs[row].sides[part] as usize,
            _ => self.phase.sides + self.phase.links_of(row)[part - 2] as usize,
        }
    }

    fn show_head(&mut self, resource: usize) {
        if let Some(&(urgency, row)) = self.scratch.queues[resource].peek() {
            self.scratch.heads.push((urgency, row, resource as u32));
        }
    }

    /// Looks at what watches something that has become free.
    fn start_what_can(&mut self) {
        while let Some((urgency, row, resource)) = self.scratch.heads.pop() {
            let resource = resource as usize;
            // Several streams that end at once may show one head several times.
            let is_head = self.scratch.queues[resource].peek() == Some(&(urgency, row));
            if !is_head || !self.is_free(resource) {
                continue;
            }
            self.scratch.queues[resource].pop();
            let now = self.urgency(row.0 as usize);
            if now < urgency {
                self.scratch.queues[resource].push((now, row));
            } else {
                self.start_or_watch(urgency, row.0);
            }
            self.show_head(resource);
        }
    }
}

/// The next of a sequence of random numbers (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What [`run`] means: at every end of a stream all that waits is looked at.
    fn plainly(phase: &Phase, handicaps: &[u64], spread: u64, random: &mut u64) -> Vec<Slot> {
        let mut remaining: Vec<u64> =
            phase.loads().iter().zip(handicaps).map(|(l, h)| l + h).collect();
        let count = phase.jobs.len();
        let mut noise = || if spread == 0 { 0 } else { next(random) % spread };
        let noise: Vec<u64> = (0..count).map(|_| noise()).collect();
        let (mut busy, mut streams) = (vec![false; phase.sides], vec![0; phase.link_count]);
        let mut slots: Vec<Option<Slot>> = vec![None; count];
        let mut running: Vec<usize> = Vec::new();
        let mut now = 0;
        loop {
            let mut waiting: Vec<usize> = (0..count).filter(|&r| slots[r].is_none()).collect();
            waiting.sort_by_key(|&row| {
                let [a, b] = phase.jobs[row].sides.map(|side| remaining[side as usize]);
                (Reverse(a.max(b) + noise[row] + a.min(b) / 8), row)
            });
            for row in waiting {
                let job = phase.jobs[row];
                let links = phase.links_of(row);
                if job.sides.iter().any(|&side| busy[side as usize])
                    || links.iter().any(|&link| streams[link as usize] >= phase.share)
                {
                    continue;
                }
                job.sides.iter().for_each(|&side| busy[side as usize] = true);
                links.iter().for_each(|&link| streams[link as usize] += 1);
                slots[row] = Some(Slot { start: now, duration: job.duration });
                running.push(row);
            }
            let Some(end) = running.iter().map(|&row| slots[row].unwrap().end()).min() else {
                return slots.into_iter().map(Option::unwrap).collect();
            };
            now = end;
            running.retain(|&row| {
                let over = slots[row].unwrap().end() == now;
                if over {
                    let job = phase.jobs[row];
                    let [a, b] = job.sides;
                    job.sides.iter().for_each(|&side| busy[side as usize] = false);
                    phase.links_of(row).iter().for_each(|&link| streams[link as usize] -= 1);
                    remaining[a as usize] -= job.duration;
                    if a != b {
                        remaining[b as usize] -= job.duration;
                    }
                }
                !over
            });
        }
    }

    proptest! {
        #[test]
        fn queues_give_what_looking_at_all_gives(
            jobs in proptest::collection::vec(
                ([0u32..8, 0u32..8], 1u64..20, proptest::collection::btree_set(0u32..10, 0..4)),
                0..60,
            ),
            handicaps in proptest::collection::vec(0u64..30, 8),
            share in 1u32..3,
            spread in 0u64..40,
            seed: u64,
        ) {
            let lists: Vec<Vec<u32>> = jobs.iter().map(|j| j.2.iter().copied().collect()).collect();
            let rows: Vec<([u32; 2], u64, &[u32])> =
                jobs.iter().zip(&lists).map(|(j, l)| (j.0, j.1, l.as_slice())).collect();
            let phase = phase(&rows, share);
            let handicaps = &handicaps[..phase.sides];
            let expected = plainly(&phase, handicaps, spread, &mut seed.clone());
            let mut scratch = Scratch::default();
            for _ in 0..2 {
                let mut random = seed;
                let found =
                    run(&phase, &phase.loads(), handicaps, spread, &mut random, &mut scratch);
                prop_assert_eq!(&found.slots, &expected);
            }
        }
    }

    fn phase(jobs: &[([u32; 2], u64, &[u32])], share: u32) -> Phase {
        let mut links = Vec::new();
        let jobs: Vec<Job> = jobs
            .iter()
            .map(|&(sides, duration, over)| {
                links.extend_from_slice(over);
                Job { sides, duration, links_end: links.len() as u32 }
            })
            .collect();
        let sides = jobs.iter().flat_map(|job| job.sides).max().map_or(0, |s| s as usize + 1);
        let link_count = links.iter().max().map_or(0, |&l| l as usize + 1);
        Phase { jobs, links, sides, link_count, share }
    }

    #[test]
    fn streams_keep_off_each_others_links() {
        let jobs: [([u32; 2], u64, &[u32]); 3] =
            [([0, 1], 10, &[0, 1]), ([2, 3], 10, &[1, 2]), ([4, 5], 10, &[2])];
        // The second waits for the first; the third need not wait, or the second not for it.
        assert_eq!(shortest(&phase(&jobs, 1), 4, 0)[0].makespan, 20);
        assert_eq!(shortest(&phase(&jobs, 2), 4, 0)[0].makespan, 10);
        assert!(shortest(&phase(&[], 1), 4, 0).iter().all(|times| times.makespan == 0));
    }

    #[test]
    fn an_agent_is_never_booked_twice() {
        // All pairs of five senders and five receivers, with durations of all sizes.
        let jobs: Vec<([u32; 2], u64, &[u32])> = (0..25u32)
            .map(|i| ([2 * (i % 5), 2 * (i / 5) + 1], 1 + u64::from(i * 7 % 11), &[][..]))
            .collect();
        let phase = phase(&jobs, 1);
        for times in shortest(&phase, 64, 3) {
            for (a, one) in phase.jobs.iter().zip(&times.slots) {
                for (b, other) in phase.jobs.iter().zip(&times.slots) {
                    let meet = a.sides.iter().any(|side| b.sides.contains(side));
                    let apart = one.end() <= other.start || other.end() <= one.start;
                    assert!(std::ptr::eq(a, b) || !meet || apart);
                }
            }
            assert_eq!(times.makespan, times.slots.iter().map(Slot::end).max().unwrap());
        }
        assert_eq!(shortest(&phase, 64, 3), shortest(&phase, 64, 3));
    }
}
