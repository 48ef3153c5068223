//! The claims of a schedule: proofs of its lower bounds, and limits for its prediction.
//!
//! # Lower bounds
//!
//! `bounds.phases` and `bounds.clocks` claim that no schedule is better. Each is proved again, from
//! its witness ([`Witness`]) if the schedule has one, otherwise from what can be computed without
//! (`loads`: agents, ends, hops, dimension cuts; `chains`: the longest chain). A greater claim is
//! refused. The witness must be of the kind that `by` states, and it must suffice: a bound that
//! holds for another reason is refused.
//!
//! A bound of clocks consists of the context switches of the necessary phases and of a load that
//! the phases share; with timed starts also of clocks in which words are on their way (`ramps`). A
//! bound must not exceed the schedule's own number of phases or prediction. This follows from a
//! proof, but its message is simpler.
//!
//! # The prediction
//!
//! The time of the phases on a machine with this description is
//!
//! * at least one switch per phase, and in each phase the time of the busiest agent (words times
//!   `access_clocks_per_word`, and stream set-ups; with several streams at a time set-ups can
//!   overlap, and are a bound of their own) and of the busiest link (words times
//!   `link_clocks_per_word`);
//! * at most one switch per phase, and in each phase the greater of its makespan and the time of all
//!   its routes one after the other: set-up, words at the rate of agents or links, whichever is
//!   slower, and twice the latency of the last word (in a set with an order, the model waits for it
//!   at both ends). With timed starts it is the sum of both. Streams that share a resource get fair
//!   shares of it, so all of them together always progress as fast as one of them alone.
//!
//! Any other prediction is refused. Predictions result from floating point arithmetic, which at
//! 10^12 clocks has an error of one or two clocks. So the limits have a tolerance of 1 in 2^30
//! (nothing below 10^9 clocks), and of one clock per phase above.
//!
//! # What is not checked
//!
//! Whether a bound is as good as possible, and the prediction within these limits, which runs on
//! the fabric test.

mod chains;
mod distances;
mod loads;
mod ramps;

use std::collections::BTreeMap;

use conset_ir::convert::to_u64;
use conset_ir::{
    Binding, ConnectionSet, Machine, PhaseRoutes, RouteRef, SetSchedule, Timetable, Witness,
};

use crate::rejection::{Findings, Location, Rule};

use chains::ChainBounds;
use distances::ConnectionDistances;
use loads::{AgentLoads, LoadCounter};
use ramps::Ramps;

/// Checks the claims of a compiled set whose timetable has been accepted.
pub(crate) fn check(schedule: &SetSchedule, findings: &mut Findings) {
    check_bounds(schedule, findings);
    check_prediction(schedule, findings);
}

fn check_bounds(schedule: &SetSchedule, findings: &mut Findings) {
    let routing = schedule.timetable.routing();
    let (bounds, proof) = (&schedule.bounds, &schedule.proof);
    let phases = to_u64(routing.phases().len());
    let mut refuse = |message: String| findings.add(Rule::Claim, Location::set(), || message);
    let claimed = u64::from(bounds.phases);
    if claimed > phases {
        refuse(format!("the bound claims at least {claimed} phases; the schedule has {phases}"));
    }
    let mut prover = Prover::new(routing.machine(), routing.set());
    let phases = prover.phases(claimed, bounds.phases_by, proof.phases.as_ref());
    match &phases {
        Ok(proved) if *proved >= u128::from(claimed) => {}
        Ok(proved) => refuse(format!(
            "the bound claims at least {claimed} phases by {}; {} proves {proved}",
            bounds.phases_by,
            source(proof.phases.as_ref()),
        )),
        Err(why) => refuse(format!("the witness of the bound of phases is invalid: {why}")),
    }
    let predicted = with_tolerance(schedule.predicted_clocks);
    if bounds.clocks > predicted {
        refuse(format!(
            "the bound claims at least {} clocks; the prediction is {}",
            bounds.clocks, schedule.predicted_clocks
        ));
    }
    let claimed = u128::from(bounds.clocks);
    let phases = phases.unwrap_or(0);
    match prover.clocks(claimed, phases, bounds.clocks_by, proof.clocks.as_ref()) {
        Ok(proved) if proved >= claimed => {}
        Ok(proved) => refuse(format!(
            "the bound claims at least {claimed} clocks by {}; {} proves {proved}",
            bounds.clocks_by,
            source(proof.clocks.as_ref()),
        )),
        Err(why) => refuse(format!("the witness of the bound of clocks is invalid: {why}")),
    }
}

/// The clocks of links that no routes of the words of a set can avoid, as a witness proves them.
pub(crate) fn link_load(
    machine: &Machine,
    set: &ConnectionSet,
    by: Binding,
    witness: &Witness,
) -> Result<u128, String> {
    match by {
        Binding::AverageLink | Binding::DimensionCut | Binding::Bisection | Binding::LinkFlow => {
            Prover::new(machine, set).load(by, witness)
        }
        _ => Err(format!("a bound by {by} is not one of links")),
    }
}

fn source(witness: Option<&Witness>) -> &'static str {
    if witness.is_some() { "its witness" } else { "what can be counted without a witness" }
}

/// A prediction plus the tolerance for rounding.
fn with_tolerance(predicted: u64) -> u64 {
    predicted.saturating_add(predicted >> 30)
}

fn check_prediction(schedule: &SetSchedule, findings: &mut Findings) {
    let predicted = schedule.predicted_clocks;
    let (least, most) = limits_of_prediction(&schedule.timetable);
    if u128::from(with_tolerance(predicted)) < least {
        findings.add(Rule::Claim, Location::set(), || {
            format!(
                "the prediction is {predicted} clocks; switches, the busiest agents and the \
                 busiest links take {least}"
            )
        });
    }
    if u128::from(predicted) > most.saturating_add(most >> 30) {
        findings.add(Rule::Claim, Location::set(), || {
            format!("the prediction is {predicted} clocks; one route after the other takes {most}")
        });
    }
}

/// The least and the greatest number of clocks that the phases of a timetable can take.
/// O(cells + links + hops).
fn limits_of_prediction(timetable: &Timetable) -> (u128, u128) {
    let routing = timetable.routing();
    let mut busiest = Busiest::new(routing.machine());
    let timed = routing.machine().parameters().has_timed_starts();
    let switch = u128::from(routing.machine().parameters().switch_clocks());
    let phases = routing.phases().iter().zip(timetable.phases());
    phases.fold((0, 0), |(least, most), (routes, times)| {
        let (phase_least, phase_most) = (busiest.of(routes), one_by_one(routing.machine(), routes));
        // With timed starts agents may be idle until the last of them.
        let makespan = u128::from(times.makespan);
        let phase_most = match timed {
            true => phase_most + makespan,
            false => phase_most.max(makespan),
        };
        (least + switch + phase_least, most + switch + phase_most + 1)
    })
}

/// Clocks of all routes of a phase, one after the other.
fn one_by_one(machine: &Machine, routes: &PhaseRoutes) -> u128 {
    let parameters = machine.parameters();
    let [_, link] = machine.link_clocks_range().map(u128::from);
    let access = u128::from(parameters.access_clocks_per_word);
    let setup = u128::from(parameters.stream_setup) + u128::from(parameters.network_overhead);
    let of = |route: RouteRef<'_>| {
        let hops = u128::from(to_u64(route.hops()));
        // An agent that sends to itself may have to alternate, which doubles everything.
        let (turns, word) = if hops == 0 { (2, access) } else { (1, access.max(link)) };
        turns * (setup + u128::from(route.words) * word) + 2 * (2 * access + hops * link)
    };
    routes.iter().map(of).sum()
}

/// The busiest agent and the busiest link of a phase. It reuses its memory for all phases.
struct Busiest<'a> {
    machine: &'a Machine,
    agents: AgentLoads<'a>,
    link_words: Vec<u64>,
}

impl<'a> Busiest<'a> {
    fn new(machine: &'a Machine) -> Self {
        Self {
            machine,
            agents: AgentLoads::new(machine),
            link_words: vec![0; machine.link_count()],
        }
    }

    fn of(&mut self, routes: &PhaseRoutes) -> u128 {
        let mut most = 0;
        for route in routes.iter() {
            let [source, target] = [route.cells[0], route.cells[route.cells.len() - 1]];
            self.agents.add(source, target, route.words);
            for link in route.links() {
                let load = &mut self.link_words[link.index()];
                *load += u64::from(route.words);
                most = most.max(u128::from(*load) * u128::from(self.machine.link_clocks(*link)));
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
        most
    }
}

/// Proves lower bounds of a set on a machine.
struct Prover<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    loads: LoadCounter<'a>,
    distances: ConnectionDistances<'a>,
}

impl<'a> Prover<'a> {
    fn new(machine: &'a Machine, set: &'a ConnectionSet) -> Self {
        let loads = LoadCounter::new(machine);
        let distances = ConnectionDistances::new(machine, set);
        Self { machine, set, loads, distances }
    }

    /// The proved number of phases. Without a witness, it computes no more than needed for the
    /// claim.
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
                Ok(share(Some(travelled), self.loads.price_of_cells(prices) * channels))
            }
            _ => Err(mismatch(by, witness)),
        }
    }

    /// The proved number of clocks, given that `phases` are proved.
    fn clocks(
        &mut self,
        claimed: u128,
        phases: u128,
        by: Binding,
        witness: Option<&Witness>,
    ) -> Result<u128, String> {
        let switch = u128::from(self.machine.parameters().switch_clocks());
        Ok(match witness {
            Some(Witness::Prices { cells, links, alone })
                if matches!(by, Binding::ChannelLinkFlow | Binding::Nothing) =>
            {
                let prices = self.prices(cells, links, alone)?;
                let clocks = |this: &mut Self, phases| {
                    prices.clocks(phases) + this.ramp_of_prices(phases, links, alone)
                };
                self.in_phases(claimed, phases, clocks)
            }
            Some(Witness::Hops) if by == Binding::Latency => {
                let clocks = |this: &mut Self, phases| phases * switch + this.latencies(phases);
                self.in_phases(claimed, phases, clocks)
            }
            Some(witness) => {
                let load = self.load(by, witness)?;
                let clocks = |this: &mut Self, phases| {
                    phases * switch + load + this.ramp(phases, by, witness, load)
                };
                self.in_phases(claimed, phases, clocks)
            }
            None => {
                let load = self.counted_load(claimed.saturating_sub(phases * switch));
                self.in_phases(claimed, phases, |_, phases| phases * switch + load)
            }
        })
    }

    /// The clocks of `phases` phases or, if that is less than the claim, of the most phases that can
    /// be proved.
    fn in_phases(
        &mut self,
        claimed: u128,
        phases: u128,
        clocks: impl Fn(&mut Self, u128) -> u128,
    ) -> u128 {
        let proved = clocks(self, phases);
        if proved >= claimed {
            return proved;
        }
        let phases = self.most_phases(phases);
        clocks(self, phases)
    }

    /// The phases that can be proved without a witness, as the claimed number may be less; at least
    /// `phases`.
    fn most_phases(&mut self, phases: u128) -> u128 {
        phases.max(self.loads.most_ends(self.set).into()).max(self.channel_total())
    }

    /// What prices of cells and links prove, and of links alone.
    fn prices(
        &mut self,
        cells: &[u32],
        links: &[u32],
        alone: &[u32],
    ) -> Result<PriceProof, String> {
        let parameters = self.machine.parameters();
        let [clocks, _] = self.machine.link_clocks_range().map(u128::from);
        let words = self.distances.by_links(alone)?.checked_mul(clocks);
        let words = share(words, self.loads.price_of_links(alone));
        let routes = self.distances.by_cells_and_links(cells, links)?.checked_mul(clocks);
        let channels = u128::from(parameters.channels_per_cell);
        Ok(PriceProof {
            switch: parameters.switch_clocks().into(),
            least: words.max(self.loads.busiest_agent(self.set)),
            routes: routes.unwrap_or(0),
            phase: self.loads.price_of_cells(cells) * channels * clocks,
            of_links: self.loads.price_of_links(links),
        })
    }

    fn load(&mut self, by: Binding, witness: &Witness) -> Result<u128, String> {
        use Binding as B;
        match (by, witness) {
            (B::AgentLoad | B::Nothing, Witness::Cell(cell)) => {
                self.loads.agent(self.set, *cell).map(|[out, into]| out.max(into))
            }
            (B::AverageLink | B::Nothing, Witness::Hops) => Ok(self.average_link()),
            (B::DimensionCut | B::Bisection | B::Nothing, Witness::Cut(side)) => {
                self.loads.cut(self.set.connections().iter(), side)
            }
            (B::LinkFlow | B::Nothing, Witness::LinkPrices(prices)) => {
                let [clocks, _] = self.machine.link_clocks_range().map(u128::from);
                let travelled = self.distances.by_links(prices)?.checked_mul(clocks);
                Ok(share(travelled, self.loads.price_of_links(prices)))
            }
            (B::Order | B::Nothing, Witness::Chain(chain)) => {
                chains::chain(self.machine, self.set, self.distances.hops(), chain)
            }
            (B::Order | B::Nothing, Witness::Window { head, tail, side }) => {
                let chains = ChainBounds::new(self.machine, self.set, self.distances.hops());
                let (head, tail) = (u128::from(*head), u128::from(*tail));
                let members = chains.window(head, tail);
                let load = if side.is_empty() {
                    let hops = self.distances.hops();
                    self.loads.agents_or_links(self.set, &members, hops)
                } else {
                    let rows = members.iter().map(|&x| self.set.get(x));
                    self.loads.cut(rows, side)?
                };
                // Without connections between the chains the window proves nothing.
                Ok(if members.is_empty() { 0 } else { head + tail + load })
            }
            _ => Err(mismatch(by, witness)),
        }
    }

    /// The clocks that at least `phases` phases take beside a load that a witness proved.
    fn ramp(&mut self, phases: u128, by: Binding, witness: &Witness, load: u128) -> u128 {
        use Binding as B;
        let Some(ramps) = Ramps::new(self.machine, self.set, &mut self.distances, phases) else {
            return 0;
        };
        let loads = &self.loads;
        let prices = match (by, witness) {
            (B::AgentLoad | B::Nothing, Witness::Cell(cell)) => {
                let directions = loads.agent(self.set, *cell).unwrap_or_default();
                let all = directions.into_iter().zip(ramps.of_agent(*cell));
                return all.map(|(load, ramp)| load + ramp).max().unwrap_or(0) - load;
            }
            (B::AverageLink | B::Nothing, Witness::Hops) => Ok(loads.link_prices(|_| 1)),
            (B::DimensionCut | B::Bisection | B::Nothing, Witness::Cut(side)) => {
                loads.over_cut(side)
            }
            (B::LinkFlow | B::Nothing, Witness::LinkPrices(prices)) => {
                Ok(loads.link_prices(|link| prices[link.index()].into()))
            }
            _ => return 0,
        };
        prices.map_or(0, |prices| ramps.of_links(&prices, load))
    }

    /// The clocks that at least `phases` phases take beside what prices of cells and links prove. This
    /// is what the words with channels, the words alone or an agent take, whichever is most, and each
    /// of them has at least these clocks beside it.
    fn ramp_of_prices(&mut self, phases: u128, links: &[u32], alone: &[u32]) -> u128 {
        let Some(ramps) = Ramps::new(self.machine, self.set, &mut self.distances, phases) else {
            return 0;
        };
        let of = |prices: &[u32]| {
            ramps.of_any_load(&self.loads.link_prices(|link| prices[link.index()].into()))
        };
        of(links).min(of(alone)).min(ramps.of_any_agent())
    }

    /// The greatest load that can be computed without a witness; stops when it reaches `enough`.
    fn counted_load(&mut self, enough: u128) -> u128 {
        let counts: [fn(&mut Self) -> u128; 4] = [
            |this| this.loads.busiest_agent(this.set),
            |this| this.loads.slabs(this.set),
            |this| this.average_link(),
            |this| ChainBounds::longest(this.machine, this.set, &mut this.distances),
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

    /// The channels of shortest routes, divided by all channels.
    fn channel_total(&mut self) -> u128 {
        let channels = self.distances.hops().iter().map(|&hops| u128::from(hops) + 1).sum();
        let all = u128::from(self.machine.parameters().channels_per_cell);
        share(Some(channels), self.loads.live_cells() * all)
    }

    /// The sum over phases of the time of a word over the longest route of the phase, beside the
    /// switches.
    ///
    /// Consider the connections whose word takes more than some time. Phases that are not as long as
    /// that have none of them, so the others are at least as many as they need for their channels.
    /// Every phase is as long as the least time.
    fn latencies(&mut self, phases: u128) -> u128 {
        let parameters = self.machine.parameters();
        if !parameters.has_timed_starts() {
            return 0;
        }
        let [link, _] = self.machine.link_clocks_range().map(u128::from);
        let in_a_phase = self.loads.live_cells() * u128::from(parameters.channels_per_cell);
        let mut channels: BTreeMap<u128, u128> = BTreeMap::new();
        for (connection, &hops) in self.set.connections().iter().zip(self.distances.hops()) {
            let opened = u128::from(parameters.stream_setup)
                + u128::from(self.machine.network_overhead(connection.source, connection.target));
            let moved = 2 * u128::from(parameters.access_clocks_per_word) + u128::from(hops) * link;
            *channels.entry(opened + moved).or_default() += u128::from(hops) + 1;
        }
        // From the shortest: `longer` are the channels of all routes that take at least `time`.
        let mut longer: u128 = channels.values().sum();
        let (mut sum, mut before) = (0, 0);
        for (at, (&time, &own)) in channels.iter().enumerate() {
            let as_long = match at {
                0 => phases,
                _ => phases.min(share(Some(longer), in_a_phase)),
            };
            sum += (time - before) * as_long;
            before = time;
            longer -= own;
        }
        sum
    }

    /// The clocks of the word-hops of shortest routes, divided by all links.
    fn average_link(&mut self) -> u128 {
        self.loads.average_link(self.set, self.distances.hops(), 0..self.set.len())
    }
}

/// Prices of cells and links. For any number of phases, the routes of all connections cost at most
/// what the links can carry in the clocks beside the switches, and the channels of the phases.
struct PriceProof {
    /// Clocks of a switch.
    switch: u128,
    /// Clocks beside the switches that any number of phases takes.
    least: u128,
    /// The price of the cheapest routes, times the clocks of a word on a link.
    routes: u128,
    /// The price of the channels of one phase, times the same.
    phase: u128,
    /// The price of all live links.
    of_links: u128,
}

impl PriceProof {
    /// The clocks, switches included, of this number of phases.
    fn exactly(&self, phases: u128) -> u128 {
        let channels = phases.saturating_mul(self.phase);
        let load = share(Some(self.routes.saturating_sub(channels)), self.of_links);
        phases.saturating_mul(self.switch).saturating_add(load.max(self.least))
    }

    /// The fewest clocks of at least this number of phases.
    ///
    /// As phases are added, the clocks change by the same amount each time (and are then rounded up)
    /// while channels are what binds; after that they only grow. So one of three numbers is the best.
    fn clocks(&self, phases: u128) -> u128 {
        let links = self.least.saturating_mul(self.of_links);
        let last = self.routes.saturating_sub(links).checked_div(self.phase).unwrap_or(0);
        let any = [phases, phases.max(last), phases.max(last.saturating_add(1))];
        any.map(|phases| self.exactly(phases)).into_iter().min().unwrap_or(0)
    }
}

/// The least share of the greatest of `among` equal resources; 0 if it overflows.
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
        Witness::Prices { .. } => "prices of cells and links",
        Witness::Chain(_) => "a chain",
        Witness::Window { .. } => "a window",
    };
    format!("{what} cannot prove a bound by {by}")
}

#[cfg(test)]
mod tests;
