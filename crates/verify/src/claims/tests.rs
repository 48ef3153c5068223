//! Tests of the claims, with values computed by hand.

use std::sync::Arc;

use conset_ir::{
    Bounds, CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Duplex, LinkId, Parameters,
    PhaseTimes, Proof, Slot, Topology,
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
    assert_eq!(least(Duplex::Half, 7, &ends), 2 * (10 + 20 + 5 + 2 * 3 + 5 * 7));
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

/// Each cell of a ring of 8 sends 100 words three links on. With 4 channels there is none for the
/// five links of the other way, so the links of one direction carry 300 words each.
#[test]
fn prices_of_cells_and_links_weigh_time_against_phases() {
    let pairs = set(&std::array::from_fn::<_, 8, _>(|c| (c as u32, (c as u32 + 3) % 8, 100)));
    let proved = |switch: u32, phases: u128, cell: u32, alone: u32| {
        let parameters =
            Parameters { channels_per_cell: 4, t_sync: switch, t_phase: 0, ..Parameters::iwarp() };
        let ring = Machine::from_spec("ring:8").unwrap().with_parameters(parameters).unwrap();
        let links = (0..ring.link_count()).map(|row| ring.link(LinkId::from_index(row)));
        let onward = links.map(|link| u32::from(link.target.0 == (link.source.0 + 1) % 8));
        let onward: Vec<u32> = onward.collect();
        let witness =
            Witness::Prices { cells: vec![cell; 8], links: onward, alone: vec![alone; 16] };
        let mut prover = Prover::new(&ring, &pairs);
        prover.clocks(u128::MAX, phases, Binding::ChannelLinkFlow, Some(&witness)).unwrap()
    };
    // Both ways cost 900, the channels of a phase 600; a word takes 2 clocks on a link.
    assert_eq!(proved(528, 1, 150, 0), 528 + 600);
    assert_eq!(proved(528, 2, 150, 0), 2 * 528 + 200);
    // With cheap switches a second phase is worth its time: then only the agents bind.
    assert_eq!(proved(399, 1, 150, 0), 2 * 399 + 200);
    assert_eq!(proved(401, 1, 150, 0), 401 + 600);
    assert_eq!(proved(0, 1, 150, 0), 200);
    // Or the links, by other prices: 300 word-hops over two links.
    assert_eq!(proved(100, 1, 150, 7), 2 * 100 + 300);
    assert_eq!(proved(528, 1, 150, 7), 528 + 600);
    // The way round is cheaper: 6 * 140 less 560 for channels.
    assert_eq!(proved(528, 1, 140, 0), 528 + 560);
    // The short way is cheaper: 300 + 4 * 160 less 640.
    assert_eq!(proved(528, 1, 160, 0), 528 + 600);
    assert_eq!(proved(528, 1, 0, 0), 528 + 200);
    assert_eq!(proved(528, 1, u32::MAX, 0), 528 + 600);
}

/// Three connections over the four links of a mesh of five, and two over one of them.
#[test]
fn latencies_are_those_of_the_routes_that_each_phase_needs() {
    let rows = set(&[(0, 1, 9), (0, 4, 1), (4, 0, 1), (1, 2, 1), (0, 4, 7)]);
    let proved = |timed_starts, setup, channels, phases| {
        let parameters = Parameters {
            channels_per_cell: channels,
            timed_starts,
            stream_setup: setup,
            ..Parameters::iwarp()
        };
        let mesh = Machine::from_spec("mesh:5").unwrap().with_parameters(parameters).unwrap();
        let mut prover = Prover::new(&mesh, &rows);
        let clocks =
            prover.clocks(u128::MAX, phases, Binding::Latency, Some(&Witness::Hops)).unwrap();
        clocks - phases * 528
    };
    let [long, short] = [12, 6];
    // 19 channels are needed, 15 of them by the long routes.
    assert_eq!(proved(1, 0, 12, 1), long);
    assert_eq!(proved(1, 0, 12, 2), long + short);
    assert_eq!(proved(1, 0, 3, 2), long + short);
    assert_eq!(proved(1, 0, 2, 3), 2 * long + short);
    assert_eq!(proved(1, 0, 1, 4), 3 * long + short);
    assert_eq!(proved(1, 30, 1, 5), 3 * long + 2 * short + 5 * 30);
    assert_eq!(proved(0, 0, 1, 4), 0);
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
    for (spec, [size, rows]) in
        [("mesh:5x2", [5, 2]), ("torus:5x2", [5, 2]), ("torus:4x2", [4, 2]), ("mesh:2x5", [2, 5])]
    {
        let machine = Machine::from_spec(spec).unwrap();
        let cells = machine.cell_count() as u32;
        let all = (0..cells).flat_map(|a| (0..cells).map(move |b| (a, b, 1 + 3 * a + 7 * b)));
        let set = set(&all.collect::<Vec<_>>());
        let loads = LoadCounter::new(&machine);
        let mut most = 0;
        for (size, stride) in [(size, 1), (rows, size)] {
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
    let both = |cell, link| {
        let links = vec![link; 12];
        let witness = Witness::Prices { cells: vec![cell; 6], alone: links.clone(), links };
        let mut prover = Prover::new(&machine, &pairs);
        prover.clocks(u128::MAX, 1, Binding::ChannelLinkFlow, Some(&witness)).unwrap()
    };
    // Where a channel costs more than any words, the links alone are what is left.
    for (cell, link) in [(u32::MAX, 1), (u32::MAX, u32::MAX), (0, u32::MAX), (1, 1)] {
        assert_eq!(both(cell, link), both(0, 1), "{cell} {link}");
    }
    assert!(both(0, 0) < both(0, 1));
}

/// These parameters with full duplex and one stream, whose set-up takes 7 clocks, and 3 for a word at agents.
fn with_easy_agents(parameters: &Parameters) -> Parameters {
    Parameters {
        duplex: Duplex::Full,
        streams: 1,
        stream_setup: 7,
        access_clocks_per_word: 3,
        ..parameters.clone()
    }
}

/// A switch takes 100 clocks, set-up 7 (and 5 between nodes), a word 3 at agents and 2 on links.
fn machine_of_claims(timed_starts: u32) -> Machine {
    let parameters = Parameters {
        link_clocks_per_word: 2,
        network_overhead: 5,
        t_sync: 60,
        t_phase: 40,
        timed_starts,
        ..with_easy_agents(&Parameters::iwarp())
    };
    Machine::from_spec("mesh:2").unwrap().with_parameters(parameters).unwrap()
}

/// The messages about the claims of a set with one connection of 10 words in one phase.
fn refused(
    (machine, target, makespan): (Machine, u32, u64),
    bounds: Bounds,
    proof: Proof,
    predicted_clocks: u64,
) -> Vec<String> {
    let rows = set(&[(0, target, 10)]);
    let cells = if target == 0 { vec![CellId(0)] } else { vec![CellId(0), CellId(target)] };
    let ends = (cells[0], cells[cells.len() - 1]);
    let links: Vec<LinkId> = machine.links_between(ends.0, ends.1).collect();
    let mut routes = PhaseRoutes::new();
    let channels = vec![ChannelId(0); cells.len()];
    routes.push(ConnectionId(0), 10, &cells, &links, &channels).unwrap();
    let routing = conset_ir::Routing::new(Arc::new(machine), Arc::new(rows), vec![routes]).unwrap();
    let times = PhaseTimes { slots: vec![Slot { start: 0, duration: 0 }], makespan };
    let timetable = Timetable::new(routing, vec![times]).unwrap();
    let schedule = SetSchedule { timetable, bounds, proof, predicted_clocks };
    let mut findings = Findings::new();
    check(&schedule, &mut findings);
    let rejection = findings.finish().err();
    let violations = rejection.iter().flat_map(|rejection| rejection.violations());
    violations.map(|violation| violation.message.clone()).collect()
}

fn bounds(phases: u32, clocks: u64) -> Bounds {
    Bounds { phases, phases_by: Binding::Endpoints, clocks, clocks_by: Binding::AgentLoad }
}

/// The switch, and set-up and words at an agent.
const CLOCKS: u64 = 100 + 7 + 10 * 3;

#[test]
fn bounds_are_believed_up_to_what_is_proved() {
    let claim = |bounds, proof| refused((machine_of_claims(0), 1, 0), bounds, proof, CLOCKS + 16);
    let witness = |phases, clocks| Proof { phases: Some(phases), clocks: Some(clocks) };
    let cell = |cell| Witness::Cell(CellId(cell));
    let none: Vec<String> = Vec::new();
    for proof in [Proof::default(), witness(cell(0), cell(1))] {
        assert_eq!(claim(bounds(1, CLOCKS), proof.clone()), none);
        assert_eq!(claim(bounds(0, 0), proof.clone()), none);
        let how = match proof.is_empty() {
            true => "what can be counted without a witness",
            false => "its witness",
        };
        // One clock more is still below the prediction, but not proved.
        let found = claim(bounds(1, CLOCKS + 1), proof.clone());
        let by = Binding::AgentLoad;
        let expected = format!("the bound claims at least 138 clocks by {by}; {how} proves 137");
        assert_eq!(found, [expected]);
        let found = claim(bounds(2, CLOCKS), proof);
        let by = Binding::Endpoints;
        let proved = format!("the bound claims at least 2 phases by {by}; {how} proves 1");
        let more = "the bound claims at least 2 phases; the schedule has 1".to_owned();
        assert_eq!(found, [more, proved]);
    }
    let found = claim(bounds(1, CLOCKS), witness(cell(2), Witness::Hops));
    let [phases, clocks] = &found[..] else { panic!("{found:?}") };
    assert!(phases.starts_with("the witness of the bound of phases is invalid"), "{phases}");
    assert!(clocks.starts_with("the witness of the bound of clocks is invalid"), "{clocks}");
    // As much as the prediction can be claimed, and no more.
    let exact =
        |clocks| refused((machine_of_claims(0), 1, 0), bounds(1, clocks), Proof::default(), CLOCKS);
    assert_eq!(exact(CLOCKS), none);
    let more = "the bound claims at least 138 clocks; the prediction is 137";
    let found = exact(CLOCKS + 1);
    assert!(found.len() == 2 && found[0] == more, "{found:?}");
}

#[test]
fn predictions_are_between_the_busiest_resource_and_all_routes_in_a_row() {
    let accepts = |machine: fn() -> (Machine, u32, u64), predicted| {
        refused(machine(), bounds(0, 0), Proof::default(), predicted).is_empty()
    };
    // Set-up and words at the agents; then the latency of the last word, twice, and a clock.
    let untimed: fn() -> (Machine, u32, u64) = || (machine_of_claims(0), 1, 50);
    let (least, most) = (CLOCKS, CLOCKS + 5 + 2 * (2 * 3 + 2) + 1);
    // A machine whose makespan is longer, by itself or after all routes.
    let long: fn() -> (Machine, u32, u64) = || (machine_of_claims(0), 1, 70);
    let timed: fn() -> (Machine, u32, u64) = || (machine_of_claims(1), 1, 70);
    // A cell that sends to itself may alternate.
    let own: fn() -> (Machine, u32, u64) = || (machine_of_claims(0), 0, 0);
    let cases = [
        (untimed, least, most),
        (long, least, 100 + 70 + 1),
        (timed, least, most + 70),
        (own, least, 100 + 2 * (7 + 5 + 30) + 2 * 2 * 3 + 1),
    ];
    for (row, (machine, least, most)) in cases.into_iter().enumerate() {
        assert!(accepts(machine, least) && accepts(machine, most), "{row}: {least} to {most}");
        assert!(!accepts(machine, least - 1) && !accepts(machine, most + 1), "{row}");
    }
}

/// A machine with one channel per cell, where set-up takes 7 clocks, a word 3 at agents and 10 on links.
fn slow_links(spec: &str, t_sync: u32) -> Machine {
    let parameters = Parameters {
        channels_per_cell: 1,
        link_clocks_per_word: 10,
        t_sync,
        t_phase: 0,
        ..with_easy_agents(&Parameters::iwarp())
    };
    Machine::from_spec(spec).unwrap().with_parameters(parameters).unwrap()
}

#[test]
fn words_of_all_routes_over_a_link_count() {
    let machine = slow_links("mesh:3", 0);
    let c = CellId;
    let link = |from, to| machine.links_between(c(from), c(to)).next().unwrap();
    let mut routes = PhaseRoutes::new();
    let (there, onward) = (link(0, 1), link(1, 2));
    let mut push = |words, cells: &[CellId], links: &[LinkId]| {
        routes
            .push(ConnectionId(0), words, cells, links, &vec![ChannelId(0); cells.len()])
            .unwrap();
    };
    push(10, &[c(0), c(1), c(2)], &[there, onward]);
    push(20, &[c(1), c(2)], &[onward]);
    let mut busiest = Busiest::new(&machine);
    // The next phase starts anew.
    assert_eq!([busiest.of(&routes), busiest.of(&routes)], [30 * 10; 2]);
}

#[test]
fn phases_are_counted_by_ends_or_by_channels() {
    let ring = slow_links("ring:6", 0);
    let phases = |rows: &[(u32, u32, u32)], claimed| {
        Prover::new(&ring, &set(rows)).phases(claimed, Binding::Nothing, None)
    };
    // Three of them end at c1, one at itself: three phases for nine channels on six cells.
    let star = [(0, 1, 1), (2, 1, 1), (1, 1, 1), (4, 5, 1), (5, 4, 1)];
    assert_eq!(phases(&star, 3), Ok(3));
    assert_eq!(phases(&star, 4), Ok(3));
    // Two end at each cell, but each takes four of the six channels.
    let across: Vec<_> = (0..6).map(|cell| (cell, (cell + 3) % 6, 1)).collect();
    assert_eq!(phases(&across, 2), Ok(2));
    assert_eq!(phases(&across, 3), Ok(4));
}

#[test]
fn clocks_without_a_witness_are_those_of_switches_and_of_the_greatest_load() {
    let clocks = |t_sync, rows: &ConnectionSet, claimed, phases| {
        let ring = slow_links("ring:6", t_sync);
        Prover::new(&ring, rows).clocks(claimed, phases, Binding::Nothing, None)
    };
    // Two phases by ends. c0 sends for 2 x (7 + 60) clocks; 60 words over two links of each direction of
    // the cut that has c0 to c2, or c5 to c1, on one side.
    let rows = set(&[(0, 3, 20), (0, 3, 20), (2, 5, 20)]);
    let agent = 2 * (7 + 20 * 3);
    let cut = 60 * 10 / 2;
    // What is computed first suffices; then the cut; then more phases than are claimed.
    assert_eq!(clocks(100, &rows, 100 + agent, 1), Ok(100 + agent));
    assert_eq!(clocks(100, &rows, 100 + agent + 1, 1), Ok(100 + cut));
    assert_eq!(clocks(100, &rows, 100 + cut, 1), Ok(100 + cut));
    assert_eq!(clocks(100, &rows, 100 + cut + 1, 1), Ok(200 + cut));
    assert_eq!(clocks(100, &rows, 900, 1), Ok(200 + cut));
    assert_eq!(clocks(0, &rows, cut, 1), Ok(cut));
    // The longest chain, which is the last that is computed.
    let ordered = set(&[(0, 3, 9), (3, 0, 9)]);
    let ordered = ordered.with_order(vec![(ConnectionId(0), ConnectionId(1))]).unwrap();
    let chain = 2 * (7 + 9 * 10 / 2 + 2 * 3 + 3 * 10 - 10);
    assert_eq!(clocks(100, &ordered, 900, 1), Ok(200 + chain));
}

#[test]
fn a_connection_takes_its_agents_or_the_links_beside_them_and_its_latency() {
    let x = ConnectionId;
    let mesh = slow_links("mesh:3x2", 0);
    // From a corner over two of its links; in the middle; to itself; few words, all of one access.
    let rows = set(&[(0, 2, 10), (1, 4, 9), (3, 3, 8), (0, 1, 1)]);
    let rows = rows.with_order(vec![(x(0), x(1)), (x(1), x(2)), (x(2), x(3))]).unwrap();
    let of = |chain: &[u32]| {
        let witness = Witness::Chain(chain.iter().map(|&row| x(row)).collect());
        prove(&mesh, &rows, Binding::Order, &witness).unwrap()
    };
    let clocks = [
        7 + 10 * 10 / 2 + 2 * 3 + 2 * 10 - 10,
        7 + 9 * 10 / 3 + 2 * 3 + 10 - 10,
        7 + 8 * 3 + 2 * 3 - 3,
        7 + 10 / 2 + 2 * 3 + 10 - 10,
    ];
    assert_eq!([of(&[0]), of(&[1]), of(&[2]), of(&[3])], clocks);
    // Between the first and the last are the other two, of which that from c1 has more words.
    let window = |head, tail| {
        let witness = Witness::Window { head, tail, side: Vec::new() };
        prove(&mesh, &rows, Binding::Order, &witness).unwrap()
    };
    let (head, tail) = (clocks[0] as u64, clocks[3] as u64);
    assert_eq!(window(head, tail), clocks[0] + 9 * 3 + clocks[3]);
}

#[test]
fn hops_are_counted_in_every_dimension_unless_something_is_dead() {
    let torus = Topology::Torus { dims: vec![4, 3, 5] };
    let machine = |cells: &[u32], links: &[(u32, u32)]| {
        let cells = cells.iter().map(|&cell| CellId(cell)).collect();
        let links = links.iter().map(|&(from, to)| (CellId(from), CellId(to))).collect();
        Machine::new("t", torus.clone(), Parameters::iwarp(), cells, links).unwrap()
    };
    // To (3, 2, 4): a step back in each dimension; and to (2, 1, 2).
    let pairs = set(&[(0, 3 + 4 * 2 + 12 * 4, 1), (0, 2 + 4 + 12 * 2, 1), (0, 1, 1), (0, 2, 1)]);
    let hops = |machine| ConnectionDistances::new(&machine, &pairs).hops().to_vec();
    assert_eq!(hops(machine(&[], &[])), [3, 2 + 1 + 2, 1, 2]);
    assert_eq!(hops(machine(&[], &[(0, 1)])), [3, 5, 3, 2]);
    let line = Topology::Mesh { dims: vec![3, 2] };
    let line = Machine::new("m", line, Parameters::iwarp(), vec![CellId(1)], vec![]).unwrap();
    assert_eq!(ConnectionDistances::new(&line, &set(&[(0, 2, 1)])).hops(), [4]);
}

#[test]
fn proofs_by_prices_search_up_to_their_limit() {
    // 5462 cells and 10 922 links make 2^14 for each of 2^10 sources.
    let mesh = Machine::from_spec("mesh:5462").unwrap();
    let travelled = |sources: u32| {
        let rows: Vec<_> = (0..sources).map(|cell| (cell, cell, 1)).collect();
        let set = set(&rows);
        ConnectionDistances::new(&mesh, &set).by_cells(&[1; 5462])
    };
    assert_eq!(travelled(1024), Ok(1024));
    assert!(travelled(1025).unwrap_err().contains("more than the limit"));
}

#[test]
fn a_witness_of_another_kind_is_named() {
    let ring = Machine::from_spec("ring:6").unwrap();
    let rows = set(&[(0, 3, 1)]);
    let side = Vec::new();
    let both = Witness::Prices { cells: vec![1; 6], links: vec![1; 12], alone: vec![1; 12] };
    for (witness, what) in [
        (Witness::Cell(CellId(0)), "a cell"),
        (Witness::Hops, "hops"),
        (Witness::Cut(Vec::new()), "a cut"),
        (Witness::CellPrices(vec![1; 6]), "prices of cells"),
        (both, "prices of cells and links"),
        (Witness::Chain(Vec::new()), "a chain"),
        (Witness::Window { head: 0, tail: 0, side }, "a window"),
    ] {
        let by = Binding::LinkFlow;
        let message = format!("{what} cannot prove a bound by {by}");
        assert_eq!(prove(&ring, &rows, by, &witness), Err(message));
    }
}

#[test]
fn loads_in_a_cluster_count_the_rates_and_the_software_of_its_network() {
    let parameters = Parameters {
        link_clocks_per_word: 2,
        network_clocks_per_word: 5,
        network_overhead: 11,
        ..with_easy_agents(&Parameters::cluster())
    };
    let cluster = Machine::from_spec("cluster:2x2").unwrap().with_parameters(parameters).unwrap();
    let rows = set(&[(0, 1, 30), (0, 2, 20), (1, 3, 40)]);
    // c0 opens a stream in its node and one to the other node.
    let agent = prove(&cluster, &rows, Binding::AgentLoad, &Witness::Cell(CellId(0)));
    assert_eq!(agent, Ok(50 * 3 + 7 + 7 + 11));
    // Out of c0 there is one link of 2 clocks; out of c0, c1 and the switch of their node one of 5.
    let cut = |side: &[(u32, u32)]| {
        let side = side.iter().map(|&(first, last)| (CellId(first), CellId(last))).collect();
        prove(&cluster, &rows, Binding::Bisection, &Witness::Cut(side))
    };
    assert_eq!(cut(&[(0, 0)]), Ok(50 * 2));
    assert_eq!(cut(&[(0, 1), (4, 4)]), Ok(60 * 5));
    // The links of c0 and of the network: in 10 clocks 5 words and 2.
    assert_eq!(cut(&[(0, 0), (2, 3), (5, 6)]), Ok(u128::div_ceil(30 * 10, 7)));
}
