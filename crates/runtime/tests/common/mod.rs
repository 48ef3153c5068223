//! What several tests share: worlds, and sets whose connections a cell finds by its own number.

#![allow(dead_code, unreachable_pub)]

#[path = "../../../fabric/tests/build/mod.rs"]
pub mod build;

pub mod skips;

use std::sync::Arc;

use conset_ir::{ConnectionId, Image, Parameters};
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
