//! The collective calls of programs: the operation, the source location, the round.
//!
//! All cells make the same collective calls in the same order. If a cell skips one or repeats one,
//! its next exchange of the set would deliver the words of another round. Before an exchange
//! returns, transports therefore compare the number of the call among the calls of its cell, its operation,
//! and its *mark*: the bytes of its words, and a hash of the source location and of the round that
//! the program has set ([`crate::Cell::set_round`]), together 40 bits.
//!
//! Locations are compared unless the world turns that off ([`crate::World::same_places`]), and
//! wherever the program sets them ([`crate::Cell::set_place`]).
//!
//! Limit: if a call is skipped and followed by the same call, from the same line or without
//! compared locations, and without a round, the difference is not detected at this call. It shows
//! at the next different call, or at the end.

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, PhaseId};

use crate::error::{CellCall, RunError};
use crate::loaded_image::LoadedImage;

/// A place in a program's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    file: &'static str,
    line: u32,
    /// 0 where it is not known.
    column: u32,
}

impl SourceLocation {
    pub(crate) const fn new(file: &'static str, line: u32) -> Self {
        Self { file, line, column: 0 }
    }

    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.file, other.file)
            && (self.line, self.column) == (other.line, other.column)
    }
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(at: &'static Location<'static>) -> Self {
        Self { file: at.file(), line: at.line(), column: at.column() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Bits of a mark.
pub(crate) const MARK_BITS: u32 = 40;
/// Those of them that are no line number: first those of the size of words, then a digest.
const SIZE_BITS: u32 = 3;
const DIGEST_BITS: u32 = 21;

/// Where a call is made, in which round, and with which words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    place: Option<SourceLocation>,
    round: u64,
    /// Bytes of a word; 0 if no words are exchanged.
    word_bytes: usize,
    mark: u64,
    array: Option<CallArray>,
}

/// The array of a call over a tree, which all cells must describe in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallArray {
    /// How the arrays are combined, such as `add`.
    pub(crate) what: &'static str,
    /// The cell whose array all get, in a broadcast.
    pub(crate) from: Option<CellId>,
    pub(crate) words: usize,
    /// The type of the words.
    pub(crate) number_type: &'static str,
}

impl CallArray {
    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.what, other.what)
            && std::ptr::eq(self.number_type, other.number_type)
            && (self.from, self.words) == (other.from, other.words)
    }

    /// Hashes it into a digest.
    fn mix_into(&self, digest: u64) -> u64 {
        let from = self.from.map_or(0, |cell| u64::from(cell.0) + 1);
        let digest = mix(mix(digest, to_u64(self.words)), from);
        mix_text(mix_text(digest, self.what), self.number_type)
    }
}

impl fmt::Display for CallArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, from, words, number_type } = self;
        match from {
            Some(cell) => write!(f, "{what} from {cell} of {words} {number_type}"),
            None => write!(f, "{what} of {words} {number_type}"),
        }
    }
}

/// Whether there are two values that are the same, or none.
#[inline]
fn both_or_none<T>(a: Option<&T>, b: Option<&T>, is_same: impl Fn(&T, &T) -> bool) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => is_same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl Default for Call {
    /// The call of which nothing is known.
    fn default() -> Self {
        Self::new(None, 0, 0, None)
    }
}

impl Call {
    /// A call of a round, or 0; without a place where places are not compared; with the bytes of a
    /// word, a power of two, or 0; with an array over a tree.
    #[inline]
    pub(crate) fn new(
        place: Option<SourceLocation>,
        round: u64,
        word_bytes: usize,
        array: Option<CallArray>,
    ) -> Self {
        let (mut digest, mut line) = (round, 0);
        if let Some(place) = place {
            digest = mix_text(digest, place.file);
            digest = mix(digest, u64::from(place.line) << 32 | u64::from(place.column));
            line = u64::from(place.line & 0xffff);
        }
        if let Some(array) = &array {
            digest = array.mix_into(digest);
        }
        let digest = mix(digest, 1) >> (64 - DIGEST_BITS);
        let size = if word_bytes == 0 { 0 } else { 1 + u64::from(word_bytes.trailing_zeros()) };
        let mark = (line << SIZE_BITS | size) << DIGEST_BITS | digest;
        Self { place, round, word_bytes, mark, array }
    }

    /// Whether it is what [`Call::new`] would make of the same. Texts are compared by where they are, so
    /// that it is quick; the same text elsewhere counts as another.
    #[inline]
    pub(crate) fn is_made(
        &self,
        place: Option<SourceLocation>,
        round: u64,
        word_bytes: usize,
        array: Option<&CallArray>,
    ) -> bool {
        both_or_none(self.place.as_ref(), place.as_ref(), SourceLocation::is_same)
            && both_or_none(self.array.as_ref(), array, CallArray::is_same)
            && (self.round, self.word_bytes) == (round, word_bytes)
    }

    /// Bytes of a word of the call.
    #[inline]
    pub(crate) fn word_bytes(&self) -> usize {
        self.word_bytes
    }

    /// Less than 2 to the power of [`MARK_BITS`]; the same for the same place and round, and
    /// hardly ever for others.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    /// The call for an error text.
    pub(crate) fn describe(&self, cell: CellId, number: u64, what: String) -> CellCall {
        let place = self.place.map(|place| place.to_string());
        let what = match self.array {
            Some(array) => format!("{what} ({array})"),
            None => what,
        };
        CellCall { cell, number, what, place, round: self.round, word_bytes: self.word_bytes }
    }
}

/// The number of a call and its mark in one word, as messages carry them: the lower bits of the
/// number, and the mark.
#[cfg(feature = "mpi")]
pub(crate) fn call_word(number: u64, call: Call) -> u64 {
    number << MARK_BITS | call.mark()
}

/// The number and the mark of a [`call_word`]; of the numbers with these lower bits the one that is
/// nearest to the own number.
#[cfg(feature = "mpi")]
pub(crate) fn read_call_word(own: u64, word: u64) -> (u64, u64) {
    let apart = ((word >> MARK_BITS).wrapping_sub(own) << MARK_BITS).cast_signed() >> MARK_BITS;
    (own.wrapping_add_signed(apart), word & ((1 << MARK_BITS) - 1))
}

/// What is known of a call by its mark alone, for an error text.
#[cfg(feature = "mpi")]
pub(crate) fn describe_mark(cell: CellId, number: u64, what: String, mark: u64) -> CellCall {
    let (line, size) =
        (mark >> (SIZE_BITS + DIGEST_BITS), mark >> DIGEST_BITS & ((1 << SIZE_BITS) - 1));
    let place = (line > 0).then(|| format!("line {line}"));
    let word_bytes = if size == 0 { 0 } else { 1 << (size - 1) };
    CellCall { cell, number, what, place, round: 0, word_bytes }
}

#[inline]
fn mix_text(mut digest: u64, text: &str) -> u64 {
    let mut chunks = text.as_bytes().chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        digest = mix(digest, word);
    }
    let rest = chunks.remainder().iter().fold(1, |word, &byte| word << 8 | u64::from(byte));
    mix(digest, rest)
}

#[inline]
fn mix(digest: u64, word: u64) -> u64 {
    (digest.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What cells can do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    Messages,
    Phase(usize, PhaseId),
    Exchange(usize),
    VectorExchange(usize),
    MessageExchange(usize),
    Nonblocking(usize),
    /// A walk over a tree by its edges.
    Walk(usize),
    /// An exchange by messages of sizes that only their sources know.
    SizedExchange(usize),
    /// A round of an epoch, or an exchange with unknown partners.
    Round,
}

/// Calls that there are of each set, besides its phases.
const OF_SET: u32 = 6;

impl Collective {
    pub(crate) fn number(self, loaded: &LoadedImage) -> u32 {
        let phases = loaded.first_phase.last().copied().unwrap_or(0);
        match self {
            Collective::Messages => 0,
            Collective::Phase(set, phase) => 1 + loaded.first_phase[set] + phase.0,
            Collective::Exchange(set) => 1 + phases + OF_SET * to_u32(set),
            Collective::VectorExchange(set) => 2 + phases + OF_SET * to_u32(set),
            Collective::MessageExchange(set) => 3 + phases + OF_SET * to_u32(set),
            Collective::Nonblocking(set) => 4 + phases + OF_SET * to_u32(set),
            Collective::Walk(set) => 5 + phases + OF_SET * to_u32(set),
            Collective::SizedExchange(set) => 6 + phases + OF_SET * to_u32(set),
            Collective::Round => 1 + phases + OF_SET * to_u32(loaded.image.sets().len()),
        }
    }

    pub(crate) fn of_number(number: u32, loaded: &LoadedImage) -> Self {
        let phases = loaded.first_phase.last().copied().unwrap_or(0);
        let Some(number) = number.checked_sub(1) else { return Collective::Messages };
        if number < phases {
            let set = loaded.first_phase.partition_point(|&first| first <= number) - 1;
            return Collective::Phase(set, PhaseId(number - loaded.first_phase[set]));
        }
        let set = index((number - phases) / OF_SET);
        if set == loaded.image.sets().len() {
            return Collective::Round;
        }
        match (number - phases) % OF_SET {
            0 => Collective::Exchange(set),
            1 => Collective::VectorExchange(set),
            2 => Collective::MessageExchange(set),
            3 => Collective::Nonblocking(set),
            4 => Collective::Walk(set),
            _ => Collective::SizedExchange(set),
        }
    }

    /// What a program would call it, after "switches to".
    pub(crate) fn name(self, loaded: &LoadedImage) -> String {
        let name = |set: usize| loaded.set(set).name();
        match self {
            Collective::Messages => "messages".to_owned(),
            Collective::Phase(set, phase) => loaded.phase_name(set, phase),
            Collective::Exchange(set) => format!("the exchange of {}", name(set)),
            Collective::VectorExchange(set) => format!("the vector exchange of {}", name(set)),
            Collective::MessageExchange(set) => {
                format!("the exchange of {} by messages", name(set))
            }
            Collective::Nonblocking(set) => format!("the nonblocking exchange of {}", name(set)),
            Collective::Walk(set) => format!("the collective over {}", name(set)),
            Collective::SizedExchange(set) => format!("the sized exchange of {}", name(set)),
            Collective::Round => "a round of an epoch".to_owned(),
        }
    }

    /// What a call does, for an error text.
    pub(crate) fn title(self, loaded: &LoadedImage) -> String {
        match self {
            Collective::Messages | Collective::Phase(..) => {
                format!("the switch to {}", self.name(loaded))
            }
            _ => self.name(loaded),
        }
    }
}

/// The calls of all cells of a run, where one thread sees them all; an exchange by phases is a switch
/// for each of them. Each is compared with what the
/// first cell did that came to it.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    /// The number of the first that is kept, counted from 0.
    first: u64,
    log: VecDeque<LoggedCall>,
    /// Calls of each cell.
    made: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct LoggedCall {
    what: Collective,
    call: Call,
    by: CellId,
    cells: usize,
}

/// Kinds of calls, of which each has its own way to find out what differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    Switch,
    MessageExchange,
    Nonblocking,
    Walk,
    SizedExchange,
    Round,
}

impl CallKind {
    /// Whether calls of this kind for different sets are told apart in [`CallLog::make`].
    fn is_compared_here(self) -> bool {
        matches!(self, CallKind::Walk | CallKind::SizedExchange)
    }
}

impl Collective {
    fn kind(self) -> CallKind {
        match self {
            Collective::MessageExchange(_) => CallKind::MessageExchange,
            Collective::Nonblocking(_) => CallKind::Nonblocking,
            Collective::Walk(_) => CallKind::Walk,
            Collective::SizedExchange(_) => CallKind::SizedExchange,
            Collective::Round => CallKind::Round,
            _ => CallKind::Switch,
        }
    }
}

/// Calls that are kept; cells that are further behind are not compared.
const LOG_LENGTH: usize = 1 << 12;

impl CallLog {
    pub(crate) fn new(cells: usize) -> Self {
        Self { made: vec![0; cells], ..Self::default() }
    }

    /// A cell makes its next call, one of so many cells; the error if another did something else, or
    /// the same elsewhere. Of switches and of nonblocking exchanges the driver compares what
    /// they are.
    pub(crate) fn make(
        &mut self,
        (cell, cells): (CellId, usize),
        what: Collective,
        call: Call,
        loaded: &LoadedImage,
    ) -> Option<RunError> {
        let number = self.made[cell.index()];
        self.made[cell.index()] += 1;
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let Some(log) = self.log.get_mut(place) else {
            self.log.push_back(LoggedCall { what, call, by: cell, cells: 1 });
            if self.log.len() > LOG_LENGTH {
                self.log.pop_front();
                self.first += 1;
            }
            return None;
        };
        if log.what == what && log.call.mark() != call.mark() {
            let number = number + 1;
            return Some(mismatch(
                log.call.describe(log.by, number, log.what.title(loaded)),
                call.describe(cell, number, what.title(loaded)),
            ));
        }
        let kinds = (log.what.kind(), what.kind());
        if log.what != what && (kinds.0 != kinds.1 || kinds.0.is_compared_here()) {
            let (one, two) = ((log.by, log.what), (cell, what));
            // Other cells wait for nonblocking exchanges.
            let (one, two) =
                if two.1.kind() == CallKind::Nonblocking { (two, one) } else { (one, two) };
            let name = |what: Collective| what.name(loaded).replacen("nonblocking ", "", 1);
            let (phase, other) = (name(one.1), name(two.1));
            return Some(RunError::Disagree { first: one.0, phase, second: two.0, other });
        }
        log.cells += 1;
        while self.log.front().is_some_and(|log| log.cells == cells) {
            self.log.pop_front();
            self.first += 1;
        }
        None
    }
}

/// Two calls that do not fit together.
pub(crate) fn mismatch(one: CellCall, two: CellCall) -> RunError {
    let calls = if two.cell < one.cell { [two, one] } else { [one, two] };
    RunError::Mismatch { calls: Box::new(calls) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_places_and_rounds_apart() {
        let mut marks = std::collections::BTreeSet::new();
        let files = ["a.rs", "b.rs", "src/one/mod.rs", "src/two/mod.rs", ""];
        let mut calls = 0;
        for file in files {
            for line in [1, 2, 65_537, u32::MAX] {
                for round in [0, 1, u64::MAX] {
                    for size in [0, 1, 4, 8] {
                        let place = SourceLocation::new(file, line);
                        let make = || Call::new(Some(place), round, size, None);
                        let call = make();
                        assert!(call.mark() < 1 << MARK_BITS);
                        assert_eq!(call, make());
                        marks.insert(call.mark());
                        calls += 1;
                    }
                }
            }
        }
        assert_eq!(marks.len(), calls);
        let mark = |round, size, array| Call::new(None, round, size, array).mark();
        assert_ne!(mark(0, 8, None), mark(1, 8, None));
        assert_ne!(mark(0, 8, None), mark(0, 4, None));
        let array = |what, from, words, number_type| {
            mark(0, 0, Some(CallArray { what, from, words, number_type }))
        };
        let from = Some(CellId(0));
        let arrays = [
            mark(0, 0, None),
            array("sum", None, 1, "f64"),
            array("sum", None, 2, "f64"),
            array("sum", None, 1, "u64"),
            array("sum", from, 1, "f64"),
            array("maximum", None, 1, "f64"),
        ];
        assert_eq!(std::collections::BTreeSet::from(arrays).len(), arrays.len());
    }

    #[test]
    fn a_call_is_made_of_the_same_only() {
        // Texts are compared by where they are.
        let (file, sum, number) = ("a.rs", "sum", "f64");
        let place = |file, line| Some(SourceLocation { file, line, column: 5 });
        let array = |what, from, words, number_type| CallArray { what, from, words, number_type };
        let (here, sums) = (place(file, 7), array(sum, None, 3, number));
        let call = Call::new(here, 2, 8, Some(sums));
        assert!(call.is_made(here, 2, 8, Some(&sums)));
        for other in [place("b.rs", 7), place(file, 8), Some(SourceLocation::new(file, 7)), None] {
            assert!(!call.is_made(other, 2, 8, Some(&sums)));
        }
        assert!(!call.is_made(here, 3, 8, Some(&sums)));
        assert!(!call.is_made(here, 2, 4, Some(&sums)));
        assert!(!call.is_made(here, 2, 8, None));
        for other in [
            array("maximum", None, 3, number),
            array(sum, Some(CellId(0)), 3, number),
            array(sum, None, 2, number),
            array(sum, None, 3, "u64"),
        ] {
            assert!(!call.is_made(here, 2, 8, Some(&other)));
        }
        let plain = Call::default();
        assert!(plain.is_made(None, 0, 0, None) && !plain.is_made(here, 0, 0, None));
        assert_eq!(plain, Call::new(None, 0, 0, None));
    }
}
