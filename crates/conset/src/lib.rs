//! The communication compiler as a library.
