//! stub
use crate::{Document, Result};
/// p
pub fn parse(_: &str, _: &str) -> Result<Document> {
    unreachable!()
}
