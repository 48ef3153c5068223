//! The spelling of planners: routes of pieces, numberings and orders in options and reports.
//!
//! ```text
//! levels:16x16                              radices; rows, then columns of a mesh in rows
//! levels:16x4x4/tiles/pairwise              with a numbering and an order
//! levels:16x16/tiles/s1d1,d1s1              with the places between source and target
//! levels:16x16/tiles/direct/pairwise        with none: direct messages, ordered by these numbers
//! halves:0.75/inverse                       parts, of which the root's keeps three quarters
//! nodes/pairwise                            one message between two nodes of a cluster
//! ```

use std::fmt;

use conset_ir::ShapeError;

use super::halves::Share;
use super::numbering::Numbering;
use super::order::StepOrder;
use super::route::{PieceRoute, Place};

/// What a planner is made of, for any machine. Its `Display` is the spelling that
/// [`LevelsSpec::parse`] reads.
///
/// ```
/// use conset_scheduler::steps::LevelsSpec;
///
/// let spec = LevelsSpec::parse("levels:16x16/tiles/s1d1,d1s1")?;
/// assert_eq!(spec.to_string(), "levels:16x16/tiles/s1d1,d1s1");
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelsSpec {
    /// How pieces travel.
    pub route: PieceRoute,
    /// The numbering of the cells; halves have their own.
    pub numbering: Numbering,
    /// The order within a level.
    pub order: StepOrder,
    /// Whether the levels are in the opposite order, with sources and targets exchanged.
    pub inverse: bool,
}

impl LevelsSpec {
    /// Equal halves with the given order.
    pub fn new(order: StepOrder) -> Self {
        let route = PieceRoute::Halves(Share::HALF);
        Self { route, numbering: Numbering::Given, order, inverse: false }
    }

    /// Levels of radices over the cells in the order of their ids.
    ///
    /// # Errors
    /// As [`PieceRoute::digits`].
    pub fn digits(radices: &[u32], order: StepOrder) -> Result<Self, ShapeError> {
        Ok(Self { route: PieceRoute::digits(radices)?, ..Self::new(order) })
    }

    /// Parses `levels:` with radices, `nodes`, or `halves` with or without a share, and then, each after a `/`
    /// and in any order, a numbering (only of levels), an order, places (only of levels) and `inverse`.
    /// The order is `loaded` unless given.
    ///
    /// # Errors
    /// What is not one of these, is given twice, or does not fit the radices.
    pub fn parse(text: &str) -> Result<Self, ShapeError> {
        let unknown = |part: &str, expected: &str| {
            Err(ShapeError::new("levels", format!("unknown `{part}`; expected {expected}")))
        };
        let (head, rest) =
            text.split_once('/').map_or((text, None), |(head, rest)| (head, Some(rest)));
        let radices = match head.strip_prefix("levels:") {
            Some(list) => match list.split('x').map(|radix| radix.parse().ok()).collect() {
                Some(radices) => Some::<Vec<u32>>(radices),
                None => return unknown(list, "radices, as 16x16"),
            },
            None => None,
        };
        let share = match head.strip_prefix("halves") {
            Some("") => Share::HALF,
            Some(share) => match share.strip_prefix(':').and_then(Share::parse) {
                Some(share) => share,
                None => return unknown(share, "a share above 0 and below 1, as halves:0.75"),
            },
            None if radices.is_some() || head == "nodes" => Share::HALF,
            None => return unknown(head, "levels:RxR.., halves or nodes"),
        };
        let (mut numbering, mut order, mut places, mut inverse) = (None, None, None, false);
        for part in rest.into_iter().flat_map(|rest| rest.split('/')) {
            let listed = || match part {
                "direct" => Some(Vec::new()),
                _ => part.split(',').map(Place::parse).collect::<Option<Vec<Place>>>(),
            };
            if let (Some(read), None, Some(_)) = (Numbering::parse(part), numbering, &radices) {
                numbering = Some(read);
            } else if let (Some(read), None) = (StepOrder::parse(part), order) {
                order = Some(read);
            } else if part == "inverse" && !inverse {
                inverse = true;
            } else if let (Some(read), None, Some(_)) = (listed(), &places, &radices) {
                places = Some(read);
            } else {
                return unknown(
                    part,
                    "an order (linear, pairwise, balanced, ring, greedy, loaded) or inverse, or for \
                     levels a numbering (given, rows, columns, tiles) or places (as s1d1,d1s1, or \
                     direct), each once",
                );
            }
        }
        let route = match (radices, places) {
            (None, _) if head == "nodes" => PieceRoute::Nodes,
            (None, _) => PieceRoute::Halves(share),
            (Some(radices), None) => PieceRoute::digits(&radices)?,
            (Some(radices), Some(places)) => PieceRoute::places(&radices, places)?,
        };
        Ok(Self {
            route,
            numbering: numbering.unwrap_or_default(),
            order: order.unwrap_or(StepOrder::Loaded),
            inverse,
        })
    }

    /// The name in reports: the order, after all else that is not as in a direct plan.
    pub fn title(&self) -> String {
        let is_direct = matches!(&self.route, PieceRoute::Digits { radices, places }
            if radices.len() == 1 && places.is_empty());
        let mut words = Vec::new();
        if !is_direct {
            let route = self.route.to_string();
            words.push(route.strip_prefix("levels:").unwrap_or(&route).to_owned());
        }
        if self.numbering != Numbering::Given {
            words.push(self.numbering.name().to_owned());
        }
        words.extend(self.listed_places());
        words.extend(self.inverse.then(|| "inverse".to_owned()));
        words.push(self.order.name().to_owned());
        words.join(" ")
    }

    /// The places, if they are not those of the radices.
    fn listed_places(&self) -> Option<String> {
        let PieceRoute::Digits { radices, places } = &self.route else { return None };
        if PieceRoute::digits(radices).is_ok_and(|route| route == self.route) {
            return None;
        }
        if places.is_empty() {
            return Some("direct".to_owned());
        }
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        Some(places.join(","))
    }
}

impl fmt::Display for PieceRoute {
    /// The spelling without places: `levels:16x16`, `nodes`, `halves` or `halves:0.75`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PieceRoute::Digits { radices, .. } => {
                let radices: Vec<String> = radices.iter().map(ToString::to_string).collect();
                write!(f, "levels:{}", radices.join("x"))
            }
            PieceRoute::Halves(Share::HALF) => f.write_str("halves"),
            PieceRoute::Halves(share) => write!(f, "halves:{share}"),
            PieceRoute::Nodes => f.write_str("nodes"),
        }
    }
}

impl fmt::Display for LevelsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.route)?;
        if self.numbering != Numbering::Given {
            write!(f, "/{}", self.numbering.name())?;
        }
        if let Some(places) = self.listed_places() {
            write!(f, "/{places}")?;
        }
        if self.order != StepOrder::Loaded {
            write!(f, "/{}", self.order.name())?;
        }
        if self.inverse { f.write_str("/inverse") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read_back() {
        for (text, title) in [
            ("levels:16x16", "16x16 loaded"),
            ("levels:64", "loaded"),
            ("levels:64/columns/ring", "columns ring"),
            ("levels:16x4x4/tiles/pairwise/inverse", "16x4x4 tiles inverse pairwise"),
            ("levels:16x16/tiles/s1d1,d1s1", "16x16 tiles s1d1,d1s1 loaded"),
            ("levels:16x16/tiles/direct", "16x16 tiles direct loaded"),
            ("halves", "halves loaded"),
            ("halves:0.75/linear", "halves:0.75 linear"),
            ("nodes", "nodes loaded"),
            ("nodes/ring/inverse", "nodes inverse ring"),
        ] {
            let spec = LevelsSpec::parse(text).unwrap();
            assert_eq!((spec.to_string(), spec.title()), (text.to_owned(), title.to_owned()));
        }
        let any_order = LevelsSpec::parse("levels:4x4/inverse/loaded/d1s2/given").unwrap();
        assert_eq!(
            any_order.to_string(),
            "levels:4x4/inverse",
            "these places are the radices' own"
        );
    }

    #[test]
    fn wrong_specifications_are_refused() {
        for wrong in [
            "levels:",
            "levels:4x",
            "levels:4y4",
            "levels:1x4",
            "levels:4x4/diagonals",
            "levels:4x4/rows/rows",
            "levels:4x4/ring/loaded",
            "levels:4x4/inverse/inverse",
            "levels:4x4/s1d3",
            "levels:4x4/s1",
            "halves:1",
            "halves:",
            "halves/rows",
            "halves/s1d1",
            "nodes:4",
            "nodes/rows",
            "nodes/s1d1",
            "nodes/direct",
            "halfs",
            "levels:4x4/ring/",
            "",
            "levels",
        ] {
            assert!(LevelsSpec::parse(wrong).is_err(), "{wrong}");
        }
    }
}
