//! Selects the part of a store that a session sees.
//!
//! A store is either shared by all sessions, on purpose, or each session has its own directory in
//! it, named after the session. The name is that of the session's history file (`SES-11`), so that
//! two sessions never share one, even on file systems that ignore case, and no session ID can reach
//! outside.

use std::sync::Arc;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::path::is_device;
use crate::{FileStore, StorePath, Subtree};

/// Maximum length of an ID that is used unchanged, in characters.
const PLAIN_MAX: usize = 240;
/// Maximum length of a stem that encodes the whole ID, in characters.
const SPELLED_MAX: usize = 180;
const SPELLED: &str = "~session-";
const HASHED: &str = "~session-sha256-";
/// ID used for a session without one.
const NO_ID: &str = "default";

/// Sharing of a store between sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreSharing {
    /// Each session sees its own directory as the whole store, and nothing of the others.
    #[default]
    PerSession,
    /// All sessions see the whole store.
    Shared,
}

impl StoreSharing {
    /// Returns the directory that the session `id` sees as the whole store, or `None` for all of
    /// it.
    #[must_use]
    pub fn directory(self, id: Option<&str>) -> Option<StorePath> {
        match self {
            Self::Shared => None,
            // A stem is always a valid segment.
            Self::PerSession => Some(StorePath::ROOT.join(&session_stem(id))),
        }
    }

    /// Returns the view of `store` for the session `id`. Its directory is created with the first
    /// entry in it.
    #[must_use]
    pub fn scope(self, store: Arc<dyn FileStore>, id: Option<&str>) -> Arc<dyn FileStore> {
        match self.directory(id) {
            None => store,
            Some(root) => Arc::new(Subtree::new(store, root)),
        }
    }
}

/// Returns the file name stem of the session `id` (`SES-11`). It is one segment of a [`StorePath`]
/// and at most 240 characters long.
///
/// A missing and an empty ID have the stem of the ID `default`.
#[must_use]
pub fn session_stem(id: Option<&str>) -> String {
    let id = id.filter(|id| !id.is_empty()).unwrap_or(NO_ID);
    if is_plain(id) {
        return id.to_owned();
    }
    // Base32 uses eight characters for five bytes. The check by length avoids encoding long IDs.
    let spelled_bytes_max = SPELLED_MAX.saturating_sub(SPELLED.len()) * 5 / 8;
    if id.len() <= spelled_bytes_max {
        return format!("{SPELLED}{}", BASE32_NOPAD.encode(id.as_bytes()).to_ascii_lowercase());
    }
    format!("{HASHED}{}", HEXLOWER.encode(&Sha256::digest(id)))
}

fn is_plain(id: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    id.len() <= PLAIN_MAX
        && id.bytes().all(is_allowed)
        && !id.starts_with('.')
        && !id.ends_with('.')
        && !is_device(id)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::{Strategy, any, prop_oneof};

    use super::*;
    use crate::{MemoryStore, Quota, Scope, WriteMode};

    fn rows() -> Vec<serde_json::Value> {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/sessions.jsonl");
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn stems_are_those_of_the_contract() {
        let rows = rows();
        let stems: Vec<_> = rows.iter().filter(|row| row["op"] == "stem").collect();
        assert!(stems.len() > 20, "only {} rows", stems.len());
        for row in stems {
            assert_eq!(
                session_stem(row["session_id"].as_str()),
                row["expect"].as_str().unwrap(),
                "{row}"
            );
        }
        let pairs: Vec<_> = rows.iter().filter(|row| row["op"] == "different_stems").collect();
        assert!(!pairs.is_empty());
        for row in pairs {
            // Row ses-066 contains one ID twice and expects two stems, which no function can
            // return; it means the Kelvin sign.
            if row["ids"][0] == row["ids"][1] {
                assert_eq!(row["id"], "ses-066", "{row}");
                continue;
            }
            let stem = |number: usize| session_stem(row["ids"][number].as_str()).to_lowercase();
            assert_eq!(stem(0) != stem(1), row["expect"].as_bool().unwrap(), "{row}");
        }
        assert_ne!(session_stem(Some("K")), session_stem(Some("\u{212a}")));
    }

    #[test]
    fn long_ids_are_hashed() {
        // 106 bytes are 170 digits, 107 bytes 172: with the prefix `~session-` 179 and 181
        // characters.
        assert_eq!(session_stem(Some(&"A".repeat(106))).len(), 179);
        let hashed = session_stem(Some(&"A".repeat(107)));
        assert_eq!(hashed.len(), 16 + 64);
        assert!(hashed.starts_with("~session-sha256-"));
        assert_eq!(session_stem(Some(&"a".repeat(240))), "a".repeat(240));
        assert!(session_stem(Some(&"a".repeat(241))).starts_with("~session-sha256-"));
    }

    #[test]
    fn letters_that_some_systems_take_for_one_another_have_stems_of_their_own() {
        // The Kelvin sign and the long s have ASCII letters as lowercase; macOS takes the two é for
        // the same character.
        for [one, other] in [
            ["K", "\u{212a}"],
            ["k", "\u{212a}"],
            ["s", "\u{17f}"],
            ["\u{e9}", "e\u{301}"],
            ["i", "\u{131}"],
        ] {
            assert_ne!(session_stem(Some(one)), session_stem(Some(other)));
        }
    }

    /// Generates IDs near the limits of the rules, and arbitrary ones.
    fn ids() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-zA-Z.~_-]{0,6}",
            "(con|nul|com[0-9]|lpt[0-9]|default|~session-)(\\.[a-z]*)?",
            "[aA]{100,250}",
            any::<String>(),
        ]
    }

    proptest::proptest! {
        #[test]
        fn different_ids_never_share_a_stem(one in ids(), other in ids()) {
            let is_default = |id: &str| matches!(id, "" | "default");
            if one != other && !(is_default(&one) && is_default(&other)) {
                let stem = |id: &str| session_stem(Some(id)).to_lowercase();
                proptest::prop_assert_ne!(stem(&one), stem(&other));
            }
        }

        #[test]
        fn every_stem_is_a_name_for_a_store(id in ".{0,300}") {
            let stem = session_stem(Some(&id));
            proptest::prop_assert!(stem.len() <= 240);
            let path = StorePath::ROOT.child(&stem);
            proptest::prop_assert!(path.is_ok(), "{stem}");
        }
    }

    #[tokio::test]
    async fn sessions_see_their_own_directory_or_all_of_the_store() {
        let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        let path = StorePath::file("a").unwrap();
        let ids = [Some("first"), Some("../first"), None];
        for id in ids {
            let scoped = StoreSharing::PerSession.scope(Arc::clone(&store), id);
            scoped.write(&path, session_stem(id).into_bytes(), WriteMode::Create).await.unwrap();
        }
        for id in ids {
            let scoped = StoreSharing::PerSession.scope(Arc::clone(&store), id);
            assert_eq!(scoped.read(&path, 99).await.unwrap(), session_stem(id).into_bytes());
            let all = StoreSharing::Shared.scope(Arc::clone(&store), id);
            let listing = all.list(&StorePath::ROOT, Scope::Children).await.unwrap();
            let names: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
            assert_eq!(names, ["default", "first", "~session-fyxc6ztjojzxi"]);
        }
    }
}
