//! The advice in error texts, in terms of this interface.
//!
//! Most error texts state what is wrong and are the same everywhere. Some give advice and name a
//! Rust call or an option of the command line. If such an error can result from a C function, its
//! text is made here.

use conset::ir::{Fix, Infeasible};
use conset_runtime::{CellError, EpochUse, PlanError, PlanUse, RunError};

const TREES: &str = "compile with tree_words or trees of conset_compile_options";

/// A set that a machine cannot carry.
pub(crate) fn of_infeasible(error: &Infeasible) -> String {
    let fixes = error.fixes.iter().map(|fix| match fix {
        Fix::Phases(n) => Fix::Other(format!("allow {n} phases (max_phases of the options)")),
        Fix::ChannelsPerCell(n) => Fix::Other(format!(
            "give each cell {n} channels (`channels_per_cell={n}` behind the machine's name)"
        )),
        _ => fix.clone(),
    });
    Infeasible { fixes: fixes.collect(), ..error.clone() }.to_string()
}

/// Layout and image, or trees and image, do not fit together.
pub(crate) fn of_plan(error: &PlanError) -> String {
    match error {
        PlanError::Tree { set, problem } => {
            format!("`{set}` is no tree to compute with: {problem}; {TREES}")
        }
        other => other.to_string(),
    }
}

/// A call of a cell.
pub(crate) fn of_cell(error: &CellError) -> String {
    match error {
        CellError::Plan(PlanUse::Image { set }) => format!(
            "the plan or the trees of set `{set}` are of another image; make them of the image that \
             is run"
        ),
        CellError::Plan(PlanUse::NoTree { call, needed }) => {
            format!("conset_{call} needs the set {needed}; {TREES}")
        }
        CellError::Plan(PlanUse::Type { set, begun, found }) => format!(
            "this exchange of `{set}` was started with {} and is completed with {}",
            type_of(begun),
            type_of(found)
        ),
        CellError::Stack { cell, used, bytes } => format!(
            "{cell} has used {used} of {bytes} bytes of its stack; enlarge it (stack_bytes of the \
             options)"
        ),
        CellError::NotMessages { phase } => format!(
            "messages are not sent or received in phase {phase}: all cells have to call \
             conset_instantiate_messages first"
        ),
        CellError::Epoch(wrong) => of_epoch(wrong),
        other => other.to_string(),
    }
}

/// An epoch.
fn of_epoch(wrong: &EpochUse) -> String {
    match wrong {
        EpochUse::Rounds { rounds, sender } => format!(
            "the epoch has not settled after {rounds} rounds: {sender} still sends; if it may take \
             longer, raise the limit (conset_epoch_limit_rounds)"
        ),
        EpochUse::Items { other, found_words, found_type, words, word_type } => {
            let bytes = |words: usize, name: &str| words.saturating_mul(bytes_of(name));
            format!(
                "{other} makes an exchange or has opened an epoch with items of {} bytes, this cell \
                 with items of {} bytes: all cells have to use the same",
                bytes(*found_words, found_type),
                bytes(*words, word_type)
            )
        }
        other => other.to_string(),
    }
}

/// Bytes of a number, by the bits in the name of its type.
fn bytes_of(rust: &str) -> usize {
    rust.trim_start_matches(char::is_alphabetic).parse().map_or(0, |bits: usize| bits / 8)
}

/// A run.
pub(crate) fn of_run(error: &RunError) -> String {
    match error {
        RunError::Cell { cell, error } => format!("{cell}: {}", of_cell(error)),
        RunError::Stack { .. } => {
            format!("{error}; ask for less (stack_bytes of the options)")
        }
        other => other.to_string(),
    }
}

/// The name of a type of numbers.
fn type_of(rust: &str) -> &str {
    match rust {
        "f64" => "CONSET_DOUBLE",
        "f32" => "CONSET_FLOAT",
        "i64" => "CONSET_INT64",
        "i32" => "CONSET_INT32",
        other => other,
    }
}
