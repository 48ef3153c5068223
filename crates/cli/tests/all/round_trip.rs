//! A solver that reads its mesh itself and gets the rest from the files of `conset compile` computes
//! the same bits as one that does all of it in one program.

use std::path::{Path, PathBuf};
use std::process::Command;

use conset_examples::heat::Job;
use conset_mesh::generate::by_name;
use conset_mesh::write_msh::{MshFormat, write};

const MACHINE: &str = "iwarp:3x2";

/// A mesh whose nodes have numbers with gaps, in another order than in the file.
fn mesh(folder: &Path, spec: &str) -> PathBuf {
    let mesh = by_name(spec, 1).unwrap();
    let count = mesh.node_count() as u64;
    let ids = (0..count).map(|node| 5 + 3 * (node * 7919 % count)).collect::<Vec<u64>>();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), ids.len());
    let path = folder.join("mesh.msh");
    let bytes = write(&mesh.with_node_ids(ids).unwrap(), MshFormat::V22Text).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn bits(job: &Job) -> Vec<(u64, u64)> {
    let values = job.run(25).unwrap();
    values.into_iter().map(|(node, value)| (node, value.to_bits())).collect()
}

#[test]
fn a_solver_from_files_has_the_bits_of_the_run_in_one() {
    for spec in ["plate:9x7", "tets:4x4x4", "random:300"] {
        let folder = tempfile::tempdir().unwrap();
        let mesh = mesh(folder.path(), spec);
        let in_one = bits(&Job::in_one(&mesh, MACHINE, None).unwrap());
        assert!(in_one.iter().any(|&(_, bits)| f64::from_bits(bits) != 0.0));
        for extension in ["json", "cset", "csb"] {
            let schedule = folder.path().join("schedule").with_extension(extension);
            let partition = folder.path().join("partition.txt");
            let output = Command::new(env!("CARGO_BIN_EXE_conset"))
                .args(["--quiet", "compile", "--machine", MACHINE, "-o"])
                .arg(&schedule)
                .arg("--write-partition")
                .arg(&partition)
                .arg(&mesh)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let from_files = Job::from_files(&mesh, &partition, &schedule).unwrap();
            assert_eq!(from_files.cells().len(), 6);
            assert_eq!(bits(&from_files), in_one, "{spec} {extension}");
        }
    }
}
