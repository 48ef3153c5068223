//! Times for what stands and what was put to it.
//!
//! * A phase that nobody joined keeps its starts, whoever left it.
//! * A phase that somebody joined gets the cheapest, by the cost model, of: the rest keeps its
//!   starts and the new ones fill holes; made anew by links; made anew as if links had no end.
//!   The first named of equals.
//! * So does a phase in which what stands does not keep the order that the set has now.

use conset_ir::{ConnectionId, ConnectionSet, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};
use conset_partition_route::apr::Extended;
use conset_scheduler::planned::{self, Start};
use conset_scheduler::{PhasePrediction, Prediction, best as links, predict};

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
    /// Some starts, and what would be best for the others.
    Some(Vec<Start>),
}

/// Times for `routing`, which is `extended` with its parts joined. `best` has, for each phase, what
/// is known of the starts of those that came to it, in their order.
pub(super) fn times(
    routing: Routing,
    extended: &Extended,
    best: Vec<Vec<Start>>,
    standing: &Standing,
    options: &Options,
) -> Result<Timed, CompileError> {
    let bug = |e: &dyn ToString| CompileError::bug("the scheduler", e);
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
        known.push(if all {
            let makespan = old.iter().map(Slot::end).max().unwrap_or(0);
            Known::All(PhaseTimes { slots: old, makespan })
        } else {
            let starts = old.iter().map(|slot| Start::At(slot.start));
            Known::Some(starts.chain(best).collect())
        });
    }
    let mut made = made_anew(&routing, &known, options)?.into_iter();
    let times = known.into_iter().map(|known| match known {
        Known::All(times) => times,
        Known::Some(_) => made.next().expect("times were made for each such phase"),
    });
    let timetable = Timetable::new(routing, times.collect()).map_err(|e| bug(&e))?;
    let prediction = predict::predict(&timetable);
    Ok(Timed { timetable, prediction, touched })
}

/// The times of those phases of which some are known.
fn made_anew(
    routing: &Routing,
    known: &[Known],
    options: &Options,
) -> Result<Vec<PhaseTimes>, CompileError> {
    let bug = |e: &dyn ToString| CompileError::bug("the scheduler", e);
    let (mut phases, mut starts) = (Vec::new(), Vec::new());
    for (routes, known) in routing.phases().iter().zip(known) {
        if let Known::Some(known) = known {
            phases.push(routes.clone());
            starts.push(known.clone());
        }
    }
    if phases.is_empty() {
        return Ok(Vec::new());
    }
    let part = Routing::new(routing.machine().clone(), routing.set().clone(), phases)
        .map_err(|e| bug(&e))?;
    let filled = planned::filled(&part, &starts);
    let mut tables = links::by_links(part.clone(), PASSES, options.seed).map_err(|e| bug(&e))?;
    let filled = filled.into_iter().zip(tables[0].phases());
    let filled = filled.map(|(filled, greedy)| filled.unwrap_or_else(|| greedy.clone()));
    let filled = Timetable::new(part, filled.collect()).map_err(|e| bug(&e))?;
    tables.insert(0, filled);
    let price = |phase: &PhasePrediction| phase.clocks;
    let price = |table| predict::predict(table).phases.iter().map(price).collect();
    let prices: Vec<Vec<u64>> = tables.iter().map(price).collect();
    Ok(links::combine(&tables, &prices).phases().to_vec())
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
