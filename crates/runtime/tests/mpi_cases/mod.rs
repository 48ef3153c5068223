//! The cases: what each rank does, and how the job must end.

mod attached;
mod attached_errors;
#[path = "../common/epoch_cases.rs"]
mod epoch_cases;
mod epochs;
mod failures;
mod flights;
mod library;
#[path = "../common/library_cases.rs"]
mod library_cases;
mod long_rows;
mod reductions;
#[path = "../common/skips.rs"]
pub(crate) mod skips;
#[path = "../common/step_cases.rs"]
mod step_cases;
#[path = "../common/tree_cases.rs"]
mod tree_cases;
mod trees;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use conset_runtime::ir::{CellId, ConnectionId, Duplex, Image};
use conset_runtime::lists::{CellLists, Positions};
use conset_runtime::mpi::{Comm, MpiError};
use conset_runtime::{By, Cell, CellError, Op, RunError, Transport, World};

use crate::build;

#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The fewest ranks that it needs.
    pub(crate) ranks: usize,
    /// Whether the job ends well.
    pub(crate) succeeds: bool,
    /// What it must say.
    pub(crate) says: &'static [&'static str],
    /// `CONSET_TIMEOUT` of the job; else `patience` says how long the ranks wait.
    pub(crate) time_out: Option<&'static str>,
    /// What a rank does.
    run: fn(&Comm),
}

pub(crate) const CASES: &[Case] = &[
    from_two(good("exchanges_as_on_the_fabric", exchanges_as_on_the_fabric)),
    from_two(good("lists_as_on_the_fabric", lists_as_on_the_fabric)),
    from_two(good("elements_as_on_the_fabric", elements_as_on_the_fabric)),
    from_two(good("steps_deliver", steps_deliver)),
    good("messages_arrive", messages_arrive),
    from_one(good("epochs_as_sequential", epochs::as_sequential)),
    good("long_lists_of_failed_runs", epochs::long_lists_of_failed_runs),
    from_one(good("long_rows_in_all_ways", long_rows::in_all_ways)),
    failing(
        "long_rows_of_failed_runs",
        &["it has not come", "it comes late", "it goes away", "words of 4 bytes", "exchange of t"],
        long_rows::of_failed_runs,
    ),
    from_one(good("sized_exchanges", epochs::sized)),
    failing("sized_otherwise", &["has words of", "this cell of"], epochs::sized_otherwise),
    failing(
        "epoch_other_items",
        &["has opened the epoch with items of", "all cells have to open it"],
        epochs::other_items,
    ),
    from_one(good("library_messages", library::messages)),
    from_two(good("library_other_sizes", library::other_sizes)),
    from_one(good("library_collectives", library::collectives)),
    from_two(good("library_failures", library::failures)),
    good("one_rank_alone_gets_values", one_rank_alone),
    good("many_worlds_one_communicator", many_worlds),
    good("callers_communicator", callers_communicator),
    from_two(good("images_are_sent", images_are_sent)),
    from_two(good("flights_as_elsewhere", flights::as_elsewhere)),
    from_two(good("flights_carry_their_own", flights::own_words)),
    from_two(good("flights_overlap", flights::overlap)),
    from_two(good("flights_allocate_nothing", flights::allocations)),
    from_two(good("flights_misused", flights::misuse)),
    from_two(good("trees_as_elsewhere", trees::as_elsewhere)),
    from_two(good("trees_with_long_arrays", trees::long_arrays)),
    from_two(good("trees_beside_messages", trees::own_messages)),
    good("trees_on_one_rank", trees::on_one_rank),
    from_two(good("attached_shared", attached::shared)),
    from_two(good("attached_as_callback_form", attached::as_callback_form)),
    from_two(good("attached_owned", attached::owned)),
    from_two(good("attached_indexed", attached::indexed)),
    from_two(good("attached_fields", attached::fields)),
    from_two(good("attached_rows", attached::rows)),
    from_two(good("attached_faults", attached_errors::faults)),
    from_two(good("attached_overlap", attached::overlap)),
    from_two(good("attached_many_halos", attached::many_halos)),
    from_two(good("attached_sizes", attached::sizes)),
    from_two(good("attached_other_block", attached_errors::other_block)),
    from_two(good("attached_other_halo", attached_errors::other_halo)),
    from_two(good("attached_other_length", attached_errors::other_length)),
    from_two(good("attached_collectives", attached::collectives)),
    from_two(good("reductions_bits", reductions::of_cells)),
    from_two(good("reductions_any_order", reductions::any_order_of_cells)),
    failing(
        "reduction_ended",
        &["c3 has ended while c2", "the collective over allreduce"],
        reductions::ended,
    ),
    from_two(good("attached_reductions_bits", reductions::attached_bits)),
    from_two(good("attached_reductions_any_order", reductions::attached_any_order)),
    from_two(good("attached_reductions_misuse", reductions::attached_misuse)),
    from_two(good("attached_reductions_unlike", reductions::attached_unlike)),
    from_two(good("attached_reductions_allocations", reductions::attached_allocations)),
    from_two(good("attached_alone", attached::alone)),
    from_two(good("attached_allocations", attached::allocations)),
    good("odd_image", odd_image),
    good("disagreement", disagreement),
    good("one_has_ended", one_has_ended),
    good("unlike_steps", unlike_steps),
    good("left_over", left_over),
    good("left_over_at_the_end", left_over_at_the_end),
    good("left_over_beside_idle_ranks", left_over_beside_idle_ranks),
    good("panics_are_errors", failures::panics_are_errors),
    good("caught_panics", failures::caught_panics),
    good("unlike_word_sizes", failures::unlike_word_sizes),
    failing("missing_cell", &["c3 has ended while c", "the exchange of s"], failures::missing_cell),
    failing(
        "unlike_sets",
        &["switches to the exchange of s", "c3 switches to the exchange of t"],
        |comm| {
            failures::unlike_sets(
                comm,
                |cell| if cell == CellId(3) { ["t", "s"] } else { ["s", "t"] },
            );
        },
    ),
    failing(
        "switch_and_exchange",
        &["switches to s/p0", "switches to the exchange of s"],
        failures::mixed,
    ),
    good("unlike_order", failures::unlike_order),
    failing("flight_never_arrives", &["c3 has ended while c", "of s"], flights::tests_for_ever),
    failing("flight_never_ended", &["c2: "], flights::never_ended),
    failing("skipped_or_repeated_1", &[], |comm| failures::skipped_or_repeated(comm, 1)),
    failing("skipped_or_repeated_2", &[], |comm| failures::skipped_or_repeated(comm, 2)),
    failing("skipped_or_repeated_3", &[], |comm| failures::skipped_or_repeated(comm, 3)),
    failing("skipped_or_repeated_4", &[], |comm| failures::skipped_or_repeated(comm, 4)),
    failing("skipped_or_repeated_5", &[], |comm| failures::skipped_or_repeated(comm, 5)),
    failing("skipped_or_repeated_6", &[], |comm| failures::skipped_or_repeated(comm, 6)),
    failing("skipped_or_repeated_7", &[], |comm| failures::skipped_or_repeated(comm, 7)),
    failing("skipped_or_repeated_8", &[], |comm| failures::skipped_or_repeated(comm, 8)),
    failing(
        "skipped_between_sets",
        &["c3 is in its 1st collective call, the exchange of s", "is in its 2nd"],
        failures::skipped_between_sets,
    ),
    failing(
        "tree_other_length",
        &["c3 is in its 2nd collective call", "bytes)"],
        trees::other_length,
    ),
    failing("tree_skipped", &["c3 is in its 2nd collective call"], trees::skipped),
    failing("tree_other_call", &["the collective over allreduce", "c3"], trees::other_set),
    failing(
        "tree_ended",
        &["c3 has ended while c2", "the collective over allreduce"],
        trees::ended,
    ),
    failing("panic_in_between", &["the third cell gave up"], flights::panic_in_between),
    failing("panic_in_a_program", &["the third cell gave up"], failures::panic_in_a_program),
    failing(
        "error_of_a_cell",
        &["failed: c2: the image has no set \"nothing\"", "failed: rank 2 failed: c2: "],
        failures::error_of_a_cell,
    ),
    Case { time_out: Some("0"), ..failing("slow_cell_is_reported", SLOW, failures::slow_cell) },
    Case { time_out: Some("0"), ..failing("slow_target_of_a_row", SLOW, long_rows::slow_target) },
    bad(
        "missing_rank",
        &["for rank 3", "comparison of images", "ends the job"],
        failures::missing_rank,
    ),
    // Which wait ends first, for the words of c3 or for c3 to read the last ones, is not determined.
    bad("busy_cell", &["awaits c3", "for rank 3", "ends the job"], failures::busy_cell),
    Case {
        time_out: Some("2.5"),
        ..bad(
            "time_out_of_the_environment",
            &["awaits c3", "for rank 3", "ends the job"],
            failures::busy_cell,
        )
    },
    Case { time_out: Some("long"), ..bad("wrong_time_out", &["CONSET_TIMEOUT is `long`"], |_| ()) },
    bad("missing_word", &["awaits c3", "a word of x3", "for rank 3"], failures::missing_word),
    bad("killed_rank", &[], failures::killed_rank),
    bad("flight_waits_long", &["awaits c3", "s/p0", "for rank 3"], flights::tests_long),
    bad("killed_in_between", &[], flights::killed_in_between),
    bad("panic_outside", &["a rank gave up"], failures::panic_outside),
    bad(
        "stack_overflow",
        &["conset: cell c2 overflowed its stack of 65536 bytes", "World::stack_size"],
        failures::stack_overflow,
    ),
];

/// What is said of a cell that is slow.
const SLOW: &[&str] = &["has waited", "awaits c3", "for rank 3; it goes on waiting"];

const fn good(name: &'static str, run: fn(&Comm)) -> Case {
    Case { name, ranks: 4, succeeds: true, says: &[], time_out: None, run }
}

/// Runs fail in it, which the job says and survives.
const fn failing(name: &'static str, says: &'static [&'static str], run: fn(&Comm)) -> Case {
    Case { says, ..good(name, run) }
}

const fn bad(name: &'static str, says: &'static [&'static str], run: fn(&Comm)) -> Case {
    Case { succeeds: false, says, ..good(name, run) }
}

/// A case for any number of ranks from two on.
const fn from_two(case: Case) -> Case {
    Case { ranks: 2, ..case }
}

/// A case for any number of ranks.
const fn from_one(case: Case) -> Case {
    Case { ranks: 1, ..case }
}

impl Case {
    /// Whether it can be one of several in a job, of which nothing else is looked at.
    fn can_share(&self) -> bool {
        self.succeeds && self.says.is_empty() && self.time_out.is_none()
    }

    /// How long ranks wait for each other. Jobs that end by a time-out reach it, others do not, even
    /// with eight ranks on two cores that others use too.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.succeeds { 20 } else { 4 })
    }
}

/// All cases that end well, in two jobs: on a slow computer one takes nearly as long as a job may.
static ALL_GOOD: [Case; 2] = [
    from_two(good("half_that_end_well", |comm| every_other_good(comm, 0))),
    from_two(good("other_half_that_end_well", |comm| every_other_good(comm, 1))),
];

/// Every other case that ends well, one after the other.
fn every_other_good(comm: &Comm, first: usize) {
    let good = CASES.iter().filter(|case| case.can_share() && case.ranks <= comm.size());
    for case in good.skip(first).step_by(2) {
        if comm.rank() == 0 {
            println!("{}", case.name);
        }
        (case.run)(comm);
    }
}

/// What to run for all cases.
pub(crate) fn jobs() -> Vec<&'static Case> {
    ALL_GOOD.iter().chain(CASES.iter().filter(|case| !case.can_share())).collect()
}

/// Runs a case as one rank of a job.
pub(crate) fn run(name: &str) -> ExitCode {
    let mut all = CASES.iter().chain(&ALL_GOOD);
    let case = all.find(|case| case.name == name).expect("a case");
    let comm = Comm::world().unwrap_or_else(|error| panic!("{error}"));
    let comm = if case.time_out.is_none() { comm.timeout(case.patience()) } else { comm };
    let size = std::env::var("CONSET_MPI_SIZE").expect("set by the launcher");
    assert_eq!(size, comm.size().to_string(), "the launcher is of another MPI library");
    (case.run)(&comm);
    println!("rank done");
    ExitCode::SUCCESS
}

/// A run that fails on all ranks, which say why. The communicator is as good as before.
fn fails<R: std::fmt::Debug>(comm: &Comm, result: Result<R, RunError>) {
    println!("failed: {}", result.unwrap_err());
    same_as_on_the_fabric(comm, &Arc::new(ring(2 * comm.size() + 1, 3)), sums_of_exchanges);
}

/// Every cell to the next one round a ring, the set called `s`; connection `c` starts at cell `c`.
fn ring(cells: usize, words: u32) -> Image {
    let machine = build::machine(&format!("ring:{cells}"), |_| ());
    let cells = cells as u32;
    let set: Vec<_> = (0..cells).map(|c| (c, (c + 1) % cells, words)).collect();
    build::build(&machine, build::set(&set))
}

/// A program's results over MPI are those of the rank's cells on the fabric.
fn same_as_on_the_fabric<R: PartialEq + std::fmt::Debug + Send>(
    comm: &Comm,
    image: &Arc<Image>,
    program: impl Fn(&mut Cell<'_>) -> Result<R, CellError> + Sync,
) {
    let world = World::new(image.clone()).on(Transport::Mpi(comm.clone()));
    let (own, _) = world.try_run(&program).unwrap();
    let (all, _) = World::new(image.clone()).try_run(&program).unwrap();
    let cells: Vec<CellId> = image.machine().endpoints().collect();
    assert_eq!(own.len(), world.own_cells().len());
    for (cell, result) in world.own_cells().iter().zip(&own) {
        let row = cells.binary_search(cell).unwrap();
        assert_eq!(*result, all[row], "{cell}");
    }
}

/// Values whose sum depends on the order of the summands.
fn value(round: u32, connection: ConnectionId, word: usize) -> f64 {
    let x = f64::from(connection.0 * 31 + round * 7 + 1) * (word as f64 + 0.1);
    if (connection.index() + word).is_multiple_of(3) { x * 1e15 } else { -x / 3.0 }
}

fn exchanges_as_on_the_fabric(comm: &Comm) {
    let n = comm.size() as u32;
    // One cell to a rank, several, not equally many, and ranks without cells; several phases.
    let machines = [format!("ring:{n}"), format!("ring:{}", 2 * n + 1), "mesh:3x2".to_owned()];
    let small = ["ring:1".to_owned(), "ring:2".to_owned(), "torus:3x3x2".to_owned()];
    for spec in machines.iter().chain(&small) {
        for channels in [1, 8] {
            let machine = build::machine(spec, |p| {
                p.channels_per_cell = channels;
                if channels == 1 {
                    p.duplex = Duplex::Half;
                }
            });
            let cells = machine.agent_count() as u32;
            let pairs: Vec<_> =
                (0..3 * cells).map(|i| (i % cells, (i * 5 + 1) % cells, 1 + i % 7)).collect();
            let pairs = if channels == 1 {
                // A phase each: a connection to itself holds a channel too.
                pairs.into_iter().filter(|(source, target, _)| source != target).collect()
            } else {
                pairs
            };
            let image = Arc::new(build::build(&machine, build::set(&pairs)));
            same_as_on_the_fabric(comm, &image, sums_of_exchanges);
        }
    }
}

fn sums_of_exchanges(cell: &mut Cell<'_>) -> Result<u64, CellError> {
    sums(cell, |cell, out, inn| cell.exchange("s", out, inn))
}

fn sums(
    cell: &mut Cell<'_>,
    exchange: impl Fn(&mut Cell<'_>, &[Vec<f64>], &mut [Vec<f64>]) -> Result<(), CellError>,
) -> Result<u64, CellError> {
    let set = cell.image().sets()[0].set.clone();
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in("s")?);
    let words = |x: &ConnectionId| set.get(*x).words as usize;
    let mut incoming: Vec<Vec<f64>> = inn.iter().map(|x| vec![f64::NAN; words(x)]).collect();
    let mut total = 0.0;
    for round in 0..5 {
        let row = |x: &ConnectionId| (0..words(x)).map(|word| value(round, *x, word)).collect();
        let outgoing: Vec<Vec<f64>> = out.iter().map(row).collect();
        exchange(cell, &outgoing, &mut incoming)?;
        total += incoming.iter().flatten().sum::<f64>();
    }
    Ok(total.to_bits())
}

fn lists_as_on_the_fabric(comm: &Comm) {
    let n = comm.size() as u32;
    for spec in [format!("ring:{n}"), format!("ring:{}", 2 * n + 1), "torus:3x3x2".to_owned()] {
        for (channels, block) in [(2, 1), (8, 1), (3, 3)] {
            let machine = build::machine(&spec, |p| p.channels_per_cell = channels);
            let cells = machine.agent_count() as u32;
            let pair = |i: u32| (i % cells, (i * 7 + 1) % cells, (1 + i % 9) * block);
            let pairs: Vec<_> = (0..4 * cells).map(pair).filter(|(a, b, _)| a != b).collect();
            let image = Arc::new(build::build(&machine, build::set(&pairs)));
            same_as_on_the_fabric(comm, &image, |cell| lists_of(cell, block));
        }
    }
}

/// Some exchanges between vectors by all operations, with positions shared by many connections.
fn lists_of(cell: &mut Cell<'_>, block: u32) -> Result<Vec<u64>, CellError> {
    let set = cell.image().sets()[0].set.clone();
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
    let list = |x: &ConnectionId, step: u32| -> Vec<u32> {
        (0..set.get(*x).words / block).map(|i| (i * step + x.0) % 11).collect()
    };
    let mixed = CellLists::new(
        Positions::new(out.iter().map(|x| list(x, 3))),
        Positions::new(inn.iter().map(|x| list(x, 5))),
        block as usize,
    );
    let apart = CellLists::new(
        Positions::new(out.iter().map(|x| list(x, 2))),
        Positions::new(inn.iter().map(|x| list(x, 4).iter().map(|at| at + 11).collect::<Vec<_>>())),
        block as usize,
    );
    let length = 22 * block as usize;
    let begin = |word: usize| value(0, ConnectionId(cell.id().0), word);
    let mut x: Vec<f64> = (0..length).map(begin).collect();
    let mut y: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let mut z: Vec<i32> = x.iter().map(|&x| x as i32).collect();
    let mut short: Vec<u16> = x.iter().map(|&x| x as u16).collect();
    let mut byte: Vec<i8> = x.iter().map(|&x| x as i8).collect();
    for op in [Op::Add, Op::Copy, Op::Min, Op::Max, Op::Add] {
        cell.exchange_lists("s", &mixed, op, &mut x)?;
        cell.exchange_lists("s", &apart, op, &mut x)?;
        cell.exchange_lists("s", &mixed, op, &mut y)?;
        cell.exchange_lists("s", &apart, op, &mut z)?;
        cell.exchange_lists("s", &mixed, op, &mut short)?;
        cell.exchange_lists("s", &apart, op, &mut byte)?;
    }
    let x = x.iter().map(|x| x.to_bits());
    let y = y.iter().map(|y| u64::from(y.to_bits()));
    let z = z.iter().map(|&z| u64::from(z as u32));
    let short = short.iter().map(|&word| u64::from(word));
    let byte = byte.iter().map(|&word| u64::from(word as u8));
    Ok(x.chain(y).chain(z).chain(short).chain(byte).collect())
}

unsafe extern "C" {
    /// Of the shim: the Fortran integer of the world's communicator.
    fn conset_mpi_world(fortran: *mut i32) -> i32;
}

fn elements_as_on_the_fabric(comm: &Comm) {
    for cells in [comm.size(), comm.size() * 2 + 1, 2] {
        let image = Arc::new(ring(cells, cells as u32 - 1));
        same_as_on_the_fabric(comm, &image, |cell| {
            let mut results = Vec::new();
            for _ in 0..2 {
                cell.instantiate_phase("s/p0")?;
                let out = cell.connections_out(0)?[0];
                let inn = cell.connections_in(0)?[0];
                let (mut sum, mut passing) = (0.0f32, cell.id().0 as f32 + 0.1);
                for _ in 1..cell.cell_count() {
                    cell.send_element(out, passing)?;
                    passing = cell.receive_element(inn)?;
                    sum += passing * 1.1;
                }
                results.push(sum.to_bits());
            }
            Ok(results)
        });
    }
}

fn many_worlds(comm: &Comm) {
    for round in 1..20 {
        let image = Arc::new(ring(comm.size() + round % 3, round as u32 * 10));
        same_as_on_the_fabric(comm, &image, sums_of_exchanges);
    }
}

fn callers_communicator(comm: &Comm) {
    let mut fortran = 0;
    // SAFETY: MPI is initialised, as there is a `Comm`; one integer is written.
    assert_eq!(unsafe { conset_mpi_world(&raw mut fortran) }, 0);
    let own = Comm::from_fortran(fortran).unwrap().timeout(Duration::from_secs(2));
    assert_eq!((own.rank(), own.size()), (comm.rank(), comm.size()));
    let image = Arc::new(ring(comm.size(), 5));
    same_as_on_the_fabric(&own, &image, sums_of_exchanges);
    same_as_on_the_fabric(comm, &image, sums_of_exchanges);
}

/// Rank 0 alone makes an image, which all have; and an error of it is one of all.
fn images_are_sent(comm: &Comm) {
    for cells in [1, comm.size(), 2 * comm.size() + 1] {
        let image = comm.broadcast_image(|| {
            assert_eq!(comm.rank(), 0);
            Ok::<_, MpiError>(Arc::new(ring(cells, 5)))
        });
        let image = image.unwrap();
        assert_eq!(*image, ring(cells, 5));
        same_as_on_the_fabric(comm, &image, sums_of_exchanges);
    }
    let error = comm.broadcast_image(|| Err::<Arc<Image>, _>(MpiError::Busy)).unwrap_err();
    let expected = match comm.rank() {
        0 => MpiError::Busy,
        _ => MpiError::Elsewhere { rank: 0, error: MpiError::Busy.to_string() },
    };
    assert_eq!(error, expected);
}

fn on(comm: &Comm, image: Image) -> World {
    World::new(image).on(Transport::Mpi(comm.clone()))
}

fn odd_image(comm: &Comm) {
    let odd = comm.rank() == 2;
    let world = on(comm, ring(comm.size(), if odd { 4 } else { 3 }));
    let error = world.try_run(sums_of_exchanges).unwrap_err();
    let RunError::Mpi(MpiError::OddImage { odd, .. }) = &error else { panic!("{error}") };
    assert_eq!(odd, &[2]);
    assert!(error.to_string().contains("rank 2 has not the image of the others"), "{error}");
    // The communicator is as good as before.
    on(comm, ring(comm.size(), 3)).try_run(sums_of_exchanges).unwrap();
}

fn disagreement(comm: &Comm) {
    let machine = build::machine(&format!("ring:{}", comm.size() * 2), |p| p.channels_per_cell = 1);
    let pairs: Vec<_> = (0..4).map(|i| (0, i % 2 + 1, 2)).collect();
    let image = build::build(&machine, build::set(&pairs));
    assert!(image.sets()[0].phases.len() > 1);
    let error = on(comm, image).try_run(|cell| {
        cell.instantiate_phase(if cell.id() == CellId(3) { "s/p1" } else { "s/p0" })
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Disagree { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("c3 switches to s/p1") || text.contains("while c3"), "{text}");
}

fn one_has_ended(comm: &Comm) {
    let error = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(1) { Ok(()) } else { cell.instantiate_phase("s/p0") }
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Ended { ended: CellId(1), .. }), "{error}");
}

/// Cells that do not wait for each other, and do not do the same.
fn unlike_steps(comm: &Comm) {
    let image = build::build(
        &build::machine(&format!("ring:{}", comm.size()), |_| ()),
        build::set(&[(0, 1, 3), (1, 0, 3)]),
    );
    let error = on(comm, image).try_run(|cell| {
        for _ in 0..if cell.id() == CellId(2) { 3 } else { 2 } {
            sums_of_exchanges(cell)?;
        }
        Ok(())
    });
    let error = error.unwrap_err();
    let RunError::Mpi(MpiError::Steps { cells, steps, .. }) = &error else { panic!("{error}") };
    assert_eq!((cells, steps), (&[CellId(0), CellId(2)], &[10, 15]));
}

fn left_over(comm: &Comm) {
    let error = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        if cell.id() == CellId(0) {
            cell.send_element(ConnectionId(0), 1.0)?;
        }
        cell.instantiate_phase("s/p0")
    });
    let expected = RunError::Unreceived {
        cell: CellId(1),
        set: "s".to_owned(),
        connection: ConnectionId(0),
        words: 1,
    };
    assert_eq!(error, Err(expected));
    // The communicator is as good as before.
    same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
}

fn messages_arrive(comm: &Comm) {
    let n = comm.size() as u32;
    for cells in [n, 2 * n + 1, 3] {
        let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 2);
        let pair = |i: u32| (i % cells, (i * 5 + 1) % cells, 1 + i % 700);
        let pairs: Vec<_> = (0..3 * cells).map(pair).filter(|(a, b, _)| a != b).collect();
        let world = on(comm, build::build(&machine, build::set(&pairs)));
        let exchanged = world.try_run(|cell| {
            let next = CellId((cell.id().0 + 1) % cells);
            let last = CellId((cell.id().0 + cells - 1) % cells);
            let words = |cell: CellId| {
                (0..700).map(|i| value(0, ConnectionId(cell.0), i)).collect::<Vec<f64>>()
            };
            for round in 0..3u32 {
                cell.msg_send(next, &words(cell.id()))?;
                cell.msg_send(next, &[round])?;
                let (mut into, mut number) = (vec![0.0; 700], [0u32]);
                cell.msg_receive(last, &mut into)?;
                cell.msg_receive(last, &mut number)?;
                assert_eq!((into, number), (words(last), [round]));
                let by_messages =
                    sums(cell, |cell, out, inn| cell.exchange_by(By::Messages, "s", out, inn))?;
                assert_eq!(by_messages, sums_of_exchanges(cell)?);
                cell.instantiate_messages()?;
            }
            Ok(())
        });
        exchanged.unwrap();
    }
    let error = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(3) { cell.msg_send(CellId(1), &[1.0, 2.0]) } else { Ok(()) }
    });
    let expected = RunError::UnreceivedMessage { cell: CellId(1), from: CellId(3), words: 2 };
    assert_eq!(error, Err(expected));
}

/// Where nobody else waits, errors and panics are values as on the other transports.
fn one_rank_alone(comm: &Comm) {
    if comm.rank() > 0 {
        return;
    }
    let own = Comm::alone().unwrap();
    assert_eq!(own.size(), 1);
    let image = Arc::new(ring(5, 3));
    same_as_on_the_fabric(&own, &image, sums_of_exchanges);
    let nothing = on(&own, ring(5, 3)).try_run(|cell| cell.connections_in("nothing").map(|_| ()));
    assert!(matches!(nothing, Err(RunError::Cell { .. })), "{nothing:?}");
}

fn left_over_at_the_end(comm: &Comm) {
    let error = on(comm, ring(comm.size() * 2, 3)).try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        // On another rank, and on the same one.
        if cell.id() == CellId(2) || cell.id() == CellId(3) {
            let out = cell.connections_out(0)?[0];
            cell.send_element(out, 1.0)?;
            cell.send_element(out, 2.0)?;
        }
        Ok(())
    });
    let Err(RunError::Unreceived { cell: CellId(3), connection, words: 2, .. }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(connection, ConnectionId(2));
    same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
}

/// Ranks without cells get an error too, and nothing of theirs is left for the next run.
fn left_over_beside_idle_ranks(comm: &Comm) {
    for _ in 0..2 {
        let error = on(comm, ring(2, 3)).try_run(|cell| {
            sums_of_exchanges(cell)?;
            cell.instantiate_phase("s/p0")?;
            let out = cell.connections_out(0)?[0];
            if cell.id() == CellId(0) { cell.send_element(out, 1.0) } else { Ok(()) }
        });
        match error.unwrap_err() {
            RunError::Unreceived { cell: CellId(1), words: 1, .. } if comm.rank() < 2 => {}
            RunError::Mpi(MpiError::LeftOver { .. }) if comm.rank() >= 2 => {}
            error => panic!("{error}"),
        }
        let error = on(comm, ring(2, 3)).try_run(|cell| {
            sums_of_exchanges(cell)?;
            cell.instantiate_phase("s/p0")?;
            if cell.id() == CellId(0) { Ok(()) } else { cell.instantiate_messages() }
        });
        let error = error.unwrap_err();
        assert!(matches!(error, RunError::Ended { ended: CellId(0), .. }), "{error}");
        same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
    }
}

/// Step plans of any levels and orders deliver their words, whatever the number of ranks.
fn steps_deliver(comm: &Comm) {
    let mut combining = 0;
    for seed in 0..80 {
        let steps = step_cases::case(seed);
        combining += usize::from(!steps.is_direct());
        let world = World::new(step_cases::image(&steps)).on(Transport::Mpi(comm.clone()));
        let (wrong, _) = world.try_run(step_cases::wrong_rows).expect("the exchanges work");
        assert_eq!(wrong.iter().sum::<usize>(), 0, "of plan {seed}");
    }
    assert!(combining > 20, "{combining} plans in which cells pass on words");
}
