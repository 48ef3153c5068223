//! The agents' part in skipping ([`crate::period`]).

use super::{Agents, Flow, Port};
use crate::engine::Payload;
use crate::network::NONE;
use crate::period::Allowed;

/// The state of the agents at a settled clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentsState {
    ports: Vec<PortState>,
    /// The next word of each open stream, port by port. Which streams are open does not change
    /// as long as a snapshot is of use.
    next: Vec<u32>,
    injected: u64,
    delivered: u64,
    wrong_words: u64,
}

#[derive(Clone, Debug)]
struct PortState {
    turns: crate::turns::Turns,
    moving: u32,
    tag: crate::network::Tag,
    idle: bool,
    words: u64,
}

impl Port {
    pub(super) fn open(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().filter(|flow| flow.stream != NONE)
    }
}

impl Agents {
    /// The ports used in this context.
    fn in_use(&self) -> impl Iterator<Item = &Port> {
        self.used.iter().map(|&number| &self.ports[number as usize])
    }

    /// Takes a snapshot.
    pub(crate) fn save(&self, state: &mut AgentsState) {
        state.ports.clear();
        state.next.clear();
        for port in self.in_use() {
            let (turns, moving, tag) = (port.turns.clone(), port.moving, port.tag);
            let (idle, words) = (port.idle, port.words);
            state.ports.push(PortState { turns, moving, tag, idle, words });
            state.next.extend(port.open().map(|flow| flow.next));
        }
        (state.injected, state.delivered) = (self.injected, self.delivered);
        state.wrong_words = self.wrong_words;
    }

    /// Whether the state is that of the snapshot but for the words' numbers. That no stream was
    /// opened or finished in between, the caller knows.
    pub(crate) fn is_as(&self, state: &AgentsState) -> bool {
        self.wrong_words == state.wrong_words
            && self.in_use().zip(&state.ports).all(|(now, then)| {
                now.moving == then.moving
                    && now.idle == then.idle
                    && now.tag.stream() == then.tag.stream()
                    && now.turns == then.turns
            })
    }

    /// No stream may run out of words during the jump.
    pub(crate) fn allow(&self, state: &AgentsState, allowed: &mut Allowed) {
        for (now, &then) in self.in_use().flat_map(Port::open).zip(&state.next) {
            allowed.steps(now.next - then, now.left.saturating_sub(1));
        }
    }

    /// Advances all counts and word numbers by `periods` times what they have advanced since the
    /// snapshot, and moves the words. All of them are right, as those of the last period were.
    pub(crate) fn jump(&mut self, state: &AgentsState, periods: u64, data: &mut dyn Payload) {
        let mut next = state.next.iter();
        for (&number, then) in self.used.iter().zip(&state.ports) {
            let now = &mut self.ports[number as usize];
            now.tag = now.tag.jump(then.tag, periods);
            now.words += (now.words - then.words) * periods;
            let open = now.slots.iter_mut().filter(|flow| flow.stream != NONE);
            for (now, &then) in open.zip(next.by_ref()) {
                // At most `left`, so it fits.
                let words = (now.next - then) * periods as u32;
                if !now.send && words > 0 {
                    let place = (now.connection, now.next);
                    data.transfer_run(place, place, words);
                }
                now.next += words;
                now.left -= words;
            }
        }
        self.injected += (self.injected - state.injected) * periods;
        self.delivered += (self.delivered - state.delivered) * periods;
    }
}
