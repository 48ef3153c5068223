//! The worked examples of `docs/machine.md`: its tables are those of the fabric.

use std::fmt::Write;
use std::path::Path;

use conset_ir::{CellId, ConnectionId, Direction, LinkId, Machine, Protocol};

use super::{Count, build, start};
use crate::messages::{ActiveMessages, MessageOptions, PacketEvent, Put, run_checked};

/// Asserts that the specification has this table.
fn is_in_the_specification(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machine.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(table), "docs/machine.md does not have this table:\n{table}");
}

#[test]
fn the_example_of_a_phase() {
    let machine = build::machine("mesh:3x1", |p| {
        (p.link_clocks_per_word, p.access_clocks_per_word, p.channel_depth) = (2, 3, 1);
        (p.streams, p.stream_setup, p.t_sync, p.t_phase) = (2, 1, 5, 2);
    });
    let image = build::build(&machine, build::set(&[(0, 2, 3), (1, 2, 2)]));
    let mut engine = start(&image, |_, _| false);
    let mut count = Count(vec![0; 2]);
    let begin = engine.now();
    let mut table = String::new();
    loop {
        engine.settle();
        write!(table, "| {} |", engine.now() - begin).unwrap();
        for row in [0, 1, 3, 2, 4] {
            let network = &engine.base.network;
            write!(table, " {}/{} |", network.held(row), network.queued(row)).unwrap();
        }
        let carried = [0, 1].map(|link| engine.link_words(LinkId(link)));
        writeln!(table, " {} | {} | {} | {} |", carried[0], carried[1], count.0[0], count.0[1])
            .unwrap();
        if !engine.step(&mut count) {
            break;
        }
    }
    // Cell 1 has the rows 1 and 2, cell 2 the rows 3 and 4.
    let rows = &engine.tables.rows;
    let of = |row: usize| (rows[row].cell.0, rows[row].channel.0);
    assert_eq!((0..5).map(of).collect::<Vec<_>>(), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(count.0, [3, 2]);
    is_in_the_specification(&table);
}

/// A row for each message: launched, header arrived, sent, reception started, received.
fn messages(protocol: Protocol) -> String {
    let machine = build::machine("ring:4", |p| {
        (p.link_clocks_per_word, p.access_clocks_per_word, p.channel_depth) = (2, 3, 2);
        (p.c_send, p.c_receive, p.message_extra_words) = (10, 5, 1);
        p.protocol = protocol;
    });
    let set = build::set(&[(0, 2, 3), (1, 2, 2), (0, 3, 1)]);
    let report = run_checked(&machine, &set, &MessageOptions::default().trace(true)).unwrap();
    assert!(report.payload_ok);
    let streams = report.trace.unwrap().streams;
    let mut table = String::new();
    for id in (0..3).map(ConnectionId) {
        let of = |direction| {
            let mut found =
                streams.iter().filter(|s| (s.connection, s.direction) == (id, direction));
            found.next().unwrap()
        };
        let (sent, received) = (of(Direction::Send), of(Direction::Receive));
        let arrived = received.arrived.unwrap();
        writeln!(
            table,
            "| {id} | {} | {arrived} | {} | {} | {} |",
            sent.open, sent.close, received.open, received.close
        )
        .unwrap();
    }
    table
}

#[test]
fn the_examples_of_messages() {
    is_in_the_specification(&messages(Protocol::Standing));
    is_in_the_specification(&messages(Protocol::Rendezvous));
}

#[test]
fn the_example_of_a_round() {
    let machine = build::machine("ring:4", |p| {
        (p.active_words, p.c_active_send, p.c_active_receive) = (2, 10, 5);
        (p.c_poll, p.control_reduce) = (4, 20);
    });
    let put =
        |source, words| Put { source: CellId(source), target: CellId(2), words, item_words: 1 };
    let (mut events, mut count) = (Vec::new(), Count(vec![0; 2]));
    let mut active = ActiveMessages::new(&machine).unwrap();
    let mut seen = |event: PacketEvent| events.push(event);
    let clocks = active.run(&[put(0, 3), put(1, 1)], &mut count, &mut seen).unwrap();
    assert_eq!((clocks, count.0), (61, vec![3, 1]));
    events.sort_by_key(|e| (e.put, e.first_word, e.direction == Direction::Receive));
    let mut table = String::new();
    for ends in events.chunks(2) {
        let (sent, taken) = (ends[0], ends[1]);
        writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            sent.put, sent.first_word, sent.start, sent.end, taken.start, taken.end
        )
        .unwrap();
    }
    is_in_the_specification(&table);
}

#[test]
fn the_example_of_a_fat_tree() {
    let machine = Machine::from_spec("fat-tree:6/2.1").unwrap();
    let mut table = String::new();
    for link in (0..machine.link_count()).map(LinkId::from_index) {
        let ends = machine.link(link);
        write!(table, "{link} {} -> {}, ", ends.source, ends.target).unwrap();
    }
    is_in_the_specification(table.trim_end_matches(", "));
}
