//! The automatic partitioner and router, APR (paper, section 4.4.1).
//!
//! ```text
//! order connections
//! initialise node costs to 1
//! for each connection
//!     find the shortest path over all copies of the graph, one copy for each phase
//!     update node costs
//! repeat k times: rip up and reroute
//! ```
//!
//! A node of the graph is a cell; its capacity is the number of channels that connections may use
//! there. A route takes one channel on each of its cells, both ends included (machine model, rule
//! 2). Each phase is a copy (a *layer*) of the graph. A connection goes to the phase in which its
//! path is shortest, among the phases that precedence constraints allow; if it fits nowhere, a new
//! phase is opened. The paper leaves some decisions open. They are made in these modules:
//!
//! * `precedence`: connections whose ends are far apart are routed first, ties broken by the seed;
//!   ordered connections in their order. [`RouterOptions::paper`] keeps the order of the set.
//! * `cell_cost`: a cell costs 1, and up to twice that as it fills.
//! * `layered_graph`: which layers are searched, in what order, and which are skipped.
//! * `a_star`: the search in one layer.
//! * `requirements`: bandwidth and latency requirements close edges to the search.
//! * `reroute`: an iteration tries to empty the emptiest phase.
//! * `incremental_route`: the same searches for connections that are added to existing routes.
//! * `phase_limit`: the fixes for a set that does not fit into the allowed phases.
//!
//! The search starts with as many phases as the lower bound requires, so that routes spread over
//! all of them. The first pass always succeeds, because a new phase at the end is always legal. The
//! result of an iteration is kept only if it has one phase less.
//!
//! Measured for all-to-all (one core of a shared machine, release build, 12 channels, default
//! options, five seeds): lower bound, phases after the first pass, phases, time.
//!
//! ```text
//! torus 8x8        27    28       27        12 ms      (4032 connections)
//! torus 4x4         4     5        4       0.2 ms
//! torus 4x4x4      22    22..23   22         8 ms
//! mesh 8x8         34    42..43   39       100 ms      (its middle is narrower than the bound sees)
//! ring 16           7     7        7       0.2 ms
//! hypercube 6      22    22..23   22         8 ms
//! fat-tree 64      24    73       73        65 ms      (72 by counting its level-2 switches)
//! torus 16x16     192   195..196 195       1.1 s       (65,280 connections)
//! torus 32x32    1451            1487       55 s       (1,047,552 connections)
//! ```
//!
//! The router minimises the number of phases. It ignores link loads (except for requirements) and
//! clocks; times are decided by the scheduler.

mod a_star;
mod cell_cost;
mod incremental_route;
mod layered_graph;
mod paged_table;
mod phase_limit;
mod precedence;
pub mod requirements;
mod reroute;
mod routing_state;

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionSet, Infeasible, Machine, Routing};

use crate::network::Network;
use crate::{bounds, channels, explain};
pub use incremental_route::{
    IncrementalRouting, PlacementHint, RoutingChange, incremental_route, is_small,
};
use layered_graph::LayeredGraph;
use reroute::Rerouter;

/// Options of the router.
///
/// ```
/// use conset_partition_route::apr::RouterOptions;
///
/// let options = RouterOptions { seed: 7, max_phases: Some(30), ..RouterOptions::default() };
/// assert_eq!(options.rip_up_iterations, 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterOptions {
    /// Breaks ties between connections that are equally far apart.
    pub seed: u64,
    /// Rip-up and reroute iterations (the paper's k).
    pub rip_up_iterations: u32,
    /// The most phases allowed; `None` for no limit.
    pub max_phases: Option<u32>,
    /// The order in which connections are routed.
    pub order: RoutingOrder,
}

/// The order in which connections are routed (the paper's step 1, "order connections", does not say
/// which). Precedence constraints are kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RoutingOrder {
    /// Connections whose ends are far apart first, ties broken by the seed.
    #[default]
    FarthestFirst,
    /// The order of the set.
    Given,
}

impl RouterOptions {
    /// The paper's algorithm as published: connections are routed in the order of the set, because
    /// the paper names no order.
    pub fn paper() -> Self {
        Self { order: RoutingOrder::Given, ..Self::default() }
    }
}

impl Default for RouterOptions {
    fn default() -> Self {
        Self { seed: 0, rip_up_iterations: 8, max_phases: None, order: RoutingOrder::default() }
    }
}

/// The progress of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterProgress {
    /// Connections that have a route.
    pub routed: usize,
    /// Connections of the set.
    pub total: usize,
    /// Phases in use so far.
    pub phases: u32,
    /// Rip-up and reroute iterations so far; 0 in the first pass.
    pub iteration: u32,
}

/// The most cells that the router holds in all layers together: 2 GB of channel counts. Cells on
/// pages that no route uses do not count.
const GRAPH_MEMORY_LIMIT: usize = 1 << 30;

/// Cells in all layers together up to which there are rip-up iterations, which need an index of the
/// routes through each cell.
const INDEX_MEMORY_LIMIT: usize = 1 << 24;

/// Connections routed between two calls of the progress function.
const PROGRESS_INTERVAL: usize = 1 << 10;

/// Divides a set into phases and routes each connection.
///
/// All words of a connection use one route in one phase. An empty set has no phase. Equal arguments
/// give equal routings. `progress` is called about every thousand connections and after each
/// iteration.
///
/// ```
/// use std::sync::Arc;
/// use conset_ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset_partition_route::apr::{self, RouterOptions};
///
/// let machine = Arc::new(Machine::from_spec("torus:4x4")?);
/// let pairs = (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b);
/// let connections = pairs.map(|(a, b)| Connection::new(CellId(a), CellId(b), 8)).collect();
/// let set = Arc::new(ConnectionSet::new("all-to-all", connections)?);
///
/// let routing = apr::route(&machine, &set, &RouterOptions::default(), &mut |_| ())?;
/// assert_eq!(routing.phases().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An endpoint that is not a live cell with an agent; a connection without a path over live links;
/// a bandwidth or latency that no route can provide; more phases than
/// [`RouterOptions::max_phases`]. Each comes with its witness and the cheapest fixes.
pub fn route(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &RouterOptions,
    progress: &mut dyn FnMut(RouterProgress),
) -> Result<Routing, Infeasible> {
    let graph = assign(machine, set, options, progress)?;
    if let Some(most) = options.max_phases.filter(|&most| graph.state.phases > most) {
        return Err(phase_limit::too_many_phases(
            machine,
            set,
            options,
            most,
            &graph.state.phase_of,
        ));
    }
    channels::number(machine, set, &graph.network, graph.state.phases, |phase| {
        let mut members = graph.state.members(phase).to_vec();
        members.sort_unstable();
        let state = &graph.state;
        members.into_iter().map(|x| (x, state.route(x)))
    })
    .map_err(|error| explain::misshapen(set, &error))
}

/// The number of phases into which [`route`] divides a set.
pub(crate) fn phase_count(
    machine: &Machine,
    set: &ConnectionSet,
    options: &RouterOptions,
) -> Result<u32, Infeasible> {
    Ok(assign(machine, set, options, &mut |_| ())?.state.phases)
}

/// Whether a set can be routed in some number of phases: each connection has a path that meets its
/// requirements. The endpoints of the set must be live cells with an agent.
pub(crate) fn is_routable(machine: &Machine, network: &Network, set: &ConnectionSet) -> bool {
    layered_graph::distances_and_requirements(machine, set, network, &mut Vec::new()).is_ok()
}

/// Steps 1 to 4: a phase and a path for each connection.
fn assign(
    machine: &Machine,
    set: &ConnectionSet,
    options: &RouterOptions,
    progress: &mut dyn FnMut(RouterProgress),
) -> Result<LayeredGraph, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    let mut hops = Vec::new();
    let mut graph = LayeredGraph::new(machine, set, Network::new(machine), &mut hops)?;
    let needed = bounds::fewest_phases(machine, set, &hops);
    for _ in 0..needed {
        open_phase(&mut graph, set)?;
    }
    let sequence = graph.precedence.routing_sequence(&hops, options.order, options.seed);
    first_pass(&mut graph, set, &sequence, progress)?;
    for phase in (0..graph.state.phases).rev() {
        if graph.state.members(phase).is_empty() {
            graph.close_phase(phase);
        }
    }
    rip_up_and_reroute(&mut graph, &sequence, needed, options.rip_up_iterations, progress);
    Ok(graph)
}

fn open_phase(graph: &mut LayeredGraph, set: &ConnectionSet) -> Result<(), Infeasible> {
    let cells = graph.network.cells;
    if graph.state.allocated_cells() > GRAPH_MEMORY_LIMIT {
        return Err(explain::too_large(set, graph.state.phases, cells, GRAPH_MEMORY_LIMIT));
    }
    graph.open_phase();
    Ok(())
}

/// Step 3: routes each connection once.
fn first_pass(
    graph: &mut LayeredGraph,
    set: &ConnectionSet,
    sequence: &[u32],
    progress: &mut dyn FnMut(RouterProgress),
) -> Result<(), Infeasible> {
    for (done, &x) in sequence.iter().enumerate() {
        let phases = graph.precedence.phases_after_predecessors(&graph.state, x);
        let found = match graph.shortest(x, &phases, u32::MAX) {
            Some(found) => found,
            None => {
                open_phase(graph, set)?;
                graph
                    .shortest(x, &phases, u32::MAX)
                    .expect("a connection with a way fits into an empty phase")
            }
        };
        graph.insert(x, found.phase);
        if (done + 1) % PROGRESS_INTERVAL == 0 {
            report(graph, sequence.len(), 0, progress);
        }
    }
    report(graph, sequence.len(), 0, progress);
    Ok(())
}

/// Step 4: empties phases, the emptiest first, until the lower bound is reached or the iterations
/// are used up. A phase that could not be emptied is not tried again until another phase has been
/// emptied.
fn rip_up_and_reroute(
    graph: &mut LayeredGraph,
    sequence: &[u32],
    needed: u32,
    iterations: u32,
    progress: &mut dyn FnMut(RouterProgress),
) {
    let copied = index(graph.state.phases) * graph.network.cells;
    if graph.state.phases <= needed || iterations == 0 || copied > INDEX_MEMORY_LIMIT {
        return;
    }
    graph.state.track_routes_through();
    let mut rank = vec![0; sequence.len()];
    for (row, &x) in sequence.iter().enumerate() {
        rank[index(x)] = to_u32(row);
    }
    let mut reroute = Rerouter::default();
    let mut tried = vec![false; index(graph.state.phases)];
    for iteration in 1..=iterations {
        let phases = graph.state.phases;
        let untried = (0..phases).filter(|&p| !tried[index(p)]);
        let emptiest = untried.min_by_key(|&p| (graph.state.load[index(p)], p));
        let Some(phase) = emptiest.filter(|_| phases > needed) else { break };
        if reroute.empty(graph, phase, &rank) {
            tried.clear();
            tried.resize(index(graph.state.phases), false);
        } else {
            tried[index(phase)] = true;
        }
        report(graph, sequence.len(), iteration, progress);
    }
}

fn report(
    graph: &LayeredGraph,
    total: usize,
    iteration: u32,
    progress: &mut dyn FnMut(RouterProgress),
) {
    progress(RouterProgress {
        routed: graph.state.routed,
        total,
        phases: graph.state.phases,
        iteration,
    });
}
