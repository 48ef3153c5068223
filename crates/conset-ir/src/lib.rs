//! The types that the stages of the conset compiler exchange, and their formats on disk.
//!
//! ```text
//!  Program ─► ConnectionSet ─► Routing ─► Timetable ─► Schedule      (what the compiler decides)
//!                     │                       └──────► Image         (what a runtime loads)
//!                     └─► Steps ─► StepSchedule                      (messages instead of tables)
//!  Machine ───────────────────────── used by all of them ──────────
//! ```
//!
//! Each stage wraps the result of the stage before it, so a value carries everything it depends
//! on: a [`Timetable`] holds its [`Routing`], which holds its [`ConnectionSet`] and its [`Machine`]
//! (shared, not copied). Constructors check the *shape* of a value: ids in range, arrays of equal
//! length, counts within [`limits`]. Whether a value is *correct* (routes are connected, no channel
//! is booked twice, every word is delivered once) is decided by the checker in `conset-verify`,
//! which depends on this crate only.
//!
//! ```
//! use conset_ir::{CellId, Connection, ConnectionSet, Document, Machine, Program};
//!
//! let machine = Machine::from_spec("torus:4x4")?;
//! let connections = vec![
//!     Connection::new(CellId(0), CellId(1), 133),
//!     Connection::new(CellId(1), CellId(5), 12),
//! ];
//! let set = ConnectionSet::new("halo", connections)?;
//! set.check_machine(&machine)?;
//!
//! // Every value can be written and read back.
//! let document = Document::from(Program::from(set));
//! let text = conset_ir::text::write(&document);
//! assert!(text.contains("x0 c0 -> c1 words 133"));
//! assert_eq!(Document::parse_any("halo.cset", text.as_bytes())?, document);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Ids are `u32` newtypes that index dense vectors. The `Display` of an id is its spelling in the
//! text form: `c3` is a cell, `l7` a link, `x12` a connection, `p2` a phase, `ch5` a channel.
//!
//! # The machine model
//!
//! The rules below are implemented twice, by the stages of the compiler and by the checker. The two
//! share no code.
//!
//! 1. **Topology.** A machine has cells and directed links ([`Topology`]). A ring of 2 cells has two
//!    parallel links in each direction. Cells and links can be marked dead.
//! 2. **Channels.** A route over d links occupies one logical channel on each of its d+1 cells, both
//!    ends included. In one phase, no more routes pass through a cell than it has channels.
//! 3. **Links** move one word every `link_clocks_per_word` clocks. Channels that have a word to
//!    send, and space for it in the next queue, take turns (round robin, one word each).
//! 4. **Agents** inject at most one word, and take out at most one word, every
//!    `access_clocks_per_word` clocks. With full duplex the two directions are independent; with
//!    half duplex they share the agent. An agent holds at most `streams` streams open in each
//!    direction, which share its rate. Opening a stream takes `stream_setup` clocks. Module
//!    [`stream`] computes the duration of a stream for all stages except the checker.
//! 5. **Queues** hold `channel_depth` words. A word waits while the next queue is full. No word is
//!    ever dropped.
//! 6. **Context switch.** It takes `t_sync + t_phase` clocks. It happens only when every channel is
//!    empty, and all cells make the same switches in the same order.
//! 7. **Message passing.** Each message costs `c_send` and `c_receive` clocks and carries
//!    `message_extra_words` additional words. Messages use dimension-ordered routes, take channels
//!    from pools and change the pool at the dateline.
//!
//! # On disk
//!
//! A [`Document`] holds any of these values. Module [`text`] reads and writes all of them as lines
//! for people, [`json`] programs and schedules for other programs, [`binary`] all of them
//! compactly, and [`machine_file`] machines. `docs/format.md` specifies the four forms.
//!
//! # What this crate does not do
//!
//! It opens no files, prints nothing, reads no clock, knows no command-line option and makes no
//! decision. Errors carry data ([`Fix`], [`SpecError`]); each interface words its own advice.
//!
//! # Public fields
//!
//! Types with an invariant (ids in range, sorted lists, parallel arrays) have private fields.
//! Records that mirror a row or an object of a file have public fields: every combination of values
//! can be represented, and the constructor of the value that contains the record, or the checker,
//! refuses what is wrong. The documentation of each such record says so.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

pub mod binary;
pub mod binomial;
pub mod convert;
pub mod digest;
pub mod document;
pub mod error;
pub mod file_format;
pub mod ids;
pub mod image;
pub mod json;
pub mod limits;
pub mod links;
pub mod lists;
pub mod machine;
pub mod machine_file;
pub mod part_map;
pub mod plural;
pub mod position;
pub mod routing;
pub mod schedule;
pub mod set;
pub mod step_schedule;
pub mod step_waits;
pub mod steps;
pub mod stream;
pub mod text;
pub mod timetable;
pub mod topology;
pub mod witness;

mod rows;
mod version;

pub use document::Document;
pub use error::{At, Fix, Infeasible, InputError, Overfull, Result, ShapeError, SpecError};
pub use file_format::FileFormat;
pub use ids::{CellId, ChannelId, ConnectionId, LinkId, PhaseId, StepId};
pub use image::{
    CellContext, ChannelEntry, Direction, Feed, Image, Operation, PhaseImage, SetImage, Sink,
};
pub use links::LinkFinder;
pub use lists::Lists;
pub use machine::{Duplex, Link, Machine, Parameters, Protocol};
pub use part_map::PartMap;
pub use plural::{counted, plural};
pub use routing::{PhaseRoutes, RouteRef, Routing};
pub use schedule::{Binding, Bounds, Origin, Schedule, ScheduleOf, ScheduledSet, SetSchedule};
pub use set::{Connection, ConnectionSet, NodeLists, Program};
pub use step_schedule::{SetSteps, StepBounds, StepSchedule};
pub use step_waits::{StepWaits, step_stages, step_suppliers};
pub use steps::{Piece, StepMessage, StepMessages, Steps};
pub use stream::StreamClocks;
pub use timetable::{PhaseTimes, Slot, Timetable};
pub use topology::{Topology, TreeLevel};
pub use witness::{Proof, Witness};
