//! Traces as trace viewers read them: every slice is alone on its track, every arrow has both ends, and
//! every track is named.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs the command and returns the trace that it wrote.
fn trace(folder: &Path, arguments: &str, name: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_conset"))
        .args(arguments.split_whitespace())
        .args(["--quiet", "--trace", name])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(folder.join(name)).unwrap();
    if !name.ends_with(".gz") {
        return serde_json::from_slice(&bytes).unwrap();
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event} is a whole number"))
}

type Track = (u64, u64);

fn track(event: &Value) -> Track {
    (number(event, "pid"), number(event, "tid"))
}

/// What holds for every trace. Returns the names of its processes.
fn check(trace: &Value) -> BTreeSet<String> {
    let events = trace["traceEvents"].as_array().unwrap();
    let mut slices: BTreeMap<Track, Vec<(u64, u64)>> = BTreeMap::new();
    let mut arrows: BTreeMap<u64, BTreeMap<&str, (Track, u64)>> = BTreeMap::new();
    let (mut threads, mut processes) = (BTreeSet::new(), BTreeMap::new());
    let mut counters: BTreeMap<(u64, &str), (u64, i64)> = BTreeMap::new();
    for event in events {
        let kind = event["ph"].as_str().unwrap();
        match kind {
            "X" => {
                let (start, clocks) = (number(event, "ts"), number(event, "dur"));
                assert!(clocks > 0, "{event}");
                slices.entry(track(event)).or_default().push((start, start + clocks));
                let args = &event["args"];
                if !args.is_null() {
                    let route = args["route"].as_str().unwrap();
                    let ends = (args["source"].as_str().unwrap(), args["target"].as_str().unwrap());
                    assert!(route.starts_with(ends.0), "{event}");
                    let last = route.rsplit(' ').next().unwrap();
                    assert_eq!(last.split('/').next(), Some(ends.1), "{event}");
                    assert!(args["words"].is_u64() && args["phase"].is_string(), "{event}");
                }
            }
            "s" | "f" => {
                let ends = arrows.entry(number(event, "id")).or_default();
                let twice = ends.insert(kind, (track(event), number(event, "ts")));
                assert!(twice.is_none(), "{event}");
                assert!(event["cat"].is_string() && event["name"].is_string());
            }
            "C" => {
                let name = event["name"].as_str().unwrap();
                let value = event["args"].as_object().unwrap().values().next().unwrap();
                let value = value.as_i64().unwrap();
                let now = number(event, "ts");
                let before = counters.insert((number(event, "pid"), name), (now, value));
                assert!(value >= 0 && before.is_none_or(|before| before.0 < now), "{event}");
            }
            "i" => drop(number(event, "ts")),
            "M" => match event["name"].as_str().unwrap() {
                "thread_name" => assert!(threads.insert(track(event)), "{event} is named twice"),
                "process_name" => {
                    let name = event["args"]["name"].as_str().unwrap().to_owned();
                    assert!(processes.insert(number(event, "pid"), name).is_none(), "{event}");
                }
                other => assert!(other.ends_with("_sort_index"), "{event}"),
            },
            _ => panic!("{event}"),
        }
    }
    for (track, slices) in &mut slices {
        assert!(threads.contains(track) && processes.contains_key(&track.0), "{track:?}");
        slices.sort_unstable();
        for pair in slices.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap on {track:?}");
        }
    }
    for (id, ends) in &arrows {
        let (Some(start), Some(end)) = (ends.get("s"), ends.get("f")) else {
            panic!("arrow {id} has one end: {ends:?}")
        };
        assert!(start.1 <= end.1, "{ends:?}");
        for (track, clock) in [start, end] {
            let inside = |slice: &&(u64, u64)| slice.0 <= *clock && *clock < slice.1;
            assert_eq!(slices[track].iter().filter(inside).count(), 1, "arrow {id}: {ends:?}");
        }
    }
    assert!(!arrows.is_empty() && !counters.is_empty());
    assert!(counters.values().all(|(_, value)| *value == 0), "{counters:?}");
    processes.into_values().collect()
}

#[test]
fn traces_of_phases_and_messages_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [
        // The clock of 20 MHz gives 50 ns; other frequencies do not divide a microsecond.
        "run pattern:all-to-all --machine iwarp:4x4 --words 9 --param clock_hz=30000001",
        "run pattern:all-to-all --machine ring:6 --words 40 --param streams=3 \
         --param stream_setup=7",
        "run pattern:all-to-all --machine iwarp-fem:3x3 --words 25 --compare messages",
        "run pattern:all-to-all --machine iwarp-timed:4x4 --words 33",
        "run pattern:all-to-all --machine fat-tree:8 --words 12 --compare messages",
        "run pattern:all-to-all --machine cm5:32 --words 8 --by steps",
        "run pattern:all-to-all --machine hypercube:4 --words 5 --by steps --algorithm recursive",
    ];
    for arguments in runs {
        let trace = trace(folder.path(), arguments, "t.json");
        let processes = check(&trace);
        let messages = arguments.contains("messages") || arguments.contains("steps");
        let has = |what: &str| processes.iter().any(|name| name.contains(what));
        assert!(has(" agents") && has(" links"), "{processes:?}");
        assert_eq!(has(" channels"), !arguments.contains("steps"), "{processes:?}");
        assert_eq!(has(" by messages links"), messages && !arguments.contains("steps"));
    }
}

#[test]
fn traces_are_compressed_if_the_name_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "run pattern:torus --machine iwarp:4x4 --words 50";
    let plain = trace(folder.path(), arguments, "t.json");
    let compressed = trace(folder.path(), arguments, "t.json.gz");
    assert_eq!(plain, compressed);
    let bytes = |name| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(10 * bytes("t.json.gz") < 3 * bytes("t.json"));
}
