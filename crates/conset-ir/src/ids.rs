//! Typed `u32` ids.
//!
//! Every thing that stages talk about is a row of a dense vector and its id is the row's number,
//! so a lookup is an index and ids are cheap to copy, hash and store. The newtypes keep a cell
//! from being used as a link. `Display` writes the spelling of the text form and `parse` reads it
//! back; serde uses the bare number, which is what the JSON schedule promises.

use serde::{Deserialize, Serialize};

macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The letters before the number in the text form.
            pub const PREFIX: &'static str = $prefix;

            /// The row this id names.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of row `index`. Counts are limited on entry ([`crate::limits`]), so a row
            /// number always fits.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("row numbers are limited to 32 bits on entry"))
            }

            /// Reads the text form's spelling: the prefix, then decimal digits and nothing else.
            pub fn parse(text: &str) -> Option<Self> {
                let digits = text.strip_prefix($prefix)?;
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                digits.parse().ok().map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

define_id!(
    /// A node of the machine: a computation agent plus a communication agent (a switch of a
    /// fat-tree has a communication agent only).
    CellId,
    "c"
);
define_id!(
    /// A directed physical wire from a cell to a neighbour.
    LinkId,
    "l"
);
define_id!(
    /// A connection: a row of its connection set.
    ConnectionId,
    "x"
);
define_id!(
    /// A phase of a compiled connection set, in the order of execution.
    PhaseId,
    "p"
);
define_id!(
    /// One of a cell's numbered logical channel slots.
    ChannelId,
    "ch"
);

impl LinkId {
    /// Stands where a route names two cells that no live link joins (and before a route's first
    /// cell, which is entered over no link). Only the checker may meet the former.
    pub const NONE: LinkId = LinkId(u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_round_trips_and_rejects_lookalikes() {
        assert_eq!(CellId(3).to_string(), "c3");
        assert_eq!(CellId::parse("c3"), Some(CellId(3)));
        // "ch5" is a channel and must never be read as a cell.
        assert_eq!(CellId::parse("ch5"), None);
        assert_eq!(ChannelId::parse("ch5"), Some(ChannelId(5)));
        for wrong in ["", "c", "3", "c+3", "c-1", "c 3", "c99999999999"] {
            assert_eq!(CellId::parse(wrong), None, "{wrong:?}");
        }
    }
}
