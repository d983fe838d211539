//! Security advisories about plugins, in the format of OSV.
//!
//! An advisory names what it affects by the digests of manifests and components, or by a repository
//! and its versions. A range of versions that cannot be compared counts as affected: an operator
//! can ignore a false alarm by its id, but does not see a plugin that was passed over. Entries
//! about packages of other ecosystems never match and are no errors, so that a database about many
//! of them can be read. All text is written by a third party.

mod affected;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use self::affected::{AffectedPackage, OsvAffected, digests};
use crate::{Digest, Reference};

/// Maximum size of one advisory in bytes: a page of text and a list of versions are far below.
const ADVISORY_BYTES_MAX: usize = 1024 * 1024;
/// Maximum size of the documents of an [`AdvisorySet`] together, in bytes.
pub const ADVISORIES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of advisories in a set. Only advisories of less than 700 bytes reach it before
/// [`ADVISORIES_BYTES_MAX`].
const ADVISORIES_MAX: usize = 100_000;
/// Maximum length of an id or an alias in bytes.
const ID_BYTES_MAX: usize = 128;
/// Maximum length of a text that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// Advisory about a vulnerable or malicious plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advisory {
    /// Id, such as `OSV-2026-1`.
    pub id: String,
    /// Ids of the same advisory in other databases.
    pub aliases: Vec<String>,
    /// Summary of one line.
    pub summary: String,
    /// Rating such as `HIGH`, or else the vector of the newest version of CVSS.
    pub severity: Option<String>,
    /// Address of a page about it.
    pub reference: Option<String>,
    /// Digests of affected manifests and components.
    digests: Vec<Digest>,
    packages: Vec<AffectedPackage>,
}

/// Advisories, which find those about an artifact by its digests and by its name.
#[derive(Debug, Default)]
pub struct AdvisorySet {
    advisories: Vec<Advisory>,
    /// Indexes of advisories.
    by_digest: BTreeMap<Digest, Vec<usize>>,
    by_name: BTreeMap<String, Vec<usize>>,
    /// Size of all documents in bytes.
    bytes: u64,
}

/// Artifact that is compared with advisories.
#[derive(Debug, Clone, Copy)]
pub struct ArtifactIdentity<'a> {
    /// Reference by which the artifact was found. Its tag is the version.
    pub reference: Option<&'a Reference>,
    /// Digest of the manifest.
    pub manifest: Option<Digest>,
    /// Digest of the component.
    pub layer: Digest,
}

/// Advisory that affects an artifact.
#[derive(Debug, Clone)]
pub struct AdvisoryMatch<'a> {
    /// Advisory.
    pub advisory: &'a Advisory,
    /// First later version that is not affected, if the advisory names one.
    pub fixed: Option<String>,
}

/// Error of a document that does not contain advisories.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvisoryError {
    /// The document has another form.
    #[error("expected an advisory in the format of OSV, or an array of them: {0}")]
    Malformed(String),
    /// The advisory has no valid id.
    #[error("expected an `id` of 1 to {ID_BYTES_MAX} printable ASCII characters without spaces")]
    Id,
    /// The advisory is too large.
    #[error("an advisory has {0} bytes; at most {ADVISORY_BYTES_MAX} are read")]
    Size(usize),
    /// The documents are too large.
    #[error("the advisories have more than {ADVISORIES_BYTES_MAX} bytes together")]
    TotalSize,
    /// There are too many advisories.
    #[error("there are more than {ADVISORIES_MAX} advisories")]
    Count,
    /// An advisory of an array is invalid.
    #[error("advisory {number} of the array: {error}")]
    Entry {
        /// Number of the advisory, from 1.
        number: usize,
        /// Error of the advisory.
        error: Box<AdvisoryError>,
    },
}

/// Documents of an array, not parsed yet.
struct RawDocuments<'a>(Vec<&'a RawValue>);

/// Advisory in its file. Unknown fields are ignored.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OsvDocument {
    id: String,
    withdrawn: Option<String>,
    aliases: Option<Vec<String>>,
    summary: Option<String>,
    details: Option<String>,
    severity: Option<Vec<OsvSeverity>>,
    affected: Option<Vec<OsvAffected>>,
    references: Option<Vec<OsvReference>>,
    database_specific: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OsvSeverity {
    #[serde(rename = "type")]
    kind: String,
    score: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OsvReference {
    #[serde(rename = "type")]
    kind: String,
    url: String,
}

impl AdvisorySet {
    /// Adds the advisories of a document: one, or an array of them. A withdrawn one is left out.
    ///
    /// # Errors
    /// Returns an error if the document has another form, or the set becomes too large. The
    /// advisories before the invalid one may have been added.
    pub fn add(&mut self, json: &[u8]) -> Result<(), AdvisoryError> {
        let bytes = u64::try_from(json.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ADVISORIES_BYTES_MAX {
            return Err(AdvisoryError::TotalSize);
        }
        if json.trim_ascii_start().first() != Some(&b'[') {
            return self.insert(json);
        }
        let RawDocuments(documents) = parse(json)?;
        for (index, document) in documents.into_iter().enumerate() {
            self.insert(document.get().as_bytes()).map_err(|error| AdvisoryError::Entry {
                number: index.saturating_add(1),
                error: Box::new(error),
            })?;
        }
        Ok(())
    }

    fn insert(&mut self, json: &[u8]) -> Result<(), AdvisoryError> {
        let Some(advisory) = Advisory::parse(json)? else { return Ok(()) };
        let index = self.advisories.len();
        if index >= ADVISORIES_MAX {
            return Err(AdvisoryError::Count);
        }
        for digest in &advisory.digests {
            self.by_digest.entry(*digest).or_default().push(index);
        }
        for package in &advisory.packages {
            self.by_name.entry(package.name.clone()).or_default().push(index);
        }
        self.advisories.push(advisory);
        Ok(())
    }

    /// Returns the advisories that affect an artifact, each id once, in the order of their ids.
    #[must_use]
    pub fn affecting(&self, artifact: &ArtifactIdentity<'_>) -> Vec<AdvisoryMatch<'_>> {
        let mut found = BTreeMap::new();
        if let Some(reference) = artifact.reference {
            let name = reference.name();
            for advisory in self.at(self.by_name.get(&name)) {
                if let Some(fixed) = advisory.affects(&name, reference.tag()) {
                    let matched = AdvisoryMatch { advisory, fixed };
                    found.entry(advisory.id.as_str()).or_insert(matched);
                }
            }
        }
        for digest in artifact.manifest.iter().chain([&artifact.layer]) {
            for advisory in self.at(self.by_digest.get(digest)) {
                let matched = AdvisoryMatch { advisory, fixed: None };
                found.entry(advisory.id.as_str()).or_insert(matched);
            }
        }
        found.into_values().collect()
    }

    fn at<'a>(&'a self, indexes: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Advisory> {
        indexes.into_iter().flatten().filter_map(|index| self.advisories.get(*index))
    }
}

impl Advisory {
    /// Parses one advisory. Returns `None` if it is withdrawn.
    fn parse(json: &[u8]) -> Result<Option<Self>, AdvisoryError> {
        if json.len() > ADVISORY_BYTES_MAX {
            return Err(AdvisoryError::Size(json.len()));
        }
        let document: OsvDocument = parse(json)?;
        if document.withdrawn.is_some() {
            return Ok(None);
        }
        if !is_id(&document.id) {
            return Err(AdvisoryError::Id);
        }
        let severity = document.severity();
        let affected = document.affected.unwrap_or_default();
        let packages = affected.iter().filter_map(AffectedPackage::of).collect();
        let own = digests(document.database_specific.as_ref());
        let digests = own.chain(affected.iter().flat_map(OsvAffected::digests)).collect();
        let aliases = document.aliases.unwrap_or_default();
        let summary = document.summary.filter(|text| !text.trim().is_empty());
        Ok(Some(Self {
            id: document.id,
            aliases: aliases.into_iter().filter(|alias| is_id(alias)).collect(),
            summary: shown(&summary.or(document.details).unwrap_or_default()),
            severity,
            reference: reference(document.references.unwrap_or_default()),
            digests,
            packages,
        }))
    }

    /// Returns whether a version of a repository is affected: `Some` with the first later version
    /// that is not, if there is one.
    fn affects(&self, name: &str, tag: Option<&str>) -> Option<Option<String>> {
        let packages = self.packages.iter().filter(|package| package.name == name);
        let affected: Vec<_> = packages.filter(|package| package.affects(tag)).collect();
        if affected.is_empty() {
            return None;
        }
        let fixed = affected.iter().filter_map(|package| package.fixed_after(tag)).max();
        Some(fixed.map(ToString::to_string))
    }
}

impl OsvDocument {
    /// Returns the rating of the database, or else the score of the newest system.
    fn severity(&self) -> Option<String> {
        let specific = self.database_specific.as_ref();
        let rating = specific.and_then(|it| it.get("severity")?.as_str());
        let scores = self.severity.iter().flatten().filter(|it| !it.score.is_empty());
        let newest = scores.max_by(|one, other| one.kind.cmp(&other.kind));
        rating.or(newest.map(|newest| newest.score.as_str())).map(shown)
    }
}

impl<'de> Deserialize<'de> for RawDocuments<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;

        impl<'de> Visitor<'de> for ListVisitor {
            type Value = RawDocuments<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of advisories")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut documents = Vec::new();
                while let Some(document) = list.next_element()? {
                    if documents.len() >= ADVISORIES_MAX {
                        return Err(A::Error::custom(AdvisoryError::Count));
                    }
                    documents.push(document);
                }
                Ok(RawDocuments(documents))
            }
        }

        deserializer.deserialize_seq(ListVisitor)
    }
}

fn parse<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, AdvisoryError> {
    serde_json::from_slice(json).map_err(|error| AdvisoryError::Malformed(error.to_string()))
}

fn is_id(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the beginning of a text in one line.
fn shown(text: &str) -> String {
    let spaced = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    spaced.take(SHOWN_CHARS_MAX).collect()
}

/// Returns the address of the advisory itself, or else the first address of a page.
fn reference(references: Vec<OsvReference>) -> Option<String> {
    let is_page = |reference: &OsvReference| {
        reference.url.starts_with("https://")
            && reference.url.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let mut pages: Vec<_> = references.into_iter().filter(is_page).collect();
    pages.sort_by_key(|reference| reference.kind != "ADVISORY");
    pages.into_iter().next().map(|reference| reference.url)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NAME: &str = "ghcr.io/acme/csv";

    fn set(document: &Value) -> AdvisorySet {
        let mut set = AdvisorySet::default();
        set.add(document.to_string().as_bytes()).unwrap();
        set
    }

    fn ids(set: &AdvisorySet, reference: &str, layer: &[u8]) -> Vec<String> {
        let reference: Reference = reference.parse().unwrap();
        let artifact = ArtifactIdentity {
            reference: Some(&reference),
            manifest: Some(Digest::of(b"manifest")),
            layer: Digest::of(layer),
        };
        set.affecting(&artifact).into_iter().map(|it| it.advisory.id.clone()).collect()
    }

    fn about(affected: Value) -> Value {
        json!({"id": "OSV-2026-1", "summary": "Bad", "affected": [affected]})
    }

    fn range(kind: &str, events: Value) -> AdvisorySet {
        set(&about(json!({
            "package": {"ecosystem": "OCI", "name": NAME},
            "ranges": [{"type": kind, "events": events}],
        })))
    }

    fn is_affected(set: &AdvisorySet, tag: &str) -> bool {
        !ids(set, &format!("oci://{NAME}{tag}"), b"other").is_empty()
    }

    #[test]
    fn digests_match_manifests_and_components_of_any_name() {
        for content in [&b"layer"[..], b"manifest"] {
            let digest = Digest::of(content);
            let set_of = |affected: Value| set(&about(affected));
            let document = json!({
                "id": "OSV-2026-1", "database_specific": {"digests": [digest, 5]},
            });
            for set in [
                set_of(json!({"versions": ["1.0.0", digest]})),
                set_of(json!({"database_specific": {"digests": [digest]}})),
                set(&document),
            ] {
                assert_eq!(ids(&set, "oci://ghcr.io/other/x:7", b"layer"), ["OSV-2026-1"]);
            }
        }
        let other = set(&about(json!({"versions": [Digest::of(b"other"), "sha256:00"]})));
        assert!(ids(&other, "oci://ghcr.io/other/x:7", b"layer").is_empty());
    }

    #[test]
    fn a_repository_is_named_directly_or_as_a_purl() {
        let versions = |package: Value| {
            set(&about(json!({"package": package, "versions": ["1.2.0", "v2.0.0", "stable"]})))
        };
        for package in [
            json!({"ecosystem": "OCI", "name": NAME}),
            json!({"ecosystem": "OCI", "name": format!("oci://{NAME}")}),
            json!({"name": "csv", "purl": format!("pkg:oci/csv?repository_url={NAME}")}),
            json!({"purl": "pkg:oci/csv?arch=wasm&repository_url=ghcr.io%2Facme%2Fcsv#x"}),
        ] {
            let set = versions(package);
            for tag in [":1.2.0", ":v1.2.0", ":2.0.0", ":v2.0.0", ":stable"] {
                assert!(is_affected(&set, tag), "{tag}");
            }
            for tag in [":1.2.1", ":1.2", "", ":latest"] {
                assert!(!is_affected(&set, tag), "{tag}");
            }
            assert!(ids(&set, "oci://ghcr.io/acme/csv2:1.2.0", b"x").is_empty());
        }
        for package in [
            json!({"name": "csv"}),
            json!({"name": "acme/csv"}),
            json!({"name": format!("{NAME}:1.2.0")}),
            json!({"purl": format!("pkg:npm/csv?repository_url={NAME}")}),
            json!({"purl": "pkg:oci/csv"}),
        ] {
            assert!(!is_affected(&versions(package.clone()), ":1.2.0"), "{package}");
        }
    }

    #[test]
    fn ranges_have_a_beginning_and_an_end() {
        let events = json!([
            {"introduced": "1.0.0"}, {"fixed": "1.2.0"}, {"introduced": "2.0.0-beta.1"},
            {"last_affected": "2.1.0"},
        ]);
        for kind in ["SEMVER", "ECOSYSTEM"] {
            let set = range(kind, events.clone());
            for tag in ["1.0.0", "v1.1.9", "1.2.0-rc.1", "2.0.0-beta.1", "2.0.0", "2.1.0"] {
                assert!(is_affected(&set, &format!(":{tag}")), "{tag}");
            }
            for tag in ["0.9.9", "1.0.0-rc.1", "1.2.0", "v1.2.0", "1.9.0", "2.0.0-alpha", "2.1.1"] {
                assert!(!is_affected(&set, &format!(":{tag}")), "{tag}");
            }
        }
        assert!(!is_affected(&range("GIT", json!([{"introduced": "0"}])), ":1.0.0"));
        let first = range("SEMVER", json!([{"introduced": "0"}, {"fixed": "0.1.0"}]));
        assert!(is_affected(&first, ":0.0.0-0") && !is_affected(&first, ":0.1.0"));
        let only = range("SEMVER", json!([{"introduced": "1.0.0"}, {"last_affected": "1.0.0"}]));
        assert!(is_affected(&only, ":1.0.0") && !is_affected(&only, ":1.0.1"));
        let limited = range("SEMVER", json!([{"introduced": "0"}, {"limit": "2.0.0"}]));
        assert!(is_affected(&limited, ":1.0.0") && !is_affected(&limited, ":2.0.0"));
    }

    #[test]
    fn a_tag_that_is_no_version_is_affected_only_if_every_version_is() {
        let digest = Digest::of(b"manifest");
        let no_version = ["", ":latest", ":1", ":1.2", &format!("@{digest}")];
        let (every, beginning, late) = (
            range("SEMVER", json!([{"introduced": "0"}])),
            range("SEMVER", json!([{"introduced": "0"}, {"fixed": "9.0.0"}])),
            range("SEMVER", json!([{"introduced": "0.0.1"}])),
        );
        for tag in no_version {
            assert!(is_affected(&every, tag), "{tag}");
            assert!(!is_affected(&beginning, tag) && !is_affected(&late, tag), "{tag}");
        }
        // The tag counts beside a digest as well.
        assert!(is_affected(&beginning, &format!(":1.0.0@{digest}")));
    }

    #[test]
    fn a_range_that_cannot_be_compared_counts_as_every_version() {
        for events in [
            json!([{"introduced": "1.x"}, {"fixed": "2.0.0"}]),
            json!([{"introduced": "0"}, {"fixed": "2.0"}]),
            json!([{"introduced": "0"}, {"fixed": "0"}]),
            json!([{"limit": "*"}]),
            json!([]),
        ] {
            let set = range("ECOSYSTEM", events.clone());
            assert!(is_affected(&set, ":3.0.0") && is_affected(&set, ":latest"), "{events}");
        }
        let from_nowhere = range("SEMVER", json!([{"fixed": "2.0.0"}]));
        assert!(is_affected(&from_nowhere, ":1.0.0") && !is_affected(&from_nowhere, ":2.0.0"));
    }

    #[test]
    fn the_first_later_version_that_is_fixed_is_named() {
        let set = range(
            "SEMVER",
            json!([
                {"introduced": "2.0.0"}, {"fixed": "2.0.3"}, {"introduced": "0"}, {"fixed": "1.4.0"}
            ]),
        );
        let fixed = |tag: &str| {
            let reference: Reference = format!("oci://{NAME}:{tag}").parse().unwrap();
            let layer = Digest::of(b"layer");
            let artifact = ArtifactIdentity { reference: Some(&reference), manifest: None, layer };
            set.affecting(&artifact).first().and_then(|it| it.fixed.clone())
        };
        assert_eq!(fixed("1.3.0").as_deref(), Some("1.4.0"));
        assert_eq!(fixed("2.0.1").as_deref(), Some("2.0.3"));
        assert_eq!(fixed("2.0.3"), None);
    }

    #[test]
    fn what_is_shown_of_an_advisory_is_short_and_in_one_line() {
        let document = json!({
            "schema_version": "1.7.3",
            "id": "OSV-2026-1",
            "aliases": ["CVE-2026-1", "has space"],
            "summary": " ",
            "details": format!("Reads\nfiles\u{1b}[2J{}", "x".repeat(500)),
            "severity": [
                {"type": "CVSS_V4", "score": "CVSS:4.0/AV:N"},
                {"type": "CVSS_V3", "score": "CVSS:3.1/AV:N"},
            ],
            "references": [
                {"type": "WEB", "url": "https://example.com/web"},
                {"type": "ADVISORY", "url": "https://example.com/advisory"},
                {"type": "ADVISORY", "url": "javascript:alert(1)"},
            ],
            "affected": null,
            "unknown": {"field": 1},
        });
        let advisory = Advisory::parse(document.to_string().as_bytes()).unwrap().unwrap();
        assert_eq!(advisory.aliases, ["CVE-2026-1"]);
        assert!(advisory.summary.starts_with("Reads files [2Jxxx"), "{}", advisory.summary);
        assert_eq!(advisory.summary.chars().count(), SHOWN_CHARS_MAX);
        assert_eq!(advisory.severity.as_deref(), Some("CVSS:4.0/AV:N"));
        assert_eq!(advisory.reference.as_deref(), Some("https://example.com/advisory"));
        let rated = json!({"id": "A", "database_specific": {"severity": "HIGH"}}).to_string();
        let rated = Advisory::parse(rated.as_bytes()).unwrap().unwrap();
        assert_eq!((rated.severity.as_deref(), rated.reference), (Some("HIGH"), None));
    }

    #[test]
    fn withdrawn_and_repeated_advisories_count_once_or_not() {
        let advisory = about(json!({"versions": [Digest::of(b"layer")]}));
        let mut withdrawn = advisory.clone();
        withdrawn["id"] = json!("OSV-2026-0");
        withdrawn["withdrawn"] = json!("2026-11-20T00:00:00Z");
        let set = set(&json!([advisory, withdrawn, advisory]));
        assert_eq!(ids(&set, "oci://ghcr.io/a/b:1", b"layer"), ["OSV-2026-1"]);
    }

    #[test]
    fn documents_of_another_form_or_size_are_errors() {
        let error = |json: &str| AdvisorySet::default().add(json.as_bytes()).unwrap_err();
        for json in ["", "{", "5", "[5]", r#"{"id":5}"#, r#"{"id":"A","affected":"x"}"#] {
            let text = error(json).to_string();
            assert!(text.contains("expected an advisory in the format of OSV"), "{json}: {text}");
        }
        let long = "x".repeat(ID_BYTES_MAX + 1);
        for id in ["", "a b", "a\u{1b}", &long] {
            assert_eq!(error(&json!({"id": id}).to_string()), AdvisoryError::Id);
        }
        let second = error(r#"[{"id":"A"},{}]"#);
        assert!(second.to_string().starts_with("advisory 2 of the array: expected an `id`"));
        let large = json!({"id": "A", "details": "x".repeat(ADVISORY_BYTES_MAX)}).to_string();
        assert_eq!(error(&large), AdvisoryError::Size(large.len()));
        let many = format!("[{}0]", "0,".repeat(ADVISORIES_MAX));
        assert!(error(&many).to_string().contains("more than 100000 advisories"));
        let mut full = AdvisorySet { bytes: ADVISORIES_BYTES_MAX, ..AdvisorySet::default() };
        assert_eq!(full.add(br#"{"id":"A"}"#), Err(AdvisoryError::TotalSize));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = AdvisorySet::default().add(&bytes);
        }

        #[test]
        fn no_events_and_tags_panic(
            events in prop::collection::vec(
                ("introduced|fixed|last_affected|limit", "[v0-9.x*+\\-]{0,8}"), 0..6,
            ),
            tag in "[a-z0-9][a-z0-9._\\-]{0,10}",
        ) {
            let events: Vec<_> =
                events.into_iter().map(|(event, version)| json!({ event: version })).collect();
            let set = range("SEMVER", json!(events));
            let _ = is_affected(&set, &format!(":{tag}"));
        }
    }
}
