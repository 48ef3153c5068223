//! The portfolio: all planners behind one interface.
//!
//! A planner takes a [`Task`] and returns candidates: routings, with the *round* or the planned
//! start of each route if the planner determines them. Connections of a round share no agent and no
//! link, so a round lasts as long as its longest connection. The scheduler preserves rounds and
//! starts. A planner that does not apply to a set returns no candidates.
//!
//! | planner | for | how |
//! |---|---|---|
//! | [`Planner::OnePhase`] | networks without cycles whose channels suffice for all connections | `one_phase`: one phase with the only routes |
//! | [`Planner::Aapc`] | dense sets on a torus, ring, hypercube or mesh | `grid_aapc`: products of the contention-free steps or rounds of rings (`ring_aapc`, `ring_rounds`) or lines (`line_rounds`); `first_fit` fills idle entries; `phase_packing` packs rounds into phases |
//! | [`Planner::TranslationSymmetry`] | sets that are invariant under translations of a torus; fewest phases | `translation_symmetry`: plans one connection and copies it to all translates |
//! | [`Planner::EdgeColoring`] | sets of equal words, or nearly | `edge_coloring`: a coloring without conflicts at agents and few at links; `phase_packing` |
//! | [`Planner::RoundPathfinder`] | any set, also with an order | `round_pathfinder`: chooses rounds and routes together by negotiated congestion; `phase_packing` |
//! | [`Planner::PreemptiveList`] | any set without order or requirements | `preemptive_list`: list scheduling in phases of given lengths; connections are cut at the end of a phase |
//! | [`Planner::PhasePathfinder`] | many short streams, or few connections per agent | [`phase_pathfinder`]: few phases, and routes, by negotiated congestion over channels, agents and links; with starts, or with streams that share links |
//! | [`Planner::LoadAnnealing`] | any set | the paper's algorithm, then `load_annealing`: simulated annealing balances the loads of its phases |
//! | [`Planner::TranslationSlots`] | sets that are invariant under translations of a torus, on machines with timed starts | [`translation_slots`]: assigns time slots to the connections of one cell and shifts them for the others |
//! | [`Planner::DensePathfinder`] | large sets of long routes | [`dense_pathfinder`]: negotiated congestion over all phases; streams share links |
//! | [`Planner::WindowedPathfinder`] | large sets, on machines with timed starts | [`windowed_pathfinder`]: packs one phase after the other; negotiated congestion for the last ones |
//! | [`Planner::SlotPathfinder`] | machines with timed starts | [`slot_pathfinder`]: slots of time, phases and routes by negotiated congestion |
//!
//! [`local_search()`](crate::local_search()) and [`ejection_search`](crate::ejection_search) are not
//! planners: they improve an existing plan.
//!
//! No planner uses the name or the origin of a set. The caller prices the candidates and chooses
//! the best.

mod candidates;

use std::sync::{Arc, OnceLock};

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Bounds, ConnectionSet, Infeasible, Machine, Routing};

use conset_partition_route::apr::requirements::Requirements;
use conset_partition_route::network::{Distances, Network};
use conset_partition_route::{apr, channels, explain};

pub(crate) use candidates::{Part, plan_of_parts};
use candidates::{by_phase, number, pack_and_number};

use crate::edge_coloring::ColoringLimits;
use crate::interrupt::Interrupt;
use crate::plan::{Found, Plan};
use crate::problem::Problem;
use crate::work::{Limits, Work};
use crate::{
    dense_pathfinder, edge_coloring, first_fit, grid_aapc, load_annealing, one_phase,
    phase_pathfinder, preemptive_list, round_pathfinder, slot_pathfinder, translation_slots,
    translation_symmetry, windowed_pathfinder,
};

/// A planner of the portfolio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planner {
    /// One phase with the only routes, on networks without cycles.
    OnePhase,
    /// The rounds of all-to-all communication on a torus or mesh.
    Aapc,
    /// Phases for translation-invariant sets: one connection is planned for all its translates.
    TranslationSymmetry,
    /// Rounds by edge coloring, for sets of equal or nearly equal words.
    EdgeColoring,
    /// Rounds and routes by negotiated congestion.
    RoundPathfinder,
    /// Preemptive list scheduling in phases of a given length.
    PreemptiveList,
    /// Few phases by negotiated congestion over channels, agents and links.
    PhasePathfinder,
    /// The phases of the paper's algorithm, balanced by simulated annealing.
    LoadAnnealing,
    /// Time slots for the connections of one cell of a torus, shifted for the other cells; for
    /// machines with timed starts.
    TranslationSlots,
    /// Phases and shortest routes by negotiated congestion, for large sets of long routes.
    DensePathfinder,
    /// Packs one phase after the other, for large sets on machines with timed starts.
    WindowedPathfinder,
    /// Time slots, phases and routes by negotiated congestion, for machines with timed starts.
    SlotPathfinder,
}

impl Planner {
    /// The name of the planner in reports.
    pub fn name(self) -> &'static str {
        match self {
            Planner::OnePhase => "one-phase",
            Planner::Aapc => "aapc",
            Planner::TranslationSymmetry => "translation-symmetry",
            Planner::EdgeColoring => "edge-coloring",
            Planner::RoundPathfinder => "round-pathfinder",
            Planner::PreemptiveList => "preemptive-list",
            Planner::PhasePathfinder => "phase-pathfinder",
            Planner::LoadAnnealing => "load-annealing",
            Planner::TranslationSlots => "translation-slots",
            Planner::DensePathfinder => "dense-pathfinder",
            Planner::WindowedPathfinder => "windowed-pathfinder",
            Planner::SlotPathfinder => "slot-pathfinder",
        }
    }

    /// Whether the planner has its own work budget, which depends on the size of the problem.
    pub fn has_own_budget(self) -> bool {
        matches!(
            self,
            Self::PhasePathfinder
                | Self::TranslationSlots
                | Self::DensePathfinder
                | Self::WindowedPathfinder
                | Self::SlotPathfinder
        )
    }
}

/// A set to be planned on a machine. Planners share the data derived from it.
pub struct Task<'a> {
    machine: &'a Arc<Machine>,
    set: &'a Arc<ConnectionSet>,
    bounds: Bounds,
    interrupt: Interrupt,
    problem: OnceLock<Option<Problem<'a>>>,
}

impl<'a> Task<'a> {
    /// A task for a set on a machine, with the bounds of the set
    /// ([`conset_partition_route::bounds::bounds`]).
    pub fn new(machine: &'a Arc<Machine>, set: &'a Arc<ConnectionSet>, bounds: Bounds) -> Self {
        let interrupt = Interrupt::default();
        Self { machine, set, bounds, interrupt, problem: OnceLock::new() }
    }

    /// The same, whose planners end when `interrupt` asks for it.
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, problem: OnceLock::new(), ..self }
    }

    /// What ends the planners early.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
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

    /// The problem; `None` as [`Problem::new`].
    pub(crate) fn problem(&self) -> Option<&Problem<'a>> {
        let new = || {
            let problem = Problem::new(self.machine, self.set, self.bounds)?;
            Some(problem.interrupted_by(self.interrupt.clone()))
        };
        self.problem.get_or_init(new).as_ref()
    }
}

/// The options of a planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerOptions {
    /// The seed of random choices.
    pub seed: u64,
    /// Rip-up and reroute iterations of the paper's router.
    pub rip_up_iterations: u32,
    /// Moves of a search per connection.
    pub effort: u32,
    /// Whether to minimise phases rather than clocks.
    pub fewest_phases: bool,
    /// The number of times that work budgets are doubled.
    pub doubled: u32,
    /// The maximum number of phases; `None` for no limit.
    pub max_phases: Option<u32>,
    /// The clocks of the best plan so far ([`Limits::clocks`]).
    pub best_clocks: u64,
}

impl Default for PlannerOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            rip_up_iterations: 8,
            effort: 200,
            fewest_phases: false,
            doubled: 0,
            max_phases: None,
            best_clocks: u64::MAX,
        }
    }
}

/// A candidate: phases and routes, with rounds or starts if the planner determines them.
#[derive(Clone, Debug)]
pub struct Routed {
    /// The phases and routes.
    pub routing: Routing,
    /// The round of each route, by phase, in the order of the routes. The rounds of a phase run in
    /// ascending order.
    pub rounds: Option<Vec<Vec<u32>>>,
    /// The planned start of each route, by phase, in clocks from the beginning of the phase. Only
    /// present without `rounds`.
    pub starts: Option<Vec<Vec<u64>>>,
}

/// Runs one planner and returns its candidates, the one with the fewest phases first.
///
/// Returns none if the planner does not apply to the set or the machine, or needs more phases than
/// allowed. Subtracts the cells expanded from `work`.
///
/// # Errors
/// If an end of a connection is not a live cell with an agent, or a requirement cannot be met.
pub fn plans(
    task: &Task<'_>,
    planner: Planner,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let Task { machine, set, bounds, .. } = task;
    let &PlannerOptions { seed, doubled, best_clocks, .. } = options;
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    let mut plans = match planner {
        Planner::OnePhase => one_phase_plan(machine, set)?.into_iter().collect(),
        Planner::Aapc => grid_aapc_plans(machine, set)?,
        Planner::TranslationSymmetry => {
            translation_symmetry_plan(machine, set)?.into_iter().collect()
        }
        Planner::EdgeColoring => edge_coloring_plans(task, options, work)?,
        Planner::RoundPathfinder => round_pathfinder_plans(task, options)?,
        Planner::PreemptiveList => preemptive_list_plans(machine, set, bounds, options)?,
        Planner::LoadAnnealing => load_annealing_plan(task, options, work)?.into_iter().collect(),
        Planner::PhasePathfinder => phase_pathfinder_plans(task, options, work)?,
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
        Planner::DensePathfinder => timed_plan(task, work, |problem| {
            dense_pathfinder::plan(
                problem,
                &dense_pathfinder::DenseConfig::default(),
                Limits { work: dense_pathfinder::budget(problem) << doubled, clocks: best_clocks },
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
                &slot_pathfinder::SlotConfig::default(),
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

/// The candidate of a planner that chooses starts. The starts are dropped if the machine has no
/// timed starts.
fn timed_plan(
    task: &Task<'_>,
    work: &mut Work,
    plan: impl FnOnce(&Problem<'_>) -> Option<Found>,
) -> Result<Vec<Routed>, Infeasible> {
    let Some(found) = task.problem().and_then(plan) else { return Ok(Vec::new()) };
    work.take(found.work);
    let timed = task.machine.parameters().has_timed_starts();
    Ok(vec![routed(task, &found.plan, timed)?])
}

/// The candidate of a plan, with or without its starts.
pub(crate) fn routed(
    task: &Task<'_>,
    plan: &Plan,
    with_starts: bool,
) -> Result<Routed, Infeasible> {
    let Task { machine, set, .. } = task;
    let (routing, starts) =
        plan.routing(machine, set).map_err(|error| explain::misshapen(set, &error))?;
    Ok(Routed { routing, rounds: None, starts: with_starts.then_some(starts) })
}

/// The plans of the phase pathfinder: one with starts, and some whose streams share links.
fn phase_pathfinder_plans(
    task: &Task<'_>,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let plan = |problem: &Problem<'_>| {
        let default = phase_pathfinder::PhaseConfig::default();
        let switches = if options.fewest_phases { u64::MAX } else { default.switches };
        let config = phase_pathfinder::PhaseConfig { switches, ..default };
        let work = phase_pathfinder::budget(problem) << options.doubled;
        let limits = Limits { work, clocks: options.best_clocks };
        phase_pathfinder::plans(problem, &config, limits, options.seed)
    };
    let Some(found) = task.problem().and_then(plan) else { return Ok(Vec::new()) };
    work.take(found.work);
    let timed = task.machine.parameters().has_timed_starts();
    let with_starts = found.with_starts.iter().map(|plan| routed(task, plan, timed));
    with_starts.chain(found.shared.iter().map(|plan| routed(task, plan, false))).collect()
}

/// Whether the set has an order or requirements.
fn is_constrained(set: &ConnectionSet) -> bool {
    !set.order().is_empty() || set.has_requirements()
}

fn is_whole(machine: &Machine) -> bool {
    machine.dead_cells().is_empty() && machine.dead_links().is_empty()
}

fn one_phase_plan(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
) -> Result<Option<Routed>, Infeasible> {
    if set.has_requirements() || set.is_empty() {
        return Ok(None);
    }
    let network = Network::new(machine);
    let channels = machine.parameters().channels_per_cell;
    let Some(paths) = one_phase::paths(&network, set, channels) else { return Ok(None) };
    let members = [(0..to_u32(set.len())).collect()];
    let routing = number(machine, set, &members, &paths)?;
    Ok(Some(Routed { routing, rounds: None, starts: None }))
}

fn grid_aapc_plans(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
) -> Result<Vec<Routed>, Infeasible> {
    if is_constrained(set) || !is_whole(machine) {
        return Ok(Vec::new());
    }
    let timed = machine.parameters().has_timed_starts();
    let Some(grid_rounds) = grid_aapc::rounds(machine.topology(), set, timed) else {
        return Ok(Vec::new());
    };
    let grid_aapc::GridRounds { rounds, round_of, paths } = grid_rounds;
    let network = Network::new(machine);
    let (rounds, round_of) = first_fit::fill_rounds(&network, set, rounds, round_of, &paths);
    pack_and_number(machine, set, rounds, &round_of, &paths, None)
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

/// The maximum number of moves of load annealing.
const MOVE_LIMIT: usize = 1 << 21;

/// The maximum number of connections that edge coloring reroutes.
const ROUTE_LIMIT: usize = 1 << 20;

fn load_annealing_plan(
    task: &Task<'_>,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Option<Routed>, Infeasible> {
    let Task { machine, set, .. } = task;
    let first = apr::RouterOptions {
        seed: options.seed,
        rip_up_iterations: options.rip_up_iterations,
        max_phases: options.max_phases,
        ..apr::RouterOptions::default()
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
        &task.interrupt,
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

/// The greatest ratio of the longest connection to the mean, in words, for edge coloring.
const MAX_UNEVENNESS: u64 = 2;

/// The maximum number of connections for edge coloring.
const MAX_COLORED_CONNECTIONS: usize = 1 << 17;

/// The maximum number of connections for which a coloring is annealed. Larger sets have one only if
/// the initial coloring shares no links: annealing took seconds and gained nothing.
pub const MAX_ANNEALED_CONNECTIONS: usize = 1 << 10;

/// Edge coloring may use `1 / n` more rounds than the fewest, for each `n`; 0 for none.
const SPARE_ROUND_SHARES: [u32; 3] = [0, 16, 4];

fn edge_coloring_plans(
    task: &Task<'_>,
    options: &PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let Task { machine, set, bounds, interrupt, .. } = task;
    let longest = set.connections().iter().map(|c| u64::from(c.words)).max().unwrap_or(0);
    let uneven = longest * to_u64(set.len()) > MAX_UNEVENNESS * set.words();
    if is_constrained(set) || set.len() > MAX_COLORED_CONNECTIONS {
        return Ok(Vec::new());
    }
    let network = Network::new(machine);
    let routes = match set.len() {
        0..=MAX_ANNEALED_CONNECTIONS if !uneven => {
            (set.len() * 4 * index(options.effort)).min(ROUTE_LIMIT)
        }
        _ => 0,
    };
    let fewest = fewest_rounds(machine, set, bounds);
    let mut best: Option<edge_coloring::Coloring> = None;
    let each = (work.left / to_u64(SPARE_ROUND_SHARES.len())).max(1);
    for share in SPARE_ROUND_SHARES {
        // Where links are short of room, some more rounds may last less in all.
        let rounds = fewest.saturating_add(fewest.checked_div(share).unwrap_or(0));
        if best.as_ref().is_some_and(|best| best.length <= rounds) {
            break;
        }
        let limits = ColoringLimits { rounds, routes, expanded: each, interrupt };
        let found = edge_coloring::search(machine, set, &network, &limits, options.seed);
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
    pack_and_number(machine, set, best.rounds, &best.round_of, &best.paths, None)
}

/// The number of rounds that fit into the bound, each as long as the longest connection.
fn fewest_rounds(machine: &Machine, set: &ConnectionSet, bounds: &Bounds) -> u32 {
    let parameters = machine.parameters();
    let clocks = bounds.clocks - u64::from(bounds.phases) * parameters.switch_clocks();
    let round = parameters.longest_stream(set);
    u32::try_from(clocks.div_ceil(round.max(1))).unwrap_or(u32::MAX)
}

/// The maximum number of connections for the round pathfinder, and its step limit.
const MAX_PATHFINDER_CONNECTIONS: usize = 1 << 17;
const PATHFINDER_STEPS: usize = 1 << 24;

fn round_pathfinder_plans(
    task: &Task<'_>,
    options: &PlannerOptions,
) -> Result<Vec<Routed>, Infeasible> {
    let Task { machine, set, .. } = task;
    let Some((found, requirements)) = negotiate_rounds(task, options)? else {
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

/// Steps of list scheduling for each connection, and in total.
const LIST_STEPS_PER_CONNECTION: usize = 1 << 13;
const LIST_STEP_LIMIT: usize = 1 << 23;

/// The maximum number of connections for list scheduling.
const MAX_LIST_CONNECTIONS: usize = 1 << 13;

/// The candidates of list scheduling with several phase lengths.
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

/// The rounds and routes of the round pathfinder, and the requirements of the set.
fn negotiate_rounds(
    task: &Task<'_>,
    options: &PlannerOptions,
) -> Result<Option<(round_pathfinder::RoundPlan, Option<Requirements>)>, Infeasible> {
    let Task { machine, set, bounds, .. } = task;
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
