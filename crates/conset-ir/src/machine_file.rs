//! stub
use crate::{Machine, Result};
/// p
pub fn parse(_: &str, _: &str) -> Result<Machine> {
    unreachable!()
}
