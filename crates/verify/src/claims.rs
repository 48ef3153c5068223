//! The claims of a schedule: what it says of itself is believed as far as it is proved here.
//!
//! # Lower bounds
//!
//! `bounds.phases` and `bounds.clocks` say that no schedule is better. Each is proved anew, from
//! its witness ([`Witness`]) if the schedule has one, else from what can be counted without
//! (`loads`: agents, ends, hops, dimension cuts; `chains`: the longest chain). What is claimed
//! beyond is refused. A witness is one of the kind that `by` names, and it alone has to do:
//! a bound that is true for another reason is still told with a false one.
//!
//! A bound of clocks is the switches of the phases that are needed, and a load that is only divided
//! among phases. A bound may not be above the schedule's own phases or prediction either, which
//! follows from a proof, and is said in fewer words.
//!
//! # The prediction
//!
//! What a machine of this description takes for the phases as they stand is
//!
//! * no less than a switch a phase, and in each phase the busiest agent (words times
//!   `access_clocks_per_word`, and the stream set-ups: with several streams at a time these can
//!   overlap, and count on their own) and the busiest link (words times `link_clocks_per_word`);
//! * no more than a switch a phase, and in each phase its makespan or, where that is more, all its
//!   routes one after the other: set-up, words at the pace of agents or links, whichever are
//!   slower, and twice the way of the last word (in a set with an order the model waits for it at
//!   both ends); both together where agents keep starts. Streams that share get fair shares of
//!   what they share, so at any moment all of them together go on as fast as one of them alone.
//!
//! A prediction outside of that is refused. Predictions come out of floating point: at 10^12
//! clocks one is a clock or two off, so it is given a part in 2^30 of itself, which is nothing below
//! 10^9 clocks, and a clock a phase above.
//!
//! # What is not checked
//!
//! Whether a bound is as good as it could be, and the prediction within these limits: the fabric
//! measures it.

mod chains;
mod distances;
mod loads;

use conset_ir::{Binding, Machine, PhaseRoutes, PhaseTimes, SetSchedule, Timetable, Witness};

use crate::rejection::{Findings, Place, Rule};

use chains::Chains;
use distances::Distances;
use loads::{Agents, Loads};

/// Checks the claims of a set's schedule whose timetable has been checked and found right.
pub(crate) fn check(schedule: &SetSchedule, findings: &mut Findings) {
    check_bounds(schedule, findings);
    check_prediction(schedule, findings);
}

fn check_bounds(schedule: &SetSchedule, findings: &mut Findings) {
    let routing = schedule.timetable.routing();
    let (bounds, proof) = (&schedule.bounds, &schedule.proof);
    let phases = routing.phases().len() as u64;
    let mut refuse = |message: String| findings.add(Rule::Claim, Place::set(), || message);
    let claimed = u64::from(bounds.phases);
    if claimed > phases {
        refuse(format!("at least {claimed} phases are claimed to be needed; it has {phases}"));
    }
    let mut prover = Prover::new(routing.machine(), routing.set());
    let phases = prover.phases(claimed, bounds.phases_by, proof.phases.as_ref());
    match &phases {
        Ok(proved) if *proved >= u128::from(claimed) => {}
        Ok(proved) => refuse(format!(
            "at least {claimed} phases are claimed to be needed by {}; {} proves {proved}",
            bounds.phases_by,
            source(proof.phases.as_ref()),
        )),
        Err(why) => refuse(format!("the witness of the bound of phases is wrong: {why}")),
    }
    let predicted = at_most(schedule.predicted_clocks);
    if bounds.clocks > predicted {
        refuse(format!(
            "at least {} clocks are claimed to be needed; {} are predicted",
            bounds.clocks, schedule.predicted_clocks
        ));
    }
    let claimed = u128::from(bounds.clocks);
    let phases = phases.unwrap_or(0);
    match prover.clocks(claimed, phases, bounds.clocks_by, proof.clocks.as_ref()) {
        Ok(proved) if proved >= claimed => {}
        Ok(proved) => refuse(format!(
            "at least {claimed} clocks are claimed to be needed by {}; {} proves {proved}",
            bounds.clocks_by,
            source(proof.clocks.as_ref()),
        )),
        Err(why) => refuse(format!("the witness of the bound of clocks is wrong: {why}")),
    }
}

fn source(witness: Option<&Witness>) -> &'static str {
    if witness.is_some() { "its witness" } else { "what can be counted without a witness" }
}

/// A prediction with what rounding may have cost it.
fn at_most(predicted: u64) -> u64 {
    predicted.saturating_add(predicted >> 30)
}

fn check_prediction(schedule: &SetSchedule, findings: &mut Findings) {
    let predicted = schedule.predicted_clocks;
    let (least, most) = limits_of_prediction(&schedule.timetable);
    if u128::from(at_most(predicted)) < least {
        findings.add(Rule::Claim, Place::set(), || {
            format!(
                "{predicted} clocks are predicted; switches, the busiest agents and the busiest \
                 links take {least}"
            )
        });
    }
    if u128::from(predicted) > most.saturating_add(most >> 30) {
        findings.add(Rule::Claim, Place::set(), || {
            format!("{predicted} clocks are predicted; one route after the other takes {most}")
        });
    }
}

/// The least and the most that the phases of a timetable can take. O(cells + links + hops).
fn limits_of_prediction(timetable: &Timetable) -> (u128, u128) {
    let routing = timetable.routing();
    let mut busiest = Busiest::new(routing.machine());
    let timed = routing.machine().parameters().has_timed_starts();
    let switch = u128::from(routing.machine().parameters().switch_clocks());
    let phases = routing.phases().iter().zip(timetable.phases());
    phases.fold((0, 0), |(least, most), (routes, times)| {
        let (phase_least, phase_most) = (busiest.of(routes), one_by_one(routing.machine(), routes));
        // Agents that keep starts may idle up to the last of them.
        let phase_most = match timed {
            true => phase_most + planned(times),
            false => phase_most.max(planned(times)),
        };
        (least + switch + phase_least, most + switch + phase_most + 1)
    })
}

fn planned(times: &PhaseTimes) -> u128 {
    u128::from(times.makespan)
}

/// Clocks of all routes of a phase, one after the other.
fn one_by_one(machine: &Machine, routes: &PhaseRoutes) -> u128 {
    let parameters = machine.parameters();
    let link = u128::from(parameters.link_clocks_per_word);
    let access = u128::from(parameters.access_clocks_per_word);
    let of = |route: conset_ir::RouteRef<'_>| {
        let hops = route.hops() as u128;
        // An agent that sends to itself may have to take turns with itself, set-ups included.
        let (turns, pace) = if hops == 0 { (2, access) } else { (1, access.max(link)) };
        turns * (u128::from(parameters.stream_setup) + u128::from(route.words) * pace)
            + 2 * (2 * access + hops * link)
    };
    routes.iter().map(of).sum()
}

/// The busiest agent and the busiest link of a phase; the memory is kept from phase to phase.
struct Busiest<'a> {
    agents: Agents<'a>,
    link_clocks: u128,
    link_words: Vec<u64>,
}

impl<'a> Busiest<'a> {
    fn new(machine: &'a Machine) -> Self {
        Self {
            agents: Agents::new(machine),
            link_clocks: u128::from(machine.parameters().link_clocks_per_word),
            link_words: vec![0; machine.link_count()],
        }
    }

    fn of(&mut self, routes: &PhaseRoutes) -> u128 {
        let (mut most, mut words) = (0, 0);
        for route in routes.iter() {
            let [source, target] = [route.cells[0], route.cells[route.cells.len() - 1]];
            self.agents.add(source, target, route.words);
            for link in route.links() {
                let load = &mut self.link_words[link.index()];
                *load += u64::from(route.words);
                words = words.max(*load);
            }
        }
        for route in routes.iter() {
            for cell in [route.cells[0], route.cells[route.cells.len() - 1]] {
                most = most.max(self.agents.clocks(cell, true));
            }
        }
        for route in routes.iter() {
            self.agents.clear(route.cells[0]);
            self.agents.clear(route.cells[route.cells.len() - 1]);
            route.links().iter().for_each(|link| self.link_words[link.index()] = 0);
        }
        most.max(u128::from(words) * self.link_clocks)
    }
}

/// Proves lower bounds of a set on a machine.
struct Prover<'a> {
    machine: &'a Machine,
    set: &'a conset_ir::ConnectionSet,
    loads: Loads<'a>,
    distances: Distances<'a>,
}

impl<'a> Prover<'a> {
    fn new(machine: &'a Machine, set: &'a conset_ir::ConnectionSet) -> Self {
        let (loads, distances) = (Loads::new(machine), Distances::new(machine, set));
        Self { machine, set, loads, distances }
    }

    /// How many phases are proved to be needed; without a witness, work ends where it is what is
    /// claimed.
    fn phases(
        &mut self,
        claimed: u64,
        by: Binding,
        witness: Option<&Witness>,
    ) -> Result<u128, String> {
        let Some(witness) = witness else {
            let proved = u128::from(self.loads.most_ends(self.set));
            return Ok(match proved >= u128::from(claimed) {
                true => proved,
                false => proved.max(self.channel_total()),
            });
        };
        match (by, witness) {
            (Binding::Endpoints | Binding::Nothing, Witness::Cell(cell)) => {
                self.loads.ends_of(self.set, *cell).map(u128::from)
            }
            (Binding::ChannelTotal | Binding::Nothing, Witness::Hops) => Ok(self.channel_total()),
            (Binding::ChannelFlow | Binding::Nothing, Witness::CellPrices(prices)) => {
                let travelled = self.distances.by_cells(prices)?;
                let channels = u128::from(self.machine.parameters().channels_per_cell);
                Ok(share(Some(travelled), self.loads.cells_worth(prices) * channels))
            }
            _ => Err(mismatch(by, witness)),
        }
    }

    /// How many clocks are proved to be needed, where `phases` are proved already.
    fn clocks(
        &mut self,
        claimed: u128,
        phases: u128,
        by: Binding,
        witness: Option<&Witness>,
    ) -> Result<u128, String> {
        let switch = u128::from(self.machine.parameters().switch_clocks());
        let load = match witness {
            Some(witness) => self.load(by, witness)?,
            None => self.counted_load(claimed.saturating_sub(phases * switch)),
        };
        if phases * switch + load >= claimed {
            return Ok(phases * switch + load);
        }
        // More phases may be needed than somebody claims.
        let ends = u128::from(self.loads.most_ends(self.set));
        Ok(phases.max(ends).max(self.channel_total()) * switch + load)
    }

    fn load(&mut self, by: Binding, witness: &Witness) -> Result<u128, String> {
        use Binding as B;
        match (by, witness) {
            (B::AgentLoad | B::Nothing, Witness::Cell(cell)) => self.loads.agent(self.set, *cell),
            (B::AverageLink | B::Nothing, Witness::Hops) => Ok(self.average_link()),
            (B::DimensionCut | B::Bisection | B::Nothing, Witness::Cut(side)) => {
                self.loads.cut(self.set.connections().iter(), side)
            }
            (B::LinkFlow | B::Nothing, Witness::LinkPrices(prices)) => {
                let clocks = u128::from(self.machine.parameters().link_clocks_per_word);
                let travelled = self.distances.by_links(prices)?.checked_mul(clocks);
                Ok(share(travelled, self.loads.links_worth(prices)))
            }
            (B::Order | B::Nothing, Witness::Chain(chain)) => {
                chains::chain(self.machine, self.set, self.distances.hops(), chain)
            }
            (B::Order | B::Nothing, Witness::Window { head, tail, side }) => {
                let chains = Chains::new(self.machine, self.set, self.distances.hops());
                let (head, tail) = (u128::from(*head), u128::from(*tail));
                let members = chains.window(head, tail);
                let load = if side.is_empty() {
                    let hops = self.distances.hops();
                    self.loads.agents_or_links(self.set, &members, hops)
                } else {
                    let rows = members.iter().map(|&x| self.set.get(x));
                    self.loads.cut(rows, side)?
                };
                // Nobody between is a window that is not there.
                Ok(if members.is_empty() { 0 } else { head + tail + load })
            }
            _ => Err(mismatch(by, witness)),
        }
    }

    /// The greatest load that can be counted without a witness; work ends where it is enough.
    fn counted_load(&mut self, enough: u128) -> u128 {
        let counts: [fn(&mut Self) -> u128; 4] = [
            |this| this.loads.busiest_agent(this.set),
            |this| this.loads.slabs(this.set),
            |this| this.average_link(),
            |this| Chains::longest(this.machine, this.set, &mut this.distances),
        ];
        let mut most = 0;
        for count in counts {
            most = count(self).max(most);
            if most >= enough {
                break;
            }
        }
        most
    }

    /// Channels of shortest routes over all channels.
    fn channel_total(&mut self) -> u128 {
        let channels = self.distances.hops().iter().map(|&hops| u128::from(hops) + 1).sum();
        let all = u128::from(self.machine.parameters().channels_per_cell);
        share(Some(channels), self.loads.live_cells() * all)
    }

    /// Clocks of word-hops of shortest routes, over all links.
    fn average_link(&mut self) -> u128 {
        self.loads.average_link(self.set, self.distances.hops(), 0..self.set.len())
    }
}

/// What each of `among` has to take at least; 0 where that cannot be said.
fn share(work: Option<u128>, among: u128) -> u128 {
    work.and_then(|work| work.checked_add(among)?.checked_sub(1)?.checked_div(among)).unwrap_or(0)
}

fn mismatch(by: Binding, witness: &Witness) -> String {
    let what = match witness {
        Witness::Cell(_) => "a cell",
        Witness::Hops => "hops",
        Witness::Cut(_) => "a cut",
        Witness::CellPrices(_) => "prices of cells",
        Witness::LinkPrices(_) => "prices of links",
        Witness::Chain(_) => "a chain",
        Witness::Window { .. } => "a window",
    };
    format!("{what} cannot prove a bound by {by}")
}

#[cfg(test)]
mod tests;
