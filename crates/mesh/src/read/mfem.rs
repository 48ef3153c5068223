//! MFEM meshes, versions 1.0, 1.2 and 1.3 (MFEM documentation, "Mesh formats").
//!
//! ```text
//! MFEM mesh v1.0
//! dimension   2
//! elements    count, then rows `attribute geometry vertices...`
//! boundary    the same, one dimension lower
//! vertices    count, then either `space dimension` and coordinates, or `nodes` and a grid function
//! ```
//!
//! The nodes of the mesh are MFEM's vertices. A grid function `nodes` gives a curved geometry; the
//! coordinates of the vertices are taken from it if it is continuous (`H1`). If it is discontinuous
//! (`L2`, as periodic meshes have it) a vertex has no single place and the mesh has no coordinates.
//! Attributes become groups.
//!
//! Refused, each with its reason: NURBS meshes, nonconforming (AMR) meshes, `INLINE` meshes, and
//! the files of a parallel mesh.

use std::collections::BTreeMap;

use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use super::push_element;
use crate::model::element_type::from_mfem;
use crate::model::{Assembly, ElementType};

/// Reads all elements of a file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let mut cursor = Cursor::new(file, bytes);
    let version = header(&mut cursor)?;
    let mut assembly = Assembly::new(format!("MFEM {version}"));
    section(&mut cursor, b"dimension")?;
    cursor.integer("the dimension", 3)?;
    section(&mut cursor, b"elements")?;
    let mut largest = Largest::default();
    read_elements(&mut cursor, &mut assembly, "attribute", &mut largest)?;
    skip_attribute_sets(&mut cursor, &mut assembly, b"attribute_sets")?;
    section(&mut cursor, b"boundary")?;
    read_elements(&mut cursor, &mut assembly, "boundary attribute", &mut largest)?;
    skip_attribute_sets(&mut cursor, &mut assembly, b"bdr_attribute_sets")?;
    section(&mut cursor, b"vertices")?;
    let count = cursor.count("the number of vertices", limits::NODES)?;
    if largest.vertex >= conset_ir::convert::to_u64(count) {
        let message = format!("vertex {} of {count}; vertices count from 0", largest.vertex);
        return Err(cursor.error_at(largest.offset, message));
    }
    skip_comments(&mut cursor);
    let coordinates = if cursor.peek_token() == b"nodes" {
        section(&mut cursor, b"nodes")?;
        read_nodes(&mut cursor, &mut assembly, count)?
    } else {
        read_vertices(&mut cursor, count)?
    };
    // Without coordinates nothing in the file is as long as the number of vertices.
    if coordinates.is_empty() && count > bytes.len() {
        return Err(cursor.error(format!("{count} vertices, but the file does not have as many")));
    }
    assembly.count_from_0();
    assembly.set_nodes(count, Vec::new(), coordinates);
    end(&mut cursor)?;
    Ok(assembly)
}

/// The first line; the version.
fn header(cursor: &mut Cursor<'_>) -> Result<&'static str> {
    let rest = cursor.rest();
    let line = rest.split(|&b| b == b'\n').next().unwrap_or(rest).trim_ascii();
    let save = "save the mesh from MFEM in the format `MFEM mesh v1.0`";
    let refusal = match line {
        b"MFEM mesh v1.0" | b"MFEM mesh v1.2" | b"MFEM mesh v1.3" => {
            cursor.next_line();
            return Ok(match line {
                b"MFEM mesh v1.0" => "mesh v1.0",
                b"MFEM mesh v1.2" => "mesh v1.2",
                _ => "mesh v1.3",
            });
        }
        _ if line.starts_with(b"MFEM NURBS mesh") => cursor
            .error("a NURBS mesh: its nodes are control points, which the file does not list by element")
            .help("in MFEM, call Mesh::SetCurvature(1) and save the mesh"),
        _ if line.starts_with(b"MFEM NC mesh") || line == b"MFEM mesh v1.1" => cursor
            .error(
                "a nonconforming mesh: elements that meet at a hanging node do not share its \
                 vertices, so the exchange would be incomplete",
            )
            .help("save a conforming mesh from MFEM (refined uniformly or without refinement)"),
        _ if line.starts_with(b"MFEM INLINE mesh") => cursor
            .error("an INLINE mesh: the file has no elements, MFEM generates them")
            .help(save),
        _ => cursor
            .error(format!("`{}` is not a known first line; expected `MFEM mesh v1.0`", show(line)))
            .help(save),
    };
    Err(refusal)
}

/// Skips blank lines and comments.
fn skip_comments(cursor: &mut Cursor<'_>) {
    cursor.skip_space();
    cursor.skip_blank_and_comment_lines(b'#');
    cursor.skip_space();
}

/// The keyword that starts a section.
fn section(cursor: &mut Cursor<'_>, name: &[u8]) -> Result<()> {
    skip_comments(cursor);
    let found = cursor.token(&format!("`{}`", show(name)))?;
    if found != name {
        let message = format!("`{}` where `{}` was expected", show(found), show(name));
        return Err(cursor.error(message));
    }
    skip_comments(cursor);
    Ok(())
}

/// The largest vertex that an element has, and where.
#[derive(Default)]
struct Largest {
    vertex: u64,
    offset: usize,
}

fn read_elements(
    cursor: &mut Cursor<'_>,
    assembly: &mut Assembly,
    group: &str,
    largest: &mut Largest,
) -> Result<()> {
    let count =
        cursor.integer("the number of elements", conset_ir::convert::to_u64(limits::ELEMENTS))?;
    let mut attributes: BTreeMap<u64, usize> = BTreeMap::new();
    let mut nodes = Vec::new();
    for _ in 0..count {
        skip_comments(cursor);
        let attribute = cursor.integer("an attribute", u64::MAX)?;
        *attributes.entry(attribute).or_default() += 1;
        let geometry = cursor.integer("a geometry", u64::MAX)?;
        let Some(shape) = from_mfem(geometry) else {
            return Err(cursor.error(format!(
                "geometry {geometry}; expected 0 to 7 (point, segment, triangle, square, \
                 tetrahedron, cube, prism, pyramid)"
            )));
        };
        nodes.clear();
        for _ in 0..shape.corner_count() {
            if cursor.at_line_end() {
                let message = format!(
                    "the row ends early; a {} has {} vertices",
                    shape.name(),
                    shape.corner_count()
                );
                return Err(cursor.error_at(cursor.offset(), message));
            }
            let vertex = cursor.number("a vertex", limits::NODES)?;
            if u64::from(vertex) > largest.vertex {
                *largest = Largest { vertex: vertex.into(), offset: cursor.last() };
            }
            nodes.push(vertex);
        }
        cursor.end_line("attribute, geometry and vertices")?;
        let Some(element_type) = ElementType::new(shape, nodes.len()) else { continue };
        push_element(cursor, assembly, element_type, &nodes)?;
    }
    for (attribute, count) in attributes {
        assembly.add_group(format!("{group} {attribute}"), count);
    }
    Ok(())
}

/// Sets of attributes of version 1.3: a count, and lines of a quoted name, a count and numbers.
fn skip_attribute_sets(
    cursor: &mut Cursor<'_>,
    assembly: &mut Assembly,
    name: &[u8],
) -> Result<()> {
    skip_comments(cursor);
    if cursor.peek_token() != name {
        return Ok(());
    }
    section(cursor, name)?;
    let count = cursor.integer("the number of attribute sets", u64::MAX)?;
    cursor.end_line("the number of attribute sets")?;
    for _ in 0..count {
        skip_comments(cursor);
        if cursor.at_end() {
            return Err(cursor.error("the file ends within the attribute sets"));
        }
        cursor.next_line();
    }
    assembly.add_unused(format!("{count} {}", show(name)), "names for attributes");
    Ok(())
}

fn read_vertices(cursor: &mut Cursor<'_>, count: usize) -> Result<Vec<[f64; 3]>> {
    let dimension = cursor.count("the space dimension, or `nodes`", 3)?;
    if dimension == 0 {
        return Err(cursor.error("space dimension 0; expected 1 to 3"));
    }
    let mut points = Vec::with_capacity(cursor.capacity(conset_ir::convert::to_u64(count), 2));
    for _ in 0..count {
        skip_comments(cursor);
        let mut point = [0.0; 3];
        for x in &mut point[..dimension] {
            *x = cursor.real("a coordinate")?;
        }
        points.push(point);
    }
    Ok(points)
}

/// The grid function of a curved geometry: the coordinates of the vertices, if it has these.
fn read_nodes(
    cursor: &mut Cursor<'_>,
    assembly: &mut Assembly,
    vertex_count: usize,
) -> Result<Vec<[f64; 3]>> {
    section(cursor, b"FiniteElementSpace")?;
    section(cursor, b"FiniteElementCollection:")?;
    let collection = cursor.token("a finite element collection")?;
    section(cursor, b"VDim:")?;
    let dimension = cursor.count("the number of components", 3)?;
    if dimension == 0 {
        return Err(cursor.error("0 components; expected 1 to 3"));
    }
    section(cursor, b"Ordering:")?;
    let by_vertex = cursor.integer("0 (by nodes) or 1 (by components)", 1)? == 1;
    let start = cursor.offset();
    let mut values = Vec::new();
    loop {
        skip_comments(cursor);
        if cursor.at_end() || cursor.peek_token().starts_with(b"mfem_") {
            break;
        }
        values.push(cursor.real("a value of the grid function")?);
    }
    let shown = show(collection);
    let continuous = [&b"H1_"[..], b"H1Pos_", b"Linear", b"Quadratic", b"Cubic"];
    if !continuous.iter().any(|start| collection.starts_with(start)) {
        assembly.add_unused(
            format!("nodes ({shown})"),
            "the geometry is not continuous, so vertices have no single place; the mesh has no coordinates",
        );
        return Ok(Vec::new());
    }
    let per_component = values.len() / dimension;
    if !values.len().is_multiple_of(dimension) || per_component < vertex_count {
        let message = format!(
            "{} values of {dimension} components are not enough for {vertex_count} vertices",
            values.len()
        );
        return Err(cursor.error_at(start, message));
    }
    if per_component > vertex_count {
        assembly.add_unused(
            format!("{} higher-order nodes ({shown})", per_component - vertex_count),
            "they curve the geometry; elements share vertices",
        );
    }
    // The degrees of freedom of the vertices come first.
    let value = |vertex: usize, component: usize| match by_vertex {
        true => values[vertex * dimension + component],
        false => values[component * per_component + vertex],
    };
    let point =
        |vertex| std::array::from_fn(|i| if i < dimension { value(vertex, i) } else { 0.0 });
    Ok((0..vertex_count).map(point).collect())
}

/// Versions 1.2 and 1.3 mark the end of the mesh; parallel meshes continue with their groups.
fn end(cursor: &mut Cursor<'_>) -> Result<()> {
    skip_comments(cursor);
    if cursor.at_end() {
        return Ok(());
    }
    let token = cursor.token("the end of the file")?;
    if token == b"mfem_serial_mesh_end" || token == b"communication_groups" {
        return Err(cursor
            .error("one of several files of a parallel mesh; it has one part only")
            .help("save the whole mesh from MFEM (ParMesh::PrintAsOne, ParMesh::PrintAsSerial)"));
    }
    skip_comments(cursor);
    if token == b"mfem_mesh_end" && cursor.at_end() {
        return Ok(());
    }
    Err(cursor
        .error(format!("`{}` where the end of the file was expected", show(cursor.peek_token()))))
}
