//! The reader of the binary form.

use std::sync::Arc;

use super::codec::{Decoder, MachineWire};
use super::{CHECKSUM, HEADER, MAGIC, MAJOR, MINOR};
use crate::convert::{index, to_u64, to_usize};
use crate::document::Document;
use crate::error::{At, InputError, Result, ShapeError};
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId};
use crate::image::{
    CellContext, ChannelEntry, Direction, Feed, Image, Operation, PhaseImage, SetImage, Sink,
};
use crate::limits;
use crate::machine::{FIRST_NUMBERS, Machine, Parameters, Protocol};
use crate::part_map::PartMap;
use crate::routing::{PhaseRoutes, RouteBuffer, Routing};
use crate::schedule::{Bounds, Schedule, SetSchedule};
use crate::set::{Connection, ConnectionSet, NodeLists, Program};
use crate::step_schedule::{SetSteps, StepBounds, StepSchedule};
use crate::steps::{Piece, StepMessages, Steps};
use crate::timetable::{PhaseTimes, Slot, Timetable};
use crate::witness::Proof;

/// Parses a binary file. `name` is the name of the file in error messages.
///
/// # Errors
/// A file that is not in the binary form, truncated or damaged, of a newer version, or with an
/// invalid payload; with the offset in bytes, or the path of an inconsistent part.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Document> {
    let ([major, minor, kind], payload) = open(name, bytes)?;
    let mut input = Decoder::new(name, payload, HEADER);
    input.major = major;
    let document = match kind {
        0 => Document::Machine(input.machine()?),
        1 => input.program()?,
        2 => {
            let machine = input.machine()?;
            let (set, phases) = input.phases(&machine, false)?;
            let routes = phases.into_iter().map(|phase| phase.0).collect();
            Document::Routing(Routing::new(machine, set, routes).map_err(|e| e.in_file(name))?)
        }
        3 => {
            let machine = input.machine()?;
            Document::Timetable(input.timetable(&machine)?.map_err(|e| e.in_file(name))?)
        }
        4 => Document::Schedule(input.schedule(minor)?),
        5 => Document::Image(input.image()?),
        6 => Document::Steps(input.step_schedule()?),
        7 => Document::Image(input.step_image()?),
        _ => return Err(byte(name, 10, format!("kind {kind} is unknown"))),
    };
    // A newer minor version may have more data at the end.
    let newer = minor > MINOR;
    if input.left() > 0 && !newer {
        return Err(input.error(format!("expected the end, found {} more bytes", input.left())));
    }
    Ok(document)
}

fn byte(name: &str, offset: usize, message: impl Into<String>) -> InputError {
    InputError::new(name, At::Byte(offset), message)
}

/// Checks the container; returns both versions, the kind, and the payload.
fn open<'a>(name: &str, bytes: &'a [u8]) -> Result<([u8; 3], &'a [u8])> {
    if !bytes.starts_with(&MAGIC) {
        return Err(byte(name, 0, "not a binary conset file"));
    }
    if bytes.len() < HEADER + CHECKSUM {
        return Err(byte(name, bytes.len(), "the file is truncated within its header"));
    }
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    let payload = &body[HEADER..];
    let stated = u64::from_le_bytes(body[12..20].try_into().expect("eight bytes"));
    if stated != to_u64(payload.len()) {
        let message = format!("expected {stated} bytes of payload, found {}", payload.len());
        return Err(
            byte(name, 12, message).help("the file is truncated or damaged; write it again")
        );
    }
    if crc32fast::hash(body).to_le_bytes() != checksum {
        return Err(byte(name, body.len(), "the checksum does not match the contents")
            .help("the file is damaged; write it again"));
    }
    let (major, minor) = (body[8], body[9]);
    if !(1..=MAJOR).contains(&major) {
        return Err(byte(
            name,
            8,
            format!("format version {major}.{minor} is not 1.x to {MAJOR}.x"),
        )
        .help(if major > MAJOR {
            "the file needs a newer version of conset"
        } else {
            "no such version exists"
        }));
    }
    if body[11] != 0 {
        return Err(byte(name, 11, "expected 0"));
    }
    Ok(([major, minor, body[10]], payload))
}

type TimedPhases = Vec<(PhaseRoutes, PhaseTimes)>;

impl Decoder<'_> {
    fn machine(&mut self) -> Result<Arc<Machine>> {
        let wire: MachineWire<'_> = self.take("a machine")?;
        let timed_starts = match self.major {
            1 => 0,
            _ => self.below(2, "whether starts are timed")?,
        };
        let (mut protocol, mut later) = (Protocol::Standing, Vec::new());
        if self.major > 2 {
            protocol = self.take("a protocol")?;
            let most = Parameters::iwarp().numbers().len() - FIRST_NUMBERS;
            let count = self.count("a number of parameters", most)?;
            for _ in 0..count {
                later.push(self.take("a parameter")?);
            }
        }
        wire.build(timed_starts, protocol, &later).map(Arc::new).map_err(|e| e.in_file(self.file))
    }

    fn flag(&mut self, what: &str) -> Result<bool> {
        self.take(what)
    }

    fn program(&mut self) -> Result<Document> {
        let machine = match self.flag("whether there is a machine")? {
            true => Some(self.machine()?),
            false => None,
        };
        let count = self.count("a number of sets", limits::SETS)?;
        let mut sets = Vec::new();
        for row in 0..count {
            let set = self.set()?;
            if let Some(machine) = &machine {
                let fits = set.check_machine(machine);
                fits.map_err(|e| e.under(format!("sets[{row}]")).in_file(self.file))?;
            }
            sets.push(Arc::new(set));
        }
        let program = Program::new(sets).map_err(|e| e.in_file(self.file))?;
        Ok(Document::Program { machine, program })
    }

    fn set(&mut self) -> Result<ConnectionSet> {
        let name: String = self.take("the name of a set")?;
        let count = self.count("a number of connections", limits::CONNECTIONS)?;
        let mut connections = Vec::new();
        for _ in 0..count {
            let source = CellId(self.number32("a cell")?);
            let target = CellId(self.number32("a cell")?);
            connections.push(Connection::new(source, target, self.number32("words")?));
        }
        self.options(count, |input, row| {
            let name: String = input.take("a name")?;
            connections[row].name = Some(name.into());
            Ok(())
        })?;
        self.options(count, |input, row| {
            connections[row].min_bandwidth = Some(input.number32("a bandwidth")?);
            Ok(())
        })?;
        self.options(count, |input, row| {
            connections[row].max_latency = Some(input.number32("a latency")?);
            Ok(())
        })?;
        let pairs = self.count("a number of ordering constraints", limits::ORDERS)?;
        let mut order = Vec::new();
        for _ in 0..pairs {
            let before = ConnectionId(self.below(count, "a connection")?);
            order.push((before, ConnectionId(self.below(count, "a connection")?)));
        }
        let nodes = match self.flag("whether there are nodes")? {
            true => Some(self.nodes(&connections)?),
            false => None,
        };
        let build = || {
            let set = ConnectionSet::new(name, connections)?.with_order(order)?;
            match nodes {
                Some(nodes) => set.with_nodes(nodes),
                None => Ok(set),
            }
        };
        build().map_err(|e: ShapeError| e.in_file(self.file))
    }

    /// An optional field of `count` connections: the connections that have it, with its value.
    fn options(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..self.count("a number of connections", count)? {
            let row = self.below(count, "a connection")?;
            read(self, index(row))?;
        }
        Ok(())
    }

    fn nodes(&mut self, connections: &[Connection]) -> Result<NodeLists> {
        let total: u64 = connections.iter().map(|c| u64::from(c.words)).sum();
        if total > to_u64(self.left().min(limits::NODES)) {
            return Err(self.error(format!("expected {total} nodes, found fewer")));
        }
        let mut nodes = Vec::new();
        for connection in connections {
            let mut last = 0;
            for _ in 0..connection.words {
                last = self.step(last, "a node")?;
                nodes.push(last);
            }
        }
        let mut rest = &nodes[..];
        Ok(NodeLists::from_lists(connections.iter().map(|connection| {
            let (list, others) = rest.split_at(index(connection.words));
            rest = others;
            list
        })))
    }

    /// A set and its phases; their times are empty unless `timed`.
    fn phases(
        &mut self,
        machine: &Machine,
        timed: bool,
    ) -> Result<(Arc<ConnectionSet>, TimedPhases)> {
        let set = self.set()?;
        // Routes start at the source of their connection, which must be a cell of the machine.
        set.check_machine(machine).map_err(|e| e.in_file(self.file))?;
        let count = self.count("a number of phases", limits::PHASES)?;
        let mut phases = Vec::new();
        let mut buffer = RouteBuffer::default();
        for _ in 0..count {
            let routes = self.routes(machine, &set, &mut buffer)?;
            let mut times = PhaseTimes::default();
            if timed {
                for _ in 0..routes.len() {
                    let start = self.number("the start of a slot")?;
                    times.slots.push(Slot { start, duration: self.number("a duration")? });
                }
                times.makespan = self.number("a makespan")?;
            }
            phases.push((routes, times));
        }
        Ok((Arc::new(set), phases))
    }

    fn routes(
        &mut self,
        machine: &Machine,
        set: &ConnectionSet,
        route: &mut RouteBuffer,
    ) -> Result<PhaseRoutes> {
        let mut phase = PhaseRoutes::new();
        let mut last = 0;
        for _ in 0..self.count("a number of routes", limits::HOPS)? {
            last = self.step(last, "a connection")?;
            if index(last) >= set.len() {
                let message = format!("x{last} is not one of the set's {} connections", set.len());
                return Err(self.error(message));
            }
            let connection = set.get(ConnectionId(last));
            let head = self.number("the head of a route")?;
            let hops = usize::try_from(head >> 2).unwrap_or(usize::MAX);
            if hops >= self.left() {
                return Err(self.error(format!("expected {hops} hops, found fewer")));
            }
            let words = if head & 1 == 1 { self.number32("words")? } else { connection.words };
            route.clear();
            if head & 2 == 0 {
                self.chain(machine, connection.source, hops, route)?;
            } else {
                self.explicit(machine, hops, route)?;
            }
            phase
                .push(ConnectionId(last), words, &route.cells, &route.links, &route.channels)
                .map_err(|e| e.in_file(self.file))?;
        }
        Ok(phase)
    }

    /// A route over live links: for each cell but the last, channel and link in one number.
    fn chain(
        &mut self,
        machine: &Machine,
        source: CellId,
        hops: usize,
        route: &mut RouteBuffer,
    ) -> Result<()> {
        let mut at = source;
        route.cells.push(at);
        for _ in 0..hops {
            let out = machine.outgoing(at);
            let links = to_u64(out.len());
            let step = self.number("a channel and a link out of the cell")?;
            let channel = step.checked_div(links).and_then(|channel| u32::try_from(channel).ok());
            let Some(channel) = channel else {
                let message = format!("expected a channel and one of {links} links, found {step}");
                return Err(self.error(message));
            };
            let link = out[to_usize(step % links)];
            at = machine.link(link).target;
            route.channels.push(ChannelId(channel));
            route.cells.push(at);
            route.links.push(link);
        }
        route.channels.push(ChannelId(self.number32("a channel")?));
        Ok(())
    }

    /// Any other route: its cells and its links.
    fn explicit(&mut self, machine: &Machine, hops: usize, route: &mut RouteBuffer) -> Result<()> {
        for _ in 0..=hops {
            route.cells.push(CellId(self.below(machine.cell_count(), "a cell")?));
        }
        for _ in 0..hops {
            route.links.push(match self.below(machine.link_count() + 1, "a link")? {
                0 => LinkId::NONE,
                after => LinkId(after - 1),
            });
        }
        for _ in 0..=hops {
            route.channels.push(ChannelId(self.number32("a channel")?));
        }
        Ok(())
    }

    fn timetable(&mut self, machine: &Arc<Machine>) -> Result<Result<Timetable, ShapeError>> {
        let (set, phases) = self.phases(machine, true)?;
        let (routes, times) = phases.into_iter().unzip();
        Ok(Routing::new(machine.clone(), set, routes)
            .and_then(|routing| Timetable::new(routing, times)))
    }

    fn schedule(&mut self, minor: u8) -> Result<Schedule> {
        let machine = self.machine()?;
        let origin = self.take("an origin")?;
        let count = self.count("a number of sets", limits::SETS)?;
        let mut sets = Vec::new();
        for row in 0..count {
            let timetable = self.timetable(&machine)?;
            sets.push(SetSchedule {
                timetable: timetable
                    .map_err(|e| e.under(format!("sets[{row}]")).in_file(self.file))?,
                bounds: Bounds {
                    phases: self.number32("a number of phases")?,
                    phases_by: self.take("what bounds the phases")?,
                    clocks: self.number("clocks")?,
                    clocks_by: self.take("what bounds the clocks")?,
                },
                proof: Proof::default(),
                predicted_clocks: self.number("clocks")?,
            });
        }
        let mut digest = None;
        if minor >= 1 {
            digest = self.take("a digest")?;
            for set in &mut sets {
                set.proof = self.take("witnesses")?;
            }
        }
        let part_map = if minor >= 2 { Some(self.part_map()?) } else { None };
        let schedule = Schedule::new(machine, sets, origin).map_err(|e| e.in_file(self.file))?;
        let schedule = schedule.with_part_map(part_map).map_err(|e| e.in_file(self.file))?;
        Ok(schedule.with_stated_digest(digest))
    }

    fn part_map(&mut self) -> Result<PartMap> {
        let mut cells = Vec::new();
        for _ in 0..self.count("a number of parts", limits::PARTS)? {
            cells.push(CellId(self.number32("a cell")?));
        }
        let first_number = self.number("the first number of a node")?;
        let (mut numbers, mut last) = (Vec::new(), 0);
        for _ in 0..self.count("a number of nodes", limits::NODES)? {
            last = self.step(last, "a node")?;
            numbers.push((last, self.number("the number of a node")?));
        }
        PartMap::new(cells, first_number, numbers).map_err(|e| e.in_file(self.file))
    }

    fn step_schedule(&mut self) -> Result<StepSchedule> {
        let machine = self.machine()?;
        let origin = self.take("an origin")?;
        let digest = self.take("a digest")?;
        let mut sets = Vec::new();
        for row in 0..self.count("a number of sets", limits::SETS)? {
            sets.push(SetSteps {
                steps: self.steps(&machine, row)?,
                bounds: StepBounds {
                    clocks: self.number("clocks")?,
                    clocks_by: self.take("what bounds the clocks")?,
                    clocks_witness: self.take("a witness")?,
                    direct_clocks: self.number("clocks")?,
                },
                predicted_clocks: self.take("clocks")?,
            });
        }
        let part_map = match self.flag("whether there are parts")? {
            true => Some(self.part_map()?),
            false => None,
        };
        StepSchedule::new(machine, sets, origin)
            .and_then(|schedule| schedule.with_part_map(part_map))
            .map(|schedule| schedule.with_stated_digest(digest))
            .map_err(|e| e.in_file(self.file))
    }

    /// A set and its steps.
    fn steps(&mut self, machine: &Arc<Machine>, row: usize) -> Result<Steps> {
        let set = Arc::new(self.set()?);
        let messages = self.messages(&set)?;
        Steps::new(machine.clone(), set, messages)
            .map_err(|e| e.under(format!("sets[{row}]")).in_file(self.file))
    }

    fn step_image(&mut self) -> Result<Image> {
        let machine = self.machine()?;
        let mut sets = Vec::new();
        for row in 0..self.count("a number of sets", limits::SETS)? {
            sets.push(SetImage::of_steps(self.steps(&machine, row)?));
        }
        Image::new(machine, sets).map_err(|e| e.in_file(self.file))
    }

    fn messages(&mut self, set: &ConnectionSet) -> Result<StepMessages> {
        let mut messages = StepMessages::new();
        let mut pieces = Vec::new();
        for _ in 0..self.count("a number of steps", limits::STEPS)? {
            for _ in 0..self.count("a number of messages", limits::PIECES)? {
                let source = CellId(self.number32("a cell")?);
                let target = CellId(self.number32("a cell")?);
                pieces.clear();
                for _ in 0..self.count("a number of pieces", limits::PIECES)? {
                    pieces.push(self.piece(set)?);
                }
                messages.push(source, target, &pieces).map_err(|e| e.in_file(self.file))?;
            }
            messages.end_step().map_err(|e| e.in_file(self.file))?;
        }
        Ok(messages)
    }

    fn piece(&mut self, set: &ConnectionSet) -> Result<Piece> {
        let head = self.number("a piece")?;
        let known = u32::try_from(head >> 1).ok().filter(|&x| index(x) < set.len());
        let Some(connection) = known.map(ConnectionId) else {
            let message = format!("expected a piece of {} connections, found {head}", set.len());
            return Err(self.error(message));
        };
        if head & 1 == 0 {
            return Ok(Piece::whole(set, connection));
        }
        let first_word = self.number32("the position of a word")?;
        Ok(Piece { connection, first_word, words: self.number32("words")? })
    }

    fn image(&mut self) -> Result<Image> {
        let machine = self.machine()?;
        let count = self.count("a number of sets", limits::SETS)?;
        let mut sets = Vec::new();
        for _ in 0..count {
            let set = Arc::new(self.set()?);
            let mut phases = Vec::new();
            for _ in 0..self.count("a number of phases", limits::PHASES)? {
                phases.push(self.phase_image(&machine)?);
            }
            sets.push(SetImage::of_phases(set, phases));
        }
        Image::new(machine, sets).map_err(|e| e.in_file(self.file))
    }

    fn phase_image(&mut self, machine: &Machine) -> Result<PhaseImage> {
        let (mut entries, mut operations, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for cell in machine.cells() {
            let before = (entries.len(), operations.len());
            for _ in 0..self.count("a number of entries", limits::HOPS)? {
                entries.push(self.entry(machine, cell)?);
            }
            for _ in 0..self.count("a number of operations", limits::HOPS)? {
                operations.push(self.operation()?);
            }
            if before != (entries.len(), operations.len()) {
                ends.push((cell, entries.len(), operations.len()));
            }
        }
        let (mut entry, mut operation) = (0, 0);
        let listed = ends.iter().map(|&(cell, entries_end, operations_end)| {
            let context = CellContext {
                entries: &entries[entry..entries_end],
                operations: &operations[operation..operations_end],
            };
            (entry, operation) = (entries_end, operations_end);
            (cell, context)
        });
        Ok(PhaseImage::from_listed(machine.cell_count(), listed))
    }

    fn entry(&mut self, machine: &Machine, cell: CellId) -> Result<ChannelEntry> {
        let channel = ChannelId(self.number32("a channel")?);
        let feed = match self.near_link(machine.incoming(cell))? {
            None => Feed::Gate(ConnectionId(self.number32("a connection")?)),
            Some(link) => Feed::Link(link),
        };
        let sink = match self.near_link(machine.outgoing(cell))? {
            None => Sink::Gate(ConnectionId(self.number32("a connection")?)),
            Some(link) => Sink::Forward { link, channel: ChannelId(self.number32("a channel")?) },
        };
        Ok(ChannelEntry { channel, feed, sink })
    }

    /// A link, by its position among the links of the cell or by its id; `None` for a gate.
    fn near_link(&mut self, near: &[LinkId]) -> Result<Option<LinkId>> {
        Ok(match self.below(near.len() + 2, "a gate or a link of the cell")? {
            0 => None,
            1 => Some(LinkId(self.number32("a link")?)),
            position => Some(near[index(position) - 2]),
        })
    }

    fn operation(&mut self) -> Result<Operation> {
        let head = self.number("an operation")?;
        let connection = u32::try_from(head >> 1)
            .map_err(|_| self.error(format!("expected an operation, found {head}")))?;
        Ok(Operation {
            direction: if head & 1 == 1 { Direction::Receive } else { Direction::Send },
            connection: ConnectionId(connection),
            channel: ChannelId(self.number32("a channel")?),
            words: self.number32("words")?,
            first_word: self.number32("the first word's place")?,
            start: self.number("the start of an operation")?,
        })
    }
}
