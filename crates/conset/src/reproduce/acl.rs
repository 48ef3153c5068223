//! The ACL message passing library on the T3D: J. Painter and others, The ACL Message Passing Library.
//!
//! Table 1 is the time of one word, by which the preset `t3d` is calibrated. Table 2 has messages of 1 KB
//! on 32 processors: ours are step plans of synchronous messages on the fabric of `t3d:4x4x2`, with every
//! word checked. The figures are curves without numbers, so only ours are shown.
//!
//! The paper does not say in which order processors exchange in the all-to-all. Here each goes through
//! the others in the order of their numbers, and of a pair the lower number sends first, as a program of
//! synchronous sends and receives would; what an exchange with the exclusive-or of the numbers gives
//! is noted. The time of the paper's reduction calibrates the time of its operator.
//!
//! Asynchronous messages are not executed, as the paper does not describe how its pool of buffers
//! behaves when many send to one. They are arithmetic, and the notes say by which terms.

use std::sync::Arc;

use conset_ir::convert::{to_f64, to_u32};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, Piece, ShapeError, StepMessages,
    Steps,
};

use super::beside::{Beside, Exhibit, PaperTable};
use super::cm5::{planner_bug, step_clocks};
use crate::{CompileError, parallel};

/// Microseconds of one word (Table 1).
const LATENCY_SYNCHRONOUS: f64 = 5.0;
const LATENCY_ASYNCHRONOUS: f64 = 10.0;
/// Table 2, megabytes a second of a processor with synchronous and asynchronous messages.
const ALL_TO_ALL: [f64; 2] = [19.0, 7.93];
const ALL_TO_ONE: [f64; 2] = [61.9, 36.43];
const ONE_TO_ALL: [f64; 2] = [74.0, 60.61];
/// Table 2, microseconds.
const BROADCAST: f64 = 76.0;
const REDUCE: f64 = 162.0;
/// Bytes of a message, and processors, of Table 2.
const BYTES: u32 = 1024;
const PROCESSORS: u32 = 32;
/// What the text says of memory copies, in megabytes a second.
const COPY_RATE: f64 = 170.0;
/// Bytes of the figures.
const SIZES: [u32; 6] = [8, 64, 256, 1024, 4096, 16_384];

/// Source, target and words of messages, in the order in which their cells send and receive them.
type Messages = Vec<(u32, u32, u32)>;

/// Tables 1 and 2, or one of them; without a number also Figures 3 to 9.
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn tables(number: Option<u8>) -> Result<Vec<PaperTable>, CompileError> {
    let mut all = Vec::new();
    if number.is_none_or(|number| number == 1) {
        all.push(table_1()?);
    }
    if number.is_none_or(|number| number == 2) {
        all.extend(table_2()?);
    }
    if number.is_none() {
        all.extend(figures()?);
        all.push(swap_pays()?);
    }
    Ok(all)
}

/// A T3D of a power of two of processors.
fn machine(processors: u32) -> Result<Arc<Machine>, CompileError> {
    let levels = processors.max(1).ilog2();
    let [x, y, z] = [2, 1, 0].map(|more| 1u32 << ((levels + more) / 3));
    let machine = Machine::from_spec(&format!("t3d:{x}x{y}x{z}"));
    machine.map(Arc::new).map_err(|error| CompileError::bug("the preset t3d", &error))
}

fn plan(machine: &Arc<Machine>, messages: &Messages) -> Result<Steps, ShapeError> {
    let rows = messages.iter().map(|&(s, t, words)| Connection::new(CellId(s), CellId(t), words));
    let set = ConnectionSet::new("messages", rows.collect())?;
    let mut steps = StepMessages::new();
    for (row, &(source, target, words)) in messages.iter().enumerate() {
        let piece = Piece { connection: ConnectionId::from_index(row), first_word: 0, words };
        steps.push(CellId(source), CellId(target), &[piece])?;
        steps.end_step()?;
    }
    Steps::new(machine.clone(), set.into(), steps)
}

/// Microseconds of messages on the fabric, with every word checked.
fn measured(machine: &Arc<Machine>, messages: &Messages) -> Result<f64, CompileError> {
    let steps = plan(machine, messages).map_err(|error| planner_bug(&error))?;
    Ok(microseconds(machine, step_clocks(&steps)?))
}

fn microseconds(machine: &Machine, clocks: u64) -> f64 {
    1e6 * to_f64(clocks) / f64::from(machine.parameters().clock_hz)
}

/// Microseconds of the operator on so many words.
fn operator(machine: &Machine, words: u32) -> f64 {
    let clocks = u64::from(machine.parameters().combine_clocks_per_word) * u64::from(words);
    microseconds(machine, clocks)
}

fn one_to_all(processors: u32, words: u32) -> Messages {
    (1..processors).map(|target| (0, target, words)).collect()
}

fn all_to_one(processors: u32, words: u32) -> Messages {
    (1..processors).map(|source| (source, 0, words)).collect()
}

/// All pairs in the order of their numbers; each exchanges by two messages in turn.
fn all_to_all(processors: u32, words: u32) -> Messages {
    let pairs = (0..processors).flat_map(|a| (a + 1..processors).map(move |b| (a, b)));
    pairs.flat_map(|(a, b)| [(a, b, words), (b, a, words)]).collect()
}

/// The same pairs, in turn those with an equal exclusive-or.
fn pairwise(processors: u32, words: u32) -> Messages {
    let pairs = (1..processors).flat_map(|bits| (0..processors).map(move |a| (a, a ^ bits)));
    let lower = pairs.filter(|(a, b)| a < b);
    lower.flat_map(|(a, b)| [(a, b, words), (b, a, words)]).collect()
}

/// The distances of a binomial tree, the greatest first.
fn distances(processors: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..processors.max(1).ilog2()).rev().map(|level| 1 << level)
}

fn broadcast(processors: u32, words: u32) -> Messages {
    let at = move |distance: u32| {
        let cells = (0..processors).step_by(usize::try_from(2 * distance).unwrap_or(usize::MAX));
        cells.map(move |cell| (cell, cell + distance, words))
    };
    distances(processors).flat_map(at).collect()
}

/// Microseconds of a reduction over a tree: the messages of the broadcast backwards, and the operator
/// at each level.
fn reduce_by_tree(machine: &Arc<Machine>, words: u32) -> Result<f64, CompileError> {
    let processors = to_u32(machine.agent_count());
    let backwards = broadcast(processors, words).into_iter().rev().map(|(s, t, w)| (t, s, w));
    let levels = f64::from(processors.ilog2());
    Ok(measured(machine, &backwards.collect())? + levels * operator(machine, words))
}

/// Microseconds of a reduction by binary swap, then gather to processor 0; an exchange is two messages
/// in turn. The words are a power of two. Levels at which a processor has one word left, which cannot
/// be halved, are those of a tree.
fn reduce_by_swap(machine: &Arc<Machine>, words: u32) -> Result<f64, CompileError> {
    let processors = to_u32(machine.agent_count());
    let parts = processors.min(words);
    let (mut messages, mut part, mut combined) = (Messages::new(), words, 0.0);
    for distance in distances(processors).rev() {
        if distance < parts {
            part /= 2;
            let lower = (0..processors).filter(|cell| cell & distance == 0);
            messages.extend(lower.flat_map(|a| {
                let b = a + distance;
                [(a, b, part), (b, a, part)]
            }));
        } else {
            // Those that have not passed on their word at an earlier level of the tree.
            let upper = (0..processors).filter(|cell| cell & distance != 0);
            let upper = upper.filter(|cell| cell % distance < parts);
            messages.extend(upper.map(|cell| (cell, cell - distance, part)));
        }
        combined += operator(machine, part);
    }
    for distance in distances(parts) {
        messages.extend((distance..2 * distance).map(|cell| (cell, cell - distance, part)));
        part *= 2;
    }
    Ok(measured(machine, &messages)? + combined)
}

fn table_1() -> Result<PaperTable, CompileError> {
    let machine = machine(PROCESSORS)?;
    let mut table =
        PaperTable::new((Exhibit::Table, 1), "latency of one word, us", &["protocol", "time"]);
    let ours = measured(&machine, &vec![(0, 1, 1)])?;
    table.push("synchronous", vec![Beside::new(ours, Some(LATENCY_SYNCHRONOUS))]);
    // The software of the receiver is what it lacks.
    let cell = Beside::new(LATENCY_ASYNCHRONOUS, Some(LATENCY_ASYNCHRONOUS));
    table.push("asynchronous", vec![cell]);
    table.notes = vec![
        "Both are calibrated: the software of the preset t3d takes 5 us, to which the way through \
         the network adds; the second is the receiver's software, and is not executed."
            .to_owned(),
    ];
    Ok(table)
}

/// Megabytes a second of a processor that sends or receives a message for each other processor.
fn rate(microseconds: f64) -> f64 {
    f64::from(PROCESSORS - 1) * f64::from(BYTES) / microseconds
}

fn table_2() -> Result<[PaperTable; 3], CompileError> {
    let machine = machine(PROCESSORS)?;
    let words = BYTES / machine.parameters().word_bytes;
    let title = "messages of 1 KB on 32 processors, synchronous, MB/s of a processor";
    let mut rates = PaperTable::new((Exhibit::Table, 2), title, &["pattern", "rate"]);
    for (name, messages, paper) in [
        ("all-to-all", all_to_all(PROCESSORS, words), ALL_TO_ALL[0]),
        ("all-to-one", all_to_one(PROCESSORS, words), ALL_TO_ONE[0]),
        ("one-to-all", one_to_all(PROCESSORS, words), ONE_TO_ALL[0]),
    ] {
        let ours = rate(measured(&machine, &messages)?);
        rates.push(name, vec![Beside::new(ours, Some(paper))]);
    }
    let other = rate(measured(&machine, &pairwise(PROCESSORS, words))?);
    rates.notes = vec![format!(
        "The order of the all-to-all is not the paper's, which states none: each processor goes \
         through the others by number. By exclusive-or it has {other:.1} MB/s."
    )];
    let title = "collectives of 1 KB on 32 processors, synchronous, us";
    let mut times = PaperTable::new((Exhibit::Table, 2), title, &["operation", "time"]);
    let ours = measured(&machine, &broadcast(PROCESSORS, words))?;
    times.push("broadcast", vec![Beside::new(ours, Some(BROADCAST))]);
    times.push("reduce", vec![Beside::new(reduce_by_tree(&machine, words)?, Some(REDUCE))]);
    times.notes = vec![format!(
        "The operator takes {} clocks a word, calibrated on the reduction.",
        machine.parameters().combine_clocks_per_word
    )];
    Ok([rates, times, asynchronous()])
}

/// Table 2 with asynchronous messages, by arithmetic.
fn asynchronous() -> PaperTable {
    let title = "messages of 1 KB on 32 processors, asynchronous, MB/s of a processor, a formula";
    let mut table = PaperTable::new((Exhibit::Table, 2), title, &["pattern", "rate"]);
    let bytes = f64::from(BYTES);
    // Microseconds: to put a message into a buffer of the receiver, to copy it once, and the
    // receiver's software, which is what the latency has besides the sender's.
    let put = LATENCY_SYNCHRONOUS + bytes / 100.0;
    let copy = bytes / COPY_RATE;
    let software = LATENCY_ASYNCHRONOUS - LATENCY_SYNCHRONOUS;
    for (name, time, paper) in [
        ("all-to-all", put + software + 2.0 * copy, ALL_TO_ALL[1]),
        ("all-to-one", put + 2.0 * copy, ALL_TO_ONE[1]),
        ("one-to-all", put, ONE_TO_ALL[1]),
    ] {
        table.push(name, vec![Beside::new(bytes / time, Some(paper))]);
    }
    table.notes = vec![
        "put = 5 us + 1 us for 100 bytes; copy = 1 us for 170 bytes; software of a receiver = 5 us."
            .to_owned(),
        "one-to-all: put. all-to-one: put + 2 copies (the pool is drained into a list). all-to-all: \
         put + software + 2 copies."
            .to_owned(),
        "The paper does not describe the pool well enough to predict the all-to-all.".to_owned(),
    ];
    table
}

/// A figure of a pattern over message sizes.
fn figure(
    number: u8,
    (processors, what, unit): (u32, &str, &str),
    sizes: &[u32],
    value: impl Fn(&Arc<Machine>, u32) -> Result<f64, CompileError> + Sync,
) -> Result<PaperTable, CompileError> {
    let machine = machine(processors)?;
    let word_bytes = machine.parameters().word_bytes;
    let title = format!("{what}, {processors} processors, {unit} (the paper prints no numbers)");
    let mut table = PaperTable::new((Exhibit::Figure, number), title, &["bytes", what]);
    let values = parallel::try_map(sizes, |bytes| value(&machine, bytes / word_bytes))?;
    for (bytes, value) in sizes.iter().zip(values) {
        table.push(bytes.to_string(), vec![Beside::new(value, None)]);
    }
    Ok(table)
}

fn figures() -> Result<Vec<PaperTable>, CompileError> {
    type Pattern = fn(u32, u32) -> Messages;
    let mut all = Vec::new();
    // Long messages between all of 128 processors take minutes to emulate.
    let rates: [(u8, u32, &str, Pattern, &[u32]); 4] = [
        (3, 2, "all-to-all", all_to_all, &SIZES),
        (4, 128, "all-to-all", all_to_all, &SIZES[..4]),
        (5, 128, "all-to-one", all_to_one, &SIZES),
        (6, 128, "one-to-all", one_to_all, &SIZES),
    ];
    for (number, processors, what, pattern, sizes) in rates {
        all.push(figure(number, (processors, what, "MB/s"), sizes, |machine, words| {
            let bytes = f64::from(words * machine.parameters().word_bytes);
            let time = measured(machine, &pattern(processors, words))?;
            Ok(f64::from(processors - 1) * bytes / time)
        })?);
    }
    for (number, processors) in [(7, 2), (8, 128)] {
        all.push(figure(number, (processors, "broadcast", "us"), &SIZES, |machine, words| {
            measured(machine, &broadcast(processors, words))
        })?);
    }
    let reduce = |machine: &Arc<Machine>, words| reduce_by_tree(machine, words);
    all.push(figure(9, (128, "reduce", "us"), &SIZES, reduce)?);
    Ok(all)
}

/// The text's statement that binary swap pays from 1024 elements.
fn swap_pays() -> Result<PaperTable, CompileError> {
    let title = "reduction by tree / by binary swap and gather (the paper: swap pays from 1024 on)";
    let columns = ["processors", "64", "128", "256", "512", "1024", "4096"];
    let mut table = PaperTable::new((Exhibit::Figure, 9), title, &columns);
    let elements = [64, 128, 256, 512, 1024, 4096];
    let mut pays = true;
    for processors in [8, 16, 32, 64, 128] {
        let machine = machine(processors)?;
        let ratios = parallel::try_map(&elements, |&words| -> Result<f64, CompileError> {
            Ok(reduce_by_tree(&machine, words)? / reduce_by_swap(&machine, words)?)
        })?;
        pays &= ratios[4] > 1.0;
        table.push(
            processors.to_string(),
            ratios.into_iter().map(|ratio| Beside::new(ratio, None)).collect(),
        );
    }
    let verdict = if pays { "holds" } else { "does not hold" };
    table.notes = vec![format!("{verdict}: 1024 elements are sufficient for binary swap to pay")];
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(table: &PaperTable) -> Vec<f64> {
        table.rows.iter().filter_map(|row| row.cells[0].error_percent).collect()
    }

    #[test]
    fn the_synchronous_rows_are_within_what_was_asked() {
        let latency = errors(&table_1().unwrap());
        // The software alone is calibrated; the way of the word through the network comes on top.
        assert!(latency.iter().all(|error| error.abs() < 4.0), "{latency:?}");
        let [rates, times, asynchronous] = table_2().unwrap();
        for (error, most) in errors(&rates).iter().zip([15.0, 12.0, 12.0]) {
            assert!(error.abs() <= most, "{rates:?}");
        }
        assert!(errors(&times).iter().all(|error| error.abs() <= 3.0), "{times:?}");
        assert!(errors(&asynchronous)[2].abs() <= 15.0, "{asynchronous:?}");
    }

    #[test]
    fn swap_pays_from_1024_elements() {
        for processors in [8, 128] {
            let machine = machine(processors).unwrap();
            let [tree, swap] =
                [reduce_by_tree, reduce_by_swap].map(|by| by(&machine, 1024).unwrap());
            assert!(swap < tree, "{processors}: {swap} {tree}");
        }
        let machine = machine(8).unwrap();
        assert!(reduce_by_swap(&machine, 64).unwrap() > reduce_by_tree(&machine, 64).unwrap());
    }

    #[test]
    fn patterns_have_each_pair_once() {
        for processors in [2, 8, 32] {
            let mut pairs: Vec<_> =
                all_to_all(processors, 1).into_iter().map(|(s, t, _)| (s, t)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len(), (processors * (processors - 1)) as usize);
            let mut other: Vec<_> =
                pairwise(processors, 1).into_iter().map(|(s, t, _)| (s, t)).collect();
            other.sort_unstable();
            assert_eq!(other, pairs);
            let mut reached: Vec<u32> =
                broadcast(processors, 1).into_iter().map(|(_, t, _)| t).collect();
            reached.sort_unstable();
            assert_eq!(reached, (1..processors).collect::<Vec<_>>());
        }
    }
}
