//! The paper's tables: what must be exact, and bands around what was measured.
//!
//! The bands say where our residuals are (`docs/fidelity.md` goes through them), so that a change
//! that moves one is seen. They are not the goals; where a goal is missed the band says so too.

use crate::shared_meshes;
use conset::reproduce::beside::{Beside, Exhibit, PaperTable};
use conset::reproduce::{Compared, c3, cm5, figures, meshes, paper, patterns};

fn row(table: usize, at: usize) -> patterns::PatternRow {
    let row = patterns::row(&paper::PATTERNS[table - 1], at, &mut |_| ()).unwrap();
    assert!(row.payload_ok);
    for predicted in [&row.conset_predicted, &row.message_predicted] {
        assert!(predicted.error() < 1.0, "table {table}, row {at}: {predicted:?}");
    }
    row
}

#[track_caller]
fn within(compared: &Compared, least: f64, most: f64) {
    let error = compared.error_percent.unwrap();
    assert!((least..=most).contains(&error), "{error:.1} % is not in {least} to {most}");
}

#[test]
fn table_1_on_which_the_set_up_was_calibrated() {
    for at in 0..4 {
        let row = row(1, at);
        assert_eq!(row.phases, 1);
        within(&row.conset_measured, -3.0, 3.0);
        within(&row.message_measured, -12.0, 0.0);
    }
}

/// The goal of 15 % is met by the shortest exchange only.
#[test]
fn table_2_and_how_far_the_routers_share_goes() {
    for at in 0..4 {
        let row = row(2, at);
        assert_eq!(row.phases, 2);
        within(&row.conset_measured, -15.0, 15.0);
        within(row.stated_phases_measured.as_ref().unwrap(), -24.0, -8.0);
        within(&row.message_measured, -6.0, 4.0);
    }
}

/// The goal of 15 % is missed by the shortest exchange. The longest takes too long for a test.
#[test]
fn table_3_all_to_all() {
    for at in 0..3 {
        let row = row(3, at);
        assert!((27..=30).contains(&row.phases));
        within(&row.conset_measured, -15.0, 15.0);
        within(&row.message_measured, -14.0, 16.0);
    }
}

fn mesh(name: &str) -> Option<meshes::MeshRow> {
    let origin = meshes::ORIGINS.iter().find(|origin| origin.name == name).unwrap();
    let bytes = match origin.file {
        None => None,
        Some(file) => Some((file, shared_meshes::bytes(file)?)),
    };
    let file = bytes.as_ref().map(|(name, bytes)| (*name, bytes.as_slice()));
    let row = meshes::row(origin, file, &mut |_| ()).unwrap();
    assert!(row.payload_ok);
    Some(row)
}

/// The counts are the paper's; the exchange is less than half of its, and so is the time.
#[test]
fn the_meshes_have_the_papers_counts() {
    for name in ["m11k", "c10k"] {
        let Some(row) = mesh(name) else { continue };
        let structure = &row.structure;
        assert_eq!(structure.elements.error(), 0.0);
        assert_eq!(structure.nodes.error(), 0.0);
        assert_eq!(structure.phases.ours, 2);
        let paper = structure.words_per_cell.paper.unwrap();
        assert!(2 * structure.words_per_cell.ours[1] < paper[1] + 2);
        within(&row.conset_measured, -60.0, -40.0);
        // What the fabric adds to the paper's cost model: it added 12 and 15 % there.
        let added = row.conset_measured.ours as f64 / row.conset_predicted.ours as f64;
        assert!((1.0..1.15).contains(&added), "{added}");
        let bars: u64 = row.histogram.iter().map(|bar| bar.connections).sum();
        assert!(bars > 200);
    }
}

#[test]
fn the_row_without_a_counterpart_is_compared_with_nothing() {
    let Some(row) = mesh("sf10") else { return };
    assert_eq!(row.structure.elements.ours, 35025);
    assert_eq!((row.conset_measured.paper, row.conset_measured.error_percent), (None, None));
    assert!(row.paper_bandwidth.is_none());
    let [five, six] = figures::of_meshes(&[row]);
    assert!(five.svg.contains("sf10") && six.svg.contains("sf10"));
}

/// The paper's words per cell count one direction: both ways they would not fill its own
/// prediction, which is the sum over phases of the most words that a cell moves in one.
#[test]
fn the_papers_words_per_cell_count_one_direction() {
    for mesh in paper::MESHES {
        let moved = (mesh.conset_predicted - mesh.phases * paper::PREDICTED_SWITCH) / 10;
        assert!(moved >= 2 * mesh.words_per_cell[1], "{}", mesh.name);
        if mesh.phases == 2 {
            assert!(moved > 2 * mesh.words_per_cell[1], "{}", mesh.name);
        }
        let speed = 64.0 * mesh.words_per_cell[1] as f64 * 4.0 / mesh.conset_measured as f64 * 20.0;
        assert!((speed / mesh.bandwidth - 1.0).abs() < 0.01, "{}", mesh.name);
    }
}

/// The greatest error in percent of a column of a table.
fn worst(table: &PaperTable, row: usize) -> f64 {
    let errors = table.rows[row].cells.iter().filter_map(|cell| cell.error_percent);
    errors.map(f64::abs).fold(0.0, f64::max)
}

/// Three rows of Figure 3 to the digits that the paper prints, two within 2 %; the model of any
/// connection set has the formulas of Figure 2.
#[test]
fn c3_charges_the_units_of_the_papers_figures() {
    let formulas = &c3::figures(Some(2))[0];
    assert!((0..4).all(|row| worst(formulas, row) < 1e-9), "{formulas:?}");
    let units = &c3::figures(Some(3))[0];
    for (row, name, per_byte) in
        [(0, "1-lev-dir", "0.55"), (2, "2-lev-rec", "1.23"), (3, "3-lev-sq", "0.93")]
    {
        assert_eq!(units.rows[row].name, name);
        assert_eq!(format!("{:.2}", units.rows[row].cells[1].ours), per_byte);
    }
    for row in [1, 4] {
        assert!(worst(units, row) < 2.0, "{:?}", units.rows[row]);
    }
    let exact = |row: usize| [0, 3].map(|column| units.rows[row].cells[column].error_percent);
    assert!((0..5).all(|row| exact(row) == [Some(0.0); 2]));
}

/// With 20 patterns, 26 of 32 numbers are within 10 %; the fastest of the four is the paper's in each
/// row. A few patterns are enough to see that nothing changed.
#[test]
fn the_cm5s_irregular_patterns() {
    let [times, _, ours] = cm5::table_4(4).unwrap();
    let errors =
        times.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.error_percent.unwrap());
    let errors: Vec<f64> = errors.map(f64::abs).collect();
    let within = |limit: f64| errors.iter().filter(|&&error| error <= limit).count();
    assert!(within(10.0) >= 22 && within(20.0) >= 29 && within(35.0) == 32, "{errors:?}");
    for row in &ours.rows {
        assert!(row.cells[1].ours <= 1.15 && row.cells[2].ours >= 1.04, "{row:?}");
    }
}

/// The schedules that the paper prints for 8 processors.
#[test]
fn the_cm5s_schedules_are_equal() {
    let schedules = cm5::schedules(None).unwrap();
    let steps = schedules.iter().map(|schedule| (schedule.number, schedule.steps.len()));
    assert_eq!(steps.collect::<Vec<_>>(), [(1, 7), (2, 3), (3, 7)]);
    for schedule in &schedules {
        assert!(schedule.is_equal(), "{schedule:?}");
        // Every processor is in each step once.
        for step in &schedule.steps {
            let mut ends: Vec<u32> = step.paper.iter().flat_map(|&(a, b)| [a, b]).collect();
            ends.sort_unstable();
            assert_eq!(ends, (0..8).collect::<Vec<_>>());
        }
    }
    assert_eq!(cm5::schedules(Some(2)).unwrap(), schedules[1..2]);
    assert!(cm5::schedules(Some(4)).unwrap().is_empty());
}

/// The stand-ins have the paper's density within 3 points and its mean bytes. Greedy is the fastest of
/// the paper's four algorithms and linear the slowest, as there.
#[test]
fn the_cm5s_solvers_have_the_papers_fastest_and_slowest() {
    let [stand_ins, times] = cm5::table_5().unwrap();
    assert_eq!((stand_ins.rows.len(), times.rows.len()), (5, 5));
    for (stand_in, row) in stand_ins.rows.iter().zip(&times.rows) {
        let [density, bytes] = [&stand_in.cells[1], &stand_in.cells[2]];
        assert!((density.ours - density.paper.unwrap()).abs() <= 3.0, "{stand_in:?}");
        assert!(bytes.error_percent.unwrap().abs() < 1.0, "{stand_in:?}");
        for time in [|cell: &Beside| cell.ours, |cell: &Beside| cell.paper.unwrap()] {
            let times: Vec<f64> = row.cells[..4].iter().map(time).collect();
            assert!((0..3).all(|at| times[3] < times[at]), "{row:?}");
            assert!((1..4).all(|at| times[0] > times[at]), "{row:?}");
        }
        assert!(row.cells[5].ours <= 1.1, "{row:?}");
    }
}

/// On 32 processors 10 of the 12 numbers of PEX, REX and BEX are within 10 %, LEX within 30 %; on 256,
/// LEX is the slowest. One number is calibrated.
#[test]
fn the_cm5s_transform() {
    let [few, many] = cm5::table_6().unwrap();
    let errors = |table: &PaperTable, columns: std::ops::Range<usize>| -> Vec<f64> {
        let cells = table.rows.iter().flat_map(|row| row.cells[columns.clone()].to_vec());
        cells.map(|cell| cell.error_percent.unwrap().abs()).collect()
    };
    let near = errors(&few, 1..4).into_iter().filter(|&error| error <= 10.0).count();
    assert!(near >= 10, "{few:?}");
    assert!(errors(&few, 0..1).into_iter().all(|error| error <= 30.0), "{few:?}");
    assert!(few.rows[2].cells[3].error_percent.unwrap().abs() < 1e-9, "calibrated");
    for row in &many.rows {
        assert!((1..4).all(|at| row.cells[0].ours > row.cells[at].ours), "{row:?}");
    }
}

/// What the paper says of its curves, as far as it holds: linear is much slower; recursive is the
/// fastest without data, and slower than pairwise with much.
#[test]
fn the_cm5s_complete_exchanges() {
    let all = cm5::exchanges(64).unwrap();
    let numbers: Vec<u8> = all.iter().map(|table| table.number).collect();
    assert_eq!(numbers, [10, 10, 11, 11, 12]);
    let holds = |table: &PaperTable| -> Vec<bool> {
        table.notes.iter().map(|note| note.ends_with("Ours: so.")).collect()
    };
    assert_eq!(holds(&all[1]), [true, false, true, false]);
    assert_eq!(holds(&all[2]), [true]);
    // The paper's formulas are within 5 % of the fabric, but for linear.
    for (formula, fabric) in all[0].rows.iter().zip(&all[1].rows).skip(1) {
        for column in [1, 3] {
            let ratio = formula.cells[column].ours / fabric.cells[column].ours;
            assert!((0.9..1.1).contains(&ratio), "{formula:?} {fabric:?}");
        }
    }
    let drawn = figures::curves(&all);
    let files: Vec<&str> = drawn.iter().map(|figure| figure.file.as_str()).collect();
    assert_eq!(
        files,
        ["figure10.svg", "figure10-2.svg", "figure11.svg", "figure11-2.svg", "figure12.svg"]
    );
    assert!(drawn.iter().all(|figure| figure.svg.contains("recursive")));
    assert_eq!(figures::curves(&c3::figures(None)).len(), 2, "Figures 4 and 6");
}

/// Messages within 1 % of the paper's formula; flat over distance; no difference for two at a time
/// and for four between clusters; about twice as long for sixteen long ones.
#[test]
fn the_cm5s_messages_control_network_and_elimination() {
    let all = [7, 8].map(|number| cm5::tables(Some(number)).unwrap()).concat();
    let all = [all, cm5::figures().unwrap()].concat();
    let find = |kind, number| {
        all.iter().find(|table| (table.kind, table.number) == (kind, number)).unwrap()
    };
    let sizes = find(Exhibit::Figure, 3);
    assert!((0..sizes.rows.len()).all(|row| worst(sizes, row) < 1.0));
    for row in &find(Exhibit::Figure, 5).rows {
        let times: Vec<f64> = row.cells.iter().map(|cell| cell.ours).collect();
        assert!(times.iter().all(|time| time / times[0] < 1.03), "{row:?}");
    }
    let contention = find(Exhibit::Figure, 6);
    for row in &contention.rows {
        assert!(row.cells[..2].iter().all(|cell| (0.97..1.03).contains(&cell.ours)), "{row:?}");
    }
    let longest = contention.rows.last().unwrap();
    assert!(longest.cells[2..].iter().all(|cell| (1.8..2.2).contains(&cell.ours)), "{longest:?}");
    assert!((0..5).all(|row| worst(find(Exhibit::Table, 7), row) < 0.25));
    assert!(worst(find(Exhibit::Table, 8), 0) < 0.1);
    assert!(worst(find(Exhibit::Table, 8), 1) < 10.0);
}
