//! What came later and reads words of other cells too: direct passes, rounds of epochs, sized
//! exchanges, and reductions that are completed later.

use super::*;

/// Runs a program `TIMES` times; every cell must succeed.
fn run_many(loaded: &LoadedImage, program: impl Fn(&mut Cell<'_>) -> Result<(), CellError> + Sync) {
    for _ in 0..TIMES {
        let results = run_plainly(loaded, &program).unwrap();
        results.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
}

/// One direct pass round the ring, `hop` cells at a time.
fn pass_round(cell: &mut Cell<'_>, round: u32, hop: u32) -> Result<(), CellError> {
    let (id, cells) = (cell.id().0, cell.cell_count() as u32);
    let (target, source) = ((id + hop) % cells, (id + cells - hop % cells) % cells);
    let row = |from: u32| -> Vec<u32> { (0..round + 1).map(|at| from * 1000 + at).collect() };
    let mut words = row(id);
    let mut found = vec![u32::MAX; words.len()];
    cell.send_receive(CellId(target), &words, CellId(source), &mut found)?;
    // The target has read the words, so they may change at once.
    words.fill(u32::MAX);
    assert_eq!(found, row(source), "at c{id}");
    Ok(())
}

#[test]
fn words_are_passed_directly() {
    run_many(&neighbours(3), |cell| {
        for round in 0..4 {
            // To the next cell, to the one before, and to itself.
            for hop in [1, 2, 3] {
                pass_round(cell, round, hop)?;
            }
            // One way, to a cell that also gets offers of others.
            let mut word = [f64::from(round)];
            match cell.id().0 {
                0 => {
                    for source in [2, 1] {
                        cell.receive(CellId(source), &mut word)?;
                        assert_eq!(word, [f64::from(source * 10 + round)]);
                    }
                }
                id => cell.send(CellId(0), &[f64::from(id * 10 + round)])?,
            }
        }
        Ok(())
    });
}

/// The words of an offer lie in a vector that a cell frees as soon as its call ends.
#[test]
fn a_run_that_ends_early_frees_no_words_that_are_passed() {
    let loaded = neighbours(3);
    for time in 0..4 * TIMES {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            let id = cell.id().index();
            for round in 0..4 {
                if id == time % 3 && round as usize == time % 4 {
                    match time % 2 {
                        0 => std::panic::resume_unwind(Box::new("enough")),
                        _ => return Err(cell.abort("enough")),
                    }
                }
                pass_round(cell, round, 1 + round % 2)?;
            }
            Ok(())
        });
        let text = result.unwrap_err().to_string();
        assert!(text.ends_with("enough"), "{text}");
    }
}

#[test]
fn lists_are_handed_over_in_rounds() {
    run_many(&neighbours(3), |cell| {
        let id = cell.id().0;
        for round in 0..4 {
            let words = [u64::from(id), round];
            let all =
                [(CellId(0), &words[..]), (CellId(id), &words[..1]), (CellId(0), &words[1..])];
            let found = cell.exchange_any(&all[..1 + round as usize % 3])?;
            let senders: Vec<u32> = found.iter().map(|(source, _)| source.0).collect();
            let expected = if id == 0 { vec![0, 1, 2] } else { vec![id] };
            assert!(senders == expected || (id > 0 && round % 3 == 0 && senders.is_empty()));
            assert!(found.iter().all(|(source, list)| list[0] == u64::from(source.0)));
            // Every item is passed on until it is used up; a cell may be a round ahead of others.
            let mut epoch = cell.open::<[u32; 1]>();
            epoch.send(CellId((id + 1) % 3), [3])?;
            let settled = epoch.settle(|source, [left], out| {
                if left > 0 {
                    out.send(source, [left - 1]);
                }
            })?;
            assert_eq!((settled.rounds, settled.handled), (4, 4));
        }
        Ok(())
    });
}

#[test]
fn rows_of_any_length_are_read_where_they_are() {
    run_many(&neighbours(3), |cell| {
        for round in 0..4 {
            let set = cell.image().sets()[0].set.clone();
            let row = |&x: &ConnectionId| -> Vec<u16> {
                let words = (x.0 + round) % (set.get(x).words + 1);
                (0..words).map(|at| (x.0 * 100 + round * 10 + at) as u16).collect()
            };
            let outgoing: Vec<Vec<u16>> = cell.connections_out("s")?.iter().map(row).collect();
            let expected: Vec<Vec<u16>> = cell.connections_in("s")?.iter().map(row).collect();
            assert_eq!(cell.exchange_sized::<u16, _>("s", &outgoing)?, expected);
            exchange_as::<u32>(cell, round as usize, false)?;
        }
        Ok(())
    });
}

/// Results stay until all cells have read them, in whichever order reductions are completed.
#[test]
fn reductions_are_completed_later() {
    let machine = build::machine("ring:5", |p| p.channels_per_cell = 12);
    let loaded = loaded("ring:5", tree_sets(&machine, 2).unwrap());
    let trees = Collectives::new(&loaded.image).unwrap();
    run_many(&loaded, |cell| {
        let id = u64::from(cell.id().0);
        // One place in the program for all cells, since these compare it.
        let walk = |cell: &mut Cell<'_>| cell.allreduce(&trees, Op::Min, &mut [id]);
        for round in 0..6 {
            let mut sums = [id + round, 1, id];
            let first = cell.start_allreduce(&trees, Op::Add, &sums)?;
            sums.fill(u64::MAX);
            // This one waits for cells that have not yet started the first.
            let second = cell.start_allreduce(&trees, Op::Max, &[id * (round + 1)])?;
            if (id + round).is_multiple_of(3) {
                while !cell.test(&first)? {}
            }
            let mut most = [0];
            if id.is_multiple_of(2) {
                cell.wait_allreduce(second, &mut most)?;
                cell.wait_allreduce(first, &mut sums)?;
            } else {
                cell.wait_allreduce(first, &mut sums)?;
                // Another walk over the same tree, while the result of the second is not taken.
                walk(cell)?;
                cell.wait_allreduce(second, &mut most)?;
            }
            if id.is_multiple_of(2) {
                walk(cell)?;
            }
            assert_eq!((sums, most), ([10 + 5 * round, 5, 10], [4 * (round + 1)]));
        }
        Ok(())
    });
}

/// The array that a cell leaves in the tree is read by others when the run has already ended.
#[test]
fn a_run_that_ends_early_keeps_started_reductions() {
    let machine = build::machine("ring:5", |p| p.channels_per_cell = 12);
    let loaded = loaded("ring:5", tree_sets(&machine, 2).unwrap());
    let trees = Collectives::new(&loaded.image).unwrap();
    for time in 0..2 * TIMES {
        let result = run_plainly(&loaded, |cell| -> Result<(), CellError> {
            for round in 0..4 {
                let started = cell.start_allreduce(&trees, Op::Add, &[1.0, f64::from(round)])?;
                if cell.id().index() == time % 5 && round as usize == time % 4 {
                    match time % 2 {
                        0 => std::panic::resume_unwind(Box::new("enough")),
                        _ => return Err(cell.abort("enough")),
                    }
                }
                cell.test(&started)?;
                cell.wait_allreduce(started, &mut [0.0; 2])?;
            }
            Ok(())
        });
        let text = result.unwrap_err().to_string();
        assert!(text.ends_with("enough"), "{text}");
    }
}
