//! Regular and random communication patterns as connection sets (paper, section 5.1).
//!
//! A pattern is generated for a machine: its cells are the machine's live cells with an agent, and
//! patterns with geometry use the machine's coordinates (`cells` describes how cells are numbered,
//! `build` defines each pattern). Common rules:
//!
//! * Connections from a cell to itself (the diagonal of a transpose, the fixed points of bit-reversal,
//!   any shift on one cell) are omitted: the cell already has the words.
//! * Every connection has `words` words, except in `random`, where `words` is the
//!   maximum unless `equal=1`.
//! * The order of the connections is fixed: by source unless a pattern's documentation differs. Equal
//!   specifications give equal sets on any computer.
//! * Patterns whose steps depend on each other (trees, the complete butterfly) have an order; in the
//!   others a cell may send before it receives.
//!
//! A specification is `name` or `name:parameter,...`; see [`LIST`]. The name of the set is the
//! specification with `-` in place of characters that names cannot have: `ring-shift:3` generates
//! the set `ring-shift-3`.
//!
//! This module computes no routes and no channels.

mod build;
mod cells;
pub(crate) mod spec;

use conset_ir::{Connection, ConnectionId, ConnectionSet, Machine, Result, limits};

use build::PatternBuilder;
use cells::PatternCells;
use spec::Spec;

/// A parameter of a pattern or of a mesh generator.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in specifications.
    pub name: &'static str,
    /// Its default value, as text.
    pub default: &'static str,
    /// Its meaning, in one line.
    pub summary: &'static str,
}

/// A pattern of [`generate`].
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its name in specifications.
    pub name: &'static str,
    /// Its parameters, in the order of values without a name.
    pub parameters: &'static [Parameter],
    /// Its description, in one line.
    pub summary: &'static str,
    build: BuildFn,
}

/// Adds the connections of a pattern to the builder, in the pattern's order.
type BuildFn = fn(&PatternCells<'_>, &mut Spec<'_>, &mut PatternBuilder) -> Result<()>;

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
    build: BuildFn,
) -> Pattern {
    Pattern { name, parameters, summary, build }
}

const DIMS: Parameter =
    Parameter::new("dims", "the machine's", "sizes of a grid of all live cells, such as 8x8");
const ROOT: Parameter = Parameter::new("root", "the first live cell", "a cell, such as 5 or c5");

/// All patterns.
pub const LIST: &[Pattern] = &[
    pattern(
        "torus",
        &[DIMS],
        "to both neighbours in each dimension, with wrap-around",
        build::torus,
    ),
    pattern(
        "stencil",
        &[DIMS],
        "to all neighbours in a grid, including diagonal ones, without wrap-around",
        build::stencil,
    ),
    pattern("nearest", &[], "to every cell that a link leads to", build::nearest),
    pattern(
        "shift",
        &[Parameter::new("offsets", "1,0,...", "offset in each dimension, such as 1,-2")],
        "to the cell at a fixed offset in the grid, with wrap-around",
        build::shift,
    ),
    pattern(
        "ring-shift",
        &[Parameter::new("k", "1", "number of ranks, modulo the number of cells; may be negative")],
        "to the cell k ranks further",
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
        &[Parameter::new("stage", "all, in order", "only this stage: exchange across bit `stage`")],
        "exchange across each bit of the cell's number, in ordered stages",
        build::butterfly,
    ),
    pattern(
        "bit-reversal",
        &[],
        "to the cell whose number has the bits reversed",
        build::bit_reversal,
    ),
    pattern(
        "transpose",
        &[Parameter::new("columns", "as square as possible", "columns of the matrix of cells")],
        "to the cell at the transposed position of the matrix of cells",
        build::transpose,
    ),
    pattern("all-to-all", &[], "every ordered pair of different cells", build::all_to_all),
    pattern("one-to-all", &[ROOT], "one cell to all others", build::one_to_all),
    pattern("all-to-one", &[ROOT], "all other cells to one", build::all_to_one),
    pattern(
        "broadcast-tree",
        &[ROOT],
        "binomial tree from the root; a cell sends after it has received",
        build::broadcast_tree,
    ),
    pattern(
        "reduction-tree",
        &[ROOT],
        "binomial tree to the root; a cell sends after it has received",
        build::reduction_tree,
    ),
    pattern(
        "random",
        &[
            Parameter::new("density", "0.1", "fraction of all ordered pairs, 0 to 1"),
            Parameter::new("seed", "1", "an integer below 2^64"),
            Parameter::new("equal", "0", "1: every pair has the given number of words"),
        ],
        "random pairs; each has 1 word to the given number of words, or all have that number",
        build::random,
    ),
];

/// Generates the pattern of a specification for a machine, with `words` words per connection.
///
/// ```
/// use conset_ir::Machine;
/// use conset_mesh::patterns;
///
/// let machine = Machine::from_spec("torus:4x4")?;
/// let set = patterns::generate("all-to-all", &machine, 8)?;
/// assert_eq!(set.len(), 16 * 15);
/// # Ok::<(), conset_ir::InputError>(())
/// ```
///
/// # Errors
/// An unknown pattern (the help lists the known ones and suggests one), an unknown, repeated or
/// out-of-range parameter, 0 words or more than the limit, a machine for which the pattern is not
/// defined, more connections than the limit.
pub fn generate(spec: &str, machine: &Machine, words: u32) -> Result<ConnectionSet> {
    let mut spec = Spec::parse("pattern", spec)?;
    let Some(pattern) = LIST.iter().find(|pattern| pattern.name == spec.name()) else {
        let names: Vec<&str> = LIST.iter().map(|pattern| pattern.name).collect();
        return Err(spec.unknown_name(&names));
    };
    if words == 0 || words > limits::WORDS {
        return Err(spec.error(format!("{words} words; expected 1 to {}", limits::WORDS)));
    }
    let cells = PatternCells::new(machine, &spec)?;
    let mut builder = PatternBuilder::new(words);
    (pattern.build)(&cells, &mut spec, &mut builder)?;
    spec.finish()?;
    finish(&spec, builder.connections, builder.order)
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
