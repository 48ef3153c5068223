
use conset_runtime::ir::{Piece, StepMessages, Steps};

/// The step plan of a set.
pub(crate) struct Plan {
    /// For each step, the number of messages up to its end.
    pub(crate) steps: &'static [u32],
    /// Source, target, number of pieces.
    pub(crate) messages: &'static [[u32; 3]],
    /// Connection, first word, words.
    pub(crate) pieces: &'static [[u32; 3]],
}

fn set_image(
    machine: &Arc<Machine>,
    set: Arc<ConnectionSet>,
    plan: &Plan,
) -> Result<SetImage, ShapeError> {
    let mut messages = StepMessages::new();
    let mut rows = plan.messages.iter();
    let mut pieces = plan.pieces.iter().map(|&[connection, first_word, words]| Piece {
        connection: ConnectionId(connection),
        first_word,
        words,
    });
    for &end in plan.steps {
        while messages.len() < end as usize {
            let Some(&[source, target, count]) = rows.next() else { break };
            let carried: Vec<Piece> = pieces.by_ref().take(count as usize).collect();
            messages.push(CellId(source), CellId(target), &carried)?;
        }
        messages.end_step()?;
    }
    Ok(SetImage::of_steps(Steps::new(machine.clone(), set, messages)?))
}
