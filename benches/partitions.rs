//! The search for a partition beside single seeds: the section "Partitions" of `docs/quality.md`.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin partitions [-- FOLDER]
//! ```
//!
//! The bin `quality` writes the section with the rest of the page; this one replaces the section
//! alone. Clocks are those that the cost model predicts for the compiled set. Seconds are this
//! machine's, of reading and compiling once, on all its processors.

use conset_benches::partition_table::{HEADING, section};
use conset_benches::replace_section;

fn main() -> std::io::Result<()> {
    replace_section(HEADING, &section())
}
