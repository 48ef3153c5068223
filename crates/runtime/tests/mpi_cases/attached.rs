//! Attached programs: halos and collectives without a callback.

use std::fmt::Debug;
use std::ops::Range;

use conset_runtime::mpi::{Attached, Comm, Field, Halo, HaloError, MpiError, Pod, SetupFault};
use conset_runtime::{Collectives, Layout, Number, Op, Plan, Transport, World, tree_sets};

use crate::build;

pub(super) fn attach(comm: &Comm) -> Attached {
    Attached::new(comm).expect("all ranks attach")
}

/// A number that looks random.
fn noise(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The value of an id, in a word of any size that the tests use.
fn value(id: u64, offset: usize) -> f64 {
    (noise(id * 31 + offset as u64) % 100_000) as f64 / 7.0
}

/// The ids of a rank: some of `pool`, in any order.
fn some_ids(rank: usize, pool: u64, stride: u64, share: u64) -> Vec<u64> {
    let mut ids: Vec<u64> = (0..pool)
        .filter(|id| noise(id * 1009 + rank as u64).is_multiple_of(share))
        .map(|id| id * stride)
        .collect();
    ids.sort_by_key(|&id| noise(id ^ rank as u64));
    ids
}

fn ids_of_all(ranks: usize, pool: u64, stride: u64, share: u64) -> Vec<Vec<u64>> {
    (0..ranks).map(|rank| some_ids(rank, pool, stride, share)).collect()
}

/// The values that ranks have for an id, by rank.
fn copies(all: &[Vec<u64>], id: u64, offset: usize) -> impl Iterator<Item = f64> + '_ {
    let holders = (0..all.len()).filter(move |&rank| all[rank].contains(&id));
    holders.map(move |rank| value(id + rank as u64 * 7919, offset))
}

fn own_values(ids: &[u64], rank: usize, block: usize) -> Vec<f64> {
    let of = |&id: &u64| (0..block).map(move |offset| value(id + rank as u64 * 7919, offset));
    ids.iter().flat_map(of).collect()
}

type Fold = fn(f64, f64) -> f64;

/// Sums, minima and maxima over all copies, for blocks and ids of any size.
pub(super) fn shared(comm: &Comm) {
    let attached = attach(comm);
    let rank = attached.rank();
    for (pool, stride, share) in [(40, 1, 2), (300, 1 << 50, 3), (17, 3, 1), (1, 1, 1), (5, 1, 90)]
    {
        let all = ids_of_all(attached.size(), pool, stride, share);
        let mut halo = attached.shared_halo(&all[rank]).expect("ids");
        for block in [1, 3] {
            let folds: [(Op, Fold); 4] = [
                (Op::Add, |a, b| a + b),
                (Op::Min, f64::min),
                (Op::Max, f64::max),
                (Op::Copy, |a, _| a),
            ];
            for (op, fold) in folds {
                let mut x = own_values(&all[rank], rank, block);
                halo.combine_shared(op, &mut x, block).expect("combined");
                for (row, &id) in all[rank].iter().enumerate() {
                    for offset in 0..block {
                        let expected = copies(&all, id, offset).reduce(fold).expect("one is own");
                        assert_eq!(x[row * block + offset].to_bits(), expected.to_bits());
                    }
                }
            }
        }
        let count = |&id: &u64| copies(&all, id, 0).count() as u32;
        assert_eq!(halo.multiplicity(), all[rank].iter().map(count).collect::<Vec<_>>());
        let lowest = |id: &u64| (0..attached.size()).find(|&other| all[other].contains(id));
        let owned: Vec<bool> = all[rank].iter().map(|id| lowest(id) == Some(rank)).collect();
        assert_eq!(halo.owned(), owned);
    }
}

/// The same bits as the callback form, for shared entries and for reductions.
pub(super) fn as_callback_form(comm: &Comm) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let all = ids_of_all(ranks, 200, 1, 2);
    let machine = build::machine(&format!("ring:{ranks}"), |p| p.channels_per_cell = 64);
    let layout = Layout::from_shared_ids(&all).expect("ids");
    let mut sets = vec![layout.set("halo", 2).expect("few words")];
    sets.extend(tree_sets(&machine, 2).expect("few words"));
    let image = build::build_all(&machine, sets);
    let plan = Plan::new(&image, "halo", layout, 2).expect("the layout is the set's");
    let trees = Collectives::new(&image).expect("trees");
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let sums = |x: &[f64]| [x.iter().sum::<f64>(), x.iter().map(|x| x * x).sum()];
    let (expected, _) = world
        .try_run(|cell| {
            let id = cell.id().index();
            let mut x = own_values(&all[id], id, 2);
            cell.sum_shared(&plan, &mut x)?;
            let mut sums = sums(&x);
            cell.allreduce(&trees, Op::Add, &mut sums)?;
            x.extend(sums);
            Ok(x)
        })
        .expect("the callback form");
    let attached = attach(comm);
    let mut halo = attached.shared_halo(&all[rank]).expect("ids");
    let mut x = own_values(&all[rank], rank, 2);
    halo.sum_shared(&mut x, 2).expect("sums");
    let mut sums = sums(&x);
    attached.allreduce(Op::Add, &mut sums).expect("sums");
    x.extend(sums);
    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&x), bits(&expected[0]));
}

/// A range of ids for each rank: of different lengths, some empty, with gaps, in no order.
fn range(rank: usize, ranks: usize, gap: u64) -> Range<u64> {
    let place = (rank * 3 + 1) % ranks.next_multiple_of(3).saturating_add(1);
    let start = place as u64 * (100 + gap);
    start..start + noise(rank as u64) % 100 * u64::from(rank % 5 != 4)
}

/// Ghosts of a rank: ids of other ranks.
fn ghosts(rank: usize, ranks: usize, gap: u64, share: u64) -> Vec<u64> {
    let others = (0..ranks).filter(|&other| other != rank);
    let ids = others.flat_map(|other| range(other, ranks, gap));
    let mut ids: Vec<u64> =
        ids.filter(|id| noise(id + rank as u64).is_multiple_of(share)).collect();
    if share.is_multiple_of(2) {
        ids.sort_by_key(|&id| noise(id));
    }
    ids
}

/// The owned entries of vectors are set; the ghosts must come.
fn brings<T: Pod + PartialEq + Debug>(
    halo: &mut Halo,
    (owned, ids): (usize, &[u64]),
    block: usize,
    nothing: T,
    of: impl Fn(f64) -> T,
) {
    let all = |id: &u64| (0..block).map(|offset| of(value(*id, offset))).collect::<Vec<_>>();
    let expected: Vec<T> = ids.iter().flat_map(all).collect();
    let mut x = expected.clone();
    x[owned * block..].fill(nothing);
    let before = x.clone();
    halo.exchange(&mut x, block).expect("exchanged");
    assert_eq!(x, expected);
    x.clone_from(&before);
    let pending = halo.start(&x, block).expect("started");
    assert_eq!(x, before);
    while !halo.test(&pending).expect("tested") {
        std::thread::yield_now();
    }
    halo.wait(pending, &mut x).expect("completed");
    assert_eq!(x, expected);
}

fn every_type(halo: &mut Halo, owned: usize, ids: &[u64]) {
    for block in [1, 3, 7] {
        let entries = (owned, ids);
        brings(halo, entries, block, -1.0f64, |x| x);
        brings(halo, entries, block, -1.0f32, |x| x as f32);
        brings(halo, entries, block, [-1.0; 2], |x| [x, -x]);
        brings(halo, entries, block, -1i32, |x| x as i32);
        brings(halo, entries, block, 255u8, |x| (x as u64 % 251) as u8);
        brings(halo, entries, block, -1i16, |x| (x as u64 % 251) as i16);
        brings(halo, entries, block, u64::MAX, f64::to_bits);
    }
}

/// Contributions of ghosts to owners.
fn reduces<W: Number + Pod + PartialEq + Debug>(
    attached: &Attached,
    halo: &mut Halo,
    (owned, ids): (usize, &[u64]),
    ids_of: &dyn Fn(usize) -> (usize, Vec<u64>),
    of: impl Fn(f64) -> W,
) {
    let rank = attached.rank();
    let mine = |rank: usize, id: u64| of(value(id + rank as u64, 1));
    let all: Vec<Vec<u64>> = (0..attached.size())
        .map(|other| {
            let (owned, ids) = ids_of(other);
            ids[owned..].to_vec()
        })
        .collect();
    for op in [Op::Add, Op::Min, Op::Max] {
        let before: Vec<W> = ids.iter().map(|&id| mine(rank, id)).collect();
        let mut x = before.clone();
        halo.reduce(op, &mut x, 1).expect("reduced");
        assert_eq!(x[owned..], before[owned..]);
        for (row, &id) in ids[..owned].iter().enumerate() {
            let ghosts = (0..attached.size()).filter(|&other| all[other].contains(&id));
            let expected = ghosts.fold(before[row], |x, other| op.apply(x, mine(other, id)));
            assert_eq!(x[row], expected, "{op:?}");
        }
    }
}

/// Owned ranges and ghosts, in words of all sizes and blocks of several.
pub(super) fn owned(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    for (gap, share) in [(0, 3), (0, 4), (1 << 40, 5), (1 << 50, 1000), (7, 1)] {
        let ids_of = |rank| {
            let own: Vec<u64> = range(rank, ranks, gap).collect();
            (own.len(), [own, ghosts(rank, ranks, gap, share)].concat())
        };
        let (owned, ids) = ids_of(rank);
        let mut halo = attached.owned_halo(range(rank, ranks, gap), &ids[owned..]).expect("ids");
        assert_eq!(halo.entries(), ids.len());
        assert_eq!(halo.received_entries(), ids.len() - owned);
        assert!(halo.sources().is_sorted() && halo.targets().is_sorted());
        every_type(&mut halo, owned, &ids);
        reduces(&attached, &mut halo, (owned, &ids), &ids_of, |x| x);
        reduces(&attached, &mut halo, (owned, &ids), &ids_of, |x| x as f32);
        reduces(&attached, &mut halo, (owned, &ids), &ids_of, |x| x as i64);
        let own: Vec<bool> = (0..ids.len()).map(|row| row < owned).collect();
        assert_eq!(halo.owned(), own);
    }
}

/// Owned ids of any numbers.
pub(super) fn indexed(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    // The lowest of the ranks that have an id owns it.
    let all = ids_of_all(ranks, 150, 1 << 33, 3);
    let ids_of = |rank: usize| {
        let owns = |id: &u64| !all[..rank].iter().any(|lower| lower.contains(id));
        let (own, ghosts): (Vec<u64>, Vec<u64>) = all[rank].iter().partition(|id| owns(id));
        (own.len(), [own, ghosts].concat())
    };
    let (owned, ids) = ids_of(rank);
    let mut halo = attached.indexed_halo(&ids, owned).expect("ids");
    every_type(&mut halo, owned, &ids);
    reduces(&attached, &mut halo, (owned, &ids), &ids_of, |x| x);
}

/// Several vectors by one message, of words of different sizes.
pub(super) fn fields(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let own = range(rank, ranks, 0);
    let ids: Vec<u64> = own.clone().chain(ghosts(rank, ranks, 0, 3)).collect();
    let owned = (own.end - own.start) as usize;
    let mut halo = attached.owned_halo(own, &ids[owned..]).expect("ids");
    let small: Vec<u8> = ids.iter().map(|id| (noise(*id) % 255) as u8).collect();
    let pairs: Vec<f32> = ids.iter().flat_map(|id| [*id as f32, -(*id as f32)]).collect();
    let large: Vec<f64> = ids.iter().map(|id| value(*id, 0)).collect();
    let mut fields = (small.clone(), pairs.clone(), large.clone());
    fields.0[owned..].fill(0);
    fields.1[2 * owned..].fill(0.0);
    fields.2[owned..].fill(0.0);
    let (a, b, c) = (&mut fields.0, &mut fields.1, &mut fields.2);
    let mut together = [Field::new(a, 1), Field::new(b, 2), Field::new(c, 1)];
    halo.exchange_fields(&mut together).expect("exchanged");
    assert_eq!(fields, (small, pairs, large));
    assert!(matches!(halo.exchange_fields(&mut []), Err(HaloError::Nothing { .. })));
}

/// Rows of a matrix: a product is that of the whole matrix, to the bit, and so is one with the
/// transposed rows if the numbers are integers.
pub(super) fn rows(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    let n = 31 * ranks as u64 + 5;
    let columns = |row: u64| -> Vec<u64> {
        let reach = [0, 1, n - 1, 17, noise(row) % n, noise(row + n) % n];
        reach.iter().map(|step| (row + step) % n).collect()
    };
    let entry = |row: u64, place: usize| value(row, place) as i64 as f64;
    // Ranges in descending order, of different lengths.
    let bound = |rank: usize| n * (rank * rank) as u64 / (ranks * ranks) as u64;
    let own = bound(ranks - 1 - rank)..bound(ranks - rank);
    let mut pointers = vec![0i32];
    let mut global: Vec<i64> = Vec::new();
    for row in own.clone() {
        global.extend(columns(row).iter().map(|&column| column as i64));
        pointers.push(global.len() as i32);
    }
    let mut local = attached.csr_halo(own.clone(), &pointers, &global).expect("rows");
    let owned = pointers.len() - 1;
    assert_eq!(local.halo.entries(), owned + local.ghosts.len());
    let x_of = |row: u64| value(row, 99) as i64 as f64;
    let mut x: Vec<f64> = own.clone().map(x_of).collect();
    x.resize(local.halo.entries(), f64::NAN);
    local.halo.exchange(&mut x, 1).expect("exchanged");
    let mut transposed = vec![0.0; x.len()];
    for (at, row) in own.clone().enumerate() {
        let entries = (0..).zip(pointers[at] as usize..pointers[at + 1] as usize);
        let own: f64 = entries
            .clone()
            .map(|(place, at)| entry(row, place) * x[local.columns[at] as usize])
            .sum();
        let places = columns(row).into_iter().zip(0..);
        let whole = places.map(|(c, place)| entry(row, place) * x_of(c));
        assert_eq!(own.to_bits(), whole.sum::<f64>().to_bits());
        for (place, entries) in entries {
            transposed[local.columns[entries] as usize] += entry(row, place) * x_of(row);
        }
    }
    local.halo.reduce(Op::Add, &mut transposed, 1).expect("reduced");
    for (at, column) in own.enumerate() {
        let of_row = |row: u64| {
            let places = columns(row).into_iter().zip(0..);
            places.filter(|(c, _)| *c == column).map(|(_, place)| entry(row, place)).sum::<f64>()
        };
        let expected: f64 = (0..n).map(|row| of_row(row) * x_of(row)).sum();
        assert_eq!(transposed[at], expected);
    }
}

/// A ring: every rank has `words` entries and the first `words` of the next rank.
pub(super) fn ring(attached: &Attached, words: u64) -> Halo {
    let (rank, ranks) = (attached.rank() as u64, attached.size() as u64);
    let next = (rank + 1) % ranks * words;
    let ghosts: Vec<u64> = (next..next + words).collect();
    attached.owned_halo(rank * words..(rank + 1) * words, &ghosts).expect("ids")
}

/// Exchanges of one halo and of several overlap, are completed in another order than they were
/// started, and are kept apart; so are attachments to several communicators.
pub(super) fn overlap(_: &Comm) {
    // Own communicators, because an exchange remains pending at the end.
    let world = || Comm::world().expect("MPI works");
    let (first, second) = (world(), world());
    let (attached, other) = (attach(&first), attach(&second));
    let next = ((attached.rank() + 1) % attached.size()) as f64;
    let mut halos = [ring(&attached, 3), ring(&other, 3), ring(&attached, 3)];
    let vector = |step: usize| {
        let own = attached.rank() as f64 + 100.0 * step as f64;
        vec![own, own, own, -1.0, -1.0, -1.0]
    };
    for round in 0..20 {
        let mut started = Vec::new();
        for step in 0..6 {
            let x = vector(step + round);
            started.push((step, halos[step % 3].start(&x, 1).expect("started"), x));
        }
        started.sort_by_key(|(step, ..)| noise((step + round) as u64));
        for (step, pending, mut x) in started {
            halos[step % 3].wait(pending, &mut x).expect("completed");
            let arrived = next + 100.0 * (step + round) as f64;
            assert_eq!(x[3..], [arrived; 3]);
        }
    }
    let pending = halos[0].start(&vector(0), 1).expect("started");
    assert_eq!(halos[2].test(&pending), Err(HaloError::Pending));
    assert_eq!(halos[0].wait(pending, &mut [0f32; 6]), Err(HaloError::Pending));
    assert!(matches!(Attached::new(&first), Err(HaloError::Mpi(MpiError::Busy))));
}

/// Halos are made and dropped at any time, at other times on other ranks.
pub(super) fn many_halos(comm: &Comm) {
    let attached = attach(comm);
    let mut kept = Vec::new();
    let next = ((attached.rank() + 1) % attached.size()) as u64;
    for round in 0..200u64 {
        kept.push(ring(&attached, 1));
        if kept.len() > 1 && noise(round * 64 + attached.rank() as u64).is_multiple_of(3) {
            kept.remove(0);
        }
        let mut x = [attached.rank() as u64, 0];
        kept.last_mut().expect("just made").exchange(&mut x, 1).expect("exchanged");
        assert_eq!(x[1], next);
    }
    assert!(kept.last().expect("just made").number() >= 199);
}

/// Messages of all sizes that MPI treats differently, received in place and not.
pub(super) fn sizes(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank() as u64, attached.size() as u64);
    for words in [1, 400, 5000, 70_000] {
        let mut halo = ring(&attached, words);
        let next = (rank + 1) % ranks * words;
        let ids: Vec<u64> = (rank * words..(rank + 1) * words).chain(next..next + words).collect();
        every_size(&mut halo, words as usize, &ids);
        // In reversed order they are not contiguous.
        let ghosts: Vec<u64> = (next..next + words).rev().collect();
        let own = rank * words..(rank + 1) * words;
        let mut halo = attached.owned_halo(own.clone(), &ghosts).expect("ids");
        every_size(&mut halo, words as usize, &own.chain(ghosts).collect::<Vec<_>>());
    }
}

fn every_size(halo: &mut Halo, owned: usize, ids: &[u64]) {
    for round in 0..3 {
        let expected: Vec<u64> = ids.iter().map(|id| noise(id + round)).collect();
        let mut x = expected.clone();
        x[owned..].fill(0);
        halo.exchange(&mut x, 1).expect("exchanged");
        assert_eq!(x, expected);
    }
}

/// Reductions in the order of the tree, broadcasts from any rank, calls that do not match.
pub(super) fn collectives(comm: &Comm) {
    let attached = attach(comm);
    let (rank, ranks) = (attached.rank(), attached.size());
    fn fold(rank: usize, ranks: usize, at: usize) -> f64 {
        let steps = (0..).map(|bit| 1 << bit).take_while(|&step| step < ranks);
        let below = steps.take_while(|step| rank & step == 0).map(|step| rank + step);
        let children = below.filter(|&child| child < ranks);
        children.fold(value(rank as u64, at), |sum, child| sum + fold(child, ranks, at))
    }
    for count in [0, 1, 3, 5000] {
        let mut x: Vec<f64> = (0..count).map(|at| value(rank as u64, at)).collect();
        attached.allreduce(Op::Add, &mut x).expect("sums");
        for (at, x) in x.iter().enumerate() {
            assert_eq!(x.to_bits(), fold(0, ranks, at).to_bits());
        }
    }
    for root in 0..ranks {
        let mut x = [rank as i32, -(rank as i32)];
        attached.broadcast(root, &mut x).expect("the root's");
        assert_eq!(x, [root as i32, -(root as i32)]);
    }
    attached.barrier().expect("all come");
    let mut most = [rank as u32];
    attached.allreduce(Op::Max, &mut most).expect("maximum");
    assert_eq!(most, [ranks as u32 - 1]);
}

/// Alone, everything is there and nothing is sent.
pub(super) fn alone(_: &Comm) {
    let attached = attach(&Comm::alone().expect("MPI works"));
    let mut halo = attached.shared_halo(&[3, 1, 2]).expect("ids");
    let mut x = [1.0, 2.0, 3.0];
    halo.sum_shared(&mut x, 1).expect("sums");
    attached.allreduce(Op::Add, &mut x).expect("sums");
    attached.broadcast(0, &mut x).expect("the root's");
    assert_eq!(x, [1.0, 2.0, 3.0]);
    let mut rows = attached.csr_halo(4..6, &[0, 2, 3], &[5, 4, 5]).expect("rows");
    assert_eq!((&rows.columns[..], rows.halo.sources().count()), (&[1, 0, 1][..], 0));
    rows.halo.exchange(&mut [1u8, 2], 1).expect("exchanged");
    let nobody = attached.owned_halo(0..5, &[7]).err();
    let fault = SetupFault::Unowned { id: 7 };
    assert_eq!(nobody, Some(HaloError::Setup { rank: 0, fault }));
}

/// After the first exchange of a kind nothing is allocated.
pub(super) fn allocations(comm: &Comm) {
    let attached = attach(comm);
    let mut halo = ring(&attached, 50);
    let ids: Vec<u64> = (0..20).map(|id| id + attached.rank() as u64 * 10).collect();
    let mut shared = attached.shared_halo(&ids).expect("ids");
    let (mut x, mut y) = (vec![1.0; 100], vec![1.0; 20]);
    let mut before = 0;
    for round in 0..10 {
        halo.exchange(&mut x, 1).expect("exchanged");
        halo.reduce(Op::Max, &mut x, 1).expect("reduced");
        shared.sum_shared(&mut y, 1).expect("sums");
        let now = crate::ALLOCATIONS.load(std::sync::atomic::Ordering::Relaxed);
        assert!(round == 0 || now == before, "round {round}");
        before = now;
    }
}
