//! Plans sets by slots and prints what came out.
use conset_ir::Machine;
use conset_planner::{Problem, slots};
use std::sync::Arc;
use std::time::Instant;

#[path = "../../../benches/families.rs"]
mod families;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut budget = 1u64 << 25;
    let mut config = slots::Config::default();
    for pair in &args[1..] {
        let (k, v) = pair.split_once('=').unwrap();
        let v: u32 = v.parse().unwrap();
        match k {
            "first" => config.present_first = v,
            "most" => config.present_most = v,
            "growth" => config.present_growth = v,
            "history" => config.history = v,
            "port" => config.port = v,
            "shaken" => config.shaken = v,
            "patience" => config.patience = v,
            "tries" => config.tries = v,
            "budget" => budget = u64::from(v) << 20,
            _ => panic!("{k}"),
        }
    }
    let (mut sum, mut count, mut total) = (0.0, 0, 0.0);
    for case in args[0].split(',') {
        let parts: Vec<&str> = case.split('@').collect();
        let (spec, on, words) = (parts[0], parts[1], parts[2].parse().unwrap());
        let machine = Arc::new(Machine::from_spec(on).unwrap());
        let set = families::family(spec, &machine, words, 1);
        let set =
            set.unwrap_or_else(|| conset_mesh::patterns::generate(spec, &machine, words).unwrap());
        let set = Arc::new(set);
        let bounds = conset_partition_route::bounds::bounds(&machine, &set).unwrap().summary();
        let start = Instant::now();
        let problem = Problem::new(&machine, &set, bounds).unwrap();
        match slots::plan(&problem, &config, budget, 1) {
            None => println!("{case}: nothing"),
            Some(found) => {
                let over = found.plan.clocks as f64 / bounds.clocks as f64;
                let seconds = start.elapsed().as_secs_f64();
                println!(
                    "{case:30} {:6} sends, phases {:3}/{:3}, over {over:.3}, work {:5} M, passes {:5}, {seconds:.2} s",
                    set.len(),
                    found.plan.phases.len(),
                    bounds.phases,
                    found.work >> 20,
                    found.passes
                );
                sum += over.ln();
                count += 1;
                total += seconds;
            }
        }
    }
    println!("geometric mean {:.4}, {total:.1} s", f64::exp(sum / f64::from(count)));
}
