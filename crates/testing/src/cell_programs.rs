//! Cell programs that compare every word that they receive.
//!
//! A program first exchanges every set, in which each word names its connection and its place there. Sets
//! with lists of nodes are then exchanged by plans, as solvers do it: every cell has a vector with a value
//! for each of its nodes. Two exchanges of each such set are started, a blocking one of all of them follows,
//! and each cell completes the started ones in another order. What the vectors must be in the end is worked out
//! from the set alone ([`Halo::expected`]).

use std::sync::Arc;

use conset::ir::convert::to_u64;
use conset::ir::{CellId, ConnectionId, ConnectionSet, Image, Program};
use conset_runtime::{Cell, CellError, Layout, Op, Plan, Transport, World};

use crate::check::words;

/// How the values of the two started exchanges of a set are combined.
const STARTED: [Op; 2] = [Op::Add, Op::Max];

/// How those of the blocking exchange are.
const BLOCKING: Op = Op::Min;

/// Runs an image by cell programs, on each of some transports.
///
/// # Panics
/// If a word is wrong.
pub(crate) fn every_word(image: &Arc<Image>, program: &Program, transports: &[Transport]) {
    for transport in transports {
        let world = World::new(image.clone()).on(transport.clone());
        let halos: Vec<Halo> =
            program.sets().iter().filter_map(|set| Halo::new(image, set)).collect();
        let run = world.try_run(|cell| {
            program.sets().iter().try_for_each(|set| exchange(cell, set))?;
            by_plans(cell, &halos)
        });
        let (_, report) = run.expect("the run has no error");
        // By steps the fabric counts the words of messages, those that are passed on several times; over MPI
        // each rank counts its own.
        if !image.is_steps() && matches!(transport, Transport::Fabric | Transport::Threads(_)) {
            let of_halos: u64 = halos.iter().map(|halo| halo.set.words()).sum();
            assert_eq!(report.words, words(program) + (1 + to_u64(STARTED.len())) * of_halos);
        }
    }
}

/// Exchanges a set. Every word names its connection and its place there.
fn exchange(cell: &mut Cell<'_>, set: &ConnectionSet) -> Result<(), CellError> {
    let rows = |ids: &[ConnectionId]| -> Vec<Vec<u64>> {
        let row = |&id: &ConnectionId| {
            (0..u64::from(set.get(id).words)).map(|place| (u64::from(id.0) << 32) + place).collect()
        };
        ids.iter().map(row).collect()
    };
    let outgoing = rows(cell.connections_out(set.name())?);
    let expected = rows(cell.connections_in(set.name())?);
    let mut incoming: Vec<Vec<u64>> =
        expected.iter().map(|words| vec![u64::MAX; words.len()]).collect();
    cell.exchange(set.name(), &outgoing, &mut incoming)?;
    assert_eq!(incoming, expected, "set {} at {}", set.name(), cell.id());
    Ok(())
}

/// Exchanges the vectors of all halos: started exchanges, and a blocking one between their halves.
fn by_plans(cell: &mut Cell<'_>, halos: &[Halo]) -> Result<(), CellError> {
    let own = cell.id();
    let mut started = Vec::new();
    for halo in halos {
        for op in STARTED {
            let vector = halo.vector(own, op);
            let pending = cell.start(&halo.plan, op, &vector)?;
            started.push((halo, op, vector, pending));
        }
    }
    for halo in halos {
        let mut vector = halo.vector(own, BLOCKING);
        cell.exchange_nodes(&halo.plan, BLOCKING, &mut vector)?;
        assert_eq!(vector, halo.expected(own, BLOCKING), "set {} at {own}", halo.set.name());
    }
    // Each cell completes them in another order, and some ask before whether they could.
    while !started.is_empty() {
        let row = own.index() % started.len();
        let (halo, op, mut vector, pending) = started.swap_remove(row);
        if own.index() % 3 == 0 {
            cell.test(&pending)?;
        }
        cell.wait(&halo.plan, pending, &mut vector)?;
        assert_eq!(vector, halo.expected(own, op), "set {}, {op:?} at {own}", halo.set.name());
    }
    Ok(())
}

/// A set with lists of nodes, and the nodes of each cell.
struct Halo {
    set: Arc<ConnectionSet>,
    plan: Plan,
    /// The nodes of each cell, ascending.
    nodes: Vec<Vec<u64>>,
}

impl Halo {
    /// Nothing for a set without lists. The nodes of a cell are those that it sends or receives.
    fn new(image: &Arc<Image>, set: &Arc<ConnectionSet>) -> Option<Self> {
        let lists = set.nodes()?;
        let mut nodes = vec![Vec::new(); image.machine().cell_count()];
        for (id, connection) in set.iter() {
            for end in [connection.source, connection.target] {
                nodes[end.index()].extend(lists.of(id).iter().map(|&node| u64::from(node)));
            }
        }
        for row in &mut nodes {
            row.sort_unstable();
            row.dedup();
        }
        let in_blocks = block(set);
        let layout = Layout::from_image(image, set.name(), in_blocks, &nodes);
        let plan = Plan::new(image, set.name(), layout.expect("cells have all nodes"), in_blocks);
        Some(Self { set: set.clone(), plan: plan.expect("the set is that of the layout"), nodes })
    }

    /// The vector of a cell before the exchange that combines by `op`.
    fn vector(&self, cell: CellId, op: Op) -> Vec<u64> {
        let block = to_u64(self.plan.block());
        let of_node = |&node: &u64| (0..block).map(move |word| value(cell, node, word, op));
        self.nodes[cell.index()].iter().flat_map(of_node).collect()
    }

    /// The vector of a cell after it: the values of other cells come in by connections in the order of their
    /// ids, all of them as they were before.
    fn expected(&self, cell: CellId, op: Op) -> Vec<u64> {
        let mut vector = self.vector(cell, op);
        let (own, block) = (&self.nodes[cell.index()], self.plan.block());
        let lists = self.set.nodes().expect("a halo has lists");
        for (id, connection) in self.set.iter().filter(|(_, c)| c.target == cell) {
            for &node in lists.of(id).iter().step_by(block) {
                let place = own.binary_search(&node.into()).expect("a cell has what it receives");
                for word in 0..block {
                    let here = &mut vector[place * block + word];
                    *here =
                        op.apply(*here, value(connection.source, node.into(), to_u64(word), op));
                }
            }
        }
        vector
    }
}

/// The number of words that each node has in the lists of a set: the length of the shortest run of equal nodes.
fn block(set: &ConnectionSet) -> usize {
    let lists = set.nodes().expect("only for sets with lists");
    let runs = set.iter().flat_map(|(id, _)| lists.of(id).chunk_by(|a, b| a == b));
    runs.map(<[u32]>::len).min().unwrap_or(1)
}

/// A value that tells cells, nodes, words and exchanges apart.
fn value(cell: CellId, node: u64, word: u64, op: Op) -> u64 {
    let number = (to_u64(cell.index()) << 40) ^ (node << 8) ^ (word << 3) ^ op_number(op);
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

fn op_number(op: Op) -> u64 {
    match op {
        Op::Copy => 0,
        Op::Add => 1,
        Op::Min => 2,
        Op::Max => 3,
    }
}
