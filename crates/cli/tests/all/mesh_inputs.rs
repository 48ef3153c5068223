//! Inputs that are meshes: what the command says of them, and those that are several files.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::calls::conset_in;

/// Runs `conset` in `folder`; the exit code and what it wrote.
fn conset(folder: &Path, words: &str) -> (i32, String) {
    let outcome = conset_in(folder, words);
    (outcome.code, outcome.stdout + &outcome.stderr)
}

fn done(folder: &Path, words: &str) -> String {
    let (code, text) = conset(folder, words);
    assert_eq!(code, 0, "conset {words}\n{text}");
    text
}

fn refused(folder: &Path, words: &str, expected: &str) {
    let (code, text) = conset(folder, words);
    assert!(code == 2 && text.contains(expected), "conset {words}: {code:?}\n{text}");
}

fn json(folder: &Path, words: &str) -> Value {
    serde_json::from_str(&done(folder, &format!("{words} --json"))).unwrap()
}

/// Two triangles in two parts, lines on the boundary and periodic nodes.
const MIXED: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n1 3 \"wall\"\n\
    $EndPhysicalNames\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 1 1 0\n5 9 9 0\n$EndNodes\n\
    $Elements\n4\n1 1 4 3 1 1 1 1 2\n2 1 4 3 1 1 2 2 4\n3 2 4 9 1 1 1 1 2 3\n4 2 4 9 1 1 2 2 4 3\n\
    $EndElements\n$Periodic\n1\n1 1 2\n1\n4 3\n$EndPeriodic\n$NodeData\n1\n$EndNodeData\n";

#[test]
fn what_is_not_used_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("odd name without extension".replace(' ', "_")), MIXED).unwrap();
    let file = "odd_name_without_extension";
    let text = done(folder.path(), &format!("info {file}"));
    for line in [
        "nodes    5, 1 joined with another one (periodic), 1 in no element\n",
        "elements 2 divided, 2 attached to a divided one\n",
        "2-node line              1        0         2\n",
        "wall                        2\n",
        "parts    2: 1 to 1 items, 2 to 2 words sent (4 together), at most 1 neighbour\n",
        "balance  imbalance 0 %, cut 1; given partition\n",
        "box      (0, 0, 0) to (9, 9, 0)\n",
        "unused   $NodeData: values are not needed\n",
    ] {
        let narrow = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(narrow(&text).contains(&narrow(line)), "{line}{text}");
    }
    let apart = json(folder.path(), &format!("info {file} --ignore-periodic"));
    assert_eq!(apart["joined_nodes"], 0);
    assert_eq!(apart["elements_per_part"], serde_json::json!([1, 1]));
    let machine = "--machine iwarp:2x2";
    // The figures of the decomposition are those of its compilation.
    for options in ["", "--ignore-periodic"] {
        let info = json(folder.path(), &format!("info {file} {options}"));
        let compiled = json(folder.path(), &format!("compile {file} {machine} {options}"));
        assert_eq!(info["decomposition"], compiled["parts"], "{options}");
    }
    for (options, note) in [
        (
            "",
            "mesh     2 attached elements, 1 joined node, 1 node in no element, not used: $NodeData",
        ),
        ("--ignore-periodic", "not used: $NodeData and 1 more"),
    ] {
        let text = done(folder.path(), &format!("run {file} {machine} {options}"));
        assert!(text.contains(note), "{text}");
    }
    let words = |options: &str| {
        let report = json(folder.path(), &format!("compile {file} {machine} {options}"));
        assert!(report["mesh"].is_string());
        report["sets"][0]["words"].as_u64().unwrap()
    };
    assert_eq!((words(""), words("--ignore-periodic")), (4, 4));
}

#[test]
fn a_decomposition_in_a_file_is_kept_unless_it_is_to_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two.msh"), MIXED).unwrap();
    let command = |options: &str| format!("compile two.msh --machine iwarp:2x2 {options}");
    let parts =
        |options: &str| json(folder.path(), &command(options))["parts"]["parts"].as_u64().unwrap();
    assert_eq!((parts(""), parts("--parts 2"), parts("--parts 1 --repartition")), (2, 2, 1));
    refused(folder.path(), &command("--parts 1"), "add --repartition");
    refused(folder.path(), &command("--partition x --repartition"), "cannot be used with");
}

/// One part of two triangles in Gmsh 4.1, as Gmsh splits a mesh.
fn split(part: u32) -> String {
    let (nodes, element) = match part {
        1 => ("1 2 3\n", "1 1 2 3"),
        _ => ("2 3 4\n", "2 2 4 3"),
    };
    let point = |node: &str| match node {
        "1" => "0 0 0\n",
        "2" => "1 0 0\n",
        "3" => "0 1 0\n",
        _ => "1 1 0\n",
    };
    let points: String = nodes.split_whitespace().map(point).collect();
    let tags = nodes.replace(' ', "\n");
    format!(
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PartitionedEntities\n2\n0\n0 0 2 0\n\
         3 2 1 1 1 0 0 0 1 1 1 0 0\n4 2 1 1 2 0 0 0 1 1 1 0 0\n$EndPartitionedEntities\n\
         $Nodes\n1 3 1 4\n2 {0} 0 3\n{tags}{points}$EndNodes\n\
         $Elements\n1 1 1 2\n2 {0} 2 1\n{element}\n$EndElements\n",
        part + 2
    )
}

#[test]
fn all_files_of_a_split_mesh_are_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m_1.msh"), split(1)).unwrap();
    refused(folder.path(), "info m_1.msh", "split into 2 files; all are needed");
    fs::write(folder.path().join("m_2.msh"), split(2)).unwrap();
    for file in ["m_1.msh", "m_2.msh"] {
        let report = json(folder.path(), &format!("info {file}"));
        assert_eq!((&report["nodes"], &report["divided_elements"]), (&4.into(), &2.into()));
        assert_eq!(
            (&report["parts"], &report["file_format"]),
            (&2.into(), &"Gmsh 4.1, ASCII, 2 files".into())
        );
    }
    let report = json(folder.path(), "compile m_2.msh --machine iwarp:2x2");
    assert_eq!(report["sets"][0]["words"], 4);
    // Alone, and under a name without a number, a file is refused.
    fs::copy(folder.path().join("m_1.msh"), folder.path().join("alone.msh")).unwrap();
    refused(folder.path(), "info alone.msh", "partition 1 of 2 only");
    fs::write(folder.path().join("m_2.msh"), split(1)).unwrap();
    refused(folder.path(), "compile m_1.msh", "partition 1, which m_1.msh has too");
}

/// One part of two triangles in Gmsh 2.2, which does not state the number of parts; `ghost` is
/// another part that has the element as a ghost, or nothing.
fn split_2(part: u32, ghost: &str) -> String {
    let (points, nodes) = match part {
        1 => ("1 0 0 0\n2 1 0 0\n3 0 1 0\n", "1 2 3"),
        _ => ("2 1 0 0\n3 0 1 0\n4 1 1 0\n", "2 4 3"),
    };
    let count = 1 + ghost.split_whitespace().count();
    format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n{points}$EndNodes\n\
         $Elements\n1\n{part} 2 {} 0 1 {count} {part} {ghost} {nodes}\n$EndElements\n",
        3 + count
    )
}

#[test]
fn files_of_a_split_mesh_that_do_not_state_their_number_are_all_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m_1.msh"), split_2(1, "")).unwrap();
    // This may be a whole mesh in one part.
    assert_eq!(json(folder.path(), "info m_1.msh")["divided_elements"], 1);
    fs::write(folder.path().join("m_2.msh"), split_2(2, "")).unwrap();
    for file in ["m_1.msh", "m_2.msh"] {
        let report = json(folder.path(), &format!("info {file}"));
        assert_eq!((&report["nodes"], &report["divided_elements"]), (&4.into(), &2.into()));
        assert_eq!(report["elements_per_part"], serde_json::json!([1, 1]));
    }
    let report = json(folder.path(), "compile m_1.msh --machine iwarp:2x2");
    assert_eq!(report["sets"][0]["words"], 4);
    // Ghosts show that there is another part.
    fs::write(folder.path().join("g_1.msh"), split_2(1, "-2")).unwrap();
    refused(folder.path(), "info g_1.msh", "split into 2 files; all are needed");
    fs::copy(folder.path().join("m_2.msh"), folder.path().join("g_2.msh")).unwrap();
    assert_eq!(json(folder.path(), "info g_1.msh")["divided_elements"], 2);
    fs::copy(folder.path().join("m_2.msh"), folder.path().join("alone.msh")).unwrap();
    refused(folder.path(), "info alone.msh", "partition 2 only");
    // Meshes that have nothing to do with each other, of one part each.
    fs::copy(folder.path().join("m_1.msh"), folder.path().join("other_1.msh")).unwrap();
    fs::copy(folder.path().join("m_1.msh"), folder.path().join("other_2.msh")).unwrap();
    assert_eq!(json(folder.path(), "info other_2.msh")["divided_elements"], 1);
}

/// A `.vtu` file of two triangles, the second of which is a ghost.
fn vtu(points: &str, triangles: &str) -> String {
    let array = |kind: &str, name: &str, content: &str| {
        format!("<DataArray type='{kind}' Name='{name}' format='ascii'>{content}</DataArray>")
    };
    format!(
        "<VTKFile type='UnstructuredGrid'><UnstructuredGrid>\
         <Piece NumberOfPoints='4' NumberOfCells='2'><CellData>{}</CellData><Points>\
         <DataArray type='Float64' NumberOfComponents='3' format='ascii'>{points}</DataArray>\
         </Points><Cells>{}{}{}</Cells></Piece></UnstructuredGrid></VTKFile>",
        array("UInt8", "vtkGhostType", "0 1"),
        array("Int32", "connectivity", triangles),
        array("Int32", "offsets", "3 6"),
        array("UInt8", "types", "5 5")
    )
}

#[test]
fn all_files_of_a_pvtu_file_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path();
    fs::create_dir_all(case.join("run/parts")).unwrap();
    let pieces = "<Piece Source='parts/0.vtu'/><Piece Source='parts/1.vtu'/>";
    let file = format!(
        "<VTKFile type='PUnstructuredGrid'><PUnstructuredGrid GhostLevel='1'>{pieces}\
         </PUnstructuredGrid></VTKFile>"
    );
    fs::write(case.join("run/mesh.pvtu"), file).unwrap();
    fs::write(case.join("run/parts/0.vtu"), vtu("0 0 0 1 0 0 0 1 0 1 1 0", "0 1 2 1 3 2")).unwrap();
    refused(case, "info run/mesh.pvtu", "parts/1.vtu: cannot be read");
    fs::write(case.join("run/parts/1.vtu"), vtu("1 1 0 0 1 0 1 0 0 0 0 0", "0 1 2 3 2 1")).unwrap();
    let report = json(case, "info run/mesh.pvtu");
    assert_eq!((&report["nodes"], &report["divided_elements"]), (&4.into(), &2.into()));
    assert_eq!(report["elements_per_part"], serde_json::json!([1, 1]));
    let report = json(case, "compile run/mesh.pvtu --machine iwarp:2x2");
    assert_eq!(report["sets"][0]["words"], 4);
    refused(case, "compile run/parts/1.vtu", "give the .pvtu file");
    refused(case, "compile run/mesh.pvtu --parts 4", "--repartition");
}

/// The files of a folder `polyMesh`.
fn write_foam(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    for (file, content) in files {
        let text = format!("FoamFile\n{{\n format ascii;\n class list;\n}}\n{content}\n");
        fs::write(folder.join(file), text).unwrap();
    }
}

const CUBE: &str = "4(0 3 2 1) 4(0 1 5 4) 4(1 2 6 5) 4(2 3 7 6) 4(3 0 4 7)";

#[test]
fn openfoam_cases_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path();
    let points = "(0 0 0)(1 0 0)(1 1 0)(0 1 0)(0 0 1)(1 0 1)(1 1 1)(0 1 1)";
    let roof = "3(4 5 8) 3(5 6 8) 3(6 7 8) 3(7 4 8)";
    refused(case, "info .", "a folder without an OpenFOAM mesh");
    write_foam(
        &case.join("constant/polyMesh"),
        &[
            ("points", &format!("9({points}(.5 .5 2))")),
            ("faces", &format!("10(4(4 5 6 7) {CUBE} {roof})")),
            ("owner", "10(0 0 0 0 0 0 1 1 1 1)"),
            ("neighbour", "1(1)"),
        ],
    );
    fs::write(case.join("case.foam"), "").unwrap();
    for input in [".", "constant", "constant/polyMesh", "case.foam"] {
        let report = json(case, &format!("info {input}"));
        assert_eq!((&report["nodes"], &report["divided_elements"]), (&9.into(), &2.into()));
    }
    refused(case, "info . --format gmsh", "the input is a folder");
    let whole = json(case, "compile . --machine iwarp:2x2 --parts 2");
    let part = |number: u32| case.join(format!("processor{number}/constant/polyMesh"));
    let border = "1(procBoundary { type processor; nFaces 1; startFace 0; })";
    write_foam(
        &part(0),
        &[
            ("points", &format!("8({points})")),
            ("faces", &format!("6({CUBE} 4(4 5 6 7))")),
            ("owner", "6(0 0 0 0 0 0)"),
            ("neighbour", "0()"),
            ("boundary", border),
            ("pointProcAddressing", "8(0 1 2 3 4 5 6 7)"),
            ("cellProcAddressing", "1(0)"),
        ],
    );
    write_foam(
        &part(1),
        &[
            ("points", "5((0 0 1)(1 0 1)(1 1 1)(0 1 1)(.5 .5 2))"),
            ("faces", "5(3(0 1 4) 3(1 2 4) 3(2 3 4) 3(3 0 4) 4(0 1 2 3))"),
            ("owner", "5(0 0 0 0 0)"),
            ("neighbour", "0()"),
            ("boundary", border),
            ("pointProcAddressing", "5(4 5 6 7 8)"),
        ],
    );
    refused(case, "info .", "reconstructParMesh");
    write_foam(&part(1), &[("cellProcAddressing", "1(1)")]);
    let report = json(case, "info .");
    assert_eq!((&report["nodes"], &report["divided_elements"]), (&9.into(), &2.into()));
    assert_eq!(report["parts"], 2);
    let parts = json(case, "compile case.foam --machine iwarp:2x2");
    assert_eq!(parts["sets"][0]["words"], 8);
    assert_eq!(parts["sets"][0]["words"], whole["sets"][0]["words"]);
    refused(case, "compile . --parts 4", "decomposed into 2 parts already");
    done(case, "compile . --parts 1 --repartition --machine iwarp:2x2");
    refused(case, "info processor1", "one part of a decomposed case");
    write_foam(&part(1), &[("pointProcAddressing", "5(4 5 6 8 7)")]);
    refused(case, "info .", "elsewhere in another piece");
    write_foam(&part(1), &[("pointProcAddressing", "5(4 5 6 4 8)")]);
    refused(case, "info .", "the number 4 is given twice");
    fs::rename(case.join("processor1"), case.join("processor2")).unwrap();
    refused(case, "info .", "processor1 is missing");
}
