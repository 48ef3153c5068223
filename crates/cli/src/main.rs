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
mod interrupt;
mod json;
mod load;
#[allow(unsafe_code, reason = "an allocator cannot be written without it")]
mod memory;
mod partition_file;
mod progress;
mod refused;
mod rows;
mod text;

use std::io::Write;
use std::process::ExitCode;

use conset_ir::{At, InputError};

use crate::args::{Cli, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    cli.color().write_global();
    memory::set(cli.memory, cli.command.subject());
    let terminal = text::Terminal::new(&cli);
    let outcome = std::panic::catch_unwind(|| run(&cli, &terminal));
    let failure = match outcome {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        // The default hook has printed the panic message.
        Err(_) => CliError::Bug("a stage panicked; please report this with the input".into()),
    };
    terminal.print_failure(&failure);
    ExitCode::from(failure.exit_code())
}

/// Prints an error of clap, or the requested help.
fn explain(error: &clap::Error) -> ExitCode {
    args::color_of(std::env::args_os()).write_global();
    let text = error.render().ansi().to_string();
    let printed = match error.use_stderr() {
        true => anstream::stderr().write_all(text.as_bytes()),
        false => anstream::stdout().write_all(text.as_bytes()),
    }
    .is_ok();
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let out = files::OutputTarget::Stdout;
        let _ = out.write(|out| json::write_usage(out, error));
    }
    ExitCode::from(if error.use_stderr() || !printed { 2 } else { 0 })
}

fn run(cli: &Cli, terminal: &text::Terminal) -> Result<(), CliError> {
    if cli.json && terminal.table != args::TableFormat::Human {
        let message = "--json and --format select two formats of the same output";
        let error = InputError::new("--format", At::Whole, message);
        return Err(error.help("leave out one of them").into());
    }
    match &cli.command {
        Command::Compile(args) => commands::compile::run(args, terminal),
        Command::Run(args) => commands::run::run(args, terminal),
        Command::Predict(args) => commands::predict::run(args, terminal),
        Command::Sweep(args) => commands::sweep::run(args, terminal),
        Command::Reproduce(args) => commands::reproduce::run(args, terminal),
        Command::Show(args) => commands::show::run(args, terminal),
        Command::View(args) => commands::view::run(args, terminal),
        Command::Why(args) => commands::why::run(args, terminal),
        Command::Diff(args) => commands::diff::run(args, terminal),
        Command::Verify(args) => commands::verify::run(args, terminal),
        Command::Bound(args) => commands::bound::run(args, terminal),
        Command::Info(args) => commands::info::run(args, terminal),
        Command::Emit(args) => commands::emit::run(args, terminal),
        Command::Machines(args) => commands::machines::run(args, terminal),
        Command::Tune(args) => commands::tune::run(args, terminal),
        Command::Patterns(args) => commands::patterns::run(args, terminal),
        Command::Generate(args) => commands::generate::run(args, terminal),
        Command::Soak(args) => commands::soak::run(args, terminal),
        Command::Completions(args) => commands::completions::run(args, terminal),
        Command::Man(args) => commands::completions::write_pages(args, terminal),
        Command::Help(_) => commands::help::words(terminal),
    }
}
