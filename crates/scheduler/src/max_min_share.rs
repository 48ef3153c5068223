//! Max-min fair rates of streams that share links and agents, updated as streams start and end.
//!
//! A *resource* (a link, or a port of an agent) has a capacity in words per clock. Rates are
//! max-min fair if no rate can be raised without lowering a rate that is not higher. Round robin
//! among channels with a word waiting approximates this, because a channel that is limited
//! elsewhere passes its turns on (machine model, rule 3).
//!
//! Every resource has a *level*: the rate of the streams for which it is the bottleneck; infinite
//! if it is the bottleneck of none. The rate of a stream is the least level along its path, and
//!
//! ```text
//! sum over the users of min(level, least level on the rest of the user's path) = capacity
//! ```
//!
//! These equations have exactly one solution, the max-min fair one: the most crowded resource gets
//! capacity / users whatever the others do, which settles the rates of its users, and so on
//! upwards. For the same reason it can be found by solving one equation at a time, in any fair
//! order and from any start. So when a stream starts or ends, only its own resources are solved
//! again, then those that see a change, until nothing changes: the work is in proportion to what
//! the event affects.
//!
//! A stream that uses a resource twice (a connection from a cell to itself with half duplex) counts
//! as two users.
//!
//! In a round, in which each resource that waits is solved once, no level falls below the least one
//! that is not final yet, and in the next round this one becomes final. So two rounds for each
//! resource are enough. A long chain of resources, each of which limits the next one, can need half
//! a round for each.
//!
//! Levels are floating-point numbers; a relative change below [`TOLERANCE`] is ignored. If rounding
//! errors cause [`SPARE_ROUNDS`] rounds more than are needed, an event is abandoned; the levels then
//! stand until the next event.

use std::collections::VecDeque;

use conset_ir::Lists;
use conset_ir::convert::{index, to_f64, to_u32};

/// Relative change of a level that is ignored.
const TOLERANCE: f64 = 1e-9;

/// Rounds beyond those that exact levels need, after which an event is abandoned.
const SPARE_ROUNDS: usize = 64;

/// The resources and streams of one phase, each numbered from 0.
#[derive(Debug)]
pub(crate) struct MaxMinShare {
    capacities: Vec<f64>,
    /// The resources of each stream.
    paths: Lists,
    levels: Vec<f64>,
    /// The active streams at each resource.
    users: Vec<Vec<u32>>,
    bottlenecks: Vec<Bottleneck>,
    queue: VecDeque<u32>,
    is_queued: Vec<bool>,
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    scratch: Vec<f64>,
}

/// The bottleneck of a stream: the resource of least level on its path, and the least level of the
/// others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bottleneck {
    resource: u32,
    least: f64,
    second: f64,
}

impl MaxMinShare {
    /// No stream is active. Streams are numbered as in `paths`.
    pub(crate) fn new(capacities: Vec<f64>, paths: Lists) -> Self {
        let (resources, streams) = (capacities.len(), index(paths.rows()));
        Self {
            levels: vec![f64::INFINITY; resources],
            users: vec![Vec::new(); resources],
            queue: VecDeque::new(),
            is_queued: vec![false; resources],
            bottlenecks: vec![Bottleneck::NONE; streams],
            changed: Vec::new(),
            is_changed: vec![false; streams],
            scratch: Vec::new(),
            capacities,
            paths,
        }
    }

    /// Replaces the streams while none is active: the same resources serve another phase.
    pub(crate) fn restart(&mut self, paths: Lists) {
        debug_assert!(self.users.iter().all(Vec::is_empty), "a phase is over");
        let streams = index(paths.rows());
        self.paths = paths;
        self.bottlenecks.clear();
        self.bottlenecks.resize(streams, Bottleneck::NONE);
        self.is_changed.clear();
        self.is_changed.resize(streams, false);
        // Left over from the last events: no stream uses these resources.
        for resource in self.queue.drain(..) {
            self.is_queued[index(resource)] = false;
            self.levels[index(resource)] = f64::INFINITY;
        }
        self.changed.clear();
    }

    /// Makes a stream active. Rates are valid again after [`MaxMinShare::settle`].
    pub(crate) fn add(&mut self, stream: u32) {
        for i in 0..self.paths.of(stream).len() {
            let resource = self.paths.of(stream)[i];
            self.users[index(resource)].push(stream);
            self.enqueue(resource);
        }
        self.bottlenecks[index(stream)] = self.bottleneck(stream);
        self.mark_changed(stream);
    }

    /// Ends an active stream.
    pub(crate) fn remove(&mut self, stream: u32) {
        for i in 0..self.paths.of(stream).len() {
            let resource = self.paths.of(stream)[i];
            let users = &mut self.users[index(resource)];
            if let Some(place) = users.iter().position(|&user| user == stream) {
                users.swap_remove(place);
            }
            self.enqueue(resource);
        }
    }

    /// The number of active streams at a resource.
    pub(crate) fn user_count(&self, resource: u32) -> u32 {
        to_u32(self.users[index(resource)].len())
    }

    /// The resources of a stream.
    pub(crate) fn path(&self, stream: u32) -> &[u32] {
        self.paths.of(stream)
    }

    /// The rate of an active stream, in words per clock.
    pub(crate) fn rate(&self, stream: u32) -> f64 {
        self.bottlenecks[index(stream)].least
    }

    /// Makes all rates fair again and returns the active streams whose rate may have changed.
    pub(crate) fn settle(&mut self, changed: &mut Vec<u32>) {
        let resources = self.capacities.len();
        let mut budget = resources * (2 * resources + SPARE_ROUNDS);
        while let Some(resource) = self.queue.pop_front() {
            self.is_queued[index(resource)] = false;
            if budget > 0 {
                budget -= 1;
                self.solve(resource);
            }
        }
        changed.clear();
        changed.append(&mut self.changed);
        for &stream in changed.iter() {
            self.is_changed[index(stream)] = false;
        }
    }

    /// Recomputes the level of a resource, and informs its users if it changed.
    fn solve(&mut self, resource: u32) {
        let level = self.level(resource);
        let old = std::mem::replace(&mut self.levels[index(resource)], level);
        if old == level || (level.is_finite() && (level - old).abs() <= TOLERANCE * level) {
            return;
        }
        for i in 0..self.users[index(resource)].len() {
            let stream = self.users[index(resource)][i];
            let before = self.bottlenecks[index(stream)];
            let after = self.bottleneck(stream);
            if before == after {
                continue;
            }
            self.bottlenecks[index(stream)] = after;
            if before.least != after.least {
                self.mark_changed(stream);
            }
            for j in 0..self.paths.of(stream).len() {
                let other = self.paths.of(stream)[j];
                if other != resource && before.without(other) != after.without(other) {
                    self.enqueue(other);
                }
            }
        }
    }

    /// Solves the equation of one resource.
    fn level(&mut self, resource: u32) -> f64 {
        let other_rates = &mut self.scratch;
        other_rates.clear();
        let users = &self.users[index(resource)];
        other_rates.extend(users.iter().map(|&s| self.bottlenecks[index(s)].without(resource)));
        other_rates.sort_unstable_by(f64::total_cmp);
        let mut left = self.capacities[index(resource)];
        for (served, &rate) in other_rates.iter().enumerate() {
            let share = left / to_f64(other_rates.len() - served);
            if rate > share * (1.0 + TOLERANCE) {
                return share;
            }
            left -= rate;
        }
        f64::INFINITY
    }

    fn bottleneck(&self, stream: u32) -> Bottleneck {
        let mut bottleneck = Bottleneck::NONE;
        for &resource in self.paths.of(stream) {
            let level = self.levels[index(resource)];
            if level < bottleneck.least {
                bottleneck = Bottleneck { resource, least: level, second: bottleneck.least };
            } else if resource != bottleneck.resource && level < bottleneck.second {
                bottleneck.second = level;
            }
        }
        bottleneck
    }

    fn enqueue(&mut self, resource: u32) {
        if !std::mem::replace(&mut self.is_queued[index(resource)], true) {
            self.queue.push_back(resource);
        }
    }

    fn mark_changed(&mut self, stream: u32) {
        if !std::mem::replace(&mut self.is_changed[index(stream)], true) {
            self.changed.push(stream);
        }
    }
}

impl Bottleneck {
    const NONE: Self = Self { resource: 0, least: f64::INFINITY, second: f64::INFINITY };

    /// The least level on the path if one resource is left out.
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
    fn progressive_filling(capacities: &[f64], paths: &[Vec<u32>]) -> Vec<f64> {
        let mut rates = vec![f64::NAN; paths.len()];
        while rates.iter().any(|r| r.is_nan()) {
            let (mut share, mut full) = (f64::INFINITY, 0);
            for (resource, &capacity) in capacities.iter().enumerate() {
                let (mut left, mut growing) = (capacity, 0.0);
                for (path, rate) in paths.iter().zip(&rates) {
                    let times = path.iter().filter(|&&r| r as usize == resource).count() as f64;
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
            for (path, rate) in paths.iter().zip(&mut rates) {
                if rate.is_nan() && path.contains(&full) {
                    *rate = share;
                }
            }
        }
        rates
    }

    fn lists(paths: &[Vec<u32>]) -> Lists {
        let pairs = paths.iter().enumerate();
        Lists::new(
            paths.len(),
            pairs.flat_map(|(s, path)| path.iter().map(move |&r| (s as u32, r))),
        )
    }

    #[test]
    fn streams_with_a_bottleneck_elsewhere_leave_capacity() {
        // Two streams at resource 0; one of them also uses resource 1, which three share. The
        // second machine is one of the slowest.
        for capacity in [1.0, 1e-9] {
            let paths = lists(&[vec![0], vec![0, 1], vec![1], vec![1]]);
            let mut shares = MaxMinShare::new(vec![capacity; 2], paths);
            let mut changed = Vec::new();
            (0..4).for_each(|s| shares.add(s));
            shares.settle(&mut changed);
            assert_eq!(changed.len(), 4);
            let is = |rate: f64, expected: f64| (rate / capacity - expected).abs() < 1e-9;
            let third = 1.0 / 3.0;
            assert!(is(shares.rate(1), third) && is(shares.rate(0), 2.0 * third));
            shares.remove(3);
            shares.settle(&mut changed);
            assert!((0..3).all(|stream| is(shares.rate(stream), 0.5)));
        }
    }

    #[test]
    fn one_of_two_equal_bottlenecks_passes_on_what_it_cannot_use() {
        // Stream 0 has rate 1 at both of its resources. When stream 2 ends, the second one still
        // limits it, so stream 1 has the rest of the first one.
        let paths = lists(&[vec![0, 1], vec![0], vec![0], vec![1]]);
        let mut shares = MaxMinShare::new(vec![3.0, 2.0], paths);
        let mut changed = Vec::new();
        (0..4).for_each(|s| shares.add(s));
        shares.settle(&mut changed);
        assert_eq!([0, 1, 2, 3].map(|s| shares.rate(s)), [1.0; 4]);
        shares.remove(2);
        shares.settle(&mut changed);
        assert_eq!([0, 1, 3].map(|s| shares.rate(s)), [1.0, 2.0, 1.0]);
    }

    #[test]
    fn rates_along_a_long_chain_depend_on_its_first_resource() {
        // Stream i uses resources i and i + 1. Each resource knows its level only when the one
        // before it does, and the last ones are solved first.
        let streams = 200;
        let paths: Vec<Vec<u32>> = (0..streams).map(|i| vec![i, i + 1]).collect();
        let capacities = (0..=streams).map(|i| f64::from(2 * i + 1)).collect();
        let mut shares = MaxMinShare::new(capacities, lists(&paths));
        (0..streams).rev().for_each(|s| shares.add(s));
        shares.settle(&mut Vec::new());
        for s in 0..streams {
            assert!((shares.rate(s) - f64::from(s + 1)).abs() < 1e-6, "{s} {}", shares.rate(s));
        }
    }

    proptest! {
        #[test]
        fn rates_are_those_of_progressive_filling(
            capacities in prop::collection::vec(1u32..20, 1..12),
            raw in prop::collection::vec((prop::collection::vec(0u32..12, 1..5), any::<bool>()), 1..20),
        ) {
            let count = capacities.len() as u32;
            let capacities: Vec<f64> = capacities.iter().map(|&c| 1.0 / f64::from(c)).collect();
            let mut paths: Vec<Vec<u32>> = raw
                .iter()
                .map(|(path, _)| path.iter().map(|r| r % count).collect::<Vec<_>>())
                .collect();
            // A stream meets a resource twice at most where it both starts and ends there.
            for path in &mut paths {
                path.sort_unstable();
                if path.len() != 2 {
                    path.dedup();
                }
            }
            let mut shares = MaxMinShare::new(capacities.clone(), lists(&paths));
            let mut changed = Vec::new();
            (0..paths.len() as u32).for_each(|s| shares.add(s));
            shares.settle(&mut changed);
            let expected = progressive_filling(&capacities, &paths);
            for (s, rate) in expected.iter().enumerate() {
                prop_assert!((shares.rate(s as u32) - rate).abs() <= 1e-6 * rate);
            }
            // Some streams end; the others must be as if those had never started.
            for (s, (_, stays)) in raw.iter().enumerate() {
                if !stays {
                    shares.remove(s as u32);
                }
            }
            shares.settle(&mut changed);
            let stay: Vec<usize> = (0..paths.len()).filter(|&s| raw[s].1).collect();
            let left: Vec<Vec<u32>> = stay.iter().map(|&s| paths[s].clone()).collect();
            for (&s, rate) in stay.iter().zip(progressive_filling(&capacities, &left)) {
                prop_assert!((shares.rate(s as u32) - rate).abs() <= 1e-6 * rate);
            }
        }
    }
}
