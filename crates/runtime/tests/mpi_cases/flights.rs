//! Exchanges that are begun, tested and ended.

use std::path::PathBuf;
use std::sync::Arc;

use conset_runtime::ir::{CellId, Connection, ConnectionId, ConnectionSet, Image, NodeLists};
use conset_runtime::mpi::Comm;
use conset_runtime::{
    Cell, CellError, Layout, Op, Pending, Plan, PlanUse, RunError, ThreadOptions, Transport, World,
};

use super::{fails, same_as_on_the_fabric};
use crate::build;

const OPS: [Op; 4] = [Op::Add, Op::Copy, Op::Min, Op::Max];

/// Numbers that every cell can draw alike, or each its own.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % limit
    }
}

/// A set with its lists, the words of an item, and the layout, called by a name.
fn shared(name: &str, ids: &[Vec<u64>], block: usize) -> (ConnectionSet, Layout, usize) {
    let layout = Layout::from_shared_ids(ids).unwrap();
    (layout.set(name, block).unwrap(), layout, block)
}

/// Connections to the next cell and to the cell itself, the one ordered before the other.
fn with_selves(name: &str, cells: u32) -> ConnectionSet {
    let pairs: Vec<(u32, u32)> = (0..cells).flat_map(|c| [(c, c), (c, (c + 1) % cells)]).collect();
    let connections = pairs.iter().map(|&(a, b)| Connection::new(CellId(a), CellId(b), 3));
    let order = (0..cells).map(|c| (ConnectionId(2 * c), ConnectionId(2 * c + 1)));
    // Every cell has the ids 0 to 5.
    let nodes: Vec<[u32; 3]> = (0..2 * cells).map(|x| [x % 6, (x + 1) % 6, (x + 4) % 6]).collect();
    let nodes = NodeLists::from_lists(nodes.iter().map(|list| &list[..]));
    let set = ConnectionSet::new(name, connections.collect()).unwrap();
    set.with_order(order.collect()).unwrap().with_nodes(nodes).unwrap()
}

/// Plans of several sets on a machine; one set is empty, and one has `large` shared ids.
fn plans(spec: &str, channels: u32, large: u64) -> (Arc<Image>, Vec<Plan>) {
    let machine = build::machine(spec, |p| p.channels_per_cell = channels);
    let cells = machine.agent_count() as u64;
    let each = |list: &dyn Fn(u64) -> Vec<u64>| (0..cells).map(list).collect::<Vec<_>>();
    let ring = each(&|c| vec![c, 100, (c + 1) % cells + 1000 * u64::from(cells < 2), 200 + c]);
    let apart = each(&|c| vec![c, 100 + c]);
    let pairs = each(&|c| (0..large).map(|i| c / 2 * large + i).collect());
    let sets = [
        shared("ring", &ring, 1),
        shared("blocks", &ring, 3),
        shared("none", &apart, 1),
        shared("pairs", &pairs, 1),
    ];
    let selves = with_selves("selves", cells as u32);
    let all = sets.iter().map(|(set, ..)| set.clone()).chain([selves]);
    let image = build::build_all(&machine, all);
    let ids = each(&|_| (0..6).collect());
    let layout = Layout::from_image(&image, "selves", 1, &ids).unwrap();
    let layouts = sets.into_iter().map(|(_, layout, block)| (layout, block)).chain([(layout, 1)]);
    let plan = |(set, (layout, block))| Plan::new(&image, set, layout, block).unwrap();
    let plans = layouts.enumerate().map(plan).collect();
    (image, plans)
}

/// Begins, tests, ends, and exchanges at once, as drawn: what all must do alike by `seed`, when to
/// test and what to end by the cell.
fn drawn(cell: &mut Cell<'_>, plans: &[Plan], seed: u64) -> Result<u64, CellError> {
    let mut all = Random::new(seed);
    let mut own = Random::new(seed + 1000 * (u64::from(cell.id().0) + 1));
    let length = |plan: &Plan| plan.layout().items_of(cell.id()) * plan.block();
    let number = |i: usize| (i as f64 + 0.3) * 10f64.powi((i % 7) as i32 * 5 - 15);
    let mut vectors: Vec<Vec<f64>> =
        plans.iter().map(|plan| (0..length(plan)).map(number).collect()).collect();
    let mut flights: Vec<(usize, Pending)> = Vec::new();
    let end = |cell: &mut Cell<'_>, (plan, token): (usize, Pending), x: &mut [Vec<f64>]| {
        cell.wait(&plans[plan], token, &mut x[plan])
    };
    for _ in 0..60 {
        let (what, plan, op) = (all.below(12), all.below(plans.len()), OPS[all.below(4)]);
        let x = &mut vectors[plan];
        match what {
            0..=7 => {
                flights.push((plan, cell.start(&plans[plan], op, x)?));
                x.iter_mut().for_each(|x| *x *= 0.25);
            }
            8..=9 => cell.exchange_nodes(&plans[plan], op, x)?,
            10 => cell.instantiate_phase("selves/p0")?,
            _ => cell.instantiate_messages()?,
        }
        while !flights.is_empty() && own.below(3) > 0 {
            let at = own.below(flights.len());
            // How often a test says no depends on the transport, and nothing else may.
            cell.test(&flights[at].1)?;
            if own.below(3) == 0 {
                end(cell, flights.swap_remove(at), &mut vectors)?;
            }
        }
    }
    while !flights.is_empty() {
        let at = own.below(flights.len());
        let ask = own.below(2) > 0;
        while ask && !cell.test(&flights[at].1)? {}
        end(cell, flights.swap_remove(at), &mut vectors)?;
    }
    let bits = vectors.iter().flatten().map(|x| x.to_bits());
    Ok(bits.fold(0, |digest: u64, bits| (digest.rotate_left(7) ^ bits).wrapping_mul(0x0100_0193)))
}

pub(super) fn as_elsewhere(comm: &Comm) {
    let n = comm.size();
    // One cell to a rank, several, and ranks without cells; sets of one and of several phases.
    let machines = [
        (format!("ring:{n}"), 8, 1000),
        (format!("ring:{n}"), 2 * n as u32, 5000),
        (format!("ring:{}", 2 * n + 1), 40, 7),
        ("mesh:3x2".to_owned(), 3, 3),
        ("ring:1".to_owned(), 4, 3),
        ("ring:2".to_owned(), 4, 3),
        ("torus:3x3x2".to_owned(), 8, 3),
    ];
    for (row, (spec, channels, large)) in machines.iter().enumerate() {
        let (image, plans) = plans(spec, *channels, *large);
        for seed in 0..3 {
            let program = |cell: &mut Cell<'_>| drawn(cell, &plans, row as u64 * 10 + seed);
            same_as_on_the_fabric(comm, &image, program);
            let world = World::new(image.clone()).on(Transport::Mpi(comm.clone()));
            let (own, _) = world.try_run(program).unwrap();
            let threads = Transport::Threads(ThreadOptions::workers(2));
            let (all, _) = World::new(image.clone()).on(threads).try_run(program).unwrap();
            let cells: Vec<CellId> = image.machine().endpoints().collect();
            for (cell, own) in world.own_cells().iter().zip(own) {
                assert_eq!(own, all[cells.binary_search(cell).unwrap()], "{cell} of {spec}");
            }
        }
    }
}

/// Every exchange brings what was sent in it, however many are under way.
pub(super) fn own_words(comm: &Comm) {
    let n = comm.size();
    for (spec, channels) in [(format!("ring:{n}"), 8), (format!("ring:{}", 2 * n + 1), 40)] {
        let (image, plans) = plans(&spec, channels, 1000);
        let world = World::new(image.clone()).on(Transport::Mpi(comm.clone()));
        for seed in 0..20 {
            world.try_run(|cell| numbered(cell, &plans, seed)).unwrap();
        }
    }
}

/// Sends the number of the step in all words, and looks for it in what comes.
fn numbered(cell: &mut Cell<'_>, plans: &[Plan], seed: u64) -> Result<(), CellError> {
    let mut all = Random::new(seed);
    let mut own = Random::new(seed + 1000 * (u64::from(cell.id().0) + 1));
    let mut flights: Vec<(usize, u64, Pending)> = Vec::new();
    for step in 1..200u64 {
        let plan = all.below(plans.len());
        let x = vec![step; plans[plan].layout().items_of(cell.id()) * plans[plan].block()];
        flights.push((plan, step, cell.start(&plans[plan], Op::Copy, &x)?));
        while !flights.is_empty() && own.below(3) > 0 {
            let at = own.below(flights.len());
            cell.test(&flights[at].2)?;
            if own.below(3) == 0 {
                let (plan, step, token) = flights.swap_remove(at);
                let mut x =
                    vec![step; plans[plan].layout().items_of(cell.id()) * plans[plan].block()];
                cell.wait(&plans[plan], token, &mut x)?;
                for (i, &x) in x.iter().enumerate() {
                    assert_eq!(x, step, "{} set {plan} word {i} step {step}: {x}", cell.id());
                }
            }
        }
    }
    for (plan, _, token) in flights {
        let mut x = vec![0u64; plans[plan].layout().items_of(cell.id()) * plans[plan].block()];
        cell.wait(&plans[plan], token, &mut x)?;
    }
    Ok(())
}

/// Neighbours round a ring share an id, in one phase.
fn neighbours(cells: usize) -> (Arc<Image>, Plan) {
    let n = cells as u64;
    let ids: Vec<Vec<u64>> = (0..n).map(|c| vec![c, (c + 1) % n]).collect();
    let (set, layout, block) = shared("s", &ids, 1);
    let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 16);
    let image = build::build_all(&machine, [set]);
    assert_eq!(image.sets()[0].phases.len(), 1);
    let plan = Plan::new(&image, "s", layout, block).unwrap();
    (image, plan)
}

/// A rank that is in its own code between begin and end has sent what it began with: it stays
/// there until all others have received that, and say so by files.
pub(super) fn overlap(comm: &Comm) {
    let (image, plan) = neighbours(comm.size());
    let folder =
        PathBuf::from(std::env::var_os("CONSET_MPI_SCRATCH").expect("set by the launcher"));
    let file = |cell: usize| folder.join(format!("arrived-{cell}"));
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let neighbours = [1, comm.size() - 1];
    let (sums, _) = world
        .try_run(|cell| {
            let mut x = [1.0, 2.0];
            let token = cell.start(&plan, Op::Add, &x)?;
            let row = cell.id().index();
            if row == 0 {
                while !neighbours.iter().all(|&other| file(other).exists()) {
                    std::thread::yield_now();
                }
            } else if neighbours.contains(&row) {
                while !cell.test(&token)? {}
                std::fs::write(file(row), "").expect("the launcher made the folder");
            }
            cell.wait(&plan, token, &mut x)?;
            Ok(x)
        })
        .unwrap();
    assert_eq!(sums, [[3.0, 3.0]]);
}

/// Once everything has been used once nothing is allocated, except by MPI.
pub(super) fn allocations(comm: &Comm) {
    for (cells, channels) in [(comm.size(), 8), (2 * comm.size() + 1, 3)] {
        let (image, plans) = plans(&format!("ring:{cells}"), channels.max(6), 5);
        let world = World::new(image).on(Transport::Mpi(comm.clone()));
        let (counts, _) = world
            .try_run(|cell| {
                let x: Vec<f64> = vec![1.0; plans[0].layout().items_of(cell.id())];
                let mut y = vec![1.0; x.len() * 3];
                let mut rounds = |rounds: usize| -> Result<usize, CellError> {
                    let before = crate::ALLOCATIONS.load(std::sync::atomic::Ordering::Relaxed);
                    for _ in 0..rounds {
                        let mut z = [1.0; 8];
                        let z = &mut z[..x.len()];
                        let tokens = [
                            cell.start(&plans[0], Op::Add, &x)?,
                            cell.start(&plans[0], Op::Min, &x)?,
                        ];
                        let other = cell.start(&plans[1], Op::Max, &y)?;
                        cell.test(&tokens[1])?;
                        cell.wait(&plans[0], tokens[1], z)?;
                        cell.wait(&plans[1], other, &mut y)?;
                        cell.wait(&plans[0], tokens[0], z)?;
                        cell.exchange_nodes(&plans[1], Op::Max, &mut y)?;
                    }
                    Ok(crate::ALLOCATIONS.load(std::sync::atomic::Ordering::Relaxed) - before)
                };
                rounds(20)?;
                // A rank that waits for very long asks why, which takes memory.
                let mut least = usize::MAX;
                for _ in 0..5 {
                    least = least.min(rounds(20)?);
                }
                Ok(least)
            })
            .unwrap();
        assert!(counts.iter().all(|&count| count == 0), "{counts:?}");
    }
}

/// What one rank alone gets as values.
pub(super) fn misuse(comm: &Comm) {
    if comm.rank() > 0 {
        return;
    }
    let own = Comm::alone().unwrap().timeout(std::time::Duration::from_millis(300));
    let (image, plan) = neighbours(5);
    let world = World::new(image).on(Transport::Mpi(own));
    let error = world.try_run(|cell| {
        let token = cell.start(&plan, Op::Add, &[1.0, 2.0])?;
        if cell.id() == CellId(3) {
            return Err(cell.abort("no more"));
        }
        cell.wait(&plan, token, &mut [1.0, 2.0])
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Cell { cell: CellId(3), .. }), "{error}");
    let error = world.try_run(|cell| {
        let _token = cell.start(&plan, Op::Add, &[1.0, 2.0])?;
        Ok(())
    });
    let error = error.unwrap_err();
    let leaked = CellError::Plan(PlanUse::Leaked { count: 1, set: "s".to_owned() });
    assert!(matches!(&error, RunError::Cell { error, .. } if *error == leaked), "{error}");
    // One cell has ended; others test, and wait for what cells of their own rank have not read.
    for only_end in [false, true] {
        let error = world.try_run(|cell| {
            for _ in 0..if cell.id() == CellId(3) { 1 } else { 3 } {
                let token = cell.start(&plan, Op::Add, &[1.0, 2.0])?;
                while !only_end && !cell.test(&token)? {}
                cell.wait(&plan, token, &mut [1.0, 2.0])?;
            }
            Ok(())
        });
        let error = error.unwrap_err();
        assert!(matches!(error, RunError::Ended { ended: CellId(3), .. }), "{error}");
    }
    // The world can be used again.
    let (found, _) = world
        .try_run(|cell| {
            let mut x = [1.0, 2.0];
            let token = cell.start(&plan, Op::Add, &x)?;
            cell.wait(&plan, token, &mut x)?;
            Ok(x)
        })
        .unwrap();
    assert_eq!(found, [[3.0, 3.0]; 5]);
}

/// One cell does not begin, and the others ask for ever whether it has arrived.
pub(super) fn tests_for_ever(comm: &Comm) {
    let (image, plan) = neighbours(comm.size());
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let result = world.try_run(|cell| {
        if cell.id() == CellId(3) {
            return Ok(());
        }
        let token = cell.start(&plan, Op::Add, &[1.0, 2.0])?;
        while !cell.test(&token)? {}
        cell.wait(&plan, token, &mut [1.0, 2.0])
    });
    fails(comm, result);
}

/// One cell is in its own code for longer than the others wait.
pub(super) fn tests_long(comm: &Comm) {
    let (image, plan) = neighbours(comm.size());
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let _ = world.try_run(|cell| {
        if cell.id() == CellId(3) {
            std::thread::sleep(std::time::Duration::from_secs(50));
        }
        let token = cell.start(&plan, Op::Add, &[1.0, 2.0])?;
        while !cell.test(&token)? {}
        cell.wait(&plan, token, &mut [1.0, 2.0])
    });
}

fn in_between(comm: &Comm, then: impl Fn(&Cell<'_>) + Sync) -> Result<(), RunError> {
    let (image, plan) = neighbours(comm.size());
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let result = world.try_run(|cell| {
        for _ in 0..1000 {
            let token = cell.start(&plan, Op::Copy, &[1.0, 2.0])?;
            cell.test(&token)?;
            then(cell);
            cell.wait(&plan, token, &mut [1.0, 2.0])?;
        }
        Ok(())
    });
    result.map(drop)
}

pub(super) fn panic_in_between(comm: &Comm) {
    let gives_up =
        in_between(comm, |cell| assert_ne!(cell.id(), CellId(3), "the third cell gave up"));
    fails(comm, gives_up);
}

pub(super) fn killed_in_between(comm: &Comm) {
    let _ = in_between(comm, |cell| {
        if cell.id() == CellId(1) {
            std::process::abort();
        }
    });
}

pub(super) fn never_ended(comm: &Comm) {
    let (image, plan) = neighbours(comm.size());
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let result = world.try_run(|cell| {
        let token = cell.start(&plan, Op::Add, &[1.0, 2.0])?;
        if cell.id() == CellId(2) { Ok(()) } else { cell.wait(&plan, token, &mut [1.0, 2.0]) }
    });
    fails(comm, result);
}
