//! Figures 2 to 6, and the curves of other papers, as SVG.
//!
//! Figures 2 to 4 show the aggregate bandwidth of a pattern over the data size, Figure 5 the
//! distribution of the words of connections, Figure 6 the aggregate bandwidth of the meshes. Our
//! numbers are lines or dots; the paper's are hollow marks and crosses, computed from its tables.
//! Figure 5 shows ours only, because the paper prints no numbers for it.

use conset_ir::convert::to_f64;

use super::beside::{Exhibit, PaperTable};
use super::{Bandwidths, meshes, paper, patterns};
use crate::chart::{Chart, Line, Scale, Series, Style};

const CONSET: &str = "#0072b2";
const MESSAGES: &str = "#d55e00";
/// The lines of our numbers and of the paper's.
const MEASURED: [Line; 2] = [Line::Solid, Line::Marks];
const PREDICTED: [Line; 2] = [Line::Dashed, Line::Crosses];
const BARS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#999999"];

/// A figure as an SVG file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figure {
    /// The file name, such as `figure2.svg`.
    pub file: String,
    /// The SVG document.
    pub svg: String,
}

/// Figure 2, 3 or 4.
pub fn pattern(table: &patterns::PatternTable) -> Figure {
    let most = paper::WORDS.len().max(2) - 1;
    let place = |at: usize| 0.06 + 0.88 * to_f64(at) / to_f64(most);
    let ours = table.rows.iter().enumerate().map(|(at, r)| (place(at), r.bandwidth));
    let papers = table.rows.iter().enumerate().map(|(at, r)| (place(at), r.paper_bandwidth));
    let chart = Chart {
        title: format!("Figure {}: {} on 64 cells", table.figure, table.title),
        x_label: "words per connection".into(),
        y_label: "aggregate bandwidth, MB/s".into(),
        x_ticks: table
            .rows
            .iter()
            .enumerate()
            .map(|(at, row)| (place(at), row.words.to_string()))
            .collect(),
        series: bandwidths(&ours.collect::<Vec<_>>(), &papers.collect::<Vec<_>>(), 0.0),
        style: Style::Lines,
        scale: Scale::Logarithmic,
    };
    Figure { file: format!("figure{}.svg", table.figure), svg: chart.svg() }
}

/// Figures 5 and 6.
pub fn of_meshes(rows: &[meshes::MeshRow]) -> [Figure; 2] {
    let bars = rows.iter().map(|row| row.histogram.len()).max().unwrap_or(0);
    let place = |at: usize, of: usize| (to_f64(at) + 0.5) / to_f64(of.max(1));
    let histogram = Chart {
        title: "Figure 5: words of a connection".into(),
        x_label: "words, from".into(),
        y_label: "connections".into(),
        x_ticks: (0..bars).map(|at| (place(at, bars), (1u64 << at).to_string())).collect(),
        series: rows
            .iter()
            .zip(BARS.iter().cycle())
            .map(|(row, colour)| Series {
                name: row.mesh.into(),
                colour,
                line: Line::Solid,
                points: row
                    .histogram
                    .iter()
                    .enumerate()
                    .map(|(at, bar)| (place(at, bars), to_f64(bar.connections)))
                    .collect(),
            })
            .collect(),
        style: Style::Bars,
        scale: Scale::Logarithmic,
    };
    let ours: Vec<_> =
        rows.iter().enumerate().map(|(at, r)| (place(at, rows.len()), r.bandwidth)).collect();
    let papers: Vec<_> = rows
        .iter()
        .enumerate()
        .filter_map(|(at, r)| Some((place(at, rows.len()), r.paper_bandwidth?)))
        .collect();
    let bandwidth = Chart {
        title: "Figure 6: finite element meshes on 64 cells".into(),
        x_label: "mesh".into(),
        y_label: "aggregate bandwidth, MB/s".into(),
        x_ticks: rows
            .iter()
            .enumerate()
            .map(|(at, row)| (place(at, rows.len()), row.mesh.to_owned()))
            .collect(),
        series: bandwidths(&ours, &papers, 0.025),
        style: Style::Points,
        scale: Scale::Logarithmic,
    };
    [
        Figure { file: "figure5.svg".into(), svg: histogram.svg() },
        Figure { file: "figure6.svg".into(), svg: bandwidth.svg() },
    ]
}

/// The curves of papers whose tables are all of one kind: a chart for each of their figures of which
/// the rows, or else the columns, are numbers, such as sizes or processors.
pub fn curves(tables: &[PaperTable]) -> Vec<Figure> {
    let mut drawn: Vec<(u8, Figure)> = Vec::new();
    for table in tables.iter().filter(|table| table.kind == Exhibit::Figure) {
        let Some(chart) = curve(table) else { continue };
        let earlier = drawn.iter().filter(|(number, _)| *number == table.number).count();
        let part = if earlier == 0 { String::new() } else { format!("-{}", earlier + 1) };
        let file = format!("figure{}{part}.svg", table.number);
        drawn.push((table.number, Figure { file, svg: chart.svg() }));
    }
    drawn.into_iter().map(|(_, figure)| figure).collect()
}

fn curve(table: &PaperTable) -> Option<Chart> {
    let rows: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    let columns: Vec<&str> = table.columns.iter().skip(1).map(String::as_str).collect();
    // Also with a unit, as `16 bytes`.
    let is_number = |name: &&str| name.split(' ').next().is_some_and(|n| n.parse::<f64>().is_ok());
    let are_numbers = |names: &[&str]| names.len() > 1 && names.iter().all(is_number);
    let (ticks, names, by_rows) = match () {
        () if are_numbers(&rows) => (rows, columns, true),
        () if are_numbers(&columns) => (columns, rows, false),
        () => return None,
    };
    let cell = |tick: usize, name: usize| {
        let (row, column) = if by_rows { (tick, name) } else { (name, tick) };
        table.rows.get(row).and_then(|row| row.cells.get(column))
    };
    let most = ticks.len().max(2) - 1;
    let place = |at: usize| 0.06 + 0.88 * to_f64(at) / to_f64(most);
    let mut series = Vec::new();
    for (at, (name, colour)) in names.iter().zip(BARS.iter().cycle()).enumerate() {
        let cells = || (0..ticks.len()).filter_map(|tick| Some((place(tick), cell(tick, at)?)));
        let ours = cells().map(|(x, cell)| (x, cell.ours)).collect();
        let papers: Vec<_> = cells().filter_map(|(x, cell)| Some((x, cell.paper?))).collect();
        series.push(Series { name: (*name).into(), colour, line: Line::Solid, points: ours });
        if !papers.is_empty() {
            let name = format!("{name}, paper");
            series.push(Series { name, colour, line: Line::Marks, points: papers });
        }
    }
    Some(Chart {
        title: format!("Figure {}: {}", table.number, table.title),
        x_label: if by_rows { table.columns[0].clone() } else { String::new() },
        y_label: String::new(),
        x_ticks: (0..).map(place).zip(ticks.into_iter().map(str::to_owned)).collect(),
        series,
        style: Style::Lines,
        scale: Scale::Logarithmic,
    })
}

/// The eight series of a bandwidth chart. The paper's predictions are crosses, its measurements
/// circles; ConSet is `aside` left of each tick, message passing right of it.
fn bandwidths(ours: &[(f64, Bandwidths)], papers: &[(f64, Bandwidths)], aside: f64) -> Vec<Series> {
    type Pick = fn(&Bandwidths) -> f64;
    let rows: [(&str, &'static str, [Line; 2], f64, Pick); 4] = [
        ("ConSet measured", CONSET, MEASURED, -aside, |b| b.conset_measured),
        ("ConSet predicted", CONSET, PREDICTED, -aside, |b| b.conset_predicted),
        ("messages measured", MESSAGES, MEASURED, aside, |b| b.message_measured),
        ("messages predicted", MESSAGES, PREDICTED, aside, |b| b.message_predicted),
    ];
    let mut series = Vec::new();
    for (name, colour, lines, aside, pick) in rows {
        let of = |points: &[(f64, Bandwidths)]| {
            points.iter().map(|(x, b)| (x + aside, pick(b))).collect()
        };
        series.push(Series { name: name.into(), colour, line: lines[0], points: of(ours) });
        let name = format!("{name}, paper");
        series.push(Series { name, colour, line: lines[1], points: of(papers) });
    }
    series
}
