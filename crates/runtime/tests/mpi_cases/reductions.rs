//! Reductions that are started and completed later, by attached programs and by cells.

use conset_runtime::ir::{CellId, Connection, ConnectionSet};
use conset_runtime::mpi::{Attached, Comm, HaloError, PendingReduction};
use conset_runtime::{Collectives, Number, Op, Transport, World, tree_sets};

use super::attached::{attach, ring};
use super::attached_errors::own_comm;
use super::tree_cases::{in_phases, wrong_started};
use crate::build;

/// The arrays of a rank, by number: short and long ones, one of no words and one of several pieces.
const LENGTHS: [usize; 11] = [1, 0, 3, 5000, 1, 2, 70_000, 127, 1, 40, 3];

fn array(rank: usize, number: usize) -> Vec<f64> {
    let value = |at: usize| ((rank * 7919 + number * 104_729 + at * 31) % 1009) as f64 / 7.0 - 40.0;
    (0..LENGTHS[number]).map(value).collect()
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Many at a time, completed in another order, beside blocking calls and exchanges: the bits are
/// those of blocking reductions.
pub(super) fn attached_bits(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let numbers = 0..LENGTHS.len();
    let expected = numbers.clone().map(|number| {
        let mut x = array(rank, number);
        attached.allreduce(Op::Add, &mut x).expect("sums");
        x
    });
    let expected: Vec<Vec<f64>> = expected.collect();
    for round in 0..3 {
        let start = |number| attached.start_allreduce(Op::Add, &array(rank, number));
        let mut pending: Vec<(usize, PendingReduction)> =
            numbers.clone().map(|number| (number, start(number).expect("started"))).collect();
        match round {
            // Nothing in between.
            0 => {}
            1 => {
                let mut most = [rank as u32];
                attached.allreduce(Op::Max, &mut most).expect("a blocking one in between");
                assert_eq!(most, [ranks as u32 - 1]);
                attached.broadcast(ranks - 1, &mut most).expect("a broadcast in between");
            }
            _ => {
                // A set-up, and exchanges of its halo.
                let mut halo = ring(&attached, 2);
                let mut x = vec![rank as f64; 4];
                halo.exchange(&mut x, 1).expect("exchanged");
                assert_eq!(x[2], ((rank + 1) % ranks) as f64);
            }
        }
        // In another order on every rank.
        pending.rotate_left((rank + round) % LENGTHS.len());
        for (number, pending) in pending.into_iter().rev() {
            let mut x = vec![f64::NAN; LENGTHS[number]];
            attached.wait_allreduce(pending, &mut x).expect("completed");
            assert_eq!(bits(&x), bits(&expected[number]), "reduction {number}");
        }
    }
}

/// Some ranks exchange before they complete a reduction, and others afterwards: whoever waits in
/// the exchange passes on what the reduction needs.
pub(super) fn attached_any_order(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let mut halo = ring(&attached, 3);
    for round in 0..200 {
        let mut x = vec![(rank + round) as f64; 6];
        let pending = attached.start_allreduce(Op::Add, &x[..1]).expect("started");
        let mut sum = [f64::NAN];
        let late = (rank + round) % 3 == 0;
        if !late {
            attached.wait_allreduce(pending, &mut sum).expect("completed");
        }
        halo.exchange(&mut x, 1).expect("exchanged");
        assert_eq!(x[3], ((rank + 1) % ranks + round) as f64);
        if late {
            while !attached.test_allreduce(&pending).expect("tested") {}
            attached.wait_allreduce(pending, &mut sum).expect("completed");
        }
        assert_eq!(sum[0], (ranks * round + ranks * (ranks - 1) / 2) as f64);
    }
}

/// Wrong uses are errors, after which the reduction can still be completed.
pub(super) fn attached_misuse(comm: &Comm) {
    let attached = attach(comm);
    let wrong = Err(HaloError::Reduction);
    let pending = attached.start_allreduce(Op::Max, &[1.0, 2.0]).expect("started");
    assert_eq!(attached.wait_allreduce(pending, &mut [0.0]), wrong);
    assert_eq!(attached.wait_allreduce(pending, &mut [0u64; 2]), wrong);
    assert_eq!(attached.wait_allreduce(pending, &mut [0u32; 4]), wrong);
    let other = attach(&own_comm());
    assert_eq!(other.wait_allreduce(pending, &mut [0.0; 2]), wrong);
    assert_eq!(other.test_allreduce(&pending), Err(HaloError::Reduction));
    let mut x = [0.0; 2];
    attached.wait_allreduce(pending, &mut x).expect("completed");
    assert_eq!(x, [1.0, 2.0]);
    assert_eq!(attached.wait_allreduce(pending, &mut x), wrong);
    let none = attached.pending_reduction(pending.number() + 1);
    assert_eq!(attached.wait_allreduce(none, &mut x), wrong);
    // One that is forgotten disturbs nobody.
    let _ = attached.start_allreduce(Op::Add, &[1.0]).expect("started");
    attached.barrier().expect("all come");
}

fn differs<W: Number>(attached: &Attached, x: &[W]) -> Result<(), HaloError> {
    let pending = attached.start_allreduce(Op::Add, x)?;
    attached.wait_allreduce(pending, &mut x.to_vec())
}

/// Another type on one rank, or another operation: an error there where it is noticed.
pub(super) fn attached_unlike(_: &Comm) {
    let attached = attach(&own_comm());
    let rank = attached.rank();
    let found = if rank == 1 { differs(&attached, &[1i64]) } else { differs(&attached, &[1.0]) };
    match rank {
        0 => assert_eq!(found, Err(HaloError::Calls { ranks: [1, 0] })),
        _ => assert!(matches!(found, Err(HaloError::Mpi(_))), "{found:?}"),
    }
    assert_eq!(attached.start_allreduce(Op::Add, &[1.0]), Err(HaloError::Lost));
    assert_eq!(attached.barrier(), Err(HaloError::Lost));
    // They are late by their time-out; whatever follows begins together.
    attach(&super::failures::patient(&own_comm()));
}

/// Blocking reductions allocate nothing after the first ones.
pub(super) fn attached_allocations(comm: &Comm) {
    let attached = attach(comm);
    let mut x = vec![1.0; 100];
    let mut before = 0;
    for round in 0..20 {
        attached.allreduce(Op::Max, &mut x).expect("maxima");
        let now = crate::ALLOCATIONS.load(std::sync::atomic::Ordering::Relaxed);
        assert!(round <= 8 || now == before, "round {round}");
        before = now;
    }
}

/// Cells, one on a rank and several, start and complete reductions in many ways.
pub(super) fn of_cells(comm: &Comm) {
    for cells in [comm.size(), 2 * comm.size() + 1, 3] {
        let image = in_phases(&build::machine(&format!("ring:{cells}"), |_| ()), 2);
        let trees = Collectives::new(&image).unwrap();
        let world = World::new(image).on(Transport::Mpi(comm.clone()));
        let lengths = [1, 0, 3, 40, 40_000, 1, 2];
        let (wrong, _) = world.try_run(|cell| wrong_started(cell, &trees, &lengths)).unwrap();
        assert_eq!(wrong.iter().sum::<usize>(), 0, "{cells} cells");
    }
}

/// As [`attached_any_order`], by cells.
pub(super) fn any_order_of_cells(comm: &Comm) {
    for cells in [comm.size() as u32, 2 * comm.size() as u32 + 1] {
        let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 12);
        let next = |c: u32| Connection::new(CellId(c), CellId((c + 1) % cells), 1);
        let ring = ConnectionSet::new("ring", (0..cells).map(next).collect()).unwrap();
        let [_, _, allreduce] = tree_sets(&machine, 1).unwrap();
        let image = build::build_all(&machine, [ring, allreduce]);
        let trees = Collectives::new(&image).unwrap();
        let world = World::new(image).on(Transport::Mpi(comm.clone()));
        let (wrong, _) = world
            .try_run(|cell| {
                let (id, mut wrong) = (cell.id().0, 0);
                for round in 0..50 {
                    let token = cell.start_allreduce(&trees, Op::Add, &[u64::from(id + round)])?;
                    let (mut sum, late) = ([0u64], (id + round) % 3 == 0);
                    if !late {
                        cell.wait_allreduce(token, &mut sum)?;
                    }
                    let mut came = [[0u64]];
                    cell.exchange("ring", &[[u64::from(id)]], &mut came)?;
                    wrong += usize::from(came != [[u64::from((id + cells - 1) % cells)]]);
                    if late {
                        while !cell.test(&token)? {}
                        cell.wait_allreduce(token, &mut sum)?;
                    }
                    let all = u64::from(cells * round + cells * (cells - 1) / 2);
                    wrong += usize::from(sum != [all]);
                }
                Ok(wrong)
            })
            .unwrap();
        assert_eq!(wrong.iter().sum::<usize>(), 0, "{cells} cells");
    }
}

/// A cell ends without the reduction that others wait for.
pub(super) fn ended(comm: &Comm) {
    super::trees::fails(comm, |cell, trees| {
        if cell.id() == CellId(3) {
            return Ok(());
        }
        let token = cell.start_allreduce(trees, Op::Add, &[1.0])?;
        cell.wait_allreduce(token, &mut [0.0])
    });
}
