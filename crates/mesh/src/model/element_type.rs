//! Types of finite elements, and the numbers and names that file formats have for them.
//!
//! A type is a [`Shape`] and a number of nodes: a hexahedron with 20 nodes. An exchange needs to
//! know nothing else: which node is at which corner does not change which elements share it. So
//! this module has no node orders, and formats that arrange the nodes of a type differently have
//! the same type here.

use std::fmt;

/// The geometric shape of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// A point: point masses, vertices.
    Point,
    /// A line: bars, beams, edges.
    Line,
    /// A triangle.
    Triangle,
    /// A quadrilateral.
    Quadrilateral,
    /// A polygon with any number of corners.
    Polygon,
    /// A tetrahedron.
    Tetrahedron,
    /// A pyramid over a quadrilateral.
    Pyramid,
    /// A triangular prism, also called wedge.
    Prism,
    /// A hexahedron.
    Hexahedron,
    /// A polyhedron with any number of faces.
    Polyhedron,
}

impl Shape {
    /// The shape's own dimension, 0 to 3; 2 for a triangle in space.
    pub fn dimension(self) -> u8 {
        match self {
            Shape::Point => 0,
            Shape::Line => 1,
            Shape::Triangle | Shape::Quadrilateral | Shape::Polygon => 2,
            Shape::Tetrahedron
            | Shape::Pyramid
            | Shape::Prism
            | Shape::Hexahedron
            | Shape::Polyhedron => 3,
        }
    }

    /// Number of corners; the least possible for polygons and polyhedra.
    pub fn corner_count(self) -> usize {
        match self {
            Shape::Point => 1,
            Shape::Line => 2,
            Shape::Triangle | Shape::Polygon => 3,
            Shape::Quadrilateral | Shape::Tetrahedron | Shape::Polyhedron => 4,
            Shape::Pyramid => 5,
            Shape::Prism => 6,
            Shape::Hexahedron => 8,
        }
    }

    /// The English name, in the singular.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Point => "point",
            Shape::Line => "line",
            Shape::Triangle => "triangle",
            Shape::Quadrilateral => "quadrilateral",
            Shape::Polygon => "polygon",
            Shape::Tetrahedron => "tetrahedron",
            Shape::Pyramid => "pyramid",
            Shape::Prism => "prism",
            Shape::Hexahedron => "hexahedron",
            Shape::Polyhedron => "polyhedron",
        }
    }
}

/// The type of an element: its shape and its number of nodes.
///
/// ```
/// use conset_mesh::model::{ElementType, Shape};
///
/// let brick = ElementType::new(Shape::Hexahedron, 20).unwrap();
/// assert_eq!((brick.dimension(), brick.is_linear()), (3, false));
/// assert_eq!(brick.to_string(), "20-node hexahedron");
/// assert!(ElementType::new(Shape::Hexahedron, 6).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementType {
    shape: Shape,
    node_count: u16,
    is_spline: bool,
}

impl ElementType {
    /// The type of a shape with `node_count` nodes; `None` if these are fewer than its corners or
    /// more than 65535.
    pub fn new(shape: Shape, node_count: usize) -> Option<Self> {
        let node_count_16 = u16::try_from(node_count).ok()?;
        (node_count >= shape.corner_count()).then_some(Self {
            shape,
            node_count: node_count_16,
            is_spline: false,
        })
    }

    /// The type of an element of a spline, whose nodes are control points in no order.
    #[must_use]
    pub fn spline(self) -> Self {
        Self { is_spline: true, ..self }
    }

    /// Whether the nodes are the control points of a spline: none of them need be a corner, and
    /// elements share some of them without touching each other.
    pub fn is_spline(self) -> bool {
        self.is_spline
    }

    /// The type of an element of which only the dimension and the number of nodes are known; `None`
    /// if these do not tell.
    ///
    /// ```
    /// use conset_mesh::model::ElementType;
    ///
    /// assert_eq!(ElementType::of_dimension(3, 10).unwrap().to_string(), "10-node tetrahedron");
    /// assert!(ElementType::of_dimension(0, 3).is_none());
    /// ```
    pub fn of_dimension(dimension: u8, node_count: usize) -> Option<Self> {
        let shape = match (dimension, node_count) {
            (1, 2..) => Shape::Line,
            (2, 3 | 6) => Shape::Triangle,
            (2, 4 | 8 | 9) => Shape::Quadrilateral,
            (3, 4 | 10) => Shape::Tetrahedron,
            (3, 5 | 13 | 14) => Shape::Pyramid,
            (3, 6 | 15 | 18) => Shape::Prism,
            (3, 8 | 20 | 27) => Shape::Hexahedron,
            _ => return None,
        };
        Self::new(shape, node_count)
    }

    /// The shape.
    pub fn shape(self) -> Shape {
        self.shape
    }

    /// Number of nodes. A node of an element can be named twice (collapsed hexahedra) and counts
    /// twice here.
    pub fn node_count(self) -> usize {
        usize::from(self.node_count)
    }

    /// The shape's own dimension, 0 to 3.
    pub fn dimension(self) -> u8 {
        self.shape.dimension()
    }

    /// Whether the element has no nodes but its corners. Always true of polygons and polyhedra.
    pub fn is_linear(self) -> bool {
        matches!(self.shape, Shape::Polygon | Shape::Polyhedron)
            || self.node_count() == self.shape.corner_count()
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Point if self.node_count == 1 => f.write_str("point"),
            shape => {
                let of = if self.is_spline { " of a spline" } else { "" };
                write!(f, "{}-node {}{of}", self.node_count, shape.name())
            }
        }
    }
}

/// Shape of a VTK cell type (`vtkCellType.h`) and its number of nodes, `None` where a cell has as
/// many as its row says. A polyhedron (42) has faces in place of nodes.
pub(crate) fn from_vtk(number: u64) -> Option<(Shape, Option<usize>)> {
    Some(match number {
        1 => (Shape::Point, Some(1)),
        2 => (Shape::Point, None),
        3 => (Shape::Line, Some(2)),
        4 => (Shape::Line, None),
        5 => (Shape::Triangle, Some(3)),
        // A strip of triangles.
        6 | 7 => (Shape::Polygon, None),
        8 | 9 => (Shape::Quadrilateral, Some(4)),
        10 => (Shape::Tetrahedron, Some(4)),
        11 | 12 => (Shape::Hexahedron, Some(8)),
        13 => (Shape::Prism, Some(6)),
        14 => (Shape::Pyramid, Some(5)),
        // Pentagonal and hexagonal prism.
        15 => (Shape::Polyhedron, Some(10)),
        16 => (Shape::Polyhedron, Some(12)),
        21 => (Shape::Line, Some(3)),
        22 => (Shape::Triangle, Some(6)),
        23 => (Shape::Quadrilateral, Some(8)),
        24 => (Shape::Tetrahedron, Some(10)),
        25 => (Shape::Hexahedron, Some(20)),
        26 => (Shape::Prism, Some(15)),
        27 => (Shape::Pyramid, Some(13)),
        28 => (Shape::Quadrilateral, Some(9)),
        29 => (Shape::Hexahedron, Some(27)),
        30 => (Shape::Quadrilateral, Some(6)),
        31 => (Shape::Prism, Some(12)),
        32 => (Shape::Prism, Some(18)),
        33 => (Shape::Hexahedron, Some(24)),
        34 => (Shape::Triangle, Some(7)),
        35 => (Shape::Line, Some(4)),
        // Quadratic polygon.
        36 => (Shape::Polygon, None),
        37 => (Shape::Pyramid, Some(19)),
        42 => (Shape::Polyhedron, None),
        // Convex point set: nodes in no order.
        41 => (Shape::Polyhedron, None),
        // Lagrange and Bézier cells of any order.
        68 | 75 => (Shape::Line, None),
        69 | 76 => (Shape::Triangle, None),
        70 | 77 => (Shape::Quadrilateral, None),
        71 | 78 => (Shape::Tetrahedron, None),
        72 | 79 => (Shape::Hexahedron, None),
        73 | 80 => (Shape::Prism, None),
        74 | 81 => (Shape::Pyramid, None),
        _ => return None,
    })
}

/// The type of a Gmsh element type (`GmshDefines.h`), for those with a fixed number of nodes.
pub(crate) fn from_gmsh(number: u64) -> Option<ElementType> {
    let (shape, node_count) = match number {
        15 => (Shape::Point, 1),
        1 => (Shape::Line, 2),
        8 => (Shape::Line, 3),
        26 => (Shape::Line, 4),
        27 => (Shape::Line, 5),
        28 => (Shape::Line, 6),
        62 => (Shape::Line, 7),
        63 => (Shape::Line, 8),
        64 => (Shape::Line, 9),
        65 => (Shape::Line, 10),
        66 => (Shape::Line, 11),
        2 => (Shape::Triangle, 3),
        9 => (Shape::Triangle, 6),
        20 => (Shape::Triangle, 9),
        21 => (Shape::Triangle, 10),
        22 => (Shape::Triangle, 12),
        23 | 24 => (Shape::Triangle, 15),
        25 => (Shape::Triangle, 21),
        42 => (Shape::Triangle, 28),
        43 => (Shape::Triangle, 36),
        44 => (Shape::Triangle, 45),
        45 => (Shape::Triangle, 55),
        46 => (Shape::Triangle, 66),
        3 => (Shape::Quadrilateral, 4),
        16 => (Shape::Quadrilateral, 8),
        10 => (Shape::Quadrilateral, 9),
        36 => (Shape::Quadrilateral, 16),
        37 => (Shape::Quadrilateral, 25),
        38 => (Shape::Quadrilateral, 36),
        47 => (Shape::Quadrilateral, 49),
        48 => (Shape::Quadrilateral, 64),
        49 => (Shape::Quadrilateral, 81),
        50 => (Shape::Quadrilateral, 100),
        51 => (Shape::Quadrilateral, 121),
        4 => (Shape::Tetrahedron, 4),
        11 => (Shape::Tetrahedron, 10),
        29 => (Shape::Tetrahedron, 20),
        30 => (Shape::Tetrahedron, 35),
        31 => (Shape::Tetrahedron, 56),
        71 => (Shape::Tetrahedron, 84),
        72 => (Shape::Tetrahedron, 120),
        73 => (Shape::Tetrahedron, 165),
        74 => (Shape::Tetrahedron, 220),
        5 => (Shape::Hexahedron, 8),
        17 => (Shape::Hexahedron, 20),
        12 => (Shape::Hexahedron, 27),
        92 => (Shape::Hexahedron, 64),
        93 => (Shape::Hexahedron, 125),
        94 => (Shape::Hexahedron, 216),
        6 => (Shape::Prism, 6),
        18 => (Shape::Prism, 15),
        13 => (Shape::Prism, 18),
        90 => (Shape::Prism, 40),
        91 => (Shape::Prism, 75),
        106 => (Shape::Prism, 126),
        107 => (Shape::Prism, 196),
        7 => (Shape::Pyramid, 5),
        19 => (Shape::Pyramid, 13),
        14 => (Shape::Pyramid, 14),
        118 => (Shape::Pyramid, 30),
        119 => (Shape::Pyramid, 55),
        120 => (Shape::Pyramid, 91),
        121 => (Shape::Pyramid, 140),
        122 => (Shape::Pyramid, 204),
        _ => return None,
    };
    ElementType::new(shape, node_count)
}

/// Shape of an MFEM geometry (`fem/geom.hpp`).
pub(crate) fn from_mfem(number: u64) -> Option<Shape> {
    Some(match number {
        0 => Shape::Point,
        1 => Shape::Line,
        2 => Shape::Triangle,
        3 => Shape::Quadrilateral,
        4 => Shape::Tetrahedron,
        5 => Shape::Hexahedron,
        6 => Shape::Prism,
        7 => Shape::Pyramid,
        _ => return None,
    })
}

/// Shape of an AVS UCD cell type.
pub(crate) fn from_ucd(name: &[u8]) -> Option<Shape> {
    Some(match name {
        b"pt" => Shape::Point,
        b"line" => Shape::Line,
        b"tri" => Shape::Triangle,
        b"quad" => Shape::Quadrilateral,
        b"tet" => Shape::Tetrahedron,
        b"pyr" => Shape::Pyramid,
        b"prism" => Shape::Prism,
        b"hex" => Shape::Hexahedron,
        _ => return None,
    })
}

/// Shape of an Exodus element block of `node_count` nodes per element. Programs name the types
/// loosely (`HEX`, `HEX8`, `hex20`, `BEX_HEX`); the start of the name has the shape, and digits
/// behind it repeat the number of nodes. A shell has the shape that its nodes make.
pub(crate) fn from_exodus(name: &str, node_count: usize) -> Option<Shape> {
    const STARTS: [(&str, Shape); 20] = [
        ("SPHERE", Shape::Point),
        ("CIRCLE", Shape::Point),
        ("POINT", Shape::Point),
        ("NODE", Shape::Point),
        ("BAR", Shape::Line),
        ("BEAM", Shape::Line),
        ("TRUSS", Shape::Line),
        ("ROD", Shape::Line),
        ("SPRING", Shape::Line),
        ("EDGE", Shape::Line),
        ("LINE", Shape::Line),
        ("TRI", Shape::Triangle),
        ("QUAD", Shape::Quadrilateral),
        ("NSIDED", Shape::Polygon),
        ("TET", Shape::Tetrahedron),
        ("PYR", Shape::Pyramid),
        ("WEDGE", Shape::Prism),
        ("PRISM", Shape::Prism),
        ("HEX", Shape::Hexahedron),
        ("NFACED", Shape::Polyhedron),
    ];
    let upper = name.to_ascii_uppercase();
    let plain = upper.strip_prefix("BEX_").unwrap_or(&upper);
    if plain.starts_with("SHELL") {
        return match node_count {
            2 => Some(Shape::Line),
            3 | 6 | 7 => Some(Shape::Triangle),
            4 | 8 | 9 => Some(Shape::Quadrilateral),
            _ => None,
        };
    }
    STARTS.iter().find(|(start, _)| plain.starts_with(start)).map(|&(_, shape)| shape)
}

/// The type of an Abaqus (and CalculiX) element name such as `C3D8R`, `S4R` or `T3D2`: a family,
/// the number of nodes, and letters for the formulation, which does not matter here.
pub(crate) fn from_abaqus(name: &str) -> Option<ElementType> {
    /// How many dimensions the elements of a family have; the number of nodes selects the shape.
    const FAMILIES: [(&str, u8); 44] = [
        ("AC1D", 1),
        ("AC2D", 2),
        ("AC3D", 3),
        ("ACAX", 2),
        ("B2", 1),
        ("B3", 1),
        ("C3D", 3),
        ("CAX", 2),
        ("CCL", 3),
        ("CGAX", 2),
        ("CIN3D", 3),
        ("COH2D", 2),
        ("COH3D", 3),
        ("COHAX", 2),
        ("CONN2D", 1),
        ("CONN3D", 1),
        ("CPE", 2),
        ("CPEG", 2),
        ("CPS", 2),
        ("CSS", 3),
        ("DC1D", 1),
        ("DC2D", 2),
        ("DC3D", 3),
        ("DCAX", 2),
        ("DS", 2),
        ("EC3D", 3),
        ("EMC2D", 2),
        ("EMC3D", 3),
        ("F2D", 1),
        ("F3D", 3),
        ("M3D", 2),
        ("PIPE2", 1),
        ("PIPE3", 1),
        ("Q3D", 3),
        ("R2D", 1),
        ("R3D", 2),
        ("RAX", 1),
        ("S", 2),
        ("SAX", 1),
        ("SC", 3),
        ("SFM3D", 2),
        ("STRI", 2),
        ("T2D", 1),
        ("T3D", 1),
    ];
    let name = name.to_ascii_uppercase();
    let whole = match name.as_str() {
        "MASS" | "ROTARYI" | "HEATCAP" | "SPRING1" | "DASHPOT1" | "DCOUP2D" | "DCOUP3D" => {
            Some((Shape::Point, 1))
        }
        // The network element of CalculiX.
        "D" => Some((Shape::Line, 3)),
        "SPRING2" | "SPRINGA" | "DASHPOT2" | "DASHPOTA" | "GAPUNI" | "GAPCYL" | "GAPSPHER"
        | "ITSUNI" | "ITSCYL" | "ITT21" | "ITT31" => Some((Shape::Line, 2)),
        "STRI65" => Some((Shape::Triangle, 6)),
        "SAX1" => Some((Shape::Line, 2)),
        "SAX2" => Some((Shape::Line, 3)),
        _ => None,
    };
    if let Some((shape, node_count)) = whole {
        return ElementType::new(shape, node_count);
    }
    // The longest family that fits: `SC8R` is not of the family `S`.
    let (family, dimension) = FAMILIES
        .into_iter()
        .filter(|(family, _)| {
            let rest = name.strip_prefix(family);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .max_by_key(|(family, _)| family.len())?;
    let rest = &name[family.len()..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mut node_count: usize = rest[..digits].parse().ok()?;
    if matches!(family, "B2" | "B3" | "PIPE2" | "PIPE3") {
        // The digit is the interpolation: linear, quadratic, cubic with two nodes.
        node_count = match node_count {
            1 | 3 => 2,
            2 => 3,
            _ => return None,
        };
    }
    let shape = match (dimension, node_count) {
        (1, 2 | 3) => Shape::Line,
        (2, 3 | 6) => Shape::Triangle,
        (2, 4 | 8 | 9) => Shape::Quadrilateral,
        (3, 4 | 10) => Shape::Tetrahedron,
        (3, 5 | 13) => Shape::Pyramid,
        (3, 6 | 15 | 18) => Shape::Prism,
        (3, 8 | 20 | 27) => Shape::Hexahedron,
        _ => return None,
    };
    ElementType::new(shape, node_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_formats_have_shape_and_nodes() {
        for (name, shape, nodes) in [
            ("C3D8R", Shape::Hexahedron, 8),
            ("c3d10m", Shape::Tetrahedron, 10),
            ("C3D20RH", Shape::Hexahedron, 20),
            ("S4R5", Shape::Quadrilateral, 4),
            ("S3", Shape::Triangle, 3),
            ("SC8R", Shape::Hexahedron, 8),
            ("SC6R", Shape::Prism, 6),
            ("STRI3", Shape::Triangle, 3),
            ("STRI65", Shape::Triangle, 6),
            ("SAX2", Shape::Line, 3),
            ("B31", Shape::Line, 2),
            ("B32", Shape::Line, 3),
            ("B33", Shape::Line, 2),
            ("T3D2", Shape::Line, 2),
            ("CPS4R", Shape::Quadrilateral, 4),
            ("CPEG6", Shape::Triangle, 6),
            ("MASS", Shape::Point, 1),
            ("R3D4", Shape::Quadrilateral, 4),
        ] {
            let expected = ElementType::new(shape, nodes);
            assert_eq!(from_abaqus(name), expected, "{name}");
        }
        for name in ["U1", "C3D7", "S", "X4", "", "C3D99999999999999999999"] {
            assert_eq!(from_abaqus(name), None, "{name}");
        }
        for (name, nodes, shape) in [
            ("HEX", 8, Shape::Hexahedron),
            ("tetra4", 4, Shape::Tetrahedron),
            ("SHELL4", 4, Shape::Quadrilateral),
            ("SHELL", 3, Shape::Triangle),
            ("BEX_QUAD", 9, Shape::Quadrilateral),
            ("PYRAMID5", 5, Shape::Pyramid),
            ("WEDGE", 6, Shape::Prism),
        ] {
            assert_eq!(from_exodus(name, nodes), Some(shape), "{name}");
        }
        assert_eq!(from_exodus("SUPER", 4), None);
    }

    #[test]
    fn fixed_types_have_all_their_corners() {
        for number in 0..256 {
            if let Some((shape, Some(nodes))) = from_vtk(number) {
                assert!(ElementType::new(shape, nodes).is_some(), "VTK {number}");
            }
        }
        // Those of a fixed number of nodes are the complete or the serendipity ones.
        assert_eq!((0..256).filter(|&n| from_gmsh(n).is_some()).count(), 65);
    }
}
