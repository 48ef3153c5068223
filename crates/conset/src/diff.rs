//! Comparing two compiled programs.
//!
//! The comparison covers machines, parts and node numbers, sets (matched by name), connections, and
//! their phases, routes, channels and starts. Nothing is executed.
//!
//! # What counts as unchanged
//!
//! * Connections match by name, or else by their ends. Another id alone is not a difference in
//!   placement.
//! * Phases match by number, because their contexts are loaded in that order.
//! * A forwarding entry is unchanged if it is in the same phase, cell and channel and moves the
//!   words of the same connection from the same feed to the same sink. *Stability* is the share of
//!   unchanged entries among all channels with an entry before or after; 1 if there are none.
//! * Bounds and predictions are recomputed for both programs; the checker verifies those in files.
//! * A part is unchanged if it is on the same cell. Images have no parts, so a schedule and its image
//!   are not different.
//! * The origin of a schedule (generator, algorithm, seed) is reported, but is not a difference.
//!
//! Counts cover everything; lists of details are truncated to the given length.
//!
//! The time is near-linear: everything is sorted once and merged.

use conset_ir::convert::index;
use conset_ir::{CellId, ChannelId, Connection, ConnectionId, PhaseId, SetSchedule, Slot};
use serde::Serialize;

use crate::compiled::Compiled;
use crate::pairing::ConnectionPairs;
pub use crate::part_diff::{NumberChange, PartChange, PartDiff};
use crate::schedule_diff::change;
pub use crate::schedule_diff::{Both, ScheduleDiff, ValueChange};
use crate::table_diff;
pub use crate::table_diff::{CellTable, EntryChange, TableDiff, TruncatedList};

/// The differences between two compiled programs, before (`a`) and after (`b`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// Whether there are none.
    pub identical: bool,
    /// The differences between machines, origins and parts, and which sets both have.
    #[serde(flatten)]
    pub schedule: ScheduleDiff,
    /// The common sets, in the order of the second.
    pub sets: Vec<SetDiff>,
}

/// The differences between two compilations of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SetDiff {
    /// Its name.
    pub set: String,
    /// Whether there are none.
    pub identical: bool,
    /// Connections.
    pub connections: Both<usize>,
    /// Words.
    pub words: Both<u64>,
    /// Phases.
    pub phases: Both<usize>,
    /// The bound on phases.
    pub bound_phases: Both<u32>,
    /// Predicted clocks.
    pub predicted_clocks: Both<u64>,
    /// The bound on clocks.
    pub bound_clocks: Both<u64>,
    /// Connections only in the first.
    pub removed: TruncatedList<ConnectionSummary>,
    /// Connections only in the second.
    pub added: TruncatedList<ConnectionSummary>,
    /// Connections whose ends, words, requirements or name changed.
    pub changed: TruncatedList<ConnectionChange>,
    /// Connections in both.
    pub common: usize,
    /// Of these, the number with another id.
    pub renumbered: usize,
    /// The number with a part in another phase, or split differently.
    pub moved: usize,
    /// The number with another route: other cells or links.
    pub rerouted: usize,
    /// The number with other channels on the same route.
    pub rechanneled: usize,
    /// The number that start at another clock of their phase.
    pub restarted: usize,
    /// The number with another duration.
    pub rebooked: usize,
    /// The connections behind these five counts.
    pub placements: TruncatedList<PlacementChange>,
    /// Whether the order between connections changed.
    pub order_changed: bool,
    /// Whether the mesh nodes of the connections changed.
    pub nodes_changed: bool,
    /// The forwarding tables.
    pub entries: TableDiff,
}

/// The description of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConnectionSummary {
    /// Its id in the schedule that contains it.
    pub id: ConnectionId,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The cell that sends.
    pub source: CellId,
    /// The cell that receives.
    pub target: CellId,
    /// Words.
    pub words: u32,
}

/// A connection whose definition changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConnectionChange {
    /// Its ids.
    pub id: Both<ConnectionId>,
    /// The differences.
    pub changes: Vec<ValueChange>,
}

/// A connection with another phase, route or time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlacementChange {
    /// Its ids.
    pub id: Both<ConnectionId>,
    /// The cell that sends, after.
    pub source: CellId,
    /// The cell that receives, after.
    pub target: CellId,
    /// The placement of its parts.
    pub parts: Both<Vec<PlacedPart>>,
}

/// The placement of a part of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlacedPart {
    /// The phase.
    pub phase: PhaseId,
    /// Words of the part.
    pub words: u32,
    /// Cells of its route.
    pub cells: Vec<CellId>,
    /// Channels on them.
    pub channels: Vec<ChannelId>,
    /// First clock.
    pub start: u64,
    /// Clocks.
    pub duration: u64,
}

/// Compares two compiled programs. `limit` is the length to which lists of details are truncated.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::{Compiler, diff};
///
/// let machine = Arc::new(Machine::from_spec("ring:4")?);
/// let compile = |words| -> Result<_, Box<dyn std::error::Error>> {
///     let connection = Connection::new(CellId(0), CellId(1), words);
///     Ok(Compiler::new(&machine).compile_sets([ConnectionSet::new("s", vec![connection])?])?)
/// };
/// let diff = diff::diff(&compile(5)?, &compile(6)?, 10);
/// assert!(!diff.identical);
/// assert_eq!((diff.sets[0].words.a, diff.sets[0].words.b), (5, 6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Near-linear in connections, hops and forwarding entries.
pub fn diff(a: &Compiled, b: &Compiled, limit: usize) -> Diff {
    let (first, second) = (a.schedule(), b.schedule());
    let (schedule, common) = ScheduleDiff::of(first, second, limit);
    let same_links = first.machine().topology() == second.machine().topology();
    let sets: Vec<SetDiff> = common
        .into_iter()
        .map(|(row_a, row_b)| {
            let side = |c, row| SetSide::new(c, row);
            SetCompare { a: side(a, row_a), b: side(b, row_b), same_links, limit }.run()
        })
        .collect();
    let identical = schedule.is_empty() && sets.iter().all(|set| set.identical);
    Diff { identical, schedule, sets }
}

/// A set of one of the programs, with the parts of each connection.
struct SetSide<'a> {
    schedule: &'a SetSchedule,
    image: &'a conset_ir::SetImage,
    clocks: u64,
    bounds: conset_ir::Bounds,
    /// Parts of connection `x`: rows `first[x]..first[x + 1]` of `parts`, in phase order.
    first: Vec<u32>,
    parts: Vec<PartAt<'a>>,
}

#[derive(Clone, Copy)]
struct PartAt<'a> {
    phase: PhaseId,
    route: conset_ir::RouteRef<'a>,
    slot: Slot,
}

impl<'a> SetSide<'a> {
    fn new(compiled: &'a Compiled, row: usize) -> Self {
        let schedule = &compiled.schedule().sets()[row];
        let timetable = &schedule.timetable;
        let mut parts = Vec::new();
        for ((phase, routes), times) in timetable.routing().iter().zip(timetable.phases()) {
            let slots = routes.iter().zip(&times.slots);
            parts.extend(slots.map(|(route, &slot)| PartAt { phase, route, slot }));
        }
        // The sort is stable: parts of a connection stay in the order of their phases and rows.
        parts.sort_by_key(|part| part.route.connection);
        let mut first = vec![0u32; timetable.routing().set().len() + 1];
        for part in &parts {
            first[part.route.connection.index() + 1] += 1;
        }
        for x in 1..first.len() {
            first[x] += first[x - 1];
        }
        let image = &compiled.image().sets()[row];
        let known = &compiled.sets()[row];
        let (clocks, bounds) = (known.prediction.clocks, schedule.bounds);
        Self { schedule, image, clocks, bounds, first, parts }
    }

    fn set(&self) -> &'a conset_ir::ConnectionSet {
        self.schedule.timetable.routing().set()
    }

    fn parts(&self, x: ConnectionId) -> &[PartAt<'a>] {
        &self.parts[index(self.first[x.index()])..index(self.first[x.index() + 1])]
    }

    fn ends(&self, id: ConnectionId) -> ConnectionSummary {
        let Connection { source, target, words, .. } = *self.set().get(id);
        let name = self.set().get(id).name.as_deref().map(str::to_owned);
        ConnectionSummary { id, name, source, target, words }
    }

    fn placed(&self, x: ConnectionId) -> Vec<PlacedPart> {
        self.parts(x)
            .iter()
            .map(|part| PlacedPart {
                phase: part.phase,
                words: part.route.words,
                cells: part.route.cells.to_vec(),
                channels: part.route.channels.to_vec(),
                start: part.slot.start,
                duration: part.slot.duration,
            })
            .collect()
    }
}

/// The comparison of two sets with the same name.
struct SetCompare<'a> {
    a: SetSide<'a>,
    b: SetSide<'a>,
    /// Whether link ids mean the same links on both machines.
    same_links: bool,
    limit: usize,
}

impl SetCompare<'_> {
    fn run(&self) -> SetDiff {
        let (a, b) = (self.a.schedule, self.b.schedule);
        let (set_a, set_b) = (self.a.set(), self.b.set());
        let pairs = ConnectionPairs::of(set_a, set_b);
        let both = |of: fn(&SetSchedule) -> usize| Both { a: of(a), b: of(b) };
        let mut diff = SetDiff {
            set: set_b.name().to_owned(),
            identical: false,
            connections: Both { a: set_a.len(), b: set_b.len() },
            words: Both { a: set_a.words(), b: set_b.words() },
            phases: both(|s| s.timetable.phases().len()),
            bound_phases: Both { a: self.a.bounds.phases, b: self.b.bounds.phases },
            predicted_clocks: Both { a: self.a.clocks, b: self.b.clocks },
            bound_clocks: Both { a: self.a.bounds.clocks, b: self.b.bounds.clocks },
            removed: TruncatedList::new(),
            added: TruncatedList::new(),
            changed: TruncatedList::new(),
            common: 0,
            renumbered: 0,
            moved: 0,
            rerouted: 0,
            rechanneled: 0,
            restarted: 0,
            rebooked: 0,
            placements: TruncatedList::new(),
            order_changed: self.order_changed(&pairs),
            nodes_changed: false,
            entries: table_diff::compare(
                self.a.image,
                self.b.image,
                &pairs,
                self.same_links,
                self.limit,
            ),
        };
        for (id, _) in set_a.iter() {
            if pairs.in_b(id).is_none() {
                diff.removed.add(self.limit, || self.a.ends(id));
            }
        }
        for (id, _) in set_b.iter() {
            match pairs.in_a(id) {
                None => diff.added.add(self.limit, || self.b.ends(id)),
                Some(before) => self.connection(Both { a: before, b: id }, &mut diff),
            }
        }
        diff.nodes_changed |= set_a.nodes().is_some() != set_b.nodes().is_some();
        diff.identical = self.is_identical(&diff);
        diff
    }

    fn is_identical(&self, diff: &SetDiff) -> bool {
        let counts = [diff.removed.total, diff.added.total, diff.changed.total];
        counts == [0; 3]
            && diff.renumbered == 0
            && diff.placements.total == 0
            && !diff.order_changed
            && !diff.nodes_changed
            && diff.phases.a == diff.phases.b
            && diff.bound_phases.a == diff.bound_phases.b
            && diff.bound_clocks.a == diff.bound_clocks.b
            && diff.predicted_clocks.a == diff.predicted_clocks.b
            && diff.entries.is_identical()
    }

    fn connection(&self, id: Both<ConnectionId>, diff: &mut SetDiff) {
        diff.common += 1;
        diff.renumbered += usize::from(id.a != id.b);
        let changes = definition_changes(self.a.set().get(id.a), self.b.set().get(id.b));
        if !changes.is_empty() {
            diff.changed.add(self.limit, || ConnectionChange { id, changes });
        }
        if let (Some(a), Some(b)) = (self.a.set().nodes(), self.b.set().nodes()) {
            diff.nodes_changed |= a.of(id.a) != b.of(id.b);
        }
        let found = self.placement(id);
        diff.moved += usize::from(found.moved);
        diff.rerouted += usize::from(found.rerouted);
        diff.rechanneled += usize::from(found.rechanneled);
        diff.restarted += usize::from(found.restarted);
        diff.rebooked += usize::from(found.rebooked);
        if found != PlacementFlags::default() {
            let connection = self.b.set().get(id.b);
            diff.placements.add(self.limit, || PlacementChange {
                id,
                source: connection.source,
                target: connection.target,
                parts: Both { a: self.a.placed(id.a), b: self.b.placed(id.b) },
            });
        }
    }

    /// Compares part by part; if the numbers of parts differ, everything does.
    fn placement(&self, id: Both<ConnectionId>) -> PlacementFlags {
        let (a, b) = (self.a.parts(id.a), self.b.parts(id.b));
        let differ = |same: &dyn Fn(&PartAt<'_>, &PartAt<'_>) -> bool| {
            a.len() != b.len() || a.iter().zip(b).any(|(a, b)| !same(a, b))
        };
        let is_split = a.len() > 1 || b.len() > 1;
        let route = |a: &PartAt<'_>, b: &PartAt<'_>| {
            a.route.cells == b.route.cells
                && (!self.same_links || a.route.links() == b.route.links())
        };
        let rerouted = differ(&route);
        PlacementFlags {
            // The words of a whole connection belong to its definition, those of parts do not.
            moved: differ(&|a, b| {
                a.phase == b.phase && (!is_split || a.route.words == b.route.words)
            }),
            rerouted,
            rechanneled: !rerouted && differ(&|a, b| a.route.channels == b.route.channels),
            restarted: differ(&|a, b| a.slot.start == b.slot.start),
            rebooked: differ(&|a, b| a.slot.duration == b.slot.duration),
        }
    }

    fn order_changed(&self, pairs: &ConnectionPairs) -> bool {
        let (a, b) = (self.a.set().order(), self.b.set().order());
        if a.len() != b.len() {
            return true;
        }
        let mut renamed = Vec::with_capacity(a.len());
        for &(before, after) in a {
            match (pairs.in_b(before), pairs.in_b(after)) {
                (Some(before), Some(after)) => renamed.push((before, after)),
                _ => return true,
            }
        }
        renamed.sort_unstable();
        renamed != b
    }
}

/// What changed in a connection's placement.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct PlacementFlags {
    moved: bool,
    rerouted: bool,
    rechanneled: bool,
    restarted: bool,
    rebooked: bool,
}

/// The differences between the definitions of two connections. Most connections are unchanged, so
/// texts are made only after the comparison.
fn definition_changes(a: &Connection, b: &Connection) -> Vec<ValueChange> {
    if a == b {
        return Vec::new();
    }
    let or_none = |value: Option<u32>| value.map_or("none".to_owned(), |v| v.to_string());
    let name = |c: &Connection| c.name.as_deref().unwrap_or("none").to_owned();
    [
        change("source", &a.source, &b.source),
        change("target", &a.target, &b.target),
        change("words", &a.words, &b.words),
        change("min_bandwidth", &or_none(a.min_bandwidth), &or_none(b.min_bandwidth)),
        change("max_latency", &or_none(a.max_latency), &or_none(b.max_latency)),
        change("name", &name(a), &name(b)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
