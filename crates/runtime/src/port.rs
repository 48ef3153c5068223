//! The interface between a cell and its transport.
//!
//! A [`crate::Cell`] validates its arguments and counts; everything else it delegates to its
//! [`CellPort`], which each transport implements. The rules of a port:
//!
//! * Calls are made from the coroutine of the cell and may suspend it.
//! * [`CellPort::switch`], [`CellPort::exchange`] and [`CellPort::exchange_lists`] are
//!   *collective*: all cells make the same ones in the same order, and a port detects when they do
//!   not.
//! * The port owns the buffers of a nonblocking exchange ([`CellPort::start`]), so that they stay
//!   valid for as long as other cells read them, however the program ends.
//! * A call that returns [`Stopped`] means that the run has ended, for a reason that the port has
//!   recorded or received ([`CellPort::fail`]). The cell then informs its program.
//! * Values are transferred as bits: an `f64` received as `u64` has the same bits. All cells exchange
//!   words of the same size ([`Call::word_bytes`]). Threads and MPI carry so many bytes for each; on
//!   the emulated machine, and where single words and messages are sent, a word of fewer than 8 bytes
//!   is the lower part of 64 bits.
//!
//! Slices are erased to [`RawWords`] (a pointer, a length, bytes per word), so that ports need no
//! generics and a transport is one `impl`.

use std::ops::Range;

use conset_ir::{CellId, ConnectionId, Operation, PhaseId};

use crate::call::Call;
use crate::collectives::{ReductionTree, StartedArray, WalkDirection};
use crate::epochs::routing::{Round, RoundResult, TakeLists};
use crate::error::CellError;
use crate::lists::{CellLists, Number, Op, Positions, VectorMut, combine, each_vector, gather};
use crate::loaded_image::LoadedImage;
use crate::word::{Word, bytes, bytes_mut, lower_byte, lower_half, lower_quarter};

/// The run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// What the machine is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// Messages; the initial context.
    Messages,
    /// A phase of a set.
    Phase(usize, PhaseId),
}

/// The method by which a set is exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// The compiled plan: phases, or the messages of a step plan.
    #[default]
    Phases,
    /// A message for each connection.
    Messages,
}

/// The words of some connections: a row for each, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireRows {
    /// Where each row begins, in words, and where the last ends.
    first: Vec<usize>,
    /// Bytes of a word.
    size: usize,
    /// Aligned for every number. It can have more than the rows need.
    memory: Vec<u64>,
}

impl WireRows {
    /// Rows of so many words of `size` bytes.
    pub(crate) fn new(words: impl Iterator<Item = usize>, size: usize) -> Self {
        let mut first = vec![0];
        first.extend(words.scan(0, |end, words| {
            *end += words;
            Some(*end)
        }));
        let mut rows = Self { first, size: 0, memory: Vec::new() };
        rows.set_size(size);
        rows
    }

    /// Changes the bytes of a word; the words are lost.
    pub(crate) fn set_size(&mut self, size: usize) {
        self.size = size;
        let bytes = self.first.last().map_or(0, |words| words * size);
        if self.memory.len() < bytes.div_ceil(size_of::<u64>()) {
            self.memory.resize(bytes.div_ceil(size_of::<u64>()), 0);
        }
    }

    /// Bytes of a word.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.first[row] * self.size..self.first[row + 1] * self.size
    }

    /// The bytes of a row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        &bytes(&self.memory)[self.range(row)]
    }

    /// The bytes of a row, to be written.
    #[inline]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u8] {
        let range = self.range(row);
        &mut bytes_mut(&mut self.memory)[range]
    }

    /// All rows, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.row(row))
    }

    /// Hands each row to a function.
    pub(crate) fn for_each_mut(&mut self, mut visit: impl FnMut(usize, &mut [u8])) {
        (0..self.len()).for_each(|row| visit(row, self.row_mut(row)));
    }

    /// The rows as transports take them: valid until the rows are used otherwise.
    pub(crate) fn raw(&mut self) -> impl Iterator<Item = RawWords> {
        let (size, start) = (self.size, self.memory.as_mut_ptr().cast::<u8>());
        self.first.windows(2).map(move |ends| {
            let pointer = start.wrapping_add(ends[0] * size);
            RawWords { pointer, words: ends[1] - ends[0], size }
        })
    }
}

/// The words of one exchange of one cell: a row for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireBuffers {
    pub(crate) outgoing: WireRows,
    pub(crate) incoming: WireRows,
}

impl WireBuffers {
    /// Buffers for so many words of `size` bytes.
    pub(crate) fn new(
        outgoing: impl Iterator<Item = usize>,
        incoming: impl Iterator<Item = usize>,
        size: usize,
    ) -> Self {
        let (outgoing, incoming) = (WireRows::new(outgoing, size), WireRows::new(incoming, size));
        Self { outgoing, incoming }
    }

    /// Changes the bytes of a word.
    pub(crate) fn set_size(&mut self, size: usize) {
        self.outgoing.set_size(size);
        self.incoming.set_size(size);
    }

    /// Hands over what came in.
    pub(crate) fn unpack_all(&self, unpack: &mut UnpackFn<'_>) {
        self.incoming.iter().enumerate().for_each(|(row, wire)| unpack((row, 0), wire));
    }

    /// Packs what goes out.
    pub(crate) fn fill(&mut self, pack: &mut PackFn<'_>) {
        self.outgoing.for_each_mut(|row, wire| pack((row, 0), wire));
    }
}

/// A stretch of a connection's words: its row among those that start or end at the cell, and the
/// first of the words.
pub(crate) type WirePosition = (usize, usize);

/// Puts a stretch of what goes out on the wire, in as many bytes as its words have.
pub(crate) type PackFn<'a> = dyn FnMut(WirePosition, &mut [u8]) + 'a;

/// Gets a stretch of what came in.
pub(crate) type UnpackFn<'a> = dyn FnMut(WirePosition, &[u8]) + 'a;

/// Gets all that came in.
pub(crate) type ReadFn<'a> = dyn FnMut(&ArrivedRows<'_>) + 'a;

/// The words that came in of each connection, wherever the transport has them.
pub(crate) struct ArrivedRows<'a>(&'a [RawWords]);

impl<'a> ArrivedRows<'a> {
    /// # Safety
    /// The rows can be read, and nobody writes them, for as long as this lives.
    pub(crate) unsafe fn new(rows: &'a [RawWords]) -> Self {
        Self(rows)
    }

    /// The bytes of the connection in a row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let RawWords { pointer, words, size } = self.0[row];
        // SAFETY: the promise of who made this; a row of no words has a pointer that is not null.
        unsafe { std::slice::from_raw_parts(pointer, words * size) }
    }
}

/// A walk over a compiled tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeWalk<'a> {
    pub(crate) tree: &'a ReductionTree,
    /// The set whose connections are the edges.
    pub(crate) set: usize,
    pub(crate) way: WalkDirection,
    /// Bytes of a word of the array.
    pub(crate) word_bytes: usize,
}

impl TreeWalk<'_> {
    /// The connection of the set from a cell to its neighbour in the tree.
    pub(crate) fn edge(&self, loaded: &LoadedImage, from: CellId, to: CellId) -> ConnectionId {
        let set = loaded.set(self.set);
        let mut out = loaded.sets[self.set].outgoing.of(from).iter();
        *out.find(|&&x| set.get(x).target == to).expect("a set of a tree has its edges")
    }
}

/// Combines the array of a cell with that of its child in a place, or the same part of both. They
/// are aligned to the words.
pub(crate) type CombineFn<'a> = dyn Fn(CellId, usize, &mut [u8], &[u8]) + 'a;

/// Words that a cell sends to one cell and receives of one at the same time, without a copy in
/// between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectPass {
    pub(crate) outgoing: Option<(CellId, RawWords)>,
    pub(crate) incoming: Option<(CellId, RawWords)>,
    /// The words leave only when their receiver has asked for them. Otherwise a transport may copy
    /// few words, to save the time of asking.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only MPI saves it"))]
    pub(crate) synchronous: bool,
}

/// A reduction to the first live cell, in the order of cells.
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "MPI alone has a way of its own"))]
pub(crate) struct ShortReduction<'a> {
    /// The live cells, and the place of the cell among them.
    pub(crate) live: &'a [CellId],
    pub(crate) own: usize,
    /// Bytes of a word of the array.
    pub(crate) word_bytes: usize,
    /// Used up, but at the first live cell, where it becomes the result.
    pub(crate) array: &'a mut [u8],
    /// Combines bytes with those of later cells, into the first; both are aligned to the words.
    pub(crate) combine: &'a mut dyn FnMut(&mut [u8], &[u8]),
}

/// The array of another cell, which differs from that of the cell that has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherArray {
    pub(crate) source: CellId,
    /// Bytes of its words, and of all of it.
    pub(crate) word_bytes: u64,
    pub(crate) bytes: u64,
}

/// What carries a cell's words.
pub(crate) trait CellPort {
    /// Whether the run has ended early.
    fn has_stopped(&self) -> bool;

    /// Ends the run for all because of an error of this cell; the first such error is kept.
    fn fail(&mut self, error: &CellError);

    /// The collective call of which the next requests are a part; the cell sets it before them.
    fn call(&mut self) -> &mut Call;

    /// Clocks since the run began, where there are any.
    fn clock(&self) -> u64;

    /// Local work.
    fn compute(&mut self, clocks: u64) -> Result<(), Stopped>;

    /// Collective: all cells have asked, all words and messages sent have been received.
    fn switch(&mut self, to: Context) -> Result<(), Stopped>;

    /// Sends the one word of an operation of the active phase; `opens`: it is the first of its
    /// stream.
    fn send_word(&mut self, word: &Operation, opens: bool, bits: u64) -> Result<(), Stopped>;

    /// Receives the one word of an operation of the active phase.
    fn receive_word(&mut self, word: &Operation, opens: bool) -> Result<u64, Stopped>;

    /// Collective: exchanges a set. A row for each connection that starts here and for each that
    /// ends here, in id order, each as long as its connection. By messages only in the context of
    /// messages; by phases the machine is switched as need be.
    ///
    /// # Safety
    /// The rows can be read, and those incoming written, until the call returns or unwinds; no
    /// other memory overlaps those incoming.
    unsafe fn exchange(
        &mut self,
        set: usize,
        by: By,
        outgoing: &[RawWords],
        incoming: &[RawWords],
    ) -> Result<(), Stopped>;

    /// [`CellPort::exchange`] of words that are packed where the transport sends them from, as far as
    /// it can, and read where they arrived. The buffers are for what it cannot.
    fn exchange_packed(
        &mut self,
        set: usize,
        by: By,
        buffers: &mut WireBuffers,
        pack: &mut PackFn<'_>,
        read: &mut ReadFn<'_>,
    ) -> Result<(), Stopped> {
        buffers.fill(pack);
        let outgoing: Vec<RawWords> = buffers.outgoing.raw().collect();
        let incoming: Vec<RawWords> = buffers.incoming.raw().collect();
        // SAFETY: the rows are disjoint parts of the buffers, which nobody uses before the call
        // returns or unwinds.
        unsafe { self.exchange(set, by, &outgoing, &incoming)? };
        // SAFETY: the buffers are not written until this has returned.
        read(&unsafe { ArrivedRows::new(&incoming) });
        Ok(())
    }

    /// Collective: exchanges a set between vectors. What the positions `lists.send()` hold at the
    /// call is combined at the other end into the positions `lists.receive()`, connections in id
    /// order. The caller has checked that the lists fit the set and the vector.
    fn exchange_lists(
        &mut self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: VectorMut<'_>,
    ) -> Result<(), Stopped>;

    /// Collective: starts an exchange of a set by phases. The port keeps the buffers, as long as
    /// the connections of the set in id order, until they are taken back; `number` is one more
    /// than that of the previous exchange. It packs the outgoing words during the call, into the
    /// buffers or elsewhere. Returns without waiting for other cells, as far as
    /// the transport has room. Exchanges are performed in the order in which they were started.
    fn start(
        &mut self,
        number: u64,
        set: usize,
        buffers: WireBuffers,
        pack: &mut PackFn<'_>,
    ) -> Result<(), Stopped>;

    /// Whether a nonblocking exchange has arrived here. Makes the progress that is possible without
    /// waiting; where that is not enough, lets others go on, so that asking again and again comes
    /// to an end.
    fn test(&mut self, number: u64) -> Result<bool, Stopped>;

    /// Waits until a nonblocking exchange, and all that were started before, have arrived.
    fn wait(&mut self, number: u64) -> Result<(), Stopped>;

    /// Takes back the buffers of an exchange that has arrived.
    fn take(&mut self, number: u64) -> WireBuffers;

    /// [`CellPort::arrive`], and [`CellPort::take`]; in between hands over what came in, connections in id
    /// order. It need not be in the buffers.
    fn read(&mut self, number: u64, unpack: &mut UnpackFn<'_>) -> Result<WireBuffers, Stopped> {
        self.wait(number)?;
        let buffers = self.take(number);
        buffers.unpack_all(unpack);
        Ok(buffers)
    }

    /// Whether trees of a set are walked by messages over their edges ([`CellPort::walk`]). Elsewhere
    /// a cell walks them word by word, in the compiled phases.
    fn walks_edges(&self, set: usize) -> bool;

    /// Collective: walks over a tree with an array, by one message over each edge, or what costs less;
    /// there is one where [`CellPort::walks_edges`]. The messages are not those of the program. On
    /// the way to the root `combine` is called for a cell and its children in their order. At the
    /// end the array is what was combined in the branch of the cell, or what came from the root.
    fn walk(
        &mut self,
        walk: &TreeWalk<'_>,
        array: &mut [u8],
        combine: &CombineFn<'_>,
    ) -> Result<(), Stopped>;

    /// Collective: starts [`CellPort::walk`] to the root and back, with a number that is one more than
    /// that of the walk started before. Gives the array back if the transport does not walk by
    /// itself; then nothing has happened.
    fn start_walk(
        &mut self,
        number: u64,
        walk: &TreeWalk<'_>,
        array: StartedArray,
    ) -> Result<Option<StartedArray>, Stopped>;

    /// Whether a walk that was started is done; as [`CellPort::test`].
    fn test_walk(&mut self, number: u64) -> Result<bool, Stopped>;

    /// Waits until a walk, and all that were started before, are done.
    fn wait_walk(&mut self, number: u64) -> Result<(), Stopped>;

    /// Takes the result of a walk that is done.
    fn take_walk(&mut self, number: u64) -> StartedArray;

    /// Sends a message to a live cell; returns when its words may be overwritten.
    ///
    /// # Safety
    /// The row can be read until the call returns or unwinds.
    unsafe fn send_message(&mut self, target: CellId, words: RawWords) -> Result<(), Stopped>;

    /// Receives the next message of a live cell. If it has not as many words as the row nothing
    /// is written, and the answer is how many it has.
    ///
    /// # Safety
    /// The row can be written until the call returns or unwinds.
    unsafe fn receive_message(&mut self, source: CellId, into: RawWords) -> Result<usize, Stopped>;

    /// The next message of a live cell, or of any, that could be received: its source and its words.
    /// With `wait` the call waits for one, and the answer is never none. Without, it lets others go on
    /// if there is none, so that asking again and again comes to an end.
    fn next_message(
        &mut self,
        source: Option<CellId>,
        wait: bool,
    ) -> Result<Option<(CellId, usize)>, Stopped>;

    /// Sends words to a live cell and receives words of one, at the same time. Returns when the words
    /// sent may be overwritten and those to be received are here. If what comes has not as many
    /// words as the row nothing is written, and the answer is how many it has. These words are not
    /// taken for messages.
    ///
    /// # Safety
    /// The row sent can be read and that received be written until the call returns or unwinds; they
    /// do not overlap.
    unsafe fn pass_directly(&mut self, pass: &DirectPass) -> Result<usize, Stopped>;

    /// Whether there are more cells than cores to run them; all cells get the same answer.
    fn shares_cores(&self) -> bool {
        false
    }

    /// Collective: a reduction of an array, if the transport has a way of its own for one of its length
    /// that is faster than direct passes. The answer is what other array it has met instead, if any.
    fn reduce_short(
        &mut self,
        _reduction: ShortReduction<'_>,
    ) -> Result<Option<Result<(), OtherArray>>, Stopped> {
        Ok(None)
    }

    /// Collective: a round of an epoch. Hands over the bytes for this cell, those of the cell itself
    /// among them.
    fn deliver(&mut self, round: Round<'_>, arrived: &mut dyn TakeLists) -> RoundResult;

    /// Collective: exchanges a set by messages, with a row for each connection that starts here, no
    /// longer than the connection. Hands over the bytes of each that ends here, by
    /// its row. Only in the context of messages.
    ///
    /// # Safety
    /// The rows can be read until the call returns or unwinds.
    unsafe fn exchange_sized(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        read: &mut UnpackFn<'_>,
    ) -> Result<(), Stopped>;
}

/// Words in memory: of which type is forgotten but for its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawWords {
    pub(crate) pointer: *mut u8,
    pub(crate) words: usize,
    /// Bytes of a word: 1, 2, 4 or 8.
    pub(crate) size: usize,
}

impl RawWords {
    /// Words to be read.
    pub(crate) fn of<W: Word>(words: &[W]) -> Self {
        // It is never written through: `exchange` writes incoming rows only.
        let pointer = words.as_ptr().cast::<u8>().cast_mut();
        Self { pointer, words: words.len(), size: size_of::<W>() }
    }

    /// Words to be written.
    pub(crate) fn of_mut<W: Word>(words: &mut [W]) -> Self {
        let pointer = words.as_mut_ptr().cast::<u8>();
        Self { pointer, words: words.len(), size: size_of::<W>() }
    }

    /// The bits of a word.
    ///
    /// # Safety
    /// The words can be read; `index < words`.
    #[inline]
    pub(crate) unsafe fn get(&self, index: usize) -> u64 {
        // SAFETY: the row was made of a slice of numbers of `size` bytes, which are aligned, any
        // bits of which are a number, and of which `index` is one.
        unsafe {
            match self.size {
                1 => u64::from(self.pointer.add(index).read()),
                2 => u64::from(self.pointer.cast::<u16>().add(index).read()),
                4 => u64::from(self.pointer.cast::<u32>().add(index).read()),
                _ => self.pointer.cast::<u64>().add(index).read(),
            }
        }
    }

    /// Writes the bits of a word.
    ///
    /// # Safety
    /// The row was made of a slice borrowed for writing; `index < words`.
    #[inline]
    pub(crate) unsafe fn set(&self, index: usize, bits: u64) {
        // SAFETY: as in `get`; the lower bits are the number where it has fewer than 8 bytes.
        unsafe {
            match self.size {
                1 => self.pointer.add(index).write(lower_byte(bits)),
                2 => self.pointer.cast::<u16>().add(index).write(lower_quarter(bits)),
                4 => self.pointer.cast::<u32>().add(index).write(lower_half(bits)),
                _ => self.pointer.cast::<u64>().add(index).write(bits),
            }
        }
    }

    /// Copies another row's words into this one.
    ///
    /// # Safety
    /// This row was made of a slice borrowed for writing, the other can be read, they do not overlap
    /// and have as many words of the same size.
    #[inline]
    pub(crate) unsafe fn copy_from(&self, other: &RawWords) {
        // SAFETY: both are `words * size` bytes long.
        unsafe {
            std::ptr::copy_nonoverlapping(other.pointer, self.pointer, self.words * self.size);
        }
    }

    /// Writes the bits of words, if there are as many as the row has; gives their number.
    ///
    /// # Safety
    /// The row was made of a slice borrowed for writing.
    pub(crate) unsafe fn write_if_fits(&self, words: &[u64]) -> usize {
        if words.len() == self.words {
            // SAFETY: the promise of the caller, and there is room.
            words.iter().enumerate().for_each(|(i, &bits)| unsafe { self.set(i, bits) });
        }
        words.len()
    }

    /// Copies another row's words into this one, if it has as many; gives their number. Words of
    /// another size are converted by their bits.
    ///
    /// # Safety
    /// This row was made of a slice borrowed for writing, the other can be read, and they do not
    /// overlap.
    pub(crate) unsafe fn copy_if_fits(&self, other: &RawWords) -> usize {
        // SAFETY: the promise of the caller, and the rows are equally long.
        unsafe {
            if self.words == other.words && self.size == other.size {
                self.copy_from(other);
            } else if self.words == other.words {
                (0..self.words).for_each(|index| self.set(index, other.get(index)));
            }
        }
        other.words
    }

    /// The bytes of some of the words.
    ///
    /// # Safety
    /// The row can be read, and has the words, as long as they are used.
    #[cfg(feature = "mpi")]
    #[inline]
    pub(crate) unsafe fn bytes<'a>(&self, words: &Range<usize>) -> &'a [u8] {
        let start = self.pointer.wrapping_add(words.start * self.size);
        // SAFETY: said above.
        unsafe { std::slice::from_raw_parts(start, words.len() * self.size) }
    }

    /// The same, to be written.
    ///
    /// # Safety
    /// The row can be written, nobody else uses it, and it has the words.
    #[cfg(feature = "mpi")]
    #[inline]
    pub(crate) unsafe fn bytes_mut<'a>(&self, words: &Range<usize>) -> &'a mut [u8] {
        let start = self.pointer.wrapping_add(words.start * self.size);
        // SAFETY: said above.
        unsafe { std::slice::from_raw_parts_mut(start, words.len() * self.size) }
    }
}

/// An exchange between vectors by rows: gather, exchange, combine. For ports that cannot do
/// better.
pub(crate) fn exchange_packed(
    port: &mut dyn CellPort,
    set: usize,
    lists: &CellLists,
    op: Op,
    vector: VectorMut<'_>,
) -> Result<(), Stopped> {
    each_vector!(vector, x => packed(port, set, lists, op, x))
}

fn packed<W: Number>(
    port: &mut dyn CellPort,
    set: usize,
    lists: &CellLists,
    op: Op,
    vector: &mut [W],
) -> Result<(), Stopped> {
    let (send, receive, block) = (lists.send(), lists.receive(), lists.block());
    let mut outgoing = vec![W::from_bits(0); send.all().len() * block];
    let mut incoming = vec![W::from_bits(0); receive.all().len() * block];
    gather(send.all(), block, vector, &mut outgoing);
    let out = rows(&mut outgoing, send, block);
    let into = rows(&mut incoming, receive, block);
    // SAFETY: the rows are disjoint parts of two vectors that live until the end of this function
    // and are not touched before the call returns or unwinds.
    unsafe { port.exchange(set, By::Phases, &out, &into)? };
    combine(receive.all(), block, op, &incoming, vector);
    Ok(())
}

/// The row of each list, where the words of all lists lie one after the other.
fn rows<W: Number>(words: &mut [W], lists: &Positions, block: usize) -> Vec<RawWords> {
    let mut rest = words;
    let mut rows = Vec::with_capacity(lists.len());
    for place in 0..lists.len() {
        let (row, others) = rest.split_at_mut(lists.row(place).len() * block);
        rows.push(RawWords::of_mut(row));
        rest = others;
    }
    rows
}
