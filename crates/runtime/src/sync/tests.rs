//! Few threads, all interleavings: `RUSTFLAGS="--cfg loom" cargo test --release -p conset-runtime
//! --lib sync`. An ordinary test run goes through some, on real threads.
//!
//! A wrong order shows as a race on [`Memory`], of which loom tells, or as a wrong answer.

use super::*;

#[cfg(loom)]
use loom::{cell::UnsafeCell, sync::Arc, thread};
#[cfg(not(loom))]
use std::{cell::UnsafeCell, sync::Arc, thread};

#[cfg(not(loom))]
fn model(run: impl Fn() + Sync + Send + 'static) {
    let times = if cfg!(miri) { 5 } else { 300 };
    (0..times).for_each(|_| run());
}

#[cfg(loom)]
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A cell's buffer, that others read in place.
struct Memory(UnsafeCell<u64>);

// SAFETY: none of its own: that no two threads get at it at the same time, one of them to write,
// is what the tests are about.
unsafe impl Sync for Memory {}
// SAFETY: it is a number.
unsafe impl Send for Memory {}

#[cfg(loom)]
impl Memory {
    fn read(&self) -> u64 {
        // SAFETY: loom checks it.
        self.0.with(|word| unsafe { *word })
    }

    fn write(&self, word: u64) {
        // SAFETY: loom checks it.
        self.0.with_mut(|place| unsafe { *place = word });
    }
}

#[cfg(not(loom))]
impl Memory {
    fn read(&self) -> u64 {
        // SAFETY: the protocol under test.
        unsafe { *self.0.get() }
    }

    fn write(&self, word: u64) {
        // SAFETY: the protocol under test.
        unsafe { *self.0.get() = word };
    }
}

fn wait(counter: &Counter, value: u64) {
    while !counter.has_reached(value) {
        thread::yield_now();
    }
}

/// Two cells that exchange twice: what is read is what was published, and nobody writes while
/// another reads.
#[test]
fn an_exchange_reads_what_was_published_before_it_changes() {
    struct Cell {
        memory: Memory,
        published: Counter,
        done: Counter,
    }
    fn exchange(own: &Cell, other: &Cell, salt: u64) {
        for step in 1..=2 {
            own.memory.write(10 * step + salt);
            own.published.publish(step);
            wait(&other.published, step);
            assert_eq!(other.memory.read(), 10 * step + 1 - salt);
            own.done.publish(step);
            wait(&other.done, step);
        }
    }
    model(|| {
        let cell = || Cell {
            memory: Memory(UnsafeCell::new(0)),
            published: Counter::default(),
            done: Counter::default(),
        };
        let cells = Arc::new([cell(), cell()]);
        let theirs = cells.clone();
        let other = thread::spawn(move || exchange(&theirs[1], &theirs[0], 1));
        exchange(&cells[0], &cells[1], 0);
        other.join().unwrap();
    });
}

/// A cell lends its words at each step and goes on; another reads them later. The first writes to
/// memory again when it has seen that the other is done with it, and takes other memory meanwhile.
#[test]
fn what_is_lent_is_written_again_only_after_it_was_read() {
    struct Shared {
        memory: [Memory; 2],
        /// The memory of each step.
        places: [AtomicUsize; 3],
        published: Counter,
        done: Counter,
    }
    fn lend(shared: &Shared) {
        // The step at which each memory was published last.
        let mut lent = [0; 2];
        for step in 1..=3 {
            let free = |row: &usize| shared.done.has_reached(lent[*row]);
            let row = loop {
                match (0..2).find(free) {
                    Some(row) => break row,
                    None => thread::yield_now(),
                }
            };
            lent[row] = step;
            shared.memory[row].write(10 * step);
            shared.places[step as usize - 1].store(row, Ordering::Relaxed);
            shared.published.publish(step);
        }
    }
    model(|| {
        let shared = Arc::new(Shared {
            memory: [(); 2].map(|()| Memory(UnsafeCell::new(0))),
            places: [(); 3].map(|()| AtomicUsize::new(9)),
            published: Counter::default(),
            done: Counter::default(),
        });
        let theirs = shared.clone();
        let other = thread::spawn(move || lend(&theirs));
        // It asks, and does other things while nothing is there.
        let mut step = 0;
        while step < 3 {
            if !shared.published.has_reached(step + 1) {
                thread::yield_now();
                continue;
            }
            step += 1;
            let row = shared.places[step as usize - 1].load(Ordering::Relaxed);
            assert_eq!(shared.memory[row].read(), 10 * step);
            shared.done.publish(step);
        }
        other.join().unwrap();
    });
}

/// A thread that sees that a writer has ended sees all that it has published: what is there is never taken
/// for what will not come.
#[test]
fn what_a_cell_published_before_it_ended_is_not_missed() {
    model(|| {
        let shared = Arc::new((Counter::default(), Counter::default()));
        let theirs = shared.clone();
        let writer = thread::spawn(move || {
            theirs.0.publish(1);
            theirs.0.publish(2);
            theirs.1.publish(1);
        });
        let (published, ended) = &*shared;
        for _ in 0..2 {
            assert!(!never_reaches(published, 2, ended));
            if never_reaches(published, 3, ended) {
                assert_eq!(published.value(), 2);
            }
        }
        writer.join().unwrap();
        assert!(never_reaches(published, 3, ended));
    });
}

/// Those who do the same agree; of those who do not, all but the first hear of it.
#[test]
fn the_first_at_a_step_says_what_is_done() {
    model(|| {
        let log = Arc::new(CollectiveLog::new());
        let others: Vec<_> = [7, 8]
            .map(|what| {
                let log = log.clone();
                thread::spawn(move || (log.matches(1, 3, 5), log.matches(2, what, 5)))
            })
            .into_iter()
            .collect();
        let agreed: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        assert!(agreed.iter().all(|agreed| agreed.0));
        assert_eq!(agreed.iter().filter(|agreed| agreed.1).count(), 1);
        // The next step takes the place of an old one.
        assert!(log.matches(1 + WINDOW, 9, 5) && !log.matches(1 + WINDOW, 3, 5));
    });
}

/// Of those who do the same at different places one agrees; where they do not do the same either, one
/// at most.
#[test]
fn of_calls_at_different_places_one_is_taken() {
    model(|| {
        let log = Arc::new(CollectiveLog::new());
        let other = {
            let log = log.clone();
            thread::spawn(move || (log.matches(1, 3, 5), log.matches(2, 3, 5)))
        };
        let own = (log.matches(1, 3, 6), log.matches(2, 4, 6));
        let other = other.join().unwrap();
        assert!(own.0 != other.0);
        assert!(!(own.1 && other.1));
        // The marks of an old step are those of no new one.
        assert!(log.matches(1 + WINDOW, 3, 7) && !log.matches(1 + WINDOW, 3, 5));
    });
}

/// A run ends while a cell may be reading another's memory: the other changes it only after all
/// workers have acknowledged.
#[test]
fn memory_is_given_back_only_when_nobody_reads_it() {
    model(|| {
        let shared = Arc::new((Memory(UnsafeCell::new(0)), Counter::default(), Shutdown::new(2)));
        let theirs = shared.clone();
        let reader = thread::spawn(move || {
            let (memory, published, ending) = &*theirs;
            for _ in 0..2 {
                // A cell is resumed where the run goes on and what it waits for is there.
                if !ending.has_started() && published.has_reached(1) {
                    assert_eq!(memory.read(), 5);
                }
            }
            ending.acknowledge();
        });
        let (memory, published, ending) = &*shared;
        memory.write(5);
        published.publish(1);
        // A cell of this worker fails.
        ending.start();
        ending.acknowledge();
        while !ending.is_acknowledged() {
            thread::yield_now();
        }
        memory.write(6);
        reader.join().unwrap();
    });
}

/// A worker with one cell, which waits for a counter and raises another, several times over.
/// Whether it came to the end, and not to where nothing can go on.
fn work(
    idle: &IdleDetector,
    ending: &Shutdown,
    number: usize,
    script: &[(&Counter, u64, &Counter, u64)],
) -> bool {
    for &(awaited, value, raised, to) in script {
        if !awaited.has_reached(value) {
            idle.rest();
            loop {
                if ending.has_started() {
                    return false;
                }
                match idle.look(number, || awaited.has_reached(value)) {
                    IdleState::Runnable => break,
                    IdleState::Waiting => thread::yield_now(),
                    IdleState::Deadlock => {
                        ending.start();
                        return false;
                    }
                }
            }
            idle.rise();
        }
        raised.publish(to);
    }
    idle.retire(number);
    true
}

/// The counters that the cells of two workers wait for and raise.
type Two = (IdleDetector, Shutdown, Counter, Counter);

fn two() -> Arc<Two> {
    Arc::new((IdleDetector::new(2), Shutdown::new(2), Counter::default(), Counter::default()))
}

#[test]
fn workers_that_help_each_other_on_are_never_stuck() {
    model(|| {
        let shared = two();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (idle, ending, ping, pong) = &*theirs;
            work(idle, ending, 1, &[(ping, 1, pong, 1)])
        });
        let (idle, ending, ping, pong) = &*shared;
        assert!(work(idle, ending, 0, &[(pong, 0, ping, 1), (pong, 1, ping, 2)]));
        assert!(other.join().unwrap());
    });
}

#[test]
fn workers_that_wait_for_each_other_find_out() {
    model(|| {
        let shared = two();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (idle, ending, ping, pong) = &*theirs;
            work(idle, ending, 1, &[(ping, 1, pong, 1), (ping, 2, pong, 2)])
        });
        let (idle, ending, ping, pong) = &*shared;
        let mine = work(idle, ending, 0, &[(pong, 0, ping, 1), (pong, 2, ping, 2)]);
        let theirs = other.join().unwrap();
        assert!(!mine && !theirs && ending.has_started());
    });
}

#[test]
fn who_waits_for_a_worker_that_has_retired_finds_out() {
    model(|| {
        let shared = two();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (idle, ending, ping, pong) = &*theirs;
            work(idle, ending, 1, &[(ping, 0, pong, 1)])
        });
        let (idle, ending, ping, pong) = &*shared;
        assert!(!work(idle, ending, 0, &[(pong, 1, ping, 1), (pong, 2, ping, 2)]));
        assert!(other.join().unwrap());
    });
}
