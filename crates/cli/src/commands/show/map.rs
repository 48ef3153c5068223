//! Maps of a machine with the load of every link, as text.
//!
//! Tori and meshes of one to three dimensions are drawn as grids, a grid for each layer of the third
//! dimension. If a grid has at most eight columns, the numbers of words are written between the cells;
//! wider ones show digits from 1 to 9, in proportion to the busiest link. Machines without such
//! coordinates have no map, only a table of their links.

use std::fmt::Write;

use conset_ir::{CellId, LinkId, Machine, PhaseRoutes};

use super::selection::Selection;
use crate::text;

/// Columns up to which words are written as numbers.
const NUMBERED: u32 = 8;

/// Columns up to which there is a map.
const DRAWN: u32 = 64;

/// What crosses a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkLoad {
    pub(super) routes: u64,
    pub(super) words: u64,
}

/// What crosses each link of a machine.
pub(super) struct LinkLoads(Vec<LinkLoad>);

impl LinkLoads {
    pub(super) fn new(machine: &Machine) -> Self {
        Self(vec![LinkLoad::default(); machine.link_count()])
    }

    /// The loads of the selected routes of a phase.
    pub(super) fn of_phase(machine: &Machine, routes: &PhaseRoutes, only: &Selection<'_>) -> Self {
        let mut loads = Self::new(machine);
        for route in routes.iter().filter(|route| route.words >= only.min_words) {
            loads.add(route.links(), route.words.into());
        }
        loads
    }

    /// Adds a route.
    pub(super) fn add(&mut self, links: &[LinkId], words: u64) {
        // A schedule that the checker refuses may have steps that no link makes.
        for link in links.iter().filter(|link| **link != LinkId::NONE) {
            let load = &mut self.0[link.index()];
            load.routes += 1;
            load.words += words;
        }
    }

    /// The links that any route crosses.
    pub(super) fn used(&self) -> impl Iterator<Item = (LinkId, LinkLoad)> + '_ {
        let loads = self.0.iter().enumerate().filter(|(_, load)| load.routes > 0);
        loads.map(|(row, &load)| (LinkId::from_index(row), load))
    }

    /// Clocks in which a link moves words.
    pub(super) fn clocks(&self, machine: &Machine, link: LinkId, load: LinkLoad) -> u64 {
        load.words.saturating_mul(machine.link_clocks(link).into())
    }

    /// The busiest link; of equal ones the first.
    fn busiest(&self) -> Option<(LinkId, LinkLoad)> {
        self.used().min_by_key(|(link, load)| (std::cmp::Reverse(load.words), *link))
    }

    /// The words from one cell to another, over all links between them.
    fn between(&self, machine: &Machine, from: CellId, to: CellId) -> u64 {
        machine.links_between(from, to).map(|link| self.0[link.index()].words).sum()
    }
}

/// The map of a machine; `None` if its topology has none.
pub(super) fn draw(machine: &Machine, loads: &LinkLoads) -> Option<String> {
    let dims = machine.topology().dims().filter(|dims| (1..=3).contains(&dims.len()))?;
    if dims[0] > DRAWN {
        return None;
    }
    let size = [0, 1, 2].map(|d| dims.get(d).copied().unwrap_or(1));
    let grid = Grid { machine, loads, size, wraps: machine.topology().wraps() };
    let mut out = String::new();
    if let Some((link, load)) = loads.busiest() {
        let ends = machine.link(link);
        let _ = writeln!(
            out,
            "busiest link {link} from {} to {}: {}, {}",
            ends.source,
            ends.target,
            text::count(load.routes, "route"),
            text::count(load.words, "word"),
        );
    }
    if size[0] <= NUMBERED {
        let deeper = if size[2] > 1 { ", + to the next layer, - back" } else { "" };
        let _ = writeln!(out, "> to the right, < back, v down, ^ back{deeper}");
    }
    for layer in 0..size[2] {
        if size[2] > 1 {
            let _ = writeln!(out, "layer {layer}");
        }
        match size[0] <= NUMBERED {
            true => grid.numbers(&mut out, layer),
            false => grid.digits(&mut out, layer),
        }
    }
    Some(out)
}

struct Grid<'a> {
    machine: &'a Machine,
    loads: &'a LinkLoads,
    size: [u32; 3],
    wraps: bool,
}

impl Grid<'_> {
    fn cell(&self, at: [u32; 3]) -> CellId {
        CellId(at[0] + self.size[0] * (at[1] + self.size[1] * at[2]))
    }

    /// Words to the next cell of a dimension and back; `None` if there is no next cell. With two cells
    /// in a ring, all links are drawn between the first and the second.
    fn pair(&self, at: [u32; 3], dimension: usize) -> Option<(u64, u64)> {
        let size = self.size[dimension];
        let is_last = at[dimension] + 1 == size;
        if size < 2 || (is_last && !(self.wraps && size > 2)) {
            return None;
        }
        let mut next = at;
        next[dimension] = (at[dimension] + 1) % size;
        let (a, b) = (self.cell(at), self.cell(next));
        let words = |from, to| self.loads.between(self.machine, from, to);
        Some((words(a, b), words(b, a)))
    }

    /// Cells with words to the right (`>`), from there (`<`), down (`v`), up from there (`^`), and to
    /// the next layer (`+`) and back (`-`).
    fn numbers(&self, out: &mut String, layer: u32) {
        let [columns, rows, _] = self.size;
        let label = |pair: Option<(u64, u64)>, signs: [char; 2]| match pair {
            Some((there, back)) => format!("{}{there} {}{back}", signs[0], signs[1]),
            None => String::new(),
        };
        let mut lines: Vec<[Vec<String>; 4]> = Vec::new();
        for y in 0..rows {
            let row: [Vec<String>; 4] = [0usize, 1, 2, 3].map(|line| {
                let text = |x| {
                    let at = [x, y, layer];
                    let across = self.pair(at, 0);
                    match line {
                        0 => {
                            let right = across.map(|(there, _)| format!(" >{there}"));
                            let cell = self.cell(at);
                            let dead = if self.machine.is_alive(cell) { "" } else { " dead" };
                            (format!("{cell}{dead}"), right.unwrap_or_default())
                        }
                        1 => {
                            let left = across.map(|(_, back)| format!(" <{back}"));
                            (String::new(), left.unwrap_or_default())
                        }
                        2 => (label(self.pair(at, 1), ['v', '^']), String::new()),
                        _ => (label(self.pair(at, 2), ['+', '-']), String::new()),
                    }
                };
                (0..columns).map(text).map(|(left, right)| format!("{left}\t{right}")).collect()
            });
            lines.push(row);
        }
        // The part before the tab is left-aligned, the one after it right-aligned.
        let halves = |cell: &str| {
            let (left, right) = cell.split_once('\t').unwrap_or((cell, ""));
            (left.len(), right.len())
        };
        let all = || lines.iter().flatten().flatten().map(|cell| halves(cell));
        let names = || lines.iter().flat_map(|row| &row[..2]).flatten().map(|cell| halves(cell));
        let left = names().map(|half| half.0).max().unwrap_or(0);
        let right = names().map(|half| half.1).max().unwrap_or(0);
        let whole = (left + right).max(all().map(|half| half.0).max().unwrap_or(0));
        for (y, row) in lines.iter().enumerate() {
            for line in row {
                let mut written = String::new();
                for cell in line {
                    let (a, b) = cell.split_once('\t').unwrap_or((cell, ""));
                    let space = whole - a.len();
                    let _ = write!(written, "{a}{b:>space$}   ");
                }
                if !written.trim().is_empty() {
                    let _ = writeln!(out, "{}", written.trim_end());
                }
            }
            if y + 1 < lines.len() || layer + 1 < self.size[2] {
                out.push('\n');
            }
        }
    }

    /// A cell is `o`; the two digits after it are the loads to the right and back, those below it
    /// down and back up; a third line has those to the next layer and back.
    fn digits(&self, out: &mut String, layer: u32) {
        let [columns, rows, _] = self.size;
        let most = self.loads.busiest().map_or(0, |(_, load)| load.words);
        let digit = |words: u64| match words.saturating_mul(9).div_ceil(most.max(1)) {
            0 => '.',
            // Parallel links together can have more than the busiest one.
            ninths => {
                char::from_digit(u32::try_from(ninths.min(9)).unwrap_or(9), 10).unwrap_or('9')
            }
        };
        let pair = |pair: Option<(u64, u64)>| match pair {
            Some((there, back)) => [digit(there), digit(back)].iter().collect(),
            None => "  ".to_owned(),
        };
        let _ = writeln!(
            out,
            "o>< and v^ below: ninths of the busiest link's words, rounded up; cells are c{} + {} x \
             row + column",
            self.cell([0, 0, layer]).0,
            columns,
        );
        for y in 0..rows {
            let line = |text: &dyn Fn(u32) -> String| (0..columns).map(text).collect::<String>();
            let across = line(&|x| format!("o{}", pair(self.pair([x, y, layer], 0))));
            let down = line(&|x| format!("{} ", pair(self.pair([x, y, layer], 1))));
            let deep = line(&|x| format!("{} ", pair(self.pair([x, y, layer], 2))));
            for written in [across, down, deep] {
                if !written.trim().is_empty() {
                    let _ = writeln!(out, "{}", written.trim_end());
                }
            }
        }
    }
}
