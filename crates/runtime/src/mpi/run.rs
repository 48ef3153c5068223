//! A run on the ranks of a communicator: the part of one rank.
//!
//! Each rank executes the programs of its own cells, as coroutines of one thread that take turns. A
//! waiting cell checks, each time it has its turn, whether it can continue. When all cells of a
//! rank want to switch phases, or have ended, the rank enters the consensus ([`super::consensus`]);
//! all ranks know the result, and a run that fails there fails on all of them with an error. If one
//! rank finds alone that it cannot continue, it tells the others ([`super::failure`]).
//!
//! The start and end of a run:
//! * All ranks compare the digests of their images.
//! * Ranks without cells then wait for the end of the run.
//! * A run ends when the programs of all cells have ended; then, as at every switch, every message
//!   that was sent must have been received.

use std::cell::{Cell as Slot, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conset_ir::convert::to_u64;
use conset_ir::{CellId, ConnectionId, Direction, Operation};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::backoff::{Backoff, Waited};
use super::comm::{Comm, check_thread};
use super::ffi::to_c_int;
use super::gather_at_root;
use super::message_layout::{TagAllocator, find_unbalanced};
use super::message_queue::{Address, MpiMessageQueue};
use super::mismatch::{CollectiveStep, MismatchDetector, StepLog};
use super::nonblocking::{MpiRequestQueue, OldestRequest};
use super::persistent_requests::{ExchangeKey, PersistentExchange};
use super::port::MpiPort;
use super::rank_map::RankMap;
use super::started_walks::WalkQueue;
use super::tree::LocalEdge;
use super::walks::{RankTree, TreeKey};
use crate::call::Call;
use crate::cell::Cell;
use crate::error::{MpiError, RunError};
use crate::executor::{CellCoroutine, Program, ProgramOutcome, RunSetup, run_program};
use crate::loaded_image::LoadedImage;
use crate::patience::Patience;
use crate::port::{By, Context};
use crate::report::RunReport;
use crate::stack::{AlternateStack, Stacks};
use crate::word;

/// What a cell waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitState {
    Nothing,
    /// The end of an exchange of a set.
    Exchange(ExchangeKey),
    /// Its nonblocking exchanges.
    Requests,
    /// Its neighbours in a tree.
    Walk(TreeKey),
    /// Its nonblocking reductions.
    Walks,
    /// Cells of its own rank, to read what it sent them last in an exchange of a set.
    Readers(ExchangeKey),
    Word(usize, ConnectionId),
    MessageSpec(CellId),
    /// A message of any cell.
    AnyMessage,
    /// A cell to receive what this one sends it.
    Receiver(CellId),
    /// A cell to make its part of a round of an epoch.
    Round(CellId),
    Switch(Context),
    Ended,
}

/// One run, as one rank has it.
pub(super) struct Rank<'w> {
    pub(super) comm: Comm,
    pub(super) loaded: &'w LoadedImage,
    pub(super) rank_map: RankMap,
    pub(super) messages: MpiMessageQueue,
    exchange: RefCell<BTreeMap<ExchangeKey, Rc<PersistentExchange>>>,
    pub(super) trees: RefCell<BTreeMap<TreeKey, Rc<RankTree>>>,
    /// In the tree of all live cells, the edges between cells of this rank, by their lower ends.
    pub(super) live_edges: RefCell<BTreeMap<CellId, Rc<LocalEdge>>>,
    /// The nonblocking exchanges of the cells.
    pub(super) requests: MpiRequestQueue,
    /// Their nonblocking reductions.
    pub(super) walks: WalkQueue,
    /// By row of this rank's cells.
    pub(super) waits: RefCell<Vec<WaitState>>,
    /// Some node has more cells than cores, which all ranks know.
    pub(super) shares_cores: Slot<bool>,
    /// Switches made.
    pub(super) switches: Slot<u64>,
    /// By row: the switches and exchanges of the cell.
    pub(super) steps: RefCell<Vec<StepLog>>,
    pub(super) mismatch_detector: MismatchDetector,
    /// The set whose phase is active, or messages are.
    pub(super) active: Slot<Option<usize>>,
    /// Incremented whenever a cell or a request makes progress.
    pub(super) turns: Slot<u64>,
    /// A cell has tested in vain since the rank looked last.
    pub(super) tested: Slot<bool>,
    pub(super) words: Slot<u64>,
    /// Why the run has ended early.
    error: RefCell<Option<RunError>>,
    /// That is so on all ranks, with the same reason.
    pub(super) known_to_all: Slot<bool>,
    /// When a cell of this rank first began to complete, after a failure, what is under way in the
    /// memory of its program.
    pub(super) told: Slot<Option<Instant>>,
    /// The tag of the first pair's messages, and of the first connection's elements.
    first_message_tag: u64,
    pub(super) elements: u64,
    /// TagAllocator of exchanges: the first, and the limit.
    bulk: (u64, u64),
}

/// Runs a program on the cells of this rank.
pub(crate) fn run(
    setup: RunSetup<'_>,
    comm: &Comm,
    program: &Program<'_>,
) -> Result<RunReport, RunError> {
    check_thread()?;
    let _busy = comm.occupy()?;
    let _unwinding = AbortOnUnwind(comm);
    let rank = Rank::new(comm, setup.loaded)?;
    let result = rank.run(setup.stack_size, program);
    if let Err(error) = &result {
        rank.announce(error);
        drop(rank);
        if comm.size() > 1
            && let Err(problem) = comm.renew()
        {
            comm.abort_because(&problem);
        }
    }
    result
}

/// Ends the job if a run is left by a panic: that is a bug of the runtime, as programs cannot
/// unwind it, and the other ranks would wait for ever.
struct AbortOnUnwind<'a>(&'a Comm);

impl Drop for AbortOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && self.0.size() > 1 {
            self.0.abort(101);
        }
    }
}

/// The cells of this rank.
pub(crate) fn cells(live: &Arc<[CellId]>, comm: &Comm) -> Vec<CellId> {
    let rank_map = RankMap::new(Arc::clone(live), comm.size());
    rank_map.cells_of(comm.rank()).to_vec()
}

impl<'w> Rank<'w> {
    fn new(comm: &Comm, loaded: &'w LoadedImage) -> Result<Self, MpiError> {
        let rank_map = RankMap::new(Arc::clone(&loaded.live), comm.size());
        let own = rank_map.cells_of(comm.rank()).len();
        let first_message_tag = gather_at_root::TAGS;
        let most = to_u64(rank_map.most());
        let elements = first_message_tag + to_u64(MessageClass::ALL.len()) * most * most;
        let connections = loaded.image.sets().iter().map(|set| to_u64(set.set.len()));
        let bulk = elements + connections.max().unwrap_or(0);
        let limit = to_u64(comm.tags());
        if bulk > limit {
            let what = "tags for cells of a rank and connections of a set";
            return Err(MpiError::Limit { what, found: bulk, limit });
        }
        Ok(Self {
            comm: comm.clone(),
            loaded,
            rank_map,
            messages: MpiMessageQueue::new(comm.clone()),
            exchange: RefCell::default(),
            trees: RefCell::default(),
            live_edges: RefCell::default(),
            requests: MpiRequestQueue::new(own),
            walks: WalkQueue::new(own),
            waits: RefCell::new(vec![WaitState::Nothing; own]),
            shares_cores: Slot::new(false),
            switches: Slot::new(0),
            steps: RefCell::new(vec![StepLog::new(); own]),
            mismatch_detector: MismatchDetector::default(),
            active: Slot::new(None),
            turns: Slot::new(0),
            tested: Slot::new(false),
            words: Slot::new(0),
            error: RefCell::default(),
            known_to_all: Slot::new(false),
            told: Slot::new(None),
            first_message_tag,
            elements,
            bulk: (bulk, limit),
        })
    }

    fn run(&self, stack_size: usize, program: &Program<'_>) -> Result<RunReport, RunError> {
        self.compare_images()?;
        let cells = self.rank_map.cells_of(self.comm.rank());
        if cells.is_empty() {
            return self.run_without_cells();
        }
        let _alternate = AlternateStack::install();
        let stacks = Stacks::reserve(cells, cells.len(), stack_size)?;
        let mut coroutines: Vec<CellCoroutine<(), ()>> = Vec::with_capacity(cells.len());
        for (row, &id) in cells.iter().enumerate() {
            let (stack, bounds) = stacks.get(id, row)?;
            let body = move |yielder: &Yielder<(), ()>, ()| {
                let mut port = MpiPort {
                    rank: self,
                    id,
                    row,
                    yielder,
                    call: Call::default(),
                    active: 0,
                    order: Vec::new(),
                    arrived: Vec::new(),
                    rounds: None,
                    tree: None,
                };
                run_program(program, &mut Cell::new((id, bounds), self.loaded, &mut port))
            };
            // SAFETY: the closure borrows `program` and `self`, which outlive this call. A
            // coroutine is never forgotten or moved out of it, and dropping one runs or unwinds
            // it to its end.
            coroutines.push(unsafe { Coroutine::with_stack_unchecked(stack, body) });
        }
        if let Err(error) = self.drive(&mut coroutines) {
            self.stop(error.clone());
            self.announce(&error);
            // The error that there is says more than one of closing.
            let _ = self.close(&mut Backoff::new(CLOSING));
            for coroutine in &mut coroutines {
                while coroutine.started() && !coroutine.done() {
                    // The program returns or is unwound; its outcome does not matter.
                    drop(coroutine.resume(()));
                }
            }
            return Err(error);
        }
        Ok(RunReport {
            switches: self.switches.get(),
            words: self.words.get(),
            ..RunReport::default()
        })
    }

    /// Lets the cells take turns until the run has ended on all ranks.
    fn drive(&self, coroutines: &mut [CellCoroutine<(), ()>]) -> Result<(), RunError> {
        let mut backoff = self.comm.backoff();
        let mut turns = self.turns.get();
        loop {
            for (row, coroutine) in coroutines.iter_mut().enumerate() {
                if coroutine.done() {
                    continue;
                }
                if let CoroutineResult::Return(outcome) = coroutine.resume(()) {
                    self.waits.borrow_mut()[row] = WaitState::Ended;
                    self.made_progress();
                    match outcome {
                        ProgramOutcome::Returned | ProgramOutcome::Aborted => {}
                        ProgramOutcome::Panicked(message) => {
                            let cell = self.rank_map.cells_of(self.comm.rank())[row];
                            self.stop(RunError::Panic { cell, message });
                        }
                    }
                }
                if let Some(error) = self.stopped_by() {
                    return Err(error);
                }
            }
            self.messages.reap()?;
            self.progress(1)?;
            if self.all_ready() {
                if self.reach_consensus()? {
                    return self.close(&mut self.comm.backoff());
                }
                self.made_progress();
            }
            if self.turns.get() != turns {
                turns = self.turns.get();
                backoff.renew();
                self.tested.set(false);
                continue;
            }
            let waited = if self.tested.take() { backoff.wait_busy() } else { backoff.wait() };
            match waited {
                Waited::Briefly => {}
                Waited::Long => self.compare_steps()?,
                Waited::Report(time) => {
                    self.compare_steps()?;
                    self.comm.report_wait(&self.awaited(time));
                }
                Waited::TimedOut(time) => return Err(self.awaited(time).into()),
            }
        }
    }

    /// The run has ended on all ranks: no exchange is under way, except of those that failed.
    fn close(&self, backoff: &mut Backoff) -> Result<(), RunError> {
        self.receive_notices()?;
        for exchange in self.exchange.borrow().values() {
            exchange.close(backoff)?;
        }
        self.trees.borrow().values().try_for_each(|tree| Ok(tree.close()?))
    }

    /// Advances all nonblocking exchanges and reductions without waiting.
    #[inline]
    pub(super) fn progress(&self, tries: u32) -> Result<(), RunError> {
        if self.requests.progress(tries)? | self.walks.progress(tries)? {
            self.made_progress();
        }
        Ok(())
    }

    /// A cell goes on.
    pub(super) fn made_progress(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// A cell starts a switch or an exchange; its number.
    pub(super) fn count_step(&self, row: usize, what: CollectiveStep, call: Call) -> u64 {
        self.steps.borrow_mut()[row].push(what, call)
    }

    /// Ends the run early; the first reason counts.
    pub(super) fn stop(&self, error: impl Into<RunError>) {
        self.error.borrow_mut().get_or_insert_with(|| error.into());
    }

    /// Why the run has ended early, if it has.
    pub(super) fn stopped_by(&self) -> Option<RunError> {
        self.error.borrow().clone()
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.error.borrow().is_some()
    }

    /// The exchange of a set; laid out when it is first asked for.
    pub(super) fn exchange(&self, key: ExchangeKey) -> Result<Rc<PersistentExchange>, RunError> {
        if let Some(exchange) = self.exchange.borrow().get(&key) {
            return Ok(exchange.clone());
        }
        let (image, ExchangeKey { set, by, size }) = (&*self.loaded.image, key);
        let phased = by == By::Phases;
        let unequal = if phased { find_unbalanced(image, set) } else { None };
        if let Some((phase, connection, sent, received)) = unequal {
            let phase = self.loaded.phase_name(set, phase);
            return Err(MpiError::Unequal { phase, connection, sent, received }.into());
        }
        let ends = &self.loaded.sets[set];
        let mut tags = self.tags(set, TagUse::Exchange(by, size));
        let exchange = Rc::new(PersistentExchange::new(
            &self.comm,
            &self.rank_map,
            &mut tags,
            (image, key),
            (&|cell| ends.outgoing.of(cell), &|cell| ends.incoming.of(cell)),
        )?);
        self.exchange.borrow_mut().insert(key, exchange.clone());
        Ok(exchange)
    }

    /// The tags of a set's messages.
    pub(super) fn tags(&self, set: usize, purpose: TagUse) -> TagAllocator {
        // Runs of a communicator take turns with tags, so that nothing is taken for what was left
        // by one that failed.
        let turn = self.comm.runs() % TURNS;
        let sets = to_u64(self.loaded.image.sets().len());
        let purpose = match purpose {
            TagUse::Exchange(by, size) => {
                u64::from(size.trailing_zeros()) * 2 + u64::from(by == By::Phases)
            }
            TagUse::Tree(down) => 2 * word::SIZES + u64::from(down),
        };
        let part = (turn * sets + to_u64(set)) * PURPOSES + purpose;
        TagAllocator::new(self.bulk, part, TURNS * sets * PURPOSES)
    }

    /// The address of the word of an element operation.
    pub(super) fn element(&self, operation: &Operation, set: usize) -> Address {
        let ends = self.loaded.set(set).get(operation.connection);
        let other = match operation.direction {
            Direction::Send => ends.target,
            Direction::Receive => ends.source,
        };
        let (rank, _) = self.rank_map.find(other).expect("ends of connections are live");
        let tag = self.elements + u64::from(operation.connection.0);
        Address { rank, tag: to_c_int(tag) }
    }

    /// Where a message between live cells goes or comes from.
    pub(super) fn message(&self, source: CellId, target: CellId, way: Direction) -> Address {
        self.message_of(MessageClass::Plain, (source, target), way)
    }

    /// The same for a message of a class, which has tags of its own.
    pub(super) fn message_of(
        &self,
        class: MessageClass,
        (source, target): (CellId, CellId),
        way: Direction,
    ) -> Address {
        let find = |cell| self.rank_map.find(cell).expect("the cell is live");
        let (source, target) = (find(source), find(target));
        let most = self.rank_map.most();
        let pair = to_u64(source.1 * most + target.1) + class.number() * to_u64(most * most);
        let rank = if way == Direction::Send { target.0 } else { source.0 };
        Address { rank, tag: to_c_int(self.first_message_tag + pair) }
    }

    /// For whom the first cell waits that waits for another rank.
    fn awaited(&self, milliseconds: u64) -> MpiError {
        let rank = self.comm.rank();
        let cells = self.rank_map.cells_of(rank);
        let mut found = Vec::new();
        let mut place = String::new();
        for (row, (&cell, &waits)) in cells.iter().zip(&*self.waits.borrow()).enumerate() {
            let (what, others) = self.awaited_by(row, waits);
            if others.is_empty() {
                continue;
            }
            let names: Vec<String> = others.iter().map(CellId::to_string).collect();
            let separator = if place.is_empty() { "" } else { "; " };
            place += &format!("{separator}{what} ({cell} awaits {})", names.join(", "));
            let ranks = others.iter().filter_map(|&cell| self.rank_map.find(cell));
            found.extend(ranks.map(|(rank, _)| rank));
            if found.len() >= NAMED {
                break;
            }
        }
        found.sort_unstable();
        found.dedup();
        MpiError::Missing { rank, milliseconds, place, awaited: found }
    }

    pub(super) fn awaited_by(&self, row: usize, waits: WaitState) -> (String, Vec<CellId>) {
        match waits {
            WaitState::Exchange(key) => self.awaited_in(row, key),
            WaitState::Readers(key) => self.awaited_readers(row, key),
            WaitState::Requests => match self.requests.oldest(row) {
                Some(OldestRequest { key, started: true, .. }) => self.awaited_in(row, key),
                Some(OldestRequest { key, .. }) => self.awaited_readers(row, key),
                None => Default::default(),
            },
            WaitState::Walks => match self.walks.oldest(row) {
                Some((_, key)) => self.awaited_by(row, WaitState::Walk(key)),
                None => Default::default(),
            },
            WaitState::Walk(key) => {
                let name = format!("the collective over {}", self.loaded.set(key.0).name());
                (name, self.awaited_in_tree(row, key).into_iter().collect())
            }
            WaitState::Word(set, connection) => {
                let source = self.loaded.set(set).get(connection).source;
                (format!("a word of {connection}"), vec![source])
            }
            WaitState::MessageSpec(source) => ("a message".to_owned(), vec![source]),
            WaitState::AnyMessage => {
                let own = self.rank_map.cells_of(self.comm.rank())[row];
                let others = self.rank_map.cells().iter().copied().filter(|&cell| cell != own);
                ("a message of any cell".to_owned(), others.collect())
            }
            WaitState::Receiver(target) => ("sending a message".to_owned(), vec![target]),
            WaitState::Round(other) => ("a round of an epoch".to_owned(), vec![other]),
            WaitState::Nothing | WaitState::Switch(_) | WaitState::Ended => Default::default(),
        }
    }

    /// The neighbour in a tree for which a cell waits.
    pub(super) fn awaited_in_tree(&self, row: usize, key: TreeKey) -> Option<CellId> {
        self.trees.borrow().get(&key).and_then(|tree| tree.awaited(row))
    }

    /// The phase that a cell's exchange is in, and for whom it waits there.
    pub(super) fn awaited_in(&self, row: usize, key: ExchangeKey) -> (String, Vec<CellId>) {
        let (ExchangeKey { set, by, .. }, Ok(exchange)) = (key, self.exchange(key)) else {
            return Default::default();
        };
        let awaited = exchange.awaited(row, self.rank_map.cells_of(self.comm.rank()));
        let phase = awaited.first().map(|first| first.phase);
        let name = phase.map(|phase| match by {
            By::Phases if self.loaded.sets[set].steps.is_none() => {
                self.loaded.phase_name(set, phase)
            }
            _ => self.set_name(set, by),
        });
        let mut cells: Vec<CellId> = awaited.iter().map(|one| one.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        (name.unwrap_or_default(), cells)
    }

    /// The cells that have not read what a cell sent them.
    fn awaited_readers(&self, row: usize, key: ExchangeKey) -> (String, Vec<CellId>) {
        let (ExchangeKey { set, by, .. }, Ok(exchange)) = (key, self.exchange(key)) else {
            return Default::default();
        };
        let cells = self.rank_map.cells_of(self.comm.rank());
        let readers = exchange.readers(row, cells);
        (format!("the last exchange of {}", self.set_name(set, by)), readers)
    }

    pub(super) fn set_name(&self, set: usize, by: By) -> String {
        let name = self.loaded.set(set).name();
        match by {
            By::Phases => name.to_owned(),
            By::Messages => format!("{name} by messages"),
        }
    }
}

/// Messages between two cells that are not taken for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageClass {
    /// Of the program.
    Plain,
    /// Packets of routed rounds and of sized exchanges.
    Packet,
    /// Messages of direct rounds.
    Round,
    /// Arrays on their way up the tree of all live cells.
    Tree,
    /// Announcements and words of direct passes.
    Direct,
    /// Their receivers' replies.
    Reply,
}

impl MessageClass {
    /// All classes.
    pub(super) const ALL: [Self; 6] =
        [Self::Plain, Self::Packet, Self::Direct, Self::Reply, Self::Round, Self::Tree];

    fn number(self) -> u64 {
        match self {
            MessageClass::Plain => 0,
            MessageClass::Packet => 1,
            MessageClass::Direct => 2,
            MessageClass::Reply => 3,
            MessageClass::Round => 4,
            MessageClass::Tree => 5,
        }
    }
}

/// What the tags of a set are for.
#[derive(Clone, Copy, Debug)]
pub(super) enum TagUse {
    /// Its exchanges, in words of so many bytes.
    Exchange(By, usize),
    /// Walks over it as a tree; whether it leads from the root only.
    Tree(bool),
}

/// The number of uses.
const PURPOSES: u64 = 2 * word::SIZES + 2;

/// Runs of a communicator that have tags of their own, one after the other.
const TURNS: u64 = 4;

/// How long a run that failed waits for messages to leave.
const CLOSING: Patience = Patience {
    report_after: Duration::from_millis(200),
    time_out: Some(Duration::from_millis(200)),
};

/// How many awaited ranks an error text names at least before it stops.
const NAMED: usize = 8;
