//! What a compile and a run amount to, as plain data: the objects behind `--json` and the texts.
//!
//! Bounds, prediction and measurement always stand together, with their ratio
//! and the model's error beside them.

use conset_ir::{Binding, Machine, SetSchedule};
use serde::Serialize;

use crate::best::Attempts;
use crate::compile::{Compiled, CompiledSet, bound_ratio};
use crate::from::FromOld;
use crate::input::PlacedHalo;

/// One compiled set in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct SetSummary {
    /// The set's name.
    pub set: String,
    /// Number of connections.
    pub connections: usize,
    /// Words of all connections.
    pub words: u64,
    /// Phases it takes.
    pub phases: usize,
    /// No schedule has fewer.
    pub bound_phases: u32,
    /// What makes it so.
    pub bound_phases_by: Binding,
    /// Clocks that the model says it takes, switches included.
    pub predicted_clocks: u64,
    /// No schedule takes fewer.
    pub bound_clocks: u64,
    /// What makes it so.
    pub bound_clocks_by: Binding,
    /// Predicted clocks divided by the bound.
    pub bound_ratio: f64,
    /// Phases divided by the bound.
    pub phases_bound_ratio: f64,
    /// `bound_ratio` under its former name, for one release.
    pub gap: f64,
    /// `phases_bound_ratio` under its former name, for one release.
    pub phases_gap: f64,
    /// Whether the phases are proved to be the fewest possible: they are the bound.
    pub fewest_phases: bool,
    /// Whether the predicted clocks are proved to be the fewest possible: they are the bound.
    pub fewest_clocks: bool,
    /// How the plan was found, where several were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Attempts>,
    /// What became of an older compile, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<FromOld>,
    /// The most channels taken on a cell in a phase.
    pub max_channels: u32,
    /// The most routes that share a link in a phase.
    pub max_sharing: u32,
    /// Links passed by all routes together, each as often as routes pass it.
    pub hops: u64,
}

impl SetSummary {
    /// The numbers of one set.
    pub fn new(schedule: &SetSchedule, known: &CompiledSet) -> Self {
        let routing = schedule.timetable.routing();
        let bounds = schedule.bounds;
        let bound_ratio = bound_ratio(schedule.predicted_clocks, bounds.clocks);
        let phases = routing.phases().len() as u64;
        let phases_bound_ratio = self::bound_ratio(phases, u64::from(bounds.phases));
        Self {
            set: routing.set().name().to_owned(),
            connections: routing.set().len(),
            words: routing.set().words(),
            phases: routing.phases().len(),
            bound_phases: bounds.phases,
            bound_phases_by: bounds.phases_by,
            predicted_clocks: schedule.predicted_clocks,
            bound_clocks: bounds.clocks,
            bound_clocks_by: bounds.clocks_by,
            bound_ratio,
            gap: bound_ratio,
            phases_bound_ratio,
            phases_gap: phases_bound_ratio,
            fewest_phases: routing.phases().len() == bounds.phases as usize,
            fewest_clocks: schedule.predicted_clocks <= bounds.clocks,
            attempts: known.attempts.clone(),
            from: known.from.clone(),
            max_channels: known.checked.max_occupancy,
            max_sharing: known.checked.max_sharing,
            hops: known.checked.hops,
        }
    }
}

/// A compiled program in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The machine.
    pub machine: MachineSummary,
    /// Each set.
    pub sets: Vec<SetSummary>,
    /// Plans that were made and dropped because they were wrong: anything but 0 is a bug of conset.
    pub candidates_refused: u32,
    /// The parts, where the sets come from a mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartsSummary>,
}

impl Summary {
    /// The numbers of a compiled program.
    pub fn new(compiled: &Compiled, halo: Option<&PlacedHalo>) -> Self {
        let schedule = compiled.schedule();
        Self {
            machine: MachineSummary::new(schedule.machine()),
            sets: schedule
                .sets()
                .iter()
                .zip(compiled.sets())
                .map(|(schedule, known)| SetSummary::new(schedule, known))
                .collect(),
            candidates_refused: compiled.candidates_refused(),
            parts: halo.map(PartsSummary::new),
        }
    }

    /// What to say where plans were dropped.
    pub fn refused_note(&self) -> Option<String> {
        let plans = match self.candidates_refused {
            0 => return None,
            1 => "1 candidate plan was".to_owned(),
            n => format!("{n} candidate plans were"),
        };
        Some(format!(
            "{plans} refused by the checker (bug in conset; please report this with the input); \
             the result is correct but may be slower than it could be"
        ))
    }
}

/// A machine in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct MachineSummary {
    /// Its name.
    pub name: String,
    /// Its shape, in the spelling of a machine specification.
    pub topology: String,
    /// Cells with a live agent.
    pub cells: usize,
    /// Live links.
    pub links: usize,
    /// Logical channels per cell that connections can use.
    pub channels_per_cell: u32,
}

impl MachineSummary {
    /// The numbers of a machine.
    pub fn new(machine: &Machine) -> Self {
        Self {
            name: machine.name().to_owned(),
            topology: machine.topology().to_string(),
            cells: machine.endpoints().count(),
            links: machine.cells().map(|cell| machine.outgoing(cell).len()).sum(),
            channels_per_cell: machine.parameters().channels_per_cell,
        }
    }
}

/// The parts of a mesh in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct PartsSummary {
    /// How many.
    pub parts: usize,
    /// Elements, vertices or rows of the smallest and of the largest part.
    pub items_per_part: [u64; 2],
    /// Words that a part sends, least and most.
    pub words_per_part: [u64; 2],
    /// The most parts that one part sends to.
    pub max_degree: usize,
}

impl PartsSummary {
    fn new(placed: &PlacedHalo) -> Self {
        let summary = &placed.halo.summary;
        Self {
            parts: summary.parts,
            items_per_part: [summary.items.min, summary.items.max],
            words_per_part: [summary.words_sent.min, summary.words_sent.max],
            max_degree: summary.degree,
        }
    }
}

/// The same set by message passing: the object `messages` of `conset run --compare messages`.
#[derive(Clone, Debug, Serialize)]
pub struct MessagesSummary {
    /// Clocks measured on the fabric.
    pub clocks: u64,
    /// Clocks by the paper's cost model, which leaves out congestion.
    pub predicted_clocks: u64,
    /// Clocks by messages over clocks by connections: above 1 where connections are faster.
    pub ratio: f64,
    /// Messages sent.
    pub messages: usize,
    /// Words of data delivered.
    pub words: u64,
    /// Words times links passed, headers and trailers included.
    pub word_hops: u64,
    /// Whether every word arrived once, in order, at the right cell.
    pub payload_ok: bool,
    /// Delivered bytes per second of all cells together, in MB/s.
    pub megabytes_per_second: f64,
}

impl MessagesSummary {
    /// The sums over several sets, for a run by connections of `clocks`.
    pub fn sum(all: &[&Self], clocks: u64, parameters: &conset_ir::Parameters) -> Self {
        let own = all.iter().map(|m| m.clocks).sum();
        let words = all.iter().map(|m| m.words).sum();
        Self {
            clocks: own,
            predicted_clocks: all.iter().map(|m| m.predicted_clocks).sum(),
            ratio: bound_ratio(own, clocks),
            messages: all.iter().map(|m| m.messages).sum(),
            words,
            word_hops: all.iter().map(|m| m.word_hops).sum(),
            payload_ok: all.iter().all(|m| m.payload_ok),
            megabytes_per_second: crate::run::megabytes_per_second(words, own, parameters),
        }
    }
}

/// One executed set in numbers: the object of `conset run --json`.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// The set's name.
    pub set: String,
    /// Phases executed.
    pub phases: usize,
    /// No schedule has fewer.
    pub bound_phases: u32,
    /// What makes it so.
    pub bound_phases_by: Binding,
    /// Whether the phases are the bound, hence the fewest possible.
    pub fewest_phases: bool,
    /// Clocks measured on the fabric, switches included.
    pub clocks: u64,
    /// Clocks that the model predicted.
    pub predicted_clocks: u64,
    /// No schedule takes fewer.
    pub bound_clocks: u64,
    /// What makes it so.
    pub bound_clocks_by: Binding,
    /// Clocks divided by the bound.
    pub bound_ratio: f64,
    /// `bound_ratio` under its former name, for one release.
    pub gap: f64,
    /// Predicted minus measured, in percent of measured.
    pub model_error_percent: f64,
    /// Connections.
    pub connections: usize,
    /// Words delivered.
    pub words: u64,
    /// Words times links passed.
    pub word_hops: u64,
    /// Whether every word arrived once, in order, at the right cell.
    pub payload_ok: bool,
    /// Delivered bytes per second of all cells together, in MB/s, as in the paper's figures.
    pub megabytes_per_second: f64,
    /// The same by message passing, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
}
