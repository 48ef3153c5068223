//! Link sharing, and the requirements that depend on it: minimum bandwidth and maximum latency.
//!
//! The routes of a phase that cross a link take turns on it, one word each (machine model, rule 3).
//! So with `s` routes over a link of `link` clocks per word, each moves at least one word in `link x s`
//! clocks. The
//! guaranteed bandwidth of a connection, in words per 1000 clocks, is
//! `min(floor(1000 / access), floor(1000 / max(link x s)))` over the links of its route. A word
//! takes at most `2 x access + sum(link x s)` clocks: once through each agent, and one full round at
//! each link.

use conset_ir::{LinkId, Machine, PhaseId, PhaseRoutes, RouteRef, Routing};

use crate::rejection::{Findings, Location, Rule};

/// The number of routes on each link in one phase. It reuses its memory for all phases.
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

    /// The greatest number of routes on a link.
    pub(crate) fn max(&self) -> u32 {
        self.touched.iter().map(|link| self.routes[link.index()]).max().unwrap_or(0)
    }

    /// Removes all routes.
    pub(crate) fn clear(&mut self) {
        for link in self.touched.drain(..) {
            self.routes[link.index()] = 0;
        }
    }

    /// Checks the requirements of the routes of the phase for which `is_counted` holds.
    pub(crate) fn check_requirements(
        &self,
        routing: &Routing,
        phase: PhaseId,
        routes: &PhaseRoutes,
        is_counted: impl Fn(usize) -> bool,
        findings: &mut Findings,
    ) {
        for (_, route) in routes.iter().enumerate().filter(|(row, _)| is_counted(*row)) {
            let connection = routing.set().get(route.connection);
            let location = Location::phase(phase).connection(route.connection);
            if let Some(required) = connection.min_bandwidth {
                let got = self.bandwidth(routing.machine(), &route);
                if got < u64::from(required) {
                    findings.add(Rule::Bandwidth, location, || {
                        format!("{got} words per 1000 clocks guaranteed, {required} required")
                    });
                }
            }
            if let Some(allowed) = connection.max_latency {
                let got = self.latency(routing.machine(), &route);
                if got > u64::from(allowed) {
                    findings.add(Rule::Latency, location, || {
                        format!("a word may take {got} clocks, {allowed} allowed")
                    });
                }
            }
        }
    }

    /// The guaranteed words per 1000 clocks of a route.
    fn bandwidth(&self, machine: &Machine, route: &RouteRef<'_>) -> u64 {
        let parameters = machine.parameters();
        let access = 1000 / u64::from(parameters.access_clocks_per_word);
        match route.links().iter().map(|&link| self.round(machine, link)).max() {
            None => access,
            Some(most) => access.min(1000 / most),
        }
    }

    /// The longest time of a word on a route, in clocks.
    fn latency(&self, machine: &Machine, route: &RouteRef<'_>) -> u64 {
        let parameters = machine.parameters();
        let rounds = route.links().iter().map(|&link| self.round(machine, link));
        let links = rounds.fold(0u64, u64::saturating_add);
        links.saturating_add(2 * u64::from(parameters.access_clocks_per_word))
    }

    /// The clocks in which each route on a link moves a word.
    fn round(&self, machine: &Machine, link: LinkId) -> u64 {
        u64::from(machine.link_clocks(link)).saturating_mul(self.on(link))
    }

    /// The number of routes on a link, at least 1.
    fn on(&self, link: LinkId) -> u64 {
        self.routes.get(link.index()).map_or(1, |&count| u64::from(count.max(1)))
    }
}

/// The number of routes on each link in one phase, by link id, for reports and for comparison with
/// a cost model. Link ids out of range are ignored.
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
