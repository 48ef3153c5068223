//! What of an older compile stands in a new set.
//!
//! A connection with the ends and the words that it had stands with all of its routes. Where it
//! has several, the router is told of a connection for each of them: a *part*, with the ends, the
//! requirements and the place in the order that its connection has, and words of its own. So a
//! part stays or moves like any connection, and parts that nobody touches are what they were, bit
//! by bit. New connections can be cut into parts too. Connections keep their ids, and are their
//! own first part; further parts come behind them.
//!
//! A connection does not stand if one of its routes crosses a cell or link that is dead now.
//!
//! Parts in an order have to be told of each pair of parts. Where that would be more pairs than
//! [`PAIRS`], connections in parts that have a place in the order do not stand.

use std::borrow::Cow;
use std::sync::Arc;

use conset_ir::{
    Connection, ConnectionId, ConnectionSet, Machine, PhaseRoutes, Routing, SetSchedule,
    ShapeError, Slot,
};

use crate::diff::Pairs;

/// Pairs of an order between parts at most.
const PAIRS: usize = 1 << 20;

/// A set in parts.
pub(super) struct Parts {
    /// The first part of each connection, then further parts.
    pub(super) set: Arc<ConnectionSet>,
    /// The connection of each further part.
    of: Vec<ConnectionId>,
}

impl Parts {
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

/// What of the older compile is in the new set.
pub(super) struct Standing {
    /// By phase of the older compile, with ids of parts.
    pub(super) phases: Vec<PhaseRoutes>,
    /// Their slots.
    pub(super) slots: Vec<Vec<Slot>>,
    /// Whether nothing has left the phase.
    pub(super) whole: Vec<bool>,
    /// Connections that stand.
    pub(super) count: usize,
    /// Connections that do not, ascending.
    pub(super) new: Vec<ConnectionId>,
    /// How many of those do not because a part of the machine that they crossed is dead.
    pub(super) rerouted: usize,
    /// The words and connection of each further part of those that stand.
    further: Vec<(ConnectionId, u32)>,
    /// The words of the first parts that are not the only ones, ascending.
    first: Vec<(ConnectionId, u32)>,
}

/// What becomes of a connection of the new set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    New,
    /// It stands; no part of it was met yet.
    Stands,
    /// It stands, and a part was met.
    Met,
}

impl Standing {
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, old: &SetSchedule) -> Self {
        let routing = old.timetable.routing();
        let pairs = Pairs::of(routing.set(), set);
        let mut fate = vec![Fate::New; set.len()];
        for (id, before) in routing.set().iter() {
            let Some(now) = pairs.in_b(id) else { continue };
            let c = set.get(now);
            if (c.source, c.target, c.words) == (before.source, before.target, before.words) {
                fate[now.index()] = Fate::Stands;
            }
        }
        let rerouted = drop_dead(machine, routing, &pairs, &mut fate);
        drop_crowds(set, routing, &pairs, &mut fate);
        let mut this = Self {
            rerouted,
            phases: Vec::with_capacity(routing.phases().len()),
            slots: Vec::with_capacity(routing.phases().len()),
            whole: Vec::with_capacity(routing.phases().len()),
            count: fate.iter().filter(|&&fate| fate == Fate::Stands).count(),
            new: set.iter().map(|row| row.0).filter(|x| fate[x.index()] == Fate::New).collect(),
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
        pairs: &Pairs,
        fate: &mut [Fate],
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
        let standing = if all {
            let mut standing = routes.clone();
            standing.rename(|row, id| parts[row].unwrap_or(id));
            standing
        } else {
            let mut standing = PhaseRoutes::new();
            for (row, part) in rows {
                let route = routes.get(row);
                standing
                    .push(part, route.words, route.cells, route.links(), route.channels)
                    .expect("a route of the same length was pushed before");
            }
            standing
        };
        self.whole.push(standing.len() == routes.len());
        self.phases.push(standing);
        self.slots.push(times);
    }

    /// The part that a route of a connection becomes; none if the connection does not stand.
    fn part(
        &mut self,
        set: &ConnectionSet,
        id: ConnectionId,
        words: u32,
        fate: &mut Fate,
    ) -> Option<ConnectionId> {
        match *fate {
            Fate::New => None,
            Fate::Stands => {
                *fate = Fate::Met;
                if words != set.get(id).words {
                    self.first.push((id, words));
                }
                Some(id)
            }
            Fate::Met => {
                self.further.push((id, words));
                Some(ConnectionId::from_index(set.len() + self.further.len() - 1))
            }
        }
    }

    /// Parts beyond the first of the connections that stand; their ids come behind the set's.
    pub(super) fn further(&self) -> usize {
        self.further.len()
    }

    /// The set in parts: those that stand, and those that new connections are cut into, which
    /// `cut` lists by connection, ascending, each with the words of its parts.
    ///
    /// # Errors
    /// More parts than a set may have connections.
    pub(super) fn parts(
        &self,
        set: &Arc<ConnectionSet>,
        cut: &[(ConnectionId, Vec<u32>)],
    ) -> Result<Parts, ShapeError> {
        let new = cut.iter().flat_map(|(id, words)| words[1..].iter().map(|&words| (*id, words)));
        let further: Vec<(ConnectionId, u32)> = self.further.iter().copied().chain(new).collect();
        if further.is_empty() {
            return Ok(Parts { set: set.clone(), of: Vec::new() });
        }
        let mut connections = set.connections().to_vec();
        let first = cut.iter().map(|(id, words)| (*id, words[0]));
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
        Ok(Parts { set: Arc::new(parts), of })
    }
}

/// Lets connections go of which a route crosses a dead part of the machine; how many there are.
fn drop_dead(machine: &Machine, routing: &Routing, pairs: &Pairs, fate: &mut [Fate]) -> usize {
    let mut dropped = 0;
    for route in routing.phases().iter().flat_map(PhaseRoutes::iter) {
        let Some(id) = pairs.in_b(route.connection) else { continue };
        if fate[id.index()] == Fate::Stands && !machine.carries(route.cells) {
            fate[id.index()] = Fate::New;
            dropped += 1;
        }
    }
    dropped
}

/// Lets connections in parts go where the order has too many pairs of parts.
fn drop_crowds(set: &ConnectionSet, routing: &Routing, pairs: &Pairs, fate: &mut [Fate]) {
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
            fate[id.index()] = Fate::New;
        }
    }
}

/// The pairs of the order, between all parts of the one and all parts of the other. `further` has
/// the connection of each further part.
fn order_of_parts<'a>(
    set: &'a ConnectionSet,
    further: &[ConnectionId],
) -> Cow<'a, [(ConnectionId, ConnectionId)]> {
    if set.order().is_empty() {
        return Cow::Borrowed(set.order());
    }
    let rows = further.iter().enumerate().map(|(row, id)| (id.0, (set.len() + row) as u32));
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
