//! Spreads a placement over a grid that has more cells than parts.
//!
//! If parts are close together, routes are short, but all of them use the few cells of the region:
//! channels run out there first, in its middle before anywhere else, while the cells around it are
//! idle. A torus of the size of the program is better than a larger one then, because routes also
//! go around it. When a placement is spread, each line of cells that holds parts is followed by one
//! that holds none, whose channels and links are available to passing routes. Routes become longer
//! in exchange; the cost decides whether it pays.
//!
//! The caller selects the dimensions. A dimension becomes twice as long, or as long as the machine;
//! the order along it is kept. On a ring, a program that does not go around it stays together.

use conset_ir::convert::to_u32;
use conset_ir::{CellId, Machine};

use super::metric::Metric;

/// The growth of a dimension.
const SPREAD_FACTOR: u32 = 2;

/// A dimension of a placement.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The coordinate of its first cell.
    origin: u32,
    /// The number of cells from there on that contain all parts, around the ring if necessary.
    length: u32,
    /// The first coordinate and the length afterwards.
    begins: u32,
    spread: u32,
}

/// The placement spread in each dimension alone and in all of them, if that changes it and no part
/// falls on a dead cell. Empty if the machine has no coordinates.
pub(super) fn spread(machine: &Machine, metric: &Metric, place: &[u32]) -> Vec<Vec<u32>> {
    let Metric::Grid(grid) = metric else { return Vec::new() };
    let dims = grid.dims();
    let n = dims.len();
    let extents: Vec<Extent> = (0..n)
        .map(|d| extent(place.iter().map(|&cell| grid.of(cell)[d]), dims[d], grid.wraps()))
        .collect();
    let longer: Vec<usize> = (0..n).filter(|&d| extents[d].spread > extents[d].length).collect();
    let mut choices: Vec<Vec<usize>> = longer.iter().map(|&d| vec![d]).collect();
    if longer.len() > 1 {
        choices.push(longer);
    }
    let moved = |choice: &Vec<usize>| -> Option<Vec<u32>> {
        let cell = |&cell: &u32| {
            let from = grid.of(cell);
            let mut stride = 1;
            let mut to = 0;
            for d in 0..n {
                let along =
                    if choice.contains(&d) { extents[d].moved(from[d], dims[d]) } else { from[d] };
                to += along * stride;
                stride *= dims[d];
            }
            machine.is_endpoint(CellId(to)).then_some(to)
        };
        place.iter().map(cell).collect()
    };
    choices.iter().filter_map(moved).collect()
}

impl Extent {
    /// The new position of a coordinate. Different coordinates stay different, because nothing
    /// shrinks.
    fn moved(self, from: u32, size: u32) -> u32 {
        let along = u64::from((from + size - self.origin) % size);
        let along = along * u64::from(self.spread) / u64::from(self.length);
        (self.begins + to_u32(along)) % size
    }
}

fn extent(along: impl Iterator<Item = u32>, size: u32, wraps: bool) -> Extent {
    let mut used: Vec<u32> = along.collect();
    used.sort_unstable();
    used.dedup();
    let (first, last) = (used.first().copied().unwrap_or(0), used.last().copied().unwrap_or(0));
    let (mut origin, mut length) = (first, last - first + 1);
    if wraps {
        // The longest gap between two neighbours is left out.
        for pair in used.windows(2) {
            let around = size - (pair[1] - pair[0]) + 1;
            if around < length {
                (origin, length) = (pair[1], around);
            }
        }
    }
    let spread = if length == 1 { 1 } else { length.saturating_mul(SPREAD_FACTOR).min(size) };
    // On a mesh it grows to both sides, as far as the edges permit.
    let begins =
        if wraps { origin } else { first.saturating_sub((spread - length) / 2).min(size - spread) };
    Extent { origin, length, begins, spread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;
    use proptest::prelude::*;

    fn stretch(spec: &str, place: &[u32]) -> Vec<Vec<u32>> {
        let machine = Machine::from_spec(spec).unwrap();
        let metric = Metric::new(&machine, &Network::new(&machine));
        spread(&machine, &metric, place)
    }

    #[test]
    fn every_second_line_is_left_free() {
        assert_eq!(stretch("ring:16", &[0, 1, 2, 3]), [[0, 2, 4, 6]]);
        assert_eq!(stretch("mesh:16", &[0, 1, 2, 3]), [[0, 2, 4, 6]]);
        assert_eq!(stretch("mesh:9", &[3, 4, 5]), [[2, 4, 6]]);
        assert_eq!(
            stretch("torus:4x4", &[0, 1, 4, 5]),
            [[0, 2, 4, 6], [0, 1, 8, 9], [0, 2, 8, 10]]
        );
    }

    #[test]
    fn the_gap_of_a_ring_is_no_part_of_the_program() {
        assert_eq!(stretch("ring:16", &[14, 15, 0, 1]), [[14, 0, 2, 4]]);
        // All around the ring already, a single part, or no coordinates: nothing to spread.
        assert!(stretch("ring:4", &[0, 1, 2, 3]).is_empty());
        assert!(stretch("ring:4", &[2]).is_empty());
        assert!(stretch("torus:4x4", &[]).is_empty());
        assert!(stretch("fat-tree:16", &[0, 1]).is_empty());
    }

    #[test]
    fn dead_cells_hold_no_part() {
        let machine = Machine::from_spec("ring:8").unwrap();
        let (topology, parameters) = (machine.topology().clone(), machine.parameters().clone());
        let machine = Machine::new("r", topology, parameters, vec![CellId(2)], vec![]).unwrap();
        let metric = Metric::new(&machine, &Network::new(&machine));
        assert!(spread(&machine, &metric, &[0, 1]).is_empty());
        assert_eq!(spread(&machine, &metric, &[4, 5]), [[4, 6]]);
    }

    proptest! {
        #[test]
        fn no_two_parts_come_to_one_cell(
            spec in prop::sample::select(vec!["torus:6x5", "mesh:6x5", "torus:7x2x3", "mesh:13"]),
            cells in proptest::collection::btree_set(0..30u32, 1..13),
        ) {
            let machine = Machine::from_spec(spec).unwrap();
            let count = machine.cell_count() as u32;
            let place: Vec<u32> = cells.into_iter().filter(|&cell| cell < count).collect();
            for mut to in stretch(spec, &place) {
                to.sort_unstable();
                to.dedup();
                prop_assert_eq!(to.len(), place.len());
                prop_assert!(to.iter().all(|&cell| cell < count));
            }
        }
    }
}
