//! The automatic partitioner and router (paper, section 4.4.1).
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
//! A node of the graph is a cell, its capacity the channels that connections may use on it; a
//! route takes one on each of its cells, both ends included (machine model, rule 2). A phase is a
//! copy of the graph. A connection goes where its path is shortest, among the phases that the
//! ordering constraints leave; where it fits nowhere a new phase is opened. What the paper leaves
//! open is decided in the modules below this one:
//!
//! * `order`: connections far apart first, ties by the seed; ordered ones in their order. Or as
//!   they are given, [`Options::paper`].
//! * `costs`: a cell costs 1, and up to twice that as it fills.
//! * `copies`: which copies are searched in what order, and which need not be.
//! * `search`: the search in one copy.
//! * `wants`: bandwidth and latency requirements close edges to the search.
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

mod costs;
mod insert;
mod layered_graph;
mod order;
mod paged_table;
pub mod requirements;
mod reroute;
mod search;
mod state;

use std::sync::Arc;

use conset_ir::{ConnectionSet, Infeasible, Machine, Routing};

use crate::network::Network;
use crate::{bounds, channels, explain};
pub use insert::{Change, Extended, PlacementHint, extend, is_small};
use layered_graph::LayeredGraph;
use reroute::Reroute;

/// What the router may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Decides between connections that are equally far apart.
    pub seed: u64,
    /// Rip-up and reroute iterations (the paper's k).
    pub reroutes: u32,
    /// Phases allowed; none for as many as it takes.
    pub max_phases: Option<u32>,
    /// In which order connections are routed.
    pub sequence: Sequence,
}

/// In which order connections are routed (the paper's step 1, "order connections", which does
/// not say how). Ordering constraints are kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sequence {
    /// Far apart first, ties by the seed.
    #[default]
    FarthestFirst,
    /// As the set lists them.
    Given,
}

impl Options {
    /// The paper's algorithm as its text has it: connections are routed as the set lists them,
    /// because no order is named.
    pub fn paper() -> Self {
        Self { sequence: Sequence::Given, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, reroutes: 8, max_phases: None, sequence: Sequence::default() }
    }
}

/// How far the router has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Connections that have a route.
    pub routed: usize,
    /// Connections of the set.
    pub total: usize,
    /// Phases in use so far.
    pub phases: u32,
    /// Rip-up and reroute iterations so far; 0 in the first pass.
    pub iteration: u32,
}

/// Cells in all copies of the graph together that the router holds, those left out that are on
/// pages where nobody is: 2 GB of counts.
pub(crate) const COPIED_CELLS: usize = 1 << 30;

/// Cells in all copies together up to which there are iterations: they keep a list for each.
const INDEXED_CELLS: usize = 1 << 24;

/// Connections routed between two calls of the progress function.
const REPORT: usize = 1 << 10;

/// Divides a set into phases and routes each connection.
///
/// All words of a connection go over one route in one phase. Empty sets have no phase. The same
/// arguments give the same routing. `progress` is called every thousand connections or so and
/// after each iteration.
///
/// # Errors
/// Ends that are not live cells with an agent; connections without a way over live links; a
/// bandwidth or latency that no route has; more phases than [`Options::max_phases`]. Each with its
/// witness and the cheapest fixes.
pub fn route(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Routing, Infeasible> {
    let copies = assign(machine, set, options, progress)?;
    if let Some(most) = options.max_phases.filter(|&most| copies.state.phases > most) {
        return Err(explain::too_many_phases(machine, set, options, most, &phases_of(&copies)));
    }
    channels::number(machine, set, &copies.network, copies.state.phases, |phase| {
        let mut members = copies.state.members(phase).to_vec();
        members.sort_unstable();
        let state = &copies.state;
        members.into_iter().map(|x| (x, state.route(x)))
    })
    .map_err(|error| explain::misshapen(set, &error))
}

/// How many phases the router needs, without the routes.
pub(crate) fn phases_needed(
    machine: &Machine,
    set: &ConnectionSet,
    options: &Options,
) -> Result<u32, Infeasible> {
    assign(machine, set, options, &mut |_| ()).map(|copies| copies.state.phases)
}

fn phases_of(copies: &LayeredGraph) -> Vec<u32> {
    copies.state.phase_of.clone()
}

/// How many phases [`route`] divides a set into; placement asks that of its last candidates.
pub(crate) fn phase_count(
    machine: &Machine,
    set: &ConnectionSet,
    options: &Options,
) -> Result<u32, Infeasible> {
    Ok(assign(machine, set, options, &mut |_| ())?.state.phases)
}

/// Whether a set can be routed at all, in however many phases: each connection has a way that is as
/// good as it asks for. Its ends are live cells with an agent.
pub(crate) fn is_routable(machine: &Machine, network: &Network, set: &ConnectionSet) -> bool {
    layered_graph::reach(machine, set, network, &mut Vec::new()).is_ok()
}

/// Steps 1 to 4: a phase and a path for each connection.
fn assign(
    machine: &Machine,
    set: &ConnectionSet,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<LayeredGraph, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    let mut hops = Vec::new();
    let mut copies = LayeredGraph::new(machine, set, Network::new(machine), &mut hops)?;
    let needed = bounds::fewest_phases(machine, set, &hops);
    for _ in 0..needed {
        open_phase(&mut copies, set)?;
    }
    let sequence = copies.order.sequence(&hops, options.sequence, options.seed);
    first_pass(&mut copies, set, &sequence, progress)?;
    for phase in (0..copies.state.phases).rev() {
        if copies.state.members(phase).is_empty() {
            copies.close_phase(phase);
        }
    }
    improve(&mut copies, &sequence, needed, options.reroutes, progress);
    Ok(copies)
}

fn open_phase(copies: &mut LayeredGraph, set: &ConnectionSet) -> Result<(), Infeasible> {
    let cells = copies.network.cells;
    if copies.state.held() > COPIED_CELLS {
        return Err(explain::too_large(set, copies.state.phases, cells));
    }
    copies.open_phase();
    Ok(())
}

/// Step 3: routes every connection once.
fn first_pass(
    copies: &mut LayeredGraph,
    set: &ConnectionSet,
    sequence: &[u32],
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Infeasible> {
    for (done, &x) in sequence.iter().enumerate() {
        let phases = copies.order.first_pass(&copies.state, x);
        let found = match copies.shortest(x, &phases, u32::MAX) {
            Some(found) => found,
            None => {
                open_phase(copies, set)?;
                copies
                    .shortest(x, &phases, u32::MAX)
                    .expect("a connection with a way fits into an empty phase")
            }
        };
        copies.put(x, found.phase);
        if (done + 1) % REPORT == 0 {
            report(copies, sequence.len(), 0, progress);
        }
    }
    report(copies, sequence.len(), 0, progress);
    Ok(())
}

/// Step 4: empties phases, the emptiest first, until the lower bound is reached or the
/// iterations are used up. A phase that could not be emptied is left alone until another was.
fn improve(
    copies: &mut LayeredGraph,
    sequence: &[u32],
    needed: u32,
    iterations: u32,
    progress: &mut dyn FnMut(Progress),
) {
    let copied = copies.state.phases as usize * copies.network.cells;
    if copies.state.phases <= needed || iterations == 0 || copied > INDEXED_CELLS {
        return;
    }
    copies.state.keep_passing();
    let mut rank = vec![0; sequence.len()];
    for (row, &x) in sequence.iter().enumerate() {
        rank[x as usize] = row as u32;
    }
    let mut reroute = Reroute::default();
    let mut tried = vec![false; copies.state.phases as usize];
    for iteration in 1..=iterations {
        let phases = copies.state.phases;
        let untried = (0..phases).filter(|&p| !tried[p as usize]);
        let emptiest = untried.min_by_key(|&p| (copies.state.load[p as usize], p));
        let Some(phase) = emptiest.filter(|_| phases > needed) else { break };
        if reroute.empty(copies, phase, &rank) {
            tried.clear();
            tried.resize(copies.state.phases as usize, false);
        } else {
            tried[phase as usize] = true;
        }
        report(copies, sequence.len(), iteration, progress);
    }
}

fn report(copies: &LayeredGraph, total: usize, iteration: u32, progress: &mut dyn FnMut(Progress)) {
    progress(Progress {
        routed: copies.state.routed,
        total,
        phases: copies.state.phases,
        iteration,
    });
}
