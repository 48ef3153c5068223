//! The rules of a step plan: what its messages carry, and the operation lists of its cells.
//!
//! The lists are those of the plan ([`Steps::lists`]) or others that are given, such as those of an
//! image. All rules are about the contracted graph of the lists: one node for each message, and for
//! each cell a chain of its operations. If the lists are paired and the graph has no cycle, then in
//! any order of the graph the messages of each cell are in the order of its list, so pieces can be
//! followed from cell to cell in one such order.
//!
//! Ordered connections are compared by the plan: the last message with a piece of the first is before
//! the first message with a piece of the second.

use std::collections::BTreeMap;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ConnectionId, Lists, Piece, StepId, Steps, limits};

use crate::facts::Report;
use crate::live::Live;
use crate::rejection::{Findings, Location, Rule};

/// Checks a plan and the operation lists of its cells.
pub(crate) fn check(steps: &Steps, lists: &Lists<u32>, findings: &mut Findings) -> Report {
    let before = findings.total();
    let pieces = check_messages(steps, findings);
    check_time(steps, findings);
    check_pairing(steps, lists, findings);
    let report = Report {
        sets: 1,
        connections: to_u64(steps.set().len()),
        words: steps.set().words(),
        orders: to_u64(steps.set().order().len()),
        steps: to_u64(steps.messages().steps()),
        messages: to_u64(steps.messages().len()),
        pieces,
        ..Report::default()
    };
    if findings.total() > before {
        return report;
    }
    check_order(steps, findings);
    match execution_order(steps, lists) {
        Ok(order) => Holders::new(steps, &order).check(findings),
        Err(stuck) => {
            let message = steps.messages().get(index(stuck));
            findings.add(Rule::Deadlock, step_of(steps, stuck).cell(message.source), || {
                format!(
                    "the lists wait for each other in a cycle: message {stuck} from {} to {} waits \
                     for itself",
                    message.source, message.target
                )
            });
        }
    }
    report
}

/// The location of a message: its step.
fn step_of(steps: &Steps, message: u32) -> Location {
    let (mut first, mut last) = (0, steps.messages().steps());
    while first + 1 < last {
        let middle = first.midpoint(last);
        let starts = steps.messages().of_step(StepId::from_index(middle)).start;
        if starts <= index(message) { first = middle } else { last = middle }
    }
    Location::step(StepId::from_index(first))
}

/// The rules of single messages; returns the number of pieces.
fn check_messages(steps: &Steps, findings: &mut Findings) -> u64 {
    let live = Live::new(steps.machine());
    let mut count = 0;
    for (step, messages) in steps.iter() {
        for message in messages {
            let at = || Location::step(step).cell(message.source);
            if message.source == message.target {
                findings.add(Rule::Ends, at(), || "a message of the cell to itself".to_owned());
            }
            for cell in [message.source, message.target] {
                if !live.is_agent(cell) {
                    findings.add(Rule::Ends, at(), || format!("{cell} has no live agent"));
                }
            }
            for piece in message.pieces {
                let words = steps.set().get(piece.connection).words;
                if piece.words == 0 || end_of(*piece) > u64::from(words) {
                    findings.add(Rule::Words, at().connection(piece.connection), || {
                        format!(
                            "a piece of {} words from word {}; the connection has {words}",
                            piece.words, piece.first_word
                        )
                    });
                }
            }
            count += to_u64(message.pieces.len());
        }
    }
    count
}

/// The position after the last word of a piece.
fn end_of(piece: Piece) -> u64 {
    u64::from(piece.first_word) + u64::from(piece.words)
}

/// The time of all messages, one after the other, must be within the limit on clocks.
fn check_time(steps: &Steps, findings: &mut Findings) {
    let clocks = one_by_one(steps);
    if clocks > u128::from(limits::TIME) {
        findings.add(Rule::Duration, Location::set(), || {
            format!(
                "the messages take {clocks} clocks one after the other; at most {}",
                limits::TIME
            )
        });
    }
}

/// Clocks of all messages of a plan, one after the other, whatever their protocol: software, copies,
/// words copied to a buffer and moved over a link at its rate each, and received at the rate of the
/// agent, and the way over as many links as the machine has cells.
pub(crate) fn one_by_one(steps: &Steps) -> u128 {
    let p = steps.machine().parameters();
    let access = u128::from(p.access_clocks_per_word);
    let [_, link] = steps.machine().link_clocks_range().map(u128::from);
    let software =
        u128::from(p.c_send) + u128::from(p.c_receive) + 2 * u128::from(p.network_overhead);
    let copy = u128::from(p.copy_clocks_per_word);
    let way = u128::from(to_u64(steps.machine().cell_count())) * link + 2 * access;
    let of = |words: u64| {
        let words = u128::from(words) + u128::from(p.message_extra_words);
        software + way + words * (access + 2 * link + copy)
    };
    steps.messages().iter().map(|message| of(message.words())).sum()
}

/// Each message is once in the list of its source, once in that of its target, and in no other;
/// messages between the same two cells have the same order in both lists.
fn check_pairing(steps: &Steps, lists: &Lists<u32>, findings: &mut Findings) {
    let messages = steps.messages();
    if index(lists.rows()) != steps.machine().agent_count() {
        findings.add(Rule::Pairing, Location::set(), || {
            format!("{} lists for {} cells", lists.rows(), steps.machine().agent_count())
        });
        return;
    }
    let mut seen = vec![0u8; messages.len()];
    // Per message, the message before it in both lists from the same source to the same target.
    let mut last: Vec<(u32, u32, u32, u32)> = Vec::with_capacity(lists.items().len());
    for cell in 0..lists.rows() {
        for (place, &row) in lists.of(cell).iter().enumerate() {
            let at = Location::set().cell(CellId(cell));
            let Some(mark) = seen.get_mut(index(row)) else {
                findings.add(Rule::Pairing, at, || format!("the plan has no message {row}"));
                continue;
            };
            let message = messages.get(index(row));
            if message.source == message.target {
                // Both operations are in one list; the message is refused by another rule.
                *mark = 3;
                continue;
            }
            let end = if message.source.0 == cell {
                1
            } else if message.target.0 == cell {
                2
            } else {
                findings.add(Rule::Pairing, at, || {
                    format!("message {row} is between {} and {}", message.source, message.target)
                });
                continue;
            };
            if *mark & end != 0 {
                findings.add(Rule::Pairing, at, || format!("message {row} is listed twice"));
            }
            *mark |= end;
            if end == 2 {
                last.push((message.source.0, cell, to_u32(place), row));
            }
        }
    }
    for (row, mark) in seen.iter().enumerate().filter(|(_, mark)| **mark != 3) {
        let message = messages.get(row);
        let cell = if mark & 1 == 0 { message.source } else { message.target };
        findings.add(Rule::Pairing, Location::set().cell(cell), || {
            format!("message {row} is not in the list of the cell")
        });
    }
    // Receptions by source, target and place must have the order of the source's list.
    last.sort_unstable();
    let mut places = vec![0u32; messages.len()];
    for cell in 0..lists.rows() {
        for (place, &row) in lists.of(cell).iter().enumerate() {
            if index(row) < messages.len() && messages.get(index(row)).source.0 == cell {
                places[index(row)] = to_u32(place);
            }
        }
    }
    for pair in last.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        let (first, second) = (pair[0].3, pair[1].3);
        if places[index(first)] > places[index(second)] {
            findings.add(Rule::Pairing, Location::set().cell(CellId(pair[0].1)), || {
                format!(
                    "messages {second} and {first} from c{} are received in another order than sent",
                    pair[0].0
                )
            });
        }
    }
}

/// The rule of the set's order.
fn check_order(steps: &Steps, findings: &mut Findings) {
    let order = steps.set().order();
    if order.is_empty() {
        return;
    }
    // Per connection, its first message, and the one after its last.
    let mut spans = vec![(u32::MAX, 0u32); steps.set().len()];
    for (row, message) in steps.messages().iter().enumerate() {
        for piece in message.pieces {
            let span = &mut spans[piece.connection.index()];
            *span = (span.0.min(to_u32(row)), to_u32(row + 1));
        }
    }
    for &(before, after) in order {
        let (end, start) = (spans[before.index()].1, spans[after.index()].0);
        if end > start {
            findings.add(Rule::Order, step_of(steps, start).connection(after), || {
                format!(
                    "its first message, {start}, is not after message {}, the last of {before}",
                    end - 1
                )
            });
        }
    }
}

/// An order of all messages in which those of each cell are as in its list; otherwise a message of
/// a cycle. Kahn's algorithm.
fn execution_order(steps: &Steps, lists: &Lists<u32>) -> Result<Vec<u32>, u32> {
    const NONE: u32 = u32::MAX;
    let messages = steps.messages();
    // Per message, the next in the list of its source and in that of its target.
    let mut next = vec![[NONE; 2]; messages.len()];
    let mut waits = vec![0u8; messages.len()];
    for cell in 0..lists.rows() {
        for pair in lists.of(cell).windows(2) {
            let end = usize::from(messages.get(index(pair[0])).source.0 != cell);
            next[index(pair[0])][end] = pair[1];
            waits[index(pair[1])] += 1;
        }
    }
    let mut order: Vec<u32> =
        (0..to_u32(messages.len())).filter(|&row| waits[index(row)] == 0).collect();
    let mut done = 0;
    while let Some(&row) = order.get(done) {
        done += 1;
        for after in next[index(row)].into_iter().filter(|&after| after != NONE) {
            waits[index(after)] -= 1;
            if waits[index(after)] == 0 {
                order.push(after);
            }
        }
    }
    if order.len() == messages.len() {
        return Ok(order);
    }
    // Every message that is left waits for another one that is left, so going back finds a cycle.
    let mut previous = vec![NONE; messages.len()];
    for (row, after) in next.iter().enumerate().filter(|(row, _)| waits[*row] > 0) {
        for &after in after.iter().filter(|&&after| after != NONE && waits[index(after)] > 0) {
            previous[index(after)] = to_u32(row);
        }
    }
    let mut at = to_u32(waits.iter().position(|&waits| waits > 0).unwrap_or(0));
    for _ in 0..messages.len() {
        at = previous[index(at)];
    }
    Err(at)
}

/// Follows the words of each connection from cell to cell.
struct Holders<'a> {
    steps: &'a Steps,
    /// Per connection, the messages with pieces of it in the order of execution, and the pieces.
    travels: Lists<(u32, Piece)>,
}

impl<'a> Holders<'a> {
    fn new(steps: &'a Steps, order: &'a [u32]) -> Self {
        let travels = order.iter().flat_map(|&row| {
            let pieces = steps.messages().get(index(row)).pieces.iter();
            pieces.map(move |&piece| (piece.connection.0, (row, piece)))
        });
        Self { steps, travels: Lists::new(steps.set().len(), travels) }
    }

    /// The rules holding and coverage.
    fn check(&self, findings: &mut Findings) {
        let mut stretches = Stretches::default();
        for (id, connection) in self.steps.set().iter() {
            stretches.reset(connection.words, connection.source);
            for &(row, piece) in self.travels.of(id.0) {
                let message = self.steps.messages().get(index(row));
                if !stretches.moves(piece, message.source, message.target) {
                    let at = step_of(self.steps, row).cell(message.source).connection(id);
                    findings.add(Rule::Holding, at, || {
                        format!(
                            "the cell sends words {} to {}, but does not have them all then",
                            piece.first_word,
                            end_of(piece) - 1
                        )
                    });
                }
            }
            self.check_coverage(id, connection.target, &stretches, findings);
        }
    }

    fn check_coverage(
        &self,
        id: ConnectionId,
        target: CellId,
        stretches: &Stretches,
        findings: &mut Findings,
    ) {
        for (first, end, cell) in stretches.elsewhere(target) {
            findings.add(Rule::Coverage, Location::set().connection(id), || {
                format!("words {first} to {} end at {cell} instead of {target}", end - 1)
            });
        }
    }
}

/// The cells that hold the words of one connection: by the position of the first word of each
/// stretch, the position after its last word and the cell.
#[derive(Default)]
struct Stretches {
    held: BTreeMap<u32, (u32, CellId)>,
}

impl Stretches {
    fn reset(&mut self, words: u32, source: CellId) {
        self.held.clear();
        self.held.insert(0, (words, source));
    }

    /// Moves the words of a piece; returns whether all were at `from`. O(log) each, as every call
    /// adds at most two stretches and removes those inside of the piece.
    fn moves(&mut self, piece: Piece, from: CellId, to: CellId) -> bool {
        let (first, end) = (piece.first_word, piece.first_word + piece.words);
        self.split(first);
        self.split(end);
        let inside = self.held.range(first..end);
        let held = inside.clone().all(|(_, stretch)| stretch.1 == from);
        let starts: Vec<u32> = inside.map(|(&start, _)| start).collect();
        starts.iter().for_each(|start| {
            self.held.remove(start);
        });
        self.held.insert(first, (end, to));
        held
    }

    /// Divides the stretch that has words on both sides of a position.
    fn split(&mut self, at: u32) {
        if let Some((_, stretch)) = self.held.range_mut(..at).next_back()
            && stretch.0 > at
        {
            let (end, cell) = *stretch;
            stretch.0 = at;
            self.held.insert(at, (end, cell));
        }
    }

    /// The stretches that are not at a cell.
    fn elsewhere(&self, target: CellId) -> impl Iterator<Item = (u32, u32, CellId)> + '_ {
        let stretches = self.held.iter().map(|(&first, &(end, cell))| (first, end, cell));
        stretches.filter(move |stretch| stretch.2 != target)
    }
}
