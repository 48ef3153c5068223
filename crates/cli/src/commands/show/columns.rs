//! Columns that the views of phases and of steps have in common: the load of a link, and the clocks of
//! a cell.

use conset::profile::PortClocks;
use conset_ir::{CellId, Machine};

use super::map::LinkLoads;
use crate::rows::{Field, TableRows};

/// Adds a row for each link that any route crosses, after the fields of `head`: the link, its ends,
/// its routes, words and clocks. With `cell`, only for links that begin or end there.
pub(super) fn add_links(
    rows: &mut TableRows,
    head: &[Field],
    machine: &Machine,
    loads: &LinkLoads,
    cell: Option<CellId>,
) {
    for (id, load) in loads.used() {
        let link = machine.link(id);
        if cell.is_some_and(|cell| cell != link.source && cell != link.target) {
            continue;
        }
        let mut row = head.to_vec();
        row.extend([id.into(), link.source.into(), link.target.into()]);
        row.extend([load.routes, load.words, loads.clocks(machine, id, load)].map(Field::from));
        rows.rows.push(row);
    }
}

/// The columns of [`clocks`].
pub(super) const CLOCKS: [&str; 6] = ["busy", "partner", "link", "start", "end", "idle"];

/// What the ports of a cell do besides context switches, in clocks.
pub(super) fn clocks<'a>(ports: impl Iterator<Item = &'a PortClocks>) -> [Field; 6] {
    let mut sums = [0u64; 6];
    for c in ports {
        let busy = c.total() - c.switch - c.idle();
        let parts = [busy, c.partner, c.link, c.start, c.end, c.idle()];
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(part));
    }
    sums.map(Field::from)
}
