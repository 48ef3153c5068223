//! Mutations of images: tables, operations, lists, and differences from the timetable.

use std::sync::Arc;

use conset_ir::*;
use conset_verify::{self as verify, Rejection, Rule};

use crate::common::{self, Draft, DraftImage, DraftRoute, compile, machine, set, with_dead};
use crate::{base, moved_to_own_phase, pair, x};

fn spoil_image(change: impl FnOnce(&mut DraftImage)) -> Rejection {
    spoil_image_of(&base(), change)
}

fn spoil_image_of(draft: &Draft, change: impl FnOnce(&mut DraftImage)) -> Rejection {
    let mut image = draft.image();
    verify::image_of(image.build(), &[&draft.timetable()]).expect("valid before it was spoilt");
    change(&mut image);
    let rejection = verify::image(image.build()).expect_err("spoilt");
    // Lifting finds no violation that the whole check does not find.
    if let Err(lift) = verify::lift(&image.build()) {
        assert_eq!(lift, rejection);
    }
    rejection
}

pub(crate) fn image_cases() -> Vec<(Rule, &'static str, Rejection)> {
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
            ListOrder,
            "a later send before an earlier receive, half duplex",
            spoil_image_of(&pair(&[("duplex", "half")], &[(0, 1, 4), (1, 0, 4)]), |i| {
                i.cell(0).operations.reverse();
                i.cell(1).operations.reverse();
            }),
        ),
        (
            Duration,
            "starts beyond the clock",
            spoil_image_of(&pair(&[], &[(0, 1, 4)]), |i| {
                i.operations().for_each(|op| op.start = u64::MAX);
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
        (AgentOverlap, "two connections sent at a time", spoil_image_of(&two(&[]), no_clock)),
        (
            AgentOverlap,
            "one sent and two received at a time, half duplex",
            spoil_image_of(
                &pair(&[("duplex", "half"), ("streams", "2")], &[(0, 1, 4), (1, 0, 4), (1, 0, 4)]),
                no_clock,
            ),
        ),
        (
            AgentOverlap,
            "a start a clock too early",
            spoil_image_of(&two(&[("link_clocks_per_word", "1")]), |i| {
                i.operations().for_each(|op| op.start = op.start.saturating_sub(1));
            }),
        ),
        (
            Undecided,
            "two to itself, both sent before one is received",
            spoil_image_of(
                &pair(&[("duplex", "half"), ("streams", "2")], &[(0, 0, 4), (0, 0, 4)]),
                |i| {
                    no_clock(i);
                    i.cell(0).operations.sort_by_key(|op| op.direction == Direction::Receive);
                },
            ),
        ),
        (
            Deadlock,
            "to itself, received before it is sent",
            spoil_image_of(&pair(&[("duplex", "half")], &[(0, 0, 4)]), |i| {
                i.cell(0).operations.reverse();
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

pub(crate) fn lift_cases() -> Vec<(Rule, &'static str, Rejection)> {
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

/// A ring of two cells has a second link to the same neighbour, which is valid but differs from the
/// timetable.
fn against_parallel_links() -> (Rule, &'static str, Rejection) {
    let draft = compile(&machine("ring:2", &[]), set(&[(0, 1, 4)]), |_| 1);
    let mut other = draft.clone();
    let links: Vec<LinkId> = draft.machine.links_between(CellId(0), CellId(1)).collect();
    other.route(0).links[0] = *links.iter().find(|l| **l != draft.phases[0][0].links[0]).unwrap();
    let image = verify::image(other.image().build()).expect("another link, but right");
    let refused = verify::image_of(image.into_inner(), &[&draft.timetable()]);
    (Rule::Lift, "the parallel link", refused.unwrap_err())
}
