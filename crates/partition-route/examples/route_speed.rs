//! Prints how fast and how well all-to-all is routed: `route_speed [SPEC] [SEEDS] [REROUTES]`.
//!
//! For tuning. Columns: machine, connections, lower bound of phases, phases, channels that
//! shortest routes need and channels taken, milliseconds without and with rip-up and reroute.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use conset_ir::{Connection, ConnectionSet, Machine};
use conset_partition_route::apr::{self, RouterOptions};
use conset_partition_route::bounds;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let spec = arguments.next().unwrap_or_else(|| "iwarp".to_owned());
    let seeds: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(4);
    let reroutes = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(RouterOptions::default().rip_up_iterations);
    let machine = Arc::new(Machine::from_spec(&spec).expect("a machine"));
    let cells: Vec<_> = machine.endpoints().collect();
    let pairs = cells.iter().flat_map(|&a| cells.iter().map(move |&b| (a, b)));
    let connections =
        pairs.filter(|(a, b)| a != b).map(|(a, b)| Connection::new(a, b, 32)).collect();
    let set = Arc::new(ConnectionSet::new("all-to-all", connections).expect("a set"));
    let start = Instant::now();
    let report = bounds::bounds(&machine, &set).expect("feasible");
    println!("{spec}: {} connections, bounds in {:?}", set.len(), start.elapsed());
    for bound in report.phases.iter().chain(&report.clocks) {
        println!("  {} {} ({})", bound.binding, bound.value, bound.explanation);
    }
    for seed in 0..seeds {
        let mut row = Vec::new();
        for reroutes in [0, reroutes] {
            let options =
                RouterOptions { seed, rip_up_iterations: reroutes, ..RouterOptions::default() };
            let start = Instant::now();
            let routing = apr::route(&machine, &set, &options, &mut |_| ()).expect("feasible");
            let taken: usize =
                routing.phases().iter().flat_map(|p| p.iter()).map(|r| r.cells.len()).sum();
            row.push((routing.phases().len(), taken, start.elapsed()));
        }
        println!("  seed {seed}: {row:?}");
    }
}
