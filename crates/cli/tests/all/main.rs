//! One program for the tests of the command, so that it is linked once and no core waits for the last test of each file.

mod calls;

mod boundaries;
mod command;
mod comparisons;
mod hostile;
mod interrupt;
mod json;
mod mesh_inputs;
mod misuse;
mod output;
mod readme;
mod refusals;
mod round_trip;
mod traces;
mod vocabulary;
