//! Bounds from precedence constraints: chains of connections, and the words between their ends.
//!
//! A connection starts when all its predecessors have ended. So it does not start before the
//! longest chain that leads to it has ended (its *head*), and after it the longest chain behind it
//! is still to come (its *tail*). Two kinds of bounds follow, both for the clocks beside the
//! context switches, because no word moves during a switch:
//!
//! * the longest chain;
//! * a *window*: connections with heads of at least `a` clocks and tails of at least `b` clocks do
//!   not start in the first `a` clocks and end `b` clocks before the end. Their load on agents, on
//!   links on average and on cuts has to fit in between, so `a`, `b` and this load together bound
//!   the time. (The loads are those of the other bounds, for these connections alone. Stream
//!   set-ups are left out, because a receiver may have opened its stream before.)
//!
//! # The clocks of a connection in a chain
//!
//! They run from the end of all predecessors until the last word is received. The sender opens its
//! stream in this time (an operation that waits for others is not open). Let `a` be the access time
//! of a word, `l` the time a link takes for it, `h` the links of a shortest path, `w` the words,
//! `s` the set-up, and `d` the links that leave the source or, if they are fewer, that enter the
//! target. The following does not depend on routes, parts, phases or sharing:
//!
//! * The agent of the source sends the words one after the other. The last one is sent at `s + w a`
//!   at the earliest, then crosses `h` links and the agent of the target: `s + w a + h l + a`.
//! * If `h` is not 0, one of the `d` links carries at least `w / d` words, one after the other.
//!   Before the first of them there is an `a`; besides this link the last word crosses `h - 1`
//!   others and the agent of the target (or the first word does, if the links are those of the
//!   target, with the same result): `s + a + w l / d + (h - 1) l + a`.
//!
//! With `m` the greater of `a` and, if `h` is not 0, `l`, both are at least
//!
//! ```text
//! s + max(w a, w l / d) + 2 a + h l - m
//! ```
//!
//! This value is used. It is what the cost model predicts for a connection alone, so no bound
//! exceeds its prediction.
//!
//! The windows are all pairs of some heads and some tails, chosen evenly from all that there are.
//! Chains of windows are not considered: consecutive windows do not bind more than the longest of
//! them.

use conset_ir::convert::{index, to_u32};
use conset_ir::{Binding, Connection, ConnectionId, ConnectionSet, Machine, Witness};

use super::{LoadBound, agent_bound, cuts, link_bound, word_hops};
use crate::wide::wide;

/// Different heads, and tails, of which windows are made.
const LEVELS: usize = 12;
/// Connections of all windows together.
const WINDOW_BUDGET: usize = 1 << 22;

/// The best precedence bound, if it exceeds `known`. `hops` has the distance of each connection.
pub(super) fn clocks(
    machine: &Machine,
    set: &ConnectionSet,
    hops: &[u32],
    known: u128,
) -> Option<LoadBound> {
    if set.order().is_empty() {
        return None;
    }
    let paths = CriticalPaths::new(machine, set, hops)?;
    let mut best: Option<LoadBound> = None;
    let mut offer = |load: LoadBound| {
        let least = best.as_ref().map_or(known, |best| best.clocks);
        if load.clocks > least {
            best = Some(load);
        }
    };
    let (length, chain) = paths.longest();
    let explanation = format!("{} connections, each after the one before it", chain.len());
    offer(LoadBound::new(Binding::Order, length, explanation, Witness::Chain(chain)));
    let (heads, tails) = (levels(&paths.head), levels(&paths.tail));
    let windows = heads.iter().flat_map(|&a| tails.iter().map(move |&b| (a, b)));
    let mut expanded = 0;
    for (a, b) in windows.filter(|&(a, b)| a + b > 0) {
        expanded += set.len();
        if expanded > WINDOW_BUDGET {
            break;
        }
        let among = |&x: &usize| paths.head[x] >= a && paths.tail[x] >= b;
        let members: Vec<usize> = (0..set.len()).filter(among).collect();
        let Some(load) = window(machine, set, &members) else { continue };
        // The file formats cannot represent chains of 2^64 clocks.
        let (Ok(head), Ok(tail)) = (u64::try_from(a), u64::try_from(b)) else { continue };
        let LoadBound { binding, clocks, explanation, witness, .. } = load;
        let side = if let Witness::Cut(side) = witness { side } else { Vec::new() };
        let explanation = format!(
            "{} connections come after chains of {a} clocks and before chains of {b}, and take \
             {clocks} by {binding}: {explanation}",
            members.len()
        );
        let witness = Witness::Window { head, tail, side };
        offer(LoadBound::new(Binding::Order, a + b + clocks, explanation, witness));
    }
    best
}

/// The greatest load of some connections.
fn window(machine: &Machine, set: &ConnectionSet, members: &[usize]) -> Option<LoadBound> {
    let rows = members
        .iter()
        .map(|&x| conset_ir::Connection { name: None, ..set.connections()[x].clone() });
    let some = ConnectionSet::new(set.name(), rows.collect()).ok().filter(|set| !set.is_empty())?;
    let hops = word_hops(machine, &some).ok()?;
    let loads = [agent_bound(machine, &some, false, None)].into_iter();
    let loads = loads.chain(link_bound(machine, hops)).chain(cuts::bounds(machine, &some));
    // Of equal ones the first.
    loads.reduce(|best, load| if load.clocks > best.clocks { load } else { best })
}

/// The head and tail of each connection.
struct CriticalPaths {
    clocks: Vec<u128>,
    head: Vec<u128>,
    tail: Vec<u128>,
    /// The connection predecessor each on the longest chain to it; itself where none is.
    predecessor: Vec<u32>,
}

impl CriticalPaths {
    /// `None` for a cyclic order, which sets do not have.
    fn new(machine: &Machine, set: &ConnectionSet, hops: &[u32]) -> Option<Self> {
        let rows = set.connections().iter().zip(hops);
        let clocks = rows.map(|(connection, &hops)| minimum_clocks(machine, connection, hops));
        let mut this = Self {
            clocks: clocks.collect(),
            head: vec![0; set.len()],
            tail: vec![0; set.len()],
            predecessor: (0..to_u32(set.len())).collect(),
        };
        let topological_order = topological_order(set)?;
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); set.len()];
        set.order().iter().for_each(|(a, b)| after[a.index()].push(b.index()));
        for &x in &topological_order {
            for &y in &after[x] {
                let through = this.head[x] + this.clocks[x];
                if through > this.head[y] {
                    (this.head[y], this.predecessor[y]) = (through, to_u32(x));
                }
            }
        }
        for &x in topological_order.iter().rev() {
            let behind = after[x].iter().map(|&y| this.tail[y] + this.clocks[y]);
            this.tail[x] = behind.max().unwrap_or(0);
        }
        Some(this)
    }

    /// The clocks of the longest chain and its connections, in their order.
    fn longest(&self) -> (u128, Vec<ConnectionId>) {
        let ends = self.head.iter().zip(&self.clocks).map(|(head, clocks)| head + clocks);
        let Some((mut at, length)) = ends.enumerate().reduce(|a, b| if b.1 > a.1 { b } else { a })
        else {
            return (0, Vec::new());
        };
        let mut chain = vec![ConnectionId::from_index(at)];
        while index(self.predecessor[at]) != at {
            at = index(self.predecessor[at]);
            chain.push(ConnectionId::from_index(at));
        }
        chain.reverse();
        (length, chain)
    }
}

/// The least clocks from when a connection may start until it has ended.
fn minimum_clocks(machine: &Machine, connection: &Connection, hops: u32) -> u128 {
    let parameters = machine.parameters();
    let access = u128::from(parameters.access_clocks_per_word);
    let [link, _] = machine.link_clocks_range().map(u128::from);
    let (words, hops) = (u128::from(connection.words), u128::from(hops));
    let (mut flow, mut slowest) = (words * access, access);
    if hops > 0 {
        let [out, into] =
            [machine.outgoing(connection.source), machine.incoming(connection.target)];
        let links = wide(out.len().min(into.len()).max(1));
        (flow, slowest) = (flow.max(words * link / links), access.max(link));
    }
    u128::from(parameters.stream_setup) + flow + 2 * access + hops * link - slowest
}

/// The connections in an order in which each comes after all its predecessors.
fn topological_order(set: &ConnectionSet) -> Option<Vec<usize>> {
    let mut waits = vec![0u32; set.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); set.len()];
    for (a, b) in set.order() {
        waits[b.index()] += 1;
        after[a.index()].push(b.index());
    }
    let mut ready: Vec<usize> = (0..set.len()).filter(|&x| waits[x] == 0).collect();
    let mut place = 0;
    while let Some(&x) = ready.get(place) {
        place += 1;
        for &y in &after[x] {
            waits[y] -= 1;
            if waits[y] == 0 {
                ready.push(y);
            }
        }
    }
    (ready.len() == set.len()).then_some(ready)
}

/// Some of the different values, chosen evenly, with the least and the greatest among them.
fn levels(values: &[u128]) -> Vec<u128> {
    let mut all = values.to_vec();
    all.sort_unstable();
    all.dedup();
    if all.len() <= LEVELS {
        return all;
    }
    (0..LEVELS).map(|row| all[row * (all.len() - 1) / (LEVELS - 1)]).collect()
}
