//! Step plans of any set by every planner: verified, delivered on the fabric, the same in every form.

use std::sync::Arc;

use conset::fabric::messages::{MessageOptions, MessageRoutes, run_steps};
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Document, Duplex, LinkId, Machine, Program,
    Protocol, Steps,
};
use conset::scheduler::steps::{Levels, StepOrder, factorisations, predict};
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
    ];
    (specs, any::<bool>(), any::<bool>()).prop_flat_map(|(spec, rendezvous, half)| {
        let machine = Machine::from_spec(&spec).unwrap();
        let mut parameters = machine.parameters().clone();
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
    #![proptest_config(ProptestConfig::with_cases(24))]

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

#[test]
fn algorithms_have_names() {
    for name in ["best", "recursive", "linear", "pairwise", "loaded", "levels:16x16"] {
        assert_eq!(StepAlgorithm::parse(name).unwrap().name(), name);
    }
    for wrong in ["auto", "levels:", "levels:4x", "levels:-1x2", ""] {
        assert_eq!(StepAlgorithm::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn impossible_levels_and_empty_programs_are_input_errors() {
    let machine = Arc::new(Machine::from_spec("ring:8").unwrap());
    let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(5), 9)]).unwrap();
    for radices in [vec![2, 3], vec![1, 8], vec![0], vec![u32::MAX, u32::MAX]] {
        let compiler = StepCompiler::new(&machine).algorithm(StepAlgorithm::Levels(radices));
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
