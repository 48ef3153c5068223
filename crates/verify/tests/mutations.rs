//! One spoilt artefact, or more, for each rule: the checker must refuse it by that rule alone.
//!
//! `shape` and `barrier` cannot be broken through the constructors of `conset-ir`; unit tests of
//! the modules break them.

mod common;

use std::sync::Arc;

use common::{Draft, DraftImage, DraftRoute, compile, machine, set, way, with_dead};
use conset_ir::*;
use conset_verify::{self as verify, Rejection, Rule};

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
    verify::timetable(draft.timetable()).expect("valid before it was spoilt");
    change(&mut draft);
    verify::timetable(draft.timetable()).expect_err("spoilt")
}

fn spoil_image(change: impl FnOnce(&mut DraftImage)) -> Rejection {
    spoil_image_of(&base(), change)
}

fn spoil_image_of(draft: &Draft, change: impl FnOnce(&mut DraftImage)) -> Rejection {
    let mut image = draft.image();
    verify::image_of(image.build(), &[&draft.timetable()]).expect("valid before it was spoilt");
    change(&mut image);
    let rejection = verify::image(image.build()).expect_err("spoilt");
    // Lifting alone finds nothing that the whole check does not.
    if let Err(lift) = verify::lift(&image.build()) {
        assert_eq!(lift, rejection);
    }
    rejection
}

/// A machine of two cells with a link each way, and a draft on it.
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
        (Duration, "beyond the clock", spoil(|d| d.route(6).start = u64::MAX - 1)),
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
    ]
}

fn base_unordered() -> Draft {
    let draft = base();
    compile(&draft.machine, set(&[(0, 1, 10), (0, 4, 20)]), |_| 1)
}

fn claim_cases() -> Vec<(Rule, &'static str, Rejection)> {
    let draft = base();
    let phases = draft.phases.len() as u32;
    // Switches, and per phase the 30 words of c0 or what c11 sends.
    let clocks = u64::from(phases) * 528 + 10_000;
    verify::set_schedule(draft.schedule_of(phases, clocks, clocks)).unwrap();
    let refused = |phases, bound, predicted| {
        verify::set_schedule(draft.schedule_of(phases, bound, predicted)).unwrap_err()
    };
    vec![
        (Rule::Claim, "a phase too many", refused(phases + 1, clocks, clocks)),
        (Rule::Claim, "a bound that is beaten", refused(phases, clocks + 1, clocks)),
        (Rule::Claim, "switches forgotten", refused(phases, 0, u64::from(phases) * 528)),
    ]
}

fn image_cases() -> Vec<(Rule, &'static str, Rejection)> {
    use Rule::*;
    let two = |settings: &[(&str, &str)]| pair(settings, &[(0, 1, 4), (0, 1, 4)]);
    let no_clock = |image: &mut DraftImage| image.operations().for_each(|op| op.start = 0);
    vec![
        (
            Table,
            "an entry twice",
            spoil_image(|i| {
                let again = i.cell(0).entries[0];
                i.cell(0).entries.push(again);
            }),
        ),
        (
            Chain,
            "an entry on the way is missing",
            spoil_image_of(&compile(&machine("mesh:3", &[]), set(&[(0, 2, 4)]), |_| 1), |i| {
                i.cell(1).entries.clear();
            }),
        ),
        (
            Chain,
            "an entry is left over",
            spoil_image(|i| {
                let link = i.machine.incoming(CellId(9))[0];
                let onward = i.machine.outgoing(CellId(9))[0];
                i.cell(9).entries.push(ChannelEntry {
                    channel: ChannelId(2),
                    feed: Feed::Link(link),
                    sink: Sink::Forward { link: onward, channel: ChannelId(2) },
                });
            }),
        ),
        (
            Chain,
            "two forwards into one entry",
            spoil_image_of(&two(&[]), |i| {
                let Sink::Forward { channel, .. } = i.cell(0).entries[0].sink else {
                    unreachable!()
                };
                if let Sink::Forward { channel: other, .. } = &mut i.cell(0).entries[1].sink {
                    *other = channel;
                }
            }),
        ),
        (
            Chain,
            "fed by another link",
            spoil_image(|i| {
                for entry in &mut i.phases[0][1].entries {
                    if let Feed::Link(link) = &mut entry.feed {
                        *link = LinkId(link.0 ^ 1);
                    }
                }
            }),
        ),
        (
            Cycle,
            "a ring of entries",
            spoil_image_of(&pair(&[], &[(0, 1, 4)]), |i| {
                let there = i.machine.outgoing(CellId(0))[0];
                let back = i.machine.outgoing(CellId(1))[0];
                let channel = ChannelId(7);
                let entry = |from, to| ChannelEntry {
                    channel,
                    feed: Feed::Link(from),
                    sink: Sink::Forward { link: to, channel },
                };
                i.cell(0).entries.push(entry(back, there));
                i.cell(1).entries.push(entry(there, back));
            }),
        ),
        (
            Gate,
            "delivered as another",
            spoil_image_of(&two(&[]), |i| {
                i.cell(1).entries.iter_mut().for_each(|entry| {
                    if let Sink::Gate(x) = &mut entry.sink {
                        x.0 ^= 1;
                    }
                });
                i.cell(1).operations.iter_mut().for_each(|op| op.connection.0 ^= 1);
            }),
        ),
        (
            Gate,
            "injected at another cell",
            spoil_image_of(&compile(&machine("mesh:3", &[]), set(&[(0, 2, 4)]), |_| 1), |i| {
                i.cell(0).entries.clear();
                let operation = i.cell(0).operations.pop().unwrap();
                i.cell(1).entries[0].feed = Feed::Gate(x(0));
                i.cell(1).operations.push(operation);
            }),
        ),
        (Operation, "one is missing", spoil_image(|i| i.cell(0).operations.truncate(1))),
        (
            Operation,
            "one is there twice",
            spoil_image(|i| {
                let again = *i.cell(0).operations.last().unwrap();
                i.cell(0).operations.push(again);
            }),
        ),
        (
            Operation,
            "through a channel without a gate",
            spoil_image(|i| {
                let more =
                    conset_ir::Operation { channel: ChannelId(2), ..i.cell(0).operations[0] };
                i.cell(9).operations.push(more);
            }),
        ),
        (
            Words,
            "sender and receiver disagree",
            spoil_image(|i| {
                let receive = i.operations().find(|op| op.direction == Direction::Receive);
                receive.unwrap().words -= 1;
            }),
        ),
        (
            Words,
            "parts overlap",
            spoil_image_of(&parts_over_phases(), |i| {
                i.operations().filter(|op| op.first_word > 0).for_each(|op| op.first_word -= 1);
            }),
        ),
        (
            Words,
            "later words in an earlier phase",
            spoil_image_of(&parts_over_phases(), |i| {
                i.operations().for_each(|op| op.first_word = 4 - op.first_word);
            }),
        ),
        (
            Coverage,
            "a part is missing",
            spoil_image_of(&parts_over_phases(), |i| drop(i.phases.pop())),
        ),
        (
            Start,
            "sender and receiver disagree",
            spoil_image(|i| i.cell(0).operations.last_mut().unwrap().start += 1),
        ),
        (
            ListOrder,
            "a later one first",
            spoil_image_of(&two(&[]), |i| {
                i.cell(0).operations.reverse();
                i.cell(1).operations.reverse();
            }),
        ),
        (
            Order,
            "planned the wrong way round",
            spoil_image_of(
                &compile(
                    &machine("mesh:4", &[]),
                    set(&[(0, 1, 4), (2, 3, 4)]).with_order(vec![(x(0), x(1))]).unwrap(),
                    |_| 1,
                ),
                no_clock,
            ),
        ),
        (
            Undecided,
            "received in another order than sent",
            spoil_image_of(&two(&[]), |i| {
                no_clock(i);
                i.cell(1).operations.reverse();
            }),
        ),
        (
            Deadlock,
            "both receive first",
            spoil_image_of(&pair(&[("duplex", "half")], &[(0, 1, 4), (1, 0, 4)]), |i| {
                no_clock(i);
                i.cell(0).operations.sort_by_key(|op| op.direction == Direction::Send);
                i.cell(1).operations.sort_by_key(|op| op.direction == Direction::Send);
            }),
        ),
        (
            SimpleRoute,
            "the tables go to and fro",
            spoil_image_of(&pair(&[], &[(0, 0, 4)]), |i| {
                let there = i.machine.outgoing(CellId(0))[0];
                let back = i.machine.outgoing(CellId(1))[0];
                let entry =
                    |channel, feed, sink| ChannelEntry { channel: ChannelId(channel), feed, sink };
                let forward = |link, channel| Sink::Forward { link, channel: ChannelId(channel) };
                i.cell(0).entries = vec![
                    entry(0, Feed::Gate(x(0)), forward(there, 0)),
                    entry(1, Feed::Link(back), Sink::Gate(x(0))),
                ];
                i.cell(1).entries = vec![entry(0, Feed::Link(there), forward(back, 1))];
                i.cell(0).operations[1].channel = ChannelId(1);
            }),
        ),
        (
            Dead,
            "a link on the way dies",
            spoil_image(|i| i.machine = with_dead(&i.machine, &[], &[(0, 1)])),
        ),
    ]
}

fn parts_over_phases() -> Draft {
    compile(&machine("mesh:2", &[("channels_per_cell", "1")]), set(&[(0, 1, 8)]), |_| 2)
}

fn lift_cases() -> Vec<(Rule, &'static str, Rejection)> {
    let against = |name, image: &Draft, timetable: &Draft| {
        let timetable = timetable.timetable();
        let image = image.image().build();
        (Rule::Lift, name, verify::image_of(image, &[&timetable]).expect_err(name))
    };
    let draft = base();
    let changed = |change: &dyn Fn(&mut Draft)| {
        let mut other = base();
        change(&mut other);
        verify::timetable(other.timetable()).expect("another, but right");
        other
    };
    let later = changed(&|d| d.phases.iter_mut().flatten().for_each(|r| r.start += 1));
    let channel = changed(&|d| {
        d.route(3).channels[0] = ChannelId(2);
    });
    let swapped = changed(&|d| {
        let four = d.route(4).clone();
        let five = d.route(5).clone();
        *d.route(4) = DraftRoute { connection: x(99), ..four };
        *d.route(5) = DraftRoute { connection: x(4), ..five };
        d.route(99).connection = x(5);
    });
    let rephased = changed(&|d| d.phases.push(Vec::new()));
    let moved = changed(&|d| moved_to_own_phase(d, 7, |_| {}));
    let mut machine = base();
    machine.machine = common::machine("torus:4x3", &[("channels_per_cell", "4")]);
    let mut words = base();
    words.set = Arc::new(set(&[(0, 1, 1)]));
    words.phases.truncate(1);
    words.phases[0].retain(|r| r.connection == x(0));
    words.phases[0][0].words = 1;
    words.schedule();
    vec![
        against("a clock later", &later, &draft),
        against("another channel", &channel, &draft),
        against("the channel of the timetable changed", &draft, &channel),
        against("two parallel connections swapped", &swapped, &draft),
        against("an empty phase more", &rephased, &draft),
        against("a connection in another phase", &moved, &draft),
        against("another machine", &machine, &draft),
        against("another set", &words, &draft),
        (
            Rule::Lift,
            "a timetable too many",
            verify::image_of(draft.image().build(), &[&draft.timetable(), &draft.timetable()])
                .unwrap_err(),
        ),
        against_parallel_links(),
    ]
}

/// On a ring of two there is a second link to the same neighbour: right, but not as verified.
fn against_parallel_links() -> (Rule, &'static str, Rejection) {
    let draft = compile(&machine("ring:2", &[]), set(&[(0, 1, 4)]), |_| 1);
    let mut other = draft.clone();
    let links: Vec<LinkId> = draft.machine.links_between(CellId(0), CellId(1)).collect();
    other.route(0).links[0] = *links.iter().find(|l| **l != draft.phases[0][0].links[0]).unwrap();
    let image = verify::image(other.image().build()).expect("another link, but right");
    let refused = verify::image_of(image.into_inner(), &[&draft.timetable()]);
    (Rule::Lift, "the parallel link", refused.unwrap_err())
}

#[test]
fn every_fault_is_refused_by_its_rule_alone() {
    let cases = [routing_cases(), times_cases(), claim_cases(), image_cases(), lift_cases()];
    let mut covered = vec![Rule::Shape, Rule::Barrier];
    for (rule, what, rejection) in cases.into_iter().flatten() {
        assert_eq!(rejection.rules(), [rule], "{what}: {rejection}");
        let line = rejection.violations[0].to_string();
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
fn violations_are_listed_up_to_a_cap_and_counted_beyond() {
    let connections: Vec<(u32, u32, u32)> = (0..300).map(|i| (i % 8, (i + 1) % 8, 3)).collect();
    let mut draft = compile(&machine("ring:8", &[]), set(&connections), |_| 1);
    draft.phases.iter_mut().flatten().for_each(|r| r.duration -= 1);
    draft.makespan_error = 1;
    let rejection = verify::timetable(draft.timetable()).unwrap_err();
    assert_eq!(rejection.violations.len(), Rejection::LISTED);
    assert_eq!(rejection.rules(), [Rule::Duration, Rule::Makespan]);
    assert_eq!(rejection.total(), 300 + draft.phases.len() as u64);
    assert!(rejection.to_string().contains("more; in all: duration 300, makespan"));
}
