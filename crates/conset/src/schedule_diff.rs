//! Comparing what compiled programs of phases and of steps have in common: machine, origin, parts, and
//! which sets they have.
//!
//! Sets match by name. The comparison of the sets themselves differs ([`crate::diff`],
//! [`crate::step_views`]).

use conset_ir::{Machine, Origin, ScheduleOf, ScheduledSet};
use serde::Serialize;

use crate::part_diff::{self, PartDiff};

/// The differences between two schedules of one kind, apart from those of their common sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScheduleDiff {
    /// Differences between the machines.
    pub machine: Vec<ValueChange>,
    /// Differences between the origins of the schedules.
    pub origin: Vec<ValueChange>,
    /// Differences between parts and node numbers; `None` if neither schedule was made for parts.
    pub parts: Option<PartDiff>,
    /// Sets only in the first.
    pub removed: Vec<String>,
    /// Sets only in the second.
    pub added: Vec<String>,
    /// Whether the common sets are executed in another order.
    pub reordered: bool,
}

/// A value before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ValueChange {
    /// The name of the value.
    pub what: String,
    /// Before.
    pub a: String,
    /// After.
    pub b: String,
}

/// A number before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Both<T> {
    /// Before.
    pub a: T,
    /// After.
    pub b: T,
}

impl ScheduleDiff {
    /// Compares two schedules, and pairs the rows of their common sets in the order of the second.
    /// `limit` is the length to which lists of details are truncated.
    pub(crate) fn of<S: ScheduledSet>(
        a: &ScheduleOf<S>,
        b: &ScheduleOf<S>,
        limit: usize,
    ) -> (Self, Vec<(usize, usize)>) {
        let mut names: Vec<(&str, usize)> = rows_by_name(a).collect();
        names.sort_unstable();
        let row_in_a = |name: &str| {
            let found = names.binary_search_by_key(&name, |pair| pair.0);
            found.ok().map(|at| names[at].1)
        };
        let (mut common, mut added) = (Vec::new(), Vec::new());
        for (name, row) in rows_by_name(b) {
            match row_in_a(name) {
                Some(before) => common.push((before, row)),
                None => added.push(name.to_owned()),
            }
        }
        let mut is_common = vec![false; a.sets().len()];
        for &(before, _) in &common {
            is_common[before] = true;
        }
        let removed = rows_by_name(a).filter(|&(_, row)| !is_common[row]);
        let diff = Self {
            machine: machine_changes(a.machine(), b.machine()),
            origin: origin_changes(a.origin(), b.origin()),
            parts: part_diff::compare(a, b, limit),
            removed: removed.map(|(name, _)| name.to_owned()).collect(),
            added,
            reordered: !common.is_sorted(),
        };
        (diff, common)
    }

    /// Whether there are none. Another origin is no difference.
    pub(crate) fn is_empty(&self) -> bool {
        self.machine.is_empty()
            && self.parts.as_ref().is_none_or(|parts| parts.identical)
            && self.removed.is_empty()
            && self.added.is_empty()
            && !self.reordered
    }
}

fn rows_by_name<S: ScheduledSet>(schedule: &ScheduleOf<S>) -> impl Iterator<Item = (&str, usize)> {
    schedule.sets().iter().map(|set| set.set().name()).zip(0..)
}

/// The change of a value, if it did change.
pub(crate) fn change(what: &str, a: &dyn ToString, b: &dyn ToString) -> Option<ValueChange> {
    let (a, b) = (a.to_string(), b.to_string());
    (a != b).then(|| ValueChange { what: what.to_owned(), a, b })
}

pub(crate) fn machine_changes(a: &Machine, b: &Machine) -> Vec<ValueChange> {
    let mut changes = Vec::new();
    changes.extend(change("name", &a.name(), &b.name()));
    if a.topology() != b.topology() {
        let shape = |m: &Machine| {
            format!("{} ({} cells, {} links)", m.topology(), m.cell_count(), m.link_count())
        };
        changes.push(ValueChange { what: "topology".to_owned(), a: shape(a), b: shape(b) });
    }
    for (before, after) in a.parameters().numbers().into_iter().zip(b.parameters().numbers()) {
        changes.extend(change(before.0, &before.1, &after.1));
    }
    let duplex = |m: &Machine| format!("{:?}", m.parameters().duplex).to_lowercase();
    changes.extend(change("duplex", &duplex(a), &duplex(b)));
    let protocol = |m: &Machine| m.parameters().protocol.name();
    changes.extend(change("protocol", &protocol(a), &protocol(b)));
    let cells = |m: &Machine| listed(m.dead_cells().iter().map(ToString::to_string));
    changes.extend(change("dead_cells", &cells(a), &cells(b)));
    let links = |m: &Machine| listed(m.dead_links().iter().map(|(x, y)| format!("{x} -> {y}")));
    changes.extend(change("dead_links", &links(a), &links(b)));
    changes
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// Images have no origin; origins are compared only if both programs have one.
fn origin_changes(a: Option<&Origin>, b: Option<&Origin>) -> Vec<ValueChange> {
    let (Some(a), Some(b)) = (a, b) else { return Vec::new() };
    [
        change("generator", &a.generator, &b.generator),
        change("algorithm", &a.algorithm, &b.algorithm),
        change("seed", &a.seed, &b.seed),
    ]
    .into_iter()
    .flatten()
    .collect()
}
