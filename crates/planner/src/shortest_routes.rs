//! The routes of fewest hops of a connection: the cells that they may pass, and the edges between
//! these.

use conset_ir::convert::{index, to_u32};
use conset_partition_route::marks::Marks;

use crate::problem::Problem;

/// The cells and edges on routes of fewest hops, kept from search to search.
#[derive(Clone)]
pub(crate) struct ShortestRoutes {
    reached: Marks,
    /// The row of each cell that was reached.
    row: Vec<u32>,
    cells: Vec<u32>,
    /// Arcs of each row are `first[row]..first[row + 1]`.
    first: Vec<u32>,
    arcs: Vec<(u32, u32)>,
}

impl ShortestRoutes {
    pub(crate) fn new(cells: usize) -> Self {
        let reached = Marks::new(cells);
        let (row, cells) = (vec![0; cells], Vec::new());
        Self { reached, row, cells, first: Vec::new(), arcs: Vec::new() }
    }

    /// Collects the cells that a route of connection `x` may pass, and the arcs between them.
    pub(crate) fn gather(&mut self, problem: &Problem<'_>, x: usize) {
        let distances = problem.distances(x);
        self.reached.clear();
        self.cells.clear();
        self.arcs.clear();
        self.first.clear();
        self.reach(problem.set.connections()[x].source.0);
        let mut row = 0;
        while row < self.cells.len() {
            self.first.push(to_u32(self.arcs.len()));
            let cell = self.cells[row];
            row += 1;
            for edge in problem.edges(cell) {
                let next = problem.head(edge);
                if distances[index(next)].checked_add(1) != Some(distances[index(cell)]) {
                    continue;
                }
                if !self.reached.contains(next) {
                    self.reach(next);
                }
                self.arcs.push((self.row[index(next)], to_u32(edge)));
            }
        }
        self.first.push(to_u32(self.arcs.len()));
    }

    fn reach(&mut self, cell: u32) {
        self.reached.insert(cell);
        self.row[index(cell)] = to_u32(self.cells.len());
        self.cells.push(cell);
    }

    /// The cells in the order of their hops from the source: the source first, the target last. The
    /// number of a cell in this list is its row.
    #[inline]
    pub(crate) fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// The arcs that leave a row: the row of the neighbour, and the edge. The target has none.
    #[inline]
    pub(crate) fn arcs(&self, row: usize) -> &[(u32, u32)] {
        &self.arcs[index(self.first[row])..index(self.first[row + 1])]
    }

    /// The number of arcs of all rows.
    pub(crate) fn arc_count(&self) -> usize {
        self.arcs.len()
    }
}
