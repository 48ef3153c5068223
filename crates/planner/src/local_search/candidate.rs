//! The plan that the local search changes, with commit and rollback.
//!
//! A candidate holds the streams of every phase in the order in which agents open them, the
//! channels they take and the words on every link. A change modifies a few phases, whose previous
//! state is kept until the change is committed or rolled back. Every change preserves the
//! invariants of a plan: the channels of every cell, all words of every connection, at least
//! [`CandidatePlan::least`] words in a stream, and the order of the set, by phases and by the order
//! of streams within a phase.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionId, ConnectionSet, Machine, Timetable};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::path_search::{CLOSED, PathSearch, UNIT};
use crate::problem::ports;
use conset_partition_route::network::{Distances, Network};

/// A route through the network.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The cells, source first.
    pub(super) cells: Vec<u32>,
    /// The edges between them.
    pub(super) edges: Vec<u32>,
}

/// Words of a connection that are sent over one route.
#[derive(Clone, Debug)]
pub(super) struct CandidateStream {
    pub(super) connection: u32,
    pub(super) words: u32,
    pub(super) route: Arc<Route>,
}

/// A phase: its streams in order, and the resources that they use.
#[derive(Clone, Debug)]
pub(super) struct CandidatePhase {
    pub(super) streams: Vec<CandidateStream>,
    /// The end of each stream in clocks, from the last run of the phase.
    pub(super) ends: Vec<f64>,
    /// Channels taken on each cell.
    taken: Vec<u16>,
    /// Words on each edge.
    load: Vec<u64>,
}

/// The phases of a plan, with the previous state of those that the current change modifies.
pub(super) struct CandidatePlan<'a> {
    set: &'a ConnectionSet,
    network: &'a Network,
    channels: u16,
    /// The minimum number of words of a stream.
    least: u32,
    ports: Vec<[u32; 2]>,
    pub(super) phases: Vec<CandidatePhase>,
    /// The modified phases in their previous state.
    before: Vec<(usize, CandidatePhase)>,
    /// The predecessors and the successors of each connection.
    order: Option<[Vec<Vec<u32>>; 2]>,
    /// The first and the last stream of each connection.
    spans: Vec<Option<(StreamPosition, StreamPosition)>>,
    distances: Distances,
    path_search: PathSearch,
    noise: Vec<u32>,
}

/// A phase, and a row in it.
type StreamPosition = (u32, u32);

/// The number of noise levels of link costs; each doubles the noise.
const NOISES: u32 = 5;
/// The number of passes that balance loads, and the maximum number of doublings of a link's cost.
const EVENED: usize = 24;
const STEEP: u32 = 16;
/// The number of random streams among which the latest is chosen.
const LATE: usize = 4;

impl<'a> CandidatePlan<'a> {
    /// The streams of a timetable, in the order of their starts.
    pub(super) fn new(
        machine: &Machine,
        set: &'a ConnectionSet,
        network: &'a Network,
        timetable: &Timetable,
    ) -> Self {
        let parameters = machine.parameters();
        let targets = set.connections().iter().map(|c| c.target.0);
        let order = (!set.order().is_empty()).then(|| {
            let mut both = [vec![Vec::new(); set.len()], vec![Vec::new(); set.len()]];
            for &(a, b) in set.order() {
                both[0][b.index()].push(a.0);
                both[1][a.index()].push(b.0);
            }
            both
        });
        let least = (parameters.switch_clocks() + u64::from(parameters.stream_setup))
            / parameters.word_clocks()
            / LEAST;
        let mut this = Self {
            set,
            network,
            channels: u16::try_from(parameters.channels_per_cell).unwrap_or(u16::MAX),
            least: to_u32(least.clamp(1, 1 << 20)),
            ports: ports(machine, set),
            phases: Vec::new(),
            before: Vec::new(),
            spans: vec![None; if order.is_some() { set.len() } else { 0 }],
            order,
            distances: Distances::new(network, targets),
            path_search: PathSearch::new(network.cell_count()),
            noise: vec![0; network.outgoing().edge_count()],
        };
        let times = timetable.phases();
        for ((_, routes), times) in timetable.routing().iter().zip(times) {
            let mut rows: Vec<usize> = (0..routes.len()).collect();
            rows.sort_by_key(|&row| (times.slots[row].start, routes.get(row).connection, row));
            let mut phase = CandidatePhase::new(network);
            for row in rows {
                let route = routes.get(row);
                let cells = route.cells.iter().map(|cell| cell.0).collect();
                let route_of = this.route(cells);
                let connection = route.connection.0;
                phase.insert(
                    phase.streams.len(),
                    CandidateStream { connection, words: route.words, route: route_of },
                );
            }
            this.phases.push(phase);
        }
        this
    }

    fn route(&self, cells: Vec<u32>) -> Arc<Route> {
        let edge = |pair: &[u32]| to_u32(self.network.outgoing().edge(pair[0], pair[1]));
        let edges = cells.windows(2).map(edge).collect();
        Arc::new(Route { cells, edges })
    }

    /// The phases that the last change modified.
    pub(super) fn touched(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.before.iter().map(|before| before.0)
    }

    /// Undoes the last change.
    pub(super) fn rollback(&mut self) {
        for (row, phase) in self.before.drain(..) {
            self.phases[row] = phase;
        }
    }

    /// Makes the last change permanent.
    pub(super) fn commit(&mut self) {
        self.before.clear();
    }

    fn touch(&mut self, row: usize) {
        if self.before.iter().all(|before| before.0 != row) {
            self.before.push((row, self.phases[row].clone()));
        }
    }

    /// Makes a random change and returns whether it succeeded. A failed change is rolled back.
    pub(super) fn change(&mut self, rng: &mut ChaCha8Rng) -> bool {
        self.before.clear();
        let (phase, row) = self.pick(rng);
        let done = match rng.random_range(0..13u32) {
            0..4 => self.reroute(phase, row, rng),
            4..6 => self.swap(phase, row, rng),
            6..8 => self.split(phase, row, rng),
            8 => self.merge(phase, row, rng),
            9 => self.shift(phase, row, rng),
            10..12 => self.relocate(phase, row, rng),
            _ => rng.random_range(0..4u32) == 0 && self.merge_phases(rng),
        };
        if !done {
            self.rollback();
        }
        done
    }

    /// A random stream, or one that ends late in its phase.
    fn pick(&self, rng: &mut ChaCha8Rng) -> (usize, usize) {
        let filled = |at: &usize| !self.phases[*at].streams.is_empty();
        let any = rng.random_range(0..self.phases.len());
        let phase = (0..self.phases.len()).map(|k| (any + k) % self.phases.len()).find(filled);
        let phase = phase.expect("a set that is not empty");
        let CandidatePhase { streams, ends, .. } = &self.phases[phase];
        let mut row = rng.random_range(0..streams.len());
        if rng.random_range(0..2u32) == 0 {
            for _ in 0..LATE {
                let other = rng.random_range(0..streams.len());
                row = if ends[other] > ends[row] { other } else { row };
            }
        }
        (phase, row)
    }

    /// Another stream of the same connection, if there is one.
    fn sibling(&self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> Option<(usize, usize)> {
        let x = self.phases[phase].streams[row].connection;
        let all = self.phases.iter().enumerate().flat_map(|(p, phase)| {
            let rows = phase.streams.iter().enumerate();
            rows.filter(|(_, stream)| stream.connection == x).map(move |(r, _)| (p, r))
        });
        let others: Vec<(usize, usize)> = all.filter(|&at| at != (phase, row)).collect();
        (!others.is_empty()).then(|| others[rng.random_range(0..others.len())])
    }

    /// Balances the loads of links in each phase, regardless of time: rips up and reroutes streams
    /// one by one in several passes, and keeps the best.
    pub(super) fn even_out(&mut self, rng: &mut ChaCha8Rng) {
        for row in 0..self.phases.len() {
            let mut best = self.phases[row].clone();
            for _ in 0..EVENED {
                for _ in 0..best.streams.len() {
                    let any = rng.random_range(0..best.streams.len());
                    let stream = self.phases[row].remove(any);
                    let price = |load: u64, words: u64| {
                        (UNIT / 4) << (4 * load / words).min(u64::from(STEEP))
                    };
                    let found = self.find_by(row, &stream, UNIT, rng, price);
                    let route = found.unwrap_or_else(|| stream.route.clone());
                    self.phases[row].insert(any, CandidateStream { route, ..stream });
                }
                if self.phases[row].busiest() < best.busiest() {
                    best.clone_from(&self.phases[row]);
                }
            }
            self.phases[row] = best;
        }
    }

    /// Reroutes a stream in its phase.
    fn reroute(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        self.touch(phase);
        let stream = self.phases[phase].remove(row);
        let Some(route) = self.find(phase, &stream, rng) else { return false };
        let other = route != stream.route;
        self.phases[phase].insert(row, CandidateStream { route, ..stream });
        other
    }

    /// Swaps two streams of an agent.
    fn swap(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let streams = &self.phases[phase].streams;
        let [a, b] = self.ports[index(streams[row].connection)];
        let meets = |&other: &usize| {
            let ports = self.ports[index(streams[other].connection)];
            other != row && (ports.contains(&a) || ports.contains(&b))
        };
        let others: Vec<usize> = (0..streams.len()).filter(meets).collect();
        if others.is_empty() {
            return false;
        }
        let other = others[rng.random_range(0..others.len())];
        let (one, two) = (streams[row].connection, streams[other].connection);
        self.touch(phase);
        let phase = &mut self.phases[phase];
        phase.streams.swap(row, other);
        phase.ends.swap(row, other);
        self.keeps_order(one) && self.keeps_order(two)
    }

    /// Splits a stream; the new part stays in the phase or goes to another one.
    fn split(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let stream = &self.phases[phase].streams[row];
        if stream.words < 2 * self.least {
            return false;
        }
        let words = rng.random_range(self.least..=stream.words - self.least);
        let part = CandidateStream { words, ..stream.clone() };
        let to = if rng.random_range(0..2u32) == 0 {
            phase
        } else {
            rng.random_range(0..self.phases.len())
        };
        self.touch(phase);
        self.touch(to);
        self.phases[phase].give(row, words, false);
        let Some(route) = self.find(to, &part, rng) else { return false };
        if to == phase && route == part.route {
            return false;
        }
        let place = match to == phase {
            true => row + rng.random_range(0..2usize),
            false => rng.random_range(0..=self.phases[to].streams.len()),
        };
        self.phases[to].insert(place, CandidateStream { route, ..part });
        self.keeps_order(self.phases[to].streams[place].connection)
    }

    /// Merges a stream with another part of its connection.
    fn merge(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let Some((to, other)) = self.sibling(phase, row, rng) else { return false };
        self.touch(phase);
        self.touch(to);
        let words = self.phases[phase].streams[row].words;
        self.phases[to].give(other, words, true);
        self.phases[phase].remove(row);
        true
    }

    /// Transfers words to another part of the connection.
    fn shift(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let Some((to, other)) = self.sibling(phase, row, rng) else { return false };
        let words = self.phases[phase].streams[row].words;
        if words <= self.least {
            return false;
        }
        let most = (words - self.least).min(words / 2).max(1);
        let words = rng.random_range(1..=most);
        self.touch(phase);
        self.touch(to);
        self.phases[phase].give(row, words, false);
        self.phases[to].give(other, words, true);
        true
    }

    /// Moves a stream to another phase, or to another place in its own.
    fn relocate(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let to = rng.random_range(0..self.phases.len());
        self.touch(phase);
        let stream = self.phases[phase].remove(row);
        self.put(to, &stream, rng) && self.keeps_order(stream.connection)
    }

    /// Removes a phase: appends its streams to another phase. Streams without channels there take
    /// another route, or go to a third phase.
    fn merge_phases(&mut self, rng: &mut ChaCha8Rng) -> bool {
        let filled = |row: &usize| !self.phases[*row].streams.is_empty();
        let all: Vec<usize> = (0..self.phases.len()).filter(filled).collect();
        if all.len() < 2 {
            return false;
        }
        let from = rng.random_range(0..all.len());
        let to = (from + rng.random_range(1..all.len())) % all.len();
        let (from, to) = (all[from], all[to]);
        self.touch(from);
        self.touch(to);
        let streams = self.phases[from].clear();
        for stream in &streams {
            let row = self.phases[to].streams.len();
            let has_channel = |&cell: &u32| self.phases[to].taken[index(cell)] < self.channels;
            if stream.route.cells.iter().all(has_channel) {
                self.phases[to].insert(row, stream.clone());
                continue;
            }
            if let Some(route) = self.find(to, stream, rng) {
                self.phases[to].insert(row, CandidateStream { route, ..stream.clone() });
                continue;
            }
            let any = rng.random_range(0..all.len());
            let mut others = (0..all.len()).map(|k| all[(any + k) % all.len()]);
            let placed =
                others.any(|other| other != from && other != to && self.put(other, stream, rng));
            if !placed {
                return false;
            }
        }
        self.order.is_none() || streams.iter().all(|stream| self.keeps_order(stream.connection))
    }

    /// Inserts a stream at a random place of a phase if there is a route with free channels; returns
    /// whether there is one.
    fn put(&mut self, to: usize, stream: &CandidateStream, rng: &mut ChaCha8Rng) -> bool {
        let Some(route) = self.find(to, stream, rng) else { return false };
        self.touch(to);
        let place = rng.random_range(0..=self.phases[to].streams.len());
        self.phases[to].insert(place, CandidateStream { route, ..stream.clone() });
        true
    }

    /// A cheap route over links with little load, with random noise. `None` if cells have no free
    /// channels.
    fn find(
        &mut self,
        phase: usize,
        stream: &CandidateStream,
        rng: &mut ChaCha8Rng,
    ) -> Option<Arc<Route>> {
        let noise = UNIT << rng.random_range(0..NOISES);
        self.find_by(phase, stream, noise, rng, |load, words| {
            // A link that carries as much as the stream has costs half a hop more.
            let full = to_u32((load * 16 / words).min(256));
            UNIT * full * full / 512
        })
    }

    /// A cheapest route. A link costs a hop, `price` of its load and the stream's words, and noise.
    fn find_by(
        &mut self,
        phase: usize,
        stream: &CandidateStream,
        noise: u32,
        rng: &mut ChaCha8Rng,
        price: impl Fn(u64, u64) -> u32,
    ) -> Option<Arc<Route>> {
        let c = self.set.get(ConnectionId(stream.connection));
        let ends = (c.source.0, c.target.0);
        self.distances.aim(self.network, ends.0, ends.1);
        let CandidatePhase { taken, load, .. } = &self.phases[phase];
        let words = u64::from(stream.words.max(1));
        self.noise.fill_with(|| rng.random_range(0..noise));
        let channels = self.channels;
        let cell = |cell: u32| if taken[index(cell)] < channels { UNIT } else { CLOSED };
        let link = |edge: usize| price(load[edge], words) + self.noise[edge];
        let found = self.path_search.find(self.network, &self.distances, ends, cell, link);
        if !found {
            return None;
        }
        if self.path_search.path == stream.route.cells {
            return Some(stream.route.clone());
        }
        Some(self.route(self.path_search.path.clone()))
    }

    /// Whether a connection's streams come after its predecessors and before its successors.
    fn keeps_order(&mut self, x: u32) -> bool {
        let Some([before, after]) = &self.order else { return true };
        self.spans.fill(None);
        for (row, phase) in self.phases.iter().enumerate() {
            for (place, stream) in phase.streams.iter().enumerate() {
                let at = (to_u32(row), to_u32(place));
                let span = &mut self.spans[index(stream.connection)];
                *span = Some((span.map_or(at, |span| span.0), at));
            }
        }
        let span = |y: u32| self.spans[index(y)];
        let Some((first, last)) = span(x) else { return true };
        let early = |&y: &u32| span(y).is_none_or(|span| span.1 < first);
        let late = |&y: &u32| span(y).is_none_or(|span| span.0 > last);
        before[index(x)].iter().all(early) && after[index(x)].iter().all(late)
    }
}

/// The least duration of a stream, as the divisor of a context switch.
const LEAST: u64 = 4;

impl CandidatePhase {
    fn new(network: &Network) -> Self {
        Self {
            streams: Vec::new(),
            ends: Vec::new(),
            taken: vec![0; network.cell_count()],
            load: vec![0; network.outgoing().edge_count()],
        }
    }

    fn insert(&mut self, row: usize, stream: CandidateStream) {
        for &cell in &stream.route.cells {
            self.taken[index(cell)] += 1;
        }
        for &edge in &stream.route.edges {
            self.load[index(edge)] += u64::from(stream.words);
        }
        self.streams.insert(row, stream);
        self.ends.insert(row, 0.0);
    }

    fn remove(&mut self, row: usize) -> CandidateStream {
        let stream = self.streams.remove(row);
        self.ends.remove(row);
        for &cell in &stream.route.cells {
            self.taken[index(cell)] -= 1;
        }
        for &edge in &stream.route.edges {
            self.load[index(edge)] -= u64::from(stream.words);
        }
        stream
    }

    /// Removes all streams.
    fn clear(&mut self) -> Vec<CandidateStream> {
        self.taken.fill(0);
        self.load.fill(0);
        self.ends.clear();
        std::mem::take(&mut self.streams)
    }

    /// Adds words to a stream, or subtracts them.
    fn give(&mut self, row: usize, words: u32, more: bool) {
        let stream = &mut self.streams[row];
        let change = |old: u64| if more { old + u64::from(words) } else { old - u64::from(words) };
        stream.words = to_u32(change(u64::from(stream.words)));
        for &edge in &stream.route.edges {
            let load = &mut self.load[index(edge)];
            *load = change(*load);
        }
    }

    /// The greatest load of a link, and the number of links with that load.
    fn busiest(&self) -> (u64, usize) {
        let most = self.load.iter().copied().max().unwrap_or(0);
        (most, self.load.iter().filter(|&&load| load == most).count())
    }

    /// The end of the last stream.
    pub(super) fn length(&self) -> f64 {
        self.ends.iter().copied().fold(0.0, f64::max)
    }
}
