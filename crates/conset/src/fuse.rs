//! Several sets as one, so that they share phases and their switches.
//!
//! A program that exchanges two sets one after the other switches for each. Where what the second
//! sends does not depend on what the first received, both can be exchanged at the same time: as
//! one set, whose connections fill the channels that either set alone leaves free. The caller says
//! which sets may be joined, because dependence between sets is the program's and not in them;
//! here it is found out whether joining pays, by compiling both ways.
//!
//! The joined set is named after its members, with dots between. Its connections are those of the
//! first member in their order, then those of the second, and so on, with their names, order and
//! requirements; a name that two members have gets its set's name in front. Lists of nodes are
//! kept if all members have them. It stands where its first member stood.

use std::collections::HashSet;
use std::sync::Arc;

use conset_ir::{
    At, ConnectionId, ConnectionSet, InputError, Machine, NodeLists, Program, Schedule, SetSchedule,
};

use crate::compile::{CompileError, Compiled, Options, adopt, compile};
use crate::{Observer, Progress};

/// What became of one group of sets that may be joined.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Fusion {
    /// The names of its sets.
    pub sets: Vec<String>,
    /// Whether they were joined, because that is faster.
    pub fused: bool,
    /// Phases one after the other.
    pub phases_apart: usize,
    /// Phases as one set.
    pub phases_fused: usize,
    /// Predicted clocks one after the other.
    pub clocks_apart: u64,
    /// Predicted clocks as one set.
    pub clocks_fused: u64,
}

/// Compiles a program in which each group of sets, given by name, may be joined into one; those
/// are joined for which that is faster. [`Compiled::fusions`] says what became of each group.
///
/// # Errors
/// A group of fewer than two sets, a name that no set has or that is in two groups, a joined set
/// beyond the limits; and as [`compile`].
pub fn compile_fused(
    machine: &Arc<Machine>,
    program: &Program,
    groups: &[Vec<String>],
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let groups = members(program, groups)?;
    let joined = groups.iter().map(|rows| join(program, rows)).collect::<Result<Vec<_>, _>>()?;
    let mut apart = compile(machine, program, options, observer)?;
    let mut sets: Vec<Option<SetSchedule>> =
        apart.schedule().sets().iter().cloned().map(Some).collect();
    let mut fusions = Vec::new();
    let mut refused = apart.candidates_refused();
    for (rows, set) in groups.iter().zip(joined) {
        observer(Progress::Stage("joining sets"));
        let name = set.name().to_owned();
        let whole = compile(machine, &set.into(), options, observer)?;
        refused += whole.candidates_refused();
        let whole = &whole.schedule().sets()[0];
        let own = || rows.iter().map(|&row| &apart.schedule().sets()[row]);
        let fusion = Fusion {
            sets: own().map(|set| set.timetable.routing().set().name().to_owned()).collect(),
            fused: whole.predicted_clocks < own().map(|set| set.predicted_clocks).sum(),
            phases_apart: own().map(|set| set.timetable.phases().len()).sum(),
            phases_fused: whole.timetable.phases().len(),
            clocks_apart: own().map(|set| set.predicted_clocks).sum(),
            clocks_fused: whole.predicted_clocks,
        };
        if fusion.fused {
            let taken = |set: &SetSchedule| set.timetable.routing().set().name() == name;
            if sets.iter().flatten().any(taken) {
                return Err(wrong(format!("the joined set would be a second `{name}`")).into());
            }
            for &row in rows {
                sets[row] = None;
            }
            sets[rows[0]] = Some(whole.clone());
        }
        fusions.push(fusion);
    }
    if fusions.iter().all(|fusion| !fusion.fused) {
        (apart.fusions, apart.candidates_refused) = (fusions, refused);
        return Ok(apart);
    }
    let origin = apart.schedule().origin().cloned();
    let sets: Vec<SetSchedule> = sets.into_iter().flatten().collect();
    let schedule = Schedule::new(machine.clone(), sets, origin)
        .map_err(|e| CompileError::bug("joining sets", &e))?
        .with_digest();
    let mut compiled = adopt(schedule, observer).map_err(|e| match e {
        CompileError::Rejected(rejection) => CompileError::bug("joining sets", &rejection),
        other => other,
    })?;
    (compiled.fusions, compiled.candidates_refused) = (fusions, refused);
    Ok(compiled)
}

fn wrong(message: String) -> InputError {
    InputError::new("--fuse", At::Whole, message)
}

/// The rows of each group's sets, ascending.
fn members(program: &Program, groups: &[Vec<String>]) -> Result<Vec<Vec<usize>>, InputError> {
    let mut used = HashSet::new();
    let mut all = Vec::new();
    for group in groups {
        let mut rows = Vec::new();
        for name in group {
            let row = program.sets().iter().position(|set| set.name() == name);
            let row = row.ok_or_else(|| {
                let names: Vec<&str> = program.sets().iter().map(|set| set.name()).collect();
                wrong(format!("there is no set `{name}`"))
                    .help(format!("the sets are {}", names.join(", ")))
            })?;
            if !used.insert(row) {
                return Err(wrong(format!("set `{name}` is named twice")));
            }
            rows.push(row);
        }
        if rows.len() < 2 {
            return Err(wrong("one set alone cannot be joined; name two or more".into()));
        }
        rows.sort_unstable();
        all.push(rows);
    }
    Ok(all)
}

/// The joined set of a group.
fn join(program: &Program, rows: &[usize]) -> Result<ConnectionSet, InputError> {
    let sets = || rows.iter().map(|&row| &program.sets()[row]);
    let mut names = HashSet::new();
    let all = || sets().flat_map(|set| set.connections()).filter_map(|c| c.name.as_deref());
    let twice: HashSet<&str> = all().filter(|name| !names.insert(*name)).collect();
    let mut connections = Vec::new();
    let mut order = Vec::new();
    for set in sets() {
        let first = connections.len() as u32;
        let shifted = |id: ConnectionId| ConnectionId(first + id.0);
        order.extend(set.order().iter().map(|&(a, b)| (shifted(a), shifted(b))));
        connections.extend(set.connections().iter().cloned().map(|mut connection| {
            if let Some(name) = connection.name.as_deref().filter(|name| twice.contains(name)) {
                connection.name = Some(format!("{}.{name}", set.name()).into());
            }
            connection
        }));
    }
    let beyond = |e: conset_ir::ShapeError| wrong(format!("{}: {}", e.place, e.message));
    let name: Vec<&str> = sets().map(|set| set.name()).collect();
    let joined = ConnectionSet::new(name.join("."), connections).map_err(beyond)?;
    let joined = joined.with_order(order).map_err(beyond)?;
    if sets().all(|set| set.is_empty() || set.nodes().is_some()) {
        let lists = sets().filter_map(|set| Some((set, set.nodes()?)));
        let lists = lists.flat_map(|(set, nodes)| set.iter().map(|(id, _)| nodes.of(id)));
        return joined.with_nodes(NodeLists::from_lists(lists)).map_err(beyond);
    }
    Ok(joined)
}
