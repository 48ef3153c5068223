//! A value of any kind that a file can hold.
//!
//! Module [`crate::file_format`] recognises the format of a file and parses it;
//! `docs/format.md` describes the formats. Parsing a written document yields an equal value, for
//! every kind and format.

use std::sync::Arc;

use crate::image::Image;
use crate::machine::Machine;
use crate::routing::Routing;
use crate::schedule::Schedule;
use crate::set::Program;
use crate::step_schedule::StepSchedule;
use crate::timetable::Timetable;

/// The contents of a file.
///
/// The enum is exhaustive: a new kind is a new version of the formats, and every program that
/// handles documents has to decide what to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// A machine.
    Machine(Arc<Machine>),
    /// Connection sets before compilation, and optionally the machine they are intended for. If
    /// there is a machine, both ends of every connection are live cells of it with an agent
    /// ([`ConnectionSet::check_machine`](crate::ConnectionSet::check_machine)); readers refuse
    /// anything else.
    Program {
        /// The machine, if the file names one.
        machine: Option<Arc<Machine>>,
        /// The sets.
        program: Program,
    },
    /// One set with phases and routes.
    Routing(Routing),
    /// One set with phases, routes and times.
    Timetable(Timetable),
    /// A compiled program.
    Schedule(Schedule),
    /// A program that is compiled to messages in steps.
    Steps(StepSchedule),
    /// A compiled program in the form that a runtime loads.
    Image(Image),
}

impl Document {
    /// The word for this kind in the first line of the text form.
    pub fn kind(&self) -> &'static str {
        match self {
            Document::Machine(_) => "machine",
            Document::Program { .. } => "set",
            Document::Routing(_) => "routing",
            Document::Timetable(_) => "timetable",
            Document::Schedule(_) => "schedule",
            Document::Steps(_) => "steps",
            Document::Image(_) => "image",
        }
    }

    /// The machine of the value; a program may have none.
    pub fn machine(&self) -> Option<&Arc<Machine>> {
        match self {
            Document::Machine(machine) => Some(machine),
            Document::Program { machine, .. } => machine.as_ref(),
            Document::Routing(routing) => Some(routing.machine()),
            Document::Timetable(timetable) => Some(timetable.routing().machine()),
            Document::Schedule(schedule) => Some(schedule.machine()),
            Document::Steps(schedule) => Some(schedule.machine()),
            Document::Image(image) => Some(image.machine()),
        }
    }
}

impl From<Machine> for Document {
    fn from(machine: Machine) -> Self {
        Document::Machine(Arc::new(machine))
    }
}

impl From<Program> for Document {
    fn from(program: Program) -> Self {
        Document::Program { machine: None, program }
    }
}

impl From<Routing> for Document {
    fn from(routing: Routing) -> Self {
        Document::Routing(routing)
    }
}

impl From<Timetable> for Document {
    fn from(timetable: Timetable) -> Self {
        Document::Timetable(timetable)
    }
}

impl From<Schedule> for Document {
    fn from(schedule: Schedule) -> Self {
        Document::Schedule(schedule)
    }
}

impl From<StepSchedule> for Document {
    fn from(schedule: StepSchedule) -> Self {
        Document::Steps(schedule)
    }
}

impl From<Image> for Document {
    fn from(image: Image) -> Self {
        Document::Image(image)
    }
}
