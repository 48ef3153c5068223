//! stub
use crate::{Document, Result};
/// magic
pub const MAGIC: [u8; 8] = *b"\x93CONSET\n";
/// p
pub fn parse(_: &str, _: &[u8]) -> Result<Document> {
    unreachable!()
}
