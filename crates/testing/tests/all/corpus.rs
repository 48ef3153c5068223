//! The fuzz targets with the inputs that the fuzzer has collected (`fuzz/corpora`), and with changed ones. No
//! sanitizer or nightly toolchain is needed, so every test run repeats what fuzzing has found, and tries a little more.
//!
//! The first inputs are the sample files of the tests and the fixtures. `CONSET_BLESS=1 cargo test -p conset-testing
//! corpus::` adds them to the stored ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use conset::ir::{Document, FileFormat, binary, json, text};
use conset_testing::corpus;
use conset_testing::readers::TARGETS;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::samples;

/// The file with the inputs of a target.
fn file(target: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpora");
    folder.join(format!("{target}.gz"))
}

/// The stored inputs of a target.
fn stored(target: &str) -> Vec<Vec<u8>> {
    let file = file(target);
    let bytes = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    corpus::unpack(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The first inputs of the targets.
type Seeds = BTreeMap<String, Vec<Vec<u8>>>;

fn seeds() -> Seeds {
    let mut seeds = Seeds::new();
    let mut put = |target: &str, bytes: &[u8]| {
        seeds.entry(target.to_owned()).or_default().push(bytes.to_vec());
    };
    for sample in samples::samples() {
        put(&format!("mesh_{}", sample.format.name().replace('-', "_")), &sample.bytes);
    }
    put("partition", b"\x03\x02");
    put("partition", b"\x04\x00\x30\n1\n0\n2\n");
    put("fault_plan", b"link c0 -> c1 dead # now\ncell c3 dead at 700\n");
    put("fault_plan", b"cell c2 stalled 500 at 600\n");
    // Choices, a machine, a program and options.
    for byte in [0, 1, 0x77, 0xe3] {
        put("program", &[byte; 400]);
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for folder in ["cases", "cases/reject", "compat"] {
        documents(&fixtures.join(folder), &mut put);
    }
    seeds
}

/// The documents of a folder and of those in it: unchanged, and valid ones in all other forms.
fn documents(folder: &Path, put: &mut impl FnMut(&str, &[u8])) {
    for entry in fs::read_dir(folder).expect("the fixtures are there") {
        let path = entry.expect("the fixtures can be listed").path();
        if path.is_dir() {
            if folder.ends_with("compat") {
                documents(&path, put);
            }
            continue;
        }
        if path.extension().is_some_and(|extension| extension == "expect") {
            continue;
        }
        let bytes = fs::read(&path).expect("the fixture can be read");
        put("document_any", &bytes);
        match Document::sniff(&bytes) {
            Some(FileFormat::Binary) => put("document_binary", &bytes),
            Some(FileFormat::Json) => put("document_json", &bytes),
            Some(FileFormat::MachineFile) => put("machine_file", &bytes),
            _ => put("document_text", &bytes),
        }
        let Ok(document) = Document::parse_any("seed", &bytes) else { continue };
        put("document_text", text::write(&document).as_bytes());
        put("document_binary", &binary::write(&document));
        if let Some(written) = json::write(&document) {
            put("document_json", written.as_bytes());
        }
    }
}

/// The stored inputs have the seeds among them, or what replaces a seed: minimising a corpus drops inputs that reach
/// no code that others do not reach.
#[test]
fn every_target_has_inputs() {
    let bless = std::env::var_os("CONSET_BLESS").is_some();
    let mut seeds = seeds();
    for (name, _) in TARGETS {
        let first = seeds.remove(name).unwrap_or_default();
        assert!(!first.is_empty(), "{name} has no seeds");
        if bless {
            let mut inputs = if file(name).exists() { stored(name) } else { Vec::new() };
            inputs.extend(first);
            fs::create_dir_all(file(name).parent().expect("it has a folder"))
                .expect("it can be made");
            fs::write(file(name), corpus::pack(inputs)).expect("it can be written");
        }
    }
    assert!(seeds.is_empty(), "no such targets: {:?}", seeds.keys());
}

/// The targets that the fuzzer builds are those that the tests below run, so that none is left out of `cargo test`.
#[test]
fn the_targets_of_the_fuzzer_are_the_ones_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest =
        fs::read_to_string(folder.join("Cargo.toml")).expect("the manifest of the fuzzer");
    let binaries = manifest.split("[[bin]]\nname = \"").skip(1);
    let mut built: Vec<&str> = binaries.filter_map(|rest| rest.split('"').next()).collect();
    let mut tested: Vec<&str> = TARGETS.iter().map(|target| target.0).collect();
    built.sort_unstable();
    tested.sort_unstable();
    assert_eq!(built, tested);
    for name in tested {
        let path = folder.join(format!("fuzz_targets/{name}.rs"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(
            text.contains(&format!("target(\"{name}\")")),
            "{} runs another target",
            path.display()
        );
        assert!(!stored(name).is_empty(), "{name} has no stored inputs");
    }
    let files = fs::read_dir(folder.join("corpora")).expect("the stored inputs").count();
    assert_eq!(files, TARGETS.len(), "a file of inputs for each target, and no other");
}

#[test]
fn files_of_inputs_are_read_back() {
    let inputs = vec![b"longer".to_vec(), Vec::new(), b"ab".to_vec(), b"ab".to_vec()];
    let file = corpus::pack(inputs);
    let sorted = [Vec::new(), b"ab".to_vec(), b"longer".to_vec()];
    assert_eq!(corpus::unpack(&file).expect("it was packed"), sorted);
    let records = corpus::pack(vec![b"xyz".to_vec()]);
    assert!(corpus::unpack(&records[..records.len() - 9]).is_err());
}

#[test]
fn stored_inputs_pass() {
    for (name, run) in TARGETS {
        let inputs = stored(name);
        assert!(!inputs.is_empty(), "{name} has no inputs");
        inputs.iter().for_each(|input| run(input));
    }
}

#[test]
fn changed_inputs_pass() {
    let mut random = ChaCha8Rng::seed_from_u64(1996);
    for (name, run) in TARGETS {
        let inputs = stored(name);
        let count = if name == "program" { 20 } else { 2000 };
        for _ in 0..count {
            let input = inputs.choose(&mut random).expect("there are inputs");
            let other = inputs.choose(&mut random).expect("there are inputs");
            run(&changed(input, other, &mut random));
        }
    }
}

/// An input with a few changes: bytes, numbers at limits, parts that are missing, doubled, or another input's.
fn changed(input: &[u8], other: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    const NUMBERS: [&[u8]; 8] = [
        b"0",
        b"-1",
        b"4294967296",
        b"9223372036854775807",
        b"18446744073709551616",
        b"1e308",
        b"nan",
        b"\0\0\0\x80",
    ];
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let from = random.random_range(0..=bytes.len());
        let to = (from + random.random_range(0..=16)).min(bytes.len());
        match random.random_range(0..6) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..to)),
            2 => bytes.extend_from_within(from..to),
            3 => {
                let number = NUMBERS.choose(random).expect("there are numbers");
                bytes.splice(from..to, number.iter().copied()).for_each(drop);
            }
            4 => {
                let begin = random.random_range(0..=other.len());
                bytes.splice(from.., other[begin..].iter().copied()).for_each(drop);
            }
            _ => bytes[from..to]
                .iter_mut()
                .for_each(|byte| *byte = random.next_u32().to_le_bytes()[0]),
        }
    }
    bytes
}
