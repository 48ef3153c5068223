//! Phases and routes: which connections hold their channels at the same time, and where.
//!
//! A route is the chain of logical channels that carries one connection (or a part of its
//! words). It is stored as three parallel runs: the cells in order, the channel taken on each,
//! and the link by which each was entered (`LinkId::NONE` for the first). All routes of a phase
//! lie one behind the other in flat arrays, because all-to-all on 32x32 cells has a million
//! routes of seventeen cells.
//!
//! A value of this module has the right shape and nothing more. A routing that was read from a
//! file may name cells that are no neighbours (their link is then `LinkId::NONE`) or channels
//! that the cell has not; the checker says so.

use std::sync::Arc;

use crate::error::ShapeError;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId, PhaseId};
use crate::limits;
use crate::machine::Machine;
use crate::set::ConnectionSet;

/// One route of a phase, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRef<'a> {
    /// The connection it carries.
    pub connection: ConnectionId,
    /// The words it carries: all of the connection's, or a part.
    pub words: u32,
    /// The cells in order; one more than there are links, at least one.
    pub cells: &'a [CellId],
    /// The channel taken on each cell.
    pub channels: &'a [ChannelId],
    entered_by: &'a [LinkId],
}

impl<'a> RouteRef<'a> {
    /// The links in order; link `i` joins `cells[i]` to `cells[i + 1]`, `LinkId::NONE` where no
    /// live link does.
    pub fn links(&self) -> &'a [LinkId] {
        &self.entered_by[1..]
    }

    /// Number of links.
    pub fn hops(&self) -> usize {
        self.cells.len() - 1
    }
}

/// The routes of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseRoutes {
    heads: Vec<Head>,
    cells: Vec<CellId>,
    channels: Vec<ChannelId>,
    entered_by: Vec<LinkId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    connection: ConnectionId,
    words: u32,
    end: u32,
}

impl PhaseRoutes {
    /// A phase without routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route over the given links (one fewer than cells; `LinkId::NONE` where there is
    /// none).
    ///
    /// # Errors
    /// No cell, runs whose lengths do not match, or more hops than the limit.
    pub fn push(
        &mut self,
        connection: ConnectionId,
        words: u32,
        cells: &[CellId],
        links: &[LinkId],
        channels: &[ChannelId],
    ) -> Result<(), ShapeError> {
        let place = || format!("routes[{}]", self.heads.len());
        if cells.is_empty() {
            return Err(ShapeError::new(place(), "a route has at least one cell"));
        }
        if links.len() + 1 != cells.len() || channels.len() != cells.len() {
            return Err(ShapeError::new(
                place(),
                format!(
                    "{} cells need {} links and {} channels, found {} and {}",
                    cells.len(),
                    cells.len() - 1,
                    cells.len(),
                    links.len(),
                    channels.len()
                ),
            ));
        }
        let end = self.cells.len() + cells.len();
        if end > limits::HOPS {
            return Err(ShapeError::new(place(), format!("more than {} hops", limits::HOPS)));
        }
        self.cells.extend_from_slice(cells);
        self.channels.extend_from_slice(channels);
        self.entered_by.push(LinkId::NONE);
        self.entered_by.extend_from_slice(links);
        self.heads.push(Head { connection, words, end: end as u32 });
        Ok(())
    }

    /// Gives the routes to other connections: `to` gets the row and the connection of each.
    pub fn rename(&mut self, to: impl Fn(usize, ConnectionId) -> ConnectionId) {
        for (row, head) in self.heads.iter_mut().enumerate() {
            head.connection = to(row, head.connection);
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Route number `row`.
    pub fn get(&self, row: usize) -> RouteRef<'_> {
        let Head { connection, words, end } = self.heads[row];
        let start = if row == 0 { 0 } else { self.heads[row - 1].end as usize };
        let end = end as usize;
        RouteRef {
            connection,
            words,
            cells: &self.cells[start..end],
            channels: &self.channels[start..end],
            entered_by: &self.entered_by[start..end],
        }
    }

    /// The routes in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RouteRef<'_>> + Clone {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// A connection set divided into phases, each with its routes. Carries the set and the machine.
/// Never changes once built, so a clone shares everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    machine: Arc<Machine>,
    set: Arc<ConnectionSet>,
    phases: Arc<Vec<PhaseRoutes>>,
}

impl Routing {
    /// Puts phases to a set and a machine.
    ///
    /// # Errors
    /// A set whose ends are not the machine's, a route that names a connection or cell that is
    /// not there, more phases than the limit.
    pub fn new(
        machine: Arc<Machine>,
        set: Arc<ConnectionSet>,
        phases: Vec<PhaseRoutes>,
    ) -> Result<Self, ShapeError> {
        set.check_machine(&machine)?;
        if phases.len() > limits::PHASES {
            return Err(ShapeError::new(
                "phases",
                format!("{} phases, at most {}", phases.len(), limits::PHASES),
            ));
        }
        for (p, phase) in phases.iter().enumerate() {
            for (r, route) in phase.iter().enumerate() {
                let place = |part: &str| format!("phases[{p}].routes[{r}].{part}");
                if route.connection.index() >= set.len() {
                    return Err(ShapeError::new(
                        place("connection"),
                        format!(
                            "{} is not one of the set's {} connections",
                            route.connection,
                            set.len()
                        ),
                    ));
                }
                if let Some(cell) = route.cells.iter().find(|c| c.index() >= machine.cell_count()) {
                    return Err(ShapeError::new(
                        place("cells"),
                        format!("{cell} is not one of the machine's {}", machine.cell_count()),
                    ));
                }
                let known = |l: &LinkId| *l == LinkId::NONE || l.index() < machine.link_count();
                if let Some(link) = route.links().iter().find(|l| !known(l)) {
                    return Err(ShapeError::new(
                        place("links"),
                        format!("{link} is not one of the machine's {}", machine.link_count()),
                    ));
                }
            }
        }
        Ok(Self { machine, set, phases: Arc::new(phases) })
    }

    /// The machine it is for.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The set it divides.
    pub fn set(&self) -> &Arc<ConnectionSet> {
        &self.set
    }

    /// The phases in the order of execution.
    pub fn phases(&self) -> &[PhaseRoutes] {
        &self.phases
    }

    /// The phases with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (PhaseId, &PhaseRoutes)> {
        self.phases.iter().enumerate().map(|(row, phase)| (PhaseId(row as u32), phase))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Connection;

    #[test]
    fn routes_come_back_as_they_were_pushed() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 7)]).unwrap();
        let mut phase = PhaseRoutes::new();
        let cells = [CellId(0), CellId(1), CellId(2)];
        let links: Vec<LinkId> =
            cells.windows(2).map(|w| machine.links_between(w[0], w[1]).next().unwrap()).collect();
        let channels = [ChannelId(0), ChannelId(1), ChannelId(0)];
        phase.push(ConnectionId(0), 3, &cells, &links, &channels).unwrap();
        phase.push(ConnectionId(0), 4, &cells[..1], &[], &channels[..1]).unwrap();
        assert!(phase.push(ConnectionId(0), 4, &cells, &links, &channels[..1]).is_err());
        assert!(phase.push(ConnectionId(0), 4, &[], &[], &[]).is_err());
        let routing = Routing::new(machine, Arc::new(set), vec![phase]).unwrap();
        let route = routing.phases()[0].get(0);
        assert_eq!((route.cells, route.links(), route.hops()), (&cells[..], &links[..], 2));
        assert_eq!(routing.phases()[0].get(1).cells, &cells[..1]);
        let mut renamed = routing.phases()[0].clone();
        renamed.rename(|row, id| ConnectionId(id.0 + 3 * row as u32));
        let ids: Vec<u32> = renamed.iter().map(|route| route.connection.0).collect();
        assert_eq!((ids, renamed.get(1).cells), (vec![0, 3], &cells[..1]));
    }

    #[test]
    fn ids_out_of_range_are_refused() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let set = Arc::new(
            ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 7)]).unwrap(),
        );
        let mut phase = PhaseRoutes::new();
        phase.push(ConnectionId(1), 3, &[CellId(0)], &[], &[ChannelId(0)]).unwrap();
        assert!(Routing::new(machine.clone(), set.clone(), vec![phase]).is_err());
        let mut phase = PhaseRoutes::new();
        phase.push(ConnectionId(0), 3, &[CellId(4)], &[], &[ChannelId(0)]).unwrap();
        assert!(Routing::new(machine, set, vec![phase]).is_err());
    }
}
