//! The reader of the JSON formats: header, structs, constructors.
//!
//! The header determines the format, the structs of that format are deserialised, and the
//! constructors of the types check them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::routes::RoutesIn;
use super::steps::{self, MessageIn, StepBoundsJson};
use super::wire::{BoundsJson, ConnectionJson, MachineJson, NodeNumbersJson, SlotJson};
use super::{SCHEDULE_FORMAT, SET_FORMAT, VERSION};
use crate::document::Document;
use crate::error::{At, InputError, Result, ShapeError};
use crate::ids::{CellId, ConnectionId};
use crate::limits;
use crate::links::LinkFinder;
use crate::machine::Machine;
use crate::part_map::PartMap;
use crate::position::{help_unknown_key, locate_line};
use crate::routing::Routing;
use crate::rows::{order_of_ids, reorder};
use crate::schedule::{Origin, Schedule, SetSchedule};
use crate::set::{ConnectionSet, NodeLists, Program};
use crate::step_schedule::{SetSteps, StepSchedule};
use crate::steps::Steps;
use crate::timetable::{PhaseTimes, Slot, Timetable};
use crate::version;

/// Parses a JSON schedule or connection set. `name` is the name of the file in error messages.
///
/// # Errors
/// Invalid JSON, an unknown format or version, unknown or missing keys (all with line and column),
/// or values that do not fit together (with their path).
pub fn parse(name: &str, bytes: &[u8]) -> Result<Document> {
    let source = JsonSource { name, bytes };
    let header = source.header()?;
    let format = header.format.as_deref().ok_or_else(|| source.whole("no key `format`"))?;
    if format != SCHEDULE_FORMAT && format != SET_FORMAT {
        return Err(source.whole(format!(
            "unknown format `{}`; expected {SCHEDULE_FORMAT} or {SET_FORMAT}",
            format.escape_debug().take(40).collect::<String>()
        )));
    }
    match header.version {
        Some(version) if (1..=u64::from(VERSION)).contains(&version) => {}
        None => return Err(source.whole("no key `version`")),
        Some(0) => return Err(source.whole("version 0; versions start at 1")),
        Some(newer) => {
            return Err(source
                .whole(format!("version {newer} of {format} is newer than {VERSION}"))
                .help(format!(
                    "this program reads versions up to {VERSION}; use a newer version of conset"
                )));
        }
    }
    if format == SCHEDULE_FORMAT {
        let has_steps = header.version >= Some(version::STEPS.into())
            && source.read::<ScheduleKeys>()?.sets.iter().any(|set| set.steps.is_some());
        let document = if has_steps {
            source.read::<ScheduleIn<StepSetIn>>()?.build_steps().map(Document::Steps)
        } else {
            source.read::<ScheduleIn<ScheduleSetIn>>()?.build().map(Document::Schedule)
        };
        document.map_err(|e| e.in_file(name))
    } else {
        let program: ProgramIn = source.read()?;
        program.build().map_err(|e| e.in_file(name))
    }
}

struct JsonSource<'a> {
    name: &'a str,
    bytes: &'a [u8],
}

impl<'a> JsonSource<'a> {
    fn whole(&self, message: impl Into<String>) -> InputError {
        InputError::new(self.name, At::Whole, message)
    }

    /// The JSON text, and the length of the byte order mark before it.
    fn body(&self) -> (&'a [u8], usize) {
        match self.bytes.strip_prefix(b"\xEF\xBB\xBF") {
            Some(body) => (body, 3),
            None => (self.bytes, 0),
        }
    }

    fn read<T: Deserialize<'a>>(&self) -> Result<T> {
        serde_json::from_slice(self.body().0).map_err(|e| self.placed(&e))
    }

    /// The format and version. It reads no further than necessary, since a file of a newer version
    /// may have unknown keys.
    fn header(&self) -> Result<JsonHeader> {
        let mut header = JsonHeader::default();
        let mut json = serde_json::Deserializer::from_slice(self.body().0);
        match HeaderSeed(&mut header).deserialize(&mut json) {
            Err(e) if header.format.is_none() || header.version.is_none() => Err(self.placed(&e)),
            _ => Ok(header),
        }
    }

    fn placed(&self, error: &serde_json::Error) -> InputError {
        let (_, mark) = self.body();
        let (line, column) = (error.line(), error.column());
        let column = if line == 1 { column + mark } else { column };
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text);
        let at = locate_line(self.bytes, line, column);
        let mut placed = InputError::new(self.name, at, message);
        placed.help = help_unknown_key(message);
        if let (Some(expected), At::Text { offset, .. }) = (too_large_for(message), &placed.at)
            && let Some(number) = whole_number_before(self.bytes, *offset)
        {
            placed.message = format!("{number} is out of range, expected {expected}");
        }
        placed
    }
}

/// The expected type, if the parser met a number that it takes for a fraction, as it does with
/// integers of more than 64 bits.
fn too_large_for(message: &str) -> Option<&str> {
    let (_, expected) =
        message.strip_prefix("invalid type: floating point `")?.split_once("`, expected ")?;
    Some(expected)
}

/// The integer that ends at `offset` or one byte after it, shortened if it is long.
fn whole_number_before(text: &[u8], offset: usize) -> Option<String> {
    const LONGEST: usize = 40;
    let in_number = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    let end = (offset + 1).min(text.len());
    let end = text[..end].iter().rposition(in_number)? + 1;
    let start = text[..end].iter().rposition(|b| !in_number(b)).map_or(0, |at| at + 1);
    let digits = std::str::from_utf8(&text[start..end]).ok()?;
    let is_whole = digits.strip_prefix('-').unwrap_or(digits).bytes().all(|b| b.is_ascii_digit());
    is_whole.then(|| match digits.get(..LONGEST) {
        Some(first) if digits.len() > LONGEST => format!("{first}..."),
        _ => digits.to_owned(),
    })
}

#[derive(Default)]
struct JsonHeader {
    format: Option<String>,
    version: Option<u64>,
}

struct HeaderSeed<'a>(&'a mut JsonHeader);

impl<'de> DeserializeSeed<'de> for HeaderSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeaderSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the keys `format` and `version`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match &*key {
                "format" => self.0.format = Some(map.next_value()?),
                "version" => self.0.version = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if self.0.format.is_some() && self.0.version.is_some() {
                return Err(A::Error::custom("stop: both keys are known"));
            }
        }
        Ok(())
    }
}

/// `machine`: an object, or the specification of a preset as a string.
enum MachineIn {
    Spec(Box<Machine>),
    Object(Box<MachineJson<'static>>),
}

impl MachineIn {
    fn build(self) -> Result<Machine, ShapeError> {
        match self {
            MachineIn::Spec(machine) => Ok(*machine),
            MachineIn::Object(object) => object.build().map_err(|e| e.under("machine")),
        }
    }
}

impl<'de> Deserialize<'de> for MachineIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = MachineIn;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a machine: an object, or a preset such as \"iwarp:8x8\"")
            }

            fn visit_str<E: serde::de::Error>(self, spec: &str) -> Result<Self::Value, E> {
                Machine::from_spec(spec)
                    .map(|machine| MachineIn::Spec(Box::new(machine)))
                    .map_err(|e| E::custom(InputError::from(e).message))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let object = MachineJson::deserialize(MapAccessDeserializer::new(map))?;
                Ok(MachineIn::Object(Box::new(object)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleIn<S> {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(rename = "version")]
    _version: IgnoredAny,
    machine: MachineIn,
    origin: Option<Origin>,
    digest: Option<String>,
    parts: Option<Vec<CellId>>,
    node_numbers: Option<NodeNumbersJson<'static>>,
    sets: Vec<S>,
}

/// What decides whether the sets of a schedule have phases or steps.
#[derive(Deserialize)]
struct ScheduleKeys {
    sets: Vec<SetKeys>,
}

#[derive(Deserialize)]
struct SetKeys {
    steps: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramIn {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(rename = "version")]
    _version: IgnoredAny,
    machine: Option<MachineIn>,
    sets: Vec<SetIn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetIn {
    name: String,
    connections: Vec<ConnectionJson<'static>>,
    #[serde(default)]
    order: Vec<(ConnectionId, ConnectionId)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleSetIn {
    name: String,
    connections: Vec<ConnectionJson<'static>>,
    #[serde(default)]
    order: Vec<(ConnectionId, ConnectionId)>,
    phases: Vec<PhaseIn>,
    bounds: BoundsJson<'static>,
    predicted_clocks: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepSetIn {
    name: String,
    connections: Vec<ConnectionJson<'static>>,
    #[serde(default)]
    order: Vec<(ConnectionId, ConnectionId)>,
    steps: Vec<Vec<MessageIn>>,
    bounds: Option<StepBoundsJson<'static>>,
    predicted_clocks: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseIn {
    routes: RoutesIn,
    timetable: Vec<SlotJson>,
    makespan: u64,
}

impl ProgramIn {
    fn build(self) -> Result<Document, ShapeError> {
        let machine = self.machine.map(MachineIn::build).transpose()?.map(Arc::new);
        let mut sets = Vec::with_capacity(self.sets.len());
        for (row, SetIn { name, connections, order }) in self.sets.into_iter().enumerate() {
            let build = || {
                let set = build_set(name, connections, order)?;
                if let Some(machine) = &machine {
                    set.check_machine(machine)?;
                }
                Ok(set)
            };
            let set = build().map_err(|e: ShapeError| e.under(format!("sets[{row}]")))?;
            sets.push(Arc::new(set));
        }
        Ok(Document::Program { machine, program: Program::new(sets)? })
    }
}

impl ScheduleIn<ScheduleSetIn> {
    fn build(self) -> Result<Schedule, ShapeError> {
        let machine = Arc::new(self.machine.build()?);
        let finder = LinkFinder::new(&machine);
        let mut sets = Vec::with_capacity(self.sets.len());
        for (row, set) in self.sets.into_iter().enumerate() {
            let set = set.build(&machine, &finder);
            sets.push(set.map_err(|e| e.under(format!("sets[{row}]")))?);
        }
        let digest = build_digest(self.digest.as_deref())?;
        let part_map = build_part_map(self.parts, self.node_numbers)?;
        Schedule::new(machine.clone(), sets, self.origin)?
            .with_stated_digest(digest)
            .with_part_map(part_map)
    }
}

impl ScheduleIn<StepSetIn> {
    fn build_steps(self) -> Result<StepSchedule, ShapeError> {
        let machine = Arc::new(self.machine.build()?);
        let mut sets = Vec::with_capacity(self.sets.len());
        for (row, set) in self.sets.into_iter().enumerate() {
            let set = set.build(&machine);
            sets.push(set.map_err(|e| e.under(format!("sets[{row}]")))?);
        }
        let digest = build_digest(self.digest.as_deref())?;
        let part_map = build_part_map(self.parts, self.node_numbers)?;
        StepSchedule::new(machine, sets, self.origin)?
            .with_stated_digest(digest)
            .with_part_map(part_map)
    }
}

fn build_digest(digits: Option<&str>) -> Result<Option<u64>, ShapeError> {
    let parsed = digits.map(|digits| {
        crate::digest::parse(digits).ok_or_else(|| {
            ShapeError::new("digest", "expected 16 of the digits 0-9 and a-f, as a string")
        })
    });
    parsed.transpose()
}

fn build_part_map(
    parts: Option<Vec<CellId>>,
    numbers: Option<NodeNumbersJson<'_>>,
) -> Result<Option<PartMap>, ShapeError> {
    match (parts, numbers) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            Err(ShapeError::new("node_numbers", "no key `parts`, which comes with it"))
        }
        (Some(cells), numbers) => {
            let NodeNumbersJson { from, listed } = numbers.unwrap_or_default();
            PartMap::new(cells, from, listed.into_owned()).map(Some)
        }
    }
}

impl StepSetIn {
    fn build(self, machine: &Arc<Machine>) -> Result<SetSteps, ShapeError> {
        let set = Arc::new(build_set(self.name, self.connections, self.order)?);
        let messages = steps::build(&set, self.steps)?;
        let bounds = self.bounds.map(StepBoundsJson::build).unwrap_or_default();
        let steps = Steps::new(machine.clone(), set, messages)?;
        Ok(SetSteps { steps, bounds, predicted_clocks: self.predicted_clocks })
    }
}

impl ScheduleSetIn {
    fn build(
        self,
        machine: &Arc<Machine>,
        finder: &LinkFinder<'_>,
    ) -> Result<SetSchedule, ShapeError> {
        let set = build_set(self.name, self.connections, self.order)?;
        let mut routes = Vec::with_capacity(self.phases.len());
        let mut times = Vec::with_capacity(self.phases.len());
        for (p, phase) in self.phases.into_iter().enumerate() {
            let slots = match_slots(&phase.routes, &phase.timetable);
            let built = phase.routes.build(&set, machine, finder);
            let under = |e: ShapeError| e.under(format!("phases[{p}]"));
            times.push(PhaseTimes { slots: slots.map_err(under)?, makespan: phase.makespan });
            routes.push(built.map_err(under)?);
        }
        let routing = Routing::new(machine.clone(), Arc::new(set), routes)?;
        let (bounds, proof) = self.bounds.build();
        Ok(SetSchedule {
            timetable: Timetable::new(routing, times)?,
            bounds,
            proof,
            predicted_clocks: self.predicted_clocks,
        })
    }
}

fn build_set(
    name: String,
    mut rows: Vec<ConnectionJson<'_>>,
    order: Vec<(ConnectionId, ConnectionId)>,
) -> Result<ConnectionSet, ShapeError> {
    if rows.len() > limits::CONNECTIONS {
        let message = format!("{} connections, at most {}", rows.len(), limits::CONNECTIONS);
        return Err(ShapeError::new("connections", message));
    }
    let ids: Vec<ConnectionId> = rows
        .iter()
        .enumerate()
        .map(|(row, c)| c.id.unwrap_or(ConnectionId::from_index(row)))
        .collect();
    let places = order_of_ids(&ids)
        .map_err(|bad| ShapeError::new(format!("connections[{}].id", bad.row), bad.message))?;
    rows = reorder(rows, places.as_deref());
    let nodes = node_lists(&rows)?;
    let connections = rows.iter().map(ConnectionJson::build).collect();
    drop(rows);
    let set = ConnectionSet::new(name, connections)?.with_order(order)?;
    match nodes {
        Some(nodes) => set.with_nodes(nodes),
        None => Ok(set),
    }
}

/// The lists of nodes; either all connections have one or none has.
fn node_lists(rows: &[ConnectionJson<'_>]) -> Result<Option<NodeLists>, ShapeError> {
    let with = rows.iter().filter(|c| c.nodes.is_some()).count();
    if with == 0 {
        return Ok(None);
    }
    if let Some(row) = rows.iter().position(|c| c.nodes.is_none()) {
        let message = "no nodes, but other connections of the set have them";
        return Err(ShapeError::new(format!("connections[{row}]"), message));
    }
    let lists = rows.iter().filter_map(|c| c.nodes.as_deref());
    if lists.clone().map(<[u32]>::len).sum::<usize>() > limits::NODES {
        return Err(ShapeError::new("connections", format!("more than {} nodes", limits::NODES)));
    }
    Ok(Some(NodeLists::from_lists(lists)))
}

/// The slot of each route: the k-th entry of a connection belongs to its k-th route in the phase.
/// The entries may have any order. O(n) if it is that of the routes, else O(n log n).
fn match_slots(routes: &RoutesIn, entries: &[SlotJson]) -> Result<Vec<Slot>, ShapeError> {
    let slot = |entry: &SlotJson| Slot { start: entry.start, duration: entry.duration };
    if routes.connections().eq(entries.iter().map(|entry| entry.connection)) {
        return Ok(entries.iter().map(slot).collect());
    }
    let mut wanted: Vec<(ConnectionId, usize)> =
        routes.connections().enumerate().map(|(row, x)| (x, row)).collect();
    let mut given: Vec<(ConnectionId, usize)> =
        entries.iter().enumerate().map(|(row, entry)| (entry.connection, row)).collect();
    wanted.sort_unstable();
    given.sort_unstable();
    let mut slots = vec![Slot::default(); wanted.len()];
    for (&(x, row), &(y, entry)) in wanted.iter().zip(&given) {
        if x < y {
            return Err(no_entry(x, row));
        }
        if y < x {
            return Err(no_route(y, entry));
        }
        slots[row] = slot(&entries[entry]);
    }
    match (wanted.get(given.len()), given.get(wanted.len())) {
        (Some(&(x, row)), _) => Err(no_entry(x, row)),
        (_, Some(&(y, entry))) => Err(no_route(y, entry)),
        (None, None) => Ok(slots),
    }
}

fn no_entry(x: ConnectionId, row: usize) -> ShapeError {
    ShapeError::new(
        format!("routes[{row}]"),
        format!("{x} has more routes than entries in the timetable"),
    )
}

fn no_route(x: ConnectionId, row: usize) -> ShapeError {
    ShapeError::new(
        format!("timetable[{row}]"),
        format!("{x} has more entries than routes in the phase"),
    )
}
