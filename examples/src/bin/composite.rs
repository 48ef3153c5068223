//! Sort-last volume rendering; the solver is in `conset_examples::composite`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use conset_examples::composite::{View, render};
use conset_examples::team::TeamArgs;
use conset_runtime::ReducePlan;

/// Renders a volume in slabs, one for each cell, and combines the images by swap.
#[derive(Parser, Debug)]
#[command(
    max_term_width = 100,
    after_help = "Example: composite --size 512 --machine mesh:4x3 --transport threads -o volume.png"
)]
struct Args {
    /// Pixels across and down.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    size: u32,
    /// Samples along a ray.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    samples: u32,
    /// Angle of the view around the vertical axis, in degrees.
    #[arg(long, value_name = "DEGREES", default_value_t = 55.0, allow_negative_numbers = true)]
    angle: f64,
    /// Combine by swap with these radices, as 3,4; their product is the number of cells, or at least
    /// half of it [default: what is cheapest on the machine].
    #[arg(long, value_name = "R,R..", value_delimiter = ',')]
    radices: Option<Vec<usize>>,
    /// Write the picture here, as PNG.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    team: TeamArgs,
}

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]
fn main() -> ExitCode {
    let args = Args::parse();
    let view = View { size: args.size as usize, samples: args.samples as usize, angle: args.angle };
    let plan = args.radices.map(|radices| ReducePlan::Swap { radices });
    let rendered = render(&args.team, view, plan).and_then(|picture| {
        args.output.iter().try_for_each(|file| picture.write(file))?;
        Ok(picture)
    });
    match rendered {
        Ok(picture) => {
            if !picture.image.is_empty() {
                println!("{picture}");
            }
            ExitCode::from(u8::from(!picture.agrees))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
