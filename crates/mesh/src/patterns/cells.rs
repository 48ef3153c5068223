//! The cells of a pattern, numbered by rank and by grid position.
//!
//! *Ranks* number the live cells in id order; patterns without geometry use them. *Positions* are the
//! positions of a grid, first dimension fastest; patterns with geometry use them. On a machine with
//! coordinates the positions are the cell numbers; the position of a dead cell is empty, and
//! connections from or to it are omitted. On a machine without coordinates (fat-tree, graph) the
//! ranks form the most nearly square grid.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Machine, Result, limits};

use super::spec::Spec;

/// The live cells of a machine.
pub(super) struct PatternCells<'m> {
    pub(super) machine: &'m Machine,
    /// By rank.
    pub(super) live: Vec<CellId>,
    /// The machine's own grid.
    pub(super) grid: CellGrid,
    /// Whether the machine itself has coordinates.
    pub(super) coordinates: bool,
}

/// A grid of cells.
pub(super) struct CellGrid {
    /// The size of each dimension; the product is the number of positions.
    pub(super) dims: Vec<u32>,
    /// The cell of each position, first dimension fastest; `None` if it is dead.
    pub(super) positions: Vec<Option<CellId>>,
}

impl<'m> PatternCells<'m> {
    /// The cells of a machine.
    ///
    /// # Errors
    /// The machine has no live cell.
    pub(super) fn new(machine: &'m Machine, spec: &Spec<'_>) -> Result<Self> {
        let live: Vec<CellId> = machine.endpoints().collect();
        if live.is_empty() {
            return Err(spec.error("every cell of the machine is dead"));
        }
        match machine.topology().dims() {
            Some(dims) => {
                let position = |id: u32| Some(CellId(id)).filter(|&cell| machine.is_endpoint(cell));
                let positions = (0..to_u32(machine.agent_count())).map(position).collect();
                Ok(Self { machine, live, grid: CellGrid { dims, positions }, coordinates: true })
            }
            None => {
                let columns = near_square(live.len());
                let dims = [columns, live.len() / columns].map(to_u32);
                let grid = CellGrid::of_ranks(&live, dims.to_vec());
                Ok(Self { machine, live, grid, coordinates: false })
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// The rank of the cell given by parameter `root` (`5` or `c5`); 0 by default.
    pub(super) fn root(&self, spec: &mut Spec<'_>) -> Result<usize> {
        let Some(text) = spec.text("root") else { return Ok(0) };
        let id = text.parse().ok().map(CellId).or_else(|| CellId::parse(text));
        id.and_then(|id| self.live.binary_search(&id).ok()).ok_or_else(|| {
            let (first, last) = (self.live[0], self.live[self.len() - 1]);
            spec.error(format!("root: expected a live cell from {first} to {last}"))
        })
    }

    /// The grid of the ranks with the sizes of parameter `dims`; the machine's own grid by default.
    pub(super) fn grid_or(&self, spec: &mut Spec<'_>) -> Result<CellGrid> {
        let Some(dims) = spec.sizes("dims", to_u32(limits::CELLS))? else {
            return Ok(CellGrid {
                dims: self.grid.dims.clone(),
                positions: self.grid.positions.clone(),
            });
        };
        let product = dims.iter().try_fold(1usize, |all, &d| all.checked_mul(index(d)));
        if dims.len() > limits::DIMENSIONS || product != Some(self.len()) {
            let text: Vec<String> = dims.iter().take(20).map(u32::to_string).collect();
            return Err(spec.error(format!(
                "dims: the number of positions of {} is not the number of live cells ({})",
                text.join("x"),
                self.len()
            )));
        }
        Ok(CellGrid::of_ranks(&self.live, dims))
    }
}

impl CellGrid {
    fn of_ranks(live: &[CellId], dims: Vec<u32>) -> Self {
        Self { dims, positions: live.iter().copied().map(Some).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Size and stride of each dimension that has more than one position.
    pub(super) fn axes(&self) -> Vec<(usize, usize)> {
        let mut stride = 1;
        let mut axes = Vec::with_capacity(self.dims.len());
        for &size in &self.dims {
            if size > 1 {
                axes.push((index(size), stride));
            }
            stride *= index(size);
        }
        axes
    }
}

/// The largest divisor of `count` that is not above its square root.
pub(super) fn near_square(count: usize) -> usize {
    let below_root = |d: &usize| d.checked_mul(*d).is_some_and(|square| square <= count);
    (1..).take_while(below_root).filter(|d| count.is_multiple_of(*d)).last().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::near_square;

    #[test]
    fn squares_are_square_and_primes_are_rows() {
        let expected = [(1, 1), (2, 1), (12, 3), (13, 1), (64, 8), (1 << 19, 512)];
        for (count, columns) in expected {
            assert_eq!(near_square(count), columns, "{count}");
        }
    }
}
