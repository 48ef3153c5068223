//! The text of a fault plan, one fault a line ([`super`] describes them).

use std::fmt;
use std::str::FromStr;

use conset_ir::{CellId, PhaseId};

/// Faults of the hardware, in any order.
///
/// ```
/// use conset_fabric::FaultPlan;
///
/// let plan: FaultPlan = "cell c2 stalled 500 at 600\nlink c0 -> c1 drops word 17".parse()?;
/// assert_eq!(plan.to_string(), "cell c2 stalled 500 at 600\nlink c0 -> c1 drops word 17\n");
/// let error = "link c0 -> c1 drops\n".parse::<FaultPlan>().unwrap_err();
/// assert_eq!(error.to_string(), "line 1: expected `word N` or `words from N`, found the end of the line");
/// # Ok::<(), conset_fabric::FaultPlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The faults; printed one a line.
    pub faults: Vec<PlannedFault>,
}

/// A fault of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlannedFault {
    /// A part of the machine stops.
    Stop {
        /// The part.
        part: FaultyPart,
        /// From this clock.
        from: u64,
        /// For so many clocks; `None` for ever.
        clocks: Option<u64>,
    },
    /// The agent of a cell does nothing for some clocks after each word and each opening of a stream.
    Slow {
        /// The cell.
        cell: CellId,
        /// For so many clocks.
        clocks: u64,
        /// From this clock.
        from: u64,
    },
    /// A link treats a word wrongly.
    Words {
        /// All links from this cell
        source: CellId,
        /// to this one. Their words are counted together.
        target: CellId,
        /// What happens to the word.
        effect: WordEffect,
        /// The number of the word among all that the links carry, from 0.
        word: u64,
        /// Whether it also happens to every later word.
        repeats: bool,
    },
    /// A cell executes a context switch wrongly.
    Switch {
        /// The cell.
        cell: CellId,
        /// What happens.
        effect: SwitchEffect,
        /// The number of the context switch since the image was loaded, from 0.
        switch: u64,
    },
}

/// What a faulty link does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordEffect {
    /// The word does not arrive.
    Drop,
    /// The word arrives twice. The second copy fits even if the queue is full.
    Duplicate,
    /// The word arrives with one bit inverted.
    Corrupt,
    /// The word arrives after the next word of its stream. The last word of a stream has no next one.
    Reorder,
}

/// What a cell does wrongly at a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchEffect {
    /// It never takes part in the barrier.
    Miss,
    /// It takes part so many clocks after the other cells.
    Late(u64),
    /// It keeps the tables and the operation list that it has.
    Keep,
    /// It loads those of another phase of the set; nothing if the set has no such phase.
    Load(PhaseId),
}

/// A part of the machine that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyPart {
    /// All links from the first cell to the second.
    Link(CellId, CellId),
    /// A cell.
    Cell(CellId),
}

impl fmt::Display for FaultyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(source, target) => write!(f, "link {source} -> {target}"),
            Self::Cell(cell) => write!(f, "cell {cell}"),
        }
    }
}

impl fmt::Display for WordEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drops",
            Self::Duplicate => "duplicates",
            Self::Corrupt => "corrupts",
            Self::Reorder => "reorders",
        })
    }
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match *self {
            Self::Stop { part, from, clocks: None } => {
                write!(f, "{part} dead")?;
                from
            }
            Self::Stop { part, from, clocks: Some(clocks) } => {
                write!(f, "{part} stalled {clocks}")?;
                from
            }
            Self::Slow { cell, clocks, from } => {
                write!(f, "cell {cell} slow {clocks}")?;
                from
            }
            Self::Words { source, target, effect, word, repeats } => {
                let which = if repeats { "words from" } else { "word" };
                return write!(f, "link {source} -> {target} {effect} {which} {word}");
            }
            Self::Switch { cell, effect, switch } => {
                return match effect {
                    SwitchEffect::Miss => write!(f, "cell {cell} misses switch {switch}"),
                    SwitchEffect::Late(clocks) => {
                        write!(f, "cell {cell} late {clocks} at switch {switch}")
                    }
                    SwitchEffect::Keep => write!(f, "cell {cell} keeps context at switch {switch}"),
                    SwitchEffect::Load(phase) => {
                        write!(f, "cell {cell} loads {phase} at switch {switch}")
                    }
                };
            }
        };
        if from == 0 { Ok(()) } else { write!(f, " at {from}") }
    }
}

impl PlannedFault {
    /// Whether a part stops for ever.
    pub(crate) fn is_permanent_stop(&self) -> bool {
        matches!(self, Self::Stop { clocks: None, .. })
    }

    /// The kind of the fault, for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stop { part: FaultyPart::Link(..), clocks: None, .. } => "link dead",
            Self::Stop { part: FaultyPart::Cell(..), clocks: None, .. } => "cell dead",
            Self::Stop { part: FaultyPart::Link(..), .. } => "link stalled",
            Self::Stop { part: FaultyPart::Cell(..), .. } => "cell stalled",
            Self::Slow { .. } => "cell slow",
            Self::Words { effect: WordEffect::Drop, repeats: false, .. } => "word dropped",
            Self::Words { effect: WordEffect::Drop, .. } => "all words dropped",
            Self::Words { effect: WordEffect::Duplicate, repeats: false, .. } => "word duplicated",
            Self::Words { effect: WordEffect::Duplicate, .. } => "all words duplicated",
            Self::Words { effect: WordEffect::Corrupt, repeats: false, .. } => "word corrupted",
            Self::Words { effect: WordEffect::Corrupt, .. } => "all words corrupted",
            Self::Words { effect: WordEffect::Reorder, repeats: false, .. } => "word reordered",
            Self::Words { effect: WordEffect::Reorder, .. } => "all words reordered",
            Self::Switch { effect: SwitchEffect::Miss, .. } => "cell misses a switch",
            Self::Switch { effect: SwitchEffect::Late(_), .. } => "cell late at a switch",
            Self::Switch { effect: SwitchEffect::Keep, .. } => "stale context",
            Self::Switch { effect: SwitchEffect::Load(_), .. } => "wrong context",
        }
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

/// A plan that cannot be read, or that names a part which the machine does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultPlanError {
    /// A line is not a fault.
    #[error("line {line}: expected {expected}, found {found}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What was expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The machine has no such part that works.
    #[error("{0}: the machine has no such link that works; expected two neighbours")]
    NoLink(FaultyPart),
    /// The machine has no such cell that works.
    #[error("{0}: the machine has no such cell that works")]
    NoCell(FaultyPart),
    /// The cell has no agent.
    #[error("{0}: a switch has no agent; expected a cell with an agent, or `dead`")]
    NoAgent(FaultyPart),
}

impl FromStr for FaultPlan {
    type Err = FaultPlanError;

    fn from_str(text: &str) -> Result<Self, FaultPlanError> {
        let mut faults = Vec::new();
        for (row, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = Words { line: row + 1, words: line.split_whitespace() };
            let Some(kind) = words.words.next() else { continue };
            faults.push(words.fault(kind)?);
        }
        Ok(Self { faults })
    }
}

/// The words of a line.
struct Words<'a> {
    line: usize,
    words: std::str::SplitWhitespace<'a>,
}

const NUMBER: &str = "a number";
const CLOCKS: &str = "a number of clocks";
const OF_LINK: &str = "`dead`, `stalled CLOCKS`, `drops`, `duplicates`, `corrupts` or `reorders`";
const OF_CELL: &str = "`dead`, `stalled CLOCKS`, `slow CLOCKS`, `misses switch N`, \
     `late CLOCKS at switch N`, `keeps context at switch N` or `loads PHASE at switch N`";

impl<'a> Words<'a> {
    fn fault(&mut self, kind: &str) -> Result<PlannedFault, FaultPlanError> {
        let fault = match kind {
            "cell" => self.of_cell()?,
            "link" => self.of_link()?,
            other => return Err(self.error("`link` or `cell`", Some(other))),
        };
        match self.words.next() {
            None => Ok(fault),
            Some(other) => Err(self.error("the end of the line", Some(other))),
        }
    }

    fn of_link(&mut self) -> Result<PlannedFault, FaultPlanError> {
        let source = self.cell()?;
        self.keyword("->", "`->` and the cell to which the link leads")?;
        let target = self.cell()?;
        let part = FaultyPart::Link(source, target);
        let effect = match self.words.next() {
            Some("dead") => return self.stop(part, true),
            Some("stalled") => return self.stop(part, false),
            Some("drops") => WordEffect::Drop,
            Some("duplicates") => WordEffect::Duplicate,
            Some("corrupts") => WordEffect::Corrupt,
            Some("reorders") => WordEffect::Reorder,
            other => return Err(self.error(OF_LINK, other)),
        };
        let expected = "`word N` or `words from N`";
        let repeats = self.next(expected, |word| match word {
            "word" => Some(false),
            "words" => Some(true),
            _ => None,
        })?;
        if repeats {
            self.keyword("from", "`from N`")?;
        }
        let word = self.number(NUMBER)?;
        Ok(PlannedFault::Words { source, target, effect, word, repeats })
    }

    fn of_cell(&mut self) -> Result<PlannedFault, FaultPlanError> {
        let cell = self.cell()?;
        let part = FaultyPart::Cell(cell);
        let effect = match self.words.next() {
            Some("dead") => return self.stop(part, true),
            Some("stalled") => return self.stop(part, false),
            Some("slow") => {
                let clocks = self.number(CLOCKS)?;
                return Ok(PlannedFault::Slow { cell, clocks, from: self.from()? });
            }
            Some("misses") => {
                self.keyword("switch", "`switch N`")?;
                let switch = self.number(NUMBER)?;
                return Ok(PlannedFault::Switch { cell, effect: SwitchEffect::Miss, switch });
            }
            Some("late") => SwitchEffect::Late(self.number(CLOCKS)?),
            Some("keeps") => {
                self.keyword("context", "`context at switch N`")?;
                SwitchEffect::Keep
            }
            Some("loads") => SwitchEffect::Load(self.next("a phase such as p1", |word| {
                word.strip_prefix('p')?.parse().ok().map(PhaseId)
            })?),
            other => return Err(self.error(OF_CELL, other)),
        };
        self.keyword("at", "`at switch N`")?;
        self.keyword("switch", "`switch N`")?;
        Ok(PlannedFault::Switch { cell, effect, switch: self.number(NUMBER)? })
    }

    fn stop(&mut self, part: FaultyPart, dead: bool) -> Result<PlannedFault, FaultPlanError> {
        let clocks = if dead { None } else { Some(self.number(CLOCKS)?) };
        Ok(PlannedFault::Stop { part, from: self.from()?, clocks })
    }

    /// The clock from which a fault acts, 0 if none is given.
    fn from(&mut self) -> Result<u64, FaultPlanError> {
        match self.words.next() {
            None => Ok(0),
            Some("at") => self.number("a clock"),
            Some(other) => Err(self.error("`at CLOCK` or the end of the line", Some(other))),
        }
    }

    fn cell(&mut self) -> Result<CellId, FaultPlanError> {
        let number = |word: &str| word.strip_prefix('c')?.parse().ok().map(CellId);
        self.next("a cell such as c3", number)
    }

    fn number(&mut self, expected: &'static str) -> Result<u64, FaultPlanError> {
        self.next(expected, |word| word.parse().ok())
    }

    fn keyword(&mut self, keyword: &str, expected: &'static str) -> Result<(), FaultPlanError> {
        self.next(expected, |word| (word == keyword).then_some(()))
    }

    fn next<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, FaultPlanError> {
        let word = self.words.next();
        word.and_then(read).ok_or_else(|| self.error(expected, word))
    }

    fn error(&self, expected: &'static str, found: Option<&str>) -> FaultPlanError {
        let found =
            found.map_or_else(|| "the end of the line".to_owned(), |word| format!("`{word}`"));
        FaultPlanError::Line { line: self.line, expected, found }
    }
}
