//! Rounds of active messages (rules P1 to P5).

use conset_ir::{Duplex, Machine, Parameters, Protocol};

use crate::Failure;
use crate::message_engine::{Driver, Engine, Event};
use crate::messages::{MessagesRun, result};

/// The words of a cell for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its source.
    pub source: usize,
    /// Its target.
    pub target: usize,
    /// Its words.
    pub words: u64,
    /// Words of an item.
    pub item_words: u64,
}

/// A packet: its put, its first word there, and its words.
pub type Packet = (usize, u64, u64);

/// Simulates a round: its packets by cell and in the order in which the cell sends them, the times of
/// these packets, then of those of the round's end, and the clocks of the round.
///
/// # Errors
/// [`Failure`].
pub fn run_round(
    machine: &Machine,
    puts: &[Put],
) -> Result<(Vec<Packet>, MessagesRun, u64), Failure> {
    let parameters = machine.parameters();
    let packets = packets(machine.agent_count(), puts, u64::from(parameters.active_words));
    let list = packets.iter().map(|&(put, _, words)| (puts[put].source, puts[put].target, words));
    let live: Vec<usize> = machine.endpoints().map(|cell| cell.index()).collect();
    let edges = if parameters.control_reduce == 0 { edges(live.len()) } else { Vec::new() };
    let up = edges.iter().map(|&(child, parent)| (live[child], live[parent], 1));
    let down = edges.iter().map(|&(child, parent)| (live[parent], live[child], 1));
    let machine = packet_machine(machine);
    let mut engine = Engine::new(&machine, list.chain(up).chain(down))?;
    engine.poll(parameters.c_poll.into());
    let mut lists = vec![Vec::new(); engine.cell_count()];
    for number in (0..packets.len()).rev() {
        lists[engine.messages[number].source].push(number);
    }
    let mut clocks = engine.run(&mut PacketDriver { lists });
    if parameters.control_reduce == 0 {
        let mut awaited = vec![0; live.len()];
        edges.iter().for_each(|&(_, parent)| awaited[parent] += 1);
        let first = packets.len();
        clocks = engine.run(&mut EndDriver { first, edges, awaited });
    }
    let run = result(&engine, clocks)?;
    Ok((packets, run, clocks + u64::from(parameters.control_reduce)))
}

/// P2.
fn packet_machine(machine: &Machine) -> Machine {
    let parameters = machine.parameters();
    let changed = Parameters {
        protocol: Protocol::Standing,
        duplex: Duplex::Full,
        c_send: parameters.c_active_send,
        c_receive: parameters.c_active_receive,
        access_clocks_per_word: parameters.link_clocks_per_word,
        message_extra_words: 0,
        ..parameters.clone()
    };
    machine.with_parameters(changed).expect("parameters of a machine")
}

/// P1.
fn packets(cells: usize, puts: &[Put], most: u64) -> Vec<Packet> {
    let mut packets = Vec::new();
    for cell in 0..cells {
        for target in (cell + 1..cells).chain(0..cell) {
            for (number, put) in puts.iter().enumerate() {
                if (put.source, put.target) != (cell, target) {
                    continue;
                }
                let mut first = 0;
                while first < put.words {
                    let left = match most < put.item_words {
                        true => (put.item_words - first % put.item_words).min(most),
                        false => most - most % put.item_words,
                    };
                    let words = left.min(put.words - first);
                    packets.push((number, first, words));
                    first += words;
                }
            }
        }
    }
    packets
}

/// M17, with packets.
struct PacketDriver {
    /// Per cell, the packets that are not submitted, the last one first.
    lists: Vec<Vec<usize>>,
}

impl PacketDriver {
    fn submit(&mut self, engine: &mut Engine<'_>, cell: usize) {
        if let Some(number) = self.lists[cell].pop() {
            engine.submit(number);
        }
    }
}

impl Driver for PacketDriver {
    fn start(&mut self, engine: &mut Engine<'_>) {
        for cell in 0..engine.cell_count() {
            engine.may_receive(cell, usize::MAX);
        }
        for cell in 0..engine.cell_count() {
            self.submit(engine, cell);
        }
    }

    fn handle(&mut self, engine: &mut Engine<'_>, event: Event) {
        if let Event::Sent(number) = event {
            self.submit(engine, engine.messages[number].source);
        }
    }
}

/// P5: each place but 0 with the one to which it sends.
fn edges(places: usize) -> Vec<(usize, usize)> {
    let bits = || (0..).map(|k| 1 << k);
    let lowest = |place: usize| bits().find(|bit| place & bit != 0).expect("it is not 0");
    (1..places).map(|place| (place, place - lowest(place))).collect()
}

/// P5.
struct EndDriver {
    /// The message over edge e to the parent is number `first + e`; those back follow.
    first: usize,
    /// Child and parent, by place.
    edges: Vec<(usize, usize)>,
    /// Per place, the children that have sent nothing.
    awaited: Vec<usize>,
}

impl EndDriver {
    /// A place has what its children know.
    fn combined(&self, engine: &mut Engine<'_>, place: usize) {
        match self.edges.iter().position(|edge| edge.0 == place) {
            Some(edge) => engine.submit(self.first + edge),
            None => self.down(engine, place),
        }
    }

    fn down(&self, engine: &mut Engine<'_>, place: usize) {
        let children = self.edges.iter().enumerate().rev().filter(|(_, edge)| edge.1 == place);
        for (edge, _) in children {
            engine.submit(self.first + self.edges.len() + edge);
        }
    }
}

impl Driver for EndDriver {
    fn start(&mut self, engine: &mut Engine<'_>) {
        for place in (1..self.awaited.len()).filter(|&place| self.awaited[place] == 0) {
            self.combined(engine, place);
        }
    }

    fn handle(&mut self, engine: &mut Engine<'_>, event: Event) {
        let Event::Received(number) = event else { return };
        let edge = number - self.first;
        if edge >= self.edges.len() {
            return self.down(engine, self.edges[edge - self.edges.len()].0);
        }
        let parent = self.edges[edge].1;
        self.awaited[parent] -= 1;
        if self.awaited[parent] == 0 {
            self.combined(engine, parent);
        }
    }
}
