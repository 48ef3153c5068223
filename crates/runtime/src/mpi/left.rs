//! Mail that was sent and that nobody received, found when ranks meet.
//!
//! The counts of all ranks say that there is some. Each rank looks where mail for its cells may
//! come from, takes what it finds away, so that the next run does not find it, and the first of all
//! is named on all ranks. Mail may still be on its way, so they look until they have all.

use conset_ir::{CellId, ConnectionId, Direction};

use super::error::MpiError;
use super::mail::Address;
use super::meet::{Members, meet};
use super::run::Rank;
use crate::error::RunError;

impl Rank<'_> {
    /// Mail was sent that nobody received. Takes it away, so that the next run does not find it,
    /// and says what it was.
    pub(super) fn left_over(&self, sent: u64, received: u64) -> Result<RunError, RunError> {
        let addresses = self.addresses_in();
        let (mut count, mut first) = (0, vec![u64::MAX; 4]);
        let mut patience = self.comm.patience();
        let active = self.placement.active();
        let members =
            Members { heard: active, told: active, for_ever: false, meanwhile: &|| Ok(()) };
        loop {
            for (left, from) in &addresses {
                let (mut pieces, mut words) = (0, 0);
                while let Some(length) = self.mail.look(*from)? {
                    let mut letter = self.mail.take(*from, length)?;
                    while letter.open()?.is_none() {}
                    (pieces, words) = (pieces + 1, words + length as u64);
                }
                count += pieces;
                if pieces > 0 {
                    first = first.min([&left.words()[..], &[words]].concat());
                }
            }
            let own = [&[count][..], &first].concat();
            let place = || "the search for what was not received".to_owned();
            let judge = |all: Vec<Vec<u64>>| {
                let total: u64 = all.iter().map(|words| words[0]).sum();
                let first = all.iter().map(|words| words[1..].to_vec()).min();
                let found = total == sent - received;
                (first.filter(|_| found).unwrap_or_default(), false)
            };
            let verdict = meet(&self.comm, members, own, &place, judge)?;
            if let [kind, one, two, words] = verdict[..] {
                return Ok(self.unreceived(&Left::read([kind, one, two]), words));
            }
            // It is still on its way.
            if patience.wait().is_err() {
                return Ok(MpiError::LeftOver { sent, received }.into());
            }
        }
    }

    fn unreceived(&self, left: &Left, words: u64) -> RunError {
        match *left {
            Left::Words(set, connection) => {
                let set = self.loaded.set(set);
                let (cell, set) = (set.get(connection).target, set.name().to_owned());
                RunError::Unreceived { cell, set, connection, words }
            }
            Left::Message { target: cell, source: from } => {
                RunError::UnreceivedMessage { cell, from, words: words as usize }
            }
        }
    }

    /// Where mail for this rank's cells may come from, of the active phase or of messages.
    fn addresses_in(&self) -> Vec<(Left, Address)> {
        let mut addresses = Vec::new();
        for &target in self.placement.of_rank(self.comm.rank()) {
            let Some(set) = self.active.get() else {
                for &source in self.placement.cells() {
                    let from = self.message(source, target, Direction::Receive);
                    addresses.push((Left::Message { target, source }, from));
                }
                continue;
            };
            for &connection in self.loaded.sets[set].inn.of(target) {
                let source = self.loaded.set(set).get(connection).source;
                let (rank, _) = self.placement.find(source).expect("ends of connections are live");
                let tag = (self.elements + u64::from(connection.0)) as i32;
                addresses.push((Left::Words(set, connection), Address { rank, tag }));
            }
        }
        addresses
    }
}

/// Mail that was not received.
enum Left {
    /// Words of a set's connection.
    Words(usize, ConnectionId),
    Message {
        target: CellId,
        source: CellId,
    },
}

impl Left {
    fn words(&self) -> [u64; 3] {
        match *self {
            Left::Words(set, connection) => [0, set as u64, u64::from(connection.0)],
            Left::Message { target, source } => [1, u64::from(target.0), u64::from(source.0)],
        }
    }

    fn read([kind, one, two]: [u64; 3]) -> Self {
        match kind {
            0 => Left::Words(one as usize, ConnectionId(two as u32)),
            _ => Left::Message { target: CellId(one as u32), source: CellId(two as u32) },
        }
    }
}
