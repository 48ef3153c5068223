//! The text form of documents, `.cset`: lines that people can read and write.
//!
//! `docs/format.md` has the grammar. The first line states the kind and the version: `conset set 1`.
//! Every other line is a statement that starts with a keyword or an id. `#` starts a comment;
//! indentation has no meaning. Ids are spelled as by their `Display`.
//!
//! ```text
//! conset set 1
//! machine iwarp:4x4
//! set halo
//!   x0 "north" c3 -> c4 words 133 max_latency 400
//!   c3 -> c5 words 12                # the next row, x1
//!   order x0 before x1
//! ```
//!
//! The writer streams. The reader is a hand-written parser without recursion that makes one pass
//! over the bytes, in time linear in the size of the file. It tracks byte offsets only; the line
//! and column are computed for an error. The parser checks ranges, limits and ids itself, so that
//! these errors have an exact position. For errors that only a constructor detects (a cycle in the
//! order, a duplicate name) the position is that of the closest enclosing statement.
//!
//! ```
//! let text = "conset set 1\nset halo\n  c3 -> c4 words 133\n";
//! let document = conset_ir::text::parse("halo.cset", text)?;
//! let written = conset_ir::text::write(&document);
//! assert_eq!(written, "conset set 1\nset halo\n  x0 c3 -> c4 words 133\n");
//!
//! let error = conset_ir::text::parse("halo.cset", "conset set 1\nset halo\n  c3 c4").unwrap_err();
//! assert_eq!(error.to_string(), "halo.cset:3:6: expected `->`, found `c4`");
//! # Ok::<(), conset_ir::InputError>(())
//! ```

mod image;
mod lexer;
mod machine;
mod parser;
mod phase;
mod set;
mod step;
mod writer;

pub use parser::parse;
pub use writer::{write, write_to};

/// The newest version that this program reads. It writes the lowest version that can express the
/// value.
pub const VERSION: u32 = 8;
