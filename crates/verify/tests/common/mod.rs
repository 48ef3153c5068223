//! A small compiler for tests: breadth-first routes, a new phase per conflict, a serial timetable,
//! images. Drafts are plain data, so that tests can corrupt them before they are built.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::collections::VecDeque;
use std::sync::Arc;

use conset_ir::*;

/// A route with its slot.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftRoute {
    pub connection: ConnectionId,
    pub words: u32,
    pub cells: Vec<CellId>,
    pub links: Vec<LinkId>,
    pub channels: Vec<ChannelId>,
    pub start: u64,
    pub duration: u64,
}

impl DraftRoute {
    pub fn source(&self) -> CellId {
        self.cells[0]
    }

    pub fn target(&self) -> CellId {
        self.cells[self.cells.len() - 1]
    }
}

/// A timetable to be.
#[derive(Clone, Debug)]
pub struct Draft {
    pub machine: Arc<Machine>,
    pub set: Arc<ConnectionSet>,
    pub phases: Vec<Vec<DraftRoute>>,
    /// Added to every makespan.
    pub makespan_error: u64,
}

pub fn machine(spec: &str, settings: &[(&str, &str)]) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).unwrap();
    let mut parameters = machine.parameters().clone();
    for (name, value) in settings {
        parameters.set(name, value).unwrap();
    }
    Arc::new(machine.with_parameters(parameters).unwrap())
}

/// The same machine with dead parts.
pub fn with_dead(machine: &Machine, cells: &[u32], links: &[(u32, u32)]) -> Arc<Machine> {
    let links = links.iter().map(|&(a, b)| (CellId(a), CellId(b))).collect();
    let cells = cells.iter().map(|&c| CellId(c)).collect();
    let (topology, parameters) = (machine.topology().clone(), machine.parameters().clone());
    Arc::new(Machine::new(machine.name(), topology, parameters, cells, links).unwrap())
}

pub fn set(connections: &[(u32, u32, u32)]) -> ConnectionSet {
    let connections =
        connections.iter().map(|&(s, t, w)| Connection::new(CellId(s), CellId(t), w)).collect();
    ConnectionSet::new("s", connections).unwrap()
}

/// A shortest way, as cells and links; `None` where there is none.
pub fn way(machine: &Machine, from: CellId, to: CellId) -> Option<(Vec<CellId>, Vec<LinkId>)> {
    let mut entered = vec![None; machine.cell_count()];
    let mut queue = VecDeque::from([from]);
    while let Some(cell) = queue.pop_front() {
        for &link in machine.outgoing(cell) {
            let next = machine.link(link).target;
            if next != from && entered[next.index()].is_none() {
                entered[next.index()] = Some(link);
                queue.push_back(next);
            }
        }
    }
    let (mut cells, mut links) = (vec![to], Vec::new());
    while cells[cells.len() - 1] != from {
        let link = entered[cells[cells.len() - 1].index()]?;
        links.push(link);
        cells.push(machine.link(link).source);
    }
    cells.reverse();
    links.reverse();
    Some((cells, links))
}

/// Whether every connection has a way.
pub fn is_connected(machine: &Machine, set: &ConnectionSet) -> bool {
    set.connections().iter().all(|c| way(machine, c.source, c.target).is_some())
}

/// Compiles: every connection in as many parts as `parts` says of its id, each part in the first
/// phase that has a channel on every cell of its way and is not too early for the order.
pub fn compile(
    machine: &Arc<Machine>,
    set: ConnectionSet,
    parts: impl Fn(ConnectionId) -> u32,
) -> Draft {
    let channels = machine.parameters().channels_per_cell;
    let mut phases: Vec<Vec<DraftRoute>> = Vec::new();
    // Per phase and cell, the channels taken.
    let mut taken: Vec<Vec<u32>> = Vec::new();
    let mut last_phase = vec![0usize; set.len()];
    for (id, connection) in set.iter() {
        let (cells, links) = way(machine, connection.source, connection.target).unwrap();
        let parts = parts(id).clamp(1, connection.words);
        let before = set.order().iter().filter(|pair| pair.1 == id);
        let mut earliest = before.map(|pair| last_phase[pair.0.index()]).max().unwrap_or(0);
        for part in 0..parts {
            let words = connection.words / parts + u32::from(part < connection.words % parts);
            let fits = |taken: &Vec<u32>| cells.iter().all(|c| taken[c.index()] < channels);
            let found = (earliest..phases.len()).find(|&p| fits(&taken[p]));
            let phase = found.unwrap_or_else(|| {
                phases.push(Vec::new());
                taken.push(vec![0; machine.cell_count()]);
                phases.len() - 1
            });
            let channels = cells
                .iter()
                .map(|c| {
                    taken[phase][c.index()] += 1;
                    ChannelId(taken[phase][c.index()] - 1)
                })
                .collect();
            let (cells, links) = (cells.clone(), links.clone());
            phases[phase].push(DraftRoute {
                connection: id,
                words,
                cells,
                links,
                channels,
                start: 0,
                duration: 0,
            });
            // Later parts later, so that words stay in order; sometimes in the same phase.
            earliest = phase;
            last_phase[id.index()] = phase;
        }
    }
    let mut draft =
        Draft { machine: machine.clone(), set: Arc::new(set), phases, makespan_error: 0 };
    draft.schedule();
    draft
}

impl Draft {
    /// Gives every route the first time at which both ends and the order are free.
    pub fn schedule(&mut self) {
        let p = self.machine.parameters().clone();
        let half = p.duplex == Duplex::Half;
        for phase in &mut self.phases {
            let mut free = vec![[0u64; 2]; self.machine.cell_count()];
            let mut ended = vec![0u64; self.set.len()];
            for route in phase.iter_mut() {
                let (source, target) = (route.source().index(), route.target().index());
                let (send, receive) = (0, usize::from(!half));
                let before = self.set.order().iter().filter(|pair| pair.1 == route.connection);
                let ordered = before.map(|pair| ended[pair.0.index()]).max().unwrap_or(0);
                route.start = ordered.max(free[source][send]).max(free[target][receive]);
                let clocks = p.access_clocks_per_word.max(p.link_clocks_per_word);
                route.duration =
                    u64::from(route.words) * u64::from(clocks) + u64::from(p.stream_setup);
                let end = route.start + route.duration;
                free[source][send] = end;
                free[target][receive] = end;
                let ended = &mut ended[route.connection.index()];
                *ended = end.max(*ended);
            }
        }
    }

    pub fn route(&mut self, connection: u32) -> &mut DraftRoute {
        let id = ConnectionId(connection);
        self.phases.iter_mut().flatten().find(|route| route.connection == id).unwrap()
    }

    pub fn try_routing(&self) -> Result<Routing, ShapeError> {
        let mut phases = Vec::new();
        for phase in &self.phases {
            let mut routes = PhaseRoutes::new();
            for r in phase {
                routes.push(r.connection, r.words, &r.cells, &r.links, &r.channels)?;
            }
            phases.push(routes);
        }
        Routing::new(self.machine.clone(), self.set.clone(), phases)
    }

    pub fn try_timetable(&self) -> Result<Timetable, ShapeError> {
        let times = self
            .phases
            .iter()
            .map(|phase| {
                let slots: Vec<Slot> =
                    phase.iter().map(|r| Slot { start: r.start, duration: r.duration }).collect();
                let end = slots.iter().map(Slot::end).max().unwrap_or(0);
                PhaseTimes { slots, makespan: end + self.makespan_error }
            })
            .collect();
        Timetable::new(self.try_routing()?, times)
    }

    pub fn routing(&self) -> Routing {
        self.try_routing().unwrap()
    }

    pub fn timetable(&self) -> Timetable {
        self.try_timetable().unwrap()
    }

    pub fn schedule_of(&self, phases: u32, clocks: u64, predicted_clocks: u64) -> SetSchedule {
        let bounds =
            Bounds { phases, phases_by: Binding::Endpoints, clocks, clocks_by: Binding::AgentLoad };
        let proof = Proof::default();
        SetSchedule { timetable: self.timetable(), bounds, proof, predicted_clocks }
    }

    /// The image of the draft.
    pub fn image(&self) -> DraftImage {
        let cells = self.machine.cell_count();
        let mut first_word = vec![0u32; self.set.len()];
        let mut phases = Vec::new();
        for phase in &self.phases {
            let mut tables = vec![DraftCell::default(); cells];
            for route in phase {
                add_entries(&mut tables, route);
                let first = &mut first_word[route.connection.index()];
                add_operations(&mut tables, route, *first);
                *first += route.words;
            }
            for table in &mut tables {
                table.entries.sort_by_key(|entry| entry.channel);
                table.operations.sort_by_key(|op| (op.start, op.connection, op.direction));
            }
            phases.push(tables);
        }
        DraftImage { machine: self.machine.clone(), set: self.set.clone(), phases }
    }
}

fn add_entries(tables: &mut [DraftCell], route: &DraftRoute) {
    for (i, cell) in route.cells.iter().enumerate() {
        let feed = match i {
            0 => Feed::Gate(route.connection),
            _ => Feed::Link(route.links[i - 1]),
        };
        let sink = match route.links.get(i) {
            None => Sink::Gate(route.connection),
            Some(&link) => Sink::Forward { link, channel: route.channels[i + 1] },
        };
        let entry = ChannelEntry { channel: route.channels[i], feed, sink };
        tables[cell.index()].entries.push(entry);
    }
}

fn add_operations(tables: &mut [DraftCell], route: &DraftRoute, first_word: u32) {
    let last = route.cells.len() - 1;
    for (direction, at) in [(Direction::Send, 0), (Direction::Receive, last)] {
        tables[route.cells[at].index()].operations.push(Operation {
            direction,
            connection: route.connection,
            channel: route.channels[at],
            words: route.words,
            first_word,
            start: route.start,
        });
    }
}

/// A cell's tables to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftCell {
    pub entries: Vec<ChannelEntry>,
    pub operations: Vec<Operation>,
}

/// An image to be, of one set.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftImage {
    pub machine: Arc<Machine>,
    pub set: Arc<ConnectionSet>,
    pub phases: Vec<Vec<DraftCell>>,
}

impl DraftImage {
    pub fn cell(&mut self, cell: u32) -> &mut DraftCell {
        &mut self.phases[0][cell as usize]
    }

    pub fn operations(&mut self) -> impl Iterator<Item = &mut Operation> {
        self.phases.iter_mut().flatten().flat_map(|cell| &mut cell.operations)
    }

    pub fn try_build(&self) -> Result<Image, ShapeError> {
        let phases = self.phases.iter().map(|cells| phase_image(cells)).collect();
        let set = SetImage::of_phases(self.set.clone(), phases);
        Image::new(self.machine.clone(), vec![set])
    }

    pub fn build(&self) -> Image {
        self.try_build().unwrap()
    }
}

pub fn phase_image(cells: &[DraftCell]) -> PhaseImage {
    PhaseImage::from_cells(
        cells.iter().map(|c| CellContext { entries: &c.entries, operations: &c.operations }),
    )
}
