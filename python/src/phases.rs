//! A program that is compiled to phases, for Python: its summary, its arrays, its execution.

use std::collections::BTreeMap;

use conset::fabric::messages::{MessageOptions, MessageOrder};
use conset::input::PlacedHalo;
use conset::report::Summary;
use conset::{Compiled, Observer, run, with_witnesses};
use conset_ir::convert::to_u64;
use conset_ir::{PhaseRoutes, RouteRef, SetSchedule, Slot};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::arrays;
use crate::failure::Failure;

/// The numbers of the sets; the keys are those of `conset compile --json`.
pub(crate) fn summary(compiled: &Compiled, halo: Option<&PlacedHalo>) -> Value {
    let mut summary = json!(Summary::new(compiled, halo));
    summary["fusions"] = json!(compiled.fusions());
    summary
}

/// Executes all sets on the emulated machine, with `messages` also by message passing. Returns the
/// array of `conset run --json`.
pub(crate) fn run(
    compiled: &Compiled,
    seed: u64,
    messages: bool,
    observer: &mut Observer<'_>,
) -> Result<Value, Failure> {
    let mut runs = run::run(compiled, seed, false, observer)?;
    if messages {
        let options = MessageOptions::default();
        run::compare_with_messages(compiled, &mut runs, &options, &MessageOrder::ALL, observer)
            .map_err(|fault| Failure::from(run::ExecutionError::from(fault)))?;
    }
    Ok(runs.iter().map(|run| json!(run.summary)).collect())
}

/// Lets the independent checker verify the schedule. Returns what it counted.
pub(crate) fn verify(compiled: &Compiled) -> Result<BTreeMap<&'static str, u64>, Failure> {
    let schedule = with_witnesses(compiled.schedule().clone());
    let report = conset::verify::check_schedule(&schedule)?;
    conset::verify::check_image(compiled.image())?;
    Ok(BTreeMap::from([
        ("sets", report.sets),
        ("phases", report.phases),
        ("connections", report.connections),
        ("words", report.words),
        ("routes", report.routes),
        ("hops", report.hops),
        ("max_channels", report.max_occupancy.into()),
        ("max_sharing", report.max_sharing.into()),
        ("proved_phases", report.proved_phases),
        ("proved_clocks", report.proved_clocks),
    ]))
}

/// Writes the routes of all phases in their order, and the lengths of the phases.
pub(crate) fn write_routes(arrays: &Bound<'_, PyDict>, schedule: &SetSchedule) -> PyResult<()> {
    let put = |name: &str, values: Vec<u64>| {
        arrays.set_item(name, arrays::write(arrays.py(), values.into_iter())?)
    };
    let timetable = &schedule.timetable;
    let phases = || timetable.routing().phases().iter().zip(timetable.phases());
    let each = |value: &dyn Fn(usize, RouteRef<'_>, Slot) -> u64| -> Vec<u64> {
        let phases = phases().enumerate();
        let routes = phases.flat_map(|(phase, (routes, times))| {
            let rows = routes.iter().zip(&times.slots);
            rows.map(move |(route, &slot)| (phase, route, slot))
        });
        routes.map(|(phase, route, slot)| value(phase, route, slot)).collect()
    };
    put("connection", each(&|_, route, _| route.connection.0.into()))?;
    put("phase", each(&|phase, _, _| to_u64(phase)))?;
    put("route_words", each(&|_, route, _| route.words.into()))?;
    put("start", each(&|_, _, slot| slot.start))?;
    put("duration", each(&|_, _, slot| slot.duration))?;
    let mut first = vec![0];
    first.extend(each(&|_, route, _| to_u64(route.cells.len())));
    for row in 1..first.len() {
        first[row] += first[row - 1];
    }
    put("route_offsets", first)?;
    let routes = || phases().flat_map(|(routes, _)| PhaseRoutes::iter(routes));
    let cells = routes().flat_map(|route| route.cells).map(|cell| cell.0.into());
    put("cells", cells.collect())?;
    let channels = routes().flat_map(|route| route.channels).map(|channel| channel.0.into());
    put("channels", channels.collect())?;
    put("makespan", timetable.phases().iter().map(|times| times.makespan).collect())
}
