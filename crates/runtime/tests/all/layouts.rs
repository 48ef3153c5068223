//! Layouts against references that compare everything with everything.

use std::collections::{BTreeMap, BTreeSet};

use conset_runtime::ir::{CellId, Connection, ConnectionId, ConnectionSet, NodeLists};
use conset_runtime::{Layout, LayoutError, Owned};
use proptest::prelude::*;

use crate::common::build;

/// Source, target, and for each item its id, position at the source, position at the target.
type Rows = Vec<(u32, u32, Vec<(u64, u32, u32)>)>;

fn rows(layout: &Layout) -> Rows {
    let rows = (0..layout.len() as u32).map(ConnectionId).map(|x| {
        let (source, target) = layout.ends_of(x);
        let (send, receive) = (layout.send_of(x), layout.receive_of(x));
        let positions = send.iter().zip(receive);
        let ids = layout.ids_of(x).iter().zip(positions);
        (source.0, target.0, ids.map(|(&id, (&s, &r))| (id, s, r)).collect())
    });
    rows.collect()
}

fn position(ids: &[u64], id: u64) -> Option<u32> {
    ids.iter().position(|&other| other == id).map(|at| at as u32)
}

/// All pairs of cells, all ids of both.
fn naive(ids: &[Vec<u64>], sends: impl Fn(usize, usize, u64) -> bool) -> Rows {
    let mut rows = Rows::new();
    for a in 0..ids.len() {
        for b in 0..ids.len() {
            let mut common: Vec<(u64, u32, u32)> = Vec::new();
            for &id in &ids[a] {
                if let (Some(from), Some(to)) = (position(&ids[a], id), position(&ids[b], id))
                    && a != b
                    && sends(a, b, id)
                {
                    common.push((id, from, to));
                }
            }
            common.sort_unstable();
            if !common.is_empty() {
                rows.push((a as u32, b as u32, common));
            }
        }
    }
    rows
}

/// Lists of ids without repetitions, in any order; some cells have none.
fn id_lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let id = prop_oneof![4 => 0u64..12, 1 => (u64::MAX - 4)..=u64::MAX];
    let list = prop::collection::btree_set(id, 0..10)
        .prop_map(|ids| ids.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    prop::collection::vec(list, 0..8)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn shared_ids_are_connected_with_one_another(ids in id_lists()) {
        let layout = Layout::from_shared_ids(&ids).unwrap();
        prop_assert_eq!(rows(&layout), naive(&ids, |_, _, _| true));
        prop_assert!(layout.is_shared());
        prop_assert_eq!(&layout.reversed(), &layout);
        for (cell, ids) in ids.iter().enumerate() {
            prop_assert_eq!(layout.items_of(CellId(cell as u32)), ids.len());
        }
    }

    #[test]
    fn every_id_has_one_owner_and_is_counted(ids in id_lists(), turn in any::<prop::sample::Index>()) {
        let layout = Layout::from_shared_ids(&ids).unwrap();
        // On other cells, the lowest of those has it.
        let cells = ids.len() + 2;
        let place = |part: usize| (cells - 1 - part + turn.index(cells)) % cells;
        let places: Vec<CellId> = (0..ids.len()).map(|part| CellId(place(part) as u32)).collect();
        let placed = layout.placed(&places, cells).unwrap();
        let mut lists = vec![Vec::new(); cells];
        ids.iter().enumerate().for_each(|(part, list)| lists[place(part)] = list.clone());
        for (layout, lists) in [(&layout, &ids), (&placed, &lists)] {
            for (cell, list) in lists.iter().enumerate() {
                let holders = |id: u64| (0..lists.len()).filter(move |&c| lists[c].contains(&id));
                let counts: Vec<u32> = list.iter().map(|&id| holders(id).count() as u32).collect();
                let owned: Vec<bool> = list.iter().map(|&id| holders(id).next() == Some(cell)).collect();
                prop_assert_eq!(layout.multiplicity(CellId(cell as u32)), counts);
                prop_assert_eq!(layout.owned(CellId(cell as u32)), owned);
            }
            let beyond = CellId(lists.len() as u32);
            prop_assert!(layout.multiplicity(beyond).is_empty() && layout.owned(beyond).is_empty());
        }
    }

    #[test]
    fn repetitions_are_refused(
        mut ids in id_lists(), cell in any::<prop::sample::Index>(), from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        prop_assume!(ids.iter().any(|list| !list.is_empty()));
        let filled: Vec<usize> = (0..ids.len()).filter(|&c| !ids[c].is_empty()).collect();
        let cell = filled[cell.index(filled.len())];
        let id = ids[cell][from.index(ids[cell].len())];
        let to = to.index(ids[cell].len() + 1);
        ids[cell].insert(to, id);
        let error = Layout::from_shared_ids(&ids).unwrap_err();
        let LayoutError::Repeated { cell: found, id: repeated, first, second } = error else {
            panic!("{error}");
        };
        prop_assert_eq!((found.index(), repeated), (cell, id));
        prop_assert!(first < second);
        prop_assert_eq!(ids[cell][first as usize], ids[cell][second as usize]);
    }

    #[test]
    fn owners_send_to_ghosts(ids in id_lists(), choices in prop::collection::vec(any::<prop::sample::Index>(), 32)) {
        let parts = owned(&ids, &choices);
        let lists: Vec<Vec<u64>> = parts.iter().map(|part| part.ids.clone()).collect();
        let owns = |cell: usize, id| parts[cell].ids[..parts[cell].owned].contains(&id);
        let both = Layout::from_owned(&parts).unwrap();
        prop_assert_eq!(rows(&both.forward), naive(&lists, |a, _, id| owns(a, id)));
        prop_assert_eq!(rows(&both.backward), naive(&lists, |_, b, id| owns(b, id)));
        prop_assert!(!both.forward.is_shared());
        prop_assert_eq!(both.backward.reversed(), both.forward);
    }

    #[test]
    fn matrices_become_local(
        cells in 1usize..6,
        matrix in prop::collection::vec(prop::collection::btree_set(0usize..20, 0..6), 0..20),
        owner in prop::collection::vec(any::<prop::sample::Index>(), 20),
    ) {
        let rows_count = matrix.len();
        let matrix: Vec<Vec<usize>> = matrix
            .into_iter()
            .map(|row| row.into_iter().filter(|&column| column < rows_count).collect())
            .collect();
        let owner: Vec<u32> = (0..rows_count).map(|row| owner[row].index(cells) as u32).collect();
        let (mut ptr, mut idx) = (vec![0], Vec::new());
        for row in &matrix {
            // Any order of columns will do.
            idx.extend(row.iter().rev());
            ptr.push(idx.len());
        }
        let csr = Layout::from_csr(&ptr, &idx, &owner, cells).unwrap();
        prop_assert_eq!(csr.parts.len(), cells);
        let values: Vec<f64> = (0..idx.len()).map(|at| at as f64).collect();
        for (cell, part) in csr.parts.iter().enumerate() {
            let own: Vec<u64> =
                (0..rows_count).filter(|&r| owner[r] as usize == cell).map(|r| r as u64).collect();
            let ghosts: BTreeSet<(u32, u64)> = own
                .iter()
                .flat_map(|&row| &matrix[row as usize])
                .filter(|&&column| owner[column] as usize != cell)
                .map(|&column| (owner[column], column as u64))
                .collect();
            let expected: Vec<u64> =
                own.iter().copied().chain(ghosts.into_iter().map(|ghost| ghost.1)).collect();
            prop_assert_eq!(part.ids(), &expected[..]);
            prop_assert_eq!(part.owned(), own.len());
            let local = part.values(&ptr, &values);
            for (row, &global) in own.iter().enumerate() {
                let global = global as usize;
                let here = part.ptr()[row]..part.ptr()[row + 1];
                let columns: Vec<usize> =
                    part.idx()[here.clone()].iter().map(|&c| part.ids()[c as usize] as usize).collect();
                prop_assert_eq!(&columns[..], &idx[ptr[global]..ptr[global + 1]]);
                prop_assert_eq!(&local[here], &values[ptr[global]..ptr[global + 1]]);
            }
        }
        let parts: Vec<Owned> = csr
            .parts
            .iter()
            .map(|part| Owned { ids: part.ids().to_vec(), owned: part.owned() })
            .collect();
        prop_assert_eq!(csr.layouts(), Layout::from_owned(&parts).unwrap());
    }

    #[test]
    fn images_give_their_layouts_back(ids in id_lists(), block in 1usize..4) {
        let small: Vec<Vec<u64>> =
            ids.iter().map(|list| list.iter().copied().filter(|&id| id < 100).collect()).collect();
        let layout = Layout::from_shared_ids(&small).unwrap();
        let machine = build::machine("ring:8", |_| ());
        let image = build::build(&machine, layout.set("halo", block).unwrap());
        prop_assert_eq!(&Layout::from_image(&image, "halo", block, &small).unwrap(), &layout);
        if !layout.is_empty() {
            let error = Layout::from_image(&image, 0, 5 * block, &small);
            let blocks = matches!(error, Err(LayoutError::NoBlocks { .. }));
            prop_assert!(blocks, "{:?}", error);
        }
    }
}

/// Each id owned by one of its holders.
fn owned(ids: &[Vec<u64>], choices: &[prop::sample::Index]) -> Vec<Owned> {
    let mut holders: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (cell, list) in ids.iter().enumerate() {
        for &id in list {
            holders.entry(id).or_default().push(cell);
        }
    }
    let owner: BTreeMap<u64, usize> = holders
        .iter()
        .zip(choices.iter().cycle())
        .map(|((&id, cells), choice)| (id, cells[choice.index(cells.len())]))
        .collect();
    let part = |(cell, list): (usize, &Vec<u64>)| {
        let (own, ghosts): (Vec<u64>, Vec<u64>) = list.iter().partition(|id| owner[id] == cell);
        Owned { owned: own.len(), ids: [own, ghosts].concat() }
    };
    ids.iter().enumerate().map(part).collect()
}

#[test]
fn odd_inputs_have_layouts() {
    let none: [Vec<u64>; 0] = [];
    assert_eq!(Layout::from_shared_ids(&none).unwrap().cells(), 0);
    let one = Layout::from_shared_ids(&[[7u64, 9, 8]]).unwrap();
    assert_eq!((one.len(), one.items_of(CellId(0))), (0, 3));
    assert!(one.set("halo", 1).unwrap().is_empty());
    let apart = Layout::from_shared_ids(&[vec![1u64], vec![], vec![2]]).unwrap();
    assert!(apart.is_empty());
    // An id on all cells.
    let everywhere = Layout::from_shared_ids(&vec![[u64::MAX]; 64]).unwrap();
    assert_eq!(everywhere.len(), 64 * 63);
    assert_eq!(everywhere.set("halo", 3).unwrap().words(), 64 * 63 * 3);
    // Ids beyond 32 bits cannot be nodes.
    assert!(everywhere.set("halo", 1).unwrap().nodes().is_none());
    let csr = Layout::from_csr::<u32>(&[0], &[], &[], 3).unwrap();
    assert_eq!((csr.parts.len(), csr.forward.len()), (3, 0));
}

#[test]
fn a_million_ids() {
    // Blocks of a grid of 101^3 nodes that share their faces, on 64 cells.
    let span = |block: u64| (block * 25)..=(block * 25 + 25);
    let ids: Vec<Vec<u64>> = (0..64u64)
        .map(|cell| {
            let (x, y, z) = (span(cell % 4), span(cell / 4 % 4), span(cell / 16));
            let plane = |z: u64| {
                y.clone().flat_map({
                    let x = x.clone();
                    move |y| x.clone().map(move |x| x + 101 * (y + 101 * z))
                })
            };
            z.flat_map(plane).collect()
        })
        .collect();
    assert_eq!(ids.iter().map(Vec::len).sum::<usize>(), 64 * 26 * 26 * 26);
    let layout = Layout::from_shared_ids(&ids).unwrap();
    // Faces, edges and corners between blocks, both ways.
    let (faces, edges, corners) = (3 * 48, 2 * 3 * 36, 4 * 27);
    assert_eq!(layout.len(), 2 * (faces + edges + corners));
    let words = 2 * (faces * 26 * 26 + edges * 26 + corners);
    assert_eq!(layout.set("halo", 1).unwrap().words(), words as u64);
}

#[test]
fn a_matrix_of_a_million_rows() {
    let n = 1000usize;
    let (mut ptr, mut idx) = (vec![0u32], Vec::new());
    for row in 0..n * n {
        let (x, y) = (row % n, row / n);
        let neighbours = [
            (y > 0).then(|| row - n),
            (x > 0).then(|| row - 1),
            Some(row),
            (x + 1 < n).then(|| row + 1),
            (y + 1 < n).then(|| row + n),
        ];
        idx.extend(neighbours.into_iter().flatten().map(|column| column as u32));
        ptr.push(idx.len() as u32);
    }
    // Stripes of 100 lines.
    let owner: Vec<u32> = (0..n * n).map(|row| (row / (100 * n)) as u32).collect();
    let csr = Layout::from_csr(&ptr, &idx, &owner, 16).unwrap();
    assert_eq!((csr.forward.len(), csr.backward.len()), (18, 18));
    assert_eq!(csr.forward.set("halo", 2).unwrap().words(), 18 * 2 * n as u64);
    assert_eq!(csr.parts.iter().map(|part| part.idx().len()).sum::<usize>(), idx.len());
    assert_eq!(csr.parts[1].ids().len(), 102 * n);
}

fn text<T: std::fmt::Debug>(result: Result<T, LayoutError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn errors_name_cell_and_id() {
    let part = |ids: &[u64], owned| Owned { ids: ids.to_vec(), owned };
    let shared = |ids: &[&[u64]]| text(Layout::from_shared_ids(ids));
    assert_eq!(
        shared(&[&[1], &[5, 3, 5]]),
        "c1 lists id 5 twice, at positions 0 and 2; number the entries of one cell apart"
    );
    let owned = |parts: &[Owned]| text(Layout::from_owned(parts));
    assert_eq!(
        owned(&[part(&[1, 2], 2), part(&[2], 1)]),
        "id 2 is owned by c0 and by c1; expected one owner, ghosts elsewhere"
    );
    assert_eq!(
        owned(&[part(&[1], 1), part(&[2, 9], 1)]),
        "c1 has id 9 as a ghost, and no cell owns it"
    );
    assert_eq!(
        owned(&[part(&[], 0), part(&[2], 2)]),
        "c1 owns its first 2 ids and lists 1; the owned ones are part of the list"
    );
    let csr = |ptr: &[i32], idx: &[i32], owner: &[u32]| text(Layout::from_csr(ptr, idx, owner, 2));
    assert_eq!(csr(&[], &[], &[]), "row pointers: none, expected one more than there are rows");
    assert_eq!(csr(&[0, 2, 1], &[0, 1], &[0, 0]), "row pointers: pointer 2 is 1, expected 2 to 2");
    assert_eq!(csr(&[0, -1], &[0], &[0]), "row pointers: pointer 1 is -1, expected 0 to 1");
    assert_eq!(csr(&[1, 1], &[0], &[0]), "row pointers: from 1 to 1, expected 0 to 1");
    assert_eq!(csr(&[0, 1], &[0], &[]), "0 owners for 1 rows");
    assert_eq!(csr(&[0, 1], &[0], &[2]), "row 0 is owned by cell 2, expected one of 2 cells");
    for column in [-1, 1] {
        let expected =
            format!("row 0 has column {column}, expected one of 1: the matrix must be square");
        assert_eq!(csr(&[0, 1], &[column], &[1]), expected);
    }
    let layout = Layout::from_shared_ids(&[[1u64], [1]]).unwrap();
    let place = |place: &[u32], cells| {
        let place: Vec<CellId> = place.iter().map(|&cell| CellId(cell)).collect();
        text(layout.placed(&place, cells))
    };
    assert_eq!(place(&[1], 3), "1 places for 2 parts");
    assert_eq!(place(&[1, 3], 3), "part 1 is placed on c3, expected one of 3 cells");
    assert_eq!(place(&[1, 1], 3), "parts 0 and 1 are both placed on c1");
    assert!(layout.set("halo", 0).is_err());
    assert!(layout.set("no name", 1).is_err());
    assert!(layout.set("halo", 1 << 31).is_err());
}

#[test]
fn too_many_copies_are_refused_before_they_are_made() {
    let ids = vec![[3u64]; 50_000];
    assert!(text(Layout::from_shared_ids(&ids)).contains("id 3 alone is on 50000 cells"));
    let ids = vec![[0u64; 0]; 1 << 21];
    assert_eq!(text(Layout::from_shared_ids(&ids)), "2097152 cells, at most 1048576");
}

#[test]
fn layouts_of_images_say_what_is_missing() {
    let machine = build::machine("ring:3", |_| ());
    let lists = [vec![4u32, 9], vec![9]];
    let connections =
        vec![Connection::new(CellId(0), CellId(1), 2), Connection::new(CellId(1), CellId(2), 1)];
    let plain = ConnectionSet::new("plain", connections.clone()).unwrap();
    let nodes = NodeLists::from_lists(lists.iter().map(Vec::as_slice));
    let halo = ConnectionSet::new("halo", connections).unwrap().with_nodes(nodes).unwrap();
    let image = build::build_all(&machine, [plain, halo]);
    let ids = [vec![9u64, 4], vec![4, 8, 9], vec![9]];
    let layout = Layout::from_image(&image, "halo", 1, &ids).unwrap();
    assert_eq!(rows(&layout), [(0, 1, vec![(4, 1, 0), (9, 0, 2)]), (1, 2, vec![(9, 2, 0)])]);
    assert!(!layout.is_shared(), "c2's copy of 9 goes nowhere");
    assert_eq!(text(Layout::from_image(&image, "x", 1, &ids)), "the image has no set \"x\"");
    assert!(text(Layout::from_image(&image, "plain", 1, &ids)).contains("carries no lists"));
    assert_eq!(
        text(Layout::from_image(&image, "halo", 1, &ids[..2])),
        "x1 of set `halo` ends at c2, and ids were given for 2 cells"
    );
    let without = [vec![9u64, 4], vec![8, 9], vec![9]];
    assert_eq!(
        text(Layout::from_image(&image, "halo", 1, &without)),
        "c1 has no id 4, which x0 of set `halo` carries"
    );
}

#[test]
fn parts_take_their_places() {
    let layout = Layout::from_shared_ids(&[vec![1u64, 2], vec![2, 1, 3]]).unwrap();
    let placed = layout.placed(&[CellId(3), CellId(1)], 5).unwrap();
    assert_eq!(placed.cells(), 5);
    assert_eq!((0..5).map(|c| placed.items_of(CellId(c))).collect::<Vec<_>>(), [0, 3, 0, 2, 0]);
    assert_eq!(
        rows(&placed),
        [(3, 1, vec![(1, 0, 1), (2, 1, 0)]), (1, 3, vec![(1, 1, 0), (2, 0, 1)]),]
    );
}
