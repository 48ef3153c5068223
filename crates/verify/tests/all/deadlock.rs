//! Tests of the deadlock model: lists with known verdicts, and random lists compared with a slow
//! simulation.

use std::collections::BTreeSet;

use crate::common::{DraftCell, machine, phase_image, set};
use conset_ir::Direction::{Receive, Send};
use conset_ir::*;
use conset_verify::deadlock::{BlockedOperation, Checker, Verdict, WaitsFor, describe};
use proptest::prelude::*;

fn x(id: u32) -> ConnectionId {
    ConnectionId(id)
}

/// A phase with these lists: for each cell, directions and connections in order.
fn phase(cells: &[&[(Direction, u32)]]) -> PhaseImage {
    let cells: Vec<DraftCell> = cells
        .iter()
        .map(|list| DraftCell {
            entries: Vec::new(),
            operations: list
                .iter()
                .map(|&(direction, connection)| Operation {
                    direction,
                    connection: x(connection),
                    channel: ChannelId(connection),
                    words: 4,
                    first_word: 0,
                    start: 0,
                })
                .collect(),
        })
        .collect();
    phase_image(&cells)
}

fn judge(
    settings: &[(&str, &str)],
    connections: &[(u32, u32)],
    order: &[(u32, u32)],
    lists: &[&[(Direction, u32)]],
) -> Verdict {
    let machine = machine(&format!("mesh:{}", lists.len()), settings);
    let connections: Vec<(u32, u32, u32)> = connections.iter().map(|&(s, t)| (s, t, 4)).collect();
    let order = order.iter().map(|&(a, b)| (x(a), x(b))).collect();
    let set = set(&connections).with_order(order).unwrap();
    let mut checker = Checker::new(&machine, &set);
    let verdict = checker.phase(&phase(lists));
    assert_eq!(checker.phase(&phase(lists)), verdict, "the checker remembers nothing");
    verdict
}

const HALF: &[(&str, &str)] = &[("duplex", "half")];

#[test]
fn a_ring_that_receives_first_is_named() {
    let ring: [(u32, u32); 3] = [(0, 1), (1, 2), (2, 0)];
    let receive_first: [&[(Direction, u32)]; 3] =
        [&[(Receive, 2), (Send, 0)], &[(Receive, 0), (Send, 1)], &[(Receive, 1), (Send, 2)]];
    let Verdict::Deadlock(waits) = judge(HALF, &ring, &[], &receive_first) else {
        panic!("no deadlock")
    };
    let expected = |cell, connection, other, busy_with| BlockedOperation {
        cell: CellId(cell),
        operation: 0,
        direction: Receive,
        connection: x(connection),
        waits_for: WaitsFor::Other { cell: CellId(other), busy_with: x(busy_with) },
    };
    assert_eq!(waits, [expected(0, 2, 2, 1), expected(2, 1, 1, 0), expected(1, 0, 0, 2)]);
    assert!(describe(&waits).starts_with("c0 receives x2 (operation 0), c2 is busy with x1; c2"));

    // Two directions, or two streams, or one cell that sends first: free.
    assert_eq!(judge(&[], &ring, &[], &receive_first), Verdict::Free);
    let streams = [("duplex", "half"), ("streams", "2")];
    assert_eq!(judge(&streams, &ring, &[], &receive_first), Verdict::Free);
    let mut one_sends = receive_first;
    one_sends[1] = &[(Send, 1), (Receive, 0)];
    assert_eq!(judge(HALF, &ring, &[], &one_sends), Verdict::Free);
}

#[test]
fn all_sending_first_needs_room() {
    let ring = [(0, 1), (1, 2), (2, 0)];
    let send_first: [&[(Direction, u32)]; 3] =
        [&[(Send, 0), (Receive, 2)], &[(Send, 1), (Receive, 0)], &[(Send, 2), (Receive, 1)]];
    let Verdict::Undecided(waits) = judge(HALF, &ring, &[], &send_first) else { panic!("decided") };
    assert_eq!(waits.len(), 3);
    assert_eq!(judge(&[], &ring, &[], &send_first), Verdict::Free);
}

#[test]
fn receiving_in_another_order_than_sent_needs_room() {
    let lists: [&[(Direction, u32)]; 2] = [&[(Send, 0), (Send, 1)], &[(Receive, 1), (Receive, 0)]];
    let twice = [(0, 1), (0, 1)];
    assert!(matches!(judge(&[], &twice, &[], &lists), Verdict::Undecided(_)));
    assert_eq!(judge(&[("streams", "2")], &twice, &[], &lists), Verdict::Free);
}

#[test]
fn a_connection_to_itself_alternates_only_where_its_ends_are_neighbours() {
    let own = [(0, 0), (0, 1)];
    let judge = |settings, first: &[(Direction, u32)]| {
        judge(settings, &own, &[], &[first, &[(Receive, 1)]])
    };
    let neighbours = [(Send, 0), (Receive, 0), (Send, 1)];
    let apart = [(Send, 0), (Send, 1), (Receive, 0)];
    let backwards = [(Receive, 0), (Send, 0), (Send, 1)];
    assert_eq!(judge(HALF, &neighbours), Verdict::Free);
    assert!(matches!(judge(HALF, &apart), Verdict::Undecided(_)));
    let Verdict::Deadlock(waits) = judge(HALF, &backwards) else { panic!("no deadlock") };
    assert_eq!(waits.len(), 1, "it waits for itself");
    for list in [neighbours, apart, backwards] {
        assert_eq!(judge(&[], &list), Verdict::Free);
    }
}

#[test]
fn lists_against_the_order_are_blocked() {
    let lists: [&[(Direction, u32)]; 2] = [&[(Send, 1), (Send, 0)], &[(Receive, 1), (Receive, 0)]];
    let twice = [(0, 1), (0, 1)];
    assert_eq!(judge(&[], &twice, &[], &lists), Verdict::Free);
    let Verdict::Deadlock(waits) = judge(&[], &twice, &[(0, 1)], &lists) else {
        panic!("no deadlock")
    };
    let order = WaitsFor::Order { before: x(0), cell: CellId(0), busy_with: x(1) };
    assert_eq!((waits.len(), waits[0].connection, waits[0].waits_for), (1, x(1), order));
    assert_eq!(
        describe(&waits),
        "c0 sends x1 (operation 0), x0 must complete first, c0 is busy with x1"
    );
    // The first of the pair may be in another phase.
    assert_eq!(judge(&[], &twice, &[(0, 1)], &[&[(Send, 1)], &[(Receive, 1)]]), Verdict::Free);
}

#[test]
fn an_order_that_only_the_receiver_breaks_is_named_there() {
    // With buffering, x0 is sent; at the receiver x1 precedes it.
    let lists: [&[(Direction, u32)]; 2] = [&[(Send, 0), (Send, 1)], &[(Receive, 1), (Receive, 0)]];
    let Verdict::Deadlock(waits) = judge(&[], &[(0, 1), (0, 1)], &[(0, 1)], &lists) else {
        panic!("no deadlock")
    };
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].cell, waits[0].direction), (CellId(1), Receive));
    let order = WaitsFor::Order { before: x(0), cell: CellId(1), busy_with: x(1) };
    assert_eq!(waits[0].waits_for, order);
}

/// What the first of the waits waits for, and their number.
fn first_wait(
    order: &[(u32, u32)],
    connections: &[(u32, u32)],
    lists: &[&[(Direction, u32)]],
) -> (usize, String) {
    let (Verdict::Deadlock(waits) | Verdict::Undecided(waits)) =
        judge(&[], connections, order, lists)
    else {
        panic!("free")
    };
    (waits.len(), describe(&waits[..1]))
}

#[test]
fn waits_name_the_connection_that_has_to_complete_first() {
    // Of both that precede x2, x0 is complete.
    let lists: [&[(Direction, u32)]; 2] =
        [&[(Send, 0), (Send, 2), (Send, 1)], &[(Receive, 0), (Receive, 1), (Receive, 2)]];
    let waits = first_wait(&[(0, 2), (1, 2)], &[(0, 1); 3], &lists);
    let text = "c0 sends x2 (operation 1), x1 must complete first, c0 is busy with x2";
    assert_eq!(waits, (1, text.to_owned()));
    // Two pairs of cells, each with an ordered pair.
    let lists: [&[(Direction, u32)]; 4] = [
        &[(Send, 3), (Send, 2)],
        &[(Receive, 3), (Receive, 2)],
        &[(Send, 1), (Send, 0)],
        &[(Receive, 1), (Receive, 0)],
    ];
    let ends = [(2, 3), (2, 3), (0, 1), (0, 1)];
    let waits = first_wait(&[(0, 1), (2, 3)], &ends, &lists);
    let text = "c0 sends x3 (operation 0), x2 must complete first, c0 is busy with x3";
    assert_eq!(waits, (1, text.to_owned()));
    // The order of later ones is not why the first two need room.
    let lists: [&[(Direction, u32)]; 2] = [
        &[(Send, 0), (Send, 1), (Send, 2), (Send, 3)],
        &[(Receive, 1), (Receive, 0), (Receive, 2), (Receive, 3)],
    ];
    let waits = first_wait(&[(2, 3)], &[(0, 1); 4], &lists);
    assert_eq!(waits, (2, "c0 sends x0 (operation 0), c1 is busy with x1".to_owned()));
}

#[test]
fn a_connection_precedes_others_with_all_its_parts() {
    let part = |direction, connection, first_word| Operation {
        direction,
        connection: x(connection),
        channel: ChannelId(0),
        words: 4,
        first_word,
        start: 0,
    };
    let list = |direction, parts: &[(u32, u32)]| {
        let operations = parts.iter().map(|&(x, first)| part(direction, x, first)).collect();
        DraftCell { entries: Vec::new(), operations }
    };
    let machine = machine("mesh:2", &[]);
    let set = set(&[(0, 1, 8), (0, 1, 4)]).with_order(vec![(x(0), x(1))]).unwrap();
    let mut checker = Checker::new(&machine, &set);
    assert_eq!(format!("{checker:?}"), "Checker { set: \"s\", .. }");
    let mut verdict = |parts: &[(u32, u32)]| {
        checker.phase(&phase_image(&[list(Send, parts), list(Receive, parts)]))
    };
    assert_eq!(verdict(&[(0, 0), (0, 4), (1, 0)]), Verdict::Free);
    let Verdict::Deadlock(waits) = verdict(&[(0, 0), (1, 0), (0, 4)]) else {
        panic!("no deadlock")
    };
    let order = WaitsFor::Order { before: x(0), cell: CellId(0), busy_with: x(1) };
    assert_eq!((waits.len(), waits[0].operation, waits[0].waits_for), (1, 1, order));
}

#[test]
fn chains_of_waits_are_shortened() {
    let blocked = |operation| BlockedOperation {
        cell: CellId(0),
        operation,
        direction: Send,
        connection: x(1),
        waits_for: WaitsFor::Order { before: x(0), cell: CellId(2), busy_with: x(0) },
    };
    let line = |waits: u32| describe(&(0..waits).map(blocked).collect::<Vec<_>>());
    let one = "c0 sends x1 (operation 0), x0 must complete first and is blocked at c2";
    assert_eq!(line(1), one);
    assert!(line(8).ends_with("(operation 7), x0 must complete first and is blocked at c2"));
    assert!(line(9).ends_with(&format!("{}; and 1 more waits", &line(8)[one.len()..])));
}

#[test]
fn order_between_phases_holds_nothing_up() {
    let machine = machine("mesh:2", &[]);
    let set = set(&[(0, 1, 4), (0, 1, 4)]).with_order(vec![(x(0), x(1))]).unwrap();
    let mut checker = Checker::new(&machine, &set);
    for only in [0, 1] {
        let lists: [&[(Direction, u32)]; 2] = [&[(Send, only)], &[(Receive, only)]];
        assert_eq!(checker.phase(&phase(&lists)), Verdict::Free);
    }
    // Also after a phase that deadlocked.
    let stuck: [&[(Direction, u32)]; 2] = [&[(Send, 0)], &[]];
    assert!(matches!(checker.phase(&phase(&stuck)), Verdict::Deadlock(_)));
    let lists: [&[(Direction, u32)]; 2] = [&[(Send, 1)], &[(Receive, 1)]];
    assert_eq!(checker.phase(&phase(&lists)), Verdict::Free);
}

#[test]
fn ends_without_another_end_are_stuck_for_ever() {
    for lists in [[&[(Send, 0)][..], &[]], [&[], &[(Receive, 0)]]] {
        let Verdict::Deadlock(waits) = judge(&[], &[(0, 1)], &[], &lists) else {
            panic!("no deadlock")
        };
        assert_eq!(waits.last().unwrap().waits_for, WaitsFor::Nobody);
    }
}

#[test]
fn long_chains_take_no_stack_and_no_square_time() {
    // One cell sends and the other receives 200 000 times; then with the last two swapped.
    let n = 200_000;
    let machine = machine("mesh:2", &[]);
    let set = set(&vec![(0, 1, 4); n as usize]);
    let sends: Vec<(Direction, u32)> = (0..n).map(|i| (Send, i)).collect();
    let mut receives: Vec<(Direction, u32)> = (0..n).map(|i| (Receive, i)).collect();
    let mut checker = Checker::new(&machine, &set);
    assert_eq!(checker.phase(&phase(&[&sends, &receives])), Verdict::Free);
    receives.swap(n as usize - 2, n as usize - 1);
    assert!(matches!(checker.phase(&phase(&[&sends, &receives])), Verdict::Undecided(_)));
}

/// A list entry of the slow simulation, and its ends.
type Ends = Vec<(Direction, u32)>;

/// Whether all operations complete: tries all of them until none can proceed.
fn gets_through(lists: &[Vec<Ends>], order: &[(u32, u32)], streams: usize, room: bool) -> bool {
    let all: BTreeSet<(Direction, u32)> = lists.iter().flatten().flatten().copied().collect();
    let mut done: BTreeSet<(Direction, u32)> = BTreeSet::new();
    loop {
        let before = done.len();
        let mut open = BTreeSet::new();
        for list in lists {
            let undone = list.iter().filter(|item| !item.iter().all(|end| done.contains(end)));
            open.extend(undone.take(streams).flatten().copied());
        }
        for &(direction, c) in &open {
            let (send, receive) = ((Send, c), (Receive, c));
            let ordered = order
                .iter()
                .filter(|pair| pair.1 == c && all.contains(&(Receive, pair.0)))
                .all(|pair| done.contains(&(Receive, pair.0)));
            if !ordered || !all.contains(&send) || !all.contains(&receive) {
                continue;
            }
            let moves = match direction {
                Send => room || open.contains(&receive),
                Receive => done.contains(&send) || open.contains(&send) && !room,
            };
            if moves && room {
                done.insert((direction, c));
            } else if moves {
                done.extend([send, receive]);
            }
        }
        if done.len() == before {
            return done == all;
        }
    }
}

/// The lists of a cell: one with joined pairs with half duplex, one per direction with full.
fn slow_lists(cells: &[Vec<(Direction, u32)>], half: bool) -> Vec<Vec<Ends>> {
    let mut lists = Vec::new();
    for cell in cells {
        if !half {
            for direction in [Send, Receive] {
                let ends = cell.iter().filter(|end| end.0 == direction);
                lists.push(ends.map(|&end| vec![end]).collect());
            }
            continue;
        }
        let mut list: Vec<Ends> = Vec::new();
        for &end in cell {
            match list.last_mut() {
                Some(last) if end.0 == Receive && *last == [(Send, end.1)] => last.push(end),
                _ => list.push(vec![end]),
            }
        }
        lists.push(list);
    }
    lists
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn verdicts_are_those_of_the_slow_simulation(
        ends in prop::collection::vec((0u32..4, 0u32..4), 1..9),
        half in any::<bool>(),
        streams in 1usize..3,
        order in prop::collection::vec((0u32..9, 0u32..9), 0..3),
        swaps in prop::collection::vec((0usize..4, any::<u32>(), any::<u32>()), 0..4),
    ) {
        let mut cells: Vec<Vec<(Direction, u32)>> = vec![Vec::new(); 4];
        for (row, &(s, t)) in ends.iter().enumerate() {
            cells[s as usize].push((Send, row as u32));
            cells[t as usize].push((Receive, row as u32));
        }
        for (cell, a, b) in swaps {
            let n = cells[cell].len();
            if n > 0 {
                cells[cell].swap(a as usize % n, b as usize % n);
            }
        }
        let n = ends.len() as u32;
        let order: Vec<(u32, u32)> = order
            .into_iter()
            .map(|(a, b)| ((a % n).min(b % n), (a % n).max(b % n)))
            .filter(|(a, b)| a != b)
            .collect();
        let streams_text = streams.to_string();
        let settings =
            [("duplex", if half { "half" } else { "full" }), ("streams", &streams_text[..])];
        let views: Vec<&[(Direction, u32)]> = cells.iter().map(Vec::as_slice).collect();
        let verdict = judge(&settings, &ends, &order, &views);
        let lists = slow_lists(&cells, half);
        let least = gets_through(&lists, &order, streams, false);
        let most = gets_through(&lists, &order, streams, true);
        prop_assert!(most || !least, "more room never hurts");
        match verdict {
            Verdict::Free => prop_assert!(least),
            Verdict::Undecided(waits) => prop_assert!(!least && most && !waits.is_empty()),
            Verdict::Deadlock(waits) => prop_assert!(!most && !waits.is_empty()),
        }
    }
}
