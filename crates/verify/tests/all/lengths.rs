//! Proved lengths of phases, against values computed by hand, at the clock where each condition begins to
//! hold: one clock earlier nothing is proved.

use std::sync::Arc;

use crate::common::{Draft, compile, machine, set};
use conset_ir::*;
use conset_verify as verify;

/// Set-up, agent and link take 7, 3 and 5 clocks; a queue holds two words.
const CLOCKS: [(&str, &str); 5] = [
    ("timed_starts", "1"),
    ("stream_setup", "7"),
    ("access_clocks_per_word", "3"),
    ("link_clocks_per_word", "5"),
    ("channel_depth", "2"),
];

fn timed(spec: &str, settings: &[(&str, &str)]) -> Arc<Machine> {
    machine(spec, &[&CLOCKS[..], settings].concat())
}

/// The proved length of one phase with the given starts.
fn length(machine: &Arc<Machine>, set: ConnectionSet, starts: &[u64]) -> Option<u64> {
    let mut draft: Draft = compile(machine, set, |_| 1);
    let routes = draft.phases.iter_mut().flatten().collect::<Vec<_>>();
    assert_eq!(routes.len(), starts.len());
    for route in routes {
        route.start = starts[route.connection.index()];
    }
    draft.phases = vec![draft.phases.into_iter().flatten().collect()];
    let [length] = verify::phase_lengths(&draft.timetable())[..] else { panic!("one phase") };
    length
}

#[test]
fn a_stream_alone_has_a_closed_form() {
    let mesh = timed("mesh:4", &[]);
    // Start, set-up, two accesses, two links, three more words at the rate of links.
    assert_eq!(length(&mesh, set(&[(0, 2, 4)]), &[10]), Some(10 + 7 + 2 * 3 + 2 * 5 + 3 * 5));
    assert_eq!(length(&mesh, set(&[(0, 0, 4)]), &[10]), Some(10 + 7 + 2 * 3 + 3 * 3));
    // Words at the rate of agents where that is slower.
    let slow = timed("mesh:4", &[("access_clocks_per_word", "6")]);
    assert_eq!(length(&slow, set(&[(0, 2, 4)]), &[10]), Some(10 + 7 + 2 * 6 + 2 * 5 + 3 * 6));
    // An agent that sends to itself alternates.
    let half = timed("mesh:4", &[("duplex", "half")]);
    assert_eq!(length(&half, set(&[(0, 0, 4)]), &[10]), Some(10 + 2 * 7 + 2 * 4 * 3));
    assert_eq!(length(&half, set(&[(0, 2, 4)]), &[10]), Some(48));
    assert_eq!(length(&mesh, set(&[]), &[]), Some(0));
}

#[test]
fn a_link_carries_one_stream_at_a_time() {
    let mesh = timed("mesh:4", &[]);
    let rows = |words| set(&[(0, 3, 4), (1, 2, words)]);
    // The long one is on the link from c1 to c2 from clock 7 + 3 + 5 until 15 + 3 * 5 + 5.
    assert_eq!(length(&mesh, rows(1), &[0, 25]), Some(7 + 2 * 3 + 3 * 5 + 3 * 5));
    assert_eq!(length(&mesh, rows(1), &[0, 24]), None);
    // The short one before it is on the link from clock 10 until 10 + 5 for each word.
    assert_eq!(length(&mesh, rows(1), &[0, 0]), Some(43));
    assert_eq!(length(&mesh, rows(2), &[0, 0]), None);
}

#[test]
fn an_agent_sends_one_stream_after_the_other() {
    let mesh = timed("mesh:4", &[]);
    let rows = || set(&[(1, 0, 4), (1, 2, 1)]);
    // The first one has left after set-up, access and three more words.
    let sent = 7 + 3 + 3 * 5;
    assert_eq!(length(&mesh, rows(), &[0, sent]), Some(sent + 7 + 2 * 3 + 5));
    assert_eq!(length(&mesh, rows(), &[0, sent - 1]), None);
    assert_eq!(length(&mesh, rows(), &[5, 5]), None);
}

#[test]
fn short_streams_may_wait_at_their_target() {
    let mesh = timed("mesh:4", &[]);
    let rows = |words| set(&[(0, 1, 4), (2, 1, words)]);
    let first = 7 + 2 * 3 + 5 + 3 * 5;
    // The later stream may be opened late: its first word comes an access and a link after its start.
    let late = first - 3 - 5;
    let alone = |start: u64, words: u64| start + 7 + 2 * 3 + 5 + (words - 1) * 5;
    assert_eq!(length(&mesh, rows(4), &[0, late]), Some(alone(late, 4)));
    assert_eq!(length(&mesh, rows(4), &[0, late - 1]), None);
    // Two words fit the queue, three do not.
    assert_eq!(length(&mesh, rows(2), &[0, late - 1]), Some(alone(late - 1, 2)));
    assert_eq!(length(&mesh, rows(3), &[0, late - 1]), None);
    // They are received when the agent is free: set-up and two accesses later.
    let waited = first + 7 + 2 * 3;
    assert_eq!(length(&mesh, rows(2), &[0, late - 10]), Some(waited));
    // With several streams at a time, the later one would be opened between words of the first.
    let several = timed("mesh:4", &[("streams", "2")]);
    assert_eq!(length(&several, rows(2), &[0, first]), Some(alone(first, 2)));
    assert_eq!(length(&several, rows(2), &[0, first - 1]), None);
    // If opening takes no time it can be late again, but it cannot wait.
    let free = timed("mesh:4", &[("streams", "2"), ("stream_setup", "0")]);
    assert_eq!(length(&free, rows(2), &[0, late - 7]), Some(alone(late - 7, 2) - 7));
    assert_eq!(length(&free, rows(2), &[0, late - 8]), None);
}

#[test]
fn the_order_is_observed_within_a_phase() {
    let mesh = timed("mesh:4", &[]);
    let ordered = || {
        let rows = set(&[(0, 1, 4), (2, 3, 1)]);
        rows.with_order(vec![(ConnectionId(0), ConnectionId(1))]).unwrap()
    };
    let received = 33;
    assert_eq!(length(&mesh, ordered(), &[0, received]), Some(received + 7 + 2 * 3 + 5));
    assert_eq!(length(&mesh, ordered(), &[0, received - 1]), None);
}

#[test]
fn nothing_is_proved_where_starts_or_rates_are_not_observed() {
    let rows = || set(&[(0, 1, 4)]);
    // In a cluster, a stream between nodes takes more software; links of another rate prove nothing.
    let cluster = |rate| {
        let settings = [("network_overhead", "11"), ("network_clocks_per_word", rate)];
        timed("cluster:2", &[&settings[..], &[("channels_per_cell", "4")]].concat())
    };
    let proved = 7 + 11 + 2 * 3 + 2 * 5 + 3 * 5;
    assert_eq!(length(&cluster("0"), rows(), &[0]), Some(proved));
    assert_eq!(length(&cluster("5"), rows(), &[0]), Some(proved));
    assert_eq!(length(&cluster("4"), rows(), &[0]), None);
    assert_eq!(length(&cluster("6"), rows(), &[0]), None);
    assert_eq!(length(&timed("mesh:4", &[("timed_starts", "0")]), rows(), &[0]), None);
    let mesh = timed("mesh:4", &[]);
    let last = 1 << 62;
    assert_eq!(length(&mesh, rows(), &[last - 33]), Some(last));
    assert_eq!(length(&mesh, rows(), &[last - 32]), None);
}

#[test]
fn reports_have_lengths_of_timed_phases_only() {
    for (timed_starts, figures) in [("1", (1, 1, 33)), ("0", (0, 0, 0))] {
        let machine = timed("mesh:4", &[("timed_starts", timed_starts)]);
        let draft = compile(&machine, set(&[(0, 1, 4)]), |_| 1);
        let report = *verify::timetable(draft.timetable()).unwrap().report();
        assert_eq!((report.timed_phases, report.proved_phases, report.proved_clocks), figures);
    }
}
