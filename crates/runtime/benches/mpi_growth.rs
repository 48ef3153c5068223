//! What the set-up of a halo takes on each rank as the ranks grow: memory and messages, not times.
//!
//! ```text
//! cargo bench -p conset-runtime --features mpi --bench mpi_growth
//! ```
//!
//! Every rank has a cube of `SIDE`^3 rows of a 27-point stencil in a domain of up to 4 x 4 x 4 cubes.
//! `rows` gives the rows with global columns, numbered cube by cube ([`Attached::csr_halo`]). `shared`
//! gives the ids of all nodes of a cube whose surfaces are shared, numbered over the whole domain
//! ([`Attached::shared_halo`]). The bench prints, for the rank that has most of each:
//!
//! * `ghosts`: entries that it receives, and the number of its neighbours;
//! * `peak`, `kept`: bytes for each entry of its vector that conset has allocated during the set-up,
//!   beyond what the caller gives (in `rows` with the local columns, 4 bytes for each entry of the
//!   matrix), and kilobytes in all that the halo keeps;
//! * `messages`: what it sends to find out who has what. MPI's reductions and barriers come in
//!   addition, about log2 P messages each: 4 to 7 of them in a set-up.
//!
//! The model, for k neighbours and P ranks: `rows` sends a rank's range to the homes of at most 2
//! blocks, asks for at most 2 blocks of each neighbour, answers about as many questions as it asks,
//! and requests its ghosts of k neighbours: at most 2 + 2 k + 2 k + k. `shared` sends
//! 2 ceil(log2 P). Memory is in proportion to entries and ghosts, in `shared` with a share of the
//! directory that a hash balances. Nothing has a term of P, so the last lines are the model's for any
//! P with as many rows on each rank.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod launch;

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use conset_runtime::Op;
use conset_runtime::mpi::{Attached, Comm, Halo, set_up_messages};

/// The system's memory; counts what is in use, and the most that was.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(memory.size(), Relaxed) + memory.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Layout) {
        IN_USE.fetch_sub(memory.size(), Relaxed);
        // SAFETY: handed on.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Points on an edge of a rank's cube.
const SIDE: u64 = 20;

/// The number of ranks of a job that this program has started.
const RANKS: &str = "CONSET_GROWTH_RANKS";

fn main() -> ExitCode {
    if let Ok(ranks) = std::env::var(RANKS) {
        let comm = match launch::ranks(ranks.parse().expect("a number")) {
            Ok(comm) => comm,
            Err(code) => return code,
        };
        measure(&comm);
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<8}{:>7}{:>10}{:>12}{:>8}{:>8}{:>8}{:>10}{:>8}",
        "", "ranks", "entries", "ghosts", "of", "peak", "kept kB", "messages", "model"
    );
    for ranks in ["2", "4", "8", "16", "32", "64"] {
        let program = std::env::current_exe().expect("this program");
        let status = std::process::Command::new(program).env(RANKS, ranks).status();
        if !status.expect("this program can be run").success() {
            return ExitCode::FAILURE;
        }
    }
    for ranks in [10_000u64, 100_000] {
        let (rows, shared) = (model_rows(26), model_shared(ranks));
        println!("{ranks} ranks, 26 neighbours: rows at most {rows} messages, shared {shared}");
    }
    ExitCode::SUCCESS
}

fn model_rows(neighbours: u64) -> u64 {
    2 + 5 * neighbours
}

fn model_shared(ranks: u64) -> u64 {
    2 * u64::from(ranks.next_power_of_two().trailing_zeros())
}

/// The cubes of a domain: twice as many in one direction after the other.
fn cubes(ranks: u64) -> [u64; 3] {
    let bits = u64::from(ranks.trailing_zeros());
    [0, 1, 2].map(|d| 1 << ((bits + 2 - d) / 3))
}

/// What a set-up took on this rank: bytes at most, bytes kept, messages.
fn counted(set_up: impl FnOnce() -> Halo) -> (Halo, [u64; 3]) {
    let (before, messages) = (IN_USE.load(Relaxed), set_up_messages());
    MOST.store(before, Relaxed);
    let halo = set_up();
    let bytes = |now: &AtomicUsize| (now.load(Relaxed) - before) as u64;
    let took = [bytes(&MOST), bytes(&IN_USE), set_up_messages() - messages];
    (halo, took)
}

fn measure(comm: &Comm) {
    let attached = Attached::new(comm).expect("all ranks attach");
    let (rank, ranks) = (attached.rank() as u64, attached.size() as u64);
    let [nx, ny, nz] = cubes(ranks);
    let place = [rank % nx, rank / nx % ny, rank / nx / ny];
    let points = || {
        let all = (0..SIDE.pow(3)).map(|row| [row % SIDE, row / SIDE % SIDE, row / SIDE / SIDE]);
        all.map(move |point| [0, 1, 2].map(|d| place[d] * SIDE + point[d]))
    };

    let size = [nx, ny, nz].map(|cubes| cubes * SIDE);
    let row_of = |point: [u64; 3]| {
        let [cube, inner] = [point.map(|x| x / SIDE), point.map(|x| x % SIDE)];
        let cube = cube[0] + nx * (cube[1] + ny * cube[2]);
        cube * SIDE.pow(3) + inner[0] + SIDE * (inner[1] + SIDE * inner[2])
    };
    let (mut pointers, mut columns) = (vec![0u64], Vec::new());
    for [x, y, z] in points() {
        let near = |x: u64, size: u64| x.saturating_sub(1)..(x + 2).min(size);
        for k in near(z, size[2]) {
            for j in near(y, size[1]) {
                columns.extend(near(x, size[0]).map(|i| row_of([i, j, k])));
            }
        }
        pointers.push(columns.len() as u64);
    }
    let own = rank * SIDE.pow(3)..(rank + 1) * SIDE.pow(3);
    let (halo, mut took) =
        counted(|| attached.csr_halo(own, &pointers, &columns).expect("rows").halo);
    let neighbours = halo.sources().count() as u64;
    print_row(&attached, "rows", &halo, &mut took, model_rows(neighbours));
    drop(halo);

    // Neighbouring cubes have a layer of nodes in common.
    let node = |point: [u64; 3]| {
        let [x, y, z] = [0, 1, 2].map(|d| point[d] - place[d]);
        x + size[0] * (y + size[1] * z)
    };
    let ids: Vec<u64> = points().map(node).collect();
    let (halo, mut took) = counted(|| attached.shared_halo(&ids).expect("ids"));
    print_row(&attached, "shared", &halo, &mut took, model_shared(ranks));
}

fn print_row(attached: &Attached, name: &str, halo: &Halo, took: &mut [u64; 3], model: u64) {
    let (ghosts, of) = (halo.received_entries() as u64, halo.sources().count() as u64);
    let entries = halo.entries() as u64;
    let mut most = [entries, ghosts, of, took[0] / entries, took[1] / 1000, took[2], model];
    attached.allreduce(Op::Max, &mut most).expect("all ranks come");
    if attached.rank() == 0 {
        let [entries, ghosts, of, peak, kept, messages, model] = most;
        let ranks = attached.size();
        println!(
            "{name:<8}{ranks:>7}{entries:>10}{ghosts:>12}{of:>8}{peak:>8}{kept:>8}{messages:>10}{model:>8}"
        );
    }
}
