//! Routings: the phases of a connection set and the routes in each phase.
//!
//! A route is the chain of logical channels that carries a connection, or a part of its words. It is
//! stored as three parallel lists: the cells in order, the channel used on each cell, and the link
//! over which each cell is entered (`LinkId::NONE` for the first). All routes of a phase are in
//! flat arrays, because all-to-all on 32x32 cells has a million routes of seventeen cells.
//!
//! Constructors check the shape only. A routing from a file may have consecutive cells that are not
//! neighbours (their link is then `LinkId::NONE`) or channels that the cell does not have; the
//! checker refuses it.

use std::sync::Arc;

use crate::convert::{index, to_u32};
use crate::error::ShapeError;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId, PhaseId};
use crate::limits;
use crate::machine::Machine;
use crate::set::ConnectionSet;

/// A route of a phase, borrowed.
///
/// The fields are public to read. Only [`PhaseRoutes`] makes such a view, so its lists always have
/// matching lengths, and new fields break no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRef<'a> {
    /// The connection.
    pub connection: ConnectionId,
    /// Number of words on this route: all words of the connection, or a part.
    pub words: u32,
    /// The cells in order, at least one.
    pub cells: &'a [CellId],
    /// The channel on each cell.
    pub channels: &'a [ChannelId],
    entered_by: &'a [LinkId],
}

impl<'a> RouteRef<'a> {
    /// The links in order, one fewer than cells. Link `i` joins `cells[i]` to `cells[i + 1]`; it is
    /// `LinkId::NONE` if no live link does.
    pub fn links(&self) -> &'a [LinkId] {
        &self.entered_by[1..]
    }

    /// Number of links.
    pub fn hops(&self) -> usize {
        self.cells.len() - 1
    }
}

/// The routes of one phase.
///
/// ```
/// use conset_ir::{CellId, ChannelId, ConnectionId, LinkFinder, LinkId, Machine, PhaseRoutes};
///
/// let machine = Machine::from_spec("torus:4x4")?;
/// let cells = [CellId(0), CellId(1), CellId(5)];
/// let links: Vec<LinkId> = LinkFinder::new(&machine).along(&cells).collect();
/// let mut phase = PhaseRoutes::new();
/// phase.push(ConnectionId(0), 133, &cells, &links, &[ChannelId(0); 3])?;
/// assert_eq!(phase.get(0).hops(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseRoutes {
    heads: Vec<RouteHead>,
    cells: Vec<CellId>,
    channels: Vec<ChannelId>,
    entered_by: Vec<LinkId>,
}

/// A route without its lists, and where these end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RouteHead {
    connection: ConnectionId,
    words: u32,
    end: u32,
}

/// The lists of a route under construction; readers reuse the memory for all routes.
#[derive(Default)]
pub(crate) struct RouteBuffer {
    pub(crate) cells: Vec<CellId>,
    pub(crate) channels: Vec<ChannelId>,
    pub(crate) links: Vec<LinkId>,
}

impl RouteBuffer {
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.channels.clear();
        self.links.clear();
    }
}

impl PhaseRoutes {
    /// A phase without routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route over the given links, one fewer than cells (`LinkId::NONE` if no link joins two
    /// cells).
    ///
    /// # Errors
    /// No cells, lists whose lengths do not match, or more hops in the phase than the limit.
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
        self.heads.push(RouteHead { connection, words, end: to_u32(end) });
        Ok(())
    }

    /// Changes the connections of all routes: `to` maps the row and the connection of a route to
    /// its new connection.
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
    ///
    /// # Panics
    /// If there is no such route.
    pub fn get(&self, row: usize) -> RouteRef<'_> {
        let RouteHead { connection, words, end } = self.heads[row];
        let start = if row == 0 { 0 } else { index(self.heads[row - 1].end) };
        let end = index(end);
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

/// A connection set divided into phases, each with its routes. It holds the set and the machine.
/// It is immutable, so a clone shares all data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    machine: Arc<Machine>,
    set: Arc<ConnectionSet>,
    phases: Arc<Vec<PhaseRoutes>>,
}

impl Routing {
    /// The phases of a set on a machine.
    ///
    /// # Errors
    /// A connection whose end is not a live cell of the machine with an agent, a route with a
    /// connection, cell or link that does not exist, or more phases than the limit.
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

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The connection set.
    pub fn set(&self) -> &Arc<ConnectionSet> {
        &self.set
    }

    /// The phases in the order of execution.
    pub fn phases(&self) -> &[PhaseRoutes] {
        &self.phases
    }

    /// The phases with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (PhaseId, &PhaseRoutes)> {
        self.phases.iter().enumerate().map(|(row, phase)| (PhaseId::from_index(row), phase))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Connection;

    #[test]
    fn pushed_routes_can_be_read() {
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
        renamed.rename(|row, id| ConnectionId(id.0 + 3 * to_u32(row)));
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
