//! Upper limits of every count and size in an input.
//!
//! Readers compare a declared count with its limit before they use it, and grow their vectors as
//! rows arrive, so a small malicious file cannot cause a large allocation. The limits are far above
//! practical sizes and low enough that every count, id and sum fits its type: the words of a set
//! fit `u64`, row numbers fit `u32`.
//!
//! [`TIME`] and [`SERIAL_TIME`] limit sums, because limits on the terms do not suffice: 2^30 words
//! at 10^9 clocks each take 2^60 clocks, and a set has up to 2^24 such connections. Readers accept
//! any number of clocks; the checker enforces these two limits before any other code adds up
//! clocks.

/// Cells of a machine, switches included.
pub const CELLS: usize = 1 << 20;
/// Directed links of a machine.
pub const LINKS: usize = 1 << 23;
/// Logical channels per cell: as many as connections of a set, so that a machine in which channels
/// are not scarce can say so.
pub const CHANNELS_PER_CELL: u32 = 1 << 24;
/// Words in the queue of a channel.
pub const CHANNEL_DEPTH: u32 = 4096;
/// Words of a packet of an active message.
pub const ACTIVE_WORDS: u32 = 4096;
/// Streams that an agent holds open in each direction.
pub const STREAMS: u32 = 4096;
/// Clocks of a cost in a machine description.
pub const CLOCKS: u32 = 1_000_000_000;
/// Clocks of the timetables of a program together, switches included; likewise of its bounds and
/// of its predictions. This is 7000 years at 20 MHz; the sum of two such values fits `u64`.
pub const TIME: u64 = 1 << 62;
/// Clocks of all connections of a program, executed one after the other, each in its own phase.
pub const SERIAL_TIME: u64 = 1 << 61;
/// Dimensions of a torus or mesh.
pub const DIMENSIONS: usize = 16;
/// Numbers of parents of a fat-tree, one per level; more levels than any fat-tree has.
pub const FAT_TREE_LEVELS: usize = 16;
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
/// Cells and links that the proof of a bound by prices visits at most: the distinct sources of a set times the
/// cells and links of its machine. Bounds that would need more are not claimed.
pub const PRICE_SEARCH: usize = 1 << 24;
/// Steps of a step plan.
pub const STEPS: usize = 1 << 24;
/// Pieces of all messages of a step plan together.
pub const PIECES: usize = 1 << 28;
/// Cells of all routes of a phase together.
pub const HOPS: usize = 1 << 30;
/// Bytes of the name of a set, connection or machine.
pub const NAME: usize = 128;
/// Nodes of a mesh, vertices of a graph, rows of a matrix (METIS counts in 32 bits).
pub const NODES: usize = (1 << 31) - 2;
/// Elements of a mesh.
pub const ELEMENTS: usize = (1 << 31) - 2;
/// Nodes of one element of a mesh.
pub const ELEMENT_NODES: usize = 256;
/// Parts of a partition.
pub const PARTS: usize = CELLS;
