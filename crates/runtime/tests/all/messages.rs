//! Programs that send messages, and the same programs by phases and by messages.

use std::sync::Arc;

use conset_fabric::messages::{MessageOptions, run_checked};
use conset_ir::{CellId, ConnectionId, Image};
use conset_runtime::{By, Cell, CellError, ThreadOptions, Transport, World};
use proptest::prelude::*;

use crate::common::{build, message, ring_image, unlike_image};

/// The image's world on each transport.
fn worlds(image: impl Into<Arc<Image>>) -> Vec<World> {
    let fabric = World::new(image);
    let on = |workers| fabric.clone().on(Transport::Threads(ThreadOptions::workers(workers)));
    vec![fabric.clone(), on(1), on(2), on(5)]
}

/// A few steps of a solver in which each is the neighbours' words of the one before.
fn solve(
    cell: &mut Cell<'_>,
    by_messages: bool,
    rounds: u32,
) -> Result<(Vec<f64>, u64), CellError> {
    let set = cell.image().sets()[0].set.clone();
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
    let words = |x: &ConnectionId| set.get(*x).words as usize;
    let mut state = f64::from(cell.id().0) + 0.25;
    let mut all = Vec::new();
    for round in 0..rounds {
        let value = |x: &ConnectionId, word: usize| state + (x.index() * 7 + word) as f64;
        let outgoing: Vec<Vec<f64>> =
            out.iter().map(|x| (0..words(x)).map(|word| value(x, word)).collect()).collect();
        let mut incoming: Vec<Vec<f64>> = inn.iter().map(|x| vec![0.0; words(x)]).collect();
        if by_messages {
            cell.exchange_by(By::Messages, 0, &outgoing, &mut incoming)?;
        } else {
            cell.exchange(0, &outgoing, &mut incoming)?;
        }
        state = incoming.iter().flatten().sum::<f64>().sqrt() + f64::from(round);
        all.push(state);
    }
    Ok((all, cell.clock()))
}

#[test]
fn a_solver_gives_the_same_both_ways_and_takes_the_clocks_of_either() {
    let specs = ["iwarp:4x4", "mesh:3x2", "ring:2", "cm5:6", "t3d:3x2x1"];
    for (spec, half) in specs.map(|spec| (spec, spec == "mesh:3x2")) {
        let image = Arc::new(unlike_image(spec, half, 29));
        let machine = image.machine().clone();
        let worlds = worlds(image.clone());
        let (expected, _) = worlds[0].try_run(|cell| solve(cell, false, 3)).unwrap();
        for world in &worlds {
            for by_messages in [false, true] {
                let (found, _) = world.try_run(|cell| solve(cell, by_messages, 3)).unwrap();
                for (one, other) in expected.iter().zip(&found) {
                    assert_eq!(one.0, other.0, "{spec} {by_messages} {world:?}");
                }
            }
        }
        let set = &image.sets()[0].set;
        let options = MessageOptions::default();
        let messages = run_checked(&machine, set, &options).unwrap();
        let (_, report) = worlds[0].try_run(|cell| solve(cell, true, 1)).unwrap();
        assert_eq!(report.clocks, messages.clocks, "{spec}");
        assert_eq!((report.words, report.word_hops), (messages.words, messages.word_hops));
        assert_eq!(report.switches, 0);
        // Both ways in one run: one clock.
        let phases = conset_fabric::run_checked(image, 0, 0, false).unwrap().report.clocks;
        let p = machine.parameters();
        let switch = u64::from(p.t_sync) + u64::from(p.t_phase);
        let (_, report) = worlds[0]
            .try_run(|cell| {
                solve(cell, true, 1)?;
                solve(cell, false, 2)?;
                solve(cell, true, 1)
            })
            .unwrap();
        assert_eq!(report.clocks, 2 * messages.clocks + 2 * phases + switch, "{spec}");
    }
}

#[test]
fn the_order_of_a_set_is_kept_by_messages() {
    let machine = build::machine("ring:6", |_| ());
    let x = ConnectionId;
    let pairs = [(0, 1, 30), (0, 3, 5), (3, 4, 20), (4, 0, 9), (2, 4, 40)];
    let order = vec![(x(2), x(0)), (x(4), x(3)), (x(3), x(1))];
    let set = build::set(&pairs).with_order(order).unwrap();
    let messages = run_checked(&machine, &set, &MessageOptions::default()).unwrap();
    let worlds = worlds(build::build(&machine, set));
    let (one, report) = worlds[0].try_run(|cell| solve(cell, true, 1)).unwrap();
    assert_eq!(report.clocks, messages.clocks);
    let (three, _) = worlds[0].try_run(|cell| solve(cell, true, 3)).unwrap();
    assert_eq!(three[4].0[0], one[4].0[0]);
    for world in &worlds {
        let (found, _) = world.try_run(|cell| solve(cell, true, 3)).unwrap();
        assert!(found.iter().zip(&three).all(|(one, other)| one.0 == other.0));
    }
}

#[test]
fn messages_are_received_by_source_in_the_order_of_sending() {
    for world in worlds(ring_image(4, 1)) {
        let (sums, report) = world
            .try_run(|cell| {
                let mut got = Vec::new();
                match cell.id().0 {
                    0 => {
                        cell.msg_send(CellId(2), &[1.5f64, 2.5])?;
                        cell.msg_send(CellId(2), &[3.5f64])?;
                        cell.msg_send::<f64>(CellId(2), &[])?;
                    }
                    1 => {
                        cell.compute(5000)?;
                        cell.msg_send(CellId(2), &[10u32; 3])?;
                    }
                    2 => {
                        let mut three = [0u32; 3];
                        cell.msg_receive(CellId(1), &mut three)?;
                        got.extend(three.map(f64::from));
                        let mut two = [0.0; 2];
                        cell.msg_receive(CellId(0), &mut two)?;
                        got.extend(two);
                        cell.msg_receive(CellId(0), &mut two[..1])?;
                        got.push(two[0]);
                        cell.msg_receive(CellId(0), &mut two[..0])?;
                    }
                    _ => {}
                }
                Ok(got)
            })
            .unwrap();
        assert_eq!(sums[2], [10.0, 10.0, 10.0, 1.5, 2.5, 3.5]);
        assert_eq!(report.words, 6);
    }
}

#[test]
fn cells_that_all_receive_first_are_told_so() {
    for world in worlds(ring_image(3, 1)) {
        let text = message(world.try_run(|cell| {
            let left = CellId((cell.id().0 + 2) % 3);
            cell.msg_receive(left, &mut [0.0; 2])?;
            cell.msg_send(CellId((cell.id().0 + 1) % 3), &[0.0; 2])
        }));
        let expected = "deadlock: c0 waits for a message from c2 <- c2 waits for a message from \
                        c1 <- c1 waits for a message from c0 <- which is where this began";
        assert_eq!(text, expected);
        let text = message(world.try_run(|cell| match cell.id().0 {
            0 => cell.msg_receive(CellId(1), &mut [0.0; 2]),
            1 => cell.instantiate_phase("s/p0"),
            _ => Ok(()),
        }));
        assert!(text.contains("c0 waits for a message from c1 <- c1 waits for all"), "{text}");
    }
}

#[test]
fn a_long_message_leaves_only_as_it_is_received() {
    let world = World::new(ring_image(3, 1));
    let text = message(world.try_run(|cell| {
        cell.msg_send(CellId((cell.id().0 + 1) % 3), &[0.0; 1000])?;
        cell.msg_receive(CellId((cell.id().0 + 2) % 3), &mut [0.0; 1000])
    }));
    assert!(text.starts_with("deadlock: c0 waits for c1 to receive its message <- c1"), "{text}");
}

#[test]
fn wrong_messages_end_the_run() {
    for world in worlds(ring_image(3, 1)) {
        let text = message(world.try_run(|cell| {
            cell.instantiate_phase("s/p0")?;
            if cell.id().0 == 1 { cell.msg_send(CellId(0), &[1u32]) } else { Ok(()) }
        }));
        assert!(text.starts_with("c1: messages are not sent or received in phase s/p0"), "{text}");
        let text = message(world.try_run(|cell| match cell.id().0 {
            1 => cell.msg_send(CellId(9), &[1u32]),
            _ => Ok(()),
        }));
        assert_eq!(text, "c1: there is no live cell c9");
        let text = message(world.try_run(|cell| match cell.id().0 {
            1 => cell.msg_send(CellId(0), &[1u32; 3]),
            0 => cell.msg_receive(CellId(1), &mut [0u32; 2]),
            _ => Ok(()),
        }));
        assert_eq!(text, "c0: message from c1: expected 2 words, found 3");
        for switch in [true, false] {
            let text = message(world.try_run(|cell| {
                if cell.id().0 == 1 {
                    cell.msg_send(CellId(0), &[1u32; 2])?;
                }
                if switch { cell.instantiate_phase("s/p0") } else { Ok(()) }
            }));
            // A message that stands in the network keeps its sender from going on.
            assert_eq!(text, "c0 has not received a message of 2 words from c1");
        }
        // All take part in an exchange, also who has no part in it.
        let machine = build::machine("ring:4", |_| ());
        let part = build::build(&machine, build::set(&[(0, 1, 2), (1, 0, 2)]));
        let world_of_two = World::new(part).on(world.transport().clone());
        let text = message(world_of_two.try_run(|cell| match cell.id().0 {
            3 => Ok(()),
            _ => solve(cell, true, 1).map(drop),
        }));
        let expected =
            "c3 has ended while c0 waits for all cells to switch to the exchange of s by messages";
        assert_eq!(text, expected);
        let text = message(world.try_run(|cell| match cell.id().0 {
            1 => cell.instantiate_messages(),
            _ => cell.instantiate_phase("s/p0"),
        }));
        assert!(text.contains("c1 switches to messages"), "{text}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u32, u32),
    Receive(u32, u32),
    Exchange,
    Phases,
    Back,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn any_program_ends_and_what_runs_on_the_fabric_runs_on_threads(
        pairs in prop::collection::vec((0u32..4, 0u32..4, 1u32..20), 1..6),
        steps in prop::collection::vec(prop::collection::vec(prop_oneof![
            4 => (0u32..4, 0u32..14).prop_map(|(to, words)| Step::Send(to, words)),
            4 => (0u32..4, 0u32..14).prop_map(|(from, words)| Step::Receive(from, words)),
            1 => Just(Step::Exchange),
            1 => Just(Step::Phases),
            1 => Just(Step::Back),
        ], 0..6), 4),
        alike in any::<bool>(),
    ) {
        let machine = build::machine("ring:4", |p| p.channels_per_cell = 6);
        let image = Arc::new(build::build(&machine, build::set(&pairs)));
        let program = |cell: &mut Cell<'_>| {
            let mut got = Vec::new();
            let steps = &steps[if alike { 0 } else { cell.id().index() }];
            for step in steps {
                match *step {
                    // Alike, all send to the right and then receive from the left.
                    Step::Send(_, words) if alike => {
                        let words = vec![cell.id().0; words as usize];
                        cell.msg_send(CellId((cell.id().0 + 1) % 4), &words)?;
                        let mut from_left = vec![0; words.len()];
                        cell.msg_receive(CellId((cell.id().0 + 3) % 4), &mut from_left)?;
                        got.extend(from_left.into_iter().map(f64::from));
                    }
                    Step::Receive(..) if alike => {}
                    Step::Send(to, words) => {
                        cell.msg_send(CellId(to), &vec![f64::from(cell.id().0); words as usize])?;
                    }
                    Step::Receive(from, words) => {
                        let mut into = vec![0.0; words as usize];
                        cell.msg_receive(CellId(from), &mut into)?;
                        got.extend(into);
                    }
                    Step::Exchange => got.extend(solve(cell, true, 2)?.0),
                    Step::Phases => got.extend(solve(cell, false, 1)?.0),
                    Step::Back => cell.instantiate_messages()?,
                }
            }
            Ok(got)
        };
        let worlds = worlds(image);
        let first = worlds[0].try_run(program);
        prop_assert_eq!(&first, &worlds[0].try_run(program));
        for world in &worlds[1..] {
            let other = world.try_run(program);
            if let Ok((results, _)) = &first {
                prop_assert_eq!(results, &other.expect("it runs on the fabric").0);
            }
        }
    }
}
