//! Random plans of one and of two faults on several machines, sets and numbers of phases: with check words nothing is
//! silent. `CONSET_FAULT_PLANS=100000` runs more plans; `CONSET_FAULT_TABLE=FILE` writes the matrix of faults and
//! outcomes between the marks of a document (`docs/hardening.md`).

mod build;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use conset_fabric::{
    CHECK_WORDS, Detection, FaultExtent, FaultPlan, FaultRun, Outcome, run_with_faults,
};
use conset_ir::Image;

/// Plans of each program in an ordinary test.
const PLANS: u64 = 60;

const MARKS: [&str; 2] = ["<!-- fault matrix -->\n", "<!-- end of fault matrix -->\n"];

/// Programs of one and several phases, sets of one and several words, full and half duplex, shallow and deep queues.
fn programs() -> Vec<(&'static str, Image)> {
    let all = |spec: &str, cells, words, channels: u32, depth: u32, duplex: &str| {
        let machine = build::machine(spec, |p| {
            p.set("duplex", duplex).unwrap();
            (p.channels_per_cell, p.channel_depth) = (channels, depth);
        });
        build::build(&machine, build::all_to_all(cells, words))
    };
    let ring = build::machine("ring:5", |p| p.streams = 3);
    let shift = build::set(&[(0, 2, 40), (1, 3, 7), (2, 4, 1), (3, 0, 25), (4, 1, 40), (2, 2, 5)]);
    vec![
        ("torus:3x2, all-to-all, 3 words, one phase", all("torus:3x2", 6, 3, 40, 2, "full")),
        ("torus:3x2, all-to-all, 9 words, phases", all("torus:3x2", 6, 9, 3, 4, "half")),
        ("mesh:3x3, all-to-all, 2 words, phases", all("mesh:3x3", 9, 2, 4, 1, "full")),
        ("hypercube:3, all-to-all, 5 words, phases", all("hypercube:3", 8, 5, 5, 8, "half")),
        ("ring:5, six connections", build::build(&ring, shift)),
    ]
}

/// A row of the matrix.
#[derive(Default)]
struct Row {
    plans: u64,
    acted: u64,
    /// By mode (plain, checked) and outcome.
    outcomes: BTreeMap<(bool, Outcome), u64>,
    /// Clocks to detection in checked mode.
    clocks: Vec<u64>,
}

impl Row {
    fn add(&mut self, plain: &FaultRun, checked: &FaultRun) {
        self.plans += 1;
        self.acted += u64::from(checked.acted.iter().any(Option::is_some));
        *self.outcomes.entry((false, plain.outcome)).or_default() += 1;
        *self.outcomes.entry((true, checked.outcome)).or_default() += 1;
        self.clocks.extend(checked.clocks_to_detection());
    }

    fn line(&mut self, name: &str) -> String {
        self.clocks.sort_unstable();
        let mut line = format!("| {name} | {} | {} %", self.plans, 100 * self.acted / self.plans);
        for checked in [false, true] {
            for outcome in
                [Outcome::Delivered, Outcome::Detected, Outcome::TimedOut, Outcome::Silent]
            {
                let count = self.outcomes.get(&(checked, outcome)).unwrap_or(&0);
                write!(line, " | {count}").unwrap();
            }
        }
        let median = self.clocks.get(self.clocks.len() / 2);
        let most = self.clocks.last();
        let [median, most] = [median, most].map(|n| n.map_or("-".to_owned(), u64::to_string));
        writeln!(line, " | {median} | {most} |").unwrap();
        line
    }
}

/// Words over the busiest link of a run with check words.
fn extent(image: &Image) -> FaultExtent {
    let run = run_with_faults(image.clone(), 1, &FaultPlan::default(), Detection::Checked).unwrap();
    let phases = &run.reports[0].phases;
    let words = phases.iter().filter_map(|phase| phase.busiest_link).map(|link| link.1);
    FaultExtent {
        clocks: run.clock,
        words: words.max().unwrap_or(1),
        switches: u64::try_from(phases.len()).unwrap(),
    }
}

#[test]
fn nothing_is_silent_with_check_words() {
    let plans = std::env::var("CONSET_FAULT_PLANS").map_or(PLANS * 5, |n| n.parse().unwrap());
    let programs = programs();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut prices = String::new();
    let each = plans.div_ceil(u64::try_from(programs.len()).unwrap());
    for (number, (name, image)) in programs.iter().enumerate() {
        let extent = extent(image);
        let empty = FaultPlan::default();
        let plain = run_with_faults(image.clone(), 1, &empty, Detection::Plain).unwrap();
        let (before, after) = (plain.clock, extent.clocks);
        let percent = 100.0 * (after as f64 / before as f64 - 1.0);
        writeln!(prices, "| {name} | {before} | {after} | {percent:+.1} % |").unwrap();
        for round in 0..each {
            let seed = (number as u64) << 40 | round;
            let faults = 1 + usize::from(round % 4 == 3);
            let plan = FaultPlan::draw(image.machine(), &extent, seed, faults);
            assert_eq!(plan.to_string().parse::<FaultPlan>().unwrap(), plan);
            let run = |detection| run_with_faults(image.clone(), seed, &plan, detection).unwrap();
            let (plain, checked) = (run(Detection::Plain), run(Detection::Checked));
            assert_ne!(checked.outcome, Outcome::Silent, "{name}:\n{plan}{checked:?}");
            let kind = if faults == 1 { plan.faults[0].kind() } else { "two of these" };
            rows.entry(kind.to_owned()).or_default().add(&plain, &checked);
        }
    }
    let acted: u64 = rows.values().map(|row| row.acted).sum();
    let run: u64 = rows.values().map(|row| row.plans).sum();
    assert!(2 * acted > run, "{acted} of {run} plans acted");
    let mut table = format!(
        "{run} plans, of which {acted} acted. Clocks are from the first action of a fault to its report, with check \
         words.\n\n| fault | plans | acted | plain: delivered | detected | timed out | silent | checked: delivered \
         | detected | timed out | silent | median clocks | max |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for (kind, row) in &mut rows {
        table += &row.line(kind);
    }
    write!(
        table,
        "\nThe price of {CHECK_WORDS} check words on each stream:\n\n| program | clocks plain | clocks checked | more \
         |\n|---|---|---|---|\n{prices}"
    )
    .unwrap();
    if let Ok(path) = std::env::var("CONSET_FAULT_TABLE") {
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(MARKS[0]).expect("the first mark");
        let (_, after) = rest.split_once(MARKS[1]).expect("the second mark");
        let new = format!("{before}{}\n{table}\n{}{after}", MARKS[0], MARKS[1]);
        std::fs::write(&path, new).unwrap();
    }
}
