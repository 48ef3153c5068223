//! The text form, `.cset`: lines for people to read and write (`docs/format.md` has the grammar).
//!
//! The first line says what the file holds and in which version: `conset set 1`. Every other line
//! starts with a keyword or an id and ends with the line; `#` starts a comment; indentation is for
//! the eye. Ids have the spelling of their `Display`.
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
//! The writer streams; the reader is one pass by hand over bytes, without recursion, in time
//! linear in the file. It keeps byte offsets and nothing else; an error counts its line then.
//! Everything that can be checked where it stands is checked there, so that the error points at
//! it: ranges, limits, ids, cells the machine has not. What a constructor alone can see (a cycle
//! in the order, a name used twice) is pointed at as nearly as can be.

mod image;
mod lexer;
mod machine;
mod parser;
mod phase;
mod set;
mod writer;

pub use parser::parse;
pub use writer::{write, write_to};

/// The newest version this program reads; it writes the least that knows everything in the value.
pub const VERSION: u32 = 2;
