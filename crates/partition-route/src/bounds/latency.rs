//! The bound of latencies: no phase is shorter than a word takes over its longest route.
//!
//! A connection of any number of words, in any number of parts, has a phase in which its first word
//! is sent, after the context switch, and received. That takes at least
//!
//! ```text
//! t = set-up + overhead + 2 access + distance * link
//! ```
//!
//! clocks, and the phase is not over before. Channels limit how many long routes a phase can have:
//! one over `d` links takes `d + 1` of the `C` channels of all live cells. So consider the
//! connections by `t`, the longest first, and the shortest prefix that needs more than `(k - 1) C`
//! channels. It does not fit into `k - 1` phases, so at least `k` phases are as long as the `t` of
//! its last connection. The sum of these values for the first, second, ... longest phase bounds the
//! clocks beside the switches. Phases of the phase bound for which channels are left have at least
//! the least `t` of all.
//!
//! It binds if connections have few words and there are many phases, where loads leave out the
//! clocks in which words are on their way.
//!
//! The bound holds on every machine, but is stated only with timed starts: the cost model leaves out
//! latencies elsewhere (`conset_scheduler`, module `predict`), and no prediction may be below its
//! bound.

use conset_ir::{Binding, Connection, ConnectionSet, Machine, Witness};

use super::{LoadBound, live_cells};
use crate::wide::wide;

/// The bound of the clocks of at least `phases` phases. `hops` has the distance of each connection.
pub(super) fn clocks(
    machine: &Machine,
    set: &ConnectionSet,
    hops: &[u32],
    phases: u64,
) -> LoadBound {
    let parameters = machine.parameters();
    let [fastest, _] = machine.link_clocks_range();
    let least = |(connection, &hops): (&Connection, &u32)| {
        let overhead = machine.network_overhead(connection.source, connection.target);
        let opened = u64::from(parameters.stream_setup) + u64::from(overhead);
        let moved =
            2 * u64::from(parameters.access_clocks_per_word) + u64::from(hops) * u64::from(fastest);
        (opened + moved, hops)
    };
    let mut routes: Vec<(u64, u32)> = set.connections().iter().zip(hops).map(least).collect();
    routes.sort_unstable_by(|a, b| b.cmp(a));
    let all = wide(live_cells(machine)) * u128::from(parameters.channels_per_cell);

    let (mut clocks, mut found, mut channels) = (0u128, 0u64, 0u128);
    for &(time, hops) in &routes {
        channels += u128::from(hops) + 1;
        while found < phases && channels > u128::from(found) * all {
            clocks += u128::from(time);
            found += 1;
        }
    }
    let shortest = routes.last().map_or(0, |&(time, _)| time);
    clocks += u128::from(phases - found) * u128::from(shortest);
    let longest = routes.first().map_or(0, |&(time, _)| time);
    let explanation = format!(
        "a word takes {longest} clocks over the longest route and {shortest} over the shortest; \
         channels limit how many long routes a phase has"
    );
    let bound = LoadBound::new(Binding::Latency, 0, explanation, Witness::Hops);
    LoadBound { ramp: clocks, ..bound }
}
