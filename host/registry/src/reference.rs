//! References to artifacts: `oci://HOST/REPOSITORY[:TAG][@DIGEST]`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Digest, InvalidDigest};

/// Scheme of references.
pub(crate) const SCHEME: &str = "oci://";
/// Maximum length of a host and a repository together, which the names of all registries fit in.
const NAME_BYTES_MAX: usize = 255;
/// Maximum length of a tag, by the OCI distribution specification.
const TAG_BYTES_MAX: usize = 128;
/// Tag of references without a tag and a digest.
const DEFAULT_TAG: &str = "latest";
/// Name of Docker's registry, and the host that serves it.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// Reference to an artifact in a registry. The host is always explicit.
///
/// ```
/// use cofferdam_registry::Reference;
///
/// let reference: Reference = "oci://ghcr.io/acme/tools/csv:1.2.0".parse()?;
/// assert_eq!(reference.registry(), "ghcr.io");
/// assert_eq!(reference.repository(), "acme/tools/csv");
/// assert_eq!(reference.tag(), Some("1.2.0"));
/// # Ok::<(), cofferdam_registry::InvalidReference>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Version of an artifact in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// A tag, which the registry can move.
    Tag(String),
    /// The digest of a manifest.
    Digest(Digest),
}

/// Error returned for a string that is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReference {
    /// The string does not begin with `oci://`.
    #[error("expected a reference such as oci://ghcr.io/acme/csv:1.0.0")]
    Scheme,
    /// The string has no host, or an invalid one.
    #[error(
        "`{0}` is not the host of a registry; name it, such as oci://ghcr.io/acme/csv, with a port if it has one"
    )]
    Registry(String),
    /// The repository is invalid.
    #[error(
        "`{0}` is not the name of a repository: parts of a-z 0-9, separated by `/`, with single `.` `_` `-` inside"
    )]
    Repository(String),
    /// The tag is invalid.
    #[error(
        "`{0}` is not a tag: 1 to 128 of A-Z a-z 0-9 `_` `.` `-`, not beginning with `.` or `-`"
    )]
    Tag(String),
    /// The digest is invalid.
    #[error("`{0}` is not a digest: {1}")]
    Digest(String, InvalidDigest),
    /// Host and repository are too long.
    #[error("host and repository are longer than {NAME_BYTES_MAX} bytes together")]
    TooLong,
}

impl Reference {
    /// Returns the name of the registry: a host, with a port if it has one.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the host that serves the registry.
    #[must_use]
    pub fn host(&self) -> &str {
        if self.registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { &self.registry }
    }

    /// Returns the repository.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest of the manifest.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns the version that the reference names: its digest, or else its tag, or else the tag
    /// `latest`.
    #[must_use]
    pub fn version(&self) -> Version {
        match self.digest {
            Some(digest) => Version::Digest(digest),
            None => Version::Tag(self.tag().unwrap_or(DEFAULT_TAG).to_owned()),
        }
    }

    /// Returns a reference to `digest` in the same repository.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// Returns a reference to `tag` in the same repository.
    ///
    /// # Errors
    /// Returns an error if the tag is invalid.
    pub fn with_tag(&self, tag: &str) -> Result<Self, InvalidReference> {
        check_tag(tag)?;
        Ok(Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() })
    }

    /// Returns the host and the repository, without scheme and version: `ghcr.io/acme/csv`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(string: &str) -> Result<Self, InvalidReference> {
        let rest = string.strip_prefix(SCHEME).ok_or(InvalidReference::Scheme)?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => {
                let parsed = digest.parse();
                let digest =
                    parsed.map_err(|error| InvalidReference::Digest(digest.to_owned(), error))?;
                (rest, Some(digest))
            }
            None => (rest, None),
        };
        let (registry, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_registry(registry) {
            return Err(InvalidReference::Registry(registry.to_owned()));
        }
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !is_repository(repository) {
            return Err(InvalidReference::Repository(repository.to_owned()));
        }
        if registry.len() + repository.len() > NAME_BYTES_MAX {
            return Err(InvalidReference::TooLong);
        }
        tag.map(check_tag).transpose()?;
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.registry, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let string = String::deserialize(deserializer)?;
        string.parse().map_err(serde::de::Error::custom)
    }
}

/// Returns whether `registry` is a host of a registry: a name with a dot, `localhost` or an
/// address, and optionally a port.
fn is_registry(registry: &str) -> bool {
    let (host, port) = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            return rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        }
        None => match registry.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (registry, None),
        },
    };
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_explicit = host.contains('.') || host == "localhost" || port.is_some();
    is_explicit && host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Returns whether `repository` is a name by the OCI distribution specification.
fn is_repository(repository: &str) -> bool {
    let is_alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let is_bounded =
            bytes.first().is_some_and(is_alphanumeric) && bytes.last().is_some_and(is_alphanumeric);
        let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let is_separator = |run: &str| {
            matches!(run, "" | "." | "_" | "__") || run.bytes().all(|byte| byte == b'-')
        };
        is_bounded && separators.into_iter().all(is_separator)
    };
    repository.split('/').all(is_part)
}

fn check_tag(tag: &str) -> Result<(), InvalidReference> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let bytes = tag.as_bytes();
    let is_valid = bytes.first().is_some_and(is_word)
        && bytes.len() <= TAG_BYTES_MAX
        && bytes.iter().all(|b| is_word(b) || matches!(b, b'.' | b'-'));
    if is_valid { Ok(()) } else { Err(InvalidReference::Tag(tag.to_owned())) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_are_shown_as_they_were_written() {
        for string in [
            "oci://ghcr.io/acme/csv",
            "oci://ghcr.io/acme/tools/csv-reader:1.2.0",
            "oci://localhost/csv:latest",
            "oci://localhost:5000/a__b/c.d:V_1",
            "oci://registry:5000/csv",
            "oci://127.0.0.1:5000/csv",
            "oci://[::1]:5000/csv",
            &format!("oci://ghcr.io/acme/csv:1.2.0@{DIGEST}"),
            &format!("oci://ghcr.io/acme/csv@{DIGEST}"),
        ] {
            let reference: Reference = string.parse().unwrap_or_else(|e| panic!("{string}: {e}"));
            assert_eq!(reference.to_string(), string);
        }
    }

    #[test]
    fn what_is_not_explicit_or_not_valid_is_refused() {
        let kind = |string: &str| match string.parse::<Reference>() {
            Ok(reference) => format!("{reference:?}"),
            Err(InvalidReference::Scheme) => "scheme".to_owned(),
            Err(InvalidReference::Registry(_)) => "registry".to_owned(),
            Err(InvalidReference::Repository(_)) => "repository".to_owned(),
            Err(InvalidReference::Tag(_)) => "tag".to_owned(),
            Err(InvalidReference::Digest(..)) => "digest".to_owned(),
            Err(InvalidReference::TooLong) => "length".to_owned(),
        };
        for (string, expected) in [
            ("ghcr.io/acme/csv", "scheme"),
            ("OCI://ghcr.io/acme/csv", "scheme"),
            ("oci://acme/csv", "registry"),
            ("oci://Ghcr.io/csv", "registry"),
            ("oci://ghcr.io:0/csv", "registry"),
            ("oci://ghcr.io:99999/csv", "registry"),
            ("oci://user:pw@ghcr.io/csv", "digest"),
            ("oci://ghcr.io?x/csv", "registry"),
            ("oci://[::g]/csv", "registry"),
            ("oci:///csv", "registry"),
            ("oci://ghcr.io", "repository"),
            ("oci://ghcr.io/", "repository"),
            ("oci://ghcr.io/Acme", "repository"),
            ("oci://ghcr.io/a//b", "repository"),
            ("oci://ghcr.io/../b", "repository"),
            ("oci://ghcr.io/a/b?x", "repository"),
            ("oci://ghcr.io/a%2e", "repository"),
            ("oci://ghcr.io/a___b", "repository"),
            ("oci://ghcr.io/a:", "tag"),
            ("oci://ghcr.io/a:-b", "tag"),
            ("oci://ghcr.io/a:b/c", "tag"),
            ("oci://ghcr.io/a@sha512:00", "digest"),
        ] {
            assert_eq!(kind(string), expected, "{string}");
        }
        let long = format!("oci://ghcr.io/{}", "a".repeat(300));
        assert_eq!(kind(&long), "length");
    }

    #[test]
    fn the_digest_decides_about_the_version() {
        let reference: Reference = "oci://docker.io/acme/csv".parse().unwrap();
        assert_eq!(reference.version(), Version::Tag("latest".to_owned()));
        assert_eq!(reference.host(), "registry-1.docker.io");
        let tagged = reference.with_tag("2").unwrap();
        assert_eq!(tagged.version(), Version::Tag("2".to_owned()));
        let digest = Digest::of(b"");
        assert_eq!(tagged.with_digest(digest).version(), Version::Digest(digest));
    }

    proptest! {
        #[test]
        fn any_string_is_refused_or_shown_as_it_was(string in "(oci://)?[a-z0-9.:/@_\\-\\PC]{0,80}") {
            if let Ok(reference) = string.parse::<Reference>() {
                prop_assert_eq!(reference.to_string(), string);
            }
        }
    }
}
