//! Step plans (rules S1 to S5).

use std::collections::{BTreeSet, HashSet, VecDeque};

use conset_ir::Steps;

use crate::Failure;
use crate::message_engine::{Driver, Engine, Event};
use crate::messages::{MessagesRun, result};

/// The execution of a step plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepsRun {
    /// Its messages.
    pub run: MessagesRun,
    /// Whether every message carried only words that its source had, and every connection's words
    /// are at its target.
    pub is_delivered: bool,
}

/// Simulates a step plan.
///
/// # Errors
/// [`Failure`].
pub fn run_steps(steps: &Steps) -> Result<StepsRun, Failure> {
    let list = steps.messages().iter();
    let list = list.map(|m| (m.source.index(), m.target.index(), m.words()));
    let mut engine = Engine::new(steps.machine(), list)?;
    let mut driver = StepsDriver::new(steps, engine.cell_count());
    let clocks = engine.run(&mut driver);
    let run = result(&engine, clocks)?;
    let arrives = |(x, connection): (usize, &conset_ir::Connection)| {
        let target = connection.target.index();
        (0..connection.words).all(|word| driver.memory[target].contains(&(x, word)))
    };
    let complete = steps.set().connections().iter().enumerate().all(arrives);
    Ok(StepsRun { run, is_delivered: complete && !driver.sent_unknown_words })
}

/// Why a message waits (S1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// This message brings words that it carries.
    Brings(usize),
    /// Connection x is before connection y, of which it carries a piece.
    Order(usize, usize),
}

struct StepsDriver<'a> {
    steps: &'a Steps,
    is_rendezvous: bool,
    /// Per message, why it waits.
    reasons: Vec<BTreeSet<Reason>>,
    /// Per connection, the pieces that have not come in.
    missing_pieces: Vec<usize>,
    /// Per cell, its operations that are not begun: messages.
    lists: Vec<VecDeque<usize>>,
    /// Per cell, whether its last operation is done.
    is_done: Vec<bool>,
    /// Per cell, the words that it has.
    memory: Vec<HashSet<(usize, u32)>>,
    sent_unknown_words: bool,
}

impl<'a> StepsDriver<'a> {
    fn new(steps: &'a Steps, cells: usize) -> Self {
        let set = steps.set();
        let is_rendezvous =
            steps.machine().parameters().protocol == conset_ir::Protocol::Rendezvous;
        let mut this = Self {
            steps,
            is_rendezvous,
            reasons: vec![BTreeSet::new(); steps.messages().len()],
            missing_pieces: vec![0; set.len()],
            lists: vec![VecDeque::new(); cells],
            is_done: vec![true; cells],
            memory: vec![HashSet::new(); cells],
            sent_unknown_words: false,
        };
        // Per connection and word, the last message with this word so far.
        let rows = set.connections().iter();
        let mut last: Vec<Vec<Option<usize>>> =
            rows.map(|connection| (0..connection.words).map(|_| None).collect()).collect();
        for (number, message) in steps.messages().iter().enumerate() {
            for piece in message.pieces {
                let x = piece.connection.index();
                this.missing_pieces[x] += 1;
                for word in words_of(piece) {
                    let row = conset_ir::convert::index(word);
                    if let Some(earlier) = last[x][row].filter(|&earlier| earlier != number) {
                        this.reasons[number].insert(Reason::Brings(earlier));
                    }
                    last[x][row] = Some(number);
                }
            }
            this.lists[message.source.index()].push_back(number);
            if is_rendezvous {
                this.lists[message.target.index()].push_back(number);
            }
        }
        for (number, message) in steps.messages().iter().enumerate() {
            for &(x, y) in set.order() {
                let carries = message.pieces.iter().any(|piece| piece.connection == y);
                if carries && this.missing_pieces[x.index()] > 0 {
                    this.reasons[number].insert(Reason::Order(x.index(), y.index()));
                }
            }
        }
        for (x, connection) in set.connections().iter().enumerate() {
            let words = (0..connection.words).map(|word| (x, word));
            this.memory[connection.source.index()].extend(words);
        }
        this
    }

    /// S2.
    fn continue_cell(&mut self, engine: &mut Engine<'_>, cell: usize) {
        let Some(&number) = self.lists[cell].front() else { return };
        let message = self.steps.messages().get(number);
        let is_send = message.source.index() == cell;
        if !self.is_done[cell] || (is_send && !self.reasons[number].is_empty()) {
            return;
        }
        self.lists[cell].pop_front();
        self.is_done[cell] = false;
        if is_send {
            let memory = &self.memory[cell];
            let has = |word: &(usize, u32)| memory.contains(word);
            self.sent_unknown_words |= !message.pieces.iter().flat_map(words).all(|w| has(&w));
            engine.submit(number);
        } else {
            engine.may_receive_from(cell, message.source.index());
        }
    }

    fn finish_operation(&mut self, engine: &mut Engine<'_>, cell: usize) {
        self.is_done[cell] = true;
        self.continue_cell(engine, cell);
    }

    /// S5.
    fn come_in(&mut self, engine: &mut Engine<'_>, number: usize) {
        let message = self.steps.messages().get(number);
        let target = message.target.index();
        self.memory[target].extend(message.pieces.iter().flat_map(words));
        let mut released = Vec::new();
        self.remove_reason(Reason::Brings(number), &mut released);
        for piece in message.pieces {
            let x = piece.connection.index();
            self.missing_pieces[x] -= 1;
            if self.missing_pieces[x] == 0 {
                for (_, y) in self.steps.set().order().iter().filter(|pair| pair.0.index() == x) {
                    self.remove_reason(Reason::Order(x, y.index()), &mut released);
                }
            }
        }
        if self.is_rendezvous {
            self.finish_operation(engine, target);
        }
        for number in released {
            self.continue_cell(engine, self.steps.messages().get(number).source.index());
        }
    }

    /// Removes a reason from all messages, and lists those that no longer wait, by number.
    fn remove_reason(&mut self, reason: Reason, released: &mut Vec<usize>) {
        for (number, reasons) in self.reasons.iter_mut().enumerate() {
            if reasons.remove(&reason) && reasons.is_empty() {
                released.push(number);
            }
        }
    }
}

/// The words of a piece.
fn words_of(piece: &conset_ir::Piece) -> std::ops::Range<u32> {
    piece.first_word..piece.first_word + piece.words
}

/// The words of a piece with their connection.
fn words(piece: &conset_ir::Piece) -> impl Iterator<Item = (usize, u32)> + use<> {
    let x = piece.connection.index();
    words_of(piece).map(move |word| (x, word))
}

impl Driver for StepsDriver<'_> {
    /// S3.
    fn start(&mut self, engine: &mut Engine<'_>) {
        if !self.is_rendezvous {
            for cell in 0..engine.cell_count() {
                let to_cell = engine.messages.iter().filter(|message| message.target == cell);
                let count = to_cell.count();
                engine.may_receive(cell, count);
            }
        }
        for cell in 0..engine.cell_count() {
            self.continue_cell(engine, cell);
        }
    }

    /// S3 and S4.
    fn handle(&mut self, engine: &mut Engine<'_>, event: Event) {
        match event {
            Event::Sent(number) => {
                self.finish_operation(engine, engine.messages[number].source);
            }
            Event::Received(number) => {
                let message = self.steps.messages().get(number);
                let passed_on = message.pieces.iter().filter(|piece| {
                    let connection = self.steps.set().get(piece.connection);
                    connection.target != message.target
                });
                let words: u64 = passed_on.map(|piece| u64::from(piece.words)).sum();
                let per_word = self.steps.machine().parameters().copy_clocks_per_word;
                match words * u64::from(per_word) {
                    0 => self.come_in(engine, number),
                    clocks => engine.copy(number, clocks),
                }
            }
            Event::Copied(number) => self.come_in(engine, number),
        }
    }
}
