//! How long a phase takes on a machine with timed starts, proved: the phases in which no stream is
//! ever in the way of another.
//!
//! A stream that is alone on its agents and links runs by a closed form. With `m` words over `d`
//! links from start `s`, with `u` clocks of set-up, `a` and `l` clocks a word through an agent and
//! over a link and `p` the longer of the two (`a` where `d` is 0):
//!
//! | what | busy from | until |
//! |---|---|---|
//! | the agent of the source | `s` | `s + u + a + (m - 1) p` |
//! | link `h`, counted from 0 | `s + u + a + h l` | `s + u + a + h l + (m - 1) p + l` |
//! | the agent of the target | its first word comes at `s + u + a + d l` | `e = s + u + 2 a + d l + (m - 1) p` |
//! | the agent of a cell that sends to itself, half duplex | `s` | `e = s + 2 u + 2 m a` |
//!
//! whatever the depth of the queues. Where these times do not meet on any link or agent, each
//! stream finds everything free when it is due, no word waits, and the phase is over at the
//! greatest `e`: its *length is proved*. Of an agent's streams in a direction (half duplex: in
//! both), taken by their starts, which must differ:
//!
//! * one that is sent is due when the one before it is over, at the latest: `e <= s'`;
//! * one that is received may be opened late, as long as it is open when its first word comes:
//!   `e <= s' + a + d' l`. Where the agent holds several streams and opening takes time it would be
//!   opened early, among the words of the one before: there `e <= s'`, too.
//!
//! In an ordered set, what comes after another in a phase must start when that is received.
//!
//! Where streams do meet, nothing is proved and nothing is refused: they are late, and the fabric
//! says by how much. Without timed starts agents do not wait for a start and nothing is proved.

use conset_ir::{CellId, Connection, ConnectionId, Duplex, Machine, Parameters, RouteRef, Routing};
use conset_ir::{LinkId, PhaseId, Timetable};

/// Clocks up to which starts are kept (machine model); what ends after it is not proved.
const LAST: u128 = 1 << 62;

/// The proved lengths of a timetable's phases, in clocks from the end of the switch until the last
/// word is received; `None` for a phase of which nothing is proved, which is every phase on a
/// machine without timed starts. The routing is taken to be right.
pub fn phase_lengths(timetable: &Timetable) -> Vec<Option<u64>> {
    let starts = timetable.phases().iter().map(|times| times.slots.iter().map(|slot| slot.start));
    lengths(timetable.routing(), starts)
}

/// The same of a routing with the starts of each phase's routes.
pub(crate) fn lengths(
    routing: &Routing,
    starts: impl Iterator<Item = impl Iterator<Item = u64>>,
) -> Vec<Option<u64>> {
    if !routing.machine().parameters().has_timed_starts() {
        return vec![None; routing.phases().len()];
    }
    let mut proof = Proof::default();
    let phases = (0..routing.phases().len()).map(PhaseId::from_index);
    phases.zip(starts).map(|(phase, starts)| proof.length(routing, phase, starts)).collect()
}

/// A stream at an agent. The field order is the sorting order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Opening {
    agent: (CellId, bool),
    start: u64,
    /// When what comes before it must be over.
    due: u128,
    over: u128,
}

/// The times of a phase; the memory is kept from phase to phase.
#[derive(Default)]
struct Proof {
    openings: Vec<Opening>,
    /// Link, first clock, first clock after.
    crossings: Vec<(LinkId, u128, u128)>,
    /// Connection, start, when its last word is received.
    streams: Vec<(ConnectionId, u64, u128)>,
}

impl Proof {
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
        let end = self.streams.iter().map(|stream| stream.2).max().unwrap_or(0);
        let free = end <= LAST && self.agents_are_free() && self.links_are_free();
        let free = free && self.order_is_kept(routing.set().order());
        free.then_some(u64::try_from(end).ok()).flatten()
    }

    fn add(&mut self, machine: &Machine, route: &RouteRef<'_>, ends: &Connection, start: u64) {
        let parameters: &Parameters = machine.parameters();
        let hops = route.links().len() as u128;
        let (access, link) = (
            u128::from(parameters.access_clocks_per_word),
            u128::from(parameters.link_clocks_per_word),
        );
        let setup = u128::from(parameters.stream_setup);
        let words = u128::from(route.words.max(1));
        let half = parameters.duplex == Duplex::Half;
        let s = u128::from(start);
        if half && ends.source == ends.target {
            let over = s + 2 * setup + 2 * words * access;
            self.openings.push(Opening { agent: (ends.source, false), start, due: s, over });
            self.streams.push((route.connection, start, over));
            return;
        }
        let rest = (words - 1) * if hops > 0 { access.max(link) } else { access };
        let sent = s + setup + access + rest;
        let received = sent + hops * link + access;
        // With one stream at a time, or where opening takes no time, a target's agent is in time
        // if it is free when the first word comes, less the set-up.
        let late = parameters.streams == 1 || setup == 0;
        let due = if late { s + access + hops * link } else { s };
        self.openings.push(Opening { agent: (ends.source, false), start, due: s, over: sent });
        self.openings.push(Opening { agent: (ends.target, !half), start, due, over: received });
        for (hop, &id) in route.links().iter().enumerate() {
            let from = s + setup + access + hop as u128 * link;
            self.crossings.push((id, from, from + rest + link));
        }
        self.streams.push((route.connection, start, received));
    }

    fn agents_are_free(&mut self) -> bool {
        self.openings.sort_unstable();
        self.openings.windows(2).all(|pair| {
            pair[0].agent != pair[1].agent
                || (pair[0].start < pair[1].start && pair[0].over <= pair[1].due)
        })
    }

    fn links_are_free(&mut self) -> bool {
        self.crossings.sort_unstable();
        self.crossings.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1)
    }

    /// Whether of each ordered pair in this phase all parts of the first are received when the
    /// first part of the second starts.
    fn order_is_kept(&mut self, order: &[(ConnectionId, ConnectionId)]) -> bool {
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
