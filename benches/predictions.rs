//! Writes the section on predictions of `docs/quality.md` alone.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin predictions [-- FOLDER]
//! ```

use conset_benches::prediction_table::{HEADING, section};
use conset_benches::replace_section;

fn main() -> std::io::Result<()> {
    replace_section(HEADING, &section())
}
