//! A worker: a thread, its cells as coroutines, and its behaviour when all of them wait.
//!
//! The worker resumes cells round robin, those that can continue. If none can, it spins for a
//! moment, because other cells will probably publish something soon, and then rests: it checks now
//! and then and yields the core in between. A cell that *polls* is resumed in each round, after the
//! others; a worker with such a cell does not rest, but yields the core, too.

use std::cell::Cell as Value;
use std::time::{Duration, Instant};

use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use conset_ir::{CellId, ConnectionId};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::port::ThreadPort;
use super::shared_state::{RunFailure, SharedState};
use super::watchdog::Watchdog;
use crate::call::Call;
use crate::cell::Cell;
use crate::error::RunError;
use crate::executor::{CellCoroutine, Program, ProgramOutcome, Resume, run_program};
use crate::stack::{AlternateStack, Stacks};
use crate::sync::{Counter, IdleState, WINDOW, never_reaches};

/// Looks at the waiting cells before a worker rests. A look takes some nanoseconds for each cell;
/// spinning for much longer takes the core from the awaited thread if there are more
/// threads than cores.
const SPINS: u32 = 200;

/// What a cell waits for: a counter, and the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitCondition<'b> {
    pub(crate) counter: &'b Counter,
    pub(crate) value: u64,
    pub(crate) reason: WaitReason,
    /// It does not wait: it is resumed when the other cells of its worker have had their turn.
    pub(crate) asks: bool,
}

/// Why a cell waits; sets by their rows in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
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
    /// A message of any cell is to come.
    AnyMessage,
    /// A cell is to receive what this one sends it.
    Receiver(CellId),
}

/// How a cell waits: until what it waits for is there, or the run has ended for it.
pub(crate) trait Suspend<'b> {
    /// Waits. `Aborted` only when no cell reads another's memory any more.
    fn suspend(&self, condition: WaitCondition<'b>) -> Resume;
}

/// A suspended cell.
#[derive(Clone, Copy)]
struct Suspended<'b> {
    condition: WaitCondition<'b>,
    /// An address in the last frame of its stack.
    frame: usize,
}

impl<'b> Suspend<'b> for Yielder<Resume, Suspended<'b>> {
    fn suspend(&self, condition: WaitCondition<'b>) -> Resume {
        let frame = 0u8;
        Yielder::suspend(self, Suspended { condition, frame: (&raw const frame).addr() })
    }
}

/// From so many cells on, their stacks do not stay in the caches of a core between two turns.
const MANY: usize = 256;
/// How many cells ahead stacks are fetched, and how many bytes beyond and before their last frame.
const AHEAD: usize = 2;
const FETCHED: [usize; 2] = [256, 1536];

/// Starts to load the end of a stack into the cache. With thousands of cells a turn of a cell takes
/// longer for that than for what it does.
#[inline]
fn fetch_stack(frame: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for address in (frame - FETCHED[0]..frame + FETCHED[1]).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which accesses no memory as far as the program can tell, and may have any
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = frame;
}

/// What the cells of a worker do at a step.
#[derive(Debug, Default)]
pub(crate) struct StepRecord {
    pub(crate) step: Value<u64>,
    pub(crate) what: Value<u32>,
    pub(crate) call: Value<Call>,
    /// Of the call.
    pub(crate) mark: Value<u64>,
    by: Value<u32>,
    count: Value<usize>,
}

impl StepRecord {
    pub(crate) fn start(&self, step: u64, what: u32, call: Call, by: CellId) {
        self.step.set(step);
        self.what.set(what);
        self.call.set(call);
        self.mark.set(call.mark());
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
    record: Vec<StepRecord>,
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
            places[cell.index() - first.index()] = to_u32(place);
        }
        Self {
            number,
            cells: cells.len(),
            first,
            record: (0..WINDOW).map(|_| StepRecord::default()).collect(),
            steps: vec![Value::new((0, 0)); cells.len()],
            words: Value::new(0),
            switches: Value::new(0),
            places,
        }
    }

    pub(crate) fn record(&self, step: u64) -> &StepRecord {
        &self.record[to_usize(step % WINDOW)]
    }

    /// A cell is at a step.
    pub(crate) fn note(&self, cell: CellId, step: u64, what: u32) {
        let place = self.places[cell.index() - self.first.index()];
        self.steps[index(place)].set((step, what));
    }

    /// Words were received.
    pub(crate) fn moved(&self, words: usize) {
        self.words.set(self.words.get() + to_u64(words));
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
pub(crate) struct CellStatus {
    pub(crate) cell: CellId,
    pub(crate) at: CellActivity,
    /// Its last step, and what it was.
    pub(crate) step: (u64, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellActivity {
    Waiting(WaitReason),
    /// In its own code, or not started.
    Running,
    Ended,
}

/// What was done at a step, and by the first cell of a worker that did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepEntry {
    pub(crate) step: u64,
    pub(crate) what: u32,
    pub(crate) call: Call,
    pub(crate) cell: CellId,
}

/// What a worker leaves.
pub(crate) struct WorkerResult {
    pub(crate) places: Vec<CellStatus>,
    /// Of the last steps.
    pub(crate) record: Vec<StepEntry>,
    pub(crate) words: u64,
    pub(crate) switches: u64,
}

/// A cell on its worker.
struct CellTask<'b> {
    cell: CellId,
    coroutine: CellCoroutine<Resume, Suspended<'b>>,
    waits: Option<WaitCondition<'b>>,
    /// Of its stack, if it is suspended; else 0.
    frame: usize,
    ended: bool,
}

impl CellTask<'_> {
    #[inline]
    fn can_go_on(&self) -> bool {
        !self.ended && self.waits.is_none_or(|a| a.counter.has_reached(a.value))
    }

    fn asks(&self) -> bool {
        !self.ended && self.waits.is_some_and(|condition| condition.asks)
    }

    /// Whether it asks for words of a cell that has ended without.
    fn asks_without_hope(&self, state: &SharedState<'_>) -> bool {
        let Some(WaitCondition {
            counter, value, reason: WaitReason::Rows(set, connection), ..
        }) = self.waits
        else {
            return false;
        };
        let source = state.loaded.set(set).get(connection).source;
        self.asks() && never_reaches(counter, value, &state.ended[source.index()])
    }
}

/// Makes the coroutine of each cell; of fewer where there is no memory for more.
fn spawn_cells<'b>(
    state: &'b SharedState<'b>,
    worker: &'b Worker,
    cells: &[CellId],
    stack_size: usize,
    program: &'b Program<'b>,
) -> Vec<CellTask<'b>> {
    let mut tasks = Vec::with_capacity(cells.len());
    let stacks = match Stacks::reserve(cells, state.published.len(), stack_size) {
        Ok(stacks) => stacks,
        Err(error) => {
            state.fail(cells.first().copied().unwrap_or_default(), RunFailure::Known(error));
            return tasks;
        }
    };
    for (row, &cell) in cells.iter().enumerate() {
        let (stack, bounds) = match stacks.get(cell, row) {
            Ok(stack) => stack,
            Err(error) => {
                state.fail(cell, RunFailure::Known(error));
                break;
            }
        };
        let body = move |yielder: &Yielder<Resume, Suspended<'b>>, _: Resume| {
            let mut port = ThreadPort::new(cell, state, worker, yielder);
            run_program(program, &mut Cell::new((cell, bounds), state.loaded, &mut port))
        };
        // SAFETY: what the closure borrows lives for 'b, which the task with the coroutine does
        // not outlive. The coroutine stays on this thread: `run_worker` neither forgets it nor
        // hands it on, and when it is dropped it has ended or was not started.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, body) };
        tasks.push(CellTask { cell, coroutine, waits: None, frame: 0, ended: false });
    }
    tasks
}

/// Ends the process if it is dropped: a worker that panics has a bug, and would leave cells that
/// others still read from, and workers that wait for it forever.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Runs the program on some cells, on the calling thread, until all have ended or the run has.
pub(crate) fn run_worker(
    state: &SharedState<'_>,
    number: usize,
    cells: &[CellId],
    stack_size: usize,
    program: &Program<'_>,
) -> WorkerResult {
    // Unwinding from here to the acknowledgement would drop cells whose memory others read.
    let guard = AbortOnUnwind;
    let _alternate = AlternateStack::install();
    let worker = Worker::new(number, cells);
    let mut tasks = spawn_cells(state, &worker, cells, stack_size, program);
    let all_ended = turn(state, &worker, &mut tasks);
    state.activity[number].0.end();
    if all_ended {
        state.idle.retire(number);
    }
    state.shutdown.acknowledge();
    std::mem::forget(guard);
    let places = tasks.iter().map(|task| place_of(task, &worker)).collect();
    if !all_ended {
        end(state, &mut tasks);
    }
    WorkerResult {
        places,
        record: worker
            .record
            .iter()
            .map(|record| StepEntry {
                step: record.step.get(),
                what: record.what.get(),
                call: record.call.get(),
                cell: CellId(record.by.get()),
            })
            .collect(),
        words: worker.words.get(),
        switches: worker.switches.get(),
    }
}

fn place_of(task: &CellTask<'_>, worker: &Worker) -> CellStatus {
    let at = match task.waits {
        _ if task.ended => CellActivity::Ended,
        Some(condition) => CellActivity::Waiting(condition.reason),
        None => CellActivity::Running,
    };
    let place = worker.places[task.cell.index() - worker.first.index()];
    CellStatus { cell: task.cell, at, step: worker.steps[index(place)].get() }
}

/// Resumes cells until all have ended (`true`) or the run has.
fn turn(state: &SharedState<'_>, worker: &Worker, tasks: &mut [CellTask<'_>]) -> bool {
    let number = worker.number;
    let mut left = tasks.len();
    let mut fruitless = 0;
    let mut watchdog = Watchdog::new(state);
    while !state.shutdown.has_started() {
        if left == 0 {
            return true;
        }
        let (mut resumed, mut asked) = (false, false);
        let activity = &state.activity[number].0;
        for row in 0..tasks.len() {
            if let Some(next) = tasks.get(row + AHEAD).filter(|next| next.can_go_on())
                && tasks.len() > MANY
                && next.frame > 0
            {
                fetch_stack(next.frame);
            }
            let task = &mut tasks[row];
            if task.can_go_on() {
                resumed = true;
                activity.call();
            } else if task.asks() {
                asked = true;
                activity.test();
            } else {
                continue;
            }
            activity.enter(task.cell);
            resume(state, task);
            activity.leave();
            left -= usize::from(task.ended);
        }
        if resumed {
            fruitless = 0;
            watchdog.stop();
            continue;
        }
        fruitless += 1;
        if fruitless < SPINS {
            std::hint::spin_loop();
        } else if asked {
            std::thread::yield_now();
            let quiet = watchdog.quiet(state);
            let too_long = state.patience.time_out.is_some_and(|time_out| quiet >= time_out);
            if too_long || tasks.iter().any(|task| task.asks_without_hope(state)) {
                state.fail(first_of(tasks), RunFailure::Deadlock);
            } else {
                report(state, worker, tasks, quiet);
            }
        } else {
            rest(state, worker, tasks);
            fruitless = 0;
        }
    }
    false
}

fn first_of(tasks: &[CellTask<'_>]) -> CellId {
    tasks.first().map_or(CellId(0), |task| task.cell)
}

/// Waits until a cell can go on or the run has ended; finds out if none ever can.
fn rest(state: &SharedState<'_>, worker: &Worker, tasks: &[CellTask<'_>]) {
    /// Looks at the waiting cells between two at the clock.
    const CLOCK: u32 = 256;
    let (number, mut looks, mut since) = (worker.number, 0u32, None);
    state.idle.rest();
    while !state.shutdown.has_started() {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(CLOCK) {
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            report(state, worker, tasks, waited);
        }
        state.activity[number].0.rest();
        match state.idle.look(number, || tasks.iter().any(CellTask::can_go_on)) {
            IdleState::Runnable => break,
            IdleState::Waiting => std::thread::yield_now(),
            IdleState::Deadlock => {
                state.fail(first_of(tasks), RunFailure::Deadlock);
            }
        }
    }
    state.activity[number].0.leave();
    state.idle.rise();
}

/// Reports that no cell of a worker has been able to go on for so long, if it is time for that.
fn report(state: &SharedState<'_>, worker: &Worker, tasks: &[CellTask<'_>], waited: Duration) {
    if waited < state.patience.report_after {
        return;
    }
    if let Some(task) = tasks.iter().find(|task| !task.ended && task.waits.is_some()) {
        state.reports.report(state, &place_of(task, worker), waited);
    }
}

/// Resumes a cell until it waits or ends.
fn resume(state: &SharedState<'_>, task: &mut CellTask<'_>) {
    match task.coroutine.resume(Resume::Continue) {
        CoroutineResult::Yield(Suspended { condition, frame }) => {
            (task.waits, task.frame) = (Some(condition), frame);
        }
        CoroutineResult::Return(outcome) => {
            task.ended = true;
            state.ended[task.cell.index()].publish(1);
            match outcome {
                // If it was aborted, the run has ended already.
                ProgramOutcome::Returned | ProgramOutcome::Aborted => {}
                ProgramOutcome::Panicked(message) => {
                    let error = RunError::Panic { cell: task.cell, message };
                    state.fail(task.cell, RunFailure::Known(error));
                }
            }
        }
    }
}

/// Ends the worker's cells, once no cell anywhere reads another's memory.
fn end(state: &SharedState<'_>, tasks: &mut [CellTask<'_>]) {
    while !state.shutdown.is_acknowledged() {
        std::thread::yield_now();
    }
    for task in tasks {
        if task.coroutine.started() && !task.coroutine.done() {
            // The program returns or is unwound; its outcome does not matter.
            drop(task.coroutine.resume(Resume::Abort));
        }
    }
}
