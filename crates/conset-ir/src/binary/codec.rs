//! Encoder and decoder of postcard values, and the structs that are encoded with serde.
//!
//! Postcard encodes unsigned numbers as varints (7 bits per byte, the low ones first), signed
//! numbers in zigzag form, and strings and lists with their length in front. Large lists are not
//! encoded with serde but number by number, so that the decoder can check each number.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::convert::{index, to_u64, to_usize};
use crate::error::{At, InputError, Result, ShapeError};
use crate::ids::CellId;
use crate::machine::{Duplex, FIRST_NUMBERS, Machine, Parameters, Protocol};
use crate::topology::Topology;

/// Builds a payload.
#[derive(Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
    /// The file's major version.
    pub(super) major: u8,
}

impl Encoder {
    pub(super) fn put(&mut self, value: &impl Serialize) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(value, bytes).expect("a vector takes all bytes");
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) {
        let mut rest: u64 = number.into();
        while rest >= 0x80 {
            let [low, ..] = rest.to_le_bytes();
            self.bytes.push(low | 0x80);
            rest >>= 7;
        }
        let [low, ..] = rest.to_le_bytes();
        self.bytes.push(low);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(to_u64(count));
    }

    /// The difference from a number to the next.
    pub(super) fn step(&mut self, from: u32, to: u32) {
        self.put(&(i64::from(to) - i64::from(from)));
    }
}

/// Reads a payload.
pub(super) struct Decoder<'a> {
    pub(super) file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Bytes of the file before `bytes`.
    base: usize,
    /// The file's major version.
    pub(super) major: u8,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(file: &'a str, bytes: &'a [u8], base: usize) -> Self {
        Self { file, bytes, at: 0, base, major: super::MAJOR }
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn error(&self, message: impl Into<String>) -> InputError {
        InputError::new(self.file, At::Byte(self.base + self.at), message)
    }

    pub(super) fn take<T: Deserialize<'a>>(&mut self, what: &str) -> Result<T> {
        match postcard::take_from_bytes(&self.bytes[self.at..]) {
            Ok((value, rest)) => {
                self.at = self.bytes.len() - rest.len();
                Ok(value)
            }
            Err(_) => Err(self.error(format!("expected {what}"))),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<u64> {
        // Most numbers take one byte.
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            _ => self.take(what),
        }
    }

    pub(super) fn number32(&mut self, what: &str) -> Result<u32> {
        let before = self.at;
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| {
            self.at = before;
            self.error(format!("expected {what}, found {number}"))
        })
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize, what: &str) -> Result<u32> {
        let before = self.at;
        let number = self.number32(what)?;
        if index(number) < count {
            return Ok(number);
        }
        self.at = before;
        Err(self.error(format!("expected {what} below {count}, found {number}")))
    }

    /// The length of a list whose elements take at least one byte each: at most `most`, and at most
    /// the number of bytes left.
    pub(super) fn count(&mut self, what: &str, most: usize) -> Result<usize> {
        let before = self.at;
        let count = self.number(what)?;
        let most = most.min(self.left());
        if count <= to_u64(most) {
            return Ok(to_usize(count));
        }
        self.at = before;
        Err(self.error(format!("expected {what}, at most {most}, found {count}")))
    }

    pub(super) fn step(&mut self, from: u32, what: &str) -> Result<u32> {
        let before = self.at;
        let step: i64 = self.take(what)?;
        let to = i64::from(from).checked_add(step).and_then(|to| u32::try_from(to).ok());
        to.ok_or_else(|| {
            self.at = before;
            self.error(format!("expected {what}, a step that stays within 32 bits"))
        })
    }
}

/// A machine in the layout of version 1. `numbers` has the order of [`Parameters::numbers`]; newer
/// parameters follow the struct.
#[derive(Serialize, Deserialize)]
pub(super) struct MachineWire<'a> {
    name: Cow<'a, str>,
    topology: TopologyWire<'a>,
    numbers: [u32; 14],
    half_duplex: bool,
    dead_cells: Cow<'a, [CellId]>,
    dead_links: Cow<'a, [(CellId, CellId)]>,
}

/// [`Topology`], encoded with the number of the variant. New topologies are added at the end.
#[derive(Serialize, Deserialize)]
enum TopologyWire<'a> {
    Torus(Cow<'a, [u32]>),
    Mesh(Cow<'a, [u32]>),
    Ring(u32),
    Hypercube(u32),
    FatTree(u32),
    Graph { cells: u32, switches: u32, links: Cow<'a, [(u32, u32)]> },
    FatTreeWithParents { leaves: u32, parents: Cow<'a, [u32]> },
    Cluster { nodes: u32, cells_per_node: u32 },
}

impl<'a> MachineWire<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        let parameters = machine.parameters();
        Self {
            name: machine.name().into(),
            topology: match machine.topology() {
                Topology::Torus { dims } => TopologyWire::Torus(dims.into()),
                Topology::Mesh { dims } => TopologyWire::Mesh(dims.into()),
                Topology::Ring { cells } => TopologyWire::Ring(*cells),
                Topology::Hypercube { dimension } => TopologyWire::Hypercube(*dimension),
                Topology::FatTree { leaves, parents } => match machine.topology().has_own_parents()
                {
                    true => TopologyWire::FatTreeWithParents {
                        leaves: *leaves,
                        parents: parents.into(),
                    },
                    false => TopologyWire::FatTree(*leaves),
                },
                Topology::Cluster { nodes, cells_per_node } => {
                    TopologyWire::Cluster { nodes: *nodes, cells_per_node: *cells_per_node }
                }
                Topology::Graph { cells, switches, links } => {
                    TopologyWire::Graph { cells: *cells, switches: *switches, links: links.into() }
                }
            },
            numbers: std::array::from_fn(|row| parameters.numbers()[row].1),
            half_duplex: parameters.duplex == Duplex::Half,
            dead_cells: machine.dead_cells().into(),
            dead_links: machine.dead_links().into(),
        }
    }

    /// The machine. `later` has the parameters after `timed_starts`; missing ones are the default.
    pub(super) fn build(
        self,
        timed_starts: u32,
        protocol: Protocol,
        later: &[u32],
    ) -> Result<Machine, ShapeError> {
        let topology = match self.topology {
            TopologyWire::Torus(dims) => Topology::Torus { dims: dims.into_owned() },
            TopologyWire::Mesh(dims) => Topology::Mesh { dims: dims.into_owned() },
            TopologyWire::Ring(cells) => Topology::Ring { cells },
            TopologyWire::Hypercube(dimension) => Topology::Hypercube { dimension },
            TopologyWire::FatTree(leaves) => Topology::fat_tree(leaves),
            TopologyWire::Graph { cells, switches, links } => {
                Topology::Graph { cells, switches, links: links.into_owned() }
            }
            TopologyWire::FatTreeWithParents { leaves, parents } => {
                Topology::FatTree { leaves, parents: parents.into_owned() }
            }
            TopologyWire::Cluster { nodes, cells_per_node } => {
                Topology::Cluster { nodes, cells_per_node }
            }
        };
        let mut parameters = Parameters { timed_starts, protocol, ..Parameters::iwarp() };
        let names = Parameters::iwarp().numbers().map(|row| row.0);
        let (first, rest) = (names.iter().zip(self.numbers), &names[FIRST_NUMBERS..]);
        for (name, value) in first.chain(rest.iter().zip(later.iter().copied())) {
            let set = parameters.set(name, &value.to_string());
            set.map_err(|e| ShapeError::new(format!("machine.{name}"), e.message))?;
        }
        parameters.duplex = if self.half_duplex { Duplex::Half } else { Duplex::Full };
        let (cells, links) = (self.dead_cells.into_owned(), self.dead_links.into_owned());
        Machine::new(self.name, topology, parameters, cells, links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_by_postcard() {
        for number in [0u64, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let (mut own, mut postcards) = (Encoder::default(), Encoder::default());
            own.number(number);
            postcards.put(&number);
            assert_eq!(own.bytes, postcards.bytes);
            assert_eq!(Decoder::new("f", &own.bytes, 0).number("a number"), Ok(number));
        }
        let mut out = Encoder::default();
        out.step(5, 0);
        out.step(0, u32::MAX);
        let mut back = Decoder::new("f", &out.bytes, 0);
        assert_eq!((back.step(5, "a"), back.step(0, "b")), (Ok(0), Ok(u32::MAX)));
        assert!(Decoder::new("f", &out.bytes, 0).step(4, "a").is_err());
    }

    #[test]
    fn a_count_is_compared_with_the_remaining_bytes() {
        let mut out = Encoder::default();
        out.number(1_000_000u32);
        out.bytes.extend([0; 10]);
        let error = Decoder::new("f", &out.bytes, 100).count("rows", 1 << 30).unwrap_err();
        assert_eq!(error.to_string(), "f: byte 100: expected rows, at most 10, found 1000000");
    }
}
