//! The format of a file, found by its content.
//!
//! Formats that name themselves in their first bytes are recognised there. The others begin with
//! numbers (METIS, Spark98, TetGen) and need the extension of the file's name.

use std::borrow::Cow;

use super::{Format, gzip};

/// Bytes of a compressed file that are looked at.
const START: u64 = 1 << 16;

/// Extensions beside [`Format::extension`].
pub(super) fn other_extension(extension: &str) -> Option<Format> {
    let exodus = ["e", "ex2", "exii", "g", "gen"];
    exodus.iter().any(|e| e.eq_ignore_ascii_case(extension)).then_some(Format::Exodus)
}

/// The bytes, or the first of those that they decompress to.
pub(super) fn start_of(bytes: &[u8]) -> Cow<'_, [u8]> {
    match gzip::is_gzip(bytes) {
        true => Cow::Owned(gzip::start(bytes, START)),
        false => Cow::Borrowed(bytes),
    }
}

/// The format that the bytes show.
pub(super) fn from_content(bytes: &[u8]) -> Option<Format> {
    let bytes = &*start_of(bytes);
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = bytes.trim_ascii_start();
    let starts = |start: &[u8]| text.starts_with(start);
    match () {
        () if bytes.starts_with(b"CDF") || bytes.starts_with(b"\x89HDF") => Some(Format::Exodus),
        () if starts(b"$MeshFormat") || starts(b"$NOD") || starts(b"$Comments") => {
            Some(Format::Gmsh)
        }
        () if starts(b"# vtk DataFile") => Some(Format::VtkLegacy),
        () if starts(b"MFEM ") => Some(Format::Mfem),
        () if starts(b"%%MatrixMarket") => Some(Format::MatrixMarket),
        () if starts(b"<VTKFile") => Some(Format::Vtu),
        () if starts(b"<?xml") => contains(text, b"<VTKFile", 4096).then_some(Format::Vtu),
        () if is_abaqus(text) => Some(Format::Abaqus),
        () if is_su2(text) => Some(Format::Su2),
        () if is_ucd(text) => Some(Format::Ucd),
        () => None,
    }
}

/// Whether `piece` is among the first `most` bytes.
pub(super) fn contains(text: &[u8], piece: &[u8], most: usize) -> bool {
    text[..text.len().min(most)].windows(piece.len()).any(|window| window == piece)
}

/// The first lines that are not blank and do not begin with `comment`.
fn lines<'a>(text: &'a [u8], comment: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(move |line| !line.is_empty() && !line.starts_with(comment))
}

/// A keyword: `*` and a letter.
fn is_abaqus(text: &[u8]) -> bool {
    lines(text, b"**")
        .next()
        .is_some_and(|line| line[0] == b'*' && line.get(1).is_some_and(u8::is_ascii_alphabetic))
}

fn is_su2(text: &[u8]) -> bool {
    lines(text, b"%").next().is_some_and(|line| {
        let key = line.split(|&b| b == b'=').next().unwrap_or(line).trim_ascii();
        line.contains(&b'=') && [&b"NDIME"[..], b"NZONE", b"IZONE"].contains(&key)
    })
}

/// A line of five integers, and one of an id and three coordinates; no other format has these.
fn is_ucd(text: &[u8]) -> bool {
    let mut lines = lines(text, b"#");
    let words = |line: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        text.split_ascii_whitespace().map(str::to_owned).collect()
    };
    let (Some(first), Some(second)) = (lines.next().map(words), lines.next().map(words)) else {
        return false;
    };
    first.len() == 5
        && first.iter().all(|word| word.parse::<u64>().is_ok())
        && second.len() == 4
        && second[0].parse::<u64>().is_ok()
        && second[1..].iter().all(|word| word.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_format() {
        for (text, format) in [
            ("$MeshFormat\n2.2 0 8\n", Some(Format::Gmsh)),
            ("$NOD\n1\n", Some(Format::Gmsh)),
            ("# vtk DataFile Version 3.0\n", Some(Format::VtkLegacy)),
            ("MFEM mesh v1.0\n", Some(Format::Mfem)),
            ("<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\">", Some(Format::Vtu)),
            ("<?xml version=\"1.0\"?>\n<svg/>", None),
            ("** comment\n*HEADING\n", Some(Format::Abaqus)),
            ("** comment only\n", None),
            ("% comment\nNDIME= 2\n", Some(Format::Su2)),
            ("# ucd\n4 2 0 0 0\n1 0 0 0.5\n", Some(Format::Ucd)),
            ("%graph\n4 3\n2\n", None),
            ("4 2\n", None),
            ("", None),
        ] {
            assert_eq!(from_content(text.as_bytes()), format, "{text}");
        }
        assert_eq!(from_content(b"CDF\x02"), Some(Format::Exodus));
        assert_eq!(Format::from_file_name("a.E"), Some(Format::Exodus));
        assert_eq!(Format::from_file_name("a.msh.gz"), Some(Format::Gmsh));
    }
}
