//! Formats by their names, and files with nothing in them.

use conset_mesh::{Format, read};

#[test]
fn formats_are_found_by_extension_and_by_name() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
        if let Some(extension) = format.extension() {
            assert_eq!(Format::from_file_name(&format!("a.b/c.{extension}")), Some(format));
        }
    }
    assert_eq!(Format::from_file_name("X.MSH"), Some(Format::Gmsh));
    for unknown in ["graph", "a.txt", "", "a."] {
        assert_eq!(Format::from_file_name(unknown), None, "{unknown:?}");
    }
}

#[test]
fn empty_files_are_rejected() {
    for format in Format::ALL {
        assert!(read(format, "f", b" \n\n").unwrap_err().message.contains("empty"));
    }
}
