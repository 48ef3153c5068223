//! Assembling a page: which blocks it has within its size limit, and the HTML file.

use std::collections::BTreeMap;

use conset::profile::SetProfile;
use conset::report::PartsSummary;
use conset::steps::StepSummary;
use conset::{Compiled, diff, step_views};
use conset_ir::convert::to_f64;
use conset_ir::{ConnectionSet, Machine, Origin, PartMap, Schedule, StepSchedule};
use rayon::prelude::*;

use crate::columns::{Block, Packed};
use crate::head::{Difference, Head, RefusedHead, ScheduleHead, SetHead, VERSION};
use crate::phases::{PhaseSet, connections, names, pairs};
use crate::profile::{self, StreamRows};
use crate::steps::StepSet;
use crate::{Page, PageOptions, Program, Shown, machine, mesh};

/// The application: a page with the places of the title and of the data.
const TEMPLATE: &str = include_str!("../page.html");
/// Where the title is in the template.
const TITLE: &str = "<!-- conset:title -->";
/// Where the data is in the template.
const DATA: &str = "<!-- conset:data -->";
/// Characters that the elements around a block take at most.
const ELEMENT: usize = 120;

/// The blocks of a set, whichever kind of schedule it has.
pub(crate) trait SetBlocks: Sync {
    fn head(&self) -> SetHead;
    fn connections(&self) -> &ConnectionSet;
    /// Phases or steps in numbers, and the loads of links over all of them.
    fn phases(&self) -> Block;
    /// When each stream is open.
    fn streams(&self) -> Block;
    /// The links of each stream.
    fn routes(&self) -> Block;
    /// The loads of links in each phase, where routes do not fit; `None` if these are too many too.
    fn loads(&self) -> Option<Block>;
    /// Channels, or the pieces of messages.
    fn details(&self) -> Block;
    /// Routes or messages.
    fn stream_count(&self) -> usize;
    /// Where its clocks went by the cost model; `None` if nothing is predicted.
    fn profile(&self) -> Option<&SetProfile>;
    /// The rows of streams by which the profile names them.
    fn stream_rows(&self) -> StreamRows;
}

/// A schedule on its way to the page.
struct Part<'a> {
    machine: &'a Machine,
    part_map: Option<&'a PartMap>,
    origin: Option<&'a Origin>,
    kind: &'static str,
    parts: Option<PartsSummary>,
    refused: Option<RefusedHead>,
    sets: Vec<Box<dyn SetBlocks + 'a>>,
}

impl<'a> Part<'a> {
    fn new(shown: &Shown<'a>) -> Self {
        let known = || {
            let placed = shown.halo?;
            Some(PartsSummary::new(&placed.halo.summary, placed.partition.clone()))
        };
        match shown.program {
            Program::Phases(compiled) => {
                let schedule = compiled.schedule();
                let parts = known().or_else(|| PartsSummary::of_schedule(schedule));
                Self { parts, ..Self::of_phases(schedule, Some(compiled)) }
            }
            Program::Steps(compiled) => {
                let summaries = compiled.summaries();
                Self { parts: known(), ..Self::of_steps(compiled.schedule(), summaries) }
            }
            Program::RefusedPhases(schedule, rejection) => {
                let refused = Some(RefusedHead::new(rejection));
                Self { refused, ..Self::of_phases(schedule, None) }
            }
            Program::RefusedSteps(schedule, rejection) => {
                let refused = Some(RefusedHead::new(rejection));
                Self { refused, ..Self::of_steps(schedule, Vec::new()) }
            }
        }
    }

    fn of_phases(schedule: &'a Schedule, compiled: Option<&'a Compiled>) -> Self {
        let machine: &Machine = schedule.machine();
        let sets =
            schedule.sets().iter().enumerate().map(|(row, set)| -> Box<dyn SetBlocks + 'a> {
                let compiled = compiled.map(|compiled| &compiled.sets()[row]);
                Box::new(PhaseSet::new(machine, set, compiled))
            });
        Self {
            machine,
            part_map: schedule.part_map(),
            origin: schedule.origin(),
            kind: "phases",
            parts: None,
            refused: None,
            sets: sets.collect(),
        }
    }

    /// `summaries` are those of the sets, or none if the checker refused the schedule.
    fn of_steps(schedule: &'a StepSchedule, summaries: Vec<StepSummary>) -> Self {
        let mut summaries = summaries.into_iter();
        let sets = schedule.sets().iter().map(|set| -> Box<dyn SetBlocks + 'a> {
            Box::new(StepSet::new(set, summaries.next()))
        });
        Self {
            machine: schedule.machine(),
            part_map: schedule.part_map(),
            origin: schedule.origin(),
            kind: "steps",
            parts: None,
            refused: None,
            sets: sets.collect(),
        }
    }
}

/// Makes the page of one schedule, or of two to compare.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset_view::{PageOptions, Program, Shown, page};
///
/// let machine = Arc::new(Machine::from_spec("ring:4")?);
/// let set = ConnectionSet::new("one", vec![Connection::new(CellId(0), CellId(1), 10)])?;
/// let compiled = conset::Compiler::new(&machine).compile(&set.into())?;
/// let program = Program::Phases(&compiled);
/// let shown = Shown { name: "one.json", program, halo: None, surface: None };
/// let page = page(&[shown], &PageOptions::default())?;
/// assert!(page.html.starts_with("<!doctype html>") && page.left_out.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// None that is known: the head is plain data, which can be written as JSON.
pub fn page(shown: &[Shown<'_>], options: &PageOptions) -> Result<Page, serde_json::Error> {
    let parts: Vec<Part<'_>> = shown.iter().map(Part::new).collect();
    let title = shown.iter().map(|shown| shown.name).collect::<Vec<_>>().join(" and ");
    let difference = difference(shown, options);
    let mut assembly = Assembly::new(shown, &parts, options.size_limit);
    assembly.add_machines_and_phases();
    // The head is written at the end, when it is known what is left out; its size hardly changes.
    assembly.size += head_size(&assembly.schedules, difference.as_ref())?;
    let is_listed = assembly.add_connections();
    let is_timed = assembly.add_streams(&is_listed);
    assembly.add_routes(&is_timed);
    assembly.add_ports();
    assembly.add_paths(&is_timed);
    assembly.add_meshes();
    assembly.add_names();
    assembly.add_details(&is_timed);
    assembly.add_ports_of_phases();
    let Assembly { schedules, blocks, left_out, .. } = assembly;
    let directory = blocks.iter().map(|(name, packed)| (name.clone(), packed.directory.clone()));
    let head = Head {
        format: "conset-view",
        version: VERSION,
        generator: concat!("conset ", env!("CARGO_PKG_VERSION")).to_owned(),
        title: title.clone(),
        schedules,
        diff: difference,
        blocks: directory.collect(),
        left_out: left_out.clone(),
    };
    Ok(Page { html: html(&title, &head, &blocks)?, left_out })
}

/// A page whose blocks are added one after the other. Blocks of all sets are compressed in parallel.
struct Assembly<'a> {
    shown: &'a [Shown<'a>],
    parts: &'a [Part<'a>],
    /// The part and the number in it of each set.
    sets: Vec<(usize, usize)>,
    schedules: Vec<ScheduleHead<'a>>,
    blocks: BTreeMap<String, Packed>,
    left_out: Vec<String>,
    size: usize,
    limit: usize,
}

impl<'a> Assembly<'a> {
    fn new(shown: &'a [Shown<'a>], parts: &'a [Part<'a>], limit: usize) -> Self {
        let sets = |part: usize| (0..parts[part].sets.len()).map(move |set| (part, set));
        Self {
            shown,
            parts,
            sets: (0..parts.len()).flat_map(sets).collect(),
            schedules: shown.iter().zip(parts).map(head).collect(),
            blocks: BTreeMap::new(),
            left_out: Vec::new(),
            size: TEMPLATE.len(),
            limit,
        }
    }

    fn set(&self, row: usize) -> &'a dyn SetBlocks {
        let (part, set) = self.sets[row];
        &*self.parts[part].sets[set]
    }

    /// The name of a block of a set.
    fn name(&self, row: usize, block: &str) -> String {
        let (part, set) = self.sets[row];
        format!("{part}.{set}.{block}")
    }

    /// A block of each set that is wanted.
    fn pack(
        &self,
        is_wanted: impl Fn(usize) -> bool,
        make: impl Fn(&dyn SetBlocks) -> Option<Block> + Sync,
    ) -> Vec<(usize, Packed)> {
        let wanted: Vec<usize> = (0..self.sets.len()).filter(|&row| is_wanted(row)).collect();
        let sets: Vec<(usize, &dyn SetBlocks)> =
            wanted.into_iter().map(|row| (row, self.set(row))).collect();
        let pack = |&(row, set): &(usize, &dyn SetBlocks)| Some((row, make(set)?.pack()));
        sets.par_iter().filter_map(pack).collect()
    }

    /// Adds a block whether or not it fits.
    fn add(&mut self, name: String, packed: Packed) {
        self.size += packed.base64.len() + name.len() + ELEMENT;
        self.blocks.insert(name, packed);
    }

    /// Adds a block if it fits, else notes what is left out and its size. Returns whether it was added.
    fn admit(&mut self, name: String, packed: Packed, what: &str) -> bool {
        let fits = self.size + packed.base64.len() + name.len() + ELEMENT <= self.limit;
        match fits {
            true => self.add(name, packed),
            false => {
                let megabytes = to_f64(packed.base64.len()) / 1e6;
                let size = match megabytes < 1.0 {
                    true => format!("{:.1} kB", 1e3 * megabytes),
                    false => format!("{megabytes:.1} MB"),
                };
                self.left_out.push(format!("{what}, {size}"));
            }
        }
        fits
    }

    /// Adds a block of a set as [`Assembly::admit`]; `what` is what it has.
    fn admit_of_set(&mut self, row: usize, block: &str, packed: Packed, what: &str) -> bool {
        self.admit(self.name(row, block), packed, &self.label(row, what))
    }

    /// What of a set is left out.
    fn label(&self, row: usize, what: &str) -> String {
        let set = self.set(row).connections().name();
        match self.parts.len() {
            1 => format!("set {set}: {what}"),
            _ => format!("{}, set {set}: {what}", self.shown[self.sets[row].0].name),
        }
    }

    /// What a page always has.
    fn add_machines_and_phases(&mut self) {
        for (number, part) in self.parts.iter().enumerate() {
            let block = machine::block(part.machine, part.part_map);
            self.add(format!("{number}.machine"), block.pack());
        }
        for (row, packed) in self.pack(|_| true, |set| Some(set.phases())) {
            self.add(self.name(row, "phases"), packed);
        }
        for (row, packed) in self.pack(|_| true, |set| set.profile().map(profile::phases)) {
            self.add(self.name(row, "profile"), packed);
        }
    }

    /// Adds connections, or words between groups of cells. Returns which sets have their connections.
    fn add_connections(&mut self) -> Vec<bool> {
        let mut is_listed = vec![false; self.sets.len()];
        for (row, packed) in self.pack(|_| true, |set| Some(connections(set.connections()))) {
            let set = self.set(row).connections();
            let what = format!(
                "{} connections (instead there are words between groups of cells)",
                set.len()
            );
            is_listed[row] = self.admit_of_set(row, "connections", packed, &what);
            if !is_listed[row] {
                let (part, number) = self.sets[row];
                let (groups, block) = pairs(self.parts[part].machine, set);
                self.schedules[part].sets[number].groups = Some(groups);
                self.add(self.name(row, "pairs"), block.pack());
            }
        }
        is_listed
    }

    /// Adds the times of streams. Returns which sets have them.
    fn add_streams(&mut self, is_listed: &[bool]) -> Vec<bool> {
        let mut is_timed = vec![false; self.sets.len()];
        for (row, packed) in self.pack(|row| is_listed[row], |set| Some(set.streams())) {
            let what = format!("the times and routes of {} streams", self.set(row).stream_count());
            is_timed[row] = self.admit_of_set(row, "streams", packed, &what);
        }
        is_timed
    }

    /// Adds the routes of streams, or the loads of links.
    fn add_routes(&mut self, is_timed: &[bool]) {
        let mut has_routes = vec![false; self.sets.len()];
        for (row, packed) in self.pack(|row| is_timed[row], |set| Some(set.routes())) {
            let what = format!("the routes of {} streams", self.set(row).stream_count());
            has_routes[row] = self.admit_of_set(row, "routes", packed, &what);
        }
        for (row, packed) in self.pack(|row| !has_routes[row], |set| set.loads()) {
            self.admit_of_set(row, "loads", packed, "the loads of links in each phase");
        }
    }

    /// Adds the clocks of each port.
    fn add_ports(&mut self) {
        for (row, packed) in self.pack(|_| true, |set| set.profile().map(profile::ports)) {
            self.admit_of_set(row, "ports", packed, "the clocks of each port");
        }
    }

    /// Adds critical paths, and the slack of all streams.
    fn add_paths(&mut self, is_timed: &[bool]) {
        let path = |set: &dyn SetBlocks| Some(profile::path(set.profile()?, &set.stream_rows()));
        for (row, packed) in self.pack(|row| is_timed[row], path) {
            self.admit_of_set(row, "path", packed, "the critical path");
        }
        let slack = |set: &dyn SetBlocks| {
            Some(profile::slack(set.profile()?, &set.stream_rows(), set.stream_count()))
        };
        for (row, packed) in self.pack(|row| is_timed[row], slack) {
            let what = format!("the slack of {} streams", self.set(row).stream_count());
            self.admit_of_set(row, "slack", packed, &what);
        }
    }

    /// Adds the clocks of each port in each phase, where there are several phases.
    fn add_ports_of_phases(&mut self) {
        let what = "the clocks of each port in each phase (instead there are sums over the ports, and \
                    sums over the phases)";
        fn several(set: &dyn SetBlocks) -> Option<&SetProfile> {
            set.profile().filter(|profile| profile.phases.len() > 1)
        }
        let has_several = |row: usize| several(self.set(row)).is_some();
        let rows: Vec<usize> = (0..self.sets.len()).filter(|&row| has_several(row)).collect();
        let blocks = self.pack(has_several, |set| profile::phase_ports(several(set)?));
        let mut blocks: BTreeMap<usize, Packed> = blocks.into_iter().collect();
        for row in rows {
            match blocks.remove(&row) {
                Some(packed) => _ = self.admit_of_set(row, "phase-ports", packed, what),
                None => self.left_out.push(self.label(row, what)),
            }
        }
    }

    fn add_meshes(&mut self) {
        for (number, shown) in self.shown.iter().enumerate() {
            let Some(surface) = shown.surface else { continue };
            let (head, block) = mesh::document(surface);
            let what = format!("{}: the {} polygons of the mesh", shown.name, head.polygons);
            if self.admit(format!("{number}.mesh"), block.pack(), &what) {
                self.schedules[number].mesh = Some(head);
            }
        }
    }

    fn add_names(&mut self) {
        for (row, packed) in self.pack(|_| true, |set| names(set.connections())) {
            self.admit_of_set(row, "names", packed, "the names of connections");
        }
    }

    fn add_details(&mut self, is_timed: &[bool]) {
        for (row, packed) in self.pack(|row| is_timed[row], |set| Some(set.details())) {
            let what = match self.parts[self.sets[row].0].kind {
                "phases" => "the channels",
                _ => "the pieces of messages",
            };
            self.admit_of_set(row, "details", packed, what);
        }
    }
}

fn head<'a>((shown, part): (&Shown<'a>, &Part<'a>)) -> ScheduleHead<'a> {
    ScheduleHead {
        name: shown.name,
        kind: part.kind,
        origin: part.origin.map(Into::into),
        machine: machine::head(part.machine),
        parts: part.parts.clone(),
        sets: part.sets.iter().map(|set| set.head()).collect(),
        refused: part.refused.clone(),
        mesh: None,
    }
}

fn head_size(
    schedules: &[ScheduleHead<'_>],
    difference: Option<&Difference>,
) -> Result<usize, serde_json::Error> {
    /// What sentences about blocks that are left out may take, and the directory of a block.
    const REST: usize = 20_000;
    Ok(serde_json::to_string(&(schedules, difference))?.len() + REST)
}

/// What differs between two schedules of one kind.
fn difference(shown: &[Shown<'_>], options: &PageOptions) -> Option<Difference> {
    match shown {
        [Shown { program: Program::Phases(a), .. }, Shown { program: Program::Phases(b), .. }] => {
            Some(Difference::Phases(Box::new(diff::diff(a, b, options.differences))))
        }
        [Shown { program: Program::Steps(a), .. }, Shown { program: Program::Steps(b), .. }] => {
            let difference = step_views::diff(a.schedule(), b.schedule(), options.differences);
            Some(Difference::Steps(Box::new(difference)))
        }
        _ => None,
    }
}

/// Text as HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML has no other control characters.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The file: the template with the title and the data.
fn html(
    title: &str,
    head: &Head<'_>,
    blocks: &BTreeMap<String, Packed>,
) -> Result<String, serde_json::Error> {
    let (before, rest) = TEMPLATE.split_once(TITLE).unwrap_or((TEMPLATE, ""));
    let (between, after) = rest.split_once(DATA).unwrap_or((rest, ""));
    // `<` is only in strings, where JSON has an escape for it: no text can end the element.
    let head = serde_json::to_string(head)?.replace('<', "\\u003c");
    let size: usize = blocks.values().map(|packed| packed.base64.len() + ELEMENT).sum();
    let mut out = String::with_capacity(TEMPLATE.len() + head.len() + size);
    out.push_str(before);
    out.push_str(&escaped(title));
    out.push_str(between);
    out.push_str("<script type=\"application/json\" id=\"head\">");
    out.push_str(&head);
    out.push_str("</script>\n");
    for (name, packed) in blocks {
        out.push_str("<script type=\"application/octet-stream\" id=\"block-");
        out.push_str(name);
        out.push_str("\">");
        out.push_str(&packed.base64);
        out.push_str("</script>\n");
    }
    out.push_str(after);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_its_places_once() {
        for place in [TITLE, DATA] {
            assert_eq!(TEMPLATE.matches(place).count(), 1, "{place}");
        }
        assert!(TEMPLATE.find(TITLE) < TEMPLATE.find(DATA));
    }

    #[test]
    fn texts_cannot_become_markup() {
        let text = escaped("</title><script>'\"&\0");
        assert_eq!(text, "&lt;/title&gt;&lt;script&gt;&#39;&quot;&amp;\u{fffd}");
    }
}
