//! A compiled program for Python: its arrays, its reports, its execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset::fabric::messages::{MessageOptions, MessageOrder};
use conset::input::LoadedProgram;
use conset::report::Summary;
use conset::{Compiled, run, with_witnesses};

use conset_ir::convert::{index, to_u64};
use conset_ir::{
    ConnectionSet, Document, Machine, PartMap, PhaseRoutes, RouteRef, SetSchedule, Slot,
};
use conset_mesh::model::{ElementOrigin, Inventory};
use conset_mesh::read::Reading;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};

use crate::arrays;
use crate::failure::Failure;
use crate::job;
use crate::source::parts_of_items;

/// How the sets of a schedule belong to the input. Empty if the schedule comes from a file.
#[derive(Default)]
pub(crate) struct Origin {
    /// The part of each item (element, vertex or row), in the order of the input.
    item_parts: Option<Vec<u32>>,
    /// The cell of each part, or of each cell that the sets name.
    part_cells: Option<Vec<u32>>,
    /// Which elements of the input those of the mesh are.
    elements: Option<ElementOrigin>,
    /// What a mesh contains.
    inventory: Option<Inventory>,
    /// What was exchanged before parts were placed; the summary needs it.
    halo: Option<conset::input::PlacedHalo>,
}

impl Origin {
    /// What belongs to the input and is not part of the program.
    pub(crate) fn of(reading: &Reading) -> Self {
        Self {
            elements: reading.origin.clone(),
            inventory: reading.inventory.clone(),
            ..Self::default()
        }
    }

    /// Adds the parts and their cells.
    pub(crate) fn describe(&mut self, loaded: &LoadedProgram) {
        let cells = loaded.placement.as_ref().map(|placement| &placement.cells);
        self.part_cells = cells.map(|cells| cells.iter().map(|cell| cell.0).collect());
        let Some(placed) = &loaded.halo else { return };
        let parts = parts_of_items(&placed.halo.parts);
        self.item_parts = Some(match self.elements.take() {
            Some(elements) => parts_in_file(&parts, &elements),
            None => parts,
        });
        self.halo = Some(placed.clone());
    }

    /// What a mesh contains.
    pub(crate) fn inventory(&self) -> Option<&Inventory> {
        self.inventory.as_ref()
    }

    /// The part of each item and the cell of each part.
    pub(crate) fn parts<'py>(
        &self,
        py: Python<'py>,
        map: Option<&PartMap>,
    ) -> PyResult<PartArrays<'py>> {
        let write = |values: &Vec<u32>| arrays::write(py, values.iter().copied().map(u64::from));
        let mapped = map.map(|map| map.cells().iter().map(|cell| cell.0).collect());
        Ok((
            self.item_parts.as_ref().map(write).transpose()?,
            mapped.as_ref().or(self.part_cells.as_ref()).map(write).transpose()?,
        ))
    }
}

/// The part of each item and the cell of each part, as arrays.
pub(crate) type PartArrays<'py> = (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// The part of each element of the file; attached elements are in the part of the one that they are
/// attached to.
fn parts_in_file(parts: &[u32], origin: &ElementOrigin) -> Vec<u32> {
    let mut all = vec![0; origin.divided.len() + origin.attached.len()];
    for (&position, &part) in origin.divided.iter().zip(parts) {
        all[index(position)] = part;
    }
    for &(position, element) in &origin.attached {
        all[index(position)] = parts[index(element)];
    }
    all
}

/// A compiled and verified program.
#[pyclass(frozen, module = "conset._conset")]
pub(crate) struct Schedule {
    pub(crate) compiled: Arc<Compiled>,
    origin: Origin,
}

impl Schedule {
    pub(crate) fn new(compiled: Compiled, origin: Origin) -> Self {
        Self { compiled: Arc::new(compiled), origin }
    }

    fn set(&self, row: usize) -> PyResult<&SetSchedule> {
        let set = self.compiled.schedule().sets().get(row);
        set.ok_or_else(|| PyIndexError::new_err("there is no such set"))
    }
}

#[pymethods]
impl Schedule {
    /// The numbers of a set, as JSON; the keys are those of `conset compile --json`.
    fn summary(&self) -> String {
        let mut summary = json!(Summary::new(&self.compiled, self.origin.halo.as_ref()));
        summary["fusions"] = json!(self.compiled.fusions());
        summary.to_string()
    }

    /// The machine, as JSON: what of it a page about the schedule needs.
    fn machine(&self) -> String {
        machine_of(self.compiled.schedule().machine()).to_string()
    }

    /// What a mesh contains, as JSON; `None` if the input is no mesh.
    fn inventory(&self) -> Option<String> {
        self.origin.inventory().map(|inventory| inventory_of(inventory).to_string())
    }

    /// The names of the sets.
    fn names(&self) -> Vec<&str> {
        let sets = self.compiled.schedule().sets().iter();
        sets.map(|set| set.timetable.routing().set().name()).collect()
    }

    /// The part of each item and the cell of each part.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<PartArrays<'py>> {
        self.origin.parts(py, self.compiled.schedule().part_map())
    }

    /// The arrays of a set, by name.
    fn arrays<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let schedule = self.set(row)?;
        let arrays = PyDict::new(py);
        let map = self.compiled.schedule().part_map();
        write_connections(&arrays, schedule.timetable.routing().set(), map)?;
        write_routes(&arrays, schedule)?;
        Ok(arrays)
    }

    /// Executes all sets on the emulated machine. Returns the array of `conset run --json`.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
    fn run(
        &self,
        py: Python<'_>,
        seed: u64,
        messages: bool,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let compiled = self.compiled.clone();
        job::run(py, progress.as_ref(), move |observer| {
            let mut runs = run::run(&compiled, seed, false, observer)?;
            if messages {
                let options = MessageOptions::default();
                run::compare_with_messages(
                    &compiled,
                    &mut runs,
                    &options,
                    &MessageOrder::ALL,
                    observer,
                )
                .map_err(|fault| Failure::from(run::ExecutionError::from(fault)))?;
            }
            let summaries: Vec<Value> = runs.iter().map(|run| json!(run.summary)).collect();
            Ok(Value::from(summaries).to_string())
        })
    }

    /// Lets the independent checker verify the schedule. Returns what it counted.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
    fn verify(
        &self,
        py: Python<'_>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<BTreeMap<&'static str, u64>> {
        let compiled = self.compiled.clone();
        job::run(py, progress.as_ref(), move |observer| {
            observer(conset::Progress::Stage("checking"));
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
        })
    }

    /// The file of the schedule: `json`, `cset`, `csb`, or `csi` for the image.
    fn write<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyBytes>> {
        let compiled = self.compiled.clone();
        let document = move |is_image| match is_image {
            true => Document::Image((**compiled.image()).clone()),
            false => Document::Schedule(compiled.schedule().clone()),
        };
        written(py, form, document)
    }
}

/// The bytes of a document: `json`, `cset`, `csb`, or `csi`, for which the document is the image.
pub(crate) fn written<'py>(
    py: Python<'py>,
    form: &str,
    document: impl FnOnce(bool) -> Document + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    let form = form.to_owned();
    let bytes = py.detach(move || {
        let document = document(form == "csi");
        let mut bytes = Vec::new();
        let written = match form.as_str() {
            "json" => conset_ir::json::write_to(&document, &mut bytes),
            "cset" => conset_ir::text::write_to(&document, &mut bytes),
            _ => {
                bytes = conset_ir::binary::write(&document);
                Ok(())
            }
        };
        written.map(|()| bytes)
    });
    Ok(PyBytes::new(py, &bytes.map_err(|e| PyValueError::new_err(e.to_string()))?))
}

/// What of a machine a page about a schedule needs.
pub(crate) fn machine_of(machine: &Machine) -> Value {
    let parameters = machine.parameters();
    json!({
        "name": machine.name(),
        "topology": machine.topology().to_string(),
        "cells": machine.cell_count(),
        "agents": machine.agent_count(),
        "links": machine.link_count(),
        "channels_per_cell": parameters.channels_per_cell,
        "link_clocks_per_word": parameters.link_clocks_per_word,
        "switch_clocks": parameters.switch_clocks(),
        "clock_hz": parameters.clock_hz,
        "timed_starts": parameters.has_timed_starts(),
    })
}

pub(crate) fn inventory_of(inventory: &Inventory) -> Value {
    let elements = inventory.elements.iter().map(|entry| {
        json!({
            "type": entry.element_type.to_string(),
            "count": entry.count,
            "attached": entry.attached,
        })
    });
    let unused = inventory.unused.iter().map(|entry| json!({"what": entry.what, "why": entry.why}));
    json!({
        "format": inventory.format,
        "nodes": inventory.node_count,
        "unused_nodes": inventory.unused_nodes,
        "joined_nodes": inventory.joined_nodes,
        "elements": elements.collect::<Vec<_>>(),
        "unused": unused.collect::<Vec<_>>(),
    })
}

/// Writes source, target and words of the connections, and their lists of nodes.
pub(crate) fn write_connections(
    arrays: &Bound<'_, PyDict>,
    set: &ConnectionSet,
    map: Option<&PartMap>,
) -> PyResult<()> {
    let put = |name: &str, values: Vec<u64>| {
        arrays.set_item(name, arrays::write(arrays.py(), values.into_iter())?)
    };
    let connections = set.connections();
    put("source", connections.iter().map(|c| c.source.0.into()).collect())?;
    put("target", connections.iter().map(|c| c.target.0.into()).collect())?;
    put("words", connections.iter().map(|c| c.words.into()).collect())?;
    let Some(lists) = set.nodes() else { return Ok(()) };
    let (mut first, mut nodes, mut numbers) = (vec![0], Vec::new(), Vec::new());
    for (id, _) in set.iter() {
        nodes.extend(lists.of(id).iter().copied().map(u64::from));
        numbers.extend(map.iter().flat_map(|map| lists.of(id).iter().map(|&n| map.number(n))));
        first.push(to_u64(nodes.len()));
    }
    put("node_offsets", first)?;
    put("nodes", nodes)?;
    if map.is_some() { put("node_numbers", numbers) } else { Ok(()) }
}

/// Writes the routes of all phases in their order, and the lengths of the phases.
fn write_routes(arrays: &Bound<'_, PyDict>, schedule: &SetSchedule) -> PyResult<()> {
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
