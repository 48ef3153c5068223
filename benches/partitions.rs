//! The search for a partition beside single seeds: the section "Partitions" of `docs/quality.md`.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin partitions [-- FOLDER]
//! ```
//!
//! The bin `quality` writes the section with the rest of the page; this one replaces the section
//! alone. Clocks are those that the cost model predicts for the compiled set. Seconds are this
//! machine's, of reading and compiling once, on all its processors.

use std::path::Path;

use conset_benches::partition_table::{HEADING, section};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".to_owned());
    let path = Path::new(&folder).join("quality.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let start = page.find(HEADING).unwrap_or(page.len());
    let rest = &page[start..];
    let end =
        rest.get(1..).and_then(|rest| rest.find("\n## ")).map_or(page.len(), |at| start + at + 2);
    let before = page[..start].trim_end();
    let after = &page[end..];
    let gap = if after.is_empty() { "" } else { "\n" };
    std::fs::write(path, format!("{before}\n\n{}{gap}{after}", section()))
}
