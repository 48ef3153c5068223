//! The examples of `docs/machine.md`, sections 1 and 14.

use conset_ir::{CellId, Connection, ConnectionSet, Machine, Protocol};
use conset_second_simulator::messages::{SendOrder, run_messages};
use conset_second_simulator::wiring::Wiring;

#[test]
fn the_links_of_a_fat_tree() {
    let wiring = Wiring::new(&Machine::from_spec("fat-tree:6/2.1").unwrap());
    let up = [
        [0, 6],
        [0, 7],
        [1, 6],
        [1, 7],
        [2, 6],
        [2, 7],
        [3, 6],
        [3, 7],
        [4, 8],
        [4, 9],
        [5, 8],
        [5, 9],
        [6, 10],
        [7, 11],
        [8, 10],
        [9, 11],
    ];
    let links: Vec<_> = up.into_iter().flat_map(|[a, b]| [(a, b), (b, a)]).collect();
    assert_eq!(wiring.links, links);
    assert_eq!((wiring.agents, wiring.live_cells.len()), (6, 12));
}

/// Per message: launched, header arrived, sent, reception started, received.
fn times(protocol: Protocol) -> Vec<[u64; 5]> {
    let machine = Machine::from_spec("ring:4").unwrap();
    let mut p = machine.parameters().clone();
    (p.link_clocks_per_word, p.access_clocks_per_word, p.channel_depth) = (2, 3, 2);
    (p.c_send, p.c_receive, p.message_extra_words, p.protocol) = (10, 5, 1, protocol);
    let machine = machine.with_parameters(p).unwrap();
    let rows = [(0, 2, 3), (1, 2, 2), (0, 3, 1)];
    let rows = rows.map(|(from, to, words)| Connection::new(CellId(from), CellId(to), words));
    let set = ConnectionSet::new("s", rows.to_vec()).unwrap();
    let run = run_messages(&machine, &set, SendOrder::Given).unwrap();
    let row = |m: &conset_second_simulator::messages::MessageRun| {
        [m.launched, m.arrived, m.sent, m.accepted, m.received]
    };
    run.messages.iter().map(row).collect()
}

#[test]
fn messages_under_both_protocols() {
    let standing = [[0, 28, 28, 29, 46], [0, 15, 20, 15, 29], [28, 43, 44, 43, 54]];
    assert_eq!(times(Protocol::Standing), standing);
    let rendezvous = [[0, 22, 34, 0, 34], [34, 54, 63, 34, 63], [34, 54, 60, 34, 60]];
    assert_eq!(times(Protocol::Rendezvous), rendezvous);
}
