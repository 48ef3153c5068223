//! Verified timetables turned into images, listings and source code.
