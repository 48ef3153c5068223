//! Writer of partitions: the part and the cell of each element, vertex or row, in the numbers of the
//! file that was read.
//!
//! *Text* is one line for each item, in the order of the file: its number, its part and its cell,
//! separated by spaces. The two lines before them start with `#`; the second names the columns.
//! Elements that are attached to another one (faces of a boundary) have its part. Triangles that
//! were recovered from a nodal graph have no number in the file; they count from 0 and their line
//! ends with their three vertices. A list of connections has parts only.
//!
//! *VTU* is the mesh with the cell data `part`, `cell` and `number` and the point data `number`, for
//! ParaView and other programs with VTK. Its cells are the divided elements, drawn by their corners:
//! the order of further nodes differs between formats. Nodes that were joined across a periodic
//! boundary are separate here. Elements whose nodes are in no order, and those of splines, are convex
//! point sets.

use std::io::{self, Write};

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ShapeError, counted};

use crate::halo::PartMembers;
use crate::model::{ElementOrigin, ElementType, Mesh, Shape, Source};
use crate::read::Reading;

/// A partition whose parts are placed on cells, with what it divides.
#[derive(Clone, Copy, Debug)]
pub struct PlacedPartition<'a> {
    reading: &'a Reading,
    parts: &'a PartMembers,
    cells: &'a [CellId],
    triangles: bool,
}

impl<'a> PlacedPartition<'a> {
    /// The partition of the items of `reading` into `parts`, which are placed on `cells`.
    ///
    /// # Errors
    /// Another number of cells than parts, or an item that does not exist.
    pub fn new(
        reading: &'a Reading,
        parts: &'a PartMembers,
        cells: &'a [CellId],
    ) -> Result<Self, ShapeError> {
        if cells.len() != parts.len() {
            let message = format!("{} for {} parts", cells.len(), parts.len());
            return Err(ShapeError::new("cells", message));
        }
        let items = crate::partition::item_count(&reading.source);
        let outside =
            |part: &usize| parts.items_of(*part).last().is_some_and(|&item| index(item) >= items);
        if let Some(part) = (0..parts.len()).find(outside) {
            let message = format!("an item that is not one of the {items}");
            return Err(ShapeError::new(format!("parts[{part}]"), message));
        }
        Ok(Self { reading, parts, cells, triangles: false })
    }

    /// Sets whether the items are triangles that were recovered from a nodal graph.
    #[must_use]
    pub fn triangles(self, triangles: bool) -> Self {
        Self { triangles, ..self }
    }

    /// Writes the text form; `input` is the name of the input for its first line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, input: &str, out: &mut dyn Write) -> io::Result<()> {
        let item = match &self.reading.source {
            Source::Mesh(_) if self.triangles => "triangle",
            Source::Mesh(_) | Source::Decomposition(_) => "element",
            Source::Graph(_) => "vertex",
            Source::Matrix(_) => "row",
            Source::Connections(_) => "",
        };
        write_header(input, self.parts.len(), out)?;
        if item.is_empty() {
            writeln!(out, "# part cell")?;
            return (0..)
                .zip(self.cells)
                .try_for_each(|(part, cell): (u32, _)| writeln!(out, "{part} {}", cell.0));
        }
        let vertices = if self.triangles { " vertex vertex vertex" } else { "" };
        writeln!(out, "# {item} part cell{vertices}")?;
        let part_of = self.part_of();
        let cell = |part: u32| self.cells[index(part)].0;
        let mut row = |number: u64, part: u32| writeln!(out, "{number} {part} {}", cell(part));
        match (&self.reading.source, &self.reading.origin) {
            (Source::Mesh(mesh), _) if self.triangles => {
                for (number, (&part, nodes)) in part_of.iter().zip(mesh.elements()).enumerate() {
                    write!(out, "{number} {part} {}", cell(part))?;
                    for &node in nodes {
                        write!(out, " {}", self.reading.node_number(node))?;
                    }
                    writeln!(out)?;
                }
                Ok(())
            }
            (_, Some(origin)) => file_order(origin)
                .try_for_each(|(number, element)| row(number, part_of[index(element)])),
            _ => (self.reading.first_number..)
                .zip(&part_of)
                .try_for_each(|(number, &part)| row(number, part)),
        }
    }

    /// The mesh with the partition, for [`VtuPartition::write`].
    ///
    /// # Errors
    /// An input that is no mesh or has no coordinates.
    pub fn vtu(&self) -> Result<VtuPartition<'a>, ShapeError> {
        let mesh = match &self.reading.source {
            Source::Mesh(mesh) => mesh,
            Source::Decomposition(decomposition) => decomposition.mesh(),
            Source::Graph(_) => return Err(no_mesh("a graph")),
            Source::Matrix(_) => return Err(no_mesh("a matrix")),
            Source::Connections(_) => return Err(no_mesh("a list of connections")),
        };
        if mesh.coordinates().len() != mesh.node_count() {
            let message = "the input has no coordinates, which a .vtu file requires";
            return Err(ShapeError::new("coordinates", message));
        }
        Ok(VtuPartition { mesh, partition: *self })
    }

    /// The part of each item.
    fn part_of(&self) -> Vec<u32> {
        let mut part_of = vec![0; crate::partition::item_count(&self.reading.source)];
        for part in 0..self.parts.len() {
            for &item in self.parts.items_of(part) {
                part_of[index(item)] = to_u32(part);
            }
        }
        part_of
    }
}

/// Writes the first line of the text form.
fn write_header(input: &str, parts: usize, out: &mut dyn Write) -> io::Result<()> {
    let input = input.escape_debug();
    writeln!(out, "# conset partition: {input}, {}; part p is on cell c", counted(parts, "part"))
}

/// Writes the text form of a placement of named cells, as of a pattern: one line for each cell, with
/// the cell that replaces it.
///
/// # Errors
/// Those of `out`.
pub fn write_cells(
    input: &str,
    cells: impl Iterator<Item = (CellId, CellId)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "# conset placement: {}", input.escape_debug())?;
    writeln!(out, "# named cell")?;
    for (named, cell) in cells {
        writeln!(out, "{} {}", named.0, cell.0)?;
    }
    Ok(())
}

fn no_mesh(what: &str) -> ShapeError {
    ShapeError::new("input", format!("{what} has no coordinates, which a .vtu file requires"))
}

/// The number of each element of the file, in its order, and the element of the mesh that it is or
/// that it is attached to.
fn file_order(origin: &ElementOrigin) -> impl Iterator<Item = (u64, u32)> + '_ {
    let mut all: Vec<(u32, u32)> = origin.divided.iter().copied().zip(0..).collect();
    all.extend_from_slice(&origin.attached);
    all.sort_unstable();
    all.into_iter().map(|(position, element)| (origin.number(position), element))
}

/// A partitioned mesh as VTK's unstructured grid.
#[derive(Clone, Copy, Debug)]
pub struct VtuPartition<'a> {
    mesh: &'a Mesh,
    partition: PlacedPartition<'a>,
}

/// An array of the file: its name, its type, its components and how many bytes it has.
struct Array {
    name: &'static str,
    kind: &'static str,
    components: u8,
    bytes: u64,
}

impl VtuPartition<'_> {
    /// The mesh.
    pub(crate) fn mesh(&self) -> &Mesh {
        self.mesh
    }

    /// The part of each element.
    pub(crate) fn part_of(&self) -> Vec<u32> {
        self.partition.part_of()
    }

    /// Writes the file. Its arrays are appended as raw bytes, so that numbers read back as they are.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (points, cells) = (to_u64(self.mesh.node_count()), to_u64(self.mesh.element_count()));
        let entries: u64 =
            (0..self.mesh.element_count()).map(|element| to_u64(self.drawn(element).1.len())).sum();
        let array = |name, kind, components, bytes| Array { name, kind, components, bytes };
        let point_data = [array("number", "UInt64", 1, 8 * points)];
        let position = [array("Points", "Float64", 3, 24 * points)];
        let connections = [
            array("connectivity", "Int64", 1, 8 * entries),
            array("offsets", "Int64", 1, 8 * cells),
            array("types", "UInt8", 1, cells),
        ];
        let cell_data = [
            array("part", "UInt32", 1, 4 * cells),
            array("cell", "UInt32", 1, 4 * cells),
            array("number", "UInt64", 1, 8 * cells),
        ];
        write!(
            out,
            "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" \
             header_type=\"UInt64\">\n<UnstructuredGrid>\n\
             <Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{cells}\">\n"
        )?;
        let mut offset = 0;
        for (section, arrays) in [
            ("PointData", &point_data[..]),
            ("Points", &position),
            ("Cells", &connections),
            ("CellData", &cell_data),
        ] {
            match section {
                "CellData" => writeln!(out, "<CellData Scalars=\"part\">")?,
                _ => writeln!(out, "<{section}>")?,
            }
            for Array { name, kind, components, bytes } in arrays {
                // Readers such as meshio make a table of one column where one component is stated.
                let of = match components {
                    1 => String::new(),
                    count => format!(" NumberOfComponents=\"{count}\""),
                };
                writeln!(
                    out,
                    "<DataArray type=\"{kind}\" Name=\"{name}\"{of} format=\"appended\" \
                     offset=\"{offset}\"/>"
                )?;
                offset += 8 + bytes;
            }
            writeln!(out, "</{section}>")?;
        }
        write!(out, "</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_")?;
        let sizes = point_data.iter().chain(&position).chain(&connections).chain(&cell_data);
        for (place, array) in sizes.enumerate() {
            out.write_all(&array.bytes.to_le_bytes())?;
            self.write_array(place, out)?;
        }
        write!(out, "\n</AppendedData>\n</VTKFile>\n")
    }

    /// Writes the values of an array, by its place in the file.
    fn write_array(&self, place: usize, out: &mut dyn Write) -> io::Result<()> {
        let mesh = self.mesh;
        let PlacedPartition { reading, cells, .. } = self.partition;
        let mut words = |values: &mut dyn Iterator<Item = u64>| {
            for value in values {
                out.write_all(&value.to_le_bytes())?;
            }
            Ok(())
        };
        let nodes = 0..to_u32(mesh.node_count());
        let elements = 0..mesh.element_count();
        match place {
            0 => words(&mut nodes.map(|node| reading.node_number(node))),
            1 => words(&mut mesh.coordinates().iter().flatten().map(|x| x.to_bits())),
            2 => elements
                .flat_map(|element| self.drawn(element).1)
                .try_for_each(|&node| out.write_all(&u64::from(node).to_le_bytes())),
            3 => {
                let mut ends = elements.scan(0, |end, element| {
                    *end += to_u64(self.drawn(element).1.len());
                    Some(*end)
                });
                words(&mut ends)
            }
            4 => elements
                .map(|element| self.drawn(element).0)
                .try_for_each(|number| out.write_all(&[number])),
            5 | 6 => self.partition.part_of().into_iter().try_for_each(|part| {
                let value = if place == 5 { part } else { cells[index(part)].0 };
                out.write_all(&value.to_le_bytes())
            }),
            _ => words(&mut elements.map(|element| reading.element_number(to_u32(element)))),
        }
    }

    /// The VTK cell type (`vtkCellType.h`) and the nodes by which an element is drawn.
    pub(crate) fn drawn(&self, element: usize) -> (u8, &[u32]) {
        let mesh = self.mesh;
        let origin = self.partition.reading.origin.as_ref();
        let nodes = match origin {
            Some(origin) if !origin.separate_nodes.is_empty() => {
                crate::model::row(mesh.element_first(), &origin.separate_nodes, element)
            }
            _ => mesh.element(element),
        };
        let of_type = match origin {
            Some(origin) => origin.types.get(element).copied(),
            None => ElementType::of_dimension(mesh.dimension(), nodes.len()),
        };
        if of_type.is_some_and(ElementType::is_spline) {
            return (41, nodes);
        }
        let in_order = origin.is_none_or(|origin| origin.has_node_order);
        let shape = of_type.map_or(Shape::Polyhedron, ElementType::shape);
        let cell_type = match shape {
            Shape::Point if nodes.len() == 1 => 1,
            Shape::Point => 2,
            Shape::Line => 3,
            Shape::Triangle => 5,
            Shape::Quadrilateral if in_order => 9,
            Shape::Polygon if in_order => 7,
            Shape::Tetrahedron => 10,
            Shape::Hexahedron if in_order => 12,
            Shape::Prism if in_order => 13,
            Shape::Pyramid if in_order => 14,
            // Convex point set.
            _ => return (41, nodes),
        };
        match shape {
            Shape::Point | Shape::Polygon => (cell_type, nodes),
            _ => (cell_type, &nodes[..shape.corner_count().min(nodes.len())]),
        }
    }
}
