//! The parser of the text form: methods shared by all rules of the grammar, and the header.
//!
//! A [`Parser`] has a current token. Its small methods consume one operand each, or return an error
//! that states what was expected and what was found. The rules of the grammar are in `machine`,
//! `set`, `phase`, `step` and `image`.

use std::sync::Arc;

use super::VERSION;
use super::lexer::{Lexer, Token, unquote};
use super::set::SetLines;
use crate::document::Document;
use crate::error::{InputError, Result, ShapeError};
use crate::ids::CellId;
use crate::image::Image;
use crate::limits;
use crate::links::LinkFinder;
use crate::machine::Machine;
use crate::part_map::PartMap;
use crate::position::{did_you_mean, locate};
use crate::schedule::{Origin, Schedule};
use crate::set::Program;
use crate::step_schedule::StepSchedule;

/// Parses a file of the text form. `name` is the name of the file in error messages.
///
/// # Errors
/// The first mistake, with line, column and offset, and what was expected.
pub fn parse(name: &str, text: &str) -> Result<Document> {
    let mut p = Parser { name, lexer: Lexer::new(text) };
    let kind = p.header()?;
    let machine = p.machine_block(kind)?;
    match kind {
        DocumentKind::Machine => {
            p.end_of_file()?;
            let machine = machine.ok_or_else(|| p.expected("`machine`"))?;
            Ok(Document::Machine(machine))
        }
        DocumentKind::Set => p.program(machine),
        _ => {
            let machine = machine.ok_or_else(|| p.expected("`machine`"))?;
            match kind {
                DocumentKind::Schedule => p.schedule(&machine).map(Document::Schedule),
                DocumentKind::Steps => p.step_schedule(&machine).map(Document::Steps),
                DocumentKind::Image => p.image(&machine).map(Document::Image),
                _ => p.one_set(&machine, kind),
            }
        }
    }
}

/// The kind of a document, from the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentKind {
    Machine,
    Set,
    Routing,
    Timetable,
    Schedule,
    Steps,
    Image,
}

impl DocumentKind {
    const ALL: [(&'static str, DocumentKind); 7] = [
        ("machine", DocumentKind::Machine),
        ("set", DocumentKind::Set),
        ("routing", DocumentKind::Routing),
        ("timetable", DocumentKind::Timetable),
        ("schedule", DocumentKind::Schedule),
        ("steps", DocumentKind::Steps),
        ("image", DocumentKind::Image),
    ];

    /// Whether routes have slots and phases a makespan.
    pub(super) fn timed(self) -> bool {
        matches!(self, DocumentKind::Timetable | DocumentKind::Schedule)
    }
}

pub(super) struct Parser<'a> {
    name: &'a str,
    pub(super) lexer: Lexer<'a>,
}

impl<'a> Parser<'a> {
    /// An error at a byte of the text.
    pub(super) fn error(&self, offset: usize, message: impl Into<String>) -> InputError {
        InputError::new(self.name, locate(self.lexer.text().as_bytes(), offset), message)
    }

    /// The error "expected ..., found ..." at the current token.
    pub(super) fn expected(&self, what: &str) -> InputError {
        let found = match self.lexer.token() {
            Token::Bad(what) => return self.error(self.lexer.start(), what),
            Token::Word(word) => format!("`{}`", short(word)),
            Token::Quoted(content) => format!("\"{}\"", short(content)),
            Token::Arrow => "`->`".to_owned(),
            Token::Slash => "`/`".to_owned(),
            Token::EndOfLine => "the end of the line".to_owned(),
            Token::EndOfFile => "the end of the file".to_owned(),
        };
        self.error(self.lexer.start(), format!("expected {what}, found {found}"))
    }

    /// The same error, with a suggestion if the token is close to a known word.
    pub(super) fn expected_word(&self, what: &str, known: &[&str]) -> InputError {
        let error = self.expected(what);
        match self.lexer.token() {
            Token::Word(word) => match did_you_mean(word, known.iter().copied()) {
                Some(meant) => error.help(format!("did you mean `{meant}`?")),
                None => error,
            },
            _ => error,
        }
    }

    /// A shape error of a constructor, at the offset of the part of the text that caused it.
    pub(super) fn misshapen(&self, offset: usize, error: ShapeError) -> InputError {
        self.error(offset, error.message)
    }

    /// Whether the current token is this word.
    #[inline]
    pub(super) fn is(&self, keyword: &str) -> bool {
        self.lexer.token() == Token::Word(keyword)
    }

    /// Consumes this word if it is the current token.
    pub(super) fn eat(&mut self, keyword: &str) -> bool {
        let found = self.is(keyword);
        if found {
            self.lexer.advance();
        }
        found
    }

    /// Consumes this word.
    pub(super) fn keyword(&mut self, keyword: &str) -> Result<()> {
        if self.eat(keyword) {
            return Ok(());
        }
        Err(self.expected_word(&format!("`{keyword}`"), &[keyword]))
    }

    /// Consumes an arrow or a slash.
    pub(super) fn punctuation(&mut self, token: Token<'_>, spelling: &str) -> Result<()> {
        if self.lexer.token() != token {
            return Err(self.expected(spelling));
        }
        self.lexer.advance();
        Ok(())
    }

    /// Consumes any word.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str> {
        let Token::Word(word) = self.lexer.token() else { return Err(self.expected(what)) };
        self.lexer.advance();
        Ok(word)
    }

    /// Consumes a string.
    pub(super) fn quoted(&mut self, what: &str) -> Result<String> {
        let Token::Quoted(content) = self.lexer.token() else { return Err(self.expected(what)) };
        self.lexer.advance();
        Ok(unquote(content))
    }

    /// Consumes an id; `read` is its `parse`.
    #[inline]
    pub(super) fn id<T>(&mut self, read: impl Fn(&str) -> Option<T>, what: &str) -> Result<T> {
        let Token::Word(word) = self.lexer.token() else { return Err(self.expected(what)) };
        let id = read(word).ok_or_else(|| self.expected(what))?;
        self.lexer.advance();
        Ok(id)
    }

    /// Consumes an id and checks that it is below `count`.
    #[inline]
    pub(super) fn id_below<T: Copy + std::fmt::Display>(
        &mut self,
        read: impl Fn(&str) -> Option<T>,
        index: impl Fn(T) -> usize,
        count: usize,
        what: &str,
    ) -> Result<T> {
        let start = self.lexer.start();
        let id = self.id(read, what)?;
        if index(id) < count {
            return Ok(id);
        }
        let message = match count {
            0 => format!("expected {what}, but none exists; found `{id}`"),
            _ => format!("expected {what} numbered below {count}, found `{id}`"),
        };
        Err(self.error(start, message))
    }

    /// Consumes a whole number from `least` to `most`.
    pub(super) fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64> {
        let wrong = |p: &Self| match most {
            u64::MAX => p.expected(&format!("{what} from {least}")),
            _ => p.expected(&format!("{what} from {least} to {most}")),
        };
        let Token::Word(word) = self.lexer.token() else { return Err(wrong(self)) };
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        match word.parse::<u64>() {
            Ok(number) if digits && (least..=most).contains(&number) => {
                self.lexer.advance();
                Ok(number)
            }
            _ => Err(wrong(self)),
        }
    }

    /// Consumes a whole number of 32 bits from `least` to `most`.
    pub(super) fn number32(&mut self, what: &str, least: u32, most: u32) -> Result<u32> {
        let number = self.number(what, least.into(), most.into())?;
        Ok(u32::try_from(number).expect("it is at most `most`"))
    }

    /// Consumes the end of the line and the empty lines after it. `more` lists the words that could
    /// have followed instead.
    pub(super) fn end_of_line(&mut self, more: &[&str]) -> Result<()> {
        if self.lexer.token() != Token::EndOfLine {
            return Err(self.expected_word("the end of the line", more));
        }
        self.lexer.next_line();
        Ok(())
    }

    fn end_of_file(&self) -> Result<()> {
        match self.lexer.token() {
            Token::EndOfFile => Ok(()),
            _ => Err(self.expected("the end of the file")),
        }
    }

    /// `conset KIND VERSION`
    fn header(&mut self) -> Result<DocumentKind> {
        self.keyword("conset").map_err(|e| match e.help {
            None => e.help("the first line states the contents of the file: `conset set 1`"),
            Some(_) => e,
        })?;
        let names = DocumentKind::ALL.map(|row| row.0);
        let Some((name, kind)) = DocumentKind::ALL.into_iter().find(|row| self.eat(row.0)) else {
            return Err(self.expected_word(&format!("one of {}", names.join(", ")), &names));
        };
        let start = self.lexer.start();
        let version = self.number("a version number", 1, u64::MAX)?;
        if version > u64::from(VERSION) {
            return Err(self
                .error(start, format!("version {version} of conset {name} is newer than {VERSION}"))
                .help(format!(
                    "this program reads versions up to {VERSION}; use a newer version of conset"
                )));
        }
        self.end_of_line(&[])?;
        Ok(kind)
    }

    /// The sets of a file, and the offset of each.
    fn sets<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<(Vec<T>, Vec<usize>)> {
        let (mut sets, mut starts) = (Vec::new(), Vec::new());
        while self.is("set") {
            if sets.len() == limits::SETS {
                let message = format!("more than {} sets", limits::SETS);
                return Err(self.error(self.lexer.start(), message));
            }
            starts.push(self.lexer.start());
            sets.push(read(self)?);
        }
        match self.lexer.token() {
            Token::EndOfFile => Ok((sets, starts)),
            _ => Err(self.expected_word("`set`", &["set"])),
        }
    }

    /// A shape error in `sets[i]`, at the offset of that set.
    fn misshapen_sets(&self, starts: &[usize], error: ShapeError) -> InputError {
        let row = row_in(&error.place, "sets[").unwrap_or(0);
        self.misshapen(starts.get(row).copied().unwrap_or(0), error)
    }

    fn program(&mut self, machine: Option<Arc<Machine>>) -> Result<Document> {
        let (sets, starts) = self.sets(|p| p.set(machine.as_deref(), SetLines::PROGRAM))?;
        let program = Program::new(sets.into_iter().map(Arc::new).collect())
            .map_err(|e| self.misshapen_sets(&starts, e))?;
        Ok(Document::Program { machine, program })
    }

    fn one_set(&mut self, machine: &Arc<Machine>, kind: DocumentKind) -> Result<Document> {
        let finder = LinkFinder::new(machine);
        if !self.is("set") {
            return Err(self.expected_word("`set`", &["set"]));
        }
        let document = if kind == DocumentKind::Timetable {
            Document::Timetable(self.timetable(machine, &finder)?)
        } else {
            Document::Routing(self.routing(machine, &finder)?)
        };
        self.end_of_file()?;
        Ok(document)
    }

    fn schedule(&mut self, machine: &Arc<Machine>) -> Result<Schedule> {
        let start = self.lexer.start();
        let origin = if self.is("origin") { Some(self.origin()?) } else { None };
        let digest = if self.eat("digest") { Some(self.digest()?) } else { None };
        let map_start = self.lexer.start();
        let part_map = if self.is("parts") { Some(self.part_map(machine)?) } else { None };
        let finder = LinkFinder::new(machine);
        let (sets, starts) = self.sets(|p| p.set_schedule(machine, &finder))?;
        let schedule = Schedule::new(machine.clone(), sets, origin);
        let schedule = schedule
            .map_err(|e| (start, e))
            .and_then(|schedule| schedule.with_part_map(part_map).map_err(|e| (map_start, e)));
        schedule.map(|schedule| schedule.with_stated_digest(digest)).map_err(|(offset, e)| {
            if e.place.starts_with("sets") {
                self.misshapen_sets(&starts, e)
            } else {
                self.misshapen(offset, e)
            }
        })
    }

    fn step_schedule(&mut self, machine: &Arc<Machine>) -> Result<StepSchedule> {
        let start = self.lexer.start();
        let origin = if self.is("origin") { Some(self.origin()?) } else { None };
        let digest = if self.eat("digest") { Some(self.digest()?) } else { None };
        let map_start = self.lexer.start();
        let part_map = if self.is("parts") { Some(self.part_map(machine)?) } else { None };
        let (sets, starts) = self.sets(|p| p.set_steps(machine))?;
        let schedule = StepSchedule::new(machine.clone(), sets, origin);
        let schedule = schedule
            .map_err(|e| (start, e))
            .and_then(|schedule| schedule.with_part_map(part_map).map_err(|e| (map_start, e)));
        schedule.map(|schedule| schedule.with_stated_digest(digest)).map_err(|(offset, e)| {
            if e.place.starts_with("sets[") {
                self.misshapen_sets(&starts, e)
            } else {
                self.misshapen(offset, e)
            }
        })
    }

    fn image(&mut self, machine: &Arc<Machine>) -> Result<Image> {
        let finder = LinkFinder::new(machine);
        let (sets, starts) = self.sets(|p| p.set_image(machine, &finder))?;
        Image::new(machine.clone(), sets).map_err(|e| self.misshapen_sets(&starts, e))
    }

    /// `parts cN*`, then `node_numbers from N (N N)*`.
    fn part_map(&mut self, machine: &Machine) -> Result<PartMap> {
        let start = self.lexer.start();
        self.keyword("parts")?;
        let mut cells = Vec::new();
        while self.lexer.token() != Token::EndOfLine {
            if cells.len() == limits::PARTS {
                let message = format!("more than {} parts", limits::PARTS);
                return Err(self.error(self.lexer.start(), message));
            }
            let count = machine.agent_count();
            cells.push(self.id_below(CellId::parse, CellId::index, count, "the cell of a part")?);
        }
        self.end_of_line(&[])?;
        self.keyword("node_numbers")?;
        self.keyword("from")?;
        let first = self.number("the number of the first node", 0, u64::MAX)?;
        let mut numbers = Vec::new();
        while self.lexer.token() != Token::EndOfLine {
            let node = self.number32("a node", 0, u32::MAX)?;
            numbers.push((node, self.number("the file's number of the node", 0, u64::MAX)?));
        }
        self.end_of_line(&[])?;
        PartMap::new(cells, first, numbers).map_err(|e| self.misshapen(start, e))
    }

    /// The digits after `digest`.
    fn digest(&mut self) -> Result<u64> {
        let digest = self.id(crate::digest::parse, "16 of the digits 0-9 and a-f")?;
        self.end_of_line(&[])?;
        Ok(digest)
    }

    /// `origin generator "..." algorithm "..." seed N`
    fn origin(&mut self) -> Result<Origin> {
        self.keyword("origin")?;
        self.keyword("generator")?;
        let generator = self.quoted("the generator in quotes")?;
        self.keyword("algorithm")?;
        let algorithm = self.quoted("the algorithm in quotes")?;
        self.keyword("seed")?;
        let seed = self.number("a seed", 0, u64::MAX)?;
        self.end_of_line(&[])?;
        Ok(Origin { generator, algorithm, seed })
    }
}

/// The row in the place of a shape error: 12 of `connections[12].words`.
pub(super) fn row_in(place: &str, list: &str) -> Option<usize> {
    place.strip_prefix(list)?.split(']').next()?.parse().ok()
}

/// The start of a text of the file, escaped for a message.
fn short(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}
