//! Random sets with step plans, and what each cell must receive.

use std::sync::Arc;

use conset_fabric::messages::MessageRoutes;
use conset_runtime::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Image, LinkId, Machine, Piece,
    Protocol, SetImage, StepMessages, Steps,
};
use conset_runtime::lists::{CellLists, Positions};
use conset_runtime::{Cell, CellError, Op, Word};
use conset_scheduler::steps::{
    Levels, LevelsSpec, Numbering, PieceRoute, Place, PlaceDigit, Share, StepOrder, factorisations,
};

/// Random numbers (SplitMix64), the same on all ranks.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end)) as u32
    }
}

/// A set of any size on 1 to 130 cells with a plan of any levels and order, some of whose pieces
/// are divided.
pub(crate) fn case(seed: u64) -> Steps {
    let mut rng = Rng(seed);
    let machine = machine(&mut rng);
    let set = Arc::new(set(&mut rng, machine.agent_count() as u32));
    let levels = planner(&mut rng, &machine);
    let mut routes = MessageRoutes::new(&machine);
    let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
    let steps = levels.plan(&machine, &set, machine.parameters().protocol, &mut route).unwrap();
    if rng.below(3) == 0 { divided(&steps, &mut rng) } else { steps }
}

/// A planner of any route, numbering and order that fit the machine.
fn planner(rng: &mut Rng, machine: &Machine) -> Levels {
    let order = StepOrder::ALL[rng.below(6) as usize];
    if rng.below(4) == 0 {
        return Levels::direct(machine, order);
    }
    let mut spec = LevelsSpec::new(order);
    spec.inverse = rng.below(2) == 0;
    if rng.below(4) == 0 {
        let share = format!("0.{}", 1 + rng.below(9));
        spec.route = PieceRoute::Halves(Share::parse(&share).unwrap());
        return Levels::of_spec(machine, spec).unwrap();
    }
    let all = factorisations(machine.endpoints().count().max(1) as u32, 3);
    let radices = &all[rng.below(all.len() as u32) as usize];
    spec.route = PieceRoute::digits(radices).unwrap();
    if rng.below(3) == 0 {
        let mut digit = |_| {
            let at = rng.below(radices.len() as u32) as usize;
            if rng.below(2) == 0 { PlaceDigit::Source(at) } else { PlaceDigit::Target(at) }
        };
        let place = Place((0..radices.len()).map(&mut digit).collect());
        let places = vec![place, Place((0..radices.len()).map(&mut digit).collect())];
        spec.route = PieceRoute::places(radices, places).unwrap();
    }
    spec.numbering = Numbering::ALL[rng.below(4) as usize];
    // Tiles need not divide the machine.
    Levels::of_spec(machine, spec.clone()).unwrap_or_else(|_| {
        Levels::of_spec(machine, LevelsSpec { numbering: Numbering::Given, ..spec }).unwrap()
    })
}

fn machine(rng: &mut Rng) -> Arc<Machine> {
    // Most are small.
    let most = [4, 12, 40, 130][rng.below(4) as usize];
    let cells = 1 + rng.below(most);
    let spec = match rng.below(4) {
        0 => format!("ring:{cells}"),
        1 => format!("fat-tree:{cells}"),
        2 => format!("mesh:{}x{}", 1 + rng.below(11), 1 + rng.below(most.min(11))),
        _ => format!("hypercube:{}", 1 + rng.below(6)),
    };
    let machine = Machine::from_spec(&spec).unwrap();
    let mut parameters = machine.parameters().clone();
    if rng.below(2) == 0 {
        parameters.protocol = Protocol::Rendezvous;
    }
    if rng.below(2) == 0 {
        parameters.copy_clocks_per_word = 3;
    }
    if rng.below(2) == 0 {
        parameters.duplex = Duplex::Half;
    }
    Arc::new(machine.with_parameters(parameters).unwrap())
}

/// None to twelve connections a cell, also of cells to themselves and several between two cells, and
/// in some cases ordered.
fn set(rng: &mut Rng, cells: u32) -> ConnectionSet {
    let count = match rng.below(8) {
        0 => 0,
        1 => 1,
        2 => rng.below(12 * cells + 1).min(600),
        _ => rng.below(3 * cells + 1),
    };
    let most = [1, 9, 90][rng.below(3) as usize];
    let connections = (0..count).map(|_| {
        Connection::new(CellId(rng.below(cells)), CellId(rng.below(cells)), 1 + rng.below(most))
    });
    let set = ConnectionSet::new("s", connections.collect()).unwrap();
    let pairs = if count > 1 && rng.below(4) == 0 { 1 + rng.below(3) } else { 0 };
    let pairs = (0..pairs).map(|_| {
        let after = 1 + rng.below(count - 1);
        (ConnectionId(rng.below(after)), ConnectionId(after))
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable();
    pairs.dedup();
    set.with_order(pairs).unwrap()
}

/// The same plan with some pieces in two messages, one after the other.
fn divided(steps: &Steps, rng: &mut Rng) -> Steps {
    let mut messages = StepMessages::new();
    for (_, step) in steps.iter() {
        for message in step {
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for &piece in message.pieces {
                let first = if rng.below(2) == 0 { rng.below(piece.words) } else { 0 };
                if first == 0 {
                    now.push(piece);
                    continue;
                }
                now.push(Piece { words: first, ..piece });
                let (first_word, words) = (piece.first_word + first, piece.words - first);
                later.push(Piece { first_word, words, ..piece });
            }
            for pieces in [now, later].iter().filter(|pieces| !pieces.is_empty()) {
                messages.push(message.source, message.target, pieces).unwrap();
            }
        }
        messages.end_step().unwrap();
    }
    Steps::new(steps.machine().clone(), steps.set().clone(), messages).unwrap()
}

pub(crate) fn image(steps: &Steps) -> Arc<Image> {
    let sets = vec![SetImage::of_steps(steps.clone())];
    Arc::new(Image::new(steps.machine().clone(), sets).unwrap())
}

/// The word at a place of a connection in a round: any 64 bits, also signalling NaNs.
pub(crate) fn word(connection: ConnectionId, place: usize, round: u64) -> u64 {
    Rng(u64::from(connection.0) << 40 ^ (place as u64) << 8 ^ round).next()
}

/// The most that a cell's words are wrong in a way: exchanges the set some times, by blocking
/// exchanges of words of 64 and 32 bits, by lists with a sum, and by nonblocking ones; the number of
/// rows that were not those sent.
pub(crate) fn wrong_rows(cell: &mut Cell<'_>) -> Result<usize, CellError> {
    let set = cell.image().sets()[0].set.clone();
    let mut wrong = 0;
    for round in 0..3 {
        // Cells that are late must not mix up rounds.
        cell.compute(u64::from(cell.id().0 % 3) * 500)?;
        wrong += if round < 2 {
            wrong_in(cell, |x, place| word(x, place, round))?
        } else {
            wrong_in(cell, |x, place| word(x, place, round) as u32)?
        };
        // A message of the program's own, which comes while others are still at the exchange, and is
        // waited for while messages of the next exchange come.
        let (id, last) = (cell.id(), cell.cell_count() as u32 - 1);
        if id.0 % 2 == 0 && id.0 < last {
            cell.msg_send(CellId(id.0 + 1), &[u64::from(id.0) + round])?;
        } else if id.0 % 2 == 1 {
            let mut words = [0];
            cell.msg_receive(CellId(id.0 - 1), &mut words)?;
            wrong += usize::from(words != [u64::from(id.0) - 1 + round]);
        }
    }
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
    // A vector with the words that go out, then those that come in.
    let count = |ids: &[ConnectionId]| ids.iter().map(|&x| set.get(x).words).sum::<u32>();
    let (sent, received) = (count(out), count(inn));
    let rows = |ids: &[ConnectionId], mut next: u32| {
        let rows = ids.iter().map(|&x| {
            let row = next..next + set.get(x).words;
            next = row.end;
            row.collect()
        });
        Positions::new(rows.collect::<Vec<Vec<u32>>>())
    };
    let lists = CellLists::new(rows(out, 0), rows(inn, sent), 1);
    let all = |ids: &[ConnectionId], round| -> Vec<u64> {
        let words = |&x: &ConnectionId| {
            (0..set.get(x).words as usize).map(move |place| word(x, place, round) >> 1)
        };
        ids.iter().flat_map(words).collect()
    };
    let mut vector = [all(out, 3), vec![5; received as usize]].concat();
    cell.exchange_lists(0, &lists, Op::Add, &mut vector)?;
    let sums = all(inn, 3).into_iter().map(|word| word + 5);
    wrong += vector[sent as usize..].iter().zip(sums).filter(|(a, b)| **a != *b).count();
    Ok(wrong)
}

fn wrong_in<W: Word + PartialEq>(
    cell: &mut Cell<'_>,
    word: impl Fn(ConnectionId, usize) -> W,
) -> Result<usize, CellError> {
    let set = cell.image().sets()[0].set.clone();
    let rows = |ids: &[ConnectionId]| -> Vec<Vec<W>> {
        let row = |&x: &ConnectionId| (0..set.get(x).words as usize).map(|i| word(x, i)).collect();
        ids.iter().map(row).collect()
    };
    let (outgoing, expected) = (rows(cell.connections_out(0)?), rows(cell.connections_in(0)?));
    let mut incoming: Vec<Vec<W>> =
        expected.iter().map(|row| vec![W::from_bits(1); row.len()]).collect();
    cell.exchange(0, &outgoing, &mut incoming)?;
    Ok(expected.iter().zip(&incoming).filter(|(a, b)| a != b).count())
}
