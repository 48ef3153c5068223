//! Incremental routing: adds connections to an existing division into phases.
//!
//! Existing routes stay in place, with their channels and links, as long as this is legal. The
//! other connections of the set are inserted, connections whose ends are far apart first, and of
//! equally far ones the longest first:
//!
//! * in the phase of its [`PlacementHint`], if there is a path;
//! * otherwise in the phase that grows least, as far as the busiest agent and the busiest link
//!   tell, with a shortest path among cheap cells there (`a_star`), searching at most
//!   [`SEARCHED_PHASES`] phases;
//! * if no phase has a free path, by moving a few other routes ([`super::reroute`]), which may
//!   include existing ones;
//! * otherwise in a new phase at the end.
//!
//! Phases that have become empty are removed. If requested, a phase with few connections (no more
//! than were changed) is emptied, if there are more phases than the bound and the router succeeds.
//!
//! Copying the existing routes takes linear time; the searches take time in proportion to the
//! insertions.
//!
//! # What this module does not do
//!
//! It gives up, and says so, if existing routes violate a requirement or precedence constraint that
//! the set has now and removing single routes does not help. It does not improve existing routes.

mod phase_loads;

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, Infeasible, LinkId, Machine, PhaseRoutes,
    ShapeError, Slot,
};

use super::layered_graph::LayeredGraph;
use super::reroute::Rerouter;
use super::routing_state::UNROUTED;
use super::{GRAPH_MEMORY_LIMIT, INDEX_MEMORY_LIMIT, RouterOptions};
use crate::channels::EdgeLinks;
use crate::network::Network;
use crate::{bounds, explain};
use phase_loads::PhaseLoads;

/// Phases searched for one connection.
const SEARCHED_PHASES: usize = 32;

/// The number of times that other routes are moved to make room.
const EVICTION_BUDGET: u32 = 64;

/// Phases of at most this many connections may be emptied after any change.
const SMALL_PHASE: usize = 8;

/// The most phases that are emptied.
const MAX_EMPTIED_PHASES: u32 = 4;

/// The result of [`incremental_route`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IncrementalRouting {
    /// The routes of each phase; existing routes come first, in their order.
    pub phases: Vec<PhaseRoutes>,
    /// For each phase, its former number; `None` for a new phase.
    pub former: Vec<Option<u32>>,
    /// For each phase, the former rows of its first routes; `None` if the phase is unchanged.
    pub stayed: Vec<Option<Vec<u32>>>,
    /// Connections whose existing routes had to move, ascending.
    pub moved: Vec<ConnectionId>,
    /// Connections that got the phase of their hint, but over busy links, in no particular order.
    pub crowded: Vec<ConnectionId>,
    /// Connections that did not get the phase of their hint, in no particular order.
    pub refused: Vec<ConnectionId>,
}

/// The preferred phase and time of a connection to be inserted.
#[derive(Clone, Debug)]
pub struct PlacementHint {
    /// The connection.
    pub connection: ConnectionId,
    /// The phase, among the existing ones; phases beyond are opened.
    pub phase: u32,
    /// Links to avoid if there is another path, ascending. Links of other hints that were granted
    /// in the same phase for the same time are avoided too.
    pub busy: Vec<LinkId>,
    /// The time at which it would run, in clocks from the start of the phase.
    pub slot: Slot,
}

/// The change that led from the existing routes to the set.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoutingChange<'a> {
    /// Number of removed connections.
    pub removed: usize,
    /// Hints, ascending by connection, at most one for each.
    pub hints: &'a [PlacementHint],
    /// Whether phases with few connections are emptied if others have room.
    pub empty_small_phases: bool,
}

/// Whether [`RoutingChange::empty_small_phases`] applies to a phase of `routes` routes after a
/// change of `changed` connections.
#[must_use]
pub fn is_small(routes: usize, changed: usize) -> bool {
    routes <= SMALL_PHASE.max(changed)
}

/// Routes the connections of a set that have no existing route. `existing` are complete routes of
/// connections of `set`, legal on this machine, at most one for each. `None` if this fails and the
/// set must be routed from scratch.
///
/// # Errors
/// As [`super::route`], except for too many phases.
pub fn incremental_route(
    machine: &Machine,
    set: &ConnectionSet,
    existing: &[PhaseRoutes],
    change: RoutingChange<'_>,
    options: &RouterOptions,
) -> Result<Option<IncrementalRouting>, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    if !change.empty_small_phases && is_complete(set, existing) {
        let extended = without_empty(existing);
        let most = options.max_phases.map_or(usize::MAX, index);
        return Ok(Some(extended).filter(|extended| extended.phases.len() <= most));
    }
    let mut hops = Vec::new();
    let mut graph = LayeredGraph::new(machine, set, Network::new(machine), &mut hops)?;
    if existing.len().saturating_mul(graph.network.cells) > GRAPH_MEMORY_LIMIT {
        return Ok(None);
    }
    for (phase, routes) in existing.iter().enumerate() {
        graph.open_phase();
        for route in routes.iter() {
            graph.path.clear();
            graph.path.extend(route.cells.iter().map(|cell| cell.0));
            graph.insert(route.connection.0, to_u32(phase));
        }
    }
    if !graph.meets_requirements() {
        return Ok(None);
    }
    let mut disturbed = false;
    for &(before, after) in set.order() {
        let phase = |x: ConnectionId| graph.state.phase_of[x.index()];
        if phase(before) != UNROUTED && phase(after) != UNROUTED && phase(before) > phase(after) {
            graph.remove(after.0);
            disturbed = true;
        }
    }
    let new = to_insert(&graph, set, &hops, options);
    let mut this = Insertion {
        // Loads are needed only for insertions.
        loads: (!new.is_empty()).then(|| PhaseLoads::new(machine, set, &graph)),
        former: (0..to_u32(existing.len())).map(Some).collect(),
        reroute: Rerouter::default(),
        evictions: 0,
        most: options.max_phases.unwrap_or(u32::MAX),
        disturbed,
        granted: Vec::new(),
        crowded: Vec::new(),
        refused: Vec::new(),
        graph,
    };
    for &x in &new {
        let hint = change.hints.binary_search_by_key(&x, |hint| hint.connection.0);
        if !this.insert(machine, x, hint.ok().map(|row| &change.hints[row])) {
            return Ok(None);
        }
    }
    this.close_empty();
    let changed = new.len() + change.removed;
    if change.empty_small_phases && changed > 0 {
        let needed = bounds::fewest_phases(machine, set, &hops);
        let rank = |graph: &LayeredGraph| {
            let sequence = graph.precedence.routing_sequence(&hops, options.order, options.seed);
            let mut rank = vec![0; sequence.len()];
            for (row, &x) in sequence.iter().enumerate() {
                rank[index(x)] = to_u32(row);
            }
            rank
        };
        this.empty_small(rank, needed, changed);
    }
    if this.graph.state.phases > this.most {
        return Ok(None);
    }
    this.number(machine, set, existing).map(Some)
}

/// Whether every connection has a route, and the set has nothing that routes could violate.
fn is_complete(set: &ConnectionSet, existing: &[PhaseRoutes]) -> bool {
    existing.iter().map(PhaseRoutes::len).sum::<usize>() == set.len()
        && set.order().is_empty()
        && !set.has_requirements()
}

/// The existing routes without the empty phases.
fn without_empty(existing: &[PhaseRoutes]) -> IncrementalRouting {
    let phases = existing.iter().zip(0..).filter(|(routes, _)| !routes.is_empty());
    let (phases, former): (Vec<_>, Vec<_>) =
        phases.map(|(routes, phase)| (routes.clone(), Some(phase))).unzip();
    let stayed = vec![None; phases.len()];
    let (moved, crowded, refused) = Default::default();
    IncrementalRouting { phases, former, stayed, moved, crowded, refused }
}

/// The connections without a route in the order of insertion: predecessors first, then those whose
/// ends are far apart, then the longest.
fn to_insert(
    graph: &LayeredGraph,
    set: &ConnectionSet,
    hops: &[u32],
    options: &RouterOptions,
) -> Vec<u32> {
    let unrouted = |&x: &u32| graph.state.phase_of[index(x)] == UNROUTED;
    let mut new: Vec<u32> = (0..to_u32(set.len())).filter(unrouted).collect();
    if set.order().is_empty() || new.is_empty() {
        let words = |x: u32| set.get(ConnectionId(x)).words;
        new.sort_by_key(|&x| (Reverse(hops[index(x)]), Reverse(words(x)), x));
        return new;
    }
    let sequence = graph.precedence.routing_sequence(hops, options.order, options.seed);
    sequence.into_iter().filter(unrouted).collect()
}

struct Insertion {
    graph: LayeredGraph,
    /// Only if something is inserted.
    loads: Option<PhaseLoads>,
    former: Vec<Option<u32>>,
    reroute: Rerouter,
    evictions: u32,
    most: u32,
    /// Whether an existing route was removed from its phase.
    disturbed: bool,
    /// The edges of granted hints, with their times, by phase.
    granted: Vec<Vec<(Slot, Vec<usize>)>>,
    crowded: Vec<ConnectionId>,
    refused: Vec<ConnectionId>,
}

impl Insertion {
    /// Routes one connection; `false` if this fails.
    fn insert(&mut self, machine: &Machine, x: u32, hint: Option<&PlacementHint>) -> bool {
        let Some(phases) = self.graph.precedence.legal_phases(&self.graph.state, x) else {
            return false;
        };
        if let Some(hint) = hint {
            while self.graph.state.phases <= hint.phase && self.may_open() {
                self.open_phase();
            }
        }
        let granted =
            hint.filter(|hint| phases.contains(&hint.phase) && self.fits(machine, x, hint));
        if hint.is_some() && granted.is_none() {
            self.refused.push(ConnectionId(x));
        }
        if let Some(phase) = granted.map(|hint| hint.phase).or_else(|| self.find(x, &phases)) {
            self.commit(x, phase);
            return true;
        }
        if self.evict(x) {
            return true;
        }
        let phase = self.graph.state.phases;
        if !phases.contains(&phase) || !self.may_open() {
            return false;
        }
        self.open_phase();
        if self.graph.search_phase(phase, x).is_none() {
            return false;
        }
        self.commit(x, phase);
        true
    }

    fn may_open(&self) -> bool {
        let (phases, cells) = (self.graph.state.phases, self.graph.network.cells);
        phases < self.most && (index(phases) + 1).saturating_mul(cells) <= GRAPH_MEMORY_LIMIT
    }

    fn open_phase(&mut self) {
        self.graph.open_phase();
        self.former.push(None);
        if let Some(loads) = &mut self.loads {
            loads.open_phase();
        }
    }

    /// Adds the path found last to a phase.
    fn commit(&mut self, x: u32, phase: u32) {
        self.graph.insert(x, phase);
        if let Some(loads) = &mut self.loads {
            loads.book(&self.graph, x);
        }
    }

    /// Whether there is a path in the phase of the hint; it is left in the graph.
    fn fits(&mut self, machine: &Machine, x: u32, hint: &PlacementHint) -> bool {
        let state = &self.graph.state;
        let (source, target) = self.graph.ends[index(x)];
        let free = |cell: u32| state.used(hint.phase)[index(cell)] < state.capacity;
        if hint.phase >= state.phases || !free(source) || !free(target) {
            return false;
        }
        // An edge is free if one of its links is.
        let mut closed: Vec<usize> = Vec::with_capacity(hint.busy.len());
        for &link in hint.busy.iter().filter(|link| link.index() < machine.link_count()) {
            let ends = machine.link(link);
            let mut links = machine.links_between(ends.source, ends.target);
            if links.all(|link| hint.busy.binary_search(&link).is_ok()) {
                closed.push(self.graph.network.next.edge(ends.source.0, ends.target.0));
            }
        }
        let meets = |slot: &Slot| slot.start < hint.slot.end() && hint.slot.start < slot.end();
        let row = index(hint.phase);
        self.granted.resize(self.granted.len().max(row + 1), Vec::new());
        let others = self.granted[row].iter().filter(|other| meets(&other.0));
        closed.extend(others.flat_map(|other| other.1.iter()));
        closed.sort_unstable();
        let open = |edge: usize| closed.binary_search(&edge).is_err();
        if self.graph.search_open_edges(hint.phase, x, &open).is_none() {
            if self.graph.search_phase(hint.phase, x).is_none() {
                return false;
            }
            self.crowded.push(ConnectionId(x));
        }
        let next = &self.graph.network.next;
        let edges = self.graph.path.windows(2).map(|pair| next.edge(pair[0], pair[1])).collect();
        self.granted[row].push((hint.slot, edges));
        true
    }

    /// The phase that grows least; the path is left in the graph.
    fn find(&mut self, x: u32, phases: &std::ops::RangeInclusive<u32>) -> Option<u32> {
        let loads = self.loads.as_ref()?;
        let (source, target) = self.graph.ends[index(x)];
        let free = |phase: u32, cell: u32| {
            self.graph.state.used(phase)[index(cell)] < self.graph.state.capacity
        };
        let mut candidates: Vec<(u64, u64, u32)> = (0..self.graph.state.phases)
            .filter(|&p| phases.contains(&p) && free(p, source) && free(p, target))
            .map(|p| (loads.growth_by_ports(x, p), self.graph.state.load[index(p)], p))
            .collect();
        candidates.sort_unstable();
        let mut best: Option<(u64, u32, Vec<u32>)> = None;
        for &(growth, _, phase) in candidates.iter().take(SEARCHED_PHASES) {
            if best.as_ref().is_some_and(|best| best.0 <= growth) {
                break;
            }
            if self.graph.search_phase(phase, x).is_none() {
                continue;
            }
            let links = loads.growth_by_links(&self.graph, x, phase);
            let growth = growth.max(links);
            if best.as_ref().is_none_or(|best| growth < best.0) {
                best = Some((growth, phase, self.graph.path.clone()));
            }
        }
        // If no path was found yet, the other phases are tried in order.
        let rest = candidates.get(SEARCHED_PHASES..).unwrap_or(&[]);
        if best.is_none() {
            let found = rest.iter().find(|row| self.graph.search_phase(row.2, x).is_some());
            return found.map(|row| row.2);
        }
        best.map(|(_, phase, path)| {
            self.graph.path = path;
            phase
        })
    }

    /// Makes room by moving other routes.
    fn evict(&mut self, x: u32) -> bool {
        let copied = index(self.graph.state.phases) * self.graph.network.cells;
        if self.evictions == EVICTION_BUDGET || copied > INDEX_MEMORY_LIMIT || copied == 0 {
            return false;
        }
        if self.evictions == 0 {
            self.graph.state.track_routes_through();
        }
        self.evictions += 1;
        let done = self.reroute.insert(&mut self.graph, x);
        if done {
            self.disturbed = true;
            if let Some(loads) = &mut self.loads {
                loads.recount(&self.graph);
            }
        }
        done
    }

    fn close_empty(&mut self) {
        for phase in (0..self.graph.state.phases).rev() {
            if self.graph.state.members(phase).is_empty() {
                self.graph.close_phase(phase);
                self.former.remove(index(phase));
            }
        }
    }

    /// Empties small phases as long as there are more phases than needed.
    fn empty_small(
        &mut self,
        make_rank: impl Fn(&LayeredGraph) -> Vec<u32>,
        needed: u32,
        changed: usize,
    ) {
        let copied = index(self.graph.state.phases) * self.graph.network.cells;
        if copied > INDEX_MEMORY_LIMIT {
            return;
        }
        let mut rank = Vec::new();
        for _ in 0..MAX_EMPTIED_PHASES {
            let state = &self.graph.state;
            let smallest = (0..state.phases).min_by_key(|&p| (state.members(p).len(), Reverse(p)));
            let Some(phase) = smallest.filter(|_| state.phases > needed) else { return };
            if !is_small(state.members(phase).len(), changed) {
                return;
            }
            if rank.is_empty() {
                self.graph.state.track_routes_through();
                rank = make_rank(&self.graph);
            }
            if !self.reroute.empty(&mut self.graph, phase, &rank) {
                return;
            }
            self.disturbed = true;
            self.former.remove(index(phase));
        }
    }

    /// Assigns channels and links: the former ones to existing routes, the lowest free ones to the
    /// rest.
    fn number(
        self,
        machine: &Machine,
        set: &ConnectionSet,
        existing: &[PhaseRoutes],
    ) -> Result<IncrementalRouting, Infeasible> {
        let state = &self.graph.state;
        let mut numbering = ChannelNumbering {
            graph: &self.graph,
            edges: EdgeLinks::new(machine, &self.graph.network),
            kept: Vec::new(),
            next_free: vec![(0, 0); self.graph.network.cells],
            link_load: vec![0; machine.link_count()],
            in_place: vec![false; set.len()],
            set,
        };
        let (mut phases, mut stayed, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        let none = PhaseRoutes::new();
        for (phase, former) in self.former.iter().enumerate() {
            let phase = to_u32(phase);
            let old = former.map_or(&none, |former| &existing[index(former)]);
            if !self.disturbed && state.members(phase).len() == old.len() {
                phases.push(old.clone());
                stayed.push(None);
                continue;
            }
            let (routes, rows) =
                numbering.phase(phase, old).map_err(|error| explain::misshapen(set, &error))?;
            let left = old.iter().filter(|route| !numbering.in_place[route.connection.index()]);
            moved.extend(left.map(|route| route.connection));
            let all = rows.len() == old.len() && rows.len() == routes.len();
            phases.push(routes);
            stayed.push((!all).then_some(rows));
        }
        let mut open = vec![false; existing.len()];
        self.former.iter().flatten().for_each(|&former| open[index(former)] = true);
        let closed = existing.iter().zip(open).filter(|row| !row.1).flat_map(|row| row.0.iter());
        moved.extend(closed.map(|route| route.connection));
        moved.sort_unstable();
        let Self { former, crowded, refused, .. } = self;
        Ok(IncrementalRouting { phases, former, stayed, moved, crowded, refused })
    }
}

/// Assigns channels and links, phase by phase.
struct ChannelNumbering<'a> {
    graph: &'a LayeredGraph,
    edges: EdgeLinks,
    set: &'a ConnectionSet,
    /// Cells and channels of the routes of a phase that keep theirs, sorted.
    kept: Vec<(u32, u32)>,
    /// Per cell, the place of its next row in `kept`, and the least channel that may be free.
    next_free: Vec<(usize, u32)>,
    link_load: Vec<u32>,
    in_place: Vec<bool>,
}

impl ChannelNumbering<'_> {
    /// The routes of a phase, and the former rows of those that stayed.
    fn phase(
        &mut self,
        phase: u32,
        old: &PhaseRoutes,
    ) -> Result<(PhaseRoutes, Vec<u32>), ShapeError> {
        let state = &self.graph.state;
        self.kept.clear();
        self.link_load.fill(0);
        let (mut routes, mut rows) = (PhaseRoutes::new(), Vec::new());
        for (row, route) in old.iter().enumerate() {
            let x = route.connection.0;
            let path = route.cells.iter().map(|cell| cell.0);
            if state.phase_of[index(x)] != phase || !path.eq(state.route(x).iter().copied()) {
                continue;
            }
            self.in_place[index(x)] = true;
            rows.push(to_u32(row));
            for (cell, channel) in route.cells.iter().zip(route.channels) {
                self.kept.push((cell.0, channel.0));
            }
            for link in route.links() {
                self.link_load[link.index()] += 1;
            }
            let (cells, links) = (route.cells, route.links());
            routes.push(route.connection, route.words, cells, links, route.channels)?;
        }
        self.kept.sort_unstable();
        self.next_free.fill((self.kept.len(), 0));
        for (row, &(cell, _)) in self.kept.iter().enumerate().rev() {
            self.next_free[index(cell)].0 = row;
        }
        let mut members = state.members(phase).to_vec();
        members.sort_unstable();
        for x in members {
            if !self.in_place[index(x)] {
                self.add(x, &mut routes)?;
            }
        }
        Ok((routes, rows))
    }

    /// Adds a route on the lowest free channels and the least used links.
    fn add(&mut self, x: u32, routes: &mut PhaseRoutes) -> Result<(), ShapeError> {
        let path = self.graph.state.route(x);
        let cells: Vec<CellId> = path.iter().map(|&cell| CellId(cell)).collect();
        let mut numbers = Vec::with_capacity(path.len());
        for &cell in path {
            let (row, channel) = &mut self.next_free[index(cell)];
            while self.kept.get(*row) == Some(&(cell, *channel)) {
                (*row, *channel) = (*row + 1, *channel + 1);
            }
            numbers.push(ChannelId(*channel));
            *channel += 1;
        }
        let mut links = Vec::with_capacity(path.len());
        for pair in path.windows(2) {
            let edge = self.graph.network.next.edge(pair[0], pair[1]);
            let link = self.edges.least_loaded(edge, &self.link_load);
            self.link_load[link.index()] += 1;
            links.push(link);
        }
        let id = ConnectionId(x);
        routes.push(id, self.set.get(id).words, &cells, &links, &numbers)
    }
}
