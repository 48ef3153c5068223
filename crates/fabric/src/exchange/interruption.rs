//! Exchanges that can go on after a fault: what has been delivered until then, and what is dead.
//!
//! [`Fabric::exchange_or_drain`] ends with the first fault, as [`Fabric::exchange`] does, but then lets everything
//! arrive that still moves, empties the channels, and returns an [`Interruption`]. The driver can compile what is left,
//! for a machine without the dead parts, and continue on the same fabric with [`Fabric::resume`]: clock, faults
//! and the words that links have counted stay.
//!
//! The unit of delivery is the stream, that is a connection or a part of it. A stream is delivered when its receiver has all
//! of its words and, with check words, these fit. Words of a stream that is not complete are discarded and have to be
//! sent again. Cells could go on behind the last word that was received, but a count does not tell which words a
//! faulty link has lost.
//!
//! Without check words, a stream of which words are left in a channel is not delivered either: its receiver
//! has as many words as it wants, but not the right ones.

use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, Image, LinkId, Machine, PhaseId};

use super::{Fabric, SetExecution};
use crate::detection::{Detection, ExchangeData};
use crate::engine::Stop;
use crate::fault::{Fault, FaultKind};
use crate::injection::Part;
use crate::payload::SetBuffers;
use crate::report::{ExchangeReport, PhaseReport};

/// Consecutive words of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordRun {
    /// The connection.
    pub connection: ConnectionId,
    /// The index of the first word.
    pub first_word: u32,
    /// Number of words.
    pub words: u32,
}

/// An exchange that ended with a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interruption {
    /// The fault.
    pub fault: Fault,
    /// The clock at which nothing moved any more.
    pub drained: u64,
    /// The phases that were completed.
    pub phases: Vec<PhaseReport>,
    /// What was delivered, in the completed phases and the interrupted one: sorted, without repetitions.
    pub delivered: Vec<WordRun>,
    /// Words that were received again after their stream had been delivered; the data was the same.
    pub repeated: u64,
    /// Connections of which a stream arrived, but wrongly, in order.
    pub damaged: Vec<ConnectionId>,
    /// Words that were discarded from channels, check words included.
    pub discarded: u64,
    /// Cells whose agents have stopped for ever.
    pub dead_cells: Vec<CellId>,
    /// Links that have stopped for ever, without those of dead cells; parallel links are one pair.
    pub dead_links: Vec<(CellId, CellId)>,
}

impl Fabric {
    /// Executes set number `set` of the image, with check words if [`super::FabricOptions::detection`] asks for them.
    /// After a fault the channels are emptied, and [`Fabric::resume`] can continue. The words of streams that were not
    /// delivered are undefined in `data`.
    ///
    /// # Errors
    /// The fault, and what was delivered until then.
    ///
    /// # Panics
    /// If the buffers are of another set.
    pub fn exchange_or_drain(
        &mut self,
        set: usize,
        data: &mut SetBuffers,
    ) -> Result<ExchangeReport, Box<Interruption>> {
        let image = self.image.clone();
        let detection = self.options.detection;
        let begun = self.begin(&image, set, |image, number| match detection {
            Detection::Checked => ExchangeData::with_check_words(data, image, number),
            _ => ExchangeData::Unchecked(data),
        });
        let (mut run, mut data) = begun.map_err(|fault| Box::new(self.interruption(fault)))?;
        match self.run_phases(&mut run, &mut data) {
            Ok(()) => Ok(ExchangeReport::new(run.image.set.name(), run.phases)),
            Err(fault) => Err(Box::new(self.drain(run, fault, &mut data))),
        }
    }

    /// Goes on with another image, at the present clock. Its machine may have other dead cells and links than the one
    /// before; nobody waits for dead cells at context switches. Nothing is recorded in the trace from now on.
    ///
    /// # Panics
    /// If the image is for another machine.
    pub fn resume(&mut self, image: impl Into<Arc<Image>>) {
        let image = image.into();
        let (old, new) = (self.engine.machine(), image.machine());
        assert_eq!(old.topology(), new.topology(), "an image for the same machine");
        for &cell in new.dead_cells() {
            self.engine.stop_using(cell);
        }
        self.options.trace = false;
        self.loaded = None;
        self.image = image;
    }

    /// Lets everything arrive that still moves, and empties the channels.
    fn drain(
        &mut self,
        mut run: SetExecution<'_>,
        fault: Fault,
        data: &mut ExchangeData<'_>,
    ) -> Interruption {
        let mut damaged = Vec::from_iter(damaged_by(&fault.kind));
        if let Some(phase) = fault.phase {
            self.run_until_idle(&mut run, phase, data, &mut damaged);
        }
        // Check words tell whether a stream is right, counts do not: these have received others than the right words.
        if data.checked().is_none() {
            let in_channels = self.engine.connections_in_channels();
            damaged
                .extend(in_channels.filter(|&id| run.coverage.has_after(run.covered_before, id)));
        }
        let mut interruption = self.interruption(fault);
        interruption.discarded = self.engine.discard();
        let is_delivered = |connection| data.checked().is_some() || !damaged.contains(&connection);
        run.coverage.retain_after(run.covered_before, is_delivered);
        (interruption.delivered, interruption.repeated) =
            without_repetitions(run.coverage.into_runs());
        damaged.sort_unstable();
        damaged.dedup();
        Interruption { damaged, phases: run.phases, ..interruption }
    }

    fn run_until_idle(
        &mut self,
        run: &mut SetExecution<'_>,
        phase: PhaseId,
        data: &mut ExchangeData<'_>,
        damaged: &mut Vec<ConnectionId>,
    ) {
        let mut finished = Vec::new();
        loop {
            match self.engine.run(data.payload()) {
                Stop::Finished => {
                    self.engine.take_finished(&mut finished);
                    for &id in &finished {
                        let done = self.finish(run, phase, id, data);
                        damaged.extend(done.err().as_ref().and_then(damaged_by));
                    }
                }
                Stop::Fault => {
                    let fault = self.engine.take_fault();
                    let Some(kind @ FaultKind::WrongWord { .. }) = &fault else { break };
                    // Cells do not see it.
                    if self.options.detection == Detection::Simulator {
                        damaged.extend(damaged_by(kind));
                    }
                }
                Stop::Timer => {}
                Stop::Idle => break,
            }
        }
    }

    fn interruption(&self, fault: Fault) -> Interruption {
        Interruption::new(fault, self.engine.now(), self.engine.machine(), self.engine.dead_parts())
    }
}

impl Interruption {
    /// An exchange that ended at a clock, with nothing delivered, on a machine with these dead parts.
    pub(crate) fn new(
        fault: Fault,
        drained: u64,
        machine: &Machine,
        dead: impl Iterator<Item = Part>,
    ) -> Self {
        let mut dead_cells = Vec::new();
        let mut dead_links = Vec::new();
        for part in dead {
            match part {
                Part::Agent(cell) => dead_cells.push(cell),
                Part::Link(link) => {
                    let link = machine.link(LinkId(link));
                    dead_links.push((link.source, link.target));
                }
            }
        }
        dead_links.retain(|(source, target)| {
            !dead_cells.contains(source) && !dead_cells.contains(target)
        });
        dead_links.sort_unstable();
        dead_links.dedup();
        Self {
            fault,
            drained,
            phases: Vec::new(),
            delivered: Vec::new(),
            repeated: 0,
            damaged: Vec::new(),
            discarded: 0,
            dead_cells,
            dead_links,
        }
    }
}

impl std::fmt::Display for Interruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fault.fmt(f)
    }
}

impl std::error::Error for Interruption {}

/// The connection whose words a fault says are wrong.
fn damaged_by(kind: &FaultKind) -> Option<ConnectionId> {
    match *kind {
        FaultKind::CheckFailed { connection, .. }
        | FaultKind::LostWords { connection, .. }
        | FaultKind::WrongWord { expected: connection, .. } => Some(connection),
        _ => None,
    }
}

/// Runs in order, each word once, and how many words were there more than once.
fn without_repetitions(mut runs: Vec<(ConnectionId, u32, u32)>) -> (Vec<WordRun>, u64) {
    runs.sort_unstable();
    let (mut all, mut repeated) = (Vec::<WordRun>::new(), 0);
    for (connection, first, words) in runs {
        let before = all.last().filter(|run| run.connection == connection);
        let end = before.map_or(0, |run| run.first_word + run.words);
        let known = end.saturating_sub(first).min(words);
        repeated += u64::from(known);
        if known < words {
            let (first_word, words) = (first + known, words - known);
            all.push(WordRun { connection, first_word, words });
        }
    }
    (all, repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_words_are_counted_and_left_out() {
        let x = ConnectionId;
        let runs = vec![(x(1), 4, 4), (x(0), 0, 9), (x(1), 0, 6), (x(1), 1, 2), (x(2), 5, 1)];
        let (all, repeated) = without_repetitions(runs);
        let all: Vec<_> = all.iter().map(|r| (r.connection.0, r.first_word, r.words)).collect();
        assert_eq!(all, [(0, 0, 9), (1, 0, 6), (1, 6, 2), (2, 5, 1)]);
        assert_eq!(repeated, 4);
    }
}
