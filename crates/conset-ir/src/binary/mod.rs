//! The binary form: `.csb` for any document, `.csi` for images; one container for both.
//!
//! ```text
//! offset  bytes
//!      0      8  magic: 93 43 4F 4E 53 45 54 0A (not UTF-8, so never taken for text)
//!      8      1  major version; a newer one than ours is refused by name
//!      9      1  minor version; a newer one may have more at the end of the payload
//!     10      1  kind: 0 machine, 1 set, 2 routing, 3 timetable, 4 schedule, 5 image
//!     11      1  0
//!     12      8  bytes of the payload, little-endian
//!     20      n  payload: postcard values one after the other (`docs/format.md`)
//!   20+n      4  CRC-32 (IEEE) of all bytes before it, little-endian
//! ```
//!
//! Length and checksum are checked before anything is read, so a file that was cut or damaged is
//! recognised as such. The payload is not believed for that: counts are compared with the limits
//! and with the bytes that are left before anything is reserved, and the value is built by the
//! same constructors as from any other form.
//!
//! What makes it small: a route is written as its connection and, for each cell, one number of the
//! channel taken and of the link left by among the cell's own, a byte on the machines of practice.
//! Cells are written only where a route is not a chain of live links from its connection's source.

mod codec;
mod read;
mod write;

pub use read::parse;
pub use write::write;

/// The first bytes of every binary file.
pub const MAGIC: [u8; 8] = *b"\x93CONSET\n";
/// The newest major version this program reads; it writes the least that knows everything in the
/// value.
pub const MAJOR: u8 = 2;
/// The minor version this program writes.
pub const MINOR: u8 = 0;

const HEADER: usize = 20;
const CHECKSUM: usize = 4;
