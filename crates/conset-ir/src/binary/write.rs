//! The writer of the binary form.

use super::codec::{Encoder, MachineWire};
use super::{CHECKSUM, HEADER, MAGIC};
use crate::convert::to_u64;
use crate::document::Document;
use crate::ids::{CellId, LinkId};
use crate::image::{CellContext, Direction, Feed, Image, Sink};
use crate::machine::Machine;
use crate::part_map::PartMap;
use crate::routing::{PhaseRoutes, RouteRef, Routing};
use crate::schedule::{Schedule, SetSchedule};
use crate::set::{Connection, ConnectionSet};
use crate::step_schedule::{StepBounds, StepSchedule};
use crate::steps::{StepMessage, Steps};
use crate::timetable::Timetable;
use crate::version;

/// The binary form of a value.
pub fn write(document: &Document) -> Vec<u8> {
    let major = version::major(document);
    let mut out = Encoder { major, ..Encoder::default() };
    let mut minor = 0;
    let kind = match document {
        Document::Machine(machine) => {
            write_machine(machine, &mut out);
            0
        }
        Document::Program { machine, program } => {
            out.put(&machine.is_some());
            if let Some(machine) = machine {
                write_machine(machine, &mut out);
            }
            out.count(program.sets().len());
            program.sets().iter().for_each(|set| write_set(set, &mut out));
            1
        }
        Document::Routing(routing) => {
            write_machine(routing.machine(), &mut out);
            write_routing(routing, &mut out);
            2
        }
        Document::Timetable(timetable) => {
            write_machine(timetable.routing().machine(), &mut out);
            write_timetable(timetable, &mut out);
            3
        }
        Document::Schedule(schedule) => {
            write_schedule(schedule, &mut out);
            let part_map = schedule.part_map();
            if version::has_digest_or_witness(schedule) || part_map.is_some() {
                minor = 1;
                out.put(&schedule.digest());
                schedule.sets().iter().for_each(|set| out.put(&set.proof));
            }
            if let Some(part_map) = part_map {
                minor = 2;
                write_part_map(part_map, &mut out);
            }
            4
        }
        Document::Image(image) if image.is_steps() => {
            minor = 3;
            write_step_image(image, &mut out);
            7
        }
        Document::Image(image) => {
            write_image(image, &mut out);
            5
        }
        Document::Steps(schedule) => {
            minor = 3;
            write_step_schedule(schedule, &mut out);
            6
        }
    };
    container(kind, (major, minor), &out.bytes)
}

/// The container of a payload.
fn container(kind: u8, (major, minor): (u8, u8), payload: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + payload.len() + CHECKSUM);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&[major, minor, kind, 0]);
    file.extend_from_slice(&to_u64(payload.len()).to_le_bytes());
    file.extend_from_slice(payload);
    let checksum = crc32fast::hash(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

fn write_machine(machine: &Machine, out: &mut Encoder) {
    out.put(&MachineWire::new(machine));
    let parameters = machine.parameters();
    if out.major > 1 {
        out.number(parameters.timed_starts);
    }
    if out.major > 2 {
        out.put(&parameters.protocol);
        out.put(&parameters.later_numbers());
    }
}

fn write_set(set: &ConnectionSet, out: &mut Encoder) {
    out.put(&set.name());
    out.count(set.len());
    for connection in set.connections() {
        out.number(connection.source.0);
        out.number(connection.target.0);
        out.number(connection.words);
    }
    write_option(set, |c| c.name.as_deref(), |name, out| out.put(&name), out);
    write_option(set, |c| c.min_bandwidth, |rate, out| out.number(rate), out);
    write_option(set, |c| c.max_latency, |clocks, out| out.number(clocks), out);
    out.count(set.order().len());
    for (before, after) in set.order() {
        out.number(before.0);
        out.number(after.0);
    }
    out.put(&set.nodes().is_some());
    if let Some(nodes) = set.nodes() {
        for (id, _) in set.iter() {
            let mut last = 0;
            for &node in nodes.of(id) {
                out.step(last, node);
                last = node;
            }
        }
    }
}

/// An optional field of connections: the number of connections that have it, then id and value of
/// each.
fn write_option<'a, T>(
    set: &'a ConnectionSet,
    option: impl Fn(&'a Connection) -> Option<T>,
    write: impl Fn(T, &mut Encoder),
    out: &mut Encoder,
) {
    let rows = || set.iter().filter_map(|(id, c)| Some((id, option(c)?)));
    out.count(rows().count());
    for (id, value) in rows() {
        out.number(id.0);
        write(value, out);
    }
}

fn write_routing(routing: &Routing, out: &mut Encoder) {
    write_set(routing.set(), out);
    out.count(routing.phases().len());
    for phase in routing.phases() {
        write_routes(routing.machine(), routing.set(), phase, out);
    }
}

fn write_routes(machine: &Machine, set: &ConnectionSet, phase: &PhaseRoutes, out: &mut Encoder) {
    out.count(phase.len());
    let mut last = 0;
    for route in phase.iter() {
        out.step(last, route.connection.0);
        last = route.connection.0;
        let connection = set.get(route.connection);
        let part = route.words != connection.words;
        let chain = is_chain(machine, connection.source, route);
        out.number(to_u64(route.hops()) << 2 | u64::from(!chain) << 1 | u64::from(part));
        if part {
            out.number(route.words);
        }
        if chain {
            write_chain(machine, route, out);
        } else {
            route.cells.iter().for_each(|cell| out.number(cell.0));
            route.links().iter().for_each(|&link| write_link(link, out));
            route.channels.iter().for_each(|channel| out.number(channel.0));
        }
    }
}

/// For each cell but the last, channel and link in one number, which takes a byte on common
/// machines.
fn write_chain(machine: &Machine, route: RouteRef<'_>, out: &mut Encoder) {
    let hops = route.cells.iter().zip(route.channels).zip(route.links());
    for ((&cell, channel), &link) in hops {
        let links = to_u64(machine.outgoing(cell).len());
        let position = position(machine, cell, link).expect("checked by is_chain");
        out.number(u64::from(channel.0) * links + to_u64(position));
    }
    out.number(route.channels[route.hops()].0);
}

/// Whether a route starts at `source` and follows live links from cell to cell.
fn is_chain(machine: &Machine, source: CellId, route: RouteRef<'_>) -> bool {
    let follows = |(pair, &link): (&[CellId], &LinkId)| {
        position(machine, pair[0], link).is_some() && machine.link(link).target == pair[1]
    };
    route.cells[0] == source && route.cells.windows(2).zip(route.links()).all(follows)
}

/// The position of a link among the outgoing links of a cell.
fn position(machine: &Machine, cell: CellId, link: LinkId) -> Option<usize> {
    machine.outgoing(cell).binary_search(&link).ok()
}

/// The id of a link plus 1, or 0 for none.
fn write_link(link: LinkId, out: &mut Encoder) {
    out.number(if link == LinkId::NONE { 0 } else { u64::from(link.0) + 1 });
}

fn write_timetable(timetable: &Timetable, out: &mut Encoder) {
    let routing = timetable.routing();
    write_set(routing.set(), out);
    out.count(routing.phases().len());
    for (phase, times) in routing.phases().iter().zip(timetable.phases()) {
        write_routes(routing.machine(), routing.set(), phase, out);
        for slot in &times.slots {
            out.number(slot.start);
            out.number(slot.duration);
        }
        out.number(times.makespan);
    }
}

fn write_schedule(schedule: &Schedule, out: &mut Encoder) {
    write_machine(schedule.machine(), out);
    out.put(&schedule.origin());
    out.count(schedule.sets().len());
    for SetSchedule { timetable, bounds, predicted_clocks, .. } in schedule.sets() {
        write_timetable(timetable, out);
        out.number(bounds.phases);
        out.put(&bounds.phases_by);
        out.number(bounds.clocks);
        out.put(&bounds.clocks_by);
        out.number(*predicted_clocks);
    }
}

fn write_step_schedule(schedule: &StepSchedule, out: &mut Encoder) {
    write_machine(schedule.machine(), out);
    out.put(&schedule.origin());
    out.put(&schedule.digest());
    out.count(schedule.sets().len());
    for set in schedule.sets() {
        write_set(set.steps.set(), out);
        write_steps(&set.steps, out);
        let StepBounds { clocks, clocks_by, clocks_witness, direct_clocks } = &set.bounds;
        out.number(*clocks);
        out.put(clocks_by);
        out.put(clocks_witness);
        out.number(*direct_clocks);
        out.put(&set.predicted_clocks);
    }
    out.put(&schedule.part_map().is_some());
    if let Some(part_map) = schedule.part_map() {
        write_part_map(part_map, out);
    }
}

fn write_steps(steps: &Steps, out: &mut Encoder) {
    out.count(steps.messages().steps());
    for (_, messages) in steps.iter() {
        out.count(messages.len());
        messages.for_each(|message| write_message(steps.set(), message, out));
    }
}

/// Its cells, then its pieces: the connection doubled, plus 1 if the words are stated.
fn write_message(set: &ConnectionSet, message: StepMessage<'_>, out: &mut Encoder) {
    out.number(message.source.0);
    out.number(message.target.0);
    out.count(message.pieces.len());
    for piece in message.pieces {
        let part = !piece.is_whole(set);
        out.number(u64::from(piece.connection.0) << 1 | u64::from(part));
        if part {
            out.number(piece.first_word);
            out.number(piece.words);
        }
    }
}

fn write_part_map(part_map: &PartMap, out: &mut Encoder) {
    out.count(part_map.cells().len());
    part_map.cells().iter().for_each(|cell| out.number(cell.0));
    out.number(part_map.first_number());
    out.count(part_map.numbers().len());
    let mut last = 0;
    for &(node, number) in part_map.numbers() {
        out.step(last, node);
        out.number(number);
        last = node;
    }
}

fn write_image(image: &Image, out: &mut Encoder) {
    write_machine(image.machine(), out);
    out.count(image.sets().len());
    for set in image.sets() {
        write_set(&set.set, out);
        out.count(set.phases.len());
        for phase in &set.phases {
            for cell in image.machine().cells() {
                write_tables(image.machine(), cell, phase.cell(cell), out);
            }
        }
    }
}

fn write_step_image(image: &Image, out: &mut Encoder) {
    write_machine(image.machine(), out);
    out.count(image.sets().len());
    for set in image.sets() {
        write_set(&set.set, out);
        set.steps.iter().for_each(|steps| write_steps(steps, out));
    }
}

/// Feeds and sinks: 0 and a connection, 1 and a link, or the position of one of the cell's links
/// plus 2.
fn write_tables(machine: &Machine, cell: CellId, context: CellContext<'_>, out: &mut Encoder) {
    out.count(context.entries.len());
    for entry in context.entries {
        out.number(entry.channel.0);
        match entry.feed {
            Feed::Gate(connection) => {
                out.number(0u32);
                out.number(connection.0);
            }
            Feed::Link(link) => write_near_link(machine.incoming(cell), link, out),
        }
        match entry.sink {
            Sink::Gate(connection) => {
                out.number(0u32);
                out.number(connection.0);
            }
            Sink::Forward { link, channel } => {
                write_near_link(machine.outgoing(cell), link, out);
                out.number(channel.0);
            }
        }
    }
    out.count(context.operations.len());
    for operation in context.operations {
        let receive = u64::from(operation.direction == Direction::Receive);
        out.number(u64::from(operation.connection.0) << 1 | receive);
        out.number(operation.channel.0);
        out.number(operation.words);
        out.number(operation.first_word);
        out.number(operation.start);
    }
}

fn write_near_link(near: &[LinkId], link: LinkId, out: &mut Encoder) {
    match near.binary_search(&link) {
        Ok(position) => out.count(position + 2),
        Err(_) => {
            out.number(1u32);
            out.number(link.0);
        }
    }
}
