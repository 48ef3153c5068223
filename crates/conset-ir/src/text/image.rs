//! The parser of images: the forwarding table and operation list of each cell in each phase.
//!
//! ```text
//!   phase p0
//!     cell c3
//!       ch0 from x0 to c4/ch5          # the agent injects x0; its words go on to channel 5 of c4
//!       ch1 from c2 to l7/ch3          # a link may be named by its id
//!       send x0 ch0 words 133 start 0
//!     cell c4
//!       ch5 from c3 to x0
//!       receive x0 ch5 words 133 start 0
//! ```
//!
//! A set that is exchanged by messages has the line `steps` and then its steps ([`super::step`])
//! instead of phases.
//!
//! Cells are in ascending order; a cell with empty tables is omitted. The lines of a cell keep their
//! order, separately for entries and operations. The cell of a neighbour denotes the default link
//! to or from it.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::Parser;
use super::set::SetLines;
use crate::convert::index;
use crate::error::Result;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId};
use crate::image::{
    CellContext, ChannelEntry, Direction, Feed, Operation, PhaseImage, SetImage, Sink,
};
use crate::links::LinkFinder;
use crate::machine::Machine;
use crate::set::ConnectionSet;
use crate::steps::Steps;

const CELL_LINES: [&str; 4] = ["send", "receive", "cell", "phase"];

/// The tables of a phase in the order of the file: all rows, and where those of each cell end.
#[derive(Default)]
struct TableLines {
    entries: Vec<ChannelEntry>,
    operations: Vec<Operation>,
    cells: Vec<(CellId, usize, usize)>,
}

/// The values that the rows refer to.
struct ImageContext<'a> {
    machine: &'a Machine,
    finder: &'a LinkFinder<'a>,
    set: &'a ConnectionSet,
}

impl Parser<'_> {
    /// A set with its phases or steps.
    pub(super) fn set_image(
        &mut self,
        machine: &Arc<Machine>,
        finder: &LinkFinder<'_>,
    ) -> Result<SetImage> {
        let start = self.lexer.start();
        let set = self.set(Some(machine), SetLines::IMAGE)?;
        if self.eat("steps") {
            self.end_of_line(&[])?;
            let set = Arc::new(set);
            let messages = self.steps(machine, &set)?;
            let steps = Steps::new(machine.clone(), set, messages);
            return Ok(SetImage::of_steps(steps.map_err(|e| self.misshapen(start, e))?));
        }
        let context = ImageContext { machine, finder, set: &set };
        let mut phases = Vec::new();
        while self.is("phase") {
            self.phase_line(phases.len())?;
            self.end_of_line(&[])?;
            phases.push(self.phase_tables(&context)?);
        }
        Ok(SetImage::of_phases(Arc::new(set), phases))
    }

    fn phase_tables(&mut self, context: &ImageContext<'_>) -> Result<PhaseImage> {
        let mut tables = TableLines::default();
        while self.is("cell") {
            let cell = self.cell_line(context, &tables)?;
            loop {
                match self.lexer.token() {
                    Token::Word("send") => self.operation(Direction::Send, context, &mut tables)?,
                    Token::Word("receive") => {
                        self.operation(Direction::Receive, context, &mut tables)?;
                    }
                    Token::Word(word) if word.starts_with(ChannelId::PREFIX) => {
                        self.entry(cell, context, &mut tables)?;
                    }
                    Token::EndOfFile | Token::Word("cell" | "phase" | "set") => break,
                    _ => {
                        let what = "a channel such as ch0, `send`, `receive`, `cell` or `phase`";
                        return Err(self.expected_word(what, &CELL_LINES));
                    }
                }
            }
            tables.cells.push((cell, tables.entries.len(), tables.operations.len()));
        }
        if !(self.is("phase") || self.is("set") || self.lexer.token() == Token::EndOfFile) {
            return Err(self.expected_word("`cell`, `phase` or `set`", &CELL_LINES));
        }
        Ok(lay_out(context.machine, &tables))
    }

    fn cell_line(&mut self, context: &ImageContext<'_>, tables: &TableLines) -> Result<CellId> {
        self.keyword("cell")?;
        let start = self.lexer.start();
        let count = context.machine.cell_count();
        let cell = self.id_below(CellId::parse, CellId::index, count, "a cell")?;
        match tables.cells.last() {
            Some(&(last, ..)) if last >= cell => {
                let message = format!("{cell} after {last}: cells must be in ascending order");
                Err(self.error(start, message))
            }
            _ => {
                self.end_of_line(&[])?;
                Ok(cell)
            }
        }
    }

    /// `chN from (xN | cN | lN) to (xN | cN/chN | lN/chN)`
    fn entry(
        &mut self,
        cell: CellId,
        context: &ImageContext<'_>,
        tables: &mut TableLines,
    ) -> Result<()> {
        const FEED: &str = "where words come from: a connection, a cell or a link";
        const SINK: &str = "where words go: a connection, a cell or a link";
        let channel = self.channel(context)?;
        self.keyword("from")?;
        let feed = match self.lexer.token() {
            Token::Word(word) if word.starts_with('x') => Feed::Gate(self.connection(context)?),
            _ => Feed::Link(self.link(context, FEED, |from| (from, cell))?),
        };
        self.keyword("to")?;
        let sink = match self.lexer.token() {
            Token::Word(word) if word.starts_with('x') => Sink::Gate(self.connection(context)?),
            _ => {
                let link = self.link(context, SINK, |to| (cell, to))?;
                self.punctuation(Token::Slash, "`/` and the channel on the next cell")?;
                Sink::Forward { link, channel: self.channel(context)? }
            }
        };
        tables.entries.push(ChannelEntry { channel, feed, sink });
        self.end_of_line(&[])
    }

    /// `send|receive xN chN words N [first_word N] start N`
    fn operation(
        &mut self,
        direction: Direction,
        context: &ImageContext<'_>,
        tables: &mut TableLines,
    ) -> Result<()> {
        self.lexer.advance();
        let connection = self.connection(context)?;
        let channel = self.channel(context)?;
        self.keyword("words")?;
        let all = context.set.get(connection).words;
        let at = self.lexer.start();
        let words = self.number32("a number of words", 1, all)?;
        let first_word = if self.eat("first_word") {
            self.number32("the index of the first word", 0, all - 1)?
        } else {
            0
        };
        if u64::from(words) + u64::from(first_word) > u64::from(all) {
            let message =
                format!("words {words} from {first_word} of {connection}, which has {all}");
            return Err(self.error(at, message));
        }
        if !self.eat("start") {
            return Err(self.expected_word("`start`", &["start", "first_word"]));
        }
        let start = self.number("a number of clocks", 0, u64::MAX)?;
        let row = Operation { direction, connection, channel, words, first_word, start };
        tables.operations.push(row);
        self.end_of_line(&[])
    }

    fn connection(&mut self, context: &ImageContext<'_>) -> Result<ConnectionId> {
        let count = context.set.len();
        self.id_below(ConnectionId::parse, ConnectionId::index, count, "a connection of the set")
    }

    fn channel(&mut self, context: &ImageContext<'_>) -> Result<ChannelId> {
        let count = index(context.machine.parameters().channels_per_cell);
        self.id_below(ChannelId::parse, ChannelId::index, count, "a channel of the cell")
    }

    /// A link, by its id or by the neighbour; `ends` maps the neighbour to the ends of the link.
    fn link(
        &mut self,
        context: &ImageContext<'_>,
        what: &str,
        ends: impl Fn(CellId) -> (CellId, CellId),
    ) -> Result<LinkId> {
        let start = self.lexer.start();
        let Token::Word(word) = self.lexer.token() else { return Err(self.expected(what)) };
        if word.starts_with(LinkId::PREFIX) {
            let count = context.machine.link_count();
            return self.id_below(LinkId::parse, LinkId::index, count, "a link");
        }
        if CellId::parse(word).is_none() {
            return Err(self.expected(what));
        }
        let count = context.machine.cell_count();
        let (from, to) = ends(self.id_below(CellId::parse, CellId::index, count, "a cell")?);
        match context.finder.default_link(from, to) {
            LinkId::NONE => Err(self.error(start, format!("no live link joins {from} to {to}"))),
            link => Ok(link),
        }
    }
}

fn lay_out(machine: &Machine, tables: &TableLines) -> PhaseImage {
    let (mut entry, mut operation) = (0, 0);
    let listed = tables.cells.iter().map(|&(cell, entries, operations)| {
        let context = CellContext {
            entries: &tables.entries[entry..entries],
            operations: &tables.operations[operation..operations],
        };
        (entry, operation) = (entries, operations);
        (cell, context)
    });
    PhaseImage::from_listed(machine.cell_count(), listed)
}
