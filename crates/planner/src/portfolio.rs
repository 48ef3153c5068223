//! The portfolio: planners behind one interface, each a way to get near the bound.
//!
//! A planner takes a [`Task`] and returns candidates: routings with the *round* of each route, or
//! with its planned start, where the planner knows them. Connections of a round share no agent and
//! no link, so a round lasts as long as its longest connection; the scheduler keeps rounds and
//! starts. A planner that does not apply to a set returns nothing.
//!
//! | planner | for | how |
//! |---|---|---|
//! | [`Planner::TorusAapc`] | dense sets on a torus, ring or hypercube | `torus_aapc`: the contention-free rounds of rings (`ring_aapc`), multiplied; `first_fit`: their holes filled; `phase_packing`: rounds into phases |
//! | [`Planner::TranslationSymmetry`] | sets that are invariant under translations of a torus; fewest phases | `translation_symmetry`: one connection is planned for all its translates |
//! | [`Planner::EdgeColoring`] | sets of equal words, or nearly | `edge_coloring`: a colouring that is good for agents and links; `phase_packing` |
//! | [`Planner::RoundPathfinder`] | any set, ordered ones too | `round_pathfinder`: rounds and routes chosen together by negotiated congestion; `phase_packing` |
//! | [`Planner::PreemptiveList`] | any set without order or requirements | `preemptive_list`: phases of a given length, connections cut where they end |
//! | [`Planner::PhasePathfinder`] | few phases, many short streams | [`phase_pathfinder`]: phases and routes by negotiated congestion over channels, from the bound upwards |
//! | [`Planner::LoadAnnealing`] | any set | the paper's division, then `load_annealing`: loads evened out between its phases |
//! | [`Planner::TranslationSlots`] | sets that are invariant under translations of a torus, on machines with timed starts | [`translation_slots`]: one cell's connections in slots of time, the others' by shifts |
//! | [`Planner::WindowedPathfinder`] | large sets, on machines with timed starts | [`windowed_pathfinder`]: phases packed one after the other, the last ones negotiated together |
//! | [`Planner::SlotPathfinder`] | machines with timed starts | [`slot_pathfinder`]: slots of time, phases and routes by negotiated congestion |
//!
//! [`local_search()`](crate::local_search()) is no planner: it changes a plan that is there.
//!
//! No planner looks at what a set is called or where it came from. Which one is best for a set is
//! seen by pricing the candidates, which is the caller's business.

use std::sync::{Arc, OnceLock};

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Bounds, ConnectionSet, Infeasible, Machine, Routing};

use conset_partition_route::apr::requirements::Requirements;
use conset_partition_route::network::{Distances, Network};
use conset_partition_route::{apr, channels, explain, routing_of_paths};

use crate::paths::Paths;
use crate::plan::Found;
use crate::problem::{Problem, ports};
use crate::work::Work;
use crate::{
    edge_coloring, first_fit, load_annealing, phase_packing, phase_pathfinder, preemptive_list,
    round_pathfinder, slot_pathfinder, torus_aapc, translation_slots, translation_symmetry,
    windowed_pathfinder,
};

/// A way to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planner {
    /// Every connection has its place in the rounds of the torus.
    TorusAapc,
    /// Connections that look the same from every cell are divided as one.
    TranslationSymmetry,
    /// Rounds are searched for, for sets of equal or nearly equal words.
    EdgeColoring,
    /// Rounds, phases and routes are chosen together, in passes that learn from each other.
    RoundPathfinder,
    /// Phases of a length, filled with connections and parts of connections.
    PreemptiveList,
    /// Few phases, by negotiated congestion over channels.
    PhasePathfinder,
    /// The paper's division with the loads of its phases evened out.
    LoadAnnealing,
    /// The slots of one cell's connections, shifted in time for the other cells of a torus; for
    /// machines with timed starts.
    TranslationSlots,
    /// Phases packed one after the other, for large sets on machines with timed starts.
    WindowedPathfinder,
    /// Slots of time, phases and routes by negotiated congestion, for machines with timed starts.
    SlotPathfinder,
}

impl Planner {
    /// The name by which reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Planner::TorusAapc => "torus-aapc",
            Planner::TranslationSymmetry => "translation-symmetry",
            Planner::EdgeColoring => "edge-coloring",
            Planner::RoundPathfinder => "round-pathfinder",
            Planner::PreemptiveList => "preemptive-list",
            Planner::PhasePathfinder => "phase-pathfinder",
            Planner::LoadAnnealing => "load-annealing",
            Planner::TranslationSlots => "translation-slots",
            Planner::WindowedPathfinder => "windowed-pathfinder",
            Planner::SlotPathfinder => "slot-pathfinder",
        }
    }

    /// Whether its searches have a budget of work of their own, by the size of the problem.
    pub fn has_own_budget(self) -> bool {
        matches!(
            self,
            Self::PhasePathfinder
                | Self::TranslationSlots
                | Self::WindowedPathfinder
                | Self::SlotPathfinder
        )
    }
}

/// What is to be planned: a set on a machine. What planners work out of that they share.
pub struct Task<'a> {
    machine: &'a Arc<Machine>,
    set: &'a Arc<ConnectionSet>,
    bounds: Bounds,
    problem: OnceLock<Option<Problem<'a>>>,
}

impl<'a> Task<'a> {
    /// A set on a machine, and its bounds there ([`conset_partition_route::bounds::bounds`]).
    pub fn new(machine: &'a Arc<Machine>, set: &'a Arc<ConnectionSet>, bounds: Bounds) -> Self {
        Self { machine, set, bounds, problem: OnceLock::new() }
    }

    /// The machine.
    pub fn machine(&self) -> &'a Arc<Machine> {
        self.machine
    }

    /// The set.
    pub fn set(&self) -> &'a Arc<ConnectionSet> {
        self.set
    }

    /// The set's bounds.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The problem, where there is one ([`Problem::new`]).
    fn problem(&self) -> Option<&Problem<'a>> {
        let new = || Problem::new(self.machine, self.set, self.bounds);
        self.problem.get_or_init(new).as_ref()
    }
}

/// What a planner may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerOptions {
    /// Decides where a search has a choice.
    pub seed: u64,
    /// Rip-up and reroute iterations of the paper's router.
    pub reroutes: u32,
    /// Moves of a search for each connection.
    pub effort: u32,
    /// Whether few phases come before few clocks.
    pub fewest_phases: bool,
    /// How often the budgets of searches that use all of theirs are doubled.
    pub doubled: u32,
    /// Phases allowed; none for as many as it takes.
    pub max_phases: Option<u32>,
}

impl Default for PlannerOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            reroutes: 8,
            effort: 200,
            fewest_phases: false,
            doubled: 0,
            max_phases: None,
        }
    }
}

/// Phases and routes, and rounds where they are known.
#[derive(Clone, Debug)]
pub struct Routed {
    /// Phases and routes.
    pub routing: Routing,
    /// For each phase the round of each route, in the order of the routes; rounds of a phase run
    /// in the order of their numbers.
    pub rounds: Option<Vec<Vec<u32>>>,
    /// For each phase the planned start of each route, in clocks from the phase's beginning; only
    /// where there are no rounds.
    pub starts: Option<Vec<Vec<u64>>>,
}

/// Makes the plans of one planner: those that are worth being priced, the one with the fewest
/// phases first; none where the planner does not apply to the set or the machine, or needs more
/// phases than allowed. What was looked at is taken off `work`.
///
/// # Errors
/// Ends that are not live cells with an agent.
pub fn plans(
    task: &Task<'_>,
    planner: Planner,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let Task { machine, set, bounds, .. } = task;
    let &PlannerOptions { seed, doubled, .. } = options;
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    let mut plans = match planner {
        Planner::TorusAapc => torus_aapc_plans(machine, set)?,
        Planner::TranslationSymmetry => {
            translation_symmetry_plan(machine, set)?.into_iter().collect()
        }
        Planner::EdgeColoring => edge_coloring_plans(machine, set, bounds, options, work)?,
        Planner::RoundPathfinder => round_pathfinder_plans(machine, set, bounds, options)?,
        Planner::PreemptiveList => preemptive_list_plans(machine, set, bounds, options)?,
        Planner::LoadAnnealing => {
            load_annealing_plan(machine, set, options, work)?.into_iter().collect()
        }
        Planner::PhasePathfinder => timed_plan(task, work, |problem| {
            phase_pathfinder::plan(
                problem,
                &phase_pathfinder::PhaseConfig::default(),
                phase_pathfinder::budget(problem) << doubled,
                seed,
            )
        })?,
        Planner::TranslationSlots => timed_plan(task, work, |problem| {
            let plan = if options.fewest_phases {
                translation_slots::plan_phases
            } else {
                translation_slots::plan
            };
            plan(
                problem,
                &translation_slots::TranslationConfig::default(),
                translation_slots::budget(problem) << doubled,
                seed,
            )
        })?,
        Planner::WindowedPathfinder => timed_plan(task, work, |problem| {
            windowed_pathfinder::plan(
                problem,
                &windowed_pathfinder::WindowedConfig::default(),
                windowed_pathfinder::budget(problem) << doubled,
                seed,
            )
        })?,
        Planner::SlotPathfinder => timed_plan(task, work, |problem| {
            slot_pathfinder::plan(
                problem,
                &slot_pathfinder::Config::default(),
                slot_pathfinder::budget(problem) << doubled,
                seed,
            )
        })?,
    };
    plans.retain(|plan| {
        options.max_phases.is_none_or(|most| plan.routing.phases().len() <= index(most))
    });
    Ok(plans)
}

/// The plan of a planner that chooses starts, which are kept where the machine keeps them.
fn timed_plan(
    task: &Task<'_>,
    work: &mut Work,
    plan: impl FnOnce(&Problem<'_>) -> Option<Found>,
) -> Result<Vec<Routed>, Infeasible> {
    let Task { machine, set, .. } = task;
    let Some(found) = task.problem().and_then(plan) else { return Ok(Vec::new()) };
    work.take(found.work);
    let (routing, starts) =
        found.plan.routing(machine, set).map_err(|error| explain::misshapen(set, &error))?;
    let starts = machine.parameters().has_timed_starts().then_some(starts);
    Ok(vec![Routed { routing, rounds: None, starts }])
}

/// Whether connections ask for more than that their words arrive.
fn is_constrained(set: &ConnectionSet) -> bool {
    !set.order().is_empty() || set.has_requirements()
}

fn is_whole(machine: &Machine) -> bool {
    machine.dead_cells().is_empty() && machine.dead_links().is_empty()
}

fn torus_aapc_plans(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
) -> Result<Vec<Routed>, Infeasible> {
    if is_constrained(set) || !is_whole(machine) {
        return Ok(Vec::new());
    }
    let Some(torus_rounds) = torus_aapc::rounds(machine.topology(), set) else {
        return Ok(Vec::new());
    };
    let torus_aapc::TorusRounds { rounds, round_of, paths } = torus_rounds;
    let network = Network::new(machine);
    let (rounds, round_of) = first_fit::fill_rounds(&network, set, rounds, round_of, &paths);
    plans_of_rounds(machine, set, rounds, &round_of, &paths)
}

fn translation_symmetry_plan(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
) -> Result<Option<Routed>, Infeasible> {
    if is_constrained(set) || !is_whole(machine) {
        return Ok(None);
    }
    let channels = machine.parameters().channels_per_cell;
    let Some(found) = translation_symmetry::plan(machine.topology(), set, channels) else {
        return Ok(None);
    };
    let members = by_phase(found.phases, &found.phase_of);
    let routing = number(machine, set, &members, &found.paths)?;
    Ok(Some(Routed { routing, rounds: None, starts: None }))
}

/// Moves of a search at most.
const MOVE_LIMIT: usize = 1 << 21;

/// Connections routed anew in a search at most.
const ROUTE_LIMIT: usize = 1 << 20;

fn load_annealing_plan(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Option<Routed>, Infeasible> {
    let first = apr::Options {
        seed: options.seed,
        reroutes: options.reroutes,
        max_phases: options.max_phases,
        ..apr::Options::default()
    };
    let routing = apr::route(machine, set, &first, &mut |_| ())?;
    if is_constrained(set) {
        return Ok(Some(Routed { routing, rounds: None, starts: None }));
    }
    let network = Network::new(machine);
    let moves = set.len().saturating_mul(index(options.effort)).min(MOVE_LIMIT);
    let division = load_annealing::anneal(
        machine,
        set,
        &network,
        division_of(&routing),
        (moves, work),
        options.seed,
    );
    plan_of(machine, set, &network, &division).map(Some)
}

fn plan_of(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    network: &Network,
    division: &load_annealing::Division,
) -> Result<Routed, Infeasible> {
    let members = by_phase(division.phases, &division.phase_of);
    let routing = channels::number(machine, set, network, division.phases, |phase| {
        members[index(phase)].iter().map(|&x| (x, division.paths[index(x)].as_slice()))
    })
    .map_err(|error| explain::misshapen(set, &error))?;
    Ok(Routed { routing, rounds: None, starts: None })
}

fn division_of(routing: &Routing) -> load_annealing::Division {
    let mut division = load_annealing::Division {
        phases: to_u32(routing.phases().len()),
        phase_of: vec![0; routing.set().len()],
        paths: vec![Vec::new(); routing.set().len()],
    };
    for (phase, routes) in routing.iter() {
        for route in routes.iter() {
            let x = route.connection.index();
            division.phase_of[x] = phase.0;
            division.paths[x] = route.cells.iter().map(|cell| cell.0).collect();
        }
    }
    division
}

/// Words of the longest connection over the mean, up to which rounds are searched for.
const MAX_UNEVENNESS: u64 = 2;

/// Connections up to which rounds are searched for; beyond, the search gets nowhere.
const MAX_COLORING_CONNECTIONS: usize = 1 << 13;

/// Shares of the fewest rounds by which there may be more; 0 for none.
const SPARE_ROUND_SHARES: [u32; 3] = [0, 16, 4];

fn edge_coloring_plans(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let longest = set.connections().iter().map(|c| u64::from(c.words)).max().unwrap_or(0);
    let uneven = longest * to_u64(set.len()) > MAX_UNEVENNESS * set.words();
    if is_constrained(set) || uneven || set.len() > MAX_COLORING_CONNECTIONS {
        return Ok(Vec::new());
    }
    let network = Network::new(machine);
    let routes = set.len().saturating_mul(4 * index(options.effort)).min(ROUTE_LIMIT);
    let fewest = fewest_rounds(machine, set, bounds);
    let mut best: Option<edge_coloring::Coloring> = None;
    let each = (work.left / to_u64(SPARE_ROUND_SHARES.len())).max(1);
    for share in SPARE_ROUND_SHARES {
        // Where links are short of room, some more rounds may last less in all.
        let rounds = fewest.saturating_add(fewest.checked_div(share).unwrap_or(0));
        if best.as_ref().is_some_and(|best| best.length <= rounds) {
            break;
        }
        let found =
            edge_coloring::search(machine, set, &network, (rounds, routes), each, options.seed);
        let Some(found) = found else { break };
        work.take(found.expanded);
        let stopped = found.stopped;
        if best.as_ref().is_none_or(|best| found.length < best.length) {
            best = Some(found);
        }
        // The machine is so large that more rounds would get no further.
        if stopped {
            work.stopped = true;
            break;
        }
    }
    let Some(best) = best else { return Ok(Vec::new()) };
    plans_of_rounds(machine, set, best.rounds, &best.round_of, &best.paths)
}

/// Rounds that the bounds of time leave, where every round lasts as long as the longest connection.
fn fewest_rounds(machine: &Machine, set: &ConnectionSet, bounds: &Bounds) -> u32 {
    let parameters = machine.parameters();
    let clocks = bounds.clocks - u64::from(bounds.phases) * parameters.switch_clocks();
    let round = parameters.longest_stream(set);
    u32::try_from(clocks.div_ceil(round.max(1))).unwrap_or(u32::MAX)
}

/// Connections up to which a negotiation is tried, and its steps for each.
const MAX_PATHFINDER_CONNECTIONS: usize = 1 << 17;
const PATHFINDER_STEPS: usize = 1 << 24;

fn round_pathfinder_plans(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &PlannerOptions,
) -> Result<Vec<Routed>, Infeasible> {
    let Some((found, requirements)) = negotiate_rounds(machine, set, bounds, options)? else {
        return Ok(Vec::new());
    };
    pack_and_number(
        machine,
        set,
        found.rounds,
        &found.round_of,
        &found.paths,
        requirements.as_ref(),
    )
}

/// Steps of filling windows for each connection, and at most.
const LIST_STEPS_PER_CONNECTION: usize = 1 << 13;
const LIST_STEP_LIMIT: usize = 1 << 23;

/// Connections up to which windows are filled.
const MAX_LIST_CONNECTIONS: usize = 1 << 13;

/// Fills phases of several lengths.
fn preemptive_list_plans(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &PlannerOptions,
) -> Result<Vec<Routed>, Infeasible> {
    if is_constrained(set) || set.len() > MAX_LIST_CONNECTIONS {
        return Ok(Vec::new());
    }
    let network = Network::new(machine);
    let steps = set.len().saturating_mul(LIST_STEPS_PER_CONNECTION).min(LIST_STEP_LIMIT);
    let plan = |phases: preemptive_list::FragmentPhases| {
        let mut phases = phases;
        // One part of a connection at most is in a phase.
        phases.iter_mut().for_each(|streams| streams.sort_by_key(|stream| stream.connection));
        let routing =
            channels::number_parts(machine, set, &network, to_u32(phases.len()), |phase| {
                let streams = phases[index(phase)].iter();
                streams.map(|stream| (stream.connection, stream.words, stream.path.as_slice()))
            })
            .map_err(|error| explain::misshapen(set, &error))?;
        let starts = phases.iter().map(|streams| streams.iter().map(|s| s.start).collect());
        Ok(Routed { routing, rounds: None, starts: Some(starts.collect()) })
    };
    let found = preemptive_list::fill(machine, set, &network, bounds.phases, steps, options.seed);
    found.into_iter().map(plan).collect()
}

/// A route of a plan of rounds, on its way from one plan to another.
pub(crate) struct Part {
    pub(crate) connection: u32,
    pub(crate) words: u32,
    pub(crate) round: u32,
    pub(crate) path: Vec<u32>,
}

/// Numbers the channels of phases of parts, each phase in the order of connections and rounds.
pub(crate) fn plan_of_parts(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    mut phases: Vec<Vec<Part>>,
) -> Result<Routed, Infeasible> {
    for parts in &mut phases {
        parts.sort_by_key(|part| (part.connection, part.round));
    }
    let routing = routing_of_paths(machine, set, to_u32(phases.len()), |phase| {
        let parts = phases[index(phase)].iter();
        parts.map(|part| (part.connection, part.words, part.path.as_slice()))
    })
    .map_err(|error| explain::misshapen(set, &error))?;
    let rounds = phases.iter().map(|parts| parts.iter().map(|part| part.round).collect());
    Ok(Routed { routing, rounds: Some(rounds.collect()), starts: None })
}

/// Rounds and routes, with what the connections ask for.
fn negotiate_rounds(
    machine: &Machine,
    set: &ConnectionSet,
    bounds: &Bounds,
    options: &PlannerOptions,
) -> Result<Option<(round_pathfinder::RoundPlan, Option<Requirements>)>, Infeasible> {
    if set.len() > MAX_PATHFINDER_CONNECTIONS {
        return Ok(None);
    }
    let network = Network::new(machine);
    let clocks = bounds.clocks - u64::from(bounds.phases) * machine.parameters().switch_clocks();
    // What no route can give is refused before anything is tried.
    let mut distances = Distances::new(&network, set.connections().iter().map(|c| c.target.0));
    let hops = |c: &conset_ir::Connection| distances.aim(&network, c.source.0, c.target.0);
    let hops: Vec<u32> = set.connections().iter().map(hops).collect();
    let requirements = Requirements::new(machine, &network, set, &hops)?;
    let found =
        round_pathfinder::search(machine, set, &network, clocks, PATHFINDER_STEPS, options.seed);
    Ok(found.map(|found| (found, requirements)))
}

/// Connections up to which rounds are packed in two ways.
const MAX_TWICE_PACKED: usize = 1 << 15;

/// Plans of rounds of a set without requirements.
fn plans_of_rounds(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
) -> Result<Vec<Routed>, Infeasible> {
    pack_and_number(machine, set, count, round_of, paths, None)
}

/// Plans of rounds: packed into phases, channels numbered.
fn pack_and_number(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
    requirements: Option<&Requirements>,
) -> Result<Vec<Routed>, Infeasible> {
    let packings = packings(machine, set, count, round_of, paths, requirements);
    let plan = |packed: &phase_packing::PhaseAssignment| {
        let members = by_phase(packed.phases, &packed.phase_of);
        let routing = number(machine, set, &members, paths)?;
        let rounds = members
            .iter()
            .map(|members| members.iter().map(|&x| round_of[index(x)]).collect())
            .collect();
        Ok(Routed { routing, rounds: Some(rounds), starts: None })
    };
    packings.iter().map(plan).collect()
}

/// Rounds packed into phases.
fn packings(
    machine: &Machine,
    set: &ConnectionSet,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
    requirements: Option<&Requirements>,
) -> Vec<phase_packing::PhaseAssignment> {
    let channels = machine.parameters().channels_per_cell;
    let network = Network::new(machine);
    let ports = ports(machine, set);
    let ordered = !set.order().is_empty();
    let rounds =
        phase_packing::Rounds { count, round_of, paths, ports: &ports, ordered, requirements };
    let mut packings =
        vec![phase_packing::pack(&network, channels, rounds, phase_packing::PackingRule::Dense)];
    if set.len() <= MAX_TWICE_PACKED {
        let other =
            phase_packing::pack(&network, channels, rounds, phase_packing::PackingRule::InStep);
        packings.extend((other.phases > packings[0].phases).then_some(other));
    }
    packings
}

/// The connections of each phase, ascending.
fn by_phase(phases: u32, phase_of: &[u32]) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); index(phases)];
    for (x, &phase) in phase_of.iter().enumerate() {
        members[index(phase)].push(to_u32(x));
    }
    members
}

fn number(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    members: &[Vec<u32>],
    paths: &Paths,
) -> Result<Routing, Infeasible> {
    let network = Network::new(machine);
    channels::number(machine, set, &network, to_u32(members.len()), |phase| {
        members[index(phase)].iter().map(|&x| (x, paths.of(index(x))))
    })
    .map_err(|error| explain::misshapen(set, &error))
}
