//! Plans of all-to-all and other translation-invariant sets.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_planner::translation_slots::{TranslationConfig, budget, plan, plan_phases};
use conset_planner::{Found, Plan, Problem};

fn shifted(machine: &Machine, keep: impl Fn(u32) -> Option<u32>) -> Arc<ConnectionSet> {
    let dims = machine.topology().dims().unwrap();
    let cells = to_u32(machine.cell_count());
    let pairs = (0..cells).flat_map(|s| (0..cells).map(move |t| (s, t)));
    let connections = pairs.filter_map(|(s, t)| {
        let (mut a, mut b, mut stride, mut offset) = (s, t, 1, 0);
        for &d in &dims {
            offset += stride * ((b % d + d - a % d) % d);
            (a, b, stride) = (a / d, b / d, stride * d);
        }
        keep(offset).map(|words| Connection::new(CellId(s), CellId(t), words))
    });
    Arc::new(ConnectionSet::new("s", connections.collect()).unwrap())
}

fn machine(spec: &str, parameters: &[(&str, &str)]) -> Arc<Machine> {
    let mut all = Machine::from_spec(spec).unwrap().parameters().clone();
    parameters.iter().for_each(|(name, value)| all.set(name, value).unwrap());
    let topology = Machine::from_spec(spec).unwrap().topology().clone();
    Arc::new(Machine::new("m", topology, all, Vec::new(), Vec::new()).unwrap())
}

type PlanFunction = fn(&Problem<'_>, &TranslationConfig, u64, u64) -> Option<Found>;

/// Plans, checks that all words are sent and no channels are overused, and returns the plan
/// with the bounds.
fn check(
    planner: PlanFunction,
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
) -> Option<(Plan, conset_ir::Bounds)> {
    let bounds = conset_partition_route::bounds::bounds(machine, set).unwrap().summary();
    let problem = Problem::new(machine, set, bounds)?;
    let found = planner(&problem, &TranslationConfig::default(), budget(&problem), 1)?;
    let mut words = vec![0; set.len()];
    for phase in &found.plan.phases {
        let mut taken = vec![0; machine.cell_count()];
        for stream in phase {
            let c = &set.connections()[index(stream.connection)];
            words[index(stream.connection)] += stream.words;
            assert_eq!((stream.cells[0], *stream.cells.last().unwrap()), (c.source.0, c.target.0));
            stream.cells.iter().for_each(|&cell| taken[index(cell)] += 1);
        }
        assert!(taken.iter().all(|&t| t <= machine.parameters().channels_per_cell));
    }
    assert!(set.connections().iter().zip(&words).all(|(c, &words)| c.words == words));
    // The routing's own checks: cells next to each other, live links.
    let (_, starts) = found.plan.routing(machine, set).unwrap();
    assert_eq!(
        starts.iter().map(Vec::len).sum::<usize>(),
        found.plan.phases.iter().map(Vec::len).sum::<usize>()
    );
    Some((found.plan, bounds))
}

/// Clocks without those of the switches, of a plan and of its bound.
fn without_switches(machine: &Machine, plan: &Plan, bounds: conset_ir::Bounds) -> (u64, u64) {
    let switch = machine.parameters().switch_clocks();
    let switches = to_u64(plan.phases.len()) * switch;
    (plan.clocks - switches, bounds.clocks - u64::from(bounds.phases) * switch)
}

#[test]
fn all_to_all_is_near_the_bound_on_tori_of_any_sides() {
    let specs = ["torus:4x4", "torus:5x5", "torus:6x6", "torus:7x7", "torus:4x6", "torus:5x7"];
    let more = ["torus:3x5x7", "ring:8", "ring:7", "torus:2x3", "hypercube:4", "torus:1x5"];
    for spec in specs.into_iter().chain(more) {
        let machine = machine(spec, &[]);
        let set = shifted(&machine, |offset| (offset > 0).then_some(2048));
        let (plan, bounds) = check(plan, &machine, &set).unwrap();
        let (clocks, bound) = without_switches(&machine, &plan, bounds);
        // 6 % more, or a slot more and what words take on their way.
        assert!(clocks <= bound + (bound * 6 / 100).max(4300), "{spec} {clocks} {bound}");
    }
}

#[test]
fn any_invariant_set_is_planned_and_others_are_not() {
    // A stencil of unequal words with connections of cells to themselves, a long shift, half
    // duplex with slow agents, few channels.
    let parameters: [&[(&str, &str)]; 3] = [
        &[],
        &[("duplex", "half"), ("access_clocks_per_word", "10")],
        &[("channels_per_cell", "4"), ("stream_setup", "50")],
    ];
    for parameters in parameters {
        let machine = machine("torus:6x4", parameters);
        let stencil = [(0, 30), (1, 100), (5, 90), (6, 100), (18, 7)];
        let find = |offset| stencil.iter().find(|row| row.0 == offset).map(|row| row.1);
        let set = shifted(&machine, find);
        assert!(check(plan, &machine, &set).is_some(), "{parameters:?}");
        assert!(check(plan_phases, &machine, &set).is_some(), "{parameters:?}");
        let long = shifted(&machine, |offset| (offset == 15).then_some(100));
        assert!(check(plan, &machine, &long).is_some(), "{parameters:?}");
    }
    let machine = machine("torus:3x3", &[]);
    let empty = Arc::new(ConnectionSet::new("s", Vec::new()).unwrap());
    assert!(check(plan, &machine, &empty).is_none());
    let mesh = Arc::new(Machine::from_spec("mesh:3x3").unwrap());
    let set = shifted(&mesh, |offset| (offset > 0).then_some(1));
    assert!(check(plan, &mesh, &set).is_none());
}

#[test]
fn phases_are_as_few_as_channels_allow() {
    for spec in ["torus:4x4", "torus:6x6", "torus:7x7", "torus:8x8", "torus:9x9"] {
        let machine = machine(spec, &[]);
        let set = shifted(&machine, |offset| (offset > 0).then_some(1));
        let (plan, bounds) = check(plan_phases, &machine, &set).unwrap();
        assert_eq!(to_u32(plan.phases.len()), bounds.phases, "{spec}");
    }
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let machine = machine("torus:5x6", &[]);
    let set = shifted(&machine, |offset| (offset > 0).then_some(64));
    let plan = || check(plan, &machine, &set).unwrap().0;
    assert_eq!(plan(), plan());
}

/// Parameters of a network on which a word takes one clock on each link and in each agent.
const ONE_CLOCK: [(&str, &str); 6] = [
    ("timed_starts", "1"),
    ("link_clocks_per_word", "1"),
    ("access_clocks_per_word", "1"),
    ("stream_setup", "0"),
    ("channels_per_cell", "4096"),
    ("streams", "1"),
];

#[test]
fn single_words_are_pipelined_and_never_share_a_link() {
    for spec in ["torus:3x3", "torus:5x5", "torus:4x6", "torus:8x8", "torus:3x4x5", "ring:9"] {
        let machine = machine(spec, &ONE_CLOCK);
        // Connections of cells to themselves too.
        let set = shifted(&machine, |_| Some(1));
        let (plan, bounds) = check(plan, &machine, &set).unwrap();
        assert_eq!(plan.phases.len(), 1, "{spec}");
        let mut busy = std::collections::BTreeSet::new();
        for stream in &plan.phases[0] {
            for (hop, pair) in stream.cells.windows(2).enumerate() {
                let use_of_link = (pair[0], pair[1], stream.start + to_u64(hop));
                assert!(busy.insert(use_of_link), "{spec}: {use_of_link:?} is taken twice");
            }
        }
        // A slot for each word over its whole route would take 1.5 times the bound and more.
        let (clocks, bound) = without_switches(&machine, &plan, bounds);
        let diameter: u32 = machine.topology().dims().unwrap().iter().map(|size| size / 2).sum();
        let most = bound + bound / 10 + u64::from(diameter) + 2;
        assert!(clocks <= most, "{spec}: {clocks} clocks, bound {bound}");
    }
}

#[test]
fn single_words_are_not_pipelined_with_too_few_channels() {
    let mut parameters = ONE_CLOCK;
    parameters[4].1 = "20";
    let machine = machine("torus:4x4", &parameters);
    let set = shifted(&machine, |offset| (offset > 0).then_some(1));
    let (plan, _) = check(plan, &machine, &set).unwrap();
    assert!(plan.phases.len() > 1);
}

#[test]
fn single_words_on_slow_links_and_slow_agents() {
    for (link, access, setup) in [("1000", "1", "0"), ("1", "1000", "7"), ("3", "2", "500")] {
        let mut parameters = ONE_CLOCK;
        (parameters[1].1, parameters[2].1, parameters[3].1) = (link, access, setup);
        let machine = machine("torus:3x4", &parameters);
        let set = shifted(&machine, |_| Some(1));
        let (plan, bounds) = check(plan, &machine, &set).unwrap();
        assert!(plan.clocks >= bounds.clocks, "{link} {access} {setup}");
    }
}
