//! Lower bounds on phases and clocks, which no schedule can beat.
//!
//! All arithmetic is exact (128-bit integers, rounded up once at the end). Every bound holds for
//! any division into phases, any routes and any timing within the machine model.
//!
//! Bounds on phases:
//!
//! * *endpoints*: each connection takes a channel on its source and one on its target (a single one
//!   if they are the same cell), so a cell where `e` connections end needs `ceil(e / channels)`
//!   phases.
//! * *channel total*: a route over `d` links takes `d + 1` channels, and no route is shorter than
//!   the distance. So the sum over all connections, divided by the channels of all live cells,
//!   bounds the phases.
//! * *channel flow*: lengths are assigned to cells such that routes are long where channels are
//!   scarce; better than the other bounds on machines with bottlenecks such as fat-trees (module
//!   `flow`).
//!
//! Precedence constraints do not bound the phases: ordered connections may share a phase.
//!
//! Bounds on clocks: each phase of the phase bound costs a context switch. The rest is at least the
//! load of the busiest resource, because the load of a resource is only divided among phases:
//!
//! * *agent load*: words times access clocks, plus a set-up for each stream (with several open
//!   streams set-ups can overlap and bound only on their own). With half duplex both directions are
//!   added.
//! * *average link*: words times distance times link clocks, over all live links.
//! * *dimension cuts* and *bisection*: words that must leave a set of cells, over the live links
//!   that leave it (module `cuts` says which sets are tried).
//! * *link flow*: lengths are assigned to links; this proves the time of the best division of all
//!   words over all routes (module `flow`).
//! * *channels and links*: lengths are assigned to cells and links, because routes that share all
//!   links evenly may need more channels than the fewest phases have (module `flow`).
//! * *order*: chains of connections that follow one another, and the words that must be moved
//!   between their ends (module `critical_path`).
//!
//! With timed starts, loads have clocks beside them in which words are on their way to the links and
//! agents that bind, or from them (module `ramps`), and there is a bound of its own:
//!
//! * *latency*: every phase takes as long as a word over its longest route, and channels limit how
//!   many long routes a phase has (module `latency`).
//!
//! Flow bounds are reported only if they exceed the bounds before them.
//!
//! Each bound comes with an explanation and with a witness from which the checker proves it again
//! ([`Witness`]). Distances are over live links; a connection without a path makes the set
//! infeasible. On very large machines with distant connections, distances count as 1 after 2^30
//! visited cells, which is lower and still correct.
//!
//! ```
//! use conset_ir::{Binding, CellId, Connection, ConnectionSet, Machine};
//! use conset_partition_route::bounds::bounds;
//!
//! let machine = Machine::from_spec("iwarp")?;
//! let set = ConnectionSet::new("one", vec![Connection::new(CellId(3), CellId(4), 133)])?;
//! let summary = bounds(&machine, &set)?.summary();
//! // A context switch of 528 clocks, then 133 words at 2 clocks each.
//! assert_eq!((summary.phases, summary.clocks), (1, 528 + 266));
//! assert_eq!(summary.clocks_by, Binding::AgentLoad);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod critical_path;
mod cuts;
mod flow;
mod latency;
mod ramps;

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    Binding, Bounds, CellId, Connection, ConnectionSet, Duplex, Infeasible, Lists, Machine, Proof,
    Witness,
};

use crate::explain;
use crate::network::{BoundedBfs, Network, UNREACHABLE};
use crate::wide::wide;
use ramps::Ramps;

/// Cells that the searches for distances may visit in total: a few seconds.
const SEARCH_BUDGET: usize = 1 << 30;

/// A lower bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The resource or structure that binds.
    pub binding: Binding,
    /// Phases or clocks.
    pub value: u64,
    /// The clocks of `value` in which words are on their way, beside the load of what binds.
    pub ramp: u64,
    /// The witness in words, for people.
    pub explanation: String,
    /// The witness from which the checker proves the bound again; `None` for the bound of an empty
    /// set.
    pub witness: Option<Witness>,
}

/// All lower bounds of a set on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundsReport {
    /// Bounds on the number of phases; never empty.
    pub phases: Vec<Bound>,
    /// Bounds on the time in clocks, context switches included; never empty.
    pub clocks: Vec<Bound>,
}

impl BoundsReport {
    /// The greatest bound of each kind; of equal ones the first.
    pub fn summary(&self) -> Bounds {
        summarize(tightest(&self.phases), tightest(&self.clocks))
    }

    /// As [`BoundsReport::summary`], but without the clocks in which words are on their way: what a
    /// search for plans can reach if it hides these.
    pub fn loads(&self) -> Bounds {
        let load = |bound: &Bound| bound.value - bound.ramp;
        let clocks = greatest_of(&self.clocks, load);
        Bounds { clocks: load(clocks), ..summarize(tightest(&self.phases), clocks) }
    }

    /// The witnesses of the bounds of [`BoundsReport::summary`].
    pub fn proof(&self) -> Proof {
        Proof {
            phases: tightest(&self.phases).witness.clone(),
            clocks: tightest(&self.clocks).witness.clone(),
        }
    }
}

fn summarize(phases: &Bound, clocks: &Bound) -> Bounds {
    Bounds {
        phases: u32::try_from(phases.value).unwrap_or(u32::MAX),
        phases_by: phases.binding,
        clocks: clocks.value,
        clocks_by: clocks.binding,
    }
}

/// The greatest bound, of equal ones the first. There is at least one.
fn tightest(bounds: &[Bound]) -> &Bound {
    greatest_of(bounds, |bound| bound.value)
}

/// The bound of which something is greatest, of equal ones the first. There is at least one.
fn greatest_of(bounds: &[Bound], of: impl Fn(&Bound) -> u64) -> &Bound {
    let greater = |best, bound| if of(bound) > of(best) { bound } else { best };
    bounds.iter().reduce(greater).expect("a set has bounds")
}

/// The channels on all routes of a set together that a compilation may use by default: in
/// proportion to the connections and the machine, and at most what a few gigabytes hold.
pub fn memory_budget(machine: &Machine, set: &ConnectionSet) -> u128 {
    let own =
        CHANNELS_PER_CONNECTION * wide(set.len()) + CHANNELS_PER_CELL * wide(machine.cell_count());
    (BASE_CHANNELS + own).min(MAX_CHANNELS)
}

/// The terms of [`memory_budget`]: for any set, for each connection and cell, and the limit.
const BASE_CHANNELS: u128 = 1 << 22;
const CHANNELS_PER_CONNECTION: u128 = 64;
const CHANNELS_PER_CELL: u128 = 2;
const MAX_CHANNELS: u128 = 3 << 24;

/// Computes all lower bounds of a set within its [`memory_budget`].
///
/// # Errors
/// As [`bounds`], and for a set whose shortest routes exceed the budget.
pub fn bounds_in_budget(
    machine: &Machine,
    set: &ConnectionSet,
) -> Result<BoundsReport, Infeasible> {
    bounds_with_budget(machine, set, memory_budget(machine, set))
}

/// Computes all lower bounds. O(distinct sources x (cells + links) + connections), where a search
/// stops at the farthest target of its source.
///
/// # Errors
/// An endpoint that is not a live cell with an agent; a connection without a path over live links.
pub fn bounds(machine: &Machine, set: &ConnectionSet) -> Result<BoundsReport, Infeasible> {
    bounds_with_budget(machine, set, u128::MAX)
}

fn bounds_with_budget(
    machine: &Machine,
    set: &ConnectionSet,
    most: u128,
) -> Result<BoundsReport, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    if set.is_empty() {
        let nothing = vec![Bound {
            binding: Binding::Nothing,
            value: 0,
            ramp: 0,
            explanation: "the set is empty".to_owned(),
            witness: None,
        }];
        return Ok(BoundsReport { phases: nothing.clone(), clocks: nothing });
    }
    let network = Network::new(machine);
    let shortest = ShortestRoutes::new(machine, &network, set)?;
    if shortest.channels > most {
        return Err(explain::too_long(set, shortest.channels, most));
    }
    let mut phases = vec![endpoint_bound(machine, set), total_bound(machine, shortest.channels)];
    phases.extend(flow::phases(machine, &network, set, tightest(&phases).value));
    let fewest = tightest(&phases).value;
    let switches = u128::from(fewest) * u128::from(machine.parameters().switch_clocks());
    let ramps = Ramps::new(machine, set, &shortest.hops, fewest);
    let mut clocks = vec![agent_bound(machine, set, true, ramps.as_ref())];
    clocks.extend(link_bound(machine, shortest.word_hops));
    clocks.extend(cuts::bounds(machine, set));
    let known = |clocks: &[LoadBound]| clocks.iter().map(|bound| bound.clocks).max().unwrap_or(0);
    clocks.extend(flow::clocks(machine, &network, set, known(&clocks)));
    clocks.extend(flow::clocks_in_phases(machine, &network, set, fewest, &clocks));
    clocks.extend(critical_path::clocks(machine, set, &shortest.hops, known(&clocks)));
    if let Some(ramps) = ramps {
        clocks.iter_mut().for_each(|bound| bound.ramp += ramps.of_links(bound));
        clocks.push(latency::clocks(machine, set, &shortest.hops, fewest));
    }
    let clocks = clocks.into_iter().map(|bound| bound.with_switches(switches)).collect();
    Ok(BoundsReport { phases, clocks })
}

/// The phase bound if the distances are known already.
pub(crate) fn fewest_phases(machine: &Machine, set: &ConnectionSet, hops: &[u32]) -> u32 {
    if set.is_empty() {
        return 0;
    }
    let channels = hops.iter().map(|&h| u128::from(h) + 1).sum();
    let phases = endpoint_bound(machine, set).value.max(total_bound(machine, channels).value);
    u32::try_from(phases).unwrap_or(u32::MAX)
}

/// The channels per cell with which the phase bound is `phases` or less.
pub(crate) fn fewest_channels(
    machine: &Machine,
    set: &ConnectionSet,
    phases: u32,
) -> Result<u64, Infeasible> {
    let phases = u128::from(phases.max(1));
    let busiest = endpoint_counts(machine, set).into_iter().max().unwrap_or(0);
    let cells = wide(live_cells(machine));
    let total = ShortestRoutes::new(machine, &Network::new(machine), set)?
        .channels
        .div_ceil(cells * phases);
    Ok(saturate(u128::from(busiest).div_ceil(phases).max(total)))
}

/// Words times distance of all connections. The endpoints must be valid.
pub(crate) fn word_hops(machine: &Machine, set: &ConnectionSet) -> Result<u128, Infeasible> {
    ShortestRoutes::new(machine, &Network::new(machine), set).map(|shortest| shortest.word_hops)
}

/// A bound on the clocks beside the context switches.
struct LoadBound {
    binding: Binding,
    clocks: u128,
    /// Clocks beside these in which words are on their way (module `ramps`).
    ramp: u128,
    explanation: String,
    witness: Witness,
}

impl LoadBound {
    fn new(binding: Binding, clocks: u128, explanation: String, witness: Witness) -> Self {
        Self { binding, clocks, ramp: 0, explanation, witness }
    }

    /// The bound of clocks, with those of context switches.
    fn with_switches(self, switches: u128) -> Bound {
        let value = saturate(switches + self.clocks + self.ramp);
        let mut explanation = self.explanation;
        if self.ramp > 0 && self.binding != Binding::Latency {
            explanation += &format!("; {} clocks in which words are on their way", self.ramp);
        }
        Bound {
            binding: self.binding,
            value,
            ramp: value - saturate(switches + self.clocks),
            explanation,
            witness: Some(self.witness),
        }
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn live_cells(machine: &Machine) -> usize {
    machine.cell_count() - machine.dead_cells().len()
}

/// The number of connections that end at each cell; a connection from a cell to itself counts once.
pub(crate) fn endpoint_counts(machine: &Machine, set: &ConnectionSet) -> Vec<u64> {
    let mut counts = vec![0; machine.cell_count()];
    for connection in set.connections() {
        counts[connection.source.index()] += 1;
        if connection.source != connection.target {
            counts[connection.target.index()] += 1;
        }
    }
    counts
}

/// The first greatest of some numbers, with its position.
fn first_greatest<T: Copy + PartialOrd>(loads: &[T]) -> (usize, T) {
    let mut best = 0;
    for (row, load) in loads.iter().enumerate() {
        if *load > loads[best] {
            best = row;
        }
    }
    (best, loads[best])
}

fn endpoint_bound(machine: &Machine, set: &ConnectionSet) -> Bound {
    let channels = machine.parameters().channels_per_cell;
    let (cell, ends) = first_greatest(&endpoint_counts(machine, set));
    let cell = CellId::from_index(cell);
    Bound {
        binding: Binding::Endpoints,
        value: ends.div_ceil(u64::from(channels)),
        ramp: 0,
        explanation: format!(
            "{ends} connections begin or end at {cell}, which has {channels} channels"
        ),
        witness: Some(Witness::Cell(cell)),
    }
}

fn total_bound(machine: &Machine, channels: u128) -> Bound {
    let all = wide(live_cells(machine)) * u128::from(machine.parameters().channels_per_cell);
    Bound {
        binding: Binding::ChannelTotal,
        value: saturate(channels.div_ceil(all)),
        ramp: 0,
        explanation: format!("shortest routes need {channels} channels, the machine has {all}"),
        witness: Some(Witness::Hops),
    }
}

/// What an agent sends, or what it receives.
#[derive(Clone, Default)]
struct AgentLoad {
    words: u128,
    streams: u64,
    /// Clocks to open the streams.
    setups: u128,
    /// The links of the shortest route.
    nearest: Option<u32>,
}

/// The load of the busiest agent, with or without the clocks to open streams; of equal ones that
/// with the greatest ramp.
fn agent_bound(
    machine: &Machine,
    set: &ConnectionSet,
    with_setups: bool,
    ramps: Option<&Ramps<'_>>,
) -> LoadBound {
    let parameters = machine.parameters();
    let access = u128::from(parameters.access_clocks_per_word);
    let streams = u128::from(parameters.streams);
    let mut loads = vec![[AgentLoad::default(), AgentLoad::default()]; machine.agent_count()];
    for (x, connection) in set.connections().iter().enumerate() {
        let overhead = machine.network_overhead(connection.source, connection.target);
        let setup = u128::from(parameters.stream_setup) + u128::from(overhead);
        let hops = ramps.map(|ramps| ramps.hops[x]);
        for (end, cell) in [connection.source, connection.target].into_iter().enumerate() {
            let load = &mut loads[cell.index()][end];
            load.words += u128::from(connection.words);
            load.streams += 1;
            load.setups += if with_setups { setup } else { 0 };
            load.nearest = load.nearest.into_iter().chain(hops).min();
        }
    }
    let clocks = |words: u128, setups: u128| match streams {
        1 => words * access + setups,
        _ => (words * access).max(setups.div_ceil(streams)),
    };
    let of = |load: &AgentLoad| {
        let ramp = ramps.zip(load.nearest).map_or(0, |(ramps, hops)| ramps.of_agent(hops));
        (clocks(load.words, load.setups), ramp)
    };
    let both = |[out, into]: &[AgentLoad; 2]| match parameters.duplex {
        Duplex::Full => of(out).max(of(into)),
        Duplex::Half => (clocks(out.words + into.words, out.setups + into.setups), 0),
    };
    let (cell, (clocks, ramp)) = first_greatest(&loads.iter().map(both).collect::<Vec<_>>());
    let id = CellId::from_index(cell);
    let [out, into] = &loads[cell];
    let explanation = format!(
        "{id} sends {} words over {} streams and receives {} over {}{}",
        out.words,
        out.streams,
        into.words,
        into.streams,
        if parameters.duplex == Duplex::Half { ", in turn" } else { "" },
    );
    let bound = LoadBound::new(Binding::AgentLoad, clocks, explanation, Witness::Cell(id));
    LoadBound { ramp, ..bound }
}

/// The average load of the links. `None` if there is no link (then no word needs one).
fn link_bound(machine: &Machine, word_hops: u128) -> Option<LoadBound> {
    let links: usize = machine.cells().map(|cell| machine.outgoing(cell).len()).sum();
    let [fastest, _] = machine.link_clocks_range();
    let clocks = word_hops * u128::from(fastest);
    let explanation = format!("{word_hops} word-hops of shortest routes over {links} links");
    (links > 0).then(|| {
        let clocks = clocks.div_ceil(wide(links));
        LoadBound::new(Binding::AverageLink, clocks, explanation, Witness::Hops)
    })
}

/// The resources that shortest routes need.
struct ShortestRoutes {
    /// Channels: distance + 1 for each connection.
    channels: u128,
    /// Words times distance.
    word_hops: u128,
    /// The distance of each connection.
    hops: Vec<u32>,
}

impl ShortestRoutes {
    /// The sums for a grid without dead cells or links, where distances need no search.
    fn on_grid(network: &Network, set: &ConnectionSet) -> Option<Self> {
        let grid = network.grid()?;
        let mut shortest = ShortestRoutes::nothing(set);
        for (x, connection) in set.connections().iter().enumerate() {
            shortest.add(x, connection, grid.between(connection.source.0, connection.target.0));
        }
        Some(shortest)
    }

    fn nothing(set: &ConnectionSet) -> Self {
        Self { channels: 0, word_hops: 0, hops: vec![0; set.len()] }
    }

    fn add(&mut self, x: usize, connection: &Connection, hops: u32) {
        self.hops[x] = hops;
        self.channels += u128::from(hops) + 1;
        self.word_hops += u128::from(hops) * u128::from(connection.words);
    }

    /// One search for each distinct source, as far as its farthest target.
    fn new(machine: &Machine, network: &Network, set: &ConnectionSet) -> Result<Self, Infeasible> {
        if let Some(shortest) = Self::on_grid(network, set) {
            return Ok(shortest);
        }
        let by_source = by_source(network.cells, set);
        let mut shortest = ShortestRoutes::nothing(set);
        let mut bfs = BoundedBfs::new(network.cells);
        let mut wanted = vec![u32::MAX; network.cells];
        let mut cut = Vec::new();
        let mut expanded = 0;
        for source in 0..to_u32(network.cells) {
            let row = by_source.of(source);
            if row.is_empty() {
                continue;
            }
            let mut open = 0;
            for &x in row {
                let target = set.connections()[index(x)].target.index();
                if std::mem::replace(&mut wanted[target], source) != source {
                    open += 1;
                }
            }
            let searched = expanded < SEARCH_BUDGET;
            if searched {
                expanded += bfs.run(&network.next, source, |cell, _| {
                    open -= u32::from(wanted[index(cell)] == source);
                    open == 0
                });
            }
            for &x in row {
                let connection = &set.connections()[index(x)];
                let hops = match searched {
                    true => bfs.hops(connection.target.0),
                    false => u32::from(connection.source != connection.target),
                };
                if hops == UNREACHABLE {
                    cut.push(index(x));
                    continue;
                }
                shortest.add(index(x), connection, hops);
            }
        }
        if cut.is_empty() {
            return Ok(shortest);
        }
        cut.sort_unstable();
        Err(explain::unreachable(machine, set, cut.into_iter()))
    }
}

/// The connections of each source cell.
fn by_source(cells: usize, set: &ConnectionSet) -> Lists {
    Lists::new(cells, set.iter().map(|(id, connection)| (connection.source.0, id.0)))
}

#[cfg(test)]
mod tests;
