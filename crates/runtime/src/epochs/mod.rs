//! Epochs: cells send items to any cells, and nobody knew before who sends what to whom.
//!
//! An *epoch* is a stretch of a run in which cells send items of a fixed number of words. It is
//! settled in *rounds*. In a round all items that cells have sent go to their targets, which handle
//! them by a function of the program; what that function sends goes in the next round. The epoch has
//! settled when a round has nothing to carry.
//!
//! A cell handles the items of a round in the order of their senders, and those of one sender in the
//! order of sending. Nothing depends on when a packet arrives: a program gets the same items in the
//! same order on the emulated machine, on any number of threads, and over MPI.
//!
//! [`Cell::exchange_any`] is one round without handlers: lists of words for cells that do not expect
//! them.
//!
//! [`Cell::exchange_sized`] is for partners that are known and sizes that are not.
//!
//! A transport delivers a round ([`CellPort::deliver`](crate::port::CellPort::deliver)): threads hand
//! the lists of bytes over in memory; over MPI and on the emulated machine [`routing`] carries them in
//! messages of cells. Both find out on the way whether any cell has sent an item, so that no reduction
//! is needed to know when an epoch has settled.

mod byte_outbox;
mod outgoing;
mod record;
pub(crate) mod routing;
mod sized;

use std::marker::PhantomData;

use conset_ir::CellId;

use crate::cell::Cell;
use crate::error::CellError;
use crate::word::{Word, bytes_of};
pub use byte_outbox::ByteOutbox;
use byte_outbox::NewLists;
pub(crate) use record::Record;
pub use record::recorded_set;
pub use routing::Routing;
use routing::{ItemShape, SentLists};

mod sealed {
    pub trait Sealed {}
}

/// What cells send in an epoch: an array of words.
pub trait Item: sealed::Sealed + Copy {
    /// Words of an item.
    #[doc(hidden)]
    const WORDS: usize;
    /// The type of a word.
    #[doc(hidden)]
    const TYPE: usize;
    /// Appends the bytes of the words.
    #[doc(hidden)]
    fn put(self, bytes: &mut Vec<u8>);
    /// The item of the bytes of its words.
    #[doc(hidden)]
    fn get(bytes: &[u8]) -> Self;
}

impl<W: Word, const N: usize> sealed::Sealed for [W; N] {}

impl<W: Word, const N: usize> Item for [W; N] {
    const WORDS: usize = N;
    const TYPE: usize = W::TYPE;

    #[inline]
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(bytes_of(&self));
        if N == 0 {
            // It is counted.
            bytes.push(0);
        }
    }

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        let size = size_of::<W>();
        std::array::from_fn(|word| W::read_from(&bytes[word * size..(word + 1) * size]))
    }
}

/// Rounds after which an epoch has to be settled, unless [`Epoch::limit_rounds`] says otherwise.
pub const ROUNDS: u64 = 1 << 20;

/// How an epoch has settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Rounds in which any cell had an item under way; the same number on all cells.
    pub rounds: u64,
    /// Items that this cell has handled.
    pub handled: u64,
}

/// Takes the items that a handler sends; they go in the next round.
#[derive(Debug)]
pub struct Outbox<I> {
    bytes: ByteOutbox,
    items: PhantomData<fn(I)>,
}

impl<I: Item> Outbox<I> {
    const SHAPE: ItemShape = ItemShape { words: I::WORDS, word_type: I::TYPE };

    /// An empty one of a cell.
    fn new(cell: &Cell<'_>) -> Self {
        Self { bytes: ByteOutbox::of_shape(cell, Self::SHAPE), items: PhantomData }
    }

    /// Sends an item to a cell, which may be the one that sends. If there is no such cell, the epoch
    /// fails when the round has been handled.
    #[inline]
    pub fn send(&mut self, target: CellId, item: I) {
        if let Some(list) = self.bytes.list(target) {
            item.put(list);
        }
    }
}

/// An epoch, as one cell sees it ([`Cell::open`]).
///
/// Settle it before it ends: items that were sent and not delivered are an error.
#[derive(Debug)]
pub struct Epoch<'c, 'w, I: Item> {
    cell: &'c mut Cell<'w>,
    out: Outbox<I>,
    limit: u64,
}

impl<'w> Cell<'w> {
    /// Opens an epoch, together with all other cells: each can then send items to any cells, and no
    /// cell has to know from whom it gets any.
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// // Every cell sends a number to cell 0, which passes it on to the cell of that number.
    /// let image = Image::new(Machine::from_spec("ring:4")?.into(), Vec::new())?;
    /// let (got, _report) = World::new(image).try_run(|cell| {
    ///     let (id, mut got) = (cell.id(), Vec::new());
    ///     let mut epoch = cell.open::<[u32; 1]>();
    ///     epoch.send(CellId(0), [3 - id.0])?;
    ///     let settled = epoch.settle(|from, [number], out| match id {
    ///         CellId(0) if from != id || number == 3 => out.send(CellId(number), [number]),
    ///         _ => got.push((from, number)),
    ///     })?;
    ///     assert!(settled.rounds >= 2);
    ///     Ok(got)
    /// })?;
    /// assert_eq!(got[3], [(CellId(0), 3)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open<I: Item>(&mut self) -> Epoch<'_, 'w, I> {
        let out = Outbox::new(self);
        Epoch { cell: self, out, limit: ROUNDS }
    }

    /// Sends words to some cells and receives what others have sent to this one, together with all
    /// other cells; none has to know from whom it gets any. Returns the senders in increasing order,
    /// each with its words; lists for the same cell arrive as one, empty ones do not arrive.
    ///
    /// Threads hand the lists over in memory. Over MPI each cell sends a message to every other cell,
    /// or, if there are many, as many messages as the number of cells has binary digits
    /// ([`Cell::set_routing`]).
    ///
    /// If phases are active, all cells switch to messages ([`Cell::instantiate_messages`]).
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// let image = Image::new(Machine::from_spec("ring:4")?.into(), Vec::new())?;
    /// let (got, _report) = World::new(image).try_run(|cell| match cell.id() {
    ///     CellId(0) => cell.exchange_any::<f64>(&[]),
    ///     CellId(id) => cell.exchange_any(&[(CellId(id - 1), &[0.5, f64::from(id)])]),
    /// })?;
    /// assert_eq!(got[2], [(CellId(3), vec![0.5, 3.0])]);
    /// assert_eq!(got[3], []);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No such cell, other cells exchange words of another type, or messages of the program were
    /// not received before.
    #[track_caller]
    pub fn exchange_any<W: Word>(
        &mut self,
        outgoing: &[(CellId, &[W])],
    ) -> Result<Vec<(CellId, Vec<W>)>, CellError> {
        self.switch_to_messages()?;
        let mut out = ByteOutbox::of_shape(self, Outbox::<[W; 1]>::SHAPE);
        let mut lists: SentLists<'_> = Vec::with_capacity(outgoing.len());
        for &(target, words) in outgoing {
            if let Some(place) = out.place(target).filter(|_| !words.is_empty()) {
                lists.push((place, bytes_of(words).into()));
            }
        }
        // Those for the same cell stay in their order, and become one.
        lists.sort_by_key(|list| list.0);
        lists.dedup_by(|later, list| {
            let is_same = later.0 == list.0;
            if is_same {
                list.1.to_mut().extend_from_slice(&later.1);
            }
            is_same
        });
        let (arrived, _) = out.deliver(self, lists, &mut NewLists)?;
        Ok(arrived)
    }

    /// Selects how the items of rounds find their targets over MPI, from the next round on; to be called
    /// alike by all cells. What arrives, and in which order, does not depend on it. Other transports
    /// have one way each.
    pub fn set_routing(&mut self, routing: Routing) {
        self.routing = routing;
    }
}

impl<'w, I: Item> Epoch<'_, 'w, I> {
    /// The cell, for other calls while the epoch is open.
    pub fn cell(&mut self) -> &mut Cell<'w> {
        self.cell
    }

    /// Sets the number of rounds after which the epoch fails ([`crate::EpochUse::Rounds`]) if cells still
    /// send; about a million unless it is set. To be called alike by all cells.
    pub fn limit_rounds(&mut self, rounds: u64) {
        self.limit = rounds;
    }

    /// Sends an item to a cell, which may be this one. It leaves when the epoch is settled.
    ///
    /// # Errors
    /// No such cell.
    #[inline]
    pub fn send(&mut self, target: CellId, item: I) -> Result<(), CellError> {
        self.cell.check_running()?;
        self.out.send(target, item);
        self.out.bytes.check_of(self.cell)
    }

    /// Delivers all items, together with all other cells, until none is under way: `handle` gets the
    /// sender of each item, the item, and where to send others. A round is delivered as by
    /// [`Cell::exchange_any`]. The epoch can be used again afterwards.
    ///
    /// If phases are active, all cells switch to messages ([`Cell::instantiate_messages`]).
    ///
    /// # Errors
    /// A handler sends to a cell that does not exist, cells have opened the epoch with other items,
    /// messages of the program were not received before, or the epoch does not settle.
    #[track_caller]
    pub fn settle(
        &mut self,
        mut handle: impl FnMut(CellId, I, &mut Outbox<I>),
    ) -> Result<Settled, CellError> {
        let mut settled = Settled::default();
        while let Some(arrived) = self.out.bytes.next_round(self.cell, &mut settled, self.limit)? {
            for (source, bytes) in arrived {
                for item in bytes.chunks_exact(Outbox::<I>::SHAPE.item_bytes()) {
                    handle(source, I::get(item), &mut self.out);
                }
                self.out.bytes.reuse(bytes);
            }
        }
        Ok(settled)
    }
}

impl<I: Item> Drop for Epoch<'_, '_, I> {
    fn drop(&mut self) {
        self.out.bytes.abandon(self.cell);
    }
}
