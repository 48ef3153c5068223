//! Programs of direct messages and of collectives without trees, which compare what they get with what
//! every cell knows that the others have.

use conset_runtime::ir::CellId;
use conset_runtime::{Cell, CellError, ReducePlan, Word};

pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (bits ^ bits >> 29).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ bits >> 32
}

/// The live cells, and the place of this one.
fn places(cell: &Cell<'_>) -> (Vec<CellId>, usize) {
    let live: Vec<CellId> = cell.image().machine().endpoints().collect();
    let own = live.binary_search(&cell.id()).unwrap();
    (live, own)
}

/// What a cell sends to another in a round: some words, few or many.
fn words<W: Word>(seed: u64, source: CellId, target: CellId) -> Vec<W> {
    let bits = mix(seed ^ mix(u64::from(source.0) << 32 | u64::from(target.0)));
    let count = [0, 1, 7, 60, 1500][(bits % 5) as usize] + bits as usize / 8 % 3;
    (0..count as u64).map(|word| W::from_bits(mix(bits.wrapping_add(word)))).collect()
}

fn check<W: Word>(found: &[W], expected: &[W], what: &str) {
    let bits = |words: &[W]| words.iter().map(|word| word.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(found), bits(expected), "{what}");
}

/// Words go round rings of all distances, along a chain, and to the cell itself; in between comes an
/// asynchronous message that they must not be taken for.
pub(crate) fn direct<W: Word>(cell: &mut Cell<'_>, seed: u64) -> Result<(), CellError> {
    let (live, own) = places(cell);
    let (count, id) = (live.len(), live[own]);
    for distance in 0..count {
        let [target, source] = [own + distance, own + count - distance].map(|p| live[p % count]);
        let round = seed.wrapping_add(distance as u64);
        let expected = words::<W>(round, source, id);
        let mut incoming = vec![W::from_bits(0); expected.len()];
        // One cell only, as on some machines it leaves when it is received.
        if distance == 1 && own == 0 {
            cell.msg_send(target, &[mix(!round ^ u64::from(id.0))])?;
        }
        cell.send_receive(target, &words(round, id, target), source, &mut incoming)?;
        check(&incoming, &expected, &format!("{seed} {id} <- {source}"));
        if distance == 1 && own == 1 {
            let mut incoming = [0];
            cell.msg_receive(source, &mut incoming)?;
            assert_eq!(incoming, [mix(!round ^ u64::from(source.0))], "the asynchronous message");
        }
    }
    // Each waits for the one before.
    if own > 0 {
        let expected = words::<W>(seed, live[own - 1], id);
        let mut incoming = vec![W::from_bits(0); expected.len()];
        cell.receive(live[own - 1], &mut incoming)?;
        check(&incoming, &expected, "the chain");
    }
    if own + 1 < count {
        cell.send(live[own + 1], &words::<W>(seed, id, live[own + 1]))?;
    }
    Ok(())
}

/// A cell receives from any, others ask for what one of them sends.
pub(crate) fn asynchronous(cell: &mut Cell<'_>, seed: u64) -> Result<(), CellError> {
    let (live, own) = places(cell);
    let (id, collects) = (live[own], seed as usize % live.len());
    if own != collects {
        for round in 0..3 {
            let words = words::<u32>(seed + round, id, live[collects]);
            cell.msg_send(live[collects], &words)?;
        }
        // The collector answers when all has come.
        let mut answer = [0u64];
        let mut tries = 0;
        while !cell.msg_try_receive(live[collects], &mut answer)? {
            tries += 1;
        }
        assert_eq!(answer, [mix(seed)], "after {tries} tries");
        return Ok(());
    }
    let mut rounds = vec![0; live.len()];
    let mut buffer = vec![0u32; 1600];
    for _ in 0..3 * (live.len() - 1) {
        let (source, count) = cell.msg_receive_any(&mut buffer)?;
        let place = live.binary_search(&source).unwrap();
        check(&buffer[..count], &words::<u32>(seed + rounds[place], source, id), "from any");
        rounds[place] += 1;
    }
    assert!(rounds.iter().enumerate().all(|(place, &n)| n == 3 || place == own), "{rounds:?}");
    for &other in live.iter().filter(|&&other| other != id) {
        cell.msg_send(other, &[mix(seed)])?;
    }
    Ok(())
}

/// Broadcast, gather and scatter.
pub(crate) fn moves(cell: &mut Cell<'_>, seed: u64, each: usize) -> Result<(), CellError> {
    let (live, own) = places(cell);
    let root = live[mix(seed) as usize % live.len()];
    let all: Vec<f64> = (0..live.len() * each).map(|word| (word as f64).sqrt() + 0.1).collect();
    let mine = &all[own * each..][..each];
    let is_root = live[own] == root;
    let mut words = if is_root { all.clone() } else { vec![0.0; all.len()] };
    cell.broadcast_from(root, &mut words)?;
    check(&words, &all, "broadcast");
    let mut gathered = vec![0.0; if is_root { all.len() } else { 0 }];
    cell.gather(root, mine, &mut gathered)?;
    check(&gathered, &all[..gathered.len()], "gather");
    let mut scattered = vec![0.0; each];
    cell.scatter(root, if is_root { &all } else { &[] }, &mut scattered)?;
    check(&scattered, mine, "scatter");
    Ok(())
}

/// The function x -> a x + b of a cell in a block, modulo 2^64. Its composition does not commute.
fn function(seed: u64, place: usize, block: usize) -> [u64; 2] {
    let bits = mix(seed ^ mix((place as u64) << 24 ^ block as u64));
    [bits | 1, mix(bits)]
}

pub(crate) fn compose(outer: &mut [u64], inner: &[u64]) {
    assert_eq!((outer.len(), outer.len() % 2), (inner.len(), 0));
    for (outer, inner) in outer.chunks_exact_mut(2).zip(inner.chunks_exact(2)) {
        outer[1] = outer[1].wrapping_add(outer[0].wrapping_mul(inner[1]));
        outer[0] = outer[0].wrapping_mul(inner[0]);
    }
}

/// Every plan for so many cells.
pub(crate) fn plans(cells: usize, words: usize) -> Vec<ReducePlan> {
    let swap = |radices: Vec<usize>| ReducePlan::Swap { radices };
    let mut plans = vec![ReducePlan::Tree, swap(vec![2; cells.ilog2() as usize])];
    let t3d = conset_runtime::ir::Parameters::t3d();
    plans.extend([words, 1 << 20].map(|words| ReducePlan::cheapest(&t3d, cells, words)));
    // One level, joined pairs before a level, and levels of several radices.
    if cells > 1 {
        plans.extend([cells, cells.div_ceil(2).max(2)].map(|radix| swap(vec![radix])));
    }
    let factor = (2..cells).find(|&factor| cells.is_multiple_of(factor));
    plans.extend(factor.map(|factor| swap(vec![cells / factor, factor])));
    plans
}

/// Reduces by a plan; the root gets what combining cell after cell gives.
pub(crate) fn reduce(
    cell: &mut Cell<'_>,
    plan: &ReducePlan,
    (seed, blocks): (u64, usize),
) -> Result<(), CellError> {
    let (live, own) = places(cell);
    let of = |place| -> Vec<u64> { (0..blocks).flat_map(|b| function(seed, place, b)).collect() };
    let root = live[mix(seed) as usize % live.len()];
    let mut array = of(own);
    cell.reduce_by(plan, root, 2, &mut array, compose)?;
    if live[own] == root {
        let mut expected = of(0);
        (1..live.len()).for_each(|place| compose(&mut expected, &of(place)));
        assert_eq!(array, expected, "{plan:?} of {blocks} blocks, {} cells", live.len());
    }
    Ok(())
}
