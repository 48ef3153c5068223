//! The shortest path over all layers of the graph, one layer for each phase.
//!
//! For each connection the router considers the layers (phases) in which both its ends have a free
//! channel, those with the emptiest ends first, and keeps the shortest path. A layer is skipped if
//! its two ends alone make its path no better than the best so far, and the search in a layer stops
//! once it cannot improve on the best, so most layers cost nothing; the result is still a shortest
//! path over all of them. There are two exceptions, which keep a million connections over 1500
//! phases within about a minute: after [`SEARCHED_LAYERS`] searches the best path so far is taken,
//! and layers are considered in windows of [`WINDOW`], each only if the windows before it had no
//! path.
//!
//! A connection with successors takes the first phase where it fits at all: a later phase would
//! delay all its successors.

use std::ops::RangeInclusive;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{ConnectionSet, Infeasible, Machine};

use super::a_star::{AStar, UNIT};
use super::cell_cost::{self, FULL};
use super::precedence::Precedence;
use super::requirements::{ANY, Requirement, Requirements};
use super::routing_state::{PoolRange, RoutingState, UNROUTED};
use crate::network::{Distances, Network, UNREACHABLE};

/// Layers searched for one connection, unless none of them has a path.
const SEARCHED_LAYERS: usize = 32;
/// Layers that are sorted by the costs of their ends at a time.
const WINDOW: u32 = 256;

/// The phase and the cost of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhasePath {
    /// The phase.
    pub(crate) phase: u32,
    /// The sum of the costs of its cells.
    pub(crate) cost: u32,
}

/// The layers of the graph, and the state of the searches.
#[derive(Clone, Debug)]
pub(crate) struct LayeredGraph {
    pub(crate) network: Network,
    distances: Distances,
    search: AStar,
    costs: Vec<u32>,
    /// Source and target of each connection.
    pub(crate) ends: Vec<(u32, u32)>,
    /// The routes of all phases.
    pub(crate) state: RoutingState,
    /// The precedence constraints.
    pub(crate) precedence: Precedence,
    requirements: Option<Requirements>,
    /// The path found last, source first.
    pub(crate) path: Vec<u32>,
    /// Scratch: phases by the cost of the two ends above the least.
    classes: Vec<Vec<u32>>,
    /// The number of searches so far.
    offset: u32,
}

/// The distances to the targets of a set, and the requirements of its connections. Fills `hops_of`
/// with the hops of each connection's shortest route.
///
/// # Errors
/// A connection without a path, or a requirement that no route meets. Any other set can be routed
/// in some number of phases.
pub(crate) fn distances_and_requirements(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    hops_of: &mut Vec<u32>,
) -> Result<(Distances, Option<Requirements>), Infeasible> {
    let ends = || set.connections().iter().map(|c| (c.source.0, c.target.0));
    let mut distances = Distances::new(network, ends().map(|e| e.1));
    hops_of.clear();
    hops_of.extend(ends().map(|(source, target)| distances.aim(network, source, target)));
    if hops_of.contains(&UNREACHABLE) {
        let cut = |id: &usize| hops_of[*id] == UNREACHABLE;
        return Err(crate::explain::unreachable(machine, set, (0..set.len()).filter(cut)));
    }
    let requirements = Requirements::new(machine, network, set, hops_of)?;
    Ok((distances, requirements))
}

/// Channels of a cell up to which each number of used ones has a cost of its own, however few the
/// connections are.
const COSTS: u32 = 1 << 12;

impl LayeredGraph {
    /// A graph without routes and phases. Fills `hops_of` with the hops of each connection's
    /// shortest route.
    ///
    /// # Errors
    /// As [`distances_and_requirements`].
    pub(crate) fn new(
        machine: &Machine,
        set: &ConnectionSet,
        network: Network,
        hops_of: &mut Vec<u32>,
    ) -> Result<Self, Infeasible> {
        let ends: Vec<(u32, u32)> =
            set.connections().iter().map(|c| (c.source.0, c.target.0)).collect();
        let (distances, requirements) =
            distances_and_requirements(machine, set, &network, hops_of)?;
        // More channels than connections are never used, so costs need not distinguish them.
        let channels = machine.parameters().channels_per_cell;
        let capacity = channels.min(COSTS.max(to_u32(set.len())));
        let costs = cell_cost::table(capacity);
        // The most that two ends cost above the least.
        let most = costs.iter().filter(|&&c| c != FULL).max().map_or(0, |&c| c - UNIT);
        let classes = 2 * most + 1;
        Ok(Self {
            search: AStar::new(network.cells),
            state: RoutingState::new(network.cells, capacity, set.len()),
            precedence: Precedence::new(set),
            classes: vec![Vec::new(); index(classes)],
            path: Vec::new(),
            offset: 0,
            network,
            distances,
            costs,
            ends,
            requirements,
        })
    }

    /// Adds an empty phase at the end.
    pub(crate) fn open_phase(&mut self) {
        self.state.open_phase();
        if let Some(requirements) = &mut self.requirements {
            requirements.open_phase();
        }
    }

    /// Removes an empty phase; later phases move up.
    pub(crate) fn close_phase(&mut self, phase: u32) {
        self.state.close_phase(phase);
        if let Some(requirements) = &mut self.requirements {
            requirements.close_phase(phase);
        }
    }

    /// Adds the path found last to a phase.
    pub(crate) fn insert(&mut self, connection: u32, phase: u32) {
        self.state.insert(connection, phase, &self.path);
        self.register(connection, phase);
    }

    /// Cells labelled in all searches so far: the measure of work.
    pub(crate) fn labelled_cells(&self) -> u64 {
        self.search.labelled_cells
    }

    /// Gives an unrouted connection a route that it had before.
    pub(crate) fn restore(&mut self, connection: u32, phase: u32, place: PoolRange) {
        self.state.restore(connection, phase, place);
        self.register(connection, phase);
    }

    fn register(&mut self, connection: u32, phase: u32) {
        if let Some(requirements) = &mut self.requirements {
            requirements.insert(&self.network, phase, connection, self.state.route(connection));
        }
    }

    /// Removes a connection from its phase.
    pub(crate) fn remove(&mut self, connection: u32) {
        let phase = self.state.phase_of[index(connection)];
        self.state.remove(connection);
        if let Some(requirements) = &mut self.requirements {
            let state = &self.state;
            let others = state.members(phase).iter().map(|&x| (x, state.route(x)));
            requirements.remove(&self.network, phase, connection, state.route(connection), others);
        }
    }

    fn requirement(&self, connection: u32) -> Requirement {
        match &self.requirements {
            Some(requirements) => requirements.of(connection),
            None => Requirement { sharing: ANY, hops: ANY },
        }
    }

    /// A shortest path for a connection in the given phases except `without`; the path is left in
    /// [`LayeredGraph::path`].
    pub(crate) fn shortest(
        &mut self,
        connection: u32,
        phases: &RangeInclusive<u32>,
        without: u32,
    ) -> Option<PhasePath> {
        let (source, target) = self.ends[index(connection)];
        let hops = self.distances.aim(&self.network, source, target);
        let lower = (hops + 1) * UNIT;
        let last = (*phases.end()).min(self.state.phases.checked_sub(1)?);
        let (first, words) =
            (phases.start() / 64, (last / 64 + 1).checked_sub(phases.start() / 64)?);
        let first_fit = self.precedence.has_successors(connection);
        // A different start each time fills the layers evenly if there are many.
        let offset = if first_fit || words * 64 <= WINDOW { 0 } else { self.offset % words };
        self.offset = self.offset.wrapping_add(1);
        let mut collected = 0;
        for step in 0..words {
            let word = first + (step + offset) % words;
            collected += self.collect_layers(word, (source, target), phases, without);
            if collected < WINDOW && step + 1 < words {
                continue;
            }
            let best = self.search_classes(connection, lower, first_fit);
            if best.is_some() {
                return best;
            }
            collected = 0;
        }
        None
    }

    /// The cost of a shortest path for a connection in one phase; the path is left in
    /// [`LayeredGraph::path`].
    pub(crate) fn search_phase(&mut self, phase: u32, connection: u32) -> Option<u32> {
        let (source, target) = self.ends[index(connection)];
        self.distances.aim(&self.network, source, target);
        let cost = self.search_in(phase, connection, u32::MAX, None)?;
        std::mem::swap(&mut self.path, &mut self.search.path);
        Some(cost)
    }

    /// As [`LayeredGraph::search_phase`], over open edges only. Finds nothing for a connection with
    /// a latency requirement.
    pub(crate) fn search_open_edges(
        &mut self,
        phase: u32,
        connection: u32,
        open: &dyn Fn(usize) -> bool,
    ) -> Option<u32> {
        let requirement = self.requirement(connection);
        if requirement.hops != ANY {
            return None;
        }
        let (source, target) = self.ends[index(connection)];
        self.distances.aim(&self.network, source, target);
        let Self { network, distances, search, costs, state, requirements, .. } = self;
        let used = state.used(phase);
        let cost = |cell: u32| costs[index(used[index(cell)])];
        let allowed = |edge| {
            requirements.as_ref().is_none_or(|w| w.is_open(phase, edge, requirement.sharing))
        };
        let open = |edge| open(edge) && allowed(edge);
        let cost = search.run(network, distances, source, target, u32::MAX, cost, open)?;
        std::mem::swap(&mut self.path, &mut self.search.path);
        Some(cost)
    }

    /// Whether the routes meet all requirements. If there are requirements and parallel links, the
    /// answer is no, because the link of each route is not known here.
    pub(crate) fn meets_requirements(&self) -> bool {
        let Some(requirements) = &self.requirements else { return true };
        let connections = 0..to_u32(self.ends.len());
        let routed = connections.filter(|&x| self.state.phase_of[index(x)] != UNROUTED);
        requirements.are_met()
            && routed.into_iter().all(|x| {
                to_u64(self.state.route(x).len()) <= u64::from(requirements.of(x).hops) + 1
            })
    }

    /// A shortest path over the collected layers, which are cleared.
    fn search_classes(
        &mut self,
        connection: u32,
        lower: u32,
        first_fit: bool,
    ) -> Option<PhasePath> {
        if first_fit {
            self.merge_classes();
        }
        let mut classes = std::mem::take(&mut self.classes);
        let mut best: Option<PhasePath> = None;
        let mut searched = 0;
        'all: for (extra, class) in classes.iter().enumerate() {
            let least = if first_fit { lower } else { lower + to_u32(extra) };
            for &phase in class {
                let limit = best.map_or(u32::MAX, |b| b.cost);
                if least >= limit || (searched >= SEARCHED_LAYERS && best.is_some()) {
                    break 'all;
                }
                searched += 1;
                if let Some(cost) = self.search_in(phase, connection, limit, None) {
                    std::mem::swap(&mut self.path, &mut self.search.path);
                    best = Some(PhasePath { phase, cost });
                    if first_fit {
                        break 'all;
                    }
                }
            }
        }
        classes.iter_mut().for_each(Vec::clear);
        self.classes = classes;
        best
    }

    /// The cheapest path in some phases where full cells may be used too, each at the cost
    /// `full_cell_cost(phase, cell)`; the path is left in [`LayeredGraph::path`].
    pub(crate) fn search_through_full(
        &mut self,
        connection: u32,
        phases: impl Iterator<Item = u32>,
        full_cell_cost: &dyn Fn(u32, u32) -> u32,
    ) -> Option<PhasePath> {
        let (source, target) = self.ends[index(connection)];
        self.distances.aim(&self.network, source, target);
        let mut best: Option<PhasePath> = None;
        for phase in phases {
            let limit = best.map_or(u32::MAX, |b| b.cost);
            if let Some(cost) = self.search_in(phase, connection, limit, Some(full_cell_cost)) {
                std::mem::swap(&mut self.path, &mut self.search.path);
                best = Some(PhasePath { phase, cost });
            }
        }
        best
    }

    /// Sorts the phases of one word in which both ends are free by the cost of the ends above the
    /// least. Returns their number.
    fn collect_layers(
        &mut self,
        word: u32,
        (source, target): (u32, u32),
        phases: &RangeInclusive<u32>,
        without: u32,
    ) -> u32 {
        let mut count = 0;
        let mut bits = self.state.both_free(source, target, index(word));
        // Phases beyond the last do not exist.
        let there = self.state.phases.saturating_sub(word * 64);
        bits &= if there < 64 { (1 << there) - 1 } else { u64::MAX };
        while bits != 0 {
            let phase = word * 64 + bits.trailing_zeros();
            bits &= bits - 1;
            if phase == without || !phases.contains(&phase) {
                continue;
            }
            let used = self.state.used(phase);
            let mut extra = self.costs[index(used[index(source)])] - UNIT;
            if source != target {
                extra += self.costs[index(used[index(target)])] - UNIT;
            }
            self.classes[index(extra)].push(phase);
            count += 1;
        }
        count
    }

    fn merge_classes(&mut self) {
        let (first, rest) = self.classes.split_at_mut(1);
        for class in rest {
            first[0].append(class);
        }
        first[0].sort_unstable();
    }

    /// One search. The limit is a cost. A hop limit is converted into a cost limit, which is exact
    /// because all cells then cost the same.
    fn search_in(
        &mut self,
        phase: u32,
        connection: u32,
        limit: u32,
        full_cell_cost: Option<&dyn Fn(u32, u32) -> u32>,
    ) -> Option<u32> {
        let (source, target) = self.ends[index(connection)];
        let requirement = self.requirement(connection);
        let Self { network, distances, search, costs, state, requirements, .. } = self;
        let used = state.used(phase);
        let plain = |cell: u32| costs[index(used[index(cell)])];
        match (requirements, full_cell_cost) {
            (None, None) => search.run(network, distances, source, target, limit, plain, |_| true),
            (None, Some(full_cell_cost)) => {
                let cost = |cell| match plain(cell) {
                    FULL => full_cell_cost(phase, cell),
                    cost => cost,
                };
                search.run(network, distances, source, target, limit, cost, |_| true)
            }
            (Some(requirements), full_cell_cost) => {
                let cost = |cell| match (plain(cell), full_cell_cost) {
                    (FULL, None) => FULL,
                    (FULL, Some(full_cell_cost)) => full_cell_cost(phase, cell),
                    (_, _) if requirement.hops != ANY => UNIT,
                    (cost, _) => cost,
                };
                // A full cell costs more than UNIT, so with full cells the hop limit may be too
                // strict, but never too loose.
                let hops =
                    requirement.hops.saturating_add(1).saturating_mul(UNIT).saturating_add(1);
                let limit = if requirement.hops == ANY { limit } else { limit.min(hops) };
                let open = |edge| requirements.is_open(phase, edge, requirement.sharing);
                search.run(network, distances, source, target, limit, cost, open)
            }
        }
    }
}
