//! Profiles of random programs: the clocks of every port add up to those of the run, exactly.
//!
//! The programs are those of `programs.rs`: any topology, half and full duplex, several streams, with
//! and without set-up, timed starts, orders and dead cells.

use conset::fabric::messages::{self, MessageOptions};
use conset::ir::{Duplex, Machine};
use conset::profile::{self, PortSide, SetProfile};
use conset::steps::StepCompiler;
use conset::{Compiled, Compiler, run};
use conset_testing::{Case, CaseKind};

/// Number of runs.
const RUNS: u32 = 1000;

/// Number of programs that are exchanged by messages.
const MESSAGE_PROGRAMS: u64 = 250;

/// Programs with more words are not run; a run takes time in proportion to the words.
const MAX_WORDS: u64 = 1 << 17;

fn compiled(case: &Case) -> Option<Compiled> {
    let options = case.options.clone().max_plans(1);
    Compiler::new(&case.machine).options(options).compile(&case.program).ok()
}

/// What holds for every profile: sums, and that clocks of moving words follow from the words.
fn adds_up(profile: &SetProfile, clocks: u64, machine: &Machine) {
    assert_eq!(profile.clocks, clocks, "{}", profile.set);
    for phase in &profile.phases {
        for port in &phase.ports {
            assert_eq!(port.clocks.total(), phase.switch + phase.clocks, "{port:?}");
        }
    }
    for port in &profile.ports {
        assert_eq!(port.clocks.total(), clocks, "{port:?}");
    }
    assert_eq!(profile.critical_path.clocks.total(), clocks, "{:?}", profile.critical_path);
    let streams: usize = profile.phases.iter().map(|phase| phase.streams).sum();
    assert_eq!(profile.critical_path.slack.streams, streams);
    assert!(streams == 0 || profile.critical_path.slack.zero > 0);
    let sides = profile.sides.iter();
    let ports = |side: PortSide| sides.clone().any(|s| s.side == side);
    assert_eq!(machine.endpoints().count() == 0, profile.ports.is_empty());
    assert_eq!(ports(PortSide::Send), ports(PortSide::Receive));
    // In each phase the path is a chain without holes that begins with the phase and ends with it.
    for phase in &profile.phases {
        let segments = profile.critical_path.segments.iter();
        let mut now = 0;
        for segment in segments.filter(|segment| segment.phase == phase.phase) {
            assert_eq!(segment.from, now + segment.waited, "{segment:?}");
            now = segment.to;
        }
        assert!(phase.streams == 0 || now == phase.clocks, "{now} of {}", phase.clocks);
    }
}

#[test]
fn the_clocks_of_every_port_add_up() {
    let (mut runs, mut half, mut timed, mut streams, mut setup) = (0, 0, 0, 0, 0);
    for seed in 0.. {
        if runs == RUNS {
            break;
        }
        let case = Case::of_seed(seed, CaseKind::Any);
        let words: u64 = case.program.sets().iter().map(|set| set.words()).sum();
        let Some(compiled) = compiled(&case) else { continue };
        let p = case.machine.parameters();
        let sets = compiled.schedule().sets().iter();
        for (schedule, set) in sets.zip(compiled.sets()) {
            let model = profile::of_model(schedule, &set.prediction);
            adds_up(&model, schedule.predicted_clocks, &case.machine);
        }
        if words > MAX_WORDS {
            continue;
        }
        let measured = run::run(&compiled, 1, true, &mut |_| ()).expect("it runs");
        for (schedule, run) in compiled.schedule().sets().iter().zip(&measured) {
            let profile = profile::of_run(schedule, &run.checked);
            adds_up(&profile, run.summary.measured_clocks, &case.machine);
            let routing = schedule.timetable.routing();
            let moved: u64 = profile.sides.iter().map(|s| s.clocks.sending).sum();
            let access = u64::from(p.access_clocks_per_word);
            assert_eq!(moved, routing.set().words() * access);
            let opened: u64 = profile.sides.iter().map(|s| s.clocks.setup).sum();
            let routes: usize = routing.phases().iter().map(|phase| phase.len()).sum();
            assert_eq!(opened, 2 * routes as u64 * u64::from(p.stream_setup));
        }
        runs += 1;
        half += u32::from(p.duplex == Duplex::Half);
        timed += u32::from(p.has_timed_starts());
        streams += u32::from(p.streams > 1);
        setup += u32::from(p.stream_setup > 0);
    }
    let seen = [half, timed, streams, setup];
    assert!(seen.into_iter().all(|kind| (200..900).contains(&kind)), "{seen:?}");
}

#[test]
fn the_clocks_of_messages_add_up() {
    let (mut standing, mut planned) = (0, 0);
    for seed in 0..MESSAGE_PROGRAMS {
        let case = Case::of_seed(seed, CaseKind::Any);
        let words: u64 = case.program.sets().iter().map(|set| set.words()).sum();
        if words > MAX_WORDS {
            continue;
        }
        let options = MessageOptions::default().trace(true);
        for set in case.program.sets() {
            // Not all pairs of cells have a route on which messages cannot deadlock.
            let Ok(report) = messages::run_checked(&case.machine, set, &options) else { continue };
            let profile = profile::of_messages(&case.machine, set, &report);
            adds_up(&profile, report.clocks, &case.machine);
            standing += 1;
        }
        let machines = [case.machine.clone(), with_rendezvous(&case.machine)];
        for machine in machines {
            let compiler = StepCompiler::new(&machine).max_plans(3);
            let Ok(steps) = compiler.compile(&case.program, &mut |_| ()) else { continue };
            let Ok(runs) = steps.run(1, true) else { continue };
            for (set, run) in steps.schedule().sets().iter().zip(&runs) {
                let model = profile::of_steps_model(&set.steps).expect("messages have routes");
                adds_up(&model, set.predicted_clocks.expect("predicted"), &machine);
                let profile = profile::of_steps(&set.steps, &run.report);
                adds_up(&profile, run.report.clocks, &machine);
                planned += 1;
            }
        }
    }
    assert!(standing > 150 && planned > 250, "{standing} {planned}");
}

fn with_rendezvous(machine: &Machine) -> std::sync::Arc<Machine> {
    let mut parameters = machine.parameters().clone();
    parameters.protocol = conset::ir::Protocol::Rendezvous;
    parameters.copy_clocks_per_word = 3;
    std::sync::Arc::new(machine.with_parameters(parameters).expect("valid parameters"))
}
