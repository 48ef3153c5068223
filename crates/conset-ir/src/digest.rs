//! The digest of a program: a 64-bit hash of the machine and the sets of a schedule.
//!
//! It is the 64-bit FNV-1a hash of a sequence of 32-bit numbers, each as four bytes in little-endian
//! order; a text is its length in bytes and then its bytes (`docs/format.md` lists the sequence).
//! The digest covers everything that the exchange depends on: the machine's cells, links and
//! parameters, and for each set its name, its connections with their requirements and nodes, and
//! its order. Names of machines and connections are not covered, since they have no effect.
//!
//! The digest detects a schedule that was combined with the wrong program. It is not a
//! cryptographic hash: two programs with the same digest can be constructed on purpose.

use crate::ids::LinkId;
use crate::machine::{Duplex, FIRST_NUMBERS, Machine};
use crate::set::ConnectionSet;

/// The state of a 64-bit FNV-1a hash.
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

    /// A count; the limits keep all counts within 32 bits.
    fn count(&mut self, count: usize) {
        self.number(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// The spelling of a digest in files: 16 hexadecimal digits in lower case.
///
/// ```
/// use conset_ir::digest::{parse, spelling};
///
/// assert_eq!(spelling(255), "00000000000000ff");
/// assert_eq!(parse("00000000000000ff"), Some(255));
/// ```
pub fn spelling(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Parses the spelling of a digest.
pub fn parse(digits: &str) -> Option<u64> {
    let known = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let right = digits.len() == 16 && digits.bytes().all(known);
    right.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// The digest of a machine and of sets in their order. O(links + connections + nodes).
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
    let numbers = machine.parameters().numbers();
    numbers[..FIRST_NUMBERS].iter().for_each(|row| fnv.number(row.1));
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
    // Digests of machines that have only the older parameters do not change.
    if machine.parameters().has_message_parameters() {
        machine.parameters().later_numbers().into_iter().for_each(|number| fnv.number(number));
        fnv.count(machine.parameters().protocol.name().len());
        fnv.bytes(machine.parameters().protocol.name().as_bytes());
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
        // 0 means no requirement: both are at least 1.
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
    fn the_hash_agrees_with_reference_vectors() {
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
    fn every_relevant_change_changes_the_digest() {
        let machine = Machine::from_spec("ring:4").unwrap();
        let changed = |name: &str, value: &str| {
            let mut parameters = machine.parameters().clone();
            parameters.set(name, value).unwrap();
            machine.with_parameters(parameters).unwrap()
        };
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
            digest(&changed("protocol", "rendezvous"), [&plain].into_iter()),
            digest(&changed("copy_clocks_per_word", "3"), [&plain].into_iter()),
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
