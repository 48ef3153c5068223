//! Numberings of cells: which cells of a machine are near each other in the digits of their numbers.
//!
//! | numbering | the number of a cell |
//! |---|---|
//! | given | its position among the live cells by id |
//! | rows | by its coordinates, the last dimension the most significant |
//! | columns | by its coordinates, the first dimension the most significant |
//! | tiles | first by its tile, then by its position in the tile, both row by row |
//!
//! So with radices 16 and 16 on a mesh of 16 by 16 cells, the first digit of a number is the row, the
//! column, or one of 16 squares of 4 by 4 cells. Tiles are boxes of equal size, as many as the first
//! radix, with sides as equal as divisors of the machine's dimensions permit. On a torus or mesh, ids
//! are by rows already. Dead cells have no number, and those after them one less each, so digits are
//! then no longer exactly rows or tiles; plans are right all the same.

use std::sync::Arc;

use conset_ir::convert::{index, to_u64};
use conset_ir::{CellId, Machine, ShapeError};

/// A numbering of the live cells of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Numbering {
    /// By id.
    #[default]
    Given,
    /// By coordinates, the last dimension the most significant.
    Rows,
    /// By coordinates, the first dimension the most significant.
    Columns,
    /// By tiles, of which there are as many as the first radix.
    Tiles,
}

impl Numbering {
    /// All numberings.
    pub const ALL: [Numbering; 4] =
        [Numbering::Given, Numbering::Rows, Numbering::Columns, Numbering::Tiles];

    /// Its name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Numbering::Given => "given",
            Numbering::Rows => "rows",
            Numbering::Columns => "columns",
            Numbering::Tiles => "tiles",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|numbering| numbering.name() == name)
    }

    /// The live cells in the order of their numbers, for a first radix of `tiles`.
    ///
    /// # Errors
    /// All but `given`: a machine whose cells have no coordinates. `tiles`: a number of tiles of which
    /// no equal ones fill the machine.
    pub fn cells(self, machine: &Machine, tiles: u32) -> Result<Arc<[CellId]>, ShapeError> {
        let mut cells: Vec<CellId> = machine.endpoints().collect();
        if self == Numbering::Given {
            return Ok(cells.into());
        }
        let topology = machine.topology();
        let Some(dims) = topology.dims() else {
            return Err(ShapeError::new(
                "numbering",
                format!(
                    "`{}` needs cells with coordinates, which a {} has not; expected `given`",
                    self.name(),
                    topology.kind()
                ),
            ));
        };
        let at = |cell: &CellId| topology.coordinates(cell.index()).unwrap_or_default();
        let rows = |coordinates: &[u32]| coordinates.iter().rev().copied().collect::<Vec<u32>>();
        match self {
            Numbering::Given => {}
            Numbering::Rows => cells.sort_by_key(|cell| rows(&at(cell))),
            Numbering::Columns => cells.sort_by_key(|cell| at(cell)),
            Numbering::Tiles => {
                let sides = tile_sides(&dims, tiles).ok_or_else(|| {
                    let spelled: Vec<String> = dims.iter().map(ToString::to_string).collect();
                    ShapeError::new(
                        "numbering",
                        format!(
                            "{tiles} equal tiles do not fill {} cells; expected a first radix that \
                             is a product of divisors of these",
                            spelled.join("x")
                        ),
                    )
                })?;
                cells.sort_by_key(|cell| {
                    let at = at(cell);
                    let split = |part: fn(u32, u32) -> u32| -> Vec<u32> {
                        rows(
                            &at.iter()
                                .zip(&sides)
                                .map(|(&x, &side)| part(x, side))
                                .collect::<Vec<_>>(),
                        )
                    };
                    (split(|x, side| x / side), split(|x, side| x % side))
                });
            }
        }
        Ok(cells.into())
    }
}

/// The sides of equal tiles, `tiles` of them, with the least ratio of the longest side to the
/// shortest, and of equal ones those with the longer first sides.
fn tile_sides(dims: &[u32], tiles: u32) -> Option<Vec<u32>> {
    fn extend(dims: &[u32], tiles: u32, sides: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
        let Some((&length, rest)) = dims.split_first() else {
            if tiles == 1 {
                found.push(sides.clone());
            }
            return;
        };
        for count in (1..=length).filter(|&c| length.is_multiple_of(c) && tiles.is_multiple_of(c)) {
            sides.push(length / count);
            extend(rest, tiles / count, sides, found);
            sides.pop();
        }
    }
    if tiles == 0 {
        return None;
    }
    let mut found = Vec::new();
    extend(dims, tiles, &mut Vec::with_capacity(dims.len()), &mut found);
    // Ratios are compared as products, which 64 bits hold.
    let ends = |sides: &[u32]| {
        let (longest, shortest) = (sides.iter().max(), sides.iter().min());
        (to_u64(longest.copied().unwrap_or(1)), to_u64(shortest.copied().unwrap_or(1)))
    };
    found.into_iter().reduce(|best, sides| {
        let ((a, b), (c, d)) = (ends(&best), ends(&sides));
        if c * b < a * d { sides } else { best }
    })
}

/// The coordinates of cells, or their ids if they have none, for cuts along a dimension.
pub(super) fn positions(machine: &Machine, cells: &[CellId]) -> Vec<Vec<u32>> {
    let topology = machine.topology();
    let of = |cell: &CellId| topology.coordinates(cell.index()).unwrap_or_else(|| vec![cell.0]);
    let mut positions = vec![Vec::new(); machine.cell_count()];
    for cell in cells {
        positions[index(cell.0)] = of(cell);
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(spec: &str, numbering: Numbering, tiles: u32) -> Vec<u32> {
        let machine = Machine::from_spec(spec).unwrap();
        numbering.cells(&machine, tiles).unwrap().iter().map(|cell| cell.0).collect()
    }

    #[test]
    fn cells_are_numbered_by_rows_columns_and_tiles() {
        assert_eq!(cells("mesh:3x2", Numbering::Rows, 2), [0, 1, 2, 3, 4, 5]);
        assert_eq!(cells("mesh:3x2", Numbering::Columns, 3), [0, 3, 1, 4, 2, 5]);
        assert_eq!(
            cells("mesh:4x4", Numbering::Tiles, 4),
            [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
        );
        assert_eq!(cells("torus:2x2", Numbering::Tiles, 1), [0, 1, 2, 3]);
        let machine = Machine::from_spec("mesh:3x2").unwrap();
        let dead = machine.with_dead(&[CellId(1)], &[]).unwrap();
        let columns = Numbering::Columns.cells(&dead, 3).unwrap();
        assert_eq!(*columns, [0, 3, 4, 2, 5].map(CellId));
    }

    #[test]
    fn tiles_are_as_square_as_they_divide() {
        assert_eq!(tile_sides(&[16, 16], 16), Some(vec![4, 4]));
        assert_eq!(tile_sides(&[8, 4], 8), Some(vec![2, 2]));
        assert_eq!(tile_sides(&[8, 8], 8), Some(vec![4, 2]));
        assert_eq!(tile_sides(&[4, 4, 4], 8), Some(vec![2, 2, 2]));
        assert_eq!(tile_sides(&[8, 8], 5), None);
        assert_eq!(tile_sides(&[8, 8], 0), None);
    }

    #[test]
    fn numberings_need_coordinates() {
        let machine = Machine::from_spec("fat-tree:16").unwrap();
        for numbering in Numbering::ALL {
            let fits = numbering.cells(&machine, 4).is_ok();
            assert_eq!(fits, numbering == Numbering::Given);
            assert_eq!(Numbering::parse(numbering.name()), Some(numbering));
        }
        let mesh = Machine::from_spec("mesh:8x8").unwrap();
        assert!(Numbering::Tiles.cells(&mesh, 5).is_err());
        assert_eq!(Numbering::parse("diagonals"), None);
    }
}
