//! The placement portfolio: tries all initial placements, improves some of them and keeps the
//! cheapest.
//!
//! One local search starts with the cheapest initial placement and minimises phases; another one
//! starts with the fewest word-hops and minimises distances. Which of the two matters is known only
//! when phases are counted, so both results are candidates, in addition to the initial placements.
//!
//! If the cheapest candidate has more phases than the endpoints of connections require, it is also
//! tried with free cells between its parts.
//!
//! In a fat-tree, where the fullest group of switches determines the phases, further searches then
//! try to save one phase after the other, until they fail or the bound is reached.

use conset_ir::Machine;
use conset_ir::convert::to_f64;

use super::cost::{Cost, PlacementLoads, Slack};
use super::expected_load::ExpectedLoad;
use super::initial::InitialPlacements;
use super::metric::Metric;
use super::{Placer, spread, threshold_accepting};

/// Resources that a search may update: some hundredths of a second.
const SEARCH_BUDGET: u64 = 1 << 22;
/// Searches for one phase less that may fail, with different random choices.
const MAX_FAILURES: u32 = 2;

/// The cheapest of all candidates.
pub(super) fn place(
    placer: &Placer<'_>,
    starts: &mut InitialPlacements<'_>,
    given: Vec<u32>,
) -> Vec<u32> {
    let expected_load = ExpectedLoad::new(placer.machine, placer.network, &placer.metric);
    let mut search = Portfolio {
        placer,
        loads: PlacementLoads::new(placer.machine, &expected_load, &placer.traffic),
        starts,
        candidates: Vec::new(),
    };
    let short = search.starts.bisected(given.clone());
    let channels = search.starts.for_channels(given.clone());
    let all = [&given, &short].into_iter().chain(&channels);
    let mut cheapest = (f64::INFINITY, &given);
    for place in all {
        search.loads.load(&placer.traffic, place);
        let clocks = search.loads.clocks();
        if clocks < cheapest.0 {
            cheapest = (clocks, place);
        }
    }
    let cheapest = cheapest.1.clone();
    let mut few = search.improved(cheapest.clone(), Slack::CHANNELS);
    if matches!(placer.metric, Metric::Tree(_)) {
        few = search.fewer_phases(placer.machine, few);
    }
    search.candidates.push(few);
    let shorter = search.improved(short.clone(), Slack::LINKS);
    search.candidates.extend([shorter, short, cheapest, given.clone()]);
    let Some((evaluated, place)) = search.cheapest(None) else { return given };
    if placer.set.is_empty() || evaluated.phases <= to_f64(placer.traffic.phases) {
        return place;
    }
    search.spread_out(evaluated, place)
}

struct Portfolio<'a, 'b> {
    placer: &'a Placer<'a>,
    loads: PlacementLoads<'a>,
    starts: &'a mut InitialPlacements<'b>,
    candidates: Vec<Vec<u32>>,
}

impl Portfolio<'_, '_> {
    fn improved(&mut self, mut place: Vec<u32>, slack: Slack) -> Vec<u32> {
        self.loads.slack = slack;
        let InitialPlacements { nearby, rng, .. } = &mut *self.starts;
        let Placer { metric, traffic, .. } = self.placer;
        threshold_accepting::improve(
            nearby,
            metric,
            traffic,
            &mut self.loads,
            &mut place,
            SEARCH_BUDGET,
            rng,
        );
        place
    }

    /// Searches for one phase less, repeatedly.
    fn fewer_phases(&mut self, machine: &Machine, mut place: Vec<u32>) -> Vec<u32> {
        let traffic = &self.placer.traffic;
        let mut failures = 0;
        self.loads.load(traffic, &place);
        let mut phases = self.loads.fullest_phases();
        while failures < MAX_FAILURES && u64::from(phases) > traffic.phases.max(1) {
            self.loads.set_phase_goal(machine, Some(phases - 1));
            let next = self.improved(place.clone(), Slack::CHANNELS);
            self.loads.load(traffic, &next);
            let reached = self.loads.fullest_phases();
            if reached < phases {
                (phases, place) = (reached, next);
            } else {
                failures += 1;
            }
        }
        self.loads.set_phase_goal(machine, None);
        place
    }

    /// The placement, or the cheapest of its variants with free cells in between.
    fn spread_out(&mut self, evaluated: Cost, place: Vec<u32>) -> Vec<u32> {
        let Placer { machine, metric, .. } = self.placer;
        let spread = spread::spread(machine, metric, &place);
        for loose in spread {
            let improved = self.improved(loose.clone(), Slack::CHANNELS);
            self.candidates.extend([improved, loose]);
        }
        self.cheapest(Some((evaluated, place))).map(|best| best.1).unwrap_or_default()
    }

    /// The cheapest candidate, of equal ones the first, if it is cheaper than `best`. Routing is
    /// skipped for candidates that cannot win. Candidates that cannot be routed are ignored.
    fn cheapest(&mut self, mut best: Option<(Cost, Vec<u32>)>) -> Option<(Cost, Vec<u32>)> {
        for place in std::mem::take(&mut self.candidates) {
            if !self.placer.is_routable(&place) {
                continue;
            }
            self.loads.load(&self.placer.traffic, &place);
            if best.as_ref().is_some_and(|best| self.loads.least() >= best.0.clocks) {
                continue;
            }
            let cost = self.placer.evaluate(&self.loads, &place);
            if best.as_ref().is_none_or(|best| cost.clocks < best.0.clocks) {
                best = Some((cost, place));
            }
        }
        best
    }
}
