//! The message-passing machine's part in skipping ([`crate::period`]).

use super::agents::{Agent, Receiving, Sending};
use super::engine::MessageEngine;
use crate::base::BaseState;
use crate::engine::Payload;
use crate::lane::LaneState;
use crate::period::{Allowed, Look};

/// A snapshot to find periods with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    base: BaseState,
    agents: Vec<AgentState>,
    sends: LaneState<u32>,
    receives: LaneState<u32>,
    wrong_words: u64,
}

#[derive(Clone, Copy, Debug)]
struct AgentState {
    sending: Sending,
    receiving: Receiving,
    send_next: u32,
    receive_next: u32,
    /// The message of the word being taken out.
    taken: u32,
}

impl AgentState {
    fn of(agent: &Agent) -> Self {
        Self {
            sending: agent.sending,
            receiving: agent.receiving,
            send_next: agent.send_next,
            receive_next: agent.receive_next,
            taken: agent.taken.0,
        }
    }

    /// The same but for the words' numbers.
    fn is_like(self, other: Self) -> bool {
        (self.sending, self.receiving, self.taken) == (other.sending, other.receiving, other.taken)
    }
}

impl MessageEngine {
    /// Looks whether the machine repeats itself, and jumps over whole periods if so.
    #[cold]
    pub(crate) fn look(&mut self, data: &mut dyn Payload) {
        let found = match self.base.watch.look(self.base.now) {
            Look::Compare(period) => self.is_as_before().then_some(period),
            Look::Take => None,
            Look::Wait => return,
        };
        if let Some(period) = found {
            let periods = self.allowed(period).periods();
            if periods > 0 {
                self.jump(period, periods, data);
            }
            self.base.watch.jumped(self.base.now, period);
        } else if self.base.watch.is_to_take(self.base.now) {
            self.snapshot();
        }
    }

    fn snapshot(&mut self) {
        let past = &mut *self.past;
        self.base.save(&mut past.base);
        self.sends.save(self.base.now, &mut past.sends);
        self.receives.save(self.base.now, &mut past.receives);
        past.agents.clear();
        past.agents.extend(self.agents.iter().map(AgentState::of));
        past.wrong_words = self.wrong_words;
    }

    fn is_as_before(&self) -> bool {
        let past = &*self.past;
        let agents = self.agents.iter().zip(&past.agents);
        self.sends.is_as(self.base.now, &past.sends)
            && self.receives.is_as(self.base.now, &past.receives)
            && agents.into_iter().all(|(now, then)| AgentState::of(now).is_like(*then))
            && self.base.is_as(&past.base)
            && self.wrong_words == past.wrong_words
    }

    /// What runs out first of a message is its sender: queues that hold what they held before are
    /// filled as fast as they are emptied, so tails that have been sent are in none of them.
    fn allowed(&self, period: u64) -> Allowed {
        let mut allowed = self.base.allowed(period);
        for (now, then) in self.agents.iter().zip(&self.past.agents) {
            if now.send_next != then.send_next {
                // One word is left, so that the sender does not find out that it has none.
                let left = self.worms[now.sent as usize].length - now.send_next;
                allowed.steps(now.send_next - then.send_next, left.saturating_sub(1));
            }
        }
        allowed
    }

    fn jump(&mut self, period: u64, periods: u64, data: &mut dyn Payload) {
        let extra = self.base.machine.parameters().message_extra_words;
        for (now, then) in self.agents.iter_mut().zip(&self.past.agents) {
            // What moves is limited by a message's length, and so is its product.
            now.send_next += (now.send_next - then.send_next) * periods as u32;
            let words = (now.receive_next - then.receive_next) * periods as u32;
            if words == 0 {
                continue;
            }
            let first = now.receive_next.max(extra);
            now.receive_next += words;
            now.taken.1 += words;
            let delivered = now.receive_next.saturating_sub(first);
            if delivered > 0 {
                let place = (self.worms[now.received as usize].message.label, first - extra);
                data.transfer_run(place, place, delivered);
                self.delivered += u64::from(delivered);
            }
        }
        let clocks = self.base.jump(&self.past.base, period, periods);
        self.sends.delay(clocks);
        self.receives.delay(clocks);
    }
}
