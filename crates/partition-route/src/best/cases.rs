//! Odd machines and any sets on them, for the tests of the ways.

use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine, Parameters};

/// Small machines of every kind.
pub(super) const SPECS: [&str; 8] = [
    "torus:2x3",
    "mesh:3x3",
    "ring:2",
    "torus:2x2x2",
    "fat-tree:9",
    "hypercube:3",
    "ring:1",
    "torus:4x4",
];

/// One of [`SPECS`] with other parameters.
pub(super) fn machine(row: usize, change: impl FnOnce(&mut Parameters)) -> Machine {
    let machine = Machine::from_spec(SPECS[row]).unwrap();
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    machine.with_parameters(parameters).unwrap()
}

/// Connections between cells with an agent, whatever the numbers.
pub(super) fn set(machine: &Machine, rows: &[(u32, u32, u32)]) -> ConnectionSet {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let any = |at: u32| cells[at as usize % cells.len()];
    let rows = rows.iter().map(|&(s, t, words)| Connection::new(any(s), any(t), words));
    ConnectionSet::new("s", rows.collect()).unwrap()
}

/// The same with an order, in which earlier connections come before later ones.
pub(super) fn ordered(set: ConnectionSet, pairs: &[(usize, usize)]) -> ConnectionSet {
    let id = |x: usize| ConnectionId((x % set.len()) as u32);
    let order = pairs.iter().map(|&(a, b)| (id(a), id(b))).filter(|(a, b)| a < b).collect();
    set.with_order(order).unwrap()
}
