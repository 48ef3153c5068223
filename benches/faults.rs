//! The matrix of faults of the hardware and outcomes: a section of `docs/hardening.md`.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin faults              # 10^5 plans in phases, and as many by messages
//! $ cargo run --release -p conset-benches --bin faults -- 1000      # fewer plans, printed
//! ```

use std::io;
use std::path::Path;

use conset_benches::say;
use conset_testing::fault_matrix::FaultMatrix;

/// Plans in phases.
const PLANS: u64 = 100_000;

/// What the section stands between.
const MARKS: [&str; 2] = ["<!-- fault matrix -->\n", "<!-- end of fault matrix -->\n"];

#[allow(clippy::print_stdout, reason = "a table of few plans is printed")]
fn main() -> io::Result<()> {
    let given = std::env::args().nth(1);
    let plans: Result<Option<u64>, _> = given.as_deref().map(str::parse).transpose();
    let plans = plans.map_err(|_| io::Error::other("expected a number of plans"))?;
    let mut next = 0;
    let matrix = FaultMatrix::run(plans.unwrap_or(PLANS), |done| {
        if done >= next {
            say(&format!("{done} plans\n"));
            next = done + 10_000;
        }
    });
    if given.is_some() {
        print!("{}", matrix.table());
        return Ok(());
    }
    let path = Path::new("docs/hardening.md");
    let text = std::fs::read_to_string(path)?;
    let missing = || io::Error::other("docs/hardening.md does not have the marks of the matrix");
    let (before, rest) = text.split_once(MARKS[0]).ok_or_else(missing)?;
    let (_, after) = rest.split_once(MARKS[1]).ok_or_else(missing)?;
    std::fs::write(path, format!("{before}{}\n{}\n{}{after}", MARKS[0], matrix.table(), MARKS[1]))
}
