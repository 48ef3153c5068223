//! Programs of epochs that send at random, and what a sequential execution says they handle.

use std::collections::BTreeMap;

use conset_runtime::ir::{CellId, Connection, ConnectionId, ConnectionSet};
use conset_runtime::{Cell, CellError};

/// What a cell handled: sender and item.
pub(crate) type Log = Vec<(CellId, [u64; 2])>;

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    (bits ^ bits >> 27).wrapping_mul(0x81da_def4_bc2d_d44d) ^ bits >> 33
}

/// What a cell sends at the start: each item has a number of its own, and the rounds that may
/// follow it. Some cells send nothing, some much, many to one target.
fn first(seed: u64, cell: CellId, cells: u32) -> Vec<(CellId, [u64; 2])> {
    let bits = mix(seed ^ mix(u64::from(cell.0) + 1));
    let items = [0, 0, 1, 3, 40][(bits % 5) as usize];
    (0..items).map(|item| item_of(mix(bits.wrapping_add(item)), cells, 1 + bits % 7)).collect()
}

fn item_of(bits: u64, cells: u32, depth: u64) -> (CellId, [u64; 2]) {
    let target = if bits.is_multiple_of(4) { 0 } else { (bits >> 8) % u64::from(cells) };
    (CellId(target as u32), [bits, depth])
}

/// What handling an item sends.
fn then(own: CellId, [bits, depth]: [u64; 2], cells: u32) -> Vec<(CellId, [u64; 2])> {
    let bits = mix(bits ^ mix(u64::from(own.0)));
    let items = if depth == 0 { 0 } else { (bits >> 40) % 3 };
    (0..items).map(|item| item_of(mix(bits.wrapping_add(item)), cells, depth - 1)).collect()
}

/// What each cell handles, and the number of rounds.
pub(crate) fn expected(seed: u64, cells: u32) -> (Vec<Log>, u64) {
    let mut logs = vec![Log::new(); cells as usize];
    let ids = || (0..cells).map(CellId);
    let mut sent: Vec<_> = ids()
        .flat_map(|c| first(seed, c, cells).into_iter().map(move |(t, i)| (c, t, i)))
        .collect();
    let mut rounds = 0;
    while !sent.is_empty() {
        rounds += 1;
        let mut inboxes: BTreeMap<CellId, Log> = BTreeMap::new();
        sent.sort_by_key(|&(source, ..)| source);
        for (source, target, item) in std::mem::take(&mut sent) {
            inboxes.entry(target).or_default().push((source, item));
        }
        for (cell, inbox) in inboxes {
            for (from, item) in inbox {
                logs[cell.index()].push((from, item));
                sent.extend(then(cell, item, cells).into_iter().map(|(t, i)| (cell, t, i)));
            }
        }
    }
    (logs, rounds)
}

/// Settles the random program of a seed; what this cell handled, and the rounds.
pub(crate) fn settle(cell: &mut Cell<'_>, seed: u64) -> Result<(Log, u64), CellError> {
    let (own, cells) = (cell.id(), cell.cell_count() as u32);
    let mut log = Log::new();
    let mut epoch = cell.open();
    for (target, item) in first(seed, own, cells) {
        epoch.send(target, item)?;
    }
    let settled = epoch.settle(|from, item, out| {
        log.push((from, item));
        then(own, item, cells).into_iter().for_each(|(target, item)| out.send(target, item));
    })?;
    assert_eq!(settled.handled, log.len() as u64);
    Ok((log, settled.rounds))
}

/// What a cell sends in the exchange of a seed: lists of words, some empty, some for the same cell.
fn lists(seed: u64, cell: CellId, cells: u32) -> Vec<(CellId, Vec<u64>)> {
    let list = |(target, [bits, depth]): (CellId, [u64; 2])| (target, vec![bits; depth as usize]);
    let items = first(seed, cell, cells).into_iter().chain([(cell, [seed, u64::from(cell.0 % 2)])]);
    items.map(list).collect()
}

/// The same, one list for each target that gets any words, by target.
#[allow(dead_code)]
pub(crate) fn merged_lists(cell: &Cell<'_>, seed: u64) -> Vec<(CellId, Vec<u64>)> {
    let mut merged: BTreeMap<CellId, Vec<u64>> = BTreeMap::new();
    for (target, words) in lists(seed, cell.id(), cell.cell_count() as u32) {
        merged.entry(target).or_default().extend(words);
    }
    merged.retain(|_, words| !words.is_empty());
    merged.into_iter().collect()
}

/// Exchanges the lists of a seed, and compares what arrives with what was sent here.
pub(crate) fn exchange(cell: &mut Cell<'_>, seed: u64) -> Result<usize, CellError> {
    let (own, cells) = (cell.id(), cell.cell_count() as u32);
    let outgoing = lists(seed, own, cells);
    let outgoing: Vec<_> = outgoing.iter().map(|(target, words)| (*target, &words[..])).collect();
    let found = cell.exchange_any(&outgoing)?;
    let mut expected: BTreeMap<CellId, Vec<u64>> = BTreeMap::new();
    for source in (0..cells).map(CellId) {
        for (_, words) in lists(seed, source, cells).iter().filter(|(target, _)| *target == own) {
            expected.entry(source).or_default().extend(words);
        }
    }
    expected.retain(|_, words| !words.is_empty());
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{seed} {own}");
    Ok(found.len())
}

/// The words that a connection of a set carries in an exchange of a seed, which its target can tell
/// too: from none to all.
fn sized_words(seed: u64, connection: ConnectionId, most: u32) -> Vec<u16> {
    let bits = mix(seed ^ mix(u64::from(connection.0)));
    let words = match bits % 4 {
        0 => 0,
        1 => u64::from(most),
        _ => (bits >> 8) % (u64::from(most) + 1),
    };
    (0..words).map(|word| mix(bits ^ word) as u16).collect()
}

/// A set in which cells have many connections or none, some of them to themselves.
pub(crate) fn sized_set(seed: u64, cells: u32) -> ConnectionSet {
    let connection = |number| {
        let bits = mix(seed ^ mix(number + 77));
        let end = |bits: u64| CellId((bits % u64::from(cells)) as u32);
        let words = 1 + (bits >> 40) as u32 % 90;
        Connection::new(end(bits >> 3), end(bits >> 20), words)
    };
    ConnectionSet::new("s", (0..u64::from(4 * cells)).map(connection).collect()).unwrap()
}

/// Exchanges the set `s` with the sizes of a seed, and compares what arrives; how many words.
pub(crate) fn exchange_sized(cell: &mut Cell<'_>, seed: u64) -> Result<usize, CellError> {
    let set = cell.image().sets()[0].set.clone();
    let words = |seed, connections: &[ConnectionId]| -> Vec<Vec<u16>> {
        connections.iter().map(|&x| sized_words(seed, x, set.get(x).words)).collect()
    };
    let outgoing = words(seed, cell.connections_out("s")?);
    let found = cell.exchange_sized("s", &outgoing)?;
    assert_eq!(found, words(seed, cell.connections_in("s")?), "{seed} {cell:?}");
    Ok(found.iter().map(Vec::len).sum())
}
