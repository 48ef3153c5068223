//! Times for what stands and what was put to it.
//!
//! * A phase that nobody joined keeps its starts, whoever left it.
//! * In a phase that somebody joined the rest keeps its starts and the new ones fill holes. If the
//!   phase then takes longer than what stands, times are made anew, by links and as if links had
//!   no end, and the cheapest by the cost model is taken; of equals the first named.
//! * So does a phase in which what stands does not keep the order that the set has now.

use conset_ir::{ConnectionId, ConnectionSet, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};
use conset_partition_route::apr::IncrementalRouting;
use conset_scheduler::fixed_starts::{self, StartRule};
use conset_scheduler::{PhasePrediction, Prediction, link_aware as links, predict};

use super::standing::Standing;
use crate::compile::{CompileError, Options};

/// Passes of the timetable in each phase that somebody joined.
const PASSES: u32 = 64;

/// A timetable, its price, and the phases in which something changed.
pub(super) struct Timed {
    pub(super) timetable: Timetable,
    pub(super) prediction: Prediction,
    pub(super) touched: usize,
}

/// What is known of a phase's times.
enum Known {
    /// All of them.
    All(PhaseTimes),
    /// All of them, and their price: those of a phase of an earlier try.
    Same(usize),
    /// Some starts, and what would be best for the others; when those that stand are done.
    Some { starts: Vec<StartRule>, end: u64 },
}

/// Times for `routing`, which is `extended` with its parts joined. `best` has, for each phase, what
/// is known of the starts of those that came to it, in their order. A phase that has the same
/// routes as in an earlier try, which `earlier` finds by its number before, keeps its times.
pub(super) fn times(
    routing: Routing,
    extended: &IncrementalRouting,
    best: Vec<Vec<StartRule>>,
    standing: &Standing,
    earlier: Option<(&Timed, &[Option<u32>])>,
    options: &Options,
) -> Result<Timed, CompileError> {
    let earlier_of = |former: Option<u32>, routes: &PhaseRoutes| {
        let (timed, now) = earlier?;
        let row = now[former? as usize]? as usize;
        (timed.timetable.routing().phases()[row] == *routes).then_some(row)
    };
    let mut known = Vec::with_capacity(routing.phases().len());
    let mut touched = 0;
    let phases = routing.phases().iter().zip(&extended.former).zip(&extended.stayed);
    for (((routes, former), stayed), best) in phases.zip(best) {
        let old = former.map_or(&[][..], |former| &standing.slots[former as usize]);
        let old: Vec<Slot> = match stayed {
            Some(stayed) => stayed.iter().map(|&row| old[row as usize]).collect(),
            None => old.to_vec(),
        };
        let whole = former.is_some_and(|former| standing.whole[former as usize]);
        let all = old.len() == routes.len() && keeps_order(routing.set(), routes, &old);
        touched += usize::from(!(all && whole && stayed.is_none()));
        let end = old.iter().map(Slot::end).max().unwrap_or(0);
        known.push(if let Some(row) = earlier_of(*former, routes) {
            Known::Same(row)
        } else if all {
            Known::All(PhaseTimes { slots: old, makespan: end })
        } else {
            let starts = old.iter().map(|slot| StartRule::Fixed(slot.start));
            Known::Some { starts: starts.chain(best).collect(), end }
        });
    }
    let mut made = made_anew(&routing, &known, options)?.into_iter();
    let mut times = Vec::with_capacity(known.len());
    let mut prices = Vec::with_capacity(known.len());
    for known in known {
        let (of, price) = match (known, earlier) {
            (Known::Same(row), Some((timed, _))) => {
                (timed.timetable.phases()[row].clone(), Some(timed.prediction.phases[row]))
            }
            (Known::All(times), _) => (times, None),
            _ => (made.next().expect("times were made for each such phase"), None),
        };
        times.push(of);
        prices.push(price);
    }
    let timetable = timetable(routing, times)?;
    let prediction = priced(&timetable, prices)?;
    Ok(Timed { timetable, prediction, touched })
}

/// The prediction of a timetable of which the price of some phases is known.
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

/// The times of those phases of which some are known.
fn made_anew(
    routing: &Routing,
    known: &[Known],
    options: &Options,
) -> Result<Vec<PhaseTimes>, CompileError> {
    let (mut phases, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for (routes, known) in routing.phases().iter().zip(known) {
        if let Known::Some { starts: known, end } = known {
            phases.push(routes.clone());
            starts.push(known.clone());
            ends.push(*end);
        }
    }
    let mut filled = fixed_starts::backfill(&part(routing, phases.clone())?, &starts);
    // What takes no longer than what stands need not be searched for.
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

/// The cheapest times that are found for each phase, with their prices.
fn searched(routing: Routing, options: &Options) -> Result<Vec<(PhaseTimes, u64)>, CompileError> {
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

/// Some phases of a routing.
fn part(routing: &Routing, phases: Vec<PhaseRoutes>) -> Result<Routing, CompileError> {
    Routing::new(routing.machine().clone(), routing.set().clone(), phases)
        .map_err(|e| CompileError::bug("the router", &e))
}

fn timetable(routing: Routing, times: Vec<PhaseTimes>) -> Result<Timetable, CompileError> {
    Timetable::new(routing, times).map_err(|e| CompileError::bug("the scheduler", &e))
}

/// What each phase takes, without the switch.
fn prices(table: &Timetable) -> Vec<u64> {
    predict::predict(table).phases.iter().map(|phase| phase.clocks).collect()
}

/// Whether slots keep the order that the set has now inside a phase.
fn keeps_order(set: &ConnectionSet, routes: &PhaseRoutes, slots: &[Slot]) -> bool {
    if set.order().is_empty() {
        return true;
    }
    // A connection may have several routes: from its first start to its last end.
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
