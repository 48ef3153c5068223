//! Pages of small programs: what is in them, their size limit, texts that look like markup.

use std::io::Read;
use std::sync::Arc;

use base64::Engine;
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{Compiled, Compiler};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
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
        assert_eq!(blocks == [true; 5], page.left_out.is_empty(), "{:?}", page.left_out);
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
