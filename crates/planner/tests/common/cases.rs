//! Small machines and arbitrary sets on them, for the tests of the planners.

use conset_ir::convert::{index, to_u32};
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
    let any = |at: u32| cells[index(at) % cells.len()];
    let rows = rows.iter().map(|&(s, t, words)| Connection::new(any(s), any(t), words));
    ConnectionSet::new("s", rows.collect()).unwrap()
}

/// The clocks of a stream, worked out apart from `conset_ir::stream`; `twice` where one agent
/// serves both ends in turn.
pub(super) fn duration(machine: &Machine, words: u32, hops: usize, twice: bool) -> u64 {
    let parameters = machine.parameters();
    let link = if hops == 0 { 0 } else { parameters.link_clocks_per_word };
    let word = u64::from(parameters.access_clocks_per_word.max(link));
    let once = u64::from(words) * word + u64::from(parameters.stream_setup);
    if twice { 2 * once } else { once }
}

/// A set with an order, in which earlier connections come before later ones.
pub(super) fn ordered(set: ConnectionSet, pairs: &[(usize, usize)]) -> ConnectionSet {
    let id = |x: usize| ConnectionId(to_u32(x % set.len()));
    let order = pairs.iter().map(|&(a, b)| (id(a), id(b))).filter(|(a, b)| a < b).collect();
    set.with_order(order).unwrap()
}
