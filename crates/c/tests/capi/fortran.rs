//! The Fortran module against the header: the same functions with the same arguments of the same
//! types, the same constants, the same structures.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use crate::header::{functions, without_comments};
use crate::tools::{files, folder, have, here, read, succeed};

/// The module's text in the order in which `install.sh` puts its parts together.
fn module() -> String {
    let install = read("install.sh");
    let (_, after) = install.split_once("fortran && cat ").expect("install.sh joins the parts");
    let names = after.split(')').next().unwrap();
    let parts: Vec<String> =
        names.split_whitespace().map(|name| read(&format!("fortran/{name}"))).collect();
    assert_eq!(parts.len(), files("fortran", "f90").len(), "install.sh joins all parts");
    parts.concat()
}

/// The arguments of a binding: names and declarations, in order.
type Arguments = Vec<(String, String)>;

/// The bindings of the module by their names: the result's declaration and the arguments.
fn bindings() -> BTreeMap<String, (String, Arguments)> {
    let text = module().replace("&\n", " ");
    let mut found = BTreeMap::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let head = line.strip_prefix("function ").or_else(|| line.strip_prefix("subroutine "));
        let Some((name, rest)) = head.and_then(|head| head.split_once('(')) else { continue };
        if !name.starts_with("conset_") || !rest.contains("bind(c)") {
            continue;
        }
        let mut declared = BTreeMap::new();
        for line in lines.by_ref().take_while(|line| !line.starts_with("end ")) {
            let Some((kind, names)) = line.split_once(" :: ") else { continue };
            for name in names.split(',') {
                assert!(declared.insert(name.trim().to_owned(), kind.to_owned()).is_none());
            }
        }
        let of = |name: &str| {
            declared.get(name).cloned().unwrap_or_else(|| panic!("{line}: `{name}` has no type"))
        };
        let names = rest.split(')').next().unwrap().split(',').map(str::trim);
        let arguments = names.filter(|name| !name.is_empty());
        let arguments = arguments.map(|name| (name.to_owned(), of(name))).collect();
        let result = match line.starts_with("function") {
            true => of(rest.rsplit_once("result(").unwrap().1.trim_end_matches(')')),
            false => String::new(),
        };
        assert!(found.insert(name.to_owned(), (result, arguments)).is_none(), "{name} twice");
    }
    found
}

/// The declarations that an argument of a type of C may have.
fn declarations(c: &str, structures: &[String]) -> Vec<String> {
    let number = |c: &str| match c {
        "int" | "unsigned" => Some("integer(c_int)"),
        "uint32_t" => Some("integer(c_int32_t)"),
        "uint64_t" => Some("integer(c_int64_t)"),
        "size_t" => Some("integer(c_size_t)"),
        _ => None,
    };
    let all = |list: &[&str]| list.iter().map(|&kind| kind.to_owned()).collect();
    if let Some(kind) = number(c) {
        return vec![format!("{kind}, value")];
    }
    let (target, intents) = match (c.strip_suffix(" const *"), c.strip_suffix(" *")) {
        (Some(target), _) => (target, &["intent(in)"][..]),
        (_, Some(target)) => (target, &["intent(out)", "intent(inout)"][..]),
        _ if ["conset_program", "conset_handler", "conset_combine"].contains(&c) => {
            return all(&["type(c_funptr), value"]);
        }
        _ => panic!("`{c}` has no type in Fortran"),
    };
    if let Some(kind) = number(target) {
        let forms = intents.iter();
        return forms
            .flat_map(|i| [format!("{kind}, {i}"), format!("{kind}, dimension(*), {i}")])
            .collect();
    }
    if structures.iter().any(|name| name == target) {
        let forms = |intent: &&str| {
            ["", ", dimension(*)"].map(|form| format!("type({target}){form}, {intent}"))
        };
        let optional = |form: String| [form.clone(), format!("{form}, optional")];
        return intents.iter().flat_map(forms).flat_map(optional).collect();
    }
    match target {
        "char" => all(&["character(kind=c_char), dimension(*), intent(in)"]),
        "void" if intents.len() == 1 => {
            all(&["type(*), dimension(*), intent(in)", "type(*), intent(in)"])
        }
        "void" => all(&[
            "type(*), dimension(*), intent(inout)",
            "type(*), intent(inout)",
            "type(c_ptr), value",
        ]),
        _ if target.ends_with('*') && intents.len() == 1 => {
            all(&["type(c_ptr), dimension(*), intent(in)"])
        }
        _ if target.ends_with('*') => all(&["type(c_ptr), intent(out)", "type(c_ptr), value"]),
        _ => all(&["type(c_ptr), value"]),
    }
}

fn result(c: &str) -> &str {
    match c {
        "void" => "",
        "int" => "integer(c_int)",
        "uint32_t" => "integer(c_int32_t)",
        "uint64_t" => "integer(c_int64_t)",
        "size_t" => "integer(c_size_t)",
        "char const *" => "type(c_ptr)",
        other => panic!("`{other}` is no result"),
    }
}

/// The header's structures by their names, with their fields in order.
fn structures() -> BTreeMap<String, Vec<String>> {
    let code = without_comments(&read("include/conset.h"));
    let mut found = BTreeMap::new();
    for piece in code.split("typedef struct ").skip(1) {
        let (name, rest) = piece.split_once(' ').unwrap();
        let Some(body) = rest.strip_prefix('{') else { continue };
        let fields = body.split('}').next().unwrap().split(';').map(str::trim);
        let field = |field: &str| {
            let name = field.rsplit([' ', '*']).next().unwrap();
            name.split('[').next().unwrap().to_owned()
        };
        let fields = fields.filter(|field| !field.is_empty()).map(field).collect();
        found.insert(name.to_owned(), fields);
    }
    found
}

/// The names of the header's constants.
fn constants() -> Vec<String> {
    let code = without_comments(&read("include/conset.h"));
    let mut found = Vec::new();
    for piece in code.split("\nenum ").skip(1) {
        let (_, body) = piece.split_once('{').unwrap();
        let members = body.split('}').next().unwrap().split(',');
        let names = members.map(|member| member.split('=').next().unwrap().trim().to_owned());
        found.extend(names.filter(|name| !name.is_empty()));
    }
    found
}

#[test]
fn every_function_has_a_binding_with_its_types() {
    let (functions, bindings) = (functions(), bindings());
    let names: Vec<&String> = functions.keys().collect();
    assert_eq!(names, bindings.keys().collect::<Vec<_>>());
    let structures: Vec<String> = structures().into_keys().collect();
    for (name, function) in &functions {
        let (kind, arguments) = &bindings[name];
        assert_eq!(kind, result(&function.result), "the result of {name}");
        assert_eq!(function.arguments.len(), arguments.len(), "the arguments of {name}");
        for ((_, c), (argument, kind)) in function.arguments.iter().zip(arguments) {
            let expected = declarations(c, &structures);
            assert!(expected.contains(kind), "{name}: `{argument}` is {kind}, of {expected:?}");
        }
    }
}

#[test]
fn structures_have_the_header_s_fields() {
    let text = module();
    let structures = structures();
    for (name, fields) in &structures {
        let begin = format!("type, bind(c) :: {name}\n");
        let (_, body) = text.split_once(&begin).unwrap_or_else(|| panic!("no type {name}"));
        let lines = body.lines().take_while(|line| !line.trim().starts_with("end type"));
        let names = lines.flat_map(|line| line.split_once(" :: ").unwrap().1.split(", "));
        let names: Vec<&str> = names.map(|name| name.split('(').next().unwrap()).collect();
        assert_eq!(&names, fields, "{name}");
    }
    assert_eq!(text.matches("type, bind(c) :: ").count(), structures.len());
}

/// Sizes and numbers as a compiler of each language has them.
#[test]
fn constants_and_sizes_are_those_of_the_header() {
    if !have("gfortran", "constants and sizes in Fortran") {
        return;
    }
    let (constants, structures) = (constants(), structures());
    assert!(constants.len() > 40 && structures.len() > 10);
    let mut c = "#include <conset.h>\n#include <stdio.h>\nint main(void)\n{\n".to_owned();
    let mut f = "program sizes\n   use conset\n   implicit none\n".to_owned();
    for (row, name) in structures.keys().enumerate() {
        writeln!(c, "    printf(\"{name} %d\\n\", (int)sizeof({name}));").unwrap();
        writeln!(f, "   type({name}) :: v{row}").unwrap();
    }
    for (row, name) in structures.keys().enumerate() {
        writeln!(f, "   print '(a, i0)', \"{name} \", c_sizeof(v{row})").unwrap();
    }
    for name in &constants {
        writeln!(c, "    printf(\"{name} %d\\n\", (int){name});").unwrap();
        writeln!(f, "   print '(a, i0)', \"{name} \", {name}").unwrap();
    }
    c.push_str("    return 0;\n}\n");
    f.push_str("end program\n");
    let folder = folder("sizes");
    for (name, text) in [("sizes.c", &c), ("sizes.f90", &f), ("conset.f90", &module())] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let mut cc = Command::new("cc");
    cc.current_dir(&folder).arg("-I").arg(here().join("include"));
    succeed(cc.args(["sizes.c", "-o", "sizes-c"]));
    let mut gfortran = Command::new("gfortran");
    gfortran.current_dir(&folder).args(["-std=f2018", "-Wall", "-Wextra", "-Werror", "-c"]);
    succeed(gfortran.arg("conset.f90"));
    // The object is not linked: nothing but `conset_message` calls the library.
    let mut gfortran = Command::new("gfortran");
    gfortran.current_dir(&folder).args(["-c", "sizes.f90"]);
    succeed(&mut gfortran);
    succeed(Command::new("gfortran").current_dir(&folder).args(["sizes.o", "-o", "sizes-f"]));
    let c = succeed(&mut Command::new(folder.join("sizes-c")));
    assert_eq!(succeed(&mut Command::new(folder.join("sizes-f"))), c);
}
