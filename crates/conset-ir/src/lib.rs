//! The vocabulary of conset: every type that crosses a stage of the compiler.
//!
//! ```text
//!  Program ─► ConnectionSet ─► Routing ─► Timetable ─► Schedule      (what is decided)
//!                                             └──────► Image         (what a runtime loads)
//!  Machine ───────────────────────── under all of them ───────────
//! ```
//!
//! Each stage wraps what the stage before it made, so a value carries all it stands on: a
//! [`Timetable`] holds its [`Routing`], which holds its [`ConnectionSet`] and its [`Machine`]
//! (shared, not copied). Values are built by constructors that check their *shape*: ids in range,
//! arrays of one length, counts within [`limits`]. Whether a value is *right* (routes joined up,
//! channels not booked twice, words delivered once) is for the checker in `conset-verify`, which
//! depends on this crate alone.
//!
//! Ids are `u32` newtypes into dense vectors; an id's `Display` is its spelling in the text form:
//! `c3` a cell, `l7` a link, `x12` a connection, `p2` a phase, `ch5` a channel.
//!
//! # The machine model
//!
//! One sentence for each rule. The rules stand here once as documentation and are implemented
//! twice, by the compiler's stages and by the checker, never shared.
//!
//! 1. **Topology.** Cells and directed links ([`Topology`]); a ring of 2 has two parallel links
//!    each way; cells and links can be marked dead.
//! 2. **Channel rule.** A route over d links occupies one logical channel on each of its d+1
//!    cells, both ends included; in one phase the routes through a cell never exceed its channel
//!    count.
//! 3. **Links** move one word each `link_clocks_per_word`; channels with a word waiting and room
//!    ahead take turns, one word each (round robin).
//! 4. **Agents** inject at most one word, and take out at most one word, each
//!    `access_clocks_per_word`; with full duplex the two directions are independent, with half
//!    they share the agent. An agent holds at most `streams` streams open in each direction,
//!    sharing that rate; opening one costs `stream_setup`. How long a stream takes ([`stream`]) is
//!    worked out in one place for all stages but the checker.
//! 5. **Queues** hold `channel_depth` words; a full queue stops the word behind it. Nothing is
//!    ever dropped.
//! 6. **Context switch** costs `t_sync + t_phase`; it happens only when every channel is empty,
//!    at every cell, in the same order.
//! 7. **Message passing** costs `c_send`, `c_receive` for each message and carries
//!    `message_extra_words`; routes are dimension-ordered and acquire channels from pools,
//!    changing pool at the dateline.
//!
//! # On disk
//!
//! A [`Document`] is any of these values. [`text`] writes and reads all of them as lines for
//! people, [`json`] programs and schedules for other programs, [`binary`] all of them compactly,
//! [`machine_file`] machines. `docs/format.md` describes the forms.
//!
//! # What this crate does not do
//!
//! It opens no files, prints nothing, reads no clock and decides nothing.

#![forbid(unsafe_code)]

pub mod binary;
pub mod convert;
pub mod digest;
pub mod document;
pub mod error;
pub mod ids;
pub mod image;
pub mod json;
pub mod limits;
pub mod links;
pub mod lists;
pub mod machine;
pub mod machine_file;
pub mod position;
pub mod routing;
pub mod schedule;
pub mod set;
pub mod stream;
pub mod text;
pub mod timetable;
pub mod topology;
pub mod witness;

mod rows;

pub use document::{Document, Form};
pub use error::{At, Fix, Infeasible, InputError, Overfull, Result, ShapeError};
pub use ids::{CellId, ChannelId, ConnectionId, LinkId, PhaseId};
pub use image::{
    CellContext, ChannelEntry, Direction, Feed, Image, Operation, PhaseImage, SetImage, Sink,
};
pub use links::LinkFinder;
pub use lists::Lists;
pub use machine::{Duplex, Link, Machine, Parameters};
pub use routing::{PhaseRoutes, RouteRef, Routing};
pub use schedule::{Binding, Bounds, Origin, Schedule, SetSchedule};
pub use set::{Connection, ConnectionSet, NodeLists, Program};
pub use stream::StreamClocks;
pub use timetable::{PhaseTimes, Slot, Timetable};
pub use topology::Topology;
pub use witness::{Proof, Witness};
