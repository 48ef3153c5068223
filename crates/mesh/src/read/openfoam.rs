//! OpenFOAM meshes: the files of a folder `polyMesh` (OpenFOAM User Guide, "Mesh description").
//!
//! ```text
//! points      the coordinates of each node
//! faces       the nodes of each face
//! owner       the cell on one side of each face
//! neighbour   the cell on the other side of each internal face; these faces come first
//! boundary    the patches of the other faces; optional here
//! ```
//!
//! The nodes of a cell are those of its faces. Cells with the faces of a tetrahedron, pyramid, prism
//! or hexahedron have that shape, others are polyhedra. Files are ASCII or binary and may be
//! compressed with gzip. A mesh is several files, so it is not a [`Format`](super::Format): whoever opens files
//! gives all of them to [`read_openfoam`].
//!
//! One folder `processorN` of a decomposed case is refused; [`read_openfoam_decomposed`] reads all of
//! them. The numbers of their nodes and cells in the whole case are in `pointProcAddressing` and
//! `cellProcAddressing`. The faces of cyclic patches are not
//! joined, which the inventory says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{At, InputError, Result, limits};

use super::cursor::{Cursor, show};
use super::{ReadOptions, Reading, check_room, gzip, push_element};
use crate::model::assembly::merge;
use crate::model::{Assembly, ElementType, Shape};

/// The bytes of the files of a folder `polyMesh`.
#[derive(Clone, Copy, Debug)]
pub struct PolyMesh<'a> {
    /// `points`.
    pub points: &'a [u8],
    /// `faces`.
    pub faces: &'a [u8],
    /// `owner`.
    pub owner: &'a [u8],
    /// `neighbour`.
    pub neighbour: &'a [u8],
    /// `boundary`, if it is to be looked at.
    pub boundary: Option<&'a [u8]>,
}

/// The bytes of the files of a folder `processorN/constant/polyMesh`.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorMesh<'a> {
    /// The mesh of the part.
    pub mesh: PolyMesh<'a>,
    /// `pointProcAddressing`: the number of each point in the whole case.
    pub points: &'a [u8],
    /// `cellProcAddressing`: the number of each cell in the whole case.
    pub cells: &'a [u8],
}

/// Reads a decomposed case as the decomposition that it is; `folders` are the names of the folders
/// `polyMesh` of the processors in ascending order, for errors.
///
/// # Errors
/// As [`read_openfoam`], and parts that contradict each other.
pub fn read_openfoam_decomposed(
    folders: &[&str],
    parts: &[ProcessorMesh<'_>],
    options: &ReadOptions,
) -> Result<Reading> {
    let mut pieces = Vec::new();
    let case = folders.first().copied().unwrap_or("<case>");
    if folders.len() != parts.len() || parts.len() > limits::PARTS {
        let message = format!("{} folders of {} parts", folders.len(), parts.len());
        return Err(InputError::new(case, At::Whole, message));
    }
    for (part, (&folder, files)) in folders.iter().zip(parts).enumerate() {
        let mut piece = assembly(folder, files.mesh, options, true)?;
        let addresses = |file: &str, bytes: &[u8], count: usize| {
            let name = format!("{folder}/{file}");
            let numbers = labels(&name, &decompressed(&name, bytes, options.memory)?)?;
            if numbers.len() != count {
                let message = format!("{} numbers; the mesh has {count}", numbers.len());
                return Err(InputError::new(name, At::Whole, message));
            }
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                let message = format!("the number {} is given twice", pair[0]);
                return Err(InputError::new(name, At::Whole, message));
            }
            Ok(numbers.into_iter().map(|number| u64::from(number) + 1).collect::<Vec<u64>>())
        };
        piece.set_node_ids(addresses("pointProcAddressing", files.points, piece.node_count())?);
        let cells = piece.element_count();
        piece.set_element_ids(addresses("cellProcAddressing", files.cells, cells)?);
        piece.set_parts(vec![to_u32(part); cells], parts.len());
        pieces.push(piece);
    }
    let format = format!("OpenFOAM polyMesh of {} processors", parts.len());
    let mut merged = merge(format, folders, pieces)?;
    merged.lower_ids();
    merged.into_reading(case, options)
}

/// Reads a mesh; `folder` is the name of its folder for errors.
///
/// # Errors
/// As [`read`](super::read()); the error names the file in the folder.
pub fn read_openfoam(folder: &str, files: PolyMesh<'_>, options: &ReadOptions) -> Result<Reading> {
    assembly(folder, files, options, false)?.into_reading(folder, options)
}

/// Reads the cells; those of one part of a decomposed case if `is_part`.
fn assembly(
    folder: &str,
    files: PolyMesh<'_>,
    options: &ReadOptions,
    is_part: bool,
) -> Result<Assembly> {
    let name = |file: &str| format!("{folder}/{file}");
    let plain = |file: &str, bytes| decompressed(&name(file), bytes, options.memory);
    let points = points(&name("points"), &plain("points", files.points)?)?;
    let faces = faces(&name("faces"), &plain("faces", files.faces)?, points.len())?;
    let owner_file = name("owner");
    let owner = labels(&owner_file, &plain("owner", files.owner)?)?;
    let neighbour_file = name("neighbour");
    let neighbour = neighbours(&neighbour_file, &plain("neighbour", files.neighbour)?)?;
    let face_count = faces.ends.len();
    let whole = |file: &str, message: String| InputError::new(file, At::Whole, message);
    if owner.len() != face_count || neighbour.len() > face_count {
        let (owners, neighbours) = (owner.len(), neighbour.len());
        let message = format!("{owners} owners and {neighbours} neighbours of {face_count} faces");
        return Err(whole(&owner_file, message));
    }
    let mut assembly = Assembly::new("OpenFOAM polyMesh");
    assembly.count_from_0();
    // A cell is a list of faces, so its nodes are in no order.
    assembly.without_node_order();
    if let Some(bytes) = files.boundary {
        boundary(&name("boundary"), &plain("boundary", bytes)?, &mut assembly, is_part)?;
    }
    // Every cell has faces, so there are at most as many cells as entries.
    let cells = owner.iter().chain(&neighbour).max().map_or(0, |&cell| index(cell) + 1);
    if cells > owner.len() + neighbour.len() {
        let message = format!("cell {} of {face_count} faces", cells - 1);
        return Err(whole(&owner_file, message));
    }
    // The faces of each cell, row by row.
    let mut first = vec![0u32; cells + 1];
    for &cell in owner.iter().chain(&neighbour) {
        first[index(cell) + 1] += 1;
    }
    for cell in 0..cells {
        first[cell + 1] += first[cell];
    }
    let mut next = first.clone();
    let mut faces_of = vec![0u32; index(first[cells])];
    for cells in [&owner, &neighbour] {
        for (face, &cell) in (0u32..).zip(cells) {
            let place = &mut next[index(cell)];
            faces_of[index(*place)] = face;
            *place += 1;
        }
    }
    assembly.set_nodes(points.len(), Vec::new(), points);
    let cursor = Cursor::new(folder, &[]);
    let mut nodes = Vec::new();
    for cell in 0..cells {
        let own = crate::model::row(&first, &faces_of, cell);
        nodes.clear();
        let mut largest = 0;
        let mut smallest = usize::MAX;
        for &face in own {
            let face = faces.of(index(face));
            largest = largest.max(face.len());
            smallest = smallest.min(face.len());
            nodes.extend_from_slice(face);
        }
        nodes.sort_unstable();
        nodes.dedup();
        let shape = match (own.len(), nodes.len(), smallest, largest) {
            (4, 4, 3, 3) => Shape::Tetrahedron,
            (5, 5, 3, 4) => Shape::Pyramid,
            (5, 6, 3, 4) => Shape::Prism,
            (6, 8, 4, 4) => Shape::Hexahedron,
            _ => Shape::Polyhedron,
        };
        let Some(element_type) = ElementType::new(shape, nodes.len()) else {
            let (faces, nodes) = (own.len(), nodes.len());
            let message = format!("cell {cell} has {faces} faces and {nodes} nodes");
            return Err(whole(&owner_file, message));
        };
        push_element(&cursor, &mut assembly, element_type, &nodes)?;
    }
    Ok(assembly)
}

fn decompressed<'a>(file: &str, bytes: &'a [u8], memory: u64) -> Result<Cow<'a, [u8]>> {
    if gzip::is_gzip(bytes) {
        return gzip::decompress(file, bytes, memory).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(bytes))
}

/// Lists of lists of nodes.
struct Faces {
    ends: Vec<u32>,
    nodes: Vec<u32>,
}

impl Faces {
    fn of(&self, face: usize) -> &[u32] {
        let start = face.checked_sub(1).map_or(0, |before| index(self.ends[before]));
        &self.nodes[start..index(self.ends[face])]
    }
}

/// A file behind its header.
struct Foam<'a> {
    cursor: Cursor<'a>,
    binary: bool,
    big_endian: bool,
    /// Bytes of an integer and of a real in binary files.
    label_size: usize,
    scalar_size: usize,
    class: String,
}

impl<'a> Foam<'a> {
    /// Reads the dictionary `FoamFile`.
    fn open(file: &'a str, bytes: &'a [u8]) -> Result<Self> {
        let cursor = Cursor::new(file, bytes);
        let class = String::new();
        let mut foam =
            Self { cursor, binary: false, big_endian: false, label_size: 4, scalar_size: 8, class };
        foam.expect(b"FoamFile")?;
        foam.expect(b"{")?;
        loop {
            let key = foam.token("an entry of the header")?;
            if key == b"}" {
                break;
            }
            let mut value = Vec::new();
            loop {
                match foam.token("`;`")? {
                    b";" => break,
                    word => value.push(show(word)),
                }
            }
            let value = value.join(" ");
            match key {
                b"format" if value == "binary" => foam.binary = true,
                b"format" if value != "ascii" => {
                    let message = format!("format `{value}`; expected ascii or binary");
                    return Err(foam.cursor.error(message));
                }
                b"class" => foam.class = value,
                b"arch" => {
                    foam.big_endian = value.contains("MSB");
                    foam.label_size = if value.contains("label=64") { 8 } else { 4 };
                    foam.scalar_size = if value.contains("scalar=32") { 4 } else { 8 };
                }
                _ => {}
            }
        }
        Ok(foam)
    }

    fn skip_comments(&mut self) {
        loop {
            self.cursor.skip_space();
            let rest = self.cursor.rest();
            if rest.starts_with(b"//") {
                self.cursor.next_line();
            } else if rest.starts_with(b"/*") {
                let end = rest.windows(2).position(|two| two == b"*/");
                let length = end.map_or(rest.len(), |end| end + 2);
                self.cursor.seek(self.cursor.offset() + length);
            } else {
                return;
            }
        }
    }

    /// The next token; brackets and semicolons are tokens of their own, a string is one.
    fn token(&mut self, what: &str) -> Result<&'a [u8]> {
        self.skip_comments();
        let start = self.cursor.offset();
        self.cursor.seek(start);
        let rest = self.cursor.rest();
        let special = |b: &u8| b.is_ascii_whitespace() || b"(){};".contains(b);
        let length = match rest.first() {
            None => {
                return Err(self.cursor.error(format!("the file ends where {what} was expected")));
            }
            Some(b'"') => rest[1..].iter().position(|&b| b == b'"').map_or(rest.len(), |n| n + 2),
            Some(first) if special(first) => 1,
            Some(_) => rest.iter().position(special).unwrap_or(rest.len()),
        };
        self.cursor.seek(start + length);
        Ok(&rest[..length])
    }

    /// An error at the token that ends here.
    fn error(&self, token: &[u8], message: String) -> InputError {
        self.cursor.error_at(self.cursor.offset() - token.len(), message)
    }

    fn expect(&mut self, expected: &[u8]) -> Result<()> {
        let token = self.token(&format!("`{}`", show(expected)))?;
        if token != expected {
            let message = format!("expected `{}`, found `{}`", show(expected), show(token));
            return Err(self.error(token, message));
        }
        Ok(())
    }

    fn integer(&mut self, what: &str, most: usize) -> Result<u32> {
        let token = self.token(what)?;
        let value = std::str::from_utf8(token).ok().and_then(|text| text.parse::<u32>().ok());
        value.filter(|&value| index(value) <= most).ok_or_else(|| {
            self.error(token, format!("`{}` is not {what} (0 to {most})", show(token)))
        })
    }

    /// The number of entries of a list, and its opening bracket; behind it binary numbers begin.
    fn list(&mut self, size: usize, what: &str) -> Result<usize> {
        let count = index(self.integer(&format!("the number of {what}"), limits::NODES)?);
        self.expect(b"(")?;
        if self.binary {
            check_room(&self.cursor, count, size, what)?;
        }
        Ok(count)
    }

    /// An integer of a list, which numbers something.
    fn label(&mut self, what: &str) -> Result<u32> {
        self.label_or_none(what)?.ok_or_else(|| self.cursor.error(format!("-1 is not {what}")))
    }

    /// An integer of a list; -1 is `None`.
    fn label_or_none(&mut self, what: &str) -> Result<Option<u32>> {
        if !self.binary {
            self.skip_comments();
            let rest = self.cursor.rest();
            let ends = |b: &u8| b.is_ascii_whitespace() || *b == b')';
            if rest.starts_with(b"-1") && rest.get(2).is_none_or(ends) {
                self.token(what)?;
                return Ok(None);
            }
            return self.integer(what, limits::NODES).map(Some);
        }
        let value = match (self.label_size, self.big_endian) {
            (4, false) => i64::from(i32::from_le_bytes(self.cursor.take(what)?)),
            (4, true) => i64::from(i32::from_be_bytes(self.cursor.take(what)?)),
            (_, false) => i64::from_le_bytes(self.cursor.take(what)?),
            (_, true) => i64::from_be_bytes(self.cursor.take(what)?),
        };
        if value == -1 {
            return Ok(None);
        }
        let label = u32::try_from(value).ok().filter(|&value| index(value) <= limits::NODES);
        label.map(Some).ok_or_else(|| {
            self.cursor.error(format!("{value} is not {what} (0 to {})", limits::NODES))
        })
    }

    fn scalar(&mut self) -> Result<f64> {
        let what = "a coordinate";
        if !self.binary {
            let token = self.token(what)?;
            let value = std::str::from_utf8(token).ok().and_then(|text| text.parse::<f64>().ok());
            return value.filter(|value| value.is_finite()).ok_or_else(|| {
                self.error(token, format!("`{}` is not a finite number", show(token)))
            });
        }
        let value = match (self.scalar_size, self.big_endian) {
            (4, false) => f64::from(f32::from_le_bytes(self.cursor.take(what)?)),
            (4, true) => f64::from(f32::from_be_bytes(self.cursor.take(what)?)),
            (_, false) => f64::from_le_bytes(self.cursor.take(what)?),
            (_, true) => f64::from_be_bytes(self.cursor.take(what)?),
        };
        match value.is_finite() {
            true => Ok(value),
            false => Err(self.cursor.error(format!("{value} is not finite"))),
        }
    }

    /// A list of integers.
    fn labels(&mut self, what: &str) -> Result<Vec<u32>> {
        let count = self.list(self.label_size, what)?;
        let mut labels = Vec::with_capacity(self.cursor.capacity(to_u64(count), 2));
        for _ in 0..count {
            labels.push(self.label(what)?);
        }
        self.expect(b")")?;
        Ok(labels)
    }
}

fn points(file: &str, bytes: &[u8]) -> Result<Vec<[f64; 3]>> {
    let mut foam = Foam::open(file, bytes)?;
    let count = foam.list(3 * foam.scalar_size, "points")?;
    let mut points = Vec::with_capacity(foam.cursor.capacity(to_u64(count), 6));
    for _ in 0..count {
        if !foam.binary {
            foam.expect(b"(")?;
        }
        points.push([foam.scalar()?, foam.scalar()?, foam.scalar()?]);
        if !foam.binary {
            foam.expect(b")")?;
        }
    }
    foam.expect(b")")?;
    Ok(points)
}

/// Faces as lists of nodes, or as one list of row starts and one of nodes (`faceCompactList`).
fn faces(file: &str, bytes: &[u8], node_count: usize) -> Result<Faces> {
    let mut foam = Foam::open(file, bytes)?;
    let mut faces = Faces { ends: Vec::new(), nodes: Vec::new() };
    let start = foam.cursor.offset();
    if foam.class == "faceCompactList" {
        let starts = foam.labels("face starts")?;
        faces.nodes = foam.labels("nodes of faces")?;
        let end = starts.last().map_or(0, |&end| index(end));
        if starts.first().is_some_and(|&first| first != 0)
            || end != faces.nodes.len()
            || !starts.is_sorted()
        {
            let message = format!("face starts do not ascend from 0 to {}", faces.nodes.len());
            return Err(foam.cursor.error_at(start, message));
        }
        faces.ends = starts.get(1..).unwrap_or(&[]).to_vec();
    } else if foam.binary {
        let message = format!("binary faces of class `{}`; expected faceCompactList", foam.class);
        return Err(foam.cursor.error_at(start, message));
    } else {
        let count = foam.list(0, "faces")?;
        for _ in 0..count {
            let own = foam.labels("nodes")?;
            if own.len() > limits::NODES - faces.nodes.len() {
                return Err(foam.cursor.error("more nodes of faces than 31 bits can count"));
            }
            faces.nodes.extend(own);
            faces.ends.push(to_u32(faces.nodes.len()));
        }
        foam.expect(b")")?;
    }
    if let Some(node) = faces.nodes.iter().find(|&&node| index(node) >= node_count) {
        let message = format!("node {node} of {node_count}; nodes count from 0");
        return Err(foam.cursor.error_at(start, message));
    }
    Ok(faces)
}

fn labels(file: &str, bytes: &[u8]) -> Result<Vec<u32>> {
    Foam::open(file, bytes)?.labels("cells")
}

/// The cells of the file `neighbour`. Early versions of OpenFOAM list -1 for each face of the boundary
/// behind them.
fn neighbours(file: &str, bytes: &[u8]) -> Result<Vec<u32>> {
    let mut foam = Foam::open(file, bytes)?;
    let count = foam.list(foam.label_size, "cells")?;
    let mut labels = Vec::with_capacity(foam.cursor.capacity(to_u64(count), 2));
    for number in 0..count {
        match foam.label_or_none("cells")? {
            Some(label) if labels.len() == number => labels.push(label),
            Some(_) => return Err(foam.cursor.error("a cell behind -1, which is the boundary")),
            None => {}
        }
    }
    foam.expect(b")")?;
    Ok(labels)
}

/// The types of the patches: those that join faces are refused or reported.
fn boundary(file: &str, bytes: &[u8], assembly: &mut Assembly, is_part: bool) -> Result<()> {
    let mut foam = Foam::open(file, bytes)?;
    foam.binary = false;
    let count = foam.list(0, "patches")?;
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..count {
        foam.token("the name of a patch")?;
        foam.expect(b"{")?;
        loop {
            let key = foam.token("an entry of the patch")?;
            if key == b"}" {
                break;
            }
            let value = foam.token("a value")?;
            if key == b"type" {
                if value.starts_with(b"processor") && !is_part {
                    return Err(foam
                        .error(value, "one part of a decomposed case".to_owned())
                        .help("give the folder of the case, which has all folders `processorN`"));
                }
                if !value.starts_with(b"processor") {
                    *types.entry(show(value)).or_default() += 1;
                }
            }
            let mut last = value;
            while last != b";" {
                last = foam.token("`;`")?;
            }
        }
    }
    foam.expect(b")")?;
    for (name, count) in types {
        let why = match name.starts_with("cyclic") {
            true => "periodic boundaries, which are not joined",
            false => "boundary data",
        };
        // Each part of a decomposed case has all patches of the case.
        let what = match is_part {
            true => format!("patches of type {name}"),
            false => format!("{count} patches of type {name}"),
        };
        assembly.add_unused(what, why);
    }
    Ok(())
}
