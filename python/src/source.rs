//! What is compiled: a file, a pattern, connections, a mesh or a matrix.

use std::path::PathBuf;
use std::sync::Arc;

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{At, CellId, Connection, ConnectionSet, InputError, ShapeError, limits};
use conset_mesh::model::{Assembly, ElementType, Shape};
use conset_mesh::read::Reading;
use conset_mesh::{Matrix, Source as MeshSource};
use pyo3::prelude::*;

use crate::arrays;
use crate::failure::Failure;

/// An input of the compiler.
#[pyclass(frozen, module = "conset._conset")]
pub(crate) struct Source {
    pub(crate) contents: Arc<Contents>,
}

/// The contents of a [`Source`].
pub(crate) enum Contents {
    /// A file, or a folder with a case.
    Path(PathBuf),
    /// A pattern and the words of each of its connections.
    Pattern(String, u32),
    /// Connections between cells.
    Connections(ConnectionSet),
    /// A mesh or a matrix, and its name for messages.
    Reading(&'static str, Box<Reading>),
}

impl From<Contents> for Source {
    fn from(contents: Contents) -> Self {
        Self { contents: Arc::new(contents) }
    }
}

#[pymethods]
impl Source {
    /// A file.
    #[staticmethod]
    fn path(path: PathBuf) -> Self {
        Contents::Path(path).into()
    }

    /// A pattern.
    #[staticmethod]
    fn pattern(name: String, words: u32) -> Self {
        Contents::Pattern(name, words).into()
    }

    /// Connections: source, target and words of each.
    #[staticmethod]
    fn connections(sources: &[u8], targets: &[u8], words: &[u8]) -> PyResult<Self> {
        Ok(Contents::Connections(connections(sources, targets, words)?).into())
    }

    /// A mesh of `node_count` nodes: blocks of elements, each with the name of a shape, the number
    /// of nodes of an element, and the nodes.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
    fn mesh(node_count: usize, blocks: Vec<(String, usize, Vec<u8>)>) -> PyResult<Self> {
        Ok(Contents::Reading(MESH, Box::new(mesh(node_count, &blocks)?)).into())
    }

    /// The pattern of a matrix in compressed rows.
    #[staticmethod]
    fn matrix(column_count: usize, first: &[u8], columns: &[u8]) -> PyResult<Self> {
        Ok(Contents::Reading(MATRIX, Box::new(matrix(column_count, first, columns)?)).into())
    }
}

const MESH: &str = "<mesh>";
const MATRIX: &str = "<matrix>";
const CONNECTIONS: &str = "<connections>";

fn connections(sources: &[u8], targets: &[u8], words: &[u8]) -> Result<ConnectionSet, Failure> {
    let wrong = |part: &'static str, expected: &'static str| {
        move |row: usize, value: i64| {
            let at = At::Path(format!("connections[{row}].{part}"));
            InputError::new(CONNECTIONS, at, format!("{value}, expected {expected}"))
        }
    };
    let cells = "the number of a cell, from 0";
    let sources = arrays::read_u32(sources, wrong("source", cells))?;
    let targets = arrays::read_u32(targets, wrong("target", cells))?;
    let words = arrays::read_u32(words, wrong("words", "at least one word"))?;
    let ends = sources.into_iter().zip(targets).zip(words);
    let rows = ends
        .map(|((source, target), words)| Connection::new(CellId(source), CellId(target), words));
    let set = ConnectionSet::new("connections", rows.collect());
    Ok(set.map_err(|e| e.in_file(CONNECTIONS))?)
}

fn mesh(node_count: usize, blocks: &[(String, usize, Vec<u8>)]) -> Result<Reading, Failure> {
    let in_mesh = |place: String, message: String| ShapeError::new(place, message).in_file(MESH);
    if node_count > limits::NODES {
        let message = format!("{node_count}; the limit is {}", limits::NODES);
        return Err(in_mesh("nodes".into(), message).into());
    }
    let mut assembly = Assembly::new("meshio");
    assembly.count_from_0();
    assembly.set_nodes(node_count, Vec::new(), Vec::new());
    let mut total: u64 = 0;
    for (number, (shape, width, nodes)) in blocks.iter().enumerate() {
        let place = format!("cells[{number}]");
        let element_type = SHAPES
            .into_iter()
            .find(|known| known.name() == shape)
            .and_then(|shape| ElementType::new(shape, *width));
        let Some(element_type) = element_type.filter(|_| *width <= limits::ELEMENT_NODES) else {
            return Err(in_mesh(place, format!("no {shape} has {width} nodes")).into());
        };
        let nodes = arrays::read_u32(nodes, |at, node| {
            let message = format!("node {node}, expected 0 to {}", node_count.max(1) - 1);
            in_mesh(format!("cells[{number}].data[{}]", at / width), message)
        })?;
        total += to_u64(nodes.len());
        if total > to_u64(limits::NODES) {
            let message = format!("more than {} nodes of elements", limits::NODES);
            return Err(in_mesh(place, message).into());
        }
        for element in nodes.chunks_exact(*width) {
            assembly.push(element_type, element);
        }
    }
    Ok(assembly.into_mesh(MESH)?.into())
}

const SHAPES: [Shape; 10] = [
    Shape::Point,
    Shape::Line,
    Shape::Triangle,
    Shape::Quadrilateral,
    Shape::Polygon,
    Shape::Tetrahedron,
    Shape::Pyramid,
    Shape::Prism,
    Shape::Hexahedron,
    Shape::Polyhedron,
];

fn matrix(column_count: usize, first: &[u8], columns: &[u8]) -> Result<Reading, Failure> {
    let wrong = |array: &'static str| {
        move |at: usize, value: i64| {
            let at = At::Path(format!("{array}[{at}]"));
            InputError::new(MATRIX, at, format!("{value}, expected 0 to {}", u32::MAX))
        }
    };
    let first = arrays::read_u32(first, wrong("indptr"))?;
    let columns = arrays::read_u32(columns, wrong("indices"))?;
    let matrix = Matrix::new(column_count, first, columns).map_err(|e| e.in_file(MATRIX))?;
    let mut reading = Reading::from(MeshSource::Matrix(matrix));
    reading.first_number = 0;
    Ok(reading)
}

/// The number of the part of each element, vertex or row, in the order of the input. `members` has
/// the items of each part.
pub(crate) fn parts_of_items(members: &conset_mesh::halo::PartMembers) -> Vec<u32> {
    let count = (0..members.len()).map(|part| members.items_of(part).len()).sum();
    let mut parts = vec![0; count];
    for part in 0..members.len() {
        for &item in members.items_of(part) {
            parts[conset_ir::convert::index(item)] = to_u32(part);
        }
    }
    parts
}
