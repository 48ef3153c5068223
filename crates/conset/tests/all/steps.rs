//! Step plans of any set by every planner: verified, delivered on the fabric, the same in every form.

use std::sync::Arc;

use conset::fabric::messages::{MessageOptions, MessageRoutes, run_steps};
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Document, Duplex, LinkId, Machine, Program,
    Protocol, Steps,
};
use conset::scheduler::steps::{
    Levels, LevelsSpec, Numbering, PieceRoute, Place, PlaceDigit, Share, StepOrder, factorisations,
    predict,
};
use conset::steps::{CompiledSteps, StepAlgorithm, StepCompiler, schedule_of_image};
use conset::verify;
use proptest::prelude::*;

/// A set on `cells` cells, also with connections of a cell to itself and several between two cells;
/// in half of the cases with an order.
fn sets(cells: u32) -> impl Strategy<Value = ConnectionSet> {
    let connection = (0..cells, 0..cells, 1..60u32);
    let count = 0..(3 * cells as usize + 2);
    let order = proptest::collection::vec((0..64usize, 0..64usize), 0..4);
    (proptest::collection::vec(connection, count), any::<bool>(), order).prop_map(
        |(ends, ordered, pairs)| {
            let connections: Vec<Connection> =
                ends.iter().map(|&(s, t, w)| Connection::new(CellId(s), CellId(t), w)).collect();
            let count = connections.len();
            let pairs = pairs
                .into_iter()
                .filter(|&(a, b)| ordered && a < b && b < count)
                .map(|(a, b)| (ConnectionId::from_index(a), ConnectionId::from_index(b)));
            ConnectionSet::new("s", connections).unwrap().with_order(pairs.collect()).unwrap()
        },
    )
}

fn machines() -> impl Strategy<Value = (Arc<Machine>, ConnectionSet)> {
    let specs = prop_oneof![
        (1..=40u32).prop_map(|n| format!("ring:{n}")),
        (1..=40u32).prop_map(|n| format!("fat-tree:{n}")),
        (1..=6u32, 1..=6u32).prop_map(|(a, b)| format!("mesh:{a}x{b}")),
        (1..=5u32).prop_map(|d| format!("hypercube:{d}")),
        (1..=6u32, 1..=6u32).prop_map(|(a, b)| format!("cluster:{a}x{b}")),
    ];
    let rates = (1..30u32, 1..30u32, 0..60u32, 0..60u32, 0..5u32, 1..10u32);
    let usual = any::<bool>();
    (specs, any::<bool>(), any::<bool>(), usual, rates).prop_flat_map(|numbers| {
        let (spec, rendezvous, half, usual, (link, access, send, receive, extra, depth)) = numbers;
        let machine = Machine::from_spec(&spec).unwrap();
        let mut parameters = machine.parameters().clone();
        if !usual {
            (parameters.link_clocks_per_word, parameters.access_clocks_per_word) = (link, access);
            (parameters.c_send, parameters.c_receive) = (send, receive);
            (parameters.message_extra_words, parameters.channel_depth) = (extra, depth);
        }
        if rendezvous {
            (parameters.protocol, parameters.copy_clocks_per_word) = (Protocol::Rendezvous, 3);
        }
        if half {
            parameters.duplex = Duplex::Half;
        }
        let machine = Arc::new(machine.with_parameters(parameters).unwrap());
        let cells = machine.agent_count() as u32;
        (Just(machine), sets(cells))
    })
}

/// Follows all pieces from cell to cell.
fn delivered(steps: &Steps) -> bool {
    let mut at: Vec<CellId> = steps.set().connections().iter().map(|c| c.source).collect();
    for message in steps.messages().iter() {
        for piece in message.pieces {
            if at[piece.connection.index()] != message.source {
                return false;
            }
            at[piece.connection.index()] = message.target;
        }
    }
    steps.set().iter().all(|(id, connection)| at[id.index()] == connection.target)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_planner_is_verified_and_delivers((machine, set) in machines()) {
        let set = Arc::new(set);
        let mut routes = MessageRoutes::new(&machine);
        let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
        for radices in factorisations(machine.agent_count() as u32, 2) {
            for order in StepOrder::ALL {
                let levels = Levels::new(&machine, &radices, order).unwrap();
                let steps =
                    levels.plan(&machine, &set, machine.parameters().protocol, &mut route).unwrap();
                let report = verify::check_steps(&steps);
                prop_assert!(report.is_ok(), "{order:?} {radices:?}: {}", report.unwrap_err());
                prop_assert!(delivered(&steps));
                let run = run_steps(&steps, &MessageOptions::default()).unwrap();
                prop_assert!(run.payload_ok);
                let predicted = predict(&steps, Protocol::Standing, &mut route);
                prop_assert_eq!(predicted == 0, run.clocks == 0);
                prop_assert!(predict(&steps, Protocol::Rendezvous, &mut route) >= run.clocks.min(1));
            }
        }
    }

    #[test]
    fn compiled_steps_are_accepted_in_every_form((machine, set) in machines()) {
        let program = Program::from(set);
        let compiled = StepCompiler::new(&machine).compile(&program, &mut |_| ()).unwrap();
        prop_assert!(compiled.searches().iter().all(|search| search.refused == 0));
        let document = Document::Steps(compiled.schedule().clone());
        let forms = [
            conset::ir::text::write(&document).into_bytes(),
            conset::ir::json::write(&document).unwrap().into_bytes(),
            conset::ir::binary::write(&document),
        ];
        for bytes in forms {
            prop_assert_eq!(&Document::parse_any("f", &bytes).unwrap(), &document);
        }
        let again = CompiledSteps::import(compiled.schedule().clone()).unwrap();
        // The fabric is not faster than the bounds.
        for run in again.run(3, false).unwrap() {
            prop_assert!(run.summary.payload_ok);
        }
        // An image states no claims; those computed for it are those of the compilation.
        let of_image = schedule_of_image(compiled.image()).unwrap();
        prop_assert!(of_image.sets().iter().all(|set| set.predicted_clocks.is_none()));
        let claimed = CompiledSteps::import(of_image).unwrap().with_claims().unwrap();
        prop_assert_eq!(claimed.schedule().sets(), compiled.schedule().sets());
    }
}

/// A machine of 1 to 130 cells, some of them dead, and a set on the others.
fn machines_with_dead_cells() -> impl Strategy<Value = (Arc<Machine>, ConnectionSet)> {
    let specs = prop_oneof![
        (1..=130u32).prop_map(|n| format!("ring:{n}")),
        (1..=130u32).prop_map(|n| format!("fat-tree:{n}")),
        (1..=11u32, 1..=11u32).prop_map(|(a, b)| format!("mesh:{a}x{b}")),
        (1..=4u32, 1..=4u32, 1..=8u32).prop_map(|(a, b, c)| format!("torus:{a}x{b}x{c}")),
        (1..=11u32, 1..=11u32).prop_map(|(a, b)| format!("cluster:{a}x{b}")),
    ];
    (specs, proptest::collection::vec(any::<u32>(), 0..4)).prop_flat_map(|(spec, dead)| {
        let machine = Machine::from_spec(&spec).unwrap();
        let cells = machine.agent_count() as u32;
        let mut dead: Vec<CellId> = dead.iter().map(|row| CellId(row % cells)).collect();
        dead.sort_unstable();
        dead.dedup();
        dead.truncate(cells as usize - 1);
        let machine = Arc::new(machine.with_dead(&dead, &[]).unwrap());
        let live: Vec<CellId> = machine.endpoints().collect();
        let sets = sets(live.len() as u32).prop_map(move |set| {
            let ends = set.connections().iter();
            let ends = ends.map(|c| (live[c.source.index()], live[c.target.index()], c.words));
            let connections = ends.map(|(s, t, words)| Connection::new(s, t, words)).collect();
            let order = set.order().to_vec();
            ConnectionSet::new("s", connections).unwrap().with_order(order).unwrap()
        });
        (Just(machine), sets)
    })
}

/// Routes by digits with their own places or with any, whose radices depend on the number of cells,
/// by halves, and by nodes.
#[derive(Clone, Debug)]
enum AnyRoute {
    Digits(usize),
    Places(usize, Vec<Vec<(bool, usize)>>),
    Halves(u32),
    Nodes,
}

impl AnyRoute {
    fn of(&self, cells: u32) -> PieceRoute {
        let all = factorisations(cells, 4);
        match self {
            AnyRoute::Digits(row) => PieceRoute::digits(&all[row % all.len()]).unwrap(),
            AnyRoute::Places(row, places) => {
                let radices = &all[row % all.len()];
                let digit = |&(of_source, at): &(bool, usize)| match of_source {
                    true => PlaceDigit::Source(at % radices.len()),
                    false => PlaceDigit::Target(at % radices.len()),
                };
                let place = |place: &Vec<(bool, usize)>| {
                    Place(place.iter().cycle().take(radices.len()).map(digit).collect())
                };
                PieceRoute::places(radices, places.iter().map(place).collect()).unwrap()
            }
            AnyRoute::Halves(share) => {
                PieceRoute::Halves(Share::parse(&format!("0.{share:03}")).unwrap())
            }
            AnyRoute::Nodes => PieceRoute::Nodes,
        }
    }
}

fn routes() -> impl Strategy<Value = AnyRoute> {
    let place = proptest::collection::vec((any::<bool>(), 0..4usize), 1..4);
    prop_oneof![
        any::<usize>().prop_map(AnyRoute::Digits),
        (any::<usize>(), proptest::collection::vec(place, 0..4))
            .prop_map(|(row, places)| AnyRoute::Places(row, places)),
        (1..1000u32).prop_map(AnyRoute::Halves),
        Just(AnyRoute::Nodes),
    ]
}

proptest! {
    #[test]
    fn every_route_and_numbering_is_verified(
        (machine, set) in machines_with_dead_cells(),
        route in routes(),
        inverse in any::<bool>(),
        order in proptest::sample::select(StepOrder::ALL.to_vec()),
    ) {
        let set = Arc::new(set);
        let mut messages = MessageRoutes::new(&machine);
        // Cells that the dead ones cut off have no route; orders do not need one.
        let mut links = |from, to, links: &mut Vec<LinkId>| {
            messages.links(from, to, links);
        };
        let route = route.of(machine.endpoints().count() as u32);
        for numbering in Numbering::ALL {
            let spec = LevelsSpec { route: route.clone(), numbering, order, inverse };
            let Ok(levels) = Levels::of_spec(&machine, spec.clone()) else {
                prop_assert!(numbering != Numbering::Given);
                continue;
            };
            prop_assert_eq!(LevelsSpec::parse(&spec.to_string()), Ok(spec));
            let steps =
                levels.plan(&machine, &set, machine.parameters().protocol, &mut links).unwrap();
            let report = verify::check_steps(&steps);
            prop_assert!(report.is_ok(), "{levels:?}: {}", report.unwrap_err());
            prop_assert!(delivered(&steps));
        }
    }
}

#[test]
fn algorithms_have_names() {
    for name in ["best", "recursive", "linear", "pairwise", "loaded", "levels:16x16", "halves:0.75"]
    {
        assert_eq!(StepAlgorithm::parse(name).unwrap().name(), name);
    }
    for wrong in ["auto", "levels:", "levels:4x", "levels:-1x2", ""] {
        assert!(StepAlgorithm::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn impossible_levels_and_empty_programs_are_input_errors() {
    let machine = Arc::new(Machine::from_spec("ring:8").unwrap());
    let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(5), 9)]).unwrap();
    for levels in ["levels:2x3", "levels:5x2/tiles", "levels:3x3/tiles"] {
        let algorithm = StepAlgorithm::parse(levels).unwrap();
        let compiler = StepCompiler::new(&machine).algorithm(algorithm);
        assert!(compiler.compile(&set.clone().into(), &mut |_| ()).is_err());
    }
    let none = Program::new(Vec::new()).unwrap();
    assert!(StepCompiler::new(&machine).compile(&none, &mut |_| ()).is_err());
}

#[test]
fn words_of_any_number_do_not_overflow() {
    let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
    let row = |_| Connection::new(CellId(0), CellId(2), 1 << 30);
    // Messages have at most 2^32 - 1 words, so four connections of 2^30 words cannot be one.
    let set = ConnectionSet::new("s", (0..4).map(row).collect()).unwrap();
    let refused = StepCompiler::new(&machine).compile(&set.into(), &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("a message of 4294967296 words"), "{refused}");
    let set = ConnectionSet::new("s", (0..3).map(row).collect()).unwrap();
    assert!(StepCompiler::new(&machine).compile(&set.into(), &mut |_| ()).is_ok());
}
