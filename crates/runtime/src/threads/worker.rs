//! A worker: a thread, its cells as coroutines, and what it does when all of them wait.
//!
//! Cells are resumed one after the other, round and round, where what they wait for is there.
//! If none can go on the worker spins for a moment, as the others are probably about to publish
//! something, and then rests: it looks now and then and leaves the core to others meanwhile. A
//! cell that *asks* whether something is there is resumed in each turn, after the others, and told
//! how it stands; a worker that has such a cell does not rest, but leaves the core to others too.

use std::cell::Cell as Value;

use conset_ir::{CellId, ConnectionId};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::board::{Board, Failure};
use super::port::ThreadPort;
use super::watch::Vigil;
use crate::call::Call;
use crate::cell::Cell;
use crate::error::RunError;
use crate::scheduler::{Outcome, discard, run_program};
use crate::stack::{AlternateStack, CellStack, Stacks};
use crate::sync::{Counter, Look, WINDOW, never_reaches};

/// Looks at the waiting cells before a worker rests. A look takes some nanoseconds for each cell;
/// spinning for much longer takes the core from whoever is waited for where there are more
/// threads than cores.
const SPINS: u32 = 200;

/// Go on, or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Aborted,
}

/// What a cell waits for: a counter, and who is to raise it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited<'b> {
    pub(crate) counter: &'b Counter,
    pub(crate) value: u64,
    pub(crate) why: Why,
    /// It does not wait: it is resumed when the other cells of its worker have had their turn.
    pub(crate) asks: bool,
}

/// Why a cell waits; sets by their rows in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// All cells are to arrive at a step.
    Arrival(u64),
    /// The source of a connection is to publish its words.
    Rows(usize, ConnectionId),
    /// The target of a connection is to have read them.
    Readers(usize, ConnectionId),
    /// A word is to be sent.
    Word(usize, ConnectionId),
    /// A connection is to be received that is ordered before the one to be sent.
    Order(usize, ConnectionId, ConnectionId),
    /// A message of a cell is to come.
    Message(CellId),
}

/// How a cell waits: until what it waits for is there, or the run has ended for it.
pub(crate) trait Suspend<'b> {
    /// Waits. `Aborted` only when no cell reads another's memory any more.
    fn suspend(&self, awaited: Awaited<'b>) -> Answer;
}

impl<'b> Suspend<'b> for Yielder<Answer, Awaited<'b>> {
    fn suspend(&self, awaited: Awaited<'b>) -> Answer {
        Yielder::suspend(self, awaited)
    }
}

/// What the cells of a worker do at a step.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) step: Value<u64>,
    pub(crate) what: Value<u32>,
    pub(crate) call: Value<Call>,
    by: Value<u32>,
    count: Value<usize>,
}

impl Said {
    pub(crate) fn begin(&self, step: u64, what: u32, call: Call, by: CellId) {
        self.step.set(step);
        self.what.set(what);
        self.call.set(call);
        self.by.set(by.0);
        self.count.set(0);
    }

    /// One more cell is there; how many are.
    pub(crate) fn count(&self) -> usize {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }
}

/// What a worker's cells share, on their own thread.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) cells: usize,
    first: CellId,
    said: Vec<Said>,
    /// The last step of each cell, and what it was.
    steps: Vec<Value<(u64, u32)>>,
    words: Value<u64>,
    switches: Value<u64>,
    /// For each cell of the machine its place among the worker's.
    places: Vec<u32>,
}

impl Worker {
    pub(super) fn new(number: usize, cells: &[CellId]) -> Self {
        let first = cells.first().copied().unwrap_or(CellId(0));
        let last = cells.last().map_or(0, |last| last.index() + 1);
        let mut places = vec![0; last - first.index().min(last)];
        for (place, cell) in cells.iter().enumerate() {
            places[cell.index() - first.index()] = place as u32;
        }
        Self {
            number,
            cells: cells.len(),
            first,
            said: (0..WINDOW).map(|_| Said::default()).collect(),
            steps: vec![Value::new((0, 0)); cells.len()],
            words: Value::new(0),
            switches: Value::new(0),
            places,
        }
    }

    pub(crate) fn said(&self, step: u64) -> &Said {
        &self.said[(step % WINDOW) as usize]
    }

    /// A cell is at a step.
    pub(crate) fn note(&self, cell: CellId, step: u64, what: u32) {
        let place = self.places[cell.index() - self.first.index()];
        self.steps[place as usize].set((step, what));
    }

    /// Words were received.
    pub(crate) fn moved(&self, words: usize) {
        self.words.set(self.words.get() + words as u64);
    }

    /// A cell has switched.
    pub(crate) fn switched(&self, cell: CellId) {
        if cell == self.first {
            self.switches.set(self.switches.get() + 1);
        }
    }
}

/// Where a cell was when the run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) cell: CellId,
    pub(crate) at: At,
    /// Its last step, and what it was.
    pub(crate) step: (u64, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Waiting(Why),
    /// In its own code, or not begun.
    Running,
    Ended,
}

/// What was done at a step, and by the first cell of a worker that did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) step: u64,
    pub(crate) what: u32,
    pub(crate) call: Call,
    pub(crate) cell: CellId,
}

/// What a worker leaves.
pub(crate) struct Left<R> {
    pub(crate) results: Vec<Option<R>>,
    pub(crate) places: Vec<Place>,
    /// Of the last steps.
    pub(crate) said: Vec<Done>,
    pub(crate) words: u64,
    pub(crate) switches: u64,
}

type Coroutines<'b, R> = Coroutine<Answer, Awaited<'b>, Outcome<R>, CellStack>;

/// A cell on its worker.
struct Seat<'b, R> {
    cell: CellId,
    coroutine: Coroutines<'b, R>,
    waits: Option<Awaited<'b>>,
    result: Option<R>,
    ended: bool,
}

impl<R> Seat<'_, R> {
    #[inline]
    fn can_go_on(&self) -> bool {
        !self.ended && self.waits.is_none_or(|a| a.counter.has_reached(a.value))
    }

    fn asks(&self) -> bool {
        !self.ended && self.waits.is_some_and(|awaited| awaited.asks)
    }

    /// Whether it asks for words of a cell that has ended without.
    fn asks_in_vain(&self, board: &Board<'_>) -> bool {
        let Some(Awaited { counter, value, why: Why::Rows(set, connection), .. }) = self.waits
        else {
            return false;
        };
        let source = board.loaded.set(set).get(connection).source;
        self.asks() && never_reaches(counter, value, &board.ended[source.index()])
    }
}

/// Makes the coroutine of each cell; of fewer where there is no memory for more.
fn seat<'b, R>(
    board: &'b Board<'b>,
    worker: &'b Worker,
    cells: &[CellId],
    stack_size: usize,
    program: &'b (dyn Fn(&mut Cell<'_>) -> R + Sync),
) -> Vec<Seat<'b, R>> {
    let mut seats = Vec::with_capacity(cells.len());
    let stacks = match Stacks::reserve(cells, board.published.len(), stack_size) {
        Ok(stacks) => stacks,
        Err(error) => {
            board.fail(cells.first().copied().unwrap_or_default(), Failure::Known(error));
            return seats;
        }
    };
    for (row, &cell) in cells.iter().enumerate() {
        let (stack, bounds) = match stacks.get(cell, row) {
            Ok(stack) => stack,
            Err(error) => {
                board.fail(cell, Failure::Known(error));
                break;
            }
        };
        let body = move |yielder: &Yielder<Answer, Awaited<'b>>, _: Answer| {
            let mut port = ThreadPort::new(cell, board, worker, yielder);
            run_program(program, &mut Cell::new((cell, bounds), board.loaded, &mut port))
        };
        // SAFETY: what the closure borrows lives for 'b, which the seat with the coroutine does
        // not outlive. The coroutine stays on this thread: `run_worker` neither forgets it nor
        // hands it on, and when it is dropped it has ended or was not begun.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, body) };
        seats.push(Seat { cell, coroutine, waits: None, result: None, ended: false });
    }
    seats
}

/// Ends the process if it is dropped: a worker that panics has a bug, and would leave cells that
/// others still read from, and workers that wait for it for ever.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Runs the program on some cells, on the calling thread, until all have ended or the run has.
pub(crate) fn run_worker<R>(
    board: &Board<'_>,
    number: usize,
    cells: &[CellId],
    stack_size: usize,
    program: &(dyn Fn(&mut Cell<'_>) -> R + Sync),
) -> Left<R> {
    // Unwinding from here to the acknowledgement would drop cells whose memory others read.
    let guard = AbortOnUnwind;
    let _alternate = AlternateStack::install();
    let worker = Worker::new(number, cells);
    let mut seats = seat(board, &worker, cells, stack_size, program);
    let all_ended = turn(board, number, &mut seats);
    board.activity[number].0.end();
    if all_ended {
        board.idle.retire(number);
    }
    board.ending.acknowledge();
    std::mem::forget(guard);
    let places = seats.iter().map(|seat| place_of(seat, &worker)).collect();
    if !all_ended {
        end(board, &mut seats);
    }
    Left {
        results: seats.into_iter().map(|seat| seat.result).collect(),
        places,
        said: worker
            .said
            .iter()
            .map(|said| Done {
                step: said.step.get(),
                what: said.what.get(),
                call: said.call.get(),
                cell: CellId(said.by.get()),
            })
            .collect(),
        words: worker.words.get(),
        switches: worker.switches.get(),
    }
}

fn place_of<R>(seat: &Seat<'_, R>, worker: &Worker) -> Place {
    let at = match seat.waits {
        _ if seat.ended => At::Ended,
        Some(awaited) => At::Waiting(awaited.why),
        None => At::Running,
    };
    let place = worker.places[seat.cell.index() - worker.first.index()];
    Place { cell: seat.cell, at, step: worker.steps[place as usize].get() }
}

/// Resumes cells until all have ended (`true`) or the run has.
fn turn<R>(board: &Board<'_>, number: usize, seats: &mut [Seat<'_, R>]) -> bool {
    let mut left = seats.len();
    let mut fruitless = 0;
    let mut vigil = Vigil::new(board);
    while !board.ending.has_begun() {
        if left == 0 {
            return true;
        }
        let (mut resumed, mut asked) = (false, false);
        let activity = &board.activity[number].0;
        for seat in seats.iter_mut() {
            if seat.can_go_on() {
                resumed = true;
                activity.call();
            } else if seat.asks() {
                asked = true;
                activity.test();
            } else {
                continue;
            }
            activity.enter(seat.cell);
            resume(board, seat);
            activity.leave();
            left -= usize::from(seat.ended);
        }
        if resumed {
            fruitless = 0;
            vigil.stop();
            continue;
        }
        fruitless += 1;
        if fruitless < SPINS {
            std::hint::spin_loop();
        } else if asked {
            std::thread::yield_now();
            if vigil.is_over(board) || seats.iter().any(|seat| seat.asks_in_vain(board)) {
                board.fail(first_of(seats), Failure::Stuck);
            }
        } else {
            rest(board, number, seats);
            fruitless = 0;
        }
    }
    false
}

fn first_of<R>(seats: &[Seat<'_, R>]) -> CellId {
    seats.first().map_or(CellId(0), |seat| seat.cell)
}

/// Waits until a cell can go on or the run has ended; finds out if none ever can.
fn rest<R>(board: &Board<'_>, number: usize, seats: &[Seat<'_, R>]) {
    board.idle.rest();
    while !board.ending.has_begun() {
        board.activity[number].0.rest();
        match board.idle.look(number, || seats.iter().any(Seat::can_go_on)) {
            Look::GoOn => break,
            Look::Wait => std::thread::yield_now(),
            Look::Stuck => {
                board.fail(first_of(seats), Failure::Stuck);
            }
        }
    }
    board.activity[number].0.leave();
    board.idle.rise();
}

/// Resumes a cell until it waits or ends.
fn resume<R>(board: &Board<'_>, seat: &mut Seat<'_, R>) {
    match seat.coroutine.resume(Answer::Done) {
        CoroutineResult::Yield(awaited) => seat.waits = Some(awaited),
        CoroutineResult::Return(outcome) => {
            seat.ended = true;
            board.ended[seat.cell.index()].publish(1);
            match outcome {
                Outcome::Returned(result) => seat.result = Some(result),
                Outcome::Panicked(message) => {
                    let error = RunError::Panic { cell: seat.cell, message };
                    board.fail(seat.cell, Failure::Known(error));
                }
                // The run has ended already.
                Outcome::Aborted => {}
            }
        }
    }
}

/// Ends the worker's cells, once no cell anywhere reads another's memory.
fn end<R>(board: &Board<'_>, seats: &mut [Seat<'_, R>]) {
    while !board.ending.is_acknowledged() {
        std::thread::yield_now();
    }
    for seat in seats {
        if seat.coroutine.started() && !seat.coroutine.done() {
            // It is told, and returns or is unwound; its outcome does not matter.
            discard(seat.coroutine.resume(Answer::Aborted));
        }
    }
}
