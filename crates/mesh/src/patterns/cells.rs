//! The cells of a pattern and the two ways of numbering them.
//!
//! *Ranks* count the live cells in id order; patterns that only need "the next cell" use them.
//! *Places* are positions of a grid, first dimension fastest; patterns that have a geometry use
//! them. On a machine with coordinates the places are the cell numbers, and a dead cell leaves
//! its place empty: what would begin or end there is left out. A machine without coordinates
//! (fat-tree, graph) is seen as the most nearly square grid of its ranks.

use conset_ir::{CellId, Machine, Result, limits};

use super::spec::Spec;

/// The live cells of a machine.
pub(super) struct Cells<'m> {
    pub(super) machine: &'m Machine,
    /// By rank.
    pub(super) live: Vec<CellId>,
    /// The machine's own grid.
    pub(super) grid: Grid,
    /// Whether the machine itself has coordinates.
    pub(super) coordinates: bool,
}

/// Places in rows and columns.
pub(super) struct Grid {
    /// Places in each dimension; their product is the number of places.
    pub(super) dims: Vec<u32>,
    /// The cell of each place, first dimension fastest; `None` where it is dead.
    pub(super) places: Vec<Option<CellId>>,
}

impl<'m> Cells<'m> {
    /// # Errors
    /// A machine without a live cell.
    pub(super) fn new(machine: &'m Machine, spec: &Spec<'_>) -> Result<Self> {
        let live: Vec<CellId> = machine.endpoints().collect();
        if live.is_empty() {
            return Err(spec.error("every cell of the machine is marked dead"));
        }
        match machine.topology().dims() {
            Some(dims) => {
                let place = |id: u32| Some(CellId(id)).filter(|&cell| machine.is_endpoint(cell));
                let places = (0..machine.agent_count() as u32).map(place).collect();
                Ok(Self { machine, live, grid: Grid { dims, places }, coordinates: true })
            }
            None => {
                let columns = near_square(live.len());
                let rows = (live.len() / columns) as u32;
                let grid = Grid::of_ranks(&live, vec![columns as u32, rows]);
                Ok(Self { machine, live, grid, coordinates: false })
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// The rank of the cell that parameter `root` names (`5` or `c5`); 0 where it is not given.
    pub(super) fn root(&self, spec: &mut Spec<'_>) -> Result<usize> {
        let Some(text) = spec.text("root") else { return Ok(0) };
        let id = text.parse().ok().map(CellId).or_else(|| CellId::parse(text));
        id.and_then(|id| self.live.binary_search(&id).ok()).ok_or_else(|| {
            let (first, last) = (self.live[0], self.live[self.len() - 1]);
            spec.error(format!("root: expected a live cell from {first} to {last}"))
        })
    }

    /// The grid that parameter `dims` describes over the ranks; the machine's own where it is not
    /// given.
    pub(super) fn grid_or(&self, spec: &mut Spec<'_>) -> Result<Grid> {
        let Some(dims) = spec.sizes("dims", limits::CELLS as u32)? else {
            return Ok(Grid { dims: self.grid.dims.clone(), places: self.grid.places.clone() });
        };
        let product = dims.iter().try_fold(1usize, |all, &d| all.checked_mul(d as usize));
        if dims.len() > limits::DIMENSIONS || product != Some(self.len()) {
            let text: Vec<String> = dims.iter().take(20).map(u32::to_string).collect();
            return Err(spec.error(format!(
                "dims: {} does not have as many places as the machine has live cells ({})",
                text.join("x"),
                self.len()
            )));
        }
        Ok(Grid::of_ranks(&self.live, dims))
    }
}

impl Grid {
    fn of_ranks(live: &[CellId], dims: Vec<u32>) -> Self {
        Self { dims, places: live.iter().copied().map(Some).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Size and stride of each dimension that has more than one place.
    pub(super) fn axes(&self) -> Vec<(usize, usize)> {
        let mut stride = 1;
        let mut axes = Vec::with_capacity(self.dims.len());
        for &size in &self.dims {
            if size > 1 {
                axes.push((size as usize, stride));
            }
            stride *= size as usize;
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
