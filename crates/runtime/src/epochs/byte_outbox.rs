//! Items as bytes: what the epochs of all languages send and deliver.
//!
//! An item has a size that is known when the program runs, as C has it. [`Outbox`](super::Outbox) and
//! [`Epoch`](super::Epoch) are this with a type of items.

use std::borrow::Cow;
use std::sync::Arc;

use conset_ir::CellId;
use conset_ir::convert::to_u64;

use super::Settled;
use super::outgoing::Outgoing;
use super::routing::{ItemShape, Round, SentLists, TakeLists};
use crate::cell::Cell;
use crate::error::{CellError, EpochUse};
use crate::word::{TYPES, Word, words_from};

/// The bytes of each cell that sent any, by sender.
pub(super) type SourceLists = Vec<(CellId, Vec<u8>)>;

/// What a round brought, by sender, and the first cell that sent any bytes to whomever.
pub(super) type Delivered<W> = (Vec<(CellId, Vec<W>)>, Option<CellId>);

/// Makes the lists of words that a round brings.
pub(super) trait ListMaker<W> {
    /// The words of bytes that have arrived.
    fn read(&mut self, bytes: Cow<'_, [u8]>) -> Vec<W>;

    /// An empty list with memory for so many words.
    fn empty(&mut self, words: usize) -> Vec<W>;

    /// Takes the memory of a list that was sent.
    fn reuse(&mut self, _sent: Vec<u8>) {}
}

/// Lists of words for the program, which keeps them.
pub(super) struct NewLists;

impl<W: Word> ListMaker<W> for NewLists {
    fn read(&mut self, bytes: Cow<'_, [u8]>) -> Vec<W> {
        words_from(&bytes)
    }

    fn empty(&mut self, words: usize) -> Vec<W> {
        Vec::with_capacity(words)
    }
}

/// Lists of bytes, which come back when their items were handled.
impl ListMaker<u8> for Outgoing {
    fn read(&mut self, bytes: Cow<'_, [u8]>) -> Vec<u8> {
        bytes.into_owned()
    }

    fn empty(&mut self, bytes: usize) -> Vec<u8> {
        let mut list = self.spare();
        list.reserve_exact(bytes);
        list
    }

    fn reuse(&mut self, sent: Vec<u8>) {
        Outgoing::reuse(self, sent);
    }
}

/// The lists that a round brings.
struct ArrivedLists<'a, W, M> {
    live: &'a [CellId],
    maker: &'a mut M,
    lists: Vec<ArrivedList<W>>,
}

struct ArrivedList<W> {
    source: CellId,
    list: Vec<W>,
    /// Words that the transport writes into the memory of the list before the round ends.
    in_place: usize,
}

impl<W: Word, M: ListMaker<W>> TakeLists for ArrivedLists<'_, W, M> {
    fn take(&mut self, source: usize, bytes: Cow<'_, [u8]>) {
        let list = self.maker.read(bytes);
        self.lists.push(ArrivedList { source: self.live[source], list, in_place: 0 });
    }

    fn room(&mut self, source: usize, bytes: usize) -> *mut u8 {
        let in_place = bytes / size_of::<W>();
        let mut list = self.maker.empty(in_place);
        assert!(list.is_empty() && list.capacity() >= in_place, "there is room");
        let start = list.as_mut_ptr().cast();
        self.lists.push(ArrivedList { source: self.live[source], list, in_place });
        start
    }

    fn reuse(&mut self, sent: Vec<u8>) {
        self.maker.reuse(sent);
    }
}

impl<W> ArrivedList<W> {
    /// The list, after the round has ended without an error.
    fn into_words(mut self) -> (CellId, Vec<W>) {
        if self.in_place > 0 {
            // SAFETY: the memory is of so many words, and the transport has written all their bytes
            // ([`TakeLists::room`]); any bytes are words.
            unsafe { self.list.set_len(self.in_place) };
        }
        (self.source, self.list)
    }
}

/// Takes the bytes of items, and delivers them in rounds.
#[derive(Debug)]
pub struct ByteOutbox {
    shape: ItemShape,
    outgoing: Outgoing,
    /// The live cells, by place.
    live: Arc<[CellId]>,
    /// The live cells are those numbered from 0 on.
    all_live: bool,
    /// The first target that was no live cell.
    wrong: Option<CellId>,
}

impl ByteOutbox {
    /// An empty one of a cell, for items of so many bytes. They travel in the longest words that
    /// divide them.
    pub fn new(cell: &Cell<'_>, bytes: usize) -> Self {
        let word_type = match bytes {
            _ if bytes.is_multiple_of(size_of::<u64>()) => u64::TYPE,
            _ if bytes.is_multiple_of(size_of::<u32>()) => u32::TYPE,
            _ if bytes.is_multiple_of(size_of::<u16>()) => u16::TYPE,
            _ => u8::TYPE,
        };
        Self::of_shape(cell, ItemShape { words: bytes / TYPES[word_type].1, word_type })
    }

    /// An empty one of a cell.
    pub(super) fn of_shape(cell: &Cell<'_>, shape: ItemShape) -> Self {
        let live = cell.live();
        let all_live = live.last().is_none_or(|last| last.index() + 1 == live.len());
        Self { shape, outgoing: Outgoing::default(), live, all_live, wrong: None }
    }

    /// Bytes that stand for an item; 1 for one of no bytes, so that it is counted.
    #[inline]
    pub fn item_bytes(&self) -> usize {
        self.shape.item_bytes()
    }

    /// Sends the bytes of an item to a cell. If there is no such cell, the next round fails.
    #[inline]
    pub fn send(&mut self, target: CellId, item: &[u8]) {
        assert_eq!(item.len(), self.item_bytes(), "the bytes of one item");
        if let Some(list) = self.list(target) {
            list.extend_from_slice(item);
        }
    }

    /// The bytes for a target, to be appended to; none, and an error later, if it is no live cell.
    #[inline]
    pub(super) fn list(&mut self, target: CellId) -> Option<&mut Vec<u8>> {
        let place = self.place(target)?;
        Some(self.outgoing.list(place))
    }

    /// The place of a target; none, and an error later, if it is no live cell.
    #[inline]
    pub(super) fn place(&mut self, target: CellId) -> Option<usize> {
        if self.all_live && target.index() < self.live.len() {
            return Some(target.index());
        }
        let place = self.live.binary_search(&target);
        place.map_err(|_| self.wrong.get_or_insert(target)).ok()
    }

    /// Refuses a target that is no live cell.
    ///
    /// # Errors
    /// The first such target that an item was sent to.
    #[inline]
    pub fn check(&self) -> Result<(), EpochUse> {
        let Some(target) = self.wrong else { return Ok(()) };
        // The cell that asks is one of them.
        let last = self.live.last().copied().unwrap_or(target);
        Err(EpochUse::Target { target, live: self.live.len(), last })
    }

    /// Ends the run of the cell with the error of [`ByteOutbox::check`], if there is one.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn check_of(&self, cell: &mut Cell<'_>) -> Result<(), CellError> {
        self.check().or_else(|wrong| cell.fail(wrong.into()))
    }

    /// Delivers lists of bytes, by place, together with all cells: the list of each cell that sent any
    /// to this one, by sender; and the first cell that sent any to whomever.
    pub(super) fn deliver<W: Word>(
        &self,
        cell: &mut Cell<'_>,
        lists: SentLists<'_>,
        maker: &mut impl ListMaker<W>,
    ) -> Result<Delivered<W>, CellError> {
        self.check_of(cell)?;
        if let Some(record) = &mut cell.record {
            for (place, bytes) in &lists {
                let items = bytes.len() / self.item_bytes();
                record.add(self.live[*place], to_u64(items * self.shape.words));
            }
        }
        let own = self.live.binary_search(&cell.id()).expect("a cell that runs is live");
        cell.at_round();
        let (live, shape, routing) = (&self.live[..], self.shape, cell.routing);
        let round = Round { live, own, shape, lists, routing };
        let mut arrived = ArrivedLists { live, maker, lists: Vec::new() };
        match cell.ask(|port| port.deliver(round, &mut arrived))? {
            Ok(first) => {
                let mut lists = arrived.lists;
                lists.sort_unstable_by_key(|list| list.source);
                let lists = lists.into_iter().map(ArrivedList::into_words).collect();
                Ok((lists, first.map(|place| live[place])))
            }
            Err(wrong) => cell.fail(wrong.into()),
        }
    }

    /// The next round of an epoch that has to settle in so many rounds, together with all cells: the
    /// bytes of each cell that sent any, or nothing if the epoch has settled. Counts the round and the
    /// items.
    ///
    /// # Errors
    /// As [`Epoch::settle`](super::Epoch::settle).
    #[track_caller]
    pub fn next_round(
        &mut self,
        cell: &mut Cell<'_>,
        settled: &mut Settled,
        limit: u64,
    ) -> Result<Option<SourceLists>, CellError> {
        cell.switch_to_messages()?;
        let mut outgoing = std::mem::take(&mut self.outgoing);
        let lists = outgoing.take().into_iter().map(|(place, bytes)| (place, bytes.into()));
        let delivered = self.deliver(cell, lists.collect(), &mut outgoing);
        self.outgoing = outgoing;
        let (arrived, sender) = delivered?;
        let Some(sender) = sender else { return Ok(None) };
        if settled.rounds == limit {
            return cell.fail(EpochUse::Rounds { rounds: limit, sender }.into());
        }
        settled.rounds += 1;
        let items = arrived.iter().map(|(_, bytes)| bytes.len() / self.item_bytes());
        settled.handled += to_u64(items.sum::<usize>());
        Ok(Some(arrived))
    }

    /// Keeps the memory of bytes that were handled.
    pub fn reuse(&mut self, bytes: Vec<u8>) {
        self.outgoing.reuse(bytes);
    }

    /// Ends the epoch.
    ///
    /// # Errors
    /// Items that were sent and not delivered.
    pub fn end(&mut self, cell: &mut Cell<'_>) -> Result<(), CellError> {
        match to_u64(self.outgoing.bytes() / self.item_bytes()) {
            0 => Ok(()),
            items => cell.fail(EpochUse::Unsettled { items }.into()),
        }
    }

    /// The same where there is nobody to return the error to: the run ends with it, unless it has ended.
    pub fn abandon(&mut self, cell: &mut Cell<'_>) {
        if cell.is_running() && !std::thread::panicking() {
            let _: Result<(), CellError> = self.end(cell);
        }
    }
}
