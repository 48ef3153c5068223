//! Typed 32-bit ids of cells, links, connections, phases, steps and channels.
//!
//! Cells, links, connections and so on are rows of dense vectors, and an id is a row number: a
//! lookup is an index, and ids are cheap to copy, hash and store. The newtypes prevent a cell from
//! being used as a link. `Display` writes the spelling of the text form and `parse` reads it. Serde
//! uses the bare number, as the JSON formats specify.

use serde::{Deserialize, Serialize};

use crate::convert;

macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The prefix of the number in the text form.
            pub const PREFIX: &'static str = $prefix;

            /// The row with this id.
            #[inline]
            pub const fn index(self) -> usize {
                convert::index(self.0)
            }

            /// The id of row `index`.
            ///
            /// # Panics
            /// If `index` exceeds 32 bits, which the row numbers of checked values never do: readers
            /// and constructors keep all counts within [`crate::limits`].
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("row numbers are limited to 32 bits on entry"))
            }

            /// Reads the spelling of the text form: the prefix, then decimal digits only.
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
    /// A node of the machine: a computation agent and a communication agent (a switch of a
    /// fat-tree has a communication agent only).
    CellId,
    "c"
);
define_id!(
    /// A directed physical link from a cell to a neighbour.
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
    /// A step of a connection set that is exchanged by messages.
    StepId,
    "s"
);
define_id!(
    /// One of a cell's numbered logical channel slots.
    ChannelId,
    "ch"
);

impl LinkId {
    /// The absence of a link: between two cells of a route that no live link joins (which the
    /// checker refuses), and before the first cell of a route.
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
