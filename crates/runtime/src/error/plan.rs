//! Errors of plans and of their use.

use conset_ir::{CellId, ConnectionId};

/// Layout and image do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The image has no such set.
    #[error("the image has no set {name}; it has {sets}")]
    NoSet {
        /// What was asked for.
        name: String,
        /// What there is.
        sets: String,
    },
    /// No words for each item.
    #[error("0 words for each item, expected at least 1")]
    NoBlock,
    /// The machine has not as many cells as the layout needs.
    #[error("the layout has items on {cell}, and the machine has {cells} cells")]
    Cells {
        /// A cell with items.
        cell: CellId,
        /// Cells of the machine.
        cells: usize,
    },
    /// More entries of one cell than can be counted.
    #[error("{cell} sends or receives {entries} items, at most {}", u32::MAX)]
    Entries {
        /// The cell.
        cell: CellId,
        /// Items of all its connections.
        entries: usize,
    },
    /// Not as many connections.
    #[error(
        "set `{set}` has {found} connections, the layout {expected}; compile the set of this layout"
    )]
    Connections {
        /// The set.
        set: String,
        /// Connections of the layout.
        expected: usize,
        /// Connections of the set.
        found: usize,
    },
    /// A connection between other cells, or of another size.
    #[error(
        "{connection} of set `{set}` is {found}, the layout's {expected}; compile the set of this layout with this block"
    )]
    Connection {
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
        /// What the layout has.
        expected: String,
        /// What the set has.
        found: String,
    },
    /// A connection of other nodes.
    #[error(
        "{connection} of set `{set}` carries other ids than the layout's; the image is of another layout"
    )]
    Nodes {
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
    },
    /// The image does not deliver every word of the set exactly once.
    #[error("the image of set `{set}` is wrong: {kind}")]
    Image {
        /// The set.
        set: String,
        /// What is wrong.
        kind: conset_fabric::FaultKind,
    },
    /// Sets that are no tree, or not the same one, or in an order that a tree cannot have.
    #[error("`{set}` is no tree to compute with: {problem}; compile collectives::tree_sets")]
    Tree {
        /// The set.
        set: String,
        /// What is wrong.
        problem: String,
    },
}

/// A plan was used in a way it is not for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanUse {
    /// The plan is of another image than the run.
    #[error(
        "the plan of set `{set}` is of another image; make it of the world's own: World::image"
    )]
    Image {
        /// The plan's set.
        set: String,
    },
    /// A vector has not a whole number of words for each item.
    #[error(
        "vector {vector} has {words} words, expected a multiple of this cell's {items} items in the layout of `{set}`"
    )]
    Vector {
        /// The plan's set.
        set: String,
        /// Which of the vectors.
        vector: usize,
        /// Its words.
        words: usize,
        /// Items it should have.
        items: usize,
    },
    /// All vectors together have not the words for each item that the set was compiled with.
    #[error("the vectors have {found} words for each item, and set `{set}` carries {expected}")]
    Block {
        /// The plan's set.
        set: String,
        /// Words of the set.
        expected: usize,
        /// Words of the vectors.
        found: usize,
    },
    /// Copies can only be combined where each receives all others.
    #[error(
        "the layout of `{set}` does not bring every copy to every other; use one of shared ids"
    )]
    NotShared {
        /// The plan's set.
        set: String,
    },
    /// A token of another plan.
    #[error("this exchange was started with the plan of `{begun}`, not with this one of `{set}`")]
    OtherPlan {
        /// The plan's set.
        set: String,
        /// The set it was started with.
        begun: String,
    },
    /// A token of another cell or another run.
    #[error("this exchange was started by {begun} in this run or another, not by this cell")]
    OtherCell {
        /// The cell that began it.
        begun: CellId,
    },
    /// A token that was used up.
    #[error("this exchange of `{set}` has been completed already")]
    Ended {
        /// The plan's set.
        set: String,
    },
    /// Begun with numbers of one type, ended with another.
    #[error("this exchange of `{set}` was started with {begun} and is completed with {found}")]
    Type {
        /// The plan's set.
        set: String,
        /// The type it was started with.
        begun: &'static str,
        /// The type it was ended with.
        found: &'static str,
    },
    /// Begun with vectors of other widths.
    #[error(
        "this exchange of `{set}` was started with {begun} vectors and is completed with {found}"
    )]
    Vectors {
        /// The plan's set.
        set: String,
        /// Vectors it was started with.
        begun: usize,
        /// Vectors it was ended with.
        found: usize,
    },
    /// A reduction begun with an array of another length.
    #[error(
        "this reduction over `{set}` was started with {begun} words and is completed with {found}"
    )]
    Length {
        /// The set of the tree.
        set: String,
        /// Words it was started with.
        begun: usize,
        /// Words it was ended with.
        found: usize,
    },
    /// Very many exchanges were started and not completed.
    #[error(
        "{count} exchanges have been started and not completed, the first of `{set}`; complete them"
    )]
    InFlight {
        /// How many.
        count: usize,
        /// The set of the first.
        set: String,
    },
    /// The program has returned without ending an exchange.
    #[error(
        "the program returned with {count} exchanges started and not completed, the first of `{set}`"
    )]
    Leaked {
        /// How many.
        count: usize,
        /// The set of the first.
        set: String,
    },
    /// A tree has no such cell.
    #[error("{cell} is not one of the live cells of the tree `{set}`")]
    NotInTree {
        /// The cell.
        cell: CellId,
        /// The tree's set.
        set: String,
    },
    /// What was called walks a set that the image has not.
    #[error("{call} needs the set {needed}; compile it (collectives::tree_sets)")]
    NoTree {
        /// The call.
        call: &'static str,
        /// The sets it can walk.
        needed: String,
    },
}
