//! The paper's cost model of message passing: software and access, no network.

use conset_ir::{ConnectionSet, Duplex, Machine};

/// Predicted clocks of a set by message passing: the largest over all cells of
///
/// * `c_send` for each message it sends and `c_receive` for each it receives (section 4.3.1);
/// * full duplex: access time for the words it sends or those it receives, whichever are more
///   ("overlapping of sending and receiving can at best reduce the message passing time by one
///   transfer time");
/// * half duplex: access time for the words it receives, and two link times for each it sends:
///   one to copy it into the buffer, one to spool it out.
///
/// Congestion "is not included in performance predictions" (section 5.1.4), nor are the extra
/// words. This gives all message-passing predictions of Tables 1 to 3 exactly, if for all-to-all
/// a message of each cell to itself is counted, as the paper does. It gives those of Table 6
/// within 2 % from the degrees and words of Table 4; that the copy runs at the link's rate is
/// read from them, as the paper does not say it.
pub fn predict(machine: &Machine, set: &ConnectionSet) -> u64 {
    let parameters = machine.parameters();
    let (access, link) =
        (u64::from(parameters.access_clocks_per_word), u64::from(parameters.link_clocks_per_word));
    // Clocks of software, words sent, words received.
    let mut cells = vec![(0u64, 0u64, 0u64); machine.agent_count()];
    for connection in set.connections() {
        let words = u64::from(connection.words);
        if let Some(cell) = cells.get_mut(connection.source.index()) {
            cell.0 += u64::from(parameters.c_send);
            cell.1 += words;
        }
        if let Some(cell) = cells.get_mut(connection.target.index()) {
            cell.0 += u64::from(parameters.c_receive);
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
