//! Charts as SVG: lines, points and bars.
//!
//! Only what the figures of the paper and of the reports need. Sizes are in pixels. The colours are
//! distinguishable for colour-blind readers, and series also differ by line and marker. Numbers are
//! written with one decimal, so equal data give equal bytes.

use std::fmt::Write;

use conset_ir::convert::{index, to_f64, to_u32, truncate};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 250.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 62.0;

/// The line and markers of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A solid line with filled marks.
    Solid,
    /// A dashed line with filled marks.
    Dashed,
    /// Hollow marks only.
    Marks,
    /// Crosses only.
    Crosses,
}

/// The style of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Points joined by lines.
    Lines,
    /// Points without lines.
    Points,
    /// Groups of bars around the ticks.
    Bars,
}

/// The scale of the y axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Powers of ten. Values of 0 are not drawn.
    Logarithmic,
    /// From 0.
    Linear,
}

/// A series of points.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// An SVG colour.
    pub colour: &'static str,
    /// The line and markers.
    pub line: Line,
    /// Position on the x axis (see [`Chart::x_ticks`]) and value.
    pub points: Vec<(f64, f64)>,
}

/// A chart over named positions on the x axis.
///
/// ```
/// use conset::chart::{Chart, Line, Scale, Series, Style};
///
/// let points = vec![(0.0, 10.0), (1.0, 1000.0)];
/// let chart = Chart {
///     title: "Time".into(),
///     x_label: "words".into(),
///     y_label: "clocks".into(),
///     x_ticks: vec![(0.0, "32".into()), (1.0, "256".into())],
///     series: vec![Series { name: "ring".into(), colour: "#0072b2", line: Line::Solid, points }],
///     style: Style::Lines,
///     scale: Scale::Logarithmic,
/// };
/// assert!(chart.svg().starts_with("<svg"));
/// ```
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title, above the chart.
    pub title: String,
    /// The label below the x axis.
    pub x_label: String,
    /// The label beside the y axis.
    pub y_label: String,
    /// Positions from 0 to 1 across the chart, and their names.
    pub x_ticks: Vec<(f64, String)>,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
    /// The style.
    pub style: Style,
    /// The scale of the y axis.
    pub scale: Scale,
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <title>{0}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{0}</text>\n",
            escape(&self.title)
        );
        let axis = self.axis();
        self.axes(&mut out, &axis);
        for (row, series) in self.series.iter().enumerate() {
            if self.style == Style::Bars {
                self.bars_of(&mut out, row, series, &axis);
            } else {
                points_of(&mut out, series, &axis, self.style);
            }
            self.legend(&mut out, row, series);
        }
        out.push_str("</svg>\n");
        out
    }

    /// The y axis: from the power of ten below the least value to that above the largest one, or from
    /// 0 to a multiple of the step between its ticks.
    fn axis(&self) -> Axis {
        let values = || self.series.iter().flat_map(|s| &s.points).map(|p| p.1);
        let least = values().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let most = values().fold(0.0, f64::max);
        let (low, high) = match self.scale {
            Scale::Linear => {
                let step = tick(most);
                (0.0, step * (most / step).ceil().max(1.0))
            }
            Scale::Logarithmic if !least.is_finite() => (0.0, 1.0),
            Scale::Logarithmic => {
                let (low, high) = (least.log10().floor(), most.log10().ceil());
                // Bars start one decade lower, so that a bar of 1 is visible.
                let low = if self.style == Style::Bars { low - 1.0 } else { low };
                (low, high.max(low + 1.0))
            }
        };
        Axis { scale: self.scale, low, high }
    }

    fn axes(&self, out: &mut String, axis: &Axis) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, decimals) in axis.ticks() {
            let y = axis.y(value);
            line(out, [LEFT, y, right, y], "#cccccc", "");
            let label = format!("{value:.decimals$}");
            text(out, LEFT - 8.0, y + 4.0, "end", &label);
            for step in (2..10).filter(|_| axis.scale == Scale::Logarithmic) {
                let minor = value * f64::from(step);
                if minor < 10f64.powf(axis.high) {
                    let y = axis.y(minor);
                    line(out, [LEFT, y, right, y], "#eeeeee", "");
                }
            }
        }
        for (place, name) in &self.x_ticks {
            let x = x_of(*place);
            line(out, [x, bottom, x, bottom + 5.0], "#333333", "");
            text(out, x, bottom + 20.0, "middle", name);
        }
        line(out, [LEFT, TOP, LEFT, bottom], "#333333", "");
        line(out, [LEFT, bottom, right, bottom], "#333333", "");
        text(out, (LEFT + right) / 2.0, HEIGHT - 16.0, "middle", &self.x_label);
        let (x, y) = (20.0, (TOP + bottom) / 2.0);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x:.1} {y:.1})\">{}</text>",
            escape(&self.y_label)
        );
    }

    fn bars_of(&self, out: &mut String, row: usize, series: &Series, axis: &Axis) {
        let count = to_f64(self.series.len());
        let slot = (WIDTH - LEFT - RIGHT) / to_f64(self.x_ticks.len().max(1)) * 0.8;
        let width = slot / count;
        let bottom = HEIGHT - BOTTOM;
        for &(place, value) in series.points.iter().filter(|p| p.1 > 0.0) {
            let x = x_of(place) - slot / 2.0 + to_f64(row) * width;
            let y = axis.y(value);
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                width * 0.92,
                bottom - y,
                series.colour
            );
        }
    }

    fn legend(&self, out: &mut String, row: usize, series: &Series) {
        let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 14.0 + to_f64(row) * 22.0);
        if self.style == Style::Bars {
            let colour = series.colour;
            let top = y - 6.0;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"24\" height=\"12\" fill=\"{colour}\"/>"
            );
        } else {
            if let Some(dashes) = dashes(series.line, self.style) {
                line(out, [x, y, x + 28.0, y], series.colour, dashes);
            }
            mark(out, x + 14.0, y, series);
        }
        text(out, x + 36.0, y + 4.0, "start", &series.name);
    }
}

fn points_of(out: &mut String, series: &Series, axis: &Axis, style: Style) {
    let points: Vec<(f64, f64)> = series
        .points
        .iter()
        .filter(|p| p.1 > 0.0)
        .map(|&(place, value)| (x_of(place), axis.y(value)))
        .collect();
    if let Some(dashes) = dashes(series.line, style) {
        for pair in points.windows(2) {
            line(out, [pair[0].0, pair[0].1, pair[1].0, pair[1].1], series.colour, dashes);
        }
    }
    for &(x, y) in &points {
        mark(out, x, y, series);
    }
}

/// The dash pattern of a line; `None` if there is no line.
fn dashes(line: Line, style: Style) -> Option<&'static str> {
    match (style, line) {
        (Style::Lines, Line::Solid) => Some(""),
        (Style::Lines, Line::Dashed) => Some("6 4"),
        _ => None,
    }
}

fn mark(out: &mut String, x: f64, y: f64, series: &Series) {
    let colour = series.colour;
    let _ = match series.line {
        Line::Solid => {
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>")
        }
        Line::Dashed => {
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>")
        }
        Line::Marks => writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>"
        ),
        Line::Crosses => writeln!(
            out,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{colour}\" stroke-width=\"1.8\"/>",
            x - 5.0,
            y - 5.0,
            x + 5.0,
            y + 5.0,
            x - 5.0,
            y + 5.0,
            x + 5.0,
            y - 5.0
        ),
    };
}

fn x_of(place: f64) -> f64 {
    LEFT + place * (WIDTH - LEFT - RIGHT)
}

/// The y axis: the range of values, or of their logarithms.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// The ticks with the decimals of their labels.
    fn ticks(&self) -> Vec<(f64, usize)> {
        let step = match self.scale {
            Scale::Logarithmic => 1.0,
            Scale::Linear => tick(self.high),
        };
        let count = truncate(((self.high - self.low) / step).round());
        let tick = |row: u64| self.low + step * to_f64(row);
        (0..=count)
            .map(|row| match self.scale {
                Scale::Linear => (tick(row), usize::from(step < 1.0)),
                Scale::Logarithmic => {
                    let decimals = truncate((-tick(row)).max(0.0));
                    (10f64.powf(tick(row)), index(to_u32(decimals)))
                }
            })
            .collect()
    }

    /// Where a value is drawn.
    fn y(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
        };
        let share = (place - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides the range up to a value into 3 to 6.
fn tick(most: f64) -> f64 {
    let power = 10f64.powf(most.max(1.0).log10().floor());
    let steps = [0.2, 0.5, 1.0, 2.0].map(|n| n * power);
    steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(power)
}

fn line(out: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str, dashes: &str) {
    let dashes =
        if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"{dashes}/>"
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape(words);
    let _ =
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[f64], style: Style) -> Chart {
        let points = values.iter().enumerate().map(|(at, &v)| (at as f64 / 4.0, v)).collect();
        Chart {
            title: "a < b & c".into(),
            x_label: "x".into(),
            y_label: "y".into(),
            x_ticks: vec![(0.0, "32".into())],
            series: vec![Series { name: "s".into(), colour: "#000000", line: Line::Solid, points }],
            style,
            scale: Scale::Logarithmic,
        }
    }

    #[test]
    fn titles_are_escaped_and_every_point_is_drawn() {
        let svg = chart(&[2.0, 300.0, 4.0], Style::Points).svg();
        assert!(svg.contains("a &lt; b &amp; c"));
        // Three points and the legend's.
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_chart() {
        for style in [Style::Lines, Style::Points, Style::Bars] {
            let svg = chart(&[0.0], style).svg();
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"));
        }
        let ends = |chart: Chart| (chart.axis().low, chart.axis().high);
        assert_eq!(ends(chart(&[1.0, 1000.0], Style::Lines)), (0.0, 3.0));
        assert_eq!(ends(chart(&[1.0, 1000.0], Style::Bars)), (-1.0, 3.0));
    }

    #[test]
    fn a_linear_axis_has_round_ticks_and_contains_every_value() {
        for (most, ticks) in [(0.0, 6), (9.0, 6), (10.0, 6), (4100.0, 6), (4999.0, 6), (60.0, 7)] {
            let chart = Chart { scale: Scale::Linear, ..chart(&[0.0, most], Style::Lines) };
            let axis = chart.axis();
            assert!(axis.high >= most && axis.ticks().len() <= ticks, "{most}: {}", axis.high);
            let svg = chart.svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
