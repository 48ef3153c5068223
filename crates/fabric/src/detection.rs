//! How cells notice faults of the hardware: by counting words, or also by check words.
//!
//! The simulator knows the identity of every word. Hardware does not: a cell sees a sequence of values. There are
//! two modes, which use only what cells can see:
//!
//! * [`Detection::Plain`] counts words at both ends of each stream. A receiver that waits although all words have
//!   been sent and none is on its way has lost words. Words that are left in a channel at the end of a phase are
//!   excess words. Changed values are not noticed.
//! * [`Detection::Checked`] appends [`CHECK_WORDS`] check words to each stream. They are two weighted sums of
//!   the stream's values, the second one by position, modulo 2^61 - 1, as in a Reed-Solomon code; they
//!   start with the identity of the stream (connection, first word, number of words) and the number of the exchange.
//!   The receiver computes the same sums. They differ if one word is changed, if two words change places, or if
//!   words are lost, repeated, or of another stream, except with a probability of about 2^-61 where the values of
//!   several words change. Of a single wrong, missing or repeated word and of two neighbours exchanged, the index
//!   follows from the sums ([`Damage`]).
//!
//! The price of the second mode is the check words: they are sent like others and take the same clocks. The receiver
//! verifies a stream after its last word, before the phase ends, and hands its words over to the program then: words
//! that came in a wrong context would otherwise overwrite those that were received before.
//!
//! Words are of 64 bits here, whatever the word size of the machine. On a machine of shorter words the sums would be
//! shorter, or take more words.

use std::collections::BTreeMap;
use std::fmt;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{ConnectionId, Direction, Operation, SetImage};

use crate::engine::OperationState;
use crate::payload::{Payload, SetBuffers};

/// Check words of a stream.
pub const CHECK_WORDS: u32 = 2;

/// Sums are taken modulo this prime.
const PRIME: u64 = (1 << 61) - 1;

/// What notices that words are wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detection {
    /// The simulator compares the identity of every word that is delivered. It does not see inverted bits.
    #[default]
    Simulator,
    /// Cells count words.
    Plain,
    /// Cells count words and verify check words.
    Checked,
}

/// What the check words of a stream say is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// One word of the connection has a wrong value.
    Wrong(u32),
    /// A word and the next one have changed places.
    Exchanged(u32),
    /// A word has come twice.
    Repeated(u32),
    /// A word is missing.
    Missing(u32),
    /// A check word is wrong.
    CheckWord,
    /// Several of these words, from the first number to the last, or the identity of the stream.
    Several(u32, u32),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(word) => write!(f, "word {word} is wrong"),
            Self::Exchanged(word) => write!(f, "word {word} and the next one are exchanged"),
            Self::Repeated(word) => write!(f, "word {word} came twice"),
            Self::Missing(word) => write!(f, "word {word} is missing"),
            Self::CheckWord => f.write_str("a check word is wrong"),
            Self::Several(first, last) => write!(f, "the words from {first} to {last} do not fit"),
        }
    }
}

/// A stream of a set: a connection or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stream {
    connection: ConnectionId,
    first: u32,
    words: u32,
    /// The index of its first word in the engine, where the check words of earlier parts come before it.
    place: u32,
}

/// The streams of a set with their check words.
#[derive(Clone, Debug)]
pub(crate) struct StreamTable {
    /// By connection and first word.
    streams: Vec<Stream>,
    exchange: u64,
}

impl StreamTable {
    /// The streams of a set; `exchange` is the number of this exchange.
    pub(crate) fn new(image: &SetImage, exchange: u64) -> Self {
        let cells = image.phases.iter().flat_map(|phase| phase.cells());
        let operations = cells.flat_map(|(_, context)| context.operations);
        let mut streams: Vec<Stream> = operations
            .filter(|operation| operation.direction == Direction::Receive)
            .map(|o| Stream {
                connection: o.connection,
                first: o.first_word,
                words: o.words,
                place: 0,
            })
            .collect();
        streams.sort_unstable();
        let mut parts = 0u32;
        for row in 0..streams.len() {
            let is_next = row > 0 && streams[row - 1].connection == streams[row].connection;
            parts = if is_next { parts + 1 } else { 0 };
            let stream = &mut streams[row];
            stream.place = stream.first.saturating_add(parts.saturating_mul(CHECK_WORDS));
        }
        Self { streams, exchange }
    }

    /// The streams of messages with these words of data, by label: each message is one.
    pub(crate) fn of_messages(words: impl Iterator<Item = u32>, exchange: u64) -> Self {
        let stream = |(connection, words)| Stream { connection, first: 0, words, place: 0 };
        let streams = (0..).map(ConnectionId).zip(words).map(stream).collect();
        Self { streams, exchange }
    }

    /// The check words of a message with these values.
    pub(crate) fn check_words(&self, message: ConnectionId, values: &[u64]) -> [u64; 2] {
        self.sums(&self.streams[message.index()], values.iter().copied())
    }

    /// What is wrong with the values of a message, which end with the check words.
    pub(crate) fn message_damage(&self, message: ConnectionId, values: &[u64]) -> Option<Damage> {
        let stream = &self.streams[message.index()];
        let all = index(stream.words) + index(CHECK_WORDS);
        if stream.words == 0 {
            return None;
        }
        // Of one word too many, the first ones tell which, unless it is the last check word.
        let damage = diagnose(self, stream, &values[..values.len().min(all)]);
        damage.or_else(|| (values.len() != all).then_some(Damage::CheckWord))
    }

    /// The stream that begins with a word of a connection.
    fn find(&self, connection: ConnectionId, first: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&(connection, first), |s| (s.connection, s.first)).ok()
    }

    /// The stream of a word in the engine, and the word's number in it.
    fn locate(&self, (connection, word): (ConnectionId, u32)) -> Option<(usize, u32)> {
        let after = self.streams.partition_point(|s| (s.connection, s.place) <= (connection, word));
        let row = after.checked_sub(1)?;
        let stream = &self.streams[row];
        (stream.connection == connection).then(|| (row, word - stream.place))
    }

    /// An operation with its check words.
    pub(crate) fn with_check_words(&self, operation: &Operation) -> Operation {
        let place = self.find(operation.connection, operation.first_word);
        let first_word = place.map_or(operation.first_word, |row| self.streams[row].place);
        let words = operation.words.saturating_add(CHECK_WORDS);
        Operation { first_word, words, ..*operation }
    }

    /// The state of an operation without its check words.
    pub(crate) fn without_check_words(&self, state: OperationState) -> OperationState {
        let place = self.locate((state.connection, state.first_word));
        let first_word = place.map_or(state.first_word, |(row, _)| self.streams[row].first);
        OperationState { first_word, words: state.words - CHECK_WORDS, ..state }
    }

    /// The sums of a stream's values.
    fn sums(&self, stream: &Stream, values: impl IntoIterator<Item = u64>) -> [u64; 2] {
        let mut sums = [
            u64::from(stream.connection.0) | (self.exchange & 0xff_ffff) << 32,
            u64::from(stream.first) ^ u64::from(stream.words) << 29,
        ];
        for (weight, value) in (1..).zip(values) {
            sums[0] = add(sums[0], value % PRIME);
            sums[1] = add(sums[1], times(value % PRIME, weight));
        }
        sums.map(|sum| sum % PRIME)
    }
}

fn add(a: u64, b: u64) -> u64 {
    (a % PRIME + b % PRIME) % PRIME
}

fn minus(a: u64, b: u64) -> u64 {
    add(a, PRIME - b % PRIME)
}

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a % PRIME) * u128::from(b % PRIME) % u128::from(PRIME);
    u64::try_from(product).expect("a remainder of 61 bits")
}

/// The data of an exchange, and the values that the receivers of its streams have got.
pub(crate) struct CheckedPayload<'a> {
    data: &'a mut SetBuffers,
    table: StreamTable,
    /// By stream.
    received: BTreeMap<usize, Vec<u64>>,
    /// The check words that sources have computed, by stream.
    sent: BTreeMap<usize, [u64; 2]>,
}

impl<'a> CheckedPayload<'a> {
    pub(crate) fn new(data: &'a mut SetBuffers, table: StreamTable) -> Self {
        Self { data, table, received: BTreeMap::new(), sent: BTreeMap::new() }
    }

    /// The streams.
    pub(crate) fn table(&self) -> &StreamTable {
        &self.table
    }

    /// The value that the source sends as a word.
    fn value(&mut self, from: (ConnectionId, u32)) -> u64 {
        let Some((row, word)) = self.table.locate(from) else { return 0 };
        let stream = self.table.streams[row];
        let all = self.data.outgoing(stream.connection);
        if word < stream.words {
            return all[index(stream.first + word)];
        }
        let own = all[index(stream.first)..][..index(stream.words)].iter().copied();
        let table = &self.table;
        let sums = *self.sent.entry(row).or_insert_with(|| table.sums(&stream, own));
        sums[index(word - stream.words).min(1)]
    }

    /// Verifies a stream of which all words have been received, and hands its words over.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn accept(
        &mut self,
        connection: ConnectionId,
        first_word: u32,
    ) -> Result<(), Damage> {
        if let Some(damage) = self.damage(connection, first_word) {
            return Err(damage);
        }
        if let Some(row) = self.table.find(connection, first_word) {
            let words = index(self.table.streams[row].words);
            for (&value, word) in self.received[&row][..words].iter().zip(first_word..) {
                self.data.store((connection, word), value);
            }
        }
        Ok(())
    }

    /// What is wrong with a stream of which all words have been received, or one word less.
    pub(crate) fn damage(&self, connection: ConnectionId, first_word: u32) -> Option<Damage> {
        let row = self.table.find(connection, first_word)?;
        let received = self.received.get(&row).map_or(&[][..], Vec::as_slice);
        diagnose(&self.table, &self.table.streams[row], received)
    }
}

impl Payload for CheckedPayload<'_> {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let value = self.value(from);
        if let Some((row, _)) = self.table.locate(to) {
            self.received.entry(row).or_default().push(value);
        }
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        let row = self.table.locate(to).map(|place| place.0);
        let values = row.and_then(|row| self.received.get_mut(&row));
        if let Some(last) = values.and_then(|values| values.last_mut()) {
            *last ^= u64::from(bits);
        }
    }
}

/// Compares the values of a stream, of which the last two are the check words, with the check words.
fn diagnose(table: &StreamTable, stream: &Stream, received: &[u64]) -> Option<Damage> {
    let words = index(stream.words);
    let number = |place: usize| stream.first + to_u32(place);
    let several = Damage::Several(stream.first, stream.first + (stream.words - 1));
    if received.len() == words + 1 {
        return Some(missing(table, stream, received).map_or(several, Damage::Missing));
    }
    if received.len() != words + 2 {
        return Some(several);
    }
    let (values, check) = received.split_at(words);
    let sums = table.sums(stream, values.iter().copied());
    let differences = [minus(check[0], sums[0]), minus(check[1], sums[1])];
    if differences == [0, 0] {
        // Check words are remainders.
        return check.iter().any(|&word| word >= PRIME).then_some(Damage::CheckWord);
    }
    if differences[0] == 0 {
        let is_pair = |pair: &[u64]| minus(pair[0], pair[1]) == differences[1];
        let place = values.windows(2).position(is_pair);
        return Some(place.map_or(Damage::CheckWord, |place| Damage::Exchanged(number(place))));
    }
    if differences[1] == 0 || sums == [check[1], check[0]] {
        return Some(Damage::CheckWord);
    }
    // The last word may have changed places with the first check word. Of an even number of words, that looks like a
    // wrong one in the middle, so it is examined first.
    let exchanged = values[..words - 1].iter().chain(&check[..1]).copied();
    if table.sums(stream, exchanged) == [values[words - 1], check[1]] {
        return Some(Damage::Exchanged(number(words - 1)));
    }
    let is_place = |&place: &usize| times(differences[0], to_u64(place) + 1) == differences[1];
    if let Some(place) = (0..words).find(is_place) {
        return Some(Damage::Wrong(number(place)));
    }
    // With a repeated word, the second check word is still in the channel.
    let all = &received[..=words];
    let sum = table.sums(stream, all.iter().copied())[0];
    let is_repeated =
        |place: &usize| all[*place] == all[place + 1] && minus(sum, all[*place]) == check[1];
    Some((0..words).find(is_repeated).map_or(several, |place| Damage::Repeated(number(place))))
}

/// The number of the only missing word of a stream, if there is one that fits.
fn missing(table: &StreamTable, stream: &Stream, received: &[u64]) -> Option<u32> {
    let (values, check) = received.split_at(received.len() - 2);
    let [plain, mut weighted] = table.sums(stream, values.iter().copied());
    let value = minus(check[0], plain);
    // Going through the places from the last one, each value behind the gap weighs one more.
    for place in (0..=values.len()).rev() {
        if add(weighted, times(value, to_u64(place) + 1)) == check[1] {
            return Some(stream.first + to_u32(place));
        }
        if let Some(&before) = place.checked_sub(1).and_then(|before| values.get(before)) {
            weighted = add(weighted, before);
        }
    }
    None
}

/// The data of an exchange, with or without check words.
pub(crate) enum ExchangeData<'a> {
    Unchecked(&'a mut dyn Payload),
    Checked(CheckedPayload<'a>),
}

impl<'a> ExchangeData<'a> {
    /// Data with check words, for the exchange with this number.
    pub(crate) fn with_check_words(
        data: &'a mut SetBuffers,
        image: &SetImage,
        number: u64,
    ) -> Self {
        Self::Checked(CheckedPayload::new(data, StreamTable::new(image, number)))
    }

    pub(crate) fn payload(&mut self) -> &mut dyn Payload {
        match self {
            Self::Unchecked(data) => &mut **data,
            Self::Checked(data) => data,
        }
    }

    pub(crate) fn checked(&self) -> Option<&CheckedPayload<'a>> {
        match self {
            Self::Unchecked(_) => None,
            Self::Checked(data) => Some(data),
        }
    }

    /// [`CheckedPayload::accept`]; without check words everything is accepted.
    pub(crate) fn accept(
        &mut self,
        connection: ConnectionId,
        first_word: u32,
    ) -> Result<(), Damage> {
        match self {
            Self::Unchecked(_) => Ok(()),
            Self::Checked(data) => data.accept(connection, first_word),
        }
    }

    /// The state of an operation without its check words.
    pub(crate) fn state(&self, state: OperationState) -> OperationState {
        self.checked().map_or(state, |data| data.table().without_check_words(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check words and the damage found in the values of a message, in exchanges with these numbers.
    fn damage(exchanges: [u64; 2], change: impl FnOnce(&mut Vec<u64>)) -> Option<Damage> {
        let [sent, received] = exchanges.map(|n| StreamTable::of_messages([7, 5].into_iter(), n));
        let mut values: Vec<u64> = (1..=5).map(|value| value * value + (1 << 60)).collect();
        let check = sent.check_words(ConnectionId(1), &values);
        values.extend(check);
        change(&mut values);
        received.message_damage(ConnectionId(1), &values)
    }

    #[test]
    fn what_happened_to_a_word_is_named() {
        let of = |change: &dyn Fn(&mut Vec<u64>)| damage([3, 3], change);
        assert_eq!(of(&|_| ()), None);
        for place in 0..5 {
            let number = u32::try_from(place).unwrap();
            let wrong = of(&|values| values[place] ^= 1 << 20);
            assert_eq!(wrong, Some(Damage::Wrong(number)));
            let exchanged = of(&|values| values.swap(place, place + 1));
            assert_eq!(exchanged, Some(Damage::Exchanged(number)));
            let missing = of(&|values| {
                values.remove(place);
            });
            assert_eq!(missing, Some(Damage::Missing(number)));
            let repeated = of(&|values| {
                values.insert(place, values[place]);
                values.pop();
            });
            assert_eq!(repeated, Some(Damage::Repeated(number)));
        }
        for place in [5, 6] {
            assert_eq!(of(&|values| values[place] ^= 1), Some(Damage::CheckWord));
        }
        assert_eq!(of(&|values| values.swap(5, 6)), Some(Damage::CheckWord));
        assert_eq!(of(&|values| values.push(0)), Some(Damage::CheckWord));
        assert_eq!(of(&|values| values.truncate(3)), Some(Damage::Several(0, 4)));
    }

    #[test]
    fn the_repeated_one_of_equal_words_is_named() {
        let table = StreamTable::of_messages([5].into_iter(), 3);
        let mut values = vec![9, 8, 9, 7, 7];
        values.extend(table.check_words(ConnectionId(0), &[9, 8, 9, 7, 7]));
        values.insert(2, 9);
        let damage = table.message_damage(ConnectionId(0), &values);
        assert_eq!(damage, Some(Damage::Repeated(2)));
    }

    #[test]
    fn what_equals_a_check_word_only_modulo_the_prime_is_wrong() {
        let table = StreamTable::of_messages([5].into_iter(), 0);
        let check = table.check_words(ConnectionId(0), &[0; 5]);
        assert_eq!(check[0], 0);
        for (first, expected) in [(0, None), (PRIME, Some(Damage::CheckWord))] {
            let values = [0, 0, 0, 0, 0, first, check[1]];
            assert_eq!(table.message_damage(ConnectionId(0), &values), expected);
        }
    }

    #[test]
    fn words_of_another_exchange_or_message_are_not_accepted() {
        for exchanges in [[3, 4], [0, 1], [1 << 23, 0]] {
            assert!(damage(exchanges, |_| ()).is_some(), "{exchanges:?}");
        }
        // The numbers of exchanges repeat after 2^24.
        assert_eq!(damage([1 << 24, 0], |_| ()), None);
        let table = StreamTable::of_messages([5, 5].into_iter(), 3);
        let sums = [0, 1].map(|message| table.check_words(ConnectionId(message), &[1; 5]));
        assert_ne!(sums[0], sums[1]);
    }
}
