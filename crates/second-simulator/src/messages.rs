//! A set by messages (rules M17 to M19).

use conset_ir::convert::to_usize;
use conset_ir::{ConnectionSet, Machine};

use crate::Failure;
use crate::message_engine::{Driver, Engine, Event, Message};

/// The order in which cells send the messages of a set (M19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOrder {
    /// The order of the set.
    Given,
    /// Most words first.
    LongestFirst,
    /// Greater targets first, ascending.
    Staggered,
    /// Random, by this seed.
    Random(u64),
}

/// An exchange by messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagesRun {
    /// Clocks until nothing more happens.
    pub clocks: u64,
    /// Per connection of the set, or per message of the plan.
    pub messages: Vec<MessageRun>,
    /// Words over each link, headers and trailers included.
    pub link_words: Vec<u64>,
}

/// The times of a message, in clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRun {
    /// Its source.
    pub source: usize,
    /// Its target.
    pub target: usize,
    /// Words without the additional ones.
    pub words: u64,
    /// The software of the source began.
    pub launched: u64,
    /// The event *sent*.
    pub sent: u64,
    /// The header arrived at the target.
    pub arrived: u64,
    /// The software of the target began.
    pub accepted: u64,
    /// The event *received*.
    pub received: u64,
}

/// Simulates the exchange of a set by messages.
///
/// # Errors
/// [`Failure`].
pub fn run_messages(
    machine: &Machine,
    set: &ConnectionSet,
    order: SendOrder,
) -> Result<MessagesRun, Failure> {
    let rows = set.connections().iter();
    let list = rows.map(|c| (c.source.index(), c.target.index(), u64::from(c.words)));
    let mut engine = Engine::new(machine, list)?;
    let mut lists = vec![Vec::new(); engine.cell_count()];
    for (number, message) in engine.messages.iter().enumerate() {
        lists[message.source].push(number);
    }
    for (cell, list) in lists.iter_mut().enumerate() {
        sort(list, cell, &engine.messages, order);
    }
    let mut reasons = vec![0; set.len()];
    set.order().iter().for_each(|(_, after)| reasons[after.index()] += 1);
    let clocks = engine.run(&mut SetDriver { set, lists, reasons });
    result(&engine, clocks)
}

/// The result of a run in which every message was received.
pub(crate) fn result(engine: &Engine<'_>, clocks: u64) -> Result<MessagesRun, Failure> {
    if engine.messages.iter().any(|message| message.received == 0) {
        return Err(Failure::Stuck(clocks));
    }
    let messages = engine.messages.iter().map(|message| MessageRun {
        source: message.source,
        target: message.target,
        words: message.words,
        launched: message.launched,
        sent: message.sent,
        arrived: message.arrived,
        accepted: message.accepted,
        received: message.received,
    });
    let link_words = engine.network.links.iter().map(|link| link.words).collect();
    Ok(MessagesRun { clocks, messages: messages.collect(), link_words })
}

/// M19: sorts the messages of a cell.
fn sort(list: &mut [usize], cell: usize, messages: &[Message], order: SendOrder) {
    match order {
        SendOrder::Given => {}
        SendOrder::LongestFirst => {
            list.sort_by_key(|&number| std::cmp::Reverse(messages[number].words));
        }
        SendOrder::Staggered => list.sort_by_key(|&number| {
            let target = messages[number].target;
            (target <= cell, target)
        }),
        SendOrder::Random(seed) => {
            let mut random = mix(seed ^ mix(u64::try_from(cell).expect("few cells")));
            for i in (1..list.len()).rev() {
                random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let count = u128::try_from(i).expect("few messages") + 1;
                let other = (u128::from(mix(random)) * count) >> 64;
                list.swap(i, to_usize(other));
            }
        }
    }
}

fn mix(mut b: u64) -> u64 {
    b = (b ^ (b >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    b = (b ^ (b >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ (b >> 31)
}

/// M17.
struct SetDriver<'a> {
    set: &'a ConnectionSet,
    /// Per cell, the messages that are not submitted.
    lists: Vec<Vec<usize>>,
    /// Per message, the reasons to hold it.
    reasons: Vec<usize>,
}

impl SetDriver<'_> {
    /// A cell submits the first message of its list that is not held.
    fn submit(&mut self, engine: &mut Engine<'_>, cell: usize) {
        let list = &mut self.lists[cell];
        if let Some(row) = list.iter().position(|&number| self.reasons[number] == 0) {
            engine.submit(list.remove(row));
        }
    }
}

impl Driver for SetDriver<'_> {
    fn start(&mut self, engine: &mut Engine<'_>) {
        for cell in 0..engine.cell_count() {
            let to_cell = engine.messages.iter().filter(|message| message.target == cell);
            let count = to_cell.count();
            engine.may_receive(cell, count);
        }
        for cell in 0..engine.cell_count() {
            self.submit(engine, cell);
        }
    }

    fn handle(&mut self, engine: &mut Engine<'_>, event: Event) {
        match event {
            Event::Sent(number) => self.submit(engine, engine.messages[number].source),
            Event::Received(number) => {
                for &(before, after) in self.set.order() {
                    let y = after.index();
                    if before.index() != number {
                        continue;
                    }
                    self.reasons[y] -= 1;
                    let source = engine.messages[y].source;
                    if self.reasons[y] == 0 && engine.sends_nothing(source) {
                        self.submit(engine, source);
                    }
                }
            }
            Event::Copied(_) => unreachable!("messages of a set are not copied"),
        }
    }
}
