//! Faults of the hardware act: a stall costs the clocks that it lasts and no word, a dead part is named.

use crate::build;
use std::collections::BTreeSet;
use std::sync::Arc;

use conset_fabric::{
    Detection, Fabric, FabricOptions, Fault, FaultKind, FaultPlan, FaultPlanError, SetBuffers,
    WaitCause,
};
use conset_ir::{CellId, ConnectionId, Image, LinkId, Machine};

/// The clocks of the exchange of the first set, after which every word has to be in place.
fn run(image: &Image, plan: &str) -> Result<u64, Fault> {
    let plan: FaultPlan = plan.parse().expect("a plan");
    let fabric = Fabric::load(image.clone(), FabricOptions::default());
    let mut fabric = fabric.with_faults(&plan).expect("parts of the machine");
    let set = &image.sets()[0].set;
    let mut data = SetBuffers::new(set);
    let value = |x: u32, word: usize| (u64::from(x) << 32) + u64::try_from(word).unwrap() + 1;
    for x in 0..u32::try_from(set.len()).unwrap() {
        let words = data.outgoing(ConnectionId(x)).iter_mut().enumerate();
        words.for_each(|(word, place)| *place = value(x, word));
    }
    let report = fabric.exchange(0, &mut data)?;
    assert_eq!(report.words, set.words(), "every word has arrived");
    for x in 0..u32::try_from(set.len()).unwrap() {
        let mut words = data.incoming(ConnectionId(x)).iter().enumerate();
        assert!(words.all(|(word, found)| *found == value(x, word)), "x{x}");
    }
    Ok(report.clocks)
}

/// c0 to c2 over c1, on a ring.
fn line(words: u32) -> (Arc<Machine>, Image) {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 2, words)]));
    (machine, image)
}

/// The route of x0, which may lead over c1 or c3.
fn route(machine: &Machine) -> Vec<LinkId> {
    build::route(machine, CellId(0), CellId(2))
}

fn last_wait(fault: &Fault) -> (CellId, WaitCause) {
    let FaultKind::Deadlock { waits, closed: false, .. } = &fault.kind else {
        panic!("not a chain of waits: {fault}");
    };
    let last = waits.last().expect("somebody waits");
    (last.cell, last.cause)
}

#[test]
fn a_plan_without_effect_changes_nothing() {
    let (machine, image) = line(500);
    let clocks = run(&image, "").unwrap();
    let other = if machine.link(route(&machine)[0]).target == CellId(1) { "c3" } else { "c1" };
    for plan in [
        format!("cell {other} dead"),
        format!("link {other} -> c0 stalled 100000"),
        "cell c0 dead at 1000000000".to_owned(),
        format!("cell {other} stalled 18446744073709551615 at 18446744073709551615"),
    ] {
        assert_eq!(run(&image, &plan), Ok(clocks), "{plan}");
    }
}

#[test]
fn a_stall_costs_its_clocks() {
    let (machine, image) = line(500);
    let clocks = run(&image, "").unwrap();
    let ends = |link: LinkId| (machine.link(link).source, machine.link(link).target);
    // In mid-stream, and as long as there are words to come: the rate is that of the slowest part.
    for row in route(&machine).into_iter().map(ends) {
        let stalled = run(&image, &format!("link {} -> {} stalled 700 at 900", row.0, row.1));
        let late = stalled.unwrap() - clocks;
        assert!((690..=710).contains(&late), "{row:?}: {late} clocks later");
    }
    for cell in ["c0", "c2"] {
        let stalled = run(&image, &format!("cell {cell} stalled 700 at 900"));
        let late = stalled.unwrap() - clocks;
        assert!((690..=710).contains(&late), "{cell}: {late} clocks later");
    }
    // Two stalls of the same cell, one within the other, are as the longer one.
    let one = run(&image, "cell c0 stalled 700 at 900");
    assert_eq!(run(&image, "cell c0 stalled 700 at 900\ncell c0 stalled 100 at 1000"), one);
    // From the beginning: what is left of the stall after the switch.
    let switch = machine.parameters().switch_clocks();
    let late = run(&image, &format!("cell c0 stalled {}", switch + 300)).unwrap() - clocks;
    assert!((295..=305).contains(&late), "{late} clocks later");
    assert_eq!(run(&image, &format!("cell c0 stalled {switch}")), Ok(clocks), "over by then");
}

#[test]
fn a_dead_link_is_named() {
    let (machine, image) = line(500);
    for link in route(&machine) {
        let (source, target) = (machine.link(link).source, machine.link(link).target);
        for at in ["", " at 1000"] {
            let fault = run(&image, &format!("link {source} -> {target} dead{at}")).unwrap_err();
            let (cell, cause) = last_wait(&fault);
            assert_eq!(cell, source, "{fault}");
            assert!(matches!(cause, WaitCause::DeadLink { link: dead, .. } if dead == link));
            assert!(fault.to_string().ends_with(&format!("{link} is dead")), "{fault}");
        }
    }
    // All words fit into the channels, so that the sender has finished.
    let (machine, image) = line(1);
    let link = route(&machine)[1];
    let (source, target) = (machine.link(link).source, machine.link(link).target);
    let fault = run(&image, &format!("link {source} -> {target} dead")).unwrap_err();
    assert!(matches!(last_wait(&fault).1, WaitCause::DeadLink { link: dead, .. } if dead == link));
}

#[test]
fn a_dead_cell_is_named() {
    let (machine, image) = line(500);
    let through = machine.link(route(&machine)[0]).target;
    for at in ["", " at 1000"] {
        for cell in [CellId(0), CellId(2)] {
            let fault = run(&image, &format!("cell {cell} dead{at}")).unwrap_err();
            let waits = fault.to_string();
            assert!(waits.contains("is dead"), "{waits}");
            let (place, cause) = last_wait(&fault);
            match cause {
                WaitCause::DeadCell { .. } => assert_eq!(place, cell, "{waits}"),
                // The first operation waits for the link into the cell, which is dead too.
                WaitCause::DeadLink { link, .. } => assert_eq!(machine.link(link).target, cell),
                other => panic!("{other:?}"),
            }
        }
        let fault = run(&image, &format!("cell {through} dead{at}")).unwrap_err();
        assert!(matches!(last_wait(&fault).1, WaitCause::DeadLink { .. }), "{fault}");
    }
}

#[test]
fn each_word_has_another_inverted_bit() {
    let (_, image) = line(32);
    let options = FabricOptions::default().detection(Detection::Plain);
    let plan = "link c0 -> c1 corrupts words from 0\nlink c0 -> c3 corrupts words from 0";
    let fabric = Fabric::load(image.clone(), options);
    let mut fabric = fabric.with_faults(&plan.parse().unwrap()).unwrap();
    let mut data = SetBuffers::new(&image.sets()[0].set);
    fabric.exchange(0, &mut data).unwrap();
    let bits: BTreeSet<u64> = data.incoming(ConnectionId(0)).iter().copied().collect();
    assert_eq!(bits, (0..32).map(|bit| 1 << bit).collect());
}

#[test]
fn nobody_waits_for_a_stall_that_is_still_to_come() {
    let (_, image) = line(500);
    let dead = run(&image, "cell c2 dead at 900");
    assert!(dead.is_err());
    assert_eq!(run(&image, "cell c2 dead at 900\ncell c0 stalled 50 at 100000"), dead);
}

/// Every link and every cell, dead or stalled at every clock, also within a context switch and between phases:
/// no hang, and all words or a name.
#[test]
fn every_clock_of_a_small_exchange() {
    for (duplex, channels, setup) in [("full", 40, 0), ("half", 40, 3), ("full", 3, 2)] {
        let machine = build::machine("torus:3x2", |p| {
            p.set("duplex", duplex).unwrap();
            (p.channels_per_cell, p.channel_depth, p.stream_setup) = (channels, 2, setup);
            (p.t_sync, p.t_phase) = (5, 7);
        });
        let image = build::build(&machine, build::all_to_all(6, 3));
        assert_eq!(image.sets()[0].phases.len() > 1, channels == 3);
        let clocks = run(&image, "").unwrap();
        let links = (0..machine.link_count()).map(|row| machine.link(LinkId::from_index(row)));
        let links = links.map(|link| format!("link {} -> {}", link.source, link.target));
        let parts = links.chain(machine.cells().map(|cell| format!("cell {cell}")));
        let (mut runs, mut later, mut dead) = (0, 0, 0);
        for part in parts {
            for at in 0..=clocks {
                runs += 1;
                // Another order of the words may even be faster, so that only the words are certain.
                let stalled = run(&image, &format!("{part} stalled 40 at {at}")).unwrap();
                later += u64::from(stalled > clocks);
                if let Err(fault) = run(&image, &format!("{part} dead at {at}")) {
                    assert!(fault.to_string().contains("is dead"), "{part} at {at}: {fault}");
                    dead += 1;
                }
            }
        }
        assert!(later > runs / 4 && dead > runs / 4, "{later} later and {dead} dead of {runs}");
    }
}

#[test]
fn errors_of_plans() {
    let error = |text: &str| text.parse::<FaultPlan>().unwrap_err().to_string();
    let ways = "`dead`, `stalled CLOCKS`, `slow CLOCKS`, `misses switch N`, `late CLOCKS at switch N`, \
                `keeps context at switch N` or `loads PHASE at switch N`";
    for (text, expected) in [
        ("\n# a\nwire c0", "line 3: expected `link` or `cell`, found `wire`".to_owned()),
        ("cell 3 dead", "line 1: expected a cell such as c3, found `3`".to_owned()),
        ("cell c3 # dead", format!("line 1: expected {ways}, found the end of the line")),
        ("cell c3 ill", format!("line 1: expected {ways}, found `ill`")),
        (
            "cell c3 stalled",
            "line 1: expected a number of clocks, found the end of the line".into(),
        ),
        ("cell c3 stalled -1", "line 1: expected a number of clocks, found `-1`".into()),
        ("cell c3 dead 5", "line 1: expected `at CLOCK` or the end of the line, found `5`".into()),
        ("cell c3 dead at 5 6", "line 1: expected the end of the line, found `6`".into()),
        (
            "link c0 c1 dead",
            "line 1: expected `->` and the cell to which the link leads, found `c1`".into(),
        ),
        (
            "link c0 -> c1 breaks",
            "line 1: expected `dead`, `stalled CLOCKS`, `drops`, `duplicates`, `corrupts` or `reorders`, found \
             `breaks`"
                .into(),
        ),
        (
            "link c0 -> c1 drops 3",
            "line 1: expected `word N` or `words from N`, found `3`".into(),
        ),
        ("link c0 -> c1 drops words 3", "line 1: expected `from N`, found `3`".into()),
        ("link c0 -> c1 drops word x", "line 1: expected a number, found `x`".into()),
        ("cell c0 late 5 at 3", "line 1: expected `switch N`, found `3`".into()),
        ("cell c0 loads 3 at switch 1", "line 1: expected a phase such as p1, found `3`".into()),
        ("cell c0 keeps context", "line 1: expected `at switch N`, found the end of the line".into()),
    ] {
        assert_eq!(error(text), expected);
    }
    let (_, image) = line(1);
    let load = |plan: &str| {
        let fabric = Fabric::load(image.clone(), FabricOptions::default());
        fabric.with_faults(&plan.parse().unwrap()).map(|_| ()).unwrap_err()
    };
    for plan in
        ["link c0 -> c2 dead", "link c0 -> c0 dead", "link c0 -> c9 dead", "link c9 -> c0 dead"]
    {
        assert!(matches!(load(plan), FaultPlanError::NoLink(_)), "{plan}");
    }
    assert!(matches!(load("cell c4 stalled 1"), FaultPlanError::NoCell(_)));
    for plan in ["cell c9 slow 1", "cell c4 misses switch 0"] {
        assert!(matches!(load(plan), FaultPlanError::NoCell(_)), "{plan}");
    }
    let text = "link c0 -> c1 stalled 5\ncell c1 dead at 7\ncell c1 slow 3 at 9\ncell c1 slow 4\n\
                link c0 -> c1 drops word 17\nlink c0 -> c1 duplicates words from 3\n\
                link c0 -> c1 corrupts word 0\nlink c0 -> c1 reorders word 18446744073709551615\n\
                cell c1 misses switch 2\ncell c1 late 500 at switch 2\ncell c1 keeps context at switch 0\n\
                cell c1 loads p4 at switch 1\n";
    assert_eq!(text.parse::<FaultPlan>().unwrap().to_string(), text);
}
