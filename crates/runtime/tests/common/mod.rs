//! What several tests share: worlds, and sets whose connections a cell finds by its own number.

#![allow(dead_code, unreachable_pub)]

#[path = "../../../fabric/tests/build/mod.rs"]
pub mod build;

pub mod skips;

use std::sync::Arc;

use conset_ir::{ConnectionId, Duplex, Image, Parameters};
use conset_runtime::{Cell, RunError, ThreadOptions, Transport, World};

/// A world of the image on so many threads.
pub fn threads(image: impl Into<Arc<Image>>, workers: usize) -> World {
    World::new(image).on(Transport::Threads(ThreadOptions::workers(workers)))
}

/// Every cell to the next one round a ring, the set called `s`; connection `c` starts at cell `c`.
pub fn ring_image(cells: u32, words: u32) -> Image {
    ring_image_with(cells, words, |_| ())
}

/// The same on a machine with some parameters changed.
pub fn ring_image_with(cells: u32, words: u32, change: impl FnOnce(&mut Parameters)) -> Image {
    let machine = build::machine(&format!("ring:{cells}"), change);
    let set: Vec<_> = (0..cells).map(|c| (c, (c + 1) % cells, words)).collect();
    build::build(&machine, build::set(&set))
}

/// A set of three connections for each cell, some of them to itself, of 1 to `words` words.
pub fn unlike_image(spec: &str, half_duplex: bool, words: u32) -> Image {
    let machine = build::machine(spec, |p| {
        p.channels_per_cell = 8;
        if half_duplex {
            p.duplex = Duplex::Half;
        }
    });
    let cells = machine.agent_count() as u32;
    let connection = |i: u32| (i % cells, (i * 5 + 1) % cells, 1 + i % words);
    build::build(&machine, build::set(&(0..3 * cells).map(connection).collect::<Vec<_>>()))
}

/// The connection of a ring's set that starts at the cell.
pub fn own(cell: &Cell<'_>) -> ConnectionId {
    ConnectionId(cell.id().0)
}

/// The connection of a ring's set that ends at the cell.
pub fn from_left(cell: &Cell<'_>) -> ConnectionId {
    let cells = cell.cell_count() as u32;
    ConnectionId((cell.id().0 + cells - 1) % cells)
}

/// What a run that must fail ended with.
pub fn message(result: Result<impl Sized, RunError>) -> String {
    result.err().expect("the run must fail").to_string()
}
