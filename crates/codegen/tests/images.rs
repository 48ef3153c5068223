//! Images, deltas and listings are compared with the timetables they were generated from.

mod common;

use std::sync::Arc;

use common::{compiled, machine};
use conset_codegen::{Delta, ImageError, deltas, image, listing};
use conset_ir::{
    CellId, ChannelEntry, Connection, ConnectionId, ConnectionSet, Direction, Duplex, Feed, Image,
    Machine, SetImage, Sink, Timetable,
};
use proptest::prelude::*;

fn set(name: &str, ends: &[(u32, u32, u32)]) -> ConnectionSet {
    let connections =
        ends.iter().map(|&(s, t, words)| Connection::new(CellId(s), CellId(t), words)).collect();
    ConnectionSet::new(name, connections).unwrap()
}

/// The cells and channels on the way from a gate along the tables of a phase, and the connection of
/// the gate at the end.
fn follow(
    machine: &Machine,
    image: &SetImage,
    phase: usize,
    from: CellId,
    entry: &ChannelEntry,
) -> (Vec<(CellId, u32)>, ConnectionId) {
    let (mut cell, mut entry) = (from, *entry);
    let mut passed = vec![(cell, entry.channel.0)];
    loop {
        match entry.sink {
            Sink::Gate(connection) => return (passed, connection),
            Sink::Forward { link, channel } => {
                let wire = machine.link(link);
                assert_eq!(wire.source, cell);
                cell = wire.target;
                let entries = image.phases[phase].cell(cell).entries;
                entry = *entries.iter().find(|e| e.channel == channel).unwrap();
                assert_eq!(entry.feed, Feed::Link(link));
                passed.push((cell, channel.0));
                assert!(passed.len() <= machine.cell_count());
            }
        }
    }
}

/// Follows every gate and compares with the routes; then the operations with routes and slots.
fn check(image: &Image, timetable: &Timetable) {
    let (machine, set) = (image.machine(), &image.sets()[0]);
    let routing = timetable.routing();
    assert_eq!(set.phases.len(), routing.phases().len());
    let mut dealt = vec![0u32; routing.set().len()];
    for (p, (routes, times)) in routing.phases().iter().zip(timetable.phases()).enumerate() {
        let mut found = Vec::new();
        let mut entries = 0;
        for (cell, context) in set.phases[p].cells() {
            entries += context.entries.len();
            assert!(context.entries.is_sorted_by(|a, b| a.channel < b.channel));
            for entry in context.entries {
                if let Feed::Gate(connection) = entry.feed {
                    let (passed, end) = follow(machine, set, p, cell, entry);
                    assert_eq!(connection, end);
                    found.push((passed, connection));
                }
            }
        }
        let mut expected = Vec::new();
        let mut operations = Vec::new();
        for (row, (route, slot)) in routes.iter().zip(&times.slots).enumerate() {
            let channels = route.channels.iter().map(|channel| channel.0);
            expected.push((
                route.cells.iter().copied().zip(channels).collect::<Vec<_>>(),
                route.connection,
            ));
            let first_word = dealt[route.connection.index()];
            dealt[route.connection.index()] += route.words;
            for (end, direction) in [(0, Direction::Send), (route.hops(), Direction::Receive)] {
                operations.push((
                    (route.cells[end], slot.start, route.connection, row, direction),
                    (route.channels[end], route.words, first_word),
                ));
            }
        }
        assert_eq!(entries, expected.iter().map(|route| route.0.len()).sum::<usize>());
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        operations.sort();
        let listed = set.phases[p].cells().flat_map(|(cell, context)| {
            context.operations.iter().map(move |o| {
                ((cell, o.start, o.connection, o.direction), (o.channel, o.words, o.first_word))
            })
        });
        let planned = operations.iter().map(|&((c, s, x, _, d), rest)| ((c, s, x, d), rest));
        assert!(listed.eq(planned));
    }
    assert!(routing.set().iter().all(|(id, c)| dealt[id.index()] == c.words));
}

/// Applies each delta to the previous table; the result must be the table of the phase.
fn check_deltas(set: &SetImage) {
    let cells = set.phases.first().map_or(0, |phase| phase.cell_count());
    let mut tables: Vec<Vec<ChannelEntry>> = vec![Vec::new(); cells];
    let all = deltas(set);
    assert_eq!(all.len(), set.phases.len());
    for (delta, phase) in all.iter().zip(&set.phases) {
        let (mut sets, mut cleared, mut kept, mut changed) = (0, 0, 0, 0);
        for cell in delta.cells() {
            let table = &mut tables[cell.cell.index()];
            let new = cell.apply(table);
            sets += cell.set.len() as u64;
            cleared += cell.cleared.len() as u64;
            kept += u64::from(cell.kept);
            changed += u64::from(new != *table);
            *table = new;
        }
        for (cell, context) in phase.cells() {
            assert_eq!(tables[cell.index()], context.entries);
        }
        let totals = delta.totals();
        assert_eq!(
            (totals.set, totals.cleared, totals.kept, totals.changed_cells),
            (sets, cleared, kept, changed)
        );
    }
    // The delta from the last context to the empty one clears all entries.
    let back = Delta::between(set.phases.last(), None).totals();
    let left: usize = tables.iter().map(Vec::len).sum();
    assert_eq!((back.set, back.cleared, back.kept), (0, left as u64, 0));
}

#[test]
fn the_designs_example_reads_as_it_should() {
    let machine = machine("iwarp", |_| {});
    let timetable = compiled(&machine, set("halo", &[(3, 4, 133)]), 133);
    let image = image(&machine, &[timetable]).unwrap();
    let expected = "\
image for iwarp (torus:8x8), 64 cells, 12 channels per cell

set halo: 1 connection, 133 words, 1 phase
  x0  c3 -> c4  133 words

halo/p0: 2 cells, 2 entries, 2 operations
  c3
    ch11  gate x0      -> l12 ch11
    send     x0  133 words from 0 through ch11, at 0
  c4
    ch11  l12          -> gate x0
    receive  x0  133 words from 0 through ch11, at 0
";
    assert_eq!(listing(&image), expected);
}

#[test]
fn a_cell_that_sends_to_itself_sends_first() {
    let machine = machine("ring:3", |p| p.duplex = Duplex::Half);
    let timetable = compiled(&machine, set("s", &[(1, 1, 5), (1, 2, 5)]), 3);
    let image = image(&machine, std::slice::from_ref(&timetable)).unwrap();
    check(&image, &timetable);
    let context = image.sets()[0].phases[0].cell(CellId(1));
    let both = Feed::Gate(ConnectionId(0));
    assert!(
        context.entries.iter().any(|e| e.feed == both && e.sink == Sink::Gate(ConnectionId(0)))
    );
    let doings: Vec<_> =
        context.operations.iter().map(|o| (o.direction, o.connection.0, o.first_word)).collect();
    let (send, receive) = (Direction::Send, Direction::Receive);
    assert_eq!(
        doings,
        [(send, 0, 0), (receive, 0, 0), (send, 1, 0), (send, 0, 3), (receive, 0, 3), (send, 1, 3)]
    );
}

#[test]
fn sets_for_another_machine_and_of_one_name_are_refused() {
    let (ring, other) = (machine("ring:4", |_| {}), machine("ring:5", |_| {}));
    let timetable = compiled(&ring, set("s", &[(0, 1, 5)]), 5);
    let error = image(&other, std::slice::from_ref(&timetable)).unwrap_err();
    assert!(matches!(&error, ImageError::OtherMachine { set, .. } if set == "s"), "{error}");
    let twice = [timetable.clone(), timetable.clone()];
    assert!(matches!(image(&ring, &twice), Err(ImageError::Shape(_))));
    // Machines are compared by value.
    let equal = Arc::new(ring.with_parameters(ring.parameters().clone()).unwrap());
    assert!(image(&equal, &[timetable]).is_ok());
}

#[test]
fn nothing_makes_an_empty_image() {
    let machine = machine("ring:1", |_| {});
    assert!(image(&machine, &[]).unwrap().sets().is_empty());
    let timetable = compiled(&machine, set("none", &[]), 1);
    let image = image(&machine, &[timetable]).unwrap();
    assert!(deltas(&image.sets()[0]).is_empty());
    assert!(listing(&image).contains("0 phases"));
}

#[test]
fn a_delta_tells_set_cleared_and_kept() {
    // Two channels per cell: x0 and x1 fill the first phase, x2 comes in the second.
    let machine = machine("ring:4", |p| p.channels_per_cell = 2);
    let timetable = compiled(&machine, set("s", &[(0, 1, 5), (0, 1, 5), (1, 2, 5)]), 5);
    let image = image(&machine, &[timetable]).unwrap();
    let all = deltas(&image.sets()[0]);
    assert_eq!(all.len(), 2);
    let first = all[0].totals();
    assert_eq!((first.set, first.cleared, first.kept, first.changed_cells), (4, 0, 0, 2));
    let second = all[1].totals();
    // c0 loses both entries; c1 has one changed and loses one; c2 gains one.
    assert_eq!((second.set, second.cleared, second.kept, second.changed_cells), (2, 3, 0, 3));
    let phase = &image.sets()[0].phases[0];
    let same = Delta::between(Some(phase), Some(phase)).totals();
    assert_eq!((same.set, same.cleared, same.kept, same.changed_cells), (0, 0, 4, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn images_say_what_timetables_say(
        ends in prop::collection::vec((0u32..12, 0u32..12, 1u32..30), 0..40),
        channels in 2u32..13,
        part in 1u32..40,
        is_half: bool,
        shape in prop::sample::select(vec!["torus:4x3", "mesh:12", "torus:2x2x3", "fat-tree:12"]),
    ) {
        let machine = machine(shape, |p| {
            p.channels_per_cell = channels;
            p.duplex = if is_half { Duplex::Half } else { Duplex::Full };
        });
        let timetable = compiled(&machine, set("s", &ends), part);
        let image = image(&machine, std::slice::from_ref(&timetable)).unwrap();
        check(&image, &timetable);
        check_deltas(&image.sets()[0]);
        let plain: &Timetable = &timetable;
        conset_verify::check_image_of(&image, &[plain]).unwrap();
    }
}
