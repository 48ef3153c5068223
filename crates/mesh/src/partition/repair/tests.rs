//! The model against the halo, and what a repair guarantees.

use super::super::PartitionOptions;
use super::*;
use crate::generate::plate;
use crate::halo::halo;
use crate::model::Graph;

fn rectangle() -> Source {
    Source::Mesh(plate(24, 18).unwrap())
}

/// A square grid of vertices with diagonals one way.
fn grid(side: u32) -> Graph {
    let mut lists = vec![Vec::new(); (side * side) as usize];
    let at = |x: u32, y: u32| y * side + x;
    for y in 0..side {
        for x in 0..side {
            for (dx, dy) in [(1, 0), (0, 1), (1, 1)] {
                if x + dx < side && y + dy < side {
                    let (a, b) = (at(x, y), at(x + dx, y + dy));
                    lists[a as usize].push(b);
                    lists[b as usize].push(a);
                }
            }
        }
    }
    let mut first = vec![0];
    for list in &lists {
        first.push(first[first.len() - 1] + list.len() as u32);
    }
    Graph::new(first, lists.concat(), false).unwrap()
}

fn cost() -> ExchangeCost {
    ExchangeCost::new(528, 12, 2)
}

/// The price of a partition by the halo itself.
fn price(source: &Source, partition: &Partition, cost: &ExchangeCost) -> (u64, u64) {
    let halo = halo(source, partition, "h").unwrap();
    let mut totals = vec![[0u64; 4]; partition.part_count()];
    for connection in halo.set.connections() {
        let words = u64::from(connection.words);
        totals[connection.source.index()][0] += words;
        totals[connection.source.index()][1] += 1;
        totals[connection.target.index()][2] += words;
        totals[connection.target.index()][3] += 1;
    }
    let ends = totals.iter().map(|t| t[1] + t[3]).max().unwrap();
    let load = totals.iter().map(|t| cost.load((t[0], t[1]), (t[2], t[3]))).max().unwrap();
    cost.price(cost.phases(ends), load)
}

#[test]
fn the_model_follows_the_halo_through_moves() {
    let sized = grid(12).with_vertex_sizes((0..144).map(|v| v % 4).collect()).unwrap();
    for source in [rectangle(), Source::Graph(grid(15)), Source::Graph(sized)] {
        let partitioner = Partitioner::new(&source, 7, "f").unwrap();
        let partition = partitioner.partition(&PartitionOptions::new(7).seed(5)).unwrap();
        let nets = Nets::new(&source);
        let mut exchange = Exchange::new(&nets, &partition, cost());
        let items = partition.part_of().len() as u32;
        let mut state = 1u32;
        for _ in 0..300 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            exchange.move_item((state >> 8) % items, state % 7);
            let now = Partition::new(7, exchange.part_of().to_vec()).unwrap();
            assert_eq!(exchange.price(), price(&source, &now, &cost()));
        }
    }
}

#[test]
fn a_repair_lowers_the_price_and_keeps_the_balance() {
    let mut better = 0;
    for source in [rectangle(), Source::Graph(grid(40))] {
        let nets = Nets::new(&source);
        for parts in [2, 5, 16, 30] {
            let partitioner = Partitioner::new(&source, parts, "f").unwrap();
            for seed in 1..4 {
                let options = PartitionOptions::new(parts).seed(seed);
                let made = partitioner.partition(&options).unwrap();
                let (repaired, moved) = partitioner.repair(&nets, &made, cost(), 30, 1 << 20);
                let (before, after) =
                    (price(&source, &made, &cost()), price(&source, &repaired, &cost()));
                assert!(repaired.sizes().iter().all(|&size| size > 0));
                assert!(partitioner.is_balanced(&repaired, 30), "{parts} parts, seed {seed}");
                if partitioner.is_balanced(&made, 30) {
                    assert!(after <= before, "{parts} parts: {before:?} to {after:?}");
                    assert_eq!(moved == 0, made == repaired);
                }
                better += u32::from(after < before);
            }
        }
    }
    assert!(better >= 12, "{better} of 24 repairs lowered the price");
}

#[test]
fn repairs_are_limited_by_work() {
    let source = rectangle();
    let partitioner = Partitioner::new(&source, 16, "f").unwrap();
    let made = partitioner.partition(&PartitionOptions::new(16)).unwrap();
    let nets = Nets::new(&source);
    assert_eq!(partitioner.repair(&nets, &made, cost(), 1000, 0), (made.clone(), 0));
    let again = || partitioner.repair(&nets, &made, cost(), 30, 5000);
    assert_eq!(again(), again());
}

#[test]
fn odd_partitions_are_left_alone() {
    let two = Graph::new(vec![0, 1, 2], vec![1, 0], false).unwrap();
    let alone = Graph::new(vec![0; 6], vec![], false).unwrap();
    for (graph, parts) in [(two.clone(), 1), (two, 2), (alone.clone(), 5), (alone, 3)] {
        let source = Source::Graph(graph);
        let partitioner = Partitioner::new(&source, parts, "f").unwrap();
        let made = partitioner.partition(&PartitionOptions::new(parts)).unwrap();
        let nets = Nets::new(&source);
        let (repaired, moved) = partitioner.repair(&nets, &made, cost(), 0, 1 << 20);
        assert_eq!((repaired, moved), (made, 0));
    }
}

#[test]
fn every_constraint_is_balanced() {
    let weights: Vec<u32> = (0..900u32).flat_map(|v| [1 + v % 3, u32::from(v % 5 == 0)]).collect();
    let source = Source::Graph(grid(30).with_vertex_weights(weights, 2).unwrap());
    let partitioner = Partitioner::new(&source, 6, "f").unwrap();
    let made = partitioner.partition(&PartitionOptions::new(6)).unwrap();
    let nets = Nets::new(&source);
    let (repaired, _) = partitioner.repair(&nets, &made, cost(), 50, 1 << 20);
    let limit = partitioner.imbalance(&made).max(0.051);
    assert!(partitioner.imbalance(&repaired) <= limit);
}
