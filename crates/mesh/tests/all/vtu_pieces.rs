//! VTU files with LZ4 and LZMA, and of several pieces.

use conset_mesh::read::{ReadOptions, Reading, pvtu_pieces, read_pvtu, read_with};
use conset_mesh::{Format, Source};

fn read(text: &str) -> Result<Reading, String> {
    read_with(Format::Vtu, "f.vtu", text.as_bytes(), &ReadOptions::default())
        .map_err(|error| error.to_string())
}

/// One triangle: points, connectivity, offsets and types. The blocks of LZ4 have literals only, those
/// of LZMA were written by liblzma 5.4.
const PACKED: [(&str, [&str; 4]); 2] = [
    (
        "vtkLZ4DataCompressor",
        [
            "AQAAACQAAAAAAAAAJgAAAA==8BUAAAAAAAAAAAAAAAAAAIA/AAAAAAAAAAAAAAAAAACAPwAAAAA=",
            "AQAAAAwAAAAAAAAADQAAAA==wAAAAAABAAAAAgAAAA==",
            "AQAAAAQAAAAAAAAABQAAAA==QAMAAAA=",
            "AQAAAAEAAAAAAAAAAgAAAA==EAU=",
        ],
    ),
    (
        "vtkLZMADataCompressor",
        [
            "AQAAACQAAAAAAAAARAAAAA==/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj4AAjAAtdAABszlC68jL3hAAAAACPcKOIAAEjJJsmLKKQQpkNAQAAAAABWVo=",
            "AQAAAAwAAAAAAAAARAAAAA==/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj4AALAApdAABofr8Kgq0VeqAAAAB6DnYdAAEiDCC/go6QQpkNAQAAAAABWVo=",
            "AQAAAAQAAAAAAAAAOAAAAA==/Td6WFoAAAFpIt42AgAhARYAAAB0L+WjAQADAwAAAADycPEzAAEYBGvp8KWQQpkNAQAAAAABWVo=",
            "AQAAAAEAAAAAAAAAOAAAAA==/Td6WFoAAAFpIt42AgAhARYAAAB0L+WjAQAABQAAAAACG2iiAAEVAaljNGCQQpkNAQAAAAABWVo=",
        ],
    ),
];

fn packed(compressor: &str, arrays: [&str; 4]) -> String {
    let [points, nodes, offsets, types] = arrays;
    let array = |kind: &str, name: &str, more: &str, content: &str| {
        format!(
            "<DataArray type='{kind}' Name='{name}'{more} format='binary'>{content}</DataArray>"
        )
    };
    format!(
        "<VTKFile type='UnstructuredGrid' compressor='{compressor}'><UnstructuredGrid>\
         <Piece NumberOfPoints='3' NumberOfCells='1'><Points>{}</Points><Cells>{}{}{}</Cells></Piece>\
         </UnstructuredGrid></VTKFile>",
        array("Float32", "Points", " NumberOfComponents='3'", points),
        array("Int32", "connectivity", "", nodes),
        array("Int32", "offsets", "", offsets),
        array("UInt8", "types", "", types),
    )
}

#[test]
fn lz4_and_lzma_are_decompressed() {
    for (compressor, arrays) in PACKED {
        let Source::Mesh(mesh) = read(&packed(compressor, arrays)).unwrap().source else {
            panic!()
        };
        assert_eq!((mesh.element(0), mesh.coordinates()[2]), (&[0, 1, 2][..], [0., 1., 0.]));
    }
}

#[test]
fn damaged_blocks_are_refused() {
    for (compressor, arrays) in PACKED {
        for (array, content) in arrays.iter().enumerate() {
            // Each character of the data behind the header, replaced by another.
            for at in 24..content.len() {
                let mut wrong = content.as_bytes().to_vec();
                wrong[at] = if wrong[at] == b'Q' { b'/' } else { b'Q' };
                let mut damaged = arrays;
                let wrong = String::from_utf8(wrong).unwrap();
                damaged[array] = &wrong;
                // LZ4 has no checksum, so some of these are other meshes; none may panic.
                drop(read(&packed(compressor, damaged)));
            }
            let mut short = arrays;
            short[array] = &content[..content.len() - 4];
            assert!(read(&packed(compressor, short)).is_err());
        }
    }
    // A block of 2 bytes that declares 16 MB, as do the counts.
    let header = "AQAAAAAAAAEAAAAAAgAAAA==EAU=";
    let mut large = PACKED[0].1;
    large[2] = header;
    let large = packed(PACKED[0].0, large)
        .replace("NumberOfCells='1'", "NumberOfCells='16777216'")
        .replace("type='Int32' Name='offsets'", "type='UInt8' Name='offsets'");
    let error = read(&large).err().unwrap();
    assert!(error.contains("shorter than the header declares"), "{error}");
}

/// Pieces of one triangle each, with their points and global ids.
fn pieces(all: &[(&str, &str)]) -> String {
    let mut text = "<VTKFile type='UnstructuredGrid'><UnstructuredGrid>".to_owned();
    for (points, ids) in all {
        let data = match ids.is_empty() {
            true => String::new(),
            false => format!(
                "<PointData GlobalIds='g'><DataArray type='Int64' Name='g'>{ids}</DataArray></PointData>"
            ),
        };
        text += &format!(
            "<Piece NumberOfPoints='3' NumberOfCells='1'>{data}<Points><DataArray type='Float32' \
             NumberOfComponents='3'>{points}</DataArray></Points><Cells>\
             <DataArray type='Int32' Name='connectivity'>0 1 2</DataArray>\
             <DataArray type='Int32' Name='offsets'>3</DataArray>\
             <DataArray type='UInt8' Name='types'>5</DataArray></Cells></Piece>"
        );
    }
    text + "<Piece NumberOfPoints='0' NumberOfCells='0'/></UnstructuredGrid></VTKFile>"
}

#[test]
fn points_on_the_border_of_pieces_are_one_node() {
    let (one, two) = ("0 0 0 1 0 0 0 1 0", "1 1 0 0 1 -0 1 0 0");
    for ids in [["", ""], ["7 8 9", ""], ["7 8 9", "20 9 8"]] {
        let reading = read(&pieces(&[(one, ids[0]), (two, ids[1])])).unwrap();
        let Source::Mesh(mesh) = reading.source else { panic!() };
        assert_eq!((mesh.node_count(), mesh.element(1)), (4, &[3, 2, 1][..]));
        assert_eq!(mesh.node_ids().is_empty(), ids[1].is_empty());
        assert_eq!(reading.inventory.unwrap().groups.len(), 2);
    }
}

#[test]
fn points_that_may_be_either_side_of_a_crack_are_refused() {
    let crack = "0 0 0 0 0 0 0 1 0";
    let apart = "5 0 0 6 0 0 5 1 0";
    let meets = "0 0 0 6 0 0 5 1 0";
    let nodes = |all: &[(&str, &str)]| match read(&pieces(all)).unwrap().source {
        Source::Mesh(mesh) => mesh.node_count(),
        _ => panic!(),
    };
    assert_eq!(nodes(&[(crack, ""), (apart, "")]), 6);
    assert_eq!(nodes(&[(crack, "1 2 3"), (meets, "2 4 5")]), 5);
    for both in [[(crack, ""), (meets, "")], [(meets, ""), (crack, "")]] {
        let error = read(&pieces(&both)).err().unwrap();
        assert!(error.contains("several points at (0, 0, 0)"), "{error}");
    }
    let error = read(&pieces(&[(crack, "1 1 3"), (meets, "2 4 5")])).err().unwrap();
    assert!(error.contains("global id 1 twice"), "{error}");
    let error = read(&pieces(&[(crack, "1 2 3"), (apart, "3 4 5")])).err().unwrap();
    assert!(error.contains("node 3 is elsewhere"), "{error}");
}

/// A file of triangles; `ghosts` is the name of an array and its values.
fn part(points: &str, triangles: &[[u32; 3]], ghosts: Option<(&str, &str)>) -> String {
    let list = |numbers: Vec<String>| numbers.join(" ");
    let nodes = list(triangles.iter().flatten().map(u32::to_string).collect());
    let offsets = list((1..=triangles.len()).map(|n| (3 * n).to_string()).collect());
    let array = |kind: &str, name: &str, content: &str| {
        format!("<DataArray type='{kind}' Name='{name}' format='ascii'>{content}</DataArray>")
    };
    let data = ghosts.map_or(String::new(), |(name, flags)| array("UInt8", name, flags));
    format!(
        "<VTKFile type='UnstructuredGrid'><UnstructuredGrid><Piece NumberOfPoints='{}' \
         NumberOfCells='{}'><CellData>{data}</CellData><Points><DataArray type='Float64' \
         NumberOfComponents='3' format='ascii'>{points}</DataArray></Points><Cells>{}{}{}</Cells>\
         </Piece></UnstructuredGrid></VTKFile>",
        points.split_whitespace().count() / 3,
        triangles.len(),
        array("Int32", "connectivity", &nodes),
        array("Int32", "offsets", &offsets),
        array("UInt8", "types", &"5 ".repeat(triangles.len()))
    )
}

const SQUARE: &str = "0 0 0 1 0 0 0 1 0 1 1 0";

fn read_parts(parts: &[String]) -> Result<Reading, String> {
    let files: Vec<(&str, &[u8])> = parts.iter().map(|text| ("p.vtu", text.as_bytes())).collect();
    read_pvtu("f.pvtu", &files, &ReadOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn files_are_parts_and_ghost_cells_are_left_out() {
    for name in ["vtkGhostType", "vtkGhostLevels"] {
        let both = [[0, 1, 2], [1, 3, 2]];
        let reading = read_parts(&[
            part(SQUARE, &both, Some((name, "0 1"))),
            part("", &[], None),
            part("1 1 0 0 1 0 1 0 0 0 0 0", &[[3, 2, 1], [2, 0, 1]], Some((name, "1 0"))),
        ])
        .unwrap();
        let Source::Mesh(mesh) = reading.source else { panic!() };
        assert_eq!((mesh.parts(), mesh.part_count(), mesh.node_count()), (&[0, 2][..], 3, 4));
        assert_eq!((mesh.element(0), mesh.element(1)), (&[0, 1, 2][..], &[1, 3, 2][..]));
        assert_eq!(reading.origin.unwrap().ids, [1, 4]);
        let unused = reading.inventory.unwrap().unused;
        assert!(unused.iter().any(|entry| entry.what == "2 ghost cells"), "{unused:?}");
    }
    // Refined and hidden cells are left out wherever they are.
    let hidden = part(SQUARE, &[[0, 1, 2], [1, 3, 2]], Some(("vtkGhostType", "0 32")));
    assert_eq!(read(&hidden).unwrap().origin.unwrap().ids, [] as [u64; 0]);
    let all = part(SQUARE, &[[0, 1, 2]], Some(("vtkGhostType", "8")));
    assert!(read(&all).unwrap_err().contains("hidden"));
}

#[test]
fn copies_that_are_not_marked_and_single_files_are_refused() {
    let both = [[0, 1, 2], [1, 3, 2]];
    let error = read_parts(&[part(SQUARE, &both, None), part(SQUARE, &both[1..], None)]);
    assert!(error.unwrap_err().contains("pieces 1 and 2 have an element of the same nodes"));
    let alone = part(SQUARE, &both, Some(("vtkGhostType", "0 1")));
    assert!(read(&alone).unwrap_err().contains("give the .pvtu file"));
    assert!(read_parts(&[]).is_err() && read_parts(&[part("", &[], None)]).is_err());
}

#[test]
fn a_pvtu_file_names_its_pieces() {
    let pieces = |text: &str| {
        let read = pvtu_pieces("f.pvtu", text.as_bytes(), &ReadOptions::default());
        read.map_err(|error| error.to_string())
    };
    let file = |content: &str| {
        let tag = "PUnstructuredGrid";
        format!("<?xml version='1.0'?><VTKFile type='{tag}'><{tag}>{content}</{tag}></VTKFile>")
    };
    let names = pieces(&file("<Piece Source='a.vtu'/><PCells/><Piece Source='b/c.vtu'/>"));
    assert_eq!(names.unwrap().unwrap(), ["a.vtu", "b/c.vtu"]);
    assert_eq!(pieces(&part(SQUARE, &[[0, 1, 2]], None)), Ok(None));
    for (content, expected) in [
        ("", "0 pieces"),
        ("<Piece/>", "without the name of its file"),
        ("<Piece Source='a'/><Piece Source='a'/>", "named twice"),
        ("<Piece", "XML"),
    ] {
        let error = pieces(&file(content)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
