//! The halo of random meshes, graphs and matrices against its definition, spelled out with sets.

use std::collections::{BTreeMap, BTreeSet};

use conset_mesh::partition::{self, Partition, PartitionOptions};
use conset_mesh::{Graph, Halo, Matrix, Mesh, Source, halo, triangles};
use proptest::prelude::*;

type Lists = BTreeMap<(u32, u32), Vec<u32>>;

fn lists_of(halo: &Halo) -> Lists {
    let Some(nodes) = halo.set.nodes() else {
        assert!(halo.set.is_empty(), "only a set without connections has no lists");
        return Lists::new();
    };
    let lists: Lists =
        halo.set.iter().map(|(id, c)| ((c.source.0, c.target.0), nodes.of(id).to_vec())).collect();
    assert_eq!(lists.len(), halo.set.len(), "a pair stands once");
    let pairs: Vec<_> = halo.set.connections().iter().map(|c| (c.source, c.target)).collect();
    assert!(pairs.is_sorted());
    lists
}

fn in_order(sets: BTreeMap<(u32, u32), BTreeSet<u32>>) -> Lists {
    sets.into_iter().map(|(pair, set)| (pair, set.into_iter().collect())).collect()
}

/// Every node goes from each part that has it to each other one.
fn mesh_lists(mesh: &Mesh, partition: &Partition) -> Lists {
    let mut holders: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (element, nodes) in mesh.elements().enumerate() {
        for &node in nodes {
            holders.entry(node).or_default().insert(partition.part_of()[element]);
        }
    }
    let mut sets: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for (&node, parts) in &holders {
        for &p in parts {
            for &q in parts.iter().filter(|&&q| q != p) {
                sets.entry((p, q)).or_default().insert(node);
            }
        }
    }
    in_order(sets)
}

/// Every value that a row names goes from its owner to the row's part.
fn need_lists(rows: &[BTreeSet<u32>], partition: &Partition) -> Lists {
    let part = |v: usize| partition.part_of()[v];
    let mut sets: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for (u, needs) in rows.iter().enumerate() {
        for &v in needs {
            if part(v as usize) != part(u) {
                sets.entry((part(v as usize), part(u))).or_default().insert(v);
            }
        }
    }
    in_order(sets)
}

fn flat(rows: &[BTreeSet<u32>]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0];
    let mut items = Vec::new();
    for row in rows {
        items.extend(row);
        first.push(items.len() as u32);
    }
    (first, items)
}

fn check_summary(halo: &Halo, lists: &Lists) {
    let words: usize = lists.values().map(Vec::len).sum();
    assert_eq!(halo.summary.words, words as u64);
    assert_eq!(halo.summary.connections, lists.len());
    let parts = halo.summary.parts as u32;
    let degree = |p: u32| {
        let out = lists.keys().filter(|pair| pair.0 == p).count();
        out.max(lists.keys().filter(|pair| pair.1 == p).count())
    };
    assert_eq!(halo.summary.degree, (0..parts).map(degree).max().unwrap_or(0));
    let sent = |p: u32| lists.iter().filter(|l| l.0.0 == p).map(|l| l.1.len() as u64).sum::<u64>();
    assert_eq!(halo.summary.words_sent.max, (0..parts).map(sent).max().unwrap_or(0));
    assert_eq!(halo.summary.words_sent.min, (0..parts).map(sent).min().unwrap_or(0));
}

/// Elements of 1 to 5 nodes among `nodes`, repetitions allowed, and a part for each.
fn meshes() -> impl Strategy<Value = (Mesh, Partition)> {
    (1u32..40, 1usize..9).prop_flat_map(|(nodes, parts)| {
        let element = prop::collection::vec(0..nodes, 1..6);
        prop::collection::vec((element, 0..parts as u32), 0..60).prop_map(move |rows| {
            let mut first = vec![0];
            let mut all = Vec::new();
            for (element, _) in &rows {
                all.extend(element);
                first.push(all.len() as u32);
            }
            let mesh = Mesh::new(0, nodes as usize, vec![], first, all).unwrap();
            let part_of = rows.iter().map(|row| row.1).collect();
            (mesh, Partition::new(parts, part_of).unwrap())
        })
    })
}

fn relations() -> impl Strategy<Value = (Vec<BTreeSet<u32>>, Partition)> {
    (1u32..40, 1usize..9).prop_flat_map(|(n, parts)| {
        let row = prop::collection::btree_set(0..n, 0..6.min(n as usize + 1));
        let rows = prop::collection::vec(row, n as usize);
        let part_of = prop::collection::vec(0..parts as u32, n as usize);
        (rows, part_of)
            .prop_map(move |(rows, part_of)| (rows, Partition::new(parts, part_of).unwrap()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn meshes_exchange_their_shared_nodes((mesh, partition) in meshes()) {
        let expected = mesh_lists(&mesh, &partition);
        let halo = halo(&Source::Mesh(mesh.clone()), &partition, "halo").unwrap();
        let lists = lists_of(&halo);
        prop_assert_eq!(&lists, &expected);
        for (&(p, q), list) in &lists {
            prop_assert_eq!(Some(list), lists.get(&(q, p)));
        }
        check_summary(&halo, &lists);
        for part in 0..partition.part_count() {
            let own: BTreeSet<u32> = halo.parts.items_of(part).iter()
                .flat_map(|&e| mesh.element(e as usize).iter().copied()).collect();
            prop_assert!(halo.parts.nodes_of(part).iter().eq(&own));
        }
    }

    #[test]
    fn rows_get_what_they_name((rows, partition) in relations()) {
        let (first, items) = flat(&rows);
        let expected = need_lists(&rows, &partition);
        let matrix = Matrix::new(rows.len(), first.clone(), items.clone()).unwrap();
        let of_matrix = halo(&Source::Matrix(matrix), &partition, "halo").unwrap();
        prop_assert_eq!(&lists_of(&of_matrix), &expected);
        check_summary(&of_matrix, &expected);
        let graph = Graph::new(first, items, true).unwrap();
        let of_graph = halo(&Source::Graph(graph.clone()), &partition, "halo").unwrap();
        prop_assert_eq!(&of_graph, &of_matrix);
        // A vertex of several words stands as many times, one of none not at all.
        let sizes: Vec<u32> = (0..rows.len() as u32).map(|v| v % 3).collect();
        let sized = graph.with_vertex_sizes(sizes).unwrap();
        let halo = halo(&Source::Graph(sized), &partition, "halo").unwrap();
        let repeated: Lists = expected.into_iter().map(|(pair, list)| {
            let list = list.into_iter().flat_map(|v| std::iter::repeat_n(v, v as usize % 3));
            (pair, list.collect::<Vec<u32>>())
        }).filter(|(_, list)| !list.is_empty()).collect();
        prop_assert_eq!(lists_of(&halo), repeated);
    }

    #[test]
    fn partitions_made_here_have_no_empty_part((mesh, given) in meshes(), seed: u64) {
        let items = mesh.element_count();
        let parts = given.part_count();
        let source = Source::Mesh(mesh);
        let made = partition::partition(&source, &PartitionOptions::new(parts).seed(seed), "f");
        if items < parts {
            prop_assert!(made.is_err());
        } else {
            let made = made.unwrap();
            prop_assert!(made.sizes().iter().all(|&size| size > 0));
            prop_assert!(halo(&source, &made, "halo").is_ok());
        }
    }
}

/// A grid of squares, each cut into two triangles: its nodal graph gives the mesh back.
#[test]
fn a_triangle_mesh_survives_its_nodal_graph() {
    let (width, height) = (7u32, 5u32);
    let node = |x: u32, y: u32| x + (width + 1) * y;
    let mut elements = Vec::new();
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        elements.push([node(x, y), node(x + 1, y), node(x + 1, y + 1)]);
        elements.push([node(x, y), node(x, y + 1), node(x + 1, y + 1)]);
    }
    for element in &mut elements {
        element.sort_unstable();
    }
    elements.sort_unstable();
    let mut rows = vec![BTreeSet::new(); ((width + 1) * (height + 1)) as usize];
    for element in &elements {
        for &a in element {
            rows[a as usize].extend(element.iter().filter(|&&b| b != a));
        }
    }
    let (first, items) = flat(&rows);
    let mesh = triangles::from_graph(&Graph::new(first, items, false).unwrap()).unwrap();
    assert_eq!(mesh.elements().collect::<Vec<_>>(), elements);
}

#[test]
fn what_does_not_fit_is_refused() {
    let matrix = Source::Matrix(Matrix::new(3, vec![0, 1, 1], vec![2]).unwrap());
    let partition = Partition::new(2, vec![0, 1]).unwrap();
    assert!(halo(&matrix, &partition, "halo").is_err(), "not square");
    let graph = Source::Graph(Graph::new(vec![0, 0, 0, 0], vec![], true).unwrap());
    assert!(halo(&graph, &partition, "halo").is_err(), "2 parts for 3 vertices");
    let partition = Partition::new(2, vec![0, 1, 1]).unwrap();
    assert!(halo(&graph, &partition, "no name").is_err());
    assert!(halo(&graph, &partition, "name").unwrap().set.is_empty());
    assert!(Partition::new(2, vec![2]).is_err());
    assert!(Partition::new(0, vec![]).is_err());
}
