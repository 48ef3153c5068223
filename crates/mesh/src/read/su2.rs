//! SU2 meshes (SU2 documentation, "Mesh file").
//!
//! A file has lines `KEY= value`; rows of data follow some of them: `NDIME` (2 or 3), `NELEM` with a
//! row `type nodes... [number]` for each element, `NPOIN` with a row `coordinates... [number]` for
//! each node. `%` starts a comment line. Nodes count from 0 and are numbered by their rows. Boundary
//! markers and all other keys are skipped. Files with several zones are rejected.

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use crate::model::Mesh;

/// Dimension and number of nodes of a VTK cell type.
fn element_type(number: u64) -> Option<(u8, usize)> {
    Some(match number {
        3 => (1, 2),
        5 => (2, 3),
        9 => (2, 4),
        10 => (3, 4),
        12 => (3, 8),
        13 => (3, 6),
        14 => (3, 5),
        _ => return None,
    })
}

#[derive(Default)]
struct Su2Data {
    dimension: Option<u8>,
    first: Option<Vec<u32>>,
    nodes: Vec<u32>,
    /// The largest node number of an element, and its position.
    largest: (u64, usize),
    coordinates: Option<Vec<[f64; 3]>>,
    /// The last key is skipped, and so are its rows.
    skipping: bool,
}

/// Reads a mesh.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Mesh> {
    let mut cursor = Cursor::new(file, bytes);
    let mut data = Su2Data::default();
    loop {
        cursor.skip_blank_and_comment_lines(b'%');
        if cursor.at_end() {
            break;
        }
        read_entry(&mut cursor, &mut data)?;
    }
    let missing = |key: &str| cursor.error_at(cursor.offset(), format!("the file has no {key}"));
    let dimension = data.dimension.ok_or_else(|| missing("NDIME"))?;
    let first = data.first.ok_or_else(|| missing("NELEM"))?;
    let coordinates = data.coordinates.ok_or_else(|| missing("NPOIN"))?;
    if first.len() == 1 {
        return Err(missing("elements"));
    }
    let (largest, place) = data.largest;
    if largest >= to_u64(coordinates.len()) {
        let count = coordinates.len();
        let message = format!("node {largest} of {count}; nodes count from 0");
        return Err(cursor.error_at(place, message));
    }
    Mesh::new(dimension, coordinates.len(), coordinates, first, data.nodes)
        .map_err(|error| error.in_file(file))
}

/// Reads a line `KEY= value` and its rows.
fn read_entry(cursor: &mut Cursor<'_>, data: &mut Su2Data) -> Result<()> {
    let start = cursor.offset();
    let rest = cursor.rest();
    let line = &rest[..rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())];
    let Some(equals) = line.iter().position(|&b| b == b'=') else {
        if data.skipping {
            cursor.next_line();
            return Ok(());
        }
        return Err(cursor.error_at(start, format!("`{}`; expected `KEY= value`", show(line))));
    };
    let key = line[..equals].trim_ascii();
    cursor.seek(start + equals + 1);
    let twice = match key {
        b"NDIME" => data.dimension.is_some(),
        b"NELEM" => data.first.is_some(),
        b"NPOIN" => data.coordinates.is_some(),
        _ => false,
    };
    if twice {
        return Err(cursor.error_at(start, format!("a second {}", show(key))));
    }
    data.skipping = !matches!(key, b"NDIME" | b"NELEM" | b"NPOIN" | b"NZONE");
    match key {
        b"NDIME" => {
            let dimension = match cursor.integer("the dimension", 3)? {
                2 => 2,
                3 => 3,
                other => return Err(cursor.error(format!("dimension {other}; expected 2 or 3"))),
            };
            data.dimension = Some(dimension);
        }
        b"NZONE" => {
            let zones = cursor.integer("the number of zones", u64::MAX)?;
            check_zones(cursor, zones)?;
        }
        b"NELEM" => read_elements(cursor, data, start)?,
        b"NPOIN" => read_points(cursor, data, start)?,
        _ => {}
    }
    cursor.next_line();
    Ok(())
}

fn check_zones(cursor: &Cursor<'_>, zones: u64) -> Result<()> {
    if zones == 1 {
        return Ok(());
    }
    Err(cursor.error(format!("{zones} zones in one file")).help("write each zone to its own file"))
}

fn dimension(cursor: &Cursor<'_>, data: &Su2Data, start: usize) -> Result<u8> {
    data.dimension.ok_or_else(|| cursor.error_at(start, "NDIME must come before this"))
}

/// Moves to the next row of data.
fn next_row(cursor: &mut Cursor<'_>) {
    cursor.next_line();
    cursor.skip_blank_and_comment_lines(b'%');
}

fn read_elements(cursor: &mut Cursor<'_>, data: &mut Su2Data, start: usize) -> Result<()> {
    let dimension = dimension(cursor, data, start)?;
    let count = cursor.integer("the number of elements", to_u64(limits::ELEMENTS))?;
    let mut first = Vec::with_capacity(cursor.capacity(count, 6) + 1);
    first.push(0);
    for _ in 0..count {
        next_row(cursor);
        let number = cursor.integer("the type of an element", u64::from(u32::MAX))?;
        let Some((_, nodes)) = element_type(number).filter(|&(of, _)| of == dimension) else {
            return Err(cursor.error(format!(
                "type {number} is not an element of dimension {dimension} (triangle 5, \
                 quadrilateral 9, tetrahedron 10, hexahedron 12, prism 13, pyramid 14)"
            )));
        };
        for _ in 0..nodes {
            if cursor.at_line_end() {
                let message =
                    format!("the row ends early; an element of type {number} has {nodes} nodes");
                return Err(cursor.error_at(cursor.offset(), message));
            }
            let node = cursor.integer("a node", to_u64(limits::NODES))?;
            if node > data.largest.0 {
                data.largest = (node, cursor.last());
            }
            data.nodes.push(to_u32(node));
        }
        if data.nodes.len() > limits::NODES {
            return Err(cursor.error("more element nodes than fit 31 bits"));
        }
        first.push(to_u32(data.nodes.len()));
        end_row(cursor)?;
    }
    data.first = Some(first);
    Ok(())
}

fn read_points(cursor: &mut Cursor<'_>, data: &mut Su2Data, start: usize) -> Result<()> {
    let dimension = dimension(cursor, data, start)?;
    let count = cursor.integer("the number of nodes", to_u64(limits::NODES))?;
    let mut points = Vec::with_capacity(cursor.capacity(count, 4));
    for _ in 0..count {
        next_row(cursor);
        let mut point = [0.0; 3];
        for x in &mut point[..usize::from(dimension)] {
            if cursor.at_line_end() {
                let message = format!("the row ends early; expected {dimension} coordinates");
                return Err(cursor.error_at(cursor.offset(), message));
            }
            *x = cursor.real("a coordinate")?;
        }
        points.push(point);
        end_row(cursor)?;
    }
    data.coordinates = Some(points);
    Ok(())
}

/// Ends a row, which may have its own number at the end; the number is not used.
fn end_row(cursor: &mut Cursor<'_>) -> Result<()> {
    if !cursor.at_line_end() {
        cursor.integer("the row's number", u64::MAX)?;
    }
    if !cursor.at_line_end() {
        let token = show(cursor.peek_token());
        let message = format!("unexpected `{token}` at the end of the row");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    Ok(())
}
