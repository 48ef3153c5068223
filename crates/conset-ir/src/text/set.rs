//! The parser of connection sets: connections and the order between them.
//!
//! ```text
//! set halo
//!   x0 "north" c3 -> c4 words 133 min_bandwidth 20 max_latency 400 nodes 4 7 9
//!   c3 -> c5 words 12
//!   order x0 before x1
//! ```
//!
//! The id of a connection defaults to its position among the connections of the set. The ids of a
//! set are 0 to n - 1 in any order.

use super::lexer::Token;
use super::parser::{Parser, row_in};
use crate::convert::index;
use crate::error::{Result, ShapeError};
use crate::ids::{CellId, ConnectionId};
use crate::limits;
use crate::machine::Machine;
use crate::rows::{order_of_ids, reorder};
use crate::set::{Connection, ConnectionSet, NodeLists, check_name, why_no_end};

const CELL: &str = "a cell such as c3";
const CONNECTION: &str = "a connection such as x0";
const OPTIONS: [&str; 4] = ["words", "min_bandwidth", "max_latency", "nodes"];

/// The lines that may follow the connections of a set, for error messages.
#[derive(Clone, Copy)]
pub(super) struct SetLines {
    what: &'static str,
    words: &'static [&'static str],
}

impl SetLines {
    pub(super) const PROGRAM: Self =
        Self { what: "a connection, `order` or `set`", words: &["order", "set"] };
    pub(super) const ROUTED: Self =
        Self { what: "a connection, `order` or `phase`", words: &["order", "phase"] };
    pub(super) const IMAGE: Self = Self {
        what: "a connection, `order`, `phase`, `steps` or `set`",
        words: &["order", "phase", "steps", "set"],
    };
    pub(super) const STEPS: Self = Self {
        what: "a connection, `order`, `step`, `bounds`, `predicted_clocks` or `set`",
        words: &["order", "step", "bounds", "predicted_clocks", "set"],
    };
    pub(super) const SCHEDULE: Self = Self {
        what: "a connection, `order`, `phase`, `bounds` or `predicted_clocks`",
        words: &["order", "phase", "bounds", "predicted_clocks"],
    };
}

/// The lines of a set in the order of the file.
#[derive(Default)]
struct SetRows {
    ids: Vec<ConnectionId>,
    connections: Vec<Connection>,
    starts: Vec<usize>,
    nodes: Vec<u32>,
    /// For each row, the end of its nodes; `None` if it has none.
    nodes_end: Vec<Option<usize>>,
    order: Vec<(ConnectionId, ConnectionId)>,
    order_starts: Vec<usize>,
}

impl Parser<'_> {
    /// `set NAME` and the lines of connections and order below it.
    pub(super) fn set(
        &mut self,
        machine: Option<&Machine>,
        after: SetLines,
    ) -> Result<ConnectionSet> {
        self.keyword("set")?;
        let start = self.lexer.start();
        let name = self.word("the set's name")?;
        check_name("name", name).map_err(|e| self.misshapen(start, e))?;
        self.end_of_line(&[])?;
        let mut rows = SetRows::default();
        loop {
            match self.lexer.token() {
                Token::Word("order") => self.order_line(&mut rows)?,
                Token::Word(word) if is_connection(word) => {
                    self.connection_line(machine, &mut rows)?;
                }
                Token::Quoted(_) => self.connection_line(machine, &mut rows)?,
                Token::EndOfFile => break,
                Token::Word(word) if after.words.contains(&word) || word == "set" => break,
                _ => return Err(self.expected_word(after.what, after.words)),
            }
        }
        self.build_set(name, start, rows)
    }

    /// `[xN] ["name"] cA -> cB words N [min_bandwidth N] [max_latency N] [nodes N ...]`
    fn connection_line(&mut self, machine: Option<&Machine>, rows: &mut SetRows) -> Result<()> {
        let start = self.lexer.start();
        let row = rows.connections.len();
        if row == limits::CONNECTIONS {
            let message = format!("more than {} connections in a set", limits::CONNECTIONS);
            return Err(self.error(start, message));
        }
        let id = match self.lexer.token() {
            Token::Word(word) if word.starts_with(ConnectionId::PREFIX) => {
                self.id(ConnectionId::parse, CONNECTION)?
            }
            _ => ConnectionId::from_index(row),
        };
        let name_start = self.lexer.start();
        let name = match self.lexer.token() {
            Token::Quoted(_) => Some(self.quoted("a name")?),
            _ => None,
        };
        if let Some(name) = &name {
            check_name("name", name).map_err(|e| self.misshapen(name_start, e))?;
        }
        let source = self.end_cell(machine)?;
        self.punctuation(Token::Arrow, "`->`")?;
        let target = self.end_cell(machine)?;
        let mut connection = Connection::new(source, target, 0);
        connection.name = name.map(Into::into);
        self.connection_options(&mut connection, rows)?;
        rows.ids.push(id);
        rows.connections.push(connection);
        rows.starts.push(start);
        Ok(())
    }

    /// The rest of the line of a connection: options in any order, each at most once; `words` is
    /// required.
    fn connection_options(
        &mut self,
        connection: &mut Connection,
        rows: &mut SetRows,
    ) -> Result<()> {
        let mut nodes: Option<(usize, usize)> = None;
        loop {
            let start = self.lexer.start();
            let twice = match self.lexer.token() {
                Token::Word("words") => connection.words != 0,
                Token::Word("min_bandwidth") => connection.min_bandwidth.is_some(),
                Token::Word("max_latency") => connection.max_latency.is_some(),
                Token::Word("nodes") => nodes.is_some(),
                _ => break,
            };
            let keyword = self.word("an option")?;
            if twice {
                return Err(self.error(start, format!("`{keyword}` is given twice")));
            }
            match keyword {
                "words" => {
                    connection.words = self.number32("a number of words", 1, limits::WORDS)?;
                }
                "min_bandwidth" => {
                    let rate = self.number32("a number of words per 1000 clocks", 1, u32::MAX)?;
                    connection.min_bandwidth = Some(rate);
                }
                "max_latency" => {
                    connection.max_latency =
                        Some(self.number32("a number of clocks", 1, u32::MAX)?);
                }
                _ => nodes = Some((start, self.node_list(rows)?)),
            }
        }
        if connection.words == 0 {
            return Err(self.expected_word("`words`", &OPTIONS));
        }
        if let Some((start, count)) = nodes
            && count != index(connection.words)
        {
            return Err(self.error(start, format!("{count} nodes for {} words", connection.words)));
        }
        rows.nodes_end.push(nodes.map(|_| rows.nodes.len()));
        self.end_of_line(&OPTIONS)
    }

    fn node_list(&mut self, rows: &mut SetRows) -> Result<usize> {
        let before = rows.nodes.len();
        while matches!(self.lexer.token(), Token::Word(word) if word.as_bytes()[0].is_ascii_digit())
        {
            if rows.nodes.len() == limits::NODES {
                let message = format!("more than {} nodes in a set", limits::NODES);
                return Err(self.error(self.lexer.start(), message));
            }
            rows.nodes.push(self.number32("a node", 0, u32::MAX)?);
        }
        Ok(rows.nodes.len() - before)
    }

    /// A cell that can be an end of a connection.
    fn end_cell(&mut self, machine: Option<&Machine>) -> Result<CellId> {
        let start = self.lexer.start();
        let cell = self.id(CellId::parse, CELL)?;
        let why = match machine {
            Some(machine) => why_no_end(machine, cell),
            None if cell.index() < limits::CELLS => None,
            None => Some(format!("machines have at most {} cells", limits::CELLS)),
        };
        match why {
            None => Ok(cell),
            Some(why) => {
                Err(self.error(start, format!("{cell} cannot be an end of a connection: {why}")))
            }
        }
    }

    /// `order xA before xB [before xC ...]`
    fn order_line(&mut self, rows: &mut SetRows) -> Result<()> {
        self.keyword("order")?;
        let mut start = self.lexer.start();
        let mut before = self.id(ConnectionId::parse, CONNECTION)?;
        if !self.is("before") {
            return Err(self.expected_word("`before`", &["before"]));
        }
        while self.eat("before") {
            let next = self.lexer.start();
            let after = self.id(ConnectionId::parse, CONNECTION)?;
            if rows.order.len() == limits::ORDERS {
                let message = format!("more than {} ordering constraints", limits::ORDERS);
                return Err(self.error(next, message));
            }
            rows.order.push((before, after));
            rows.order_starts.push(start);
            (before, start) = (after, next);
        }
        self.end_of_line(&["before"])
    }

    fn build_set(&self, name: &str, start: usize, rows: SetRows) -> Result<ConnectionSet> {
        let SetRows { ids, mut connections, mut starts, nodes, nodes_end, order, order_starts } =
            rows;
        let places = order_of_ids(&ids).map_err(|bad| self.error(starts[bad.row], bad.message))?;
        let count = connections.len();
        if let Some(row) = order.iter().position(|pair| pair.0.index().max(pair.1.index()) >= count)
        {
            let wrong = if order[row].0.index() >= count { order[row].0 } else { order[row].1 };
            let message = format!("{wrong} is not one of the set's {count} connections");
            return Err(self.error(order_starts[row], message));
        }
        let lists = self.node_lists(&nodes, &nodes_end, places.as_deref(), &starts)?;
        connections = reorder(connections, places.as_deref());
        starts = reorder(starts, places.as_deref());
        let wrong = |e: ShapeError| {
            let row = row_in(&e.place, "connections[").and_then(|row| starts.get(row));
            let at = match (row, order_starts.first()) {
                (Some(&at), _) => at,
                (None, Some(&at)) if e.place.starts_with("order") => at,
                _ => start,
            };
            self.misshapen(at, e)
        };
        let set = ConnectionSet::new(name, connections).map_err(wrong)?;
        let set = set.with_order(order).map_err(wrong)?;
        match lists {
            Some(lists) => set.with_nodes(lists).map_err(wrong),
            None => Ok(set),
        }
    }

    /// The lists of nodes in the order of the ids; either all connections have one or none has.
    fn node_lists(
        &self,
        nodes: &[u32],
        ends: &[Option<usize>],
        places: Option<&[u32]>,
        starts: &[usize],
    ) -> Result<Option<NodeLists>> {
        if ends.iter().all(Option::is_none) {
            return Ok(None);
        }
        if let Some(row) = ends.iter().position(Option::is_none) {
            let message = "expected `nodes`, which other connections of the set have";
            return Err(self.error(starts[row], message));
        }
        let ends: Vec<usize> = ends.iter().copied().flatten().collect();
        let list = |row: usize| {
            let from = if row == 0 { 0 } else { ends[row - 1] };
            &nodes[from..ends[row]]
        };
        Ok(Some(match places {
            None => NodeLists::from_lists((0..ends.len()).map(list)),
            Some(places) => NodeLists::from_lists(places.iter().map(|&row| list(index(row)))),
        }))
    }
}

/// Whether a line that starts with this word is a connection: `x` or `c` and a digit.
fn is_connection(word: &str) -> bool {
    let mut bytes = word.bytes();
    matches!(bytes.next(), Some(b'x' | b'c')) && bytes.next().is_some_and(|b| b.is_ascii_digit())
}
