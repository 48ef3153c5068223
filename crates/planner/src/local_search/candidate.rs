//! A plan that is changed a little at a time, and back.
//!
//! A candidate holds the streams of every phase in the order in which agents open them, with the
//! channels that they take and the words that links carry. A change touches a few phases, whose
//! state before is kept until it is known whether the change stays. Every change keeps what a plan
//! must keep: channels of every cell, all words of every connection, at least [`CandidatePlan::least`]
//! words a stream, and the set's order, by phases and in a phase by the order of streams.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionId, ConnectionSet, Machine, Timetable};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::path_search::{CLOSED, PathSearch, UNIT};
use crate::problem::ports;
use conset_partition_route::network::{Distances, Network};

/// A way through the network.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Its cells, source first.
    pub(super) cells: Vec<u32>,
    /// The edges between them.
    pub(super) edges: Vec<u32>,
}

/// Some words of a connection on a route.
#[derive(Clone, Debug)]
pub(super) struct CandidateStream {
    pub(super) connection: u32,
    pub(super) words: u32,
    pub(super) route: Arc<Route>,
}

/// A phase: its streams in their order, and what they take.
#[derive(Clone, Debug)]
pub(super) struct CandidatePhase {
    pub(super) streams: Vec<CandidateStream>,
    /// When each of them is over, in clocks; as it was when the phase was last run.
    pub(super) ends: Vec<f64>,
    /// Channels taken on each cell.
    taken: Vec<u16>,
    /// Words on each edge.
    load: Vec<u64>,
}

/// Phases under change.
pub(super) struct CandidatePlan<'a> {
    set: &'a ConnectionSet,
    network: &'a Network,
    channels: u16,
    /// The fewest words of a part.
    least: u32,
    ports: Vec<[u32; 2]>,
    pub(super) phases: Vec<CandidatePhase>,
    /// Phases that are touched, as they were.
    before: Vec<(usize, CandidatePhase)>,
    /// For each connection those that come before it, and after it.
    order: Option<[Vec<Vec<u32>>; 2]>,
    /// The first and the last stream of each connection, as phase and row.
    spans: Vec<Option<(StreamPosition, StreamPosition)>>,
    distances: Distances,
    path_search: PathSearch,
    noise: Vec<u32>,
}

/// A phase and a row.
type StreamPosition = (u32, u32);

/// How much of a link's load may be noise, as powers of two of a share.
const NOISES: u32 = 5;
/// Passes in which loads are evened out, and doublings of a link's price by its load at most.
const EVENED: usize = 24;
const STEEP: u32 = 16;
/// Ends of two streams that are compared to find one that is late.
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
            path_search: PathSearch::new(network.cells),
            noise: vec![0; network.next.edge_count()],
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
        let edge = |pair: &[u32]| to_u32(self.network.next.edge(pair[0], pair[1]));
        let edges = cells.windows(2).map(edge).collect();
        Arc::new(Route { cells, edges })
    }

    /// The phases that the last change touched.
    pub(super) fn touched(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.before.iter().map(|before| before.0)
    }

    /// Takes the last change back.
    pub(super) fn rollback(&mut self) {
        for (row, phase) in self.before.drain(..) {
            self.phases[row] = phase;
        }
    }

    /// Lets the last change stand.
    pub(super) fn commit(&mut self) {
        self.before.clear();
    }

    fn touch(&mut self, row: usize) {
        if self.before.iter().all(|before| before.0 != row) {
            self.before.push((row, self.phases[row].clone()));
        }
    }

    /// Changes something; whether anything was changed. What was not possible is taken back.
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
            _ => rng.random_range(0..4u32) == 0 && self.join(rng),
        };
        if !done {
            self.rollback();
        }
        done
    }

    /// A stream: any, or one that is late in its phase.
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

    /// Evens out what links carry in each phase, whatever that does to time: streams are ripped up
    /// one by one, in passes of which the best is kept.
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

    /// Another route in the same phase.
    fn reroute(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        self.touch(phase);
        let stream = self.phases[phase].remove(row);
        let Some(route) = self.find(phase, &stream, rng) else { return false };
        let other = route != stream.route;
        self.phases[phase].insert(row, CandidateStream { route, ..stream });
        other
    }

    /// Two streams of an agent change places.
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

    /// A part of a stream becomes a stream of its own, here or in another phase.
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

    /// A stream goes where another part of its connection goes.
    fn merge(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let Some((to, other)) = self.sibling(phase, row, rng) else { return false };
        self.touch(phase);
        self.touch(to);
        let words = self.phases[phase].streams[row].words;
        self.phases[to].give(other, words, true);
        self.phases[phase].remove(row);
        true
    }

    /// Some words go where another part of their connection goes.
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

    /// A stream goes to another phase, or to another place in the order of its own.
    fn relocate(&mut self, phase: usize, row: usize, rng: &mut ChaCha8Rng) -> bool {
        let to = rng.random_range(0..self.phases.len());
        self.touch(phase);
        let stream = self.phases[phase].remove(row);
        self.put(to, &stream, rng) && self.keeps_order(stream.connection)
    }

    /// A phase is done without: its streams come behind those of another, in their order. What
    /// has no channels there takes another route, or goes to another phase.
    fn join(&mut self, rng: &mut ChaCha8Rng) -> bool {
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

    /// Puts a stream at any place of a phase, on a route that fits; whether there is one.
    fn put(&mut self, to: usize, stream: &CandidateStream, rng: &mut ChaCha8Rng) -> bool {
        let Some(route) = self.find(to, stream, rng) else { return false };
        self.touch(to);
        let place = rng.random_range(0..=self.phases[to].streams.len());
        self.phases[to].insert(place, CandidateStream { route, ..stream.clone() });
        true
    }

    /// A cheap route over links that carry little, with some chance in it; none where cells have
    /// no channels left.
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

    /// A route over links that cost a hop, what is said of their load and the stream's words, and
    /// some noise.
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

    /// Whether a connection's streams come after all of those before it, and before the others.
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

/// The fewest words of a part, as a share of a switch.
const LEAST: u64 = 4;

impl CandidatePhase {
    fn new(network: &Network) -> Self {
        Self {
            streams: Vec::new(),
            ends: Vec::new(),
            taken: vec![0; network.cells],
            load: vec![0; network.next.edge_count()],
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

    /// Takes all streams out.
    fn clear(&mut self) -> Vec<CandidateStream> {
        self.taken.fill(0);
        self.load.fill(0);
        self.ends.clear();
        std::mem::take(&mut self.streams)
    }

    /// Words more for a stream, or less.
    fn give(&mut self, row: usize, words: u32, more: bool) {
        let stream = &mut self.streams[row];
        let change = |old: u64| if more { old + u64::from(words) } else { old - u64::from(words) };
        stream.words = to_u32(change(u64::from(stream.words)));
        for &edge in &stream.route.edges {
            let load = &mut self.load[index(edge)];
            *load = change(*load);
        }
    }

    /// The most that a link carries, and how many carry as much.
    fn busiest(&self) -> (u64, usize) {
        let most = self.load.iter().copied().max().unwrap_or(0);
        (most, self.load.iter().filter(|&&load| load == most).count())
    }

    /// When its last stream is over.
    pub(super) fn length(&self) -> f64 {
        self.ends.iter().copied().fold(0.0, f64::max)
    }
}
