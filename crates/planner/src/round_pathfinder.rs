//! Rounds, phases and routes chosen together, by negotiation.
//!
//! Connections of a round share no agent, and no link beyond what it carries at full rate; a
//! round lasts as long as its longest connection. In a pass every connection is ripped up and
//! takes, one after the other, the cheapest round in which *any* of its shortest routes is free:
//! the first that is long enough already, else the one that it makes longer by least. What is free
//! is known for 64 rounds at a time, as bits of a word, so the search for a route over a cell's
//! links is one for all rounds. Among routes it takes links that have carried least so far.
//!
//! Who comes first decides (PathFinder's lesson), so passes negotiate:
//!
//! * the first pass goes by length, long connections and far ones first;
//! * later ones take the rounds of the pass before as they were, in a new order: the last first,
//!   the fullest first, or any; with equal words that hardly ever costs a round and often saves
//!   one. Connections that came late before come earlier: their *history cost* is remembered;
//! * in some passes most connections keep their route where it is free;
//! * with ordering constraints a connection's round comes after those of all that are before it;
//!   first those come first that have most to come after them, then those that came early in the
//!   best pass so far.
//!
//! The best pass is kept. It ends when the bound is reached, when no pass was better for some
//! time, or when the work was as much as allowed. Works with every topology, with parallel links,
//! dead cells and links, half duplex agents and order. Bandwidths and latencies that are asked for
//! are about what shares links in a phase and not in a round: shortest routes are as good as any
//! for them, and the packing of rounds minds the rest.

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

/// Rounds that a negotiation ended with.
pub(super) struct RoundPlan {
    pub(super) rounds: u32,
    pub(super) round_of: Vec<u32>,
    pub(super) paths: Paths,
}

/// What the best pass came to: [`RoundTable::value`], rounds, edges of routes.
struct BestPass {
    value: (u64, u64),
    round_of: Vec<u32>,
    taken: Vec<u32>,
}

/// Passes without success after which a negotiation ends.
const PATIENCE: u32 = 400;
/// Of so many connections all but one take their old route where it is free.
const FROZEN: u32 = 8;
const FROZEN_ORDERED: u32 = 64;
/// Passes in which all take any route, then as many in which most keep theirs, and so on.
const TURN: u32 = 32;
/// Passes at most.
const PASSES: u32 = 1 << 12;

/// Negotiates until the rounds last no more than `bound`, or for about so many steps; `None`
/// where the set is empty or too large, or a connection has no way.
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
        let far = edges.iter().map(|&edge| network.next.head(index(edge)));
        paths.push(std::iter::once(c.source.0).chain(far));
    }
    let rounds = round_of.iter().max().map_or(0, |&last| last + 1);
    Some(RoundPlan { rounds, round_of, paths })
}

/// Long connections first, then far ones; with an order those with most to come.
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
