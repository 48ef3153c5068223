//! Generated programs. What is generated is small and valid: it may only be delivered, or refused
//! because a connection has no way or no channel, which the machine itself must confirm.

use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Parameters, Program, Topology,
};
use conset::{Algorithm, CompileError, Objective, Options, compile, run};
use conset_runtime::{ThreadOptions, Transport, World};

/// A machine, a set for it, and how it is compiled.
#[derive(Debug)]
pub struct Case {
    machine: Arc<Machine>,
    set: ConnectionSet,
    objective: Objective,
    seed: u64,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let machine = machine(u)?;
        let set = set(u, &machine)?;
        let objective = *u.choose(&[Objective::Time, Objective::Phases])?;
        Ok(Self { machine: Arc::new(machine), set, objective, seed: u.int_in_range(0..=3)? })
    }
}

fn dims(u: &mut Unstructured<'_>) -> Result<Vec<u32>> {
    (0..u.int_in_range(1..=3)?).map(|_| u.int_in_range(1..=4)).collect()
}

fn topology(u: &mut Unstructured<'_>) -> Result<Topology> {
    Ok(match u.int_in_range(0..=5)? {
        0 => Topology::Torus { dims: dims(u)? },
        1 => Topology::Mesh { dims: dims(u)? },
        2 => Topology::Ring { cells: u.int_in_range(1..=9)? },
        3 => Topology::Hypercube { dimension: u.int_in_range(0..=4)? },
        4 => Topology::FatTree { leaves: u.int_in_range(1..=16)? },
        _ => {
            let cells = u.int_in_range(1..=8u32)?;
            let ends = 0..=cells - 1;
            let link = |u: &mut Unstructured<'_>| -> Result<(u32, u32)> {
                Ok((u.int_in_range(ends.clone())?, u.int_in_range(ends.clone())?))
            };
            let links =
                (0..u.int_in_range(0..=24)?).map(|_| link(u)).collect::<Result<Vec<_>>>()?;
            let links = links.into_iter().filter(|(from, to)| from != to).collect();
            Topology::Graph { cells, switches: 0, links }
        }
    })
}

fn machine(u: &mut Unstructured<'_>) -> Result<Machine> {
    let topology = topology(u)?;
    let parameters = Parameters {
        channels_per_cell: u.int_in_range(1..=13)?,
        link_clocks_per_word: u.int_in_range(1..=3)?,
        access_clocks_per_word: u.int_in_range(1..=11)?,
        stream_setup: u.int_in_range(0..=40)?,
        channel_depth: u.int_in_range(1..=8)?,
        duplex: if u.arbitrary()? { Duplex::Full } else { Duplex::Half },
        streams: u.int_in_range(1..=3)?,
        ..Parameters::iwarp()
    };
    let whole = Machine::new("fuzz", topology.clone(), parameters.clone(), vec![], vec![]);
    let whole = whole.expect("the machine is small and valid");
    let agents = whole.agent_count() as u32;
    if agents < 2 || !u.ratio(1, 4)? {
        return Ok(whole);
    }
    let dead = vec![CellId(u.int_in_range(0..=agents - 1)?)];
    Ok(Machine::new("fuzz", topology, parameters, dead, vec![]).expect("the dead cell exists"))
}

fn set(u: &mut Unstructured<'_>, machine: &Machine) -> Result<ConnectionSet> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let mut connections = Vec::new();
    for _ in 0..u.int_in_range(0..=40)? {
        let words =
            if u.ratio(1, 16)? { u.int_in_range(1..=2000)? } else { u.int_in_range(1..=24)? };
        connections.push(Connection::new(*u.choose(&cells)?, *u.choose(&cells)?, words));
    }
    let mut order = Vec::new();
    if connections.len() > 1 {
        let last = connections.len() as u32 - 1;
        for _ in 0..u.int_in_range(0..=5)? {
            let before = u.int_in_range(0..=last - 1)?;
            // The smaller id before the larger, so there is no circle.
            order.push((ConnectionId(before), ConnectionId(u.int_in_range(before + 1..=last)?)));
        }
    }
    let set = ConnectionSet::new("fuzz", connections).expect("the set is small and valid");
    Ok(set.with_order(order).expect("the order has no circle"))
}

/// Compiles, checks and runs; every word has to arrive.
pub fn program(case: &Case) {
    let Case { machine, set, objective, seed } = case;
    let (objective, seed) = (*objective, *seed);
    let options = Options { algorithm: Algorithm::Best, objective, seed, ..Options::default() };
    let program = Program::from(set.clone());
    let compiled = match compile(machine, &program, &options, &mut |_| ()) {
        Ok(compiled) => compiled,
        Err(CompileError::Infeasible(refused)) => {
            assert!(!refused.connections.is_empty(), "refused without saying what: {refused}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    // The checker has spoken inside; the image alone has to pass as well.
    conset::verify::check_image(compiled.image()).expect("the image is accepted");
    for run in run::run(&compiled, seed, false, &mut |_| ()).expect("the fabric has no fault") {
        assert!(run.summary.payload_ok, "{:?}", run.checked);
        assert_eq!(run.summary.words, set.words());
        assert!(run.summary.clocks >= run.summary.bound_clocks, "{:?}", run.summary);
        assert!(run.summary.phases >= run.summary.bound_phases as usize, "{:?}", run.summary);
    }
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        every_word(&World::new(compiled.image().clone()).on(transport), set);
    }
}

/// Every cell sends words that say which they are, and looks at all that come.
fn every_word(world: &World, set: &ConnectionSet) {
    let word =
        |connection: ConnectionId, index: usize| (u64::from(connection.0) << 32) + index as u64;
    let row = |&connection: &ConnectionId| -> Vec<u64> {
        (0..set.get(connection).words as usize).map(|index| word(connection, index)).collect()
    };
    let (_, report) = world
        .try_run(|cell| {
            let outgoing: Vec<Vec<u64>> = cell.connections_out("fuzz")?.iter().map(row).collect();
            let expected: Vec<Vec<u64>> = cell.connections_in("fuzz")?.iter().map(row).collect();
            let mut incoming: Vec<Vec<u64>> =
                expected.iter().map(|words| vec![u64::MAX; words.len()]).collect();
            cell.exchange("fuzz", &outgoing, &mut incoming)?;
            assert_eq!(incoming, expected, "at {}", cell.id());
            Ok(())
        })
        .expect("the run has no error");
    assert_eq!(report.words, set.words());
}
