//! One small, valid file of each format, used by several tests.

pub(crate) mod assembled;

use conset_mesh::Format;

/// A named file and its format.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    pub(crate) bytes: Vec<u8>,
}

/// Two triangles on four nodes, in every coding of every mesh format, and the like.
pub(crate) fn samples() -> Vec<Sample> {
    let sample = |name, format, bytes: Vec<u8>| Sample { name, format, bytes };
    let text = |name, format, text: &str| sample(name, format, text.as_bytes().to_vec());
    let mut all = vec![
        text("22a.msh", Format::Gmsh, GMSH_22),
        text("41a.msh", Format::Gmsh, GMSH_41),
        sample("22b.msh", Format::Gmsh, gmsh_22_binary(false)),
        sample("22b-big.msh", Format::Gmsh, gmsh_22_binary(true)),
        sample("41b.msh", Format::Gmsh, gmsh_41_binary(false, true)),
        sample("41b-big.msh", Format::Gmsh, gmsh_41_binary(true, true)),
        sample("41b-narrow.msh", Format::Gmsh, gmsh_41_binary(false, false)),
        text("a.graph", Format::MetisGraph, GRAPH),
        text("b.graph", Format::MetisGraph, WEIGHTED_GRAPH),
        text("c.graph", Format::GraphConnections, CONNECTIONS),
        text("a.mesh", Format::MetisMesh, "% two triangles\n2 2\n5 1 1 2 3\n4 1 2 4 3\n"),
        text("a.mtx", Format::MatrixMarket, MATRIX),
        text("a.pack", Format::Spark98, PACK),
        text("a.su2", Format::Su2, SU2),
        text("a.ele", Format::Tetgen, "2 3 1 # two\n1 1 2 3 0.5\n2 2 4 3 7\n# end\n"),
        sample("a.vtu", Format::Vtu, vtu("ascii", false, 4, false)),
        sample("b.vtu", Format::Vtu, vtu("binary", false, 4, false)),
        sample("z.vtu", Format::Vtu, vtu("binary", true, 8, true)),
        sample("raw.vtu", Format::Vtu, vtu("raw", false, 8, false)),
        sample("appended.vtu", Format::Vtu, vtu("base64", true, 4, false)),
    ];
    all.extend(assembled::samples());
    all.extend(assembled::gmsh());
    all
}

pub(crate) const GMSH_22: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Comments\nany $End\n$EndComments\n\
    $Nodes\n4\n30 0 0 0\n10 1 0 0\n20 0 1 0\n40 1 1 0.5\n$EndNodes\n\
    $Elements\n4\n1 15 2 0 1 30\n2 1 2 0 1 30 10\n3 2 5 9 1 2 1 -2 30 10 20\n\
    4 2 4 9 1 1 2 10 40 20\n$EndElements\n$Periodic\n0\n$EndPeriodic\n";

pub(crate) const GMSH_41: &str = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n\
    $PartitionedEntities\n2\n1\n7 1\n1 1 2 0\n\
    5 0 1 2 1 2 0 0 0 0\n\
    6 1 1 2 1 2 0 0 0 1 1 1 0 2 5 -5\n\
    3 2 1 1 1 0 0 0 1 1 1 1 4 1 6\n4 2 1 1 2 0 0 0 1 1 1 0 0\n$EndPartitionedEntities\n\
    $Nodes\n2 4 10 40\n2 3 0 2\n30\n10\n0 0 0\n1 0 0\n2 4 1 2\n20\n40\n0 1 0 0.1 0.2\n1 1 0.5 0 0\n\
    $EndNodes\n\
    $Elements\n3 3 1 3\n1 6 1 1\n1 10 20\n2 3 2 1\n2 30 10 20\n2 4 2 1\n3 10 40 20\n$EndElements\n";

const GRAPH: &str = "%path and an edge\n5 3\n2\n1 3\n2\n5\n4\n";
const WEIGHTED_GRAPH: &str = "3 2 111 2\n1 5 6 2 9\n2 0 7 1 9 3 4\n3 1 1 2 4\n";
const CONNECTIONS: &str = "3 4 1\n2 10 3 20\n2 7\n1 5\n";
const MATRIX: &str = "%%MatrixMarket matrix coordinate real symmetric\n% lower\n3 3 4\n\
    1 1 1.5\n2 1 -1e3\n3 3 0\n3 2 2\n";
/// Two triangles, one in each part; the shared edge is 2-3.
const PACK: &str = "4 2\n2 3\n2\n2\n3 3 1\n3 1 1\n1 0 0\n2 1 0\n3 0 1\n3 0 1\n2 1 0\n4 1 1\n1\n1\n\
    1 0 1 2\n2 1 2 0\n2 6\n1 6\n0 0\n1 0\n2 2\n2\n2\n0\n2\n1\n2\n2\n1\n0\n0\n0\n";
const SU2: &str = "% plate\nNDIME= 2\nNELEM= 2\n5 0 1 2 0\n5 1 3 2 1\nNPOIN= 4\n0 0 0\n1 0 1\n0 1\n\
    1 1 3\nNMARK= 1\nMARKER_TAG= rim\nMARKER_ELEMS= 1\n3 0 1\n";

/// Writes binary numbers in either order.
struct Writer {
    bytes: Vec<u8>,
    big: bool,
    wide: bool,
}

impl Writer {
    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn put<const N: usize>(&mut self, big: [u8; N], little: [u8; N]) {
        self.bytes.extend_from_slice(if self.big { &big } else { &little });
    }

    fn ints(&mut self, values: &[i32]) {
        for value in values {
            self.put(value.to_be_bytes(), value.to_le_bytes());
        }
    }

    fn sizes(&mut self, values: &[u64]) {
        for &value in values {
            if self.wide {
                self.put(value.to_be_bytes(), value.to_le_bytes());
            } else {
                self.put((value as u32).to_be_bytes(), (value as u32).to_le_bytes());
            }
        }
    }

    fn reals(&mut self, values: &[f64]) {
        for value in values {
            self.put(value.to_be_bytes(), value.to_le_bytes());
        }
    }
}

const POINTS: [(i32, [f64; 3]); 4] =
    [(30, [0.0, 0.0, 0.0]), (10, [1.0, 0.0, 0.0]), (20, [0.0, 1.0, 0.0]), (40, [1.0, 1.0, 0.5])];

fn gmsh_22_binary(big: bool) -> Vec<u8> {
    let mut w = Writer { bytes: Vec::new(), big, wide: true };
    w.text("$MeshFormat\n2.2 1 8\n");
    w.ints(&[1]);
    w.text("\n$EndMeshFormat\n$Nodes\n4\n");
    for (tag, point) in POINTS {
        w.ints(&[tag]);
        w.reals(&point);
    }
    w.text("\n$EndNodes\n$Elements\n3\n");
    w.ints(&[1, 1, 2, 1, 0, 1, 30, 10]);
    w.ints(&[2, 2, 4, 2, 9, 1, 1, 1, 30, 10, 20, 3, 9, 1, 1, 2, 10, 40, 20]);
    w.text("\n$EndElements\n");
    w.bytes
}

fn gmsh_41_binary(big: bool, wide: bool) -> Vec<u8> {
    let mut w = Writer { bytes: Vec::new(), big, wide };
    w.text(if wide { "$MeshFormat\n4.1 1 8\n" } else { "$MeshFormat\n4.1 1 4\n" });
    w.ints(&[1]);
    w.text("\n$EndMeshFormat\n$PartitionedEntities\n");
    w.sizes(&[2, 1]);
    w.ints(&[7, 1]);
    w.sizes(&[0, 0, 2, 0]);
    for (entity, part) in [(3, 1), (4, 2)] {
        w.ints(&[entity, 2, 1]);
        w.sizes(&[1]);
        w.ints(&[part]);
        w.reals(&[0.0; 6]);
        w.sizes(&[1]);
        w.ints(&[4]);
        w.sizes(&[0]);
    }
    w.text("\n$EndPartitionedEntities\n$Nodes\n");
    w.sizes(&[1, 4, 10, 40]);
    w.ints(&[2, 3, 0]);
    w.sizes(&[4]);
    for (tag, _) in POINTS {
        w.sizes(&[tag as u64]);
    }
    for (_, point) in POINTS {
        w.reals(&point);
    }
    w.text("\n$EndNodes\n$Elements\n");
    w.sizes(&[2, 2, 1, 2]);
    for (entity, element) in [(3, [1, 30, 10, 20]), (4, [2, 10, 40, 20])] {
        w.ints(&[2, entity, 2]);
        w.sizes(&[1]);
        w.sizes(&element);
    }
    w.text("\n$EndElements\n");
    w.bytes
}

/// A VTU file of a line and two triangles; `coding` is ascii, binary, raw or base64 (the last two
/// appended), `header` the bytes of a number in an array's header.
pub(crate) fn vtu(coding: &str, zlib: bool, header: usize, big: bool) -> Vec<u8> {
    let order = |bytes: &[u8]| -> Vec<u8> {
        if big { bytes.iter().rev().copied().collect() } else { bytes.to_vec() }
    };
    let number = |n: usize| order(&(n as u64).to_le_bytes()[..header]);
    let points: [f32; 12] = [0., 0., 0., 1., 0., 0., 0., 1., 0., 1., 1., 0.5];
    let nodes: [i64; 8] = [0, 1, 0, 1, 2, 1, 3, 2];
    let arrays: [(&str, &str, &str, Vec<u8>); 4] = [
        (
            "Points",
            "Float32",
            "0 0 0 1 0 0 0 1 0 1 1 0.5",
            points.iter().flat_map(|x| order(&x.to_le_bytes())).collect(),
        ),
        (
            "connectivity",
            "Int64",
            "0 1 0 1 2 1 3 2",
            nodes.iter().flat_map(|x| order(&x.to_le_bytes())).collect(),
        ),
        (
            "offsets",
            "Int32",
            "2 5 8",
            [2i32, 5, 8].iter().flat_map(|x| order(&x.to_le_bytes())).collect(),
        ),
        ("types", "UInt8", "3 5 5", vec![3, 5, 5]),
    ];
    // Header and data of an array, each of which base64 pads on its own where there is zlib.
    let stored = |plain: &[u8]| -> (Vec<u8>, Vec<u8>) {
        if !zlib {
            return ([number(plain.len()).as_slice(), plain].concat(), Vec::new());
        }
        let mut encoder = flate2::read::ZlibEncoder::new(plain, flate2::Compression::fast());
        let mut packed = Vec::new();
        std::io::Read::read_to_end(&mut encoder, &mut packed).unwrap();
        let head = [1, plain.len(), 0, packed.len()];
        (head.iter().flat_map(|&n| number(n)).collect(), packed)
    };
    let text =
        |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let mut appended = Vec::new();
    let mut out = Vec::new();
    let compressor = if zlib { " compressor=\"vtkZLibDataCompressor\"" } else { "" };
    let byte_order = if big { "BigEndian" } else { "LittleEndian" };
    out.extend(format!("<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" byte_order=\"{byte_order}\" header_type=\"UInt{}\"{compressor}>\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"4\" NumberOfCells=\"3\">\n<Points>\n", 8 * header).bytes());
    for (name, kind, ascii, plain) in &arrays {
        let (head, data) = stored(plain);
        let (format, content) = match coding {
            "ascii" => ("ascii".to_owned(), (*ascii).to_owned()),
            "binary" => ("binary".to_owned(), text(&head) + &text(&data)),
            _ => {
                let format = format!("appended\" offset=\"{}", appended.len());
                match coding {
                    "raw" => appended.extend([head, data].concat()),
                    _ => appended.extend((text(&head) + &text(&data)).bytes()),
                }
                (format, String::new())
            }
        };
        let components = if *name == "Points" { " NumberOfComponents=\"3\"" } else { "" };
        out.extend(format!("<DataArray type=\"{kind}\" Name=\"{name}\"{components} format=\"{format}\">{content}</DataArray>\n").bytes());
        if *name == "Points" {
            out.extend(b"</Points>\n<Cells>\n");
        }
    }
    out.extend(b"</Cells>\n</Piece>\n</UnstructuredGrid>\n");
    if !appended.is_empty() {
        out.extend(format!("<AppendedData encoding=\"{coding}\">\n _").bytes());
        out.extend(&appended);
        out.extend(b"\n</AppendedData>\n");
    }
    out.extend(b"</VTKFile>\n");
    out
}
