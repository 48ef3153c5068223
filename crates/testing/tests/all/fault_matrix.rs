//! Some hundred plans of faults, in each way of exchange ([`conset_testing::fault_matrix`]): what must hold is asserted there.

use conset::fabric::Outcome;
use conset_testing::fault_matrix::FaultMatrix;

#[test]
fn nothing_is_silent_with_check_words() {
    let matrix = FaultMatrix::run(400, |_| ());
    assert!(matrix.plans() >= 800, "{} plans", matrix.plans());
    assert!(2 * matrix.acted() > matrix.plans(), "{} of {} acted", matrix.acted(), matrix.plans());
    assert_eq!(matrix.runs(Outcome::Silent, true), 0);
    for outcome in [Outcome::Delivered, Outcome::Detected, Outcome::TimedOut] {
        assert!(matrix.runs(outcome, true) > 50, "{outcome}: {}", matrix.runs(outcome, true));
    }
    assert!(matrix.runs(Outcome::Silent, false) > 20, "plain runs do not notice changed values");
    assert!(matrix.recovered() > 700, "{} plans", matrix.recovered());
    let table = matrix.table();
    for row in [
        "| cell misses a switch |",
        "| word reordered |",
        "**By step plans**",
        "| ring:5, six connections | steps |",
    ] {
        assert!(table.contains(row), "{row} is missing:\n{table}");
    }
}
