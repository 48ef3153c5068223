//! Where the sets of a program come from: the parts of the input, their cells, and what a mesh contains.

use conset::input::{LoadedProgram, PlacedHalo};
use conset_ir::PartMap;
use conset_ir::convert::index;
use conset_mesh::model::{ElementOrigin, Inventory};
use conset_mesh::read::Reading;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::arrays;
use crate::source::parts_of_items;

/// How the sets of a schedule belong to the input. Empty if the schedule comes from a file.
#[derive(Default)]
pub(crate) struct Origin {
    /// The part of each item (element, vertex or row), in the order of the input.
    item_parts: Option<Vec<u32>>,
    /// The cell of each part, or of each cell that the sets name.
    part_cells: Option<Vec<u32>>,
    /// Which elements of the input those of the mesh are.
    elements: Option<ElementOrigin>,
    /// What a mesh contains.
    inventory: Option<Inventory>,
    /// What was exchanged before parts were placed; the summary needs it.
    halo: Option<PlacedHalo>,
}

impl Origin {
    /// What belongs to the input and is not part of the program.
    pub(crate) fn of(reading: &Reading) -> Self {
        Self {
            elements: reading.origin.clone(),
            inventory: reading.inventory.clone(),
            ..Self::default()
        }
    }

    /// Adds the parts and their cells.
    pub(crate) fn describe(&mut self, loaded: &LoadedProgram) {
        let cells = loaded.placement.as_ref().map(|placement| &placement.cells);
        self.part_cells = cells.map(|cells| cells.iter().map(|cell| cell.0).collect());
        let Some(placed) = &loaded.halo else { return };
        let parts = parts_of_items(&placed.halo.parts);
        self.item_parts = Some(match self.elements.take() {
            Some(elements) => parts_in_file(&parts, &elements),
            None => parts,
        });
        self.halo = Some(placed.clone());
    }

    /// What a mesh contains, for a summary.
    pub(crate) fn inventory(&self) -> Option<Value> {
        self.inventory.as_ref().map(inventory_of)
    }

    /// What was exchanged before parts were placed, for a summary.
    pub(crate) fn halo(&self) -> Option<&PlacedHalo> {
        self.halo.as_ref()
    }

    /// The part of each item and the cell of each part.
    pub(crate) fn parts<'py>(
        &self,
        py: Python<'py>,
        map: Option<&PartMap>,
    ) -> PyResult<PartArrays<'py>> {
        let write = |values: &Vec<u32>| arrays::write(py, values.iter().copied().map(u64::from));
        let mapped = map.map(|map| map.cells().iter().map(|cell| cell.0).collect());
        Ok((
            self.item_parts.as_ref().map(write).transpose()?,
            mapped.as_ref().or(self.part_cells.as_ref()).map(write).transpose()?,
        ))
    }
}

/// The part of each item and the cell of each part, as arrays.
pub(crate) type PartArrays<'py> = (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// The part of each element of the file; attached elements are in the part of the one that they are
/// attached to.
fn parts_in_file(parts: &[u32], origin: &ElementOrigin) -> Vec<u32> {
    let mut all = vec![0; origin.divided.len() + origin.attached.len()];
    for (&position, &part) in origin.divided.iter().zip(parts) {
        all[index(position)] = part;
    }
    for &(position, element) in &origin.attached {
        all[index(position)] = parts[index(element)];
    }
    all
}

/// An inventory as JSON.
fn inventory_of(inventory: &Inventory) -> Value {
    let elements = inventory.elements.iter().map(|entry| {
        json!({
            "type": entry.element_type.to_string(),
            "count": entry.count,
            "attached": entry.attached,
        })
    });
    let unused = inventory.unused.iter().map(|entry| json!({"what": entry.what, "why": entry.why}));
    json!({
        "format": inventory.format,
        "nodes": inventory.node_count,
        "unused_nodes": inventory.unused_nodes,
        "joined_nodes": inventory.joined_nodes,
        "elements": elements.collect::<Vec<_>>(),
        "unused": unused.collect::<Vec<_>>(),
    })
}
