//! Where the program makes its collective calls, and in which round.
//!
//! Transports compare both between cells ([`crate::call`]).

use super::Cell;
use crate::call::{Call, CallArray, SourceLocation};

/// Where a call was made, to make it later as if it were there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallContext {
    place: Option<SourceLocation>,
    round: u64,
}

impl Cell<'_> {
    /// Sets the round, or time step, of all following collective calls. If cells make a call in
    /// different rounds, the run fails ([`crate::RunError::Mismatch`]) before any word is read. Needed
    /// if a cell might skip an exchange in a loop and then make the same one; other mismatches are
    /// detected without.
    pub fn set_round(&mut self, round: u64) {
        self.round = round;
    }

    /// Sets the source location of the following collective calls, for interfaces to other languages.
    /// Calls from Rust know their location.
    pub fn set_place(&mut self, file: &'static str, line: u32) {
        self.place = Some(SourceLocation::new(file, line));
    }

    /// Records a collective call with words of so many bytes, 0 without any; the caller of the caller
    /// is the program.
    #[track_caller]
    pub(crate) fn at_call(&mut self, word_bytes: usize) {
        let CallContext { place, round } = self.call_context();
        self.set_call(place, round, word_bytes, self.array);
    }

    /// Sets the call of the port, unless it was the last one, too: in a loop of a solver it is, and a
    /// digest of its source location takes as long as all else that is checked.
    #[inline]
    fn set_call(
        &mut self,
        place: Option<SourceLocation>,
        round: u64,
        word_bytes: usize,
        array: Option<CallArray>,
    ) {
        let call = self.port.call();
        if !call.is_made(place, round, word_bytes, array.as_ref()) {
            *call = Call::new(place, round, word_bytes, array);
        }
    }

    /// Where the program calls, and in which round; the caller of the caller is the program.
    #[track_caller]
    pub(crate) fn call_context(&self) -> CallContext {
        // Not in a closure, which would be the caller.
        let caller = SourceLocation::from(std::panic::Location::caller());
        let place = self.place.or_else(|| self.same_places.then_some(caller));
        CallContext { place, round: self.round }
    }

    /// Makes calls as if the program made them elsewhere.
    pub(crate) fn in_context<T>(
        &mut self,
        context: CallContext,
        calls: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let own = (self.place, self.round);
        (self.place, self.round) = (context.place, context.round);
        let result = calls(self);
        (self.place, self.round) = own;
        result
    }

    /// Records a round of an epoch, which cells may settle at different source locations.
    pub(crate) fn at_round(&mut self) {
        self.set_call(None, self.round, 0, None);
    }
}
