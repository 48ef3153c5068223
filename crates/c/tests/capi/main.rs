//! The C interface as C and Fortran programs have it: the header compared with the code, and
//! programs that are compiled against an installed library and run.

mod fortran;
mod header;
mod hostile;
mod installed;
mod tools;
