//! Figures 2 to 6 as SVG.
//!
//! Figures 2 to 4 show the aggregate bandwidth of a pattern over the data size, Figure 5 the
//! distribution of the words of connections, Figure 6 the aggregate bandwidth of the meshes. Our
//! numbers are lines or dots; the paper's are hollow marks and crosses, computed from its tables.
//! Figure 5 shows ours only, because the paper prints no numbers for it.

use conset_ir::convert::to_f64;

use super::{Bandwidths, meshes, paper, patterns};
use crate::chart::{Chart, Line, Series, Style};

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
    };
    [
        Figure { file: "figure5.svg".into(), svg: histogram.svg() },
        Figure { file: "figure6.svg".into(), svg: bandwidth.svg() },
    ]
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
