//! Pages with a chart and the table behind it: one file without scripts, for results that are read and
//! not explored.

use std::fmt::Write;

/// What such a page shows.
#[derive(Clone, Debug, Default)]
pub struct ReportPage {
    /// The heading.
    pub title: String,
    /// Charts as SVG elements. They are part of the page as they are.
    pub charts: Vec<String>,
    /// A text below the charts; may be empty.
    pub note: String,
    /// The header of the table.
    pub header: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Vec<String>>,
}

impl ReportPage {
    /// The page as HTML.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>"
        );
        self.charts.iter().for_each(|chart| page.push_str(chart));
        if !self.note.is_empty() {
            let _ = write!(page, "<p>{}</p>", escaped(&self.note));
        }
        page.push_str("<table><thead><tr>");
        for name in &self.header {
            let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(name));
        }
        page.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            page.push_str("<tr>");
            for field in row {
                let _ = write!(page, "<td>{}</td>", escaped(field));
            }
            page.push_str("</tr>");
        }
        page.push_str("</tbody></table></main></body></html>\n");
        page
    }
}

/// A text as part of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = include_str!("report.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_charts_are_not() {
        let page = ReportPage {
            title: "a < b".to_owned(),
            charts: vec!["<svg></svg>".to_owned()],
            note: "x & y".to_owned(),
            header: vec!["<h>".to_owned()],
            rows: vec![vec!["\"1\"".to_owned()]],
        }
        .html();
        for part in ["<title>a &lt; b</title>", "<svg></svg>", "x &amp; y", "&lt;h&gt;", "&quot;1"]
        {
            assert!(page.contains(part), "{part}");
        }
    }
}
