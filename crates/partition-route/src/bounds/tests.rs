//! Tests of the module above: closed forms, odd machines, and comparison with brute force.

use conset_ir::convert::to_u64;
use conset_ir::{Connection, Parameters, Topology};

use super::*;

fn set(connections: &[(u32, u32, u32)]) -> ConnectionSet {
    let row = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
    ConnectionSet::new("s", connections.iter().map(row).collect()).unwrap()
}

fn all_to_all(machine: &Machine, words: u32) -> ConnectionSet {
    let cells: Vec<u32> = machine.endpoints().map(|c| c.0).collect();
    let pairs = cells.iter().flat_map(|&a| cells.iter().map(move |&b| (a, b, words)));
    set(&pairs.filter(|p| p.0 != p.1).collect::<Vec<_>>())
}

fn summary(spec: &str, connections: &[(u32, u32, u32)]) -> Bounds {
    bounds(&Machine::from_spec(spec).unwrap(), &set(connections)).unwrap().summary()
}

#[test]
fn the_designs_example() {
    let b = summary("iwarp", &[(3, 4, 133)]);
    assert_eq!((b.phases, b.clocks), (1, 794));
    assert_eq!(b.clocks_by, Binding::AgentLoad);
}

#[test]
fn an_empty_set_is_bound_by_nothing() {
    let b = summary("iwarp", &[]);
    assert_eq!((b.phases, b.clocks), (0, 0));
    assert_eq!((b.phases_by, b.clocks_by), (Binding::Nothing, Binding::Nothing));
}

#[test]
fn the_papers_patterns() {
    let machine = Machine::from_spec("iwarp").unwrap();
    let b = bounds(&machine, &all_to_all(&machine, 100)).unwrap().summary();
    // 64 x (256 + 63) channels over 64 x 12.
    assert_eq!((b.phases, b.phases_by), (27, Binding::ChannelTotal));
    // Half the ring sends to the other half: 1024 pairs over 16 links, 2 clocks each.
    assert_eq!(b.clocks, 27 * 528 + 1024 * 100 * 2 / 16);

    // Gray-code hypercube: 384 connections. Coordinates are coded dimension by dimension.
    let gray = |i: u32| i ^ (i >> 1);
    let code = |cell: u32| gray(cell % 8) | gray(cell / 8) << 3;
    let mut pairs = Vec::new();
    for a in 0..64 {
        for b in 0..64u32 {
            if (code(a) ^ code(b)).count_ones() == 1 {
                pairs.push((a, b, 8));
            }
        }
    }
    assert_eq!(pairs.len(), 384);
    // 16 channels a cell in one phase (machine model, rule 2), so 2 phases of 12.
    assert_eq!(summary("iwarp", &pairs).phases, 2);
}

#[test]
fn a_connection_to_itself_takes_one_channel() {
    let b = summary("ring:1", &[(0, 0, 5); 13]);
    assert_eq!((b.phases, b.clocks), (2, 2 * 528 + 13 * 5 * 2));
}

#[test]
fn half_duplex_and_set_ups_add_up() {
    let machine = Machine::from_spec("iwarp-fem").unwrap();
    let mut parameters = machine.parameters().clone();
    parameters.stream_setup = 50;
    let machine = machine.with_parameters(parameters.clone()).unwrap();
    let pair = set(&[(0, 1, 10), (1, 0, 20)]);
    assert_eq!(bounds(&machine, &pair).unwrap().summary().clocks, 528 + 300 + 100);
    parameters.duplex = Duplex::Full;
    let machine = machine.with_parameters(parameters.clone()).unwrap();
    assert_eq!(bounds(&machine, &pair).unwrap().summary().clocks, 528 + 200 + 50);
    // With two streams, set-ups may overlap words.
    parameters.streams = 2;
    let machine = machine.with_parameters(parameters).unwrap();
    assert_eq!(bounds(&machine, &pair).unwrap().summary().clocks, 528 + 200);
}

#[test]
fn a_narrow_cut_binds() {
    // A mesh of 2x4: 8 words each from every cell of the left half to its mirror image.
    let pairs: Vec<_> =
        (0..8).filter(|c| c % 4 < 2).map(|c| (c, c / 4 * 4 + 3 - c % 4, 80)).collect();
    let report = bounds(&Machine::from_spec("mesh:4x2").unwrap(), &set(&pairs)).unwrap();
    let b = report.summary();
    assert_eq!((b.clocks, b.clocks_by), (528 + 2 * 2 * 80, Binding::DimensionCut), "{report:?}");
    // All words of a fat-tree's group leave over its two links.
    let pairs: Vec<_> = (0..4).map(|c| (c, c + 4, 100)).collect();
    let b = summary("fat-tree:16", &pairs);
    assert_eq!((b.clocks, b.clocks_by), (528 + 400 * 2 / 2, Binding::Bisection));
}

#[test]
fn no_way_is_infeasible() {
    let machine = Machine::new(
        "holed",
        Topology::Mesh { dims: vec![3] },
        Parameters::iwarp(),
        vec![CellId(1)],
        vec![],
    )
    .unwrap();
    let error = bounds(&machine, &set(&[(0, 0, 1), (0, 2, 1)])).unwrap_err();
    assert!(error.to_string().contains("c0 to c2"), "{error}");
    assert_eq!(error.connections, [conset_ir::ConnectionId(1)]);
    assert!(bounds(&machine, &set(&[(0, 1, 1)])).is_err());
    assert!(bounds(&machine, &set(&[(0, 7, 1)])).is_err());
}

#[test]
fn words_beyond_64_bits_of_clocks_do_not_overflow() {
    let mut parameters = Parameters::iwarp();
    parameters.access_clocks_per_word = 1_000_000_000;
    parameters.link_clocks_per_word = 1_000_000_000;
    let machine = Machine::from_spec("ring:4").unwrap().with_parameters(parameters).unwrap();
    let big = vec![(0, 2, 1 << 30); 1 << 12];
    assert!(bounds(&machine, &set(&big)).unwrap().summary().clocks > 1 << 60);
}

#[test]
fn flows_see_narrow_places() {
    let bound = |spec: &str| {
        let machine = Machine::from_spec(spec).unwrap();
        bounds(&machine, &all_to_all(&machine, 100)).unwrap().summary()
    };
    // Routes between leaves of different fours pass one of eight switches, those between
    // different sixteens two: 64 x 12 + 2 x 64 x 48 channels of 8 x 12.
    let tree = bound("fat-tree:64");
    assert_eq!((tree.phases, tree.phases_by), (72, Binding::ChannelFlow));
    // The middle of a mesh is narrower than its channels are on average.
    assert_eq!(bound("mesh:8x8").phases, 35);
    // Where everything is even there is nothing to be gained.
    assert_eq!(bound("iwarp").phases_by, Binding::ChannelTotal);
    assert_eq!(bound("iwarp").clocks_by, Binding::AverageLink);
    // A transpose is dense along the diagonal, on whatever routes. Those round it take more channels
    // than one phase has.
    let pairs = (0..64).map(|c| (c, c / 8 + 8 * (c % 8), 1000));
    let pairs: Vec<_> = pairs.filter(|p| p.0 != p.1).collect();
    let load = |by| {
        let machine = Machine::from_spec("iwarp").unwrap();
        let report = bounds(&machine, &set(&pairs)).unwrap();
        report.clocks.iter().find(|bound| bound.binding == by).unwrap().value - 528
    };
    assert!((2150..=2180).contains(&load(Binding::LinkFlow)));
    assert!((2181..=2200).contains(&load(Binding::ChannelLinkFlow)));
}

/// Each cell of a ring sends halfway round, less one: shared evenly, both ways would need 4.75
/// channels of each cell.
#[test]
fn routes_that_share_all_links_need_channels() {
    let bound = |channels: u32, switch: u32| {
        let parameters = Parameters {
            channels_per_cell: channels,
            t_sync: switch,
            t_phase: 0,
            ..Parameters::iwarp()
        };
        let machine = Machine::from_spec("ring:8").unwrap().with_parameters(parameters).unwrap();
        let pairs: Vec<_> = (0..8).map(|c| (c, (c + 3) % 8, 1000)).collect();
        bounds(&machine, &set(&pairs)).unwrap().summary()
    };
    let enough = bound(5, 528).clocks;
    assert!((528 + 3740..=528 + 3750).contains(&enough), "{enough}");
    // One phase takes 3000 words over each link of a direction, two take 1875 and another switch.
    let one = bound(4, 5000);
    assert_eq!((one.phases, one.clocks_by), (1, Binding::ChannelLinkFlow));
    assert!((5000 + 5950..=5000 + 6000).contains(&one.clocks), "{}", one.clocks);
    let two = bound(4, 100);
    assert!((100 + 3750..=200 + 3750).contains(&two.clocks), "{}", two.clocks);
}

/// Lengths of cells alone may prove that there are too few phases; then links have no length.
/// Five connections of a word from the first cell of a mesh of five, three of them to the last one.
#[test]
fn phases_are_as_long_as_the_routes_that_do_not_fit_into_others() {
    let rows = set(&[(0, 4, 1), (0, 1, 1), (0, 4, 1), (0, 1, 1), (0, 4, 1)]);
    let of = |timed_starts| {
        let mesh = Machine::from_spec("mesh:5").unwrap();
        let parameters =
            Parameters { channels_per_cell: 2, timed_starts, ..mesh.parameters().clone() };
        bounds(&mesh.with_parameters(parameters).unwrap(), &rows).unwrap()
    };
    // Two of the three long routes fill a phase, so two phases have long ones.
    let timed = of(1);
    let [long, short] = [2 * 2 + 4 * 2, 2 * 2 + 2];
    let summary = timed.summary();
    assert_eq!((summary.phases, summary.clocks_by), (3, Binding::Latency));
    assert_eq!(summary.clocks, 3 * 528 + 2 * long + short);
    assert_eq!(timed.proof().clocks, Some(Witness::Hops));
    // The loads are those of the links to the last cell, and of the first agent.
    assert_eq!((timed.loads().clocks, timed.loads().clocks_by), (3 * 528 + 10, Binding::AgentLoad));
    assert_eq!(of(0).summary(), timed.loads());
}

#[test]
fn a_bound_for_too_few_phases_is_that_of_more() {
    let parameters = Parameters { channels_per_cell: 2, ..Parameters::iwarp() };
    for spec in ["ring:1", "ring:2", "ring:8", "mesh:3x3", "fat-tree:10"] {
        let machine = Machine::from_spec(spec).unwrap().with_parameters(parameters.clone());
        let machine = machine.unwrap();
        let set = all_to_all(&machine, 3);
        if set.is_empty() {
            continue;
        }
        let network = Network::new(&machine);
        let known = [agent_bound(&machine, &set, true, None)];
        let fewest = bounds(&machine, &set).unwrap().summary().phases;
        // A phase for each connection.
        let switch = machine.parameters().switch_clocks();
        let enough = to_u64(set.len()) * (switch + 3 * 2);
        for phases in 1..=u64::from(fewest) {
            let found = flow::clocks_in_phases(&machine, &network, &set, phases, &known);
            let clocks = found.map_or(0, |found| saturate(found.clocks));
            assert!(phases * switch + clocks <= enough, "{spec} {phases} {clocks}");
        }
    }
}

#[test]
fn connections_to_themselves_need_no_links() {
    let topology = conset_ir::Topology::Graph {
        cells: 5,
        switches: 0,
        links: vec![(0, 1), (1, 0), (2, 3), (3, 2)],
    };
    let parameters = Parameters { channels_per_cell: 2, ..Parameters::iwarp() };
    let machine = Machine::new("parts", topology, parameters, Vec::new(), Vec::new()).unwrap();
    let rows: Vec<_> = (0..5).flat_map(|cell| [(cell, cell, 10); 4]).collect();
    let summary = bounds(&machine, &set(&rows)).unwrap().summary();
    assert_eq!((summary.phases, summary.clocks_by), (2, Binding::AgentLoad));
}

/// Four random permutations on a mesh whose middle needs 3.007 phases.
#[test]
fn a_search_for_phases_ends_near_the_best_lengths() {
    let parameters = Parameters { channels_per_cell: 12, ..Parameters::iwarp() };
    let machine = Machine::from_spec("mesh:12x12").unwrap().with_parameters(parameters).unwrap();
    let mut state = 52u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from((state >> 33) % below).unwrap()
    };
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut targets: Vec<u32> = (0..144).collect();
        (1..144).rev().for_each(|place| targets.swap(place, draw(to_u64(place) + 1)));
        connections.extend((0..144).zip(targets).map(|(source, target)| (source, target, 8)));
    }
    connections.retain(|&(source, target, _)| source != target);
    let bounds = bounds(&machine, &set(&connections)).unwrap().summary();
    assert_eq!((bounds.phases, bounds.phases_by), (4, Binding::ChannelFlow));
}

/// All simple paths between two cells.
fn paths(machine: &Machine, from: CellId, to: CellId) -> Vec<Vec<CellId>> {
    fn walk(machine: &Machine, path: &mut Vec<CellId>, to: CellId, found: &mut Vec<Vec<CellId>>) {
        let at = path[path.len() - 1];
        if at == to {
            found.push(path.clone());
            return;
        }
        let mut next: Vec<CellId> =
            machine.outgoing(at).iter().map(|&link| machine.link(link).target).collect();
        next.dedup();
        for cell in next {
            if !path.contains(&cell) {
                path.push(cell);
                walk(machine, path, to, found);
                path.pop();
            }
        }
    }
    let mut found = Vec::new();
    walk(machine, &mut vec![from], to, &mut found);
    found
}

/// The fewest phases, and the least clocks that the loads of links and agents leave, of all
/// divisions and routes. With timed starts a phase also takes as long as a word over each route, and
/// what links and agents wait for their first word and after their last one.
/// Loads of parallel links are counted as if words could change links.
fn optimum(machine: &Machine, set: &ConnectionSet) -> (u32, u64) {
    let routes: Vec<_> =
        set.connections().iter().map(|c| paths(machine, c.source, c.target)).collect();
    let parameters = machine.parameters();
    let count = set.len() as u32;
    let choices: Vec<u32> = routes.iter().map(|r| r.len() as u32 * count).collect();
    let all: u32 = choices.iter().product();
    let (mut phases, mut clocks) = (u32::MAX, u64::MAX);
    'all: for choice in 0..all {
        let mut rest = choice;
        let mut used = std::collections::BTreeMap::new();
        let mut load = std::collections::BTreeMap::new();
        let mut idle = std::collections::BTreeMap::new();
        let mut ends = std::collections::BTreeMap::new();
        for (x, (c, n)) in set.connections().iter().zip(&choices).enumerate() {
            let (path, phase) = ((rest % n / count) as usize, rest % count);
            rest /= n;
            let path = &routes[x][path];
            for cell in path {
                *used.entry((phase, *cell)).or_insert(0) += 1;
            }
            if parameters.has_timed_starts() {
                let access = u64::from(parameters.access_clocks_per_word);
                let after = |links: usize| {
                    access + links as u64 * u64::from(parameters.link_clocks_per_word)
                };
                let sent = u64::from(parameters.stream_setup) + access;
                let links = path.len() - 1;
                load.insert((phase, 3 + x, c.source, c.target), 60 * (sent + after(links)));
                let mut waits = |key, before: u64, after: u64| {
                    let least = idle.entry(key).or_insert((before, after));
                    *least = (least.0.min(before), least.1.min(after));
                };
                waits((phase, 1, c.source, c.source), 0, after(links));
                waits((phase, 2, c.target, c.target), after(links), 0);
                for (at, pair) in path.windows(2).enumerate() {
                    let before = sent + after(at) - access;
                    let key = (phase, 0, pair[0], pair[1]);
                    waits(key, before, after(links - 1 - at));
                    let [from, to]: &mut [std::collections::BTreeSet<CellId>; 2] =
                        ends.entry(key).or_default();
                    from.insert(c.source);
                    to.insert(c.target);
                }
            }
            let words = u64::from(c.words);
            for pair in path.windows(2) {
                let links = machine.links_between(pair[0], pair[1]).count() as u64;
                let clocks = words * u64::from(parameters.link_clocks_per_word);
                *load.entry((phase, 0, pair[0], pair[1])).or_insert(0) += 60 * clocks / links;
            }
            let agent = words * u64::from(parameters.access_clocks_per_word)
                + u64::from(parameters.stream_setup);
            *load.entry((phase, 1, c.source, c.source)).or_insert(0) += 60 * agent;
            *load.entry((phase, 2, c.target, c.target)).or_insert(0) += 60 * agent;
        }
        if used.values().any(|&used| used > parameters.channels_per_cell) {
            continue 'all;
        }
        let mut most = std::collections::BTreeMap::new();
        for (key @ (phase, ..), load) in load {
            let (before, after) = idle.get(&key).copied().unwrap_or_default();
            let mut load = load + 60 * (before + after);
            // Each of parallel links waits for a word of its own.
            if let Some([from, to]) = ends.get(&key) {
                let links = machine.links_between(key.2, key.3).count();
                let turns = |ends: usize| (1..=links).map(|n| n.div_ceil(ends) - 1).sum::<usize>();
                let words = turns(from.len()) + turns(to.len());
                load += (60 * words / links) as u64 * u64::from(parameters.access_clocks_per_word);
            }
            let most = most.entry(phase).or_insert(0);
            *most = load.max(*most);
        }
        phases = phases.min(most.len() as u32);
        let switches = most.len() as u64 * parameters.switch_clocks();
        clocks = clocks.min(switches + most.values().sum::<u64>().div_ceil(60));
    }
    (phases, clocks)
}

#[test]
fn no_bound_exceeds_the_best_of_all_schedules() {
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((random >> 33) % below) as u32
    };
    let (mut flows, mut both, mut latencies, mut ramps) = (0, 0, 0, 0);
    let specs = ["ring:4", "mesh:2x3", "ring:2", "fat-tree:5", "mesh:4", "torus:3x2", "ring:3"];
    for case in 0..420 {
        let spec = specs[case % specs.len()];
        let machine = Machine::from_spec(spec).unwrap();
        let parameters = Parameters {
            channels_per_cell: 1 + next(3),
            t_sync: next([4, 60][case % 2]),
            t_phase: 0,
            access_clocks_per_word: 1 + next(2),
            link_clocks_per_word: 1 + next(9),
            timed_starts: u32::from(case % 3 == 0),
            ..machine.parameters().clone()
        };
        let machine = machine.with_parameters(parameters).unwrap();
        let cells: Vec<u32> = machine.endpoints().map(|c| c.0).collect();
        let any = cells.len() as u64;
        // Latencies bind if there are few words.
        let most = if case % 6 == 0 { 1 } else { 9 };
        let rows: Vec<_> = (0..3)
            .map(|_| (cells[next(any) as usize], cells[next(any) as usize], 1 + next(most)))
            .collect();
        let set = set(&rows);
        let (phases, clocks) = optimum(&machine, &set);
        let report = bounds(&machine, &set).unwrap();
        for bound in &report.phases {
            flows += usize::from(bound.binding == Binding::ChannelFlow);
            assert!(bound.value <= u64::from(phases), "{spec} {rows:?} {bound:?} {phases}");
        }
        for bound in &report.clocks {
            flows += usize::from(bound.binding == Binding::LinkFlow);
            both += usize::from(bound.binding == Binding::ChannelLinkFlow);
            assert!(bound.value <= clocks, "{spec} {rows:?} {bound:?} {clocks}");
        }
        latencies += usize::from(report.summary().clocks_by == Binding::Latency);
        let bound = tightest(&report.clocks);
        ramps += usize::from(bound.binding != Binding::Latency && bound.ramp > 0);
    }
    assert!(flows > 0 && both > 0, "no flow was tried: {flows}, {both}");
    assert!(latencies > 10, "latencies bind in {latencies} cases");
    assert!(ramps > 60, "loads with ramps bind in {ramps} cases");
}

/// The least clocks of streams at full rate that keep off each other, of all orders in which they
/// can be planned and all routes: what some schedule takes, so no bound may be more.
fn planned_one_by_one(machine: &Machine, set: &ConnectionSet) -> u64 {
    let parameters = machine.parameters();
    let routes: Vec<_> =
        set.connections().iter().map(|c| paths(machine, c.source, c.target)).collect();
    let all: usize = routes.iter().map(Vec::len).product();
    let mut best = u64::MAX;
    for choice in 0..all {
        let mut rest = choice;
        let mut chosen = Vec::new();
        for of in &routes {
            chosen.push(&of[rest % of.len()]);
            rest /= of.len();
        }
        for sequence in sequences(set, &mut Vec::new()) {
            let mut free = std::collections::BTreeMap::new();
            let mut over = vec![0; set.len()];
            for x in sequence {
                let c = &set.connections()[x];
                let before = set.order().iter().filter(|pair| pair.1.index() == x);
                let before = before.map(|pair| over[pair.0.index()]).max().unwrap_or(0);
                let links = chosen[x].windows(2).map(|pair| (2, pair[0], pair[1]));
                let used: Vec<_> =
                    links.chain([(0, c.source, c.source), (1, c.target, c.target)]).collect();
                let idle = used.iter().map(|place| free.get(place).copied().unwrap_or(0)).max();
                let clocks = u64::from(c.words) * u64::from(parameters.access_clocks_per_word)
                    + u64::from(parameters.stream_setup);
                let sent = before.max(idle.unwrap_or(0)) + clocks;
                // The path of the last word: each link, and the agent of the target.
                let hops = chosen[x].len() as u64 - 1;
                over[x] = sent
                    + hops * u64::from(parameters.link_clocks_per_word)
                    + u64::from(parameters.access_clocks_per_word);
                free.extend(used.into_iter().map(|place| (place, sent)));
            }
            best = best.min(over.into_iter().max().unwrap_or(0));
        }
    }
    best + parameters.switch_clocks()
}

/// All sequences that keep the order.
fn sequences(set: &ConnectionSet, begun: &mut Vec<usize>) -> Vec<Vec<usize>> {
    if begun.len() == set.len() {
        return vec![begun.clone()];
    }
    let mut found = Vec::new();
    for x in 0..set.len() {
        let ready = |pair: &&(conset_ir::ConnectionId, conset_ir::ConnectionId)| {
            pair.1.index() != x || begun.contains(&pair.0.index())
        };
        if !begun.contains(&x) && set.order().iter().all(|pair| ready(&pair)) {
            begun.push(x);
            found.extend(sequences(set, begun));
            begun.pop();
        }
    }
    found
}

#[test]
fn no_bound_of_order_exceeds_a_schedule() {
    let mut random = 7u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((random >> 33) % below) as u32
    };
    let mut orders = 0;
    for case in 0..90 {
        let spec = ["ring:4", "mesh:2x3", "mesh:4"][case % 3];
        let machine = Machine::from_spec(spec).unwrap();
        let parameters =
            Parameters { stream_setup: next(4), t_sync: next(4), ..machine.parameters().clone() };
        let machine = machine.with_parameters(parameters).unwrap();
        let cells = machine.cell_count() as u64;
        let rows: Vec<_> = (0..4).map(|_| (next(cells), next(cells), 1 + next(9))).collect();
        let id = |x: u32| conset_ir::ConnectionId(x);
        let order = (0..3).map(|_| (next(4), next(4))).filter(|(a, b)| a < b);
        let order: Vec<_> = order.map(|(a, b)| (id(a), id(b))).collect();
        let set = set(&rows).with_order(order.clone()).unwrap();
        let clocks = planned_one_by_one(&machine, &set);
        for bound in &bounds(&machine, &set).unwrap().clocks {
            orders += usize::from(bound.binding == Binding::Order);
            assert!(bound.value <= clocks, "{spec} {rows:?} {order:?} {bound:?} {clocks}");
        }
    }
    assert!(orders > 0, "order was never more than the others");
}

#[test]
fn order_binds_where_steps_wait_for_each_other() {
    // Three in a row, each after the one before.
    let chain = set(&[(0, 1, 10), (1, 2, 20), (2, 3, 30)]);
    let id = conset_ir::ConnectionId;
    let chain = chain.with_order(vec![(id(0), id(1)), (id(1), id(2))]).unwrap();
    let ring = Machine::from_spec("ring:8").unwrap();
    let bound = bounds(&ring, &chain).unwrap().summary();
    // Each of them has a last word, over one link and through an agent.
    assert_eq!((bound.clocks, bound.clocks_by), (528 + 120 + 3 * 4, Binding::Order));
    // Every cell sends across, and before and after that to its neighbour: the links of the step
    // across have 8 x 4 x 10 words to carry, 16 of them at a time.
    let steps = |d: u32| (0..8).map(move |c| (c, (c + d) % 8, 10));
    let rows: Vec<_> = steps(1).chain(steps(4)).chain(steps(1)).collect();
    let after = (0..8).flat_map(|c| [(id(c), id(8 + c)), (id(8 + c), id(16 + c))]);
    let all = set(&rows).with_order(after.collect()).unwrap();
    let bound = bounds(&ring, &all).unwrap().summary();
    assert_eq!((bound.clocks, bound.clocks_by), (528 + 24 + 40 + 24, Binding::Order));
    // A shift on a torus has two directions in each dimension, 3 links and 5: 15/8 of its words
    // on every link at best.
    let shift = |c: u32| (c, (c % 8 + 3) % 8 + 8 * ((c / 8 + 2) % 8), 2048);
    let shift: Vec<_> = (0..64).map(shift).collect();
    let bound = summary("iwarp", &shift);
    assert!((528 + 7600..=528 + 7680).contains(&bound.clocks), "{}", bound.clocks);
}
