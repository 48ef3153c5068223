//! Connections put to a division that stands: what a small change of a set leaves to route.
//!
//! Routes that are handed in stay where they are, with their channels and links, as long as that
//! is legal; every other connection of the set is inserted, far apart ones first:
//!
//! * where the phase gets longest the least, as far as the busiest agent and the busiest link
//!   tell, with a shortest route among cheap cells there (`search`), in [`COPIES`] phases at most;
//! * where no phase has room, by moving a few others ([`super::reroute`]), so that routes that
//!   were handed in may move too;
//! * else in a new phase at the end.
//!
//! Phases that have become empty go. Where phases are more than the bound and one has few
//! connections, no more than were changed, it is emptied if that can be.
//!
//! Copying what stands is linear in it; the searches are in proportion to what is inserted.
//!
//! # What this module does not do
//!
//! It gives up, and says so, where standing routes break a requirement or an order that the set
//! has now in a way that taking single routes out does not mend. It does not improve what stands.

use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, Duplex, Infeasible, Machine, PhaseRoutes,
    Routing,
};

use super::copies::Copies;
use super::reroute::Reroute;
use super::state::UNROUTED;
use super::{COPIED_CELLS, INDEXED_CELLS, Options};
use crate::channels::EdgeLinks;
use crate::network::Network;
use crate::{bounds, explain};

/// Phases searched for one connection.
const COPIES: usize = 32;

/// Loads that are held at most; beyond, the phase is chosen by its cells alone.
const HELD: usize = 1 << 25;

/// Times that others are moved to make room.
const EVICTIONS: u32 = 64;

/// Phases with as few connections are emptied even after a smaller change.
const FEW: usize = 8;

/// Phases emptied at most.
const EMPTIED: u32 = 4;

/// A division that was extended.
#[derive(Clone, Debug)]
pub struct Extended {
    /// Phases and routes. In each phase those that stayed come first, in their order.
    pub routing: Routing,
    /// For each phase the one it was; none for a new one.
    pub former: Vec<Option<u32>>,
    /// For each phase, the rows that its first routes had among those handed in.
    pub stayed: Vec<Vec<u32>>,
    /// Routes that were handed in and had to move.
    pub moved: usize,
}

/// Extends a division to a whole set. `kept` are routes of connections of `set` with all their
/// words, legal on this machine, at most one of each; `removed` is how many others there were.
/// `None` where that cannot be had and the set must be routed from the start.
///
/// # Errors
/// As [`super::route`], but for too many phases.
pub fn extend(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    kept: &[PhaseRoutes],
    removed: usize,
    options: &Options,
) -> Result<Option<Extended>, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    let mut hops = Vec::new();
    let mut copies = Copies::new(machine, set, Network::new(machine), &mut hops)?;
    if kept.len().saturating_mul(copies.network.cells) > COPIED_CELLS {
        return Ok(None);
    }
    for (phase, routes) in kept.iter().enumerate() {
        copies.open_phase();
        for route in routes.iter() {
            copies.path = route.cells.iter().map(|cell| cell.0).collect();
            copies.put(route.connection.0, phase as u32);
        }
    }
    if !copies.keeps_wants() {
        return Ok(None);
    }
    for &(before, after) in set.order() {
        let phase = |x: ConnectionId| copies.state.phase_of[x.index()];
        if phase(before) != UNROUTED && phase(after) != UNROUTED && phase(before) > phase(after) {
            copies.take(after.0);
        }
    }
    let sequence = copies.order.sequence(&hops, options.sequence, options.seed);
    let mut this = Insertion {
        loads: Loads::new(machine, set, &copies),
        former: (0..kept.len() as u32).map(Some).collect(),
        reroute: Reroute::default(),
        evictions: 0,
        most: options.max_phases.unwrap_or(u32::MAX),
        copies,
    };
    let new: Vec<u32> = sequence
        .iter()
        .copied()
        .filter(|&x| this.copies.state.phase_of[x as usize] == UNROUTED)
        .collect();
    for &x in &new {
        if !this.insert(x) {
            return Ok(None);
        }
    }
    this.close_empty();
    let changed = new.len() + removed;
    if changed > 0 {
        let needed = bounds::fewest_phases(machine, set, &hops);
        this.empty_small(&sequence, needed, changed);
    }
    if this.copies.state.phases > this.most {
        return Ok(None);
    }
    this.number(machine, set, kept).map(Some)
}

struct Insertion {
    copies: Copies,
    loads: Loads,
    former: Vec<Option<u32>>,
    reroute: Reroute,
    evictions: u32,
    most: u32,
}

impl Insertion {
    /// Routes one connection; `false` where that cannot be had.
    fn insert(&mut self, x: u32) -> bool {
        let Some(phases) = self.copies.order.phases(&self.copies.state, x) else { return false };
        if let Some(phase) = self.find(x, &phases) {
            self.copies.put(x, phase);
            self.loads.book(&self.copies, x);
            return true;
        }
        if self.evict(x) {
            return true;
        }
        let (phase, cells) = (self.copies.state.phases, self.copies.network.cells);
        let room = (phase as usize + 1).saturating_mul(cells) <= COPIED_CELLS;
        if !phases.contains(&phase) || phase >= self.most || !room {
            return false;
        }
        self.copies.open_phase();
        self.former.push(None);
        self.loads.open_phase();
        if self.copies.search_one(phase, x).is_none() {
            return false;
        }
        self.copies.put(x, phase);
        self.loads.book(&self.copies, x);
        true
    }

    /// The phase that gets longer the least, with the path left in the copies.
    fn find(&mut self, x: u32, phases: &std::ops::RangeInclusive<u32>) -> Option<u32> {
        let (source, target) = self.copies.ends[x as usize];
        let free = |phase: u32, cell: u32| {
            self.copies.state.used(phase)[cell as usize] < self.copies.state.capacity
        };
        let mut candidates: Vec<(u64, u64, u32)> = (0..self.copies.state.phases)
            .filter(|&p| phases.contains(&p) && free(p, source) && free(p, target))
            .map(|p| (self.loads.growth_by_sides(x, p), self.copies.state.load[p as usize], p))
            .collect();
        candidates.sort_unstable();
        let mut best: Option<(u64, u32, Vec<u32>)> = None;
        for &(growth, _, phase) in candidates.iter().take(COPIES) {
            if best.as_ref().is_some_and(|best| best.0 <= growth) {
                break;
            }
            if self.copies.search_one(phase, x).is_none() {
                continue;
            }
            let links = self.loads.growth_by_links(&self.copies, x, phase);
            let growth = growth.max(links);
            if best.as_ref().is_none_or(|best| growth < best.0) {
                best = Some((growth, phase, self.copies.path.clone()));
            }
        }
        // Those not searched are no worse than none.
        let rest = candidates.get(COPIES..).unwrap_or(&[]);
        if best.is_none() {
            let found = rest.iter().find(|row| self.copies.search_one(row.2, x).is_some());
            return found.map(|row| row.2);
        }
        best.map(|(_, phase, path)| {
            self.copies.path = path;
            phase
        })
    }

    /// Makes room by moving others.
    fn evict(&mut self, x: u32) -> bool {
        let copied = self.copies.state.phases as usize * self.copies.network.cells;
        if self.evictions == EVICTIONS || copied > INDEXED_CELLS || copied == 0 {
            return false;
        }
        if self.evictions == 0 {
            self.copies.state.keep_passing();
        }
        self.evictions += 1;
        let done = self.reroute.insert(&mut self.copies, x);
        if done {
            self.loads.count_again(&self.copies);
        }
        done
    }

    fn close_empty(&mut self) {
        for phase in (0..self.copies.state.phases).rev() {
            if self.copies.state.members(phase).is_empty() {
                self.copies.close_phase(phase);
                self.former.remove(phase as usize);
            }
        }
    }

    /// Empties phases that have become small, as long as there are more than needed.
    fn empty_small(&mut self, sequence: &[u32], needed: u32, changed: usize) {
        let copied = self.copies.state.phases as usize * self.copies.network.cells;
        if copied > INDEXED_CELLS {
            return;
        }
        let mut rank = Vec::new();
        for _ in 0..EMPTIED {
            let state = &self.copies.state;
            let smallest =
                (0..state.phases).min_by_key(|&p| (state.members(p).len(), std::cmp::Reverse(p)));
            let Some(phase) = smallest.filter(|_| state.phases > needed) else { return };
            if state.members(phase).len() > FEW.max(changed) {
                return;
            }
            if rank.is_empty() {
                self.copies.state.keep_passing();
                rank = vec![0; sequence.len()];
                for (row, &x) in sequence.iter().enumerate() {
                    rank[x as usize] = row as u32;
                }
            }
            if !self.reroute.empty(&mut self.copies, phase, &rank) {
                return;
            }
            self.former.remove(phase as usize);
        }
    }

    /// Channels and links: as they were for what stayed, the lowest free ones for the rest.
    fn number(
        self,
        machine: &Arc<Machine>,
        set: &Arc<ConnectionSet>,
        kept: &[PhaseRoutes],
    ) -> Result<Extended, Infeasible> {
        let state = &self.copies.state;
        let channels = usize::from(state.capacity);
        let edges = EdgeLinks::new(machine, &self.copies.network);
        let mut taken = vec![false; self.copies.network.cells * channels];
        let mut link_load = vec![0u32; machine.link_count()];
        let mut in_place = vec![false; set.len()];
        let (mut phases, mut stayed) = (Vec::new(), Vec::new());
        let mut moved = kept.iter().map(PhaseRoutes::len).sum::<usize>();
        for (phase, former) in self.former.iter().enumerate() {
            let mut routes = PhaseRoutes::new();
            let mut rows = Vec::new();
            taken.fill(false);
            link_load.fill(0);
            let old = former.map(|former| &kept[former as usize]);
            for (row, route) in old.into_iter().flat_map(PhaseRoutes::iter).enumerate() {
                let x = route.connection.0;
                let same = || {
                    let path = route.cells.iter().map(|cell| cell.0);
                    path.eq(state.route(x).iter().copied())
                };
                if state.phase_of[x as usize] != phase as u32 || !same() {
                    continue;
                }
                in_place[x as usize] = true;
                rows.push(row as u32);
                for (cell, channel) in route.cells.iter().zip(route.channels) {
                    taken[cell.index() * channels + channel.index()] = true;
                }
                for link in route.links() {
                    link_load[link.index()] += 1;
                }
                let (cells, links) = (route.cells, route.links());
                routes
                    .push(route.connection, route.words, cells, links, route.channels)
                    .map_err(|error| explain::misshapen(set, &error))?;
            }
            moved -= rows.len();
            let mut members = state.members(phase as u32).to_vec();
            members.sort_unstable();
            for x in members.into_iter().filter(|&x| !in_place[x as usize]) {
                let path = state.route(x);
                let cells: Vec<CellId> = path.iter().map(|&cell| CellId(cell)).collect();
                let free = |cell: &u32| {
                    let start = *cell as usize * channels;
                    let row = &mut taken[start..start + channels];
                    let channel = row.iter().position(|taken| !taken).expect("the router left one");
                    row[channel] = true;
                    ChannelId::from_index(channel)
                };
                let numbers: Vec<ChannelId> = path.iter().map(free).collect();
                let link = |pair: &[u32]| {
                    let parallel = edges.of(self.copies.network.next.edge(pair[0], pair[1]));
                    let link = parallel.iter().min_by_key(|link| link_load[link.index()]);
                    let link = *link.expect("an edge stands for at least one link");
                    link_load[link.index()] += 1;
                    link
                };
                let links: Vec<_> = path.windows(2).map(link).collect();
                let id = ConnectionId(x);
                routes
                    .push(id, set.get(id).words, &cells, &links, &numbers)
                    .map_err(|error| explain::misshapen(set, &error))?;
            }
            phases.push(routes);
            stayed.push(rows);
        }
        let routing = Routing::new(machine.clone(), set.clone(), phases)
            .map_err(|error| explain::misshapen(set, &error))?;
        Ok(Extended { routing, former: self.former, stayed, moved })
    }
}

/// Clocks that agents' sides and edges are busy in each phase, and the most of each phase.
struct Loads {
    sides: Vec<[u32; 2]>,
    agent_clocks: Vec<u64>,
    link_clocks: Vec<u64>,
    side_count: usize,
    edge_count: usize,
    side: Vec<u64>,
    edge: Vec<u64>,
    most: Vec<u64>,
}

impl Loads {
    fn new(machine: &Machine, set: &ConnectionSet, copies: &Copies) -> Self {
        let parameters = machine.parameters();
        let full = parameters.duplex == Duplex::Full;
        let sides = copies.ends.iter().map(|&(source, target)| match full {
            true => [2 * source, 2 * target + 1],
            false => [source, target],
        });
        let words = |per_word: u32, fixed: u32| {
            let clocks = set.connections().iter();
            let clocks =
                clocks.map(|c| u64::from(c.words) * u64::from(per_word) + u64::from(fixed));
            clocks.collect::<Vec<u64>>()
        };
        let mut this = Self {
            sides: sides.collect(),
            agent_clocks: words(parameters.access_clocks_per_word, parameters.stream_setup),
            link_clocks: words(parameters.link_clocks_per_word, 0),
            side_count: if full { 2 * copies.network.cells } else { copies.network.cells },
            edge_count: copies.network.next.edge_count(),
            side: Vec::new(),
            edge: Vec::new(),
            most: Vec::new(),
        };
        this.count_again(copies);
        this
    }

    fn count_again(&mut self, copies: &Copies) {
        self.side.clear();
        self.edge.clear();
        self.most.clear();
        for _ in 0..copies.state.phases {
            self.open_phase();
        }
        for phase in 0..copies.state.phases {
            for &x in copies.state.members(phase) {
                self.book(copies, x);
            }
        }
    }

    fn open_phase(&mut self) {
        self.most.push(0);
        let phases = self.most.len();
        if phases.saturating_mul(self.side_count + self.edge_count) > HELD {
            self.side.clear();
            self.edge.clear();
            return;
        }
        self.side.resize(phases * self.side_count, 0);
        self.edge.resize(phases * self.edge_count, 0);
    }

    fn are_held(&self) -> bool {
        self.side.len() == self.most.len() * self.side_count
    }

    fn book(&mut self, copies: &Copies, x: u32) {
        if !self.are_held() {
            return;
        }
        let phase = copies.state.phase_of[x as usize] as usize;
        let mut most = self.most[phase];
        for side in self.sides[x as usize] {
            let load = &mut self.side[phase * self.side_count + side as usize];
            *load = load.saturating_add(self.agent_clocks[x as usize]);
            most = most.max(*load);
        }
        for pair in copies.state.route(x).windows(2) {
            let edge = copies.network.next.edge(pair[0], pair[1]);
            let load = &mut self.edge[phase * self.edge_count + edge];
            *load = load.saturating_add(self.link_clocks[x as usize]);
            most = most.max(*load);
        }
        self.most[phase] = most;
    }

    fn growth_by_sides(&self, x: u32, phase: u32) -> u64 {
        if !self.are_held() {
            return 0;
        }
        let base = phase as usize * self.side_count;
        let loads = self.sides[x as usize].map(|side| self.side[base + side as usize]);
        let load = loads[0].max(loads[1]).saturating_add(self.agent_clocks[x as usize]);
        load.saturating_sub(self.most[phase as usize])
    }

    /// The same by the links of the path found last.
    fn growth_by_links(&self, copies: &Copies, x: u32, phase: u32) -> u64 {
        if !self.are_held() {
            return 0;
        }
        let base = phase as usize * self.edge_count;
        let edges = copies.path.windows(2).map(|pair| copies.network.next.edge(pair[0], pair[1]));
        let load = edges.map(|edge| self.edge[base + edge]).max().unwrap_or(0);
        load.saturating_add(self.link_clocks[x as usize]).saturating_sub(self.most[phase as usize])
    }
}
