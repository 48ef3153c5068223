//! Verified timetables for tests: a simple router and a serial timetable.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, ConnectionSet, Duplex, LinkId, Machine, Parameters, PhaseRoutes, PhaseTimes,
    Routing, Slot, Timetable,
};
use conset_verify::Verified;

pub(crate) fn machine(spec: &str, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).unwrap();
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    Arc::new(machine.with_parameters(parameters).unwrap())
}

/// A shortest route that prefers links with low ids; empty for a cell to itself.
fn way(machine: &Machine, from: CellId, to: CellId) -> Vec<LinkId> {
    let mut entered = vec![LinkId::NONE; machine.cell_count()];
    let mut queue = VecDeque::from([from]);
    while let Some(cell) = queue.pop_front() {
        for &link in machine.outgoing(cell) {
            let next = machine.link(link).target;
            if next != from && entered[next.index()] == LinkId::NONE {
                entered[next.index()] = link;
                queue.push_back(next);
            }
        }
    }
    let (mut links, mut at) = (Vec::new(), to);
    while at != from {
        links.push(entered[at.index()]);
        at = machine.link(entered[at.index()]).source;
    }
    links.reverse();
    links
}

/// Routes in phases that are as full as the channels permit, with the slots of each phase one after
/// the other. A connection with more words than `part` is split into parts of `part` words.
pub(crate) fn compiled(
    machine: &Arc<Machine>,
    set: ConnectionSet,
    part: u32,
) -> Verified<Timetable> {
    let channels = machine.parameters().channels_per_cell;
    let mut pieces = Vec::new();
    let rounds = set.connections().iter().map(|c| c.words.div_ceil(part)).max().unwrap_or(0);
    for round in 0..rounds {
        for (id, c) in set.iter().filter(|(_, c)| c.words > round * part) {
            pieces.push((id, part.min(c.words - round * part)));
        }
    }
    let mut phases = Vec::new();
    let mut routes = PhaseRoutes::new();
    let mut used = vec![0; machine.cell_count()];
    for (id, words) in pieces {
        let c = set.get(id);
        let links = way(machine, c.source, c.target);
        let mut cells = vec![c.source];
        cells.extend(links.iter().map(|&link| machine.link(link).target));
        if cells.iter().any(|cell| used[cell.index()] == channels) {
            phases.push(std::mem::take(&mut routes));
            used.fill(0);
        }
        // Descending, so that channels are not in the order of the routes.
        let taken: Vec<ChannelId> =
            cells.iter().map(|cell| ChannelId(channels - 1 - used[cell.index()])).collect();
        cells.iter().for_each(|cell| used[cell.index()] += 1);
        routes.push(id, words, &cells, &links, &taken).unwrap();
    }
    if !routes.is_empty() {
        phases.push(routes);
    }
    let times = phases.iter().map(|routes| serial(machine, routes)).collect();
    let routing = Routing::new(machine.clone(), Arc::new(set), phases).unwrap();
    conset_verify::timetable(Timetable::new(routing, times).unwrap()).unwrap()
}

fn serial(machine: &Machine, routes: &PhaseRoutes) -> PhaseTimes {
    let parameters = machine.parameters();
    let (mut slots, mut makespan) = (Vec::new(), 0);
    for route in routes.iter() {
        let twice = route.hops() == 0 && parameters.duplex == Duplex::Half;
        let once = u64::from(route.words) * u64::from(parameters.access_clocks_per_word)
            + u64::from(parameters.stream_setup);
        let duration = if twice { 2 * once } else { once };
        slots.push(Slot { start: makespan, duration });
        makespan += duration;
    }
    PhaseTimes { slots, makespan }
}
