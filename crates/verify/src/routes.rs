//! The rules of a routing: every connection carried once and whole, every route a simple path of
//! live links between its ends, channels within the count, order kept between phases.
//!
//! One pass over the phases. A route whose ids are out of range is reported and then left out, so
//! that the other rules can index without asking.

use conset_ir::{CellId, ConnectionId, LinkId, PhaseId, RouteRef, Routing};

use crate::channels::Ledger;
use crate::facts::Report;
use crate::live::Live;
use crate::order::PhaseSpans;
use crate::rejection::{Findings, Place, Rule};
use crate::sharing::Sharing;

/// Checks a routing; what is wrong goes to `findings`. O(cells + links + connections + hops).
pub(crate) fn check(routing: &Routing, findings: &mut Findings) -> Report {
    let live = Live::new(routing.machine());
    let set = routing.set();
    let machine = routing.machine();
    let parameters = machine.parameters();
    let has_contracts =
        set.connections().iter().any(|c| c.min_bandwidth.is_some() || c.max_latency.is_some());
    let mut report = Report {
        sets: 1,
        phases: routing.phases().len() as u64,
        connections: set.len() as u64,
        words: set.words(),
        orders: set.order().len() as u64,
        ..Report::default()
    };
    let mut ledger = Ledger::new(
        machine.cell_count(),
        parameters.channels_per_cell,
        parameters.channels_reserved,
    );
    let mut sharing = Sharing::new(machine.link_count());
    let mut spans = PhaseSpans::new(set.len());
    let mut carried = vec![0u64; set.len()];
    let mut in_shape: Vec<bool> = Vec::new();

    check_connection_ends(routing, &live, findings);
    for (phase, routes) in routing.iter() {
        in_shape.clear();
        for (row, route) in routes.iter().enumerate() {
            let fits = check_shape(routing, phase, row, &route, findings);
            in_shape.push(fits);
            if !fits {
                continue;
            }
            report.routes += 1;
            report.hops += route.hops() as u64;
            carried[route.connection.index()] += u64::from(route.words);
            spans.add(route.connection, phase);
            check_words_and_ends(routing, phase, &route, findings);
            check_links(&live, phase, &route, &mut sharing, findings);
            check_cells(&live, phase, row, &route, &mut ledger, findings);
        }
        ledger.close(phase, routes, |row| in_shape[row], findings, &mut report);
        report.max_sharing = report.max_sharing.max(sharing.max());
        if has_contracts {
            sharing.check_contracts(routing, phase, routes, |row| in_shape[row], findings);
        }
        sharing.clear();
    }
    check_coverage(routing, &carried, findings);
    spans.check(set, findings);
    report
}

/// Ids in range and runs of matching lengths. Constructors check this too; nobody is trusted.
fn check_shape(
    routing: &Routing,
    phase: PhaseId,
    row: usize,
    route: &RouteRef<'_>,
    findings: &mut Findings,
) -> bool {
    let machine = routing.machine();
    let place = Place::phase(phase);
    let mut wrong = |what: String| {
        findings.add(Rule::Shape, place, || format!("route {row}: {what}"));
        false
    };
    if route.connection.index() >= routing.set().len() {
        return wrong(format!("{} is not one of the set's connections", route.connection));
    }
    if route.cells.is_empty() || route.channels.len() != route.cells.len() {
        return wrong(format!("{} cells and {} channels", route.cells.len(), route.channels.len()));
    }
    if let Some(cell) = route.cells.iter().find(|cell| cell.index() >= machine.cell_count()) {
        return wrong(format!("{cell} is not one of the machine's cells"));
    }
    let known = |link: LinkId| link == LinkId::NONE || link.index() < machine.link_count();
    if let Some(link) = route.links().iter().find(|link| !known(**link)) {
        return wrong(format!("{link} is not one of the machine's links"));
    }
    true
}

/// The ends of every connection are live cells with an agent.
fn check_connection_ends(routing: &Routing, live: &Live<'_>, findings: &mut Findings) {
    for (id, connection) in routing.set().iter() {
        for (end, cell) in [("source", connection.source), ("target", connection.target)] {
            if !live.is_agent(cell) {
                findings.add(Rule::Ends, Place::set().cell(cell).connection(id), || {
                    format!("its {end} is not a live cell with an agent")
                });
            }
        }
    }
}

fn check_words_and_ends(
    routing: &Routing,
    phase: PhaseId,
    route: &RouteRef<'_>,
    findings: &mut Findings,
) {
    let place = Place::phase(phase).connection(route.connection);
    if route.words == 0 {
        findings.add(Rule::Coverage, place, || "a route that carries no words".to_owned());
    }
    let connection = routing.set().get(route.connection);
    let ends = (route.cells[0], route.cells[route.cells.len() - 1]);
    if ends != (connection.source, connection.target) {
        findings.add(Rule::Ends, place, || {
            format!(
                "the route runs from {} to {}, the connection from {} to {}",
                ends.0, ends.1, connection.source, connection.target
            )
        });
    }
}

/// Each link joins its two cells in the right direction and is not dead.
fn check_links(
    live: &Live<'_>,
    phase: PhaseId,
    route: &RouteRef<'_>,
    sharing: &mut Sharing,
    findings: &mut Findings,
) {
    for (pair, &link) in route.cells.windows(2).zip(route.links()) {
        let (from, to) = (pair[0], pair[1]);
        let place = Place::phase(phase).cell(from).connection(route.connection);
        if link == LinkId::NONE {
            findings.add(Rule::Adjacency, place, || format!("no live link leads to {to}"));
            continue;
        }
        let wire = live.machine().link(link);
        if (wire.source, wire.target) != (from, to) {
            findings.add(Rule::Adjacency, place, || {
                format!("{link} joins {} to {}, not {from} to {to}", wire.source, wire.target)
            });
            continue;
        }
        // A link that is dead because its cell is dead is reported once, with the cell.
        if !live.is_link_alive(link) && live.is_alive(from) && live.is_alive(to) {
            findings.add(Rule::Dead, place, || format!("{link} to {to} is marked dead"));
        }
        sharing.add(link);
    }
}

/// No cell is dead and none comes twice; books the route's channels.
fn check_cells(
    live: &Live<'_>,
    phase: PhaseId,
    row: usize,
    route: &RouteRef<'_>,
    ledger: &mut Ledger,
    findings: &mut Findings,
) {
    let place = |cell: CellId| Place::phase(phase).cell(cell).connection(route.connection);
    for &cell in route.cells {
        if !live.is_alive(cell) {
            findings.add(Rule::Dead, place(cell), || "the route passes a dead cell".to_owned());
        }
        if ledger.book(cell, row) {
            findings.add(Rule::SimpleRoute, place(cell), || {
                "the route comes to this cell twice".to_owned()
            });
        }
    }
}

/// The parts of each connection are all of its words, once.
fn check_coverage(routing: &Routing, carried: &[u64], findings: &mut Findings) {
    for ((id, connection), &carried) in routing.set().iter().zip(carried) {
        if carried != u64::from(connection.words) {
            uncovered(id, carried, connection.words, findings);
        }
    }
}

fn uncovered(id: ConnectionId, carried: u64, words: u32, findings: &mut Findings) {
    findings.add(Rule::Coverage, Place::set().connection(id), || match carried {
        0 => "no phase carries it".to_owned(),
        _ => format!("its routes carry {carried} words together, it has {words}"),
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{ChannelId, Connection, ConnectionSet, Machine, PhaseRoutes};

    use super::*;

    #[test]
    fn ids_out_of_range_are_refused_here_too() {
        let machine = Arc::new(Machine::from_spec("mesh:2").unwrap());
        let connection = Connection::new(CellId(0), CellId(1), 4);
        let set = Arc::new(ConnectionSet::new("s", vec![connection]).unwrap());
        let routing = Routing::new(machine, set, Vec::new()).unwrap();
        for (connection, cell, link, fits) in [
            (0, 1, 0, true),
            (0, 1, u32::MAX, true), // No neighbours: that is the adjacency rule's business.
            (1, 1, 0, false),
            (0, 2, 0, false),
            (0, 1, 2, false),
        ] {
            let mut routes = PhaseRoutes::new();
            let cells = [CellId(0), CellId(cell)];
            let channels = [ChannelId(0); 2];
            routes.push(ConnectionId(connection), 4, &cells, &[LinkId(link)], &channels).unwrap();
            let mut findings = Findings::new();
            let result = check_shape(&routing, PhaseId(0), 0, &routes.get(0), &mut findings);
            assert_eq!(result, fits);
            let rules = findings.finish().err().map(|r| r.rules()).unwrap_or_default();
            assert_eq!(rules, if fits { vec![] } else { vec![Rule::Shape] });
        }
    }
}
