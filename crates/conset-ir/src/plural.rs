//! Nouns after numbers, for messages and reports.

use std::borrow::Cow;

use crate::convert::to_u64;

/// The noun that follows a number: `part` after 1, and its plural after every other number.
///
/// ```
/// use conset_ir::plural;
///
/// assert_eq!(plural(1, "part"), "part");
/// assert_eq!(plural(0, "part"), "parts");
/// assert_eq!(plural(2, "entry"), "entries");
/// ```
pub fn plural(number: u64, one: &str) -> Cow<'_, str> {
    match (number, one.strip_suffix('y')) {
        (1, _) => one.into(),
        (_, Some(stem)) => format!("{stem}ies").into(),
        (_, None) => format!("{one}s").into(),
    }
}

/// A number and its noun: `1 part`, `2 parts`.
///
/// ```
/// use conset_ir::counted;
///
/// assert_eq!(counted(1_usize, "part"), "1 part");
/// assert_eq!(counted(28_672_u64, "word"), "28672 words");
/// ```
pub fn counted<N: TryInto<u64>>(number: N, one: &str) -> String {
    let number = to_u64(number);
    format!("{number} {}", plural(number, one))
}
