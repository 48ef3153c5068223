//! VTU: unstructured grids in VTK's XML form (VTK file formats, "XML File Formats").
//!
//! ```text
//! VTKFile type="UnstructuredGrid"
//!   UnstructuredGrid
//!     Piece NumberOfPoints NumberOfCells
//!       Points: one DataArray of three components
//!       Cells:  DataArrays `connectivity`, `offsets`, `types`
//!   AppendedData
//! ```
//!
//! Elements are the cells of the highest dimension, as with Gmsh's files; nodes keep the file's
//! numbers. `arrays` decodes the arrays, which come as text, as base64, or behind the tree, plain
//! or compressed (`bytes`). Point and cell data are not looked at. Several pieces are refused: each has its
//! own points, and which of them are the same the file does not say. Polyhedra, whose faces are
//! listed elsewhere, are refused too.

mod arrays;
mod bytes;

use std::borrow::Cow;

use conset_ir::{At, InputError, Result, limits};
use roxmltree::{Document, Node, ParsingOptions};

use crate::model::Mesh;
use arrays::Arrays;

/// Elements of the XML tree. Meshes are in arrays, so a tree is small.
const NODES_OF_TREE: u32 = 1 << 20;

/// Dimension and number of nodes of a VTK cell type; no number where the cell may have any.
fn cell_type(number: u8) -> Option<(u8, Option<usize>)> {
    Some(match number {
        1 => (0, Some(1)),
        2 => (0, None),
        3 => (1, Some(2)),
        4 => (1, None),
        5 => (2, Some(3)),
        6 | 7 => (2, None),
        8 | 9 => (2, Some(4)),
        10 => (3, Some(4)),
        11 | 12 => (3, Some(8)),
        13 => (3, Some(6)),
        14 => (3, Some(5)),
        15 => (3, Some(10)),
        16 => (3, Some(12)),
        21 => (1, Some(3)),
        22 => (2, Some(6)),
        23 => (2, Some(8)),
        24 => (3, Some(10)),
        25 => (3, Some(20)),
        26 => (3, Some(15)),
        27 => (3, Some(13)),
        28 => (2, Some(9)),
        29 => (3, Some(27)),
        30 => (2, Some(6)),
        31 => (3, Some(12)),
        32 => (3, Some(18)),
        33 => (3, Some(24)),
        34 => (2, Some(7)),
        35 => (1, Some(4)),
        68 | 75 => (1, None),
        69 | 70 | 76 | 77 => (2, None),
        71..=73 | 78..=80 => (3, None),
        _ => return None,
    })
}

/// The file: its name, its tree as text, and what is appended behind.
struct File<'a> {
    name: &'a str,
    tree: &'a str,
}

impl File<'_> {
    fn error_at(&self, offset: usize, message: impl Into<String>) -> InputError {
        let before = &self.tree.as_bytes()[..offset.min(self.tree.len())];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
        InputError::new(self.name, At::Text { line, column, offset }, message)
    }

    fn error(&self, node: Node<'_, '_>, message: impl Into<String>) -> InputError {
        self.error_at(node.range().start, message)
    }

    fn no_tree(&self, error: &roxmltree::Error) -> InputError {
        if matches!(error, roxmltree::Error::UnclosedRootNode) {
            return self
                .error_at(self.tree.len(), "the file ends before its XML does")
                .help("the file was cut or damaged; write it again");
        }
        let pos = error.pos();
        let (line, column) = (pos.row as usize, pos.col as usize);
        let lines = self.tree.split_inclusive('\n').take(line.saturating_sub(1));
        let offset = lines.map(str::len).sum::<usize>() + column.saturating_sub(1);
        InputError::new(self.name, At::Text { line, column, offset }, format!("no XML: {error}"))
    }

    fn child<'d>(&self, of: Node<'d, 'd>, name: &str) -> Result<Node<'d, 'd>> {
        let mut found = of.children().filter(|node| node.has_tag_name(name));
        let first = found
            .next()
            .ok_or_else(|| self.error(of, format!("{} has no {name}", of.tag_name().name())))?;
        match found.next() {
            None => Ok(first),
            Some(second) => Err(self
                .error(second, format!("a second {name}; expected one"))
                .help("merge the pieces and their points first (ParaView: Merge Blocks, Clean)")),
        }
    }

    fn count(&self, of: Node<'_, '_>, name: &str, most: usize) -> Result<usize> {
        let text = of
            .attribute(name)
            .ok_or_else(|| self.error(of, format!("{} has no {name}", of.tag_name().name())))?;
        match text.trim().parse() {
            Ok(count) if count <= most => Ok(count),
            _ => Err(self.error(of, format!("{name} is `{text}`; expected 0 to {most}"))),
        }
    }
}

/// Reads a mesh whose arrays take `memory` bytes at most.
pub(super) fn read(name: &str, bytes: &[u8], memory: u64) -> Result<Mesh> {
    let (bytes, appended) = arrays::split(bytes);
    let tree = std::str::from_utf8(bytes).map_err(|e| {
        InputError::new(name, At::Byte(e.valid_up_to()), "not UTF-8, expected an XML text")
    })?;
    let file = File { name, tree };
    let options = ParsingOptions { nodes_limit: NODES_OF_TREE, ..ParsingOptions::default() };
    // The appended bytes are no XML and were cut out; the tree is closed for the parser.
    let closed = match appended {
        Some(_) => Cow::Owned(format!("{tree}{}", arrays::CLOSING)),
        None => Cow::Borrowed(tree),
    };
    let document = Document::parse_with_options(&closed, options).map_err(|e| file.no_tree(&e))?;
    let root = document.root_element();
    if !root.has_tag_name("VTKFile") {
        return Err(file.error(root, "expected VTKFile"));
    }
    let kind = root.attribute("type").unwrap_or("");
    if kind != "UnstructuredGrid" {
        return Err(file.error(root, format!("type `{kind}`; expected UnstructuredGrid")));
    }
    let piece = file.child(file.child(root, "UnstructuredGrid")?, "Piece")?;
    let points = file.count(piece, "NumberOfPoints", limits::NODES)?;
    let cells = file.count(piece, "NumberOfCells", limits::ELEMENTS)?;
    if cells == 0 {
        return Err(file.error(piece, "the file has no cells"));
    }
    let arrays = Arrays::new(&file, root, appended, memory)?;
    let coordinates = coordinates(&file, &arrays, piece, points)?;
    let draft = elements(&file, &arrays, piece, points, cells)?;
    let mesh = Mesh::new(draft.dimension, points, coordinates, draft.first, draft.nodes);
    mesh.map_err(|error| error.in_file(name))
}

fn coordinates<'d>(
    file: &File<'_>,
    arrays: &Arrays<'_, '_>,
    piece: Node<'d, 'd>,
    points: usize,
) -> Result<Vec<[f64; 3]>> {
    let array = file.child(file.child(piece, "Points")?, "DataArray")?;
    let components = array.attribute("NumberOfComponents").unwrap_or("1");
    if components.trim() != "3" {
        return Err(file.error(array, format!("points of {components} components; expected 3")));
    }
    arrays.points(array, points)
}

/// The elements of the highest dimension so far.
#[derive(Default)]
struct Draft {
    dimension: u8,
    first: Vec<u32>,
    nodes: Vec<u32>,
}

fn elements<'d>(
    file: &File<'_>,
    arrays: &Arrays<'_, '_>,
    piece: Node<'d, 'd>,
    points: usize,
    cells: usize,
) -> Result<Draft> {
    let node = file.child(piece, "Cells")?;
    let named = |name: &str| {
        node.children()
            .find(|n| n.has_tag_name("DataArray") && n.attribute("Name") == Some(name))
            .ok_or_else(|| file.error(node, format!("Cells has no DataArray `{name}`")))
    };
    let (at_types, at_offsets, at_nodes) =
        (named("types")?, named("offsets")?, named("connectivity")?);
    // The larger first, so that too many cells are refused before their types are unpacked.
    let offsets: Vec<u32> = arrays.integers(at_offsets, cells)?;
    let types: Vec<u8> = arrays.integers(at_types, cells)?;
    let ends = offsets.last().map_or(0, |&end| end as usize);
    if ends > limits::NODES {
        return Err(file.error(at_offsets, format!("cells end at {ends}, which is too many nodes")));
    }
    let nodes: Vec<u32> = arrays.integers(at_nodes, ends)?;
    let mut draft = Draft { first: vec![0], ..Draft::default() };
    let mut start = 0;
    for (cell, (&number, &end)) in types.iter().zip(&offsets).enumerate() {
        let own = nodes.get(start as usize..end as usize).ok_or_else(|| {
            file.error(
                at_offsets,
                format!("cell {cell} ends at {end}, before it begins at {start}"),
            )
        })?;
        let (dimension, count) = cell_type(number).ok_or_else(|| {
            let error =
                file.error(at_types, format!("cell {cell} is of type {number}, which is not read"));
            if number == 42 { error.help("write polyhedra as tetrahedra or bricks") } else { error }
        })?;
        if own.is_empty() || count.is_some_and(|count| count != own.len()) {
            let message = format!("cell {cell} of type {number} has {} nodes", own.len());
            return Err(file.error(at_offsets, message));
        }
        if let Some(node) = own.iter().find(|&&node| node as usize >= points) {
            let message = format!("cell {cell} has node {node} of {points}; nodes count from 0");
            return Err(file.error(at_nodes, message));
        }
        draft.add(dimension, own);
        start = end;
    }
    Ok(draft)
}

impl Draft {
    fn add(&mut self, dimension: u8, nodes: &[u32]) {
        if dimension > self.dimension || (self.first.len() == 1 && dimension == 0) {
            *self = Self { dimension, first: vec![0], nodes: Vec::new() };
        }
        if dimension == self.dimension {
            self.nodes.extend_from_slice(nodes);
            self.first.push(self.nodes.len() as u32);
        }
    }
}
