//! Pages of small programs: what is in them, their size limit, texts that look like markup.

use std::io::Read;
use std::sync::Arc;

use base64::Engine;
use conset::profile;
use conset::steps::{CompiledSteps, StepCompiler};
use conset::verify::check_schedule;
use conset::{Compiled, Compiler};
use conset_ir::{
    CellId, Connection, ConnectionSet, LinkId, Machine, PhaseRoutes, PhaseTimes, Routing, Schedule,
    SetSchedule, Slot, Timetable,
};
use conset_view::{Page, PageOptions, Program, Shown, page};
use serde_json::Value;

fn machine(spec: &str) -> Arc<Machine> {
    Arc::new(Machine::from_spec(spec).unwrap())
}

/// Every cell sends to the one `by` further.
fn shift(machine: &Machine, name: &str, by: u32) -> ConnectionSet {
    let cells = u32::try_from(machine.agent_count()).unwrap();
    let connection = |cell| {
        let mut connection = Connection::new(CellId(cell), CellId((cell + by) % cells), 10 + cell);
        connection.name = (cell == 1).then(|| format!("{name}.first").into());
        connection
    };
    ConnectionSet::new(name, (0..cells).map(connection).collect()).unwrap()
}

fn compiled(machine: &Arc<Machine>, sets: impl IntoIterator<Item = ConnectionSet>) -> Compiled {
    Compiler::new(machine).seed(1).compile_sets(sets).unwrap()
}

fn steps(machine: &Arc<Machine>, set: ConnectionSet) -> CompiledSteps {
    StepCompiler::new(machine).seed(1).compile(&set.into(), &mut |_| ()).unwrap()
}

fn shown<'a>(name: &'a str, program: Program<'a>) -> Shown<'a> {
    Shown { name, program, halo: None, surface: None }
}

fn of_phases(compiled: &Compiled, options: &PageOptions) -> Page {
    page(&[shown("a.json", Program::Phases(compiled))], options).unwrap()
}

/// The texts of the script elements of data, by id.
fn data<'a>(page: &'a Page, id: &str) -> Option<&'a str> {
    let start = page.html.find(&format!("id=\"{id}\">"))? + id.len() + 6;
    Some(&page.html[start..start + page.html[start..].find("</script>").unwrap()])
}

fn head(page: &Page) -> Value {
    serde_json::from_str(data(page, "head").unwrap()).unwrap()
}

/// A column as the page's program reads it; of differences the stored values.
fn column(page: &Page, block: &str, name: &str) -> Vec<u64> {
    let text = data(page, &format!("block-{block}")).unwrap();
    let compressed = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
    let head = head(page);
    let columns = head["blocks"][block]["columns"].as_array().unwrap();
    let column = columns.iter().find(|column| column["name"] == name).unwrap();
    let number = |key: &str| usize::try_from(column[key].as_u64().unwrap()).unwrap();
    let (count, width, offset) = (number("count"), number("width"), number("offset"));
    let byte = |row: usize, plane: usize| u64::from(bytes[offset + plane * count + row]);
    (0..count).map(|row| (0..width).map(|plane| byte(row, plane) << (8 * plane)).sum()).collect()
}

#[test]
fn the_page_states_what_the_schedule_does() {
    let machine = machine("torus:4x4");
    let compiled = compiled(&machine, [shift(&machine, "shift", 5)]);
    let page = of_phases(&compiled, &PageOptions::default());
    assert!(page.left_out.is_empty(), "{:?}", page.left_out);
    let set = &compiled.schedule().sets()[0];
    let phases = set.timetable.routing().phases();
    let summary = &head(&page)["schedules"][0]["sets"][0]["summary"];
    assert_eq!(summary["predicted_clocks"], set.predicted_clocks);
    assert_eq!(summary["phases"], phases.len());
    let starts: Vec<u64> =
        set.timetable.phases().iter().flat_map(|p| &p.slots).map(|slot| slot.start).collect();
    assert_eq!(column(&page, "0.0.streams", "stream_start"), starts);
    // Routes are positions among the links of a cell: followed, they are the routes.
    let choices = column(&page, "0.0.routes", "link_choice");
    let mut choice = choices.iter();
    for route in phases.iter().flat_map(|phase| phase.iter()) {
        let mut cell = route.cells[0];
        for &link in route.links() {
            let at = usize::try_from(*choice.next().unwrap()).unwrap();
            assert_eq!(machine.outgoing(cell)[at], link);
            cell = machine.link(link).target;
        }
    }
    assert!(choice.next().is_none());
    let words: u64 = column(&page, "0.0.phases", "link_words").iter().sum();
    let hops = phases.iter().flat_map(|p| p.iter()).map(|r| u64::from(r.words) * r.hops() as u64);
    assert_eq!(words, hops.sum::<u64>());
}

#[test]
fn names_cannot_become_markup() {
    let machine = machine("ring:6");
    let name = "</script><script>alert(1)</script><!--";
    let compiled = compiled(&machine, [shift(&machine, "shift", 1)]);
    let page = page(&[shown(name, Program::Phases(&compiled))], &PageOptions::default()).unwrap();
    assert!(!page.html.contains("alert(1)</script>"));
    assert!(!page.html.contains("<!--"), "names make no comments");
    let head = head(&page);
    assert_eq!(head["title"], name);
    assert_eq!(head["schedules"][0]["name"], name);
    let title = &page.html[page.html.find("<title>").unwrap() + 7..];
    assert!(title.starts_with("&lt;/script&gt;&lt;script&gt;alert(1)"), "{}", &title[..60]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let machine = machine("torus:4x4");
    let sets = || [shift(&machine, "one", 1), shift(&machine, "three", 3)];
    let pages = [(); 2].map(|()| of_phases(&compiled(&machine, sets()), &PageOptions::default()));
    assert_eq!(pages[0].html, pages[1].html);
}

#[test]
fn what_does_not_fit_is_left_out_in_order() {
    let machine = machine("torus:8x8");
    let compiled = compiled(&machine, [shift(&machine, "shift", 11)]);
    let whole = of_phases(&compiled, &PageOptions::default());
    let mut before = usize::MAX;
    let mut levels = Vec::new();
    // Every limit from the whole page down to nothing: the page has what its sentences do not name.
    for limit in (0..=whole.html.len() + 40_000).rev().step_by(997) {
        let page = of_phases(&compiled, &PageOptions::default().size_limit(limit));
        let has = |name: &str| data(&page, &format!("block-0.0.{name}")).is_some();
        assert!(has("phases") && has("connections") != has("pairs"));
        assert!(!has("routes") || has("streams"), "routes need their streams");
        assert!(!has("streams") || has("connections"), "streams need their connections");
        assert_eq!(head(&page)["left_out"].as_array().unwrap().len(), page.left_out.len());
        let blocks = ["connections", "streams", "routes", "names", "details"].map(has);
        // There is one phase, so `phase-ports` would have nothing that `ports` has not.
        let rest = ["ports", "path", "slack"].map(has);
        assert!(!rest[1] || has("streams"), "a path names streams");
        let all = blocks == [true; 5] && rest == [true; 3];
        assert_eq!(all, page.left_out.is_empty(), "{:?}", page.left_out);
        let count = blocks.iter().filter(|&&has| has).count();
        if count < before {
            levels.push(count);
        }
        before = count.min(before);
        assert!(page.html.len() <= whole.html.len() + 2000);
    }
    assert_eq!((levels.first(), levels.last()), (Some(&5), Some(&0)));
    assert!(levels.len() >= 4, "{levels:?}");
}

#[test]
fn a_program_of_no_sets_and_a_set_of_no_connections_have_pages() {
    let machine = machine("iwarp");
    let none = compiled(&machine, []);
    assert_eq!(
        head(&of_phases(&none, &PageOptions::default()))["schedules"][0]["sets"],
        Value::Array(vec![])
    );
    let empty = compiled(&machine, [ConnectionSet::new("empty", vec![]).unwrap()]);
    let page = of_phases(&empty, &PageOptions::default());
    assert_eq!(column(&page, "0.0.streams", "stream_start"), [0u64; 0]);
    assert_eq!(column(&page, "0.0.phases", "link_words").len(), 256);
}

#[test]
fn messages_of_a_step_plan_end_at_the_predicted_clock() {
    let machine = machine("fat-tree:16");
    let compiled = steps(&machine, shift(&machine, "shift", 5));
    let page = page(&[shown("steps", Program::Steps(&compiled))], &PageOptions::default()).unwrap();
    assert_eq!(head(&page)["schedules"][0]["kind"], "steps");
    let starts = column(&page, "0.0.streams", "stream_start");
    let clocks = column(&page, "0.0.streams", "stream_duration");
    let end = starts.iter().zip(&clocks).map(|(start, clocks)| start + clocks).max();
    assert_eq!(end, compiled.schedule().sets()[0].predicted_clocks);
    let hops = column(&page, "0.0.routes", "stream_hops");
    assert_eq!(hops.len(), starts.len());
    assert!(hops.iter().all(|&hops| hops > 0));
}

#[test]
fn the_page_has_the_profile() {
    let machine = machine("torus:4x4");
    let pairs = (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let all = pairs.map(|(a, b)| Connection::new(CellId(a), CellId(b), 3 + (7 * a + b) % 11));
    let compiled = compiled(&machine, [ConnectionSet::new("all", all.collect()).unwrap()]);
    let page = of_phases(&compiled, &PageOptions::default());
    let set = &compiled.schedule().sets()[0];
    let expected = profile::of_model(set, &compiled.sets()[0].prediction);
    let stated = &head(&page)["schedules"][0]["sets"][0]["profile"];
    assert_eq!(stated["clocks"], expected.clocks);
    assert_eq!(stated["sides"], serde_json::to_value(&expected.sides).unwrap());
    assert_eq!(stated["slack"], serde_json::to_value(expected.critical_path.slack).unwrap());
    // Every block adds up to the clocks of all ports.
    let mut total = [0; 2];
    for name in profile::PortClocks::NAMES {
        let sums = column(&page, "0.0.profile", name);
        let ports = column(&page, "0.0.ports", name);
        assert_eq!(sums.iter().sum::<u64>(), ports.iter().sum::<u64>(), "{name}");
        total[0] += sums.iter().sum::<u64>();
        if expected.phases.len() > 1 {
            total[1] += column(&page, "0.0.phase-ports", name).iter().sum::<u64>();
        }
    }
    assert_eq!(total[0], 32 * expected.clocks);
    assert!(expected.phases.len() > 1 && total[1] == total[0], "{total:?}");
    // The critical path names streams by their rows.
    let segments = &expected.critical_path.segments;
    let streams: Vec<_> = set.timetable.routing().phases().iter().flat_map(|p| p.iter()).collect();
    let mut row = 0;
    for (difference, segment) in column(&page, "0.0.path", "path_stream").iter().zip(segments) {
        let step = i64::try_from(difference >> 1).unwrap();
        row += if difference & 1 == 0 { step } else { -step - 1 };
        let stream = streams[usize::try_from(row).unwrap()];
        assert_eq!((stream.connection, stream.words), (segment.connection, segment.words));
    }
    assert_eq!(column(&page, "0.0.path", "path_to").len(), segments.len());
    let slack = column(&page, "0.0.slack", "stream_slack");
    let zero = slack.iter().filter(|&&slack| slack == 0).count();
    assert_eq!((slack.len(), zero), (streams.len(), expected.critical_path.slack.zero));
}

/// The schedule with other routes and slots.
fn changed(
    schedule: &Schedule,
    route: impl Fn(usize, &mut Vec<CellId>, &mut Vec<LinkId>),
    slot: impl Fn(usize, &mut Slot),
) -> Schedule {
    let sets = schedule.sets().iter().map(|set| {
        let old = set.timetable.routing();
        let (mut phases, mut times) = (Vec::new(), Vec::new());
        for (routes, of) in old.phases().iter().zip(set.timetable.phases()) {
            let mut phase = PhaseRoutes::new();
            let mut slots = of.slots.clone();
            for (row, old) in routes.iter().enumerate() {
                let (mut cells, mut links) = (old.cells.to_vec(), old.links().to_vec());
                route(row, &mut cells, &mut links);
                let channels = vec![old.channels[0]; cells.len()];
                phase.push(old.connection, old.words, &cells, &links, &channels).unwrap();
                slot(row, &mut slots[row]);
            }
            phases.push(phase);
            times.push(PhaseTimes { makespan: of.makespan, slots });
        }
        let routing = Routing::new(old.machine().clone(), old.set().clone(), phases).unwrap();
        SetSchedule { timetable: Timetable::new(routing, times).unwrap(), ..set.clone() }
    });
    let sets = sets.collect();
    Schedule::new(schedule.machine().clone(), sets, None).unwrap()
}

#[test]
fn refused_schedules_have_pages_too() {
    let machine = machine("torus:4x4");
    let compiled = compiled(&machine, [shift(&machine, "shift", 5)]);
    let schedule = compiled.schedule();
    let as_is = |_: usize, _: &mut Vec<CellId>, _: &mut Vec<LinkId>| ();
    let on_time = |_: usize, _: &mut Slot| ();
    let wrong = [
        changed(schedule, |_, _, links| links.fill(LinkId::NONE), on_time),
        changed(schedule, |_, _, links| links.fill(LinkId(0)), on_time),
        changed(schedule, |_, cells, _| cells.reverse(), on_time),
        changed(
            schedule,
            |row, cells, links| {
                cells.truncate(1);
                cells[0] = CellId(u32::try_from(row % 16).unwrap());
                links.clear();
            },
            on_time,
        ),
        changed(schedule, as_is, |_, slot| *slot = Slot { start: u64::MAX - 2, duration: 9 }),
        changed(schedule, as_is, |row, slot| slot.duration = u64::try_from(row % 2).unwrap()),
    ];
    for (row, schedule) in wrong.iter().enumerate() {
        let rejection = check_schedule(schedule).expect_err("it is wrong");
        let program = Program::RefusedPhases(schedule, &rejection);
        let page = page(&[shown("wrong", program)], &PageOptions::default()).unwrap();
        let head = head(&page);
        let head = &head["schedules"][0];
        assert_eq!(head["refused"]["total_violations"], rejection.total());
        let first = &rejection.violations()[0];
        assert_eq!(head["refused"]["violations"][0]["rule"], first.rule.name());
        let set = &head["sets"][0];
        assert_eq!(set["summary"]["connections"], 16);
        // What the checker has not accepted is not repeated.
        assert!(set["summary"].get("predicted_clocks").is_none() && set.get("profile").is_none());
        assert_eq!(set["bounds"], Value::Array(vec![]));
        let hops: u64 = column(&page, "0.0.routes", "stream_hops").iter().sum();
        let drawn = column(&page, "0.0.routes", "route_link").len();
        assert_eq!(usize::try_from(hops).unwrap(), drawn);
        assert_eq!(drawn == 0, row == 0 || row == 3);
    }
}

#[test]
fn two_schedules_are_compared() {
    let machine = machine("torus:4x4");
    let a = compiled(&machine, [shift(&machine, "shift", 5)]);
    let b = compiled(&machine, [shift(&machine, "shift", 6)]);
    let of = |a, b| page(&[shown("a", a), shown("b", b)], &PageOptions::default()).unwrap();
    let page = of(Program::Phases(&a), Program::Phases(&b));
    let head = head(&page);
    assert_eq!(head["diff"]["kind"], "phases");
    // One connection has a name, by which it is matched although its ends differ.
    assert_eq!(head["diff"]["sets"][0]["removed"]["total"], 15);
    assert_eq!(head["diff"]["sets"][0]["changed"]["total"], 1);
    assert!(data(&page, "block-1.0.routes").is_some());
    // Schedules of two kinds are shown, but not compared.
    let steps = steps(&machine, shift(&machine, "shift", 5));
    let page = of(Program::Phases(&a), Program::Steps(&steps));
    assert!(self::head(&page).get("diff").is_none());
}
