//! A run of a world on the ranks of a communicator: what one rank does.
//!
//! Each rank executes the programs of its own cells, as coroutines of one thread that take turns.
//! A cell that waits looks, each time it has its turn, whether it can go on. When all cells of a
//! rank want to switch phases, or have ended, the rank meets the others ([`super::meet`]); what
//! comes of that all ranks know, and a run that fails there fails on all of them with an error.
//! Where one rank alone finds that it cannot go on, the others cannot know, and it ends the job.
//!
//! How a run begins and ends:
//! * All ranks compare the digests of their images.
//! * Ranks without cells then listen until the run ends.
//! * A run ends when the programs of all cells have; then, as at every switch, every piece of
//!   mail that was sent must have been received.

use std::cell::{Cell as Slot, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use conset_ir::{CellId, ConnectionId, Direction, Document, Image, Operation, PhaseId, binary};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::comm::{Comm, check_thread};
use super::error::MpiError;
use super::mail::{Address, Mail};
use super::meet::{self, Members, listen, meet};
use super::place::Placement;
use super::port::MpiPort;
use super::wires::{Tags, Wires, unsound};
use crate::cell::Cell;
use crate::error::RunError;
use crate::loaded::Loaded;
use crate::port::{By, Context};
use crate::scheduler::{Outcome, discard, run_program};
use crate::world::{RunReport, World};

type Coroutines<R> = Vec<Coroutine<(), (), Outcome<R>, DefaultStack>>;

/// What a cell waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Nothing,
    /// The end of an exchange of a set.
    Exchange(usize, By),
    /// A cell of its own rank, to read what it sent last.
    Reader,
    Word(usize, ConnectionId),
    Message(CellId),
    Switch(Context),
    Ended,
}

/// One run, as one rank has it.
pub(super) struct Rank<'w> {
    pub(super) comm: Comm,
    pub(super) loaded: &'w Loaded,
    pub(super) placement: Placement,
    pub(super) mail: Mail,
    tags: RefCell<Tags>,
    wires: RefCell<BTreeMap<(usize, bool), Rc<Wires>>>,
    /// By row of this rank's cells.
    pub(super) waits: RefCell<Vec<Waits>>,
    /// Switches made.
    pub(super) switches: Slot<u64>,
    /// By row: switches and exchanges that the cell has begun.
    steps: RefCell<Vec<u64>>,
    /// The set whose phase is active, or messages are.
    active: Slot<Option<usize>>,
    /// Raised whenever a cell goes on.
    pub(super) turns: Slot<u64>,
    pub(super) words: Slot<u64>,
    /// Why the run has ended early.
    why: RefCell<Option<RunError>>,
    /// That is so on all ranks, with the same reason.
    known_to_all: Slot<bool>,
    /// The tag of the first pair's messages, and of the first connection's elements.
    messages: u64,
    elements: u64,
}

/// Runs a program on the cells of this rank.
pub(crate) fn run<R>(
    world: &World,
    comm: &Comm,
    program: &dyn Fn(&mut Cell<'_>) -> R,
) -> Result<(Vec<R>, RunReport), RunError> {
    check_thread()?;
    let _busy = comm.occupy()?;
    if comm.size() > 1 {
        comm.abort_on_panic();
    }
    let rank = Rank::new(comm, &world.loaded)?;
    let result = rank.run(world.stack_size, program);
    if let (Err(error), false) = (&result, rank.known_to_all.get() || comm.size() == 1) {
        if let RunError::Mpi(MpiError::Missing { .. }) = error {
            comm.give_up_slowly(error);
        }
        comm.give_up(error);
    }
    result
}

/// The cells of this rank.
pub(crate) fn cells(world: &World, comm: &Comm) -> Vec<CellId> {
    let placement = Placement::new(world.image().machine(), comm.size());
    placement.of_rank(comm.rank()).to_vec()
}

impl<'w> Rank<'w> {
    fn new(comm: &Comm, loaded: &'w Loaded) -> Result<Self, MpiError> {
        let placement = Placement::new(loaded.image.machine(), comm.size());
        let own = placement.of_rank(comm.rank()).len();
        let messages = meet::TAGS;
        let most = placement.most() as u64;
        let elements = messages + most * most;
        let connections = loaded.image.sets().iter().map(|set| set.set.len() as u64);
        let bulk = elements + connections.max().unwrap_or(0);
        let limit = comm.tags() as u64;
        if bulk > limit {
            let what = "tags for cells of a rank and connections of a set";
            return Err(MpiError::Limit { what, found: bulk, limit });
        }
        Ok(Self {
            comm: comm.clone(),
            loaded,
            placement,
            mail: Mail::new(comm.clone()),
            tags: RefCell::new(Tags::new(bulk, comm.tags())),
            wires: RefCell::default(),
            waits: RefCell::new(vec![Waits::Nothing; own]),
            switches: Slot::new(0),
            steps: RefCell::new(vec![0; own]),
            active: Slot::new(None),
            turns: Slot::new(0),
            words: Slot::new(0),
            why: RefCell::default(),
            known_to_all: Slot::new(false),
            messages,
            elements,
        })
    }

    fn run<R>(
        &self,
        stack_size: usize,
        program: &dyn Fn(&mut Cell<'_>) -> R,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        self.compare_images()?;
        let cells = self.placement.of_rank(self.comm.rank());
        if cells.is_empty() {
            return self.look_on();
        }
        let mut coroutines: Coroutines<R> = Vec::with_capacity(cells.len());
        for (row, &id) in cells.iter().enumerate() {
            let stack = DefaultStack::new(stack_size).map_err(|e| RunError::Stack {
                cell: id,
                bytes: stack_size,
                message: e.to_string(),
            })?;
            let body = move |yielder: &Yielder<(), ()>, ()| {
                let mut port =
                    MpiPort { rank: self, id, row, yielder, active: 0, order: Vec::new() };
                run_program(program, &mut Cell::new(id, self.loaded, &mut port))
            };
            // SAFETY: the closure borrows `program` and `self`, which outlive this call. A
            // coroutine is never forgotten or moved out of it, and dropping one runs or unwinds
            // it to its end.
            coroutines.push(unsafe { Coroutine::with_stack_unchecked(stack, body) });
        }
        let mut results: Vec<Option<R>> = Vec::with_capacity(cells.len());
        results.resize_with(cells.len(), || None);
        if let Err(error) = self.drive(&mut coroutines, &mut results) {
            self.stop(error.clone());
            if self.known_to_all.get() || self.comm.size() == 1 {
                for coroutine in &mut coroutines {
                    while coroutine.started() && !coroutine.done() {
                        // It is told, and returns or is unwound; its outcome does not matter.
                        discard(coroutine.resume(()));
                    }
                }
            }
            return Err(error);
        }
        let results = results.into_iter().map(|r| r.expect("all programs have ended")).collect();
        let report = RunReport {
            switches: self.switches.get(),
            words: self.words.get(),
            ..RunReport::default()
        };
        Ok((results, report))
    }

    /// Lets the cells take turns until the run has ended on all ranks.
    fn drive<R>(
        &self,
        coroutines: &mut Coroutines<R>,
        results: &mut [Option<R>],
    ) -> Result<(), RunError> {
        let mut patience = self.comm.patience();
        let mut turns = self.turns.get();
        loop {
            for (row, coroutine) in coroutines.iter_mut().enumerate() {
                if coroutine.done() {
                    continue;
                }
                if let CoroutineResult::Return(outcome) = coroutine.resume(()) {
                    self.waits.borrow_mut()[row] = Waits::Ended;
                    self.went_on();
                    match outcome {
                        Outcome::Returned(result) => results[row] = Some(result),
                        Outcome::Panicked(message) => {
                            let cell = self.placement.of_rank(self.comm.rank())[row];
                            self.stop(RunError::Panic { cell, message });
                        }
                        Outcome::Aborted => {}
                    }
                }
                if let Some(error) = &*self.why.borrow() {
                    return Err(error.clone());
                }
            }
            self.mail.reap()?;
            if self.all_at_meeting() {
                if self.meet_others()? {
                    return self.close();
                }
                self.went_on();
            }
            if self.turns.get() != turns {
                turns = self.turns.get();
                patience.renew();
            } else if let Err(milliseconds) = patience.wait() {
                return Err(self.awaited(milliseconds).into());
            }
        }
    }

    /// The run has ended well: no exchange is under way.
    fn close(&self) -> Result<(), RunError> {
        for wires in self.wires.borrow().values() {
            wires.close()?;
        }
        Ok(())
    }

    /// A cell goes on.
    pub(super) fn went_on(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// A cell begins a switch or an exchange.
    pub(super) fn count_step(&self, row: usize) {
        self.steps.borrow_mut()[row] += 1;
    }

    /// Ends the run early; the first reason counts.
    pub(super) fn stop(&self, why: impl Into<RunError>) {
        self.why.borrow_mut().get_or_insert_with(|| why.into());
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.why.borrow().is_some()
    }

    /// The wires of a set; laid when they are first asked for.
    pub(super) fn wires(&self, set: usize, by: By) -> Result<Rc<Wires>, RunError> {
        let phased = by == By::Phases;
        if let Some(wires) = self.wires.borrow().get(&(set, phased)) {
            return Ok(wires.clone());
        }
        let image = &*self.loaded.image;
        let unequal = if phased { unsound(image, set) } else { None };
        if let Some((phase, connection, sent, received)) = unequal {
            let phase = self.loaded.phase_name(set, phase);
            return Err(MpiError::Unequal { phase, connection, sent, received }.into());
        }
        let ends = &self.loaded.sets[set];
        let wires = Rc::new(Wires::new(
            &self.comm,
            &self.placement,
            &mut self.tags.borrow_mut(),
            (image, set, by),
            (&|cell| ends.out.of(cell), &|cell| ends.inn.of(cell)),
        )?);
        self.wires.borrow_mut().insert((set, phased), wires.clone());
        Ok(wires)
    }

    /// Where the mail of an element goes or comes from.
    pub(super) fn element(&self, operation: &Operation, set: usize) -> Address {
        let ends = self.loaded.set(set).get(operation.connection);
        let other = match operation.direction {
            Direction::Send => ends.target,
            Direction::Receive => ends.source,
        };
        let (rank, _) = self.placement.find(other).expect("ends of connections are live");
        let tag = self.elements + u64::from(operation.connection.0);
        Address { rank, tag: tag as i32 }
    }

    /// Where a message between live cells goes or comes from.
    pub(super) fn message(&self, source: CellId, target: CellId, way: Direction) -> Address {
        let find = |cell| self.placement.find(cell).expect("the cell is live");
        let (source, target) = (find(source), find(target));
        let pair = source.1 * self.placement.most() + target.1;
        let rank = if way == Direction::Send { target.0 } else { source.0 };
        Address { rank, tag: (self.messages + pair as u64) as i32 }
    }

    /// All ranks must have the same image.
    fn compare_images(&self) -> Result<(), RunError> {
        let size = self.comm.size();
        let members = Members { heard: size, told: size, for_ever: false };
        let place = || "the comparison of images at the begin of a run".to_owned();
        let own = vec![digest(&self.loaded.image)];
        let verdict = meet(&self.comm, members, own, &place, |all| (odd_images(&all), true))?;
        let [digest, others, odd @ ..] = &verdict[..] else { return Ok(()) };
        self.known_to_all.set(true);
        let odd = odd.iter().map(|&rank| rank as usize).collect();
        Err(MpiError::OddImage { odd, digest: *digest, others: *others }.into())
    }

    /// On a rank without cells: waits until the run has ended.
    fn look_on<R>(&self) -> Result<(Vec<R>, RunReport), RunError> {
        if self.placement.active() > 0 {
            let verdict = listen(&self.comm, true, &|| "a run".to_owned())?;
            self.known_to_all.set(true);
            self.heed(&verdict)?;
        }
        Ok((Vec::new(), RunReport::default()))
    }

    /// Whether all cells of this rank have ended or want to switch.
    fn all_at_meeting(&self) -> bool {
        self.waits.borrow().iter().all(|w| matches!(w, Waits::Switch(_) | Waits::Ended))
    }

    /// Meets the other ranks, with the wishes of this one's cells; whether the run has ended.
    fn meet_others(&self) -> Result<bool, RunError> {
        let wishes = self.wishes();
        let all_ended = wishes.iter().all(|wish| wish.to.is_none());
        let (sent, received) = self.mail.counts();
        let mut words = vec![sent, received];
        words.extend(wishes.iter().flat_map(|wish| wish.words()));
        let members = Members {
            heard: self.placement.active(),
            told: self.comm.size(),
            // Others may rightly take long until they have ended.
            for_ever: all_ended,
        };
        let place = || match wishes[0].to {
            Some(context) => format!("the switch to {}", self.context(context)),
            None => "the end of a run".to_owned(),
        };
        let judge = |all: Vec<Vec<u64>>| {
            let verdict = judge(&all);
            let is_last = verdict[0] != GO_ON;
            (verdict, is_last)
        };
        let verdict = meet(&self.comm, members, words, &place, judge)?;
        let ended = verdict[0] == END;
        self.known_to_all.set(verdict[0] != GO_ON);
        self.heed(&verdict)?;
        if let Some(context) = wishes[0].to {
            self.active.set(match context {
                Context::Messages => None,
                Context::Phase(set, _) => Some(set),
            });
            self.switches.set(self.switches.get() + 1);
        }
        Ok(ended)
    }

    /// What the cells of this rank want: one cell's wish, and the first that differs from it.
    fn wishes(&self) -> Vec<Wish> {
        let waits = self.waits.borrow();
        let cells = self.placement.of_rank(self.comm.rank());
        let steps = self.steps.borrow();
        let mut wishes = cells.iter().zip(&*waits).zip(&*steps).map(|((&cell, waits), &steps)| {
            let to = match waits {
                Waits::Switch(context) => Some(*context),
                _ => None,
            };
            Wish { cell, steps, to }
        });
        let first = wishes.next().expect("the rank has cells");
        let other = wishes.find(|wish| !wish.fits(&first));
        std::iter::once(first).chain(other).collect()
    }

    /// Turns a judgement into an error if it is one.
    fn heed(&self, verdict: &[u64]) -> Result<(), RunError> {
        match verdict {
            [DIFFER, wishes @ ..] => {
                let wishes: Vec<Wish> = wishes.chunks_exact(WISH).map(Wish::read).collect();
                Err(self.difference(&wishes[0], &wishes[1]))
            }
            [LEFT, sent, received] => Err(self.left_over(*sent, *received)?),
            _ => Ok(()),
        }
    }

    fn difference(&self, one: &Wish, two: &Wish) -> RunError {
        let name = |wish: &Wish| wish.to.map(|context| self.context(context));
        match (name(one), name(two)) {
            (Some(phase), Some(other)) if phase != other => {
                RunError::Disagree { first: one.cell, phase, second: two.cell, other }
            }
            (None, Some(phase)) => RunError::Ended { ended: one.cell, waiting: two.cell, phase },
            (Some(phase), None) => RunError::Ended { ended: two.cell, waiting: one.cell, phase },
            (place, _) => RunError::Mpi(MpiError::Steps {
                cells: [one.cell, two.cell],
                steps: [one.steps, two.steps],
                place: place.map_or("its end".to_owned(), |phase| format!("switching to {phase}")),
            }),
        }
    }

    /// Mail was sent that nobody received. Takes it away, so that the next run does not find it,
    /// and says what it was.
    fn left_over(&self, sent: u64, received: u64) -> Result<RunError, MpiError> {
        let addresses = self.addresses_in();
        let (mut count, mut first) = (0, vec![u64::MAX; 4]);
        let mut patience = self.comm.patience();
        let active = self.placement.active();
        let members = Members { heard: active, told: active, for_ever: false };
        loop {
            for (left, from) in &addresses {
                let (mut pieces, mut words) = (0, 0);
                while let Some(length) = self.mail.look(*from)? {
                    let mut letter = self.mail.take(*from, length)?;
                    while letter.open()?.is_none() {}
                    (pieces, words) = (pieces + 1, words + length as u64);
                }
                count += pieces;
                if pieces > 0 {
                    first = first.min([&left.words()[..], &[words]].concat());
                }
            }
            let own = [&[count][..], &first].concat();
            let place = || "the search for what was not received".to_owned();
            let judge = |all: Vec<Vec<u64>>| {
                let total: u64 = all.iter().map(|words| words[0]).sum();
                let first = all.iter().map(|words| words[1..].to_vec()).min();
                let found = total == sent - received;
                (first.filter(|_| found).unwrap_or_default(), false)
            };
            let verdict = meet(&self.comm, members, own, &place, judge)?;
            if let [kind, one, two, words] = verdict[..] {
                return Ok(self.unreceived(&Left::read([kind, one, two]), words));
            }
            // It is still on its way.
            if patience.wait().is_err() {
                return Ok(MpiError::LeftOver { sent, received }.into());
            }
        }
    }

    fn unreceived(&self, left: &Left, words: u64) -> RunError {
        match *left {
            Left::Words(set, connection) => {
                let set = self.loaded.set(set);
                let (cell, set) = (set.get(connection).target, set.name().to_owned());
                RunError::Unreceived { cell, set, connection, words }
            }
            Left::Message { target: cell, source: from } => {
                RunError::UnreceivedMessage { cell, from, words: words as usize }
            }
        }
    }

    /// Where mail for this rank's cells may come from, of the active phase or of messages.
    fn addresses_in(&self) -> Vec<(Left, Address)> {
        let mut addresses = Vec::new();
        for &target in self.placement.of_rank(self.comm.rank()) {
            let Some(set) = self.active.get() else {
                for &source in self.placement.cells() {
                    let from = self.message(source, target, Direction::Receive);
                    addresses.push((Left::Message { target, source }, from));
                }
                continue;
            };
            for &connection in self.loaded.sets[set].inn.of(target) {
                let source = self.loaded.set(set).get(connection).source;
                let (rank, _) = self.placement.find(source).expect("ends of connections are live");
                let tag = (self.elements + u64::from(connection.0)) as i32;
                addresses.push((Left::Words(set, connection), Address { rank, tag }));
            }
        }
        addresses
    }

    fn context(&self, context: Context) -> String {
        match context {
            Context::Messages => "messages".to_owned(),
            Context::Phase(set, phase) => self.loaded.phase_name(set, phase),
        }
    }

    /// For whom the first cell waits that waits for another rank.
    fn awaited(&self, milliseconds: u64) -> MpiError {
        let rank = self.comm.rank();
        let cells = self.placement.of_rank(rank);
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
            let ranks = others.iter().filter_map(|&cell| self.placement.find(cell));
            found.extend(ranks.map(|(rank, _)| rank));
            if found.len() >= NAMED {
                break;
            }
        }
        found.sort_unstable();
        found.dedup();
        MpiError::Missing { rank, milliseconds, place, awaited: found }
    }

    fn awaited_by(&self, row: usize, waits: Waits) -> (String, Vec<CellId>) {
        match waits {
            Waits::Exchange(set, by) => {
                let Ok(wires) = self.wires(set, by) else { return Default::default() };
                let awaited = wires.awaited(row, self.placement.of_rank(self.comm.rank()));
                let phase = awaited.first().map(|first| first.phase);
                let name = phase.map(|phase| match by {
                    By::Phases => self.loaded.phase_name(set, phase),
                    By::Messages => format!("{} by messages", self.loaded.set(set).name()),
                });
                let mut cells: Vec<CellId> = awaited.iter().map(|one| one.cell).collect();
                cells.sort_unstable();
                cells.dedup();
                (name.unwrap_or_default(), cells)
            }
            Waits::Word(set, connection) => {
                let source = self.loaded.set(set).get(connection).source;
                (format!("a word of {connection}"), vec![source])
            }
            Waits::Message(source) => ("a message".to_owned(), vec![source]),
            Waits::Nothing | Waits::Reader | Waits::Switch(_) | Waits::Ended => Default::default(),
        }
    }
}

/// How many awaited ranks an error text names at least before it stops.
const NAMED: usize = 8;

/// Mail that was not received.
enum Left {
    /// Words of a set's connection.
    Words(usize, ConnectionId),
    Message {
        target: CellId,
        source: CellId,
    },
}

impl Left {
    fn words(&self) -> [u64; 3] {
        match *self {
            Left::Words(set, connection) => [0, set as u64, u64::from(connection.0)],
            Left::Message { target, source } => [1, u64::from(target.0), u64::from(source.0)],
        }
    }

    fn read([kind, one, two]: [u64; 3]) -> Self {
        match kind {
            0 => Left::Words(one as usize, ConnectionId(two as u32)),
            _ => Left::Message { target: CellId(one as u32), source: CellId(two as u32) },
        }
    }
}

/// What a cell wants at a meeting: to switch, or to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    cell: CellId,
    /// Switches and exchanges that it has begun.
    steps: u64,
    to: Option<Context>,
}

/// Words of a wish.
const WISH: usize = 5;

// Judgements.
const GO_ON: u64 = 0;
const END: u64 = 1;
const DIFFER: u64 = 2;
const LEFT: u64 = 3;

impl Wish {
    /// Whether both can be granted.
    fn fits(&self, other: &Self) -> bool {
        (self.to, self.steps) == (other.to, other.steps)
    }

    fn words(&self) -> [u64; WISH] {
        let (kind, set, phase) = match self.to {
            None => (0, 0, 0),
            Some(Context::Phase(set, phase)) => (1, set as u64, u64::from(phase.0)),
            Some(Context::Messages) => (2, 0, 0),
        };
        [u64::from(self.cell.0), self.steps, kind, set, phase]
    }

    fn read(words: &[u64]) -> Self {
        let to = match words[2] {
            0 => None,
            2 => Some(Context::Messages),
            _ => Some(Context::Phase(words[3] as usize, PhaseId(words[4] as u32))),
        };
        Self { cell: CellId(words[0] as u32), steps: words[1], to }
    }
}

/// What rank 0 makes of the counts and wishes of all ranks.
fn judge(all: &[Vec<u64>]) -> Vec<u64> {
    let wishes: Vec<Wish> =
        all.iter().flat_map(|words| words[2..].chunks_exact(WISH)).map(Wish::read).collect();
    let first = wishes[0];
    if let Some(other) = wishes.iter().find(|wish| !wish.fits(&first)) {
        return [&[DIFFER][..], &first.words(), &other.words()].concat();
    }
    let sum = |at: usize| all.iter().map(|words| words[at]).sum::<u64>();
    let (sent, received) = (sum(0), sum(1));
    if sent != received {
        return vec![LEFT, sent, received];
    }
    vec![if first.to.is_none() { END } else { GO_ON }]
}

/// Nothing if all digests are the same; else that of the odd ranks, that of the others, and the
/// odd ranks.
fn odd_images(all: &[Vec<u64>]) -> Vec<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for words in all {
        *counts.entry(words[0]).or_default() += 1;
    }
    // Where as many ranks have another digest, rank 0 and those like it, or the first, are right.
    let most = counts.values().copied().max().unwrap_or(0);
    let right = all.iter().map(|words| words[0]).find(|digest| counts[digest] == most);
    let Some(right) = right else { return Vec::new() };
    let odd = all.iter().enumerate().filter(|(_, words)| words[0] != right);
    let odd: Vec<u64> = odd.map(|(rank, _)| rank as u64).collect();
    match odd.first() {
        None => Vec::new(),
        Some(&first) => [&[all[first as usize][0], right][..], &odd].concat(),
    }
}

/// A digest of an image's file: FNV-1a, 64 bits.
fn digest(image: &Image) -> u64 {
    let bytes = binary::write(&Document::Image(image.clone()));
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, &byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
