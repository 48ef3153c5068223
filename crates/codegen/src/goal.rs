//! Step plans as GOAL schedules, which LogGOPSim simulates (Hoefler, Schneider, Lumsdaine, 2010).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! m0: send 128b to 1 tag 0
//! m1: recv 64b from 1 tag 1
//! m1 requires m0
//! }
//! ```
//!
//! A rank is a cell with an agent. An operation has the number of its message as label and as tag.
//! Under the protocol `rendezvous` each operation of a cell requires the one before it, as cells follow
//! their lists strictly. Under `standing` a send requires the send before it, and the receives of what
//! it passes on; receives require nothing. The order of a set between messages of different cells
//! cannot be expressed and is left out.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Image, Lists, Protocol, Steps, step_suppliers};

use crate::names;
use crate::source::{EmitError, SourceFile, put};

/// Bytes of a word, as the runtime sends them.
pub const WORD_BYTES: u64 = 8;

/// A schedule for each set of an image of step plans, as files to write.
///
/// # Errors
/// [`EmitError::NoSteps`] if the image has phases.
pub fn emit(image: &Image) -> Result<Vec<SourceFile>, EmitError> {
    let modules = names::modules(image.sets().iter().map(|set| set.set.name()));
    let files = image.sets().iter().zip(modules).map(|(set, module)| match &set.steps {
        Some(steps) => Ok((format!("{module}.goal"), goal(steps))),
        None => Err(EmitError::NoSteps { set: set.set.name().to_owned() }),
    });
    files.collect()
}

fn goal(steps: &Steps) -> String {
    let (lists, machine) = (steps.lists(), steps.machine());
    // Per message, those that bring what it passes on.
    let pairs = step_suppliers(steps).into_iter().map(|(supplier, message)| (message, supplier));
    let suppliers = Lists::new(steps.messages().len(), pairs);
    let mut out = format!("num_ranks {}\n", machine.agent_count());
    for cell in 0..to_u32(machine.agent_count()) {
        put(&mut out, format_args!("\nrank {cell} {{\n"));
        write_cell(&mut out, steps, CellId(cell), (lists.of(cell), &suppliers));
        out.push_str("}\n");
    }
    out
}

fn write_cell(
    out: &mut String,
    steps: &Steps,
    cell: CellId,
    (list, suppliers): (&[u32], &Lists<u32>),
) {
    let message = |row: u32| steps.messages().get(index(row));
    for &row in list {
        let (bytes, ends) = (message(row).words() * WORD_BYTES, message(row));
        let operation = match ends.source == cell {
            true => format!("send {bytes}b to {}", ends.target.0),
            false => format!("recv {bytes}b from {}", ends.source.0),
        };
        put(out, format_args!("m{row}: {operation} tag {row}\n"));
    }
    let strict = steps.machine().parameters().protocol == Protocol::Rendezvous;
    let mut before = None;
    for &row in list.iter().filter(|&&row| strict || message(row).source == cell) {
        let brought = if strict { &[] } else { suppliers.of(row) };
        for required in before.iter().chain(brought) {
            put(out, format_args!("m{row} requires m{required}\n"));
        }
        before = Some(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{
        Connection, ConnectionId, ConnectionSet, Machine, Piece, SetImage, StepMessages,
    };
    use std::sync::Arc;

    #[test]
    fn sends_require_what_they_pass_on() {
        let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
        let connections = vec![
            Connection::new(CellId(0), CellId(2), 2),
            Connection::new(CellId(1), CellId(0), 1),
        ];
        let set = Arc::new(ConnectionSet::new("s", connections).unwrap());
        let whole = |id| Piece::whole(&set, ConnectionId(id));
        let mut messages = StepMessages::new();
        for (source, target, id) in [(0, 1, 0), (1, 0, 1), (1, 2, 0)] {
            messages.push(CellId(source), CellId(target), &[whole(id)]).unwrap();
        }
        messages.end_step().unwrap();
        let rendezvous = {
            let mut parameters = machine.parameters().clone();
            parameters.protocol = Protocol::Rendezvous;
            Arc::new(machine.with_parameters(parameters).unwrap())
        };
        let text = |machine: &Arc<Machine>| {
            let steps = Steps::new(machine.clone(), set.clone(), messages.clone()).unwrap();
            let sets = vec![SetImage::of_steps(steps)];
            emit(&Image::new(machine.clone(), sets).unwrap()).unwrap().remove(0)
        };
        let operations =
            "m0: recv 16b from 0 tag 0\nm1: send 8b to 0 tag 1\nm2: send 16b to 2 tag 2\n";
        let (name, standing) = text(&machine);
        assert_eq!(name, "s.goal");
        let block = format!("\nrank 1 {{\n{operations}m2 requires m1\nm2 requires m0\n}}\n");
        assert!(standing.contains(&block), "{standing}");
        let strict = text(&rendezvous).1;
        let block = format!("\nrank 1 {{\n{operations}m1 requires m0\nm2 requires m1\n}}\n");
        assert!(strict.contains(&block), "{strict}");
    }
}
