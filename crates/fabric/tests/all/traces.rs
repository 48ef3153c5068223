//! Traces for trace viewers, event by event.

use crate::build;
use std::path::Path;

use crate::build::CellTables;
use conset_fabric::messages::{MessageOptions, run_checked};
use conset_fabric::trace::routes::TracedRoutes;
use conset_fabric::{FabricOptions, TraceSource, run_with, write_perfetto};
use conset_ir::{ConnectionSet, Image};

/// Two phases with an empty one between them, then the same set by messages. Streams share links and a channel, some of
/// them at the same time. The image has another set, which is not exchanged and has no tracks.
#[test]
fn the_events_of_a_trace() {
    let machine = build::machine("mesh:3x1", |p| {
        (p.link_clocks_per_word, p.access_clocks_per_word, p.channel_depth) = (2, 3, 1);
        (p.streams, p.stream_setup, p.t_sync, p.t_phase) = (2, 1, 5, 2);
        (p.channels_per_cell, p.c_send, p.c_receive) = (2, 40, 30);
    });
    let set = build::set(&[(0, 2, 3), (1, 2, 2), (2, 2, 1), (0, 1, 4)]);
    let mut phases = build::tables(&machine, &set);
    assert_eq!(phases.len(), 2);
    phases.insert(1, vec![CellTables::default(); 3]);
    let other = ConnectionSet::new("other", set.connections().to_vec()).unwrap();
    let other = build::image(&machine, other, &phases).sets()[0].clone();
    let first = build::image(&machine, set.clone(), &phases).sets()[0].clone();
    let image = Image::new(machine.clone(), vec![first, other]).unwrap();
    let checked = run_with(image.clone(), 0, 3, FabricOptions::default().trace(true)).unwrap();
    let report = run_checked(&machine, &set, &MessageOptions::default().trace(true)).unwrap();
    let (by_phases, by_messages) = (checked.trace.unwrap(), report.trace.unwrap());
    let mut sources = [
        TraceSource { trace: &by_phases, routes: TracedRoutes::of_image(&image), label: "" },
        TraceSource {
            trace: &by_messages,
            routes: TracedRoutes::of_messages(&machine),
            label: " by messages",
        },
    ];
    let mut found = Vec::new();
    write_perfetto(&mut found, &mut sources).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trace.json");
    if std::env::var_os("CONSET_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), expected, "see {}", path.display());
}
