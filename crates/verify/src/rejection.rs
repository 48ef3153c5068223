//! Rejections: the violations that the checker found, each with its rule and location.
//!
//! A [`Rejection`] lists the first [`Rejection::LISTED`] violations in the order of the checks and
//! counts all of them by rule, so that many violations of one rule cannot hide another rule. A
//! violation has its location (set, phase, cell, connection) as fields for programs and as one line
//! for people. Messages are formatted only for listed violations.

use std::fmt;

use conset_ir::convert::to_u64;
use conset_ir::{CellId, ConnectionId, PhaseId, StepId};

macro_rules! define_rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// A rule of the checker. The documentation of the crate states each formally.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All rules, in the order of the checks.
            pub const ALL: &'static [Rule] = &[$(Rule::$rule,)*];

            /// The name of the rule in messages, reports and JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)*
                }
            }
        }
    };
}

define_rules! {
    /// An id that is out of range, or arrays whose lengths do not match.
    Shape = "shape",
    /// A connection that no phase carries, or whose routes do not carry each of its words once.
    Coverage = "coverage",
    /// A route that does not start at the source of its connection and end at its target, or an end
    /// that is not a live cell with an agent.
    Ends = "ends",
    /// A message with words that its source does not have: neither its own nor received by an earlier
    /// operation.
    Holding = "holding",
    /// Consecutive cells of a route that its link does not join in that direction.
    Adjacency = "adjacency",
    /// A dead cell or dead link on a route.
    Dead = "dead",
    /// A route that visits a cell twice.
    SimpleRoute = "simple-route",
    /// A cell with more routes in a phase than it has channels.
    Capacity = "capacity",
    /// A channel number that the cell does not have, or that is reserved for the system.
    ChannelRange = "channel-range",
    /// A channel of a cell that two routes of a phase use.
    DoubleBooking = "double-booking",
    /// An ordering constraint that phases, slots or lists violate.
    Order = "order",
    /// A connection with less guaranteed bandwidth than it requires.
    Bandwidth = "bandwidth",
    /// A connection whose words can take longer than it permits.
    Latency = "latency",
    /// A slot too short for its words, or times beyond [`conset_ir::limits::TIME`].
    Duration = "duration",
    /// A time at which an agent has more streams open than it can hold.
    AgentOverlap = "agent-overlap",
    /// A phase whose makespan is not the end of its last slot.
    Makespan = "makespan",
    /// A bound of a schedule that is not proved, or an impossible prediction.
    Claim = "claim",
    /// A digest of a schedule that is not that of its machine and its sets.
    Digest = "digest",
    /// Cells that do not all participate in the same phases.
    Barrier = "barrier",
    /// A forwarding table with two entries for one channel.
    Table = "table",
    /// A forward into a channel without a matching entry, or an entry fed by a link from which no
    /// entry, or more than one, forwards into it: for example, an entry of another context.
    Chain = "chain",
    /// A gate at a cell that is not an end of its connection, or gates of different connections at
    /// the ends of one route.
    Gate = "gate",
    /// Entries that forward to each other in a cycle and are not reached from a gate.
    Cycle = "cycle",
    /// An operation without its gate, or a gate without exactly one operation.
    Operation = "operation",
    /// Word ranges that differ between sender and receiver, overlap, leave a gap, or decrease in a
    /// later phase.
    Words = "words",
    /// Operation lists in which a message is missing, at a wrong cell or in another order at one end.
    Pairing = "pairing",
    /// Planned starts that differ between sender and receiver.
    Start = "start",
    /// An operation list that is not ordered by planned start.
    ListOrder = "list-order",
    /// Operation lists that wait for each other in a cycle, whatever the capacity of the channels.
    Deadlock = "deadlock",
    /// Operation lists that complete only with sufficient capacity of the channels.
    Undecided = "undecided",
    /// An image that differs from the verified timetable.
    Lift = "lift",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violation of a rule, and its location.
///
/// A record with public fields to read. It is `#[non_exhaustive]`: only the checker makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The name of the connection set.
    pub set: String,
    /// The phase, if the violation concerns one.
    pub phase: Option<PhaseId>,
    /// The step, if the violation concerns one.
    pub step: Option<StepId>,
    /// The cell, if the violation concerns one.
    pub cell: Option<CellId>,
    /// The connection, if the violation concerns one.
    pub connection: Option<ConnectionId>,
    /// What is wrong and what was expected: one line without a full stop.
    pub message: String,
}

impl fmt::Display for Violation {
    /// `capacity: halo/p2: c5: 13 routes on a cell of 12 channels`, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.set)?;
        if let Some(phase) = self.phase {
            write!(f, "/{phase}")?;
        }
        if let Some(step) = self.step {
            write!(f, "/{step}")?;
        }
        f.write_str(": ")?;
        if let Some(cell) = self.cell {
            write!(f, "{cell}: ")?;
        }
        if let Some(connection) = self.connection {
            write!(f, "{connection}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The violations because of which the checker refused a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    violations: Vec<Violation>,
    counts: Vec<(Rule, u64)>,
}

impl Rejection {
    /// The greatest number of listed violations.
    pub const LISTED: usize = 100;

    /// The first [`Rejection::LISTED`] violations, in the order of the checks.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The number of violations, listed or not.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|row| row.1).sum()
    }

    /// The violated rules and the number of violations of each, in the order of [`Rule::ALL`].
    pub fn counts(&self) -> &[(Rule, u64)] {
        &self.counts
    }

    /// The violated rules, in the order of [`Rule::ALL`].
    pub fn rules(&self) -> Vec<Rule> {
        self.counts.iter().map(|row| row.0).collect()
    }

    /// Whether this rule was violated.
    pub fn breaks(&self, rule: Rule) -> bool {
        self.counts.iter().any(|row| row.0 == rule)
    }
}

impl fmt::Display for Rejection {
    /// A line with the number of violations, then one line for each listed violation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        write!(
            f,
            "rejected by the checker: {total} violation{}",
            if total == 1 { "" } else { "s" }
        )?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        let more = total - to_u64(self.violations.len());
        if more > 0 {
            let counts: Vec<String> =
                self.counts.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
            write!(f, "\n  and {more} more; in all: {}", counts.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejection {}

/// The location of a violation within the set being checked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Location {
    phase: Option<PhaseId>,
    step: Option<StepId>,
    cell: Option<CellId>,
    connection: Option<ConnectionId>,
}

impl Location {
    pub(crate) fn set() -> Self {
        Self::default()
    }

    pub(crate) fn phase(phase: PhaseId) -> Self {
        Self { phase: Some(phase), ..Self::default() }
    }

    pub(crate) fn step(step: StepId) -> Self {
        Self { step: Some(step), ..Self::default() }
    }

    pub(crate) fn cell(self, cell: CellId) -> Self {
        Self { cell: Some(cell), ..self }
    }

    pub(crate) fn connection(self, connection: ConnectionId) -> Self {
        Self { connection: Some(connection), ..self }
    }
}

/// The violations found so far.
pub(crate) struct Findings {
    set: String,
    violations: Vec<Violation>,
    /// By position in [`Rule::ALL`].
    counts: Vec<u64>,
}

impl Findings {
    pub(crate) fn new() -> Self {
        Self { set: String::new(), violations: Vec::new(), counts: vec![0; Rule::ALL.len()] }
    }

    /// Sets the set of the following violations.
    pub(crate) fn enter_set(&mut self, name: &str) {
        name.clone_into(&mut self.set);
    }

    /// Adds a violation; `message` is only called if the violation is listed.
    pub(crate) fn add(&mut self, rule: Rule, location: Location, message: impl FnOnce() -> String) {
        let position = Rule::ALL.binary_search(&rule).expect("rules are in the order of the enum");
        self.counts[position] += 1;
        if self.violations.len() < Rejection::LISTED {
            let Location { phase, step, cell, connection } = location;
            let (set, message) = (self.set.clone(), message());
            self.violations.push(Violation { rule, set, phase, step, cell, connection, message });
        }
    }

    /// Number of violations so far, listed or not.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// `Err` if there is a violation.
    pub(crate) fn finish(self) -> Result<(), Rejection> {
        if self.total() == 0 {
            return Ok(());
        }
        let counts = Rule::ALL
            .iter()
            .zip(self.counts)
            .filter(|(_, count)| *count > 0)
            .map(|(&rule, count)| (rule, count))
            .collect();
        Err(Rejection { violations: self.violations, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rule: Rule, times: usize) -> Rejection {
        let mut findings = Findings::new();
        findings.enter_set("halo");
        (0..times).for_each(|_| findings.add(rule, Location::set(), || "wrong".to_owned()));
        findings.finish().unwrap_err()
    }

    #[test]
    fn violations_name_their_place() {
        let mut findings = Findings::new();
        findings.enter_set("halo");
        let phase = Location::phase(PhaseId(2)).cell(CellId(5)).connection(ConnectionId(7));
        let step = Location::step(StepId(3)).connection(ConnectionId(7)).cell(CellId(5));
        for location in [phase, step, Location::set(), Location::set().cell(CellId(5))] {
            findings.add(Rule::Capacity, location, || "full".to_owned());
        }
        let rejection = findings.finish().unwrap_err();
        let lines: Vec<String> = rejection.violations().iter().map(ToString::to_string).collect();
        let (phase, step) = (PhaseId(2), StepId(3));
        assert_eq!(
            lines,
            [
                format!("capacity: halo/{phase}: {}: {}: full", CellId(5), ConnectionId(7)),
                format!("capacity: halo/{step}: {}: {}: full", CellId(5), ConnectionId(7)),
                "capacity: halo: full".to_owned(),
                format!("capacity: halo: {}: full", CellId(5)),
            ]
        );
    }

    #[test]
    fn all_violations_are_counted_and_some_are_listed() {
        let one = refused(Rule::Order, 1);
        let line = "order: halo: wrong";
        assert_eq!(one.to_string(), format!("rejected by the checker: 1 violation\n  {line}"));
        let most = refused(Rule::Order, Rejection::LISTED);
        let text =
            format!("rejected by the checker: 100 violations{}", format!("\n  {line}").repeat(100));
        assert_eq!((most.violations().len(), most.to_string()), (100, text.clone()));
        let more = refused(Rule::Order, Rejection::LISTED + 2);
        assert_eq!((more.violations().len(), more.total()), (100, 102));
        let text = text.replace("100", "102");
        assert_eq!(more.to_string(), format!("{text}\n  and 2 more; in all: order 102"));
        assert_eq!((more.rules(), more.counts()), (vec![Rule::Order], &[(Rule::Order, 102)][..]));
        assert!(more.breaks(Rule::Order) && !more.breaks(Rule::Claim));
    }
}
