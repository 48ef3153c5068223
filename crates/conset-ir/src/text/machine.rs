//! The parser of machine blocks: a base specification, and lines that change it.
//!
//! ```text
//! machine iwarp:4x4          # a preset with its sizes
//!   name "my machine"
//!   channels_per_cell 20     # any parameter of the machine model
//!   duplex half
//!   dead_cell c5
//!   dead_link c3 -> c4
//! machine graph:3+1          # any graph: 3 cells and 1 switch, which is c3
//!   link c0 -> c3
//! ```
//!
//! A line that starts with another word ends the block.

use std::borrow::Cow;
use std::sync::Arc;

use super::lexer::Token;
use super::parser::{DocumentKind, Parser};
use crate::convert::index;
use crate::error::{InputError, Result, ShapeError, SpecError};
use crate::ids::{CellId, LinkId};
use crate::limits;
use crate::links::LinkFinder;
use crate::machine::{Machine, Parameters, Protocol};
use crate::topology::Topology;

/// The keywords of lines that are not numeric parameters.
const OTHER_LINES: [&str; 6] = ["name", "duplex", "protocol", "dead_cell", "dead_link", "link"];

/// The values of a machine block, and their offsets for error messages.
struct MachineBlock {
    start: usize,
    name: String,
    topology: Topology,
    parameters: Parameters,
    given: Vec<&'static str>,
    dead_cells: Vec<(CellId, usize)>,
    dead_links: Vec<(CellId, CellId, usize)>,
}

impl Parser<'_> {
    /// The machine block, if the file has one.
    pub(super) fn machine_block(&mut self, kind: DocumentKind) -> Result<Option<Arc<Machine>>> {
        if !self.is("machine") {
            return match (kind, self.lexer.token()) {
                (DocumentKind::Set, Token::EndOfFile) => Ok(None),
                (DocumentKind::Set, _) if self.is("set") => Ok(None),
                (DocumentKind::Set, _) => {
                    Err(self.expected_word("`machine` or `set`", &["machine", "set"]))
                }
                _ => Err(self.expected_word("`machine`", &["machine"])),
            };
        }
        self.lexer.advance();
        let mut block = self.machine_spec()?;
        self.end_of_line(&[])?;
        while self.machine_line(&mut block)? {}
        self.after_block(kind)?;
        self.build_machine(block).map(|machine| Some(Arc::new(machine)))
    }

    /// Checks that the line after the block may follow it. If not, it is probably a misspelt
    /// parameter.
    fn after_block(&self, kind: DocumentKind) -> Result<()> {
        let follow: &[&str] = match kind {
            DocumentKind::Machine => &[],
            DocumentKind::Schedule | DocumentKind::Steps => &["origin", "digest", "parts", "set"],
            _ => &["set"],
        };
        if self.lexer.token() == Token::EndOfFile || follow.iter().any(|word| self.is(word)) {
            return Ok(());
        }
        let mut what = "a parameter of the machine".to_owned();
        for word in follow {
            what.push_str(&format!(" or `{word}`"));
        }
        let numbers = Parameters::iwarp().numbers();
        let known: Vec<&str> = numbers
            .iter()
            .map(|row| row.0)
            .chain(OTHER_LINES)
            .chain(follow.iter().copied())
            .collect();
        Err(self.expected_word(&what, &known))
    }

    fn machine_spec(&mut self) -> Result<MachineBlock> {
        let start = self.lexer.start();
        let mut spec = Cow::Borrowed(self.word("a preset such as iwarp:8x8, or graph:N")?);
        if self.lexer.token() == Token::Slash {
            self.lexer.advance();
            let parents = self.word("the parents of each level, such as 2.2.2.4")?;
            spec = format!("{spec}/{parents}").into();
        }
        let (name, topology, parameters) = match graph_sizes(&spec) {
            Some(Some((cells, switches))) => {
                let topology = Topology::Graph { cells, switches, links: Vec::new() };
                ("graph".to_owned(), topology, Parameters::iwarp())
            }
            Some(None) => {
                return Err(self
                    .error(start, "expected the number of cells after `graph`")
                    .help("write graph:5, or graph:5+2 for 5 cells and 2 switches"));
            }
            None => {
                let machine = Machine::from_spec(&spec).map_err(|error| {
                    let unknown = matches!(error, SpecError::UnknownPreset { .. });
                    let InputError { message, mut help, .. } = InputError::from(error);
                    if let Some(help) = help.as_mut().filter(|_| unknown) {
                        help.push_str(", graph; pass a machine file separately");
                    }
                    InputError { help, ..self.error(start, message) }
                })?;
                (
                    machine.name().to_owned(),
                    machine.topology().clone(),
                    machine.parameters().clone(),
                )
            }
        };
        Ok(MachineBlock {
            start,
            name,
            topology,
            parameters,
            given: Vec::new(),
            dead_cells: Vec::new(),
            dead_links: Vec::new(),
        })
    }

    /// Parses a line of the block; `false` if the line does not belong to the block.
    fn machine_line(&mut self, block: &mut MachineBlock) -> Result<bool> {
        let start = self.lexer.start();
        let numbers = Parameters::iwarp().numbers();
        let number = numbers.iter().find(|row| self.is(row.0));
        let other = OTHER_LINES.into_iter().find(|word| self.is(word));
        let Some(keyword) = number.map(|row| row.0).or(other) else { return Ok(false) };
        if number.is_some() || matches!(keyword, "name" | "duplex" | "protocol") {
            if block.given.contains(&keyword) {
                return Err(self.error(start, format!("`{keyword}` is given twice")));
            }
            block.given.push(keyword);
        }
        self.lexer.advance();
        if let Some(&(keyword, _, least, most)) = number {
            let value = self.number32("a number", least, most)?;
            self.set_parameter(block, start, keyword, &value.to_string())?;
        } else {
            self.other_line(block, start, keyword)?;
        }
        self.end_of_line(&[])?;
        Ok(true)
    }

    fn other_line(
        &mut self,
        block: &mut MachineBlock,
        start: usize,
        keyword: &'static str,
    ) -> Result<()> {
        const CELL: &str = "a cell such as c3";
        match keyword {
            "name" => block.name = self.quoted("the machine's name in quotes")?,
            "duplex" => {
                let Some(value) = ["full", "half"].into_iter().find(|word| self.eat(word)) else {
                    return Err(self.expected_word("full or half", &["full", "half"]));
                };
                self.set_parameter(block, start, keyword, value)?;
            }
            "protocol" => {
                let known = Protocol::ALL.map(|row| row.0);
                let Some(value) = known.into_iter().find(|word| self.eat(word)) else {
                    return Err(self.expected_word("standing, rendezvous or pool", &known));
                };
                self.set_parameter(block, start, keyword, value)?;
            }
            "dead_cell" => {
                let at = self.lexer.start();
                block.dead_cells.push((self.id(CellId::parse, CELL)?, at));
            }
            "dead_link" => {
                let at = self.lexer.start();
                let from = self.id(CellId::parse, CELL)?;
                self.punctuation(Token::Arrow, "`->`")?;
                block.dead_links.push((from, self.id(CellId::parse, CELL)?, at));
            }
            _ => self.link_line(block, start)?,
        }
        Ok(())
    }

    fn set_parameter(
        &self,
        block: &mut MachineBlock,
        start: usize,
        name: &str,
        value: &str,
    ) -> Result<()> {
        block.parameters.set(name, value).map_err(|e| self.error(start, e.message))
    }

    /// `link c0 -> c1`, of a graph.
    fn link_line(&mut self, block: &mut MachineBlock, start: usize) -> Result<()> {
        let Topology::Graph { cells, switches, links } = &mut block.topology else {
            let spec = block.topology.to_string();
            return Err(self
                .error(start, format!("the links of {spec} cannot be listed"))
                .help("only `machine graph:N` has `link` lines"));
        };
        let count = index(*cells) + index(*switches);
        if links.len() == limits::LINKS {
            return Err(self.error(start, format!("more than {} links", limits::LINKS)));
        }
        let from = self.id_below(CellId::parse, CellId::index, count, "a cell")?;
        self.punctuation(Token::Arrow, "`->`")?;
        let at = self.lexer.start();
        let to = self.id_below(CellId::parse, CellId::index, count, "a cell")?;
        if from == to {
            return Err(self.error(at, format!("a link cannot join {from} to itself")));
        }
        links.push((from.0, to.0));
        Ok(())
    }

    fn build_machine(&self, block: MachineBlock) -> Result<Machine> {
        let MachineBlock { start, name, topology, parameters, dead_cells, dead_links, .. } = block;
        let wrong = |e: ShapeError| self.misshapen(start, e);
        let whole = Machine::new(name, topology, parameters, vec![], vec![]).map_err(wrong)?;
        if dead_cells.is_empty() && dead_links.is_empty() {
            return Ok(whole);
        }
        let there = |cell: CellId, at: usize| {
            if cell.index() < whole.cell_count() {
                return Ok(());
            }
            let message =
                format!("{cell} is not one of the machine's {} cells", whole.cell_count());
            Err(self.error(at, message))
        };
        let finder = LinkFinder::new(&whole);
        for &(cell, at) in &dead_cells {
            there(cell, at)?;
        }
        for &(from, to, at) in &dead_links {
            there(from, at)?;
            if finder.default_link(from, to) == LinkId::NONE {
                return Err(self.error(at, format!("no link joins {from} to {to}")));
            }
        }
        Machine::new(
            whole.name(),
            whole.topology().clone(),
            whole.parameters().clone(),
            dead_cells.into_iter().map(|row| row.0).collect(),
            dead_links.into_iter().map(|row| (row.0, row.1)).collect(),
        )
        .map_err(wrong)
    }
}

/// The sizes of `graph:5` or `graph:5+2`; `None` if it is no graph, `Some(None)` if it is one
/// without sizes.
fn graph_sizes(spec: &str) -> Option<Option<(u32, u32)>> {
    let sizes = spec.strip_prefix("graph")?;
    if !sizes.is_empty() && !sizes.starts_with(':') {
        return None;
    }
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?;
    let sizes = sizes.strip_prefix(':').unwrap_or(sizes);
    let (cells, switches) = sizes.split_once('+').unwrap_or((sizes, "0"));
    Some(plain(cells).zip(plain(switches)))
}
