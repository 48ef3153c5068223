//! Orders: how the messages of a level are arranged in steps.
//!
//! With `a` and `b` the digits of two cells in the level, of radix `r` (one number if the level changes
//! several digits of a cell's number):
//!
//! | order | step of a message from `a` to `b` |
//! |---|---|
//! | linear | `b`: all send to one cell after the other, which receives in the order of senders |
//! | pairwise | `a xor b` |
//! | balanced | `(a + 1) xor (b + 1)`, modulo the next power of two |
//! | ring | `b - a` modulo `r` |
//! | greedy | the first in which both are free, pair by pair |
//! | loaded | by the clocks that cells still have to do |
//!
//! Where two cells exchange messages in a step, the lower one sends first. The greedy order is that
//! of the CM-5 paper: in each step, every free cell in turn is paired with the least free cell that
//! it has something to send to.

use conset_ir::CellId;
use conset_ir::convert::{index, to_u32};

use super::levels::Level;
use super::{MessageCosts, MessageRoute, greedy, loaded};

/// An order of the messages within a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepOrder {
    /// One receiver after the other.
    Linear,
    /// Pairs by exclusive-or.
    Pairwise,
    /// Pairs by exclusive-or of the numbers shifted by one.
    Balanced,
    /// Each to the one at a distance that grows from step to step.
    Ring,
    /// Pairs of the least free cells.
    Greedy,
    /// Pairs of the cells with the most left to do, as soon as both are free.
    Loaded,
}

impl StepOrder {
    /// All orders.
    pub const ALL: [StepOrder; 6] = [
        StepOrder::Loaded,
        StepOrder::Greedy,
        StepOrder::Pairwise,
        StepOrder::Balanced,
        StepOrder::Ring,
        StepOrder::Linear,
    ];

    /// Its name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            StepOrder::Linear => "linear",
            StepOrder::Pairwise => "pairwise",
            StepOrder::Balanced => "balanced",
            StepOrder::Ring => "ring",
            StepOrder::Greedy => "greedy",
            StepOrder::Loaded => "loaded",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// The messages of a level as pairs of step and number, in the order of the plan.
    pub(super) fn arrange(
        self,
        level: &Level,
        cells: &[CellId],
        costs: &MessageCosts,
        route: &mut MessageRoute<'_>,
    ) -> Vec<(u32, u32)> {
        let shift = level.radix().next_power_of_two();
        let shifted = |digit: u64| (digit + 1) % shift;
        match self {
            StepOrder::Linear => by_digits(level, |_, b| b, true),
            StepOrder::Pairwise => by_digits(level, |a, b| a ^ b, false),
            StepOrder::Balanced => by_digits(level, |a, b| shifted(a) ^ shifted(b), false),
            StepOrder::Ring => ring(level),
            StepOrder::Greedy => greedy::arrange(level),
            StepOrder::Loaded => loaded::arrange(level, cells, costs, route),
        }
    }
}

/// Messages by the step of their digits; in a step by receiver and sender, or by pair, of which the
/// lower cell sends first.
fn by_digits(level: &Level, step: impl Fn(u64, u64) -> u64, by_receiver: bool) -> Vec<(u32, u32)> {
    let mut keys: Vec<((u32, u32, u32, bool), u32)> = level
        .messages
        .iter()
        .zip(0..)
        .map(|(message, row)| {
            let (source, target) = (message.source, message.target);
            let step = to_u32(step(level.digit(source), level.digit(target)));
            let key = match by_receiver {
                true => (step, target, source, false),
                false => (step, source.min(target), source.max(target), source > target),
            };
            (key, row)
        })
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(key, row)| (key.0, row)).collect()
}

/// The ring order. Its messages are chains through all cells of a step, in which every cell sends
/// one message and receives another. So each step is listed in rounds, in which a cell has no more
/// than one message: the first, third, .. message of a chain, then the second, fourth, ..
fn ring(level: &Level) -> Vec<(u32, u32)> {
    let radix = level.radix();
    let arranged = by_digits(level, |a, b| (b + radix - a) % radix, false);
    let mut rounds: Vec<(u32, u32, u32)> = Vec::with_capacity(arranged.len());
    // Per cell, the step and the rounds of that step in which it has a message, as bits.
    let mut taken = vec![(u32::MAX, 0u64); index(level.cells)];
    for &(step, row) in &arranged {
        let message = level.messages[index(row)];
        let ends = [index(message.source), index(message.target)];
        for end in ends {
            if taken[end].0 != step {
                taken[end] = (step, 0);
            }
        }
        // Cells that stand for others may have many messages in a step; those share the last round.
        let round = (taken[ends[0]].1 | taken[ends[1]].1).trailing_ones().min(63);
        ends.into_iter().for_each(|end| taken[end].1 |= 1 << round);
        rounds.push((step, round, row));
    }
    rounds.sort_by_key(|&(step, round, _)| (step, round));
    rounds.into_iter().map(|(step, _, row)| (step, row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for order in StepOrder::ALL {
            assert_eq!(StepOrder::parse(order.name()), Some(order));
        }
        assert_eq!(StepOrder::parse("random"), None);
    }
}
