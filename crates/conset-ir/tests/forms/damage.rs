//! Truncated and changed files yield an error with a position, or a value, and never a panic.

use std::fmt::Debug;
use std::ops::Range;

use conset_ir::{At, Document, InputError, binary, json, machine_file, text};

use crate::numbers::Numbers;
use crate::support::{BOUNDARIES, KINDS, document};

/// A small nontrivial document of each kind.
fn samples() -> Vec<Document> {
    (0..KINDS)
        .map(|kind| {
            (0..)
                .map(|seed| document(&mut Numbers(seed), kind))
                .find(|value| (300..2500).contains(&text::write(value).len()))
                .expect("the generator makes all sizes")
        })
        .collect()
}

fn placed<T: Debug>(result: Result<T, InputError>) {
    if let Err(error) = result {
        assert!(!error.message.is_empty() && error.message.len() < 2000, "{error}");
        let (end, cut) = (error.message.chars().last(), error.message.ends_with(" ..."));
        assert!((end != Some('.') || cut) && end != Some('\n'), "{error}");
    }
}

/// As `placed`, of a text: there must be a line, and it must be that of the offset.
fn placed_in<T: Debug>(text: &str, result: Result<T, InputError>) {
    if let Err(error) = &result {
        let At::Text { line, offset, .. } = error.at else { panic!("{error}") };
        assert!(offset <= text.len(), "{error}");
        let lines = text.as_bytes()[..offset].iter().filter(|&&b| b == b'\n').count();
        assert_eq!(line, lines + 1, "{error}");
    }
    placed(result);
}

/// Changes a text in a few places: bytes of the format's alphabet are inserted, removed or moved.
fn mutate(rng: &mut Numbers, bytes: &mut Vec<u8>) {
    const ALPHABET: &[u8] = b"0123456789 \n\"\\#->/{}[],:.cxlphstwn\t-+e\xFF\x00";
    for _ in 0..=rng.index(3) {
        let at = rng.index(bytes.len());
        match rng.index(5) {
            0 => bytes[at] = rng.pick(ALPHABET),
            1 => bytes.insert(at, rng.pick(ALPHABET)),
            2 => drop(bytes.drain(at..(at + 1 + rng.index(8)).min(bytes.len()))),
            3 => {
                let piece = bytes[at..(at + rng.index(40)).min(bytes.len())].to_vec();
                let to = rng.index(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let other = rng.index(bytes.len());
                bytes.swap(at, other);
            }
        }
        if bytes.is_empty() {
            return;
        }
    }
}

fn mutants(original: &[u8], count: u64, check: impl Fn(&[u8])) {
    for seed in 0..count {
        let mut bytes = original.to_vec();
        mutate(&mut Numbers(seed), &mut bytes);
        check(&bytes);
    }
}

#[test]
fn text_that_was_cut_or_changed() {
    for value in samples() {
        let written = text::write(&value);
        for end in 0..written.len() {
            if let Some(part) = written.get(..end) {
                placed_in(part, text::parse("f", part));
            }
        }
        mutants(written.as_bytes(), 3000, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            placed_in(&text, text::parse("f", &text));
            placed(Document::parse_any("f", bytes));
        });
    }
}

#[test]
fn json_that_was_cut_or_changed() {
    for value in samples() {
        let Some(written) = json::write(&value) else { continue };
        for end in 0..written.trim_end().len() {
            let error = json::parse("f", &written.as_bytes()[..end]).unwrap_err();
            assert!(matches!(error.at, At::Text { .. }), "{error}");
        }
        mutants(written.as_bytes(), 6000, |bytes| placed(json::parse("f", bytes)));
    }
}

/// The positions of the whole numbers of a text, including those in ids.
fn numbers_in(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, b)| b.is_ascii_digit()) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

/// All texts in which one number of `text` is replaced by a boundary value.
fn with_boundaries(text: &str, check: impl Fn(&str)) {
    let mut numbers: Vec<String> = BOUNDARIES.iter().map(u64::to_string).collect();
    numbers.push("18446744073709551616".to_owned());
    for range in numbers_in(text) {
        for number in &numbers {
            let mut changed = text.to_owned();
            changed.replace_range(range.clone(), number);
            check(&changed);
        }
    }
}

#[test]
fn numbers_where_types_end_are_read_back_or_refused() {
    for value in samples() {
        with_boundaries(&text::write(&value), |changed| {
            let read = text::parse("f", changed);
            if let Ok(value) = &read {
                assert_eq!(text::parse("f", &text::write(value)).as_ref(), Ok(value));
                assert_eq!(binary::parse("f", &binary::write(value)).as_ref(), Ok(value));
            }
            placed_in(changed, read);
        });
        let Some(written) = json::write(&value) else { continue };
        with_boundaries(&written, |changed| {
            let read = json::parse("f", changed.as_bytes());
            if let Ok(value) = &read {
                let again = json::write(value).expect("it came as JSON");
                assert_eq!(json::parse("f", again.as_bytes()).as_ref(), Ok(value));
            }
            if let Err(error) = &read {
                assert!(!error.message.contains("floating"), "{error}");
            }
            placed(read);
        });
    }
    for seed in 0..12 {
        let Document::Machine(machine) = document(&mut Numbers(seed), 0) else { unreachable!() };
        with_boundaries(&machine_file::write(&machine), |changed| {
            let read = machine_file::parse("f", changed);
            if let Err(error) = &read {
                assert!(!error.message.contains("floating"), "{error}");
            }
            placed_in(changed, read);
        });
    }
}

#[test]
fn machine_files_that_were_cut_or_changed() {
    for seed in 0..12 {
        let Document::Machine(machine) = document(&mut Numbers(seed), 0) else { unreachable!() };
        let written = machine_file::write(&machine);
        for end in 0..written.len() {
            if let Some(part) = written.get(..end) {
                placed_in(part, machine_file::parse("f", part));
            }
        }
        mutants(written.as_bytes(), 500, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            placed_in(&text, machine_file::parse("f", &text));
        });
    }
}

#[test]
fn binary_files_that_were_cut_or_have_a_bit_flipped_are_refused() {
    for value in samples() {
        let written = binary::write(&value);
        for end in 0..written.len() {
            assert!(binary::parse("f", &written[..end]).is_err(), "cut at {end}");
        }
        for bit in 0..written.len() * 8 {
            let mut flipped = written.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = binary::parse("f", &flipped).unwrap_err();
            assert!(matches!(error.at, At::Byte(_)), "{error}");
        }
        let mut longer = written.clone();
        longer.push(0);
        assert!(binary::parse("f", &longer).is_err());
    }
}

/// Recomputes length and checksum, so that the reader of the payload reads the damage.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 4);
    let payload = (bytes.len() - 20) as u64;
    bytes[12..20].copy_from_slice(&payload.to_le_bytes());
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

#[test]
fn binary_payloads_are_not_believed_for_their_checksum() {
    for value in samples() {
        let written = binary::write(&value);
        assert_eq!(resealed(written.clone()), written);
        for seed in 0..4000 {
            let mut rng = Numbers(seed);
            let mut bytes = written.clone();
            for _ in 0..=rng.index(3) {
                let at = 20 + rng.index(bytes.len() - 24);
                match rng.index(4) {
                    0 => bytes[at] = rng.next() as u8,
                    1 => bytes[at] ^= 1 << rng.index(8),
                    2 => bytes.insert(at, 0xFF),
                    _ if bytes.len() > 26 => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            placed(binary::parse("f", &resealed(bytes)));
        }
    }
}

#[test]
fn newer_binary_versions_follow_the_rule() {
    let with_parts = |value: &Document| match value {
        Document::Schedule(schedule) => schedule.part_map().is_some(),
        _ => false,
    };
    let value = &(0..).map(|seed| document(&mut Numbers(seed), 4)).find(with_parts).unwrap();
    let mut newer = binary::write(value);
    newer[8] = binary::MAJOR + 1;
    let error = binary::parse("f", &resealed(newer)).unwrap_err();
    assert!(error.message.contains("version 8."), "{error}");
    // A newer minor version may have more data at the end, which is skipped. (The newest one adds
    // step schedules, and nothing to schedules.)
    let Document::Schedule(schedule) = value else { panic!("a {}", value.kind()) };
    let value = &Document::Schedule(schedule.clone().with_digest());
    let mut more = binary::write(value);
    assert_eq!(more[9], binary::MINOR - 1);
    more.insert(more.len() - 4, 7);
    assert!(binary::parse("f", &resealed(more.clone())).is_err());
    more[9] = binary::MINOR + 1;
    assert_eq!(binary::parse("f", &resealed(more)), Ok(value.clone()));
}
