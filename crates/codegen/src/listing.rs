//! Listings: images as text for people, with the tables and operation lists of each phase and cell.
//!
//! ```text
//! halo/p0: 2 cells, 2 entries, 2 operations
//!   c3
//!     ch0   gate x0      -> l24 ch5
//!     send     x0  133 words from 0 through ch0, at 0
//!   c4
//!     ch5   l24          -> gate x0
//!     receive  x0  133 words from 0 through ch5, at 0
//! ```
//!
//! A step plan is listed as the operation list of each cell: its messages with their pieces.
//!
//! Only cells that participate in a phase are listed. A listing cannot be read back (the text form
//! can). Equal images have equal listings, and images with different tables or operations have
//! different ones.

use std::fmt;

use conset_ir::convert::index;
use conset_ir::{
    CellContext, ChannelEntry, Direction, Feed, Image, Operation, SetImage, Sink, Steps, counted,
};

use crate::source::plan_length;

/// The listing of an image, written by `Display`.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a>(pub &'a Image);

/// The listing of an image as one string.
pub fn listing(image: &Image) -> String {
    Listing(image).to_string()
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.0.machine();
        writeln!(
            f,
            "image for {} ({}), {}, {} per cell",
            machine.name(),
            machine.topology(),
            counted(machine.cell_count(), "cell"),
            counted(machine.parameters().channels_per_cell, "channel"),
        )?;
        self.0.sets().iter().try_for_each(|set| write_set(f, set))
    }
}

fn write_set(f: &mut fmt::Formatter<'_>, image: &SetImage) -> fmt::Result {
    let set = &image.set;
    let plan = plan_length(image);
    let connections = counted(set.len(), "connection");
    let words = counted(set.words(), "word");
    writeln!(f, "\nset {}: {connections}, {words}, {plan}", set.name())?;
    for (id, connection) in set.iter() {
        write!(f, "  {id}  {} -> {}", connection.source, connection.target)?;
        write!(f, "  {}", counted(connection.words, "word"))?;
        match &connection.name {
            Some(name) => writeln!(f, "  {name}")?,
            None => writeln!(f)?,
        }
    }
    if let Some(steps) = &image.steps {
        write_lists(f, steps)?;
    }
    for (row, phase) in image.phases.iter().enumerate() {
        let takes_part = |c: &CellContext<'_>| !(c.entries.is_empty() && c.operations.is_empty());
        let (mut cells, mut entries, mut operations) = (0, 0, 0);
        for (_, context) in phase.cells().filter(|(_, context)| takes_part(context)) {
            cells += 1;
            entries += context.entries.len();
            operations += context.operations.len();
        }
        writeln!(
            f,
            "\n{}/p{row}: {}, {}, {}",
            set.name(),
            counted(cells, "cell"),
            counted(entries, "entry"),
            counted(operations, "operation"),
        )?;
        for (cell, context) in phase.cells().filter(|(_, context)| takes_part(context)) {
            writeln!(f, "  {cell}")?;
            context.entries.iter().try_for_each(|entry| write_entry(f, entry))?;
            context.operations.iter().try_for_each(|operation| write_operation(f, operation))?;
        }
    }
    Ok(())
}

/// The operation list of each cell of a step plan.
fn write_lists(f: &mut fmt::Formatter<'_>, steps: &Steps) -> fmt::Result {
    let lists = steps.lists();
    let messages = counted(steps.messages().len(), "message");
    writeln!(f, "\n{}: {messages}", steps.set().name())?;
    for cell in (0..lists.rows()).filter(|&cell| !lists.of(cell).is_empty()) {
        writeln!(f, "  c{cell}")?;
        for &row in lists.of(cell) {
            let message = steps.messages().get(index(row));
            match message.source.0 == cell {
                true => write!(f, "    send     m{row} to {}", message.target)?,
                false => write!(f, "    receive  m{row} from {}", message.source)?,
            }
            write!(f, "  {}:", counted(message.words(), "word"))?;
            for piece in message.pieces {
                write!(f, " {}", piece.connection)?;
                if !piece.is_whole(steps.set()) {
                    write!(f, " from {} {}", piece.first_word, counted(piece.words, "word"))?;
                }
            }
            writeln!(f)?;
        }
    }
    Ok(())
}

fn write_entry(f: &mut fmt::Formatter<'_>, entry: &ChannelEntry) -> fmt::Result {
    let feed = match entry.feed {
        Feed::Gate(connection) => format!("gate {connection}"),
        Feed::Link(link) => link.to_string(),
    };
    write!(f, "    {:<5} {feed:<12} -> ", entry.channel.to_string())?;
    match entry.sink {
        Sink::Gate(connection) => writeln!(f, "gate {connection}"),
        Sink::Forward { link, channel } => writeln!(f, "{link} {channel}"),
    }
}

fn write_operation(f: &mut fmt::Formatter<'_>, operation: &Operation) -> fmt::Result {
    let direction = match operation.direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    };
    let Operation { connection, channel, words, first_word, start, .. } = operation;
    let words = counted(*words, "word");
    writeln!(
        f,
        "    {direction:<8} {connection}  {words} from {first_word} through {channel}, at {start}"
    )
}
