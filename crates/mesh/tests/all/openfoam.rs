//! OpenFOAM meshes: two cells, in ASCII and binary, and where their files are wrong.

use conset_ir::InputError;
use conset_mesh::Source;
use conset_mesh::read::{PolyMesh, ReadOptions, read_openfoam};

const HEADER: &str =
    "/* banner */\nFoamFile\n{\n    version 2.0;\n    format ascii;\n    class list;\n}\n// * //\n";
/// A pyramid upon a cube.
const POINTS: &str =
    "9((0 0 0)(1 0 0)(1 1 0)(0 1 0)\n(0 0 1)(1 0 1)(1 1 1)(0 1 1) (.5 .5 2))\n// end\n";
const FACES: &str = "10\n(\n4(4 5 6 7)\n4(0 3 2 1) 4(0 1 5 4) 4(1 2 6 5) 4(2 3 7 6) 4(3 0 4 7)\n\
    3(4 5 8) 3(5 6 8) 3(6 7 8) 3(7 4 8)\n)\n";
const OWNER: &str = "10(0 0 0 0 0 0 1 1 1 1)";
const NEIGHBOUR: &str = "1(1)";
const BOUNDARY: &str = "2(walls { type wall; inGroups 1(wall); nFaces 5; startFace 1; }\n\
    left{type cyclic;nFaces 4;startFace 6;})";

fn ascii() -> [Vec<u8>; 5] {
    [POINTS, FACES, OWNER, NEIGHBOUR, BOUNDARY].map(|text| format!("{HEADER}{text}").into_bytes())
}

fn files(files: &[Vec<u8>; 5]) -> PolyMesh<'_> {
    let [points, faces, owner, neighbour, boundary] = files;
    PolyMesh { points, faces, owner, neighbour, boundary: Some(boundary) }
}

fn check(all: &[Vec<u8>; 5]) {
    let reading = read_openfoam("polyMesh", files(all), &ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let Source::Mesh(mesh) = reading.source else { panic!() };
    assert_eq!((mesh.node_count(), mesh.dimension()), (9, 3));
    assert_eq!(mesh.element(0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(mesh.element(1), [4, 5, 6, 7, 8]);
    assert_eq!(mesh.coordinates()[8], [0.5, 0.5, 2.0]);
    let inventory = reading.inventory.unwrap();
    let types: Vec<String> =
        inventory.elements.iter().map(|e| e.element_type.to_string()).collect();
    assert_eq!(types, ["5-node pyramid", "8-node hexahedron"]);
    assert!(inventory.unused.iter().any(|unused| unused.why.contains("not joined")));
}

fn binary(wide: bool) -> [Vec<u8>; 5] {
    let arch = if wide { "LSB;label=64;scalar=64" } else { "LSB;label=32;scalar=64" };
    let header = |class: &str| {
        format!("FoamFile\n{{\n format binary;\n arch \"{arch}\";\n class {class};\n}}\n")
            .into_bytes()
    };
    let labels = |bytes: &mut Vec<u8>, values: &[i32]| {
        bytes.extend(format!("\n{}\n(", values.len()).bytes());
        for &value in values {
            match wide {
                true => bytes.extend(i64::from(value).to_le_bytes()),
                false => bytes.extend(value.to_le_bytes()),
            }
        }
        bytes.extend(b")\n");
    };
    let mut points = header("vectorField");
    points.extend(b"9\n(");
    let numbers: Vec<f64> = POINTS[..POINTS.len() - 8]
        .split(['(', ')', ' ', '\n'])
        .filter(|word| !word.is_empty())
        .skip(1)
        .map(|word| word.parse().unwrap())
        .collect();
    points.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    points.extend(b")\n");
    let mut faces = header("faceCompactList");
    labels(&mut faces, &[0, 4, 8, 12, 16, 20, 24, 27, 30, 33, 36]);
    labels(
        &mut faces,
        &[
            4, 5, 6, 7, 0, 3, 2, 1, 0, 1, 5, 4, 1, 2, 6, 5, 2, 3, 7, 6, 3, 0, 4, 7, 4, 5, 8, 5, 6,
            8, 6, 7, 8, 7, 4, 8,
        ],
    );
    let mut owner = header("labelList");
    labels(&mut owner, &[0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    let mut neighbour = header("labelList");
    labels(&mut neighbour, &[1]);
    let mut boundary = header("polyBoundaryMesh");
    boundary.extend(BOUNDARY.bytes());
    [points, faces, owner, neighbour, boundary]
}

#[test]
fn ascii_binary_and_compressed_files_give_the_same_mesh() {
    use std::io::Read;
    check(&ascii());
    check(&binary(false));
    check(&binary(true));
    check(&ascii().map(|plain| {
        let mut packed = Vec::new();
        let best = flate2::Compression::best();
        flate2::read::GzEncoder::new(&plain[..], best).read_to_end(&mut packed).unwrap();
        packed
    }));
}

#[test]
fn faces_of_the_boundary_may_have_the_neighbour_minus_one() {
    let mut all = ascii();
    let options = ReadOptions::default();
    let expected = read_openfoam("f", files(&all), &options).unwrap();
    let text = String::from_utf8(all[3].clone()).unwrap();
    all[3] = text.replacen("1(1)", "10(1 -1 -1 -1 -1 -1 -1 -1 -1 -1)", 1).into_bytes();
    assert_eq!(read_openfoam("f", files(&all), &options).unwrap(), expected);
}

#[test]
fn errors_name_the_file() {
    let error = |file: usize, from: &str, to: &str| -> InputError {
        let mut all = ascii();
        let text = String::from_utf8(all[file].clone()).unwrap();
        assert!(text.contains(from), "{from}");
        all[file] = text.replacen(from, to, 1).into_bytes();
        read_openfoam("polyMesh", files(&all), &ReadOptions::default()).unwrap_err()
    };
    for (file, from, to, name, piece) in [
        (0, "FoamFile", "FoamFiles", "points", "expected `FoamFile`"),
        (0, "ascii", "text", "points", "format `text`"),
        (0, "(1 0 0)", "(1 0)", "points", "not a finite number"),
        (0, "9((", "10((", "points", "expected `(`, found `)`"),
        (1, "3(7 4 8)", "3(7 4 9)", "faces", "node 9 of 9"),
        (1, "3(7 4 8)", "4(7 4 8)", "faces", "`)` is not nodes"),
        (2, "10(0", "9(", "owner", "9 owners and 1 neighbours of 10 faces"),
        (2, "1 1)", "1 99)", "owner", "cell 99 of 10 faces"),
        (2, "1 1)", "1 -1)", "owner", "-1 is not cells"),
        (3, "1(1)", "1(-2)", "neighbour", "`-2` is not cells"),
        (3, "1(1)", "2(-1 1)", "neighbour", "a cell behind -1"),
        (4, "type wall", "type processor", "boundary", "decomposed case"),
        (4, "startFace 6;}", "startFace 6;", "boundary", "the file ends"),
    ] {
        let error = error(file, from, to);
        assert!(
            error.message.contains(piece) && error.file == format!("polyMesh/{name}"),
            "{error}"
        );
    }
}

#[test]
fn damage_is_survived() {
    for all in [ascii(), binary(false)] {
        for file in 0..5 {
            for at in 0..all[file].len() {
                let mut cut = all.clone();
                cut[file].truncate(at);
                let _ = read_openfoam("f", files(&cut), &ReadOptions::default());
                for change in [b' ', b'(', b')', b'9', b'-', 0, 0xff] {
                    let mut changed = all.clone();
                    changed[file][at] = change;
                    let _ = read_openfoam("f", files(&changed), &ReadOptions::default());
                }
            }
        }
    }
}
