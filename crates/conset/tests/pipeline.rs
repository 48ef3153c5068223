//! For random machines, sets and seeds: whatever compiles verifies, runs and delivers.

use std::sync::Arc;

use conset::{Algorithm, CompileError, Objective, Options, compile, run};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Parameters, Program, Topology,
};
use proptest::prelude::*;

fn topology() -> impl Strategy<Value = Topology> {
    let dims = prop::collection::vec(1u32..5, 1..4);
    prop_oneof![
        dims.clone().prop_map(|dims| Topology::Torus { dims }),
        dims.prop_map(|dims| Topology::Mesh { dims }),
        (1u32..9).prop_map(|cells| Topology::Ring { cells }),
        (0u32..5).prop_map(|dimension| Topology::Hypercube { dimension }),
        (1u32..20).prop_map(|leaves| Topology::FatTree { leaves }),
        (1u32..9, prop::collection::vec((0u32..9, 0u32..9), 0..40)).prop_map(|(cells, links)| {
            let links = links.into_iter().map(|(a, b)| (a % cells, b % cells));
            Topology::Graph { cells, switches: 0, links: links.filter(|(a, b)| a != b).collect() }
        }),
    ]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let costs = (1u32..4, 1u32..12, 0u32..40, 1u32..9);
    (1u32..14, costs, any::<bool>(), 1u32..4).prop_map(
        |(channels_per_cell, (link, access, setup, depth), half, streams)| Parameters {
            channels_per_cell,
            link_clocks_per_word: link,
            access_clocks_per_word: access,
            stream_setup: setup,
            channel_depth: depth,
            duplex: if half { Duplex::Half } else { Duplex::Full },
            streams,
            ..Parameters::iwarp()
        },
    )
}

/// A machine, perhaps with a dead cell.
fn machine() -> impl Strategy<Value = Machine> {
    (topology(), parameters(), any::<Option<u8>>()).prop_map(|(topology, parameters, dead)| {
        let build =
            |dead| Machine::new("random", topology.clone(), parameters.clone(), dead, vec![]);
        let whole = build(vec![]).expect("sizes are small");
        match dead {
            Some(cell) if whole.agent_count() > 1 => {
                build(vec![CellId(u32::from(cell) % whole.agent_count() as u32)])
                    .expect("it exists")
            }
            _ => whole,
        }
    })
}

/// Connections between live cells, self-connections and repetitions included, with some order.
fn set(machine: &Machine) -> impl Strategy<Value = ConnectionSet> + use<> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let end = prop::sample::select(cells);
    let connection = (end.clone(), end, 1u32..40)
        .prop_map(|(source, target, words)| Connection::new(source, target, words));
    (
        prop::collection::vec(connection, 0..60),
        prop::collection::vec((any::<u16>(), any::<u16>()), 0..6),
    )
        .prop_map(|(connections, pairs)| {
            let n = connections.len() as u32;
            let order = pairs
                .into_iter()
                .filter(|_| n > 0)
                .map(|(a, b)| (u32::from(a) % n, u32::from(b) % n))
                .filter(|(a, b)| a != b)
                // Smaller before larger, so there is no cycle.
                .map(|(a, b)| (ConnectionId(a.min(b)), ConnectionId(a.max(b))))
                .collect();
            ConnectionSet::new("random", connections).unwrap().with_order(order).unwrap()
        })
}

fn case() -> impl Strategy<Value = (Machine, ConnectionSet, u64)> {
    machine().prop_flat_map(|machine| {
        let set = set(&machine);
        (Just(machine), set, any::<u64>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_compiles_verifies_runs_and_delivers((machine, set, seed) in case()) {
        let machine = Arc::new(machine);
        let words = set.words();
        let program = Program::from(set);
        let algorithm = if seed % 4 == 0 { Algorithm::Paper } else { Algorithm::Best };
        let objective = if seed % 3 == 0 { Objective::Phases } else { Objective::Time };
        let options = Options { seed, algorithm, objective, ..Options::default() };
        let compiled = match compile(&machine, &program, &options, &mut |_| ()) {
            Ok(compiled) => compiled,
            // No way between two cells: the only reason to refuse here.
            Err(CompileError::Infeasible(infeasible)) => {
                prop_assert!(!infeasible.connections.is_empty(), "{infeasible}");
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let runs = run::run(&compiled, seed, false, &mut |_| ()).unwrap();
        let run = &runs[0];
        prop_assert!(run.summary.payload_ok, "{:?}", run.checked);
        prop_assert_eq!(run.summary.words, words);
        prop_assert!(run.summary.clocks >= run.summary.bound_clocks, "{:?}", run.summary);
        prop_assert!(run.summary.phases >= run.summary.bound_phases as usize);
        // The same again gives the same.
        let again = compile(&machine, &program, &options, &mut |_| ()).unwrap();
        prop_assert_eq!(again.schedule(), compiled.schedule());
    }
}
