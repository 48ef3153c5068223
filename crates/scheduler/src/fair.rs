//! Max-min fair rates of streams that share links and agents, kept up to date as streams come
//! and go.
//!
//! A *resource* (a link, or the agent side of a cell) gives out at most its capacity, in words
//! per clock. Rates are max-min fair if none can be raised without lowering one that is not
//! higher. That is what round robin among channels with a word waiting comes to, since a channel
//! that is held up elsewhere passes its turns on (machine model, rule 3).
//!
//! Every resource has a *level*: the rate of the streams that are held up here and nowhere else
//! worse; infinite if it holds up none. A stream's rate is the least level along its way, and
//!
//! ```text
//! sum over the users of min(level, least level elsewhere on the user's way) = capacity
//! ```
//!
//! These equations have one solution, and it is the max-min fair one: the most crowded resource
//! gets capacity / users whatever the others do, its users' rates are then settled, and so on
//! upwards. For the same reason solving them one at a time, in any fair order and from any start,
//! arrives. So when a stream comes or goes only its own resources are solved again, then those
//! that see a change, until nothing changes any more: the work is what the event really touches.
//!
//! A stream that uses a resource twice (an agent that sends to itself with half duplex) is its
//! user twice.
//!
//! Levels are floating-point numbers and a change below [`TOLERANCE`] is none. An event is given
//! up on after [`PATIENCE`] solutions per resource, far more than it takes; the levels reached
//! then stand until the next event.

use std::collections::VecDeque;

use conset_ir::Lists;

/// Relative change of a level that counts as none.
const TOLERANCE: f64 = 1e-9;

/// Solutions per resource and event before an event is given up on.
const PATIENCE: usize = 64;

/// The resources and streams of one phase, numbered from 0 each.
#[derive(Debug)]
pub(crate) struct Fair {
    capacities: Vec<f64>,
    /// The resources of each stream.
    ways: Lists,
    levels: Vec<f64>,
    /// The active streams at each resource.
    users: Vec<Vec<u32>>,
    held: Vec<Held>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
    changed: Vec<u32>,
    noted: Vec<bool>,
    scratch: Vec<f64>,
}

/// Where a stream is held up: the resource of least level on its way, and the least level of the
/// others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    resource: u32,
    least: f64,
    second: f64,
}

impl Fair {
    /// Nothing active. Streams are numbered as in `ways`.
    pub(crate) fn new(capacities: Vec<f64>, ways: Lists) -> Self {
        let (resources, streams) = (capacities.len(), ways.rows() as usize);
        Self {
            levels: vec![f64::INFINITY; resources],
            users: vec![Vec::new(); resources],
            queue: VecDeque::new(),
            queued: vec![false; resources],
            held: vec![Held::NOWHERE; streams],
            changed: Vec::new(),
            noted: vec![false; streams],
            scratch: Vec::new(),
            capacities,
            ways,
        }
    }

    /// Takes other streams, when none is active: the same resources serve another phase.
    pub(crate) fn restart(&mut self, ways: Lists) {
        debug_assert!(self.users.iter().all(Vec::is_empty), "a phase is over");
        let streams = ways.rows() as usize;
        self.ways = ways;
        self.held.clear();
        self.held.resize(streams, Held::NOWHERE);
        self.noted.clear();
        self.noted.resize(streams, false);
        // What is left over of the last events: nobody uses these resources.
        for resource in self.queue.drain(..) {
            self.queued[resource as usize] = false;
            self.levels[resource as usize] = f64::INFINITY;
        }
        self.changed.clear();
    }

    /// A stream becomes active. Rates are right again after [`Fair::settle`].
    pub(crate) fn add(&mut self, stream: u32) {
        for i in 0..self.ways.of(stream).len() {
            let resource = self.ways.of(stream)[i];
            self.users[resource as usize].push(stream);
            self.enqueue(resource);
        }
        self.held[stream as usize] = self.holdup(stream);
        self.note(stream);
    }

    /// An active stream is over.
    pub(crate) fn remove(&mut self, stream: u32) {
        for i in 0..self.ways.of(stream).len() {
            let resource = self.ways.of(stream)[i];
            let users = &mut self.users[resource as usize];
            if let Some(place) = users.iter().position(|&user| user == stream) {
                users.swap_remove(place);
            }
            self.enqueue(resource);
        }
    }

    /// The active streams at a resource.
    pub(crate) fn sharing(&self, resource: u32) -> u32 {
        self.users[resource as usize].len() as u32
    }

    /// The resources of a stream.
    pub(crate) fn way(&self, stream: u32) -> &[u32] {
        self.ways.of(stream)
    }

    /// The rate of an active stream, in words per clock.
    pub(crate) fn rate(&self, stream: u32) -> f64 {
        self.held[stream as usize].least
    }

    /// Makes all rates fair again and returns the streams whose rate may have changed.
    pub(crate) fn settle(&mut self, changed: &mut Vec<u32>) {
        let mut patience = PATIENCE * self.capacities.len();
        while let Some(resource) = self.queue.pop_front() {
            self.queued[resource as usize] = false;
            if patience > 0 {
                patience -= 1;
                self.solve(resource);
            }
        }
        changed.clear();
        changed.append(&mut self.changed);
        for &stream in changed.iter() {
            self.noted[stream as usize] = false;
        }
    }

    /// Finds a resource's level and tells the users if it changed.
    fn solve(&mut self, resource: u32) {
        let level = self.level(resource);
        let old = std::mem::replace(&mut self.levels[resource as usize], level);
        if old == level || (level.is_finite() && (level - old).abs() <= TOLERANCE * level) {
            return;
        }
        for i in 0..self.users[resource as usize].len() {
            let stream = self.users[resource as usize][i];
            let before = self.held[stream as usize];
            let after = self.holdup(stream);
            if before == after {
                continue;
            }
            self.held[stream as usize] = after;
            if before.least != after.least {
                self.note(stream);
            }
            for j in 0..self.ways.of(stream).len() {
                let other = self.ways.of(stream)[j];
                if other != resource && before.without(other) != after.without(other) {
                    self.enqueue(other);
                }
            }
        }
    }

    /// Solves the equation of one resource.
    fn level(&mut self, resource: u32) -> f64 {
        let elsewhere = &mut self.scratch;
        elsewhere.clear();
        let users = &self.users[resource as usize];
        elsewhere.extend(users.iter().map(|&s| self.held[s as usize].without(resource)));
        elsewhere.sort_unstable_by(f64::total_cmp);
        let mut left = self.capacities[resource as usize];
        for (served, &rate) in elsewhere.iter().enumerate() {
            let share = left / (elsewhere.len() - served) as f64;
            if rate > share * (1.0 + TOLERANCE) {
                return share;
            }
            left -= rate;
        }
        f64::INFINITY
    }

    fn holdup(&self, stream: u32) -> Held {
        let mut held = Held::NOWHERE;
        for &resource in self.ways.of(stream) {
            let level = self.levels[resource as usize];
            if level < held.least {
                held = Held { resource, least: level, second: held.least };
            } else if resource != held.resource && level < held.second {
                held.second = level;
            }
        }
        held
    }

    fn enqueue(&mut self, resource: u32) {
        if !std::mem::replace(&mut self.queued[resource as usize], true) {
            self.queue.push_back(resource);
        }
    }

    fn note(&mut self, stream: u32) {
        if !std::mem::replace(&mut self.noted[stream as usize], true) {
            self.changed.push(stream);
        }
    }
}

impl Held {
    const NOWHERE: Self = Self { resource: 0, least: f64::INFINITY, second: f64::INFINITY };

    /// The least level on the way if it were not for one resource.
    fn without(&self, resource: u32) -> f64 {
        if self.resource == resource { self.second } else { self.least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Progressive filling, straight from the definition: raise all rates together; a stream
    /// stops when one of its resources is full.
    fn filled(capacities: &[f64], ways: &[Vec<u32>]) -> Vec<f64> {
        let mut rates = vec![f64::NAN; ways.len()];
        while rates.iter().any(|r| r.is_nan()) {
            let (mut share, mut full) = (f64::INFINITY, 0);
            for (resource, &capacity) in capacities.iter().enumerate() {
                let (mut left, mut growing) = (capacity, 0.0);
                for (way, rate) in ways.iter().zip(&rates) {
                    let times = way.iter().filter(|&&r| r as usize == resource).count() as f64;
                    if rate.is_nan() {
                        growing += times;
                    } else {
                        left -= times * rate;
                    }
                }
                if growing > 0.0 && left / growing < share {
                    (share, full) = (left / growing, resource as u32);
                }
            }
            for (way, rate) in ways.iter().zip(&mut rates) {
                if rate.is_nan() && way.contains(&full) {
                    *rate = share;
                }
            }
        }
        rates
    }

    fn lists(ways: &[Vec<u32>]) -> Lists {
        let pairs = ways.iter().enumerate();
        Lists::new(ways.len(), pairs.flat_map(|(s, way)| way.iter().map(move |&r| (s as u32, r))))
    }

    #[test]
    fn streams_held_up_elsewhere_leave_room() {
        // Two at resource 0; one of them goes on through resource 1, shared by three.
        let ways = lists(&[vec![0], vec![0, 1], vec![1], vec![1]]);
        let mut fair = Fair::new(vec![1.0, 1.0], ways);
        let mut changed = Vec::new();
        (0..4).for_each(|s| fair.add(s));
        fair.settle(&mut changed);
        assert_eq!(changed.len(), 4);
        let third = 1.0 / 3.0;
        assert!((fair.rate(1) - third).abs() < 1e-9 && (fair.rate(0) - 2.0 * third).abs() < 1e-9);
        fair.remove(3);
        fair.settle(&mut changed);
        assert_eq!((fair.rate(0), fair.rate(1), fair.rate(2)), (0.5, 0.5, 0.5));
    }

    proptest! {
        #[test]
        fn rates_are_those_of_progressive_filling(
            capacities in prop::collection::vec(1u32..20, 1..12),
            raw in prop::collection::vec((prop::collection::vec(0u32..12, 1..5), any::<bool>()), 1..20),
        ) {
            let count = capacities.len() as u32;
            let capacities: Vec<f64> = capacities.iter().map(|&c| 1.0 / f64::from(c)).collect();
            let mut ways: Vec<Vec<u32>> = raw
                .iter()
                .map(|(way, _)| way.iter().map(|r| r % count).collect::<Vec<_>>())
                .collect();
            // A stream meets a resource twice at most where it both starts and ends there.
            for way in &mut ways {
                way.sort_unstable();
                if way.len() != 2 {
                    way.dedup();
                }
            }
            let mut fair = Fair::new(capacities.clone(), lists(&ways));
            let mut changed = Vec::new();
            (0..ways.len() as u32).for_each(|s| fair.add(s));
            fair.settle(&mut changed);
            let expected = filled(&capacities, &ways);
            for (s, rate) in expected.iter().enumerate() {
                prop_assert!((fair.rate(s as u32) - rate).abs() <= 1e-6 * rate);
            }
            // Some go; what stays must be as if they had never been.
            for (s, (_, stays)) in raw.iter().enumerate() {
                if !stays {
                    fair.remove(s as u32);
                }
            }
            fair.settle(&mut changed);
            let stay: Vec<usize> = (0..ways.len()).filter(|&s| raw[s].1).collect();
            let left: Vec<Vec<u32>> = stay.iter().map(|&s| ways[s].clone()).collect();
            for (&s, rate) in stay.iter().zip(filled(&capacities, &left)) {
                prop_assert!((fair.rate(s as u32) - rate).abs() <= 1e-6 * rate);
            }
        }
    }
}
