//! All-to-all on tori of all sizes beside its bounds: a section of `docs/quality.md`.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin tori [-- FOLDER]
//! $ cargo run --release -p conset-benches --bin tori -- print 7x9 8x8x8 phases:7x7    # some rows, printed
//! ```

use std::fmt::Write as _;

use conset::Objective;
use conset_benches::measure::{Measured, measure, timed_machine, verdict};
use conset_benches::{KEPT_SECTIONS, pattern, replace_section, say};

/// Words of a connection.
const WORDS: u32 = 2048;

/// Issue 11: clocks over the bound, and CPU seconds of the compilation.
const OVER_BOUND: f64 = 1.05;
const SECONDS: f64 = 2.0;

const HEADING: &str = KEPT_SECTIONS[0];

struct Case {
    sizes: String,
    objective: Objective,
}

impl Case {
    fn new(text: &str) -> Self {
        let (sizes, objective) = match text.strip_prefix("phases:") {
            Some(sizes) => (sizes, Objective::Phases),
            None => (text, Objective::Time),
        };
        Self { sizes: sizes.to_owned(), objective }
    }
}

/// The squares, neighbours of squares, rectangles, and tori of three dimensions; then those whose
/// phases are to be at the bound.
fn cases() -> Vec<Case> {
    let squares = (4..=16).map(|side| format!("{side}x{side}"));
    let next = (4..=8).map(|side| format!("{side}x{}", side + 1));
    let flat = (4..=9).map(|side| format!("{side}x{}", 20 - side));
    let named = ["6x10", "3x5x7", "8x8x8"].map(str::to_owned);
    let phases = (6..=9).map(|side| format!("phases:{side}x{side}"));
    let all = squares.chain(next).chain(flat).chain(named).chain(phases);
    all.map(|text| Case::new(&text)).collect()
}

fn measured(case: &Case) -> Measured {
    let machine = timed_machine(&format!("torus:{}", case.sizes));
    measure(&machine, &pattern("all-to-all", &machine, WORDS), case.objective)
}

const HEAD: &str = "| torus | objective | connections | phases / bound | clocks | over bound | planner | plans | compiled in | run in |\n|---|---|---|---|---|---|---|---|---|---|\n";

fn line(case: &Case, row: &Measured) -> String {
    let (phases, bound) = row.phases;
    let for_phases = case.objective == Objective::Phases;
    let cells: usize =
        case.sizes.split('x').map(|size| size.parse::<usize>().unwrap_or(0)).product();
    let over_bound =
        verdict(format!("{:.3}", row.over_bound()), for_phases || row.over_bound() <= OVER_BOUND);
    format!(
        "| {} | {} | {} | {} / {bound} | {} | {over_bound} | {} | {} | {} s | {:.1} s |\n",
        case.sizes,
        case.objective.name(),
        cells * cells.saturating_sub(1),
        verdict(phases.to_string(), !for_phases || phases as u32 <= bound),
        row.clocks.0,
        row.planner(),
        row.search.plans,
        verdict(format!("{:.1}", row.seconds), row.seconds <= SECONDS),
        row.run_seconds,
    )
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|word| word == "print").is_some() {
        say(HEAD);
        arguments.map(|text| Case::new(&text)).for_each(|case| say(&line(&case, &measured(&case))));
        return Ok(());
    }
    let mut section = format!(
        "{HEADING}\n\nWritten by `cargo run --release -p conset-benches --bin tori`. {WORDS} words, `iwarp` parameters with timed starts. Asked: at most {OVER_BOUND} over the bound and \
         {SECONDS:.0} CPU seconds; phases at the bound where they are the objective. What is missed is **bold**. *Compiled in* and *run in* are CPU seconds.\n\n{HEAD}"
    );
    let mut ratios = Vec::new();
    for case in cases() {
        let row = measured(&case);
        let line = line(&case, &row);
        say(&line);
        section.push_str(&line);
        if case.objective == Objective::Time {
            ratios.push(row.over_bound());
        }
    }
    let met = ratios.iter().filter(|&&ratio| ratio <= OVER_BOUND).count();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    writeln!(
        section,
        "\n{met} of {} for time are at most {OVER_BOUND} over the bound; the worst is {worst:.3}.",
        ratios.len()
    )
    .expect("a string");
    replace_section(HEADING, &section)
}
