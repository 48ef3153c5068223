//! Errors of layouts: the cell, the id, and what was expected.

use conset_ir::{CellId, ConnectionId};

/// Ids, lists or a matrix that no layout can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// More cells than there can be.
    #[error("{cells} cells, at most {limit}")]
    Cells {
        /// Cells there are.
        cells: usize,
        /// Cells there may be.
        limit: usize,
    },
    /// More ids in one cell than can be counted.
    #[error("{cell} lists {ids} ids, at most {}", conset_ir::limits::NODES)]
    Ids {
        /// The cell.
        cell: CellId,
        /// Ids it lists.
        ids: usize,
    },
    /// A cell lists an id twice.
    #[error(
        "{cell} lists id {id} twice, at positions {first} and {second}; number the entries of one cell apart"
    )]
    Repeated {
        /// The cell.
        cell: CellId,
        /// The id.
        id: u64,
        /// Its first position.
        first: u32,
        /// Another.
        second: u32,
    },
    /// All pairs of cells that share an id are too many.
    #[error(
        "{entries} items on all connections, at most {}; id {id} alone is on {cells} cells: reduce what many cells share by a tree (collectives)",
        conset_ir::limits::NODES
    )]
    Entries {
        /// Items of all connections.
        entries: u64,
        /// An id that most cells hold.
        id: u64,
        /// How many hold it.
        cells: usize,
    },
    /// A cell owns more ids than it lists.
    #[error(
        "{cell} owns its first {owned} ids and lists {ids}; the owned ones are part of the list"
    )]
    OwnedCount {
        /// The cell.
        cell: CellId,
        /// What it says it owns.
        owned: usize,
        /// What it lists.
        ids: usize,
    },
    /// Two cells own an id.
    #[error("id {id} is owned by {first} and by {second}; expected one owner, ghosts elsewhere")]
    OwnedTwice {
        /// The id.
        id: u64,
        /// One owner.
        first: CellId,
        /// Another.
        second: CellId,
    },
    /// A ghost without an owner.
    #[error("{cell} has id {id} as a ghost, and no cell owns it")]
    Unowned {
        /// A cell that has it.
        cell: CellId,
        /// The id.
        id: u64,
    },
    /// The row pointers of a matrix are none.
    #[error("row pointers: {problem}")]
    RowPointers {
        /// What is wrong, and where.
        problem: String,
    },
    /// Not one owner for each row.
    #[error("{owners} owners for {rows} rows")]
    Owners {
        /// Owners there are.
        owners: usize,
        /// Rows there are.
        rows: usize,
    },
    /// A row of a matrix whose owner is not one of the cells.
    #[error("row {row} is owned by cell {owner}, expected one of {cells} cells")]
    Owner {
        /// The row.
        row: usize,
        /// Its owner.
        owner: u32,
        /// How many cells there are.
        cells: usize,
    },
    /// A column index that is not one of the rows.
    #[error("row {row} has column {column}, expected one of {rows}: the matrix must be square")]
    Column {
        /// The row.
        row: usize,
        /// The column, as found.
        column: String,
        /// How many there are.
        rows: usize,
    },
    /// The image has no such set.
    #[error("the image has no set {name}")]
    NoSet {
        /// What was asked for.
        name: String,
    },
    /// The set carries no lists of nodes.
    #[error("set `{set}` carries no lists of nodes; make the layout of ids, and the set of it")]
    NoNodes {
        /// The set.
        set: String,
    },
    /// Nodes that do not come in blocks.
    #[error("{connection} of set `{set}` does not list each node {block} times in a row")]
    NoBlocks {
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
        /// Words for each node.
        block: usize,
    },
    /// An end of a connection has not a node that the connection carries.
    #[error("{cell} has no id {id}, which {connection} of set `{set}` carries")]
    Missing {
        /// The cell.
        cell: CellId,
        /// The id.
        id: u64,
        /// The connection.
        connection: ConnectionId,
        /// The set.
        set: String,
    },
    /// A connection ends at a cell for which there are no ids.
    #[error("{connection} of set `{set}` ends at {cell}, and ids were given for {cells} cells")]
    NoIds {
        /// The cell.
        cell: CellId,
        /// The connection.
        connection: ConnectionId,
        /// The set.
        set: String,
        /// Cells with ids.
        cells: usize,
    },
    /// Not one place for each part.
    #[error("{places} places for {parts} parts")]
    Places {
        /// Parts there are.
        parts: usize,
        /// Places given.
        places: usize,
    },
    /// A place beyond the cells.
    #[error("part {part} is placed on {cell}, expected one of {cells} cells")]
    NoCell {
        /// The part.
        part: usize,
        /// Its place.
        cell: CellId,
        /// How many cells there are.
        cells: usize,
    },
    /// Two parts in one place.
    #[error("parts {first} and {second} are both placed on {cell}")]
    TwoParts {
        /// The place.
        cell: CellId,
        /// One part.
        first: usize,
        /// Another.
        second: usize,
    },
}
