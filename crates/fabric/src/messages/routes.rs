//! Which way a message goes, and through which pool on each link.
//!
//! Routes are fixed by source and target (paper, section 4.3: deterministic, non-adaptive). A
//! route is a list of *rows*: row `link * pools + pool` is the channel at the far end of `link`
//! that pool `pool` has there. There is one channel per pool and link.
//!
//! Deadlock is prevented as Dally and Seitz do it: the channels are numbered so that every route
//! goes through them in ascending order, and then no ring of messages can wait for each other.
//!
//! * **Grids and hypercubes:** dimension after dimension, the first dimension first, the shorter
//!   way round, the positive way where both are equally long. On a mesh or a hypercube this alone
//!   is an ascending order. On a ring it is not: each ring has a *dateline* between its last and
//!   its first cell. A message enters every dimension in pool 0; the link that crosses the
//!   dateline and those after it are taken in pool 1. The order is: dimension, pool, place on the
//!   ring. (The paper's machine has three pools and says what two of them are for; the third is
//!   not modelled.)
//! * **Everything else** (fat-trees, graphs, and any machine with dead cells or links, where the
//!   one route of a pair may be gone): up, then down ([`super::updown`]), in pool 0.
//!
//! Switching datelines off leaves all in pool 0. Rings then deadlock, which is how the detection
//! of deadlocks is tested.

use conset_ir::{CellId, LinkId, Machine};

use super::updown::UpDown;

/// Finds routes on one machine.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    ways: Ways,
    /// Channels per link.
    pub(crate) pools: u32,
}

#[derive(Clone, Debug)]
enum Ways {
    /// Sizes of the dimensions; whether they close to rings.
    Grid(Vec<u32>, bool),
    UpDown(Box<UpDown>),
}

impl Router {
    /// O(1) for grids, O(cells + links) for the rest.
    pub(crate) fn new(machine: &Machine, datelines: bool) -> Self {
        let whole = machine.dead_cells().is_empty() && machine.dead_links().is_empty();
        match machine.topology().dims().filter(|_| whole) {
            Some(dims) => {
                let wraps = machine.topology().wraps();
                Self { ways: Ways::Grid(dims, wraps), pools: 1 + u32::from(wraps && datelines) }
            }
            None => Self { ways: Ways::UpDown(Box::new(UpDown::new(machine))), pools: 1 },
        }
    }

    /// Writes the rows of the route into `rows`; `false` if there is no route. Both cells must be
    /// live.
    pub(crate) fn route(
        &mut self,
        machine: &Machine,
        source: CellId,
        target: CellId,
        rows: &mut Vec<u32>,
    ) -> bool {
        rows.clear();
        match &mut self.ways {
            Ways::UpDown(ways) => ways.route(machine, source, target, rows),
            Ways::Grid(dims, wraps) => {
                let mut at = source.0;
                let mut stride = 1;
                for &size in &*dims {
                    let grid = Axis { size, stride, wraps: *wraps };
                    at = grid.route(machine, at, target.0, self.pools, rows);
                    stride *= size;
                }
                true
            }
        }
    }
}

/// One dimension.
#[derive(Clone, Copy, Debug)]
struct Axis {
    size: u32,
    stride: u32,
    wraps: bool,
}

impl Axis {
    /// Goes from cell `at` to the coordinate that `target` has in this dimension; returns the
    /// cell it comes to.
    fn route(
        self,
        machine: &Machine,
        at: u32,
        target: u32,
        pools: u32,
        rows: &mut Vec<u32>,
    ) -> u32 {
        let Self { size, stride, wraps } = self;
        let (mut from, to) = (at / stride % size, target / stride % size);
        let base = at - from * stride;
        let ahead = (to + size - from) % size;
        let back = size - ahead;
        let positive = if wraps { ahead <= back } else { to > from };
        let mut pool = 0;
        while from != to {
            let next = if positive { (from + 1) % size } else { (from + size - 1) % size };
            let crosses = if positive { next == 0 } else { from == 0 };
            if crosses {
                pool = pools - 1;
            }
            let link = first_link(machine, base + from * stride, base + next * stride);
            rows.push(link.0 * pools + pool);
            from = next;
        }
        base + to * stride
    }
}

/// The link between neighbours. Of the two parallel links in a ring of two the first is the
/// positive one, and no route takes the other: both ways are equally long.
fn first_link(machine: &Machine, from: u32, to: u32) -> LinkId {
    let mut links = machine.links_between(CellId(from), CellId(to));
    links.next().expect("neighbours in a grid without holes")
}
