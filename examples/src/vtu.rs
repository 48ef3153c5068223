//! Writing a solution as a VTU file, for ParaView: a piece for each cell that has a part.
//!
//! The file is text (XML): these are examples, and numbers in it are exact and can be read. Nodes that
//! several parts share are in the piece of each. Coordinates are those that the solver uses, with the
//! longest side of the mesh scaled to 1.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use conset::ir::CellId;

use crate::mesh::{Part, Simplices};
use crate::{Failure, failure};

/// The type of a triangle and of a tetrahedron in VTK, by the dimension.
fn vtk_type(dimension: usize) -> u8 {
    if dimension == 2 { 5 } else { 10 }
}

/// The text of a file: of each piece its cell, its part, and `block` values for each of its nodes.
///
/// # Errors
/// A vector of another length than the part has values.
pub fn text<'a>(
    pieces: impl Iterator<Item = (CellId, &'a Part, &'a [f64])>,
    block: usize,
) -> Result<String, Failure> {
    let mut out = "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" \
                   byte_order=\"LittleEndian\">\n<UnstructuredGrid>\n"
        .to_owned();
    for (cell, part, values) in pieces {
        if values.len() != part.ids.len() * block {
            let found = values.len();
            return Err(failure(format!(
                "{cell}: expected {block} values for each of {} nodes, found {found}",
                part.ids.len()
            )));
        }
        piece(&mut out, cell, &part.mesh, (values, block));
    }
    out.push_str("</UnstructuredGrid>\n</VTKFile>\n");
    Ok(out)
}

fn piece(out: &mut String, cell: CellId, mesh: &Simplices, (values, block): (&[f64], usize)) {
    let corners = mesh.dimension + 1;
    let elements = mesh.elements().len();
    let (nodes, of) = (mesh.node_count(), "type=\"Float64\" Name=\"u\" NumberOfComponents");
    push(out, format_args!("<Piece NumberOfPoints=\"{nodes}\" NumberOfCells=\"{elements}\">"));
    push(out, format_args!("<PointData>\n<DataArray {of}=\"{block}\" format=\"ascii\">"));
    rows(out, values, block);
    push(out, format_args!("</DataArray>\n</PointData>\n<CellData>"));
    let of = "type=\"UInt32\" Name=\"cell\" format=\"ascii\"";
    push(out, format_args!("<DataArray {of}>"));
    rows(out, &vec![cell.0; elements], elements.max(1));
    push(out, format_args!("</DataArray>\n</CellData>\n<Points>"));
    let of = "type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\" format=\"ascii\"";
    push(out, format_args!("<DataArray {of}>"));
    rows(out, mesh.points.as_flattened(), 3);
    push(out, format_args!("</DataArray>\n</Points>\n<Cells>"));
    array(out, "connectivity", &mesh.corners, corners);
    let ends: Vec<usize> = (1..=elements).map(|element| element * corners).collect();
    array(out, "offsets", &ends, elements.max(1));
    array(out, "types", &vec![vtk_type(mesh.dimension); elements], elements.max(1));
    push(out, format_args!("</Cells>\n</Piece>"));
}

fn array(out: &mut String, name: &str, values: &[impl std::fmt::Debug], row: usize) {
    push(out, format_args!("<DataArray type=\"Int64\" Name=\"{name}\" format=\"ascii\">"));
    rows(out, values, row);
    push(out, format_args!("</DataArray>"));
}

/// Values in lines of so many.
fn rows(out: &mut String, values: &[impl std::fmt::Debug], row: usize) {
    for row in values.chunks(row) {
        let words: Vec<String> = row.iter().map(|value| format!("{value:?}")).collect();
        push(out, format_args!("{}", words.join(" ")));
    }
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{line}");
}

/// The name of the file of a process that has the cells from `first` on and not all: `u.vtu` is
/// `u-c4.vtu`.
pub fn of_process(path: &Path, first: CellId) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{first}")).with_extension("vtu")
}
