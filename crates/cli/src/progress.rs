//! Progress on the terminal: which stage runs and how far it is.
//!
//! Shown on standard error, only if that is a terminal, and only once something takes long
//! enough to be waited for; cleared when it is done.

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
}

impl Bar {
    /// A bar that has not shown itself yet.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, since: Instant::now(), quiet }
    }

    /// Follows a report.
    pub(crate) fn observe(&mut self, progress: Progress) {
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
