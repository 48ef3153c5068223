//! Writes the section on message passing of `docs/quality.md` alone.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin messages [-- FOLDER]
//! ```

use conset_benches::message_table::{HEADING, section};
use conset_benches::replace_section;

fn main() -> std::io::Result<()> {
    replace_section(HEADING, &section())
}
