//! The emulated fabric and the second simulator take the same clocks: stored files, all families of
//! connection sets on machines of every topology, and random programs and step plans.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conset::fabric::messages::{MessageOrder, Put};
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Document, Duplex, Image, Machine, Parameters,
    Piece, Program, Protocol, StepMessages, Steps, Topology,
};
use conset::steps::{StepAlgorithm, StepCompiler};
use conset::{Algorithm, Compiler, codegen, verify};
use conset_second_simulator::phases::OperationRun;
use conset_testing::{Case, CaseKind, compare};
use proptest::prelude::*;

use crate::families;

const ORDERS: [MessageOrder; 4] = [
    MessageOrder::Given,
    MessageOrder::LongestFirst,
    MessageOrder::Staggered,
    MessageOrder::Random,
];

/// A case of [`Case`] with more words is not run: the second simulator moves each.
const MAX_WORDS: u64 = 3000;

/// The machine with changed parameters.
fn changed(machine: &Machine, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    Arc::new(machine.with_parameters(parameters).expect("valid parameters"))
}

fn machine(spec: &str, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    changed(&Machine::from_spec(spec).expect("a machine"), change)
}

/// Compares a program in phases; `None` if it has no schedule.
fn phases(machine: &Arc<Machine>, program: &Program, algorithm: Algorithm) -> Option<u64> {
    let compiler = Compiler::new(machine).max_plans(1).algorithm(algorithm);
    let image = compiler.max_phases(None).compile(program).ok()?.image().clone();
    Some(same(compare::phases(&image), machine, program))
}

/// Compares the sets of a program by messages in all orders, and by step plans, each under both
/// protocols. Returns the number of runs.
fn messages(machine: &Arc<Machine>, program: &Program, algorithms: &[&str]) -> usize {
    let mut runs = 0;
    for protocol in [Protocol::Standing, Protocol::Rendezvous] {
        let machine = changed(machine, |parameters| parameters.protocol = protocol);
        for set in program.sets() {
            for (seed, order) in (5..).zip(ORDERS) {
                let result = compare::messages(&machine, set, order, seed);
                runs += usize::from(same(result, &machine, program).is_some());
            }
        }
        for name in algorithms {
            let algorithm = StepAlgorithm::parse(name).expect("a planner of steps");
            let compiler = StepCompiler::new(&machine).algorithm(algorithm).max_plans(2);
            // Not every planner suits every machine.
            let Ok(compiled) = compiler.compile(program, &mut |_| ()) else { continue };
            for set in compiled.schedule().sets() {
                let result = compare::steps(&set.steps);
                runs += usize::from(same(result, &machine, program).is_some());
            }
        }
    }
    runs
}

/// The result of a comparison; a difference is printed with the program as a file.
fn same<T>(result: Result<T, String>, machine: &Arc<Machine>, program: &Program) -> T {
    result.unwrap_or_else(|difference| {
        let document =
            Document::Program { machine: Some(machine.clone()), program: program.clone() };
        panic!("{difference}\n{}", conset::ir::text::write(&document))
    })
}

/// Compares whatever a file holds. Returns the number of runs.
fn document(document: Document, name: &str) -> usize {
    let run = |image: Image| {
        compare::phases(&Arc::new(image)).unwrap_or_else(|d| panic!("{name}: {d}"));
        1
    };
    let plan = |steps: &Steps| {
        compare::steps(steps).unwrap_or_else(|d| panic!("{name}: {d}"));
        1
    };
    match document {
        Document::Machine(machine) => {
            compare::wiring(&machine).unwrap_or_else(|d| panic!("{name}: {d}"));
            0
        }
        Document::Program { machine: given, program } => {
            let machine = given.unwrap_or_else(|| machine("iwarp", |_| ()));
            let in_phases = phases(&machine, &program, Algorithm::Auto);
            usize::from(in_phases.is_some()) + messages(&machine, &program, &["best"])
        }
        Document::Timetable(timetable) => {
            let machine = timetable.routing().machine().clone();
            let Ok(verified) = verify::timetable(timetable) else { return 0 };
            run(codegen::image(&machine, &[verified]).expect("it is verified"))
        }
        Document::Schedule(schedule) => {
            let machine = schedule.machine().clone();
            let sets = schedule.sets().iter().map(|set| verify::timetable(set.timetable.clone()));
            let Ok(sets) = sets.collect::<Result<Vec<_>, _>>() else { return 0 };
            run(codegen::image(&machine, &sets).expect("it is verified"))
        }
        Document::Steps(schedule) => {
            let sets = schedule.sets().iter().map(|set| &set.steps);
            sets.filter(|steps| verify::check_steps(steps).is_ok()).map(plan).sum()
        }
        Document::Image(image) if verify::check_image(&image).is_err() => 0,
        Document::Image(image) if image.is_steps() => {
            image.sets().iter().filter_map(|set| set.steps.as_ref()).map(plan).sum()
        }
        Document::Image(image) => run(image),
        Document::Routing(_) => 0,
    }
}

#[test]
fn stored_files() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let (mut files, mut runs) = (0, 0);
    let old = (1..=conset_ir::text::VERSION).map(|version| format!("compat/v{version}"));
    for folder in std::iter::once("cases".to_owned()).chain(old) {
        for entry in fs::read_dir(fixtures.join(folder)).expect("a folder of this repository") {
            let path = entry.expect("it can be read").path();
            let name = path.display().to_string();
            let Ok(bytes) = fs::read(&path) else { continue };
            let Ok(contents) = Document::parse_any(&name, &bytes) else { continue };
            files += 1;
            runs += document(contents, &name);
        }
    }
    assert!(files >= 40 && runs >= 60, "{runs} runs of {files} files");
}

/// Small machines of every topology, with what differs from iWarp in time.
fn small_machines() -> Vec<Arc<Machine>> {
    let c = CellId;
    let dead = Machine::from_spec("torus:4x3").expect("a machine");
    let dead = dead.with_dead(&[c(5)], &[(c(0), c(1)), (c(7), c(3))]).expect("a machine");
    // A ring of cells around a switch, with two links that are not paired and two in parallel.
    let pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3), (0, 4), (4, 0)];
    let more = [(2, 4), (4, 2), (1, 4), (4, 1), (4, 3), (0, 4)];
    let links = pairs.into_iter().chain(more).collect();
    let graph = Topology::Graph { cells: 4, switches: 1, links };
    let graph = Machine::new("graph", graph, Parameters::iwarp(), vec![], vec![]);
    let with = |machine: Machine, change: fn(&mut Parameters)| changed(&machine, change);
    vec![
        machine("torus:4x3", |_| ()),
        machine("torus:3x2x2", |p| (p.streams, p.stream_setup) = (2, 7)),
        machine("iwarp-timed:3x3", |p| p.stream_setup = 3),
        machine("iwarp-fem:3x3", |p| p.channel_depth = 2),
        machine("mesh:4x2", |p| (p.duplex, p.streams, p.stream_setup) = (Duplex::Half, 2, 5)),
        machine("ring:7", |p| (p.link_clocks_per_word, p.channel_depth) = (3, 1)),
        machine("hypercube:3", |p| (p.link_clocks_per_word, p.channel_depth) = (1, 3)),
        machine("fat-tree:9", |p| p.streams = 3),
        machine("cluster:3x4", |p| (p.channel_depth, p.streams) = (2, 2)),
        machine("cluster:2x3", |p| {
            (p.network_clocks_per_word, p.network_overhead, p.stream_setup) = (5, 40, 3);
            p.duplex = Duplex::Half;
        }),
        machine("cluster:5", |p| {
            (p.network_clocks_per_word, p.protocol) = (3, Protocol::Rendezvous);
        }),
        machine("cm5:17", |p| (p.c_send, p.c_receive) = (30, 20)),
        machine("t3d:3x2x1", |p| (p.c_send, p.c_receive) = (9, 0)),
        with(dead, |p| (p.channels_per_cell, p.timed_starts) = (20, 1)),
        with(graph.expect("a machine"), |p| {
            (p.access_clocks_per_word, p.copy_clocks_per_word) = (1, 2);
        }),
    ]
}

/// Whether both simulators agree on the file that `CONSET_FILE` names, such as a difference that
/// another test printed. It prints the image.
#[test]
#[ignore = "needs a file"]
#[allow(clippy::print_stdout, reason = "run by hand")]
fn a_file() {
    let name = std::env::var("CONSET_FILE").expect("CONSET_FILE names a file");
    let contents = Document::parse_any(&name, &fs::read(&name).expect("a file")).expect("valid");
    if let Document::Program { machine: Some(machine), program } = &contents {
        let mut compiler = Compiler::new(machine).max_plans(1);
        if let Ok(compiled) = compiler.compile(program) {
            let image = Image::clone(compiled.image());
            println!("{}", conset::ir::text::write(&Document::Image(image)));
        }
    }
    println!("{} runs", document(contents, &name));
}

/// The image of a text form, which the checker accepts.
fn valid_image(text: &str) -> Image {
    let Ok(Document::Image(image)) = conset::ir::text::parse("image.cset", text) else {
        panic!("it is an image");
    };
    verify::check_image(&image).expect("it is valid");
    image
}

/// c0 opens x0 at 0 and sleeps for the start of x2, clock 1. At this clock x0 closes, so that the port
/// opens x2 and sleeps for x1. Only then the first sleep ends, and lets the port open x1 at clock 2,
/// when it is served, and not after the next word. (Random programs show it once in 2000.)
#[test]
fn a_port_sleeps_for_two_starts() {
    let image = valid_image(include_str!("two_sleeps.cset"));
    let run = conset_second_simulator::phases::run_set(&image, 0).expect("it runs");
    let is_x1 = |run: &&OperationRun| (run.cell, run.connection) == (0, 1);
    let x1 = run.phases[0].operations.iter().find(is_x1).expect("c0 receives x1");
    assert_eq!(x1.open, run.phases[0].switch + 2);
    compare::phases(&Arc::new(image)).expect("they agree");
}

/// Set-ups of c2 within its node and of c3 to the other node end in the same clock. Without
/// `network_overhead` both are of one kind, and the one that started first goes first (C1, step 3).
#[test]
fn set_ups_without_overhead_are_of_one_kind() {
    let image = valid_image(include_str!("set_ups_of_two_cells.cset"));
    compare::phases(&Arc::new(image)).expect("they agree");
}

#[test]
fn routes_of_messages() {
    let specs = "torus:8x8 torus:5x4x2 mesh:7x6 ring:13 hypercube:6 fat-tree:64 fat-tree:37/3.1.2 \
                 cm5:64 fat-tree:1 mesh:1x5 cluster:1 cluster:9 cluster:1x6 cluster:4x3";
    let mut machines: Vec<_> = specs.split_whitespace().map(|spec| machine(spec, |_| ())).collect();
    for machine in machines.clone() {
        // The last cell with an agent, and the first link that remains.
        let last: Vec<_> = machine.endpoints().last().into_iter().collect();
        let others = machine.cells().filter(|cell| !last.contains(cell));
        let first = others.flat_map(|cell| machine.outgoing(cell)).map(|&link| machine.link(link));
        let first: Vec<_> = first.take(1).map(|link| (link.source, link.target)).collect();
        machines.push(Arc::new(machine.with_dead(&last, &[]).expect("it exists")));
        machines.push(Arc::new(machine.with_dead(&[], &first).expect("it exists")));
    }
    for machine in machines.into_iter().chain(small_machines()) {
        let result = compare::wiring(&machine).and_then(|()| compare::routes(&machine));
        result.unwrap_or_else(|difference| panic!("{machine:?}: {difference}"));
    }
}

#[test]
fn families_in_phases() {
    let mut runs = 0;
    for (number, machine) in small_machines().iter().enumerate() {
        for (row, name) in families::FAMILIES.iter().enumerate() {
            let set = families::family(name, machine, 11, 3).expect("a family");
            let algorithm = if row % 3 == number % 3 { Algorithm::Paper } else { Algorithm::Auto };
            runs += usize::from(phases(machine, &set.into(), algorithm).is_some());
        }
    }
    assert!(runs > 250, "{runs}");
}

#[test]
fn families_by_messages() {
    let (mut runs, planners) = (0, ["pairwise", "recursive", "halves"]);
    for machine in small_machines() {
        for name in families::FAMILIES {
            let set = families::family(name, &machine, 7, 4).expect("a family");
            runs += messages(&machine, &set.into(), &planners);
        }
    }
    assert!(runs > 3000, "{runs}");
}

/// The generator of `programs.rs`: dead cells, orders, several sets, least and greatest parameters.
#[test]
fn generated_programs() {
    let (mut in_phases, mut by_messages) = (0, 0);
    for seed in 0..400 {
        let case = Case::of_seed(seed, CaseKind::Any);
        if case.program.sets().iter().map(|set| set.words()).sum::<u64>() > MAX_WORDS {
            continue;
        }
        let run = phases(&case.machine, &case.program, Algorithm::Auto);
        in_phases += usize::from(run.is_some());
        by_messages += messages(&case.machine, &case.program, &["best"]);
    }
    assert!(in_phases > 150 && by_messages > 1000, "{in_phases} {by_messages}");
}

fn topologies() -> impl Strategy<Value = Topology> {
    let dims = || prop::collection::vec(1u32..5, 1..4);
    let small = |dims: &Vec<u32>| dims.iter().product::<u32>() <= 24;
    let pairs = prop::collection::vec((0u32..6, 0u32..6, 0u32..3), 0..14);
    let graph = (2u32..5, 0u32..3, pairs).prop_map(|(cells, switches, pairs)| {
        let count = cells + switches;
        let ends = pairs.into_iter().map(|(a, b, ways)| (a % count, b % count, ways));
        let both = ends.filter(|(a, b, _)| a != b).flat_map(|(a, b, ways)| match ways {
            0 => vec![(a, b)],
            _ => vec![(a, b), (b, a)],
        });
        // A chain, so that most cells reach each other.
        let chain = (1..count).flat_map(|b| [(b - 1, b), (b, b - 1)]);
        Topology::Graph { cells, switches, links: both.chain(chain).collect() }
    });
    prop_oneof![
        dims().prop_filter("small", small).prop_map(|dims| Topology::Torus { dims }),
        dims().prop_filter("small", small).prop_map(|dims| Topology::Mesh { dims }),
        (1u32..10).prop_map(|cells| Topology::Ring { cells }),
        (0u32..5).prop_map(|dimension| Topology::Hypercube { dimension }),
        (1u32..22, prop::collection::vec(1u32..4, 1..4))
            .prop_map(|(leaves, parents)| Topology::FatTree { leaves, parents }),
        (1u32..6, 1u32..5)
            .prop_map(|(nodes, cells_per_node)| Topology::Cluster { nodes, cells_per_node }),
        graph,
    ]
}

prop_compose! {
    fn parameters()(
        (depth, link, access) in (1u32..6, 1u32..6, 1u32..6),
        (half, streams, setup) in (any::<bool>(), 1u32..4, prop_oneof![Just(0u32), 1u32..30]),
        (sync, phase, timed) in (0u32..40, 0u32..40, 0u32..2),
        (send, receive) in (prop_oneof![Just(0u32), 1u32..50], prop_oneof![Just(0u32), 1u32..50]),
        (extra, copy, rendezvous) in (0u32..5, 0u32..4, any::<bool>()),
        (overhead, network) in (prop_oneof![Just(0u32), 1u32..30], 0u32..8),
        (active, poll, reduce) in (1u32..7, 0u32..9, prop_oneof![Just(0u32), 1u32..50]),
        (active_send, active_receive) in (0u32..40, 0u32..40),
    ) -> Parameters {
        Parameters {
            channels_per_cell: 16,
            channel_depth: depth,
            link_clocks_per_word: link,
            access_clocks_per_word: access,
            duplex: if half { Duplex::Half } else { Duplex::Full },
            streams,
            stream_setup: setup,
            t_sync: sync,
            t_phase: phase,
            timed_starts: timed,
            c_send: send,
            c_receive: receive,
            message_extra_words: extra,
            copy_clocks_per_word: copy,
            network_overhead: overhead,
            network_clocks_per_word: network,
            active_words: active,
            c_active_send: active_send,
            c_active_receive: active_receive,
            c_poll: poll,
            control_reduce: reduce,
            protocol: if rendezvous { Protocol::Rendezvous } else { Protocol::Standing },
            ..Parameters::iwarp()
        }
    }
}

prop_compose! {
    fn machines()(
        topology in topologies(),
        parameters in parameters(),
        cell in prop::option::weighted(0.1, any::<usize>()),
        link in prop::option::weighted(0.15, any::<usize>()),
    ) -> Arc<Machine> {
        let whole = Machine::new("random", topology, parameters, vec![], vec![]).expect("valid");
        let cell = cell.map(|cell| CellId::from_index(cell % whole.cell_count()));
        // A machine without cells that can be ends has no programs.
        let cell = cell.filter(|&cell| whole.endpoints().any(|other| other != cell));
        let count = whole.link_count().max(1);
        let links: Vec<_> = whole.cells().flat_map(|cell| whole.outgoing(cell)).copied().collect();
        let link = link.and_then(|link| links.get(link % count)).map(|&link| whole.link(link));
        let link: Vec<_> = link.into_iter().map(|link| (link.source, link.target)).collect();
        let cells: Vec<_> = cell.into_iter().collect();
        Arc::new(whole.with_dead(&cells, &link).expect("they exist"))
    }
}

/// Connections of any two cells, and an order.
fn rows() -> impl Strategy<Value = Rows> {
    let row = (any::<usize>(), any::<usize>(), prop_oneof![1u32..12, 1u32..80]);
    let order = prop::collection::vec((any::<usize>(), any::<usize>()), 0..4);
    (prop::collection::vec(row, 1..14), prop_oneof![3 => Just(vec![]), 1 => order])
}

type Rows = (Vec<(usize, usize, u32)>, Vec<(usize, usize)>);

fn set(machine: &Machine, name: &str, (rows, order): &Rows) -> ConnectionSet {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let at = |number: usize| cells[number % cells.len()];
    let connections =
        rows.iter().map(|&(from, to, words)| Connection::new(at(from), at(to), words));
    let set = ConnectionSet::new(name, connections.collect()).expect("valid");
    let pair = |&(a, b): &(usize, usize)| {
        let (a, b) = (a % rows.len(), b % rows.len());
        (a != b).then(|| (ConnectionId::from_index(a.min(b)), ConnectionId::from_index(a.max(b))))
    };
    set.with_order(order.iter().filter_map(pair).collect()).expect("it has no cycle")
}

/// A step plan that sends each connection in up to two pieces, each over up to two other cells.
/// Pieces between the same cells in the same step travel together.
fn plan(machine: &Arc<Machine>, set: ConnectionSet, choices: &[(usize, usize, u32)]) -> Steps {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let at = |number: usize| cells[number % cells.len()];
    let mut levels: [Vec<(CellId, CellId, Vec<Piece>)>; 3] = Default::default();
    for (row, connection) in set.connections().iter().enumerate() {
        let (first, second, cut) = choices[row % choices.len()];
        let cut = cut % (connection.words + 1);
        let pieces = [(0, cut, first, second), (cut, connection.words - cut, second, first)];
        for (first_word, words, a, b) in pieces.into_iter().filter(|piece| piece.1 > 0) {
            let piece = Piece { connection: ConnectionId::from_index(row), first_word, words };
            let stops = [connection.source, at(a), at(b / 3), connection.target];
            let stops = if cut % 2 == 0 { stops } else { [stops[0], stops[1], stops[3], stops[3]] };
            let stops = if cut % 3 == 0 { [stops[0], stops[3], stops[3], stops[3]] } else { stops };
            for (level, hop) in levels.iter_mut().zip(stops.windows(2)) {
                if hop[0] == hop[1] {
                    continue;
                }
                match level.iter_mut().find(|m| (m.0, m.1) == (hop[0], hop[1])) {
                    Some(message) => message.2.push(piece),
                    None => level.push((hop[0], hop[1], vec![piece])),
                }
            }
        }
    }
    let mut messages = StepMessages::new();
    for level in levels {
        for (from, to, pieces) in level {
            messages.push(from, to, &pieces).expect("few words");
        }
        messages.end_step().expect("few steps");
    }
    Steps::new(machine.clone(), Arc::new(set), messages).expect("the cells are alive")
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn random_programs_in_phases(
        machine in machines(),
        sets in prop::collection::vec(rows(), 1..3),
        paper in any::<bool>(),
    ) {
        let sets = sets.iter().zip(["a", "b"]);
        let sets = sets.map(|(rows, name)| Arc::new(set(&machine, name, rows))).collect();
        let program = Program::new(sets).expect("the names differ");
        phases(&machine, &program, if paper { Algorithm::Paper } else { Algorithm::Auto });
    }

    #[test]
    fn random_programs_by_messages(machine in machines(), rows in rows(), seed in any::<u64>()) {
        compare::routes(&machine).unwrap_or_else(|difference| panic!("{machine:?}: {difference}"));
        let set = set(&machine, "s", &rows);
        let program = Program::from(set.clone());
        for order in ORDERS {
            same(compare::messages(&machine, &set, order, seed), &machine, &program);
        }
    }

    #[test]
    fn random_rounds_of_active_messages(machine in machines(), rows in rows(), items in 1u32..9) {
        let set = set(&machine, "s", &rows);
        // Puts to the cell itself do not exist.
        let others = set.connections().iter().filter(|c| c.source != c.target);
        let puts: Vec<Put> = others
            .map(|&Connection { source, target, words, .. }| {
                Put { source, target, words: words * items, item_words: items }
            })
            .collect();
        same(compare::round(&machine, &puts), &machine, &Program::from(set));
    }

    #[test]
    fn random_step_plans(
        machine in machines(),
        rows in rows(),
        choices in prop::collection::vec((any::<usize>(), any::<usize>(), 0u32..50), 1..8),
    ) {
        let set = set(&machine, "s", &rows);
        let program = Program::from(set.clone());
        let steps = plan(&machine, set, &choices);
        prop_assume!(verify::check_steps(&steps).is_ok());
        same(compare::steps(&steps), &machine, &program);
    }
}
