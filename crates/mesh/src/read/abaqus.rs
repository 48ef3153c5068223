//! Abaqus and CalculiX input files (Abaqus Keywords Guide; CalculiX manual).
//!
//! `*NODE` and `*ELEMENT` are read, in a flat file or in one part with at most one instance. The
//! type of an element gives its number of nodes, and its row continues on further lines until it
//! has them. Node ids may have gaps and any order; nodes are numbered by the rank of their ids.
//! The `ELSET` of an `*ELEMENT` becomes a group. A network element of CalculiX (type `D`) has three
//! nodes, the first or last of which may be 0, for none.
//!
//! Refused, each with its reason: files that need others (`*INCLUDE`, `INPUT=`, `*IMPORT`), nodes and
//! elements that are generated (`*NGEN`, `*ELGEN` and the like), several meshed parts or several
//! instances of one, elements of an assembly. All other keywords are counted and reported as
//! unused; those that couple nodes without an element (`*TIE`, `*EQUATION`) for themselves.

use std::collections::BTreeMap;

use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use super::{push_element, rank_nodes};
use crate::model::element_type::from_abaqus;
use crate::model::{Assembly, ElementType, Shape};

/// Keywords that make nodes or elements out of others.
const GENERATING: [&str; 9] = [
    "NGEN",
    "NFILL",
    "NCOPY",
    "NMAP",
    "ELGEN",
    "ELCOPY",
    "ELSET COPY",
    "SYMMETRIC MODEL GENERATION",
    "TRANSFORM NODES",
];

/// Keywords that couple nodes which no element has together.
const COUPLING: [&str; 12] = [
    "TIE",
    "EQUATION",
    "MPC",
    "COUPLING",
    "KINEMATIC COUPLING",
    "DISTRIBUTING COUPLING",
    "RIGID BODY",
    "EMBEDDED ELEMENT",
    "SHELL TO SOLID COUPLING",
    "CYCLIC SYMMETRY MODEL",
    "CONTACT PAIR",
    "CONTACT",
];

/// No node.
const NO_NODE: u64 = u64::MAX;

/// Where nodes and elements are defined.
#[derive(Clone, PartialEq)]
enum Scope {
    Model,
    Part(String),
    Assembly,
    Instance(String),
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    scope: Scope,
    /// The scope of the first nodes or elements.
    meshed: Option<Scope>,
    nodes: Vec<(u64, [f64; 3], usize)>,
    /// Type, id, place.
    elements: Vec<(ElementType, u64, usize)>,
    /// Node ids of all elements, one element behind the other.
    element_nodes: Vec<u64>,
    sets: Vec<(String, usize)>,
    /// Parts of the instances, and where the instance begins.
    instances: Vec<(String, usize)>,
    reference_points: usize,
    unused: BTreeMap<String, usize>,
}

/// A keyword line: the keyword in upper case, its parameters with names in upper case.
struct Keyword {
    name: String,
    parameters: Vec<(String, String)>,
    offset: usize,
}

impl Keyword {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads all elements of a file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let mut reader = Reader {
        cursor: Cursor::new(file, bytes),
        scope: Scope::Model,
        meshed: None,
        nodes: Vec::new(),
        elements: Vec::new(),
        element_nodes: Vec::new(),
        sets: Vec::new(),
        instances: Vec::new(),
        reference_points: 0,
        unused: BTreeMap::new(),
    };
    if let Some((offset, line)) = reader.data_line() {
        let message = format!("`{}` where a keyword (`*NODE`) was expected", show(line));
        return Err(reader.cursor.error_at(offset, message));
    }
    while let Some(keyword) = reader.keyword() {
        reader.read_keyword(&keyword)?;
    }
    reader.finish()
}

impl<'a> Reader<'a> {
    /// The next line that is not blank and not a comment, if it is a data line: trimmed, with its
    /// place. A keyword is left where it is.
    fn data_line(&mut self) -> Option<(usize, &'a [u8])> {
        loop {
            self.cursor.skip_space();
            let rest = self.cursor.rest();
            let line = &rest[..rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())];
            if line.is_empty() || (line[0] == b'*' && line.get(1) != Some(&b'*')) {
                return None;
            }
            let offset = self.cursor.offset();
            self.cursor.next_line();
            if line[0] != b'*' {
                return Some((offset, line.trim_ascii_end()));
            }
        }
    }

    /// The keyword that comes next, behind its data lines. A keyword line that ends with a comma
    /// continues on the next line.
    fn keyword(&mut self) -> Option<Keyword> {
        while self.data_line().is_some() {}
        if self.cursor.at_end() {
            return None;
        }
        let offset = self.cursor.offset();
        let mut text = String::new();
        loop {
            let rest = self.cursor.rest();
            let line = &rest[..rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())];
            text += String::from_utf8_lossy(line.trim_ascii()).as_ref();
            self.cursor.next_line();
            if !text.ends_with(',') || self.cursor.at_end() {
                break;
            }
        }
        let mut fields = text.trim_start_matches('*').split(',');
        let words = fields.next().unwrap_or("").split_whitespace();
        let name = words.map(str::to_ascii_uppercase).collect::<Vec<_>>().join(" ");
        let parameters = fields
            .map(|field| {
                let (key, value) = field.split_once('=').unwrap_or((field, ""));
                (key.trim().to_ascii_uppercase(), value.trim().trim_matches('"').to_owned())
            })
            .filter(|(key, _)| !key.is_empty())
            .collect();
        Some(Keyword { name, parameters, offset })
    }

    fn read_keyword(&mut self, keyword: &Keyword) -> Result<()> {
        let error = |message: String| self.cursor.error_at(keyword.offset, message);
        let named = |parameter: &str| keyword.parameter(parameter).unwrap_or("").to_owned();
        match keyword.name.as_str() {
            "NODE" => return self.read_nodes(keyword),
            "ELEMENT" => return self.read_elements(keyword),
            "PART" => self.scope = Scope::Part(named("NAME").to_ascii_uppercase()),
            "ASSEMBLY" => self.scope = Scope::Assembly,
            "INSTANCE" if keyword.parameter("LIBRARY").is_some() => {
                let other = show(named("LIBRARY").as_bytes());
                return Err(error(format!("*INSTANCE: its mesh is in the results of `{other}`"))
                    .help("write the mesh with all its nodes and elements"));
            }
            "INSTANCE" => {
                self.instances.push((named("PART").to_ascii_uppercase(), keyword.offset));
                self.scope = Scope::Instance(named("NAME").to_ascii_uppercase());
            }
            "END INSTANCE" => self.scope = Scope::Assembly,
            "END PART" | "END ASSEMBLY" => self.scope = Scope::Model,
            "HEADING" => {}
            "INCLUDE" => {
                let other = show(named("INPUT").as_bytes());
                return Err(error(format!(
                    "*INCLUDE: the rows that follow are in another file, `{other}`"
                ))
                .help("put the content of that file in this place"));
            }
            "IMPORT" => {
                return Err(error(
                    "*IMPORT: elements come from the results of another analysis".to_owned(),
                )
                .help("write the mesh with all its nodes and elements"));
            }
            name if GENERATING.contains(&name) => {
                return Err(error(format!(
                    "*{name} generates nodes or elements, which the file does not list"
                ))
                .help("write the mesh with all its nodes and elements"));
            }
            name => *self.unused.entry(name.to_owned()).or_default() += 1,
        }
        Ok(())
    }

    /// Checks that all nodes and elements are of one part, and that they are here.
    fn check_scope(&mut self, keyword: &Keyword) -> Result<()> {
        let error = |message: &str| self.cursor.error_at(keyword.offset, message);
        if let Some(other) = keyword.parameter("INPUT").or_else(|| keyword.parameter("FILE")) {
            let (name, other) = (&keyword.name, show(other.as_bytes()));
            return Err(error(&format!("*{name}: its rows are in another file, `{other}`"))
                .help("put the content of that file below the keyword"));
        }
        match &self.meshed {
            None => self.meshed = Some(self.scope.clone()),
            Some(scope) if *scope == self.scope => {}
            Some(_) => {
                return Err(error("a second part with nodes or elements; ids of several parts are not unique")
                    .help("write the assembly as one flat mesh (in Abaqus/CAE: Model > Edit attributes > Do not use parts and assemblies)"));
            }
        }
        Ok(())
    }

    fn read_nodes(&mut self, keyword: &Keyword) -> Result<()> {
        let reference_points = self.scope == Scope::Assembly;
        if !reference_points {
            self.check_scope(keyword)?;
        }
        let system = keyword.parameter("SYSTEM").unwrap_or("R").to_ascii_uppercase();
        if !matches!(system.as_str(), "R" | "C" | "S") {
            let message = format!("SYSTEM={system}; expected R, C or S");
            return Err(self.cursor.error_at(keyword.offset, message));
        }
        while let Some((offset, line)) = self.data_line() {
            let mut fields = Fields { start: offset, line };
            let id = fields.integer(&self.cursor, "the id of a node")?;
            let mut numbers = [0.0; 3];
            for number in &mut numbers {
                *number = fields.real(&self.cursor, "a coordinate")?;
            }
            if reference_points {
                self.reference_points += 1;
                continue;
            }
            let point = match system.as_str() {
                "C" => polar(numbers[0], numbers[1], numbers[2]),
                "S" => {
                    let (radius, latitude) = (numbers[0], numbers[2].to_radians());
                    polar(radius * latitude.cos(), numbers[1], radius * latitude.sin())
                }
                _ => numbers,
            };
            self.nodes.push((id, point, offset));
        }
        Ok(())
    }

    fn read_elements(&mut self, keyword: &Keyword) -> Result<()> {
        if self.scope == Scope::Assembly {
            let message = "elements of the assembly, which join instances of parts";
            return Err(self
                .cursor
                .error_at(keyword.offset, message)
                .help("write the assembly as one flat mesh"));
        }
        self.check_scope(keyword)?;
        let name = keyword.parameter("TYPE").unwrap_or("");
        let Some(element_type) = from_abaqus(name) else {
            let message = match name {
                "" => "*ELEMENT without TYPE".to_owned(),
                _ => format!("element type `{}` is not known", show(name.as_bytes())),
            };
            return Err(self.cursor.error_at(keyword.offset, message));
        };
        let is_network = name.eq_ignore_ascii_case("D");
        let before = self.elements.len();
        let needed = element_type.node_count();
        while let Some((offset, line)) = self.data_line() {
            let mut fields = Fields { start: offset, line };
            let id = fields.integer(&self.cursor, "the id of an element")?;
            self.elements.push((element_type, id, offset));
            for count in 0..needed {
                if fields.at_end() {
                    let Some((offset, line)) = self.data_line() else {
                        let message = format!(
                            "element {id} of type {name} has {count} nodes; expected {needed}"
                        );
                        return Err(self.cursor.error_at(offset, message));
                    };
                    fields = Fields { start: offset, line };
                }
                let node = fields.integer(&self.cursor, "a node of an element")?;
                self.element_nodes.push(if is_network && node == 0 { NO_NODE } else { node });
            }
            if !fields.at_end() {
                let message =
                    format!("the row goes on; an element of type {name} has {needed} nodes");
                return Err(self.cursor.error_at(fields.offset(), message));
            }
        }
        let count = self.elements.len() - before;
        if let Some(set) = keyword.parameter("ELSET") {
            match self.sets.iter_mut().find(|(name, _)| name == set) {
                Some((_, total)) => *total += count,
                None => self.sets.push((set.to_owned(), count)),
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Assembly> {
        let cursor = self.cursor;
        let open = match self.scope {
            Scope::Model => None,
            Scope::Part(_) => Some("*END PART"),
            Scope::Instance(_) => Some("*END INSTANCE"),
            Scope::Assembly => Some("*END ASSEMBLY"),
        };
        if let Some(keyword) = open {
            let message = format!("the file ends without {keyword}");
            return Err(cursor.error_at(cursor.offset(), message));
        }
        if let Some(Scope::Part(part)) = &self.meshed {
            let mut own = self.instances.iter().filter(|(of, _)| of == part);
            if let Some((_, second)) = own.nth(1) {
                return Err(cursor
                    .error_at(
                        *second,
                        format!("a second instance of part {part}; ids of nodes are not unique"),
                    )
                    .help("write the assembly as one flat mesh"));
            }
        }
        let mut assembly = Assembly::new("Abaqus input");
        if self.nodes.len() > limits::NODES {
            return Err(cursor.error(format!(
                "{} nodes, at most {}",
                self.nodes.len(),
                limits::NODES
            )));
        }
        let numbering = rank_nodes(&cursor, self.nodes, &mut assembly)?;
        let mut ids: Vec<(u64, usize)> =
            self.elements.iter().map(|&(_, id, at)| (id, at)).collect();
        assembly.set_element_ids(ids.iter().map(|&(id, _)| id).collect());
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (id, offset) = pair[1];
            return Err(cursor.error_at(offset, format!("element {id} is given twice")));
        }
        let mut element_nodes = self.element_nodes.into_iter();
        let mut own = Vec::new();
        for (element_type, id, offset) in self.elements {
            own.clear();
            let nodes = element_nodes.by_ref().take(element_type.node_count());
            for node in nodes.filter(|&node| node != NO_NODE) {
                own.push(numbering.rank(node).ok_or_else(|| {
                    cursor.error_at(
                        offset,
                        format!("element {id} has node {node}, which is not in the file"),
                    )
                })?);
            }
            let shape = if own.len() == 1 { Shape::Point } else { element_type.shape() };
            let Some(element_type) = ElementType::new(shape, own.len()) else {
                return Err(cursor.error_at(offset, format!("element {id} has no nodes")));
            };
            push_element(&cursor, &mut assembly, element_type, &own)?;
        }
        for (name, count) in self.sets {
            assembly.add_group(name, count);
        }
        if self.reference_points > 0 {
            let what = format!("{} nodes of the assembly", self.reference_points);
            assembly.add_unused(what, "reference points, which no element has");
        }
        let mut others = Vec::new();
        for (name, count) in self.unused {
            let what = if count == 1 { format!("*{name}") } else { format!("*{name} ({count})") };
            if COUPLING.contains(&name.as_str()) {
                assembly.add_unused(what, "couples nodes without an element; the exchange has the nodes that elements share");
            } else {
                others.push(what);
            }
        }
        if !others.is_empty() {
            assembly.add_unused(others.join(", "), "no nodes and no elements");
        }
        Ok(assembly)
    }
}

/// Radius, angle in degrees and height.
fn polar(radius: f64, angle: f64, height: f64) -> [f64; 3] {
    let (sine, cosine) = angle.to_radians().sin_cos();
    [radius * cosine, radius * sine, height]
}

/// The fields of a data line, separated by commas.
struct Fields<'a> {
    /// Place of the line that is left.
    start: usize,
    line: &'a [u8],
}

impl<'a> Fields<'a> {
    fn at_end(&self) -> bool {
        self.line.trim_ascii().is_empty()
    }

    fn offset(&self) -> usize {
        self.start + self.line.iter().take_while(|b| b.is_ascii_whitespace()).count()
    }

    /// The next field, trimmed, with its place.
    fn next(&mut self) -> (usize, &'a [u8]) {
        let offset = self.offset();
        let end = self.line.iter().position(|&b| b == b',').unwrap_or(self.line.len());
        let field = self.line[..end].trim_ascii();
        let used = (end + 1).min(self.line.len());
        self.line = &self.line[used..];
        self.start += used;
        (offset, field)
    }

    fn integer(&mut self, cursor: &Cursor<'_>, what: &str) -> Result<u64> {
        let (offset, field) = self.next();
        let digits = field.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(field).ok());
        digits.flatten().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let message = format!("`{}` is not an unsigned integer; expected {what}", show(field));
            cursor.error_at(offset, message)
        })
    }

    /// A number; an empty field is 0.
    fn real(&mut self, cursor: &Cursor<'_>, what: &str) -> Result<f64> {
        let (offset, field) = self.next();
        if field.is_empty() {
            return Ok(0.0);
        }
        let text = String::from_utf8_lossy(field).replace(['d', 'D'], "e");
        text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| {
            let message = format!("`{}` is not a finite number; expected {what}", show(field));
            cursor.error_at(offset, message)
        })
    }
}
