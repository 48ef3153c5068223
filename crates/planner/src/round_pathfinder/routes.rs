//! All shortest routes of every connection, as one list of hops per connection.
//!
//! Every pass searches the same hops: those that lead nearer to the target, in the order of their
//! distance from the source, between cells numbered along them. At most [`WIDTH`] cells of each
//! distance are stored, which is all of them on small machines.

use conset_ir::ConnectionSet;
use conset_ir::convert::{index, to_u32};

use conset_partition_route::network::{Distances, Network, UNREACHABLE};

/// Hops on shortest routes that are held for all connections together.
const HOPS: usize = 1 << 24;
/// Cells at one distance that a search looks at.
const WIDTH: usize = 16;

/// A hop that a shortest route may take, between cells numbered from the source on.
#[derive(Clone, Copy)]
pub(crate) struct Hop {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) edge: u32,
}

/// The shortest routes of each connection, as hops in the order of their distance.
pub(crate) struct Routes {
    first: Vec<u32>,
    list: Vec<Hop>,
    /// Cells on shortest routes; the last is the target.
    pub(super) cells: Vec<u16>,
    pub(super) hops: Vec<u32>,
    /// Where the edges of each connection's route are kept.
    pub(super) kept: Vec<u32>,
}

impl Routes {
    pub(crate) fn new(network: &Network, set: &ConnectionSet) -> Option<Self> {
        let targets = set.connections().iter().map(|c| c.target.0);
        let mut distances = Distances::new(network, targets);
        let mut this = Self {
            first: vec![0],
            list: Vec::new(),
            cells: Vec::with_capacity(set.len()),
            hops: Vec::with_capacity(set.len()),
            kept: vec![0],
        };
        let (mut layer, mut next): (Vec<u32>, Vec<u32>) = Default::default();
        for c in set.connections() {
            let hops = distances.aim(network, c.source.0, c.target.0);
            if hops == UNREACHABLE {
                return None;
            }
            layer.clear();
            layer.push(c.source.0);
            let mut base = 0usize;
            for left in (0..hops).rev() {
                next.clear();
                let end = base + layer.len();
                for (row, &cell) in layer.iter().enumerate() {
                    for edge in network.outgoing().edges(cell) {
                        let to = network.outgoing().head(edge);
                        if distances.to_target(to) != left {
                            continue;
                        }
                        let place = match next.iter().position(|&cell| cell == to) {
                            Some(place) => place,
                            None if next.len() == WIDTH => continue,
                            None => {
                                next.push(to);
                                next.len() - 1
                            }
                        };
                        let from = u16::try_from(base + row).ok()?;
                        let to = u16::try_from(end + place).ok()?;
                        this.list.push(Hop { from, to, edge: to_u32(edge) });
                    }
                }
                base = end;
                std::mem::swap(&mut layer, &mut next);
            }
            if this.list.len() > HOPS {
                return None;
            }
            this.first.push(to_u32(this.list.len()));
            this.cells.push(u16::try_from(base + 1).ok()?);
            this.hops.push(hops);
            this.kept.push(this.kept[this.kept.len() - 1] + hops);
        }
        Some(this)
    }

    pub(crate) fn of(&self, x: usize) -> &[Hop] {
        &self.list[index(self.first[x])..index(self.first[x + 1])]
    }

    /// Cells on a connection's routes, as hops number them.
    pub(crate) fn cells(&self, x: usize) -> usize {
        usize::from(self.cells[x])
    }

    /// Hops of a connection's routes.
    pub(crate) fn hops(&self, x: usize) -> u32 {
        self.hops[x]
    }

    pub(super) fn start(&self, x: usize) -> usize {
        index(self.kept[x])
    }
}
