//! The all-to-all algorithms of the C3 paper with a barrier after every superstep.
//!
//! On the Delta each permutation of an all-to-all was a superstep of its own, and supersteps end with a
//! barrier (section 1). Step plans have no barriers: a cell that is done with a step begins the next,
//! so that permutations overlap. Here every step of a plan is executed by itself, on an idle machine,
//! and the clocks are added: what a barrier of 0 clocks would give. The order within each level is a
//! permutation a step (exclusive-or, or linear where the algorithm says so); successive steps that are
//! one permutation together, as the exchange between squares of 2-lev-sq, are one superstep.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use conset_fabric::messages::{self, MessageOptions, MessageRoutes};
use conset_ir::convert::to_u32;
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, Piece, ShapeError, StepId,
    StepMessages, Steps,
};
use conset_mesh::patterns;
use conset_scheduler::steps::{Levels, LevelsSpec};
use serde::Serialize;

use super::cm5::planner_bug;
use super::{SEED, c3_measured};
use crate::{CompileError, parallel};

/// The algorithms as permutations, and the names of [`c3_measured`].
const ALL_TO_ALL: [(&str, &str); 6] = [
    ("1-lev-perm, linear", "levels:256/ring"),
    ("1-lev-perm, exclusive-or", "levels:256/pairwise"),
    ("1-lev-perm, balanced", "levels:256/balanced"),
    ("2-lev-r,c", "levels:16x16/rows/pairwise"),
    ("2-lev-sq", "levels:16x16/tiles/s1d1,d1s1/pairwise"),
    ("logp-lev-bfly", "halves/pairwise"),
];

/// Clocks of the algorithms for a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BarrierTable {
    /// Bytes of an actual message.
    pub bytes: u32,
    /// The algorithms in the paper's order.
    pub rows: Vec<BarrierRow>,
}

/// An algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BarrierRow {
    /// Its name in the paper.
    pub algorithm: &'static str,
    /// The planner that it is an instance of.
    pub planner: &'static str,
    /// Supersteps.
    pub supersteps: usize,
    /// The sum of the clocks of the supersteps.
    pub clocks: u64,
    /// 1 for the fewest clocks; equal numbers have equal ranks.
    pub rank: u32,
}

impl BarrierTable {
    /// The rank of an algorithm.
    pub(super) fn rank(&self, name: &str) -> u32 {
        self.rows.iter().find(|row| row.algorithm == name).map_or(u32::MAX, |row| row.rank)
    }
}

/// Executes the all-to-all algorithms for messages of so many bytes.
pub(super) fn table(machine: &Arc<Machine>, bytes: u32) -> Result<BarrierTable, CompileError> {
    let words = bytes / machine.parameters().word_bytes;
    let set = Arc::new(patterns::generate(c3_measured::ALL_TO_ALL_PATTERN, machine, words)?);
    let mut rows = parallel::try_map(&ALL_TO_ALL, |&algorithm| row(machine, &set, algorithm))?;
    let clocks: Vec<u64> = rows.iter().map(|row| row.clocks).collect();
    for row in &mut rows {
        row.rank = 1 + to_u32(clocks.iter().filter(|&&other| other < row.clocks).count());
    }
    Ok(BarrierTable { bytes, rows })
}

fn row(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    (algorithm, planner): (&'static str, &'static str),
) -> Result<BarrierRow, CompileError> {
    let plan = plan(machine, set, planner).map_err(|error| planner_bug(&error))?;
    let (mut supersteps, mut clocks) = (0, 0);
    for messages in permutations(&plan) {
        let alone = alone(&plan, messages).map_err(|error| planner_bug(&error))?;
        let report = messages::run_steps(&alone, &MessageOptions::default().seed(SEED));
        let report = report.map_err(|fault| planner_bug(&fault))?;
        if !report.payload_ok {
            return Err(planner_bug(&format!("{planner}: wrong words in a superstep")));
        }
        supersteps += 1;
        clocks += report.clocks;
    }
    Ok(BarrierRow { algorithm, planner, supersteps, clocks, rank: 0 })
}

/// The messages of each superstep: as many successive steps as no cell sends or receives in twice.
fn permutations(plan: &Steps) -> Vec<Range<usize>> {
    let messages = plan.messages();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut busy = BTreeSet::new();
    for step in 0..messages.steps() {
        let rows = messages.of_step(StepId::from_index(step));
        let ends = rows.clone().map(|row| messages.get(row));
        let ends = ends.flat_map(|message| [(true, message.source), (false, message.target)]);
        let ends: Vec<(bool, CellId)> = ends.collect();
        match ranges.last_mut() {
            Some(last) if ends.iter().all(|end| !busy.contains(end)) => last.end = rows.end,
            _ => {
                busy.clear();
                ranges.push(rows);
            }
        }
        busy.extend(ends);
    }
    ranges
}

fn plan(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    planner: &str,
) -> Result<Steps, ShapeError> {
    let levels = Levels::of_spec(machine, LevelsSpec::parse(planner)?)?;
    let mut routes = MessageRoutes::new(machine);
    levels.plan(machine, set, machine.parameters().protocol, &mut |source, target, links| {
        routes.links(source, target, links);
    })
}

/// A plan of one step, in which each of these messages carries a connection of its own.
fn alone(plan: &Steps, rows: Range<usize>) -> Result<Steps, ShapeError> {
    let messages = || rows.clone().map(|row| plan.messages().get(row));
    let connections = messages().map(|message| {
        let words = u32::try_from(message.words()).unwrap_or(u32::MAX);
        Connection::new(message.source, message.target, words)
    });
    let set = ConnectionSet::new("step", connections.collect())?;
    let mut own = StepMessages::new();
    for (row, message) in messages().enumerate() {
        let piece = Piece::whole(&set, ConnectionId::from_index(row));
        own.push(message.source, message.target, &[piece])?;
    }
    own.end_step()?;
    Steps::new(plan.machine().clone(), Arc::new(set), own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supersteps_carry_the_words_of_the_plan() {
        let machine = Arc::new(Machine::from_spec("delta:4x4").unwrap());
        let set = Arc::new(patterns::generate("all-to-all", &machine, 4).unwrap());
        for (planner, supersteps, messages) in [
            // Three partners in the row, then three in the column, and four blocks for each.
            ("levels:4x4/rows/pairwise", 6, 16 * 6),
            // The exchange between squares is one permutation, of the cells that are not in place.
            ("levels:4x4/tiles/s1d1,d1s1/pairwise", 7, 16 * 6 + 12),
        ] {
            let plan = plan(&machine, &set, planner).unwrap();
            let permutations = permutations(&plan);
            assert_eq!((permutations.len(), plan.messages().len()), (supersteps, messages));
            let alone = permutations.into_iter().map(|rows| alone(&plan, rows).unwrap());
            let words: u64 = alone.map(|alone| alone.set().words()).sum();
            assert_eq!(words, plan.messages().iter().map(|message| message.words()).sum::<u64>());
        }
    }

    #[test]
    fn ranks_count_those_that_are_faster() {
        let machine = Arc::new(Machine::from_spec("delta:16x16").unwrap());
        let table = table(&machine, 16).unwrap();
        let mut sorted: Vec<_> = table.rows.iter().map(|row| (row.clocks, row.rank)).collect();
        sorted.sort_unstable();
        assert_eq!(sorted[0].1, 1);
        assert!(sorted.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{table:?}");
        assert_eq!(table.rank("2-lev-r,c"), 1, "{table:?}");
    }
}
