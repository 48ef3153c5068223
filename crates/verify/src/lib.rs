//! The independent checker of conset schedules and images.
