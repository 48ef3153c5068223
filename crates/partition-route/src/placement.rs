//! Placement: assigns each part of a program to a cell.
//!
//! The objective is the time of the compiled set, as far as it depends on the placement: channels
//! determine the number of phases, link loads determine the length of a phase if agents do not, and
//! short routes reduce both (module `cost`). Placement methods:
//!
//! * *given*: part `i` on the `i`-th live cell with an agent;
//! * *curve*: parts in breadth-first order along a serpentine through the cells;
//! * *bisect*: recursive bisection of cells and parts together. Cells are divided along the longest
//!   dimension, parts into two halves of matching sizes with few words between them (sweeps and
//!   greedy growing, then Fiduccia-Mattheyses passes), taking into account the partners of a part
//!   in other regions. A bounded descent then swaps neighbours while that shortens routes;
//! * *best*: all of these are starts, some of them several times and with weights for words and for
//!   channels. The best ones are improved by local searches under the whole cost (module
//!   `threshold_accepting`), trial routings count the phases of the last few candidates, and the
//!   cheapest one is taken. The given and the bisected placement are always candidates, so it costs
//!   no more than either. A candidate that cannot be routed is taken only if none can.
//!
//! If there are fewer parts than cells, the start is a compact region (module `region`); if that is
//! short of channels, *best* also tries the same placement with lines of free cells in between
//! (module `spread`). Dead cells and switches hold no part.
//!
//! Distances are those of the intact machine if it has coordinates (dead links may make routes
//! longer). A graph has a table of hops if it is small enough; otherwise all distances between
//! different cells count as equal. Time is about in proportion to connections and cells, with fixed
//! budgets for the searches; only sets of up to a few thousand connections are routed for a trial.
//!
//! ```
//! use conset_ir::{CellId, Connection, ConnectionSet, Machine};
//! use conset_partition_route::placement::{self, Method};
//!
//! // A ring of 16 parts, numbered by steps of 7, on a torus of 4x4 cells.
//! let machine = Machine::from_spec("torus:4x4")?;
//! let ring = (0..16).map(|i| Connection::new(CellId(7 * i % 16), CellId(7 * (i + 1) % 16), 10));
//! let set = ConnectionSet::new("ring", ring.collect())?;
//! let place = placement::place(&machine, &set, 16, Method::Best, 0)?;
//! // Every part is next to its successor: 160 words, one hop each.
//! assert_eq!(placement::word_hops(&machine, &set.placed(&place)?)?, 160);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

use conset_ir::convert::to_u64;
use conset_ir::{CellId, ConnectionSet, Fix, Infeasible, Machine, Topology, counted};
pub use cost::Cost;

use crate::network::Network;
use crate::{apr, explain};
use cost::PlacementLoads;
use expected_load::ExpectedLoad;
use initial::InitialPlacements;
use metric::Metric;
use traffic::Traffic;

/// Connections up to which the last candidates are routed to count their phases.
const ROUTING_LIMIT: usize = 1 << 13;
/// Connections of all trial routings of one candidate together; small sets get several trials.
const TRIAL_BUDGET: usize = 1 << 12;

/// A placement method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Method {
    /// Part `i` on the `i`-th live cell with an agent.
    Given,
    /// Along a space-filling curve.
    Curve,
    /// By recursive bisection for few word-hops.
    Bisect,
    /// The cheapest of all of these after a local search.
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

/// Places parts on cells: the result has a cell for each part. The endpoints of `set` are part
/// numbers below `parts`.
///
/// # Errors
/// More parts than live cells with an agent; a connection of a part that does not exist.
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

/// The cost of a placement, by the estimate that [`Method::Best`] minimises.
///
/// # Errors
/// As [`place`]; two parts on a cell; a cell without a live agent.
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
            let reason = format!(
                "part {part} cannot be placed on {cell}: it has no live agent, or holds another part"
            );
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

/// Words times distance over live links, for a set whose endpoints are cells of the machine.
///
/// # Errors
/// An endpoint that is not a live cell with an agent; a connection without a path.
pub fn word_hops(machine: &Machine, set: &ConnectionSet) -> Result<u128, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    crate::bounds::word_hops(machine, set)
}

/// A machine and a set, prepared for placement.
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

    /// Whether a placement can be routed. It always can on machines where every cell reaches every
    /// other, but not always if parts of the machine are dead, links lead one way, or connections
    /// require short routes.
    fn is_routable(&self, place: &[u32]) -> bool {
        if !self.may_be_unroutable {
            return true;
        }
        let cells: Vec<CellId> = place.iter().copied().map(CellId).collect();
        let set = self.set.clone().placed(&cells);
        set.is_ok_and(|set| apr::is_routable(self.machine, self.network, &set))
    }

    /// The cost of the placement whose loads are given. Trial routings count the phases, unless the
    /// set is large.
    fn evaluate(&self, loads: &PlacementLoads<'_>, place: &[u32]) -> Cost {
        if self.set.len() > ROUTING_LIMIT {
            return loads.cost(None);
        }
        let cells: Vec<CellId> = place.iter().copied().map(CellId).collect();
        let Ok(set) = self.set.clone().placed(&cells) else { return loads.cost(None) };
        let mut fewest: Option<u32> = None;
        for trial in 0..(TRIAL_BUDGET / self.set.len().max(1)).clamp(1, 4) {
            let seed = self.seed.wrapping_add(to_u64(trial));
            let options = apr::RouterOptions { seed, ..apr::RouterOptions::default() };
            match apr::phase_count(self.machine, &set, &options) {
                Ok(phases) => fewest = Some(fewest.map_or(phases, |fewest| fewest.min(phases))),
                // The estimate is used if the set cannot be routed (a requirement that is not met,
                // a disconnected machine); the router will report the error.
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
    let reason = format!(
        "a connection from part {source} to part {target}, but the number of parts is {parts}"
    );
    let fix = Fix::Other("give the number of parts of the set".to_owned());
    Err(infeasible(set, reason, vec![fix]))
}

fn too_many_parts(set: &ConnectionSet, parts: usize, homes: usize) -> Infeasible {
    let (wanted, cells) = (counted(parts, "part"), counted(homes, "live cell"));
    let verb = if parts == 1 { "does" } else { "do" };
    let reason = format!("{wanted} {verb} not fit on {cells} (one part per cell)");
    // No mesh can be divided into no parts.
    let fewer = Some(Fix::Parts(homes)).filter(|_| homes > 0);
    let fixes = fewer.into_iter().chain([Fix::Cells(parts)]).collect();
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
