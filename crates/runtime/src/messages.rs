//! Messages between two cells: asynchronous ones, which are copied, and synchronous ones, which are
//! not (seed 002, the ACL message passing library).
//!
//! An *asynchronous* message ([`Cell::msg_send`]) leaves its sender as soon as there is room for it,
//! and waits for its receiver, which can ask whether one has come ([`Cell::msg_try_receive`]), and
//! from whom ([`Cell::msg_receive_any`]).
//!
//! A *synchronous* message ([`Cell::send`]) waits at its sender until its receiver asks for it, and
//! its words then go from the array of one to the array of the other: threads copy them once, MPI
//! sends them from where they are. Nothing has to be stored on the way, so that there is no limit and
//! no second copy; the sender waits instead. On the emulated machine all messages obey the protocol of
//! the machine, which on `t3d` and `cm5` is the synchronous one, and on others lets short messages
//! stand in the network.
//!
//! The two kinds do not mix: a synchronous message is received by [`Cell::receive`] only.

use conset_ir::CellId;

use crate::cell::Cell;
use crate::error::CellError;
use crate::port::{DirectPass, RawWords};
use crate::word::Word;

impl Cell<'_> {
    /// Sends a message to a cell; returns when it has left this cell. On the emulated machine a message
    /// that is longer than the queues on its route leaves only while it is received, and one to the
    /// cell itself, which has no route, never does ([`Cell::exchange_by`] sends and receives at the
    /// same time).
    ///
    /// # Errors
    /// A phase is active, or there is no such cell.
    pub fn msg_send<W: Word>(&mut self, target: CellId, words: &[W]) -> Result<(), CellError> {
        self.check_message(target)?;
        // SAFETY: the slice is borrowed until this function returns.
        self.ask(|port| unsafe { port.send_message(target, RawWords::of(words)) })
    }

    /// Receives the next message from a cell; waits until all of it has arrived. Messages of one cell
    /// are received in the order in which they were sent.
    ///
    /// # Errors
    /// A phase is active, there is no such cell, or the message has not as many words as the
    /// buffer.
    pub fn msg_receive<W: Word>(
        &mut self,
        source: CellId,
        words: &mut [W],
    ) -> Result<(), CellError> {
        self.check_message(source)?;
        self.take_message(source, words)
    }

    /// Receives the next message from a cell if one has come, and says whether; does not wait for
    /// one. A program may ask again and again: other cells go on in between.
    ///
    /// # Errors
    /// As [`Cell::msg_receive`].
    pub fn msg_try_receive<W: Word>(
        &mut self,
        source: CellId,
        words: &mut [W],
    ) -> Result<bool, CellError> {
        self.check_message(source)?;
        let found = self.ask(|port| port.next_message(Some(source), false))?;
        found.map_or(Ok(false), |_| self.take_message(source, words).map(|()| true))
    }

    /// Receives the next message from any cell; waits for one. Returns who has sent it, and its
    /// number of words, which come first in the buffer. Of several messages that have come, that of
    /// the first cell is received. Which these are depends on time, except on the emulated machine:
    /// a program whose results must not depend on it receives from cells by name.
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// let image = Image::new(Machine::from_spec("ring:4")?.into(), Vec::new())?;
    /// let (sums, _report) = World::new(image).try_run(|cell| {
    ///     let (id, mut sum, mut words) = (cell.id(), 0, [0; 3]);
    ///     if id != CellId(0) {
    ///         cell.msg_send(CellId(0), &vec![id.0; id.index()])?;
    ///         return Ok(sum);
    ///     }
    ///     for _ in 1..cell.cell_count() {
    ///         let (source, count) = cell.msg_receive_any(&mut words)?;
    ///         assert_eq!(words[..count], vec![source.0; source.index()]);
    ///         sum += words[..count].iter().sum::<u32>();
    ///     }
    ///     Ok(sum)
    /// })?;
    /// assert_eq!(sums, [1 + 4 + 9, 0, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A phase is active, or the message has more words than the buffer.
    pub fn msg_receive_any<W: Word>(
        &mut self,
        words: &mut [W],
    ) -> Result<(CellId, usize), CellError> {
        self.check_messages()?;
        let found = self.ask(|port| port.next_message(None, true))?;
        let (source, count) = found.expect("the port waits for a message");
        let most = words.len();
        self.take_message(source, &mut words[..count.min(most)])?;
        Ok((source, count))
    }

    /// Receives a message of a cell that exists.
    fn take_message<W: Word>(&mut self, source: CellId, words: &mut [W]) -> Result<(), CellError> {
        let row = RawWords::of_mut(words);
        // SAFETY: the slice is borrowed until this function returns, and not touched meanwhile.
        let found = self.ask(|port| unsafe { port.receive_message(source, row) })?;
        self.check_words(source, row.words, found)
    }

    /// Sends words to a cell, which has to ask for them by [`Cell::receive`] or
    /// [`Cell::send_receive`]; returns when they may be overwritten. A cell that sends to itself
    /// waits for itself.
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// let image = Image::new(Machine::from_spec("ring:2")?.into(), Vec::new())?;
    /// let (found, _report) = World::new(image).try_run(|cell| {
    ///     let mut words = [1.5f32, 2.5];
    ///     match cell.id() {
    ///         CellId(0) => cell.send(CellId(1), &words)?,
    ///         _ => {
    ///             words = [0.0; 2];
    ///             cell.receive(CellId(0), &mut words)?;
    ///         }
    ///     }
    ///     Ok(words)
    /// })?;
    /// assert_eq!(found[1], [1.5, 2.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A phase is active, or there is no such cell. That the receiver asks for another number of words
    /// is an error of the receiver.
    pub fn send<W: Word>(&mut self, target: CellId, words: &[W]) -> Result<(), CellError> {
        self.check_message(target)?;
        self.pass(Some((target, words)), None::<(CellId, &mut [W])>, true)
    }

    /// Receives the words that a cell sends to this one by [`Cell::send`] or
    /// [`Cell::send_receive`]; waits for them.
    ///
    /// # Errors
    /// A phase is active, there is no such cell, or it sends another number of words.
    pub fn receive<W: Word>(&mut self, source: CellId, words: &mut [W]) -> Result<(), CellError> {
        self.check_message(source)?;
        self.pass(None::<(CellId, &[W])>, Some((source, words)), true)
    }

    /// [`Cell::send`] and [`Cell::receive`] at the same time, so that cells which exchange words, or
    /// pass them round a ring, do not wait for each other forever. Target and source may be the
    /// same cell, or this one.
    ///
    /// # Errors
    /// As [`Cell::send`] and [`Cell::receive`].
    pub fn send_receive<W: Word>(
        &mut self,
        target: CellId,
        outgoing: &[W],
        source: CellId,
        incoming: &mut [W],
    ) -> Result<(), CellError> {
        self.check_message(target)?;
        self.check_message(source)?;
        self.pass(Some((target, outgoing)), Some((source, incoming)), true)
    }

    /// Sends to a cell and receives from one, both of which exist ([`DirectPass`]).
    pub(crate) fn pass<W: Word>(
        &mut self,
        outgoing: Option<(CellId, &[W])>,
        incoming: Option<(CellId, &mut [W])>,
        synchronous: bool,
    ) -> Result<(), CellError> {
        let outgoing = outgoing.map(|(target, words)| (target, RawWords::of(words)));
        let incoming = incoming.map(|(source, words)| (source, RawWords::of_mut(words)));
        let pass = DirectPass { outgoing, incoming, synchronous };
        // SAFETY: the slices are borrowed until this function returns, that to be written alone, and
        // not touched meanwhile.
        let found = self.ask(|port| unsafe { port.pass_directly(&pass) })?;
        incoming.map_or(Ok(()), |(source, row)| self.check_words(source, row.words, found))
    }

    /// Fails if a message has not as many words as expected.
    fn check_words(
        &mut self,
        source_cell: CellId,
        expected: usize,
        found: usize,
    ) -> Result<(), CellError> {
        if found == expected {
            return Ok(());
        }
        self.fail(CellError::MessageWords { source_cell, expected, found })
    }
}
