//! Generators of values of every type from a seed. The values have a valid shape but may be wrong
//! otherwise (discontinuous routes, unknown channels, false makespans), as in a file.

use std::sync::Arc;

use conset_ir::{
    Binding, Bounds, CellContext, CellId, ChannelEntry, ChannelId, Connection, ConnectionId,
    ConnectionSet, Direction, Document, Duplex, Feed, Image, LinkFinder, LinkId, Machine,
    NodeLists, Operation, Origin, Parameters, PartMap, PhaseImage, PhaseRoutes, PhaseTimes, Piece,
    Program, Proof, Protocol, Routing, Schedule, SetImage, SetSchedule, SetSteps, Sink, Slot,
    StepBounds, StepMessages, StepSchedule, Steps, Timetable, Topology, Witness, limits,
};

use crate::numbers::Numbers;

impl Numbers {
    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Mostly small numbers, sometimes any, sometimes boundary values.
    fn number(&mut self) -> u64 {
        match self.index(12) {
            0 => self.next(),
            1 => self.pick(&BOUNDARIES),
            _ => self.next() % 1000,
        }
    }
}

/// Boundary values of types, formats and limits.
pub(crate) const BOUNDARIES: [u64; 10] = [
    0,
    1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 53,
    limits::TIME - 1,
    limits::TIME,
    1 << 63,
    u64::MAX,
];

pub(crate) const KINDS: usize = 7;

/// A document of kind `kind % KINDS`.
pub(crate) fn document(rng: &mut Numbers, kind: usize) -> Document {
    match kind % KINDS {
        0 => machine(rng).into(),
        1 => {
            let machine = Arc::new(machine(rng));
            let program = Program::new(sets(rng, &machine)).unwrap();
            Document::Program { machine: rng.coin().then_some(machine), program }
        }
        2 => {
            let machine = Arc::new(machine(rng));
            let set = set(rng, &machine, "only");
            routing(rng, machine, set).into()
        }
        3 => {
            let machine = Arc::new(machine(rng));
            let set = set(rng, &machine, "only");
            timetable(rng, machine, set).into()
        }
        4 => schedule(rng).into(),
        5 => step_schedule(rng).into(),
        _ => image(rng).into(),
    }
}

pub(crate) fn machine(rng: &mut Numbers) -> Machine {
    if rng.one_in(4) {
        let specs = [
            "iwarp:3x2",
            "iwarp-fem:4x4",
            "ring:2",
            "mesh:1x5",
            "hypercube:3",
            "cm5:7",
            "cluster:3x2",
        ];
        return Machine::from_spec(rng.pick(&specs)).unwrap();
    }
    let topology = topology(rng);
    let plain = Machine::new("m", topology.clone(), Parameters::iwarp(), vec![], vec![]).unwrap();
    let names = ["iwarp", "torus", "a \"quoted\" name\\", "ünï # code", "x", "graph", "iwarp-fem"];
    let cells = plain.cell_count();
    let dead_cells = (0..rng.index(2)).map(|_| CellId(rng.index(cells) as u32)).collect::<Vec<_>>();
    let dead_links = (0..rng.index(3).min(plain.link_count()))
        .map(|_| plain.link(LinkId(rng.index(plain.link_count()) as u32)))
        .map(|link| (link.source, link.target))
        .collect();
    Machine::new(rng.pick(&names), topology, parameters(rng), dead_cells, dead_links).unwrap()
}

fn topology(rng: &mut Numbers) -> Topology {
    let dims = |rng: &mut Numbers| (0..1 + rng.index(3)).map(|_| 1 + rng.index(4) as u32).collect();
    match rng.index(7) {
        0 => Topology::Torus { dims: dims(rng) },
        1 => Topology::Mesh { dims: dims(rng) },
        2 => Topology::Ring { cells: 1 + rng.index(6) as u32 },
        3 => Topology::Hypercube { dimension: rng.index(4) as u32 },
        4 => {
            let parents = match rng.index(3) {
                0 => Topology::DEFAULT_PARENTS.to_vec(),
                levels => (0..levels).map(|_| 1 + rng.index(3) as u32).collect(),
            };
            Topology::FatTree { leaves: 1 + rng.index(20) as u32, parents }
        }
        5 => Topology::Cluster {
            nodes: 1 + rng.index(4) as u32,
            cells_per_node: 1 + rng.index(3) as u32,
        },
        _ => {
            let (cells, switches) = (1 + rng.index(5) as u32, rng.index(3) as u32);
            let nodes = (cells + switches) as usize;
            let links = (0..rng.index(14))
                .map(|_| (rng.index(nodes) as u32, rng.index(nodes) as u32))
                .filter(|(from, to)| from != to)
                .collect();
            Topology::Graph { cells, switches, links }
        }
    }
}

fn parameters(rng: &mut Numbers) -> Parameters {
    let mut parameters = if rng.coin() { Parameters::iwarp() } else { Parameters::iwarp_fem() };
    for (name, _, least, most) in Parameters::iwarp().numbers() {
        if rng.one_in(4) {
            let span = u64::from(most - least) + 1;
            let value = u64::from(least) + rng.number() % span;
            parameters.set(name, &value.to_string()).unwrap();
        }
    }
    if rng.one_in(4) {
        parameters.duplex = Duplex::Half;
    }
    if rng.one_in(4) {
        parameters.protocol = rng.pick(&Protocol::ALL).1;
    }
    parameters
}

fn sets(rng: &mut Numbers, machine: &Machine) -> Vec<Arc<ConnectionSet>> {
    let names = ["halo", "x0", "set", "-.-", "123"];
    (0..rng.index(4)).map(|row| Arc::new(set(rng, machine, names[row]))).collect()
}

pub(crate) fn set(rng: &mut Numbers, machine: &Machine, name: &str) -> ConnectionSet {
    let ends: Vec<CellId> = machine.endpoints().collect();
    let count = if ends.is_empty() { 0 } else { rng.index(12) };
    let rich = rng.coin();
    let with_nodes = rng.one_in(3);
    let connections: Vec<Connection> = (0..count)
        .map(|row| Connection {
            source: rng.pick(&ends),
            target: rng.pick(&ends),
            words: 1
                + (if with_nodes { rng.index(9) as u64 } else { rng.number() % (1 << 30) }) as u32,
            min_bandwidth: (rich && rng.one_in(3)).then(|| 1 + rng.next() as u32 % 2000),
            max_latency: (rich && rng.one_in(3)).then(|| 1 + rng.next() as u32 % 2000),
            name: (rich && rng.one_in(3)).then(|| format!("up-{row}.x_").into()),
        })
        .collect();
    let lists: Vec<Vec<u32>> = connections
        .iter()
        .map(|c| (0..if with_nodes { c.words } else { 0 }).map(|_| rng.number() as u32).collect())
        .collect();
    let mut set = ConnectionSet::new(name, connections).unwrap();
    if rng.coin() && count > 1 {
        let order = (0..rng.index(6))
            .map(|_| (rng.index(count) as u32, rng.index(count) as u32))
            .filter(|(a, b)| a != b)
            .map(|(a, b)| (ConnectionId(a.min(b)), ConnectionId(a.max(b))))
            .collect();
        set = set.with_order(order).unwrap();
    }
    if with_nodes {
        set = set.with_nodes(NodeLists::from_lists(lists.iter().map(|l| &l[..]))).unwrap();
    }
    set
}

pub(crate) fn routing(rng: &mut Numbers, machine: Arc<Machine>, set: ConnectionSet) -> Routing {
    let phases = (0..rng.index(4)).map(|_| phase(rng, &machine, &set)).collect();
    Routing::new(machine, Arc::new(set), phases).unwrap()
}

fn phase(rng: &mut Numbers, machine: &Machine, set: &ConnectionSet) -> PhaseRoutes {
    let mut phase = PhaseRoutes::new();
    let finder = LinkFinder::new(machine);
    for _ in 0..if set.is_empty() { 0 } else { rng.index(8) } {
        let connection = ConnectionId(rng.index(set.len()) as u32);
        let words = if rng.coin() { set.get(connection).words } else { rng.number() as u32 };
        let (cells, links) = walk(rng, machine, &finder, set.get(connection).source);
        let channels: Vec<ChannelId> =
            cells.iter().map(|_| ChannelId(rng.number() as u32 % 5000)).collect();
        phase.push(connection, words, &cells, &links, &channels).unwrap();
    }
    phase
}

/// Cells along live links, occasionally with a jump, a wrong start or a non-default link.
fn walk(
    rng: &mut Numbers,
    machine: &Machine,
    finder: &LinkFinder<'_>,
    source: CellId,
) -> (Vec<CellId>, Vec<LinkId>) {
    let any = |rng: &mut Numbers| CellId(rng.index(machine.cell_count()) as u32);
    let mut at = if rng.one_in(8) { any(rng) } else { source };
    let (mut cells, mut links) = (vec![at], Vec::new());
    for _ in 0..rng.index(6) {
        let out = machine.outgoing(at);
        let (next, link) = if out.is_empty() || rng.one_in(8) {
            let next = any(rng);
            (next, finder.default_link(at, next))
        } else {
            let link = rng.pick(out);
            (machine.link(link).target, link)
        };
        let strange = machine.link_count() > 0 && rng.one_in(20);
        links.push(match (strange, rng.coin()) {
            (true, true) => LinkId(rng.index(machine.link_count()) as u32),
            (true, false) => LinkId::NONE,
            _ => link,
        });
        cells.push(next);
        at = next;
    }
    (cells, links)
}

pub(crate) fn timetable(rng: &mut Numbers, machine: Arc<Machine>, set: ConnectionSet) -> Timetable {
    let routing = routing(rng, machine, set);
    let times = routing
        .phases()
        .iter()
        .map(|routes| PhaseTimes {
            slots: (0..routes.len())
                .map(|_| Slot { start: rng.number(), duration: rng.number() })
                .collect(),
            makespan: rng.number(),
        })
        .collect();
    Timetable::new(routing, times).unwrap()
}

pub(crate) fn schedule(rng: &mut Numbers) -> Schedule {
    let machine = Arc::new(machine(rng));
    let sets = sets(rng, &machine)
        .into_iter()
        .map(|set| SetSchedule {
            timetable: timetable(rng, machine.clone(), ConnectionSet::clone(&set)),
            bounds: Bounds {
                phases: rng.number() as u32,
                phases_by: rng.pick(&Binding::ALL),
                clocks: rng.number(),
                clocks_by: rng.pick(&Binding::ALL),
            },
            proof: Proof { phases: witness(rng), clocks: witness(rng) },
            predicted_clocks: rng.number(),
        })
        .collect();
    let origin = origin(rng);
    let digest = rng.coin().then(|| rng.number());
    let part_map = rng.one_in(3).then(|| part_map(rng, &machine));
    let schedule = Schedule::new(machine, sets, origin).unwrap();
    schedule.with_part_map(part_map).unwrap().with_stated_digest(digest)
}

fn origin(rng: &mut Numbers) -> Option<Origin> {
    rng.coin().then(|| Origin {
        generator: "conset \"0.1\" é".into(),
        algorithm: if rng.coin() { "best".into() } else { String::new() },
        seed: rng.number(),
    })
}

fn step_schedule(rng: &mut Numbers) -> StepSchedule {
    let machine = Arc::new(machine(rng));
    let mut sets = sets(rng, &machine);
    if sets.is_empty() {
        sets.push(Arc::new(set(rng, &machine, "only")));
    }
    let sets = sets.into_iter().map(|set| SetSteps {
        bounds: StepBounds {
            clocks: rng.number(),
            clocks_by: rng.pick(&Binding::ALL),
            clocks_witness: witness(rng),
            direct_clocks: rng.number(),
        },
        predicted_clocks: rng.coin().then(|| rng.number()),
        steps: steps(rng, &machine, set),
    });
    let sets = sets.collect();
    let origin = origin(rng);
    let digest = rng.coin().then(|| rng.number());
    let part_map = rng.one_in(3).then(|| part_map(rng, &machine));
    let schedule = StepSchedule::new(machine, sets, origin).unwrap();
    schedule.with_part_map(part_map).unwrap().with_stated_digest(digest)
}

fn steps(rng: &mut Numbers, machine: &Arc<Machine>, set: Arc<ConnectionSet>) -> Steps {
    let ends: Vec<CellId> = machine.endpoints().collect();
    let mut messages = StepMessages::new();
    for _ in 0..rng.index(4) {
        for _ in 0..if set.is_empty() { 0 } else { rng.index(4) } {
            let pieces = (0..1 + rng.index(3)).map(|_| {
                let piece = Piece::whole(&set, ConnectionId(rng.index(set.len()) as u32));
                match rng.index(3) {
                    0 => Piece { first_word: rng.number() as u32, ..piece },
                    1 => Piece { words: rng.number() as u32 >> 2, ..piece },
                    _ => piece,
                }
            });
            let pieces: Vec<Piece> = pieces.collect();
            messages.push(rng.pick(&ends), rng.pick(&ends), &pieces).unwrap();
        }
        messages.end_step().unwrap();
    }
    Steps::new(machine.clone(), set, messages).unwrap()
}

fn part_map(rng: &mut Numbers, machine: &Machine) -> PartMap {
    let cells = (0..machine.agent_count()).filter(|_| rng.coin()).map(CellId::from_index);
    let mut cells: Vec<CellId> = cells.collect();
    if rng.coin() {
        cells.reverse();
    }
    let first = rng.next() >> (2 + rng.index(62));
    let nodes: Vec<u32> = (0..rng.index(6)).map(|_| rng.number() as u32).collect();
    let seed = rng.number();
    PartMap::of_nodes(cells, first, nodes, |node| seed.wrapping_mul(u64::from(node))).unwrap()
}

/// A witness of cells and connections that need not exist: it is a claim, which every form carries as
/// it is and the checker refuses.
fn witness(rng: &mut Numbers) -> Option<Witness> {
    let cell = |rng: &mut Numbers| CellId(rng.number() as u32);
    let side = |rng: &mut Numbers| (0..rng.index(4)).map(|_| (cell(rng), cell(rng))).collect();
    let prices = |rng: &mut Numbers| (0..rng.index(5)).map(|_| rng.number() as u32).collect();
    match rng.index(10) {
        0 => Some(Witness::Cell(cell(rng))),
        1 => Some(Witness::Hops),
        2 => Some(Witness::Cut(side(rng))),
        3 => Some(Witness::CellPrices(prices(rng))),
        4 => Some(Witness::LinkPrices(prices(rng))),
        5 => Some(Witness::Chain(
            (0..rng.index(4)).map(|_| ConnectionId(rng.number() as u32)).collect(),
        )),
        6 => Some(Witness::Prices { cells: prices(rng), links: prices(rng), alone: prices(rng) }),
        7 => Some(Witness::Window { head: rng.number(), tail: rng.number(), side: side(rng) }),
        _ => None,
    }
}

pub(crate) fn image(rng: &mut Numbers) -> Image {
    let machine = Arc::new(machine(rng));
    let of_steps = rng.one_in(3);
    let sets = sets(rng, &machine)
        .into_iter()
        .map(|set| {
            if of_steps {
                return SetImage::of_steps(steps(rng, &machine, set));
            }
            let phases = (0..rng.index(3)).map(|_| phase_image(rng, &machine, &set)).collect();
            SetImage::of_phases(set, phases)
        })
        .collect();
    Image::new(machine, sets).unwrap()
}

fn phase_image(rng: &mut Numbers, machine: &Machine, set: &ConnectionSet) -> PhaseImage {
    let tables: Vec<(Vec<ChannelEntry>, Vec<Operation>)> = machine
        .cells()
        .map(|cell| {
            let rows = if set.is_empty() { 0 } else { rng.index(3) };
            let entries = (0..rows).map(|_| entry(rng, machine, set, cell)).collect();
            let operations = (0..rows * rng.index(2)).map(|_| operation(rng, machine, set));
            (entries, operations.collect())
        })
        .collect();
    PhaseImage::from_cells(
        tables.iter().map(|(entries, operations)| CellContext { entries, operations }),
    )
}

fn entry(rng: &mut Numbers, machine: &Machine, set: &ConnectionSet, cell: CellId) -> ChannelEntry {
    let channels = machine.parameters().channels_per_cell as usize;
    let gate = ConnectionId(rng.index(set.len()) as u32);
    let mut link = |near: &[LinkId]| match (near.is_empty(), machine.link_count()) {
        (_, 0) => None,
        (false, _) if !rng.one_in(5) => Some(rng.pick(near)),
        (_, count) => rng.coin().then(|| LinkId(rng.index(count) as u32)),
    };
    let (from, to) = (link(machine.incoming(cell)), link(machine.outgoing(cell)));
    let mut channel = || ChannelId(rng.index(channels) as u32);
    ChannelEntry {
        channel: channel(),
        feed: from.map_or(Feed::Gate(gate), Feed::Link),
        sink: match to {
            Some(link) => Sink::Forward { link, channel: channel() },
            None => Sink::Gate(gate),
        },
    }
}

fn operation(rng: &mut Numbers, machine: &Machine, set: &ConnectionSet) -> Operation {
    let connection = ConnectionId(rng.index(set.len()) as u32);
    let all = set.get(connection).words;
    let first_word = if rng.coin() { 0 } else { rng.index(all as usize) as u32 };
    Operation {
        direction: if rng.coin() { Direction::Send } else { Direction::Receive },
        connection,
        channel: ChannelId(rng.index(machine.parameters().channels_per_cell as usize) as u32),
        words: 1 + rng.index((all - first_word) as usize) as u32,
        first_word,
        start: rng.number(),
    }
}
