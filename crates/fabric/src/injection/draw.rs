//! Random faults, for tests of many plans.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ConnectionId, Machine, PhaseId};

use super::{FaultPlan, FaultyPart, PlannedFault, SwitchEffect, WordEffect};
use crate::payload::synthetic_word;

/// How far a run without faults goes, so that most of the faults that are drawn act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultExtent {
    /// Clocks.
    pub clocks: u64,
    /// Words over the busiest link.
    pub words: u64,
    /// Context switches. Without any, no fault of a switch is drawn.
    pub switches: u64,
}

/// Numbers that depend on a seed.
struct Random {
    seed: u64,
    drawn: u32,
}

impl Random {
    /// A number below `limit`, and 0 if that is 0.
    fn below(&mut self, limit: u64) -> u64 {
        self.drawn += 1;
        synthetic_word(self.seed, ConnectionId(self.drawn), self.drawn) % limit.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(index(to_u32(self.below(to_u64(all.len()))))).copied()
    }
}

impl FaultPlan {
    /// Draws a plan of `faults` faults for a machine. The same seed gives the same plan. The plan is empty if the
    /// machine has no cell with an agent.
    pub fn draw(machine: &Machine, extent: &FaultExtent, seed: u64, faults: usize) -> Self {
        let mut random = Random { seed, drawn: 0 };
        let drawn = (0..faults).filter_map(|_| draw(machine, extent, &mut random));
        Self { faults: drawn.collect() }
    }
}

fn draw(machine: &Machine, extent: &FaultExtent, random: &mut Random) -> Option<PlannedFault> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let cell = random.one_of(&cells)?;
    let links: Vec<(CellId, CellId)> = machine
        .cells()
        .flat_map(|from| machine.outgoing(from))
        .map(|&id| (machine.link(id).source, machine.link(id).target))
        .collect();
    // A machine of one cell has no links. Messages need no context switches.
    let kinds = if links.is_empty() { 8 } else { 18 };
    let without_switches = extent.switches == 0;
    let kind = random.below(if without_switches { kinds - 5 } else { kinds });
    let kind = if without_switches && kind > 2 { kind + 5 } else { kind };
    let (source, target) = random.one_of(&links).unwrap_or((cell, cell));
    let from = random.below(extent.clocks);
    let clocks = 1 + random.below(extent.clocks);
    let switch = random.below(extent.switches);
    let switched = |effect| PlannedFault::Switch { cell, effect, switch };
    Some(match kind {
        0 => PlannedFault::Stop { part: FaultyPart::Cell(cell), from, clocks: None },
        1 => PlannedFault::Stop { part: FaultyPart::Cell(cell), from, clocks: Some(clocks) },
        2 => PlannedFault::Slow { cell, clocks: 1 + random.below(20), from },
        3 => switched(SwitchEffect::Miss),
        4 => switched(SwitchEffect::Late(clocks)),
        5 => switched(SwitchEffect::Keep),
        6 | 7 => {
            let phase = to_u32(random.below(extent.switches.min(1 << 16)));
            switched(SwitchEffect::Load(PhaseId(phase)))
        }
        8 => PlannedFault::Stop { part: FaultyPart::Link(source, target), from, clocks: None },
        9 => {
            let part = FaultyPart::Link(source, target);
            PlannedFault::Stop { part, from, clocks: Some(clocks) }
        }
        kind => {
            let effects =
                [WordEffect::Drop, WordEffect::Duplicate, WordEffect::Corrupt, WordEffect::Reorder];
            let effect = effects[index(to_u32(kind % 4))];
            let (word, repeats) = (random.below(extent.words), kind >= 14);
            PlannedFault::Words { source, target, effect, word, repeats }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The kinds of many plans, whose faults have to be within the extent.
    fn kinds(spec: &str, switches: u64) -> BTreeSet<&'static str> {
        let machine = Machine::from_spec(spec).unwrap();
        let extent = FaultExtent { clocks: 10, words: 3, switches };
        let plans = (0..400).map(|seed| FaultPlan::draw(&machine, &extent, seed, 2).faults);
        let faults = plans.inspect(|faults| assert_eq!(faults.len(), 2)).flatten();
        let within = |fault: &PlannedFault| match *fault {
            PlannedFault::Stop { from, clocks, .. } => {
                from < 10 && clocks.is_none_or(|clocks| (1..=10).contains(&clocks))
            }
            PlannedFault::Slow { clocks, from, .. } => from < 10 && (1..=20).contains(&clocks),
            PlannedFault::Words { word, .. } => word < 3,
            PlannedFault::Switch { switch, .. } => switch < switches,
        };
        faults.inspect(|fault| assert!(within(fault), "{fault}")).map(|f| f.kind()).collect()
    }

    /// Soaks with random faults are reproducible only if these plans stay.
    #[test]
    fn plans_of_a_seed_never_change() {
        let machine = Machine::from_spec("ring:3").unwrap();
        let extent = FaultExtent { clocks: 100, words: 40, switches: 9 };
        let plan = FaultPlan::draw(&machine, &extent, 1, 12).to_string();
        let expected = [
            "link c2 -> c1 duplicates word 21",
            "link c0 -> c1 duplicates words from 1",
            "link c1 -> c2 dead at 3",
            "link c2 -> c1 reorders word 9",
            "link c2 -> c0 dead at 76",
            "link c0 -> c2 stalled 6 at 55",
            "cell c0 loads p4 at switch 0",
            "link c0 -> c1 duplicates words from 1",
            "cell c0 loads p6 at switch 1",
            "link c1 -> c0 duplicates words from 25",
            "cell c0 loads p4 at switch 6",
            "link c1 -> c0 drops words from 11",
        ];
        assert_eq!(plan.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_kind_is_drawn_that_the_machine_and_the_run_have() {
        let cells = ["cell dead", "cell slow", "cell stalled"];
        let switches =
            ["cell late at a switch", "cell misses a switch", "stale context", "wrong context"];
        assert_eq!(kinds("ring:1", 0), cells.into());
        assert_eq!(kinds("ring:1", 2), cells.into_iter().chain(switches).collect());
        // Two faults of a link, and four effects on one word or on all.
        let (with, without) = (kinds("ring:3", 2), kinds("ring:3", 0));
        assert_eq!((with.len(), without.len()), (3 + 4 + 2 + 8, 3 + 2 + 8));
        assert!(without.is_subset(&with) && switches.iter().all(|kind| !without.contains(kind)));
    }
}
