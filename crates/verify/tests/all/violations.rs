//! What a rejection says: the place and the message of violations, and that later rules are checked only
//! for what earlier ones accepted.

use crate::common;
use std::sync::Arc;

use crate::common::{Draft, DraftImage, compile, machine, set};
use conset_ir::*;
use conset_verify::{self as verify, Rejection, Rule};

/// The only violation, as a line.
fn only(rejection: &Rejection) -> String {
    assert_eq!(rejection.total(), 1, "{rejection}");
    rejection.violations()[0].to_string()
}

fn draft(spec: &str, connections: &[(u32, u32, u32)]) -> Draft {
    compile(&machine(spec, &[]), set(connections), |_| 1)
}

fn refused(image: &DraftImage) -> Rejection {
    verify::image(image.build()).expect_err("wrong")
}

/// Two sets of the same connections, named `s0` and `s1`.
fn image_of_two(draft: &Draft) -> Image {
    let sets = ["s0", "s1"].map(|name| {
        let named = ConnectionSet::new(name, draft.set.connections().to_vec()).unwrap();
        let phases = draft.image().phases.iter().map(|cells| common::phase_image(cells)).collect();
        SetImage::of_phases(Arc::new(named), phases)
    });
    Image::new(draft.machine.clone(), sets.to_vec()).unwrap()
}

#[test]
fn channels_of_connections_are_named() {
    let mut draft = compile(
        &machine("mesh:2", &[("channels_per_cell", "3"), ("channels_reserved", "2")]),
        set(&[(0, 1, 4)]),
        |_| 1,
    );
    for (channel, what) in [(3, "reserved for the system"), (5, "not a channel of the cell")] {
        draft.route(0).channels[1] = ChannelId(channel);
        assert_eq!(
            only(&verify::routing(&draft.routing()).unwrap_err()),
            format!(
                "channel-range: s/p0: c1: x0: ch{channel} is {what}; connections have ch0 to ch2"
            )
        );
    }
}

#[test]
fn words_that_no_route_carries_are_told_from_words_that_are_missing() {
    let mut draft = draft("mesh:2", &[(0, 1, 4)]);
    draft.route(0).words = 3;
    let line = only(&verify::routing(&draft.routing()).unwrap_err());
    assert_eq!(line, "coverage: s: x0: its routes carry 3 words in all, it has 4");
    draft.phases.clear();
    let line = only(&verify::routing(&draft.routing()).unwrap_err());
    assert_eq!(line, "coverage: s: x0: no phase carries it");
}

#[test]
fn latency_counts_an_access_at_each_end() {
    let of = |latency| {
        let mut only = Connection::new(CellId(0), CellId(2), 8);
        only.max_latency = Some(latency);
        let set = ConnectionSet::new("s", vec![only]).unwrap();
        let machine = machine("mesh:3", &[("access_clocks_per_word", "3")]);
        verify::routing(&compile(&machine, set, |_| 1).routing()).map_err(|r| r.rules())
    };
    assert!(of(2 * 3 + 2 * 2).is_ok());
    assert_eq!(of(2 * 3 + 2 * 2 - 1), Err(vec![Rule::Latency]));
}

#[test]
fn times_are_checked_only_for_a_correct_routing() {
    let mut draft = draft("mesh:2", &[(0, 1, 4)]);
    draft.makespan_error = 1;
    assert_eq!(verify::check_timetable(&draft.timetable()).unwrap_err().rules(), [Rule::Makespan]);
    draft.route(0).words += 1;
    assert_eq!(verify::check_timetable(&draft.timetable()).unwrap_err().rules(), [Rule::Coverage]);
}

#[test]
fn figures_count_orders_and_both_ends_of_routes() {
    let order = vec![(ConnectionId(0), ConnectionId(1))];
    let set = set(&[(0, 1, 4), (1, 0, 4), (0, 0, 4)]).with_order(order).unwrap();
    let draft = compile(&machine("mesh:2", &[]), set, |_| 1);
    assert_eq!(verify::routing(&draft.routing()).unwrap().orders, 1);
    let report = verify::check_image(&draft.image().build()).unwrap();
    assert_eq!((report.routes, report.operations), (3, 6));
}

#[test]
fn cycles_of_entries_are_listed() {
    let mut image = draft("ring:3", &[(0, 1, 4)]).image();
    let cells = [0, 1, 2].map(CellId);
    let link = |from: usize| {
        let next = cells[(from + 1) % 3];
        image.machine.links_between(cells[from], next).next().unwrap()
    };
    let links = [link(0), link(1), link(2)];
    let channel = ChannelId(7);
    for cell in 0..3 {
        image.cell(cell as u32).entries.push(ChannelEntry {
            channel,
            feed: Feed::Link(links[(cell + 2) % 3]),
            sink: Sink::Forward { link: links[cell], channel },
        });
    }
    let line = only(&refused(&image));
    assert_eq!(line, "cycle: s/p0: c0: 3 entries forward in a cycle: c0, c1, c2");
}

#[test]
fn lists_are_followed_only_if_they_are_in_order() {
    let mut image = draft("mesh:2", &[(0, 1, 4), (0, 1, 4)]).image();
    image.cell(1).operations.reverse();
    assert!(only(&refused(&image)).starts_with("list-order: s/p0: c1: x0: operation 1 starts"));
}

#[test]
fn clocks_of_all_sets_of_an_image_are_limited() {
    let mut draft = draft("mesh:2", &[(0, 1, 4)]);
    draft.route(0).start = limits::TIME / 2 - 10_000;
    assert!(verify::check_image(&image_of_two(&draft)).is_ok());
    draft.route(0).start = limits::TIME / 2;
    let rejection = verify::check_image(&image_of_two(&draft)).unwrap_err();
    assert!(only(&rejection).starts_with("duration: s1: "), "{rejection}");
    // The words of one set, one connection after the other; nothing else is checked then.
    let slow = machine("mesh:2", &[("access_clocks_per_word", "1000000000")]);
    let draft = compile(&slow, set(&[(0, 1, 1 << 30); 5]), |_| 1);
    let rejection = verify::check_image(&draft.image().build()).unwrap_err();
    assert!(only(&rejection).starts_with("duration: program: "), "{rejection}");
}

#[test]
fn a_route_that_only_one_side_has_is_named_once() {
    // The routes of a phase are compared in the order of their first cells.
    let both = draft("mesh:4", &[(0, 1, 4), (2, 3, 4)]);
    let without = |connection: u32| {
        let mut draft = both.clone();
        let route = draft.route(connection).clone();
        draft.phases[0].retain(|r| r.connection != route.connection);
        draft.phases.push(vec![route]);
        draft.schedule();
        draft
    };
    let mut whole = both.clone();
    whole.phases.push(Vec::new());
    for connection in [0, 1] {
        let split = without(connection);
        for (image, timetable) in [(&whole, &split), (&split, &whole)] {
            let image = image.image().build();
            let rejection = verify::image_of(image, &[&timetable.timetable()]).unwrap_err();
            let named = rejection.violations().iter().map(|v| (v.rule, v.phase, v.connection));
            let expected =
                [0, 1].map(|p| (Rule::Lift, Some(PhaseId(p)), Some(ConnectionId(connection))));
            assert_eq!(named.collect::<Vec<_>>(), expected);
        }
    }
}
