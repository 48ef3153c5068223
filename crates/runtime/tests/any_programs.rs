//! Programs that do anything in any order: the run ends, and in the same way each time.

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

use conset_runtime::ir::{ConnectionId, Duplex};
use conset_runtime::{Cell, CellError, PhaseName, World};
use proptest::prelude::*;

/// What a cell does next; the number says which connection, phase or how long.
#[derive(Clone, Copy, Debug)]
enum Step {
    Switch(u32),
    Send(u32),
    Receive(u32),
    Exchange,
    Compute(u64),
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0u32..2).prop_map(Step::Switch),
        6 => any::<u32>().prop_map(Step::Send),
        6 => any::<u32>().prop_map(Step::Receive),
        1 => Just(Step::Exchange),
        2 => (0u64..100).prop_map(Step::Compute),
        1 => Just(Step::End),
    ];
    prop::collection::vec(step, 0..12)
}

/// Executes the steps; returns a digest of what was received.
fn execute(cell: &mut Cell<'_>, steps: &[Step], careful: bool) -> Result<u64, CellError> {
    let (out, inn) = (cell.connections_out("s")?, cell.connections_in("s")?);
    let mut digest = 0u64;
    let pick = |ids: &[ConnectionId], n: u32| ids.get(n as usize % ids.len().max(1)).copied();
    for step in steps {
        match *step {
            Step::Switch(phase) => cell.instantiate_phase(PhaseName::new("s", phase))?,
            Step::Send(n) => {
                if let Some(x) = pick(out, n) {
                    let result = cell.send_element(x, digest ^ u64::from(n));
                    if careful {
                        result?;
                    }
                }
            }
            Step::Receive(n) => {
                if let Some(x) = pick(inn, n) {
                    digest = digest.rotate_left(7) ^ cell.receive_element::<u64>(x)?;
                }
            }
            Step::Exchange => {
                let set = &cell.image().sets()[0].set;
                let words = |x: &ConnectionId| vec![digest; set.get(*x).words as usize];
                let outgoing: Vec<Vec<u64>> = out.iter().map(words).collect();
                let mut incoming: Vec<Vec<u64>> = inn.iter().map(words).collect();
                cell.exchange("s", &outgoing, &mut incoming)?;
                digest = incoming.iter().flatten().fold(digest, |d, w| d.rotate_left(3) ^ w);
            }
            Step::Compute(clocks) => cell.compute(clocks)?,
            Step::End => break,
        }
    }
    Ok(digest)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_run_ends_and_repeats(
        pairs in prop::collection::vec((0u32..4, 0u32..4, 1u32..12), 1..8),
        common in steps(),
        own in prop::collection::vec(steps(), 4),
        depth in 1u32..4,
        half in any::<bool>(),
        alike in any::<bool>(),
    ) {
        let machine = build::machine("ring:4", |p| {
            p.channel_depth = depth;
            p.channels_per_cell = 4;
            if half {
                p.duplex = Duplex::Half;
            }
        });
        let world = World::new(build::build(&machine, build::set(&pairs))).trace(true);
        let run = || world.try_run(|cell| {
            let mut all = vec![Step::Switch(0)];
            all.extend(if alike { &common } else { &own[cell.id().index()] });
            execute(cell, &all, alike)
        });
        let first = run();
        if let Err(error) = &first {
            prop_assert!(!error.to_string().is_empty());
        }
        prop_assert_eq!(first, run());
    }
}
