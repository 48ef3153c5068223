//! Traces for trace viewers, event by event.

mod build;

use std::path::Path;

use conset_fabric::messages::{MessageOptions, run_checked};
use conset_fabric::trace::routes::TracedRoutes;
use conset_fabric::{FabricOptions, TraceSource, run_with, write_perfetto};

/// Two phases, then the same set by messages. Streams share links and a channel, some of them at the same time.
#[test]
fn the_events_of_a_trace() {
    let machine = build::machine("mesh:3x1", |p| {
        (p.link_clocks_per_word, p.access_clocks_per_word, p.channel_depth) = (2, 3, 1);
        (p.streams, p.stream_setup, p.t_sync, p.t_phase) = (2, 1, 5, 2);
        (p.channels_per_cell, p.c_send, p.c_receive) = (2, 40, 30);
    });
    let set = build::set(&[(0, 2, 3), (1, 2, 2), (2, 2, 1), (0, 1, 4)]);
    let image = build::build(&machine, set.clone());
    assert_eq!(image.sets()[0].phases.len(), 2);
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
