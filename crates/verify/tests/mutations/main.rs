//! Mutation tests: one or more corrupted values for each rule, refused by that rule alone.
//!
//! The constructors of `conset-ir` prevent violations of `shape` and `barrier`; unit tests of the
//! modules cover these.

#[path = "../common/mod.rs"]
mod common;
mod images;

use common::{Draft, DraftRoute, compile, machine, set, way, with_dead};
use conset_ir::*;
use conset_verify::{self as verify, Rejection, Rule};
use images::{image_cases, lift_cases};

/// A 4x3 torus and connections of several kinds, one of them to itself, two of them parallel.
fn base() -> Draft {
    let connections = [
        (0, 1, 10),
        (0, 2, 20),
        (1, 0, 5),
        (5, 5, 7),
        (2, 10, 9),
        (2, 10, 9),
        (11, 4, 30),
        (3, 8, 1),
    ];
    let set = set(&connections).with_order(vec![(x(0), x(1)), (x(3), x(6))]).unwrap();
    compile(&machine("torus:4x3", &[("channels_per_cell", "3")]), set, |_| 1)
}

fn x(id: u32) -> ConnectionId {
    ConnectionId(id)
}

fn spoil(change: impl FnOnce(&mut Draft)) -> Rejection {
    spoil_draft(base(), change)
}

fn spoil_draft(mut draft: Draft, change: impl FnOnce(&mut Draft)) -> Rejection {
    verify::timetable(draft.timetable()).expect("valid before it was corrupted");
    change(&mut draft);
    verify::timetable(draft.timetable()).expect_err("spoilt")
}

/// A machine of two cells with a link in each direction, and a draft on it.
fn pair(settings: &[(&str, &str)], connections: &[(u32, u32, u32)]) -> Draft {
    compile(&machine("mesh:2", settings), set(connections), |_| 1)
}

fn with_requirements(bandwidth: Option<u32>, latency: Option<u32>) -> Draft {
    // Two connections share the link from c0 to c1; one of them goes on to c2.
    let mut first = Connection::new(CellId(0), CellId(2), 8);
    first.min_bandwidth = bandwidth;
    first.max_latency = latency;
    let connections = vec![first, Connection::new(CellId(0), CellId(1), 8)];
    compile(&machine("mesh:3", &[]), ConnectionSet::new("s", connections).unwrap(), |_| 1)
}

fn alone_at_500_words() -> Draft {
    let mut only = Connection::new(CellId(0), CellId(2), 8);
    only.min_bandwidth = Some(500);
    compile(&machine("mesh:3", &[]), ConnectionSet::new("s", vec![only]).unwrap(), |_| 1)
}

fn two_phases() -> Draft {
    pair(&[("channels_per_cell", "1")], &[(0, 1, 4), (0, 1, 4)])
}

fn moved_to_own_phase(draft: &mut Draft, connection: u32, change: impl FnOnce(&mut DraftRoute)) {
    let mut route = draft.route(connection).clone();
    for phase in &mut draft.phases {
        phase.retain(|r| r.connection != x(connection));
    }
    change(&mut route);
    draft.phases.push(vec![route]);
}

fn routing_cases() -> Vec<(Rule, &'static str, Rejection)> {
    use Rule::*;
    let crossing = || compile(&machine("mesh:3", &[]), set(&[(0, 2, 4), (1, 2, 4)]), |_| 1);
    let in_one_phase = |d: &mut Draft| {
        let all = d.phases.drain(..).flatten().collect();
        d.phases.push(all);
        d.schedule();
    };
    vec![
        (Coverage, "a route is missing", spoil(|d| d.phases[0].retain(|r| r.connection != x(4)))),
        (Coverage, "a word is missing", spoil(|d| d.route(6).words -= 1)),
        (
            Coverage,
            "a word is invented",
            spoil(|d| {
                d.route(7).words += 1;
                d.schedule();
            }),
        ),
        (
            Coverage,
            "a connection is carried twice",
            spoil(|d| {
                let again = d.route(6).clone();
                d.phases.push(vec![again]);
            }),
        ),
        (
            Coverage,
            "a route without words",
            spoil(|d| {
                let again = DraftRoute { words: 0, ..d.route(6).clone() };
                d.phases.push(vec![again]);
            }),
        ),
        (
            Ends,
            "a route stops short",
            spoil(|d| {
                let route = d.route(1);
                route.cells.pop();
                route.links.pop();
                route.channels.pop();
            }),
        ),
        (
            Ends,
            "two connections swapped",
            spoil(|d| {
                d.route(3).connection = x(99);
                d.route(4).connection = x(3);
                d.route(99).connection = x(4);
                d.route(3).words = 7;
                d.route(4).words = 9;
                d.schedule();
            }),
        ),
        (Adjacency, "no link", spoil(|d| d.route(1).links[0] = LinkId::NONE)),
        (
            Adjacency,
            "the link of the other direction",
            spoil(|d| {
                let machine = d.machine.clone();
                let back = machine.links_between(CellId(1), CellId(0)).next().unwrap();
                d.route(0).links[0] = back;
            }),
        ),
        (
            Adjacency,
            "a cell is jumped over",
            spoil(|d| {
                let route = d.route(1);
                route.cells.remove(1);
                route.links.remove(1);
                route.channels.remove(1);
            }),
        ),
        (
            Dead,
            "a cell on the way dies",
            spoil_draft(compile(&machine("mesh:3", &[]), set(&[(0, 2, 4)]), |_| 1), |d| {
                d.machine = with_dead(&d.machine, &[1], &[]);
            }),
        ),
        (
            Dead,
            "a link on the way dies",
            spoil(|d| d.machine = with_dead(&d.machine, &[], &[(0, 1)])),
        ),
        (
            SimpleRoute,
            "a detour and back",
            spoil(|d| {
                let there = way(&d.machine, CellId(5), CellId(6)).unwrap().1[0];
                let back = way(&d.machine, CellId(6), CellId(5)).unwrap().1[0];
                moved_to_own_phase(d, 3, |route| {
                    route.cells = vec![CellId(5), CellId(6), CellId(5)];
                    route.links = vec![there, back];
                    route.channels = vec![ChannelId(0), ChannelId(0), ChannelId(1)];
                });
                moved_to_own_phase(d, 6, |_| {});
            }),
        ),
        (
            Capacity,
            "two routes through a cell of one channel",
            spoil_draft(
                compile(
                    &machine("mesh:3", &[("channels_per_cell", "1")]),
                    set(&[(0, 2, 4), (1, 1, 4)]),
                    |_| 1,
                ),
                in_one_phase,
            ),
        ),
        (
            ChannelRange,
            "a channel in the reserve",
            spoil(|d| d.route(2).channels[0] = ChannelId(3)),
        ),
        (ChannelRange, "no such channel", spoil(|d| d.route(2).channels[1] = ChannelId(u32::MAX))),
        (
            DoubleBooking,
            "a channel with two owners",
            spoil_draft(crossing(), |d| d.route(1).channels[0] = ChannelId(0)),
        ),
        (
            Order,
            "the second in an earlier phase",
            spoil(|d| {
                moved_to_own_phase(d, 0, |_| {});
            }),
        ),
        (
            Bandwidth,
            "a shared link",
            verify::routing(&with_requirements(Some(251), None).routing()).unwrap_err(),
        ),
        (
            Bandwidth,
            "a slow agent",
            spoil_draft(alone_at_500_words(), |d| {
                d.machine = machine("mesh:3", &[("access_clocks_per_word", "3")]);
                d.schedule();
            }),
        ),
        // Twice through an agent at 2 clocks, a link shared by two and one of its own.
        (
            Latency,
            "a shared link",
            verify::routing(&with_requirements(None, Some(2 * 2 + 2 * 2 + 2 - 1)).routing())
                .unwrap_err(),
        ),
    ]
}

fn times_cases() -> Vec<(Rule, &'static str, Rejection)> {
    use Rule::*;
    vec![
        (Duration, "a clock too short", spoil(|d| d.route(6).duration -= 1)),
        (
            Duration,
            "set-up forgotten",
            spoil_draft(pair(&[("stream_setup", "9")], &[(0, 1, 4)]), |d| {
                d.route(0).duration -= 9;
            }),
        ),
        (Duration, "beyond the clock", spoil(|d| d.route(6).start = u64::MAX)),
        (Duration, "a makespan beyond the clock", spoil(|d| d.makespan_error = 1 << 62)),
        (
            Duration,
            "phases that add up to more than the clock",
            spoil_draft(two_phases(), |d| {
                d.phases.iter_mut().for_each(|phase| phase[0].start = limits::TIME / 2);
            }),
        ),
        (
            AgentOverlap,
            "two sends at a time",
            spoil_draft(base_unordered(), |d| d.route(1).start = d.route(0).start + 19),
        ),
        (
            AgentOverlap,
            "two receives at a time",
            spoil_draft(
                compile(&machine("mesh:3", &[]), set(&[(0, 1, 4), (2, 1, 4)]), |_| 1),
                |d| {
                    d.route(1).start = 0;
                },
            ),
        ),
        (
            AgentOverlap,
            "send and receive at a time, half duplex",
            spoil_draft(pair(&[("duplex", "half")], &[(0, 1, 4), (1, 0, 4)]), |d| {
                d.route(1).start = 7;
            }),
        ),
        (
            AgentOverlap,
            "three streams of two",
            spoil_draft(pair(&[("streams", "2")], &[(0, 1, 4), (0, 1, 4), (0, 1, 4)]), |d| {
                d.phases[0].iter_mut().for_each(|r| r.start = 0);
            }),
        ),
        (Makespan, "a clock too long", spoil(|d| d.makespan_error = 1)),
        (
            Order,
            "at the same time at other cells",
            spoil_draft(
                compile(
                    &machine("mesh:4", &[]),
                    set(&[(0, 1, 4), (2, 3, 4)]).with_order(vec![(x(0), x(1))]).unwrap(),
                    |_| 1,
                ),
                |d| d.route(1).start -= 1,
            ),
        ),
        (
            Order,
            "between the two parts of the first",
            spoil_draft(
                compile(
                    &machine("mesh:4", &[]),
                    set(&[(0, 1, 4), (2, 3, 4)]).with_order(vec![(x(0), x(1))]).unwrap(),
                    |x| 2 - x.0,
                ),
                |d| {
                    // Whichever part is listed first.
                    d.route(1).start = 4;
                    d.phases[0].reverse();
                    assert!(verify::timetable(d.timetable()).is_err());
                    d.phases[0].reverse();
                },
            ),
        ),
    ]
}

fn base_unordered() -> Draft {
    let draft = base();
    compile(&draft.machine, set(&[(0, 1, 10), (0, 4, 20)]), |_| 1)
}

/// A schedule of `base` with bounds of 1 phase and of the time of its busiest agent, and a possible
/// prediction.
fn base_claims() -> SetSchedule {
    let draft = base();
    let phases = draft.phases.len() as u64;
    // c11 sends 30 words, and three connections end at c0, which has three channels.
    let mut schedule = draft.schedule_of(1, 528 + 2 * 30, phases * 528 + 200);
    schedule.proof =
        Proof { phases: Some(Witness::Cell(CellId(0))), clocks: Some(Witness::Cell(CellId(11))) };
    schedule
}

fn false_claim(change: impl FnOnce(&mut SetSchedule)) -> Rejection {
    let mut schedule = base_claims();
    verify::check_set_schedule(&schedule).expect("true before it was changed");
    change(&mut schedule);
    verify::set_schedule(schedule).expect_err("not true")
}

fn claim_cases() -> Vec<(Rule, &'static str, Rejection)> {
    let c = CellId;
    let cases: Vec<(&'static str, Rejection)> = vec![
        ("a phase too many", false_claim(|s| s.bounds.phases += 1)),
        ("more phases than it has", false_claim(|s| s.bounds.phases = 99)),
        ("a clock too many", false_claim(|s| s.bounds.clocks += 1)),
        ("the prediction as a bound", false_claim(|s| s.bounds.clocks = s.predicted_clocks)),
        ("more than the prediction", false_claim(|s| s.bounds.clocks = s.predicted_clocks + 1)),
        ("another agent", false_claim(|s| s.proof.clocks = Some(Witness::Cell(c(9))))),
        ("another cell", false_claim(|s| s.proof.phases = Some(Witness::Cell(c(9))))),
        ("no such agent", false_claim(|s| s.proof.clocks = Some(Witness::Cell(c(12))))),
        ("another kind of witness", false_claim(|s| s.proof.clocks = Some(Witness::Hops))),
        ("another name", false_claim(|s| s.bounds.clocks_by = Binding::LinkFlow)),
        (
            "a clock too many, no witness",
            false_claim(|s| {
                // Without a witness the longest chain counts: 16 clocks for x3, then 66 for x6.
                s.bounds.clocks = 528 + 16 + 66 + 1;
                s.proof.clocks = None;
            }),
        ),
        (
            "a phase too many, no witness",
            false_claim(|s| {
                s.bounds.phases += 1;
                s.proof.phases = None;
            }),
        ),
        (
            "switches forgotten",
            false_claim(|s| {
                (s.bounds.clocks, s.predicted_clocks) =
                    (0, s.timetable.phases().len() as u64 * 528);
            }),
        ),
        ("a prediction for all eternity", false_claim(|s| s.predicted_clocks = u64::MAX)),
    ];
    cases.into_iter().map(|(what, rejection)| (Rule::Claim, what, rejection)).collect()
}

/// The requirements of a connection change after the digest was stated.
fn digest_cases() -> Vec<(Rule, &'static str, Rejection)> {
    let draft = base();
    let schedule = |draft: &Draft| {
        let set = draft.schedule_of(0, 0, draft.phases.len() as u64 * 528 + 200);
        Schedule::new(draft.machine.clone(), vec![set], None).unwrap()
    };
    let stated = schedule(&draft).with_digest();
    verify::check_schedule(&stated).unwrap();
    let mut loose = draft.clone();
    let mut rows = draft.set.connections().to_vec();
    rows[0].max_latency = Some(1_000_000);
    let set = ConnectionSet::new(draft.set.name(), rows).unwrap();
    loose.set = std::sync::Arc::new(set.with_order(draft.set.order().to_vec()).unwrap());
    let other = schedule(&loose).with_stated_digest(stated.digest());
    verify::check_schedule(&schedule(&loose)).unwrap();
    let flipped = stated.digest().map(|digest| digest ^ 1);
    vec![
        (Rule::Digest, "another contract", verify::check_schedule(&other).unwrap_err()),
        (
            Rule::Digest,
            "another digest",
            verify::check_schedule(&stated.with_stated_digest(flipped)).unwrap_err(),
        ),
    ]
}

#[test]
fn every_fault_is_refused_by_its_rule_alone() {
    let cases = [
        routing_cases(),
        times_cases(),
        claim_cases(),
        digest_cases(),
        image_cases(),
        lift_cases(),
    ];
    // The rules of steps alone are in `tests/all/steps.rs`.
    let mut covered = vec![Rule::Shape, Rule::Barrier, Rule::Holding, Rule::Pairing];
    for (rule, what, rejection) in cases.into_iter().flatten() {
        assert_eq!(rejection.rules(), [rule], "{what}: {rejection}");
        let line = rejection.violations()[0].to_string();
        assert!(line.starts_with(rule.name()) && !line.contains('\n'), "{line}");
        covered.push(rule);
    }
    for rule in Rule::ALL {
        assert!(covered.contains(rule), "no fault for {rule}");
    }
}

#[test]
fn what_meets_its_contract_exactly_is_accepted() {
    for draft in [
        with_requirements(Some(250), Some(10)),
        with_requirements(None, Some(10)),
        with_requirements(Some(1), Some(u32::MAX)),
    ] {
        verify::routing(&draft.routing()).unwrap();
    }
}

#[test]
fn sharing_is_counted_phase_by_phase() {
    // Two parts over one link, one after the other: each has the link to itself.
    let mut only = Connection::new(CellId(0), CellId(1), 8);
    (only.min_bandwidth, only.max_latency) = (Some(500), Some(6));
    let set = ConnectionSet::new("s", vec![only]).unwrap();
    let draft = compile(&machine("mesh:2", &[("channels_per_cell", "1")]), set, |_| 2);
    let report = verify::routing(&draft.routing()).unwrap();
    assert_eq!((report.phases, report.max_sharing), (2, 1));
}

#[test]
fn every_route_that_is_elsewhere_is_named() {
    let draft = compile(&machine("mesh:2", &[]), set(&[(0, 1, 4); 4]), |_| 1);
    let split = |first: usize| {
        let mut draft = draft.clone();
        let rest = draft.phases[0].split_off(first);
        draft.phases.push(rest);
        draft.schedule();
        draft
    };
    for (of_image, of_timetable) in [(4, 1), (1, 4), (4, 0), (2, 3), (0, 4)] {
        let timetable = split(of_timetable).timetable();
        let image = split(of_image).image().build();
        let rejection = verify::image_of(image, &[&timetable]).unwrap_err();
        let named =
            |p: u32| rejection.violations().iter().filter(|v| v.phase == Some(PhaseId(p))).count();
        // The moved routes are surplus in one phase and missing in the other. The routes that stay
        // in the later phase may have other starts.
        assert_eq!(named(0), of_image.abs_diff(of_timetable), "{rejection}");
        let stayed = 4 - of_image.max(of_timetable);
        assert_eq!(named(1), of_image.abs_diff(of_timetable) + stayed, "{rejection}");
    }
}

#[test]
fn with_full_duplex_the_lists_of_both_directions_are_independent() {
    let draft = pair(&[], &[(0, 1, 4), (1, 0, 8), (0, 1, 4), (1, 0, 8)]);
    let mut image = draft.image();
    for cell in 0..2 {
        image.cell(cell).operations.sort_by_key(|op| op.direction);
    }
    verify::image_of(image.build(), &[&draft.timetable()]).unwrap();
}

#[test]
fn reserved_channels_are_distinguished_from_missing_ones() {
    for (channel, what) in [(3, "reserved"), (10, "reserved"), (11, "not a channel of the cell")] {
        let rejection = spoil(|d| d.route(2).channels[0] = ChannelId(channel));
        assert!(rejection.violations()[0].message.contains(what), "{rejection}");
    }
}

#[test]
fn violations_are_listed_up_to_a_cap_and_counted_beyond() {
    let connections: Vec<(u32, u32, u32)> = (0..300).map(|i| (i % 8, (i + 1) % 8, 3)).collect();
    let mut draft = compile(&machine("ring:8", &[]), set(&connections), |_| 1);
    draft.phases.iter_mut().flatten().for_each(|r| r.duration -= 1);
    draft.makespan_error = 1;
    let rejection = verify::timetable(draft.timetable()).unwrap_err();
    assert_eq!(rejection.violations().len(), Rejection::LISTED);
    assert_eq!(rejection.rules(), [Rule::Duration, Rule::Makespan]);
    assert_eq!(rejection.total(), 300 + draft.phases.len() as u64);
    assert!(rejection.to_string().contains("more; in all: duration 300, makespan"));
}
