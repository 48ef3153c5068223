//! Exchanges by plans against the same done one after the other on the whole, bit by bit.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_runtime::ir::{CellId, ConnectionId, Image};
use conset_runtime::{
    By, Layout, Number, Op, Owned, Pending, Plan, PlanError, RunError, ThreadOptions, Transport,
    Word, World,
};
use proptest::prelude::*;

use crate::common::build;

const OPS: [Op; 4] = [Op::Copy, Op::Add, Op::Min, Op::Max];

/// The same on all transports.
const TRANSPORTS: [Transport; 4] = [Transport::Fabric, threads(1), threads(2), threads(5)];

const fn threads(workers: usize) -> Transport {
    Transport::Threads(ThreadOptions::workers(workers))
}

fn transports() -> impl Strategy<Value = Transport> {
    prop::sample::select(TRANSPORTS.to_vec())
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// Ids of up to eight cells.
fn id_lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let list = prop::collection::btree_set(0u64..10, 0..8)
        .prop_map(|ids| ids.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    prop::collection::vec(list, 1..8)
}

/// Numbers whose sums depend on the order.
fn values(ids: &[Vec<u64>], block: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut state = seed | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let exponent = (state >> 58) as i32 - 32;
        ((state >> 11) as f64 / 1e15 - 4.0) * 2f64.powi(exponent)
    };
    ids.iter().map(|ids| (0..ids.len() * block).map(|_| next()).collect()).collect()
}

fn bits<W: Word>(vectors: &[Vec<W>]) -> Vec<Vec<u64>> {
    vectors.iter().map(|v| v.iter().map(|&x| x.to_bits()).collect()).collect()
}

/// What is there first, then the connections in their order.
fn exchanged<W: Number>(layout: &Layout, op: Op, block: usize, x: &[Vec<W>]) -> Vec<Vec<W>> {
    let mut result = x.to_vec();
    for connection in (0..layout.len() as u32).map(ConnectionId) {
        let (source, target) = layout.ends_of(connection);
        let positions = layout.send_of(connection).iter().zip(layout.receive_of(connection));
        for (&from, &to) in positions {
            for word in 0..block {
                let value = x[source.index()][from as usize * block + word];
                let there = &mut result[target.index()][to as usize * block + word];
                *there = op.apply(*there, value);
            }
        }
    }
    result
}

/// All copies of an id in the order of the cells.
fn combined(ids: &[Vec<u64>], op: Op, block: usize, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut sums: BTreeMap<(u64, usize), f64> = BTreeMap::new();
    for (ids, x) in ids.iter().zip(x) {
        for (at, &id) in ids.iter().enumerate() {
            for word in 0..block {
                let value = x[at * block + word];
                sums.entry((id, word))
                    .and_modify(|sum| {
                        if op != Op::Copy {
                            *sum = op.apply(*sum, value);
                        }
                    })
                    .or_insert(value);
            }
        }
    }
    let of = |&id: &u64| (0..block).map(|word| sums[&(id, word)]).collect::<Vec<_>>();
    ids.iter().map(|ids| ids.iter().flat_map(of).collect()).collect()
}

/// The compiled sets of some layouts, called `s0`, `s1`, ..., on a machine of 8 cells.
fn image(spec: &str, layouts: &[&Layout], block: usize) -> Arc<Image> {
    let machine = build::machine(spec, |p| p.channels_per_cell = 6);
    let sets = layouts.iter().enumerate().map(|(i, l)| l.set(&format!("s{i}"), block).unwrap());
    build::build_all(&machine, sets)
}

fn plan(image: &Arc<Image>, set: usize, layout: &Layout, block: usize) -> Plan {
    Plan::new(image, set, layout.clone(), block).unwrap()
}

/// The vectors of all 8 cells: those without ids have none.
fn of_all<W: Clone>(x: &[Vec<W>]) -> Vec<Vec<W>> {
    let mut all = x.to_vec();
    all.resize(8, Vec::new());
    all
}

fn owned(ids: &[Vec<u64>]) -> Vec<Owned> {
    let holders = |id: u64| (0..ids.len()).filter(move |&c| ids[c].contains(&id));
    let owner = |id: u64| {
        let holders: Vec<usize> = holders(id).collect();
        holders[(id as usize * 7 + 3) % holders.len()]
    };
    let part = |(cell, list): (usize, &Vec<u64>)| {
        let (own, ghosts): (Vec<u64>, Vec<u64>) = list.iter().partition(|id| owner(**id) == cell);
        Owned { owned: own.len(), ids: [own, ghosts].concat() }
    };
    ids.iter().enumerate().map(part).collect()
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn exchanges_are_those_of_the_whole(
        ids in id_lists(),
        block in 1usize..4,
        seed in any::<u64>(),
        spec in prop::sample::select(vec!["ring:8", "torus:2x2x2", "mesh:4x2"]),
        transport in transports(),
    ) {
        let shared = Layout::from_shared_ids(&ids).unwrap();
        let parts = owned(&ids);
        let both = Layout::from_owned(&parts).unwrap();
        let image = image(spec, &[&shared, &both.forward, &both.backward], block);
        let layouts = [&shared, &both.forward, &both.backward];
        let plans: Vec<Plan> = (0..3).map(|i| plan(&image, i, layouts[i], block)).collect();
        let x = values(&ids, block, seed);
        let world = World::new(image).on(transport);
        for (layout, plan) in layouts.into_iter().zip(&plans) {
            for op in OPS {
                let (found, _) = world.try_run(|cell| {
                    let mut x = of_all(&x)[cell.id().index()].clone();
                    let mut by_messages = x.clone();
                    cell.exchange_nodes(plan, op, &mut x)?;
                    cell.exchange_nodes_by(By::Messages, plan, op, &mut by_messages)?;
                    Ok([x, by_messages])
                }).unwrap();
                let expected = bits(&of_all(&exchanged(layout, op, block, &x)));
                for way in 0..2 {
                    let found: Vec<Vec<f64>> = found.iter().map(|x| x[way].clone()).collect();
                    prop_assert_eq!(&bits(&found), &expected, "{:?} {}", op, way);
                }
            }
        }
    }

    #[test]
    fn copies_end_equal(
        ids in id_lists(),
        block in 1usize..4,
        seed in any::<u64>(),
        op in prop::sample::select(OPS.to_vec()),
        transport in transports(),
    ) {
        let shared = Layout::from_shared_ids(&ids).unwrap();
        let parts = owned(&ids);
        let both = Layout::from_owned(&parts).unwrap();
        let image = image("ring:8", &[&shared, &both.forward, &both.backward], block);
        let (all, forward, backward) = (
            plan(&image, 0, &shared, block),
            plan(&image, 1, &both.forward, block),
            plan(&image, 2, &both.backward, block),
        );
        let x = values(&ids, block, seed);
        let world = World::new(image).on(transport);
        let (found, _) = world.try_run(|cell| {
            let own = of_all(&x)[cell.id().index()].clone();
            let [mut phases, mut messages, mut halves] = [own.clone(), own.clone(), own];
            cell.combine_shared(&all, op, &mut phases)?;
            cell.combine_shared_by(By::Messages, &all, op, &mut messages)?;
            let token = cell.start_shared(&all, op, &halves)?;
            // What is not shared may change in between.
            let counts = all.multiplicity(cell.id());
            let unshared = |at: usize| counts[at / block] == 1;
            let before = halves.clone();
            (0..halves.len()).filter(|&at| unshared(at)).for_each(|at| halves[at] = f64::NAN);
            while !cell.test(&token)? {}
            cell.wait(&all, token, &mut halves)?;
            for at in (0..halves.len()).filter(|&at| unshared(at)) {
                assert!(halves[at].is_nan());
                halves[at] = before[at];
            }
            Ok([phases, messages, halves])
        }).unwrap();
        let expected = bits(&of_all(&combined(&ids, op, block, &x)));
        for way in 0..3 {
            let found: Vec<Vec<f64>> = found.iter().map(|x| x[way].clone()).collect();
            prop_assert_eq!(&bits(&found), &expected, "{}", way);
        }
        // The same by way of owners: other positions, the same bits.
        let lists: Vec<Vec<u64>> = parts.iter().map(|part| part.ids.clone()).collect();
        let x = values(&lists, block, seed);
        let (found, _) = world.try_run(|cell| {
            let mut x = of_all(&x)[cell.id().index()].clone();
            let mut by_messages = x.clone();
            cell.combine_owned(&backward, &forward, op, &mut x)?;
            cell.combine_owned_by(By::Messages, &backward, &forward, op, &mut by_messages)?;
            Ok([x, by_messages])
        }).unwrap();
        let expected = bits(&of_all(&combined(&lists, op, block, &x)));
        for way in 0..2 {
            let found: Vec<Vec<f64>> = found.iter().map(|x| x[way].clone()).collect();
            prop_assert_eq!(&bits(&found), &expected, "{}", way);
        }
    }

    #[test]
    fn several_vectors_travel_together(ids in id_lists(), seed in any::<u64>(), first in 1usize..3, transport in transports()) {
        let layout = Layout::from_shared_ids(&ids).unwrap();
        let (widths, block) = ([first, 1, 2], first + 3);
        let image = image("mesh:4x2", &[&layout], block);
        let plan = plan(&image, 0, &layout, block);
        let x = widths.map(|width| values(&ids, width, seed ^ width as u64));
        let (found, _) = World::new(image).on(transport).try_run(|cell| {
            let [mut a, mut b, mut c] = x.clone().map(|x| of_all(&x)[cell.id().index()].clone());
            cell.exchange_many(&plan, Op::Add, &mut [&mut a, &mut b, &mut c])?;
            Ok([a, b, c])
        }).unwrap();
        for (vector, &width) in widths.iter().enumerate() {
            let expected = of_all(&exchanged(&layout, Op::Add, width, &x[vector]));
            let found: Vec<Vec<f64>> = found.iter().map(|all| all[vector].clone()).collect();
            prop_assert_eq!(bits(&found), bits(&expected));
        }
    }

    #[test]
    fn exchanges_under_way_may_end_in_any_order(
        ids in id_lists(),
        seed in any::<u64>(),
        ops in prop::collection::vec((prop::sample::select(OPS.to_vec()), any::<bool>()), 1..5),
        // What each cell ends first, whether it asks before, and where others call in between.
        order in prop::collection::vec(any::<u64>(), 8),
        between in any::<bool>(),
        transport in transports(),
    ) {
        let shared = Layout::from_shared_ids(&ids).unwrap();
        let forward = Layout::from_owned(&owned(&ids)).unwrap().forward;
        let layouts = [&shared, &forward];
        let image = image("ring:8", &layouts, 1);
        let plans = [plan(&image, 0, &shared, 1), plan(&image, 1, &forward, 1)];
        let x: Vec<Vec<Vec<f64>>> = (0..=ops.len()).map(|i| values(&ids, 1, seed + i as u64)).collect();
        let (found, _) = World::new(image).on(transport).try_run(|cell| {
            let own = |i: usize| of_all(&x[i])[cell.id().index()].clone();
            let mut own: Vec<Vec<f64>> = (0..=ops.len()).map(own).collect();
            let mut pending = Vec::new();
            for (i, &(op, second)) in ops.iter().enumerate() {
                let plan = &plans[usize::from(second)];
                let mut packed = own[i].clone();
                pending.push((i, plan, cell.start(plan, op, &packed)?));
                packed.fill(f64::NAN);
            }
            if between {
                cell.exchange_nodes(&plans[0], Op::Add, &mut own[ops.len()])?;
            }
            let mut turn = order[cell.id().index()];
            while !pending.is_empty() {
                let (i, plan, token) = pending.remove(turn as usize % pending.len());
                turn /= 5;
                let token = Pending::from_numbers(token.to_numbers());
                if turn % 3 == 0 {
                    while !cell.test(&token)? {}
                }
                cell.wait(plan, token, &mut own[i])?;
            }
            Ok(own)
        }).unwrap();
        for i in 0..=ops.len() {
            let (op, layout) = match ops.get(i) {
                Some(&(op, second)) => (op, layouts[usize::from(second)]),
                None if between => (Op::Add, layouts[0]),
                None => continue,
            };
            let expected = of_all(&exchanged(layout, op, 1, &x[i]));
            let found: Vec<Vec<f64>> = found.iter().map(|own| own[i].clone()).collect();
            prop_assert_eq!(bits(&found), bits(&expected));
        }
    }
}

/// Copies of two values on a ring of four: ids 0 and 1 on all, and one each of their own.
fn small(cells: usize) -> (Layout, Arc<Image>) {
    let ids: Vec<[u64; 3]> = (0..cells as u64).map(|cell| [1, cell + 10, 0]).collect();
    let layout = Layout::from_shared_ids(&ids).unwrap();
    let machine = build::machine(&format!("ring:{cells}"), |_| ());
    let image = build::build_all(&machine, [layout.set("halo", 1).unwrap()]);
    (layout, image)
}

fn sums<W: Number + std::fmt::Debug + Send + Sync>(values: [W; 4], expected: W) {
    for transport in TRANSPORTS {
        sums_on(transport, values, expected);
    }
}

fn sums_on<W: Number + std::fmt::Debug + Send + Sync>(
    transport: Transport,
    values: [W; 4],
    expected: W,
) {
    let (layout, image) = small(4);
    let plan = Plan::new(&image, "halo", layout, 1).unwrap();
    let (found, _) = World::new(image)
        .on(transport)
        .try_run(|cell| {
            let own = values[cell.id().index()];
            let mut x = [own; 3];
            cell.sum_shared(&plan, &mut x)?;
            assert_eq!(x[1], own);
            Ok([x[0], x[2]])
        })
        .unwrap();
    assert_eq!(found, vec![[expected; 2]; 4]);
}

#[test]
fn all_words_are_numbers() {
    sums([1.5f64, 1e300, -1e300, 0.25], 0.25);
    sums([1e30f32, -1e30, 3.0, 4.0], 7.0);
    sums([u64::MAX, 1, 2, 3], 5);
    sums([i64::MAX, 1, 2, 3], i64::MIN + 5);
    sums([u32::MAX, 1, 2, 3], 5);
    sums([i32::MIN, -1, 2, 3], i32::MIN + 4);
}

#[test]
fn one_cell_exchanges_with_nobody() {
    for (cells, transport) in [1, 2].into_iter().flat_map(|n| TRANSPORTS.map(|t| (n, t))) {
        let (layout, image) = small(cells);
        let plan = Plan::new(&image, "halo", layout, 1).unwrap();
        let (found, _) = World::new(image)
            .on(transport)
            .try_run(|cell| {
                let mut x = [1.0, 2.0, f64::from(cell.id().0)];
                cell.sum_shared(&plan, &mut x)?;
                let token = cell.start(&plan, Op::Max, &x)?;
                cell.wait(&plan, token, &mut x)?;
                Ok(x)
            })
            .unwrap();
        let expected = if cells == 1 { [1.0, 2.0, 0.0] } else { [2.0, 2.0, 1.0] };
        assert_eq!(found, vec![expected; cells]);
    }
}

#[test]
fn plans_are_shared_by_worlds_and_threads() {
    let (layout, image) = small(4);
    let plan = Plan::new(&image, "halo", layout, 1).unwrap();
    let world = World::new(image).on(TRANSPORTS[2].clone());
    let run = || {
        let (found, _) = world
            .try_run(|cell| {
                let mut x = [1u64 << cell.id().0; 3];
                for _ in 0..20 {
                    cell.combine_shared(&plan, Op::Max, &mut x)?;
                }
                Ok(x[0])
            })
            .unwrap();
        assert_eq!(found, [8; 4]);
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(run);
        }
    });
}

fn refused(
    program: impl Fn(&mut conset_runtime::Cell<'_>, &Plan) -> Result<(), conset_runtime::CellError>
    + Sync,
) -> String {
    let (layout, image) = small(4);
    let plan = Plan::new(&image, "halo", layout, 1).unwrap();
    let error = World::new(image).try_run(|cell| program(cell, &plan)).unwrap_err();
    assert!(matches!(error, RunError::Cell { .. }), "{error}");
    error.to_string()
}

#[test]
fn misuse_is_an_error() {
    let (layout, image) = small(4);
    let other = Plan::new(&image, "halo", layout, 1).unwrap();
    assert!(refused(|cell, _| cell.sum_shared(&other, &mut [0.0; 3])).contains("another image"));
    assert_eq!(
        refused(|cell, plan| cell.sum_shared(plan, &mut [0.0; 4])),
        "c0: vector 0 has 4 words, expected a multiple of this cell's 3 items in the layout of `halo`"
    );
    assert_eq!(
        refused(|cell, plan| cell.sum_shared(plan, &mut [0.0; 6])),
        "c0: the vectors have 2 words for each item, and set `halo` carries 1"
    );
    assert_eq!(
        refused(|cell, plan| {
            let token = cell.start(plan, Op::Add, &[0.0; 3])?;
            cell.wait(plan, token, &mut [0.0; 3])?;
            cell.wait(plan, token, &mut [0.0; 3])
        }),
        "c0: this exchange of `halo` has been completed already"
    );
    for forged in [[0, 0, 0], [u64::MAX; 3]].map(Pending::from_numbers) {
        let message = refused(|cell, plan| cell.wait(plan, forged, &mut [0.0; 3]));
        assert!(message.contains("in this run or another"), "{message}");
    }
    assert_eq!(
        refused(|cell, plan| {
            let token = cell.start(plan, Op::Add, &[0.0f64; 3])?;
            cell.wait(plan, token, &mut [0.0f32; 3])
        }),
        "c0: this exchange of `halo` was started with f64 and is completed with f32"
    );
    assert_eq!(
        refused(|cell, plan| {
            let _leaked = cell.start(plan, Op::Add, &[0.0; 3])?;
            Ok(())
        }),
        "c0: the program returned with 1 exchanges started and not completed, the first of `halo`"
    );
    assert!(
        refused(|cell, plan| {
            loop {
                let _leaked = cell.start(plan, Op::Add, &[0.0; 3])?;
            }
        })
        .contains("4096 exchanges have been started and not completed")
    );
    let tokens = std::sync::Mutex::new(Vec::new());
    let of_other_cells = refused(|cell, plan| {
        let token = cell.start(plan, Op::Add, &[0.0; 3])?;
        tokens.lock().unwrap().push(token);
        let first = tokens.lock().unwrap()[0];
        cell.barrier_by(plan)?;
        cell.wait(plan, first, &mut [0.0; 3])
    });
    assert!(
        of_other_cells.contains("was started by c0 in this run or another"),
        "{of_other_cells}"
    );
    let stale = tokens.into_inner().unwrap()[0];
    let message = refused(|cell, plan| cell.test(&stale).and(cell.sum_shared(plan, &mut [0.0; 3])));
    assert!(message.contains("in this run or another"), "{message}");
}

/// A plan's exchange as a barrier.
trait BarrierBy {
    fn barrier_by(&mut self, plan: &Plan) -> Result<(), conset_runtime::CellError>;
}

impl BarrierBy for conset_runtime::Cell<'_> {
    fn barrier_by(&mut self, plan: &Plan) -> Result<(), conset_runtime::CellError> {
        self.sum_shared(plan, &mut [0.0; 3])
    }
}

#[test]
fn tokens_know_their_plan() {
    let (layout, image) = small(4);
    let plans = [(); 2].map(|()| Plan::new(&image, "halo", layout.clone(), 1).unwrap());
    let error = World::new(image).try_run(|cell| {
        let token = cell.start(&plans[0], Op::Add, &[0.0; 3])?;
        cell.wait(&plans[1], token, &mut [0.0; 3])
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "c0: this exchange was started with the plan of `halo`, not with this one of `halo`"
    );
}

#[test]
fn owners_do_not_sum_as_copies() {
    let parts = [vec![1u64, 2], vec![2]];
    let owned =
        [Owned { ids: parts[0].clone(), owned: 2 }, Owned { ids: parts[1].clone(), owned: 0 }];
    let forward = Layout::from_owned(&owned).unwrap().forward;
    let image = image("ring:2", &[&forward], 1);
    let plan = plan(&image, 0, &forward, 1);
    let error = World::new(image).try_run(|cell| {
        let items = plan.layout().items_of(cell.id());
        cell.sum_shared(&plan, &mut vec![0.0; items])
    });
    assert!(error.unwrap_err().to_string().contains("does not bring every copy to every other"));
}

#[test]
fn plans_fit_their_image_or_are_none() {
    let text = |result: Result<Plan, PlanError>| result.unwrap_err().to_string();
    let (layout, image) = small(3);
    assert_eq!(
        text(Plan::new(&image, "hallo", layout.clone(), 1)),
        "the image has no set \"hallo\"; it has halo"
    );
    assert!(text(Plan::new(&image, 0, layout.clone(), 0)).contains("0 words"));
    assert_eq!(
        text(Plan::new(&image, 0, layout.clone(), 2)),
        "x0 of set `halo` is c0 to c1, 2 words, the layout's c0 to c1, 2 items of 2 words; compile the set of this layout with this block"
    );
    assert_eq!(
        text(Plan::new(&image, 0, small(2).0, 1)),
        "set `halo` has 6 connections, the layout 2; compile the set of this layout"
    );
    let renamed = layout.placed(&[CellId(0), CellId(2), CellId(1)], 3).unwrap();
    assert!(text(Plan::new(&image, 0, renamed, 1)).contains("x0 of set `halo` is c0 to c1"));
    let others: Vec<[u64; 3]> = (0..3).map(|cell| [1, cell + 10, 2]).collect();
    let others = Layout::from_shared_ids(&others).unwrap();
    assert!(text(Plan::new(&image, 0, others, 1)).contains("carries other ids"));
    let five: Vec<[u64; 1]> = (0..5).map(|cell| [cell]).collect();
    let five = Layout::from_shared_ids(&five).unwrap();
    assert_eq!(
        text(Plan::new(&image, 0, five, 1)),
        "the layout has items on c3, and the machine has 3 cells"
    );
    assert!(Plan::new(&image, 0, layout, 1).is_ok());
}

/// The two ends of a connection need not cut its words into items alike.
#[test]
fn words_meet_words_whatever_the_items() {
    let far = u64::MAX - 10;
    let fine = Layout::from_shared_ids(&[[far, far + 1, far + 2, 5], [far + 2, far + 1, far, 6]]);
    let coarse = Layout::from_shared_ids(&[[7, far], [far, 8]]).unwrap();
    let fine = fine.unwrap();
    let image = build::build_all(&build::machine("ring:2", |_| ()), [fine.set("s", 2).unwrap()]);
    let plans = [plan(&image, 0, &fine, 2), plan(&image, 0, &coarse, 6)];
    for transport in TRANSPORTS {
        let (found, _) = World::new(image.clone())
            .on(transport)
            .try_run(|cell| {
                let first = cell.id() == CellId(0);
                let mut x: Vec<u32> = if first { (0..8).collect() } else { (20..32).collect() };
                cell.exchange_nodes(&plans[cell.id().index()], Op::Copy, &mut x)?;
                Ok(x)
            })
            .unwrap();
        assert_eq!(found[0], [20, 21, 22, 23, 24, 25, 6, 7]);
        assert_eq!(found[1], [0, 1, 2, 3, 4, 5, 26, 27, 28, 29, 30, 31]);
    }
}
