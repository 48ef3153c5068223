//! Steps in the JSON formats: `sets[].steps` and the bounds beside them.
//!
//! A step is a list of messages, a message `{"from": 0, "to": 4, "pieces": [0, 1]}`. A piece is the id
//! of a connection, for all of its words, or an object: `{"connection": 1, "first": 8, "words": 4}`.

use std::borrow::Cow;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::ShapeError;
use crate::ids::{CellId, ConnectionId, StepId};
use crate::schedule::Binding;
use crate::set::ConnectionSet;
use crate::step_schedule::StepBounds;
use crate::steps::{Piece, StepMessage, StepMessages, Steps};
use crate::witness::Witness;

/// `steps`, written step by step.
pub(super) struct StepsOut<'a>(pub(super) &'a Steps);

impl Serialize for StepsOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.0.messages().steps();
        serializer.collect_seq((0..count).map(|step| StepOut(self.0, StepId::from_index(step))))
    }
}

struct StepOut<'a>(&'a Steps, StepId);

impl Serialize for StepOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.messages().of_step(self.1);
        let set = self.0.set();
        serializer.collect_seq(rows.map(|row| MessageOut::new(set, self.0.messages().get(row))))
    }
}

#[derive(Serialize)]
struct MessageOut<'a> {
    from: CellId,
    to: CellId,
    pieces: PiecesOut<'a>,
}

impl<'a> MessageOut<'a> {
    fn new(set: &'a ConnectionSet, message: StepMessage<'a>) -> Self {
        let pieces = PiecesOut(set, message.pieces);
        Self { from: message.source, to: message.target, pieces }
    }
}

struct PiecesOut<'a>(&'a ConnectionSet, &'a [Piece]);

impl Serialize for PiecesOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.1.len()))?;
        for piece in self.1 {
            list.serialize_element(&match piece.is_whole(self.0) {
                true => PieceJson::Whole(piece.connection),
                false => PieceJson::Part {
                    connection: piece.connection,
                    first: piece.first_word,
                    words: piece.words,
                },
            })?;
        }
        list.end()
    }
}

/// An element of `pieces`.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum PieceJson {
    Whole(ConnectionId),
    Part { connection: ConnectionId, first: u32, words: u32 },
}

/// An element of a step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageIn {
    from: CellId,
    to: CellId,
    pieces: Vec<PieceJson>,
}

/// The messages of all steps. Connections that do not exist are refused, as a piece of all words
/// needs their number.
pub(super) fn build(
    set: &ConnectionSet,
    steps: Vec<Vec<MessageIn>>,
) -> Result<StepMessages, ShapeError> {
    let mut messages = StepMessages::new();
    let mut pieces = Vec::new();
    for (s, step) in steps.into_iter().enumerate() {
        for (m, message) in step.into_iter().enumerate() {
            let place = |e: ShapeError| e.under(format!("steps[{s}][{m}]"));
            pieces.clear();
            for piece in message.pieces {
                pieces.push(piece.build(set).map_err(place)?);
            }
            messages.push(message.from, message.to, &pieces).map_err(place)?;
        }
        messages.end_step()?;
    }
    Ok(messages)
}

impl PieceJson {
    fn build(self, set: &ConnectionSet) -> Result<Piece, ShapeError> {
        let known = |id: ConnectionId| match id.index() < set.len() {
            true => Ok(id),
            false => Err(ShapeError::new(
                "pieces",
                format!("{id} is not one of the set's {} connections", set.len()),
            )),
        };
        Ok(match self {
            PieceJson::Whole(connection) => Piece::whole(set, known(connection)?),
            PieceJson::Part { connection, first, words } => {
                Piece { connection: known(connection)?, first_word: first, words }
            }
        })
    }
}

/// `bounds` of a set with steps.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepBoundsJson<'a> {
    clocks: u64,
    #[serde(default)]
    clocks_by: Binding,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks_witness: Option<Cow<'a, Witness>>,
    #[serde(default)]
    direct_clocks: u64,
}

impl<'a> StepBoundsJson<'a> {
    /// `None` if nothing is claimed.
    pub(super) fn new(bounds: &'a StepBounds) -> Option<Self> {
        (*bounds != StepBounds::default()).then_some(Self {
            clocks: bounds.clocks,
            clocks_by: bounds.clocks_by,
            clocks_witness: bounds.clocks_witness.as_ref().map(Cow::Borrowed),
            direct_clocks: bounds.direct_clocks,
        })
    }

    pub(super) fn build(self) -> StepBounds {
        StepBounds {
            clocks: self.clocks,
            clocks_by: self.clocks_by,
            clocks_witness: self.clocks_witness.map(Cow::into_owned),
            direct_clocks: self.direct_clocks,
        }
    }
}
