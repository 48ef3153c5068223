//! Prints how many word-hops per second the fabric moves: all-to-all on an 8x8 torus, 256 words
//! a connection, dimension-ordered routes.
//!
//! `cargo run --release -p conset-fabric --example fabric_speed [WORDS [MACHINE]]`

#![allow(clippy::print_stdout)]

#[path = "../tests/build/mod.rs"]
mod build;

use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let words = arguments.next().map_or(256, |w| w.parse().expect("WORDS is a number"));
    let spec = arguments.next().unwrap_or_else(|| "iwarp".to_owned());
    let machine = build::machine(&spec, |_| ());
    let cells = machine.agent_count() as u32;
    let image = std::sync::Arc::new(build::build(&machine, build::all_to_all(cells, words)));
    for _ in 0..5 {
        let start = Instant::now();
        let checked = conset_fabric::run_checked(image.clone(), 0, 1, false).expect("right image");
        let seconds = start.elapsed().as_secs_f64();
        let report = &checked.report;
        println!(
            "{} phases, {} clocks, {} word-hops in {seconds:.3} s: {:.1} million word-hops/s, \
             payload {}",
            report.phases.len(),
            report.clocks,
            report.word_hops,
            report.word_hops as f64 / seconds / 1e6,
            if checked.payload_ok {
                "ok".to_owned()
            } else {
                format!(
                    "wrong {} missing {} extra {}",
                    checked.wrong, checked.missing, checked.extra
                )
            },
        );
    }
}
