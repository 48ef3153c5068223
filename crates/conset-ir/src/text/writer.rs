//! The writer of the text form, which writes line by line while it traverses the value.
//!
//! Defaults are omitted: the words of a route that carries its whole connection, default links, and
//! parameters of the base machine.

use std::io::{self, Write};

use crate::document::Document;
use crate::ids::{CellId, LinkId};
use crate::image::{CellContext, Direction, Feed, Image, PhaseImage, Sink};
use crate::links::LinkFinder;
use crate::machine::{Duplex, Machine, Parameters};
use crate::part_map::PartMap;
use crate::routing::{PhaseRoutes, RouteRef, Routing};
use crate::schedule::{Binding, Origin, Schedule, SetSchedule};
use crate::set::{ConnectionSet, Program};
use crate::step_schedule::{SetSteps, StepBounds, StepSchedule};
use crate::steps::Steps;
use crate::timetable::{PhaseTimes, Slot, Timetable};
use crate::topology::Topology;
use crate::version;
use crate::witness::{CellRange, Witness};

/// The text form of a value.
pub fn write(document: &Document) -> String {
    let mut out = Vec::new();
    write_to(document, &mut out).expect("a vector takes all bytes");
    String::from_utf8(out).expect("only text was written")
}

/// Writes the text form. The memory used does not depend on the size of the document. The writer
/// should be buffered.
///
/// # Errors
/// Those of the writer.
pub fn write_to(document: &Document, out: &mut impl Write) -> io::Result<()> {
    let version = match document {
        Document::Schedule(schedule) => version::of_schedule(schedule),
        Document::Steps(schedule) => version::of_step_schedule(schedule),
        Document::Image(image) => version::of_image(image),
        other => version::of_machine(other.machine().map(|machine| &**machine)),
    };
    writeln!(out, "conset {} {version}", document.kind())?;
    if let Some(machine) = document.machine() {
        write_machine(machine, out)?;
    }
    match document {
        Document::Machine(_) => Ok(()),
        Document::Program { program, .. } => write_program(program, out),
        Document::Routing(routing) => write_routing(routing, out),
        Document::Timetable(timetable) => {
            write_timetable(timetable, &LinkFinder::new(timetable.routing().machine()), out)
        }
        Document::Schedule(schedule) => write_schedule(schedule, out),
        Document::Steps(schedule) => write_step_schedule(schedule, out),
        Document::Image(image) => write_image(image, out),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn write_machine(machine: &Machine, out: &mut impl Write) -> io::Result<()> {
    let (base, sizes) = base_of(machine);
    writeln!(out, "machine {base}:{sizes}")?;
    if machine.name() != base {
        writeln!(out, "  name {}", quoted(machine.name()))?;
    }
    let parameters = machine.parameters();
    let usual = match base {
        "iwarp-fem" => Parameters::iwarp_fem(),
        "cluster" => Parameters::cluster(),
        _ => Parameters::iwarp(),
    };
    for ((name, value, ..), (_, default, ..)) in
        parameters.numbers().into_iter().zip(usual.numbers())
    {
        if value != default {
            writeln!(out, "  {name} {value}")?;
        }
    }
    if parameters.duplex != usual.duplex {
        let duplex = match parameters.duplex {
            Duplex::Full => "full",
            Duplex::Half => "half",
        };
        writeln!(out, "  duplex {duplex}")?;
    }
    if parameters.protocol != usual.protocol {
        writeln!(out, "  protocol {}", parameters.protocol.name())?;
    }
    for cell in machine.dead_cells() {
        writeln!(out, "  dead_cell {cell}")?;
    }
    for (from, to) in machine.dead_links() {
        writeln!(out, "  dead_link {from} -> {to}")?;
    }
    if let Topology::Graph { links, .. } = machine.topology() {
        for &(from, to) in links {
            writeln!(out, "  link {} -> {}", CellId(from), CellId(to))?;
        }
    }
    Ok(())
}

/// The preset that a machine is written with, and its sizes.
fn base_of(machine: &Machine) -> (&str, String) {
    match machine.topology() {
        Topology::Graph { cells, switches: 0, .. } => ("graph", cells.to_string()),
        Topology::Graph { cells, switches, .. } => ("graph", format!("{cells}+{switches}")),
        other => {
            let spec = other.to_string();
            let sizes = spec.split_once(':').map_or("", |(_, sizes)| sizes).to_owned();
            let torus = matches!(other, Topology::Torus { .. });
            let own = torus && matches!(machine.name(), "iwarp" | "iwarp-fem");
            (if own { machine.name() } else { other.kind() }, sizes)
        }
    }
}

fn write_program(program: &Program, out: &mut impl Write) -> io::Result<()> {
    program.sets().iter().try_for_each(|set| write_set(set, out))
}

fn write_set(set: &ConnectionSet, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "set {}", set.name())?;
    for (id, connection) in set.iter() {
        write!(out, "  {id} ")?;
        if let Some(name) = &connection.name {
            write!(out, "\"{name}\" ")?;
        }
        write!(out, "{} -> {} words {}", connection.source, connection.target, connection.words)?;
        if let Some(rate) = connection.min_bandwidth {
            write!(out, " min_bandwidth {rate}")?;
        }
        if let Some(clocks) = connection.max_latency {
            write!(out, " max_latency {clocks}")?;
        }
        if let Some(nodes) = set.nodes() {
            out.write_all(b" nodes")?;
            for node in nodes.of(id) {
                write!(out, " {node}")?;
            }
        }
        out.write_all(b"\n")?;
    }
    for (before, after) in set.order() {
        writeln!(out, "  order {before} before {after}")?;
    }
    Ok(())
}

fn write_routing(routing: &Routing, out: &mut impl Write) -> io::Result<()> {
    let finder = LinkFinder::new(routing.machine());
    write_set(routing.set(), out)?;
    for (id, phase) in routing.iter() {
        writeln!(out, "  phase {id}")?;
        write_routes(routing.set(), &finder, phase, None, out)?;
    }
    Ok(())
}

fn write_timetable(
    timetable: &Timetable,
    finder: &LinkFinder<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let routing = timetable.routing();
    write_set(routing.set(), out)?;
    for ((id, phase), times) in routing.iter().zip(timetable.phases()) {
        writeln!(out, "  phase {id} makespan {}", times.makespan)?;
        write_routes(routing.set(), finder, phase, Some(times), out)?;
    }
    Ok(())
}

fn write_schedule(schedule: &Schedule, out: &mut impl Write) -> io::Result<()> {
    write_heading(schedule.origin(), schedule.digest(), schedule.part_map(), out)?;
    let finder = LinkFinder::new(schedule.machine());
    schedule.sets().iter().try_for_each(|set| write_set_schedule(set, &finder, out))
}

/// What a compiled program says about itself as a whole.
fn write_heading(
    origin: Option<&Origin>,
    digest: Option<u64>,
    part_map: Option<&PartMap>,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(origin) = origin {
        writeln!(
            out,
            "origin generator {} algorithm {} seed {}",
            quoted(&origin.generator),
            quoted(&origin.algorithm),
            origin.seed
        )?;
    }
    if let Some(digest) = digest {
        writeln!(out, "digest {}", crate::digest::spelling(digest))?;
    }
    if let Some(part_map) = part_map {
        out.write_all(b"parts")?;
        part_map.cells().iter().try_for_each(|cell| write!(out, " {cell}"))?;
        write!(out, "\nnode_numbers from {}", part_map.first_number())?;
        for (node, number) in part_map.numbers() {
            write!(out, " {node} {number}")?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_step_schedule(schedule: &StepSchedule, out: &mut impl Write) -> io::Result<()> {
    write_heading(schedule.origin(), schedule.digest(), schedule.part_map(), out)?;
    schedule.sets().iter().try_for_each(|set| write_set_steps(set, out))
}

/// The steps of a set with their messages.
fn write_steps(steps: &Steps, out: &mut impl Write) -> io::Result<()> {
    for (id, messages) in steps.iter() {
        writeln!(out, "  step {id}")?;
        for message in messages {
            write!(out, "    message {} -> {}", message.source, message.target)?;
            for piece in message.pieces {
                write!(out, " {}", piece.connection)?;
                if piece.first_word != 0 {
                    write!(out, " first {}", piece.first_word)?;
                }
                if !piece.is_whole(steps.set()) {
                    write!(out, " words {}", piece.words)?;
                }
            }
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn write_set_steps(set: &SetSteps, out: &mut impl Write) -> io::Result<()> {
    write_set(set.steps.set(), out)?;
    write_steps(&set.steps, out)?;
    let bounds = &set.bounds;
    if *bounds != StepBounds::default() {
        let (by, direct) = (by(bounds.clocks_by), bounds.direct_clocks);
        writeln!(out, "  bounds clocks {}{by} direct {direct}", bounds.clocks)?;
    }
    if let Some(witness) = &bounds.clocks_witness {
        out.write_all(b"  witness clocks ")?;
        write_witness(witness, out)?;
    }
    match set.predicted_clocks {
        Some(clocks) => writeln!(out, "  predicted_clocks {clocks}"),
        None => Ok(()),
    }
}

/// The binding bound after a number; nothing if none is stated.
fn by(binding: Binding) -> String {
    match binding {
        Binding::Nothing => String::new(),
        other => format!(" by {other}"),
    }
}

fn write_set_schedule(
    set: &SetSchedule,
    finder: &LinkFinder<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    write_timetable(&set.timetable, finder, out)?;
    let b = &set.bounds;
    let (phases_by, clocks_by) = (by(b.phases_by), by(b.clocks_by));
    writeln!(out, "  bounds phases {}{phases_by} clocks {}{clocks_by}", b.phases, b.clocks)?;
    for (of, witness) in [("phases", &set.proof.phases), ("clocks", &set.proof.clocks)] {
        if let Some(witness) = witness {
            write!(out, "  witness {of} ")?;
            write_witness(witness, out)?;
        }
    }
    writeln!(out, "  predicted_clocks {}", set.predicted_clocks)
}

fn write_list<T: std::fmt::Display>(
    name: &str,
    rows: impl Iterator<Item = T>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "{name}")?;
    for row in rows {
        write!(out, " {row}")?;
    }
    Ok(())
}

fn write_witness(witness: &Witness, out: &mut impl Write) -> io::Result<()> {
    let cells = |&(first, last): &CellRange| format!("{first} {last}");
    match witness {
        Witness::Cell(cell) => write!(out, "cell {cell}")?,
        Witness::Hops => write!(out, "hops")?,
        Witness::Cut(side) => write_list("cut", side.iter().map(cells), out)?,
        Witness::CellPrices(prices) => write_list("cell_prices", prices.iter(), out)?,
        Witness::LinkPrices(prices) => write_list("link_prices", prices.iter(), out)?,
        Witness::Prices { cells, links, alone } => {
            write_list("prices cells", cells.iter(), out)?;
            write_list(" links", links.iter(), out)?;
            write_list(" alone", alone.iter(), out)?;
        }
        Witness::Chain(chain) => write_list("chain", chain.iter(), out)?,
        Witness::Window { head, tail, side } => {
            write!(out, "window head {head} tail {tail}")?;
            if !side.is_empty() {
                write_list(" cut", side.iter().map(cells), out)?;
            }
        }
    }
    out.write_all(b"\n")
}

fn write_routes(
    set: &ConnectionSet,
    finder: &LinkFinder<'_>,
    phase: &PhaseRoutes,
    times: Option<&PhaseTimes>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (row, route) in phase.iter().enumerate() {
        let whole = route.words == set.get(route.connection).words;
        write_route(route, whole, finder, times.map(|times| times.slots[row]), out)?;
    }
    Ok(())
}

fn write_route(
    route: RouteRef<'_>,
    whole: bool,
    finder: &LinkFinder<'_>,
    slot: Option<Slot>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "    route {}", route.connection)?;
    for (row, (cell, channel)) in route.cells.iter().zip(route.channels).enumerate() {
        let arrow = if row == 0 { "" } else { " ->" };
        write!(out, "{arrow} {cell}/{channel}")?;
    }
    if !whole {
        write!(out, " words {}", route.words)?;
    }
    if !finder.along(route.cells).eq(route.links().iter().copied()) {
        out.write_all(b" links")?;
        for &link in route.links() {
            match link {
                LinkId::NONE => out.write_all(b" none")?,
                link => write!(out, " {link}")?,
            }
        }
    }
    if let Some(slot) = slot {
        write!(out, " start {} duration {}", slot.start, slot.duration)?;
    }
    out.write_all(b"\n")
}

fn write_image(image: &Image, out: &mut impl Write) -> io::Result<()> {
    let finder = LinkFinder::new(image.machine());
    for set in image.sets() {
        write_set(&set.set, out)?;
        if let Some(steps) = &set.steps {
            writeln!(out, "  steps")?;
            write_steps(steps, out)?;
        }
        for (row, phase) in set.phases.iter().enumerate() {
            writeln!(out, "  phase p{row}")?;
            write_phase_image(image.machine(), &finder, phase, out)?;
        }
    }
    Ok(())
}

fn write_phase_image(
    machine: &Machine,
    finder: &LinkFinder<'_>,
    phase: &PhaseImage,
    out: &mut impl Write,
) -> io::Result<()> {
    for (cell, context) in phase.cells() {
        if context.entries.is_empty() && context.operations.is_empty() {
            continue;
        }
        writeln!(out, "    cell {cell}")?;
        write_entries(machine, finder, cell, context, out)?;
        for operation in context.operations {
            let direction = match operation.direction {
                Direction::Send => "send",
                Direction::Receive => "receive",
            };
            let (connection, channel) = (operation.connection, operation.channel);
            write!(out, "      {direction} {connection} {channel} words {}", operation.words)?;
            if operation.first_word != 0 {
                write!(out, " first_word {}", operation.first_word)?;
            }
            writeln!(out, " start {}", operation.start)?;
        }
    }
    Ok(())
}

fn write_entries(
    machine: &Machine,
    finder: &LinkFinder<'_>,
    cell: CellId,
    context: CellContext<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let is_default = |link: LinkId| {
        let ends = machine.link(link);
        finder.default_link(ends.source, ends.target) == link
    };
    for entry in context.entries {
        write!(out, "      {} from ", entry.channel)?;
        match entry.feed {
            Feed::Gate(connection) => write!(out, "{connection}")?,
            Feed::Link(link) if machine.link(link).target == cell && is_default(link) => {
                write!(out, "{}", machine.link(link).source)?;
            }
            Feed::Link(link) => write!(out, "{link}")?,
        }
        match entry.sink {
            Sink::Gate(connection) => writeln!(out, " to {connection}")?,
            Sink::Forward { link, channel } => {
                let ends = machine.link(link);
                if ends.source == cell && is_default(link) {
                    writeln!(out, " to {}/{channel}", ends.target)?;
                } else {
                    writeln!(out, " to {link}/{channel}")?;
                }
            }
        }
    }
    Ok(())
}
