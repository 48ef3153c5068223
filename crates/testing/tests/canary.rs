//! The soak test finds a planted bug of the fabric: `cargo test -p conset-testing --features canary --test
//! canary`. With the feature everything that uses the fabric is wrong, so no other test has it.

use conset_testing::{Case, shrink, soak};

/// Programs within which the bug must be found. A thousand take seconds.
const PROGRAMS: u64 = 2000;

#[test]
fn a_planted_bug_is_found_and_the_program_shrunk() {
    let found = (1..=PROGRAMS).find_map(|seed| Some((seed, soak::program(seed).err()?)));
    let (seed, failure) = found.expect("the planted bug is found");
    let (case, message) = *failure;
    assert!(message.contains("panicked at"), "{message}");
    let choices = soak::Choices::of_seed(seed);
    let small = shrink(&case, 400, &mut |case| soak::fails(case, choices).is_err());
    assert!(soak::fails(&small, choices).is_err(), "the smaller program fails too");
    let connections = |case: &Case| case.program.sets().iter().map(|set| set.len()).sum::<usize>();
    assert!(connections(&small) <= connections(&case).min(12), "seed {seed}: {small:?}");
}
