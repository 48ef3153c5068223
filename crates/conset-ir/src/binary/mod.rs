//! The binary form of documents, in a container with a version and a checksum.
//!
//! Files are named `.csb`, or `.csi` if they hold an image.
//!
//! ```text
//! offset  bytes
//!      0      8  magic: 93 43 4F 4E 53 45 54 0A (not UTF-8, so never mistaken for text)
//!      8      1  major version; newer ones are refused
//!      9      1  minor version; newer ones may have more data at the end of the payload
//!     10      1  kind: 0 machine, 1 set, 2 routing, 3 timetable, 4 schedule, 5 image, 6 steps
//!     11      1  0
//!     12      8  bytes of the payload, little-endian
//!     20      n  payload: postcard values one after the other (`docs/format.md`)
//!   20+n      4  CRC-32 (IEEE) of all bytes before it, little-endian
//! ```
//!
//! The length and the checksum are verified first, so truncated and damaged files are recognised.
//! The payload is nevertheless untrusted: counts are compared with the limits and with the number
//! of remaining bytes before memory is allocated, and the value is built by the same constructors
//! as from every other form.
//!
//! The form is compact because a route consists of its connection and one number per cell, which
//! encodes the channel and the outgoing link (its position among the links of the cell); on common
//! machines it takes one byte. Cells are written only for a route that is not a chain of live links
//! from the source of its connection.
//!
//! ```
//! use conset_ir::{Document, Machine, binary};
//!
//! let document = Document::from(Machine::from_spec("torus:4x4")?);
//! let bytes = binary::write(&document);
//! assert_eq!(binary::parse("machine.csb", &bytes)?, document);
//! # Ok::<(), conset_ir::InputError>(())
//! ```

mod codec;
mod read;
mod write;

pub use read::parse;
pub use write::write;

/// The first bytes of every binary file.
pub const MAGIC: [u8; 8] = *b"\x93CONSET\n";
/// The newest major version that this program reads. It writes the lowest version that can express
/// the value.
pub const MAJOR: u8 = 7;
/// The newest minor version that this program knows. It writes the lowest one that can express the
/// value.
pub const MINOR: u8 = 3;

const HEADER: usize = 20;
const CHECKSUM: usize = 4;
