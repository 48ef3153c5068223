//! Phases whose durations are all equal: rounds, and fewer of them.
//!
//! With one duration d, first-fit puts every slot at a multiple of d: a *round*. A timetable is
//! then an edge colouring of the multigraph whose vertices are the ports and whose edges are the
//! connections, and the fewest rounds are its chromatic index. With full duplex every edge joins
//! a send port to a receive port, the graph is bipartite, and as many rounds suffice as the
//! busiest port has connections (König).
//!
//! Greedy colouring can need more. Repair takes each connection in a round beyond the bound and
//! looks for a round r free at its source and a round s free at its target. If they differ, it
//! follows the chain of connections from the target that lie alternately in r and in s, and
//! swaps the two rounds along it; then r is free at both ends. (This is Kempe's chain. In a
//! bipartite graph the chain never comes back to the source. With half duplex it may, and then
//! other pairs of rounds are tried; some connections may have to stay where they are.)
//!
//! Nothing moves to a later round than greedy's last, so the makespan never grows. Work is
//! bounded by [`REPAIR_BUDGET`] looks at a connection per phase, far above what machines with tens of
//! channels per cell need; beyond it the remaining connections stay where they are.
//!
//! Not for phases with an order: swapping rounds would break it.

use conset_ir::{Lists, PhaseTimes};

use crate::cost::Task;

/// Most looks at a connection in the repair of one phase.
pub(crate) const REPAIR_BUDGET: u64 = 1 << 26;

/// Moves routes to earlier rounds until no round lies beyond the bound, as far as that is found
/// possible. `times` must be first-fit with the one duration `duration`.
pub(crate) fn repair(tasks: &[Task], of_port: &Lists, duration: u64, times: &mut PhaseTimes) {
    if duration == 0 {
        return;
    }
    let bound = (0..of_port.rows()).map(|port| of_port.of(port).len()).max().unwrap_or(0) as u32;
    let round = times.slots.iter().map(|slot| (slot.start / duration) as u32).collect();
    let mut rounds = RoundRepair { tasks, of_port, round, bound, budget: REPAIR_BUDGET };
    for row in 0..tasks.len() as u32 {
        if rounds.round[row as usize] >= bound && rounds.budget > 0 {
            rounds.bring_forward(row);
        }
    }
    for (slot, &round) in times.slots.iter_mut().zip(&rounds.round) {
        slot.start = u64::from(round) * duration;
    }
    times.makespan = times.slots.iter().map(|slot| slot.end()).max().unwrap_or(0);
}

struct RoundRepair<'a> {
    tasks: &'a [Task],
    of_port: &'a Lists,
    round: Vec<u32>,
    bound: u32,
    budget: u64,
}

impl RoundRepair<'_> {
    /// Finds a place below the bound for a route that lies beyond it.
    fn bring_forward(&mut self, row: u32) {
        let [source, target] = self.tasks[row as usize].ports;
        let (at_source, at_target) = (self.free(source), self.free(target));
        if let Some(&common) = at_source.iter().find(|round| at_target.contains(round)) {
            self.round[row as usize] = common;
            return;
        }
        for &r in &at_source {
            for &s in &at_target {
                let Some(chain) = self.chain(source, target, r, s) else { continue };
                for &link in &chain {
                    let round = &mut self.round[link as usize];
                    *round = if *round == r { s } else { r };
                }
                self.round[row as usize] = r;
                return;
            }
        }
    }

    /// The rounds below the bound in which a port is idle.
    fn free(&mut self, port: u32) -> Vec<u32> {
        let list = self.of_port.of(port);
        self.budget = self.budget.saturating_sub(list.len() as u64 + u64::from(self.bound));
        let mut busy = vec![false; self.bound as usize];
        for &row in list {
            if let Some(flag) = busy.get_mut(self.round[row as usize] as usize) {
                *flag = true;
            }
        }
        (0..self.bound).filter(|&round| !busy[round as usize]).collect()
    }

    /// The connections from `port` that lie alternately in rounds `r` and `s`; `None` if the
    /// chain ends at `avoid` or the work is used up. `port` is idle in `s`, `avoid` in `r`.
    fn chain(&mut self, avoid: u32, port: u32, r: u32, s: u32) -> Option<Vec<u32>> {
        let mut chain = Vec::new();
        let (mut at, mut wanted, mut other) = (port, r, s);
        loop {
            let list = self.of_port.of(at);
            self.budget = self.budget.checked_sub(list.len() as u64)?;
            let Some(&row) = list.iter().find(|&&row| self.round[row as usize] == wanted) else {
                return Some(chain);
            };
            chain.push(row);
            let [a, b] = self.tasks[row as usize].ports;
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
