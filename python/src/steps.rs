//! A program that is compiled to steps, for Python: its summary, its arrays, its execution.

use std::collections::BTreeMap;

use conset::steps::{CompiledSteps, StepExecutionError, StepSummary};
use conset_ir::Steps;
use conset_ir::convert::to_u64;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::arrays;
use crate::failure::Failure;

/// The numbers of the sets; the keys are those of `conset compile --by steps --json`.
pub(crate) fn summary(compiled: &CompiledSteps) -> Value {
    json!({"sets": compiled.summaries()})
}

/// Executes all sets on the emulated machine. Returns the array of `conset run --by steps --json`.
pub(crate) fn run(compiled: &CompiledSteps, seed: u64) -> Result<Value, Failure> {
    // The schedule was verified, so no run of it can fail.
    let bug = |error: StepExecutionError| Failure::bug("the run", &error);
    let runs = compiled.run(seed, false).map_err(bug)?;
    Ok(runs.iter().map(|run| json!(run.summary)).collect())
}

/// Lets the independent checker verify the schedule. Returns what was counted.
pub(crate) fn verify(compiled: &CompiledSteps) -> Result<BTreeMap<&'static str, u64>, Failure> {
    let report = conset::verify::check_step_schedule(compiled.schedule())?;
    conset::verify::check_image(compiled.image())?;
    let summaries = compiled.summaries();
    let sum =
        |count: &dyn Fn(&StepSummary) -> usize| to_u64(summaries.iter().map(count).sum::<usize>());
    Ok(BTreeMap::from([
        ("sets", to_u64(summaries.len())),
        ("steps", sum(&|set| set.steps)),
        ("messages", sum(&|set| set.messages)),
        ("connections", report.connections),
        ("words", report.words),
    ]))
}

/// Writes the messages of all steps in their order, and their pieces.
pub(crate) fn write_messages(arrays: &Bound<'_, PyDict>, steps: &Steps) -> PyResult<()> {
    let put = |name: &str, values: Vec<u64>| {
        arrays.set_item(name, arrays::write(arrays.py(), values.into_iter())?)
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
    put("piece_words", pieces().map(|piece| piece.words.into()).collect())
}
