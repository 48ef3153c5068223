//! Random sets with step plans, and what each cell must receive.

use std::sync::Arc;

use conset_fabric::messages::MessageRoutes;
use conset_runtime::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Image, LinkId, Machine, Piece,
    Protocol, SetImage, StepMessages, Steps,
};
use conset_runtime::{Cell, CellError};
use conset_scheduler::steps::{Levels, StepOrder, factorisations};

/// Random numbers (SplitMix64), the same on all ranks.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end)) as u32
    }
}

/// A set of any size on 1 to 130 cells with a plan of any levels and order, some of whose pieces
/// are divided.
pub fn case(seed: u64) -> Steps {
    let mut rng = Rng(seed);
    let machine = machine(&mut rng);
    let set = Arc::new(set(&mut rng, machine.agent_count() as u32));
    let radices = factorisations(machine.endpoints().count().max(1) as u32, 3);
    let levels = if rng.below(3) == 0 || radices.is_empty() {
        Levels::direct(&machine, StepOrder::ALL[rng.below(6) as usize])
    } else {
        let radices = &radices[rng.below(radices.len() as u32) as usize];
        Levels::new(&machine, radices, StepOrder::ALL[rng.below(6) as usize]).unwrap()
    };
    let mut routes = MessageRoutes::new(&machine);
    let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
    let steps = levels.plan(&machine, &set, machine.parameters().protocol, &mut route).unwrap();
    if rng.below(3) == 0 { divided(&steps, &mut rng) } else { steps }
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

pub fn image(steps: &Steps) -> Arc<Image> {
    let sets = vec![SetImage::of_steps(steps.clone())];
    Arc::new(Image::new(steps.machine().clone(), sets).unwrap())
}

/// The word at a place of a connection in a round: any 64 bits, also signalling NaNs.
pub fn word(connection: ConnectionId, place: usize, round: u64) -> u64 {
    Rng(u64::from(connection.0) << 40 ^ (place as u64) << 8 ^ round).next()
}

/// Exchanges the set some times, by blocking and by nonblocking exchanges of 64 and 32 bits; the
/// number of words that were not those sent.
pub fn wrong_words(cell: &mut Cell<'_>) -> Result<usize, CellError> {
    let set = cell.image().sets()[0].set.clone();
    let words = |x: ConnectionId, round| {
        (0..set.get(x).words as usize).map(move |place| word(x, place, round))
    };
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
    let mut wrong = 0;
    for round in 0..3 {
        // Cells that are late must not mix up rounds.
        cell.compute(u64::from(cell.id().0 % 3) * 500)?;
        if round < 2 {
            let outgoing: Vec<Vec<u64>> = out.iter().map(|&x| words(x, round).collect()).collect();
            let expected: Vec<Vec<u64>> = inn.iter().map(|&x| words(x, round).collect()).collect();
            let mut incoming: Vec<Vec<u64>> =
                expected.iter().map(|row| vec![1; row.len()]).collect();
            cell.exchange(0, &outgoing, &mut incoming)?;
            wrong += expected.iter().zip(&incoming).filter(|(a, b)| a != b).count();
            continue;
        }
        let half = |x| words(x, round).map(|bits| bits as u32);
        let outgoing: Vec<Vec<u32>> = out.iter().map(|&x| half(x).collect()).collect();
        let expected: Vec<Vec<u32>> = inn.iter().map(|&x| half(x).collect()).collect();
        let mut incoming: Vec<Vec<u32>> = expected.iter().map(|row| vec![1; row.len()]).collect();
        cell.exchange(0, &outgoing, &mut incoming)?;
        wrong += expected.iter().zip(&incoming).filter(|(a, b)| a != b).count();
    }
    Ok(wrong)
}
