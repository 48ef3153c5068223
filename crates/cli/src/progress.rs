//! Progress on the terminal: which stage runs and how far it is.
//!
//! Shown on standard error, only if that is a terminal, and only once something takes long
//! enough to be waited for; cleared when it is done. With a time limit the bar of the planning is the
//! time, as nobody knows how many plans will be made. It also keeps the time that each stage takes:
//! stages read no clock themselves.

use std::time::{Duration, Instant};

use conset::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long a run may take before it shows anything.
const PATIENCE: Duration = Duration::from_millis(300);

/// The library's name for the stage that a time limit is for.
const PLANNING: &str = "planning";

/// A bar that follows the library's reports.
pub(crate) struct Bar {
    bar: ProgressBar,
    since: Instant,
    quiet: bool,
    /// How long plans are made, if that is what was asked for.
    time_limit: Option<Duration>,
    /// Stages in the order in which they first began, and how long each has run.
    stages: Vec<(&'static str, Duration)>,
    /// The stage that runs, and since when.
    running: Option<(&'static str, Instant)>,
}

impl Bar {
    /// A bar that has not shown itself yet.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (stages, running) = (Vec::new(), None);
        Self { bar, since: Instant::now(), quiet, time_limit: None, stages, running }
    }

    /// The same, where planning may take so many seconds; nonsense is for others to refuse.
    pub(crate) fn with_time_limit(mut self, seconds: Option<f64>) -> Self {
        self.time_limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self
    }

    /// How long each stage has run, in seconds, in the order in which they first began; the one
    /// that runs is over now.
    pub(crate) fn stage_seconds(&mut self) -> Vec<(&'static str, f64)> {
        self.end_stage();
        self.stages.iter().map(|(name, time)| (*name, time.as_secs_f64())).collect()
    }

    fn end_stage(&mut self) {
        let Some((name, since)) = self.running.take() else { return };
        match self.stages.iter_mut().find(|(other, _)| *other == name) {
            Some((_, time)) => *time += since.elapsed(),
            None => self.stages.push((name, since.elapsed())),
        }
    }

    /// With a time limit, and while plans are made: the milliseconds used up and those there are.
    fn time_planned(&self) -> Option<(u64, u64)> {
        let time_limit = self.time_limit?;
        let (_, since) = self.running.filter(|(stage, _)| *stage == PLANNING)?;
        Some((since.elapsed().min(time_limit).as_millis() as u64, time_limit.as_millis() as u64))
    }

    /// Follows a report.
    pub(crate) fn observe(&mut self, progress: Progress) {
        if let Progress::Stage(name) = progress {
            self.end_stage();
            self.running = Some((name, Instant::now()));
        }
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            // indicatif hides the bar by itself where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            let template = match self.time_limit {
                Some(_) => "{msg:<20} {wide_bar} {elapsed}",
                None => "{msg:<20} {wide_bar} {pos}/{len} {elapsed}",
            };
            let style = ProgressStyle::with_template(template);
            self.bar.set_style(style.expect("the template is well formed"));
        }
        match progress {
            Progress::Stage(name) => {
                self.bar.set_message(name);
                self.bar.set_length(1);
                self.bar.set_position(0);
            }
            Progress::Done { done, total } => {
                let (done, total) = self.time_planned().unwrap_or((done, total));
                self.bar.set_length(total.max(done).max(1));
                self.bar.set_position(done);
            }
            Progress::Found { clocks, bound } => {
                let ratio = conset::compile::bound_ratio(clocks, bound);
                self.bar.set_message(format!("{ratio:.3} over bound"));
            }
        }
        self.bar.tick();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_makes_the_bar_of_the_planning_its_time() {
        let mut bar = Bar::new(false).with_time_limit(Some(1e6));
        bar.observe(Progress::Stage("pricing"));
        bar.observe(Progress::Done { done: 3, total: 5 });
        assert_eq!((bar.bar.position(), bar.bar.length()), (3, Some(5)));
        bar.observe(Progress::Stage(PLANNING));
        bar.observe(Progress::Done { done: 3, total: 5 });
        assert_eq!(bar.bar.length(), Some(1_000_000_000));
        assert!(Bar::new(true).with_time_limit(Some(f64::NAN)).time_limit.is_none());
        // The time limit is for what the library calls planning.
        let mut names = Vec::new();
        let machine = conset_ir::Machine::from_spec("ring:3").unwrap();
        let set = conset_mesh::patterns::generate("all-to-all", &machine, 3).unwrap();
        let options = conset::Options::default();
        let see = &mut |progress| {
            if let Progress::Stage(name) = progress {
                names.push(name);
            }
        };
        conset::compile(&machine.into(), &set.into(), &options, see).unwrap();
        assert!(names.contains(&PLANNING), "{names:?}");
    }
}
