//! The attempts of a run with recovery: the carrier, what is left, and the words that are handed over.

use std::sync::Arc;

use conset_fabric::{Interruption, SetBuffers, WordRun};
use conset_ir::convert::index;
use conset_ir::{ConnectionId, ConnectionSet, Machine};

use super::carrier::Carrier;
use super::repair::Suspicions;
use super::rest::RestSet;
use super::{Attempt, NamedConnection, ProgramWords, RecoveryOptions};

/// A run with recovery.
pub(super) struct Driver<'a> {
    pub(super) options: &'a RecoveryOptions,
    /// The sets of the program.
    pub(super) sets: Vec<Arc<ConnectionSet>>,
    pub(super) carrier: &'a mut dyn Carrier,
    /// The program that the carrier executes.
    pub(super) loaded: Vec<Arc<ConnectionSet>>,
    /// How many of its sets have been exchanged.
    pub(super) exchanged: usize,
    /// What is left of the program: its first set is the one that is being exchanged.
    pub(super) rest: Vec<RestSet>,
    /// The machine without the parts that were removed.
    pub(super) machine: Arc<Machine>,
    pub(super) suspicions: Suspicions,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        carrier: &'a mut dyn Carrier,
        machine: &Arc<Machine>,
        options: &'a RecoveryOptions,
    ) -> Self {
        let sets = carrier.sets();
        let rest = sets.iter().enumerate();
        Self {
            options,
            rest: rest.map(|(number, set)| RestSet::all(number, set)).collect(),
            loaded: sets.clone(),
            sets,
            machine: machine.clone(),
            carrier,
            exchanged: 0,
            suspicions: Suspicions::default(),
        }
    }

    /// Executes what is left until a fault is noticed.
    pub(super) fn attempt(
        &mut self,
        words: &mut dyn ProgramWords,
    ) -> (Attempt, Option<Box<Interruption>>) {
        let begin = self.carrier.now();
        let mut attempt = Attempt { begin, ..Attempt::default() };
        let sets = self.loaded.clone();
        self.exchanged = 0;
        let mut interruption = None;
        for (number, set) in sets.iter().enumerate() {
            let mut data = self.buffers(set, &*words);
            match self.carrier.exchange(number, &mut data) {
                Ok(phases) => {
                    attempt.phases += phases.len();
                    attempt.words += self.hand_over(all_words(set), &data, words);
                }
                Err(interrupted) => {
                    attempt.phases += interrupted.phases.len();
                    let delivered = interrupted.delivered.iter().copied();
                    attempt.words += self.hand_over(delivered, &data, words);
                    attempt.discarded = interrupted.discarded;
                    attempt.fault = Some(interrupted.fault.clone());
                    interruption = Some(interrupted);
                    break;
                }
            }
            self.exchanged += 1;
            self.rest.remove(0);
        }
        attempt.end = self.carrier.now();
        (attempt, interruption)
    }

    /// Whether nothing is left.
    pub(super) fn is_complete(&self) -> bool {
        self.rest.is_empty()
    }

    /// The connections that are left.
    pub(super) fn connections_left(&self) -> Vec<NamedConnection> {
        let connections = self.rest.iter().flat_map(|rest| {
            let set = &self.sets[rest.number];
            rest.originals().map(|id| NamedConnection::new(set, id, rest.words_left(id)))
        });
        connections.collect()
    }

    /// The machine without the parts that were removed.
    pub(super) fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    pub(super) fn faults_acted(&self) -> Vec<Option<u64>> {
        self.carrier.faults_acted().to_vec()
    }

    /// The outgoing words of the first set that is left.
    fn buffers(&self, set: &ConnectionSet, words: &dyn ProgramWords) -> SetBuffers {
        let mut data = SetBuffers::new(set);
        for run in all_words(set) {
            let values = self.places(run).map(|(set, id, word)| words.sent(set, id, word));
            for (place, value) in data.outgoing(run.connection).iter_mut().zip(values) {
                *place = value;
            }
        }
        data
    }

    /// The set, connection and number in the program of each word of a run of the first set that is left.
    fn places(&self, run: WordRun) -> impl Iterator<Item = (usize, ConnectionId, u32)> + use<> {
        let (set, (id, runs)) = (self.rest[0].number, self.rest[0].original(run));
        let words = runs.into_iter().flat_map(|(first, words)| first..first + words);
        words.map(move |word| (set, id, word))
    }

    /// Hands delivered words of the first set that is left over to the program; returns their number.
    fn hand_over(
        &self,
        delivered: impl Iterator<Item = WordRun>,
        data: &SetBuffers,
        words: &mut dyn ProgramWords,
    ) -> u64 {
        let mut count = 0;
        for run in delivered {
            let values = &data.incoming(run.connection)[index(run.first_word)..];
            for ((set, id, word), &value) in self.places(run).zip(values) {
                words.received(set, id, word, value);
            }
            count += u64::from(run.words);
        }
        count
    }
}

/// All words of a set.
fn all_words(set: &ConnectionSet) -> impl Iterator<Item = WordRun> + '_ {
    set.iter().map(|(connection, row)| WordRun { connection, first_word: 0, words: row.words })
}
