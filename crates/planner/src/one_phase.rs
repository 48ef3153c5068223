//! All connections in one phase, on a network in which every route is the only one.
//!
//! In a network without cycles, such as that of a cluster, there is one way from a cell to another.
//! If its channels suffice for all connections at once, phases and routes are no longer a choice:
//! one phase costs one context switch, and to divide it only makes agents wait for each other. What
//! is left is the order of the streams at each agent, which the scheduler decides.
//!
//! Takes time in proportion to the cells and the lengths of all routes.

use conset_ir::ConnectionSet;
use conset_ir::convert::{index, to_u32};
use conset_partition_route::network::Network;

use crate::paths::Paths;

/// The mark of a cell that was not reached, and of the cell before a root.
const NONE: u32 = u32::MAX;

/// The only routes of all connections; `None` if the network has a cycle, a link without one in the
/// opposite direction, or no route for a connection, or if the channels of a cell do not suffice.
pub(super) fn paths(network: &Network, set: &ConnectionSet, channels: u32) -> Option<Paths> {
    let forest = Forest::new(network)?;
    let mut used = vec![0u32; network.cell_count()];
    let mut paths = Paths::with_capacity(set.len());
    let mut path = Vec::new();
    for connection in set.connections() {
        path.clear();
        if !forest.path(connection.source.0, connection.target.0, &mut path) {
            return None;
        }
        for &cell in &path {
            used[index(cell)] += 1;
            if used[index(cell)] > channels {
                return None;
            }
        }
        paths.push(path.iter().copied());
    }
    Some(paths)
}

/// A network without cycles: each component is a tree below one of its cells.
struct Forest {
    /// Per cell, the next cell towards the root of its tree.
    parent: Vec<u32>,
    depth: Vec<u32>,
}

impl Forest {
    /// Finds the trees by a search from each root; `None` if there is a cycle or a link of one direction.
    fn new(network: &Network) -> Option<Self> {
        let cells = network.cell_count();
        let mut this = Self { parent: vec![NONE; cells], depth: vec![NONE; cells] };
        let mut stack = Vec::new();
        // Every link of a forest is found twice: from the parent, and back from the child.
        let mut children = 0;
        for root in 0..to_u32(cells) {
            if this.depth[index(root)] != NONE {
                continue;
            }
            this.depth[index(root)] = 0;
            stack.push(root);
            while let Some(cell) = stack.pop() {
                let mut has_parent = false;
                for &next in network.outgoing().of(cell) {
                    if this.depth[index(next)] == NONE {
                        this.depth[index(next)] = this.depth[index(cell)] + 1;
                        this.parent[index(next)] = cell;
                        children += 1;
                        stack.push(next);
                    } else if this.parent[index(cell)] == next {
                        has_parent = true;
                    } else {
                        return None;
                    }
                }
                if !has_parent && this.parent[index(cell)] != NONE {
                    return None;
                }
            }
        }
        (network.outgoing().edge_count() == 2 * children).then_some(this)
    }

    /// Appends the cells from one cell to another; returns `false` if they are in different trees.
    fn path(&self, source: u32, target: u32, out: &mut Vec<u32>) -> bool {
        let (mut from, mut to) = (source, target);
        let mut back = Vec::new();
        while from != to {
            let (high, low) = (self.depth[index(from)], self.depth[index(to)]);
            if high >= low {
                out.push(from);
                from = self.parent[index(from)];
            }
            if low >= high {
                back.push(to);
                to = self.parent[index(to)];
            }
            if from == NONE || to == NONE {
                return false;
            }
        }
        out.push(from);
        out.extend(back.into_iter().rev());
        true
    }
}

#[cfg(test)]
mod tests {
    use conset_ir::{CellId, Connection, Machine, Parameters, Topology};

    use super::*;

    fn all_pairs(cells: u32) -> ConnectionSet {
        let ends = (0..cells).flat_map(|a| (0..cells).map(move |b| (a, b)));
        let connections = ends.map(|(a, b)| Connection::new(CellId(a), CellId(b), 1)).collect();
        ConnectionSet::new("all", connections).unwrap()
    }

    fn machine(topology: Topology) -> Machine {
        Machine::new("m", topology, Parameters::iwarp(), vec![], vec![]).unwrap()
    }

    #[test]
    fn paths_of_trees_are_shortest_paths() {
        for spec in ["cluster:7", "cluster:3x4", "cluster:1x5", "mesh:6", "fat-tree:4", "ring:1"] {
            let machine = Machine::from_spec(spec).unwrap();
            let set = all_pairs(machine.agent_count() as u32);
            let paths = paths(&Network::new(&machine), &set, 1 << 24).unwrap();
            for (row, connection) in set.connections().iter().enumerate() {
                let path = paths.of(row);
                let hops = machine.hops_from(connection.source)[connection.target.index()];
                assert_eq!(path.len(), hops as usize + 1, "{spec}: {path:?}");
                let ends = [path[0], path[path.len() - 1]].map(CellId);
                assert_eq!(ends, [connection.source, connection.target]);
                for hop in path.windows(2) {
                    assert!(machine.links_between(CellId(hop[0]), CellId(hop[1])).next().is_some());
                }
            }
        }
    }

    #[test]
    fn a_choice_of_routes_or_too_few_channels_are_declined() {
        for spec in ["ring:3", "mesh:2x2", "hypercube:2", "torus:4x4", "fat-tree:16"] {
            let machine = Machine::from_spec(spec).unwrap();
            assert!(paths(&Network::new(&machine), &all_pairs(2), 1 << 24).is_none(), "{spec}");
        }
        let graph = |links| machine(Topology::Graph { cells: 4, switches: 0, links });
        let (there, back) = ([(0, 1), (1, 2)], [(1, 0), (2, 1)]);
        let one_way = graph([&there[..], &back[..1]].concat());
        assert!(paths(&Network::new(&one_way), &all_pairs(2), 9).is_none(), "c1 -> c2 only");
        let parts = Network::new(&graph([there, back].concat()));
        assert!(paths(&parts, &all_pairs(3), 9).is_some());
        assert!(paths(&parts, &all_pairs(4), 99).is_none(), "no route to c3");
        // Of nine routes, c1 has all but those of c0 and c2 to themselves.
        let few = |channels| paths(&parts, &all_pairs(3), channels).is_none();
        assert_eq!([6, 7].map(few), [true, false]);
    }

    #[test]
    fn parallel_links_are_one_way() {
        let links = vec![(0, 1), (0, 1), (1, 0)];
        let parallel = machine(Topology::Graph { cells: 2, switches: 0, links });
        assert!(paths(&Network::new(&parallel), &all_pairs(2), 9).is_some());
    }
}
