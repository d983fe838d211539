//! Signers of artifacts, as a lock file has them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Signer of an artifact whom a rule trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Signer {
    /// A key.
    #[serde(rename_all = "kebab-case")]
    Key {
        /// Identity of the key: the digest of its SubjectPublicKeyInfo.
        key: Digest,
    },
    /// A person or a program that logged in to sign.
    #[serde(rename_all = "kebab-case")]
    Identity {
        /// Mail address of a person, or address of a workflow.
        identity: String,
        /// Address of the service where they logged in.
        issuer: String,
    },
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key } => write!(f, "the key {key}"),
            Self::Identity { identity, issuer } => write!(f, "`{identity}` of {issuer}"),
        }
    }
}
