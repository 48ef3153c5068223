//! Negotiated congestion (PathFinder) over rounds and routes.
//!
//! Connections of a round share no agent, and no link beyond its capacity at full rate. A round
//! lasts as long as its longest connection. In a pass every connection in turn is ripped up and
//! takes the cheapest round in which *any* of its shortest routes is free: the first round that is
//! long enough already, otherwise the one that it lengthens least. Free rounds are bits of a word,
//! so the search for a route over a cell's links handles 64 rounds at a time. Among routes it
//! prefers links that have carried least so far.
//!
//! The result depends on the order of connections, so passes negotiate it:
//!
//! * The first pass takes long connections first, and far ones before near ones.
//! * Later passes take the rounds of the pass before in a new order: the last round first, the
//!   fullest first, or random. With equal words this rarely adds a round and often saves one.
//!   Connections that were placed late come earlier: their *history cost* is kept.
//! * In some passes most connections keep their route if it is free.
//! * With an order, a connection's round comes after the rounds of all its predecessors. At first
//!   the connections with the longest critical path come first, then those that came early in the
//!   best pass so far.
//!
//! The result is the best pass. The search ends when the bound is reached, when no pass was better
//! for some time, or at the work limit. It supports every topology, parallel links, dead cells and
//! links, half-duplex agents and ordered sets. Required bandwidths and latencies depend on what
//! shares a link in a phase, not in a round: any shortest route is suitable, and `phase_packing`
//! enforces them.

mod precedence;
mod routes;
mod table;
#[cfg(test)]
mod tests;

use conset_ir::convert::index;
use conset_ir::{ConnectionSet, Machine};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::paths::Paths;
use conset_partition_route::network::Network;
use precedence::PrecedenceGraph;
pub(super) use routes::Routes;
use table::RoundTable;

/// The rounds and routes of the best pass.
pub(super) struct RoundPlan {
    pub(super) rounds: u32,
    pub(super) round_of: Vec<u32>,
    pub(super) paths: Paths,
}

/// The best pass: [`RoundTable::value`], rounds, and edges of routes.
struct BestPass {
    value: (u64, u64),
    round_of: Vec<u32>,
    taken: Vec<u32>,
}

/// The number of passes without improvement after which the search ends.
const PATIENCE: u32 = 400;
/// All but one in this many connections keep their route if it is free.
const FROZEN: u32 = 8;
const FROZEN_ORDERED: u32 = 64;
/// The number of passes with free choice of routes that alternate with as many passes in which
/// most connections keep theirs.
const TURN: u32 = 32;
/// The maximum number of passes.
const PASSES: u32 = 1 << 12;

/// Negotiates until the rounds last no longer than `bound`, or for about `steps` steps. Returns
/// `None` if the set is empty or too large, or a connection has no route.
pub(super) fn search(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    bound: u64,
    steps: usize,
    seed: u64,
) -> Option<RoundPlan> {
    if set.is_empty() {
        return None;
    }
    let routes = Routes::new(network, set)?;
    let precedence = PrecedenceGraph::new(set);
    let mut table = RoundTable::new(machine, set, network)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut history_cost = vec![0u32; set.len()];
    let mut sequence = first_sequence(&table, &routes, &precedence);
    let mut best: Option<BestPass> = None;
    let (mut idle, mut spent) = (0, 0usize);
    for pass in 0..PASSES {
        spent = spent.saturating_add(table.pass(&routes, &precedence, &sequence)?);
        let value = table.value();
        let better = best.as_ref().is_none_or(|best| value < best.value);
        // Ordered sets go on from the best only, so that they wander among equals.
        if better || (precedence.any && best.as_ref().is_some_and(|best| value == best.value)) {
            let (round_of, taken) = (table.round_of.clone(), table.taken.clone());
            best = Some(BestPass { value, round_of, taken });
        }
        idle = if better { 0 } else { idle };
        idle += 1;
        let reached = best.as_ref().is_some_and(|best| best.value.0 <= bound);
        if reached || idle > PATIENCE || spent > steps {
            break;
        }
        if idle % 16 == 0 || precedence.any {
            // Back to the best, and on from there another way.
            let best = best.as_ref().expect("a pass was made");
            table.round_of.clone_from(&best.round_of);
            table.previous_route.clone_from(&best.taken);
            table.measure();
        } else {
            table.previous_route.clone_from(&table.taken);
        }
        table.frozen.clear();
        let most = match pass / TURN % 2 {
            _ if precedence.any => FROZEN_ORDERED,
            0 => 1,
            _ => FROZEN,
        };
        table.frozen.extend((0..set.len()).map(|_| rng.random_range(0..most) > 0));
        let spread = [1, 1, 2, 4][index(pass) % 4];
        table.jitter.iter_mut().for_each(|jitter| *jitter = rng.random_range(0..spread));
        sequence = table.next_sequence(pass, &precedence, &mut history_cost, &mut rng);
    }
    let BestPass { round_of, taken, .. } = best?;
    let mut paths = Paths::with_capacity(set.len());
    for (x, c) in set.connections().iter().enumerate() {
        let edges = &taken[routes.start(x)..routes.start(x + 1)];
        let far = edges.iter().map(|&edge| network.outgoing().head(index(edge)));
        paths.push(std::iter::once(c.source.0).chain(far));
    }
    let rounds = round_of.iter().max().map_or(0, |&last| last + 1);
    Some(RoundPlan { rounds, round_of, paths })
}

/// Long connections first, then far ones; with an order, the longest critical path first.
fn first_sequence(
    table: &RoundTable<'_>,
    routes: &Routes,
    precedence: &PrecedenceGraph,
) -> Vec<u32> {
    let key = |x: usize| {
        let words =
            if precedence.any { precedence.critical_path[x] } else { u64::from(table.words[x]) };
        (u64::MAX - words, u32::MAX - routes.hops[x])
    };
    precedence.sorted(&(0..table.words.len()).map(key).collect::<Vec<_>>())
}
