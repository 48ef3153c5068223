//! The connections of an earlier schedule that a new set reuses.
//!
//! A connection with unchanged ends and words is reused with all of its routes. If it has several,
//! the router gets one connection for each of them, a *part*, with the ends, requirements and order
//! of the connection and words of its own. So the router keeps or moves a part like any connection,
//! and untouched parts remain identical. New connections can be split into parts too. A connection
//! keeps its id and is its own first part; further parts follow the connections of the set.
//!
//! A connection is not reused if one of its routes crosses a cell or link that is dead now.
//!
//! The order of the parts needs a pair for each two parts of ordered connections. If these are more
//! than [`PAIRS`], ordered connections in several parts are not reused.

use std::borrow::Cow;
use std::sync::Arc;

use conset_ir::convert::to_u32;
use conset_ir::{
    Connection, ConnectionId, ConnectionSet, Machine, PhaseRoutes, Routing, SetSchedule,
    ShapeError, Slot,
};

use crate::pairing::ConnectionPairs;

/// Greatest number of ordered pairs of parts.
const PAIRS: usize = 1 << 20;

/// A set whose connections are split into parts.
pub(super) struct SplitSet {
    /// The first part of each connection, then further parts.
    pub(super) set: Arc<ConnectionSet>,
    /// The connection of each further part.
    of: Vec<ConnectionId>,
}

impl SplitSet {
    /// The connection of a part.
    pub(super) fn of(&self, part: ConnectionId) -> ConnectionId {
        let whole = self.set.len() - self.of.len();
        part.index().checked_sub(whole).map_or(part, |row| self.of[row])
    }

    /// Routes of parts as routes of the connections that they are parts of.
    ///
    /// # Errors
    /// As [`Routing::new`].
    pub(super) fn joined(
        &self,
        machine: &Arc<Machine>,
        set: &Arc<ConnectionSet>,
        mut phases: Vec<PhaseRoutes>,
    ) -> Result<Routing, ShapeError> {
        if !self.of.is_empty() {
            phases.iter_mut().for_each(|routes| routes.rename(|_, part| self.of(part)));
        }
        Routing::new(machine.clone(), set.clone(), phases)
    }
}

/// The reused connections of a set.
pub(super) struct ReusedSet {
    /// The reused routes of each earlier phase, with ids of parts.
    pub(super) phases: Vec<PhaseRoutes>,
    /// Their slots.
    pub(super) slots: Vec<Vec<Slot>>,
    /// Whether all routes of the phase are reused.
    pub(super) whole: Vec<bool>,
    /// The number of reused connections.
    pub(super) count: usize,
    /// The other connections, ascending.
    pub(super) new: Vec<ConnectionId>,
    /// How many of those crossed a part of the machine that is dead now.
    pub(super) rerouted: usize,
    /// The connection and words of each further part of reused connections.
    further: Vec<(ConnectionId, u32)>,
    /// The connection and words of the first part of reused connections in several parts, ascending.
    first: Vec<(ConnectionId, u32)>,
}

/// Whether a connection of the new set is reused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reuse {
    New,
    /// It is reused; no part of it was found yet.
    Reused,
    /// It is reused, and a part was found.
    Found,
}

impl ReusedSet {
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, old: &SetSchedule) -> Self {
        let routing = old.timetable.routing();
        let pairs = ConnectionPairs::of(routing.set(), set);
        let mut fate = vec![Reuse::New; set.len()];
        for (id, before) in routing.set().iter() {
            let Some(now) = pairs.in_b(id) else { continue };
            let c = set.get(now);
            if (c.source, c.target, c.words) == (before.source, before.target, before.words) {
                fate[now.index()] = Reuse::Reused;
            }
        }
        let rerouted = drop_dead(machine, routing, &pairs, &mut fate);
        drop_crowds(set, routing, &pairs, &mut fate);
        let mut this = Self {
            rerouted,
            phases: Vec::with_capacity(routing.phases().len()),
            slots: Vec::with_capacity(routing.phases().len()),
            whole: Vec::with_capacity(routing.phases().len()),
            count: fate.iter().filter(|&&fate| fate == Reuse::Reused).count(),
            new: set.iter().map(|row| row.0).filter(|x| fate[x.index()] == Reuse::New).collect(),
            further: Vec::new(),
            first: Vec::new(),
        };
        for (routes, times) in routing.phases().iter().zip(old.timetable.phases()) {
            this.add_phase(set, routes, &times.slots, &pairs, &mut fate);
        }
        this.first.sort_unstable();
        this
    }

    fn add_phase(
        &mut self,
        set: &ConnectionSet,
        routes: &PhaseRoutes,
        slots: &[Slot],
        pairs: &ConnectionPairs,
        fate: &mut [Reuse],
    ) {
        let mut parts = Vec::with_capacity(routes.len());
        for route in routes.iter() {
            let id = pairs.in_b(route.connection);
            parts.push(id.and_then(|id| self.part(set, id, route.words, &mut fate[id.index()])));
        }
        let all = parts.iter().all(Option::is_some);
        let rows = parts.iter().enumerate();
        let rows = rows.filter_map(|(row, part)| part.map(|part| (row, part)));
        let times: Vec<Slot> = rows.clone().map(|(row, _)| slots[row]).collect();
        let reused = if all {
            let mut reused = routes.clone();
            reused.rename(|row, id| parts[row].unwrap_or(id));
            reused
        } else {
            let mut reused = PhaseRoutes::new();
            for (row, part) in rows {
                let route = routes.get(row);
                reused
                    .push(part, route.words, route.cells, route.links(), route.channels)
                    .expect("a route of the same length was pushed before");
            }
            reused
        };
        self.whole.push(reused.len() == routes.len());
        self.phases.push(reused);
        self.slots.push(times);
    }

    /// The part for a route of a connection; `None` if the connection is not reused.
    fn part(
        &mut self,
        set: &ConnectionSet,
        id: ConnectionId,
        words: u32,
        fate: &mut Reuse,
    ) -> Option<ConnectionId> {
        match *fate {
            Reuse::New => None,
            Reuse::Reused => {
                *fate = Reuse::Found;
                if words != set.get(id).words {
                    self.first.push((id, words));
                }
                Some(id)
            }
            Reuse::Found => {
                self.further.push((id, words));
                Some(ConnectionId::from_index(set.len() + self.further.len() - 1))
            }
        }
    }

    /// The number of further parts of reused connections. Their ids follow those of the set.
    pub(super) fn further(&self) -> usize {
        self.further.len()
    }

    /// The set split into parts: those of reused connections, and those of new ones, which `split`
    /// lists by connection, ascending, with the words of the parts.
    ///
    /// # Errors
    /// More parts than a set may have connections.
    pub(super) fn split(
        &self,
        set: &Arc<ConnectionSet>,
        split: &[(ConnectionId, Vec<u32>)],
    ) -> Result<SplitSet, ShapeError> {
        let new = split.iter().flat_map(|(id, words)| words[1..].iter().map(|&words| (*id, words)));
        let further: Vec<(ConnectionId, u32)> = self.further.iter().copied().chain(new).collect();
        if further.is_empty() {
            return Ok(SplitSet { set: set.clone(), of: Vec::new() });
        }
        let mut connections = set.connections().to_vec();
        let first = split.iter().map(|(id, words)| (*id, words[0]));
        for (id, words) in self.first.iter().copied().chain(first) {
            connections[id.index()].words = words;
        }
        let part = |&(id, words): &(ConnectionId, u32)| Connection {
            words,
            name: None,
            ..set.get(id).clone()
        };
        connections.extend(further.iter().map(part));
        let of: Vec<ConnectionId> = further.into_iter().map(|part| part.0).collect();
        let order = order_of_parts(set, &of);
        let parts = ConnectionSet::new(set.name(), connections)?.with_order(order.into_owned())?;
        Ok(SplitSet { set: Arc::new(parts), of })
    }
}

/// Excludes connections with a route across a dead part of the machine, and returns their number.
fn drop_dead(
    machine: &Machine,
    routing: &Routing,
    pairs: &ConnectionPairs,
    fate: &mut [Reuse],
) -> usize {
    let mut dropped = 0;
    for route in routing.phases().iter().flat_map(PhaseRoutes::iter) {
        let Some(id) = pairs.in_b(route.connection) else { continue };
        if fate[id.index()] == Reuse::Reused && !machine.carries(route.cells) {
            fate[id.index()] = Reuse::New;
            dropped += 1;
        }
    }
    dropped
}

/// Excludes ordered connections in several parts if the order has too many pairs of parts.
fn drop_crowds(
    set: &ConnectionSet,
    routing: &Routing,
    pairs: &ConnectionPairs,
    fate: &mut [Reuse],
) {
    if set.order().is_empty() {
        return;
    }
    let mut count = vec![0usize; set.len()];
    for route in routing.phases().iter().flat_map(PhaseRoutes::iter) {
        if let Some(id) = pairs.in_b(route.connection) {
            count[id.index()] += 1;
        }
    }
    let of = |id: ConnectionId| count[id.index()].max(1);
    let pairs = set.order().iter().map(|&(a, b)| of(a).saturating_mul(of(b)));
    if pairs.fold(0, usize::saturating_add) <= PAIRS.max(set.order().len()) {
        return;
    }
    for id in set.order().iter().flat_map(|&(a, b)| [a, b]) {
        if count[id.index()] > 1 {
            fate[id.index()] = Reuse::New;
        }
    }
}

/// The order of the parts: for each pair, all parts of one connection with all parts of the other.
/// `further` lists the connection of each further part.
fn order_of_parts<'a>(
    set: &'a ConnectionSet,
    further: &[ConnectionId],
) -> Cow<'a, [(ConnectionId, ConnectionId)]> {
    if set.order().is_empty() {
        return Cow::Borrowed(set.order());
    }
    let rows = further.iter().enumerate().map(|(row, id)| (id.0, to_u32(set.len() + row)));
    let parts = conset_ir::Lists::new(set.len(), rows);
    let of = |id: ConnectionId| {
        let further = parts.of(id.0).iter().map(|&part| ConnectionId(part));
        std::iter::once(id).chain(further)
    };
    let pairs = |&(a, b): &(ConnectionId, ConnectionId)| {
        of(a).flat_map(move |a| of(b).map(move |b| (a, b)))
    };
    Cow::Owned(set.order().iter().flat_map(pairs).collect())
}
