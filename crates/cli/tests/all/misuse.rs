//! Wrong calls of every subcommand: each ends with the documented exit code and one error that says
//! where it is, prints nothing on standard output, and leaves every file as it was.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit code, words of the command, and what the error contains.
const CALLS: &[(i32, &str, &str)] = &[
    // The command line.
    (2, "fly", "unrecognized subcommand 'fly'"),
    (2, "--fly", "unexpected argument '--fly' found"),
    (2, "compile", "<INPUT>"),
    (2, "run", "<INPUT>"),
    (2, "bound", "<INPUT>"),
    (2, "info", "<FILE>"),
    (2, "show", "<FILE> [WHAT]..."),
    (2, "show phases", "show: phases: which schedule? `phases` is a view"),
    (2, "why s.json", "<CONNECTION>"),
    (2, "diff s.json", "<B>"),
    (2, "emit s.json", "--format <FORMAT>"),
    (2, "emit s.json --format listing", "--output <DIR>"),
    (2, "verify", "<FILE>"),
    (2, "compile two.msh extra", "unexpected argument 'extra' found"),
    (
        2,
        "show s.json phases extra more",
        "show: phases extra more: unknown view `phases extra more`",
    ),
    (2, "machines ring:4 extra", "unexpected argument 'extra' found"),
    (2, "reproduce 0", "invalid value '0' for '[TABLE]': expected a"),
    (2, "reproduce 7", "invalid value '7' for '[TABLE]': expected a"),
    (2, "reproduce x", "invalid value 'x' for '[TABLE]': expected a"),
    (2, "reproduce -1", "invalid value '-1' for '[TABLE]': expected a"),
    (2, "machines --memory 0", "'0' for '--memory"),
    (2, "machines --memory -1", "unexpected argument '-1' found"),
    (2, "machines --memory lots", "'lots' for '--memory"),
    (2, "machines --memory nan", "'nan' for '--memory"),
    (2, "run one.cset --memory 1e400", "'1e400' for '--memory"),
    // Numbers.
    (2, "compile pattern:torus --words 0", "'0' for '--words"),
    (2, "compile pattern:torus --words -1", "'-1' for '--words"),
    (2, "compile pattern:torus --words 1.5", "'1.5' for '--words"),
    (2, "compile pattern:torus --words nan", "'nan' for '--words"),
    (2, "compile pattern:torus --words 1073741825", "'1073741825' for '--words"),
    (
        2,
        "compile pattern:torus --words 99999999999999999999",
        "'99999999999999999999' for '--words",
    ),
    (2, "compile two.msh --parts 0", "'0' for '--parts"),
    (2, "compile two.msh --parts -3", "'-3' for '--parts"),
    (2, "compile two.msh --parts 1048577", "'1048577' for '--parts"),
    (2, "compile two.msh --parts x", "'x' for '--parts"),
    (2, "compile two.msh --parts", "a value is required for '--parts <N>' but none"),
    (2, "compile one.cset --seed -1", "'-1' for '--seed"),
    (2, "compile one.cset --seed 18446744073709551616", "'18446744073709551616' for '--seed"),
    (2, "compile one.cset --seed 1e3", "'1e3' for '--seed"),
    (2, "compile one.cset --time-limit -1", "--time-limit: -1.0: expected seconds"),
    (2, "compile one.cset --time-limit nan", "--time-limit: NaN: expected seconds, at most a"),
    (2, "compile one.cset --time-limit inf", "--time-limit: inf: expected seconds, at most a"),
    (2, "compile one.cset --time-limit 1e300", "--time-limit: 1e300"),
    (2, "compile one.cset --time-limit soon", "'soon' for '--time-limit"),
    (2, "compile one.cset --max-plans 0", "'0' for '--max-plans"),
    (2, "compile one.cset --max-plans -1", "'-1' for '--max-plans"),
    (2, "compile one.cset --max-plans 4294967296", "'4294967296' for '--max-plans"),
    (2, "compile one.cset --max-phases -1", "'-1' for '--max-phases"),
    (2, "compile one.cset --max-phases x", "'x' for '--max-phases"),
    (2, "compile one.cset --rip-up-iterations -1", "'-1' for '--rip-up-iterations"),
    (2, "generate plate --seed -1", "'-1' for '--seed"),
    (2, "generate plate:0x0", "<mesh>: plate:0x0: size: `0` is not a number"),
    (2, "generate plate:2", "<mesh>: plate:2: size: expected 2 numbers"),
    (2, "generate plate:99999999x99999999", "<mesh>: plate:99999999x99999999: size:"),
    (2, "generate plate:-1x3", "<mesh>: plate:-1x3: size: `-1` is not a number"),
    (2, "generate nothing", "<mesh>: nothing: unknown mesh `nothing`"),
    (2, "patterns nothing", "<pattern>: nothing: unknown pattern `nothing`"),
    (2, "patterns torus --words 0", "'0' for '--words"),
    (2, "show connection 99 s.json", "show connection: x99: the connections are x0 to"),
    (2, "show connection y s.json", "show connection: y: no connection has this name"),
    (2, "show s.json connection c0->c0", "show connection: c0->c0: no connection is from c0 to c0"),
    (2, "show s.json link", "show: link: which link?"),
    (2, "show s.json link 99", "show link: 99: the machine has links l0 to l35"),
    (2, "show s.json link c0->c4", "show link: c0->c4: no link joins c0 to c4"),
    (2, "show s.json links --sort size", "--sort: size: this table has no such column"),
    (2, "show s.json links --cells", "--cells: --cells is for profiles"),
    (2, "show s.json links --cell 99", "show cell: c99: the machine has cells c0 to c8"),
    (2, "run s.json --what-if", "--what-if: --what-if is for profiles"),
    (2, "show cell 99 s.json", "show cell: c99: the machine has cells c0 to c8"),
    (2, "show cell -1 s.json", "show: cell -1: `-1` is not an id like c5"),
    (2, "show phases s.json --phase 99", "--phase: p99: the phases are p0 to p0"),
    (2, "show phases s.json --phase -1", "--phase: -1: not a phase; expected for example"),
    (2, "show phases s.json --set none", "--set: none: no set of that name"),
    (2, "why s.json 99", "why: 99: no connection has this id or name"),
    (2, "why s.json -1", "why: -1: no connection has this id or name"),
    (2, "why s.json name", "why: name: no connection has this id or name"),
    (2, "why s.json 0 --set none", "why: 0: no set is named `none`"),
    // Conflicting options.
    (
        2,
        "compile one.cset --time-limit 1 --max-plans 3",
        "the argument '--time-limit <SECONDS>' cannot be",
    ),
    (
        2,
        "compile one.cset --algorithm paper --max-plans 3",
        "--max-plans: --algorithm paper does not search",
    ),
    (
        2,
        "compile one.cset --algorithm paper --time-limit 1",
        "--time-limit: --algorithm paper does not search",
    ),
    (
        2,
        "compile one.cset --algorithm paper --objective time",
        "--objective: --algorithm paper does not search",
    ),
    (
        2,
        "compile one.cset --algorithm paper --explain-search",
        "--explain-search: --algorithm paper does not",
    ),
    (2, "compile one.cset --algorithm fast", "'fast' for '--algorithm"),
    (2, "compile one.cset --objective words", "'words' for '--objective"),
    (
        2,
        "compile one.cset --placement best --placement curve",
        "the argument '--placement <PLACEMENT>' cannot",
    ),
    (2, "compile one.cset --placement random", "'random' for '--placement"),
    (
        2,
        "compile two.msh --partition good.part --repartition",
        "the argument '--partition <FILE>' cannot be",
    ),
    (2, "compile two.msh --partition good.part --parts 1", "part 1; expected 0 to 0"),
    (2, "compile two.msh --words 3", "--words: --words is for patterns, and two.msh"),
    (2, "compile two.msh --elements triangles", "two.msh: --elements triangles recovers"),
    (2, "compile two.msh --elements squares", "'squares' for '--elements"),
    (2, "compile one.cset --parts 2", "--parts: `one.cset` names cells already and is"),
    (
        2,
        "compile one.cset --partition good.part",
        "--partition: `one.cset` names cells already and",
    ),
    (2, "compile one.cset --repartition", "--repartition: `one.cset` names cells already"),
    (2, "compile one.cset --ignore-periodic", "--ignore-periodic: `one.cset` names cells"),
    (2, "compile pattern:torus --parts 4", "--parts: a pattern uses all cells of the"),
    (
        2,
        "compile pattern:torus --partition good.part",
        "--partition: a pattern uses all cells of the",
    ),
    (2, "compile pattern:torus --repartition", "--repartition: a pattern uses all cells of the"),
    (2, "compile pattern:torus --format gmsh", "--input-format: a pattern uses all cells of the"),
    (
        2,
        "compile pattern:torus --ignore-periodic",
        "--ignore-periodic: a pattern uses all cells of",
    ),
    (2, "compile one.cset --fuse s,t", "--fuse: there is no set `t`"),
    (2, "compile one.cset --fuse s --reuse s.json", "the argument '--fuse <SETS>' cannot be used"),
    (2, "compile s.json --seed 2", "--seed: the input is already compiled; --seed"),
    (2, "compile s.json --machine ring:4", "--machine: the input is a schedule, which is"),
    (2, "compile s.json --placement best", "--placement: a compiled input is already"),
    (2, "compile s.json --max-plans 2", "--max-plans: the input is a schedule, which is"),
    (2, "compile s.json --algorithm paper", "--algorithm: the input is a schedule, which is"),
    (2, "run s.json --param streams=2", "--param: the input is a schedule, which is"),
    (2, "run s.json --dead c1", "--dead: the input is a schedule, which is"),
    (2, "run s.json --message-order random", "--compare <COMPARE>"),
    (2, "run s.json --compare nothing", "'nothing' for '--compare"),
    (2, "emit s.json --format rust --name x -o e", "--name: only applies to --format c"),
    (2, "emit s.json --format c --runtime dir -o e", "--runtime: only applies to --format rust"),
    (2, "emit s.json --format c --name 1x -o e", "--name: `1x` cannot begin C names; expected a"),
    (2, "emit s.json --format python -o e", "'python' for '--format"),
    (
        2,
        "emit s.json --format rust --runtime dir --runtime-git x@y -o e",
        "the argument '--runtime <DIR>' cannot be used",
    ),
    (
        2,
        "emit s.json --format rust --runtime missing -o e",
        "missing: cannot be read: No such file or",
    ),
    (2, "diff - -", "<stdin>: standard input can be read once only"),
    (2, "verify - --against -", "can be read once only"),
    (2, "info two.msh --format gmsch", "--input-format: gmsch: not a format that conset reads"),
    (2, "info s.json --format gmsh", "s.json:1:1: not a Gmsh file: it does not start"),
    (2, "info two.msh --format exodus", "two.msh: byte 0: not a NetCDF file: it does not"),
    // Machines.
    (2, "compile pattern:torus --machine cray", "--machine: cray: `cray` is not a machine"),
    (
        2,
        "compile pattern:torus --machine torus:0x4",
        "--machine: torus:0x4: topology: a machine needs",
    ),
    (2, "compile pattern:torus --machine torus:4x", "--machine: torus:4x: `` is not a size"),
    (2, "compile pattern:torus --machine torus:-4x4", "--machine: torus:-4x4: `-4` is not a size"),
    (
        2,
        "compile pattern:torus --machine torus:4294967296x4",
        "--machine: torus:4294967296x4: `4294967296` is",
    ),
    (
        2,
        "compile pattern:torus --machine hypercube:64",
        "--machine: hypercube:64: topology: more than",
    ),
    (
        2,
        "compile pattern:torus --machine ring:1000000000",
        "--machine: ring:1000000000: topology: more than",
    ),
    (
        2,
        "compile pattern:torus --machine missing.toml",
        "missing.toml: cannot be read: No such file or",
    ),
    (
        2,
        "compile pattern:torus --machine bad.toml",
        "string values must be quoted, expected literal",
    ),
    (2, "compile pattern:torus --machine unknown.toml", "`cray` is not a machine"),
    (
        2,
        "compile pattern:torus --machine empty.toml",
        "expected `name`, or a `preset` to start from",
    ),
    (2, "compile pattern:torus --machine dir", "--machine: dir: `dir` is not a machine"),
    (2, "compile pattern:torus --param streams", "--param: streams: expected KEY=VALUE"),
    (2, "compile pattern:torus --param streams=0", "--param: streams: `0` is not a whole number"),
    (2, "compile pattern:torus --param streams=-1", "--param: streams: `-1` is not a whole number"),
    (2, "compile pattern:torus --param streams=x", "--param: streams: `x` is not a whole number"),
    (
        2,
        "compile pattern:torus --param streams=1 --param streams=2",
        "--param: streams: set twice; expected once",
    ),
    (2, "compile pattern:torus --param nothing=1", "--param: nothing: `nothing` is not a machine"),
    (
        2,
        "compile pattern:torus --param word_bytes=nan",
        "--param: word_bytes: `nan` is not a whole",
    ),
    (2, "compile pattern:torus --dead c99", "--dead: dead_cells: c99 is not one of the"),
    (2, "compile pattern:torus --dead x", "--dead: x: expected a cell or a link"),
    (2, "compile pattern:torus --dead c0-c9", "--dead: dead_links: no link joins c0 to c9"),
    (2, "compile pattern:torus --dead c0->", "--dead: c0->: expected a cell or a link"),
    (2, "compile pattern:nothing", "<pattern>: nothing: unknown pattern `nothing`"),
    (2, "compile pattern:", "unknown pattern ``"),
    (2, "compile pattern:shift:1,2,3", "<pattern>: shift:1,2,3: expected 2 offsets, one"),
    (
        2,
        "compile pattern:hypercube --machine torus:3x5",
        "<pattern>: hypercube: expected a power of two",
    ),
    (2, "machines cray", "--machine: cray: `cray` is not a machine"),
    (2, "machines missing.toml", "missing.toml: cannot be read: No such file or"),
    (2, "machines ring:4 --param x=1", "--param: x: `x` is not a machine parameter"),
    // Files.
    (2, "compile missing.msh", "missing.msh: cannot be read: No such file or"),
    (2, "compile dir", "dir: this is a folder without an OpenFOAM mesh"),
    (2, "compile dangling.msh", "dangling.msh: cannot be read: No such file or"),
    (2, "compile ring.msh", "ring.msh: cannot be read: Too many levels of"),
    (2, "compile /dev/null", "/dev/null: the file is empty"),
    (2, "compile two.msh/inner", "two.msh/inner: cannot be read: Not a directory"),
    (2, "compile empty.msh", "empty.msh: the file is empty"),
    (2, "compile blank.msh", "blank.msh: the file is empty"),
    (2, "compile text.txt", "text.txt: the format cannot be inferred from"),
    (2, "compile noise.msh", "not a Gmsh file: it does not start with"),
    (2, "compile cut.msh", "the file ends where a tag of an element was"),
    (2, "compile cut.msh.gz", "cut.msh.gz: gzip: incomplete deflate stream,"),
    (2, "compile nan.msh", "`nan` is not finite; expected a node's x"),
    (2, "compile huge.msh", "`4000000000000` is too large for the number of"),
    (2, "compile many.msh", "`$EndNodes` is not a whole number; expected the"),
    (2, "compile node.msh", "node 9 is not in $Nodes"),
    (2, "compile twice.msh", "node 3 is given twice"),
    (2, "compile type.msh", "unknown element type 999"),
    (2, "compile version.msh", "version `9.9`; expected 1, 2 to 2.2, 4.0 or 4.1"),
    (2, "compile fluent.msh", "fluent.msh: a Fluent mesh; conset does not read"),
    (2, "compile zero.cset", "expected a number of words from 1 to"),
    (2, "compile future.cset", "version 99 of conset set is newer than 8"),
    (2, "compile arrow.cset", "expected `->`, found `c1`"),
    (2, "compile far.cset", "c9 cannot be an end of a connection: the"),
    (2, "compile m.toml", "m.toml: this is a machine; expected a mesh,"),
    (2, "compile odd.graph", "vertex 1 lists 2 as a neighbour, but 2 does not"),
    (2, "compile self.graph", "vertex 1 is a neighbour of itself"),
    (2, "compile few.graph", "the file ends after 1 of 3 vertices"),
    (2, "compile head.graph", "`x` is not a whole number; expected the number"),
    (2, "compile big.graph", "`99999999999` is too large for the number of"),
    (2, "compile bad.mtx", "`array`; expected `coordinate`"),
    (2, "compile range.mtx", "`3` is too large for a row; expected at most 2"),
    (2, "compile bad.su2", "`4` is too large for the dimension; expected at"),
    (2, "compile bad.vtu", "type `PolyData`; expected UnstructuredGrid"),
    (2, "compile cut.vtu", "the file ends before the end of its XML"),
    (2, "compile bad.vtk", "a dataset of type POLYDATA; expected"),
    (2, "compile bad.exo", "bad.exo: byte 4: the file ends where the number"),
    (2, "compile hdf.exo", "hdf.exo: an HDF5 file (NetCDF-4 and MED are"),
    (2, "compile bad.inp", "element type `X99` is not known"),
    (2, "compile bad.mesh", "`MFEM mesh v7` is not a known first line;"),
    (2, "compile metis.mesh", "the file ends after 1 of 2 elements"),
    (2, "compile bad.ele", "the file ends where the number of an element"),
    (2, "compile bad.pack", "`3` is too large for the number of elements;"),
    (2, "compile bad.ucd", "`blob` is not a cell type; expected pt, line,"),
    (2, "compile file.node", "file.node: a .node file has nodes and no"),
    (2, "info missing.msh", "missing.msh: cannot be read: No such file or"),
    (2, "info dir", "dir: this is a folder without an OpenFOAM mesh"),
    (2, "info empty.msh", "empty.msh: the file is empty"),
    (2, "info noise.msh", "not a Gmsh file: it does not start with"),
    (2, "bound cut.msh", "the file ends where a tag of an element was"),
    (2, "run bad.json", "EOF while parsing a value"),
    (2, "run other.json", "other.json: no key `format`"),
    (2, "run bad.csb", "bad.csb: not a conset file"),
    (2, "run cut.csb", "cut.csb: byte 12: expected 95 bytes of payload,"),
    (2, "run cut.json", "EOF while parsing a string"),
    (2, "run cut.csi", "cut.csi: byte 12: expected 894 bytes of"),
    (1, "run wrong.json", "a makespan of 7 is claimed"),
    (1, "verify wrong.json", "wrong.json is rejected"),
    (2, "verify cut.csb", "cut.csb: byte 12: expected 95 bytes of payload,"),
    (2, "verify two.msh", "two.msh: this is not compiled; expected a"),
    (2, "verify one.cset", "one.cset: this is not compiled; expected a"),
    (2, "verify missing.json", "missing.json: cannot be read: No such file or"),
    (2, "verify s.json --against missing.msh", "missing.msh: cannot be read: No such file or"),
    (1, "verify s.json --against one.cset", "s.json was not compiled from one.cset: the"),
    (2, "show phases two.msh", "two.msh: this is not compiled; expected a"),
    (2, "show summary cut.json", "EOF while parsing a string"),
    (2, "show nothing s.json", "show: nothing: unknown view `nothing`"),
    (2, "why two.msh 0", "two.msh: this is not compiled; expected a"),
    (2, "diff s.json two.msh", "two.msh: this is not compiled; expected a"),
    (2, "diff s.json missing.json", "missing.json: cannot be read: No such file or"),
    (2, "emit one.cset --format listing -o e", "one.cset: this is not compiled; expected a"),
    (2, "emit cut.csi --format listing -o e", "cut.csi: byte 12: expected 894 bytes of"),
    (
        2,
        "compile two.msh --partition missing.part",
        "missing.part: cannot be read: No such file or",
    ),
    (2, "compile two.msh --partition dir", "dir: this is a folder, expected a file"),
    (2, "compile two.msh --partition short.part", "1 lines for 2 items"),
    (2, "compile two.msh --partition long.part", "more lines than the 2 items of the input"),
    (2, "compile two.msh --partition text.part", "`x` is not a whole number; expected the number"),
    (
        2,
        "compile two.msh --partition minus.part",
        "`-1` is not a whole number; expected the number",
    ),
    (2, "compile two.msh --partition large.part --parts 2", "part 9; expected 0 to 1"),
    (2, "compile two.msh --partition empty.part", "0 lines for 2 items"),
    (
        2,
        "compile pattern:torus --reuse missing.json",
        "missing.json: cannot be read: No such file or",
    ),
    (2, "compile pattern:torus --reuse two.msh", "two.msh: this is not compiled; expected a"),
    (2, "compile pattern:torus --reuse cut.json", "EOF while parsing a string"),
    (
        1,
        "compile pattern:torus --machine torus:3x3 --reuse wrong.json",
        "wrong.json: rejected by the checker: 1 violation",
    ),
    (2, "compile pattern:torus --reuse s.json", "--reuse: the earlier schedule is for another"),
    // Outputs.
    (2, "compile two.msh -o two.msh", "two.msh: the extension does not select an"),
    (2, "compile one.cset -o one.cset", "one.cset: this is the input; it would be"),
    (2, "compile one.cset -o ./one.cset", "./one.cset: this is the input; it would be"),
    (
        2,
        "compile two.msh --partition good.part -o good.part",
        "good.part: the extension does not select an",
    ),
    (
        2,
        "compile pattern:torus --machine m.toml -o m.toml",
        "m.toml: the extension does not select an output",
    ),
    (
        2,
        "compile pattern:torus --reuse s.json -o out.xyz",
        "out.xyz: the extension does not select an",
    ),
    (2, "compile one.cset -o out", "out: the extension does not select an output"),
    (2, "compile one.cset -o dir", "dir: the extension does not select an output"),
    (2, "compile one.cset -o dir/", "dir/: the extension does not select an output"),
    (2, "compile one.cset -o missing/out.json", "missing/out.json: cannot be written: the folder"),
    (2, "compile one.cset -o two.msh/out.json", "two.msh/out.json: cannot be written: Not a"),
    (2, "compile one.cset -o /dev/full", "/dev/full: the extension does not select an"),
    (2, "compile one.cset -o /proc/out.json", "/proc/out.json: cannot be written"),
    (2, "compile one.cset -o", "a value is required for '--output <OUT>' but"),
    (2, "run one.cset --trace missing/t.json", "missing/t.json: cannot be written: the folder"),
    (2, "run one.cset --trace one.cset", "one.cset: this is the input; it would be"),
    (2, "run one.cset --trace dir", "dir: this is a folder, expected a file to write"),
    (2, "patterns torus -o torus.csi", "torus.csi: a pattern is a connection set, and"),
    (2, "patterns torus -o missing/torus.cset", "missing/torus.cset: cannot be written: the"),
    (2, "patterns -o x.cset", "which pattern should be written"),
    (2, "machines ring:4 -o machine.txt", "machine.txt: the name of a machine file ends in"),
    (2, "machines -o x.toml", "x.toml: which machine should be written? name"),
    (2, "machines m.toml -o m.toml", "this is the input"),
    (2, "generate plate -o plate.vtu", "whose name ends in .msh"),
    (2, "generate plate -o dir", "dir: this is a folder, expected a file to write"),
    (2, "generate plate -o missing/plate.msh", "missing/plate.msh: cannot be written: the"),
    (2, "generate -o plate.msh", "which mesh should be written"),
    (2, "emit s.json --format listing -o old.json", "old.json: this is a file, expected a folder"),
    (2, "emit s.json --format c -o s.json", "s.json: this is a file, expected a folder"),
    (2, "emit s.json --format rust -o two.msh/inner", "two.msh/inner: cannot be written: Not a"),
    (2, "reproduce 2 --figures old.json", "old.json: this is a file, expected a folder"),
    (2, "reproduce 2 --meshes missing", "missing: cannot be read"),
    // Infeasible.
    (
        1,
        "compile pattern:hypercube --max-phases 1 -o old.json",
        "set `hypercube` does not fit: it needs at least",
    ),
    (1, "compile pattern:torus --max-phases 0 -o old.json", "no phase is allowed"),
    (
        1,
        "compile two.msh --parts 2 --machine ring:4 --dead c1 --dead c2 --dead c3",
        "set `halo` does not fit: 2 parts do not fit on",
    ),
    (
        1,
        "compile two.msh --partition good.part --machine ring:1",
        "set `halo` does not fit: 2 parts do not fit on",
    ),
];

/// Two triangles.
const TWO: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n\
    4 1 1 0\n$EndNodes\n$Elements\n2\n1 2 2 0 1 1 2 3\n2 2 2 0 1 2 4 3\n$EndElements\n";

/// Files that are complete and correct, and those that are wrong in one way each.
const FILES: &[(&str, &[u8])] = &[
    ("one.cset", b"conset set 1\nmachine ring:4\nset s\n  c0 -> c1 words 3\n"),
    ("m.toml", b"preset = \"ring:4\"\n"),
    ("good.part", b"0\n1\n"),
    ("old.json", b"precious"),
    ("full/keep", b"precious"),
    ("empty.msh", b""),
    ("blank.msh", b"\n \n"),
    ("noise.msh", b"\x00\x01\x02\x03\xfe\xff"),
    ("text.txt", b"hello\n"),
    ("fluent.msh", b"(0 \"grid\")\n(2 3)\n"),
    ("zero.cset", b"conset set 1\nset s\n  c0 -> c1 words 0\n"),
    ("future.cset", b"conset set 99\nset s\n"),
    ("arrow.cset", b"conset set 1\nset s\n  c0 c1 words 3\n"),
    ("far.cset", b"conset set 1\nmachine ring:4\nset s\n  c0 -> c9 words 3\n"),
    ("bad.json", b"{\"format\": \"conset-schedule\", "),
    ("other.json", b"{\"a\": 1}"),
    ("bad.csb", b"\x00\x01"),
    ("bad.toml", b"preset = \n"),
    ("unknown.toml", b"preset = \"cray\"\n"),
    ("empty.toml", b""),
    ("short.part", b"0\n"),
    ("long.part", b"0\n1\n0\n"),
    ("text.part", b"0\nx\n"),
    ("minus.part", b"0\n-1\n"),
    ("large.part", b"0\n9\n"),
    ("empty.part", b""),
    ("odd.graph", b"2 1\n2\n\n"),
    ("self.graph", b"2 1\n1\n2\n"),
    ("few.graph", b"3 2\n2\n"),
    ("head.graph", b"x y\n"),
    ("big.graph", b"99999999999 1\n"),
    ("bad.mtx", b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"),
    ("range.mtx", b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n"),
    ("bad.su2", b"NDIME= 4\n"),
    ("bad.vtu", b"<VTKFile type=\"PolyData\"/>"),
    ("cut.vtu", b"<?xml version=\"1.0\"?><VTKFile type=\"UnstructuredGrid\"><Piece"),
    ("bad.vtk", b"# vtk DataFile Version 3.0\nx\nASCII\nDATASET POLYDATA\n"),
    ("bad.exo", b"CDF\x01\x00\x00"),
    ("hdf.exo", b"\x89HDF\r\n\x1a\n\0\0"),
    ("bad.inp", b"*ELEMENT, TYPE=X99\n1,2,3\n"),
    ("bad.mesh", b"MFEM mesh v7\n"),
    ("metis.mesh", b"2 1\n1 2 3\n"),
    ("bad.ele", b"2 3 0\n1 1 2 3\n"),
    ("bad.pack", b"1 2 3\n"),
    ("bad.ucd", b"1 2 0 0 0\n1 0 0 0\n1 1 blob 1\n"),
    ("file.node", b"3 2 0 0\n1 0 0\n"),
    ("cut.msh.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x53\xf1"),
];

/// Variants of [`TWO`].
const CHANGED: &[(&str, &str, &str)] = &[
    ("two.msh", "", ""),
    ("nan.msh", "2 1 0 0", "2 nan 0 0"),
    ("huge.msh", "$Nodes\n4", "$Nodes\n4000000000000"),
    ("many.msh", "$Nodes\n4", "$Nodes\n5"),
    ("node.msh", "2 4 3", "2 9 3"),
    ("twice.msh", "4 1 1 0", "3 1 1 0"),
    ("type.msh", "2 2 2 0", "2 999 2 0"),
    ("version.msh", "2.2", "9.9"),
];

fn conset(folder: &Path, words: &[&OsStr]) -> (Option<i32>, Vec<u8>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_conset"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), output.stdout, errors)
}

fn words(line: &str) -> Vec<&OsStr> {
    line.split_whitespace().map(OsStr::new).collect()
}

/// A folder with all files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["dir", "full"] {
        fs::create_dir(at(name)).unwrap();
    }
    for (name, bytes) in FILES {
        fs::write(at(name), bytes).unwrap();
    }
    for (name, from, to) in CHANGED {
        fs::write(at(name), TWO.replacen(from, to, 1)).unwrap();
    }
    fs::write(at("cut.msh"), &TWO[..120]).unwrap();
    symlink("nowhere", at("dangling.msh")).unwrap();
    symlink("ring.msh", at("ring.msh")).unwrap();
    for line in [
        "compile pattern:torus --machine torus:3x3 -o s.json",
        "compile s.json -o i.csi",
        "compile one.cset -o r.csb",
    ] {
        let (code, _, errors) = conset(folder.path(), &words(line));
        assert_eq!(code, Some(0), "{line}: {errors}");
    }
    for (from, to, length) in
        [("r.csb", "cut.csb", 100), ("s.json", "cut.json", 300), ("i.csi", "cut.csi", 100)]
    {
        fs::write(at(to), &fs::read(at(from)).unwrap()[..length]).unwrap();
    }
    let schedule = fs::read_to_string(at("s.json")).unwrap();
    let key = "\"makespan\":";
    let start = schedule.find(key).unwrap() + key.len();
    let rest = schedule[start..].trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    fs::write(at("wrong.json"), format!("{} 7{rest}", &schedule[..start])).unwrap();
    folder
}

/// All files below a folder, with their contents; of links, where they lead.
fn contents(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap();
        let content = match () {
            () if kind.is_symlink() => {
                fs::read_link(&path).unwrap().into_os_string().as_bytes().to_vec()
            }
            () if kind.is_dir() => {
                contents(&path, found);
                Vec::new()
            }
            () => fs::read(&path).unwrap(),
        };
        found.insert(path, content);
    }
}

/// Makes a wrong call; returns what is wrong with its outcome.
fn call(folder: &Path, code: i32, line: &[&OsStr], says: &str) -> Option<String> {
    let (ended, stdout, errors) = conset(folder, line);
    let errors_begin = errors.lines().filter(|line| line.starts_with("error")).count();
    let right = ended == Some(code)
        && stdout.is_empty()
        && errors_begin == 1
        && errors.starts_with("error: ")
        && errors.contains(says);
    let stdout = String::from_utf8_lossy(&stdout);
    (!right).then(|| {
        format!("conset {line:?}: {ended:?}, expected {code} and `{says}`\n{errors}{stdout}")
    })
}

#[test]
fn wrong_calls_are_refused_and_damage_nothing() {
    const { assert!(CALLS.len() >= 200) };
    let folder = folder();
    let state = || {
        let mut found = BTreeMap::new();
        contents(folder.path(), &mut found);
        found
    };
    let before = state();
    let mut wrong = Vec::new();
    for &(code, line, says) in CALLS {
        wrong.extend(call(folder.path(), code, &words(line), says));
        let now = state();
        if now != before {
            let changed = now.iter().filter(|(path, content)| before.get(*path) != Some(content));
            let changed: Vec<_> = changed.map(|(path, _)| path).collect();
            panic!("conset {line} changed {changed:?}");
        }
    }
    assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn files_with_names_that_are_not_utf8_are_named() {
    let folder = folder();
    let name = OsStr::from_bytes(b"\xff.json");
    let word = OsStr::new;
    for (line, says) in [
        (vec![word("compile"), name], "cannot be read"),
        (vec![word("verify"), name], "cannot be read"),
        (vec![word("info"), name], "cannot be read"),
        (vec![word("diff"), name, name], "cannot be read"),
        (vec![word("why"), name, word("0")], "cannot be read"),
        (vec![word("compile"), word("two.msh"), word("--partition"), name], "cannot be read"),
        (vec![word("compile"), word("one.cset"), word("--machine"), name], "is not a machine"),
    ] {
        assert_eq!(call(folder.path(), 2, &line, says), None);
    }
}
