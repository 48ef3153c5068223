//! Faults of words, barriers and contexts: what each mode of detection says, and that check words leave nothing unseen.

use crate::build;
use crate::build::{EFFECTS, links};
use conset_fabric::{
    CHECK_WORDS, Damage, Detection, FaultKind, FaultRun, Outcome, WaitCause, run_with_faults,
};
use conset_ir::{CellId, ConnectionId, Image, LinkId};

fn run(image: &Image, plan: &str, detection: Detection) -> FaultRun {
    let plan = plan.parse().expect("a plan");
    run_with_faults(image.clone(), 7, &plan, detection).expect("parts of the machine")
}

/// Every word of a stream over two links, by every effect: the exact damage in the one mode, counts in the other.
#[test]
fn every_word_of_a_stream() {
    let x0 = ConnectionId(0);
    // An even number of words, too: the check words of one are less definite.
    for (depth, words) in [(1, 9), (2, 8), (8, 9), (8, 2)] {
        let machine = build::machine("ring:4", |p| p.channel_depth = depth);
        let image = build::build(&machine, build::set(&[(0, 2, words)]));
        for link in build::route(&machine, CellId(0), CellId(2)) {
            let ends = (machine.link(link).source, machine.link(link).target);
            for (effect, word) in EFFECTS.iter().flat_map(|e| (0..words + 2).map(move |w| (*e, w)))
            {
                let plan = format!("link {} -> {} {effect} word {word}", ends.0, ends.1);
                let plain = run(&image, &plan, Detection::Plain);
                let checked = run(&image, &plan, Detection::Checked);
                let expected = match effect {
                    _ if word >= words => Outcome::Delivered,
                    "reorders" if word == words - 1 => Outcome::Delivered,
                    "drops" | "duplicates" => Outcome::Detected,
                    _ => Outcome::Silent,
                };
                assert_eq!(plain.outcome, expected, "{plan}: {plain:?}");
                assert_eq!(plain.acted[0].is_some(), expected != Outcome::Delivered, "{plan}");
                if effect == "reorders" && word == words + 1 {
                    assert_eq!(checked.outcome, Outcome::Delivered, "no successor: {checked:?}");
                    continue;
                }
                assert_eq!(checked.outcome, Outcome::Detected, "{plan}: {checked:?}");
                let found = match checked.fault.expect("detected").kind {
                    FaultKind::LostWords { connection, damage, links, sent, received, .. } => {
                        assert!(effect == "drops" && connection == x0 && links.contains(&link));
                        assert_eq!((sent, received), (words + CHECK_WORDS, sent - 1), "{plan}");
                        damage.expect("check words")
                    }
                    FaultKind::CheckFailed { connection, damage, links, cell } => {
                        assert!(connection == x0 && cell == CellId(2) && links.contains(&link));
                        damage
                    }
                    // The last word, a check word, came twice.
                    FaultKind::Undrained { connection, .. } => {
                        assert!(effect == "duplicates" && word == words + 1 && connection == x0);
                        continue;
                    }
                    other => panic!("{plan}: {other}"),
                };
                if word < words {
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
}

/// Every word over every link of exchanges in one and in several phases, once and for ever: with check words nothing
/// is silent, whatever the effect; without them, lost and repeated words are not silent.
#[test]
fn every_word_of_every_link() {
    let (mut runs, mut acted, mut silent) = (0, 0, 0);
    for (duplex, channels, streams) in [("full", 40, 1), ("half", 3, 2)] {
        let machine = build::machine("torus:3x2", |p| {
            p.set("duplex", duplex).unwrap();
            (p.channels_per_cell, p.channel_depth, p.streams) = (channels, 2, streams);
            (p.t_sync, p.t_phase) = (5, 7);
        });
        let image = build::build(&machine, build::all_to_all(6, 3));
        for (link, effect) in links(&machine).iter().flat_map(|l| EFFECTS.map(|e| (l, e))) {
            for (which, word) in
                ["word", "words from"].iter().flat_map(|w| (0..20).map(move |k| (w, k)))
            {
                let plan = format!("{link} {effect} {which} {word}");
                let checked = run(&image, &plan, Detection::Checked);
                assert_ne!(checked.outcome, Outcome::Silent, "{plan}");
                let plain = run(&image, &plan, Detection::Plain);
                let is_counted = matches!(effect, "drops" | "duplicates");
                assert!(!is_counted || plain.outcome != Outcome::Silent, "{plan}: {plain:?}");
                runs += 1;
                acted += u32::from(checked.acted[0].is_some());
                silent += u32::from(plain.outcome == Outcome::Silent);
                if checked.acted[0].is_none() {
                    assert_eq!(checked.outcome, Outcome::Delivered, "{plan}");
                }
            }
        }
    }
    assert!(acted > runs / 4 && silent > runs / 20, "{acted} acted, {silent} silent of {runs}");
}

#[test]
fn slow_cells_only_cost_time() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 2, 200), (1, 2, 50)]));
    let fast = run(&image, "", Detection::Checked).clock;
    for cell in ["c0", "c2"] {
        let mut before = fast;
        for rest in [1, 5, 40] {
            let slow = run(&image, &format!("cell {cell} slow {rest}"), Detection::Checked);
            assert_eq!(slow.outcome, Outcome::Delivered);
            assert!(slow.clock > before, "{cell} {rest}: {} clocks", slow.clock);
            before = slow.clock;
        }
        assert!(before >= fast + 40 * 190, "{cell}: {before} clocks, {fast} without rests");
        // Rests and stalls of one port.
        let plan = format!(
            "cell {cell} slow 5\ncell {cell} stalled 300 at 900\ncell {cell} slow 2 at 950"
        );
        assert_eq!(run(&image, &plan, Detection::Plain).outcome, Outcome::Delivered);
    }
    let same = run(&image, "cell c0 slow 0", Detection::Plain);
    assert_eq!(
        (same.clock, &same.acted[..]),
        (run(&image, "", Detection::Plain).clock, &[None][..])
    );
    let never = run(&image, "cell c0 slow 18446744073709551615", Detection::Plain);
    assert_eq!(never.outcome, Outcome::TimedOut, "{never:?}");
}

#[test]
fn barriers_wait_for_every_cell() {
    let machine = build::machine("torus:3x2", |p| p.channels_per_cell = 3);
    let image = build::build(&machine, build::all_to_all(6, 3));
    let phases = image.sets()[0].phases.len();
    assert!(phases > 1);
    let clocks = run(&image, "", Detection::Plain).clock;
    for switch in 0..phases {
        let late = run(&image, &format!("cell c4 late 77 at switch {switch}"), Detection::Checked);
        assert_eq!(late.outcome, Outcome::Delivered);
        let late = run(&image, &format!("cell c4 late 77 at switch {switch}"), Detection::Plain);
        assert_eq!((late.outcome, late.clock), (Outcome::Delivered, clocks + 77));
        let plan = format!("cell c4 misses switch {switch}");
        let fault = run(&image, &plan, Detection::Plain).fault.expect("nothing moves");
        let expected = u64::try_from(switch).unwrap();
        assert_eq!(fault.kind, FaultKind::Absent { cell: CellId(4), switch: expected });
        assert_eq!(Outcome::of_fault(&fault.kind), Outcome::TimedOut);
    }
    let late = run(&image, &format!("cell c4 misses switch {phases}"), Detection::Plain);
    assert_eq!((late.outcome, late.acted[0]), (Outcome::Delivered, None), "no such switch");
}

#[test]
fn all_words_from_one_on_are_spoiled() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 30)]));
    let wrong = |plan| run(&image, plan, Detection::Plain).wrong;
    assert_eq!(wrong("link c0 -> c1 corrupts words from 11"), 19);
    assert_eq!(wrong("link c0 -> c1 corrupts word 11"), 1);
}

/// A word is lost while the queue has a repeated one, so that the count is right and the words between them are one place off.
#[test]
fn lost_and_repeated_words_of_a_queue_make_up_for_each_other() {
    for depth in [1, 3, 8, 20] {
        let machine = build::machine("ring:4", |p| p.channel_depth = depth);
        let image = build::build(&machine, build::set(&[(0, 1, 30)]));
        for (repeated, lost) in [(2, 3), (2, 4), (2, 9), (9, 10), (0, 1), (5, 29)] {
            let link = "link c0 -> c1";
            let mut plan = format!(
                "cell c1 slow 40\n{link} duplicates word {repeated}\n{link} drops word {lost}"
            );
            let mut wrong = lost - repeated;
            if lost < 20 {
                plan += &format!("\n{link} duplicates word {}\n{link} drops word 25", lost + 2);
                wrong += 25 - (lost + 2);
            }
            let found = run(&image, &plan, Detection::Plain);
            assert_eq!((found.outcome, found.wrong), (Outcome::Silent, wrong), "{plan}");
        }
    }
}

/// A cell through which the same words pass in both phases works with the context that it has.
#[test]
fn a_cell_keeps_the_context_of_the_phase_before() {
    let machine = build::machine("mesh:3x1", |p| p.channels_per_cell = 1);
    let image = build::build(&machine, build::set(&[(0, 2, 9), (0, 2, 7)]));
    assert_eq!(image.sets()[0].phases.len(), 2);
    let kept = |switch| {
        let plan = format!("cell c1 keeps context at switch {switch}");
        run(&image, &plan, Detection::Checked).outcome
    };
    assert_eq!((kept(0), kept(1)), (Outcome::Detected, Outcome::Delivered));
}

/// Every cell with the previous context, and with every other phase's, at every switch.
#[test]
fn wrong_contexts_are_not_silent() {
    let machine = build::machine("torus:3x2", |p| p.channels_per_cell = 3);
    let image = build::build(&machine, build::all_to_all(6, 3));
    let phases = image.sets()[0].phases.len();
    let (mut runs, mut noticed) = (0, 0);
    for cell in machine.cells() {
        for switch in 0..phases {
            let others = (0..=phases).map(|phase| format!("loads p{phase}"));
            for what in others.chain(["keeps context".to_owned()]) {
                let plan = format!("cell {cell} {what} at switch {switch}");
                let checked = run(&image, &plan, Detection::Checked);
                assert_ne!(checked.outcome, Outcome::Silent, "{plan}");
                if what == format!("loads p{switch}") {
                    assert_eq!(checked.outcome, Outcome::Delivered, "{plan}");
                    continue;
                }
                runs += 1;
                noticed += u32::from(checked.outcome != Outcome::Delivered);
            }
        }
    }
    assert!(noticed > runs / 2, "{noticed} of {runs} noticed");
}

/// Of links whose numbers differ by 32, each inverts the same bit of a word.
#[test]
fn a_bit_that_is_inverted_twice_is_right() {
    let machine = build::machine("mesh:20x1", |_| ());
    let image = build::build(&machine, build::set(&[(0, 19, 5)]));
    let route = build::route(&machine, CellId(0), CellId(19));
    let pairs = route.iter().flat_map(|a| route.iter().map(move |b| (a, b)));
    let (first, second) = { pairs }.find(|(a, b)| a.0 + 32 == b.0).expect("a long route");
    let corrupts = |link: &LinkId| {
        let ends = machine.link(*link);
        format!("link {} -> {} corrupts word 3\n", ends.source, ends.target)
    };
    let once = run(&image, &corrupts(first), Detection::Plain);
    assert_eq!((once.outcome, once.wrong), (Outcome::Silent, 1));
    let twice = run(&image, &(corrupts(first) + &corrupts(second)), Detection::Plain);
    assert_eq!(twice.outcome, Outcome::Delivered);
    assert!(twice.acted.iter().all(Option::is_some), "{twice:?}");
}

/// What others have sent is no reason to take the words of a dead cell for lost.
#[test]
fn a_cell_that_has_not_sent_has_lost_nothing() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 5), (2, 3, 5)]));
    let dead = run(&image, "cell c0 dead", Detection::Plain);
    assert_eq!(dead.outcome, Outcome::TimedOut, "{dead:?}");
}

/// Words that wait before a dead link are not lost: the link is named.
#[test]
fn a_dead_link_is_no_loss() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 2, 1)]));
    let link = build::route(&machine, CellId(0), CellId(2))[1];
    let (source, target) = (machine.link(link).source, machine.link(link).target);
    let dead = run(&image, &format!("link {source} -> {target} dead"), Detection::Checked);
    assert_eq!(dead.outcome, Outcome::TimedOut);
    let FaultKind::Deadlock { waits, .. } = dead.fault.expect("a fault").kind else {
        panic!("not a deadlock");
    };
    assert!(matches!(waits.last().expect("a wait").cause, WaitCause::DeadLink { .. }));
}
