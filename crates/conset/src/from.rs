//! Compiling from an older compile: what still fits is kept.
//!
//! A mesh was refined in a corner, a few connections are new, others have gone: everything else
//! should stay, so that tables need not be loaded anew and the compile is over at once. Sets are
//! matched by name, connections as in [`crate::diff`] (by name, else by their ends).
//!
//! * A connection that has the same ends and as many words keeps all of its routes, with phase,
//!   channels and words (`from/standing`), unless one of them crosses a cell or link that is dead
//!   now: then it is routed anew. Otherwise the machine is the same.
//! * What has gone leaves. What is new or has other words is put where a phase has room for it,
//!   by the agents' time (`conset_scheduler::idle_intervals`): whole, or cut into parts where no phase has
//!   room for all of it. That holds for a connection with other words that was in parts before,
//!   too: how it was cut says little of how it should be now.
//! * The router ([`apr::incremental_route()`]) finds the routes there or elsewhere. It may move a few others to
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

use conset_ir::{
    Bounds, ConnectionId, ConnectionSet, Machine, PhaseRoutes, SetSchedule, Timetable,
};
use conset_partition_route::apr;
use conset_scheduler::fixed_starts::StartRule;
use conset_scheduler::idle_intervals::{self, AssignedSlot, AssignmentRequest};
use conset_scheduler::predict;
use serde::Serialize;

use crate::compile::{CompileError, Objective, Options, bound_ratio};
use crate::diff::Entries;
use standing::Standing;
use times::Timed;

/// What became of an older compile of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// Connections that kept phases, routes, channels and words of all their parts.
    pub kept: usize,
    /// Connections of which something had to move to make room.
    pub moved: usize,
    /// Connections that are as they were, but whose routes crossed a part of the machine that is
    /// dead now.
    pub rerouted: usize,
    /// Connections that are new, or have other words or ends.
    pub inserted: usize,
    /// Connections of the older set that have gone, or have other words or ends now.
    pub removed: usize,
    /// Phases in which something came, went or moved; the others are what they were.
    pub phases_touched: usize,
    /// Phases before.
    pub phases_before: usize,
    /// Predicted clocks of the older compile divided by its bound.
    pub gap_before: f64,
    /// Whether that ratio has grown so much that compiling from scratch may be worth it.
    pub drifted: bool,
    /// Cells and links that were alive for the older compile and are dead now: `cell c5`,
    /// `link c3 -> c4`.
    pub machine_lost: Vec<String>,
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
    /// What was made of the older compile was wrong, a bug of conset.
    Refused,
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
            Fresh::Refused => "what was made of the older compile was refused (bug in conset)",
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

/// A ratio to the bound that is this much greater than the older one has drifted.
const DRIFT: f64 = 1.1;

/// A set made from an older compile.
pub(crate) type Made = (Timetable, predict::Prediction, Kept);

/// Makes a set from an older compile of it, which the checker has seen.
pub(crate) fn from(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    old: &SetSchedule,
    bounds: &Bounds,
    options: &Options,
) -> Result<Result<Made, Fresh>, CompileError> {
    let standing = Standing::new(machine, set, old);
    let before = old.timetable.routing().set().len();
    if standing.count == 0 && !(set.is_empty() && before == 0) {
        return Ok(Err(Fresh::NothingMatches));
    }
    let removed = before - standing.count;
    let changing = Changing { machine, set, old, standing, removed, options };
    let Some(best) = changing.best(bounds)? else { return Ok(Err(Fresh::NoRoom)) };
    let gap_before = bound_ratio(old.predicted_clocks, old.bounds.clocks);
    let Timed { timetable, prediction, touched } = best.timed;
    let report = Kept {
        kept: changing.standing.count - best.moved,
        moved: best.moved,
        rerouted: changing.standing.rerouted,
        inserted: changing.standing.new.len() - changing.standing.rerouted,
        removed: removed - changing.standing.rerouted,
        phases_touched: touched,
        phases_before: old.timetable.phases().len(),
        gap_before,
        drifted: bound_ratio(prediction.clocks, bounds.clocks) > DRIFT * gap_before,
        machine_lost: lost(old.timetable.routing().machine(), machine),
        entries: None,
    };
    Ok(Ok((timetable, prediction, report)))
}

/// Cells and links that are dead in the second machine and not in the first.
fn lost(before: &Machine, now: &Machine) -> Vec<String> {
    let cells =
        now.dead_cells().iter().filter(|cell| before.dead_cells().binary_search(cell).is_err());
    let links =
        now.dead_links().iter().filter(|link| before.dead_links().binary_search(link).is_err());
    let links = links.map(|(from, to)| format!("link {from} -> {to}"));
    cells.map(|cell| format!("cell {cell}")).chain(links).collect()
}

/// Connections up to which phases that got longer than was dealt are closed and dealt anew, and
/// how often.
const SMALL: usize = 1 << 13;
const TRIES: usize = 8;

/// Phases that are opened for new connections at most, beside those for which there is no room.
const OPENED: usize = 4;

/// A set that is made from an older compile.
struct Changing<'a> {
    machine: &'a Arc<Machine>,
    set: &'a Arc<ConnectionSet>,
    old: &'a SetSchedule,
    standing: Standing,
    removed: usize,
    options: &'a Options,
}

/// A way to make it.
struct Try {
    timed: Timed,
    /// Connections that had to move.
    moved: usize,
    dealt: Vec<DealtPart>,
    /// What became of each phase that was there before.
    now: Vec<Option<u32>>,
}

impl Changing<'_> {
    /// The best of several tries; none where nothing fits.
    fn best(&self, bounds: &Bounds) -> Result<Option<Try>, CompileError> {
        let mut closed = Vec::new();
        let mut best = self.attempt(&closed, false, None)?;
        if self.set.len() <= SMALL && !self.standing.new.is_empty() {
            let before = predict::predict(&self.old.timetable);
            let longer = |tried: &Try| tried.longer(&before);
            let mut more = best.as_ref().map(longer).unwrap_or_default();
            for _ in 1..TRIES {
                if more.is_empty() {
                    break;
                }
                closed.append(&mut more);
                closed.sort_unstable();
                closed.dedup();
                let tried = self.attempt(&closed, false, best.as_ref())?;
                more = tried.as_ref().map(longer).unwrap_or_default();
                best = self.better(best, tried);
            }
        }
        // Emptying a phase costs what its connections add elsewhere, so that is seen by the price.
        let phases =
            best.as_ref().map_or(u32::MAX, |best| best.timed.timetable.phases().len() as u32);
        if phases > bounds.phases && self.may_empty() {
            let tried = self.attempt(&closed, true, best.as_ref())?;
            best = self.better(best, tried);
        }
        Ok(best)
    }

    /// Whether there is a phase with so few connections that emptying it is worth a try.
    fn may_empty(&self) -> bool {
        let changed = self.standing.new.len() + self.removed;
        let small = |routes: &PhaseRoutes| apr::is_small(routes.len(), changed);
        changed > 0 && self.standing.phases.iter().any(small)
    }

    fn better(&self, a: Option<Try>, b: Option<Try>) -> Option<Try> {
        let key = |tried: &Try| {
            let phases = match self.options.objective {
                Objective::Time => 0,
                Objective::Phases => tried.timed.timetable.phases().len(),
            };
            (phases, tried.timed.prediction.clocks)
        };
        match (a, b) {
            (Some(a), Some(b)) => Some(if key(&b) < key(&a) { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Puts what is new to what stands. `closed` are phases that new connections are not dealt to;
    /// `earlier` is another try.
    fn attempt(
        &self,
        closed: &[(ConnectionId, u32)],
        empty: bool,
        earlier: Option<&Try>,
    ) -> Result<Option<Try>, CompileError> {
        let bug = |e| CompileError::bug("keeping what fits", &e);
        let Dealt { cut, wishes, mut dealt } = self.deal(closed);
        let parts = self.standing.parts(self.set, &cut).map_err(bug)?;
        let change =
            apr::RoutingChange { removed: self.removed, hints: &wishes, empty_small_phases: empty };
        let routes = apr::RouterOptions {
            seed: self.options.seed,
            max_phases: self.options.max_phases,
            ..apr::RouterOptions::default()
        };
        let extended = apr::incremental_route(
            self.machine,
            &parts.set,
            &self.standing.phases,
            change,
            &routes,
        )?;
        let Some(mut extended) = extended else { return Ok(None) };
        note_ways(&mut dealt, &extended);
        let starts = self.starts(&extended, &wishes);
        let phases = std::mem::take(&mut extended.phases);
        let routing = parts.joined(self.machine, self.set, phases).map_err(bug)?;
        let earlier = earlier.map(|tried| (&tried.timed, &tried.now[..]));
        let standing = &self.standing;
        let timed = times::times(routing, &extended, starts, standing, earlier, self.options)?;
        let mut moved: Vec<_> = extended.moved.iter().map(|&part| parts.of(part)).collect();
        moved.sort_unstable();
        moved.dedup();
        let mut now = vec![None; self.standing.phases.len()];
        for (phase, former) in extended.former.iter().enumerate() {
            if let Some(former) = former {
                now[*former as usize] = Some(phase as u32);
            }
        }
        Ok(Some(Try { timed, moved: moved.len(), dealt, now }))
    }

    fn deal(&self, closed: &[(ConnectionId, u32)]) -> Dealt {
        let Self { machine, set, standing, .. } = self;
        let new = &standing.new;
        let open = match (self.options.objective, self.options.max_phases) {
            (Objective::Phases, _) => 0,
            (Objective::Time, Some(most)) => {
                OPENED.min((most as usize).saturating_sub(standing.phases.len()))
            }
            (Objective::Time, None) => OPENED,
        };
        let request = AssignmentRequest {
            phases: &standing.phases,
            slots: &standing.slots,
            new,
            excluded: closed,
            max_new_phases: open,
        };
        let dealt = idle_intervals::assign(machine, set, request);
        let mut found = Dealt::default();
        let mut next = set.len() + standing.further();
        for (&id, dealt) in new.iter().zip(dealt) {
            if dealt.len() > 1 {
                found.cut.push((id, dealt.iter().map(|part| part.words).collect()));
            }
            for (row, part) in dealt.into_iter().enumerate() {
                let connection = if row == 0 { id } else { ConnectionId::from_index(next) };
                next += usize::from(row > 0);
                let Some(AssignedSlot { phase, slot, growth, busy_links, .. }) = part.slot else {
                    continue;
                };
                let busy = busy_links;
                found.wishes.push(apr::PlacementHint { connection, phase, busy, slot });
                let (part, way) = (connection, Way::Own);
                found.dealt.push(DealtPart { part, connection: id, phase, growth, way });
            }
        }
        found.wishes.sort_unstable_by_key(|wish| wish.connection);
        found
    }

    /// For each phase what would be the best starts of those that came to it.
    fn starts(
        &self,
        extended: &apr::IncrementalRouting,
        wishes: &[apr::PlacementHint],
    ) -> Vec<Vec<StartRule>> {
        let standing = self.standing.phases.len() as u32;
        let start = |part: ConnectionId, former: Option<u32>| {
            let Ok(row) = wishes.binary_search_by_key(&part, |wish| wish.connection) else {
                return StartRule::Any;
            };
            let there = match former {
                Some(former) => wishes[row].phase == former,
                None => wishes[row].phase >= standing,
            };
            if there { StartRule::Preferred(wishes[row].slot.start) } else { StartRule::Any }
        };
        let phases = extended.phases.iter().zip(&extended.former).zip(&extended.stayed);
        let starts = phases.map(|((routes, former), stayed)| {
            let Some(stayed) = stayed else { return Vec::new() };
            let came = (stayed.len()..routes.len()).map(|row| routes.get(row).connection);
            came.map(|part| start(part, *former)).collect()
        });
        starts.collect()
    }
}

impl Try {
    /// Connections that are to go elsewhere, with the phases they were dealt to: those that did not
    /// get there, and of the phases that got longer than was dealt those that had no way of their
    /// own, else all.
    fn longer(&self, before: &predict::Prediction) -> Vec<(ConnectionId, u32)> {
        let mut planned = vec![0u64; self.now.len()];
        let mut crowded = vec![false; self.now.len()];
        let stands = |row: &&DealtPart| (row.phase as usize) < self.now.len();
        for row in self.dealt.iter().filter(stands) {
            planned[row.phase as usize] += row.growth;
            crowded[row.phase as usize] |= row.way == Way::Crowded;
        }
        let is_longer = |phase: u32| {
            let Some(now) = self.now[phase as usize] else { return false };
            let now = self.timed.prediction.phases[now as usize];
            let then = before.phases[phase as usize].clocks + planned[phase as usize];
            now.clocks > then + now.switch / 4
        };
        let guilty = |row: &&DealtPart| match row.way {
            Way::None => true,
            Way::Crowded => is_longer(row.phase),
            Way::Own => is_longer(row.phase) && !crowded[row.phase as usize],
        };
        let dealt = self.dealt.iter().filter(stands).filter(guilty);
        dealt.map(|row| (row.connection, row.phase)).collect()
    }
}

/// Notes which parts got where they were dealt to.
fn note_ways(dealt: &mut [DealtPart], extended: &apr::IncrementalRouting) {
    dealt.sort_unstable_by_key(|row| row.part);
    for (parts, way) in [(&extended.crowded, Way::Crowded), (&extended.refused, Way::None)] {
        for part in parts {
            if let Ok(row) = dealt.binary_search_by_key(part, |row| row.part) {
                dealt[row].way = way;
            }
        }
    }
}

/// How new connections are dealt to phases.
#[derive(Default)]
struct Dealt {
    /// Those that are cut, ascending, and the words of their parts.
    cut: Vec<(ConnectionId, Vec<u32>)>,
    /// Ascending by part.
    wishes: Vec<apr::PlacementHint>,
    dealt: Vec<DealtPart>,
}

/// A part, or all of a new connection, and where it was dealt to.
struct DealtPart {
    part: ConnectionId,
    connection: ConnectionId,
    /// Of those before; beyond, it is new.
    phase: u32,
    /// Clocks by which it was to make the phase longer.
    growth: u64,
    way: Way,
}

/// Whether a part got where it was dealt to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// On links that others leave alone at that time.
    Own,
    /// On links that others take at that time.
    Crowded,
    /// It did not.
    None,
}
