//! Message routes: the links of each route, and the pool on each link.
//!
//! Routes depend only on source and target (paper, section 4.3: deterministic, non-adaptive). A
//! route is a list of *rows*: row `link * pools + pool` is the channel of pool `pool` at the target
//! of `link`. There is one channel per pool and link.
//!
//! Deadlock is prevented by the method of Dally and Seitz: the channels are numbered so that every
//! route uses them in ascending order, and then no cycle of waiting messages can exist.
//!
//! * **Grids and hypercubes:** dimension order from the first dimension on, in each dimension the
//!   shorter direction, the positive one if both are equally long. On a mesh or a hypercube this
//!   alone is an ascending order. On a ring it is not: each ring has a *dateline* between its last
//!   and its first cell. A message enters every dimension in pool 0 and uses pool 1 on the link that
//!   crosses the dateline and on those after it. The order is: dimension, pool, position on the
//!   ring. (The paper's machine has three pools, of which the paper explains two; the third is not
//!   modelled.)
//! * **All other machines** (fat-trees, clusters, graphs, and machines with dead cells or links, on which the
//!   dimension-ordered route may be broken): up*/down* routes ([`super::updown`]) in pool 0.
//!
//! Without datelines all messages use pool 0. Rings can then deadlock, which tests of the deadlock
//! detection use.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, LinkId, Machine};

use super::updown::UpDownRouter;

/// The links of messages on one machine, for models of their time. Routes are found once for each
/// pair of cells, unless there are more than [`MessageRoutes::REMEMBERED`] pairs.
#[derive(Clone, Debug)]
pub struct MessageRoutes<'a> {
    machine: &'a Machine,
    router: Router,
    rows: Vec<u32>,
    /// Per pair of cells with agents, where its links are; [`UNKNOWN`] before its route is found.
    /// No rows on machines with more pairs.
    found: Vec<(u32, u32)>,
    links: Vec<LinkId>,
}

/// The place of a route that was not asked for yet, or that does not exist.
const UNKNOWN: (u32, u32) = (u32::MAX, 0);

impl<'a> MessageRoutes<'a> {
    /// The routes of a machine.
    pub fn new(machine: &'a Machine) -> Self {
        let agents = machine.agent_count();
        let pairs = agents.checked_mul(agents).filter(|&pairs| pairs <= Self::REMEMBERED);
        Self {
            machine,
            router: Router::new(machine, true),
            rows: Vec::new(),
            found: vec![UNKNOWN; pairs.unwrap_or(0)],
            links: Vec::new(),
        }
    }

    /// The greatest number of pairs of cells whose routes are remembered: those of 1448 cells.
    pub const REMEMBERED: usize = 1 << 21;

    /// The number of links of remembered routes after which no more are remembered.
    const REMEMBERED_LINKS: usize = 1 << 24;

    /// Appends the links from one live cell to another; returns `false` if messages have no route.
    pub fn links(&mut self, source: CellId, target: CellId, links: &mut Vec<LinkId>) -> bool {
        let pair = source.index() * self.machine.agent_count() + target.index();
        if let Some(&(start, end)) = self.found.get(pair).filter(|&&place| place != UNKNOWN) {
            links.extend_from_slice(&self.links[index(start)..index(end)]);
            return true;
        }
        if !self.router.route(self.machine, source, target, &mut self.rows) {
            return false;
        }
        let pools = self.router.pools;
        let route = self.rows.iter().map(|row| LinkId(row / pools));
        match self.found.get_mut(pair).filter(|_| self.links.len() < Self::REMEMBERED_LINKS) {
            None => links.extend(route),
            Some(place) => {
                let start = self.links.len();
                self.links.extend(route);
                *place = (to_u32(start), to_u32(self.links.len()));
                links.extend_from_slice(&self.links[start..]);
            }
        }
        true
    }
}

/// Finds routes on one machine.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    method: RoutingMethod,
    /// Channels per link.
    pub(crate) pools: u32,
}

#[derive(Clone, Debug)]
enum RoutingMethod {
    /// Dimension order: the sizes of the dimensions, and whether they are rings.
    Grid(Vec<u32>, bool),
    UpDown(Box<UpDownRouter>),
}

impl Router {
    /// O(1) for grids, O(cells + links) for the rest.
    pub(crate) fn new(machine: &Machine, datelines: bool) -> Self {
        let whole = machine.dead_cells().is_empty() && machine.dead_links().is_empty();
        match machine.topology().dims().filter(|_| whole) {
            Some(dims) => {
                let wraps = machine.topology().wraps();
                Self {
                    method: RoutingMethod::Grid(dims, wraps),
                    pools: 1 + u32::from(wraps && datelines),
                }
            }
            None => Self {
                method: RoutingMethod::UpDown(Box::new(UpDownRouter::new(machine))),
                pools: 1,
            },
        }
    }

    /// Replaces `rows` by the rows of the route; returns `false` if there is none. Both cells must
    /// be live.
    pub(crate) fn route(
        &mut self,
        machine: &Machine,
        source: CellId,
        target: CellId,
        rows: &mut Vec<u32>,
    ) -> bool {
        rows.clear();
        match &mut self.method {
            RoutingMethod::UpDown(router) => router.route(machine, source, target, rows),
            RoutingMethod::Grid(dims, wraps) => {
                let mut at = source.0;
                let mut stride = 1;
                for &size in &*dims {
                    let axis = Axis { size, stride, wraps: *wraps };
                    at = axis.route(machine, at, target.0, self.pools, rows);
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
    /// Appends the rows from cell `at` to the target's coordinate in this dimension; returns the cell
    /// reached.
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
        let forward = (to + size - from) % size;
        let backward = size - forward;
        let positive = if wraps { forward <= backward } else { to > from };
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

/// The link between neighbours. In a ring of two cells the first of the two parallel links is the
/// positive direction, and no route uses the other: both directions are equally long.
fn first_link(machine: &Machine, from: u32, to: u32) -> LinkId {
    let mut links = machine.links_between(CellId(from), CellId(to));
    links.next().expect("neighbours in a grid without holes")
}
