//! Placement: which cell each part of the program part_at on.
//!
//! The aim is the time of the compiled set, as far as it depends on where parts live: channels
//! taken decide the number of phases, loads of links decide how long a phase lasts when agents do
//! not, and short ways make both small (module `cost`). Ways to place:
//!
//! * *given*: part `i` on the `i`-th live cell with an agent;
//! * *curve*: parts in breadth-first order along a serpentine through the cells;
//! * *bisect*: cells and parts are bisected together, over and over: the cells where the machine is
//!   longest, the parts into two halves of matching sizes with few words between them (sweeps
//!   and greedy growing, then Fiduccia-Mattheyses passes), where a part is also drawn towards its
//!   partners in other regions; a bounded descent then swaps neighbours while that shortens ways;
//! * *best*: all of these are starts, some of them several times and with weights for words and
//!   for channels; the best are improved by local searches under the whole cost (module
//!   `anneal`), a first routing tells the phases of the last few candidates, and the cheapest
//!   is taken. As given and by bisection are always among the candidates, so it costs no more
//!   than either. A candidate that cannot be routed is taken only if none can.
//!
//! Fewer parts than cells get a compact region (module `region`) to start from; where that is
//! short of channels, *best* also tries the same with lines of free cells in between (module
//! `stretch`). Dead cells and switches hold no part.
//!
//! Distances are those of the intact machine where that has coordinates (dead links may make
//! ways longer); a graph has a table of hops if it is small enough, and else only "here" and
//! "elsewhere". Time is about in proportion to connections and cells, with fixed budgets for the
//! searches; only sets of some thousand connections are routed for a trial.

mod bisect;
mod cost;
mod curve;
mod expected_load;
mod initial;
mod metric;
mod part_graph;
mod portfolio;
mod region;
mod spread;
mod swap_descent;
mod threshold_accepting;
mod traffic;

use conset_ir::{CellId, ConnectionSet, Fix, Infeasible, Machine, Topology};
pub use cost::Cost;

use crate::network::Network;
use crate::{apr, explain};
use cost::PlacementLoads;
use expected_load::ExpectedLoad;
use initial::InitialPlacements;
use metric::Metric;
use traffic::Traffic;

/// Connections up to which the last candidates are routed to know their phases.
const ROUTING_LIMIT: usize = 1 << 13;
/// Connections of all such routings of one candidate; small sets get several.
const TRIAL_BUDGET: usize = 1 << 12;

/// How parts come to cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// Part `i` on the `i`-th live cell with an agent.
    Given,
    /// Along a space-filling curve.
    Curve,
    /// By recursive bisection for few word-hops.
    Bisect,
    /// All of these and a local search; the cheapest.
    #[default]
    Best,
}

impl Method {
    /// The spelling in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Given => "given",
            Method::Curve => "curve",
            Method::Bisect => "bisect",
            Method::Best => "best",
        }
    }
}

/// A cell for each part: `place[part]`. The set's cells are part numbers, from 0 to `parts`.
///
/// # Errors
/// More parts than live cells with an agent; a connection of a part that is not there.
pub fn place(
    machine: &Machine,
    set: &ConnectionSet,
    parts: usize,
    method: Method,
    seed: u64,
) -> Result<Vec<CellId>, Infeasible> {
    check_parts(machine, set, parts)?;
    let given: Vec<u32> = machine.endpoints().take(parts).map(|cell| cell.0).collect();
    let place = match method {
        Method::Given => given,
        Method::Curve | Method::Bisect | Method::Best => {
            let network = Network::new(machine);
            let placer = Placer::new(machine, &network, set, parts, seed);
            let mut starts = InitialPlacements::new(&placer);
            match method {
                Method::Curve => starts.curve(),
                Method::Bisect => starts.bisected(given),
                _ => portfolio::place(&placer, &mut starts, given),
            }
        }
    };
    Ok(place.into_iter().map(CellId).collect())
}

/// What a placement of a set costs by the estimate that [`Method::Best`] minimises.
///
/// # Errors
/// As [`place`], and a placement that is not one: other than one cell for each part, two parts on
/// a cell, a cell that has no live agent.
pub fn cost(
    machine: &Machine,
    set: &ConnectionSet,
    place: &[CellId],
    seed: u64,
) -> Result<Cost, Infeasible> {
    check_parts(machine, set, place.len())?;
    let mut taken = vec![false; machine.cell_count()];
    for (part, &cell) in place.iter().enumerate() {
        let fits = cell.index() < taken.len() && machine.is_endpoint(cell);
        if !fits || std::mem::replace(&mut taken[cell.index()], true) {
            let reason = format!("part {part} cannot live on {cell}: no live agent, or taken");
            return Err(infeasible(set, reason, vec![]));
        }
    }
    let network = Network::new(machine);
    let placer = Placer::new(machine, &network, set, place.len(), seed);
    let expected_load = ExpectedLoad::new(machine, &network, &placer.metric);
    let mut loads = PlacementLoads::new(machine, &expected_load, &placer.traffic);
    let place: Vec<u32> = place.iter().map(|cell| cell.0).collect();
    loads.load(&placer.traffic, &place);
    Ok(placer.evaluate(&loads, &place))
}

/// Words times distance of a set whose cells are cells of the machine, over live links.
///
/// # Errors
/// Ends that are not live cells with an agent; connections without a way.
pub fn word_hops(machine: &Machine, set: &ConnectionSet) -> Result<u128, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    crate::bounds::word_hops(machine, set)
}

/// A machine and a set made ready for placing.
struct Placer<'a> {
    machine: &'a Machine,
    network: &'a Network,
    set: &'a ConnectionSet,
    metric: Metric,
    traffic: Traffic,
    /// Whether there may be placements that cannot be routed.
    may_be_unroutable: bool,
    seed: u64,
}

impl<'a> Placer<'a> {
    fn new(
        machine: &'a Machine,
        network: &'a Network,
        set: &'a ConnectionSet,
        parts: usize,
        seed: u64,
    ) -> Self {
        let metric = Metric::new(machine, network);
        let traffic = Traffic::new(machine, set, parts);
        let may_be_unroutable = !machine.dead_cells().is_empty()
            || !machine.dead_links().is_empty()
            || matches!(machine.topology(), Topology::Graph { .. })
            || set.has_requirements();
        Self { machine, network, set, metric, traffic, may_be_unroutable, seed }
    }

    /// Whether a placement can be routed: everything reaches everything on most machines, but not
    /// where parts are dead or links lead one way, and connections may ask for short routes.
    fn is_routable(&self, place: &[u32]) -> bool {
        if !self.may_be_unroutable {
            return true;
        }
        let cells: Vec<CellId> = place.iter().copied().map(CellId).collect();
        let set = self.set.clone().placed(&cells);
        set.is_ok_and(|set| apr::is_routable(self.machine, self.network, &set))
    }

    /// The cost of a placement that is loaded: with the phases of a first routing, unless the set
    /// is so large that this would take long.
    fn evaluate(&self, loads: &PlacementLoads<'_>, place: &[u32]) -> Cost {
        if self.set.len() > ROUTING_LIMIT {
            return loads.cost(None);
        }
        let cells: Vec<CellId> = place.iter().copied().map(CellId).collect();
        let Ok(set) = self.set.clone().placed(&cells) else { return loads.cost(None) };
        let mut fewest: Option<u32> = None;
        for trial in 0..(TRIAL_BUDGET / self.set.len().max(1)).clamp(1, 4) {
            let seed = self.seed.wrapping_add(trial as u64);
            let options = apr::RouterOptions { seed, ..apr::RouterOptions::default() };
            match apr::phase_count(self.machine, &set, &options) {
                Ok(phases) => fewest = Some(fewest.map_or(phases, |fewest| fewest.min(phases))),
                // What cannot be routed (a wish that is not granted, two pieces of a machine) is
                // left to the estimate; the router will say what is wrong.
                Err(_) => break,
            }
            if fewest.is_some_and(|fewest| f64::from(fewest) <= loads.least_phases()) {
                break;
            }
        }
        loads.cost(fewest)
    }
}

fn check_parts(machine: &Machine, set: &ConnectionSet, parts: usize) -> Result<(), Infeasible> {
    let homes = machine.endpoints().count();
    if parts > homes {
        return Err(too_many_parts(set, parts, homes));
    }
    let stray = |c: &&conset_ir::Connection| c.source.index().max(c.target.index()) >= parts;
    let Some(stray) = set.connections().iter().find(stray) else { return Ok(()) };
    let (source, target) = (stray.source.0, stray.target.0);
    let reason =
        format!("a connection from part {source} to part {target}, but there are {parts} parts");
    let fix = Fix::Other("give the number of parts that the set has".to_owned());
    Err(infeasible(set, reason, vec![fix]))
}

fn too_many_parts(set: &ConnectionSet, parts: usize, homes: usize) -> Infeasible {
    let reason = format!("{parts} parts do not fit on {homes} live cells, one to each");
    let fixes = vec![Fix::Parts(homes), Fix::Cells(parts)];
    infeasible(set, reason, fixes)
}

fn infeasible(set: &ConnectionSet, reason: String, fixes: Vec<Fix>) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason,
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes,
    }
}

#[cfg(test)]
mod tests;
