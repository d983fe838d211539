//! Names of tools on the wire.

use data_encoding::HEXLOWER;
use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// Maximum number of characters in a name, which every model provider accepts.
const CHARS_MAX: usize = 64;
/// Number of hexadecimal digits that distinguish names which would be the same on the wire.
const SUFFIX_CHARS: usize = 8;

/// Returns the wire names of tools, in the order of `names`: at most 64 characters from `A-Z a-z
/// 0-9 _ -`.
///
/// A name that fits is not changed. In other names, invalid characters are replaced and the rest is
/// cut off; where two names become the same, each changed name gets a suffix derived from its full
/// name. So a wire name only depends on the set of names, not on their order or on time.
pub(super) fn wire_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut takers: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(names.size_hint().0);
    for name in names.clone() {
        *takers.entry(fitted(name)).or_default() += 1;
    }
    names
        .map(|name| {
            let wire = fitted(name);
            let is_unique = || takers.get(&wire).is_none_or(|takers| *takers == 1);
            if wire == name || (name.len() <= CHARS_MAX && is_unique()) {
                wire.into_owned()
            } else {
                suffixed(&wire, name)
            }
        })
        .collect()
}

fn fitted(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.len() <= CHARS_MAX && name.chars().all(fits) {
        return name.into();
    }
    name.chars().map(|c| if fits(c) { c } else { '_' }).take(CHARS_MAX).collect()
}

fn suffixed(wire: &str, name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let suffix = HEXLOWER.encode(&digest);
    let stem: String = wire.chars().take(CHARS_MAX - SUFFIX_CHARS - 1).collect();
    format!("{stem}_{}", suffix.get(..SUFFIX_CHARS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_are_unchanged_and_others_are_made_to_fit() {
        assert_eq!(wire_names(["word_count", "a.b"].into_iter()), ["word_count", "a_b"]);
    }

    #[test]
    fn two_names_that_become_one_get_suffixes_whatever_their_order() {
        let forward = wire_names(["a.b", "a_b"].into_iter());
        assert_eq!(forward[1], "a_b", "a name that fits is never changed");
        assert_ne!(forward[0], "a_b");
        let backward = wire_names(["a_b", "a.b"].into_iter());
        assert_eq!([&backward[1], &backward[0]], [&forward[0], &forward[1]]);
    }

    #[test]
    fn a_long_name_is_cut_and_still_its_own() {
        let long = "x".repeat(70);
        let longer = "x".repeat(71);
        let names = wire_names([long.as_str(), longer.as_str()].into_iter());
        assert!(names.iter().all(|name| name.len() == 64));
        assert_ne!(names[0], names[1]);
    }
}
