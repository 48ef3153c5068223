//! Machine files: descriptions of machines in TOML.
//!
//! ```toml
//! preset = "iwarp"            # optional: start from a preset and change its values below
//! name = "our iWarp"
//! channels_per_cell = 20      # any parameter of the machine model
//! duplex = "half"
//! dead_cells = [5]
//! dead_links = [[3, 4]]
//!
//! [topology]                  # required without a preset
//! kind = "torus"
//! dims = [8, 8]
//! ```
//!
//! Without a preset, `name` and `[topology]` are required and parameters default to those of
//! `iwarp`. Unknown keys are errors. The file is read value by value instead of deserialised, so
//! that every error has the position of the value that caused it.

use std::fmt::Write;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::convert::to_u32;
use crate::error::{InputError, Result, ShapeError};
use crate::ids::{CellId, LinkId};
use crate::limits;
use crate::links::LinkFinder;
use crate::machine::{Duplex, Machine, Parameters, Protocol};
use crate::position::{did_you_mean, locate};
use crate::topology::Topology;

type TomlValue<'a> = Spanned<DeValue<'a>>;

/// Parses a machine file. `name` is the name of the file in error messages.
///
/// # Errors
/// Invalid TOML, an unknown key, a value of the wrong type or out of range, or an impossible
/// machine; with line, column and offset.
///
/// ```
/// let text = "preset = \"iwarp:4x4\"\nchannels_per_cell = 20\n";
/// let machine = conset_ir::machine_file::parse("ours.toml", text)?;
/// assert_eq!(machine.parameters().channels_per_cell, 20);
///
/// let error = conset_ir::machine_file::parse("ours.toml", "t_sync = -3\n").unwrap_err();
/// assert!(error.to_string().starts_with("ours.toml:1:10: expected a whole number"));
/// # Ok::<(), conset_ir::InputError>(())
/// ```
pub fn parse(name: &str, text: &str) -> Result<Machine> {
    let file = MachineFile { name, text };
    let table = DeTable::parse(text).map_err(|e| file.error(e.span(), e.message()))?.into_inner();
    let mut draft = file.base(&table)?;
    let (mut dead_cells, mut dead_links) = (None, None);
    for (key, value) in &table {
        let key_name = key.get_ref().as_ref();
        match key_name {
            "preset" => {}
            "name" => draft.name = Some(file.string(value)?.to_owned()),
            "topology" => draft.topology = Some(file.topology(value)?),
            "duplex" => draft.parameters.duplex = file.duplex(value)?,
            "protocol" => draft.parameters.protocol = file.protocol(value)?,
            "dead_cells" => dead_cells = Some(value),
            "dead_links" => dead_links = Some(value),
            _ => file.parameter(&mut draft.parameters, key.span(), key_name, value)?,
        }
    }
    let missing =
        |what: &str| file.error(None, format!("expected `{what}`, or a `preset` to start from"));
    let machine_name = draft.name.ok_or_else(|| missing("name"))?;
    let topology = draft.topology.ok_or_else(|| missing("[topology]"))?;
    let wrong = |e: ShapeError| {
        let key = e.place.rsplit('.').next().unwrap_or_default();
        let at = table.get(key).or(table.get("topology")).or(table.get("preset"));
        file.error(at.map(Spanned::span), e.message)
    };
    let whole =
        Machine::new(machine_name, topology, draft.parameters, vec![], vec![]).map_err(wrong)?;
    let dead_cells = match dead_cells {
        Some(list) => file.dead_cells(&whole, list)?,
        None => Vec::new(),
    };
    let dead_links = match dead_links {
        Some(list) => file.dead_links(&whole, list)?,
        None => Vec::new(),
    };
    if dead_cells.is_empty() && dead_links.is_empty() {
        return Ok(whole);
    }
    let (topology, parameters) = (whole.topology().clone(), whole.parameters().clone());
    Machine::new(whole.name(), topology, parameters, dead_cells, dead_links).map_err(wrong)
}

/// The values read so far.
struct MachineDraft {
    name: Option<String>,
    topology: Option<Topology>,
    parameters: Parameters,
}

struct MachineFile<'a> {
    name: &'a str,
    text: &'a str,
}

impl MachineFile<'_> {
    fn error(&self, span: Option<Range<usize>>, message: impl Into<String>) -> InputError {
        let offset = span.map_or(0, |span| span.start);
        InputError::new(self.name, locate(self.text.as_bytes(), offset), message)
    }

    fn expected(&self, value: &TomlValue<'_>, what: &str) -> InputError {
        let found = value.get_ref().type_str();
        self.error(Some(value.span()), format!("expected {what}, found {found}"))
    }

    fn unknown(&self, span: Range<usize>, what: &str, word: &str, known: &[&str]) -> InputError {
        let help = match did_you_mean(word, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known: {}", known.join(", ")),
        };
        let shown: String = word.chars().take(40).flat_map(char::escape_debug).collect();
        self.error(Some(span), format!("`{shown}` is not {what}")).help(help)
    }

    /// The preset of the file, or only the parameters of `iwarp`.
    fn base(&self, table: &DeTable<'_>) -> Result<MachineDraft> {
        let Some(value) = table.get("preset") else {
            return Ok(MachineDraft {
                name: None,
                topology: None,
                parameters: Parameters::iwarp(),
            });
        };
        let preset = Machine::from_spec(self.string(value)?).map_err(|error| {
            let InputError { message, help, .. } = InputError::from(error);
            InputError { help, ..self.error(Some(value.span()), message) }
        })?;
        Ok(MachineDraft {
            name: Some(preset.name().to_owned()),
            topology: Some(preset.topology().clone()),
            parameters: preset.parameters().clone(),
        })
    }

    fn string<'v>(&self, value: &'v TomlValue<'_>) -> Result<&'v str> {
        value.get_ref().as_str().ok_or_else(|| self.expected(value, "a string"))
    }

    fn number(&self, value: &TomlValue<'_>, least: u32, most: u32) -> Result<u32> {
        let what = format!("a whole number from {least} to {most}");
        let Some(integer) = value.get_ref().as_integer() else {
            return Err(self.expected(value, &what));
        };
        u32::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.error(Some(value.span()), format!("expected {what}")))
    }

    fn array<'v>(
        &self,
        value: &'v TomlValue<'_>,
        what: &str,
    ) -> Result<impl Iterator<Item = &'v TomlValue<'v>>> {
        let array = value.get_ref().as_array().ok_or_else(|| self.expected(value, what))?;
        Ok(array.iter())
    }

    fn duplex(&self, value: &TomlValue<'_>) -> Result<Duplex> {
        match self.string(value)? {
            "full" => Ok(Duplex::Full),
            "half" => Ok(Duplex::Half),
            other => Err(self.unknown(value.span(), "a duplex", other, &["full", "half"])),
        }
    }

    fn protocol(&self, value: &TomlValue<'_>) -> Result<Protocol> {
        let name = self.string(value)?;
        Protocol::parse(name).ok_or_else(|| {
            self.unknown(value.span(), "a protocol", name, &Protocol::ALL.map(|row| row.0))
        })
    }

    fn parameter(
        &self,
        parameters: &mut Parameters,
        key_at: Range<usize>,
        key: &str,
        value: &TomlValue<'_>,
    ) -> Result<()> {
        let numbers = parameters.numbers();
        let Some(&(key, _, least, most)) = numbers.iter().find(|row| row.0 == key) else {
            let others =
                ["preset", "name", "topology", "duplex", "protocol", "dead_cells", "dead_links"];
            let known: Vec<&str> = numbers.iter().map(|row| row.0).chain(others).collect();
            return Err(self.unknown(key_at, "a key of machine files", key, &known));
        };
        let number = self.number(value, least, most)?;
        parameters
            .set(key, &number.to_string())
            .map_err(|e| self.error(Some(value.span()), e.message))
    }

    fn topology(&self, value: &TomlValue<'_>) -> Result<Topology> {
        const KINDS: [&str; 7] =
            ["torus", "mesh", "ring", "hypercube", "fat-tree", "cluster", "graph"];
        let table = value.get_ref().as_table().ok_or_else(|| self.expected(value, "a table"))?;
        let need = |key: &str| {
            let message = format!("expected the key `{key}` in the topology");
            table.get(key).ok_or_else(|| self.error(Some(value.span()), message))
        };
        let kind_value = need("kind")?;
        let kind = self.string(kind_value)?;
        let known: &[&str] = match kind {
            "torus" | "mesh" => &["kind", "dims"],
            "ring" => &["kind", "cells"],
            "hypercube" => &["kind", "dimension"],
            "fat-tree" => &["kind", "leaves", "parents"],
            "cluster" => &["kind", "nodes", "cells_per_node"],
            "graph" => &["kind", "cells", "switches", "links"],
            other => return Err(self.unknown(kind_value.span(), "a topology", other, &KINDS)),
        };
        if let Some(key) = table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            let what = format!("a key of a {kind}");
            return Err(self.unknown(key.span(), &what, key.get_ref(), known));
        }
        let size = |key: &str| self.number(need(key)?, 0, u32::MAX);
        Ok(match kind {
            "torus" => Topology::Torus { dims: self.dims(need("dims")?)? },
            "mesh" => Topology::Mesh { dims: self.dims(need("dims")?)? },
            "ring" => Topology::Ring { cells: size("cells")? },
            "hypercube" => Topology::Hypercube { dimension: size("dimension")? },
            "fat-tree" => {
                let mut topology = Topology::fat_tree(size("leaves")?);
                if let (Topology::FatTree { parents, .. }, Some(list)) =
                    (&mut topology, table.get("parents"))
                {
                    let counts = self.array(list, "a list of numbers of parents")?;
                    *parents = counts
                        .map(|count| self.number(count, 1, to_u32(limits::LINKS)))
                        .collect::<Result<_>>()?;
                }
                topology
            }
            "cluster" => Topology::Cluster {
                nodes: size("nodes")?,
                cells_per_node: match table.get("cells_per_node") {
                    Some(cells) => self.number(cells, 1, u32::MAX)?,
                    None => 1,
                },
            },
            _ => Topology::Graph {
                cells: size("cells")?,
                switches: table.get("switches").map_or(Ok(0), |_| size("switches"))?,
                links: self.links(need("links")?, size("cells")?, table)?,
            },
        })
    }

    fn dims(&self, value: &TomlValue<'_>) -> Result<Vec<u32>> {
        let sizes = self.array(value, "a list of sizes")?;
        sizes.map(|size| self.number(size, 1, to_u32(limits::CELLS))).collect()
    }

    /// The links of a graph, each checked here so that an error has its position.
    fn links(
        &self,
        value: &TomlValue<'_>,
        cells: u32,
        topology: &DeTable<'_>,
    ) -> Result<Vec<(u32, u32)>> {
        let switches = topology.get("switches").map_or(Ok(0), |v| self.number(v, 0, u32::MAX))?;
        let last = cells.saturating_add(switches).saturating_sub(1);
        let pairs = self.array(value, "a list of pairs of cells")?;
        pairs
            .map(|pair| {
                let (from, to) = self.pair(pair, last)?;
                if from == to {
                    let message = format!("a link cannot join cell {from} to itself");
                    return Err(self.error(Some(pair.span()), message));
                }
                Ok((from, to))
            })
            .collect()
    }

    fn pair(&self, value: &TomlValue<'_>, last: u32) -> Result<(u32, u32)> {
        let ends: Vec<&TomlValue<'_>> = self.array(value, "a pair of cells, [from, to]")?.collect();
        let [from, to] = ends[..] else {
            let message =
                format!("expected a pair of cells, [from, to], found {} values", ends.len());
            return Err(self.error(Some(value.span()), message));
        };
        Ok((self.number(from, 0, last)?, self.number(to, 0, last)?))
    }

    fn dead_cells(&self, machine: &Machine, list: &TomlValue<'_>) -> Result<Vec<CellId>> {
        let last = to_u32(machine.cell_count()) - 1;
        let cells = self.array(list, "a list of cells")?;
        cells.map(|cell| self.number(cell, 0, last).map(CellId)).collect()
    }

    fn dead_links(&self, machine: &Machine, list: &TomlValue<'_>) -> Result<Vec<(CellId, CellId)>> {
        let last = to_u32(machine.cell_count()) - 1;
        let finder = LinkFinder::new(machine);
        let pairs = self.array(list, "a list of pairs of cells")?;
        pairs
            .map(|pair| {
                let (from, to) = self.pair(pair, last)?;
                let (from, to) = (CellId(from), CellId(to));
                if finder.default_link(from, to) == LinkId::NONE {
                    let message = format!("no link joins {from} to {to}");
                    return Err(self.error(Some(pair.span()), message));
                }
                Ok((from, to))
            })
            .collect()
    }
}

/// The machine file of a machine, with all parameters.
pub fn write(machine: &Machine) -> String {
    let mut out = String::new();
    write_to(machine, &mut out).expect("a string takes all text");
    out
}

fn write_to(machine: &Machine, out: &mut String) -> std::fmt::Result {
    let name = machine.name().replace('\\', "\\\\").replace('"', "\\\"");
    writeln!(out, "name = \"{name}\"")?;
    let numbers = machine.parameters().stated_numbers();
    // Without this key, older programs can read the files of machines without timed starts.
    for (name, value, ..) in numbers.filter(|&row| (row.0, row.1) != ("timed_starts", 0)) {
        writeln!(out, "{name} = {value}")?;
    }
    let duplex = match machine.parameters().duplex {
        Duplex::Full => "full",
        Duplex::Half => "half",
    };
    writeln!(out, "duplex = \"{duplex}\"")?;
    if machine.parameters().protocol != Protocol::default() {
        writeln!(out, "protocol = \"{}\"", machine.parameters().protocol.name())?;
    }
    if !machine.dead_cells().is_empty() {
        let cells: Vec<u32> = machine.dead_cells().iter().map(|cell| cell.0).collect();
        writeln!(out, "dead_cells = {cells:?}")?;
    }
    if !machine.dead_links().is_empty() {
        let pairs = machine.dead_links().iter().map(|&(from, to)| (from.0, to.0));
        write_pairs("dead_links", pairs, out)?;
    }
    writeln!(out, "\n[topology]\nkind = \"{}\"", machine.topology().kind())?;
    match machine.topology() {
        Topology::Torus { dims } | Topology::Mesh { dims } => writeln!(out, "dims = {dims:?}"),
        Topology::Ring { cells } => writeln!(out, "cells = {cells}"),
        Topology::Hypercube { dimension } => writeln!(out, "dimension = {dimension}"),
        Topology::FatTree { leaves, parents } => {
            writeln!(out, "leaves = {leaves}")?;
            match machine.topology().has_own_parents() {
                true => writeln!(out, "parents = {parents:?}"),
                false => Ok(()),
            }
        }
        Topology::Cluster { nodes, cells_per_node } => {
            writeln!(out, "nodes = {nodes}\ncells_per_node = {cells_per_node}")
        }
        Topology::Graph { cells, switches, links } => {
            writeln!(out, "cells = {cells}\nswitches = {switches}")?;
            write_pairs("links", links.iter().copied(), out)
        }
    }
}

fn write_pairs(
    key: &str,
    pairs: impl Iterator<Item = (u32, u32)>,
    out: &mut String,
) -> std::fmt::Result {
    writeln!(out, "{key} = [")?;
    for (from, to) in pairs {
        writeln!(out, "  [{from}, {to}],")?;
    }
    writeln!(out, "]")
}
