//! For random machines, sets and seeds: whatever compiles verifies, runs and delivers.

use std::sync::Arc;

use conset::{Algorithm, CompileError, CompileOptions, Compiler, Objective, run};
use conset_ir::Program;
use proptest::prelude::*;

use crate::common::case;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_compiles_verifies_runs_and_delivers((machine, set, seed) in case()) {
        let machine = Arc::new(machine);
        let words = set.words();
        let program = Program::from(set);
        let algorithm = if seed % 4 == 0 { Algorithm::Paper } else { Algorithm::Auto };
        let objective = if seed % 3 == 0 { Objective::Phases } else { Objective::Time };
        let options = CompileOptions::new().seed(seed).algorithm(algorithm).objective(objective);
        let compiled = match Compiler::new(&machine).options(options.clone()).compile(&program) {
            Ok(compiled) => compiled,
            // No way between two cells: the only reason to refuse here.
            Err(CompileError::Infeasible(infeasible)) => {
                prop_assert!(!infeasible.connections.is_empty(), "{infeasible}");
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let runs = run::run(&compiled, seed, false, &mut |_| ()).unwrap();
        let run = &runs[0];
        prop_assert!(run.summary.payload_ok, "{:?}", run.checked);
        prop_assert_eq!(run.summary.words, words);
        prop_assert!(run.summary.measured_clocks >= run.summary.bound_clocks, "{:?}", run.summary);
        prop_assert!(run.summary.phases >= run.summary.bound_phases as usize);
        // The same again gives the same.
        let again = Compiler::new(&machine).options(options).compile(&program).unwrap();
        prop_assert_eq!(again.schedule(), compiled.schedule());
    }
}
