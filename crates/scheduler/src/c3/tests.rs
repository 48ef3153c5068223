//! The formulas of the paper's Figures 1 to 3 and of its section 3, and what follows from them.

use super::levels::{LevelStep, RegularPattern, all_to_all, all_to_one, one_to_all};
use super::*;

fn message(source: u32, target: u32, bytes: u64) -> C3Message {
    C3Message { source: CellId(source), target: CellId(target), bytes }
}

#[test]
fn the_protocols_charge_by_the_formulas_of_figure_1() {
    let machine =
        C3Machine { processors: 4, packet_bytes: 10, setup: 3.0, latency: 2.0, bisection: 2.0 };
    // Processor 0 sends 3 and 1 packets and receives 2; 5 pairs have 9 packets together.
    let rows = [(0, 1, 21), (0, 2, 10), (3, 0, 20), (1, 2, 1), (2, 3, 20)];
    let messages = rows.map(|(source, target, bytes)| message(source, target, bytes));
    let congestion = (9.0 / 5.0 * 3.0, 9.0 / 5.0 * 2.0 * 2.0);
    for (protocol, send, receive) in [
        (C3Protocol::StoreForwardNonblocking, 3.0 * 2.0 + 2.0 * 3.0 + 4.0, 2.0),
        (C3Protocol::WormholeNonblocking, 3.0 * 2.0 + 2.0 + 4.0, 2.0),
        (C3Protocol::StoreForwardBlocking, 2.0 * 5.0 * 2.0 + 2.0 * 4.0, 5.0 + 2.0 * 2.0),
        (C3Protocol::WormholeBlocking, 2.0 * 5.0 * 2.0 + 2.0 + 4.0, 5.0 + 2.0 + 2.0),
    ] {
        let units = superstep(&machine, protocol, &messages);
        assert_eq!(units.processor, send + receive, "{protocol:?}");
        assert_eq!((units.link_congestion, units.processor_congestion), congestion);
    }
}

#[test]
fn messages_of_two_processors_are_one_and_those_to_oneself_are_free() {
    let machine = C3Machine::DELTA;
    let units = |messages: &[C3Message]| superstep(&machine, C3Protocol::default(), messages);
    let split = [message(0, 1, 300), message(5, 5, 99), message(0, 1, 212), message(2, 3, 0)];
    assert_eq!(units(&split), units(&[message(0, 1, 512)]));
    assert_eq!(units(&[message(0, 1, 512)]).total(), 8.0 + 10.0 + 1.0 + 1.0 + 10.0);
    assert_eq!(units(&[]), C3Units::default());
    // The costliest part counts.
    let (small, large) = ([message(0, 1, 1)], [message(0, 1, 10_000)]);
    let parts = [(&machine, &small[..]), (&machine, &large[..]), (&machine, &small[..])];
    assert_eq!(in_parts(C3Protocol::default(), parts), units(&large));
    assert_eq!((computation(&machine, 0), computation(&machine, 513)), (0, 2));
}

#[test]
fn regular_patterns_are_charged_by_the_formulas_of_figure_2() {
    for (p, bytes) in [(4, 100), (16, 512), (64, 5000)] {
        let machine = C3Machine { packet_bytes: 64, ..C3Machine::DELTA }.mesh(p);
        let (s, h, b) = (machine.setup, machine.latency, machine.bisection);
        let (n, packets) = (f64::from(p - 1), to_f64(machine.packets(bytes)));
        let cell_pairs = f64::from(p) * n;
        for (pattern, processor, links, processors) in [
            (
                RegularPattern::OneToOne,
                s + packets + h + packets,
                packets * (f64::from(p) / b).ceil(),
                packets * h,
            ),
            (
                RegularPattern::OneToAll,
                n * (s + packets) + h,
                packets * (n / b).ceil(),
                packets * h,
            ),
            (
                RegularPattern::AllToOne,
                (n * packets).max(s + packets + h),
                packets * (n / b).ceil(),
                packets * h,
            ),
            (
                RegularPattern::AllToAll,
                n * (s + packets) + h + n * packets,
                packets * (cell_pairs / b).ceil(),
                packets * n * h,
            ),
        ] {
            let step = LevelStep { machine, pattern, members: p, combined: 1 };
            let units = step.units(C3Protocol::default(), bytes);
            for (own, expected) in [
                (units.processor, processor),
                (units.link_congestion, links),
                (units.processor_congestion, processors),
            ] {
                assert!((own - expected).abs() < 1e-9, "{pattern:?} {p}: {units:?}");
            }
        }
    }
}

#[test]
fn permutations_cost_what_section_3_says_on_meshes_hypercubes_and_trees() {
    let delta = C3Machine::DELTA;
    for p in [16u32, 64, 256] {
        let (n, side, log) = (f64::from(p), f64::from(p).sqrt(), f64::from(p).log2());
        let of = |machine: C3Machine| {
            let step =
                LevelStep { machine, pattern: RegularPattern::OneToOne, members: p, combined: 3 };
            step.units(C3Protocol::default(), 512).total()
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{p}: {a} {b}");
        near(of(delta.mesh(p)), 8.0 + 2.0 / 3.0 * side + 3.0 * (2.0 + 5.0 / 3.0 * side));
        near(of(delta.hypercube(p)), 8.0 + log / 2.0 + 3.0 * (4.0 + log / 2.0));
        near(of(delta.tree(p)), 8.0 + log + 3.0 * (2.0 + n + log));
    }
}

#[test]
fn one_to_all_on_the_delta_has_the_units_of_figure_3() {
    let algorithms = one_to_all(&C3Machine::DELTA);
    let paper = [
        ("1-lev-dir", 256.0, 0.55, 512.0, 0.005),
        ("1-lev-our-br", 8.0, 27.0, 2.0, 0.02 * 27.0),
        ("2-lev-rec", 32.0, 1.23, 32.0, 0.005),
        ("3-lev-sq", 24.0, 0.93, 25.0, 0.005),
        ("logp-lev-sq", 8.0, 5.29, 2.0, 0.02 * 5.29),
    ];
    for (algorithm, (name, setups, per_byte, computation, tolerance)) in
        algorithms.iter().zip(paper)
    {
        let linear = algorithm.linear();
        assert_eq!((algorithm.name, linear.setups), (name, setups));
        assert!((linear.per_byte - per_byte).abs() <= tolerance, "{name}: {linear:?}");
        let ours = 1.0 / algorithm.computation_per_byte(&C3Machine::DELTA);
        assert!((ours / computation - 1.0).abs() < 0.03, "{name}: L / {ours}");
    }
}

#[test]
fn long_messages_cost_nearly_what_the_paper_prints() {
    // Without "p where it is p - 1" and with all terms of h.
    for algorithm in one_to_all(&C3Machine::DELTA) {
        let bytes = 1u64 << 24;
        let exact = algorithm.units(C3Protocol::default(), bytes);
        let printed = algorithm.linear().per_byte * to_f64(bytes);
        assert!((exact / printed - 1.0).abs() < 0.13, "{}: {exact} {printed}", algorithm.name);
    }
    // The inverse sends the same messages: only the processor's part differs.
    for (there, back) in one_to_all(&C3Machine::DELTA).iter().zip(all_to_one(&C3Machine::DELTA)) {
        if there.name == back.name {
            let sums = |a: &levels::LevelAlgorithm| {
                let units = a.steps.iter().map(|step| step.units(C3Protocol::default(), 999));
                units.map(|u| u.link_congestion + u.processor_congestion).sum::<f64>()
            };
            assert!((sums(there) - sums(&back)).abs() < 1e-9);
        }
    }
}

#[test]
fn all_to_all_has_the_ranks_that_the_paper_measured() {
    let algorithms = all_to_all(&C3Machine::DELTA);
    let units = |bytes: u64| -> Vec<f64> {
        algorithms.iter().map(|a| a.units(C3Protocol::default(), bytes)).collect()
    };
    // Long messages of whole packets: 2040 + 13.95 L and h.
    let direct = units(512 * 1000)[0];
    let formula = 255.0 * 8.0 + 10.0 + (510.0 + 4080.0 + 2550.0) * 1000.0;
    assert!((direct - formula).abs() < 1e-6);
    // As the paper counts, without the packets' ceilings: in rows and columns first up to 230
    // bytes, in squares second; direct above. Only below 30 bytes is the butterfly before them.
    let printed = |bytes: f64| -> Vec<f64> {
        let linear = algorithms.iter().map(|a| a.linear());
        linear.map(|units| 8.0 * units.setups + units.per_byte * bytes).collect()
    };
    for (bytes, order) in
        [(64.0, [1, 2, 3, 0]), (200.0, [1, 2, 0, 3]), (512.0, [0, 1, 2, 3]), (16e3, [0, 1, 2, 3])]
    {
        let units = printed(bytes);
        assert!(order.is_sorted_by(|&a, &b| units[a] < units[b]), "{bytes}: {units:?}");
    }
}

#[test]
fn a_networks_parameters_are_exact() {
    let of = |spec: &str| {
        let machine = Machine::from_spec(spec).unwrap();
        let c3 = C3Machine::of_network(&machine, 512, 8.0).unwrap();
        (c3.processors, c3.latency, c3.bisection)
    };
    assert_eq!(of("delta:16x16"), (256, 10.625, 16.0));
    assert_eq!(of("mesh:16"), (16, 5.3125, 1.0));
    assert_eq!(of("hypercube:4"), (16, 2.0, 8.0));
    assert_eq!(of("torus:8x4"), (32, 3.0, 8.0));
    assert_eq!(of("ring:2"), (2, 0.5, 2.0));
    // 3, 12 and 16 other leaves at 2, 4 and 6 hops; 8 links between the halves.
    assert_eq!(of("cm5:32"), (32, f64::from(3 * 2 + 12 * 4 + 16 * 6) / 32.0, 8.0));
    assert_eq!(of("fat-tree:64"), (64, f64::from(3 * 2 + 12 * 4 + 48 * 6) / 64.0, 8.0));
    let graph = conset_ir::Topology::Graph { cells: 2, switches: 0, links: vec![(0, 1), (1, 0)] };
    let parameters = conset_ir::Parameters::iwarp();
    let graph = Machine::new("g", graph, parameters, vec![], vec![]).unwrap();
    assert_eq!(C3Machine::of_network(&graph, 512, 8.0), None);
}

#[test]
fn protocols_have_names() {
    for (name, protocol) in C3Protocol::ALL {
        assert_eq!((protocol.name(), C3Protocol::parse(name)), (name, Some(protocol)));
    }
    assert_eq!(C3Protocol::parse("sf"), None);
}

#[test]
fn a_machine_has_the_set_up_and_protocol_of_its_messages() {
    let of = |protocol, packet_bytes| {
        let machine = Machine::from_spec("mesh:4x4").unwrap();
        let mut p = machine.parameters().clone();
        (p.protocol, p.c_send, p.c_receive, p.word_bytes) = (protocol, 30, 10, 4);
        (p.access_clocks_per_word, p.link_clocks_per_word) = (3, 5);
        let machine = machine.with_parameters(p).unwrap();
        (C3Machine::setup_of(&machine, packet_bytes), C3Protocol::of_machine(&machine))
    };
    // The software of the sender, in packets of four words, or five.
    assert_eq!(of(Protocol::Standing, 16), (30.0 / 20.0, C3Protocol::WormholeNonblocking));
    assert_eq!(of(Protocol::Rendezvous, 16), (40.0 / 20.0, C3Protocol::WormholeBlocking));
    assert_eq!(of(Protocol::Standing, 17).0, 30.0 / 25.0);
}
