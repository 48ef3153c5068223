//! The soak test finds a planted bug of the fabric that changes clocks and nothing else, which the second
//! simulator alone can find: `cargo test -p conset-testing --features canary-clocks --test canary_clocks`.

use conset_testing::soak;

/// Programs within which the bug must be found.
const PROGRAMS: u64 = 500;

#[test]
fn a_planted_bug_of_clocks_is_found_by_the_second_simulator() {
    let found = (1..=PROGRAMS).find_map(|seed| Some((seed, soak::program(seed).err()?)));
    let (seed, failure) = found.expect("the planted bug is found");
    let (_, message) = *failure;
    assert!(message.contains("second simulator: "), "seed {seed}: {message}");
}
