//! The models of `conset predict` beside the fabric.

use std::fmt::Write as _;
use std::sync::Arc;

use conset::predict::{Model, ModelSummary, PredictOptions, SetPredictions, predict};
use conset_ir::{ConnectionSet, Machine, Program};

use crate::{HALOS, machine, pattern, shared_halo};

/// The heading of the section.
pub const HEADING: &str = "## Predictions";

/// What is asked of our model on `cm5:64`: the median and the worst error in percent.
const MEDIAN: f64 = 5.0;
const WORST: f64 = 15.0;

const PATTERNS: [(&str, u32); 9] = [
    ("all-to-all", 16),
    ("all-to-all", 256),
    ("transpose", 64),
    ("torus", 256),
    ("hypercube", 64),
    ("bit-reversal", 1024),
    ("shift:3,2", 256),
    ("random", 64),
    ("random:density=0.25", 64),
];

/// Sets with their names, and the meshes that are absent.
type Cases = (Vec<(String, Arc<ConnectionSet>)>, Vec<&'static str>);

fn cases(machine: &Machine) -> Cases {
    let (mut cases, mut absent) = (Vec::new(), Vec::new());
    for (file, elements) in HALOS {
        let name = crate::halo_name(file, elements);
        match shared_halo(file, elements, machine) {
            Some(set) => cases.push((name, set)),
            None => absent.push(file),
        }
    }
    for (spec, words) in PATTERNS {
        cases.push((format!("{spec}, {words} words"), pattern(spec, machine, words)));
    }
    (cases, absent)
}

fn predicted(machine: &Arc<Machine>, set: &Arc<ConnectionSet>) -> SetPredictions {
    let program = Program::new(vec![set.clone()]).expect("one set");
    let mut options = PredictOptions::default();
    options.measure = true;
    let report = predict(machine, &program, &options, &mut |_| ());
    report.expect("it fits").sets.remove(0)
}

fn pairs(summary: &ModelSummary) -> String {
    summary.pairs_alike_percent.map_or("-".to_owned(), |percent| format!("{percent:.1} %"))
}

/// A table of all cases on a machine; with targets, what is missed is bold.
fn table(spec: &str, targets: bool) -> String {
    let machine = machine(spec);
    let (cases, absent) = cases(&machine);
    let mut out = format!(
        "### On `{spec}`\n\n\
         | case | methods | `steps`: median error | worst | of | pairs ranked alike | its choice / fastest | `c3`: median error | worst | pairs ranked alike | its choice / fastest |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    let mark = |met: bool, text: String| if met || !targets { text } else { format!("**{text}**") };
    for (name, set) in cases {
        let set = predicted(&machine, &set);
        assert!(set.rows.iter().all(|row| row.refused.is_none()), "{name}: {:?}", set.rows);
        let of = |model| set.summaries.iter().find(|summary| summary.model == model);
        let Some((own, c3)) = of(Model::Steps).zip(of(Model::C3)) else {
            panic!("{name} was measured: {:?}", set.summaries)
        };
        let line = format!(
            "| {name} | {} | {} | {} | {} | {} | {:.2} | {:.1} % | {:+.1} % | {} | {:.2} |\n",
            set.rows.len(),
            mark(own.median_error_percent <= MEDIAN, format!("{:.2} %", own.median_error_percent)),
            mark(
                own.worst_error_percent.abs() <= WORST,
                format!("{:+.1} %", own.worst_error_percent)
            ),
            own.worst_method,
            pairs(own),
            own.choice_over_fastest,
            c3.median_error_percent,
            c3.worst_error_percent,
            pairs(c3),
            c3.choice_over_fastest,
        );
        crate::say(&line);
        out.push_str(&line);
    }
    if !absent.is_empty() {
        writeln!(out, "\nAbsent in this run: {}.", absent.join(", ")).expect("a string");
    }
    out
}

/// The section of `docs/quality.md`.
pub fn section() -> String {
    format!(
        "{HEADING}\n\n\
         `conset predict --measure` on halos of meshes in 64 parts and on patterns: every way to exchange the set (planners of steps, phases, plain messages) is planned, verified, predicted and \
         executed on the fabric, every word checked. `steps` is our own model; asked of it on `cm5:64` are errors of at most 5 % (median) and 15 % (worst); what is missed is **bold**. `c3` has units, to which \
         one factor for each row of the table is fitted. *Pairs ranked alike*: of all pairs of methods, those that the model ranks as the fabric does.\n\n{}\n{}",
        table("cm5:64", true),
        table("delta:8x8", false),
    )
}
