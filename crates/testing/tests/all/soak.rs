//! A short soak test in every test run: nothing fails, and nothing of what it says it does is left out.

use conset_testing::soak::{self, SoakCounts};

/// Enough that each kind of test has its turn; `conset soak` runs as many as one likes.
const PROGRAMS: u64 = 40;

#[test]
fn every_test_has_its_turn() {
    let mut counts = SoakCounts::default();
    for seed in 1..=PROGRAMS {
        match soak::program(seed) {
            Ok(done) => counts.add(&done),
            Err(failure) => panic!("seed {seed}: {}\n{:?}", failure.1, failure.0),
        }
    }
    assert_eq!(counts.programs, PROGRAMS);
    let SoakCounts { runs, files, threads, reused, fused, messages, steps, .. } = counts;
    let done = [runs, files, threads, reused, fused, messages, steps, counts.transports];
    assert!(done.iter().all(|&count| count > 0), "{counts:?}");
    // About half of the programs are compared, most of them in several ways.
    assert!(counts.compared >= PROGRAMS / 4, "{counts:?}");
    // The time of each of them is counted, and no other: one name for each.
    let rows = counts.times.rows();
    assert!(rows.iter().all(|(what, time)| !time.is_zero() && !what.is_empty()), "{rows:?}");
}
