//! Levels: which pieces travel together, from cell to cell.
//!
//! The places of the pieces before and after each level are those of a route (module `route`). All
//! pieces that go between the same two cells in a level are one message. Messages of a level are
//! arranged in steps by an order (module `order`).

use std::sync::Arc;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Machine, Piece, ShapeError, StepMessages, Steps,
};

use super::numbering::Numbering;
use super::order::StepOrder;
use super::route::{LevelDigits, NumberedRoute, PieceRoute};
use super::spec::LevelsSpec;
use super::{MessageCosts, MessageRoute, Protocol};

/// A planner: the route of pieces in levels, the numbering of the cells and the order within a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    spec: LevelsSpec,
    cells: Arc<[CellId]>,
}

impl Levels {
    /// The planner of a specification for a machine.
    ///
    /// # Errors
    /// A route or a numbering that does not fit the machine.
    pub fn of_spec(machine: &Machine, spec: LevelsSpec) -> Result<Self, ShapeError> {
        let first = match &spec.route {
            PieceRoute::Digits { radices, .. } => radices.first().copied().unwrap_or(1),
            PieceRoute::Halves(_) | PieceRoute::Nodes if spec.numbering != Numbering::Given => {
                let message = "halves and nodes number the cells themselves; expected `given`";
                return Err(ShapeError::new("numbering", message));
            }
            PieceRoute::Halves(_) | PieceRoute::Nodes => 1,
        };
        let cells = spec.numbering.cells(machine, first)?;
        Self::checked(spec, cells)
    }

    /// Levels of the given radices over the live cells of a machine in the order of their ids.
    ///
    /// # Errors
    /// Radices below 2, or whose product is less than the number of cells or above 2^32.
    pub fn new(machine: &Machine, radices: &[u32], order: StepOrder) -> Result<Self, ShapeError> {
        Self::numbered(machine.endpoints().collect(), radices, order)
    }

    /// Levels over cells with a numbering: cell `cells[i]` has number `i`.
    ///
    /// # Errors
    /// As [`Levels::new`].
    pub fn numbered(
        cells: Arc<[CellId]>,
        radices: &[u32],
        order: StepOrder,
    ) -> Result<Self, ShapeError> {
        Self::checked(LevelsSpec::digits(radices, order)?, cells)
    }

    fn checked(spec: LevelsSpec, cells: Arc<[CellId]>) -> Result<Self, ShapeError> {
        spec.route.check()?;
        match spec.route.cells() {
            Some(product) if product < to_u64(cells.len()) => Err(ShapeError::new(
                "radices",
                format!("a product of {product} for {} cells, expected no less", cells.len()),
            )),
            _ => Ok(Self { spec, cells }),
        }
    }

    /// One level, in which every cell sends to every other one directly.
    pub fn direct(machine: &Machine, order: StepOrder) -> Self {
        let cells: Arc<[CellId]> = machine.endpoints().collect();
        let radices = vec![to_u32(cells.len().max(2))];
        let route = PieceRoute::Digits { radices, places: Vec::new() };
        Self { spec: LevelsSpec { route, ..LevelsSpec::new(order) }, cells }
    }

    /// What the planner was made of.
    pub fn spec(&self) -> &LevelsSpec {
        &self.spec
    }

    /// Plans a set whose connections end at the numbered cells. `route` is used by orders that price
    /// links.
    ///
    /// # Errors
    /// An end that has no number, or more messages than the limits.
    pub fn plan(
        &self,
        machine: &Arc<Machine>,
        set: &Arc<ConnectionSet>,
        protocol: Protocol,
        route: &mut MessageRoute<'_>,
    ) -> Result<Steps, ShapeError> {
        const NONE: u32 = u32::MAX;
        let LevelsSpec { route: places, inverse, order, .. } = &self.spec;
        let (places, cells) = NumberedRoute::new(places, *inverse, machine, &self.cells, set);
        let mut numbers = vec![NONE; machine.cell_count()];
        for (number, cell) in cells.iter().enumerate() {
            numbers[cell.index()] = to_u32(number);
        }
        let number = |cell: CellId| numbers.get(cell.index()).copied().filter(|&n| n != NONE);
        let mut travels = Vec::with_capacity(set.len());
        for (id, connection) in set.iter() {
            let (Some(source), Some(target)) =
                (number(connection.source), number(connection.target))
            else {
                return Err(ShapeError::new(
                    format!("connections[{}]", id.0),
                    "an end of the connection is not one of the numbered cells",
                ));
            };
            if source != target {
                travels.push(Travel { source, target, connection: id });
            }
        }
        let ranks = ranks(set);
        let last_rank = ranks.iter().copied().max().unwrap_or(0);
        let costs = MessageCosts::new(machine, protocol);
        let mut messages = StepMessages::new();
        for rank in 0..=last_rank {
            let of_rank: Vec<Travel> = match ranks.is_empty() {
                true => std::mem::take(&mut travels),
                false => {
                    let of_rank = travels.iter().filter(|t| ranks[t.connection.index()] == rank);
                    of_rank.copied().collect()
                }
            };
            for number in 0..places.levels() {
                let level = Level::new(set, &of_rank, &places, number);
                let arranged = order.arrange(&level, &cells, &costs, route);
                level.push(set, &cells, &arranged, &mut messages)?;
            }
        }
        Steps::new(machine.clone(), set.clone(), messages)
    }
}

/// A connection between two different cells, by their numbers.
#[derive(Clone, Copy, Debug)]
struct Travel {
    source: u32,
    target: u32,
    connection: ConnectionId,
}

/// A message of a level, between numbers of cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelMessage {
    pub(super) source: u32,
    pub(super) target: u32,
    pub(super) words: u64,
}

/// The messages of a level by source, then target.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// The number of cells.
    pub(super) cells: u32,
    pub(super) digits: LevelDigits,
    pub(super) messages: Vec<LevelMessage>,
    /// The connections of all messages, and the end of those of each.
    connections: Vec<ConnectionId>,
    ends: Vec<u32>,
}

impl Level {
    /// The messages of level `number` of a route.
    fn new(set: &ConnectionSet, travels: &[Travel], route: &NumberedRoute, number: usize) -> Self {
        let place = |t: &Travel, number: usize| route.place(number, t.source, t.target);
        let mut moves: Vec<(u32, u32, ConnectionId)> = travels
            .iter()
            .map(|travel| (place(travel, number), place(travel, number + 1), travel.connection))
            .filter(|step| step.0 != step.1)
            .collect();
        moves.sort_unstable();
        let digits = route.digits(number);
        let mut level = Self {
            cells: to_u32(digits.of.len()),
            digits,
            messages: Vec::new(),
            connections: Vec::with_capacity(moves.len()),
            ends: Vec::new(),
        };
        for same in moves.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let words = same.iter().map(|step| u64::from(set.get(step.2).words)).sum();
            level.messages.push(LevelMessage { source: same[0].0, target: same[0].1, words });
            level.connections.extend(same.iter().map(|step| step.2));
            level.ends.push(to_u32(level.connections.len()));
        }
        level
    }

    /// The digit of a cell in this level.
    pub(super) fn digit(&self, number: u32) -> u64 {
        self.digits.of[index(number)].into()
    }

    /// One more than the greatest digit that a cell can have.
    pub(super) fn radix(&self) -> u64 {
        self.digits.radix
    }

    /// The message from one cell to another, if there is one.
    pub(super) fn find(&self, source: u32, target: u32) -> Option<u32> {
        let found = self.messages.binary_search_by_key(&(source, target), |m| (m.source, m.target));
        found.ok().map(to_u32)
    }

    /// Appends the messages, given by step and number in the order of the plan.
    fn push(
        &self,
        set: &ConnectionSet,
        cells: &[CellId],
        arranged: &[(u32, u32)],
        out: &mut StepMessages,
    ) -> Result<(), ShapeError> {
        let mut pieces = Vec::new();
        for step in arranged.chunk_by(|a, b| a.0 == b.0) {
            for &(_, row) in step {
                let message = self.messages[index(row)];
                let start = if row == 0 { 0 } else { index(self.ends[index(row) - 1]) };
                let connections = &self.connections[start..index(self.ends[index(row)])];
                pieces.clear();
                pieces.extend(connections.iter().map(|&id| Piece::whole(set, id)));
                let (source, target) = (cells[index(message.source)], cells[index(message.target)]);
                out.push(source, target, &pieces)?;
            }
            out.end_step()?;
        }
        Ok(())
    }
}

/// For each connection, the length of the longest chain of connections ordered before it; no rows if
/// the set has no order. Kahn's algorithm.
fn ranks(set: &ConnectionSet) -> Vec<u32> {
    let order = set.order();
    if order.is_empty() {
        return Vec::new();
    }
    let mut waits = vec![0u32; set.len()];
    order.iter().for_each(|pair| waits[pair.1.index()] += 1);
    let mut ranks = vec![0u32; set.len()];
    let mut ready: Vec<usize> = (0..set.len()).filter(|&x| waits[x] == 0).collect();
    while let Some(x) = ready.pop() {
        let from = order.partition_point(|pair| pair.0.index() < x);
        for pair in order[from..].iter().take_while(|pair| pair.0.index() == x) {
            let after = pair.1.index();
            ranks[after] = ranks[after].max(ranks[x] + 1);
            waits[after] -= 1;
            if waits[after] == 0 {
                ready.push(after);
            }
        }
    }
    ranks
}

/// Radices for `cells` cells, in order of the number of levels: all products of at most `levels`
/// factors that give the number of cells, then as near to equal as possible, then of twos.
pub fn factorisations(cells: u32, levels: usize) -> Vec<Vec<u32>> {
    fn extend(
        divisors: &[u32],
        rest: u32,
        left: usize,
        head: &mut Vec<u32>,
        found: &mut Vec<Vec<u32>>,
    ) {
        if rest == 1 && !head.is_empty() {
            found.push(head.clone());
        }
        if left == 0 {
            return;
        }
        for &factor in divisors.iter().filter(|&&factor| rest.is_multiple_of(factor)) {
            head.push(factor);
            extend(divisors, rest / factor, left - 1, head, found);
            head.pop();
        }
    }
    let cells = cells.max(2);
    let mut found = Vec::new();
    let divisors: Vec<u32> = (2..=cells).filter(|&factor| cells.is_multiple_of(factor)).collect();
    extend(&divisors, cells, levels, &mut Vec::new(), &mut found);
    for levels in 2..=levels {
        let root = (2..).find(|&root: &u32| power(root, levels) >= cells.into()).unwrap_or(cells);
        let mut radices = vec![root; levels - 1];
        let rest = u64::from(cells).div_ceil(power(root, levels - 1));
        // With a rest of 1, fewer levels of the same radix are enough.
        if rest > 1 {
            radices.push(to_u32(rest));
            found.push(radices);
        }
    }
    found.push(vec![2; index(cells.next_power_of_two().ilog2())]);
    found.sort_by_key(Vec::len);
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|radices| seen.insert(radices.clone()));
    found
}

fn power(base: u32, exponent: usize) -> u64 {
    (0..exponent).fold(1u64, |product, _| product.saturating_mul(base.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_cells_has_radices() {
        assert_eq!(
            factorisations(8, 3),
            [vec![8], vec![2, 4], vec![4, 2], vec![3, 3], vec![2, 2, 2]]
        );
        for cells in 1..200 {
            for radices in factorisations(cells, 4) {
                let product: u64 = radices.iter().map(|&r| u64::from(r)).product();
                assert!(product >= cells.into() && radices.iter().all(|&r| r >= 2), "{radices:?}");
            }
        }
    }
}
