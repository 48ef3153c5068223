//! The `conset` command.
//!
//! This crate handles arguments, terminal, files and exit codes; everything else is in the library
//! `conset`. Each subcommand is a module of [`verbs`]: it reads its inputs, calls the library, and
//! prints a text or, with `--json`, one JSON value.
//!
//! Exit codes: 0 success, 1 infeasible or rejected, 2 wrong usage or input, 3 bug in conset.

#![deny(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

mod args;
mod error;
mod files;
mod load;
#[allow(unsafe_code, reason = "an allocator cannot be written without it")]
mod memory;
mod progress;
mod text;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::error::CliError;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    memory::set(cli.memory, cli.verb.subject());
    let outcome = std::panic::catch_unwind(|| run(&cli));
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            failure.print();
            ExitCode::from(failure.exit_code())
        }
        // The default hook has printed the panic message.
        Err(_) => {
            CliError::Bug("a stage panicked; please report this with the input".into()).print();
            ExitCode::from(3)
        }
    }
}

/// Prints an error of clap, or the requested help.
fn explain(error: &clap::Error) -> ExitCode {
    let printed = error.print().is_ok();
    ExitCode::from(if error.use_stderr() || !printed { 2 } else { 0 })
}

fn run(cli: &Cli) -> Result<(), CliError> {
    let terminal = text::Terminal { json: cli.json, quiet: cli.quiet };
    match &cli.verb {
        Verb::Compile(args) => verbs::compile::run(args, &terminal),
        Verb::Run(args) => verbs::run::run(args, &terminal),
        Verb::Reproduce(args) => verbs::reproduce::run(args, &terminal),
        Verb::Show(args) => verbs::show::run(args, &terminal),
        Verb::Why(args) => verbs::why::run(args, &terminal),
        Verb::Diff(args) => verbs::diff::run(args, &terminal),
        Verb::Verify(args) => verbs::verify::run(args, &terminal),
        Verb::Bound(args) => verbs::bound::run(args, &terminal),
        Verb::Emit(args) => verbs::emit::run(args, &terminal),
        Verb::Machines(args) => verbs::machines::run(args, &terminal),
        Verb::Patterns(args) => verbs::patterns::run(args, &terminal),
        Verb::Generate(args) => verbs::generate::run(args, &terminal),
    }
}
