//! Subcommands in jobs of several ranks: the machine file that `conset tune` writes is one that compiles, and
//! the cells of random programs (`conset soak --mpi`) receive what they should.

#![cfg(feature = "mpi")]

use std::path::Path;
use std::process::{Command, Output};

use conset_ir::machine_file;
use serde_json::Value;

/// `conset` as a job of some ranks.
fn job(folder: &Path, ranks: &str, words: &str) -> Output {
    let launcher = std::env::var("CONSET_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    Command::new("timeout")
        .args(["-k", "5", "300", &launcher, "-n", ranks, env!("CARGO_BIN_EXE_conset")])
        .args(words.split_whitespace())
        .current_dir(folder)
        // One launcher may remove the folder of all their files while another begins to use it.
        .env("TMPDIR", folder)
        // More ranks than cores, and perhaps as root in a container.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output()
        .unwrap()
}

#[test]
fn what_is_measured_is_a_machine_to_compile_for() {
    let folder = tempfile::tempdir().unwrap();
    for (ranks, options, shape, network) in [
        ("4", "--cells-per-node 2", "cluster:2x2", true),
        ("3", "--cells-per-node 1", "cluster:3", true),
        ("2", "", "cluster:1x2", false),
    ] {
        let output = job(folder.path(), ranks, &format!("tune {options} -o tuned.toml --json"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_str(&text).expect("one rank prints");
        assert_eq!(
            (&report["format"], &report["output"]),
            (&"conset-tune".into(), &"tuned.toml".into())
        );
        let file = std::fs::read_to_string(folder.path().join("tuned.toml")).unwrap();
        let machine = machine_file::parse("tuned.toml", &file).unwrap();
        assert_eq!(machine.topology().to_string(), shape);
        assert_eq!(file.contains("between nodes: not measured"), !network, "{file}");
        // A message takes time, and less than a second even on a busy machine.
        let p = machine.parameters();
        assert!((1..4_000_000_000).contains(&(p.c_send + p.c_receive)), "{file}");
        let compiled = Command::new(env!("CARGO_BIN_EXE_conset"))
            .args(["compile", "pattern:all-to-all", "--machine", "tuned.toml", "--by", "best"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }
}

#[test]
fn what_cannot_be_measured_is_an_error_of_one_rank() {
    let folder = tempfile::tempdir().unwrap();
    for (ranks, words, says) in [
        ("1", "tune -o t.toml", "one rank has nobody to exchange messages with"),
        ("3", "tune --cells-per-node 2 -o t.toml", "3 ranks cannot be divided into nodes of 2"),
        ("2", "tune -o t.txt", "the name of a machine file ends in .toml"),
    ] {
        let output = job(folder.path(), ranks, words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.matches(says).count() == 1, "{text}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn cells_of_random_programs_receive_every_word() {
    let folder = tempfile::tempdir().unwrap();
    for ranks in ["2", "5"] {
        let output = job(folder.path(), ranks, "soak --mpi --programs 60 --seed 500 --json");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_str(&text).expect("one rank prints");
        assert_eq!(report["programs"], 60);
        for (what, least) in [("transports", 30), ("steps", 30)] {
            assert!(report[what].as_u64() >= Some(least), "{what}: {report}");
        }
    }
}
