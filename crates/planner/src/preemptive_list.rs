//! Preemptive list scheduling: phases are time windows, and connections are cut at their end.
//!
//! Rounds of unequal words waste time, because every agent waits for the longest connection. Here a
//! phase is a window of a given length. At its beginning, and whenever streams end, connections
//! between idle agents start, those whose agents have the most work left first, on a shortest route
//! whose links are free at that moment and whose cells have free channels. A connection that would
//! outlast the window is cut, and the rest of its words goes into a later window. So all agents can
//! be busy until the end.
//!
//! On the machine only its agents delay a stream, so a stream cannot be planned to wait for a link.
//! A connection therefore starts at the moment at which the second of its agents becomes idle, or
//! not until one of them has completed another stream. The machine then follows the plan, and no
//! two streams share a link beyond its capacity. The latency of words shifts times slightly, so a
//! link counts as busy for some time after its stream, except for streams that follow at the same
//! agent.
//!
//! Passes learn from each other: agents that finished late in the best pass are more urgent in the
//! next, urgencies are varied, and windows of several lengths are tried, from few phases to many.
//! The cost of a pass is the length of its windows plus their context switches. The best passes are
//! kept.
//!
//! Sets with an order or with required bandwidths or latencies are not supported.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use conset_ir::{ConnectionSet, Machine, StreamClocks};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::round_pathfinder::Routes;
use crate::problem::{capacities, ports};
use conset_partition_route::network::Network;

/// Words of a connection on a route, from a start in clocks after the beginning of its phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) connection: u32,
    pub(super) words: u32,
    pub(super) start: u64,
    pub(super) path: Vec<u32>,
}

/// The streams of each phase.
pub(super) type FragmentPhases = Vec<Vec<Fragment>>;

/// The least length of a fragment, as the divisor of a context switch.
const PART: u64 = 4;
/// A connection may exceed its window by this share of it (a divisor) instead of being cut.
const OVER: u64 = 32;
/// The guard time of links after a stream, in words; passes alternate between the two.
const GUARDS: [u64; 2] = [48, 0];
/// The number of window lengths tried.
const LENGTHS: u64 = 12;
/// The number of consecutive passes with one length.
const TURN: u64 = 4;
/// The number of passes after which the urgencies of agents are reset.
const FORGET: u64 = 16;
/// The maximum number of passes, and the number of plans kept for each guard time.
const PASSES: u64 = 1 << 10;
const KEPT: usize = 2;

/// Fills windows for about `steps` steps and returns the best plans. Returns none if the set is
/// empty or too large, or a connection has no route. `fewest` is the bound of the number of phases.
pub(super) fn fill(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    fewest: u32,
    steps: usize,
    seed: u64,
) -> Vec<FragmentPhases> {
    let Some(routes) = Routes::new(network, set).filter(|_| !set.is_empty()) else {
        return Vec::new();
    };
    let mut filler = Filler::new(machine, set, network, &routes);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut kept: [Vec<(u64, FragmentPhases)>; 2] = Default::default();
    let most = filler.load.iter().copied().max().unwrap_or(0).max(1);
    let fewest = u64::from(fewest.max(1));
    let mean = set.words() / to_u64(set.len()) * filler.word_clocks;
    // The numbers of windows that did best come again.
    let mut order: Vec<(u64, u64)> = (0..LENGTHS).map(|row| (0, row)).collect();
    for pass in 0..PASSES {
        let turn = pass / TURN;
        let row = if turn < LENGTHS {
            turn
        } else {
            order.sort_unstable();
            order[to_usize((turn - LENGTHS) % 3)].1
        };
        if pass % FORGET == 0 {
            filler.handicap.fill(0);
        }
        let windows = fewest + row * fewest.div_ceil(4);
        let spread = if pass % TURN == 0 { 0 } else { most / (4 << (pass % TURN)) };
        let draw = |_| if spread == 0 { 0 } else { rng.random_range(0..spread) };
        filler.noise = (0..set.len()).map(draw).collect();
        filler.far = [0, mean / 8, mean / 2, 2 * mean][to_usize((pass + turn) % TURN)];
        // Plans with and without a guard time are not compared.
        let kind = to_usize(pass / 2 % 2);
        filler.guard = GUARDS[kind];
        let phases = filler.pass(most.div_ceil(windows));
        let value = filler.clocks;
        let best = &mut order.iter_mut().find(|at| at.1 == row).expect("a row").0;
        *best = if *best == 0 { value } else { value.min(*best) };
        let kept = &mut kept[kind];
        let place = kept.partition_point(|kept| kept.0 <= value);
        if place < KEPT && kept.iter().all(|kept| kept.1 != phases) {
            kept.insert(place, (value, phases));
            kept.truncate(KEPT);
        }
        if filler.steps > steps {
            break;
        }
    }
    kept.into_iter().flatten().map(|kept| kept.1).collect()
}

struct Filler<'a> {
    network: &'a Network,
    routes: &'a Routes,
    set: &'a ConnectionSet,
    ports: Vec<[u32; 2]>,
    link_capacity: Vec<u16>,
    channels: u32,
    word_clocks: u64,
    /// What streams of each connection take.
    clocks_of: Vec<StreamClocks>,
    switch: u64,
    /// The least part, in words.
    least: u32,
    /// Connections of each port: row `s` is `ids[first[s]..first[s + 1]]`.
    first: Vec<u32>,
    ids: Vec<u32>,
    /// Clocks of each port in all.
    load: Vec<u64>,
    handicap: Vec<u64>,
    noise: Vec<u64>,
    /// What a hop adds to the urgency: far connections are the hardest to place.
    far: u64,
    guard: u64,
    // Of the pass.
    rest: Vec<u32>,
    left: Vec<u64>,
    carried: Vec<u32>,
    clocks: u64,
    steps: usize,
    // Of the window.
    busy: Vec<bool>,
    used: Vec<u16>,
    taken: Vec<u32>,
    /// For each edge, when its last stream ended, and the ports of that.
    ended: Vec<(u64, [u32; 2])>,
    /// The window in which each connection went last.
    went: Vec<u32>,
    /// Streams that run: when they end, and their place in the window.
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    // Scratch.
    cost: Vec<u32>,
    by: Vec<u32>,
}

impl<'a> Filler<'a> {
    fn new(
        machine: &Machine,
        set: &'a ConnectionSet,
        network: &'a Network,
        routes: &'a Routes,
    ) -> Self {
        let parameters = machine.parameters();
        let word_clocks = parameters.word_clocks();
        let clocks_of: Vec<StreamClocks> =
            set.connections().iter().map(|c| StreamClocks::new(parameters, c)).collect();
        let switch = parameters.switch_clocks();
        let ports = ports(machine, set);
        let count = 2 * network.cell_count();
        let mut load = vec![0u64; count];
        let mut first = vec![0u32; count + 1];
        for ((both, c), clocks) in ports.iter().zip(set.connections()).zip(&clocks_of) {
            for port in ends(both) {
                load[port] += clocks.of(c.words);
                first[port + 1] += 1;
            }
        }
        for port in 0..count {
            first[port + 1] += first[port];
        }
        let mut next = first.clone();
        let mut ids = vec![0; index(first[count])];
        for (x, both) in ports.iter().enumerate() {
            for port in ends(both) {
                ids[index(next[port])] = to_u32(x);
                next[port] += 1;
            }
        }
        let setup = u64::from(parameters.stream_setup);
        let least = to_u32(((switch + setup) / PART / word_clocks).clamp(1, 1 << 20));
        Self {
            network,
            routes,
            set,
            ports,
            link_capacity: capacities(machine, network),
            channels: parameters.channels_per_cell,
            word_clocks,
            clocks_of,
            switch,
            least,
            first,
            ids,
            handicap: vec![0; count],
            noise: Vec::new(),
            far: 0,
            guard: 0,
            rest: Vec::new(),
            left: Vec::new(),
            load,
            carried: vec![0; network.outgoing().edge_count()],
            clocks: 0,
            steps: 0,
            busy: vec![false; count],
            used: vec![0; network.outgoing().edge_count()],
            taken: vec![0; network.cell_count()],
            ended: vec![(0, [u32::MAX; 2]); network.outgoing().edge_count()],
            went: Vec::new(),
            ends: BinaryHeap::new(),
            cost: Vec::new(),
            by: Vec::new(),
        }
    }

    /// Puts all words into windows of about a length in clocks.
    fn pass(&mut self, length: u64) -> FragmentPhases {
        self.rest = self.set.connections().iter().map(|c| c.words).collect();
        self.left.clone_from(&self.load);
        self.went = vec![u32::MAX; self.set.len()];
        self.carried.fill(0);
        self.clocks = 0;
        let mut phases = Vec::new();
        let mut late = vec![0u64; self.load.len()];
        loop {
            let most = self.left.iter().copied().max().unwrap_or(0);
            if self.rest.iter().all(|&rest| rest == 0) {
                break;
            }
            // Windows of one length, the last not shorter than the others.
            let windows = ((most + length / 4) / length.max(1)).max(1);
            let streams = self.window(to_u32(phases.len()), most.div_ceil(windows).max(1));
            self.clocks += self.switch;
            let mut last = 0;
            for stream in &streams {
                let end = stream.start + self.clocks_of[index(stream.connection)].of(stream.words);
                last = end.max(last);
                for port in ends(&self.ports[index(stream.connection)]) {
                    late[port] = late[port].max(self.clocks + end);
                }
            }
            self.clocks += last;
            phases.push(streams);
        }
        let bound = self.load.iter().copied().max().unwrap_or(0);
        for (handicap, late) in self.handicap.iter_mut().zip(late) {
            *handicap += late.saturating_sub(bound + self.switch * to_u64(phases.len())) / 2;
        }
        phases
    }

    fn urgency(&self, x: u32) -> u64 {
        let of = |port: usize| self.left[port] + self.handicap[port];
        let both = self.ports[index(x)];
        let ports = ends(&both).map(of).max().unwrap_or(0);
        ports + self.noise[index(x)] + self.far * u64::from(self.routes.hops(index(x)))
    }

    /// Fills one window. At least one connection goes.
    fn window(&mut self, number: u32, length: u64) -> Vec<Fragment> {
        self.busy.fill(false);
        self.used.fill(0);
        self.taken.fill(0);
        self.ended.fill((0, [u32::MAX; 2]));
        let mut streams: Vec<Fragment> = Vec::new();
        let mut now = 0;
        let mut open: Vec<(Reverse<u64>, u32)> = (0..to_u32(self.set.len()))
            .filter(|&x| self.rest[index(x)] > 0)
            .map(|x| (Reverse(self.urgency(x)), x))
            .collect();
        loop {
            open.sort_unstable();
            for &(_, x) in &open {
                self.start(x, now, length, number, &mut streams);
            }
            open.clear();
            let Some(&Reverse((next, _))) = self.ends.peek() else { break };
            now = next;
            while let Some(&Reverse((end, row))) = self.ends.peek() {
                if end > now {
                    break;
                }
                self.ends.pop();
                let stream = &streams[index(row)];
                let both = self.ports[index(stream.connection)];
                for pair in stream.path.windows(2) {
                    let edge = self.network.outgoing().edge(pair[0], pair[1]);
                    self.used[edge] -= 1;
                    self.ended[edge] = (end, both);
                }
                for port in ends(&both) {
                    self.busy[port] = false;
                }
                if now >= length {
                    continue;
                }
                for port in ends(&both) {
                    let ids = &self.ids[index(self.first[port])..index(self.first[port + 1])];
                    let can = |&&x: &&u32| self.rest[index(x)] > 0 && self.went[index(x)] != number;
                    open.extend(ids.iter().filter(can).map(|&x| (Reverse(self.urgency(x)), x)));
                    self.steps += ids.len();
                }
            }
        }
        streams
    }

    /// Starts a connection if that is possible now.
    fn start(&mut self, x: u32, now: u64, length: u64, number: u32, streams: &mut Vec<Fragment>) {
        let row = index(x);
        let both = self.ports[row];
        if self.went[row] == number || ends(&both).any(|port| self.busy[port]) {
            return;
        }
        let words = self.words(row, length.saturating_sub(now), now == 0);
        if words == 0 || !self.find(row, now) {
            return;
        }
        let source = self.set.connections()[row].source.0;
        let mut path = vec![source];
        path.extend(self.by.iter().map(|&edge| self.network.outgoing().head(index(edge))));
        for &cell in &path {
            self.taken[index(cell)] += 1;
        }
        for &edge in &self.by {
            self.used[index(edge)] += 1;
            self.carried[index(edge)] += 1;
        }
        self.rest[row] -= words;
        self.went[row] = number;
        // What is left to do has one set-up in it, that of the last part.
        let stream = self.clocks_of[row];
        let clocks = stream.of(words);
        let done = if self.rest[row] == 0 { clocks } else { clocks - stream.setup };
        for port in ends(&both) {
            self.busy[port] = true;
            self.left[port] = self.left[port].saturating_sub(done);
        }
        self.ends.push(Reverse((now + clocks, to_u32(streams.len()))));
        streams.push(Fragment { connection: x, words, start: now, path });
    }

    /// How many of its words a connection sends in what is left of the window; 0 for none.
    fn words(&self, x: usize, left: u64, first: bool) -> u32 {
        let (rest, stream) = (self.rest[x], self.clocks_of[x]);
        if stream.of(rest) <= left + left / OVER {
            return rest;
        }
        let fit = stream.words_in(left).min(rest);
        // Neither part may be too short.
        if rest < 2 * self.least {
            return if first { rest } else { 0 };
        }
        let words = fit.min(rest - self.least);
        match words >= self.least {
            true => words,
            false if first => rest.min(self.least),
            false => 0,
        }
    }

    /// Whether an edge carries one more stream, and will when everything is a little late.
    fn is_free(&self, edge: usize, x: usize, now: u64) -> bool {
        let (end, [a, b]) = self.ended[edge];
        let [s, t] = self.ports[x];
        self.used[edge] < self.link_capacity[edge]
            && (end == 0 || end + self.guard * self.word_clocks <= now || a == s || b == t)
    }

    /// Finds the cheapest of a connection's shortest routes that are free; its edges in `by`.
    fn find(&mut self, x: usize, now: u64) -> bool {
        let hops = self.routes.of(x);
        let cells = self.routes.cells(x);
        self.by.clear();
        self.steps += hops.len() + 2;
        let full = |cell: u32| self.taken[index(cell)] >= self.channels;
        if full(self.set.connections()[x].source.0) {
            return false;
        }
        self.cost.clear();
        self.cost.resize(cells, u32::MAX);
        self.cost[0] = 0;
        for hop in hops {
            let from = self.cost[usize::from(hop.from)];
            let edge = index(hop.edge);
            if from == u32::MAX || !self.is_free(edge, x, now) {
                continue;
            }
            let cell = self.network.outgoing().head(edge);
            if full(cell) {
                continue;
            }
            let crowd = 4 * self.taken[index(cell)] / self.channels;
            let cost = from + 1 + self.carried[edge] + crowd * crowd;
            let to = &mut self.cost[usize::from(hop.to)];
            *to = cost.min(*to);
        }
        if self.cost[cells - 1] == u32::MAX {
            return false;
        }
        // Back from the target over hops that made the costs.
        let mut at = u16::try_from(cells - 1).unwrap_or(u16::MAX);
        for hop in hops.iter().rev().filter(|_| cells > 1) {
            let from = self.cost[usize::from(hop.from)];
            let edge = index(hop.edge);
            if hop.to != at || from == u32::MAX || !self.is_free(edge, x, now) {
                continue;
            }
            let cell = self.network.outgoing().head(edge);
            let crowd = 4 * self.taken[index(cell)] / self.channels;
            if from + 1 + self.carried[edge] + crowd * crowd == self.cost[usize::from(at)] {
                self.by.push(hop.edge);
                at = hop.from;
            }
        }
        self.by.reverse();
        true
    }
}

/// The ports of a connection, each once.
fn ends(both: &[u32; 2]) -> impl Iterator<Item = usize> + use<> {
    let [a, b] = both.map(index);
    std::iter::once(a).chain(Some(b).filter(|&b| b != a))
}

#[cfg(test)]
mod tests;
