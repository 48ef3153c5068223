//! The expected load of cells and links before connections are routed.
//!
//! A router that balances loads divides connections about evenly among their shortest routes. So a
//! connection is booked in two halves: on a grid along the dimensions in ascending and in
//! descending order (and both ways around a ring if they are equally long), on a graph over two of
//! its shortest paths. In a fat-tree all switches of a group are equivalent, so a group is one
//! resource with the channels and links of all its switches, and the booking is exact. In a graph
//! too large for a table of hops only the endpoints are known.

use conset_ir::Machine;
use conset_ir::convert::{index, to_u32};

use super::metric::{Metric, levels_up};
use crate::network::{Grid, Network};

/// Halves of a connection: what a connection without alternatives books on a resource.
pub(super) const WHOLE: u32 = 2;

/// The resources of a machine, and the resources between any two cells.
pub(super) struct ExpectedLoad<'a> {
    network: &'a Network,
    metric: &'a Metric,
    /// The distance in cell numbers between neighbours of a dimension.
    strides: Vec<u32>,
    /// The first resource of each level of a fat-tree; leaves are level 0.
    levels: Vec<u32>,
    /// The number of cells (or switches of a group) of each resource.
    pub(super) cells: Vec<u32>,
    /// The number of links of each resource.
    pub(super) links: Vec<u32>,
}

impl<'a> ExpectedLoad<'a> {
    /// The resources of a machine.
    pub(super) fn new(machine: &Machine, network: &'a Network, metric: &'a Metric) -> Self {
        let mut this = Self {
            network,
            metric,
            strides: Vec::new(),
            levels: Vec::new(),
            cells: vec![1; network.cells],
            links: Vec::new(),
        };
        match metric {
            Metric::Grid(grid) => {
                let mut stride = 1u32;
                for &size in grid.dims() {
                    this.strides.push(stride);
                    stride = stride.saturating_mul(size);
                }
                this.links = vec![1; network.cells * 2 * grid.dims().len()];
            }
            Metric::Tree(_) => this.add_levels(machine),
            Metric::Table { .. } => this.links.clone_from(&network.links),
            Metric::Unknown => {}
        }
        this
    }

    /// A resource for each group of each level, with all its nodes and its links upwards.
    fn add_levels(&mut self, machine: &Machine) {
        self.cells.clear();
        for level in machine.topology().tree_levels() {
            self.levels.push(to_u32(self.cells.len()));
            self.cells.extend(std::iter::repeat_n(to_u32(level.nodes), level.groups));
            self.links.extend(std::iter::repeat_n(to_u32(level.links_up()), 2 * level.groups));
        }
    }

    /// Visits every resource between two cells: calls `cell(resource, halves)` for channels,
    /// including those of both ends, and `link(resource, halves)` for links.
    pub(super) fn visit_resources(
        &self,
        from: u32,
        to: u32,
        mut cell: impl FnMut(u32, u32),
        mut link: impl FnMut(u32, u32),
    ) {
        if from == to {
            cell(from, WHOLE);
            return;
        }
        match self.metric {
            Metric::Grid(grid) => self.along_dimensions(from, to, grid, &mut cell, &mut link),
            Metric::Tree(leaves) => self.through_groups(from, to, leaves, &mut cell, &mut link),
            Metric::Table { hops, cells } => {
                let left = |at: u32| hops[index(at) * cells + index(to)];
                if usize::from(left(from)) < *cells {
                    self.shortest_path(from, to, left, false, &mut cell, &mut link);
                    self.shortest_path(from, to, left, true, &mut cell, &mut link);
                }
            }
            Metric::Unknown => {
                cell(from, WHOLE);
                cell(to, WHOLE);
            }
        }
    }

    fn along_dimensions(
        &self,
        from: u32,
        to: u32,
        grid: &Grid,
        cell: &mut impl FnMut(u32, u32),
        link: &mut impl FnMut(u32, u32),
    ) {
        let (a, b) = (grid.of(from), grid.of(to));
        let (dims, wraps) = (grid.dims(), grid.wraps());
        let differing = a.iter().zip(b).filter(|(a, b)| a != b).count();
        let halfway = |d: usize| wraps && a[d].abs_diff(b[d]) * 2 == dims[d];
        let choice = differing > 1 || (0..dims.len()).any(halfway);
        let halves = if choice { 1 } else { WHOLE };
        let dimensions = to_u32(dims.len());
        for second in 0..if choice { 2 } else { 1 } {
            let mut here = from;
            cell(here, halves);
            for row in 0..dims.len() {
                let d = if second == 1 { dims.len() - 1 - row } else { row };
                let dimension = to_u32(d);
                let apart = a[d].abs_diff(b[d]);
                // If both ways around are equally long, each half takes one.
                let round = wraps && (apart * 2 > dims[d] || apart * 2 == dims[d] && second == 1);
                let up = (b[d] > a[d]) != round;
                let steps = if round { dims[d] - apart } else { apart };
                let mut position = a[d];
                for _ in 0..steps {
                    link((here * dimensions + dimension) * 2 + u32::from(up), halves);
                    let stride = self.strides[d];
                    if up {
                        let last = position + 1 == dims[d];
                        here = if last { here - position * stride } else { here + stride };
                        position = if last { 0 } else { position + 1 };
                    } else {
                        let first = position == 0;
                        here = if first { here + (dims[d] - 1) * stride } else { here - stride };
                        position = if first { dims[d] - 1 } else { position - 1 };
                    }
                    cell(here, halves);
                }
            }
        }
    }

    fn through_groups(
        &self,
        from: u32,
        to: u32,
        leaves: &[u32],
        cell: &mut impl FnMut(u32, u32),
        link: &mut impl FnMut(u32, u32),
    ) {
        let top = levels_up(leaves, from, to);
        for (first, leaves) in self.levels.iter().zip(leaves).take(top) {
            let group = |leaf: u32| first + leaf / leaves;
            for (down, leaf) in [from, to].into_iter().enumerate() {
                cell(group(leaf), WHOLE);
                link(2 * group(leaf) + to_u32(down), WHOLE);
            }
        }
        // The last level is one group, and `leaves` does not list it.
        let group = leaves.get(top).map_or(0, |leaves| from / leaves);
        cell(self.levels[top] + group, WHOLE);
    }

    /// A shortest path: from each cell to the first, or the last, neighbour that is nearer.
    fn shortest_path(
        &self,
        from: u32,
        to: u32,
        left: impl Fn(u32) -> u16,
        last: bool,
        cell: &mut impl FnMut(u32, u32),
        link: &mut impl FnMut(u32, u32),
    ) {
        let next = &self.network.next;
        let mut here = from;
        cell(here, 1);
        while here != to {
            let nearer = |edge: &usize| left(next.head(*edge)) < left(here);
            let mut edges = next.edges(here);
            let edge = if last { edges.rfind(nearer) } else { edges.find(nearer) };
            // There always is one in a table of hops.
            let Some(edge) = edge else { return };
            link(to_u32(edge), 1);
            here = next.head(edge);
            cell(here, 1);
        }
    }
}
