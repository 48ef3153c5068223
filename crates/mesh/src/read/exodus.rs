//! Exodus II meshes in the classic NetCDF formats (SAND92-2137, "EXODUS II: a finite element data model").
//!
//! Blocks of elements of one type (`connect1`, `connect2`, ...) whose nodes count from 1; the type
//! is the attribute `elem_type`, the number of nodes the shape of the array. Blocks become groups.
//! `node_num_map` and `elem_num_map` have the file's own numbers. Polygons (`nsided` blocks) are
//! read.
//!
//! An element of a spline (`BEX_HEX`) has its control points as nodes, in no order. Its row of the
//! array has twice as many columns: behind the nodes are as many vectors of its Bézier extraction.
//! The attribute `bex_elem_degrees` says how many there are.
//!
//! Refused, each with its reason: HDF5 files (NetCDF-4), polyhedra (`nfaced` blocks), types whose shape
//! the name does not say, splines whose columns do not fit their degrees, and one file of a mesh that
//! was spread over several. Side and node sets, results and time steps are not used.

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{Result, limits};

use super::cursor::show;
use super::netcdf::{Dataset, limited};
use super::push_element;
use crate::model::element_type::from_exodus;
use crate::model::{Assembly, ElementType, Shape};

/// Reads all elements of a file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let mut data = Dataset::open(file, bytes)?;
    let whole = |data: &Dataset<'_>, message: String| data.cursor.error_at(0, message);
    let processors = data.dimension("num_processors");
    if processors > 1 {
        let message = format!("one file of a mesh that was spread over {processors} processors");
        return Err(whole(&data, message)
            .help("join the files with `epu`, or give the mesh that was spread"));
    }
    let node_count = limited(&data, "num_nodes", limits::NODES)?;
    let element_count = limited(&data, "num_elem", limits::ELEMENTS)?;
    let block_count = limited(&data, "num_el_blk", limits::ELEMENTS)?;
    if data.variable("coord").is_none()
        && data.variable("coordx").is_none()
        && data.variable("connect1").is_none()
    {
        let message = "a NetCDF file, but not an Exodus mesh: it has neither coord nor connect1";
        return Err(whole(&data, message.to_owned()));
    }
    let mut assembly = Assembly::new(format!("Exodus II, {}", data.version));
    let coordinates = coordinates(&mut data, node_count)?;
    if coordinates.is_empty() && node_count > bytes.len() {
        return Err(whole(
            &data,
            format!("{node_count} nodes, but the file does not have as many"),
        ));
    }
    let node_ids = ids(&mut data, "node_num_map", node_count)?;
    assembly.set_nodes(node_count, node_ids, coordinates);

    let names = data.texts("eb_names")?;
    let numbers = data.integers("eb_prop1")?.unwrap_or_default();
    // Blocks without elements have no array.
    let arrays = data.variables.iter().filter_map(|v| v.name.strip_prefix("connect")?.parse().ok());
    let mut blocks: Vec<usize> = arrays.filter(|block| (1..=block_count).contains(block)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for block in blocks {
        let before = assembly.element_count();
        let type_name = read_block(&mut data, block, node_count, &mut assembly)?;
        let number = numbers.get(block - 1).copied().flatten();
        let name = names.get(block - 1).filter(|name| !name.is_empty()).cloned();
        let name = name.unwrap_or_else(|| format!("block {}", number.unwrap_or(to_u64(block))));
        assembly.add_group(format!("{name} ({type_name})"), assembly.element_count() - before);
        if is_spline(&type_name) {
            let what = format!("Bézier extraction of {name}");
            assembly.add_unused(what, "coefficients; elements share control points");
        }
    }
    if assembly.element_count() != element_count {
        let message = format!(
            "the blocks have {} elements, but num_elem is {element_count}",
            assembly.element_count()
        );
        return Err(whole(&data, message));
    }
    let element_ids = ids(&mut data, "elem_num_map", element_count)?;
    assembly.set_element_ids(element_ids);
    for (dimension, what, why) in [
        ("num_side_sets", "side sets", "sides of elements, which add nothing to the exchange"),
        ("num_node_sets", "node sets", "boundary data"),
        ("num_ed_blk", "edge blocks", "edges of elements, which add nothing to the exchange"),
        ("num_fa_blk", "face blocks", "faces of elements, which add nothing to the exchange"),
    ] {
        let count = data.dimension(dimension);
        if count > 0 {
            assembly.add_unused(format!("{count} {what}"), why);
        }
    }
    let results =
        data.variables.iter().filter(|variable| variable.name.starts_with("vals_")).count();
    if results > 0 {
        assembly.add_unused(format!("{results} arrays of results"), "values are not needed");
    }
    Ok(assembly)
}

/// Coordinates in one array, component by component, or in one array each.
fn coordinates(data: &mut Dataset<'_>, node_count: usize) -> Result<Vec<[f64; 3]>> {
    let dimension = data.dimension("num_dim");
    if !(1..=3).contains(&dimension) {
        let message = format!("num_dim is {dimension}; expected 1 to 3");
        return Err(data.cursor.error_at(0, message));
    }
    let mut components = Vec::new();
    if let Some(all) = data.reals("coord")? {
        if node_count > 0 {
            components.extend(all.chunks(node_count).map(<[f64]>::to_vec));
        }
    } else {
        for name in &["coordx", "coordy", "coordz"][..dimension] {
            components.extend(data.reals(name)?);
        }
    }
    if components.is_empty() {
        return Ok(Vec::new());
    }
    if components.len() != dimension || components.iter().any(|all| all.len() != node_count) {
        let message = format!("the coordinates are not {dimension} for each of {node_count} nodes");
        return Err(data.cursor.error_at(0, message));
    }
    let point = |node: usize| std::array::from_fn(|i| components.get(i).map_or(0.0, |x| x[node]));
    Ok((0..node_count).map(point).collect())
}

/// The file's own numbers; nothing if it has none or they are 1, 2, 3 and so on.
fn ids(data: &mut Dataset<'_>, name: &str, count: usize) -> Result<Vec<u64>> {
    let Some(map) = data.integers(name)? else { return Ok(Vec::new()) };
    let ids: Vec<u64> = map.iter().flatten().copied().collect();
    let error = |message: String| data.cursor.error_at(0, message);
    if ids.len() != count {
        return Err(error(format!("{name} does not have one number for each of {count}")));
    }
    if ids.iter().zip(1u64..).all(|(&id, position)| id == position) {
        return Ok(Vec::new());
    }
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(error(format!("{name} has the number {} twice", pair[0]))),
        None => Ok(ids),
    }
}

/// Whether the elements of a block are those of a spline.
fn is_spline(type_name: &str) -> bool {
    type_name.to_ascii_uppercase().starts_with("BEX_")
}

/// The number of nodes of a spline's elements, which are the first half of the columns.
///
/// # Errors
/// Why the columns cannot be told apart.
fn spline_nodes(type_name: &str, degrees: &[i32], columns: usize) -> Result<usize, String> {
    let shown = show(type_name.as_bytes());
    let nodes = columns / 2;
    let shape = from_exodus(type_name, nodes);
    let points: Option<Vec<usize>> = degrees
        .iter()
        .map(|&degree| usize::try_from(degree).ok()?.checked_add(1).filter(|&points| points > 1))
        .collect();
    // The points of a simplex of one degree, and of products of lines and triangles.
    let triangle = |n: usize| n.checked_mul(n.checked_add(1)?).map(|twice| twice / 2);
    let expected = points.as_deref().and_then(|points| match (shape?, points) {
        (Shape::Line, &[a]) => Some(a),
        (Shape::Quadrilateral, &[a, b]) => a.checked_mul(b),
        (Shape::Hexahedron, &[a, b, c]) => a.checked_mul(b)?.checked_mul(c),
        (Shape::Triangle, &[a]) => triangle(a),
        (Shape::Tetrahedron, &[a]) => Some(triangle(a)?.checked_mul(a.checked_add(2)?)? / 3),
        (Shape::Prism, &[a, b]) => triangle(a)?.checked_mul(b),
        _ => None,
    });
    match expected {
        Some(expected) if expected == nodes && columns == 2 * nodes => Ok(nodes),
        Some(expected) => Err(format!(
            "has {columns} columns; expected {} for type `{shown}` of degrees {degrees:?}: \
             {expected} nodes and as many vectors of the extraction",
            expected.saturating_mul(2)
        )),
        None => Err(format!(
            "has {columns} columns for type `{shown}`; its degrees (bex_elem_degrees {degrees:?}) \
             do not say how many of them are nodes"
        )),
    }
}

/// Reads the elements of a block; the name of their type.
fn read_block(
    data: &mut Dataset<'_>,
    block: usize,
    node_count: usize,
    assembly: &mut Assembly,
) -> Result<String> {
    let name = format!("connect{block}");
    let variable = data.variable(&name);
    let type_name = variable.and_then(|v| v.text_attribute("elem_type")).unwrap_or("").to_owned();
    let shape_of_array = variable.map(|v| v.shape.clone()).unwrap_or_default();
    let shown = show(type_name.as_bytes());
    let spline_nodes = match is_spline(&type_name) {
        false => None,
        true => {
            let degrees = variable.and_then(|v| v.integer_attribute("bex_elem_degrees"));
            let columns = shape_of_array.last().copied().unwrap_or(0);
            let nodes = spline_nodes(&type_name, degrees.unwrap_or_default(), columns);
            Some(nodes.map_err(|message| data.cursor.error_at(0, format!("{name} {message}")))?)
        }
    };
    if type_name.to_ascii_uppercase().starts_with("NFACED") {
        return Err(data
            .cursor
            .error_at(
                0,
                format!("{name} has polyhedra (`{shown}`), which are not read from Exodus files"),
            )
            .help("write them to .vtu or .vtk"));
    }
    let nodes = data.integers(&name)?.unwrap_or_default();
    let counts: Vec<usize> = if type_name.to_ascii_uppercase().starts_with("NSIDED") {
        let counts = data.integers(&format!("ebepecnt{block}"))?.unwrap_or_default();
        counts
            .iter()
            .map(|&count| count.map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX)))
            .collect()
    } else {
        let [elements, columns] = shape_of_array[..] else {
            let message = format!("{name} has {} dimensions; expected 2", shape_of_array.len());
            return Err(data.cursor.error_at(0, message));
        };
        vec![columns; elements]
    };
    let total = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
    if total != Some(nodes.len()) {
        let message =
            format!("{name} has {} nodes, which its elements do not add up to", nodes.len());
        return Err(data.cursor.error_at(0, message));
    }
    let mut rest = &nodes[..];
    let mut own = Vec::new();
    for (element, count) in counts.into_iter().enumerate() {
        let (row, behind) = rest.split_at(count);
        rest = behind;
        let row = &row[..spline_nodes.unwrap_or(count)];
        let count = row.len();
        let error = |message: String| {
            data.cursor.error_at(0, format!("{name}, element {}: {message}", element + 1))
        };
        let shape = from_exodus(&type_name, count)
            .ok_or_else(|| error(format!("type `{shown}` with {count} nodes is not known")))?;
        // Spheres have one node; other points are not known to have more.
        let element_type = ElementType::new(shape, count)
            .filter(|_| shape != Shape::Point || count == 1)
            .ok_or_else(|| error(format!("{count} nodes for type `{shown}`")))?;
        let element_type = match spline_nodes {
            Some(_) => element_type.spline(),
            None => element_type,
        };
        own.clear();
        for &node in row {
            let inside = node.filter(|&node| node >= 1 && node <= to_u64(node_count));
            let Some(node) = inside else {
                let node = node.map_or("a negative node".to_owned(), |node| format!("node {node}"));
                return Err(error(format!("{node} of {node_count}; nodes count from 1")));
            };
            own.push(to_u32(node - 1));
        }
        push_element(&data.cursor, assembly, element_type, &own)?;
    }
    Ok(type_name)
}
