//! The automatic partitioner and router (paper, section 4.4.1).
//!
//! ```text
//! order connections
//! initialise node costs to 1
//! for each connection
//!     find the shortest path over all graph of the graph, one copy for each phase
//!     update node costs
//! repeat k times: rip up and reroute
//! ```
//!
//! A node of the graph is a cell, its capacity the channels that connections may use on it; a
//! route takes one on each of its cells, both ends included (machine model, rule 2). A phase is a
//! copy of the graph. A connection goes where its path is shortest, among the phases that the
//! ordering constraints leave; where it fits nowhere a new phase is opened. What the paper leaves
//! open is decided in the modules below this one:
//!
//! * `order`: connections far apart first, ties by the seed; ordered ones in their order. Or as
//!   they are given, [`RouterOptions::paper`].
//! * `costs`: a cell costs 1, and up to twice that as it fills.
//! * `graph`: which graph are searched in what order, and which need not be.
//! * `search`: the search in one copy.
//! * `requirements`: bandwidth and latency requirements close edges to the search.
//! * `reroute`: an iteration tries to empty the emptiest phase.
//! * `insert`: the same searches for what was added to a set whose routes stand.
//!
//! The search begins with as many phases as the lower bound says are needed anyway, so that
//! routes spread over all of them. The first pass always succeeds (a new phase is always legal
//! at the end); an iteration keeps what it made only if there is a phase fewer.
//!
//! Measured (one core of a shared machine, release, 12 channels, default options, five seeds),
//! all-to-all; lower bound, phases after the first pass, phases, time:
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
//! It does not look at link loads (but for requirements) nor at clocks: fewest phases is all it
//! is after. Times are the scheduler's.

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

use conset_ir::{ConnectionSet, Infeasible, Machine, Routing};

use crate::network::Network;
use crate::{bounds, channels, explain};
pub use incremental_route::{
    IncrementalRouting, PlacementHint, RoutingChange, incremental_route, is_small,
};
use layered_graph::LayeredGraph;
use reroute::Rerouter;

/// What the router may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterOptions {
    /// Decides between connections that are equally far apart.
    pub seed: u64,
    /// Rip-up and reroute iterations (the paper's k).
    pub reroutes: u32,
    /// Phases allowed; none for as many as it takes.
    pub max_phases: Option<u32>,
    /// In which order connections are routed.
    pub order: RoutingOrder,
}

/// The former name of [`RouterOptions`].
#[doc(hidden)]
pub type Options = RouterOptions;

/// In which order connections are routed (the paper's step 1, "order connections", which does
/// not say how). Ordering constraints are kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RoutingOrder {
    /// Far apart first, ties by the seed.
    #[default]
    FarthestFirst,
    /// As the set lists them.
    Given,
}

impl RouterOptions {
    /// The paper's algorithm as its text has it: connections are routed as the set lists them,
    /// because no order is named.
    pub fn paper() -> Self {
        Self { order: RoutingOrder::Given, ..Self::default() }
    }
}

impl Default for RouterOptions {
    fn default() -> Self {
        Self { seed: 0, reroutes: 8, max_phases: None, order: RoutingOrder::default() }
    }
}

/// How far the router has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Cells in all graph of the graph together that the router holds, those left out that are on
/// pages where nobody is: 2 GB of counts.
const GRAPH_MEMORY_LIMIT: usize = 1 << 30;

/// Cells in all graph together up to which there are iterations: they keep a list for each.
const INDEX_MEMORY_LIMIT: usize = 1 << 24;

/// Connections routed between two calls of the progress function.
const PROGRESS_INTERVAL: usize = 1 << 10;

/// Divides a set into phases and routes each connection.
///
/// All words of a connection go over one route in one phase. Empty sets have no phase. The same
/// arguments give the same routing. `progress` is called every thousand connections or so and
/// after each iteration.
///
/// # Errors
/// Ends that are not live cells with an agent; connections without a way over live links; a
/// bandwidth or latency that no route has; more phases than [`RouterOptions::max_phases`]. Each with its
/// witness and the cheapest fixes.
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

/// How many phases [`route`] divides a set into; placement asks that of its last candidates.
pub(crate) fn phase_count(
    machine: &Machine,
    set: &ConnectionSet,
    options: &RouterOptions,
) -> Result<u32, Infeasible> {
    Ok(assign(machine, set, options, &mut |_| ())?.state.phases)
}

/// Whether a set can be routed at all, in however many phases: each connection has a way that is as
/// good as it asks for. Its ends are live cells with an agent.
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
    rip_up_and_reroute(&mut graph, &sequence, needed, options.reroutes, progress);
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

/// Step 3: routes every connection once.
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

/// Step 4: empties phases, the emptiest first, until the lower bound is reached or the
/// iterations are used up. A phase that could not be emptied is left alone until another was.
fn rip_up_and_reroute(
    graph: &mut LayeredGraph,
    sequence: &[u32],
    needed: u32,
    iterations: u32,
    progress: &mut dyn FnMut(RouterProgress),
) {
    let copied = graph.state.phases as usize * graph.network.cells;
    if graph.state.phases <= needed || iterations == 0 || copied > INDEX_MEMORY_LIMIT {
        return;
    }
    graph.state.track_routes_through();
    let mut rank = vec![0; sequence.len()];
    for (row, &x) in sequence.iter().enumerate() {
        rank[x as usize] = row as u32;
    }
    let mut reroute = Rerouter::default();
    let mut tried = vec![false; graph.state.phases as usize];
    for iteration in 1..=iterations {
        let phases = graph.state.phases;
        let untried = (0..phases).filter(|&p| !tried[p as usize]);
        let emptiest = untried.min_by_key(|&p| (graph.state.load[p as usize], p));
        let Some(phase) = emptiest.filter(|_| phases > needed) else { break };
        if reroute.empty(graph, phase, &rank) {
            tried.clear();
            tried.resize(graph.state.phases as usize, false);
        } else {
            tried[phase as usize] = true;
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
