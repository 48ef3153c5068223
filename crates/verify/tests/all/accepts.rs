//! Correct values are accepted on every machine, and randomly corrupted values only if a slow
//! reference checker of the tests accepts them, too.

use crate::common;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::{Draft, DraftImage, compile, is_connected, machine, set, with_dead};
use conset_ir::*;
use conset_verify as verify;
use proptest::prelude::*;

fn accept(draft: &Draft) -> verify::Report {
    let timetable = verify::timetable(draft.timetable()).unwrap_or_else(|r| panic!("{r}"));
    let image = verify::image_of(draft.image().build(), &[&timetable]);
    let image = image.unwrap_or_else(|r| panic!("{r}"));
    let lifted = verify::lift(&image).unwrap().remove(0);
    let (lifted, given) = (verify::routing(&lifted.routing), timetable.report());
    assert_eq!(lifted.unwrap().routes, given.routes);
    *given
}

#[test]
fn rings_of_two_have_parallel_links() {
    for spec in ["torus:2x3", "torus:2x2", "ring:2", "torus:2x1x2"] {
        let machine = machine(spec, &[]);
        let cells = machine.cell_count() as u32;
        let all: Vec<(u32, u32, u32)> =
            (0..cells).flat_map(|a| (0..cells).map(move |b| (a, b, 1 + a + b))).collect();
        let mut draft = compile(&machine, set(&all), |_| 1);
        accept(&draft);
        // Any of the parallel links is permitted.
        for route in draft.phases.iter_mut().flatten() {
            for (at, link) in route.links.iter_mut().enumerate() {
                let pair = (route.cells[at], route.cells[at + 1]);
                *link = machine.links_between(pair.0, pair.1).last().unwrap();
            }
        }
        accept(&draft);
    }
}

#[test]
fn small_things_are_right_too() {
    for duplex in ["full", "half"] {
        let one = machine("ring:1", &[("duplex", duplex)]);
        let report = accept(&compile(&one, set(&[(0, 0, 5), (0, 0, 6)]), |_| 1));
        assert_eq!((report.routes, report.hops, report.max_occupancy), (2, 0, 2));
        // Many more connections than channels, split and not.
        let report = accept(&compile(&one, set(&[(0, 0, 5); 30]), |x| 1 + x.0 % 3));
        assert_eq!((report.routes, report.cells_at_limit), (60, 5));
        // No phases, or phases without routes.
        let mut nothing = compile(&one, set(&[]), |_| 1);
        assert_eq!(accept(&nothing).phases, 0);
        nothing.phases = vec![Vec::new(), Vec::new()];
        assert_eq!(accept(&nothing).phases, 2);
    }
}

#[test]
fn whole_programs_are_checked_set_by_set() {
    let machine = machine("iwarp:4x4", &[]);
    let mut rename = 0;
    let mut compiled = |connections: &[(u32, u32, u32)]| {
        rename += 1;
        let connections = set(connections).connections().to_vec();
        let set = ConnectionSet::new(format!("set{rename}"), connections).unwrap();
        compile(&machine, set, |_| 1)
    };
    let drafts = [compiled(&[(0, 5, 8), (3, 9, 8)]), compiled(&[]), compiled(&[(7, 7, 1)])];
    // The first two share a link.
    let clocks = [528 + 32, 0, 528 + 2];
    let sets = drafts.iter().zip(clocks).map(|(d, clocks)| d.schedule_of(0, 0, clocks)).collect();
    let schedule = Schedule::new(machine.clone(), sets, None).unwrap();
    let verified = verify::schedule(schedule.clone()).unwrap();
    assert_eq!(verified.report().sets, 3);
    assert_eq!(verified.timetables().len(), 3);
    let second: verify::Verified<Timetable> = verified.timetables().nth(2).unwrap().cloned();
    assert_eq!(second.routing().set().name(), "set3");
    assert_eq!(verified.into_inner(), schedule);

    let sets = drafts.iter().zip([560, 0, 1]).map(|(d, clocks)| d.schedule_of(0, 0, clocks));
    let wrong = Schedule::new(machine.clone(), sets.collect(), None).unwrap();
    let rejection = verify::check_schedule(&wrong).unwrap_err();
    assert_eq!(rejection.violations()[0].set, "set3");

    // The same as one image of three sets.
    let images = drafts.iter().map(|d| d.image().build().sets()[0].clone()).collect();
    let image = Image::new(machine, images).unwrap();
    let timetables: Vec<Timetable> = drafts.iter().map(Draft::timetable).collect();
    let timetables: Vec<&Timetable> = timetables.iter().collect();
    assert_eq!(verify::check_image_of(&image, &timetables).unwrap().sets, 3);
    assert_eq!(verify::lift(&image).unwrap().len(), 3);
}

#[test]
fn dead_parts_may_be_there_as_long_as_routes_avoid_them() {
    let holed = with_dead(&machine("torus:4x4", &[]), &[5, 6], &[(0, 1), (2, 3)]);
    let live: Vec<u32> = holed.endpoints().map(|c| c.0).collect();
    let all: Vec<(u32, u32, u32)> =
        live.iter().flat_map(|&a| live.iter().map(move |&b| (a, b, 4))).collect();
    accept(&compile(&holed, set(&all), |_| 1));
}

#[test]
fn link_sharing_is_recounted() {
    let draft = compile(&machine("mesh:3", &[]), set(&[(0, 2, 4), (1, 2, 4), (0, 1, 4)]), |_| 1);
    let sharing = verify::link_sharing(&draft.routing(), PhaseId(0));
    let on = |from, to| {
        let link = draft.machine.links_between(CellId(from), CellId(to)).next().unwrap();
        sharing[link.index()]
    };
    assert_eq!((on(0, 1), on(1, 2), on(2, 1)), (2, 2, 0));
    let report = accept(&draft);
    assert_eq!((report.max_sharing, report.max_occupancy, report.cells_at_limit), (2, 3, 0));
    assert_eq!((report.words, report.hops, report.channels_checked, report.slots), (12, 4, 7, 3));
    assert!(report.to_string().starts_with("verified: 3 connections of 12 words on 3 routes"));
    let uneven = compile(&machine("mesh:3", &[]), set(&[(0, 2, 4), (1, 2, 4)]), |_| 1);
    assert_eq!(accept(&uneven).max_sharing, 2);
    assert!(verify::link_sharing(&draft.routing(), PhaseId(7)).iter().all(|&n| n == 0));
}

/// A machine, a set on it and how many parts each connection gets.
fn drafts() -> impl Strategy<Value = Draft> {
    let specs = [
        "ring:1",
        "ring:2",
        "ring:5",
        "torus:2x3",
        "torus:3x3",
        "mesh:3x2",
        "torus:2x2x3",
        "hypercube:3",
        "fat-tree:5",
        "mesh:1x4",
    ];
    let settings = (1u32..5, 1u32..4, any::<bool>(), 0u32..4, 1u32..5, 1u32..5);
    let connections = prop::collection::vec((any::<u32>(), any::<u32>(), 1u32..40), 0..24);
    let order = prop::collection::vec((any::<u32>(), any::<u32>()), 0..6);
    let dead = prop::option::of((any::<u32>(), any::<u32>()));
    (prop::sample::select(specs.to_vec()), settings, connections, order, dead, 1u32..4)
        .prop_filter_map(
            "a connection has no way",
            |(spec, settings, connections, order, dead, parts)| {
                let (channels, streams, half, setup, access, link) = settings;
                let mut machine = machine(
                    spec,
                    &[
                        ("channels_per_cell", &channels.to_string()),
                        ("streams", &streams.to_string()),
                        ("duplex", if half { "half" } else { "full" }),
                        ("stream_setup", &setup.to_string()),
                        ("access_clocks_per_word", &access.to_string()),
                        ("link_clocks_per_word", &link.to_string()),
                    ],
                );
                if let Some((cell, link)) = dead
                    && machine.link_count() > 0
                {
                    let link = machine.link(LinkId(link % machine.link_count() as u32));
                    let pair = (link.source.0, link.target.0);
                    machine = with_dead(&machine, &[cell % machine.cell_count() as u32], &[pair]);
                }
                let live: Vec<u32> = machine.endpoints().map(|c| c.0).collect();
                if live.is_empty() {
                    return None;
                }
                let cell = |n: u32| live[n as usize % live.len()];
                let connections: Vec<(u32, u32, u32)> =
                    connections.into_iter().map(|(s, t, w)| (cell(s), cell(t), w)).collect();
                let set = set(&connections);
                let count = set.len() as u32;
                let pairs = order.into_iter().filter(|_| count > 1).map(|(a, b)| {
                    let (a, b) = (a % count, b % count);
                    (ConnectionId(a.min(b)), ConnectionId(a.max(b)))
                });
                let set = set.with_order(pairs.filter(|(a, b)| a != b).collect()).unwrap();
                is_connected(&machine, &set).then(|| compile(&machine, set, |x| 1 + x.0 % parts))
            },
        )
}

/// Makes one change to a draft, selected by `dice`.
fn spoil(draft: &mut Draft, dice: [u32; 4]) {
    let routes: usize = draft.phases.iter().map(Vec::len).sum();
    if routes == 0 {
        draft.makespan_error = u64::from(dice[0] % 2);
        return;
    }
    let pick = |n: usize, die: u32| die as usize % n;
    let cells = draft.machine.cell_count();
    let links = draft.machine.link_count();
    let channels = draft.machine.parameters().channels_per_cell;
    let connections = draft.set.len();
    let route = draft.phases.iter_mut().flatten().nth(pick(routes, dice[0])).unwrap();
    let at = pick(route.cells.len(), dice[2]);
    match dice[1] % 11 {
        0 => route.connection = ConnectionId(pick(connections, dice[3]) as u32),
        1 => route.words = dice[3] % 40,
        2 => route.cells[at] = CellId(pick(cells, dice[3]) as u32),
        3 if links > 0 && !route.links.is_empty() => {
            let at = pick(route.links.len(), dice[2]);
            route.links[at] = LinkId(pick(links, dice[3]) as u32);
        }
        4 => route.channels[at] = ChannelId(dice[3] % (channels + 1)),
        5 => route.start = u64::from(dice[3] % 64),
        6 => route.duration = (route.duration + u64::from(dice[3] % 5)).saturating_sub(2),
        7 => {
            let route = route.clone();
            let phase = pick(draft.phases.len(), dice[3]);
            draft.phases[phase].push(route);
        }
        8 => {
            let route = route.clone();
            draft.phases.iter_mut().for_each(|phase| phase.retain(|r| *r != route));
            if dice[3].is_multiple_of(2) {
                draft.phases.insert(pick(draft.phases.len() + 1, dice[2]), vec![route]);
            }
        }
        9 => draft.phases.reverse(),
        _ => draft.makespan_error = u64::from(dice[3] % 2),
    }
}

/// A second implementation of the rules, straight from their statements and without regard to speed.
fn is_right(draft: &Draft) -> bool {
    let p = draft.machine.parameters();
    let mut carried: BTreeMap<ConnectionId, u64> = BTreeMap::new();
    for phase in &draft.phases {
        let mut held = BTreeSet::new();
        for route in phase {
            *carried.entry(route.connection).or_default() += u64::from(route.words);
            let connection = draft.set.get(route.connection);
            let distinct: BTreeSet<_> = route.cells.iter().collect();
            let joined = (0..route.links.len()).all(|i| {
                let mut joins = draft.machine.links_between(route.cells[i], route.cells[i + 1]);
                joins.any(|l| l == route.links[i])
            });
            let booked = route.cells.iter().zip(&route.channels).all(|(cell, channel)| {
                channel.0 < p.channels_per_cell && held.insert((*cell, *channel))
            });
            let least = u64::from(route.words) * u64::from(p.access_clocks_per_word)
                + u64::from(p.stream_setup);
            if route.words == 0
                || (route.source(), route.target()) != (connection.source, connection.target)
                || distinct.len() != route.cells.len()
                || !joined
                || !booked
                || route.duration < least
            {
                return false;
            }
        }
        if !phase.iter().all(|route| has_streams(draft, phase, route.start)) {
            return false;
        }
    }
    let whole = draft.set.iter().all(|(id, c)| carried.get(&id) == Some(&u64::from(c.words)));
    let makespans = draft.makespan_error == 0 || draft.phases.is_empty();
    whole && makespans && keeps_order(draft)
}

/// The number of open slots increases only where a slot starts, so only these clocks are checked.
fn has_streams(draft: &Draft, phase: &[common::DraftRoute], clock: u64) -> bool {
    let p = draft.machine.parameters();
    draft.machine.cells().all(|cell| {
        let (mut sends, mut receives, mut own) = (0, 0, 0);
        for r in phase.iter().filter(|r| r.start <= clock && clock < r.start + r.duration) {
            sends += u32::from(r.source() == cell);
            receives += u32::from(r.target() == cell);
            own += u32::from(r.source() == cell && r.target() == cell);
        }
        match p.duplex {
            Duplex::Full => sends <= p.streams && receives <= p.streams,
            Duplex::Half => sends + receives - own <= p.streams,
        }
    })
}

fn keeps_order(draft: &Draft) -> bool {
    let parts = |id: ConnectionId| {
        draft.phases.iter().enumerate().flat_map(move |(p, phase)| {
            phase.iter().filter(move |r| r.connection == id).map(move |r| (p, r))
        })
    };
    draft.set.order().iter().all(|&(before, after)| {
        parts(before).all(|(p, first)| {
            parts(after)
                .all(|(q, second)| p < q || p == q && first.start + first.duration <= second.start)
        })
    })
}

/// Changes one field of an entry or operation, or adds or removes one.
fn spoil_image(image: &mut DraftImage, dice: [u32; 4]) {
    let connections = image.set.len().max(1) as u32;
    let links = image.machine.link_count().max(1) as u32;
    let channels = image.machine.parameters().channels_per_cell;
    let used = |c: &&mut common::DraftCell| !c.entries.is_empty() && !c.operations.is_empty();
    let mut cells: Vec<_> = image.phases.iter_mut().flatten().filter(used).collect();
    if cells.is_empty() {
        return;
    }
    let count = cells.len();
    let cell = &mut cells[dice[0] as usize % count];
    let entry = dice[2] as usize % cell.entries.len();
    let operation = dice[2] as usize % cell.operations.len();
    match dice[1] % 11 {
        0 => cell.entries[entry].channel = ChannelId(dice[3] % channels),
        1 => cell.entries[entry].feed = Feed::Gate(ConnectionId(dice[3] % connections)),
        2 => cell.entries[entry].feed = Feed::Link(LinkId(dice[3] % links)),
        3 => cell.entries[entry].sink = Sink::Gate(ConnectionId(dice[3] % connections)),
        4 => {
            let channel = ChannelId(dice[3] / 64 % channels);
            cell.entries[entry].sink = Sink::Forward { link: LinkId(dice[3] % links), channel };
        }
        5 => drop(cell.entries.remove(entry)),
        6 => cell.operations[operation].words = 1 + dice[3] % 40,
        7 => cell.operations[operation].first_word = dice[3] % 40,
        8 => cell.operations[operation].start = u64::from(dice[3] % 64),
        9 => cell.operations[operation].connection = ConnectionId(dice[3] % connections),
        _ => {
            cell.operations.remove(operation);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_right_is_accepted(draft in drafts()) {
        prop_assert!(is_right(&draft));
        accept(&draft);
    }

    #[test]
    fn what_is_spoilt_is_judged_as_by_the_slow_checker(
        draft in drafts(),
        dice in prop::collection::vec(any::<[u32; 4]>(), 1..3),
    ) {
        let mut draft = draft;
        dice.into_iter().for_each(|dice| spoil(&mut draft, dice));
        let Ok(timetable) = draft.try_timetable() else { return Ok(()) };
        let verdict = verify::timetable(timetable);
        prop_assert_eq!(verdict.is_ok(), is_right(&draft), "{:?}", verdict.err());
    }

    #[test]
    fn an_image_that_was_changed_is_refused(draft in drafts(), dice in any::<[u32; 4]>()) {
        let right = draft.image();
        let mut image = right.clone();
        spoil_image(&mut image, dice);
        let Ok(built) = image.try_build() else { return Ok(()) };
        let verdict = verify::image_of(built, &[&draft.timetable()]);
        prop_assert_eq!(verdict.is_ok(), image == right, "{:?}", verdict.err());
    }
}

#[test]
fn machines_too_large_for_a_table_of_channels_are_no_trouble() {
    // 2^20 cells of 4096 channels: one bit each would be half a gigabyte.
    let machine = machine("mesh:1024x1024", &[("channels_per_cell", "4096")]);
    let draft = compile(&machine, set(&[(0, 1, 4), (5, 5, 1)]), |_| 1);
    let timetable = verify::timetable(draft.timetable()).unwrap();
    assert_eq!(timetable.report().channels_checked, 3);
    assert_eq!(Arc::strong_count(&machine), 3);
}
