//! Merkle tree without some of its leaves: roots of complete subtrees stand for them.

use std::ops::Range;

#[cfg(feature = "witness")]
use super::consistency_path_of;
use super::{TreeAccumulator, TreeHash};

/// Merkle tree of leaves and of complete subtrees without their leaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseTree {
    parts: Vec<TreePart>,
    size: usize,
}

/// Complete subtree of 2^`height` leaves; a leaf if the height is 0.
#[derive(Debug, Clone, Copy)]
struct TreePart {
    start: usize,
    height: u32,
    root: TreeHash,
}

impl SparseTree {
    /// Returns the number of leaves, with those that are removed.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Appends a complete subtree of 2^`height` leaves. Returns false, and appends nothing, if the
    /// size is not a multiple of that.
    pub(crate) fn append(&mut self, height: u32, root: TreeHash) -> bool {
        let Some(leaves) = 1_usize.checked_shl(height) else { return false };
        let Some(size) = self.size.checked_add(leaves) else { return false };
        let is_aligned = self.size & (leaves - 1) == 0;
        if is_aligned {
            self.parts.push(TreePart { start: self.size, height, root });
            self.size = size;
        }
        is_aligned
    }

    /// Returns the root over a range of leaves; `None` if it begins or ends within a removed
    /// subtree or behind the last leaf.
    pub(crate) fn root(&self, range: Range<usize>) -> Option<TreeHash> {
        let first = self.parts.partition_point(|part| part.start < range.start);
        let parts = self.parts.get(first..)?.iter().take_while(|part| part.start < range.end);
        let mut tree = TreeAccumulator::default();
        for part in parts {
            if !tree.append_subtree(part.height, part.root) {
                return None;
            }
        }
        let size = usize::try_from(tree.size()).ok()?;
        // A range that begins within a subtree has fewer leaves here.
        (size == range.len()).then(|| tree.root())
    }

    /// Returns the proof that the first `old` leaves are the start of all leaves.
    #[cfg(feature = "witness")]
    pub(crate) fn consistency_path(&self, old: usize) -> Option<Vec<TreeHash>> {
        consistency_path_of(self.size, old, |range| self.root(range))
    }

    /// Returns the largest complete subtrees that a range of leaves consists of, with their
    /// heights.
    #[cfg(feature = "witness")]
    pub(crate) fn subtrees(&self, range: Range<usize>) -> Option<Vec<(u32, TreeHash)>> {
        let (mut at, mut subtrees) = (range.start, Vec::new());
        while at < range.end {
            let height = at.trailing_zeros().min((range.end - at).ilog2());
            let end = at + (1 << height);
            subtrees.push((height, self.root(at..end)?));
            at = end;
        }
        Some(subtrees)
    }
}

#[cfg(all(test, feature = "witness"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::merkle::{consistency_path, tree_root};

    fn leaves(count: usize) -> Vec<TreeHash> {
        (0..count).map(|index| TreeHash::leaf(index.to_string().as_bytes())).collect()
    }

    /// Returns a tree in which the leaves of `removed` are removed, apart from the states at
    /// `sizes`.
    fn without(tree: &SparseTree, removed: &[bool], sizes: &[usize]) -> Option<SparseTree> {
        let (mut sparse, mut from) = (SparseTree::default(), 0);
        for at in 0..=tree.size() {
            let is_removed = removed.get(at).copied().unwrap_or(false);
            if !is_removed || sizes.contains(&at) {
                for (height, root) in tree.subtrees(from..at)? {
                    assert!(sparse.append(height, root));
                }
                from = at;
            }
            if !is_removed && at < tree.size() {
                assert!(sparse.append(0, tree.root(at..at + 1)?));
                from = at + 1;
            }
        }
        Some(sparse)
    }

    proptest! {
        #[test]
        fn a_tree_without_leaves_has_the_same_roots_and_proofs(
            mut removed in prop::collection::vec(any::<bool>(), 1..130),
            again in prop::collection::vec(any::<bool>(), 130),
            sizes in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let leaves = leaves(removed.len());
            let sizes: Vec<_> = sizes.iter().map(|size| size.index(leaves.len() + 1)).collect();
            let mut tree = SparseTree::default();
            leaves.iter().for_each(|leaf| assert!(tree.append(0, *leaf)));
            for _ in 0..2 {
                tree = without(&tree, &removed, &sizes).unwrap();
                prop_assert_eq!(tree.size(), leaves.len());
                for size in sizes.iter().chain([&leaves.len()]) {
                    prop_assert_eq!(tree.root(0..*size), Some(tree_root(&leaves[..*size])));
                    prop_assert_eq!(
                        tree.consistency_path(*size),
                        consistency_path(&leaves, *size)
                    );
                }
                removed.iter_mut().zip(&again).for_each(|(one, more)| *one |= *more);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_none() {
        let leaves = leaves(8);
        let mut tree = SparseTree::default();
        assert!(tree.append(2, tree_root(&leaves[..4])));
        assert!(tree.append(0, leaves[4]));
        assert!(!tree.append(1, leaves[5]), "a subtree of two at an odd position");
        assert!(!tree.append(64, leaves[5]) && !tree.append(63, leaves[5]));
        assert_eq!(tree.size(), 5);
        assert_eq!(tree.root(0..3), None);
        assert_eq!(tree.root(1..4), None);
        assert_eq!(tree.root(2..5), None);
        assert_eq!(tree.root(0..6), None);
        assert_eq!(tree.root(0..5), Some(tree_root(&leaves[..5])));
        assert_eq!(tree.consistency_path(3), None);
        assert!(tree.consistency_path(4).is_some());
    }
}
