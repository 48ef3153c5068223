//! Words that cells pass on in a step plan: which of the words that leave a cell have arrived before.
//!
//! A run that leaves can consist of words of several runs that have arrived, and of own words of the
//! cell. What has arrived is kept by connection and first word, stage by stage; a run that leaves takes
//! out of it what it has of it, and what is left at the end is for the cell itself.

use std::collections::BTreeMap;
use std::ops::Range;

use conset_ir::ConnectionId;

use super::message_layout::WordRun;

/// Words that a cell passes on: from the buffer in which they arrived to the one in which they leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PassedRun {
    /// The row of a source on the same rank, in whose buffer they are; else they are in the buffer of
    /// the cell's own receives.
    pub(super) from: Option<usize>,
    /// Where they are there.
    pub(super) at: Range<usize>,
    /// Where they go in the buffer of the cell's sends.
    pub(super) to: usize,
}

/// What leaves a cell and what arrives at it, divided into the words of its own connections and those
/// that it passes on, by the stage in which they leave.
pub(super) fn pass_on(
    stages: usize,
    mut departures: Vec<WordRun>,
    mut arrivals: Vec<WordRun>,
) -> (Vec<WordRun>, Vec<WordRun>, Vec<Vec<PassedRun>>) {
    departures.sort_by_key(|run| run.stage);
    arrivals.sort_by_key(|run| run.stage);
    let (mut departures, mut arrivals) = (departures.iter().peekable(), arrivals.iter().peekable());
    let mut here = ArrivedWords::default();
    let (mut own, mut passed) = (Vec::new(), vec![Vec::new(); stages]);
    for (stage, passed) in passed.iter_mut().enumerate() {
        while let Some(run) = departures.next_if(|run| run.stage == stage) {
            here.depart(run, &mut own, passed);
        }
        while let Some(run) = arrivals.next_if(|run| run.stage == stage) {
            here.runs.insert((run.connection, run.words.start), run.clone());
        }
    }
    own.sort_by_key(|run| run.at);
    let mut arrived: Vec<WordRun> = here.runs.into_values().collect();
    arrived.sort_by_key(|run| (run.slot, run.words.start));
    (own, arrived, passed)
}

/// The words that have arrived at a cell and that it has not passed on, by connection and first word.
#[derive(Default)]
struct ArrivedWords {
    runs: BTreeMap<(ConnectionId, usize), WordRun>,
}

impl ArrivedWords {
    /// Words leave: those that have arrived are passed on, the others are the cell's own.
    fn depart(&mut self, run: &WordRun, own: &mut Vec<WordRun>, passed: &mut Vec<PassedRun>) {
        let mut next = run.words.start;
        self.split(run.connection, run.words.start);
        self.split(run.connection, run.words.end);
        let inside = (run.connection, run.words.start)..(run.connection, run.words.end);
        let found: Vec<WordRun> = self.runs.range(inside).map(|(_, run)| run.clone()).collect();
        let place = |word: usize| run.at + (word - run.words.start);
        for arrived in found {
            let words = arrived.words.clone();
            if next < words.start {
                own.push(WordRun { words: next..words.start, at: place(next), ..run.clone() });
            }
            passed.push(PassedRun {
                from: arrived.from,
                at: arrived.at..arrived.at + words.len(),
                to: place(words.start),
            });
            self.runs.remove(&(run.connection, words.start));
            next = words.end;
        }
        if next < run.words.end {
            own.push(WordRun { words: next..run.words.end, at: place(next), ..run.clone() });
        }
    }

    /// Divides the run that has words on both sides of a position.
    fn split(&mut self, connection: ConnectionId, at: usize) {
        let before = self.runs.range_mut((connection, 0)..(connection, at)).next_back();
        if let Some((_, run)) = before
            && run.words.end > at
        {
            let rest = WordRun {
                words: at..run.words.end,
                at: run.at + (at - run.words.start),
                ..run.clone()
            };
            run.words.end = at;
            self.runs.insert((connection, at), rest);
        }
    }
}
