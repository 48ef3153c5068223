//! Sets between parts come to cells, with the sets that name cells already.

use std::sync::Arc;

use conset::ir::{CellId, Connection, ConnectionSet, Machine};
use conset::partition_route::placement::Method;
use conset::{Compiler, assemble};

fn machine(spec: &str) -> Arc<Machine> {
    Arc::new(Machine::from_spec(spec).unwrap())
}

fn set(name: &str, pairs: &[(u32, u32, u32)]) -> ConnectionSet {
    let connection = |&(from, to, words)| Connection::new(CellId(from), CellId(to), words);
    ConnectionSet::new(name, pairs.iter().map(connection).collect()).unwrap()
}

#[test]
fn all_sets_of_parts_get_one_placement() {
    // A ring of nine parts, numbered so that neighbours are far from each other.
    let ring: Vec<(u32, u32, u32)> = (0..9).map(|i| (i * 2 % 9, (i + 1) * 2 % 9, 7)).collect();
    let back: Vec<(u32, u32, u32)> = ring.iter().map(|&(a, b, _)| (b, a, 3)).collect();
    for spec in ["iwarp:3x3", "iwarp:4x4", "torus:3x3x2"] {
        let machine = machine(spec);
        for method in [Method::Given, Method::Best] {
            let of_parts = vec![set("forward", &ring), set("backward", &back)];
            let fixed = set("fixed", &[(0, 1, 2), (1, 0, 2)]);
            let done =
                assemble(Compiler::new(&machine), (9, of_parts.clone()), [fixed.clone()], method)
                    .unwrap();
            let mut cells = done.place.clone();
            cells.sort_unstable();
            cells.dedup();
            assert_eq!(cells.len(), 9, "a cell for each part");
            let sets = done.compiled.image().sets();
            let expected = of_parts.into_iter().map(|set| set.placed(&done.place).unwrap());
            for (found, expected) in sets.iter().zip(expected.chain([fixed])) {
                assert_eq!(*found.set, expected);
            }
            assert_eq!(sets.len(), 3);
        }
    }
}

#[test]
fn odd_inputs() {
    let all = |spec: &str, parts, sets: Vec<ConnectionSet>| {
        assemble(Compiler::new(&machine(spec)), (parts, sets), [], Method::default())
    };
    assert_eq!(all("ring:1", 1, vec![set("own", &[(0, 0, 1)])]).unwrap().place, [CellId(0)]);
    assert!(all("iwarp:2x2", 0, vec![]).unwrap().place.is_empty());
    assert_eq!(all("iwarp:2x2", 3, vec![set("none", &[])]).unwrap().place.len(), 3);
    let error = |parts, sets| all("iwarp:2x2", parts, sets).unwrap_err().to_string();
    assert!(error(5, vec![set("halo", &[])]).contains('5'));
    assert!(error(2, vec![set("halo", &[(0, 2, 1)])]).contains('2'));
    let twice = error(2, vec![set("halo", &[(0, 1, 1)]), set("halo", &[(1, 0, 1)])]);
    assert!(twice.contains("halo"), "{twice}");
}
