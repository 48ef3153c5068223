//! Compressed VTU files that ask for more than they are worth, or say what is not so.
//!
//! Each file is made here, in both codings of compressed arrays: as base64 in the tree, and as bytes
//! behind it. A refusal that must come before anything is unpacked is proved by blocks that could
//! not be unpacked.

use std::io::Read;

use base64::Engine;
use conset_ir::InputError;
use conset_mesh::read::read_within;
use conset_mesh::{Format, Source};

/// An array as it is stored: what its header says, and its blocks.
#[derive(Clone)]
struct Array {
    name: &'static str,
    kind: &'static str,
    /// Number of blocks, bytes of a block, bytes of the last, packed bytes of each.
    header: Vec<u64>,
    blocks: Vec<u8>,
}

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::ZlibEncoder::new(plain, flate2::Compression::best())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// An array in blocks of so many plain bytes.
fn array(name: &'static str, kind: &'static str, plain: &[u8], block: usize) -> Array {
    let blocks: Vec<Vec<u8>> = plain.chunks(block).map(packed).collect();
    let mut header = vec![blocks.len() as u64, block as u64, (plain.len() % block) as u64];
    header.extend(blocks.iter().map(|block| block.len() as u64));
    Array { name, kind, header, blocks: blocks.concat() }
}

/// `count` blocks of a MiB of zeros each, a thousandth of that in the file.
fn zeros(name: &'static str, kind: &'static str, count: usize) -> Array {
    let block = packed(&vec![0; 1 << 20]);
    let mut header = vec![count as u64, 1 << 20, 0];
    header.resize(3 + count, block.len() as u64);
    Array { name, kind, header, blocks: block.repeat(count) }
}

/// Two triangles on four nodes, in blocks that are no whole numbers of words.
fn plate() -> [Array; 4] {
    let points: [f32; 12] = [0., 0., 0., 1., 0., 0., 0., 1., 0., 1., 1., 0.5];
    let bytes = |numbers: &[i64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    [
        array("Points", "Float32", &points.map(f32::to_le_bytes).concat(), 7),
        array("connectivity", "Int64", &bytes(&[0, 1, 2, 1, 3, 2]), 11),
        array("offsets", "Int64", &bytes(&[3, 6]), 5),
        array("types", "UInt8", &[5, 5], 1),
    ]
}

fn file(points: usize, cells: usize, arrays: &[Array], inline: bool) -> Vec<u8> {
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let (mut tree, mut behind) = (String::new(), Vec::new());
    tree += "<VTKFile type=\"UnstructuredGrid\" byte_order=\"LittleEndian\" header_type=\"UInt64\"";
    tree += " compressor=\"vtkZLibDataCompressor\"><UnstructuredGrid>";
    tree += &format!("<Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{cells}\"><Points>");
    for Array { name, kind, header, blocks } in arrays {
        let header: Vec<u8> = header.iter().flat_map(|n| n.to_le_bytes()).collect();
        let (format, text) = match inline {
            true => ("binary\"".to_owned(), base64(&header) + "\n" + &base64(blocks)),
            false => (format!("appended\" offset=\"{}\"", behind.len()), String::new()),
        };
        behind.extend([header.as_slice(), blocks.as_slice()].concat());
        let three = if *name == "Points" { " NumberOfComponents=\"3\"" } else { "" };
        tree += &format!("<DataArray type=\"{kind}\" Name=\"{name}\"{three} format=\"{format}>");
        tree += &format!("{text}</DataArray>");
        if *name == "Points" {
            tree += "</Points><Cells>";
        }
    }
    tree += "</Cells></Piece></UnstructuredGrid>";
    let mut bytes = tree.into_bytes();
    if !inline {
        bytes.extend(b"<AppendedData encoding=\"raw\">_");
        bytes.extend(behind);
        bytes.extend(b"</AppendedData>");
    }
    bytes.extend(b"</VTKFile>\n");
    bytes
}

fn refused(bytes: &[u8], memory: u64) -> InputError {
    match read_within(Format::Vtu, "a.vtu", bytes, memory) {
        Err(error) => error,
        Ok(source) => panic!("read: {source:?}"),
    }
}

/// Both codings are refused alike, with these words.
#[track_caller]
fn wrong(points: usize, cells: usize, arrays: &[Array], words: &[&str]) {
    for inline in [true, false] {
        let error = refused(&file(points, cells, arrays, inline), u64::MAX);
        for word in words {
            assert!(error.message.contains(word), "{word:?} is not in: {error}");
        }
    }
}

#[test]
fn blocks_of_any_length_are_read() {
    for inline in [true, false] {
        let bytes = file(4, 2, &plate(), inline);
        let Ok(Source::Mesh(mesh)) = read_within(Format::Vtu, "a.vtu", &bytes, 1 << 20) else {
            panic!("not read");
        };
        assert_eq!(mesh.elements().collect::<Vec<_>>(), [[0, 1, 2], [1, 3, 2]]);
        assert_eq!(mesh.coordinates()[3], [1.0, 1.0, 0.5]);
    }
}

#[test]
fn a_thousand_times_the_file_is_refused_before_it_is_unpacked() {
    // 1 GiB of points, 16 GiB of numbers of nodes, and 1 GiB of types, each in about a MB.
    let [points, nodes, offsets, types] = plate();
    let spoilt = |mut array: Array| {
        array.blocks.fill(0xff);
        array
    };
    let many = spoilt(zeros("Points", "Float32", 1020));
    let bytes = file((1020 << 20) / 12, 2, &[many, nodes.clone(), offsets, types], false);
    assert!(bytes.len() < 2 << 20, "{} bytes", bytes.len());
    let error = refused(&bytes, u64::MAX);
    for word in ["array `Points`", "would take 2139095040 bytes", "64 times the"] {
        assert!(error.message.contains(word), "{word:?} is not in: {error}");
    }
    // Too many cells are seen by the larger of their arrays.
    let ends = spoilt(zeros("offsets", "UInt8", 1024));
    let arrays = [points.clone(), nodes, ends, spoilt(zeros("types", "UInt8", 1024))];
    wrong(4, 1 << 30, &arrays, &["array `offsets`", "would take 4294967296 bytes", "64 times"]);
    // The end that the last cell has is a claim like any other.
    let far = array("offsets", "Int64", &[3i64, 1 << 30].map(i64::to_le_bytes).concat(), 16);
    let nodes = spoilt(zeros("connectivity", "Int64", 8192));
    let arrays = [points, nodes, far, plate()[3].clone()];
    wrong(4, 2, &arrays, &["array `connectivity`", "would take 8589934592 bytes"]);
}

#[test]
fn what_is_within_the_ratio_is_read_in_no_more_than_it_takes() {
    // 24 MiB of points, which the file has 24 KB of.
    let [_, nodes, offsets, types] = plate();
    let bytes = file(1 << 20, 2, &[zeros("Points", "Float64", 24), nodes, offsets, types], false);
    let taken = 24 * (1 << 20) + 6 * 8 + 2 * 8 + 2;
    assert!(read_within(Format::Vtu, "a.vtu", &bytes, taken).is_ok());
    let error = refused(&bytes, taken - 1);
    assert!(error.message.contains("<memory>"), "{error}");
    assert!(error.message.contains(&format!("limit of {} bytes", taken - 1)), "{error}");
    // Numbers that are not compressed are held to the limit as well.
    let text = "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"9\" \
        NumberOfCells=\"1\"><Points><DataArray type=\"Float32\" NumberOfComponents=\"3\"/></Points>\
        </Piece></UnstructuredGrid></VTKFile>";
    let error = refused(text.as_bytes(), 215);
    assert!(error.message.contains("9 entries would take 216 bytes"), "{error}");
}

#[test]
fn lengths_that_are_not_so_are_refused() {
    let with = |change: &dyn Fn(&mut Array)| {
        let mut arrays = plate();
        change(&mut arrays[1]);
        arrays
    };
    let is = |change: &dyn Fn(&mut Array), words: &str| {
        wrong(4, 2, &with(change), &["array `connectivity`", words]);
    };
    // 48 bytes in blocks of 11, the last of 4.
    is(&|a| a.header[2] = 3, "the header declares 47 bytes, expected 48");
    is(&|a| a.header[0] = 4, "the header declares 37 bytes, expected 48");
    is(&|a| a.header[..3].copy_from_slice(&[1 << 60, 1 << 60, 0]), "bytes, expected 48");
    // Blocks of nothing, more than the file could list.
    is(&|a| a.header[..3].copy_from_slice(&[1 << 60, 0, 48]), "the list of blocks is truncated");
    is(&|a| a.header[7] = u64::MAX >> 1, "block 4 of 5 is truncated");
    is(&|a| a.blocks[0] ^= 0xff, "block 0 of 5 is damaged");
    // Its checksum.
    is(&|a| *a.blocks.last_mut().unwrap() ^= 0xff, "block 4 of 5 is damaged");
    // Blocks that are longer or shorter than all say.
    let one = |plain: &[u8], length: u64| {
        let blocks = packed(plain);
        let header = vec![1, length, 0, blocks.len() as u64];
        move |a: &mut Array| (a.header, a.blocks) = (header.clone(), blocks.clone())
    };
    is(&one(&[0; 49], 48), "block 0 of 1 is longer than the header declares");
    is(&one(&[0; 1 << 20], 48), "block 0 of 1 is longer than the header declares");
    is(&one(&[0; 47], 48), "block 0 of 1 is shorter than the header declares");
    // What is packed twice is unpacked once.
    is(&one(&packed(&[0; 48]), 48), "block 0 of 1 is shorter than the header declares");
    let twice = packed(&packed(&vec![0; 1 << 20]));
    is(&one(&twice, 48), "the number");
}

#[test]
fn cells_without_nodes_and_numbers_that_do_not_fit_are_refused() {
    let mut arrays = plate();
    arrays[2] = array("offsets", "Int64", &[6i64, 6].map(i64::to_le_bytes).concat(), 16);
    arrays[3] = array("types", "UInt8", &[7, 7], 2);
    wrong(4, 2, &arrays, &["cell 1 of type 7 has 0 nodes"]);
    arrays[3] = array("types", "Int32", &[5i32, 300].map(i32::to_le_bytes).concat(), 8);
    wrong(4, 2, &arrays, &["array `types`: the number 300 is too large"]);
    arrays[3] = array("types", "Int32", &[5i32, -5].map(i32::to_le_bytes).concat(), 8);
    wrong(4, 2, &arrays, &["array `types`: a negative number"]);
}
