//! How cells carry the candidates of a growth: the schemes of `wolff` and `lee`.
//!
//! The kernels are in [`conset::growth`]. What differs between the schemes of the paper is what
//! carries the candidates of other cells, and when ([`SchemeArg`]). All accept the same sites.
//!
//! Every `delta` cycles the cells ask each other whether any of them still has new sites, and
//! whether one has found what it looks for: an epoch in which those that have send a word.

use std::collections::BTreeMap;

use clap::ValueEnum;
use conset::growth::random::mix;
use conset::growth::{Candidate, Growth, Stripes};
use conset::ir::CellId;
use conset_runtime::{Cell, CellError};

use crate::{Failure, failure};

/// What carries candidates to other cells. The paper's ST-NC-O is AM-NC-O with another library, and
/// differs in nothing that our transports have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemeArg {
    /// Active messages (AM-NC-O): every candidate is an item of an epoch, whose handler checks and
    /// expands it.
    #[default]
    Am,
    /// Sizes, then candidates (AMP-C-NO): messages to both neighbours after the expansion, of
    /// candidates only if there are any. The side must be a multiple of cells times width.
    Amp,
    /// Late exchange (ASR-C-O): the candidates of a cycle travel with the next one, are expanded at
    /// once, and correct the distances of sites that were reached too early. The transports do not
    /// overlap it with the expansion.
    Asr,
    /// One exchange (SSR-C-NO): the candidates of a cycle go to whichever cells they are for, after
    /// the expansion.
    Ssr,
}

/// The cells of a growth.
#[derive(Clone, Debug)]
pub struct Peers {
    scheme: SchemeArg,
    /// The cell of each rank.
    cells: Vec<CellId>,
    stripes: Stripes,
}

/// What a cell has grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Sites of this cell that were accepted, the first included.
    pub sites: u64,
    /// A sum of hashes of these sites, which does not depend on their order.
    pub digest: u64,
    /// Whether a cell has found what was looked for.
    pub found: bool,
}

impl Grown {
    /// Counts an accepted site.
    pub fn add(&mut self, site: u32) {
        self.sites += 1;
        self.digest = self.digest.wrapping_add(mix(u64::from(site) + 1));
    }
}

/// The sites of a cell that are new, and candidates for other cells.
#[derive(Default)]
struct Front {
    /// Accepted and not yet expanded.
    sites: Vec<Candidate>,
    /// Words of candidates, by the rank they are for.
    remote: BTreeMap<u32, Vec<u32>>,
}

impl Front {
    /// Expands a site of this cell: accepts its neighbours here, and keeps those of others.
    fn expand<G: Growth>(
        &mut self,
        growth: &mut G,
        parent: Candidate,
        rank: u32,
        grown: &mut Grown,
    ) {
        for candidate in growth.expand(parent).into_iter().flatten() {
            let owner = growth.stripes().owner(candidate.site);
            if owner != rank {
                self.remote.entry(owner).or_default().extend(candidate.words());
            } else if growth.accept(candidate) {
                grown.add(candidate.site);
                self.sites.push(candidate);
            }
        }
    }
}

impl Peers {
    /// The cells among which a grid is divided.
    ///
    /// # Errors
    /// Other cells than stripes, or stripes whose scheme needs neighbours that they do not have.
    pub fn new(scheme: SchemeArg, cells: Vec<CellId>, stripes: Stripes) -> Result<Self, Failure> {
        if cells.len() != stripes.cells() as usize {
            return Err(failure("the stripes are for another number of cells"));
        }
        if scheme == SchemeArg::Amp && !stripes.is_ring() {
            let product = stripes.cells() * stripes.width();
            return Err(failure(format!(
                "--scheme amp: side {} is no multiple of {product} (cells x width); change --side or --width, or use another scheme",
                stripes.side()
            )));
        }
        Ok(Self { scheme, cells, stripes })
    }

    /// The grid.
    pub fn stripes(&self) -> Stripes {
        self.stripes
    }

    /// The rank of a cell.
    pub fn rank(&self, cell: CellId) -> u32 {
        // Cells ascend; every cell that runs is among them.
        self.cells.partition_point(|&other| other < cell) as u32
    }

    /// The cell that has a site.
    pub fn owner(&self, site: u32) -> CellId {
        self.cells[self.stripes.owner(site) as usize]
    }

    /// Grows, together with all other cells, until no cell has new sites or, at the end of
    /// `delta` cycles, one has found what it looks for. `first` is the first site, on its cell.
    ///
    /// # Errors
    /// The transport's.
    pub fn grow<G: Growth>(
        &self,
        cell: &mut Cell<'_>,
        growth: &mut G,
        first: Option<Candidate>,
        delta: u32,
        found: impl Fn(&G) -> bool,
    ) -> Result<Grown, CellError> {
        let (mut grown, mut front, mut level) = (Grown::default(), Front::default(), 0_u32);
        if let Some(first) = first {
            grown.add(first.site);
            front.sites.push(first);
        }
        loop {
            level = level.saturating_add(delta);
            match self.scheme {
                SchemeArg::Am => self.by_items(cell, growth, level, &mut front, &mut grown)?,
                _ => {
                    for _ in 0..delta {
                        self.cycle(cell, growth, &mut front, &mut grown)?;
                    }
                    if self.scheme == SchemeArg::Asr {
                        // What is still under way may change the labels of the last cycle.
                        let leaving = std::mem::take(&mut front.remote);
                        self.deliver(cell, growth, leaving, false, &mut front, &mut grown)?;
                    }
                }
            }
            let (busy, found) = self.ask(cell, !front.sites.is_empty(), found(growth))?;
            grown.found = found;
            if found || !busy {
                return Ok(grown);
            }
        }
    }

    /// Whether any cell has new sites, and whether any has found what it looks for.
    fn ask(&self, cell: &mut Cell<'_>, busy: bool, found: bool) -> Result<(bool, bool), CellError> {
        let (own, mut any) = (cell.id(), false);
        let mut epoch = cell.open::<[u32; 1]>();
        if found {
            for &peer in &self.cells {
                epoch.send(peer, [1])?;
            }
        } else if busy {
            epoch.send(own, [0])?;
        }
        let settled = epoch.settle(|_, [found], _| any |= found == 1)?;
        Ok((settled.rounds > 0, any))
    }

    /// All cycles up to a level, by the items of an epoch; a round is a cycle.
    fn by_items<G: Growth>(
        &self,
        cell: &mut Cell<'_>,
        growth: &mut G,
        level: u32,
        front: &mut Front,
        grown: &mut Grown,
    ) -> Result<(), CellError> {
        let mut epoch = cell.open::<[u32; 2]>();
        for parent in front.sites.drain(..) {
            for candidate in growth.expand(parent).into_iter().flatten() {
                epoch.send(self.owner(candidate.site), candidate.words())?;
            }
        }
        epoch.settle(|_, words, out| {
            let candidate = Candidate::from_words(words);
            if !growth.accept(candidate) {
                return;
            }
            grown.add(candidate.site);
            if candidate.level >= level {
                front.sites.push(candidate);
                return;
            }
            for next in growth.expand(candidate).into_iter().flatten() {
                out.send(self.owner(next.site), next.words());
            }
        })?;
        Ok(())
    }

    /// One cycle: expansion, exchange, check of what came.
    fn cycle<G: Growth>(
        &self,
        cell: &mut Cell<'_>,
        growth: &mut G,
        front: &mut Front,
        grown: &mut Grown,
    ) -> Result<(), CellError> {
        let rank = self.rank(cell.id());
        let before = std::mem::take(&mut front.remote);
        for parent in std::mem::take(&mut front.sites) {
            if growth.is_current(parent) {
                front.expand(growth, parent, rank, grown);
            }
        }
        let late = self.scheme == SchemeArg::Asr;
        let leaving = if late { before } else { std::mem::take(&mut front.remote) };
        self.deliver(cell, growth, leaving, late, front, grown)
    }

    /// Exchanges candidates, and accepts those for this cell; with `expand` it expands them at once.
    fn deliver<G: Growth>(
        &self,
        cell: &mut Cell<'_>,
        growth: &mut G,
        leaving: BTreeMap<u32, Vec<u32>>,
        expand: bool,
        front: &mut Front,
        grown: &mut Grown,
    ) -> Result<(), CellError> {
        let rank = self.rank(cell.id());
        let arrived = match self.scheme {
            SchemeArg::Amp => self.by_sizes(cell, rank, leaving)?,
            _ => self.by_exchange(cell, &leaving)?,
        };
        for words in arrived.chunks_exact(2) {
            let candidate = Candidate::from_words([words[0], words[1]]);
            if growth.accept(candidate) {
                grown.add(candidate.site);
                match expand {
                    true => front.expand(growth, candidate, rank, grown),
                    false => front.sites.push(candidate),
                }
            }
        }
        Ok(())
    }

    fn by_exchange(
        &self,
        cell: &mut Cell<'_>,
        leaving: &BTreeMap<u32, Vec<u32>>,
    ) -> Result<Vec<u32>, CellError> {
        let rows = leaving.iter().map(|(&rank, words)| (self.cells[rank as usize], &words[..]));
        let arrived = cell.exchange_any(&rows.collect::<Vec<_>>())?;
        Ok(arrived.into_iter().flat_map(|(_, words)| words).collect())
    }

    /// Sizes to the cells on both sides, then what is not empty.
    fn by_sizes(
        &self,
        cell: &mut Cell<'_>,
        rank: u32,
        mut leaving: BTreeMap<u32, Vec<u32>>,
    ) -> Result<Vec<u32>, CellError> {
        let count = self.cells.len() as u32;
        if count == 1 {
            return Ok(Vec::new());
        }
        let sides = [(rank + count - 1) % count, (rank + 1) % count];
        // On two cells both sides are the same one, which gets all with the first.
        let words = sides.map(|side| leaving.remove(&side).unwrap_or_default());
        let mut arrived: [Vec<u32>; 2] = Default::default();
        for side in 0..2 {
            let mut size = [0];
            let (to, from) = (sides[side], sides[1 - side]);
            self.shift(cell, rank, (to, &[words[side].len() as u32]), (from, &mut size))?;
            arrived[side].resize(size[0] as usize, 0);
        }
        for side in 0..2 {
            let (to, from) = (sides[side], sides[1 - side]);
            self.shift(cell, rank, (to, &words[side]), (from, &mut arrived[side]))?;
        }
        Ok(arrived.concat())
    }

    /// Sends to one side and receives from the other, both if not empty. Odd ranks receive first:
    /// if all sent first, none would receive what is too long for the queues between them.
    fn shift(
        &self,
        cell: &mut Cell<'_>,
        rank: u32,
        (to, out): (u32, &[u32]),
        (from, incoming): (u32, &mut [u32]),
    ) -> Result<(), CellError> {
        let send = |cell: &mut Cell<'_>| match out {
            [] => Ok(()),
            _ => cell.msg_send(self.cells[to as usize], out),
        };
        if rank.is_multiple_of(2) {
            send(cell)?;
        }
        if !incoming.is_empty() {
            cell.msg_receive(self.cells[from as usize], incoming)?;
        }
        if rank % 2 == 1 {
            send(cell)?;
        }
        Ok(())
    }
}
