//! Compiling from an older compile: what still fits is kept.
//!
//! A mesh was refined in a corner, a few connections are new, others have gone: everything else
//! should stay, so that tables need not be loaded anew and the compile is over at once. Sets are
//! matched by name, connections as in [`crate::diff`] (by name, else by their ends).
//!
//! * A connection that has the same ends and as many words keeps all of its routes, with phase,
//!   channels and words (`from/standing`).
//! * What has gone leaves. What is new or has other words is put where a phase has room for it,
//!   by the agents' time (`conset_scheduler::holes`): whole, or cut into parts where no phase has
//!   room for all of it. That holds for a connection with other words that was in parts before,
//!   too: how it was cut says little of how it should be now.
//! * The router ([`apr::extend`]) finds the routes there or elsewhere. It may move a few others to
//!   make room, opens a phase only where that does not help, and closes phases that nobody is in
//!   any more.
//! * Starts stay where nobody joined; where somebody did, they stay if that is best
//!   (`from/times`).
//!
//! # What takes how long
//!
//! Searches for routes and timetables are in proportion to the change and to the phases it
//! touches. Bounds, the matching, the prediction, the tables and the checker are linear in the
//! whole set: the checker believes nothing, least of all the older compile, which it checks first.
//!
//! # What this module does not do
//!
//! It does not improve what stands, so a chain of many small changes drifts from what a fresh
//! compile gives; [`Kept::drifted`] says when.

mod standing;
mod times;

use std::sync::Arc;

use conset_ir::{ConnectionId, ConnectionSet, Machine, SetSchedule, Timetable};
use conset_partition_route::apr;
use conset_scheduler::{holes, predict};
use serde::Serialize;

use crate::compile::{CompileError, Options, gap};
use crate::diff::Entries;
use standing::Standing;

/// What became of an older compile of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// Connections that kept phases, routes, channels and words of all their parts.
    pub kept: usize,
    /// Connections of which something had to move to make room.
    pub moved: usize,
    /// Connections that are new, or have other words or ends.
    pub inserted: usize,
    /// Connections of the older set that have gone, or have other words or ends now.
    pub removed: usize,
    /// Phases in which something came, went or moved; the others are what they were.
    pub phases_touched: usize,
    /// Phases before.
    pub phases_before: usize,
    /// Gap of the older compile, by the model.
    pub gap_before: f64,
    /// Whether the gap has become so much greater that a fresh compile is worth a try.
    pub drifted: bool,
    /// The forwarding tables, compared with the older compile's.
    pub entries: Option<Entries>,
}

/// Why a set was compiled afresh although there was an older compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fresh {
    /// The older compile has no set of this name.
    NoSuchSet,
    /// No connection of the set is as it was.
    NothingMatches,
    /// What stands leaves no room: the order, a requirement, the phases allowed.
    NoRoom,
}

impl Fresh {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Fresh::NoSuchSet => "the older compile has no set of this name",
            Fresh::NothingMatches => "no connection is as it was",
            Fresh::NoRoom => {
                "what stands leaves no room for the order, a requirement or the phases"
            }
        }
    }
}

/// How a set was made from an older compile.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromOld {
    /// Most of it stands.
    Kept(Box<Kept>),
    /// It was compiled as if there were none.
    Fresh(Fresh),
}

/// A gap that is this much greater than the older one has drifted.
const DRIFT: f64 = 1.1;

/// A set made from an older compile.
pub(crate) type Made = (Timetable, predict::Prediction, Kept);

/// Makes a set from an older compile of it, which the checker has seen.
pub(crate) fn from(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    old: &SetSchedule,
    bound_clocks: u64,
    options: &Options,
) -> Result<Result<Made, Fresh>, CompileError> {
    let bug = |e| CompileError::bug("keeping what fits", &e);
    let mut standing = Standing::new(set, old);
    let before = old.timetable.routing().set().len();
    if standing.count == 0 && !(set.is_empty() && before == 0) {
        return Ok(Err(Fresh::NothingMatches));
    }
    let removed = before - standing.count;
    let routes = apr::Options {
        seed: options.seed,
        max_phases: options.max_phases,
        ..apr::Options::default()
    };
    let Dealt { cut, wished } = deal(machine, set, &standing);
    let parts = standing.parts(set, &cut).map_err(bug)?;
    let phases = std::mem::take(&mut standing.phases);
    let Some(mut extended) = apr::extend(machine, &parts.set, phases, removed, &wished, &routes)?
    else {
        return Ok(Err(Fresh::NoRoom));
    };
    let phases = std::mem::take(&mut extended.phases);
    let routing = parts.joined(machine, set, phases).map_err(bug)?;
    let (inserted, stood) = (standing.new.len(), standing.count);
    let timed = times::times(routing, &extended, standing, options)?;
    let mut moved: Vec<_> = extended.moved.iter().map(|&part| parts.of(part)).collect();
    moved.sort_unstable();
    moved.dedup();
    let gap_before = gap(old.predicted_clocks, old.bounds.clocks);
    let report = Kept {
        kept: stood - moved.len(),
        moved: moved.len(),
        inserted,
        removed,
        phases_touched: timed.touched,
        phases_before: old.timetable.phases().len(),
        gap_before,
        drifted: gap(timed.prediction.clocks, bound_clocks) > DRIFT * gap_before,
        entries: None,
    };
    Ok(Ok((timed.timetable, timed.prediction, report)))
}

/// How new connections are dealt to phases.
struct Dealt {
    /// Those that are cut, ascending, and the words of their parts.
    cut: Vec<(ConnectionId, Vec<u32>)>,
    /// Phases by part, ascending.
    wished: Vec<(ConnectionId, u32)>,
}

fn deal(machine: &Machine, set: &ConnectionSet, standing: &Standing) -> Dealt {
    let new = &standing.new;
    let dealt = holes::deal(machine, set, &standing.phases, &standing.slots, new);
    let (mut cut, mut wished) = (Vec::new(), Vec::new());
    let mut next = set.len() + standing.further();
    for (&id, dealt) in new.iter().zip(dealt) {
        for (row, part) in dealt.iter().enumerate() {
            let part_id = if row == 0 { id } else { ConnectionId::from_index(next) };
            next += usize::from(row > 0);
            wished.extend(part.phase.map(|phase| (part_id, phase)));
        }
        if dealt.len() > 1 {
            cut.push((id, dealt.iter().map(|part| part.words).collect()));
        }
    }
    wished.sort_unstable();
    Dealt { cut, wished }
}
