//! What the tests of all planners share: random machines, and a check of plans that is written from
//! the machine model alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Parameters, Topology,
};
use conset_partition_route::bounds;
use conset_planner::{Found, Plan, Problem};
use proptest::prelude::*;

/// When a stream is on something: from, to.
type Span = (u64, u64);

/// The most spans at one time.
fn depth(spans: &[Span]) -> usize {
    let at = |clock: u64| spans.iter().filter(|s| s.0 <= clock && clock < s.1).count();
    spans.iter().map(|span| at(span.0)).max().unwrap_or(0)
}

/// The plan that a planner makes of a set, which must not be below its bound.
pub(crate) fn planned(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    plan: impl FnOnce(&Problem<'_>) -> Option<Found>,
) -> Option<Plan> {
    let bounds = bounds::bounds(machine, set).ok()?.summary();
    let problem = Problem::new(machine, set, bounds)?;
    let plan = plan(&problem)?.plan;
    assert!(plan.clocks >= bounds.clocks, "{} of {bounds:?}", plan.clocks);
    Some(plan)
}

/// Sets that planners of starts decline: with a requirement of bandwidth, with one of latency, and
/// empty; with an order, too, if that is declined.
pub(crate) fn declined(orders: bool) -> Vec<Arc<ConnectionSet>> {
    let connection = Connection::new(CellId(0), CellId(1), 5);
    let set = |connections| ConnectionSet::new("s", connections).expect("ends are cells");
    let mut sets = vec![
        set(vec![Connection { min_bandwidth: Some(1), ..connection.clone() }]),
        set(vec![Connection { max_latency: Some(9), ..connection.clone() }]),
        set(vec![]),
    ];
    if orders {
        let order = vec![(ConnectionId(0), ConnectionId(1))];
        let both = set(vec![connection.clone(), connection]);
        sets.push(both.with_order(order).expect("one is before the other"));
    }
    sets.into_iter().map(Arc::new).collect()
}

/// Recounts a plan from the machine model alone.
pub(crate) fn check(machine: &Machine, set: &ConnectionSet, plan: &Plan) {
    let p = machine.parameters();
    let (link, access) = (u64::from(p.link_clocks_per_word), u64::from(p.access_clocks_per_word));
    let (setup, share) = (u64::from(p.stream_setup), (access / link).max(1) as usize);
    let mut carried = vec![0u64; set.len()];
    let mut clocks = 0;
    // Of each connection the first start and when it is received, as phase and clock.
    let mut spans: BTreeMap<u32, [(usize, u64); 2]> = BTreeMap::new();
    for (phase, streams) in plan.phases.iter().enumerate() {
        let mut channels = vec![0; machine.cell_count()];
        let mut ports: BTreeMap<(u32, bool), Vec<Span>> = BTreeMap::new();
        let mut links: BTreeMap<(u32, u32), Vec<Span>> = BTreeMap::new();
        let mut received: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
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
            let latency = if itself { 0 } else { 2 * access + hops * link - pace };
            ports.entry((c.source.0, false)).or_default().push((stream.start, end));
            if !itself {
                // With full duplex a target may open a stream when its words come.
                let receives = p.duplex == Duplex::Full;
                let late = if receives { latency } else { 0 };
                let span = (stream.start + late, end + late);
                ports.entry((c.target.0, receives)).or_default().push(span);
                received.entry(c.target.0).or_default().push((stream.start, end + latency));
            }
            for (hop, pair) in stream.cells.windows(2).enumerate() {
                let late = hop as u64 * link;
                let span = (stream.start + setup + late, end + late);
                links.entry((pair[0], pair[1])).or_default().push(span);
            }
            last = last.max(end + latency);
            let (start, over) = ((phase, stream.start), (phase, end + latency));
            let span = spans.entry(stream.connection).or_insert([start, over]);
            *span = [span[0].min(start), span[1].max(over)];
        }
        assert!(channels.into_iter().all(|used| used <= p.channels_per_cell));
        assert!(ports.values().all(|spans| depth(spans) <= 1));
        // Agents take streams in the order of their starts.
        for streams in received.values_mut() {
            streams.sort_unstable();
            assert!(streams.windows(2).all(|s| s[0].0 < s[1].0 && s[0].1 <= s[1].1));
        }
        for (&(a, b), spans) in &links {
            let parallel = machine.links_between(CellId(a), CellId(b)).count();
            assert!(parallel > 0, "c{a} and c{b} are no neighbours");
            assert!(depth(spans) <= parallel * share, "c{a} to c{b}: {spans:?}");
        }
        clocks += p.switch_clocks() + last;
    }
    assert_eq!(plan.clocks, clocks);
    for (before, after) in set.order() {
        assert!(spans[&before.0][1] <= spans[&after.0][0], "{before} before {after}: {spans:?}");
    }
    for (c, carried) in set.connections().iter().zip(carried) {
        assert_eq!(carried, u64::from(c.words));
    }
}

/// Small machines of all shapes with kept starts.
pub(crate) fn machine() -> impl Strategy<Value = Arc<Machine>> {
    let dims = || prop::collection::vec(1..=4u32, 1..=3);
    let topology = prop_oneof![
        dims().prop_map(|dims| Topology::Torus { dims }),
        dims().prop_map(|dims| Topology::Mesh { dims }),
        (1..9u32).prop_map(|cells| Topology::Ring { cells }),
        (0..5u32).prop_map(|dimension| Topology::Hypercube { dimension }),
        (1..17u32).prop_map(Topology::fat_tree),
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
