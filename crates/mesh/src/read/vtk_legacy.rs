//! Unstructured grids in VTK's legacy form, ASCII and binary (VTK file formats, "Simple legacy formats").
//!
//! ```text
//! # vtk DataFile Version 3.0
//! title
//! ASCII | BINARY
//! DATASET UNSTRUCTURED_GRID
//! POINTS n type, coordinates
//! CELLS n size, rows `count nodes...`     from version 5: OFFSETS and CONNECTIVITY
//! CELL_TYPES n, types
//! CELL_DATA, POINT_DATA                   not used
//! ```
//!
//! Binary numbers are big-endian. A polyhedron has the list of its faces in place of its nodes;
//! its nodes are those of its faces. Other datasets are refused by name.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use super::{check_room, push_element};
use crate::model::element_type::from_vtk;
use crate::model::{Assembly, ElementType};

/// VTK's type of a polyhedron.
const POLYHEDRON: u32 = 42;

/// Type of the numbers of an array.
#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    Bit,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    String,
}

impl Scalar {
    fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"bit" => Scalar::Bit,
            b"char" | b"signed_char" => Scalar::I8,
            b"unsigned_char" => Scalar::U8,
            b"short" => Scalar::I16,
            b"unsigned_short" => Scalar::U16,
            b"int" => Scalar::I32,
            b"unsigned_int" => Scalar::U32,
            b"long" | b"vtktypeint64" | b"vtkIdType" | b"vtkidtype" => Scalar::I64,
            b"unsigned_long" | b"vtktypeuint64" => Scalar::U64,
            b"float" => Scalar::F32,
            b"double" => Scalar::F64,
            b"string" => Scalar::String,
            _ => return None,
        })
    }

    /// Bytes of a number, 0 if it has not a fixed number of them.
    fn size(self) -> usize {
        match self {
            Scalar::Bit | Scalar::String => 0,
            Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    binary: bool,
}

/// The nodes of all cells as they are in the file.
struct Cells {
    /// Where each cell's numbers end.
    ends: Vec<u32>,
    numbers: Vec<u32>,
    offset: usize,
}

/// Reads all elements of a file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let (mut reader, version) = header(file, bytes)?;
    let coding = if reader.binary { "binary" } else { "ASCII" };
    let mut assembly = Assembly::new(format!("VTK legacy {}, {coding}", version.text));
    let (mut points, mut cells, mut types) = (None, None, None);
    loop {
        reader.cursor.skip_space();
        if reader.cursor.at_end() {
            break;
        }
        let keyword = reader.cursor.token("a keyword")?;
        match keyword.to_ascii_uppercase().as_slice() {
            b"POINTS" if points.is_none() => points = Some(reader.points()?),
            b"CELLS" if cells.is_none() && version.offsets => cells = Some(reader.cells_5()?),
            b"CELLS" if cells.is_none() => cells = Some(reader.cells()?),
            b"CELL_TYPES" if types.is_none() => types = Some(reader.types()?),
            b"FIELD" => {
                let count = reader.field()?;
                assembly
                    .add_unused(format!("{count} arrays of field data"), "values are not needed");
            }
            b"METADATA" => reader.skip_metadata(),
            b"CELL_DATA" | b"POINT_DATA" => {
                let all = [points.is_some(), cells.is_some(), types.is_some()];
                if all != [true; 3] {
                    return Err(reader.cursor.error("data before POINTS, CELLS and CELL_TYPES"));
                }
                // Nothing but data can follow.
                assembly.add_unused("point and cell data", "values are not needed");
                break;
            }
            _ => {
                return Err(reader.cursor.error(format!(
                    "`{}` where POINTS, CELLS, CELL_TYPES or data was expected",
                    show(keyword)
                )));
            }
        }
    }
    let end = reader.cursor.offset();
    let missing = |name: &str| reader.cursor.error_at(end, format!("the file ends without {name}"));
    let points = points.ok_or_else(|| missing("POINTS"))?;
    let cells = cells.ok_or_else(|| missing("CELLS"))?;
    let types = types.ok_or_else(|| missing("CELL_TYPES"))?;
    if types.len() != cells.ends.len() {
        let message = format!("{} cells, but {} cell types", cells.ends.len(), types.len());
        return Err(reader.cursor.error_at(cells.offset, message));
    }
    let node_count = points.len();
    assembly.count_from_0();
    assembly.set_nodes(node_count, Vec::new(), points);
    reader.cursor.seek(cells.offset);
    let mut start = 0;
    let mut faces = Vec::new();
    let mut empty = 0;
    for (cell, (&number, &end)) in types.iter().zip(&cells.ends).enumerate() {
        let mut own = &cells.numbers[start..index(end)];
        start = index(end);
        if number == 0 && own.is_empty() {
            empty += 1;
            continue;
        }
        let error = |message: String| reader.cursor.error(format!("cell {cell}: {message}"));
        let (shape, fixed) =
            from_vtk(number.into()).ok_or_else(|| error(format!("type {number} is not known")))?;
        if number == POLYHEDRON {
            face_nodes(own, &mut faces).ok_or_else(|| {
                error("the faces of the polyhedron do not fit its row".to_owned())
            })?;
            own = &faces;
        }
        let element_type = ElementType::new(shape, own.len())
            .filter(|of| fixed.is_none_or(|count| count == of.node_count()))
            .ok_or_else(|| {
                error(format!("{} nodes for type {number} ({})", own.len(), shape.name()))
            })?;
        if let Some(node) = own.iter().find(|&&node| index(node) >= node_count) {
            return Err(error(format!("node {node} of {node_count}; nodes count from 0")));
        }
        push_element(&reader.cursor, &mut assembly, element_type, own)?;
    }
    if empty > 0 {
        assembly.add_unused(format!("{empty} empty cells"), "they have no nodes");
    }
    Ok(assembly)
}

/// The nodes of a polyhedron, each once, from the number of its faces and for each face its number
/// of nodes and these.
pub(super) fn face_nodes(stream: &[u32], nodes: &mut Vec<u32>) -> Option<()> {
    nodes.clear();
    let (&faces, mut rest) = stream.split_first()?;
    for _ in 0..faces {
        let (&count, behind) = rest.split_first()?;
        let (face, behind) = behind.split_at_checked(index(count))?;
        nodes.extend_from_slice(face);
        rest = behind;
    }
    nodes.sort_unstable();
    nodes.dedup();
    rest.is_empty().then_some(())
}

struct Version {
    text: String,
    /// CELLS has offsets and connectivity, from version 5 on.
    offsets: bool,
}

/// The three lines before the dataset, and its type.
fn header<'a>(file: &'a str, bytes: &'a [u8]) -> Result<(Reader<'a>, Version)> {
    let mut cursor = Cursor::new(file, bytes);
    let rest = cursor.rest();
    let line = rest.split(|&b| b == b'\n').next().unwrap_or(rest).trim_ascii_end();
    let Some(text) = line.strip_prefix(b"# vtk DataFile Version ") else {
        return Err(cursor.error("the first line is not `# vtk DataFile Version x.y`"));
    };
    let text = show(text.trim_ascii());
    let major: Option<u32> = text.split('.').next().and_then(|major| major.parse().ok());
    let Some(major) = major.filter(|major| (1..=5).contains(major)) else {
        return Err(cursor.error(format!("version `{text}`; expected 1.0 to 5.1")));
    };
    cursor.next_line();
    cursor.next_line();
    let binary = match cursor.token("ASCII or BINARY")?.to_ascii_uppercase().as_slice() {
        b"ASCII" => false,
        b"BINARY" => true,
        other => {
            return Err(cursor.error(format!("`{}`; expected ASCII or BINARY", show(other))));
        }
    };
    let keyword = cursor.token("DATASET")?;
    if !keyword.eq_ignore_ascii_case(b"DATASET") {
        return Err(cursor.error(format!("`{}` where DATASET was expected", show(keyword))));
    }
    let dataset = cursor.token("the type of the dataset")?;
    if !dataset.eq_ignore_ascii_case(b"UNSTRUCTURED_GRID") {
        return Err(cursor
            .error(format!("a dataset of type {}; expected UNSTRUCTURED_GRID", show(dataset)))
            .help("convert it to an unstructured grid first (ParaView: Append Datasets)"));
    }
    cursor.end_line("the type of the dataset")?;
    if binary {
        cursor.set_binary();
    }
    Ok((Reader { cursor, binary }, Version { text, offsets: major >= 5 }))
}

impl Reader<'_> {
    fn scalar(&mut self) -> Result<Scalar> {
        let name = self.cursor.token("the type of numbers")?;
        Scalar::from_name(&name.to_ascii_lowercase())
            .ok_or_else(|| self.cursor.error(format!("`{}` is not a type of numbers", show(name))))
    }

    /// The end of a line behind which numbers begin; checks that a binary file has as many.
    fn start(&mut self, count: usize, scalar: Scalar) -> Result<()> {
        self.cursor.end_line("the end of the line")?;
        if self.binary {
            check_room(&self.cursor, count, scalar.size(), "numbers")?;
        }
        Ok(())
    }

    /// A number that is a node, a position or a count.
    fn integer(&mut self, scalar: Scalar, what: &str) -> Result<u32> {
        if !self.binary {
            return self.cursor.number(what, limits::NODES);
        }
        let value = match scalar {
            Scalar::I8 => i64::from(i8::from_be_bytes(self.cursor.take(what)?)),
            Scalar::U8 => i64::from(u8::from_be_bytes(self.cursor.take(what)?)),
            Scalar::I16 => i64::from(i16::from_be_bytes(self.cursor.take(what)?)),
            Scalar::U16 => i64::from(u16::from_be_bytes(self.cursor.take(what)?)),
            Scalar::I32 => i64::from(i32::from_be_bytes(self.cursor.take(what)?)),
            Scalar::U32 => i64::from(u32::from_be_bytes(self.cursor.take(what)?)),
            Scalar::I64 | Scalar::U64 => i64::from_be_bytes(self.cursor.take(what)?),
            _ => return Err(self.cursor.error("the array does not have integers")),
        };
        u32::try_from(value).ok().filter(|&value| index(value) <= limits::NODES).ok_or_else(|| {
            self.cursor.error(format!("{value} is not {what} (0 to {})", limits::NODES))
        })
    }

    fn real(&mut self, scalar: Scalar, what: &str) -> Result<f64> {
        if !self.binary {
            return self.cursor.real(what);
        }
        let value = match scalar {
            Scalar::F32 => f64::from(f32::from_be_bytes(self.cursor.take(what)?)),
            Scalar::F64 => f64::from_be_bytes(self.cursor.take(what)?),
            _ => f64::from(self.integer(scalar, what)?),
        };
        match value.is_finite() {
            true => Ok(value),
            false => Err(self.cursor.error(format!("{value} is not finite; expected {what}"))),
        }
    }

    fn points(&mut self) -> Result<Vec<[f64; 3]>> {
        let count = self.cursor.count("the number of points", limits::NODES)?;
        let scalar = self.scalar()?;
        self.start(count * 3, scalar)?;
        let mut points = Vec::with_capacity(self.cursor.capacity(to_u64(count), 3));
        for _ in 0..count {
            let mut point = [0.0; 3];
            for x in &mut point {
                *x = self.real(scalar, "a coordinate")?;
            }
            points.push(point);
        }
        Ok(points)
    }

    /// Rows, each with its number of nodes before them.
    fn cells(&mut self) -> Result<Cells> {
        let offset = self.cursor.last();
        let count = self.cursor.count("the number of cells", limits::ELEMENTS)?;
        let size = self.cursor.count("the number of integers", usize::MAX)?;
        if size < count || size - count > limits::NODES {
            let message = format!("{size} integers for {count} cells and their nodes");
            return Err(self.cursor.error(message));
        }
        self.start(size, Scalar::I32)?;
        let mut ends = Vec::with_capacity(self.cursor.capacity(to_u64(count), 2));
        let mut numbers = Vec::with_capacity(self.cursor.capacity(to_u64(size - count), 2));
        for _ in 0..count {
            let own = index(self.integer(Scalar::I32, "the number of nodes of a cell")?);
            if own > size - count - numbers.len() {
                let message = format!("the cells have more nodes than their {size} integers");
                return Err(self.cursor.error(message));
            }
            for _ in 0..own {
                numbers.push(self.integer(Scalar::I32, "a node of a cell")?);
            }
            ends.push(to_u32(numbers.len()));
        }
        if numbers.len() != size - count {
            let message = format!("the cells have fewer nodes than their {size} integers");
            return Err(self.cursor.error(message));
        }
        Ok(Cells { ends, numbers, offset })
    }

    /// An array of row starts, one more than there are cells, and an array of nodes.
    fn cells_5(&mut self) -> Result<Cells> {
        let offset = self.cursor.last();
        let count = self.cursor.count("the number of offsets", limits::ELEMENTS + 1)?;
        let size = self.cursor.count("the number of nodes of all cells", limits::NODES)?;
        let starts = self.array(b"OFFSETS", count)?;
        let numbers = self.array(b"CONNECTIVITY", size)?;
        let closed = starts.first().is_none_or(|&start| start == 0)
            && starts.last().map_or(0, |&end| index(end)) == size;
        if !closed || !starts.is_sorted() {
            let message = format!("offsets do not ascend from 0 to the {size} nodes");
            return Err(self.cursor.error_at(offset, message));
        }
        Ok(Cells { ends: starts.get(1..).unwrap_or(&[]).to_vec(), numbers, offset })
    }

    /// A named array of integers.
    fn array(&mut self, name: &[u8], count: usize) -> Result<Vec<u32>> {
        let found = self.cursor.token(&show(name))?;
        if found != name {
            let message = format!("`{}` where {} was expected", show(found), show(name));
            return Err(self.cursor.error(message));
        }
        let scalar = self.scalar()?;
        self.start(count, scalar)?;
        let mut numbers = Vec::with_capacity(self.cursor.capacity(to_u64(count), 2));
        for _ in 0..count {
            numbers.push(self.integer(scalar, "an offset or a node")?);
        }
        Ok(numbers)
    }

    fn types(&mut self) -> Result<Vec<u32>> {
        let count = self.cursor.count("the number of cell types", limits::ELEMENTS)?;
        self.start(count, Scalar::I32)?;
        let mut types = Vec::with_capacity(self.cursor.capacity(to_u64(count), 2));
        for _ in 0..count {
            types.push(self.integer(Scalar::I32, "a cell type")?);
        }
        Ok(types)
    }

    /// Arrays that belong to the file: `name components tuples type` and numbers. Returns how many.
    fn field(&mut self) -> Result<u64> {
        self.cursor.token("the name of the field")?;
        let count = self.cursor.integer("the number of arrays", u64::MAX)?;
        for _ in 0..count {
            let mut name = self.cursor.token("the name of an array")?;
            while name == b"METADATA" {
                self.skip_metadata();
                name = self.cursor.token("the name of an array")?;
            }
            let components = self.cursor.count("the number of components", limits::NODES)?;
            let tuples = self.cursor.count("the number of tuples", limits::NODES)?;
            let scalar = self.scalar()?;
            let numbers = components.saturating_mul(tuples);
            self.start(numbers, scalar)?;
            if scalar == Scalar::String {
                return Err(self
                    .cursor
                    .error(format!("the field array `{}` has strings", show(name)))
                    .help("save the file without field data, or as .vtu"));
            }
            if self.binary {
                let size = if scalar == Scalar::Bit {
                    numbers.div_ceil(8)
                } else {
                    numbers * scalar.size()
                };
                check_room(&self.cursor, size, 1, "values")?;
                self.cursor.seek(self.cursor.offset() + size);
            } else {
                for _ in 0..numbers {
                    self.cursor.token("a value of a field array")?;
                }
            }
        }
        Ok(count)
    }

    /// Metadata end with a blank line.
    fn skip_metadata(&mut self) {
        self.cursor.next_line();
        while !self.cursor.at_end() && !self.cursor.at_line_end() {
            self.cursor.next_line();
        }
    }
}
