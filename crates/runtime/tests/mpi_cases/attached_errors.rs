//! Attached programs that do something wrong: errors are values of the ranks that can know them, and
//! the job goes on.

use std::ops::Range;
use std::time::Duration;

use conset_runtime::Op;
use conset_runtime::mpi::{Comm, Halo, HaloError, MpiError, SetupFault};

use super::attached::{attach, ring};

/// A communicator that nobody uses afterwards.
pub(super) fn own_comm() -> Comm {
    Comm::world().expect("MPI works").timeout(Duration::from_secs(2))
}

/// What is wrong with one rank's ids is an error of all ranks, and they can go on.
pub(super) fn faults(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let last = ranks - 1;
    let at_last = |fault| if rank == last { fault } else { vec![] };
    let expect = |found: Result<Halo, HaloError>, rank: usize, fault: SetupFault| {
        assert_eq!(found.err(), Some(HaloError::Setup { rank, fault }));
    };
    let own = rank as u64 * 10..rank as u64 * 10 + 10;
    let owned = |own: Range<u64>, ghosts: Vec<u64>| attached.owned_halo(own, &ghosts);
    expect(
        attached.shared_halo(&at_last(vec![5, 6, 5])),
        last,
        SetupFault::Repeated { id: 5, first: 0, second: 2 },
    );
    let nobody = 10 * ranks as u64;
    let fault = SetupFault::Unowned { id: nobody };
    expect(owned(own.clone(), at_last(vec![0, nobody])), last, fault);
    expect(owned(own.clone(), at_last(vec![u64::MAX])), last, SetupFault::Unowned { id: u64::MAX });
    expect(
        attached.indexed_halo(&at_last(vec![7, nobody]), usize::from(rank == last)),
        last,
        fault,
    );
    let fault = SetupFault::OwnGhost { id: own.start };
    if rank == last {
        expect(owned(own.clone(), vec![own.start]), last, fault);
    } else {
        assert!(
            matches!(owned(own.clone(), vec![]), Err(HaloError::Setup { rank, .. }) if rank == last)
        );
    }
    let repeated = SetupFault::Repeated { id: 1, first: 10, second: 12 };
    expect(owned(own.clone(), at_last(vec![1, 2, 1])), last, repeated);
    let fault = SetupFault::Range { start: 3, end: 2 };
    #[allow(clippy::reversed_empty_ranges, reason = "such ranges come from callers")]
    let wrong = if rank == last { 3..2 } else { own.clone() };
    expect(owned(wrong, vec![]), last, fault);
    // The last rank claims the first id of the first rank, too.
    let claim = if rank == last { 0..3 } else { own.clone() };
    expect(owned(claim, vec![]), 0, SetupFault::OwnedTwice { id: 0, other: last as u64 });
    let mine: Vec<u64> = own.clone().collect();
    let ids = if rank == last { vec![4] } else { mine.clone() };
    expect(
        attached.indexed_halo(&ids, ids.len()),
        0,
        SetupFault::OwnedTwice { id: 4, other: last as u64 },
    );
    let count = SetupFault::OwnedCount { owned: 1, ids: 0 };
    expect(attached.indexed_halo(&[], usize::from(rank == last)), last, count);
    // Each row has itself and the next column; one has a column of nobody.
    let pointers: Vec<u32> = (0..=10).collect();
    let mut columns = mine.clone();
    if rank == last {
        columns[3] = nobody + 5;
    }
    let rows = |pointers: &[u32], columns: &[u64]| {
        attached.csr_halo(own.clone(), pointers, columns).map(|rows| rows.halo)
    };
    let row = last as u64 * 10 + 3;
    let fault = SetupFault::Column { row, column: nobody + 5 };
    expect(rows(&pointers, &columns), last, fault);
    let short = if rank == last { &pointers[..10] } else { &pointers[..] };
    expect(rows(short, &mine), last, SetupFault::RowPointers { found: 10, expected: 11 });
    // Ranks that make different calls.
    let different = match rank {
        0 => attached.shared_halo(&[1]),
        _ => owned(own.clone(), vec![]),
    };
    assert_eq!(different.err(), Some(HaloError::Calls { ranks: [0, 1] }));
    // And on it goes.
    let next = (own.end) % nobody;
    let mut halo = owned(own.clone(), vec![next]).expect("ids");
    let mut x: Vec<u64> = own.chain([0]).collect();
    halo.exchange(&mut x, 1).expect("exchanged");
    assert_eq!(x[10], next);
    assert_eq!(
        halo.exchange(&mut x, 2).unwrap_err(),
        HaloError::Length { found: 11, entries: 11, block: 2 }
    );
    assert!(matches!(halo.exchange::<u8>(&mut [], 0), Err(HaloError::Nothing { .. })));
    assert!(matches!(halo.sum_shared(&mut x, 1), Err(HaloError::Kind { .. })));
}

/// Another block on one rank: no wrong words, an error where messages have another size, and other
/// halos go on.
pub(super) fn other_block(_: &Comm) {
    let comm = own_comm();
    let attached = attach(&comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let mut halo = ring(&attached, 2);
    let block = if rank == 1 { 2 } else { 1 };
    let mut x = vec![rank as u32; 4 * block];
    let found = halo.exchange(&mut x, block);
    // Rank 1 sends more to rank 0, and receives less from rank 2.
    let mismatch =
        |rank, found, expected| HaloError::Mismatch { halo: halo.number(), rank, found, expected };
    match rank {
        0 => assert_eq!(found, Err(mismatch(1, None, 8))),
        1 => assert_eq!(found, Err(mismatch(2 % ranks, Some(8), 16))),
        _ => assert_eq!(found, Ok(())),
    }
    if rank < 2 {
        assert_eq!(halo.exchange(&mut x, block), Err(HaloError::Failed { halo: halo.number() }));
    }
    drop(halo);
    let mut halo = ring(&attached, 2);
    let mut x = vec![rank as u32; 4];
    halo.exchange(&mut x, 1).expect("exchanged");
    assert_eq!(x[2], ((rank + 1) % ranks) as u32);
}

/// Another halo on one rank: nothing is delivered, and the wait for it is an error that names the
/// rank.
pub(super) fn other_halo(_: &Comm) {
    let comm = own_comm();
    let attached = attach(&comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let mut halos = [ring(&attached, 2), ring(&attached, 2)];
    let mut x = vec![rank as u32; 4];
    let found = halos[usize::from(rank == 1)].exchange(&mut x, 1);
    if rank == 0 || rank == 1 {
        let Err(HaloError::Mpi(MpiError::Missing { rank: own, awaited, place, .. })) = found else {
            panic!("{found:?}");
        };
        assert_eq!((own, awaited), (rank, vec![(rank + 1) % ranks]));
        assert!(place.contains("an exchange of halo"), "{place}");
        assert_eq!(x[2..], [rank as u32; 2]);
    } else {
        found.expect("exchanged");
    }
    // Two ranks are late by their time-out; whatever follows begins together.
    attach(&super::failures::patient(&own_comm()));
}

/// An array of another length on one rank: its parent reports it, whether messages of the array are
/// short or long, and the others learn that nobody comes.
pub(super) fn other_length(_: &Comm) {
    for length in [2, 5000] {
        let attached = attach(&own_comm());
        let rank = attached.rank();
        let mut x = vec![1.0; if rank == 1 { length } else { 3 }];
        let found = attached.allreduce(Op::Add, &mut x);
        if rank == 0 {
            assert_eq!(found, Err(HaloError::Calls { ranks: [1, 0] }));
        } else {
            assert!(matches!(found, Err(HaloError::Mpi(MpiError::Missing { .. }))), "{found:?}");
        }
        assert_eq!(attached.barrier(), Err(HaloError::Lost));
        // They are late by their time-out; whatever follows begins together.
        attach(&super::failures::patient(&own_comm()));
    }
}
