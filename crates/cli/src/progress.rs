//! Progress on the terminal: the current stage and how far it is.
//!
//! The bar is shown on standard error if that is a terminal and the command takes long enough, and
//! cleared at the end. With a time limit the bar of the planning shows the time, because the number
//! of plans is not known. The module also measures the time of each stage, because the library reads
//! no clock.

use std::time::{Duration, Instant};

use conset::Progress;
use conset_ir::convert::to_u64;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long a command may take before the bar is shown.
const PATIENCE: Duration = Duration::from_millis(300);

/// The name of the stage that the time limit applies to.
const PLANNING: &str = "planning";

/// A progress bar that shows the reports of the library.
pub(crate) struct ProgressDisplay {
    bar: ProgressBar,
    since: Instant,
    quiet: bool,
    /// The time limit of the search, if there is one.
    time_limit: Option<Duration>,
    /// The stages in the order in which they first began, with their total times.
    stages: Vec<(&'static str, Duration)>,
    /// The current stage and its start.
    running: Option<(&'static str, Instant)>,
}

impl ProgressDisplay {
    /// A bar that is not shown yet.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (stages, running) = (Vec::new(), None);
        Self { bar, since: Instant::now(), quiet, time_limit: None, stages, running }
    }

    /// The same with a time limit in seconds. An invalid one is ignored here and refused elsewhere.
    pub(crate) fn with_time_limit(mut self, seconds: Option<f64>) -> Self {
        self.time_limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self
    }

    /// Whether nothing is to be shown.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The time of each stage in seconds, in the order in which they first began. Ends the current
    /// stage.
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

    /// During planning with a time limit: the milliseconds used and those available.
    fn time_planned(&self) -> Option<(u64, u64)> {
        let time_limit = self.time_limit?;
        let (_, since) = self.running.filter(|(stage, _)| *stage == PLANNING)?;
        let millis = |time: Duration| to_u64(time.as_millis());
        Some((millis(since.elapsed().min(time_limit)), millis(time_limit)))
    }

    /// Shows a report.
    pub(crate) fn observe(&mut self, progress: Progress) {
        if let Progress::Stage(name) = progress {
            self.end_stage();
            self.running = Some((name, Instant::now()));
        }
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            // indicatif hides the bar if standard error is not a terminal.
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
                let ratio = conset::bound_ratio(clocks, bound);
                self.bar.set_message(format!("{ratio:.3} over bound"));
            }
            _ => {}
        }
        self.bar.tick();
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_time_limit_the_bar_of_the_planning_shows_the_time() {
        let mut bar = ProgressDisplay::new(false).with_time_limit(Some(1e6));
        bar.observe(Progress::Stage("pricing"));
        bar.observe(Progress::Done { done: 3, total: 5 });
        assert_eq!((bar.bar.position(), bar.bar.length()), (3, Some(5)));
        bar.observe(Progress::Stage(PLANNING));
        bar.observe(Progress::Done { done: 3, total: 5 });
        assert_eq!(bar.bar.length(), Some(1_000_000_000));
        assert!(ProgressDisplay::new(true).with_time_limit(Some(f64::NAN)).time_limit.is_none());
        // The library has a stage of this name.
        let mut names = Vec::new();
        let machine = conset_ir::Machine::from_spec("ring:3").unwrap();
        let set = conset_mesh::patterns::generate("all-to-all", &machine, 3).unwrap();
        let mut see = |progress| {
            if let Progress::Stage(name) = progress {
                names.push(name);
            }
        };
        let machine = machine.into();
        conset::Compiler::new(&machine).observer(&mut see).compile(&set.into()).unwrap();
        assert!(names.contains(&PLANNING), "{names:?}");
    }
}
