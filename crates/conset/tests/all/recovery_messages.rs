//! Recovery after faults of the hardware of sets by messages and of step plans: as in phases, every word arrives exactly once
//! at cells that are alive, the connections of dead cells are named, and what has no route is refused by name.

use crate::common;
use std::sync::Arc;

use crate::delivered::{Words, check, plan, row_of_cells};
use conset::fabric::messages::{MessageOptions, MessageOrder};
use conset::fabric::{Detection, FaultExtent, FaultPlan, FaultyPart, Outcome};
use conset::recovery::{Recovery, RecoveryOptions, run_messages, run_steps};
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{CompileError, CompileOptions, input};
use conset_ir::{CellId, ConnectionId, ConnectionSet, Duplex, LinkId, Machine, Program, Protocol};
use proptest::prelude::*;

/// What is exchanged: by step plans, if there are any.
struct Subject {
    machine: Arc<Machine>,
    program: Program,
    order: MessageOrder,
    steps: Option<CompiledSteps>,
}

impl Subject {
    /// By messages and, if the program can be compiled to them, by steps.
    fn both(machine: &Arc<Machine>, program: &Program, order: MessageOrder) -> Vec<Self> {
        let compiled = StepCompiler::new(machine).max_plans(2).compile(program, &mut |_| ());
        let steps = match compiled {
            Ok(steps) => Some(steps),
            Err(CompileError::Infeasible(_) | CompileError::Input(_)) => None,
            Err(other) => panic!("{other}"),
        };
        let subject =
            |steps| Self { machine: machine.clone(), program: program.clone(), order, steps };
        let by_steps = steps.map(|steps| subject(Some(steps)));
        by_steps.into_iter().chain([subject(None)]).collect()
    }

    /// Executes the program and checks what has become of each word.
    fn recover(&self, plan: &FaultPlan, detection: Detection) -> Recovery {
        let options = RecoveryOptions::default()
            .detection(detection)
            .compile(CompileOptions::new().max_plans(1));
        let mut words = Words::new(&self.program, plan);
        let recovery = match &self.steps {
            Some(steps) => run_steps(steps, plan, &mut words, &options),
            None => {
                let messages = MessageOptions::default().with_order(self.order);
                run_messages(&self.machine, &self.program, messages, plan, &mut words, &options)
            }
        };
        let recovery = recovery.unwrap();
        check(&recovery, &self.program, &words);
        recovery
    }

    fn with(&self, plan: &str, detection: Detection) -> Recovery {
        self.recover(&plan.parse().unwrap(), detection)
    }

    fn clocks(&self) -> u64 {
        self.with("", Detection::Plain).clock()
    }

    fn name(&self) -> &'static str {
        if self.steps.is_some() { "steps" } else { "messages" }
    }
}

/// Two sets, the second one ordered, under both protocols.
fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for protocol in [Protocol::Standing, Protocol::Rendezvous] {
        let whole = Machine::from_spec("torus:3x4").unwrap();
        let mut parameters = whole.parameters().clone();
        (parameters.protocol, parameters.channel_depth) = (protocol, 2);
        (parameters.c_send, parameters.c_receive) = (20, 10);
        let machine = Arc::new(whole.with_parameters(parameters).unwrap());
        let all = input::pattern("all-to-all", &machine, 5).unwrap().program;
        let long = input::pattern("random", &machine, 60).unwrap().program;
        let set = |program: &Program, name: &str| {
            ConnectionSet::new(name, program.sets()[0].connections().to_vec()).unwrap()
        };
        let order = vec![(ConnectionId(0), ConnectionId(3)), (ConnectionId(1), ConnectionId(3))];
        let sets = vec![set(&all, "all"), set(&long, "long").with_order(order).unwrap()];
        let program = Program::new(sets.into_iter().map(Arc::new).collect()).unwrap();
        subjects.extend(Subject::both(&machine, &program, MessageOrder::Staggered));
    }
    assert_eq!(subjects.len(), 4);
    subjects
}

#[test]
fn without_faults_nothing_is_repeated() {
    for subject in subjects() {
        let recovery = subject.with("cell c0 dead at 100000000", Detection::Checked);
        assert_eq!((recovery.outcome, recovery.attempts.len()), (Outcome::Delivered, 1));
    }
}

#[test]
fn a_dead_link_is_routed_around() {
    for subject in subjects() {
        let (machine, clocks) = (&subject.machine, subject.clocks());
        let links: Vec<LinkId> =
            machine.cells().flat_map(|c| machine.outgoing(c)).copied().collect();
        let mut recoveries = 0;
        for (turn, eighth) in (0..8).enumerate() {
            let links = links.iter().skip(turn % 5).step_by(5);
            for link in links.map(|&link| machine.link(link)) {
                let clock = eighth * clocks / 8;
                let plan = format!("link {} -> {} dead at {clock}", link.source, link.target);
                for detection in [Detection::Plain, Detection::Checked] {
                    let recovery = subject.with(&plan, detection);
                    assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
                    assert!(recovery.lost().next().is_none(), "{plan}");
                    assert!(recovery.attempts.len() <= 2, "{plan}");
                    recoveries += recovery.attempts.len() - 1;
                    let repairs = recovery.attempts.iter().filter_map(|a| a.repair.as_ref());
                    for repair in repairs {
                        assert_eq!(repair.removed, [FaultyPart::Link(link.source, link.target)]);
                        assert!(repair.recompiled > 0 && repair.repeated.is_empty());
                    }
                }
            }
        }
        assert!(recoveries > 20, "{}: {recoveries} recoveries", subject.name());
    }
}

#[test]
fn a_dead_cell_loses_its_own_connections_only() {
    for subject in subjects() {
        let (machine, clocks) = (&subject.machine, subject.clocks());
        let mut lost = 0;
        for (turn, eighth) in (0..8).enumerate() {
            for cell in machine.cells().skip(turn % 3).step_by(3) {
                let plan = format!("cell {cell} dead at {}", eighth * clocks / 8);
                let recovery = subject.with(&plan, Detection::Checked);
                assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
                lost += recovery.lost().count();
                let is_noticed = recovery.attempts[0].repair.is_some();
                let dead = if is_noticed { vec![cell] } else { vec![] };
                assert_eq!(recovery.machine.dead_cells(), dead, "{plan}");
            }
        }
        assert!(lost > 100, "{}: {lost} connections lost", subject.name());
    }
}

#[test]
fn words_that_arrive_wrongly_are_sent_again() {
    for subject in subjects() {
        let (source, target) = (CellId(0), CellId(1));
        let mut again = 0;
        for effect in ["drops", "duplicates", "corrupts", "reorders"] {
            for word in 0..24 {
                let plan = format!("link {source} -> {target} {effect} word {word}");
                let recovery = subject.with(&plan, Detection::Checked);
                assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
                assert_eq!(recovery.machine, subject.machine, "{plan}");
                assert!(recovery.attempts.len() <= 2, "{plan}");
                again += recovery.attempts.len() - 1;
            }
            // A link that spoils all words is found and avoided.
            let plan = format!("link {source} -> {target} {effect} words from 3");
            let recovery = subject.with(&plan, Detection::Checked);
            assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
            assert!(recovery.attempts.len() > 2, "{plan}");
            assert!(recovery.machine.dead_links().contains(&(source, target)), "{plan}");
            let named = recovery.attempts.iter().filter_map(|attempt| attempt.repair.as_ref());
            assert!(named.flat_map(|repair| &repair.repeated).count() > 1, "{plan}");
        }
        assert!(again > 60, "{}: {again} plans acted", subject.name());
    }
}

/// Two links that spoil all words, in exchanges in which many messages go over them.
#[test]
fn links_that_spoil_all_words_are_found_one_after_the_other() {
    let machine = Arc::new(Machine::from_spec("torus:6x6").unwrap());
    let program = input::pattern("all-to-all", &machine, 5).unwrap().program;
    for subject in Subject::both(&machine, &program, MessageOrder::Random) {
        for effect in ["drops", "duplicates", "corrupts", "reorders"] {
            let links = ["c0 -> c1", "c7 -> c8"];
            let plan = links.map(|link| format!("link {link} {effect} words from 40\n")).concat();
            let recovery = subject.with(&plan, Detection::Checked);
            assert_eq!(recovery.outcome, Outcome::Delivered, "{plan}");
            let attempts = recovery.attempts.len();
            assert!((7..25).contains(&attempts), "{}: {attempts} of {plan}", subject.name());
        }
    }
}

#[test]
fn a_machine_in_two_pieces_is_refused_by_name() {
    let (machine, program) = row_of_cells();
    for subject in Subject::both(&machine, &program, MessageOrder::Given) {
        let recovery = subject.with("link c1 -> c2 dead", Detection::Plain);
        assert_eq!(recovery.outcome, Outcome::Refused);
        let names: Vec<_> = recovery.undelivered.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["s/far (c0 -> c3)"], "{}", subject.name());
        assert!(recovery.refusal.is_some());
        // It does not fit from the beginning.
        let hurt = machine.with_dead(&[], &[(CellId(1), CellId(2))]).unwrap();
        let hurt = Subject { machine: Arc::new(hurt), steps: None, ..subject };
        let recovery = hurt.with("", Detection::Plain);
        assert_eq!((recovery.outcome, recovery.words()), (Outcome::Refused, 0));
        assert_eq!(recovery.undelivered.len(), 1);
    }
}

/// A random set, as messages carry it: duplex and protocol from the seed.
fn changed(machine: &Machine, seed: u64) -> Arc<Machine> {
    let mut parameters = machine.parameters().clone();
    if seed.is_multiple_of(2) {
        parameters.protocol = Protocol::Rendezvous;
    }
    if (seed / 2).is_multiple_of(2) {
        parameters.duplex = Duplex::Half;
    }
    Arc::new(machine.with_parameters(parameters).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Faults of every kind at any clock: nothing is delivered twice, nothing is forgotten.
    #[test]
    fn any_program_survives_or_is_refused_by_name(
        (machine, set, seed) in common::case(),
        faults in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u64>()), 1..4),
        drawn in any::<bool>(),
    ) {
        let machine = changed(&machine, seed);
        let order = MessageOrder::ALL[(seed / 4 % 4) as usize];
        for subject in Subject::both(&machine, &Program::from(set), order) {
            let clocks = subject.clocks();
            let plan = if drawn {
                let extent = FaultExtent { clocks, words: 60, switches: 0 };
                FaultPlan::draw(&machine, &extent, seed, faults.len())
            } else {
                plan(&machine, clocks, &faults).parse().unwrap()
            };
            let recovery = subject.recover(&plan, Detection::Checked);
            match recovery.outcome {
                Outcome::Delivered => {}
                Outcome::Refused => prop_assert!(!recovery.undelivered.is_empty()),
                other => prop_assert!(
                    false, "{}, {other}: {plan}\n{:?}", subject.name(), recovery.attempts
                ),
            }
        }
    }
}
