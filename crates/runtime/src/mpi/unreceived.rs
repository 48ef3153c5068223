//! The search for messages that were sent and not received, when the ranks agree on a switch.
//!
//! The counts of all ranks show that there are some. Each rank looks for messages to its cells and
//! removes those that it finds, so that the next run does not receive them. The first of all is
//! reported on all ranks. Messages may still be in transit, so the ranks search until all are
//! found.

use conset_ir::convert::{to_u32, to_u64, to_usize};
use conset_ir::{CellId, ConnectionId, Direction};

use super::backoff::{Backoff, Waited};
use super::ffi::to_c_int;
use super::gather_at_root::{Participants, gather_at_root};
use super::message_queue::Address;
use super::run::{MessageClass, Rank};
use crate::error::{MpiError, RunError};
use crate::patience::{Patience, REPORT_AFTER};

impl Rank<'_> {
    /// Messages were sent and not received. Removes them, so that the next run does not receive them,
    /// and says what it was.
    pub(super) fn find_unreceived(&self, sent: u64, received: u64) -> Result<RunError, RunError> {
        let addresses = self.addresses_in();
        let (mut count, mut first) = (0, vec![u64::MAX; 4]);
        let mut backoff = Backoff::new(Patience {
            report_after: REPORT_AFTER,
            time_out: Some(self.comm.patience().time_out.unwrap_or(REPORT_AFTER)),
        });
        let active = self.rank_map.active();
        let participants = Participants {
            senders: active,
            receivers: active,
            unlimited: false,
            meanwhile: &|| self.check_failures(),
        };
        loop {
            for (left, from) in &addresses {
                let (mut pieces, mut words) = (0, 0);
                while let Some(length) = self.messages.look(*from)? {
                    let mut envelope = self.messages.take(*from, length)?;
                    while envelope.open()?.is_none() {}
                    (pieces, words) = (pieces + 1, words + to_u64(length));
                }
                count += pieces;
                if pieces > 0 {
                    first = first.min([&left.words()[..], &[words]].concat());
                }
            }
            let own = [&[count][..], &first].concat();
            let place = || "the search for what was not received".to_owned();
            let decide = |all: Vec<Vec<u64>>| {
                let total: u64 = all.iter().map(|words| words[0]).sum();
                let first = all.iter().map(|words| words[1..].to_vec()).min();
                let found = total == sent - received;
                (first.filter(|_| found).unwrap_or_default(), false)
            };
            let decision = gather_at_root(&self.comm, participants, own, &place, decide)?;
            if let [kind, one, two, words] = decision[..] {
                return Ok(self.unreceived(&UnreceivedItem::read([kind, one, two]), words));
            }
            // It is still on its way.
            if let Waited::TimedOut(_) = backoff.wait() {
                return Ok(MpiError::LeftOver { sent, received }.into());
            }
        }
    }

    fn unreceived(&self, left: &UnreceivedItem, words: u64) -> RunError {
        match *left {
            UnreceivedItem::Words(set, connection) => {
                let set = self.loaded.set(set);
                let (cell, set) = (set.get(connection).target, set.name().to_owned());
                RunError::Unreceived { cell, set, connection, words }
            }
            UnreceivedItem::MessageSpec { target: cell, source: from } => {
                RunError::UnreceivedMessage { cell, from, words: to_usize(words) }
            }
        }
    }

    /// Where messages to cells of this rank may come from, of the active phase or of messages.
    fn addresses_in(&self) -> Vec<(UnreceivedItem, Address)> {
        let mut addresses = Vec::new();
        for &target in self.rank_map.cells_of(self.comm.rank()) {
            let Some(set) = self.active.get() else {
                for class in MessageClass::ALL {
                    for &source in self.rank_map.cells() {
                        let from = self.message_of(class, (source, target), Direction::Receive);
                        addresses.push((UnreceivedItem::MessageSpec { target, source }, from));
                    }
                }
                continue;
            };
            for &connection in self.loaded.sets[set].incoming.of(target) {
                let source = self.loaded.set(set).get(connection).source;
                let (rank, _) = self.rank_map.find(source).expect("ends of connections are live");
                let tag = to_c_int(self.elements + u64::from(connection.0));
                addresses.push((UnreceivedItem::Words(set, connection), Address { rank, tag }));
            }
        }
        addresses
    }
}

/// Messages that were not received.
enum UnreceivedItem {
    /// Words of a set's connection.
    Words(usize, ConnectionId),
    MessageSpec {
        target: CellId,
        source: CellId,
    },
}

impl UnreceivedItem {
    fn words(&self) -> [u64; 3] {
        match *self {
            UnreceivedItem::Words(set, connection) => [0, to_u64(set), u64::from(connection.0)],
            UnreceivedItem::MessageSpec { target, source } => {
                [1, u64::from(target.0), u64::from(source.0)]
            }
        }
    }

    fn read([kind, one, two]: [u64; 3]) -> Self {
        match kind {
            0 => UnreceivedItem::Words(to_usize(one), ConnectionId(to_u32(two))),
            _ => UnreceivedItem::MessageSpec {
                target: CellId(to_u32(one)),
                source: CellId(to_u32(two)),
            },
        }
    }
}
