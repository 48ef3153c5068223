//! The timetable as a chart of characters: a row for each port of an agent or for each link, and time
//! from left to right.
//!
//! The times are those of the cost model ([`stream_times`]), with link sharing, and not those of the
//! slots. A character stands for the stream that is open longest in its clocks, or for a context
//! switch, if either takes at least half of them. The streams of a row are lettered in the order in
//! which they open.

use std::collections::BTreeMap;
use std::fmt::Write;

use conset::Compiled;
use conset::fabric::messages::MessageRoutes;
use conset::scheduler::predict::stream_times;
use conset::scheduler::steps::predict_times;
use conset::steps::CompiledSteps;
use conset_ir::convert::to_u64;
use conset_ir::{CellId, Duplex, LinkId, PhaseId, Protocol};

use super::selection::Selection;
use super::steps::{self, StepSelection};
use crate::args::GanttRows;
use crate::rows::TableRows;
use crate::text;

/// A row of a chart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowKey {
    /// The cell, and 1 for its receiving port.
    Port(CellId, usize),
    Link(LinkId),
}

/// A stream in a row, in clocks from the beginning of the chart.
struct Bar {
    /// The phase; `None` in a step plan.
    phase: Option<PhaseId>,
    /// The connection, or the number of a message.
    stream: String,
    ends: (CellId, CellId),
    from: u64,
    to: u64,
}

/// The chart of one set.
pub(super) struct Gantt {
    set: String,
    clocks: u64,
    rows: BTreeMap<RowKey, Vec<Bar>>,
    /// Begin and end of each switch.
    switches: Vec<(u64, u64)>,
    /// The names of links.
    links: BTreeMap<LinkId, String>,
    /// Half duplex.
    half: bool,
}

/// The charts of the selected sets and phases. Phases that are not selected take no time in them.
pub(super) fn charts(compiled: &Compiled, only: &Selection<'_>, by: GanttRows) -> Vec<Gantt> {
    let machine = compiled.schedule().machine();
    let half = machine.parameters().duplex == Duplex::Half;
    // With half duplex both directions are one row.
    let receiving = usize::from(!half);
    let mut charts = Vec::new();
    for (row, set) in only.sets(compiled.schedule()) {
        let routing = set.timetable.routing();
        let times = stream_times(&set.timetable);
        let (mut now, mut rows, mut switches) = (0u64, BTreeMap::new(), Vec::new());
        let mut links = BTreeMap::new();
        for ((phase, routes), predicted) in
            routing.iter().zip(&compiled.sets()[row].prediction.phases)
        {
            if !only.has_phase(phase) {
                continue;
            }
            switches.push((now, now + predicted.switch));
            now += predicted.switch;
            for (route, times) in routes.iter().zip(&times[phase.index()]) {
                let (source, target) = (route.cells[0], route.cells[route.cells.len() - 1]);
                if route.words < only.min_words {
                    continue;
                }
                let mut bar = |key, from: u64, to: u64| {
                    rows.entry(key).or_insert_with(Vec::new).push(Bar {
                        phase: Some(phase),
                        stream: route.connection.to_string(),
                        ends: (source, target),
                        from: now + from,
                        to: now + to,
                    });
                };
                match by {
                    GanttRows::Agents => {
                        let ports = [
                            (source, 0, times.send_open, times.sent),
                            (target, receiving, times.receive_open, times.received),
                        ];
                        for (cell, side, from, to) in ports {
                            if only.cell.is_none_or(|only| only == cell) {
                                bar(RowKey::Port(cell, side), from, to);
                            }
                        }
                    }
                    GanttRows::Links => {
                        for &link in route.links() {
                            let ends = machine.link(link);
                            let at = |cell| cell == ends.source || cell == ends.target;
                            if only.cell.is_none_or(at) {
                                let name = format!("{link} {} -> {}", ends.source, ends.target);
                                links.entry(link).or_insert(name);
                                bar(RowKey::Link(link), times.send_open, times.received);
                            }
                        }
                    }
                }
            }
            now += predicted.clocks;
        }
        let set = routing.set().name().to_owned();
        let chart = Gantt { set, clocks: now, rows, switches, links, half };
        charts.push(chart.sorted());
    }
    charts
}

/// The charts of the selected sets of step plans: messages of cells, or on links, from the sender's
/// software to the last word. Sets of which a message has no route are left out.
pub(super) fn charts_of_steps(
    compiled: &CompiledSteps,
    only: &StepSelection<'_>,
    by: GanttRows,
) -> Vec<Gantt> {
    let machine = compiled.schedule().machine();
    let parameters = machine.parameters();
    let half = parameters.protocol == Protocol::Rendezvous && parameters.duplex == Duplex::Half;
    let receiving = usize::from(!half);
    let mut charts = Vec::new();
    for set in only.sets(compiled.schedule()) {
        let mut routes = MessageRoutes::new(machine);
        let mut missing = false;
        let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
            missing |= !routes.links(source, target, links);
        };
        let times = predict_times(&set.steps, parameters.protocol, &mut route);
        if missing {
            continue;
        }
        let (mut rows, mut links) = (BTreeMap::new(), BTreeMap::new());
        let clocks = times.iter().map(|times| times.received).max().unwrap_or(0);
        for (row, (message, times)) in set.steps.messages().iter().zip(times).enumerate() {
            if message.words() < u64::from(only.min_words) {
                continue;
            }
            let ends = (message.source, message.target);
            let mut bar = |key, from: u64, to: u64| {
                let bars = rows.entry(key).or_insert_with(Vec::new);
                bars.push(Bar { phase: None, stream: format!("message {row}"), ends, from, to });
            };
            match by {
                GanttRows::Agents => {
                    let sides = [
                        (message.source, 0, times.send_open, times.sent),
                        (message.target, receiving, times.receive_open, times.received),
                    ];
                    for (cell, side, from, to) in sides {
                        if only.cell.is_none_or(|only| only == cell) {
                            bar(RowKey::Port(cell, side), from, to);
                        }
                    }
                }
                GanttRows::Links => {
                    for link in steps::route(&mut routes, &message) {
                        let at = machine.link(link);
                        if only.cell.is_none_or(|cell| cell == at.source || cell == at.target) {
                            let name = format!("{link} {} -> {}", at.source, at.target);
                            links.entry(link).or_insert(name);
                            bar(RowKey::Link(link), times.send_open, times.received);
                        }
                    }
                }
            }
        }
        let set = set.steps.set().name().to_owned();
        let chart = Gantt { set, clocks, rows, switches: Vec::new(), links, half };
        charts.push(chart.sorted());
    }
    charts
}

/// The bars of charts as rows.
pub(super) fn rows(charts: &[Gantt]) -> TableRows {
    let mut rows =
        TableRows::new(&["set", "row", "phase", "stream", "source", "target", "open", "close"], 6);
    for chart in charts {
        for (key, bars) in &chart.rows {
            for bar in bars {
                rows.rows.push(vec![
                    chart.set.as_str().into(),
                    chart.name(*key).into(),
                    bar.phase.into(),
                    bar.stream.as_str().into(),
                    bar.ends.0.into(),
                    bar.ends.1.into(),
                    bar.from.into(),
                    bar.to.into(),
                ]);
            }
        }
    }
    rows
}

impl Gantt {
    /// With the streams of each row in the order of time.
    fn sorted(mut self) -> Self {
        for bars in self.rows.values_mut() {
            bars.sort_by_key(|bar: &Bar| (bar.from, bar.to, bar.ends));
        }
        self
    }

    fn name(&self, key: RowKey) -> String {
        match key {
            RowKey::Port(cell, _) if self.half => cell.to_string(),
            RowKey::Port(cell, 0) => format!("{cell} send"),
            RowKey::Port(cell, _) => format!("{cell} receive"),
            RowKey::Link(link) => self.links[&link].clone(),
        }
    }

    /// The chart as lines of at most about `width` characters.
    pub(super) fn draw(&self, width: usize) -> String {
        let names = || self.rows.keys().map(|&key| self.name(key));
        let label = names().map(|name| name.len()).max().unwrap_or(0);
        let columns = to_u64(width.saturating_sub(label + 2).max(10));
        // Every character has the same number of clocks.
        let step = self.clocks.div_ceil(columns).max(1);
        let columns = self.clocks.div_ceil(step);
        let mut out = format!(
            "{}: {}, {} per character; {}letters are streams, . is idle\n",
            self.set,
            text::count(self.clocks, "clock"),
            text::count(step, "clock"),
            if self.switches.is_empty() { "" } else { "| is a switch, " },
        );
        for (&key, bars) in &self.rows {
            let mut line = vec!['.'; index_of(columns)];
            let mut most = vec![0u64; line.len()];
            let mut paint = |from: u64, to: u64, mark: char| {
                for column in from / step..to.div_ceil(step) {
                    let (begin, end) = (column * step, (column + 1) * step);
                    let covered = to.min(end).saturating_sub(from.max(begin));
                    let Some(best) = most.get_mut(index_of(column)) else { continue };
                    // The last character may have fewer clocks.
                    let clocks = self.clocks.min(end) - begin;
                    if covered > *best && 2 * covered >= clocks {
                        *best = covered;
                        line[index_of(column)] = mark;
                    }
                }
            };
            for &(from, to) in &self.switches {
                paint(from, to, '|');
            }
            for (bar, letter) in bars.iter().zip(('a'..='z').cycle()) {
                paint(bar.from, bar.to, letter);
            }
            let line: String = line.into_iter().collect();
            let _ = writeln!(out, "{:label$}  {line}", self.name(key));
        }
        if self.rows.len() <= 2 {
            for (&key, bars) in &self.rows {
                for (bar, letter) in bars.iter().zip(('a'..='z').cycle()) {
                    let _ = writeln!(
                        out,
                        "{:label$}  {letter} is {} {} -> {}{}, {} to {}",
                        self.name(key),
                        bar.stream,
                        bar.ends.0,
                        bar.ends.1,
                        bar.phase.map_or_else(String::new, |phase| format!(" in {phase}")),
                        text::number(bar.from),
                        text::number(bar.to),
                    );
                }
            }
        }
        out
    }
}

fn index_of(column: u64) -> usize {
    usize::try_from(column).unwrap_or(usize::MAX)
}
