//! A block of phases: the occupancy of their channels, links and ports, one lane per phase.
//!
//! The numbers of a resource in all phases of a block lie side by side, in a cache line, so that a
//! search handles the phases together with vector instructions. Prices and loads have 16 bits:
//! loads are in 1024ths of the limit of their phase, and prices saturate.

use conset_ir::convert::index;

use super::shape::PhaseShape;
use crate::problem::Problem;

/// The number of lanes of a block.
pub(super) const LANES: usize = 32;

/// A number for each phase of a block.
pub(super) type Lanes = [i16; LANES];

/// The load that reaches the limit of a phase.
pub(super) const FULL: i16 = 1024;

/// The price of a lane that is no phase.
const CLOSED: i16 = 20_000;

/// The maximum history cost of a resource.
const HISTORY_LIMIT: i16 = 1500;

/// The number of streams at full rate for which an edge has room at most.
const CAPACITY_LIMIT: u16 = 7;

/// A connection with its phase and route.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) connection: u32,
    /// The lane of its phase.
    pub(super) lane: usize,
    /// The edges of its route.
    pub(super) edges: Vec<u32>,
    /// Whether it has a phase and a route. Otherwise it only belongs to the block.
    pub(super) is_placed: bool,
}

impl Member {
    /// The cells on its route, from the source to the target.
    pub(super) fn cells(&self, problem: &Problem<'_>) -> impl Iterator<Item = u32> {
        let source = problem.set.connections()[index(self.connection)].source.0;
        let heads = self.edges.iter().map(|&edge| problem.head(index(edge)));
        std::iter::once(source).chain(heads)
    }
}

/// What an overuse costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// The price of a channel more than a cell has.
    pub(super) channel: i16,
    /// The price of a load above the room of a link or port, for a quarter of a phase.
    pub(super) load: i16,
    /// What is added to the history cost of an overused resource after each pass.
    pub(super) history: i16,
}

/// Some phases of a plan in progress.
pub(super) struct Block {
    /// The clocks for which a link or port may be busy in each phase.
    limits: Vec<u64>,
    /// The load of the longest stream that is expected in each phase.
    longest: Lanes,
    /// 2^42 divided by the limits.
    reciprocals: Vec<u64>,
    capacity: i16,
    channel_uses: Vec<Lanes>,
    channel_history: Vec<Lanes>,
    channel_prices: Vec<Lanes>,
    /// The load that edges, and behind them ports, still have room for; negative if overused.
    room: Vec<Lanes>,
    load_history: Vec<Lanes>,
    pub(super) members: Vec<Member>,
}

/// The price of one more channel of a cell, if one more than it has costs `over_price`. It grows with the
/// channels in use, so that free channels remain everywhere.
fn channel_price(uses: i16, history: i16, capacity: i16, over_price: i16) -> i16 {
    let over = uses.saturating_add(1).saturating_sub(capacity);
    history.saturating_add(if over > 0 {
        over.saturating_mul(over_price)
    } else {
        3 * uses.max(0) / capacity
    })
}

impl Block {
    /// A block without members.
    fn new(problem: &Problem<'_>, shapes: &[PhaseShape]) -> Self {
        let mut closed = [0; LANES];
        closed[shapes.len()..].fill(CLOSED);
        let room = |&links: &u16| {
            let links = i16::try_from(links.clamp(1, CAPACITY_LIMIT)).unwrap_or(1);
            [FULL * links; LANES]
        };
        let edges = problem.capacity.iter().map(room);
        let limits: Vec<u64> = shapes.iter().map(|shape| shape.limit.max(1)).collect();
        let reciprocals: Vec<u64> = limits.iter().map(|limit| (1 << 42) / limit).collect();
        let mut longest = [FULL; LANES];
        for (row, shape) in shapes.iter().enumerate() {
            longest[row] = Self::load(shape.longest, reciprocals[row]);
        }
        // A stream takes as long as its links let it, so an agent has time for one of them.
        let ports = std::iter::repeat_n(longest, problem.port_count);
        let room: Vec<Lanes> = edges.chain(ports).collect();
        Self {
            longest,
            reciprocals,
            limits,
            capacity: i16::try_from(problem.channels).unwrap_or(i16::MAX / 4).min(i16::MAX / 4),
            channel_uses: vec![[0; LANES]; problem.cell_count()],
            channel_history: vec![[0; LANES]; problem.cell_count()],
            channel_prices: vec![closed; problem.cell_count()],
            load_history: vec![[0; LANES]; room.len()],
            room,
            members: Vec::new(),
        }
    }

    /// Adds to `prices` what streams cost in phases of shorter streams, and closes those in which
    /// they would be too long.
    pub(super) fn add_length_prices(&self, loads: &Lanes, prices: &mut Lanes) {
        for lane in 0..LANES {
            let longer = (loads[lane] - self.longest[lane]).max(0) << 1;
            let closed = if loads[lane] > FULL { CLOSED } else { 0 };
            prices[lane] = prices[lane].saturating_add(longer).saturating_add(closed);
        }
    }

    /// The number of phases.
    pub(super) fn lanes(&self) -> usize {
        self.limits.len()
    }

    /// The load of a stream of so many clocks in each phase.
    pub(super) fn loads(&self, clocks: u64) -> Lanes {
        let mut loads = [0; LANES];
        for (load, &reciprocal) in loads.iter_mut().zip(&self.reciprocals) {
            *load = Self::load(clocks, reciprocal);
        }
        loads
    }

    /// The clocks for which a link may be busy in a phase.
    pub(super) fn limit(&self, lane: usize) -> u64 {
        self.limits[lane]
    }

    /// The clocks of the longest stream that is expected in a phase.
    pub(super) fn longest(&self, lane: usize) -> u64 {
        self.limits[lane] * u64::from(self.longest[lane].unsigned_abs())
            / u64::from(FULL.unsigned_abs())
    }

    /// The number of such streams that follow each other on a link in a phase.
    pub(super) fn streams(&self, lane: usize) -> u64 {
        u64::from((FULL / self.longest[lane].max(1)).unsigned_abs())
    }

    /// The loads of a stream on its ports: a stream alone is never too long.
    pub(super) fn port_loads(&self, loads: &Lanes) -> Lanes {
        let mut loads = *loads;
        for (load, longest) in loads.iter_mut().zip(&self.longest) {
            *load = (*load).min(*longest);
        }
        loads
    }

    fn load(clocks: u64, reciprocal: u64) -> i16 {
        let load = (clocks.min(1 << 31)).saturating_mul(reciprocal) >> 32;
        i16::try_from(load).unwrap_or(2 * FULL).min(2 * FULL)
    }

    #[inline]
    pub(super) fn channel_prices(&self, cell: u32) -> &Lanes {
        &self.channel_prices[index(cell)]
    }

    /// Adds to `prices` what loads on an edge or port cost.
    #[inline]
    pub(super) fn add_load_prices(
        &self,
        resource: usize,
        loads: &Lanes,
        present: i16,
        prices: &mut Lanes,
    ) {
        let (room, history) = (&self.room[resource], &self.load_history[resource]);
        for lane in 0..LANES {
            prices[lane] = prices[lane]
                .saturating_add(over_price(loads[lane].saturating_sub(room[lane]), present))
                .saturating_add(history[lane]);
        }
    }

    /// The price of a load on an edge in one lane.
    pub(super) fn load_price(
        &self,
        resource: usize,
        lane: usize,
        loads: &Lanes,
        present: i16,
    ) -> i16 {
        let over = loads[lane].saturating_sub(self.room[resource][lane]);
        over_price(over, present).saturating_add(self.load_history[resource][lane])
    }

    /// Books a member of the block, or releases what it uses.
    ///
    /// Sums of tens of thousands of streams on a resource wrap. That is undone when they are
    /// released, and makes no plan wrong: [`super::eviction`] counts again.
    pub(super) fn book(
        &mut self,
        problem: &Problem<'_>,
        member: &Member,
        clocks: u64,
        prices: Prices,
        add: bool,
    ) {
        let lane = member.lane;
        let one = if add { 1 } else { -1 };
        let load = one * Self::load(clocks, self.reciprocals[lane]);
        let x = index(member.connection);
        let mut change = |cell: usize| {
            let uses = &mut self.channel_uses[cell][lane];
            *uses = uses.wrapping_add(one);
            let history = self.channel_history[cell][lane];
            self.channel_prices[cell][lane] =
                channel_price(*uses, history, self.capacity, prices.channel);
        };
        member.cells(problem).for_each(|cell| change(index(cell)));
        for &edge in &member.edges {
            let room = &mut self.room[index(edge)][lane];
            *room = room.wrapping_sub(load);
        }
        let longest = self.longest[lane];
        let load = load.clamp(-longest, longest);
        for port in used_ports(problem, x) {
            let room = &mut self.room[port][lane];
            *room = room.wrapping_sub(load);
        }
    }

    /// Removes members at the end of a negotiation, and returns their connections.
    pub(super) fn remove(&mut self, connections: &[u32]) -> Vec<u32> {
        let mut leaving = connections.to_vec();
        leaving.sort_unstable();
        self.members.retain(|member| leaving.binary_search(&member.connection).is_err());
        leaving
    }

    /// Whether a cell has more routes than channels in a lane.
    fn is_crowded(&self, cell: usize, lane: usize) -> bool {
        self.channel_uses[cell][lane] > self.capacity
    }

    /// Whether a cell of a member has more routes than channels.
    pub(super) fn lacks_channels(&self, problem: &Problem<'_>, member: &Member) -> bool {
        member.cells(problem).any(|cell| self.is_crowded(index(cell), member.lane))
    }

    /// Whether a resource of a member is overused.
    pub(super) fn is_in_conflict(&self, problem: &Problem<'_>, member: &Member) -> bool {
        let is_over = |resource: usize| self.room[resource][member.lane] < 0;
        self.lacks_channels(problem, member)
            || member.edges.iter().any(|&edge| is_over(index(edge)))
            || used_ports(problem, index(member.connection)).any(is_over)
    }

    /// Whether any cell has more routes than channels.
    pub(super) fn is_any_crowded(&self) -> bool {
        let is_crowded = |cell| (0..self.lanes()).any(|lane| self.is_crowded(cell, lane));
        (0..self.channel_uses.len()).any(is_crowded)
    }

    /// Raises the history cost of overused resources, and sets the prices of channels. Returns whether
    /// a resource is overused.
    pub(super) fn learn(&mut self, prices: Prices) -> bool {
        let mut is_overused = false;
        let lanes = self.lanes();
        let mut raise = |history: &mut i16, units: i16| {
            is_overused = true;
            *history = history.saturating_add(units.saturating_mul(prices.history));
            *history = (*history).min(HISTORY_LIMIT);
        };
        for (cell, uses) in self.channel_uses.iter().enumerate() {
            for (lane, &uses) in uses[..lanes].iter().enumerate() {
                let history = &mut self.channel_history[cell][lane];
                if uses > self.capacity {
                    raise(history, uses - self.capacity);
                }
                self.channel_prices[cell][lane] =
                    channel_price(uses, *history, self.capacity, prices.channel);
            }
        }
        for (room, history) in self.room.iter().zip(&mut self.load_history) {
            for (&room, history) in room[..lanes].iter().zip(history) {
                if room < 0 {
                    raise(history, 1);
                }
            }
        }
        is_overused
    }
}

/// What a load above the room of a link or port costs. (The product is below 2^15, because the price is
/// at most 256.)
#[inline]
fn over_price(over: i16, price: i16) -> i16 {
    (over.clamp(0, FULL - 1) >> 3).wrapping_mul(price) >> 5
}

/// The ports of a connection as resources: edges come before ports.
pub(super) fn used_ports(problem: &Problem<'_>, x: usize) -> impl Iterator<Item = usize> {
    let [source, target] = problem.ports[x].map(|port| problem.edge_count() + index(port));
    std::iter::once(source).chain((source != target).then_some(target))
}

/// The bytes of the blocks of so many phases.
pub(super) fn block_bytes(problem: &Problem<'_>, phases: usize) -> usize {
    let rows = 3 * problem.cell_count() + 2 * problem.resource_count();
    phases.div_ceil(LANES) * rows * std::mem::size_of::<Lanes>()
}

/// Divides phases into blocks of nearly equal size.
pub(super) fn blocks(problem: &Problem<'_>, shapes: &[PhaseShape]) -> Vec<Block> {
    let count = shapes.len().div_ceil(LANES).max(1);
    let cut = |row: usize| shapes.len() * row / count;
    (0..count).map(|row| Block::new(problem, &shapes[cut(row)..cut(row + 1)])).collect()
}
