//! The state that the workers of a run share: the steps of cells, published memory, the shutdown.
//!
//! Every cell has two counters, the last step at which it *published* its words and the last at
//! which it was *done* reading those of others. Each connection has a [`WordSlot`] in which its source
//! stores where the words are. The values of a slot are plain; the counters order the accesses. The
//! outgoing words of nonblocking exchanges are in [`PublishedBuffers`].

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use conset_ir::convert;
use conset_ir::{CellId, ConnectionId};

use super::direct::DirectInbox;
use super::inbox::Inbox;
use super::published_buffers::PublishedBuffers;
use super::rounds::{Mailbox, RoundBoard};
use super::tree::TreeState;
use super::watchdog::{Activity, Reports};
use crate::call::Call;
use crate::collectives::WalkDirection;
use crate::error::RunError;
use crate::loaded_image::LoadedImage;
use crate::patience::Patience;
use crate::port::{RawWords, TreeWalk};
use crate::sync::{CachePadded, CollectiveLog, Counter, IdleDetector, Shutdown};

/// Where the words of a connection are, said by its source: a row, or a vector and positions.
#[derive(Debug, Default)]
pub(crate) struct WordSlot {
    pointer: AtomicPtr<u8>,
    words: AtomicUsize,
    size: AtomicUsize,
    /// Null where the words follow each other.
    positions: AtomicPtr<u32>,
    /// Words of a position.
    block: AtomicUsize,
}

impl WordSlot {
    #[inline]
    pub(crate) fn put(&self, row: RawWords, positions: *const u32, block: usize) {
        self.pointer.store(row.pointer, Ordering::Relaxed);
        self.words.store(row.words, Ordering::Relaxed);
        self.size.store(row.size, Ordering::Relaxed);
        self.positions.store(positions.cast_mut(), Ordering::Relaxed);
        self.block.store(block, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> (RawWords, *const u32, usize) {
        let row = RawWords {
            pointer: self.pointer.load(Ordering::Relaxed),
            words: self.words.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
        };
        let positions = self.positions.load(Ordering::Relaxed);
        (row, positions, self.block.load(Ordering::Relaxed))
    }
}

/// Words sent one by one. Every connection has room for all its words; a phase cannot carry more,
/// and at a switch all have been received.
#[derive(Debug)]
pub(crate) struct ElementWords {
    words: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// Words sent and received since the run began, by connection.
    pub(crate) sent: Box<[Counter]>,
    pub(crate) received: Box<[Counter]>,
    /// What `sent` was when phases of the set were left, by connection: the last time and the
    /// time before, in the place of the number of times modulo 2. A cell that has not read the
    /// last keeps its source from leaving twice more.
    sent_before: [Box<[Counter]>; 2],
}

impl ElementWords {
    fn new(connections: usize) -> Self {
        let counters = || (0..connections).map(|_| Counter::default()).collect();
        Self {
            words: (0..connections).map(|_| OnceLock::new()).collect(),
            sent: counters(),
            received: counters(),
            sent_before: [counters(), counters()],
        }
    }

    /// What was sent when a phase of the set was left for the `times`th time.
    pub(crate) fn sent_before(&self, connection: ConnectionId, times: u32) -> &Counter {
        &self.sent_before[convert::index(times) % 2][connection.index()]
    }

    pub(crate) fn put(&self, connection: ConnectionId, words: u32, index: u32, bits: u64) {
        let room = || (0..words).map(|_| AtomicU64::new(0)).collect();
        let row = self.words[connection.index()].get_or_init(room);
        if let Some(word) = row.get(convert::index(index)) {
            word.store(bits, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, connection: ConnectionId, index: u32) -> u64 {
        let row = self.words[connection.index()].get();
        let word = row.and_then(|row| row.get(convert::index(index)));
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// What is shared for one set.
#[derive(Debug)]
pub(crate) struct SetState {
    pub(crate) slots: Box<[WordSlot]>,
    elements: OnceLock<ElementWords>,
    /// The set as a tree: towards the root or both ways, and from the root. The edges of a chain
    /// may be both, in different trees.
    trees: [OnceLock<TreeState>; 2],
}

impl SetState {
    fn new(connections: usize) -> Self {
        Self {
            slots: (0..connections).map(|_| WordSlot::default()).collect(),
            elements: OnceLock::new(),
            trees: Default::default(),
        }
    }

    /// The nodes of a tree; made when first asked for.
    pub(crate) fn tree(&self, walk: &TreeWalk<'_>) -> &TreeState {
        let way = usize::from(walk.way == WalkDirection::Down);
        self.trees[way].get_or_init(|| TreeState::new(walk.tree))
    }

    /// The set's elements; made when first asked for.
    pub(crate) fn elements(&self) -> &ElementWords {
        self.elements.get_or_init(|| ElementWords::new(self.slots.len()))
    }

    /// The set's elements, if any phase of it was instantiated.
    pub(crate) fn used_elements(&self) -> Option<&ElementWords> {
        self.elements.get()
    }
}

/// Why a run ends early.
#[derive(Debug)]
pub(crate) enum RunFailure {
    Known(RunError),
    /// A cell does something else at a step than the first to come.
    Disagree {
        step: u64,
        cell: CellId,
        what: u32,
        call: Call,
    },
    /// Nothing can go on.
    Deadlock,
}

/// What the workers of a run share.
#[derive(Debug)]
pub(crate) struct SharedState<'r> {
    pub(crate) loaded: &'r LoadedImage,
    pub(crate) shutdown: Shutdown,
    pub(crate) idle: IdleDetector,
    pub(crate) collective_log: CollectiveLog,
    /// Per worker.
    pub(crate) activity: Box<[CachePadded<Activity>]>,
    /// Per worker: the step at which all its cells have arrived.
    pub(crate) arrived: Box<[CachePadded<Counter>]>,
    /// Per cell: the step at which its rows are published, and at which it has read all it reads.
    pub(crate) published: Box<[CachePadded<Counter>]>,
    pub(crate) done: Box<[CachePadded<Counter>]>,
    /// Per cell: 1 when its program has ended, and will publish nothing more.
    pub(crate) ended: Box<[Counter]>,
    /// Per cell: the outgoing words of its nonblocking exchanges.
    pub(crate) buffers: Box<[PublishedBuffers]>,
    pub(crate) sets: Vec<SetState>,
    /// Per cell.
    pub(crate) inboxes: Box<[Inbox]>,
    /// Per cell: what other cells send it directly.
    pub(crate) direct: Box<[DirectInbox]>,
    /// Per cell: what rounds of epochs brought.
    pub(crate) mailboxes: Box<[Mailbox]>,
    pub(crate) rounds: RoundBoard,
    pub(crate) patience: Patience,
    pub(crate) reports: Reports,
    failure: Mutex<Option<(CellId, RunFailure)>>,
}

impl<'r> SharedState<'r> {
    pub(crate) fn new(loaded: &'r LoadedImage, workers: usize, patience: Patience) -> Self {
        let counters = |number| (0..number).map(|_| CachePadded(Counter::default())).collect();
        let cells = loaded.image.machine().cell_count();
        Self {
            loaded,
            shutdown: Shutdown::new(workers),
            idle: IdleDetector::new(workers),
            collective_log: CollectiveLog::new(),
            activity: (0..workers).map(|_| CachePadded::default()).collect(),
            arrived: counters(workers),
            published: counters(cells),
            done: counters(cells),
            ended: (0..cells).map(|_| Counter::default()).collect(),
            buffers: (0..cells).map(|_| PublishedBuffers::default()).collect(),
            sets: loaded.image.sets().iter().map(|s| SetState::new(s.set.len())).collect(),
            inboxes: (0..cells).map(|_| Inbox::default()).collect(),
            direct: (0..cells).map(|_| DirectInbox::default()).collect(),
            mailboxes: (0..cells).map(|_| Mailbox::default()).collect(),
            rounds: RoundBoard::default(),
            patience,
            reports: Reports::new(patience),
            failure: Mutex::new(None),
        }
    }

    /// Ends the run. Of failures found at the same time that of the first cell is kept.
    pub(crate) fn fail(&self, cell: CellId, failure: RunFailure) {
        let mut kept = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(other, _)| cell < *other) {
            *kept = Some((cell, failure));
        }
        drop(kept);
        self.shutdown.start();
    }

    pub(crate) fn take_failure(&mut self) -> Option<RunFailure> {
        let kept = self.failure.get_mut().unwrap_or_else(PoisonError::into_inner);
        kept.take().map(|(_, failure)| failure)
    }
}
