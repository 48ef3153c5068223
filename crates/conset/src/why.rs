//! Why a connection runs in this phase, over this route, from this clock on: what each of the
//! alternatives would have cost.
//!
//! The answer is worked out from the finished schedule alone, whoever made it. It is not the
//! story of the algorithm but a witness that anyone can check:
//!
//! * **phase**: for each other phase either the best way through it and the clocks that the cost
//!   model predicts if the connection moved there, or who stands in the way: full cells with the
//!   connections that fill them, connections that must run before or after, connections whose
//!   contract would be broken. [`apply`] carries out such a move.
//! * **route**: how short a route can be, and which other shortest ones have room in the phase.
//! * **start**: which slots of its two agents come before it, back to the phase's start.
//!
//! A connection that is split has one answer for each part. Everything is bounded: [`PHASES`]
//! other phases, one half the nearest with a free channel on both end cells, the rest the nearest, the best [`ROUTES`] of the first 256 shortest routes, the first
//! [`PARTS`] parts, some million route cells priced; what is left out is counted or marked.
//!
//! # What it does not do
//!
//! It moves one part and nothing else: that two connections could change places is not seen. The
//! cost model has no finish of a single stream, so a finish is the slot's planned end, at the
//! latest the predicted end of its phase.

mod price;
mod start;
mod ways;

use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, LinkId, Machine, PhaseId, PhaseRoutes, Routing,
    Timetable,
};
use conset_scheduler::Prediction;
use serde::Serialize;

use self::price::Price;
use self::start::Booked;
use self::ways::{Load, View};

pub use self::price::apply;
pub use self::start::{Start, Wait, WaitsAt};
pub use self::ways::{FullCell, Way};

/// Other phases that are tried: half of them the nearest with room on both end cells, if there
/// are so many, the rest the nearest.
pub const PHASES: usize = 32;
/// Other shortest routes that are listed.
pub const ROUTES: usize = 8;
/// Parts of a split connection that are explained.
pub const PARTS: usize = 4;
/// Cells of routes in all the phases that are priced for one part.
const BUDGET: usize = 1 << 22;

/// Why a connection is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The set's name.
    pub set: String,
    /// The connection.
    pub connection: ConnectionId,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The cell that sends.
    pub source: CellId,
    /// The cell that receives.
    pub target: CellId,
    /// Words of all parts.
    pub words: u32,
    /// Phases of the set.
    pub set_phases: usize,
    /// Predicted clocks of the set as it is, switches included.
    pub set_clocks: u64,
    /// Parts it is split into; 1 if it is not.
    pub parts_total: usize,
    /// The first parts, explained.
    pub parts: Vec<PartWhy>,
}

/// One part of a connection: a route of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The phase.
    pub phase: PhaseId,
    /// The route's row in it.
    pub row: usize,
}

/// Why one part is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartWhy {
    /// Which route of which phase it is.
    #[serde(flatten)]
    pub part: Part,
    /// Its words.
    pub words: u32,
    /// Predicted clocks of the phase as it is, without its switch.
    pub phase_clocks: u64,
    /// The other phases.
    pub phase_choices: PhaseChoices,
    /// Its route and the others.
    pub route: RouteWhy,
    /// Its start.
    pub start: Start,
}

/// What the other phases would cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseChoices {
    /// Other phases that were not tried, because there are too many.
    pub left_out: usize,
    /// Of all other phases, those with a free channel on both end cells.
    pub room_at_ends: usize,
    /// Those that were tried, in order.
    pub tried: Vec<PhaseChoice>,
}

/// Whether a phase or route could be taken instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Feasible; see `clocks`.
    Room,
    /// Cells on the way have no free channel.
    Full,
    /// Connections that come before or after by the set's order stand on the wrong side.
    Order,
    /// A required bandwidth or latency would not be kept.
    Contract,
    /// There is room, but the phase is too large to be priced here (or takes more clocks than
    /// can be counted); contracts were not looked at either.
    Unpriced,
}

/// A change of clocks, as the cost model predicts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Clocks {
    /// The phase that takes the part, without its switch.
    pub phase: u64,
    /// The whole set, switches included.
    pub set: u64,
    /// The whole set, against what it takes now.
    pub change: i64,
}

/// What it would be to run in another phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseChoice {
    /// The phase.
    pub phase: PhaseId,
    /// Whether it could be.
    pub verdict: Verdict,
    /// The best way through it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// Links of that way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<usize>,
    /// The most routes on a link of that way, itself included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sharing: Option<u32>,
    /// What it would cost, where there is room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The full cells in the way, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<FullCell>,
    /// The connections that order or contract is about, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<ConnectionId>,
}

/// A part's route, and the other shortest ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteWhy {
    /// The cells in order.
    pub cells: Vec<CellId>,
    /// The channel on each.
    pub channels: Vec<ChannelId>,
    /// Its links.
    pub links: Vec<LinkId>,
    /// The fewest links a route can have on this machine.
    pub shortest_hops: u32,
    /// The most channels taken on one of its cells, its own included.
    pub max_channels: u32,
    /// The most routes on one of its links, itself included.
    pub max_sharing: u32,
    /// Shortest routes of the machine that differ in a cell (up to 2^64 - 1).
    pub shortest_count: u64,
    /// How many of them were looked at.
    pub looked_at: usize,
    /// How many of those have room in the phase (the part's own channels counted as free).
    pub with_room: usize,
    /// The best others, those with room and little sharing first.
    pub others: Vec<RouteChoice>,
}

/// Another shortest route in the same phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteChoice {
    /// The cells in order.
    pub cells: Vec<CellId>,
    /// The route with channels, if it could be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// Whether it could be.
    pub verdict: Verdict,
    /// The most channels taken on one of its cells, its own included.
    pub max_channels: u32,
    /// The most routes on one of its links, itself included.
    pub max_sharing: u32,
    /// What it would cost, where there is room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The full cells of it, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<FullCell>,
    /// The connections whose contract would be broken, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<ConnectionId>,
}

/// Explains a connection of a verified timetable with its prediction; `None` if the set has no
/// such connection.
///
/// O(routes x hops) to find it, O(cells + links + hops of the phase) for each phase tried, and
/// the scheduler's and the cost model's time for each change priced.
pub fn why(timetable: &Timetable, prediction: &Prediction, x: ConnectionId) -> Option<Why> {
    let routing = timetable.routing();
    let set = routing.set();
    let connection = set.connections().get(x.index())?;
    let order = Allowed::of(routing, x);
    let rows: Vec<Part> = routing
        .iter()
        .flat_map(|(phase, routes)| {
            let own = routes.iter().enumerate().filter(|(_, route)| route.connection == x);
            own.map(move |(row, _)| Part { phase, row })
        })
        .collect();
    let asked = Asked { timetable, prediction, x, order };
    Some(Why {
        set: set.name().to_owned(),
        connection: x,
        name: connection.name.as_deref().map(str::to_owned),
        source: connection.source,
        target: connection.target,
        words: connection.words,
        set_phases: routing.phases().len(),
        set_clocks: prediction.clocks,
        parts_total: rows.len(),
        parts: rows.into_iter().take(PARTS).map(|part| asked.part(part)).collect(),
    })
}

/// Connections that a witness names.
const NAMED: usize = 8;

/// Between which phases the set's order allows a connection.
struct Allowed {
    /// Connections that come before, each with its last phase.
    before: Vec<(ConnectionId, PhaseId)>,
    /// Connections that come after, each with its first phase.
    after: Vec<(ConnectionId, PhaseId)>,
}

impl Allowed {
    fn of(routing: &Routing, x: ConnectionId) -> Self {
        let order = routing.set().order();
        // The pairs are sorted, so both lists are.
        let mut before: Vec<(ConnectionId, PhaseId)> =
            order.iter().filter(|pair| pair.1 == x).map(|pair| (pair.0, PhaseId(0))).collect();
        let mut after: Vec<(ConnectionId, PhaseId)> = order
            .iter()
            .filter(|pair| pair.0 == x)
            .map(|pair| (pair.1, PhaseId(u32::MAX)))
            .collect();
        if before.is_empty() && after.is_empty() {
            return Self { before, after };
        }
        for (phase, routes) in routing.iter() {
            for route in routes.iter() {
                if let Ok(row) = before.binary_search_by_key(&route.connection, |b| b.0) {
                    before[row].1 = phase;
                }
                if let Ok(row) = after.binary_search_by_key(&route.connection, |a| a.0) {
                    after[row].1 = after[row].1.min(phase);
                }
            }
        }
        Self { before, after }
    }

    /// The connections that would be on the wrong side, the first few.
    fn in_the_way(&self, phase: PhaseId) -> Vec<ConnectionId> {
        let late = self.before.iter().filter(|(_, last)| *last > phase);
        let early = self.after.iter().filter(|(_, first)| *first < phase);
        late.chain(early).map(|&(id, _)| id).take(NAMED).collect()
    }
}

/// The question.
struct Asked<'a> {
    timetable: &'a Timetable,
    prediction: &'a Prediction,
    x: ConnectionId,
    order: Allowed,
}

impl Asked<'_> {
    fn part(&self, part: Part) -> PartWhy {
        let routing = self.timetable.routing();
        let routes = &routing.phases()[part.phase.index()];
        let (mut phase_choices, mut route) = (self.phases(part), self.routes(part));
        self.price(part, &mut phase_choices.tried, &mut route.others);
        PartWhy {
            part,
            words: routes.get(part.row).words,
            phase_clocks: self.prediction.phases[part.phase.index()].clocks,
            phase_choices,
            route,
            start: Booked {
                machine: routing.machine(),
                set: routing.set(),
                routes,
                times: &self.timetable.phases()[part.phase.index()],
            }
            .start(part.row),
        }
    }

    /// The other phases that are worth a try, without prices.
    fn phases(&self, part: Part) -> PhaseChoices {
        let routing = self.timetable.routing();
        let mut near: Vec<(bool, PhaseId)> = routing
            .iter()
            .filter(|(phase, _)| *phase != part.phase)
            .map(|(phase, routes)| (self.has_room_at_ends(routes), phase))
            .collect();
        let room_at_ends = near.iter().filter(|(has_room, _)| *has_room).count();
        near.sort_by_key(|(_, p)| (p.0.abs_diff(part.phase.0), p.0));
        let (with_room, full): (Vec<_>, Vec<_>) = near.iter().partition(|(has_room, _)| *has_room);
        let first = with_room.len().min(PHASES / 2);
        let mut rest = [&with_room[first..], full.as_slice()].concat();
        rest.sort_by_key(|(_, p)| (p.0.abs_diff(part.phase.0), p.0));
        let chosen = with_room[..first].iter().chain(&rest).take(PHASES);
        let mut chosen: Vec<PhaseId> = chosen.map(|&(_, phase)| phase).collect();
        chosen.sort_unstable();
        PhaseChoices {
            left_out: near.len() - chosen.len(),
            room_at_ends,
            tried: chosen.into_iter().map(|phase| self.phase(phase)).collect(),
        }
    }

    /// Whether the connection's end cells have a free channel.
    fn has_room_at_ends(&self, routes: &PhaseRoutes) -> bool {
        let routing = self.timetable.routing();
        let connection = routing.set().get(self.x);
        let mut used = [0u32; 2];
        for cell in routes.iter().flat_map(|route| route.cells) {
            used[0] += u32::from(*cell == connection.source);
            used[1] += u32::from(*cell == connection.target);
        }
        used.into_iter().all(|used| used < routing.machine().parameters().channels_per_cell)
    }

    fn phase(&self, phase: PhaseId) -> PhaseChoice {
        let routing = self.timetable.routing();
        let connection = routing.set().get(self.x);
        let mut choice = PhaseChoice {
            phase,
            verdict: Verdict::Order,
            way: None,
            hops: None,
            max_sharing: None,
            clocks: None,
            full: Vec::new(),
            blocked_by: self.order.in_the_way(phase),
        };
        if !choice.blocked_by.is_empty() {
            return choice;
        }
        let view = View::new(routing.machine(), &routing.phases()[phase.index()], None);
        match view.find(connection.source, connection.target) {
            Ok(way) => {
                choice.verdict = Verdict::Room;
                choice.hops = Some(way.links.len());
                choice.max_sharing = Some(view.load.sharing_with(&way.links));
                choice.way = Some(way);
            }
            Err(full) => {
                choice.verdict = Verdict::Full;
                choice.full = full;
            }
        }
        choice
    }

    /// The part's route and the other shortest ones, without prices.
    fn routes(&self, part: Part) -> RouteWhy {
        let routing = self.timetable.routing();
        let connection = routing.set().get(self.x);
        let routes = &routing.phases()[part.phase.index()];
        let own = routes.get(part.row);
        let view = View::new(routing.machine(), routes, Some(part.row));
        let shortest = ways::shortest(&view, connection.source, connection.target);
        let (shortest_hops, shortest_count, all) =
            shortest.map_or((own.hops() as u32, 0, Vec::new()), |s| (s.hops, s.count, s.routes));
        let looked_at = all.len();
        let mut keyed = Vec::with_capacity(looked_at);
        for (cells, links) in all {
            let full = view.full_cells(&cells).len();
            let sharing = view.load.sharing_with(&links);
            let sum: u64 = links.iter().map(|l| u64::from(view.load.links[l.index()])).sum();
            keyed.push(((full, sharing, sum), cells, links));
        }
        let with_room = keyed.iter().filter(|(key, ..)| key.0 == 0).count();
        // Stable, so equals stay in the order of their cells.
        keyed.sort_by_key(|(key, ..)| *key);
        let others = keyed
            .into_iter()
            .filter(|(_, cells, _)| cells != own.cells)
            .take(ROUTES)
            .map(|((full, sharing, _), cells, links)| RouteChoice {
                way: (full == 0).then(|| view.numbered(cells.clone(), links)),
                verdict: if full == 0 { Verdict::Room } else { Verdict::Full },
                max_channels: view.load.occupancy_with(&cells),
                max_sharing: sharing,
                clocks: None,
                full: view.witness(&view.full_cells(&cells)),
                blocked_by: Vec::new(),
                cells,
            })
            .collect();
        RouteWhy {
            cells: own.cells.to_vec(),
            channels: own.channels.to_vec(),
            links: own.links().to_vec(),
            shortest_hops,
            max_channels: view.load.occupancy_with(own.cells),
            max_sharing: view.load.sharing_with(own.links()),
            shortest_count,
            looked_at,
            with_room,
            others,
        }
    }

    /// Prices what could be, other routes first, then other phases, the nearest first; what
    /// breaks a contract is marked instead.
    fn price(&self, part: Part, phases: &mut [PhaseChoice], routes: &mut [RouteChoice]) {
        let routing = self.timetable.routing();
        let mut near: Vec<&mut PhaseChoice> = phases.iter_mut().collect();
        near.sort_by_key(|choice| choice.phase.0.abs_diff(part.phase.0));
        let mut open: Vec<Open<'_>> = Vec::new();
        for route in routes.iter_mut() {
            open.extend(route.way.as_ref().map(|way| Open {
                to: part.phase,
                way,
                verdict: &mut route.verdict,
                blocked_by: &mut route.blocked_by,
                clocks: &mut route.clocks,
            }));
        }
        for choice in near {
            open.extend(choice.way.as_ref().map(|way| Open {
                to: choice.phase,
                way,
                verdict: &mut choice.verdict,
                blocked_by: &mut choice.blocked_by,
                clocks: &mut choice.clocks,
            }));
        }
        let mut without = PhaseRoutes::new();
        let mut trials = Vec::new();
        let mut priced = Vec::new();
        let cells = |p: PhaseId| -> usize {
            routing.phases()[p.index()].iter().map(|route| route.cells.len()).sum()
        };
        let mut left = BUDGET.saturating_sub(cells(part.phase));
        for choice in open {
            match left.checked_sub(cells(choice.to) + choice.way.cells.len()) {
                Some(rest) => left = rest,
                None => {
                    *choice.verdict = Verdict::Unpriced;
                    continue;
                }
            }
            let (from, with) = price::changed(routing, part, choice.to, choice.way)
                .expect("one more route of few hops in a phase within limits");
            *choice.blocked_by = broken(routing.machine(), routing.set(), &with);
            if choice.blocked_by.is_empty() {
                without = from;
                trials.push((choice.to, with));
                priced.push(choice);
            } else {
                *choice.verdict = Verdict::Contract;
            }
        }
        if trials.is_empty() {
            return;
        }
        let prices = price::price(self.timetable, self.prediction, part, &without, &trials);
        let now = self.prediction.clocks;
        for (choice, price) in priced.into_iter().zip(prices) {
            match price {
                Some(Price { phase, set }) => {
                    let change = set.wrapping_sub(now).cast_signed();
                    *choice.clocks = Some(Clocks { phase, set, change });
                }
                None => *choice.verdict = Verdict::Unpriced,
            }
        }
    }
}

/// A choice that has a way: what is still to be found out about it.
struct Open<'a> {
    to: PhaseId,
    way: &'a Way,
    verdict: &'a mut Verdict,
    blocked_by: &'a mut Vec<ConnectionId>,
    clocks: &'a mut Option<Clocks>,
}

/// The connections of a phase whose contract its link sharing breaks, the first few. What a
/// contract promises is said by the checker (`conset_verify`, bandwidth and latency).
fn broken(machine: &Machine, set: &ConnectionSet, routes: &PhaseRoutes) -> Vec<ConnectionId> {
    if !routes.iter().any(|route| set.get(route.connection).has_requirements()) {
        return Vec::new();
    }
    let load = Load::of(machine, routes, None);
    let parameters = machine.parameters();
    let link_clocks = u64::from(parameters.link_clocks_per_word);
    let access = u64::from(parameters.access_clocks_per_word);
    let is_broken = |route: &conset_ir::RouteRef<'_>| {
        let connection = set.get(route.connection);
        let on = |link: &LinkId| load.links.get(link.index()).map_or(1, |&n| u64::from(n));
        let slowest = route.links().iter().map(|link| link_clocks * on(link)).max().unwrap_or(0);
        let bandwidth = (1000 / access).min(1000u64.checked_div(slowest).unwrap_or(1000));
        let turns: u64 = route.links().iter().map(on).sum();
        let latency = (link_clocks.saturating_mul(turns)).saturating_add(2 * access);
        connection.min_bandwidth.is_some_and(|wanted| bandwidth < u64::from(wanted))
            || connection.max_latency.is_some_and(|allowed| latency > u64::from(allowed))
    };
    routes.iter().filter(is_broken).map(|route| route.connection).take(NAMED).collect()
}
