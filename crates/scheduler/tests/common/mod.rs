//! A stand-in for the router: shortest ways, channels in order of arrival.

use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Duplex, LinkId, Machine,
    Parameters, PhaseRoutes, PhaseTimes, Routing, Timetable,
};

/// A connection's ends and words.
pub(crate) type Ends = (u32, u32, u32);

/// A small generator of numbers (splitmix64), so that measurements need no other crate.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

pub(crate) fn machine(spec: &str) -> Arc<Machine> {
    Arc::new(Machine::from_spec(spec).unwrap())
}

pub(crate) fn machine_with(spec: &str, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).unwrap();
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    Arc::new(machine.with_parameters(parameters).unwrap())
}

pub(crate) fn set(ends: &[Ends]) -> ConnectionSet {
    let connections =
        ends.iter().map(|&(s, t, w)| Connection::new(CellId(s), CellId(t), w)).collect();
    ConnectionSet::new("set", connections).unwrap()
}

/// A shortest way over links, lowest link first; empty for a cell to itself.
pub(crate) fn way(machine: &Machine, from: CellId, to: CellId) -> Vec<LinkId> {
    let mut entered = vec![LinkId::NONE; machine.cell_count()];
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(cell) = queue.pop_front() {
        if cell == to {
            break;
        }
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
        let link = entered[at.index()];
        assert_ne!(link, LinkId::NONE, "no way");
        links.push(link);
        at = machine.link(link).source;
    }
    links.reverse();
    links
}

/// Routes the set, a connection going to the first phase with free channels, at most `phases`
/// phases looked at from the last.
pub(crate) fn route(machine: &Arc<Machine>, set: ConnectionSet) -> Routing {
    let channels = machine.parameters().channels_per_cell as usize;
    let mut phases: Vec<(PhaseRoutes, Vec<u32>)> = Vec::new();
    let mut first_open = 0;
    for (id, c) in set.iter() {
        let links = way(machine, c.source, c.target);
        let mut cells = vec![c.source];
        cells.extend(links.iter().map(|&l| machine.link(l).target));
        let fits = |used: &[u32]| cells.iter().all(|cell| (used[cell.index()] as usize) < channels);
        let found = (first_open..phases.len()).find(|&p| fits(&phases[p].1));
        let p = found.unwrap_or_else(|| {
            phases.push((PhaseRoutes::new(), vec![0; machine.cell_count()]));
            first_open = phases.len().saturating_sub(200);
            phases.len() - 1
        });
        let (routes, used) = &mut phases[p];
        let taken: Vec<ChannelId> =
            cells.iter().map(|cell| ChannelId(used[cell.index()])).collect();
        for cell in &cells {
            used[cell.index()] += 1;
        }
        routes.push(id, c.words, &cells, &links, &taken).unwrap();
    }
    let phases = phases.into_iter().map(|p| p.0).collect();
    Routing::new(machine.clone(), Arc::new(set), phases).unwrap()
}

/// All connections in one phase, whatever the channels.
pub(crate) fn one_phase(machine: &Arc<Machine>, set: ConnectionSet) -> Routing {
    let mut routes = PhaseRoutes::new();
    for (id, c) in set.iter() {
        let links = way(machine, c.source, c.target);
        let mut cells = vec![c.source];
        cells.extend(links.iter().map(|&l| machine.link(l).target));
        routes.push(id, c.words, &cells, &links, &vec![ChannelId(0); cells.len()]).unwrap();
    }
    Routing::new(machine.clone(), Arc::new(set), vec![routes]).unwrap()
}

/// Each cell to each of its neighbours.
pub(crate) fn neighbours(machine: &Machine, words: u32) -> Vec<Ends> {
    let mut ends = Vec::new();
    for cell in machine.endpoints() {
        for &link in machine.outgoing(cell) {
            ends.push((cell.0, machine.link(link).target.0, words));
        }
    }
    ends
}

/// The greatest MIN_TIME of a phase: recomputed here, from the machine model alone.
pub(crate) fn bound(timetable: &Timetable, phase: usize) -> u64 {
    let routing = timetable.routing();
    let half = routing.machine().parameters().duplex == Duplex::Half;
    let mut loads = vec![0u64; 2 * routing.machine().cell_count()];
    let times = &timetable.phases()[phase];
    for (route, slot) in routing.phases()[phase].iter().zip(&times.slots) {
        let c = routing.set().get(route.connection);
        loads[2 * c.source.index()] += slot.duration;
        if half && c.source != c.target {
            loads[2 * c.target.index()] += slot.duration;
        } else if !half {
            loads[2 * c.target.index() + 1] += slot.duration;
        }
    }
    loads.into_iter().max().unwrap_or(0)
}

/// Whatever must hold of a timetable's phase.
pub(crate) fn check(timetable: &Timetable, phase: usize) {
    let routing = timetable.routing();
    let half = routing.machine().parameters().duplex == Duplex::Half;
    let routes = &routing.phases()[phase];
    let PhaseTimes { slots, makespan } = &timetable.phases()[phase];
    assert_eq!(*makespan, slots.iter().map(|s| s.end()).max().unwrap_or(0));
    assert!(*makespan >= bound(timetable, phase));
    let mut booked: Vec<(u32, u64, u64)> = Vec::new();
    let mut spans = vec![(u64::MAX, 0); routing.set().len()];
    for (route, slot) in routes.iter().zip(slots) {
        let c = routing.set().get(route.connection);
        let (s, t) = (2 * c.source.0, 2 * c.target.0 + u32::from(!half));
        booked.push((s, slot.start, slot.end()));
        if s != t {
            booked.push((t, slot.start, slot.end()));
        }
        let span = &mut spans[route.connection.index()];
        *span = (slot.start.min(span.0), slot.end().max(span.1));
    }
    booked.sort_unstable();
    for pair in booked.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "overlap {pair:?}");
    }
    for &(ConnectionId(before), ConnectionId(after)) in routing.set().order() {
        let (before, after) = (spans[before as usize], spans[after as usize]);
        assert!(after.0 == u64::MAX || before.1 <= after.0);
    }
}
