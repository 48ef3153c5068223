//! Exchanges in two halves on threads: words move while cells do something else. Nothing here
//! looks at a clock: what must not wait for a cell is awaited by that cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use conset_runtime::ir::{CellId, Connection, ConnectionId, ConnectionSet, Image};
use conset_runtime::{
    Cell, CellError, Layout, Op, Owned, Pending, Plan, ThreadOptions, Transport, World,
};

use crate::common::{build, message};

/// Cells that share one entry, the second of two; and each its own, the first.
fn shared(cells: u64) -> (Layout, Arc<Image>) {
    let ids: Vec<[u64; 2]> = (0..cells).map(|cell| [cell + 10, 1]).collect();
    let layout = Layout::from_shared_ids(&ids).unwrap();
    let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 8);
    let image = build::build_all(&machine, [layout.set("s", 1).unwrap()]);
    (layout, image)
}

/// Words of cell 0 that cell 1 has a ghost of, and none the other way.
fn one_way() -> (Layout, Arc<Image>) {
    let parts = [Owned { ids: vec![5, 6], owned: 2 }, Owned { ids: vec![7, 5], owned: 1 }];
    let layout = Layout::from_owned(&parts).unwrap().forward;
    let machine = build::machine("ring:2", |_| ());
    let image = build::build_all(&machine, [layout.set("s", 1).unwrap()]);
    (layout, image)
}

fn plan(image: &Arc<Image>, layout: &Layout) -> Plan {
    Plan::new(image, "s", layout.clone(), 1).unwrap()
}

/// Threads on which nothing goes on for ever, should an exchange not overlap. Cells of these
/// programs make the same call at different places.
fn world(image: &Arc<Image>, workers: usize) -> World {
    let time_out = Some(Duration::from_secs(60));
    World::new(image.clone())
        .same_places(false)
        .on(Transport::Threads(ThreadOptions::workers(workers).time_out(time_out)))
}

fn until_there(cell: &mut Cell<'_>, token: &Pending) -> Result<(), CellError> {
    while !cell.test(token)? {}
    Ok(())
}

/// Waits in the cell's own code.
fn spin(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

#[test]
fn words_are_read_while_their_source_makes_no_call() {
    let (layout, image) = shared(2);
    let plan = plan(&image, &layout);
    let ended = AtomicBool::new(false);
    let (found, _) = world(&image, 2)
        .try_run(|cell| {
            let mut x = [0.0, f64::from(cell.id().0) + 1.5];
            let token = cell.start(&plan, Op::Copy, &x)?;
            if cell.id() == CellId(0) {
                // Neither an end nor any other call, until the other has ended.
                spin(&ended);
            } else {
                until_there(cell, &token)?;
            }
            cell.wait(&plan, token, &mut x)?;
            ended.store(true, Ordering::Release);
            Ok(x[1])
        })
        .unwrap();
    assert_eq!(found, [2.5, 1.5]);
}

/// Cell 1 begins its second exchange only after it has ended the first; cell 0, which has ended
/// neither, sees both arrive.
#[test]
fn words_are_read_while_their_source_tests_another_exchange() {
    for (cells, workers) in [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)] {
        let (layout, image) = shared(cells);
        let plan = plan(&image, &layout);
        let ended = AtomicUsize::new(0);
        let (found, _) = world(&image, workers)
            .try_run(|cell| {
                let own = f64::from(cell.id().0);
                let (mut a, mut b) = ([0.0, own + 1.0], [0.0, own + 11.0]);
                if cell.id() == CellId(0) {
                    let first = cell.start(&plan, Op::Add, &a)?;
                    let second = cell.start(&plan, Op::Add, &b)?;
                    until_there(cell, &second)?;
                    assert_eq!(ended.load(Ordering::Acquire), cells as usize - 1);
                    assert!(cell.test(&first)?, "what was begun before has arrived too");
                    cell.wait(&plan, second, &mut b)?;
                    cell.wait(&plan, first, &mut a)?;
                    return Ok([a[1], b[1]]);
                }
                let first = cell.start(&plan, Op::Add, &a)?;
                until_there(cell, &first)?;
                cell.wait(&plan, first, &mut a)?;
                ended.fetch_add(1, Ordering::Release);
                let second = cell.start(&plan, Op::Add, &b)?;
                cell.wait(&plan, second, &mut b)?;
                Ok([a[1], b[1]])
            })
            .unwrap();
        let n = cells as f64;
        let sum = n * (n + 1.0) / 2.0;
        assert_eq!(found, vec![[sum, sum + 10.0 * n]; cells as usize]);
    }
}

/// It is false while a source has not begun, and nothing waits meanwhile.
#[test]
fn a_test_tells_the_truth() {
    let (layout, image) = shared(2);
    let plan = plan(&image, &layout);
    let asked = AtomicBool::new(false);
    world(&image, 2)
        .try_run(|cell| {
            let mut x = [0.0; 2];
            if cell.id() == CellId(1) {
                spin(&asked);
                let token = cell.start(&plan, Op::Copy, &x)?;
                return cell.wait(&plan, token, &mut x);
            }
            let token = cell.start(&plan, Op::Copy, &x)?;
            for _ in 0..1000 {
                assert!(!cell.test(&token)?);
            }
            asked.store(true, Ordering::Release);
            until_there(cell, &token)?;
            cell.wait(&plan, token, &mut x)
        })
        .unwrap();
}

#[test]
fn an_end_does_not_wait_for_those_who_read() {
    let (layout, image) = shared(2);
    let plan = plan(&image, &layout);
    for (reader, by) in [(0, 1), (1, 0)] {
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        world(&image, 2)
            .try_run(|cell| {
                let mut x = [0.0, f64::from(cell.id().0)];
                if cell.id() == CellId(by) {
                    spin(&begun);
                }
                let token = cell.start(&plan, Op::Max, &x)?;
                if cell.id() == CellId(reader) {
                    begun.store(true, Ordering::Release);
                    spin(&ended);
                }
                cell.wait(&plan, token, &mut x)?;
                if cell.id() == CellId(by) {
                    ended.store(true, Ordering::Release);
                }
                assert_eq!(x[1], 1.0);
                Ok(())
            })
            .unwrap();
    }
}

/// A cell that sends only is some exchanges ahead, and its words are those of their time.
#[test]
fn a_source_begins_and_ends_before_its_target_has_begun() {
    for workers in [1, 2] {
        let (layout, image) = one_way();
        let plan = plan(&image, &layout);
        let (ahead, ahead_seen) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (found, _) = world(&image, workers)
            .try_run(|cell| {
                let mut sum = 0;
                let first = cell.id() == CellId(0);
                if !first {
                    if workers == 2 {
                        spin(&ahead_seen);
                    }
                    assert!(ahead.load(Ordering::Acquire) >= 4);
                }
                for round in 0..200u64 {
                    let mut x = [round; 2];
                    let token = cell.start(&plan, Op::Copy, &x)?;
                    x = [0; 2];
                    cell.wait(&plan, token, &mut x)?;
                    sum += x[1] * (round + 1);
                    if first && ahead.fetch_add(1, Ordering::Release) == 3 {
                        ahead_seen.store(true, Ordering::Release);
                    }
                }
                Ok(sum)
            })
            .unwrap();
        assert_eq!(found, [0, (0..200u64).map(|round| round * (round + 1)).sum()]);
    }
}

/// More under way than steps that cells may be apart; ended in several orders.
#[test]
fn any_number_may_be_under_way() {
    for (count, workers) in [(5, 1), (5, 3), (63, 2), (64, 2), (65, 1), (150, 2), (300, 3)] {
        let (layout, image) = shared(3);
        let plan = plan(&image, &layout);
        let (found, _) = world(&image, workers)
            .try_run(|cell| {
                let own = u64::from(cell.id().0) + 1;
                let mut tokens = Vec::new();
                for i in 0..count {
                    tokens.push((i, cell.start(&plan, Op::Add, &[0, own * (i + 1)])?));
                }
                match cell.id().0 {
                    0 => tokens.reverse(),
                    1 => tokens.rotate_left(count as usize / 2),
                    _ => {}
                }
                for (i, token) in tokens {
                    let mut x = [0, own * (i + 1)];
                    if i % 3 == 0 {
                        until_there(cell, &token)?;
                    }
                    cell.wait(&plan, token, &mut x)?;
                    assert_eq!(x, [0, 6 * (i + 1)]);
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(found.len(), 3);
    }
}

/// Who leaves a phase by beginning an exchange does not wait for those who are still in it.
#[test]
fn a_begin_after_elements_does_not_wait() {
    let ids = [[1, 10], [2, 1]];
    let layout = Layout::from_shared_ids(&ids).unwrap();
    let machine = build::machine("ring:2", |_| ());
    let ends = [(0, 1), (1, 0)].map(|(s, t)| Connection::new(CellId(s), CellId(t), 2));
    let elements = ConnectionSet::new("e", ends.to_vec()).unwrap();
    let sets = [layout.set("s", 1).unwrap(), elements];
    let image = build::build_all(&machine, sets);
    let plan = plan(&image, &layout);
    for lost in [false, true] {
        let begun = AtomicBool::new(false);
        let result = world(&image, 2).try_run(|cell| {
            let id = cell.id().0;
            cell.instantiate_phase("e/p0")?;
            cell.send_element(ConnectionId(id), 7u32)?;
            if id == 1 {
                if !lost {
                    cell.receive_element::<u32>(ConnectionId(0))?;
                }
                spin(&begun);
            } else {
                cell.receive_element::<u32>(ConnectionId(1))?;
            }
            let mut x = [1u64 << id; 2];
            let token = cell.start(&plan, Op::Add, &x)?;
            begun.store(true, Ordering::Release);
            until_there(cell, &token)?;
            cell.wait(&plan, token, &mut x)?;
            cell.instantiate_phase("e/p0")?;
            Ok(x)
        });
        match lost {
            true => assert_eq!(message(result), "c1 has not received 1 words of x0 of e"),
            false => assert_eq!(result.unwrap().0, [[3, 1], [2, 3]]),
        }
    }
}

#[test]
fn who_tests_for_ever_is_told_who_is_missing() {
    for (cells, workers) in [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)] {
        let (layout, image) = shared(cells);
        let plan = plan(&image, &layout);
        // No time-out, and no waiting for one.
        let world = World::new(image).on(Transport::Threads(ThreadOptions::workers(workers)));
        let result = world.try_run(|cell| {
            if cell.id() == CellId(1) {
                return Ok(());
            }
            let token = cell.start(&plan, Op::Add, &[0.0; 2])?;
            until_there(cell, &token)?;
            cell.wait(&plan, token, &mut [0.0; 2])
        });
        // Of two that ask, the other may be told first.
        let expected = [0, 2].map(|cell| {
            format!("c1 has ended while c{cell} waits for all cells to switch to the nonblocking exchange of s")
        });
        let text = message(result);
        assert!(expected.contains(&text), "{text}");
    }
}

/// Who is missing waits for others, and these for it: found when the time is over.
#[test]
fn who_tests_for_ever_while_others_wait_is_told_so() {
    for workers in [1, 2, 3] {
        let (layout, image) = shared(3);
        let plan = plan(&image, &layout);
        let time_out = Some(Duration::from_millis(40));
        let options = ThreadOptions::workers(workers).time_out(time_out);
        let world = World::new(image).on(Transport::Threads(options));
        let text = message(world.try_run(|cell| {
            let id = cell.id().0;
            if id > 0 {
                cell.msg_receive(CellId(3 - id), &mut [0u32])?;
            }
            let token = cell.start(&plan, Op::Add, &[0.0; 2])?;
            until_there(cell, &token)?;
            cell.wait(&plan, token, &mut [0.0; 2])
        }));
        assert_eq!(
            text,
            "deadlock: c1 waits for a message from c2 <- c2 waits for a message from c1 <- which is where this began"
        );
    }
}

/// Testing for long is no error where somebody else is at work.
#[test]
fn who_tests_while_another_computes_waits_as_long_as_it_takes() {
    let (layout, image) = shared(3);
    let plan = plan(&image, &layout);
    let time_out = Some(Duration::from_millis(40));
    for workers in [2, 3] {
        let options = ThreadOptions::workers(workers).time_out(time_out);
        let world = World::new(image.clone()).on(Transport::Threads(options));
        let tests = AtomicUsize::new(0);
        let result = world.try_run(|cell| {
            if cell.id() == CellId(2) {
                // Calls all the time, for longer than the time-out.
                for _ in 0..30 {
                    std::thread::sleep(Duration::from_millis(4));
                    cell.compute(1)?;
                }
            }
            let mut x = [0, 1u64 << cell.id().0];
            let token = cell.start(&plan, Op::Add, &x)?;
            while !cell.test(&token)? {
                tests.fetch_add(1, Ordering::Relaxed);
            }
            cell.wait(&plan, token, &mut x)?;
            Ok(x[1])
        });
        match result {
            Ok((found, _)) => assert_eq!(found, [7; 3]),
            // Where the system lets cell 2 sleep for ten times as long.
            Err(error) => assert!(error.to_string().contains("in its own code"), "{error}"),
        }
    }
}

#[test]
fn a_begin_and_an_exchange_disagree() {
    let (layout, image) = shared(2);
    let plan = plan(&image, &layout);
    for workers in [1, 2] {
        let text = message(world(&image, workers).try_run(|cell| {
            let mut x = [0.0; 2];
            if cell.id() == CellId(1) {
                return cell.exchange_nodes(&plan, Op::Add, &mut x);
            }
            let token = cell.start(&plan, Op::Add, &x)?;
            cell.wait(&plan, token, &mut x)
        }));
        assert_eq!(
            text,
            "c0 switches to the nonblocking exchange of s while c1 switches to the vector exchange of s"
        );
    }
}

/// A cell panics, gives up or forgets, with words on their way in all directions.
#[test]
fn what_ends_between_begin_and_end_frees_nothing_that_is_read() {
    const WORDS: u64 = 400;
    let ids: Vec<Vec<u64>> = vec![(0..WORDS).collect(); 4];
    let layout = Layout::from_shared_ids(&ids).unwrap();
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 16);
    let image = build::build_all(&machine, [layout.set("s", 1).unwrap()]);
    let plan = plan(&image, &layout);
    for time in 0..60 {
        let (who, round, how) = (time % 4, time / 4 % 5, time % 3);
        let result = world(&image, 1 + time % 4).try_run(|cell| {
            let mut tokens = Vec::new();
            for i in 0..8 {
                let mut x = vec![i as u64; WORDS as usize];
                tokens.push(cell.start(&plan, Op::Copy, &x)?);
                if cell.id().index() == who && i == round {
                    match how {
                        0 => panic!("enough"),
                        1 => return Err(cell.abort("it diverges")),
                        _ => return Ok(()),
                    }
                }
                if i >= 2 {
                    let _ = cell.test(&tokens[1])?;
                    cell.wait(&plan, tokens.remove(0), &mut x)?;
                    assert!(x.iter().all(|&word| word == i as u64 - 2));
                }
            }
            for token in tokens {
                cell.wait(&plan, token, &mut vec![0u64; WORDS as usize])?;
            }
            Ok(())
        });
        let expected = match how {
            0 => format!("c{who} panicked: enough"),
            1 => format!("c{who}: it diverges"),
            _ => format!(
                "c{who}: the program returned with {} exchanges started and not completed, the first of `s`",
                round.min(2) + 1
            ),
        };
        assert_eq!(message(result), expected);
    }
}

#[test]
fn one_cell_and_sets_without_connections_begin_and_end() {
    for cells in [1, 2, 5] {
        let ids: Vec<[u64; 1]> = (0..cells).map(|cell| [cell]).collect();
        let layout = Layout::from_shared_ids(&ids).unwrap();
        let machine = build::machine(&format!("ring:{cells}"), |_| ());
        let image = build::build_all(&machine, [layout.set("s", 1).unwrap()]);
        let plan = plan(&image, &layout);
        for workers in [1, 2] {
            let program = |cell: &mut Cell<'_>| {
                let mut x = [3.5];
                let tokens = [cell.start(&plan, Op::Add, &x)?, cell.start(&plan, Op::Add, &x)?];
                assert!(cell.test(&tokens[1])?);
                cell.wait(&plan, tokens[1], &mut x)?;
                cell.wait(&plan, tokens[0], &mut x)?;
                Ok(x[0])
            };
            let (found, _) = world(&image, workers).try_run(program).unwrap();
            assert_eq!(found, vec![3.5; cells as usize]);
        }
    }
}
