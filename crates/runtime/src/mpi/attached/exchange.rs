//! Exchanges of a halo.
//!
//! An exchange first starts its receives, packs and sends one message after the other, and then
//! completes all of them. What a rank receives from another is received in place if the ghosts are
//! contiguous in the vector, the vector is the only one, and the call does not return before.

use conset_ir::convert::index;

use super::collective::TRIES_BESIDE;
use super::error::HaloError;
use super::field::{Field, Pod, Positions, RawField};
use super::halo::{Halo, Kind, Way};
use super::operation::wait_for;
use super::wire::InPlace;
use crate::lists::{Number, Op};

/// Tries to complete a message between two looks at the clock.
const TRIES: u32 = 4;

/// What an exchange does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Update,
    Reduce,
    Combine,
}

/// An exchange that was started. It must be completed ([`Halo::wait`], [`Halo::wait_combined`]).
#[derive(Debug)]
#[must_use = "an exchange that is started must be completed"]
pub struct PendingExchange {
    halo: u64,
    slot: usize,
    token: u64,
    purpose: Purpose,
    /// Numbers of the vector, bytes of a number, numbers of an entry.
    shape: (usize, usize, usize),
}

impl PendingExchange {
    /// Whether it was started by [`Halo::start`]; otherwise it combines.
    pub fn is_update(&self) -> bool {
        self.purpose == Purpose::Update
    }
}

impl Halo {
    /// Brings the owners' entries of a vector to their ghosts. An entry is `block` numbers, which
    /// travel as they are; the block and the type can be others in every call. Collective.
    ///
    /// # Errors
    /// A vector of another length, a halo of shared ids; messages of another size than expected; an
    /// error of MPI, or a rank that does not come.
    pub fn exchange<T: Pod>(&mut self, vector: &mut [T], block: usize) -> Result<(), HaloError> {
        self.check_kind(Purpose::Update)?;
        self.check_length(vector.len(), block)?;
        let raw = RawField { base: vector.as_mut_ptr().cast(), entry: size_of::<T>() * block };
        self.update(&[raw])
    }

    /// [`Halo::exchange`] of several vectors by one message to each neighbour.
    ///
    /// # Errors
    /// As [`Halo::exchange`]; no vectors.
    pub fn exchange_fields(&mut self, fields: &mut [Field<'_>]) -> Result<(), HaloError> {
        self.check_kind(Purpose::Update)?;
        for field in &*fields {
            self.check_length(field.numbers, field.block)?;
        }
        let raw: Vec<RawField> = fields.iter().map(|field| field.raw).collect();
        self.update(&raw)
    }

    /// Vectors whose lengths were checked, and which are borrowed meanwhile.
    fn update(&mut self, fields: &[RawField]) -> Result<(), HaloError> {
        // SAFETY: the vectors have an entry for each position, and are borrowed until the exchange
        // has ended or was given up.
        unsafe {
            let slot = self.begin(Way::Forward, fields, fields.len() == 1)?;
            self.complete(slot)?;
            self.unpack(slot, fields, fields.len() == 1);
        }
        Ok(())
    }

    /// Combines the ghosts of a vector with their owners' entries: the owner's value first, then
    /// those of the ghosts by rank. Ghosts keep their values. Collective.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    pub fn reduce<W: Number + Pod>(
        &mut self,
        op: Op,
        vector: &mut [W],
        block: usize,
    ) -> Result<(), HaloError> {
        let pending = self.start_reduce(vector, block)?;
        self.wait_combined(pending, op, vector)
    }

    /// Combines all copies of each shared entry; every rank gets the result. The order is that of
    /// the ranks, so all results have the same bits. [`Op::Copy`] gives every copy the value of the
    /// lowest rank. Collective.
    ///
    /// # Errors
    /// As [`Halo::exchange`]; the halo must be one of shared ids.
    pub fn combine_shared<W: Number + Pod>(
        &mut self,
        op: Op,
        vector: &mut [W],
        block: usize,
    ) -> Result<(), HaloError> {
        let pending = self.start_combine(vector, block)?;
        self.wait_combined(pending, op, vector)
    }

    /// Sums all copies of each shared entry ([`Halo::combine_shared`]).
    ///
    /// # Errors
    /// As [`Halo::combine_shared`].
    pub fn sum_shared<W: Number + Pod>(
        &mut self,
        vector: &mut [W],
        block: usize,
    ) -> Result<(), HaloError> {
        self.combine_shared(Op::Add, vector, block)
    }

    /// Starts [`Halo::exchange`]: the entries are sent that the vector has now. Complete it with
    /// [`Halo::wait`]. Any number of exchanges can be under way; all ranks start them in the same
    /// order.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    pub fn start<T: Pod>(
        &mut self,
        vector: &[T],
        block: usize,
    ) -> Result<PendingExchange, HaloError> {
        self.start_any(Purpose::Update, Way::Forward, vector, block)
    }

    /// Starts [`Halo::reduce`]; complete it with [`Halo::wait_combined`].
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    pub fn start_reduce<T: Pod>(
        &mut self,
        vector: &[T],
        block: usize,
    ) -> Result<PendingExchange, HaloError> {
        self.start_any(Purpose::Reduce, Way::Backward, vector, block)
    }

    /// Starts [`Halo::combine_shared`]; complete it with [`Halo::wait_combined`].
    ///
    /// # Errors
    /// As [`Halo::combine_shared`].
    pub fn start_combine<T: Pod>(
        &mut self,
        vector: &[T],
        block: usize,
    ) -> Result<PendingExchange, HaloError> {
        self.start_any(Purpose::Combine, Way::Copies, vector, block)
    }

    /// Whether an exchange can be completed without waiting. It proceeds meanwhile.
    ///
    /// # Errors
    /// An error of MPI, or an exchange of another halo.
    pub fn test(&mut self, pending: &PendingExchange) -> Result<bool, HaloError> {
        self.find(pending)?;
        self.numbered.inner.advance_reductions(TRIES_BESIDE);
        let done = self.slots[pending.slot].wire.test(TRIES);
        if done.is_err() {
            self.fail(pending.slot);
        }
        Ok(done?)
    }

    /// Completes an exchange that was started by [`Halo::start`].
    ///
    /// # Errors
    /// As [`Halo::exchange`]; a vector of another type or length than at the start.
    #[allow(clippy::needless_pass_by_value, reason = "an exchange is completed once")]
    pub fn wait<T: Pod>(
        &mut self,
        pending: PendingExchange,
        vector: &mut [T],
    ) -> Result<(), HaloError> {
        self.check_pending(&pending, &[Purpose::Update], vector)?;
        let entry = size_of::<T>() * pending.shape.2;
        let raw = [RawField { base: vector.as_mut_ptr().cast(), entry }];
        self.complete(pending.slot)?;
        // SAFETY: the vector has the length that was checked at the start.
        unsafe { self.unpack(pending.slot, &raw, false) };
        Ok(())
    }

    /// Completes an exchange that was started by [`Halo::start_reduce`] or [`Halo::start_combine`].
    ///
    /// # Errors
    /// As [`Halo::wait`].
    #[allow(clippy::needless_pass_by_value, reason = "an exchange is completed once")]
    pub fn wait_combined<W: Number + Pod>(
        &mut self,
        pending: PendingExchange,
        op: Op,
        vector: &mut [W],
    ) -> Result<(), HaloError> {
        self.check_pending(&pending, &[Purpose::Reduce, Purpose::Combine], vector)?;
        self.complete(pending.slot)?;
        let (slot, block) = (pending.slot, pending.shape.2);
        let combined = pending.purpose == Purpose::Combine;
        // A loop for each operation, so that none is chosen within.
        match op {
            Op::Copy if combined => self.combine(slot, block, vector, combined, |first, _| first),
            Op::Copy => self.combine(slot, block, vector, combined, |_, last| last),
            Op::Add => self.combine(slot, block, vector, combined, W::plus),
            Op::Min => self.combine(slot, block, vector, combined, |a, b| Op::Min.apply(a, b)),
            Op::Max => self.combine(slot, block, vector, combined, |a, b| Op::Max.apply(a, b)),
        }
        Ok(())
    }

    fn start_any<T: Pod>(
        &mut self,
        purpose: Purpose,
        way: Way,
        vector: &[T],
        block: usize,
    ) -> Result<PendingExchange, HaloError> {
        self.check_kind(purpose)?;
        self.check_length(vector.len(), block)?;
        // Only read: nothing is received in place.
        let base = vector.as_ptr().cast_mut().cast();
        let raw = [RawField { base, entry: size_of::<T>() * block }];
        // SAFETY: the vector has an entry for each position.
        let slot = unsafe { self.begin(way, &raw, false)? };
        let shape = (vector.len(), size_of::<T>(), block);
        Ok(PendingExchange { halo: self.number(), slot, token: self.tokens, purpose, shape })
    }

    fn check_kind(&self, purpose: Purpose) -> Result<(), HaloError> {
        const SHARED: &str = "shared ids";
        const OWNED: &str = "owned entries and ghosts";
        let (operation, kind, needs) = match purpose {
            Purpose::Update => ("exchange", Kind::Owned, OWNED),
            Purpose::Reduce => ("reduce", Kind::Owned, OWNED),
            Purpose::Combine => ("combine_shared", Kind::Copies, SHARED),
        };
        if self.failed {
            return Err(HaloError::Failed { halo: self.number() });
        }
        if self.kind == kind { Ok(()) } else { Err(HaloError::Kind { operation, needs }) }
    }

    fn check_length(&self, found: usize, block: usize) -> Result<(), HaloError> {
        if block == 0 {
            return Err(HaloError::Nothing { what: "0 numbers for each entry" });
        }
        if self.entries.checked_mul(block) == Some(found) {
            return Ok(());
        }
        Err(HaloError::Length { found, entries: self.entries, block })
    }

    /// The exchange is one of this halo that has not been completed.
    fn find(&self, pending: &PendingExchange) -> Result<(), HaloError> {
        if self.failed {
            return Err(HaloError::Failed { halo: self.number() });
        }
        let slot = self.slots.get(pending.slot);
        let known = slot.is_some_and(|slot| slot.token == Some(pending.token));
        if pending.halo == self.number() && known { Ok(()) } else { Err(HaloError::Pending) }
    }

    fn check_pending<T>(
        &self,
        pending: &PendingExchange,
        purposes: &[Purpose],
        vector: &[T],
    ) -> Result<(), HaloError> {
        self.find(pending)?;
        let same = pending.shape.0 == vector.len() && pending.shape.1 == size_of::<T>();
        let fits = same && purposes.contains(&pending.purpose);
        if fits { Ok(()) } else { Err(HaloError::Pending) }
    }

    /// Starts the messages of an exchange; the slot that they take.
    ///
    /// # Safety
    /// Each vector has an entry for each position that is sent. If `in_place`, there is one, and
    /// nobody uses it until [`Halo::complete`] has returned.
    unsafe fn begin(
        &mut self,
        way: Way,
        fields: &[RawField],
        in_place: bool,
    ) -> Result<usize, HaloError> {
        let entry = fields.iter().fold(0usize, |sum, field| sum.saturating_add(field.entry));
        if entry == 0 {
            return Err(HaloError::Nothing { what: "no vectors" });
        }
        let row = self.idle_slot(way, entry)?;
        self.tokens += 1;
        let (token, runs) = (self.tokens, std::mem::take(&mut self.runs));
        let slot = &mut self.slots[row];
        slot.token = Some(token);
        let place = InPlace { base: fields[0].base, entry, at: &runs };
        // SAFETY: the caller's promise: there is room at the contiguous positions of the vector.
        let mut result = unsafe { slot.wire.receive(in_place.then_some(&place)) };
        self.runs = runs;
        for send in 0..self.links(way).0.len() {
            if result.is_err() {
                break;
            }
            let positions = &self.links(way).0[send].positions;
            let mut packed = self.slots[row].wire.outgoing(send);
            for field in fields {
                // SAFETY: the vector has the positions, by the caller's promise; the message has
                // room for them in each field.
                unsafe {
                    field.pack(positions, packed);
                    packed = packed.add(positions.len() * field.entry);
                }
            }
            result = self.slots[row].wire.send(send);
        }
        if let Err(error) = result {
            self.fail(row);
            return Err(error.into());
        }
        Ok(row)
    }

    /// Waits until all messages of an exchange are done. Afterwards MPI uses no vector of the caller,
    /// also if that fails.
    fn complete(&mut self, row: usize) -> Result<(), HaloError> {
        let number = self.number();
        let comm = self.numbered.comm();
        let wire = std::cell::RefCell::new(&mut self.slots[row].wire);
        let awaited = || wire.borrow().awaited();
        let place = || format!("an exchange of halo {}", number);
        let inner = &self.numbered.inner;
        let done = wait_for(comm, &place, &awaited, || {
            inner.advance_reductions(TRIES_BESIDE);
            wire.borrow_mut().test(TRIES)
        });
        if let Err(error) = done {
            self.fail(row);
            return Err(error.into());
        }
        self.slots[row].token = None;
        if let Some(wrong) = self.slots[row].wire.wrong() {
            self.failed = true;
            let super::wire::WrongSize { rank, found, expected } = wrong;
            return Err(HaloError::Mismatch { halo: self.number(), rank, found, expected });
        }
        Ok(())
    }

    /// Gives up an exchange, and the halo.
    fn fail(&mut self, row: usize) {
        self.failed = true;
        self.slots[row].wire.cancel();
    }

    /// Takes what has arrived, except what was received in place.
    ///
    /// # Safety
    /// Each vector has an entry for each position that is received, and the exchange was completed.
    unsafe fn unpack(&self, row: usize, fields: &[RawField], in_place: bool) {
        let wire = &self.slots[row].wire;
        for (receive, link) in self.receives.iter().enumerate() {
            if in_place && self.runs[receive] >= 0 {
                continue;
            }
            let mut packed = wire.incoming()[receive].cast_const();
            for field in fields {
                // SAFETY: the caller's promise.
                unsafe {
                    field.unpack(&link.positions, packed);
                    packed = packed.add(link.positions.len() * field.entry);
                }
            }
        }
    }

    /// Combines what has arrived.
    fn combine<W: Number>(
        &self,
        row: usize,
        block: usize,
        vector: &mut [W],
        copies: bool,
        combine: impl Fn(W, W) -> W + Copy,
    ) {
        let wire = &self.slots[row].wire;
        if copies {
            // SAFETY: the messages have arrived, with `block` numbers for each position; positions are
            // below the number of entries, and the vector has `block` numbers for each (`check_length`).
            unsafe {
                let messages = wire.incoming();
                self.copies.combine(&self.receives, messages, block, vector, combine);
            }
            return;
        }
        // SAFETY: as above.
        unsafe {
            match block {
                1 => self.add_ghosts::<W, true>(wire.incoming(), 1, vector, combine),
                _ => self.add_ghosts::<W, false>(wire.incoming(), block, vector, combine),
            }
        }
    }

    /// Combines owned entries with the ghosts that have arrived.
    ///
    /// # Safety
    /// The messages have arrived, with `block` numbers for each position; if `SINGLE`, with one. The
    /// vector has as many at each position.
    unsafe fn add_ghosts<W: Number, const SINGLE: bool>(
        &self,
        messages: &[*mut u8],
        block: usize,
        vector: &mut [W],
        combine: impl Fn(W, W) -> W + Copy,
    ) {
        let block = if SINGLE { 1 } else { block };
        let own = vector.as_mut_ptr();
        for (link, message) in self.links(Way::Backward).1.iter().zip(messages) {
            let message = message.cast::<W>();
            let one = |entry: usize, position: usize| {
                for offset in 0..block {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let value = own.add(position * block).add(offset);
                        let arrived = message.add(entry * block).add(offset).read_unaligned();
                        *value = combine(*value, arrived);
                    }
                }
            };
            match &link.positions {
                Positions::Run { start, len } => {
                    (0..index(*len)).for_each(|entry| one(entry, index(*start) + entry));
                }
                Positions::Any(positions) => {
                    let positions = positions.iter().enumerate();
                    positions.for_each(|(entry, &position)| one(entry, index(position)));
                }
            }
        }
    }
}
