//! Epochs on the emulated machine and on threads. Over MPI: `mpi_cases/epochs.rs`.

use std::sync::Arc;

use conset_runtime::ir::{CellId, ConnectionId, Image, Parameters};
use conset_runtime::{Cell, CellError, RunError, ThreadOptions, Transport, World, recorded_set};

use crate::common::{build, message, ring_image};
use crate::epoch_cases;

/// The world of a machine on each transport, and of the same machine with active messages on the
/// emulated machine.
fn worlds(spec: &str) -> Vec<World> {
    let mut worlds = all(Image::new(build::machine(spec, |_| ()), Vec::new()).unwrap());
    worlds.push(active(spec, |_| ()));
    worlds
}

/// The emulated machine with active messages.
fn active(spec: &str, change: impl FnOnce(&mut Parameters)) -> World {
    let machine = build::machine(spec, |p| {
        (p.active_words, p.c_active_send, p.c_active_receive, p.c_poll) = (4, 20, 10, 3);
        change(p);
    });
    World::new(Arc::new(Image::new(machine, Vec::new()).unwrap()))
}

fn all(image: Image) -> Vec<World> {
    let fabric = World::new(Arc::new(image));
    let on = |workers| fabric.clone().on(Transport::Threads(ThreadOptions::workers(workers)));
    vec![fabric.clone(), on(1), on(2), on(3)]
}

#[test]
fn random_programs_handle_every_item_once_and_in_the_same_order_everywhere() {
    let mut handled = 0;
    for spec in [
        "ring:1",
        "ring:2",
        "ring:3",
        "mesh:5x1",
        "iwarp:4x4",
        "cm5:6",
        "cm5-active:6",
        "t3d:3x2x1",
    ] {
        for world in worlds(spec) {
            for seed in 0..12 {
                let (cells, _) = world.try_run(|cell| Ok(cell.cell_count() as u32)).unwrap();
                let (logs, rounds) = epoch_cases::expected(seed, cells[0]);
                let (found, _) = world.try_run(|cell| epoch_cases::settle(cell, seed)).unwrap();
                for (cell, (log, found)) in logs.iter().zip(&found).enumerate() {
                    assert_eq!((log, rounds), (&found.0, found.1), "{spec} {seed} c{cell}");
                }
                handled += logs.iter().map(Vec::len).sum::<usize>();
            }
        }
    }
    assert!(handled > 20_000, "only {handled}");
}

#[test]
fn exchanges_with_unknown_partners_deliver_what_was_sent() {
    let mut lists = 0;
    for spec in ["ring:1", "ring:2", "mesh:5x1", "iwarp:4x4", "cm5:6"] {
        for world in worlds(spec) {
            for seed in 0..6 {
                let (found, _) = world.try_run(|cell| epoch_cases::exchange(cell, seed)).unwrap();
                lists += found.iter().sum::<usize>();
            }
            // Nothing at all.
            let (found, _) = world.try_run(|cell| cell.exchange_any::<f32>(&[])).unwrap();
            assert!(found.iter().all(Vec::is_empty), "{spec}");
        }
    }
    assert!(lists > 500, "only {lists}");
}

#[test]
fn sized_exchanges_deliver_what_their_sources_give() {
    let mut words = 0;
    for spec in ["ring:1", "ring:2", "mesh:5x1", "iwarp:4x4", "cm5:6", "t3d:3x2x1"] {
        let machine = build::machine(spec, |_| ());
        for seed in 0..4 {
            let cells = machine.endpoints().count() as u32;
            let set = epoch_cases::sized_set(seed, cells);
            for world in all(build::build(&machine, set)) {
                let (found, _) = world
                    .try_run(|cell| {
                        let sized = epoch_cases::exchange_sized(cell, seed)?;
                        // Between exchanges of the whole set and of epochs.
                        let rows = |ids: &[ConnectionId], cell: &Cell<'_>| -> Vec<Vec<u8>> {
                            let set = &cell.image().sets()[0].set;
                            ids.iter().map(|&x| vec![7; set.get(x).words as usize]).collect()
                        };
                        let out = rows(cell.connections_out("s")?, cell);
                        let mut incoming = rows(cell.connections_in("s")?, cell);
                        cell.exchange("s", &out, &mut incoming)?;
                        epoch_cases::exchange(cell, seed)?;
                        Ok(sized + epoch_cases::exchange_sized(cell, seed + 1)?)
                    })
                    .unwrap();
                words += found.iter().sum::<usize>();
            }
        }
    }
    assert!(words > 20_000, "only {words}");
}

#[test]
fn wrong_sized_exchanges_are_named() {
    let failed = |program: fn(&mut Cell<'_>) -> Result<(), CellError>| {
        all(ring_image(4, 3)).into_iter().map(move |world| message(world.try_run(program)))
    };
    for found in failed(|cell| cell.exchange_sized("s", &[[0u8; 4]]).map(|_| ())) {
        assert!(found.contains(" carries at most 3 words, and is to carry 4"), "{found}");
    }
    for found in failed(|cell| cell.exchange_sized("s", &[[0u8; 1]; 2]).map(|_| ())) {
        assert!(found.contains("expected 1, found 2"), "{found}");
    }
    // Another call, and words of another size.
    for found in failed(|cell| match cell.id() {
        CellId(2) => cell.exchange_any::<u8>(&[]).map(|_| ()),
        _ => cell.exchange_sized("s", &[[0u8; 1]]).map(|_| ()),
    }) {
        assert!(found.contains("sized exchange of s") && found.contains("epoch"), "{found}");
    }
    for found in failed(|cell| {
        let one = cell.id() == CellId(2);
        let mut exchange = |words: usize| match words {
            1 => cell.exchange_sized("s", &[[0u8; 1]]).map(|_| ()),
            _ => cell.exchange_sized("s", &[[0u16; 1]]).map(|_| ()),
        };
        exchange(if one { 2 } else { 1 })
    }) {
        assert!(found.contains("the sized exchange of s"), "{found}");
    }
}

#[test]
fn a_recorded_exchange_is_compiled_and_carries_the_same_words() {
    for (spec, seed) in [("ring:1", 3), ("mesh:5x1", 1), ("iwarp:4x4", 2), ("iwarp:4x4", 5)] {
        let machine = build::machine(spec, |_| ());
        for world in all(Image::new(machine.clone(), Vec::new()).unwrap()) {
            let (unknown, _) = world
                .try_run(|cell| {
                    // Not recorded.
                    epoch_cases::exchange(cell, seed + 1)?;
                    cell.start_record();
                    let lists = epoch_cases::merged_lists(cell, seed);
                    let lists: Vec<_> = lists.iter().map(|(t, words)| (*t, &words[..])).collect();
                    let found = cell.exchange_any(&lists)?;
                    let record = cell.take_record();
                    assert_eq!(cell.take_record(), []);
                    Ok((record, found))
                })
                .unwrap();
            let (records, found): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
            let set = recorded_set("recorded", &records).unwrap();
            assert_eq!(set.words(), records.iter().flatten().map(|&(_, words)| words).sum::<u64>());
            let compiled = World::new(build::build(&machine, set)).on(world.transport().clone());
            compiled
                .try_run(|cell| {
                    let lists = epoch_cases::merged_lists(cell, seed);
                    let outgoing: Vec<_> = lists.into_iter().map(|(_, words)| words).collect();
                    let expected = &found[cell.id().index()];
                    let mut incoming: Vec<_> =
                        expected.iter().map(|(_, words)| vec![0u64; words.len()]).collect();
                    cell.exchange("recorded", &outgoing, &mut incoming)?;
                    assert!(incoming.iter().eq(expected.iter().map(|(_, words)| words)));
                    Ok(())
                })
                .unwrap();
        }
    }
    // Words of all rounds of an epoch are added up; more than a connection can have are refused.
    let sum = vec![vec![(CellId(1), 5)], vec![]];
    assert_eq!(recorded_set("s", &sum).unwrap().words(), 5);
    assert!(recorded_set("s", &[vec![(CellId(0), 1 << 40)]]).is_err());
}

#[test]
fn long_packets_of_all_cells_at_once_leave() {
    for spec in ["ring:7", "mesh:3x3", "iwarp:4x4", "cm5:8"] {
        for world in worlds(spec) {
            let (sums, _) = world
                .try_run(|cell| {
                    let cells = cell.cell_count() as u32;
                    let (own, mut sum) = (cell.id().0, 0);
                    let mut epoch = cell.open::<[u32; 1]>();
                    for item in 0..400 * cells {
                        epoch.send(CellId(item % cells), [own])?;
                    }
                    let settled = epoch.settle(|_, [from], _| sum += from)?;
                    assert_eq!((settled.rounds, settled.handled), (1, u64::from(400 * cells)));
                    Ok(sum)
                })
                .unwrap();
            let cells = sums.len() as u32;
            assert!(sums.iter().all(|&sum| sum == 200 * cells * (cells - 1)), "{spec} {sums:?}");
        }
    }
}

#[test]
fn epochs_between_phases_and_one_after_the_other() {
    for world in all(ring_image(4, 3)) {
        let (found, _) = world
            .try_run(|cell| {
                let mut incoming = [[0u64; 3]];
                let own = u64::from(cell.id().0);
                cell.exchange("s", &[[own; 3]], &mut incoming)?;
                let mut kept = Vec::new();
                let mut epoch = cell.open::<[u64; 3]>();
                // Nothing sent at all, then something, then nothing again.
                assert_eq!(epoch.settle(|_, _, _| ())?.rounds, 0);
                epoch.send(CellId(2), incoming[0])?;
                assert_eq!(epoch.settle(|from, item, _| kept.push((from.0, item)))?.rounds, 1);
                assert_eq!(epoch.settle(|_, _, _| ())?.rounds, 0);
                drop(epoch);
                // Items without words are counted.
                let mut empty = cell.open::<[f64; 0]>();
                empty.send(CellId(1), [])?;
                empty.send(CellId(1), [])?;
                let handled = empty.settle(|_, [], _| ())?.handled;
                assert_eq!(handled, if own == 1 { 8 } else { 0 });
                drop(empty);
                cell.exchange("s", &[[own; 3]], &mut incoming)?;
                Ok(kept)
            })
            .unwrap();
        assert_eq!(found[2], [(0, [3; 3]), (1, [0; 3]), (2, [1; 3]), (3, [2; 3])]);
    }
}

#[test]
fn values_keep_their_bits() {
    for world in worlds("ring:3") {
        world
            .try_run(|cell| {
                let odd = [f64::from_bits(0x7ff4_65e0_706f_6368), -0.0, f64::NAN];
                let mut epoch = cell.open();
                for target in 0..3 {
                    epoch.send(CellId(target), odd)?;
                }
                let bits = odd.map(f64::to_bits);
                epoch.settle(|_, item, _| assert_eq!(item.map(f64::to_bits), bits))
            })
            .unwrap();
    }
}

/// What a program that must fail ends with, on each transport.
fn errors<T: Send>(
    program: impl Fn(&mut Cell<'_>) -> Result<T, CellError> + Sync,
) -> Vec<Result<Vec<T>, RunError>> {
    worlds("ring:4").iter().map(|world| world.try_run(&program).map(|(values, _)| values)).collect()
}

#[test]
fn a_round_of_active_messages_costs_its_packets_its_handlers_and_its_end() {
    // The clocks of an epoch in which c0 sends so many items of 3 words to c1.
    let clocks = |items: u32, change: fn(&mut Parameters)| {
        let world = active("mesh:4x1", |p| {
            (p.link_clocks_per_word, p.c_poll, p.control_reduce) = (2, 0, 50);
            change(p);
        });
        let run = world.try_run(|cell| {
            let own = cell.id();
            let mut epoch = cell.open::<[f32; 3]>();
            for _ in 0..if own == CellId(0) { items } else { 0 } {
                epoch.send(CellId(1), [0.5; 3])?;
            }
            epoch.settle(|_, _, _| ())
        });
        let (settled, report) = run.unwrap();
        assert_eq!(settled[1].handled, u64::from(items));
        report.clocks
    };
    // An epoch without items is one round that brings nothing: its end.
    assert_eq!(clocks(0, |_| ()), 50);
    // Software, the header into the network, over one link, software, three words.
    let one = 20 + 2 + 2 + 10 + 3 * 2;
    assert_eq!(clocks(1, |_| ()), one + 2 * 50);
    // An item has a packet of its own, as one of four words has no room for two. The next one is
    // launched when the tail of the last one has left, and taken in at the end of the one before.
    assert_eq!(clocks(2, |_| ()), one + (20 + 2 * 3) + 2 * 50);
    assert_eq!(clocks(2, |p| p.active_words = 6), one + 3 * 2 + 2 * 50);
    // Words of an item in two packets.
    assert_eq!(clocks(1, |p| p.active_words = 2), one - 2 + (20 + 2 * 2) - 2 + 2 * 50);
    // c1 polls at clock 0 and every 7 clocks: the packet that arrives at clock 24 is found at 28.
    assert_eq!(clocks(1, |p| p.c_poll = 7), one + 4 + 2 * 50);
    // Without a control network, a tree of packets of one word ends both rounds: c1 and c3 send to
    // their parents c0 and c2, c2 to c0; then c0 to c2 and c1, and c2 to c3.
    let end = clocks(0, |p| p.control_reduce = 0);
    assert_eq!(clocks(1, |p| p.control_reduce = 0), one + 2 * end);
}

#[test]
fn wrong_uses_are_named() {
    let missing = errors(|cell| {
        let mut epoch = cell.open::<[u8; 1]>();
        if epoch.cell().id() == CellId(1) {
            epoch.send(CellId(4), [0])?;
        }
        epoch.settle(|_, _, _| ())
    });
    let handler = errors(|cell| {
        let mut epoch = cell.open::<[u8; 1]>();
        epoch.send(CellId(1), [0])?;
        epoch.settle(|_, _, out| out.send(CellId(4), [0]))
    });
    let exchange = errors(|cell| match cell.id() {
        CellId(1) => cell.exchange_any(&[(CellId(4), &[0u8][..])]),
        _ => cell.exchange_any(&[]),
    });
    let settled = missing.into_iter().chain(handler).map(message);
    for found in settled.chain(exchange.into_iter().map(message)) {
        let expected = "c1: an item of an epoch is for c4: expected a live cell, of which there are \
                        4, the last one c3";
        assert_eq!(found, expected);
    }
    for result in errors(|cell| match cell.id() {
        CellId(2) => cell.open::<[u8; 2]>().settle(|_, _, _| ()),
        _ => cell.open::<[u32; 1]>().settle(|_, _, _| ()),
    }) {
        let found = message(result);
        // Whichever cell sees it says so.
        let of = |first, second| {
            format!(
                " has opened the epoch with items of {first}, this cell with items of {second}: all \
                 cells have to open it with the same items"
            )
        };
        let (pair, one) = ("2 x u8", "1 x u32");
        let found = found.split_once(": c").expect("a cell and another one").1;
        assert!([of(one, pair), of(pair, one)].contains(&found[1..].to_owned()), "{found}");
    }
    // Items of other numbers with as many bytes.
    for result in errors(|cell| match cell.id() {
        CellId(1) => cell.exchange_any::<f32>(&[]).map(|_| ()),
        _ => cell.exchange_any::<u32>(&[]).map(|_| ()),
    }) {
        let found = message(result);
        assert!(found.contains("1 x f32") && found.contains("1 x u32"), "{found}");
    }
    for result in errors(|cell| {
        let own = cell.id();
        let mut epoch = cell.open::<[u8; 1]>();
        epoch.limit_rounds(50);
        if own == CellId(3) {
            epoch.send(CellId(3), [7])?;
        }
        epoch.settle(|_, item, out| out.send(own, item))
    }) {
        let found = message(result);
        let expected = "the epoch has not settled after 50 rounds: c3 still sends";
        assert!(found.contains(expected), "{found}");
    }
    for result in errors(|cell| cell.open().send(CellId(0), [1.5])) {
        let found = message(result);
        assert!(found.ends_with("with 1 items that were not delivered: settle it"), "{found}");
    }
    // A cell that does not settle.
    for result in errors(|cell| match cell.id() {
        CellId(2) => Ok(()),
        _ => cell.open::<[u8; 1]>().settle(|_, _, _| ()).map(|_| ()),
    }) {
        let found = message(result);
        assert!(found.contains("c2 has ended"), "{found}");
    }
}

#[test]
fn a_message_of_the_program_is_not_taken_for_a_packet() {
    for (world, result) in worlds("ring:4").iter().map(|world| {
        let program = |cell: &mut Cell<'_>| {
            if cell.id() == CellId(1) {
                cell.msg_send(CellId(2), &[5.0])?;
            }
            cell.open::<[u8; 1]>().settle(|_, _, _| ())
        };
        (world, world.try_run(program))
    }) {
        let found = message(result);
        let named = found
            == "c2: a message of 1 words from c1 has not been received: receive all \
                              messages before the epoch is settled"
            || found == "c2 has not received a message of 1 words from c1";
        assert!(named, "{world:?}: {found}");
    }
}
