//! The ports of cells on threads, without coroutines: a worker and a thread for each cell, which
//! waits by looking again.
//!
//! Everything else is what runs: the steps, the slots, reading where the words are, the end of a
//! run. So Miri, which cannot follow a change of stacks, and ThreadSanitizer, which would have to
//! be told of it, see all `unsafe` of exchanges between threads here. Programs are small, as Miri
//! is slow; ordinary test runs go over them many times.

use std::sync::atomic::{AtomicBool, Ordering};

use super::port::ThreadPort;
use super::shared_state::{RunFailure, SharedState};
use super::worker::{Suspend, WaitCondition, Worker};
use super::*;
use crate::cell::Cell;
use crate::collectives::{Collectives, tree_sets};
use crate::error::CellError;
use crate::executor::{ProgramOutcome, Results, Resume, run_program};
use crate::lists::{CellLists, Number, Op, Positions};
use crate::loaded_image::LoadedImage;
use crate::port::{By, WireBuffers, WirePosition};
use crate::stack::StackBounds;
use crate::word::Word;
use conset_ir::{ConnectionId, ConnectionSet};

#[path = "../../../fabric/tests/build/mod.rs"]
mod build;
mod in_place;

const PATIENCE: Patience = Patience { report_after: REPORT_AFTER, time_out: None };

/// How often each program is run.
const TIMES: usize = if cfg!(miri) { 2 } else { 50 };

/// Waits on the cell's own thread.
struct Spin<'b> {
    state: &'b SharedState<'b>,
    acknowledged: AtomicBool,
}

impl Spin<'_> {
    /// The worker of this cell runs it no more but to end it.
    fn acknowledge(&self) {
        if !self.acknowledged.swap(true, Ordering::Relaxed) {
            self.state.shutdown.acknowledge();
        }
    }
}

impl<'b> Suspend<'b> for Spin<'b> {
    fn suspend(&self, condition: WaitCondition<'b>) -> Resume {
        while !self.state.shutdown.has_started() {
            if condition.counter.has_reached(condition.value) {
                return Resume::Continue;
            }
            std::thread::yield_now();
            if condition.asks && !self.state.shutdown.has_started() {
                return Resume::Continue;
            }
        }
        self.acknowledge();
        while !self.state.shutdown.is_acknowledged() {
            std::thread::yield_now();
        }
        Resume::Abort
    }
}

/// Runs a program, each cell on its thread.
fn run_plainly<R: Send>(
    loaded: &LoadedImage,
    program: impl Fn(&mut Cell<'_>) -> R + Sync,
) -> Result<Vec<R>, RunError> {
    let cells = &loaded.live;
    let mut state = SharedState::new(loaded, cells.len(), PATIENCE);
    let results = Results::new(cells.to_vec());
    let program = |cell: &mut Cell<'_>| results.keep(cell.id(), program(cell));
    let (shared, program) = (&state, &program);
    std::thread::scope(|scope| {
        let start = |(number, &id): (usize, &CellId)| {
            scope.spawn(move || {
                let worker = Worker::new(number, &[id]);
                let spin = Spin { state: shared, acknowledged: AtomicBool::new(false) };
                let mut port = ThreadPort::new(id, shared, &worker, &spin);
                let outcome = run_program(
                    program,
                    &mut Cell::new((id, StackBounds::UNKNOWN), loaded, &mut port),
                );
                if let ProgramOutcome::Panicked(message) = &outcome {
                    let error = RunError::Panic { cell: id, message: message.clone() };
                    shared.fail(id, RunFailure::Known(error));
                }
                spin.acknowledge();
            })
        };
        let threads: Vec<_> = cells.iter().enumerate().map(start).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let outcome = match state.take_failure() {
        Some(RunFailure::Known(error)) => Err(error),
        Some(other) => panic!("{other:?}"),
        None => Ok(()),
    };
    results.of_run(outcome).map(|(results, ())| results)
}

fn loaded(spec: &str, sets: impl IntoIterator<Item = ConnectionSet>) -> LoadedImage {
    let machine = build::machine(spec, |p| p.channels_per_cell = 12);
    LoadedImage::new(build::build_all(&machine, sets))
}

/// Neighbours in both directions, and each cell to itself, of different lengths.
fn neighbours(cells: u32) -> LoadedImage {
    let ends = |c: u32| [(c, (c + 1) % cells, 2 + c % 3), ((c + 1) % cells, c, 4), (c, c, 1)];
    loaded(&format!("ring:{cells}"), [build::set(&(0..cells).flat_map(ends).collect::<Vec<_>>())])
}

/// A word that fits 4 bytes.
fn word(connection: ConnectionId, index: usize, round: usize) -> u64 {
    (u64::from(connection.0) << 16) | (round as u64) << 8 | index as u64
}

/// Exchanges the set once, with words of this type; looks at all that come.
fn exchange_as<W: Number>(
    cell: &mut Cell<'_>,
    round: usize,
    by_messages: bool,
) -> Result<(), CellError> {
    let (out, inn) = (cell.connections_out("s")?, cell.connections_in("s")?);
    let set = cell.image().sets()[0].set.clone();
    let row = |&x: &ConnectionId, round: usize| -> Vec<W> {
        (0..set.get(x).words as usize).map(|index| W::from_bits(word(x, index, round))).collect()
    };
    let outgoing: Vec<Vec<W>> = out.iter().map(|x| row(x, round)).collect();
    let mut incoming: Vec<Vec<W>> = inn.iter().map(|x| row(x, round + 99)).collect();
    match by_messages {
        true => cell.exchange_by(By::Messages, "s", &outgoing, &mut incoming)?,
        false => cell.exchange("s", &outgoing, &mut incoming)?,
    }
    let bits = |words: &Vec<W>| words.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
    for (found, x) in incoming.iter().zip(inn) {
        assert_eq!(bits(found), bits(&row(x, round)), "{x} at {}", cell.id());
    }
    Ok(())
}

#[test]
fn rows_of_any_words_arrive() {
    let loaded = neighbours(3);
    for _ in 0..TIMES {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            for round in 0..3 {
                let by_messages = round == 1;
                // Types of the same size are the same on the way.
                match (round, cell.id().0) {
                    (0, 0) => exchange_as::<u64>(cell, round, by_messages)?,
                    (0, _) => exchange_as::<f64>(cell, round, by_messages)?,
                    (1, 0) => exchange_as::<f32>(cell, round, by_messages)?,
                    _ => exchange_as::<i32>(cell, round, by_messages)?,
                }
            }
            Ok(())
        });
        result.unwrap().into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
}

/// Positions of each connection: the words that go out lie apart from those that come in, or
/// among them.
fn lists(loaded: &LoadedImage, cell: CellId, block: usize, apart: bool) -> CellLists {
    let mut next = 0;
    let mut list = |x: &ConnectionId| -> Vec<u32> {
        let positions = loaded.set(0).get(*x).words / block as u32;
        next += positions;
        (next - positions..next).rev().collect()
    };
    let send: Vec<Vec<u32>> = loaded.sets[0].outgoing.of(cell).iter().map(&mut list).collect();
    if !apart {
        next = 1;
    }
    let mut list = |x: &ConnectionId| -> Vec<u32> {
        let positions = loaded.set(0).get(*x).words / block as u32;
        next += 1;
        // Lists overlap, so that several sources meet at a position.
        (next - 1..next - 1 + positions).collect()
    };
    let receive: Vec<Vec<u32>> = loaded.sets[0].incoming.of(cell).iter().map(&mut list).collect();
    CellLists::new(Positions::new(send), Positions::new(receive), block)
}

/// What each cell's vector begins with.
fn begin(lists: &CellLists, cell: usize) -> Vec<u64> {
    (0..lists.words().unwrap()).map(|at| ((cell + 1) * 100 + at) as u64).collect()
}

/// The vectors after so many exchanges, found one cell after the other.
fn instantiated(loaded: &LoadedImage, lists: &[CellLists], op: Op, rounds: usize) -> Vec<Vec<u64>> {
    let mut vectors: Vec<Vec<u64>> = (0..lists.len()).map(|c| begin(&lists[c], c)).collect();
    for _ in 0..rounds {
        let before = vectors.clone();
        for (cell, vector) in vectors.iter_mut().enumerate() {
            let (ends, block) = (&loaded.sets[0], lists[cell].block());
            let inn = ends.incoming.of(CellId(cell as u32));
            for (place, &x) in inn.iter().enumerate() {
                let source = loaded.set(0).get(x).source;
                let row = ends.outgoing.of(source).iter().position(|&y| y == x).unwrap();
                let from = lists[source.index()].send().row(row);
                let to = lists[cell].receive().row(place);
                for (&from, &to) in from.iter().zip(to) {
                    for word in 0..block {
                        let here = &mut vector[to as usize * block + word];
                        *here =
                            op.apply(*here, before[source.index()][from as usize * block + word]);
                    }
                }
            }
        }
    }
    vectors
}

fn exchange_lists_as<W: Number>(
    cell: &mut Cell<'_>,
    lists: &CellLists,
    op: Op,
    rounds: usize,
) -> Result<Vec<u64>, CellError> {
    let vector = begin(lists, cell.id().index());
    let mut vector: Vec<W> = vector.into_iter().map(W::from_bits).collect();
    for _ in 0..rounds {
        cell.exchange_lists("s", lists, op, &mut vector)?;
    }
    Ok(vector.into_iter().map(W::to_bits).collect())
}

#[test]
fn vectors_are_read_where_they_are() {
    let ends = |c: u32| [(c, (c + 1) % 3, 4), ((c + 1) % 3, c, 2), (c, c, 2)];
    let loaded = loaded("ring:3", [build::set(&(0..3).flat_map(ends).collect::<Vec<_>>())]);
    for (block, apart, op) in
        [(1, true, Op::Copy), (1, false, Op::Add), (2, true, Op::Max), (2, false, Op::Min)]
    {
        let lists: Vec<_> = (0..3).map(|c| lists(&loaded, CellId(c), block, apart)).collect();
        assert_eq!(lists[0].is_mixed(), !apart);
        let expected = instantiated(&loaded, &lists, op, 3);
        for _ in 0..TIMES {
            let found = run_plainly(&loaded, |cell| {
                let lists = &lists[cell.id().index()];
                match cell.id().0 {
                    0 => exchange_lists_as::<u64>(cell, lists, op, 3),
                    _ => exchange_lists_as::<i64>(cell, lists, op, 3),
                }
            });
            let found: Vec<Vec<u64>> = found.unwrap().into_iter().map(Result::unwrap).collect();
            assert_eq!(found, expected, "{op:?} of blocks of {block}, apart: {apart}");
        }
    }
}

#[test]
fn elements_go_round() {
    let set: Vec<_> = (0..3).map(|c| (c, (c + 1) % 3, 2)).collect();
    let loaded = loaded("ring:3", [build::set(&set)]);
    for _ in 0..TIMES {
        let sums = run_plainly(&loaded, |cell| -> Result<u64, CellError> {
            let id = cell.id().0;
            let mut sum = 0;
            for _ in 0..3 {
                cell.instantiate_phase("s/p0")?;
                let mut passing = u64::from(id) + 1;
                for _ in 0..2 {
                    cell.send_element(ConnectionId(id), passing)?;
                    passing = cell.receive_element(ConnectionId((id + 2) % 3))?;
                    sum += passing;
                }
            }
            Ok(sum)
        });
        let sums: Vec<u64> = sums.unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(sums, [15, 12, 9]);
    }
}

#[test]
fn messages_are_copied() {
    let loaded = loaded("ring:3", [build::set(&[(0, 1, 1)])]);
    for _ in 0..TIMES {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            let id = cell.id().0;
            for round in 0..4 {
                let mut words = vec![f64::from(id); round];
                cell.msg_send(CellId((id + 1) % 3), &words)?;
                words.fill(-1.0);
                cell.msg_receive(CellId((id + 2) % 3), &mut words)?;
                assert_eq!(words, vec![f64::from((id + 2) % 3); round]);
            }
            Ok(())
        });
        result.unwrap().into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
}

/// The buffers of a call that ends early are freed at once, while others may just be reading
/// them: they must not be.
#[test]
fn a_run_that_ends_early_frees_nothing_that_is_read() {
    let loaded = neighbours(3);
    let lists: Vec<_> = (0..3).map(|c| lists(&loaded, CellId(c), 1, true)).collect();
    for time in 0..4 * TIMES {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            let id = cell.id().index();
            for round in 0..4 {
                if id == time % 3 && round == time % 4 {
                    if time % 2 == 0 {
                        std::panic::resume_unwind(Box::new("enough"));
                    }
                    // A receive that nobody has sent.
                    cell.receive_element::<u64>(ConnectionId(0))?;
                }
                exchange_as::<u64>(cell, round, false)?;
                exchange_lists_as::<f64>(cell, &lists[id], Op::Add, 1)?;
            }
            Ok(())
        });
        let error = result.unwrap_err();
        let panicked = matches!(&error, RunError::Panic { message, .. } if message == "enough");
        assert!(panicked || matches!(error, RunError::Cell { .. }), "{error}");
    }
}

/// Begins an exchange of the set; gives the words that are to come.
fn start_request(
    cell: &mut Cell<'_>,
    number: u64,
    buffers: Option<WireBuffers>,
) -> Result<(), CellError> {
    let set = cell.image().sets()[0].set.clone();
    let (out, inn) = (cell.connections_out("s")?, cell.connections_in("s")?);
    let words = |&x: &ConnectionId| set.get(x).words as usize;
    let new = || WireBuffers::new(out.iter().map(words), inn.iter().map(words), 8);
    let mut buffers = buffers.unwrap_or_else(new);
    buffers.incoming.for_each_mut(|_, words| words.fill(0));
    cell.start_exchange(number, 0, buffers, &mut |(row, first), wire| {
        for (index, bits) in (first..).zip(wire.chunks_exact_mut(8)) {
            word(out[row], index, number as usize).write_to(bits);
        }
    })
}

/// Ends it, looks at what came, where it is lent or in the buffers, and gives these.
fn end_flight(cell: &mut Cell<'_>, number: u64) -> Result<WireBuffers, CellError> {
    let (inn, id) = (cell.connections_in("s")?, cell.id());
    let mut rows = 0..inn.len();
    let mut look = |(row, first): WirePosition, words: &[u8]| {
        assert_eq!((Some(row), first), (rows.next(), 0), "whole rows in their order");
        let words = words.chunks_exact(8).map(u64::read_from);
        let expected = (0..words.len()).map(|index| word(inn[row], index, number as usize));
        assert!(words.eq(expected), "{} at {id}", inn[row]);
    };
    if !(number + u64::from(id.0)).is_multiple_of(3) {
        return cell.ask(|port| port.read(number, &mut look));
    }
    cell.ask(|port| port.wait(number))?;
    let buffers = cell.port.take(number);
    buffers.unpack_all(&mut look);
    Ok(buffers)
}

/// Begins exchanges, so many under way at a time, and tests and ends them in an order of its own.
/// Connections to itself, from both sides, and one way.
fn fly(cell: &mut Cell<'_>, rounds: u64, depth: u64) -> Result<(), CellError> {
    let id = u64::from(cell.id().0);
    let (mut under_way, mut free) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        start_request(cell, number, free.pop())?;
        under_way.push(number);
        if (number + id) % 3 == 0 {
            while !cell.ask(|port| port.test(number))? {}
        }
        if under_way.len() as u64 > (id + number) % (depth + 1) {
            let row = (number * 7 + id) as usize % under_way.len();
            free.push(end_flight(cell, under_way.remove(row))?);
        }
        if number % 5 == 4 {
            let last = under_way.last().copied().unwrap_or(0);
            cell.ask(|port| port.wait(last))?;
            exchange_as::<f64>(cell, number as usize, false)?;
        }
    }
    for number in under_way {
        free.push(end_flight(cell, number)?);
    }
    Ok(())
}

#[test]
fn what_is_lent_is_read_before_it_changes() {
    let one_way = loaded("ring:3", [build::set(&[(0, 1, 3), (1, 2, 2), (0, 2, 1), (1, 1, 2)])]);
    for loaded in [neighbours(3), neighbours(1), one_way] {
        for _ in 0..TIMES {
            let rounds = if cfg!(miri) { 12 } else { 40 };
            let result = run_plainly(&loaded, |cell| fly(cell, rounds, 4));
            result.unwrap().into_iter().collect::<Result<Vec<_>, _>>().unwrap();
        }
    }
}

/// Places are used again after as many steps as cells may be apart.
#[test]
fn more_may_be_lent_than_there_are_places() {
    let loaded = neighbours(2);
    let rounds = crate::sync::WINDOW + 5;
    for _ in 0..TIMES.div_ceil(10) {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            (0..rounds).try_for_each(|number| start_request(cell, number, None))?;
            (0..rounds).rev().try_for_each(|number| end_flight(cell, number).map(drop))
        });
        result.unwrap().into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
}

/// Cells end in the midst of it, by a panic or an error: what others read stays.
#[test]
fn a_run_that_ends_early_keeps_what_is_lent() {
    let loaded = neighbours(3);
    for time in 0..4 * TIMES {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            let mut buffers = None;
            for number in 0..6 {
                start_request(cell, number, buffers.take())?;
                if cell.id().index() == time % 3 && number as usize == time % 6 {
                    if time % 2 == 0 {
                        std::panic::resume_unwind(Box::new("enough"));
                    }
                    return Err(cell.abort("enough"));
                }
                cell.ask(|port| port.test(number))?;
                if let Some(before) = number.checked_sub(1) {
                    buffers = Some(end_flight(cell, before)?);
                }
            }
            end_flight(cell, 5).map(drop)
        });
        let text = result.unwrap_err().to_string();
        assert!(text.ends_with("enough"), "{text}");
    }
}

/// The log of steps is as long as cells may be apart; its places are used again.
#[test]
fn steps_outlast_the_log() {
    let loaded = loaded("ring:3", [build::set(&[(0, 1, 1)])]);
    let rounds = crate::sync::WINDOW as usize + 6;
    for _ in 0..TIMES.div_ceil(10) {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            (0..rounds).try_for_each(|round| exchange_as::<u32>(cell, round % 7, false))
        });
        result.unwrap().into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
}

/// What a program panics with may panic when it is dropped. Nothing of that reaches a worker.
#[test]
fn what_panics_when_it_is_dropped_ends_the_run_and_nothing_else() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(()));
        }
    }
    let loaded = neighbours(3);
    let result = run_plainly(&loaded, |cell| {
        if cell.id().0 == 1 {
            std::panic::resume_unwind(Box::new(Bad));
        }
        exchange_as::<u64>(cell, 0, false).is_ok()
    });
    let error = result.unwrap_err();
    assert!(matches!(error, RunError::Panic { cell: CellId(1), .. }), "{error}");
}

/// Arrays that another cell combines, and results that are still read when the next walk begins.
#[test]
fn trees_are_combined_by_the_last_to_come() {
    let machine = build::machine("ring:5", |p| p.channels_per_cell = 12);
    let loaded = loaded("ring:5", tree_sets(&machine, 2).unwrap());
    let trees = Collectives::new(&loaded.image).unwrap();
    for _ in 0..TIMES {
        let run = run_plainly(&loaded, |cell| -> Result<usize, CellError> {
            let (id, mut wrong) = (u64::from(cell.id().0), 0);
            for round in 0..8 {
                let mut sums = [id + round, id, 1];
                cell.allreduce(&trees, Op::Add, &mut sums)?;
                wrong += usize::from(sums != [10 + 5 * round, 10, 5]);
                // A cell whose branch is complete goes on; so does a root that gives away its array.
                for _ in 0..3 {
                    let mut most = [cell.id().0];
                    cell.reduce(&trees, Op::Max, &mut most)?;
                    wrong += usize::from(most != [[4, 1, 3, 3, 4][cell.id().index()]]);
                }
                for turn in 0..6 {
                    let mut words = [if id == 0 { round + turn } else { 99 }; 4];
                    cell.broadcast(&trees, CellId(0), &mut words)?;
                    wrong += usize::from(words != [round + turn; 4]);
                }
            }
            Ok(wrong)
        });
        for result in run.unwrap() {
            assert_eq!(result, Ok(0));
        }
    }
}
