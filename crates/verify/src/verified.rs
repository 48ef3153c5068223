//! Validity as a type: what has passed the checker is a [`Verified`], and nothing else is.
//!
//! The fields are private and only this crate's checking functions make one, so a stage that takes
//! a `Verified<Timetable>` cannot be handed anything unchecked. It is read-only: to change the
//! value is to take it out and check it again.

use std::ops::Deref;

use conset_ir::{Schedule, SetSchedule, Timetable};

use crate::facts::Report;

/// A value that has passed the checker, with the facts counted on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    value: T,
    report: Report,
}

impl<T> Verified<T> {
    pub(crate) fn new(value: T, report: Report) -> Self {
        Self { value, report }
    }

    /// What was counted while checking.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The value, no longer marked as verified.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The value borrowed, still marked as verified.
    pub fn as_ref(&self) -> Verified<&T> {
        Verified { value: &self.value, report: self.report }
    }
}

impl<T: Clone> Verified<&T> {
    /// An owned copy, still marked as verified.
    pub fn cloned(&self) -> Verified<T> {
        Verified { value: self.value.clone(), report: self.report }
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl Verified<SetSchedule> {
    /// The timetable in it, which was verified with it.
    pub fn timetable(&self) -> Verified<&Timetable> {
        Verified { value: &self.value.timetable, report: self.report }
    }

    /// The timetable in it, owned.
    pub fn into_timetable(self) -> Verified<Timetable> {
        Verified { value: self.value.timetable, report: self.report }
    }
}

impl Verified<Schedule> {
    /// The timetables in it, one per set in the order of execution. The facts of each are those
    /// of the whole schedule.
    pub fn timetables(&self) -> impl ExactSizeIterator<Item = Verified<&Timetable>> {
        let report = self.report;
        self.value.sets().iter().map(move |set| Verified { value: &set.timetable, report })
    }

    /// The compiled sets in it, in the order of execution.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = Verified<&SetSchedule>> {
        let report = self.report;
        self.value.sets().iter().map(move |value| Verified { value, report })
    }
}
