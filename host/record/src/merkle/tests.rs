//! RFC 6962's reference vectors, and the recursive definitions of RFC 9162 as the oracle.

use proptest::prelude::*;

use super::*;

/// Leaves of the reference implementation's tests (certificate-transparency `merkletree`).
const LEAVES: [&[u8]; 8] = [
    &[],
    &[0x00],
    &[0x10],
    &[0x20, 0x21],
    &[0x30, 0x31],
    &[0x40, 0x41, 0x42, 0x43],
    &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
    &[
        0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e,
        0x6f,
    ],
];

const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn hashes(leaves: &[&[u8]]) -> Vec<TreeHash> {
    leaves.iter().map(|leaf| TreeHash::leaf(leaf)).collect()
}

fn numbered(size: usize) -> Vec<TreeHash> {
    (0..size).map(|index| TreeHash::leaf(&index.to_le_bytes())).collect()
}

/// `MTH` of RFC 9162, section 2.1.1.
fn naive_root(leaves: &[TreeHash]) -> TreeHash {
    match leaves {
        [] => TreeHash::empty(),
        [leaf] => *leaf,
        _ => {
            let mut split = 1;
            while split * 2 < leaves.len() {
                split *= 2;
            }
            TreeHash::node(&naive_root(&leaves[..split]), &naive_root(&leaves[split..]))
        }
    }
}

/// `PATH` of RFC 9162, section 2.1.3.1.
fn naive_path(leaves: &[TreeHash], index: usize) -> Vec<TreeHash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let mut split = 1;
    while split * 2 < leaves.len() {
        split *= 2;
    }
    let (left, right) = leaves.split_at(split);
    let (mut path, last) = if index < split {
        (naive_path(left, index), naive_root(right))
    } else {
        (naive_path(right, index - split), naive_root(left))
    };
    path.push(last);
    path
}

/// `SUBPROOF` of RFC 9162, section 2.1.4.1.
fn naive_consistency(leaves: &[TreeHash], old: usize, is_complete: bool) -> Vec<TreeHash> {
    if old == leaves.len() {
        return if is_complete { Vec::new() } else { vec![naive_root(leaves)] };
    }
    let mut split = 1;
    while split * 2 < leaves.len() {
        split *= 2;
    }
    let (left, right) = leaves.split_at(split);
    let (mut path, last) = if old <= split {
        (naive_consistency(left, old, is_complete), naive_root(right))
    } else {
        (naive_consistency(right, old - split, false), naive_root(left))
    };
    path.push(last);
    path
}

#[test]
fn roots_equal_the_reference_vectors() {
    assert_eq!(
        format!("{:?}", TreeHash::empty()),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    for (size, root) in (1..).zip(ROOTS) {
        assert_eq!(format!("{:?}", tree_root(&hashes(&LEAVES[..size]))), root, "size {size}");
    }
}

#[test]
fn proofs_of_all_small_trees_equal_the_definition_and_hold() {
    for size in 1..=48 {
        let leaves = numbered(size);
        let root = naive_root(&leaves);
        assert_eq!(tree_root(&leaves), root);
        for index in 0..size {
            let path = inclusion_path(&leaves, index).unwrap();
            assert_eq!(path, naive_path(&leaves, index), "{index} of {size}");
            assert!(includes(&leaves[index], index as u64, size as u64, &path, &root));
            for other in (0..size).filter(|other| *other != index) {
                assert!(!includes(&leaves[index], other as u64, size as u64, &path, &root));
            }
        }
        for old in 1..=size {
            let path = consistency_path(&leaves, old).unwrap();
            assert_eq!(path, naive_consistency(&leaves, old, true), "{old} of {size}");
            let before = naive_root(&leaves[..old]);
            assert!(extends((old as u64, &before), (size as u64, &root), &path));
        }
        assert_eq!(inclusion_path(&leaves, size), None);
        assert_eq!(consistency_path(&leaves, size + 1), None);
    }
}

#[test]
fn the_empty_tree_is_a_prefix_of_every_tree() {
    let leaves = numbered(5);
    assert_eq!(consistency_path(&leaves, 0), Some(Vec::new()));
    assert!(extends((0, &TreeHash::empty()), (5, &tree_root(&leaves)), &[]));
    assert!(!extends((0, &leaves[0]), (5, &tree_root(&leaves)), &[]));
}

proptest! {
    #[test]
    fn damaged_inclusion_proofs_fail(
        size in 2_usize..300, index: prop::sample::Index, at: prop::sample::Index, byte in 0_usize..32,
    ) {
        let (leaves, index) = (numbered(size), index.index(size));
        let root = tree_root(&leaves);
        let mut path = inclusion_path(&leaves, index).unwrap();
        let at = at.index(path.len());
        path[at].0[byte] ^= 1;
        prop_assert!(!includes(&leaves[index], index as u64, size as u64, &path, &root));
        path[at].0[byte] ^= 1;
        path.push(root);
        prop_assert!(!includes(&leaves[index], index as u64, size as u64, &path, &root));
        path.truncate(path.len() - 2);
        prop_assert!(!includes(&leaves[index], index as u64, size as u64, &path, &root));
    }

    #[test]
    fn damaged_consistency_proofs_fail(
        size in 3_usize..300, old: prop::sample::Index, at: prop::sample::Index, byte in 0_usize..32,
    ) {
        let (leaves, old) = (numbered(size), 1 + old.index(size - 1));
        let (before, root) = (tree_root(&leaves[..old]), tree_root(&leaves));
        let mut path = consistency_path(&leaves, old).unwrap();
        let at = at.index(path.len());
        path[at].0[byte] ^= 1;
        prop_assert!(!extends((old as u64, &before), (size as u64, &root), &path));
        path[at].0[byte] ^= 1;
        prop_assert!(!extends((old as u64, &root), (size as u64, &root), &path));
        prop_assert!(!extends((old as u64, &before), (size as u64, &before), &path));
    }

    #[test]
    fn arbitrary_proofs_are_refused_without_panic(
        index: u64, size: u64, old: u64, path in prop::collection::vec(any::<[u8; 32]>(), 0..70),
    ) {
        let path: Vec<_> = path.into_iter().map(TreeHash).collect();
        let hash = TreeHash::leaf(b"x");
        let _ = includes(&hash, index, size, &path, &hash);
        let _ = extends((old, &hash), (size, &TreeHash::empty()), &path);
        let _ = extends((u64::MAX, &hash), (u64::MAX, &hash), &path);
    }
}
