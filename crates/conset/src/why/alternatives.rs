//! Alternative routes in a phase: routes over free channels, full cells, shortest routes.
//!
//! The search for a route uses only cells with a free channel (machine model, rule 2) and takes the
//! fewest hops. Among equally short routes it prefers the least routes on the busiest link, then the
//! least routes in total, then the lowest cells and links. All counts are recomputed from the routes
//! of the phase, independently of the router.

use std::collections::VecDeque;

use conset_ir::convert::to_u32;
use conset_ir::{CellId, ChannelId, ConnectionId, LinkId, Machine, PhaseRoutes};
use serde::Serialize;

/// Greatest number of shortest routes that are examined.
pub(super) const EXAMINED: usize = 256;
/// Greatest number of cells that a witness names, and of connections for each of them.
const NAMED: usize = 8;

/// A route that a connection could take, with free channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlternativeRoute {
    /// The cells in order, at least one.
    pub cells: Vec<CellId>,
    /// The links between them.
    pub links: Vec<LinkId>,
    /// The channel on each cell.
    pub channels: Vec<ChannelId>,
}

/// A cell without a free channel, and the connections that use its channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FullCell {
    /// The cell.
    pub cell: CellId,
    /// Channels in use: all channels of the cell.
    pub used: u32,
    /// The connections that use them, in the order of the routes of the phase, the first eight.
    pub connections: Vec<ConnectionId>,
}

/// The number of routes on each cell and each link of a phase.
pub(super) struct PhaseLoad {
    pub(super) cells: Vec<u32>,
    pub(super) links: Vec<u32>,
}

impl PhaseLoad {
    /// Counts the routes of a phase, except for the one in row `without`.
    pub(super) fn of(machine: &Machine, routes: &PhaseRoutes, without: Option<usize>) -> Self {
        let mut load =
            Self { cells: vec![0; machine.cell_count()], links: vec![0; machine.link_count()] };
        for (_, route) in routes.iter().enumerate().filter(|(row, _)| Some(*row) != without) {
            for cell in route.cells {
                load.cells[cell.index()] += 1;
            }
            for link in route.links() {
                if let Some(count) = load.links.get_mut(link.index()) {
                    *count += 1;
                }
            }
        }
        load
    }

    /// Greatest number of routes on a link, with one more route over each.
    pub(super) fn sharing_with(&self, links: &[LinkId]) -> u32 {
        links
            .iter()
            .map(|link| self.links.get(link.index()).map_or(1, |routes| routes + 1))
            .max()
            .unwrap_or(0)
    }

    /// Greatest number of channels in use on a cell, with one more on each.
    pub(super) fn occupancy_with(&self, cells: &[CellId]) -> u32 {
        cells.iter().map(|cell| self.cells[cell.index()] + 1).max().unwrap_or(0)
    }
}

/// A phase without one of its routes, or as it is.
pub(super) struct PhaseView<'a> {
    pub(super) machine: &'a Machine,
    pub(super) routes: &'a PhaseRoutes,
    pub(super) without: Option<usize>,
    pub(super) load: PhaseLoad,
}

/// The number of hops of a cell without a path to the target.
const UNREACHABLE: u32 = u32::MAX;

impl<'a> PhaseView<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        routes: &'a PhaseRoutes,
        without: Option<usize>,
    ) -> Self {
        Self { machine, routes, without, load: PhaseLoad::of(machine, routes, without) }
    }

    fn has_room(&self, cell: CellId) -> bool {
        self.load.cells[cell.index()] < self.machine.parameters().channels_per_cell
    }

    /// The best route from `source` to `target` over cells with a free channel. The error lists the
    /// full cells around those that can be reached from the source.
    /// O(cells + links + hops of the phase).
    pub(super) fn find(
        &self,
        source: CellId,
        target: CellId,
    ) -> Result<AlternativeRoute, Vec<FullCell>> {
        let ends: Vec<CellId> = if source == target { vec![source] } else { vec![source, target] };
        let full: Vec<CellId> = ends.into_iter().filter(|&cell| !self.has_room(cell)).collect();
        if !full.is_empty() {
            return Err(self.witness(&full));
        }
        let hops = hops_to(self.machine, target, |cell| self.has_room(cell));
        if hops[source.index()] == UNREACHABLE {
            return Err(self.witness(&self.full_neighbours(source)));
        }
        let (cells, links) = self.least_shared(source, &hops);
        Ok(self.numbered(cells, links))
    }

    /// The full cells next to those that can be reached from `source`.
    fn full_neighbours(&self, source: CellId) -> Vec<CellId> {
        let mut seen = vec![false; self.machine.cell_count()];
        seen[source.index()] = true;
        let mut queue = VecDeque::from([source]);
        let mut full = Vec::new();
        while let Some(cell) = queue.pop_front() {
            for &link in self.machine.outgoing(cell) {
                let next = self.machine.link(link).target;
                if std::mem::replace(&mut seen[next.index()], true) {
                    continue;
                }
                if self.has_room(next) { queue.push_back(next) } else { full.push(next) }
            }
        }
        full
    }

    /// Lists the connections on full cells, for the first cells of the list.
    pub(super) fn witness(&self, cells: &[CellId]) -> Vec<FullCell> {
        let named = &cells[..cells.len().min(NAMED)];
        let mut found: Vec<FullCell> = named
            .iter()
            .map(|&cell| FullCell {
                cell,
                used: self.load.cells[cell.index()],
                connections: Vec::new(),
            })
            .collect();
        for (row, route) in self.routes.iter().enumerate() {
            if Some(row) == self.without {
                continue;
            }
            for full in &mut found {
                if full.connections.len() < NAMED && route.cells.contains(&full.cell) {
                    full.connections.push(route.connection);
                }
            }
        }
        found
    }

    /// The cells of a list without a free channel.
    pub(super) fn full_cells(&self, cells: &[CellId]) -> Vec<CellId> {
        cells.iter().copied().filter(|&cell| !self.has_room(cell)).collect()
    }

    /// Among the shortest routes along `hops`, the one with the fewest routes on its busiest link.
    fn least_shared(&self, source: CellId, hops: &[u32]) -> (Vec<CellId>, Vec<LinkId>) {
        type PathLabel = ((u32, u64), LinkId);
        let mut best: Vec<Option<PathLabel>> = vec![None; self.machine.cell_count()];
        let mut level = vec![source];
        best[source.index()] = Some(((0, 0), LinkId::NONE));
        let mut at = source;
        for left in (0..hops[source.index()]).rev() {
            let mut next_level = Vec::new();
            for &cell in &level {
                let ((most, sum), _) = best[cell.index()].expect("levels hold labelled cells");
                for &link in self.machine.outgoing(cell) {
                    let next = self.machine.link(link).target;
                    if hops[next.index()] != left {
                        continue;
                    }
                    let routes = self.load.links[link.index()] + 1;
                    let price = (most.max(routes), sum + u64::from(routes));
                    let label = &mut best[next.index()];
                    if label.is_none() {
                        next_level.push(next);
                    }
                    if label.is_none_or(|(known, _)| price < known) {
                        *label = Some((price, link));
                    }
                }
            }
            next_level.sort_unstable();
            level = next_level;
            at = level[0];
        }
        let (mut cells, mut links) = (vec![at], Vec::new());
        while at != source {
            let (_, link) = best[at.index()].expect("the path back is labelled");
            at = self.machine.link(link).source;
            cells.push(at);
            links.push(link);
        }
        cells.reverse();
        links.reverse();
        (cells, links)
    }

    /// A route with the lowest free channel on each of its cells.
    pub(super) fn numbered(&self, cells: Vec<CellId>, links: Vec<LinkId>) -> AlternativeRoute {
        let mut place = vec![usize::MAX; self.machine.cell_count()];
        for (step, cell) in cells.iter().enumerate() {
            place[cell.index()] = step;
        }
        let mut taken: Vec<Vec<ChannelId>> = vec![Vec::new(); cells.len()];
        for (_, route) in self.routes.iter().enumerate().filter(|(r, _)| Some(*r) != self.without) {
            for (cell, &channel) in route.cells.iter().zip(route.channels) {
                if let Some(list) = taken.get_mut(place[cell.index()]) {
                    list.push(channel);
                }
            }
        }
        let channels = taken
            .into_iter()
            .map(|mut list| {
                list.sort_unstable();
                let free = list.iter().zip(0..).find(|(channel, free)| channel.0 != *free);
                ChannelId(free.map_or_else(|| to_u32(list.len()), |(_, free)| free))
            })
            .collect();
        AlternativeRoute { cells, links, channels }
    }
}

/// Hops to `target` over live links and cells for which `is_open` holds.
fn hops_to(machine: &Machine, target: CellId, is_open: impl Fn(CellId) -> bool) -> Vec<u32> {
    let mut hops = vec![UNREACHABLE; machine.cell_count()];
    hops[target.index()] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(cell) = queue.pop_front() {
        for &link in machine.incoming(cell) {
            let back = machine.link(link).source;
            if hops[back.index()] == UNREACHABLE && is_open(back) {
                hops[back.index()] = hops[cell.index()] + 1;
                queue.push_back(back);
            }
        }
    }
    hops
}

/// The shortest routes from one cell to another on the machine, free or not.
pub(super) struct Shortest {
    /// Hops of each.
    pub(super) hops: u32,
    /// The number of routes that differ in a cell, at most 2^64 - 1.
    pub(super) count: u64,
    /// The first [`EXAMINED`] in the order of their cells; of parallel links the one with the fewest
    /// routes, then the lowest one.
    pub(super) routes: Vec<(Vec<CellId>, Vec<LinkId>)>,
}

/// Finds the shortest routes; `None` if there is no path.
pub(super) fn shortest(view: &PhaseView<'_>, source: CellId, target: CellId) -> Option<Shortest> {
    let hops = hops_to(view.machine, target, |_| true);
    let total = hops[source.index()];
    if total == UNREACHABLE {
        return None;
    }
    let steps = |cell: CellId| {
        let mut steps: Vec<(CellId, u32, LinkId)> = view
            .machine
            .outgoing(cell)
            .iter()
            .map(|&link| (view.machine.link(link).target, view.load.links[link.index()], link))
            .filter(|(next, ..)| {
                hops[next.index()] != UNREACHABLE && hops[next.index()] + 1 == hops[cell.index()]
            })
            .collect();
        steps.sort_unstable();
        steps.dedup_by_key(|step| step.0);
        steps
    };
    // Depth first. Every step comes nearer to the target, so no path is a dead end.
    let mut routes = Vec::new();
    let (mut cells, mut links) = (vec![source], Vec::new());
    let mut open = vec![steps(source).into_iter()];
    if source == target {
        routes.push((cells.clone(), Vec::new()));
    }
    while let Some(last) = open.last_mut() {
        let Some((next, _, link)) = last.next() else {
            open.pop();
            cells.pop();
            links.pop();
            continue;
        };
        cells.push(next);
        links.push(link);
        if next == target {
            routes.push((cells.clone(), links.clone()));
            if routes.len() == EXAMINED {
                break;
            }
            cells.pop();
            links.pop();
        } else {
            open.push(steps(next).into_iter());
        }
    }
    Some(Shortest { hops: total, count: count(view.machine, source, total, steps), routes })
}

/// Counts the shortest routes, level by level.
fn count(
    machine: &Machine,
    source: CellId,
    hops: u32,
    steps: impl Fn(CellId) -> Vec<(CellId, u32, LinkId)>,
) -> u64 {
    let mut counts = vec![0u64; machine.cell_count()];
    counts[source.index()] = 1;
    let mut level = vec![source];
    for _ in 0..hops {
        let mut next_level = Vec::new();
        for &cell in &level {
            for (next, ..) in steps(cell) {
                if counts[next.index()] == 0 {
                    next_level.push(next);
                }
                counts[next.index()] = counts[next.index()].saturating_add(counts[cell.index()]);
            }
        }
        level = next_level;
    }
    level.first().map_or(1, |target| counts[target.index()])
}
