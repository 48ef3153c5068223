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
//! Nodes keep the file's numbers. A polyhedron has its nodes in `connectivity` as other cells do; the
//! arrays of its faces are not needed. `arrays` decodes the arrays, which are text, base64, or
//! appended after the tree, uncompressed or compressed (`bytes`). Point and cell data are ignored,
//! except for the global ids of points, by which `pieces` joins the pieces of a file.

mod arrays;
mod bytes;
mod pieces;

use std::borrow::Cow;

use conset_ir::convert::index;
use conset_ir::{At, InputError, Result, limits};
use roxmltree::{Document, Node, ParsingOptions};

use super::cursor::Cursor;
use super::push_element;
use crate::model::element_type::from_vtk;
use crate::model::{Assembly, ElementType};
use arrays::ArrayReader;

/// The largest number of nodes of the XML tree. Meshes are in arrays, so a tree is small.
const MAX_XML_NODES: u32 = 1 << 20;

/// A file: its name and its XML tree as text.
struct VtuFile<'a> {
    name: &'a str,
    tree: &'a str,
}

impl VtuFile<'_> {
    fn error_at(&self, offset: usize, message: impl Into<String>) -> InputError {
        let before = &self.tree.as_bytes()[..offset.min(self.tree.len())];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
        InputError::new(self.name, At::Text { line, column, offset }, message)
    }

    fn error(&self, node: Node<'_, '_>, message: impl Into<String>) -> InputError {
        self.error_at(node.range().start, message)
    }

    fn xml_error(&self, error: &roxmltree::Error) -> InputError {
        if matches!(error, roxmltree::Error::UnclosedRootNode) {
            return self
                .error_at(self.tree.len(), "the file ends before the end of its XML")
                .help("the file was truncated or damaged; write it again");
        }
        let pos = error.pos();
        let (line, column) = (index(pos.row), index(pos.col));
        let lines = self.tree.split_inclusive('\n').take(line.saturating_sub(1));
        let offset = lines.map(str::len).sum::<usize>() + column.saturating_sub(1);
        InputError::new(
            self.name,
            At::Text { line, column, offset },
            format!("invalid XML: {error}"),
        )
    }

    fn child<'d>(&self, of: Node<'d, 'd>, name: &str) -> Result<Node<'d, 'd>> {
        let mut found = of.children().filter(|node| node.has_tag_name(name));
        let first = found
            .next()
            .ok_or_else(|| self.error(of, format!("{} has no {name}", of.tag_name().name())))?;
        match found.next() {
            None => Ok(first),
            Some(second) => Err(self.error(second, format!("a second {name}; expected one"))),
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

/// Reads all elements of a file whose arrays take `memory` bytes at most.
pub(super) fn read(name: &str, bytes: &[u8], memory: u64) -> Result<Assembly> {
    let (bytes, appended) = arrays::split(bytes);
    let tree = std::str::from_utf8(bytes).map_err(|e| {
        InputError::new(name, At::Byte(e.valid_up_to()), "not UTF-8; expected XML text")
    })?;
    let file = VtuFile { name, tree };
    let options = ParsingOptions { nodes_limit: MAX_XML_NODES, ..ParsingOptions::default() };
    // The appended bytes are not XML and were removed, so the tree needs end tags for the parser.
    let closed = match appended {
        Some(_) => Cow::Owned(format!("{tree}{}", arrays::CLOSING)),
        None => Cow::Borrowed(tree),
    };
    let document =
        Document::parse_with_options(&closed, options).map_err(|e| file.xml_error(&e))?;
    let root = document.root_element();
    if !root.has_tag_name("VTKFile") {
        return Err(file.error(root, "expected VTKFile"));
    }
    let kind = root.attribute("type").unwrap_or("");
    if kind != "UnstructuredGrid" {
        let error = file.error(root, format!("type `{kind}`; expected UnstructuredGrid"));
        return Err(match kind {
            "PUnstructuredGrid" => error.help(
                "a .pvtu file has no mesh, only the names of its pieces; save it as one .vtu file",
            ),
            _ => error,
        });
    }
    let grid = file.child(root, "UnstructuredGrid")?;
    let nodes: Vec<Node<'_, '_>> =
        grid.children().filter(|node| node.has_tag_name("Piece")).collect();
    let arrays = ArrayReader::new(&file, root, appended, memory)?;
    let version = root.attribute("version").unwrap_or("0.1");
    let format = format!("VTU {version}");
    match nodes.as_slice() {
        [] => Err(file.error(grid, "UnstructuredGrid has no Piece")),
        &[only] => piece(&file, &arrays, only, format),
        several => {
            let mut pieces = Vec::new();
            for &node in several {
                pieces.push(pieces::read(&file, &arrays, node, &format)?);
            }
            pieces::join(name, format!("{format}, {} pieces", several.len()), pieces)
        }
    }
}

/// Reads the only piece of a file.
fn piece<'d>(
    file: &VtuFile<'_>,
    arrays: &ArrayReader<'_, '_>,
    piece: Node<'d, 'd>,
    format: String,
) -> Result<Assembly> {
    let points = file.count(piece, "NumberOfPoints", limits::NODES)?;
    let cells = file.count(piece, "NumberOfCells", limits::ELEMENTS)?;
    if cells == 0 {
        return Err(file.error(piece, "the file has no cells"));
    }
    let coordinates = coordinates(file, arrays, piece, points)?;
    let mut assembly = Assembly::new(format);
    assembly.count_from_0();
    assembly.set_nodes(points, Vec::new(), coordinates);
    elements(file, arrays, piece, cells, &mut assembly)?;
    add_unused_data(piece, &mut assembly);
    Ok(assembly)
}

/// Notes the values at points and cells, which are not needed.
fn add_unused_data(piece: Node<'_, '_>, assembly: &mut Assembly) {
    for data in ["PointData", "CellData"] {
        let found = piece.children().find(|node| node.has_tag_name(data));
        let count = found.map_or(0, |node| node.children().filter(Node::is_element).count());
        if count > 0 {
            assembly.add_unused(format!("{count} arrays of {data}"), "values are not needed");
        }
    }
}

fn coordinates<'d>(
    file: &VtuFile<'_>,
    arrays: &ArrayReader<'_, '_>,
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

fn elements<'d>(
    file: &VtuFile<'_>,
    arrays: &ArrayReader<'_, '_>,
    piece: Node<'d, 'd>,
    cells: usize,
    assembly: &mut Assembly,
) -> Result<()> {
    let points = assembly.node_count();
    let node = file.child(piece, "Cells")?;
    let named = |name: &str| {
        node.children()
            .find(|n| n.has_tag_name("DataArray") && n.attribute("Name") == Some(name))
            .ok_or_else(|| file.error(node, format!("Cells has no DataArray `{name}`")))
    };
    let (at_types, at_offsets, at_nodes) =
        (named("types")?, named("offsets")?, named("connectivity")?);
    // The larger array first, so that too many cells are rejected before their types are decompressed.
    let offsets: Vec<u32> = arrays.integers(at_offsets, cells)?;
    let types: Vec<u8> = arrays.integers(at_types, cells)?;
    let ends = offsets.last().map_or(0, |&end| index(end));
    if ends > limits::NODES {
        return Err(file.error(
            at_offsets,
            format!("the cells have {ends} nodes; the limit is {}", limits::NODES),
        ));
    }
    let nodes: Vec<u32> = arrays.integers(at_nodes, ends)?;
    let cursor = Cursor::new(file.name, file.tree.as_bytes());
    let mut start = 0;
    for (cell, (&number, &end)) in types.iter().zip(&offsets).enumerate() {
        let own = nodes.get(index(start)..index(end)).ok_or_else(|| {
            file.error(
                at_offsets,
                format!("cell {cell} ends at {end}, before its start at {start}"),
            )
        })?;
        let (shape, count) = from_vtk(number.into()).ok_or_else(|| {
            file.error(at_types, format!("cell {cell} has the unsupported type {number}"))
        })?;
        let element_type = ElementType::new(shape, own.len())
            .filter(|of| count.is_none_or(|count| count == of.node_count()))
            .ok_or_else(|| {
                let message = format!("cell {cell} of type {number} has {} nodes", own.len());
                file.error(at_offsets, message)
            })?;
        if let Some(node) = own.iter().find(|&&node| index(node) >= points) {
            let message = format!("cell {cell} has node {node} of {points}; nodes count from 0");
            return Err(file.error(at_nodes, message));
        }
        push_element(&cursor, assembly, element_type, own)?;
        start = end;
    }
    Ok(())
}
