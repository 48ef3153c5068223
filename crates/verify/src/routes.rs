//! The rules of a routing: coverage, simple paths of live links, channels, order and requirements.
//!
//! It makes one pass over the phases. A route with ids out of range is reported and then ignored,
//! so that the other rules can use its ids as indices.

use conset_ir::convert::to_u64;
use conset_ir::{CellId, ConnectionId, LinkId, PhaseId, RouteRef, Routing};

use crate::channels::Ledger;
use crate::facts::Report;
use crate::live::Live;
use crate::order::PhaseSpans;
use crate::rejection::{Findings, Location, Rule};
use crate::sharing::Sharing;

/// Checks a routing and adds its violations to `findings`. O(cells + links + connections + hops).
pub(crate) fn check(routing: &Routing, findings: &mut Findings) -> Report {
    let live = Live::new(routing.machine());
    let set = routing.set();
    let machine = routing.machine();
    let parameters = machine.parameters();
    let has_requirements =
        set.connections().iter().any(|c| c.min_bandwidth.is_some() || c.max_latency.is_some());
    let mut report = Report {
        sets: 1,
        phases: to_u64(routing.phases().len()),
        connections: to_u64(set.len()),
        words: set.words(),
        orders: to_u64(set.order().len()),
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
            report.hops += to_u64(route.hops());
            carried[route.connection.index()] += u64::from(route.words);
            spans.add(route.connection, phase);
            check_words_and_ends(routing, phase, &route, findings);
            check_links(&live, phase, &route, &mut sharing, findings);
            check_cells(&live, phase, row, &route, &mut ledger, findings);
        }
        ledger.close(phase, routes, |row| in_shape[row], findings, &mut report);
        report.max_sharing = report.max_sharing.max(sharing.max());
        if has_requirements {
            sharing.check_requirements(routing, phase, routes, |row| in_shape[row], findings);
        }
        sharing.clear();
    }
    check_coverage(routing, &carried, findings);
    spans.check(set, findings);
    report
}

/// Checks that ids are in range and lists have matching lengths, as constructors do.
fn check_shape(
    routing: &Routing,
    phase: PhaseId,
    row: usize,
    route: &RouteRef<'_>,
    findings: &mut Findings,
) -> bool {
    let machine = routing.machine();
    let location = Location::phase(phase);
    let mut wrong = |what: String| {
        findings.add(Rule::Shape, location, || format!("route {row}: {what}"));
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

/// Checks that the ends of every connection are live cells with an agent.
fn check_connection_ends(routing: &Routing, live: &Live<'_>, findings: &mut Findings) {
    for (id, connection) in routing.set().iter() {
        for (end, cell) in [("source", connection.source), ("target", connection.target)] {
            if !live.is_agent(cell) {
                findings.add(Rule::Ends, Location::set().cell(cell).connection(id), || {
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
    let location = Location::phase(phase).connection(route.connection);
    if route.words == 0 {
        findings.add(Rule::Coverage, location, || "a route that carries no words".to_owned());
    }
    let connection = routing.set().get(route.connection);
    let ends = (route.cells[0], route.cells[route.cells.len() - 1]);
    if ends != (connection.source, connection.target) {
        findings.add(Rule::Ends, location, || {
            format!(
                "the route runs from {} to {}, the connection from {} to {}",
                ends.0, ends.1, connection.source, connection.target
            )
        });
    }
}

/// Checks that each link joins its two cells in the right direction and is not dead.
fn check_links(
    live: &Live<'_>,
    phase: PhaseId,
    route: &RouteRef<'_>,
    sharing: &mut Sharing,
    findings: &mut Findings,
) {
    for (pair, &link) in route.cells.windows(2).zip(route.links()) {
        let (from, to) = (pair[0], pair[1]);
        let location = Location::phase(phase).cell(from).connection(route.connection);
        if link == LinkId::NONE {
            findings.add(Rule::Adjacency, location, || format!("no live link leads to {to}"));
            continue;
        }
        let ends = live.machine().link(link);
        if (ends.source, ends.target) != (from, to) {
            findings.add(Rule::Adjacency, location, || {
                format!("{link} joins {} to {}, not {from} to {to}", ends.source, ends.target)
            });
            continue;
        }
        // For a link with a dead cell only the cell is reported.
        if !live.is_link_alive(link) && live.is_alive(from) && live.is_alive(to) {
            findings.add(Rule::Dead, location, || format!("{link} to {to} is marked dead"));
        }
        sharing.add(link);
    }
}

/// Checks that no cell is dead or occurs twice, and books the channels of the route.
fn check_cells(
    live: &Live<'_>,
    phase: PhaseId,
    row: usize,
    route: &RouteRef<'_>,
    ledger: &mut Ledger,
    findings: &mut Findings,
) {
    let location = |cell: CellId| Location::phase(phase).cell(cell).connection(route.connection);
    for &cell in route.cells {
        if !live.is_alive(cell) {
            findings.add(Rule::Dead, location(cell), || "the route passes a dead cell".to_owned());
        }
        if ledger.book(cell, row) {
            findings.add(Rule::SimpleRoute, location(cell), || {
                "the route visits this cell twice".to_owned()
            });
        }
    }
}

/// Checks that the routes of each connection carry all of its words once.
fn check_coverage(routing: &Routing, carried: &[u64], findings: &mut Findings) {
    for ((id, connection), &carried) in routing.set().iter().zip(carried) {
        if carried != u64::from(connection.words) {
            uncovered(id, carried, connection.words, findings);
        }
    }
}

fn uncovered(id: ConnectionId, carried: u64, words: u32, findings: &mut Findings) {
    findings.add(Rule::Coverage, Location::set().connection(id), || match carried {
        0 => "no phase carries it".to_owned(),
        _ => format!("its routes carry {carried} words in all, it has {words}"),
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
            (0, 1, u32::MAX, true), // Not neighbours, which the adjacency rule refuses.
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
