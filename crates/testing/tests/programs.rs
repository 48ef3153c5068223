//! Random programs with fixed seeds, in every run of the tests; as many more as one likes by hand:
//!
//! ```text
//! CONSET_PROGRAMS=20000 cargo test --release -p conset-testing -- --ignored half_duplex
//! ```
//!
//! `CONSET_FIRST=SEED` begins with another seed. A program that fails is shown as a file with its
//! seed; `Case::of_seed(SEED, KIND)` is that program again.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use conset_testing::{Case, Kind, check};

/// Programs that are shown when many fail.
const SHOWN: usize = 5;

/// Checks the programs of some seeds; shows those that fail.
fn all_hold(seeds: std::ops::Range<u64>, kind: Kind) {
    let (mut shown, mut failed) = (String::new(), 0);
    for seed in seeds.clone() {
        let case = Case::of_seed(seed, kind);
        let Err(cause) = catch_unwind(AssertUnwindSafe(|| check(&case))) else { continue };
        failed += 1;
        if failed <= SHOWN {
            let cause = cause.downcast::<String>().map_or_else(
                |other| other.downcast::<&str>().map_or_else(|_| String::new(), |s| s.to_string()),
                |cause| *cause,
            );
            writeln!(shown, "seed {seed}: {cause}\n{case:?}").expect("strings can be written");
        }
    }
    assert_eq!(failed, 0, "of {} programs ({kind:?}):\n{shown}", seeds.end - seeds.start);
}

/// Seeds as the environment asks for them.
fn asked() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name} is a whole number")),
        Err(_) => default,
    };
    let first = number("CONSET_FIRST", 0);
    first..first + number("CONSET_PROGRAMS", 1000)
}

#[test]
fn any_program_is_compiled_and_every_word_arrives() {
    all_hold(0..400, Kind::Any);
}

#[test]
fn half_duplex_cells_that_send_to_themselves_are_no_trouble() {
    all_hold(0..100, Kind::HalfDuplexToItself);
}

#[test]
#[ignore = "as many as one likes, by hand: see above"]
fn many_programs_of_any_kind() {
    all_hold(asked(), Kind::Any);
}

#[test]
#[ignore = "as many as one likes, by hand: see above"]
fn many_half_duplex_cells_that_send_to_themselves() {
    all_hold(asked(), Kind::HalfDuplexToItself);
}
