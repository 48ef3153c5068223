//! Tests of the claims, with values computed by hand.

use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Duplex, LinkId, Parameters,
    PhaseTimes, Slot, Topology,
};

use super::*;

fn set(rows: &[(u32, u32, u32)]) -> ConnectionSet {
    let row = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
    ConnectionSet::new("s", rows.iter().map(row).collect()).unwrap()
}

/// The least clocks of two phases with the same routes, where a switch takes 0 clocks and a word 1.
fn least(duplex: Duplex, setup: u32, ends: &[(u32, u32, u32)]) -> u128 {
    let mut parameters = Parameters { duplex, access_clocks_per_word: 1, ..Parameters::iwarp() };
    (parameters.t_sync, parameters.t_phase, parameters.link_clocks_per_word) = (0, 0, 1);
    parameters.stream_setup = setup;
    let machine = Machine::from_spec("mesh:3").unwrap().with_parameters(parameters).unwrap();
    let mut routes = PhaseRoutes::new();
    for (row, &(from, to, words)) in ends.iter().enumerate() {
        // Only the ends matter here.
        let cells = [CellId(from), CellId(to)];
        let cells = if from == to { &cells[..1] } else { &cells[..] };
        let links: Vec<LinkId> = machine.links_between(cells[0], cells[cells.len() - 1]).collect();
        let channels = vec![ChannelId(0); cells.len()];
        routes.push(ConnectionId(row as u32), words, cells, &links, &channels).unwrap();
    }
    let slots = vec![Slot { start: 0, duration: 0 }; ends.len()];
    let times = PhaseTimes { slots, makespan: 0 };
    let routing = conset_ir::Routing::new(
        Arc::new(machine),
        Arc::new(set(ends)),
        vec![routes.clone(), routes],
    );
    let timetable = Timetable::new(routing.unwrap(), vec![times.clone(), times]).unwrap();
    limits_of_prediction(&timetable).0
}

#[test]
fn the_busiest_agent_and_the_busiest_link_count() {
    let ends = [(0, 1, 10), (2, 1, 20), (1, 0, 5), (1, 1, 3), (2, 2, 1)];
    assert_eq!(least(Duplex::Full, 0, &ends), 2 * (10 + 20 + 3));
    // An agent that sends to itself alternates.
    assert_eq!(least(Duplex::Half, 0, &ends), 2 * (10 + 20 + 5 + 2 * 3));
    assert_eq!(least(Duplex::Full, 7, &ends), 2 * (10 + 20 + 3 + 3 * 7));
    assert_eq!(least(Duplex::Full, 0, &[(0, 1, 10), (0, 1, 20), (1, 0, 5)]), 2 * 30);
    assert_eq!(least(Duplex::Half, 0, &[]), 0);
}

/// The number of phases, or of clocks without switches, that a witness proves.
fn prove(
    machine: &Machine,
    set: &ConnectionSet,
    by: Binding,
    witness: &Witness,
) -> Result<u128, String> {
    let mut prover = Prover::new(machine, set);
    match by {
        Binding::Endpoints | Binding::ChannelTotal | Binding::ChannelFlow => {
            prover.phases(0, by, Some(witness))
        }
        _ => prover.load(by, witness),
    }
}

#[test]
fn witnesses_prove_what_can_be_counted_by_hand() {
    use Binding as B;
    let c = CellId;
    let ring = Machine::from_spec("ring:6").unwrap();
    let pairs = set(&[(0, 3, 10), (1, 3, 20), (5, 3, 30), (3, 3, 1)]);
    let hops = 3 * 10 + 2 * 20 + 2 * 30;
    for (by, witness, proved) in [
        (B::Endpoints, Witness::Cell(c(3)), 1),
        (B::Endpoints, Witness::Cell(c(2)), 0),
        (B::ChannelTotal, Witness::Hops, 1),
        (B::AgentLoad, Witness::Cell(c(3)), 2 * 61),
        (B::AgentLoad, Witness::Cell(c(0)), 2 * 10),
        (B::AverageLink, Witness::Hops, u128::div_ceil(2 * hops, 12)),
        // 60 words over the two links into c3.
        (B::Bisection, Witness::Cut(vec![(c(0), c(2)), (c(4), c(5))]), 60),
        (B::LinkFlow, Witness::LinkPrices(vec![5; 12]), u128::div_ceil(2 * 5 * hops, 60)),
        (B::LinkFlow, Witness::LinkPrices(vec![0; 12]), 0),
        (B::ChannelFlow, Witness::CellPrices(vec![3; 6]), 1),
    ] {
        assert_eq!(prove(&ring, &pairs, by, &witness), Ok(proved), "{by} {witness:?}");
    }
    for (by, witness) in [
        (B::Endpoints, Witness::Cell(c(6))),
        (B::AgentLoad, Witness::Cell(c(u32::MAX))),
        (B::AgentLoad, Witness::Hops),
        (B::Bisection, Witness::Cut(vec![(c(4), c(6))])),
        (B::Bisection, Witness::Cut(vec![(c(4), c(3))])),
        (B::Bisection, Witness::Cut(vec![(c(0), c(3)), (c(3), c(4))])),
        (B::LinkFlow, Witness::LinkPrices(vec![1; 11])),
        (B::ChannelFlow, Witness::CellPrices(vec![1; 7])),
        (B::Order, Witness::Chain(vec![ConnectionId(0), ConnectionId(1)])),
        (B::Order, Witness::Chain(vec![ConnectionId(4)])),
    ] {
        assert!(prove(&ring, &pairs, by, &witness).is_err(), "{by} {witness:?}");
    }
}

#[test]
fn chains_and_windows_are_counted_from_the_order() {
    let x = ConnectionId;
    let ring = Machine::from_spec("ring:6").unwrap();
    let rows = set(&[(0, 1, 10), (1, 2, 10), (2, 3, 10), (4, 3, 10)]);
    let rows = rows.with_order(vec![(x(0), x(1)), (x(1), x(2)), (x(0), x(3))]).unwrap();
    // 20 clocks of words, an access at the other end, and the link hidden behind the words.
    let one = 10 * 2 + 2 * 2 + 2 - 2;
    let order = |witness| prove(&ring, &rows, Binding::Order, &witness);
    assert_eq!(order(Witness::Chain(vec![x(0), x(1), x(2)])), Ok(3 * one));
    assert!(order(Witness::Chain(vec![x(0), x(2)])).is_err());
    // After one of them: x1 to x3, of which two go to c3.
    let window = |head, tail| Witness::Window { head, tail, side: vec![] };
    assert_eq!(order(window(one as u64, 0)), Ok(one + 2 * 20));
    assert_eq!(order(window(one as u64 + 1, 0)), Ok(one + 1 + 20));
    assert_eq!(order(window(3 * one as u64, 0)), Ok(0));
    let side = vec![(CellId(3), CellId(3))];
    let into_c3 = Witness::Window { head: one as u64, tail: 0, side };
    assert_eq!(order(into_c3), Ok(one));
}

#[test]
fn hops_around_what_is_dead_are_searched() {
    let topology = Topology::Ring { cells: 6 };
    let dead = vec![(CellId(0), CellId(1))];
    let ring = Machine::new("r", topology, Parameters::iwarp(), vec![CellId(4)], dead).unwrap();
    let pairs = set(&[(1, 0, 1), (2, 0, 1), (0, 0, 1), (3, 2, 1), (2, 0, 1)]);
    assert_eq!(ConnectionDistances::new(&ring, &pairs).hops(), [1, 2, 0, 1, 2]);
    let whole = Machine::from_spec("ring:6").unwrap();
    assert_eq!(ConnectionDistances::new(&whole, &set(&[(5, 1, 1), (1, 4, 1)])).hops(), [2, 3]);
}

#[test]
fn slabs_are_as_tight_as_their_cells_say() {
    for (spec, size) in [("mesh:5x2", 5), ("torus:5x2", 5), ("torus:4x2", 4)] {
        let machine = Machine::from_spec(spec).unwrap();
        let cells = machine.cell_count() as u32;
        let rows = (0..cells).flat_map(|a| (0..cells).map(move |b| (a, b, 1 + 3 * a + 7 * b)));
        let set = set(&rows.collect::<Vec<_>>());
        let loads = LoadCounter::new(&machine);
        let mut most = 0;
        for (size, stride) in [(size, 1), (2, size)] {
            for (first, length) in (0..size).flat_map(|f| (1..size).map(move |l| (f, l))) {
                let inside = |cell: u32| (cell / stride % size + size - first) % size < length;
                let prefix = first == 0 || first + length == size;
                if machine.topology().wraps() || prefix {
                    let side = conset_ir::witness::ranges((0..cells).map(inside));
                    most = most.max(loads.cut(set.connections().iter(), &side).unwrap());
                }
            }
        }
        assert_eq!(loads.slabs(&set), most, "{spec}");
    }
}

#[test]
fn prices_beyond_all_measure_prove_nothing_and_break_nothing() {
    let mut parameters = Parameters::iwarp();
    parameters.link_clocks_per_word = 1_000_000_000;
    let machine = Machine::from_spec("ring:6").unwrap().with_parameters(parameters).unwrap();
    let pairs = set(&[(0, 3, 1 << 30); 4]);
    let prices = Witness::LinkPrices(vec![u32::MAX; 12]);
    let even = Witness::LinkPrices(vec![1; 12]);
    let proved = |witness| prove(&machine, &pairs, Binding::LinkFlow, &witness).unwrap();
    assert_eq!(proved(prices), proved(even));
}
