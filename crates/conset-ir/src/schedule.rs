//! A compiled program: one timetable per set, with its lower bounds and its predicted price.
//!
//! This is what `conset compile` writes (`docs/format.md`). Bounds and prediction are claims of
//! whoever made the schedule; the checker believes no more of them than it can prove, for which
//! the schedule has witnesses. Its digest says which program it was made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::digest;
use crate::document::version_of;
use crate::error::ShapeError;
use crate::limits;
use crate::machine::Machine;
use crate::set::Program;
use crate::timetable::Timetable;
use crate::witness::Proof;

/// Which lower bound binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// The set is empty: nothing binds.
    Nothing,
    /// Phases: the ends of connections on the busiest cell, over its channels.
    Endpoints,
    /// Phases: channels that shortest routes need in all, over all channels of the machine.
    ChannelTotal,
    /// Clocks: chains of ordered connections, and what must be moved between their ends.
    Order,
    /// Clocks: the words (and stream set-ups) of the busiest agent.
    AgentLoad,
    /// Clocks: word-hops of shortest routes over all links.
    AverageLink,
    /// Clocks: words that must cross a cut between two halves of a dimension.
    DimensionCut,
    /// Clocks: words that must cross the best bisection found.
    Bisection,
    /// Phases: lengths given to cells, and how long routes then are at least.
    ChannelFlow,
    /// Clocks: lengths given to links, and how far words then travel at least.
    LinkFlow,
}

impl Binding {
    /// The spelling in JSON and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Binding::Nothing => "nothing",
            Binding::Endpoints => "endpoints",
            Binding::ChannelTotal => "channel-total",
            Binding::ChannelFlow => "channel-flow",
            Binding::Order => "order",
            Binding::AgentLoad => "agent-load",
            Binding::AverageLink => "average-link",
            Binding::DimensionCut => "dimension-cut",
            Binding::Bisection => "bisection",
            Binding::LinkFlow => "link-flow",
        }
    }

    /// Reads the spelling back.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|binding| binding.name() == name)
    }

    /// Every bound there is.
    pub const ALL: [Binding; 10] = [
        Binding::Nothing,
        Binding::Endpoints,
        Binding::ChannelTotal,
        Binding::Order,
        Binding::AgentLoad,
        Binding::AverageLink,
        Binding::DimensionCut,
        Binding::Bisection,
        Binding::ChannelFlow,
        Binding::LinkFlow,
    ];
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Lower bounds of a set on a machine (design, section 2), and which of them bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No schedule has fewer phases.
    pub phases: u32,
    /// What makes it so.
    pub phases_by: Binding,
    /// No schedule is over in fewer clocks, switches included.
    pub clocks: u64,
    /// What makes it so.
    pub clocks_by: Binding,
}

/// One compiled set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSchedule {
    /// Routes and times; carries the set and the machine.
    pub timetable: Timetable,
    /// The set's lower bounds.
    pub bounds: Bounds,
    /// What proves them.
    pub proof: Proof,
    /// What the cost model says the set takes, switches included, link sharing counted.
    pub predicted_clocks: u64,
}

/// How a schedule came about, so that it can be made again.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The program that wrote it, with its version.
    pub generator: String,
    /// The algorithm (`paper`, `best`).
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
}

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    machine: Arc<Machine>,
    sets: Vec<SetSchedule>,
    origin: Option<Origin>,
    digest: Option<u64>,
}

impl Schedule {
    /// Puts compiled sets together.
    ///
    /// # Errors
    /// A set that was compiled for another machine, two sets of one name, too many sets.
    pub fn new(
        machine: Arc<Machine>,
        sets: Vec<SetSchedule>,
        origin: Option<Origin>,
    ) -> Result<Self, ShapeError> {
        if let Some(long) = origin
            .iter()
            .flat_map(|o| [&o.generator, &o.algorithm])
            .find(|text| text.len() > limits::NAME || text.chars().any(char::is_control))
        {
            return Err(ShapeError::new(
                "origin",
                format!(
                    "a text of {} bytes, expected at most {} and no control characters",
                    long.len(),
                    limits::NAME
                ),
            ));
        }
        for (row, set) in sets.iter().enumerate() {
            let own = set.timetable.routing().machine();
            // A graph of millions of links is compared only where it is not the same one.
            if !Arc::ptr_eq(own, &machine) && *own != machine {
                return Err(ShapeError::new(
                    format!("sets[{row}]"),
                    "compiled for another machine than the schedule's",
                ));
            }
        }
        // Names are checked where programs are.
        Program::new(sets.iter().map(|s| s.timetable.routing().set().clone()).collect())?;
        Ok(Self { machine, sets, origin, digest: None })
    }

    /// The same with the digest of its program.
    #[must_use]
    pub fn with_digest(self) -> Self {
        let digest = self.recomputed_digest();
        self.with_stated_digest(Some(digest))
    }

    /// The same with a digest that somebody states.
    #[must_use]
    pub fn with_stated_digest(self, digest: Option<u64>) -> Self {
        Self { digest, ..self }
    }

    /// The digest of the program that it was made of, as whoever made it states it.
    pub fn digest(&self) -> Option<u64> {
        self.digest
    }

    /// The digest of the program that it holds.
    pub fn recomputed_digest(&self) -> u64 {
        digest(&self.machine, self.sets.iter().map(|s| &**s.timetable.routing().set()))
    }

    /// Whether it says what files of version 1 cannot say: a digest, or a witness.
    pub(crate) fn needs_version_2(&self) -> bool {
        self.digest.is_some() || self.sets.iter().any(|set| !set.proof.is_empty())
    }

    /// The least version of the text and JSON forms that knows everything in it.
    pub(crate) fn version(&self) -> u32 {
        if self.needs_version_2() { 2 } else { version_of(Some(&self.machine)) }
    }

    /// The machine it is for.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The compiled sets, in the order of execution.
    pub fn sets(&self) -> &[SetSchedule] {
        &self.sets
    }

    /// How it came about, where that is known.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The sets, uncompiled.
    pub fn program(&self) -> Program {
        Program::new(self.sets.iter().map(|s| s.timetable.routing().set().clone()).collect())
            .expect("names were checked when the schedule was built")
    }
}
