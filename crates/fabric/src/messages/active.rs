//! Active messages: rounds of packets that no cell asks for.
//!
//! On a machine with active messages (`active_words` is not 0) a cell sends words to any other one in
//! packets of at most so many words. A packet is a message of the network whose receiver need not
//! ask for it: a cell that is free *polls*, takes in whatever has come, and runs its handler. This
//! costs software of its own (`c_active_send`, `c_active_receive`, `c_poll`) and nothing else: the
//! words of a packet are part of it, and the network interface moves them at the rate of the link. So
//! the engine is that of other messages on a machine with these costs ([`ActiveMessages::new`]).
//! A cell whose packet finds no room takes in others meanwhile, so full networks do not deadlock.
//!
//! What a cell has for another one in a round is a *put*: its packets say where in it they belong, and a
//! counter at the target counts the words that are still to come. Neither needs an operation of
//! the target's program. (With full duplex, a message of the protocol `standing` and `c_receive` 0 is the
//! put of a long message: its words go to memory as they come, at no cost to the receiver's processor.)
//!
//! A *round* is the exchange of some puts. It begins on all cells at the same clock, with nothing
//! under way, and ends when all cells know that all packets were taken in: by a reduction of the
//! control network, if the machine has one, and otherwise by packets of one word over a binomial tree
//! of the cells, to its root and back.
//!
//! Not modelled: packets that leave before all cells have come to the round, and packets and other
//! messages under way at the same time.

use std::sync::Arc;

use conset_ir::binomial::{children, parent};
use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Duplex, Machine, Parameters, Protocol};

use super::engine::{Message, MessageEngine, MessageEvent};
use crate::engine::Stop;
use crate::fault::FaultKind;
use crate::injection::HardwareFaults;
use crate::payload::Payload;

/// The words that a cell has for another one in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// The cell that sends them.
    pub source: CellId,
    /// The cell that gets them, another one.
    pub target: CellId,
    /// Their number, at least 1.
    pub words: u32,
    /// Words of an item, at least 1. A packet has whole items if it has room for one; otherwise an
    /// item has packets of its own.
    pub item_words: u32,
}

/// The end of the sending or of the taking in of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// The put, by its place in the list of the round.
    pub put: usize,
    /// The place of the packet's first word in the put.
    pub first_word: u32,
    /// Words of the packet.
    pub words: u32,
    /// Which end.
    pub direction: Direction,
    /// When the software of this end began, in clocks from the start of the round. For the target that
    /// is when its processor was free for the packet, and includes the wait for the next poll.
    pub start: u64,
    /// When the event occurred, in clocks from the start of the round.
    pub end: u64,
}

/// Stands for the packets of a round's end in faults, which belong to no put.
pub const END_OF_ROUND: ConnectionId = ConnectionId(u32::MAX);

/// A packet that was sent and not taken in.
#[derive(Clone, Copy, Debug)]
struct PacketSlot {
    /// The put; none for a packet of the round's end.
    put: Option<u32>,
    first_word: u32,
}

/// The machine's active messages: its network, as packets see it.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_fabric::SetBuffers;
/// use conset_fabric::messages::{ActiveMessages, Put};
/// use conset_ir::{CellId, Connection, ConnectionSet, Machine};
///
/// let cm5 = Arc::new(Machine::from_spec("cm5-active:4")?);
/// let (source, target) = (CellId(0), CellId(1));
/// let put = Put { source, target, words: 3, item_words: 1 };
/// let set = ConnectionSet::new("s", vec![Connection::new(source, target, 3)])?;
/// let mut active = ActiveMessages::new(&cm5).expect("the machine has active messages");
/// let clocks = active.run(&[put], &mut SetBuffers::new(&set), &mut |_| ())?;
/// // 2 us to send, 0.75 us until the header is at the other cell, 0.25 us until its poll at 3 us, 2 us to
/// // receive, 0.75 us for three words out of the network, 6 us for the reduction.
/// assert_eq!(clocks, 200 + 75 + 25 + 200 + 75 + 600);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ActiveMessages {
    engine: MessageEngine,
    /// The live cells with an agent.
    live: Vec<CellId>,
    active_words: u32,
    /// Clocks of a reduction by the control network; 0 if there is none.
    control_reduce: u32,
    /// Packets under way, by their label, and labels that are free.
    slots: Vec<PacketSlot>,
    free: Vec<u32>,
}

/// What is left of a round.
struct Round<'a> {
    puts: &'a [Put],
    /// Per cell, its puts that are not sent, the last one first, and how much of that was sent.
    unsent: Vec<Vec<u32>>,
    sent_words: Vec<u32>,
    /// Per put, the words that have not come: the counter at the target.
    left: Vec<u32>,
}

/// The words of packets, as those of their puts.
struct PacketWords<'a> {
    slots: &'a [PacketSlot],
    data: &'a mut dyn Payload,
}

impl Payload for PacketWords<'_> {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let place = |(label, word): (ConnectionId, u32)| {
            let slot = self.slots[label.index()];
            slot.put.map(|put| (ConnectionId(put), slot.first_word + word))
        };
        if let (Some(from), Some(to)) = (place(from), place(to)) {
            self.data.transfer(from, to);
        }
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        let slot = self.slots[to.0.index()];
        if let Some(put) = slot.put {
            self.data.invert((ConnectionId(put), slot.first_word + to.1), bits);
        }
    }
}

impl ActiveMessages {
    /// The active messages of a machine, at clock 0 with nothing under way; `None` if it has none.
    pub fn new(machine: &Arc<Machine>) -> Option<Self> {
        let parameters = machine.parameters();
        if parameters.active_words == 0 {
            return None;
        }
        let packets = Parameters {
            protocol: Protocol::Standing,
            duplex: Duplex::Full,
            access_clocks_per_word: parameters.link_clocks_per_word,
            message_extra_words: 0,
            c_send: parameters.c_active_send,
            c_receive: parameters.c_active_receive,
            ..parameters.clone()
        };
        // A valid machine has no value that another parameter would not accept.
        let packets = machine.with_parameters(packets).ok()?;
        let mut engine = MessageEngine::new(Arc::new(packets), true).with_polls(parameters.c_poll);
        for cell in machine.endpoints() {
            engine.receive(cell, u64::MAX);
        }
        Some(Self {
            engine,
            live: machine.endpoints().collect(),
            active_words: parameters.active_words,
            control_reduce: parameters.control_reduce,
            slots: Vec::new(),
            free: Vec::new(),
        })
    }

    /// Number of words taken in, those of rounds' ends included.
    pub fn delivered(&self) -> u64 {
        self.engine.delivered()
    }

    /// Word-hops: words carried over links.
    pub fn word_hops(&self) -> u64 {
        self.engine.word_hops()
    }

    /// Clocks since the active messages were made.
    pub fn now(&self) -> u64 {
        self.engine.now()
    }

    /// Lets time pass up to a clock, if that is later.
    pub fn pass_until(&mut self, clock: u64) {
        self.engine.pass_until(clock);
    }

    /// Takes the faults, for another engine of the machine ([`crate::Engine::take_faults`]).
    pub fn take_faults(&mut self) -> Option<HardwareFaults> {
        self.engine.take_faults()
    }

    /// Takes over the faults that another engine of the same machine had.
    pub fn give_faults(&mut self, faults: HardwareFaults) {
        self.engine.give_faults(faults);
    }

    /// Carries out a round and returns its clocks. A cell sends its puts by target, beginning with the
    /// first one after itself. `data` gets their words, each put as the connection of its number;
    /// `seen` gets the events of their packets, in order.
    ///
    /// # Errors
    /// A put whose end has no live agent, or that has no route. With faults of the hardware also what they have done to
    /// packets; it names puts by their numbers, and the packets of the round's end by [`END_OF_ROUND`]. The words that
    /// `data` got then may be wrong, and nothing can be exchanged any more.
    pub fn run(
        &mut self,
        puts: &[Put],
        data: &mut dyn Payload,
        seen: &mut dyn FnMut(PacketEvent),
    ) -> Result<u64, FaultKind> {
        self.run_packets(puts, data, seen).map_err(|mut kind| {
            kind.for_each_label(&mut |label| {
                let put = self.slots.get(label.index()).and_then(|slot| slot.put);
                *label = put.map_or(END_OF_ROUND, ConnectionId);
            });
            kind
        })
    }

    fn run_packets(
        &mut self,
        puts: &[Put],
        data: &mut dyn Payload,
        seen: &mut dyn FnMut(PacketEvent),
    ) -> Result<u64, FaultKind> {
        let start = self.engine.now();
        self.engine.restart_polls();
        let cells = self.engine.machine().agent_count();
        let mut round = Round::new(puts, cells);
        for cell in 0..cells {
            self.submit(&mut round, cell)?;
        }
        self.drain(data, |active, event| {
            let slot = active.slots[event.message.label.index()];
            let put = index(slot.put.expect("the round has not ended"));
            let words = event.message.words;
            let (direction, end) = (event.direction, active.engine.now() - start);
            let first = event.start - start;
            let first_word = slot.first_word;
            seen(PacketEvent { put, first_word, words, direction, start: first, end });
            if direction == Direction::Send {
                return active.submit(&mut round, event.message.source.index());
            }
            round.left[put] -= words;
            active.free.push(event.message.label.0);
            Ok(())
        })?;
        debug_assert!(round.left.iter().all(|&words| words == 0), "the counters are at 0");
        match self.control_reduce {
            0 => self.end_by_packets(data)?,
            clocks => return Ok(self.engine.now() - start + u64::from(clocks)),
        }
        Ok(self.engine.now() - start)
    }

    /// Submits the next packet of a cell.
    fn submit(&mut self, round: &mut Round<'_>, cell: usize) -> Result<(), FaultKind> {
        let Some(&number) = round.unsent.get(cell).and_then(|list| list.last()) else {
            return Ok(());
        };
        let put = round.puts[index(number)];
        let first_word = round.sent_words[cell];
        let words = put.packet_words(self.active_words, first_word);
        round.sent_words[cell] += words;
        if round.sent_words[cell] == put.words {
            round.unsent[cell].pop();
            round.sent_words[cell] = 0;
        }
        self.send((put.source, put.target), words, PacketSlot { put: Some(number), first_word })
    }

    fn send(
        &mut self,
        (source, target): (CellId, CellId),
        words: u32,
        slot: PacketSlot,
    ) -> Result<(), FaultKind> {
        let label = self.free.pop().unwrap_or_else(|| {
            self.slots.push(slot);
            to_u32(self.slots.len()) - 1
        });
        self.slots[index(label)] = slot;
        self.engine.send(Message { source, target, words, label: ConnectionId(label) })
    }

    /// Runs until nothing is under way.
    fn drain(
        &mut self,
        data: &mut dyn Payload,
        mut handle: impl FnMut(&mut Self, &MessageEvent) -> Result<(), FaultKind>,
    ) -> Result<(), FaultKind> {
        let mut events = Vec::new();
        while self.engine.run(&mut PacketWords { slots: &self.slots, data }) == Stop::Finished {
            self.engine.take_events(&mut events);
            events.iter().try_for_each(|event| handle(self, event))?;
        }
        self.engine.outcome()
    }

    /// All cells reduce a word to the first one and get the result, over a binomial tree of packets.
    fn end_by_packets(&mut self, data: &mut dyn Payload) -> Result<(), FaultKind> {
        let live = self.live.clone();
        let count = live.len();
        let mut awaited: Vec<usize> = (0..count).map(|at| children(at, count).count()).collect();
        for at in (0..count).filter(|&at| awaited[at] == 0) {
            self.send_to_parent(&live, at)?;
        }
        let place = |cell: CellId| live.binary_search(&cell).expect("the cell is live");
        self.drain(data, |active, event| {
            if event.direction == Direction::Send {
                return Ok(());
            }
            active.free.push(event.message.label.0);
            let (from, at) = (place(event.message.source), place(event.message.target));
            if from > at {
                awaited[at] -= 1;
                match (awaited[at], at) {
                    (0, 0) => {}
                    (0, _) => return active.send_to_parent(&live, at),
                    _ => return Ok(()),
                }
            }
            let mut farthest_first = children(at, count).rev();
            farthest_first.try_for_each(|child| active.send_control((live[at], live[child])))
        })
    }

    /// Sends the packet of a place to its parent, if it has one.
    fn send_to_parent(&mut self, live: &[CellId], at: usize) -> Result<(), FaultKind> {
        parent(at).map_or(Ok(()), |parent| self.send_control((live[at], live[parent])))
    }

    fn send_control(&mut self, ends: (CellId, CellId)) -> Result<(), FaultKind> {
        self.send(ends, 1, PacketSlot { put: None, first_word: 0 })
    }
}

impl Put {
    /// Words of the packet that begins at a word, on a machine with packets of so many words.
    fn packet_words(&self, active_words: u32, first_word: u32) -> u32 {
        let items = active_words / self.item_words;
        let most = match items {
            0 => active_words.min(self.item_words - first_word % self.item_words),
            items => items * self.item_words,
        };
        most.min(self.words - first_word)
    }
}

impl<'a> Round<'a> {
    fn new(puts: &'a [Put], cells: usize) -> Self {
        let mut unsent = vec![Vec::new(); cells];
        for (number, put) in puts.iter().enumerate() {
            // The others are refused when they are sent.
            let cell = put.source.index().min(cells - 1);
            unsent[cell].push(to_u32(number));
        }
        for list in &mut unsent {
            let turn = |&number: &u32| {
                let Put { source, target, .. } = puts[index(number)];
                (target <= source, target)
            };
            list.sort_by_key(turn);
            list.reverse();
        }
        let left = puts.iter().map(|put| put.words).collect();
        Self { puts, unsent, sent_words: vec![0; cells], left }
    }
}

#[cfg(test)]
mod tests {
    use conset_ir::{Connection, ConnectionSet};

    use super::*;
    use crate::payload::SetBuffers;

    #[test]
    fn packets_have_whole_items() {
        let sizes = |active_words, item_words, words| {
            let (source, target) = (CellId(0), CellId(1));
            let put = Put { source, target, words, item_words };
            let mut sizes = Vec::new();
            while sizes.iter().sum::<u32>() < words {
                sizes.push(put.packet_words(active_words, sizes.iter().sum()));
            }
            sizes
        };
        assert_eq!(sizes(4, 1, 9), [4, 4, 1]);
        assert_eq!(sizes(4, 2, 10), [4, 4, 2]);
        assert_eq!(sizes(4, 3, 9), [3, 3, 3]);
        assert_eq!(sizes(4, 6, 12), [4, 2, 4, 2]);
        assert_eq!(sizes(1, 2, 4), [1, 1, 1, 1]);
    }

    #[test]
    fn the_tree_of_the_end_has_each_cell_once() {
        for count in 1..40 {
            let mut seen: Vec<usize> = (0..count).flat_map(|at| children(at, count)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(1..count));
            for at in 0..count {
                assert!(children(at, count).all(|child| parent(child) == Some(at)));
            }
        }
    }

    #[test]
    fn a_round_of_two_cells_ends_with_a_packet_each_way_one_after_the_other() {
        let clocks = |control_reduce| {
            let (active_words, c_active_send, c_active_receive) = (4, 10, 5);
            let parameters = Parameters {
                active_words,
                c_active_send,
                c_active_receive,
                control_reduce,
                ..Parameters::iwarp()
            };
            let pair = Machine::from_spec("mesh:2x1").unwrap().with_parameters(parameters).unwrap();
            let mut active = ActiveMessages::new(&Arc::new(pair)).unwrap();
            let connection = Connection::new(CellId(0), CellId(1), 1);
            let set = ConnectionSet::new("s", vec![connection]).unwrap();
            let put = Put { source: CellId(0), target: CellId(1), words: 1, item_words: 1 };
            active.run(&[put], &mut SetBuffers::new(&set), &mut |_| ()).unwrap()
        };
        let packet = clocks(100) - 100;
        assert_eq!(clocks(0), 3 * packet);
    }

    #[test]
    fn rounds_end_by_packets_or_over_the_control_network() {
        let round = |control_reduce| {
            let parameters = Parameters { active_words: 4, control_reduce, ..Parameters::iwarp() };
            let ring = Machine::from_spec("ring:4").unwrap().with_parameters(parameters).unwrap();
            let mut active = ActiveMessages::new(&Arc::new(ring)).unwrap();
            let connection = Connection::new(CellId(0), CellId(1), 9);
            let set = ConnectionSet::new("s", vec![connection]).unwrap();
            let put = Put { source: CellId(0), target: CellId(1), words: 9, item_words: 1 };
            // Two rounds, of which the second takes as long and begins later.
            let rounds = [(); 2].map(|()| {
                let mut seen = Vec::new();
                let mut data = SetBuffers::new(&set);
                let clocks = active.run(&[put], &mut data, &mut |event| seen.push(event)).unwrap();
                (clocks, seen.iter().map(|event| (event.start, event.words)).collect::<Vec<_>>())
            });
            assert_eq!(rounds[0], rounds[1]);
            assert_eq!(rounds[0].1.len(), 2 * 3, "both ends of three packets");
            (active.delivered() / 2, active.word_hops() / 2)
        };
        // A word from each cell but the first one to its parent, over one or two links, and one back.
        assert_eq!(round(0), (9 + 2 * 3, 9 + 2 * (1 + 2 + 1)));
        assert_eq!(round(100), (9, 9));
    }
}
