//! The parser of steps: messages with their pieces, and the bounds and prediction of a set.
//!
//! ```text
//!   step s0
//!     message c0 -> c4 x0 x1
//!     message c4 -> c0 x7 first 8 words 4
//!   bounds clocks 832 by agent-load direct 1660
//!   predicted_clocks 1704
//! ```
//!
//! A piece is a whole connection, unless `words` states how many of its words it is; they start at
//! `first`, or at the first word. Bounds and prediction may be missing, as in a plan that was written
//! by hand.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::Parser;
use super::set::SetLines;
use crate::error::{Result, ShapeError};
use crate::ids::{CellId, ConnectionId, StepId};
use crate::limits;
use crate::machine::Machine;
use crate::set::ConnectionSet;
use crate::step_schedule::{SetSteps, StepBounds};
use crate::steps::{Piece, StepMessages, Steps};

const AFTER_STEPS: [&str; 5] = ["message", "step", "bounds", "predicted_clocks", "set"];

impl Parser<'_> {
    /// A set with its steps, then its bounds, their witness and its prediction in any order.
    pub(super) fn set_steps(&mut self, machine: &Arc<Machine>) -> Result<SetSteps> {
        let start = self.lexer.start();
        let set = Arc::new(self.set(Some(machine), SetLines::STEPS)?);
        let messages = self.steps(machine, &set)?;
        let steps = Steps::new(machine.clone(), set.clone(), messages)
            .map_err(|e| self.misshapen(start, e))?;
        let (mut bounds, mut witness, mut predicted_clocks) = (None, None, None);
        loop {
            if bounds.is_none() && self.is("bounds") {
                bounds = Some(self.step_bounds()?);
            } else if predicted_clocks.is_none() && self.eat("predicted_clocks") {
                predicted_clocks = Some(self.number("a number of clocks", 0, u64::MAX)?);
                self.end_of_line(&[])?;
            } else if witness.is_none() && self.eat("witness") {
                self.keyword("clocks")?;
                witness = Some(self.witness()?);
                self.end_of_line(&[])?;
            } else if self.is("set") || self.lexer.token() == Token::EndOfFile {
                let bounds = bounds.unwrap_or_default();
                let bounds = StepBounds { clocks_witness: witness, ..bounds };
                return Ok(SetSteps { steps, bounds, predicted_clocks });
            } else {
                return Err(self.expected_word(
                    "`message`, `step`, `bounds`, `predicted_clocks`, `set` or the end of the file",
                    &AFTER_STEPS,
                ));
            }
        }
    }

    /// `bounds clocks N [by WHAT] [direct N]`
    fn step_bounds(&mut self) -> Result<StepBounds> {
        self.keyword("bounds")?;
        self.keyword("clocks")?;
        let clocks = self.number("a number of clocks", 0, u64::MAX)?;
        let clocks_by = self.binding()?;
        let direct_clocks = match self.eat("direct") {
            true => self.number("a number of clocks", 0, u64::MAX)?,
            false => 0,
        };
        self.end_of_line(&["by", "direct"])?;
        Ok(StepBounds { clocks, clocks_by, clocks_witness: None, direct_clocks })
    }

    /// The steps of a set.
    pub(super) fn steps(&mut self, machine: &Machine, set: &ConnectionSet) -> Result<StepMessages> {
        let mut messages = StepMessages::new();
        let mut pieces = Vec::new();
        while self.is("step") {
            let start = self.lexer.start();
            self.step_line(messages.steps())?;
            while self.is("message") {
                self.message_line(machine, set, &mut pieces, &mut messages)?;
            }
            messages.end_step().map_err(|e| self.misshapen(start, e))?;
        }
        Ok(messages)
    }

    /// `step [sN]`
    fn step_line(&mut self, row: usize) -> Result<()> {
        let start = self.lexer.start();
        self.keyword("step")?;
        if row == limits::STEPS {
            return Err(self.error(start, format!("more than {} steps", limits::STEPS)));
        }
        let next = StepId::from_index(row);
        match self.lexer.token() {
            Token::Word(word) if StepId::parse(word) == Some(next) => self.lexer.advance(),
            Token::Word(word) if StepId::parse(word).is_some() => {
                return Err(self.expected(&format!("{next}, since steps are in order")));
            }
            _ => {}
        }
        self.end_of_line(&[])
    }

    /// `message cA -> cB (xN [first N] [words N])+`
    fn message_line(
        &mut self,
        machine: &Machine,
        set: &ConnectionSet,
        pieces: &mut Vec<Piece>,
        messages: &mut StepMessages,
    ) -> Result<()> {
        let start = self.lexer.start();
        self.keyword("message")?;
        let agent = |p: &mut Self| {
            let what = "a cell that sends or receives the message";
            p.id_below(CellId::parse, CellId::index, machine.agent_count(), what)
        };
        let source = agent(self)?;
        self.punctuation(Token::Arrow, "`->`")?;
        let target = agent(self)?;
        pieces.clear();
        loop {
            pieces.push(self.piece(set)?);
            if self.lexer.token() == Token::EndOfLine {
                break;
            }
        }
        messages.push(source, target, pieces).map_err(|e: ShapeError| self.misshapen(start, e))?;
        self.end_of_line(&[])
    }

    fn piece(&mut self, set: &ConnectionSet) -> Result<Piece> {
        let what = "a connection of the set";
        let id = self.id_below(ConnectionId::parse, ConnectionId::index, set.len(), what)?;
        let mut piece = Piece::whole(set, id);
        let first = self.eat("first");
        if first {
            piece.first_word = self.number32("the position of a word", 0, u32::MAX)?;
        }
        if self.eat("words") {
            piece.words = self.number32("a number of words", 0, u32::MAX)?;
        } else if first {
            return Err(self.expected_word("`words`", &["words"]));
        }
        Ok(piece)
    }
}
