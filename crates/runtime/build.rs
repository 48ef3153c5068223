//! Builds the C shim over MPI, for the feature `mpi` alone.
//!
//! `MPICC` names the MPI library's compiler wrapper (`mpicc` unless it is set); what the wrapper
//! says it would do gives the headers and libraries. `MPIRUN` names the launcher that the tests
//! use; unless it is set, it is the one that goes with the wrapper.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "mpi")]
    mpi::build();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::path::Path;
    use std::process::Command;

    pub(crate) fn build() {
        for variable in ["MPICC", "MPIRUN"] {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        println!("cargo:rerun-if-changed=shim");
        // docs.rs has no MPI library, and documentation needs none.
        if std::env::var_os("DOCS_RS").is_some() {
            println!("cargo:rustc-env=CONSET_MPIRUN=mpirun");
            return;
        }
        let wrapper = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        let flags = match flags(&wrapper) {
            Ok(flags) => flags,
            Err(why) => {
                println!("cargo:error=conset-runtime's feature `mpi` needs an MPI library: {why}");
                println!(
                    "cargo:error=install one (Debian: apt-get install libopenmpi-dev openmpi-bin), or \
                     set MPICC to its compiler wrapper"
                );
                std::process::exit(1);
            }
        };
        build_shim(&flags);
        link(&flags);
        println!("cargo:rustc-env=CONSET_MPIRUN={}", launcher(&wrapper));
    }

    /// What the wrapper passes to the compiler.
    fn flags(wrapper: &str) -> Result<Vec<String>, String> {
        let output = Command::new(wrapper)
            .arg("-show")
            .output()
            .map_err(|error| format!("cannot run `{wrapper}`: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{wrapper} -show` failed: {}", said.trim()));
        }
        let line = String::from_utf8_lossy(&output.stdout);
        // The first word is the compiler.
        let flags: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        if !flags.iter().any(|flag| flag.starts_with("-l")) {
            return Err(format!("`{wrapper} -show` names no library: {}", line.trim()));
        }
        Ok(flags)
    }

    fn build_shim(flags: &[String]) {
        let mut build = cc::Build::new();
        build.file("shim/conset_mpi.c").file("shim/attached.c").file("shim/tune.c");
        build.std("c11").warnings(true).extra_warnings(true);
        if std::env::var_os("CARGO_FEATURE_MPI_BASELINE").is_some() {
            for file in ["baseline", "baseline_halo", "baseline_unknown"] {
                build.file(format!("shim/{file}.c"));
            }
        }
        for flag in flags.iter().filter(|flag| flag.starts_with("-I") || flag.starts_with("-D")) {
            build.flag(flag);
        }
        build.compile("conset_mpi");
    }

    fn link(flags: &[String]) {
        for flag in flags {
            if let Some(folder) = flag.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
            } else if let Some(library) = flag.strip_prefix("-l") {
                println!("cargo:rustc-link-lib=dylib={library}");
            } else if flag.starts_with("-Wl,-rpath") {
                println!("cargo:rustc-link-arg={flag}");
            }
        }
    }

    /// `mpirun` beside the wrapper, with the wrapper's suffix: `mpicc.mpich` goes with `mpirun.mpich`.
    fn launcher(wrapper: &str) -> String {
        if let Ok(launcher) = std::env::var("MPIRUN") {
            return launcher;
        }
        let path = Path::new(wrapper);
        let name = path.file_name().map_or("mpicc", |name| name.to_str().unwrap_or("mpicc"));
        let name = name.replacen("mpicc", "mpirun", 1);
        path.with_file_name(name).display().to_string()
    }
}
