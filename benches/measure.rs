//! Compiling one set and running it on the fabric, for the programs that write tables.

use std::sync::Arc;
use std::time::Instant;

use conset::{Compiler, Objective, SearchStats, run};
use conset_ir::{ConnectionSet, Machine, Parameters, Program};

/// The machine of a specification, whose agents keep planned starts.
pub fn timed_machine(spec: &str) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).expect("benches name machines that exist");
    let parameters = Parameters { timed_starts: 1, ..machine.parameters().clone() };
    Arc::new(machine.with_parameters(parameters).expect("timed starts are in range"))
}

/// A set that was compiled and executed, every word checked.
pub struct Measured {
    /// Phases of the result, and their lower bound.
    pub phases: (usize, u32),
    /// Clocks on the fabric, and their lower bound.
    pub clocks: (u64, u64),
    /// What the search tried.
    pub search: SearchStats,
    /// Seconds of all threads for the compilation, its checks included.
    pub seconds: f64,
    /// Seconds of all threads for the run on the fabric.
    pub run_seconds: f64,
}

impl Measured {
    /// Clocks over their lower bound.
    pub fn over_bound(&self) -> f64 {
        self.clocks.0 as f64 / self.clocks.1.max(1) as f64
    }

    /// The planner of the result.
    pub fn planner(&self) -> &'static str {
        self.search.winner().map_or("paper", |winner| winner.planner)
    }
}

/// Compiles and executes a set.
///
/// # Panics
/// If a stage fails, or a word is lost.
pub fn measure(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, objective: Objective) -> Measured {
    let program = Program::new(vec![set.clone()]).expect("one set");
    let start = cpu_seconds();
    let wall = Instant::now();
    let mut compiler = Compiler::new(machine).objective(objective).seed(1);
    compiler = compiler.clock(move || wall.elapsed());
    let compiled = compiler.compile(&program);
    let compiled = compiled.unwrap_or_else(|e| panic!("{} on {}: {e}", set.name(), machine.name()));
    let compile_end = cpu_seconds();
    let run = run::run(&compiled, 1, false, &mut |_| ()).expect("it was checked").remove(0).summary;
    assert!(run.payload_ok, "{} on {}", set.name(), machine.name());
    Measured {
        phases: (run.phases, run.bound_phases),
        clocks: (run.measured_clocks, run.bound_clocks),
        search: compiled.sets()[0].search.clone().expect("plans were made"),
        seconds: compile_end - start,
        run_seconds: cpu_seconds() - compile_end,
    }
}

/// Seconds that all threads of this process have computed, where the system says; elsewhere those
/// since the first call.
pub fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let start = START.get_or_init(Instant::now);
    thread_seconds().unwrap_or_else(|| start.elapsed().as_secs_f64())
}

fn thread_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses, which may contain spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().ok());
    Some((ticks.next()?? + ticks.next()??) / 100.0)
}

/// Bold where a target is missed.
pub fn verdict(text: String, is_met: bool) -> String {
    if is_met { text } else { format!("**{text}**") }
}
