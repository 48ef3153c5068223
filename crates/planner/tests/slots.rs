//! Plans by slots and packed phases keep every rule that their machine has, whatever the set.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Parameters, Topology,
};
use conset_partition_route::bounds;
use conset_planner::{Plan, Problem, slots, windows};
use proptest::prelude::*;

const BUDGET: u64 = 1 << 17;

fn planned(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<Plan> {
    let bounds = bounds::bounds(machine, set).ok()?.summary();
    let problem = Problem::new(machine, set, bounds)?;
    let found = slots::plan(&problem, &slots::Config::default(), BUDGET, seed)?;
    assert!(found.plan.clocks >= bounds.clocks, "{} of {bounds:?}", found.plan.clocks);
    Some(found.plan)
}

fn packed(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<Plan> {
    let bounds = bounds::bounds(machine, set).ok()?.summary();
    let problem = Problem::new(machine, set, bounds)?;
    let config = windows::Config { window: [1, 2], ..windows::Config::default() };
    let found = windows::plan(&problem, &config, BUDGET, seed)?;
    assert!(found.plan.clocks >= bounds.clocks, "{} of {bounds:?}", found.plan.clocks);
    Some(found.plan)
}

/// When a stream is on something: from, to.
type Span = (u64, u64);

/// The most spans at one time.
fn depth(spans: &[Span]) -> usize {
    let at = |clock: u64| spans.iter().filter(|s| s.0 <= clock && clock < s.1).count();
    spans.iter().map(|span| at(span.0)).max().unwrap_or(0)
}

/// Recounts a plan from the machine model alone.
fn check(machine: &Machine, set: &ConnectionSet, plan: &Plan) {
    let p = machine.parameters();
    let (link, access) = (u64::from(p.link_clocks_per_word), u64::from(p.access_clocks_per_word));
    let (setup, share) = (u64::from(p.stream_setup), (access / link).max(1) as usize);
    let mut carried = vec![0u64; set.len()];
    let mut clocks = 0;
    for streams in &plan.phases {
        let mut channels = vec![0; machine.cell_count()];
        let mut ports: BTreeMap<(u32, bool), Vec<Span>> = BTreeMap::new();
        let mut links: BTreeMap<(u32, u32), Vec<Span>> = BTreeMap::new();
        let mut last = 0;
        for stream in streams {
            let c = &set.connections()[stream.connection as usize];
            assert_eq!(stream.cells[0], c.source.0);
            assert_eq!(stream.cells[stream.cells.len() - 1], c.target.0);
            carried[stream.connection as usize] += u64::from(stream.words);
            stream.cells.iter().for_each(|&cell| channels[cell as usize] += 1);
            let hops = stream.cells.len() as u64 - 1;
            let pace = if hops == 0 { access } else { access.max(link) };
            let itself = c.source == c.target && p.duplex == Duplex::Half;
            let times = if itself { 2 } else { 1 };
            let end = stream.start + times * (u64::from(stream.words) * pace + setup);
            ports.entry((c.source.0, false)).or_default().push((stream.start, end));
            if !itself {
                let receives = p.duplex == Duplex::Full;
                ports.entry((c.target.0, receives)).or_default().push((stream.start, end));
            }
            for (hop, pair) in stream.cells.windows(2).enumerate() {
                let late = hop as u64 * link;
                let span = (stream.start + setup + late, end + late);
                links.entry((pair[0], pair[1])).or_default().push(span);
            }
            let latency = if itself { 0 } else { 2 * access + hops * link - pace };
            last = last.max(end + latency);
        }
        assert!(channels.into_iter().all(|used| used <= p.channels_per_cell));
        assert!(ports.values().all(|spans| depth(spans) <= 1));
        for (&(a, b), spans) in &links {
            let parallel = machine.links_between(CellId(a), CellId(b)).count();
            assert!(parallel > 0, "c{a} and c{b} are no neighbours");
            assert!(depth(spans) <= parallel * share, "c{a} to c{b}: {spans:?}");
        }
        clocks += p.switch_clocks() + last;
    }
    assert_eq!(plan.clocks, clocks);
    for (c, carried) in set.connections().iter().zip(carried) {
        assert_eq!(carried, u64::from(c.words));
    }
}

fn machine() -> impl Strategy<Value = Arc<Machine>> {
    let dims = || prop::collection::vec(1..=4u32, 1..=3);
    let topology = prop_oneof![
        dims().prop_map(|dims| Topology::Torus { dims }),
        dims().prop_map(|dims| Topology::Mesh { dims }),
        (1..9u32).prop_map(|cells| Topology::Ring { cells }),
        (0..5u32).prop_map(|dimension| Topology::Hypercube { dimension }),
        (1..17u32).prop_map(|leaves| Topology::FatTree { leaves }),
    ];
    let few = |most: u32| prop_oneof![Just(0), 1..most];
    let clocks = (1..4u32, 1..12u32, few(50), few(600));
    (topology, clocks, any::<bool>(), 2..13u32).prop_map(|(topology, clocks, half, channels)| {
        let parameters = Parameters {
            link_clocks_per_word: clocks.0,
            access_clocks_per_word: clocks.1,
            stream_setup: clocks.2,
            t_sync: clocks.3,
            duplex: if half { Duplex::Half } else { Duplex::Full },
            channels_per_cell: channels,
            timed_starts: 1,
            ..Parameters::iwarp()
        };
        Arc::new(Machine::new("m", topology, parameters, vec![], vec![]).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_rule(
        machine in machine(),
        sends in prop::collection::vec((any::<u32>(), any::<u32>(), 1..900u32), 1..60),
        seed in 0..4u64,
    ) {
        let cells: Vec<CellId> = machine.endpoints().collect();
        let cell = |number: u32| cells[number as usize % cells.len()];
        let connect = |&(a, b, words): &(u32, u32, u32)| Connection::new(cell(a), cell(b), words);
        let set = ConnectionSet::new("s", sends.iter().map(connect).collect()).unwrap();
        let set = Arc::new(set);
        if let Some(plan) = planned(&machine, &set, seed) {
            check(&machine, &set, &plan);
            prop_assert_eq!(planned(&machine, &set, seed), Some(plan));
        }
        let plan = packed(&machine, &set, seed).expect("packing plans any set");
        check(&machine, &set, &plan);
        prop_assert_eq!(packed(&machine, &set, seed), Some(plan));
    }
}

#[test]
fn a_permutation_of_neighbours_is_at_its_bound() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    let next = |cell: u32| cell / 4 * 4 + (cell + 1) % 4;
    let connect = |cell: u32| Connection::new(CellId(cell), CellId(next(cell)), 100);
    let set = Arc::new(ConnectionSet::new("s", (0..16).map(connect).collect()).unwrap());
    let plan = planned(&machine, &set, 0).unwrap();
    check(&machine, &set, &plan);
    // A switch, 100 words of 2 clocks, and the way of the last.
    assert_eq!((plan.phases.len(), plan.clocks), (1, 528 + 200 + 4));
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    let connection = Connection::new(CellId(0), CellId(1), 5);
    let ordered = ConnectionSet::new("s", vec![connection.clone(), connection.clone()]).unwrap();
    let ordered = ordered.with_order(vec![(ConnectionId(0), ConnectionId(1))]).unwrap();
    let asking = Connection { max_latency: Some(9), ..connection };
    let asking = ConnectionSet::new("s", vec![asking]).unwrap();
    for set in [ordered, asking, ConnectionSet::new("s", vec![]).unwrap()] {
        let set = Arc::new(set);
        assert_eq!(planned(&machine, &set, 0), None);
        assert_eq!(packed(&machine, &set, 0), None);
    }
}

#[test]
fn phases_are_packed_nearly_to_the_last_channel() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:16x16").unwrap());
    // Some thousand different pairs, far and near.
    let connect = |x: u32| {
        let (from, by) = (x.wrapping_mul(40_503) % 256, 1 + x.wrapping_mul(2_654_435_761) % 255);
        Connection::new(CellId(from), CellId((from + by) % 256), 512)
    };
    let set = Arc::new(ConnectionSet::new("s", (0..6_000).map(connect).collect()).unwrap());
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let problem = Problem::new(&machine, &set, bounds).unwrap();
    let config = windows::Config::default();
    let found = windows::plan(&problem, &config, windows::budget(&problem), 1).unwrap();
    check(&machine, &set, &found.plan);
    let over_bound = found.plan.clocks as f64 / bounds.clocks as f64;
    assert!(over_bound < 1.5, "{over_bound:.3} in {} phases", found.plan.phases.len());
}
