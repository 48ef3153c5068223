//! Names of sets and phases: by number, or by text such as `halo` and `halo/p0`.

use conset_ir::{Image, PhaseId};

/// The name of a phase: its set's name, and its place among the set's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseName<'a> {
    /// The set.
    pub set: &'a str,
    /// The phase.
    pub phase: PhaseId,
}

impl<'a> PhaseName<'a> {
    /// Phase number `phase` of a set.
    pub const fn new(set: &'a str, phase: u32) -> Self {
        Self { set, phase: PhaseId(phase) }
    }

    /// Reads the spelling `set/p0`.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (set, phase) = name.rsplit_once('/')?;
        Some(Self { set, phase: PhaseId::parse(phase)? })
    }
}

impl std::fmt::Display for PhaseName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.set, self.phase)
    }
}

/// Anything that names a set.
pub trait SetRef: Copy + std::fmt::Debug {
    /// The set's row in the image.
    fn find(&self, image: &Image) -> Option<usize>;
}

impl SetRef for usize {
    fn find(&self, image: &Image) -> Option<usize> {
        (*self < image.sets().len()).then_some(*self)
    }
}

impl SetRef for &str {
    fn find(&self, image: &Image) -> Option<usize> {
        image.sets().iter().position(|set| set.set.name() == *self)
    }
}

/// Anything that names a phase.
pub trait PhaseRef: Copy + std::fmt::Debug {
    /// The set's row in the image and the phase's in the set.
    fn find(&self, image: &Image) -> Option<(usize, PhaseId)>;
}

impl PhaseRef for PhaseName<'_> {
    fn find(&self, image: &Image) -> Option<(usize, PhaseId)> {
        let set = SetRef::find(&self.set, image)?;
        (self.phase.index() < image.sets()[set].phases.len()).then_some((set, self.phase))
    }
}

impl PhaseRef for &str {
    fn find(&self, image: &Image) -> Option<(usize, PhaseId)> {
        PhaseRef::find(&PhaseName::parse(self)?, image)
    }
}

impl PhaseRef for (usize, PhaseId) {
    fn find(&self, image: &Image) -> Option<(usize, PhaseId)> {
        let phases = image.sets().get(self.0)?.phases.len();
        (self.1.index() < phases).then_some(*self)
    }
}
