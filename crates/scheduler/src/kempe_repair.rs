//! Kempe-chain repair of phases whose routes all have the same duration: moves routes into earlier
//! rounds.
//!
//! If all durations are `d`, first-fit starts every slot at a multiple of `d`, a *round*. The
//! timetable is then an edge colouring of a multigraph: ports are vertices, routes are edges,
//! rounds are colours. The fewest rounds are its chromatic index. With full duplex every edge joins
//! a send port to a receive port, so the graph is bipartite, and the number of routes at the
//! busiest port is enough (König).
//!
//! Greedy colouring may need more rounds. For each route in a round beyond the bound, the repair
//! takes a round r that is free at its source and a round s that is free at its target. If they
//! differ, it follows the chain of routes from the target that are alternately in r and in s, and
//! swaps the two rounds along the chain; then r is free at both ends. (This is a Kempe chain. In a
//! bipartite graph it never returns to the source. With half duplex it may; other pairs of rounds
//! are tried then, and some routes may stay where they are.)
//!
//! No route moves to a later round than the last round of the greedy timetable, so the makespan
//! never grows. The work per phase is limited by [`REPAIR_BUDGET`], far above what machines with
//! tens of channels per cell need; routes that remain beyond the bound at that point stay there.
//!
//! Phases with precedence constraints are not repaired, because swapping rounds would violate them.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Lists, PhaseTimes};

use crate::cost::PortTask;

/// Routes that the repair of one phase may examine.
pub(crate) const REPAIR_BUDGET: u64 = 1 << 26;

/// Moves routes to earlier rounds until no round lies beyond the bound, or no further move is
/// found. `times` must be a first-fit timetable in which every duration is `duration`.
pub(crate) fn repair(tasks: &[PortTask], of_port: &Lists, duration: u64, times: &mut PhaseTimes) {
    if duration == 0 {
        return;
    }
    let bound = to_u32((0..of_port.rows()).map(|port| of_port.of(port).len()).max().unwrap_or(0));
    let round = times.slots.iter().map(|slot| to_u32(slot.start / duration)).collect();
    let mut rounds = RoundRepair { tasks, of_port, round, bound, budget: REPAIR_BUDGET };
    for row in 0..to_u32(tasks.len()) {
        if rounds.round[index(row)] >= bound && rounds.budget > 0 {
            rounds.bring_forward(row);
        }
    }
    for (slot, &round) in times.slots.iter_mut().zip(&rounds.round) {
        slot.start = u64::from(round) * duration;
    }
    times.makespan = times.slots.iter().map(|slot| slot.end()).max().unwrap_or(0);
}

struct RoundRepair<'a> {
    tasks: &'a [PortTask],
    of_port: &'a Lists,
    round: Vec<u32>,
    bound: u32,
    budget: u64,
}

impl RoundRepair<'_> {
    /// Finds a round below the bound for a route beyond it.
    fn bring_forward(&mut self, row: u32) {
        let [source, target] = self.tasks[index(row)].ports;
        let (at_source, at_target) = (self.free(source), self.free(target));
        if let Some(&common) = at_source.iter().find(|round| at_target.contains(round)) {
            self.round[index(row)] = common;
            return;
        }
        for &r in &at_source {
            for &s in &at_target {
                let Some(chain) = self.chain(source, target, r, s) else { continue };
                for &link in &chain {
                    let round = &mut self.round[index(link)];
                    *round = if *round == r { s } else { r };
                }
                self.round[index(row)] = r;
                return;
            }
        }
    }

    /// The rounds below the bound in which a port is idle.
    fn free(&mut self, port: u32) -> Vec<u32> {
        let list = self.of_port.of(port);
        self.budget = self.budget.saturating_sub(to_u64(list.len()) + u64::from(self.bound));
        let mut busy = vec![false; index(self.bound)];
        for &row in list {
            if let Some(flag) = busy.get_mut(index(self.round[index(row)])) {
                *flag = true;
            }
        }
        (0..self.bound).filter(|&round| !busy[index(round)]).collect()
    }

    /// The routes from `port` that are alternately in rounds `r` and `s`; `None` if the chain ends
    /// at `avoid` or the budget is exhausted. `port` is idle in `s`, `avoid` in `r`.
    fn chain(&mut self, avoid: u32, port: u32, r: u32, s: u32) -> Option<Vec<u32>> {
        let mut chain = Vec::new();
        let (mut at, mut wanted, mut other) = (port, r, s);
        loop {
            let list = self.of_port.of(at);
            self.budget = self.budget.checked_sub(to_u64(list.len()))?;
            let Some(&row) = list.iter().find(|&&row| self.round[index(row)] == wanted) else {
                return Some(chain);
            };
            chain.push(row);
            let [a, b] = self.tasks[index(row)].ports;
            if a == b {
                return Some(chain);
            }
            at = if a == at { b } else { a };
            if at == avoid {
                return None;
            }
            std::mem::swap(&mut wanted, &mut other);
        }
    }
}
