//! The form of a document is found by its first bytes.

use conset_ir::{At, Document, FileFormat, binary};

#[test]
fn first_bytes_determine_the_format() {
    let form = |text: &str| Document::sniff(text.as_bytes());
    assert_eq!(form("# note\n\n  conset set 1\n"), Some(FileFormat::Text));
    assert_eq!(form("\u{FEFF}conset set 1"), Some(FileFormat::Text));
    assert_eq!(form(" \n {\"format\": 1}"), Some(FileFormat::Json));
    assert_eq!(form("# a machine\nname = \"m\"\n"), Some(FileFormat::MachineFile));
    assert_eq!(form("[topology]\nkind = \"ring\"\n"), Some(FileFormat::MachineFile));
    assert_eq!(form("[[ link ]]\nfrom = 0\n"), Some(FileFormat::MachineFile));
    for array in ["[]", "[1, 2]", "[{\"format\": 1}]", "[\n  {}\n]", "[[0, 1]]", "[\"a\"]"] {
        assert_eq!(form(array), Some(FileFormat::Json), "{array}");
    }
    assert_eq!(form("conset = 1"), Some(FileFormat::MachineFile));
    assert_eq!(Document::sniff(&binary::MAGIC), Some(FileFormat::Binary));
    for other in ["", "#", "consets", "$MeshFormat\n4.1 0 8\n", "10 20 30"] {
        assert_eq!(form(other), None, "{other:?}");
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_position() {
    let error = Document::parse_any("f", b"conset set 1\nset \xFFa\n").unwrap_err();
    assert_eq!(error.at, At::Text { line: 2, column: 5, offset: 17 });
    assert_eq!(Document::parse_any("f", b"").unwrap_err().message, "the file is empty");
}
