//! Numbers and small structs as postcard values, and the structs that go through serde.
//!
//! Postcard writes unsigned numbers as varints (7 bits a byte, the low ones first), signed ones
//! zigzag, strings and lists behind their length. Large lists do not go through serde: they are
//! written number by number, so that reading can check each as it comes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::{At, InputError, Result, ShapeError};
use crate::ids::CellId;
use crate::machine::{Duplex, Machine, Parameters};
use crate::topology::Topology;

/// Collects a payload.
#[derive(Default)]
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
}

impl Out {
    pub(super) fn put(&mut self, value: &impl Serialize) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(value, bytes).expect("a vector takes all bytes");
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) {
        let mut rest = number.into();
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// How far a number is from the one before it.
    pub(super) fn step(&mut self, from: u32, to: u32) {
        self.put(&(i64::from(to) - i64::from(from)));
    }
}

/// Takes a payload apart.
pub(super) struct In<'a> {
    pub(super) file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Bytes of the file before `bytes`.
    base: usize,
    /// The file's major version.
    pub(super) major: u8,
}

impl<'a> In<'a> {
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
        // Most numbers are a byte.
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
        if (number as usize) < count {
            return Ok(number);
        }
        self.at = before;
        Err(self.error(format!("expected {what} below {count}, found {number}")))
    }

    /// The length of a list whose elements take a byte each at least: no more than `most`, and no
    /// more than there are bytes left.
    pub(super) fn count(&mut self, what: &str, most: usize) -> Result<usize> {
        let before = self.at;
        let count = self.number(what)?;
        let most = most.min(self.left());
        if count <= most as u64 {
            return Ok(count as usize);
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

/// A machine as version 1 writes it. The order of `numbers` is that of [`Parameters::numbers`];
/// the parameters that are newer follow behind it.
#[derive(Serialize, Deserialize)]
pub(super) struct MachineWire<'a> {
    name: Cow<'a, str>,
    topology: TopologyWire<'a>,
    numbers: [u32; 14],
    half_duplex: bool,
    dead_cells: Cow<'a, [CellId]>,
    dead_links: Cow<'a, [(CellId, CellId)]>,
}

/// [`Topology`] by number of variant. New shapes come at the end.
#[derive(Serialize, Deserialize)]
enum TopologyWire<'a> {
    Torus(Cow<'a, [u32]>),
    Mesh(Cow<'a, [u32]>),
    Ring(u32),
    Hypercube(u32),
    FatTree(u32),
    Graph { cells: u32, switches: u32, links: Cow<'a, [(u32, u32)]> },
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
                Topology::FatTree { leaves } => TopologyWire::FatTree(*leaves),
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

    pub(super) fn build(self, timed_starts: u32) -> Result<Machine, ShapeError> {
        let topology = match self.topology {
            TopologyWire::Torus(dims) => Topology::Torus { dims: dims.into_owned() },
            TopologyWire::Mesh(dims) => Topology::Mesh { dims: dims.into_owned() },
            TopologyWire::Ring(cells) => Topology::Ring { cells },
            TopologyWire::Hypercube(dimension) => Topology::Hypercube { dimension },
            TopologyWire::FatTree(leaves) => Topology::FatTree { leaves },
            TopologyWire::Graph { cells, switches, links } => {
                Topology::Graph { cells, switches, links: links.into_owned() }
            }
        };
        let mut parameters = Parameters { timed_starts, ..Parameters::iwarp() };
        for ((name, ..), value) in Parameters::iwarp().numbers().into_iter().zip(self.numbers) {
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
    fn numbers_are_postcards() {
        for number in [0u64, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let (mut own, mut postcards) = (Out::default(), Out::default());
            own.number(number);
            postcards.put(&number);
            assert_eq!(own.bytes, postcards.bytes);
            assert_eq!(In::new("f", &own.bytes, 0).number("a number"), Ok(number));
        }
        let mut out = Out::default();
        out.step(5, 0);
        out.step(0, u32::MAX);
        let mut back = In::new("f", &out.bytes, 0);
        assert_eq!((back.step(5, "a"), back.step(0, "b")), (Ok(0), Ok(u32::MAX)));
        assert!(In::new("f", &out.bytes, 0).step(4, "a").is_err());
    }

    #[test]
    fn counts_are_not_believed() {
        let mut out = Out::default();
        out.number(1_000_000u32);
        out.bytes.extend([0; 10]);
        let error = In::new("f", &out.bytes, 100).count("rows", 1 << 30).unwrap_err();
        assert_eq!(error.to_string(), "f: byte 100: expected rows, at most 10, found 1000000");
    }
}
