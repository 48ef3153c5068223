//! Prints the message-passing column of the paper's Tables 1 to 3: measured on the emulated
//! machine, predicted by the paper's model, and the paper's own numbers. All-to-all is sent in
//! random order; several seeds show how much the order matters.
//!
//! `cargo run --release -p conset-fabric --example messages_tables [SEEDS]`

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use conset_fabric::messages::{MessageOptions, MessageOrder, predict, run_checked};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_mesh::patterns;

const WORDS: [u32; 4] = [32, 256, 2048, 16384];
/// Pattern, predicted and measured clocks.
const PAPER: [(&str, [u64; 4], [u64; 4]); 3] = [
    ("torus", [3456, 5248, 19584, 134_272], [3760, 5720, 20012, 135_224]),
    ("hypercube", [5184, 7872, 29376, 201_408], [6208, 10792, 48320, 343_192]),
    ("all-to-all", [55296, 83968, 313_344, 2_148_352], [120_960, 274_136, 1_358_632, 11_210_048]),
];

fn main() {
    let seeds = std::env::args().nth(1).map_or(5, |s| s.parse().expect("SEEDS is a number"));
    let machine = Arc::new(Machine::from_spec("iwarp").expect("a preset"));
    println!("pattern     words   predicted    (paper)    measured     (paper)   error   spread");
    let (start, mut hops) = (Instant::now(), 0);
    for (pattern, predicted, measured) in PAPER {
        for (column, words) in WORDS.into_iter().enumerate() {
            let set = patterns::generate(pattern, &machine, words).expect("a pattern");
            let random = pattern == "all-to-all";
            let order = if random { MessageOrder::Random } else { MessageOrder::Given };
            let mut clocks = Vec::new();
            for seed in 1..=if random { seeds } else { 1 } {
                let options = MessageOptions::default().with_seed(seed).with_order(order);
                let report = run_checked(&machine, &set, &options).expect("no deadlock");
                assert!(report.payload_ok);
                clocks.push(report.clocks);
                hops += report.word_hops;
            }
            let mean = clocks.iter().sum::<u64>() as f64 / clocks.len() as f64;
            let error = |clocks: f64| 100.0 * (clocks / measured[column] as f64 - 1.0);
            let (least, most) = (clocks.iter().min().unwrap(), clocks.iter().max().unwrap());
            let counted = if random { with_selves(&machine, &set, words) } else { set };
            println!(
                "{pattern:10} {words:6} {:11} {:10} {mean:11.0} {:11} {:+6.1} %  {:+.1} to {:+.1} %",
                predict(&machine, &counted),
                predicted[column],
                measured[column],
                error(mean),
                error(*least as f64),
                error(*most as f64),
            );
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds:.2} s, {:.1} million word-hops/s", hops as f64 / seconds / 1e6);
}

/// The set with a message of each cell to itself, which the paper's prediction counts.
fn with_selves(machine: &Machine, set: &ConnectionSet, words: u32) -> ConnectionSet {
    let selves = (0..machine.agent_count() as u32).map(CellId);
    let selves = selves.map(|cell| Connection::new(cell, cell, words));
    let connections = set.connections().iter().cloned().chain(selves).collect();
    ConnectionSet::new("with-selves", connections).expect("a set")
}
