//! Halos of every kind and number of layers against their definitions, spelled out with sets: on
//! random elements, and on real meshes, where faces and edges are those of the shapes.

use crate::shared_meshes;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use conset_mesh::halo::{HaloKind, HaloOptions, WordsPerNode, halo_with, read_words};
use conset_mesh::model::{ElementType, Shape};
use conset_mesh::partition::{PartitionOptions, partition};
use conset_mesh::read::{ReadOptions, Reading, read_with};
use conset_mesh::{Format, Graph, Halo, Matrix, Mesh, Partition, Source};
use proptest::prelude::*;

type Lists = BTreeMap<(u32, u32), Vec<u32>>;
type Neighbours = Vec<BTreeSet<u32>>;

fn lists_of(halo: &Halo) -> Lists {
    let Some(nodes) = halo.set.nodes() else { return Lists::new() };
    let ends = |c: &conset_ir::Connection| (c.source.0, c.target.0);
    let lists = halo.set.iter().map(|(id, c)| (ends(c), nodes.of(id).to_vec()));
    let lists: Lists = lists.collect();
    assert_eq!(lists.len(), halo.set.len(), "a pair stands once");
    let words: usize = lists.values().map(Vec::len).sum();
    assert_eq!(halo.summary.words, words as u64);
    lists
}

/// Everything that is at most `layers` steps from what a part owns and that another part owns.
fn owner_to_ghost(neighbours: &Neighbours, owner: &[u32], parts: u32, layers: u32) -> Lists {
    let mut lists = Lists::new();
    for part in 0..parts {
        let mut reached: BTreeSet<u32> =
            (0u32..).zip(owner).filter(|&(_, &of)| of == part).map(|(item, _)| item).collect();
        for _ in 0..layers {
            let more: Vec<u32> = reached
                .iter()
                .flat_map(|&item| neighbours[item as usize].iter().copied())
                .collect();
            reached.extend(more);
        }
        for item in reached {
            if owner[item as usize] != part {
                lists.entry((owner[item as usize], part)).or_default().push(item);
            }
        }
    }
    lists
}

fn repeated(lists: &Lists, words: impl Fn(u32) -> u32) -> Lists {
    let list = |list: &Vec<u32>| -> Vec<u32> {
        list.iter().flat_map(|&node| std::iter::repeat_n(node, words(node) as usize)).collect()
    };
    lists
        .iter()
        .map(|(&pair, nodes)| (pair, list(nodes)))
        .filter(|(_, list)| !list.is_empty())
        .collect()
}

/// Elements with common corners: as many as the definition says for the lower dimension.
fn by_corners(mesh: &Mesh, types: &[ElementType], faces: bool) -> Neighbours {
    let corners = |element: usize| -> BTreeSet<u32> {
        let nodes = mesh.element(element);
        let count = match types[element].shape() {
            Shape::Polygon | Shape::Polyhedron | Shape::Point => nodes.len(),
            shape => shape.corner_count(),
        };
        nodes[..count].iter().copied().collect()
    };
    let count = mesh.element_count();
    let needed = |a: usize, b: usize| match (types[a].dimension().min(types[b].dimension()), faces)
    {
        (0 | 1, _) => 1,
        (2, _) | (3, false) => 2,
        _ => 3,
    };
    (0..count)
        .map(|a| {
            let others = (0..count).filter(|&b| a != b);
            let near = |&b: &usize| corners(a).intersection(&corners(b)).count() >= needed(a, b);
            others.filter(near).map(|b| b as u32).collect()
        })
        .collect()
}

fn by_nodes(mesh: &Mesh) -> Neighbours {
    let mut neighbours = vec![BTreeSet::new(); mesh.node_count()];
    for nodes in mesh.elements() {
        for &a in nodes {
            neighbours[a as usize].extend(nodes);
        }
    }
    neighbours
}

/// The owner of each node: the lowest part that has it.
fn node_owners(mesh: &Mesh, part_of: &[u32]) -> Vec<u32> {
    let mut owner = vec![u32::MAX; mesh.node_count()];
    for (nodes, &part) in mesh.elements().zip(part_of) {
        for &node in nodes {
            owner[node as usize] = part.min(owner[node as usize]);
        }
    }
    owner
}

const SHAPES: [(Shape, usize); 9] = [
    (Shape::Point, 1),
    (Shape::Line, 2),
    (Shape::Line, 3),
    (Shape::Triangle, 3),
    (Shape::Triangle, 6),
    (Shape::Quadrilateral, 4),
    (Shape::Tetrahedron, 4),
    (Shape::Tetrahedron, 10),
    (Shape::Hexahedron, 8),
];

/// Elements of any shapes among few nodes, repetitions allowed, and a part for each.
fn meshes() -> impl Strategy<Value = (Mesh, Vec<ElementType>, Partition)> {
    (1u32..30, 1usize..7).prop_flat_map(|(nodes, parts)| {
        let element = (0..SHAPES.len(), prop::collection::vec(0..nodes, 10), 0..parts as u32);
        prop::collection::vec(element, 0..30).prop_map(move |rows| {
            let (mut first, mut all, mut types) = (vec![0], Vec::new(), Vec::new());
            for (shape, nodes, _) in &rows {
                let (shape, count) = SHAPES[*shape];
                all.extend(&nodes[..count]);
                first.push(all.len() as u32);
                types.push(ElementType::new(shape, count).unwrap());
            }
            let mesh = Mesh::new(0, nodes as usize, vec![], first, all).unwrap();
            let part_of = rows.iter().map(|row| row.2).collect();
            (mesh, types, Partition::new(parts, part_of).unwrap())
        })
    })
}

fn relations() -> impl Strategy<Value = (Neighbours, Partition)> {
    (1u32..40, 1usize..9).prop_flat_map(|(n, parts)| {
        let row = prop::collection::btree_set(0..n, 0..4.min(n as usize + 1));
        let rows = prop::collection::vec(row, n as usize);
        let part_of = prop::collection::vec(0..parts as u32, n as usize);
        (rows, part_of)
            .prop_map(move |(rows, part_of)| (rows, Partition::new(parts, part_of).unwrap()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn meshes_exchange_what_the_kind_says(
        (mesh, types, parts) in meshes(),
        layers in 1u32..5,
        each in 1u32..4,
    ) {
        let source = Source::Mesh(mesh.clone());
        let count = parts.part_count() as u32;
        for kind in [HaloKind::Faces, HaloKind::Edges, HaloKind::Rows] {
            let (neighbours, owner) = match kind {
                HaloKind::Rows => (by_nodes(&mesh), node_owners(&mesh, parts.part_of())),
                _ => {
                    let faces = kind == HaloKind::Faces;
                    (by_corners(&mesh, &types, faces), parts.part_of().to_vec())
                }
            };
            let expected = owner_to_ghost(&neighbours, &owner, count, layers);
            let options = HaloOptions::default().kind(kind).layers(layers).types(&types);
            let halo = halo_with(&source, &parts, "h", &options).unwrap();
            prop_assert_eq!(&lists_of(&halo), &expected, "{}", kind.name());
            // A part has what it owns and what it receives.
            for part in 0..count {
                let own = (0u32..).zip(&owner).filter(|&(_, &of)| of == part).map(|(item, _)| item);
                let ghosts = expected.iter().filter(|(pair, _)| pair.1 == part);
                let mut all: Vec<u32> =
                    own.chain(ghosts.flat_map(|(_, list)| list.iter().copied())).collect();
                all.sort_unstable();
                prop_assert_eq!(halo.parts.nodes_of(part as usize), all);
            }
            let options = options.words(WordsPerNode::Each(each));
            let halo = halo_with(&source, &parts, "h", &options).unwrap();
            prop_assert_eq!(lists_of(&halo), repeated(&expected, |_| each));
            let words: Vec<u32> = (0..owner.len() as u32).map(|item| item % 3).collect();
            let options = options.words(WordsPerNode::Of(&words));
            let halo = halo_with(&source, &parts, "h", &options).unwrap();
            prop_assert_eq!(lists_of(&halo), repeated(&expected, |item| item % 3));
        }
        // Shared sums: the same lists as without words, each node as often as it has words.
        let nodes = conset_mesh::halo(&source, &parts, "h").unwrap();
        let options = HaloOptions::default().words(WordsPerNode::Each(each));
        let halo = halo_with(&source, &parts, "h", &options).unwrap();
        prop_assert_eq!(lists_of(&halo), repeated(&lists_of(&nodes), |_| each));
    }

    #[test]
    fn rows_reach_as_far_as_the_layers((rows, parts) in relations(), layers in 1u32..6) {
        let expected = owner_to_ghost(&rows, parts.part_of(), parts.part_count() as u32, layers);
        let mut first = vec![0];
        let mut items = Vec::new();
        for row in &rows {
            items.extend(row);
            first.push(items.len() as u32);
        }
        let options = HaloOptions::default().layers(layers);
        let matrix = Source::Matrix(Matrix::new(rows.len(), first.clone(), items.clone()).unwrap());
        let halo = halo_with(&matrix, &parts, "h", &options).unwrap();
        prop_assert_eq!(&lists_of(&halo), &expected);
        let graph = Source::Graph(Graph::new(first, items, true).unwrap());
        let halo = halo_with(&graph, &parts, "h", &options.words(WordsPerNode::Each(2))).unwrap();
        prop_assert_eq!(lists_of(&halo), repeated(&expected, |_| 2));
    }
}

/// The faces of a shape by its corners, or its edges.
pub(crate) fn sides(shape: Shape, faces: bool) -> &'static [&'static [usize]] {
    match (shape, faces) {
        (Shape::Line, _) => &[&[0], &[1]],
        (Shape::Triangle, _) => &[&[0, 1], &[1, 2], &[2, 0]],
        (Shape::Quadrilateral, _) => &[&[0, 1], &[1, 2], &[2, 3], &[3, 0]],
        (Shape::Tetrahedron, true) => &[&[0, 1, 2], &[0, 1, 3], &[1, 2, 3], &[0, 2, 3]],
        (Shape::Tetrahedron, false) => &[&[0, 1], &[1, 2], &[2, 0], &[0, 3], &[1, 3], &[2, 3]],
        (Shape::Pyramid, true) => &[&[0, 1, 2, 3], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]],
        (Shape::Pyramid, false) => {
            &[&[0, 1], &[1, 2], &[2, 3], &[3, 0], &[0, 4], &[1, 4], &[2, 4], &[3, 4]]
        }
        (Shape::Prism, true) => {
            &[&[0, 1, 2], &[3, 4, 5], &[0, 1, 4, 3], &[1, 2, 5, 4], &[2, 0, 3, 5]]
        }
        (Shape::Prism, false) => {
            &[&[0, 1], &[1, 2], &[2, 0], &[3, 4], &[4, 5], &[5, 3], &[0, 3], &[1, 4], &[2, 5]]
        }
        (Shape::Hexahedron, true) => &[
            &[0, 1, 2, 3],
            &[4, 5, 6, 7],
            &[0, 1, 5, 4],
            &[1, 2, 6, 5],
            &[2, 3, 7, 6],
            &[3, 0, 4, 7],
        ],
        (Shape::Hexahedron, false) => &[
            &[0, 1],
            &[1, 2],
            &[2, 3],
            &[3, 0],
            &[4, 5],
            &[5, 6],
            &[6, 7],
            &[7, 4],
            &[0, 4],
            &[1, 5],
            &[2, 6],
            &[3, 7],
        ],
        other => panic!("{other:?}"),
    }
}

/// Elements that have a face or an edge of the shape in common.
fn by_sides(mesh: &Mesh, types: &[ElementType], faces: bool) -> Neighbours {
    let mut having: HashMap<Vec<u32>, Vec<u32>> = HashMap::new();
    for (element, of_type) in types.iter().enumerate() {
        for side in sides(of_type.shape(), faces) {
            let mut nodes: Vec<u32> = side.iter().map(|&at| mesh.element(element)[at]).collect();
            nodes.sort_unstable();
            having.entry(nodes).or_default().push(element as u32);
        }
    }
    let mut neighbours = vec![BTreeSet::new(); mesh.element_count()];
    for elements in having.values() {
        for &a in elements {
            neighbours[a as usize].extend(elements.iter().filter(|&&b| b != a));
        }
    }
    neighbours
}

fn types_of(reading: &Reading, mesh: &Mesh) -> Vec<ElementType> {
    match &reading.origin {
        Some(origin) => origin.types.clone(),
        None => mesh
            .elements()
            .map(|nodes| ElementType::of_dimension(mesh.dimension(), nodes.len()).unwrap())
            .collect(),
    }
}

#[test]
fn real_meshes_exchange_over_the_faces_and_edges_of_their_shapes() {
    for name in [
        "derived/gmsh_box.v41b.msh",
        "derived/gmsh_plate.v22a.msh",
        "gmsh-versions/hybrid_3d_cube.msh",
        "gmsh-versions/periodic_v41a.msh",
        "exodus/read_exodus_TET10.e",
        "exodus/read_exodus_HEX20.e",
        "exodus/read_exodus_PYRAMID5.e",
        "exodus/read_exodus_PRISM6.e",
        "petsc/hybrid_hexwedge.msh",
        "su2/mesh_RAE2822_turb.su2",
        "spark98/sf10.8.pack",
    ] {
        let Some(bytes) = shared_meshes::bytes(name) else { continue };
        let format = Format::detect(name, &bytes).unwrap();
        let reading = read_with(format, name, &bytes, &ReadOptions::default()).unwrap();
        let mesh = match &reading.source {
            Source::Mesh(mesh) => mesh,
            Source::Decomposition(decomposition) => decomposition.mesh(),
            other => panic!("{other:?}"),
        };
        let types = types_of(&reading, mesh);
        let parts = partition(&reading.source, &PartitionOptions::new(8), name).unwrap();
        for (kind, layers) in
            [(HaloKind::Faces, 1), (HaloKind::Faces, 2), (HaloKind::Edges, 1), (HaloKind::Rows, 2)]
        {
            let options = HaloOptions::default().kind(kind).layers(layers).types(&types);
            let halo = halo_with(&reading.source, &parts, "h", &options).unwrap();
            let (neighbours, owner) = match kind {
                HaloKind::Rows => (by_nodes(mesh), node_owners(mesh, parts.part_of())),
                _ => (by_sides(mesh, &types, kind == HaloKind::Faces), parts.part_of().to_vec()),
            };
            let expected = owner_to_ghost(&neighbours, &owner, 8, layers);
            assert!(lists_of(&halo) == expected, "{name}: {} {layers}", kind.name());
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mesh = Mesh::new(2, 4, vec![], vec![0, 3, 6], vec![0, 1, 2, 1, 3, 2]).unwrap();
    let graph = Graph::new(vec![0, 1, 2], vec![1, 0], false).unwrap();
    let sized = graph.clone().with_vertex_sizes(vec![2, 2]).unwrap();
    let list = conset_mesh::ConnectionList::new(2, vec![(0, 1, 5)]).unwrap();
    let unknown = Mesh::new(0, 3, vec![], vec![0, 2, 3], vec![0, 1, 2]).unwrap();
    let parts = Partition::new(2, vec![0, 1]).unwrap();
    let none = Partition::new(2, vec![]).unwrap();
    let options = HaloOptions::default;
    let refused = |source: Source, parts: &Partition, options: HaloOptions<'_>, place: &str| {
        let error = halo_with(&source, parts, "h", &options).unwrap_err();
        assert_eq!(error.place, place, "{error}");
    };
    let mesh = || Source::Mesh(mesh.clone());
    refused(mesh(), &parts, options().layers(2), "<layers>");
    refused(mesh(), &parts, options().kind(HaloKind::Faces).layers(0), "<layers>");
    for words in [0, (1 << 30) + 1] {
        refused(mesh(), &parts, options().words(WordsPerNode::Each(words)), "<words-per-node>");
    }
    refused(mesh(), &parts, options().words(WordsPerNode::Of(&[1; 3])), "<words-per-node>");
    refused(mesh(), &parts, options().words(WordsPerNode::Of(&[1 << 31; 4])), "<words-per-node>");
    // Two shared nodes of 2^30 words each are more than a connection can have.
    refused(mesh(), &parts, options().words(WordsPerNode::Each(1 << 30)), "words");
    for kind in [HaloKind::Nodes, HaloKind::Faces, HaloKind::Edges] {
        refused(Source::Graph(graph.clone()), &parts, options().kind(kind), "<halo>");
    }
    refused(
        Source::Graph(sized),
        &parts,
        options().words(WordsPerNode::Each(2)),
        "<words-per-node>",
    );
    refused(Source::Connections(list.clone()), &none, options().kind(HaloKind::Rows), "<halo>");
    refused(Source::Connections(list), &none, options().layers(2), "<layers>");
    refused(Source::Mesh(unknown), &parts, options().kind(HaloKind::Faces), "<halo>");
    // The nodes of a spline's elements are not their corners.
    let spline = [ElementType::new(Shape::Triangle, 3).unwrap().spline(); 2];
    for kind in [HaloKind::Faces, HaloKind::Edges] {
        refused(mesh(), &parts, options().kind(kind).types(&spline), "<halo>");
    }
    let nodes = halo_with(&mesh(), &parts, "h", &options().types(&spline)).unwrap();
    assert_eq!(nodes.summary.words, 4);
}

#[test]
fn many_elements_around_one_node_are_no_problem() {
    // A fan of triangles around node 0: each shares an edge with the next one.
    let count = 100_000u32;
    let nodes: Vec<u32> = (0..count).flat_map(|t| [0, t + 1, t + 2]).collect();
    let first = (0..=count).map(|t| 3 * t).collect();
    let mesh = Mesh::new(2, count as usize + 2, vec![], first, nodes).unwrap();
    let parts = Partition::new(2, (0..count).map(|t| u32::from(t >= count / 2)).collect()).unwrap();
    let options = HaloOptions::default().kind(HaloKind::Faces);
    let halo = halo_with(&Source::Mesh(mesh), &parts, "h", &options).unwrap();
    assert_eq!(lists_of(&halo)[&(0, 1)], [count / 2 - 1]);
}

#[test]
fn files_of_words_are_checked() {
    let read = |text: &str, count| read_words("w", text.as_bytes(), count);
    assert_eq!(read("6\n0\n3\n", 3).unwrap(), [6, 0, 3]);
    for (text, said) in [
        ("6\n0\n", "2 lines for 3"),
        ("6\n0\n1\n1\n", "more lines"),
        ("6 0\n1\n", "one number per line"),
        ("6\nx\n1\n", "a number of words"),
        ("6\n-1\n1\n", "a number of words"),
        ("99999999999\n1\n1\n", "expected"),
    ] {
        let error = read(text, 3).unwrap_err();
        assert!(error.message.contains(said), "{error}");
    }
}
