//! Files: what is written is read back, and written again in the same bytes.

use conset::ir::{Document, binary, json, text};

/// Writes a value in every form, reads it, and writes the result again in every form.
///
/// # Panics
/// If a form is not read, or the bytes differ.
pub(crate) fn round_trips(document: &Document) {
    let written = Forms::of(document);
    let kind = document.kind();
    let texts = text::parse("written", &written.text);
    let binaries = binary::parse("written", &written.binary);
    let jsons = written.json.as_ref().map(|json| json::parse("written", json.as_bytes()));
    for (form, read) in [("text", Some(texts)), ("binary", Some(binaries)), ("JSON", jsons)] {
        let Some(read) = read else { continue };
        let read = read.unwrap_or_else(|error| panic!("{kind} written as {form}: {error}"));
        let again = Forms::of(&read);
        assert!(again.text == written.text, "{kind}: other text after reading {form}");
        assert!(again.binary == written.binary, "{kind}: other binary after reading {form}");
        assert!(again.json == written.json, "{kind}: other JSON after reading {form}");
    }
}

/// A value in every form that can represent it.
struct Forms {
    text: String,
    json: Option<String>,
    binary: Vec<u8>,
}

impl Forms {
    fn of(document: &Document) -> Self {
        Self {
            text: text::write(document),
            json: json::write(document),
            binary: binary::write(document),
        }
    }
}
