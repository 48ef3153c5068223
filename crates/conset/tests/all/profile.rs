//! Profiles of exchanges whose every clock is known.

use std::sync::Arc;

use conset::ir::{CellId, Connection, ConnectionSet, Machine};
use conset::profile::what_if::{self, Change};
use conset::profile::{self, PathCause, PortSide, SetProfile};
use conset::{Algorithm, Compiler, run};

/// The measured profile of a set and that of the model.
fn profiles(spec: &str, setup: u32, connections: &[(u32, u32, u32)]) -> [SetProfile; 2] {
    let machine = Machine::from_spec(spec).unwrap();
    let mut parameters = machine.parameters().clone();
    parameters.stream_setup = setup;
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let rows = connections.iter().map(|&(s, t, w)| Connection::new(CellId(s), CellId(t), w));
    let set = ConnectionSet::new("s", rows.collect()).unwrap();
    let mut compiler = Compiler::new(&machine).algorithm(Algorithm::Paper);
    let compiled = compiler.compile(&set.into()).unwrap();
    let measured = run::run(&compiled, 1, true, &mut |_| ()).unwrap();
    let schedule = &compiled.schedule().sets()[0];
    [
        profile::of_run(schedule, &measured[0].checked),
        profile::of_model(schedule, &compiled.sets()[0].prediction),
    ]
}

fn port(profile: &SetProfile, cell: u32, side: PortSide) -> profile::PortClocks {
    let mut ports = profile.ports.iter();
    ports.find(|p| p.cell == CellId(cell) && p.side == side).unwrap().clocks
}

#[test]
fn two_senders_wait_for_one_receiver() {
    let connections = [(1, 0, 100), (3, 0, 100)];
    for setup in [0, 7] {
        let [measured, _] = profiles("ring:4", setup, &connections);
        let s = u64::from(setup);
        // The first word takes the agent, a link and the agent; each of them takes two clocks.
        let first = s + 2 + 2 + 100 * 2;
        let length = first + s + 100 * 2;
        assert_eq!(measured.phases[0].clocks, length);
        let receiver = port(&measured, 0, PortSide::Receive);
        assert_eq!((receiver.setup, receiver.receiving), (2 * s, 400));
        assert_eq!((receiver.partner, receiver.link, receiver.start, receiver.end), (0, 4, 0, 0));
        // A cell without connections waits for the end.
        let idle = port(&measured, 2, PortSide::Receive);
        assert_eq!((idle.end, idle.idle()), (length, length));

        let path = &measured.critical_path;
        // The second sender fills the queues, and waits for the receiver until that has received
        // the other stream. It ends before the receiver.
        let waiting = port(&measured, path.segments[1].source.0, PortSide::Send);
        assert_eq!((waiting.setup, waiting.sending, waiting.link), (s, 200, 0));
        assert_eq!(waiting.partner + waiting.end, length - s - 200);
        assert!(waiting.partner > first - 60 && waiting.end > 0, "{waiting:?}");
        let ends: Vec<(u64, u64)> = path.segments.iter().map(|s| (s.from, s.to)).collect();
        assert_eq!(ends, [(0, first), (first, length)]);
        let receives = PathCause::Port { cell: CellId(0), side: PortSide::Receive };
        assert_eq!((path.segments[0].after, path.segments[1].after), (PathCause::Begin, receives));
        assert_eq!((path.clocks.setup, path.clocks.words, path.clocks.link), (2 * s, 400, 4));
        assert_eq!((path.slack.streams, path.slack.zero), (2, 2));
    }
}

#[test]
fn a_short_stream_beside_a_long_one_has_slack() {
    let [measured, model] = profiles("ring:4", 0, &[(0, 1, 100), (2, 3, 10)]);
    assert_eq!(measured.phases[0].clocks, 204);
    let slack = measured.critical_path.slack;
    assert_eq!((slack.zero, slack.quarter, slack.greatest), (1, 0, 180));
    assert_eq!(measured.critical_path.segments.len(), 1);
    // The model leaves out the latency of four clocks.
    assert_eq!((model.phases[0].clocks, model.critical_path.slack.greatest), (200, 180));
    assert_eq!(port(&model, 2, PortSide::Send).end, 180);
}

#[test]
fn with_half_duplex_a_cell_has_one_port() {
    let [measured, _] = profiles("iwarp-fem:2x2", 3, &[(0, 1, 20), (1, 0, 30)]);
    let p = port(&measured, 0, PortSide::Both);
    assert_eq!((p.setup, p.sending, p.receiving), (6, 200, 300));
    assert_eq!(measured.ports.len(), 4);
    assert_eq!(p.total(), measured.clocks);
}

#[test]
fn planned_starts_are_waited_for() {
    // Two streams over the link from 1 to 2: the plan keeps them apart.
    let [measured, model] = profiles("iwarp-timed:4x1", 0, &[(0, 2, 50), (1, 2, 50), (1, 0, 8)]);
    for profile in [measured, model] {
        let path = &profile.critical_path;
        assert_eq!(path.clocks.total(), profile.clocks);
        let starts: u64 = profile.ports.iter().map(|port| port.clocks.start).sum();
        assert!(starts > 0 || path.clocks.start == 0, "{profile:?}");
        assert!(path.slack.greatest > 0, "{:?}", path.slack);
    }
}

#[test]
fn what_would_help_is_found_by_pricing_both_plans() {
    let machine = Arc::new(Machine::from_spec("mesh:3x2").unwrap());
    let parameters = machine.parameters().clone();
    // An odd number of clocks per word cannot be halved: everything else is doubled instead.
    for link in [1, 2, 3] {
        let mut parameters = parameters.clone();
        (parameters.channels_per_cell, parameters.link_clocks_per_word) = (6, link);
        let machine = Arc::new(machine.with_parameters(parameters).unwrap());
        let pairs = (0..6).flat_map(|a| (0..6).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let rows = pairs.map(|(a, b)| Connection::new(CellId(a), CellId(b), 6));
        let set = ConnectionSet::new("s", rows.collect()).unwrap();
        let compiled = Compiler::new(&machine).compile(&set.into()).unwrap();
        let predicted = compiled.schedule().sets()[0].predicted_clocks;
        let options = what_if::options_of(compiled.schedule().origin());
        for measured in [false, true] {
            let rows = what_if::of_phases(&compiled, &options, measured, &mut |_| ()).unwrap();
            let of = |change| {
                let row = rows.iter().find(|row| row.change == change).unwrap();
                row.clocks.expect("it is possible")
            };
            let unchanged = of(Change::None);
            assert!(measured || unchanged <= predicted, "{rows:?}");
            // A context switch costs 528 clocks, and there are three; seven channels need two.
            let switches = 3 * 528;
            assert!(of(Change::HalfTheSwitch) + switches / 2 <= unchanged, "{rows:?}");
            assert!(of(Change::OneMoreChannel) + 400 < unchanged, "{rows:?}");
            let faster = of(Change::LinkTwiceAsFast);
            assert!(faster <= unchanged && faster + 100 > unchanged, "{rows:?}");
        }
    }
}
