//! Tables 1 to 3 of the CM-5 paper: the schedules of three complete exchanges on 8 processors.

use std::sync::Arc;

use conset_ir::{StepId, Steps};
use conset_mesh::patterns;
use conset_scheduler::steps::{Levels, StepOrder};
use serde::{Serialize, Serializer};

use super::{machine, planner_bug};
use crate::CompileError;

const PROCESSORS: u32 = 8;

/// A table of the paper.
struct Table {
    number: u8,
    algorithm: &'static str,
    radices: &'static [u32],
    order: StepOrder,
    /// The pairs of each step.
    steps: &'static [&'static str],
}

const TABLES: [Table; 3] = [
    Table {
        number: 1,
        algorithm: "PEX",
        radices: &[PROCESSORS],
        order: StepOrder::Pairwise,
        steps: &[
            "0-1 2-3 4-5 6-7",
            "0-2 1-3 4-6 5-7",
            "0-3 1-2 4-7 5-6",
            "0-4 1-5 2-6 3-7",
            "0-5 1-4 2-7 3-6",
            "0-6 1-7 2-4 3-5",
            "0-7 1-6 2-5 3-4",
        ],
    },
    Table {
        number: 2,
        algorithm: "REX",
        radices: &[2, 2, 2],
        order: StepOrder::Pairwise,
        steps: &["0-4 1-5 2-6 3-7", "0-2 1-3 4-6 5-7", "0-1 2-3 4-5 6-7"],
    },
    Table {
        number: 3,
        algorithm: "BEX",
        radices: &[PROCESSORS],
        order: StepOrder::Balanced,
        steps: &[
            "0-7 1-2 3-4 5-6",
            "0-2 1-7 3-5 4-6",
            "0-1 2-7 3-6 4-5",
            "0-4 1-5 2-6 3-7",
            "0-3 1-6 2-5 4-7",
            "0-6 1-3 2-4 5-7",
            "0-5 1-4 2-3 6-7",
        ],
    },
];

/// A schedule that the paper prints, beside ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PaperSchedule {
    /// The number of the table.
    pub number: u8,
    /// The algorithm's name in the paper.
    pub algorithm: &'static str,
    /// Processors.
    pub processors: u32,
    /// The steps of whichever schedule has more.
    pub steps: Vec<ScheduleStep>,
}

/// The pairs of processors that exchange messages in a step, by their numbers, the lower first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScheduleStep {
    /// Ours.
    #[serde(serialize_with = "spelled")]
    pub ours: Vec<(u32, u32)>,
    /// The paper's.
    #[serde(serialize_with = "spelled")]
    pub paper: Vec<(u32, u32)>,
    /// Whether they are equal.
    pub equal: bool,
}

fn spelled<S: Serializer>(pairs: &[(u32, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&ScheduleStep::spell(pairs))
}

impl ScheduleStep {
    /// Pairs as the paper prints them: `0-1 2-3`.
    pub fn spell(pairs: &[(u32, u32)]) -> String {
        let pairs: Vec<String> = pairs.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        pairs.join(" ")
    }
}

impl PaperSchedule {
    /// Whether all steps are equal.
    pub fn is_equal(&self) -> bool {
        self.steps.iter().all(|step| step.equal)
    }
}

/// Tables 1 to 3, or one of them.
///
/// # Errors
/// A bug of the planner.
pub fn schedules(number: Option<u8>) -> Result<Vec<PaperSchedule>, CompileError> {
    let machine = machine(PROCESSORS)?;
    let set = Arc::new(patterns::generate("all-to-all", &machine, 1)?);
    let wanted = TABLES.iter().filter(|table| number.is_none_or(|number| number == table.number));
    let schedule = |table: &Table| {
        let planner = Levels::new(&machine, table.radices, table.order);
        let planner = planner.map_err(|e| planner_bug(&e))?;
        let protocol = machine.parameters().protocol;
        // These orders price no links.
        let steps = planner.plan(&machine, &set, protocol, &mut |_, _, _| ());
        let ours = pairs(&steps.map_err(|e| planner_bug(&e))?);
        let paper: Vec<Vec<(u32, u32)>> = table.steps.iter().map(|step| parsed(step)).collect();
        let none = Vec::new();
        let row = |at: usize| {
            let [ours, paper] = [&ours, &paper].map(|steps| steps.get(at).unwrap_or(&none).clone());
            ScheduleStep { equal: ours == paper, ours, paper }
        };
        let steps = (0..ours.len().max(paper.len())).map(row).collect();
        let Table { number, algorithm, .. } = *table;
        Ok(PaperSchedule { number, algorithm, processors: PROCESSORS, steps })
    };
    wanted.map(schedule).collect()
}

/// The pairs of each step, by the lower number.
fn pairs(steps: &Steps) -> Vec<Vec<(u32, u32)>> {
    let of_step = |step| {
        let messages = steps.messages().of_step(step).map(|row| steps.messages().get(row));
        let ends = messages.map(|message| (message.source.0, message.target.0));
        let mut pairs: Vec<_> = ends.map(|(a, b)| (a.min(b), a.max(b))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    };
    (0..steps.messages().steps()).map(StepId::from_index).map(of_step).collect()
}

fn parsed(step: &str) -> Vec<(u32, u32)> {
    let pair = |pair: &str| {
        let (a, b) = pair.split_once('-')?;
        Some((a.parse().ok()?, b.parse().ok()?))
    };
    step.split(' ').filter_map(pair).collect()
}
