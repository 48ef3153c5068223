//! A program that is compiled to steps, for Python: its arrays, its reports, its execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset::steps::{CompiledSteps, StepExecutionError};
use conset_ir::convert::to_u64;
use conset_ir::{Document, SetSteps};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};

use crate::arrays;
use crate::failure::Failure;
use crate::job;
use crate::schedule::{Origin, PartArrays, inventory_of, machine_of, write_connections, written};

/// A program that is compiled to messages in steps, and verified.
#[pyclass(frozen, module = "conset._conset")]
pub(crate) struct StepSchedule {
    compiled: Arc<CompiledSteps>,
    origin: Origin,
}

impl StepSchedule {
    pub(crate) fn new(compiled: CompiledSteps, origin: Origin) -> Self {
        Self { compiled: Arc::new(compiled), origin }
    }

    fn set(&self, row: usize) -> PyResult<&SetSteps> {
        let set = self.compiled.schedule().sets().get(row);
        set.ok_or_else(|| PyIndexError::new_err("there is no such set"))
    }
}

#[pymethods]
impl StepSchedule {
    /// The numbers of the sets, as JSON; the keys are those of `conset compile --json`.
    fn summary(&self) -> String {
        json!({"by": "steps", "sets": self.compiled.summaries()}).to_string()
    }

    /// The machine, as JSON.
    fn machine(&self) -> String {
        machine_of(self.compiled.schedule().machine()).to_string()
    }

    /// What a mesh contains, as JSON; `None` if the input is no mesh.
    fn inventory(&self) -> Option<String> {
        self.origin.inventory().map(|inventory| inventory_of(inventory).to_string())
    }

    /// The part of each item and the cell of each part.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<PartArrays<'py>> {
        self.origin.parts(py, self.compiled.schedule().part_map())
    }

    /// The arrays of a set, by name.
    fn arrays<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let steps = &self.set(row)?.steps;
        let arrays = PyDict::new(py);
        write_connections(&arrays, steps.set(), self.compiled.schedule().part_map())?;
        let put = |name: &str, values: Vec<u64>| {
            arrays.set_item(name, arrays::write(py, values.into_iter())?)
        };
        let messages = steps.messages();
        let step = steps.iter().flat_map(|(id, rows)| rows.map(move |_| u64::from(id.0)));
        put("step", step.collect())?;
        put("sender", messages.iter().map(|m| m.source.0.into()).collect())?;
        put("receiver", messages.iter().map(|m| m.target.0.into()).collect())?;
        let mut first = vec![0];
        for message in messages.iter() {
            first.push(first[first.len() - 1] + to_u64(message.pieces.len()));
        }
        put("piece_offsets", first)?;
        let pieces = || messages.iter().flat_map(|message| message.pieces);
        put("connection", pieces().map(|piece| piece.connection.0.into()).collect())?;
        put("first_word", pieces().map(|piece| piece.first_word.into()).collect())?;
        put("piece_words", pieces().map(|piece| piece.words.into()).collect())?;
        Ok(arrays)
    }

    /// Executes all sets on the emulated machine. Returns an array of summaries.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
    fn run(
        &self,
        py: Python<'_>,
        seed: u64,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let compiled = self.compiled.clone();
        job::run(py, progress.as_ref(), move |observer| {
            observer(conset::Progress::Stage("running steps"));
            // The schedule was verified, so no run of it can fail.
            let bug = |error: StepExecutionError| Failure::bug("the run", &error);
            let runs = compiled.run(seed, false).map_err(bug)?;
            let summaries: Vec<Value> = runs.iter().map(|run| json!(run.summary)).collect();
            Ok(Value::from(summaries).to_string())
        })
    }

    /// Lets the independent checker verify the schedule. Returns what was counted.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
    fn verify(
        &self,
        py: Python<'_>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<BTreeMap<&'static str, u64>> {
        let compiled = self.compiled.clone();
        job::run(py, progress.as_ref(), move |observer| {
            observer(conset::Progress::Stage("checking"));
            let report = conset::verify::check_step_schedule(compiled.schedule())?;
            conset::verify::check_image(compiled.image())?;
            let summaries = compiled.summaries();
            let sum = |count: &dyn Fn(&conset::steps::StepSummary) -> usize| {
                to_u64(summaries.iter().map(count).sum::<usize>())
            };
            Ok(BTreeMap::from([
                ("sets", to_u64(summaries.len())),
                ("steps", sum(&|set| set.steps)),
                ("messages", sum(&|set| set.messages)),
                ("connections", report.connections),
                ("words", report.words),
            ]))
        })
    }

    /// The file of the schedule: `json`, `cset`, `csb`, or `csi` for the image.
    fn write<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyBytes>> {
        let compiled = self.compiled.clone();
        let document = move |is_image| match is_image {
            true => Document::Image((**compiled.image()).clone()),
            false => Document::Steps(compiled.schedule().clone()),
        };
        written(py, form, document)
    }
}
