//! Replays the seeds of the fuzz targets without a fuzzer. `cargo xtask fuzz` searches from them.

use std::collections::BTreeSet;
use std::fs;

use cofferdam_fuzz::TARGETS;
use cofferdam_tests::root;

#[test]
fn every_seed_keeps_the_rules() {
    for target in TARGETS {
        let folder = root().join("tests/fuzz/seeds").join(target.name);
        let seeds: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|seed| seed.unwrap().path()).collect();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for seed in seeds {
            // The fuzzer's own inputs, in target/fuzz/corpus, have none.
            assert!(seed.extension().is_some(), "{} is not a seed", seed.display());
            (target.check)(&fs::read(&seed).unwrap());
        }
    }
}

#[test]
fn every_target_has_a_folder_of_seeds() {
    let folders = fs::read_dir(root().join("tests/fuzz/seeds")).unwrap();
    let folders: BTreeSet<_> =
        folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}
