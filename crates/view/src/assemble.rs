//! Assembling a page: which blocks it has within its size limit, and the HTML file.

use std::collections::BTreeMap;

use conset::report::PartsSummary;
use conset::{diff, step_views};
use conset_ir::convert::to_f64;
use conset_ir::{ConnectionSet, Machine, Origin, PartMap};
use rayon::prelude::*;

use crate::columns::{Block, Packed};
use crate::head::{Difference, Head, ScheduleHead, SetHead, VERSION};
use crate::phases::{PhaseSet, connections, names, pairs};
use crate::steps::StepSet;
use crate::{Page, PageOptions, Program, Shown, machine, mesh};

/// The application: a page with the places of the title and of the data.
const TEMPLATE: &str = include_str!("../../../view/dist/page.html");
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
}

/// A schedule on its way to the page.
struct Part<'a> {
    machine: &'a Machine,
    part_map: Option<&'a PartMap>,
    origin: Option<&'a Origin>,
    kind: &'static str,
    parts: Option<PartsSummary>,
    sets: Vec<Box<dyn SetBlocks + 'a>>,
}

impl<'a> Part<'a> {
    fn new(shown: &Shown<'a>) -> Self {
        match shown.program {
            Program::Phases(compiled) => {
                let schedule = compiled.schedule();
                let machine: &Machine = schedule.machine();
                let set = |(schedule, compiled)| -> Box<dyn SetBlocks + 'a> {
                    Box::new(PhaseSet { machine, schedule, compiled })
                };
                let stated = || PartsSummary::of_schedule(schedule);
                let known = shown.halo.map(|placed| {
                    PartsSummary::new(&placed.halo.summary, placed.partition.clone())
                });
                Self {
                    machine,
                    part_map: schedule.part_map(),
                    origin: schedule.origin(),
                    kind: "phases",
                    parts: known.or_else(stated),
                    sets: schedule.sets().iter().zip(compiled.sets()).map(set).collect(),
                }
            }
            Program::Steps(compiled) => {
                let schedule = compiled.schedule();
                let set = |(set, summary)| -> Box<dyn SetBlocks + 'a> {
                    Box::new(StepSet::new(set, summary))
                };
                Self {
                    machine: schedule.machine(),
                    part_map: schedule.part_map(),
                    origin: schedule.origin(),
                    kind: "steps",
                    parts: shown.halo.map(|placed| {
                        PartsSummary::new(&placed.halo.summary, placed.partition.clone())
                    }),
                    sets: schedule.sets().iter().zip(compiled.summaries()).map(set).collect(),
                }
            }
        }
    }
}

/// The blocks that were admitted, and what was not.
struct Admitted {
    blocks: BTreeMap<String, Packed>,
    size: usize,
    limit: usize,
    left_out: Vec<String>,
}

impl Admitted {
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
                let size = to_f64(packed.base64.len()) / 1e6;
                let size = if size < 1.0 {
                    format!("{:.1} kB", 1e3 * size)
                } else {
                    format!("{size:.1} MB")
                };
                self.left_out.push(format!("{what}, {size}"));
            }
        }
        fits
    }
}

/// Makes the page of one schedule, or of two to compare.
///
/// # Errors
/// None that is known: the head is plain data, which can be written as JSON.
pub fn page(shown: &[Shown<'_>], options: &PageOptions) -> Result<Page, serde_json::Error> {
    let parts: Vec<Part<'_>> = shown.iter().map(Part::new).collect();
    let title = shown.iter().map(|shown| shown.name).collect::<Vec<_>>().join(" and ");
    let mut schedules: Vec<ScheduleHead<'_>> = shown.iter().zip(&parts).map(head).collect();
    let mut admitted = Admitted {
        blocks: BTreeMap::new(),
        size: TEMPLATE.len(),
        limit: options.size_limit,
        left_out: Vec::new(),
    };
    let sets: Vec<(usize, usize)> = (0..parts.len())
        .flat_map(|part| (0..parts[part].sets.len()).map(move |set| (part, set)))
        .collect();
    // What is always there: links and phases. Blocks are compressed in parallel and added in order.
    for (number, part) in parts.iter().enumerate() {
        admitted
            .add(format!("{number}.machine"), machine::block(part.machine, part.part_map).pack());
    }
    let every = |make: &(dyn Fn(&dyn SetBlocks) -> Option<Block> + Sync)| -> Vec<Option<Packed>> {
        let pack =
            |&(part, set): &(usize, usize)| make(&*parts[part].sets[set]).map(|block| block.pack());
        sets.par_iter().map(pack).collect()
    };
    for (&(part, set), packed) in sets.iter().zip(every(&|set| Some(set.phases()))) {
        admitted.add(format!("{part}.{set}.phases"), packed.unwrap_or_else(nothing));
    }
    let difference = difference(shown, options);
    // The head is written at the end, when it is known what is left out; its size hardly changes.
    admitted.size += head_size(&schedules, difference.as_ref())?;
    let label = |part: usize, set: usize| {
        let name = parts[part].sets[set].connections().name();
        match parts.len() {
            1 => format!("set {name}"),
            _ => format!("{}, set {name}", shown[part].name),
        }
    };
    let blocks = every(&|set| Some(connections(set.connections())));
    let mut is_listed = vec![false; sets.len()];
    for (row, (&(part, set), packed)) in sets.iter().zip(blocks).enumerate() {
        let blocks = &*parts[part].sets[set];
        let count = blocks.connections().len();
        let what = format!(
            "{}: {count} connections (instead there are words between groups of cells)",
            label(part, set)
        );
        let name = format!("{part}.{set}.connections");
        is_listed[row] = admitted.admit(name, packed.unwrap_or_else(nothing), &what);
        if !is_listed[row] {
            let (groups, block) = pairs(parts[part].machine, blocks.connections());
            schedules[part].sets[set].groups = Some(groups);
            admitted.add(format!("{part}.{set}.pairs"), block.pack());
        }
    }
    let mut is_timed = vec![false; sets.len()];
    for (row, (&(part, set), packed)) in
        sets.iter().zip(every(&|set| Some(set.streams()))).enumerate()
    {
        if !is_listed[row] {
            continue;
        }
        let count = parts[part].sets[set].stream_count();
        let what = format!("{}: the times of {count} streams", label(part, set));
        let name = format!("{part}.{set}.streams");
        is_timed[row] = admitted.admit(name, packed.unwrap_or_else(nothing), &what);
    }
    for (row, (&(part, set), packed)) in
        sets.iter().zip(every(&|set| Some(set.routes()))).enumerate()
    {
        let count = parts[part].sets[set].stream_count();
        let what = format!("{}: the routes of {count} streams", label(part, set));
        let name = format!("{part}.{set}.routes");
        if is_timed[row] && admitted.admit(name, packed.unwrap_or_else(nothing), &what) {
            continue;
        }
        if let Some(loads) = parts[part].sets[set].loads() {
            let what = format!("{}: the loads of links in each phase", label(part, set));
            admitted.admit(format!("{part}.{set}.loads"), loads.pack(), &what);
        }
    }
    for (number, shown) in shown.iter().enumerate() {
        let Some(surface) = shown.surface else { continue };
        let (head, block) = mesh::document(surface);
        let what = format!("{}: the {} polygons of the mesh", shown.name, head.polygons);
        if admitted.admit(format!("{number}.mesh"), block.pack(), &what) {
            schedules[number].mesh = Some(head);
        }
    }
    for (&(part, set), packed) in sets.iter().zip(every(&|set| names(set.connections()))) {
        let what = format!("{}: the names of connections", label(part, set));
        if let Some(packed) = packed {
            admitted.admit(format!("{part}.{set}.names"), packed, &what);
        }
    }
    for (row, (&(part, set), packed)) in
        sets.iter().zip(every(&|set| Some(set.details()))).enumerate()
    {
        let detail = if parts[part].kind == "phases" { "channels" } else { "pieces of messages" };
        let what = format!("{}: the {detail}", label(part, set));
        if is_timed[row] {
            let packed = packed.unwrap_or_else(nothing);
            admitted.admit(format!("{part}.{set}.details"), packed, &what);
        }
    }
    let blocks = &admitted.blocks;
    let directory = blocks.iter().map(|(name, packed)| (name.clone(), packed.directory.clone()));
    let head = Head {
        format: "conset-view",
        version: VERSION,
        generator: concat!("conset ", env!("CARGO_PKG_VERSION")).to_owned(),
        title: title.clone(),
        schedules,
        diff: difference,
        blocks: directory.collect(),
        left_out: admitted.left_out.clone(),
    };
    Ok(Page { html: html(&title, &head, blocks)?, left_out: admitted.left_out })
}

fn nothing() -> Packed {
    Block::default().pack()
}

fn head<'a>((shown, part): (&Shown<'a>, &Part<'a>)) -> ScheduleHead<'a> {
    ScheduleHead {
        name: shown.name,
        kind: part.kind,
        origin: part.origin.map(Into::into),
        machine: machine::head(part.machine),
        parts: part.parts.clone(),
        sets: part.sets.iter().map(|set| set.head()).collect(),
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
            let difference = step_views::diff(a.schedule(), b.schedule());
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
