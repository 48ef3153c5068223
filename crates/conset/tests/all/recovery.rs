//! Recovery after faults of the hardware: every word arrives exactly once at cells that are alive, the connections of dead
//! cells are named, and what does not fit the remaining machine is refused by name.

use crate::common;
use std::sync::Arc;

use crate::delivered::{Words, check, plan, row_of_cells};
use conset::fabric::{Detection, FaultPlan, FaultyPart, Outcome, run_with_faults};
use conset::recovery::{Recovery, RecoveryOptions, run};
use conset::{CompileError, CompileOptions, Compiled, Compiler, input};
use conset_ir::{CellId, ConnectionSet, LinkId, Machine, Program};
use proptest::prelude::*;

fn options(detection: Detection) -> RecoveryOptions {
    RecoveryOptions::default().detection(detection).compile(CompileOptions::new().max_plans(1))
}

/// Executes a program and checks what has become of each word.
fn recover(compiled: &Compiled, plan: &str, detection: Detection) -> Recovery {
    let program = compiled.schedule().program();
    let plan: FaultPlan = plan.parse().unwrap();
    let mut words = Words::new(&program, &plan);
    let recovery = run(compiled, &plan, &mut words, &options(detection)).unwrap();
    check(&recovery, &program, &words);
    recovery
}

fn compile(machine: &Arc<Machine>, program: &Program) -> Compiled {
    Compiler::new(machine).max_plans(1).compile(program).unwrap()
}

/// Clocks at which phases begin and in their middles.
fn moments(compiled: &Compiled) -> Vec<u64> {
    let image = compiled.image().clone();
    let run = run_with_faults(image, 0, &FaultPlan::default(), Detection::Plain).unwrap();
    let mut clocks = Vec::new();
    let mut now = 0;
    for phase in run.reports.iter().flat_map(|report| &report.phases) {
        clocks.extend([now, now + phase.switch + phase.clocks / 2]);
        now += phase.switch + phase.clocks;
    }
    clocks
}

/// All-to-all and a set of long connections, which are divided into parts; several phases of each.
fn two_sets() -> (Arc<Machine>, Compiled) {
    let whole = Machine::from_spec("torus:3x4").unwrap();
    let mut parameters = whole.parameters().clone();
    parameters.channels_per_cell = 5;
    let machine = Arc::new(whole.with_parameters(parameters).unwrap());
    let set = |pattern: &str, words, name: &str| {
        let program = input::pattern(pattern, &machine, words).unwrap().program;
        let connections = program.sets()[0].connections().to_vec();
        Arc::new(ConnectionSet::new(name, connections).unwrap())
    };
    let sets = vec![set("all-to-all", 7, "all"), set("random", 300, "long")];
    let compiled = compile(&machine, &Program::new(sets).unwrap());
    (machine, compiled)
}

#[test]
fn a_dead_link_in_any_phase_is_routed_around() {
    let (machine, compiled) = two_sets();
    let moments = moments(&compiled);
    assert!(moments.len() > 8, "several phases");
    let mut attempts = 0;
    for (turn, clock) in moments.into_iter().enumerate() {
        let links: Vec<LinkId> =
            machine.cells().flat_map(|c| machine.outgoing(c)).copied().collect();
        for link in links.into_iter().skip(turn % 5).step_by(5).map(|link| machine.link(link)) {
            let plan = format!("link {} -> {} dead at {clock}", link.source, link.target);
            for detection in [Detection::Plain, Detection::Checked] {
                let recovery = recover(&compiled, &plan, detection);
                assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
                assert!(recovery.lost().next().is_none() && recovery.attempts.len() <= 2, "{plan}");
                attempts += recovery.attempts.len() - 1;
                for repair in recovery.attempts.iter().filter_map(|attempt| attempt.repair.as_ref())
                {
                    assert_eq!(repair.removed, [FaultyPart::Link(link.source, link.target)]);
                    assert!(repair.rerouted + repair.recompiled > 0, "{repair:?}");
                    assert!(repair.repeated.is_empty(), "{repair:?}");
                }
            }
        }
    }
    assert!(attempts > 50, "{attempts} recoveries");
}

#[test]
fn a_dead_cell_in_any_phase_loses_its_own_connections_only() {
    let (machine, compiled) = two_sets();
    let mut lost = 0;
    for (turn, clock) in moments(&compiled).into_iter().enumerate() {
        for cell in machine.cells().skip(turn % 3).step_by(3) {
            let mut plan = format!("cell {cell} dead at {clock}");
            if turn % 2 == 1 {
                plan += &format!("\ncell {cell} misses switch {}", turn / 2 + 1);
            }
            let recovery = recover(&compiled, &plan, Detection::Checked);
            assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
            lost += recovery.lost().count();
            let is_noticed = recovery.attempts[0].repair.is_some();
            assert_eq!(recovery.machine.dead_cells(), if is_noticed { vec![cell] } else { vec![] });
        }
    }
    assert!(lost > 100, "{lost} connections lost");
}

#[test]
fn words_that_arrive_wrongly_are_sent_again() {
    let (machine, compiled) = two_sets();
    let routing = compiled.schedule().sets()[0].timetable.routing();
    let route = routing.phases()[0].iter().find(|route| route.hops() > 1).unwrap();
    let (source, target) = (route.cells[0], route.cells[1]);
    for effect in ["drops", "duplicates", "corrupts", "reorders"] {
        for word in 0..6 {
            let plan = format!("link {source} -> {target} {effect} word {word}");
            let recovery = recover(&compiled, &plan, Detection::Checked);
            assert_eq!(recovery.outcome, Outcome::Delivered);
            let repairs: Vec<_> =
                recovery.attempts.iter().filter_map(|attempt| attempt.repair.as_ref()).collect();
            assert!(repairs.len() <= 1 && repairs.iter().all(|r| r.removed.is_empty()), "{plan}");
            assert_eq!(recovery.machine, machine);
        }
        // A link that spoils all words is found and avoided.
        let plan = format!("link {source} -> {target} {effect} words from 3");
        let recovery = recover(&compiled, &plan, Detection::Checked);
        assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
        assert!(recovery.attempts.len() > 2, "{plan}");
        assert!(recovery.machine.dead_links().contains(&(source, target)), "{plan}");
        let named = recovery.attempts.iter().filter_map(|attempt| attempt.repair.as_ref());
        assert!(named.flat_map(|repair| &repair.repeated).count() > 1, "{plan}");
    }
}

#[test]
fn a_machine_in_two_pieces_is_refused_by_name() {
    let (machine, program) = row_of_cells();
    let compiled = compile(&machine, &program);
    let recovery = recover(&compiled, "link c1 -> c2 dead at 700", Detection::Plain);
    assert_eq!(recovery.outcome, Outcome::Refused);
    let names: Vec<_> = recovery.undelivered.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["s/far (c0 -> c3)"]);
    assert!(recovery.refusal.is_some());
    // The others had been delivered before.
    assert_eq!(recovery.words(), 900);
    let recovery = recover(&compiled, "cell c1 dead at 700", Detection::Plain);
    assert_eq!(recovery.outcome, Outcome::Refused);
    let lost: Vec<_> = recovery.lost().map(ToString::to_string).collect();
    let names: Vec<_> = recovery.undelivered.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["s/far (c0 -> c3)", "s/back (c3 -> c0)"], "{lost:?}");
}

#[test]
fn a_cell_that_misses_a_switch_is_left_out() {
    let (_, compiled) = two_sets();
    for switch in 0..4 {
        let plan = format!("cell c5 misses switch {switch}\ncell c5 misses switch {}", switch + 1);
        let recovery = recover(&compiled, &plan, Detection::Plain);
        assert_eq!(recovery.outcome, Outcome::Delivered);
        assert_eq!(recovery.attempts.len(), 2);
        let repair = recovery.attempts[0].repair.as_ref().unwrap();
        assert_eq!(repair.removed, [FaultyPart::Cell(CellId(5))]);
        assert_eq!(recovery.attempts[0].phases, switch);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Dead links and cells at any clock: nothing is delivered twice, nothing is forgotten.
    #[test]
    fn any_program_survives_or_is_refused_by_name(
        (machine, set, seed) in common::case(),
        faults in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u64>()), 1..4),
    ) {
        let machine = Arc::new(machine);
        let program = Program::from(set);
        let compiled = match Compiler::new(&machine).max_plans(1).seed(seed).compile(&program) {
            Ok(compiled) => compiled,
            Err(CompileError::Infeasible(_)) => return Ok(()),
            Err(other) => panic!("{other}"),
        };
        let clocks = moments(&compiled).last().map_or(1, |last| last * 2);
        let plan = plan(&machine, clocks, &faults);
        let recovery = recover(&compiled, &plan, Detection::Checked);
        match recovery.outcome {
            Outcome::Delivered => {}
            Outcome::Refused => prop_assert!(!recovery.undelivered.is_empty()),
            other => prop_assert!(false, "{other}: {plan}\n{:?}", recovery.attempts),
        }
    }
}
