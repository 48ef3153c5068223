//! Budgets of work and memory: what is too large is refused before anything is planned, searches
//! that are cut short say so, and all of it is counted, so that the bytes are the same everywhere.

use std::sync::Arc;

use conset::{CompileError, Compiled, Compiler, StopReason};
use conset_ir::{CellId, Connection, ConnectionSet, Machine, Program};

fn compiled(
    machine: &Arc<Machine>,
    ends: impl Iterator<Item = (u32, u32)>,
    unlimited: bool,
) -> Result<Compiled, CompileError> {
    let connect = |(a, b)| Connection::new(CellId(a), CellId(b), 1);
    let set = ConnectionSet::new("s", ends.map(connect).collect()).unwrap();
    Compiler::new(machine).unlimited(unlimited).compile(&Program::from(set))
}

#[test]
fn routes_that_are_too_long_for_memory_are_refused_early() {
    // A few hundred connections, ten million channels.
    let machine = Arc::new(Machine::from_spec("ring:100000").unwrap());
    let refused = compiled(&machine, (0..250).map(|k| (k, k + 40_000)), false).unwrap_err();
    let CompileError::Infeasible(infeasible) = refused else { panic!("{refused}") };
    let text = infeasible.to_string();
    assert!(text.contains("10000250 channels") && text.contains("memory budget"), "{text}");
    assert!(text.contains("unlimited"), "{text}");
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let machine = Arc::new(Machine::from_spec("ring:4096").unwrap());
    // Connections far apart and all over the ring.
    let ends = || (0..64u32).map(|k| (k * k * 61 % 4096, (k * k * 61 + 900 + 31 * k) % 4096));
    let limited = compiled(&machine, ends(), false).unwrap();
    let unlimited = compiled(&machine, ends(), true).unwrap();
    let ended = |compiled: &Compiled| compiled.sets()[0].search.as_ref().unwrap().stop_reason;
    assert_eq!(ended(&limited), StopReason::WorkLimit);
    assert_eq!(ended(&unlimited), StopReason::Converged);
    let clocks = |compiled: &Compiled| compiled.schedule().sets()[0].predicted_clocks;
    assert!(clocks(&unlimited) <= clocks(&limited));
    // Small sets never meet a budget.
    let machine = Arc::new(Machine::from_spec("mesh:5x5").unwrap());
    let ends = || (0..60u32).map(|k| (k * 7 % 25, k * k % 25));
    let (a, b) =
        (compiled(&machine, ends(), false).unwrap(), compiled(&machine, ends(), true).unwrap());
    assert_ne!(ended(&a), StopReason::WorkLimit);
    assert_eq!(a.schedule(), b.schedule());
}
