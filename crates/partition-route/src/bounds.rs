//! Lower bounds: what no schedule can beat, computed before any search.
//!
//! All arithmetic is exact (128-bit whole numbers, rounded up once at the end), and every bound
//! holds for any division into phases, any routes and any timing that keep the machine model.
//!
//! Phases:
//! * *endpoints*: each connection takes a channel on its source and one on its target (one alone
//!   if they are the same cell), so a cell where `e` connections end needs `ceil(e / channels)`
//!   phases.
//! * *channel total*: a route over `d` links takes `d + 1` channels, and no route is shorter than
//!   the distance, so the sum over all connections, over the channels of all live cells, rounded
//!   up.
//!
//! * *channel flow*: lengths given to cells, such that routes are long where channels are short
//!   of; more than the others where a machine is narrow, as a fat-tree is (module `flow`).
//!
//! Ordering constraints bound no phases: ordered connections may share one.
//!
//! Clocks: the phases of the phase bound each cost a context switch, and the rest is at least the
//! load of the busiest resource, because each resource's load is only divided among phases:
//! * *agent load*: words times access clocks, and a set-up for each stream (with several streams
//!   open at a time, set-ups can overlap, so then they bound only on their own); both directions
//!   added up if the agent is half duplex.
//! * *average link*: words times distance times link clocks, over all live links.
//! * *dimension cuts* and *bisection*: words that must leave a set of cells, over the live links
//!   that do (module `cuts` says which sets are tried);
//! * *link flow*: lengths given to links, which proves what the best division of all words over
//!   all routes would take (module `flow`);
//! * *order*: chains of connections that come one after the other, and what must be moved between
//!   their ends (module `order`).
//!
//! Flows are computed where they are more than the bounds before them.
//!
//! Every bound comes with a witness in words, and with one that the checker can prove it from anew
//! ([`Witness`]). Distances are over live links; a connection without
//! a way makes the set infeasible. On very large machines with far connections, distances are
//! counted as 1 once a thousand million cells were looked at, which is less and still true.

mod cuts;
mod flow;
mod order;

use conset_ir::{
    Binding, Bounds, CellId, Connection, ConnectionSet, Duplex, Infeasible, Machine, Proof, Witness,
};

use crate::explain;
use crate::network::{BoundedBfs, Network, UNREACHABLE};

/// Cells that the searches for distances may look at in all: some seconds.
const LOOKED_AT: usize = 1 << 30;

/// A lower bound: what binds, its value, the witness in words, and the one for the checker (`None`
/// where nothing binds).
pub type Bound = (Binding, u64, String, Option<Witness>);

/// All lower bounds of a set on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundsReport {
    /// Bounds of the number of phases; never empty.
    pub phases: Vec<Bound>,
    /// Bounds of the time in clocks, context switches included; never empty.
    pub clocks: Vec<Bound>,
}

impl BoundsReport {
    /// The greatest bound of each kind; of equal ones the first.
    pub fn summary(&self) -> Bounds {
        let phases = greatest(&self.phases);
        let clocks = greatest(&self.clocks);
        Bounds {
            phases: u32::try_from(phases.1).unwrap_or(u32::MAX),
            phases_by: phases.0,
            clocks: clocks.1,
            clocks_by: clocks.0,
        }
    }

    /// What proves the bounds of [`BoundsReport::summary`].
    pub fn proof(&self) -> Proof {
        Proof { phases: greatest(&self.phases).3.clone(), clocks: greatest(&self.clocks).3.clone() }
    }
}

fn greatest(bounds: &[Bound]) -> &Bound {
    let mut best = &bounds[0];
    for bound in &bounds[1..] {
        if bound.1 > best.1 {
            best = bound;
        }
    }
    best
}

/// Channels on all routes of a set together that a compile may take by default: in proportion to
/// the connections and to the machine, and no more than a few gigabytes hold.
pub fn memory_budget(machine: &Machine, set: &ConnectionSet) -> u128 {
    let own = CHANNELS_EACH * set.len() as u128 + CHANNELS_CELL * machine.cell_count() as u128;
    (CHANNELS + own).min(CHANNELS_MAX)
}

/// The parts of [`memory_budget`]: for any set, for each connection and cell, and in all.
const CHANNELS: u128 = 1 << 22;
const CHANNELS_EACH: u128 = 64;
const CHANNELS_CELL: u128 = 2;
const CHANNELS_MAX: u128 = 3 << 24;

/// Computes all lower bounds of a set within its [`memory_budget`].
///
/// # Errors
/// As [`bounds`], and a set whose shortest routes take more.
pub fn bounds_in_budget(
    machine: &Machine,
    set: &ConnectionSet,
) -> Result<BoundsReport, Infeasible> {
    bounds_up_to(machine, set, memory_budget(machine, set))
}

/// Computes all lower bounds. O(distinct sources x (cells + links) + connections), where a search
/// goes only as far as its source's targets.
///
/// # Errors
/// Ends that are not live cells with an agent; connections without a way over live links.
pub fn bounds(machine: &Machine, set: &ConnectionSet) -> Result<BoundsReport, Infeasible> {
    bounds_up_to(machine, set, u128::MAX)
}

fn bounds_up_to(
    machine: &Machine,
    set: &ConnectionSet,
    most: u128,
) -> Result<BoundsReport, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    if set.is_empty() {
        let nothing = vec![(Binding::Nothing, 0, "the set is empty".to_owned(), None)];
        return Ok(BoundsReport { phases: nothing.clone(), clocks: nothing });
    }
    let work = Work::new(machine, set)?;
    if work.channels > most {
        return Err(explain::too_long(set, work.channels, most));
    }
    let mut phases = vec![endpoint_bound(machine, set), total_bound(machine, work.channels)];
    phases.extend(flow::phases(machine, set, greatest(&phases).1));
    let switches =
        u128::from(greatest(&phases).1) * u128::from(machine.parameters().switch_clocks());
    let setup = machine.parameters().stream_setup;
    let mut clocks = vec![agent_bound(machine, set, setup)];
    clocks.extend(link_bound(machine, work.word_hops));
    clocks.extend(cuts::bounds(machine, set));
    let known = clocks.iter().map(|bound| bound.1).max().unwrap_or(0);
    clocks.extend(flow::clocks(machine, set, known));
    let known = clocks.iter().map(|bound| bound.1).max().unwrap_or(0);
    clocks.extend(order::clocks(machine, set, &work.hops, known));
    let clocks = clocks
        .into_iter()
        .map(|(binding, load, words, witness)| {
            (binding, clamp(switches + load), words, Some(witness))
        })
        .collect();
    Ok(BoundsReport { phases, clocks })
}

/// The phase bound, where the distances are known already.
pub(crate) fn fewest_phases(machine: &Machine, set: &ConnectionSet, hops: &[u32]) -> u32 {
    if set.is_empty() {
        return 0;
    }
    let channels = hops.iter().map(|&h| u128::from(h) + 1).sum();
    let phases = endpoint_bound(machine, set).1.max(total_bound(machine, channels).1);
    u32::try_from(phases).unwrap_or(u32::MAX)
}

/// The channels per cell with which the phase bound would be `phases` or less.
pub(crate) fn fewest_channels(
    machine: &Machine,
    set: &ConnectionSet,
    phases: u32,
) -> Result<u64, Infeasible> {
    let phases = u128::from(phases.max(1));
    let busiest = ends(machine, set).into_iter().max().unwrap_or(0);
    let cells = live_cells(machine) as u128;
    let total = Work::new(machine, set)?.channels.div_ceil(cells * phases);
    Ok(clamp(u128::from(busiest).div_ceil(phases).max(total)))
}

/// Words times distance of all connections, whose ends are known to be right.
pub(crate) fn word_hops(machine: &Machine, set: &ConnectionSet) -> Result<u128, Infeasible> {
    Work::new(machine, set).map(|work| work.word_hops)
}

/// A load in clocks, not yet cut to 64 bits.
type Load = (Binding, u128, String, Witness);

fn clamp(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn live_cells(machine: &Machine) -> usize {
    machine.cell_count() - machine.dead_cells().len()
}

/// Connections that end at each cell; one to the same cell counts once.
fn ends(machine: &Machine, set: &ConnectionSet) -> Vec<u64> {
    let mut ends = vec![0; machine.cell_count()];
    for connection in set.connections() {
        ends[connection.source.index()] += 1;
        if connection.source != connection.target {
            ends[connection.target.index()] += 1;
        }
    }
    ends
}

/// The first greatest of some numbers, with its place.
fn busiest<T: Copy + PartialOrd>(loads: &[T]) -> (usize, T) {
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
    let (cell, ends) = busiest(&ends(machine, set));
    (
        Binding::Endpoints,
        ends.div_ceil(u64::from(channels)),
        format!("{ends} connections end at {}, which has {channels} channels", CellId(cell as u32)),
        Some(Witness::Cell(CellId(cell as u32))),
    )
}

fn total_bound(machine: &Machine, channels: u128) -> Bound {
    let all = live_cells(machine) as u128 * u128::from(machine.parameters().channels_per_cell);
    (
        Binding::ChannelTotal,
        clamp(channels.div_ceil(all)),
        format!("shortest routes need {channels} channels, the machine has {all}"),
        Some(Witness::Hops),
    )
}

/// Clocks of the agents, the busiest, where opening a stream takes `setup` clocks.
fn agent_bound(machine: &Machine, set: &ConnectionSet, setup: u32) -> Load {
    let parameters = machine.parameters();
    let access = u128::from(parameters.access_clocks_per_word);
    let setup = u128::from(setup);
    let streams = u128::from(parameters.streams);
    let mut out = vec![(0u128, 0u128); machine.agent_count()];
    let mut into = out.clone();
    for connection in set.connections() {
        for (loads, cell) in [(&mut out, connection.source), (&mut into, connection.target)] {
            loads[cell.index()].0 += u128::from(connection.words);
            loads[cell.index()].1 += 1;
        }
    }
    let clocks = |(words, opened): (u128, u128)| match streams {
        1 => words * access + opened * setup,
        _ => (words * access).max((opened * setup).div_ceil(streams)),
    };
    let both = |(out, into): (&(u128, u128), &(u128, u128))| match parameters.duplex {
        Duplex::Full => clocks(*out).max(clocks(*into)),
        Duplex::Half => clocks((out.0 + into.0, out.1 + into.1)),
    };
    let loads: Vec<u128> = out.iter().zip(&into).map(both).collect();
    let (cell, load) = busiest(&loads);
    let witness = format!(
        "{} sends {} words over {} streams and receives {} over {}{}",
        CellId(cell as u32),
        out[cell].0,
        out[cell].1,
        into[cell].0,
        into[cell].1,
        if parameters.duplex == Duplex::Half { ", in turn" } else { "" },
    );
    (Binding::AgentLoad, load, witness, Witness::Cell(CellId(cell as u32)))
}

/// Clocks of the links on average. None if there is no link (then no word needs one).
fn link_bound(machine: &Machine, word_hops: u128) -> Option<Load> {
    let links: usize = machine.cells().map(|cell| machine.outgoing(cell).len()).sum();
    let clocks = word_hops * u128::from(machine.parameters().link_clocks_per_word);
    (links > 0).then(|| {
        (
            Binding::AverageLink,
            clocks.div_ceil(links as u128),
            format!("{word_hops} word-hops of shortest routes over {links} links"),
            Witness::Hops,
        )
    })
}

/// What shortest routes need in all.
struct Work {
    /// Channels: distance + 1 for each connection.
    channels: u128,
    /// Words times distance.
    word_hops: u128,
    /// The distance of each connection.
    hops: Vec<u32>,
}

impl Work {
    /// The sums over a grid of which nothing is dead, where hops need no search.
    fn on_grid(network: &Network, set: &ConnectionSet) -> Option<Self> {
        let grid = network.grid()?;
        let mut work = Work::nothing(set);
        for (x, connection) in set.connections().iter().enumerate() {
            work.add(x, connection, grid.between(connection.source.0, connection.target.0));
        }
        Some(work)
    }

    fn nothing(set: &ConnectionSet) -> Self {
        Self { channels: 0, word_hops: 0, hops: vec![0; set.len()] }
    }

    fn add(&mut self, x: usize, connection: &Connection, hops: u32) {
        self.hops[x] = hops;
        self.channels += u128::from(hops) + 1;
        self.word_hops += u128::from(hops) * u128::from(connection.words);
    }

    /// One search for each distinct source, as far as its furthest target.
    fn new(machine: &Machine, set: &ConnectionSet) -> Result<Self, Infeasible> {
        let network = Network::new(machine);
        if let Some(work) = Self::on_grid(&network, set) {
            return Ok(work);
        }
        let by_source = BySource::new(network.cells, set);
        let mut work = Work::nothing(set);
        let mut ball = BoundedBfs::new(network.cells);
        let mut wanted = vec![u32::MAX; network.cells];
        let mut cut = Vec::new();
        let mut looked_at = 0;
        for source in 0..network.cells as u32 {
            let row = by_source.of(source);
            if row.is_empty() {
                continue;
            }
            let mut open = 0;
            for &x in row {
                let target = set.connections()[x as usize].target.index();
                if std::mem::replace(&mut wanted[target], source) != source {
                    open += 1;
                }
            }
            let searched = looked_at < LOOKED_AT;
            if searched {
                looked_at += ball.grow(&network.next, source, |cell, _| {
                    open -= u32::from(wanted[cell as usize] == source);
                    open == 0
                });
            }
            for &x in row {
                let connection = &set.connections()[x as usize];
                let hops = match searched {
                    true => ball.hops(connection.target.0),
                    false => u32::from(connection.source != connection.target),
                };
                if hops == UNREACHABLE {
                    cut.push(x as usize);
                    continue;
                }
                work.add(x as usize, connection, hops);
            }
        }
        if cut.is_empty() {
            return Ok(work);
        }
        cut.sort_unstable();
        Err(explain::unreachable(machine, set, cut.into_iter()))
    }
}

/// The connections of each source cell.
struct BySource {
    first: Vec<u32>,
    connections: Vec<u32>,
}

impl BySource {
    fn new(cells: usize, set: &ConnectionSet) -> Self {
        let mut first = vec![0u32; cells + 1];
        for connection in set.connections() {
            first[connection.source.index() + 1] += 1;
        }
        for cell in 0..cells {
            first[cell + 1] += first[cell];
        }
        let mut next = first.clone();
        let mut connections = vec![0; set.len()];
        for (id, connection) in set.iter() {
            let at = &mut next[connection.source.index()];
            connections[*at as usize] = id.0;
            *at += 1;
        }
        Self { first, connections }
    }

    fn of(&self, source: u32) -> &[u32] {
        let source = source as usize;
        &self.connections[self.first[source] as usize..self.first[source + 1] as usize]
    }
}

#[cfg(test)]
mod tests;
