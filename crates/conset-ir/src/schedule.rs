//! Schedules: compiled programs, with a timetable, lower bounds and a predicted time for each set.
//!
//! `conset compile` writes schedules (`docs/format.md`). Bounds and predictions are claims of the
//! program that made the schedule. The checker proves them again and refuses what it cannot prove;
//! for that the schedule has witnesses. Its digest identifies the program that was compiled.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::digest;
use crate::error::ShapeError;
use crate::limits;
use crate::machine::Machine;
use crate::part_map::PartMap;
use crate::set::{ConnectionSet, Program};
use crate::timetable::Timetable;
use crate::witness::Proof;

/// The lower bound that is the greatest, and so determines the bound of a set.
///
/// The enum is exhaustive: a new bound needs a new proof in the checker and a new format version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// None: the set is empty, or the bound is not stated.
    #[default]
    Nothing,
    /// Phases: the connection ends on the busiest cell, divided by its channels.
    Endpoints,
    /// Phases: the channels that shortest routes need in all, divided by all channels of the
    /// machine.
    ChannelTotal,
    /// Clocks: chains of ordered connections, and the load between their ends.
    Order,
    /// Clocks: the words and stream set-ups of the busiest agent.
    AgentLoad,
    /// Clocks: the word-hops of shortest routes, divided by all links.
    AverageLink,
    /// Clocks: the words that must cross a cut between two parts of a dimension.
    DimensionCut,
    /// Clocks: the words that must cross the best bisection found.
    Bisection,
    /// Phases: the least total price of routes, where each cell has a price (the dual of a
    /// multicommodity flow).
    ChannelFlow,
    /// Clocks: the least total price of the words' routes, where each link has a price (the dual
    /// of a multicommodity flow).
    LinkFlow,
    /// Clocks: the least total price of the words' routes, where each link and each channel has a
    /// price, less the price of the channels of all phases.
    ChannelLinkFlow,
    /// Clocks: in each phase the time of a word over the longest route, where channels limit how
    /// many long routes a phase has.
    Latency,
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
            Binding::ChannelLinkFlow => "channel-link-flow",
            Binding::Latency => "latency",
        }
    }

    /// Parses the spelling.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|binding| binding.name() == name)
    }

    /// All bounds.
    pub const ALL: [Binding; 12] = [
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
        Binding::ChannelLinkFlow,
        Binding::Latency,
    ];
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Lower bounds of a set on a machine.
///
/// A record with public fields, one object of a file. It holds claims, so no combination of values
/// is ruled out; the checker proves or refuses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Every schedule of the set has at least this many phases.
    pub phases: u32,
    /// The bound that determines `phases`.
    pub phases_by: Binding,
    /// Every schedule of the set takes at least this many clocks, switches included.
    pub clocks: u64,
    /// The bound that determines `clocks`.
    pub clocks_by: Binding,
}

/// A compiled set.
///
/// A record with public fields, one object of a file: the timetable has private fields, the others
/// are claims for the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSchedule {
    /// Routes and times; it holds the set and the machine.
    pub timetable: Timetable,
    /// Lower bounds of the set.
    pub bounds: Bounds,
    /// Proofs of the bounds.
    pub proof: Proof,
    /// The time of the set according to the cost model, with context switches and link sharing.
    pub predicted_clocks: u64,
}

/// The program, algorithm and seed that produced a schedule.
///
/// A record with public fields, one object of a file; [`Schedule::new`] checks the texts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The name and version of the program.
    pub generator: String,
    /// The algorithm, such as `paper` or `best`.
    pub algorithm: String,
    /// The seed of its random numbers.
    pub seed: u64,
}

impl Origin {
    /// Checks that the texts are short and have no control characters.
    pub(crate) fn check(&self) -> Result<(), ShapeError> {
        let wrong =
            |text: &&String| text.len() > limits::NAME || text.chars().any(char::is_control);
        match [&self.generator, &self.algorithm].into_iter().find(wrong) {
            None => Ok(()),
            Some(long) => Err(ShapeError::new(
                "origin",
                format!(
                    "a text of {} bytes, expected at most {} and no control characters",
                    long.len(),
                    limits::NAME
                ),
            )),
        }
    }
}

/// A compiled set of a [`ScheduleOf`]: of phases or of steps.
pub trait ScheduledSet: Sized {
    /// The connection set.
    fn set(&self) -> &Arc<ConnectionSet>;

    /// The machine that it was compiled for.
    fn machine(&self) -> &Arc<Machine>;

    /// Checks what programs of this kind require of their sets together.
    ///
    /// # Errors
    /// What they require.
    fn check(_sets: &[Self]) -> Result<(), ShapeError> {
        Ok(())
    }
}

impl ScheduledSet for SetSchedule {
    fn set(&self) -> &Arc<ConnectionSet> {
        self.timetable.routing().set()
    }

    fn machine(&self) -> &Arc<Machine> {
        self.timetable.routing().machine()
    }
}

/// A program compiled to phases: the schedules of its sets, for one machine.
pub type Schedule = ScheduleOf<SetSchedule>;

/// A compiled program, of phases ([`Schedule`]) or of steps ([`StepSchedule`](crate::StepSchedule)):
/// its sets, for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleOf<S> {
    machine: Arc<Machine>,
    sets: Vec<S>,
    origin: Option<Origin>,
    digest: Option<u64>,
    part_map: Option<PartMap>,
}

impl<S: ScheduledSet> ScheduleOf<S> {
    /// Combines compiled sets.
    ///
    /// # Errors
    /// A set that was compiled for another machine, two sets of the same name, too many sets (or, of
    /// steps, none), or an origin with a text that is too long or has control characters.
    pub fn new(
        machine: Arc<Machine>,
        sets: Vec<S>,
        origin: Option<Origin>,
    ) -> Result<Self, ShapeError> {
        S::check(&sets)?;
        origin.iter().try_for_each(Origin::check)?;
        for (row, set) in sets.iter().enumerate() {
            let own = set.machine();
            // Comparing machines takes long on graphs with millions of links.
            if !Arc::ptr_eq(own, &machine) && *own != machine {
                return Err(ShapeError::new(
                    format!("sets[{row}]"),
                    "compiled for another machine than the schedule's",
                ));
            }
        }
        // This checks the names and the number of sets.
        Program::new(sets.iter().map(|s| s.set().clone()).collect())?;
        Ok(Self { machine, sets, origin, digest: None, part_map: None })
    }

    /// The same schedule with the digest of its program.
    #[must_use]
    pub fn with_digest(self) -> Self {
        let digest = self.recomputed_digest();
        self.with_stated_digest(Some(digest))
    }

    /// The same schedule with a given digest, which the checker compares with
    /// [`ScheduleOf::recomputed_digest`].
    #[must_use]
    pub fn with_stated_digest(self, digest: Option<u64>) -> Self {
        Self { digest, ..self }
    }

    /// The stated digest of the program that was compiled, if any.
    pub fn digest(&self) -> Option<u64> {
        self.digest
    }

    /// The digest of the program in this schedule.
    pub fn recomputed_digest(&self) -> u64 {
        digest(&self.machine, self.sets.iter().map(|s| &**s.set()))
    }

    /// The same schedule with the parts and node numbers of the input that it was compiled from.
    ///
    /// # Errors
    /// A part on a cell that is not a cell with an agent.
    pub fn with_part_map(self, part_map: Option<PartMap>) -> Result<Self, ShapeError> {
        if let Some(map) = &part_map {
            map.check(self.machine.agent_count())?;
        }
        Ok(Self { part_map, ..self })
    }

    /// The parts and node numbers of the input, if it was divided into parts.
    pub fn part_map(&self) -> Option<&PartMap> {
        self.part_map.as_ref()
    }

    /// The machine of the schedule.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The compiled sets, in the order of execution.
    pub fn sets(&self) -> &[S] {
        &self.sets
    }

    /// The program, algorithm and seed that produced it, if known.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The program without its compilation: the connection sets.
    pub fn program(&self) -> Program {
        Program::new(self.sets.iter().map(|s| s.set().clone()).collect())
            .expect("names were checked when the schedule was built")
    }
}
