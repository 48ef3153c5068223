//! SU2 meshes (SU2 documentation, "Mesh file").
//!
//! A file has lines `KEY= value`; rows of data follow some of them: `NDIME` (2 or 3), `NELEM` with a
//! row `type nodes... [number]` for each element, `NPOIN` with a row `coordinates... [number]` for
//! each node. `%` starts a comment line. Nodes count from 0 and are numbered by their rows; further
//! numbers in a row are not used. `MARKER_TAG` names a boundary, `MARKER_ELEMS` has rows
//! `type nodes...` of its elements, which are a group. All other keys are skipped, which the inventory
//! says.
//!
//! A file with `NZONE` above 1 has these keys once for each `IZONE`. Zones do not share nodes: SU2
//! interpolates between them. So the mesh has the nodes and elements of one zone after the other.

use std::collections::BTreeSet;

use conset_ir::convert::{to_u32, to_u64, to_usize};
use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use super::push_element;
use crate::model::element_type::from_vtk;
use crate::model::{Assembly, ElementType, Shape};

/// Greatest number of skipped keys that are named.
const NAMED_KEYS: usize = 20;

/// The name of the markers that list nodes which processors exchange.
const SEND_RECEIVE: &str = "SEND_RECEIVE";

/// The element type with the number of a VTK cell type.
fn element_type(number: u64) -> Option<ElementType> {
    if !matches!(number, 3 | 5 | 9 | 10 | 12 | 13 | 14) {
        return None;
    }
    let (shape, count) = from_vtk(number)?;
    ElementType::new(shape, count?)
}

/// What was read of the current zone.
#[derive(Default)]
struct Zone {
    dimension: Option<u8>,
    element_count: Option<usize>,
    /// The largest node number of an element, and its position.
    largest: (u64, usize),
    node_count: Option<usize>,
}

#[derive(Default)]
struct Su2Data {
    zone: Zone,
    /// The value of `NZONE`, and how many `IZONE` there were.
    zone_count: Option<u64>,
    zones: u64,
    assembly: Assembly,
    coordinates: Vec<[f64; 3]>,
    /// Number of nodes of the zones before this one.
    before: usize,
    /// The nodes of the element just read.
    own: Vec<u32>,
    /// The last key is skipped, and so are its rows.
    skipping: bool,
    /// The name of the boundary that comes next.
    marker: Option<String>,
    /// Rows with more numbers than their own number.
    long_rows: usize,
    skipped: BTreeSet<String>,
}

/// Reads all zones.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let mut cursor = Cursor::new(file, bytes);
    let mut data = Su2Data { assembly: Assembly::new("SU2"), ..Su2Data::default() };
    loop {
        cursor.skip_blank_and_comment_lines(b'%');
        if cursor.at_end() {
            break;
        }
        read_entry(&mut cursor, &mut data)?;
    }
    end_zone(&cursor, &mut data)?;
    let zones = data.zones.max(1);
    if let Some(count) = data.zone_count.filter(|&count| count != zones) {
        let message = format!("the file has {zones} of {count} zones");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    let mut assembly = data.assembly;
    assembly.count_from_0();
    assembly.set_nodes(data.coordinates.len(), Vec::new(), data.coordinates);
    if data.long_rows > 0 {
        assembly.add_unused(format!("more numbers in {} rows", data.long_rows), "not needed");
    }
    for key in data.skipped {
        assembly.add_unused(key, "no nodes and no elements");
    }
    Ok(assembly)
}

/// Checks that a zone is complete.
fn end_zone(cursor: &Cursor<'_>, data: &mut Su2Data) -> Result<()> {
    let zone = std::mem::take(&mut data.zone);
    let missing = |key: &str| cursor.error_at(cursor.offset(), format!("the file has no {key}"));
    zone.dimension.ok_or_else(|| missing("NDIME"))?;
    let elements = zone.element_count.ok_or_else(|| missing("NELEM"))?;
    let nodes = zone.node_count.ok_or_else(|| missing("NPOIN"))?;
    if elements == 0 {
        return Err(missing("elements"));
    }
    let (largest, place) = zone.largest;
    if largest >= to_u64(nodes) {
        let message = format!("node {largest} of {nodes}; nodes count from 0");
        return Err(cursor.error_at(place, message));
    }
    if data.zones > 0 {
        data.assembly.add_group(format!("zone {}", data.zones), elements);
    }
    data.before = data.coordinates.len();
    Ok(())
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
        b"NDIME" => data.zone.dimension.is_some(),
        b"NELEM" => data.zone.element_count.is_some(),
        b"NPOIN" => data.zone.node_count.is_some(),
        b"NZONE" => data.zone_count.is_some(),
        _ => false,
    };
    if twice {
        return Err(cursor.error_at(start, format!("a second {}", show(key))));
    }
    data.skipping = !matches!(key, b"NDIME" | b"NELEM" | b"NPOIN" | b"NZONE" | b"IZONE" | b"NMARK");
    match key {
        b"NDIME" => {
            let dimension = match cursor.integer("the dimension", 3)? {
                2 => 2,
                3 => 3,
                other => return Err(cursor.error(format!("dimension {other}; expected 2 or 3"))),
            };
            data.zone.dimension = Some(dimension);
        }
        b"NZONE" => data.zone_count = Some(cursor.integer("the number of zones", u64::MAX)?),
        b"IZONE" => begin_zone(cursor, data, start)?,
        b"NELEM" => read_elements(cursor, data, start)?,
        b"NPOIN" => read_points(cursor, data, start)?,
        b"NMARK" => {}
        b"MARKER_TAG" => data.marker = Some(show(cursor.token("the name of a boundary")?)),
        b"MARKER_ELEMS" if data.marker.as_deref() != Some(SEND_RECEIVE) => {
            data.skipping = false;
            read_marker(cursor, data, start)?;
        }
        _ if data.skipped.len() < NAMED_KEYS => {
            data.skipped.insert(show(key));
        }
        _ => {}
    }
    cursor.next_line();
    Ok(())
}

/// Reads the elements of a boundary. They have one dimension less than the mesh, or are nodes.
fn read_marker(cursor: &mut Cursor<'_>, data: &mut Su2Data, start: usize) -> Result<()> {
    let dimension = dimension(cursor, data, start)?;
    let most = limits::ELEMENTS - data.assembly.element_count();
    let count = cursor.integer("the number of elements", to_u64(most))?;
    for _ in 0..count {
        next_row(cursor);
        let number = cursor.integer("the type of an element", u64::from(u32::MAX))?;
        let element =
            if number == 1 { ElementType::new(Shape::Point, 1) } else { element_type(number) };
        let Some(element) = element.filter(|of| of.dimension() < dimension) else {
            let message = format!(
                "type {number} is not an element on the boundary of a mesh of dimension {dimension} \
                 (point 1, line 3, triangle 5, quadrilateral 9)"
            );
            return Err(cursor.error(message));
        };
        read_element(cursor, data, number, element)?;
    }
    let name = data.marker.clone().unwrap_or_default();
    data.assembly.add_group(name, to_usize(count));
    Ok(())
}

/// Reads the nodes of an element and the rest of its row.
fn read_element(
    cursor: &mut Cursor<'_>,
    data: &mut Su2Data,
    number: u64,
    element: ElementType,
) -> Result<()> {
    let mut own = std::mem::take(&mut data.own);
    own.clear();
    let nodes = element.node_count();
    for _ in 0..nodes {
        if cursor.at_line_end() {
            let message =
                format!("the row ends early; an element of type {number} has {nodes} nodes");
            return Err(cursor.error_at(cursor.offset(), message));
        }
        let most = to_u64(limits::NODES - data.before);
        let node = cursor.integer("a node", most)?;
        if node > data.zone.largest.0 {
            data.zone.largest = (node, cursor.last());
        }
        own.push(to_u32(node) + to_u32(data.before));
    }
    push_element(cursor, &mut data.assembly, element, &own)?;
    data.own = own;
    end_row(cursor, data)
}

fn begin_zone(cursor: &mut Cursor<'_>, data: &mut Su2Data, start: usize) -> Result<()> {
    let number = cursor.integer("the number of the zone", u64::MAX)?;
    let next = data.zones + 1;
    let most = data.zone_count.unwrap_or(1);
    if number != next || number > most {
        let message = format!("zone {number}; expected zone {next} of {most}");
        return Err(cursor.error_at(start, message));
    }
    if data.zones > 0 {
        end_zone(cursor, data)?;
    } else if data.zone.element_count.is_none() && data.zone.node_count.is_none() {
        // Some writers state the dimension before the first zone too.
        data.zone = Zone::default();
    }
    data.zones = next;
    Ok(())
}

fn dimension(cursor: &Cursor<'_>, data: &Su2Data, start: usize) -> Result<u8> {
    data.zone.dimension.ok_or_else(|| cursor.error_at(start, "NDIME must come before this"))
}

/// Moves to the next row of data.
fn next_row(cursor: &mut Cursor<'_>) {
    cursor.next_line();
    cursor.skip_blank_and_comment_lines(b'%');
}

fn read_elements(cursor: &mut Cursor<'_>, data: &mut Su2Data, start: usize) -> Result<()> {
    let dimension = dimension(cursor, data, start)?;
    let most = limits::ELEMENTS - data.assembly.element_count();
    let count = cursor.integer("the number of elements", to_u64(most))?;
    let mut elements = 0;
    for _ in 0..count {
        next_row(cursor);
        let number = cursor.integer("the type of an element", u64::from(u32::MAX))?;
        let Some(element) = element_type(number).filter(|of| of.dimension() == dimension) else {
            return Err(cursor.error(format!(
                "type {number} is not an element of dimension {dimension} (triangle 5, \
                 quadrilateral 9, tetrahedron 10, hexahedron 12, prism 13, pyramid 14)"
            )));
        };
        read_element(cursor, data, number, element)?;
        elements += 1;
    }
    data.zone.element_count = Some(elements);
    Ok(())
}

fn read_points(cursor: &mut Cursor<'_>, data: &mut Su2Data, start: usize) -> Result<()> {
    let dimension = dimension(cursor, data, start)?;
    let count = cursor.integer("the number of nodes", to_u64(limits::NODES - data.before))?;
    data.coordinates.reserve(cursor.capacity(count, 4));
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
        data.coordinates.push(point);
        end_row(cursor, data)?;
    }
    data.zone.node_count = Some(data.coordinates.len() - data.before);
    Ok(())
}

/// Ends a row, which may have its own number and more numbers at the end (in plane meshes the third
/// coordinate); none of them is used.
fn end_row(cursor: &mut Cursor<'_>, data: &mut Su2Data) -> Result<()> {
    let mut numbers = 0;
    while !cursor.at_line_end() {
        cursor.real("a number at the end of the row")?;
        numbers += 1;
    }
    data.long_rows += usize::from(numbers > 1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(number: &str, elements: &str) -> String {
        format!(
            "{number}NDIME= 2\nNELEM= 1\n{elements}\nNPOIN= 3\n0 0 0\n1 0 1\n0 1 2 7 0.5\nNMARK= 1\n\
             MARKER_TAG= wall\nMARKER_ELEMS= 1\n3 0 1\n"
        )
    }

    #[test]
    fn zones_are_meshes_without_common_nodes() {
        let zones = ["IZONE= 1\n", "IZONE= 2\n"].map(|number| zone(number, "5 0 1 2 0"));
        let made = read("f", format!("NZONE= 2\n{}{}", zones[0], zones[1]).as_bytes()).unwrap();
        let made = made.into_mesh("f").unwrap();
        assert_eq!(made.mesh.element(1), [3, 4, 5]);
        assert_eq!((made.mesh.node_count(), made.inventory.attached()), (6, 2));
        let groups: Vec<&str> = made.inventory.groups.iter().map(|g| g.name.as_str()).collect();
        assert_eq!(groups, ["wall", "zone 1", "wall", "zone 2"]);
        let unused: Vec<&str> = made.inventory.unused.iter().map(|u| u.what.as_str()).collect();
        assert_eq!(unused, ["more numbers in 2 rows"]);
    }

    #[test]
    fn markers_of_processors_and_repeated_dimensions_are_accepted() {
        let text = format!(
            "NDIME= 2\nNZONE= 1\n{}MARKER_TAG= SEND_RECEIVE\nMARKER_ELEMS= 1\nSEND_RECV= 1\n1 0 0\n",
            zone("IZONE= 1\n", "5 0 1 2").replace("0 0 0\n", "0 0 0.25 0\n")
        );
        let made = read("f", text.as_bytes()).unwrap().into_mesh("f").unwrap();
        assert_eq!(made.mesh.coordinates()[0], [0.0; 3]);
        let unused: Vec<&str> = made.inventory.unused.iter().map(|u| u.what.as_str()).collect();
        assert_eq!(unused, ["more numbers in 2 rows", "MARKER_ELEMS", "SEND_RECV"]);
        let wrong = |element: &str| zone("", "5 0 1 2").replace("3 0 1", element);
        let error = |text: String| read("f", text.as_bytes()).unwrap_err().to_string();
        assert!(error(wrong("5 0 1 2")).contains("not an element on the boundary"));
        assert!(error(wrong("3 0 9")).contains("node 9 of 3"));
    }

    #[test]
    fn zones_that_do_not_fit_are_refused() {
        let one = zone("IZONE= 1\n", "5 0 1 2");
        let error = |text: String| read("f", text.as_bytes()).unwrap_err().to_string();
        assert!(error(format!("NZONE= 2\n{one}")).contains("1 of 2 zones"));
        assert!(error(format!("NZONE= 2\n{one}{one}")).contains("expected zone 2"));
        assert!(
            error(format!("{one}{}", zone("IZONE= 2\n", "5 0 1 2"))).contains("expected zone 2")
        );
        let far = zone("IZONE= 2\n", "5 0 1 3");
        assert!(error(format!("NZONE= 2\n{one}{far}")).contains("node 3 of 3"));
        assert!(error(zone("", "5 0 1 2 0 x")).contains("a number at the end of the row"));
    }
}
