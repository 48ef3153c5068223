//! Proofs of the length of a phase, on machines with timed starts.
//!
//! The length is proved if no two streams of the phase ever meet, except that short ones may wait at
//! their targets. A stream that is alone on its agents and links has a closed form. It has `m` words,
//! `d` links and the start `s`; set-up takes
//! `u` clocks (with `network_overhead`, between two nodes), an agent `a` and a link `l` clocks per word, and `p` is the greater of these two (`a`
//! if `d` is 0):
//!
//! | resource | busy from | until |
//! |---|---|---|
//! | the agent of the source | `s` | `s + u + a + (m - 1) p` |
//! | link `h`, counted from 0 | `s + u + a + h l` | `s + u + a + h l + (m - 1) p + l` |
//! | the agent of the target | its first word arrives at `s + u + a + d l` | `e = s + u + 2 a + d l + (m - 1) p` |
//! | the agent of a cell that sends to itself, half duplex | `s` | `e = s + 2 u + 2 m a` |
//!
//! for any depth of the queues. If these intervals do not overlap on any link or agent, each stream
//! finds its resources free, no word waits, and the phase ends at the greatest `e`: its *length is
//! proved*. Consider consecutive streams of an agent in one direction (half duplex: in both), in the
//! order of their starts, which must differ. `s'`, `d'` are those of the later stream:
//!
//! * If the later stream is sent, the earlier one must have ended at its start: `e <= s'`.
//! * If it is received, it may be opened late, as long as it is open when its first word arrives:
//!   `e <= s' + a + d' l`. If the agent holds several streams and opening takes time, the later
//!   stream would be opened early, between words of the earlier one; then `e <= s'` is required.
//! * If it is received even later, its words wait at the target. If the queue there holds all of them
//!   (`m <= channel_depth`) and the agent holds one stream at a time, they hold no link and no other
//!   agent while they wait, so nothing else is delayed but the streams that the target receives
//!   later. The stream is then received at the greater of its `e` and `e + u + m a` with the `e` of
//!   the earlier stream, and this is its `e` in what follows.
//!
//! In an ordered set, a connection must not start before its predecessors in the phase are received.
//!
//! If streams meet, nothing is proved and nothing is refused; the fabric determines how late they
//! are. Without timed starts agents do not wait for a start, and nothing is proved; nor is it if links
//! have different rates.

use conset_ir::convert::to_u64;
use conset_ir::{
    CellId, Connection, ConnectionId, Duplex, LinkId, Machine, Parameters, PhaseId, RouteRef,
    Routing, Timetable,
};

/// The last clock for which starts are observed (machine model). Later ends are not proved.
const LAST_CLOCK: u128 = 1 << 62;

/// The proved lengths of the phases of a timetable, in clocks from the end of the context switch
/// until the last word is received; `None` for a phase without a proof, such as every phase on a
/// machine without timed starts. The routing must be correct.
pub fn phase_lengths(timetable: &Timetable) -> Vec<Option<u64>> {
    let starts = timetable.phases().iter().map(|times| times.slots.iter().map(|slot| slot.start));
    lengths(timetable.routing(), starts)
}

/// The proved lengths of a routing with the starts of the routes of each phase.
pub(crate) fn lengths(
    routing: &Routing,
    starts: impl Iterator<Item = impl Iterator<Item = u64>>,
) -> Vec<Option<u64>> {
    let [fastest, slowest] = routing.machine().link_clocks_range();
    if !routing.machine().parameters().has_timed_starts() || fastest < slowest {
        return vec![None; routing.phases().len()];
    }
    let mut proof = LengthProof::default();
    let phases = (0..routing.phases().len()).map(PhaseId::from_index);
    phases.zip(starts).map(|(phase, starts)| proof.length(routing, phase, starts)).collect()
}

/// A stream at an agent. The field order is the sorting order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Opening {
    agent: (CellId, bool),
    start: u64,
    /// The clock at which the previous stream must have ended.
    due: u128,
    end: u128,
    /// Clocks from the end of the previous stream to that of this one, if it may wait for it.
    busy: Option<u128>,
    /// The stream's place in the list of all.
    stream: usize,
}

/// The times of the streams of a phase. It reuses its memory for all phases.
#[derive(Default)]
struct LengthProof {
    openings: Vec<Opening>,
    /// Link, first clock, first clock after.
    crossings: Vec<(LinkId, u128, u128)>,
    /// Connection, start, and the clock at which its last word is received.
    streams: Vec<(ConnectionId, u64, u128)>,
}

impl LengthProof {
    fn length(
        &mut self,
        routing: &Routing,
        phase: PhaseId,
        starts: impl Iterator<Item = u64>,
    ) -> Option<u64> {
        self.openings.clear();
        self.crossings.clear();
        self.streams.clear();
        for (route, start) in routing.phases()[phase.index()].iter().zip(starts) {
            let connection = routing.set().get(route.connection);
            self.add(routing.machine(), &route, connection, start);
        }
        let free = self.links_are_free() && self.agents_are_free();
        let end = self.streams.iter().map(|stream| stream.2).max().unwrap_or(0);
        let free = free && end <= LAST_CLOCK && self.order_is_observed(routing.set().order());
        free.then_some(u64::try_from(end).ok()).flatten()
    }

    fn add(&mut self, machine: &Machine, route: &RouteRef<'_>, ends: &Connection, start: u64) {
        let parameters: &Parameters = machine.parameters();
        let hops = u128::from(to_u64(route.hops()));
        let (access, link) = (
            u128::from(parameters.access_clocks_per_word),
            u128::from(parameters.link_clocks_per_word),
        );
        let setup = u128::from(parameters.stream_setup)
            + u128::from(machine.network_overhead(ends.source, ends.target));
        let words = u128::from(route.words.max(1));
        let half = parameters.duplex == Duplex::Half;
        let s = u128::from(start);
        let stream = self.streams.len();
        if half && ends.source == ends.target {
            let end = s + 2 * setup + 2 * words * access;
            let agent = (ends.source, false);
            self.openings.push(Opening { agent, start, due: s, end, busy: None, stream });
            self.streams.push((route.connection, start, end));
            return;
        }
        let rest = (words - 1) * if hops > 0 { access.max(link) } else { access };
        let sent = s + setup + access + rest;
        let received = sent + hops * link + access;
        // With one stream at a time, or if opening takes no time, the agent of the target may become
        // free as late as the arrival of the first word minus the set-up.
        let late = parameters.streams == 1 || setup == 0;
        let due = if late { s + access + hops * link } else { s };
        let waits = parameters.streams == 1 && words <= u128::from(parameters.channel_depth);
        let busy = waits.then_some(setup + words * access);
        let (from, to) = ((ends.source, false), (ends.target, !half));
        self.openings.push(Opening { agent: from, start, due: s, end: sent, busy: None, stream });
        self.openings.push(Opening { agent: to, start, due, end: received, busy, stream });
        let mut from = s + setup + access;
        for &id in route.links() {
            self.crossings.push((id, from, from + rest + link));
            from += link;
        }
        self.streams.push((route.connection, start, received));
    }

    /// Whether no sender has to wait. Moves the ends of streams that wait at their targets.
    fn agents_are_free(&mut self) -> bool {
        self.openings.sort_unstable();
        let mut previous: Option<Opening> = None;
        for opening in &self.openings {
            let mut opening = *opening;
            if let Some(before) = previous.filter(|before| before.agent == opening.agent) {
                if before.start == opening.start {
                    return false;
                }
                if before.end > opening.due {
                    let Some(busy) = opening.busy else { return false };
                    opening.end = opening.end.max(before.end + busy);
                    self.streams[opening.stream].2 = opening.end;
                }
            }
            previous = Some(opening);
        }
        true
    }

    fn links_are_free(&mut self) -> bool {
        self.crossings.sort_unstable();
        self.crossings.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1)
    }

    /// Whether, for each ordered pair in this phase, all parts of the first connection are received
    /// when the first part of the second starts.
    fn order_is_observed(&mut self, order: &[(ConnectionId, ConnectionId)]) -> bool {
        if order.is_empty() {
            return true;
        }
        self.streams.sort_unstable();
        let parts = |x: ConnectionId| {
            let from = self.streams.partition_point(|stream| stream.0 < x);
            self.streams[from..].iter().take_while(move |stream| stream.0 == x)
        };
        order.iter().all(|&(before, after)| {
            let received = parts(before).map(|stream| stream.2).max();
            let start = parts(after).map(|stream| u128::from(stream.1)).min();
            received.zip(start).is_none_or(|(received, start)| received <= start)
        })
    }
}
