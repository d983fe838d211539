//! Signed notes (C2SP `signed-note`) with Ed25519: a text, an empty line, and signature lines.
//!
//! A note is signed as bytes and never rewritten. Signature lines of other keys are passed over, so
//! that witnesses can add theirs. The key of a log has the name `cofferdam-records/` and a digest
//! of its public key: a name that claims no domain.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::text::without_byte_order_mark;

use crate::merkle::sha256;

/// Maximum bytes of a note. A checkpoint has about 250.
pub(crate) const NOTE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of signature lines, as the specification demands of verifiers.
const SIGNATURES_MAX: usize = 16;
/// First byte of keys and of key ids: Ed25519.
const ALGORITHM: u8 = 0x01;
const SEED_BYTES: usize = 32;
const KEY_NAME_BYTES_MAX: usize = 255;
/// Number of digits of [`VerifierKey::digest`].
const DIGEST_DIGITS: usize = 32;
const PRIVATE_PREFIX: &str = "PRIVATE+KEY+";
pub(crate) const SIGNATURE_PREFIX: &str = "— ";

/// Error of a signed note or of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// The note does not have the form of a signed note.
    #[error("expected a signed note, found {0}; copy the note as it was printed")]
    Malformed(&'static str),
    /// No signature line is from the key.
    #[error("no signature of `{0}`; use the key that signed the note")]
    Unsigned(String),
    /// The signature does not match the text.
    #[error("the signature of `{0}` does not match; the note or its signature was changed")]
    Invalid(String),
    /// The text is not a key.
    #[error("expected a key `name+id+base64`, found {0}; copy the key as it was printed")]
    Key(&'static str),
    /// The cryptographic library failed.
    #[error("the cryptographic library refused to {0}")]
    Crypto(&'static str),
}

/// Public key that checks the signatures of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: [u8; 4],
    public: [u8; 32],
}

impl VerifierKey {
    /// Parses a key of the form `name+id+base64`.
    ///
    /// # Errors
    ///
    /// Returns [`NoteError::Key`] if the text has another form, or the id is not that of the key.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let (name, id, public) = parse_key(text.trim(), ALGORITHM)?;
        let key = Self::new(name, public)?;
        if hex(&key.id) != id {
            return Err(NoteError::Key("an id that is not that of the key"));
        }
        Ok(key)
    }

    fn new(name: &str, public: [u8; 32]) -> Result<Self, NoteError> {
        if !is_key_name(name) {
            return Err(NoteError::Key("an invalid name"));
        }
        let id = key_id(name, ALGORITHM, &public);
        Ok(Self { name: name.to_owned(), id, public })
    }

    /// Returns the name of the key, with which the origins of its checkpoints begin.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a digest of the key, in hexadecimal digits: the name of a log among others.
    #[must_use]
    pub fn digest(&self) -> String {
        let digest = sha256(&[self.to_string().as_bytes()]);
        hex(digest.as_bytes()).chars().take(DIGEST_DIGITS).collect()
    }

    /// Checks a note and returns its text, which ends with a line end.
    ///
    /// # Errors
    ///
    /// Returns an error if the note is malformed, or not signed by this key.
    pub fn open<'a>(&self, note: &'a str) -> Result<&'a str, NoteError> {
        let (text, signatures) = split(note)?;
        for signature in signatures {
            if signature.name != self.name || signature.id != self.id {
                continue;
            }
            return UnparsedPublicKey::new(&ED25519, &self.public)
                .verify(text.as_bytes(), &signature.bytes)
                .map(|()| text)
                .map_err(|_| NoteError::Invalid(self.name.clone()));
        }
        Err(NoteError::Unsigned(self.name.clone()))
    }
}

impl std::fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}+{}+{}", self.name, hex(&self.id), keydata(ALGORITHM, &self.public))
    }
}

/// Private key that signs the checkpoints of a log.
pub(crate) struct SigningKey {
    pair: Ed25519KeyPair,
    verifier: VerifierKey,
}

impl SigningKey {
    /// Makes a new key, with a name that contains a digest of it.
    pub(crate) fn generate() -> Result<(Self, String), NoteError> {
        let mut seed = [0; SEED_BYTES];
        aws_lc_rs::rand::fill(&mut seed).map_err(|_| NoteError::Crypto("make random bytes"))?;
        let public = public_key(&pair(&seed)?)?;
        let digest = sha256(&[&public]);
        let name: String = hex(digest.as_bytes()).chars().take(16).collect();
        let key = Self::new(&format!("cofferdam-records/{name}"), &seed)?;
        let text = key.private_text(&seed);
        Ok((key, text))
    }

    /// Parses the text of a private key, as in the file `signing-key`.
    pub(crate) fn parse(text: &str) -> Result<Self, NoteError> {
        let rest = text.trim().strip_prefix(PRIVATE_PREFIX);
        let rest = rest.ok_or(NoteError::Key("no `PRIVATE+KEY+` at its start"))?;
        let (name, id, seed) = parse_key(rest, ALGORITHM)?;
        let key = Self::new(name, &seed)?;
        if hex(&key.verifier.id) != id {
            return Err(NoteError::Key("an id that is not that of the key"));
        }
        Ok(key)
    }

    fn new(name: &str, seed: &[u8; SEED_BYTES]) -> Result<Self, NoteError> {
        let pair = pair(seed)?;
        let verifier = VerifierKey::new(name, public_key(&pair)?)?;
        Ok(Self { pair, verifier })
    }

    fn private_text(&self, seed: &[u8; SEED_BYTES]) -> String {
        let VerifierKey { name, id, .. } = &self.verifier;
        format!("{PRIVATE_PREFIX}{name}+{}+{}\n", hex(id), keydata(ALGORITHM, seed))
    }

    /// Returns the public key.
    pub(crate) const fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs a text, which must end with a line end, and returns the note.
    pub(crate) fn sign(&self, text: &str) -> Result<String, NoteError> {
        let signature =
            self.pair.try_sign(text.as_bytes()).map_err(|_| NoteError::Crypto("sign"))?;
        let bytes = [self.verifier.id.as_slice(), signature.as_ref()].concat();
        let (name, bytes) = (&self.verifier.name, STANDARD.encode(bytes));
        Ok(format!("{text}\n{SIGNATURE_PREFIX}{name} {bytes}\n"))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SigningKey")
            .field("verifier", &self.verifier)
            .finish_non_exhaustive()
    }
}

/// Line with a signature of a note.
pub(crate) struct NoteSignature<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: [u8; 4],
    pub(crate) bytes: Vec<u8>,
}

/// Splits a text into the notes that it consists of. A byte order mark at its start and carriage
/// returns before line ends are removed: an editor or a mail program may add them, and no note that
/// a log signs has any.
pub(crate) fn split_notes(text: &str) -> Vec<String> {
    let text = without_byte_order_mark(text).replace("\r\n", "\n");
    let (mut notes, mut note, mut is_signed) = (Vec::new(), String::new(), false);
    for line in text.split_inclusive('\n') {
        let is_signature = line.starts_with(SIGNATURE_PREFIX);
        if is_signed && !is_signature {
            notes.push(std::mem::take(&mut note));
        }
        is_signed = is_signature;
        if !note.is_empty() || !line.trim().is_empty() {
            note.push_str(line);
        }
    }
    if !note.trim().is_empty() {
        notes.push(note);
    }
    notes
}

/// Splits a note into its text and its signatures.
pub(crate) fn split(note: &str) -> Result<(&str, Vec<NoteSignature<'_>>), NoteError> {
    if note.len() > NOTE_BYTES_MAX {
        return Err(NoteError::Malformed("more than 65536 bytes"));
    }
    if note.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
        return Err(NoteError::Malformed("a control character"));
    }
    let (text, rest) = note.rsplit_once("\n\n").ok_or(NoteError::Malformed("no signature"))?;
    let lines = rest.strip_suffix('\n').ok_or(NoteError::Malformed("no line end at its end"))?;
    let signatures: Vec<_> = lines.split('\n').take(SIGNATURES_MAX + 1).collect();
    if signatures.len() > SIGNATURES_MAX {
        return Err(NoteError::Malformed("more than 16 signatures"));
    }
    let signatures = signatures.into_iter().map(parse_signature).collect::<Result<_, _>>()?;
    let (text, _) = note.split_at_checked(text.len() + 1).ok_or(NoteError::Malformed("no text"))?;
    Ok((text, signatures))
}

fn parse_signature(line: &str) -> Result<NoteSignature<'_>, NoteError> {
    let malformed = NoteError::Malformed("an invalid signature line");
    let parsed = line.strip_prefix(SIGNATURE_PREFIX).and_then(|rest| rest.split_once(' '));
    let (name, encoded) = parsed.ok_or(malformed.clone())?;
    let bytes = STANDARD.decode(encoded).map_err(|_| malformed.clone())?;
    let (id, signature) = bytes.split_first_chunk::<4>().ok_or(malformed.clone())?;
    if !is_key_name(name) || signature.is_empty() {
        return Err(malformed);
    }
    Ok(NoteSignature { name, id: *id, bytes: signature.to_vec() })
}

/// Parses a key of the form `name+id+base64` into its name, its id and its bytes.
pub(crate) fn parse_key(text: &str, algorithm: u8) -> Result<(&str, &str, [u8; 32]), NoteError> {
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(data)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(NoteError::Key("fewer than three parts"));
    };
    let data = STANDARD.decode(data).map_err(|_| NoteError::Key("invalid base64"))?;
    match data.split_first() {
        Some((&found, key)) if found == algorithm => {
            let key = key.try_into().map_err(|_| NoteError::Key("a key of another length"))?;
            Ok((name, id, key))
        }
        _ if algorithm == ALGORITHM => Err(NoteError::Key("an algorithm other than Ed25519")),
        _ => Err(NoteError::Key("an algorithm other than Ed25519 with a time (4)")),
    }
}

pub(crate) fn is_key_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= KEY_NAME_BYTES_MAX
        && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+')
}

pub(crate) fn key_id(name: &str, algorithm: u8, public: &[u8; 32]) -> [u8; 4] {
    let digest = sha256(&[name.as_bytes(), b"\n", &[algorithm], public]);
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

pub(crate) fn keydata(algorithm: u8, key: &[u8; 32]) -> String {
    STANDARD.encode([&[algorithm], key.as_slice()].concat())
}

fn pair(seed: &[u8; SEED_BYTES]) -> Result<Ed25519KeyPair, NoteError> {
    Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| NoteError::Crypto("load a key"))
}

fn public_key(pair: &Ed25519KeyPair) -> Result<[u8; 32], NoteError> {
    pair.public_key().as_ref().try_into().map_err(|_| NoteError::Crypto("return a public key"))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Verifier key and note of the specification's reference implementation
    /// (`golang.org/x/mod/sumdb/note`).
    const GO_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const GO_NOTE: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\
        \n\
        — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    fn key() -> SigningKey {
        SigningKey::generate().unwrap().0
    }

    #[test]
    fn opens_a_note_of_the_reference_implementation() {
        let key = VerifierKey::parse(GO_KEY).unwrap();
        assert_eq!(key.to_string(), GO_KEY);
        assert!(key.open(GO_NOTE).unwrap().ends_with("problem is.\n"));
        let changed = GO_NOTE.replace("answer", "Answer");
        assert_eq!(key.open(&changed), Err(NoteError::Invalid("PeterNeumann".into())));
    }

    #[test]
    fn signs_what_it_opens_and_reads_its_own_key() {
        let (key, text) = SigningKey::generate().unwrap();
        let note = key.sign("origin\n1\nroot\n").unwrap();
        let read = SigningKey::parse(&text).unwrap();
        assert_eq!(read.verifier(), key.verifier());
        assert_eq!(read.sign("origin\n1\nroot\n").unwrap(), note, "Ed25519 is deterministic");
        let printed = VerifierKey::parse(&key.verifier().to_string()).unwrap();
        assert_eq!(printed.open(&note).unwrap(), "origin\n1\nroot\n");
        assert!(format!("{key:?}").len() < 300 && !format!("{key:?}").contains("PRIVATE"));
    }

    #[test]
    fn passes_over_signatures_of_other_keys() {
        let (ours, witness) = (key(), key());
        let text = "origin\n1\nroot\n";
        let (note, other) = (ours.sign(text).unwrap(), witness.sign(text).unwrap());
        let line = other.rsplit_once("\n\n").unwrap().1;
        let both = format!("{note}{line}");
        assert_eq!(ours.verifier().open(&both).unwrap(), text);
        assert_eq!(witness.verifier().open(&both).unwrap(), text);
        let name = witness.verifier().name().to_owned();
        assert_eq!(witness.verifier().open(&note), Err(NoteError::Unsigned(name)));
    }

    #[test]
    fn splits_notes_that_follow_each_other() {
        let key = key();
        let notes: Vec<_> = (0..3).map(|n| key.sign(&format!("a\n{n}\nb\n")).unwrap()).collect();
        assert_eq!(split_notes(&notes.concat()), notes);
        assert_eq!(split_notes(&notes.join("\n")), notes);
        assert_eq!(split_notes(" \n"), Vec::<String>::new());
        assert_eq!(split_notes("x"), vec!["x".to_owned()]);
        let edited = format!("\u{feff}{}", notes.join("\n").replace('\n', "\r\n"));
        assert_eq!(split_notes(&edited), notes);
    }

    #[test]
    fn refuses_malformed_notes() {
        let key = key();
        for (note, found) in [
            ("", "no signature"),
            ("a\n\n— b", "no line end at its end"),
            ("a\n\nb\n", "an invalid signature line"),
            ("a\r\n\n— b AAAAAAA=\n", "a control character"),
            (&"x".repeat(NOTE_BYTES_MAX + 1), "more than 65536 bytes"),
            (&format!("a\n\n{}", "— b AAAAAAA=\n".repeat(17)), "more than 16 signatures"),
        ] {
            let opened = key.verifier().open(note);
            assert_eq!(opened, Err(NoteError::Malformed(found)));
        }
    }

    #[test]
    fn refuses_keys_with_a_wrong_id_or_algorithm() {
        for (text, found) in [
            ("a", "fewer than three parts"),
            ("a+00000000+%", "invalid base64"),
            ("a+00000000+AAAA", "an algorithm other than Ed25519"),
            ("a+00000000+AQAA", "a key of another length"),
            (
                "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
                "an id that is not that of the key",
            ),
            ("a b+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "an invalid name"),
        ] {
            assert_eq!(VerifierKey::parse(text), Err(NoteError::Key(found)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_refused(at: prop::sample::Index, bit in 0..7_u8) {
            let key = key();
            let note = key.sign("origin\n12\nroot\n").unwrap();
            let mut bytes = note.clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Ok(changed) = String::from_utf8(bytes) {
                prop_assert!(key.verifier().open(&changed).is_err(), "{changed:?}");
            }
        }

        #[test]
        fn any_text_is_refused_without_panic(text in "(\\PC|\n|— ){0,80}") {
            prop_assert!(key().verifier().open(&text).is_err());
            let _ = (VerifierKey::parse(&text), SigningKey::parse(&text), split_notes(&text));
        }
    }
}
