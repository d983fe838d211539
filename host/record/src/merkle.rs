//! Merkle tree over the lines of a segment (RFC 9162, section 2.1): SHA-256 with domain separation
//! of leaves and nodes.
//!
//! Appending keeps one hash per level, so the writer holds at most 64 hashes whatever the number of
//! lines. Proofs need the hashes of all leaves; only readers make them.

mod sparse;

use std::ops::Range;

use aws_lc_rs::digest::{Context, SHA256};

pub(crate) use self::sparse::SparseTree;

/// Maximum number of hashes in a proof: a tree has at most 64 levels, and a consistency proof one
/// hash more.
pub(crate) const PATH_MAX: usize = 65;

/// SHA-256 hash of a leaf, of a node or of a whole tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeHash([u8; 32]);

impl TreeHash {
    /// Wraps the bytes of a hash.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the root of the tree without leaves.
    #[must_use]
    pub fn empty() -> Self {
        sha256(&[])
    }

    /// Hashes one line, without its line end.
    #[must_use]
    pub fn leaf(line: &[u8]) -> Self {
        sha256(&[&[0], line])
    }

    /// Hashes two subtrees.
    #[must_use]
    pub fn node(left: &Self, right: &Self) -> Self {
        sha256(&[&[1], &left.0, &right.0])
    }
}

impl std::fmt::Debug for TreeHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Hashes the concatenation of `parts`.
pub(crate) fn sha256(parts: &[&[u8]]) -> TreeHash {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    TreeHash(bytes)
}

/// Merkle tree that only grows. It keeps the roots of the complete subtrees, one per set bit of
/// its size, the largest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeAccumulator {
    size: u64,
    peaks: Vec<TreeHash>,
}

impl TreeAccumulator {
    /// Appends one line, given without its line end.
    pub fn append(&mut self, line: &[u8]) {
        self.append_hash(TreeHash::leaf(line));
    }

    /// Appends the hash of a leaf.
    pub(crate) fn append_hash(&mut self, leaf: TreeHash) {
        self.append_subtree(0, leaf);
    }

    /// Appends a complete subtree of 2^`height` leaves. Returns false, and appends nothing, if the
    /// size is not a multiple of that.
    pub(crate) fn append_subtree(&mut self, height: u32, root: TreeHash) -> bool {
        let Some(leaves) = 1_u64.checked_shl(height) else { return false };
        let Some(size) = self.size.checked_add(leaves) else { return false };
        if self.size & (leaves - 1) != 0 {
            return false;
        }
        let mut hash = root;
        for _ in 0..(self.size >> height).trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                hash = TreeHash::node(&left, &hash);
            }
        }
        self.peaks.push(hash);
        self.size = size;
        true
    }

    /// Returns the number of leaves.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the tree over all leaves so far.
    #[must_use]
    pub fn root(&self) -> TreeHash {
        let mut peaks = self.peaks.iter().rev().copied();
        let Some(last) = peaks.next() else { return TreeHash::empty() };
        peaks.fold(last, |right, left| TreeHash::node(&left, &right))
    }
}

/// Returns the root of the tree over `leaves`.
#[must_use]
pub fn tree_root(leaves: &[TreeHash]) -> TreeHash {
    let mut tree = TreeAccumulator::default();
    leaves.iter().for_each(|leaf| tree.append_hash(*leaf));
    tree.root()
}

/// Returns the largest power of two below `size`, which is at least 2.
fn split(size: usize) -> usize {
    size.div_ceil(2).next_power_of_two()
}

/// Returns the hashes that prove that leaf `index` is in the tree over `leaves`, the one next to
/// the leaf first; none if there is no such leaf.
#[must_use]
pub fn inclusion_path(leaves: &[TreeHash], index: usize) -> Option<Vec<TreeHash>> {
    if index >= leaves.len() {
        return None;
    }
    let (mut rest, mut index, mut path) = (leaves, index, Vec::new());
    while rest.len() > 1 {
        let (left, right) = rest.split_at_checked(split(rest.len()))?;
        if index < left.len() {
            path.push(tree_root(right));
            rest = left;
        } else {
            path.push(tree_root(left));
            index -= left.len();
            rest = right;
        }
    }
    path.reverse();
    Some(path)
}

/// Returns true if `path` proves that `leaf` is number `index` of the tree with `size` leaves and
/// this root (RFC 9162, section 2.1.3.2).
#[must_use]
pub(crate) fn includes(
    leaf: &TreeHash,
    index: u64,
    size: u64,
    path: &[TreeHash],
    root: &TreeHash,
) -> bool {
    if index >= size || path.len() > PATH_MAX {
        return false;
    }
    let (mut node, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            hash = TreeHash::node(sibling, &hash);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            hash = TreeHash::node(&hash, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && hash == *root
}

/// Returns the hashes that prove that the tree over the first `old_size` leaves is a prefix of the
/// tree over `leaves`; none if there are fewer leaves. The proof is empty if both trees are equal
/// or the old one is empty.
#[must_use]
pub fn consistency_path(leaves: &[TreeHash], old_size: usize) -> Option<Vec<TreeHash>> {
    consistency_path_of(leaves.len(), old_size, |range| leaves.get(range).map(tree_root))
}

/// Returns such a proof for a tree of `size` leaves. `root` returns the root of a part; without one
/// of them there is no proof.
pub(crate) fn consistency_path_of(
    size: usize,
    old_size: usize,
    root: impl Fn(Range<usize>) -> Option<TreeHash>,
) -> Option<Vec<TreeHash>> {
    if old_size > size {
        return None;
    }
    if old_size == 0 || old_size == size {
        return Some(Vec::new());
    }
    let (mut rest, mut path, mut is_complete) = (0..size, Vec::new(), true);
    while old_size != rest.end {
        let middle = rest.start + split(rest.len());
        if old_size <= middle {
            path.push(root(middle..rest.end)?);
            rest.end = middle;
        } else {
            path.push(root(rest.start..middle)?);
            rest.start = middle;
            is_complete = false;
        }
    }
    if !is_complete {
        path.push(root(rest)?);
    }
    path.reverse();
    Some(path)
}

/// Returns true if `path` proves that the tree of size `old.0` and root `old.1` is a prefix of the
/// tree of size `new.0` and root `new.1` (RFC 9162, section 2.1.4.2).
#[must_use]
pub fn extends(old: (u64, &TreeHash), new: (u64, &TreeHash), path: &[TreeHash]) -> bool {
    let (old_size, old_root) = old;
    let (new_size, new_root) = new;
    if old_size > new_size || path.len() > PATH_MAX {
        return false;
    }
    if old_size == new_size {
        return path.is_empty() && old_root == new_root;
    }
    if old_size == 0 {
        return path.is_empty() && *old_root == TreeHash::empty();
    }
    if old_size.is_power_of_two() {
        extends_from(old, new, old_root, path)
    } else {
        path.split_first().is_some_and(|(seed, rest)| extends_from(old, new, seed, rest))
    }
}

fn extends_from(
    (old_size, old_root): (u64, &TreeHash),
    (new_size, new_root): (u64, &TreeHash),
    seed: &TreeHash,
    path: &[TreeHash],
) -> bool {
    let shift = (old_size - 1).trailing_ones();
    let (mut node, mut last) =
        ((old_size - 1).unbounded_shr(shift), (new_size - 1).unbounded_shr(shift));
    let (mut old_hash, mut new_hash) = (*seed, *seed);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            old_hash = TreeHash::node(sibling, &old_hash);
            new_hash = TreeHash::node(sibling, &new_hash);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            new_hash = TreeHash::node(&new_hash, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && old_hash == *old_root && new_hash == *new_root
}

#[cfg(test)]
mod tests;
