//! The parser of phases: routes, slots, and the bounds and prediction of a set in a schedule.
//!
//! ```text
//!   phase p0 makespan 266
//!     route x0 c3/ch0 -> c4/ch5 start 0 duration 266
//!     route x1 c3/ch1 -> c4/ch2 -> c5/ch0 words 12 links l3 l9 start 0 duration 24
//!   bounds phases 1 by endpoints clocks 794 by agent-load
//!   witness phases cell c3
//!   witness clocks cell c3
//!   predicted_clocks 794
//! ```
//!
//! By default, a route carries all words of its connection and uses the default links between its
//! cells ([`LinkFinder`]). `words` and `links` state something else; in `links`, `none` denotes a
//! missing link. Routings have no times.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::{DocumentKind, Parser};
use super::set::SetLines;
use crate::error::{Result, ShapeError};
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId, PhaseId};
use crate::limits;
use crate::links::LinkFinder;
use crate::machine::Machine;
use crate::routing::{PhaseRoutes, RouteBuffer, Routing};
use crate::schedule::{Binding, Bounds, SetSchedule};
use crate::set::ConnectionSet;
use crate::timetable::{PhaseTimes, Slot, Timetable};
use crate::witness::{CellRange, Proof, Witness};

/// The values that routes refer to.
struct RouteContext<'a> {
    machine: &'a Machine,
    finder: &'a LinkFinder<'a>,
    set: &'a ConnectionSet,
    kind: DocumentKind,
}

impl Parser<'_> {
    /// A set with its phases, without times.
    pub(super) fn routing(
        &mut self,
        machine: &Arc<Machine>,
        finder: &LinkFinder<'_>,
    ) -> Result<Routing> {
        let start = self.lexer.start();
        let set = Arc::new(self.set(Some(machine), SetLines::ROUTED)?);
        let (routes, _) =
            self.phases(&RouteContext { machine, finder, set: &set, kind: DocumentKind::Routing })?;
        Routing::new(machine.clone(), set, routes).map_err(|e| self.misshapen(start, e))
    }

    /// A set with its phases and their times.
    pub(super) fn timetable(
        &mut self,
        machine: &Arc<Machine>,
        finder: &LinkFinder<'_>,
    ) -> Result<Timetable> {
        self.timed_set(machine, finder, DocumentKind::Timetable)
    }

    fn timed_set(
        &mut self,
        machine: &Arc<Machine>,
        finder: &LinkFinder<'_>,
        kind: DocumentKind,
    ) -> Result<Timetable> {
        let start = self.lexer.start();
        let lines =
            if kind == DocumentKind::Schedule { SetLines::SCHEDULE } else { SetLines::ROUTED };
        let set = Arc::new(self.set(Some(machine), lines)?);
        let (routes, times) = self.phases(&RouteContext { machine, finder, set: &set, kind })?;
        let wrong = |e: ShapeError| self.misshapen(start, e);
        let routing = Routing::new(machine.clone(), set, routes).map_err(wrong)?;
        Timetable::new(routing, times).map_err(wrong)
    }

    /// A set of a schedule: phases, then its bounds, their witnesses and its prediction in any order.
    pub(super) fn set_schedule(
        &mut self,
        machine: &Arc<Machine>,
        finder: &LinkFinder<'_>,
    ) -> Result<SetSchedule> {
        let timetable = self.timed_set(machine, finder, DocumentKind::Schedule)?;
        let (mut bounds, mut predicted, mut proof) = (None, None, Proof::default());
        loop {
            if bounds.is_none() && self.is("bounds") {
                bounds = Some(self.bounds()?);
            } else if predicted.is_none() && self.eat("predicted_clocks") {
                predicted = Some(self.number("a number of clocks", 0, u64::MAX)?);
                self.end_of_line(&[])?;
            } else if self.is("witness") {
                self.witness_line(&mut proof)?;
            } else if let (Some(bounds), Some(predicted_clocks)) = (bounds, predicted) {
                return Ok(SetSchedule { timetable, bounds, proof, predicted_clocks });
            } else {
                let missing = match (bounds, predicted) {
                    (None, None) => "`phase`, `bounds` or `predicted_clocks`",
                    (None, _) => "`bounds`",
                    _ => "`predicted_clocks`",
                };
                return Err(self.expected_word(missing, &["phase", "bounds", "predicted_clocks"]));
            }
        }
    }

    /// `witness (phases | clocks) WITNESS`
    fn witness_line(&mut self, proof: &mut Proof) -> Result<()> {
        self.keyword("witness")?;
        let start = self.lexer.start();
        let of = match self.lexer.token() {
            Token::Word("phases") => &mut proof.phases,
            Token::Word("clocks") => &mut proof.clocks,
            _ => return Err(self.expected_word("`phases` or `clocks`", &["phases", "clocks"])),
        };
        self.lexer.advance();
        let witness = self.witness()?;
        if of.replace(witness).is_some() {
            return Err(self.error(start, "a second witness of the same bound"));
        }
        self.end_of_line(&[])
    }

    /// A witness. It is a claim: whether its cells and connections exist is for the checker to say,
    /// as in the other forms.
    pub(super) fn witness(&mut self) -> Result<Witness> {
        const KINDS: [&str; 8] =
            ["cell", "hops", "cut", "cell_prices", "link_prices", "prices", "chain", "window"];
        let Some(kind) = KINDS.into_iter().find(|kind| self.eat(kind)) else {
            return Err(self.expected_word(&format!("one of {}", KINDS.join(", ")), &KINDS));
        };
        let clocks = "a number of clocks";
        Ok(match kind {
            "cell" => Witness::Cell(self.cell()?),
            "hops" => Witness::Hops,
            "cut" => Witness::Cut(self.cell_ranges()?),
            "cell_prices" => Witness::CellPrices(self.rest_of_line(|p| p.price())?),
            "link_prices" => Witness::LinkPrices(self.rest_of_line(|p| p.price())?),
            "prices" => {
                self.keyword("cells")?;
                let cells = self.prices_until("links")?;
                let links = self.prices_until("alone")?;
                Witness::Prices { cells, links, alone: self.rest_of_line(|p| p.price())? }
            }
            "chain" => Witness::Chain(
                self.rest_of_line(|p| p.id(ConnectionId::parse, "a connection of the set"))?,
            ),
            _ => {
                self.keyword("head")?;
                let head = self.number(clocks, 0, u64::MAX)?;
                self.keyword("tail")?;
                let tail = self.number(clocks, 0, u64::MAX)?;
                let cut = self.eat("cut");
                let side = if cut { self.cell_ranges()? } else { Vec::new() };
                Witness::Window { head, tail, side }
            }
        })
    }

    fn cell(&mut self) -> Result<CellId> {
        self.id(CellId::parse, "a cell")
    }

    fn price(&mut self) -> Result<u32> {
        self.number32("a price", 0, u32::MAX)
    }

    fn prices_until(&mut self, word: &str) -> Result<Vec<u32>> {
        let mut prices = Vec::new();
        while !self.eat(word) {
            prices.push(self.price()?);
        }
        Ok(prices)
    }

    /// Ranges, each as its first and its last cell.
    fn cell_ranges(&mut self) -> Result<Vec<CellRange>> {
        self.rest_of_line(|p| Ok((p.cell()?, p.cell()?)))
    }

    fn rest_of_line<T>(&mut self, read: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        while self.lexer.token() != Token::EndOfLine {
            rows.push(read(self)?);
        }
        Ok(rows)
    }

    /// `bounds phases N [by WHAT] clocks N [by WHAT]`
    fn bounds(&mut self) -> Result<Bounds> {
        self.keyword("bounds")?;
        self.keyword("phases")?;
        let phases = self.number32("a number of phases", 0, u32::MAX)?;
        let phases_by = self.binding()?;
        self.keyword("clocks")?;
        let clocks = self.number("a number of clocks", 0, u64::MAX)?;
        let clocks_by = self.binding()?;
        self.end_of_line(&["by"])?;
        Ok(Bounds { phases, phases_by, clocks, clocks_by })
    }

    pub(super) fn binding(&mut self) -> Result<Binding> {
        if !self.eat("by") {
            return Ok(Binding::Nothing);
        }
        let names = Binding::ALL.map(Binding::name);
        let found = match self.lexer.token() {
            Token::Word(word) => Binding::parse(word),
            _ => None,
        };
        let Some(binding) = found else {
            return Err(self.expected_word(&format!("one of {}", names.join(", ")), &names));
        };
        self.lexer.advance();
        Ok(binding)
    }

    fn phases(
        &mut self,
        context: &RouteContext<'_>,
    ) -> Result<(Vec<PhaseRoutes>, Vec<PhaseTimes>)> {
        let (mut routes, mut times) = (Vec::new(), Vec::new());
        let mut buffer = RouteBuffer::default();
        while self.is("phase") {
            self.phase_line(routes.len())?;
            let mut phase = PhaseRoutes::new();
            let mut time = PhaseTimes::default();
            if context.kind.timed() {
                self.keyword("makespan")?;
                time.makespan = self.number("a number of clocks", 0, u64::MAX)?;
            }
            self.end_of_line(&[])?;
            while self.is("route") {
                let slot = self.route_line(context, &mut buffer, &mut phase)?;
                time.slots.extend(slot);
            }
            routes.push(phase);
            times.push(time);
        }
        if routes.is_empty() {
            return Ok((routes, times));
        }
        let schedule = context.kind == DocumentKind::Schedule;
        let done = if schedule {
            self.is("bounds") || self.is("predicted_clocks")
        } else {
            self.lexer.token() == Token::EndOfFile
        };
        match (done, schedule) {
            (true, _) => Ok((routes, times)),
            (false, true) => Err(self.expected_word(
                "`route`, `phase`, `bounds` or `predicted_clocks`",
                &["route", "phase", "bounds", "predicted_clocks"],
            )),
            (false, false) => {
                Err(self
                    .expected_word("`route`, `phase` or the end of the file", &["route", "phase"]))
            }
        }
    }

    /// `phase [pN]`, without what follows in some kinds of documents.
    pub(super) fn phase_line(&mut self, row: usize) -> Result<()> {
        let start = self.lexer.start();
        self.keyword("phase")?;
        if row == limits::PHASES {
            return Err(self.error(start, format!("more than {} phases", limits::PHASES)));
        }
        let next = PhaseId::from_index(row);
        match self.lexer.token() {
            Token::Word(word) if PhaseId::parse(word) == Some(next) => self.lexer.advance(),
            Token::Word(word) if PhaseId::parse(word).is_some() => {
                return Err(self.expected(&format!("{next}, since phases are in order")));
            }
            _ => {}
        }
        Ok(())
    }

    /// `route xN cA/chA -> cB/chB ... [words N] [links L ...] [start N duration N]`
    fn route_line(
        &mut self,
        context: &RouteContext<'_>,
        buffer: &mut RouteBuffer,
        phase: &mut PhaseRoutes,
    ) -> Result<Option<Slot>> {
        let start = self.lexer.start();
        self.keyword("route")?;
        let count = context.set.len();
        let connection = self.id_below(
            ConnectionId::parse,
            ConnectionId::index,
            count,
            "a connection of the set",
        )?;
        self.chain(context.machine, buffer)?;
        buffer.links.clear();
        let (mut words, mut links, mut from, mut duration) = (None, false, None, None);
        loop {
            let at = self.lexer.start();
            let twice = match self.lexer.token() {
                Token::Word("words") => words.is_some(),
                Token::Word("links") => links,
                Token::Word("start") if context.kind.timed() => from.is_some(),
                Token::Word("duration") if context.kind.timed() => duration.is_some(),
                _ => break,
            };
            let keyword = self.word("an option")?;
            if twice {
                return Err(self.error(at, format!("`{keyword}` is given twice")));
            }
            match keyword {
                "words" => words = Some(self.number32("a number of words", 0, u32::MAX)?),
                "start" => from = Some(self.number("a number of clocks", 0, u64::MAX)?),
                "duration" => duration = Some(self.number("a number of clocks", 0, u64::MAX)?),
                _ => {
                    self.links(context.machine, buffer)?;
                    links = true;
                }
            }
        }
        let slot = if context.kind.timed() {
            let missing = if from.is_none() { "`start`" } else { "`duration`" };
            let (Some(start), Some(duration)) = (from, duration) else {
                return Err(
                    self.expected_word(missing, &["->", "start", "duration", "words", "links"])
                );
            };
            Some(Slot { start, duration })
        } else {
            None
        };
        if !links {
            buffer.links.extend(context.finder.along(&buffer.cells));
        }
        let words = words.unwrap_or_else(|| context.set.get(connection).words);
        phase
            .push(connection, words, &buffer.cells, &buffer.links, &buffer.channels)
            .map_err(|e| self.misshapen(start, e))?;
        self.end_of_line(&["words", "links"])?;
        Ok(slot)
    }

    /// `cA/chA -> cB/chB ...`
    fn chain(&mut self, machine: &Machine, buffer: &mut RouteBuffer) -> Result<()> {
        buffer.cells.clear();
        buffer.channels.clear();
        loop {
            let count = machine.cell_count();
            buffer.cells.push(self.id_below(CellId::parse, CellId::index, count, "a cell")?);
            self.punctuation(Token::Slash, "`/` and the channel taken on the cell")?;
            buffer.channels.push(self.id(ChannelId::parse, "a channel such as ch5")?);
            if self.lexer.token() != Token::Arrow {
                return Ok(());
            }
            self.lexer.advance();
        }
    }

    /// As many links as the route has: `l3 none l5`.
    fn links(&mut self, machine: &Machine, buffer: &mut RouteBuffer) -> Result<()> {
        for _ in 1..buffer.cells.len() {
            let link = if self.eat("none") {
                LinkId::NONE
            } else {
                self.id_below(
                    LinkId::parse,
                    LinkId::index,
                    machine.link_count(),
                    "a link or `none`",
                )?
            };
            buffer.links.push(link);
        }
        Ok(())
    }
}
