//! Message passing beside connections, under every preset of iWarp.
//!
//! The presets differ in what software costs: `iwarp` opens a stream for nothing, as the pathways of
//! the machine do when a program streams; the others charge what the paper measured for starting a
//! stream, a spool, or an exchange of the FEM loops. Messages pay for their software in each.

use std::fmt::Write as _;
use std::sync::Arc;

use conset::{Compiler, run};
use conset_fabric::messages::{MessageOptions, MessageOrder};
use conset_ir::{ConnectionSet, Machine, Program};

use crate::{HALOS, halo_name, machine, pattern, say, shared_halo};

/// The heading of the section.
pub const HEADING: &str = "## Message passing under each preset";

/// The presets of iWarp whose software costs differ.
const PRESETS: [&str; 4] = ["iwarp", "iwarp-stream", "iwarp-spool", "iwarp-fem"];

/// What is asked of halos on `iwarp`, and of the mesh that the paper used.
const TARGET: f64 = 1.6;
const TARGET_OF_CRACK: f64 = 2.0;

const PATTERNS: [(&str, u32); 8] = [
    ("all-to-all", 32),
    ("all-to-all", 256),
    ("hypercube", 1024),
    ("torus", 1024),
    ("transpose", 1024),
    ("bit-reversal", 1024),
    ("shift:3,2", 1024),
    ("random", 1024),
];

/// Clocks of message passing in its fastest order over those of connections, and that order.
fn ratio(machine: &Arc<Machine>, set: &Arc<ConnectionSet>) -> (f64, &'static str) {
    let program = Program::new(vec![set.clone()]).expect("one set");
    let compiled = Compiler::new(machine).seed(1).compile(&program).expect("it fits");
    let mut runs = run::run(&compiled, 1, false, &mut |_| ()).expect("it was checked");
    let (options, orders) = (MessageOptions::default().seed(1), &MessageOrder::ALL[..]);
    run::compare_with_messages(&compiled, &mut runs, &options, orders, &mut |_| ())
        .expect("the machine has routes for messages");
    let summary = &runs[0].summary;
    let messages = summary.messages.as_ref().expect("they were executed");
    assert!(summary.payload_ok && messages.payload_ok);
    (messages.clocks_over_phases, messages.order)
}

/// The section of `docs/quality.md`.
pub fn section() -> String {
    let machines = PRESETS.map(machine);
    let costs = machines.each_ref().map(|machine| {
        let p = machine.parameters();
        format!("`{}` {} + {} and {}", machine.name(), p.c_send, p.c_receive, p.stream_setup)
    });
    let mut out = format!(
        "{HEADING}\n\n\
         Clocks of message passing over those of connections, both measured on the fabric. Messages are sent in the fastest of these orders: as listed, longest first, staggered, random. \
         Clocks of software, for a message (sending + receiving) and for opening a stream: {}. `iwarp-fem` is the machine of the paper's FEM loops: the program itself moves the words of connections, 10 clocks a word in one direction at a time. A message is copied and spooled out at the rate of the link there, \
         so where few long messages meet no contention (`torus`, `hypercube`) message passing is faster. \
         Asked of halos on `iwarp` is {TARGET}, and {TARGET_OF_CRACK} of `crack`; what is missed is **bold**.\n\n\
         | case | {} | orders |\n|---|{}---|\n",
        costs.join("; "),
        PRESETS.join(" | "),
        "---|".repeat(PRESETS.len()),
    );
    let mut row = |name: &str, target: f64, sets: [Option<Arc<ConnectionSet>>; PRESETS.len()]| {
        let ratios: Option<Vec<_>> =
            machines.iter().zip(sets).map(|(machine, set)| Some(ratio(machine, &set?))).collect();
        let Some(ratios) = ratios else { return false };
        let mut cells: Vec<String> =
            ratios.iter().map(|(ratio, _)| format!("{ratio:.1}")).collect();
        if ratios[0].0 < target {
            cells[0] = format!("**{}**", cells[0]);
        }
        let mut orders: Vec<&str> = ratios.iter().map(|(_, order)| *order).collect();
        orders.dedup();
        let line = format!("| {name} | {} | {} |\n", cells.join(" | "), orders.join(", "));
        say(&line);
        out.push_str(&line);
        true
    };
    for (spec, words) in PATTERNS {
        let sets = machines.each_ref().map(|machine| Some(pattern(spec, machine, words)));
        row(&format!("{spec}, {words} words"), 0.0, sets);
    }
    let mut absent = Vec::new();
    for (file, elements) in HALOS {
        let sets = machines.each_ref().map(|machine| shared_halo(file, elements, machine));
        let is_crack = file == "walshaw/crack.graph";
        let target = if is_crack { TARGET_OF_CRACK } else { TARGET };
        if !row(&halo_name(file, elements), target, sets) {
            absent.push(file);
        }
    }
    if !absent.is_empty() {
        writeln!(out, "\nAbsent in this run: {}.", absent.join(", ")).expect("a string");
    }
    out
}
