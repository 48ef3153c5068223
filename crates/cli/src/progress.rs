//! Progress on the terminal: which stage runs and how far it is.
//!
//! Shown on standard error, only if that is a terminal, and only once something takes long
//! enough to be waited for; cleared when it is done. It also keeps the time that each stage takes:
//! stages read no clock themselves.

use std::time::{Duration, Instant};

use conset::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long a run may take before it shows anything.
const PATIENCE: Duration = Duration::from_millis(300);

/// A bar that follows the library's reports.
pub(crate) struct Bar {
    bar: ProgressBar,
    since: Instant,
    quiet: bool,
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
        Self { bar, since: Instant::now(), quiet, stages, running }
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
            self.bar.set_style(
                ProgressStyle::with_template("{msg:<20} {wide_bar} {pos}/{len} {elapsed}")
                    .expect("the template is well formed"),
            );
        }
        match progress {
            Progress::Stage(name) => {
                self.bar.set_message(name);
                self.bar.set_length(1);
                self.bar.set_position(0);
            }
            Progress::Done { done, total } => {
                self.bar.set_length(total.max(done).max(1));
                self.bar.set_position(done);
            }
            Progress::Found { clocks, bound } => {
                let gap = conset::compile::gap(clocks, bound);
                self.bar.set_message(format!("gap {gap:.3}"));
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
