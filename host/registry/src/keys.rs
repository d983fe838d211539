//! Keys that sign artifacts: ECDSA on the curve P-256, as `cosign generate-key-pair` makes them.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use cofferdam_tool::permission::SecretText;
use data_encoding::BASE64;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

use crate::Digest;

/// Beginning of the SubjectPublicKeyInfo of a P-256 key in DER. The uncompressed point follows.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Length of an uncompressed point.
const POINT_BYTES: usize = 65;
/// Maximum size of a file with a key in bytes.
pub const KEY_BYTES_MAX: u64 = 16 * 1024;
/// Characters of a line in PEM.
const PEM_LINE: usize = 64;

/// Public key that signatures are checked with.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    point: [u8; POINT_BYTES],
}

/// Private key that signs.
pub struct SigningKey(EcdsaKeyPair);

/// Error of a key that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file is not a public key.
    #[error(
        "expected a public key of the curve P-256 in PEM, as `cofferdam keys new` and `cosign \
         generate-key-pair` write it"
    )]
    Public,
    /// The file is not a private key.
    #[error(
        "expected an unencrypted private key of the curve P-256 in PEM (PKCS #8), as `cofferdam \
         keys new` writes it"
    )]
    Private,
    /// The system has no randomness.
    #[error("the key cannot be made or used: the system has no randomness")]
    Random,
}

impl PublicKey {
    /// Reads a key in PEM.
    ///
    /// # Errors
    /// Returns an error if it is not a public key of the curve P-256.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| KeyError::Public)?;
        let point = der.strip_prefix(&P256_PREFIX).ok_or(KeyError::Public)?;
        Ok(Self { point: point.try_into().map_err(|_| KeyError::Public)? })
    }

    /// Returns the key in PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem("PUBLIC KEY", &self.der())
    }

    /// Returns the identity of the key: the digest of its SubjectPublicKeyInfo.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest::of(&self.der())
    }

    /// Returns whether this key has signed `message`.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.point);
        key.verify(message, signature).is_ok()
    }

    fn der(&self) -> Vec<u8> {
        [&P256_PREFIX[..], &self.point].concat()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id())
    }
}

impl SigningKey {
    /// Makes a key. Returns it with its form in PEM.
    ///
    /// # Errors
    /// Returns an error if the system has no randomness.
    pub fn generate() -> Result<(Self, SecretText), KeyError> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
        let key = key.map_err(|_| KeyError::Random)?;
        let document = key.to_pkcs8v1().map_err(|_| KeyError::Random)?;
        let pem = SecretText::new(pem("PRIVATE KEY", document.as_ref()));
        Ok((Self(key), pem))
    }

    /// Reads a key in PEM.
    ///
    /// # Errors
    /// Returns an error if it is not an unencrypted private key of the curve P-256.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| KeyError::Private)?;
        let bytes = der.secret_pkcs8_der();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, bytes);
        Ok(Self(key.map_err(|_| KeyError::Private)?))
    }

    /// Returns the public key.
    ///
    /// # Errors
    /// Returns an error if the key has no uncompressed point.
    pub fn public_key(&self) -> Result<PublicKey, KeyError> {
        let point = self.0.public_key().as_ref().try_into().map_err(|_| KeyError::Public)?;
        Ok(PublicKey { point })
    }

    /// Signs a message. Returns the signature in ASN.1.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        Ok(signature.map_err(|_| KeyError::Random)?.as_ref().to_vec())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let encoded = BASE64.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = encoded.as_str();
    while let Some((line, after)) = rest.split_at_checked(PEM_LINE) {
        lines.push(line.to_owned());
        rest = after;
    }
    if !rest.is_empty() {
        lines.push(rest.to_owned());
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_read() {
        let (key, private) = SigningKey::generate().unwrap();
        let public = key.public_key().unwrap();
        assert_eq!(PublicKey::from_pem(public.to_pem().as_bytes()), Ok(public.clone()));
        let read = SigningKey::from_pem(private.expose().as_bytes()).unwrap();
        assert_eq!(read.public_key(), Ok(public.clone()));
        let signature = read.sign(b"message").unwrap();
        assert!(public.has_signed(b"message", &signature));
        assert!(!public.has_signed(b"massage", &signature));
        for invalid in ["", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
            assert_eq!(PublicKey::from_pem(invalid.as_bytes()), Err(KeyError::Public));
            SigningKey::from_pem(invalid.as_bytes()).unwrap_err();
        }
        assert_eq!(PublicKey::from_pem(private.expose().as_bytes()), Err(KeyError::Public));
    }
}
