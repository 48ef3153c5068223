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
//! [`refine()`](crate::refine()) is no planner: it changes a plan that is there.
//!
//! No planner looks at what a set is called or where it came from. Which one is best for a set is
//! seen by pricing the candidates, which is the caller's business.

use std::sync::{Arc, OnceLock};

use conset_ir::{Bounds, ConnectionSet, Infeasible, Machine, Routing};

use conset_partition_route::apr::requirements::Requirements;
use conset_partition_route::network::{Distances, Network};
use conset_partition_route::{apr, channels, explain, routing_of_paths};

use crate::paths::Paths;
use crate::plan::Found;
use crate::problem::{Problem, ports};
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
pub struct Options {
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

/// What the searches of a plan may still look at. They have a number of moves; but on large machines
/// a move looks at many cells. What is balanced has a limit of its own and is only counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Cells.
    pub left: u64,
    /// Whether a search ended because there was not enough.
    pub stopped: bool,
}

impl Work {
    /// The work of a plan, by the connections of its set, doubled so many times.
    pub fn of(connections: usize, doubled: u32) -> Self {
        let left = (connections as u64).saturating_mul(LOOKED_AT).min(LOOKED_AT_MAX) << doubled;
        Self { left, stopped: false }
    }

    /// No limit.
    pub fn unlimited() -> Self {
        Self { left: u64::MAX, stopped: false }
    }

    /// Takes off what a search has looked at.
    pub(crate) fn take(&mut self, looked_at: u64) {
        self.left = self.left.saturating_sub(looked_at);
    }
}

/// Cells looked at for each connection, and in all.
const LOOKED_AT: u64 = 60 << 10;
const LOOKED_AT_MAX: u64 = 1 << 27;

impl Default for Options {
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
    options: &Options,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let Task { machine, set, bounds, .. } = task;
    let &Options { seed, doubled, .. } = options;
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    let mut plans = match planner {
        Planner::TorusAapc => ring_rounds(machine, set)?,
        Planner::TranslationSymmetry => regular(machine, set)?.into_iter().collect(),
        Planner::EdgeColoring => searched_rounds(machine, set, bounds, options, work)?,
        Planner::RoundPathfinder => negotiated(machine, set, bounds, options)?,
        Planner::PreemptiveList => preemptive_list(machine, set, bounds, options)?,
        Planner::LoadAnnealing => balanced(machine, set, options, work)?.into_iter().collect(),
        Planner::PhasePathfinder => planned(task, work, |problem| {
            phase_pathfinder::plan(
                problem,
                &phase_pathfinder::Config::default(),
                phase_pathfinder::budget(problem) << doubled,
                seed,
            )
        })?,
        Planner::TranslationSlots => planned(task, work, |problem| {
            let plan = if options.fewest_phases {
                translation_slots::plan_phases
            } else {
                translation_slots::plan
            };
            plan(
                problem,
                &translation_slots::Config::default(),
                translation_slots::budget(problem) << doubled,
                seed,
            )
        })?,
        Planner::WindowedPathfinder => planned(task, work, |problem| {
            windowed_pathfinder::plan(
                problem,
                &windowed_pathfinder::Config::default(),
                windowed_pathfinder::budget(problem) << doubled,
                seed,
            )
        })?,
        Planner::SlotPathfinder => planned(task, work, |problem| {
            slot_pathfinder::plan(
                problem,
                &slot_pathfinder::Config::default(),
                slot_pathfinder::budget(problem) << doubled,
                seed,
            )
        })?,
    };
    plans.retain(|plan| {
        options.max_phases.is_none_or(|most| plan.routing.phases().len() <= most as usize)
    });
    Ok(plans)
}

/// The plan of a planner that chooses starts, which are kept where the machine keeps them.
fn planned(
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

fn ring_rounds(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
) -> Result<Vec<Routed>, Infeasible> {
    if is_constrained(set) || !is_whole(machine) {
        return Ok(Vec::new());
    }
    let Some(template) = torus_aapc::rounds(machine.topology(), set) else { return Ok(Vec::new()) };
    let torus_aapc::Template { rounds, round_of, paths } = template;
    let network = Network::new(machine);
    let (rounds, round_of) = first_fit::compact(&network, set, rounds, round_of, &paths);
    packed_rounds(machine, set, rounds, &round_of, &paths)
}

fn regular(machine: &Arc<Machine>, set: &Arc<ConnectionSet>) -> Result<Option<Routed>, Infeasible> {
    if is_constrained(set) || !is_whole(machine) {
        return Ok(None);
    }
    let channels = machine.parameters().channels_per_cell;
    let Some(found) = translation_symmetry::orbits(machine.topology(), set, channels) else {
        return Ok(None);
    };
    let members = by_phase(found.phases, &found.phase_of);
    let routing = number(machine, set, &members, &found.paths)?;
    Ok(Some(Routed { routing, rounds: None, starts: None }))
}

/// Moves of a search at most.
const MOVES: usize = 1 << 21;

/// Connections routed anew in a search at most.
const ROUTES: usize = 1 << 20;

fn balanced(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &Options,
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
    let moves = set.len().saturating_mul(options.effort as usize).min(MOVES);
    let division = load_annealing::balance(
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
        members[phase as usize].iter().map(|&x| (x, division.paths[x as usize].as_slice()))
    })
    .map_err(|error| explain::misshapen(set, &error))?;
    Ok(Routed { routing, rounds: None, starts: None })
}

fn division_of(routing: &Routing) -> load_annealing::Division {
    let mut division = load_annealing::Division {
        phases: routing.phases().len() as u32,
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
const UNEVEN: u64 = 2;

/// Connections up to which rounds are searched for; beyond, the search gets nowhere.
const SEARCHED: usize = 1 << 13;

/// Shares of the fewest rounds by which there may be more; 0 for none.
const SPARE: [u32; 3] = [0, 16, 4];

fn searched_rounds(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &Options,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let longest = set.connections().iter().map(|c| u64::from(c.words)).max().unwrap_or(0);
    let uneven = longest * set.len() as u64 > UNEVEN * set.words();
    if is_constrained(set) || uneven || set.len() > SEARCHED {
        return Ok(Vec::new());
    }
    let network = Network::new(machine);
    let routes = set.len().saturating_mul(4 * options.effort as usize).min(ROUTES);
    let fewest = fewest_rounds(machine, set, bounds);
    let mut best: Option<edge_coloring::Found> = None;
    let each = (work.left / SPARE.len() as u64).max(1);
    for share in SPARE {
        // Where links are short of room, some more rounds may last less in all.
        let rounds = fewest.saturating_add(fewest.checked_div(share).unwrap_or(0));
        if best.as_ref().is_some_and(|best| best.length <= rounds) {
            break;
        }
        let found =
            edge_coloring::search(machine, set, &network, (rounds, routes), each, options.seed);
        let Some(found) = found else { break };
        work.take(found.looked_at);
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
    packed_rounds(machine, set, best.rounds, &best.round_of, &best.paths)
}

/// Rounds that the bounds of time leave, where every round lasts as long as the longest connection.
fn fewest_rounds(machine: &Machine, set: &ConnectionSet, bounds: &Bounds) -> u32 {
    let parameters = machine.parameters();
    let clocks = bounds.clocks - u64::from(bounds.phases) * parameters.switch_clocks();
    let round = parameters.longest_stream(set);
    u32::try_from(clocks.div_ceil(round.max(1))).unwrap_or(u32::MAX)
}

/// Connections up to which a negotiation is tried, and its steps for each.
const NEGOTIATED: usize = 1 << 17;
const STEPS: usize = 1 << 24;

fn negotiated(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &Options,
) -> Result<Vec<Routed>, Infeasible> {
    let Some((found, wants)) = negotiation(machine, set, bounds, options)? else {
        return Ok(Vec::new());
    };
    packed(machine, set, found.rounds, &found.round_of, &found.paths, wants.as_ref())
}

/// Steps of filling windows for each connection, and at most.
const FILLED: usize = 1 << 13;
const FILLING: usize = 1 << 23;

/// Connections up to which windows are filled.
const WINDOWS: usize = 1 << 13;

/// Fills phases of several lengths.
fn preemptive_list(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &Options,
) -> Result<Vec<Routed>, Infeasible> {
    if is_constrained(set) || set.len() > WINDOWS {
        return Ok(Vec::new());
    }
    let network = Network::new(machine);
    let steps = set.len().saturating_mul(FILLED).min(FILLING);
    let plan = |phases: preemptive_list::Phases| {
        let mut phases = phases;
        // One part of a connection at most is in a phase.
        phases.iter_mut().for_each(|streams| streams.sort_by_key(|stream| stream.connection));
        let routing =
            channels::number_parts(machine, set, &network, phases.len() as u32, |phase| {
                let streams = phases[phase as usize].iter();
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
    let routing = routing_of_paths(machine, set, phases.len() as u32, |phase| {
        let parts = phases[phase as usize].iter();
        parts.map(|part| (part.connection, part.words, part.path.as_slice()))
    })
    .map_err(|error| explain::misshapen(set, &error))?;
    let rounds = phases.iter().map(|parts| parts.iter().map(|part| part.round).collect());
    Ok(Routed { routing, rounds: Some(rounds.collect()), starts: None })
}

/// Rounds and routes, with what the connections ask for.
fn negotiation(
    machine: &Machine,
    set: &ConnectionSet,
    bounds: &Bounds,
    options: &Options,
) -> Result<Option<(round_pathfinder::Found, Option<Requirements>)>, Infeasible> {
    if set.len() > NEGOTIATED {
        return Ok(None);
    }
    let network = Network::new(machine);
    let clocks = bounds.clocks - u64::from(bounds.phases) * machine.parameters().switch_clocks();
    // What no route can give is refused before anything is tried.
    let mut distances = Distances::new(&network, set.connections().iter().map(|c| c.target.0));
    let hops = |c: &conset_ir::Connection| distances.aim(&network, c.source.0, c.target.0);
    let hops: Vec<u32> = set.connections().iter().map(hops).collect();
    let wants = Requirements::new(machine, &network, set, &hops)?;
    let found = round_pathfinder::negotiate(machine, set, &network, clocks, STEPS, options.seed);
    Ok(found.map(|found| (found, wants)))
}

/// Connections up to which rounds are packed in two ways.
const TWICE: usize = 1 << 15;

/// Plans of rounds of a set without requirements.
fn packed_rounds(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
) -> Result<Vec<Routed>, Infeasible> {
    packed(machine, set, count, round_of, paths, None)
}

/// Plans of rounds: packed into phases, channels numbered.
fn packed(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
    wants: Option<&Requirements>,
) -> Result<Vec<Routed>, Infeasible> {
    let packings = packings(machine, set, count, round_of, paths, wants);
    let plan = |packed: &phase_packing::Packed| {
        let members = by_phase(packed.phases, &packed.phase_of);
        let routing = number(machine, set, &members, paths)?;
        let rounds = members
            .iter()
            .map(|members| members.iter().map(|&x| round_of[x as usize]).collect())
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
    wants: Option<&Requirements>,
) -> Vec<phase_packing::Packed> {
    let channels = machine.parameters().channels_per_cell;
    let network = Network::new(machine);
    let sides = ports(machine, set);
    let ordered = !set.order().is_empty();
    let rounds = phase_packing::Rounds { count, round_of, paths, sides: &sides, ordered, wants };
    let mut packings =
        vec![phase_packing::pack(&network, channels, rounds, phase_packing::Packing::Dense)];
    if set.len() <= TWICE {
        let other = phase_packing::pack(&network, channels, rounds, phase_packing::Packing::InStep);
        packings.extend((other.phases > packings[0].phases).then_some(other));
    }
    packings
}

/// The connections of each phase, ascending.
fn by_phase(phases: u32, phase_of: &[u32]) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); phases as usize];
    for (x, &phase) in phase_of.iter().enumerate() {
        members[phase as usize].push(x as u32);
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
    channels::number(machine, set, &network, members.len() as u32, |phase| {
        members[phase as usize].iter().map(|&x| (x, paths.of(x as usize)))
    })
    .map_err(|error| explain::misshapen(set, &error))
}
