//! Exchanges with known partners and unknown sizes.
//!
//! The set says who sends to whom, and how much at most; the words of a connection are a limit and
//! not a size. The source of a connection alone knows how many it sends, and its target learns it
//! from the message: no sizes are exchanged before.

use conset_ir::Direction;
use conset_ir::convert::index;

use crate::cell::Cell;
use crate::error::{CellError, EpochUse};
use crate::phase::SetRef;
use crate::port::RawWords;
use crate::word::{Word, words_from};

impl Cell<'_> {
    /// Exchanges a set, together with all other cells, where each source decides how many words its
    /// connections carry now, up to those of the set. Takes one outgoing buffer for each of
    /// [`Cell::connections_out`]; returns the words of each of [`Cell::connections_in`].
    ///
    /// Each connection is a message. If phases are active, all cells switch to messages
    /// ([`Cell::instantiate_messages`]).
    ///
    /// # Errors
    /// No such set, too many buffers or too few, one with more words than its connection, or
    /// messages of the program that were not received before.
    #[track_caller]
    pub fn exchange_sized<W: Word, S: AsRef<[W]>>(
        &mut self,
        set: impl SetRef,
        outgoing: &[S],
    ) -> Result<Vec<Vec<W>>, CellError> {
        self.switch_to_messages()?;
        let set = self.set(&set)?;
        let out = self.connections_out(set)?;
        if out.len() != outgoing.len() {
            let (expected, found) = (out.len(), outgoing.len());
            let direction = Direction::Send;
            return self.fail(CellError::Buffers { connection: None, direction, expected, found });
        }
        let rows: Vec<RawWords> = outgoing.iter().map(|row| RawWords::of(row.as_ref())).collect();
        let connections = &self.image().sets()[set].set;
        for (&connection, row) in out.iter().zip(&rows) {
            let most = index(connections.get(connection).words);
            if row.words > most {
                let found = row.words;
                return self.fail(EpochUse::TooManyWords { connection, most, found }.into());
            }
        }
        self.at_call(size_of::<W>());
        let mut incoming = vec![Vec::new(); self.connections_in(set)?.len()];
        let mut read = |(row, _): (usize, usize), bytes: &[u8]| incoming[row] = words_from(bytes);
        // SAFETY: the rows are of slices that `outgoing` lends until this function returns or unwinds.
        self.ask(|port| unsafe { port.exchange_sized(set, &rows, &mut read) })?;
        Ok(incoming)
    }
}
