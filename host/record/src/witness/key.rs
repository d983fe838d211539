//! Keys of witnesses and their signatures (C2SP `tlog-cosignature`, Ed25519).

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

use crate::UtcTime;
use crate::note::{NoteError, hex, is_key_name, key_id, keydata, parse_key, split};

/// First byte of keys and of key ids: Ed25519 with a time.
const ALGORITHM: u8 = 0x04;
/// Bytes of the time in front of a signature.
const TIME_BYTES: usize = 8;

/// Public key that checks the signatures of a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    id: [u8; 4],
    public: [u8; 32],
}

impl WitnessKey {
    /// Parses a key of the form `name+id+base64`, with the algorithm of cosignatures.
    ///
    /// # Errors
    ///
    /// Returns [`NoteError::Key`] if the text has another form, or the id is not that of the key.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let (name, id, public) = parse_key(text.trim(), ALGORITHM)?;
        if !is_key_name(name) {
            return Err(NoteError::Key("an invalid name"));
        }
        let key = Self { name: name.to_owned(), id: key_id(name, ALGORITHM, &public), public };
        if hex(&key.id) != id {
            return Err(NoteError::Key("an id that is not that of the key"));
        }
        Ok(key)
    }

    /// Returns the name of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the id of the key in hexadecimal digits.
    pub(crate) fn id(&self) -> String {
        hex(&self.id)
    }

    /// Checks the signature of the witness on a note, and returns its time.
    ///
    /// # Errors
    ///
    /// Returns an error if the note is malformed, or the witness has not signed it.
    pub fn check(&self, note: &str) -> Result<UtcTime, NoteError> {
        let invalid = || NoteError::Invalid(self.name.clone());
        let (text, signatures) = split(note)?;
        let mut own = signatures.iter().filter(|one| one.name == self.name && one.id == self.id);
        let signature = own.next().ok_or_else(|| NoteError::Unsigned(self.name.clone()))?;
        let (time, bytes) =
            signature.bytes.split_first_chunk::<TIME_BYTES>().ok_or_else(invalid)?;
        let seconds = u64::from_be_bytes(*time);
        let message = format!("cosignature/v1\ntime {seconds}\n{text}");
        UnparsedPublicKey::new(&ED25519, &self.public)
            .verify(message.as_bytes(), bytes)
            .map_err(|_| invalid())?;
        let micros = seconds.checked_mul(1_000_000).and_then(|micros| micros.try_into().ok());
        micros.map(UtcTime::from_micros).ok_or_else(invalid)
    }
}

impl std::fmt::Display for WitnessKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}+{}+{}", self.name, hex(&self.id), keydata(ALGORITHM, &self.public))
    }
}
