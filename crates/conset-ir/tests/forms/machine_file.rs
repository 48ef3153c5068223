//! Machine files: what is read is what was written, and errors point at the value.

use conset_ir::machine_file::{parse, write};
use conset_ir::{At, CellId};

const EXAMPLE: &str = "preset = \"iwarp:4x4\"\nname = \"ours\"\nchannels_per_cell = 20\n\
    duplex = \"half\"\ndead_cells = [5]\ndead_links = [[3, 2]]\n";

#[test]
fn values_of_the_file_replace_those_of_the_preset() {
    let machine = parse("m.toml", EXAMPLE).unwrap();
    assert_eq!((machine.name(), machine.cell_count()), ("ours", 16));
    assert_eq!(machine.parameters().channels_per_cell, 20);
    assert_eq!(machine.parameters().t_sync, 352);
    assert_eq!(machine.dead_cells(), [CellId(5)]);
    assert_eq!(parse("m.toml", &write(&machine)), Ok(machine));
}

#[test]
fn errors_point_at_the_value() {
    let ring = "name = \"r\"\n[topology]\nkind = \"ring\"\ncells = 4\n";
    for (text, line, column, said) in [
        ("", 1, 1, "expected `name`"),
        ("name = \"r\"", 1, 1, "expected `[topology]`"),
        ("name = \"r\"\nt_snyc = 3\n", 2, 1, "`t_snyc` is not a key of machine files"),
        ("t_sync = -3\n", 1, 10, "expected a whole number from 0 to 1000000000"),
        ("t_sync = 1.5\n", 1, 10, "found float"),
        ("t_sync = 99999999999999999999999\n", 1, 10, "expected a whole number"),
        ("duplex = \"both\"\n", 1, 10, "`both` is not a duplex"),
        ("preset = \"cray\"\n", 1, 10, "`cray` is not a machine"),
        ("preset = \"ring:4\"\ndead_cells = [1, 4]\n", 2, 18, "from 0 to 3"),
        ("preset = \"ring:4\"\ndead_links = [[0, 1], [0, 2]]\n", 2, 23, "no link joins c0 to c2"),
        ("preset = \"ring:4\"\ndead_links = [[0]]\n", 2, 15, "found 1 values"),
        ("name = \"\"\npreset = \"ring:4\"\n", 1, 8, "a name has 1 to 128 bytes"),
        ("name = 3\n", 1, 8, "expected a string, found integer"),
        ("name = \"r\"\nname = \"r\"\n", 2, 1, "duplicate key"),
        ("name = \"r\n", 1, 8, ""),
        ("[topology]\nkind = \"rnig\"\n", 2, 8, "`rnig` is not a topology"),
        ("[topology]\nkind = \"ring\"\n", 1, 1, "expected the key `cells`"),
        (
            "[topology]\nkind = \"ring\"\ncells = 4\ndims = [4]\n",
            4,
            1,
            "`dims` is not a key of a ring",
        ),
        ("name = \"g\"\n[topology]\nkind = \"torus\"\ndims = [99999, 99999]\n", 2, 1, "more than"),
        (
            "[topology]\nkind = \"graph\"\ncells = 2\nlinks = [[0, 1], [1, 2]]\n",
            4,
            22,
            "from 0 to 1",
        ),
        ("[topology]\nkind = \"graph\"\ncells = 2\nlinks = [[1, 1]]\n", 4, 10, "to itself"),
    ] {
        let error = parse("m.toml", text).unwrap_err();
        let At::Text { line: l, column: c, .. } = error.at else { panic!("{error}") };
        assert!(error.message.contains(said), "{text}: {error}");
        if !said.is_empty() {
            assert_eq!((l, c), (line, column), "{text}: {error}");
        }
    }
    assert_eq!(parse("m.toml", ring).unwrap().cell_count(), 4);
    let help = parse("m.toml", "channels_per_cel = 3").unwrap_err().help.unwrap();
    assert_eq!(help, "did you mean `channels_per_cell`?");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for text in ["a=".to_owned() + &"[".repeat(100_000), "a={b=".repeat(50_000), "[a.".repeat(9)] {
        assert!(parse("m.toml", &text).is_err());
    }
    assert!(parse("m.toml", &("a".to_owned() + &".a".repeat(100_000) + "=1")).is_err());
}
