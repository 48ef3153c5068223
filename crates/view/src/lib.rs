//! Pages that show compiled programs in a browser.
//!
//! [`page`] makes one HTML file that needs no network: the application (`view/` of the repository,
//! whose bundle is compiled in) and the data of one schedule, or of two that are compared. The data is
//! a *head* in JSON (machine, sets, bounds, summaries, as `conset show --json` states them) and
//! *blocks* of columns (module `columns`) with what is large: links, connections, streams, routes, the mesh.
//!
//! # Detail
//!
//! The blocks are added in order of importance until the page has the size of
//! [`PageOptions::size_limit`]. Where the routes of a set do not fit, the page has the loads of links in
//! each phase instead; where the connections do not fit, a matrix of words between groups of cells.
//! [`Page::left_out`] and the page itself say what was left out.
//!
//! # Safety of the page
//!
//! The page has a content security policy that allows its own script and style by their hashes, and
//! nothing else: no connections and no evaluation of texts. Names of sets, connections and files are data; `<` is
//! escaped in the head, and the application writes them as text, never as HTML.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

mod assemble;
mod columns;
mod head;
mod machine;
mod mesh;
mod phases;
mod profile;
mod report;
mod steps;

use conset::Compiled;
use conset::input::PlacedHalo;
use conset::steps::CompiledSteps;
use conset::verify::Rejection;
use conset_ir::{Schedule, StepSchedule};
use conset_mesh::surface::Surface;

pub use assemble::page;
pub use report::ReportPage;

/// A compiled program of either kind, or a schedule that the checker refused.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// Phases.
    Phases(&'a Compiled),
    /// Messages in steps.
    Steps(&'a CompiledSteps),
    /// Phases that the checker refused. The page begins with the violations, and has the routes and
    /// times that the schedule states, but no predictions, bounds and tables.
    RefusedPhases(&'a Schedule, &'a Rejection),
    /// Messages in steps that the checker refused. They have no predicted times: the page draws one
    /// step after the other.
    RefusedSteps(&'a StepSchedule, &'a Rejection),
}

/// A schedule that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its name: the file or the input that it was compiled from.
    pub name: &'a str,
    /// The schedule.
    pub program: Program<'a>,
    /// The partition, if it was compiled from a mesh just now.
    pub halo: Option<&'a PlacedHalo>,
    /// The surface of the mesh, whose polygons have the numbers of parts.
    pub surface: Option<&'a Surface>,
}

/// Options of a page.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PageOptions {
    /// The greatest size of the page in bytes. The application, the head and the lists of links and
    /// phases are always there.
    pub size_limit: usize,
    /// Details of each kind that the comparison of two schedules lists.
    pub differences: usize,
}

impl PageOptions {
    /// The default of [`PageOptions::size_limit`]: 20 MB.
    pub const SIZE_LIMIT: usize = 20_000_000;

    /// The options with another size limit.
    #[must_use]
    pub fn size_limit(self, bytes: usize) -> Self {
        Self { size_limit: bytes, ..self }
    }
}

impl Default for PageOptions {
    fn default() -> Self {
        Self { size_limit: Self::SIZE_LIMIT, differences: 200 }
    }
}

/// A page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The file.
    pub html: String,
    /// What was left out because of the size limit, and its size.
    pub left_out: Vec<String>,
}
