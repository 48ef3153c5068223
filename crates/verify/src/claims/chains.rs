//! Lower bounds of the time of chains of ordered connections.
//!
//! From its start until its last word is received, on any route and with any division into parts, a
//! connection takes at least
//!
//! * a set-up and the access of every word at the agents of its ends, one after the other; or, if
//!   its ends are different cells, the time of the busiest of the links out of its source (or into
//!   its target, if these are fewer), which carries at least an equal share of the words;
//! * and the remaining latency of the last word: one access or two, and the links of a shortest
//!   route.
//!
//! With the set-up `s`, the access time `a`, the link time `l`, the hops `h`, the words `w`, the
//! number `d` of these links, and the maximum `m` of `a` and `l` (of `a` alone if `h` is 0), this is
//! `s + max(w a, w l / d) + 2 a + h l - m`. A connection starts when all its predecessors are
//! complete, so these times add up along a chain.

use conset_ir::{Connection, ConnectionId, ConnectionSet, LinkId, Machine};

use super::distances::ConnectionDistances;
use crate::live::Live;

/// The least time of each connection.
fn least_clocks(machine: &Machine, set: &ConnectionSet, hops: &[u32]) -> Vec<u128> {
    let live = Live::new(machine);
    let (mut out, mut into) = (vec![0u32; machine.cell_count()], vec![0u32; machine.cell_count()]);
    let ids = (0..machine.link_count()).map(LinkId::from_index);
    for link in ids.filter(|&link| live.is_link_alive(link)).map(|link| machine.link(link)) {
        out[link.source.index()] += 1;
        into[link.target.index()] += 1;
    }
    let parameters = machine.parameters();
    let access = u128::from(parameters.access_clocks_per_word);
    let [link, _] = machine.link_clocks_range().map(u128::from);
    let setup = u128::from(parameters.stream_setup);
    let of = |(connection, &hops): (&Connection, &u32)| {
        let (words, hops) = (u128::from(connection.words), u128::from(hops));
        let links = out[connection.source.index()].min(into[connection.target.index()]).max(1);
        let (moved, slowest) = match hops {
            0 => (words * access, access),
            _ => ((words * access).max(words * link / u128::from(links)), access.max(link)),
        };
        setup + moved + 2 * access + hops * link - slowest
    };
    set.connections().iter().zip(hops).map(of).collect()
}

/// The least time of a given chain.
pub(super) fn chain(
    machine: &Machine,
    set: &ConnectionSet,
    hops: &[u32],
    chain: &[ConnectionId],
) -> Result<u128, String> {
    if let Some(x) = chain.iter().find(|x| x.index() >= set.len()) {
        return Err(format!("there is no {x}"));
    }
    for pair in chain.windows(2) {
        if set.order().binary_search(&(pair[0], pair[1])).is_err() {
            return Err(format!("{} is not ordered before {}", pair[0], pair[1]));
        }
    }
    let clocks = least_clocks(machine, set, hops);
    Ok(chain.iter().map(|x| clocks[x.index()]).sum())
}

/// The longest chains before and after each connection.
pub(super) struct ChainBounds {
    clocks: Vec<u128>,
    head: Vec<u128>,
    tail: Vec<u128>,
}

impl ChainBounds {
    /// O(connections + order). The order of a set has no cycle.
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, hops: &[u32]) -> Self {
        let clocks = least_clocks(machine, set, hops);
        let mut this = Self { head: vec![0; set.len()], tail: vec![0; set.len()], clocks };
        // The pairs are sorted by their first connection.
        let after = |x: usize| {
            let from = set.order().partition_point(|pair| pair.0.index() < x);
            set.order()[from..].iter().take_while(move |pair| pair.0.index() == x)
        };
        let mut waits = vec![0u32; set.len()];
        set.order().iter().for_each(|pair| waits[pair.1.index()] += 1);
        let mut sequence: Vec<usize> = (0..set.len()).filter(|&x| waits[x] == 0).collect();
        let mut at = 0;
        while let Some(&x) = sequence.get(at) {
            at += 1;
            for (_, y) in after(x) {
                let y = y.index();
                this.head[y] = this.head[y].max(this.head[x] + this.clocks[x]);
                waits[y] -= 1;
                if waits[y] == 0 {
                    sequence.push(y);
                }
            }
        }
        for &x in sequence.iter().rev() {
            let behind = after(x).map(|(_, y)| this.tail[y.index()] + this.clocks[y.index()]);
            this.tail[x] = behind.max().unwrap_or(0);
        }
        this
    }

    /// The connections after chains of `head` clocks and before chains of `tail` clocks.
    pub(super) fn window(&self, head: u128, tail: u128) -> Vec<ConnectionId> {
        let within = |&x: &usize| self.head[x] >= head && self.tail[x] >= tail;
        (0..self.head.len()).filter(within).map(ConnectionId::from_index).collect()
    }

    /// The time of the longest chain; 0 without an order.
    pub(super) fn longest(
        machine: &Machine,
        set: &ConnectionSet,
        distances: &mut ConnectionDistances<'_>,
    ) -> u128 {
        if set.order().is_empty() {
            return 0;
        }
        let this = Self::new(machine, set, distances.hops());
        let ends = this.head.iter().zip(&this.clocks).map(|(head, clocks)| head + clocks);
        ends.max().unwrap_or(0)
    }
}
