//! The functions of the fuzz targets, for any bytes.
//!
//! A reader may accept or reject its input. It must not panic, hang, or allocate memory for a count
//! that a file only declares (libFuzzer's limits detect the last two). Accepted input must pass the
//! next steps: documents are written in every form, read again and compared; meshes are converted to
//! connection sets; schedules and images are passed to the checker, which may reject them. The target
//! `program` generates a valid machine and a valid program from the bytes, so every word must be
//! delivered.
//!
//! The targets of `fuzz/` call [`TARGETS`] with the fuzzer's bytes; `tests/all/corpus.rs` calls them in every test run
//! with the inputs that the fuzzer has collected, and with changed ones.

use std::sync::Arc;

use conset::fabric::FaultPlan;
use conset::ir::convert::to_u64;
use conset::ir::{Document, binary, json, machine_file, text};
use conset_mesh::partition::{read_file, stated};
use conset_mesh::{Format, Source, halo, read, triangles};

/// A fuzz target: its name, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets, by name.
pub const TARGETS: [Target; 22] = [
    ("document_any", any),
    ("document_binary", binary),
    ("document_json", json),
    ("document_text", text),
    ("fault_plan", fault_plan),
    ("machine_file", machine_file),
    ("mesh_abaqus", |bytes| mesh(Format::Abaqus, bytes)),
    ("mesh_exodus", |bytes| mesh(Format::Exodus, bytes)),
    ("mesh_gmsh", |bytes| mesh(Format::Gmsh, bytes)),
    ("mesh_graph_connections", |bytes| mesh(Format::GraphConnections, bytes)),
    ("mesh_matrix_market", |bytes| mesh(Format::MatrixMarket, bytes)),
    ("mesh_metis_graph", |bytes| mesh(Format::MetisGraph, bytes)),
    ("mesh_metis_mesh", |bytes| mesh(Format::MetisMesh, bytes)),
    ("mesh_mfem", |bytes| mesh(Format::Mfem, bytes)),
    ("mesh_spark98", |bytes| mesh(Format::Spark98, bytes)),
    ("mesh_su2", |bytes| mesh(Format::Su2, bytes)),
    ("mesh_tetgen", |bytes| mesh(Format::Tetgen, bytes)),
    ("mesh_ucd", |bytes| mesh(Format::Ucd, bytes)),
    ("mesh_vtk_legacy", |bytes| mesh(Format::VtkLegacy, bytes)),
    ("mesh_vtu", |bytes| mesh(Format::Vtu, bytes)),
    ("partition", partition),
    ("program", crate::soak::of_bytes),
];

/// The function of a target.
///
/// # Panics
/// If there is no such target.
pub fn target(name: &str) -> fn(&[u8]) {
    let row = TARGETS.iter().find(|target| target.0 == name);
    row.unwrap_or_else(|| panic!("no fuzz target `{name}`")).1
}

/// Reads a mesh file and computes the exchange of its own partition and of a partition into two
/// blocks.
fn mesh(format: Format, bytes: &[u8]) {
    let Ok(source) = read(format, "fuzz", bytes) else { return };
    if let Source::Graph(graph) = &source {
        let _ = triangles::from_graph(graph);
    }
    let items = conset_mesh::partition::item_count(&source);
    let halves = (0..items).map(|item| u32::from(item >= items / 2)).collect();
    let blocks = conset_mesh::Partition::new(2, halves).ok();
    for partition in [stated(&source), blocks].into_iter().flatten() {
        let Ok(halo) = halo(&source, &partition, "fuzz") else { continue };
        assert_eq!(halo.set.connections().len(), halo.set.len());
    }
}

/// Reads a document in text form.
fn text(bytes: &[u8]) {
    let Ok(file) = str::from_utf8(bytes) else { return };
    if let Ok(document) = text::parse("fuzz", file) {
        round_trip(&document);
    }
}

/// Reads a document in JSON form.
fn json(bytes: &[u8]) {
    if let Ok(document) = json::parse("fuzz", bytes) {
        round_trip(&document);
    }
}

/// Reads a document in binary form: unchanged, and with corrected length and checksum, because the
/// container rejects almost all changes otherwise.
fn binary(bytes: &[u8]) {
    if let Ok(document) = binary::parse("fuzz", bytes) {
        round_trip(&document);
    }
    let Some((header, rest)) = bytes.split_at_checked(20) else { return };
    let payload = &rest[..rest.len().saturating_sub(4)];
    let mut file = binary::MAGIC.to_vec();
    file.extend_from_slice(&header[8..12]);
    file.extend_from_slice(&to_u64(payload.len()).to_le_bytes());
    file.extend_from_slice(payload);
    let checksum = crc32fast::hash(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    if let Ok(document) = binary::parse("fuzz", &file) {
        round_trip(&document);
    }
}

/// Reads a document of any form.
fn any(bytes: &[u8]) {
    if let Ok(document) = Document::parse_any("fuzz", bytes) {
        round_trip(&document);
    }
}

/// Reads a machine file, writes it and reads it again.
fn machine_file(bytes: &[u8]) {
    let Ok(file) = str::from_utf8(bytes) else { return };
    let Ok(machine) = machine_file::parse("fuzz", file) else { return };
    if machine.cell_count() > MAX_CELLS {
        return;
    }
    let again = machine_file::parse("fuzz", &machine_file::write(&machine));
    assert_eq!(again.as_ref(), Ok(&machine));
    round_trip(&Document::Machine(Arc::new(machine)));
}

/// Reads a fault plan, prints it and reads it again.
fn fault_plan(bytes: &[u8]) {
    let Ok(file) = str::from_utf8(bytes) else { return };
    let Ok(plan) = file.parse::<FaultPlan>() else { return };
    assert_eq!(plan.to_string().parse().as_ref(), Ok(&plan), "{plan}");
}

/// Reads a partition file.
fn partition(bytes: &[u8]) {
    let Some((&[items, parts], file)) = bytes.split_first_chunk() else { return };
    let known = (parts > 0).then_some(usize::from(parts));
    let Ok(partition) = read_file("fuzz", file, usize::from(items), known) else { return };
    assert_eq!(partition.part_of().len(), usize::from(items));
    assert_eq!(partition.sizes().iter().sum::<usize>(), usize::from(items));
}

/// Documents with more cells are only read: one line of text can declare a million cells, and the
/// further checks would take all of the fuzzer's time.
const MAX_CELLS: usize = 1 << 12;

/// Writes the document in every form that supports it, reads it again, and calls the checker.
fn round_trip(document: &Document) {
    if document.machine().is_some_and(|machine| machine.cell_count() > MAX_CELLS) {
        return;
    }
    let written = binary::write(document);
    assert_eq!(binary::parse("again", &written).as_ref(), Ok(document));
    let written = text::write(document);
    assert_eq!(text::parse("again", &written).as_ref(), Ok(document), "{written}");
    if let Some(written) = json::write(document) {
        assert_eq!(json::parse("again", written.as_bytes()).as_ref(), Ok(document), "{written}");
    }
    match document {
        Document::Schedule(schedule) => drop(conset::verify::check_schedule(schedule)),
        Document::Image(image) => {
            if conset::verify::check_image(image).is_ok() {
                conset::verify::lift(image).expect("an accepted image can be lifted");
            }
        }
        Document::Steps(schedule) => drop(conset::verify::check_step_schedule(schedule)),
        Document::Timetable(timetable) => drop(conset::verify::check_timetable(timetable)),
        Document::Routing(routing) => drop(conset::verify::routing(routing)),
        Document::Machine(_) | Document::Program { .. } => {}
    }
}
