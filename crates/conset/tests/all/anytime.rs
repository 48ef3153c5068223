//! The same bytes on any number of threads, and more attempts for more patience.

use std::cell::Cell;
use std::sync::Arc;

use conset::{Algorithm, CompileOptions, Compiler, Interrupt, Progress, StopReason, input};
use conset_ir::document::Document;
use conset_ir::{CellId, Connection, ConnectionSet, Machine, Program, binary};

fn machine(spec: &str) -> Arc<Machine> {
    Arc::new(Machine::from_spec(spec).unwrap())
}

/// Sets of several kinds: dense, sparse, uneven, empty.
fn program(machine: &Arc<Machine>) -> Program {
    let cells = machine.cell_count() as u32;
    let mut sets: Vec<Arc<ConnectionSet>> = Vec::new();
    for spec in ["all-to-all", "hypercube"] {
        sets.extend(input::pattern(spec, machine, 40).unwrap().program.sets().iter().cloned());
    }
    let uneven = (0..200u32)
        .map(|i| Connection::new(CellId(i * 7 % cells), CellId(i * i % cells), 1 + i * 13 % 500))
        .collect();
    sets.push(Arc::new(ConnectionSet::new("uneven", uneven).unwrap()));
    sets.push(Arc::new(ConnectionSet::new("none", Vec::new()).unwrap()));
    Program::new(sets).unwrap()
}

fn options(attempts: Option<u32>) -> CompileOptions {
    CompileOptions::new().algorithm(Algorithm::Auto).max_plans(attempts).seed(3)
}

fn bytes(program: &Program, options: &CompileOptions, threads: usize) -> Vec<u8> {
    let machine = machine("torus:4x4");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let compiled =
        pool.install(|| Compiler::new(&machine).options(options.clone()).compile(program).unwrap());
    binary::write(&Document::Schedule(compiled.schedule().clone()))
}

#[test]
fn the_bytes_are_the_same_on_any_number_of_threads() {
    let program = program(&machine("torus:4x4"));
    for options in [options(None), options(Some(11))] {
        let one = bytes(&program, &options, 1);
        for threads in [2, 5] {
            assert!(bytes(&program, &options, threads) == one, "{threads} threads");
        }
    }
}

#[test]
fn as_many_attempts_are_made_as_were_asked_for_and_more_never_cost() {
    let machine = machine("torus:4x4");
    let uneven = Program::from(program(&machine).sets()[2].as_ref().clone());
    let mut last = u64::MAX;
    for attempts in [1, 4, 12] {
        let compiled =
            Compiler::new(&machine).options(options(Some(attempts))).compile(&uneven).unwrap();
        let made = compiled.sets()[0].search.clone().unwrap();
        assert_eq!((made.plans, made.stop_reason), (attempts, StopReason::MaxPlans));
        // The price that is minimised may be the fabric's, so the model's may rise a little.
        let clocks = compiled.sets()[0].prediction.clocks;
        assert!(clocks <= last.saturating_add(last / 20), "{attempts}: {clocks} after {last}");
        last = clocks;
    }
}

#[test]
fn trying_goes_on_until_it_is_stopped_or_at_the_bound() {
    let machine = machine("torus:4x4");
    let program = program(&machine);
    let asked = Cell::new(0);
    let should_stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 12
    };
    let mut gaps = 0;
    let mut observer = |p: Progress| gaps += usize::from(matches!(p, Progress::Found { .. }));
    let compiled = Compiler::new(&machine)
        .options(options(None))
        .stop_when(should_stop)
        .observer(&mut observer)
        .compile(&program)
        .unwrap();
    assert!(gaps > 0);
    for (set, name) in compiled.sets().iter().zip(["all", "cube", "uneven", "none"]) {
        let attempts = set.search.as_ref().unwrap();
        assert!(
            attempts.plans > 0
                && matches!(attempts.stop_reason, StopReason::TimeLimit | StopReason::Bound),
            "{name}"
        );
    }
    assert_eq!(compiled.sets()[2].search.as_ref().unwrap().stop_reason, StopReason::TimeLimit);
    // Where there is no time at all there is a plan of each set all the same.
    Compiler::new(&machine).options(options(None)).stop_when(|| true).compile(&program).unwrap();
}

#[test]
fn an_interrupted_search_keeps_its_best_plan() {
    let machine = machine("torus:4x4");
    let uneven = Program::from(program(&machine).sets()[2].as_ref().clone());
    // Before the first plan, and after it.
    for after in [0, 1] {
        let (interrupt, found) = (Interrupt::default(), Cell::new(0));
        let ask = |found: u32| {
            if found >= after {
                interrupt.request();
            }
        };
        ask(0);
        let compiled = Compiler::new(&machine)
            .options(options(Some(1000)))
            .interrupted_by(interrupt.clone())
            .observer(|progress| {
                if let Progress::Found { .. } = progress {
                    found.set(found.get() + 1);
                    ask(found.get());
                }
            })
            .compile(&uneven)
            .unwrap();
        let search = compiled.sets()[0].search.clone().unwrap();
        assert_eq!(search.stop_reason, StopReason::Interrupted);
        assert!(search.plans < 1000);
        // The first planner may have a plan before it looks.
        assert!(found.get() <= 1, "{after}");
    }
}
