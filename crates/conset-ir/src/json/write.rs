//! The writer of the JSON formats, which serialises iterators over the value.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::layout::OneObjectPerLine;
use super::steps::{StepBoundsJson, StepsOut};
use super::wire::{BoundsJson, ConnectionJson, MachineJson, NodeNumbersJson, SlotJson};
use super::{SCHEDULE_FORMAT, SET_FORMAT};
use crate::document::Document;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId};
use crate::links::LinkFinder;
use crate::machine::Machine;
use crate::part_map::PartMap;
use crate::routing::{PhaseRoutes, RouteRef};
use crate::schedule::{Origin, Schedule, SetSchedule};
use crate::set::{ConnectionSet, Program};
use crate::step_schedule::StepSchedule;
use crate::timetable::PhaseTimes;
use crate::version;

/// The JSON form of a schedule or a program, with a newline at the end; `None` for a kind without a
/// JSON form.
pub fn write(document: &Document) -> Option<String> {
    match document {
        Document::Schedule(schedule) => Some(write_schedule(schedule)),
        Document::Steps(schedule) => Some(in_memory(|out| step_schedule_to(schedule, out))),
        Document::Program { machine, program } => Some(write_program(machine.as_deref(), program)),
        _ => None,
    }
}

/// The JSON form of a schedule.
pub fn write_schedule(schedule: &Schedule) -> String {
    in_memory(|out| schedule_to(schedule, out))
}

/// The JSON form of a program, with the machine that it is intended for, if any.
pub fn write_program(machine: Option<&Machine>, program: &Program) -> String {
    in_memory(|out| program_to(machine, program, out))
}

/// Writes the JSON form. The memory used does not depend on the size of the document. The writer
/// should be buffered.
///
/// # Errors
/// Those of the writer, and `Unsupported` for a kind without a JSON form.
pub fn write_to(document: &Document, out: &mut impl Write) -> io::Result<()> {
    match document {
        Document::Schedule(schedule) => schedule_to(schedule, out),
        Document::Steps(schedule) => step_schedule_to(schedule, out),
        Document::Program { machine, program } => program_to(machine.as_deref(), program, out),
        other => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("a {} has no JSON form; it has a text and a binary form", other.kind()),
        )),
    }
}

fn in_memory(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes all bytes and every key is a string");
    String::from_utf8(out).expect("serde_json writes UTF-8")
}

fn schedule_to(schedule: &Schedule, out: &mut impl Write) -> io::Result<()> {
    let finder = LinkFinder::new(schedule.machine());
    put(
        &ScheduleOut {
            format: SCHEDULE_FORMAT,
            version: version::of_schedule(schedule),
            machine: MachineJson::new(schedule.machine()),
            origin: schedule.origin(),
            digest: schedule.digest().map(crate::digest::spelling),
            parts: schedule.part_map().map(PartMap::cells),
            node_numbers: schedule.part_map().map(node_numbers),
            sets: List(schedule.sets().iter().map(|set| schedule_set(set, &finder))),
        },
        out,
    )
}

fn step_schedule_to(schedule: &StepSchedule, out: &mut impl Write) -> io::Result<()> {
    put(
        &ScheduleOut {
            format: SCHEDULE_FORMAT,
            version: version::of_step_schedule(schedule).max(version::STEPS),
            machine: MachineJson::new(schedule.machine()),
            origin: schedule.origin(),
            digest: schedule.digest().map(crate::digest::spelling),
            parts: schedule.part_map().map(PartMap::cells),
            node_numbers: schedule.part_map().map(node_numbers),
            sets: List(schedule.sets().iter().map(|set| StepSetOut {
                name: set.steps.set().name(),
                connections: List(connections(set.steps.set())),
                order: set.steps.set().order(),
                steps: StepsOut(&set.steps),
                bounds: StepBoundsJson::new(&set.bounds),
                predicted_clocks: set.predicted_clocks,
            })),
        },
        out,
    )
}

fn node_numbers(map: &PartMap) -> NodeNumbersJson<'_> {
    NodeNumbersJson { from: map.first_number(), listed: map.numbers().into() }
}

fn program_to(
    machine: Option<&Machine>,
    program: &Program,
    out: &mut impl Write,
) -> io::Result<()> {
    put(
        &ProgramOut {
            format: SET_FORMAT,
            version: version::of_machine(machine),
            machine: machine.map(MachineJson::new),
            sets: List(program.sets().iter().map(|set| SetOut {
                name: set.name(),
                connections: List(connections(set)),
                order: set.order(),
            })),
        },
        out,
    )
}

fn put(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut *out, OneObjectPerLine::default());
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// A list whose elements are produced while it is written.
struct List<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for List<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

#[derive(Serialize)]
struct ScheduleOut<'a, S> {
    format: &'static str,
    version: u8,
    machine: MachineJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<&'a [CellId]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_numbers: Option<NodeNumbersJson<'a>>,
    sets: S,
}

#[derive(Serialize)]
struct ProgramOut<'a, S> {
    format: &'static str,
    version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<MachineJson<'a>>,
    sets: S,
}

#[derive(Serialize)]
struct SetOut<'a, C> {
    name: &'a str,
    connections: C,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    order: &'a [(ConnectionId, ConnectionId)],
}

#[derive(Serialize)]
struct ScheduleSetOut<'a, C, P> {
    name: &'a str,
    connections: C,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    order: &'a [(ConnectionId, ConnectionId)],
    phases: P,
    bounds: BoundsJson<'a>,
    predicted_clocks: u64,
}

#[derive(Serialize)]
struct StepSetOut<'a, C> {
    name: &'a str,
    connections: C,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    order: &'a [(ConnectionId, ConnectionId)],
    steps: StepsOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<StepBoundsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_clocks: Option<u64>,
}

#[derive(Serialize)]
struct PhaseOut<R, T> {
    routes: R,
    timetable: T,
    makespan: u64,
}

#[derive(Serialize)]
struct RouteOut<'a> {
    connection: ConnectionId,
    cells: &'a [CellId],
    channels: &'a [ChannelId],
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<Option<LinkId>>>,
}

fn connections(set: &ConnectionSet) -> impl Iterator<Item = ConnectionJson<'_>> + Clone {
    set.iter().map(|(id, c)| ConnectionJson::new(id, c, set.nodes().map(|nodes| nodes.of(id))))
}

fn schedule_set<'a>(set: &'a SetSchedule, finder: &'a LinkFinder<'a>) -> impl Serialize + 'a {
    let routing = set.timetable.routing();
    let pairs = routing.phases().iter().zip(set.timetable.phases());
    ScheduleSetOut {
        name: routing.set().name(),
        connections: List(connections(routing.set())),
        order: routing.set().order(),
        phases: List(pairs.map(move |(routes, times)| phase(routing.set(), finder, routes, times))),
        bounds: BoundsJson::new(set.bounds, &set.proof),
        predicted_clocks: set.predicted_clocks,
    }
}

fn phase<'a>(
    set: &'a ConnectionSet,
    finder: &'a LinkFinder<'a>,
    routes: &'a PhaseRoutes,
    times: &'a PhaseTimes,
) -> impl Serialize + 'a {
    let slots = routes.iter().zip(&times.slots).map(|(route, slot)| SlotJson {
        connection: route.connection,
        start: slot.start,
        duration: slot.duration,
    });
    PhaseOut {
        routes: List(routes.iter().map(move |r| route(set, finder, r))),
        timetable: List(slots),
        makespan: times.makespan,
    }
}

fn route<'a>(set: &ConnectionSet, finder: &LinkFinder<'_>, route: RouteRef<'a>) -> RouteOut<'a> {
    let is_default = finder.along(route.cells).eq(route.links().iter().copied());
    let some = |&link: &LinkId| (link != LinkId::NONE).then_some(link);
    RouteOut {
        connection: route.connection,
        cells: route.cells,
        channels: route.channels,
        words: (route.words != set.get(route.connection).words).then_some(route.words),
        links: (!is_default).then(|| route.links().iter().map(some).collect()),
    }
}
