//! Timetables and the cost model.
