//! A thousand false claims, none of which the checker may believe, and true ones, which it must.
//!
//! True schedules are compiled (all kinds of bounds are among them), then what they claim is
//! changed. Whether a claim is false is decided here, by other means than the checker's: sums by
//! hand, [`Machine::hops_from`], Floyd and Warshall's distances, and the bounds of the router.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset::partition_route::bounds::{BoundsReport, bounds};
use conset::verify::{Rule, check_set_schedule};
use conset::{Algorithm, Compiled, Compiler};
use conset_ir::{
    Binding, CellId, Connection, ConnectionId, ConnectionSet, Duplex, LinkId, Machine, Parameters,
    Program, Proof, Schedule, SetSchedule, Witness,
};

use crate::numbers::Numbers;

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// From 1 to `most`.
    fn upto(&mut self, most: u64) -> u64 {
        1 + self.below(most)
    }
}

/// A random set: pairs of any cells, some of them ordered.
fn random(numbers: &mut Numbers, machine: &Machine, rows: u64, order: u64) -> ConnectionSet {
    let cells = machine.agent_count() as u64;
    let connections = (0..rows).map(|_| {
        let [source, target] = [(); 2].map(|()| CellId(numbers.below(cells) as u32));
        Connection::new(source, target, numbers.upto(60) as u32)
    });
    let set = ConnectionSet::new("s", connections.collect()).unwrap();
    let pairs = (0..order).map(|_| {
        let a = numbers.below(rows - 1);
        let b = a + numbers.upto(rows - 1 - a);
        (ConnectionId(a as u32), ConnectionId(b as u32))
    });
    set.with_order(pairs.collect()).unwrap()
}

#[test]
fn prices_of_a_large_machine_are_a_proof() {
    // All cells send to a neighbour, so that a proof visits the machine from each of them, and two blocks
    // in the middle exchange so much that the channels around them decide.
    let machine = Arc::new(Machine::from_spec("iwarp:32x32").unwrap());
    let neighbours = (0..1024).map(|cell| (cell, cell / 32 * 32 + (cell + 1) % 32));
    let block = |x: u32| (10..16).flat_map(move |y| (x..x + 6).map(move |x| 32 * y + x));
    let blocks = block(8).flat_map(|a| block(14).flat_map(move |b| [(a, b), (b, a)]));
    let set = pairs(neighbours.chain(blocks), 8);
    let bounds = bounds(&machine, &set).unwrap().summary();
    assert_eq!(bounds.phases_by, Binding::ChannelFlow);
    let program = Program::new(vec![Arc::new(set)]).unwrap();
    let compiled = Compiler::new(&machine).algorithm(Algorithm::Paper).compile(&program).unwrap();
    assert_eq!(compiled.sets()[0].bounds.summary(), bounds);
}

fn pairs(pairs: impl Iterator<Item = (u32, u32)>, words: u32) -> ConnectionSet {
    let row = |(a, b)| Connection::new(CellId(a), CellId(b), words);
    ConnectionSet::new("s", pairs.filter(|(a, b)| a != b).map(row).collect()).unwrap()
}

/// Programs by which every kind of bound binds.
fn programs() -> Vec<(Arc<Machine>, ConnectionSet)> {
    let machine = |spec: &str, settings: &[(&str, &str)]| {
        let machine = Machine::from_spec(spec).unwrap();
        let mut parameters = machine.parameters().clone();
        settings.iter().for_each(|(key, value)| parameters.set(key, value).unwrap());
        Arc::new(machine.with_parameters(parameters).unwrap())
    };
    let mut numbers = Numbers(1);
    let mut all = Vec::new();
    let settings: [&[(&str, &str)]; 4] = [
        &[],
        &[("stream_setup", "40")],
        &[("duplex", "half"), ("channels_per_cell", "3")],
        &[("streams", "3"), ("stream_setup", "90"), ("link_clocks_per_word", "5")],
    ];
    let specs = ["torus:4x3", "mesh:5x3", "ring:2", "hypercube:3", "fat-tree:10", "ring:1"];
    for spec in specs {
        for (row, settings) in settings.into_iter().enumerate() {
            let machine = machine(spec, settings);
            let set = random(&mut numbers, &machine, 30, [0, 12][row % 2]);
            all.push((machine, set));
        }
    }
    let all_pairs = |n: u32| (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)));
    // Narrow places: prices of cells and of links bind here.
    all.push((machine("fat-tree:16", &[]), pairs(all_pairs(16), 9)));
    all.push((machine("mesh:5x5", &[("channels_per_cell", "2")]), pairs(all_pairs(25), 3)));
    let transpose = (0..16).map(|c| (c, c / 4 + 4 * (c % 4)));
    all.push((machine("torus:4x4", &[]), pairs(transpose, 200)));
    // Routes that share all links need more channels than one phase has.
    let tornado = (0..10).map(|c| (c, (c + 4) % 10));
    all.push((machine("ring:10", &[("channels_per_cell", "5")]), pairs(tornado, 90)));
    // Long routes of single words, more than one phase has channels for.
    let across = (0..24).map(|c| (c % 8, (c * 5 + 3) % 8));
    let timed = machine("mesh:8", &[("channels_per_cell", "2"), ("timed_starts", "1")]);
    all.push((timed, pairs(across, 1)));
    // A mesh with a hole, and links dead one way.
    let holed = Machine::new(
        "holed",
        conset_ir::Topology::Mesh { dims: vec![4, 3] },
        conset_ir::Parameters::iwarp(),
        vec![CellId(5)],
        vec![(CellId(0), CellId(1))],
    );
    let live = all_pairs(12).filter(|&(a, b)| a != 5 && b != 5);
    all.push((Arc::new(holed.unwrap()), pairs(live, 7)));
    // A long chain, and connections between its parts.
    let row = |at: u32| Connection::new(CellId(at % 6), CellId((at + 1) % 6), 30);
    let chain = ConnectionSet::new("s", (0..12).map(row).collect()).unwrap();
    let order = (0..8).map(|at| (ConnectionId(at), ConnectionId(at + 1)));
    let order = order.chain((9..12).map(|at| (ConnectionId(4), ConnectionId(at))));
    all.push((machine("ring:6", &[]), chain.with_order(order.collect()).unwrap()));
    all
}

/// A set's distances by any lengths of links, with none for cells: Floyd and Warshall.
fn distances(machine: &Machine, length: impl Fn(LinkId) -> u128) -> Vec<Vec<u128>> {
    let cells = machine.cell_count();
    let mut far = vec![vec![u128::MAX / 4; cells]; cells];
    (0..cells).for_each(|cell| far[cell][cell] = 0);
    for cell in machine.cells() {
        for &link in machine.outgoing(cell) {
            let to = machine.link(link).target.index();
            far[cell.index()][to] = far[cell.index()][to].min(length(link));
        }
    }
    for via in 0..cells {
        for a in 0..cells {
            for b in 0..cells {
                far[a][b] = far[a][b].min(far[a][via] + far[via][b]);
            }
        }
    }
    far
}

/// What words take beside the loads of links and agents with timed starts.
struct Ramps<'a> {
    machine: &'a Machine,
    rows: &'a [Connection],
    hops: Vec<Vec<u128>>,
    phases: u128,
}

impl Ramps<'_> {
    fn hops(&self, c: &Connection) -> u128 {
        self.hops[c.source.index()][c.target.index()]
    }

    fn way(&self, hops: u128) -> u128 {
        let p = self.machine.parameters();
        u128::from(p.access_clocks_per_word) + hops * u128::from(p.link_clocks_per_word)
    }

    fn shortest_way(&self) -> u128 {
        self.way(self.rows.iter().map(|c| self.hops(c)).min().unwrap_or(0))
    }

    fn shortest_phase(&self) -> u128 {
        let p = self.machine.parameters();
        u128::from(p.stream_setup + p.access_clocks_per_word) + self.shortest_way()
    }

    /// Of one direction of a cell: its load, and the clocks of words on their way beside it.
    fn direction(&self, cell: CellId, end: fn(&Connection) -> CellId) -> u128 {
        let rows: Vec<&Connection> = self.rows.iter().filter(|c| end(c) == cell).collect();
        let Some(nearest) = rows.iter().map(|&c| self.hops(c)).min() else { return 0 };
        let p = self.machine.parameters();
        let words: u128 = rows.iter().map(|c| u128::from(c.words)).sum();
        let load = words * u128::from(p.access_clocks_per_word)
            + rows.len() as u128 * u128::from(p.stream_setup);
        let elsewhere = self.way(nearest).min(self.shortest_phase());
        load + self.way(nearest) + (self.phases - 1) * elsewhere
    }

    /// The clocks of the busiest direction of a cell beside the load of the cell.
    fn agent(&self, cell: CellId, load: u128) -> u128 {
        let p = self.machine.parameters();
        if p.timed_starts == 0 || p.streams > 1 || p.duplex == Duplex::Half {
            return 0;
        }
        self.direction(cell, |c| c.source).max(self.direction(cell, |c| c.target)) - load
    }

    /// The clocks beside a load of links with weights, clock by clock: how many links can be busy
    /// follows from the words that have been sent, and those that are yet to be received.
    fn links(&self, links: &[LinkId], load: u128, weight: &dyn Fn(LinkId) -> u128) -> u128 {
        let p = self.machine.parameters();
        let mut weights: Vec<u128> = links.iter().map(|&link| weight(link)).collect();
        weights.sort_unstable();
        weights.reverse();
        let all: u128 = weights.iter().sum();
        if p.timed_starts == 0 || all == 0 {
            return 0;
        }
        let moved = || self.rows.iter().filter(|c| c.source != c.target);
        let count = |ends: std::collections::BTreeSet<CellId>| ends.len() as u128;
        let senders = count(moved().map(|c| c.source).collect());
        let receivers = count(moved().map(|c| c.target).collect());
        let access = u128::from(p.access_clocks_per_word);
        let idle = |clocks: u128| -> u128 {
            let at = |clock: u128| {
                let sent = clock.saturating_sub(p.stream_setup.into()) / access * senders;
                let left = (clocks - 1 - clock) / access * receivers;
                let busy = usize::try_from(sent.min(left)).unwrap().min(weights.len());
                weights[busy..].iter().sum::<u128>()
            };
            (0..clocks).map(at).sum()
        };
        let short = idle(self.shortest_phase());
        let long = idle(self.shortest_phase().max(load / self.phases));
        let switch = u128::from(p.switch_clocks()) * all;
        ((self.phases - 1) * short + long.min(2 * short + switch)) / all
    }
}

/// What a witness proves of the phases, and of the clocks beside the switches; `None` where it is
/// not one of that kind or (windows, chains) where this does not say.
fn proves(schedule: &SetSchedule, by: Binding, witness: &Witness) -> Option<u128> {
    let routing = schedule.timetable.routing();
    let (machine, set) = (routing.machine(), routing.set());
    let parameters = machine.parameters();
    let channels = u128::from(parameters.channels_per_cell);
    let link_clocks = u128::from(parameters.link_clocks_per_word);
    let rows = set.connections();
    let words = |c: &Connection| u128::from(c.words);
    let live: Vec<CellId> = machine.cells().filter(|&cell| machine.is_alive(cell)).collect();
    let links: Vec<LinkId> =
        live.iter().flat_map(|&cell| machine.outgoing(cell)).copied().collect();
    let hops = distances(machine, |_| 1);
    let phases = u128::from(schedule.bounds.phases);
    let ramps = Ramps { machine, rows, hops: hops.clone(), phases };
    let far = |far: &[Vec<u128>], c: &Connection| far[c.source.index()][c.target.index()];
    let over = |work: u128, among: u128| if among == 0 { 0 } else { work.div_ceil(among) };
    Some(match (by, witness) {
        (Binding::Endpoints, Witness::Cell(cell)) => {
            let ends = rows.iter().filter(|c| c.source == *cell || c.target == *cell).count();
            over(ends as u128, channels)
        }
        (Binding::ChannelTotal, Witness::Hops) => {
            over(rows.iter().map(|c| far(&hops, c) + 1).sum(), live.len() as u128 * channels)
        }
        (Binding::ChannelFlow, Witness::CellPrices(prices)) => {
            let price = |cell: CellId| u128::from(prices[cell.index()]);
            let ways = distances(machine, |link| price(machine.link(link).target));
            let travelled = rows.iter().map(|c| price(c.source) + far(&ways, c)).sum();
            over(travelled, live.into_iter().map(price).sum::<u128>() * channels)
        }
        (Binding::AgentLoad, Witness::Cell(cell)) => {
            let load = agent(machine, rows.iter(), *cell);
            load + ramps.agent(*cell, load)
        }
        (Binding::AverageLink, Witness::Hops) => {
            let word_hops: u128 = rows.iter().map(|c| words(c) * far(&hops, c)).sum();
            let load = over(word_hops * link_clocks, links.len() as u128);
            load + ramps.links(&links, load, &|_| 1)
        }
        (Binding::DimensionCut | Binding::Bisection, Witness::Cut(side)) => {
            let inside = |cell: CellId| side.iter().any(|&(a, b)| a <= cell && cell <= b);
            let out = rows.iter().filter(|c| inside(c.source) && !inside(c.target));
            let leaves = |link: LinkId| {
                let link = machine.link(link);
                u128::from(inside(link.source) && !inside(link.target))
            };
            let count = links.iter().map(|&link| leaves(link)).sum();
            let load = over(out.map(words).sum::<u128>() * link_clocks, count);
            load + ramps.links(&links, load, &leaves)
        }
        (Binding::LinkFlow, Witness::LinkPrices(prices)) => {
            let price = |link: LinkId| u128::from(prices[link.index()]);
            let ways = distances(machine, price);
            let travelled: u128 = rows.iter().map(|c| words(c) * far(&ways, c)).sum();
            let load = over(travelled * link_clocks, links.iter().copied().map(price).sum());
            load + ramps.links(&links, load, &price)
        }
        (Binding::ChannelLinkFlow, Witness::Prices { cells, links: prices, alone }) => {
            let a_cell = |cell: CellId| u128::from(cells[cell.index()]);
            let a_link = |link: LinkId| u128::from(prices[link.index()]);
            let alone = |link: LinkId| u128::from(alone[link.index()]);
            let words_far = distances(machine, alone);
            let by_words: u128 = rows.iter().map(|c| words(c) * far(&words_far, c)).sum();
            let route = |c: &Connection| {
                let to = |link: LinkId| a_cell(machine.link(link).target);
                a_cell(c.source) + far(&distances(machine, |l| words(c) * a_link(l) + to(l)), c)
            };
            let routes: u128 = rows.iter().map(route).sum();
            let all_alone = links.iter().copied().map(alone).sum();
            let all_links = links.iter().copied().map(a_link).sum();
            let a_phase = live.iter().copied().map(a_cell).sum::<u128>() * channels;
            let agents = machine.cells().map(|cell| agent(machine, rows.iter(), cell)).max()?;
            let any = agents.max(over(by_words * link_clocks, all_alone));
            // Every number of phases, until only its switches grow.
            let least = u128::from(schedule.bounds.phases);
            let loads = (least..).map(|phases| {
                let rest = routes.saturating_sub(phases * a_phase) * link_clocks;
                ((phases - least) * u128::from(parameters.switch_clocks()), over(rest, all_links))
            });
            let mut best = u128::MAX;
            for (switches, load) in loads.take(100_000) {
                best = best.min(switches + load.max(any));
                if load <= any {
                    break;
                }
            }
            // With no load the longest phase is the shortest, and no other is instead of it.
            let each = |weight: &dyn Fn(LinkId) -> u128| ramps.links(&links, 0, weight);
            let one_way = parameters.timed_starts == 1
                && parameters.streams == 1
                && parameters.duplex == Duplex::Full;
            let agents = if one_way { phases * ramps.shortest_way() } else { 0 };
            best + each(&a_link).min(each(&alone)).min(agents)
        }
        (Binding::Latency, Witness::Hops) => {
            let time = |c: &Connection| {
                u128::from(parameters.stream_setup + 2 * parameters.access_clocks_per_word)
                    + far(&hops, c) * link_clocks
            };
            let mut routes: Vec<_> = rows.iter().map(|c| (time(c), far(&hops, c) + 1)).collect();
            routes.sort_unstable();
            // The longest that do not fit into the phases before.
            let mut sum = 0;
            for phase in 0..u128::from(schedule.bounds.phases) {
                let mut used = 0;
                let mut from_longest = routes.iter().rev();
                let beyond = from_longest.find(|(_, own)| {
                    used += own;
                    used > phase * live.len() as u128 * channels
                });
                sum += beyond.or(routes.first()).map_or(0, |&(time, _)| time);
            }
            sum
        }
        _ => return None,
    })
}

fn agent<'a>(
    machine: &Machine,
    rows: impl Iterator<Item = &'a Connection> + Clone,
    cell: CellId,
) -> u128 {
    let parameters = machine.parameters();
    let [access, setup, streams] =
        [parameters.access_clocks_per_word, parameters.stream_setup, parameters.streams]
            .map(u128::from);
    let clocks = |rows: &mut dyn Iterator<Item = &Connection>| {
        let (words, count) = rows.fold((0, 0), |sum, c| (sum.0 + u128::from(c.words), sum.1 + 1));
        match streams {
            1 => words * access + count * setup,
            _ => (words * access).max((count * setup).div_ceil(streams)),
        }
    };
    let out = rows.clone().filter(|c| c.source == cell);
    let into = rows.filter(|c| c.target == cell);
    match parameters.duplex {
        Duplex::Full => clocks(&mut { out }).max(clocks(&mut { into })),
        Duplex::Half => clocks(&mut out.chain(into)),
    }
}

/// The least that the phases as they stand take, by their agents alone, and the most.
fn floor_and_ceiling(schedule: &SetSchedule) -> (u64, u64) {
    let routing = schedule.timetable.routing();
    let machine = routing.machine();
    let p = machine.parameters();
    let (mut least, mut most) = (0, 0);
    for (phase, times) in routing.phases().iter().zip(schedule.timetable.phases()) {
        let row = |r: conset_ir::RouteRef<'_>| {
            Connection::new(r.cells[0], r.cells[r.cells.len() - 1], r.words)
        };
        let rows: Vec<Connection> = phase.iter().map(row).collect();
        let busiest = machine.cells().map(|cell| agent(machine, rows.iter(), cell)).max();
        least += p.switch_clocks() + busiest.unwrap_or(0) as u64;
        let slowest = u64::from(2 * p.access_clocks_per_word.max(p.link_clocks_per_word));
        let one = |r: conset_ir::RouteRef<'_>| {
            let words = u64::from(r.words) + 2 * r.cells.len() as u64;
            2 * u64::from(p.stream_setup) + slowest * words
        };
        let all: u64 = phase.iter().map(one).sum();
        most += p.switch_clocks() + all.max(times.makespan) + 1;
    }
    (least, most)
}

fn greatest(report: &[conset::partition_route::bounds::Bound]) -> u64 {
    report.iter().map(|bound| bound.value).max().unwrap_or(0)
}

/// A change of a true schedule's claims, and whether they are false then.
type Lie = fn(&mut SetSchedule, &BoundsReport, &mut Numbers) -> bool;

const LIES: [(&str, Lie); 10] = [
    ("clocks raised", |s, report, numbers| {
        s.bounds.clocks += numbers.upto(s.predicted_clocks.saturating_sub(s.bounds.clocks));
        s.bounds.clocks > greatest(&report.clocks)
    }),
    ("clocks raised by one", |s, report, _| {
        s.bounds.clocks += 1;
        s.bounds.clocks > greatest(&report.clocks)
    }),
    ("clocks raised without a witness", |s, report, numbers| {
        s.proof.clocks = None;
        s.bounds.clocks += numbers.upto(s.predicted_clocks.saturating_sub(s.bounds.clocks));
        s.bounds.clocks > greatest(&report.clocks)
    }),
    ("the prediction as the bound", |s, report, numbers| {
        s.bounds.clocks = s.predicted_clocks;
        if numbers.below(2) == 0 {
            s.proof = Proof::default();
        }
        s.bounds.clocks > greatest(&report.clocks)
    }),
    ("phases raised", |s, report, numbers| {
        let most = (s.timetable.phases().len() as u64).saturating_sub(s.bounds.phases.into());
        s.bounds.phases += numbers.upto(most) as u32;
        if numbers.below(2) == 0 {
            s.proof.phases = None;
        }
        u64::from(s.bounds.phases) > greatest(&report.phases)
    }),
    ("prediction lowered", |s, _, numbers| {
        let least = floor_and_ceiling(s).0;
        s.bounds.clocks = 0;
        s.predicted_clocks = numbers.below(least);
        s.predicted_clocks < least
    }),
    ("prediction below the bound", |s, _, numbers| {
        s.predicted_clocks = s.bounds.clocks.saturating_sub(numbers.upto(20));
        s.predicted_clocks < s.bounds.clocks
    }),
    ("prediction raised", |s, _, numbers| {
        let most = floor_and_ceiling(s).1;
        s.predicted_clocks = most + numbers.upto(1 + most);
        true
    }),
    ("witness of the clocks altered", |s, _, numbers| {
        let Some(witness) = altered(s, s.proof.clocks.as_ref(), numbers) else { return false };
        let Some(load) = proves(s, s.bounds.clocks_by, &witness) else { return false };
        s.proof.clocks = Some(witness);
        let switch = s.timetable.routing().machine().parameters().switch_clocks();
        u128::from(s.bounds.phases) * u128::from(switch) + load < u128::from(s.bounds.clocks)
    }),
    ("witness of the phases altered", |s, _, numbers| {
        let Some(witness) = altered(s, s.proof.phases.as_ref(), numbers) else { return false };
        let Some(phases) = proves(s, s.bounds.phases_by, &witness) else { return false };
        s.proof.phases = Some(witness);
        phases < u128::from(s.bounds.phases)
    }),
];

/// A witness of the same kind that says something else.
fn altered(s: &SetSchedule, old: Option<&Witness>, numbers: &mut Numbers) -> Option<Witness> {
    let cells = s.timetable.routing().machine().cell_count() as u64;
    let other = |prices: &[u32], numbers: &mut Numbers| {
        let mut prices = prices.to_vec();
        let from = numbers.below(prices.len() as u64) as usize;
        prices[from..].iter_mut().for_each(|price| *price = numbers.below(100) as u32);
        prices
    };
    Some(match old? {
        Witness::Cell(_) => Witness::Cell(CellId(numbers.below(cells) as u32)),
        Witness::Cut(_) => {
            let inside: Vec<bool> = (0..cells).map(|_| numbers.below(2) == 0).collect();
            Witness::Cut(conset_ir::witness::ranges(inside))
        }
        Witness::CellPrices(prices) => Witness::CellPrices(other(prices, numbers)),
        Witness::LinkPrices(prices) => Witness::LinkPrices(other(prices, numbers)),
        Witness::Prices { cells, links, alone } => Witness::Prices {
            cells: other(cells, numbers),
            links: other(links, numbers),
            alone: other(alone, numbers),
        },
        Witness::Hops | Witness::Chain(_) | Witness::Window { .. } => return None,
    })
}

#[test]
fn none_of_a_thousand_false_claims_is_believed() {
    let mut numbers = Numbers(7);
    let (mut lies, mut kinds) = (BTreeMap::<&str, u32>::new(), BTreeMap::<&str, u32>::new());
    for (machine, set) in programs() {
        let report = bounds(&machine, &set).unwrap();
        for algorithm in [Algorithm::Paper, Algorithm::Auto] {
            let program = Program::from(set.clone());
            let compiled = Compiler::new(&machine)
                .algorithm(algorithm)
                .max_plans(1)
                .compile(&program)
                .unwrap();
            let schedule = &compiled.schedule().sets()[0];
            check_set_schedule(schedule).unwrap_or_else(|e| panic!("{e}\n{set:?}"));
            for by in [schedule.bounds.phases_by, schedule.bounds.clocks_by] {
                *kinds.entry(by.name()).or_default() += 1;
            }
            // Less is still true.
            let mut weaker = schedule.clone();
            weaker.bounds.clocks -= numbers.below(weaker.bounds.clocks + 1);
            check_set_schedule(&weaker).unwrap_or_else(|e| panic!("{e}\n{set:?}"));
            for (what, lie) in LIES.iter().flat_map(|lie| [lie; 4]) {
                let mut changed = schedule.clone();
                if !lie(&mut changed, &report, &mut numbers) {
                    continue;
                }
                let rejection = check_set_schedule(&changed).expect_err(what);
                assert_eq!(rejection.rules(), [Rule::Claim], "{what}: {rejection}");
                *lies.entry(what).or_default() += 1;
            }
        }
    }
    assert!(lies.values().sum::<u32>() >= 1000, "{lies:?}");
    assert!(LIES.iter().all(|(what, _)| lies.get(what).is_some_and(|&n| n >= 20)), "{lies:?}");
    let needed = [
        "endpoints",
        "channel-total",
        "channel-flow",
        "agent-load",
        "link-flow",
        "channel-link-flow",
        "latency",
        "order",
    ];
    assert!(needed.iter().all(|by| kinds.contains_key(by)), "{kinds:?}");
}

#[test]
fn with_timed_starts_the_clocks_of_words_on_their_way_are_proved_to_the_last() {
    let mut kinds = BTreeMap::<&str, u32>::new();
    for (machine, set) in programs() {
        let parameters = Parameters { timed_starts: 1, ..machine.parameters().clone() };
        let switch = u128::from(parameters.switch_clocks());
        let machine = Arc::new(machine.with_parameters(parameters).unwrap());
        let program = Program::from(set.clone());
        let compiled = Compiler::new(&machine).algorithm(Algorithm::Paper).compile(&program);
        let compiled = compiled.unwrap();
        for bound in bounds(&machine, &set).unwrap().clocks {
            let mut schedule = compiled.schedule().sets()[0].clone();
            let Some(witness) = &bound.witness else { continue };
            let beside = u128::from(schedule.bounds.phases) * switch;
            if let Some(proved) = proves(&schedule, bound.binding, witness) {
                assert_eq!(beside + proved, bound.value.into(), "{bound:?}\n{set:?}");
                *kinds.entry(bound.binding.name()).or_default() += u32::from(bound.ramp > 0);
            }
            (schedule.bounds.clocks, schedule.bounds.clocks_by) = (bound.value, bound.binding);
            schedule.proof.clocks = Some(witness.clone());
            schedule.predicted_clocks = schedule.predicted_clocks.max(bound.value + 1);
            check_set_schedule(&schedule).unwrap_or_else(|e| panic!("{e}\n{bound:?}\n{set:?}"));
            schedule.bounds.clocks += 1;
            let rejection = check_set_schedule(&schedule).expect_err("a clock too many");
            assert_eq!(rejection.rules(), [Rule::Claim], "{bound:?}: {rejection}");
        }
    }
    let needed = ["agent-load", "average-link", "dimension-cut", "bisection", "link-flow"];
    let needed = needed.into_iter().chain(["channel-link-flow", "latency"]);
    assert!(needed.clone().all(|by| kinds.get(by).is_some_and(|&n| n > 0)), "{kinds:?}");
}

/// A file of version 1 has no witness. What it claims is believed if it is true, whatever proves it.
#[test]
fn true_claims_of_old_files_are_still_believed() {
    for (machine, set) in programs() {
        let program = Program::from(set.clone());
        let compiled =
            Compiler::new(&machine).algorithm(Algorithm::Paper).compile(&program).unwrap();
        let old = |change: u64| {
            let mut set = compiled.schedule().sets()[0].clone();
            set.proof = Proof::default();
            set.bounds.clocks += change;
            Schedule::new(machine.clone(), vec![set], None).unwrap()
        };
        let adopted =
            Compiled::import(old(0), &mut |_| ()).unwrap_or_else(|e| panic!("{e}\n{set:?}"));
        assert_eq!(adopted.schedule().sets()[0].bounds, compiled.schedule().sets()[0].bounds);
        assert!(Compiled::import(old(1), &mut |_| ()).is_err(), "{set:?}");
    }
}
