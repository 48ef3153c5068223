//! Step plans: an exchange by messages, in steps, for machines without tables.
//!
//! A *message* carries *pieces* of connections from one cell to another. A piece need not go to the
//! target of its connection at once: cells may collect pieces and pass them on in later messages, so
//! that fewer and longer messages are sent (*combining*). A *step* is the messages that a plan lets
//! be under way together. Steps are not barriers: each cell follows its own list of operations,
//! which has the messages that it sends or receives in the order of the plan ([`Steps::lists`]), and
//! continues as soon as its own operation is complete. A planner that wants a cell to send before it
//! receives lists that message first.
//!
//! A connection of a cell to itself needs no message: its words are at their target already.
//!
//! All messages of a plan are in flat arrays, because all-to-all on 1024 cells has a million of
//! them: 12 bytes for each message and for each piece. Constructors check the shape only; whether
//! every word arrives is decided by the checker.

use std::ops::Range;
use std::sync::Arc;

use crate::convert::{index, to_u32};
use crate::error::ShapeError;
use crate::ids::{CellId, ConnectionId, StepId};
use crate::limits;
use crate::lists::Lists;
use crate::machine::Machine;
use crate::set::{ConnectionSet, why_no_end};

/// A stretch of the words of a connection, which travels in one message. A record with public
/// fields; the checker decides whether the connection has these words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The connection.
    pub connection: ConnectionId,
    /// The position of the first word among the words of the connection.
    pub first_word: u32,
    /// The number of words.
    pub words: u32,
}

impl Piece {
    /// All words of a connection.
    pub fn whole(set: &ConnectionSet, connection: ConnectionId) -> Self {
        Self { connection, first_word: 0, words: set.get(connection).words }
    }

    /// Whether the piece is all words of its connection.
    pub fn is_whole(self, set: &ConnectionSet) -> bool {
        self.first_word == 0 && self.words == set.get(self.connection).words
    }
}

/// A message of a plan, borrowed.
///
/// The fields are public to read. Only [`StepMessages`] makes such a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMessage<'a> {
    /// The cell that sends it.
    pub source: CellId,
    /// The cell that receives it.
    pub target: CellId,
    /// What it carries, in this order; at least one piece.
    pub pieces: &'a [Piece],
}

impl StepMessage<'_> {
    /// The words of all pieces together, which 32 bits can count.
    pub fn words(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.words)).sum()
    }
}

/// Messages in steps, under construction.
///
/// ```
/// use conset_ir::{CellId, ConnectionId, Piece, StepMessages};
///
/// let piece = Piece { connection: ConnectionId(0), first_word: 0, words: 16 };
/// let mut messages = StepMessages::new();
/// messages.push(CellId(0), CellId(4), &[piece])?;
/// messages.end_step()?;
/// assert_eq!((messages.len(), messages.steps()), (1, 1));
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepMessages {
    /// For each step, the number of messages up to its end.
    ends: Vec<u32>,
    heads: Vec<MessageHead>,
    pieces: Vec<Piece>,
}

/// A message without its pieces, and where these end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MessageHead {
    source: CellId,
    target: CellId,
    end: u32,
}

impl StepMessages {
    /// No steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message to the last step, which [`StepMessages::end_step`] ends.
    ///
    /// # Errors
    /// No pieces, more words than 32 bits can count, or more pieces than the limit.
    pub fn push(
        &mut self,
        source: CellId,
        target: CellId,
        pieces: &[Piece],
    ) -> Result<(), ShapeError> {
        let place = || format!("messages[{}]", self.heads.len());
        if pieces.is_empty() {
            return Err(ShapeError::new(place(), "a message has at least one piece"));
        }
        let end = self.pieces.len() + pieces.len();
        if end > limits::PIECES {
            return Err(ShapeError::new(place(), format!("more than {} pieces", limits::PIECES)));
        }
        let words: u64 = pieces.iter().map(|piece| u64::from(piece.words)).sum();
        if words > u32::MAX.into() {
            return Err(ShapeError::new(
                place(),
                format!("a message of {words} words; at most {}", u32::MAX),
            ));
        }
        self.pieces.extend_from_slice(pieces);
        self.heads.push(MessageHead { source, target, end: to_u32(end) });
        Ok(())
    }

    /// Ends the step of the messages that were added since the last call.
    ///
    /// # Errors
    /// More steps than the limit.
    pub fn end_step(&mut self) -> Result<(), ShapeError> {
        if self.ends.len() == limits::STEPS {
            return Err(ShapeError::new("steps", format!("more than {} steps", limits::STEPS)));
        }
        self.ends.push(to_u32(self.heads.len()));
        Ok(())
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.ends.len()
    }

    /// The number of pieces of all messages.
    pub fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// The messages of a step, by their numbers in the plan.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn of_step(&self, step: StepId) -> Range<usize> {
        let start = if step.0 == 0 { 0 } else { index(self.ends[step.index() - 1]) };
        start..index(self.ends[step.index()])
    }

    /// Message number `row`.
    ///
    /// # Panics
    /// If there is no such message.
    #[inline]
    pub fn get(&self, row: usize) -> StepMessage<'_> {
        let MessageHead { source, target, end } = self.heads[row];
        let start = if row == 0 { 0 } else { index(self.heads[row - 1].end) };
        StepMessage { source, target, pieces: &self.pieces[start..index(end)] }
    }

    /// The messages in the order of the plan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = StepMessage<'_>> + Clone {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// A step plan: a connection set as messages in steps. It holds the set and the machine. It is
/// immutable, so a clone shares all data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    machine: Arc<Machine>,
    set: Arc<ConnectionSet>,
    messages: Arc<StepMessages>,
}

impl Steps {
    /// The steps of a set on a machine.
    ///
    /// # Errors
    /// A connection whose end is not a live cell of the machine with an agent, a message of such a
    /// cell, a piece of a connection that does not exist, or messages after the last step.
    pub fn new(
        machine: Arc<Machine>,
        set: Arc<ConnectionSet>,
        messages: StepMessages,
    ) -> Result<Self, ShapeError> {
        set.check_machine(&machine)?;
        if index(messages.ends.last().copied().unwrap_or(0)) != messages.len() {
            return Err(ShapeError::new("steps", "messages after the end of the last step"));
        }
        for (row, message) in messages.iter().enumerate() {
            for (end, cell) in [("source", message.source), ("target", message.target)] {
                let Some(why) = why_no_end(&machine, cell) else { continue };
                return Err(ShapeError::new(
                    format!("messages[{row}].{end}"),
                    format!("{cell} cannot send or receive messages: {why}"),
                ));
            }
            if let Some(piece) = message.pieces.iter().find(|p| p.connection.index() >= set.len()) {
                return Err(ShapeError::new(
                    format!("messages[{row}].pieces"),
                    format!(
                        "{} is not one of the set's {} connections",
                        piece.connection,
                        set.len()
                    ),
                ));
            }
        }
        Ok(Self { machine, set, messages: Arc::new(messages) })
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The connection set.
    pub fn set(&self) -> &Arc<ConnectionSet> {
        &self.set
    }

    /// The messages in steps.
    pub fn messages(&self) -> &StepMessages {
        &self.messages
    }

    /// The steps with their messages.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (StepId, impl ExactSizeIterator<Item = StepMessage<'_>> + Clone)>
    {
        (0..self.messages.steps())
            .map(StepId::from_index)
            .map(|step| (step, self.messages.of_step(step).map(|row| self.messages.get(row))))
    }

    /// The operation list of each cell with an agent: the numbers of the messages that it sends or
    /// receives, in the order of the plan. O(cells + messages).
    pub fn lists(&self) -> Lists<u32> {
        let ends = self.messages.iter().enumerate().flat_map(|(row, message)| {
            [(message.source.0, to_u32(row)), (message.target.0, to_u32(row))]
        });
        Lists::new(self.machine.agent_count(), ends)
    }

    /// The words of message `row` that its target passes on in later messages.
    pub fn words_passed_on(&self, row: usize) -> u64 {
        let message = self.messages.get(row);
        let passed_on = |piece: &&Piece| self.set.get(piece.connection).target != message.target;
        message.pieces.iter().filter(passed_on).map(|piece| u64::from(piece.words)).sum()
    }

    /// Clocks for the target of message `row` to copy the words that it passes on in later messages.
    pub fn copy_clocks(&self, row: usize) -> u64 {
        match self.machine.parameters().copy_clocks_per_word {
            0 => 0,
            clocks => self.words_passed_on(row) * u64::from(clocks),
        }
    }

    /// Whether every connection goes from its source to its target in one message.
    pub fn is_direct(&self) -> bool {
        let straight = |message: &StepMessage<'_>, piece: &Piece| {
            let connection = self.set.get(piece.connection);
            piece.is_whole(&self.set)
                && (connection.source, connection.target) == (message.source, message.target)
        };
        self.messages.iter().all(|m| m.pieces.iter().all(|piece| straight(&m, piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Connection;

    fn set() -> Arc<ConnectionSet> {
        let connections = vec![
            Connection::new(CellId(0), CellId(2), 7),
            Connection::new(CellId(0), CellId(3), 5),
            Connection::new(CellId(1), CellId(1), 5),
        ];
        Arc::new(ConnectionSet::new("s", connections).unwrap())
    }

    fn machine() -> Arc<Machine> {
        Arc::new(Machine::from_spec("ring:4").unwrap())
    }

    #[test]
    fn lists_follow_the_order_of_the_messages() {
        let set = set();
        let whole = |id| Piece::whole(&set, ConnectionId(id));
        let mut messages = StepMessages::new();
        messages.push(CellId(0), CellId(2), &[whole(0), whole(1)]).unwrap();
        messages.end_step().unwrap();
        messages.push(CellId(2), CellId(3), &[whole(1)]).unwrap();
        messages.end_step().unwrap();
        let steps = Steps::new(machine(), set, messages).unwrap();
        let lists = steps.lists();
        let of = |cell| lists.of(cell).to_vec();
        assert_eq!([of(0), of(1), of(2), of(3)], [vec![0], vec![], vec![0, 1], vec![1]]);
        assert!(!steps.is_direct());
        assert_eq!(steps.iter().map(|(_, messages)| messages.len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(steps.messages().get(0).words(), 12);
    }

    #[test]
    fn wrong_shapes_are_refused() {
        let set = set();
        let whole = Piece::whole(&set, ConnectionId(0));
        assert!(StepMessages::new().push(CellId(0), CellId(1), &[]).is_err());
        let with = |source, target, piece| {
            let mut messages = StepMessages::new();
            messages.push(CellId(source), CellId(target), &[piece]).unwrap();
            messages
        };
        let unended = with(0, 2, whole);
        assert!(Steps::new(machine(), set.clone(), unended.clone()).is_err());
        let unknown = Piece { connection: ConnectionId(3), ..whole };
        for mut wrong in [with(0, 4, whole), with(4, 0, whole), with(0, 2, unknown)] {
            wrong.end_step().unwrap();
            assert!(Steps::new(machine(), set.clone(), wrong).is_err());
        }
        let mut right = unended;
        right.end_step().unwrap();
        assert!(Steps::new(machine(), set, right).unwrap().is_direct());
    }
}
