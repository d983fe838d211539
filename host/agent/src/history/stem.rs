//! Which file is a session's (`SES-11`, `SES-12`).

use sha2::{Digest as _, Sha256};

/// Longest id that is its own stem, in characters. With the ending it stays under the 255 bytes that a name may have.
const PLAIN_CHARS_MAX: usize = 240;
/// Longest stem that holds the whole id in base32, in characters.
const ENCODED_CHARS_MAX: usize = 180;
/// Begins every stem that is not the id itself. No such id begins with it.
const ENCODED: &str = "~session-";

/// The name of a session's file without its ending (`SES-11`).
///
/// No id and the empty one are `default`, and so is the id `default`: it consists of lower-case letters. Apart from these
/// three, different ids have different stems, and no two stems differ in case alone (`SES-12`).
#[must_use]
pub fn file_stem(session_id: Option<&str>) -> String {
    let id = session_id.unwrap_or_default();
    if id.is_empty() {
        return "default".to_owned();
    }
    if is_plain(id) {
        return id.to_owned();
    }
    let encoded = format!("{ENCODED}{}", base32(id.as_bytes()));
    if encoded.len() <= ENCODED_CHARS_MAX {
        return encoded;
    }
    let digest = Sha256::digest(id.as_bytes());
    let hex = crate::hex::hex(&digest);
    // Base32 has no dash: no shorter id looks like this one.
    format!("{ENCODED}sha256-{hex}")
}

/// Whether an id is a safe name of a file on every system, and differs from every other such id in more than case.
fn is_plain(id: &str) -> bool {
    let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    id.len() <= PLAIN_CHARS_MAX
        && id.bytes().all(is_letter)
        && !id.starts_with('.')
        && !id.ends_with('.')
        && !is_device(id.split('.').next().unwrap_or_default())
}

/// Whether Windows takes the name for a device, whatever follows after a dot. Names of devices with characters that no plain
/// id has (`conin$`, `com¹`) need not be known.
fn is_device(name: &str) -> bool {
    let name = name.as_bytes();
    matches!(
        name,
        b"con" | b"prn" | b"aux" | b"nul" | [b'c', b'o', b'm', b'1'..=b'9'] | [b'l', b'p', b't', b'1'..=b'9']
    )
}

/// RFC 4648 without padding, in lower case.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let letters = bytes.chunks(5).flat_map(|chunk| {
        let bits =
            chunk.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte)) << (8 * (5 - chunk.len()));
        let count = (chunk.len() * 8).div_ceil(5);
        (0..count).filter_map(move |place| LETTERS.get((bits >> (35 - 5 * place) & 31) as usize))
    });
    letters.map(|letter| char::from(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stem(id: &str) -> String {
        file_stem(Some(id))
    }

    #[test]
    fn base32_is_that_of_the_rfc() {
        for (plain, encoded) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq")]
        {
            assert_eq!(base32(plain.as_bytes()), encoded);
        }
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        assert_eq!(base32(&[0xff; 5]), "77777777");
    }

    #[test]
    fn an_id_is_its_own_stem_only_where_every_system_takes_it() {
        for plain in
            ["a.b-c_d", "a..b", "con1", "com", "com10", "lpt", "context.con", "default", "_", "-", "0"]
        {
            assert_eq!(stem(plain), plain);
        }
        for other in
            ["A", ".", "..", ".a", "a.", "con", "con.txt", "com1", "lpt9.x.y", "a b", "a/b", "ä", "~a", "a\0"]
        {
            assert!(stem(other).starts_with("~session-"), "{other:?}");
        }
        assert_eq!([file_stem(None), stem("")], ["default", "default"]);
    }

    #[test]
    fn long_ids_are_encoded_and_longer_ones_hashed() {
        assert_eq!(stem(&"a".repeat(240)), "a".repeat(240));
        assert!(stem(&"a".repeat(241)).starts_with("~session-sha256-"));
        // 106 bytes make 170 letters, 107 make 172.
        assert_eq!(stem(&"A".repeat(106)).len(), 179);
        assert_eq!(stem(&"A".repeat(107)).len(), "~session-sha256-".len() + 64);
    }

    #[test]
    fn letters_that_some_systems_take_for_one_another_have_stems_of_their_own() {
        // The Kelvin sign and the long s have lower cases among the ASCII letters; the two é are one for macOS.
        for [one, other] in
            [["K", "\u{212a}"], ["k", "\u{212a}"], ["s", "\u{17f}"], ["\u{e9}", "e\u{301}"], ["i", "\u{131}"]]
        {
            assert_ne!(stem(one), stem(other));
        }
    }

    /// Ids near the borders of the rules, and any others.
    fn ids() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-zA-Z.~_-]{0,6}",
            "(con|nul|com[0-9]|lpt[0-9]|default|~session-)(\\.[a-z]*)?",
            "[aA]{100,250}",
            any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn different_ids_never_share_a_file(one in ids(), other in ids()) {
            let is_default = |id: &str| matches!(id, "" | "default");
            if one != other && !(is_default(&one) && is_default(&other)) {
                prop_assert_ne!(stem(&one).to_lowercase(), stem(&other).to_lowercase());
            }
        }

        #[test]
        fn a_stem_is_a_safe_name_everywhere(id in ids()) {
            let stem = stem(&id);
            prop_assert!(stem.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'~')));
            prop_assert!(!stem.is_empty() && stem.len() <= 240);
            prop_assert!(!stem.starts_with('.') && !stem.ends_with('.'));
            let device = stem.split('.').next().unwrap();
            prop_assert!(!["con", "prn", "aux", "nul", "com1", "lpt1"].contains(&device));
        }
    }
}
