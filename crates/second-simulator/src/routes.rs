//! Routes of messages (rules R1, R3 and R4).

use std::cmp::Reverse;
use std::collections::VecDeque;

use conset_ir::convert::index;
use conset_ir::{Machine, Topology};

use crate::wiring::Wiring;

/// The routes of a machine.
pub struct Routes<'a> {
    topology: &'a Topology,
    wiring: &'a Wiring,
    /// The sizes of a grid without dead cells and links; else routes are up*/down*.
    grid: Option<Vec<usize>>,
    /// The place of each cell in the order of R4; cells with a smaller place are earlier.
    places: Vec<usize>,
}

impl<'a> Routes<'a> {
    /// The routes of a machine with this wiring.
    pub fn new(machine: &'a Machine, wiring: &'a Wiring) -> Self {
        let topology = machine.topology();
        let grid = match topology {
            Topology::Torus { dims } | Topology::Mesh { dims } => {
                Some(dims.iter().map(|&d| index(d)).collect())
            }
            Topology::Ring { cells } => Some(vec![index(*cells)]),
            Topology::Hypercube { dimension } => Some(vec![2; index(*dimension)]),
            _ => None,
        };
        let grid = grid.filter(|_| wiring.is_whole());
        Self { topology, wiring, grid, places: places(topology, wiring) }
    }

    /// The number of pools (R1).
    pub fn pools(&self) -> usize {
        1 + usize::from(wraps(self.topology) && self.grid.is_some())
    }

    /// The links of the route between two cells, each with the pool of its channel; `None` if there
    /// is no route.
    pub fn route(&self, source: usize, target: usize) -> Option<Vec<(usize, usize)>> {
        match &self.grid {
            Some(dims) => Some(self.grid_route(dims, source, target)),
            None => self.up_down_route(source, target),
        }
    }

    /// R3.
    fn grid_route(&self, dims: &[usize], source: usize, target: usize) -> Vec<(usize, usize)> {
        let wraps = wraps(self.topology);
        let (mut at, mut stride, mut route) = (source, 1, Vec::new());
        for &d in dims {
            let (mut a, b) = (at / stride % d, target / stride % d);
            let forward = (b + d - a) % d;
            let is_positive = if wraps { forward <= d - forward } else { b > a };
            let mut pool = 0;
            while a != b {
                let next = if is_positive { (a + 1) % d } else { (a + d - 1) % d };
                if wraps && (if is_positive { next } else { a }) == 0 {
                    pool = 1;
                }
                let neighbour = at - a * stride + next * stride;
                let mut links = self.wiring.outgoing[at].iter();
                let joins = |link: &&usize| self.wiring.links[**link].1 == neighbour;
                route.push((*links.find(joins).expect("neighbours are joined"), pool));
                (at, a) = (neighbour, next);
            }
            stride *= d;
        }
        route
    }

    /// R4.
    fn up_down_route(&self, source: usize, target: usize) -> Option<Vec<(usize, usize)>> {
        let (links, outgoing) = (&self.wiring.links, &self.wiring.outgoing);
        let is_up = |link: usize| self.places[links[link].1] > self.places[links[link].0];
        let cells = self.places.len();
        let mut by_place = vec![0; cells];
        (0..cells).for_each(|cell| by_place[self.places[cell]] = cell);
        // One more than the least of the next cells over links of one direction.
        let over = |cell: usize, up: bool, distance: &[Option<usize>]| {
            let next = outgoing[cell].iter().filter(|&&link| is_up(link) == up);
            next.filter_map(|&link| distance[links[link].1]).min().map(|d| d + 1)
        };
        let mut down: Vec<Option<usize>> = vec![None; cells];
        for &cell in &by_place {
            down[cell] = if cell == target { Some(0) } else { over(cell, false, &down) };
        }
        let mut up: Vec<Option<usize>> = vec![None; cells];
        for &cell in by_place.iter().rev() {
            up[cell] = over(cell, true, &up).into_iter().chain(down[cell]).min();
        }

        let length = up[source]?;
        let (mut at, mut went_down, mut route) = (source, false, Vec::new());
        for hop in 0..length {
            let rest = Some(length - hop - 1);
            let fits = |link: &&usize| match is_up(**link) {
                true => !went_down && up[links[**link].1] == rest,
                false => down[links[**link].1] == rest,
            };
            let candidates: Vec<usize> = outgoing[at].iter().filter(fits).copied().collect();
            let bits = u32::try_from(hop).ok().and_then(|hop| target.checked_shr(hop));
            let link = candidates[bits.unwrap_or(0) % candidates.len()];
            went_down |= !is_up(link);
            route.push((link, 0));
            at = links[link].1;
        }
        Some(route)
    }
}

fn wraps(topology: &Topology) -> bool {
    matches!(topology, Topology::Torus { .. } | Topology::Ring { .. })
}

/// The place of each cell in the order of R4; cells with a smaller place are earlier.
fn places(topology: &Topology, wiring: &Wiring) -> Vec<usize> {
    let cells = wiring.live_cells.len();
    if matches!(topology, Topology::FatTree { .. } | Topology::Cluster { .. }) {
        // The numbers of cells are by level, then by number.
        return (0..cells).collect();
    }
    let is_live = |from: usize, to: usize| {
        wiring.outgoing[from].iter().any(|&link| wiring.links[link].1 == to)
    };
    let mut distance = vec![None; cells];
    for root in (0..cells).filter(|&cell| wiring.live_cells[cell]) {
        if distance[root].is_some() {
            continue;
        }
        distance[root] = Some(0);
        let mut queue = VecDeque::from([root]);
        while let Some(cell) = queue.pop_front() {
            for next in 0..cells {
                if distance[next].is_none() && is_live(cell, next) && is_live(next, cell) {
                    distance[next] = distance[cell].map(|d: usize| d + 1);
                    queue.push_back(next);
                }
            }
        }
    }
    let mut sorted: Vec<usize> = (0..cells).collect();
    sorted.sort_by_key(|&cell| (wiring.live_cells[cell], Reverse(distance[cell]), cell));
    let mut places = vec![0; cells];
    sorted.into_iter().enumerate().for_each(|(place, cell)| places[cell] = place);
    places
}
