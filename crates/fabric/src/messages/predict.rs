//! The paper's cost model of message passing: software and access times, without the network.

use conset_ir::{ConnectionSet, Duplex, Machine, Protocol};

/// Predicted clocks of an exchange by message passing: the maximum over all cells of the sum of
///
/// * `c_send` for each message it sends and `c_receive` for each it receives (section 4.3.1), and
///   `network_overhead` for each between two nodes of a cluster;
/// * full duplex: access time for the words it sends or for those it receives, whichever are more
///   ("overlapping of sending and receiving can at best reduce the message passing time by one
///   transfer time");
/// * half duplex: access time for the words it receives, and two link times for each it sends:
///   one to copy it into the buffer, one to spool it out.
///
/// Congestion "is not included in performance predictions" (section 5.1.4), and neither are the
/// extra words. This reproduces all message-passing predictions of Tables 1 to 3 exactly, if
/// all-to-all includes a message of each cell to itself, as in the paper. With the degrees and words
/// of Table 4 it reproduces those of Table 6 within 2 %; the paper does not state the rate of the
/// copy, and the rate of the link is inferred from these figures.
///
/// Under rendezvous, which the paper's machine does not have, a message occupies both of its cells for
/// the software of both and the access time of its words: with half duplex these add up at a cell,
/// with full duplex those that it sends or those that it receives, whichever take longer. Cells that
/// wait for each other are not included.
pub fn predict(machine: &Machine, set: &ConnectionSet) -> u64 {
    let parameters = machine.parameters();
    if parameters.protocol == Protocol::Rendezvous {
        return predict_rendezvous(machine, set);
    }
    let (access, link) =
        (u64::from(parameters.access_clocks_per_word), u64::from(parameters.link_clocks_per_word));
    // Clocks of software, words sent, words received.
    let mut cells = vec![(0u64, 0u64, 0u64); machine.agent_count()];
    for connection in set.connections() {
        let words = u64::from(connection.words);
        let overhead = u64::from(machine.network_overhead(connection.source, connection.target));
        if let Some(cell) = cells.get_mut(connection.source.index()) {
            cell.0 += u64::from(parameters.c_send) + overhead;
            cell.1 += words;
        }
        if let Some(cell) = cells.get_mut(connection.target.index()) {
            cell.0 += u64::from(parameters.c_receive) + overhead;
            cell.2 += words;
        }
    }
    let clocks = cells.iter().map(|&(software, sent, received)| {
        software
            + match parameters.duplex {
                Duplex::Full => sent.max(received) * access,
                Duplex::Half => received * access + sent * 2 * link,
            }
    });
    clocks.max().unwrap_or(0)
}

fn predict_rendezvous(machine: &Machine, set: &ConnectionSet) -> u64 {
    let parameters = machine.parameters();
    let software = u64::from(parameters.c_send) + u64::from(parameters.c_receive);
    let access = u64::from(parameters.access_clocks_per_word);
    // Clocks of the messages sent, and of those received.
    let mut cells = vec![[0u64; 2]; machine.agent_count()];
    for connection in set.connections() {
        let words = u64::from(connection.words) + u64::from(parameters.message_extra_words);
        let overhead = u64::from(machine.network_overhead(connection.source, connection.target));
        for (side, end) in [connection.source, connection.target].into_iter().enumerate() {
            if let Some(cell) = cells.get_mut(end.index()) {
                cell[side] += software + 2 * overhead + words * access;
            }
        }
    }
    let clocks = cells.iter().map(|&[sent, received]| match parameters.duplex {
        Duplex::Full => sent.max(received),
        Duplex::Half => sent + received,
    });
    clocks.max().unwrap_or(0)
}
