//! Lower bounds of the clocks of step plans: the busiest cell.
//!
//! | protocol | clocks of a cell, for the messages and words that it sends and receives |
//! |---|---|
//! | standing, full duplex | the most of: the software of all messages; software and words that it sends; software and words that it receives, at the rate of the agent |
//! | standing, half duplex | software of all messages, words sent at the rate of the links, words received at that of the agent |
//! | rendezvous | software of both ends, and words, of all messages |
//!
//! Words leave at the rate of agents or links, whichever is slower, except the last of each message:
//! the next message can leave over another link while it is on its own. Words that stand in the queues
//! of a cell are received at the rate of its agent.
//!
//! A direct plan has a message for each cell that a cell exchanges words with, in each direction. Any
//! other plan has at least one message in each direction in which the cell has words.

use conset_ir::{CellId, ConnectionSet, Machine, Protocol};

use super::MessageCosts;

/// Clocks that every step plan of a set takes at least.
pub fn least_clocks(machine: &Machine, set: &ConnectionSet, protocol: Protocol) -> u64 {
    busiest(machine, set, protocol, false)
}

/// Clocks that every plan takes at least that sends each connection in one message from its source to
/// its target.
pub fn least_clocks_direct(machine: &Machine, set: &ConnectionSet, protocol: Protocol) -> u64 {
    busiest(machine, set, protocol, true)
}

/// Words and partners of a cell, as sender and as receiver.
#[derive(Clone, Copy, Default)]
struct CellLoad {
    words: [u64; 2],
    partners: [u64; 2],
    /// Clocks for the partners in other nodes.
    overhead: [u64; 2],
}

fn busiest(machine: &Machine, set: &ConnectionSet, protocol: Protocol, direct: bool) -> u64 {
    let mut cells = vec![CellLoad::default(); machine.agent_count()];
    let mut pairs: Vec<(CellId, CellId)> = Vec::with_capacity(set.len());
    for connection in set.connections().iter().filter(|c| c.source != c.target) {
        cells[connection.source.index()].words[0] += u64::from(connection.words);
        cells[connection.target.index()].words[1] += u64::from(connection.words);
        pairs.push((connection.source, connection.target));
    }
    pairs.sort_unstable();
    pairs.dedup();
    for (source, target) in pairs {
        cells[source.index()].partners[0] += 1;
        cells[target.index()].partners[1] += 1;
        let overhead = u64::from(machine.network_overhead(source, target));
        cells[source.index()].overhead[0] += overhead;
        cells[target.index()].overhead[1] += overhead;
    }
    let costs = MessageCosts::new(machine, protocol);
    let clocks = cells.iter().map(|cell| {
        // Any other plan may leave it to other cells to send messages between nodes.
        match direct {
            true => clocks_of(&costs, cell.partners, cell.words, cell.overhead),
            false => clocks_of(&costs, cell.partners.map(|n| n.min(1)), cell.words, [0; 2]),
        }
    });
    clocks.max().unwrap_or(0)
}

fn clocks_of(costs: &MessageCosts, messages: [u64; 2], words: [u64; 2], overhead: [u64; 2]) -> u64 {
    let words_of = |d: usize| words[d] + costs.extra_words * messages[d];
    let launches = messages[0] * costs.send + overhead[0];
    let receptions = messages[1] * costs.receive + overhead[1];
    match costs.protocol {
        Protocol::Rendezvous => {
            (messages[0] + messages[1]) * costs.software()
                + 2 * (overhead[0] + overhead[1])
                + (words_of(0) + words_of(1)) * costs.rate
        }
        Protocol::Standing if costs.half_duplex => {
            launches + receptions + words[0] * costs.link + words[1] * costs.access
        }
        Protocol::Standing => {
            // A message more costs its software and extra words, and saves what its last word saves:
            // the least is at one end.
            let sent = |messages: u64| {
                let words = words[0] + costs.extra_words * messages;
                let last = words.min(messages);
                messages * costs.send + (words - last) * costs.rate + last * costs.access
            };
            let sent = overhead[0] + sent(messages[0]).min(sent(words[0].max(messages[0])));
            (launches + receptions).max(sent).max(receptions + words_of(1) * costs.access)
        }
    }
}
