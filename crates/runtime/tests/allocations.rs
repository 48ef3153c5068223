//! Exchanges by plans allocate nothing once everything has been used once.

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use conset_runtime::{Collectives, Layout, Op, Plan, ThreadOptions, Transport, World, tree_sets};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Memory) {
        // SAFETY: handed on.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn exchanges_allocate_nothing() {
    let machine = build::machine("ring:6", |_| ());
    let ids: Vec<[u64; 5]> = (0..6).map(|c| [c, c + 1, 100, c + 50, 101]).collect();
    let layout = Layout::from_shared_ids(&ids).unwrap();
    let halos = [layout.set("one", 1).unwrap(), layout.set("two", 2).unwrap()];
    let sets = halos.into_iter().chain(tree_sets(&machine, 2).unwrap());
    let image = build::build_all(&machine, sets);
    let layout = std::sync::Arc::new(layout);
    let one = Plan::new(&image, "one", layout.clone(), 1).unwrap();
    let two = Plan::new(&image, "two", layout, 2).unwrap();
    let trees = Collectives::new(&image).unwrap();
    let on =
        |workers| World::new(image.clone()).on(Transport::Threads(ThreadOptions::workers(workers)));
    let allocations = |workers: usize, rounds: usize| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        on(workers)
            .try_run(|cell| {
                let (mut x, mut y) = ([1.0f64; 5], [2.0f64; 5]);
                for _ in 0..rounds {
                    cell.exchange_nodes(&one, Op::Copy, &mut x)?;
                    cell.sum_shared(&one, &mut x)?;
                    let token = cell.start(&one, Op::Min, &x)?;
                    let other = cell.start(&one, Op::Max, &y)?;
                    cell.exchange_many(&two, Op::Max, &mut [&mut x, &mut y])?;
                    cell.wait(&one, other, &mut y)?;
                    cell.test(&token)?;
                    cell.wait(&one, token, &mut x)?;
                    let several = [(); 5].map(|()| cell.start(&one, Op::Add, &x));
                    for (turn, token) in several.into_iter().rev().enumerate() {
                        let token = token?;
                        while turn == 0 && !cell.test(&token)? {}
                        cell.wait(&one, token, &mut y)?;
                    }
                    cell.allreduce(&trees, Op::Min, &mut x)?;
                    cell.broadcast(&trees, conset_runtime::ir::CellId(3), &mut y)?;
                }
                Ok(())
            })
            .unwrap();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    // The plans' buffers are made in the first run. The tests' own thread may allocate too.
    allocations(1, 3);
    let least = |rounds| (0..3).map(|_| allocations(1, rounds)).min();
    assert_eq!(least(1000), least(100), "900 rounds more allocate nothing");
    // How many buffers are being read at a time may differ then, by so many for each cell.
    let few = allocations(2, 20);
    let (cells, buffers, connections) = (6, 13, 6);
    let most = few + cells * buffers * connections;
    assert!(allocations(2, 200) < most, "180 rounds more allocate next to nothing");
}
