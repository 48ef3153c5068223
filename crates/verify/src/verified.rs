//! The type [`Verified`] of values that the checker has accepted.
//!
//! Only the checking functions of this crate make one, so a stage that takes a `Verified<Timetable>`
//! never gets an unchecked timetable. It is read-only: to change the value, take it out and check
//! it again.

use std::ops::Deref;

use conset_ir::{Schedule, SetSchedule, Timetable};

use crate::facts::Report;

/// A value that the checker has accepted, with the figures of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    value: T,
    report: Report,
}

impl<T> Verified<T> {
    pub(crate) fn new(value: T, report: Report) -> Self {
        Self { value, report }
    }

    /// The figures of the check.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The value, no longer marked as verified.
    #[must_use]
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
    /// Its timetable, which was verified with it.
    pub fn timetable(&self) -> Verified<&Timetable> {
        Verified { value: &self.value.timetable, report: self.report }
    }

    /// Its timetable, owned.
    #[must_use]
    pub fn into_timetable(self) -> Verified<Timetable> {
        Verified { value: self.value.timetable, report: self.report }
    }
}

impl Verified<Schedule> {
    /// Its timetables, one per set in the order of execution. The figures of each are those of the
    /// whole schedule.
    pub fn timetables(&self) -> impl ExactSizeIterator<Item = Verified<&Timetable>> {
        let report = self.report;
        self.value.sets().iter().map(move |set| Verified { value: &set.timetable, report })
    }

    /// Its compiled sets, in the order of execution.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = Verified<&SetSchedule>> {
        let report = self.report;
        self.value.sets().iter().map(move |value| Verified { value, report })
    }
}
