//! Faults of the hardware in what programs of cells do by messages: sets by messages, step plans, messages between two
//! cells, and rounds of epochs with packets of either kind. Every run ends: with the right words, or with an error that
//! names what faults have done. Clocks, words of links and dead parts are those of the whole run.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_fabric::{FaultExtent, FaultKind, WaitCause};
use conset_runtime::ir::{
    CellId, ConnectionId, Duplex, Image, Machine, Piece, Protocol, SetImage, StepMessages, Steps,
};
use conset_runtime::{By, Cell, CellError, FaultPlan, RunError, RunReport, World};
use proptest::prelude::*;

use crate::common::build;
use crate::step_cases::{self, word, wrong_rows};

const CELLS: u32 = 6;

/// Something that all cells do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// The set, as it is compiled: in phases, or by steps.
    Compiled,
    /// The set by messages.
    Set,
    /// Words to the next cell and from the one before, by messages that wait for their receivers, or directly.
    Plain,
    Direct,
    /// A round of an epoch.
    Round,
}

const BY_MESSAGES: [Action; 4] = [Action::Set, Action::Plain, Action::Direct, Action::Round];

/// Machines with a compiled set: in phases or by steps; with active messages or without.
#[derive(Clone, Copy, Debug)]
struct Variant {
    steps: bool,
    active: bool,
    rendezvous: bool,
    half: bool,
    depth: u32,
}

impl Variant {
    fn machine(self) -> Arc<Machine> {
        build::machine("mesh:3x2", |p| {
            (p.channels_per_cell, p.channel_depth) = (6, self.depth);
            (p.c_send, p.c_receive, p.message_extra_words) = (20, 10, 2);
            if self.rendezvous {
                p.protocol = Protocol::Rendezvous;
            }
            if self.half {
                p.duplex = Duplex::Half;
            }
            if self.active {
                (p.active_words, p.c_active_send, p.c_active_receive, p.c_poll) = (4, 20, 10, 3);
            }
        })
    }

    fn image(self) -> Arc<Image> {
        let machine = self.machine();
        if !self.steps {
            return Arc::new(build::build(&machine, build::all_to_all(CELLS, 5)));
        }
        let sets = vec![SetImage::of_steps(two_hops(&machine))];
        Arc::new(Image::new(machine, sets).unwrap())
    }
}

/// An all-to-all in two hops: first along the rows of three cells, then along the columns.
fn two_hops(machine: &Arc<Machine>) -> Steps {
    let set = build::all_to_all(CELLS, 5);
    let mut messages = StepMessages::new();
    for step in 0..2 {
        let mut groups: BTreeMap<(u32, u32), Vec<Piece>> = BTreeMap::new();
        for (id, connection) in set.iter() {
            let (from, to) = (connection.source.0, connection.target.0);
            let middle = to % 3 + 3 * (from / 3);
            let ends = [(from, middle), (middle, to)][step];
            groups.entry(ends).or_default().push(Piece::whole(&set, id));
        }
        for ((source, target), pieces) in groups.iter().filter(|((from, to), _)| from != to) {
            messages.push(CellId(*source), CellId(*target), pieces).unwrap();
        }
        messages.end_step().unwrap();
    }
    Steps::new(machine.clone(), Arc::new(set), messages).unwrap()
}

/// Does something; the number of words that are wrong.
fn act(cell: &mut Cell<'_>, action: Action, number: u64) -> Result<usize, CellError> {
    let id = cell.id().0;
    let (next, before) = (CellId((id + 1) % CELLS), CellId((id + CELLS - 1) % CELLS));
    let words = |cell: CellId, count: usize| -> Vec<u64> {
        (0..count).map(|place| word(ConnectionId(cell.0), place, number)).collect()
    };
    let wrong = |expected: &[u64], found: &[u64]| {
        let pairs = expected.iter().zip(found).filter(|(a, b)| a != b).count();
        pairs + expected.len().abs_diff(found.len())
    };
    let (own, expected, mut found) = (words(cell.id(), 7), words(before, 7), vec![1; 7]);
    match action {
        Action::Compiled | Action::Set => {
            let set = cell.image().sets()[0].set.clone();
            let rows = |ids: &[ConnectionId], round| -> Vec<Vec<u64>> {
                let row = |&x: &ConnectionId| {
                    (0..set.get(x).words as usize).map(|place| word(x, place, round)).collect()
                };
                ids.iter().map(row).collect()
            };
            let outgoing = rows(cell.connections_out("s")?, number);
            let expected = rows(cell.connections_in("s")?, number);
            let mut incoming = rows(cell.connections_in("s")?, !number);
            let by = if action == Action::Set { By::Messages } else { By::Phases };
            cell.exchange_by(by, "s", &outgoing, &mut incoming)?;
            return Ok(expected.iter().zip(&incoming).map(|(a, b)| wrong(a, b)).sum());
        }
        Action::Plain | Action::Direct => {
            if cell.image().sets()[0].steps.is_none() {
                cell.instantiate_messages()?;
            }
            match action {
                Action::Direct => cell.send_receive(next, &own, before, &mut found)?,
                _ if id % 2 == 0 => {
                    cell.msg_send(next, &own)?;
                    cell.msg_receive(before, &mut found)?;
                }
                _ => {
                    cell.msg_receive(before, &mut found)?;
                    cell.msg_send(next, &own)?;
                }
            }
        }
        Action::Round => {
            let lists = cell.exchange_any(&[(next, &own[..]), (before, &own[..3])])?;
            let of_next = words(next, 3);
            let mut right = [(before, expected), (next, of_next)];
            right.sort();
            let pairs = right.iter().zip(&lists);
            let wrong = pairs.map(|(a, b)| usize::from(a.0 != b.0) + wrong(&a.1, &b.1));
            return Ok(wrong.sum::<usize>() + right.len().abs_diff(lists.len()));
        }
    }
    Ok(wrong(&expected, &found))
}

/// Wrong words, by cell and action.
type Outcome = Result<(Vec<Vec<usize>>, RunReport), RunError>;

fn run(variant: Variant, actions: &[Action], plan: &FaultPlan) -> Outcome {
    World::new(variant.image()).faults(plan.clone()).try_run(|cell| {
        let all = actions.iter().zip(1u64..);
        all.map(|(&action, number)| act(cell, action, number)).collect()
    })
}

fn with(variant: Variant, actions: &[Action], plan: &str) -> Outcome {
    run(variant, actions, &plan.parse().unwrap())
}

/// What runs of messages can be done on: each kind of action, and each kind of engine for it.
fn cases() -> Vec<(Variant, Action)> {
    let standing =
        Variant { steps: false, active: false, rendezvous: false, half: false, depth: 2 };
    let mut cases = Vec::new();
    for rendezvous in [false, true] {
        let variant = Variant { rendezvous, ..standing };
        cases.extend(BY_MESSAGES.map(|action| (variant, action)));
        cases.push((Variant { steps: true, half: rendezvous, ..variant }, Action::Compiled));
    }
    cases.push((Variant { active: true, ..standing }, Action::Round));
    cases.push((Variant { active: true, half: true, depth: 1, ..standing }, Action::Round));
    cases
}

fn is_right((wrong, _): &(Vec<Vec<usize>>, RunReport)) -> bool {
    wrong.iter().flatten().all(|&wrong| wrong == 0)
}

/// The fault of a run; `None` if it ended with the right words.
fn fault(variant: Variant, actions: &[Action], plan: &str) -> Option<FaultKind> {
    match with(variant, actions, plan) {
        Ok(done) => {
            assert!(is_right(&done), "{variant:?}, {actions:?}, {plan}: {:?}", done.0);
            None
        }
        Err(RunError::Fault(fault)) => {
            assert!(!fault.set.is_empty());
            Some(fault.kind)
        }
        Err(other) => panic!("{variant:?}, {actions:?}, {plan}: {other}"),
    }
}

#[test]
fn a_plan_without_effect_changes_nothing() {
    for (variant, action) in cases() {
        let (_, report) = World::new(variant.image())
            .try_run(|cell| act(cell, action, 1).map(|wrong| assert_eq!(wrong, 0)))
            .unwrap();
        let plan = "cell c0 dead at 100000000\nlink c0 -> c1 drops word 100000000";
        let (_, same) = with(variant, &[action], plan).unwrap();
        assert_eq!(report, same, "{variant:?}, {action:?}");
    }
}

/// Every link and every cell at several clocks of each kind of exchange.
#[test]
fn a_dead_part_is_named() {
    for (variant, action) in cases() {
        let clocks = with(variant, &[action], "").unwrap().1.clocks;
        let machine = variant.machine();
        let parts = build::links(&machine).into_iter();
        let mut named = 0;
        for part in parts.chain(machine.cells().map(|cell| format!("cell {cell}"))) {
            for at in (0..clocks).step_by(1 + clocks as usize / 7) {
                let plan = format!("{part} dead at {at}");
                let Some(kind) = fault(variant, &[action], &plan) else { continue };
                let FaultKind::Deadlock { waits, .. } = kind else {
                    panic!("{variant:?}, {action:?}, {plan}: {kind}")
                };
                let last = *waits.last().unwrap();
                let is_named = match last.cause {
                    WaitCause::StoppedLink { link, .. } => {
                        let link = machine.link(link);
                        let ends = [link.source, link.target].map(|cell| format!("cell {cell}"));
                        part == format!("link {} -> {}", link.source, link.target)
                            || ends.contains(&part)
                    }
                    WaitCause::DeadCell { .. } => part == format!("cell {}", last.cell),
                    _ => false,
                };
                assert!(is_named, "{variant:?}, {action:?}, {plan}: {last}");
                named += 1;
            }
        }
        assert!(named > 20, "{variant:?}, {action:?}: {named} plans acted");
    }
}

#[test]
fn what_only_takes_longer_arrives() {
    for (variant, action) in cases() {
        let clocks = with(variant, &[action], "").unwrap().1.clocks;
        let stalls = ["link c0 -> c1", "link c1 -> c0", "cell c1"].map(|part| {
            (0..8).map(move |eighth| format!("{part} stalled 9000 at {}", eighth * clocks / 8))
        });
        let mut longer = 0;
        for plan in stalls.into_iter().flatten().chain(["cell c2 slow 50".to_owned()]) {
            let done = with(variant, &[action], &plan)
                .unwrap_or_else(|error| panic!("{variant:?}, {action:?}, {plan}: {error}"));
            assert!(is_right(&done), "{variant:?}, {action:?}, {plan}");
            longer += u32::from(done.1.clocks > clocks);
        }
        assert!(longer > 8, "{variant:?}, {action:?}: {longer} plans acted");
    }
}

/// The first words of a link, each lost, repeated and exchanged with the next one; and each changed.
#[test]
fn words_that_are_lost_or_come_twice_are_errors() {
    for (variant, action) in cases() {
        let mut kinds = BTreeMap::new();
        for effect in ["drops", "duplicates", "reorders"] {
            for (number, which) in
                (0..20).flat_map(|number| [(number, "word"), (number, "words from")])
            {
                let plan = format!("link c0 -> c1 {effect} {which} {number}");
                let Some(kind) = fault(variant, &[action], &plan) else { continue };
                let name = match kind {
                    FaultKind::LostWords { .. } => "lost",
                    FaultKind::ExcessWords { .. } => "excess",
                    FaultKind::MisplacedWord { .. } => "misplaced",
                    FaultKind::StrayWord { .. } => "stray",
                    other => panic!("{variant:?}, {action:?}, {plan}: {other}"),
                };
                *kinds.entry((effect, name)).or_insert(0) += 1;
            }
        }
        let count = |effect: &str| -> u32 {
            kinds.iter().filter(|(key, _)| key.0 == effect).map(|(_, count)| count).sum()
        };
        assert!(count("drops") >= 15, "{variant:?}, {action:?}: {kinds:?}");
        assert!(count("duplicates") >= 15, "{variant:?}, {action:?}: {kinds:?}");
        assert!(count("reorders") >= 5, "{variant:?}, {action:?}: {kinds:?}");
    }
}

#[test]
fn a_changed_value_is_received() {
    for (variant, action) in cases() {
        let (mut changed, mut failed) = (0, 0);
        for number in 0..14 {
            match with(variant, &[action], &format!("link c0 -> c1 corrupts word {number}")) {
                Ok(done) => changed += u32::from(!is_right(&done)),
                // A header, or what the library itself puts into a message.
                Err(_) => failed += 1,
            }
        }
        assert!(
            changed > 0 && changed + failed > 6,
            "{variant:?}, {action:?}: {changed}, {failed}"
        );
    }
}

/// The first word of a link that no fault hits any more: the words that it carries.
fn words_carried(variant: Variant, actions: &[Action]) -> u32 {
    let is_whole = |number: &u32| {
        fault(variant, actions, &format!("link c0 -> c1 drops word {number}")).is_none()
    };
    (0..).find(is_whole).unwrap()
}

#[test]
fn clocks_words_and_dead_parts_are_of_the_whole_run() {
    let base = Variant { steps: false, active: false, rendezvous: false, half: false, depth: 2 };
    for variant in [base, Variant { rendezvous: true, ..base }, Variant { active: true, ..base }] {
        let first = [Action::Compiled, Action::Plain, Action::Round];
        let clocks = with(variant, &first, "").unwrap().1.clocks;
        let words = words_carried(variant, &first);
        for last in [Action::Compiled, Action::Set, Action::Plain, Action::Direct, Action::Round] {
            let all = [&first[..], &[last]].concat();
            // What happens after the first actions does not touch them, and is there for the last one.
            let late = format!("link c0 -> c1 dead at {clocks}");
            assert_eq!(fault(variant, &first, &late), None);
            assert!(fault(variant, &all, &late).is_some(), "{variant:?}, {last:?}");
            let late = format!("link c0 -> c1 drops word {words}");
            assert_eq!(fault(variant, &first, &late), None);
            assert!(fault(variant, &all, &late).is_some(), "{variant:?}, {last:?}");
            assert!(words_carried(variant, &all) > words + 3);
            // Before the first word of the last action has come over the link.
            let whole = with(variant, &all, "").unwrap().1.clocks;
            let plan = format!("link c0 -> c1 stalled 5000 at {}", clocks + 10);
            let late = with(variant, &all, &plan).unwrap().1.clocks;
            assert!(late > whole + 3000, "{variant:?}, {last:?}: {whole}, {late} clocks");
            // A stall is over although another engine had its end.
            for at in [0, clocks / 3, clocks / 2] {
                let plan =
                    format!("cell c1 stalled 200 at {at}\nlink c0 -> c1 stalled 300 at {at}");
                assert_eq!(fault(variant, &all, &plan), None, "{variant:?}, {last:?}, {plan}");
            }
        }
        // Context switches are counted whatever is active before them.
        let all = [Action::Plain, Action::Compiled, Action::Round, Action::Compiled];
        let switches = with(variant, &all, "").unwrap().1.switches;
        for switch in 0..switches {
            let kind = fault(variant, &all, &format!("cell c4 misses switch {switch}"));
            assert_eq!(kind, Some(FaultKind::Absent { cell: CellId(4), switch }));
        }
        assert_eq!(fault(variant, &all, &format!("cell c4 misses switch {switches}")), None);
    }
}

/// Cells that only test are no deadlock while a stall lasts, and do not wait for what is dead.
#[test]
fn polling_cells_wait_for_stalls_and_not_for_dead_parts() {
    let ring = Image::new(Machine::from_spec("ring:3").unwrap().into(), Vec::new()).unwrap();
    let run = |plan: &str| {
        World::new(ring.clone()).faults(plan.parse().unwrap()).try_run(|cell| {
            let mut words = [0u64; 9];
            match cell.id() {
                CellId(0) => cell.msg_send(CellId(1), &[7u64; 9])?,
                CellId(1) => while !cell.msg_try_receive(CellId(0), &mut words)? {},
                _ => {}
            }
            Ok(words[8])
        })
    };
    for part in ["link c0 -> c1", "cell c1", "cell c0"] {
        let (words, report) = run(&format!("{part} stalled 40000")).unwrap();
        assert!(words == [0, 7, 0] && report.clocks > 40_000, "{part}");
        let error = run(&format!("{part} dead")).unwrap_err();
        let RunError::Fault(fault) = error else { panic!("{part}: {error}") };
        let FaultKind::Deadlock { waits, .. } = fault.kind else { panic!("{part}: {fault}") };
        assert!(waits.last().unwrap().cause.is_stopped_part(), "{part}");
    }
    let error = run("link c0 -> c1 drops words from 0").unwrap_err().to_string();
    assert!(error.contains("received 0 of the"), "{error}");
}

/// A word that is lost and another one that comes twice: the number is right.
#[test]
fn words_in_the_places_of_others_are_noticed() {
    let variant = cases()[0].0;
    let plan = "link c0 -> c1 drops word 4\nlink c0 -> c1 duplicates word 6";
    let kind = fault(variant, &[Action::Plain], plan);
    assert!(matches!(kind, Some(FaultKind::MisplacedWord { expected: 4, .. })), "{kind:?}");
}

#[test]
fn messages_are_named() {
    let variant = cases()[0].0;
    let steps = Variant { steps: true, ..variant };
    for (variant, action, name) in [
        (variant, Action::Set, "s, clock"),
        (variant, Action::Plain, "message from c0 to c1, clock"),
        (variant, Action::Direct, "direct message from c0 to c1, clock"),
        (variant, Action::Round, "packet of an epoch from c0 to c1, clock"),
        (steps, Action::Compiled, "s, messages of steps, clock"),
        (Variant { active: true, ..variant }, Action::Round, "round of an epoch, clock"),
    ] {
        let error = with(variant, &[action], "link c0 -> c1 dead").unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("is dead"), "{action:?}: {error}");
    }
}

/// Whether a plan changes values.
fn corrupts(plan: &FaultPlan) -> bool {
    plan.to_string().contains("corrupts")
}

fn variants() -> impl Strategy<Value = Variant> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 1u32..5).prop_map(
        |(steps, active, rendezvous, half, depth)| Variant {
            steps,
            active,
            rendezvous,
            half,
            depth,
        },
    )
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let one = prop_oneof![
        Just(Action::Compiled),
        Just(Action::Set),
        Just(Action::Plain),
        Just(Action::Direct),
        Just(Action::Round),
    ];
    prop::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Every run ends: with words that are right, or with a fault.
    #[test]
    fn no_plan_hangs(
        variant in variants(), actions in actions(), seed in any::<u64>(), faults in 1usize..4,
    ) {
        let (whole, report) = run(variant, &actions, &FaultPlan::default()).unwrap();
        prop_assert!(is_right(&(whole, report.clone())));
        let extent =
            FaultExtent { clocks: report.clocks, words: 60, switches: report.switches };
        let plan = FaultPlan::draw(&variant.machine(), &extent, seed, faults);
        match run(variant, &actions, &plan) {
            Ok(done) => prop_assert!(is_right(&done) || corrupts(&plan), "{plan}"),
            Err(RunError::Fault(_)) => {}
            Err(other) => prop_assert!(corrupts(&plan), "{plan}{other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The same for any step plan, and messages of the program between its exchanges.
    #[test]
    fn no_plan_hangs_step_plans(seed in any::<u64>(), faults in 1usize..4) {
        let steps = (seed..).map(step_cases::case).find(|steps| {
            let words: u64 = steps.messages().iter().map(|message| message.words()).sum();
            steps.machine().agent_count() <= 20 && words <= 2000
        });
        let world = World::new(step_cases::image(&steps.unwrap()));
        let (_, report) = world.try_run(wrong_rows).unwrap();
        let extent = FaultExtent { clocks: report.clocks, words: 200, switches: 0 };
        let plan = FaultPlan::draw(world.image().machine(), &extent, seed, faults);
        match world.faults(plan.clone()).try_run(wrong_rows) {
            Ok((wrong, _)) => {
                prop_assert!(wrong.iter().all(|&wrong| wrong == 0) || corrupts(&plan), "{plan}");
            }
            Err(RunError::Fault(_)) => {}
            Err(other) => prop_assert!(corrupts(&plan), "{plan}{other}"),
        }
    }
}
