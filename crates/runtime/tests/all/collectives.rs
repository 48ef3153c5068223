//! Trees walked on machines of all sizes, against the same sums done directly.

use std::sync::Arc;

use conset_runtime::ir::{CellId, ConnectionSet, Image, Machine};
use conset_runtime::{
    Cell, CellError, Collectives, Number, Op, RunError, ThreadOptions, Transport, World, tree_sets,
    tree_sets_named,
};
use proptest::prelude::*;

use crate::common::build;
use crate::tree_cases::{self, branch, in_phases as with_trees, in_steps};

/// Without the set that goes both ways.
fn with_two_trees(machine: &Arc<Machine>, words: u32) -> Arc<Image> {
    let [reduce, broadcast, _] = tree_sets(machine, words).unwrap();
    build::build_all(machine, [reduce, broadcast])
}

/// Machines of many sizes, some in need of several phases.
fn machines() -> Vec<Arc<Machine>> {
    let specs = ["ring:1", "ring:2", "ring:3", "ring:7", "mesh:5x3", "torus:4x4", "torus:2x2x3"];
    let mut machines: Vec<Arc<Machine>> = specs
        .iter()
        .flat_map(|spec| [2, 3, 12].map(|n| build::machine(spec, |p| p.channels_per_cell = n)))
        .collect();
    machines.push(build::machine("iwarp-fem", |_| ()));
    for dead in [vec![0], vec![3, 4, 8], (1..9).collect()] {
        let whole = Machine::from_spec("torus:3x3").unwrap();
        let (topology, parameters) = (whole.topology().clone(), whole.parameters().clone());
        let dead = dead.into_iter().map(CellId).collect();
        let machine = Machine::new("holes", topology, parameters, dead, Vec::new()).unwrap();
        machines.push(Arc::new(machine));
    }
    machines
}

fn rank(cells: &[CellId], cell: CellId) -> usize {
    cells.iter().position(|&other| other == cell).unwrap()
}

fn check<W: Number + std::fmt::Debug + Send + Sync>(
    image: &Arc<Image>,
    op: Op,
    values: &[Vec<W>],
    from: CellId,
) {
    let threads = |workers| Transport::Threads(ThreadOptions::workers(workers));
    for transport in [Transport::Fabric, threads(1), threads(3)] {
        check_on(transport, image, op, values, from);
    }
}

fn check_on<W: Number + std::fmt::Debug + Send + Sync>(
    transport: Transport,
    image: &Arc<Image>,
    op: Op,
    values: &[Vec<W>],
    from: CellId,
) {
    let cells: Vec<CellId> = image.machine().endpoints().collect();
    let trees = Collectives::new(image).unwrap();
    assert_eq!(trees.root(), cells[0]);
    let (found, report) = World::new(image.clone())
        .on(transport)
        .try_run(|cell| {
            let own = &values[rank(&cells, cell.id())];
            let (mut all, mut root, mut one) = (own.clone(), own.clone(), own.clone());
            cell.allreduce(&trees, op, &mut all)?;
            cell.reduce(&trees, op, &mut root)?;
            cell.broadcast(&trees, from, &mut one)?;
            cell.barrier(&trees)?;
            Ok([all, root, one])
        })
        .unwrap();
    let bits = |x: &[W]| x.iter().map(|&x| x.to_bits()).collect::<Vec<_>>();
    let sums = bits(&branch(values, op, 0));
    let chosen = bits(&values[rank(&cells, from)]);
    for (node, [all, root, one]) in found.iter().enumerate() {
        assert_eq!(bits(all), sums, "{} {op:?} at {}", image.machine().name(), cells[node]);
        assert_eq!(bits(root), bits(&branch(values, op, node)));
        assert_eq!(bits(one), chosen, "{} from {from} at {}", image.machine().name(), cells[node]);
    }
    if cells.len() == 1 {
        assert_eq!(report.clocks, 0);
    }
}

#[test]
fn trees_of_all_machines_add_up() {
    for machine in machines() {
        let cells: Vec<CellId> = machine.endpoints().collect();
        for words in [1, 3] {
            let image = with_trees(&machine, words);
            for length in [0usize, 1, 2, 3, 7] {
                let value = |c: usize, i: usize| {
                    1.0 / (1.0 + c as f64) * 1e3f64.powi((c + i) as i32 % 9 - 4)
                };
                let values: Vec<Vec<f64>> =
                    (0..cells.len()).map(|c| (0..length).map(|i| value(c, i)).collect()).collect();
                let from = cells[(length * 5 + 1) % cells.len()];
                for op in [Op::Add, Op::Min, Op::Max] {
                    check(&image, op, &values, from);
                }
                check(&with_two_trees(&machine, words), Op::Add, &values, from);
            }
        }
    }
}

#[test]
fn all_words_are_reduced() {
    let image = with_trees(&build::machine("ring:6", |_| ()), 2);
    let from = CellId(5);
    check(&image, Op::Add, &vec![vec![u64::MAX]; 6], from);
    check(&image, Op::Min, &(0..6).map(|c| vec![c - 3i64, -c]).collect::<Vec<_>>(), from);
    check(&image, Op::Max, &(0..6).map(|c| vec![-0.0f32, c as f32]).collect::<Vec<_>>(), from);
    check(&image, Op::Max, &(0..6u32).map(|c| vec![c, 7 - c, 1]).collect::<Vec<_>>(), from);
    check(&image, Op::Add, &(0..6i32).map(|c| vec![i32::MAX - c]).collect::<Vec<_>>(), from);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_cells_may_be_dead(
        dead in prop::collection::btree_set(0u32..12, 0..12),
        words in 1u32..4,
        values in prop::collection::vec(prop::collection::vec(any::<f64>(), 5), 12),
        from in any::<prop::sample::Index>(),
    ) {
        // Every cell beside every other, so that none is cut off.
        let links = (0..12u32).flat_map(|a| (0..12).filter(move |&b| b != a).map(move |b| (a, b)));
        let topology = conset_runtime::ir::Topology::Graph { cells: 12, switches: 0, links: links.collect() };
        let parameters = Machine::from_spec("iwarp").unwrap().parameters().clone();
        let dead: Vec<CellId> = dead.into_iter().map(CellId).collect();
        let live = 12 - dead.len();
        let Ok(machine) = Machine::new("some", topology, parameters, dead, Vec::new()) else {
            prop_assert_eq!(live, 0);
            return Ok(());
        };
        let machine = Arc::new(machine);
        prop_assume!(live > 0);
        let cells: Vec<CellId> = machine.endpoints().collect();
        check(&with_trees(&machine, words), Op::Min, &values[..live], cells[from.index(live)]);
    }
}

#[test]
fn a_barrier_waits_for_the_last() {
    let image = with_trees(&build::machine("mesh:3x3", |_| ()), 1);
    let trees = Collectives::new(&image).unwrap();
    let (clocks, _) = World::new(image)
        .try_run(|cell| {
            cell.compute(if cell.id().0 == 5 { 10_000 } else { 1 })?;
            cell.barrier(&trees)?;
            Ok(cell.clock())
        })
        .unwrap();
    assert!(clocks.iter().all(|&clock| clock > 10_000));
}

#[test]
fn what_is_no_tree_is_refused() {
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 12);
    let [reduce, broadcast, allreduce] = tree_sets(&machine, 2).unwrap();
    assert!(tree_sets(&machine, 0).is_err());
    let renamed = |name: &str, pairs: &[(u32, u32, u32)]| {
        let set = build::set(pairs);
        ConnectionSet::new(name, set.connections().to_vec()).unwrap()
    };
    let error = |sets: Vec<ConnectionSet>| {
        Collectives::new(&build::build_all(&machine, sets)).unwrap_err().to_string()
    };
    let up = |pairs: &[(u32, u32, u32)]| error(vec![renamed("reduce", pairs), broadcast.clone()]);
    let down = |pairs: &[(u32, u32, u32)]| error(vec![reduce.clone(), renamed("broadcast", pairs)]);
    let both = |pairs: &[(u32, u32, u32)]| {
        error(vec![reduce.clone(), broadcast.clone(), renamed("allreduce", pairs)])
    };
    assert!(up(&[(1, 0, 2)]).contains("1 connections for 4 live cells"));
    assert!(up(&[(1, 0, 2), (2, 0, 2), (3, 2, 1)]).contains("x2 has 1 words, expected 2"));
    assert!(up(&[(1, 0, 2), (1, 2, 2), (3, 2, 2)]).contains("c1 sends more than once"));
    assert!(up(&[(1, 0, 2), (2, 3, 2), (3, 2, 2)]).contains("2 of 4 cells reach c0"));
    assert!(up(&[(1, 2, 2), (2, 3, 2), (3, 1, 2)]).contains("1 of 4 cells reach c0"));
    // Without order the parent may send before the child is heard.
    let early = [(2, 0, 2), (1, 0, 2), (3, 2, 2)];
    assert!(up(&early).contains("c2 sends x0 before it has what to send"));
    assert!(down(&[(0, 1, 2)]).contains("1 connections, expected 3"));
    let astray = down(&[(0, 1, 2), (0, 2, 2), (0, 3, 2)]);
    assert!(astray.contains("x2 goes from c0 to c3, which is not its way"), "{astray}");
    assert!(down(&[(0, 1, 2), (1, 0, 2), (2, 3, 2)]).contains("x1 goes from c1 to c0"));
    assert!(down(&[(0, 1, 2), (0, 1, 2), (2, 3, 2)]).contains("x1 goes from c0 to c1 once more"));
    assert!(down(&[(0, 1, 2), (0, 2, 2), (2, 3, 1)]).contains("x2 has 1 words, expected 2"));
    assert!(down(&[(2, 3, 2), (0, 1, 2), (0, 2, 2)]).contains("c2 sends x0 before"));
    assert!(both(&[(1, 0, 2)]).contains("1 connections, expected 6"));
    let early = [(0, 1, 2), (3, 2, 2), (2, 0, 2), (1, 0, 2), (0, 2, 2), (2, 3, 2)];
    assert!(both(&early).contains("c0 sends x0 before"));
    let pairs: Vec<(u32, u32, u32)> =
        allreduce.connections().iter().map(|c| (c.source.0, c.target.0, c.words)).collect();
    let whole = [reduce.clone(), broadcast.clone(), renamed("allreduce", &pairs)];
    assert!(Collectives::new(&build::build_all(&machine, whole)).is_ok());
    let none = Collectives::new(&build::build_all(&machine, [renamed("halo", &pairs)]));
    assert!(none.unwrap_err().to_string().contains("no set \"reduce\""));
    let alone = build::build_all(&build::machine("ring:1", |_| ()), []);
    assert_eq!(Collectives::new(&alone).unwrap().words(), 1);
}

#[test]
fn only_the_sets_that_are_walked_are_needed() {
    let machine = build::machine("ring:5", |_| ());
    let sets = tree_sets_named(&machine, 2, "wide-").unwrap();
    let names: Vec<&str> = sets.iter().map(ConnectionSet::name).collect();
    assert_eq!(names, ["wide-reduce", "wide-broadcast", "wide-allreduce"]);
    let reduce = "reduce needs the set `wide-reduce`";
    let both = |other: &str| {
        format!("needs the set `wide-allreduce` (or beside what there is `wide-{other}`)")
    };
    // What the image has; and what fails: reduce, allreduce, broadcast of the root and of another.
    for (there, problems) in [
        (
            vec![0],
            [None, Some(both("broadcast")), Some(both("broadcast")), Some(both("broadcast"))],
        ),
        (vec![1], [Some(reduce.to_owned()), Some(both("reduce")), None, Some(both("reduce"))]),
        (vec![2], [Some(reduce.to_owned()), None, None, None]),
        (vec![0, 1], [None, None, None, None]),
        (vec![1, 2], [Some(reduce.to_owned()), None, None, None]),
    ] {
        let there = there.iter().map(|&row: &usize| sets[row].clone());
        let image = build::build_all(&machine, there);
        assert!(Collectives::new(&image).is_err());
        let trees = Collectives::prefixed(&image, "wide-").unwrap();
        assert_eq!((trees.root(), trees.words()), (CellId(0), 2));
        for (call, problem) in problems.iter().enumerate() {
            let found = World::new(image.clone()).try_run(|cell| {
                let mut x = [1u32, 2, u32::from(cell.id() == CellId(3))];
                match call {
                    0 => cell.reduce(&trees, Op::Add, &mut x)?,
                    1 => cell.allreduce(&trees, Op::Add, &mut x)?,
                    _ => cell.broadcast(&trees, CellId([0, 3][call - 2]), &mut x)?,
                }
                Ok(x)
            });
            match (found, problem) {
                (Ok((found, _)), None) => {
                    let expected = [[5, 10, 1], [5, 10, 1], [1, 2, 0], [1, 2, 1]][call];
                    assert_eq!(found[0], expected);
                    assert!(call == 0 || found.iter().all(|x| *x == expected));
                }
                (Err(error), Some(problem)) => {
                    assert!(error.to_string().contains(problem), "{error}");
                }
                (found, problem) => panic!("{call}: {found:?}, expected {problem:?}"),
            }
        }
    }
}

/// Every value with its place, one after the other.
fn max_at(values: &[f64], at: &[u64]) -> (f64, u64) {
    let nan = values.iter().any(|x| x.is_nan());
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let has = |x: f64| if nan { x.is_nan() } else { x == most };
    let places = values.iter().zip(at).filter(|(x, _)| has(**x)).map(|(_, &at)| at);
    (if nan { f64::NAN } else { most }, places.min().unwrap())
}

#[test]
fn the_greatest_value_and_where_it_is() {
    let of = |n: usize, f: fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    for machine in machines() {
        let n = machine.endpoints().count();
        let at: Vec<u64> = (0..n).map(|i| (i * 5 % 7 + 100 * (n - i)) as u64).collect();
        let cases = [
            of(n, |i| (i * 7 % 11) as f64),
            of(n, |_| -3.0),
            of(n, |i| if i % 3 == 1 { f64::NAN } else { i as f64 }),
            of(n, |_| f64::NEG_INFINITY),
        ];
        let cells: Vec<CellId> = machine.endpoints().collect();
        // One word takes two walks.
        for image in [with_trees(&machine, 1), with_trees(&machine, 3), with_two_trees(&machine, 2)]
        {
            let trees = Collectives::new(&image).unwrap();
            for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
                let world = World::new(image.clone()).on(transport);
                for values in &cases {
                    let (found, _) = world
                        .try_run(|cell| {
                            let rank = rank(&cells, cell.id());
                            cell.allreduce_max_at(&trees, values[rank], at[rank])
                        })
                        .unwrap();
                    let expected = max_at(values, &at);
                    let same = |found: &(f64, u64)| {
                        found.0 == expected.0 || found.0.is_nan() && expected.0.is_nan()
                    };
                    assert!(found.iter().all(|f| same(f) && f.1 == expected.1), "{found:?}");
                }
            }
        }
    }
}

#[test]
fn value_and_place_take_one_walk() {
    let machine = build::machine("torus:4x4", |_| ());
    let switches = |words| {
        let image = with_trees(&machine, words);
        let trees = Collectives::new(&image).unwrap();
        let run = World::new(image).try_run(|cell| {
            let id = cell.id().0;
            cell.allreduce_max_at(&trees, -i64::from(id / 2), u64::from(id))
        });
        let (found, report) = run.unwrap();
        assert!(found.iter().all(|&found| found == (0, 0)));
        report.switches
    };
    assert_eq!(2 * switches(2), switches(1));
}

#[test]
fn misuse_is_an_error() {
    let image = with_trees(&build::machine("ring:3", |_| ()), 1);
    let trees = Collectives::new(&image).unwrap();
    let other = World::new(with_trees(&build::machine("ring:3", |_| ()), 1));
    let error = other.try_run(|cell| cell.barrier(&trees)).unwrap_err().to_string();
    assert!(error.contains("another image"), "{error}");
    let error = World::new(image).try_run(|cell| cell.broadcast(&trees, CellId(3), &mut [0.0]));
    assert_eq!(
        error.unwrap_err().to_string(),
        "c0: c3 is not one of the live cells of the tree `reduce`"
    );
}

fn transports() -> [Transport; 3] {
    let threads = |workers| Transport::Threads(ThreadOptions::workers(workers));
    [Transport::Fabric, threads(1), threads(3)]
}

/// Arrays of any length, several times what the trees carry, give the same bits on all transports,
/// compiled to phases and to steps.
#[test]
fn arrays_of_any_length_and_steps() {
    for spec in ["ring:1", "ring:2", "ring:7", "mesh:4x3"] {
        let machine = build::machine(spec, |_| ());
        for image in [with_trees(&machine, 3), in_steps(&machine, 2)] {
            let trees = Collectives::new(&image).unwrap();
            for transport in transports() {
                let world = World::new(image.clone()).on(transport);
                let (wrong, _) = world
                    .try_run(|cell| {
                        tree_cases::wrong_results(cell, &trees, &[1, 2, 40, 3, 0, 7, 1, 1])
                    })
                    .unwrap();
                assert_eq!(wrong.iter().sum::<usize>(), 0, "{spec}");
            }
        }
    }
}

/// A message of the program that was not read is never taken for what comes over an edge.
#[test]
fn own_messages_are_not_those_of_trees() {
    for spec in ["fat-tree:8", "fat-tree:13", "ring:2"] {
        let image = in_steps(&Arc::new(Machine::from_spec(spec).unwrap()), 1);
        let trees = Collectives::new(&image).unwrap();
        for transport in transports() {
            let world = World::new(image.clone()).on(transport);
            let run = world.try_run(|cell| tree_cases::with_own_messages(cell, &trees));
            let (wrong, _) = run.unwrap();
            assert_eq!(wrong.iter().sum::<usize>(), 0, "{spec}");
        }
    }
}

/// A program on all transports, of an image in phases and of one in steps: the errors.
fn errors_of(
    program: impl Fn(&mut Cell<'_>, &Collectives) -> Result<(), CellError> + Sync,
) -> Vec<RunError> {
    let mut errors = Vec::new();
    let machine = build::machine("ring:6", |_| ());
    for image in [with_trees(&machine, 4), in_steps(&machine, 4)] {
        let trees = Collectives::new(&image).unwrap();
        for transport in transports() {
            let world = World::new(image.clone()).on(transport);
            errors.push(world.try_run(|cell| program(cell, &trees)).unwrap_err());
        }
    }
    errors
}

#[test]
fn unlike_calls_are_named() {
    let third = CellId(3);
    // Another length, operation, type, source of a broadcast.
    let lengths = errors_of(|cell, trees| {
        let mut x = vec![1.0; if cell.id() == third { 2 } else { 3 }];
        cell.allreduce(trees, Op::Add, &mut x)
    });
    let operations = errors_of(|cell, trees| {
        cell.allreduce(trees, if cell.id() == third { Op::Max } else { Op::Add }, &mut [1.0])
    });
    let types = errors_of(|cell, trees| match cell.id() == third {
        true => cell.allreduce(trees, Op::Add, &mut [1u64]),
        false => cell.allreduce(trees, Op::Add, &mut [1.0f64]),
    });
    let sources = errors_of(|cell, trees| {
        cell.broadcast(trees, CellId(if cell.id() == third { 1 } else { 2 }), &mut [1.0])
    });
    let named = [
        (lengths, "sum of 2 f64", "sum of 3 f64"),
        (operations, "maximum of 1 f64", "sum of 1 f64"),
        (types, "of 1 u64", "of 1 f64"),
        (sources, "broadcast from c1", "broadcast from c2"),
    ];
    for (errors, own, others) in named {
        for error in errors {
            let text = error.to_string();
            assert!(matches!(error, RunError::Mismatch { .. }), "{text}");
            assert!(text.contains("c3 is in its 1st collective call"), "{text}");
            assert!(text.contains(own) && text.contains(others), "{text}");
        }
    }
    // A call that one cell skips, before another at another line.
    for error in errors_of(|cell, trees| {
        if cell.id() != third {
            cell.allreduce(trees, Op::Add, &mut [1.0])?;
        }
        cell.allreduce(trees, Op::Add, &mut [2.0])
    }) {
        assert!(matches!(error, RunError::Mismatch { .. }), "{error}");
    }
    // A cell that makes no call.
    for error in errors_of(|cell, trees| match cell.id() == third {
        true => Ok(()),
        false => cell.barrier(trees),
    }) {
        let text = error.to_string();
        assert!(text.contains("c3 has ended"), "{text}");
    }
}
