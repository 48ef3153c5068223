//! Compiling from an older compile: what still fits is kept.
//!
//! A mesh was refined in a corner, a few connections are new, others have gone: everything else
//! should stay, so that tables need not be loaded anew and the compile is over at once. Sets are
//! matched by name, connections as in [`crate::diff`] (by name, else by their ends).
//!
//! * A connection that has the same ends and as many words keeps phase, route and channels, and
//!   in a phase in which nothing else changes its start too.
//! * What has gone leaves. What is new, or has other words, or was split, is inserted by the
//!   router ([`apr::extend`]), which may move a few others to make room, opens a phase only where
//!   that does not help, and closes phases that nobody is in any more.
//! * Phases that were touched get timetables made anew, and one in which the rest keeps its
//!   starts; the cheapest is taken, the last named of equals.
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

use std::sync::Arc;

use conset_ir::{
    ConnectionSet, Machine, PhaseRoutes, PhaseTimes, Routing, SetSchedule, Slot, Timetable,
};
use conset_partition_route::apr;
use conset_scheduler::{best as links, planned, predict};
use serde::Serialize;

use crate::compile::{CompileError, Options, gap};
use crate::diff::{Entries, Pairs};

/// What became of an older compile of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// Connections that kept phase, route and channels.
    pub kept: usize,
    /// Connections that had to move to make room.
    pub moved: usize,
    /// Connections that are new, or have other words or ends.
    pub inserted: usize,
    /// Connections of the older set that have gone, or have other words or ends now.
    pub removed: usize,
    /// Phases of which the timetable was made anew.
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

/// Passes of the timetable in each touched phase.
const PASSES: u32 = 64;

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
    let standing = Standing::new(set, old);
    let kept: usize = standing.phases.iter().map(PhaseRoutes::len).sum();
    if kept == 0 && !(set.is_empty() && old.timetable.routing().set().is_empty()) {
        return Ok(Err(Fresh::NothingMatches));
    }
    let removed = old.timetable.routing().set().len() - kept;
    let routes = apr::Options {
        seed: options.seed,
        max_phases: options.max_phases,
        ..apr::Options::default()
    };
    let Some(extended) = apr::extend(machine, set, &standing.phases, removed, &routes)? else {
        return Ok(Err(Fresh::NoRoom));
    };
    let (timetable, phases_touched) = timetable(&extended, &standing, options)?;
    let prediction = predict::predict(&timetable);
    let gap_before = gap(old.predicted_clocks, old.bounds.clocks);
    let report = Kept {
        kept: kept - extended.moved,
        moved: extended.moved,
        inserted: set.len() - kept,
        removed,
        phases_touched,
        phases_before: old.timetable.phases().len(),
        gap_before,
        drifted: gap(prediction.clocks, bound_clocks) > DRIFT * gap_before,
        entries: None,
    };
    Ok(Ok((timetable, prediction, report)))
}

/// What of the older compile is in the new set, with the new set's ids.
struct Standing {
    /// By phase of the older compile.
    phases: Vec<PhaseRoutes>,
    /// Their slots.
    slots: Vec<Vec<Slot>>,
    /// Whether nothing has left the phase.
    whole: Vec<bool>,
    makespans: Vec<u64>,
}

impl Standing {
    fn new(set: &ConnectionSet, old: &SetSchedule) -> Self {
        let routing = old.timetable.routing();
        let pairs = Pairs::of(routing.set(), set);
        let mut this = Self {
            phases: Vec::new(),
            slots: Vec::new(),
            whole: Vec::new(),
            makespans: Vec::new(),
        };
        for (routes, times) in routing.phases().iter().zip(old.timetable.phases()) {
            let mut standing = PhaseRoutes::new();
            let mut slots = Vec::new();
            for (route, &slot) in routes.iter().zip(&times.slots) {
                let before = routing.set().get(route.connection);
                let Some(id) = pairs.in_b(route.connection) else { continue };
                let now = set.get(id);
                let same = (now.source, now.target, now.words)
                    == (before.source, before.target, route.words);
                if !same || before.words != route.words {
                    continue;
                }
                standing
                    .push(id, route.words, route.cells, route.links(), route.channels)
                    .expect("a route of the same length was pushed before");
                slots.push(slot);
            }
            this.whole.push(standing.len() == routes.len());
            this.phases.push(standing);
            this.slots.push(slots);
            this.makespans.push(times.makespan);
        }
        this
    }
}

/// Times for the extended routing, and the number of phases for which they were made anew.
fn timetable(
    extended: &apr::Extended,
    standing: &Standing,
    options: &Options,
) -> Result<(Timetable, usize), CompileError> {
    let routing = &extended.routing;
    let bug = |e: &dyn ToString| CompileError::bug("the scheduler", e);
    let mut times: Vec<Option<PhaseTimes>> = Vec::with_capacity(routing.phases().len());
    let mut starts = Vec::new();
    for ((routes, former), stayed) in
        routing.phases().iter().zip(&extended.former).zip(&extended.stayed)
    {
        let old: Vec<Slot> = match former {
            Some(former) => {
                let slots = &standing.slots[*former as usize];
                stayed.iter().map(|&row| slots[row as usize]).collect()
            }
            None => Vec::new(),
        };
        let untouched = former.filter(|&former| {
            let former = former as usize;
            standing.whole[former]
                && stayed.len() == routes.len()
                && stayed.len() == standing.slots[former].len()
        });
        match untouched.filter(|_| keeps_order(routing.set(), routes, &old)) {
            Some(former) => {
                let makespan = standing.makespans[former as usize];
                times.push(Some(PhaseTimes { slots: old, makespan }));
            }
            None => {
                let known = old.iter().map(|slot| Some(slot.start));
                let new = std::iter::repeat_n(None, routes.len() - old.len());
                starts.push(known.chain(new).collect::<Vec<_>>());
                times.push(None);
            }
        }
    }
    let touched: Vec<PhaseRoutes> = routing
        .phases()
        .iter()
        .zip(&times)
        .filter(|(_, times)| times.is_none())
        .map(|(routes, _)| routes.clone())
        .collect();
    let count = touched.len();
    if count > 0 {
        let part = Routing::new(routing.machine().clone(), routing.set().clone(), touched)
            .map_err(|e| bug(&e))?;
        let mut tables =
            links::by_links(part.clone(), PASSES, options.seed).map_err(|e| bug(&e))?;
        if routing.set().order().is_empty() {
            tables.insert(0, planned::filled(part, &starts).map_err(|e| bug(&e))?);
        }
        let price = |table: &Timetable| {
            predict::predict(table).phases.iter().map(|phase| phase.clocks).collect()
        };
        let prices: Vec<Vec<u64>> = tables.iter().map(price).collect();
        let best = links::combine(&tables, &prices);
        let mut made = best.phases().iter().cloned();
        for times in times.iter_mut().filter(|times| times.is_none()) {
            *times = made.next();
        }
    }
    let times = times.into_iter().map(|times| times.expect("each phase has times")).collect();
    let timetable = Timetable::new(routing.clone(), times).map_err(|e| bug(&e))?;
    Ok((timetable, count))
}

/// Whether slots keep the order that the set has now inside a phase.
fn keeps_order(set: &ConnectionSet, routes: &PhaseRoutes, slots: &[Slot]) -> bool {
    if set.order().is_empty() {
        return true;
    }
    let mut row_of: Vec<(u32, usize)> =
        routes.iter().enumerate().map(|(row, route)| (route.connection.0, row)).collect();
    row_of.sort_unstable();
    let row = |x: u32| row_of.binary_search_by_key(&x, |pair| pair.0).ok().map(|at| row_of[at].1);
    row_of.iter().all(|&(x, before)| {
        let from = set.order().partition_point(|pair| pair.0.0 < x);
        let pairs = set.order()[from..].iter().take_while(|pair| pair.0.0 == x);
        pairs
            .filter_map(|pair| row(pair.1.0))
            .all(|after| slots[before].end() <= slots[after].start)
    })
}
