//! Formats that are not read: how they are recognised, and how to convert them.
//!
//! A file of such a format often has an extension of another one (`.msh` is used by Gmsh, Fluent and
//! GiD), or is a container that needs a library. The error then names the format instead of the first
//! byte that does not fit.

use super::detect::{contains, start_of};

/// A format that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForeignFormat {
    /// What the file is, as in `a Fluent mesh`.
    pub title: &'static str,
    /// What to do with it.
    pub help: &'static str,
}

const PARAVIEW: &str = "save it as .vtu, for example with ParaView (File > Save Data)";
const MESHIO: &str = "convert it to .vtu or .msh, for example with `meshio convert IN OUT.vtu`";
const NETCDF: &str = "convert a NetCDF-4 file with `nccopy -k cdf5 IN OUT` or `ncks -5 IN OUT`";
const DECOMPRESS: &str = "decompress it; of compressed files, conset reads those of gzip";

/// First bytes, title and help.
const STARTS: [(&[u8], &str, &str); 15] = [
    (b"\xc0\xa8\xa3\xa9ADF Database", "a CGNS file (ADF), which needs a library", PARAVIEW),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file", "fetch it: `git lfs pull`"),
    (b"PK\x03\x04", "a ZIP archive", DECOMPRESS),
    (b"BZh", "compressed with bzip2", DECOMPRESS),
    (b"\xfd7zXZ", "compressed with xz", DECOMPRESS),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", DECOMPRESS),
    (b"\x07", "a binary AVS UCD file", "save it as ASCII UCD, or as .vtu"),
    (b"MeshVersionFormatted", "a Medit mesh", MESHIO),
    (b"mesh3d", "a Netgen mesh", "export it from Netgen as Gmsh2"),
    (b"/PREP7", "an Ansys input", MESHIO),
    (b"solid ", "an STL surface, whose triangles share no nodes", MESHIO),
    (b"ply\n", "a PLY surface", MESHIO),
    (b"<Xdmf", "an XDMF file", MESHIO),
    (b"<dolfin", "a DOLFIN XML mesh", MESHIO),
    (b"-1\n", "a universal file (UNV)", "convert it to .msh, for example with Gmsh"),
];

/// The format of bytes that are not read, if it is known; they may be compressed with gzip.
///
/// ```
/// use conset_mesh::read::foreign_format;
///
/// let fluent = foreign_format(b"(0 \"GAMBIT to Fluent File\")\n(2 3)\n").unwrap();
/// assert_eq!(fluent.title, "a Fluent mesh");
/// assert_eq!(foreign_format(b"$MeshFormat\n4.1 0 8\n"), None);
/// ```
pub fn foreign_format(bytes: &[u8]) -> Option<ForeignFormat> {
    let bytes = start_of(bytes);
    let text = bytes.trim_ascii_start();
    let found = |title, help| Some(ForeignFormat { title, help });
    if bytes.starts_with(b"\x89HDF\r\n\x1a\n") {
        // The name of a node that each CGNS file has; libraries write it near the start.
        return match contains(&bytes, b"CGNSLibraryVersion", 1 << 20) {
            true => found("a CGNS file (HDF5), which needs a library", PARAVIEW),
            false => {
                found("an HDF5 file (NetCDF-4 and MED are HDF5), which needs a library", NETCDF)
            }
        };
    }
    if let Some(&(_, title, help)) =
        STARTS.iter().find(|(start, ..)| bytes.starts_with(start) || text.starts_with(start))
    {
        return found(title, help);
    }
    let near = 4096;
    match () {
        () if is_fluent(text) => found(
            "a Fluent mesh",
            "convert it with OpenFOAM (`fluentMeshToFoam`, then give the folder of the case)",
        ),
        () if is_gid(text) => found("a GiD mesh", MESHIO),
        () if contains(text, b"FoamFile", near) => found(
            "one file of an OpenFOAM case",
            "give the folder of the case, or its folder polyMesh",
        ),
        () if contains(text, b"BEGIN BULK", near) => found("a Nastran input", MESHIO),
        () => None,
    }
}

/// A list that begins with the number of a section: `(0 "comment")`.
fn is_fluent(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"(") else { return false };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=3).contains(&digits) && rest.get(digits).is_some_and(u8::is_ascii_whitespace)
}

/// `MESH dimension 2 ...`, possibly with a name in between.
fn is_gid(text: &[u8]) -> bool {
    let line = text.split(|&b| b == b'\n').next().unwrap_or(text);
    let upper = line[..line.len().min(200)].to_ascii_uppercase();
    upper.starts_with(b"MESH ") && contains(&upper, b"DIMENSION", upper.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn formats_are_named() {
        for (bytes, title) in [
            (&b"\x89HDF\r\n\x1a\n\0\0CGNSLibraryVersion"[..], "a CGNS file (HDF5)"),
            (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
            (b"\xc0\xa8\xa3\xa9ADF Database Version B02012>", "a CGNS file (ADF)"),
            (b"  (2 3)\n", "a Fluent mesh"),
            (b"Mesh \"a\" dimension 3 Elemtype Tetrahedra Nnode 4\n", "a GiD mesh"),
            (b"MeshVersionFormatted 2\nDimension 3\n", "a Medit mesh"),
            (b"/*---*\\\n*/\nFoamFile\n{\n", "one file of an OpenFOAM case"),
            (b"SOL 101\nCEND\nBEGIN BULK\n", "a Nastran input"),
            (b"    -1\n  2411\n", "a universal file"),
            (b"\x07\0\0\x16", "a binary AVS UCD file"),
            (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        ] {
            let found = foreign_format(bytes).unwrap();
            assert!(found.title.starts_with(title), "{}", found.title);
        }
        for format in [&b""[..], b"7434 1\n1 2 3\n", b"** a\n*NODE\n", b"(", b"-1 2\n", b"CDF\x01"]
        {
            assert_eq!(foreign_format(format), None, "{format:?}");
        }
        assert_eq!(Format::detect("a.msh", b"(0 \"grid\")\n"), Some(Format::Gmsh), "by its name");
    }
}
