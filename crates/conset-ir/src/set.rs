//! Connections, connection sets and programs: the input of the compiler.
//!
//! A connection set is the communication of one building block of an application (a halo exchange,
//! a transpose, a reduction). A program is a sequence of named sets.

use std::sync::Arc;

use crate::convert::{index, to_u64};
use crate::error::ShapeError;
use crate::ids::{CellId, ConnectionId};
use crate::limits;
use crate::lists::Lists;
use crate::machine::Machine;

/// A number of words to send from one cell to another (paper, Principle 2.1).
///
/// A record with public fields, one row of a file. [`ConnectionSet::new`] checks the values.
///
/// ```
/// use conset_ir::{CellId, Connection};
///
/// let east = Connection {
///     name: Some("east".into()),
///     max_latency: Some(400),
///     ..Connection::new(CellId(3), CellId(4), 133)
/// };
/// assert!(east.has_requirements());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The sending cell.
    pub source: CellId,
    /// The receiving cell. It may be the source, which then sends to itself over one channel.
    pub target: CellId,
    /// Words in one execution of the set, at least 1.
    pub words: u32,
    /// The required bandwidth while the phase of the connection is active, in words per 1000
    /// clocks.
    pub min_bandwidth: Option<u32>,
    /// The longest permitted time of a word from injection to delivery while the phase of the
    /// connection is active, in clocks.
    pub max_latency: Option<u32>,
    /// A name that programs can use instead of the id.
    pub name: Option<Box<str>>,
}

impl Connection {
    /// A connection without requirements and without a name.
    pub fn new(source: CellId, target: CellId, words: u32) -> Self {
        Self { source, target, words, min_bandwidth: None, max_latency: None, name: None }
    }

    /// Whether the connection requires a bandwidth or a latency.
    pub fn has_requirements(&self) -> bool {
        self.min_bandwidth.is_some() || self.max_latency.is_some()
    }
}

/// The mesh nodes of each connection: word `i` of connection `x` is the value of node
/// `lists.of(x)[i]`. Both ends of a connection pack and unpack in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLists(Lists);

impl NodeLists {
    /// Lists in the order of the connections.
    ///
    /// # Panics
    /// If there are 2^32 nodes or more, which [`limits::NODES`] rules out.
    pub fn from_lists<'a>(lists: impl IntoIterator<Item = &'a [u32]>) -> Self {
        Self(Lists::from_rows(lists))
    }

    /// The nodes of a connection.
    ///
    /// # Panics
    /// If there is no list for the connection.
    pub fn of(&self, connection: ConnectionId) -> &[u32] {
        self.0.of(connection.0)
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        index(self.0.rows())
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A named set of connections with a partial order.
///
/// ```
/// use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet};
///
/// let connections = vec![
///     Connection::new(CellId(0), CellId(1), 100),
///     Connection::new(CellId(1), CellId(2), 100),
/// ];
/// let set = ConnectionSet::new("pipeline", connections)?
///     .with_order(vec![(ConnectionId(0), ConnectionId(1))])?;
/// assert_eq!((set.len(), set.words()), (2, 200));
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSet {
    name: String,
    connections: Vec<Connection>,
    order: Vec<(ConnectionId, ConnectionId)>,
    nodes: Option<NodeLists>,
}

impl ConnectionSet {
    /// A set without an order. The id of a connection is its position in the vector.
    ///
    /// # Errors
    /// A name with characters other than letters, digits, `_`, `-` and `.`, a connection without
    /// words or with too many, two connections of the same name, or more connections than the
    /// limit.
    pub fn new(name: impl Into<String>, connections: Vec<Connection>) -> Result<Self, ShapeError> {
        let name = name.into();
        check_name("name", &name)?;
        if connections.len() > limits::CONNECTIONS {
            return Err(ShapeError::new(
                "connections",
                format!("{} connections, at most {}", connections.len(), limits::CONNECTIONS),
            ));
        }
        for (row, connection) in connections.iter().enumerate() {
            let place = |part: &str| format!("connections[{row}].{part}");
            if connection.words == 0 || connection.words > limits::WORDS {
                return Err(ShapeError::new(
                    place("words"),
                    format!("{} words, expected 1 to {}", connection.words, limits::WORDS),
                ));
            }
            for cell in [connection.source, connection.target] {
                if cell.index() >= limits::CELLS {
                    return Err(ShapeError::new(
                        format!("connections[{row}]"),
                        format!("{cell} is beyond the limit of {} cells", limits::CELLS),
                    ));
                }
            }
            if connection.min_bandwidth == Some(0) || connection.max_latency == Some(0) {
                return Err(ShapeError::new(
                    format!("connections[{row}]"),
                    "a required bandwidth or latency is at least 1; leave it out for none",
                ));
            }
            if let Some(name) = &connection.name {
                check_name(&place("name"), name)?;
            }
        }
        let mut names: Vec<(&str, usize)> = connections
            .iter()
            .enumerate()
            .filter_map(|(row, c)| c.name.as_deref().map(|name| (name, row)))
            .collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ShapeError::new(
                format!("connections[{}].name", pair[1].1),
                format!("`{}` is already the name of x{}", pair[1].0, pair[0].1),
            ));
        }
        Ok(Self { name, connections, order: Vec::new(), nodes: None })
    }

    /// Adds a partial order: in each pair, the first connection ends before the second starts.
    ///
    /// # Errors
    /// An id that is not in the set, a cycle (the message lists it), or more pairs than the limit.
    pub fn with_order(
        mut self,
        mut order: Vec<(ConnectionId, ConnectionId)>,
    ) -> Result<Self, ShapeError> {
        if order.len() > limits::ORDERS {
            return Err(ShapeError::new(
                "order",
                format!("{} ordering constraints, at most {}", order.len(), limits::ORDERS),
            ));
        }
        let count = self.connections.len();
        for (row, &(before, after)) in order.iter().enumerate() {
            for id in [before, after] {
                if id.index() >= count {
                    return Err(ShapeError::new(
                        format!("order[{row}]"),
                        format!("{id} is not one of the set's {count} connections"),
                    ));
                }
            }
        }
        order.sort_unstable();
        order.dedup();
        if let Some(cycle) = find_cycle(count, &order) {
            let shown: Vec<String> = cycle.iter().take(8).map(ToString::to_string).collect();
            return Err(ShapeError::new(
                "order",
                format!("the order is a cycle: {} ...", shown.join(" before ")),
            ));
        }
        self.order = order;
        Ok(self)
    }

    /// Adds the mesh nodes of each connection. A set without connections keeps no lists, so that
    /// every format on disk restores an equal value.
    ///
    /// # Errors
    /// Another number of lists than connections, or a list whose length is not the number of words
    /// of its connection.
    pub fn with_nodes(mut self, nodes: NodeLists) -> Result<Self, ShapeError> {
        if nodes.len() != self.connections.len() {
            return Err(ShapeError::new(
                "nodes",
                format!("{} lists for {} connections", nodes.len(), self.connections.len()),
            ));
        }
        for (id, connection) in self.iter() {
            if nodes.of(id).len() != index(connection.words) {
                return Err(ShapeError::new(
                    format!("connections[{}].nodes", id.0),
                    format!("{} nodes for {} words", nodes.of(id).len(), connection.words),
                ));
            }
        }
        self.nodes = if self.is_empty() { None } else { Some(nodes) };
        Ok(self)
    }

    /// The same set with its cells renumbered: `place[cell]` replaces `cell`.
    ///
    /// # Errors
    /// A cell that `place` does not cover.
    pub fn placed(mut self, place: &[CellId]) -> Result<Self, ShapeError> {
        for (row, connection) in self.connections.iter_mut().enumerate() {
            for cell in [&mut connection.source, &mut connection.target] {
                *cell = *place.get(cell.index()).ok_or_else(|| {
                    ShapeError::new(format!("connections[{row}]"), format!("{cell} has no place"))
                })?;
            }
        }
        Ok(self)
    }

    /// An upper limit of the clocks of all connections, executed one after the other, each in its
    /// own phase or as a message, over as many links as the machine has cells.
    fn serial_clocks(&self, machine: &Machine) -> u128 {
        let p = machine.parameters();
        let (access, link) =
            (u64::from(p.access_clocks_per_word), u64::from(p.link_clocks_per_word));
        let message = u64::from(p.c_send) + u64::from(p.c_receive);
        let latency = to_u64(machine.cell_count()) * link + 2 * access;
        let once = p.switch_clocks() + 2 * u64::from(p.stream_setup) + message + latency;
        // An agent that sends to itself alternates between sending and receiving.
        let word = u128::from((2 * access).max(link));
        let count = to_u64(self.len());
        let words = self.words() + count * u64::from(p.message_extra_words);
        word * u128::from(words) + u128::from(once) * u128::from(count)
    }

    /// Checks that both ends of every connection are live cells of the machine with an agent.
    ///
    /// # Errors
    /// The first connection with another end.
    pub fn check_machine(&self, machine: &Machine) -> Result<(), ShapeError> {
        for (id, connection) in self.iter() {
            for (end, cell) in [("source", connection.source), ("target", connection.target)] {
                let Some(why) = why_no_end(machine, cell) else { continue };
                return Err(ShapeError::new(
                    format!("connections[{}].{end}", id.0),
                    format!("{cell} cannot be an end of {id}: {why}"),
                ));
            }
        }
        Ok(())
    }

    /// The name of the set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The connections; the id of each is its row.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// One connection.
    #[inline]
    pub fn get(&self, id: ConnectionId) -> &Connection {
        &self.connections[id.index()]
    }

    /// The connections with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ConnectionId, &Connection)> + Clone {
        self.connections.iter().enumerate().map(|(row, c)| (ConnectionId::from_index(row), c))
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// The total number of words.
    pub fn words(&self) -> u64 {
        self.connections.iter().map(|c| u64::from(c.words)).sum()
    }

    /// Whether any connection requires a bandwidth or a latency.
    pub fn has_requirements(&self) -> bool {
        self.connections.iter().any(Connection::has_requirements)
    }

    /// Pairs `(before, after)`, sorted; acyclic.
    pub fn order(&self) -> &[(ConnectionId, ConnectionId)] {
        &self.order
    }

    /// The mesh nodes of each connection, if known.
    pub fn nodes(&self) -> Option<&NodeLists> {
        self.nodes.as_ref()
    }
}

/// A sequence of connection sets with different names, in the order of execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    sets: Vec<Arc<ConnectionSet>>,
}

impl Program {
    /// A program of several sets.
    ///
    /// # Errors
    /// Two sets of the same name, or more sets than the limit.
    pub fn new(sets: Vec<Arc<ConnectionSet>>) -> Result<Self, ShapeError> {
        if sets.len() > limits::SETS {
            return Err(ShapeError::new(
                "sets",
                format!("{} sets, at most {}", sets.len(), limits::SETS),
            ));
        }
        let mut names: Vec<(&str, usize)> =
            sets.iter().enumerate().map(|(row, set)| (set.name(), row)).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ShapeError::new(
                format!("sets[{}].name", pair[1].1),
                format!("`{}` is already the name of set {}", pair[1].0, pair[0].1),
            ));
        }
        Ok(Self { sets })
    }

    /// The sets, in the order of execution.
    pub fn sets(&self) -> &[Arc<ConnectionSet>] {
        &self.sets
    }

    /// Checks that the program would take at most [`limits::SERIAL_TIME`] on a machine if its
    /// connections were executed one after the other. Stages rely on this when they add up clocks.
    ///
    /// # Errors
    /// The first set at which the limit is exceeded.
    pub fn check_clocks(&self, machine: &Machine) -> Result<(), ShapeError> {
        let mut clocks = 0;
        for (row, set) in self.sets.iter().enumerate() {
            clocks += set.serial_clocks(machine);
            if clocks > u128::from(limits::SERIAL_TIME) {
                return Err(ShapeError::new(
                    format!("sets[{row}]"),
                    format!(
                        "the words of set `{}` take {clocks} clocks one after the other, those of \
                         sets before it included; at most {} (fewer words, or fewer clocks for each)",
                        set.name(),
                        limits::SERIAL_TIME
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl From<ConnectionSet> for Program {
    fn from(set: ConnectionSet) -> Self {
        Self { sets: vec![Arc::new(set)] }
    }
}

/// Why a cell of the machine cannot be an end of a connection; `None` if it can.
pub(crate) fn why_no_end(machine: &Machine, cell: CellId) -> Option<String> {
    if cell.index() < machine.agent_count() && machine.is_endpoint(cell) {
        None
    } else if cell.index() >= machine.cell_count() {
        Some(format!("the machine has cells c0 to c{}", machine.agent_count() - 1))
    } else if cell.index() >= machine.agent_count() {
        Some("it is a switch, which has no agent".to_owned())
    } else {
        Some("it is marked dead".to_owned())
    }
}

/// Checks a name of the kind that the text form writes without quotes.
pub(crate) fn check_name(place: &str, name: &str) -> Result<(), ShapeError> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    if name.is_empty() || name.len() > limits::NAME || !name.bytes().all(legal) {
        return Err(ShapeError::new(
            place,
            format!(
                "`{}` is not a name; expected 1 to {} letters, digits, `_`, `-` or `.`",
                name.escape_debug().take(40).collect::<String>(),
                limits::NAME
            ),
        ));
    }
    Ok(())
}

/// A cycle of the relation `order` over `count` connections, if there is one: Kahn's algorithm,
/// then a backward walk among the connections that it could not order. O(count + pairs).
fn find_cycle(count: usize, order: &[(ConnectionId, ConnectionId)]) -> Option<Vec<ConnectionId>> {
    let mut waiting_for = vec![0u32; count];
    for &(_, after) in order {
        waiting_for[after.index()] += 1;
    }
    let successors = |id: usize| {
        let from = order.partition_point(|pair| pair.0.index() < id);
        order[from..].iter().take_while(move |pair| pair.0.index() == id).map(|pair| pair.1)
    };
    let mut ready: Vec<usize> = (0..count).filter(|&id| waiting_for[id] == 0).collect();
    let mut done = 0;
    while let Some(id) = ready.pop() {
        done += 1;
        for after in successors(id) {
            waiting_for[after.index()] -= 1;
            if waiting_for[after.index()] == 0 {
                ready.push(after.index());
            }
        }
    }
    if done == count {
        return None;
    }
    // Each remaining connection has a remaining predecessor, so the walk must reach one twice.
    let mut predecessor = vec![None; count];
    for &(before, after) in order {
        if waiting_for[before.index()] > 0 && waiting_for[after.index()] > 0 {
            predecessor[after.index()] = Some(before);
        }
    }
    let start = (0..count).find(|&id| waiting_for[id] > 0)?;
    let mut seen = vec![false; count];
    let mut at = ConnectionId::from_index(start);
    while !seen[at.index()] {
        seen[at.index()] = true;
        at = predecessor[at.index()]?;
    }
    let mut cycle = vec![at];
    let mut back = predecessor[at.index()]?;
    while back != at {
        cycle.push(back);
        back = predecessor[back.index()]?;
    }
    cycle.push(at);
    cycle.reverse();
    Some(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(n: u32) -> ConnectionSet {
        let connections =
            (0..n).map(|i| Connection::new(CellId(i), CellId((i + 1) % n), 5)).collect();
        ConnectionSet::new("chain", connections).unwrap()
    }

    #[test]
    fn a_cycle_is_refused_and_listed() {
        let x = ConnectionId;
        let order = vec![(x(0), x(1)), (x(2), x(3)), (x(3), x(1)), (x(1), x(2))];
        let error = chain(4).with_order(order).unwrap_err();
        assert!(error.message.contains("x1 before x2 before x3 before x1"), "{error}");
        assert!(chain(4).with_order(vec![(x(2), x(2))]).is_err());
        assert!(chain(4).with_order(vec![(x(0), x(4))]).is_err());
        assert!(chain(4).with_order(vec![(x(0), x(1)), (x(0), x(2)), (x(1), x(2))]).is_ok());
    }

    #[test]
    fn invalid_sets_are_refused() {
        let c = |words| Connection::new(CellId(0), CellId(1), words);
        assert!(ConnectionSet::new("a", vec![c(0)]).is_err());
        assert!(ConnectionSet::new("a b", vec![c(1)]).is_err());
        let named = Connection { name: Some("up".into()), ..c(1) };
        assert!(ConnectionSet::new("a", vec![named.clone(), named]).is_err());
        let set = ConnectionSet::new("a", vec![c(2)]).unwrap();
        assert!(set.clone().with_nodes(NodeLists::from_lists([&[1u32][..]])).is_err());
        assert!(set.with_nodes(NodeLists::from_lists([&[1u32, 7][..]])).is_ok());
    }

    #[test]
    fn ends_must_be_live_agents() {
        let machine = Machine::from_spec("ring:4").unwrap();
        assert!(chain(4).check_machine(&machine).is_ok());
        assert!(chain(5).check_machine(&machine).is_err());
    }
}
