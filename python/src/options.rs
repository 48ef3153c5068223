//! The options of a compilation, which have the names of the command's options.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conset::input::{LoadOptions, NodeWords, PartitionUnit};
use conset::partition_route::placement::Method;
use conset::steps::{StepAlgorithm, StepCompiler};
use conset::{Algorithm, CompileOptions, Objective};
use conset_ir::{At, CellId, InputError, Machine, machine_file};
use conset_mesh::halo::HaloKind;
use pyo3::prelude::*;

use crate::files;

/// The share of the time limit that the search for a partition may take, as in the command.
const PARTITION_SHARE: f64 = 0.5;

/// The options, as the package passes them; it has checked the ranges of all numbers.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    machine: Option<String>,
    params: Vec<(String, String)>,
    dead_cells: Vec<u32>,
    dead_links: Vec<(u32, u32)>,
    pub(crate) format: Option<String>,
    parts: Option<usize>,
    partition: Option<PathBuf>,
    partition_lines: Option<Vec<u8>>,
    repartition: bool,
    ignore_periodic: bool,
    elements: String,
    halo: Option<String>,
    layers: Option<u32>,
    words_each: Option<u32>,
    words_file: Option<PathBuf>,
    words_lines: Option<Vec<u8>>,
    placement: Option<String>,
    seed: u64,
    memory: Option<u64>,
    /// What a source is compiled to: `phases`, `steps`, or `best` of the two.
    pub(crate) by: String,
    algorithm: Option<String>,
    objective: Option<String>,
    rip_up_iterations: Option<u32>,
    max_phases: Option<u32>,
    max_plans: Option<u32>,
    /// In thousandths.
    imbalance: Option<u32>,
    max_partitions: Option<u32>,
    time_limit: Option<f64>,
    unlimited: bool,
    pub(crate) fuse: Vec<Vec<String>>,
}

/// The name and the bytes of a file with a number for each item.
pub(crate) type NumberFile = (String, Vec<u8>);

/// The files of numbers that the options name, or the numbers themselves as such files.
#[derive(Default)]
pub(crate) struct NumberFiles {
    partition: Option<NumberFile>,
    words: Option<NumberFile>,
}

impl Options {
    /// The machine without its dead parts: the one that is named, else `own`, else the default.
    pub(crate) fn whole_machine(
        &self,
        own: Option<Arc<Machine>>,
    ) -> Result<Arc<Machine>, InputError> {
        let machine = match (&self.machine, own) {
            (Some(spec), _) => Arc::new(named_machine(spec)?),
            (None, Some(own)) => own,
            (None, None) => Arc::new(named_machine("iwarp")?),
        };
        if self.params.is_empty() {
            return Ok(machine);
        }
        let mut parameters = machine.parameters().clone();
        for (key, value) in &self.params {
            parameters.set(key, value).map_err(|mut error| {
                error.file = "--param".to_owned();
                error
            })?;
        }
        let changed = machine.with_parameters(parameters);
        Ok(Arc::new(changed.map_err(|e| e.in_file("--param"))?))
    }

    /// The machine without the dead cells and links.
    pub(crate) fn without_dead(&self, machine: Arc<Machine>) -> Result<Arc<Machine>, InputError> {
        if self.dead_cells.is_empty() && self.dead_links.is_empty() {
            return Ok(machine);
        }
        let cells: Vec<CellId> = self.dead_cells.iter().copied().map(CellId).collect();
        let link = |&(from, to): &(u32, u32)| (CellId(from), CellId(to));
        let links: Vec<(CellId, CellId)> = self.dead_links.iter().map(link).collect();
        Ok(Arc::new(machine.with_dead(&cells, &links).map_err(|e| e.in_file("--dead"))?))
    }

    /// Reads the files that belong to the input.
    pub(crate) fn number_files(&self) -> Result<NumberFiles, InputError> {
        let numbers = |name: &str, lines: &Option<Vec<u8>>, file: &Option<PathBuf>| match lines {
            Some(lines) => Ok(Some((name.to_owned(), lines.clone()))),
            None => file.as_deref().map(files::read).transpose(),
        };
        Ok(NumberFiles {
            partition: numbers("<partition>", &self.partition_lines, &self.partition)?,
            words: numbers("<words-per-node>", &self.words_lines, &self.words_file)?,
        })
    }

    /// A function that says when the search for a partition ends, if there is a time limit.
    pub(crate) fn end_of_partitions(&self) -> Option<Box<dyn Fn() -> bool + Sync>> {
        let limit = Duration::try_from_secs_f64(self.time_limit? * PARTITION_SHARE).ok()?;
        let start = Instant::now();
        Some(Box::new(move || start.elapsed() >= limit))
    }

    /// The options for reading an input; `stop` ends the search for a partition.
    pub(crate) fn load<'a>(
        &'a self,
        files: &'a NumberFiles,
        stop: Option<&'a (dyn Fn() -> bool + Sync)>,
    ) -> LoadOptions<'a> {
        let options = self.load_without_limit(files);
        match stop {
            Some(stop) => options.stop_when(stop),
            None => options,
        }
    }

    fn load_without_limit<'a>(&'a self, files: &'a NumberFiles) -> LoadOptions<'a> {
        let name_and_bytes = |file: &'a NumberFile| (file.0.as_str(), file.1.as_slice());
        let words_file = files.words.as_ref().map(name_and_bytes);
        LoadOptions::default()
            .halo(self.halo())
            .layers(self.layers)
            .words_per_node(match (self.words_each, words_file) {
                (Some(words), _) => Some(NodeWords::Each(words)),
                (None, Some((name, bytes))) => Some(NodeWords::File(name, bytes)),
                (None, None) => None,
            })
            .format(self.format.as_deref())
            .parts(self.parts)
            .partition(files.partition.as_ref().map(name_and_bytes))
            .elements(match self.elements.as_str() {
                "triangles" => PartitionUnit::Triangles,
                _ => PartitionUnit::AsRead,
            })
            .placement(self.placement().unwrap_or_default())
            .seed(self.seed)
            .memory(self.memory)
            .ignore_periodic(self.ignore_periodic)
            .repartition(self.repartition)
            .imbalance(self.imbalance)
            .max_partitions(self.max_partitions.or(self.max_plans))
            .objective(self.objective())
    }

    /// What parts exchange, if it is named.
    fn halo(&self) -> Option<HaloKind> {
        let name = self.halo.as_deref()?;
        HaloKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The placement, if one is named.
    pub(crate) fn placement(&self) -> Option<Method> {
        self.placement.as_deref().map(|name| match name {
            "given" => Method::Given,
            "curve" => Method::Curve,
            "bisect" => Method::Bisect,
            _ => Method::Best,
        })
    }

    /// What the compilation minimises.
    fn objective(&self) -> Objective {
        match self.objective.as_deref() {
            Some("phases") => Objective::Phases,
            _ => Objective::Time,
        }
    }

    /// The seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The options of the compiler.
    pub(crate) fn compile(&self) -> CompileOptions {
        CompileOptions::new()
            .seed(self.seed)
            .algorithm(match self.algorithm.as_deref() {
                Some("paper") => Algorithm::Paper,
                _ => Algorithm::Auto,
            })
            .objective(self.objective())
            .rip_up_iterations(self.rip_up_iterations)
            .max_phases(self.max_phases)
            .max_plans(self.max_plans)
            .unlimited(self.unlimited)
    }

    /// The planner of steps that `algorithm` names, or all of them.
    pub(crate) fn step_algorithm(&self) -> Result<StepAlgorithm, InputError> {
        match (self.by.as_str(), self.algorithm.as_deref()) {
            ("phases", _) | (_, None | Some("auto" | "best")) => Ok(StepAlgorithm::Best),
            (_, Some(name)) => StepAlgorithm::parse(name)
                .map_err(|e| InputError::new("--algorithm", At::Path(name.to_owned()), e.message)),
        }
    }

    /// The compiler to steps.
    pub(crate) fn compile_steps(
        &self,
        machine: &Arc<Machine>,
        algorithm: StepAlgorithm,
    ) -> StepCompiler {
        StepCompiler::new(machine)
            .algorithm(algorithm)
            .seed(self.seed)
            .max_plans(self.max_plans)
            .unlimited(self.unlimited)
    }

    /// When the search has to end, if there is a time limit.
    pub(crate) fn end_of_search(&self) -> Option<Instant> {
        let limit = Duration::try_from_secs_f64(self.time_limit?).ok()?;
        Instant::now().checked_add(limit)
    }

    /// Refuses options that need parts, for inputs that name cells. `help` says what to do instead.
    pub(crate) fn refuse_parts(&self, message: &str, help: &str) -> Result<(), InputError> {
        let given = [
            ("--parts", self.parts.is_some()),
            ("--partition", self.partition.is_some() || self.partition_lines.is_some()),
            ("--format", self.format.is_some()),
            ("--elements", self.elements == "triangles"),
            ("--repartition", self.repartition),
            ("--imbalance", self.imbalance.is_some()),
            ("--max-partitions", self.max_partitions.is_some()),
            ("--ignore-periodic", self.ignore_periodic),
            ("--halo", self.halo.is_some()),
            ("--layers", self.layers.is_some()),
            (
                "--words-per-node",
                self.words_each.is_some()
                    || self.words_file.is_some()
                    || self.words_lines.is_some(),
            ),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(InputError::new(*option, At::Whole, message).help(help)),
        }
    }
}

/// The machine of a specification or of a machine file.
fn named_machine(spec: &str) -> Result<Machine, InputError> {
    if !spec.ends_with(".toml") {
        let machine = Machine::from_spec(spec);
        return machine.map_err(|e| e.with_alternative("give a machine file ending in .toml"));
    }
    let (name, bytes) = files::read(Path::new(spec))?;
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        InputError::new(&name, At::Byte(e.valid_up_to()), "not UTF-8, expected a TOML text")
    })?;
    machine_file::parse(&name, text)
}
