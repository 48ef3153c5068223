//! Exact times of phases without contention, on machines with timed starts.
//!
//! In the fluid model ([`crate::fluid`]) queues hold no words: a stream whose target is still busy
//! flows at the rate of its target, so its sender opens the next one late, and the delay spreads. On
//! the machine the words of a short stream wait in the queue at the target, and nobody else notices.
//! For one-word streams that wait at their targets the fluid model predicts 2.5 times what the fabric
//! takes.
//!
//! Such phases have a closed form, if no two streams use a link at the same clock and every agent
//! has sent a stream when the next one starts. Set-up takes `u` clocks, an agent `a` and a link `l`
//! clocks per word, `p` is the greater of these two; a stream has `m` words, `d` links and the start `s`:
//!
//! * its agent has sent it at `s + u + a + (m - 1) p`; it is on its first link for `(m - 1) p + l`
//!   clocks from `s + u + a`, on each other one `l` clocks later;
//! * its first word arrives at `A = s + u + a + d l`. If its target can open it `u` clocks before,
//!   it is received at `A + (m - 1) p + a`;
//! * if its target is free later, at `f`, and the queue holds its `m` words, it is received then or
//!   at `f + u + m a`, whichever is later.
//!
//! The checker proves lengths of phases under the same conditions, with its own code
//! (`conset_verify::phase_lengths`).
//!
//! # What this module does not do
//!
//! Phases with contention, machines whose links have different rates, and longer streams that wait at
//! their targets are left to the fluid model.

use conset_ir::convert::{index, to_f64};

use crate::fluid::{FluidOutcome, FluidPhase};

/// The last clock at which a stream may end: below, times are whole numbers as `f64` too.
const LAST_CLOCK: u64 = 1 << 52;

/// What the closed form needs besides the phase.
pub(crate) struct ContentionFree<'a> {
    pub(crate) phase: &'a FluidPhase<'a>,
    /// The start of each stream.
    pub(crate) starts: &'a [u64],
    /// Clocks to open each stream.
    pub(crate) setups: &'a [u64],
    /// The links of the streams, one stream after the other, each in the order of its route.
    pub(crate) crossings: &'a [(u32, u32)],
    /// Clocks per word of an agent.
    pub(crate) access: u64,
    /// Clocks per word of each link.
    pub(crate) link: u64,
    /// Words that a queue holds.
    pub(crate) depth: u64,
    /// Whether an agent has one port for both directions.
    pub(crate) half: bool,
}

/// A stream that has its agents and links for itself.
#[derive(Clone, Copy)]
struct Alone {
    /// When its first word is on its first link.
    departs: u64,
    /// Clocks from its first to its last word.
    rest: u64,
    /// When its target must be free so that no word waits.
    due: u64,
    sent: u64,
    received: u64,
    /// Clocks for which its target receives it if all its words are there; `None` if they cannot
    /// wait.
    busy: Option<u64>,
}

impl ContentionFree<'_> {
    /// The times of the phase; `None` if streams meet.
    pub(crate) fn outcome(&self) -> Option<FluidOutcome> {
        let streams = self.alone()?;
        let (opened, received) = self.at_ports(&streams)?;
        let end = received.iter().copied().max().unwrap_or(0);
        if end > LAST_CLOCK || !self.links_are_free(&streams) || !self.keeps_order(&received) {
            return None;
        }
        let whole = |clocks: Vec<u64>| clocks.into_iter().map(to_f64).collect::<Vec<f64>>();
        let max_sharing = u32::from(!self.crossings.is_empty());
        Some(FluidOutcome {
            clocks: to_f64(end),
            opened: opened.into_iter().map(|both| both.map(to_f64)).collect(),
            sent: whole(streams.iter().map(|stream| stream.sent).collect()),
            finish_times: whole(received),
            max_sharing,
        })
    }

    /// Each stream by itself.
    fn alone(&self) -> Option<Vec<Alone>> {
        let mut hops = vec![0u64; self.starts.len()];
        self.crossings.iter().for_each(|&(row, _)| hops[index(row)] += 1);
        let phase = self.phase;
        let late = |setup: u64| phase.streams == 1 || setup == 0;
        let row = |row: usize| {
            let (start, setup, words) =
                (self.starts[row], self.setups[row], u64::from(phase.words[row].max(1)));
            let [from, to] = phase.ports[row];
            if start > LAST_CLOCK {
                return None;
            }
            if self.half && from == to {
                let end = start + 2 * setup + 2 * words * self.access;
                let (departs, rest, due, busy) = (start, 0, start, None);
                return Some(Alone { departs, rest, due, sent: end, received: end, busy });
            }
            let word = if hops[row] > 0 { self.access.max(self.link) } else { self.access };
            let (departs, rest) = (start + setup + self.access, (words - 1) * word);
            let way = hops[row] * self.link;
            let due = if late(setup) { start + self.access + way } else { start };
            let waits = phase.streams == 1 && words <= self.depth;
            Some(Alone {
                departs,
                rest,
                due,
                sent: departs + rest,
                received: departs + rest + way + self.access,
                busy: waits.then_some(setup + words * self.access),
            })
        };
        (0..self.starts.len()).map(row).collect()
    }

    /// When the ports of each stream open it, and when it is received; `None` if a sender has to
    /// wait, or a target for so long that words do not fit into its queue.
    fn at_ports(&self, streams: &[Alone]) -> Option<(Vec<[u64; 2]>, Vec<u64>)> {
        let mut opened: Vec<[u64; 2]> = self.starts.iter().map(|&start| [start; 2]).collect();
        let mut received: Vec<u64> = streams.iter().map(|stream| stream.received).collect();
        for port in 0..self.phase.lists.rows() {
            let mut free = 0;
            for &row in self.phase.lists.of(port) {
                let row = index(row);
                let Alone { due, sent, busy, .. } = streams[row];
                let [from, to] = self.phase.ports[row];
                let sends = from == port;
                if free > if sends { self.starts[row] } else { due } {
                    let busy = busy.filter(|_| !sends)?;
                    received[row] = received[row].max(free.saturating_add(busy));
                }
                opened[row][usize::from(!sends)] = free.max(self.starts[row]);
                free = if sends && from != to { sent } else { received[row] };
            }
        }
        Some((opened, received))
    }

    /// Whether no two streams are on a link at the same clock.
    fn links_are_free(&self, streams: &[Alone]) -> bool {
        let (mut last, mut hops) = (u32::MAX, 0);
        let crossing = |&(row, link): &(u32, u32)| {
            hops = if row == last { hops + 1 } else { 0 };
            last = row;
            let Alone { departs, rest, .. } = streams[index(row)];
            let from = departs + hops * self.link;
            (link, from, from + rest + self.link)
        };
        let mut crossings: Vec<(u32, u64, u64)> = self.crossings.iter().map(crossing).collect();
        crossings.sort_unstable();
        crossings.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1)
    }

    /// Whether every stream starts after all parts of its predecessors are received.
    fn keeps_order(&self, received: &[u64]) -> bool {
        let Some(precedence) = self.phase.precedence else { return true };
        (0..precedence.predecessors.rows()).all(|group| {
            let rows = |group: u32| precedence.routes.of(group).iter().map(|&row| index(row));
            let start = rows(group).map(|row| self.starts[row]).min().unwrap_or(u64::MAX);
            let before = precedence.predecessors.of(group).iter().flat_map(|&group| rows(group));
            before.map(|row| received[row]).all(|end| end <= start)
        })
    }
}
