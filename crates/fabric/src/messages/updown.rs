//! Up*/down* routing, for machines without complete grid coordinates.
//!
//! The cells are ordered. A link to a later cell is an *up* link, any other a *down* link. A route
//! uses up links first, then down links, and never an up link again. The channels it uses ascend in
//! the order "up links by height, then down links by depth", so no cycle of waiting messages can
//! exist.
//!
//! * In a fat-tree or cluster the order is by height over the leaves, then by number. Every shortest route is an
//!   up*/down* route.
//! * Otherwise the order is by closeness to a root, then by number. The root is the first live cell
//!   of each component that bidirectional links connect, and only these links count. Every pair
//!   within a component has a route (through the root, if necessary), which may be longer than the
//!   shortest path. A pair that only unidirectional links connect may have none, and the message is
//!   rejected.
//!
//! The route is a shortest up*/down* route. Of several next links that are equally good, the
//! target's number selects one (`target >> hops` modulo their number), so that all parallel paths of
//! a fat-tree are used and the route still depends only on its ends.

use std::collections::{BTreeMap, VecDeque};

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, LinkId, Machine, Topology};

/// The distance of an unreachable cell.
const UNREACHABLE: u32 = u32::MAX;
/// Distances that the cache holds, over all targets.
const CACHE_LIMIT: usize = 1 << 24;

/// Finds up*/down* routes; caches the distances to earlier targets.
#[derive(Clone, Debug)]
pub(crate) struct UpDownRouter {
    /// The cells in order, and the position of each.
    order: Vec<u32>,
    position: Vec<u32>,
    distances: BTreeMap<CellId, Vec<Distance>>,
}

/// Hops from a cell to a target.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// Over up links, then down links.
    any: u32,
    /// Over down links only.
    down: u32,
}

impl UpDownRouter {
    /// Orders the cells. O(cells log cells + links).
    pub(crate) fn new(machine: &Machine) -> Self {
        let heights = match machine.topology() {
            Topology::FatTree { .. } | Topology::Cluster { .. } => heights(machine),
            _ => nearness(machine),
        };
        let mut order: Vec<u32> = (0..to_u32(machine.cell_count())).collect();
        order.sort_by_key(|&cell| (heights[index(cell)], cell));
        let mut position = vec![0; order.len()];
        for (at, &cell) in order.iter().enumerate() {
            position[index(cell)] = to_u32(at);
        }
        Self { order, position, distances: BTreeMap::new() }
    }

    fn is_up(&self, machine: &Machine, link: LinkId) -> bool {
        let ends = machine.link(link);
        self.position[ends.target.index()] > self.position[ends.source.index()]
    }

    /// Appends the links of the route; returns `false` if there is none. O(cells + links) for a
    /// target that is not cached.
    pub(crate) fn route(
        &mut self,
        machine: &Machine,
        source: CellId,
        target: CellId,
        links: &mut Vec<u32>,
    ) -> bool {
        if !self.distances.contains_key(&target) {
            if self.distances.len() * self.position.len() >= CACHE_LIMIT {
                self.distances.clear();
            }
            let distances = self.distances_to(machine, target);
            self.distances.insert(target, distances);
        }
        let distances = &self.distances[&target];
        let (mut at, mut up) = (source, true);
        let remaining = |d: Distance, up: bool| if up { d.any } else { d.down };
        let length = remaining(distances[source.index()], true);
        if length == UNREACHABLE {
            return false;
        }
        for hop in 0..length {
            let rest = length - hop - 1;
            let leads = |link: LinkId| {
                let rises = self.is_up(machine, link);
                let there = distances[machine.link(link).target.index()];
                (up || !rises) && remaining(there, rises) == rest
            };
            let good = |link: &LinkId| leads(*link);
            let count = machine.outgoing(at).iter().filter(|l| leads(**l)).count();
            let pick = index(target.0.checked_shr(hop).unwrap_or(0)) % count.max(1);
            let link = machine.outgoing(at).iter().copied().filter(good).nth(pick);
            let link = link.expect("the distance decreases with each hop");
            up = up && self.is_up(machine, link);
            links.push(link.0);
            at = machine.link(link).target;
        }
        true
    }

    /// Distances of all cells to the target: first over down links only, then with up links before
    /// them.
    fn distances_to(&self, machine: &Machine, target: CellId) -> Vec<Distance> {
        let mut distances =
            vec![Distance { any: UNREACHABLE, down: UNREACHABLE }; machine.cell_count()];
        distances[target.index()] = Distance { any: 0, down: 0 };
        let mut queue = VecDeque::from([target]);
        while let Some(cell) = queue.pop_front() {
            let hops = distances[cell.index()].down + 1;
            for &link in machine.incoming(cell) {
                let from = &mut distances[machine.link(link).source.index()];
                if !self.is_up(machine, link) && from.down == UNREACHABLE {
                    (from.down, from.any) = (hops, hops);
                    queue.push_back(machine.link(link).source);
                }
            }
        }
        // An up link leads to a later cell, so the distances of later cells are final first.
        for &cell in self.order.iter().rev() {
            let ups = machine.outgoing(CellId(cell)).iter().filter(|l| self.is_up(machine, **l));
            let nearest = ups.map(|&l| distances[machine.link(l).target.index()].any).min();
            let hops = nearest.unwrap_or(UNREACHABLE).saturating_add(1);
            distances[index(cell)].any = distances[index(cell)].any.min(hops);
        }
        distances
    }
}

/// Levels of the cells above the leaves of a tree, including dead cells and links.
fn heights(machine: &Machine) -> Vec<u32> {
    let links = (0..machine.link_count()).map(|l| machine.link(LinkId::from_index(l)));
    let mut near = vec![Vec::new(); machine.cell_count()];
    for link in links {
        near[link.source.index()].push(link.target.0);
    }
    let mut heights = vec![UNREACHABLE; machine.cell_count()];
    let leaves = 0..to_u32(machine.agent_count());
    for leaf in leaves.clone() {
        heights[index(leaf)] = 0;
    }
    let mut queue: VecDeque<u32> = leaves.collect();
    while let Some(cell) = queue.pop_front() {
        for &next in &near[index(cell)] {
            if heights[index(next)] == UNREACHABLE {
                heights[index(next)] = heights[index(cell)] + 1;
                queue.push_back(next);
            }
        }
    }
    heights
}

/// The closeness of each cell to the root of its component; a larger number is closer.
fn nearness(machine: &Machine) -> Vec<u32> {
    let mut nearness = vec![0; machine.cell_count()];
    let mut back: Vec<CellId> = Vec::new();
    for root in machine.cells().filter(|&cell| machine.is_alive(cell)) {
        if nearness[root.index()] > 0 {
            continue;
        }
        nearness[root.index()] = UNREACHABLE;
        let mut queue = VecDeque::from([root]);
        while let Some(cell) = queue.pop_front() {
            back.clear();
            back.extend(machine.incoming(cell).iter().map(|&l| machine.link(l).source));
            back.sort_unstable();
            for &link in machine.outgoing(cell) {
                let next = machine.link(link).target;
                if nearness[next.index()] == 0 && back.binary_search(&next).is_ok() {
                    nearness[next.index()] = nearness[cell.index()] - 1;
                    queue.push_back(next);
                }
            }
        }
    }
    nearness
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::Parameters;

    fn routes(machine: &Machine) -> Vec<Vec<u32>> {
        let mut router = UpDownRouter::new(machine);
        let mut all = Vec::new();
        for source in machine.endpoints() {
            for target in machine.endpoints() {
                let mut links = Vec::new();
                assert!(router.route(machine, source, target, &mut links), "{source} {target}");
                let mut at = source;
                let mut down = false;
                for &link in &links {
                    let ends = machine.link(LinkId(link));
                    assert_eq!(ends.source, at);
                    at = ends.target;
                    let up = router.is_up(machine, LinkId(link));
                    assert!(!(up && down), "{source} {target}: up again");
                    down |= !up;
                }
                assert_eq!(at, target);
                all.push(links);
            }
        }
        all
    }

    #[test]
    fn a_fat_tree_has_shortest_routes_over_all_its_top_switches() {
        let counts = [1usize, 4, 5, 64];
        // All messages to a leaf reach it over one of its links: the target's number alone selects
        // the way up, and with it the way down.
        let trees = [("1.2", 0), ("2.2.2.4", 64)];
        for (leaves, (parents, left)) in counts.into_iter().flat_map(|n| trees.map(|t| (n, t))) {
            let machine = Machine::from_spec(&format!("fat-tree:{leaves}/{parents}")).unwrap();
            let hops: Vec<Vec<u32>> = machine.endpoints().map(|c| machine.hops_from(c)).collect();
            let mut used = vec![false; machine.link_count()];
            for (row, links) in routes(&machine).iter().enumerate() {
                let (source, target) = (row / leaves, row % leaves);
                assert_eq!(links.len() as u32, hops[source][target]);
                links.iter().for_each(|&l| used[index(l)] = true);
            }
            let unused = used.iter().filter(|u| !**u).count();
            assert!(leaves != 64 || unused == left, "{parents}: {unused} links are never used");
        }
    }

    #[test]
    fn routes_avoid_dead_cells_and_components_are_separate() {
        let torus = Topology::Torus { dims: vec![4, 4] };
        let dead = vec![CellId(5), CellId(10)];
        let machine = Machine::new("holed", torus, Parameters::iwarp(), dead, vec![]).unwrap();
        routes(&machine);
        let pairs = vec![(0, 1), (1, 0), (2, 3), (3, 2)];
        let graph = Topology::Graph { cells: 5, switches: 0, links: pairs };
        let machine = Machine::new("two", graph, Parameters::iwarp(), vec![], vec![]).unwrap();
        let mut router = UpDownRouter::new(&machine);
        for (source, target, there) in [(0, 1, true), (3, 2, true), (0, 2, false), (4, 4, true)] {
            let found = router.route(&machine, CellId(source), CellId(target), &mut Vec::new());
            assert_eq!(found, there, "{source} {target}");
        }
    }

    /// From c2 to c4 lead as many links down to c6 and up again over c1 as go only down over c5.
    #[test]
    fn routes_that_go_down_do_not_rise_again() {
        let down = [(2, 6), (0, 1), (0, 2), (0, 3), (1, 6), (1, 4), (3, 5), (5, 4)];
        let up = [(2, 0), (6, 1), (1, 0), (3, 0), (6, 2), (4, 1), (5, 3), (4, 5)];
        let pairs = [&down[..], &up, &[(6, 5), (5, 6)]].concat();
        let graph = Topology::Graph { cells: 7, switches: 0, links: pairs };
        let machine = Machine::new("detour", graph, Parameters::iwarp(), vec![], vec![]).unwrap();
        routes(&machine);
    }

    /// The only route leads over the root, which has the least number.
    #[test]
    fn routes_of_a_graph_rise_to_its_root() {
        let pairs = vec![(1, 0), (0, 1), (0, 2), (2, 0), (2, 3), (3, 2)];
        let graph = Topology::Graph { cells: 4, switches: 0, links: pairs };
        let machine = Machine::new("path", graph, Parameters::iwarp(), vec![], vec![]).unwrap();
        let lengths: Vec<usize> = routes(&machine).iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 1, 1, 2, 1, 0, 2, 3, 1, 2, 0, 1, 2, 3, 1, 0]);
    }
}
