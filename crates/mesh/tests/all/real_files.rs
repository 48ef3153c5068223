//! The readers, METIS and the halo on files that other people made, against the counts stated
//! beside the files (README.md and Spark98's `.count` files there).
//!
//! The files are not part of the repository: `fixtures/shared_meshes.rs` says where they are, and
//! what becomes of tests without them.

use crate::shared_meshes::bytes;
use conset_mesh::partition::{self, PartitionOptions};
use conset_mesh::{Decomposition, Format, Graph, Mesh, Partition, Source, halo, read, triangles};

fn source(name: &str) -> Option<Source> {
    let format = Format::from_file_name(name).unwrap();
    let bytes = bytes(name)?;
    Some(read(format, name, &bytes).unwrap_or_else(|error| panic!("{error}")))
}

fn mesh(name: &str) -> Option<Mesh> {
    match source(name)? {
        Source::Mesh(mesh) => Some(mesh),
        other => panic!("{name} is not a mesh: {other:?}"),
    }
}

fn graph(name: &str) -> Option<Graph> {
    match source(name)? {
        Source::Graph(graph) => Some(graph),
        other => panic!("{name} is not a graph: {other:?}"),
    }
}

fn pack(name: &str) -> Option<Decomposition> {
    match source(name)? {
        Source::Decomposition(decomposition) => Some(decomposition),
        other => panic!("{name} is not a decomposition: {other:?}"),
    }
}

/// Elements as sorted lists, sorted: what two files of one mesh have in common.
fn as_set(mesh: &Mesh) -> Vec<Vec<u32>> {
    let mut elements: Vec<Vec<u32>> = mesh
        .elements()
        .map(|nodes| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes
        })
        .collect();
    elements.sort();
    elements
}

#[test]
fn graphs_have_their_counts() {
    for (name, vertices, edges) in [
        ("walshaw/crack.graph", 10240, 30380),
        ("walshaw/3elt.graph", 4720, 13722),
        ("walshaw/whitaker3.graph", 9800, 28989),
        ("walshaw/data.graph", 2851, 15093),
        ("walshaw/wing_nodal.graph", 10937, 75488),
        ("walshaw/fe_body.graph", 45087, 163734),
        ("metis/4elt.graph", 15606, 45878),
        ("metis/copter2.graph", 55476, 352238),
    ] {
        let Some(graph) = graph(name) else { continue };
        assert_eq!(
            (graph.vertex_count(), graph.neighbours().len() / 2),
            (vertices, edges),
            "{name}"
        );
    }
}

#[test]
fn crack_is_a_mesh_of_20141_triangles() {
    let Some(graph) = graph("walshaw/crack.graph") else { return };
    let mesh = triangles::from_graph(&graph).unwrap();
    assert_eq!((mesh.node_count(), mesh.element_count()), (10240, 20141));
}

#[test]
fn a_volume_graph_has_no_triangles() {
    let Some(graph) = graph("walshaw/wing_nodal.graph") else { return };
    assert!(triangles::from_graph(&graph).is_err());
}

#[test]
fn one_sided_edges_are_refused_as_graph_and_read_as_connections() {
    let name = "networkit/wave-comm-512.graph";
    let Some(bytes) = bytes(name) else { return };
    let error = read(Format::MetisGraph, name, &bytes).unwrap_err();
    assert!(error.message.contains("706 entries"), "{error}");
    assert!(error.help.as_ref().unwrap().contains("<format> graph-connections"), "{error}");
    let source = read(Format::GraphConnections, name, &bytes).unwrap();
    let partition = partition::stated(&source).unwrap();
    let halo = halo(&source, &partition, "wave").unwrap();
    assert_eq!((halo.summary.parts, halo.set.len()), (512, 5300));
}

#[test]
fn meshes_have_their_counts() {
    for (name, nodes, elements, dimension) in [
        ("metis/metis.mesh", 4038, 7434, 0),
        ("su2/brick_tets_3d.su2", 11703, 59156, 3),
        ("derived/global.v41a.msh", 27330, 50859, 2),
        ("derived/sf10.ele", 7294, 35025, 3),
    ] {
        let Some(mesh) = mesh(name) else { continue };
        let counts = (mesh.node_count(), mesh.element_count(), mesh.dimension());
        assert_eq!(counts, (nodes, elements, dimension), "{name}");
    }
}

#[test]
fn vtu_files_of_two_writers_are_the_mesh_they_were_made_from() {
    let Some(reference) = mesh("derived/sf10.ele") else { return };
    for name in ["derived/sf10.zlib.vtu", "derived/sf10.vtk_binary_zlib.vtu"] {
        let Some(mesh) = mesh(name) else { continue };
        assert_eq!((mesh.node_count(), mesh.dimension()), (7294, 3), "{name}");
        assert_eq!(mesh.coordinates().len(), 7294);
        assert_eq!(as_set(&mesh), as_set(&reference), "{name}");
    }
}

#[test]
fn the_four_gmsh_codings_are_one_mesh() {
    let Some(reference) = mesh("derived/gmsh_plate.v41a.msh") else { return };
    assert_eq!(reference.dimension(), 2);
    assert!(reference.node_ids().is_empty());
    for name in ["v22a", "v22b", "v41b"] {
        let other = mesh(&format!("derived/gmsh_plate.{name}.msh")).unwrap();
        assert_eq!(other.elements().len(), reference.elements().len(), "{name}");
        assert_eq!(as_set(&other), as_set(&reference), "{name}");
        for (a, b) in other.coordinates().iter().zip(reference.coordinates()) {
            assert!((0..3).all(|i| (a[i] - b[i]).abs() < 1e-12), "{name}: {a:?} {b:?}");
        }
    }
}

#[test]
fn a_gmsh_partition_is_used() {
    let Some(mesh) = mesh("derived/gmsh_plate.part8.v41a.msh") else { return };
    let plain = self::mesh("derived/gmsh_plate.v41a.msh").unwrap();
    assert_eq!(as_set(&mesh), as_set(&plain));
    let source = Source::Mesh(mesh);
    let partition = partition::stated(&source).unwrap();
    assert_eq!(partition.part_count(), 8);
    assert!(partition.sizes().iter().all(|&size| size > 2000), "{:?}", partition.sizes());
    let halo = halo(&source, &partition, "plate").unwrap();
    assert!(halo.summary.shared_nodes > 100 && halo.summary.shared_nodes < 1000);
}

#[test]
fn gmsh_volumes_keep_tetrahedra_only() {
    let Some(mesh) = mesh("derived/gmsh_box.v41b.msh") else { return };
    assert_eq!(mesh.dimension(), 3);
    assert!(mesh.elements().all(|nodes| nodes.len() == 4));
}

/// Messages, words, shared nodes, least and most nodes of a part, from the `.count` files.
#[test]
fn spark98_lists_agree_with_the_count_files() {
    for (name, elements, messages, words, shared) in [
        ("spark98/sf10.64", 35025, 618, 11826, 3367),
        ("spark98/sf10.8", 35025, 0, 0, 0),
        ("spark98/tiny.8", 192, 0, 0, 0),
    ] {
        let Some(decomposition) = pack(&format!("{name}.pack")) else { continue };
        let count = String::from_utf8(bytes(&format!("{name}.count")).unwrap()).unwrap();
        let stated = |label: &str| -> u64 {
            let rest = &count[count.find(label).unwrap() + label.len()..];
            rest.split_whitespace().next().unwrap().parse().unwrap()
        };
        assert_eq!(decomposition.mesh().element_count(), elements, "{name}");
        let source = Source::Decomposition(decomposition);
        let partition = partition::stated(&source).unwrap();
        let halo = halo(&source, &partition, "sf10").unwrap();
        assert_eq!(halo.set.len() as u64, stated("Messages:"), "{name}");
        assert_eq!(halo.summary.words, stated("Volume (words):"), "{name}");
        assert_eq!(halo.summary.shared_nodes as u64, stated("Interface:"), "{name}");
        if messages > 0 {
            assert_eq!((halo.set.len(), halo.summary.words), (messages, words));
            assert_eq!(halo.summary.shared_nodes, shared);
            assert_eq!((halo.summary.nodes.min, halo.summary.nodes.max), (162, 222));
            assert_eq!((halo.summary.items.min, halo.summary.items.max), (547, 548));
        }
        // The same exchange follows from mesh and partition alone.
        let Source::Decomposition(decomposition) = &source else { unreachable!() };
        let mesh = Source::Mesh(decomposition.mesh().clone());
        let recomputed = self::halo(&mesh, &partition, "sf10").unwrap();
        assert_eq!(recomputed.set.connections(), halo.set.connections(), "{name}");
        assert_eq!(recomputed.summary, halo.summary, "{name}");
        for (id, _) in halo.set.iter() {
            let mut list = halo.set.nodes().unwrap().of(id).to_vec();
            list.sort_unstable();
            assert_eq!(recomputed.set.nodes().unwrap().of(id), list);
        }
    }
}

#[test]
fn decompositions_of_one_mesh_are_one_mesh() {
    let Some(one) = pack("spark98/sf10.1.pack") else { return };
    for name in ["spark98/sf10.8.pack", "spark98/sf10.64.pack"] {
        let other = pack(name).unwrap();
        assert_eq!(other.mesh().coordinates(), one.mesh().coordinates(), "{name}");
        assert_eq!(as_set(other.mesh()), as_set(one.mesh()), "{name}");
    }
    let tetgen = mesh("derived/sf10.ele").unwrap();
    assert_eq!(as_set(&tetgen), as_set(one.mesh()));
    assert_eq!(pack("spark98/tiny.128.pack").unwrap().part_count(), 128);
    assert_eq!(pack("spark98/tiny.1.pack").unwrap().shared().pairs, []);
}

#[test]
fn the_matrix_of_a_mesh_is_its_nodal_graph() {
    let Some(Source::Matrix(matrix)) = source("derived/sf10.pattern.sym.mtx") else { return };
    let mesh = pack("spark98/sf10.1.pack").unwrap();
    let mesh = mesh.mesh();
    let mut pairs = Vec::new();
    for nodes in mesh.elements() {
        for &a in nodes {
            pairs.extend(nodes.iter().map(|&b| (a, b)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    // Spark98's own count of the non-zero entries, both triangles.
    assert_eq!(matrix.columns().len(), 97138);
    assert_eq!(pairs.len(), 97138);
    for (entry, &(row, column)) in pairs.iter().enumerate() {
        assert!(matrix.columns_of(row as usize).contains(&column));
        assert_eq!(matrix.columns()[entry], column);
    }
}

#[test]
fn every_input_can_be_partitioned() {
    for name in [
        "walshaw/fe_body.graph",
        "walshaw/crack.graph",
        "metis/metis.mesh",
        "derived/gmsh_plate.v41b.msh",
        "derived/sf10.pattern.sym.mtx",
        "spark98/sf10.8.pack",
    ] {
        let Some(source) = source(name) else { continue };
        let options = PartitionOptions::new(64);
        let partition = partition::partition(&source, &options, name).unwrap();
        assert_eq!(partition, partition::partition(&source, &options, name).unwrap());
        check_balance(name, &source, &partition);
        let halo = halo(&source, &partition, "halo").unwrap();
        assert!(halo.summary.degree < 40, "{name}: {:?}", halo.summary);
    }
}

fn check_balance(name: &str, source: &Source, partition: &Partition) {
    let sizes = partition.sizes();
    let mean = partition::item_count(source) / 64;
    let (min, max) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!(*min > 0 && *max < mean + mean / 10 + 2, "{name}: {min} to {max}");
}
