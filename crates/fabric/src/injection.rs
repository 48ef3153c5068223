//! Faults of the hardware on purpose: parts of the machine that stop at a given clock.
//!
//! A [`FaultPlan`] is a text file of one fault a line, in which `#` begins a comment:
//!
//! ```text
//! link c0 -> c1 dead            # from the beginning
//! cell c3 dead at 700
//! cell c2 stalled 500 at 600
//! link c5 -> c4 stalled 40
//! ```
//!
//! | fault | what stops |
//! |---|---|
//! | `link A -> B` | all parallel links from the first cell to the second; a word on its way still arrives |
//! | `cell C dead` | the agent of the cell, and all links from and to it |
//! | `cell C stalled` | the agent of the cell; its links carry the words of others |
//!
//! A dead part stops for ever, a stalled one for the given clocks. Clocks are counted from the loading of the
//! image. A fault that falls into a context switch acts when the switch is over; that a cell misses the switch
//! itself is not modelled. No word changes or gets lost: with a stall everything arrives, later; without a
//! part that it needs, an exchange ends in a deadlock whose last wait names the part.
//!
//! A stopped link or port is one that is not idle and not on the ready list: nothing serves it, and the loops that
//! move words need not know about faults. Only its next turn has to be kept for the end of the stall. A machine
//! with a plan does not skip periods.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use conset_ir::convert::to_u32;
use conset_ir::{CellId, Machine};

/// Faults of the hardware, in any order.
///
/// ```
/// use conset_fabric::FaultPlan;
///
/// let plan: FaultPlan = "cell c2 stalled 500 at 600\nlink c0 -> c1 dead".parse()?;
/// assert_eq!(plan.to_string(), "cell c2 stalled 500 at 600\nlink c0 -> c1 dead\n");
/// let error = "cell c2\n".parse::<FaultPlan>().unwrap_err();
/// assert_eq!(error.to_string(), "line 1: expected `dead` or `stalled CLOCKS`, found the end of the line");
/// # Ok::<(), conset_fabric::FaultPlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The faults; printed one a line.
    pub faults: Vec<PlannedFault>,
}

/// A part of the machine that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// The part.
    pub part: FaultyPart,
    /// From this clock.
    pub from: u64,
    /// For so many clocks; `None` for ever.
    pub clocks: Option<u64>,
}

/// What stops.
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

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PlannedFault { part, from, clocks } in &self.faults {
            write!(f, "{part} ")?;
            match clocks {
                None => write!(f, "dead")?,
                Some(clocks) => write!(f, "stalled {clocks}")?,
            }
            match from {
                0 => writeln!(f)?,
                from => writeln!(f, " at {from}")?,
            }
        }
        Ok(())
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
    /// The cell has no agent that could stall.
    #[error(
        "{0}: a switch has no agent that could stall; expected a cell with an agent, or `dead`"
    )]
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

impl Words<'_> {
    fn fault(&mut self, kind: &str) -> Result<PlannedFault, FaultPlanError> {
        let part = match kind {
            "cell" => FaultyPart::Cell(self.cell()?),
            "link" => {
                let source = self.cell()?;
                self.next("`->` and the cell to which the link leads", |word| {
                    (word == "->").then_some(())
                })?;
                FaultyPart::Link(source, self.cell()?)
            }
            other => return Err(self.error("`link` or `cell`", Some(other))),
        };
        let what = "`dead` or `stalled CLOCKS`";
        let is_dead = self.next(what, |word| match word {
            "dead" => Some(true),
            "stalled" => Some(false),
            _ => None,
        })?;
        let clocks = if is_dead { None } else { Some(self.number()?) };
        let from = match self.words.next() {
            None => 0,
            Some("at") => self.number()?,
            Some(other) => return Err(self.error("`at CLOCK` or the end of the line", Some(other))),
        };
        match self.words.next() {
            None => Ok(PlannedFault { part, from, clocks }),
            Some(other) => Err(self.error("the end of the line", Some(other))),
        }
    }

    fn cell(&mut self) -> Result<CellId, FaultPlanError> {
        let number = |word: &str| word.strip_prefix('c')?.parse().ok().map(CellId);
        self.next("a cell such as c3", number)
    }

    fn number(&mut self) -> Result<u64, FaultPlanError> {
        self.next("a number of clocks", |word| word.parse().ok())
    }

    fn next<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
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

/// Something that stops by itself: a link, or the agent of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Link(u32),
    Agent(CellId),
}

/// The plan of a machine, and what of it acts.
#[derive(Clone, Debug)]
pub(crate) struct Injection {
    /// What begins (`true`) and ends, by clock; the next one last.
    events: Vec<(u64, bool, Part)>,
    /// How many faults stop each part at present.
    stopped: BTreeMap<Part, u32>,
    /// Links and ports that stopped and would have had a turn.
    pub(crate) links: BTreeMap<u32, bool>,
    pub(crate) ports: BTreeMap<u32, bool>,
}

impl Injection {
    /// The plan for a machine, if that has all of its parts.
    pub(crate) fn new(plan: &FaultPlan, machine: &Machine) -> Result<Self, FaultPlanError> {
        let mut events = Vec::new();
        for &PlannedFault { part, from, clocks } in &plan.faults {
            for stopped in parts(part, clocks.is_none(), machine)? {
                let end = clocks.map(|clocks| from.saturating_add(clocks));
                events.push((from, true, stopped));
                events.extend(end.map(|end| (end, false, stopped)));
            }
        }
        // At one clock, what begins comes first, so that no count falls below 0.
        events.sort_by_key(|&(clock, begins, part)| (clock, !begins, part));
        events.reverse();
        let (links, ports) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { events, stopped: BTreeMap::new(), links, ports })
    }

    /// The clock of the next event.
    pub(crate) fn next(&self) -> Option<u64> {
        self.events.last().map(|event| event.0)
    }

    /// The clock at which the next stall ends, of the parts that are stopped now.
    pub(crate) fn next_end(&self) -> Option<u64> {
        let is_end = |event: &&(u64, bool, Part)| !event.1 && self.is_stopped(event.2);
        self.events.iter().rev().find(is_end).map(|event| event.0)
    }

    /// Takes the next event until clock `now` that changes whether a part works: the part, and whether it stops.
    pub(crate) fn take(&mut self, now: u64) -> Option<(Part, bool)> {
        while self.next().is_some_and(|clock| clock <= now) {
            let (_, begins, part) = self.events.pop()?;
            let count = self.stopped.entry(part).or_default();
            *count = if begins { *count + 1 } else { *count - 1 };
            let changes = *count == u32::from(begins);
            if *count == 0 {
                self.stopped.remove(&part);
            }
            if changes {
                return Some((part, begins));
            }
        }
        None
    }

    pub(crate) fn is_stopped(&self, part: Part) -> bool {
        self.stopped.contains_key(&part)
    }
}

/// Removes stopped numbers from those that would be served now, and notes that they have a turn.
pub(crate) fn keep_back<T>(
    stopped: &mut BTreeMap<u32, bool>,
    served: &mut Vec<T>,
    number: impl Fn(&T) -> u32,
) {
    served.retain(|one| match stopped.get_mut(&number(one)) {
        Some(turn) => {
            *turn = true;
            false
        }
        None => true,
    });
}

/// The parts of the machine that a fault stops.
fn parts(part: FaultyPart, dead: bool, machine: &Machine) -> Result<Vec<Part>, FaultPlanError> {
    let is_cell = |cell: CellId| cell.index() < machine.cell_count() && machine.is_alive(cell);
    let link = |id: conset_ir::LinkId| Part::Link(to_u32(id.index()));
    match part {
        FaultyPart::Link(source, target) => {
            if !is_cell(source) || !is_cell(target) {
                return Err(FaultPlanError::NoLink(part));
            }
            let links: Vec<Part> = machine.links_between(source, target).map(link).collect();
            if links.is_empty() { Err(FaultPlanError::NoLink(part)) } else { Ok(links) }
        }
        FaultyPart::Cell(cell) if !is_cell(cell) => Err(FaultPlanError::NoCell(part)),
        FaultyPart::Cell(cell) => {
            let agent = machine.is_endpoint(cell).then_some(Part::Agent(cell));
            if !dead {
                return agent.map(|agent| vec![agent]).ok_or(FaultPlanError::NoAgent(part));
            }
            let all = machine.cells().flat_map(|from| machine.outgoing(from)).copied();
            let ends = |id| (machine.link(id).source, machine.link(id).target);
            let links = all.filter(|&id| ends(id).0 == cell || ends(id).1 == cell).map(link);
            Ok(agent.into_iter().chain(links).collect())
        }
    }
}
