//! The checker depends on conset-ir only, so that Cargo enforces its independence.

#[test]
fn depends_on_conset_ir_alone() {
    let manifest = include_str!("../../Cargo.toml");
    let mut section = "";
    let mut dependencies = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            // Tables of single or target-specific dependencies would slip past the list below.
            assert!(!section.contains("dependencies."), "{line}");
            assert!(!section.starts_with("target."), "{line}");
            assert_ne!(section, "build-dependencies");
        } else if section == "dependencies" && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or(line);
            dependencies.push(name);
        }
    }
    assert_eq!(dependencies, ["conset-ir"]);
}

#[test]
fn the_tests_use_no_producer_either() {
    let manifest = include_str!("../../Cargo.toml");
    let (_, rest) = manifest.split_once("[dev-dependencies]").unwrap();
    let section = rest.split("\n[").next().unwrap();
    assert!(!section.contains("conset"), "{section}");
}
