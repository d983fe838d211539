//! Seals of state that leaves the process and comes back.

use std::time::Duration;

use data_encoding::HEXLOWER;
use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use sha2::{Digest as _, Sha256};

/// Number of hexadecimal digits of a key's digest that name the key.
const KEY_ID_DIGITS: usize = 16;

/// Seals state with a key that outlives the process: an HMAC binds it to a purpose, and it expires.
/// It is not encrypted.
#[derive(Debug, Clone)]
pub struct StateSeal {
    codec: RequestStateCodec,
}

/// Reason why sealed state cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The state was changed, is incomplete, or was sealed for another purpose.
    #[error("the state was changed or is incomplete")]
    Invalid,
    /// The state was sealed with another key.
    #[error("the state was sealed with another key")]
    OtherKey,
    /// Too much time has passed.
    #[error("the state has expired")]
    Expired,
    /// The system has no random numbers for a key.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
}

impl StateSeal {
    /// Returns a new key.
    ///
    /// # Errors
    /// [`SealError::NoRandomNumbers`].
    pub fn new_key() -> Result<[u8; 32], SealError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| SealError::NoRandomNumbers)?;
        Ok(key)
    }

    /// Creates the seal with a key. A digest of the key is part of sealed state.
    ///
    /// # Errors
    /// [`SealError::Invalid`] if the key cannot be used.
    pub fn new(key: [u8; 32]) -> Result<Self, SealError> {
        let mut id = HEXLOWER.encode(&Sha256::digest(key));
        id.truncate(KEY_ID_DIGITS);
        let codec = RequestStateCodec::new_with_keyring(id.clone(), [(id, key)]);
        Ok(Self { codec: codec.map_err(|_| SealError::Invalid)? })
    }

    /// Seals state for a purpose and a time.
    #[must_use]
    pub fn seal(&self, state: &[u8], purpose: &[u8], ttl: Duration) -> String {
        self.codec.seal_with(state, &SealOptions::new().associated_data(purpose).ttl(ttl))
    }

    /// Opens state that was sealed for the same purpose.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn open(&self, sealed: &str, purpose: &[u8]) -> Result<Vec<u8>, SealError> {
        self.codec.open_with(sealed, purpose).map_err(|error| match error {
            RequestStateError::Expired => SealError::Expired,
            RequestStateError::UnknownKeyId => SealError::OtherKey,
            _ => SealError::Invalid,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn state_opens_with_its_key_for_its_purpose_in_its_time() {
        let seal = StateSeal::new([7; 32]).unwrap();
        let sealed = seal.seal(b"state", b"test", HOUR);
        assert_eq!(seal.open(&sealed, b"test"), Ok(b"state".to_vec()));
        assert_eq!(StateSeal::new([7; 32]).unwrap().open(&sealed, b"test"), Ok(b"state".to_vec()));
        assert_eq!(seal.open(&sealed, b"other"), Err(SealError::Invalid));
        let other = StateSeal::new([8; 32]).unwrap();
        assert_eq!(other.open(&sealed, b"test"), Err(SealError::OtherKey));
        let expired = seal.seal(b"state", b"test", Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(seal.open(&expired, b"test"), Err(SealError::Expired));
        assert_ne!(StateSeal::new_key(), StateSeal::new_key());
    }

    #[test]
    fn no_part_of_sealed_state_can_be_changed_or_left_out() {
        let seal = StateSeal::new([7; 32]).unwrap();
        let sealed = seal.seal(b"some state", b"test", HOUR);
        for length in 0..sealed.len() {
            assert!(seal.open(sealed.split_at(length).0, b"test").is_err(), "{length}");
            let mut changed = sealed.clone().into_bytes();
            changed[length] = if changed[length] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(seal.open(&changed, b"test").is_err(), "{changed}");
        }
    }
}
