//! Step plans executed by the runtime: any set by any levels and order delivers its words on the
//! fabric and on threads, and takes as many clocks as the plan on the fabric alone.

use std::sync::Arc;

use conset_fabric::messages::{MessageOptions, run_steps};
use conset_runtime::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Image, Machine, Piece, SetImage, StepMessages,
    Steps,
};
use conset_runtime::{ThreadOptions, Transport, World};
use conset_verify as verify;
use proptest::prelude::*;

use crate::step_cases::{case, image, wrong_rows};

/// All properties of one case.
fn check(seed: u64) -> Result<(), TestCaseError> {
    let steps = case(seed);
    let verified = verify::check_steps(&steps);
    prop_assert!(verified.is_ok(), "{}", verified.unwrap_err());
    let image = image(&steps);
    prop_assert!(verify::check_image(&image).is_ok());
    let world = World::new(image);
    let workers = 1 + (seed % 3) as usize;
    let transports = [Transport::Fabric, Transport::Threads(ThreadOptions::workers(workers))];
    for transport in transports {
        let name = format!("{transport:?}");
        let (wrong, report) = world.clone().on(transport).try_run(wrong_rows).unwrap();
        prop_assert_eq!(wrong.iter().sum::<usize>(), 0, "on {}", name);
        if name == "Fabric" {
            let words = steps.messages().iter().map(|message| message.words()).sum::<u64>();
            let own = 3 * (steps.machine().agent_count() / 2) as u64;
            prop_assert_eq!(report.words, 4 * words + own, "each word once in each message");
        }
    }
    let once = world.try_run(|cell| {
        let set = cell.image().sets()[0].set.clone();
        let rows = |ids: &[_]| -> Vec<Vec<u64>> {
            ids.iter().map(|&x| vec![7; set.get(x).words as usize]).collect()
        };
        let outgoing = rows(cell.connections_out(0)?);
        let mut incoming = rows(cell.connections_in(0)?);
        cell.exchange(0, &outgoing, &mut incoming)
    });
    let run = run_steps(&steps, &MessageOptions::default()).unwrap();
    prop_assert_eq!(once.unwrap().1.clocks, run.clocks, "of run_steps");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_plan_delivers_on_every_transport(seed: u64) {
        check(seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    #[ignore = "ten thousand plans; for release builds"]
    fn ten_thousand_plans_deliver(seed: u64) {
        check(seed)?;
    }
}

/// Programs that send messages between exchanges: cells that wait for one are sent those of the next
/// exchange.
#[test]
fn early_messages_do_not_block_the_network() {
    for seed in [12_034_151_685_500_321_872, 9_095_057_506_322_465_895] {
        check(seed).unwrap();
    }
}

/// A plan that loses words is not executed, on any transport: loading it, nobody has checked it.
#[test]
fn plans_that_lose_words_are_refused() {
    let machine = Arc::new(Machine::from_spec("cm5:4").unwrap());
    let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 10)]).unwrap();
    let mut messages = StepMessages::new();
    let piece = Piece { connection: ConnectionId(0), first_word: 0, words: 10 };
    messages.push(CellId(0), CellId(1), &[piece]).unwrap();
    messages.end_step().unwrap();
    let steps = Steps::new(machine.clone(), Arc::new(set), messages).unwrap();
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        let world = World::new(image(&steps)).on(transport);
        let error = world.try_run(|cell| {
            let length = |ids: &[ConnectionId]| vec![vec![1u64; 10]; ids.len()];
            let outgoing = length(cell.connections_out("s")?);
            let mut incoming = length(cell.connections_in("s")?);
            cell.exchange("s", &outgoing, &mut incoming)
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("10"), "{error}");
    }
    // A program is in phases or in steps.
    let mixed = vec![
        SetImage::of_steps(steps),
        SetImage::of_phases(Arc::new(ConnectionSet::new("t", vec![]).unwrap()), vec![]),
    ];
    let error = Image::new(machine, mixed).unwrap_err();
    assert!(error.to_string().contains("sets[0] has steps"), "{error}");
}

#[test]
fn phases_and_elements_are_refused() {
    let world = World::new(image(&case(3)));
    let error = world.try_run(|cell| cell.instantiate_phase("s/p0")).unwrap_err().to_string();
    assert!(error.contains("steps"), "{error}");
    let error = world.try_run(|cell| cell.send_element(ConnectionId(0), 1u64)).unwrap_err();
    assert!(error.to_string().contains("no phase is active"), "{error}");
}
