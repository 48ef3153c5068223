//! Ways through a phase: where there is room, which cells are full, which routes are shortest.
//!
//! A way is a route before it is anybody's: cells, links and free channels. The search for one
//! goes over cells with a free channel only (machine model, rule 2), takes the fewest hops there
//! are, and of equally short ways one whose fullest link carries the fewest routes (then few
//! routes in all, then the lowest cells and links). Everything is recounted from the routes of
//! the phase; nothing is asked of the router.

use std::collections::VecDeque;

use conset_ir::{CellId, ChannelId, ConnectionId, LinkId, Machine, PhaseRoutes};
use serde::Serialize;

/// Shortest routes that are looked at.
pub(super) const LOOK: usize = 256;
/// Cells that a witness names, and connections that it names for each.
const NAMED: usize = 8;

/// A route that could be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// The cells in order, at least one.
    pub cells: Vec<CellId>,
    /// The links between them.
    pub links: Vec<LinkId>,
    /// The channel on each cell.
    pub channels: Vec<ChannelId>,
}

/// A cell without a free channel, and who holds its channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FullCell {
    /// The cell.
    pub cell: CellId,
    /// Channels taken: all that it has.
    pub used: u32,
    /// Connections that hold them, in the order of the phase's routes, the first eight.
    pub connections: Vec<ConnectionId>,
}

/// Routes on each cell and each link of a phase.
pub(super) struct Load {
    pub(super) cells: Vec<u32>,
    pub(super) links: Vec<u32>,
}

impl Load {
    /// Counts the routes of a phase, but for the one in row `without`.
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

    /// The most routes on a link, one more route over each counted.
    pub(super) fn sharing_with(&self, links: &[LinkId]) -> u32 {
        links
            .iter()
            .map(|link| self.links.get(link.index()).map_or(1, |routes| routes + 1))
            .max()
            .unwrap_or(0)
    }

    /// The most channels taken on a cell, one more on each counted.
    pub(super) fn occupancy_with(&self, cells: &[CellId]) -> u32 {
        cells.iter().map(|cell| self.cells[cell.index()] + 1).max().unwrap_or(0)
    }
}

/// A phase, seen by a route that is not in it (or is taken out of it).
pub(super) struct View<'a> {
    pub(super) machine: &'a Machine,
    pub(super) routes: &'a PhaseRoutes,
    pub(super) without: Option<usize>,
    pub(super) load: Load,
}

/// Hops from every cell to a target.
const NO_WAY: u32 = u32::MAX;

impl<'a> View<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        routes: &'a PhaseRoutes,
        without: Option<usize>,
    ) -> Self {
        Self { machine, routes, without, load: Load::of(machine, routes, without) }
    }

    fn has_room(&self, cell: CellId) -> bool {
        self.load.cells[cell.index()] < self.machine.parameters().channels_per_cell
    }

    /// The best way from `source` to `target` over cells with room, or the full cells that stand
    /// round the source's side. O(cells + links + hops of the phase).
    pub(super) fn find(&self, source: CellId, target: CellId) -> Result<Way, Vec<FullCell>> {
        let ends: Vec<CellId> = if source == target { vec![source] } else { vec![source, target] };
        let full: Vec<CellId> = ends.into_iter().filter(|&cell| !self.has_room(cell)).collect();
        if !full.is_empty() {
            return Err(self.witness(&full));
        }
        let hops = hops_to(self.machine, target, |cell| self.has_room(cell));
        if hops[source.index()] == NO_WAY {
            return Err(self.witness(&self.wall(source)));
        }
        let (cells, links) = self.least_shared(source, &hops);
        Ok(self.numbered(cells, links))
    }

    /// The full cells next to what can be reached from `source`.
    fn wall(&self, source: CellId) -> Vec<CellId> {
        let mut seen = vec![false; self.machine.cell_count()];
        seen[source.index()] = true;
        let mut queue = VecDeque::from([source]);
        let mut wall = Vec::new();
        while let Some(cell) = queue.pop_front() {
            for &link in self.machine.outgoing(cell) {
                let next = self.machine.link(link).target;
                if std::mem::replace(&mut seen[next.index()], true) {
                    continue;
                }
                if self.has_room(next) { queue.push_back(next) } else { wall.push(next) }
            }
        }
        wall
    }

    /// Names the connections on full cells, the first cells of the list.
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

    /// The cells of a list without room.
    pub(super) fn full_cells(&self, cells: &[CellId]) -> Vec<CellId> {
        cells.iter().copied().filter(|&cell| !self.has_room(cell)).collect()
    }

    /// Among the shortest ways that `hops` leads, one whose fullest link is least full.
    fn least_shared(&self, source: CellId, hops: &[u32]) -> (Vec<CellId>, Vec<LinkId>) {
        type Label = ((u32, u64), LinkId);
        let mut best: Vec<Option<Label>> = vec![None; self.machine.cell_count()];
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
            let (_, link) = best[at.index()].expect("the way back is labelled");
            at = self.machine.link(link).source;
            cells.push(at);
            links.push(link);
        }
        cells.reverse();
        links.reverse();
        (cells, links)
    }

    /// A way with the lowest free channel on each of its cells.
    pub(super) fn numbered(&self, cells: Vec<CellId>, links: Vec<LinkId>) -> Way {
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
                ChannelId(free.map_or(list.len() as u32, |(_, free)| free))
            })
            .collect();
        Way { cells, links, channels }
    }
}

/// Hops to `target` over live links and cells for which `is_open` holds.
fn hops_to(machine: &Machine, target: CellId, is_open: impl Fn(CellId) -> bool) -> Vec<u32> {
    let mut hops = vec![NO_WAY; machine.cell_count()];
    hops[target.index()] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(cell) = queue.pop_front() {
        for &link in machine.incoming(cell) {
            let back = machine.link(link).source;
            if hops[back.index()] == NO_WAY && is_open(back) {
                hops[back.index()] = hops[cell.index()] + 1;
                queue.push_back(back);
            }
        }
    }
    hops
}

/// The shortest routes from one cell to another on the machine, whatever is full.
pub(super) struct Shortest {
    /// Links of each.
    pub(super) hops: u32,
    /// How many there are that differ in a cell; stops at 2^64 - 1.
    pub(super) count: u64,
    /// The first [`LOOK`] in the order of their cells; of parallel links the one with the fewest
    /// routes, the lowest of equals.
    pub(super) routes: Vec<(Vec<CellId>, Vec<LinkId>)>,
}

/// Finds the shortest routes; `None` where no way leads.
pub(super) fn shortest(view: &View<'_>, source: CellId, target: CellId) -> Option<Shortest> {
    let hops = hops_to(view.machine, target, |_| true);
    let total = hops[source.index()];
    if total == NO_WAY {
        return None;
    }
    let steps = |cell: CellId| {
        let mut steps: Vec<(CellId, u32, LinkId)> = view
            .machine
            .outgoing(cell)
            .iter()
            .map(|&link| (view.machine.link(link).target, view.load.links[link.index()], link))
            .filter(|(next, ..)| {
                hops[next.index()] != NO_WAY && hops[next.index()] + 1 == hops[cell.index()]
            })
            .collect();
        steps.sort_unstable();
        steps.dedup_by_key(|step| step.0);
        steps
    };
    // Depth first; every step comes nearer, so every walk arrives and the list fills up fast.
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
            if routes.len() == LOOK {
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

/// How many shortest routes there are, level by level.
fn count(
    machine: &Machine,
    source: CellId,
    hops: u32,
    steps: impl Fn(CellId) -> Vec<(CellId, u32, LinkId)>,
) -> u64 {
    let mut ways = vec![0u64; machine.cell_count()];
    ways[source.index()] = 1;
    let mut level = vec![source];
    for _ in 0..hops {
        let mut next_level = Vec::new();
        for &cell in &level {
            for (next, ..) in steps(cell) {
                if ways[next.index()] == 0 {
                    next_level.push(next);
                }
                ways[next.index()] = ways[next.index()].saturating_add(ways[cell.index()]);
            }
        }
        level = next_level;
    }
    level.first().map_or(1, |target| ways[target.index()])
}
