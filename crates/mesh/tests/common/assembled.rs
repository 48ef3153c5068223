//! Small, valid files of the formats that list elements of all dimensions: two triangles on four
//! nodes and a boundary line, or the like.

use conset_mesh::Format;

use super::Sample;

pub(crate) const MFEM: &str = "MFEM mesh v1.0\n\n# comment\ndimension\n2\n\nelements\n2\n1 2 0 1 2\n\
    7 2 1 3 2\n\nboundary\n1\n3 1 0 1\n\nvertices\n4\n2\n0 0\n1 0\n0 1\n1 1\n";

/// Coordinates by components (`Ordering: 0`), with three nodes that are not vertices.
pub(crate) const MFEM_CURVED: &str = "MFEM mesh v1.2\ndimension\n2\nelements\n1\n1 2 0 1 2\nboundary\n0\n\
    vertices\n3\nnodes\nFiniteElementSpace\nFiniteElementCollection: H1_2D_P2\nVDim: 2\n\
    Ordering: 0\n\n0 1 0 .5 .5 0\n0 0 1 0 .5 .5\nmfem_mesh_end\n";

pub(crate) const UCD: &str = "# plate\n4 3 1 0 0\n30 0 0 0\n10 1 0 0\n20 0 1 0\n40 1 1 0.5\n\
    1 1 tri 30 10 20\n2 5 tri 10 40 20\n3 5 line 30 10\n1 1\nheat, K\n30 1\n10 1\n20 1\n40 1\n";

pub(crate) const VTK_3: &str = "# vtk DataFile Version 3.0\nany title\nASCII\nDATASET UNSTRUCTURED_GRID\n\
    POINTS 4 float\n0 0 0 1 0 0\n0 1 0 1 1 .5\nCELLS 3 11\n3 0 1 2\n3 1 3 2\n2 0 1\n\
    CELL_TYPES 3\n5 5 3\nCELL_DATA 3\nSCALARS a int\nLOOKUP_TABLE default\n1 2 3\n";

pub(crate) const VTK_5: &str = "# vtk DataFile Version 5.1\nany title\nASCII\nDATASET UNSTRUCTURED_GRID\n\
    FIELD FieldData 1\nTIME 1 1 double\n0.5\nPOINTS 4 double\n0 0 0 1 0 0 0 1 0 1 1 .5\n\
    METADATA\nINFORMATION 0\n\nCELLS 4 8\nOFFSETS vtktypeint64\n0 3 6 8\n\
    CONNECTIVITY vtktypeint64\n0 1 2 1 3 2 0 1\nCELL_TYPES 3\n5 5 3\n";

/// A polyhedron with the faces of a tetrahedron.
pub(crate) const VTK_FACES: &str = "# vtk DataFile Version 2.0\n\nASCII\nDATASET UNSTRUCTURED_GRID\n\
    POINTS 4 float\n0 0 0 1 0 0 0 1 0 0 0 1\nCELLS 1 18\n17 4 3 0 1 2 3 0 1 3 3 1 2 3 3 0 2 3\n\
    CELL_TYPES 1\n42\n";

pub(crate) const ABAQUS: &str = "** comment\n*HEADING\nany text\n*Part, name=P\n*NODE, NSET=ALL\n\
    30, 0., 0.\n10, 1., 0., 0.\n20, 0., 1.E0,\n40, 1., 1., .5D0\n\
    *Element, type=S3,\n ELSET=left\n1, 30, 10,\n20\n*ELEMENT, TYPE=S3R, ELSET=right\n2, 10, 40, 20\n\
    *ELEMENT, TYPE=B31\n9, 30, 10\n*ELSET, ELSET=E, GENERATE\n1, 2, 1\n*End Part\n\
    *ASSEMBLY, NAME=A\n*INSTANCE, NAME=I, PART=P\n*END INSTANCE\n*NODE\n1, 5., 5.\n*END ASSEMBLY\n";

pub(crate) const GMSH_1: &str = "$NOD\n4\n30 0 0 0\n10 1 0 0\n20 0 1 0\n40 1 1 0.5\n$ENDNOD\n$ELM\n3\n\
    1 1 7 1 2 30 10\n2 2 0 1 3 30 10 20\n3 2 9 1 3 10 40 20\n$ENDELM\n";

/// The third tag is the partition.
const GMSH_20: &str = "$MeshFormat\n2 0 8\n$EndMeshFormat\n$Nodes\n4\n30 0 0 0\n10 1 0 0\n\
    20 0 1 0\n40 1 1 0.5\n$EndNodes\n$Elements\n3\n1 1 3 0 1 0 30 10\n2 2 3 5 9 1 30 10 20\n\
    3 2 3 5 9 2 10 40 20\n$EndElements\n";

const GMSH_PARAMETRIC: &str = "$Comments\nany\n$EndComments\n$MeshFormat\n2.2 0 8\n$EndMeshFormat\n\
    $PhysicalNames\n1\n2 5 \"a plate\"\n$EndPhysicalNames\n\
    $ParametricNodes\n4\n30 0 0 0 0 1\n10 1 0 0 1 2 .5\n20 0 1 0 2 1 .5 .5\n40 1 1 0.5 3 1\n\
    $EndParametricNodes\n$Elements\n2\n2 2 4 5 9 1 1 30 10 20\n3 2 4 5 9 1 2 10 40 20\n\
    $EndElements\n";

const GMSH_40: &str = "$MeshFormat\n4 0 8\n$EndMeshFormat\n$Entities\n0 0 1 0\n\
    1 0 0 0 1 1 1 1 5 0\n$EndEntities\n$PartitionedEntities\n2\n0\n0 1 2 0\n\
    6 1 1 2 1 2 0 0 0 1 1 1 0 0\n\
    3 2 1 1 1 0 0 0 1 1 1 1 5 1 6\n4 2 1 1 2 0 0 0 1 1 1 1 5 0\n$EndPartitionedEntities\n\
    $Nodes\n2 4\n3 2 0 2\n30 0 0 0\n10 1 0 0\n4 2 1 2\n20 0 1 0 .5 .5\n40 1 1 0.5 .5 .5\n\
    $EndNodes\n$Elements\n3 3\n6 1 1 1\n1 30 10\n3 2 2 1\n2 30 10 20\n4 2 2 1\n3 10 40 20\n\
    $EndElements\n$Periodic\n1\n1 6 6\nAffine 1 0 0 0\n0\n$EndPeriodic\n";

/// [`GMSH_20`] and [`GMSH_40`] in binary.
fn gmsh_binary(version: &str) -> Vec<u8> {
    let mut bytes = format!("$MeshFormat\n{version} 1 8\n").into_bytes();
    let ints = |bytes: &mut Vec<u8>, values: &[i32]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let sizes = |bytes: &mut Vec<u8>, values: &[u64]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let node = |bytes: &mut Vec<u8>, tag: i32, point: [f64; 3], parameters: usize| {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(point.iter().chain(&[0.5; 2][..parameters]).flat_map(|x| x.to_le_bytes()));
    };
    ints(&mut bytes, &[1]);
    if version == "2.1" {
        bytes.extend(b"\n$EndMeshFormat\n$Nodes\n4\n");
        node(&mut bytes, 30, [0.0, 0.0, 0.0], 0);
        node(&mut bytes, 10, [1.0, 0.0, 0.0], 0);
        node(&mut bytes, 20, [0.0, 1.0, 0.0], 0);
        node(&mut bytes, 40, [1.0, 1.0, 0.5], 0);
        bytes.extend(b"\n$EndNodes\n$Elements\n2\n");
        ints(&mut bytes, &[2, 2, 3, 2, 5, 9, 1, 30, 10, 20, 3, 5, 9, 2, 10, 40, 20]);
        bytes.extend(b"\n$EndElements\n");
        return bytes;
    }
    bytes.extend(b"\n$EndMeshFormat\n$PartitionedEntities\n");
    sizes(&mut bytes, &[2, 0, 0, 0, 2, 0]);
    for (tag, part) in [(3, 1), (4, 2)] {
        ints(&mut bytes, &[tag, 2, 1]);
        sizes(&mut bytes, &[1]);
        ints(&mut bytes, &[part]);
        sizes(&mut bytes, &[0; 6]);
        sizes(&mut bytes, &[0, 0]);
    }
    bytes.extend(b"\n$EndPartitionedEntities\n$Nodes\n");
    sizes(&mut bytes, &[2, 4]);
    ints(&mut bytes, &[3, 2, 0]);
    sizes(&mut bytes, &[2]);
    node(&mut bytes, 30, [0.0, 0.0, 0.0], 0);
    node(&mut bytes, 10, [1.0, 0.0, 0.0], 0);
    ints(&mut bytes, &[4, 2, 1]);
    sizes(&mut bytes, &[2]);
    node(&mut bytes, 20, [0.0, 1.0, 0.0], 2);
    node(&mut bytes, 40, [1.0, 1.0, 0.5], 2);
    bytes.extend(b"\n$EndNodes\n$Elements\n");
    sizes(&mut bytes, &[2, 2]);
    for (tag, row) in [(3, [1, 30, 10, 20]), (4, [2, 10, 40, 20])] {
        ints(&mut bytes, &[tag, 2, 2]);
        sizes(&mut bytes, &[1]);
        ints(&mut bytes, &row);
    }
    bytes.extend(b"\n$EndElements\n");
    bytes
}

/// More versions of Gmsh files than [`super::samples`] has.
pub(crate) fn gmsh() -> Vec<Sample> {
    let sample = |name, bytes: Vec<u8>| Sample { name, format: Format::Gmsh, bytes };
    let text = |name, text: &str| sample(name, text.as_bytes().to_vec());
    vec![
        text("1.msh", GMSH_1),
        text("20a.msh", GMSH_20),
        text("parametric.msh", GMSH_PARAMETRIC),
        text("40a.msh", GMSH_40),
        sample("21b.msh", gmsh_binary("2.1")),
        sample("40b.msh", gmsh_binary("4.0")),
    ]
}

pub(crate) fn samples() -> Vec<Sample> {
    let sample = |name, format, bytes: Vec<u8>| Sample { name, format, bytes };
    let text = |name, format, text: &str| sample(name, format, text.as_bytes().to_vec());
    vec![
        text("mfem.mesh", Format::Mfem, MFEM),
        text("curved.mesh", Format::Mfem, MFEM_CURVED),
        text("a.ucd", Format::Ucd, UCD),
        text("3.vtk", Format::VtkLegacy, VTK_3),
        text("5.vtk", Format::VtkLegacy, VTK_5),
        text("faces.vtk", Format::VtkLegacy, VTK_FACES),
        sample("3b.vtk", Format::VtkLegacy, vtk_binary(false)),
        sample("5b.vtk", Format::VtkLegacy, vtk_binary(true)),
        text("a.inp", Format::Abaqus, ABAQUS),
        sample("1.exo", Format::Exodus, exodus(1)),
        sample("2.exo", Format::Exodus, exodus(2)),
        sample("5.exo", Format::Exodus, exodus(5)),
    ]
}

/// The grid of [`VTK_3`] or [`VTK_5`].
fn vtk_binary(offsets: bool) -> Vec<u8> {
    let version = if offsets { "5.1" } else { "3.0" };
    let mut bytes = format!(
        "# vtk DataFile Version {version}\ntitle\nBINARY\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 float\n"
    )
    .into_bytes();
    let points = [0., 0., 0., 1., 0., 0., 0., 1., 0., 1., 1., 0.5f32];
    bytes.extend(points.iter().flat_map(|x| x.to_be_bytes()));
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    let longs = |numbers: &[i64]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    if offsets {
        bytes.extend(b"\nCELLS 4 8\nOFFSETS vtktypeint64\n");
        bytes.extend(longs(&[0, 3, 6, 8]));
        bytes.extend(b"\nCONNECTIVITY vtktypeint64\n");
        bytes.extend(longs(&[0, 1, 2, 1, 3, 2, 0, 1]));
    } else {
        bytes.extend(b"\nCELLS 3 11\n");
        bytes.extend(ints(&[3, 0, 1, 2, 3, 1, 3, 2, 2, 0, 1]));
    }
    bytes.extend(b"\nCELL_TYPES 3\n");
    bytes.extend(ints(&[5, 5, 3]));
    bytes.push(b'\n');
    bytes
}

/// Writes a NetCDF file: the header twice, since offsets follow from its length.
pub(crate) struct NetCdf<'a> {
    pub(crate) version: u8,
    pub(crate) dimensions: &'a [(&'a str, u64)],
    pub(crate) variables: Vec<Variable<'a>>,
}

/// Name, dimensions, attributes, type and big-endian values.
type Variable<'a> = (&'a str, &'a [u64], Vec<(&'a str, Attribute<'a>)>, u32, Vec<u8>);

/// The value of an attribute of a variable.
pub(crate) enum Attribute<'a> {
    Text(&'a str),
    Ints(&'a [i32]),
}

/// The attribute with the type of a block.
pub(crate) fn type_of_block(name: &str) -> (&str, Attribute<'_>) {
    ("elem_type", Attribute::Text(name))
}

impl NetCdf<'_> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = self.header(0).len();
        let mut bytes = self.header(length);
        for (.., values) in &self.variables {
            bytes.extend(values);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn header(&self, mut begin: usize) -> Vec<u8> {
        let mut bytes = vec![b'C', b'D', b'F', self.version];
        let number = |bytes: &mut Vec<u8>, value: u64, wide: bool| match wide {
            true => bytes.extend(value.to_be_bytes()),
            false => bytes.extend(u32::try_from(value).unwrap().to_be_bytes()),
        };
        let wide = self.version == 5;
        let text = |bytes: &mut Vec<u8>, text: &str| {
            number(bytes, text.len() as u64, wide);
            bytes.extend(text.bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        };
        let list = |bytes: &mut Vec<u8>, tag: u64, count: usize| {
            number(bytes, if count == 0 { 0 } else { tag }, false);
            number(bytes, count as u64, wide);
        };
        number(&mut bytes, 0, wide);
        list(&mut bytes, 10, self.dimensions.len());
        for (name, dimension) in self.dimensions {
            text(&mut bytes, name);
            number(&mut bytes, *dimension, wide);
        }
        list(&mut bytes, 12, 1);
        text(&mut bytes, "title");
        number(&mut bytes, 2, false);
        text(&mut bytes, "plate");
        list(&mut bytes, 11, self.variables.len());
        for (name, dimensions, attributes, kind, values) in &self.variables {
            text(&mut bytes, name);
            number(&mut bytes, dimensions.len() as u64, wide);
            for &dimension in *dimensions {
                number(&mut bytes, dimension, wide);
            }
            list(&mut bytes, 12, attributes.len());
            for (key, value) in attributes {
                text(&mut bytes, key);
                match value {
                    Attribute::Text(value) => {
                        number(&mut bytes, 2, false);
                        text(&mut bytes, value);
                    }
                    Attribute::Ints(values) => {
                        number(&mut bytes, 4, false);
                        number(&mut bytes, values.len() as u64, wide);
                        bytes.extend(ints(values));
                    }
                }
            }
            number(&mut bytes, u64::from(*kind), false);
            number(&mut bytes, values.len() as u64, wide);
            number(&mut bytes, begin as u64, self.version != 1);
            begin += values.len().next_multiple_of(4);
        }
        bytes
    }
}

pub(crate) fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// Two blocks: two triangles, and a line on the boundary.
pub(crate) fn exodus(version: u8) -> Vec<u8> {
    let reals = |values: &[f64]| values.iter().flat_map(|x| x.to_be_bytes()).collect::<Vec<u8>>();
    let dimensions = [
        ("num_dim", 2),
        ("num_nodes", 4),
        ("num_elem", 3),
        ("num_el_blk", 2),
        ("n1", 2),
        ("three", 3),
        ("n2", 1),
        ("two", 2),
        ("num_node_sets", 1),
    ];
    NetCdf {
        version,
        dimensions: &dimensions,
        variables: vec![
            ("coordx", &[1], vec![], 6, reals(&[0., 1., 0., 1.])),
            ("coordy", &[1], vec![], 6, reals(&[0., 0., 1., 1.])),
            (
                "connect1",
                &[4, 5],
                vec![type_of_block("TRI3"), ("entity_id", Attribute::Ints(&[100]))],
                4,
                ints(&[1, 2, 3, 2, 4, 3]),
            ),
            ("connect2", &[6, 7], vec![type_of_block("BEAM")], 4, ints(&[1, 2])),
            ("node_num_map", &[1], vec![], 4, ints(&[30, 10, 20, 40])),
            ("eb_prop1", &[3], vec![], 4, ints(&[100, 200])),
        ],
    }
    .bytes()
}
