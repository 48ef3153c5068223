//! The words of an exchange by messages as the cells have them, right or wrong, on a machine with faults.
//!
//! A message carries pieces of connections: in a set one whole connection, in a step plan any. Its source sends what it
//! has: its own words, and those that it has received. With check words the receiver verifies the message before it uses
//! the words.

use std::collections::BTreeMap;

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionId, ConnectionSet, Piece, Steps};

use super::engine::MessageEngine;
use super::run::MessageData;
use crate::detection::{Detection, StreamTable};
use crate::exchange::WordRun;
use crate::fault::FaultKind;
use crate::payload::Payload;

/// A message: its ends and what it carries.
pub(super) struct Carried {
    source: CellId,
    target: CellId,
    pieces: Vec<Piece>,
}

impl Carried {
    /// The messages of a set, one for each connection.
    pub(super) fn of_set(set: &ConnectionSet) -> Vec<Self> {
        let whole = set.iter().map(|(id, connection)| Self {
            source: connection.source,
            target: connection.target,
            pieces: vec![Piece::whole(set, id)],
        });
        whole.collect()
    }

    /// The messages of a step plan, by their numbers.
    pub(super) fn of_steps(steps: &Steps) -> Vec<Self> {
        let messages = steps.messages().iter().map(|message| Self {
            source: message.source,
            target: message.target,
            pieces: message.pieces.to_vec(),
        });
        messages.collect()
    }
}

/// What has become of an exchange that goes on after faults of receivers.
#[derive(Default)]
pub(super) struct Drained {
    /// The first fault, and its clock.
    pub(super) fault: Option<(u64, FaultKind)>,
    /// Words that have arrived at the targets of their connections.
    pub(super) delivered: Vec<WordRun>,
    /// Connections of messages that arrived wrongly.
    pub(super) damaged: Vec<ConnectionId>,
}

/// The words of a run.
pub(super) struct CellWords<'a> {
    set: &'a ConnectionSet,
    /// The words that sources have.
    own: &'a dyn Fn(ConnectionId, u32) -> u64,
    /// By label.
    messages: Vec<Carried>,
    /// The values of each message that was begun, and of what has come of each, with check words.
    sent: Vec<Vec<u64>>,
    received: Vec<Vec<u64>>,
    /// What cells have received of connections.
    held: BTreeMap<(CellId, ConnectionId), Vec<u64>>,
    /// The check words, if there are any.
    checks: Option<StreamTable>,
    /// If the exchange goes on after a fault that a receiver notices.
    drained: Option<Drained>,
}

impl<'a> CellWords<'a> {
    /// The words of an exchange with this number.
    pub(super) fn new(
        set: &'a ConnectionSet,
        messages: Vec<Carried>,
        own: &'a dyn Fn(ConnectionId, u32) -> u64,
        (detection, exchange): (Detection, u64),
    ) -> Self {
        let words = |message: &Carried| message.pieces.iter().map(|piece| piece.words).sum();
        let checks = (detection == Detection::Checked)
            .then(|| StreamTable::of_messages(messages.iter().map(words), exchange));
        let empty = vec![Vec::new(); messages.len()];
        let (sent, received, held) = (empty.clone(), empty, BTreeMap::new());
        Self { set, own, messages, sent, received, held, checks, drained: None }
    }

    /// Lets the exchange go on after faults that receivers notice.
    pub(super) fn draining(self) -> Self {
        Self { drained: Some(Drained::default()), ..self }
    }

    /// The words of a connection that its target has.
    pub(super) fn at_target(&self, id: ConnectionId) -> Option<&[u64]> {
        self.held.get(&(self.set.get(id).target, id)).map(Vec::as_slice)
    }

    /// What has become of an exchange that ended so.
    pub(super) fn into_drained(mut self, clock: u64, done: Result<(), FaultKind>) -> Drained {
        if let Err(kind) = done {
            self.goes_on_after(clock, &kind);
        }
        self.drained.take().unwrap_or_default()
    }

    /// The connections that a fault says have arrived wrongly. A chain of waits says nothing about words.
    fn damaged_by(&self, kind: &FaultKind) -> Vec<ConnectionId> {
        let mut damaged = Vec::new();
        if !matches!(kind, FaultKind::Deadlock { .. }) {
            kind.clone().for_each_label(&mut |label| {
                let message = self.messages.get(label.index());
                let pieces = message.into_iter().flat_map(|message| &message.pieces);
                damaged.extend(pieces.map(|piece| piece.connection));
            });
        }
        damaged
    }
}

impl MessageData for CellWords<'_> {
    fn begin(&mut self, message: ConnectionId) {
        let Carried { source, pieces, .. } = &self.messages[message.index()];
        let mut values = Vec::new();
        for &Piece { connection, first_word, words } in pieces {
            let own = self.set.get(connection).source == *source;
            let held = self.held.get(&(*source, connection));
            values.extend((first_word..first_word + words).map(|word| match held {
                _ if own => (self.own)(connection, word),
                Some(held) => held[index(word)],
                None => 0,
            }));
        }
        if let Some(checks) = &self.checks {
            let sums = checks.check_words(message, &values);
            values.extend(sums);
        }
        self.sent[message.index()] = values;
    }

    fn end(&mut self, engine: &MessageEngine, message: ConnectionId) -> Result<(), FaultKind> {
        let received = std::mem::take(&mut self.received[message.index()]);
        let Carried { target, pieces, .. } = &self.messages[message.index()];
        let cell = *target;
        if let Some(checks) = &self.checks
            && let Some(damage) = checks.message_damage(message, &received)
        {
            let (connection, links) = (message, engine.links_of(message));
            return Err(FaultKind::CheckFailed { cell, connection, damage, links });
        }
        let mut values = received.into_iter();
        for &piece in pieces {
            let Piece { connection, first_word, words } = piece;
            let all = index(self.set.get(connection).words);
            let held = self.held.entry((cell, connection)).or_insert_with(|| vec![0; all]);
            let first = index(first_word);
            held[first..first + index(words)]
                .iter_mut()
                .zip(&mut values)
                .for_each(|(place, value)| *place = value);
            if let Some(drained) = &mut self.drained
                && self.set.get(connection).target == cell
            {
                drained.delivered.push(WordRun { connection, first_word, words });
            }
        }
        Ok(())
    }

    /// A router that has noticed a word without a header does not know where to send it, so nothing goes on.
    fn goes_on_after(&mut self, clock: u64, kind: &FaultKind) -> bool {
        let damaged = self.damaged_by(kind);
        let Some(drained) = &mut self.drained else { return false };
        drained.damaged.extend(damaged);
        drained.fault.get_or_insert_with(|| (clock, kind.clone()));
        !matches!(kind, FaultKind::StrayWord { .. })
    }
}

impl Payload for CellWords<'_> {
    /// The place is known only when all words have come. An extra word that came for a word of data has the value 0.
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let value = self.sent[from.0.index()].get(index(from.1)).copied().unwrap_or(0);
        self.received[to.0.index()].push(value);
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        if let Some(last) = self.received[to.0.index()].last_mut() {
            *last ^= u64::from(bits);
        }
    }
}
