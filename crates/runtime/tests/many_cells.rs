//! Worlds of many thousand cells: a cell takes the pages of its stack that it touches, and a run of
//! more cells than the system allows mappings for is an error that says so, or runs.
//!
//! In a process of its own, as it looks at the memory of the process.

#![allow(clippy::print_stdout, reason = "figures for whoever asks for them")]

use std::sync::Arc;
use std::time::Instant;

use conset_runtime::ir::Image;
use conset_runtime::{ThreadOptions, Transport, World};

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

/// An image without connections: all there is are cells.
fn image(spec: &str) -> Arc<Image> {
    build::build_all(&build::machine(spec, |_| ()), [])
}

/// Resident bytes of this process, now; where the system tells.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn many_cells_take_little_memory() {
    for (spec, transport) in [
        ("torus:100x100", Transport::Fabric),
        ("torus:100x100", Transport::Threads(ThreadOptions::workers(2))),
        ("torus:160x160", Transport::Threads(ThreadOptions::workers(1))),
    ] {
        let world = World::new(image(spec)).on(transport);
        let cells = world.own_cells().len();
        let (before, begin) = (resident(), Instant::now());
        // All cells are alive when the last has come to the switch.
        let (found, _) = world
            .try_run(|cell| {
                cell.instantiate_messages()?;
                Ok((cell.id().index() + 1 == cells).then(resident).flatten())
            })
            .unwrap();
        let took = begin.elapsed();
        let (Some(before), Some(after)) = (before, found[cells - 1]) else { continue };
        let each = after.saturating_sub(before) / cells;
        println!("{spec}: {cells} cells, {each} resident bytes each, {took:?}");
        assert!(each < 24 << 10, "{spec}: {each} resident bytes for each cell");
    }
}
