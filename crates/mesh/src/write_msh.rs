//! Writer of Gmsh `.msh` files, so that other programs can read generated meshes.
//!
//! Versions 2.2 and 4.1, as text and as binary (little-endian, as declared in the file). Nodes and
//! elements are numbered from 1; nodes have the mesh's own node ids if it has any. All of them belong
//! to one geometric entity with tag 1 of the mesh's dimension; there are no physical groups.
//! Coordinates are written with enough digits to read back the same number.
//!
//! The parts of a mesh are not written.

use std::io::Write;

use conset_ir::ShapeError;
use conset_ir::convert::{index, to_u64};

use crate::model::Mesh;

/// The version and encoding of a `.msh` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MshFormat {
    /// Version 4.1, text.
    V41Text,
    /// Version 4.1, binary.
    V41Binary,
    /// Version 2.2, text; the version that most programs support.
    V22Text,
    /// Version 2.2, binary.
    V22Binary,
}

/// The bytes of the file.
///
/// # Errors
/// A mesh without coordinates, an element whose dimension and number of nodes match no element type
/// of the format, nodes, elements or node ids above 2^31 - 1 in version 2.2.
pub fn write(mesh: &Mesh, form: MshFormat) -> Result<Vec<u8>, ShapeError> {
    if mesh.coordinates().len() != mesh.node_count() {
        return Err(ShapeError::new("coordinates", "none; a .msh file requires coordinates"));
    }
    let runs = runs(mesh)?;
    let old = matches!(form, MshFormat::V22Text | MshFormat::V22Binary);
    if old && (0..mesh.node_count()).any(|node| i32::try_from(node_id(mesh, node)).is_err()) {
        return Err(ShapeError::new("node_ids", "too large for version 2.2; use version 4.1"));
    }
    let mut out = MshWriter {
        bytes: Vec::new(),
        binary: form == MshFormat::V41Binary || form == MshFormat::V22Binary,
    };
    let (version, kind) = (if old { "2.2" } else { "4.1" }, u8::from(out.binary));
    out.text(&format!("$MeshFormat\n{version} {kind} 8\n"));
    if out.binary {
        // Readers detect the byte order by this number.
        out.bytes.extend(1i32.to_le_bytes());
        out.text("\n");
    }
    out.text("$EndMeshFormat\n$Nodes\n");
    if old {
        nodes_22(mesh, &mut out);
    } else {
        nodes_41(mesh, &mut out);
    }
    out.end_section("$EndNodes\n$Elements\n");
    if old {
        elements_22(mesh, &runs, &mut out);
    } else {
        elements_41(mesh, &runs, &mut out);
    }
    out.end_section("$EndElements\n");
    Ok(out.bytes)
}

/// Consecutive elements of the same type.
struct ElementRun {
    /// Gmsh's number of the type.
    kind: i32,
    elements: std::ops::Range<usize>,
}

fn runs(mesh: &Mesh) -> Result<Vec<ElementRun>, ShapeError> {
    let mut runs: Vec<ElementRun> = Vec::new();
    for (e, element) in mesh.elements().enumerate() {
        let kind = element_type(mesh.dimension(), element.len()).ok_or_else(|| {
            ShapeError::new(
                format!("elements[{e}]"),
                format!(
                    "no .msh element type has {} nodes in {} dimensions",
                    element.len(),
                    mesh.dimension()
                ),
            )
        })?;
        match runs.last_mut() {
            Some(run) if run.kind == kind => run.elements.end = e + 1,
            _ => runs.push(ElementRun { kind, elements: e..e + 1 }),
        }
    }
    Ok(runs)
}

/// Gmsh's number of an element type (Gmsh reference manual, MSH file format).
fn element_type(dimension: u8, nodes: usize) -> Option<i32> {
    Some(match (dimension, nodes) {
        (1, 2) => 1,
        (2, 3) => 2,
        (2, 4) => 3,
        (3, 4) => 4,
        (3, 8) => 5,
        (3, 6) => 6,
        (3, 5) => 7,
        (1, 3) => 8,
        (2, 6) => 9,
        (2, 9) => 10,
        (3, 10) => 11,
        (3, 27) => 12,
        (3, 18) => 13,
        (3, 14) => 14,
        (0, 1) => 15,
        (2, 8) => 16,
        (3, 20) => 17,
        (3, 15) => 18,
        (3, 13) => 19,
        _ => return None,
    })
}

/// The id of a node in the file.
fn node_id(mesh: &Mesh, node: usize) -> u64 {
    mesh.node_ids().get(node).copied().unwrap_or_else(|| to_u64(node) + 1)
}

fn nodes_41(mesh: &Mesh, out: &mut MshWriter) {
    let count = mesh.node_count();
    let ids = || (0..count).map(|node| node_id(mesh, node));
    let (least, most) = (ids().min().unwrap_or(0), ids().max().unwrap_or(0));
    out.row(|row| {
        for number in [u64::from(count > 0), to_u64(count), least, most] {
            row.size(number);
        }
    });
    if count == 0 {
        return;
    }
    out.row(|row| {
        for number in [i32::from(mesh.dimension()), 1, 0] {
            row.int(number);
        }
        row.size(to_u64(count));
    });
    for id in ids() {
        out.row(|row| row.size(id));
    }
    for point in mesh.coordinates() {
        out.row(|row| point.iter().for_each(|&x| row.real(x)));
    }
}

fn elements_41(mesh: &Mesh, runs: &[ElementRun], out: &mut MshWriter) {
    let count = to_u64(mesh.element_count());
    out.row(|row| {
        for number in [to_u64(runs.len()), count, u64::from(count > 0), count] {
            row.size(number);
        }
    });
    for run in runs {
        out.row(|row| {
            for number in [i32::from(mesh.dimension()), 1, run.kind] {
                row.int(number);
            }
            row.size(to_u64(run.elements.len()));
        });
        for e in run.elements.clone() {
            out.row(|row| {
                row.size(to_u64(e) + 1);
                mesh.element(e).iter().for_each(|&node| row.size(node_id(mesh, index(node))));
            });
        }
    }
}

fn nodes_22(mesh: &Mesh, out: &mut MshWriter) {
    out.text(&format!("{}\n", mesh.node_count()));
    for (node, point) in mesh.coordinates().iter().enumerate() {
        out.row(|row| {
            row.int(int(node_id(mesh, node)));
            point.iter().for_each(|&x| row.real(x));
        });
    }
}

fn elements_22(mesh: &Mesh, runs: &[ElementRun], out: &mut MshWriter) {
    // Each element has two tags: the physical group, which Gmsh requires to be positive, and the
    // entity.
    const TAGS: [i32; 3] = [2, 1, 1];
    out.text(&format!("{}\n", mesh.element_count()));
    for run in runs {
        if out.binary {
            // A header gives the type and the number of tags of all elements of the run.
            for number in [run.kind, int(run.elements.len()), TAGS[0]] {
                out.int(number);
            }
        }
        for e in run.elements.clone() {
            out.row(|row| {
                row.int(int(e + 1));
                if !row.binary {
                    row.int(run.kind);
                    row.int(TAGS[0]);
                }
                TAGS[1..].iter().for_each(|&tag| row.int(tag));
                mesh.element(e).iter().for_each(|&node| row.int(int(node_id(mesh, index(node)))));
            });
        }
    }
}

/// A number as an `int`. [`write()`] has checked that it fits.
fn int<N: TryInto<i32>>(number: N) -> i32 {
    number.try_into().unwrap_or_else(|_| unreachable!("checked before"))
}

/// Writes numbers, as rows of text or as binary.
struct MshWriter {
    bytes: Vec<u8>,
    binary: bool,
}

impl MshWriter {
    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Writes the numbers of one line; binary files have no lines.
    fn row(&mut self, numbers: impl FnOnce(&mut Self)) {
        numbers(self);
        if !self.binary {
            // Replaces the space after the last number.
            self.bytes.pop();
            self.text("\n");
        }
    }

    fn end_section(&mut self, text: &str) {
        if self.binary {
            self.text("\n");
        }
        self.text(text);
    }

    fn number(&mut self, text: &dyn std::fmt::Display, bytes: &[u8]) {
        if self.binary {
            self.bytes.extend_from_slice(bytes);
        } else {
            write!(self.bytes, "{text} ").expect("a vector takes everything");
        }
    }

    fn int(&mut self, number: i32) {
        self.number(&number, &number.to_le_bytes());
    }

    fn size(&mut self, number: u64) {
        self.number(&number, &number.to_le_bytes());
    }

    fn real(&mut self, number: f64) {
        self.number(&number, &number.to_le_bytes());
    }
}
