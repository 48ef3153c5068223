//! The network of the windowed planner: parallel *lanes* for the capacity of an edge, reverse
//! edges, and hops from every source.

use crate::problem::{Problem, UNREACHABLE};
use conset_ir::convert::{index, to_u32};

/// Lanes of an edge at most: streams beyond that are not carried at the same time.
const LANES: u16 = 16;

pub(super) struct LaneNetwork {
    pub(super) cells: usize,
    first: Vec<u32>,
    heads: Vec<u32>,
    back_first: Vec<u32>,
    /// Tail and number of each lane that leads into a cell.
    back: Vec<(u32, u32)>,
    /// Hops from each source of the set: row of the source, column of the cell.
    hops: Vec<u16>,
    row_of: Vec<u32>,
}

impl LaneNetwork {
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let cells = problem.cell_count();
        let mut this = Self {
            cells,
            first: vec![0],
            heads: Vec::new(),
            back_first: Vec::new(),
            back: Vec::new(),
            hops: Vec::new(),
            row_of: vec![u32::MAX; cells],
        };
        let mut back = Vec::new();
        for cell in 0..to_u32(cells) {
            for edge in problem.edges(cell) {
                for _ in 0..problem.capacity[edge].min(LANES) {
                    back.push((problem.head(edge), cell, to_u32(this.heads.len())));
                    this.heads.push(problem.head(edge));
                }
            }
            this.first.push(to_u32(this.heads.len()));
        }
        back.sort_unstable();
        this.back_first =
            (0..=to_u32(cells)).map(|c| to_u32(back.partition_point(|b| b.0 < c))).collect();
        this.back = back.into_iter().map(|(_, tail, lane)| (tail, lane)).collect();
        let mut queue = Vec::with_capacity(cells);
        for connection in problem.set.connections() {
            let source = connection.source;
            if this.row_of[source.index()] == u32::MAX {
                this.row_of[source.index()] = to_u32(this.hops.len() / cells);
                this.add_row(source.0, &mut queue);
            }
        }
        this
    }

    fn add_row(&mut self, source: u32, queue: &mut Vec<u32>) {
        let row = self.hops.len();
        self.hops.resize(row + self.cells, UNREACHABLE);
        self.hops[row + index(source)] = 0;
        queue.clear();
        queue.push(source);
        let mut next = 0;
        while next < queue.len() {
            let cell = queue[next];
            next += 1;
            let hops = self.hops[row + index(cell)] + 1;
            for lane in self.lanes(cell) {
                let head = self.heads[lane];
                if self.hops[row + index(head)] == UNREACHABLE {
                    self.hops[row + index(head)] = hops;
                    queue.push(head);
                }
            }
        }
    }

    pub(super) fn lane_count(&self) -> usize {
        self.heads.len()
    }

    /// The lanes that leave a cell.
    #[inline]
    pub(super) fn lanes(&self, cell: u32) -> std::ops::Range<usize> {
        index(self.first[index(cell)])..index(self.first[index(cell) + 1])
    }

    /// The cell at the head of a lane.
    #[inline]
    pub(super) fn head(&self, lane: usize) -> u32 {
        self.heads[lane]
    }

    /// Tails and numbers of the lanes into a cell.
    #[inline]
    pub(super) fn back(&self, cell: u32) -> &[(u32, u32)] {
        let first = &self.back_first[index(cell)..];
        &self.back[index(first[0])..index(first[1])]
    }

    /// Hops from a source of the set to every cell; nothing for another cell.
    #[inline]
    pub(super) fn hops(&self, source: u32) -> &[u16] {
        match self.row_of[index(source)] {
            u32::MAX => &[],
            row => &self.hops[index(row) * self.cells..][..self.cells],
        }
    }
}
