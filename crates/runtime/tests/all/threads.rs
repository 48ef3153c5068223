//! The same programs on threads: the same results, and errors that end the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use conset_ir::{CellId, ConnectionId, Image, PhaseId};
use conset_runtime::lists::{CellLists, Positions};
use conset_runtime::{Cell, CellError, Op, RunError, ThreadOptions, Transport, World};
use proptest::prelude::*;

use crate::common::{build, from_left, message, own, ring_image, threads};

#[test]
fn a_sum_goes_round_the_ring() {
    for (cells, workers) in [(1, 1), (2, 2), (3, 2), (8, 3), (64, 2), (64, 64)] {
        let (sums, report) = threads(ring_image(cells, cells.max(2) - 1), workers)
            .try_run(|cell| {
                let mut sum = 0.0;
                for _ in 0..5 {
                    cell.instantiate_phase("s/p0")?;
                    let mut passing = f64::from(cell.id().0) + 0.5;
                    sum = passing;
                    for _ in 1..cell.cell_count() {
                        cell.send_element(own(cell), passing)?;
                        passing = cell.receive_element(from_left(cell))?;
                        sum += passing;
                    }
                }
                Ok(sum)
            })
            .unwrap();
        let all: f64 = (0..cells).map(|c| f64::from(c) + 0.5).sum();
        assert_eq!(sums, vec![all; cells as usize]);
        assert_eq!(report.switches, 5);
        assert_eq!(report.words, u64::from(5 * cells * (cells - 1)));
    }
}

/// Cells may be many steps apart where they have no connections between them.
#[test]
fn free_cells_run_ahead_no_further_than_the_log_reaches() {
    let machine = build::machine("ring:6", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 3), (1, 0, 3)]));
    for workers in [1, 2, 6] {
        let (sums, _) = threads(image.clone(), workers)
            .try_run(|cell| {
                let mut sum = 0u64;
                for round in 0..500u64 {
                    let out = vec![[round; 3]; cell.connections_out("s")?.len()];
                    let mut inn = vec![[0u64; 3]; cell.connections_in("s")?.len()];
                    cell.exchange("s", &out, &mut inn)?;
                    sum += inn.iter().flatten().sum::<u64>();
                }
                Ok(sum)
            })
            .unwrap();
        let all = 3 * 499 * 500 / 2;
        assert_eq!(sums, [all, all, 0, 0, 0, 0]);
    }
}

#[test]
fn words_of_other_types_are_their_bits() {
    let world = threads(ring_image(2, 2), 2).same_places(false);
    let (words, _) = world
        .try_run(|cell| {
            if cell.id() == CellId(0) {
                let mut got = [[0.0; 2]];
                cell.exchange("s", &[[1.5f32, f32::from_bits(9)]], &mut got)?;
                return Ok(got[0].map(f32::to_bits));
            }
            let mut got = [[0i32; 2]];
            cell.exchange("s", &[[7i32, -1]], &mut got)?;
            Ok(got[0].map(|word| word as u32))
        })
        .unwrap();
    assert_eq!(words, [[7, u32::MAX], [1.5f32.to_bits(), 9]]);
}

#[test]
fn words_of_other_sizes_are_another_call() {
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        let world = World::new(ring_image(2, 2)).same_places(false).on(transport);
        let text = message(world.try_run(|cell| match cell.id().0 {
            0 => cell.exchange("s", &[[1.5f64; 2]], &mut [[0.0; 2]]),
            _ => cell.exchange("s", &[[7i16; 2]], &mut [[0i16; 2]]),
        }));
        assert!(
            text.contains("in words of 8 bytes; c1") && text.contains("of 2 bytes: all"),
            "{text}"
        );
    }
}

#[test]
fn an_order_holds_between_elements_of_other_cells() {
    let machine = build::machine("ring:6", |_| ());
    let x = ConnectionId;
    let set = build::set(&[(0, 1, 1), (3, 4, 2)]).with_order(vec![(x(1), x(0))]).unwrap();
    let world = threads(build::build(&machine, set), 3);
    let received = AtomicUsize::new(0);
    let program = |cell: &mut Cell<'_>| {
        for round in 1..=20 {
            cell.instantiate_phase("s/p0")?;
            match cell.id().0 {
                0 => {
                    cell.send_element(x(0), 1u32)?;
                    assert_eq!(received.load(Ordering::SeqCst), 2 * round);
                }
                1 => drop(cell.receive_element::<u32>(x(0))?),
                3 => {
                    cell.send_element(x(1), 1u32)?;
                    cell.send_element(x(1), 1u32)?;
                }
                4 => {
                    received.fetch_add(1, Ordering::SeqCst);
                    cell.receive_element::<u32>(x(1))?;
                    received.fetch_add(1, Ordering::SeqCst);
                    cell.receive_element::<u32>(x(1))?;
                }
                _ => {}
            }
        }
        Ok(())
    };
    world.try_run(program).unwrap();
    let error = world.try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        if cell.id().0 == 0 { cell.send_element(x(0), 1u32) } else { Ok(()) }
    });
    let text = message(error);
    assert!(text.contains("c0 holds x0 of s back until x1 is received <- c4 has ended"), "{text}");
}

#[test]
fn wrong_calls_end_the_run_and_name_what_is_wrong() {
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 1);
    let image = build::build(&machine, build::set(&[(0, 1, 2), (1, 2, 2)]));
    for workers in [1, 2, 4] {
        let world = threads(image.clone(), workers);
        let wrong = |cell: u32, call: fn(&mut Cell<'_>) -> Result<(), CellError>| {
            message(world.run(|c| {
                let result = c.instantiate_phase("s/p0");
                let _ = result.and_then(|()| if c.id().0 == cell { call(c) } else { Ok(()) });
                let _ = c.instantiate_phase("s/p1");
            }))
        };
        let m = wrong(1, |c| c.send_element(ConnectionId(1), 0u32));
        assert_eq!(m, "c1: x1 is not in the active phase s/p0");
        let m = wrong(1, |c| c.send_element(ConnectionId(0), 0u32));
        assert_eq!(m, "c1: c1 is not the source of x0");
        let m = wrong(0, |c| (0..3).try_for_each(|_| c.send_element(ConnectionId(0), 0u32)));
        assert_eq!(m, "c0: x0 has 2 words in s/p0, and all were sent");
        let m = wrong(2, |c| c.instantiate_phase("s/p7"));
        assert_eq!(m, "c2: the image has no phase \"s/p7\"");
        let m = wrong(0, |c| c.exchange(0, &[[0u32; 3]], &mut [[0u32; 0]; 0]));
        assert_eq!(m, "c0: words of x0 of outgoing buffers: expected 2, found 3");
        // A program that ignores errors cannot keep the run from ending.
        let error: Result<(Vec<()>, _), _> = world.run(|cell| {
            let _ = cell.id().0 == 2 && cell.instantiate_phase("nowhere/p0").is_ok();
            loop {
                let _ = cell.instantiate_phase("s/p0");
            }
        });
        assert!(message(error).contains("c2: the image has no phase"));
    }
}

/// Others are in the middle of exchanges with cells that are gone.
#[test]
fn a_panic_of_one_cell_ends_the_run_and_names_it() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for workers in [1, 2, 3] {
        let world = threads(ring_image(6, 1000), workers);
        let dropped = AtomicUsize::new(0);
        let error = world.try_run(|cell| {
            let _guard = Counted(&dropped);
            for round in 0.. {
                let out = vec![vec![round; 1000]];
                let mut inn = vec![vec![0u64; 1000]];
                cell.exchange("s", &out, &mut inn)?;
                if cell.id() == CellId(2) && round == 20 {
                    panic!("no more of {}", cell.id());
                }
            }
            Ok(())
        });
        assert_eq!(message(error), "c2 panicked: no more of c2");
        assert_eq!(dropped.into_inner(), 6, "every stack was unwound");
    }
}

/// A run ends while a cell is reading much: its source gets its call back, and writes where it was
/// read, only afterwards.
#[test]
fn a_run_that_ends_waits_for_who_is_reading() {
    const WORDS: usize = 1 << 19;
    for time in 0..20 {
        let begun = AtomicUsize::new(0);
        let mixed = AtomicBool::new(false);
        let world = threads(ring_image(3, WORDS as u32), 3);
        let error = world.try_run(|cell| {
            if cell.id() == CellId(2) {
                while begun.load(Ordering::Relaxed) < 2 {
                    std::thread::yield_now();
                }
                (0..time * 10_000).for_each(|_| std::hint::spin_loop());
                panic!("enough");
            }
            let mut out = vec![vec![1u64; WORDS]];
            let mut inn = vec![vec![0u64; WORDS]];
            begun.fetch_add(1, Ordering::Relaxed);
            let result = cell.exchange("s", &out, &mut inn);
            out[0].fill(2);
            std::hint::black_box(&out);
            // All of it was read, or nothing.
            let first = inn[0][0];
            if first == 2 || inn[0].iter().any(|&word| word != first) {
                mixed.store(true, Ordering::Relaxed);
            }
            result
        });
        assert_eq!(message(error), "c2 panicked: enough");
        assert!(!mixed.into_inner(), "words were read after their source had its call back");
    }
}

/// A program panics with something that panics when it is dropped: the run ends as for any other
/// panic, and no stack is unwound from which others read.
#[test]
fn what_panics_when_it_is_dropped_ends_the_run_and_nothing_else() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(()));
        }
    }
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        let world = World::new(ring_image(4, 3)).on(transport);
        let result = world.run(|cell| {
            if cell.id() == CellId(2) {
                std::panic::resume_unwind(Box::new(Bad));
            }
            // Its neighbours wait for it.
            let mut incoming = vec![vec![0u64; 3]];
            cell.exchange("s", &[[1u64; 3]], &mut incoming).is_err()
        });
        let error = result.map(|_| ()).unwrap_err();
        assert!(matches!(error, RunError::Panic { cell: CellId(2), .. }), "{error}");
    }
}

#[test]
fn cells_that_disagree_are_both_named() {
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 1);
    let image = build::build(&machine, build::set(&[(0, 1, 1), (1, 2, 1)]));
    for workers in [1, 2, 4] {
        let world = threads(image.clone(), workers);
        let text = message(world.try_run(|cell| {
            let phase = PhaseId(u32::from(cell.id() == CellId(2)));
            cell.instantiate_phase((0, phase))
        }));
        assert!(text.contains("c2 switches to s/p1"), "{text}");
        assert!(text.contains("switches to s/p0"), "{text}");
        let text = message(world.try_run(|cell| match cell.id() {
            CellId(1) => Ok(()),
            _ => cell.instantiate_phase("s/p0"),
        }));
        assert_eq!(text, "c1 has ended while c0 waits for all cells to switch to s/p0");
        // Cell 3 has no part in the set, so nobody waits for it.
        let text = message(world.try_run(|cell| {
            let out = vec![[1u32]; cell.connections_out("s")?.len()];
            let mut inn = vec![[1u32]; cell.connections_in("s")?.len()];
            if cell.id() == CellId(3) { Ok(()) } else { cell.exchange("s", &out, &mut inn) }
        }));
        let expected = "c3 has ended while c0 waits for all cells to switch to the exchange of s";
        assert_eq!(text, expected);
    }
}

#[test]
fn words_that_nobody_receives_are_found_at_the_switch_and_at_the_end() {
    for workers in [1, 2, 4] {
        let world = threads(ring_image(4, 2), workers);
        for then in 0..3 {
            let error = world.try_run(|cell| {
                cell.instantiate_phase("s/p0")?;
                if cell.id() == CellId(1) {
                    cell.send_element(own(cell), 7u32)?;
                }
                match then {
                    0 => Ok(()),
                    1 => cell.instantiate_phase("s/p0"),
                    _ => cell.exchange("s", &[[1u32, 2]], &mut [[0u32, 0]]),
                }
            });
            assert_eq!(message(error), "c2 has not received 1 words of x1 of s");
        }
    }
}

#[test]
fn waits_that_nobody_ends_are_told() {
    for workers in [1, 2, 3] {
        let world = threads(ring_image(3, 1), workers);
        let text = message(world.try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            let word: u32 = cell.receive_element(from_left(cell))?;
            cell.send_element(own(cell), word)
        }));
        assert!(text.starts_with("deadlock: c0 receives x2 of s and waits for a word"), "{text}");
        assert!(text.ends_with("which is where this began"), "{text}");
        let text = message(world.try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            match cell.id() {
                CellId(0) => cell.instantiate_phase("s/p0"),
                CellId(1) => cell.receive_element::<u32>(ConnectionId(0)).map(drop),
                _ => Ok(()),
            }
        }));
        assert!(text.contains("c1 receives x0") && text.contains("c0 waits for all"), "{text}");
    }
}

/// Cell 1 makes calls all the time, and hears of the end; cell 0 makes none until it has.
#[test]
fn a_cell_that_makes_no_call_for_too_long_is_named() {
    let options = ThreadOptions::workers(2).time_out(Duration::from_millis(50));
    let world = World::new(ring_image(2, 1)).on(Transport::Threads(options));
    let ended = AtomicBool::new(false);
    let error = world.try_run(|cell| {
        if cell.id() == CellId(0) {
            while !ended.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            return cell.compute(1);
        }
        loop {
            if let Err(error) = cell.compute(1) {
                ended.store(true, Ordering::Relaxed);
                return Err::<(), _>(error);
            }
        }
    });
    // Where the system keeps cell 1 from running for as long it is found first.
    let text = message(error);
    assert!(text.ends_with(" has been in its own code for more than 50ms"), "{text}");
}

/// Lists of positions for a set: outgoing positions in the first half of a vector, incoming ones
/// in the second; or anywhere.
fn lists_of(image: &Image, cell: CellId, block: u32, extent: u32, apart: bool) -> CellLists {
    let set = &image.sets()[0].set;
    let list = |x: ConnectionId, from: u32, salt: u32| -> Vec<u32> {
        let words = set.get(x).words / block;
        (0..words).map(|i| from + (i * 7 + x.0 * 3 + salt) % extent).collect()
    };
    let second = if apart { extent } else { 0 };
    let ends = |out: bool| {
        let mine = move |end: CellId| end == cell;
        set.iter().filter(move |(_, c)| mine(if out { c.source } else { c.target }))
    };
    let send = Positions::new(ends(true).map(|(x, _)| list(x, 0, 1)));
    let receive = Positions::new(ends(false).map(|(x, _)| list(x, second, 5)));
    CellLists::new(send, receive, block as usize)
}

fn exchanged(world: &World, block: u32, apart: bool, op: Op) -> Vec<Vec<f64>> {
    let program = |cell: &mut Cell<'_>| {
        let lists = lists_of(cell.image(), cell.id(), block, 5, apart);
        let value = |i: u32| f64::from(cell.id().0 * 100 + i).sqrt();
        let mut vector: Vec<f64> = (0..10 * block).map(value).collect();
        for _ in 0..4 {
            cell.exchange_lists("s", &lists, op, &mut vector)?;
            vector.iter_mut().for_each(|x| *x *= 0.75);
        }
        Ok(vector)
    };
    world.try_run(program).unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn vectors_are_exchanged_to_the_same_bits(
        pairs in prop::collection::vec((0u32..5, 0u32..5, 1u32..9), 0..14),
        block in 1u32..4,
        apart in any::<bool>(),
        workers in 1usize..6,
    ) {
        let machine = build::machine("ring:5", |p| p.channels_per_cell = 6);
        let pairs: Vec<_> = pairs.into_iter().map(|(s, t, w)| (s, t, w * block)).collect();
        let image = Arc::new(build::build(&machine, build::set(&pairs)));
        let fabric = World::new(image.clone());
        let threads = threads(image, workers);
        for op in [Op::Copy, Op::Add, Op::Min, Op::Max] {
            let (one, other) = (
                exchanged(&fabric, block, apart, op),
                exchanged(&threads, block, apart, op),
            );
            let bits = |all: &[Vec<f64>]| -> Vec<u64> {
                all.iter().flatten().map(|x| x.to_bits()).collect()
            };
            prop_assert_eq!(bits(&one), bits(&other), "{:?}", op);
        }
    }
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let world = threads(ring_image(2, 4), 2);
    let run = |send: &'static [u32], receive: &'static [u32], block, words| {
        message(world.try_run(move |cell| {
            if cell.id().0 == 1 {
                return Ok(());
            }
            let lists = CellLists::new(Positions::new([send]), Positions::new([receive]), block);
            cell.exchange_lists("s", &lists, Op::Add, &mut vec![0.0; words])
        }))
    };
    let m = run(&[0, 1, 2], &[0, 1, 2, 3], 1, 4);
    assert_eq!(m, "c0: words of x0 of outgoing buffers: expected 4, found 3");
    let m = run(&[0, 9], &[0, 1], 2, 18);
    assert_eq!(m, "c0: vector of the exchange of s: expected 20 words or more, found 18");
    let m = run(&[u32::MAX; 4], &[0; 4], 1, 18);
    assert!(m.contains("expected 4294967296 words or more, found 18"), "{m}");
    let m = run(&[0; 4], &[0; 4], 0, 18);
    assert!(m.contains("expected 4, found 0"), "{m}");
}
