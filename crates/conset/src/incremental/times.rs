//! Timetables of phases that reuse an earlier schedule.
//!
//! * A phase without added connections keeps its starts, even if connections were removed.
//! * In a phase with added connections the others keep their starts, and the added ones fill idle
//!   intervals. If the phase then takes longer than its reused connections alone, it is
//!   rescheduled, with and without regard to link sharing, and the cheapest timetable by the cost model is
//!   used.
//! * A phase whose reused connections violate the new order of the set is also rescheduled.

use conset_ir::convert::index;
use conset_ir::{ConnectionId, ConnectionSet, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};
use conset_partition_route::apr::IncrementalRouting;
use conset_scheduler::fixed_starts::{self, StartRule};
use conset_scheduler::{PhasePrediction, Prediction, link_aware as links, predict};

use super::reused::ReusedSet;
use crate::{CompileError, CompileOptions};

/// Passes of the timetable search in each phase with added connections.
const PASSES: u32 = 64;

/// A timetable, its price, and the number of phases with any change.
pub(super) struct TimedRouting {
    pub(super) timetable: Timetable,
    pub(super) prediction: Prediction,
    pub(super) touched: usize,
}

/// The known times of a phase.
enum PhaseStarts {
    /// All times.
    All(PhaseTimes),
    /// All times and their price: those of a phase of an earlier trial.
    Same(usize),
    /// The starts of the reused connections and the preferred starts of the others, and the end of
    /// the reused connections.
    Some { starts: Vec<StartRule>, end: u64 },
}

/// Timetables for `routing`, which is `extended` with the parts of connections combined. `preferred`
/// has, for each phase, the preferred starts of the added connections, in their order. A phase with
/// the same routes as in an earlier trial, which `earlier` finds by its earlier number, keeps its
/// times.
pub(super) fn times(
    routing: Routing,
    extended: &IncrementalRouting,
    preferred: Vec<Vec<StartRule>>,
    reused: &ReusedSet,
    earlier: Option<(&TimedRouting, &[Option<u32>])>,
    options: &CompileOptions,
) -> Result<TimedRouting, CompileError> {
    let earlier_of = |former: Option<u32>, routes: &PhaseRoutes| {
        let (timed, now) = earlier?;
        let row = index(now[index(former?)]?);
        (timed.timetable.routing().phases()[row] == *routes).then_some(row)
    };
    let mut known = Vec::with_capacity(routing.phases().len());
    let mut touched = 0;
    let phases = routing.phases().iter().zip(&extended.former).zip(&extended.stayed);
    for (((routes, former), stayed), preferred) in phases.zip(preferred) {
        let old = former.map_or(&[][..], |former| &reused.slots[index(former)]);
        let old: Vec<Slot> = match stayed {
            Some(stayed) => stayed.iter().map(|&row| old[index(row)]).collect(),
            None => old.to_vec(),
        };
        let whole = former.is_some_and(|former| reused.whole[index(former)]);
        let all = old.len() == routes.len() && keeps_order(routing.set(), routes, &old);
        touched += usize::from(!(all && whole && stayed.is_none()));
        let end = old.iter().map(Slot::end).max().unwrap_or(0);
        known.push(if let Some(row) = earlier_of(*former, routes) {
            PhaseStarts::Same(row)
        } else if all {
            PhaseStarts::All(PhaseTimes { slots: old, makespan: end })
        } else {
            let starts = old.iter().map(|slot| StartRule::Fixed(slot.start));
            PhaseStarts::Some { starts: starts.chain(preferred).collect(), end }
        });
    }
    let mut made = reschedule(&routing, &known, options)?.into_iter();
    let mut times = Vec::with_capacity(known.len());
    let mut prices = Vec::with_capacity(known.len());
    for known in known {
        let (of, price) = match (known, earlier) {
            (PhaseStarts::Same(row), Some((timed, _))) => {
                (timed.timetable.phases()[row].clone(), Some(timed.prediction.phases[row]))
            }
            (PhaseStarts::All(times), _) => (times, None),
            _ => (made.next().expect("times were made for each such phase"), None),
        };
        times.push(of);
        prices.push(price);
    }
    let timetable = timetable(routing, times)?;
    let prediction = priced(&timetable, prices)?;
    Ok(TimedRouting { timetable, prediction, touched })
}

/// The prediction of a timetable when the prices of some phases are known.
fn priced(
    table: &Timetable,
    mut prices: Vec<Option<PhasePrediction>>,
) -> Result<Prediction, CompileError> {
    if prices.iter().all(Option::is_none) {
        return Ok(predict::predict(table));
    }
    let open: Vec<usize> = (0..prices.len()).filter(|&row| prices[row].is_none()).collect();
    let phases = open.iter().map(|&row| table.routing().phases()[row].clone()).collect();
    let times = open.iter().map(|&row| table.phases()[row].clone()).collect();
    let rest = predict::predict(&timetable(part(table.routing(), phases)?, times)?);
    for (row, phase) in open.into_iter().zip(rest.phases) {
        prices[row] = Some(phase);
    }
    let phases: Vec<PhasePrediction> = prices.into_iter().flatten().collect();
    Ok(Prediction::new(phases))
}

/// Times for the phases whose times are known only in part.
fn reschedule(
    routing: &Routing,
    known: &[PhaseStarts],
    options: &CompileOptions,
) -> Result<Vec<PhaseTimes>, CompileError> {
    let (mut phases, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for (routes, known) in routing.phases().iter().zip(known) {
        if let PhaseStarts::Some { starts: known, end } = known {
            phases.push(routes.clone());
            starts.push(known.clone());
            ends.push(*end);
        }
    }
    let mut filled = fixed_starts::backfill(&part(routing, phases.clone())?, &starts);
    // A phase that takes no longer than its reused connections needs no search.
    let rows: Vec<usize> = (0..phases.len()).filter(|&row| filled[row].is_some()).collect();
    let some = rows.iter().filter_map(|&row| filled[row].clone()).collect();
    let table = part(routing, rows.iter().map(|&row| phases[row].clone()).collect())?;
    let prices = prices(&timetable(table, some)?);
    let mut price = vec![None; phases.len()];
    for (row, clocks) in rows.into_iter().zip(prices) {
        price[row] = Some(clocks);
    }
    let open: Vec<usize> =
        (0..phases.len()).filter(|&row| price[row].is_none_or(|price| price > ends[row])).collect();
    let rest = part(routing, open.iter().map(|&row| phases[row].clone()).collect())?;
    let found = searched(rest, options)?;
    for (row, (times, clocks)) in open.into_iter().zip(found) {
        if price[row].is_none_or(|price| clocks < price) {
            filled[row] = Some(times);
        }
    }
    Ok(filled.into_iter().map(|times| times.expect("filled or searched for")).collect())
}

/// The cheapest times found for each phase, with their prices.
fn searched(
    routing: Routing,
    options: &CompileOptions,
) -> Result<Vec<(PhaseTimes, u64)>, CompileError> {
    if routing.phases().is_empty() {
        return Ok(Vec::new());
    }
    let bug = |e| CompileError::bug("the scheduler", &e);
    let tables = links::list_schedules(routing, PASSES, options.seed).map_err(bug)?;
    let tables = fixed_starts::with_early_starts(tables);
    let of_tables: Vec<Vec<u64>> = tables.iter().map(prices).collect();
    let least = |phase: usize| of_tables.iter().map(|prices| prices[phase]).min().unwrap_or(0);
    let best = links::combine(&tables, &of_tables);
    let times = best.phases().iter().cloned().enumerate();
    Ok(times.map(|(phase, times)| (times, least(phase))).collect())
}

/// A routing of some phases.
fn part(routing: &Routing, phases: Vec<PhaseRoutes>) -> Result<Routing, CompileError> {
    Routing::new(routing.machine().clone(), routing.set().clone(), phases)
        .map_err(|e| CompileError::bug("the router", &e))
}

fn timetable(routing: Routing, times: Vec<PhaseTimes>) -> Result<Timetable, CompileError> {
    Timetable::new(routing, times).map_err(|e| CompileError::bug("the scheduler", &e))
}

/// Predicted clocks of each phase, without the context switch.
fn prices(table: &Timetable) -> Vec<u64> {
    predict::predict(table).phases.iter().map(|phase| phase.clocks).collect()
}

/// Whether the slots of a phase satisfy the order of the set.
fn keeps_order(set: &ConnectionSet, routes: &PhaseRoutes, slots: &[Slot]) -> bool {
    if set.order().is_empty() {
        return true;
    }
    // A connection with several routes spans from its first start to its last end.
    let mut spans: Vec<(ConnectionId, u64, u64)> = routes
        .iter()
        .zip(slots)
        .map(|(route, slot)| (route.connection, slot.start, slot.end()))
        .collect();
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.2 = kept.2.max(next.2);
        }
        same
    });
    let find =
        |x: ConnectionId| spans.binary_search_by_key(&x, |span| span.0).ok().map(|at| spans[at]);
    spans.iter().all(|&(x, _, end)| {
        let from = set.order().partition_point(|pair| pair.0 < x);
        let pairs = set.order()[from..].iter().take_while(|pair| pair.0 == x);
        pairs.filter_map(|pair| find(pair.1)).all(|after| end <= after.1)
    })
}
