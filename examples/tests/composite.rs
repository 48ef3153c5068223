//! The picture of `composite` has the same bits for any number of cells, any way to combine images and
//! every transport.

use conset_examples::composite::{View, behind, png, render};
use conset_examples::team::{TeamArgs, TransportArg};
use conset_runtime::ReducePlan;

const VIEW: View = View { size: 20, samples: 60, angle: 55.0 };

fn team(machine: &str, transport: TransportArg) -> TeamArgs {
    let workers = (transport == TransportArg::Threads).then_some(2);
    TeamArgs { machine: machine.to_owned(), transport, workers, ..TeamArgs::default() }
}

#[test]
fn pictures_have_the_same_bits_for_any_number_of_cells() {
    let alone = render(&team("ring:1", TransportArg::Threads), VIEW, None).unwrap();
    assert!(alone.agrees);
    let rays = || alone.image.iter().flat_map(|word| word.to_le_bytes());
    // There is something to hide, and something to see through.
    let stopped = rays().filter(|&ray| ray > 0).count();
    assert!((alone.image.len()..7 * alone.image.len()).contains(&stopped), "{stopped}");
    for (machine, radices) in [
        ("ring:2", None),
        ("ring:7", Some(vec![7])),
        ("ring:7", Some(vec![2, 2])),
        ("mesh:4x3", Some(vec![3, 4])),
        ("mesh:4x3", None),
        ("t3d:4x4x4", Some(vec![4, 4, 4])),
        ("ring:64", Some(vec![2; 6])),
    ] {
        let plan = radices.map(|radices| ReducePlan::Swap { radices });
        let picture = render(&team(machine, TransportArg::Threads), VIEW, plan).unwrap();
        assert!(picture.agrees, "{picture}");
        assert_eq!(picture.image, alone.image, "{picture}");
    }
    for machine in ["ring:1", "ring:2", "ring:3", "t3d:2x2x2", "ring:13"] {
        for transport in [TransportArg::Fabric, TransportArg::Threads] {
            let picture = render(&team(machine, transport), VIEW, None).unwrap();
            assert!(picture.agrees && picture.image == alone.image, "{transport:?} {picture}");
            let is_counted = transport == TransportArg::Fabric && picture.cells > 1;
            assert_eq!(picture.clocks > 0, is_counted, "{picture}");
        }
    }
}

/// From the other side the last slab is in front.
#[test]
fn slabs_are_combined_in_the_order_in_which_rays_pass_them() {
    let view = View { angle: 235.0, ..VIEW };
    let picture = render(&team("ring:5", TransportArg::Threads), view, None).unwrap();
    assert!(picture.agrees, "{picture}");
    let other = render(&team("ring:5", TransportArg::Threads), VIEW, None).unwrap();
    assert_ne!(picture.image, other.image);
}

#[test]
fn rays_of_the_front_hide_those_behind() {
    let [front, back] = [[0u8, 1, 128, 255, 0, 0, 127, 0], [7, 8, 9, 10, 0, 255, 128, 1]];
    let mut word = [u64::from_le_bytes(front)];
    behind(&mut word, &[u64::from_le_bytes(back)]);
    assert_eq!(word[0].to_le_bytes(), [7, 1, 128, 255, 0, 255, 127, 1]);
}

#[test]
fn pictures_are_png_files() {
    let picture = render(&team("ring:3", TransportArg::Threads), VIEW, None).unwrap();
    let file = png(&picture.image, VIEW.size).unwrap();
    assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(file[12..24], *b"IHDR\0\0\0\x14\0\0\0\x14");
    // The checksum of an empty last chunk.
    assert_eq!(file[file.len() - 8..], *b"IEND\xaeB\x60\x82");
}
