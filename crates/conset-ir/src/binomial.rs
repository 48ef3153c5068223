//! The binomial tree over places 0, 1, ..., with root 0.
//!
//! The parent of a place has all of its bits but the lowest one, so the depth is the number of bits, and every
//! branch is a stretch of places.

/// The parent of a place; `None` for the root.
///
/// ```
/// use conset_ir::binomial::{children, parent};
///
/// assert_eq!((parent(0), parent(6), parent(7)), (None, Some(4), Some(6)));
/// assert!(children(4, 7).eq([5, 6]) && children(0, 7).rev().eq([4, 2, 1]));
/// ```
pub fn parent(place: usize) -> Option<usize> {
    place.checked_sub(1).map(|less| place & less)
}

/// The children of a place in the tree over so many, ascending.
pub fn children(place: usize, places: usize) -> impl DoubleEndedIterator<Item = usize> {
    // A child differs from its parent in a bit below the parent's lowest one.
    let below = (0..place.trailing_zeros()).map(move |bit| place | 1 << bit);
    below.filter(move |&child| child < places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_a_child_of_its_parent_alone() {
        for places in 0..70 {
            for place in 0..places {
                let parents = (0..places).filter(|&at| children(at, places).any(|c| c == place));
                assert!(parents.eq(parent(place)), "{place} of {places}");
                assert!(children(place, places).is_sorted());
            }
        }
    }
}
