//! Code generation: images, listings and source code from verified timetables.
//!
//! ```text
//!  Verified<Timetable> ─► image ─► Image ─┬─► listing   text to read
//!                                         ├─► delta     the changes of each context switch
//!                                         ├─► module    a Rust module of names beside an image file
//!                                         ├─► rust      a Rust crate that builds the image
//!                                         ├─► c         a C header of names and the bytes of the image
//!                                         └─► goal      a step plan for the simulator LogGOPSim
//! ```
//!
//! The input is a [`Verified`](conset_verify::Verified) timetable or step schedule, so nothing here checks routes or
//! times again. `conset-verify` checks that the image agrees with the timetable. It follows the
//! tables of the image and shares no code with this crate.
//!
//! ```
//! use std::sync::Arc;
//!
//! use conset_ir::{
//!     CellId, ChannelId, Connection, ConnectionId, ConnectionSet, LinkFinder, Machine, PhaseRoutes,
//!     PhaseTimes, Routing, Slot, Timetable,
//! };
//!
//! // One connection over one link, in one phase.
//! let machine = Arc::new(Machine::from_spec("torus:4x4")?);
//! let connection = Connection::new(CellId(0), CellId(1), 133);
//! let set = Arc::new(ConnectionSet::new("one", vec![connection])?);
//! let cells = [CellId(0), CellId(1)];
//! let links: Vec<_> = LinkFinder::new(&machine).along(&cells).collect();
//! let mut phase = PhaseRoutes::new();
//! phase.push(ConnectionId(0), 133, &cells, &links, &[ChannelId(0); 2])?;
//! let routing = Routing::new(machine.clone(), set, vec![phase])?;
//! let times = PhaseTimes { slots: vec![Slot { start: 0, duration: 266 }], makespan: 266 };
//! let timetable = conset_verify::timetable(Timetable::new(routing, vec![times])?)?;
//!
//! let image = conset_codegen::image(&machine, &[timetable])?;
//! assert!(conset_codegen::listing(&image).contains("send     x0  133 words"));
//! let files = conset_codegen::emit(&image)?;
//! assert!(files.iter().any(|(path, _)| path == "src/one.rs"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

pub mod c;
pub mod delta;
pub mod goal;
pub mod image;
pub mod listing;
pub mod module;
pub mod names;
pub mod rust;
pub mod source;

pub use delta::{CellDelta, Delta, DeltaTotals, deltas};
pub use image::{ImageError, image, step_image};
pub use listing::{Listing, listing};
pub use rust::{CrateOptions, Runtime, emit, emit_with};
pub use source::{EmitError, SourceFile};
