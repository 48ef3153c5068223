//! Writes the seed corpus of each fuzz target: the valid sample files of the tests, and the fixtures.
//!
//! `cargo run --example seeds -- FOLDER` creates a folder for each target in `FOLDER`.

use std::fs;
use std::path::Path;

use conset_ir::{Document, Form, binary, json, text};

#[path = "../../crates/mesh/tests/common/mod.rs"]
mod common;

fn put(folder: &Path, target: &str, name: &str, bytes: &[u8]) {
    let folder = folder.join(target);
    fs::create_dir_all(&folder).expect("the folder can be made");
    fs::write(folder.join(name), bytes).expect("the seed can be written");
}

fn main() {
    let to = std::env::args().nth(1).expect("seeds FOLDER");
    let to = Path::new(&to);
    for sample in common::samples() {
        let target = format!("mesh_{}", sample.format.name().replace('-', "_"));
        put(to, &target, sample.name, &sample.bytes);
    }
    put(to, "partition", "three", b"\x03\x02" as &[u8]);
    put(to, "partition", "lines", b"\x04\x00\x30\n1\n0\n2\n");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    for folder in ["cases", "cases/reject", "compat/v1"] {
        for entry in fs::read_dir(root.join(folder)).expect("the fixtures are there") {
            let path = entry.expect("the fixtures can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() || name.ends_with(".expect") {
                continue;
            }
            let bytes = fs::read(&path).expect("the fixture can be read");
            document(to, &name, &bytes);
        }
    }
}

/// Writes a fixture unchanged, and in all other forms if it is valid.
fn document(to: &Path, name: &str, bytes: &[u8]) {
    put(to, "document_any", name, bytes);
    match Document::sniff(bytes) {
        Some(Form::Binary) => put(to, "document_binary", name, bytes),
        Some(Form::Json) => put(to, "document_json", name, bytes),
        Some(Form::MachineFile) => put(to, "machine_file", name, bytes),
        Some(Form::Text) | None => put(to, "document_text", name, bytes),
    }
    let Ok(document) = Document::parse_any(name, bytes) else { return };
    put(to, "document_text", &format!("{name}.cset"), text::write(&document).as_bytes());
    put(to, "document_binary", &format!("{name}.csb"), &binary::write(&document));
    if let Some(written) = json::write(&document) {
        put(to, "document_json", &format!("{name}.json"), written.as_bytes());
    }
}
