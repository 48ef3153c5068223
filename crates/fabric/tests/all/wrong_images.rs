//! Wrong images: every kind of damage causes a fault or is counted, and no run hangs.

use crate::build;
use std::sync::Arc;

use crate::build::PhaseTables;
use conset_fabric::{
    Fabric, FabricOptions, FaultKind, GateProblem, SetBuffers, TableProblem, WaitCause,
    coverage_fault, run_checked,
};
use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, Direction, Feed, LinkId, Machine, Sink,
};
use proptest::prelude::*;

fn x(id: u32) -> ConnectionId {
    ConnectionId(id)
}

/// Two connections that share cells 1 and 2 of a row of four, 20 words each.
fn row_of_four() -> (Arc<Machine>, ConnectionSet, Vec<PhaseTables>) {
    let machine = build::machine("mesh:4x1", |p| p.streams = 4);
    let set = build::set(&[(0, 3, 20), (0, 3, 20), (1, 2, 20)]);
    let tables = build::tables(&machine, &set);
    assert_eq!(tables.len(), 1);
    (machine, set, tables)
}

/// The fault of running changed tables with real data, and the counts of a checked run.
fn damage(
    change: impl FnOnce(&mut PhaseTables),
) -> (FaultKind, Result<(u64, u64, u64), FaultKind>) {
    let (machine, set, mut tables) = row_of_four();
    change(&mut tables[0]);
    let image = build::image(&machine, set.clone(), &tables);
    let mut data = SetBuffers::new(&set);
    let fault =
        Fabric::load(image.clone(), FabricOptions::default()).exchange(0, &mut data).unwrap_err();
    assert!(!fault.to_string().is_empty());
    let checked = run_checked(image, 0, 3, false).map(|c| {
        assert!(!c.payload_ok);
        (c.wrong, c.missing, c.extra)
    });
    (fault.kind, checked.map_err(|fault| fault.kind))
}

fn sink_of(tables: &mut PhaseTables, cell: usize, row: usize) -> &mut Sink {
    &mut tables[cell].entries[row].sink
}

#[test]
fn two_channels_that_forward_into_one_mix_their_words() {
    let (kind, checked) = damage(|t| *sink_of(t, 1, 1) = *sink_of(t, 1, 0));
    // x0's receiver gets words of both in turn; x1's receiver gets none.
    let FaultKind::WrongWord { cell, expected, expected_word, connection, word, .. } = kind else {
        panic!("{kind:?}")
    };
    assert_eq!((cell, expected, connection), (CellId(3), x(0), x(1)));
    assert_eq!((expected_word, word), (1, 0));
    assert!(matches!(checked, Err(FaultKind::Deadlock { .. })), "{checked:?}");
}

/// The receiver first takes another stream, so that the channel fills up and both channels behind it wait for space.
#[test]
fn two_channels_that_forward_into_a_full_one_both_go_on() {
    let machine = build::machine("mesh:4x1", |p| p.streams = 1);
    let set = build::set(&[(2, 3, 200), (0, 3, 20), (0, 3, 20)]);
    let mut tables = build::tables(&machine, &set);
    *sink_of(&mut tables[0], 1, 1) = *sink_of(&mut tables[0], 1, 0);
    let operations = &mut tables[0][3].operations;
    operations[2] = operations[1];
    let checked = run_checked(build::image(&machine, set, &tables), 0, 3, false).unwrap();
    // They take turns at the end, so that some words of the first stream come late, too.
    assert_eq!((checked.wrong, checked.missing, checked.extra), (24, 20, 20));
}

#[test]
fn swapped_next_channels_deliver_to_each_other() {
    let (kind, checked) = damage(|t| {
        let first = *sink_of(t, 1, 0);
        let second = std::mem::replace(sink_of(t, 1, 1), first);
        *sink_of(t, 1, 0) = second;
    });
    assert!(matches!(kind, FaultKind::WrongWord { cell: CellId(3), .. }), "{kind:?}");
    assert_eq!(checked, Ok((40, 0, 0)));
}

#[test]
fn swapped_gates_deliver_to_each_other() {
    let (_, checked) = damage(|t| {
        let cell = &mut t[3];
        cell.operations[0].channel = ChannelId(1);
        cell.operations[1].channel = ChannelId(0);
        cell.entries[0].sink = Sink::Gate(x(1));
        cell.entries[1].sink = Sink::Gate(x(0));
    });
    assert_eq!(checked, Ok((40, 0, 0)));
}

#[test]
fn a_gate_that_belongs_to_another_is_refused() {
    for direction in [Direction::Send, Direction::Receive] {
        let (kind, checked) = damage(|t| match direction {
            Direction::Send => t[0].entries[0].feed = Feed::Gate(x(1)),
            Direction::Receive => t[3].entries[0].sink = Sink::Gate(x(1)),
        });
        let problem = GateProblem::Other(x(1));
        assert!(
            matches!(kind, FaultKind::Gate { connection, direction: d, problem: p, .. }
                if (connection, d, p) == (x(0), direction, problem)),
            "{kind:?}"
        );
        assert_eq!(checked, Err(kind));
    }
}

#[test]
fn words_are_misrouted_where_no_row_accepts_them() {
    for change in [
        (|t: &mut PhaseTables| {
            t[2].entries.remove(0);
        }) as fn(&mut PhaseTables),
        |t| t[2].entries[0].feed = Feed::Link(LinkId(0)),
        |t| {
            if let Sink::Forward { channel, .. } = sink_of(t, 1, 0) {
                *channel = ChannelId(11);
            }
        },
    ] {
        let (kind, checked) = damage(change);
        assert!(
            matches!(kind, FaultKind::Misrouted { cell: CellId(2), connection, word: 0, .. }
                if connection == x(0)),
            "{kind:?}"
        );
        assert_eq!(checked, Err(kind));
    }
}

#[test]
fn a_receive_without_a_send_names_what_is_missing() {
    let (kind, checked) = damage(|t| {
        t[0].operations.remove(0);
    });
    let FaultKind::Deadlock { waits, closed: false, unfinished: 1 } = &kind else {
        panic!("{kind:?}")
    };
    let send = WaitCause::Program { direction: Direction::Send, connection: x(0) };
    assert_eq!(waits[0].cell, CellId(3));
    assert_eq!((waits[1].cell, waits[1].cause), (CellId(0), send));
    assert_eq!(checked, Err(kind));
}

#[test]
fn words_left_over_are_found_at_the_drain() {
    let (kind, checked) = damage(|t| t[3].operations[0].words = 15);
    let left = (x(0), 5, 1);
    assert!(
        matches!(kind, FaultKind::Undrained { connection, words, channels, cell: CellId(3), .. }
            if (connection, words, channels) == left),
        "{kind:?}"
    );
    // Five words were not received, and the same five are left over.
    assert_eq!(checked, Ok((0, 5, 5)));
}

#[test]
fn tables_the_machine_cannot_hold_are_refused() {
    let (kind, _) = damage(|t| {
        let row = t[2].entries[0];
        t[2].entries.push(row);
    });
    assert!(matches!(kind, FaultKind::Table { cell: CellId(2), problem: TableProblem::Twice, .. }));
    let (kind, _) = damage(|t| {
        *sink_of(t, 2, 0) = Sink::Forward { link: LinkId(0), channel: ChannelId(0) };
    });
    let problem = TableProblem::Link(LinkId(0));
    assert!(matches!(kind, FaultKind::Table { problem: p, .. } if p == problem), "{kind:?}");
    // A cycle between cells 1 and 2.
    let (machine, ..) = row_of_four();
    let back = machine.links_between(CellId(2), CellId(1)).next().unwrap();
    let (kind, _) = damage(|t| {
        *sink_of(t, 2, 0) = Sink::Forward { link: back, channel: ChannelId(0) };
        t[1].entries[0].feed = Feed::Link(back);
    });
    assert!(matches!(kind, FaultKind::Table { problem: TableProblem::Cycle, .. }), "{kind:?}");
    // A cycle that begins with the first row.
    let back = machine.links_between(CellId(1), CellId(0)).next().unwrap();
    let (kind, _) = damage(|t| {
        t[0].entries[0].feed = Feed::Link(back);
        *sink_of(t, 1, 0) = Sink::Forward { link: back, channel: ChannelId(0) };
    });
    assert!(matches!(kind, FaultKind::Table { problem: TableProblem::Cycle, .. }), "{kind:?}");
}

#[test]
fn errors_are_counted_for_data_of_the_caller() {
    let (machine, set, mut tables) = row_of_four();
    let first = *sink_of(&mut tables[0], 1, 0);
    let second = std::mem::replace(sink_of(&mut tables[0], 1, 1), first);
    *sink_of(&mut tables[0], 1, 0) = second;
    let image = build::image(&machine, set.clone(), &tables);
    let mut fabric = Fabric::load(image, FabricOptions::default().count_errors(true));
    fabric.exchange(0, &mut SetBuffers::new(&set)).unwrap();
    let errors = fabric.errors();
    assert_eq!((errors.wrong, errors.missing, errors.extra), (40, 0, 0));
}

#[test]
fn a_send_that_is_held_back_waits_for_the_receive_before_it() {
    let machine = build::machine("ring:4", |p| p.streams = 4);
    let set = build::set(&[(3, 1, 4), (0, 1, 5), (1, 2, 5), (2, 1, 6)]);
    // The first one is finished.
    let set = set.with_order(vec![(x(0), x(2)), (x(1), x(2))]).unwrap();
    let mut tables = build::tables(&machine, &set);
    let [phase] = &mut tables[..] else { panic!("one phase") };
    phase[0].operations.clear();
    phase[2].operations.retain(|operation| operation.direction == Direction::Receive);
    // The cell of the send that is held back receives last, and first what does not hold it back.
    phase[1].operations.rotate_right(2);
    let phase_channel = phase[1].operations[3].channel;
    let fault = run_checked(build::image(&machine, set, &tables), 0, 0, false).unwrap_err();
    let FaultKind::Deadlock { waits, closed: false, .. } = fault.kind else { panic!("{fault}") };
    let causes: Vec<WaitCause> = waits.iter().map(|wait| wait.cause).collect();
    let (channel, direction) = (phase_channel, Direction::Send);
    assert_eq!(
        causes,
        [
            WaitCause::Order { connection: x(2), before: Some(x(1)) },
            WaitCause::Words { connection: x(1), channel },
            WaitCause::Program { direction, connection: x(1) },
            WaitCause::NotListed,
        ]
    );
}

/// The chain of waits leads through the receive of the words that wait, whatever its place in the list.
#[test]
fn a_receive_waits_for_all_before_it() {
    let machine = build::machine("mesh:2x1", |p| p.streams = 1);
    let set = build::set(&[(0, 1, 100), (0, 1, 100), (0, 1, 100)]);
    let mut tables = build::tables(&machine, &set);
    tables[0][0].operations.retain(|operation| operation.connection == x(2));
    let fault = run_checked(build::image(&machine, set, &tables), 0, 0, false).unwrap_err();
    let FaultKind::Deadlock { waits, closed: false, .. } = fault.kind else { panic!("{fault}") };
    let causes: Vec<WaitCause> = waits.iter().map(|wait| wait.cause).collect();
    let (link, [first, last]) = (LinkId(0), [ChannelId(0), ChannelId(2)]);
    let turn = |connection| WaitCause::Turn { direction: Direction::Receive, connection };
    assert_eq!(
        causes,
        [
            WaitCause::Space { connection: x(2), channel: last },
            WaitCause::Ahead { channel: last, link },
            WaitCause::Unreceived { channel: last, connection: x(2) },
            turn(x(2)),
            turn(x(1)),
            WaitCause::Words { connection: x(0), channel: first },
            WaitCause::Program { direction: Direction::Send, connection: x(0) },
            WaitCause::NotListed,
        ]
    );
}

#[test]
fn words_that_no_image_would_deliver_are_found_without_a_run() {
    let fault = |change: fn(&mut PhaseTables)| {
        let (machine, set, mut tables) = row_of_four();
        change(&mut tables[0]);
        coverage_fault(&build::image(&machine, set, &tables).sets()[0])
    };
    assert_eq!(fault(|_| ()), None);
    assert_eq!(fault(|t| t[0].operations[0].words = 15), None, "receives count");
    let short = fault(|t| {
        (t[3].operations[0].words, t[3].operations[1].words) = (15, 17);
        let again = t[2].operations[0];
        t[2].operations.push(again);
    });
    let expected = FaultKind::Coverage { connection: x(0), missing: 5, extra: 0, connections: 3 };
    assert_eq!(short, Some(expected));
}

#[test]
fn operations_at_the_wrong_cell_are_refused() {
    let (kind, _) = damage(|t| {
        let operation = t[0].operations[0];
        t[1].operations.push(operation);
    });
    let problem = GateProblem::WrongEnd;
    assert!(matches!(kind, FaultKind::Gate { cell: CellId(1), problem: p, .. } if p == problem));
}

#[test]
fn lists_in_contrary_orders_are_a_deadlock_with_its_cycle() {
    let machine = build::machine("ring:4", |_| ());
    let set = build::set(&[(0, 2, 100), (0, 2, 100)]);
    let mut tables = build::tables(&machine, &set);
    tables[0][2].operations.reverse();
    let fault = run_checked(build::image(&machine, set, &tables), 0, 0, false).unwrap_err();
    let FaultKind::Deadlock { waits, closed: true, unfinished: 4 } = &fault.kind else {
        panic!("{fault}")
    };
    // The send of x0 fills its channels, its receive is after that of x1, whose send is
    // after that of x0.
    assert!(
        waits
            .iter()
            .any(|w| matches!(w.cause, WaitCause::Space { connection, .. } if connection == x(0)))
    );
    assert!(
        waits
            .iter()
            .any(|w| matches!(w.cause, WaitCause::Words { connection, .. } if connection == x(1)))
    );
    assert!(waits.iter().any(|w| matches!(w.cause, WaitCause::Ahead { .. })), "{fault}");
}

#[test]
fn two_cells_that_both_send_first_are_a_deadlock_with_half_duplex_only() {
    for (duplex, words, stuck) in [("full", 100, false), ("half", 100, true), ("half", 16, false)] {
        let machine = build::machine("ring:4", |p| p.set("duplex", duplex).unwrap());
        let set = build::set(&[(0, 1, words), (1, 0, words)]);
        let mut tables = build::tables(&machine, &set);
        tables[0][1].operations.reverse();
        // Sixteen words fit the two channels of the route, so the sends can finish.
        let outcome = run_checked(build::image(&machine, set, &tables), 0, 0, false);
        match outcome {
            Ok(checked) => assert!(checked.payload_ok && !stuck),
            Err(fault) => {
                assert!(stuck, "{fault}");
                assert!(matches!(fault.kind, FaultKind::Deadlock { closed: true, .. }), "{fault}");
            }
        }
    }
}

#[test]
fn a_set_that_is_not_there_is_refused() {
    let (machine, set, tables) = row_of_four();
    let image = build::image(&machine, set, &tables);
    let fault = run_checked(image, 1, 0, false).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoSet { index: 1, sets: 1 });
}

/// A machine, a set on it, and its tables.
fn a_case() -> impl Strategy<Value = (Arc<Machine>, ConnectionSet, Vec<PhaseTables>)> {
    let specs = prop::sample::select(vec![
        "mesh:4x1",
        "torus:3x3",
        "torus:2x2",
        "hypercube:3",
        "fat-tree:6",
        "ring:1",
        "ring:2",
    ]);
    let numbers = (1u32..6, 1u32..4, 1u32..4, 1u32..4, 0u32..6, any::<bool>(), 2u32..8);
    let pairs = prop::collection::vec((any::<u32>(), any::<u32>(), 1u32..30), 0..25);
    (specs, numbers, pairs).prop_map(|(spec, numbers, pairs)| {
        let (depth, link, access, streams, setup, half, channels) = numbers;
        let machine = build::machine(spec, |p| {
            p.channel_depth = depth;
            p.link_clocks_per_word = link;
            p.access_clocks_per_word = access;
            p.streams = streams;
            p.stream_setup = setup;
            p.channels_per_cell = channels;
            if half {
                p.duplex = conset_ir::Duplex::Half;
            }
        });
        let cells = machine.agent_count() as u32;
        let pairs: Vec<_> = pairs.iter().map(|&(s, t, w)| (s % cells, t % cells, w)).collect();
        let set = build::set(&pairs);
        let tables = build::tables(&machine, &set);
        (machine, set, tables)
    })
}

/// One change of some table: which phase, cell and row, what, and to what.
type Change = (u32, u32, u32, u8, u32);

/// Applies a change; `false` where there is nothing to change.
fn apply(machine: &Machine, tables: &mut [PhaseTables], change: Change) -> bool {
    let (phase, cell, row, kind, value) = change;
    let pick = |n: usize, by: u32| (n > 0).then(|| by as usize % n.max(1));
    let Some(phase) = pick(tables.len(), phase) else { return false };
    let phase = &mut tables[phase];
    let occupied: Vec<usize> = (0..phase.len()).filter(|&c| !phase[c].entries.is_empty()).collect();
    let Some(at) = pick(occupied.len(), cell) else { return false };
    let cell = &mut phase[occupied[at]];
    let channels = machine.parameters().channels_per_cell;
    let other = ChannelId(value % channels);
    let link = pick(machine.link_count(), value).map(LinkId::from_index);
    let entry = row as usize % cell.entries.len();
    let entries = &mut cell.entries;
    let operation = pick(cell.operations.len(), row);
    match kind % 12 {
        0 => entries[entry].channel = other,
        1 => match &mut entries[entry].sink {
            Sink::Forward { channel, .. } => *channel = other,
            Sink::Gate(_) => return false,
        },
        2 => match (&mut entries[entry].sink, link) {
            (Sink::Forward { link, .. }, Some(new)) => *link = new,
            _ => return false,
        },
        3 => {
            let swap = value as usize % entries.len();
            let sink = entries[swap].sink;
            entries[swap].sink = std::mem::replace(&mut entries[entry].sink, sink);
        }
        4 => {
            let swap = value as usize % entries.len();
            let feed = entries[swap].feed;
            entries[swap].feed = std::mem::replace(&mut entries[entry].feed, feed);
        }
        5 => {
            entries.remove(entry);
        }
        6 => {
            let sink = entries[value as usize % entries.len()].sink;
            entries[entry].sink = sink;
        }
        7 => match operation {
            Some(at) => {
                cell.operations.remove(at);
            }
            None => return false,
        },
        8 => match operation {
            Some(at) => cell.operations[at].channel = other,
            None => return false,
        },
        9 => match operation {
            Some(at) => {
                let words = &mut cell.operations[at].words;
                *words = 1 + value % *words;
            }
            None => return false,
        },
        10 => match operation {
            Some(at) => {
                let repeated = cell.operations[at];
                cell.operations.push(repeated);
            }
            None => return false,
        },
        _ => match operation {
            Some(at) => {
                let swap = value as usize % cell.operations.len();
                cell.operations.swap(at, swap);
            }
            None => return false,
        },
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn right_images_deliver_everything((machine, set, tables) in a_case()) {
        let image = build::image(&machine, set.clone(), &tables);
        let checked = run_checked(image.clone(), 0, 9, false).map_err(|f| {
            TestCaseError::fail(f.to_string())
        })?;
        prop_assert!(checked.payload_ok, "{checked:?}");
        let hops: u64 = set
            .connections()
            .iter()
            .map(|c| u64::from(c.words * machine.hops_from(c.source)[c.target.index()]))
            .sum();
        prop_assert_eq!((checked.report.words, checked.report.word_hops), (set.words(), hops));
        let mut data = SetBuffers::new(&set);
        for (id, connection) in set.iter() {
            for word in 0..connection.words {
                data.outgoing(id)[word as usize] = conset_fabric::synthetic_word(4, id, word);
            }
        }
        let report = Fabric::load(image, FabricOptions::default()).exchange(0, &mut data).unwrap();
        prop_assert_eq!(report, checked.report);
        for (id, _) in set.iter() {
            let sent = data.outgoing(id).to_vec();
            prop_assert_eq!(data.incoming(id), sent);
        }
    }

    /// However the tables are changed, the run ends, and if it reports no error then real
    /// data has arrived completely.
    #[test]
    fn damaged_images_never_hang_and_never_deliver_wrong_words_in_silence(
        (machine, set, mut tables) in a_case(),
        changes in prop::collection::vec(any::<Change>(), 1..4),
    ) {
        for change in changes {
            apply(&machine, &mut tables, change);
        }
        let image = build::image(&machine, set.clone(), &tables);
        let checked = run_checked(image.clone(), 0, 9, true);
        let mut data = SetBuffers::new(&set);
        for (id, connection) in set.iter() {
            for word in 0..connection.words {
                data.outgoing(id)[word as usize] = conset_fabric::synthetic_word(4, id, word);
            }
        }
        let outcome = Fabric::load(image.clone(), FabricOptions::default()).exchange(0, &mut data);
        prop_assert_eq!(outcome.is_ok(), checked.as_ref().is_ok_and(|c| c.payload_ok));
        if outcome.is_ok() {
            for (id, _) in set.iter() {
                let sent = data.outgoing(id).to_vec();
                prop_assert_eq!(data.incoming(id), sent);
            }
        }
        prop_assert_eq!(checked, run_checked(image, 0, 9, true));
    }
}
