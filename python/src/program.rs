//! A compiled program for Python, of phases or of steps: what both have, and where they differ.
//!
//! Python has one class of native programs and two of its own above it, so that only what differs is
//! told apart here: [`crate::phases`] and [`crate::steps`].

use std::collections::BTreeMap;
use std::sync::Arc;

use conset::choice::{Alternative, CompiledProgram};
use conset_ir::convert::to_u64;
use conset_ir::{ConnectionSet, Document, Machine, PartMap};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};

use crate::arrays;
use crate::job;
use crate::origin::{Origin, PartArrays};
use crate::{phases, steps};

/// A compiled and verified program.
#[pyclass(frozen, module = "conset._conset")]
pub(crate) struct Program {
    pub(crate) compiled: Arc<CompiledProgram>,
    origin: Origin,
    /// What it was compared with.
    other: Option<Alternative>,
}

impl Program {
    pub(crate) fn new(
        compiled: CompiledProgram,
        origin: Origin,
        other: Option<Alternative>,
    ) -> Self {
        Self { compiled: Arc::new(compiled), origin, other }
    }

    fn machine_of(&self) -> &Machine {
        match &*self.compiled {
            CompiledProgram::Phases(compiled) => compiled.schedule().machine(),
            CompiledProgram::Steps(compiled) => compiled.schedule().machine(),
        }
    }

    fn part_map(&self) -> Option<&PartMap> {
        match &*self.compiled {
            CompiledProgram::Phases(compiled) => compiled.schedule().part_map(),
            CompiledProgram::Steps(compiled) => compiled.schedule().part_map(),
        }
    }
}

#[pymethods]
impl Program {
    /// `phases` or `steps`.
    fn by(&self) -> &'static str {
        match &*self.compiled {
            CompiledProgram::Phases(_) => "phases",
            CompiledProgram::Steps(_) => "steps",
        }
    }

    /// The numbers of the sets, as JSON; the keys are those of `conset compile --json`.
    fn summary(&self) -> String {
        let mut summary = match &*self.compiled {
            CompiledProgram::Phases(compiled) => phases::summary(compiled, self.origin.halo()),
            CompiledProgram::Steps(compiled) => steps::summary(compiled),
        };
        summary["by"] = self.by().into();
        if let Some(other) = &self.other {
            summary["compared"] = json!(other);
        }
        summary.to_string()
    }

    /// The machine, as JSON: what of it a page about the schedule needs.
    fn machine(&self) -> String {
        machine_of(self.machine_of()).to_string()
    }

    /// What a mesh contains, as JSON; `None` if the input is no mesh.
    fn inventory(&self) -> Option<String> {
        self.origin.inventory().map(|inventory| inventory.to_string())
    }

    /// The part of each item and the cell of each part.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<PartArrays<'py>> {
        self.origin.parts(py, self.part_map())
    }

    /// The arrays of a set, by name.
    fn arrays<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let no_set = || PyIndexError::new_err("there is no such set");
        let arrays = PyDict::new(py);
        match &*self.compiled {
            CompiledProgram::Phases(compiled) => {
                let set = compiled.schedule().sets().get(row).ok_or_else(no_set)?;
                write_connections(&arrays, set.timetable.routing().set(), self.part_map())?;
                phases::write_routes(&arrays, set)?;
            }
            CompiledProgram::Steps(compiled) => {
                let set = compiled.schedule().sets().get(row).ok_or_else(no_set)?;
                write_connections(&arrays, set.steps.set(), self.part_map())?;
                steps::write_messages(&arrays, &set.steps)?;
            }
        }
        Ok(arrays)
    }

    /// Executes all sets on the emulated machine. Returns the array of `conset run --json`.
    /// `messages` compares phases with message passing.
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
            let runs = match &*compiled {
                CompiledProgram::Phases(compiled) => {
                    phases::run(compiled, seed, messages, observer)?
                }
                CompiledProgram::Steps(compiled) => {
                    observer(conset::Progress::Stage("running steps"));
                    steps::run(compiled, seed)?
                }
            };
            Ok(runs.to_string())
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
            match &*compiled {
                CompiledProgram::Phases(compiled) => phases::verify(compiled),
                CompiledProgram::Steps(compiled) => steps::verify(compiled),
            }
        })
    }

    /// The file of the schedule: `json`, `cset`, `csb`, or `csi` for the image.
    fn write<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyBytes>> {
        let (compiled, form) = (self.compiled.clone(), form.to_owned());
        let bytes = py.detach(move || {
            let document = match (form.as_str(), &*compiled) {
                ("csi", compiled) => Document::Image((**compiled.image()).clone()),
                (_, CompiledProgram::Phases(compiled)) => {
                    Document::Schedule(compiled.schedule().clone())
                }
                (_, CompiledProgram::Steps(compiled)) => {
                    Document::Steps(compiled.schedule().clone())
                }
            };
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
}

/// What of a machine a page about a schedule needs.
fn machine_of(machine: &Machine) -> Value {
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

/// Writes source, target and words of the connections, and their lists of nodes.
fn write_connections(
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
