//! Faults in words: where it happened, what was expected, and no more of a long chain or route than can be read.

use conset_fabric::{Damage, Fault, FaultKind, FaultRun, Outcome, WaitCause, WaitEdge};
use conset_ir::{CellId, ChannelId, ConnectionId, Direction, LinkId, PhaseId};

const X: ConnectionId = ConnectionId(4);

fn lost(damage: Option<Damage>, links: u32) -> String {
    let (sent, received) = (12, 11);
    let links = (0..links).map(LinkId).collect();
    let (cell, connection, first_word) = (CellId(2), X, 5);
    FaultKind::LostWords { cell, connection, first_word, sent, received, damage, links }.to_string()
}

#[test]
fn routes_and_damage_follow_the_fault() {
    let lost_words = "c2 received 11 of the 12 words that x4 sent from word 5 on";
    assert_eq!(lost(None, 0), format!("{lost_words}; none is on its way"));
    let missing = Some(Damage::Missing(7));
    let route = "; none is on its way (route over l1, l0)";
    assert_eq!(lost(missing, 2), format!("{lost_words} (word 7 is missing){route}"));
    assert!(lost(None, 12).ends_with(", l1, l0)"), "{}", lost(None, 12));
    assert!(lost(None, 14).ends_with(", l2, 2 more links)"), "{}", lost(None, 14));
    for (damage, text) in [
        (Damage::Wrong(3), "word 3 is wrong"),
        (Damage::Exchanged(3), "word 3 and the next one are exchanged"),
        (Damage::Repeated(3), "word 3 came twice"),
        (Damage::CheckWord, "a check word is wrong"),
        (Damage::Several(3, 9), "the words from 3 to 9 do not fit"),
    ] {
        assert_eq!(damage.to_string(), text);
    }
}

#[test]
fn chains_of_waits_are_one_sentence() {
    let wait = |cell, cause| WaitEdge { cell: CellId(cell), cause };
    let (send, receive) = (Direction::Send, Direction::Receive);
    let waits = |count: u32, closed| {
        let turn = WaitCause::Turn { direction: send, connection: X };
        let waits = (0..count).map(|cell| wait(cell, turn)).collect();
        FaultKind::Deadlock { waits, closed, unfinished: 2 }.to_string()
    };
    let first = "deadlock, 2 operations unfinished: c0 cannot send x4 yet";
    assert_eq!(waits(1, false), first);
    assert_eq!(waits(1, true), format!("{first} <- back to the start of the cycle"));
    assert!(waits(12, false).ends_with(" <- c11 cannot send x4 yet"));
    assert!(waits(14, false).ends_with(" <- c11 cannot send x4 yet <- (2 more)"));
    let dead = WaitCause::DeadCell { direction: receive, connection: X };
    assert_eq!(wait(3, dead).to_string(), "c3 is dead and does not receive x4");
    let link = LinkId(1);
    for (cause, stopped) in [
        (dead, true),
        (WaitCause::DeadLink { channel: ChannelId(0), link }, true),
        (WaitCause::StoppedLink { message: X, link }, true),
        (WaitCause::Ahead { channel: ChannelId(0), link }, false),
        (WaitCause::Switch, false),
    ] {
        assert_eq!(cause.is_stopped_part(), stopped, "{cause:?}");
    }
}

#[test]
fn outcomes_have_names_and_are_found_some_clocks_after_the_fault() {
    let names = Outcome::ALL.map(|outcome| outcome.to_string());
    assert_eq!(names, ["delivered", "refused", "detected", "timed out", "silent"]);
    let machine = conset_ir::Machine::from_spec("ring:4").unwrap();
    let set = conset_ir::Connection::new(CellId(0), CellId(1), 5);
    let set = conset_ir::ConnectionSet::new("s", vec![set]).unwrap();
    let run = |plan: &str| -> FaultRun {
        let (options, plan) = (Default::default(), plan.parse().unwrap());
        let machine = std::sync::Arc::new(machine.clone());
        let detection = conset_fabric::Detection::Checked;
        conset_fabric::messages::run_set_with_faults(&machine, &set, &options, &plan, detection)
            .unwrap()
    };
    let dead = run("cell c2 stalled 5 at 20\ncell c1 dead at 30");
    let Fault { set, phase, clock, .. } = dead.fault.as_ref().unwrap();
    assert_eq!((&set[..], *phase), ("s", None::<PhaseId>));
    assert_eq!(dead.clocks_to_detection(), Some(clock - 20));
    assert_eq!(run("cell c2 stalled 5 at 20").clocks_to_detection(), None);
}
