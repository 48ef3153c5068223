//! A page with a line chart and the table behind it: the result of a sweep.
//!
//! The chart is drawn here as SVG, because it answers one question, how clocks change with a
//! parameter, which needs no application in the page. A series has a colour and a marker of its own;
//! the colours are those of Okabe and Ito, which people with colour blindness can tell apart. The lower
//! bound of a series is a dashed line in its colour. Points can be pointed at, which shows their values.

use std::fmt::Write;

use conset_ir::convert::{to_f64, to_u64};

/// A chart of clocks.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// The heading of the page.
    pub title: String,
    /// The name of the horizontal axis.
    pub x: String,
    /// The labels along it, in order. If all are numbers they have their places on a scale;
    /// otherwise they are evenly spaced.
    pub labels: Vec<String>,
    /// The name of the vertical axis.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
    /// The header of the table below the chart.
    pub header: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Vec<String>>,
}

/// A line of a chart.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What it shows; empty for the only line of a chart.
    pub name: String,
    /// The value and the lower bound at each label; `None` where there is no result.
    pub points: Vec<Option<(u64, u64)>>,
}

const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

/// The size of the drawing and of its margins: left, right, top, bottom.
const SIZE: [f64; 2] = [920.0, 460.0];
const MARGINS: [f64; 4] = [90.0, 20.0, 16.0, 56.0];

/// The greatest number of labels along the horizontal axis.
const LABELS_MAX: usize = 16;

/// The greatest ratio of labels that are placed on a linear scale.
const LINEAR_MAX: f64 = 20.0;

impl Chart {
    /// The page.
    pub fn page(&self) -> String {
        let mut page = String::from(concat!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">",
            "<meta name=\"viewport\" content=\"width=device-width\">",
            "<meta http-equiv=\"Content-Security-Policy\" ",
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        ));
        let title = escaped(&self.title);
        let _ = write!(page, "<title>{title}</title><style>{STYLE}</style></head>");
        let _ = write!(page, "<body><main><h1>{title}</h1>");
        if self.series.iter().any(|series| series.points.iter().any(Option::is_some)) {
            self.draw(&mut page);
        } else {
            page.push_str("<p>There is no result to draw.</p>");
        }
        self.tabulate(&mut page);
        page.push_str("</main></body></html>\n");
        page
    }

    /// The places of the labels, from 0 to 1.
    fn places(&self) -> Vec<f64> {
        let numbers: Option<Vec<f64>> =
            self.labels.iter().map(|label| label.parse().ok().filter(|n: &f64| n.is_finite())).collect();
        let span = |values: &[f64]| {
            let (least, most) = range(values.iter().copied());
            values.iter().map(|value| (value - least) / (most - least).max(1e-9)).collect()
        };
        match numbers {
            Some(numbers) if numbers.len() > 1 => {
                let (least, most) = range(numbers.iter().copied());
                let wide = least > 0.0 && most / least > LINEAR_MAX;
                match wide {
                    true => span(&numbers.iter().map(|number| number.ln()).collect::<Vec<_>>()),
                    false => span(&numbers),
                }
            }
            _ => {
                let last = to_f64(to_u64(self.labels.len().max(2) - 1));
                (0..self.labels.len()).map(|row| to_f64(to_u64(row)) / last).collect()
            }
        }
    }

    fn draw(&self, page: &mut String) {
        let [left, right, top, bottom] = MARGINS;
        let [width, height] = [SIZE[0] - left - right, SIZE[1] - top - bottom];
        let shown = self.series.iter().flat_map(|series| series.points.iter().flatten());
        let most = shown.map(|&(value, bound)| value.max(bound)).max().unwrap_or(1).max(1);
        let step = tick(most);
        let above = most.div_ceil(step) * step;
        let places = self.places();
        let x = |row: usize| left + places[row] * width;
        let y = |value: u64| top + height * (1.0 - to_f64(value) / to_f64(above));
        let _ = write!(
            page,
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} over {}\">",
            SIZE[0],
            SIZE[1],
            escaped(&self.y),
            escaped(&self.x)
        );
        for value in (0..=above / step).map(|row| row * step) {
            let at = y(value);
            let _ = write!(
                page,
                "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                SIZE[0] - right,
                left - 8.0,
                at + 4.0,
                grouped(value)
            );
        }
        let stride = self.labels.len().div_ceil(LABELS_MAX).max(1);
        for (row, label) in self.labels.iter().enumerate().step_by(stride) {
            let _ = write!(
                page,
                "<text class=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x(row),
                top + height + 20.0,
                escaped(label)
            );
        }
        let _ = write!(
            page,
            "<text class=\"middle name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"middle name\" transform=\"translate(16 {:.1}) rotate(-90)\">{}</text>",
            left + width / 2.0,
            SIZE[1] - 10.0,
            escaped(&self.x),
            top + height / 2.0,
            escaped(&self.y)
        );
        for (row, series) in self.series.iter().enumerate() {
            let colour = COLOURS[row % COLOURS.len()];
            let line = |of: fn(&(u64, u64)) -> u64| {
                let points = series.points.iter().enumerate();
                let points = points.filter_map(|(row, point)| Some((x(row), y(of(point.as_ref()?)))));
                let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                points.join(" ")
            };
            let _ = write!(
                page,
                "<polyline class=\"bound\" stroke=\"{colour}\" points=\"{}\"/>\
                 <polyline stroke=\"{colour}\" points=\"{}\"/>",
                line(|point| point.1),
                line(|point| point.0)
            );
            for (label, point) in series.points.iter().enumerate() {
                let Some((value, bound)) = point else { continue };
                let text = format!(
                    "{}{} {}: {} {}, bound {}",
                    if series.name.is_empty() { String::new() } else { format!("{}, ", series.name) },
                    self.x,
                    self.labels[label],
                    grouped(*value),
                    self.y,
                    grouped(*bound)
                );
                let _ = write!(
                    page,
                    "<path fill=\"{colour}\" transform=\"translate({:.1} {:.1})\" d=\"{}\">\
                     <title>{}</title></path>",
                    x(label),
                    y(*value),
                    marker(row),
                    escaped(&text)
                );
            }
        }
        page.push_str("</svg><ul class=\"legend\">");
        for (row, series) in self.series.iter().enumerate() {
            let name = if series.name.is_empty() { &self.y } else { &series.name };
            let _ = write!(
                page,
                "<li><svg viewBox=\"-8 -8 16 16\" aria-hidden=\"true\"><path fill=\"{}\" d=\"{}\"/></svg>{}</li>",
                COLOURS[row % COLOURS.len()],
                marker(row),
                escaped(name)
            );
        }
        page.push_str("<li>dashed: lower bound</li></ul>");
    }

    fn tabulate(&self, page: &mut String) {
        page.push_str("<table><thead><tr>");
        self.header.iter().for_each(|name| {
            let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(name));
        });
        page.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            page.push_str("<tr>");
            row.iter().for_each(|field| {
                let _ = write!(page, "<td>{}</td>", escaped(field));
            });
            page.push_str("</tr>");
        }
        page.push_str("</tbody></table>");
    }
}

/// The shape of a series' points: circle, square, diamond, triangle.
fn marker(row: usize) -> &'static str {
    match row % 4 {
        0 => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        1 => "M-3.6 -3.6h7.2v7.2h-7.2Z",
        2 => "M0 -5L5 0L0 5L-5 0Z",
        _ => "M0 -4.8L4.6 3.4H-4.6Z",
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)))
}

/// A step of 1, 2 or 5 times a power of ten that divides a range into at most six.
fn tick(most: u64) -> u64 {
    let mut power = 1;
    loop {
        if let Some(step) = [1, 2, 5].map(|n| n * power).into_iter().find(|step| most / step < 6) {
            return step;
        }
        power *= 10;
    }
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (row, digit) in digits.chars().enumerate() {
        if row > 0 && (digits.len() - row).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A text as part of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#c8ccd0;--text:#1b1f24;--back:#fff}\
@media(prefers-color-scheme:dark){:root{--line:#3d444d;--text:#e6e9ec;--back:#14171a}}\
@media print{:root{--line:#c8ccd0;--text:#000;--back:#fff}}\
body{margin:0;font:15px/1.45 system-ui,sans-serif;color:var(--text);background:var(--back)}\
main{max-width:60rem;margin:0 auto;padding:1rem}h1{font-size:1.25rem;overflow-wrap:anywhere}\
svg{width:100%;height:auto}svg text{font-size:13px;fill:var(--text)}\
.end{text-anchor:end}.middle{text-anchor:middle}.name{font-weight:600}\
.grid{stroke:var(--line)}polyline{fill:none;stroke-width:2}.bound{stroke-dasharray:5 4;stroke-width:1.5}\
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0}\
.legend svg{width:1em;height:1em;margin-right:.35em;vertical-align:-.1em}\
table{border-collapse:collapse;margin-top:1rem;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .8rem .2rem 0;text-align:right;border-bottom:1px solid var(--line)}";

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            title: "a < b".to_owned(),
            x: "words".to_owned(),
            labels: vec!["8".to_owned(), "64".to_owned(), "512".to_owned()],
            y: "clocks".to_owned(),
            series: vec![Series {
                name: "streams 1".to_owned(),
                points: vec![Some((100, 90)), None, Some((4000, 3900))],
            }],
            header: vec!["words".to_owned()],
            rows: vec![vec!["8 & more".to_owned()]],
        }
    }

    #[test]
    fn every_result_is_a_point_and_texts_are_escaped() {
        let page = chart().page();
        assert_eq!(page.matches("<path").count(), 2 + 1);
        assert!(page.contains("<title>a &lt; b</title>") && page.contains("8 &amp; more"));
        assert!(page.contains("streams 1, words 512: 4\u{202f}000 clocks, bound 3\u{202f}900"));
        // The scale is logarithmic: the middle label is in the middle.
        let places = chart().places();
        assert!((places[1] - 0.5).abs() < 1e-9, "{places:?}");
    }

    #[test]
    fn charts_without_results_or_with_one_label_are_pages() {
        let none = Chart { series: Vec::new(), ..chart() };
        assert!(none.page().contains("no result"));
        let series = Series { name: String::new(), points: vec![Some((0, 0))] };
        let one = Chart { labels: vec!["a".to_owned()], series: vec![series], ..chart() };
        assert!(!one.page().contains("NaN"));
    }

    #[test]
    fn ticks_divide_the_axis_into_at_most_six() {
        for (most, step) in [(1, 1), (5, 1), (6, 2), (99, 20), (100, 20), (4000, 1000)] {
            assert_eq!(tick(most), step, "{most}");
        }
        assert!(u64::MAX / tick(u64::MAX / 20) < 200);
    }
}
