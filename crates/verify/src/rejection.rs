//! What the checker says when it refuses: every violation it found, each under the rule it broke.
//!
//! A [`Rejection`] lists the first [`Rejection::LISTED`] violations in the order of the checks and
//! counts them all, by rule, so that a flood under one rule cannot hide another. A violation names
//! its place (set, phase, cell, connection) in fields for programs and in one line for people.
//! Messages are only formatted for violations that are listed.

use std::fmt;

use conset_ir::{CellId, ConnectionId, PhaseId};

macro_rules! define_rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// A rule of the checker. The crate's documentation states each formally.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// Every rule, in the order of the checks.
            pub const ALL: &'static [Rule] = &[$(Rule::$rule,)*];

            /// The rule's name in messages, reports and JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)*
                }
            }
        }
    };
}

define_rules! {
    /// An id that is out of range, or arrays whose lengths do not fit together.
    Shape = "shape",
    /// A connection that no phase carries, or whose parts are not all of its words once.
    Coverage = "coverage",
    /// A route that does not start at its connection's source and end at its target, or an end
    /// that is no live cell with an agent.
    Ends = "ends",
    /// Consecutive cells that the route's link does not join in that direction.
    Adjacency = "adjacency",
    /// A dead cell or dead link on a route.
    Dead = "dead",
    /// A route that visits a cell twice.
    SimpleRoute = "simple-route",
    /// A cell that carries more routes in a phase than it has channels.
    Capacity = "capacity",
    /// A channel number the cell has not, or one that is in the system's reserve.
    ChannelRange = "channel-range",
    /// A channel of a cell that two routes of a phase hold.
    DoubleBooking = "double-booking",
    /// An ordering constraint that phases, slots or lists do not keep.
    Order = "order",
    /// A connection that is guaranteed less bandwidth than it requires.
    Bandwidth = "bandwidth",
    /// A connection whose words can travel longer than it allows.
    Latency = "latency",
    /// A slot too short for its words, or times beyond [`conset_ir::limits::TIME`].
    Duration = "duration",
    /// A moment at which an agent has more streams open than it can hold.
    AgentOverlap = "agent-overlap",
    /// A phase whose makespan is not the end of its last slot.
    Makespan = "makespan",
    /// A bound of a schedule that is not proved, or a prediction that cannot be.
    Claim = "claim",
    /// A digest of a schedule that is not that of its machine and its sets.
    Digest = "digest",
    /// Cells that do not all take part in the same phases.
    Barrier = "barrier",
    /// A forwarding table with two entries for one channel.
    Table = "table",
    /// A forward that no entry takes up, or an entry fed by a link over which nothing, or more
    /// than one thing, forwards into it: an entry left over from another context shows here.
    Chain = "chain",
    /// A gate at a cell that is not its connection's end, or two gates of different connections
    /// at the ends of one route.
    Gate = "gate",
    /// Entries that forward to each other in a ring, into which no gate leads.
    Cycle = "cycle",
    /// An operation without its gate, or a gate without exactly one operation.
    Operation = "operation",
    /// Word ranges that differ between sender and receiver, overlap, leave a gap, or go back in a
    /// later phase.
    Words = "words",
    /// Planned starts that differ between sender and receiver.
    Start = "start",
    /// An operation list that is not in the order of its planned starts.
    ListOrder = "list-order",
    /// Operation lists that wait for each other in a cycle, however much the channels hold.
    Deadlock = "deadlock",
    /// Operation lists that get through only if the channels hold enough.
    Undecided = "undecided",
    /// An image that does not say what the verified timetable says.
    Lift = "lift",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One broken rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The connection set's name.
    pub set: String,
    /// The phase, where it concerns one.
    pub phase: Option<PhaseId>,
    /// The cell, where it concerns one.
    pub cell: Option<CellId>,
    /// The connection, where it concerns one.
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

/// Why the checker refused a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The first [`Rejection::LISTED`] violations, in the order of the checks.
    pub violations: Vec<Violation>,
    counts: Vec<(Rule, u64)>,
}

impl Rejection {
    /// How many violations are listed at most.
    pub const LISTED: usize = 100;

    /// All violations, listed or not.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|row| row.1).sum()
    }

    /// The rules that were broken and how often, in the order of [`Rule::ALL`].
    pub fn counts(&self) -> &[(Rule, u64)] {
        &self.counts
    }

    /// The rules that were broken, in the order of [`Rule::ALL`].
    pub fn rules(&self) -> Vec<Rule> {
        self.counts.iter().map(|row| row.0).collect()
    }

    /// Whether this rule was broken.
    pub fn breaks(&self, rule: Rule) -> bool {
        self.counts.iter().any(|row| row.0 == rule)
    }
}

impl fmt::Display for Rejection {
    /// One line that counts, then one line for each listed violation.
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
        let more = total - self.violations.len() as u64;
        if more > 0 {
            let counts: Vec<String> =
                self.counts.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
            write!(f, "\n  and {more} more; in all: {}", counts.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejection {}

/// Where a violation is, within the set being checked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    phase: Option<PhaseId>,
    cell: Option<CellId>,
    connection: Option<ConnectionId>,
}

impl Place {
    pub(crate) fn set() -> Self {
        Self::default()
    }

    pub(crate) fn phase(phase: PhaseId) -> Self {
        Self { phase: Some(phase), ..Self::default() }
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
    counts: Vec<u64>,
}

impl Findings {
    pub(crate) fn new() -> Self {
        Self { set: String::new(), violations: Vec::new(), counts: vec![0; Rule::ALL.len()] }
    }

    /// From here on violations concern this set.
    pub(crate) fn enter_set(&mut self, name: &str) {
        name.clone_into(&mut self.set);
    }

    /// Notes a violation; `message` is only called if it will be listed.
    pub(crate) fn add(&mut self, rule: Rule, place: Place, message: impl FnOnce() -> String) {
        self.counts[rule as usize] += 1;
        if self.violations.len() < Rejection::LISTED {
            self.violations.push(Violation {
                rule,
                set: self.set.clone(),
                phase: place.phase,
                cell: place.cell,
                connection: place.connection,
                message: message(),
            });
        }
    }

    /// Number of violations so far, listed or not.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The verdict: `Err` if anything was found.
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
