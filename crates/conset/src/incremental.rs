//! Incremental compilation: reusing an earlier schedule of a set as far as it still fits.
//!
//! After a small change, such as a mesh refined in one corner, a few connections are new and a few
//! are gone. The others should keep their routes and times, so that their tables need not be loaded
//! again and the compilation is fast. Sets match by name, connections by name or else by their ends.
//!
//! * A connection with unchanged ends and words keeps all of its routes, with phase, channels and
//!   words (`incremental/reused`), unless one of them crosses a cell or link that is dead now; then
//!   it is routed again. The rest of the machine must be unchanged.
//! * Connections that are gone are removed. Connections that are new or have other words are assigned
//!   to the phases in which their agents are idle (`conset_scheduler::idle_intervals`), whole, or in parts if
//!   no phase has room for all of it. A split connection with other words is split again.
//! * The router ([`apr::incremental_route`]) finds routes in these phases or in others. It may move a few other
//!   connections to make room, opens a phase only if that does not help, and closes empty phases.
//! * A phase without new connections keeps its starts; one with new connections keeps them if that is
//!   fastest (`incremental/times`).
//!
//! # Complexity
//!
//! The searches for routes and timetables are proportional to the change and to the phases that it
//! affects. Bounds, matching, prediction, tables and the checker are linear in the whole set. The
//! checker verifies the earlier schedule first.
//!
//! # Limitations
//!
//! Reused parts are not improved. After many small changes the result can be considerably worse
//! than that of a full compilation; [`ReuseReport::drifted`] reports this.

mod reused;
mod times;

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    Bounds, ConnectionId, ConnectionSet, Machine, PhaseRoutes, SetSchedule, Timetable,
};
use conset_partition_route::apr;
use conset_scheduler::fixed_starts::StartRule;
use conset_scheduler::idle_intervals::{self, AssignedSlot, AssignmentRequest};
use conset_scheduler::predict;
use serde::Serialize;

use crate::table_diff::TableDiff;
use crate::{CompileError, CompileOptions, Objective, bound_ratio};
use reused::ReusedSet;
use times::TimedRouting;

/// What was reused of an earlier schedule of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReuseReport {
    /// Connections that kept the phases, routes, channels and words of all their parts.
    pub kept: usize,
    /// Connections that were moved, at least in part, to make room for others.
    pub moved: usize,
    /// Unchanged connections that were routed again because a cell or link of their routes is dead
    /// now.
    pub rerouted: usize,
    /// Connections that are new or have other words or ends.
    pub inserted: usize,
    /// Connections of the earlier set that are gone or have other words or ends now.
    pub removed: usize,
    /// Phases with any change; the others are unchanged.
    pub phases_touched: usize,
    /// Phases before.
    pub phases_before: usize,
    /// Predicted clocks of the earlier schedule divided by their bound.
    #[serde(rename = "gap_before")]
    pub bound_ratio_before: f64,
    /// Whether that ratio has grown so much that a full compilation may be better.
    pub drifted: bool,
    /// Cells and links that were alive for the earlier schedule and are dead now, such as `cell c5`
    /// and `link c3 -> c4`.
    pub machine_lost: Vec<String>,
    /// The differences between the earlier forwarding tables and the new ones.
    pub entries: Option<TableDiff>,
}

/// Why a set was compiled without reuse although there was an earlier schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RecompileReason {
    /// The earlier schedule has no set of this name.
    NoSuchSet,
    /// No connection of the set is unchanged.
    NothingMatches,
    /// The reused connections leave no room for the order, a requirement or the allowed phases.
    NoRoom,
    /// The checker refused the result of the reuse, which is a bug in conset.
    Refused,
}

impl RecompileReason {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            RecompileReason::NoSuchSet => "the earlier schedule has no set of this name",
            RecompileReason::NothingMatches => "no connection is unchanged",
            RecompileReason::NoRoom => {
                "the reused connections leave no room for the order, a requirement or the phases"
            }
            RecompileReason::Refused => "the checker refused the reused schedule (bug in conset)",
        }
    }
}

/// Whether a set reused an earlier schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReuseOutcome {
    /// It did.
    #[serde(rename = "kept")]
    Reused(Box<ReuseReport>),
    /// It was compiled as if there were none.
    #[serde(rename = "fresh")]
    Recompiled(RecompileReason),
}

/// A ratio to the bound that is this many times the earlier one has drifted.
const DRIFT: f64 = 1.1;

/// A set that reuses an earlier schedule: its timetable, price and report.
pub(crate) type IncrementalPlan = (Timetable, predict::Prediction, ReuseReport);

/// Plans a set that reuses an earlier schedule, which the checker has accepted.
///
/// # Errors
/// A set that the router cannot route, or a bug of a stage. If nothing can be reused, the reason is
/// returned as the inner error.
pub(crate) fn plan(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    old: &SetSchedule,
    bounds: &Bounds,
    options: &CompileOptions,
) -> Result<Result<IncrementalPlan, RecompileReason>, CompileError> {
    let reused = ReusedSet::new(machine, set, old);
    let before = old.timetable.routing().set().len();
    if reused.count == 0 && !(set.is_empty() && before == 0) {
        return Ok(Err(RecompileReason::NothingMatches));
    }
    let removed = before - reused.count;
    let planner = IncrementalPlanner { machine, set, old, reused, removed, options };
    let Some(best) = planner.best(bounds)? else { return Ok(Err(RecompileReason::NoRoom)) };
    let bound_ratio_before = bound_ratio(old.predicted_clocks, old.bounds.clocks);
    let TimedRouting { timetable, prediction, touched } = best.timed;
    let report = ReuseReport {
        kept: planner.reused.count - best.moved,
        moved: best.moved,
        rerouted: planner.reused.rerouted,
        inserted: planner.reused.new.len() - planner.reused.rerouted,
        removed: removed - planner.reused.rerouted,
        phases_touched: touched,
        phases_before: old.timetable.phases().len(),
        bound_ratio_before,
        drifted: bound_ratio(prediction.clocks, bounds.clocks) > DRIFT * bound_ratio_before,
        machine_lost: lost(old.timetable.routing().machine(), machine),
        entries: None,
    };
    Ok(Ok((timetable, prediction, report)))
}

/// Cells and links that are dead in the second machine but not in the first.
fn lost(before: &Machine, now: &Machine) -> Vec<String> {
    let cells =
        now.dead_cells().iter().filter(|cell| before.dead_cells().binary_search(cell).is_err());
    let links =
        now.dead_links().iter().filter(|link| before.dead_links().binary_search(link).is_err());
    let links = links.map(|(from, to)| format!("link {from} -> {to}"));
    cells.map(|cell| format!("cell {cell}")).chain(links).collect()
}

/// Connections up to which the assignment is repeated without the phases that became longer than
/// expected, and the greatest number of assignments.
const SMALL: usize = 1 << 13;
const MAX_TRIALS: usize = 8;

/// Greatest number of phases that the assignment opens, beside those that the router opens.
const MAX_OPENED: usize = 4;

/// Plans a set that reuses an earlier schedule.
struct IncrementalPlanner<'a> {
    machine: &'a Arc<Machine>,
    set: &'a Arc<ConnectionSet>,
    old: &'a SetSchedule,
    reused: ReusedSet,
    removed: usize,
    options: &'a CompileOptions,
}

/// A plan with one assignment of the new connections.
struct ReuseTrial {
    timed: TimedRouting,
    /// Connections that were moved.
    moved: usize,
    hinted: Vec<HintedPart>,
    /// The number of each earlier phase now, if it still exists.
    now: Vec<Option<u32>>,
}

impl IncrementalPlanner<'_> {
    /// The best of several trials; `None` if nothing fits.
    fn best(&self, bounds: &Bounds) -> Result<Option<ReuseTrial>, CompileError> {
        let mut closed = Vec::new();
        let mut best = self.attempt(&closed, false, None)?;
        if self.set.len() <= SMALL && !self.reused.new.is_empty() {
            let before = predict::predict(&self.old.timetable);
            let to_reassign = |trial: &ReuseTrial| trial.to_reassign(&before);
            let mut more = best.as_ref().map(to_reassign).unwrap_or_default();
            for _ in 1..MAX_TRIALS {
                if more.is_empty() {
                    break;
                }
                closed.append(&mut more);
                closed.sort_unstable();
                closed.dedup();
                let trial = self.attempt(&closed, false, best.as_ref())?;
                more = trial.as_ref().map(to_reassign).unwrap_or_default();
                best = self.better(best, trial);
            }
        }
        // Emptying a phase makes others longer, so the price decides.
        let phases =
            best.as_ref().map_or(u32::MAX, |best| to_u32(best.timed.timetable.phases().len()));
        if phases > bounds.phases && self.may_empty() {
            let trial = self.attempt(&closed, true, best.as_ref())?;
            best = self.better(best, trial);
        }
        Ok(best)
    }

    /// Whether a phase has so few connections that emptying it may pay.
    fn may_empty(&self) -> bool {
        let changed = self.reused.new.len() + self.removed;
        let small = |routes: &PhaseRoutes| apr::is_small(routes.len(), changed);
        changed > 0 && self.reused.phases.iter().any(small)
    }

    fn better(&self, a: Option<ReuseTrial>, b: Option<ReuseTrial>) -> Option<ReuseTrial> {
        let key = |trial: &ReuseTrial| {
            let phases = match self.options.objective {
                Objective::Time => 0,
                Objective::Phases => trial.timed.timetable.phases().len(),
            };
            (phases, trial.timed.prediction.clocks)
        };
        match (a, b) {
            (Some(a), Some(b)) => Some(if key(&b) < key(&a) { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Adds the new connections to the reused ones. `closed` lists new connections with phases that
    /// they are not assigned to; `earlier` is an earlier trial.
    fn attempt(
        &self,
        closed: &[(ConnectionId, u32)],
        empty: bool,
        earlier: Option<&ReuseTrial>,
    ) -> Result<Option<ReuseTrial>, CompileError> {
        let bug = |e| CompileError::bug("incremental compilation", &e);
        let HintAssignment { split, hints, parts: mut hinted } = self.assign_hints(closed);
        let parts = self.reused.split(self.set, &split).map_err(bug)?;
        let change =
            apr::RoutingChange { removed: self.removed, hints: &hints, empty_small_phases: empty };
        let routes = apr::RouterOptions {
            seed: self.options.seed,
            max_phases: self.options.max_phases,
            ..apr::RouterOptions::default()
        };
        let extended =
            apr::incremental_route(self.machine, &parts.set, &self.reused.phases, change, &routes)?;
        let Some(mut extended) = extended else { return Ok(None) };
        record_outcomes(&mut hinted, &extended);
        let starts = self.starts(&extended, &hints);
        let phases = std::mem::take(&mut extended.phases);
        let routing = parts.joined(self.machine, self.set, phases).map_err(bug)?;
        let earlier = earlier.map(|trial| (&trial.timed, &trial.now[..]));
        let reused = &self.reused;
        let timed = times::times(routing, &extended, starts, reused, earlier, self.options)?;
        let mut moved: Vec<_> = extended.moved.iter().map(|&part| parts.of(part)).collect();
        moved.sort_unstable();
        moved.dedup();
        let mut now = vec![None; self.reused.phases.len()];
        for (phase, former) in extended.former.iter().enumerate() {
            if let Some(former) = former {
                now[index(*former)] = Some(to_u32(phase));
            }
        }
        Ok(Some(ReuseTrial { timed, moved: moved.len(), hinted, now }))
    }

    /// Assigns the new connections to phases.
    fn assign_hints(&self, closed: &[(ConnectionId, u32)]) -> HintAssignment {
        let Self { machine, set, reused, .. } = self;
        let new = &reused.new;
        let open = match (self.options.objective, self.options.max_phases) {
            (Objective::Phases, _) => 0,
            (Objective::Time, Some(most)) => {
                MAX_OPENED.min(index(most).saturating_sub(reused.phases.len()))
            }
            (Objective::Time, None) => MAX_OPENED,
        };
        let request = AssignmentRequest {
            phases: &reused.phases,
            slots: &reused.slots,
            new,
            excluded: closed,
            max_new_phases: open,
        };
        let hinted = idle_intervals::assign(machine, set, request);
        let mut found = HintAssignment::default();
        let mut next = set.len() + reused.further();
        for (&id, hinted) in new.iter().zip(hinted) {
            if hinted.len() > 1 {
                found.split.push((id, hinted.iter().map(|part| part.words).collect()));
            }
            for (row, part) in hinted.into_iter().enumerate() {
                let connection = if row == 0 { id } else { ConnectionId::from_index(next) };
                next += usize::from(row > 0);
                let Some(AssignedSlot { phase, slot, growth, busy_links: busy, .. }) = part.slot
                else {
                    continue;
                };
                found.hints.push(apr::PlacementHint { connection, phase, busy, slot });
                let (part, outcome) = (connection, HintOutcome::Exclusive);
                found.parts.push(HintedPart { part, connection: id, phase, growth, outcome });
            }
        }
        found.hints.sort_unstable_by_key(|hint| hint.connection);
        found
    }

    /// For each phase the preferred starts of the connections that were added to it.
    fn starts(
        &self,
        extended: &apr::IncrementalRouting,
        hints: &[apr::PlacementHint],
    ) -> Vec<Vec<StartRule>> {
        let reused = to_u32(self.reused.phases.len());
        let start = |part: ConnectionId, former: Option<u32>| {
            let Ok(row) = hints.binary_search_by_key(&part, |hint| hint.connection) else {
                return StartRule::Any;
            };
            let there = match former {
                Some(former) => hints[row].phase == former,
                None => hints[row].phase >= reused,
            };
            if there { StartRule::Preferred(hints[row].slot.start) } else { StartRule::Any }
        };
        let phases = extended.phases.iter().zip(&extended.former).zip(&extended.stayed);
        let starts = phases.map(|((routes, former), stayed)| {
            let Some(stayed) = stayed else { return Vec::new() };
            let added = (stayed.len()..routes.len()).map(|row| routes.get(row).connection);
            added.map(|part| start(part, *former)).collect()
        });
        starts.collect()
    }
}

impl ReuseTrial {
    /// Connections to assign to another phase, with the phase they were assigned to: those that were
    /// not routed there; and in phases that became longer than expected, those that share links,
    /// or all of them if none does.
    fn to_reassign(&self, before: &predict::Prediction) -> Vec<(ConnectionId, u32)> {
        let mut expected = vec![0u64; self.now.len()];
        let mut crowded = vec![false; self.now.len()];
        let is_earlier = |row: &&HintedPart| index(row.phase) < self.now.len();
        for row in self.hinted.iter().filter(is_earlier) {
            expected[index(row.phase)] += row.growth;
            crowded[index(row.phase)] |= row.outcome == HintOutcome::Shared;
        }
        let is_longer = |phase: u32| {
            let Some(now) = self.now[index(phase)] else { return false };
            let now = self.timed.prediction.phases[index(now)];
            let then = before.phases[index(phase)].clocks + expected[index(phase)];
            now.clocks > then + now.switch / 4
        };
        let must_move = |row: &&HintedPart| match row.outcome {
            HintOutcome::Elsewhere => true,
            HintOutcome::Shared => is_longer(row.phase),
            HintOutcome::Exclusive => is_longer(row.phase) && !crowded[index(row.phase)],
        };
        let hinted = self.hinted.iter().filter(is_earlier).filter(must_move);
        hinted.map(|row| (row.connection, row.phase)).collect()
    }
}

/// Records which parts were routed in the phase that they were assigned to.
fn record_outcomes(hinted: &mut [HintedPart], extended: &apr::IncrementalRouting) {
    hinted.sort_unstable_by_key(|row| row.part);
    for (parts, outcome) in
        [(&extended.crowded, HintOutcome::Shared), (&extended.refused, HintOutcome::Elsewhere)]
    {
        for part in parts {
            if let Ok(row) = hinted.binary_search_by_key(part, |row| row.part) {
                hinted[row].outcome = outcome;
            }
        }
    }
}

/// The assignment of new connections to phases.
#[derive(Default)]
struct HintAssignment {
    /// The connections that are split, ascending, and the words of their parts.
    split: Vec<(ConnectionId, Vec<u32>)>,
    /// Ascending by part.
    hints: Vec<apr::PlacementHint>,
    parts: Vec<HintedPart>,
}

/// A new connection or a part of it, and the phase it was assigned to.
struct HintedPart {
    part: ConnectionId,
    connection: ConnectionId,
    /// An earlier phase, or a new one if beyond these.
    phase: u32,
    /// Expected increase of the length of the phase, in clocks.
    growth: u64,
    outcome: HintOutcome,
}

/// Whether a part was routed in the phase that it was assigned to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HintOutcome {
    /// Yes, on links that no other stream uses at that time.
    Exclusive,
    /// Yes, on links that other streams use at that time.
    Shared,
    /// No.
    Elsewhere,
}
