//! Files that were cut or changed: an error with its place, or a value. Never a panic.

use std::fmt::Debug;

use conset_ir::{At, Document, InputError, binary, json, machine_file, text};

use crate::support::{KINDS, Rng, document};

/// A document of each kind that is not trivial and yet small.
fn samples() -> Vec<Document> {
    (0..KINDS)
        .map(|kind| {
            (0..)
                .map(|seed| document(&mut Rng(seed), kind))
                .find(|value| (300..2500).contains(&text::write(value).len()))
                .expect("the generator makes all sizes")
        })
        .collect()
}

fn placed<T: Debug>(result: Result<T, InputError>) {
    if let Err(error) = result {
        assert!(!error.message.is_empty() && error.message.len() < 2000, "{error}");
        let end = error.message.chars().last();
        assert!(end != Some('.') && end != Some('\n'), "{error}");
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

/// Changes a text in a few places: bytes of the format's alphabet put in, taken out, moved.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    const ALPHABET: &[u8] = b"0123456789 \n\"\\#->/{}[],:.cxlphstwn\t-+e\xFF\x00";
    for _ in 0..=rng.below(3) {
        let at = rng.below(bytes.len());
        match rng.below(5) {
            0 => bytes[at] = rng.pick(ALPHABET),
            1 => bytes.insert(at, rng.pick(ALPHABET)),
            2 => drop(bytes.drain(at..(at + 1 + rng.below(8)).min(bytes.len()))),
            3 => {
                let piece = bytes[at..(at + rng.below(40)).min(bytes.len())].to_vec();
                let to = rng.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let other = rng.below(bytes.len());
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
        mutate(&mut Rng(seed), &mut bytes);
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

#[test]
fn machine_files_that_were_cut_or_changed() {
    for seed in 0..12 {
        let Document::Machine(machine) = document(&mut Rng(seed), 0) else { unreachable!() };
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

/// Recomputes length and checksum, so that the payload's reader gets to see the damage.
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
            let mut rng = Rng(seed);
            let mut bytes = written.clone();
            for _ in 0..=rng.below(3) {
                let at = 20 + rng.below(bytes.len() - 24);
                match rng.below(4) {
                    0 => bytes[at] = rng.next() as u8,
                    1 => bytes[at] ^= 1 << rng.below(8),
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
    let value = &samples()[4];
    let mut newer = binary::write(value);
    newer[8] = binary::MAJOR + 1;
    let error = binary::parse("f", &resealed(newer)).unwrap_err();
    assert!(error.message.contains("version 3.0"), "{error}");
    // A newer minor version has more at the end, which is skipped; ours has not.
    let mut more = binary::write(value);
    more.insert(more.len() - 4, 7);
    assert!(binary::parse("f", &resealed(more.clone())).is_err());
    more[9] = binary::MINOR + 1;
    assert_eq!(binary::parse("f", &resealed(more)), Ok(value.clone()));
}
