//! Damaged files: every truncation, thousands of changes, and headers that claim far more than
//! the file has. A reader may accept or refuse; it may not panic, hang or take memory for a claim.

use crate::common::samples;
use conset_mesh::partition::{self, PartitionOptions};
use conset_mesh::{Format, halo, read, triangles};

/// Reads, and where something was read does everything that the crate can do with it.
fn use_all(format: Format, bytes: &[u8]) -> bool {
    let Ok(source) = read(format, "f", bytes) else { return false };
    if let conset_mesh::Source::Graph(graph) = &source {
        let _ = triangles::from_graph(graph);
    }
    let options = PartitionOptions::new(2).seed(0);
    let made = partition::partition(&source, &options, "f").ok();
    for partition in [partition::stated(&source), made].into_iter().flatten() {
        let _ = halo(&source, &partition, "halo");
    }
    true
}

#[test]
fn samples_are_valid() {
    for sample in samples() {
        assert!(use_all(sample.format, &sample.bytes), "{}", sample.name);
    }
}

#[test]
fn every_truncation_is_survived() {
    for sample in samples() {
        let accepted: Vec<usize> = (0..sample.bytes.len())
            .filter(|&length| use_all(sample.format, &sample.bytes[..length]))
            .collect();
        // Only what ends a file without being needed may be cut off: blanks, comments, a last
        // section, digits of a last number.
        assert!(accepted.len() < 60, "{}: {accepted:?}", sample.name);
    }
}

#[test]
fn every_change_of_one_byte_is_survived() {
    for sample in samples() {
        let mut bytes = sample.bytes.clone();
        for at in 0..bytes.len() {
            let before = bytes[at];
            for change in
                [b' ', b'\n', b'0', b'9', b'-', b'$', b'%', 0, 0xff, before ^ 1, before ^ 0x80]
            {
                bytes[at] = change;
                use_all(sample.format, &bytes);
            }
            bytes[at] = before;
        }
    }
}

#[test]
fn random_damage_is_survived() {
    let mut state = 1u64;
    let mut next = move |bound: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound.max(1)
    };
    let words: [&[u8]; 9] = [
        b"99999999999999999999",
        b"2147483647",
        b"-1",
        b"nan",
        b"1e999",
        b"$End",
        b"\n\n",
        b"0 0",
        b"1",
    ];
    for sample in samples() {
        for _ in 0..1500 {
            let mut bytes = sample.bytes.clone();
            for _ in 0..1 + next(3) {
                let at = next(bytes.len());
                match next(4) {
                    0 => drop(bytes.drain(at..(at + 1 + next(8)).min(bytes.len()))),
                    1 => bytes
                        .splice(at..at, words[next(words.len())].iter().copied())
                        .for_each(drop),
                    2 => {
                        let piece = bytes[at..(at + next(20)).min(bytes.len())].to_vec();
                        let to = next(bytes.len());
                        bytes.splice(to..to, piece).for_each(drop);
                    }
                    _ => bytes[at] = next(256) as u8,
                }
                if bytes.is_empty() {
                    break;
                }
            }
            use_all(sample.format, &bytes);
        }
    }
}

#[test]
fn claims_in_a_header_are_not_believed() {
    let many = "2147483646";
    let gmsh = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n";
    for (format, text) in [
        (Format::MetisGraph, format!("{many} {many}\n2\n1\n")),
        (Format::MetisGraph, format!("2 {many} 11 64\n")),
        (Format::GraphConnections, format!("{many} 1\n2\n")),
        (Format::GraphConnections, "1048577 1\n2\n".to_owned()),
        (Format::MetisMesh, format!("{many}\n1 2 3\n")),
        (
            Format::MatrixMarket,
            format!(
                "%%MatrixMarket matrix coordinate pattern general\n{many} {many} {many}\n1 1\n"
            ),
        ),
        (
            Format::MatrixMarket,
            format!("%%MatrixMarket matrix coordinate pattern general\n5 5 {many}\n1 1\n"),
        ),
        (Format::Spark98, format!("{many} 3\n{many} 256\n1048576\n1\n")),
        (Format::Spark98, "1 3\n1 256\n1\n1\n1 1 1\n1 0 0 0\n1\n1 0 0 0\n".to_owned()),
        (Format::Su2, format!("NDIME= 3\nNELEM= {many}\n10 0 0 0 0\n")),
        (Format::Tetgen, format!("{many} 10 65536\n1 2\n")),
        (Format::Gmsh, format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{many}\n1 0 0 0\n")),
        (Format::Gmsh, format!("{gmsh}$Nodes\n18446744073709551615 {many} 1 1\n2 1 0 {many}\n1\n")),
        (Format::Gmsh, format!("{gmsh}$PartitionedEntities\n2 18446744073709551615\n")),
        (
            Format::Gmsh,
            format!("{gmsh}$PartitionedEntities\n2 0 0 0 1 0\n1 2 1 18446744073709551615\n"),
        ),
    ] {
        assert!(!use_all(format, text.as_bytes()), "{text}");
    }
    // Valid, but with few nodes of large numbers: arrays are as large as what is there.
    assert!(use_all(Format::MetisMesh, format!("1\n1 2 {many}\n").as_bytes()));
    assert!(use_all(Format::Tetgen, format!("2 3 0\n0 0 1 {many}\n1 0 5 9\n").as_bytes()));
    let nodes =
        "$Nodes\n1 3 1 1\n2 1 0 3\n1\n2\n18446744073709551615\n0 0 0\n1 0 0\n0 1 0\n$EndNodes\n";
    let elements = "$Elements\n1 1 1 1\n2 1 2 1\n1 1 2 18446744073709551615\n$EndElements\n";
    assert!(use_all(Format::Gmsh, format!("{gmsh}{nodes}{elements}").as_bytes()));
}
