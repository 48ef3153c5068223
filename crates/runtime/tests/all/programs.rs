//! Whole programs, right ones and wrong ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conset_fabric::{FaultKind, WaitCause};
use conset_ir::{CellId, ConnectionId, PhaseId};
use conset_runtime::{Cell, CellError, PhaseName, RunError, World};

use crate::common::{build, from_left, message, own, ring_image, ring_image_with, unlike_image};

#[test]
fn a_sum_goes_round_the_ring() {
    for cells in [2, 3, 8, 64] {
        let world = World::new(ring_image(cells, cells - 1));
        let (sums, report) = world
            .try_run(|cell| {
                cell.instantiate_phase("s/p0")?;
                let (mut sum, mut passing) = (0.0, f64::from(cell.id().0) + 0.5);
                for _ in 1..cell.cell_count() {
                    cell.send_element(own(cell), passing)?;
                    passing = cell.receive_element(from_left(cell))?;
                    sum += passing;
                }
                Ok(sum + f64::from(cell.id().0) + 0.5)
            })
            .unwrap();
        let all: f64 = (0..cells).map(|c| f64::from(c) + 0.5).sum();
        assert_eq!(sums, vec![all; cells as usize]);
        // A step is injection, link and taking out: 2 + 2 + 2.
        assert_eq!(report.clocks, 528 + 6 * u64::from(cells - 1));
        assert_eq!((report.switches, report.switch_clocks), (1, 528));
        assert_eq!(report.words, u64::from(cells * (cells - 1)));
    }
}

#[test]
fn words_of_all_types_keep_their_bits() {
    let world = World::new(ring_image(2, 6));
    world
        .try_run(|cell| {
            cell.instantiate_phase(PhaseName::new("s", 0))?;
            let (to, from) = (own(cell), from_left(cell));
            cell.send_element(to, -1.5f64)?;
            cell.send_element(to, u64::MAX)?;
            cell.send_element(to, -7i64)?;
            cell.send_element(to, 9u32)?;
            cell.send_element(to, -3i32)?;
            cell.send_element(to, 0.25f32)?;
            assert_eq!(cell.receive_element::<f64>(from)?, -1.5);
            assert_eq!(cell.receive_element::<u64>(from)?, u64::MAX);
            assert_eq!(cell.receive_element::<i64>(from)?, -7);
            assert_eq!(cell.receive_element::<u32>(from)?, 9);
            assert_eq!(cell.receive_element::<i32>(from)?, -3);
            assert_eq!(cell.receive_element::<f32>(from)?, 0.25);
            Ok(())
        })
        .unwrap();
}

/// An exchange with additions, several times over, against the same sums done directly.
#[test]
fn a_halo_exchange_adds_up() {
    for (spec, half) in
        [("iwarp:4x4", false), ("mesh:3x2", true), ("torus:2x2x2", false), ("ring:1", true)]
    {
        let image = Arc::new(unlike_image(spec, half, 7));
        let value =
            |round: u32, x: usize, word: usize| f64::from(round + 1) * (x * 10 + word) as f64;
        let program = |cell: &mut Cell<'_>| {
            let set = cell.image().sets()[0].set.clone();
            let (out, inn) = (cell.connections_out(0)?, cell.connections_in("s")?);
            let mut total = 0.0;
            for round in 0..3 {
                let words = |x: &ConnectionId| set.get(*x).words as usize;
                let outgoing: Vec<Vec<f64>> = out
                    .iter()
                    .map(|x| (0..words(x)).map(|word| value(round, x.index(), word)).collect())
                    .collect();
                let mut incoming: Vec<Vec<f64>> =
                    inn.iter().map(|x| vec![f64::NAN; words(x)]).collect();
                cell.compute(100)?;
                cell.exchange("s", &outgoing, &mut incoming)?;
                total += incoming.iter().flatten().sum::<f64>();
            }
            Ok((total, cell.clock()))
        };
        let world = World::new(image.clone()).trace(true);
        let (totals, report) = world.try_run(program).unwrap();
        let set = &image.sets()[0].set;
        for (cell, (total, _)) in totals.iter().enumerate() {
            let mut expected = 0.0;
            for round in 0..3 {
                for (x, connection) in set.iter().filter(|(_, c)| c.target.index() == cell) {
                    expected += (0..connection.words as usize)
                        .map(|word| value(round, x.index(), word))
                        .sum::<f64>();
                }
            }
            assert_eq!(*total, expected, "{spec} c{cell}");
        }
        // The runtime takes exactly the time of the exchange itself.
        let alone = conset_fabric::run_checked(image.clone(), 0, 0, false).unwrap();
        assert_eq!(report.clocks, 3 * (100 + alone.report.clocks), "{spec}");
        assert_eq!(report.words, 3 * alone.report.words);
        assert_eq!(report.word_hops, 3 * alone.report.word_hops);
        assert_eq!(world.try_run(program).unwrap(), (totals, report), "every run is the same");
    }
}

#[test]
fn local_work_takes_its_clocks_and_cells_may_end_early() {
    let world = World::new(ring_image(4, 1));
    let (clocks, report) = world
        .try_run(|cell| {
            cell.compute(1000 * u64::from(cell.id().0))?;
            Ok(cell.clock())
        })
        .unwrap();
    assert_eq!(clocks, [0, 1000, 2000, 3000]);
    assert_eq!((report.clocks, report.switches), (3000, 0));
    // Cell 2 sends and ends; its word is received long after.
    let (clocks, _) = world
        .try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            match cell.id().0 {
                2 => cell.send_element(own(cell), 1u32)?,
                3 => {
                    cell.compute(500)?;
                    assert_eq!(cell.receive_element::<u32>(from_left(cell))?, 1);
                }
                _ => {}
            }
            Ok(cell.clock() - 528)
        })
        .unwrap();
    assert_eq!(clocks, [0, 0, 2, 502]);
}

#[test]
fn an_order_holds_between_elements_of_other_cells() {
    let machine = build::machine("ring:6", |_| ());
    let x = ConnectionId;
    let set = build::set(&[(0, 1, 1), (3, 4, 2)]).with_order(vec![(x(1), x(0))]).unwrap();
    let world = World::new(build::build(&machine, set));
    let (clocks, _) = world
        .try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            match cell.id().0 {
                0 => cell.send_element(x(0), 1u32)?,
                1 => drop(cell.receive_element::<u32>(x(0))?),
                3 => {
                    cell.send_element(x(1), 1u32)?;
                    cell.compute(300)?;
                    cell.send_element(x(1), 1u32)?;
                }
                4 => {
                    cell.receive_element::<u32>(x(1))?;
                    cell.receive_element::<u32>(x(1))?;
                }
                _ => {}
            }
            Ok(cell.clock() - 528)
        })
        .unwrap();
    assert_eq!(clocks, [310, 314, 0, 304, 308, 0]);
}

#[test]
fn a_stream_is_set_up_once_for_all_its_elements() {
    let world = World::new(ring_image_with(2, 3, |p| p.stream_setup = 40));
    let (clocks, _) = world
        .try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            for _ in 0..3 {
                if cell.id() == CellId(0) {
                    cell.send_element(own(cell), 0u64)?;
                } else {
                    cell.receive_element::<u64>(from_left(cell))?;
                }
            }
            Ok(cell.clock() - 528)
        })
        .unwrap();
    assert_eq!(clocks, [40 + 6, 40 + 2 + 2 + 6]);
}

#[test]
fn wrong_calls_end_the_run_and_name_what_is_wrong() {
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 1);
    let world = World::new(build::build(&machine, build::set(&[(0, 1, 2), (1, 2, 2)])));
    let wrong = |call: &(dyn Fn(&mut Cell<'_>) -> Result<(), CellError> + Sync)| {
        let ended = AtomicUsize::new(0);
        let error = world.run(|cell| {
            let result = cell.instantiate_phase("s/p0").and_then(|()| call(cell));
            // Whatever the program makes of it, the run ends; others get to know.
            ended.fetch_add(usize::from(result.is_err()), Ordering::Relaxed);
            let _ = cell.instantiate_phase("s/p1");
        });
        assert!(ended.into_inner() >= 1);
        message(error)
    };
    let at = |cell: u32, f: fn(&mut Cell<'_>) -> Result<(), CellError>| {
        move |c: &mut Cell<'_>| if c.id() == CellId(cell) { f(c) } else { c.compute(10) }
    };
    let m = wrong(&at(1, |c| c.send_element(ConnectionId(1), 0u32)));
    assert_eq!(m, "c1: x1 is not in the active phase s/p0");
    let m = wrong(&at(0, |c| c.send_element(ConnectionId(9), 0u32)));
    assert_eq!(m, "c0: x9 is not in the active phase s/p0");
    let m = wrong(&at(1, |c| c.send_element(ConnectionId(0), 0u32)));
    assert_eq!(m, "c1: c1 is not the source of x0");
    let m = wrong(&at(3, |c| c.receive_element::<f64>(ConnectionId(0)).map(drop)));
    assert_eq!(m, "c3: c3 is not the target of x0");
    let m = wrong(&at(0, |c| (0..3).try_for_each(|_| c.send_element(ConnectionId(0), 0u32))));
    assert_eq!(m, "c0: x0 has 2 words in s/p0, and all were sent");
    let m = wrong(&at(2, |c| c.instantiate_phase("s/p7")));
    assert_eq!(m, "c2: the image has no phase \"s/p7\"");
    let m = wrong(&at(2, |c| c.connections_in("t").map(drop)));
    assert_eq!(m, "c2: the image has no set \"t\"");
    let m = wrong(&at(0, |c| c.exchange(0, &[[0u32; 2], [0; 2]], &mut [[0u32; 0]; 0])));
    assert_eq!(m, "c0: number of outgoing buffers: expected 1, found 2");
    let m = wrong(&at(0, |c| c.exchange(0, &[[0u32; 3]], &mut [[0u32; 0]; 0])));
    assert_eq!(m, "c0: words of x0 of outgoing buffers: expected 2, found 3");
    let m = message(world.try_run(|cell| cell.send_element(ConnectionId(0), 0u32)));
    assert_eq!(m, "c0: no phase is active");
}

#[test]
fn a_program_that_ignores_errors_cannot_keep_the_run_from_ending() {
    let world = World::new(ring_image(4, 1));
    let error = world.run(|cell| {
        if cell.id() == CellId(2) {
            assert!(cell.instantiate_phase("nowhere/p0").is_err());
        }
        loop {
            let _ = cell.instantiate_phase("s/p0");
        }
    });
    let error: Result<(Vec<()>, _), _> = error;
    assert!(message(error).contains("c2: the image has no phase"));
}

#[test]
fn a_panic_of_one_cell_ends_the_run_and_names_it() {
    let world = World::new(ring_image(4, 1));
    let dropped = AtomicUsize::new(0);
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let error = world.try_run(|cell| {
        let _guard = Counted(&dropped);
        cell.instantiate_phase("s/p0")?;
        if cell.id() == CellId(2) {
            panic!("no more of {}", cell.id());
        }
        cell.receive_element::<u32>(from_left(cell)).map(drop)
    });
    assert_eq!(message(error), "c2 panicked: no more of c2");
    assert_eq!(dropped.into_inner(), 4, "every stack was unwound");
}

#[test]
fn cells_that_disagree_are_both_named() {
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 1);
    let world = World::new(build::build(&machine, build::set(&[(0, 1, 1), (1, 2, 1)])));
    let error = world.try_run(|cell| {
        let phase = PhaseId(u32::from(cell.id() == CellId(2)));
        cell.instantiate_phase((0, phase))
    });
    assert_eq!(message(error), "c0 switches to s/p0 while c2 switches to s/p1");
    let error = world.try_run(|cell| match cell.id() {
        CellId(1) => Ok(()),
        _ => cell.instantiate_phase("s/p0"),
    });
    let expected = "c1 has ended while c0 waits for all cells to switch to s/p0";
    assert_eq!(message(error), expected);
}

#[test]
fn words_that_nobody_receives_are_found_at_the_switch_and_at_the_end() {
    let world = World::new(ring_image(4, 2));
    for again in [true, false] {
        let error = world.try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            if cell.id() == CellId(1) {
                cell.send_element(own(cell), 7u32)?;
            }
            if again { cell.instantiate_phase("s/p0") } else { Ok(()) }
        });
        let Err(RunError::Fault(fault)) = error else { panic!("{error:?}") };
        assert!(
            matches!(
                fault.kind,
                FaultKind::Undrained { cell: CellId(2), connection: ConnectionId(1), words: 1, .. }
            ),
            "{fault}"
        );
    }
}

#[test]
fn a_ring_of_receives_is_a_deadlock_with_its_cycle() {
    let world = World::new(ring_image(3, 1));
    let error = world.try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        let word: u32 = cell.receive_element(from_left(cell))?;
        cell.send_element(own(cell), word)
    });
    let Err(RunError::Fault(fault)) = error else { panic!("{error:?}") };
    let FaultKind::Deadlock { waits, closed, .. } = &fault.kind else { panic!("{fault}") };
    assert!(closed, "{fault}");
    let cells: Vec<u32> = waits
        .iter()
        .filter(|w| matches!(w.cause, WaitCause::Words { .. }))
        .map(|w| w.cell.0)
        .collect();
    assert_eq!(cells.len(), 3, "{fault}");
}

#[test]
fn a_receive_from_a_cell_that_waits_at_a_switch_is_a_deadlock_and_so_is_one_from_an_ended_cell() {
    let world = World::new(ring_image(3, 1));
    let error = world.try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        match cell.id() {
            CellId(0) => cell.instantiate_phase("s/p0"),
            CellId(1) => cell.receive_element::<u32>(ConnectionId(0)).map(drop),
            _ => Ok(()),
        }
    });
    let text = message(error);
    assert!(text.contains("c1 receives x0") && text.contains("c0 waits for all cells"), "{text}");
    let error = world.try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        match cell.id() {
            CellId(1) => cell.receive_element::<u32>(ConnectionId(0)).map(drop),
            _ => Ok(()),
        }
    });
    let text = message(error);
    assert!(text.contains("c0 does not send x0") && text.contains("c0 has ended"), "{text}");
}

#[test]
fn an_image_with_words_missing_is_refused_by_the_exchange() {
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 1);
    let set = build::set(&[(0, 1, 1), (1, 2, 1)]);
    let tables = build::tables(&machine, &set);
    assert_eq!(tables.len(), 2);
    let world = World::new(build::image(&machine, set, &tables[..1]));
    let error = world.try_run(|cell| {
        let out = vec![[0u32]; cell.connections_out(0)?.len()];
        let mut inn = vec![[0u32]; cell.connections_in(0)?.len()];
        cell.exchange(0, &out, &mut inn)
    });
    assert!(message(error).contains("x1: 1 of its words missing"));
}

#[test]
fn dead_cells_and_switches_run_no_program() {
    let machine = conset_ir::Machine::new(
        "holed",
        conset_ir::Topology::Mesh { dims: vec![3, 2] },
        conset_ir::Parameters::iwarp(),
        vec![CellId(1)],
        vec![],
    );
    let machine = Arc::new(machine.unwrap());
    let image = build::build(&machine, build::set(&[(0, 2, 3), (5, 0, 1)]));
    let (ids, _) = World::new(image).try_run(|cell| Ok(cell.id().0)).unwrap();
    assert_eq!(ids, [0, 2, 3, 4, 5]);
    let machine = build::machine("fat-tree:5", |_| ());
    let image = build::build(&machine, build::all_to_all(5, 2));
    let (received, _) = World::new(image)
        .try_run(|cell| {
            let out = vec![[cell.id().0; 2]; cell.connections_out(0)?.len()];
            let mut inn = vec![[0u32; 2]; cell.connections_in(0)?.len()];
            cell.exchange(0, &out, &mut inn)?;
            let mut from: Vec<u32> = inn.iter().map(|words| words[1]).collect();
            from.sort_unstable();
            Ok(from)
        })
        .unwrap();
    assert_eq!(received[2], [0, 1, 3, 4]);
}

#[test]
fn a_deep_program_needs_the_stack_it_is_given() {
    fn depth(n: u64) -> u64 {
        if n == 0 { 0 } else { std::hint::black_box(1) + std::hint::black_box(depth(n - 1)) }
    }
    let world = World::new(ring_image(4, 1)).stack_size(4 << 20);
    let (sums, _) = world.run(|_| depth(10_000)).unwrap();
    assert_eq!(sums, [10_000; 4]);
}

#[test]
fn a_program_may_give_up_with_a_reason() {
    use conset_runtime::{ThreadOptions, Transport};
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        let world = World::new(ring_image(4, 1)).on(transport);
        let result = world.try_run(|cell| {
            if cell.id() == CellId(2) {
                let error = cell.abort("it diverges");
                assert_eq!(error, CellError::Program { message: "it diverges".to_owned() });
                return Err(error);
            }
            cell.exchange("s", &[[1.0]], &mut [[0.0]])
        });
        assert_eq!(message(result), "c2: it diverges");
    }
}
