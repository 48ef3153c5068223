//! The digest of a program: a number that tells which machine and which sets a schedule is for.
//!
//! It is FNV-1a of 64 bits over 32-bit numbers, each as four bytes, the low one first; text is its
//! length in bytes and then its bytes (`docs/format.md` lists the numbers in their order). Whatever
//! the exchange depends on is in it: the machine's cells, links and parameters, and of each set the
//! name, the connections with their contracts and nodes, and the order. Names of machines and of
//! connections are not: they change nothing.
//!
//! It tells files apart that were mixed up. It proves nothing against somebody who wants two
//! programs to have the same.

use crate::ids::LinkId;
use crate::machine::{Duplex, Machine};
use crate::set::ConnectionSet;

/// FNV-1a, 64 bits.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    /// A count; limits keep them all within 32 bits.
    fn count(&mut self, count: usize) {
        self.number(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// A digest as files spell it: 16 digits, 0-9 and a-f.
pub fn spelling(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Reads the spelling back.
pub fn parse(digits: &str) -> Option<u64> {
    let known = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let right = digits.len() == 16 && digits.bytes().all(known);
    right.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// The digest of a machine and of sets, in their order. O(links + connections + nodes).
pub fn digest<'a>(
    machine: &Machine,
    sets: impl ExactSizeIterator<Item = &'a ConnectionSet>,
) -> u64 {
    let mut fnv = Fnv(0xcbf2_9ce4_8422_2325);
    add_machine(machine, &mut fnv);
    fnv.count(sets.len());
    sets.for_each(|set| add_set(set, &mut fnv));
    fnv.0
}

fn add_machine(machine: &Machine, fnv: &mut Fnv) {
    for (_, value, ..) in machine.parameters().numbers() {
        fnv.number(value);
    }
    fnv.number(u32::from(machine.parameters().duplex == Duplex::Half));
    fnv.count(machine.agent_count());
    fnv.count(machine.cell_count());
    fnv.count(machine.link_count());
    for row in 0..machine.link_count() {
        let link = machine.link(LinkId::from_index(row));
        fnv.number(link.source.0);
        fnv.number(link.target.0);
    }
    fnv.count(machine.dead_cells().len());
    machine.dead_cells().iter().for_each(|cell| fnv.number(cell.0));
    fnv.count(machine.dead_links().len());
    for (from, to) in machine.dead_links() {
        fnv.number(from.0);
        fnv.number(to.0);
    }
}

fn add_set(set: &ConnectionSet, fnv: &mut Fnv) {
    fnv.count(set.name().len());
    fnv.bytes(set.name().as_bytes());
    fnv.count(set.len());
    for connection in set.connections() {
        fnv.number(connection.source.0);
        fnv.number(connection.target.0);
        fnv.number(connection.words);
        // 0 is no contract: both are at least 1.
        fnv.number(connection.min_bandwidth.unwrap_or(0));
        fnv.number(connection.max_latency.unwrap_or(0));
    }
    fnv.count(set.order().len());
    for (before, after) in set.order() {
        fnv.number(before.0);
        fnv.number(after.0);
    }
    fnv.number(u32::from(set.nodes().is_some()));
    if let Some(nodes) = set.nodes() {
        for (id, _) in set.iter() {
            nodes.of(id).iter().for_each(|&node| fnv.number(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CellId;
    use crate::set::Connection;

    #[test]
    fn fnv_is_fnv() {
        // The reference vectors of Fowler, Noll and Vo.
        let of = |text: &str| {
            let mut fnv = Fnv(0xcbf2_9ce4_8422_2325);
            fnv.bytes(text.as_bytes());
            fnv.0
        };
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn everything_that_matters_is_in_it() {
        let machine = Machine::from_spec("ring:4").unwrap();
        let row = |s, t, w| Connection::new(CellId(s), CellId(t), w);
        let set = |rows: Vec<Connection>| ConnectionSet::new("s", rows).unwrap();
        let plain = set(vec![row(0, 1, 5), row(1, 2, 5)]);
        let contract = Connection { max_latency: Some(9), ..row(0, 1, 5) };
        let ids = (crate::ids::ConnectionId(0), crate::ids::ConnectionId(1));
        let ordered = plain.clone().with_order(vec![ids]).unwrap();
        let nodes: Vec<u32> = (0..5).collect();
        let nodes = crate::set::NodeLists::from_lists([&nodes[..], &nodes[..]]);
        let all = [
            digest(&Machine::from_spec("ring:5").unwrap(), [&plain].into_iter()),
            digest(&Machine::from_spec("mesh:4").unwrap(), [&plain].into_iter()),
            digest(&machine, [&plain].into_iter()),
            digest(&machine, [&plain, &plain].into_iter()),
            digest(&machine, [&set(vec![row(0, 1, 5), row(2, 1, 5)])].into_iter()),
            digest(&machine, [&set(vec![row(0, 1, 5), row(1, 2, 6)])].into_iter()),
            digest(&machine, [&set(vec![contract, row(1, 2, 5)])].into_iter()),
            digest(&machine, [&ordered].into_iter()),
            digest(&machine, [&plain.clone().with_nodes(nodes).unwrap()].into_iter()),
        ];
        for (row, one) in all.iter().enumerate() {
            assert!(!all[..row].contains(one), "{row}");
        }
    }
}
