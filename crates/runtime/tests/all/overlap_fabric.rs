//! Exchanges that are begun go on beside the programs, on the emulated machine: what that takes,
//! what it gives, and how it ends.

use std::sync::Arc;

use conset_runtime::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Direction, Duplex, Image, NodeLists,
    Parameters,
};
use conset_runtime::{
    Cell, CellError, Layout, Op, Pending, Plan, RunError, RunReport, ThreadOptions, Transport,
    World,
};
use proptest::prelude::*;

use crate::common::build;

/// A connection: source, target, and its first id and number of ids.
type Pair = (u32, u32, u32, u32);

/// Ids that every cell has, in its own order.
const IDS: u32 = 24;

/// A set, its image and its plan; vectors have [`IDS`] words.
struct Halo {
    image: Arc<Image>,
    plans: Vec<Plan>,
}

impl Halo {
    /// Sets `s0`, `s1`, ... of connections between any cells, also to themselves.
    fn new(spec: &str, change: impl FnOnce(&mut Parameters), sets: &[(&[Pair], bool)]) -> Self {
        let machine = build::machine(spec, change);
        let named = sets.iter().enumerate().map(|(i, (pairs, ordered))| {
            let ids = |p: &Pair| (p.2..p.2 + p.3).map(|id| id % IDS).collect::<Vec<_>>();
            let lists: Vec<Vec<u32>> = pairs.iter().map(ids).collect();
            let nodes = NodeLists::from_lists(lists.iter().map(Vec::as_slice));
            let connection = |p: &Pair| Connection::new(CellId(p.0), CellId(p.1), p.3);
            let set = ConnectionSet::new(format!("s{i}"), pairs.iter().map(connection).collect());
            let set = set.unwrap().with_nodes(nodes).unwrap();
            // Each waits for the one before.
            let order = (1..pairs.len() as u32).map(|x| (ConnectionId(x - 1), ConnectionId(x)));
            let order = if *ordered { order.collect() } else { Vec::new() };
            set.with_order(order).unwrap()
        });
        let image = build::build_all(&machine, named);
        let ids: Vec<Vec<u64>> = (0..machine.agent_count() as u64)
            .map(|cell| (0..u64::from(IDS)).map(|i| (i * 7 + cell) % u64::from(IDS)).collect())
            .collect();
        let plan = |set: usize| {
            let layout = Layout::from_image(&image, set, 1, &ids).unwrap();
            Plan::new(&image, set, layout, 1).unwrap()
        };
        let plans = (0..sets.len()).map(plan).collect();
        Self { image, plans }
    }

    /// Every cell to the next one round a ring, `words` words.
    fn ring(cells: u32, words: u32, change: impl FnOnce(&mut Parameters)) -> Self {
        let pairs: Vec<Pair> = (0..cells).map(|c| (c, (c + 1) % cells, c, words)).collect();
        Self::new(&format!("ring:{cells}"), change, &[(&pairs, false)])
    }

    fn world(&self) -> World {
        World::new(self.image.clone()).trace(true)
    }

    fn run<R: Send>(
        &self,
        program: impl Fn(&mut Cell<'_>, &[Plan]) -> Result<R, CellError> + Sync,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        let result = self.world().try_run(|cell| program(cell, &self.plans));
        let again = self.world().try_run(|cell| program(cell, &self.plans).map(drop));
        assert_eq!(result.as_ref().map(|r| &r.1), again.as_ref().map(|r| &r.1), "runs are alike");
        result
    }

    /// When a cell has computed so many clocks beside an exchange of the first set, begun by all at
    /// clock 0, that takes by itself what `alone` says.
    fn computed(&self, cell: CellId, clocks: u64, alone: &RunReport) -> u64 {
        let parameters = self.image.machine().parameters();
        let mut done = clocks;
        // What comes at the clock in which the work is done comes too late to stop it.
        let mut stop = |at: u64, clocks: u64| done += if done > at { clocks } else { 0 };
        let switches = &alone.trace.as_ref().unwrap().switches;
        for begun in switches.iter().filter(|switch| switch.step == 0) {
            stop(begun.start, parameters.switch_clocks());
            let operations = self.image.sets()[0].phases[begun.phase.index()].cell(cell).operations;
            let sends = operations.iter().filter(|o| o.direction == Direction::Send).count();
            let receives = operations.len() - sends;
            let streams = match parameters.duplex {
                Duplex::Full => sends.max(receives),
                Duplex::Half => sends + receives,
            };
            let setups = streams as u64 * u64::from(parameters.stream_setup);
            stop(begun.start + parameters.switch_clocks(), setups);
        }
        done
    }

    fn message<R: Send>(
        &self,
        program: impl Fn(&mut Cell<'_>, &[Plan]) -> Result<R, CellError> + Sync,
    ) -> String {
        self.run(program).err().expect("the run must fail").to_string()
    }
}

fn vector(cell: &Cell<'_>) -> Vec<f64> {
    (0..IDS).map(|i| 1.0 / f64::from(i + 3 * cell.id().0 + 1)).collect()
}

fn exchange(cell: &mut Cell<'_>, plan: &Plan) -> Result<(), CellError> {
    cell.exchange_nodes(plan, Op::Add, &mut vector(cell))
}

fn begin(cell: &mut Cell<'_>, plan: &Plan) -> Result<Pending, CellError> {
    cell.start(plan, Op::Add, &vector(cell))
}

fn end(cell: &mut Cell<'_>, plan: &Plan, pending: Pending) -> Result<(), CellError> {
    cell.wait(plan, pending, &mut vector(cell))
}

#[test]
fn computing_goes_on_beside_the_words_and_stops_for_switches() {
    for (words, setup) in [(1, 0), (20, 0), (20, 50)] {
        let halo = Halo::ring(4, words, |p| p.stream_setup = setup);
        // A word takes 2 + 2 + 2 clocks, the others follow every 2.
        let alone = 528 + u64::from(setup) + 6 + 2 * (u64::from(words) - 1);
        let (_, report) = halo.run(|cell, plans| exchange(cell, &plans[0])).unwrap();
        assert_eq!(report.clocks, alone);
        let taken = 528 + u64::from(setup);
        for clocks in [0, 1, 5, alone - taken, alone, 10 * alone] {
            let (ends, report) = halo
                .run(|cell, plans| {
                    let pending = begin(cell, &plans[0])?;
                    cell.compute(clocks)?;
                    let computed = cell.clock();
                    end(cell, &plans[0], pending)?;
                    assert_eq!(report.switches, 1);
                    Ok((computed, cell.clock()))
                })
                .unwrap();
            // Work of no clocks is done before the machine begins to switch.
            let computed = if clocks == 0 { 0 } else { clocks + taken };
            let total = alone.max(computed);
            assert_eq!(ends, vec![(computed, total); 4], "{words} words, {clocks} clocks");
            assert_eq!((report.clocks, report.switch_clocks), (total, 528));
        }
    }
}

#[test]
fn a_halo_begun_and_ended_takes_what_the_exchange_takes() {
    let pairs: Vec<Pair> =
        (0..24).map(|i| (i % 6, (i * 5 + 1) % 6, i, 1 + i % 7)).chain([(2, 2, 0, 9)]).collect();
    for ordered in [false, true] {
        for (duplex, setup, channels, timed) in [
            (Duplex::Full, 0, 12, 0),
            (Duplex::Half, 13, 4, 0),
            (Duplex::Full, 98, 6, 0),
            (Duplex::Full, 0, 12, 1),
            (Duplex::Half, 13, 4, 1),
        ] {
            let change = |p: &mut Parameters| {
                (p.duplex, p.stream_setup, p.channels_per_cell) = (duplex, setup, channels);
                p.timed_starts = timed;
            };
            let halo = Halo::new("mesh:3x2", change, &[(&pairs, ordered)]);
            let (_, whole) = halo.run(|cell, plans| exchange(cell, &plans[0])).unwrap();
            let halves = |cell: &mut Cell<'_>, plans: &[Plan]| {
                let pending = begin(cell, &plans[0])?;
                end(cell, &plans[0], pending)
            };
            let (_, halves) = halo.run(halves).unwrap();
            assert_eq!(whole, halves, "in clocks, words, and every stream of the trace");
            let alone = conset_fabric::run_checked(halo.image.clone(), 0, 0, false).unwrap();
            assert_eq!(
                whole.clocks, alone.report.clocks,
                "starts are kept as the fabric keeps them"
            );
            let trace = whole.trace.unwrap();
            let phases = halo.image.sets()[0].phases.len();
            assert_eq!(trace.switches.len(), 7 * phases);
            assert_eq!(trace.streams.len(), 2 * pairs.len());
        }
    }
}

#[test]
fn tests_come_to_an_end() {
    let halo = Halo::ring(3, 24, |_| ());
    let (_, whole) = halo.run(|cell, plans| exchange(cell, &plans[0])).unwrap();
    for step in [0, 1, 10, 1000] {
        let (found, report) = halo
            .run(|cell, plans| {
                let pending = begin(cell, &plans[0])?;
                let mut steps = 0;
                while !cell.test(&pending)? {
                    if step > 0 {
                        cell.compute(step)?;
                    }
                    steps += 1;
                }
                assert!(cell.test(&pending)?, "and stays so");
                let clock = cell.clock();
                end(cell, &plans[0], pending)?;
                assert_eq!(cell.clock(), clock, "it can be ended without waiting");
                Ok((steps, clock))
            })
            .unwrap();
        for (steps, clock) in found {
            // A test takes 4 clocks, and may say yes at their end.
            let all = 528 + (4 + step) * steps;
            assert!(clock == all || clock == all + 4, "{clock} {all}");
            assert!((whole.clocks..whole.clocks + 4 + step).contains(&clock), "{clock}");
        }
        assert_eq!(report.words, whole.words);
    }
}

#[test]
fn tests_say_no_for_as_long_as_others_compute() {
    let halo = Halo::ring(3, 2, |_| ());
    let (found, _) = halo
        .run(|cell, plans| {
            if cell.id() == CellId(1) {
                cell.compute(400_000)?;
            }
            let pending = begin(cell, &plans[0])?;
            let mut tests = 0;
            while !cell.test(&pending)? {
                tests += 1;
            }
            end(cell, &plans[0], pending)?;
            Ok(tests)
        })
        .unwrap();
    assert!(found[0] >= 100_000 && found[1] < 10, "{found:?}");
}

#[test]
fn an_exchange_starts_when_the_last_cell_has_begun_it() {
    let halo = Halo::ring(4, 3, |_| ());
    let (clocks, report) = halo
        .run(|cell, plans| {
            let late = 100 * u64::from(cell.id().0);
            cell.compute(late)?;
            let pending = begin(cell, &plans[0])?;
            assert_eq!(cell.clock(), late, "to begin takes no time");
            cell.compute(1000 - 2 * late)?;
            let computed = cell.clock();
            end(cell, &plans[0], pending)?;
            Ok((computed, cell.clock()))
        })
        .unwrap();
    let ended = 300 + 528 + 10;
    let expected = [1528, 1428, 1328, 1228].map(|clock| (clock, clock.max(ended)));
    assert_eq!((clocks, report.clocks), (expected.to_vec(), 1528));
}

#[test]
fn exchanges_under_way_follow_one_another() {
    let other: Vec<Pair> = vec![(0, 2, 3, 5), (2, 1, 0, 1)];
    let ring: Vec<Pair> = (0..3).map(|c| (c, (c + 1) % 3, c, 4)).collect();
    let halo = Halo::new("ring:3", |_| (), &[(&ring, false), (&other, false), (&[], false)]);
    let alone = |set: usize| {
        let (_, report) = halo.run(|cell, plans| exchange(cell, &plans[set])).unwrap();
        report.clocks
    };
    let each = [alone(0), alone(1), alone(2)];
    assert_eq!(each[2], 0, "no phases, no time");
    for sets in [&[0, 0, 0, 0, 0][..], &[0, 1, 0], &[2, 0, 2, 2, 1, 2], &[2, 2], &[1, 2]] {
        let (_, report) = halo
            .run(|cell, plans| {
                let mut pending = Vec::new();
                for &set in sets {
                    pending.push((set, begin(cell, &plans[set])?));
                }
                cell.compute(10)?;
                for at in [1, 0, 0, 0, 0] {
                    if at < pending.len() {
                        let (set, token) = pending.remove(at);
                        end(cell, &plans[set], token)?;
                    }
                }
                pending.into_iter().try_for_each(|(set, token)| end(cell, &plans[set], token))
            })
            .unwrap();
        let sum: u64 = sets.iter().map(|&set| each[set]).sum();
        assert_eq!(report.clocks, sum.max(10), "{sets:?}");
    }
}

#[test]
fn messages_go_before_and_exchanges_after() {
    let halo = Halo::ring(3, 2, |_| ());
    let (clocks, report) = halo
        .run(|cell, plans| {
            // Cell 2 computes and tests while the others send messages.
            if cell.id() == CellId(0) {
                cell.msg_send(CellId(1), &[1.0; 30])?;
            } else if cell.id() == CellId(1) {
                cell.msg_receive(CellId(0), &mut [0.0; 30])?;
            }
            let pending = begin(cell, &plans[0])?;
            cell.compute(5000)?;
            let computed = cell.clock();
            end(cell, &plans[0], pending)?;
            cell.instantiate_messages()?;
            if cell.id() == CellId(0) {
                cell.msg_send(CellId(1), &[1.0; 3])?;
            } else if cell.id() == CellId(1) {
                cell.msg_receive(CellId(0), &mut [0.0; 3])?;
            }
            Ok(computed)
        })
        .unwrap();
    let [first, second, third] = clocks[..] else { panic!("{clocks:?}") };
    assert_eq!(third, 5528, "its clocks pass from one engine to the other");
    assert!(first > third && second > first, "{clocks:?}");
    assert_eq!((report.switches, report.switch_clocks), (2, 2 * 528));
}

#[test]
fn one_cell_alone() {
    let halo = Halo::new("ring:1", |p| p.duplex = Duplex::Half, &[(&[(0, 0, 0, 7)], false)]);
    let (found, report) = halo
        .run(|cell, plans| {
            let mut x = vector(cell);
            let pending = cell.start(&plans[0], Op::Add, &x)?;
            while !cell.test(&pending)? {}
            cell.wait(&plans[0], pending, &mut x)?;
            Ok(x)
        })
        .unwrap();
    let times = |i: u32| if i * 7 % IDS < 7 { 2.0 } else { 1.0 };
    let doubled: Vec<f64> = (0..IDS).map(|i| times(i) / f64::from(i + 1)).collect();
    assert_eq!((found, report.words), (vec![doubled], 7));
}

#[test]
fn what_never_arrives_is_told() {
    let halo = Halo::ring(3, 2, |_| ());
    type Way = dyn Fn(&mut Cell<'_>, &Plan, Pending) -> Result<(), CellError> + Sync;
    let ways: [&Way; 4] = [
        &|cell, plan, pending| end(cell, plan, pending),
        &|cell, _, pending| {
            while !cell.test(&pending)? {}
            Ok(())
        },
        &|cell, _, pending| {
            while !cell.test(&pending)? {
                cell.compute(1000)?;
            }
            Ok(())
        },
        // Some wait, some test.
        &|cell, plan, pending| match cell.id() {
            CellId(0) => end(cell, plan, pending),
            _ => {
                while !cell.test(&pending)? {}
                Ok(())
            }
        },
    ];
    type Program = fn(&mut Cell<'_>) -> Result<(), CellError>;
    let of_one: [(Program, &[&str]); 6] = [
        (
            |_| Ok(()),
            &["c1 has ended while c0 waits for all cells to switch to the exchange of s0"],
        ),
        (|cell| cell.compute(10_000), &["c1 has ended while c0 waits for all cells"]),
        (
            |cell| cell.instantiate_phase("s0/p0"),
            &["c0 switches to the exchange of s0 while c1 switches to s0/p0"],
        ),
        (
            |cell| cell.msg_receive(CellId(2), &mut [0.0]),
            &[
                "waits for all cells to switch to the exchange of s0",
                "c1 waits for a message from c2",
                "which is where this began",
            ],
        ),
        (
            |cell| cell.msg_send(CellId(0), &[0.0; 100]),
            &[
                "c0 waits for all cells to switch to the exchange of s0",
                "c1 waits for c0 to receive",
            ],
        ),
        (|cell| Err(cell.abort("no more")), &["c1: no more"]),
    ];
    for way in ways {
        for (program, expected) in of_one {
            let text = halo.message(|cell, plans| {
                if cell.id() == CellId(1) {
                    return program(cell);
                }
                let pending = begin(cell, &plans[0])?;
                way(cell, &plans[0], pending)
            });
            assert!(expected.iter().all(|part| text.contains(part)), "{text} {expected:?}");
        }
        // In a phase, one waits for a word of a cell that has gone on.
        let text = halo.message(|cell, plans| {
            cell.instantiate_phase("s0/p0")?;
            if cell.id() == CellId(1) {
                return cell.receive_element::<f64>(ConnectionId(0)).map(drop);
            }
            let pending = begin(cell, &plans[0])?;
            way(cell, &plans[0], pending)
        });
        assert!(text.contains("c1 receives x0") && text.contains("c0 waits for all"), "{text}");
    }
}

#[test]
fn many_cells_that_test_in_vain_are_found_out_soon() {
    let halo = Halo::ring(256, 1, |_| ());
    let text = halo.message(|cell, plans| {
        if cell.id() == CellId(77) {
            return cell.compute(100);
        }
        let pending = begin(cell, &plans[0])?;
        while !cell.test(&pending)? {}
        end(cell, &plans[0], pending)
    });
    assert_eq!(text, "c77 has ended while c0 waits for all cells to switch to the exchange of s0");
}

#[test]
fn who_tests_in_vain_may_give_its_own_reason() {
    let halo = Halo::ring(3, 2, |_| ());
    let text = halo.message(|cell, plans| {
        if cell.id() == CellId(1) {
            return Ok(());
        }
        let pending = begin(cell, &plans[0])?;
        for _ in 0..1000 {
            if cell.test(&pending)? {
                return Ok(());
            }
        }
        Err(cell.abort("nothing comes"))
    });
    assert_eq!(text, "c0: nothing comes");
}

#[test]
fn cells_that_begin_different_sets_are_both_named() {
    let pairs: Vec<Pair> = vec![(0, 1, 0, 2)];
    let sets: [(&[Pair], bool); 3] = [(&pairs, false), (&pairs, false), (&[], false)];
    let halo = Halo::new("ring:3", |_| (), &sets);
    for other in [1, 2] {
        let text = halo.message(|cell, plans| {
            let second = if cell.id() == CellId(2) { other } else { 0 };
            for set in [0, second] {
                let _leaked = begin(cell, &plans[set])?;
            }
            cell.instantiate_phase("s0/p0")
        });
        let expected = format!(
            "c0 switches to the exchange of s0 while c2 switches to the exchange of s{other}"
        );
        assert_eq!(text, expected);
    }
    // Nobody waits for an exchange without phases, but all have to begin it.
    let text = halo.message(|cell, plans| {
        if cell.id() == CellId(1) {
            return Ok(());
        }
        let pending = begin(cell, &plans[2])?;
        assert!(cell.test(&pending)?);
        end(cell, &plans[2], pending)
    });
    assert_eq!(text, "c1 has ended while c0 waits for all cells to switch to the exchange of s2");
}

#[test]
fn what_was_sent_before_and_not_received_is_found() {
    let halo = Halo::ring(3, 2, |_| ());
    let text = halo.message(|cell, plans| {
        cell.instantiate_phase("s0/p0")?;
        if cell.id() == CellId(1) {
            cell.send_element(ConnectionId(1), 1.0)?;
        }
        let pending = begin(cell, &plans[0])?;
        cell.compute(10_000)?;
        end(cell, &plans[0], pending)
    });
    assert!(text.contains("x1") && text.contains("c2"), "{text}");
    let text = halo.message(|cell, plans| {
        if cell.id() == CellId(1) {
            cell.msg_send(CellId(2), &[1.0])?;
        }
        let pending = begin(cell, &plans[0])?;
        end(cell, &plans[0], pending)
    });
    assert_eq!(text, "c2 has not received a message of 1 words from c1");
}

#[test]
fn leaks_and_panics_end_the_run() {
    let halo = Halo::ring(4, 20, |_| ());
    for clocks in [0, 530, 10_000] {
        let text = halo.message(|cell, plans| {
            let pending = begin(cell, &plans[0])?;
            cell.compute(clocks)?;
            if cell.id() == CellId(2) {
                return Ok(());
            }
            end(cell, &plans[0], pending)
        });
        let expected = "c2: the program returned with 1 exchanges started and not completed, the first of `s0`";
        assert_eq!(text, expected);
        let text = halo.message(|cell, plans| {
            let pending = begin(cell, &plans[0])?;
            cell.compute(clocks)?;
            assert!(cell.id() != CellId(3), "no more");
            end(cell, &plans[0], pending)
        });
        assert_eq!(text, "c3 panicked: no more");
    }
}

#[test]
fn a_part_arrives_when_its_own_words_are_there() {
    // Cell 1 receives one word, cell 3 many; cells 0 and 2 only send.
    let pairs: Vec<Pair> = vec![(0, 1, 0, 1), (2, 3, 0, 24)];
    let halo = Halo::new("ring:4", |_| (), &[(&pairs, false)]);
    let (clocks, report) = halo
        .run(|cell, plans| {
            let pending = begin(cell, &plans[0])?;
            end(cell, &plans[0], pending)?;
            Ok(cell.clock())
        })
        .unwrap();
    assert_eq!(clocks, [528, 528 + 6, 528, 528 + 6 + 46]);
    let receives = report.trace.unwrap().streams;
    let last = receives.iter().filter(|s| s.direction == Direction::Receive).map(|s| s.close).max();
    assert_eq!(last, Some(report.clocks));
}

fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    prop::collection::vec((0u32..4, 0u32..4, 0u32..IDS, 1u32..IDS), 0..8)
}

/// What a cell does next; numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    Test(usize),
    End(usize),
    Exchange(usize),
    Switch(u32),
    Send(usize),
    Receive(usize),
    Message(u32),
    Listen(u32),
    Compute(u64),
    Return,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0usize..2).prop_map(Step::Begin),
        5 => any::<usize>().prop_map(Step::Test),
        8 => any::<usize>().prop_map(Step::End),
        2 => (0usize..2).prop_map(Step::Exchange),
        1 => (0u32..2).prop_map(Step::Switch),
        2 => any::<usize>().prop_map(Step::Send),
        2 => any::<usize>().prop_map(Step::Receive),
        1 => (0u32..4).prop_map(Step::Message),
        1 => (0u32..4).prop_map(Step::Listen),
        4 => (0u64..1500).prop_map(Step::Compute),
        1 => Just(Step::Return),
    ];
    prop::collection::vec(step, 0..14)
}

/// Executes steps; returns a digest of what was received and of nothing that depends on clocks.
fn execute(cell: &mut Cell<'_>, plans: &[Plan], steps: &[Step]) -> Result<Vec<u64>, CellError> {
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
    let mut x = vector(cell);
    let mut pending: Vec<(usize, Pending)> = Vec::new();
    let pick = |ids: &[ConnectionId], n: usize| ids.get(n % ids.len().max(1)).copied();
    for &step in steps {
        match step {
            Step::Begin(set) => {
                pending.push((set, cell.start(&plans[set], Op::Add, &x)?));
                x.iter_mut().for_each(|x| *x *= 0.75);
            }
            Step::Test(n) if !pending.is_empty() => {
                let token = pending[n % pending.len()].1;
                // As often as another number says.
                for _ in 0..n % 7 {
                    let _unless_later = cell.test(&token)?;
                }
                if n % 3 == 0 {
                    while !cell.test(&token)? {}
                }
            }
            Step::End(n) if !pending.is_empty() => {
                let (set, token) = pending.remove(n % pending.len());
                cell.wait(&plans[set], token, &mut x)?;
            }
            Step::Test(_) | Step::End(_) => {}
            Step::Exchange(set) => cell.exchange_nodes(&plans[set], Op::Max, &mut x)?,
            Step::Switch(phase) => cell.instantiate_phase((0, conset_ir::PhaseId(phase)))?,
            Step::Send(n) => {
                if let Some(x) = pick(out, n) {
                    cell.send_element(x, n as u64)?;
                }
            }
            Step::Receive(n) => {
                if let Some(connection) = pick(inn, n) {
                    x[0] += cell.receive_element::<f64>(connection)?;
                }
            }
            Step::Message(to) => cell.msg_send(CellId(to), &x[..3])?,
            Step::Listen(from) => cell.msg_receive(CellId(from), &mut x[..3])?,
            Step::Compute(clocks) => cell.compute(clocks)?,
            Step::Return => break,
        }
    }
    for (set, token) in pending {
        cell.wait(&plans[set], token, &mut x)?;
    }
    Ok(x.into_iter().map(f64::to_bits).collect())
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn overlap_never_loses_and_never_takes_less_than_either(
        pairs in pairs(),
        (depth, half, setup, streams) in (1u32..9, any::<bool>(), 0u32..120, 1u32..3),
        (sync, phase, channels) in (0u32..400, 0u32..200, 3u32..8),
        mut works in prop::collection::vec(0u64..3000, 4),
        alike in any::<bool>(),
        ordered in any::<bool>(),
        timed in 0u32..2,
    ) {
        let halo = Halo::new("ring:4", |p| {
            p.timed_starts = timed;
            (p.channel_depth, p.stream_setup, p.streams) = (depth, setup, streams);
            (p.t_sync, p.t_phase, p.channels_per_cell) = (sync, phase, channels);
            p.duplex = if half { Duplex::Half } else { Duplex::Full };
        }, &[(&pairs, ordered)]);
        if alike {
            works = vec![works[0]; 4];
        }
        let work = |cell: &Cell<'_>| works[cell.id().index()];
        let (_, alone) = halo.run(|cell, plans| exchange(cell, &plans[0])).unwrap();
        let (clocks, in_turn) = halo.run(|cell, plans| {
            exchange(cell, &plans[0])?;
            cell.compute(work(cell))?;
            Ok(cell.clock())
        }).unwrap();
        let (beside, overlapped) = halo.run(|cell, plans| {
            let pending = begin(cell, &plans[0])?;
            cell.compute(work(cell))?;
            let computed = cell.clock();
            end(cell, &plans[0], pending)?;
            Ok((computed, cell.clock()))
        }).unwrap();
        let (computed, beside): (Vec<u64>, Vec<u64>) = beside.into_iter().unzip();
        let expected: Vec<u64> = (0..4).map(|c| halo.computed(CellId(c), works[c as usize], &alone)).collect();
        prop_assert_eq!(computed, expected);
        prop_assert!(overlapped.clocks >= alone.clocks);
        prop_assert_eq!(overlapped.words, in_turn.words);
        prop_assert_eq!(overlapped.word_hops, in_turn.word_hops);
        prop_assert_eq!(overlapped.switch_clocks, in_turn.switch_clocks);
        for (row, (beside, in_turn)) in beside.iter().zip(&clocks).enumerate() {
            prop_assert!(beside <= in_turn && *beside >= works[row], "{} {}", beside, in_turn);
        }
        if alike && works[0] > 0 && !pairs.is_empty() {
            prop_assert!(overlapped.clocks < in_turn.clocks);
            prop_assert_eq!(in_turn.clocks, alone.clocks + works[0]);
        }
    }

    #[test]
    fn every_run_ends_and_repeats_and_is_that_of_threads(
        sets in (pairs(), pairs()),
        ordered in any::<(bool, bool)>(),
        common in steps(),
        own in prop::collection::vec(steps(), 4),
        alike in any::<bool>(),
        half in any::<bool>(),
    ) {
        let sets: [(&[Pair], bool); 2] = [(&sets.0, ordered.0), (&sets.1, ordered.1)];
        let halo = Halo::new("ring:4", |p| {
            p.channels_per_cell = 4;
            p.duplex = if half { Duplex::Half } else { Duplex::Full };
        }, &sets);
        let program = |cell: &mut Cell<'_>, plans: &[Plan]| {
            let steps = if alike { &common } else { &own[cell.id().index()] };
            execute(cell, plans, steps)
        };
        // Runs twice.
        match halo.run(program) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok((found, _)) if alike => {
                let threads = Transport::Threads(ThreadOptions::workers(2));
                let world = World::new(halo.image.clone()).on(threads);
                let (other, _) = world.try_run(|cell| program(cell, &halo.plans)).unwrap();
                prop_assert_eq!(found, other);
            }
            Ok(_) => {}
        }
    }
}
