//! Snapshots of the message-passing machine, and skipping of whole periods in it
//! ([`crate::fast_forward`]).

use super::engine::MessageEngine;
use crate::base::BaseSnapshot;
use crate::delay_queue::DelayQueueSnapshot;
use crate::fast_forward::{DetectorAction, SkipLimit, steps};
use crate::payload::Payload;
use conset_ir::convert::index;

/// A snapshot for the detection of periods.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageSnapshot {
    base: BaseSnapshot,
    agents: Vec<AgentSnapshot>,
    sends: DelayQueueSnapshot<u32>,
    receives: DelayQueueSnapshot<u32>,
}

#[derive(Clone, Copy, Debug)]
struct AgentSnapshot {
    send_next: u32,
    receive_next: u32,
}

impl MessageEngine {
    /// Skips whole periods if the machine repeats its state.
    #[cold]
    pub(crate) fn check_period(&mut self, data: &mut dyn Payload) {
        let found = match self.base.detector.check(self.base.now) {
            DetectorAction::Compare(period) => self.matches_snapshot().then_some(period),
            DetectorAction::TakeSnapshot => None,
            DetectorAction::Wait => return,
        };
        if let Some(period) = found {
            let periods = self.skip_limit(period).periods();
            if periods > 0 {
                self.skip(period, periods, data);
            }
            self.base.detector.skipped(self.base.now, period);
        } else if self.base.detector.should_snapshot(self.base.now) {
            self.take_snapshot();
        }
    }

    fn take_snapshot(&mut self) {
        let past = &mut *self.snapshot;
        self.base.save(&mut past.base);
        self.sends.save(self.base.now, &mut past.sends);
        self.receives.save(self.base.now, &mut past.receives);
        past.agents.clear();
        past.agents.extend(self.agents.iter().map(|agent| AgentSnapshot {
            send_next: agent.send_next,
            receive_next: agent.receive_next,
        }));
    }

    /// Whether the state equals the snapshot except for the words' numbers. The states of the agents follow from
    /// what is compared: who moves a word has an action in progress, who waits for space or a word is known by
    /// the channel, and the beginning and end of all else invalidates the snapshot. No word is wrong, because a
    /// machine with faults does not skip periods.
    fn matches_snapshot(&self) -> bool {
        let past = &*self.snapshot;
        self.sends.matches(self.base.now, &past.sends)
            && self.receives.matches(self.base.now, &past.receives)
            && self.base.matches(&past.base)
    }

    /// Only senders limit the skip: a queue whose length repeats is filled as fast as it is emptied,
    /// so no queue on the way holds the tail of a message that is completely sent.
    fn skip_limit(&self, period: u64) -> SkipLimit {
        let mut limit = self.base.skip_limit(period);
        for (now, then) in self.agents.iter().zip(&self.snapshot.agents) {
            if now.send_next != then.send_next {
                // The last word is left, so that the end of the message is simulated normally.
                let left = self.worms[index(now.sent)].length - now.send_next;
                limit.steps(now.send_next - then.send_next, left.saturating_sub(1));
            }
        }
        limit
    }

    fn skip(&mut self, period: u64, periods: u64, data: &mut dyn Payload) {
        let extra = self.base.machine.parameters().message_extra_words;
        for (now, then) in self.agents.iter_mut().zip(&self.snapshot.agents) {
            // `skip_limit` keeps the products below the length of the message, so they fit.
            now.send_next += steps(now.send_next - then.send_next, periods);
            let words = steps(now.receive_next - then.receive_next, periods);
            if words == 0 {
                continue;
            }
            let first = now.receive_next.max(extra);
            now.receive_next += words;
            now.taken.1 += words;
            let delivered = now.receive_next.saturating_sub(first);
            if delivered > 0 {
                let label = self.worms[index(now.received)].message.label;
                data.transfer_run((label, first - extra), delivered);
                self.delivered += u64::from(delivered);
            }
        }
        let clocks = self.base.skip(&self.snapshot.base, period, periods);
        self.sends.delay(clocks);
        self.receives.delay(clocks);
    }
}
