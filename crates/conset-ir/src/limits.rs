//! A limit on everything that is read from outside.
//!
//! Readers compare a declared count with its limit before they believe it, and grow their
//! vectors as rows really arrive, so a small hostile file can ask for much and get little. The
//! limits are far above what the compiler is used for and low enough that every count, id and
//! sum fits its type: words of a set fit `u64`, rows fit `u32`.
//!
//! Two limits are on sums, because limits on their terms are no help: 2^30 words at 10^9 clocks
//! each are 2^60 clocks, and a set has up to 2^24 such connections. Readers take any number of
//! clocks; it is the checker that holds files to these two, before anything else adds clocks up.

/// Cells of a machine, switches included.
pub const CELLS: usize = 1 << 20;
/// Directed links of a machine.
pub const LINKS: usize = 1 << 23;
/// Logical channels per cell.
pub const CHANNELS_PER_CELL: u32 = 4096;
/// Words a channel's queue can hold.
pub const CHANNEL_DEPTH: u32 = 4096;
/// Streams an agent can hold open in each direction.
pub const STREAMS: u32 = 4096;
/// Any cost in clocks that a machine file can name.
pub const CLOCKS: u32 = 1_000_000_000;
/// Clocks that the timetables of a program take, switches included; its bounds, and its
/// predictions, added up: 7000 years at 20 MHz. Two of them can be added in `u64`.
pub const TIME: u64 = 1 << 62;
/// Clocks of all connections of a program, one after the other, each in a phase of its own.
pub const SERIAL_TIME: u64 = 1 << 61;
/// Dimensions of a torus or mesh.
pub const DIMENSIONS: usize = 16;
/// Connections of a set.
pub const CONNECTIONS: usize = 1 << 24;
/// Words of a connection.
pub const WORDS: u32 = 1 << 30;
/// Ordering constraints of a set.
pub const ORDERS: usize = 1 << 24;
/// Sets of a program.
pub const SETS: usize = 1 << 16;
/// Phases of a set.
pub const PHASES: usize = 1 << 24;
/// Cells on all routes of a phase together.
pub const HOPS: usize = 1 << 30;
/// Bytes of a set's, a connection's or a machine's name.
pub const NAME: usize = 128;
/// Nodes of a mesh, vertices of a graph, rows of a matrix (METIS counts in 32 bits).
pub const NODES: usize = (1 << 31) - 2;
/// Elements of a mesh.
pub const ELEMENTS: usize = (1 << 31) - 2;
/// Nodes of one element.
pub const ELEMENT_NODES: usize = 256;
/// Parts of a decomposition.
pub const PARTS: usize = CELLS;
