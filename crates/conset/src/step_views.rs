//! Explanations and comparisons of step plans: the way of one connection, and what differs between
//! two plans.
//!
//! The way of a connection is its pieces, message by message, each with the clock at which the cost
//! model expects it to be received, and with the operation that its cells complete last before it.
//! Two plans are compared set by set; their connections match as those of phases do, by name or by
//! ends.

use conset_fabric::messages::MessageRoutes;
use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, LinkId, SetSteps, StepId, StepSchedule};
use conset_scheduler::steps::predict_ends;
use serde::Serialize;

use crate::pairing::ConnectionPairs;
use crate::schedule_diff::ScheduleDiff;

/// Why the words of a connection arrive when they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepWhy {
    /// The set.
    pub set: String,
    /// The connection.
    pub connection: ConnectionId,
    /// Its source.
    pub source: CellId,
    /// Its target.
    pub target: CellId,
    /// Its words.
    pub words: u32,
    /// The messages with pieces of it, in the order of the plan.
    pub messages: Vec<StepHop>,
}

/// A message with a piece of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepHop {
    /// Its step.
    pub step: StepId,
    /// The cell that sends it.
    pub source: CellId,
    /// The cell that receives it.
    pub target: CellId,
    /// The words of the piece.
    pub words: u32,
    /// The words of all pieces of the message.
    pub message_words: u64,
    /// The number of pieces of the message.
    pub pieces: usize,
    /// Clocks until it has been received, as predicted.
    pub received: u64,
    /// The last message that one of its cells completes before it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<EarlierMessage>,
}

/// A message that another one follows in the list of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EarlierMessage {
    /// Its step.
    pub step: StepId,
    /// The cell that sends it.
    pub source: CellId,
    /// The cell that receives it.
    pub target: CellId,
    /// Clocks until it has been received, as predicted.
    pub received: u64,
}

/// Explains the way of a connection of a verified plan.
///
/// # Panics
/// If the set has no such connection.
pub fn why(set: &SetSteps, x: ConnectionId) -> StepWhy {
    let steps = &set.steps;
    let machine = steps.machine();
    let mut routes = MessageRoutes::new(machine);
    let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
        routes.links(source, target, links);
    };
    let ends = predict_ends(steps, machine.parameters().protocol, &mut route);
    let lists = steps.lists();
    let messages = steps.messages();
    let mut step_of = vec![StepId(0); messages.len()];
    for (step, _) in steps.iter() {
        step_of[messages.of_step(step)].fill(step);
    }
    let earlier = |row: u32| {
        let message = messages.get(index(row));
        let before = [message.source, message.target].map(|cell| {
            let list = lists.of(cell.0);
            let at = list.iter().position(|&other| other == row)?;
            at.checked_sub(1).map(|at| list[at])
        });
        let last = before.into_iter().flatten().max_by_key(|&row| ends[index(row)])?;
        let message = messages.get(index(last));
        Some(EarlierMessage {
            step: step_of[index(last)],
            source: message.source,
            target: message.target,
            received: ends[index(last)],
        })
    };
    let mut hops = Vec::new();
    for (row, message) in messages.iter().enumerate() {
        for piece in message.pieces.iter().filter(|piece| piece.connection == x) {
            hops.push(StepHop {
                step: step_of[row],
                source: message.source,
                target: message.target,
                words: piece.words,
                message_words: message.words(),
                pieces: message.pieces.len(),
                received: ends[row],
                after: earlier(to_u32(row)),
            });
        }
    }
    let connection = steps.set().get(x);
    StepWhy {
        set: steps.set().name().to_owned(),
        connection: x,
        source: connection.source,
        target: connection.target,
        words: connection.words,
        messages: hops,
    }
}

/// What differs between two schedules of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepDiff {
    /// Whether there are none.
    pub identical: bool,
    /// The differences between machines, origins and parts, and which sets both have.
    #[serde(flatten)]
    pub schedule: ScheduleDiff,
    /// The sets of both, in the order of the second.
    pub sets: Vec<StepSetDiff>,
}

/// What differs between two step plans; pairs are of the first and of the second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepSetDiff {
    /// The set.
    pub set: String,
    /// Whether connections and messages are equal.
    pub identical: bool,
    /// Steps.
    pub steps: [usize; 2],
    /// Messages.
    pub messages: [usize; 2],
    /// Words of all messages.
    pub message_words: [u64; 2],
    /// Predicted clocks, if they are stated.
    pub predicted_clocks: [Option<u64>; 2],
    /// Connections that only the first plan has.
    pub removed: usize,
    /// Connections that only the second plan has.
    pub added: usize,
    /// Connections of both that go over other cells.
    pub rerouted: usize,
    /// Connections of both that go over the same cells in other steps.
    pub moved: usize,
}

/// Compares two schedules of steps. `limit` is the length to which lists of details are truncated.
pub fn diff(a: &StepSchedule, b: &StepSchedule, limit: usize) -> StepDiff {
    let (schedule, common) = ScheduleDiff::of(a, b, limit);
    let pairs = common.into_iter().map(|(before, after)| (&a.sets()[before], &b.sets()[after]));
    let sets: Vec<StepSetDiff> = pairs.map(|(a, b)| set_diff(a, b)).collect();
    let identical = schedule.is_empty() && sets.iter().all(|set| set.identical);
    StepDiff { identical, schedule, sets }
}

fn set_diff(a: &SetSteps, b: &SetSteps) -> StepSetDiff {
    let both = [a, b];
    let messages = both.map(|set| set.steps.messages());
    let [ways_a, ways_b] = both.map(ways);
    let pairs = ConnectionPairs::of(a.steps.set(), b.steps.set());
    let (mut common, mut rerouted, mut moved) = (0, 0, 0);
    for (id, _) in a.steps.set().iter() {
        let Some(other) = pairs.in_b(id) else { continue };
        common += 1;
        let (a, b) = (&ways_a[id.index()], &ways_b[other.index()]);
        let cells = |way: &Way| way.iter().map(|hop| hop.1).collect::<Vec<_>>();
        if cells(a) != cells(b) {
            rerouted += 1;
        } else if a != b {
            moved += 1;
        }
    }
    StepSetDiff {
        set: a.steps.set().name().to_owned(),
        identical: a.steps.set() == b.steps.set() && messages[0] == messages[1],
        steps: messages.map(|messages| messages.steps()),
        messages: messages.map(|messages| messages.len()),
        message_words: messages.map(|m| m.iter().map(|message| message.words()).sum()),
        predicted_clocks: both.map(|set| set.predicted_clocks),
        removed: ways_a.len() - common,
        added: ways_b.len() - common,
        rerouted,
        moved,
    }
}

/// The messages of a connection: the step, and the cells and words of its piece.
type Way = Vec<(StepId, (CellId, CellId, u32, u32))>;

fn ways(set: &SetSteps) -> Vec<Way> {
    let mut ways = vec![Vec::new(); set.steps.set().len()];
    for (step, messages) in set.steps.iter() {
        for message in messages {
            for piece in message.pieces {
                let hop = (message.source, message.target, piece.first_word, piece.words);
                ways[piece.connection.index()].push((step, hop));
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{Connection, ConnectionSet, Machine, PartMap, Program};

    use super::*;
    use crate::steps::{StepAlgorithm, StepCompiler};

    fn compiled(algorithm: StepAlgorithm) -> StepSchedule {
        let machine = Arc::new(Machine::from_spec("hypercube:3").unwrap());
        let pairs = (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let rows = pairs.map(|(a, b)| Connection::new(CellId(a), CellId(b), 5)).collect();
        let set = ConnectionSet::new("s", rows).unwrap();
        let compiler = StepCompiler::new(&machine).algorithm(algorithm);
        compiler.compile(&set.into(), &mut |_| ()).unwrap().schedule().clone()
    }

    #[test]
    fn the_way_of_a_connection_is_followed() {
        let schedule = compiled(StepAlgorithm::Recursive);
        let set = &schedule.sets()[0];
        // x6 is from c0 to c7, over c4 and c6.
        let why = why(set, ConnectionId(6));
        let cells: Vec<(u32, u32)> =
            why.messages.iter().map(|hop| (hop.source.0, hop.target.0)).collect();
        assert_eq!(cells, [(0, 4), (4, 6), (6, 7)]);
        assert!(why.messages[0].after.is_none());
        assert!(why.messages.windows(2).all(|pair| pair[0].received < pair[1].received));
        assert!(why.messages.iter().all(|hop| (hop.pieces, hop.message_words) == (4, 20)));
        assert_eq!(Some(why.messages[2].received), set.predicted_clocks);
    }

    #[test]
    fn differences_are_counted() {
        let pairwise = StepAlgorithm::parse("pairwise").unwrap();
        let balanced = StepAlgorithm::parse("balanced").unwrap();
        let (a, b, c) =
            (compiled(pairwise), compiled(balanced), compiled(StepAlgorithm::Recursive));
        assert!(diff(&a, &a, 0).identical);
        let orders = &diff(&a, &b, 0).sets[0];
        assert!(!orders.identical && orders.rerouted == 0 && orders.moved > 0);
        let levels = &diff(&a, &c, 0).sets[0];
        // Connections between cells that differ in one bit are direct in both.
        assert_eq!((levels.messages, levels.rerouted), ([56, 24], 32));
    }

    #[test]
    fn other_parts_and_another_order_of_sets_are_differences() {
        let machine = Arc::new(Machine::from_spec("hypercube:2").unwrap());
        let set = |name: &str| {
            let rows = vec![Connection::new(CellId(0), CellId(3), 5)];
            Arc::new(ConnectionSet::new(name, rows).unwrap())
        };
        let made = |names: [&str; 2], cells: [u32; 2]| {
            let program = Program::new(names.map(set).into()).unwrap();
            let compiled = StepCompiler::new(&machine).compile(&program, &mut |_| ()).unwrap();
            let parts = PartMap::new(cells.map(CellId).into(), 0, Vec::new()).unwrap();
            compiled.schedule().clone().with_part_map(Some(parts)).unwrap()
        };
        let a = made(["s", "t"], [0, 3]);
        assert!(diff(&a, &a, 9).identical);
        let order = diff(&a, &made(["t", "s"], [0, 3]), 9);
        assert!(!order.identical && order.schedule.reordered);
        assert!(order.sets.iter().all(|set| set.identical));
        let moved = diff(&a, &made(["s", "t"], [1, 3]), 9);
        let parts = moved.schedule.parts.unwrap();
        assert!(!moved.identical && !moved.schedule.reordered && parts.moved.total == 1);
        let other = diff(&a, &made(["s", "u"], [0, 3]), 9).schedule;
        assert_eq!((other.removed, other.added), (vec!["t".to_owned()], vec!["u".to_owned()]));
    }

    #[test]
    fn named_connections_match_by_name() {
        let machine = Arc::new(Machine::from_spec("hypercube:2").unwrap());
        let made = |names: [&str; 2]| {
            let named = |name: &str, words| Connection {
                name: Some(name.into()),
                ..Connection::new(CellId(0), CellId(3), words)
            };
            let rows = names.into_iter().zip([5, 6]).map(|(name, words)| named(name, words));
            let set = ConnectionSet::new("s", rows.collect()).unwrap();
            let compiled = StepCompiler::new(&machine).compile(&set.into(), &mut |_| ()).unwrap();
            compiled.schedule().clone()
        };
        let counts = |names| {
            let diff = diff(&made(["left", "right"]), &made(names), 0);
            (diff.sets[0].removed, diff.sets[0].added)
        };
        assert_eq!(counts(["left", "right"]), (0, 0));
        assert_eq!(counts(["right", "left"]), (0, 0));
        assert_eq!(counts(["left", "other"]), (1, 1));
    }
}
