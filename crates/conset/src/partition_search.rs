//! The search for the partition of a mesh, graph or matrix.
//!
//! The bounds of a compilation hold for one partition, and another partition may have lower ones:
//! one part with one neighbour more costs a phase. So partitions are candidates, as plans are.
//!
//! 1. METIS makes candidates with several seeds (the given one first), for a small edge cut, for a
//!    small communication volume, and by recursive bisection ([`candidate`]). Each is repaired for
//!    what binds the exchange ([`conset_mesh::partition::repair`]).
//! 2. Candidates are compared by the phases and clocks that they need at least wherever they are
//!    placed, plus a fraction of what the channels of all connections cost.
//! 3. The best of these are placed by bisection, and the placement's cost says for which of them
//!    routes crowd least.
//! 4. The best few, and the given seed's partition without repair, are placed as requested, and two
//!    plans are made for each. The cheapest one is taken.
//!
//! A partition that an imbalance limit refuses is taken only if there is no other. Candidates are
//! independent and are compared in a fixed order, so the result does not depend on the number of
//! threads. Their number follows from the size of the input: the work of the search is limited by a
//! count. A partition that the user or the file gives is not changed.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use conset_ir::convert::{index, to_u64};
use conset_ir::{CellId, ConnectionSet, Duplex, InputError, Machine};
use conset_mesh::Source;
use conset_mesh::halo::Halo;
use conset_mesh::partition::repair::{ExchangeCost, Nets};
use conset_mesh::partition::{
    DEFAULT_IMBALANCE, Partition, PartitionMethod, PartitionOptions, Partitioner,
};
use conset_partition_route::placement::{self, Method};
use serde::Serialize;

use crate::input::{LoadOptions, placement_bug};
use crate::{CompileError, Compiler, Objective, Observer, Progress, parallel};

/// The work of all candidates of a default search together, and the greatest number of candidates.
/// An item, an edge and a part count as their share of METIS's time (measured).
const PARTITION_BUDGET: usize = 7 << 19;
const PART_WORK: usize = 4800;
const MAX_CANDIDATES: usize = 12;

/// Candidates without a better one after which a search that is not bounded otherwise ends.
const PATIENCE: usize = 32;

/// Candidates that are made at the same time.
const WAVE: usize = 8;

/// Changes that the repairs of a default search try together, and one of them at most.
const REPAIR_BUDGET: u64 = 1 << 22;
const REPAIR_LIMIT: u64 = 1 << 20;

/// Candidates that are placed and planned, by the number of their connections.
const FINALISTS: [(usize, usize); 3] = [(1 << 7, 4), (1 << 10, 2), (usize::MAX, 1)];

/// Candidates that are placed by bisection, if more than the finalists are.
const BISECTED: usize = 8;

/// The price of the given seed's partition, in percent of the best one's, above which it is not
/// placed.
const FIRST_ABOVE: u64 = 105;

/// Plans of a trial.
const TRIAL: u32 = 2;

/// How a partition was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartitionReport {
    /// Partitions that were looked at; 0 if the partition was given.
    pub looked_at: usize,
    /// How METIS made the partition; `given` if it did not.
    pub method: &'static str,
    /// The seed that METIS had, if it made the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Items that moved to another part after that.
    pub moved: usize,
    /// By how many percent the heaviest part exceeds the average.
    pub imbalance_percent: f64,
    /// Weight of the edges between parts in the graph that METIS divides.
    pub cut: u64,
}

impl PartitionReport {
    /// The report on a partition that was given; `None` for a list of connections, which has parts
    /// but nothing that was divided.
    pub(crate) fn given(source: &Source, partition: &Partition) -> Option<Self> {
        let imbalance = match source {
            Source::Connections(_) => return None,
            _ => conset_mesh::partition::imbalance(source, partition),
        };
        Some(Self {
            looked_at: 0,
            method: "given",
            seed: None,
            moved: 0,
            imbalance_percent: percent(imbalance),
            cut: conset_mesh::partition::cut(source, partition),
        })
    }
}

/// A placed partition.
pub(crate) struct Found {
    pub(crate) halo: Halo,
    pub(crate) place: Vec<CellId>,
    /// The set on the cells of the machine.
    pub(crate) set: ConnectionSet,
    pub(crate) report: Option<PartitionReport>,
}

/// Computes the exchange of a partition.
pub(crate) type ExchangeFn<'a> = dyn Fn(&Partition) -> Result<Halo, InputError> + Sync + 'a;

/// The search for one input's partition.
pub(crate) struct PartitionSearch<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a Source,
    pub(crate) machine: &'a Machine,
    pub(crate) options: &'a LoadOptions<'a>,
    pub(crate) exchange: &'a ExchangeFn<'a>,
}

/// A candidate and its price before it is placed.
struct Candidate {
    partition: Partition,
    halo: Halo,
    options: PartitionOptions,
    moved: usize,
    score: Score,
}

/// The order of candidates: balanced ones first, then by phases and clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    unbalanced: bool,
    price: (u64, u64),
    words: u64,
}

impl PartitionSearch<'_> {
    /// Places a given partition.
    pub(crate) fn given(
        &self,
        partition: &Partition,
        observer: &mut Observer<'_>,
    ) -> Result<Found, CompileError> {
        let halo = (self.exchange)(partition)?;
        observer(Progress::Stage("placing parts"));
        self.placed(halo, PartitionReport::given(self.source, partition))
    }

    /// The best of the partitions that are looked at.
    pub(crate) fn best(
        &self,
        parts: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Found, CompileError> {
        let partitioner = Partitioner::new(self.source, parts, self.name)?;
        let most = self.most_candidates(&partitioner);
        let is_searched = parts > 1 && most > 1 && parts <= self.machine.endpoints().count();
        if !is_searched {
            let options = self.candidate(0, parts);
            let partition = partitioner.partition(&options)?;
            observer(Progress::Stage("finding the halo"));
            let halo = (self.exchange)(&partition)?;
            observer(Progress::Stage("placing parts"));
            let report = report(&partitioner, &partition, &options, 0, 1);
            return self.placed(halo, Some(report));
        }
        let (first, mut candidates, looked_at) = self.candidates(&partitioner, parts, most)?;
        candidates.sort_by_key(|candidate| candidate.score);
        observer(Progress::Stage("placing parts"));
        let connections = candidates.first().map_or(0, |best| best.halo.set.len());
        let finalists = FINALISTS.iter().find(|(most, _)| connections <= *most);
        self.keep_best_placed(&mut candidates, finalists.map_or(1, |finalists| finalists.1));
        let best = self.cheapest(first, candidates)?;
        let (Candidate { partition, halo, options, moved, .. }, place) = best;
        let report = report(&partitioner, &partition, &options, moved, looked_at);
        let set = self.on_cells(&halo, &place)?;
        Ok(Found { halo, place, set, report: Some(report) })
    }

    /// The number of candidates.
    fn most_candidates(&self, partitioner: &Partitioner) -> usize {
        let work = partitioner.size() + PART_WORK * partitioner.parts();
        let by_size = (PARTITION_BUDGET / work.max(1)).clamp(1, MAX_CANDIDATES);
        match (self.options.max_partitions, self.options.stop) {
            (Some(most), _) => index(most).max(1),
            (None, Some(_)) => usize::MAX,
            (None, None) => by_size,
        }
    }

    /// The way in which a candidate is made. The given seed's partition is the first one.
    fn candidate(&self, number: usize, parts: usize) -> PartitionOptions {
        const METHODS: [PartitionMethod; 4] = [
            PartitionMethod::KwayCut,
            PartitionMethod::KwayVolume,
            PartitionMethod::KwayCut,
            PartitionMethod::Bisection,
        ];
        let (round, turn) = (number / METHODS.len(), number % METHODS.len());
        // Two candidates of a round have the same method, with different seeds.
        let seed = to_u64(2 * round + usize::from(turn == 2));
        PartitionOptions::new(parts)
            .method(METHODS[turn])
            .seed(self.options.seed.wrapping_add(seed))
            .imbalance(self.imbalance())
    }

    fn imbalance(&self) -> u32 {
        self.options.imbalance.unwrap_or(DEFAULT_IMBALANCE)
    }

    /// The first candidate without repair, all candidates, and the number of partitions that were
    /// looked at.
    fn candidates(
        &self,
        partitioner: &Partitioner,
        parts: usize,
        most: usize,
    ) -> Result<(Candidate, Vec<Candidate>, usize), CompileError> {
        let cost = self.cost();
        let nets = Nets::new(self.source);
        let work = (REPAIR_BUDGET / to_u64(most.min(MAX_CANDIDATES))).min(REPAIR_LIMIT);
        let make = |number: usize| -> Result<(Candidate, Option<Candidate>), CompileError> {
            let options = self.candidate(number, parts);
            let made = partitioner.partition(&options)?;
            let imbalance = self.imbalance();
            let (repaired, moved) = partitioner.repair(&nets, &made, cost, imbalance, work);
            let raw = self.scored(partitioner, made, options, 0)?;
            let repaired = match moved {
                0 => None,
                _ => Some(self.scored(partitioner, repaired, options, moved)?),
            };
            Ok((raw, repaired))
        };
        let most = if partitioner.is_fixed() { 1 } else { most };
        let by_size = self.options.max_partitions.is_none() && self.options.stop.is_none();
        let mut first = None;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut known = HashSet::new();
        let (mut looked_at, mut best_at) = (0, 0);
        let mut best: Option<Score> = None;
        while looked_at < most && (by_size || looked_at < best_at + PATIENCE) {
            if first.is_some() && self.options.stop.is_some_and(|stop| stop.is_over()) {
                break;
            }
            // The time is looked at often if there is a limit.
            let wave = if self.options.stop.is_some() { 1 } else { WAVE };
            let numbers: Vec<_> = (looked_at..most.min(looked_at + wave)).collect();
            for pair in parallel::map(&numbers, |&number| make(number)) {
                let (raw, repaired) = pair?;
                looked_at += 1;
                let candidate = match repaired {
                    Some(repaired) if repaired.score < raw.score => {
                        first.get_or_insert(raw);
                        repaired
                    }
                    _ if first.is_none() => {
                        first = Some(raw);
                        continue;
                    }
                    _ => raw,
                };
                if best.is_none_or(|best| candidate.score < best) {
                    (best, best_at) = (Some(candidate.score), looked_at);
                }
                if known.insert(candidate.partition.part_of().to_vec()) {
                    candidates.push(candidate);
                }
            }
            // Only the best ones are placed.
            candidates.sort_by_key(|candidate| candidate.score);
            candidates.truncate(BISECTED);
        }
        let first = first.ok_or_else(|| CompileError::bug("the partitioner", &"no partition"))?;
        Ok((first, candidates, looked_at))
    }

    /// The cost of an exchange on the machine, as far as the placement does not change it.
    fn cost(&self) -> ExchangeCost {
        let parameters = self.machine.parameters();
        let channels = u64::from(parameters.channels_per_cell);
        let word = u64::from(parameters.access_clocks_per_word);
        ExchangeCost::new(parameters.switch_clocks(), channels, word)
            .setup(u64::from(parameters.stream_setup), u64::from(parameters.streams))
            .half_duplex(parameters.duplex == Duplex::Half)
            .phases_first(self.options.objective == Objective::Phases)
    }

    /// A candidate with its score.
    fn scored(
        &self,
        partitioner: &Partitioner,
        partition: Partition,
        options: PartitionOptions,
        moved: usize,
    ) -> Result<Candidate, CompileError> {
        let halo = (self.exchange)(&partition)?;
        let unbalanced = !partitioner.is_balanced(&partition, self.imbalance());
        let cost = self.cost();
        let mut totals = vec![[(0u64, 0u64); 2]; partition.part_count()];
        for connection in halo.set.connections() {
            for (cell, direction) in [(connection.source, 0), (connection.target, 1)] {
                let total = &mut totals[cell.index()][direction];
                *total = (total.0 + u64::from(connection.words), total.1 + 1);
            }
        }
        let ends = totals.iter().map(|[out, into]| out.1 + into.1).max().unwrap_or(0);
        let load = totals.iter().map(|&[out, into]| cost.load(out, into)).max().unwrap_or(0);
        // Connections take channels on their routes, so fewer of them leave the router more freedom.
        let cells = to_u64(self.machine.endpoints().count().max(1));
        let channels = cells.saturating_mul(cost.ends_per_phase).max(1);
        let crowding = cost.phase_clocks.saturating_mul(to_u64(halo.set.len())) / channels;
        let price = cost.price(cost.phases(ends), load + crowding / 2);
        let score = Score { unbalanced, price, words: halo.summary.words };
        Ok(Candidate { partition, halo, options, moved, score })
    }

    /// Keeps the candidates whose bisected placement costs least, and orders them so.
    fn keep_best_placed(&self, candidates: &mut Vec<Candidate>, most: usize) {
        if most == 1 || candidates.len() <= most {
            candidates.truncate(most);
            return;
        }
        let method = match self.options.placement {
            Method::Best => Method::Bisect,
            method => method,
        };
        let cost = |candidate: &Candidate| {
            let (parts, seed) = (candidate.halo.summary.parts, self.options.seed);
            let set = &candidate.halo.set;
            let place = placement::place(self.machine, set, parts, method, seed).ok()?;
            let cost = placement::cost(self.machine, set, &place, seed).ok()?;
            let cost = match self.options.objective {
                Objective::Time => (cost.clocks, cost.phases),
                Objective::Phases => (cost.phases, cost.clocks),
            };
            Some((candidate.score.unbalanced, cost.0, cost.1))
        };
        let costs = parallel::map(candidates, cost);
        let mut costs: Vec<_> = costs.into_iter().zip(std::mem::take(candidates)).collect();
        // A set without a placement comes last. The sort is stable, so the score breaks ties.
        costs.sort_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        candidates.extend(costs.into_iter().take(most).map(|(_, candidate)| candidate));
    }

    /// The cheapest of the candidates after they are placed, and its cells.
    fn cheapest(
        &self,
        first: Candidate,
        candidates: Vec<Candidate>,
    ) -> Result<(Candidate, Vec<CellId>), CompileError> {
        let machine = Arc::new(self.machine.clone());
        let is_large = candidates.len() == 1 && candidates[0].halo.set.len() > FINALISTS[1].0;
        let best = candidates.iter().map(|candidate| candidate.score).min();
        let is_hopeless = best.is_some_and(|best| {
            let (first, best) = (first.score.price, best.price);
            100 * u128::from(first.0) > u128::from(FIRST_ABOVE) * u128::from(best.0)
        });
        let mut all = candidates;
        if !is_hopeless {
            all.insert(0, first);
        }
        if is_large || all.len() == 1 {
            // Large sets are compared by their scores only.
            let best = all.into_iter().min_by_key(|candidate| candidate.score);
            let best = best.ok_or_else(|| CompileError::bug("the partitioner", &"none"))?;
            let place = self.place(&best.halo)?;
            return Ok((best, place));
        }
        let priced = parallel::try_map(&all, |candidate| -> Result<_, CompileError> {
            let place = self.place(&candidate.halo)?;
            let set = self.on_cells(&candidate.halo, &place)?;
            Ok(((candidate.score.unbalanced, self.trial(&machine, set)), place))
        })?;
        // The first of the cheapest.
        let best = priced.into_iter().zip(all).min_by_key(|((price, _), _)| *price);
        let ((_, place), candidate) =
            best.ok_or_else(|| CompileError::bug("the partitioner", &"none"))?;
        Ok((candidate, place))
    }

    /// The price of a set's first plan, in the order of the objective. A set that cannot be planned
    /// is the most expensive one; the compilation will report the reason.
    fn trial(&self, machine: &Arc<Machine>, set: ConnectionSet) -> (u64, u64) {
        let objective = self.options.objective;
        let mut compiler =
            Compiler::new(machine).objective(objective).seed(self.options.seed).max_plans(TRIAL);
        let Ok(compiled) = compiler.compile(&set.into()) else { return (u64::MAX, u64::MAX) };
        let sets = compiled.schedule().sets();
        let clocks = sets.iter().map(|set| set.predicted_clocks).sum();
        let phases = sets.iter().map(|set| to_u64(set.timetable.phases().len())).sum();
        match objective {
            Objective::Time => (clocks, phases),
            Objective::Phases => (phases, clocks),
        }
    }

    fn placed(&self, halo: Halo, report: Option<PartitionReport>) -> Result<Found, CompileError> {
        let place = self.place(&halo)?;
        let set = self.on_cells(&halo, &place)?;
        Ok(Found { halo, place, set, report })
    }

    fn place(&self, halo: &Halo) -> Result<Vec<CellId>, CompileError> {
        let LoadOptions { placement, seed, .. } = *self.options;
        Ok(placement::place(self.machine, &halo.set, halo.summary.parts, placement, seed)?)
    }

    fn on_cells(&self, halo: &Halo, place: &[CellId]) -> Result<ConnectionSet, CompileError> {
        halo.set.clone().placed(place).map_err(|e| placement_bug(&e))
    }
}

fn report(
    partitioner: &Partitioner,
    partition: &Partition,
    options: &PartitionOptions,
    moved: usize,
    looked_at: usize,
) -> PartitionReport {
    PartitionReport {
        looked_at,
        method: options.method.name(),
        seed: Some(options.seed),
        moved,
        imbalance_percent: percent(partitioner.imbalance(partition)),
        cut: partitioner.cut(partition),
    }
}

/// A fraction in percent, with two decimals.
fn percent(fraction: f64) -> f64 {
    (fraction * 1e4).round() / 1e2
}
