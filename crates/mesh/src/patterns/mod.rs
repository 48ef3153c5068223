//! Regular and random communication patterns as connection sets (paper, section 5.1).
//!
//! A pattern is made for a machine: its cells are the machine's live cells with an agent, and
//! patterns with a geometry use the machine's coordinates (`cells` says how cells are numbered,
//! `build` defines each pattern). The rules that hold for all of them:
//!
//! * A cell that would send to itself (the diagonal of a transpose, the fixed points of
//!   bit-reversal, any shift on one cell) does not: it has the words already.
//! * Every connection carries `words` words, except in `random`, where that is the most.
//! * Connections come in a fixed order, by source unless a pattern says otherwise; equal
//!   specifications give equal sets, on any computer.
//! * Patterns whose steps depend on each other (trees, the whole butterfly) say so by order; the
//!   others let a cell send before it has received.
//!
//! A specification is `name` or `name:parameter,...`; see [`LIST`]. The set's name is the
//! specification with `-` for the characters that names cannot have: `ring-shift:3` makes the set
//! `ring-shift-3`.
//!
//! This module routes nothing and knows no channels.

mod build;
mod cells;
pub(crate) mod spec;
#[cfg(test)]
mod tests;

use conset_ir::{Connection, ConnectionId, ConnectionSet, Machine, Result, limits};

use build::Sends;
use cells::Cells;
use spec::Spec;

/// A parameter of a pattern, or of a generated mesh.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its key.
    pub name: &'static str,
    /// What it is where it is not given.
    pub default: &'static str,
    /// What it means.
    pub summary: &'static str,
}

/// A pattern that [`generate`] knows.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its name in specifications.
    pub name: &'static str,
    /// Its parameters, in the order in which bare values are given to them.
    pub parameters: &'static [Parameter],
    /// What it is, in one line.
    pub summary: &'static str,
    build: Builder,
}

/// Adds a pattern's connections to `Sends`, in the pattern's order.
type Builder = fn(&Cells<'_>, &mut Spec<'_>, &mut Sends) -> Result<()>;

impl Parameter {
    pub(crate) const fn new(
        name: &'static str,
        default: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { name, default, summary }
    }
}

const fn pattern(
    name: &'static str,
    parameters: &'static [Parameter],
    summary: &'static str,
    build: Builder,
) -> Pattern {
    Pattern { name, parameters, summary, build }
}

const DIMS: Parameter =
    Parameter::new("dims", "the machine's", "sizes of a grid of all live cells, such as 8x8");
const ROOT: Parameter = Parameter::new("root", "the first live cell", "a cell, such as 5 or c5");

/// All patterns.
pub const LIST: &[Pattern] = &[
    pattern("torus", &[DIMS], "to both neighbours in each dimension, backloops too", build::torus),
    pattern(
        "stencil",
        &[DIMS],
        "to all neighbours of a grid, diagonal ones too, no backloops",
        build::stencil,
    ),
    pattern("nearest", &[], "to every cell that a link leads to", build::nearest),
    pattern(
        "shift",
        &[Parameter::new("offsets", "1,0,...", "how far in each dimension, such as 1,-2")],
        "one message by a fixed offset in the grid, backloops too",
        build::shift,
    ),
    pattern(
        "ring-shift",
        &[Parameter::new("k", "1", "how far, modulo the number of cells; may be negative")],
        "one message to the cell k ranks further",
        build::ring_shift,
    ),
    pattern(
        "hypercube",
        &[],
        "exchange in each dimension of a hypercube, embedded by Gray codes",
        build::hypercube,
    ),
    pattern(
        "butterfly",
        &[Parameter::new("stage", "all, in order", "one stage alone: exchange across bit `stage`")],
        "exchange across each bit of the cell's number, stage after stage",
        build::butterfly,
    ),
    pattern("bit-reversal", &[], "to the cell with the bits reversed", build::bit_reversal),
    pattern(
        "transpose",
        &[Parameter::new("columns", "as square as possible", "columns of the matrix of cells")],
        "to the cell at the transposed place of the matrix of cells",
        build::transpose,
    ),
    pattern("all-to-all", &[], "every ordered pair of different cells", build::all_to_all),
    pattern("one-to-all", &[ROOT], "one cell to all others", build::one_to_all),
    pattern("all-to-one", &[ROOT], "all other cells to one", build::all_to_one),
    pattern(
        "broadcast-tree",
        &[ROOT],
        "binomial tree from the root, receive before send",
        build::broadcast_tree,
    ),
    pattern(
        "reduction-tree",
        &[ROOT],
        "binomial tree to the root, receive before send",
        build::reduction_tree,
    ),
    pattern(
        "random",
        &[
            Parameter::new("density", "0.1", "share of all ordered pairs, 0 to 1"),
            Parameter::new("seed", "1", "any whole number below 2^64"),
        ],
        "random pairs with 1 to --words words each",
        build::random,
    ),
];

/// Makes the pattern of a specification for a machine, with `words` words per connection.
///
/// # Errors
/// An unknown pattern (the help lists the known ones and guesses), a parameter that is not one of
/// the pattern's, out of range or given twice, `words` of 0 or beyond the limit, a machine that
/// the pattern does not fit, more connections than the limit.
pub fn generate(spec: &str, machine: &Machine, words: u32) -> Result<ConnectionSet> {
    let mut spec = Spec::parse("pattern", spec)?;
    let Some(pattern) = LIST.iter().find(|pattern| pattern.name == spec.name()) else {
        let names: Vec<&str> = LIST.iter().map(|pattern| pattern.name).collect();
        return Err(spec.unknown_name(&names));
    };
    if words == 0 || words > limits::WORDS {
        return Err(spec.error(format!("{words} words, expected 1 to {}", limits::WORDS)));
    }
    let cells = Cells::new(machine, &spec)?;
    let mut sends = Sends::new(words);
    (pattern.build)(&cells, &mut spec, &mut sends)?;
    spec.finish()?;
    finish(&spec, sends.connections, sends.order)
}

fn finish(
    spec: &Spec<'_>,
    connections: Vec<Connection>,
    order: Vec<(ConnectionId, ConnectionId)>,
) -> Result<ConnectionSet> {
    let set = ConnectionSet::new(spec.identifier(), connections);
    let set = if order.is_empty() { set } else { set.and_then(|set| set.with_order(order)) };
    set.map_err(|e| spec.error(format!("{}: {}", e.place, e.message)))
}
