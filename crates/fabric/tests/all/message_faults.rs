//! Faults of the hardware in message passing: every word of small exchanges over every link, every link and cell at
//! every clock, by sets and by step plans. With check words nothing is silent; what stops is named.

use crate::build;
use std::sync::Arc;

use crate::build::{EFFECTS, links};
use conset_fabric::messages::{
    MessageOptions, MessageOrder, run_checked, run_set_with_faults, run_steps_with_faults,
};
use conset_fabric::{Damage, Detection, FaultExtent, FaultKind, FaultRun, Outcome, WaitCause};
use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Duplex, Machine, Piece, Protocol, StepMessages, Steps,
};

fn run(machine: &Arc<Machine>, set: &ConnectionSet, plan: &str, detection: Detection) -> FaultRun {
    let plan = plan.parse().expect("a plan");
    run_set_with_faults(machine, set, &MessageOptions::default(), &plan, detection)
        .expect("parts of the machine")
}

/// Machines with shallow and deep queues, both protocols, with and without extra words, full and half duplex.
fn machines(spec: &str) -> impl Iterator<Item = Arc<Machine>> + '_ {
    let all = [
        (1, Protocol::Standing, 0, Duplex::Full),
        (2, Protocol::Standing, 1, Duplex::Half),
        (8, Protocol::Standing, 3, Duplex::Full),
        (2, Protocol::Rendezvous, 0, Duplex::Half),
        (4, Protocol::Rendezvous, 2, Duplex::Full),
    ];
    all.into_iter().map(move |(depth, protocol, extra, duplex)| {
        build::machine(spec, |p| {
            (p.channel_depth, p.protocol, p.duplex) = (depth, protocol, duplex);
            (p.message_extra_words, p.c_send, p.c_receive) = (extra, 11, 7);
        })
    })
}

/// An all-to-all of six cells in two hops of a torus 3x2: first along the rows, then along the columns.
fn two_hops(machine: &Arc<Machine>, words: u32) -> Steps {
    let set = build::all_to_all(6, words);
    let by = |cell: u32| (cell % 3, cell / 3);
    let mut messages = StepMessages::new();
    for step in 0..2 {
        let rows = set.iter().filter_map(|(id, connection)| {
            let (from, to) = (by(connection.source.0), by(connection.target.0));
            let middle = to.0 + 3 * from.1;
            let ends = [(connection.source.0, middle), (middle, connection.target.0)][step];
            (ends.0 != ends.1).then_some((ends, id))
        });
        let mut rows: Vec<((u32, u32), ConnectionId)> = rows.collect();
        rows.sort();
        for group in rows.chunk_by(|a, b| a.0 == b.0) {
            let pieces: Vec<Piece> = group.iter().map(|&(_, id)| Piece::whole(&set, id)).collect();
            let (source, target) = group[0].0;
            messages.push(CellId(source), CellId(target), &pieces).unwrap();
        }
        messages.end_step().unwrap();
    }
    Steps::new(machine.clone(), Arc::new(set), messages).unwrap()
}

#[test]
fn a_plan_without_effect_changes_nothing_but_check_words_cost_their_clocks() {
    for machine in machines("torus:3x2") {
        let set = build::all_to_all(6, 5);
        let report = run_checked(&machine, &set, &MessageOptions::default()).unwrap();
        let plain = run(&machine, &set, "cell c0 dead at 100000000", Detection::Plain);
        assert_eq!((plain.outcome, plain.clock), (Outcome::Delivered, report.clocks));
        assert_eq!(plain.acted, [None]);
        let words = report.busiest_link.expect("messages cross links").1;
        let extent = FaultExtent { clocks: report.clocks, words, switches: 0 };
        assert_eq!(plain.extent, extent, "of a run that no fault changes");
        let checked = run(&machine, &set, "", Detection::Checked);
        assert_eq!(checked.outcome, Outcome::Delivered, "{checked:?}");
        assert!(checked.clock > plain.clock);
    }
}

/// Every word of a message over two links, by every effect.
#[test]
fn every_word_of_a_message() {
    const WORDS: u32 = 6;
    let x0 = ConnectionId(0);
    for machine in machines("ring:4") {
        let extra = machine.parameters().message_extra_words;
        let set = build::set(&[(0, 2, WORDS)]);
        let at = if run(&machine, &set, "link c0 -> c1 dead", Detection::Plain).outcome
            == Outcome::Delivered
        {
            3
        } else {
            1
        };
        for (from, to) in [(0, at), (at, 2)] {
            let all = EFFECTS.iter().flat_map(|e| (0..WORDS + extra + 3).map(move |w| (*e, w)));
            for (effect, word) in all {
                let plan = format!("link c{from} -> c{to} {effect} word {word}");
                let plain = run(&machine, &set, &plan, Detection::Plain);
                let (last, is_data) = (WORDS + extra - 1, word >= extra && word < WORDS + extra);
                let is_header = word == 0;
                let expected = match effect {
                    _ if word > last => Outcome::Delivered,
                    "reorders" if word == last => Outcome::Delivered,
                    // Extra words behind the header carry nothing.
                    "corrupts" if !is_data && !is_header => Outcome::Delivered,
                    "corrupts" if !is_data => Outcome::Detected,
                    "corrupts" => Outcome::Silent,
                    // A header or tail in the wrong place is noticed by a router.
                    "reorders" if is_header || word + 1 == last => Outcome::Detected,
                    "reorders" if word + 1 < extra => Outcome::Delivered,
                    "reorders" => Outcome::Silent,
                    _ => Outcome::Detected,
                };
                assert_eq!(plain.outcome, expected, "{plan}, {extra} extra: {plain:?}");
                let checked = run(&machine, &set, &plan, Detection::Checked);
                assert_ne!(checked.outcome, Outcome::Silent, "{plan}: {checked:?}");
                // A simulator sees words in the places of others, and no inverted bits.
                let seen = run(&machine, &set, &plan, Detection::Simulator);
                let expected = match (effect, plain.outcome) {
                    ("reorders", Outcome::Silent) => Outcome::Detected,
                    (_, outcome) => outcome,
                };
                assert_eq!(seen.outcome, expected, "{plan}, {extra} extra: {seen:?}");
                if plain.outcome == Outcome::Silent && effect == "reorders" {
                    // The next word came in its place or, of an extra word, it in that of the first word of data.
                    let misplaced = if word < extra { (extra, word) } else { (word, word + 1) };
                    let kind = seen.fault.map(|fault| fault.kind);
                    assert!(
                        matches!(kind, Some(FaultKind::MisplacedWord { expected, word, .. })
                            if (expected, word) == misplaced),
                        "{plan}, {extra} extra: {kind:?}"
                    );
                }
                if !is_data || word == extra {
                    continue;
                }
                let found = match checked.fault.unwrap_or_else(|| panic!("{plan}")).kind {
                    FaultKind::CheckFailed { connection, damage, cell, links } => {
                        assert!(connection == x0 && cell == CellId(2) && links.len() == 2);
                        damage
                    }
                    other => panic!("{plan}: {other}"),
                };
                let word = word - extra;
                let expected = match effect {
                    "drops" => Damage::Missing(word),
                    "duplicates" => Damage::Repeated(word),
                    "corrupts" => Damage::Wrong(word),
                    _ => Damage::Exchanged(word),
                };
                assert_eq!(found, expected, "{plan}");
            }
        }
    }
}

/// Counts of what became of plans.
#[derive(Default)]
struct Counts {
    runs: u32,
    acted: u32,
    silent: u32,
}

/// Spoils every word of every link, once and for ever.
fn spoil_every_word(
    machine: &Machine,
    words: u64,
    counts: &mut Counts,
    run: impl Fn(&str, Detection) -> FaultRun,
) {
    for (link, effect) in links(machine).iter().flat_map(|l| EFFECTS.map(|e| (l, e))) {
        for (which, word) in
            ["word", "words from"].iter().flat_map(|w| (0..words).map(move |k| (w, k)))
        {
            let plan = format!("{link} {effect} {which} {word}");
            let checked = run(&plan, Detection::Checked);
            assert_ne!(checked.outcome, Outcome::Silent, "{plan}");
            let plain = run(&plan, Detection::Plain);
            let is_counted = matches!(effect, "drops" | "duplicates");
            assert!(!is_counted || plain.outcome != Outcome::Silent, "{plan}: {plain:?}");
            if checked.acted[0].is_none() {
                assert_eq!(checked.outcome, Outcome::Delivered, "{plan}");
            }
            counts.runs += 1;
            counts.acted += u32::from(checked.acted[0].is_some());
            counts.silent += u32::from(plain.outcome == Outcome::Silent);
        }
    }
}

#[test]
fn every_word_of_every_link() {
    let mut counts = Counts::default();
    for (number, machine) in (0..).zip(machines("torus:3x2")) {
        let set = build::all_to_all(6, 2);
        let options = MessageOptions::default().with_order(MessageOrder::ALL[number % 4]);
        let (few, steps) = (20, two_hops(&machine, 1));
        spoil_every_word(&machine, few, &mut counts, |plan, detection| {
            let plan = plan.parse().unwrap();
            run_set_with_faults(&machine, &set, &options, &plan, detection).unwrap()
        });
        spoil_every_word(&machine, few, &mut counts, |plan, detection| {
            let plan = plan.parse().unwrap();
            run_steps_with_faults(&steps, &options, &plan, detection).unwrap()
        });
    }
    let Counts { runs, acted, silent } = counts;
    assert!(acted > runs / 4 && silent > runs / 40, "{acted} acted, {silent} silent of {runs}");
}

/// Every link and every cell, for ever and for a while, at many clocks.
#[test]
fn stops_at_every_clock() {
    for machine in machines("torus:3x2") {
        let set = build::set(&[
            (0, 4, 3),
            (4, 0, 2),
            (1, 5, 3),
            (3, 2, 1),
            (2, 2, 2),
            (5, 0, 3),
            (0, 1, 2),
        ]);
        let steps = two_hops(&machine, 1);
        let by_set = |plan: &str| run(&machine, &set, plan, Detection::Plain);
        let by_steps = |plan: &str| {
            let options = MessageOptions::default();
            run_steps_with_faults(&steps, &options, &plan.parse().unwrap(), Detection::Plain)
                .unwrap()
        };
        let runs: [&dyn Fn(&str) -> FaultRun; 2] = [&by_set, &by_steps];
        for run in runs {
            let clocks = run("").clock;
            let cells = machine.cells().map(|cell| format!("cell {cell}"));
            let mut timed_out = 0;
            for part in links(&machine).into_iter().chain(cells) {
                for at in (0..clocks).step_by(1 + usize::try_from(clocks / 60).unwrap()) {
                    let stalled = run(&format!("{part} stalled 40 at {at}"));
                    assert_eq!(stalled.outcome, Outcome::Delivered, "{part} at {at}: {stalled:?}");
                    let dead = run(&format!("{part} dead at {at}"));
                    if dead.outcome == Outcome::Delivered {
                        continue;
                    }
                    assert_eq!(dead.outcome, Outcome::TimedOut, "{part} at {at}: {dead:?}");
                    timed_out += 1;
                    let Some(FaultKind::Deadlock { waits, closed: false, .. }) =
                        dead.fault.map(|fault| fault.kind)
                    else {
                        panic!("{part} at {at}: no chain of waits");
                    };
                    let last = waits.last().unwrap_or_else(|| panic!("{part} at {at}"));
                    let is_named = match last.cause {
                        WaitCause::StoppedLink { link, .. } => {
                            let link = machine.link(link);
                            let ends =
                                [link.source, link.target].map(|cell| format!("cell {cell}"));
                            let link = format!("link {} -> {}", link.source, link.target);
                            part == link || ends.contains(&part)
                        }
                        WaitCause::DeadCell { .. } => part == format!("cell {}", last.cell),
                        _ => false,
                    };
                    assert!(is_named, "{part} at {at}: {last}");
                }
            }
            assert!(timed_out > 100, "{timed_out} plans acted");
        }
    }
}

#[test]
fn slow_cells_only_cost_time() {
    for machine in machines("ring:4") {
        let set = build::set(&[(0, 2, 60), (1, 2, 20), (2, 0, 10)]);
        let fast = run(&machine, &set, "", Detection::Checked).clock;
        for cell in ["c0", "c2"] {
            let mut before = fast;
            for rest in [5, 40, 200] {
                let plan = format!("cell {cell} slow {rest}");
                let slow = run(&machine, &set, &plan, Detection::Checked);
                assert_eq!(slow.outcome, Outcome::Delivered);
                assert!(slow.clock >= before, "{plan}: {} clocks", slow.clock);
                before = slow.clock;
            }
            assert!(before > fast + 200 * 50, "{cell}: {before} clocks, {fast} without rests");
            let plan = format!(
                "cell {cell} slow 5\ncell {cell} stalled 300 at 200\ncell {cell} slow 2 at 250"
            );
            assert_eq!(run(&machine, &set, &plan, Detection::Plain).outcome, Outcome::Delivered);
        }
    }
}

#[test]
fn a_cell_that_stalls_in_the_middle_of_a_message_holds_it_up() {
    for machine in machines("ring:4") {
        let set = build::set(&[(0, 1, 500)]);
        let clocks = run(&machine, &set, "", Detection::Plain).clock;
        for cell in ["c0", "c1"] {
            // With half duplex the words are copied before the first one leaves.
            let plan = format!("cell {cell} stalled 700 at {}", clocks - 300);
            let stalled = run(&machine, &set, &plan, Detection::Plain);
            assert_eq!(stalled.outcome, Outcome::Delivered);
            let late = stalled.clock - clocks;
            assert!((650..=750).contains(&late), "{plan}: {late} clocks later");
        }
    }
}

/// The first message is lost with its header, while its target receives another one that has lost its tail.
#[test]
fn nothing_has_come_of_a_message_without_its_header() {
    let machine = build::machine("mesh:3x1", |p| p.message_extra_words = 0);
    let set = build::set(&[(0, 1, 1), (2, 1, 5)]);
    let plan = "link c0 -> c1 drops word 0\nlink c2 -> c1 drops word 4";
    let kind = run(&machine, &set, plan, Detection::Plain).fault.expect("noticed").kind;
    let FaultKind::LostWords { cell, connection, sent, received, .. } = kind else {
        panic!("{kind}")
    };
    assert_eq!((cell, connection, sent, received), (CellId(1), ConnectionId(0), 1, 0));
}

/// Messages wait for others that wait for a dead part: the chain names all of them.
#[test]
fn chains_of_waits_lead_to_the_dead_part() {
    let waits = |machine: &Arc<Machine>, set: &ConnectionSet, plan: &str| {
        let kind = run(machine, set, plan, Detection::Plain).fault.expect("noticed").kind;
        let FaultKind::Deadlock { waits, closed: false, .. } = kind else { panic!("{kind}") };
        waits.into_iter().map(|wait| (wait.cell.0, wait.cause)).collect::<Vec<_>>()
    };
    let [x0, x1, x2] = [0, 1, 2].map(ConnectionId);
    // A header waits for the channel that another message to the same dead cell holds.
    let machine = build::machine("mesh:4x1", |_| ());
    let set = build::set(&[(0, 3, 20), (1, 3, 200)]);
    let found = waits(&machine, &set, "cell c3 dead");
    assert!(
        matches!(found[..], [
            (1, WaitCause::Header { message, holder, .. }),
            (2, WaitCause::StoppedLink { message: last, .. }),
        ] if (message, holder, last) == (x0, x1, x1)),
        "{found:?}"
    );
    // With half duplex a processor that receives does not send; x1 may be sent when x0 has come.
    let machine = build::machine("ring:3", |p| p.duplex = Duplex::Half);
    let set = build::set(&[(0, 1, 60), (0, 1, 5), (2, 0, 100)]);
    let set = set.with_order(vec![(x0, x1)]).unwrap();
    let found = waits(&machine, &set, "link c2 -> c0 dead at 800");
    assert!(
        matches!(found[..], [
            (0, WaitCause::Reception { message, before }),
            (2, WaitCause::StoppedLink { message: last, .. }),
        ] if (message, before, last) == (x1, x2, x2)),
        "{found:?}"
    );
}

/// What is passed on wrongly without check words is wrong at its target, too.
#[test]
fn wrong_words_are_passed_on() {
    let machine = build::machine("t3d:2x2x2", |p| p.copy_clocks_per_word = 2);
    let set = Arc::new(build::set(&[(0, 3, 4)]));
    let mut messages = StepMessages::new();
    for (source, target) in [(0, 1), (1, 3)] {
        messages
            .push(CellId(source), CellId(target), &[Piece::whole(&set, ConnectionId(0))])
            .unwrap();
        messages.end_step().unwrap();
    }
    let steps = Steps::new(machine.clone(), set, messages).unwrap();
    let extra = machine.parameters().message_extra_words;
    let run = |plan: String, detection| {
        let plan = plan.parse().unwrap();
        run_steps_with_faults(&steps, &MessageOptions::default(), &plan, detection).unwrap()
    };
    for link in ["link c0 -> c1", "link c1 -> c3"] {
        let plan = format!("{link} corrupts word {}", extra + 1);
        let plain = run(plan.clone(), Detection::Plain);
        assert_eq!((plain.outcome, plain.wrong), (Outcome::Silent, 1), "{plain:?}");
        let checked = run(plan, Detection::Checked).fault.expect("noticed").kind;
        assert!(
            matches!(checked, FaultKind::CheckFailed { damage: Damage::Wrong(1), .. }),
            "{checked}"
        );
    }
}
