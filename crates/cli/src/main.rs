//! The `conset` command.
//!
//! This crate handles arguments, terminal, files and exit codes; everything else is in the library
//! `conset`. Each subcommand is a module of [`commands`]: it reads its inputs, calls the library, and
//! prints a text or, with `--json`, one JSON value.
//!
//! Exit codes: 0 success, 1 infeasible or rejected, 2 wrong usage or input, 3 bug in conset.

#![deny(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

mod args;
mod commands;
mod error;
mod files;
mod load;
#[allow(unsafe_code, reason = "an allocator cannot be written without it")]
mod memory;
mod partition_file;
mod progress;
mod text;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    memory::set(cli.memory, cli.command.subject());
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
    match &cli.command {
        Command::Compile(args) => commands::compile::run(args, &terminal),
        Command::Run(args) => commands::run::run(args, &terminal),
        Command::Reproduce(args) => commands::reproduce::run(args, &terminal),
        Command::Show(args) => commands::show::run(args, &terminal),
        Command::View(args) => commands::view::run(args, &terminal),
        Command::Why(args) => commands::why::run(args, &terminal),
        Command::Diff(args) => commands::diff::run(args, &terminal),
        Command::Verify(args) => commands::verify::run(args, &terminal),
        Command::Bound(args) => commands::bound::run(args, &terminal),
        Command::Info(args) => commands::info::run(args, &terminal),
        Command::Emit(args) => commands::emit::run(args, &terminal),
        Command::Machines(args) => commands::machines::run(args, &terminal),
        Command::Patterns(args) => commands::patterns::run(args, &terminal),
        Command::Generate(args) => commands::generate::run(args, &terminal),
    }
}
