//! The claims of a schedule, held against the schedule itself.
//!
//! A lower bound that the schedule beats is no bound: `bounds.phases` may not exceed the phases it
//! has, nor `bounds.clocks` the clocks predicted for it. And a prediction may not promise what no
//! machine of this description can do: every phase costs a switch and at least the words of its
//! busiest agent times `access_clocks_per_word` (sends and receives added up with half duplex, a
//! connection from a cell to itself counted once; the busier direction with full duplex).
//!
//! Predictions come out of floating point. At 10^12 clocks it is a clock or two off, so a prediction
//! is given a part in 2^30 of itself, which is nothing below 10^9 clocks.
//!
//! Whether a bound is as good as it could be, and whether the prediction is what the machine will
//! take, is not checked: the fabric measures the second.

use conset_ir::{CellId, Duplex, Machine, PhaseRoutes, SetSchedule};

use crate::rejection::{Findings, Place, Rule};

/// Checks the claims of a set's schedule whose timetable has been checked and found right.
pub(crate) fn check(schedule: &SetSchedule, findings: &mut Findings) {
    let routing = schedule.timetable.routing();
    let phases = routing.phases().len() as u64;
    let bounds = &schedule.bounds;
    if u64::from(bounds.phases) > phases {
        findings.add(Rule::Claim, Place::set(), || {
            format!("at least {} phases are claimed to be needed; it has {phases}", bounds.phases)
        });
    }
    let predicted = schedule.predicted_clocks;
    let predicted_at_most = predicted.saturating_add(predicted >> 30);
    if bounds.clocks > predicted_at_most {
        findings.add(Rule::Claim, Place::set(), || {
            let bound = bounds.clocks;
            format!("at least {bound} clocks are claimed to be needed; {predicted} are predicted")
        });
    }
    let least = least_clocks(routing.machine(), routing.phases());
    if predicted_at_most < least {
        findings.add(Rule::Claim, Place::set(), || {
            format!(
                "{predicted} clocks are predicted; switches and the busiest agents take {least}"
            )
        });
    }
}

/// Switches, and in each phase the words of the busiest agent. O(cells + routes).
fn least_clocks(machine: &Machine, phases: &[PhaseRoutes]) -> u64 {
    let parameters = machine.parameters();
    let access = u64::from(parameters.access_clocks_per_word);
    let mut loads = AgentLoads::new(machine);
    phases
        .iter()
        .map(|routes| {
            parameters.switch_clocks().saturating_add(access.saturating_mul(loads.most(routes)))
        })
        .fold(0, u64::saturating_add)
}

/// Words that each agent sends and receives in a phase; the memory is kept from phase to phase.
struct AgentLoads {
    half_duplex: bool,
    words: Vec<[u64; 2]>,
}

impl AgentLoads {
    fn new(machine: &Machine) -> Self {
        Self {
            half_duplex: machine.parameters().duplex == Duplex::Half,
            words: vec![[0; 2]; machine.cell_count()],
        }
    }

    fn most(&mut self, routes: &PhaseRoutes) -> u64 {
        let half = self.half_duplex;
        let mut most = 0;
        for route in routes.iter() {
            let ends = (route.cells[0], route.cells[route.cells.len() - 1]);
            most = most.max(self.add(ends.0, 0, route.words));
            if !(half && ends.0 == ends.1) {
                most = most.max(self.add(ends.1, usize::from(!half), route.words));
            }
        }
        for route in routes.iter() {
            for cell in [route.cells[0], route.cells[route.cells.len() - 1]] {
                self.words[cell.index()] = [0; 2];
            }
        }
        most
    }

    fn add(&mut self, agent: CellId, direction: usize, words: u32) -> u64 {
        let load = &mut self.words[agent.index()][direction];
        *load += u64::from(words);
        *load
    }
}

#[cfg(test)]
mod tests {
    use conset_ir::{ChannelId, ConnectionId, LinkId, Parameters};

    use super::*;

    /// The least clocks of two phases with the same routes; a switch costs nothing, a word one.
    fn least(duplex: Duplex, ends: &[(u32, u32, u32)]) -> u64 {
        let mut parameters =
            Parameters { duplex, access_clocks_per_word: 1, ..Parameters::iwarp() };
        (parameters.t_sync, parameters.t_phase) = (0, 0);
        let machine = Machine::from_spec("mesh:3").unwrap().with_parameters(parameters).unwrap();
        let mut routes = PhaseRoutes::new();
        for &(from, to, words) in ends {
            // Only the ends matter here.
            let cells = [CellId(from), CellId(to)];
            let cells = if from == to { &cells[..1] } else { &cells[..] };
            let links = vec![LinkId(0); cells.len() - 1];
            let channels = vec![ChannelId(0); cells.len()];
            routes.push(ConnectionId(0), words, cells, &links, &channels).unwrap();
        }
        least_clocks(&machine, &[routes.clone(), routes])
    }

    #[test]
    fn the_busiest_agent_counts() {
        let ends = [(0, 1, 10), (2, 1, 20), (1, 0, 5), (1, 1, 3), (2, 2, 1)];
        assert_eq!(least(Duplex::Full, &ends), 2 * (10 + 20 + 3));
        assert_eq!(least(Duplex::Half, &ends), 2 * (10 + 20 + 5 + 3));
        assert_eq!(least(Duplex::Full, &[(0, 1, 10), (0, 2, 20), (1, 0, 5)]), 2 * 30);
        assert_eq!(least(Duplex::Half, &[(0, 1, 10), (0, 2, 20), (1, 0, 5)]), 2 * 35);
        assert_eq!(least(Duplex::Half, &[(1, 1, 7)]), 2 * 7);
        assert_eq!(least(Duplex::Half, &[]), 0);
    }
}
