//! Exact counts, Euler's formula, conforming elements of positive size, all nodes used.

use std::collections::BTreeMap;

use conset_ir::convert::{index, to_f64};
use conset_mesh::generate::{LIST, by_name, cracked_plate, random_plate};
use conset_mesh::model::{Mesh, Shape};
use conset_mesh::write_msh::{MshFormat, write};
use conset_mesh::{Format, Source, read};
use proptest::prelude::*;

use crate::halo_kinds::sides;

fn made(spec: &str) -> Mesh {
    by_name(spec, 1).unwrap_or_else(|e| panic!("{e}"))
}

fn counts(mesh: &Mesh) -> (u8, usize, usize) {
    (mesh.dimension(), mesh.node_count(), mesh.element_count())
}

/// Twice the area of a triangle, or six times the volume of a tetrahedron.
fn size(corners: &[[f64; 3]]) -> f64 {
    let edge = |i: usize| [0, 1, 2].map(|k| corners[i][k] - corners[0][k]);
    let (a, b) = (edge(1), edge(2));
    let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    if corners.len() == 3 {
        return cross[2];
    }
    let c = edge(3);
    cross[0] * c[0] + cross[1] * c[1] + cross[2] * c[2]
}

/// The faces of an element by the corners it lists: edges of a triangle, faces of a solid.
fn faces(corners: usize) -> &'static [&'static [usize]] {
    let shape = match corners {
        3 => Shape::Triangle,
        4 => Shape::Tetrahedron,
        _ => Shape::Hexahedron,
    };
    sides(shape, true)
}

/// Checks what every generated mesh promises; returns the number of faces on its boundary.
fn assert_sound(mesh: &Mesh) -> usize {
    let mut used = vec![false; mesh.node_count()];
    let mut elements: Vec<Vec<u32>> = Vec::new();
    let mut count_of: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for element in mesh.elements() {
        element.iter().for_each(|&node| used[index(node)] = true);
        let mut sorted = element.to_vec();
        sorted.sort_unstable();
        assert!(sorted.is_sorted_by(|a, b| a < b), "a node twice");
        elements.push(sorted);
        for face in faces(element.len()) {
            let mut face: Vec<u32> = face.iter().map(|&i| element[i]).collect();
            face.sort_unstable();
            *count_of.entry(face).or_default() += 1;
        }
        let corner = |&i: &usize| mesh.coordinates()[index(element[i])];
        // Of a brick, the tetrahedron at its first corner.
        let shape: &[usize] = if element.len() == 3 { &[0, 1, 2] } else { &[0, 1, 3, 4] };
        let shape = if element.len() == 4 { &[0, 1, 2, 3] } else { shape };
        assert!(size(&shape.iter().map(corner).collect::<Vec<_>>()) > 0.0);
    }
    assert!(used.iter().all(|&used| used), "a node without element");
    elements.sort_unstable();
    assert!(elements.is_sorted_by(|a, b| a < b), "an element twice");
    assert!(count_of.values().all(|&count| count <= 2), "a face of three elements");
    let mut places: Vec<[u64; 3]> =
        mesh.coordinates().iter().map(|p| p.map(f64::to_bits)).collect();
    places.sort_unstable();
    assert!(places.is_sorted_by(|a, b| a < b), "two nodes in one place");
    count_of.values().filter(|&&count| count == 1).count()
}

/// Number of pieces of the mesh, by nodes shared between elements.
fn pieces(mesh: &Mesh) -> usize {
    let mut leader: Vec<usize> = (0..mesh.node_count()).collect();
    fn find(leader: &mut [usize], mut node: usize) -> usize {
        while leader[node] != node {
            leader[node] = leader[leader[node]];
            node = leader[node];
        }
        node
    }
    for element in mesh.elements() {
        for &node in element {
            let (a, b) = (find(&mut leader, index(element[0])), find(&mut leader, index(node)));
            leader[b] = a;
        }
    }
    (0..mesh.node_count()).filter(|&node| leader[node] == node).count()
}

#[test]
fn the_papers_meshes_have_the_papers_counts() {
    for (name, expected, boundary) in [
        ("m11k", (2, 11_000, 20_998), 1_000),
        ("c10k", (2, 10_240, 20_141), 337),
        ("c100k", (2, 105_000, 204_873), 5_125),
    ] {
        let mesh = made(name);
        assert_eq!(counts(&mesh), expected, "{name}");
        assert_eq!(assert_sound(&mesh), boundary, "{name}");
        assert_eq!(pieces(&mesh), 1, "{name}");
    }
    let valley = made("q20k");
    assert_eq!(counts(&valley), (3, 22_451, 20_000));
    // The box's surface, the valley's two walls less its two mouths, the hill's four walls.
    let surface = 2 * (25 * 40 + 25 * 20 + 40 * 20) + (2 * 40 - 2 * 3) + 2 * (6 + 20);
    assert_eq!(assert_sound(&valley), surface);
    assert_eq!(pieces(&valley), 1);
}

#[test]
fn regular_meshes_have_their_counts() {
    for (spec, expected, boundary, pieces_of) in [
        ("plate:1x1", (2, 4, 2), 4, 1),
        ("plate:7x3", (2, 32, 42), 20, 1),
        ("strip:5", (2, 12, 10), 12, 1),
        ("two-plates:7x3", (2, 64, 84), 40, 2),
        ("two-plates:1x1", (2, 8, 4), 8, 2),
        ("bricks:1x1x1", (3, 8, 1), 6, 1),
        ("bricks:2x3x4", (3, 60, 24), 2 * (6 + 8 + 12), 1),
        ("tets:1x1x1", (3, 8, 6), 12, 1),
        ("tets:2x3x4", (3, 60, 144), 4 * (6 + 8 + 12), 1),
    ] {
        let mesh = made(spec);
        assert_eq!(counts(&mesh), expected, "{spec}");
        assert_eq!(assert_sound(&mesh), boundary, "{spec}");
        assert_eq!(pieces(&mesh), pieces_of, "{spec}");
    }
    let box_of_tets = made("tets:2x3x4");
    let volume: f64 = box_of_tets
        .elements()
        .map(|e| size(&e.iter().map(|&n| box_of_tets.coordinates()[index(n)]).collect::<Vec<_>>()))
        .sum();
    assert_eq!(volume, 6.0 * 24.0);
    assert_eq!(counts(&made("plate:1000x1000")), (2, 1_002_001, 2_000_000));
    assert_eq!(counts(&made("bricks:25x40x20")), (3, 22_386, 20_000));
}

#[test]
fn random_and_cracked_plates_follow_eulers_formula() {
    for (nodes, rim) in [(4, 4), (5, 4), (5, 5), (9, 7), (100, 37), (1000, 4), (500, 400)] {
        let mesh = made(&format!("random:{nodes},rim={rim}"));
        assert_eq!(counts(&mesh), (2, nodes, 2 * nodes - 2 - rim));
        assert_eq!(assert_sound(&mesh), rim);
    }
    for (nodes, rim, crack) in [
        (10, 8, 1),
        (11, 8, 1),
        (50, 15, 3),
        (500, 61, 20),
        (2000, 8, 1),
        (300, 9, 140),
        (300, 250, 7),
    ] {
        let mesh = made(&format!("cracked:{nodes},{rim},{crack}"));
        let boundary = rim + 2 * crack;
        assert_eq!(counts(&mesh), (2, nodes, 2 * nodes - 2 - boundary));
        assert_eq!(assert_sound(&mesh), boundary);
        assert_eq!(pieces(&mesh), 1);
    }
}

#[test]
fn seeds_decide() {
    for spec in ["random:200", "cracked:400"] {
        assert_eq!(by_name(spec, 5).unwrap(), by_name(spec, 5).unwrap());
        assert_ne!(by_name(spec, 5).unwrap(), by_name(spec, 6).unwrap());
    }
    for spec in ["tets:3x3x3", "q20k"] {
        assert_eq!(by_name(spec, 5).unwrap(), by_name(spec, 6).unwrap());
    }
}

#[test]
fn cracked_plates_are_refined_at_the_tip_and_have_few_needles() {
    let mesh = made("c10k");
    let at = |node: u32| mesh.coordinates()[index(node)];
    let length = |a: [f64; 3], b: [f64; 3]| (a[0] - b[0]).hypot(a[1] - b[1]);
    let (mut near, mut far, mut needles) = (Vec::new(), Vec::new(), 0);
    for element in mesh.elements() {
        let corners: Vec<[f64; 3]> = element.iter().map(|&node| at(node)).collect();
        let sides = [(0, 1), (1, 2), (2, 0)].map(|(a, b)| length(corners[a], corners[b]));
        let longest = sides.iter().fold(0.0f64, |a, &b| a.max(b));
        let height = size(&corners) / longest;
        needles += usize::from(height < 0.15 * longest);
        match length(corners[0], [0.5, 0.5, 0.0]) {
            0.0..0.02 => near.push(size(&corners)),
            0.4.. => far.push(size(&corners)),
            _ => {}
        }
    }
    let mean = |sizes: &[f64]| sizes.iter().sum::<f64>() / to_f64(sizes.len());
    assert!(near.len() > 100 && far.len() > 1000, "{} {}", near.len(), far.len());
    assert!(mean(&near) * 8.0 < mean(&far), "{} {}", mean(&near), mean(&far));
    assert!(needles * 100 < mesh.element_count(), "{needles}");
}

#[test]
fn every_generator_has_defaults() {
    for generator in LIST {
        if generator.name != "c100k" {
            assert!(made(generator.name).element_count() > 0, "{}", generator.name);
        }
    }
}

#[test]
fn bad_requests_are_refused() {
    let error = by_name("crakced:1000", 1).unwrap_err();
    assert!(error.help.unwrap().contains("did you mean cracked?"));
    for bad in [
        "",
        "plate:3",
        "plate:3x3x3",
        "plate:0x3",
        "plate:3x3,seed=4",
        "plate:4294967295x4294967295",
        "plate:16777216x16777216",
        "bricks:1000x1000x1000",
        "tets:2x2",
        "strip:0",
        "strip:99999999999",
        "two-plates:4096x2049",
        "random:3",
        "random:100,rim=3",
        "random:100,rim=101",
        "random:1000000000",
        "cracked:9",
        "cracked:100,rim=7",
        "cracked:100,rim=8,crack=47",
        "cracked:100,rim=8,crack=0",
        "m11k:5",
    ] {
        assert!(by_name(bad, 1).is_err(), "{bad}");
    }
    assert!(cracked_plate(100, usize::MAX, usize::MAX, 1).is_err());
    assert!(random_plate(usize::MAX, 4, 1).is_err());
}

/// The meshes of `fixtures/meshes`, as its README says they were made, all with seed 1.
const FIXTURES: [(&str, &str); 4] = [
    ("plate.msh", "cracked:1000"),
    ("box.msh", "tets:4x4x4"),
    ("two_pieces.msh", "two-plates:6x5"),
    ("one_cell.msh", "bricks:1x1x1"),
];

#[test]
fn fixtures_are_what_their_readme_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/meshes");
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    for (file, spec) in FIXTURES {
        let command = format!("`conset generate {spec} --seed 1 -o {file}`");
        assert!(readme.contains(&command), "{command}");
        let path = format!("{folder}/{file}");
        let bytes = write(&made(spec), MshFormat::V41Text).unwrap();
        if std::env::var_os("CONSET_BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{file} differs from {spec}");
    }
}

#[test]
fn every_form_reads_back_to_the_same_mesh() {
    for spec in ["cracked:300", "random:50", "tets:3x2x1", "bricks:2x2x2", "two-plates:2x2"] {
        let mesh = made(spec);
        for form in
            [MshFormat::V41Text, MshFormat::V41Binary, MshFormat::V22Text, MshFormat::V22Binary]
        {
            let bytes = write(&mesh, form).unwrap();
            let source = read(Format::Gmsh, "made.msh", &bytes).unwrap();
            let Source::Mesh(back) = source else { panic!("{spec} {form:?}: no mesh") };
            assert_eq!(counts(&back), counts(&mesh), "{spec} {form:?}");
            assert!(back.coordinates() == mesh.coordinates(), "{spec} {form:?}");
            assert!(back.elements().eq(mesh.elements()), "{spec} {form:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_counts_give_a_sound_plate_or_an_error(
        rim in 0usize..60,
        crack in 0usize..30,
        inside in 0usize..200,
        seed: u64,
    ) {
        let nodes = rim + 2 * crack + inside;
        if let Ok(mesh) = random_plate(nodes, rim, seed) {
            prop_assert_eq!(assert_sound(&mesh), rim);
        } else {
            prop_assert!(rim < 4);
        }
        if let Ok(mesh) = cracked_plate(nodes, rim, crack, seed) {
            prop_assert_eq!(mesh.element_count(), 2 * nodes - 2 - rim - 2 * crack);
            prop_assert_eq!(assert_sound(&mesh), rim + 2 * crack);
        } else {
            prop_assert!(rim < 8 || crack < 1);
        }
    }

    #[test]
    fn any_text_gives_a_mesh_or_an_error(
        name in proptest::sample::select(LIST[4..].iter().map(|g| g.name).collect::<Vec<_>>()),
        rest in "[-:=,.x0-9a-z]{0,5}",
    ) {
        let _ = by_name(&format!("{name}{rest}"), 1);
        let _ = by_name(&format!("{name}:{rest}"), 1);
    }
}
