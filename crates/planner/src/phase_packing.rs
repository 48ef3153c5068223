//! Packs rounds into phases, limited by the channels of every cell.
//!
//! Rounds are taken in order. Each goes into the first open phase that has enough channels for the
//! whole round. Only the last [`OPEN`] phases are open; if connections are ordered, only the last
//! phase is. A round that needs more channels than a cell has is split, connection by connection,
//! over as many phases as necessary.
//!
//! Within a phase only its agents delay a connection until its round: if both are idle it starts
//! early, on links that other connections use, and delays those. Only a context switch synchronises
//! all cells. Rounds can therefore also be packed [`PackingRule::InStep`]: a round joins a phase
//! only if none of its connections would start early on links that are in use.
//!
//! If bandwidths or latencies are required, connections are packed one by one: each goes into a
//! phase in which its links have few enough routes for its own requirements and those of the routes
//! already there.

use super::paths::Paths;
use conset_ir::convert::{index, to_u32};
use conset_partition_route::apr::requirements::Requirements;
use conset_partition_route::network::Network;

/// The maximum number of open phases.
const OPEN: usize = 64;

/// The maximum number of cells of all open phases.
const TABLE_MEMORY_LIMIT: usize = 1 << 26;

/// A division of connections into phases.
pub(super) struct PhaseAssignment {
    /// Number of phases.
    pub(super) phases: u32,
    /// The phase of each connection.
    pub(super) phase_of: Vec<u32>,
}

/// The rule by which rounds share a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackingRule {
    /// As many rounds as fit.
    Dense,
    /// Only rounds whose connections do not start early onto links in use.
    InStep,
}

/// The rounds to be packed.
#[derive(Clone, Copy)]
pub(super) struct Rounds<'a> {
    pub(super) count: u32,
    pub(super) round_of: &'a [u32],
    /// Every path visits a cell once at most.
    pub(super) paths: &'a Paths,
    /// The ports of its agents that each connection keeps busy, two numbers below twice the cells.
    pub(super) ports: &'a [[u32; 2]],
    /// Whether phases must follow the order of their rounds.
    pub(super) ordered: bool,
    /// Required bandwidths and latencies.
    pub(super) requirements: Option<&'a Requirements>,
}

/// Packs rounds of connections into phases.
pub(super) fn pack(
    network: &Network,
    channels: u32,
    what: Rounds<'_>,
    packing: PackingRule,
) -> PhaseAssignment {
    let Rounds { round_of, paths, .. } = what;
    let rounds = what.count;
    let cells = network.cell_count();
    let places = match packing {
        PackingRule::Dense => 0,
        PackingRule::InStep => 2 * cells + network.outgoing().edge_count(),
    };
    let most = if what.ordered {
        1
    } else {
        (TABLE_MEMORY_LIMIT / (cells + places).max(1)).clamp(1, OPEN)
    };
    let members = Members::new(index(rounds), round_of);
    let edges = if what.requirements.is_some() { network.outgoing().edge_count() } else { 0 };
    let mut packer = Packer {
        cells,
        places,
        edges,
        channels,
        most,
        first: 0,
        requirements: what.requirements,
        open: Vec::new(),
        taken: Vec::new(),
    };
    let apart = edges > 0;
    let mut uses: Vec<Footprint> = Vec::new();
    let mut phase_of = vec![0; round_of.len()];
    let mut needs = vec![0u32; cells];
    for round in 0..index(rounds) {
        let members = members.of(round);
        if members.is_empty() {
            continue;
        }
        let mut used: Vec<u32> = Vec::new();
        for &x in members {
            for &cell in paths.of(index(x)) {
                if needs[index(cell)] == 0 {
                    used.push(cell);
                }
                needs[index(cell)] += 1;
            }
        }
        let fits_alone = !apart && used.iter().all(|&cell| needs[index(cell)] <= channels);
        uses.clear();
        if fits_alone && packing == PackingRule::InStep {
            uses.extend(members.iter().map(|&x| Footprint::new(network, what, x)));
        }
        if fits_alone {
            let phase = packer.take(&used, |cell| needs[index(cell)], &uses);
            for &x in members {
                phase_of[index(x)] = phase;
            }
        } else {
            for &x in members {
                uses.clear();
                if apart {
                    uses.push(Footprint::new(network, what, x));
                }
                phase_of[index(x)] = packer.take(paths.of(index(x)), |_| 1, &uses);
            }
        }
        for cell in used {
            needs[index(cell)] = 0;
        }
    }
    PhaseAssignment { phases: packer.first + to_u32(packer.open.len()), phase_of }
}

/// Connections by round.
struct Members {
    first: Vec<u32>,
    ids: Vec<u32>,
}

impl Members {
    fn new(rounds: usize, round_of: &[u32]) -> Self {
        let mut first = vec![0u32; rounds + 1];
        for &round in round_of {
            first[index(round) + 1] += 1;
        }
        for round in 0..rounds {
            first[round + 1] += first[round];
        }
        let mut next = first.clone();
        let mut ids = vec![0; round_of.len()];
        for (x, &round) in round_of.iter().enumerate() {
            ids[index(next[index(round)])] = to_u32(x);
            next[index(round)] += 1;
        }
        Self { first, ids }
    }

    fn of(&self, round: usize) -> &[u32] {
        &self.ids[index(self.first[round])..index(self.first[round + 1])]
    }
}

/// The ports and edges of a connection.
struct Footprint {
    connection: u32,
    ports: [u32; 2],
    edges: Vec<u32>,
}

impl Footprint {
    fn new(network: &Network, what: Rounds<'_>, connection: u32) -> Self {
        let x = index(connection);
        let path = what.paths.of(x).windows(2);
        let edges = path.map(|pair| to_u32(network.outgoing().edge(pair[0], pair[1]))).collect();
        Self { connection, ports: what.ports[x], edges }
    }
}

/// A phase that can still take rounds.
#[derive(Default)]
struct OpenPhase {
    /// Channels taken on each cell.
    taken: Vec<u32>,
    /// Rounds in it.
    rounds: u32,
    /// By port, then by edge: the last of its rounds that keeps it busy, counted from 1.
    last: Vec<u32>,
    /// By edge: its routes, and how many there may be for what they ask.
    shared: Vec<(u32, u32)>,
}

impl OpenPhase {
    /// Whether all requirements are still met if a connection is added to its links.
    fn meets_requirements(&self, requirements: &Requirements, one: &Footprint) -> bool {
        one.edges.iter().all(|&edge| {
            let (used, most) = self.shared[index(edge)];
            used < most.min(requirements.most(index(edge), one.connection))
        })
    }

    /// Whether no connection of a round would start early on a link in use.
    fn keeps_step(&self, ports: usize, round: &[Footprint]) -> bool {
        if self.last.is_empty() {
            return true;
        }
        round.iter().all(|one| {
            let [a, b] = one.ports.map(|port| self.last[index(port)]);
            let start = a.max(b);
            start == self.rounds
                || one.edges.iter().all(|&edge| self.last[ports + index(edge)] <= start)
        })
    }

    fn note(&mut self, ports: usize, requirements: Option<&Requirements>, round: &[Footprint]) {
        for one in round.iter().filter(|_| requirements.is_some()) {
            for &edge in &one.edges {
                let most = requirements.map_or(u32::MAX, |requirements| {
                    requirements.most(index(edge), one.connection)
                });
                let shared = &mut self.shared[index(edge)];
                *shared = (shared.0 + 1, shared.1.min(most));
            }
        }
        if self.last.is_empty() {
            return;
        }
        self.rounds += 1;
        for one in round {
            for port in one.ports {
                self.last[index(port)] = self.rounds;
            }
            for &edge in &one.edges {
                self.last[ports + index(edge)] = self.rounds;
            }
        }
    }
}

struct Packer<'a> {
    cells: usize,
    /// The number of ports and edges whose last use is recorded.
    places: usize,
    /// The number of edges whose sharing is recorded; not 0 if connections are packed one by one.
    edges: usize,
    channels: u32,
    /// The maximum number of open phases.
    most: usize,
    /// The number of closed phases.
    first: u32,
    requirements: Option<&'a Requirements>,
    open: Vec<OpenPhase>,
    /// The reusable memory of closed phases.
    taken: Vec<OpenPhase>,
}

impl Packer<'_> {
    /// Takes channels in the first open phase that has enough, otherwise in a new one.
    fn take(&mut self, used: &[u32], need: impl Fn(u32) -> u32, round: &[Footprint]) -> u32 {
        let ports = 2 * self.cells;
        let fits = |phase: &OpenPhase| {
            let free = |&cell: &u32| phase.taken[index(cell)] + need(cell) <= self.channels;
            let asks = |one: &Footprint| {
                self.requirements
                    .is_none_or(|requirements| phase.meets_requirements(requirements, one))
            };
            used.iter().all(free) && phase.keeps_step(ports, round) && round.iter().all(asks)
        };
        let found = self.open.iter().position(fits);
        let place = found.unwrap_or_else(|| self.add_phase());
        let phase = &mut self.open[place];
        for &cell in used {
            phase.taken[index(cell)] += need(cell);
        }
        if !round.is_empty() {
            phase.note(ports, self.requirements, round);
        }
        self.first + to_u32(place)
    }

    fn add_phase(&mut self) -> usize {
        if self.open.len() >= self.most {
            self.taken.push(self.open.remove(0));
            self.first += 1;
        }
        let mut phase = self.taken.pop().unwrap_or_default();
        phase.rounds = 0;
        phase.taken.clear();
        phase.taken.resize(self.cells, 0);
        phase.last.clear();
        phase.last.resize(self.places, 0);
        phase.shared.clear();
        phase.shared.resize(self.edges, (0, u32::MAX));
        self.open.push(phase);
        self.open.len() - 1
    }
}
