//! Whatever image the checker accepts can be adopted, and the fabric delivers every word of it.
//!
//! Images of small programs are changed as texts: lines go, come twice, change places; ids, words,
//! starts and machine parameters become others, at one end of a connection or at all of them. Most
//! of that is refused by the reader or by the checker. The rest must run.
//!
//! `CONSET_IMAGE_MUTANTS` sets the number of mutants, of which the first is number
//! `CONSET_IMAGE_MUTANTS_FROM`.

use std::fmt::Write;
use std::sync::Arc;

use conset::{CompileError, Compiled, Compiler, run};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Document, Duplex, Machine, Program, text,
};

use crate::numbers::Numbers;

/// A machine of few cells, in all that makes agents and queues differ.
fn machine(rng: &mut Numbers) -> Machine {
    let specs = ["ring:2", "torus:3", "torus:4x1", "mesh:2x2", "mesh:1", "torus:3x2", "fat-tree:4"];
    let machine = Machine::from_spec(rng.pick(&specs)).unwrap();
    let mut parameters = machine.parameters().clone();
    parameters.channels_per_cell = rng.pick(&[1, 2, 3, 8]);
    parameters.channel_depth = rng.pick(&[1, 2, 8]);
    parameters.streams = rng.pick(&[1, 1, 2, 3]);
    parameters.stream_setup = rng.pick(&[0, 0, 7, 1000]);
    parameters.link_clocks_per_word = rng.pick(&[1, 2, 5]);
    parameters.access_clocks_per_word = rng.pick(&[1, 2, 5]);
    if rng.one_in(2) {
        parameters.duplex = Duplex::Half;
    }
    machine.with_parameters(parameters).unwrap()
}

fn set(rng: &mut Numbers, machine: &Machine) -> ConnectionSet {
    let ends: Vec<CellId> = machine.endpoints().collect();
    let count = 1 + rng.index(6);
    let mut connections: Vec<Connection> = Vec::new();
    for _ in 0..count {
        let mut ends = (rng.pick(&ends), rng.pick(&ends));
        if !connections.is_empty() && rng.one_in(3) {
            let other = &connections[rng.index(connections.len())];
            ends = (other.source, other.target);
        }
        let words = 1 + if rng.one_in(3) { rng.index(200) } else { rng.index(6) } as u32;
        let mut connection = Connection::new(ends.0, ends.1, words);
        connection.min_bandwidth = rng.one_in(8).then_some(20);
        connections.push(connection);
    }
    let order = if rng.one_in(3) && count > 1 {
        let (a, b) = (rng.index(count) as u32, rng.index(count) as u32);
        if a == b { vec![] } else { vec![(ConnectionId(a.min(b)), ConnectionId(a.max(b)))] }
    } else {
        vec![]
    };
    ConnectionSet::new("s", connections).unwrap().with_order(order).unwrap()
}

/// The image of a small program as lines; `None` if there is no schedule for it.
fn base(seed: u64) -> Option<Vec<String>> {
    let mut rng = Numbers(seed);
    let machine = Arc::new(machine(&mut rng));
    let set = set(&mut rng, &machine);
    let compiled =
        match Compiler::new(&machine).seed(seed).max_plans(1).compile(&Program::from(set)) {
            Ok(compiled) => compiled,
            Err(CompileError::Bug { stage, message }) => panic!("base {seed}: {stage}: {message}"),
            Err(_) => return None,
        };
    let image = Document::Image((**compiled.image()).clone());
    Some(text::write(&image).lines().map(str::to_owned).collect())
}

/// The lines of operations.
fn operations(lines: &[String]) -> Vec<usize> {
    let is_operation =
        |line: &String| ["send ", "receive "].iter().any(|w| line.trim_start().starts_with(w));
    (0..lines.len()).filter(|&row| is_operation(&lines[row])).collect()
}

/// The word after `key` in a line.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| *word == key)?;
    words.next()
}

/// The line with the word after `key` replaced; put at the end of the line if there is none.
fn with_value(line: &str, key: &str, value: impl std::fmt::Display) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut out = String::from(indent.trim_end_matches(' '));
    let (mut replace, mut found) = (false, false);
    for word in line.split_whitespace() {
        match replace {
            true => write!(out, " {value}").unwrap(),
            false => write!(out, " {word}").unwrap(),
        }
        replace = word == key;
        found |= replace;
    }
    if !found {
        write!(out, " {key} {value}").unwrap();
    }
    out
}

fn number(line: &str, key: &str) -> u64 {
    value(line, key).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A number near another, or at an end of a type.
fn other_number(rng: &mut Numbers, number: u64) -> u64 {
    match rng.index(8) {
        0 => 0,
        1 => number.wrapping_add(1),
        2 => number.saturating_sub(1),
        3 => number / 2,
        4 => number.wrapping_mul(2),
        5 => rng.index(12) as u64,
        6 => rng.index(1000) as u64,
        _ => rng.pick(&[1 << 31, u64::from(u32::MAX), 1 << 53, 1 << 62, 1 << 63, u64::MAX]),
    }
}

/// Rows of the operations of one connection, with the same first word: both ends of a part.
fn part(rng: &mut Numbers, lines: &[String]) -> Vec<usize> {
    let all = operations(lines);
    if all.is_empty() {
        return all;
    }
    let of = |row: usize| {
        let line = lines[row].split_whitespace().nth(1).unwrap_or("").to_owned();
        (line, number(&lines[row], "first_word"))
    };
    let one = of(rng.pick(&all));
    all.into_iter().filter(|&row| of(row) == one).collect()
}

fn mutate(rng: &mut Numbers, lines: &mut Vec<String>) {
    let operations = operations(lines);
    let body = lines.iter().position(|line| line.starts_with("set ")).unwrap_or(1);
    let row = rng.index(lines.len());
    match rng.index(17) {
        0 => drop(lines.remove(row)),
        1 => lines.insert(row, lines[row].clone()),
        2 => {
            let to = rng.index(lines.len());
            let line = lines[row].clone();
            lines.insert(to, line);
        }
        3 => {
            let other = rng.index(lines.len());
            lines.swap(row, other);
        }
        4 | 5 if operations.len() > 1 => {
            // Neighbours in a list.
            let at = rng.index(operations.len() - 1);
            lines.swap(operations[at], operations[at + 1]);
        }
        6 if !operations.is_empty() => {
            let (a, b) = (rng.pick(&operations), rng.pick(&operations));
            lines.swap(a, b);
        }
        7 => {
            for &row in &operations {
                lines[row] = with_value(&lines[row], "start", 0);
            }
        }
        8 | 9 => {
            // A part starts at another time, at both ends; or at another's.
            let rows = part(rng, lines);
            let Some(&first) = rows.first() else { return };
            let start = match rng.one_in(2) {
                true => other_number(rng, number(&lines[first], "start")),
                false => number(&lines[rng.pick(&operations)], "start"),
            };
            for row in rows {
                lines[row] = with_value(&lines[row], "start", start);
            }
        }
        10 => {
            let rows = part(rng, lines);
            let key = rng.pick(&["words", "first_word"]);
            let Some(&first) = rows.first() else { return };
            let to = other_number(rng, number(&lines[first], key));
            for row in rows {
                lines[row] = with_value(&lines[row], key, to);
            }
        }
        11 if body > 2 => {
            // A machine parameter.
            let row = 2 + rng.index(body - 2);
            let words: Vec<&str> = lines[row].split_whitespace().collect();
            let [key, old] = words[..] else { return };
            lines[row] = match old.parse() {
                Ok(old) => format!("  {key} {}", other_number(rng, old)),
                Err(_) => format!("  duplex {}", rng.pick(&["full", "half"])),
            };
        }
        12 => {
            // Two names change places from here on: connections, channels, links, cells.
            let prefix = rng.pick(&["x", "ch", "l", "c"]);
            let (a, b) = (rng.index(4), rng.index(4));
            let (a, b) = (format!("{prefix}{a}"), format!("{prefix}{b}"));
            let end = (row + 1 + rng.index(8)).min(lines.len());
            for line in &mut lines[row..end] {
                *line = swapped(line, &a, &b);
            }
        }
        13 => {
            // The lists of a cell in another order, as a whole.
            let at = rng.index(operations.len().max(1));
            let Some(&first) = operations.get(at) else { return };
            let mut last = first;
            while operations.contains(&(last + 1)) {
                last += 1;
            }
            match rng.one_in(2) {
                true => lines[first..=last].reverse(),
                false => lines[first..=last].rotate_left(1),
            }
        }
        _ => {
            // One word of one line.
            let words: Vec<String> = lines[row].split_whitespace().map(str::to_owned).collect();
            let Some(at) = (!words.is_empty()).then(|| rng.index(words.len())) else { return };
            let digits = words[at].trim_start_matches(|c: char| !c.is_ascii_digit());
            let prefix = &words[at][..words[at].len() - digits.len()];
            let Ok(old) = digits.parse::<u64>() else { return };
            let new = format!("{prefix}{}", other_number(rng, old));
            let indent = lines[row].len() - lines[row].trim_start().len();
            let mut words = words;
            words[at] = new;
            lines[row] = " ".repeat(indent) + &words.join(" ");
        }
    }
}

/// The line with two words exchanged.
fn swapped(line: &str, a: &str, b: &str) -> String {
    let exchange = |part: &str| match part {
        part if part == a => b.to_owned(),
        part if part == b => a.to_owned(),
        part => part.to_owned(),
    };
    let word = |word: &str| word.split('/').map(exchange).collect::<Vec<_>>().join("/");
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What became of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is no image.
    Unreadable,
    Refused,
    /// Every word was delivered.
    Delivered,
}

fn fate(text: &str) -> Result<Fate, String> {
    let Ok(document) = Document::parse_any("mutant", text.as_bytes()) else {
        return Ok(Fate::Unreadable);
    };
    let Document::Image(image) = document else { return Ok(Fate::Unreadable) };
    if conset::verify::check_image(&image).is_err() {
        return Ok(Fate::Refused);
    }
    let words: u64 = image.sets().iter().map(|set| set.set.words()).sum();
    let compiled =
        Compiled::import_image(image, &mut |_| ()).map_err(|e| format!("not adopted: {e}"))?;
    let runs = run::run(&compiled, 1, false, &mut |_| ()).map_err(|e| format!("fault: {e}"))?;
    let delivered: u64 = runs.iter().map(|run| run.summary.words).sum();
    match runs.iter().all(|run| run.summary.payload_ok) && delivered == words {
        true => Ok(Fate::Delivered),
        false => Err(format!("{delivered} of {words} words delivered")),
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

#[test]
fn whatever_image_is_verified_runs() {
    const MUTANTS_OF_A_BASE: u64 = 25;
    let mutants = from_environment("CONSET_IMAGE_MUTANTS", 10_000);
    let from = from_environment("CONSET_IMAGE_MUTANTS_FROM", 0);
    let (mut readable, mut delivered) = (0, 0);
    let mut original: Option<Vec<String>> = None;
    for seed in from..from + mutants {
        if seed == from || seed % MUTANTS_OF_A_BASE == 0 {
            original = base(seed / MUTANTS_OF_A_BASE);
        }
        let Some(original) = &original else { continue };
        let mut rng = Numbers(seed);
        let mut lines = original.clone();
        for _ in 0..=rng.index(3) {
            if !lines.is_empty() {
                mutate(&mut rng, &mut lines);
            }
        }
        let text = lines.join("\n") + "\n";
        let fate = fate(&text).unwrap_or_else(|what| panic!("mutant {seed}: {what}\n{text}"));
        readable += u64::from(fate != Fate::Unreadable);
        delivered += u64::from(fate == Fate::Delivered && lines != *original);
    }
    // Otherwise nothing was tried.
    let tried = format!("of {mutants} mutants {readable} readable, {delivered} delivered");
    assert!(readable > mutants / 4 && delivered > mutants / 25, "{tried}");
}
