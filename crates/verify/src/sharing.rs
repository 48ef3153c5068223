//! Link sharing, recounted, and the contracts that rest on it: minimum bandwidth, maximum latency.
//!
//! The routes of a phase that cross a link take turns on it, one word each (machine model, rule 3),
//! so with s of them each is sure of one word in `link_clocks_per_word x s`. A connection is
//! guaranteed, in words per 1000 clocks,
//! `min(floor(1000 / access), floor(1000 / (link x max s)))` over the links of its route; and a
//! word travels no longer than `2 x access + sum(link x s)` clocks: once through each agent and,
//! at each link, one full turn.

use conset_ir::{LinkId, Machine, PhaseId, PhaseRoutes, RouteRef, Routing};

use crate::rejection::{Findings, Place, Rule};

/// Routes on each link in one phase; the memory is kept from phase to phase.
pub(crate) struct Sharing {
    routes: Vec<u32>,
    touched: Vec<LinkId>,
}

impl Sharing {
    pub(crate) fn new(links: usize) -> Self {
        Self { routes: vec![0; links], touched: Vec::new() }
    }

    pub(crate) fn add(&mut self, link: LinkId) {
        let count = &mut self.routes[link.index()];
        if *count == 0 {
            self.touched.push(link);
        }
        *count += 1;
    }

    /// The most routes on one link.
    pub(crate) fn max(&self) -> u32 {
        self.touched.iter().map(|link| self.routes[link.index()]).max().unwrap_or(0)
    }

    /// Forgets the phase.
    pub(crate) fn clear(&mut self) {
        for link in self.touched.drain(..) {
            self.routes[link.index()] = 0;
        }
    }

    /// Checks the contracts of the phase's routes for which `is_counted` holds.
    pub(crate) fn check_contracts(
        &self,
        routing: &Routing,
        phase: PhaseId,
        routes: &PhaseRoutes,
        is_counted: impl Fn(usize) -> bool,
        findings: &mut Findings,
    ) {
        for (_, route) in routes.iter().enumerate().filter(|(row, _)| is_counted(*row)) {
            let connection = routing.set().get(route.connection);
            let place = Place::phase(phase).connection(route.connection);
            if let Some(wanted) = connection.min_bandwidth {
                let got = self.bandwidth(routing.machine(), &route);
                if got < u64::from(wanted) {
                    findings.add(Rule::Bandwidth, place, || {
                        format!("{got} words per 1000 clocks guaranteed, {wanted} required")
                    });
                }
            }
            if let Some(allowed) = connection.max_latency {
                let got = self.latency(routing.machine(), &route);
                if got > u64::from(allowed) {
                    findings.add(Rule::Latency, place, || {
                        format!("a word may travel {got} clocks, {allowed} allowed")
                    });
                }
            }
        }
    }

    /// Words per 1000 clocks that a route is sure of.
    fn bandwidth(&self, machine: &Machine, route: &RouteRef<'_>) -> u64 {
        let parameters = machine.parameters();
        let access = 1000 / u64::from(parameters.access_clocks_per_word);
        match route.links().iter().map(|&link| self.on(link)).max() {
            None => access,
            Some(most) => access.min(1000 / (u64::from(parameters.link_clocks_per_word) * most)),
        }
    }

    /// The longest a word can travel, in clocks.
    fn latency(&self, machine: &Machine, route: &RouteRef<'_>) -> u64 {
        let parameters = machine.parameters();
        let turns: u64 = route.links().iter().map(|&link| self.on(link)).sum();
        let links = u64::from(parameters.link_clocks_per_word).saturating_mul(turns);
        links.saturating_add(2 * u64::from(parameters.access_clocks_per_word))
    }

    /// Routes on a link, at least the one that asks.
    fn on(&self, link: LinkId) -> u64 {
        self.routes.get(link.index()).map_or(1, |&count| u64::from(count.max(1)))
    }
}

/// The routes that cross each link in one phase, by link id: the recount on its own, for reports
/// and for comparing with a cost model. Links a route names wrongly are left out.
pub fn link_sharing(routing: &Routing, phase: PhaseId) -> Vec<u32> {
    let mut counts = vec![0; routing.machine().link_count()];
    let routes = routing.phases().get(phase.index());
    for link in routes.iter().flat_map(|r| r.iter()).flat_map(|route| route.links()) {
        if let Some(count) = counts.get_mut(link.index()) {
            *count += 1;
        }
    }
    counts
}
