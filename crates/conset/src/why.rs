//! Explaining the phase, route and start of a connection, with the cost of the alternatives.
//!
//! The explanation is derived from the finished schedule alone, so it applies to any schedule. It
//! does not retrace the algorithm; it gives a witness that anyone can check:
//!
//! * **phase**: for each other phase, either the best route in it and the predicted clocks if the
//!   connection moved there, or the obstacle: full cells with the connections that use them,
//!   connections that must run before or after, connections whose required bandwidth or latency
//!   would be violated. [`apply`] performs such a move.
//! * **route**: the length of a shortest route, and the other shortest routes with free channels in
//!   the phase.
//! * **start**: the slots of its two agents that precede it, back to the start of the phase.
//!
//! A connection in several parts has one explanation for each part. Everything is bounded: at most
//! [`PHASES`] other phases (one half the nearest with a free channel on both end cells, the rest the
//! nearest), the best [`ROUTES`] of the first 256 shortest routes, the first [`PARTS`] parts, and
//! about four million route cells priced. What is left out is counted or marked.
//!
//! # Limitations
//!
//! Only one part is moved; exchanges of two connections are not considered. The cost model does not
//! predict the end of a single stream, so the reported finish is the planned end of the slot, and at
//! the latest the predicted end of the phase.

mod alternatives;
mod price;
mod start;

use conset_ir::convert::to_u32;
use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, LinkId, Machine, PhaseId, PhaseRoutes, Routing,
    Timetable,
};
use conset_scheduler::Prediction;
use serde::Serialize;

use self::alternatives::{PhaseLoad, PhaseView};
use self::price::Price;
use self::start::PhaseSlots;

pub use self::alternatives::{AlternativeRoute, FullCell};
pub use self::price::apply;
pub use self::start::{BlockingSlot, StartExplanation, WaitCause};

/// Greatest number of other phases that are tried: half of them the nearest with free channels on
/// both end cells, the rest the nearest.
pub const PHASES: usize = 32;
/// Greatest number of other shortest routes that are listed.
pub const ROUTES: usize = 8;
/// Greatest number of parts of a connection that are explained.
pub const PARTS: usize = 4;
/// Greatest number of route cells in all phases that are priced for one part.
const PRICED_CELLS_LIMIT: usize = 1 << 22;

/// The explanation of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
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
    /// Predicted clocks of the set, context switches included.
    pub set_clocks: u64,
    /// The number of parts of the connection.
    pub parts_total: usize,
    /// The explanations of the first parts.
    pub parts: Vec<PartExplanation>,
}

/// One part of a connection: a route of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartPosition {
    /// The phase.
    pub phase: PhaseId,
    /// The route's row in it.
    pub row: usize,
}

/// The explanation of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartExplanation {
    /// Which route of which phase it is.
    #[serde(flatten)]
    pub part: PartPosition,
    /// Its words.
    pub words: u32,
    /// Predicted clocks of the phase, without its context switch.
    pub phase_clocks: u64,
    /// The other phases.
    pub phase_choices: PhaseChoices,
    /// Its route and the others.
    pub route: RouteExplanation,
    /// Its start.
    pub start: StartExplanation,
}

/// The other phases for a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseChoices {
    /// The number of other phases that were not tried.
    pub left_out: usize,
    /// The number of other phases with a free channel on both end cells.
    pub room_at_ends: usize,
    /// The phases that were tried, in order.
    pub tried: Vec<PhaseChoice>,
}

/// Whether an alternative is feasible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feasibility {
    /// Feasible; see `clocks`.
    #[serde(rename = "room")]
    Feasible,
    /// Cells of every route have no free channel.
    Full,
    /// The order of the set excludes the phase.
    Order,
    /// A required bandwidth or latency would be violated.
    Contract,
    /// There are free channels, but the phase is too large to be priced here, or takes more than 2^63
    /// clocks. Required bandwidths and latencies were not checked.
    Unpriced,
}

/// The predicted clocks after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Clocks {
    /// The phase with the part, without its context switch.
    pub phase: u64,
    /// The whole set, context switches included.
    pub set: u64,
    /// The difference to the present clocks of the set.
    pub change: i64,
}

/// Another phase for a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseChoice {
    /// The phase.
    pub phase: PhaseId,
    /// Whether the phase is feasible.
    pub verdict: Feasibility,
    /// The best route in it.
    #[serde(rename = "way", skip_serializing_if = "Option::is_none")]
    pub route: Option<AlternativeRoute>,
    /// Hops of that route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<usize>,
    /// Greatest number of routes on one of its links, itself included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sharing: Option<u32>,
    /// The predicted clocks, if it is feasible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The full cells that block the part, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<FullCell>,
    /// The connections whose order or requirement excludes the phase, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<ConnectionId>,
}

/// The route of a part, and other shortest routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RouteExplanation {
    /// The cells in order.
    pub cells: Vec<CellId>,
    /// The channel on each.
    pub channels: Vec<ChannelId>,
    /// The links between them.
    pub links: Vec<LinkId>,
    /// Hops of a shortest route on this machine.
    pub shortest_hops: u32,
    /// Greatest number of channels in use on one of its cells, its own included.
    pub max_channels: u32,
    /// Greatest number of routes on one of its links, itself included.
    pub max_sharing: u32,
    /// The number of shortest routes on the machine that differ in a cell (at most 2^64 - 1).
    pub shortest_count: u64,
    /// The number of these that were examined.
    #[serde(rename = "looked_at")]
    pub examined: usize,
    /// The number of examined routes with free channels in the phase; the part's own channels count as
    /// free.
    pub with_room: usize,
    /// The best other routes, those with free channels and little sharing first.
    pub others: Vec<RouteChoice>,
}

/// Another shortest route in the same phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RouteChoice {
    /// The cells in order.
    pub cells: Vec<CellId>,
    /// The route with channels, if it has free channels.
    #[serde(rename = "way", skip_serializing_if = "Option::is_none")]
    pub route: Option<AlternativeRoute>,
    /// Whether the route is feasible.
    pub verdict: Feasibility,
    /// Greatest number of channels in use on one of its cells, its own included.
    pub max_channels: u32,
    /// Greatest number of routes on one of its links, itself included.
    pub max_sharing: u32,
    /// The predicted clocks, if it is feasible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The full cells on it, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<FullCell>,
    /// The connections whose required bandwidth or latency would be violated, the first eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<ConnectionId>,
}

/// Explains a connection of a verified timetable with its prediction; `None` if the set has no such
/// connection.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine};
/// use conset::{Compiler, why};
///
/// let machine = Arc::new(Machine::from_spec("ring:4")?);
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(1), 5)])?;
/// let compiled = Compiler::new(&machine).compile(&set.into())?;
/// let timetable = &compiled.schedule().sets()[0].timetable;
/// let prediction = &compiled.sets()[0].prediction;
/// let why = why::why(timetable, prediction, ConnectionId(0)).expect("the set has a connection");
/// assert_eq!(why.parts[0].route.cells, [CellId(0), CellId(1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Takes O(routes x hops) to find the connection, O(cells + links + hops of the phase) for each phase
/// tried, and the time of the scheduler and the cost model for each change priced.
pub fn why(timetable: &Timetable, prediction: &Prediction, x: ConnectionId) -> Option<Explanation> {
    let routing = timetable.routing();
    let set = routing.set();
    let connection = set.connections().get(x.index())?;
    let order = OrderWindow::of(routing, x);
    let rows: Vec<PartPosition> = routing
        .iter()
        .flat_map(|(phase, routes)| {
            let own = routes.iter().enumerate().filter(|(_, route)| route.connection == x);
            own.map(move |(row, _)| PartPosition { phase, row })
        })
        .collect();
    let explainer = Explainer { timetable, prediction, x, order };
    Some(Explanation {
        set: set.name().to_owned(),
        connection: x,
        name: connection.name.as_deref().map(str::to_owned),
        source: connection.source,
        target: connection.target,
        words: connection.words,
        set_phases: routing.phases().len(),
        set_clocks: prediction.clocks,
        parts_total: rows.len(),
        parts: rows.into_iter().take(PARTS).map(|part| explainer.part(part)).collect(),
    })
}

/// Greatest number of connections that a witness names.
const NAMED: usize = 8;

/// The phases that the order of the set allows for a connection.
struct OrderWindow {
    /// Connections that must run before, each with its last phase.
    before: Vec<(ConnectionId, PhaseId)>,
    /// Connections that must run after, each with its first phase.
    after: Vec<(ConnectionId, PhaseId)>,
}

impl OrderWindow {
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

    /// The connections whose order excludes a phase, the first few.
    fn violated_by(&self, phase: PhaseId) -> Vec<ConnectionId> {
        let late = self.before.iter().filter(|(_, last)| *last > phase);
        let early = self.after.iter().filter(|(_, first)| *first < phase);
        late.chain(early).map(|&(id, _)| id).take(NAMED).collect()
    }
}

/// A connection of a timetable that is to be explained.
struct Explainer<'a> {
    timetable: &'a Timetable,
    prediction: &'a Prediction,
    x: ConnectionId,
    order: OrderWindow,
}

impl Explainer<'_> {
    fn part(&self, part: PartPosition) -> PartExplanation {
        let routing = self.timetable.routing();
        let routes = &routing.phases()[part.phase.index()];
        let (mut phase_choices, mut route) = (self.phases(part), self.routes(part));
        self.price(part, &mut phase_choices.tried, &mut route.others);
        PartExplanation {
            part,
            words: routes.get(part.row).words,
            phase_clocks: self.prediction.phases[part.phase.index()].clocks,
            phase_choices,
            route,
            start: PhaseSlots {
                machine: routing.machine(),
                set: routing.set(),
                routes,
                times: &self.timetable.phases()[part.phase.index()],
            }
            .start(part.row),
        }
    }

    /// The other phases to try, without prices.
    fn phases(&self, part: PartPosition) -> PhaseChoices {
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
            verdict: Feasibility::Order,
            route: None,
            hops: None,
            max_sharing: None,
            clocks: None,
            full: Vec::new(),
            blocked_by: self.order.violated_by(phase),
        };
        if !choice.blocked_by.is_empty() {
            return choice;
        }
        let view = PhaseView::new(routing.machine(), &routing.phases()[phase.index()], None);
        match view.find(connection.source, connection.target) {
            Ok(route) => {
                choice.verdict = Feasibility::Feasible;
                choice.hops = Some(route.links.len());
                choice.max_sharing = Some(view.load.sharing_with(&route.links));
                choice.route = Some(route);
            }
            Err(full) => {
                choice.verdict = Feasibility::Full;
                choice.full = full;
            }
        }
        choice
    }

    /// The route of the part and the other shortest routes, without prices.
    fn routes(&self, part: PartPosition) -> RouteExplanation {
        let routing = self.timetable.routing();
        let connection = routing.set().get(self.x);
        let routes = &routing.phases()[part.phase.index()];
        let own = routes.get(part.row);
        let view = PhaseView::new(routing.machine(), routes, Some(part.row));
        let shortest = alternatives::shortest(&view, connection.source, connection.target);
        let (shortest_hops, shortest_count, all) =
            shortest.map_or((to_u32(own.hops()), 0, Vec::new()), |s| (s.hops, s.count, s.routes));
        let examined = all.len();
        let mut keyed = Vec::with_capacity(examined);
        for (cells, links) in all {
            let full = view.full_cells(&cells).len();
            let sharing = view.load.sharing_with(&links);
            let sum: u64 = links.iter().map(|l| u64::from(view.load.links[l.index()])).sum();
            keyed.push(((full, sharing, sum), cells, links));
        }
        let with_room = keyed.iter().filter(|(key, ..)| key.0 == 0).count();
        // The sort is stable, so equal routes stay in the order of their cells.
        keyed.sort_by_key(|(key, ..)| *key);
        let others = keyed
            .into_iter()
            .filter(|(_, cells, _)| cells != own.cells)
            .take(ROUTES)
            .map(|((full, sharing, _), cells, links)| RouteChoice {
                route: (full == 0).then(|| view.numbered(cells.clone(), links)),
                verdict: if full == 0 { Feasibility::Feasible } else { Feasibility::Full },
                max_channels: view.load.occupancy_with(&cells),
                max_sharing: sharing,
                clocks: None,
                full: view.witness(&view.full_cells(&cells)),
                blocked_by: Vec::new(),
                cells,
            })
            .collect();
        RouteExplanation {
            cells: own.cells.to_vec(),
            channels: own.channels.to_vec(),
            links: own.links().to_vec(),
            shortest_hops,
            max_channels: view.load.occupancy_with(own.cells),
            max_sharing: view.load.sharing_with(own.links()),
            shortest_count,
            examined,
            with_room,
            others,
        }
    }

    /// Prices the feasible alternatives: other routes first, then other phases, the nearest first.
    /// Those that violate a required bandwidth or latency are marked instead.
    fn price(&self, part: PartPosition, phases: &mut [PhaseChoice], routes: &mut [RouteChoice]) {
        let routing = self.timetable.routing();
        let mut near: Vec<&mut PhaseChoice> = phases.iter_mut().collect();
        near.sort_by_key(|choice| choice.phase.0.abs_diff(part.phase.0));
        let mut open: Vec<Unpriced<'_>> = Vec::new();
        for route in routes.iter_mut() {
            open.extend(route.route.as_ref().map(|alternative| Unpriced {
                to: part.phase,
                route: alternative,
                verdict: &mut route.verdict,
                blocked_by: &mut route.blocked_by,
                clocks: &mut route.clocks,
            }));
        }
        for choice in near {
            open.extend(choice.route.as_ref().map(|route| Unpriced {
                to: choice.phase,
                route,
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
        let mut left = PRICED_CELLS_LIMIT.saturating_sub(cells(part.phase));
        for choice in open {
            match left.checked_sub(cells(choice.to) + choice.route.cells.len()) {
                Some(rest) => left = rest,
                None => {
                    *choice.verdict = Feasibility::Unpriced;
                    continue;
                }
            }
            let (from, with) = price::changed(routing, part, choice.to, choice.route)
                .expect("one more route of few hops in a phase within limits");
            *choice.blocked_by = violated(routing.machine(), routing.set(), &with);
            if choice.blocked_by.is_empty() {
                without = from;
                trials.push((choice.to, with));
                priced.push(choice);
            } else {
                *choice.verdict = Feasibility::Contract;
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
                None => *choice.verdict = Feasibility::Unpriced,
            }
        }
    }
}

/// An alternative with a route that is to be priced.
struct Unpriced<'a> {
    to: PhaseId,
    route: &'a AlternativeRoute,
    verdict: &'a mut Feasibility,
    blocked_by: &'a mut Vec<ConnectionId>,
    clocks: &'a mut Option<Clocks>,
}

/// The connections of a phase whose required bandwidth or latency is violated by link sharing, the
/// first few. The checker defines both (`conset_verify`, bandwidth and latency).
fn violated(machine: &Machine, set: &ConnectionSet, routes: &PhaseRoutes) -> Vec<ConnectionId> {
    if !routes.iter().any(|route| set.get(route.connection).has_requirements()) {
        return Vec::new();
    }
    let load = PhaseLoad::of(machine, routes, None);
    let parameters = machine.parameters();
    let access = u64::from(parameters.access_clocks_per_word);
    let is_violated = |route: &conset_ir::RouteRef<'_>| {
        let connection = set.get(route.connection);
        let on = |link: &LinkId| load.links.get(link.index()).map_or(1, |&n| u64::from(n));
        let round = |link: &LinkId| u64::from(machine.link_clocks(*link)).saturating_mul(on(link));
        let slowest = route.links().iter().map(round).max().unwrap_or(0);
        let bandwidth = (1000 / access).min(1000u64.checked_div(slowest).unwrap_or(1000));
        let rounds = route.links().iter().map(round).fold(0u64, u64::saturating_add);
        let latency = rounds.saturating_add(2 * access);
        connection.min_bandwidth.is_some_and(|wanted| bandwidth < u64::from(wanted))
            || connection.max_latency.is_some_and(|allowed| latency > u64::from(allowed))
    };
    routes.iter().filter(is_violated).map(|route| route.connection).take(NAMED).collect()
}
