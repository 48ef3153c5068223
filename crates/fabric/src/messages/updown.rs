//! Up*/down* routes: where a machine has no coordinates, or holes in them.
//!
//! Cells are put in an order, and a link that leads to a later one goes *up*, any other *down*. A
//! route goes up as far as it likes, then down, and never up again, so the channels it takes
//! ascend in the order "up links by height, then down links by depth", and no ring of messages
//! can wait for each other.
//!
//! * In a fat-tree the order is the height over the leaves, then the number. Every shortest route
//!   is up and down.
//! * Otherwise it is nearness to the first live cell over links that come in both directions, for
//!   each part that those connect, then the number. Within a part every pair has a route (over the
//!   first cell, if need be); it may be longer than the shortest. A pair that only one-way links
//!   connect may have none, and the message is refused.
//!
//! The route is a shortest one of its kind. Of several next links that are equally good, the
//! target's number picks one (`target >> hops` modulo their count), so that a fat-tree's many
//! parallel ways are all used and the route is still fixed by its ends.

use std::collections::{BTreeMap, VecDeque};

use conset_ir::{CellId, LinkId, Machine, Topology};

/// Distance of what cannot be reached.
const FAR: u32 = u32::MAX;
/// Distances kept, over all targets.
const KEPT: usize = 1 << 24;

/// Finds up*/down* routes; keeps the distances to the targets it has met.
#[derive(Clone, Debug)]
pub(crate) struct UpDown {
    /// The cells in order, and the place of each.
    order: Vec<u32>,
    place: Vec<u32>,
    distances: BTreeMap<CellId, Vec<Distance>>,
}

/// Hops from a cell to a target.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// By up links, then down links.
    any: u32,
    /// By down links alone.
    down: u32,
}

impl UpDown {
    /// Orders the cells. O(cells log cells + links).
    pub(crate) fn new(machine: &Machine) -> Self {
        let heights = match machine.topology() {
            Topology::FatTree { .. } => heights(machine),
            _ => nearness(machine),
        };
        let mut order: Vec<u32> = (0..machine.cell_count() as u32).collect();
        order.sort_by_key(|&cell| (heights[cell as usize], cell));
        let mut place = vec![0; order.len()];
        for (at, &cell) in order.iter().enumerate() {
            place[cell as usize] = at as u32;
        }
        Self { order, place, distances: BTreeMap::new() }
    }

    fn is_up(&self, machine: &Machine, link: LinkId) -> bool {
        let ends = machine.link(link);
        self.place[ends.target.index()] > self.place[ends.source.index()]
    }

    /// Appends the links of the route; `false` if there is none. O(cells + links) for a target
    /// that was not met before.
    pub(crate) fn route(
        &mut self,
        machine: &Machine,
        source: CellId,
        target: CellId,
        links: &mut Vec<u32>,
    ) -> bool {
        if !self.distances.contains_key(&target) {
            if self.distances.len() * self.place.len() >= KEPT {
                self.distances.clear();
            }
            let distances = self.distances_to(machine, target);
            self.distances.insert(target, distances);
        }
        let distances = &self.distances[&target];
        let (mut at, mut up) = (source, true);
        let left = |d: Distance, up: bool| if up { d.any } else { d.down };
        let length = left(distances[source.index()], true);
        if length == FAR {
            return false;
        }
        for hop in 0..length {
            let rest = length - hop - 1;
            let leads = |link: LinkId| {
                let rises = self.is_up(machine, link);
                let there = distances[machine.link(link).target.index()];
                (up || !rises) && left(there, rises) == rest
            };
            let good = |link: &LinkId| leads(*link);
            let count = machine.outgoing(at).iter().filter(|l| leads(**l)).count();
            let pick = target.0.checked_shr(hop).unwrap_or(0) as usize % count.max(1);
            let link = machine.outgoing(at).iter().copied().filter(good).nth(pick);
            let link = link.expect("distances go down hop by hop");
            up = up && self.is_up(machine, link);
            links.push(link.0);
            at = machine.link(link).target;
        }
        true
    }

    /// Backwards from the target: first down links alone, then up links in front of them.
    fn distances_to(&self, machine: &Machine, target: CellId) -> Vec<Distance> {
        let mut distances = vec![Distance { any: FAR, down: FAR }; machine.cell_count()];
        distances[target.index()] = Distance { any: 0, down: 0 };
        let mut queue = VecDeque::from([target]);
        while let Some(cell) = queue.pop_front() {
            let hops = distances[cell.index()].down + 1;
            for &link in machine.incoming(cell) {
                let from = &mut distances[machine.link(link).source.index()];
                if !self.is_up(machine, link) && from.down == FAR {
                    (from.down, from.any) = (hops, hops);
                    queue.push_back(machine.link(link).source);
                }
            }
        }
        // An up link leads to a later cell, so later cells are final before earlier ones.
        for &cell in self.order.iter().rev() {
            let ups = machine.outgoing(CellId(cell)).iter().filter(|l| self.is_up(machine, **l));
            let nearest = ups.map(|&l| distances[machine.link(l).target.index()].any).min();
            let hops = nearest.unwrap_or(FAR).saturating_add(1);
            distances[cell as usize].any = distances[cell as usize].any.min(hops);
        }
        distances
    }
}

/// Levels above the leaves of a fat-tree, dead parts or not.
fn heights(machine: &Machine) -> Vec<u32> {
    let links = (0..machine.link_count() as u32).map(|l| machine.link(LinkId(l)));
    let mut near = vec![Vec::new(); machine.cell_count()];
    for link in links {
        near[link.source.index()].push(link.target.0);
    }
    let mut heights = vec![FAR; machine.cell_count()];
    let leaves = 0..machine.agent_count() as u32;
    for leaf in leaves.clone() {
        heights[leaf as usize] = 0;
    }
    let mut queue: VecDeque<u32> = leaves.collect();
    while let Some(cell) = queue.pop_front() {
        for &next in &near[cell as usize] {
            if heights[next as usize] == FAR {
                heights[next as usize] = heights[cell as usize] + 1;
                queue.push_back(next);
            }
        }
    }
    heights
}

/// How near to the first live cell of its part each cell is, larger for nearer.
fn nearness(machine: &Machine) -> Vec<u32> {
    let mut nearness = vec![0; machine.cell_count()];
    let mut back: Vec<CellId> = Vec::new();
    for root in machine.cells().filter(|&cell| machine.is_alive(cell)) {
        if nearness[root.index()] > 0 {
            continue;
        }
        nearness[root.index()] = FAR;
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
        let mut ways = UpDown::new(machine);
        let mut all = Vec::new();
        for source in machine.endpoints() {
            for target in machine.endpoints() {
                let mut links = Vec::new();
                assert!(ways.route(machine, source, target, &mut links), "{source} {target}");
                let mut at = source;
                let mut down = false;
                for &link in &links {
                    let ends = machine.link(LinkId(link));
                    assert_eq!(ends.source, at);
                    at = ends.target;
                    let up = ways.is_up(machine, LinkId(link));
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
    fn a_fat_tree_is_crossed_by_shortest_routes_over_all_its_tops() {
        for leaves in [1, 4, 5, 64] {
            let machine = Machine::from_spec(&format!("fat-tree:{leaves}")).unwrap();
            let hops: Vec<Vec<u32>> = machine.endpoints().map(|c| machine.hops_from(c)).collect();
            let mut used = vec![false; machine.link_count()];
            for (row, links) in routes(&machine).iter().enumerate() {
                let (source, target) = (row / leaves, row % leaves);
                assert_eq!(links.len() as u32, hops[source][target]);
                links.iter().for_each(|&l| used[l as usize] = true);
            }
            let unused = used.iter().filter(|u| !**u).count();
            assert!(leaves != 64 || unused == 0, "{unused} links are never used");
        }
    }

    #[test]
    fn holes_are_walked_round_and_islands_are_refused() {
        let torus = Topology::Torus { dims: vec![4, 4] };
        let dead = vec![CellId(5), CellId(10)];
        let machine = Machine::new("holed", torus, Parameters::iwarp(), dead, vec![]).unwrap();
        routes(&machine);
        let pairs = vec![(0, 1), (1, 0), (2, 3), (3, 2)];
        let graph = Topology::Graph { cells: 5, switches: 0, links: pairs };
        let machine = Machine::new("two", graph, Parameters::iwarp(), vec![], vec![]).unwrap();
        let mut ways = UpDown::new(&machine);
        for (source, target, there) in [(0, 1, true), (3, 2, true), (0, 2, false), (4, 4, true)] {
            let found = ways.route(&machine, CellId(source), CellId(target), &mut Vec::new());
            assert_eq!(found, there, "{source} {target}");
        }
    }
}
