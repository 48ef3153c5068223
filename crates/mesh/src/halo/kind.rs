//! What the parts of an input exchange: the kind of a halo, its layers, and the words of each node.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Result, ShapeError, limits};

use crate::model::{ElementType, Source};
use crate::read::Cursor;

/// What is exchanged between parts; the module documentation of [`mod@crate::halo`] defines each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HaloKind {
    /// Partial sums of shared nodes, in both directions.
    Nodes,
    /// Values of elements, from their part to the parts of elements with which they share a face.
    Faces,
    /// The same for elements that share an edge.
    Edges,
    /// Values of vertices, rows or nodes, from their owner to the parts with rows that need them.
    Rows,
}

impl HaloKind {
    /// All kinds.
    pub const ALL: [HaloKind; 4] =
        [HaloKind::Nodes, HaloKind::Faces, HaloKind::Edges, HaloKind::Rows];

    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            HaloKind::Nodes => "nodes",
            HaloKind::Faces => "faces",
            HaloKind::Edges => "edges",
            HaloKind::Rows => "rows",
        }
    }

    /// The kind of an input for which none is given; `None` for a list of connections.
    pub fn default_of(source: &Source) -> Option<Self> {
        match source {
            Source::Mesh(_) | Source::Decomposition(_) => Some(HaloKind::Nodes),
            Source::Graph(_) | Source::Matrix(_) => Some(HaloKind::Rows),
            Source::Connections(_) => None,
        }
    }

    /// Whether elements are exchanged, not nodes or rows.
    pub fn is_of_elements(self) -> bool {
        matches!(self, HaloKind::Faces | HaloKind::Edges)
    }
}

/// Options of [`crate::halo::halo_with`].
///
/// ```
/// use conset_mesh::halo::{HaloKind, HaloOptions, WordsPerNode};
///
/// let options =
///     HaloOptions::default().kind(HaloKind::Faces).layers(2).words(WordsPerNode::Each(6));
/// assert_eq!(options.layers, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HaloOptions<'a> {
    /// The kind; [`HaloKind::default_of`] the input if not given.
    pub kind: Option<HaloKind>,
    /// How many layers of neighbours a part needs, at least 1.
    pub layers: u32,
    /// How many words each exchanged node, element or row has.
    pub words: Option<WordsPerNode<'a>>,
    /// The type of each element, for inputs whose dimension does not tell it.
    pub types: &'a [ElementType],
}

impl Default for HaloOptions<'_> {
    fn default() -> Self {
        Self { kind: None, layers: 1, words: None, types: &[] }
    }
}

impl<'a> HaloOptions<'a> {
    /// Sets the kind.
    #[must_use]
    pub fn kind(self, kind: impl Into<Option<HaloKind>>) -> Self {
        Self { kind: kind.into(), ..self }
    }

    /// Sets the number of layers.
    #[must_use]
    pub fn layers(self, layers: u32) -> Self {
        Self { layers, ..self }
    }

    /// Sets the words of each node.
    #[must_use]
    pub fn words(self, words: impl Into<Option<WordsPerNode<'a>>>) -> Self {
        Self { words: words.into(), ..self }
    }

    /// Sets the type of each element.
    #[must_use]
    pub fn types(self, types: &'a [ElementType]) -> Self {
        Self { types, ..self }
    }

    /// The kind for an input.
    ///
    /// # Errors
    /// A kind that the input does not have, layers of shared sums, words of a list of connections
    /// or beside those of the input.
    pub(super) fn kind_for(&self, source: &Source) -> Result<Option<HaloKind>, ShapeError> {
        let wrong = |place: &str, message: String| Err(ShapeError::new(place, message));
        let Some(default) = HaloKind::default_of(source) else {
            let given = [
                ("<halo>", self.kind.is_some()),
                ("<layers>", self.layers != 1),
                ("<words-per-node>", self.words.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((option, _)) => {
                    let message = "a list of connections states what is exchanged; leave out ";
                    wrong(option, format!("{message}{option}"))
                }
                None => Ok(None),
            };
        };
        let kind = self.kind.unwrap_or(default);
        if default == HaloKind::Rows && kind != HaloKind::Rows {
            let name = kind.name();
            let message = format!("a graph or matrix has no elements; expected rows, not {name}");
            return wrong("<halo>", message);
        }
        if self.layers == 0 {
            return wrong("<layers>", "0 layers; expected at least 1".to_owned());
        }
        if kind == HaloKind::Nodes && self.layers != 1 {
            let message = "shared sums have no layers; add <halo> faces, edges or rows".to_owned();
            return wrong("<layers>", message);
        }
        if let (Source::Graph(graph), Some(_)) = (source, self.words)
            && graph.vertex_sizes().is_some()
        {
            let message = "the graph has vertex sizes, which are its words per vertex already";
            return wrong("<words-per-node>", message.to_owned());
        }
        Ok(Some(kind))
    }
}

/// How many words each exchanged node, element, vertex or row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordsPerNode<'a> {
    /// All have the same number, at least 1.
    Each(u32),
    /// The number of each; 0 means that it is not exchanged.
    Of(&'a [u32]),
}

impl WordsPerNode<'_> {
    /// The words of one node.
    #[inline]
    pub(super) fn of(self, node: u32) -> u32 {
        match self {
            WordsPerNode::Each(words) => words,
            WordsPerNode::Of(words) => words[index(node)],
        }
    }

    /// Checks that there is a number for each of `count`, none of them too large.
    pub(super) fn check(self, count: usize) -> Result<(), ShapeError> {
        let wrong = |message: String| Err(ShapeError::new("<words-per-node>", message));
        let most = limits::WORDS;
        match self {
            WordsPerNode::Each(0) => wrong(format!("0 words; expected 1 to {most}")),
            WordsPerNode::Each(words) if words > most => {
                wrong(format!("{words} words; expected 1 to {most}"))
            }
            WordsPerNode::Each(_) => Ok(()),
            WordsPerNode::Of(words) if words.len() != count => {
                wrong(format!("{} numbers; {count} nodes, elements or rows", words.len()))
            }
            WordsPerNode::Of(words) => match words.iter().position(|&words| words > most) {
                Some(node) => wrong(format!("{} words of {node}; at most {most}", words[node])),
                None => Ok(()),
            },
        }
    }
}

/// Reads a file of words per node: one number for each of `count` nodes, elements or rows, one per
/// line.
///
/// # Errors
/// A token that is not a number, a number above [`limits::WORDS`], another number of lines.
pub fn read_words(file: &str, bytes: &[u8], count: usize) -> Result<Vec<u32>> {
    let mut cursor = Cursor::new(file, bytes);
    let mut words = Vec::with_capacity(cursor.capacity(to_u64(count), 2));
    loop {
        cursor.skip_space();
        if cursor.at_end() {
            break;
        }
        let number = cursor.integer("a number of words", limits::WORDS.into())?;
        if words.len() == count {
            let message = format!("more lines than the {count} nodes, elements or rows exchanged");
            return Err(cursor.error(message));
        }
        cursor.end_line("one number per line")?;
        words.push(to_u32(number));
    }
    if words.len() < count {
        let message = format!("{} lines for {count} nodes, elements or rows", words.len());
        return Err(cursor
            .error_at(cursor.offset(), message)
            .help("expected one line for each, in the order of the input"));
    }
    Ok(words)
}
