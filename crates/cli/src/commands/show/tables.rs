//! The tables of a schedule of phases: routes, timetable, channels, links, cells and contexts.
//!
//! Each view is a list of rows, with numbers as numbers; [`crate::rows`] prints them.

use std::collections::{BTreeMap, BTreeSet};

use conset::Compiled;
use conset::profile::PortClocks;
use conset::report::Summary;
use conset_ir::convert::to_u64;
use conset_ir::{
    CellId, ConnectionSet, Feed, Link, LinkId, Machine, PhaseId, RouteRef, Schedule, Sink,
};

use super::columns::{CLOCKS, add_links, clocks};
use super::map::LinkLoads;
use super::selection::Selection;
use crate::rows::{Field, TableRows};

/// A row for each set.
pub(super) fn summary(summary: &Summary) -> TableRows {
    let columns = [
        "set",
        "connections",
        "words",
        "phases",
        "bound_phases",
        "bound_phases_by",
        "phases_over_bound",
        "predicted_clocks",
        "bound_clocks",
        "bound_clocks_by",
        "clocks_over_bound",
        "hops",
        "max_channels",
        "max_sharing",
    ];
    let mut rows = TableRows::new(&columns, 1);
    for set in &summary.sets {
        rows.rows.push(vec![
            set.set.as_str().into(),
            set.connections.into(),
            set.words.into(),
            set.phases.into(),
            set.bound_phases.into(),
            set.bound_phases_by.to_string().into(),
            Field::Real(set.phases_over_bound, 2),
            set.predicted_clocks.into(),
            set.bound_clocks.into(),
            set.bound_clocks_by.to_string().into(),
            Field::Real(set.clocks_over_bound, 2),
            set.hops.into(),
            set.max_channels.into(),
            set.max_sharing.into(),
        ]);
    }
    rows
}

/// The phases, with the clocks that are predicted if the schedule is correct.
pub(super) fn phases(
    schedule: &Schedule,
    compiled: Option<&Compiled>,
    only: &Selection<'_>,
) -> TableRows {
    // With timed starts, the length of a phase without contention is proved.
    let timed = schedule.machine().parameters().has_timed_starts();
    let columns = [
        "set",
        "phase",
        "routes",
        "words",
        "hops",
        "makespan",
        "predicted_clocks",
        "max_sharing",
        "proved",
    ];
    let count = match (compiled, timed) {
        (None, _) => 6,
        (Some(_), false) => 8,
        (Some(_), true) => 9,
    };
    let mut rows = TableRows::new(&columns[..count], 2);
    for (index, set) in only.sets(schedule) {
        let proved = compiled.is_some() && timed;
        let lengths = proved.then(|| conset::verify::phase_lengths(&set.timetable));
        let routing = set.timetable.routing();
        for (id, phase) in routing.iter() {
            if !only.has_phase(id) {
                continue;
            }
            let mut row = vec![
                routing.set().name().into(),
                id.into(),
                phase.len().into(),
                phase.iter().map(|r| u64::from(r.words)).sum::<u64>().into(),
                phase.iter().map(|r| to_u64(r.hops())).sum::<u64>().into(),
                set.timetable.phases()[id.index()].makespan.into(),
            ];
            if let Some(compiled) = compiled {
                let predicted = &compiled.sets()[index].prediction.phases[id.index()];
                row.extend([predicted.clocks.into(), predicted.max_sharing.into()]);
            }
            if let Some(length) = lengths.as_ref().map(|lengths| lengths[id.index()]) {
                row.push(length.map_or(Field::Absent("no"), Field::from));
            }
            rows.rows.push(row);
        }
    }
    rows
}

/// `c3/ch0 -> c4/ch5`, as in the text form.
pub(super) fn path(route: &RouteRef<'_>) -> String {
    let stops: Vec<String> =
        route.cells.iter().zip(route.channels).map(|(c, ch)| format!("{c}/{ch}")).collect();
    stops.join(" -> ")
}

pub(super) fn routes(
    schedule: &Schedule,
    only: &Selection<'_>,
    keep: impl Fn(&ConnectionSet, &RouteRef<'_>) -> bool,
) -> TableRows {
    let mut rows = TableRows::new(
        &["set", "phase", "connection", "name", "route", "words", "hops", "start", "duration"],
        5,
    );
    only.for_each_route(schedule, |set, phase, route, slot| {
        let set = set.timetable.routing().set();
        if keep(set, &route) {
            rows.rows.push(vec![
                set.name().into(),
                phase.into(),
                route.connection.into(),
                set.get(route.connection).name.as_deref().unwrap_or("").into(),
                path(&route).into(),
                route.words.into(),
                route.hops().into(),
                slot.start.into(),
                slot.duration.into(),
            ]);
        }
    });
    rows
}

pub(super) fn timetable(schedule: &Schedule, only: &Selection<'_>) -> TableRows {
    let mut listed = Vec::new();
    only.for_each_route(schedule, |set, phase, route, slot| {
        listed.push((set, phase, slot, route));
    });
    // The sort is stable, so sets stay in their order of execution.
    listed.sort_by_key(|(_, phase, slot, route)| (*phase, slot.start, route.connection));
    let mut rows = TableRows::new(
        &["set", "phase", "connection", "source", "target", "start", "end", "words"],
        5,
    );
    for (set, phase, slot, route) in listed {
        let set = set.timetable.routing().set();
        let connection = set.get(route.connection);
        rows.rows.push(vec![
            set.name().into(),
            phase.into(),
            route.connection.into(),
            connection.source.into(),
            connection.target.into(),
            slot.start.into(),
            slot.end().into(),
            route.words.into(),
        ]);
    }
    rows
}

pub(super) fn channels(schedule: &Schedule, only: &Selection<'_>) -> TableRows {
    let machine = schedule.machine();
    let mut rows = TableRows::new(&["set", "phase", "cell", "used", "of", "words"], 3);
    for_each_phase(schedule, only, |set, phase, routes| {
        let mut used = vec![(0u64, 0u64); machine.cell_count()];
        for route in routes.iter().filter(|route| route.words >= only.min_words) {
            for cell in route.cells {
                used[cell.index()].0 += 1;
                used[cell.index()].1 += u64::from(route.words);
            }
        }
        let shown = |cell: usize| only.cell.is_none_or(|only| only.index() == cell);
        for (cell, (count, words)) in
            used.into_iter().enumerate().filter(|(cell, u)| u.0 > 0 && shown(*cell))
        {
            rows.rows.push(vec![
                set.into(),
                phase.into(),
                CellId::from_index(cell).into(),
                count.into(),
                machine.parameters().channels_per_cell.into(),
                words.into(),
            ]);
        }
    });
    rows
}

pub(super) fn links(schedule: &Schedule, only: &Selection<'_>) -> TableRows {
    let machine = schedule.machine();
    let mut rows = TableRows::new(
        &["set", "phase", "link", "source", "target", "routes", "words", "clocks"],
        5,
    );
    for_each_phase(schedule, only, |set, phase, routes| {
        let loads = LinkLoads::of_phase(machine, routes, only);
        add_links(&mut rows, &[set.into(), phase.into()], machine, &loads, only.cell);
    });
    rows
}

/// Per cell: its connections and neighbours, and what its agent does by the cost model.
pub(super) fn cells(compiled: &Compiled, only: &Selection<'_>) -> TableRows {
    let own =
        ["set", "cell", "sends", "receives", "neighbours", "words_out", "words_in", "through"];
    let mut rows = TableRows::new(&[&own[..], &CLOCKS].concat(), 2);
    for (index, set) in only.sets(compiled.schedule()) {
        let profile = conset::profile::of_model(set, &compiled.sets()[index].prediction);
        let mut of_cell: Vec<CellLoad> = Vec::new();
        of_cell.resize_with(compiled.schedule().machine().cell_count(), CellLoad::default);
        let one =
            Selection { set: Some(set.timetable.routing().set().name()), cell: None, ..*only };
        one.for_each_route(compiled.schedule(), |_, _, route, _| {
            let (source, target) = (route.cells[0], route.cells[route.cells.len() - 1]);
            for (cell, peer, out) in [(source, target, true), (target, source, false)] {
                let load = &mut of_cell[cell.index()];
                load.routes[usize::from(out)] += 1;
                load.words[usize::from(out)] += u64::from(route.words);
                if peer != cell {
                    load.neighbours.insert(peer);
                }
            }
            for cell in route.cells.iter().filter(|&&cell| cell != source && cell != target) {
                of_cell[cell.index()].through += 1;
            }
        });
        let mut of_ports: BTreeMap<CellId, Vec<PortClocks>> = BTreeMap::new();
        for phase in profile.phases.iter().filter(|phase| only.has_phase(phase.phase)) {
            for port in &phase.ports {
                of_ports.entry(port.cell).or_default().push(port.clocks);
            }
        }
        let shown = of_ports.iter().filter(|(cell, _)| only.cell.is_none_or(|c| c == **cell));
        for (cell, ports) in shown {
            let load = &of_cell[cell.index()];
            let mut row: Vec<Field> = vec![
                set.timetable.routing().set().name().into(),
                (*cell).into(),
                load.routes[1].into(),
                load.routes[0].into(),
                load.neighbours.len().into(),
                load.words[1].into(),
                load.words[0].into(),
                load.through.into(),
            ];
            row.extend(clocks(ports.iter()));
            rows.rows.push(row);
        }
    }
    rows
}

/// The connections of a cell.
#[derive(Default)]
struct CellLoad {
    /// Routes that end, and that begin at the cell.
    routes: [u64; 2],
    /// Their words.
    words: [u64; 2],
    neighbours: BTreeSet<CellId>,
    /// Routes that only pass.
    through: u64,
}

fn for_each_phase(
    schedule: &Schedule,
    only: &Selection<'_>,
    mut visit: impl FnMut(&str, PhaseId, &conset_ir::PhaseRoutes),
) {
    for (_, set) in only.sets(schedule) {
        let routing = set.timetable.routing();
        for (id, phase) in routing.iter() {
            if only.has_phase(id) {
                visit(routing.set().name(), id, phase);
            }
        }
    }
}

/// Forwarding tables and operation lists, of one cell or of all.
pub(super) fn contexts(
    compiled: &Compiled,
    only: &Selection<'_>,
    cell: Option<CellId>,
) -> TableRows {
    let mut rows = TableRows::new(
        &["set", "phase", "cell", "what", "channel", "from", "to", "start", "words"],
        7,
    );
    let machine = compiled.schedule().machine();
    let cell = cell.or(only.cell);
    for (index, set) in only.sets(compiled.schedule()) {
        let name = set.timetable.routing().set().name();
        for (p, phase) in compiled.image().sets()[index].phases.iter().enumerate() {
            let p = PhaseId::from_index(p);
            if !only.has_phase(p) {
                continue;
            }
            for (id, context) in phase.cells().filter(|(id, _)| cell.is_none_or(|c| c == *id)) {
                let head = [Field::from(name), p.into(), id.into()];
                for entry in context.entries {
                    let from = match entry.feed {
                        Feed::Gate(x) => format!("gate {x}"),
                        Feed::Link(link) => far_end(machine, link, machine.link(link).source),
                    };
                    let to = match entry.sink {
                        Sink::Gate(x) => format!("gate {x}"),
                        Sink::Forward { link, channel } => {
                            let cell = far_end(machine, link, machine.link(link).target);
                            format!("{cell}/{channel}")
                        }
                    };
                    let tail =
                        [Field::from("forward"), entry.channel.into(), from.into(), to.into()];
                    let mut row = head.to_vec();
                    row.extend(tail);
                    row.extend([Field::Absent(""), Field::Absent("")]);
                    rows.rows.push(row);
                }
                let operations = context.operations.iter();
                for op in operations.filter(|op| op.words >= only.min_words) {
                    let (what, from, to) = match op.direction {
                        conset_ir::Direction::Send => ("send", op.connection.to_string(), "gate"),
                        conset_ir::Direction::Receive => ("receive", "gate".to_owned(), ""),
                    };
                    let to = if to.is_empty() { op.connection.to_string() } else { to.to_owned() };
                    let tail = [Field::from(what), op.channel.into(), from.into(), to.into()];
                    let mut row = head.to_vec();
                    row.extend(tail);
                    row.extend([op.start.into(), op.words.into()]);
                    rows.rows.push(row);
                }
            }
        }
    }
    rows
}

/// The cell at the other end of a link; with the link's number if several links join the two cells.
fn far_end(machine: &Machine, link: LinkId, cell: CellId) -> String {
    let Link { source, target } = machine.link(link);
    match machine.links_between(source, target).nth(1) {
        None => cell.to_string(),
        Some(_) => format!("{cell}({link})"),
    }
}
