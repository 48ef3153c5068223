//! Snapshots of the agents, and skipping of whole periods in them ([`crate::fast_forward`]).

use super::{AgentPort, Agents, OpenStream};
use crate::fast_forward::{SkipLimit, steps};
use crate::network::{NONE, Tag};
use crate::payload::Payload;
use crate::round_robin::RoundRobin;
use conset_ir::convert::index;

/// The state of the agents in a settled clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentsSnapshot {
    ports: Vec<PortSnapshot>,
    /// The next word of each open stream, port by port. The open streams do not change while a
    /// snapshot is valid.
    next: Vec<u32>,
    injected: u64,
    delivered: u64,
    wrong_words: u64,
}

#[derive(Clone, Debug)]
struct PortSnapshot {
    round_robin: RoundRobin,
    tag: Tag,
    words: u64,
}

impl AgentPort {
    pub(super) fn open(&self) -> impl Iterator<Item = &OpenStream> {
        self.slots.iter().filter(|stream| stream.operation != NONE)
    }
}

impl Agents {
    /// The ports used in this context.
    fn in_use(&self) -> impl Iterator<Item = &AgentPort> {
        self.used.iter().map(|&number| &self.ports[index(number)])
    }

    /// Takes a snapshot.
    pub(crate) fn save(&self, snapshot: &mut AgentsSnapshot) {
        snapshot.ports.clear();
        snapshot.next.clear();
        for port in self.in_use() {
            snapshot.ports.push(PortSnapshot {
                round_robin: port.round_robin.clone(),
                tag: port.tag,
                words: port.words,
            });
            snapshot.next.extend(port.open().map(|stream| stream.next));
        }
        (snapshot.injected, snapshot.delivered) = (self.injected, self.delivered);
        snapshot.wrong_words = self.wrong_words;
    }

    /// Whether the state equals the snapshot except for the words' numbers. The caller must know
    /// that no stream was opened or finished in between, and compare the actions in progress: these tell
    /// which ports are busy, and the round-robin pointer of a busy port tells with which stream.
    pub(crate) fn matches(&self, snapshot: &AgentsSnapshot) -> bool {
        self.wrong_words == snapshot.wrong_words
            && self.in_use().zip(&snapshot.ports).all(|(now, then)| {
                now.tag.stream() == then.tag.stream() && now.round_robin == then.round_robin
            })
    }

    /// Limits the skip so that no stream runs out of words in it.
    pub(crate) fn limit_skip(&self, snapshot: &AgentsSnapshot, limit: &mut SkipLimit) {
        for (now, &then) in self.in_use().flat_map(AgentPort::open).zip(&snapshot.next) {
            limit.steps(now.next - then, now.left.saturating_sub(1));
        }
    }

    /// Advances all counts and word numbers by `periods` times their advance since the snapshot,
    /// and moves the words. All of them are right, as those of the last period were.
    pub(crate) fn skip(&mut self, snapshot: &AgentsSnapshot, periods: u64, data: &mut dyn Payload) {
        let mut next = snapshot.next.iter();
        for (&number, then) in self.used.iter().zip(&snapshot.ports) {
            let now = &mut self.ports[index(number)];
            now.tag = now.tag.skip(then.tag, periods);
            now.words += (now.words - then.words) * periods;
            let open = now.slots.iter_mut().filter(|stream| stream.operation != NONE);
            for (now, &then) in open.zip(next.by_ref()) {
                let words = steps(now.next - then, periods);
                if !now.send && words > 0 {
                    data.transfer_run((now.connection, now.next), words);
                }
                now.next += words;
                now.left -= words;
            }
        }
        self.injected += (self.injected - snapshot.injected) * periods;
        self.delivered += (self.delivered - snapshot.delivered) * periods;
    }
}
