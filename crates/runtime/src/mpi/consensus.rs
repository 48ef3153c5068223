//! Consensus of the ranks of a run ([`super::gather_at_root`]): on the image, the next phase, and
//! the end of the run.
//!
//! A rank reports when all its cells want to switch or have ended: the request of one cell, the
//! first that differs from it, and the number of messages sent and received. Rank 0 decides.
//! Different requests and unreceived messages are errors on all ranks.
//!
//! The digest of an image is computed once for each world and compared at each of its runs.

use std::collections::BTreeMap;

use conset_ir::convert::{to_u32, to_u64, to_usize};
use conset_ir::{CellId, Document, Image, PhaseId, binary};

use super::gather_at_root::{Participants, gather_at_root, receive_decision};
use super::run::{Rank, WaitState};
use crate::error::{MpiError, RunError};
use crate::port::Context;
use crate::report::RunReport;

impl Rank<'_> {
    /// All ranks must have the same image. They also find out whether a node has more cells than cores.
    pub(super) fn compare_images(&self) -> Result<(), RunError> {
        let size = self.comm.size();
        let participants = Participants {
            senders: size,
            receivers: size,
            unlimited: false,
            meanwhile: &|| self.check_failures(),
        };
        let place = || "the comparison of images at the begin of a run".to_owned();
        let image = *self.loaded.digest.get_or_init(|| digest(&self.loaded.image));
        let cells = to_u64(self.rank_map.cells_of(self.comm.rank()).len());
        let own = [&[image][..], &node(), &[cells]].concat();
        let decision = gather_at_root(&self.comm, participants, own, &place, |all| {
            let odd = find_odd_images(&all);
            (if odd.is_empty() { vec![u64::from(shares_cores(&all))] } else { odd }, true)
        })?;
        let [digest, others, odd @ ..] = &decision[..] else {
            self.shares_cores.set(decision == [1]);
            return Ok(());
        };
        self.known_to_all.set(true);
        let odd = odd.iter().map(|&rank| to_usize(rank)).collect();
        Err(MpiError::OddImage { odd, digest: *digest, others: *others }.into())
    }

    /// On a rank without cells: waits until the run has ended.
    pub(super) fn run_without_cells(&self) -> Result<RunReport, RunError> {
        if self.rank_map.active() > 0 {
            let meanwhile = || self.check_failures();
            let participants =
                Participants { senders: 0, receivers: 0, unlimited: true, meanwhile: &meanwhile };
            let decision = receive_decision(&self.comm, participants, &|| "a run".to_owned())?;
            self.known_to_all.set(true);
            // The others look for more to say, to which this rank has nothing to add.
            match decision[..] {
                [UNRECEIVED, sent, received] => {
                    return Err(MpiError::LeftOver { sent, received }.into());
                }
                [DIFFER, ref reports @ ..] => return Err(self.difference(&read_two(reports))),
                _ => {}
            }
        }
        Ok(RunReport::default())
    }

    /// Whether all cells of this rank have ended or want to switch.
    pub(super) fn all_ready(&self) -> bool {
        self.waits.borrow().iter().all(|w| matches!(w, WaitState::Switch(_) | WaitState::Ended))
    }

    /// Meets the other ranks, with the reports of this one's cells; whether the run has ended.
    pub(super) fn reach_consensus(&self) -> Result<bool, RunError> {
        let reports = self.reports();
        let all_ended = reports.iter().all(|report| report.to.is_none());
        let (sent, received) = self.messages.counts();
        let mut words = vec![sent, received];
        words.extend(reports.iter().flat_map(|report| report.words()));
        let participants = Participants {
            senders: self.rank_map.active(),
            receivers: self.comm.size(),
            // Others may rightly take long until they have ended.
            unlimited: all_ended,
            meanwhile: &|| self.compare_steps(),
        };
        let place = || match reports[0].to {
            Some(context) => format!("the switch to {}", self.context(context)),
            None => "the end of a run".to_owned(),
        };
        let decide = |all: Vec<Vec<u64>>| {
            let decision = decide(&all);
            let is_last = decision[0] != GO_ON;
            (decision, is_last)
        };
        let decision = gather_at_root(&self.comm, participants, words, &place, decide)?;
        let ended = decision[0] == END;
        self.known_to_all.set(decision[0] != GO_ON);
        self.apply_decision(&decision)?;
        if let Some(context) = reports[0].to {
            self.active.set(match context {
                Context::Messages => None,
                Context::Phase(set, _) => Some(set),
            });
            self.switches.set(self.switches.get() + 1);
        }
        Ok(ended)
    }

    /// What the cells of this rank want: one cell's report, and the first that differs from it.
    fn reports(&self) -> Vec<StepReport> {
        let waits = self.waits.borrow();
        let cells = self.rank_map.cells_of(self.comm.rank());
        let steps = self.steps.borrow();
        let mut reports = cells.iter().zip(&*waits).zip(&*steps).map(|((&cell, waits), steps)| {
            let to = match waits {
                WaitState::Switch(context) => Some(*context),
                _ => None,
            };
            StepReport { cell, steps: steps.count, digest: steps.digest, to }
        });
        let first = reports.next().expect("the rank has cells");
        let other = reports.find(|report| !report.fits(&first));
        std::iter::once(first).chain(other).collect()
    }

    /// Turns a judgement into an error if it is one.
    fn apply_decision(&self, decision: &[u64]) -> Result<(), RunError> {
        match decision {
            [DIFFER, reports @ ..] => {
                let reports = read_two(reports);
                let [one, two] = &reports;
                if (one.to, one.steps) == (two.to, two.steps)
                    && let Some(error) = self.first_difference([one.cell, two.cell], one.steps)?
                {
                    return Err(error);
                }
                Err(self.difference(&reports))
            }
            [UNRECEIVED, sent, received] => Err(self.find_unreceived(*sent, *received)?),
            _ => Ok(()),
        }
    }

    fn difference(&self, [one, two]: &[StepReport; 2]) -> RunError {
        let name = |report: &StepReport| report.to.map(|context| self.context(context));
        match (name(one), name(two)) {
            (Some(phase), Some(other)) if phase != other => {
                RunError::Disagree { first: one.cell, phase, second: two.cell, other }
            }
            (None, Some(phase)) => RunError::Ended { ended: one.cell, waiting: two.cell, phase },
            (Some(phase), None) => RunError::Ended { ended: two.cell, waiting: one.cell, phase },
            (place, _) => RunError::Mpi(MpiError::Steps {
                cells: [one.cell, two.cell],
                steps: [one.steps, two.steps],
                place: place.map_or("its end".to_owned(), |phase| format!("switching to {phase}")),
            }),
        }
    }

    pub(super) fn context(&self, context: Context) -> String {
        match context {
            Context::Messages => "messages".to_owned(),
            Context::Phase(set, phase) => self.loaded.phase_name(set, phase),
        }
    }
}

/// What a cell wants at a meeting: to switch, or to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepReport {
    cell: CellId,
    /// Number of switches and exchanges started.
    steps: u64,
    /// Of what they were.
    digest: u64,
    to: Option<Context>,
}

/// Words of a report.
const REPORT_WORDS: usize = 6;

// Judgements.
const GO_ON: u64 = 0;
const END: u64 = 1;
const DIFFER: u64 = 2;
const UNRECEIVED: u64 = 3;

impl StepReport {
    /// Whether both can be granted.
    fn fits(&self, other: &Self) -> bool {
        (self.to, self.steps, self.digest) == (other.to, other.steps, other.digest)
    }

    fn words(&self) -> [u64; REPORT_WORDS] {
        let (kind, set, phase) = match self.to {
            None => (0, 0, 0),
            Some(Context::Phase(set, phase)) => (1, to_u64(set), u64::from(phase.0)),
            Some(Context::Messages) => (2, 0, 0),
        };
        [u64::from(self.cell.0), self.steps, self.digest, kind, set, phase]
    }

    fn read(words: &[u64]) -> Self {
        let to = match words[3] {
            0 => None,
            2 => Some(Context::Messages),
            _ => Some(Context::Phase(to_usize(words[4]), PhaseId(to_u32(words[5])))),
        };
        Self { cell: CellId(to_u32(words[0])), steps: words[1], digest: words[2], to }
    }
}

/// The two reports that differ.
fn read_two(words: &[u64]) -> [StepReport; 2] {
    let (one, two) = words.split_at(REPORT_WORDS);
    [StepReport::read(one), StepReport::read(two)]
}

/// What rank 0 makes of the counts and reports of all ranks.
fn decide(all: &[Vec<u64>]) -> Vec<u64> {
    let reports: Vec<StepReport> = all
        .iter()
        .flat_map(|words| words[2..].chunks_exact(REPORT_WORDS))
        .map(StepReport::read)
        .collect();
    let first = reports[0];
    if let Some(other) = reports.iter().find(|report| !report.fits(&first)) {
        return [&[DIFFER][..], &first.words(), &other.words()].concat();
    }
    let sum = |at: usize| all.iter().map(|words| words[at]).sum::<u64>();
    let (sent, received) = (sum(0), sum(1));
    if sent != received {
        return vec![UNRECEIVED, sent, received];
    }
    vec![if first.to.is_none() { END } else { GO_ON }]
}

/// Nothing if all digests are the same; else that of the odd ranks, that of the others, and the
/// odd ranks.
fn find_odd_images(all: &[Vec<u64>]) -> Vec<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for words in all {
        *counts.entry(words[0]).or_default() += 1;
    }
    // Where as many ranks have another digest, rank 0 and those like it, or the first, are right.
    let most = counts.values().copied().max().unwrap_or(0);
    let right = all.iter().map(|words| words[0]).find(|digest| counts[digest] == most);
    let Some(right) = right else { return Vec::new() };
    let odd = all.iter().enumerate().filter(|(_, words)| words[0] != right);
    let odd: Vec<u64> = odd.map(|(rank, _)| to_u64(rank)).collect();
    match odd.first() {
        None => Vec::new(),
        Some(&first) => [&[all[to_usize(first)][0], right][..], &odd].concat(),
    }
}

/// A digest of the name of this node, and its cores.
#[cfg(unix)]
fn node() -> [u64; 2] {
    let mut name = [0u8; 256];
    // SAFETY: the system writes at most as many bytes as there are, and ends them with a zero or cuts
    // the name off.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) };
    // SAFETY: a question about the system. The cores that this rank may use are fewer where ranks are
    // bound to cores.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    [digest_of(&name), u64::try_from(cores).unwrap_or(0)]
}

/// Not known: as many cores as there may be cells.
#[cfg(not(unix))]
fn node() -> [u64; 2] {
    [0, u64::MAX]
}

/// Whether a node has more cells than cores; of each rank a digest of the image, that of its node, the
/// cores there, and its cells.
fn shares_cores(all: &[Vec<u64>]) -> bool {
    let mut nodes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for words in all {
        let &[_, node, cores, cells] = &words[..] else { return false };
        let found = nodes.entry(node).or_insert((cores, 0));
        found.1 += cells;
    }
    nodes.values().any(|(cores, cells)| cells > cores)
}

/// A digest of an image's file.
fn digest(image: &Image) -> u64 {
    digest_of(&binary::write(&Document::Image(image.clone())))
}

/// FNV-1a, 64 bits.
pub(super) fn digest_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, &byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::shares_cores;

    #[test]
    fn cells_share_cores_if_a_node_has_more_of_them() {
        let ranks = |ranks: &[(u64, u64, u64)]| -> Vec<Vec<u64>> {
            ranks.iter().map(|&(node, cores, cells)| vec![9, node, cores, cells]).collect()
        };
        assert!(!shares_cores(&ranks(&[(1, 2, 1), (1, 2, 1), (2, 4, 4)])));
        assert!(shares_cores(&ranks(&[(1, 2, 1), (1, 2, 2)])));
        assert!(shares_cores(&ranks(&[(1, 8, 1), (2, 1, 1), (2, 1, 1)])));
    }
}
