//! List scheduling: whatever can start does, the most urgent first.
//!
//! A route can start when both its sides (see [`crate::cost`]) and all its links are free; a link
//! carries as many streams at a time as it can at their full rate. Time goes from end to end of
//! streams. The urgency of a route is what its more loaded side still has to do, plus a handicap
//! of that side, plus, in all passes but the first, a random part that shrinks from pass to pass.
//! Sides that were late in the best pass so far get a handicap in the next.

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

    /// Routes times ends of streams: what a pass costs.
    pub(crate) fn work(&self) -> usize {
        self.jobs.len() * self.jobs.len()
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

#[derive(Default)]
struct Scratch {
    remaining: Vec<u64>,
    side_busy: Vec<bool>,
    link_streams: Vec<u32>,
    waiting: Vec<(Reverse<u64>, u32)>,
    noise: Vec<u64>,
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
    let Scratch { remaining, side_busy, link_streams, waiting, noise } = scratch;
    remaining.clear();
    remaining.extend(loads.iter().zip(handicaps).map(|(load, h)| load.saturating_add(*h)));
    side_busy.clear();
    side_busy.resize(phase.sides, false);
    link_streams.clear();
    link_streams.resize(phase.link_count, 0);
    waiting.clear();
    waiting.extend((0..count as u32).map(|row| (Reverse(0), row)));
    noise.clear();
    noise.extend((0..count).map(|_| if spread == 0 { 0 } else { next(random) % spread }));

    let mut slots = vec![Slot::default(); count];
    let mut ends: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut now = 0;
    while !waiting.is_empty() {
        for entry in waiting.iter_mut() {
            let row = entry.1 as usize;
            let job = &phase.jobs[row];
            let [a, b] = job.sides.map(|side| remaining[side as usize]);
            entry.0 = Reverse(a.max(b).saturating_add(noise[row]).saturating_add(a.min(b) / 8));
        }
        waiting.sort_unstable();
        waiting.retain(|&(_, row)| {
            let job = &phase.jobs[row as usize];
            let links = phase.links_of(row as usize);
            let free = job.sides.iter().all(|&side| !side_busy[side as usize])
                && links.iter().all(|&link| link_streams[link as usize] < phase.share);
            if free {
                for side in job.sides {
                    side_busy[side as usize] = true;
                }
                for &link in links {
                    link_streams[link as usize] += 1;
                }
                slots[row as usize] = Slot { start: now, duration: job.duration };
                ends.push(Reverse((now.saturating_add(job.duration), row)));
            }
            !free
        });
        // Everything that ends next, ends now.
        let Some(&Reverse((end, _))) = ends.peek() else { break };
        now = end;
        while let Some(&Reverse((end, row))) = ends.peek() {
            if end > now {
                break;
            }
            ends.pop();
            let job = &phase.jobs[row as usize];
            for (place, side) in job.sides.into_iter().enumerate() {
                side_busy[side as usize] = false;
                if place == 0 || job.sides[0] != job.sides[1] {
                    remaining[side as usize] -= job.duration;
                }
            }
            for &link in phase.links_of(row as usize) {
                link_streams[link as usize] -= 1;
            }
        }
    }
    let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
    PhaseTimes { slots, makespan }
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
    use super::*;

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
