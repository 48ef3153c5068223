//! What the messages of a step plan wait for, whoever executes it: the words that they pass on, and
//! the order of the set.
//!
//! A message waits for the messages that bring its pieces to its source, and for all messages with
//! pieces of connections that are ordered before its own. What else it waits for (its place in the
//! lists of its cells) depends on the protocol of the machine.

use std::collections::BTreeMap;

use crate::convert::{index, to_u32};
use crate::ids::ConnectionId;
use crate::lists::Lists;
use crate::steps::{Piece, Steps};

/// The messages that have not been received yet, as far as others wait for them.
#[derive(Clone, Debug)]
pub struct StepWaits<'a> {
    steps: &'a Steps,
    /// Per message, what it still waits for.
    missing: Vec<u32>,
    /// Per message, those that pass on what it brings.
    followers: Lists<u32>,
    /// Per connection, its pieces that were not received; empty if the set has no order.
    carried: Vec<u32>,
    /// Per connection, the messages with its pieces; no rows if the set has no order.
    carriers: Lists<u32>,
}

impl<'a> StepWaits<'a> {
    /// Nothing is received yet. O(pieces x log) for plans that combine or have an order.
    pub fn new(steps: &'a Steps) -> Self {
        let count = steps.messages().len();
        let mut missing = vec![0u32; count];
        let suppliers = step_suppliers(steps);
        suppliers.iter().for_each(|&(_, message)| missing[index(message)] += 1);
        let followers = Lists::new(count, suppliers.into_iter());
        let mut waits =
            Self { steps, missing, followers, carried: Vec::new(), carriers: Lists::default() };
        if !steps.set().order().is_empty() {
            waits.add_order();
        }
        waits
    }

    fn add_order(&mut self) {
        let set = self.steps.set();
        let travels = self.steps.messages().iter().enumerate().flat_map(|(row, message)| {
            message.pieces.iter().map(move |piece| (piece.connection.0, to_u32(row)))
        });
        self.carriers = Lists::new(set.len(), travels);
        self.carried = (0..to_u32(set.len())).map(|x| to_u32(self.carriers.of(x).len())).collect();
        for &(before, after) in set.order() {
            if self.carried[before.index()] > 0 {
                for &message in self.carriers.of(after.0) {
                    self.missing[index(message)] += 1;
                }
            }
        }
    }

    /// Whether a message waits for nothing.
    pub fn is_ready(&self, message: u32) -> bool {
        self.missing[index(message)] == 0
    }

    /// Records that a message was received, and adds those that now wait for nothing to `ready`.
    pub fn received(&mut self, message: u32, ready: &mut Vec<u32>) {
        for &follower in self.followers.of(message) {
            release(&mut self.missing, follower, ready);
        }
        if self.carried.is_empty() {
            return;
        }
        let steps = self.steps;
        for piece in steps.messages().get(index(message)).pieces {
            let id = piece.connection;
            self.carried[id.index()] -= 1;
            if self.carried[id.index()] == 0 {
                self.finished(id, ready);
            }
        }
    }

    fn finished(&mut self, id: ConnectionId, ready: &mut Vec<u32>) {
        let order = self.steps.set().order();
        let from = order.partition_point(|pair| pair.0 < id);
        for &(_, after) in order[from..].iter().take_while(|pair| pair.0 == id) {
            for &message in self.carriers.of(after.0) {
                release(&mut self.missing, message, ready);
            }
        }
    }
}

/// The stage of each message of a plan: one more than the greatest stage of the messages that bring
/// what it passes on, or that carry connections ordered before its own; 0 if there are none. So the
/// messages of a stage can be under way together, in any order.
///
/// ```
/// use conset_ir::{Connection, ConnectionSet, CellId, Machine, Piece, StepMessages, Steps};
/// use conset_ir::{ConnectionId, step_stages};
///
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 4)])?;
/// let whole = Piece::whole(&set, ConnectionId(0));
/// let mut messages = StepMessages::new();
/// messages.push(CellId(0), CellId(1), &[whole])?;
/// messages.push(CellId(1), CellId(2), &[whole])?;
/// messages.end_step()?;
/// let machine = Machine::from_spec("ring:4")?;
/// assert_eq!(step_stages(&Steps::new(machine.into(), set.into(), messages)?), [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn step_stages(steps: &Steps) -> Vec<u32> {
    let (messages, order) = (steps.messages(), steps.set().order());
    let mut stages = vec![0u32; messages.len()];
    // Per connection, the stage after the last message with a piece of it.
    let mut after = vec![0u32; if order.is_empty() { 0 } else { steps.set().len() }];
    let mut before: Vec<_> = order.iter().map(|&(before, after)| (after, before)).collect();
    before.sort_unstable();
    let suppliers = step_suppliers(steps);
    let mut suppliers = suppliers.iter().peekable();
    for (row, message) in messages.iter().enumerate() {
        let mut stage = 0;
        while let Some(&(supplier, _)) = suppliers.next_if(|pair| index(pair.1) == row) {
            stage = stage.max(stages[index(supplier)] + 1);
        }
        for piece in message.pieces {
            let from = before.partition_point(|pair| pair.0 < piece.connection);
            let pairs = before[from..].iter().take_while(|pair| pair.0 == piece.connection);
            stage = pairs.fold(stage, |stage, pair| stage.max(after[pair.1.index()]));
        }
        stages[row] = stage;
        for piece in message.pieces {
            if let Some(after) = after.get_mut(piece.connection.index()) {
                *after = (*after).max(stage + 1);
            }
        }
    }
    stages
}

fn release(missing: &mut [u32], message: u32, ready: &mut Vec<u32>) {
    missing[index(message)] -= 1;
    if missing[index(message)] == 0 {
        ready.push(message);
    }
}

/// Pairs of a message and one that passes on what it brings, by the second. Pieces are followed in
/// the order of the plan. O(pieces x log).
pub fn step_suppliers(steps: &Steps) -> Vec<(u32, u32)> {
    if steps.is_direct() {
        return Vec::new();
    }
    const OWN: u32 = u32::MAX;
    // Per connection, the message that brought all of it where it is; OWN at its source.
    let mut whole = vec![OWN; steps.set().len()];
    // The same for connections in pieces: by first word, the end of a stretch and the message.
    let mut parts: BTreeMap<(u32, u32), (u32, u32)> = BTreeMap::new();
    let mut divided = vec![false; steps.set().len()];
    let mut pairs = Vec::new();
    for (row, message) in steps.messages().iter().enumerate() {
        let row = to_u32(row);
        let first = pairs.len();
        for &piece in message.pieces {
            let at = piece.connection.index();
            if !divided[at] && piece.is_whole(steps.set()) {
                pairs.push((whole[at], row));
                whole[at] = row;
                continue;
            }
            if !divided[at] {
                divided[at] = true;
                let words = steps.set().get(piece.connection).words;
                parts.insert((piece.connection.0, 0), (words, whole[at]));
            }
            take_part(&mut parts, piece, row, &mut pairs);
        }
        // Each supplier of a message counts once.
        pairs[first..].sort_unstable();
        let mut kept = first;
        for at in first..pairs.len() {
            let own = pairs[at].0 == OWN || pairs[at].0 == row;
            if !own && (kept == first || pairs[kept - 1] != pairs[at]) {
                pairs[kept] = pairs[at];
                kept += 1;
            }
        }
        pairs.truncate(kept);
    }
    pairs
}

/// Moves a part of a connection with message `row`; adds the messages that brought it.
fn take_part(
    parts: &mut BTreeMap<(u32, u32), (u32, u32)>,
    piece: Piece,
    row: u32,
    pairs: &mut Vec<(u32, u32)>,
) {
    let x = piece.connection.0;
    let (first, end) = (piece.first_word, piece.first_word.saturating_add(piece.words));
    if first == end {
        return;
    }
    for at in [first, end] {
        if let Some((_, stretch)) = parts.range_mut((x, 0)..(x, at)).next_back()
            && stretch.0 > at
        {
            let rest = *stretch;
            stretch.0 = at;
            parts.insert((x, at), rest);
        }
    }
    let inside: Vec<((u32, u32), u32)> =
        parts.range((x, first)..(x, end)).map(|(&key, stretch)| (key, stretch.1)).collect();
    for (key, supplier) in inside {
        pairs.push((supplier, row));
        parts.remove(&key);
    }
    parts.insert((x, first), (end, row));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CellId;
    use crate::machine::Machine;
    use crate::set::{Connection, ConnectionSet};
    use crate::steps::StepMessages;
    use std::sync::Arc;

    #[test]
    fn messages_wait_for_what_they_pass_on_and_for_the_order() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let connections = vec![
            Connection::new(CellId(0), CellId(2), 8),
            Connection::new(CellId(3), CellId(2), 4),
        ];
        let (a, b) = (ConnectionId(0), ConnectionId(1));
        let set = ConnectionSet::new("s", connections).unwrap().with_order(vec![(a, b)]).unwrap();
        let piece = |first_word, words| Piece { connection: a, first_word, words };
        let mut messages = StepMessages::new();
        let whole = Piece { connection: b, first_word: 0, words: 4 };
        for (source, target, piece) in
            [(0, 1, piece(0, 3)), (0, 1, piece(3, 5)), (1, 2, piece(0, 8)), (3, 2, whole)]
        {
            messages.push(CellId(source), CellId(target), &[piece]).unwrap();
            messages.end_step().unwrap();
        }
        let steps = Steps::new(machine, Arc::new(set), messages).unwrap();
        let mut waits = StepWaits::new(&steps);
        assert_eq!([0, 1, 2, 3].map(|m| waits.is_ready(m)), [true, true, false, false]);
        let mut ready = Vec::new();
        waits.received(1, &mut ready);
        assert!(ready.is_empty());
        waits.received(0, &mut ready);
        assert_eq!(std::mem::take(&mut ready), [2]);
        waits.received(2, &mut ready);
        assert_eq!(ready, [3]);
    }
}
