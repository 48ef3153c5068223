//! Random programs with fixed seeds, in every test run. To test more programs by hand:
//!
//! ```text
//! CONSET_PROGRAMS=20000 cargo test --release -p conset-testing -- --ignored half_duplex
//! ```
//!
//! `CONSET_FIRST=SEED` starts with another seed. A failing program is printed as a file with its
//! seed; `Case::of_seed(SEED, KIND)` generates it again.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use conset::ir::{Connection, ConnectionSet, Duplex};
use conset::{Algorithm, Objective};
use conset_testing::{Case, CaseKind, check};

/// Number of programs of any kind whose features are counted.
const PROGRAMS: u64 = 1200;

/// How many of them are compiled and run in every test run; `conset soak` runs the others.
const CHECKED: u64 = 300;

/// Number of failing programs that are printed.
const MAX_SHOWN: usize = 5;

/// Checks the programs of a range of seeds and prints those that fail.
fn all_hold(seeds: std::ops::Range<u64>, kind: CaseKind) {
    let (mut shown, mut failed) = (String::new(), 0);
    for seed in seeds.clone() {
        let case = Case::of_seed(seed, kind);
        let Err(cause) = catch_unwind(AssertUnwindSafe(|| check(&case))) else { continue };
        failed += 1;
        if failed <= MAX_SHOWN {
            let cause = cause.downcast::<String>().map_or_else(
                |other| other.downcast::<&str>().map_or_else(|_| String::new(), |s| s.to_string()),
                |cause| *cause,
            );
            writeln!(shown, "seed {seed}: {cause}\n{case:?}").expect("strings can be written");
        }
    }
    assert_eq!(failed, 0, "of {} programs ({kind:?}):\n{shown}", seeds.end - seeds.start);
}

/// The seeds given by the environment.
fn requested_seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name} is a whole number")),
        Err(_) => default,
    };
    let first = number("CONSET_FIRST", 0);
    first..first + number("CONSET_PROGRAMS", 1000)
}

/// The generated cases cover what [`Case`] documents; otherwise the tests below prove little.
#[test]
fn the_programs_cover_the_documented_range() {
    let cases: Vec<Case> = (0..PROGRAMS).map(|seed| Case::of_seed(seed, CaseKind::Any)).collect();
    let many = |what: &str, least: usize, is: &dyn Fn(&Case) -> bool| {
        let found = cases.iter().filter(|case| is(case)).count();
        assert!(found >= least, "{found} programs with {what}");
    };
    let any = |case: &Case, is: &dyn Fn(&Connection) -> bool| {
        case.program.sets().iter().flat_map(|set| set.connections()).any(is)
    };
    let to_itself = |c: &Connection| c.source == c.target;
    let half = |case: &Case| case.machine.parameters().duplex == Duplex::Half;
    let is_uneven = |set: &ConnectionSet| {
        let words = set.connections().iter().map(|c| c.words);
        words.clone().max() > words.min().map(|least| 2 * least)
    };
    many("half duplex", 150, &half);
    many("timed starts", 150, &|c| c.machine.parameters().has_timed_starts());
    many("half duplex and connections to itself", 75, &|c| half(c) && any(c, &to_itself));
    many("uneven words", 150, &|c| c.program.sets().iter().any(|set| is_uneven(set)));
    many("very many words", 5, &|c| any(c, &|connection| connection.words > 1 << 24));
    many("several sets", 75, &|c| c.program.sets().len() > 1);
    many("an order", 50, &|c| c.program.sets().iter().any(|set| !set.order().is_empty()));
    many("an empty set", 5, &|c| c.program.sets().iter().any(|set| set.is_empty()));
    many("a dead cell", 20, &|c| !c.machine.dead_cells().is_empty());
    many("dead links", 20, &|c| !c.machine.dead_links().is_empty());
    let any_bandwidth = |c: &Connection| c.min_bandwidth.is_some();
    many("required bandwidths", 50, &|c| any(c, &any_bandwidth));
    many("required latencies", 50, &|c| any(c, &|connection| connection.max_latency.is_some()));
    many("lists of nodes", 50, &|c| c.program.sets().iter().any(|set| set.nodes().is_some()));
    many("fewest phases", 50, &|c| c.options.objective == Objective::Phases);
    many("the paper's algorithm", 20, &|c| c.options.algorithm == Algorithm::Paper);
    let parameters = ["stream_setup", "t_sync", "t_phase", "streams", "channel_depth"];
    for name in parameters.into_iter().chain(["link_clocks_per_word", "access_clocks_per_word"]) {
        let number = |case: &Case| {
            let numbers = case.machine.parameters().numbers();
            let row = numbers.into_iter().find(|row| row.0 == name).expect("a parameter");
            (row.1, row.2, row.3)
        };
        many(&format!("the least {name}"), 20, &|c| number(c).0 == number(c).1);
        many(&format!("the greatest {name}"), 4, &|c| number(c).0 == number(c).2);
    }
}

#[test]
fn any_program_is_compiled_and_every_word_arrives() {
    all_hold(0..CHECKED, CaseKind::Any);
}

#[test]
fn half_duplex_cells_can_send_to_themselves() {
    all_hold(0..100, CaseKind::HalfDuplexToItself);
}

#[test]
#[ignore = "run by hand with any number of programs: see above"]
fn many_programs_of_any_kind() {
    all_hold(requested_seeds(), CaseKind::Any);
}

#[test]
#[ignore = "run by hand with any number of programs: see above"]
fn many_half_duplex_cells_that_send_to_themselves() {
    all_hold(requested_seeds(), CaseKind::HalfDuplexToItself);
}
